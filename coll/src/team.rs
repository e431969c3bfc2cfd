//! A group of ranks that call collectives together.

use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll, Waker};

use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_pml::{Failure, Messenger, SendMode};
use tagwire_transport::{RecvBuffer, SendBuffer};

use crate::active::Active;
use crate::board::state::TeamBoard;
use crate::error::{Error, Result};
use crate::levels::Levels;
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
    persistent: Mutex<PersistentTags>,
    /// Failures of the job that were looked at.
    seen: AtomicUsize,
    /// How often peers had been looked after at the last look for news.
    looked: AtomicUsize,
    broken: AtomicBool,
    /// The member by whose failure the group was broken.
    lost: OnceLock<Rank>,
    selection: Arc<Selection>,
    levels: OnceLock<Option<Box<Levels>>>,
    pool: Pool,
    segment: usize,
    pub(crate) board: TeamBoard,
    pub(crate) meetings: Meetings,
    active: Arc<Active>,
}

/// How many tags operations take in turn.
const IN_TURN: u32 = Tag::COLLECTIVES - PERSISTENT - 1;

/// The tag of messages by which a member reports that it has broken off. As one of collectives it is dropped by those who have too.
const BROKEN: Tag = Tag::internal(IN_TURN);

/// So many of the tags are for persistent operations, which have one for as long as they are there: others take turns, and
/// would come round to it.
const PERSISTENT: u32 = Tag::COLLECTIVES / 4;

/// The tags of persistent operations. Members make these in the same order, and free them in any.
#[derive(Debug, Default)]
struct PersistentTags {
    made: u32,
    taken: Vec<Tag>,
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
            persistent: Mutex::default(),
            seen: AtomicUsize::new(0),
            looked: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            lost: OnceLock::new(),
            messenger: Arc::clone(messenger),
            pool: Pool::default(),
            board: TeamBoard::default(),
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

    /// Returns what ends the operations under way, once one of them has failed.
    pub(crate) fn broken_by(&self) -> Option<Error> {
        let is_broken = self.broken.load(Relaxed);
        is_broken.then(|| match self.lost.get() {
            Some(rank) => Error::Failed(Failure::PeerFailed(*rank)),
            None => Error::Broken,
        })
    }

    /// Looks whether a member has failed, where any rank has since the last look. What is under way ends where another
    /// operation has found that out, or was broken by something else.
    pub(crate) fn check_members(&self) -> Result<()> {
        if let Some(error) = self.broken_by() {
            return Err(error);
        }
        if self.messenger.failures() != self.seen.load(Relaxed) {
            self.look_for_failures()?;
        }
        let looks = self.messenger.looks();
        if self.looked.swap(looks, Relaxed) == looks || self.is_meeting {
            return Ok(());
        }
        self.look_for_news()
    }

    /// Looks whether a member reports that it has broken off: because of one whom it alone cannot reach, say.
    #[cold]
    fn look_for_news(&self) -> Result<()> {
        let (from, tag) = (SourceSelector::ANY, TagSelector::exact(BROKEN));
        let Some((message, status)) = self.messenger.claim(from, tag, self.own)? else {
            return Ok(());
        };
        // There is nothing in it. Where it takes a while its request stays, once for a group.
        let request = self.messenger.irecv_claimed(RecvBuffer::EMPTY, message)?;
        let _ = self.messenger.take(request);
        // It may have been a death, of which this rank is to hear too.
        self.look_for_failures()?;
        let member = self.members.member(status.source).unwrap_or(usize::MAX);
        Err(Error::Gone { member })
    }

    /// Tells the other members. What cannot be sent is for one that is gone.
    fn tell(&self) {
        for member in (0..self.size()).filter(|member| *member != self.me) {
            if let Ok((rank, context)) = self.peer(member) {
                let (data, mode) = (SendBuffer::EMPTY, SendMode::Buffered);
                let _ = self.messenger.isend(data, rank, BROKEN, context, mode);
            }
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

    /// Returns the member that an operation has failed at: this one, where it is of no other.
    pub(crate) fn culprit(&self, error: &Error) -> usize {
        match error {
            Error::Gone { member } => *member,
            Error::Failed(Failure::PeerFailed(rank)) => {
                self.members.member(*rank).unwrap_or(self.me)
            }
            _ => self.me,
        }
    }

    /// Takes part in nothing any more, because of `error`: what members send that have not heard of it is dropped.
    #[cold]
    pub(crate) fn break_off(&self, error: &Error) {
        if let Error::Failed(Failure::PeerFailed(rank)) = error {
            // The first one found.
            let _ = self.lost.set(*rank);
        }
        if !self.broken.swap(true, Relaxed) && !self.is_meeting {
            self.board.give_up(self.culprit(error));
            let broken = self.messenger.break_collectives(self.own);
            debug_assert!(broken.is_ok(), "this thread has just called: {broken:?}");
            self.tell();
        }
    }

    /// Returns the internal tag of the next operation.
    pub(crate) fn next_tag(&self) -> Tag {
        let number = self.begun.fetch_add(1, Relaxed) % IN_TURN;
        Tag::internal(number)
    }

    /// Returns the internal tag of the next persistent operation.
    pub(crate) fn take_persistent(&self) -> Result<Tag> {
        self.check()?;
        self.messenger.check_thread()?;
        let mut tags = self.persistent();
        let number = tags.made % PERSISTENT;
        let tag = Tag::internal(Tag::COLLECTIVES - PERSISTENT + number);
        if tags.taken.contains(&tag) {
            return Err(Error::Persistent(PERSISTENT as usize));
        }
        tags.made = tags.made.wrapping_add(1);
        tags.taken.push(tag);
        Ok(tag)
    }

    /// Takes the tag of a persistent operation back.
    pub(crate) fn give_persistent(&self, tag: Tag) {
        self.persistent().taken.retain(|taken| *taken != tag);
    }

    fn persistent(&self) -> MutexGuard<'_, PersistentTags> {
        let tags = self.persistent.lock();
        tags.unwrap_or_else(PoisonError::into_inner)
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

    /// Returns a group with these members, which meet in this group's context.
    pub(crate) fn meeting(&self, members: Members) -> Self {
        let mut meeting = self.derived(members, self.own);
        meeting.owns_context = false;
        meeting.is_meeting = true;
        meeting
    }

    /// Returns a group with these members, whose context this rank calls `own`.
    pub(crate) fn derived(&self, members: Members, own: ContextId) -> Self {
        let selection = Selection::of_group(&self.selection, &members);
        Self {
            me: members.member(self.messenger.rank()).unwrap_or(0),
            members,
            own,
            owns_context: true,
            is_meeting: false,
            begun: AtomicU32::new(0),
            persistent: Mutex::default(),
            seen: AtomicUsize::new(0),
            looked: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            lost: OnceLock::new(),
            messenger: Arc::clone(&self.messenger),
            pool: Pool::default(),
            board: TeamBoard::default(),
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
