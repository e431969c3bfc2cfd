//! The contract of transports that move bytes and match nothing.

use std::any::Any;

use tagwire_base::Rank;

use crate::body::Body;
use crate::capability::{Capabilities, Limits, Preference};
use crate::cooperative::CooperativeTransfers;
use crate::data::SendBuffer;
use crate::message::{AmHeader, EndpointId, Lane, Token, Upcalls};
use crate::post::{Class, Post};
use crate::remote::RemoteAccess;

/// A transport that moves bytes between this rank and its peers.
///
/// **Who calls.** One rank owns the object and calls it from one thread at a time (see
/// [`Limits::thread_mode`]). Every call but the [waiter's](crate::Transport::waiter) returns without
/// blocking.
///
/// **Life.** Opened by the transport's own constructor from settings and a bootstrap; the
/// owner publishes [`address`](crate::Transport::address) and fetches a peer's on first contact.
/// Peers that contact us appear as [`PeerEvent::Up`](crate::PeerEvent::Up). Dropping the object
/// closes it. After [`leave`](crate::Transport::leave), which progress goes on with until the rank
/// [has left](crate::Transport::has_left), peers see
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
/// [`flush`](RemoteAccess::flush). What has not completed when the object is dropped never does:
/// its buffer stays lent, since a peer that is stopped, say, may touch it whenever it goes on.
///
/// **What may fail.** Setting up returns [`Error`](crate::Error). Traffic returns a [`Post`] or an outcome.
/// After a peer failed, every operation with it completes with
/// [`Outcome::PeerFailed`](crate::Outcome::PeerFailed), and only once the peer can no longer touch the buffer.
pub trait ByteTransport: RemoteAccess + CooperativeTransfers {
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

    /// As [`send`](ByteTransport::send) of data, whatever the shape of `body` is: it is copied to where the transport
    /// keeps the messages that it sends, without a copy of its own in between.
    fn send_from(&mut self, lane: Lane, to: EndpointId, header: AmHeader, body: &Body<'_>) -> Post;

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

    /// Moves things on: delivers what has arrived, copies a chunk of each cooperative transfer,
    /// reports completions and peers. Bounded work; returns how many things happened.
    fn progress(&mut self, lane: Lane, upcalls: &mut dyn Upcalls) -> usize;

    /// Looks after the peers: finds the dead, wakes a peer that sleeps on an untaken message.
    /// May take system calls; for slow paths, about ten times a second.
    fn look_after_peers(&mut self, upcalls: &mut dyn Upcalls);

    /// The bootstrap says that `rank` has failed: the same consequences as when the transport
    /// had found out itself. What it sent before is delivered first, so that its failure and what was under way with it may
    /// be reported by later calls of progress.
    fn peer_failed(&mut self, rank: Rank, upcalls: &mut dyn Upcalls);

    /// The bootstrap says that `rank` has left in good order. A transport that loses messages may have lost its goodbye: contact with it
    /// ends, behind what has come. Others hear the goodbye itself.
    fn peer_left(&mut self, rank: Rank, upcalls: &mut dyn Upcalls) {
        let _ = (rank, upcalls);
    }
}

/// Returns the transport by its type, or as it was where it has another one: for an owner who calls a known one in line.
///
/// # Errors
/// The transport.
pub fn downcast<T: ByteTransport>(
    transport: Box<dyn ByteTransport>,
) -> std::result::Result<Box<T>, Box<dyn ByteTransport>> {
    if !(&*transport as &dyn Any).is::<T>() {
        return Err(transport);
    }
    let known = (transport as Box<dyn Any>).downcast();
    Ok(known.expect("it is: it was just asked"))
}
