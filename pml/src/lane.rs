//! What a rank has, whichever layer matches its messages.
//!
//! ```text
//!   Messenger ── Lanes ── Guarded<Layer> ──> Layer: ob1 | cm
//!                                          ├── its transport
//!                                          └── its state, the transport's upcalls
//!                                                └── Lane: peers, losses, contexts, services, packets
//! ```
//!
//! A lane is what one thread drives at a time.

use std::collections::VecDeque;

use tagwire_base::{Bootstrap, Clock, ContextId, Rank, Sequence, Time};
use tagwire_transport::{Outcome, Payload, RemoteAccess, Token, Transport};

use crate::contact::{OpenTimeout, Stack};
use crate::contexts::Contexts;
use crate::error::{Error, Result};
use crate::losses::Losses;
use crate::offences::Offences;
use crate::packet::{ControlHeader, Packet};
use crate::peers::{Known, Living, PeerIndex, Peers};
use crate::service::{Out, Wire, Wrong};
use crate::services::Services;
use crate::types::Failure;

/// The packets that are to be sent, in order.
pub(crate) type Packets = VecDeque<Packet>;

impl Out for Packets {
    fn packet(&mut self, to: PeerIndex, header: ControlHeader, payload: &[u8]) {
        self.push_back(Packet::new(to, header, payload));
    }
}

/// The part of a rank's state that both layers have.
pub(crate) struct Lane<P> {
    pub peers: Peers<P>,
    pub losses: Losses,
    pub contexts: Contexts,
    pub packets: Packets,
    /// What this rank does beside messages, once it does.
    pub services: Option<Box<Services>>,
    /// Operations that may have ended since this was last asked, other than by progress.
    pub ended: usize,
    /// Peers that could not be connected to for a shortage, until this rank next looks after its peers.
    pub out_of_reach: Vec<PeerIndex>,
    pub bootstrap: Box<dyn Bootstrap>,
    pub rank: Rank,
    pub size: u32,
    /// Ranks that have failed by the bootstrap's word and whose end the transport is to report, and until when.
    pub failing: Vec<(Rank, Time)>,
    pub offences: Offences,
    /// New operations are refused.
    pub closing: bool,
    pub clock: Clock,
    stack: Stack,
}

impl<P: Known> Lane<P> {
    /// Publishes the address of `transport`, waits until every rank of the job has done so, and returns the lane of a rank of this layer with
    /// at most so many `contexts`. What the layer counts of messages between two ranks begins with `first`.
    ///
    /// # Errors
    /// When the bootstrap breaks, or not every rank opens in time.
    pub(crate) fn open<T: Transport + ?Sized>(
        (layer, first): (&'static str, Sequence),
        transport: &T,
        mut bootstrap: Box<dyn Bootstrap>,
        timeout: OpenTimeout,
        contexts: usize,
    ) -> Result<Self> {
        let stack = Stack::new(layer, transport.name()).counts_from(first);
        stack.publish(&mut *bootstrap, &transport.address(), timeout)?;
        Ok(Self {
            peers: Peers::new(first),
            losses: Losses::default(),
            contexts: Contexts::new(contexts),
            packets: Packets::new(),
            services: None,
            ended: 0,
            out_of_reach: Vec::new(),
            failing: Vec::new(),
            offences: Offences::default(),
            stack,
            clock: bootstrap.clock(),
            rank: bootstrap.rank(),
            size: bootstrap.size(),
            bootstrap,
            closing: false,
        })
    }

    /// # Errors
    /// [`Error::Closed`].
    pub(crate) const fn check_open(&self) -> Result<()> {
        match self.closing {
            true => Err(Error::Closed),
            false => Ok(()),
        }
    }

    /// Whether new receives may use `context`.
    #[inline(always)]
    pub(crate) fn is_usable(&self, context: ContextId) -> bool {
        self.contexts.contains(context) && !self.closing
    }

    /// # Errors
    /// Why new receives may not use `context`.
    #[inline]
    pub(crate) fn check_context(&self, context: ContextId) -> Result<()> {
        match self.contexts.contains(context) {
            true => self.check_open(),
            false => Err(Error::NoSuchContext(context.as_u16())),
        }
    }

    /// Returns the address that `rank` has published.
    pub(crate) fn address(&mut self, rank: Rank) -> Result<Vec<u8>> {
        self.stack.address(&mut *self.bootstrap, rank)
    }

    /// Returns how many operations have ended other than by progress, as [`ended`](Self::ended) says.
    #[inline]
    pub(crate) const fn take_ended(&mut self) -> usize {
        std::mem::replace(&mut self.ended, 0)
    }

    /// Returns the services, which are in use from now on, and what they work with.
    pub(crate) fn services<'a>(
        &'a mut self,
        rail: Option<&'a mut dyn RemoteAccess>,
    ) -> (&'a mut Services, Wire<'a>) {
        let clock = &self.clock;
        let new = || Box::new(Services::new(clock));
        let services = self.services.get_or_insert_with(new);
        let wire = Wire {
            rail,
            peers: &self.peers,
            out: &mut self.packets,
        };
        (services, wire)
    }

    /// Returns the services, if they are in use, and the peers.
    pub(crate) fn services_in_use(&self) -> Option<(&Services, &dyn Living)> {
        Some((self.services.as_deref()?, &self.peers))
    }

    /// Has the services that were called do what there is. Returns how many things were done.
    #[cold]
    pub(crate) fn drive_services(&mut self, rail: Option<&mut dyn RemoteAccess>) -> usize {
        let are_called = |services: &Services| services.are_called();
        if !self.services.as_deref().is_some_and(are_called) {
            return 0;
        }
        let (services, mut wire) = self.services(rail);
        services.drive(&mut wire)
    }

    /// Looks at memory that peers write for services. Returns how many things have come.
    pub(crate) fn look_at_memory(&self) -> usize {
        self.services.as_deref().map_or(0, Services::look)
    }

    /// Takes a packet that is no message's.
    ///
    /// # Errors
    /// What the peer did wrong.
    pub(crate) fn packet(
        &mut self,
        from: PeerIndex,
        header: ControlHeader,
        payload: Payload<'_>,
    ) -> Result<(), Wrong> {
        self.ended += 1;
        let (services, wire) = self.services(None);
        let taken = services.packet(from, header, payload, wire.out);
        taken.unwrap_or(Err("a packet of no known kind"))
    }

    /// An operation of a service has ended.
    pub(crate) fn complete(&mut self, token: Token, outcome: Outcome) {
        self.ended += 1;
        if let Some(services) = self.services.as_deref_mut() {
            services.complete(token, outcome, &mut self.packets);
        }
    }

    /// A peer has written to memory of this rank.
    ///
    /// # Errors
    /// Which peer did what wrong.
    pub(crate) fn notice(&mut self, immediate: u64) -> Result<(), (PeerIndex, Wrong)> {
        self.ended += 1;
        let services = self.services.as_deref();
        services.map_or(Ok(()), |services| services.notice(immediate))
    }

    /// What services do with a peer that is gone ends.
    pub(crate) fn end_services(&mut self, peer: PeerIndex, failure: Failure) {
        if let Some(services) = self.services.as_deref_mut() {
            services.lose(peer, failure);
        }
    }

    /// Returns how much of services is to be done before the rank may close.
    pub(crate) fn unfinished(&self) -> usize {
        let services = self.services.as_deref().map_or(0, Services::unfinished);
        services + self.packets.len()
    }
}
