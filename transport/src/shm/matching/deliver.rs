//! What the byte transport underneath delivers: messages, control messages, ends of transfers and peers.

use crate::matching::MatchUpcalls;
use crate::message::{AmHeader, Arrival, EndpointId, Outcome, Payload, PeerEvent, Token, Upcalls};
use crate::shm::Shm;
use crate::shm::matching::completions::{Ended, lend};
use crate::shm::matching::packed::TransferToken;
use crate::shm::matching::pending::Operation;
use crate::shm::matching::receiver::Breach;
use crate::shm::matching::sends::Asked;
use crate::shm::matching::state::State;
use crate::shm::matching::table::{self, Placed, store_state};
use crate::shm::matching::wire::{self, Kind};
use crate::shm::progress::{self, BURST};

/// Takes what the byte transport underneath delivers.
pub(super) struct Deliver<'a> {
    state: &'a mut State,
    /// Who is told at once; without, what ends is reported later.
    upcalls: Option<&'a mut dyn MatchUpcalls>,
    /// Messages that count against the sender's allowance.
    messages: u32,
    /// Those of them that took no room.
    matched: u32,
    /// Those beyond it.
    envelopes: u32,
}

impl<'a> Deliver<'a> {
    pub(super) fn new(state: &'a mut State, upcalls: Option<&'a mut dyn MatchUpcalls>) -> Self {
        Self {
            state,
            upcalls,
            messages: 0,
            matched: 0,
            envelopes: 0,
        }
    }

    #[inline(always)]
    fn report(&mut self, ended: Ended) {
        match &mut self.upcalls {
            Some(upcalls) => ended.report(*upcalls),
            None => self.state.completions.push(ended),
        }
    }

    #[inline(always)]
    fn came(&mut self, from: EndpointId, ended: Result<Option<Ended>, Breach>) {
        match ended {
            Ok(Some(ended)) => self.report(ended),
            Ok(None) => {}
            Err(breach) => self.broken(from, breach),
        }
    }

    #[inline]
    fn arrived(&mut self, from: EndpointId, header: AmHeader, payload: Payload<'_>) {
        if wire::is_packet(header) {
            return self.report(Ended::Packet(from, header, payload.to_vec()));
        }
        let Some(kind) = wire::kind_of(header) else {
            return self.broken(from, "a message of an unknown kind");
        };
        if !kind.is_message() {
            return self.control(from, kind, header.0[1], payload);
        }
        let Some(&source) = self.state.ranks.get(from.index()) else {
            return self.broken(from, "a message before its contact");
        };
        let Some(message) = wire::parse(source, kind, header, payload) else {
            return self.broken(from, "a message with impossible match bits or length");
        };
        if message.asked_for {
            self.envelopes += 1;
        } else {
            self.messages += 1;
        }
        let receiver = &mut self.state.receiver;
        match receiver.list.table.place(&message, None) {
            Placed::Matched(index) => {
                self.matched += u32::from(!message.asked_for);
                let ended = receiver.matched(index, from, &message);
                self.came(from, ended);
            }
            Placed::Kept(_) => {}
            Placed::NoBlock => receiver.list.spill(&message),
            Placed::Full => self.broken(from, "more messages than it was allowed"),
        }
    }

    fn control(&mut self, from: EndpointId, kind: Kind, number: u64, payload: Payload<'_>) {
        match kind {
            Kind::Matched => {
                if let Some(ended) = self.state.sender.sends.matched(number, from) {
                    self.report(ended);
                }
            }
            Kind::Go => {
                let Some([target, room, _]) = wire::three_words(payload) else {
                    return self.broken(from, "a request for bytes without a place for them");
                };
                let sends = &mut self.state.sender.sends;
                if let Asked::Withdraw(ticket) = sends.asked(number, from, target, room) {
                    let operation = Operation::Withdraw(from, ticket);
                    self.state.receiver.pending.push(operation);
                }
            }
            Kind::Data => {
                let ended = self.state.receiver.data(from, number, payload);
                self.came(from, ended);
            }
            Kind::Short | Kind::Long | Kind::Stream => {}
        }
    }

    fn broken(&mut self, from: EndpointId, breach: Breach) {
        self.state.broken.push((from, breach));
    }
}

impl Upcalls for Deliver<'_> {
    #[inline]
    fn deliver(&mut self, arrival: Arrival<'_>) {
        self.arrived(arrival.from, arrival.header, arrival.payload);
    }

    fn complete(&mut self, token: Token, outcome: Outcome) {
        let ended = match TransferToken::unpack(token) {
            Some(TransferToken::Receive(index)) => {
                self.state.receiver.transfer_ended(index, outcome)
            }
            Some(TransferToken::Send(slot)) => {
                self.state.sender.sends.transfer_ended(slot, outcome)
            }
            None => Some(Ended::Access(token, outcome)),
        };
        if let Some(ended) = ended {
            self.report(ended);
        }
    }

    fn peer(&mut self, event: PeerEvent) {
        let gone = match &event {
            PeerEvent::Up { endpoint, rank } => {
                self.state.know(*endpoint, *rank);
                None
            }
            PeerEvent::Left(endpoint) | PeerEvent::Failed(endpoint) => Some(*endpoint),
            PeerEvent::Protocol(endpoint, _) => *endpoint,
        };
        if let Some(endpoint) = gone {
            self.state.forget_messages(endpoint);
        }
        self.report(Ended::Peer(event));
        if let Some(endpoint) = gone {
            self.state.end_operations(endpoint);
        }
    }
}

/// Takes messages out of the rings, and matches them. Under the own lock.
#[inline]
pub(super) fn drain_rings(
    shm: &mut Shm,
    state: &mut State,
    mut upcalls: Option<&mut dyn MatchUpcalls>,
) -> usize {
    let mut events = 0;
    for way in &mut shm.inbound {
        if !way.consumer.is_ready() {
            continue;
        }
        let mut deliver = Deliver::new(state, lend(&mut upcalls));
        let taken = progress::drain(way, BURST, &mut deliver);
        let Deliver {
            messages,
            matched,
            envelopes,
            ..
        } = deliver;
        events += taken.count;
        if taken.pieces {
            // What is staged for a transfer: ranks that match have none.
            way.broken
                .get_or_insert_with(|| "a piece of a transfer".to_owned());
        }
        if taken.pieces | taken.broken {
            shm.attention = true;
        }
        let area = way.consumer.memory();
        store_state(&area.taken, way.consumer.state());
        if envelopes != 0 {
            table::count_envelopes(area, envelopes);
        }
        let table = &state.receiver.list.table;
        let allowed = messages != 0 && table.count_arrivals(area, messages, matched);
        if way.consumer.has_given_credits() | allowed {
            way.wake_for_credits();
        }
    }
    events
}
