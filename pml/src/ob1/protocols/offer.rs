//! Rendezvous by offer and claim: a cooperative transfer of the transport, whose ticket travels with the envelope, and
//! whose bytes are copied by whichever side has time.
//!
//! A transport has room for so many offers at once, and all of them may be for messages that are not matched before this
//! one. Its envelope then goes alone, and it is offered once its receiver asks for the bytes.

use std::ops::RangeInclusive;

use tagwire_transport::{self as transport, Capabilities, Outcome, Payload, Post, Ticket};
use zerocopy::IntoBytes;

use super::push;
use crate::ob1::common::Common;
use crate::ob1::header::{ControlHeader, Kind, RendezvousBody};
use crate::ob1::link::Link;
use crate::ob1::path::{Sends, Terms};
use crate::ob1::points::{Point, reach};
use crate::ob1::protocol::{
    Fallback, Launch, OUT_OF_TURN, Packet, PacketKinds, Protocol, Step, Turn, end_of,
};
use crate::slab::Handle;
use crate::types::Failure;

impl Kind {
    /// To a receiver that asked for fragments: claim this instead. Handle: the receive; body: the ticket, 16 bytes.
    pub(in crate::ob1) const TICKET: Self = Self::control(23);
}

/// A rendezvous by offer under way.
#[derive(Debug)]
pub(in crate::ob1) enum Offer {
    /// A send that is to be launched.
    New,
    /// A send that is to fill the memory of its receive, which is exposed.
    Filling { target: Ticket },
    /// A send whose bytes go there, or have gone as `end` says, while its envelope has no room yet. Until that is out its receiver
    /// knows of no message.
    Filled {
        target: Ticket,
        end: Option<Outcome>,
    },
    /// A send whose transfer is open. Its receiver may have asked for fragments: it is then to be withdrawn.
    Offered {
        ticket: Ticket,
        asked: Option<Handle>,
    },
    /// A send that could not be offered with its envelope.
    Announced,
    /// A send that is to be offered to its receive, which has asked for the bytes.
    Late { receive: Handle },
    /// A receive that is to claim its transfer.
    Claiming { ticket: Ticket, send: Handle },
    /// A receive that takes part in a transfer.
    Claimed { send: Handle },
    /// A receive that waited for a message, and ends with `failure` once nobody fills its memory.
    Leaving { failure: Failure },
    /// A receive that asks for fragments, and may get a ticket instead.
    Asking { send: Handle, state: push::Push },
}

impl Offer {
    /// Returns the state of a receive whose sender is to be asked for the bytes.
    pub(in crate::ob1) const fn ask(send: Handle) -> Self {
        Self::Asking {
            send,
            state: push::Push::Asking { send },
        }
    }

    /// A receive that is to claim a transfer takes part in one into its memory.
    pub(in crate::ob1) const fn is_filled(&mut self) {
        if let Self::Claiming { send, .. } = *self {
            *self = Self::Claimed { send };
        }
    }

    /// Sends the envelope with the ticket of the open transfer.
    fn announce(ticket: Ticket, common: &Common, link: &mut Link<'_>) -> Launch {
        link.remember_offer();
        let Ticket(words) = ticket;
        let body = RendezvousBody::new(common.wanted, link.handle(), words);
        match link.send_envelope(Kind::RENDEZVOUS, common, body.as_bytes(), 0) {
            Post::Posted => Launch::Out,
            Post::Busy => Launch::Begun { moved: false },
            Post::Gone | Post::Unsupported => Launch::Lost,
        }
    }

    /// Sends the envelope of a message whose bytes go into the memory of its receive.
    fn announce_filled(
        &mut self,
        target: Ticket,
        end: Option<Outcome>,
        common: &Common,
        link: &mut Link<'_>,
    ) -> Launch {
        if matches!(end, Some(Outcome::Impossible | Outcome::Withdrawn)) {
            // The receive has another message: this one is for one that is still to come.
            *self = Self::Announced;
            return push::announce(common, link);
        }
        #[cfg(test)]
        if end.is_none() && crate::planted::LATE_NOTES.get() {
            return Launch::Begun { moved: false };
        }
        let launch = Self::announce(target, common, link);
        if launch == Launch::Out {
            reach(Point::Noted);
        }
        match (launch, end) {
            (Launch::Out, Some(_)) => Launch::Complete,
            (Launch::Out, None) => {
                *self = Self::Offered {
                    ticket: target,
                    asked: None,
                };
                Launch::Out
            }
            (other, _) => other,
        }
    }

