//! What a [service](crate::services) of a rank is, and what it works with.

use std::time::Duration;

use tagwire_base::Clock;
use tagwire_transport::{Capabilities, EndpointId, Limits, Outcome, Payload, RemoteAccess, Token};

use crate::packet::{ControlHeader, PacketKinds};
use crate::peers::{Living, PeerIndex};
use crate::slab::Handle;
use crate::types::Failure;

/// What a peer did wrong.
pub(crate) type Wrong = &'static str;

/// Sends packets, as soon as the transport is free.
pub trait Out {
    /// Sends `to` a packet about its operation `header.handle`.
    fn packet(&mut self, to: PeerIndex, header: ControlHeader, payload: &[u8]);
}

/// Where a peer is, and what the transport offers towards it.
#[derive(Debug)]
pub struct Terms {
    pub peer: PeerIndex,
    pub endpoint: EndpointId,
    /// How many bytes are worth a write of their own, of those that could go together.
    pub write: usize,
    /// What its one-sided access can do, and within which sizes; and those of packets.
    pub access: Option<(Capabilities, Limits)>,
    /// Access carries the partitions of channels well.
    pub carries_partitions: bool,
}

/// What a service works with while its rank is driven.
#[allow(missing_debug_implementations, reason = "three borrows of a call")]
pub struct Wire<'a> {
    /// None where the transport has no access.
    pub rail: Option<&'a mut dyn RemoteAccess>,
    pub peers: &'a dyn Living,
    pub out: &'a mut dyn Out,
}

/// The tokens of one service.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tokens(u8);

impl Tokens {
    /// Set in the tokens of services, and never in those of requests.
    const MARK: u64 = 1 << 63;
    const SHIFT: u32 = 56;

    /// Returns those of the service with this number.
    pub(crate) const fn of_service(number: u8) -> Self {
        Self(number)
    }

    /// Returns the token of an operation.
    pub(crate) const fn of(self, operation: Handle) -> Token {
        Token(Self::MARK | (self.0 as u64) << Self::SHIFT | operation.to_wire())
    }

    /// Whether the token is that of a service.
    #[inline(always)]
    pub(crate) const fn are_of(token: Token) -> bool {
        token.0 & Self::MARK != 0
    }

    /// Returns the number of the service whose token it is, and the operation.
    pub(crate) const fn read(token: Token) -> (usize, Handle) {
        let service = (token.0 & !Self::MARK) >> Self::SHIFT;
        (service as usize, Handle::from_wire(token.0))
    }
}

/// One of the services.
pub(crate) trait Service {
    /// A service that has nothing to do yet.
    fn new(clock: &Clock, tokens: Tokens) -> Self
    where
        Self: Sized;

    /// Returns the kinds of its packets.
    fn kinds(&self) -> PacketKinds;

    /// Whether a thread has left it something to be done.
    fn is_called(&self) -> bool;

    /// Does what threads have left. Returns how many things were done.
    fn drive(&mut self, wire: &mut Wire<'_>) -> usize;

    /// Looks at memory that peers write. Returns how many things have come.
    fn look(&self) -> usize {
        0
    }

    /// Takes a packet.
    ///
    /// # Errors
    /// What the peer did wrong.
    fn packet(
        &mut self,
        from: PeerIndex,
        header: ControlHeader,
        payload: Payload<'_>,
        out: &mut dyn Out,
    ) -> Result<(), Wrong>;

    /// An operation with the transport has ended.
    fn complete(&mut self, operation: Handle, outcome: Outcome, out: &mut dyn Out);

    /// A peer has written to memory of this rank. Returns whether that memory is this service's.
    ///
    /// # Errors
    /// Which peer did what wrong.
    fn notice(&self, immediate: u64) -> Result<bool, (PeerIndex, Wrong)> {
        let _ = immediate;
        Ok(false)
    }

    /// A peer is gone, for this reason: what waits for it does not wait any more.
    fn lose(&mut self, peer: PeerIndex, failure: Failure);

    /// Returns how long the rank may sleep.
    fn longest_sleep(&self, peers: &dyn Living) -> Duration {
        let _ = peers;
        Duration::MAX
    }

    /// Returns how much is to be done before the rank may close.
    fn unfinished(&self) -> usize;
}
