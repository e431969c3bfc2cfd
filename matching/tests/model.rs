//! One property, run on every engine: it decides as the oracle does, on every input.
//!
//! A failure prints the shortest input that shows it, and its seed goes into
//! `proptest-regressions/`, from where later runs try it first. `PROPTEST_CASES` sets the number
//! of inputs.

mod common;

use common::{Arena, EXACT, tag};
use proptest::prelude::*;
use proptest::strategy::Union;
use tagwire_base::{ContextId, Rank, SourceSelector, TagSelector};
use tagwire_matching::{
    AnyEngine, ArriveOutcome, CancelOutcome, Capacity, ContextAssertions, Cookie, Engine, Envelope,
    Handle, HashBins, Oracle, Pattern, PerSource, PlainList, PostOutcome, bins, list, sources,
};

#[derive(Clone, Copy, Debug)]
enum Operation {
    Post(Pattern),
    Arrive(Envelope),
    ArriveExpected(Envelope),
    Expects(Envelope),
    Probe(Pattern),
    Claim(Pattern),
    /// Of one of the receives that were ever queued, also of those that left.
    Cancel(usize),
    Discard(usize),
    Assert(ContextId, ContextAssertions),
}

/// An engine and the oracle, fed with the same operations.
struct Pair<E> {
    engine: E,
    oracle: Oracle,
    receives: Vec<(Handle, Handle)>,
    messages: Vec<(Handle, Handle)>,
    cookies: u32,
}

impl<E: Engine> Pair<E> {
    fn new(engine: E, capacity: Capacity) -> Self {
        Self {
            engine,
            oracle: Oracle::with_capacity(capacity),
            receives: Vec::new(),
            messages: Vec::new(),
            cookies: 0,
        }
    }

    fn apply(&mut self, operation: Operation) {
        match operation {
            Operation::Post(pattern) => self.post(pattern),
            Operation::Arrive(envelope) => self.arrive(envelope),
            Operation::ArriveExpected(envelope) => {
                let given = self.engine.arrive_expected(envelope);
                assert_eq!(given, self.oracle.arrive_expected(envelope));
            }
            Operation::Expects(envelope) => {
                assert_eq!(self.engine.expects(envelope), self.oracle.expects(envelope));
            }
            Operation::Probe(pattern) => {
                assert_eq!(self.engine.probe(pattern), self.oracle.probe(pattern));
            }
            Operation::Claim(pattern) => {
                assert_eq!(self.engine.claim(pattern), self.oracle.claim(pattern));
            }
            Operation::Cancel(which) => {
                if let Some(&(ours, oracles)) = pick(&self.receives, which) {
                    assert_eq!(self.engine.cancel(ours), self.oracle.cancel(oracles));
                }
            }
            Operation::Discard(which) => {
                if let Some(&(ours, oracles)) = pick(&self.messages, which) {
                    assert_eq!(self.engine.discard(ours), self.oracle.discard(oracles));
                }
            }
            Operation::Assert(context, promise) => self.engine.set_assertions(context, promise),
        }
        assert_eq!(self.engine.posted_len(), self.oracle.posted_len());
        assert_eq!(self.engine.unexpected_len(), self.oracle.unexpected_len());
    }

    fn post(&mut self, pattern: Pattern) {
        let cookie = self.next_cookie();
        match (
            self.engine.post(pattern, cookie),
            self.oracle.post(pattern, cookie),
        ) {
            (PostOutcome::Queued(ours), PostOutcome::Queued(oracles)) => {
                self.receives.push((ours, oracles));
            }
            (ours, oracles) => assert_eq!(ours, oracles),
        }
    }

    fn arrive(&mut self, envelope: Envelope) {
        let cookie = self.next_cookie();
        match (
            self.engine.arrive(envelope, cookie),
            self.oracle.arrive(envelope, cookie),
        ) {
            (ArriveOutcome::Queued(ours), ArriveOutcome::Queued(oracles)) => {
                self.messages.push((ours, oracles));
            }
            (ours, oracles) => assert_eq!(ours, oracles),
        }
    }

    fn next_cookie(&mut self) -> Cookie {
        self.cookies += 1;
        Cookie(self.cookies)
    }

