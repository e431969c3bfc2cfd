//! What ob1 knows of a peer, and how it finds a peer by rank.

use std::collections::{HashMap, VecDeque};

use tagwire_base::{ContextId, Rank, Sequence, TagSelector};
use tagwire_transport::{AmHeader, EndpointId};

use super::credit::{Account, Accounts, Window};
use super::exposures::Exposures;
use super::path::Path;
use super::peeks::Peeks;
use super::pending::{Operation, Pending};
pub(super) use crate::peers::PeerIndex;
use crate::peers::{self, Contact, Known};
use crate::slab::Handle;
use crate::types::Failure;

/// The peers in contact.
pub(super) type Peers = peers::Peers<Peer>;

impl Accounts for Peers {
    #[inline]
    fn account(&mut self, peer: PeerIndex) -> Option<&mut Account> {
        self.get_mut(peer).map(|peer| &mut peer.account)
    }
}

/// How a peer is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Health {
    Alive,
    /// Left in good order.
    Left,
    Failed,
    /// Broke the protocol; treated as failed.
    Broken,
    /// It may live, and this rank cannot send to it; treated as failed.
    Unreachable,
}

impl Health {
    /// That of a peer whose operations end with `failure`.
    pub(super) const fn of(failure: Failure) -> Self {
        match failure {
            Failure::PeerLeft(_) => Self::Left,
            Failure::Protocol(_) => Self::Broken,
            Failure::Unreachable(_) => Self::Unreachable,
            _ => Self::Failed,
        }
    }
}

/// Where the packets of an eager message that is arriving go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stream {
    None,
    /// To a receive.
    Request {
        receive: Handle,
        offset: usize,
        total: usize,
    },
    /// To the store of unexpected messages.
    Unexpected {
        message: Handle,
        offset: usize,
        total: usize,
    },
}

/// A receive elsewhere that waits for an envelope which this rank holds back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PullWish {
    pub receive: Handle,
    /// The receive's place in the order of posting.
    pub order: u64,
    pub tag: TagSelector,
    pub context: ContextId,
    /// The whole queue was looked through in vain.
    pub tried: bool,
}

/// A packet that came before its turn, on a transport that does not keep order.
#[derive(Debug)]
pub(super) struct Early {
    pub header: AmHeader,
    pub payload: Box<[u8]>,
}

/// A peer in contact.
#[derive(Debug)]
pub(super) struct Peer {
    pub rank: Rank,
    pub endpoint: EndpointId,
    /// The endpoint can be sent to: it was connected, not only heard from.
    pub connected: bool,
    pub health: Health,
    /// An operation has ended since it failed; that it did is to be told yet.
    pub fails: bool,
    /// Fast path: connected, alive, nothing waits in front, messages go one by one, and none has a target.
    pub clear: bool,
    /// Fast path inwards: alive, no packet came before its turn, no message is half here, no receive is exposed.
    pub plain: bool,
    /// The protocols of messages to it.
    pub path: Path,
    /// Messages that wait to leave together, as they go on the wire.
    pub batch: Vec<u8>,
    /// The sequence number of the next packet to it.
    pub next_out: Sequence,
    /// The sequence number of the next packet from it.
    pub next_in: Sequence,
    /// What this rank may still send.
    pub credit: Window,
    /// What the peer may still send.
    pub account: Account,
    pub stream: Stream,
    /// Sends that wait for their turn, in order.
    pub queue: VecDeque<Handle>,
    /// There is an [`Operation::Flush`] for it.
    pub flush_noted: bool,
    /// Receives of the peer that wait for something this rank may hold back, now or later, in
    /// the order of posting. At most one for each of the peer's requests: a name in the same slot
    /// takes an older one's place.
    pub wishes: VecDeque<PullWish>,
    /// What probes on either side ask for.
    pub peeks: Peeks,
    /// The envelope that is out in reply to a wish or a question, and its place in the queue, until the peer
    /// says what became of it. Nothing else leaves the queue meanwhile.
    pub pulled: Option<(Handle, usize)>,
    /// Packets that came before their turn, by sequence number.
    pub early: HashMap<u32, Early>,
    /// The receives of both sides that may be filled.
    pub exposures: Exposures,
}

