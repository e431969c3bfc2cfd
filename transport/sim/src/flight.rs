//! What is under way between two ranks.

use tagwire_transport::message::{AmHeader, EndpointId, Outcome};

use crate::due::Load;
use crate::picture::Noted;
use crate::place::Place;

/// A message of the layer above.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) header: AmHeader,
    pub(crate) bytes: Vec<u8>,
}

/// Names an operation of a rank that ends when an answer comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OperationId(pub(crate) u64);

/// Where in a peer's memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Spot {
    /// Number of the registration.
    pub(crate) key: Option<u64>,
    pub(crate) address: u64,
}

/// What a packet is for.
#[derive(Debug)]
pub(crate) enum Cargo {
    Message(Message),
    Goodbye,
    Put {
        spot: Spot,
        bytes: Vec<u8>,
        immediate: Option<u64>,
        operation: OperationId,
    },
    Get {
        spot: Spot,
        len: usize,
        operation: OperationId,
    },
    Flush(OperationId),
    /// Of the network whose messages this one carries.
    Load(Load),
    /// Answers a get.
    Data {
        bytes: Vec<u8>,
        operation: OperationId,
    },
    /// Answers the others.
    Done {
        outcome: Outcome,
        operation: OperationId,
    },
}

impl Cargo {
    /// Whether it is a message that its receiver matches.
    pub(crate) const fn is_matched_by_ranks(&self) -> bool {
        matches!(self, Self::Message(_))
    }

    /// Returns how many bytes occupy the NICs: those of the user.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Message(Message { bytes, .. })
            | Self::Put { bytes, .. }
            | Self::Data { bytes, .. } => bytes.len(),
            Self::Load(load) => load.len,
            Self::Goodbye | Self::Get { .. } | Self::Flush(_) | Self::Done { .. } => 0,
        }
    }
}

/// A packet from one rank to another.
#[derive(Debug)]
pub(crate) struct Flight {
    pub(crate) from: Place,
    pub(crate) to: Place,
    /// The receiver, at the sender.
    pub(crate) link: EndpointId,
    /// It comes after all that its sender has sent to the receiver before, whatever the order of others.
    pub(crate) is_fenced: bool,
    pub(crate) cargo: Cargo,
}

/// What a NIC sends or takes of a packet at one go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    pub(crate) len: usize,
    pub(crate) is_first: bool,
    pub(crate) is_last: bool,
}

impl Part {
    /// Returns the next part of `left` bytes of `whole`, of `turn` bytes at the most.
    fn of(left: usize, whole: usize, turn: Option<usize>) -> Self {
        let len = turn.map_or(left, |turn| left.min(turn));
        Self {
            len,
            is_first: left == whole,
            is_last: left == len,
        }
    }
}

/// A packet under way.
#[derive(Debug)]
pub(crate) struct UnderWay {
    pub(crate) flight: Flight,
    /// Its arrow in a picture.
    pub(crate) noted: Option<Noted>,
    /// Bytes that its sender's NIC has yet to send.
    unsent: usize,
    /// Bytes that are not yet at its receiver's.
    absent: usize,
}

impl UnderWay {
    pub(crate) fn new(flight: Flight, noted: Option<Noted>) -> Self {
        let len = flight.cargo.len();
        Self {
            flight,
            noted,
            unsent: len,
            absent: len,
        }
    }

    /// Returns what the sender's NIC sends next.
    pub(crate) fn unsent(&self, turn: Option<usize>) -> Part {
        Part::of(self.unsent, self.flight.cargo.len(), turn)
    }

    /// Says that a part has left. Returns the packet's own number where more is to be sent.
    pub(crate) fn send(&mut self, number: u32, part: &Part) -> Option<u32> {
        self.unsent -= part.len;
        (!part.is_last).then_some(number)
    }

    /// Returns what comes next to the receiver's NIC.
    pub(crate) fn come(&mut self, turn: Option<usize>) -> Part {
        let part = Part::of(self.absent, self.flight.cargo.len(), turn);
        self.absent -= part.len;
        part
    }
}
