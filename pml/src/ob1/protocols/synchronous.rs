//! Short messages whose sender waits for the match: its name goes along with the bytes.

use std::ops::RangeInclusive;

use tagwire_transport::{Payload, Post};
use zerocopy::IntoBytes;

use crate::ob1::common::Common;
use crate::ob1::header::Kind;
use crate::ob1::link::Link;
use crate::ob1::path::{Sends, Terms};
use crate::ob1::protocol::{Launch, OUT_OF_TURN, Packet, PacketKinds, Protocol, Step, Turn};
use crate::slab::Handle;

impl Kind {
    /// An eager message whose sender waits for the match; its handle comes before the bytes.
    pub(in crate::ob1) const SYNC: Self = Self::envelope(4);
    /// To a sender: your synchronous message has matched. Handle: the send.
    pub(in crate::ob1) const MATCHED: Self = Self::control(16);
}

/// What comes before the bytes.
const PREFIX: usize = size_of::<u64>();

/// A send that waits for the match.
#[derive(Debug)]
pub(in crate::ob1) struct Synchronous;

/// Returns the sender's name for its side, and the bytes; `None` where the packet is cut short.
pub(in crate::ob1) fn split(payload: Payload<'_>) -> Option<(Handle, Payload<'_>)> {
    let mut sender = 0;
    let whole = payload.read_into(u64::as_mut_bytes(&mut sender));
    let bytes = payload.slice(PREFIX..payload.len());
    whole.then_some((Handle::from_wire(sender), bytes))
}

impl Protocol for Synchronous {
    const NAME: &'static str = "synchronous";
    const NEW: Self = Self;
    const SENDS: Sends = Sends::Synchronous;
    const KINDS: PacketKinds = &[Kind::SYNC, Kind::MATCHED];

    fn serves(terms: &Terms) -> Option<RangeInclusive<usize>> {
        let longest = terms.packet.checked_sub(PREFIX)?;
        Some(0..=longest.min(terms.eager))
    }

    fn describe(_: &Terms, _: usize) -> Option<String> {
        Some("eager, in one packet; its match is reported".to_owned())
    }

    fn launch(&mut self, common: &mut Common, link: &mut Link<'_>) -> Launch {
        let sender = link.handle().to_wire().to_le_bytes();
        match link.send_behind(Kind::SYNC, common, &sender) {
            Post::Posted => Launch::Out,
            Post::Busy => Launch::Busy,
            Post::Gone | Post::Unsupported => Launch::Lost,
        }
    }

    fn on_packet(&mut self, _: &mut Common, packet: Packet<'_>, _: &mut Turn<'_>) -> Step {
        match packet.kind {
            Kind::MATCHED => Step::Done(None),
            _ => Step::Broken(OUT_OF_TURN),
        }
    }

    fn state(&self) -> &'static str {
        "message sent, not matched"
    }
}
