//! The epochs of a window at one process (MPI-5.0, section 12.5): which calls may follow which.
//!
//! ```text
//!                access                                exposure
//!     closed ----fence----> fenced (used by an access)
//!            ----start----> started, to a group        post .. wait, test
//!            ----lock-----> locked, some targets
//!            --lock_all---> locked, all targets
//! ```
//!
//! Nothing here waits or knows of other processes: inputs are calls, outputs are whether they may be made. A fence that nothing
//! was accessed after may be followed by any kind of epoch: then it was the last one (MPI-5.0, section 12.5.1).

use std::mem;
use std::sync::Arc;

use crate::error::{Class, Error, Result};

/// How a target is locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Locked {
    /// By `MPI_MODE_NOCHECK`: nobody else asks for a conflicting lock, and none is taken.
    Unchecked,
    Shared,
    Exclusive,
}

#[derive(Debug)]
enum Access {
    Closed,
    /// After a fence. `used`: something was accessed since.
    Fenced {
        used: bool,
    },
    /// To these members.
    Started(Arc<[usize]>),
    /// So many targets are locked.
    Locked(usize),
    LockedAll(Locked),
}

/// The epochs that a process has open on a window.
#[derive(Debug)]
pub(crate) struct Epochs {
    /// This process.
    me: usize,
    access: Access,
    /// How each member is locked by a call of its own.
    locked: Box<[Option<Locked>]>,
    /// The members that the window is exposed to.
    exposed: Option<Arc<[usize]>>,
}

impl Epochs {
    pub(crate) fn new(members: usize, me: usize) -> Self {
        Self {
            me,
            access: Access::Closed,
            locked: vec![None; members].into(),
            exposed: None,
        }
    }

