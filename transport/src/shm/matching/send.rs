//! The sender's side: messages on their way, and those that are kept back.
#![allow(unsafe_code)]

use std::collections::VecDeque;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::super::layout::MAX_SEND;
use super::super::waiter;
use super::endpoint::{Core, Ended, ShmMatch};
use super::layout::INITIAL;
use super::table::{BITS, Table};
use super::wire::{self, Kind};
use crate::byte::{ByteTransport, Class, Offer, Post, Ticket};
use crate::data::{ReadRegion, SendBuffer};
use crate::message::{AmHeader, EndpointId, Lane, Outcome, Token};
use crate::network::{MatchUpcalls, Refusal, Sent};

/// What is known of one peer as a target.
#[derive(Default)]
pub(super) struct Out {
    /// Messages sent that count against the allowance.
    sent: u64,
    /// How many there may be, as far as known.
    allowed: u64,
    /// Messages sent as envelopes only, because there was no allowance for more.
    envelopes: u64,
    /// Sends that are kept back, in order.
    pub(super) held: VecDeque<u32>,
    /// Among [`Core::dirty`].
    pub(super) dirty: bool,
    /// Its match list, once it was visited.
    pub(super) table: Option<Table>,
    /// Its lock's word when it was last looked at: it changes while the peer is inside calls.
    pub(super) seen_lock: u64,
    /// How many receives it had posted when the kept messages were last compared with them ...
    pub(super) seen_posts: u64,
    /// ... and how many of the kept ones were.
    pub(super) compared: usize,
}

/// A send that is not over.
#[derive(Debug, Clone, Copy)]
pub(super) struct SendSlot {
    pub(super) state: SendState,
    pub(super) generation: u32,
    pub(super) to: EndpointId,
    pub(super) token: Token,
    pub(super) bits: u64,
    pub(super) region: ReadRegion,
    pub(super) synchronous: bool,
    /// The receiver has asked for the bytes ...
    pub(super) asked: bool,
    /// ... into this receive of its ...
    pub(super) target: u64,
    /// ... so many of them ...
    pub(super) room: usize,
    /// ... of which so many have gone.
    pub(super) gone: usize,
}

impl SendSlot {
    /// The bytes of a send that is under way.
    pub(super) fn buffer(&self) -> SendBuffer {
        // SAFETY: the memory is lent until the send's token completes, or the call that began it has returned
        // that it is done. The slot is freed then, and looks at slots are made in the calls that use them.
        unsafe { SendBuffer::of(self.region) }
    }
}

/// What a send waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendState {
    Free,
    /// Its turn.
    Held,
    /// The word that its short message has matched.
    AwaitMatched,
    /// The transfer of its bytes.
    Offered(Ticket),
    /// That the receiver asks for its bytes.
    AwaitGo,
    /// Room in the ring.
    Streaming,
}

/// What became of an attempt to send.
enum Attempt {
    /// Sent, and over.
    Done,
    /// Sent; the slot says what it waits for.
    Sent(SendState),
    /// Not now.
    Busy,
    Gone,
}

impl ShmMatch {
    /// See [`MatchTransport::send`](crate::network::MatchTransport::send).
    #[inline]
    pub(super) fn send_message(
        &mut self,
        to: EndpointId,
        bits: u64,
        data: &SendBuffer,
        synchronous: bool,
        token: Token,
    ) -> Sent {
        let Some(out) = self.core.outs.get_mut(to.index()) else {
            return Sent::Refused(Refusal::Unknown);
        };
        if out.sent < out.allowed
            && !synchronous
            && out.held.is_empty()
            && bits & !BITS == 0
            && data.len() <= MAX_SEND
            && let Some(bytes) = data.bytes(0..data.len())
        {
            let header = wire::header(Kind::Short, bits, 0);
            match self.shm.send(Lane(0), to, Class::Data, header, bytes) {
                Post::Posted => {
                    out.sent += 1;
                    if bytes.len() >= VISITED && !out.dirty {
                        out.dirty = true;
                        self.core.dirty.push(to);
                    }
                    return Sent::Done;
                }
                Post::Busy => {}
                Post::Gone | Post::Unsupported => return Sent::Gone,
            }
        }
        self.send_slowly(to, bits, data, synchronous, token)
    }

