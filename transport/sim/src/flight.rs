//! What is under way between two ranks.

use tagwire_transport::message::{AmHeader, EndpointId, Outcome};

use crate::due::Load;
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
