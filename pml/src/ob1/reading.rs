//! What both sides of a rendezvous by get keep of it.

use tagwire_transport::byte::RegistrationHandle;
use tagwire_transport::{Capabilities, Limits, Ticket};

/// The longest key that travels with an envelope, in bytes.
pub(super) const MAX_KEY: usize = 256;

/// Most bytes of one get: several are under way, so that one is answered while the next is asked.
const PIECE: usize = 1 << 20;

/// Gets of one message that are under way at once.
pub(super) const WINDOW: usize = 4;

/// Where the bytes of a rendezvous are to be had.
#[derive(Debug)]
pub(super) enum Source {
    /// The sender is to be asked.
    Asked,
    /// From a cooperative transfer.
    Offered(Ticket),
    /// From memory of the sender that may be read.
    Exposed(Box<Reading>),
}

/// A receive that reads its sender's memory.
#[derive(Debug)]
pub(super) struct Reading {
    pub address: u64,
    pub key: Box<[u8]>,
    /// How much has been asked for.
    pub asked: usize,
    /// Gets under way.
    pub under_way: usize,
    /// One of them did not work.
    pub failed: bool,
}

impl Reading {
    pub(super) fn new(address: u64, key: &[u8]) -> Self {
        Self {
            address,
            key: key.into(),
            asked: 0,
            under_way: 0,
            failed: false,
        }
    }
}

/// What a request has to do with memory that is read from afar.
#[derive(Debug)]
pub(super) enum Reach {
    /// A send's bytes may be read.
    Exposed(RegistrationHandle),
    /// A receive reads.
    Reading(Reading),
}

/// The longest piece of one get; 0 where the transport has none.
pub(super) fn piece(capabilities: Capabilities, limits: &Limits) -> usize {
    if !capabilities.contains(Capabilities::GET) {
        return 0;
    }
    usize::try_from(limits.max_remote_access).map_or(PIECE, |most| most.min(PIECE))
}