    /// Offers the bytes to a receiver that has asked for them, or sends them in fragments.
    fn offer_now(
        &mut self,
        common: &Common,
        receive: Handle,
        link: &mut Link<'_>,
        turn: &mut Turn<'_>,
    ) -> Step {
        if common.wanted > link.terms().packet
            && let transport::Offer::Open(ticket) = link.offer(common.send_buffer())
        {
            let header = ControlHeader {
                kind: Kind::TICKET,
                handle: receive,
                argument: 0,
            };
            turn.pending
                .control(common.peer, header, ticket.0.as_bytes());
            *self = Self::Offered {
                ticket,
                asked: None,
            };
            return Step::Wait;
        }
        Step::Fallback(Fallback::Push { receive })
    }
}

impl Protocol for Offer {
    const NAME: &'static str = "offer";
    const NEW: Self = Self::New;
    const SENDS: Sends = Sends::Rendezvous;
    const KINDS: PacketKinds = &[Kind::RENDEZVOUS, Kind::TICKET];

    fn serves(terms: &Terms) -> Option<RangeInclusive<usize>> {
        let transfers = Capabilities::COOPERATIVE | Capabilities::ALLOCATION;
        terms
            .capabilities
            .intersects(transfers)
            .then_some(0..=usize::MAX)
    }

    fn describe(terms: &Terms, _: usize) -> Option<String> {
        let always = terms.capabilities.contains(Capabilities::COOPERATIVE);
        let how = "rendezvous: copied once, in chunks, by whichever of the two ranks has time";
        always.then(|| how.to_owned())
    }

    fn launch(&mut self, common: &mut Common, link: &mut Link<'_>) -> Launch {
        if let Self::Filling { target } = *self {
            if link.fill(target, common.send_buffer()) != Post::Posted {
                return Launch::Declined;
            }
            *self = Self::Filled { target, end: None };
            reach(Point::Claimed);
        }
        if let Self::Filled { target, end } = *self {
            return self.announce_filled(target, end, common, link);
        }
        if let Self::New = self {
            match link.offer(common.send_buffer()) {
                transport::Offer::Open(ticket) => {
                    *self = Self::Offered {
                        ticket,
                        asked: None,
                    };
                }
                transport::Offer::Busy => *self = Self::Announced,
                transport::Offer::Unsupported => return Launch::Declined,
            }
        }
        match self {
            Self::Offered { ticket, .. } => Self::announce(*ticket, common, link),
            _ => push::announce(common, link),
        }
    }

    fn announced(body: &RendezvousBody, _: Payload<'_>) -> Option<Self> {
        let send = Handle::from_wire(body.sender);
        Some(match body.words {
            RendezvousBody::NO_WORDS => Self::ask(send),
            words => Self::Claiming {
                ticket: Ticket(words),
                send,
            },
        })
    }

    fn matched(&mut self, common: &mut Common, turn: &mut Turn<'_>) -> Step {
        match self {
            Self::Asking { state, .. } => state.matched(common, turn),
            _ => Step::Advance,
        }
    }

    fn on_packet(&mut self, common: &mut Common, packet: Packet<'_>, turn: &mut Turn<'_>) -> Step {
        match (packet.kind, &mut *self) {
            (Kind::FRAGMENTS, Self::Offered { asked, .. }) => {
                *asked = push::asked(common, &packet);
                match asked {
                    Some(_) => Step::Advance,
                    None => Step::Broken(push::CUT_SHORT),
                }
            }
            (Kind::FRAGMENTS, Self::Announced) => match push::asked(common, &packet) {
                Some(receive) => {
                    *self = Self::Late { receive };
                    Step::Advance
                }
                None => Step::Broken(push::CUT_SHORT),
            },
            (
                Kind::TICKET,
                Self::Asking {
                    send,
                    state: push::Push::Receiving { moved: 0 },
                },
            ) => {
                let mut words = [0; 2];
                if !packet
                    .payload
                    .read_into(<[u64; 2]>::as_mut_bytes(&mut words))
                {
                    return Step::Broken("a ticket that is cut short");
                }
                let (ticket, send) = (Ticket(words), *send);
                *self = Self::Claiming { ticket, send };
                Step::Advance
            }
            (_, Self::Asking { state, .. }) => state.on_packet(common, packet, turn),
            _ => Step::Broken(OUT_OF_TURN),
        }
    }

