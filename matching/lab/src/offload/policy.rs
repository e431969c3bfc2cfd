//! Which entries hardware has.

use tagwire_matching::offload::{self, Offload, OffloadCounts, Refill};
use tagwire_matching::storage::Local;
use tagwire_matching::{Capacity, Engine, EngineName};

use super::ucx::{Kept, Receives, Rules};
use crate::replay::Entries;
use crate::trace::Call;

/// The name of the policy that goes by UCX's rules.
pub(super) const UCX: &str = "ucx";

/// What hardware has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Policy {
    /// The oldest entries of both queues.
    Oldest(Refill),
    /// The receives that UCX posts to it.
    Ucx {
        /// Bytes, as in [`Rules`].
        threshold: u64,
        force: u64,
    },
}

/// Hardware of so many entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) receives: u32,
    pub(super) messages: u32,
    pub(super) policy: Policy,
}

/// Hardware with the software behind it, for the calls of one rank.
pub(super) enum Adapter {
    Oldest(Offload<dyn Engine + Send>, Entries),
    Ucx(Receives),
}

impl Policy {
    /// UCX's rules with each of these thresholds, or its own.
    pub(super) fn of_ucx(thresholds: &[u64], force: Option<u64>) -> Vec<Self> {
        let thresholds = match thresholds {
            [] => &[1 << 10],
            chosen => chosen,
        };
        let of = |&threshold: &u64| Self::Ucx {
            threshold,
            force: force.unwrap_or(8 << 10),
        };
        thresholds.iter().map(of).collect()
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Oldest(refill) => refill.name(),
            Self::Ucx { .. } => UCX,
        }
    }

    /// Both thresholds of UCX's rules.
    pub(super) const fn bytes(self) -> Option<(u64, u64)> {
        match self {
            Self::Oldest(_) => None,
            Self::Ucx { threshold, force } => Some((threshold, force)),
        }
    }
}

impl Adapter {
    pub(super) fn new(shape: Shape, capacity: Capacity, engine: &EngineName) -> Self {
        let software = engine.open_over::<Local>(capacity);
        let Shape {
            receives, messages, ..
        } = shape;
        match shape.policy {
            Policy::Oldest(refill) => {
                let shape = offload::Shape {
                    receives,
                    messages,
                    refill,
                };
                let offload = Offload::new(shape, capacity, software);
                Self::Oldest(offload, Entries::default())
            }
            Policy::Ucx { threshold, force } => {
                let rules = Rules {
                    entries: receives,
                    threshold,
                    force,
                };
                Self::Ucx(Receives::new(rules, capacity, software))
            }
        }
    }

    /// Does a call; `sizes` has the bytes of receives by number.
    pub(super) fn call(&mut self, call: &Call, sizes: &[u64]) {
        match self {
            Self::Oldest(offload, entries) => entries.call(offload, call),
            Self::Ucx(receives) => {
                receives.call(call, sizes);
            }
        }
    }

    /// What the queue of receives has seen, and that of messages.
    pub(super) fn counts(&self) -> [OffloadCounts; 2] {
        match self {
            Self::Oldest(offload, _) => offload.counts(),
            Self::Ucx(receives) => receives.counts(),
        }
    }

    /// What UCX's rules kept in software.
    pub(super) fn kept(&self) -> Kept {
        match self {
            Self::Oldest(..) => Kept::default(),
            Self::Ucx(receives) => receives.kept,
        }
    }
}