    /// Returns what the open access epoch is called in errors.
    fn open(&self) -> Option<&'static str> {
        match &self.access {
            Access::Closed | Access::Fenced { used: false } => None,
            Access::Fenced { used: true } => {
                Some("accesses have been made since MPI_Win_fence, which another fence has to end")
            }
            Access::Started(_) => Some("the epoch of MPI_Win_start is not complete"),
            Access::Locked(_) => Some("a target is locked"),
            Access::LockedAll(_) => Some("all targets are locked"),
        }
    }

    fn check_closed(&self) -> Result {
        self.open().map_or(Ok(()), |open| Err(wrong(open)))
    }

    /// Notes accesses that the epoch has allowed.
    pub(crate) const fn note_access(&mut self) {
        if let Access::Fenced { used } = &mut self.access {
            *used = true;
        }
    }

    /// Notes an access to a member.
    ///
    /// # Errors
    /// `MPI_ERR_RMA_SYNC` where no epoch allows it.
    #[inline]
    pub(crate) fn access(&mut self, target: usize) -> Result {
        let allows = match &mut self.access {
            Access::Closed => false,
            Access::Fenced { used } => {
                *used = true;
                true
            }
            Access::Started(group) => group.contains(&target),
            Access::Locked(_) => self.locked.get(target).is_some_and(Option::is_some),
            Access::LockedAll(_) => true,
        };
        match allows {
            true => Ok(()),
            false => Err(no_epoch(target)),
        }
    }

    /// Checks that a target is locked: what calls need that complete accesses, or have a request.
    ///
    /// # Errors
    /// `MPI_ERR_RMA_SYNC` where it is not.
    #[inline]
    pub(crate) fn passive(&self, target: usize) -> Result {
        let allows = match &self.access {
            Access::Locked(_) => self.locked.get(target).is_some_and(Option::is_some),
            Access::LockedAll(_) => true,
            _ => false,
        };
        match allows {
            true => Ok(()),
            false => Err(wrong(format!("rank {target} of the window is not locked"))),
        }
    }

    /// Returns the members that are locked.
    ///
    /// # Errors
    /// `MPI_ERR_RMA_SYNC` where none is.
    pub(crate) fn all_passive(&self) -> Result<Vec<usize>> {
        match &self.access {
            Access::Locked(_) => {
                let members = 0..self.locked.len();
                let locked = members.filter(|target| self.locked[*target].is_some());
                Ok(locked.collect())
            }
            Access::LockedAll(_) => Ok((0..self.locked.len()).collect()),
            _ => Err(wrong("no rank of the window is locked")),
        }
    }

    /// Checks that there may be a fence.
    ///
    /// # Errors
    /// `MPI_ERR_RMA_SYNC` inside of another kind of epoch.
    pub(crate) fn check_fence(&self) -> Result {
        match self.access {
            Access::Closed | Access::Fenced { .. } => self.check_hidden(),
            _ => self.check_closed(),
        }
    }

    /// A fence is over, after which accesses follow or not.
    pub(crate) fn fence(&mut self, succeeds: bool) {
        self.access = match succeeds {
            true => Access::Fenced { used: false },
            false => Access::Closed,
        };
    }

    /// Starts an access epoch to a group.
    ///
    /// # Errors
    /// `MPI_ERR_RMA_SYNC` inside of another.
    pub(crate) fn start(&mut self, group: Arc<[usize]>) -> Result {
        self.check_closed()?;
        self.access = Access::Started(group);
        Ok(())
    }

    /// Ends the epoch of a start. Returns its group.
    ///
    /// # Errors
    /// `MPI_ERR_RMA_SYNC` where none was started.
    pub(crate) fn complete(&mut self) -> Result<Arc<[usize]>> {
        match mem::replace(&mut self.access, Access::Closed) {
            Access::Started(group) => Ok(group),
            other => {
                self.access = other;
                Err(wrong("no epoch was started by MPI_Win_start"))
            }
        }
    }

    /// Exposes the window to a group.
    ///
    /// # Errors
    /// `MPI_ERR_RMA_SYNC` where it is exposed already, or after a fence with accesses; while this process has it locked at itself.
    pub(crate) fn post(&mut self, group: Arc<[usize]>) -> Result {
        self.check_hidden()?;
        if matches!(self.access, Access::LockedAll(_)) || self.locked[self.me].is_some() {
            return Err(wrong("this process has locked the window at itself"));
        }
        if matches!(self.access, Access::Fenced { .. }) {
            self.check_closed()?;
        }
        self.exposed = Some(group);
        Ok(())
    }

    /// Returns the group that the window is exposed to.
    ///
    /// # Errors
    /// `MPI_ERR_RMA_SYNC` where it is exposed to none.
    pub(crate) fn posted(&self) -> Result<Arc<[usize]>> {
        let exposed = self.exposed.clone();
        exposed.ok_or_else(|| wrong("the window was not exposed by MPI_Win_post"))
    }

    /// Ends the exposure.
    pub(crate) fn close(&mut self) {
        self.exposed = None;
    }

    /// Checks that the window is not exposed: it is not locked then, nor exposed again (MPI-5.0, section 12.5.3).
    fn check_hidden(&self) -> Result {
        match self.exposed {
            None => Ok(()),
            Some(_) => Err(wrong(EXPOSED)),
        }
    }

    /// Notes that a target is locked.
    ///
    /// # Errors
    /// `MPI_ERR_RMA_SYNC` where it is locked before, or inside of another kind of epoch; where it is this process, and exposed.
    pub(crate) fn lock(&mut self, target: usize, how: Locked) -> Result {
        if target == self.me {
            self.check_hidden()?;
        }
        let others = match &self.access {
            Access::Locked(others) => *others,
            _ => {
                self.check_closed()?;
                0
            }
        };
        if let Some(place) = self.locked.get_mut(target) {
            if place.is_some() {
                return Err(wrong(format!("rank {target} of the window is locked")));
            }
            *place = Some(how);
            self.access = Access::Locked(others + 1);
        }
        Ok(())
    }

    /// Notes that a target is not locked any more. Returns how it was.
    ///
    /// # Errors
    /// `MPI_ERR_RMA_SYNC` where it was not, or all are by one call.
    pub(crate) fn unlock(&mut self, target: usize) -> Result<Locked> {
        let found = self.locked.get_mut(target).and_then(Option::take);
        let how = found.ok_or_else(|| {
            wrong(format!(
                "rank {target} of the window was not locked by MPI_Win_lock"
            ))
        })?;
        self.access = match self.access {
            Access::Locked(count) if count > 1 => Access::Locked(count - 1),
            _ => Access::Closed,
        };
        Ok(how)
    }

    /// Checks that all targets may be locked.
    ///
    /// # Errors
    /// `MPI_ERR_RMA_SYNC` inside of another epoch, or where the window is exposed.
    pub(crate) fn check_lock_all(&self) -> Result {
        self.check_hidden()?;
        self.check_closed()
    }

    /// All targets are locked.
    pub(crate) fn lock_all(&mut self, how: Locked) {
        self.access = Access::LockedAll(how);
    }

    /// Returns how all targets are locked that are to be unlocked.
    ///
    /// # Errors
    /// `MPI_ERR_RMA_SYNC` where they are not.
    pub(crate) fn locked_all(&self) -> Result<Locked> {
        match &self.access {
            Access::LockedAll(how) => Ok(*how),
            _ => Err(wrong("the window was not locked by MPI_Win_lock_all")),
        }
    }

    /// All targets are unlocked.
    pub(crate) fn unlock_all(&mut self) {
        self.access = Access::Closed;
    }

    /// Checks that the window may be freed.
    ///
    /// # Errors
    /// `MPI_ERR_RMA_SYNC` inside of an epoch. Accesses after the last fence are forgiven: programs free windows so.
    pub(crate) fn check_free(&self) -> Result {
        self.check_hidden()?;
        match self.access {
            Access::Fenced { .. } => Ok(()),
            _ => self.check_closed(),
        }
    }
}

const EXPOSED: &str = "the window is exposed by MPI_Win_post, which MPI_Win_wait has to end";

#[cold]
fn wrong(text: impl Into<String>) -> Error {
    Error::new(Class::RmaSync, text)
}

#[cold]
fn no_epoch(target: usize) -> Error {
    wrong(format!(
        "no epoch of this process allows accesses to rank {target} of the window"
    ))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests;