    fn on_complete(
        &mut self,
        common: &mut Common,
        outcome: Outcome,
        gone: Option<Failure>,
        _: &mut Turn<'_>,
    ) -> Step {
        let cannot = matches!(outcome, Outcome::Impossible | Outcome::Withdrawn) && gone.is_none();
        if let Self::Filled { end, .. } = self
            && (cannot || matches!(outcome, Outcome::Done(_)))
        {
            if gone.is_some() {
                // Its envelope goes nowhere any more.
                return Step::Done(gone);
            }
            *end = Some(outcome);
            reach(Point::Filled);
            return Step::Wait;
        }
        match (outcome, &*self) {
            (_, Self::Leaving { failure }) => Step::Done(Some(*failure)),
            (Outcome::Done(bytes), Self::Claimed { .. }) if bytes < common.wanted as u64 => {
                Step::Done(Some(Failure::Protocol(common.status.source)))
            }
            (Outcome::Impossible, Self::Claimed { send }) if cannot => {
                Step::Fallback(Fallback::Ask { send: *send })
            }
            (_, Self::Offered { asked, .. }) if cannot => Step::Fallback(
                asked.map_or(Fallback::Announced, |receive| Fallback::Push { receive }),
            ),
            _ => Step::Done(end_of(common, outcome, gone)),
        }
    }

    fn advance(&mut self, common: &mut Common, link: &mut Link<'_>, turn: &mut Turn<'_>) -> Step {
        match *self {
            Self::Offered {
                ticket,
                asked: Some(_),
            } => {
                link.withdraw(ticket);
                Step::Wait
            }
            Self::Late { receive } => self.offer_now(common, receive, link, turn),
            Self::Claiming { ticket, send } => {
                let Some(data) = common.recv_buffer() else {
                    debug_assert!(false, "a receive claims");
                    return Step::Wait;
                };
                match link.claim(ticket, data) {
                    Post::Posted => {
                        *self = Self::Claimed { send };
                        Step::Wait
                    }
                    Post::Busy => Step::Advance,
                    Post::Unsupported => Step::Fallback(Fallback::Ask { send }),
                    Post::Gone => {
                        let gone = Failure::PeerFailed(common.status.source);
                        Step::Done(Some(link.failure().unwrap_or(gone)))
                    }
                }
            }
            _ => Step::Wait,
        }
    }

    fn abort(&mut self, failure: Failure) -> Step {
        match self {
            Self::Filled { end: Some(_), .. } => Step::Done(Some(failure)),
            Self::Filled { .. }
            | Self::Offered { .. }
            | Self::Claimed { .. }
            | Self::Leaving { .. } => Step::Wait,
            // Its memory may have been filled. If not, the claim fails, which is to come.
            Self::Claiming { .. } => Step::Wait,
            _ => Step::Done(Some(failure)),
        }
    }

    fn state(&self) -> &'static str {
        match self {
            Self::New | Self::Filling { .. } | Self::Offered { .. } => "envelope sent, not fetched",
            Self::Filled { .. } => "its receive is being filled, no room for its envelope",
            Self::Announced => "envelope sent, not matched",
            Self::Late { .. } => "asked for, the transport is busy",
            Self::Claiming { .. } => "the transport is busy",
            Self::Claimed { .. } | Self::Leaving { .. } => "being copied",
            Self::Asking { state, .. } => state.state(),
        }
    }
}

#[cfg(test)]
mod tests {
    use tagwire_base::{ContextId, Rank, Tag};
    use tagwire_transport::SendBuffer;

    use super::*;
    use crate::ob1::peer::PeerIndex;
    use crate::ob1::pending::Pending;
    use crate::types::SendMode;

    /// The bytes may all be there when the peer dies, and the transport says so after that.
    #[test]
    fn a_send_that_has_filled_ends_with_its_peer_before_its_envelope_is_out() {
        let peer = Rank::new(1);
        let failure = Failure::PeerFailed(peer);
        let context = ContextId::new(0);
        let data = SendBuffer::EMPTY;
        let tag = Tag::user(0).unwrap();
        let mut common = Common::send(
            data,
            PeerIndex::NONE,
            peer,
            tag,
            context,
            SendMode::Standard,
        );
        let mut pending = Pending::new();
        let mut turn = Turn {
            handle: Handle::from_wire(0),
            pending: &mut pending,
        };
        let filled = || Offer::Filled {
            target: Ticket([0; 2]),
            end: None,
        };
        let mut ends = |state: &mut Offer, gone| {
            state.on_complete(&mut common, Outcome::Done(0), gone, &mut turn)
        };
        // After the death, and before it.
        let mut state = filled();
        assert_eq!(state.abort(failure), Step::Wait);
        assert_eq!(ends(&mut state, Some(failure)), Step::Done(Some(failure)));
        let mut state = filled();
        assert_eq!(ends(&mut state, None), Step::Wait);
        assert_eq!(state.abort(failure), Step::Done(Some(failure)));
    }
}
