//! What this machine lets the transport do, for `info`.

use std::process;

use super::cma;
use super::config::ShmOptions;
use super::fixed::attaches;
use super::liveness::Liveness;
use super::memfd;
use super::room::Size;
use super::segment::{Extent, Obstacle, Segment};
use super::waiter;

/// What this machine lets the transport do. Where a field holds an error, it is the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Probe {
    /// Shared memory that goes away with its processes. Nothing works without it.
    pub shared_memory: Result<(), String>,
    /// The limit of file sizes leaves room for a match list and for shared buffers as large as the settings say by default.
    pub room: Result<(), String>,
    /// Peers can be opened through `/proc`; without it descriptors are passed.
    pub proc_descriptors: Result<(), String>,
    /// Large messages are copied once, by cross-memory attach; without it they are copied twice,
    /// through the ring.
    pub cross_attach: Result<(), String>,
    /// Sleeping ranks are woken without delay; without it they look once in a millisecond.
    pub barriers: Result<(), String>,
    /// The end of a peer is seen by a descriptor of its process.
    pub process_descriptors: Result<(), String>,
}

/// Looks what this machine lets the transport do, by trying.
#[must_use]
pub fn probe() -> Probe {
    let extent = Extent {
        size: 1,
        matches: false,
        room: Size::NONE,
        arena: 0,
    };
    let segment = Segment::create(extent).map_err(|error| format!("memfd: {error}"));
    let proc_descriptors = match &segment {
        Ok(segment) => {
            let number = segment.number().unsigned_abs();
            match Segment::open_in(process::id(), number, extent) {
                Ok(_) => Ok(()),
                Err(Obstacle::Shortage(error)) => Err(error.to_string()),
                Err(Obstacle::Other(reason)) => Err(reason),
            }
        }
        Err(reason) => Err(reason.clone()),
    };
    Probe {
        shared_memory: segment
            .and_then(|segment| {
                segment
                    .map_header()
                    .map_err(|error| format!("mmap: {error}"))
            })
            .map(|_| ()),
        room: room(memfd::limit()),
        proc_descriptors,
        cross_attach: probe_attach(),
        barriers: waiter::register_for_barriers()
            .then_some(())
            .ok_or_else(|| "membarrier is not available (old kernel or seccomp)".to_owned()),
        process_descriptors: match Liveness::watch(parent()) {
            Liveness::Descriptor(_) => Ok(()),
            _ => Err("pidfd_open is not available (old kernel or seccomp)".to_owned()),
        },
    }
}

/// Whether a limit of file sizes leaves room for all parts of a rank's memory.
fn room(limit: Option<u64>) -> Result<(), String> {
    let wanted = Extent {
        size: 2,
        matches: true,
        room: Size::NONE,
        arena: ShmOptions::default().arena as u64,
    };
    match limit {
        Some(limit) if limit < wanted.len() => Err(memfd::shortfall(wanted.len(), limit)),
        _ => Ok(()),
    }
}

/// Attaches to the own process. That other processes may still be out of reach is known from
/// Yama, and shown by the first contact with each.
fn probe_attach() -> Result<(), String> {
    attaches().map_err(|reason| format!("{reason} (a seccomp filter, perhaps)"))?;
    match cma::yama_scope() {
        Some(scope @ 2..) => Err(format!(
            "kernel.yama.ptrace_scope is {scope}: only administrators may attach"
        )),
        _ => Ok(()),
    }
}

fn parent() -> u32 {
    rustix::process::getppid().map_or(1, |pid| pid.as_raw_nonzero().get().unsigned_abs())
}
