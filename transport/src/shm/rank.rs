//! The object that a rank owns, and the verbs towards its peers.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Release;

use tagwire_base::{Bootstrap, Clock, JobSecret, Owner, Rank};

use super::NAME;
use super::arena::{self, OwnArena};
use super::cma::{Attach, Attachable, Nonce};
use super::config::{CrossAttach, ShmOptions};
use super::fixed;
use super::identity::{Identity, own_namespace};
use super::layout::{AREA, CLOSED_FAILED, CLOSED_LEFT, INLINE, MAX_SEND, OFFERS};
use super::liveness::Liveness;
use super::memfd;
use super::peer::{Inbound, Outbound, Peer, PeerState};
use super::remote::{Registrations, strike_out};
use super::report::{self, Pace};
use super::room::Size;
use super::rooms::{self, Rooms};
use super::segment::{Extent, HeaderMap, Segment};
use super::transfer::Transfers;
use super::waiter::{self, ShmWaiter};
use crate::allocation::Allocation;
use crate::body::Body;
use crate::byte::ByteTransport;
use crate::capability::{
    Capabilities, Limits, Ordering, Preference, Registration, ThreadMode, WaitObject,
};
use crate::error::Result;
use crate::message::{AmHeader, EndpointId, Lane, PeerEvent, Upcalls};
use crate::post::{Class, Post};
use crate::transport::Transport;
use crate::wait::Waiter;

/// Hands over the descriptor of a rank's segment.
type DescriptorSource = Box<dyn FnMut(Rank) -> tagwire_base::Result<OwnedFd> + Send>;

/// The shared-memory transport of one rank.
pub struct Shm {
    /// The ways out, by endpoint.
    pub(super) outbound: Vec<Option<Outbound>>,
    /// The ways in, in no particular order.
    pub(super) inbound: Vec<Inbound>,
    /// The own header.
    pub(super) header: HeaderMap,
    /// How far the own counter of contacts has been looked at.
    pub(super) seen_contacts: u64,
    /// Something besides the rings is to be looked at.
    pub(super) attention: bool,
    pub(super) transfers: Transfers,
    /// What is left for the rooms of peers.
    pub(super) rooms: Rooms,
    /// Everything known of peers, by endpoint.
    pub(super) peers: Vec<Peer>,
    pub(super) by_rank: HashMap<Rank, EndpointId>,
    /// Failed before there was any contact.
    pub(super) lost: HashSet<Rank>,
    /// Whose contact has been looked at: a bit for each rank.
    pub(super) contacted: Vec<u64>,
    /// Peers that have not replied to our hello.
    pub(super) awaiting: Vec<EndpointId>,
    pub(super) next_answer: usize,
    pub(super) descriptors: Option<DescriptorSource>,
    pub(super) waiter: Arc<ShmWaiter>,
    pub(super) segment: Segment,
    pub(super) arena: OwnArena,
    /// What peers may reach.
    pub(super) registrations: Registrations,
    pub(super) identity: Identity,
    pub(super) secret: JobSecret,
    pub(super) options: ShmOptions,
    pub(super) clock: Clock,
    pace: Pace,
    /// Dropping the object is a goodbye.
    leaving: bool,
    /// The process that opened it.
    owner: Owner,
    /// What lets the peers attach to this process.
    _attachable: Option<Attachable>,
    /// Kept where peers expect it.
    _nonce: Nonce,
}

