//! The sending half: messages on their way, and those that are kept back.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use crate::byte::ByteTransport;
use crate::cooperative::{CooperativeTransfers, Offer};
use crate::data::SendBuffer;
use crate::matching::{MatchUpcalls, Refusal, Sent};
use crate::message::{AmHeader, EndpointId, Lane, Outcome, Token};
use crate::post::{Class, Post};
use crate::shm::layout::MAX_SHORT;
use crate::shm::matching::completions::Completions;
use crate::shm::matching::layout::INITIAL;
use crate::shm::matching::packed::TransferToken;
use crate::shm::matching::sends::{SendSlot, SendState, Sends};
use crate::shm::matching::targets::Targets;
use crate::shm::matching::wire::{self, BITS, Kind};
use crate::shm::{Shm, waiter};

/// The sending half of a rank.
#[derive(Default)]
pub(super) struct Sender {
    pub(super) sends: Sends,
    pub(super) targets: Targets,
    /// Messages that were kept back first.
    pub(super) kept_back: u64,
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

impl Sender {
    /// Makes room for so many peers.
    pub(super) fn grow(&mut self, peers: usize) {
        self.targets.grow(peers);
    }

    /// Sends a message; see [`MatchTransport::send`](crate::matching::MatchTransport::send).
    #[inline]
    pub(super) fn send(
        &mut self,
        shm: &mut Shm,
        to: EndpointId,
        bits: u64,
        data: &SendBuffer,
        synchronous: bool,
        token: Token,
    ) -> Sent {
        let Some(target) = self.targets.get_mut(to) else {
            return Sent::Refused(Refusal::Unknown);
        };
        if target.sent < target.allowed
            && !synchronous
            && target.held.is_empty()
            && bits & !BITS == 0
            && data.len() <= MAX_SHORT
            && let Some(bytes) = data.bytes(0..data.len())
        {
            let header = wire::header(Kind::Short, bits, 0);
            match shm.send(Lane(0), to, Class::Data, header, bytes) {
                Post::Posted => {
                    target.sent += 1;
                    if bytes.len() >= VISITED && !target.dirty {
                        target.dirty = true;
                        self.targets.dirty.push(to);
                    }
                    return Sent::Done;
                }
                Post::Busy => {}
                Post::Gone | Post::Unsupported => return Sent::Gone,
            }
        }
        self.send_slowly(shm, to, bits, data, synchronous, token)
    }

    #[inline(never)]
    fn send_slowly(
        &mut self,
        shm: &mut Shm,
        to: EndpointId,
        bits: u64,
        data: &SendBuffer,
        synchronous: bool,
        token: Token,
    ) -> Sent {
        if bits & !BITS != 0 {
            return Sent::Refused(Refusal::ReservedBits);
        }
        if !shm.is_alive(to) {
            return Sent::Gone;
        }
        let Some(region) = data.region() else {
            return self.send_pieces(shm, to, bits, data, synchronous);
        };
        let slot = self.sends.take(to, bits, region, synchronous, token);
        if synchronous || region.len() >= VISITED {
            self.targets.mark_dirty(to);
        }
        if !self.targets.of(to).held.is_empty() {
            self.hold_back(shm, to, slot);
            return Sent::Open;
        }
        match self.attempt(shm, slot) {
            Attempt::Done => {
                self.sends.free(slot);
                Sent::Done
            }
            Attempt::Sent(state) => {
                self.sends.slots[slot as usize].state = state;
                Sent::Open
            }
            Attempt::Busy => {
                self.hold_back(shm, to, slot);
                Sent::Open
            }
            Attempt::Gone => {
                self.sends.free(slot);
                Sent::Gone
            }
        }
    }

    /// Sends a short message of several pieces, if it can go at once.
    fn send_pieces(
        &mut self,
        shm: &mut Shm,
        to: EndpointId,
        bits: u64,
        data: &SendBuffer,
        synchronous: bool,
    ) -> Sent {
        if data.len() > MAX_SHORT || synchronous {
            return Sent::Refused(Refusal::Shape);
        }
        // What has to be kept back is kept here as one region, where its receiver can ask for it by a receive that is posted.
        if !self.targets.of(to).held.is_empty() || !self.may_send(shm, to) {
            return Sent::Refused(Refusal::Shape);
        }
        let mut bytes = [0; MAX_SHORT];
        let len = data.copy_out(0, &mut bytes);
        let header = wire::header(Kind::Short, bits, 0);
        match shm.send(Lane(0), to, Class::Data, header, &bytes[..len]) {
            Post::Posted => {
                self.targets.of_mut(to).sent += 1;
                if len >= VISITED {
                    self.targets.mark_dirty(to);
                }
                Sent::Done
            }
            Post::Busy => Sent::Busy,
            Post::Gone | Post::Unsupported => Sent::Gone,
        }
    }

