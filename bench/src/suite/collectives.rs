//! The collectives: operations that all ranks call, one after the other.

use super::{Description, Ranks};
use crate::body::Collective;
use crate::device::measure as device;
use crate::error::{Error, Result};
use crate::measure::{Effort, Runner, Stage};
use crate::plan::Plan;
use crate::port::Port;
use crate::port::collective::{Form, Operation};
use crate::port::partitioned::PartitionedPort;
use crate::run::{Run, Test, staged};

pub(crate) struct Collectives;

/// One that has data.
const fn with_data(name: &'static str, about: &'static str, operation: Operation) -> Description {
    Description {
        name,
        about,
        options: &[
            "ranks",
            "nonblocking",
            "memory",
            "profile",
            "percentiles",
            "cache",
            "cache-bytes",
        ],
        ranks: Ranks::SEVERAL,
        sizes: "8:1M",
        collective: Some(operation),
        ..Description::PLAIN
    }
}

pub(crate) const TESTS: &[Description] = &[
    Description {
        options: &["ranks", "nonblocking", "memory", "profile", "percentiles"],
        sizes: "0",
        ..with_data(
            "barrier",
            "No rank leaves before all have come",
            Operation::Barrier,
        )
    },
    with_data("bcast", "Rank 0's bytes to all", Operation::Bcast),
    with_data(
        "reduce",
        "The sum of all ranks' doubles at rank 0",
        Operation::Reduce,
    ),
    Description {
        // Those of vectors that come from a device, too.
        options: &[
            "ranks",
            "nonblocking",
            "memory",
            "profile",
            "percentiles",
            "cache",
            "cache-bytes",
            "algorithm",
            "group-size",
            "producer",
            "engine-rate",
            "engine-latency",
            "engine-sharing",
            "flops-per-element",
            "callback",
            "copy-stream",
        ],
        rows: device::rows,
        ..with_data(
            "allreduce",
            "The sum of all ranks' doubles at all",
            Operation::Allreduce,
        )
    },
    with_data(
        "reduce-scatter",
        "A block of the sum of all ranks' doubles at each",
        Operation::ReduceScatter,
    ),
    with_data(
        "allgather",
        "Each rank's bytes to all",
        Operation::Allgather,
    ),
    with_data(
        "alltoall",
        "A block of each rank to each",
        Operation::Alltoall,
    ),
    with_data("gather", "Each rank's bytes to rank 0", Operation::Gather),
    with_data("scatter", "A block of rank 0 to each", Operation::Scatter),
];

impl Test for Collectives {
    fn stage<'p, P: Port>(plan: &Plan, port: &'p P) -> Result<Box<dyn Stage + 'p>> {
        let missing = || Error::Usage(format!("{} is no collective", plan.test));
        let operation = plan.test.collective.ok_or_else(missing)?;
        let largest = plan.largest()?;
        let memory = |len| plan.buffers(port, len);
        let form = match plan.nonblocking {
            true => Form::Nonblocking,
            false => Form::Blocking,
        };
        let collectives = port.collectives(form)?;
        let fresh = plan
            .fresh
            .map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        let seed = plan.checked();
        let body = Collective::new(port, collectives, operation, largest, fresh, seed, memory)?;
        Ok(Box::new(Runner::new(port, body)))
    }

    fn effort(plan: &Plan) -> Effort {
        Effort::of(plan, (1_000, 100), (100, 10))
    }

    fn measure<P: PartitionedPort + Sync>(run: &mut Run<'_, P>) -> Result<()> {
        let (port, plan) = (run.port, run.plan());
        if plan.device.is_some() {
            return device::measure(run);
        }
        let stage = Self::stage(plan, port)?;
        staged::measure::<Self, P>(run, vec![(plan.layers[0], stage)])
    }
}
