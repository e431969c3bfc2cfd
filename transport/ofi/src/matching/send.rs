//! Sends: at once, or announced and granted.

use tagwire_libfabric_sys::bindings::FI_SEND;
use tagwire_transport::data::ReadRegion;
use tagwire_transport::{
    EndpointId, MatchUpcalls, Outcome, Post, Refusal, SendBuffer, Sent, Token,
};

use super::outgoing::{Outgoing, SLOT_BITS};
use super::tags::{MAX_MESSAGE, NUMBER_BITS, Tags};
use super::{Control, OfiMatch, Owed};
use crate::fabric::{Peer, Took};

impl OfiMatch {
    #[inline]
    pub(super) fn start_send(
        &mut self,
        to: EndpointId,
        bits: u64,
        data: &SendBuffer,
        synchronous: bool,
        token: Token,
    ) -> Sent {
        if bits & !self.tags.user() != 0 {
            return Sent::Refused(Refusal::ReservedBits);
        }
        if self.bytes.engine.peers.links.get(to).is_none() {
            return Sent::Refused(Refusal::Unknown);
        }
        let peer = match self.bytes.engine.peers.check(to, u32::MAX) {
            Ok(peer) => peer,
            Err(Post::Busy) => return Sent::Busy,
            Err(_) => return Sent::Gone,
        };
        let tag = self.tags.message(self.bytes.engine.peers.rank(), bits);
        if !synchronous
            && data.len() <= self.rooms.short
            && self.flows.allows(to, data.len() as u64)
        {
            return self.send_at_once(to, peer, tag, data);
        }
        if !synchronous
            && data.len() <= self.rooms.longest
            && let Some(region) = data.region()
            && self.flows.allows(to, data.len() as u64)
        {
            return self.send_lent(to, peer, tag, region, token);
        }
        match data.region() {
            Some(region) => self.announce(to, peer, tag, region, token),
            None => Sent::Refused(Refusal::Shape),
        }
    }

    #[inline]
    fn send_at_once(&mut self, to: EndpointId, peer: Peer, tag: u64, data: &SendBuffer) -> Sent {
        let took = match data.bytes(0..data.len()) {
            Some(bytes) if bytes.len() <= self.bytes.engine.peers.inject_size() => {
                self.bytes.engine.peers.net.inject_tagged(peer, tag, bytes)
            }
            _ => self
                .bytes
                .engine
                .peers
                .send_copy_tagged(to, peer, tag, data),
        };
        match took {
            Took::Yes => {
                self.flows.note_sent(to, data.len() as u64);
                Sent::Done
            }
            Took::Busy => Sent::Busy,
            Took::Failed(code) => {
                self.bytes.engine.peers.lose_later(to, code);
                Sent::Gone
            }
        }
    }

    /// Sends a message of which nothing is copied, without asking: where the provider would not ask
    /// either.
    fn send_lent(
        &mut self,
        to: EndpointId,
        peer: Peer,
        tag: u64,
        data: ReadRegion,
        token: Token,
    ) -> Sent {
        let slot = self.outgoing.enter(Outgoing::Granted {
            to,
            data,
            granted: data.len(),
            receive: 0,
            token,
            op: None,
            registered: None,
        });
        let took = self.give_bytes(slot, peer, tag, data);
        if took == Took::Yes {
            self.flows.note_sent(to, data.len() as u64);
            return Sent::Open;
        }
        self.outgoing.take(slot);
        match took {
            Took::Failed(code) => {
                self.bytes.engine.peers.lose_later(to, code);
                Sent::Gone
            }
            _ => Sent::Busy,
        }
    }

    fn announce(
        &mut self,
        to: EndpointId,
        peer: Peer,
        tag: u64,
        data: ReadRegion,
        token: Token,
    ) -> Sent {
        if data.len() as u64 > MAX_MESSAGE {
            return Sent::Refused(Refusal::Length);
        }
        let slot = self.outgoing.enter(Outgoing::Announced { to, data, token });
        let Some(number) = self.outgoing.number(slot, SLOT_BITS, NUMBER_BITS) else {
            // As many sends are open as can be told apart.
            self.outgoing.take(slot);
            return Sent::Busy;
        };
        let (number, length) = (number as u32, data.len() as u64);
        let word = self.asks.encode(number, length);
        let took = self
            .bytes
            .engine
            .peers
            .net
            .inject_word(peer, Tags::announcement(tag), word);
        if took == Took::Yes {
            if self.asks.lack_length() {
                self.owe(to, Control::Length { number, length });
            }
            return Sent::Open;
        }
        self.outgoing.take(slot);
        match took {
            Took::Failed(code) => {
                self.bytes.engine.peers.lose_later(to, code);
                Sent::Gone
            }
            _ => Sent::Busy,
        }
    }

