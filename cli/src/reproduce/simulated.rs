//! `tagwire reproduce --on sim`: rounds of a paper's item on the machine that the paper had, as far as a preset knows it.

use std::fs;
use std::rc::Rc;
use std::str::FromStr;

use serde_json::{Value, json};
use tagwire_bench::{Row, Simulated, SimulatedCase, SimulatedExchange, Timed};
use tagwire_bench_sim::messaging::{self, Exchange, Leaves};
use tagwire_bench_sim::partitioned::{Case, Stamps, run};
use tagwire_papers::{Item, Outcome, Ran, Rows};
use tagwire_pml::Policy;
use tagwire_sim::presets::{PRESETS, Preset, preset};
use tagwire_sim::{Schedule, SimOptions};

use super::{ReproduceOptions, draw, unwritable, write};
use crate::failure::Failure;

/// A simulated machine, or the one that each item names.
#[derive(Debug, Clone)]
pub struct On(Option<&'static Preset>);

impl FromStr for On {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "sim" {
            return Ok(Self(None));
        }
        let name = text
            .strip_prefix("sim:")
            .ok_or("expected sim or sim:PRESET")?;
        let found = preset(name).ok_or_else(|| {
            let names: Vec<_> = PRESETS.iter().map(|preset| preset.name).collect();
            format!(
                "there is no preset '{name}'; there are {}",
                names.join(", ")
            )
        })?;
        Ok(Self(Some(found)))
    }
}

/// The file of a simulation's outcome, beside that of this machine's.
pub fn file_of(stem: &str) -> String {
    format!("{stem}.sim.json")
}

/// Simulates an item and judges it. `None` where it is not simulated, with why.
pub fn one(
    options: &ReproduceOptions,
    on: &On,
    item: &'static Item,
) -> Result<Result<Outcome, String>, Failure> {
    let runs = match item.simulated(options.quick) {
        Ok(runs) => runs,
        Err(why) => return Ok(Err(why.to_owned())),
    };
    let named = item.sim_on.as_deref().and_then(preset);
    let Some(machine) = on.0.or(named) else {
        return Ok(Err("its machine has no preset".to_owned()));
    };
    let stem = item.name.replace('/', "-");
    let (mut rows, mut ran, mut results) = (Rows::default(), Vec::new(), Vec::new());
    for (number, run) in (1..).zip(&runs) {
        let command = format!("tagwire reproduce {} --on sim:{}", item.name, machine.name);
        let (test, found) = simulated(machine, &run.arguments)?;
        let whole = tagwire_bench::results(test, &command, &environment(machine), &found);
        let name = format!("{stem}-sim-{number}.json");
        let file = options.output.join(&name);
        write(&file, &format!("{whole:#}\n"))?;
        let found = crate::results::read(&file)?;
        let words = run.arguments.join(" ");
        ran.push(Ran::new(run, format!("{command} # {words}"), &found, 1));
        rows.add(found, run, "");
        results.push(name);
    }
    let outcome = Outcome::of(item, &rows, options.quick, ran, results);
    let text = outcome.json();
    write(&options.output.join(file_of(&stem)), &text)?;
    if let Some(folder) = &options.store {
        let folder = folder.join(item.paper());
        fs::create_dir_all(&folder).map_err(|error| unwritable(&folder, &error))?;
        write(&folder.join(file_of(&stem)), &text)?;
    }
    draw(
        &options.output,
        item,
        &format!("{stem}.sim"),
        outcome.results(),
    )?;
    Ok(Ok(outcome))
}

/// Simulates the cases of a command.
fn simulated(machine: &Preset, words: &[String]) -> Result<(&'static str, Vec<Row>), Failure> {
    let command = Simulated::parse(words).map_err(Failure::run)?;
    let options = SimOptions {
        schedule: Schedule {
            shuffle: true,
            ..Schedule::default()
        },
        ..SimOptions::of(machine.machine)
    };
    let transport = format!("sim:{}", machine.name);
    let mut rows = Vec::new();
    for case in command.cases() {
        let timed = timed(run(&options, &of(&case)?).map_err(Failure::run)?);
        rows.push(case.row(&transport, "ob1", &timed));
    }
    let exchanges = command.exchanges().map_err(Failure::run)?;
    for of_size in exchanges.chunk_by(|one, other| one.size == other.size) {
        let mut timed = Vec::new();
        for exchange in of_size {
            let times = messaging::run(&options, &like(exchange)).map_err(Failure::run)?;
            timed.push((exchange.clone(), times));
        }
        rows.extend(SimulatedExchange::rows(&transport, "ob1", &timed));
    }
    Ok((command.test(), rows))
}

fn like(exchange: &SimulatedExchange) -> Exchange {
    let arrivals = exchange.clone();
    Exchange {
        ranks: exchange.ranks,
        threads: exchange.threads,
        peers: exchange.peers,
        bytes: exchange.size,
        parts: exchange.parts,
        leaves: match exchange.leaves {
            tagwire_bench::Leaves::Serially => Leaves::Serially,
            tagwire_bench::Leaves::Together => Leaves::Together,
            _ => Leaves::Early,
        },
        is_remote: exchange.is_remote,
        iterations: exchange.iterations,
        arrivals: Rc::new(move |iteration, rank| arrivals.arrivals(iteration, rank)),
    }
}

fn of(case: &SimulatedCase) -> Result<Case, Failure> {
    let delays = case.clone();
    Ok(Case {
        bytes: case.size,
        partitions: case.partitions,
        policy: case.policy.parse::<Policy>().map_err(Failure::usage)?,
        rounds: u32::try_from(case.rounds).map_err(Failure::usage)?,
        delays: Rc::new(move |round, thread| delays.delay(round, thread)),
    })
}

fn timed(stamps: Stamps) -> Timed {
    let messages = stamps.messages.iter();
    let partitions = stamps.partitions.iter();
    Timed {
        messages: messages.map(|one| [one.fork_join, one.message]).collect(),
        partitions: partitions
            .map(|round| {
                let stamps = round.iter().map(|one| [one.called, one.ready, one.arrived]);
                stamps.collect()
            })
            .collect(),
        last: stamps.last,
        way: stamps.way,
    }
}

/// Says on what machine rows were simulated.
fn environment(preset: &Preset) -> Value {
    let values = preset.values.iter();
    let values: Vec<Value> = values
        .map(|value| json!({"field": value.field, "source": value.source.name(), "note": value.note}))
        .collect();
    json!({"simulated": preset.name, "about": preset.about, "parameters": values})
}
