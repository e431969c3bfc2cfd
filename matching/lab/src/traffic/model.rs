//! Models of how messages arrive.

use std::fmt;
use std::str::FromStr;

use tagwire_base::named::{Named, Parameter, Refused, Spec};
use tagwire_matching::Capacity;
use tagwire_matching::trace::Header;

use super::machine::{Machine, Outcome};
use super::{Script, time};
use crate::error::{Error, Result};
use crate::random::Random;
use crate::trace::Trace;

/// How messages arrive, by name and parameters: `causal:L=1000`, `posted`, `shuffled:seed=7`.
#[derive(Debug, Clone, PartialEq)]
pub struct Model(Spec);

const fn number(name: &'static str, default: u32, help: &'static str) -> Parameter {
    Parameter::number(name, default, 0..=u32::MAX, help)
}

const SEED: Parameter = number("seed", 1, "What the order follows from");

static CAUSAL: Named = Named {
    name: "causal",
    parameters: &[
        number("L", 1000, "Latency, ns"),
        number("o", 200, "Overhead of a post and of a send, ns"),
        number("g", 50, "Gap between messages of a rank, ns"),
        number("G", 100, "Gap between bytes, ps"),
    ],
};

static SENDTIME: Named = Named {
    name: "sendtime",
    parameters: &[number("L", 1000, "Latency, ns")],
};

static POSTED: Named = Named {
    name: "posted",
    parameters: &[],
};

static SHUFFLED: Named = Named {
    name: "shuffled",
    parameters: &[SEED],
};

static RANDOM: Named = Named {
    name: "random",
    parameters: &[SEED],
};

static MODELS: &[&Named] = &[&CAUSAL, &SENDTIME, &POSTED, &SHUFFLED, &RANDOM];

impl Model {
    /// Reads several names with commas between them.
    ///
    /// # Errors
    /// As [`Model::from_str`], for the first that is refused.
    pub fn parse_list(text: &str) -> Result<Vec<Self>> {
        let specs = Spec::parse_list(text, MODELS).map_err(refused)?;
        Ok(specs.into_iter().map(Self).collect())
    }

    /// Returns the traces of the ranks that run these scripts, which were made from what `origin` says.
    ///
    /// # Errors
    /// [`Error::Script`] when a rank waits for what never comes or sends to a rank that is not there; [`Error::Usage`] when it has
    /// no times where the model goes by them.
    pub fn traces(&self, scripts: &[Script], origin: &str) -> Result<Vec<Trace>> {
        let mut machine = Machine::new(scripts)?;
        let spec = &self.0;
        let clock = match spec.name() {
            "causal" => {
                time::run(&mut machine, &mut time::LogGp::new(spec, scripts.len()))?;
                "virtual"
            }
            "sendtime" => {
                let latency = u64::from(spec.number("L"));
                time::run(&mut machine, &mut time::Seen::new(latency))?;
                "seen"
            }
            "posted" => {
                settle(&mut machine, Order::Posted)?;
                "steps"
            }
            "shuffled" => {
                let seed = u64::from(spec.number("seed"));
                settle(&mut machine, Order::Shuffled(Random::new(seed)))?;
                "steps"
            }
            _ => {
                interleave(
                    &mut machine,
                    &mut Random::new(u64::from(spec.number("seed"))),
                )?;
                "steps"
            }
        };
        let ranks = machine.size() as u32;
        let trace = |(calls, rank)| Trace {
            header: Header {
                rank,
                ranks,
                engine: "list".to_owned(),
                capacity: Capacity::default(),
                clock: clock.to_owned(),
                arrivals: self.to_string(),
                ring: 0,
                before: 0,
                host: "-".to_owned(),
                command: origin.to_owned(),
            },
            calls,
            lost: 0,
        };
        Ok(machine
            .into_calls()
            .into_iter()
            .zip(0..)
            .map(trace)
            .collect())
    }
}

impl FromStr for Model {
    type Err = Error;

    /// Reads `NAME` or `NAME:KEY=VALUE,...`.
    ///
    /// # Errors
    /// [`Error::Usage`], with the nearest right name.
    fn from_str(text: &str) -> Result<Self> {
        Spec::parse(text, MODELS).map(Self).map_err(refused)
    }
}

fn refused(refused: Refused) -> Error {
    Error::of_name("model of arrivals", &refused)
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0.to_string())
    }
}

