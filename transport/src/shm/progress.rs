//! What has arrived: deliveries, first contacts, peers that end.

use std::sync::atomic::Ordering::{Relaxed, Release};

use super::NAME;
use super::layout::SLOTS;
use super::peer::{Inbound, PeerState};
use super::rank::Shm;
use super::ring::Pop;
use super::transfer::{Lost, Transfers};
use super::waiter;
use crate::error::Error;
use crate::message::{Arrival, EndpointId, Outcome, PeerEvent, Upcalls};

/// Messages of one peer that one call of progress delivers.
pub(super) const BURST: usize = 64;

impl Shm {
    /// Messages of one peer that one call of progress delivers, unless it is told otherwise.
    pub const BURST: usize = BURST;

    /// As [`ByteTransport::progress`](crate::ByteTransport::progress), with `burst` messages of each peer at most, and with the
    /// upcalls in line: for an owner who knows which transport it has.
    #[inline]
    pub fn progress_with(&mut self, burst: usize, upcalls: &mut impl Upcalls) -> usize {
        self.take_arrivals(burst, upcalls) + self.attend_if_due(upcalls)
    }

    /// Whether progress would find nothing.
    #[inline(always)]
    #[must_use]
    pub fn has_nothing(&self) -> bool {
        self.inbound.iter().all(|way| !way.consumer.is_ready()) && !self.is_attention_due()
    }

    #[inline(always)]
    fn is_attention_due(&self) -> bool {
        let contacts = self.header.contacts.word.load(Relaxed);
        self.attention | (contacts != self.seen_contacts)
    }

    /// Delivers what is in the rings, at most `burst` messages of each peer, and moves no transfer on.
    #[inline(always)]
    pub fn take_arrivals<U: Upcalls + ?Sized>(&mut self, burst: usize, upcalls: &mut U) -> usize {
        let mut events = 0;
        for way in &mut self.inbound {
            let mut taken = drain(way, burst, upcalls);
            if taken.pieces {
                taken.count += self.transfers.take_pieces(way);
                taken.broken = way.broken.is_some();
            }
            events += taken.count;
            if taken.count != 0 && way.consumer.has_given_credits() {
                way.wake_for_credits();
                self.rooms.consider(way);
            }
            if taken.broken {
                self.attention = true;
            }
        }
        events
    }

    /// Everything but the rings, where there is anything to look at.
    #[inline(always)]
    fn attend_if_due(&mut self, upcalls: &mut dyn Upcalls) -> usize {
        if self.is_attention_due() {
            self.attend(upcalls)
        } else {
            0
        }
    }

    #[cold]
    fn attend(&mut self, upcalls: &mut dyn Upcalls) -> usize {
        self.attend_peers(upcalls) + self.attend_transfers(upcalls)
    }

    /// Contacts, replies, and peers that broke the protocol.
    pub(super) fn attend_peers(&mut self, upcalls: &mut dyn Upcalls) -> usize {
        let mut events = 0;
        if self.header.contacts.word.load(Relaxed) != self.seen_contacts {
            events += self.look_at_contacts(upcalls);
        }
        if !self.awaiting.is_empty() {
            events += self.look_at_answers(upcalls);
        }
        events + self.bury_broken(upcalls)
    }

    /// The transfers.
    pub(super) fn attend_transfers(&mut self, upcalls: &mut dyn Upcalls) -> usize {
        let mut events = self.move_transfers(upcalls);
        while let Some((endpoint, reason)) = self.transfers.take_lost() {
            if self.peers[endpoint.index()].state == PeerState::Alive {
                events += match reason {
                    Lost::Insane(what) => self.break_off(endpoint, what.to_owned(), upcalls),
                    Lost::Dead => self.end_peer(endpoint, PeerEvent::Failed(endpoint), upcalls),
                };
            }
        }
        self.note_attention();
        events
    }

    /// Notes whether there is anything to look at besides the rings.
    pub(super) fn note_attention(&mut self) {
        self.attention = !self.awaiting.is_empty()
            || self.transfers.are_pending()
            || self.inbound.iter().any(|way| way.broken.is_some());
    }

    /// Ends the peers in whose rings something impossible was found.
    fn bury_broken(&mut self, upcalls: &mut dyn Upcalls) -> usize {
        let mut events = 0;
        while let Some(way) = self.inbound.iter_mut().find(|way| way.broken.is_some()) {
            let endpoint = way.endpoint;
            let reason = way.broken.take().unwrap_or_default();
            events += self.break_off(endpoint, reason, upcalls);
        }
        events
    }

    /// Ends a peer that broke the protocol.
    pub(super) fn break_off(
        &mut self,
        endpoint: EndpointId,
        reason: String,
        upcalls: &mut dyn Upcalls,
    ) -> usize {
        let peer = self.peers[endpoint.index()].rank;
        let (ways, own) = (&mut self.inbound, &self.segment);
        // Nothing more of it is looked at but pieces that come next: with them a transfer may be complete.
        let mut sound = ways.iter_mut().filter(|way| way.endpoint == endpoint);
        if let Some(way) = sound.next() {
            self.transfers.take_pieces(way);
        }
        self.rooms.evict(ways, endpoint, own, peer);
        let error = Error::Protocol {
            transport: NAME,
            peer,
            reason,
        };
        let event = PeerEvent::Protocol(Some(endpoint), error);
        self.end_peer(endpoint, event, upcalls)
    }

