//! The sizes of the null transport.

/// How much fits into the loopback queue of a [`NullTransport`](super::NullTransport).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NullOptions {
    /// Messages to the own rank that may be under way.
    pub slots: usize,
    /// How many of the slots only control messages may use.
    pub control_slots: usize,
    /// Largest payload of one message, in bytes.
    pub max_send: usize,
    /// Messages that one call of progress delivers.
    pub burst: usize,
}

impl Default for NullOptions {
    fn default() -> Self {
        Self {
            slots: 256,
            control_slots: 16,
            max_send: 8192,
            burst: 32,
        }
    }
}

impl NullOptions {
    /// The nearest options with which messages get through: a slot of each class at least.
    pub(super) fn made_consistent(mut self) -> Self {
        self.slots = self.slots.max(2);
        self.control_slots = self.control_slots.clamp(1, self.slots - 1);
        self.burst = self.burst.max(1);
        self
    }
}
