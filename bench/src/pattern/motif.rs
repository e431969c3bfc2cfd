//! What the command has to know of a pattern, and its series.

use std::time::Duration;

use crate::args::granularity::{Granularity, Interface};
use crate::args::pattern::{Accounting, Mode, PatternPlan};
use crate::error::Result;

/// What the command has to know of a pattern.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Motif {
    /// Of the grid of ranks.
    pub dimensions: usize,
    /// Threads of a rank where that is not told.
    pub threads: u32,
    /// How long threads compute where that is not told, and whether caches are cold then.
    pub compute: Option<Duration>,
    /// Its series, where partitioned operations have these policies.
    pub series: fn(&PatternPlan, &[String]) -> Vec<Series>,
    /// Refuses what does not fit.
    pub check: fn(&Request) -> Result<()>,
}

/// What is asked of a pattern.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub threads: u32,
    pub sizes: Vec<u64>,
    pub pattern: PatternPlan,
}

/// One of the series of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Series {
    pub mode: Mode,
    /// Of partitioned operations.
    pub policy: Option<String>,
    pub interface: Interface,
    pub accounting: Accounting,
    /// Of cmb.
    pub granularity: Option<Granularity>,
}

/// Returns each mode with each accounting.
pub(crate) fn modes(pattern: &PatternPlan, policies: &[String]) -> Vec<Series> {
    let mut all = Vec::new();
    for &accounting in &pattern.accounting {
        for &mode in &pattern.modes {
            let with = |policy, interface| Series {
                mode,
                policy,
                interface,
                accounting,
                granularity: None,
            };
            match mode {
                Mode::Partitioned => {
                    let policies = policies.iter().cloned().map(Some);
                    all.extend(policies.map(|policy| with(policy, Interface::Partitioned)));
                }
                Mode::Rma => all.push(with(None, Interface::Rma)),
                Mode::Single | Mode::Multiple => all.push(with(None, Interface::P2p)),
            }
        }
    }
    all
}

/// Returns each granularity with each interface that has it.
pub(crate) fn granularities(plan: &PatternPlan, policies: &[String]) -> Vec<Series> {
    let mut all = Vec::new();
    for &granularity in &plan.cmb.granularity {
        let mut add = |policy, interface| {
            all.push(Series {
                mode: if granularity.is_early() {
                    Mode::Multiple
                } else {
                    Mode::Single
                },
                policy,
                interface,
                accounting: Accounting::Equal,
                granularity: Some(granularity),
            });
        };
        if !granularity.is_early() || plan.cmb.interface.contains(&Interface::P2p) {
            add(None, Interface::P2p);
        }
        if granularity.is_early() && plan.cmb.interface.contains(&Interface::Rma) {
            add(None, Interface::Rma);
        }
        // Their policy collects partitions of threads.
        let is_each = granularity == Granularity::Each;
        if is_each && plan.cmb.interface.contains(&Interface::Partitioned) {
            let policies = policies.iter().cloned().map(Some);
            policies.for_each(|policy| add(policy, Interface::Partitioned));
        }
    }
    all
}
