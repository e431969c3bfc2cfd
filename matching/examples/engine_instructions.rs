//! The work of one post and its arrival, to be counted by callgrind.
//!
//! ```text
//! CARGO_INCREMENTAL=0 cargo build --profile dist -p tagwire-matching --example engine_instructions
//! valgrind --tool=callgrind --callgrind-out-file=/dev/null \
//!     target/dist/examples/engine_instructions ENGINE CASE DEPTH PAIRS
//! ```
//!
//! `CASE` says what lies in the queues and what is done `PAIRS` times:
//!
//! - `expected`: post then arrive, behind `DEPTH` posted receives that do not match;
//! - `stays`: as `expected`, behind one receive that stays of `DEPTH`, whose messages have come, the last first;
//! - `unexpected`: arrive then post, behind `DEPTH` unexpected messages that do not match;
//! - `window`: `DEPTH` equal receives are posted, then as many messages arrive, and so on;
//! - `nothing`: neither, which is what the loop itself costs;
//! - `any-source`: as `expected`, with a receive from any source.
//!
//! Instructions per pair are the difference between two runs with different `PAIRS`, divided by
//! the difference. `direct` as a prefix of the engine's name (`direct-bins`) calls the engine
//! without [`AnyEngine`] around it.

use std::env;
use std::hint::black_box;

use tagwire_base::{ContextId, Rank, SourceSelector, Tag};
use tagwire_matching::{
    AnyEngine, ArriveOutcome, Capacity, Cookie, Engine, Envelope, HashBins, Pattern, PerSource,
    PlainList, PostOutcome,
};

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [engine, case, depth, pairs] = arguments.as_slice() else {
        eprintln!(
            "usage: instructions ENGINE expected|stays|unexpected|any-source|window|nothing DEPTH PAIRS"
        );
        std::process::exit(1);
    };
    let (Ok(depth), Ok(pairs)) = (depth.parse(), pairs.parse()) else {
        eprintln!("DEPTH and PAIRS are numbers");
        std::process::exit(1);
    };
    let capacity = Capacity::default();
    match engine.as_str() {
        "direct-list" => run(PlainList::with_capacity(capacity), case, depth, pairs),
        "direct-source" => run(PerSource::with_capacity(capacity), case, depth, pairs),
        "direct-bins" => run(HashBins::with_capacity(capacity), case, depth, pairs),
        name => match AnyEngine::by_name(name, capacity) {
            Ok(engine) => run(engine, case, depth, pairs),
            Err(error) => {
                eprintln!("{error}");
                std::process::exit(1);
            }
        },
    }
}

fn run(mut engine: impl Engine, case: &str, depth: i32, pairs: u32) {
    for other in 1..=depth {
        let envelope = message(other);
        match case {
            "window" => {}
            "unexpected" => drop(black_box(engine.arrive(envelope, Cookie(0)))),
            _ => drop(black_box(engine.post(Pattern::exact(envelope), Cookie(0)))),
        }
    }
    if case == "stays" {
        for other in (2..=depth).rev() {
            let _ = black_box(engine.arrive(message(other), Cookie(0)));
        }
    }
    let envelope = message(0);
    let mut pattern = Pattern::exact(envelope);
    if case == "any-source" {
        pattern.source = SourceSelector::ANY;
    }
    if case == "window" {
        return windows(&mut engine, depth.unsigned_abs().max(1), pairs);
    }
    for pair in 0..pairs {
        let (pattern, envelope) = (black_box(pattern), black_box(envelope));
        if case == "nothing" {
            let _ = black_box(PostOutcome::Matched(Cookie(pair)));
            let _ = black_box(ArriveOutcome::Matched(Cookie(pair)));
        } else if case == "unexpected" {
            let _ = black_box(engine.arrive(envelope, Cookie(pair)));
            let _ = black_box(engine.post(pattern, Cookie(pair)));
        } else {
            let _ = black_box(engine.post(pattern, Cookie(pair)));
            let _ = black_box(engine.arrive(envelope, Cookie(pair)));
        }
    }
}

fn windows(engine: &mut impl Engine, window: u32, pairs: u32) {
    let envelope = message(0);
    for _ in 0..pairs / window {
        for cookie in 0..window {
            let pattern = black_box(Pattern::exact(envelope));
            let _ = black_box(engine.post(pattern, Cookie(cookie)));
        }
        for cookie in 0..window {
            let _ = black_box(engine.arrive(black_box(envelope), Cookie(cookie)));
        }
    }
}

fn message(tag: i32) -> Envelope {
    let tag = Tag::user(tag).unwrap_or(Tag::internal(0));
    Envelope {
        source: Rank::new(1),
        tag,
        context: ContextId::WORLD,
    }
}
