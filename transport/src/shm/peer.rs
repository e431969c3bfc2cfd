//! What is known of one peer.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::atomic::compiler_fence;

use tagwire_base::{Clock, Rank};

use super::arena::{ArenaMap, IN_ARENA};
use super::cma::{self, Attach};
use super::config::ShmOptions;
use super::identity::Identity;
use super::layout::{ANSWER_NONE, CLOSED_LEFT, MAX_SEND};
use super::liveness::Liveness;
use super::matching::TargetMap;
use super::partner::Partner;
use super::reuse::Reuse;
use super::ring::{Producer, RingMemory};
use super::room::Tenant;
use super::segment::{AreaMap, HeaderMap, Segment};
use super::sighting::Sighting;
use super::waiter;
use crate::body::Body;
use crate::message::{AmHeader, EndpointId, Payload, PeerEvent};
use crate::post::Post;

/// How things stand with a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PeerState {
    /// It is there, as far as is known.
    Alive,
    /// It has closed in good order.
    Left,
    /// It has failed, has refused us, or broke the protocol.
    Dead,
}

/// How a peer has closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Goodbye {
    /// In good order.
    Left,
    /// Its object was dropped while it had more to do: the stack unwound, say.
    Failed,
}

impl Goodbye {
    /// As the layer above is told of it.
    pub(super) const fn event(self, endpoint: EndpointId) -> PeerEvent {
        match self {
            Self::Left => PeerEvent::Left(endpoint),
            Self::Failed => PeerEvent::Failed(endpoint),
        }
    }
}

/// How the bytes of a peer's buffer are reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    /// Not at all from here.
    None,
    /// By attaching to this process.
    Attach(u32),
    /// In the peer's arena, which is mapped.
    Mapped,
}

/// A peer, behind its endpoint: what the fast path does not need.
pub(super) struct Peer {
    pub rank: Rank,
    pub state: PeerState,
    /// Who it is, by its address or its hello.
    pub identity: Option<Identity>,
    /// The header of its segment.
    pub header: Option<HeaderMap>,
    /// What we send to it, in its segment.
    pub outbound: Option<AreaMap>,
    /// What it sends to us, in our segment.
    pub inbound: Option<AreaMap>,
    /// Where it matches, if this rank does.
    pub target: Option<TargetMap>,
    /// Its arena, if it has one that could be mapped.
    pub arena: Option<Arc<ArenaMap>>,
    pub liveness: Liveness,
    /// Whether we can attach to its memory.
    pub attach: Attach,
    /// Its process, for channels and boards, once one has asked for it.
    pub partner: Option<Arc<Partner>>,
    sighting: Sighting,
}

impl Peer {
    pub(super) const fn new(rank: Rank, clock: Clock) -> Self {
        Self {
            rank,
            state: PeerState::Alive,
            identity: None,
            header: None,
            outbound: None,
            inbound: None,
            target: None,
            arena: None,
            liveness: Liveness::Unknown,
            attach: Attach::Untested,
            partner: None,
            sighting: Sighting::new(clock),
        }
    }

    /// Maps the arena in the peer's `segment`. Where that cannot be, buffers in it are reached by nobody here.
    pub(super) fn map_arena(&mut self, segment: &Segment) {
        if self.arena.is_some() {
            return;
        }
        match segment.map_peer_arena() {
            Ok(map) => self.arena = map.map(Arc::new),
            Err(error) => tracing::debug!(rank = %self.rank, %error, "its arena cannot be mapped"),
        }
    }

    /// How the `len` bytes are reached that the peer calls `name`; `pid` is its process, if it can be attached
    /// to. `None`: there are no such bytes, and no correct peer says so.
    pub(super) fn access(&self, name: u64, len: u64, pid: Option<u32>) -> Option<Access> {
        if name & IN_ARENA == 0 {
            return Some(pid.map_or(Access::None, Access::Attach));
        }
        let arena = self.identity.map_or(0, |identity| identity.arena);
        if !ArenaMap::holds(name, len, arena) {
            return None;
        }
        Some(match self.arena {
            Some(_) => Access::Mapped,
            None => Access::None,
        })
    }

    /// Copies the first `len` bytes of `payload` to what the peer calls `name`; returns whether they are there.
    pub(super) fn bring(
        &self,
        pid: Option<u32>,
        name: u64,
        payload: Payload<'_>,
        len: usize,
    ) -> bool {
        match self.access(name, len as u64, pid) {
            Some(Access::Mapped) => match &self.arena {
                Some(arena) => arena.write(name, payload, len),
                None => false,
            },
            Some(Access::Attach(pid)) => {
                let is_there = || !self.liveness.is_over();
                cma::write_payload(pid, name, payload, len, is_there).is_ok()
            }
            Some(Access::None) | None => false,
        }
    }

    /// Whether the peer has marked that it sends nothing more.
    pub(super) fn has_closed(&self) -> bool {
        self.goodbye().is_some()
    }

    /// How the peer has closed, if it has.
    pub(super) fn goodbye(&self) -> Option<Goodbye> {
        use std::sync::atomic::Ordering::Acquire;
        let area = self.inbound.as_ref().map(|area| &area.admission.closed);
        let header = self.header.as_ref().map(|header| &header.closed.word);
        let mut words = [area, header].into_iter().flatten();
        match words.find_map(|word| Some(word.load(Acquire)).filter(|word| *word != 0))? {
            CLOSED_LEFT => Some(Goodbye::Left),
            _ => Some(Goodbye::Failed),
        }
    }

