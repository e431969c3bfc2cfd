//! A stored outcome as a page shows it.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde::Deserialize;
use serde_json::Value;

use crate::error::{Error, Result};
use crate::item::{Item, Needs, all, find};
use crate::judgement::Verdict;
use crate::outcome::{COLUMN, Judged, Measured, Outcome, wrong_schema};
use crate::plot::Plot;
use crate::program::beside;
use crate::reference::{line_of, nearest};
use crate::rows::Rows;
use crate::simulation::Simulation;
use crate::stored::Ran;
use crate::words::short;

/// A page with its plots.
#[derive(Debug)]
pub struct Page {
    /// The page in Markdown.
    pub text: String,
    /// Its plots.
    pub plots: Vec<Drawn>,
}

/// A plot of a page, and its file beside the outcomes.
#[derive(Debug)]
pub struct Drawn {
    /// The item.
    pub item: &'static Item,
    /// The name of the file.
    pub file: String,
    /// What it shows.
    pub plot: Plot,
}

/// What of the file is read.
#[derive(Deserialize)]
struct Stored {
    name: String,
    quick: bool,
    column: Option<String>,
    #[serde(default)]
    runs: Vec<Ran>,
    #[serde(default)]
    commands: Vec<String>,
    #[serde(default)]
    measured: Vec<Measured>,
    #[serde(default)]
    claims: Vec<Value>,
}

/// A stored outcome. Its claims are judged anew by the rules of today, from rows that nothing else ran beside.
pub(super) struct Shown {
    pub(super) item: &'static Item,
    quick: bool,
    /// It is of a simulated machine.
    is_simulated: bool,
    /// The same item on one.
    simulated: Option<Box<Self>>,
    runs: Vec<Ran>,
    commands: Vec<String>,
    rows: Rows,
    /// How many rows other load ran beside, and the greatest load beside the others.
    left_out: usize,
    most_load: Option<f64>,
    measured: Vec<Measured>,
    pub(super) claims: Vec<Judged>,
    /// What the version before has stored of claims of then: what they say, where, and what was found.
    before: Vec<[String; 3]>,
}

impl Shown {
    /// Reads an outcome of this version, or of the one before, which has no rows.
    pub(super) fn read(file: &str, text: &str) -> Result<Self> {
        let no_outcome = |what: String| Error::NoOutcome {
            file: file.to_owned(),
            what,
        };
        let value: Value =
            serde_json::from_str(text).map_err(|error| no_outcome(error.to_string()))?;
        if let Some(wrong) = wrong_schema(text, value["schema"].as_str().unwrap_or_default()) {
            return Err(no_outcome(wrong));
        }
        let stored: Stored =
            serde_json::from_value(value).map_err(|error| no_outcome(error.to_string()))?;
        let item = find(&stored.name).map_err(|error| {
            let line = line_of(text, "\"name\"");
            let near = nearest(&stored.name, all().iter().map(|item| &*item.name));
            no_outcome(format!("line {line}: {error}; the nearest is '{near}'"))
        })?[0];
        let before = match stored.runs.is_empty() {
            true => stored.claims.iter().flat_map(found_before).collect(),
            false => Vec::new(),
        };
        let (mut rows, mut left_out, mut most_load) = (Rows::default(), 0, None);
        for run in &stored.runs {
            let (quiet, others) = run.quiet();
            left_out += others;
            most_load = [most_load, run.most_load(&quiet)]
                .into_iter()
                .flatten()
                .reduce(f64::max);
            rows.add_stored(quiet, run.is_over_tcp());
        }
        Ok(Self {
            item,
            quick: stored.quick,
            is_simulated: stored.column.as_deref() == Some(COLUMN),
            simulated: None,
            commands: match stored.runs.is_empty() {
                true => stored.commands,
                false => stored
                    .runs
                    .iter()
                    .map(|run| run.command().to_owned())
                    .collect(),
            },
            runs: stored.runs,
            rows,
            left_out,
            most_load,
            measured: stored.measured,
            claims: Vec::new(),
            before,
        })
    }

