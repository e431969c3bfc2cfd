//! What a matching network is like.

use tagwire_transport::matching::Directed;

use crate::picture::Trace;

/// The sizes of a [`MatchNetwork`](super::MatchNetwork) and what it pretends to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchOptions {
    /// Messages that may be under way from one rank to another.
    pub slots: usize,
    /// Longest message that is copied when it is sent.
    pub max_short: usize,
    /// Messages of one peer that one call of progress takes.
    pub burst: usize,
    /// Bytes of a long message that one call of progress moves.
    pub chunk: usize,
    /// Budget of a rank for the payload of unexpected messages, in bytes.
    pub unexpected_bytes: usize,
    /// Unexpected messages whose envelope a rank keeps; of more, senders keep it.
    pub unexpected_messages: usize,
    /// Most posted receives of a rank.
    pub max_posted: usize,
    /// Senders match, where nothing of theirs is under way: receivers need not come by.
    pub helping: bool,
    /// Where the NICs of another network match: long messages travel whole, and one that no receive waits for is dropped but for its
    /// envelope. Its bytes are fetched after the match.
    pub drops: bool,
    /// The bytes of long messages are not copied in the end: receives keep what they had. For programs that look at none.
    pub hollow: bool,
    /// Probes and wishes to cancel are reported by later progress.
    pub late_answers: bool,
    /// Every so many-th verb finds no room; 0 for none, at least 2.
    pub busy_every: u32,
    /// The match bits that users may set.
    pub bits: u64,
    /// The bits that may be ignored: all of them or none. Without, any of `bits` may.
    pub ignorable: Option<u64>,
    /// How receives from one source are had.
    pub directed: Directed,
    /// Whether the network finds failed ranks itself.
    pub detect_failures: bool,
    /// Names the schedule by which a call of progress takes the messages of some peers and not of others, and moves some
    /// bytes and not others. Without one it takes what there is.
    pub seed: Option<u64>,
    /// Takes note of the messages of a network by itself, for a [picture](Trace::svg): what is sent or taken is a nanosecond after what
    /// was before it. [On](super::MatchNetwork::on) another network that one's trace does.
    pub trace: Option<Trace>,
}

impl Default for MatchOptions {
    /// A plain network: small queues, messages of up to 1 KiB copied, failures detected.
    fn default() -> Self {
        Self {
            slots: 64,
            max_short: 1024,
            burst: 16,
            chunk: 64 * 1024,
            unexpected_bytes: 1 << 20,
            unexpected_messages: 1 << 16,
            max_posted: 1 << 20,
            helping: false,
            drops: false,
            hollow: false,
            late_answers: false,
            busy_every: 0,
            bits: u64::MAX,
            ignorable: None,
            directed: Directed::BySource,
            detect_failures: true,
            seed: None,
            trace: None,
        }
    }
}

impl MatchOptions {
    /// The nearest options with which messages get through at all.
    pub(super) fn made_consistent(mut self) -> Self {
        self.slots = self.slots.max(1);
        self.burst = self.burst.max(1);
        self.chunk = self.chunk.max(1);
        if self.busy_every > 0 {
            self.busy_every = self.busy_every.max(2);
        }
        self
    }
}
