//! What a posted operation may use, and what became of it.

/// What became of a posted operation, at once. Back-pressure is a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Post {
    /// It is under way, or done where the operation completes at once.
    Posted,
    /// No room just now: try again after progress. Nothing was sent.
    Busy,
    /// The peer has failed or left. Nothing was sent.
    Gone,
    /// This transport, or this pair of ranks, cannot do it. Use another protocol.
    Unsupported,
}

/// What a message may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// User data: leaves some slots free.
    Data,
    /// Protocol control: may use the slots that data leaves.
    Control,
}
