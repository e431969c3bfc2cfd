//! A group of ranks that call collectives together.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};

use tagwire_base::{ContextId, Rank, Tag};
use tagwire_pml::{Failure, Messenger};

use crate::allgather;
use crate::call::{Call, check_length, check_root};
use crate::error::{Error, Result};
use crate::members::Members;
use crate::select::{Collective, Selection};
use crate::{Reduction, allreduce, alltoall, barrier, broadcast, gather, reduce};
use crate::{reduce_scatter, scan, scatter};

/// The tag of messages by which a subset makes its group. They are of no collective, so that those who are left after a
/// failure can meet.
const MEETING: Tag = Tag::internal(Tag::COLLECTIVES);

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
    begun: AtomicU32,
    /// Failures of the job that were looked at.
    seen: AtomicUsize,
    broken: AtomicBool,
    selection: Arc<Selection>,
}

impl Team {
    /// Returns the group of all ranks.
    #[must_use]
    pub fn world(messenger: &Arc<Messenger>, selection: Arc<Selection>) -> Self {
        Self {
            members: Members::world(messenger.size() as usize),
            me: messenger.rank().as_u32() as usize,
            own: ContextId::WORLD,
            begun: AtomicU32::new(0),
            seen: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            messenger: Arc::clone(messenger),
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
        if !self.broken.swap(true, Relaxed) {
            let broken = self.messenger.break_collectives(self.own);
            debug_assert!(broken.is_ok(), "this thread has just called: {broken:?}");
        }
    }

    /// Begins an operation.
    pub(crate) fn begin(&self) -> Call<'_> {
        let number = self.begun.fetch_add(1, Relaxed) % Tag::COLLECTIVES;
        Call::new(self, Tag::internal(number))
    }

    /// Runs an operation to its end.
    fn run<T>(&self, body: impl Future<Output = Result<T>>) -> Result<T> {
        let mut body = pin!(body);
        let mut context = Context::from_waker(Waker::noop());
        let mut poll = || match body.as_mut().poll(&mut context) {
            Poll::Ready(end) => Ok(Some(end)),
            Poll::Pending => Ok(None),
        };
        self.messenger.progress_until(None, &mut poll)?
    }