impl Known for Peer {
    fn new(rank: Rank, endpoint: EndpointId, first: Sequence) -> Self {
        Self {
            rank,
            endpoint,
            connected: false,
            health: Health::Alive,
            fails: false,
            clear: false,
            plain: true,
            path: Path::default(),
            batch: Vec::new(),
            next_out: first,
            next_in: first,
            credit: Window::INITIAL,
            account: Account::NEW,
            stream: Stream::None,
            queue: VecDeque::new(),
            flush_noted: false,
            wishes: VecDeque::new(),
            peeks: Peeks::default(),
            pulled: None,
            early: HashMap::new(),
            exposures: Exposures::default(),
        }
    }

    fn contact(&self) -> Contact {
        Contact {
            rank: self.rank,
            endpoint: self.endpoint,
            connected: self.connected,
            lost: self.failure(),
        }
    }
}

impl Peer {
    /// Sets the fast paths' flags from what they stand for.
    pub(super) fn refresh_clear(&mut self) {
        self.clear =
            self.is_free() && self.path.terms.coalesce == 0 && !self.exposures.has_targets();
        self.plain = self.health == Health::Alive
            && self.early.is_empty()
            && self.stream == Stream::None
            && !self.exposures.is_exposed();
    }

    /// Whether a message may go at once, as far as this rank's own sends are concerned.
    pub(super) fn is_free(&self) -> bool {
        self.connected
            && self.health == Health::Alive
            && self.queue.is_empty()
            && self.pulled.is_none()
    }

    /// Takes note that an envelope has left, of `bytes` of eager payload, whose header begins with `word`: see
    /// [`pass`](Self::pass).
    #[inline(always)]
    pub(super) const fn spend(&mut self, word: u64, bytes: usize) {
        self.pass(word);
        self.credit = self.credit.after(bytes);
    }

    /// The same of the envelope of a send, which may have taken a receive that the peer exposes.
    pub(super) fn spend_for(&mut self, target: Option<u32>, header: AmHeader, bytes: usize) {
        if let Some(number) = target {
            self.exposures.took(self.next_out.as_u32(), number);
        }
        self.spend(header.0[0], bytes);
    }

    /// Takes note that a packet has left, whose header begins with `word`; 0 where no receive takes it.
    #[inline(always)]
    pub(super) const fn pass(&mut self, word: u64) {
        self.exposures.remember(self.next_out.as_u32(), word);
        self.next_out = self.next_out.next();
    }

    /// Notes that sends to this peer, which is `index`, may go on.
    pub(super) fn flush_later(&mut self, index: PeerIndex, pending: &mut Pending) {
        if !std::mem::replace(&mut self.flush_noted, true) {
            pending.push(Operation::Flush(index));
        }
    }

    /// Enters a wish of the peer. Wishes may have changed places on their way.
    pub(super) fn wish(&mut self, wish: PullWish) {
        let slot = wish.receive.slot();
        if let Some(place) = self.wishes.iter().position(|w| w.receive.slot() == slot) {
            if self.wishes[place].order >= wish.order {
                return;
            }
            self.wishes.remove(place);
        }
        let place = self
            .wishes
            .partition_point(|other| other.order < wish.order);
        self.wishes.insert(place, wish);
    }

    /// What an operation with this peer fails with, if it cannot happen any more.
    pub(super) const fn failure(&self) -> Option<Failure> {
        match self.health {
            Health::Alive => None,
            Health::Left => Some(Failure::PeerLeft(self.rank)),
            Health::Failed => Some(Failure::PeerFailed(self.rank)),
            Health::Broken => Some(Failure::Protocol(self.rank)),
            Health::Unreachable => Some(Failure::Unreachable(self.rank)),
        }
    }
}
