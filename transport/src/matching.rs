//! The contract of transports that match messages themselves.
//!
//! The words are those of Portals (Portals 4.3, section 3.12: list entries and matching): a send carries
//! 64 match bits; a receive is posted with match bits, ignore bits and an optional source, and
//! takes the first message for which `(sent ^ posted) & !ignore == 0`.
//!
//! ```text
//!     layer above                        transport
//!     send(bits, data)      ----->       Done | Open ... sent(token)
//!     post(pattern, room)   ----->       Done(end) | Open ... received(token, end)
//!     probe(pattern)        ----->       Found | Nothing | Pending ... probed(token, found)
//!     cancel(token)         ----->       Cancelled | TooLate | Pending ... received(token, end)
//! ```
//!
//! Every verb returns at once what it can: a short message that has been copied, a receive whose
//! message was there. Only what is `Open` or `Pending` is told later, once, from within
//! [`progress`](MatchTransport::progress), under the caller's token.

use tagwire_base::Rank;
use tagwire_matching::Stats;

use crate::byte::ByteTransport;
use crate::capability::{Limits, ThreadMode, WaitObject};
use crate::data::{RecvBuffer, SendBuffer};
use crate::message::{AmHeader, Arrival, EndpointId, Lane, Outcome, PeerEvent, Token};
use crate::post::{Class, Post};
use crate::remote::RemoteAccess;
use crate::transport::Transport;

/// What a receive or a probe accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatchPattern {
    /// The bits to be found in the message.
    pub bits: u64,
    /// The bits in which any value will do.
    pub ignore: u64,
    /// The only source accepted, or any. By rank: a receive needs no contact with its source,
    /// but where [`Directed::AfterConnect`] says so.
    pub source: Option<Rank>,
}

impl MatchPattern {
    /// Whether a message with this envelope is accepted.
    #[inline]
    #[must_use]
    pub fn accepts(&self, envelope: &MatchEnvelope) -> bool {
        (envelope.bits ^ self.bits) & !self.ignore == 0
            && self.source.is_none_or(|source| source == envelope.source)
    }
}

/// What is known of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatchEnvelope {
    /// Who sent it.
    pub source: Rank,
    /// The bits it was sent with.
    pub bits: u64,
    /// Its true length in bytes, which may be more than a receive has room for.
    pub length: u64,
}

/// How a receive ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiveEnd {
    /// It took this message. [`Outcome::Done`] says how many bytes are in the buffer: what there
    /// was room for. Other outcomes say that the bytes did not come, or not all.
    Matched(MatchEnvelope, Outcome),
    /// It was taken back before a message matched.
    Cancelled,
}

/// Names a message that a probe has taken out of matching. The transport's own number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClaimId(pub u64);

/// What a probe found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Found {
    /// The message.
    pub envelope: MatchEnvelope,
    /// Its name, when the probe claimed it.
    pub claim: Option<ClaimId>,
}

/// Why a verb cannot do what it was asked, now or ever. Nothing was started, and nothing but this
/// operation is concerned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// Not a buffer of this shape: give one region.
    Shape,
    /// Match or ignore bits outside of [`MatchLimits::bits`].
    ReservedBits,
    /// Not these ignore bits, see [`MatchLimits::ignorable`].
    Ignore,
    /// Longer than [`MatchLimits::max_message`].
    Length,
    /// No such endpoint, claim, or source in contact.
    Unknown,
}

/// What became of a send, at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Sent {
    /// Complete: the buffer is the caller's again, and the token is not used.
    Done,
    /// Under way, in its place in the order.
    Open,
    /// No room just now: try again after progress, before anything else to this peer. Nothing
    /// was sent.
    Busy,
    /// The peer has failed or left. Nothing was sent.
    Gone,
    /// Not this message.
    Refused(Refusal),
}

/// What became of a receive, at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Posted {
    /// Complete: the message was there. The token is not used.
    Done(ReceiveEnd),
    /// Posted, or its message is on the way.
    Open,
    /// No room just now: try again after progress, before any other receive is posted.
    Busy,
    /// As many receives as there may be are posted ([`MatchLimits::max_posted`]).
    Full,
    /// Not this receive.
    Refused(Refusal),
}

/// What a probe found, at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Probed {
    /// This message.
    Found(Found),
    /// No message that is accepted.
    Nothing,
    /// The result comes as [`MatchUpcalls::probed`], from this rank's own progress alone.
    Pending,
    /// No room just now: try again after progress.
    Busy,
    /// Not this pattern.
    Refused(Refusal),
}

/// What became of a wish to cancel, at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Cancel {
    /// The receive is taken back and its buffer the caller's again. Nothing is told any more.
    Cancelled,
    /// A message has matched; [`MatchUpcalls::received`] reports the end, as if nothing was asked.
    TooLate,
    /// [`MatchUpcalls::received`] will tell which of the two, from this rank's own progress alone.
    Pending,
}

/// How receives from one source alone are had.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Directed {
    /// By [`MatchPattern::source`].
    BySource,
    /// By [`MatchPattern::source`], once that rank was connected to.
    AfterConnect,
    /// Not at all, or not to be trusted: the layer above puts the source into the match bits.
    /// [`MatchEnvelope::source`] is right all the same.
    InBits,
}

