//! The tests whose vectors come from a device: `allreduce` with `--algorithm`, and `device-copy`.
//!
//! Each rank has a device, which takes a vector, computes, and copies the result back, whole or by partitions. The rank reduces it
//! after that, or partition by partition meanwhile. `docs/benchmarking.md` has the definitions.

use crate::args::TestName;
use crate::args::device::{DeviceArgs, DevicePlan};
use crate::args::partitioned::PartitionedArgs;
use crate::error::{Error, Result};

mod copy;
mod engine;
pub(crate) mod measure;
mod parts;
mod reduce;
#[cfg(test)]
mod tests;

pub(crate) use self::parts::largest_group;

/// The sizes where none are named, as the option takes them: those of the paper.
pub(crate) const SIZES: &str = "40:47M";

/// Options that `device-copy` does not have.
const NOT_OF_COPIES: [&str; 14] = [
    "window",
    "threads",
    "posted",
    "unexpected",
    "seconds",
    "side",
    "nonblocking",
    "memory",
    "profile",
    "percentiles",
    "raw",
    "layers",
    "cache",
    "cache-bytes",
];

/// Returns whether a test has an option; `None` where that is no affair of devices.
pub(crate) fn has_option(test: TestName, name: &str) -> Option<bool> {
    DeviceArgs::has_option(test, name).or_else(|| {
        let is_own = test == TestName::DeviceCopy;
        let is_of_partitions = PartitionedArgs::has_option(name);
        let is_known = NOT_OF_COPIES.contains(&name) || is_of_partitions;
        (is_own && is_known).then(|| name == "partitions")
    })
}

/// Returns how many ranks a group has among so many.
///
/// # Errors
/// Where a group size that was asked for does not divide them.
pub(crate) fn group_size(plan: &DevicePlan, ranks: u32) -> Result<u32> {
    let size = plan.group_size.unwrap_or_else(|| largest_group(ranks));
    if ranks.is_multiple_of(size) {
        return Ok(size);
    }
    let fitting = (1..=ranks).filter(|size| ranks.is_multiple_of(*size));
    let fitting: Vec<String> = fitting.map(|size| size.to_string()).collect();
    Err(Error::Usage(format!(
        "--group-size {size} does not divide {ranks} ranks: it is one of {}",
        fitting.join(", ")
    )))
}
