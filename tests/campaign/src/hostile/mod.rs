//! Hostile members, in one process at a high rate: a rank is in contact with a member that has proved who it is, and then
//! sends whatever it likes.
//!
//! ```text
//!   villain: a bare transport           victim: a layer over a transport, with sends and receives under way
//!     packets of chance, or      ---->    takes them, or gives the villain up
//!     what it heard, changed     <----    its own packets
//! ```
//!
//! A round is one villain, until the victim gives it up or the round has had its packets. The victim ends every round in
//! good order: it can be asked what it waits for, and it closes. It never panics, and its memory does not grow from round to
//! round.

mod bytes;
mod matching;
mod packet;
mod places;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_conformance::Chance;
use tagwire_pml::{Messenger, SendMode};

use places::{Scattered, buffer};

use crate::record::{HostileRecord, append};

/// The victim's rank and the villain's.
const VICTIM: Rank = Rank::new(0);
const VILLAIN: Rank = Rank::new(1);
/// The tag of the victim's messages.
const TAG: Tag = Tag::from_wire(1).expect("it is positive");
/// Packets of a round at most.
const PACKETS: u64 = 400;
/// What the process may grow by, once it has had the rounds of its beginning.
const MOST_KIB: u64 = 64 << 10;
const BEGINNING: u64 = 500;
/// How long a victim may take to close: nobody answers it.
const CLOSING: Duration = Duration::from_millis(1);
/// How long anything of a round may take.
const BOUND: Duration = Duration::from_secs(1);

/// One who has proved to be a member.
pub trait Villain {
    /// Sends one packet. Returns whether the victim still listens.
    fn send(&mut self, chance: &mut Chance) -> bool;

    /// Hears what the victim says, to say it again with changes.
    fn hear(&mut self);
}

/// A victim and its villain.
pub struct Bed {
    victim: Messenger,
    villain: Box<dyn Villain>,
}

/// What a victim stands on.
pub trait Target: Sync {
    /// Returns its name in reports.
    fn name(&self) -> &'static str;

    /// Returns one line for reports.
    fn about(&self) -> &'static str;

    /// Opens a victim, and a villain in contact with it.
    ///
    /// # Errors
    /// When they cannot be opened.
    fn open(&self, chance: &mut Chance) -> Result<Bed, String>;
}

/// All of them.
pub const ALL: &[&dyn Target] = &[
    &bytes::MEMORY,
    &bytes::SHM,
    &bytes::DR,
    &matching::MEMORY,
    &matching::SHM,
];

/// What rounds have come to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Villains.
    pub rounds: u64,
    /// Packets that they sent.
    pub packets: u64,
    /// Villains that were given up.
    pub given_up: u64,
}

/// Runs a round of a seed.
///
/// # Errors
/// Says what is wrong.
fn round(target: &dyn Target, seed: u64) -> Result<Count, String> {
    let mut chance = Chance::new(seed);
    let Bed {
        victim,
        mut villain,
    } = target.open(&mut chance)?;
    let began = Instant::now();
    let mut count = Count {
        rounds: 1,
        ..Count::default()
    };
    for number in 0..PACKETS {
        if number % 16 == 0 {
            begin_something(&victim, &mut chance)?;
        }
        if chance.below(3) == 0 {
            villain.hear();
        }
        if !villain.send(&mut chance) {
            break;
        }
        count.packets += 1;
        if chance.below(2) == 0 {
            victim.progress().map_err(|why| why.to_string())?;
            // What it sends from now on nobody looks at.
            if !victim.failed().map_err(|why| why.to_string())?.is_empty() {
                count.given_up = 1;
                break;
            }
        }
    }
    for _ in 0..32 {
        victim.progress().map_err(|why| why.to_string())?;
    }
    victim.dump().map_err(|why| why.to_string())?;
    let _ = victim.close(CLOSING);
    match began.elapsed() {
        took if took > BOUND => Err(format!("a round took {took:?}")),
        _ => Ok(count),
    }
}

