//! Rendezvous by get: the sender lets its peer read the bytes, the receiver fetches them into its buffer once it has
//! matched, and says so.

use std::mem;
use std::ops::RangeInclusive;

use tagwire_base::config::parse::format_bytes;
use tagwire_transport::{Capabilities, Outcome, Payload, Post, RegistrationHandle, RemoteMemory};
use zerocopy::IntoBytes;

use crate::ob1::common::Common;
use crate::ob1::header::{Kind, RendezvousBody};
use crate::ob1::link::Link;
use crate::ob1::path::{Sends, Terms};
use crate::ob1::protocol::{
    Fallback, Launch, OUT_OF_TURN, Packet, PacketKinds, Protocol, Step, Turn,
};
use crate::slab::Handle;
use crate::types::Failure;

use super::push;

impl Kind {
    /// The envelope of a message whose bytes may be read: its words are the address and the length of the key, which
    /// follows.
    pub(in crate::ob1) const READABLE: Self = Self::envelope(8);
    /// To a sender: the bytes have been read. Handle: the send.
    pub(in crate::ob1) const GOT: Self = Self::control(25);
}

/// The longest key that travels with an envelope, in bytes.
pub(in crate::ob1) const MAX_KEY: usize = 256;

/// Gets of one message that are under way at once.
pub(in crate::ob1) const WINDOW: usize = 4;

/// A rendezvous by get under way.
#[derive(Debug)]
pub(in crate::ob1) enum Get {
    /// A send that is to be launched.
    New,
    /// A send whose bytes may be read.
    Exposed(Box<RegistrationHandle>),
    /// A send that is over, but for its bytes, which may still be read; and what it wants after that.
    Concluding(Box<RegistrationHandle>, Step),
    /// A receive that reads.
    Reading(Box<Reading>),
}

/// A receive that reads its sender's memory.
#[derive(Debug)]
pub(in crate::ob1) struct Reading {
    send: Handle,
    address: u64,
    key: Box<[u8]>,
    /// How much has been asked for.
    asked: usize,
    /// How much has come.
    moved: usize,
    /// Gets under way.
    under_way: usize,
    /// One of them did not work.
    failed: bool,
}

impl Reading {
    /// Asks for more, as far as the transport has room.
    fn ask(&mut self, common: &Common, link: &mut Link<'_>) -> Step {
        let Some(data) = common.recv_buffer() else {
            debug_assert!(false, "a receive reads");
            return Step::Wait;
        };
        while self.asked < common.wanted && self.under_way < WINDOW && !self.failed {
            let end = common.wanted.min(self.asked + link.piece());
            let part = data.part(self.asked..end);
            let source = RemoteMemory {
                address: self.address.wrapping_add(self.asked as u64),
                key: &self.key,
            };
            match part.map_or(Post::Unsupported, |part| link.get(&part, source)) {
                Post::Posted => {
                    self.asked = end;
                    self.under_way += 1;
                }
                // What is under way brings us back here.
                Post::Busy if self.under_way > 0 => return Step::Wait,
                Post::Busy => return Step::Advance,
                Post::Gone | Post::Unsupported => self.failed = true,
            }
        }
        Step::Wait
    }

    /// Returns what is next: more pieces, the end, or another protocol.
    fn next(&self, common: &Common, gone: Option<Failure>, turn: &mut Turn<'_>) -> Step {
        if self.under_way > 0 {
            if !self.failed && self.asked < common.wanted {
                return Step::Advance;
            }
            return Step::Wait;
        }
        if gone.is_some() {
            return Step::Done(gone);
        }
        if self.failed {
            return Step::Fallback(Fallback::Ask { send: self.send });
        }
        if self.asked < common.wanted {
            return Step::Advance;
        }
        turn.pending.say(common.peer, Kind::GOT, self.send);
        // Fewer bytes may have come than the sender promised.
        let whole = self.moved >= common.wanted;
        Step::Done((!whole).then_some(Failure::Protocol(common.status.source)))
    }
}

impl Get {
    /// Ends the exposure, by a step with the transport. The first end stands.
    fn conclude(&mut self, then: Step) -> Step {
        match mem::replace(self, Self::New) {
            Self::Exposed(registration) => {
                *self = Self::Concluding(registration, then);
                Step::Advance
            }
            other => {
                *self = other;
                Step::Wait
            }
        }
    }

    /// Returns the registration of the bytes of a send that is to be launched, where its receiver may read them.
    fn expose(common: &Common, link: &mut Link<'_>) -> Option<Box<RegistrationHandle>> {
        let data = common.send_buffer();
        data.region()?;
        let registration = link.expose(data)?;
        let key = registration.key.len();
        if key > MAX_KEY || size_of::<RendezvousBody>() + key > link.terms().packet {
            link.deregister(registration);
            return None;
        }
        Some(Box::new(registration))
    }
}

/// Returns the lengths that go by remote access with a transport that can do `what`.
pub(super) fn remote(terms: &Terms, what: Capabilities) -> Option<RangeInclusive<usize>> {
    let can = terms.capabilities.contains(what) && terms.piece > 0;
    can.then(|| terms.packet.saturating_add(1)..=usize::MAX)
}

