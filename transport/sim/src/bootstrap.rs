//! How the ranks of a simulation find each other.

use std::collections::HashMap;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tagwire_base::bootstrap::{Bootstrap, JobSecret, Locality, MemberEvent};
use tagwire_base::error::{Error, Result};
use tagwire_base::{Clock, Rank};

use crate::network::SimNetwork;

/// What a rank has put, by its key.
type Values = HashMap<(Rank, Box<str>), Box<[u8]>>;

/// A job whose ranks are those of a network, opened one after the other by one thread: nothing waits.
#[derive(Debug, Clone)]
pub struct SimJob {
    network: SimNetwork,
    shared: Arc<Mutex<Values>>,
}

impl SimJob {
    /// Returns the job of `network`.
    #[must_use]
    pub fn new(network: &SimNetwork) -> Self {
        Self {
            network: network.clone(),
            shared: Arc::default(),
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
        Ok(())
    }

    /// Does not wait: the thread that would put the value is this one.
    fn get(&mut self, rank: Rank, key: &str, timeout: Duration) -> Result<Vec<u8>> {
        let name = (rank, key.into());
        let found = self.job.values().get(&name).map(|value| value.to_vec());
        found.ok_or_else(|| Error::BootstrapTimeout {
            rank,
            key: key.to_owned(),
            seconds: timeout.as_secs(),
        })
    }

    /// Does not wait, as [`get`](Self::get): every rank is opened before the first is run.
    fn fence(&mut self, _timeout: Duration) -> Result<()> {
        Ok(())
    }

    fn put_descriptor(&mut self, _descriptor: BorrowedFd<'_>) -> Result<()> {
        Err(no_descriptors())
    }

    fn get_descriptor(&mut self, _rank: Rank, _timeout: Duration) -> Result<OwnedFd> {
        Err(no_descriptors())
    }

    fn poll_events(&mut self) -> Vec<MemberEvent> {
        let events = self.job.network.ended(self.seen);
        self.seen += events.len();
        events
    }

    fn leave(&mut self) {}
}

fn no_descriptors() -> Error {
    Error::Bootstrap("a simulation carries no descriptors".to_owned())
}
