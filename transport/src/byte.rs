//! The contract of transports that move bytes and match nothing.

use std::any::Any;
use std::sync::Arc;

use tagwire_base::Rank;

use crate::allocation::Allocation;
use crate::capability::{Capabilities, Limits, Preference};
use crate::channel::{Buffering, OpenChannel, SendChannel};
use crate::data::{RecvBuffer, SendBuffer};
use crate::error::{Error, Result};
use crate::message::{AmHeader, EndpointId, Lane, Token, Upcalls};
use crate::wait::Waiter;

/// What became of a posted operation, at once. Back-pressure is a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Post {
    /// It is under way (or done, where the verb says so).
    Posted,
    /// No room just now: try again after progress. Nothing was sent.
    Busy,
    /// The peer has failed or left. Nothing was sent.
    Gone,
    /// This transport, or this pair of ranks, cannot do it. Use another protocol.
    Unsupported,
}

/// What a message may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// User data: leaves some slots free.
    Data,
    /// Protocol control: may use the slots that data leaves.
    Control,
}

/// Names an offer to the peer; travels in a message of the layer above. Opaque, and checked by
/// the transport when it comes back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Ticket(pub [u64; 2]);

/// What became of an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Offer {
    /// The peer may claim it with this ticket.
    Open(Ticket),
    /// No room just now.
    Busy,
    /// Not this buffer, or not with this peer.
    Unsupported,
}

/// A peer's registered memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteMemory<'a> {
    /// Where, in the peer's terms.
    pub address: u64,
    /// The peer's key for it: opaque, of the transport's own length.
    pub key: &'a [u8],
}

/// The key of a registration, to be given to peers; and the handle to end it with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegistrationHandle {
    /// Names the registration on this side.
    pub id: u64,
    /// What a peer needs to reach the memory.
    pub key: Vec<u8>,
}

/// A transport that moves bytes between this rank and its peers.
///
/// **Who calls.** One rank owns the object and calls it from one thread at a time (see
/// [`Limits::thread_mode`]). Every call but the [waiter's](ByteTransport::waiter) returns without
/// blocking.
///
/// **Life.** Opened by the transport's own constructor from settings and a bootstrap; the
/// owner publishes [`address`](ByteTransport::address) and fetches a peer's on first contact.
/// Peers that contact us appear as [`PeerEvent::Up`](crate::PeerEvent::Up). Dropping the object
/// closes it. After [`leave`](ByteTransport::leave) peers see
/// [`PeerEvent::Left`](crate::PeerEvent::Left); without it, as when the stack unwinds from a panic,
/// [`PeerEvent::Failed`](crate::PeerEvent::Failed).
///
/// **Messages.** `send` carries a 16-byte header and up to [`Limits::max_send`] bytes, copied
/// before it returns. Whether messages to one peer arrive in order says
/// [`Capabilities::ORDERED`].
///
/// **Completion.** Verbs that take a [`Token`] give it back exactly once through
/// [`Upcalls::complete`], from within `progress`; local completion: the buffer is the caller's
/// again. Whether the bytes are at the target is another thing, see
/// [`flush`](ByteTransport::flush). What has not completed when the object is dropped never does:
/// its buffer stays lent, since a peer that is stopped, say, may touch it whenever it goes on.
///
/// **What may fail.** Setting up returns [`Error`]. Traffic returns a [`Post`] or an outcome.
/// After a peer failed, every operation with it completes with
/// [`Outcome::PeerFailed`](crate::Outcome::PeerFailed), and only once the peer can no longer touch the buffer.
pub trait ByteTransport: Any + Send {
    /// The name in settings and reports.
    fn name(&self) -> &'static str;

    /// What this instance offers, after looking at the machine.
    fn capabilities(&self) -> Capabilities;

    /// The sizes within which it works.
    fn limits(&self) -> Limits;

    /// What it offers towards this peer, where that is not the same for all.
    fn towards(&self, to: EndpointId) -> (Capabilities, Limits) {
        let _ = to;
        (self.capabilities(), self.limits())
    }

    /// How messages to `to` are best sent.
    fn preference(&self, to: EndpointId) -> Preference {
        let _ = to;
        Preference::SHARED_MEMORY
    }

