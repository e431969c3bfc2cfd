//! When a sender looks after its untaken messages at its receivers, and what it does there.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use tagwire_base::Rank;
use tagwire_matching::Engine;

use crate::cooperative::{CooperativeTransfers, Offer};
use crate::matching::MatchUpcalls;
use crate::message::{EndpointId, Lane, Outcome, Payload};
use crate::shm::Shm;
use crate::shm::layout::{ANSWER_REFUSED, MAX_SHORT};
use crate::shm::matching::completions::Completions;
use crate::shm::matching::layout::{OPEN, Receive};
use crate::shm::matching::lock;
use crate::shm::matching::packed::{ReceiveState, TransferToken};
use crate::shm::matching::sender::{Sender, say_holding};
use crate::shm::matching::sends::SendState;
use crate::shm::matching::table::{Table, get};
use crate::shm::matching::visit::{ENTRY, Point, Visit, land_in_entry, note, reach};
use crate::shm::peer::PeerState;
use crate::shm::segment::AreaMap;
use crate::shm::transfers::claim_for_receiver;

/// How often progress finds nothing before a rank looks after its untaken messages. A message
/// that the receiver is looking for is gone after one or two.
const PATIENCE: u32 = 64;

/// How many of these a call counts for that has looked after transfers: it takes that much longer.
const TRANSFERS_WEIGH: u32 = 6;

/// The same, while looks show that the receiver is busy inside its own calls: each look takes
/// the line with the lock away from it for a moment.
const LONG_PATIENCE: u32 = 512;

/// Messages that are kept back that one visit compares with what is posted.
const COMPARED: usize = 256;

/// Decides when peers are visited.
pub(super) struct SenderMatcher {
    /// Calls of progress in which nothing happened, in a row.
    idle: u32,
    /// After how many of them it looks after its untaken messages.
    patience: u32,
    /// Looks in a row that led to nothing.
    looks: u32,
}

impl SenderMatcher {
    pub(super) const fn new() -> Self {
        Self {
            idle: 0,
            patience: PATIENCE,
            looks: 0,
        }
    }

    /// Takes note that progress was made.
    #[inline]
    pub(super) const fn busy(&mut self) {
        self.idle = 0;
        self.patience = PATIENCE;
        self.looks = 0;
    }

    /// Takes note that there was nothing to do, and visits peers when it is time. Returns how many messages were
    /// dealt with.
    #[inline]
    pub(super) fn idle(
        &mut self,
        visits: &mut Visits<'_>,
        upcalls: &mut dyn MatchUpcalls,
    ) -> usize {
        self.idle += if visits.shm.attention {
            TRANSFERS_WEIGH
        } else {
            1
        };
        if self.idle < self.patience && !visits.held_may_match() {
            return 0;
        }
        self.idle = 0;
        let taken = visits.all(upcalls);
        if taken != 0 || visits.sender.targets.holds() {
            self.patience = PATIENCE;
            self.looks = 0;
        } else {
            self.looks += 1;
            if self.looks > 2 {
                self.patience = (self.patience * 2).min(LONG_PATIENCE);
            }
        }
        taken
    }
}

/// What a matching sender needs of its rank.
pub(super) struct Visits<'a> {
    pub(super) rank: Rank,
    pub(super) shm: &'a mut Shm,
    pub(super) sender: &'a mut Sender,
    pub(super) completions: &'a mut Completions,
}

/// A target that is being visited.
struct Visited<'a> {
    to: EndpointId,
    table: &'a mut Table,
    area: &'a AreaMap,
    /// The receiver's process, if it can be attached to.
    pid: Option<u32>,
}