impl Protocol for Get {
    const NAME: &'static str = "get";
    const NEW: Self = Self::New;
    const SENDS: Sends = Sends::Rendezvous;
    const KINDS: PacketKinds = &[Kind::READABLE, Kind::GOT];

    fn serves(terms: &Terms) -> Option<RangeInclusive<usize>> {
        remote(terms, Capabilities::GET)
    }

    fn describe(terms: &Terms, _: usize) -> Option<String> {
        let piece = format_bytes(terms.piece as u64);
        Some(format!(
            "rendezvous: read by its receiver (get), {piece} at a time, {WINDOW} under way"
        ))
    }

    fn launch(&mut self, common: &mut Common, link: &mut Link<'_>) -> Launch {
        if let Self::New = self {
            match Self::expose(common, link) {
                Some(registration) => *self = Self::Exposed(registration),
                None => return Launch::Declined,
            }
        }
        let (Self::Exposed(registration), Some(region)) = (&*self, common.send_buffer().region())
        else {
            debug_assert!(false, "what is exposed is one region");
            return Launch::Declined;
        };
        let key = &registration.key;
        let words = [region.address(), key.len() as u64];
        let head = RendezvousBody::new(common.wanted, link.handle(), words);
        let mut body = [0; size_of::<RendezvousBody>() + MAX_KEY];
        let (front, rest) = body.split_at_mut(size_of::<RendezvousBody>());
        front.copy_from_slice(head.as_bytes());
        rest[..key.len()].copy_from_slice(key);
        let body = &body[..size_of::<RendezvousBody>() + key.len()];
        match link.send_envelope(Kind::READABLE, common, body, 0) {
            Post::Posted => Launch::Out,
            Post::Busy => Launch::Begun { moved: false },
            Post::Gone | Post::Unsupported => Launch::Lost,
        }
    }

    fn announced(body: &RendezvousBody, rest: Payload<'_>) -> Option<Self> {
        let [address, length] = body.words;
        let length = usize::try_from(length).ok().filter(|len| *len <= MAX_KEY)?;
        let mut key = vec![0; length].into_boxed_slice();
        rest.read_into(&mut key).then(|| {
            Self::Reading(Box::new(Reading {
                send: Handle::from_wire(body.sender),
                address,
                key,
                asked: 0,
                moved: 0,
                under_way: 0,
                failed: false,
            }))
        })
    }

    fn matched(&mut self, _: &mut Common, _: &mut Turn<'_>) -> Step {
        Step::Advance
    }

    fn on_packet(&mut self, common: &mut Common, packet: Packet<'_>, _: &mut Turn<'_>) -> Step {
        match (packet.kind, &*self) {
            (Kind::GOT, Self::Exposed(_)) => self.conclude(Step::Done(None)),
            (Kind::FRAGMENTS, Self::Exposed(_)) => match push::asked(common, &packet) {
                Some(receive) => self.conclude(Step::Fallback(Fallback::Push { receive })),
                None => Step::Broken(push::CUT_SHORT),
            },
            _ => Step::Broken(OUT_OF_TURN),
        }
    }

    fn on_complete(
        &mut self,
        common: &mut Common,
        outcome: Outcome,
        gone: Option<Failure>,
        turn: &mut Turn<'_>,
    ) -> Step {
        let Self::Reading(reading) = self else {
            debug_assert!(false, "only gets complete");
            return Step::Wait;
        };
        reading.under_way -= 1;
        match outcome {
            Outcome::Done(bytes) => reading.moved += usize::try_from(bytes).unwrap_or(usize::MAX),
            _ => reading.failed = true,
        }
        reading.next(common, gone, turn)
    }

    fn advance(&mut self, common: &mut Common, link: &mut Link<'_>, turn: &mut Turn<'_>) -> Step {
        match mem::replace(self, Self::New) {
            Self::Reading(mut reading) => {
                let mut step = Step::Wait;
                if link.is_alive() {
                    step = reading.ask(common, link);
                }
                // What is under way comes back, and goes on.
                if step == Step::Wait && reading.under_way == 0 {
                    step = reading.next(common, link.failure(), turn);
                }
                *self = Self::Reading(reading);
                step
            }
            Self::Concluding(registration, then) => {
                link.deregister(*registration);
                then
            }
            other => {
                *self = other;
                Step::Wait
            }
        }
    }

    fn abort(&mut self, failure: Failure) -> Step {
        match self {
            Self::New => Step::Done(Some(failure)),
            Self::Exposed(_) => self.conclude(Step::Done(Some(failure))),
            Self::Concluding(_, then) => {
                if matches!(then, Step::Fallback(_)) {
                    *then = Step::Done(Some(failure));
                }
                Step::Wait
            }
            Self::Reading(reading) if reading.under_way > 0 => Step::Wait,
            Self::Reading(_) => Step::Done(Some(failure)),
        }
    }

    fn state(&self) -> &'static str {
        match self {
            Self::New | Self::Exposed(_) => "envelope sent, not fetched",
            Self::Concluding(..) => "fetched, its memory is still registered",
            Self::Reading(_) => "being read",
        }
    }
}
