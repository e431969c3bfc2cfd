//! Receives, looks and claims.

use tagwire_libfabric_sys::bindings::{FI_ENOMSG, FI_RECV};
use tagwire_transport::data::WriteRegion;
use tagwire_transport::{
    Cancel, ClaimId, EndpointId, Found, MatchEnvelope, MatchPattern, MatchUpcalls, Outcome, Posted,
    Probed, ReceiveEnd, RecvBuffer, Refusal, Token,
};

use super::incoming::{Content, Incoming};
use super::tags::Tags;
use super::{Collect, Control, OfiMatch, Owed};
use crate::fabric::{Completion, Fault, Pattern, Place, Registered, Took};

/// Bits of a slot, and of all, in the number of a receive or claim.
const NUMBER: (u32, u32) = (32, 62);

/// What a completion says of a message.
#[derive(Debug, Clone, Copy)]
struct Seen {
    envelope: MatchEnvelope,
    from: EndpointId,
    /// The number to ask for, where the bytes did not come along.
    number: Option<u32>,
}

impl OfiMatch {
    pub(super) fn start_receive(
        &mut self,
        pattern: &MatchPattern,
        data: &RecvBuffer,
        token: Token,
    ) -> Posted {
        if let Some(refusal) = self.check(pattern) {
            return Posted::Refused(refusal);
        }
        let Some(target) = data.region() else {
            return Posted::Refused(Refusal::Shape);
        };
        if self.claiming > 0 {
            return Posted::Busy;
        }
        // Where nobody can be heard any more, it waits to be taken back.
        let is_vain = self.bytes.engine.peers.is_broken();
        let len = if is_vain { 0 } else { target.len() };
        let Ok(registered) = self.register_target(target, len) else {
            return Posted::Busy;
        };
        let slot = self.incoming.enter(Incoming::Posted {
            token,
            target,
            pattern: self.tags.pattern(pattern),
            op: None,
            registered,
            unwanted: false,
        });
        if is_vain || self.give_receive(slot) {
            return Posted::Open;
        }
        self.incoming.take(slot);
        Posted::Busy
    }

    /// Registers the buffer of a receive, whose entry keeps the registration.
    #[allow(unsafe_code, reason = "buffers are lent to the provider")]
    fn register_target(
        &mut self,
        target: WriteRegion,
        len: usize,
    ) -> Result<Option<Registered>, i32> {
        let start = target.as_ptr().cast_const();
        // SAFETY: the buffer is lent until the receive has ended, and its entry goes before it is told.
        unsafe {
            self.bytes
                .engine
                .peers
                .register_locally(start, len, FI_RECV)
        }
    }

    /// Gives a receive to the provider, as what it is now; returns whether that is done with.
    #[allow(unsafe_code, reason = "buffers are lent to the provider")]
    pub(super) fn give_receive(&mut self, slot: u32) -> bool {
        let (first, bits) = NUMBER;
        let number = self.incoming.number(slot, first, bits).unwrap_or_default();
        let engine = &mut self.bytes.engine;
        let started = match self.incoming.get(slot) {
            // It could take the message that a claim has seen, for which that then waits in vain.
            Some(Incoming::Posted { .. }) if self.claiming > 0 => Err(Took::Busy),
            Some(Incoming::Posted {
                target,
                pattern,
                op: None,
                registered,
                ..
            }) => {
                let longest = self.rooms.longest;
                let rest = (target.len() < longest).then(|| (self.waste, longest - target.len()));
                let registered = registered.as_ref();
                engine.peers.start_tagged(slot << 1, |net, id| {
                    // SAFETY: the buffer is lent until the receive has ended, which it has not while the provider has
                    // this operation for it.
                    unsafe { net.receive_tagged(*pattern, *target, registered, rest, id) }
                })
            }
            Some(Incoming::Fetching {
                target,
                op: None,
                registered,
                ..
            }) => {
                let pattern = Pattern::exact(Tags::private(number));
                let registered = registered.as_ref();
                engine.peers.start_tagged(slot << 1, |net, id| {
                    // SAFETY: as above.
                    unsafe { net.receive_tagged(pattern, *target, registered, None, id) }
                })
            }
            Some(Incoming::Looking { pattern, .. }) => engine
                .peers
                .start_tagged(slot << 1, |net, id| net.peek(*pattern, id)),
            _ => return true,
        };
        let id = match started {
            Ok(id) => id,
            Err(took) => {
                if let Took::Failed(code) = took {
                    self.bytes.engine.peers.lose_all_later(code);
                }
                return false;
            }
        };
        if let Some(Incoming::Posted { op, .. } | Incoming::Fetching { op, .. }) =
            self.incoming.get_mut(slot)
        {
            *op = Some(id);
        }
        true
    }

