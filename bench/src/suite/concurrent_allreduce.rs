//! `concurrent-allreduce`: callers of one process, or of as many, call allreduces at once, each with those of its number on
//! the other nodes (figure 13).

use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Description;
use crate::args::BenchArgs;
use crate::concurrent::blocks;
use crate::concurrent::maximum::Maximum;
use crate::concurrent::work::Caller;
use crate::error::Result;
use crate::port::Port;
use crate::port::group::{Divide, Group};
use crate::port::null::NullGroup;
use crate::port::partitioned::PartitionedPort;
use crate::record::Quantity;
use crate::run::{Ports, Run, Test};
use crate::time::time_of;
use crate::units::comparison::{Comparison, Shape};
use crate::units::{Unit, UnitKind};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ConcurrentAllreduce;

pub(crate) const TESTS: &[Description] = &[Description {
    name: "concurrent-allreduce",
    about: "Allreduces of several processes or threads at once, each in a group of its own",
    quantity: Quantity::LATENCY,
    sizes: "2K",
    options: &["units", "ranks", "start"],
    units: Some(Comparison {
        granule: 4,
        shape,
        ..Comparison::PAIRS
    }),
    ..Description::PLAIN
}];

impl Test for ConcurrentAllreduce {
    fn of(_: &BenchArgs) -> Self {
        Self
    }

    fn measure<P: PartitionedPort>(&self, ports: Ports<'_, P>, run: &mut Run<'_>) -> Result<()> {
        let (largest, unit) = (run.plan().largest()?, run.unit());
        let (rank, ranks) = (run.port.rank().as_u32(), run.port.size());
        let members: Vec<u32> = match unit.kind {
            UnitKind::Threads => (0..ranks).collect(),
            UnitKind::Processes => (rank % unit.count..ranks)
                .step_by(unit.count as usize)
                .collect(),
        };
        let checked = run.seed().map(|_| members);
        let divide = match unit.kind {
            UnitKind::Threads => Divide::All,
            UnitKind::Processes => Divide::Color(rank % unit.count),
        };
        let port = run.port;
        let caller = |_: &Run<'_>, number: Option<u32>| {
            let group: Box<dyn Group + '_> = match number {
                Some(_) => port.group(divide)?,
                None => Box::new(NullGroup),
            };
            let checked = checked.clone().filter(|_| number.is_some());
            Maximum::new(group, largest, rank, checked).map(Calls)
        };
        blocks::measure(ports.own, run, (50, 10), &caller, &mut |run, sample| {
            sample.emit_times(run, 1.0)
        })
    }
}

/// On each node, `-n` of them, as many processes as the unit has, or one with its threads.
fn shape(unit: Unit, nodes: Option<u32>) -> Result<Shape, &'static str> {
    let nodes = nodes.unwrap_or(2);
    if nodes < 2 {
        return Err("it needs at least 2 nodes (option -n)");
    }
    Ok(match unit.kind {
        UnitKind::Threads => Shape::of_nodes(nodes, unit.count),
        UnitKind::Processes => Shape {
            nodes: (0..nodes * unit.count)
                .map(|rank| rank / unit.count)
                .collect(),
            callers: nodes * unit.count,
        },
    })
}

/// One iteration is one allreduce.
struct Calls<'g>(Maximum<'g>);

impl<P: Port> Caller<P> for Calls<'_> {
    fn block(&mut self, _: &P, size: usize, count: u64) -> Result<Option<Duration>> {
        time_of(|| (0..count).try_for_each(|_| self.0.call(size))).map(Some)
    }
}
