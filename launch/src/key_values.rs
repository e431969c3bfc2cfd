//! A job whose launcher has a key-value space, and a barrier that makes what was put before it visible, and no more: PMI-1
//! and PMIx.

use std::fmt;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use tagwire_base::bootstrap::{Attribute, Locality, MemberEvent};
use tagwire_base::{Bootstrap, Error, JobSecret, Owner, Rank};

use crate::error::Result;
use crate::gather::{alone, gather};
use crate::passing::Passing;

/// A launcher's key-value space, as one rank sees it.
pub(crate) trait KeyValues: fmt::Debug + Send {
    /// What it is called, for people.
    const NAME: &'static str;

    /// Puts a value of this rank, which others can get after the next [barrier](KeyValues::barrier). A later one under
    /// the same key may be refused.
    ///
    /// # Errors
    /// When there is no room for it, or the launcher is gone.
    fn put(&mut self, rank: Rank, key: &str, value: &[u8]) -> Result<()>;

    /// Returns the value of a rank; `None` where it is not there within `timeout`.
    ///
    /// # Errors
    /// When the value came back changed, or the launcher is gone.
    fn get(&mut self, rank: Rank, key: &str, timeout: Duration) -> Result<Option<Vec<u8>>>;

    /// Returns once every rank has called it as often; `None` where `timeout` passes before.
    ///
    /// # Errors
    /// When the launcher is gone.
    fn barrier(&mut self, timeout: Duration) -> Result<Option<()>>;

    /// Returns a number of the job, where the launcher knows it.
    fn attribute(&mut self, attribute: Attribute) -> Option<u32>;

    /// Returns what the launcher has reported of other ranks since the last call. Never blocks.
    fn events(&mut self) -> Vec<MemberEvent> {
        Vec::new()
    }

    /// Asks the launcher to end the job with a status. Returns once it has been asked, if at all.
    fn abort(&mut self, status: i32);

    /// Says that this process leaves in good order.
    ///
    /// # Errors
    /// When the launcher is gone.
    fn finalize(&mut self) -> Result<()>;
}

/// A rank's view of its job.
#[derive(Debug)]
pub(crate) struct KeyValueBootstrap<V> {
    values: V,
    rank: Rank,
    size: u32,
    locality: Locality,
    secret: JobSecret,
    passing: Passing,
    left: bool,
    /// A forked child has the same connection: what it says would be taken for this rank's.
    owner: Owner,
}

impl<V: KeyValues> KeyValueBootstrap<V> {
    /// Joins the job of `size` ranks in which this process is `rank`.
    ///
    /// # Errors
    /// When the launcher is gone, or the others do not come.
    pub(crate) fn join(values: V, rank: Rank, size: u32) -> Result<Self> {
        let unknown = JobSecret::from_bytes([0; JobSecret::LEN]);
        let mut job = Self {
            values,
            rank,
            size,
            locality: alone(rank),
            secret: unknown.clone(),
            passing: Passing::new(rank, size, unknown),
            left: false,
            owner: Owner::here(),
        };
        (job.secret, job.locality) = gather(&mut job, V::NAME)?;
        job.passing = Passing::new(rank, size, job.secret.clone());
        Ok(job)
    }
}

/// Returns the error of the contract that one of this crate's is.
fn of_contract(error: crate::error::Error) -> Error {
    match error {
        crate::error::Error::Bootstrap(error) => error,
        error => Error::Bootstrap(error.to_string()),
    }
}

impl<V: KeyValues> Bootstrap for KeyValueBootstrap<V> {
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

    fn attribute(&mut self, attribute: Attribute) -> Option<u32> {
        self.values.attribute(attribute)
    }

    fn put(&mut self, key: &str, value: &[u8]) -> tagwire_base::Result<()> {
        self.owner.check()?;
        self.values.put(self.rank, key, value).map_err(of_contract)
    }

    fn get(&mut self, rank: Rank, key: &str, timeout: Duration) -> tagwire_base::Result<Vec<u8>> {
        self.owner.check()?;
        let value = self.values.get(rank, key, timeout).map_err(of_contract)?;
        value.ok_or_else(|| Error::BootstrapTimeout {
            rank,
            key: key.to_owned(),
            seconds: timeout.as_secs(),
        })
    }

    fn fence(&mut self, timeout: Duration) -> tagwire_base::Result<()> {
        self.owner.check()?;
        let passed = self.values.barrier(timeout).map_err(of_contract)?;
        passed.ok_or(Error::FenceTimeout(timeout))
    }

    /// There are no descriptors in such a space: ranks of a host pass them by themselves.
    fn put_descriptor(&mut self, descriptor: BorrowedFd<'_>) -> tagwire_base::Result<()> {
        self.owner.check()?;
        match self.locality.local_size {
            1 => Ok(()),
            _ => self.passing.put(descriptor),
        }
    }

    fn get_descriptor(&mut self, rank: Rank, timeout: Duration) -> tagwire_base::Result<OwnedFd> {
        self.owner.check()?;
        self.passing.get(rank, timeout).map_err(|error| {
            if error.is_shortage() {
                return error;
            }
            let name = V::NAME;
            Error::Bootstrap(format!(
                "the launcher passes no descriptors ({name}), and the memory of rank {rank} cannot be opened from here ({error}): choose a network (TAGWIRE_TRANSPORT)"
            ))
        })
    }

    fn poll_events(&mut self) -> Vec<MemberEvent> {
        let mut events = self.values.events();
        events.retain(|event| match event {
            MemberEvent::Left(rank) | MemberEvent::Failed(rank) => rank.as_u32() < self.size,
            _ => true,
        });
        events
    }

    fn abort(&mut self, status: i32) {
        if self.owner.is_here() {
            self.values.abort(status);
        }
    }

    fn leave(&mut self) {
        if self.owner.is_here()
            && !std::mem::replace(&mut self.left, true)
            && let Err(error) = self.values.finalize()
        {
            tracing::debug!("the launcher did not hear that this rank leaves: {error}");
        }
    }
}
