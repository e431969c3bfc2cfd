//! What processes are compared with threads by.

use super::{Unit, UnitKind};
use crate::record::Row;

/// How a test compares them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Comparison {
    /// The sizes where none are named, where those are others than in the test's other form.
    pub sizes: Option<&'static str>,
    /// Sizes are multiples of it.
    pub granule: u64,
    /// The units where none are named, as the option takes them.
    pub units: &'static str,
    /// How many processes or threads a unit has whose number is not told.
    pub count: u32,
    /// How many messages an iteration has where that is not told, in a test with that option.
    pub window: u32,
    /// Options of the test's other form.
    pub lacks: &'static [&'static str],
    /// Whether units are sessions of the same processes, over our own transports.
    pub sessions: bool,
    /// Where the ranks of a unit are, with the number of `-n`; else what fits.
    pub shape: fn(Unit, Option<u32>) -> Result<Shape, &'static str>,
    /// A figure that follows from a row and from the row of the first unit, or progress, of the same launch.
    pub paired: Option<fn(&mut Row, &Row)>,
}

impl Comparison {
    /// Four pairs of neighbouring ranks, or of threads.
    pub(crate) const PAIRS: Self = Self {
        sizes: None,
        granule: 1,
        units: "processes:4,threads:4",
        count: 4,
        window: 0,
        lacks: &[],
        sessions: false,
        shape: |unit, _| Ok(Shape::pairs(unit)),
        paired: None,
    };
}

/// Where the ranks of a job are, and how many processes and threads communicate or compute in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Shape {
    /// The node of each rank: on two cores, those of a node share one.
    pub nodes: Vec<u32>,
    /// Processes or threads of all ranks together.
    pub callers: u32,
}

impl Shape {
    /// Pairs of neighbouring ranks, each with a rank on both nodes.
    pub(crate) fn pairs(unit: Unit) -> Self {
        let ranks = match unit.kind {
            UnitKind::Processes => 2 * unit.count,
            UnitKind::Threads => 2,
        };
        Self {
            nodes: (0..ranks).map(|rank| rank % 2).collect(),
            callers: 2 * unit.count,
        }
    }

    /// As many ranks as `-n` says, or `own`, each on a node of its own with `each` callers.
    pub(crate) fn of_nodes(nodes: u32, each: u32) -> Self {
        Self {
            nodes: (0..nodes).collect(),
            callers: nodes * each,
        }
    }
}
