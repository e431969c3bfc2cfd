//! Rendezvous by push: the envelope goes alone; once a receive has matched, it asks for the bytes, and the sender sends
//! them in fragments. What every transport can do, and where the other rendezvous end that find that they cannot.

use std::ops::RangeInclusive;

use tagwire_base::config::parse::format_bytes;
use tagwire_transport::Post;
use zerocopy::IntoBytes;

use crate::ob1::common::Common;
use crate::ob1::header::{ControlHeader, Kind, RendezvousBody};
use crate::ob1::link::Link;
use crate::ob1::path::{Sends, Terms};
use crate::ob1::protocol::{
    Fallback, Launch, OUT_OF_TURN, Packet, PacketKinds, Protocol, Step, Turn,
};
use crate::slab::Handle;

impl Kind {
    /// The envelope of a message that stays with its sender until matched.
    pub(in crate::ob1) const RENDEZVOUS: Self = Self::envelope(5);
    /// To a sender: send the bytes in fragments. Handle: the send; argument: the receive; body: how many bytes, 8 bytes.
    pub(in crate::ob1) const FRAGMENTS: Self = Self::control(17);
    /// Bytes of a rendezvous. Handle: the receive; argument: the offset.
    pub(in crate::ob1) const DATA: Self = Self::control(18);
}

/// A rendezvous by push under way.
#[derive(Debug)]
pub(in crate::ob1) enum Push {
    /// A send that is to be launched.
    New,
    /// A send whose receiver has not asked for the bytes.
    Announced,
    /// A send of which so many bytes are out, to this receive.
    Pushing { receive: Handle, moved: usize },
    /// A receive that has not asked yet.
    Asking { send: Handle },
    /// A receive that so many bytes have come to.
    Receiving { moved: usize },
}

impl From<Fallback> for Push {
    fn from(fallback: Fallback) -> Self {
        match fallback {
            Fallback::Announced => Self::Announced,
            Fallback::Push { receive } => Self::Pushing { receive, moved: 0 },
            Fallback::Ask { send } => Self::Asking { send },
        }
    }
}

/// Sends an envelope that says no more than that there is a message.
pub(super) fn announce(common: &Common, link: &mut Link<'_>) -> Launch {
    let body = RendezvousBody::new(common.wanted, link.handle(), RendezvousBody::NO_WORDS);
    match link.send_envelope(Kind::RENDEZVOUS, common, body.as_bytes(), 0) {
        Post::Posted => Launch::Out,
        Post::Busy => Launch::Busy,
        Post::Gone | Post::Unsupported => Launch::Lost,
    }
}

/// Takes a receiver's request for fragments. Returns the receive; `None` where the packet is cut short.
pub(super) fn asked(common: &mut Common, packet: &Packet<'_>) -> Option<Handle> {
    let mut wanted = 0;
    if !packet.payload.read_into(u64::as_mut_bytes(&mut wanted)) {
        return None;
    }
    let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
    common.wanted = common.wanted.min(wanted);
    Some(Handle::from_wire(packet.argument))
}

/// What is wrong with a request for fragments without a length.
pub(super) const CUT_SHORT: &str = "a request for fragments that is cut short";

impl Push {
    /// Sends fragments until all are out or the transport is busy.
    fn push(common: &Common, receive: Handle, moved: &mut usize, link: &mut Link<'_>) -> Step {
        while *moved < common.wanted {
            let end = common.wanted.min(*moved + link.terms().packet);
            let header = ControlHeader {
                kind: Kind::DATA,
                handle: receive,
                argument: *moved as u64,
            };
            match link.send_fragment(header, common.send_buffer(), *moved..end) {
                Post::Posted => *moved = end,
                Post::Busy => return Step::Advance,
                // How it is gone ends this send too.
                Post::Gone | Post::Unsupported => return Step::Wait,
            }
        }
        Step::Done(None)
    }

    fn take(common: &mut Common, moved: &mut usize, packet: &Packet<'_>) -> Step {
        let end = usize::try_from(packet.argument)
            .ok()
            .and_then(|offset| offset.checked_add(packet.payload.len()));
        if end.is_none_or(|end| end > common.wanted) {
            return Step::Broken("bytes that no receive asked for");
        }
        common.write(packet.argument as usize, packet.payload);
        *moved += packet.payload.len();
        if *moved >= common.wanted {
            Step::Done(None)
        } else {
            Step::Wait
        }
    }
}

impl Protocol for Push {
    const NAME: &'static str = "push";
    const NEW: Self = Self::New;
    const SENDS: Sends = Sends::Rendezvous;
    const KINDS: PacketKinds = &[Kind::FRAGMENTS, Kind::DATA];

    fn serves(_: &Terms) -> Option<RangeInclusive<usize>> {
        Some(0..=usize::MAX)
    }

    fn describe(terms: &Terms, _: usize) -> Option<String> {
        let packet = format_bytes(terms.packet as u64);
        Some(format!("rendezvous: sent in packets of {packet}"))
    }

    fn launch(&mut self, common: &mut Common, link: &mut Link<'_>) -> Launch {
        let launch = announce(common, link);
        if launch == Launch::Out {
            *self = Self::Announced;
        }
        launch
    }

    fn matched(&mut self, common: &mut Common, turn: &mut Turn<'_>) -> Step {
        let Self::Asking { send } = *self else {
            debug_assert!(false, "it is asked for once");
            return Step::Wait;
        };
        let header = ControlHeader {
            kind: Kind::FRAGMENTS,
            handle: send,
            argument: turn.handle.to_wire(),
        };
        let wanted = common.wanted as u64;
        turn.pending
            .control(common.peer, header, &wanted.to_le_bytes());
        if wanted == 0 {
            return Step::Done(None);
        }
        *self = Self::Receiving { moved: 0 };
        Step::Wait
    }

    fn on_packet(&mut self, common: &mut Common, packet: Packet<'_>, _: &mut Turn<'_>) -> Step {
        match (packet.kind, self) {
            (Kind::FRAGMENTS, state @ Self::Announced) => match asked(common, &packet) {
                Some(receive) => {
                    *state = Self::Pushing { receive, moved: 0 };
                    Step::Advance
                }
                None => Step::Broken(CUT_SHORT),
            },
            (Kind::DATA, Self::Receiving { moved }) => Self::take(common, moved, &packet),
            _ => Step::Broken(OUT_OF_TURN),
        }
    }

    fn advance(&mut self, common: &mut Common, link: &mut Link<'_>, _: &mut Turn<'_>) -> Step {
        match self {
            Self::Pushing { receive, moved } => Self::push(common, *receive, moved, link),
            _ => Step::Wait,
        }
    }

    fn state(&self) -> &'static str {
        match self {
            Self::New | Self::Announced => "envelope sent, not matched",
            Self::Pushing { .. } => "fragments are leaving",
            Self::Asking { .. } | Self::Receiving { .. } => "fragments are arriving",
        }
    }
}