    /// As [`give_receive`](Self::give_receive), later where there is no room now.
    fn give_receive_soon(&mut self, slot: u32) {
        if !self.give_receive(slot) {
            self.owed.push_back(Owed::Receive(slot));
        }
    }

    /// What a completion says; `None` where no rank of the job can have sent it.
    fn see(&mut self, completion: &Completion) -> Option<Seen> {
        let (source, bits) = self.tags.read(completion.tag);
        if source.as_u32() >= self.size {
            return None;
        }
        let from = self.bytes.engine.peers.links.at(source);
        let (number, length) = if Tags::is_announcement(completion.tag) {
            let (number, length) = self.asks.decode(completion.data);
            let length = length.or_else(|| self.lengths.find(from, number));
            // Without a length its sender is gone, and the message cannot be had.
            (Some(number), length.unwrap_or_default())
        } else {
            (None, completion.len as u64)
        };
        Some(Seen {
            envelope: MatchEnvelope {
                source,
                bits,
                length,
            },
            from,
            number,
        })
    }

    /// Whether the bytes of a message can still be had.
    fn can_be_had(&self, seen: &Seen) -> bool {
        seen.number.is_none() || !self.bytes.engine.peers.links[seen.from].closed
    }

    /// Tells the sender, now and then, how much of what it sent at once has matched.
    fn note_matched(&mut self, seen: &Seen) {
        if seen.number.is_none() && self.flows.note_received(seen.from, seen.envelope.length) {
            let (count, _) = self.flows.tell(seen.from);
            self.owe(seen.from, Control::Matched(count));
        }
    }

    pub(super) fn end_incoming(
        &mut self,
        slot: u32,
        end: Result<Completion, Fault>,
        upcalls: &mut dyn MatchUpcalls,
    ) {
        if self.asks.lack_length()
            && let Ok(completion) = &end
            && self.waits_for_length(slot, completion)
        {
            return;
        }
        match self.incoming.get(slot) {
            Some(Incoming::Posted { .. }) => self.end_posted(slot, end, upcalls),
            Some(Incoming::Fetching { .. }) => self.end_fetching(slot, Some(end), upcalls),
            Some(Incoming::Looking { .. }) => self.end_look(slot, end, upcalls),
            Some(Incoming::Taking { .. }) => self.end_taking(slot, end, upcalls),
            Some(Incoming::Clearing { .. }) => self.look_again(slot),
            // The sweep has not waited for it.
            Some(Incoming::Sweeping) => drop(self.incoming.take(slot)),
            Some(Incoming::Claimed { .. }) | None => {}
        }
    }