    /// What a peer needs to reach this rank; published by the owner.
    fn address(&self) -> Vec<u8>;

    /// The endpoint for `peer`, reached by the `address` that it published. Connecting again
    /// returns the same endpoint.
    ///
    /// # Errors
    /// When the address is not understood or the peer cannot be reached.
    fn connect(&mut self, peer: Rank, address: &[u8]) -> Result<EndpointId>;

    /// Sends a message by copy: `header` and `data`, at most [`Limits::max_send`] bytes. Complete
    /// when it returns [`Post::Posted`].
    fn send(
        &mut self,
        lane: Lane,
        to: EndpointId,
        class: Class,
        header: AmHeader,
        data: &[u8],
    ) -> Post;

    /// As [`send`](ByteTransport::send), with `range` of `data` in whatever shape it is. The
    /// default copies through a bounce buffer on the heap where it is not contiguous.
    fn send_from(
        &mut self,
        lane: Lane,
        to: EndpointId,
        header: AmHeader,
        data: &SendBuffer,
        range: std::ops::Range<usize>,
    ) -> Post {
        if let Some(bytes) = data.bytes(range.clone()) {
            return self.send(lane, to, Class::Data, header, bytes);
        }
        let mut bounce = vec![0; range.len()];
        let filled = data.copy_out(range.start, &mut bounce);
        self.send(lane, to, Class::Data, header, &bounce[..filled])
    }

    /// Sends `header` and all of `data` without a copy; the buffer stays lent until `token`
    /// completes.
    fn send_zero_copy(
        &mut self,
        lane: Lane,
        to: EndpointId,
        header: AmHeader,
        data: &SendBuffer,
        token: Token,
    ) -> Post {
        let _ = (lane, to, header, data, token);
        Post::Unsupported
    }

    /// Writes `data` into a peer's memory. With `immediate`, the peer is told it by
    /// [`Upcalls::notice`] once the bytes are visible there, which is the only order there is between
    /// a notice and anything else; such a put has at least one byte (width: [`Limits::immediate_width`]; of wider values the upper bytes
    /// are lost).
    fn put(
        &mut self,
        lane: Lane,
        to: EndpointId,
        data: &SendBuffer,
        target: RemoteMemory<'_>,
        immediate: Option<u64>,
        token: Token,
    ) -> Post {
        let _ = (lane, to, data, target, immediate, token);
        Post::Unsupported
    }

    /// Reads a peer's memory into `data`.
    fn get(
        &mut self,
        lane: Lane,
        from: EndpointId,
        data: &RecvBuffer,
        source: RemoteMemory<'_>,
        token: Token,
    ) -> Post {
        let _ = (lane, from, data, source, token);
        Post::Unsupported
    }

    /// Completes `token` once everything put to `to` before is visible there (remote
    /// completion).
    fn flush(&mut self, lane: Lane, to: EndpointId, token: Token) -> Post {
        let _ = (lane, to, token);
        Post::Unsupported
    }

    /// Orders: what is put to `to` after this becomes visible after what was put before.
    fn fence(&mut self, lane: Lane, to: EndpointId) -> Post {
        let _ = (lane, to);
        Post::Unsupported
    }

    /// Adds `operand` to the 64-bit word at `target`; completes with the old value as
    /// [`Outcome::Done`](crate::Outcome::Done).
    fn fetch_add(
        &mut self,
        lane: Lane,
        to: EndpointId,
        target: RemoteMemory<'_>,
        operand: u64,
        token: Token,
    ) -> Post {
        let _ = (lane, to, target, operand, token);
        Post::Unsupported
    }

    /// Opens a cooperative transfer of `data` to `to`. Once the peer has claimed it, both sides
    /// move chunks from within `progress`, whoever has time; `token` completes when all bytes
    /// that the claim asked for are there. The buffer stays lent until then.
    fn offer(&mut self, lane: Lane, to: EndpointId, data: &SendBuffer, token: Token) -> Offer {
        let _ = (lane, to, data, token);
        Offer::Unsupported
    }

