//! How the ranks of a simulation find each other.

use std::collections::HashMap;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tagwire_base::bootstrap::{Bootstrap, JobSecret, Locality, MemberEvent};
use tagwire_base::error::{Error, Result};
use tagwire_base::{Clock, Rank};

use crate::network::SimNetwork;
use crate::time::Moment;
use crate::turns::nobody_is_idle;

/// What a rank has put, by its key.
type Values = HashMap<(Rank, Box<str>), Box<[u8]>>;

/// A job whose ranks are those of a network, opened one after the other by one thread, where nothing waits, or each by its own in its turn.
#[derive(Debug, Clone)]
pub struct SimJob {
    network: SimNetwork,
    shared: Arc<Mutex<Values>>,
    /// To how many fences ranks have come.
    fences: Arc<Mutex<HashMap<Rank, u64>>>,
}

impl SimJob {
    /// Returns the job of `network`.
    #[must_use]
    pub fn new(network: &SimNetwork) -> Self {
        Self {
            network: network.clone(),
            shared: Arc::default(),
            fences: Arc::default(),
        }
    }

    /// Returns the bootstrap of a rank, whose clock is that of its [transport](SimNetwork::open).
    #[must_use]
    pub fn member(&self, rank: Rank, clock: Clock) -> SimBootstrap {
        SimBootstrap {
            job: self.clone(),
            rank,
            clock,
            // Nobody outside the process is kept out by it.
            secret: JobSecret::from_bytes([0; JobSecret::LEN]),
            seen: 0,
        }
    }

    fn values(&self) -> MutexGuard<'_, Values> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn arrivals(&self) -> MutexGuard<'_, HashMap<Rank, u64>> {
        self.fences.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All ranks look again at what is here, where they have turns.
    fn wake_all(&self) {
        let shared = &self.network.shared;
        if shared.turns().is_some() {
            shared.with(nobody_is_idle);
        }
    }

    /// A rank has come to a fence. Returns to how many it has come.
    fn come(&self, rank: Rank) -> u64 {
        let mut fences = self.arrivals();
        let count = fences.entry(rank).or_default();
        *count += 1;
        *count
    }

    /// Returns to how many fences a rank has come.
    fn fences(&self, rank: Rank) -> u64 {
        self.arrivals().get(&rank).copied().unwrap_or_default()
    }

    /// Whether a rank has left, or died.
    fn has_ended(&self, rank: Rank) -> bool {
        let ended = self.network.ended(0);
        ended.contains(&MemberEvent::Left(rank)) || ended.contains(&MemberEvent::Failed(rank))
    }
}

/// One rank's view of a [`SimJob`].
#[derive(Debug)]
pub struct SimBootstrap {
    job: SimJob,
    rank: Rank,
    clock: Clock,
    secret: JobSecret,
    seen: usize,
}

impl SimBootstrap {
    /// Looks until something is there, or never will be: a job that waits for ever is ended by who has begun it. Once, where ranks have no turns.
    fn wait_for<T>(
        &self,
        look: impl Fn(&SimJob) -> Option<T>,
        is_vain: impl Fn(&SimJob) -> bool,
    ) -> Option<T> {
        let shared = &self.job.network.shared;
        loop {
            let found = look(&self.job);
            if found.is_some() || shared.turns().is_none() {
                return found;
            }
            if is_vain(&self.job) {
                return None;
            }
            self.sleeps(true);
            shared.pass(self.rank);
            self.sleeps(false);
        }
    }

    /// The rank waits for others beside the network: virtual time is not for it to move on.
    fn sleeps(&self, does: bool) {
        self.job.network.shared.with(|state| {
            if let Some(place) = state.find(self.rank) {
                let member = state.member(place);
                member.asleep = does.then_some(Moment::MAX);
                member.idle = does.then_some(member.epoch);
            }
        });
    }
}

impl Bootstrap for SimBootstrap {
    fn rank(&self) -> Rank {
        self.rank
    }

    fn size(&self) -> u32 {
        self.job.network.size()
    }

    fn locality(&self) -> Locality {
        let (size, rank) = (self.size(), self.rank.as_u32());
        let machine = self.job.network.shared.options.machine;
        let per_node = machine
            .map_or(size, |machine| machine.ranks_per_node)
            .max(1);
        let first = rank - rank % per_node;
        Locality {
            local_rank: rank - first,
            local_size: per_node.min(size - first),
            first_local: Rank::new(first),
            address: None,
        }
    }

    fn secret(&self) -> &JobSecret {
        &self.secret
    }

    fn clock(&self) -> Clock {
        self.clock.clone()
    }

    fn put(&mut self, key: &str, value: &[u8]) -> Result<()> {
        let name = (self.rank, key.into());
        self.job.values().insert(name, value.into());
        self.job.wake_all();
        Ok(())
    }

    /// Does not wait where the thread that would put the value is this one: where ranks have no [turns](SimNetwork::turn).
    fn get(&mut self, rank: Rank, key: &str, timeout: Duration) -> Result<Vec<u8>> {
        let name = (rank, key.into());
        let look = |job: &SimJob| job.values().get(&name).map(|value| value.to_vec());
        let found = self.wait_for(look, |job| job.has_ended(rank));
        found.ok_or_else(|| Error::BootstrapTimeout {
            rank,
            key: key.to_owned(),
            seconds: timeout.as_secs(),
        })
    }

    /// Does not wait without turns, as [`get`](Self::get): every rank is opened before the first is run.
    fn fence(&mut self, _timeout: Duration) -> Result<()> {
        if self.job.network.shared.turns().is_none() {
            return Ok(());
        }
        let (size, mine) = (self.size(), self.job.come(self.rank));
        self.job.wake_all();
        let all = |job: &SimJob| {
            let mut ranks = (0..size).map(Rank::new);
            let have_come = ranks.all(|rank| job.fences(rank) >= mine || job.has_ended(rank));
            have_come.then_some(())
        };
        self.wait_for(all, |_| false);
        Ok(())
    }

    fn put_descriptor(&mut self, _descriptor: BorrowedFd<'_>) -> Result<()> {
        Err(no_descriptors())
    }

    fn get_descriptor(&mut self, _rank: Rank, _timeout: Duration) -> Result<OwnedFd> {
        Err(no_descriptors())
    }

    fn poll_events(&mut self) -> Vec<MemberEvent> {
        let mut events = self.job.network.ended(self.seen);
        self.seen += events.len();
        // For one that has died, and whose thread goes on, all have: what it waits for of itself ends too.
        let own = MemberEvent::Failed(self.rank);
        if self.job.network.shared.turns().is_some() && events.contains(&own) {
            let others = (0..self.size())
                .map(Rank::new)
                .filter(|rank| *rank != self.rank);
            events.extend(others.map(MemberEvent::Failed));
        }
        events
    }

    fn leave(&mut self) {}
}

fn no_descriptors() -> Error {
    Error::Bootstrap("a simulation carries no descriptors".to_owned())
}
