//! `concurrent-latency`: all pairs play ping-pong at once (figures 7 and 8).

use super::Description;
use crate::concurrent::blocks::{self, Sample};
use crate::concurrent::ping_pong::PingPong;
use crate::error::Result;
use crate::port::Port;
use crate::port::partitioned::PartitionedPort;
use crate::record::Quantity;
use crate::run::{Run, Test};
use crate::stats::Summary;
use crate::units::comparison::Comparison;

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
    fn measure<P: PartitionedPort + Sync>(run: &mut Run<'_, P>) -> Result<()> {
        let caller = |run: &Run<'_, P>, number: Option<u32>| {
            let (traffic, thread) = (run.traffic_of(number)?, number.unwrap_or(0));
            Ok(PingPong { traffic, thread })
        };
        blocks::measure(run, (1_000, 100), caller, &mut emit)
    }
}

/// Half a round trip, of the mean caller and of the slowest.
fn emit<P: Port>(run: &mut Run<'_, P>, sample: Sample) -> Result<()> {
    let mut row = sample.row(run);
    let half = |time: Summary| time.times(0.5e-3);
    row.figures
        .set_summary(Quantity::LATENCY, half(sample.mean));
    row.figures
        .set_summary(Quantity::SLOWEST, half(sample.slowest));
    sample.add_to(&mut row.figures, 2.0);
    run.emit(row)
}