/// The sizes within which a matching transport works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MatchLimits {
    /// The match bits that users may set; the others are the transport's own.
    pub bits: u64,
    /// The bits that a receive may ignore. It ignores all of them, or none, where
    /// `ignorable_in_part` is not set.
    pub ignorable: u64,
    /// Any part of `ignorable` may be ignored.
    pub ignorable_in_part: bool,
    /// Receives from one source.
    pub directed: Directed,
    /// Longest message, in bytes.
    pub max_message: u64,
    /// Longest message that a send can be [`Sent::Done`] with, in bytes.
    pub max_short: usize,
    /// Most posted receives.
    pub max_posted: usize,
    /// How many lanes there are.
    pub lanes: usize,
    /// Memory that an active peer costs in one direction, in bytes.
    pub memory_per_peer: usize,
    /// Threads.
    pub thread_mode: ThreadMode,
    /// What a sleeper sleeps on.
    pub wait_object: WaitObject,
}

impl MatchLimits {
    /// The limits of a transport that matches everything, with one lane.
    pub const UNLIMITED: Self = Self {
        bits: u64::MAX,
        ignorable: u64::MAX,
        ignorable_in_part: true,
        directed: Directed::BySource,
        max_message: u64::MAX,
        max_short: 0,
        max_posted: usize::MAX,
        lanes: 1,
        memory_per_peer: 0,
        thread_mode: ThreadMode::Transport,
        wait_object: WaitObject::None,
    };
}

/// How full a rank's lists are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MatchLevels {
    /// Posted receives that wait.
    pub posted: usize,
    /// Unexpected messages whose envelope is kept here.
    pub unexpected: usize,
    /// Bytes of payload that are kept here for unexpected messages.
    pub unexpected_bytes: usize,
    /// Messages of this rank that it keeps itself, because its peers have no room for them.
    pub held: usize,
}

/// What a rank's matching has done since the rank was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MatchCounts {
    /// Long messages that came before their receive, so that only the envelope was kept and the bytes were fetched after the
    /// match; 0 where nobody counts.
    pub fetched: u64,
    /// Messages of this rank that it kept back first, because their receiver had no room for them; 0 where nobody counts.
    pub kept_back: u64,
    /// What the engine that holds this rank's queues has done; `None` where a library matches.
    pub engine: Option<Stats>,
}

impl MatchCounts {
    /// Returns the counts of a library that tells of nothing but the messages whose bytes were fetched.
    #[must_use]
    pub const fn of_library(fetched: u64) -> Self {
        Self {
            fetched,
            kept_back: 0,
            engine: None,
        }
    }
}

/// What a matching transport reports to the layer above, from within `progress`. An upcall must not
/// call the transport.
pub trait MatchUpcalls {
    /// The send that was [`Sent::Open`] under `token` has ended.
    fn sent(&mut self, token: Token, outcome: Outcome);

    /// The receive that was [`Posted::Open`] under `token` has ended.
    fn received(&mut self, token: Token, end: ReceiveEnd);

    /// The probe that was [`Probed::Pending`] under `token` has its result.
    fn probed(&mut self, token: Token, found: Option<Found>);

    /// Something happened to a peer.
    fn peer(&mut self, event: PeerEvent);

    /// A [packet](MatchRemote::send_packet) has arrived. Nobody sends any to a layer that sends none.
    fn packet(&mut self, arrival: Arrival<'_>) {
        let _ = arrival;
    }

    /// The [access](crate::RemoteAccess) that was given `token` has ended.
    fn complete(&mut self, token: Token, outcome: Outcome) {
        let _ = (token, outcome);
    }

    /// As [`Upcalls::notice`](crate::Upcalls::notice).
    fn notice(&mut self, immediate: u64) {
        let _ = immediate;
    }
}

/// What a transport that matches has beside its messages: access to the memory of peers, and packets of the layer above.
/// [`MatchTransport::progress`] reports what comes of both.
///
/// The tokens of accesses have their highest bit set, and the first words of packets' headers have 0 in their highest byte:
/// others are the transport's own.
pub trait MatchRemote: RemoteAccess {
    /// The sizes within which access and packets work. What there is of access, its
    /// [capabilities](Transport::capabilities) report.
    fn remote_limits(&self) -> Limits;

    /// Sends a packet by copy: `header` and at most [`Limits::max_send`] bytes. Complete when it returns [`Post::Posted`]. Packets to one peer keep their order among
    /// themselves, and none with messages.
    fn send_packet(&mut self, to: EndpointId, header: AmHeader, data: &[u8]) -> Post;
}

impl<T: ByteTransport> MatchRemote for T {
    fn remote_limits(&self) -> Limits {
        self.limits()
    }

    fn send_packet(&mut self, to: EndpointId, header: AmHeader, data: &[u8]) -> Post {
        self.send(Lane(0), to, Class::Control, header, data)
    }
}