impl Shm {
    /// Opens the transport of the rank that `bootstrap` is for, and leaves its descriptor there.
    /// The address is not published: the owner does.
    ///
    /// # Errors
    /// When the system gives no memory, the bootstrap is gone, or `shm-cma` is `on` where the
    /// kernel forbids it.
    pub fn open(options: ShmOptions, bootstrap: &mut dyn Bootstrap) -> Result<Self> {
        let (rank, size) = (bootstrap.rank(), bootstrap.size());
        let system =
            |what: &str, error| tagwire_base::Error::system(format!("{NAME}: {what}"), error);
        let budget = rooms::budget(&options, bootstrap.locality().local_size);
        let extent = extent(&options, size, rooms::largest(budget))?;
        let segment =
            Segment::create(extent).map_err(|error| system("make shared memory", error))?;
        let header = segment
            .map_header()
            .map_err(|error| system("map shared memory", error))?;
        bootstrap.put_descriptor(segment.descriptor())?;
        let random = JobSecret::generate()?;
        let mut value = [0; 8];
        value.copy_from_slice(&random.as_bytes()[..8]);
        let nonce = Nonce::new(u64::from_ne_bytes(value));
        let barriers = waiter::register_for_barriers();
        let identity = Identity {
            rank: rank.as_u32(),
            size,
            pid: std::process::id(),
            namespace: own_namespace(),
            descriptor: segment.number().unsigned_abs(),
            nonce: u64::from_ne_bytes(value),
            nonce_address: nonce.address(),
            barriers,
            matches: extent.matches,
            room: extent.room,
            arena: extent.arena,
        };
        identity.write(&header.identity);
        let attaches = options.cross_attach != CrossAttach::Off;
        let attachable = attaches.then(Attachable::new);
        fixed::check(&options)?;
        Ok(Self {
            outbound: Vec::new(),
            inbound: Vec::new(),
            seen_contacts: 0,
            attention: false,
            transfers: Transfers::new(&options),
            rooms: Rooms::new(budget, extent.room),
            peers: Vec::new(),
            by_rank: HashMap::new(),
            lost: HashSet::new(),
            contacted: vec![0; header.bitmap().len()],
            awaiting: Vec::new(),
            next_answer: 0,
            descriptors: None,
            waiter: Arc::new(ShmWaiter::new(header.clone(), barriers)),
            header,
            segment,
            arena: OwnArena::new(),
            registrations: Registrations::default(),
            identity,
            secret: bootstrap.secret().clone(),
            options,
            pace: Pace::new(bootstrap.clock().now()),
            clock: bootstrap.clock(),
            leaving: false,
            owner: Owner::here(),
            _attachable: attachable,
            _nonce: nonce,
        })
    }

    /// Where descriptors of peers come from that cannot be opened through `/proc`. Needed only
    /// to reply to peers of another process namespace that made contact first: without it, sending
    /// to such a peer is [`Post::Unsupported`].
    pub fn set_descriptor_source(
        &mut self,
        source: impl FnMut(Rank) -> tagwire_base::Result<OwnedFd> + Send + 'static,
    ) {
        self.descriptors = Some(Box::new(source));
    }

    /// Bytes of memory that the own segment takes at the moment.
    ///
    /// # Errors
    /// When the system does not tell.
    pub fn memory_in_use(&self) -> Result<u64> {
        self.segment.memory_in_use().map_err(|error| {
            tagwire_base::Error::system(format!("{NAME}: look at shared memory"), error).into()
        })
    }

    /// Ranks of the job.
    pub(super) const fn size(&self) -> u32 {
        self.identity.size
    }

    /// Whether nothing has been heard of the end of a peer.
    pub(super) fn is_alive(&self, endpoint: EndpointId) -> bool {
        self.peers
            .get(endpoint.index())
            .is_some_and(|peer| peer.state == PeerState::Alive)
    }

    /// Whether the process of a peer has ended: as it shows, or, where it cannot be watched, as
    /// others say (`failed`).
    pub(super) fn is_over(&self, endpoint: EndpointId, failed: bool) -> bool {
        self.peers.get(endpoint.index()).is_some_and(|peer| {
            peer.liveness.is_over()
                || (matches!(peer.liveness, Liveness::Unknown)
                    && (failed || peer.state == PeerState::Dead))
        })
    }

    /// Whether the process of a rank has ended that wrote its hello and was not looked at since.
    pub(super) fn unknown_is_over(&self, rank: Rank) -> bool {
        let Ok(area) = self.segment.map_area(rank.as_u32()) else {
            return false;
        };
        Identity::read(&area.hello).is_ok_and(|identity| {
            identity.shares_namespace(&self.identity)
                && Liveness::watch_unseen(identity.pid, identity.descriptor).is_over()
        })
    }

    /// The area for what this rank sends to a peer.
    pub(super) fn outbound_area(&self, to: EndpointId) -> Option<&super::segment::AreaMap> {
        self.peers.get(to.index())?.outbound.as_ref()
    }

    /// As [`ByteTransport::send`], in line: for an owner who knows which transport it has.
    #[inline(always)]
    pub fn send_in_line(
        &mut self,
        to: EndpointId,
        class: Class,
        header: AmHeader,
        data: &[u8],
    ) -> Post {
        let Some(Some(out)) = self.outbound.get_mut(to.index()) else {
            return self.send_first(to, class, header, data);
        };
        if data.len() > MAX_SEND {
            return Post::Unsupported;
        }
        if !out.producer.push(class, header, data) {
            return Post::Busy;
        }
        out.wake();
        Post::Posted
    }