    #[inline(never)]
    fn send_slowly(
        &mut self,
        to: EndpointId,
        bits: u64,
        data: &SendBuffer,
        synchronous: bool,
        token: Token,
    ) -> Sent {
        if bits & !BITS != 0 {
            return Sent::Refused(Refusal::ReservedBits);
        }
        if !self.shm.is_alive(to) {
            return Sent::Gone;
        }
        let Some(region) = data.region() else {
            return self.send_pieces(to, bits, data, synchronous);
        };
        let slot = self.core.take_send(to, bits, region, synchronous, token);
        if synchronous || region.len() >= VISITED {
            self.core.mark_dirty(to);
        }
        if !self.core.outs[to.index()].held.is_empty() {
            self.hold_back(to, slot);
            return Sent::Open;
        }
        match self.attempt(slot) {
            Attempt::Done => {
                self.core.free_send(slot);
                Sent::Done
            }
            Attempt::Sent(state) => {
                self.core.sends[slot as usize].state = state;
                Sent::Open
            }
            Attempt::Busy => {
                self.hold_back(to, slot);
                Sent::Open
            }
            Attempt::Gone => {
                self.core.free_send(slot);
                Sent::Gone
            }
        }
    }

    /// A short message of several pieces, if it can go at once.
    fn send_pieces(
        &mut self,
        to: EndpointId,
        bits: u64,
        data: &SendBuffer,
        synchronous: bool,
    ) -> Sent {
        if data.len() > MAX_SEND || synchronous {
            return Sent::Refused(Refusal::Shape);
        }
        if !self.core.outs[to.index()].held.is_empty() || !self.may_send(to) {
            return Sent::Busy;
        }
        let mut bytes = [0; MAX_SEND];
        let len = data.copy_out(0, &mut bytes);
        let header = wire::header(Kind::Short, bits, 0);
        match self
            .shm
            .send(Lane(0), to, Class::Data, header, &bytes[..len])
        {
            Post::Posted => {
                self.core.outs[to.index()].sent += 1;
                if len >= VISITED {
                    self.core.mark_dirty(to);
                }
                Sent::Done
            }
            Post::Busy => Sent::Busy,
            Post::Gone | Post::Unsupported => Sent::Gone,
        }
    }

    /// Whether the receiver allows one more message.
    fn may_send(&mut self, to: EndpointId) -> bool {
        let out = &mut self.core.outs[to.index()];
        if out.sent < out.allowed {
            return true;
        }
        let allowed = match self.shm.outbound_area(to) {
            Some(area) => area.allowed.messages.load(Acquire),
            // No contact yet: the first messages make it.
            None => 0,
        };
        out.allowed = allowed.saturating_add(u64::from(INITIAL));
        out.sent < out.allowed
    }

    /// Whether the receiver wants one more envelope, though it has no room for messages.
    fn may_send_envelope(&self, to: EndpointId) -> bool {
        let out = &self.core.outs[to.index()];
        self.shm
            .outbound_area(to)
            .is_some_and(|area| out.envelopes < area.allowed.envelopes.load(Acquire))
    }

    /// Sends the message of a slot, if it is allowed and there is room.
    fn attempt(&mut self, slot: u32) -> Attempt {
        let send = self.core.sends[slot as usize];
        let to = send.to;
        let envelope_only = !self.may_send(to);
        if envelope_only && !self.may_send_envelope(to) {
            return Attempt::Busy;
        }
        let number = u64::from(slot) | u64::from(send.generation) << 32;
        let len = send.region.len();
        let (post, state) = if envelope_only {
            let words = [0, 0, len as u64];
            let bits = send.bits | wire::ASKED_FOR;
            let post = self.push(to, Kind::Stream, bits, number, words);
            (post, Some(SendState::AwaitGo))
        } else if len <= MAX_SEND {
            let number = if send.synchronous { number } else { 0 };
            let header = wire::header(Kind::Short, send.bits, number);
            let buffer = send.buffer();
            let bytes = buffer.bytes(0..len).unwrap_or_default();
            let post = self.shm.send(Lane(0), to, Class::Data, header, bytes);
            let state = send.synchronous.then_some(SendState::AwaitMatched);
            (post, state)
        } else {
            self.attempt_long(to, &send, number, slot)
        };
        match post {
            Post::Posted => {
                let out = &mut self.core.outs[to.index()];
                if envelope_only {
                    out.envelopes += 1;
                } else {
                    out.sent += 1;
                }
                state.map_or(Attempt::Done, Attempt::Sent)
            }
            Post::Busy => Attempt::Busy,
            Post::Gone | Post::Unsupported => Attempt::Gone,
        }
    }