    /// Whether process `pid`, which was this peer's, still is: no other process can have its number
    /// before the peer has ended.
    pub(super) fn is_still(&self, pid: u32) -> bool {
        let test = |identity: Identity| Attach::test(pid, identity.nonce_address, identity.nonce);
        // Without a descriptor the peer is known by a number in its private memory.
        let has_nonce = || self.identity.map(test) == Some(Attach::Usable(pid));
        self.sighting.is_still(&self.liveness, has_nonce)
    }

    /// Whether the peer provably touches no memory of ours any more: its process has ended, or it
    /// has closed, which it does only when it is not copying.
    pub(super) fn is_harmless(&self) -> bool {
        self.has_closed() || self.liveness.is_over()
    }

    /// Frees its payload ring in the segment `own`, of which all is read. Whoever still writes there would take the memory again at once.
    pub(super) fn free_payload(&self, own: &Segment) {
        if self.is_harmless() {
            own.free_payload(self.rank);
        }
    }

    /// What the peer replied to our hello.
    pub(super) fn answer(&self) -> u64 {
        use std::sync::atomic::Ordering::Acquire;
        self.outbound
            .as_ref()
            .map_or(ANSWER_NONE, |area| area.answer.word.load(Acquire))
    }

    /// Wakes the peer, if it sleeps: a transfer has moved on.
    pub(super) fn nudge(&self) {
        if let Some(header) = &self.header {
            waiter::wake_if_armed(header);
        }
    }

    /// Makes the peer look at its header.
    pub(super) fn attract(&self) {
        use std::sync::atomic::Ordering::SeqCst;
        if let Some(header) = &self.header {
            header.contacts.word.fetch_add(1, SeqCst);
            waiter::wake_if_armed(header);
        }
    }
}

/// The way out to a peer: what the fast path needs.
pub(super) struct Outbound {
    pub producer: Producer<AreaMap>,
    /// Its header, for its sleeping word.
    pub header: HeaderMap,
}

impl Outbound {
    /// Wakes the peer where it sleeps, after a message to it.
    #[inline(always)]
    pub(super) fn wake(&self) {
        // The barrier of a sleeper orders what the processor does here; this orders the compiler.
        compiler_fence(SeqCst);
        let sleeping = &self.header.sleeping;
        if waiter::word::is_armed(&sleeping.word) {
            waiter::wake(sleeping);
        }
    }

    /// Lets both ends know of each other: long payloads go back and forth in the memory of one room. Ranks that match have none.
    pub(super) fn connect_rooms(&mut self, way: &mut Inbound, options: &ShmOptions) {
        let (there, here) = (
            self.producer.memory().clone(),
            way.consumer.memory().clone(),
        );
        if options.matches || (there.room().is_none() && here.room().is_none()) {
            return;
        }
        let reuse = Arc::new(Reuse::default());
        self.producer.reuse(Arc::clone(&reuse), here, options.reuse);
        way.consumer.reuse(reuse, there);
    }

    /// Sends a body that is not contiguous: it is packed into the ring.
    pub(super) fn send_packed(&mut self, header: AmHeader, body: &Body<'_>) -> Post {
        if body.len() > MAX_SEND {
            return Post::Unsupported;
        }
        let fill = |offset: usize, piece: &mut [u8]| body.copy_out(offset, piece);
        if !self.producer.push_in_pieces(header, body.len(), fill) {
            return Post::Busy;
        }
        self.wake();
        Post::Posted
    }
}

/// The way in from a peer.
pub(super) struct Inbound {
    pub consumer: super::ring::Consumer<AreaMap>,
    pub endpoint: EndpointId,
    /// The peer's header, to wake it when it waits for credits.
    pub header: Option<HeaderMap>,
    /// Something impossible was found: nothing is read any more.
    pub broken: Option<String>,
    pub tenant: Tenant,
}

impl Inbound {
    pub(super) fn new(
        consumer: super::ring::Consumer<AreaMap>,
        endpoint: EndpointId,
        header: Option<HeaderMap>,
    ) -> Self {
        Self {
            consumer,
            endpoint,
            header,
            broken: None,
            tenant: Tenant::default(),
        }
    }

    /// Wakes a peer that sleeps because its ring was full. As with messages, the sleeper has closed
    /// the race: it tries to send once more after its barrier.
    #[inline(never)]
    pub(super) fn wake_for_credits(&self) {
        if let Some(header) = &self.header {
            compiler_fence(SeqCst);
            if waiter::word::is_armed(&header.sleeping.word) {
                waiter::wake(&header.sleeping);
            }
        }
    }

    /// Wakes the sender, if it sleeps: a transfer has moved on.
    pub(super) fn nudge(&self) {
        if let Some(header) = &self.header {
            waiter::wake_if_armed(header);
        }
    }

    /// Frees the payload ring of a sender that has left it.
    fn free_payload(&mut self, own: &Segment, sender: Rank) {
        match (self.consumer).free_payload(|| own.free_payload(sender)) {
            // It may have wanted to send meanwhile, and sleep now.
            Ok(true) => self.wake_for_credits(),
            Ok(false) => {}
            Err(state) => {
                self.broken
                    .get_or_insert_with(|| format!("a payload ring in state {state:#x}"));
            }
        }
    }

    /// The slow checks of what the rank `sender` sends, in the segment `own`: credits that are owed, memory that it has left, and stamps.
    pub(super) fn look_after(&mut self, own: &Segment, sender: Rank) {
        self.consumer.settle();
        self.free_payload(own, sender);
        if self.consumer.has_given_credits() {
            self.wake_for_credits();
        }
        if self.broken.is_none() && !self.consumer.stamp_is_sane() {
            self.broken = Some("a slot with an impossible stamp".to_owned());
        }
    }
}
