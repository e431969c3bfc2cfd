//! The contract of a matching engine.

use tagwire_base::ContextId;

use crate::envelope::{Cookie, Envelope, Handle, Pattern};

/// Decides which posted receive takes which message.
///
/// The pml calls it from whichever thread holds its matching lock: an engine is `Send` and not
/// shared. Messages of one source in one context must be given in the order in which they were
/// sent (the pml sorts them by sequence before). No call blocks, fails or panics; a queue at its
/// capacity returns `Full`, and nothing has changed then.
///
/// Handles name queued entries. They go stale when the entry leaves, and a stale handle, or one
/// made up, results in [`CancelOutcome::AlreadyMatched`].
pub trait Engine {
    /// A receive is posted: takes the earliest unexpected message that `pattern` accepts, or
    /// queues the receive (MPI-5.0, section 3.5).
    fn post(&mut self, pattern: Pattern, cookie: Cookie) -> PostOutcome;

    /// A message arrives: takes the earliest posted receive that accepts it, or queues the message
    /// as unexpected (MPI-5.0, section 3.5).
    fn arrive(&mut self, envelope: Envelope, cookie: Cookie) -> ArriveOutcome;

    /// As [`Engine::arrive`], of a message with so many bytes. No engine matches by them; what records the calls keeps them, and
    /// one whose memory for unexpected messages is bounded may return `Full` by them.
    #[inline(always)]
    fn arrive_sized(&mut self, envelope: Envelope, cookie: Cookie, bytes: usize) -> ArriveOutcome {
        let _ = bytes;
        self.arrive(envelope, cookie)
    }

    /// Like [`Engine::arrive`], but leaves the message out when no receive is posted for it: for a
    /// caller whose budget for unexpected messages is spent.
    fn arrive_expected(&mut self, envelope: Envelope) -> Option<Cookie>;

    /// The earliest posted receive that accepts such a message; it stays.
    fn expects(&mut self, envelope: Envelope) -> Option<Cookie>;

    /// The earliest unexpected message that `pattern` accepts; it stays (`MPI_Iprobe`;
    /// MPI-5.0, section 3.8.1).
    fn probe(&mut self, pattern: Pattern) -> Option<(Envelope, Cookie)>;

    /// The earliest unexpected message that `pattern` accepts; it leaves (`MPI_Improbe`;
    /// MPI-5.0, section 3.8.2).
    fn claim(&mut self, pattern: Pattern) -> Option<(Envelope, Cookie)>;

    /// Takes a posted receive back, in constant time (MPI-5.0, section 3.8.4).
    fn cancel(&mut self, handle: Handle) -> CancelOutcome;

    /// Throws an unexpected message away, in constant time: its sender is gone.
    fn discard(&mut self, handle: Handle) -> CancelOutcome;

    /// How many receives are posted.
    fn posted_len(&self) -> usize;

    /// How many messages are unexpected.
    fn unexpected_len(&self) -> usize;

    /// What the engine has done since it was made.
    fn stats(&self) -> Stats;

    /// Visits the posted receives, earliest first. Not for the hot path: it may allocate.
    fn for_each_posted(&self, visit: &mut dyn FnMut(Pattern, Cookie));

    /// Visits the unexpected messages, earliest first. Not for the hot path.
    fn for_each_unexpected(&self, visit: &mut dyn FnMut(Envelope, Cookie));

    /// What the user promised of a context, as of now.
    ///
    /// A promise lets an engine skip work and changes no outcome: a wildcard posted against the
    /// promise still matches by the rules. Engines that gain nothing from it ignore it, which is
    /// what this default does.
    fn set_assertions(&mut self, context: ContextId, assertions: ContextAssertions) {
        let _ = (context, assertions);
    }
}

/// What became of a posted receive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum PostOutcome {
    /// It took the unexpected message with this cookie, which has left its queue.
    Matched(Cookie),
    /// It waits; the handle serves to cancel it.
    Queued(Handle),
    /// No message fits and the queue of posted receives is at its capacity: post it again later.
    Full,
}

/// What became of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum ArriveOutcome {
    /// It went to the posted receive with this cookie, which has left its queue.
    Matched(Cookie),
    /// It waits; the handle serves to discard it.
    Queued(Handle),
    /// No receive fits and the queue of unexpected messages is at its capacity: leave the message
    /// with its sender.
    Full,
}

/// What became of a cancel or discard.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum CancelOutcome {
    /// The entry with this cookie has left its queue unmatched.
    Cancelled(Cookie),
    /// The handle is stale: the entry was matched (or taken back) before.
    AlreadyMatched,
}

/// What a user promised of one context (the `mpi_assert_*` keys of MPI-5.0, section 7.4.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ContextAssertions {
    /// No receive or probe uses any-source.
    pub no_any_source: bool,
    /// No receive or probe uses any-tag.
    pub no_any_tag: bool,
    /// Messages may overtake each other: an engine *may* match out of order. None does today.
    pub overtaking: bool,
}

/// What one queue has seen.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct QueueStats {
    /// Entries that were ever put into the queue.
    pub queued: u64,
    /// The most entries that the queue held at once.
    pub high_water: u32,
    /// Searches that found an entry and took it out.
    pub hits: u64,
    /// Searches that went through a queue with entries and took none. (A search in an empty queue
    /// costs nothing and is not counted.)
    pub misses: u64,
    /// Searches that leave the entry where it is: probes.
    pub probes: u64,
    /// Entries that searches and probes looked at.
    pub attempts: u64,
    /// Entries that a coarse comparison let through and that the whole one refused; 0 where engines compare whole entries at
    /// once. They are among the attempts.
    pub false_hits: u64,
    /// The most entries that one search or probe looked at; `None` where the engine does not tell.
    pub deepest: Option<u64>,
}

impl QueueStats {
    /// Searches and probes in this queue while it had entries.
    #[must_use]
    pub const fn searches(&self) -> u64 {
        self.hits + self.misses + self.probes
    }
}

/// What an engine has done since it was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Stats {
    /// The queue of posted receives: searched by messages that arrive.
    pub posted: QueueStats,
    /// The queue of unexpected messages: searched by receives and probes.
    pub unexpected: QueueStats,
}

impl Stats {
    /// Messages that met their receive (or were claimed).
    #[must_use]
    pub const fn matches(&self) -> u64 {
        self.posted.hits + self.unexpected.hits
    }

    /// Entries that were looked at, in both queues.
    #[must_use]
    pub const fn attempts(&self) -> u64 {
        self.posted.attempts + self.unexpected.attempts
    }

    /// Entries that a coarse comparison let through in vain, in both queues.
    #[must_use]
    pub const fn false_hits(&self) -> u64 {
        self.posted.false_hits + self.unexpected.false_hits
    }
}
