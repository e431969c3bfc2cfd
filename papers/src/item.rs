//! The measured figures and tables, and the runs behind them.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::drawn::{Draw, Shows};
use crate::error::{Error, Result};
use crate::judgement::{Judgement, Verdict};
use crate::known::without_effect;
use crate::on::On;
use crate::predicate::Predicate;
use crate::projection::PROJECTED;
use crate::published::{Drawn, Published, PublishedPoint, drawn, points};
use crate::reference::{Number, Text};
use crate::rows::{Rows, is_peer, tool};
use crate::run::{KEEP_GOING, OVER_TCP, OVERSUBSCRIBED, Run};
use crate::run_times::RunTimes;
use crate::simulation::{SimulatedRun, Simulation};
use crate::turn::Turn;

/// What there must be to reproduce an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Needs {
    /// This machine.
    Real,
    /// Options or tests that `tagwire bench` does not have yet.
    Options,
    /// Patterns of communication that are no tests of `tagwire bench` yet.
    Patterns,
    /// The simulator.
    Sim,
    /// A device.
    Hardware,
}

impl Needs {
    /// Returns what it says in lists.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::Options => "needs options",
            Self::Patterns => "needs patterns",
            Self::Sim => "needs sim",
            Self::Hardware => "needs hardware",
        }
    }
}

/// A figure or table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Item {
    /// The name, such as `mtl/fig2a`.
    pub name: String,
    /// Paper and number, such as `004 fig 2a`.
    pub figure: String,
    /// What it shows.
    pub shows: String,
    /// What there must be to reproduce it.
    pub needs: Needs,
    /// 1 comes first.
    pub priority: u8,
    /// Why it cannot be reproduced here, where that is so.
    pub why: Option<String>,
    /// What of the paper's grid the runs leave out.
    #[serde(default)]
    pub cut: String,
    /// What stands for what the paper measured with.
    #[serde(default)]
    pub stands_in: String,
    /// Items whose results claims compare with.
    #[serde(default)]
    pub with: Vec<String>,
    /// What its plot shows, where that is no figure over sizes.
    pub(crate) plot: Option<Shows>,
    /// Its plots; without any it is one of what its claims about its first figure are of.
    #[serde(default)]
    pub(crate) draw: Vec<Draw>,
    /// How often each run is started; 5 times where nothing is said.
    launches: Option<u32>,
    /// The timeout of a job of an MPI library in seconds: some hang in what it measures. 1,800 where nothing is said.
    timeout: Option<u32>,
    /// The sizes in place of those of a run with `--quick`.
    quick_sizes: Option<String>,
    /// Options of each run with `--quick`, in place of its own.
    #[serde(default)]
    quick: String,
    /// The arguments of `tagwire bench`.
    #[serde(default)]
    runs: Vec<String>,
    /// What is simulated, with what the paper had.
    #[serde(default)]
    sim: Vec<Simulation>,
    /// Why it is not simulated.
    no_sim: Option<String>,
    /// What is measured by turns in their place, and the lines of tables that it is.
    #[serde(default)]
    pub(crate) turns: Vec<Turn>,
    /// Which published values have a place in its plot.
    #[serde(default, rename = "point")]
    drawn: Vec<Drawn>,
    /// What the paper says of it.
    #[serde(default, rename = "claim")]
    pub claims: Vec<Claim>,
}

/// What a paper says.
#[derive(Debug, Deserialize)]
pub struct Claim {
    /// The claim, in our words.
    pub says: String,
    /// What was published, with the values.
    pub(crate) published: Text,
    /// Why it may fail here.
    pub reason: Option<String>,
    /// Why it may fail on a simulated machine.
    pub(crate) sim_reason: Option<String>,
    /// Whether parameters of the simulated machine are fitted to it.
    #[serde(default)]
    pub(crate) fitted: bool,
    /// When it holds on a simulated machine, where that is by the run times of applications and here by something else.
    pub(crate) simulated: Option<RunTimes>,
    /// Why the model of a simulated machine cannot tell.
    pub(crate) no_sim: Option<String>,
    /// Whether what is published is that there is no effect: figures without any meet it, and others do not.
    #[serde(default)]
    pub(crate) no_effect: bool,
    /// Of which places it is, where it is not of all.
    pub(crate) on: Option<On>,
    /// When it holds.
    #[serde(flatten)]
    pub(crate) predicate: Predicate,
}

impl Claim {
    /// Whether it is of the paper, and no check of our own.
    pub(crate) fn is_published(&self) -> bool {
        !self.published.of().is_empty()
    }