    /// Returns whether the receiver allows one more message.
    fn may_send(&mut self, shm: &Shm, to: EndpointId) -> bool {
        let target = self.targets.of_mut(to);
        if target.sent < target.allowed {
            return true;
        }
        let allowed = match shm.outbound_area(to) {
            Some(area) => area.allowed.messages.load(Acquire),
            // No contact yet: the first messages make it.
            None => 0,
        };
        target.allowed = allowed.saturating_add(u64::from(INITIAL));
        target.sent < target.allowed
    }

    /// Returns whether the receiver wants one more envelope, though it has no room for messages.
    fn may_send_envelope(&self, shm: &Shm, to: EndpointId) -> bool {
        let target = self.targets.of(to);
        shm.outbound_area(to)
            .is_some_and(|area| target.envelopes < area.allowed.envelopes.load(Acquire))
    }

    /// Sends the message of a slot, if it is allowed and there is room.
    fn attempt(&mut self, shm: &mut Shm, slot: u32) -> Attempt {
        let send = self.sends.slots[slot as usize];
        let to = send.to;
        let envelope_only = !self.may_send(shm, to);
        if envelope_only && !self.may_send_envelope(shm, to) {
            return Attempt::Busy;
        }
        let number = self.sends.number(slot);
        let len = send.region.len();
        let (post, state) = if envelope_only {
            let words = [0, 0, len as u64];
            let bits = send.bits | wire::ASKED_FOR;
            let post = push(shm, to, Kind::Stream, bits, number, words);
            (post, Some(SendState::AwaitGo))
        } else if len <= MAX_SHORT {
            let number = if send.synchronous { number } else { 0 };
            let header = wire::header(Kind::Short, send.bits, number);
            let buffer = send.buffer();
            let bytes = buffer.bytes(0..len).unwrap_or_default();
            let post = shm.send(Lane(0), to, Class::Data, header, bytes);
            let state = send.synchronous.then_some(SendState::AwaitMatched);
            (post, state)
        } else {
            self.attempt_long(shm, &send, number, slot)
        };
        match post {
            Post::Posted => {
                let target = self.targets.of_mut(to);
                if envelope_only {
                    target.envelopes += 1;
                } else {
                    target.sent += 1;
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
        shm: &mut Shm,
        send: &SendSlot,
        number: u64,
        slot: u32,
    ) -> (Post, Option<SendState>) {
        let to = send.to;
        let len = send.region.len() as u64;
        let is_reached =
            shm.attach(to).is_some() || shm.may_map(to, send.region.address(), send.region.len());
        let offer = if is_reached {
            let buffer = send.buffer();
            shm.offer(Lane(0), to, &buffer, TransferToken::Send(slot).pack())
        } else {
            Offer::Unsupported
        };
        match offer {
            Offer::Busy => (Post::Busy, None),
            Offer::Open(ticket) => {
                let words = [ticket.0[0], ticket.0[1], len];
                // The offer may be seen as soon as the message is.
                self.sends.slots[slot as usize].state = SendState::Offered(ticket);
                let post = push(shm, to, Kind::Long, send.bits, number, words);
                if post != Post::Posted {
                    shm.forget(to, ticket);
                    self.sends.slots[slot as usize].state = send.state;
                }
                (post, Some(SendState::Offered(ticket)))
            }
            Offer::Unsupported => {
                let post = push(shm, to, Kind::Stream, send.bits, number, [0, 0, len]);
                (post, Some(SendState::AwaitGo))
            }
        }
    }

    /// Keeps a send back until it is its turn.
    fn hold_back(&mut self, shm: &Shm, to: EndpointId, slot: u32) {
        self.sends.slots[slot as usize].state = SendState::Held;
        self.targets.mark_dirty(to);
        let target = self.targets.of_mut(to);
        target.held.push_back(slot);
        self.kept_back += 1;
        if target.held.len() == 1 {
            say_holding(shm, to, true);
        }
    }

    /// Sends what was kept back, and the bytes that were asked for.
    pub(super) fn push(&mut self, shm: &mut Shm, upcalls: &mut dyn MatchUpcalls) -> usize {
        let mut events = self.push_streams(shm, upcalls);
        for at in 0..self.targets.dirty.len() {
            let to = self.targets.dirty[at];
            while let Some(&slot) = self.targets.of(to).held.front() {
                match self.attempt(shm, slot) {
                    Attempt::Busy => break,
                    Attempt::Done => {
                        let len = self.sends.slots[slot as usize].region.len() as u64;
                        self.sends.end(slot, Outcome::Done(len)).report(upcalls);
                    }
                    Attempt::Sent(state) => self.sends.slots[slot as usize].state = state,
                    Attempt::Gone => self.sends.end(slot, Outcome::PeerFailed).report(upcalls),
                }
                events += 1;
                let target = self.targets.of_mut(to);
                target.held.pop_front();
                target.compared = target.compared.saturating_sub(1);
                if target.held.is_empty() {
                    say_holding(shm, to, false);
                }
            }
        }
        events
    }

    /// Sends bytes through the rings.
    fn push_streams(&mut self, shm: &mut Shm, upcalls: &mut dyn MatchUpcalls) -> usize {
        let mut events = 0;
        let mut streams = std::mem::take(&mut self.sends.streams);
        streams.retain(|&slot| {
            let send = &mut self.sends.slots[slot as usize];
            let before = send.gone;
            let stream = push_stream(shm, send);
            events += (send.gone - before).div_ceil(MAX_SHORT);
            let outcome = match stream {
                Post::Busy => return true,
                Post::Posted => Outcome::Done(send.gone as u64),
                Post::Gone | Post::Unsupported => Outcome::PeerFailed,
            };
            self.sends.end(slot, outcome).report(upcalls);
            events += 1;
            false
        });
        streams.append(&mut self.sends.streams);
        self.sends.streams = streams;
        events
    }

    /// Ends what waits for a peer that is gone, but for transfers, which end by themselves.
    pub(super) fn end_peer(&mut self, endpoint: EndpointId, completions: &mut Completions) {
        self.sends.end_peer(endpoint, completions);
        self.targets.end_peer(endpoint);
    }

    /// Wakes peers that sleep on messages of ours.
    pub(super) fn wake_untaken(&self, shm: &Shm) {
        for &to in &self.targets.dirty {
            if let Some(way) = &shm.outbound[to.index()] {
                waiter::wake_if_armed(&way.header);
            }
        }
    }
}

/// Tells the receiver whether messages for it are kept back.
pub(super) fn say_holding(shm: &Shm, to: EndpointId, holding: bool) {
    let Some(peer) = shm.peers.get(to.index()) else {
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

/// Sends the bytes of a send that the receiver has asked for, as far as there is room. [`Post::Posted`] once all
/// are sent.
fn push_stream(shm: &mut Shm, send: &mut SendSlot) -> Post {
    let header = wire::header(Kind::Data, 0, send.target);
    let buffer = send.buffer();
    while send.gone < send.room {
        let end = (send.gone + MAX_SHORT).min(send.room);
        let bytes = buffer.bytes(send.gone..end).unwrap_or_default();
        match shm.send(Lane(0), send.to, Class::Data, header, bytes) {
            Post::Posted => send.gone = end,
            other => return other,
        }
    }
    Post::Posted
}

/// Sends a message whose bytes do not go with it.
fn push(
    shm: &mut Shm,
    to: EndpointId,
    kind: Kind,
    bits: u64,
    number: u64,
    words: [u64; 3],
) -> Post {
    let header: AmHeader = wire::header(kind, bits, number);
    let bytes = wire::three_bytes(words);
    shm.send(Lane(0), to, Class::Data, header, &bytes)
}

/// Shortest message for whose sake a sender visits its receiver. To take a shorter one out of the
/// ring costs the receiver less than to take note of what a sender has done: that is on four
/// lines that the sender wrote.
const VISITED: usize = 2048;
