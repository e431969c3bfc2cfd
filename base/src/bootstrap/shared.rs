//! A bootstrap that several parts of one rank hold: the layer that fetches addresses, and a
//! transport that asks for a descriptor on first contact.

use std::borrow::Cow;
use std::fmt;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Attribute, Bootstrap, JobSecret, Locality, MemberEvent};
use crate::clock::Clock;
use crate::error::Result;
use crate::ids::Rank;

/// How long an abort may take: another thread may have the lock, and a launcher may be stuck.
const ABORT_DEADLINE: Duration = Duration::from_secs(5);

/// A [`Bootstrap`] behind a lock. Cloning names the same one again.
#[derive(Clone)]
pub struct SharedBootstrap {
    /// In front of every key.
    scope: &'static str,
    inner: Arc<Mutex<Box<dyn Bootstrap>>>,
    secret: JobSecret,
    rank: Rank,
    size: u32,
    locality: Locality,
    clock: Clock,
    reports_ends: bool,
}

impl SharedBootstrap {
    /// Shares `bootstrap`.
    #[must_use]
    pub fn new(bootstrap: Box<dyn Bootstrap>) -> Self {
        Self {
            scope: "",
            secret: bootstrap.secret().clone(),
            rank: bootstrap.rank(),
            size: bootstrap.size(),
            locality: bootstrap.locality(),
            clock: bootstrap.clock(),
            reports_ends: bootstrap.reports_ends(),
            inner: Arc::new(Mutex::new(bootstrap)),
        }
    }

    /// The same job, with keys of its own: for a second rank's worth of what publishes itself in one process.
    /// Each scope once: they do not nest.
    #[must_use]
    pub fn scoped(&self, scope: &'static str) -> Self {
        Self {
            scope,
            ..self.clone()
        }
    }

    fn key<'k>(&self, key: &'k str) -> Cow<'k, str> {
        match self.scope {
            "" => Cow::Borrowed(key),
            scope => Cow::Owned(format!("{scope}/{key}")),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Box<dyn Bootstrap>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks the launcher to end the job; returns after `limit` though it has not been asked.
    fn abort_within(&self, status: i32, limit: Duration) {
        let (sender, asked) = channel();
        let this = self.clone();
        let ask = move || {
            this.inner().abort(status);
            // The caller may have gone on.
            let _ = sender.send(());
        };
        let thread = std::thread::Builder::new().name("tagwire-abort".to_owned());
        // A process that can have no thread ends unheard, as a rank that has failed.
        let is_asked = thread.spawn(ask).is_ok() && asked.recv_timeout(limit).is_ok();
        if !is_asked {
            tracing::warn!("the launcher was not asked to end the job within {limit:?}");
        }
    }
}

impl fmt::Debug for SharedBootstrap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedBootstrap")
            .field("rank", &self.rank)
            .field("size", &self.size)
            .finish_non_exhaustive()
    }
}

impl Bootstrap for SharedBootstrap {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn locality(&self) -> Locality {
        self.locality
    }

    fn secret(&self) -> &JobSecret {
        &self.secret
    }

    fn clock(&self) -> Clock {
        self.clock.clone()
    }

    fn reports_ends(&self) -> bool {
        self.reports_ends
    }

    fn attribute(&mut self, attribute: Attribute) -> Option<u32> {
        self.inner().attribute(attribute)
    }

    fn put(&mut self, key: &str, value: &[u8]) -> Result<()> {
        let key = self.key(key);
        self.inner().put(&key, value)
    }

    fn get(&mut self, rank: Rank, key: &str, timeout: Duration) -> Result<Vec<u8>> {
        let key = self.key(key);
        self.inner().get(rank, &key, timeout)
    }

    fn fence(&mut self, timeout: Duration) -> Result<()> {
        self.inner().fence(timeout)
    }

    fn put_descriptor(&mut self, descriptor: BorrowedFd<'_>) -> Result<()> {
        self.inner().put_descriptor(descriptor)
    }

    fn get_descriptor(&mut self, rank: Rank, timeout: Duration) -> Result<OwnedFd> {
        self.inner().get_descriptor(rank, timeout)
    }

    fn poll_events(&mut self) -> Vec<MemberEvent> {
        self.inner().poll_events()
    }

    fn abort(&mut self, status: i32) {
        self.abort_within(status, ABORT_DEADLINE);
    }

    fn leave(&mut self) {
        self.inner().leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bootstrap::LocalJob;
    use crate::clock::ManualClock;

    #[test]
    fn the_clock_is_the_ranks() {
        let hand = ManualClock::default();
        let job = LocalJob::new(1).unwrap();
        let member = job.member(Rank::new(0)).with_clock(hand.clock());
        let clock = SharedBootstrap::new(Box::new(member))
            .scoped("part")
            .clock();
        let start = clock.now();
        assert_eq!(clock.now(), start, "it stands still");
        hand.advance(Duration::from_secs(1));
        assert_eq!(clock.now().since(start), Duration::from_secs(1));
    }

    #[test]
    fn an_abort_waits_for_no_other_call_for_long() {
        let job = LocalJob::new(2).unwrap();
        let shared = SharedBootstrap::new(Box::new(job.member(Rank::new(0))));
        let inner = shared.inner();
        shared.abort_within(7, Duration::from_millis(50));
        drop(inner);
        // Where nobody has the lock it returns once the launcher has been asked.
        shared.abort_within(7, Duration::from_secs(60));
    }

    #[test]
    fn scopes_keep_keys_apart() {
        let job = LocalJob::new(1).unwrap();
        let own = Rank::new(0);
        let mut plain = SharedBootstrap::new(Box::new(job.member(own)));
        let mut scoped = plain.scoped("second");
        plain.put("transport", b"first").unwrap();
        scoped.put("transport", b"other").unwrap();
        let soon = Duration::from_secs(1);
        assert_eq!(plain.get(own, "transport", soon).unwrap(), b"first");
        assert_eq!(scoped.get(own, "transport", soon).unwrap(), b"other");
    }
}
