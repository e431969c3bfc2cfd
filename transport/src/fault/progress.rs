//! What comes up: messages go through the hold, completions and first contacts pass at once.

use super::config::FaultOptions;
use super::hold::{Held, Item, PeerHold};
use super::random::SplitMix64;
use super::rank::FaultTransport;
use crate::byte::ByteTransport;
use crate::message::{Arrival, EndpointId, Outcome, Payload, PeerEvent, Token, Upcalls};

/// Messages held back at most: beyond, the transport inside makes no progress, so that its
/// back-pressure stays in force.
pub(super) const MOST_HELD: usize = 256;

/// Stands between the transport inside and the layer above.
struct Intake<'a> {
    holds: &'a mut Vec<PeerHold>,
    held: &'a mut usize,
    random: &'a mut SplitMix64,
    options: &'a FaultOptions,
    now: u64,
    above: &'a mut dyn Upcalls,
}

impl Intake<'_> {
    fn hold(&mut self, endpoint: EndpointId) -> &mut PeerHold {
        if self.holds.len() <= endpoint.index() {
            self.holds
                .resize_with(endpoint.index() + 1, PeerHold::default);
        }
        &mut self.holds[endpoint.index()]
    }
}

impl Upcalls for Intake<'_> {
    fn deliver(&mut self, arrival: Arrival<'_>) {
        self.hold(arrival.from);
        let damage = self.options.damage;
        for _ in 0..damage.copies(self.random) {
            let (mut header, mut bytes) = (arrival.header, arrival.payload.to_vec());
            damage.strike(&mut header, &mut bytes, self.random);
            self.holds[arrival.from.index()].push(
                header,
                bytes,
                self.now,
                self.options,
                self.random,
            );
            *self.held += 1;
        }
    }

    fn complete(&mut self, token: Token, outcome: Outcome) {
        self.above.complete(token, outcome);
    }

    fn notice(&mut self, immediate: u64) {
        self.above.notice(immediate);
    }

    fn peer(&mut self, event: PeerEvent) {
        match event {
            PeerEvent::Left(endpoint)
            | PeerEvent::Failed(endpoint)
            | PeerEvent::Protocol(Some(endpoint), _) => {
                self.hold(endpoint).push_fence(event);
                *self.held += 1;
            }
            event => self.above.peer(event),
        }
    }
}

impl FaultTransport {
    /// Lets the transport inside tell what it has, into the hold.
    pub(super) fn take_in<R: Default>(
        &mut self,
        above: &mut dyn Upcalls,
        tell: impl FnOnce(&mut dyn ByteTransport, &mut dyn Upcalls) -> R,
    ) -> R {
        let mut holds = std::mem::take(&mut self.holds);
        let (mut held, mut random) = (self.held, self.random.clone());
        let options = self.options.clone();
        let mut intake = Intake {
            holds: &mut holds,
            held: &mut held,
            random: &mut random,
            options: &options,
            now: self.now,
            above,
        };
        let result = match self.living() {
            Some(inner) => tell(inner, &mut intake),
            None => R::default(),
        };
        (self.holds, self.held, self.random) = (holds, held, random);
        result
    }

    /// Tells what is due; returns how many things.
    pub(super) fn let_go(&mut self, upcalls: &mut dyn Upcalls) -> usize {
        let mut told = 0;
        for index in 0..self.holds.len() {
            while let Some(item) =
                self.holds[index].pop(self.now, self.options.reorder, &mut self.random)
            {
                self.held -= 1;
                match item {
                    Item::Fence(event) => upcalls.peer(event),
                    Item::Message(held) => {
                        if !self.survives_message() {
                            return told;
                        }
                        self.deliver(EndpointId(index as u32), held, upcalls);
                    }
                }
                told += 1;
            }
        }
        told
    }

    fn deliver(&mut self, from: EndpointId, held: Held, upcalls: &mut dyn Upcalls) {
        upcalls.deliver(Arrival {
            from,
            header: held.header,
            payload: Payload::from_slice(&held.bytes),
        });
    }
}
