//! What channels and boards know of a peer's process.
#![allow(unsafe_code)]

use std::ops::Range;

use tagwire_base::Clock;

use super::cma::{self, Attach};
use super::identity::Identity;
use super::liveness::Liveness;
use super::segment::HeaderMap;
use super::sighting::Sighting;
use super::waiter;
#[cfg(feature = "coll")]
use crate::board::MemberMemory;
use crate::data::WriteRegion;

/// The process of a peer, for any thread: a peer's own entry is its rank's.
pub(super) struct Partner {
    identity: Identity,
    header: HeaderMap,
    liveness: Liveness,
    /// By which this process can attach to it.
    pid: Option<u32>,
    sighting: Sighting,
}

impl Partner {
    /// The process of `identity`, if it is there.
    pub(super) fn new(
        identity: Identity,
        header: HeaderMap,
        pid: Option<u32>,
        clock: Clock,
    ) -> Option<Self> {
        let partner = Self {
            liveness: Liveness::watch(identity.pid),
            identity,
            header,
            pid,
            sighting: Sighting::new(clock),
        };
        // The watch began with a number: whose that is shows now.
        (pid.is_none() || partner.has_nonce()).then_some(partner)
    }

    /// The number to attach by, where that is allowed.
    pub(super) const fn pid(&self) -> Option<u32> {
        self.pid
    }

    /// The number of the process.
    pub(super) const fn process(&self) -> u32 {
        self.identity.pid
    }

    /// Whether the process has ended: nothing of it touches memory any more.
    pub(super) fn is_over(&self) -> bool {
        self.liveness.is_over()
    }

    /// Whether the number is still that of the process.
    pub(super) fn is_still(&self) -> bool {
        self.sighting.is_still(&self.liveness, || self.has_nonce())
    }

    fn has_nonce(&self) -> bool {
        let Identity {
            pid,
            nonce_address,
            nonce,
            ..
        } = self.identity;
        Attach::test(pid, nonce_address, nonce) == Attach::Usable(pid)
    }

    /// Copies from `address` of the process into the part `range` of `to`. Returns whether all of it was read.
    ///
    /// # Safety
    /// `to` is lent for writing.
    pub(super) unsafe fn read(&self, address: u64, to: WriteRegion, range: Range<usize>) -> bool {
        let Some(pid) = self.pid else { return false };
        // SAFETY: the caller says so.
        let read = |range| unsafe { cma::read(pid, address, to, range) };
        // What was read of another process does not count.
        range.is_empty() || read(range).is_ok() && self.is_still()
    }

    /// Wakes the process, if it sleeps, after something was written for it.
    #[inline]
    pub(super) fn wake(&self) {
        waiter::wake_sleeper(&self.header);
    }
}

#[cfg(feature = "coll")]
impl MemberMemory for Partner {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        let (to, len) = (WriteRegion::of(into), into.len());
        // SAFETY: the slice is borrowed until this call returns.
        unsafe { Self::read(self, address, to, 0..len) }
    }
}
