//! The tests whose vectors come from a device: `allreduce` with `--algorithm`, and `device-copy`.
//!
//! Each rank has a device, which takes a vector, computes, and copies the result back, whole or by partitions. The rank reduces it
//! after that, or partition by partition meanwhile. `docs/benchmarking.md` has the definitions.

mod copy;
mod engine;
pub(crate) mod measure;
pub(crate) mod parts;
mod reduce;
mod sharing;
#[cfg(test)]
mod tests;
