//! A bootstrap for ranks that are objects of one process: tests, simulations, and a job of one.

use std::collections::HashMap;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Bootstrap, JobSecret, Locality, MemberEvent};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::ids::Rank;

#[derive(Debug, Default)]
struct State {
    values: HashMap<(Rank, String), Vec<u8>>,
    descriptors: HashMap<Rank, OwnedFd>,
    events: Vec<MemberEvent>,
    fence_arrivals: u64,
}

#[derive(Debug)]
struct Shared {
    size: u32,
    secret: JobSecret,
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `take` finds something in the state, or `timeout` passes.
    fn wait_for<T>(
        &self,
        timeout: Duration,
        mut take: impl FnMut(&mut State) -> Option<T>,
    ) -> Option<T> {
        let (mut found, changed) = (None, &self.changed);
        let is_missing = |state: &mut State| {
            found = take(state);
            found.is_none()
        };
        // By the machine's clock, as all sleep in the kernel.
        drop(changed.wait_timeout_while(self.state(), timeout, is_missing));
        found
    }
}

/// A job whose ranks live in this process.
#[derive(Debug, Clone)]
pub struct LocalJob {
    shared: Arc<Shared>,
}

impl LocalJob {
    /// A job of `size` ranks with a fresh secret.
    ///
    /// # Errors
    /// When the system has no randomness for the secret.
    pub fn new(size: u32) -> Result<Self> {
        Ok(Self {
            shared: Arc::new(Shared {
                size,
                secret: JobSecret::generate()?,
                state: Mutex::new(State::default()),
                changed: Condvar::new(),
            }),
        })
    }

    /// The bootstrap of rank `rank`.
    #[must_use]
    pub fn member(&self, rank: Rank) -> LocalBootstrap {
        LocalBootstrap {
            shared: Arc::clone(&self.shared),
            rank,
            locality: Locality {
                local_rank: rank.as_u32(),
                local_size: self.shared.size,
                first_local: Rank::new(0),
                address: None,
            },
            clock: Clock::default(),
            seen: 0,
            fences: 0,
            left: false,
        }
    }

    /// Tells the living that `rank` has failed, as a launcher would.
    pub fn declare_failed(&self, rank: Rank) {
        self.shared.state().events.push(MemberEvent::Failed(rank));
        self.shared.changed.notify_all();
    }
}

/// One rank's view of a [`LocalJob`].
#[derive(Debug)]
pub struct LocalBootstrap {
    shared: Arc<Shared>,
    rank: Rank,
    locality: Locality,
    clock: Clock,
    seen: usize,
    fences: u64,
    left: bool,
}

impl LocalBootstrap {
    /// Makes the rank run where `locality` says, and not with all others on one host.
    #[must_use]
    pub const fn with_locality(mut self, locality: Locality) -> Self {
        self.locality = locality;
        self
    }

    /// Gives the rank a clock of its own.
    #[must_use]
    pub fn with_clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// The same, for one that is open.
    pub fn set_clock(&mut self, clock: Clock) {
        self.clock = clock;
    }
}

impl Bootstrap for LocalBootstrap {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.shared.size
    }

    fn locality(&self) -> Locality {
        self.locality
    }

    fn secret(&self) -> &JobSecret {
        &self.shared.secret
    }

    fn clock(&self) -> Clock {
        self.clock.clone()
    }

    fn put(&mut self, key: &str, value: &[u8]) -> Result<()> {
        self.shared
            .state()
            .values
            .insert((self.rank, key.to_owned()), value.to_vec());
        self.shared.changed.notify_all();
        Ok(())
    }

    fn get(&mut self, rank: Rank, key: &str, timeout: Duration) -> Result<Vec<u8>> {
        let name = (rank, key.to_owned());
        self.shared
            .wait_for(timeout, |state| state.values.get(&name).cloned())
            .ok_or_else(|| Error::BootstrapTimeout {
                rank,
                key: key.to_owned(),
                seconds: timeout.as_secs(),
            })
    }

    fn fence(&mut self, timeout: Duration) -> Result<()> {
        self.fences += 1;
        let target = self.fences * u64::from(self.shared.size);
        self.shared.state().fence_arrivals += 1;
        self.shared.changed.notify_all();
        self.shared
            .wait_for(timeout, |state| {
                (state.fence_arrivals >= target).then_some(())
            })
            .ok_or(Error::FenceTimeout(timeout))
    }

    fn put_descriptor(&mut self, descriptor: BorrowedFd<'_>) -> Result<()> {
        let copy = descriptor
            .try_clone_to_owned()
            .map_err(|error| Error::system("copy a descriptor", error))?;
        self.shared.state().descriptors.insert(self.rank, copy);
        self.shared.changed.notify_all();
        Ok(())
    }

    fn get_descriptor(&mut self, rank: Rank, timeout: Duration) -> Result<OwnedFd> {
        self.shared
            .wait_for(timeout, |state| {
                state
                    .descriptors
                    .get(&rank)
                    .map(|fd| fd.as_fd().try_clone_to_owned())
            })
            .ok_or_else(|| Error::BootstrapTimeout {
                rank,
                key: "descriptor".to_owned(),
                seconds: timeout.as_secs(),
            })?
            .map_err(|error| Error::system("copy a descriptor", error))
    }

    fn poll_events(&mut self) -> Vec<MemberEvent> {
        let state = self.shared.state();
        let own = self.rank;
        let fresh = state.events[self.seen..]
            .iter()
            .copied()
            .filter(|event| !matches!(event, MemberEvent::Left(r) | MemberEvent::Failed(r) if *r == own))
            .collect();
        self.seen = state.events.len();
        fresh
    }

    fn leave(&mut self) {
        if !self.left {
            self.left = true;
            let mut state = self.shared.state();
            state.descriptors.remove(&self.rank);
            state.events.push(MemberEvent::Left(self.rank));
            self.shared.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn get_waits_for_put() {
        let job = LocalJob::new(2).unwrap();
        let mut reader = job.member(Rank::new(0));
        let mut writer = job.member(Rank::new(1));
        let thread = std::thread::spawn(move || writer.put("address", b"here").unwrap());
        let value = reader
            .get(Rank::new(1), "address", Duration::from_secs(10))
            .unwrap();
        assert_eq!(value, b"here");
        thread.join().unwrap();
        let missing = reader.get(Rank::new(1), "other", Duration::ZERO);
        assert!(matches!(missing, Err(Error::BootstrapTimeout { .. })));
    }

    #[test]
    fn members_hear_of_others_only() {
        let job = LocalJob::new(3).unwrap();
        let (mut a, mut b) = (job.member(Rank::new(0)), job.member(Rank::new(1)));
        b.leave();
        job.declare_failed(Rank::new(2));
        assert_eq!(
            a.poll_events(),
            [
                MemberEvent::Left(Rank::new(1)),
                MemberEvent::Failed(Rank::new(2))
            ]
        );
        assert_eq!(a.poll_events(), []);
        assert_eq!(b.poll_events(), [MemberEvent::Failed(Rank::new(2))]);
    }
}
