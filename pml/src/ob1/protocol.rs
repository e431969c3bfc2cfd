//! What a protocol is: how the bytes of a message get from a send to its receive.
//!
//! ```text
//!   sender                                   receiver
//!   launch: the envelope leaves  --------->  announced: the envelope is taken
//!                                            matched:   a receive takes the message
//!   on_packet                    <-------->  on_packet      of the peer, about this operation
//!   on_complete                              on_complete    of the transport, about its buffer
//!   advance                                  advance        with the transport, after a step that asked for it
//!   abort                                    abort          the peer is gone
//! ```
//!
//! A protocol is a state of a request. It sees the rest of its request ([`Common`]) and, where it may use the transport, a
//! [`Link`] to the peer; it knows no other request, no table and no matching. What it wants done comes back as a
//! [`Step`].

use std::fmt;
use std::ops::RangeInclusive;

use tagwire_transport::{Outcome, Payload};

use super::common::Common;
use super::header::{Kind, RendezvousBody};
use super::link::Link;
use super::path::{Sends, Terms};
use super::pending::Pending;
pub(super) use crate::packet::PacketKinds;
use crate::slab::Handle;
use crate::types::Failure;

/// What became of a send whose turn it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Launch {
    /// The envelope is out: the next send's turn.
    Out,
    /// All of it is out, and the operation is complete.
    Complete,
    /// The transport has no room just now, and nothing is under way.
    Busy,
    /// The transport has no room just now, and the protocol goes on when it has; `moved` where some packets are out.
    Begun { moved: bool },
    /// This protocol does not carry this message: the next one is to try.
    Declined,
    /// The peer is gone; the transport will say how, and that ends whatever waits for it.
    Lost,
}

/// What a protocol wants after an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub(super) enum Step {
    /// Nothing: it waits for its peer or for the transport.
    Wait,
    /// To go on with the transport, when that has room: see [`Protocol::advance`].
    Advance,
    /// Its operation is complete, or has failed.
    Done(Option<Failure>),
    /// The bytes are to be sent in fragments.
    Fallback(Fallback),
    /// The peer has sent what no correct peer sends.
    Broken(&'static str),
}

impl Step {
    /// Whether something has changed: it does not wait, and is not to be tried again.
    pub(super) const fn is_progress(&self) -> bool {
        !matches!(self, Self::Wait | Self::Advance)
    }
}

/// Where the protocol that every transport can do takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fallback {
    /// At a sender, whose receiver has not asked for anything.
    Announced,
    /// At a sender, whose receiver has asked for fragments.
    Push { receive: Handle },
    /// At a receiver, which asks for fragments.
    Ask { send: Handle },
}

/// A control packet about an operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Packet<'a> {
    pub kind: Kind,
    pub argument: u64,
    pub payload: Payload<'a>,
}

/// What a protocol may use at any time.
#[derive(Debug)]
pub(super) struct Turn<'a> {
    /// The operation's own name.
    pub handle: Handle,
    pub pending: &'a mut Pending,
}

/// A protocol, which is the state of one operation on one side.
pub(super) trait Protocol: fmt::Debug + Sized {
    /// Its name in settings.
    const NAME: &'static str;

    /// The state of a send that is to be launched.
    const NEW: Self;

    /// The sends that it is for.
    const SENDS: Sends;

    /// Its packets.
    const KINDS: PacketKinds;

    /// Returns the lengths that it can carry on these terms.
    fn serves(terms: &Terms) -> Option<RangeInclusive<usize>>;

    /// Describes to the user how a contiguous message of `length` travels; `None` where that depends on its memory.
    fn describe(terms: &Terms, length: usize) -> Option<String>;

    /// Sends the envelope, or what is left of an eager message. Called again after [`Launch::Begun`].
    fn launch(&mut self, common: &mut Common, link: &mut Link<'_>) -> Launch;

    /// Returns the state of a receive that takes the message of this envelope; `None` where it is malformed. For the kinds
    /// of envelopes that are this protocol's.
    fn announced(body: &RendezvousBody, rest: Payload<'_>) -> Option<Self> {
        let _ = (body, rest);
        None
    }

    /// A receive takes the message.
    fn matched(&mut self, common: &mut Common, turn: &mut Turn<'_>) -> Step {
        let _ = (common, turn);
        Step::Wait
    }

    /// The peer says something of this operation.
    fn on_packet(&mut self, common: &mut Common, packet: Packet<'_>, turn: &mut Turn<'_>) -> Step {
        let _ = (common, packet, turn);
        Step::Broken(OUT_OF_TURN)
    }

    /// The transport has done with what it was given under this operation's token. `gone` where the peer is.
    fn on_complete(
        &mut self,
        common: &mut Common,
        outcome: Outcome,
        gone: Option<Failure>,
        turn: &mut Turn<'_>,
    ) -> Step {
        let _ = turn;
        Step::Done(end_of(common, outcome, gone))
    }

    /// Goes on with the transport. May be called more than once for one [`Step::Advance`].
    fn advance(&mut self, common: &mut Common, link: &mut Link<'_>, turn: &mut Turn<'_>) -> Step {
        let _ = (common, link, turn);
        Step::Wait
    }

    /// The peer is gone. A buffer that the transport has is the operation's again by the transport's word, which then
    /// ends it.
    fn abort(&mut self, failure: Failure) -> Step {
        Step::Done(Some(failure))
    }

    /// Describes for the dump what the operation waits for.
    fn state(&self) -> &'static str;
}

/// What is wrong with a packet that no protocol expects in its state.
pub(super) const OUT_OF_TURN: &str = "an answer out of turn";

/// Returns what an operation ends with whose transport's part has ended so.
pub(super) fn end_of(common: &Common, outcome: Outcome, gone: Option<Failure>) -> Option<Failure> {
    match outcome {
        Outcome::Done(_) => None,
        // Whoever is gone replies to nothing more.
        _ => Some(gone.unwrap_or(Failure::PeerFailed(common.status.source))),
    }
}
