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
    /// How many entries left and came before, in percent of the queue: of an aged one.
    pub age: u32,
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
            age: 100,
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
        match self.layout {
            Layout::Fresh => {}
            Layout::Aged => self.age(engine, total),
            Layout::Shuffled => self.shuffle(engine, total),
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

    /// Does an operation that finds nothing among entries of random keys, and leaves nothing: a message comes that is not kept,
    /// or there is a probe. Returns whether it found nothing.
    pub(crate) fn miss(&self, engine: &mut dyn Engine) -> bool {
        let message = message(SOURCE, TAG);
        match self.queue {
            Queue::Posted => engine.arrive_expected(message).is_none(),
            Queue::Unexpected => {
                let mut pattern = Pattern::exact(message);
                if self.wild > 0 {
                    widen(&mut pattern, self.kind);
                }
                engine.probe(pattern).is_none()
            }
        }
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
        let mut handles: Vec<Handle> = (0..slots)
            .filter_map(|_| self.queue_filler(engine))
            .collect();
        Random::new(self.seed).shuffle(&mut handles);
        for handle in handles {
            self.withdraw(engine, handle);
        }
    }

    /// Leaves the free slots as they lie after so many entries of a full queue left, each by lot, and one was queued for each:
    /// those that stayed lie in their order, and those that came since where others were.
    fn age(&self, engine: &mut dyn Engine, slots: u32) {
        let mut queue: Vec<Option<Handle>> = Vec::new();
        // The places in it of those that are there.
        let mut places: Vec<usize> = Vec::new();
        let mut random = Random::new(self.seed);
        let changes = u64::from(slots) * u64::from(self.age) / 100;
        for change in 0..u64::from(slots) + changes {
            if change >= u64::from(slots) && !places.is_empty() {
                let leaves = places.swap_remove(random.below(places.len() as u32) as usize);
                if let Some(handle) = queue[leaves].take() {
                    self.withdraw(engine, handle);
                }
            }
            if let Some(handle) = self.queue_filler(engine) {
                places.push(queue.len());
                queue.push(Some(handle));
            }
        }
        // Engines take the slot first that was freed last: entries get these in the order of the queue.
        for handle in queue.into_iter().rev().flatten() {
            self.withdraw(engine, handle);
        }
    }

    /// Queues an entry that is to leave again; none where the engine has no room.
    fn queue_filler(&self, engine: &mut dyn Engine) -> Option<Handle> {
        let message = message(SOURCE, TAG);
        match self.queue {
            Queue::Posted => match engine.post(Pattern::exact(message), Cookie(0)) {
                PostOutcome::Queued(handle) => Some(handle),
                _ => None,
            },
            Queue::Unexpected => match engine.arrive(message, Cookie(0)) {
                ArriveOutcome::Queued(handle) => Some(handle),
                _ => None,
            },
        }
    }

    fn withdraw(&self, engine: &mut dyn Engine, handle: Handle) {
        let _ = match self.queue {
            Queue::Posted => engine.cancel(handle),
            Queue::Unexpected => engine.discard(handle),
        };
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
    use tagwire_matching::{Capacity, EngineName, Oracle};

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

    /// The slots that entries take in a queue of this layout.
    fn slots(layout: Layout, age: u32, seed: u64) -> Vec<u32> {
        let scenario = Scenario {
            layout,
            age,
            seed,
            ..Scenario::behind(Queue::Posted, 0)
        };
        let list: EngineName = "list".parse().unwrap();
        let mut list = list.open(Capacity::default());
        match layout {
            Layout::Fresh => {}
            Layout::Aged => scenario.age(&mut list, SLOTS),
            Layout::Shuffled => scenario.shuffle(&mut list, SLOTS),
        }
        assert_eq!(list.posted_len(), 0);
        let slots = (0..SLOTS).map(|_| scenario.queue_filler(&mut list).unwrap().slot());
        slots.collect()
    }

    const SLOTS: u32 = 1000;

    /// Entries that have stayed lie in their order, as many as are likely to: `(1 - 1/n)^m` of `n` after `m` left.
    #[test]
    fn an_aged_queue_lies_between_a_fresh_and_a_shuffled_one() {
        // Neighbours in the queue whose slots are neighbours.
        let side_by_side = |layout, age| {
            let slots = slots(layout, age, 1);
            let mut sorted = slots.clone();
            sorted.sort_unstable();
            assert!(sorted.iter().copied().eq(0..SLOTS), "all slots are taken");
            slots.windows(2).filter(|two| two[0] + 1 == two[1]).count()
        };
        assert_eq!(side_by_side(Layout::Fresh, 0), 999);
        assert_eq!(side_by_side(Layout::Aged, 0), 999);
        assert!(side_by_side(Layout::Shuffled, 0) < 10);
        // A pair is left where both have stayed: e^-1, e^-2, e^-4.
        for (age, pairs) in [(50, 300..440), (100, 90..180), (200, 5..40)] {
            let left = side_by_side(Layout::Aged, age);
            assert!(pairs.contains(&left), "{age}: {left}");
        }
        assert_eq!(slots(Layout::Aged, 50, 7), slots(Layout::Aged, 50, 7));
        assert_ne!(slots(Layout::Aged, 50, 7), slots(Layout::Aged, 50, 8));
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