    /// Sends the envelope of a long message, by an offer where there can be one.
    fn attempt_long(
        &mut self,
        to: EndpointId,
        send: &SendSlot,
        number: u64,
        slot: u32,
    ) -> (Post, Option<SendState>) {
        let len = send.region.len() as u64;
        let is_reached = self.shm.attach(to).is_some() || self.shm.may_map(to, send.region);
        let offer = if is_reached {
            let buffer = send.buffer();
            self.shm.open_offer(to, &buffer, Token(u64::from(slot)))
        } else {
            Offer::Unsupported
        };
        match offer {
            Offer::Busy => (Post::Busy, None),
            Offer::Open(ticket) => {
                let words = [ticket.0[0], ticket.0[1], len];
                // The offer may be seen as soon as the message is.
                self.core.sends[slot as usize].state = SendState::Offered(ticket);
                let post = self.push(to, Kind::Long, send.bits, number, words);
                if post != Post::Posted {
                    self.shm.drop_offer(to, ticket);
                    self.core.sends[slot as usize].state = send.state;
                }
                (post, Some(SendState::Offered(ticket)))
            }
            Offer::Unsupported => {
                let post = self.push(to, Kind::Stream, send.bits, number, [0, 0, len]);
                (post, Some(SendState::AwaitGo))
            }
        }
    }

    fn push(
        &mut self,
        to: EndpointId,
        kind: Kind,
        bits: u64,
        number: u64,
        words: [u64; 3],
    ) -> Post {
        let header: AmHeader = wire::header(kind, bits, number);
        let bytes = wire::three_bytes(words);
        self.shm.send(Lane(0), to, Class::Data, header, &bytes)
    }

    /// Keeps a send back until it is its turn.
    fn hold_back(&mut self, to: EndpointId, slot: u32) {
        self.core.sends[slot as usize].state = SendState::Held;
        self.core.mark_dirty(to);
        let out = &mut self.core.outs[to.index()];
        out.held.push_back(slot);
        if out.held.len() == 1 {
            self.say_holding(to, true);
        }
    }

    /// Tells the receiver whether messages for it are kept back.
    pub(super) fn say_holding(&self, to: EndpointId, holding: bool) {
        let Some(peer) = self.shm.peers.get(to.index()) else {
            return;
        };
        let (Some(area), Some(target)) = (&peer.outbound, &peer.target) else {
            return;
        };
        let holders = &target.head().counts.holders;
        let before = area.holding.word.swap(u64::from(holding), Relaxed);
        if holding && before == 0 {
            holders.fetch_add(1, Relaxed);
        } else if !holding && before != 0 {
            holders.fetch_sub(1, Relaxed);
        }
    }

    /// Sends what was kept back, and the bytes that were asked for.
    pub(super) fn push_on(&mut self, upcalls: &mut dyn MatchUpcalls) -> usize {
        let mut events = self.push_controls();
        events += self.push_streams(upcalls);
        for at in 0..self.core.dirty.len() {
            let to = self.core.dirty[at];
            while let Some(&slot) = self.core.outs[to.index()].held.front() {
                let attempt = self.attempt(slot);
                let send = self.core.sends[slot as usize];
                match attempt {
                    Attempt::Busy => break,
                    Attempt::Done => {
                        self.core.free_send(slot);
                        upcalls.sent(send.token, Outcome::Done(send.region.len() as u64));
                    }
                    Attempt::Sent(state) => self.core.sends[slot as usize].state = state,
                    Attempt::Gone => {
                        self.core.free_send(slot);
                        upcalls.sent(send.token, Outcome::PeerFailed);
                    }
                }
                events += 1;
                let out = &mut self.core.outs[to.index()];
                out.held.pop_front();
                out.compared = out.compared.saturating_sub(1);
                if self.core.outs[to.index()].held.is_empty() {
                    self.say_holding(to, false);
                }
            }
        }
        events
    }

