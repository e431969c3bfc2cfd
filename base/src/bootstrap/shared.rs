//! A bootstrap that several parts of one rank hold: the layer that fetches addresses, and a
//! transport that asks for a descriptor on first contact.

use std::fmt;
use std::net::IpAddr;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Bootstrap, JobSecret, Locality, MemberEvent};
use crate::error::Result;
use crate::ids::Rank;

/// A [`Bootstrap`] behind a lock. Cloning names the same one again.
#[derive(Clone)]
pub struct SharedBootstrap {
    inner: Arc<Mutex<Box<dyn Bootstrap>>>,
    secret: JobSecret,
    rank: Rank,
    size: u32,
    locality: Locality,
    own_address: Option<IpAddr>,
}

impl SharedBootstrap {
    /// Shares `bootstrap`.
    #[must_use]
    pub fn new(bootstrap: Box<dyn Bootstrap>) -> Self {
        Self {
            secret: bootstrap.secret().clone(),
            rank: bootstrap.rank(),
            size: bootstrap.size(),
            locality: bootstrap.locality(),
            own_address: bootstrap.own_address(),
            inner: Arc::new(Mutex::new(bootstrap)),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Box<dyn Bootstrap>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
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

    fn own_address(&self) -> Option<IpAddr> {
        self.own_address
    }

    fn put(&mut self, key: &str, value: &[u8]) -> Result<()> {
        self.inner().put(key, value)
    }

    fn get(&mut self, rank: Rank, key: &str, timeout: Duration) -> Result<Vec<u8>> {
        self.inner().get(rank, key, timeout)
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

    fn leave(&mut self) {
        self.inner().leave();
    }
}
