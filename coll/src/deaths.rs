//! Whether ranks have failed that others wait for.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use tagwire_pml::{Failure, Messenger};

use crate::error::{Error, Result};
use crate::members::Members;

/// Looks for failures of some ranks.
#[derive(Debug)]
pub(crate) struct Deaths {
    messenger: Arc<Messenger>,
    ranks: Members,
    /// Failures of the job that were looked at.
    seen: AtomicUsize,
}

impl Deaths {
    /// Returns those among `ranks`; those that were before are found by the first look.
    pub(crate) fn among(messenger: &Arc<Messenger>, ranks: &Members) -> Self {
        Self {
            messenger: Arc::clone(messenger),
            ranks: ranks.clone(),
            seen: AtomicUsize::new(0),
        }
    }

    /// Looks whether this rank closes, and for failures where any rank of the job has failed since the last look. Two loads
    /// where none has.
    ///
    /// # Errors
    /// [`Failure::Closed`], and as [`look`](Self::look).
    pub(crate) fn check(&self) -> Result<()> {
        if self.messenger.is_closing() {
            return Err(Error::Failed(Failure::Closed));
        }
        if self.messenger.failures() != self.seen.load(Relaxed) {
            self.look()?;
        }
        Ok(())
    }

    /// Looks for failures.
    ///
    /// # Errors
    /// [`Failure::PeerFailed`] with one of the ranks that has failed.
    #[cold]
    pub(crate) fn look(&self) -> Result<()> {
        let failed = self.messenger.failed()?;
        self.seen.store(failed.len(), Relaxed);
        let mut failed = failed.into_iter();
        match failed.find(|rank| self.ranks.member(*rank).is_some()) {
            Some(rank) => Err(Error::Failed(Failure::PeerFailed(rank))),
            None => Ok(()),
        }
    }
}
