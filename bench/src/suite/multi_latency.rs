//! `multi-latency`: pairs of ranks play ping-pong at once, as in OSU's `osu_multi_lat`.

use serde::{Deserialize, Serialize};

use super::{Description, Ranks};
use crate::args::{BenchArgs, List, check_ranks};
use crate::body::{Ahead, Body, Latency, Measured, Repeat};
use crate::error::Result;
use crate::measure::{Effort, Runner, Stage};
use crate::plan::Plan;
use crate::port::{Port, barrier};
use crate::record::Row;
use crate::run::Test;
use crate::spread::Spread;
use crate::time::nanoseconds;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct MultiLatency {
    posted: Option<u32>,
    wild: Option<u32>,
    spread: Option<Spread>,
}

pub(crate) const TESTS: &[Description] = &[Description {
    name: "multi-latency",
    about: "Pairs of ranks (i and i + n/2) play ping-pong at once: half the round trip of the mean pair",
    options: &[
        "ranks",
        "memory",
        "profile",
        "percentiles",
        "raw",
        "layers",
        "posted",
        "wild",
        "spread",
    ],
    ranks: Ranks::PAIRS,
    ..Description::PLAIN
}];

impl Test for MultiLatency {
    fn of(args: &BenchArgs) -> Self {
        Self {
            posted: args.posted.as_ref().map(List::only),
            wild: args.wild.as_ref().map(List::only),
            spread: args.spread.as_ref().map(List::only),
        }
    }

    fn check_ranks(&self, plan: &Plan, ranks: u32) -> Result<()> {
        let has_sources = self.spread == Some(Spread::Sources);
        check_ranks(plan.test, has_sources, ranks)
    }

    fn stage<'p, P: Port>(&self, plan: &Plan, port: &'p P) -> Result<Box<dyn Stage + 'p>> {
        let traffic = plan.traffic(port, 0, plan.window)?;
        let ahead = Ahead {
            count: self.posted.unwrap_or(0),
            wild: self.wild.unwrap_or(0),
            spread: self.spread.unwrap_or_default(),
        };
        let pairs = Pairs(Latency::new(traffic, ahead));
        Ok(Box::new(Runner::new(port, pairs)))
    }

    fn effort(&self, plan: &Plan) -> Effort {
        Effort::of_latency(plan)
    }

    fn label(&self, _: &Plan, row: &mut Row) {
        row.series.posted = self.posted;
        row.series.wild = self.wild;
        row.series.spread = self.spread;
    }
}

/// Ping-pong of which the mean rank's time counts.
struct Pairs<P: Port>(Latency<P>);

impl<P: Port> Body<P> for Pairs<P> {
    fn begin(&mut self, port: &P, size: usize) -> Result<()> {
        self.0.begin(port, size)
    }

    fn block(&mut self, port: &P, block: Repeat<'_>) -> Result<Measured> {
        // All pairs begin together.
        barrier(port)?;
        self.0.block(port, block)
    }

    fn time(&self, told: &[Measured]) -> u64 {
        let times = told.iter().map(|rank| nanoseconds(rank.elapsed));
        times.sum::<u64>() / (told.len() as u64).max(1)
    }

    fn end(&mut self, port: &P, size: usize) -> Result<()> {
        self.0.end(port, size)
    }
}
