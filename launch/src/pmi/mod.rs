//! PMI-1, the wire protocol by which Hydra (MPICH, Intel MPI), gforker, and Slurm's pmi2 plugin let ranks find each other.
//!
//! - [`client`]: requests and replies on the socket that the launcher leaves open for a rank.
//! - [`bootstrap`]: the [`Bootstrap`](tagwire_base::Bootstrap) contract over it.

mod bootstrap;
mod client;
#[cfg(test)]
mod tests;

pub(crate) use bootstrap::PmiBootstrap;
pub(crate) use client::Client;

use std::ffi::OsString;

use crate::error::{Error, Result};
use crate::variables;

/// The variables that a PMI-1 launcher sets for each rank.
pub(crate) const VARIABLES: [&str; 3] = ["PMI_FD", "PMI_RANK", "PMI_SIZE"];

/// What the variables say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub descriptor: i32,
    pub rank: u32,
    pub size: u32,
}

/// Returns what the variables of a PMI-1 launcher say; `None` where none of them is set.
///
/// # Errors
/// When some of them are missing, or make no sense.
pub(crate) fn place(variable: &impl Fn(&str) -> Option<OsString>) -> Result<Option<Place>> {
    let told = "a PMI-1 launcher (mpiexec of MPICH or Intel MPI, srun --mpi=pmi2) sets them all; TAGWIRE_LAUNCHER=single runs this process alone";
    if !variables::are_set(variable, &VARIABLES, told)? {
        return Ok(None);
    }
    let number = |name: &str| {
        let value = variable(name).unwrap_or_default();
        let number = value.to_str().and_then(|text| text.parse::<u32>().ok());
        number
            .filter(|number| i32::try_from(*number).is_ok())
            .ok_or_else(|| {
                Error::Environment(format!(
                    "{name} is {value:?}, which is no number that a launcher sets"
                ))
            })
    };
    let place = Place {
        descriptor: number("PMI_FD")? as i32,
        rank: number("PMI_RANK")?,
        size: number("PMI_SIZE")?,
    };
    if place.rank >= place.size {
        let Place { rank, size, .. } = place;
        return Err(Error::Environment(format!(
            "PMI_RANK is {rank} and PMI_SIZE is {size}"
        )));
    }
    Ok(Some(place))
}