    pub(crate) fn choose(&self, what: Collective, bytes: usize, commutes: bool) -> &'static str {
        self.selection.choose(what, self.size(), bytes, commutes)
    }

    /// Returns once all members have called it (MPI-5.0, section 6.3).
    ///
    /// # Errors
    /// When a member fails.
    pub fn barrier(&self) -> Result<()> {
        self.run(barrier::barrier(self.begin()))
    }

    /// Gives the bytes of `root` to all (MPI-5.0, section 6.4).
    ///
    /// # Errors
    /// When there is no such member, a member fails, or lengths differ.
    pub fn broadcast(&self, data: &mut [u8], root: usize) -> Result<()> {
        check_root(self, root)?;
        let algorithm = self.choose(Collective::Broadcast, data.len(), true);
        self.run(broadcast::broadcast(self.begin(), algorithm, data, root))
    }

    /// Combines the `input` of all; `root` gets the result in `out`, which is for it alone
    /// (MPI-5.0, section 6.9.1).
    ///
    /// # Errors
    /// When there is no such member, the operation is not defined for the type, a member fails, or lengths differ.
    pub fn reduce(
        &self,
        reduction: Reduction<'_>,
        input: &[u8],
        out: Option<&mut [u8]>,
        root: usize,
    ) -> Result<()> {
        check_root(self, root)?;
        reduction.check(input.len())?;
        if let Some(out) = &out {
            check_length("the buffer of the result", out.len(), input.len())?;
        } else if self.me == root {
            return Err(Error::Argument(
                "the root of a reduction needs room for the result".to_owned(),
            ));
        }
        self.run(reduce::reduce(self.begin(), reduction, input, out, root))
    }

    /// Combines the data of all; every member gets the result in its place (MPI-5.0, section 6.9.6).
    ///
    /// # Errors
    /// When the operation is not defined for the type, a member fails, or lengths differ.
    pub fn allreduce(&self, reduction: Reduction<'_>, data: &mut [u8]) -> Result<()> {
        reduction.check(data.len())?;
        let commutes = reduction.operation.is_commutative();
        let algorithm = self.choose(Collective::Allreduce, data.len(), commutes);
        self.run(allreduce::allreduce(
            self.begin(),
            algorithm,
            reduction,
            data,
        ))
    }

    /// Combines the `input` of all, and gives each member the part of its number in `out`; `lengths` are those of the parts
    /// (MPI-5.0, section 6.10).
    ///
    /// # Errors
    /// As [`allreduce`](Self::allreduce).
    pub fn reduce_scatter(
        &self,
        reduction: Reduction<'_>,
        input: &[u8],
        lengths: &[usize],
        out: &mut [u8],
    ) -> Result<()> {
        self.check_lengths(lengths, input.len())?;
        lengths
            .iter()
            .try_for_each(|length| reduction.check(*length))?;
        check_length("the buffer of the result", out.len(), lengths[self.me])?;
        let commutes = reduction.operation.is_commutative();
        let algorithm = self.choose(Collective::ReduceScatter, input.len(), commutes);
        let call = self.begin();
        self.run(reduce_scatter::reduce_scatter(
            call, algorithm, reduction, input, lengths, out,
        ))
    }

    /// Combines the data of all members up to this one (MPI-5.0, section 6.11.1).
    ///
    /// # Errors
    /// As [`allreduce`](Self::allreduce).
    pub fn scan(&self, reduction: Reduction<'_>, data: &mut [u8]) -> Result<()> {
        reduction.check(data.len())?;
        self.run(scan::scan(self.begin(), reduction, data))
    }

    /// Combines the data of all members before this one; that of member 0 stays as it is
    /// (MPI-5.0, section 6.11.2).
    ///
    /// # Errors
    /// As [`allreduce`](Self::allreduce).
    pub fn exscan(&self, reduction: Reduction<'_>, data: &mut [u8]) -> Result<()> {
        reduction.check(data.len())?;
        self.run(scan::exscan(self.begin(), reduction, data))
    }

    /// Gives the `own` bytes of each member to all: in `out`, in the order of members (MPI-5.0, section 6.7).
    ///
    /// # Errors
    /// When a member fails, or lengths differ.
    pub fn allgather(&self, own: &[u8], out: &mut [u8]) -> Result<()> {
        check_length("the buffer of all", out.len(), own.len() * self.size())?;
        let algorithm = self.choose(Collective::Allgather, out.len(), true);
        self.run(allgather::allgather(self.begin(), algorithm, own, out))
    }

    /// The same with parts of different `lengths`.
    ///
    /// # Errors
    /// As [`allgather`](Self::allgather).
    pub fn allgatherv(&self, own: &[u8], lengths: &[usize], out: &mut [u8]) -> Result<()> {
        self.check_lengths(lengths, out.len())?;
        check_length("the own part", own.len(), lengths[self.me])?;
        self.run(allgather::allgatherv(self.begin(), own, lengths, out))
    }

    /// Gives the `own` bytes of each member to `root`: in `out`, which is for it alone, in the order of members
    /// (MPI-5.0, section 6.5).
    ///
    /// # Errors
    /// When there is no such member, a member fails, or lengths differ.
    pub fn gather(&self, own: &[u8], out: Option<&mut [u8]>, root: usize) -> Result<()> {
        check_root(self, root)?;
        if self.me == root {
            let given = out.as_ref().map_or(0, |out| out.len());
            check_length("the buffer of all", given, own.len() * self.size())?;
        }
        let algorithm = self.choose(Collective::Gather, own.len(), true);
        self.run(gather::gather(self.begin(), algorithm, own, out, root))
    }

    /// The same with parts of different `lengths`, which `root` alone has to know.
    ///
    /// # Errors
    /// As [`gather`](Self::gather).
    pub fn gatherv(
        &self,
        own: &[u8],
        lengths: &[usize],
        out: Option<&mut [u8]>,
        root: usize,
    ) -> Result<()> {
        check_root(self, root)?;
        if self.me == root {
            self.check_lengths(lengths, out.as_ref().map_or(0, |out| out.len()))?;
            check_length("the own part", own.len(), lengths[root])?;
        }
        self.run(gather::gatherv(self.begin(), own, lengths, out, root))
    }

    /// Gives each member its part of the `input` of `root`, equal ones in the order of members
    /// (MPI-5.0, section 6.6).
    ///
    /// # Errors
    /// When there is no such member, a member fails, or lengths differ.
    pub fn scatter(&self, input: Option<&[u8]>, own: &mut [u8], root: usize) -> Result<()> {
        check_root(self, root)?;
        if self.me == root {
            let given = input.map_or(0, <[u8]>::len);
            check_length("the buffer of all", given, own.len() * self.size())?;
        }
        let algorithm = self.choose(Collective::Scatter, own.len(), true);
        self.run(scatter::scatter(self.begin(), algorithm, input, own, root))
    }

    /// The same with parts of different `lengths`, which `root` alone has to know.
    ///
    /// # Errors
    /// As [`scatter`](Self::scatter).
    pub fn scatterv(
        &self,
        input: Option<&[u8]>,
        lengths: &[usize],
        own: &mut [u8],
        root: usize,
    ) -> Result<()> {
        check_root(self, root)?;
        if self.me == root {
            self.check_lengths(lengths, input.map_or(0, <[u8]>::len))?;
            check_length("the own part", own.len(), lengths[root])?;
        }
        self.run(scatter::scatterv(self.begin(), input, lengths, own, root))
    }

    /// Gives every member one of the equal blocks of `input`, and gets one of each in `out` (MPI-5.0, section 6.8).
    ///
    /// # Errors
    /// When a member fails, or lengths differ.
    pub fn alltoall(&self, input: &[u8], out: &mut [u8]) -> Result<()> {
        check_length("the buffer of what comes", out.len(), input.len())?;
        if !input.len().is_multiple_of(self.size()) {
            return Err(Error::Argument(format!(
                "{} bytes are not {} equal blocks",
                input.len(),
                self.size()
            )));
        }
        let block = input.len() / self.size();
        let algorithm = self.choose(Collective::Alltoall, block, true);
        self.run(alltoall::alltoall(self.begin(), algorithm, input, out))
    }

    /// The same with blocks of different lengths: `to` of those that go to each member, `from` of those that come.
    ///
    /// # Errors
    /// As [`alltoall`](Self::alltoall).
    pub fn alltoallv(
        &self,
        input: &[u8],
        to: &[usize],
        out: &mut [u8],
        from: &[usize],
    ) -> Result<()> {
        self.check_lengths(to, input.len())?;
        self.check_lengths(from, out.len())?;
        check_length("the block for oneself", from[self.me], to[self.me])?;
        self.run(alltoall::alltoallv(self.begin(), input, to, out, from))
    }

    fn check_lengths(&self, lengths: &[usize], total: usize) -> Result<()> {
        if lengths.len() != self.size() {
            return Err(Error::Argument(format!(
                "{} lengths were given for a group of {}",
                lengths.len(),
                self.size()
            )));
        }
        let sum = lengths
            .iter()
            .try_fold(0usize, |sum, length| sum.checked_add(*length));
        check_length("the buffer", total, sum.unwrap_or(usize::MAX))
    }

    /// Makes another group of the same members, with a context of its own (MPI-5.0, section 7.4.2).
    ///
    /// # Errors
    /// When a member fails or has no context left.
    pub fn duplicate(&self) -> Result<Self> {
        let ranks = self.members.ranks().collect();
        self.with_context(|own| {
            let ids = self.exchange_ids(self.begin(), own)?;
            Ok((ranks, ids))
        })
        .map(|(members, own)| self.derived(members, own))
    }

    /// Makes a group of the members that give the same `color`, in the order of their keys, and of their numbers where keys
    /// are equal (MPI-5.0, section 7.4.2). Returns `None` to a member that gives no color.
    ///
    /// # Errors
    /// When a member fails or has no context left.
    pub fn split(&self, color: Option<u32>, key: i32) -> Result<Option<Self>> {
        const ENTRY: usize = 11;
        let (members, own) = self.with_context(|own| {
            let mut entry = [0; ENTRY];
            entry[0] = u8::from(color.is_some());
            entry[1..5].copy_from_slice(&color.unwrap_or(0).to_ne_bytes());
            entry[5..9].copy_from_slice(&key.to_ne_bytes());
            entry[9..].copy_from_slice(&own.as_u16().to_ne_bytes());
            let mut all = vec![0; ENTRY * self.size()];
            self.allgather(&entry, &mut all)?;
            let entries = all.as_chunks::<ENTRY>().0.iter().enumerate();
            let alike = entries.filter(|(_, other)| other[..5] == entry[..5]);
            let mut alike: Vec<_> = alike
                .map(|(member, other)| {
                    let [_, _, _, _, _, a, b, c, d, e, f] = *other;
                    let key = i32::from_ne_bytes([a, b, c, d]);
                    (key, member, ContextId::new(u16::from_ne_bytes([e, f])))
                })
                .collect();
            alike.sort_by_key(|(key, member, _)| (*key, *member));
            let ranks = alike.iter().filter_map(|it| self.members.rank(it.1));
            Ok((ranks.collect(), alike.iter().map(|it| it.2).collect()))
        })?;
        if color.is_none() {
            self.messenger.close_context(own)?;
            return Ok(None);
        }
        Ok(Some(self.derived(members, own)))
    }

    /// Makes a group of `members` of this one, in that order. They alone call this (MPI-5.0, section 7.4.2,
    /// `MPI_Comm_create_group`).
    ///
    /// # Errors
    /// When this rank is not among them or one is named twice; when a member fails or has no context left.
    pub fn subset(&self, members: &[usize]) -> Result<Self> {
        let ranks: Vec<Rank> = members
            .iter()
            .map(|member| self.peer(*member).map(|(rank, _)| rank))
            .collect::<Result<_>>()?;
        let mut sorted = members.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let me = members.iter().position(|member| *member == self.me);
        let (Some(me), true) = (me, sorted.len() == members.len()) else {
            return Err(Error::Argument(
                "the members of a subset are named once each, this rank among them".to_owned(),
            ));
        };
        // They meet in this group's context, under tags that no operation of it has.
        let contexts = members
            .iter()
            .filter_map(|member| self.members.context(*member));
        let meeting = Self {
            members: Members::new(ranks.clone(), contexts.collect()),
            me,
            own: self.own,
            begun: AtomicU32::new(0),
            seen: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            messenger: Arc::clone(&self.messenger),
            selection: Arc::clone(&self.selection),
        };
        let call = Call::new(&meeting, MEETING);
        let made = meeting.with_context(|own| Ok((ranks, meeting.exchange_ids(call, own)?)));
        // Its context is this group's.
        let meeting = std::mem::ManuallyDrop::new(meeting);
        made.map(|(members, own)| meeting.derived(members, own))
    }

    /// Opens a context for what `make` returns the ranks and ids of; frees it where that fails.
    fn with_context(
        &self,
        make: impl FnOnce(ContextId) -> Result<(Vec<Rank>, Vec<ContextId>)>,
    ) -> Result<(Members, ContextId)> {
        let own = self.messenger.open_context()?;
        match make(own) {
            Ok((ranks, ids)) => Ok((Members::new(ranks, ids), own)),
            Err(error) => {
                self.messenger.close_context(own)?;
                Err(error)
            }
        }
    }

    /// Returns the id that each member has assigned.
    fn exchange_ids(&self, call: Call<'_>, own: ContextId) -> Result<Vec<ContextId>> {
        let mut all = vec![0; 2 * self.size()];
        let algorithm = self.choose(Collective::Allgather, all.len(), true);
        let own = own.as_u16().to_ne_bytes();
        self.run(allgather::allgather(call, algorithm, &own, &mut all))?;
        let ids = all.as_chunks::<2>().0.iter();
        Ok(ids
            .map(|id| ContextId::new(u16::from_ne_bytes(*id)))
            .collect())
    }

    fn derived(&self, members: Members, own: ContextId) -> Self {
        Self {
            me: members.member(self.messenger.rank()).unwrap_or(0),
            members,
            own,
            begun: AtomicU32::new(0),
            seen: AtomicUsize::new(0),
            broken: AtomicBool::new(false),
            messenger: Arc::clone(&self.messenger),
            selection: Arc::clone(&self.selection),
        }
    }
}

impl Drop for Team {
    fn drop(&mut self) {
        if self.own != ContextId::WORLD {
            // On a thread that may not call, it stays.
            let _ = self.messenger.close_context(self.own);
        }
    }
}