    /// Compares what is queued, in order, and what was counted.
    fn compare_all(&self) {
        assert_eq!(posted(&self.engine), posted(&self.oracle));
        assert_eq!(unexpected(&self.engine), unexpected(&self.oracle));
        let (mut ours, mut oracles) = (self.engine.stats(), self.oracle.stats());
        for stats in [&mut ours, &mut oracles] {
            // How much it takes to find an entry is what engines differ in.
            for queue in [&mut stats.posted, &mut stats.unexpected] {
                (queue.attempts, queue.false_hits, queue.deepest) = (0, 0, None);
            }
        }
        assert_eq!(ours, oracles);
    }

    /// Withdraws everything by its handle, which leaves both empty.
    fn drain(&mut self) {
        for (ours, oracles) in std::mem::take(&mut self.receives) {
            assert_eq!(self.engine.cancel(ours), self.oracle.cancel(oracles));
            assert_eq!(self.engine.cancel(ours), CancelOutcome::AlreadyMatched);
        }
        for (ours, oracles) in std::mem::take(&mut self.messages) {
            assert_eq!(self.engine.discard(ours), self.oracle.discard(oracles));
            assert_eq!(self.engine.discard(ours), CancelOutcome::AlreadyMatched);
        }
        assert_eq!(self.engine.posted_len() + self.engine.unexpected_len(), 0);
    }
}

fn pick<T>(list: &[T], which: usize) -> Option<&T> {
    list.get(which.checked_rem(list.len())?)
}

fn posted(engine: &impl Engine) -> Vec<(Pattern, Cookie)> {
    let mut all = Vec::new();
    engine.for_each_posted(&mut |pattern, cookie| all.push((pattern, cookie)));
    all
}

fn unexpected(engine: &impl Engine) -> Vec<(Envelope, Cookie)> {
    let mut all = Vec::new();
    engine.for_each_unexpected(&mut |envelope, cookie| all.push((envelope, cookie)));
    all
}

/// Feeds both, compares, drains, and feeds the emptied engine again.
fn check<E: Engine>(engine: E, capacity: Capacity, operations: &[Operation]) {
    let mut pair = Pair::new(engine, capacity);
    for (index, &operation) in operations.iter().enumerate() {
        pair.apply(operation);
        if index % 16 == 0 {
            pair.compare_all();
        }
    }
    pair.compare_all();
    pair.drain();
    for &operation in operations.iter().take(64) {
        pair.apply(operation);
    }
    pair.compare_all();
}

/// How many sources, tags and contexts there are: few make matches, many make long queues.
#[derive(Clone, Copy, Debug)]
struct World {
    sources: u32,
    tags: i32,
    contexts: u16,
    wildcards: u32,
}

fn worlds() -> impl Strategy<Value = World> {
    let small = (1..4_u32, 1..4_i32, 1..3_u16, 0..60_u32);
    let wide = (1..40_u32, 1..200_i32, 1..4_u16, 0..40_u32);
    prop_oneof![small, wide].prop_map(|(sources, tags, contexts, wildcards)| World {
        sources,
        tags,
        contexts,
        wildcards,
    })
}

impl World {
    fn envelopes(self) -> impl Strategy<Value = Envelope> + Clone {
        // A quarter of the tags is internal.
        let tags = -(self.tags / 4 + 1)..self.tags;
        (0..self.sources, tags, self.contexts()).prop_map(|(source, value, context)| Envelope {
            source: Rank::new(source),
            tag: tag(value),
            context,
        })
    }

    /// Contexts on both sides of the ones that have bits for their promises.
    fn contexts(self) -> impl Strategy<Value = ContextId> + Clone {
        (0..self.contexts).prop_map(|number| ContextId::new(number * 63))
    }

    fn patterns(self) -> impl Strategy<Value = Pattern> + Clone {
        let wild = move || (0..100_u32).prop_map(move |percent| percent < self.wildcards);
        (self.envelopes(), wild(), wild()).prop_map(|(envelope, any_source, any_tag)| {
            let mut pattern = Pattern::exact(envelope);
            if any_source {
                pattern.source = SourceSelector::ANY;
            }
            if any_tag {
                pattern.tag = TagSelector::ANY;
            }
            pattern
        })
    }