    /// Judges all, each with the rows of those that its claims compare with.
    pub(super) fn join(all: &mut [Self]) {
        for place in 0..all.len() {
            let mut rows = std::mem::take(&mut all[place].rows);
            for with in &all[place].item.with {
                let other = all.iter().find(|one| one.item.name == *with);
                if let Some(other) = other.filter(|other| other.item.name != all[place].item.name) {
                    rows.add_other(with, &other.rows);
                }
            }
            let one = &mut all[place];
            if one.is_judged() {
                let outcome = Outcome::of(one.item, &rows, one.quick, Vec::new(), Vec::new());
                one.measured = outcome.measured;
                one.claims = outcome.claims;
            }
            one.rows = rows;
        }
    }

    /// Returns all outcomes in the order of items, of which those that are also simulated have that beside them.
    pub(super) fn with(mut shown: Vec<Self>, simulated: Vec<Self>) -> Vec<Self> {
        for one in simulated {
            match shown.iter_mut().find(|of| of.item.name == one.item.name) {
                Some(of) => of.simulated = Some(Box::new(one)),
                None => shown.push(one),
            }
        }
        shown.sort_by_key(|one| all().iter().position(|item| item.name == one.item.name));
        shown
    }

    /// Whether it is of a simulated machine alone.
    pub(super) const fn is_simulated(&self) -> bool {
        self.is_simulated
    }

    /// Returns what a simulated machine has of it.
    pub(super) fn simulated(&self) -> Option<&Self> {
        match self.is_simulated {
            true => Some(self),
            false => self.simulated.as_deref(),
        }
    }

    /// Whether rows are there to judge by.
    pub(super) fn is_judged(&self) -> bool {
        !self.runs.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        !self.quick && self.is_judged()
    }

    /// Returns how many judgements of the paper's claims are of a kind. Checks of our own are none of them.
    pub(super) fn count(&self, verdict: Verdict) -> usize {
        let claims = self.claims.iter().filter(|claim| claim.is_published);
        let all = claims.flat_map(|claim| &claim.judgements);
        all.filter(|one| one.verdict == verdict).count()
    }

    /// Returns the evidence by which a claim has a verdict on a transport of ours, where the run was full.
    pub(super) fn own(&self, claim: &str, verdict: Verdict) -> Option<String> {
        if self.is_simulated {
            return None;
        }
        let claim = self.claims.iter().find(|one| one.says == claim)?;
        let places = self.rows.places();
        // Claims about layers are of a transport, beside a library where they are about one.
        let is_own = |on: &str| {
            let of = on.split(" beside ").next().unwrap_or(on);
            let mut own = places.iter().filter(|place| !place.is_foreign());
            own.any(|place| of == place.transport || on.starts_with(&place.name()))
        };
        let found = claim
            .judgements
            .iter()
            .find(|one| one.verdict == verdict && is_own(&one.on))?;
        self.is_full()
            .then(|| format!("{}: {}", found.on, found.evidence))
    }

    fn own_plots(&self) -> Vec<Drawn> {
        let plots = match self.is_judged() {
            true => Plot::of_rows(self.item, &self.rows),
            false => Plot::of_measured(self.item, &self.measured)
                .into_iter()
                .collect(),
        };
        let stem = self.item.name.replace('/', "-");
        let machine = if self.is_simulated { ".sim" } else { "" };
        let named = plots.into_iter().map(|plot| {
            let number = match plot.number {
                1 => String::new(),
                number => format!("-{number}"),
            };
            Drawn {
                item: self.item,
                file: format!("{stem}{number}{machine}.svg"),
                plot,
            }
        });
        named.collect()
    }

    /// Returns its plots, and those of a simulated machine.
    pub(super) fn plots(&self) -> Vec<Drawn> {
        let simulated = self.simulated.iter().flat_map(|one| one.own_plots());
        self.own_plots().into_iter().chain(simulated).collect()
    }

