//! Launchers that speak PMI-1: Hydra (`mpiexec` of MPICH and Intel MPI), gforker, and Slurm's pmi2 plugin.
#![allow(
    unsafe_code,
    reason = "the socket is one that the launcher left open under a number"
)]

use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use rustix::fs::FileType;

use super::{Found, Known, Launcher, Place};
use crate::environment::Environment;
use crate::error::Result;

/// The variables of a rank whose launcher has left a socket open for it.
const BY_DESCRIPTOR: [&str; 3] = ["PMI_FD", "PMI_RANK", "PMI_SIZE"];

/// The variables of a rank that connects to its launcher.
const BY_PORT: [&str; 2] = ["PMI_PORT", "PMI_ID"];

/// What a launcher of this kind is, and how to do without.
const ADVICE: &str = "a PMI-1 launcher (mpiexec of MPICH or Intel MPI, srun --mpi=pmi2) sets them all; TAGWIRE_LAUNCHER=single runs this process alone";

/// A launcher that speaks PMI-1.
#[derive(Debug)]
pub(crate) struct Pmi1;

/// A rank of such a launcher's job.
#[derive(Debug)]
pub(crate) enum OfPmi {
    Descriptor {
        descriptor: i32,
        rank: u32,
        size: u32,
    },
    Port {
        address: String,
        id: u32,
    },
}

impl Known for Pmi1 {
    fn launcher(&self) -> Launcher {
        Launcher("PMI-1")
    }

    fn choice(&self) -> &'static str {
        "pmi"
    }

    fn find(&self, environment: &Environment<'_>) -> Result<Found> {
        // Hydra sets the size beside a port, too.
        let by_port = BY_PORT.iter().any(|name| environment.has(name));
        if !environment.has("PMI_FD") && by_port {
            environment.has_all(&BY_PORT, ADVICE)?;
            let address = environment.text("PMI_PORT").unwrap_or_default();
            let id = environment.number("PMI_ID")?;
            return Ok(Found::Rank(Box::new(OfPmi::Port { address, id })));
        }
        if !environment.has_all(&BY_DESCRIPTOR, ADVICE)? {
            return Ok(Found::unset(&BY_DESCRIPTOR));
        }
        let descriptor = environment.number("PMI_FD")? as i32;
        let (rank, size) = environment.rank_of("PMI_RANK", "PMI_SIZE")?;
        Ok(Found::Rank(Box::new(OfPmi::Descriptor {
            descriptor,
            rank,
            size,
        })))
    }
}

impl Place for OfPmi {
    fn describe(&self) -> String {
        match self {
            Self::Descriptor { rank, size, .. } => format!("rank {rank} of {size}"),
            Self::Port { address, id } => format!("process {id} of the launcher at {address}"),
        }
    }
}

/// Returns the socket that a launcher has left open under a number; `None` where that is none.
pub(crate) fn inherited_socket<'a>(number: i32) -> Option<BorrowedFd<'a>> {
    if number < 0 {
        return None;
    }
    // SAFETY: callers look at the descriptor, copy it, or let the next program not have it; where it names nothing, or no
    // socket, the calls say so. Nothing of this process is closed or replaced by that.
    let inherited = unsafe { BorrowedFd::borrow_raw(number) };
    let stat = rustix::fs::fstat(inherited).ok()?;
    (FileType::from_raw_mode(stat.st_mode) == FileType::Socket).then_some(inherited)
}

/// Returns the number of the socket that an outer launcher has left open for this process, where one has.
pub(crate) fn outer_socket() -> Option<RawFd> {
    let number = std::env::var("PMI_FD").ok()?.parse().ok()?;
    // The three that every program has are the user's, whatever they are.
    inherited_socket(number)
        .map(|socket| socket.as_raw_fd())
        .filter(|number| *number > 2)
}