    fn assertions(self) -> impl Strategy<Value = Operation> + Clone {
        let flags = (any::<bool>(), any::<bool>(), any::<bool>());
        (self.contexts(), flags).prop_map(|(context, (no_any_source, no_any_tag, overtaking))| {
            Operation::Assert(
                context,
                ContextAssertions {
                    no_any_source,
                    no_any_tag,
                    overtaking,
                },
            )
        })
    }

    fn operations(self, posts: u32, arrivals: u32) -> impl Strategy<Value = Operation> {
        Union::new_weighted(vec![
            (posts, self.patterns().prop_map(Operation::Post).boxed()),
            (
                arrivals,
                self.envelopes().prop_map(Operation::Arrive).boxed(),
            ),
            (
                2,
                self.envelopes().prop_map(Operation::ArriveExpected).boxed(),
            ),
            (2, self.envelopes().prop_map(Operation::Expects).boxed()),
            (2, self.patterns().prop_map(Operation::Probe).boxed()),
            (2, self.patterns().prop_map(Operation::Claim).boxed()),
            (2, any::<usize>().prop_map(Operation::Cancel).boxed()),
            (2, any::<usize>().prop_map(Operation::Discard).boxed()),
            (1, self.assertions().boxed()),
        ])
    }
}

/// Programs that lean to one queue for a while, then to the other.
fn programs() -> impl Strategy<Value = Vec<Operation>> {
    let weights = prop_oneof![Just((30, 4)), Just((4, 30)), Just((15, 15))];
    let phase =
        (worlds(), weights, 0..300_usize).prop_flat_map(|(world, (posts, arrivals), len)| {
            prop::collection::vec(world.operations(posts, arrivals), len)
        });
    prop::collection::vec(phase, 1..4).prop_map(|phases| phases.concat())
}

fn capacities() -> impl Strategy<Value = Capacity> {
    let growing = Just(Capacity::default());
    let bounded =
        (0..80_u32, 0..80_u32).prop_map(|(posted, unexpected)| Capacity::new(posted, unexpected));
    prop_oneof![growing, bounded]
}

macro_rules! engines {
    ($($name:ident: |$capacity:ident| $engine:expr;)*) => {$(
        proptest! {
            #[test]
            fn $name($capacity in capacities(), operations in programs()) {
                check($engine, $capacity, &operations);
            }
        }
    )*};
}

/// Engines in private memory, which grows up to the capacity.
mod private {
    use super::*;

    engines! {
        list: |capacity| PlainList::with_capacity(capacity);
        source: |capacity| PerSource::with_capacity(capacity);
        bins: |capacity| HashBins::with_capacity(capacity);
    }

    proptest! {
        #[test]
        fn by_name(
            name in prop::sample::select(EXACT),
            capacity in capacities(),
            operations in programs(),
        ) {
            check(AnyEngine::by_name(name, capacity).unwrap(), capacity, &operations);
        }
    }
}

/// Engines in an arena of fixed size, made of atomics.
mod arena {
    use super::*;

    const CAPACITY: Capacity = Capacity::new(100, 60);

    fn arena<const LINKS: usize>(tables: [usize; 2]) -> Arena<LINKS> {
        Arena::new(CAPACITY.posted, CAPACITY.unexpected, tables)
    }

    proptest! {
        #[test]
        fn list(operations in programs()) {
            let arena = arena::<{ list::LINKS }>([0, 0]);
            check(PlainList::new(&arena), CAPACITY, &operations);
        }

        #[test]
        fn source(operations in programs()) {
            let arena = arena::<{ sources::LINKS }>([16, 40 * 4]);
            check(PerSource::new(&arena), CAPACITY, &operations);
        }

        /// Bins too few, also a number that is no power of two, and none at all.
        #[test]
        fn bins(operations in programs(), bins in 0..70_usize) {
            let arena = arena::<{ bins::LINKS }>([bins, 4 * bins]);
            check(HashBins::new(&arena), CAPACITY, &operations);
        }
    }
}