    #[inline]
    fn end_posted(
        &mut self,
        slot: u32,
        end: Result<Completion, Fault>,
        upcalls: &mut dyn MatchUpcalls,
    ) {
        let Some(Incoming::Posted {
            token,
            target,
            op,
            unwanted,
            ..
        }) = self.incoming.get_mut(slot)
        else {
            return;
        };
        *op = None;
        let (token, target, unwanted) = (*token, *target, *unwanted);
        let seen = end
            .or_else(Fault::forgive_truncation)
            .ok()
            .and_then(|completion| self.see(&completion));
        let seen = seen.filter(|seen| self.can_be_had(seen));
        let Some(seen) = seen else {
            if unwanted {
                self.incoming.take(slot);
                upcalls.received(token, ReceiveEnd::Cancelled);
            } else {
                // What it took is nobody's any more, or it was given up without being asked: it waits
                // for another.
                self.give_receive_soon(slot);
            }
            return;
        };
        self.note_matched(&seen);
        match seen.number {
            None => {
                self.incoming.take(slot);
                let fits = seen.envelope.length.min(target.len() as u64);
                upcalls.received(
                    token,
                    ReceiveEnd::Matched(seen.envelope, Outcome::Done(fits)),
                );
            }
            Some(number) => self.fetch(slot, number, seen, upcalls),
        }
    }

    /// Asks for the bytes of what the receive in `slot` has matched.
    fn fetch(&mut self, slot: u32, number: u32, seen: Seen, upcalls: &mut dyn MatchUpcalls) {
        let Some(Incoming::Posted {
            token,
            target,
            registered,
            ..
        }) = self.incoming.get_mut(slot)
        else {
            return;
        };
        let (token, registered) = (*token, registered.take());
        let granted = seen.envelope.length.min(target.len() as u64);
        let part = target.slice(0..granted as usize);
        let (first, bits) = NUMBER;
        let receive = self.incoming.number(slot, first, bits).unwrap_or_default();
        let grant = Control::Grant {
            number,
            receive,
            granted,
        };
        self.lengths.forget(seen.from, number);
        self.fetched += 1;
        let (true, Some(target)) = (granted > 0, part) else {
            self.incoming.take(slot);
            self.owe(seen.from, grant);
            upcalls.received(token, ReceiveEnd::Matched(seen.envelope, Outcome::Done(0)));
            return;
        };
        if let Some(incoming) = self.incoming.get_mut(slot) {
            *incoming = Incoming::Fetching {
                token,
                target,
                from: seen.from,
                envelope: seen.envelope,
                op: None,
                registered,
            };
        }
        // The sender may be quicker: its bytes then wait in the provider.
        self.give_receive_soon(slot);
        self.owe(seen.from, grant);
    }

    /// The bytes that were asked for have come, or not: what was posted for them has this end, and `None`
    /// where nothing was.
    fn end_fetching(
        &mut self,
        slot: u32,
        end: Option<Result<Completion, Fault>>,
        upcalls: &mut dyn MatchUpcalls,
    ) {
        let Some(Incoming::Fetching {
            token,
            target,
            from,
            envelope,
            ..
        }) = self.incoming.take(slot)
        else {
            return;
        };
        let len = end.map(|end| end.or_else(Fault::forgive_truncation).map(|all| all.len));
        let outcome = match len {
            Some(Ok(len)) if len == target.len() => Outcome::Done(len as u64),
            _ => Outcome::PeerFailed,
        };
        if outcome == Outcome::PeerFailed && !self.bytes.engine.peers.links[from].closed {
            let mut told = Collect(&mut self.happenings);
            match len {
                Some(Ok(_)) => {
                    self.bytes
                        .engine
                        .break_off(from, "not the bytes asked for", &mut told)
                }
                _ => self.bytes.engine.lose(from, &mut told),
            };
        }
        upcalls.received(token, ReceiveEnd::Matched(envelope, outcome));
    }

    pub(super) fn look(&mut self, pattern: &MatchPattern, claim: bool, token: Token) -> Probed {
        if let Some(refusal) = self.check(pattern) {
            return Probed::Refused(refusal);
        }
        if self.bytes.engine.peers.is_broken() {
            return Probed::Nothing;
        }
        if self.claiming > 0 {
            return Probed::Busy;
        }
        let slot = self.incoming.enter(Incoming::Looking {
            token,
            pattern: self.tags.pattern(pattern),
            claim,
        });
        if self.give_receive(slot) {
            self.claiming += u32::from(claim);
            return Probed::Pending;
        }
        self.incoming.take(slot);
        Probed::Busy
    }