    /// Sends bytes through the rings.
    fn push_streams(&mut self, upcalls: &mut dyn MatchUpcalls) -> usize {
        let mut events = 0;
        let mut streams = std::mem::take(&mut self.core.streams);
        streams.retain(|slot| {
            let send = self.core.sends[*slot as usize];
            let mut gone = send.gone;
            let header = wire::header(Kind::Data, 0, send.target);
            let buffer = send.buffer();
            let mut lost = false;
            while gone < send.room {
                let end = (gone + MAX_SEND).min(send.room);
                let bytes = buffer.bytes(gone..end).unwrap_or_default();
                match self.shm.send(Lane(0), send.to, Class::Data, header, bytes) {
                    Post::Posted => {
                        gone = end;
                        events += 1;
                    }
                    Post::Busy => break,
                    Post::Gone | Post::Unsupported => {
                        lost = true;
                        break;
                    }
                }
            }
            self.core.sends[*slot as usize].gone = gone;
            if gone < send.room && !lost {
                return true;
            }
            let outcome = if lost {
                Outcome::PeerFailed
            } else {
                Outcome::Done(gone as u64)
            };
            self.core.free_send(*slot);
            upcalls.sent(send.token, outcome);
            events += 1;
            false
        });
        streams.append(&mut self.core.streams);
        self.core.streams = streams;
        events
    }

    /// Makes senders that keep messages back look into the match list, and, for a probe, send
    /// envelopes as far as there are headers.
    #[cold]
    pub(super) fn rouse_holders(&mut self, envelopes: bool) {
        let head = self.core.table.map.head();
        for way in &self.shm.inbound {
            let area = way.consumer.memory();
            if area.holding.word.load(Relaxed) == 0 {
                continue;
            }
            if envelopes {
                let live = head.headers.live.load(Relaxed) as usize;
                let room = self.core.table.map.headers().len().saturating_sub(live);
                let allowed = &area.allowed.envelopes;
                let received = area.taken.envelopes.load(Relaxed);
                let open = allowed.load(Relaxed).saturating_sub(received);
                if open < ENVELOPES && room > 2 * ENVELOPES as usize * self.shm.inbound.len() {
                    allowed.store(
                        received + open + ENVELOPES,
                        std::sync::atomic::Ordering::Release,
                    );
                }
            }
            if let Some(header) = &way.header {
                waiter::wake_if_armed(header);
            }
        }
    }
}

/// Shortest message for whose sake a sender visits its receiver. To take a shorter one out of the
/// ring costs the receiver less than to take note of what a visitor has done: that is on four
/// lines that the visitor wrote.
const VISITED: usize = 2048;

/// How many envelopes a probe that finds nothing asks each sender for that keeps some back.
const ENVELOPES: u64 = 16;

impl Core {
    fn take_send(
        &mut self,
        to: EndpointId,
        bits: u64,
        region: ReadRegion,
        synchronous: bool,
        token: Token,
    ) -> u32 {
        let index = self.free_sends.pop().unwrap_or_else(|| {
            self.sends.push(SendSlot {
                state: SendState::Free,
                generation: 0,
                to,
                token,
                bits,
                region,
                synchronous,
                asked: false,
                target: 0,
                room: 0,
                gone: 0,
            });
            self.sends.len() as u32 - 1
        });
        let generation = self.sends[index as usize].generation.wrapping_add(1).max(1);
        self.sends[index as usize] = SendSlot {
            state: SendState::Held,
            generation,
            to,
            token,
            bits,
            region,
            synchronous,
            asked: false,
            target: 0,
            room: 0,
            gone: 0,
        };
        index
    }

    pub(super) fn free_send(&mut self, slot: u32) {
        self.sends[slot as usize].state = SendState::Free;
        self.free_sends.push(slot);
    }

    /// The send to `peer` that a number names.
    pub(super) fn send_slot(&self, number: u64, peer: EndpointId) -> Option<u32> {
        let send = self.sends.get(number as u32 as usize)?;
        let live = send.state != SendState::Free
            && send.generation == (number >> 32) as u32
            && send.to == peer;
        live.then_some(number as u32)
    }

    pub(super) fn mark_dirty(&mut self, to: EndpointId) {
        let out = &mut self.outs[to.index()];
        if !out.dirty {
            out.dirty = true;
            self.dirty.push(to);
        }
    }

    /// Whether anything is kept back, or asked for.
    #[inline]
    pub(super) fn has_to_send(&self) -> bool {
        self.sends.len() != self.free_sends.len() || !self.controls.is_empty()
    }

    /// Notes that a send is over.
    pub(super) fn sent(&mut self, slot: u32, outcome: Outcome) {
        let token = self.sends[slot as usize].token;
        self.free_send(slot);
        self.ended.push_back(Ended::Sent(token, outcome));
    }
}
