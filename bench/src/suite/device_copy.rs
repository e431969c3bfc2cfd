//! `device-copy`: a vector from a device to its host, as one copy and in pieces.

use super::{Description, Ranks};
use crate::args::device::SIZES;
use crate::device::measure::{measure, rows};
use crate::error::Result;
use crate::port::partitioned::PartitionedPort;
use crate::record::Quantity;
use crate::run::{Ports, Run, Test};

pub(crate) struct DeviceCopy;

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
    fn measure<P: PartitionedPort + Sync>(_: Ports<'_, P>, run: &mut Run<'_>) -> Result<()> {
        measure(run)
    }
}
