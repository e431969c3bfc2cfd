//! A queue of some length, and the matches that are measured in it.
//!
//! ```text
//!   [ahead: entries that do not match] [the matches, equal entries] [behind: entries that do not match]
//! ```
//!
//! Each measured operation takes the first of the equal entries, which has all of `ahead` before it: so every one finds the
//! same queue, but for those that were taken. The first few go unmeasured, since an engine may build its tables then.

use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_matching::{ArriveOutcome, Cookie, Engine, Envelope, Handle, Pattern, PostOutcome};

use super::axes::{Keys, Layout, Queue, WildAt, WildKind};
use super::keys::{SOURCE, TAG};
use crate::random::Random;

/// What is in the queue, and what is done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scenario {
    pub queue: Queue,
    pub ahead: u32,
    pub behind: u32,
    /// In percent: of the receives that lie in the queue, or of those that are posted.
    pub wild: u32,
    pub kind: WildKind,
    /// Where they lie in the queue.
    pub wild_at: WildAt,
    pub keys: Keys,
    pub layout: Layout,
    pub seed: u64,
}

impl Scenario {
    /// Returns the plainest one with so many entries ahead.
    pub(crate) const fn behind(queue: Queue, ahead: u32) -> Self {
        Self {
            queue,
            ahead,
            behind: 0,
            wild: 0,
            kind: WildKind::Source,
            wild_at: WildAt::Spread,
            keys: Keys::Tags,
            layout: Layout::Fresh,
            seed: 1,
        }
    }

    /// Returns how many matches are timed or counted for a figure: fewer where each takes long.
    pub(crate) fn matches(&self, most: u32) -> u32 {
        (WORK / (self.ahead + 1)).clamp(8, most)
    }

    /// Fills an empty engine for so many matches, and does the unmeasured ones.
    pub(crate) fn prepare(&self, engine: &mut dyn Engine, matches: u32) {
        let total = self.ahead + self.behind + matches + WARM;
        if self.layout == Layout::Shuffled {
            self.shuffle(engine, total);
        }
        for index in 0..self.ahead {
            self.queue_other(engine, index);
        }
        for _ in 0..matches + WARM {
            self.queue_match(engine);
        }
        for index in self.ahead..self.ahead + self.behind {
            self.queue_other(engine, index);
        }
        for index in 0..WARM {
            let is_wild = self.wild == 100 || self.wild > 0 && index % 2 == 1;
            self.take(engine, is_wild);
        }
    }

    /// Does the match of this number; returns whether there was one.
    #[inline]
    pub(crate) fn operate(&self, engine: &mut dyn Engine, index: u32) -> bool {
        self.take(
            engine,
            self.queue == Queue::Unexpected && self.is_spread(index),
        )
    }

    #[inline]
    fn take(&self, engine: &mut dyn Engine, is_wild: bool) -> bool {
        match self.queue {
            Queue::Posted => matches!(
                engine.arrive(message(SOURCE, TAG), Cookie(0)),
                ArriveOutcome::Matched(Cookie(MATCH))
            ),
            Queue::Unexpected => {
                let mut pattern = Pattern::exact(message(SOURCE, TAG));
                if is_wild {
                    widen(&mut pattern, self.kind);
                }
                matches!(
                    engine.post(pattern, Cookie(0)),
                    PostOutcome::Matched(Cookie(MATCH))
                )
            }
        }
    }

    /// Whether the entry of this number is a wildcard.
    const fn is_wild(&self, index: u32) -> bool {
        match self.wild_at {
            WildAt::Spread => self.is_spread(index),
            WildAt::Front => (index as u64) < self.others() as u64 * self.wild as u64 / 100,
        }
    }

    /// Whether the share falls on the entry or operation of this number, when it is spread evenly.
    const fn is_spread(&self, index: u32) -> bool {
        let share = self.wild as u64;
        (index as u64 + 1) * share / 100 > index as u64 * share / 100
    }

    const fn others(&self) -> u32 {
        self.ahead + self.behind
    }

    /// Queues an entry that no match takes.
    fn queue_other(&self, engine: &mut dyn Engine, index: u32) {
        let (mut source, tag) = self.keys.of(index, self.others(), self.seed);
        match self.queue {
            Queue::Posted => {
                let _ = engine.post(self.other_receive(index, (source, tag)), Cookie(0));
            }
            Queue::Unexpected => {
                // A receive of any tag from the source of the matches takes none of the others.
                if (self.kind, self.keys) == (WildKind::Tag, Keys::Tags) {
                    source = SOURCE + 1;
                }
                let _ = engine.arrive(message(source, tag), Cookie(0));
            }
        }
    }

    /// A wildcard has what it leaves of its key, or something else where it would accept the messages of the matches.
    fn other_receive(&self, index: u32, (source, tag): (u32, u32)) -> Pattern {
        let mut pattern = Pattern::exact(message(source, tag));
        if !self.is_wild(index) {
            return pattern;
        }
        match self.kind {
            WildKind::Source if tag == TAG => pattern = Pattern::exact(message(source, TAG + 1)),
            WildKind::Tag if source == SOURCE => {
                pattern.source = Rank::new(SOURCE + 1 + index).into();
            }
            WildKind::Both => pattern.context = ContextId::new(1),
            WildKind::Source | WildKind::Tag => {}
        }
        widen(&mut pattern, self.kind);
        pattern
    }

    fn queue_match(&self, engine: &mut dyn Engine) {
        match self.queue {
            Queue::Posted => {
                let _ = engine.post(Pattern::exact(message(SOURCE, TAG)), Cookie(MATCH));
            }
            Queue::Unexpected => {
                let _ = engine.arrive(message(SOURCE, TAG), Cookie(MATCH));
            }
        }
    }

