//! `thread-cost`: the ping-pong of one thread at level single and at level multiple (figures 2 and 3).
//!
//! Over our own transports both levels are sessions of the same processes, whose blocks alternate. A foreign library has one
//! level for a process: its levels are jobs of their own.

use serde::{Deserialize, Serialize};

use super::Description;
use super::concurrent_latency::SIZES;
use crate::args::BenchArgs;
use crate::body::{Ahead, Body, Latency, Repeat, Traffic};
use crate::error::Result;
use crate::measure::{Effort, Runner, Sample, Stage, measure};
use crate::port::null::NullPort;
use crate::port::partitioned::PartitionedPort;
use crate::record::Quantity;
use crate::run::{Ports, Run, Test};
use crate::time::{least, nanoseconds};
use crate::units::Unit;
use crate::units::comparison::{Comparison, Shape};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ThreadCost;

pub(crate) const TESTS: &[Description] = &[Description {
    name: "thread-cost",
    about: "What full thread safety adds to the latency of one thread",
    sizes: SIZES,
    options: &["units", "memory"],
    units: Some(Comparison {
        units: "processes:1,threads:1",
        count: 1,
        sessions: true,
        shape: |unit, _| match unit.count {
            1 => Ok(Shape::pairs(unit)),
            _ => Err("it compares levels of one thread, processes:1 and threads:1"),
        },
        paired: Some(|row, base| {
            let latency = |key: &str| Some((row.figures.named(key)?, base.figures.named(key)?));
            if let Some((multiple, single)) = latency("latency_us") {
                row.figures
                    .set(Quantity::THREAD_COST.key(), multiple - single);
            }
        }),
        ..Comparison::PAIRS
    }),
    ..Description::PLAIN
}];

impl Test for ThreadCost {
    fn of(_: &BenchArgs) -> Self {
        Self
    }

    fn measure<P: PartitionedPort>(&self, ports: Ports<'_, P>, run: &mut Run<'_>) -> Result<()> {
        let single = ports.single;
        let (largest, seed, sizes) = (run.plan().largest()?, run.seed(), run.sizes()?);
        let mut stages: Vec<Box<dyn Stage + '_>> = Vec::new();
        let mut units = Vec::new();
        if let Some(single) = single {
            let body = Latency::new(run.traffic(0, largest, seed)?, Ahead::default());
            stages.push(Box::new(Runner::new(single, body)));
            units.push(Unit::processes(1));
        }
        let body = Latency::new(run.traffic(0, largest, seed)?, Ahead::default());
        stages.push(Box::new(Runner::new(ports.own, body)));
        units.push(run.unit());
        let port = run.port;
        let null = NullPort::of(port);
        let effort = Effort {
            percentiles: None,
            ..Effort::of_latency(run.plan())
        };
        let mut emit = |samples: Vec<Sample>| {
            for sample in samples {
                let harness = harness(&null, run.traffic(0, sample.size, None)?, sample.size)?;
                let mut row = run.row_at(run.plan().layers[0], sample.size);
                row.series.unit = Some(units[sample.stage].to_string());
                row.sampling.set(sample.iterations, sample.repetitions);
                row.figures = sample.latency();
                sample.load.add_to_row(&mut row);
                row.figures.set("harness_us", harness / 1e3);
                run.emit(row)?;
            }
            Ok(())
        };
        measure(port, stages, &sizes, &effort, &mut emit)
    }
}

/// The time of a unit where nothing is carried, in nanoseconds.
fn harness(port: &NullPort, traffic: Traffic, size: usize) -> Result<f64> {
    let mut body = Latency::new(traffic, Ahead::default());
    least(5, || {
        let measured = body.block(port, Repeat::untimed(size, 1_000))?;
        Ok(nanoseconds(measured.elapsed) as f64 / measured.units as f64)
    })
}
