//! A group of ranks that call collectives together.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};

use tagwire_base::{ContextId, Rank, Tag};
use tagwire_pml::{Failure, Messenger};

use crate::algorithms::Collective;
use crate::board::kind::Kind;
use crate::board::state::TeamBoard;
use crate::error::{Error, Result};
use crate::meetings::Meetings;
use crate::members::Members;
use crate::reduction::Reduction;
use crate::scratch::{Pool, Scratch};
use crate::selection::Selection;
use crate::unwind::NoUnwind;

/// A group of ranks with a context of its own. Dropped, it frees the context.
///
/// Buffers are bytes; lengths are in bytes. Every member calls the same operations in the same order, and one thread of a
/// member at a time.
#[derive(Debug)]
pub struct Team {
    messenger: Arc<Messenger>,
    members: Members,
    me: usize,
    own: ContextId,
    /// The context is freed with the group.
    owns_context: bool,
    /// It only meets in the context of another, to which a failure means nothing.
    is_meeting: bool,
    begun: AtomicU32,
    /// Failures of the job that were looked at.
    seen: AtomicUsize,
    broken: AtomicBool,
    selection: Arc<Selection>,
    pool: Pool,
    segment: usize,
    pub(crate) board: TeamBoard,
    pub(crate) meetings: Meetings,
}

impl Team {
    /// Returns the group of all ranks.
    #[must_use]
    pub fn world(messenger: &Arc<Messenger>, selection: Arc<Selection>) -> Self {
        Self {
            members: Members::world(messenger.size() as usize),
            me: messenger.rank().as_u32() as usize,
            own: ContextId::WORLD,
            owns_context: false,
            is_meeting: false,
            begun: AtomicU32::new(0),
            seen: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            messenger: Arc::clone(messenger),
            pool: Pool::default(),
            board: TeamBoard::default(),
            meetings: Meetings::default(),
            segment: selection.segment(),
            selection,
        }
    }

    /// Returns this rank's number in the group.
    #[must_use]
    pub const fn me(&self) -> usize {
        self.me
    }

    /// Returns how many members there are.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.members.len()
    }

    /// Returns the members.
    #[must_use]
    pub const fn members(&self) -> &Members {
        &self.members
    }

    /// Returns this rank's id of the group's context.
    #[must_use]
    pub const fn context(&self) -> ContextId {
        self.own
    }

    /// Returns the port that the group's messages go through.
    #[must_use]
    pub const fn messenger(&self) -> &Arc<Messenger> {
        &self.messenger
    }

    /// Returns where messages to a member go: its rank, and the id that it has assigned to the context.
    ///
    /// # Errors
    /// [`Error::Argument`] when there is no such member.
    pub fn peer(&self, member: usize) -> Result<(Rank, ContextId)> {
        let (rank, context) = (self.members.rank(member), self.members.context(member));
        rank.zip(context).ok_or_else(|| self.no_member(member))
    }

    /// Returns where messages of a member come from: its rank, and this rank's id of the context.
    pub(crate) fn source(&self, member: usize) -> Result<(Rank, ContextId)> {
        let rank = self.members.rank(member);
        let rank = rank.ok_or_else(|| self.no_member(member))?;
        Ok((rank, self.own))
    }

    #[cold]
    fn no_member(&self, member: usize) -> Error {
        Error::Argument(format!(
            "there is no rank {member} in a group of {}",
            self.size()
        ))
    }

    /// Refuses what begins after a failure.
    pub(crate) fn check(&self) -> Result<()> {
        match self.broken.load(Relaxed) {
            false => Ok(()),
            true => Err(Error::Broken),
        }
    }

    /// Looks whether a member has failed, where any rank has since the last look.
    pub(crate) fn check_members(&self) -> Result<()> {
        match self.messenger.failures() == self.seen.load(Relaxed) {
            true => Ok(()),
            false => self.look_for_failures(),
        }
    }

    #[cold]
    fn look_for_failures(&self) -> Result<()> {
        let failed = self.messenger.failed()?;
        self.seen.store(failed.len(), Relaxed);
        let mut failed = failed.into_iter();
        match failed.find(|rank| self.members.member(*rank).is_some()) {
            Some(rank) => Err(Error::Failed(Failure::PeerFailed(rank))),
            None => Ok(()),
        }
    }

    /// Takes part in nothing any more: what members send that have not heard of it is dropped.
    #[cold]
    pub(crate) fn break_off(&self) {
        if !self.broken.swap(true, Relaxed) && !self.is_meeting {
            let broken = self.messenger.break_collectives(self.own);
            debug_assert!(broken.is_ok(), "this thread has just called: {broken:?}");
        }
    }

    /// Returns the internal tag of the next operation.
    pub(crate) fn next_tag(&self) -> Tag {
        let number = self.begun.fetch_add(1, Relaxed) % Tag::COLLECTIVES;
        Tag::internal(number)
    }

    /// Whether members tell each other what they call.
    pub(crate) fn checks(&self) -> bool {
        self.selection.checks()
    }

    /// Runs an operation to its end.
    pub(crate) fn run<T>(&self, body: impl Future<Output = Result<T>>) -> Result<T> {
        let inside = NoUnwind;
        let mut body = pin!(body);
        let mut context = Context::from_waker(Waker::noop());
        let mut poll = || match body.as_mut().poll(&mut context) {
            Poll::Ready(end) => Ok(Some(end)),
            Poll::Pending => Ok(None),
        };
        let end = self.messenger.progress_until(None, &mut poll);
        std::mem::forget(inside);
        end?
    }

    /// Returns the length of an operation's messages at most.
    pub(crate) const fn segment(&self) -> usize {
        self.segment
    }

    /// Lends memory for an operation.
    pub(crate) fn scratch(&self, len: usize) -> Scratch<'_> {
        self.pool.take(len)
    }

    pub(crate) fn choose(&self, what: Collective, bytes: usize, may_reorder: bool) -> &'static str {
        self.selection.choose(what, self.size(), bytes, may_reorder)
    }

    /// Whether any algorithm gives the result that is asked for.
    pub(crate) fn may_reorder(&self, reduction: &Reduction<'_>) -> bool {
        let depends = self.selection.is_fixed() && reduction.depends_on_tree();
        reduction.operation.is_commutative() && !depends
    }

    /// Whether operations of this kind go by a board where there is one.
    pub(crate) fn may_take_board(&self, _kind: Kind) -> bool {
        !self.selection.checks()
    }

    /// Returns a group with these members, which meet in this group's context.
    pub(crate) fn meeting(&self, members: Members) -> Self {
        let mut meeting = self.derived(members, self.own);
        meeting.owns_context = false;
        meeting.is_meeting = true;
        meeting
    }

    /// Returns a group with these members, whose context this rank calls `own`.
    pub(crate) fn derived(&self, members: Members, own: ContextId) -> Self {
        Self {
            me: members.member(self.messenger.rank()).unwrap_or(0),
            members,
            own,
            owns_context: true,
            is_meeting: false,
            begun: AtomicU32::new(0),
            seen: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            messenger: Arc::clone(&self.messenger),
            selection: Arc::clone(&self.selection),
            pool: Pool::default(),
            board: TeamBoard::default(),
            meetings: Meetings::default(),
            segment: self.segment,
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        if self.owns_context {
            // On a thread that may not call, it stays.
            let _ = self.messenger.close_context(self.own);
        }
    }
}