    /// Returns what a page says of it; its plots lie in files.
    pub(super) fn section(
        &self,
        plots: &[(String, &Plot)],
        date: &dyn Fn(u64) -> String,
    ) -> String {
        let (figure, shows) = (&self.item.figure, &self.item.shows);
        let quick = if self.quick { ", quick" } else { "" };
        let mut out = format!("\n### {figure}{quick}: {shows}\n\n");
        out += &self.circumstances(date);
        for (file, plot) in plots {
            let machine = match file.ends_with(".sim.svg") {
                true => ", on a simulated machine",
                false => "",
            };
            let panel = match plot.panel.is_empty() {
                true => String::new(),
                false => format!("; {}", plot.panel),
            };
            let _ = writeln!(out, "![{figure}: {shows}{panel}{machine}]({file})\n");
        }
        out += &self.judged();
        out += &measured(&self.measured);
        out += &beside(&self.item.name);
        let _ = writeln!(out, "```sh\n{}\n```", self.commands.join("\n"));
        out
    }

    /// The box at the top.
    fn circumstances(&self, date: &dyn Fn(u64) -> String) -> String {
        let mut lines = vec![match self.quick {
            true => "**Quick**: fewer sizes and rounds than the paper has, and shorter computation. The commands below have the real parameters.".to_owned(),
            false => "**Full run**.".to_owned(),
        }];
        match self.is_judged() {
            true if self.is_simulated => lines.extend(self.machine()),
            true => {
                let of = |key: &str| distinct(self.runs.iter().filter_map(|run| run.environment(key)));
                let cores = distinct(self.runs.iter().map(|run| run.circumstances()["cores"].to_string()));
                let dates = self.runs.iter().filter_map(|run| run.circumstances()["started_unix_s"].as_u64());
                let dates = distinct(dates.map(|time| {
                    date(time).split(' ').next().unwrap_or_default().to_owned()
                }));
                lines.push(format!(
                    "**Machine**: {}, {cores} cores, Linux {}, host {}. **Measured** on {dates} at commit {}.",
                    of("cpu_model"),
                    of("kernel"),
                    of("host"),
                    of("commit")
                ) + &self.took());
                let load = self.most_load.map_or_else(
                    || "not counted".to_owned(),
                    |load| format!("{load:.1} % of the cores at the most"),
                );
                let attempts = self.runs.iter().map(Ran::attempts).max().unwrap_or(0);
                let left_out = match self.left_out {
                    0 => String::new(),
                    count => format!(" {count} rows were not measured without other load in {attempts} attempts, and are left out."),
                };
                lines.push(format!("**Others took** {load}.{left_out}"));
            }
            false => lines.push(
                "**Not judged**: an earlier version stored it without rows, machine, date, commit and load. It needs a new run.".to_owned(),
            ),
        }
        let warnings = one_of_each(self.runs.iter().flat_map(Ran::warnings));
        if !warnings.is_empty() {
            lines.push(format!("**Warnings**: {}.", warnings.join("; ")));
        }
        lines.extend(self.simulated.iter().flat_map(|one| one.machine()));
        // Of what the version before measured they are not: it had other threads, ranks and sizes.
        let whose = match self.is_judged() {
            true if self.is_simulated && self.item.needs == Needs::Real => " in a run here",
            true => "",
            false => " in a full run",
        };
        for (word, text) in [("Stands in", &self.item.stands_in), ("Cut", &self.item.cut)] {
            if !text.is_empty() {
                lines.push(format!("**{word}**{whose}: {text}"));
            }
        }
        format!("> {}\n\n", lines.join("<br>\n> "))
    }

    /// Says how long all runs took.
    fn took(&self) -> String {
        let all: Option<f64> = self.runs.iter().map(Ran::seconds).sum();
        all.map_or_else(String::new, |seconds| {
            format!(" It took {:.1} minutes.", seconds / 60.0)
        })
    }

