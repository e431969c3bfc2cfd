//! Time of one post and its arrival, by engine, depth, position and share of wildcards.
//!
//! A pair leaves the queue as it found it: the receive that is matched is posted again at the end,
//! so positions are those of a queue that turns over. `cargo bench -p tagwire-matching-bench`; see
//! `docs/matching.md` for counts of instructions, which do not depend on the machine's mood.

use std::hint::black_box;
use std::time::Duration;

use criterion::measurement::WallTime;
use criterion::{BenchmarkGroup, BenchmarkId, Criterion, criterion_group, criterion_main};
use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_matching::{
    AnyEngine, ArriveOutcome, Capacity, Cookie, Engine, Envelope, Pattern, registry,
};

/// Which of the posted receives the message is for.
#[derive(Clone, Copy)]
enum Position {
    First,
    Last,
    Random,
}

impl Position {
    const ALL: [(Self, &str); 3] = [
        (Self::First, "first"),
        (Self::Last, "last"),
        (Self::Random, "random"),
    ];
}

/// A queue of receives with tags `0..depth`, of which a share are wildcards.
struct Bench {
    engine: AnyEngine,
    /// The receives in the order in which they were posted, as a ring; cookies are tags.
    order: Vec<u32>,
    oldest: usize,
    wildcards: u32,
    random: u64,
}

impl Bench {
    fn new(name: &str, depth: u32, wildcards: u32) -> Self {
        let engine = AnyEngine::by_name(name, Capacity::default());
        let mut bench = Self {
            engine: engine.expect("the name is known"),
            order: (0..depth.max(1)).collect(),
            oldest: 0,
            wildcards,
            random: 1,
        };
        for tag in 0..depth {
            bench.post(tag);
        }
        bench
    }

    fn post(&mut self, tag: u32) {
        let pattern = self.pattern(tag);
        let _ = black_box(self.engine.post(black_box(pattern), Cookie(tag)));
    }

    /// Wildcards are any-source and, every fourth, any-tag: those name their source.
    fn pattern(&self, tag: u32) -> Pattern {
        let mut pattern = Pattern::exact(envelope(tag));
        if tag % 100 < self.wildcards {
            if tag % 4 == 3 {
                pattern.tag = TagSelector::ANY;
            } else {
                pattern.source = SourceSelector::ANY;
            }
        }
        pattern
    }

    /// At depth 0 posts and lets arrive; else lets arrive and posts what was taken again.
    fn pair(&mut self, position: Position, depth: u32) {
        if depth == 0 {
            self.post(0);
        }
        let age = match position {
            Position::First => 0,
            Position::Last => self.order.len() - 1,
            Position::Random => {
                self.random = self
                    .random
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                (self.random >> 33) as usize % self.order.len()
            }
        };
        let index = (self.oldest + age) % self.order.len();
        let message = envelope(self.order[index]);
        let ArriveOutcome::Matched(Cookie(taken)) =
            self.engine.arrive(black_box(message), Cookie(0))
        else {
            panic!("no receive took {message}");
        };
        if depth > 0 {
            // The ring's oldest takes the place of the one taken: exact for first, near for the
            // others, and without a shift of the whole order.
            self.order.swap(index, self.oldest);
            self.order[self.oldest] = taken;
            self.oldest = (self.oldest + 1) % self.order.len();
            self.post(taken);
        }
    }
}

fn envelope(tag: u32) -> Envelope {
    Envelope {
        source: Rank::new(tag % 64),
        tag: Tag::user(tag as i32).expect("tags of the bench are small"),
        context: ContextId::WORLD,
    }
}

fn quick(group: &mut BenchmarkGroup<'_, WallTime>) {
    group.warm_up_time(Duration::from_millis(100));
    group.measurement_time(Duration::from_millis(300));
    group.sample_size(20);
}

fn depths(criterion: &mut Criterion) {
    for (position, label) in Position::ALL {
        let mut group = criterion.benchmark_group(format!("depth/{label}"));
        quick(&mut group);
        for name in registry::KNOWN.iter().map(|known| known.name) {
            for depth in [0, 1, 2, 4, 8, 16, 64, 1_024, 8_192, 65_536] {
                let mut bench = Bench::new(name, depth, 0);
                group.bench_function(BenchmarkId::new(name, depth), |bencher| {
                    bencher.iter(|| bench.pair(position, depth));
                });
            }
        }
        group.finish();
    }
}

fn wildcards(criterion: &mut Criterion) {
    for depth in [8, 1_024, 65_536] {
        let mut group = criterion.benchmark_group(format!("wildcards/{depth}"));
        quick(&mut group);
        for name in registry::KNOWN.iter().map(|known| known.name) {
            for percent in [0, 1, 10, 50, 100] {
                let mut bench = Bench::new(name, depth, percent);
                group.bench_function(BenchmarkId::new(name, percent), |bencher| {
                    bencher.iter(|| bench.pair(Position::Random, depth));
                });
            }
        }
        group.finish();
    }
}

fn unexpected(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("unexpected/last");
    quick(&mut group);
    for name in registry::KNOWN.iter().map(|known| known.name) {
        for depth in [0, 8, 1_024, 65_536] {
            let engine = AnyEngine::by_name(name, Capacity::default());
            let mut engine = engine.expect("the name is known");
            for tag in 1..=depth {
                let _ = engine.arrive(envelope(tag), Cookie(tag));
            }
            let message = envelope(0);
            group.bench_function(BenchmarkId::new(name, depth), |bencher| {
                bencher.iter(|| {
                    let _ = black_box(engine.arrive(black_box(message), Cookie(0)));
                    let _ = black_box(engine.post(black_box(Pattern::exact(message)), Cookie(0)));
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, depths, wildcards, unexpected);
criterion_main!(benches);
