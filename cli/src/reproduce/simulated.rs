//! `tagwire reproduce --on sim`: rounds of a paper's item on the machine that the paper had, as far as a preset knows it.

use std::fs;
use std::str::FromStr;

use serde_json::{Value, json};
use tagwire_bench::{Row, Simulated};
use tagwire_papers::{Item, Outcome, Ran, Rows, SimulatedRun};
use tagwire_sim::presets::{PRESETS, Preset, preset};
use tagwire_sim::{Schedule, SimOptions};

use super::partial::{clean, write};
use super::{ReproduceOptions, arrivals, draw, unwritable};
use crate::failure::Failure;
use crate::stamp;

mod runs;

use runs::Place;

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
    let arrivals = arrivals(options);
    let runs = match item.simulated(&arrivals, options.quick) {
        Ok(runs) => runs,
        Err(why) => return Ok(Err(why.to_owned())),
    };
    let stem = item.name.replace('/', "-");
    let (mut rows, mut ran, mut results) = (Rows::default(), Vec::new(), Vec::new());
    for (number, simulated) in (1..).zip(&runs) {
        let SimulatedRun { of, run, .. } = simulated;
        let Some(machine) = on.0.or_else(|| preset(&of.on)) else {
            return Err(Failure::run(format!("there is no preset '{}'", of.on)));
        };
        let command = format!("tagwire reproduce {} --on sim:{}", item.name, machine.name);
        let (test, found) = simulate(machine, &run.arguments)?;
        let whole = tagwire_bench::results(test, &command, &environment(machine), &found);
        let name = format!("{stem}-sim-{number}.json");
        let file = options.output.join(&name);
        let text = format!("{whole:#}\n");
        write(&file, &text)?;
        // Not read back: another process may write it, too.
        let mut found = tagwire_bench::document(text.as_bytes()).map_err(Failure::run)?;
        simulated.name_rows(&mut found);
        let words = run.arguments.join(" ");
        ran.push(Ran::new(run, format!("{command} # {words}"), &found, 1));
        rows.add(found, run, "");
        results.push(name);
    }
    for with in &item.with {
        rows.add_other(with, &left_of(options, with)?);
    }
    let outcome = Outcome::of(item, &rows, options.quick, ran, results);
    let text = outcome.json();
    write(&options.output.join(file_of(&stem)), &text)?;
    if let Some(folder) = &options.store {
        let folder = folder.join(item.paper());
        fs::create_dir_all(&folder).map_err(|error| unwritable(&folder, &error))?;
        clean(&folder);
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

/// Returns the test, and the rows of a command of `tagwire bench` on a machine, or of a skeleton behind the word `sim`.
fn simulate(machine: &Preset, words: &[String]) -> Result<(&'static str, Vec<Row>), Failure> {
    let options = SimOptions {
        schedule: Schedule {
            shuffle: true,
            ..Schedule::default()
        },
        ..SimOptions::of(machine.machine)
    };
    let place = Place {
        options: &options,
        transport: &format!("sim:{}", machine.name),
    };
    if let Some((SIM, words)) = words.split_first().map(|(first, rest)| (&**first, rest)) {
        return Ok((SIM, vec![place.app(words)?]));
    }
    let command = Simulated::parse(words).map_err(Failure::run)?;
    Ok((command.test(), place.rows(&command)?))
}

/// The first word of a run of `tagwire sim`.
const SIM: &str = "sim";

/// The rows that simulations of another item have left in the folder.
fn left_of(options: &ReproduceOptions, name: &str) -> Result<Rows, Failure> {
    let mut rows = Rows::default();
    for item in tagwire_papers::find(name).map_err(Failure::usage)? {
        let stem = item.name.replace('/', "-");
        let runs = item.simulated(&arrivals(options), options.quick);
        let runs = runs.unwrap_or_default();
        for (number, simulated) in (1..).zip(&runs) {
            let file = options.output.join(format!("{stem}-sim-{number}.json"));
            // Without it claims that compare with that item are not testable.
            if file.is_file() {
                let mut found = crate::results::read(&file)?;
                simulated.name_rows(&mut found);
                rows.add(found, &simulated.run, "");
            }
        }
    }
    Ok(rows)
}

/// Says on what machine rows were simulated, and by which build. It has no date: what is simulated again is the same.
fn environment(preset: &Preset) -> Value {
    let values = preset.values.iter();
    let values: Vec<Value> = values
        .map(|value| json!({"field": value.field, "source": value.source.name(), "note": value.note}))
        .collect();
    json!({
        "simulated": preset.name,
        "about": preset.about,
        "parameters": values,
        "commit": stamp::build().commit,
    })
}
