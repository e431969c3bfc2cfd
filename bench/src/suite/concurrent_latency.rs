//! `concurrent-latency`: all pairs play ping-pong at once (figures 7 and 8).

use serde::{Deserialize, Serialize};

use super::Description;
use crate::args::BenchArgs;
use crate::concurrent::blocks;
use crate::concurrent::ping_pong::PingPong;
use crate::error::Result;
use crate::port::partitioned::PartitionedPort;
use crate::record::Quantity;
use crate::run::{Ports, Run, Test};
use crate::units::comparison::Comparison;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ConcurrentLatency;

/// The sizes of the paper's programs.
pub(crate) const SIZES: &str = "0:256:+16,320:1K:+64";

pub(crate) const TESTS: &[Description] = &[Description {
    name: "concurrent-latency",
    about: "Latency of several processes or threads at once, mean and slowest",
    quantity: Quantity::LATENCY,
    sizes: SIZES,
    options: &["units", "start", "memory"],
    units: Some(Comparison {
        ..Comparison::PAIRS
    }),
    ..Description::PLAIN
}];

impl Test for ConcurrentLatency {
    fn of(_: &BenchArgs) -> Self {
        Self
    }

    fn measure<P: PartitionedPort>(&self, ports: Ports<'_, P>, run: &mut Run<'_>) -> Result<()> {
        let caller = |run: &Run<'_>, number: Option<u32>| {
            let (traffic, thread) = (run.traffic_of(number)?, number.unwrap_or(0));
            Ok(PingPong { traffic, thread })
        };
        blocks::measure(ports.own, run, (1_000, 100), &caller, &mut |run, sample| {
            sample.emit_times(run, 2.0)
        })
    }
}