    /// Returns on which machine it was simulated, which of its parameters are fitted, by which build, what stands in and what is cut.
    fn machine(&self) -> Vec<String> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let of = |environment: &Value| {
            let values = environment["parameters"].as_array().into_iter().flatten();
            let fitted: Vec<String> = values
                .filter(|value| value["source"] == "fitted")
                .map(|value| format!("{} ({})", text(&value["field"]), text(&value["note"])))
                .collect();
            let fitted = match fitted.is_empty() {
                true => "No parameter is fitted".to_owned(),
                false => format!("Fitted: {}", fitted.join("; ")),
            };
            format!(
                "**Simulated** on {}. {fitted}.",
                text(&environment["about"])
            )
        };
        let mut machines: Vec<String> = Vec::new();
        for run in &self.runs {
            let machine = of(run.circumstances());
            if !machines.contains(&machine) {
                machines.push(machine);
            }
        }
        let commits = self.runs.iter().filter_map(|run| run.environment("commit"));
        machines.push(format!("Simulated at commit {}.", distinct(commits)));
        type Words = fn(&Simulation) -> &str;
        let texts: [(&str, Words); 2] = [("Stands in", |of| &of.stands_in), ("Cut", |of| &of.cut)];
        for (word, text) in texts {
            let of = self.item.simulations().map(text);
            let mut of = of.filter(|text| !text.is_empty()).peekable();
            if of.peek().is_some() {
                let of: Vec<&str> = of.collect();
                machines.push(format!(
                    "**{word}** on the simulated machine: {}",
                    of.join(" ")
                ));
            }
        }
        machines
    }

    /// Returns the cell of what became of a claim on a simulated machine, with its end; nothing where there is none.
    fn cell_of_sim(&self, says: &str) -> String {
        let Some(simulated) = &self.simulated else {
            return String::new();
        };
        let claim = simulated.claims.iter().find(|one| one.says == says);
        let judgements = claim.map_or(&[][..], |claim| &claim.judgements);
        let told = judgements.iter().map(|one| {
            let word = shown_word(one.verdict);
            cell(&format!("{}: {word}: {}", one.on, one.evidence))
        });
        format!(" {} |", told.collect::<Vec<_>>().join("<br>"))
    }

    /// The claims, and what has become of them at each place.
    fn judged(&self) -> String {
        let mut out = String::new();
        if !self.is_judged() {
            out += match self.simulated.is_some() {
                true => "| claim | published | sim |\n|---|---|---|\n",
                false => "| claim | published |\n|---|---|\n",
            };
            for claim in &self.item.claims {
                let _ = writeln!(
                    out,
                    "| {} | {} |{}",
                    cell(&claim.says),
                    cell(claim.published.text()),
                    self.cell_of_sim(&claim.says)
                );
            }
            out += "\n| what was looked at then | on | found |\n|---|---|---|\n";
            for [says, on, found] in &self.before {
                let _ = writeln!(out, "| {} | {} | {} |", cell(says), cell(on), cell(found));
            }
            out.push('\n');
            return out + &self.reasons();
        }
        out += match self.simulated.is_some() {
            true => {
                "| claim | published | sim | on | verdict | ours |\n|---|---|---|---|---|---|\n"
            }
            false => "| claim | published | on | verdict | ours |\n|---|---|---|---|---|\n",
        };
        for claim in &self.claims {
            let published = format!(
                "{} |{}",
                cell(claim.published),
                self.cell_of_sim(claim.says)
            );
            let mut what = (cell(claim.says), published);
            for one in &claim.judgements {
                let word = shown_word(one.verdict);
                let _ = writeln!(
                    out,
                    "| {} | {} {} | {word} | {} |",
                    what.0,
                    what.1,
                    cell(&one.on),
                    cell(&one.evidence)
                );
                // A claim that is judged at several places stands once.
                let empty = match self.simulated.is_some() {
                    true => " | |",
                    false => " |",
                };
                what = (String::new(), empty.to_owned());
            }
        }
        out.push('\n');
        out + &self.reasons()
    }

    /// Returns why claims fail that do, with an empty line behind; nothing where none does.
    fn reasons(&self) -> String {
        let mut reasons = String::new();
        for claim in &self.claims {
            if let Some(reason) = claim.likely_reason {
                let says = claim.says.trim_end_matches('.');
                let _ = writeln!(reasons, "- *{says}* fails where it does, likely: {reason}");
            }
        }
        for claim in self.simulated.iter().flat_map(|one| &one.claims) {
            if let Some(reason) = claim.likely_reason {
                let says = claim.says.trim_end_matches('.');
                let judgements = &claim.judgements;
                let word = match judgements.iter().any(|one| one.verdict == Verdict::Fails) {
                    true => "fails",
                    false => "is undecided",
                };
                let _ = writeln!(
                    reasons,
                    "- *{says}* {word} on the simulated machine, likely: {reason}"
                );
            }
        }
        if !reasons.is_empty() {
            reasons.push('\n');
        }
        reasons
    }
}