/// In which order what is on its way arrives once every rank waits.
enum Order {
    /// Each message when its receive is the first of those that are waited for.
    Posted,
    /// All in a random order.
    Shuffled(Random),
}

/// Runs ranks as far as they come, lets messages arrive once all of them wait, and so on.
fn settle(machine: &mut Machine<'_>, mut order: Order) -> Result<()> {
    let mut at = 0;
    let mut runnable: Vec<u32> = (0..machine.size() as u32).collect();
    loop {
        for rank in std::mem::take(&mut runnable) {
            loop {
                at += 1;
                match machine.step(rank, at) {
                    Outcome::Blocked | Outcome::Finished => break,
                    _ => {}
                }
            }
        }
        let mut under_way: Vec<(u32, u32)> = machine.under_way().collect();
        if under_way.is_empty() && machine.woken_is_empty() {
            return all_finished(machine);
        }
        match &mut order {
            Order::Shuffled(random) => {
                // A place for each message, of which each pair has as many as messages.
                let mut places: Vec<(u32, u32)> = under_way
                    .drain(..)
                    .flat_map(|pair| std::iter::repeat_n(pair, machine.count(pair)))
                    .collect();
                random.shuffle(&mut places);
                for pair in places {
                    at += 1;
                    machine.deliver(pair, at);
                }
            }
            Order::Posted => {
                let mut wanted = 0;
                for rank in 0..machine.size() as u32 {
                    wanted += arrive_as_posted(machine, rank, &mut at);
                }
                // Nobody waits for these; a synchronous send may wait for its message to be there.
                if wanted == 0 && machine.woken_is_empty() {
                    for pair in under_way {
                        while machine.count(pair) > 0 {
                            at += 1;
                            machine.deliver(pair, at);
                        }
                    }
                }
            }
        }
        runnable = machine.take_woken();
        runnable.sort_unstable();
        runnable.dedup();
    }
}

/// Has the messages arrive that a rank waits for, in the order in which it posted their receives, and those before them that
/// came from the same source. Returns how many that were.
fn arrive_as_posted(machine: &mut Machine<'_>, rank: u32, at: &mut u64) -> usize {
    let mut arrived = 0;
    for pattern in machine.wants(rank) {
        let sources = match pattern.source.rank() {
            Some(source) => source.as_u32()..source.as_u32() + 1,
            None => 0..machine.size() as u32,
        };
        let until = |source| {
            Some((
                (source, rank),
                machine.messages_until((source, rank), &pattern)?,
            ))
        };
        let found = sources.into_iter().find_map(until);
        if let Some((pair, count)) = found {
            for _ in 0..count {
                *at += 1;
                machine.deliver(pair, *at);
            }
            arrived += count;
        }
    }
    arrived
}

/// Does a step or has a message arrive, whichever the lot names, until there is nothing more to do.
fn interleave(machine: &mut Machine<'_>, random: &mut Random) -> Result<()> {
    let mut runnable: Vec<u32> = (0..machine.size() as u32).collect();
    let mut is_runnable = vec![true; machine.size()];
    let mut under_way: Vec<(u32, u32)> = Vec::new();
    for at in 1.. {
        let choices = runnable.len() + under_way.len();
        if choices == 0 {
            break;
        }
        let choice = random.below(choices as u32) as usize;
        match choice.checked_sub(runnable.len()) {
            Some(place) => {
                let pair = under_way.swap_remove(place);
                machine.deliver(pair, at);
            }
            None => {
                let rank = runnable[choice];
                match machine.step(rank, at) {
                    Outcome::Blocked | Outcome::Finished => {
                        runnable.swap_remove(choice);
                        is_runnable[rank as usize] = false;
                    }
                    Outcome::Sent { to, .. } => under_way.push((rank, to)),
                    _ => {}
                }
            }
        }
        for rank in machine.take_woken() {
            if !std::mem::replace(&mut is_runnable[rank as usize], true) {
                runnable.push(rank);
            }
        }
    }
    all_finished(machine)
}

/// Whether every rank has come to its end, or to that of a file that was cut.
pub(super) fn all_finished(machine: &Machine<'_>) -> Result<()> {
    let mut ranks = 0..machine.size() as u32;
    match ranks.find(|rank| !machine.is_finished(*rank)) {
        Some(rank) if !machine.is_cut() => Err(machine.stuck(rank)),
        _ => Ok(()),
    }
}
