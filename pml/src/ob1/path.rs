//! The lengths that decide which protocol a message to a peer takes.

use tagwire_transport::AmHeader;

/// The shortest message that is lent to a transport which would send it without a copy: what is
/// shorter is copied in less time than it takes to look after its end.
pub(super) const LEND_FROM: usize = 4 << 10;

/// Most bytes of a batch: its receiver is to begin while its sender goes on.
pub(super) const FULL: usize = 8 << 10;

/// Length of a message's header in a batch.
pub(super) const HEADER: usize = size_of::<AmHeader>();

/// The lengths that decide what becomes of a message to a peer, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Lengths {
    /// Most payload in one packet.
    pub packet: usize,
    /// The longest message that is sent before it is matched.
    pub eager: usize,
    /// The longest of these that goes in one packet.
    pub at_once: usize,
    /// The longest message that goes in one packet without a copy; 0 where none does.
    pub lent: usize,
    /// The longest message that may wait for others; 0 where none may.
    pub coalesce: usize,
    /// Most bytes of messages that leave together.
    pub batch: usize,
}
