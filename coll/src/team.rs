//! A group of ranks that call collectives together.

use std::fmt::Display;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};

use tagwire_base::unwind::NoUnwind;
use tagwire_base::{ContextId, Rank};
use tagwire_pml::{ContextNames, Messenger, Until};

use crate::active::Active;
use crate::board::state::TeamBoard;
use crate::error::{Error, Result};
use crate::failures::Failures;
use crate::levels::Levels;
use crate::meetings::Meetings;
use crate::members::Members;
use crate::named::{Agreement, operation_name};
use crate::reduction::Reduction;
use crate::scratch::{Pool, Scratch};
use crate::selection::Selection;
use crate::sides::Sides;
use crate::tags::Tags;

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
    sides: Option<Sides>,
    pub(crate) tags: Tags,
    failures: Failures,
    selection: Arc<Selection>,
    levels: OnceLock<Option<Box<Levels>>>,
    pool: Pool,
    segment: usize,
    pub(crate) board: TeamBoard,
    pub(crate) meetings: Meetings,
    active: Arc<Active>,
}

impl Team {
    /// Returns the group of all ranks.
    #[must_use]
    pub fn world(messenger: &Arc<Messenger>, selection: Arc<Selection>) -> Self {
        let members = Members::world(messenger.size() as usize);
        let me = messenger.rank().as_u32() as usize;
        Self {
            failures: Failures::new(messenger, &members, me, ContextId::WORLD),
            members,
            me,
            own: ContextId::WORLD,
            owns_context: false,
            sides: None,
            tags: Tags::default(),
            messenger: Arc::clone(messenger),
            pool: Pool::default(),
            board: TeamBoard::new(selection.board_memory()),
            meetings: Meetings::default(),
            segment: selection.segment(),
            selection,
            levels: OnceLock::new(),
            active: Arc::new(Active::of(messenger)),
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

    /// Returns the two groups that this one is made of, where it was made so (MPI-5.0, section 7.6): its members are those of
    /// both.
    #[must_use]
    pub const fn sides(&self) -> Option<&Sides> {
        self.sides.as_ref()
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
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        self.failures.check()
    }

    /// Returns what ends the operations under way.
    #[inline]
    pub(crate) fn broken_by(&self) -> Option<Error> {
        self.failures.broken_by()
    }

    /// Looks whether a member has failed, or reports that it has broken off, for waits for members. Loads where none has.
    ///
    /// # Errors
    /// [`Error::Failed`] with the rank that has failed, [`Error::Gone`] with the member that another has lost.
    pub fn check_members(&self) -> Result<()> {
        self.failures.check_members()
    }

    /// Returns the member that an operation has failed at: this one, where it is of no other.
    pub(crate) fn failed_member(&self, error: &Error) -> usize {
        self.failures.failed_member(error)
    }

    /// Takes part in nothing any more, because of `error`: what members send that have not heard of it is dropped.
    #[cold]
    pub(crate) fn break_off(&self, error: &Error) {
        if self.failures.enter(error) {
            self.board.give_up(self.failed_member(error));
            self.failures.report();
        }
    }

    /// Whether members tell each other what they call.
    pub(crate) fn checks(&self) -> bool {
        self.selection.checks()
    }

    /// Returns what a wait for the others in `operation` is for, as a dump says it.
    pub(crate) fn waits_for(&self, names: &ContextNames, operation: impl Display) -> String {
        let context = names.own(self.context());
        format!("a collective operation of {context}: {operation}")
    }

    /// Runs an operation to its end.
    pub(crate) fn run<T>(&self, body: impl Future<Output = Result<T>>) -> Result<T> {
        self.run_as::<Agreement, T>(body)
    }

    /// The same of an operation of type `O`, which dumps name.
    pub(crate) fn run_as<O, T>(&self, body: impl Future<Output = Result<T>>) -> Result<T> {
        let inside = NoUnwind::of("a collective");
        let mut body = pin!(body);
        let mut context = Context::from_waker(Waker::noop());
        let mut poll = || match body.as_mut().poll(&mut context) {
            Poll::Ready(end) => Ok(Some(end)),
            Poll::Pending => Ok(None),
        };
        let what = |names: &ContextNames| self.waits_for(names, operation_name::<O>());
        let end = self
            .messenger
            .progress_until(Until::done_with(&what), &mut poll);
        inside.over();
        end?
    }

    /// Returns the nonblocking operations of this rank.
    pub(crate) fn active(&self) -> &Active {
        &self.active
    }

    /// Returns the length of an operation's messages at most.
    pub(crate) const fn segment(&self) -> usize {
        self.segment
    }

    /// Lends memory for an operation.
    pub(crate) fn scratch(&self, len: usize) -> Scratch<'_> {
        self.pool.take(len)
    }

    /// Lends a copy of `data`.
    pub(crate) fn copy(&self, data: &[u8]) -> Scratch<'_> {
        let mut copy = self.scratch(data.len());
        copy.copy_from_slice(data);
        copy
    }

    /// Returns the levels of the group: none where its members are on one host, or each on one of its own.
    pub(crate) fn levels(&self) -> Option<&Levels> {
        let hosts = self.selection.hosts()?;
        let levels = self.levels.get_or_init(|| {
            let shares_memory = self.selection.shares_memory();
            Levels::of(&self.members, self.me, hosts, shares_memory).map(Box::new)
        });
        levels.as_deref()
    }

    pub(crate) fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Whether any algorithm gives the result that is asked for.
    pub(crate) fn may_reorder(&self, reduction: &Reduction<'_>) -> bool {
        let depends = self.selection.is_fixed() && reduction.depends_on_tree();
        reduction.operation.is_commutative() && !depends
    }

    /// Returns a group of two sides with these members, the first ones of the first side.
    pub(crate) fn derived_of_sides(&self, members: Members, own: ContextId, first: usize) -> Self {
        let mut made = self.derived(members, own);
        made.sides = Some(Sides::new(first, made.size(), made.me));
        made
    }

    /// Returns a group with these members, whose context this rank calls `own`.
    pub(crate) fn derived(&self, members: Members, own: ContextId) -> Self {
        let selection = Selection::of_group(&self.selection, &members);
        let me = members.member(self.messenger.rank()).unwrap_or(0);
        Self {
            failures: Failures::new(&self.messenger, &members, me, own),
            me,
            members,
            own,
            owns_context: true,
            sides: None,
            tags: Tags::default(),
            messenger: Arc::clone(&self.messenger),
            pool: Pool::default(),
            board: self.board.beside(),
            meetings: Meetings::default(),
            segment: selection.segment(),
            selection,
            levels: OnceLock::new(),
            active: Arc::clone(&self.active),
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
