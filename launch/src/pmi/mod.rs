//! PMI-1, the wire protocol by which Hydra (MPICH, Intel MPI), gforker, and Slurm's pmi2 plugin let ranks find each other.
//!
//! - [`client`]: requests and replies on the socket to the launcher.
//! - [`values`]: values of any length, by keys of a rank, in its key-value space.

mod client;
#[cfg(test)]
mod tests;
mod values;

pub(crate) use client::{Client, outer_socket};