/// Has the victim receive and send: what the villain then says may be about that.
fn begin_something(victim: &Messenger, chance: &mut Chance) -> Result<(), String> {
    let len = chance.one_of(&[0, 8, 3_000, 100_000]);
    let refused = |why: tagwire_pml::Error| match why {
        // The villain has been given up.
        tagwire_pml::Error::Failed(_) => Ok(()),
        why => Err(why.to_string()),
    };
    if chance.is_true() {
        let mode = chance.one_of(&[SendMode::Standard, SendMode::Synchronous]);
        let sent = victim.isend(Scattered::of(len), VILLAIN, TAG, ContextId::WORLD, mode);
        return sent.map(drop).or_else(refused);
    }
    let (source, tag) = match chance.is_true() {
        true => (SourceSelector::ANY, TagSelector::ANY),
        false => (SourceSelector::exact(VILLAIN), TagSelector::exact(TAG)),
    };
    victim
        .irecv(buffer(len), source, tag, ContextId::WORLD)
        .map(drop)
        .or_else(refused)
}

/// What is run.
#[derive(Debug, Clone, clap::Args)]
pub struct HostileOptions {
    /// Send so many packets to each target
    #[arg(long, default_value_t = 100_000)]
    pub packets: u64,
    /// Begin with the round of this seed
    #[arg(long, default_value_t = 0)]
    pub seed: u64,
    /// Append a line of JSON for each target to this file
    #[arg(long, value_name = "FILE")]
    pub log: Option<std::path::PathBuf>,
    /// This target alone
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(ALL.iter().map(|one| one.name())))]
    pub target: Option<String>,
}

/// Runs rounds, and says what they came to. Returns how many finds there were.
///
/// # Errors
/// When the log cannot be written.
pub fn run(options: &HostileOptions) -> Result<usize, String> {
    let mut finds = 0;
    let wanted = |target: &&&dyn Target| {
        options
            .target
            .as_ref()
            .is_none_or(|name| name == target.name())
    };
    for target in ALL.iter().filter(wanted) {
        let (name, began) = (target.name(), Instant::now());
        let (count, why) = rounds(*target, options.seed, options.packets);
        let record = HostileRecord {
            hostile: name.to_owned(),
            seed: options.seed,
            villains: count.rounds,
            packets: count.packets,
            given_up: count.given_up,
            why,
            wall_ms: began.elapsed().as_millis() as u64,
        };
        println!(
            "{name}: {} packets of {} members, of whom {} were given up, in {} ms",
            record.packets, record.villains, record.given_up, record.wall_ms
        );
        for (seed, why) in &record.why {
            println!(
                "  again: cargo run -p tagwire-campaign -- hostile --target {name} --packets 1 --seed {seed}"
            );
            println!("  {why}");
        }
        finds += record.why.len();
        if let Some(log) = &options.log {
            append(log, &record)?;
        }
    }
    Ok(finds)
}

/// Runs rounds of a target until they have had so many packets. Returns what is wrong, by seeds.
fn rounds(target: &dyn Target, first: u64, packets: u64) -> (Count, Vec<(u64, String)>) {
    let (mut sum, mut wrong, mut before) = (Count::default(), Vec::new(), None);
    for seed in first.. {
        if sum.packets >= packets || wrong.len() > 20 {
            break;
        }
        // A panic is a find, and others may come after it.
        match catch_unwind(AssertUnwindSafe(|| round(target, seed))) {
            Ok(Ok(count)) => {
                sum.rounds += 1;
                sum.packets += count.packets;
                sum.given_up += count.given_up;
            }
            Ok(Err(why)) => wrong.push((seed, why)),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                let text =
                    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                wrong.push((seed, format!("panicked: {}", text.unwrap_or_default())));
            }
        }
        if sum.rounds == BEGINNING {
            before = Some(resident_kib());
        }
    }
    if let Some(before) = before {
        let grown = resident_kib().saturating_sub(before);
        if grown > MOST_KIB {
            wrong.push((
                first,
                format!(
                    "{} rounds have grown the process by {grown} KiB",
                    sum.rounds
                ),
            ));
        }
    }
    (sum, wrong)
}

/// Returns how much memory this process has, by proc_pid_statm(5).
fn resident_kib() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let pages = text
        .split_whitespace()
        .nth(1)
        .and_then(|pages| pages.parse::<u64>().ok());
    pages.unwrap_or_default() * (rustix::param::page_size() as u64 / 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_members_do_no_harm() {
        for target in ALL {
            let (count, wrong) = rounds(*target, 0, 3_000);
            assert!(wrong.is_empty(), "{}: {wrong:?}", target.name());
            assert!(
                count.packets > 2 * count.rounds,
                "{}: {count:?}",
                target.name()
            );
            // Who sends what matches nothing breaks no protocol.
            let can_break = target.name() != matching::MEMORY.name();
            assert_eq!(
                count.given_up > count.rounds / 2,
                can_break,
                "{}: {count:?}",
                target.name()
            );
        }
    }
}