/// A transport that matches messages itself.
///
/// **Who calls, life.** As for [`ByteTransport`]: one rank owns the object, one thread at a time
/// calls it, nothing blocks; a peer's address is fetched on first contact, peers that contact us
/// appear as [`PeerEvent::Up`]. Dropping the object after [`leave`](Transport::leave) closes it, and peers see
/// [`PeerEvent::Left`]. Before that the layer above makes progress until [`unfinished`](MatchTransport::unfinished) is 0. It reaches its own rank.
/// A transport may implement both contracts.
///
/// **Order.** Messages from one rank to another match in the order of their sends, whatever their
/// length; a message matches the earliest posted receive that accepts it, a receive or probe the
/// earliest message. Nobody needs to call for that but whom the message concerns: a sender may match
/// for its receiver, but need not.
///
/// **Bounds.** What a rank keeps of unexpected messages is bounded; past the bound their senders
/// keep them, in their order, and their sends are [`Sent::Open`]. Receives and probes find such messages as any
/// others, by progress of both sides, whatever else is or is not received: no legal program
/// hangs on a bound. [`Sent::Busy`] ends by progress of both sides alone.
///
/// **Completion.** A token is the caller's and comes back exactly once, or never where the verb
/// returned that it is not used. A send ends when the buffer is the caller's again; a synchronous
/// one also not before a receive has matched. Buffers stay lent until then.
///
/// **Failures.** Before a peer's end is told, what it sent and can be had is in matching; what cannot
/// be had any more (the bytes of a long message) is taken out of it, but for what was claimed or matched. Then
/// [`MatchUpcalls::peer`] reports, and after that the operations that depend on the peer end with
/// [`Outcome::PeerFailed`], each once its buffer can no longer be touched: sends to it, receives
/// that have matched a message of it. Receives that wait for it unmatched stay posted: the layer above
/// knows whom they can still hear from, and cancels them.
///
/// **What may fail.** Setting up returns [`Error`](crate::Error). Everything else returns a value.
pub trait MatchTransport: Transport {
    /// The sizes within which it works.
    fn match_limits(&self) -> MatchLimits;

    /// Sends all of `data` under `bits`; complete once the buffer is the caller's again, and,
    /// when `synchronous`, a receive has matched. Any shape of buffer may be taken where the
    /// message is short; a longer one of several regions may be [refused](Refusal::Shape).
    fn send(
        &mut self,
        lane: Lane,
        to: EndpointId,
        bits: u64,
        data: &SendBuffer,
        synchronous: bool,
        token: Token,
    ) -> Sent;

    /// Posts a receive. It is matched in the order of posting. A buffer of several regions may be
    /// [refused](Refusal::Shape).
    fn post(
        &mut self,
        lane: Lane,
        pattern: MatchPattern,
        data: &RecvBuffer,
        token: Token,
    ) -> Posted;

    /// Looks for the earliest message that `pattern` accepts and leaves it; with `claim`, takes it
    /// out of matching.
    fn probe(&mut self, lane: Lane, pattern: MatchPattern, claim: bool, token: Token) -> Probed;

    /// Receives a claimed message, which only [`Posted::Done`] and [`Posted::Open`] use up.
    fn receive_claimed(
        &mut self,
        lane: Lane,
        claim: ClaimId,
        data: &RecvBuffer,
        token: Token,
    ) -> Posted;

    /// Takes back the receive that was posted under `token`, unless it has matched (MPI-5.0, section 3.8.4).
    fn cancel(&mut self, lane: Lane, token: Token) -> Cancel;

    /// Makes progress: takes what has arrived, copies a chunk of each transfer, reports
    /// completions and peers. Bounded work; returns how many things happened.
    fn progress(&mut self, lane: Lane, upcalls: &mut dyn MatchUpcalls) -> usize;

    /// Looks after the peers: finds the dead, wakes a peer that sleeps on an untaken message.
    /// May take system calls; for slow paths, about ten times a second.
    fn look_after_peers(&mut self, upcalls: &mut dyn MatchUpcalls);

    /// The bootstrap says that `rank` has failed: the same consequences as when the transport
    /// had found out itself. What it sent before is delivered first, so that its failure and what was under way with it may
    /// be reported by later calls of progress.
    fn peer_failed(&mut self, rank: Rank, upcalls: &mut dyn MatchUpcalls);

    /// Lends what there is beside messages. `None` where there is nothing.
    fn remote(&mut self) -> Option<&mut dyn MatchRemote> {
        None
    }

    /// How many things this rank still has to do for its peers, besides the operations that are
    /// open (a notice to be sent, say).
    fn unfinished(&self) -> usize {
        0
    }

    /// How full the lists are. For tests and reports; may count.
    fn levels(&self) -> MatchLevels;

    /// What matches, for reports: one of our engines by its name, or else the library.
    fn matcher(&self) -> &'static str {
        self.name()
    }

    /// What was done so far. For reports.
    fn counts(&self) -> MatchCounts {
        MatchCounts::default()
    }

    /// Shows the unexpected messages that are kept here, in no order that counts. For the hang dump.
    fn visit_unexpected(&self, visit: &mut dyn FnMut(&MatchEnvelope));
}
