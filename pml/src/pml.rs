//! The contracts of point-to-point layers, by use: messages, and the rank that has them.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_matching::Stats;
use tagwire_transport::matching::{MatchCounts, MatchLevels};
use tagwire_transport::{Allocation, RecvBuffer, SendBuffer, Transport, Waiter};

use crate::dumps::ContextNames;
use crate::error::{Error, Result};
use crate::losses::Losses;
use crate::peers::Living;
use crate::service::{Terms, Wire};
use crate::services::Services;
use crate::types::{CancelOutcome, Counters, MessageId, RequestId, SendMode, Status, TagLimits};

/// The messages of one rank: a state machine that never blocks.
///
/// **Who calls.** One caller at a time ([`Messenger`](crate::Messenger) sees to that). Nothing
/// happens but inside a call: posting calls move small messages, [`progress`](PointToPoint::progress) does
/// everything else, bulk copies above all. A send for which there is no credit makes progress once,
/// to see whether some has come.
///
/// **Order.** Messages between two ranks in one context match in the order in which they were
/// sent; among the receives that accept a message the earliest posted wins; wildcards obey the
/// same order; an any-tag receive never takes an internal tag (MPI-5.0, section 3.5).
///
/// **Buffers** stay lent until the request is complete, as the buffer's own contract says.
///
/// **What may fail.** A call is refused with an [`Error`]; then nothing was started. How an accepted
/// operation ends is in its [`Status`]: a failed peer fails what involves that peer, a truncated
/// receive fails itself, and everything else goes on.
pub trait PointToPoint: Send {
    /// Which tags, how many contexts and how many posted receives there can be.
    fn tag_limits(&self) -> TagLimits {
        TagLimits::ALL
    }

    /// Starts to send `data` (MPI-5.0, section 3.7.2). `context` is the id that rank `to` has assigned to the
    /// context.
    ///
    /// # Errors
    /// When the rank does not exist, cannot be reached, a buffered send has no room, or the tag is
    /// beyond the layer's [limits](PointToPoint::tag_limits).
    fn isend(
        &mut self,
        data: SendBuffer,
        to: Rank,
        tag: Tag,
        context: ContextId,
        mode: SendMode,
    ) -> Result<RequestId>;

