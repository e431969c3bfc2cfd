//! The measured figures and tables, and the runs behind them.

use std::sync::LazyLock;

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::predicate::Predicate;
use crate::published::{Drawn, PublishedPoint, points};
use crate::rows::{is_peer, tool};
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
    /// The sizes in place of those of a run with `--quick`.
    quick_sizes: Option<String>,
    /// Options of each run with `--quick`, in place of its own.
    #[serde(default)]
    quick: String,
    /// The arguments of `tagwire bench`.
    #[serde(default)]
    runs: Vec<String>,
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
    /// What was published.
    pub published: String,
    /// Why it may fail here.
    pub reason: Option<String>,
    /// When it holds.
    #[serde(flatten)]
    pub(crate) predicate: Predicate,
}

/// A run of `tagwire bench`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// Its arguments, but for the file of the results.
    pub arguments: Vec<String>,
    /// Environment variables that it is run with.
    pub environment: &'static [(&'static str, &'static str)],
    /// Of which of the item's turns it is.
    pub turn: Option<usize>,
    /// Whether it is measured with each of several builds.
    pub is_own: bool,
}

/// What makes MPI libraries use TCP between processes of one host, each by variables of its own.
pub(crate) const OVER_TCP: &[(&str, &str)] = &[
    ("MPIR_CVAR_NOLOCAL", "1"),
    ("UCX_TLS", "tcp,self"),
    ("OMPI_MCA_pml", "ob1"),
    ("OMPI_MCA_btl", "tcp,self"),
    ("I_MPI_FABRICS", "ofi"),
    ("I_MPI_OFI_PROVIDER", "tcp"),
    ("TAGWIRE_TRANSPORT", "ofi:tcp"),
];

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

/// Returns the item with a name, or all of a paper by the part before the slash.
///
/// # Errors
/// [`Error::NoItem`].
pub fn find(name: &str) -> Result<Vec<&'static Item>> {
    let is_meant = |item: &&Item| item.name == name || item.paper() == name;
    let found: Vec<_> = all().iter().filter(is_meant).collect();
    match found.is_empty() {
        true => Err(Error::NoItem(name.to_owned())),
        false => Ok(found),
    }
}

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

    /// Returns the runs on some transports, of which those that begin with `mpi` are MPI libraries. Files that one run leaves to
    /// another lie in a folder.
    #[must_use]
    pub fn runs(&self, transports: &[String], folder: &str, quick: bool) -> Vec<Run> {
        let in_bench = transports.iter().filter(|name| tool(name).is_none());
        let (peers, own): (Vec<_>, Vec<_>) = in_bench.cloned().partition(|name| is_peer(name));
        let is_shared = |name: &&String| name.starts_with("shm") || *name == "auto";
        let (shared, network): (Vec<_>, Vec<_>) = own.iter().partition(is_shared);
        let (shared, network) = (cloned(&shared), cloned(&network));
        let launches = if quick { "3" } else { "5" };
        let runs = self.runs.iter().filter_map(|run| {
            let (names, environment) = match run {
                run if run.contains("{peers-tcp}") => (&peers, OVER_TCP),
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
                    "{own}" | "{peers}" | "{peers-tcp}" | "{shm}" | "{network}" => names.clone(),
                    _ => word.replace("{folder}", folder),
                })
                .collect();
            let sizes = arguments.iter().position(|word| word == "-m");
            if let (Some(place), Some(sizes), true) = (sizes, &self.quick_sizes, quick) {
                arguments[place + 1].clone_from(sizes);
            }
            if quick {
                self.shorten(&mut arguments);
            }
            arguments.extend(["--launches".to_owned(), launches.to_owned()]);
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
                self.shorten(&mut run.arguments);
            }
            run
        });
        runs.chain(turns).collect()
    }

    /// Puts the options of quick runs in the place of those that are there, or behind all.
    fn shorten(&self, arguments: &mut Vec<String>) {
        let words: Vec<&str> = self.quick.split_whitespace().collect();
        for option in words.chunks(2) {
            let place = arguments.iter().position(|word| word == option[0]);
            let place = place.unwrap_or(arguments.len());
            let option = option.iter().map(|&word| word.to_owned());
            let end = arguments.len().min(place + 2);
            arguments.splice(place..end, option);
        }
    }
}

fn cloned(names: &[&String]) -> Vec<String> {
    names.iter().map(|name| (*name).clone()).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use super::*;

    #[test]
    fn every_measured_figure_is_there_once() {
        let mut names: Vec<_> = all().iter().map(|item| &item.name).collect();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all().len());
        let of_papers = || all().iter().filter(|item| !item.has_tables());
        assert_eq!(of_papers().count(), 39);
        for item in of_papers() {
            let is_real = item.needs == Needs::Real;
            assert_eq!(is_real, item.why.is_none(), "{}", item.name);
            assert_eq!(is_real, !item.runs.is_empty(), "{}", item.name);
            assert_eq!(is_real, !item.claims.is_empty(), "{}", item.name);
            let has_reasons = item.claims.iter().all(|claim| claim.reason.is_some());
            assert!(has_reasons, "{}: what fails is explained", item.name);
        }
    }

    #[test]
    fn runs_have_the_transports_and_quick_sizes() {
        let item = find("mtl/fig4").unwrap()[0];
        let transports = ["shm".to_owned(), "mpi:/opt".to_owned()];
        let runs = item.runs(&transports, "out", true);
        assert_eq!(runs.len(), 3);
        let words = runs[2].arguments.join(" ");
        assert_eq!(words, "message-rate -m 1:8K -W 64 -t mpi:/opt --launches 3");
        assert_eq!(item.runs(&transports[..1], "out", false).len(), 2);
        let latency = find("mtl/fig2a").unwrap()[0].runs(&transports, "out", false);
        assert!(latency[0].arguments.contains(&"0,netpipe:8M".to_owned()));
        assert_eq!(find("mtl").unwrap().len(), 7);
        let bandwidth = find("threads/fig6").unwrap()[0];
        let quick = bandwidth.runs(&transports, "out", true);
        let words = quick[0].arguments.join(" ");
        let units = "--units processes:4,threads:4";
        let line = format!("concurrent-bandwidth -m 8M {units} -t shm -i 5 --launches 3");
        assert_eq!(words, line);
        // No network among the transports; peers are told to use one.
        let network = find("threads/fig5").unwrap()[0].runs(&transports, "out", false);
        assert_eq!(network.len(), 1);
        assert!(
            network[0]
                .environment
                .contains(&("OMPI_MCA_btl", "tcp,self"))
        );
        // What one run records another reads.
        let arrivals = find("cmb/fig7").unwrap()[0].runs(&transports[..1], "out", false);
        let with = |option: &str| {
            let has = |run: &&Run| run.arguments.iter().any(|word| word == option);
            arrivals.iter().position(|run| has(&run))
        };
        assert!(with("--record").unwrap() < with("kde:out/spmv.csv").unwrap());
        assert!(with("out/spmv.csv").is_some());
        assert!(matches!(find("mtl/fig9"), Err(Error::NoItem(_))));
    }
}