    /// The slow way to send: no way out yet, or none any more.
    #[cold]
    fn send_first(&mut self, to: EndpointId, class: Class, header: AmHeader, data: &[u8]) -> Post {
        let peer = self.peers.get(to.index());
        if !peer.is_some_and(|peer| peer.state == PeerState::Alive) {
            return Post::Gone;
        }
        if data.len() > MAX_SEND {
            return Post::Unsupported;
        }
        match self.answer_contact(to) {
            Ok(()) => self.send_in_line(to, class, header, data),
            // It passes, and the peer lives: nobody may take it for gone.
            Err(error) if error.is_shortage() => Post::Busy,
            Err(_) => Post::Unsupported,
        }
    }
}

impl Transport for Shm {
    fn name(&self) -> &'static str {
        NAME
    }

    fn capabilities(&self) -> Capabilities {
        let always = Capabilities::WAKE
            | Capabilities::CHANNELS
            | Capabilities::FAILURE_DETECTION
            | Capabilities::ORDERED
            | Capabilities::RELIABLE
            | Capabilities::LOCAL
            | Capabilities::LOOPBACK;
        let mut all = always;
        let attaches = self.options.cross_attach != CrossAttach::Off;
        all.set(Capabilities::COOPERATIVE, attaches);
        all.set(Capabilities::PUT | Capabilities::GET, attaches);
        all.set(Capabilities::ALLOCATION, self.identity.arena != 0);
        all
    }

    fn address(&self) -> Vec<u8> {
        self.identity.to_bytes()
    }

    fn connect(&mut self, peer: Rank, address: &[u8]) -> Result<EndpointId> {
        let mut hook = self.descriptors.take();
        let endpoint = self.connect_by(peer, address, &mut |rank| {
            hook.as_mut().map(|source| source(rank))
        });
        self.descriptors = hook;
        endpoint
    }

    fn allocate(&mut self, len: usize) -> Option<Allocation> {
        let has_arena = self.identity.arena != 0;
        has_arena.then(|| self.arena.allocate(&self.segment, len))?
    }

    #[cfg(feature = "partitioned")]
    fn channels(&mut self, peer: EndpointId) -> Option<(&mut dyn crate::Channels, EndpointId)> {
        Some((self, peer))
    }

    #[cfg(feature = "coll")]
    fn boards(&mut self, peer: EndpointId) -> Option<(&mut dyn crate::Boards, EndpointId)> {
        Some((self, peer))
    }

    fn leave(&mut self) {
        self.leaving = true;
    }

    fn waiter(&self) -> Arc<dyn Waiter> {
        waiter::shared(&self.waiter)
    }

    fn ways(&self, out: &mut Vec<String>) {
        let now = self.clock.now();
        let nanos = |ticks| self.pace.nanos(ticks, now);
        for (index, peer) in self.peers.iter().enumerate() {
            let endpoint = EndpointId(index as u32);
            if let Some(area) = &peer.outbound {
                report::tell_writes(area.writes(), peer.rank, nanos, out);
            }
            self.transfers.tell_ways(endpoint, peer.rank, out);
        }
    }

    fn describe(&self, out: &mut dyn fmt::Write) {
        for (index, peer) in self.peers.iter().enumerate() {
            let sent = self.outbound[index]
                .as_ref()
                .map_or(0, |out| out.producer.uncredited());
            let waiting = self
                .inbound
                .iter()
                .any(|way| way.endpoint.index() == index && way.consumer.is_ready());
            let _ = writeln!(
                out,
                "shm: rank {}: {:?}, {sent} sent and not credited, {} to be taken, {}, {}",
                peer.rank,
                peer.state,
                if waiting { "messages" } else { "nothing" },
                self.transfers.describe(EndpointId(index as u32)),
                match &peer.attach {
                    Attach::Untested => "attach untested".to_owned(),
                    Attach::Usable(pid) => format!("attached to process {pid}"),
                    Attach::Forbidden(reason) => format!("not attached ({reason})"),
                },
            );
        }
    }
}

impl ByteTransport for Shm {
    fn limits(&self) -> Limits {
        let attaches = self.options.cross_attach != CrossAttach::Off;
        let offers = attaches || self.identity.arena != 0;
        Limits {
            max_offers: if offers { OFFERS } else { 0 },
            memory_per_peer: AREA,
            max_remote_access: if attaches { isize::MAX as u64 } else { 0 },
            ordering: Ordering::WriteAfterWrite,
            registration: Registration::Remote,
            thread_mode: ThreadMode::Transport,
            wait_object: WaitObject::Futex,
            ..Limits::copying(INLINE, MAX_SEND)
        }
    }