    /// Judges it by rows.
    pub(crate) fn judge(&self, rows: &Rows) -> Vec<Judgement> {
        let figure = self.predicate.figure();
        let of_one = rows.of_one_placing(figure, self.predicate.is_of_one_place());
        let rows = of_one.as_ref().unwrap_or(rows);
        let judged = self.predicate.judge(rows, self.on);
        let is_met = |one: &Judgement| one.verdict == Verdict::Holds;
        if self.no_effect || !self.is_published() || !judged.iter().any(is_met) {
            return judged;
        }
        let value = without_effect(figure);
        let constant = rows.without_effect(figure, value);
        let constant = self.predicate.judge(&constant, self.on);
        let both = judged.into_iter().zip(constant);
        both.map(|(one, constant)| match is_met(&one) && is_met(&constant) {
            true => one.met_by_nothing(value),
            false => one,
        })
        .collect()
    }

    /// Returns the published values that it answers: those in its text, and those in its predicate.
    pub(crate) fn answers(&self) -> impl Iterator<Item = &'static Published> {
        let numbers = self.predicate.numbers().into_iter();
        let numbers = numbers.filter_map(Number::published);
        self.published.of().iter().copied().chain(numbers)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Items {
    item: Vec<Item>,
}

/// Returns all items: those of papers by paper and number, and Tagwire's performance.
///
/// # Panics
/// Never: a test reads the tables.
pub fn all() -> &'static [Item] {
    static ITEMS: LazyLock<Vec<Item>> = LazyLock::new(|| {
        let tables = [
            include_str!("../data/items.toml"),
            include_str!("../data/performance.toml"),
        ];
        let items = tables.map(|table| toml::from_str(table).expect("the table of items is right"));
        items
            .into_iter()
            .flat_map(|items: Items| items.item)
            .collect()
    });
    &ITEMS
}

/// Returns the item with a name, all of a paper by the part before the slash, or those of all papers by `all`.
///
/// # Errors
/// [`Error::NoItem`].
pub fn find(name: &str) -> Result<Vec<&'static Item>> {
    let is_meant = |item: &&Item| {
        item.name == name || item.paper() == name || (name == "all" && !item.has_tables())
    };
    let found: Vec<_> = all().iter().filter(is_meant).collect();
    match found.is_empty() {
        true => Err(Error::NoItem(name.to_owned())),
        false => Ok(found),
    }
}

/// The timeout of a job of an MPI library in seconds, where its item sets none.
const TIMEOUT: u32 = 1800;

impl Item {
    /// Returns the paper's short name, such as `mtl`.
    #[must_use]
    pub fn paper(&self) -> &str {
        self.name.split('/').next().unwrap_or(&self.name)
    }

    /// Whether it is of no paper, and has tables in place of claims.
    #[must_use]
    pub fn has_tables(&self) -> bool {
        !self.turns.is_empty()
    }

    /// Whether it is a projection, to which shares and factors can be given.
    #[must_use]
    pub fn is_projected(&self) -> bool {
        self.name == PROJECTED
    }

    /// Returns how many times each run is measured, by turns with the others.
    #[must_use]
    pub fn rounds(&self, quick: bool) -> u64 {
        match self.has_tables() && !quick {
            true => 5,
            false => 1,
        }
    }

    /// Returns the published values that have a place in its plot: a figure at a size. Others stand with the claims.
    #[must_use]
    pub fn points(&self) -> Vec<PublishedPoint> {
        points(&self.figure, &self.drawn)
    }

