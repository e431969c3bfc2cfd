//! Tagwire's benchmark suite: what `tagwire bench` and `tagwire compare` do.

use std::collections::BTreeMap;

use tagwire_base::Config;

mod args;
mod arrivals;
mod binding;
mod body;
mod buffer;
mod compare;
mod concurrent;
mod device;
mod document;
mod drive;
mod environment;
mod error;
mod jobs;
mod joined;
mod judgement;
mod kernels;
mod leader;
pub mod line_transfer;
mod link;
mod load;
mod machines;
mod measure;
mod mpi;
pub mod naming;
mod noise;
pub mod number;
mod pattern;
mod plan;
mod port;
mod position;
mod profile;
mod rank;
mod record;
mod report;
mod run;
mod simulated;
mod sizes;
mod spread;
mod stats;
mod suite;
mod time;
mod tool;
mod tune;
mod units;
pub mod visible;
mod warnings;

pub use args::{BenchArgs, Format, Percentiles, Side, SideChoice, Tool, TransportChoice};
pub use compare::{CompareArgs, CompareFormat, Threshold, run_compare};
pub use document::{document, document_of};
pub use drive::{command_line, quoted, run};
pub use environment::{Difference, Environment, Here, Used, differences, is_foreign};
pub use error::{Error, ExitStatus, Mismatch, Result};
pub use judgement::{
    Change, Launches, NOTABLE, Sense, Verdict, is_row_disturbed, is_variable, unmeasured,
};
pub use load::RankLoad;
pub use mpi::MpiLibrary;
pub use position::Position;
pub use profile::{Call, Messages, Profile};
pub use rank::Loops;
pub use record::{Figures, Quantity, Row, SCHEMA};
pub use report::file::ResultsFile;
pub use report::{Report, main_quantity, quantity_of_row};
pub use simulated::{
    Helper, Leaves, PatternCarrier, PatternEdge, PatternEdges, PatternRegion, PatternScript,
    PatternStep, ProfiledRank, Reduced, Simulated, SimulatedCallers, SimulatedCase,
    SimulatedExchange, SimulatedNeighbours, SimulatedPair, SimulatedPattern, SimulatedProfile,
    SimulatedReduction, Timed, results,
};
pub use sizes::{Sizes, SizesError};
pub use spread::Spread;
pub use stats::Summary;
pub use suite::{Description, TestName};
pub use tune::{TuneArgs, Tuned, run_tune};
pub use units::{Unit, UnitKind, Units};
pub use warnings::Warning;

/// Environment variables that `tagwire bench` sets for its ranks. They are no settings: whoever
/// refuses unknown `TAGWIRE_` variables lets these pass.
pub const VARIABLES: [&str; 1] = [plan::VARIABLE];

/// The program that runs the benchmarks, as far as they need to know it.
#[derive(Debug, Clone)]
pub struct Host {
    /// Its version.
    pub version: String,
    /// The commit that it was built from.
    pub commit: String,
    /// The profile that it was built in: `debug`, `release`, `dist`.
    pub profile: String,
    /// The configuration: flags over environment over defaults.
    pub config: Config,
    /// What ranks do, as a crate compiles it that is optimised.
    pub loops: Loops,
    /// How the engines of the command were checked, by their names.
    pub checked: BTreeMap<String, String>,
}

impl Host {
    /// Adds how its engine was checked to a row.
    pub(crate) fn mark(&self, row: &mut Row) {
        let engine = row.series.engine.as_ref();
        row.checked = engine.and_then(|engine| self.checked.get(engine)).cloned();
    }
}
