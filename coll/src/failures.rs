//! What a group knows of its members' failures.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use tagwire_base::{ContextId, SourceSelector, TagSelector};
use tagwire_pml::{Failure, Messenger};

use crate::deaths::Deaths;
use crate::error::{Error, Result};
use crate::failure_notice::{self, Lost, Notice};
use crate::members::Members;
use crate::tags::BROKEN;

/// Whether a group is broken, and by whom. Looks for failures of members, and for their reports; reports to them.
#[derive(Debug)]
pub(crate) struct Failures {
    messenger: Arc<Messenger>,
    members: Members,
    me: usize,
    context: ContextId,
    deaths: Deaths,
    /// How often peers had been looked after at the last look for news.
    looked: AtomicUsize,
    /// The member whose news is on its way, with it.
    coming: Mutex<Option<(usize, Notice)>>,
    /// Whether there is such a one.
    comes: AtomicBool,
    broken: AtomicBool,
    /// What the group was broken by, where that was a member.
    lost: OnceLock<Lost>,
}

impl Failures {
    /// Returns those of a group that has none yet: of `members`, of which this rank is `me` and calls the context `context`.
    pub(crate) fn new(
        messenger: &Arc<Messenger>,
        members: &Members,
        me: usize,
        context: ContextId,
    ) -> Self {
        Self {
            messenger: Arc::clone(messenger),
            members: members.clone(),
            me,
            context,
            deaths: Deaths::among(messenger, members),
            looked: AtomicUsize::new(0),
            coming: Mutex::new(None),
            comes: AtomicBool::new(false),
            broken: AtomicBool::new(false),
            lost: OnceLock::new(),
        }
    }

    /// Refuses what begins after a failure.
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        match self.broken.load(Relaxed) {
            false => Ok(()),
            true => Err(Error::Broken),
        }
    }

    /// Returns what ends the operations under way, once one of them has failed.
    #[inline]
    pub(crate) fn broken_by(&self) -> Option<Error> {
        match self.broken.load(Relaxed) {
            false => None,
            true => Some(self.cause()),
        }
    }

    #[cold]
    fn cause(&self) -> Error {
        let lost = self.lost.get();
        lost.map_or(Error::Broken, |lost| self.error(*lost))
    }

    /// Looks whether a member has failed, where any rank has since the last look. What is under way ends where another
    /// operation has found that out, or was broken by something else.
    pub(crate) fn check_members(&self) -> Result<()> {
        if let Some(error) = self.broken_by() {
            return Err(error);
        }
        self.deaths.check()?;
        let looks = self.messenger.looks();
        match self.looked.swap(looks, Relaxed) == looks && !self.comes.load(Relaxed) {
            true => Ok(()),
            false => self.look_for_news(),
        }
    }

    /// Returns the member that an operation has failed at: this one, where it is of no other.
    pub(crate) fn failed_member(&self, error: &Error) -> usize {
        self.lost_by(error).map_or(self.me, Lost::member)
    }

    /// Breaks the group because of `error`. Returns whether the other members have to hear of it.
    pub(crate) fn enter(&self, error: &Error) -> bool {
        if let Some(lost) = self.lost_by(error).filter(|_| !self.broken.load(Relaxed)) {
            // The first one found.
            let _ = self.lost.set(lost);
        }
        !self.broken.swap(true, Relaxed)
    }

    /// Drops what members send that have not heard of it, and reports to them. What cannot be sent is for one that is gone.
    pub(crate) fn report(&self) {
        let broken = self.messenger.break_collectives(self.context);
        debug_assert!(broken.is_ok(), "this thread has just called: {broken:?}");
        let lost = self.lost.get().copied();
        for member in (0..self.members.len()).filter(|member| *member != self.me) {
            let (rank, context) = (self.members.rank(member), self.members.context(member));
            if let Some((rank, context)) = rank.zip(context) {
                failure_notice::send(&self.messenger, lost, (rank, context));
            }
        }
    }

    /// Looks whether a member reports that it has broken off: because of one whom it alone cannot reach, say.
    #[cold]
    fn look_for_news(&self) -> Result<()> {
        let mut coming = self.coming.lock().unwrap_or_else(PoisonError::into_inner);
        if coming.is_none() {
            let (from, tag) = (SourceSelector::ANY, TagSelector::exact(BROKEN));
            // Without progress, which polls the operations of other groups, which look for news in turn.
            let arrived = self.messenger.claim_arrived(from, tag, self.context)?;
            let Some((message, status)) = arrived else {
                return Ok(());
            };
            let notice = Notice::receive(&self.messenger, message)?;
            let Some(member) = self.members.member(status.source) else {
                // The context was another group's, of which one has heard late. Where that takes a while its request stays.
                notice.read(&self.messenger)?;
                return Ok(());
            };
            *coming = Some((member, notice));
        }
        let Some((member, notice)) = &*coming else {
            return Ok(());
        };
        let member = *member;
        let read = notice.read(&self.messenger)?;
        self.comes.store(read.is_none(), Relaxed);
        let Some(lost) = read else {
            return Ok(());
        };
        *coming = None;
        drop(coming);
        // It may have been a death, of which this rank is to hear too.
        self.deaths.look()?;
        // The one that was lost has a name before its launcher's word of the death is here.
        let lost =
            lost.filter(|lost| lost.member() != self.me && lost.member() < self.members.len());
        Err(self.error(lost.unwrap_or(Lost::Gone(member))))
    }

    /// Returns the member that an operation has failed at, if it is one.
    fn lost_by(&self, error: &Error) -> Option<Lost> {
        let (rank, lost): (_, fn(usize) -> Lost) = match error {
            Error::Gone { member } => return Some(Lost::Gone(*member)),
            Error::Failed(Failure::PeerFailed(rank)) => (*rank, Lost::Dead),
            Error::Failed(
                Failure::PeerLeft(rank) | Failure::Protocol(rank) | Failure::Unreachable(rank),
            ) => (*rank, Lost::Gone),
            // The first contact with it failed, before anybody has said that it did.
            Error::Pml(tagwire_pml::Error::Transport(error)) => (error.peer()?, Lost::Gone),
            _ => return None,
        };
        self.members.member(rank).map(lost)
    }

    fn error(&self, lost: Lost) -> Error {
        let rank = match lost {
            Lost::Dead(member) => self.members.rank(member),
            Lost::Gone(_) => None,
        };
        let member = lost.member();
        rank.map_or(Error::Gone { member }, |rank| {
            Error::Failed(Failure::PeerFailed(rank))
        })
    }
}

#[cfg(test)]
mod tests;