    fn look_again(&mut self, slot: u32) {
        if let Some(incoming) = self.incoming.get_mut(slot)
            && let Incoming::Clearing {
                token,
                pattern,
                claim,
            } = *incoming
        {
            *incoming = Incoming::Looking {
                token,
                pattern,
                claim,
            };
            self.give_receive_soon(slot);
        }
    }

    fn end_look(
        &mut self,
        slot: u32,
        end: Result<Completion, Fault>,
        upcalls: &mut dyn MatchUpcalls,
    ) {
        let Some(Incoming::Looking {
            token,
            pattern,
            claim,
        }) = self.incoming.get(slot)
        else {
            return;
        };
        let (token, pattern, claim) = (*token, *pattern, *claim);
        let completion = match end {
            Ok(completion) => completion,
            Err(fault) => {
                if fault.error != FI_ENOMSG as i32 {
                    tracing::debug!(error = fault.error, "ofi: a look failed");
                }
                self.end_without(slot, token, claim, upcalls);
                return;
            }
        };
        let seen = match self.without_length(&completion) {
            None => self.see(&completion),
            Some(_) => None,
        };
        let Some(seen) = seen else {
            self.end_without(slot, token, claim, upcalls);
            return;
        };
        let message = Pattern::exact(completion.tag);
        if !self.can_be_had(&seen) {
            self.clear(slot, message, (token, pattern, claim));
        } else if claim {
            self.take_out(slot, message, &seen, token, upcalls);
        } else {
            self.incoming.take(slot);
            let found = Found {
                envelope: seen.envelope,
                claim: None,
            };
            upcalls.probed(token, Some(found));
        }
    }

    fn end_without(
        &mut self,
        slot: u32,
        token: Token,
        claim: bool,
        upcalls: &mut dyn MatchUpcalls,
    ) {
        self.incoming.take(slot);
        self.claiming -= u32::from(claim);
        upcalls.probed(token, None);
    }

    /// Takes a message out whose sender is gone.
    fn clear(&mut self, slot: u32, message: Pattern, look: (Token, Pattern, bool)) {
        let waste = Place {
            block: self.waste,
            offset: 0,
        };
        let longest = self.rooms.longest;
        let started = self.bytes.engine.peers.start_tagged(slot << 1, |net, op| {
            net.receive_tagged_at(message, waste, longest, op)
        });
        let (token, pattern, claim) = look;
        if started.is_ok() {
            if let Some(incoming) = self.incoming.get_mut(slot) {
                *incoming = Incoming::Clearing {
                    token,
                    pattern,
                    claim,
                };
            }
        } else {
            self.owed.push_back(Owed::Receive(slot));
        }
    }

    /// Takes out what a look for a claim has `seen`.
    fn take_out(
        &mut self,
        slot: u32,
        message: Pattern,
        seen: &Seen,
        token: Token,
        upcalls: &mut dyn MatchUpcalls,
    ) {
        let is_announced = seen.number.is_some();
        // Of what is announced nothing comes yet.
        let length = if is_announced {
            0
        } else {
            seen.envelope.length
        };
        let Ok((place, room)) = self.rooms.take(&mut self.bytes.engine.peers, length) else {
            self.end_without(slot, token, true, upcalls);
            return;
        };
        let started = self.bytes.engine.peers.start_tagged(slot << 1, |net, op| {
            net.receive_tagged_at(message, place, room, op)
        });
        let Ok(op) = started else {
            self.rooms.put(&mut self.bytes.engine.peers, place, length);
            self.owed.push_back(Owed::Receive(slot));
            return;
        };
        if let Some(incoming) = self.incoming.get_mut(slot) {
            *incoming = Incoming::Taking {
                envelope: seen.envelope,
                from: seen.from,
                place,
                length,
                op,
                untold: is_announced.then_some(token),
                wanted: None,
            };
        }
        if !is_announced {
            self.tell_claim(slot, seen.envelope, token, upcalls);
        }
    }