fn shown_word(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Holds => "**holds**",
        other => other.word(),
    }
}

/// What a claim of the version before has found at each place, without what it was compared with.
fn found_before(claim: &Value) -> Vec<[String; 3]> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let judgements = claim["judgements"].as_array().into_iter().flatten();
    let of = |one: &Value| {
        let evidence = text(&one["evidence"]);
        let is_ours = |part: &&str| {
            let others = ["published", "claimed", "expected"];
            !others.iter().any(|word| part.starts_with(word))
        };
        let ours: Vec<&str> = evidence.split("; ").filter(is_ours).collect();
        [text(&claim["says"]), text(&one["on"]), ours.join("; ")]
    };
    judgements.map(of).collect()
}

/// Returns the first of those texts that differ in numbers alone.
fn one_of_each<'t>(all: impl Iterator<Item = &'t str>) -> Vec<&'t str> {
    let kind =
        |text: &str| text.replace(|letter: char| letter.is_ascii_digit() || letter == '.', "");
    let mut known = BTreeSet::new();
    all.filter(|text| known.insert(kind(text))).collect()
}

/// What differs, once each.
fn distinct(all: impl Iterator<Item = impl Into<String>>) -> String {
    let mut found: Vec<String> = Vec::new();
    for one in all.map(Into::into) {
        if !found.contains(&one) {
            found.push(one);
        }
    }
    match found.is_empty() {
        true => "unknown".to_owned(),
        false => found.join(", "),
    }
}

/// Text as a cell of a table has it.
pub(super) fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// The tables of a figure's values: a line for each place, a column for each unit.
fn measured(all: &[Measured]) -> String {
    let mut out = String::new();
    let distinct = |of: &dyn Fn(&Measured) -> String| {
        let mut found: Vec<String> = Vec::new();
        for value in all.iter().map(of) {
            if !found.contains(&value) {
                found.push(value);
            }
        }
        found
    };
    let (places, units) = (
        distinct(&|one| one.on.clone()),
        distinct(&|one| one.unit.clone()),
    );
    let of = |one: &Measured| format!("`{}` at {} B", one.figure, one.size);
    for table in distinct(&of) {
        // A unit was measured at some sizes, and a library has others.
        let here: Vec<&String> = units
            .iter()
            .filter(|unit| all.iter().any(|one| one.unit == **unit && of(one) == table))
            .collect();
        let on: Vec<&String> = places
            .iter()
            .filter(|place| all.iter().any(|one| one.on == **place && of(one) == table))
            .collect();
        let value = |place: &str, unit: &str| {
            let mut rows = all.iter();
            let is_meant =
                |one: &&Measured| of(one) == table && one.on == place && one.unit == unit;
            rows.find(is_meant).map_or_else(String::new, |one| {
                let [median, low, high] = [one.median, one.low, one.high].map(short);
                format!("{median} ({low}..{high})")
            })
        };
        // What has more columns than a page is wide has them as lines.
        let (columns, lines, is_turned) = match here.len() > MOST_COLUMNS {
            true => (on, here, true),
            false => (here, on, false),
        };
        let heads: Vec<String> = columns.iter().map(|name| cell(name)).collect();
        let _ = writeln!(out, "| {table} | {} |", heads.join(" | "));
        let _ = writeln!(out, "|---|{}", "---|".repeat(heads.len()));
        for line in lines {
            let of_column = |column: &&String| match is_turned {
                true => value(column, line),
                false => value(line, column),
            };
            let cells: Vec<String> = columns.iter().map(of_column).collect();
            let _ = writeln!(out, "| {} | {} |", cell(line), cells.join(" | "));
        }
        out.push('\n');
    }
    out
}

/// A table that has more columns is turned.
const MOST_COLUMNS: usize = 6;