    /// Long messages are offered, so that both sides copy; an access of one side is for who asks for it.
    fn preference(&self, _to: EndpointId) -> Preference {
        Preference {
            remote_access: false,
            ..Preference::SHARED_MEMORY
        }
    }

    #[inline]
    fn send(
        &mut self,
        _lane: Lane,
        to: EndpointId,
        class: Class,
        header: AmHeader,
        data: &[u8],
    ) -> Post {
        self.send_in_line(to, class, header, data)
    }

    fn send_from(
        &mut self,
        _lane: Lane,
        to: EndpointId,
        header: AmHeader,
        body: &Body<'_>,
    ) -> Post {
        match (body.bytes(), self.outbound.get_mut(to.index())) {
            (Some(bytes), _) => self.send_in_line(to, Class::Data, header, bytes),
            (None, Some(Some(out))) => out.send_packed(header, body),
            (None, _) => self.send_first(to, Class::Data, header, &body.to_vec()),
        }
    }

    #[inline]
    fn progress(&mut self, _lane: Lane, mut upcalls: &mut dyn Upcalls) -> usize {
        self.progress_with(Self::BURST, &mut upcalls)
    }

    fn look_after_peers(&mut self, upcalls: &mut dyn Upcalls) {
        self.look_after(upcalls);
    }

    fn peer_failed(&mut self, rank: Rank, upcalls: &mut dyn Upcalls) {
        if !self.by_rank.contains_key(&rank) {
            // It may have made contact before it failed.
            self.look_at_contacts(upcalls);
        }
        let Some(&endpoint) = self.by_rank.get(&rank) else {
            self.lost.insert(rank);
            return;
        };
        if self.peers[endpoint.index()].state == PeerState::Alive {
            self.end_peer(endpoint, PeerEvent::Failed(endpoint), upcalls);
        }
    }
}

impl fmt::Debug for Shm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shm")
            .field("rank", &self.identity.rank)
            .field("size", &self.identity.size)
            .field("peers", &self.peers.len())
            .finish_non_exhaustive()
    }
}

impl Drop for Shm {
    fn drop(&mut self) {
        // A forked child has a copy of the object. What its peers see is the owner's.
        if !self.owner.is_here() {
            return;
        }
        strike_out(&self.registrations, &self.header);
        let holders = self.abandon_transfers();
        if !holders.is_empty() {
            let ranks: Vec<_> = holders.iter().map(|rank| rank.as_u32()).collect();
            tracing::warn!(
                ?ranks,
                "closed while these may still copy: the buffers of open transfers with them stay lent"
            );
        }
        let mark = if self.leaving {
            CLOSED_LEFT
        } else {
            CLOSED_FAILED
        };
        self.header.closed.word.store(mark, Release);
        for peer in &self.peers {
            if let Some(area) = &peer.outbound {
                area.admission.closed.store(mark, Release);
            }
            peer.attract();
        }
    }
}

/// The parts of a rank's segment in a job of `size`, with rooms up to `room`: of these and of the arena, as much as the limit of file sizes leaves
/// space for.
fn extent(options: &ShmOptions, size: u32, room: Size) -> Result<Extent> {
    let wanted = Extent {
        size,
        matches: options.matches,
        room,
        arena: (options.arena as u64).next_multiple_of(arena::STEP),
    };
    let Some(limit) = memfd::limit() else {
        return Ok(wanted);
    };
    let extent = wanted.within(limit);
    if extent.len() > limit {
        let shortfall = memfd::shortfall(extent.len(), limit);
        let remedy = if options.matches {
            ", or set 'pml' to ob1, which needs less"
        } else {
            ""
        };
        let what = format!("{NAME}: make the memory of a rank in a job of {size}");
        let error = io::Error::new(io::ErrorKind::FileTooLarge, shortfall + remedy);
        return Err(tagwire_base::Error::system(what, error).into());
    }
    if extent.room != wanted.room {
        let shortfall = memfd::shortfall(wanted.len(), limit);
        tracing::info!("rings of long messages do not grow: {shortfall}");
    }
    if extent.arena != wanted.arena {
        tracing::info!(
            "shared buffers have {} bytes in all, not the {} of the setting 'shm-arena': {}",
            extent.arena,
            wanted.arena,
            memfd::shortfall(wanted.len(), limit)
        );
    }
    Ok(extent)
}
