//! PMI-1, the wire protocol by which Hydra (MPICH, Intel MPI), gforker, and Slurm's pmi2 plugin let ranks find each other.
//!
//! - [`client`]: requests and replies on the socket to the launcher.
//! - [`values`]: values of any length, by keys of a rank, in its key-value space.

mod client;
#[cfg(test)]
mod tests;
mod values;

use tagwire_base::{Bootstrap, Rank};

use crate::error::Result;
use crate::key_values::KeyValueBootstrap;
use crate::launchers::{Join, OfPmi};
use client::Client;

impl Join for OfPmi {
    fn join(&self) -> Result<Box<dyn Bootstrap>> {
        let (client, rank, size) = match self {
            Self::Descriptor {
                descriptor,
                rank,
                size,
            } => (Client::open(*descriptor)?, *rank, *size),
            Self::Port { address, id } => Client::connect(address, *id)?,
        };
        let rank = Rank::new(rank);
        Ok(Box::new(KeyValueBootstrap::join(client, rank, size)?))
    }
}