    /// Starts to receive into `data` (MPI-5.0, section 3.7.2).
    ///
    /// # Errors
    /// When the rank does not exist or the engine is full.
    fn irecv(
        &mut self,
        data: RecvBuffer,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Result<RequestId>;

    /// The first message that such a receive would take now; it stays where it is (MPI-5.0, section 3.8.1).
    ///
    /// # Errors
    /// When the rank does not exist.
    fn probe(
        &mut self,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Result<Option<Status>>;

    /// As [`probe`](PointToPoint::probe), and takes the message out of matching (MPI-5.0, section 3.8.2).
    ///
    /// # Errors
    /// When the rank does not exist.
    fn claim(
        &mut self,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Result<Option<(MessageId, Status)>>;

    /// Starts to receive a claimed message into `data` (MPI-5.0, section 3.8.3).
    ///
    /// # Errors
    /// When the message has been received already.
    fn irecv_claimed(&mut self, data: RecvBuffer, message: MessageId) -> Result<RequestId>;

    /// Takes back a posted receive, unless it has matched. Its request completes either way
    /// (MPI-5.0, section 3.8.4).
    ///
    /// # Errors
    /// When the request is stale or a send.
    fn cancel(&mut self, request: RequestId) -> Result<CancelOutcome>;

    /// An inactive persistent send; [`start`](PointToPoint::start) sends. The buffer stays lent until
    /// [`free`](PointToPoint::free) (MPI-5.0, section 3.9).
    ///
    /// # Errors
    /// As [`isend`](PointToPoint::isend).
    fn send_init(
        &mut self,
        data: SendBuffer,
        to: Rank,
        tag: Tag,
        context: ContextId,
        mode: SendMode,
    ) -> Result<RequestId>;

    /// An inactive persistent receive; [`start`](PointToPoint::start) posts it. The buffer stays lent until
    /// [`free`](PointToPoint::free) (MPI-5.0, section 3.9).
    ///
    /// # Errors
    /// As [`irecv`](PointToPoint::irecv).
    fn recv_init(
        &mut self,
        data: RecvBuffer,
        from: SourceSelector,
        tag: TagSelector,
        context: ContextId,
    ) -> Result<RequestId>;

    /// Activates a persistent request (MPI-5.0, section 3.9).
    ///
    /// # Errors
    /// When the request is not persistent, is active, or cannot be started.
    fn start(&mut self, request: RequestId) -> Result<()>;

    /// Frees an inactive persistent request (MPI-5.0, section 3.7.3).
    ///
    /// # Errors
    /// When the request is not persistent, or active.
    fn free(&mut self, request: RequestId) -> Result<()>;

    /// Whether the request is complete (or inactive). A look, without progress.
    fn is_complete(&self, request: RequestId) -> bool;

    /// Takes the end of a complete request: its id is stale afterwards, or, when persistent,
    /// inactive. `None` while it goes on. Without progress (MPI-5.0, section 3.7.3).
    ///
    /// # Errors
    /// When the request is stale.
    fn take(&mut self, request: RequestId) -> Result<Option<Status>>;

    /// Makes progress. Returns how many things happened.
    fn progress(&mut self) -> usize;

    /// What a request is and how far it has come, in words, with its peer and its tag; `None` when
    /// it is stale.
    fn describe(&self, request: RequestId) -> Option<String>;
}

/// What a rank is beside its messages: its peers, its contexts, its transport and what it lends, and its end.
pub trait LocalRank: Send {
    /// This rank, and how many ranks the job has.
    fn identity(&self) -> (Rank, u32);

    /// The transport.
    fn transport(&mut self) -> &mut dyn Transport;

    /// Where `rank`, which is contacted if it was not, is reached, and how.
    ///
    /// # Errors
    /// When the rank does not exist or cannot be reached.
    fn terms(&mut self, rank: Rank) -> Result<Terms>;

    /// The services of the rank, and what they work with.
    fn services(&mut self) -> (&mut Services, Wire<'_>);

    /// The same, to be looked at; `None` while nothing was asked of them.
    fn services_in_use(&self) -> Option<(&Services, &dyn Living)>;

    /// The ranks that are gone.
    fn losses(&mut self) -> &mut Losses;

    /// Looks after peers and members: deaths, sleepers. May take system calls; about ten times
    /// a second while anything waits.
    fn look_after_peers(&mut self);

    /// Opens a context of this rank and returns its id, under which peers send to this rank. Local: no other rank has
    /// a part in it, and each assigns ids of its own.
    ///
    /// # Errors
    /// When all [`TagLimits::contexts`] are in use, the world's among them.
    fn open_context(&mut self) -> Result<ContextId>;

    /// Frees a context of this rank (MPI-5.0, section 7.4.3). Nothing new can be received in it. Receives that are
    /// posted complete as ever, and the id is assigned again only after that. Messages that are here and that nobody
    /// has received are dropped.
    ///
    /// # Errors
    /// When the context does not exist or is the world's.
    fn close_context(&mut self, context: ContextId) -> Result<()>;

    /// Has the messages of collectives in a context dropped from now on, so that members that have not heard of a
    /// failure do not wait for ever with what they send.
    fn break_collectives(&mut self, context: ContextId);

    /// From now on only what is under way is done: posted receives complete as
    /// [`Failure::Closed`](crate::Failure::Closed), new operations are refused.
    fn begin_close(&mut self);

    /// What it is, and what it has done.
    fn statistics(&self) -> Statistics;

    /// What is still open after [`begin_close`](LocalRank::begin_close), by name; `None` when all is
    /// done and the object may be dropped.
    fn open_work(&self) -> Option<String>;

    /// Says goodbye to the job's bootstrap. After everything else.
    fn leave(&mut self);

    /// Writes what this rank waits for: posted receives, unexpected messages, unfinished sends,
    /// credits, peers; contexts by their `names`.
    ///
    /// # Errors
    /// When `out` refuses.
    fn dump(&self, names: &ContextNames, out: &mut dyn fmt::Write) -> fmt::Result;
}

/// Says what is open, if anything is: of each request that is active, whether it is a send, and a rank to be named; and how many
/// other things are pending.
pub(crate) fn open_work(
    active: impl Iterator<Item = (bool, Option<Rank>)>,
    pending: usize,
    what: &str,
) -> Option<String> {
    let (sends, receives): (Vec<_>, Vec<_>) = active.partition(|(is_send, _)| *is_send);
    if sends.len() + receives.len() + pending == 0 {
        return None;
    }
    let ranks = sends.iter().chain(&receives).filter_map(|(_, rank)| *rank);
    let mut ranks: Vec<u32> = ranks.map(Rank::as_u32).collect();
    ranks.sort_unstable();
    ranks.dedup();
    let (sends, receives) = (sends.len(), receives.len());
    Some(format!(
        "{sends} sends, {receives} matched receives, {pending} {what}; with ranks {ranks:?}"
    ))
}

/// What a layer is, and what it has done.
#[derive(Debug, Clone)]
pub struct Statistics {
    /// The layer's name in settings and reports.
    pub layer: &'static str,
    /// What matches messages and receives: an engine by its name, or the library under a transport that matches.
    pub matcher: &'static str,
    /// How many messages took which way.
    pub counters: Counters,
    /// What the engine has done; `None` where the transport matches by a library.
    pub matching: Option<Stats>,
    /// How full the lists of a transport that matches are now; `None` under ob1.
    pub levels: Option<MatchLevels>,
    /// What a transport that matches has done, beside its engine; `None` under ob1.
    pub counts: Option<MatchCounts>,
    /// A line for each way that the transport has found to be the fastest towards a peer, with its figures.
    pub ways: Vec<String>,
}

/// One rank's point-to-point layer: what follows from both contracts.
pub trait Pml: PointToPoint + LocalRank {
    /// The name in settings and reports.
    #[must_use]
    fn name(&self) -> &'static str {
        self.statistics().layer
    }

    /// This rank.
    #[must_use]
    fn rank(&self) -> Rank {
        self.identity().0
    }

    /// How many ranks the job has.
    #[must_use]
    fn size(&self) -> u32 {
        self.identity().1
    }

    /// Whether a receive from `from` could still be matched, now that none of the messages here
    /// matches.
    ///
    /// # Errors
    /// [`Error::Failed`] when the rank is gone, or a failure is not
    /// acknowledged and any source was asked for.
    fn receive_can_happen(&mut self, from: SourceSelector) -> Result<()> {
        let losses = self.losses();
        if losses.is_empty() {
            return Ok(());
        }
        let failure = losses.of_receive(from);
        failure.map_or(Ok(()), |failure| Err(Error::Failed(failure)))
    }

    /// What threads sleep on while nothing arrives.
    fn waiter(&mut self) -> Arc<dyn Waiter> {
        self.transport().waiter()
    }

    /// How long a thread may sleep at most: shorter while something may arrive that wakes nobody.
    #[must_use]
    fn longest_sleep(&self) -> Duration {
        let services = self.services_in_use();
        services.map_or(Duration::MAX, |(services, peers)| {
            services.longest_sleep(peers)
        })
    }

    /// The ranks that have failed, in the order of discovery.
    #[must_use]
    fn failed(&mut self) -> Vec<Rank> {
        self.losses().failed()
    }

    /// Takes note of all failures so far: any-source receives work again among the living.
    /// Returns the ranks.
    fn acknowledge_failures(&mut self) -> Vec<Rank> {
        self.losses().acknowledge()
    }

    /// Memory of `len` bytes that peers on this host can reach by a mapping; see
    /// [`Transport::allocate`].
    fn allocate(&mut self, len: usize) -> Option<Allocation> {
        self.transport().allocate(len)
    }

    /// What matches messages and receives: an engine by its name, or the library under a transport that
    /// matches.
    #[must_use]
    fn matcher(&self) -> &'static str {
        self.statistics().matcher
    }

    /// How many messages took which way so far.
    #[must_use]
    fn counters(&self) -> Counters {
        self.statistics().counters
    }
}

impl<L: PointToPoint + LocalRank + ?Sized> Pml for L {}
