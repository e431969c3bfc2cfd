//! What is known of one peer.

use tagwire_base::Rank;

use super::cma::Attach;
use super::identity::Identity;
use super::layout::ANSWER_NONE;
use super::liveness::Liveness;
use super::ring::Producer;
use super::segment::{AreaMap, HeaderMap};
use super::waiter;
use crate::message::EndpointId;

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
    pub liveness: Liveness,
    /// Whether we can attach to its memory.
    pub attach: Attach,
}

impl Peer {
    pub(super) const fn new(rank: Rank) -> Self {
        Self {
            rank,
            state: PeerState::Alive,
            identity: None,
            header: None,
            outbound: None,
            inbound: None,
            liveness: Liveness::Unknown,
            attach: Attach::Untested,
        }
    }

    /// Whether the peer has marked that it sends nothing more.
    pub(super) fn has_closed(&self) -> bool {
        use std::sync::atomic::Ordering::Acquire;
        self.inbound
            .as_ref()
            .is_some_and(|area| area.admission.closed.load(Acquire) != 0)
            || self
                .header
                .as_ref()
                .is_some_and(|header| header.closed.word.load(Acquire) != 0)
    }

    /// What the peer answered to our hello.
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

/// The way in from a peer.
pub(super) struct Inbound {
    pub consumer: super::ring::Consumer<AreaMap>,
    pub endpoint: EndpointId,
    /// The peer's header, to wake it when it waits for credits.
    pub header: Option<HeaderMap>,
    /// Something impossible was found: nothing is read any more.
    pub broken: Option<String>,
}
