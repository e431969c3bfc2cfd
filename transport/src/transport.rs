//! What every transport is, whether it matches messages or not.

use std::any::Any;
use std::fmt::Write;
use std::sync::Arc;

use tagwire_base::Rank;

use crate::allocation::Allocation;
use crate::capability::Capabilities;
use crate::error::Result;
use crate::message::EndpointId;
use crate::wait::Waiter;

/// A transport as its owner, one rank, holds it: what it is called, what it can, whom it reaches, and what lies
/// beside messages. [`ByteTransport`](crate::ByteTransport) and [`MatchTransport`](crate::MatchTransport) add the
/// messages.
pub trait Transport: Any + Send {
    /// The name in settings and reports.
    fn name(&self) -> &'static str;

    /// What this instance offers, after looking at the machine.
    fn capabilities(&self) -> Capabilities;

    /// What a peer needs to reach this rank; published by the owner.
    fn address(&self) -> Vec<u8>;

    /// The endpoint for `peer`, reached by the `address` that it published. Connecting again
    /// returns the same endpoint.
    ///
    /// # Errors
    /// When the address is not understood or the peer cannot be reached.
    fn connect(&mut self, peer: Rank, address: &[u8]) -> Result<EndpointId>;

    /// Memory of `len` bytes for user data, which peers can reach by other ways than other memory. `None` where this
    /// transport has none, or not so much in a row any more: then any memory serves.
    fn allocate(&mut self, len: usize) -> Option<Allocation> {
        let _ = len;
        None
    }

    /// Lends the part that opens partitioned channels with `peer`, and the peer's endpoint there. `None` where this transport
    /// has no channels of its own.
    #[cfg(feature = "partitioned")]
    fn channels(
        &mut self,
        peer: EndpointId,
    ) -> Option<(&mut dyn crate::channel::Channels, EndpointId)> {
        let _ = peer;
        None
    }

    /// Lends the part that makes boards with `peer`, and the peer's endpoint there. `None` where this transport shares no memory
    /// with it.
    #[cfg(feature = "coll")]
    fn boards(&mut self, peer: EndpointId) -> Option<(&mut dyn crate::board::Boards, EndpointId)> {
        let _ = peer;
        None
    }

    /// This rank has done all that it had to, and says goodbye: with the calls of progress that follow, or when the
    /// object is dropped. Nothing is sent after it.
    fn leave(&mut self);

    /// Returns whether peers have heard the goodbye, or are waited for no more. After [`leave`](Self::leave) progress
    /// makes it so, within a time that the transport bounds. An object that is dropped before says goodbye then, and
    /// may wait as long.
    fn has_left(&self) -> bool {
        true
    }

    /// Adds the peers that may lack some of what this rank has sent to them, where it leaves or has left: they have not acknowledged it,
    /// and are waited for, or were not any more. A transport that loses nothing has none.
    fn unheard(&self, out: &mut Vec<Rank>) {
        let _ = out;
    }

    /// What threads of this rank sleep on.
    fn waiter(&self) -> Arc<dyn Waiter>;

    /// Adds a line for each way that the transport has found by trial to be the fastest towards a peer, with its figures; and one of
    /// what data reliability has had to do, where there is some.
    fn ways(&self, out: &mut Vec<String>) {
        let _ = out;
    }

    /// One line for each peer in contact, for the hang dump: ring levels, open transfers.
    fn describe(&self, out: &mut dyn Write);
}