    /// The receiver asks for bytes; returns whether it may.
    pub(super) fn grant(
        &mut self,
        from: EndpointId,
        number: u32,
        receive: u64,
        granted: u64,
        upcalls: &mut dyn MatchUpcalls,
    ) -> bool {
        let slot = self
            .outgoing
            .slot(u64::from(number), SLOT_BITS, NUMBER_BITS);
        let Some(slot) = slot else { return false };
        let Some(Outgoing::Announced { to, data, token }) = self.outgoing.get(slot) else {
            return false;
        };
        let (to, data, token) = (*to, *data, *token);
        if to != from || granted > data.len() as u64 || receive >> 63 != 0 {
            return false;
        }
        if granted == 0 {
            self.outgoing.take(slot);
            upcalls.sent(token, Outcome::Done(0));
            return true;
        }
        if let Some(outgoing) = self.outgoing.get_mut(slot) {
            *outgoing = Outgoing::Granted {
                to,
                data,
                granted: granted as usize,
                receive,
                token,
                op: None,
                registered: None,
            };
        }
        if !self.send_bytes(slot) {
            self.owed.push_back(Owed::Bytes(slot));
        }
        true
    }

    /// Gives the bytes of a send to the provider; returns whether that is done with.
    pub(super) fn send_bytes(&mut self, slot: u32) -> bool {
        let Some(Outgoing::Granted {
            to,
            data,
            granted,
            receive,
            op: None,
            ..
        }) = self.outgoing.get(slot)
        else {
            return true;
        };
        let (to, receive) = (*to, *receive);
        let Some(part) = data.slice(0..*granted) else {
            return true;
        };
        let Some(peer) = self.bytes.engine.peers.links[to].peer else {
            return true;
        };
        match self.give_bytes(slot, peer, Tags::private(receive), part) {
            Took::Yes => true,
            Took::Busy => false,
            Took::Failed(code) => {
                self.bytes.engine.peers.lose_later(to, code);
                true
            }
        }
    }

    /// Gives `part` of the granted send in `slot` to the provider, as a message under `tag`.
    #[allow(unsafe_code, reason = "buffers are lent to the provider")]
    fn give_bytes(&mut self, slot: u32, peer: Peer, tag: u64, part: ReadRegion) -> Took {
        // SAFETY: the buffer is lent until the send has ended, and its entry keeps the registration.
        let memory = unsafe {
            self.bytes
                .engine
                .peers
                .register_locally(part.as_ptr(), part.len(), FI_SEND)
        };
        let Ok(memory) = memory else {
            return Took::Busy;
        };
        let number = slot << 1 | 1;
        let started = self.bytes.engine.peers.start_tagged(number, |net, op| {
            // SAFETY: as above; the send has not ended while the provider has this operation for it.
            unsafe { net.send_region_tagged(peer, tag, part, memory.as_ref(), op) }
        });
        let id = match started {
            Ok(id) => id,
            Err(took) => return took,
        };
        if let Some(Outgoing::Granted { op, registered, .. }) = self.outgoing.get_mut(slot) {
            (*op, *registered) = (Some(id), memory);
        }
        Took::Yes
    }

    /// The provider is done with the bytes of a send.
    pub(super) fn end_outgoing(&mut self, slot: u32, good: bool, upcalls: &mut dyn MatchUpcalls) {
        let Some(Outgoing::Granted {
            to, token, granted, ..
        }) = self.outgoing.take(slot)
        else {
            return;
        };
        if good {
            upcalls.sent(token, Outcome::Done(granted as u64));
            return;
        }
        if !self.bytes.engine.peers.links[to].closed {
            let mut told = super::Collect(&mut self.happenings);
            self.bytes.engine.lose(to, &mut told);
        }
        upcalls.sent(token, Outcome::PeerFailed);
    }

    /// Ends the sends to a peer that is gone; those that the provider has end when it lets go.
    pub(super) fn bury_sends(&mut self, gone: EndpointId, upcalls: &mut dyn MatchUpcalls) {
        let to_it = |(slot, outgoing): (u32, &Outgoing)| (outgoing.to() == gone).then_some(slot);
        let slots: Vec<_> = self.outgoing.iter().filter_map(to_it).collect();
        for slot in slots {
            if let Some(Outgoing::Granted { op: Some(op), .. }) = self.outgoing.get(slot) {
                let op = *op;
                self.bytes.engine.peers.disconnect(gone);
                self.bytes.engine.peers.net.cancel(op);
                self.bytes.engine.peers.give_up_soon(op);
            } else if let Some(outgoing) = self.outgoing.take(slot) {
                upcalls.sent(outgoing.token(), Outcome::PeerFailed);
            }
        }
    }
}