    /// Returns the published values that have a place in its plot.
    pub(crate) fn drawn(&self) -> impl Iterator<Item = &'static Published> {
        drawn(&self.figure, &self.drawn)
    }

    /// Returns the runs on some transports, of which those that begin with `mpi` are MPI libraries, where
    /// [`ARRIVALS`](crate::ARRIVALS) are in the folder `arrivals`. A library that fails or hangs leaves the others their rows.
    #[must_use]
    pub fn runs(&self, transports: &[String], arrivals: &str, quick: bool) -> Vec<Run> {
        let in_bench = transports.iter().filter(|name| tool(name).is_none());
        let (peers, own): (Vec<_>, Vec<_>) = in_bench.cloned().partition(|name| is_peer(name));
        let is_shared = |name: &&String| name.starts_with("shm") || *name == "auto";
        let (shared, network): (Vec<_>, Vec<_>) = own.iter().partition(is_shared);
        let (shared, network) = (cloned(&shared), cloned(&network));
        let launches = if quick { 3 } else { self.launches.unwrap_or(5) };
        // Peers over TCP stand beside ours over a network, where an item has ours over all that are given.
        let is_shared_alone =
            network.is_empty() && self.runs.iter().any(|run| run.contains("{own}"));
        let runs = self.runs.iter().filter_map(|run| {
            let (names, environment) = match run {
                run if run.contains("{peers-tcp}") && is_shared_alone => return None,
                run if run.contains("{peers-tcp}") => (&peers, OVER_TCP),
                run if run.contains("{peers-oversubscribed}") => (&peers, OVERSUBSCRIBED),
                run if run.contains("{peers}") => (&peers, &[][..]),
                run if run.contains("{shm}") => (&shared, &[][..]),
                run if run.contains("{network}") => (&network, &[][..]),
                _ => (&own, &[][..]),
            };
            if names.is_empty() {
                return None;
            }
            let names = names.join(",");
            let mut arguments: Vec<String> = run
                .split_whitespace()
                .map(|word| match word {
                    "{own}"
                    | "{peers}"
                    | "{peers-tcp}"
                    | "{peers-oversubscribed}"
                    | "{shm}"
                    | "{network}" => names.clone(),
                    _ => word.replace("{arrivals}", arrivals),
                })
                .collect();
            let sizes = arguments.iter().position(|word| word == "-m");
            if let (Some(place), Some(sizes), true) = (sizes, &self.quick_sizes, quick) {
                arguments[place + 1].clone_from(sizes);
            }
            if quick {
                shorten(&self.quick, &mut arguments);
            }
            arguments.extend(["--launches".to_owned(), launches.to_string()]);
            if run.contains("{peers") {
                let timeout = self.timeout.unwrap_or(TIMEOUT).to_string();
                arguments.extend([KEEP_GOING.to_owned(), "--timeout".to_owned(), timeout]);
            }
            Some(Run {
                arguments,
                environment,
                turn: None,
                is_own: false,
            })
        });
        let turns = self.turns.iter().enumerate();
        let turns = turns.flat_map(|(number, turn)| turn.runs(number, transports));
        let turns = turns.map(|mut run| {
            if quick {
                shorten(&self.quick, &mut run.arguments);
            }
            run
        });
        runs.chain(turns).collect()
    }

    /// Returns what of it is simulated.
    pub(crate) fn simulations(&self) -> impl Iterator<Item = &Simulation> {
        self.sim.iter()
    }

    /// Returns the runs of simulations, where [`ARRIVALS`](crate::ARRIVALS) are in the folder `arrivals`.
    ///
    /// # Errors
    /// Why there are none.
    pub fn simulated(
        &'static self,
        arrivals: &str,
        quick: bool,
    ) -> std::result::Result<Vec<SimulatedRun>, &'static str> {
        if self.sim.is_empty() {
            let why = self.no_sim.as_deref();
            return Err(why.unwrap_or("no program of the simulator has its rounds"));
        }
        let run = |of: &Simulation, mut arguments: Vec<String>| {
            let sizes = arguments.iter().position(|word| word == "-m");
            if let (Some(place), Some(sizes), true) = (sizes, &self.quick_sizes, quick) {
                arguments[place + 1].clone_from(sizes);
            }
            if quick {
                shorten(of.quick.as_ref().unwrap_or(&self.quick), &mut arguments);
            }
            Run {
                arguments,
                environment: &[],
                turn: None,
                is_own: false,
            }
        };
        let all = self.sim.iter().flat_map(|of| {
            let runs = of.words(arrivals).into_iter();
            let simulated = |(words, beside)| SimulatedRun {
                of,
                run: run(of, words),
                beside,
            };
            runs.map(simulated).collect::<Vec<_>>()
        });
        Ok(all.collect())
    }
}

/// Puts the options of quick runs in the place of those that are there, or behind all.
fn shorten(quick: &str, arguments: &mut Vec<String>) {
    let words: Vec<&str> = quick.split_whitespace().collect();
    for option in words.chunks(2) {
        let place = arguments.iter().position(|word| word == option[0]);
        let place = place.unwrap_or(arguments.len());
        let option = option.iter().map(|&word| word.to_owned());
        let end = arguments.len().min(place + 2);
        arguments.splice(place..end, option);
    }
}

fn cloned(names: &[&String]) -> Vec<String> {
    names.iter().map(|name| (*name).clone()).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests;
