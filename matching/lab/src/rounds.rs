//! Calls that are made over and over, and leave the queues as they found them: what they allocate is what an engine allocates once
//! it is warm.

use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_matching::{ArriveOutcome, Cookie, Engine, Envelope, Handle, Pattern, PostOutcome};

/// Rounds of calls of an engine, of every kind, with queues of up to [`Rounds::LENGTH`] entries. The rounds allocate nothing
/// themselves.
#[derive(Debug)]
pub struct Rounds {
    /// Of what is queued, and of what has left since.
    handles: Vec<Handle>,
}

impl Rounds {
    /// How many receives or messages are queued at once, at most.
    pub const LENGTH: u32 = 64;

    /// How many calls a round has: posts, arrivals and looks of the receives' half and of the messages', and each entry is withdrawn.
    pub const CALLS: u32 = 8 * Self::LENGTH;

    /// How many rounds make an engine warm: tables have grown, and windows of searches have passed.
    pub const WARM: u32 = 100;

    /// Returns what makes rounds.
    #[must_use]
    pub fn new() -> Self {
        Self {
            handles: Vec::with_capacity(Self::LENGTH as usize),
        }
    }

    /// Has an engine do so many rounds.
    pub fn run(&mut self, engine: &mut dyn Engine, rounds: u32) {
        for _ in 0..rounds {
            self.receives(engine);
            self.messages(engine);
        }
    }

    /// Receives are posted, asked for and taken by messages in another order, of which a third fits none; those that stay are
    /// cancelled.
    fn receives(&mut self, engine: &mut dyn Engine) {
        for number in 0..Self::LENGTH {
            if let PostOutcome::Queued(handle) = engine.post(pattern(number), Cookie(number)) {
                self.handles.push(handle);
            }
        }
        for number in (0..Self::LENGTH).rev() {
            let _ = engine.expects(message(number));
            let _ = engine.arrive_expected(message(number * 3 / 2));
        }
        for handle in self.handles.drain(..) {
            let _ = engine.cancel(handle);
        }
    }

    /// Messages come, are looked for and taken by receives; those that stay are thrown away.
    fn messages(&mut self, engine: &mut dyn Engine) {
        for number in 0..Self::LENGTH {
            if let ArriveOutcome::Queued(handle) = engine.arrive(message(number), Cookie(number)) {
                self.handles.push(handle);
            }
        }
        for number in (0..Self::LENGTH).rev() {
            let _ = engine.probe(pattern(number));
            let _ = engine.claim(pattern(number * 3 / 2));
        }
        for handle in self.handles.drain(..) {
            let _ = engine.discard(handle);
        }
    }
}

impl Default for Rounds {
    fn default() -> Self {
        Self::new()
    }
}

/// One in four is a wildcard: of any source, or of any tag.
fn pattern(number: u32) -> Pattern {
    let mut pattern = Pattern::exact(message(number));
    match number % 8 {
        1 => pattern.source = SourceSelector::ANY,
        5 => pattern.tag = TagSelector::ANY,
        _ => {}
    }
    pattern
}

/// Of sixteen sources, with a tag of its own.
fn message(number: u32) -> Envelope {
    Envelope {
        source: Rank::new(number % 16),
        tag: Tag::user(number as i32).unwrap_or(Tag::internal(0)),
        context: ContextId::WORLD,
    }
}

#[cfg(test)]
mod tests {
    use tagwire_matching::{Capacity, Oracle};

    use super::*;

    /// Every kind of call finds something and finds nothing, and nothing is left.
    #[test]
    fn a_round_does_of_everything_something_and_leaves_nothing() {
        let mut oracle = Oracle::with_capacity(Capacity::default());
        let mut rounds = Rounds::new();
        rounds.run(&mut oracle, 1);
        let once = oracle.stats();
        for queue in [once.posted, once.unexpected] {
            assert_eq!(queue.queued, u64::from(Rounds::LENGTH));
            assert!(queue.hits > 20 && queue.misses > 5, "{queue:?}");
            assert!(queue.hits < u64::from(Rounds::LENGTH), "some are withdrawn");
            assert_eq!(queue.probes, u64::from(Rounds::LENGTH));
        }
        assert_eq!(oracle.posted_len() + oracle.unexpected_len(), 0);
        rounds.run(&mut oracle, 1);
        assert_eq!(oracle.stats().attempts(), 2 * once.attempts());
    }
}
