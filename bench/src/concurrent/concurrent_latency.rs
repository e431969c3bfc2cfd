//! `concurrent-latency`: all pairs play ping-pong at once (figures 7 and 8).

use super::blocks::{self, Sample};
use super::ping_pong::PingPong;
use super::run::Run;
use super::{Description, Shape, Test};
use crate::args::TestName;
use crate::error::Result;
use crate::port::Port;
use crate::record::Quantity;

pub(super) struct ConcurrentLatency;

/// The sizes of the paper's programs.
pub(super) const SIZES: &str = "0:256:+16,320:1K:+64";

impl Test for ConcurrentLatency {
    const DESCRIPTION: Description = Description {
        test: TestName::ConcurrentLatency,
        quantity: Quantity::LATENCY,
        sizes: SIZES,
        granule: 1,
        units: "processes:4,threads:4",
        count: 4,
        window: 0,
        options: &["units", "start", "memory"],
        sessions: false,
        shape: |unit, _| Ok(Shape::pairs(unit)),
        paired: None,
    };

    fn measure<P: Port + Sync>(run: &mut Run<'_, P>, _: Option<&P>) -> Result<()> {
        let largest = run.plan().largest()?;
        let seed = run.seed();
        let caller = |run: &mut Run<'_, P>, thread, seed| {
            let traffic = run.traffic(thread, largest, seed)?;
            Ok(PingPong { traffic, thread })
        };
        blocks::measure(
            run,
            (1_000, 100),
            |run, thread| caller(run, thread, seed),
            |run| caller(run, 0, None),
            &mut emit,
        )
    }
}

/// Half a round trip, of the mean caller and of the slowest.
fn emit<P: Port>(run: &mut Run<'_, P>, sample: Sample) -> Result<()> {
    let mut row = run.row_of(&sample);
    let half = |time| sample.scaled(time, 0.5e-3);
    row.figures.set_summary(Quantity::LATENCY, half(sample.mean));
    row.figures.set_summary(Quantity::SLOWEST, half(sample.slowest));
    sample.add_to(&mut row.figures, 2.0);
    run.emit(row)
}