    /// Leaves the free slots of the queue in a random order: entries then lie where a program that has run for a while has
    /// them, and not side by side in the order of the list.
    fn shuffle(&self, engine: &mut dyn Engine, slots: u32) {
        let mut handles: Vec<Handle> = Vec::new();
        for _ in 0..slots {
            match self.queue {
                Queue::Posted => {
                    let pattern = Pattern::exact(message(SOURCE, TAG));
                    if let PostOutcome::Queued(handle) = engine.post(pattern, Cookie(0)) {
                        handles.push(handle);
                    }
                }
                Queue::Unexpected => {
                    let outcome = engine.arrive(message(SOURCE, TAG), Cookie(0));
                    if let ArriveOutcome::Queued(handle) = outcome {
                        handles.push(handle);
                    }
                }
            }
        }
        Random::new(self.seed).shuffle(&mut handles);
        for handle in handles {
            let _ = match self.queue {
                Queue::Posted => engine.cancel(handle),
                Queue::Unexpected => engine.discard(handle),
            };
        }
    }
}

fn widen(pattern: &mut Pattern, kind: WildKind) {
    if kind != WildKind::Tag {
        pattern.source = SourceSelector::ANY;
    }
    if kind != WildKind::Source {
        pattern.tag = TagSelector::ANY;
    }
}

fn message(source: u32, tag: u32) -> Envelope {
    Envelope {
        source: Rank::new(source),
        tag: Tag::user(tag as i32).unwrap_or(Tag::internal(0)),
        context: ContextId::WORLD,
    }
}

/// Entries that all matches of a figure look at, at most, where each looks at all that are ahead.
const WORK: u32 = 1 << 20;
/// Matches that go unmeasured.
const WARM: u32 = 4;
/// The cookie of the entries that are to be matched.
const MATCH: u32 = 1;

#[cfg(test)]
mod tests {
    use super::super::count::attempts;
    use super::*;
    use clap::ValueEnum;
    use tagwire_matching::{Capacity, Oracle};

    /// What is counted is a match behind exactly so many entries, whatever the share and place of wildcards and the keys.
    #[test]
    fn every_match_has_the_entries_ahead_before_it() {
        for scenario in scenarios() {
            let mut oracle = Oracle::with_capacity(Capacity::default());
            scenario.prepare(&mut oracle, 10);
            let before = oracle.stats().attempts();
            for index in 0..10 {
                assert!(scenario.operate(&mut oracle, index), "{scenario:?}");
            }
            assert_eq!(oracle.stats().attempts() - before, 10 * 38, "{scenario:?}");
            let left = oracle.posted_len() + oracle.unexpected_len();
            assert_eq!(left, 42, "{scenario:?}");
        }
    }

    /// Every combination that is allowed, with 37 entries ahead and 5 behind.
    fn scenarios() -> Vec<Scenario> {
        let mut all = Vec::new();
        for &queue in Queue::value_variants() {
            for (kind, wild) in [
                (WildKind::Source, 0),
                (WildKind::Source, 30),
                (WildKind::Source, 100),
                (WildKind::Tag, 100),
                (WildKind::Both, 50),
            ] {
                let is_unexpected = queue == Queue::Unexpected;
                for &keys in Keys::value_variants() {
                    let is_refused = is_unexpected && kind == WildKind::Both
                        || wild > 0 && keys.why_not(queue, kind).is_some();
                    if is_refused {
                        continue;
                    }
                    for &layout in Layout::value_variants() {
                        let spread = Scenario {
                            behind: 5,
                            wild,
                            kind,
                            keys,
                            layout,
                            ..Scenario::behind(queue, 37)
                        };
                        all.push(spread);
                        if !is_unexpected {
                            all.push(Scenario {
                                wild_at: WildAt::Front,
                                ..spread
                            });
                        }
                    }
                }
            }
        }
        all
    }

    /// As many lie in front as are spread otherwise, and each engine that keeps wildcards apart walks those that are ahead.
    #[test]
    fn wildcards_in_front_are_all_ahead_and_spread_ones_are_in_part() {
        for (wild_at, ahead) in [(WildAt::Front, 40), (WildAt::Spread, 20)] {
            let scenario = Scenario {
                behind: 100,
                wild: 20,
                wild_at,
                ..Scenario::behind(Queue::Posted, 100)
            };
            let mut oracle = Oracle::with_capacity(Capacity::default());
            scenario.prepare(&mut oracle, 1);
            let mut receives = Vec::new();
            oracle
                .for_each_posted(&mut |pattern, _| receives.push(pattern.source.rank().is_none()));
            assert_eq!(receives.len(), 201);
            let count = |receives: &[bool]| receives.iter().filter(|is_wild| **is_wild).count();
            assert_eq!((count(&receives), count(&receives[..100])), (40, ahead));
            let is_front = receives[..40].iter().all(|is_wild| *is_wild);
            assert_eq!(is_front, wild_at == WildAt::Front);
            for engine in ["ucx", "flajslik"] {
                let looked = attempts(&engine.parse().unwrap(), &scenario).attempts;
                let least = ahead as f64 + 1.0;
                assert!((least..least + 3.0).contains(&looked), "{engine}: {looked}");
            }
        }
    }

    #[test]
    fn the_share_of_wildcards_is_exact_and_spread() {
        for wild in [0, 1, 10, 50, 99, 100] {
            let scenario = Scenario {
                wild,
                ..Scenario::behind(Queue::Posted, 0)
            };
            for from in [0, 300] {
                let count = (from..from + 100)
                    .filter(|index| scenario.is_wild(*index))
                    .count();
                assert_eq!(count as u32, wild);
            }
        }
    }
}
