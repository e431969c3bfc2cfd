//! The contract of transports that match messages themselves.
//!
//! The words are those of Portals 4 (section 3.12, list entries and matching): a send carries
//! 64 match bits; a receive is posted with match bits, ignore bits and an optional source, and
//! takes the first message for which `(sent ^ posted) & !ignore == 0`.

use std::sync::Arc;

use tagwire_base::Rank;

use crate::byte::Post;
use crate::capability::{Capabilities, Limits};
use crate::data::{RecvBuffer, SendBuffer};
use crate::error::Result;
use crate::message::{EndpointId, Lane, Outcome, PeerEvent, Token};
use crate::wait::Waiter;

/// What a receive accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatchPattern {
    /// The bits to be found in the message.
    pub bits: u64,
    /// The bits in which any value will do.
    pub ignore: u64,
    /// The only source accepted, or any.
    pub source: Option<EndpointId>,
}

/// What is known of a message that matched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MatchCompletion {
    /// Who sent it.
    pub source: EndpointId,
    /// The bits it was sent with.
    pub bits: u64,
    /// Its true length in bytes, which may be more than the receive had room for.
    pub length: u64,
    /// How the operation ended.
    pub outcome: Outcome,
}

/// What a matching transport tells the layer above, from within `progress`.
pub trait MatchUpcalls {
    /// The send or receive with this token has ended; `found` is there for receives and probes.
    fn complete(&mut self, token: Token, outcome: Outcome, found: Option<MatchCompletion>);

    /// Something happened to a peer.
    fn peer(&mut self, event: PeerEvent);
}

/// A transport that matches messages itself. Life cycle, threads, back-pressure and failures are
/// as for [`ByteTransport`](crate::ByteTransport); a transport may implement both.
pub trait MatchTransport: Send {
    /// The name in settings and reports.
    fn name(&self) -> &'static str;

    /// What this instance offers.
    fn capabilities(&self) -> Capabilities;

    /// The sizes within which it works.
    fn limits(&self) -> Limits;

    /// The match bits that users of the transport may set; the others are its own.
    fn match_bits(&self) -> u64;

    /// What a peer needs to reach this rank.
    fn address(&self) -> Vec<u8>;

    /// The endpoint for `peer`.
    ///
    /// # Errors
    /// When the address is not understood or the peer cannot be reached.
    fn connect(&mut self, peer: Rank, address: &[u8]) -> Result<EndpointId>;

    /// Sends all of `data` under `bits`; `token` completes when the buffer is the caller's again
    /// or, when `synchronous`, once a receive has matched.
    fn send(
        &mut self,
        lane: Lane,
        to: EndpointId,
        bits: u64,
        data: &SendBuffer,
        synchronous: bool,
        token: Token,
    ) -> Post;

    /// Posts a receive. It is matched in the order of posting.
    fn post(&mut self, lane: Lane, pattern: MatchPattern, data: &RecvBuffer, token: Token) -> Post;

    /// Looks for a message that `pattern` accepts and leaves it; with `claim`, takes it out of
    /// matching, for a later [`receive_claimed`](MatchTransport::receive_claimed) by the same token.
    fn probe(&mut self, lane: Lane, pattern: MatchPattern, claim: bool, token: Token) -> Post;

    /// Receives the message that the probe with `token` claimed.
    fn receive_claimed(&mut self, lane: Lane, token: Token, data: &RecvBuffer) -> Post;

    /// Takes back a posted receive, unless it has matched: it completes either way.
    fn cancel(&mut self, lane: Lane, token: Token);

    /// Moves things on; answers how many things happened.
    fn progress(&mut self, lane: Lane, upcalls: &mut dyn MatchUpcalls) -> usize;

    /// The bootstrap says that `rank` has failed.
    fn peer_failed(&mut self, rank: Rank, upcalls: &mut dyn MatchUpcalls);

    /// What threads of this rank sleep on.
    fn waiter(&self) -> Arc<dyn Waiter>;
}
