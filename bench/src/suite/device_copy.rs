//! `device-copy`: a vector from a device to its host, as one copy and in pieces.

use serde::{Deserialize, Serialize};

use super::{Description, Ranks};
use crate::args::device::{DevicePlan, SIZES};
use crate::args::{BenchArgs, check_ranks};
use crate::device::measure::{measure, rows};
use crate::error::Result;
use crate::plan::Plan;
use crate::port::partitioned::PartitionedPort;
use crate::record::Quantity;
use crate::run::{Ports, Run, Test};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct DeviceCopy(DevicePlan);

pub(crate) const TESTS: &[Description] = &[Description {
    name: "device-copy",
    about: "A vector from a device to its host, as one copy and in pieces",
    quantity: Quantity::COPY,
    options: &[
        "ranks",
        "partitions",
        "producer",
        "engine-rate",
        "engine-latency",
        "engine-sharing",
    ],
    ranks: Ranks::ANY,
    sizes: SIZES,
    rows,
    ..Description::PLAIN
}];

impl Test for DeviceCopy {
    fn of(args: &BenchArgs) -> Self {
        Self(args.device_plan().expect("a vector of a device"))
    }

    fn any_thread(&self) -> bool {
        self.0.any_thread()
    }

    fn check_ranks(&self, plan: &Plan, ranks: u32) -> Result<()> {
        self.0.group_among(ranks)?;
        check_ranks(plan.test, false, ranks)
    }

    fn measure<P: PartitionedPort>(&self, _: Ports<'_, P>, run: &mut Run<'_>) -> Result<()> {
        measure(run, &self.0)
    }
}