    /// Ends everything with a peer: delivers what it left, reports `event`, and begins to end
    /// the transfers with it.
    pub(super) fn end_peer(
        &mut self,
        endpoint: EndpointId,
        event: PeerEvent,
        upcalls: &mut dyn Upcalls,
    ) -> usize {
        let mut events = 1;
        if !matches!(event, PeerEvent::Protocol(..)) {
            // It may have made its contact, spoken and gone since contacts were looked at.
            events += self.look_at_late_contact(endpoint, upcalls);
        }
        if let Some(at) = self.inbound.iter().position(|way| way.endpoint == endpoint) {
            let mut way = self.inbound.swap_remove(at);
            events += drain_all(&mut way, &mut self.transfers, upcalls);
            let area = way.consumer.memory();
            super::matching::store_state(&area.taken, way.consumer.state());
            if !matches!(event, PeerEvent::Left(_)) {
                // Should it live on: it has no business with the match list any more.
                area.answer
                    .word
                    .store(super::layout::ANSWER_REFUSED, Release);
            }
            let peer = &self.peers[endpoint.index()];
            self.rooms.end(&mut way, &self.segment, peer.rank);
            peer.free_payload(&self.segment);
        }
        self.outbound[endpoint.index()] = None;
        self.awaiting.retain(|awaited| *awaited != endpoint);
        let peer = &mut self.peers[endpoint.index()];
        peer.state = match event {
            PeerEvent::Left(_) => PeerState::Left,
            _ => PeerState::Dead,
        };
        upcalls.peer(event);
        self.stop_transfers(endpoint, Outcome::PeerFailed);
        // Nothing is copied any more; what its arena holds need not outlive it.
        self.peers[endpoint.index()].arena = None;
        self.attention = true;
        events + self.move_transfers(upcalls)
    }

    /// The slow checks: the dead, the sleeping, the insane.
    pub(super) fn look_after(&mut self, upcalls: &mut dyn Upcalls) {
        let now = self.clock.now();
        for way in &mut self.inbound {
            let sender = self.peers[way.endpoint.index()].rank;
            way.look_after(&self.segment, sender);
            self.rooms.look_after(way, &self.segment, sender, now);
        }
        self.bury_broken(upcalls);
        for index in 0..self.peers.len() {
            let endpoint = EndpointId(index as u32);
            if self.peers[index].state != PeerState::Alive {
                continue;
            }
            if let Some(out) = &mut self.outbound[index] {
                out.producer.look_after(now);
                if !out.producer.credit_is_sane() {
                    self.break_off(endpoint, "impossible credits".to_owned(), upcalls);
                    continue;
                }
                if out.producer.uncredited() > 0 {
                    waiter::wake_if_armed(&out.header);
                }
            }
            let peer = &self.peers[index];
            if let Some(goodbye) = peer.goodbye() {
                self.end_peer(endpoint, goodbye.event(endpoint), upcalls);
            } else if peer.liveness.is_over() {
                self.end_peer(endpoint, PeerEvent::Failed(endpoint), upcalls);
            }
        }
        self.move_transfers(upcalls);
    }
}

/// What came of looking into a ring.
pub(super) struct Taken {
    pub count: usize,
    /// What comes next is a piece of a transfer.
    pub pieces: bool,
    /// Something impossible was found.
    pub broken: bool,
}

/// Delivers up to `most` messages of a peer. In line, without a look beforehand: that would make
/// empty looks shorter by 20 instructions (callgrind), and the way from a message's arrival to its
/// delivery, which counts, longer by as many.
#[inline]
pub(super) fn drain<U: Upcalls + ?Sized>(way: &mut Inbound, most: usize, upcalls: &mut U) -> Taken {
    let from = way.endpoint;
    let mut count = 0;
    while count < most {
        let popped = way.consumer.pop(|header, payload| {
            // Nothing can be retained in a ring: the upcall is offered nothing to keep.
            upcalls.deliver(Arrival {
                from,
                header,
                payload,
            });
        });
        match popped {
            Pop::Message(()) => count += 1,
            Pop::Empty | Pop::Left => break,
            Pop::Other => {
                return Taken {
                    count,
                    pieces: true,
                    broken: false,
                };
            }
            Pop::Corrupt(shape) => {
                note_corrupt(way, shape);
                return Taken {
                    count,
                    pieces: false,
                    broken: true,
                };
            }
        }
    }
    Taken {
        count,
        pieces: false,
        broken: false,
    }
}

/// Delivers all that a peer has left in its ring. It holds no more than its slots, so that a peer that still lives cannot keep
/// us here.
fn drain_all(way: &mut Inbound, transfers: &mut Transfers, upcalls: &mut dyn Upcalls) -> usize {
    let mut count = 0;
    loop {
        let taken = drain(way, SLOTS, upcalls);
        count += taken.count;
        if !taken.pieces || count >= SLOTS {
            return count;
        }
        let pieces = transfers.take_pieces(way);
        count += pieces;
        if pieces == 0 {
            return count;
        }
    }
}

#[cold]
#[inline(never)]
fn note_corrupt(way: &mut Inbound, shape: u32) {
    if way.broken.is_none() {
        way.broken = Some(format!("a slot of kind and length {shape:#010x}"));
    }
}
