//! What a channel knows of the process at its other end.

use tagwire_base::Clock;

use crate::shm::cma::Attach;
use crate::shm::identity::Identity;
use crate::shm::liveness::Liveness;
use crate::shm::segment::HeaderMap;
use crate::shm::sighting::Sighting;
use crate::shm::waiter;

/// The process at the other end, for any thread: a peer's own entry is its rank's.
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

    /// Wakes the process, if it sleeps, after something was written for it.
    #[inline]
    pub(super) fn wake(&self) {
        waiter::wake_sleeper(&self.header);
    }
}
