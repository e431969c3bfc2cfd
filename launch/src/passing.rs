//! Descriptors between ranks of a host whose launcher passes none: PMI-1 and PMIx.
//!
//! Shared memory opens those of its peers below `/proc`. The kernel keeps others from that where a program may not be read,
//! or has rights that its user has not. A rank of such a program leaves its descriptor in a store of its own, which the
//! others look for once `/proc` is refused.

use std::collections::HashMap;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::process::DumpableBehavior;
use tagwire_base::{Bootstrap, Error, JobSecret, Rank};

use crate::proof::name_of_socket;
use crate::store::{Membership, Store, StoreBootstrap};

/// Passes the descriptors of one rank, and takes those of others.
#[derive(Debug)]
pub(crate) struct Passing {
    rank: Rank,
    size: u32,
    secret: JobSecret,
    /// This rank's store, and its own stay in it.
    own: Option<(Store, StoreBootstrap)>,
    /// Its stays in those of others: one each, as a rank that comes back is in the next session.
    others: HashMap<Rank, StoreBootstrap>,
}

impl Passing {
    pub(crate) fn new(rank: Rank, size: u32, secret: JobSecret) -> Self {
        Self {
            rank,
            size,
            secret,
            own: None,
            others: HashMap::new(),
        }
    }

    /// Leaves a descriptor for the others of this host, where they cannot open it by themselves.
    ///
    /// # Errors
    /// When the system has no socket or thread for the store.
    pub(crate) fn put(&mut self, descriptor: BorrowedFd<'_>) -> tagwire_base::Result<()> {
        match is_open_to_others() {
            true => Ok(()),
            false => self.leave(descriptor),
        }
    }

    fn leave(&mut self, descriptor: BorrowedFd<'_>) -> tagwire_base::Result<()> {
        if self.own.is_none() {
            let name = self.name_of(self.rank);
            let store = Store::start_as(self.size, &name, self.secret.clone())
                .map_err(|error| Error::Bootstrap(error.to_string()))?;
            let stay = StoreBootstrap::connect(store.membership(self.rank))?;
            self.own = Some((store, stay));
        }
        let own = self.own.as_mut();
        own.map_or(Ok(()), |(_, stay)| stay.put_descriptor(descriptor))
    }

    /// Returns a descriptor that `rank` has left.
    ///
    /// # Errors
    /// When it has no store; as [`Bootstrap::get_descriptor`].
    pub(crate) fn get(&mut self, rank: Rank, timeout: Duration) -> tagwire_base::Result<OwnedFd> {
        if let Some(stay) = self.others.get_mut(&rank) {
            return stay.get_descriptor(rank, timeout);
        }
        let place = Membership {
            rank: self.rank,
            size: self.size,
            local_rank: 0,
            local_size: 1,
            store: self.name_of(rank),
            secret: self.secret.clone(),
            application: None,
        };
        let mut stay = StoreBootstrap::connect(place)?;
        let descriptor = stay.get_descriptor(rank, timeout);
        self.others.insert(rank, stay);
        descriptor
    }

    /// Returns the name of a rank's store.
    fn name_of(&self, rank: Rank) -> String {
        name_of_socket(&self.secret, rank)
    }
}

/// Whether other processes of this user may open this one's descriptors.
fn is_open_to_others() -> bool {
    matches!(
        rustix::process::dumpable_behavior(),
        Ok(DumpableBehavior::Dumpable)
    )
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;

    use super::*;

    const SOON: Duration = Duration::from_secs(10);

    #[test]
    fn what_a_rank_leaves_others_take_as_often_as_they_like() {
        let secret = JobSecret::generate().unwrap();
        let [mut own, mut other] =
            [1, 0].map(|rank| Passing::new(Rank::new(rank), 2, secret.clone()));
        let file = File::open(std::env::current_exe().unwrap()).unwrap();
        // Who can be opened has no store.
        own.put(file.as_fd()).unwrap();
        assert!(own.own.is_none());
        let error = other.get(Rank::new(1), SOON).unwrap_err().to_string();
        assert!(error.contains(&own.name_of(Rank::new(1))), "{error}");
        own.leave(file.as_fd()).unwrap();
        for _ in 0..3 {
            let taken = File::from(other.get(Rank::new(1), SOON).unwrap());
            let inode = |file: &File| file.metadata().unwrap().ino();
            assert_eq!(inode(&taken), inode(&file));
        }
        // Whoever does not know the secret takes nothing.
        let other_secret = JobSecret::generate().unwrap();
        let mut pending_peer = Passing::new(Rank::new(0), 2, other_secret);
        assert!(pending_peer.get(Rank::new(1), SOON).is_err());
    }
}