    /// Joins the transfer that `from` offered under `ticket`: `data` is to be filled from its
    /// start, with as much as both sides have. [`Post::Unsupported`] leaves the offer open, to be
    /// [withdrawn](ByteTransport::withdraw) by its maker.
    fn claim(
        &mut self,
        lane: Lane,
        from: EndpointId,
        ticket: Ticket,
        data: &RecvBuffer,
        token: Token,
    ) -> Post {
        let _ = (lane, from, ticket, data, token);
        Post::Unsupported
    }

    /// Ends an offer that the peer has not claimed and will not claim: the caller's protocol
    /// knows. Its token completes with [`Outcome::Withdrawn`](crate::Outcome::Withdrawn).
    fn withdraw(&mut self, to: EndpointId, ticket: Ticket) {
        let _ = (to, ticket);
    }

    /// Memory of `len` bytes for user data, which peers can reach by other ways than other memory. `None` where this
    /// transport has none, or not so much in a row any more: then any memory serves.
    fn allocate(&mut self, len: usize) -> Option<Allocation> {
        let _ = len;
        None
    }

    /// Opens the receiving end of a partitioned channel: `data`, in transport partitions that end at
    /// `ends`, is to be written by `from`; the buffer has as many bytes for each of its
    /// [rooms](Buffering::rooms). `None` where this transport, or this pair of ranks, has no way of
    /// its own for that. The buffer stays lent until the channel is [closed](crate::RecvChannel::close), in
    /// epochs only.
    fn open_channel(
        &mut self,
        from: EndpointId,
        data: &RecvBuffer,
        ends: &[u64],
        buffering: Buffering,
    ) -> Option<OpenChannel> {
        let _ = (from, data, ends, buffering);
        None
    }

    /// Joins the channel that `to` opened under `key`, with a buffer of the same partitions. Each partition is
    /// lent from its post to the end of the epoch.
    ///
    /// # Errors
    /// When the key is not understood or the channel cannot be reached.
    fn join_channel(
        &mut self,
        to: EndpointId,
        data: &SendBuffer,
        ends: &[u64],
        key: &[u8],
    ) -> Result<Arc<dyn SendChannel>> {
        let _ = (to, data, ends, key);
        Err(Error::Unsupported {
            transport: self.name(),
            what: "partitioned channels",
        })
    }

    /// Makes memory reachable for peers until [`deregister`](ByteTransport::deregister), for as long as which it is
    /// lent.
    ///
    /// # Errors
    /// When the memory cannot be registered.
    fn register(&mut self, data: &RecvBuffer) -> Result<RegistrationHandle> {
        let _ = data;
        Err(Error::Unsupported {
            transport: self.name(),
            what: "memory registration",
        })
    }

    /// Makes memory readable for peers, as the source of their [gets](ByteTransport::get), until
    /// [`deregister`](ByteTransport::deregister), for as long as which it is lent. Nobody writes to it meanwhile.
    ///
    /// # Errors
    /// When the memory cannot be registered.
    fn expose(&mut self, data: &SendBuffer) -> Result<RegistrationHandle> {
        let _ = data;
        Err(Error::Unsupported {
            transport: self.name(),
            what: "memory registration",
        })
    }

    /// Ends a registration. No peer may use its key any more.
    fn deregister(&mut self, handle: RegistrationHandle) {
        let _ = handle;
    }

    /// Moves things on: delivers what has arrived, copies a chunk of each cooperative transfer,
    /// reports completions and peers. Bounded work; returns how many things happened.
    fn progress(&mut self, lane: Lane, upcalls: &mut dyn Upcalls) -> usize;

    /// Looks after the peers: finds the dead, wakes a peer that sleeps on an untaken message.
    /// May take system calls; for slow paths, about ten times a second.
    fn look_after_peers(&mut self, upcalls: &mut dyn Upcalls);

    /// The bootstrap says that `rank` has failed: the same consequences as when the transport
    /// had found out itself.
    fn peer_failed(&mut self, rank: Rank, upcalls: &mut dyn Upcalls);

    /// This rank has done all that it had to: when the object is dropped, that is a goodbye.
    fn leave(&mut self);

    /// What threads of this rank sleep on.
    fn waiter(&self) -> Arc<dyn Waiter>;

    /// One line for each peer in contact, for the hang dump: ring levels, open transfers.
    fn describe(&self, out: &mut dyn std::fmt::Write);
}
