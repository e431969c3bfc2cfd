//! Rendezvous by put: the receiver, once it has matched, lets its peer write into its buffer; the sender writes, and says
//! when all is there.

use std::mem;
use std::ops::RangeInclusive;

use tagwire_base::config::parse::format_bytes;
use tagwire_transport::{Capabilities, Outcome, Payload, Post, RegistrationHandle, RemoteMemory};
use zerocopy::IntoBytes;

use super::get::{MAX_KEY, WINDOW, remote};
use super::push;
use crate::ob1::common::Common;
use crate::ob1::header::{ControlHeader, Kind, RendezvousBody};
use crate::ob1::link::Link;
use crate::ob1::path::{Sends, Terms};
use crate::ob1::protocol::{
    Fallback, Launch, OUT_OF_TURN, Packet, PacketKinds, Protocol, Step, Turn,
};
use crate::slab::Handle;
use crate::types::Failure;

impl Kind {
    /// The envelope of a message that its sender can write.
    pub(in crate::ob1) const WRITABLE: Self = Self::envelope(9);
    /// To a sender: write here. Handle: the send; argument: the receive; body: address and number of bytes, 8 bytes each,
    /// and the key.
    pub(in crate::ob1) const TARGET: Self = Self::control(31);
    /// To a receiver: all bytes are there, or none will be written. Handle: the receive; argument: 1, or 0.
    pub(in crate::ob1) const WRITTEN: Self = Self::control(32);
}

/// What comes before the key.
const PREFIX: usize = 2 * size_of::<u64>();

/// A rendezvous by put under way.
#[derive(Debug)]
pub(in crate::ob1) enum Put {
    /// A send that is to be launched, or whose receiver has not said where to write.
    Announced,
    /// A send that writes.
    Writing(Box<Writing>),
    /// A receive that is to register its memory.
    Matched { send: Handle },
    /// A receive whose memory may be written.
    Registered {
        send: Handle,
        registration: Box<RegistrationHandle>,
    },
    /// A receive that is over, but for its memory, which may still be written; and what it wants after that.
    Concluding(Box<RegistrationHandle>, Step),
}

/// A send that writes into its receiver's memory.
#[derive(Debug)]
pub(in crate::ob1) struct Writing {
    receive: Handle,
    address: u64,
    key: Box<[u8]>,
    /// How much the transport was given.
    asked: usize,
    /// Puts under way, or the flush after them.
    under_way: usize,
    /// All is put, and the transport says when it is there.
    flushing: bool,
    /// One of them did not work.
    failed: bool,
}

impl Writing {
    /// Returns what a receiver said of its memory; `None` where that is cut short.
    fn read(common: &mut Common, packet: &Packet<'_>) -> Option<Self> {
        let mut words = [0; 2];
        if !packet
            .payload
            .read_into(<[u64; 2]>::as_mut_bytes(&mut words))
        {
            return None;
        }
        let [address, wanted] = words;
        common.wanted = common.wanted.min(usize::try_from(wanted).ok()?);
        let key = packet.payload.slice(PREFIX..packet.payload.len());
        (key.len() <= MAX_KEY).then(|| Self {
            receive: Handle::from_wire(packet.argument),
            address,
            key: key.to_vec().into(),
            asked: 0,
            under_way: 0,
            flushing: false,
            failed: false,
        })
    }

