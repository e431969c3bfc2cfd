//! The part of a byte transport's contract by which both ranks move the bytes of one message together.

use crate::data::{RecvBuffer, SendBuffer};
use crate::message::{EndpointId, Lane, Token};
use crate::post::Post;
use crate::transport::Transport;

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

/// Transfers that the sender offers and the receiver claims. A transport without them leaves the defaults.
pub trait CooperativeTransfers: Transport {
    /// Opens a cooperative transfer of `data` to `to`. Once the peer has claimed it, both sides
    /// move chunks from within `progress`, whoever has time; `token` completes when all bytes
    /// that the claim asked for are there. The buffer stays lent until then.
    fn offer(&mut self, lane: Lane, to: EndpointId, data: &SendBuffer, token: Token) -> Offer {
        let _ = (lane, to, data, token);
        Offer::Unsupported
    }

    /// Returns whether `data` lies where `to` gets at it by a mapping: a transfer of it is one copy, without a call of the system.
    fn maps(&self, to: EndpointId, data: &SendBuffer) -> bool {
        let _ = (to, data);
        false
    }

    /// Returns whether a message of `data` to `to` is best sent before it is matched, in packets of [`Limits::max_send`]: what was offered
    /// to `to` lately went the same way, and its receiver was there in time. Counts the message, since now and then one is to be
    /// [offered](Self::offer), which shows whether that still holds.
    ///
    /// [`Limits::max_send`]: crate::Limits::max_send
    fn goes_ahead(&mut self, to: EndpointId, data: &SendBuffer) -> bool {
        let _ = (to, data);
        false
    }

    /// Joins the transfer that `from` offered under `ticket`: `data` is to be filled from its
    /// start, with as much as both sides have. [`Post::Unsupported`] leaves the offer open, to be
    /// [withdrawn](CooperativeTransfers::withdraw) by its maker.
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

    /// Opens a cooperative transfer into `data` from `from`, before there is a message. Once the peer [fills](Self::fill) it,
    /// both sides move chunks as in one that was [offered](Self::offer), and `token` completes with the number of bytes
    /// that the peer had. The memory stays lent until then, or until it is [revoked](Self::revoke).
    fn offer_recv(
        &mut self,
        lane: Lane,
        from: EndpointId,
        data: &RecvBuffer,
        token: Token,
    ) -> Offer {
        let _ = (lane, from, data, token);
        Offer::Unsupported
    }

    /// Joins the transfer into memory that `to` has offered under `ticket`: it is to be filled with `data` from its start, with
    /// as much as both sides have. [`Post::Unsupported`] where the memory was revoked, or neither gets at the other's.
    fn fill(
        &mut self,
        lane: Lane,
        to: EndpointId,
        ticket: Ticket,
        data: &SendBuffer,
        token: Token,
    ) -> Post {
        let _ = (lane, to, ticket, data, token);
        Post::Unsupported
    }

    /// Takes back memory that was [offered](Self::offer_recv). Returns whether nobody fills it: its token completes no more.
    /// Where somebody does, it completes as if this had not been called.
    fn revoke(&mut self, from: EndpointId, ticket: Ticket) -> bool {
        let _ = (from, ticket);
        false
    }

    /// Takes back an [offer](Self::offer) that the peer will not claim, as the caller's protocol knows: its token completes no
    /// more.
    fn forget(&mut self, to: EndpointId, ticket: Ticket) {
        let _ = (to, ticket);
    }

    /// Ends an offer that the peer has not claimed and will not claim: the caller's protocol
    /// knows. Its token completes with [`Outcome::Withdrawn`](crate::Outcome::Withdrawn).
    fn withdraw(&mut self, to: EndpointId, ticket: Ticket) {
        let _ = (to, ticket);
    }
}
