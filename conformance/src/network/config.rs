//! What a memory network is like.

/// The sizes of a [`MemoryNetwork`](super::MemoryNetwork) and what it pretends to have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemoryOptions {
    /// Messages that may be under way from one rank to another.
    pub slots: usize,
    /// How many of the slots only control messages may use.
    pub control_slots: usize,
    /// Largest payload of one message, in bytes.
    pub max_send: usize,
    /// Messages of one peer that one call of progress delivers.
    pub burst: usize,
    /// Whether there are cooperative transfers (offer and claim).
    pub cooperative: bool,
    /// Bytes of a cooperative transfer that one call of progress moves.
    pub chunk: usize,
    /// Whether peers may read exposed memory (expose and get).
    pub get: bool,
    /// Whether peers may write registered memory (register and put).
    pub put: bool,
    /// Whether a put may come with a notice.
    pub notices: bool,
    /// Whether it says that puts become visible in their order, as they do.
    pub ordered_puts: bool,
    /// Bytes of the key of memory that peers may reach, 8 at least.
    pub key: usize,
    /// Puts of a rank that may be under way: their ends were not reported.
    pub puts: usize,
    /// Ends of operations that one call of progress reports.
    pub completions: usize,
    /// Offers that may be open from one rank to another.
    pub max_offers: usize,
    /// Whether the network finds failed ranks itself.
    pub detect_failures: bool,
    /// Whether it says that it reaches other hosts.
    pub remote: bool,
}

impl Default for MemoryOptions {
    /// A plain network: small queues, messages of up to 8 KiB, neither cooperative
    /// transfers nor gets, failures detected.
    fn default() -> Self {
        Self {
            slots: 64,
            control_slots: 8,
            max_send: 8192,
            burst: 16,
            cooperative: false,
            chunk: 64 * 1024,
            get: false,
            put: false,
            notices: false,
            ordered_puts: false,
            key: 8,
            puts: usize::MAX,
            completions: usize::MAX,
            max_offers: 16,
            detect_failures: true,
            remote: false,
        }
    }
}

impl MemoryOptions {
    /// The same, with everything that can be had.
    #[must_use]
    pub fn full() -> Self {
        Self {
            cooperative: true,
            get: true,
            put: true,
            notices: true,
            ordered_puts: true,
            ..Self::default()
        }
    }

    /// The nearest options with which messages get through at all: a slot for data and one for
    /// control, progress that moves something.
    pub(super) fn made_consistent(mut self) -> Self {
        self.slots = self.slots.max(2);
        self.control_slots = self.control_slots.clamp(1, self.slots - 1);
        self.burst = self.burst.max(1);
        self.chunk = self.chunk.max(1);
        self.key = self.key.max(8);
        self.puts = self.puts.max(1);
        self.completions = self.completions.max(1);
        self.max_offers = self.max_offers.max(1);
        self
    }
}