    /// Gives the transport more, as far as it has room; after the last, asks it to say when all is there.
    fn write(&mut self, common: &Common, link: &mut Link<'_>) -> Step {
        while self.asked < common.wanted && self.under_way < WINDOW && !self.failed {
            let end = common.wanted.min(self.asked + link.piece());
            let target = RemoteMemory {
                address: self.address.wrapping_add(self.asked as u64),
                key: &self.key,
            };
            match link.put(common.send_buffer(), self.asked..end, target) {
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
        if self.under_way > 0 || self.failed {
            return Step::Wait;
        }
        match link.flush() {
            Post::Posted => (self.under_way, self.flushing) = (1, true),
            Post::Busy => return Step::Advance,
            Post::Gone | Post::Unsupported => self.failed = true,
        }
        Step::Wait
    }
}

impl Put {
    /// Returns what is next for a send of whose puts none is under way.
    fn wrote(&mut self, common: &Common, gone: Option<Failure>, turn: &mut Turn<'_>) -> Step {
        let Self::Writing(writing) = self else {
            debug_assert!(false, "a send that has written writes");
            return Step::Wait;
        };
        if gone.is_some() {
            return Step::Done(gone);
        }
        let (failed, handle) = (writing.failed, writing.receive);
        if !failed && !writing.flushing {
            return Step::Advance;
        }
        let header = ControlHeader {
            kind: Kind::WRITTEN,
            handle,
            argument: u64::from(!failed),
        };
        turn.pending.control(common.peer, header, &[]);
        if failed {
            // The receiver is to ask for fragments.
            *self = Self::Announced;
            return Step::Wait;
        }
        Step::Done(None)
    }

    /// Ends the registration, by a step with the transport. The first end stands.
    fn conclude(&mut self, then: Step) -> Step {
        match mem::replace(self, Self::Announced) {
            Self::Registered { registration, .. } => {
                *self = Self::Concluding(registration, then);
                Step::Advance
            }
            other => {
                *self = other;
                Step::Wait
            }
        }
    }

    /// Registers the memory of a receive, and informs its sender.
    fn register(
        &mut self,
        common: &Common,
        send: Handle,
        link: &mut Link<'_>,
        turn: &mut Turn<'_>,
    ) -> Step {
        if !link.is_alive() {
            return Step::Done(link.failure());
        }
        let part = common
            .recv_buffer()
            .and_then(|data| data.part(0..common.wanted));
        let address = part.as_deref().and_then(|part| part.region());
        let registration = part.as_deref().and_then(|part| link.register(part));
        let (Some(region), Some(registration)) = (address, registration) else {
            return Step::Fallback(Fallback::Ask { send });
        };
        let key = &registration.key;
        if key.len() > MAX_KEY || PREFIX + key.len() > link.longest() {
            link.deregister(registration);
            return Step::Fallback(Fallback::Ask { send });
        }
        let mut body = Vec::with_capacity(PREFIX + key.len());
        body.extend_from_slice(&region.address().to_le_bytes());
        body.extend_from_slice(&(common.wanted as u64).to_le_bytes());
        body.extend_from_slice(key);
        let header = ControlHeader {
            kind: Kind::TARGET,
            handle: send,
            argument: turn.handle.to_wire(),
        };
        turn.pending.control(common.peer, header, &body);
        let registration = Box::new(registration);
        *self = Self::Registered { send, registration };
        Step::Wait
    }
}

impl Protocol for Put {
    const NAME: &'static str = "put";
    const NEW: Self = Self::Announced;
    const SENDS: Sends = Sends::Rendezvous;
    const KINDS: PacketKinds = &[Kind::WRITABLE, Kind::TARGET, Kind::WRITTEN];

    fn serves(terms: &Terms) -> Option<RangeInclusive<usize>> {
        remote(terms, Capabilities::PUT)
    }

    fn describe(terms: &Terms, _: usize) -> Option<String> {
        let piece = format_bytes(terms.piece as u64);
        Some(format!(
            "rendezvous: written by its sender (put), {piece} at a time, {WINDOW} under way"
        ))
    }

    fn launch(&mut self, common: &mut Common, link: &mut Link<'_>) -> Launch {
        if common.send_buffer().region().is_none() {
            return Launch::Declined;
        }
        let body = RendezvousBody::new(common.wanted, link.handle(), RendezvousBody::NO_WORDS);
        match link.send_envelope(Kind::WRITABLE, common, body.as_bytes(), 0) {
            Post::Posted => Launch::Out,
            Post::Busy => Launch::Busy,
            Post::Gone | Post::Unsupported => Launch::Lost,
        }
    }

    fn announced(body: &RendezvousBody, _: Payload<'_>) -> Option<Self> {
        let send = Handle::from_wire(body.sender);
        Some(Self::Matched { send })
    }

    fn matched(&mut self, common: &mut Common, _: &mut Turn<'_>) -> Step {
        match *self {
            // There is nothing to write.
            Self::Matched { send } if common.wanted == 0 => Step::Fallback(Fallback::Ask { send }),
            _ => Step::Advance,
        }
    }

    fn on_packet(&mut self, common: &mut Common, packet: Packet<'_>, _: &mut Turn<'_>) -> Step {
        match (packet.kind, &*self) {
            (Kind::TARGET, Self::Announced) => match Writing::read(common, &packet) {
                Some(writing) => {
                    *self = Self::Writing(Box::new(writing));
                    Step::Advance
                }
                None => Step::Broken("memory without an address, or with too long a key"),
            },
            (Kind::FRAGMENTS, Self::Announced) => match push::asked(common, &packet) {
                Some(receive) => Step::Fallback(Fallback::Push { receive }),
                None => Step::Broken(push::CUT_SHORT),
            },
            (Kind::WRITTEN, Self::Registered { send, .. }) => {
                let send = *send;
                self.conclude(match packet.argument {
                    0 => Step::Fallback(Fallback::Ask { send }),
                    _ => Step::Done(None),
                })
            }
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
        let Self::Writing(writing) = self else {
            debug_assert!(false, "only puts complete");
            return Step::Wait;
        };
        writing.under_way -= 1;
        writing.failed |= !matches!(outcome, Outcome::Done(_));
        if writing.under_way == 0 {
            return self.wrote(common, gone, turn);
        }
        if !writing.failed && writing.asked < common.wanted {
            return Step::Advance;
        }
        Step::Wait
    }

    fn advance(&mut self, common: &mut Common, link: &mut Link<'_>, turn: &mut Turn<'_>) -> Step {
        if let Self::Concluding(..) = self
            && let Self::Concluding(registration, then) = mem::replace(self, Self::Announced)
        {
            link.deregister(*registration);
            return then;
        }
        match self {
            Self::Matched { send } => {
                let send = *send;
                self.register(common, send, link, turn)
            }
            Self::Writing(writing) if !writing.flushing => {
                let mut step = Step::Wait;
                if link.is_alive() {
                    step = writing.write(common, link);
                }
                // What is under way comes back, and goes on.
                if step == Step::Wait && writing.under_way == 0 {
                    step = self.wrote(common, link.failure(), turn);
                }
                step
            }
            _ => Step::Wait,
        }
    }

    fn abort(&mut self, failure: Failure) -> Step {
        match self {
            Self::Announced | Self::Matched { .. } => Step::Done(Some(failure)),
            Self::Registered { .. } => self.conclude(Step::Done(Some(failure))),
            Self::Concluding(_, then) => {
                if matches!(then, Step::Fallback(_)) {
                    *then = Step::Done(Some(failure));
                }
                Step::Wait
            }
            Self::Writing(writing) if writing.under_way > 0 => Step::Wait,
            Self::Writing(_) => Step::Done(Some(failure)),
        }
    }

    fn state(&self) -> &'static str {
        match self {
            Self::Announced => "envelope sent, not matched",
            Self::Writing(_) => "being written",
            Self::Matched { .. } | Self::Registered { .. } => "its sender writes",
            Self::Concluding(..) => "written, its memory is still registered",
        }
    }
}