impl Visits<'_> {
    /// Returns whether receives were posted that may take messages which are kept back.
    #[inline]
    fn held_may_match(&self) -> bool {
        self.sender.targets.dirty.iter().any(|&to| {
            let known = self.sender.targets.of(to);
            !known.held.is_empty()
                && self.shm.peers[to.index()]
                    .target
                    .as_ref()
                    .is_some_and(|map| {
                        map.head().counts.posts.load(Relaxed) != known.seen_posts
                            || known.compared < known.held.len()
                    })
        })
    }

    /// Looks after what lies untaken at peers, or is kept back.
    #[cold]
    fn all(&mut self, upcalls: &mut dyn MatchUpcalls) -> usize {
        let mut events = 0;
        let mut at = 0;
        while let Some(&to) = self.sender.targets.dirty.get(at) {
            events += self.visit(to);
            let target = self.sender.targets.of_mut(to);
            let peer = &self.shm.peers[to.index()];
            let untaken = peer.state == PeerState::Alive
                && self.shm.outbound[to.index()].as_ref().is_some_and(|way| {
                    let taken = &way.producer.memory().taken;
                    way.producer.sent() != get(&taken.head) as u32
                });
            if untaken || !target.held.is_empty() {
                at += 1;
            } else {
                target.dirty = false;
                self.sender.targets.dirty.swap_remove(at);
            }
        }
        events + self.completions.report(upcalls)
    }

    /// Matches, for a peer, what this rank has sent it. Returns how many messages were dealt with.
    fn visit(&mut self, to: EndpointId) -> usize {
        let pid = self.shm.attach(to);
        let peer = &self.shm.peers[to.index()];
        let Some(way) = &self.shm.outbound[to.index()] else {
            return 0;
        };
        let (Some(area), Some(target)) = (&peer.outbound, &peer.target) else {
            return 0;
        };
        let (area, head) = (area.clone(), target.head());
        if head.open.load(Relaxed) != OPEN {
            return 0;
        }
        let sent = way.producer.sent();
        let untaken = get(&area.taken.head) as u32 != sent;
        let known = self.sender.targets.of_mut(to);
        let posts = head.counts.posts.load(Acquire);
        if known.seen_posts != posts {
            // What was compared before may be for the receives posted since.
            known.compared = 0;
        }
        if !untaken && known.compared >= known.held.len() {
            return 0;
        }
        let word = head.lock.load(Relaxed);
        let for_held = !untaken && known.compared < known.held.len();
        if word as u32 != 0 || (word != known.seen_lock && !for_held) {
            // Somebody has had the lock since the last look: the peer is inside its own calls, and
            // takes what is in its ring itself.
            known.seen_lock = word;
            return 0;
        }
        let mut table = known
            .table
            .take()
            .unwrap_or_else(|| Table::attach(target.clone()));
        let Some(held) = lock::try_lock(&head.lock, self.rank.as_u32()) else {
            known.table = Some(table);
            return 0;
        };
        if area.answer.word.load(Relaxed) == ANSWER_REFUSED {
            // The owner has given this rank up.
            lock::unlock_visit(&head.lock, held);
            known.table = Some(table);
            return 0;
        }
        reach(Point::Locked);
        let mut visit = Visit::new(&mut table, &area, pid, peer);
        let taken = visit.empty_ring(self.rank);
        let answered = visit.answered;
        let mut matched = 0;
        if get(&area.taken.head) as u32 == sent {
            let mut visited = Visited {
                to,
                table: &mut table,
                area: &area,
                pid,
            };
            matched = self.match_held(&mut visited, posts);
        }
        let changed = taken + matched != 0;
        let head = table.map.head();
        if changed {
            head.visits
                .store(head.visits.load(Relaxed).wrapping_add(1), Release);
        }
        lock::unlock_visit(&head.lock, held);
        let unlocked = head.lock.load(Relaxed);
        // Also where nothing has changed: the owner may have found the lock taken, and sleep.
        self.shm.peers[to.index()].nudge();
        for number in answered {
            if let Some(ended) = self.sender.sends.matched(number, to) {
                self.completions.push(ended);
            }
        }
        let known = self.sender.targets.of_mut(to);
        known.seen_lock = unlocked;
        known.table = Some(table);
        (taken + matched) as usize
    }

    /// Compares what is kept back for a peer with what it has posted. What its ring holds is
    /// earlier: there must be nothing in it.
    fn match_held(&mut self, visited: &mut Visited<'_>, posts: u64) -> u32 {
        let to = visited.to;
        let mut matched = 0;
        let known = self.sender.targets.of_mut(to);
        known.seen_posts = posts;
        let mut at = known.compared.min(known.held.len());
        for _ in 0..COMPARED {
            let held = &mut self.sender.targets.of_mut(to).held;
            if visited.table.engine.posted_len() == 0 {
                at = held.len();
                break;
            }
            let Some(&slot) = held.get(at) else {
                break;
            };
            let bits = self.sender.sends.slots[slot as usize].bits;
            let Some(index) = visited.table.take_posted(self.rank, bits) else {
                at += 1;
                continue;
            };
            held.remove(at);
            matched += 1;
            self.deliver_held(visited, slot, index);
        }
        let known = self.sender.targets.of_mut(to);
        known.compared = at;
        if matched != 0 && known.held.is_empty() {
            say_holding(self.shm, to, false);
        }
        matched
    }

    /// Delivers a message that was kept back to the receive that takes it.
    fn deliver_held(&mut self, visited: &Visited<'_>, slot: u32, index: u32) {
        let Some(receive) = visited.table.map.receive(index) else {
            return;
        };
        let send = self.sender.sends.slots[slot as usize];
        let number = self.sender.sends.number(slot);
        let len = send.region.len();
        let (address, room) = (get(&receive.address), get(&receive.capacity));
        note(receive, self.rank.as_u32(), send.bits, len as u64, number);
        let buffer = send.buffer();
        let bytes = buffer.bytes(0..len).unwrap_or_default();
        let short = len.min(room as usize);
        let peer = &self.shm.peers[visited.to.index()];
        let state = if short <= ENTRY {
            land_in_entry(receive, Payload::from_slice(&bytes[..short]));
            ReceiveState::Inline
        } else if len <= MAX_SHORT
            && peer.bring(visited.pid, address, Payload::from_slice(bytes), short)
        {
            ReceiveState::Landed
        } else {
            self.offer_held(visited, slot, receive)
        };
        receive.state.store(state.pack(), Release);
        visited.table.add_event(index);
        if matches!(state, ReceiveState::Inline | ReceiveState::Landed) {
            let ended = self.sender.sends.end(slot, Outcome::Done(len as u64));
            self.completions.push(ended);
        }
    }

    /// Offers the bytes of a message that was kept back, and claims the offer for the receive that takes it.
    fn offer_held(&mut self, visited: &Visited<'_>, slot: u32, receive: &Receive) -> ReceiveState {
        let (to, pid) = (visited.to, visited.pid);
        let (address, room) = (get(&receive.address), get(&receive.capacity));
        let send = &mut self.sender.sends.slots[slot as usize];
        if pid.is_some()
            || self
                .shm
                .may_map(to, send.region.address(), send.region.len())
        {
            let token = TransferToken::Send(slot).pack();
            if let Offer::Open(ticket) = self.shm.offer(Lane(0), to, &send.buffer(), token) {
                send.state = SendState::Offered(ticket);
                let peer = &self.shm.peers[to.index()];
                if claim_for_receiver(visited.area, ticket, address, room, peer, pid) {
                    receive.data[0].store(ticket.0[0], Relaxed);
                    receive.data[1].store(ticket.0[1], Relaxed);
                    return ReceiveState::Long;
                }
                self.shm.forget(to, ticket);
            }
        }
        send.state = SendState::AwaitGo;
        ReceiveState::Stream
    }
}