    /// Tells a claim. From now on no receive can take its message.
    fn tell_claim(
        &mut self,
        slot: u32,
        envelope: MatchEnvelope,
        token: Token,
        upcalls: &mut dyn MatchUpcalls,
    ) {
        self.claiming -= 1;
        let (first, bits) = NUMBER;
        let number = self.incoming.number(slot, first, bits).unwrap_or_default();
        let found = Found {
            envelope,
            claim: Some(ClaimId(number)),
        };
        upcalls.probed(token, Some(found));
    }

    fn end_taking(
        &mut self,
        slot: u32,
        end: Result<Completion, Fault>,
        upcalls: &mut dyn MatchUpcalls,
    ) {
        let Some(Incoming::Taking {
            envelope,
            from,
            place,
            length,
            untold,
            wanted,
            ..
        }) = self.incoming.get(slot)
        else {
            return;
        };
        let (envelope, from, place, length) = (*envelope, *from, *place, *length);
        let (untold, wanted) = (*untold, *wanted);
        let seen = end.ok().and_then(|completion| self.see(&completion));
        if let Some(seen) = &seen {
            self.note_matched(seen);
        }
        let content = match seen.map(|seen| seen.number) {
            Some(None) => Content::Kept(place, length),
            other => {
                self.rooms.put(&mut self.bytes.engine.peers, place, length);
                match (other.flatten(), untold) {
                    (Some(number), _) => {
                        self.lengths.forget(from, number);
                        Content::Announced(number)
                    }
                    (None, Some(token)) => return self.end_without(slot, token, true, upcalls),
                    (None, None) => {
                        self.bytes
                            .engine
                            .lose(from, &mut Collect(&mut self.happenings));
                        Content::Lost
                    }
                }
            }
        };
        if let Some(incoming) = self.incoming.get_mut(slot) {
            *incoming = Incoming::Claimed {
                envelope,
                from,
                content,
            };
        }
        if let Some(token) = untold {
            self.tell_claim(slot, envelope, token, upcalls);
        }
        if let Some((target, token)) = wanted
            && let Posted::Done(end) = self.give_claimed(slot, target, token)
        {
            upcalls.received(token, end);
        }
    }

    pub(super) fn take_claimed(
        &mut self,
        claim: ClaimId,
        data: &RecvBuffer,
        token: Token,
    ) -> Posted {
        let (first, bits) = NUMBER;
        let slot = self.incoming.slot(claim.0, first, bits);
        let Some(slot) = slot else {
            return Posted::Refused(Refusal::Unknown);
        };
        let Some(target) = data.region() else {
            return Posted::Refused(Refusal::Shape);
        };
        match self.incoming.get_mut(slot) {
            Some(Incoming::Taking { wanted, .. }) if wanted.is_none() => {
                *wanted = Some((target, token));
                Posted::Open
            }
            Some(Incoming::Claimed { .. }) => self.give_claimed(slot, target, token),
            _ => Posted::Refused(Refusal::Unknown),
        }
    }

    /// Gives the claimed message in `slot`, which has been taken out, to a receive into `target`.
    fn give_claimed(&mut self, slot: u32, target: WriteRegion, token: Token) -> Posted {
        let Some(Incoming::Claimed {
            envelope,
            from,
            content,
        }) = self.incoming.get(slot)
        else {
            return Posted::Refused(Refusal::Unknown);
        };
        let (envelope, from, content) = (*envelope, *from, *content);
        match content {
            Content::Kept(place, length) => {
                let fits = envelope.length.min(target.len() as u64);
                let peers = &mut self.bytes.engine.peers;
                peers.net.copy_out(place, envelope.length as usize, target);
                self.rooms.put(peers, place, length);
                self.incoming.take(slot);
                Posted::Done(ReceiveEnd::Matched(envelope, Outcome::Done(fits)))
            }
            Content::Announced(number) if !self.bytes.engine.peers.links[from].closed => {
                let seen = Seen {
                    envelope,
                    from,
                    number: Some(number),
                };
                self.fetch_claimed(slot, number, seen, target, token)
            }
            Content::Announced(_) | Content::Lost => {
                self.incoming.take(slot);
                Posted::Done(ReceiveEnd::Matched(envelope, Outcome::PeerFailed))
            }
        }
    }

    fn fetch_claimed(
        &mut self,
        slot: u32,
        number: u32,
        seen: Seen,
        target: WriteRegion,
        token: Token,
    ) -> Posted {
        let len = target.len();
        let Ok(registered) = self.register_target(target, len) else {
            return Posted::Busy;
        };
        if let Some(incoming) = self.incoming.get_mut(slot) {
            *incoming = Incoming::Posted {
                token,
                target,
                pattern: Pattern::exact(0),
                op: None,
                registered,
                unwanted: false,
            };
        }
        let mut at_once = AtOnce(None);
        self.fetch(slot, number, seen, &mut at_once);
        at_once.0.map_or(Posted::Open, Posted::Done)
    }

    pub(super) fn cancel_receive(&mut self, token: Token) -> Cancel {
        let is_it = |(slot, incoming): (u32, &Incoming)| match incoming {
            Incoming::Posted { token: one, op, .. } if *one == token => Some((slot, *op)),
            _ => None,
        };
        let Some((slot, op)) = self.incoming.iter().find_map(is_it) else {
            return Cancel::TooLate;
        };
        let Some(op) = op else {
            if self.lengths.holds(slot) {
                return Cancel::TooLate;
            }
            self.drop_owed(slot);
            self.incoming.take(slot);
            return Cancel::Cancelled;
        };
        if let Some(Incoming::Posted { unwanted, .. }) = self.incoming.get_mut(slot) {
            *unwanted = true;
        }
        self.bytes.engine.peers.net.cancel(op);
        Cancel::Pending
    }

    /// Nothing will be posted for what is in `slot`, since nobody can be heard any more. Ends it, but
    /// for a receive that the layer above has posted: that waits to be taken back.
    pub(super) fn end_unposted(&mut self, slot: u32, upcalls: &mut dyn MatchUpcalls) {
        match self.incoming.get(slot) {
            Some(Incoming::Looking { token, claim, .. }) => {
                let (token, claim) = (*token, *claim);
                self.end_without(slot, token, claim, upcalls);
            }
            Some(Incoming::Fetching { op: None, .. }) => self.end_fetching(slot, None, upcalls),
            _ => {}
        }
    }

    /// The slot is about to be another's, who gives the provider what it has by itself.
    fn drop_owed(&mut self, slot: u32) {
        self.owed.retain(|owed| *owed != Owed::Receive(slot));
    }

    /// Ends the receives that wait for bytes of a peer that is gone, each once the provider lets
    /// go.
    pub(super) fn bury_receives(&mut self, gone: EndpointId, upcalls: &mut dyn MatchUpcalls) {
        let of_it = |(slot, incoming): (u32, &Incoming)| match incoming {
            Incoming::Fetching { from, op, .. } if *from == gone => Some((slot, *op)),
            Incoming::Taking { from, op, .. } if *from == gone => Some((slot, Some(*op))),
            _ => None,
        };
        let slots: Vec<_> = self.incoming.iter().filter_map(of_it).collect();
        for (slot, op) in slots {
            match op {
                Some(op) => {
                    self.bytes.engine.peers.disconnect(gone);
                    self.bytes.engine.peers.net.cancel(op);
                    self.bytes.engine.peers.give_up_soon(op);
                }
                None => {
                    self.drop_owed(slot);
                    self.end_fetching(slot, None, upcalls);
                }
            }
        }
    }
}

/// Hears the end of a receive that ends within its call.
struct AtOnce(Option<ReceiveEnd>);

impl MatchUpcalls for AtOnce {
    fn sent(&mut self, _: Token, _: Outcome) {}

    fn received(&mut self, _: Token, end: ReceiveEnd) {
        self.0 = Some(end);
    }

    fn probed(&mut self, _: Token, _: Option<Found>) {}

    fn peer(&mut self, _: tagwire_transport::PeerEvent) {}
}
