//! What the calls of a trace cost an engine.

use std::hint::black_box;
use std::time::Instant;

use serde::Serialize;
use tagwire_matching::storage::counting::take_log;
use tagwire_matching::trace::Event;
use tagwire_matching::{AnyEngine, ArriveOutcome, Cookie, Engine, EngineName, Handle, PostOutcome};

use super::verify::bytes;
use crate::depth::distinct_lines;
use crate::stats::{Part, part_of};
use crate::trace::{Call, Trace};

/// Figures of one call, on the average.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(crate) struct Cost {
    /// The median of passes.
    pub(crate) ns: f64,
    pub(crate) attempts: f64,
    /// `None` for an engine whose lines cannot be counted.
    pub(crate) lines: Option<f64>,
}

/// Calls of the program or of the library that search a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Searched {
    pub(crate) calls: u64,
    /// Entries that one looks at, on the average.
    pub(crate) attempts: f64,
}

/// Returns what a call costs on the average, the times by so many passes.
pub(crate) fn cost(trace: &Trace, engine: &EngineName, passes: u32) -> Cost {
    cost_by_part(trace, engine, passes).0
}

/// Returns the same, and what the program's calls look at, and what the library's own do (collectives, partitioned operations): they have
/// internal tags. Both are in the same queues.
pub(crate) fn cost_by_part(
    trace: &Trace,
    engine: &EngineName,
    passes: u32,
) -> (Cost, [Searched; 2]) {
    let calls = trace.calls.len().max(1) as f64;
    let pass = |_| {
        let mut engine = engine.open(trace.header.capacity);
        let start = Instant::now();
        give(&mut engine, &trace.calls);
        start.elapsed().as_nanos() as f64 / calls
    };
    let mut times: Vec<f64> = (0..passes).map(pass).collect();
    times.sort_by(f64::total_cmp);
    let counted = count(trace, engine);
    let cost = Cost {
        ns: times.get(times.len() / 2).copied().unwrap_or_default(),
        attempts: counted.attempts as f64 / calls,
        lines: counted.lines.map(|lines| lines as f64 / calls),
    };
    (cost, counted.parts)
}

/// What does not depend on time, over all calls.
#[derive(Debug)]
struct Counted {
    attempts: u64,
    /// The distinct lines of each call.
    lines: Option<u64>,
    /// Of the program, and of the library.
    parts: [Searched; 2],
}

/// Counts in one run, by words that note each access where the engine has them.
fn count(trace: &Trace, engine: &EngineName) -> Counted {
    let counting = engine.open_counting(trace.header.capacity);
    let has_lines = counting.is_some();
    let mut engine = counting.unwrap_or_else(|| Box::new(engine.open(trace.header.capacity)));
    let (mut entries, mut log, mut lines) = (Entries::default(), Vec::new(), 0);
    let mut parts = [(0_u64, 0_u64); 2];
    for call in &trace.calls {
        let before = engine.stats().attempts();
        take_log(&mut log);
        entries.call(&mut *engine, call);
        take_log(&mut log);
        lines += distinct_lines(&mut log);
        if let Some(part) = part_of(&call.event) {
            let own = &mut parts[usize::from(part == Part::Internal)];
            own.0 += 1;
            own.1 += engine.stats().attempts() - before;
        }
    }
    Counted {
        attempts: engine.stats().attempts(),
        lines: has_lines.then_some(lines),
        parts: parts.map(|(calls, attempts)| Searched {
            calls,
            attempts: attempts as f64 / calls.max(1) as f64,
        }),
    }
}

/// Gives the calls to an engine.
pub(crate) fn give(engine: &mut AnyEngine, calls: &[Call]) {
    let mut entries = Entries::default();
    for call in calls {
        entries.call(black_box(&mut *engine), call);
    }
}

/// The handles of all that was queued, by number.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    receives: Vec<Handle>,
    messages: Vec<Handle>,
}

impl Entries {
    /// Calls the engine.
    #[inline]
    pub(crate) fn call<E: Engine + ?Sized>(&mut self, engine: &mut E, call: &Call) {
        match call.event {
            Event::Post(pattern) => {
                if let PostOutcome::Queued(handle) = engine.post(pattern, Cookie(0)) {
                    self.receives.push(handle);
                }
            }
            Event::Arrive(envelope, size) => {
                let outcome = engine.arrive_sized(envelope, Cookie(0), bytes(size));
                if let ArriveOutcome::Queued(handle) = outcome {
                    self.messages.push(handle);
                }
            }
            Event::ArriveExpected(envelope) => {
                black_box(engine.arrive_expected(envelope));
            }
            Event::Expects(envelope) => {
                black_box(engine.expects(envelope));
            }
            Event::Probe(pattern) => {
                black_box(engine.probe(pattern));
            }
            Event::Claim(pattern) => {
                black_box(engine.claim(pattern));
            }
            Event::Cancel(entry) => {
                if let Some(handle) = self.receives.get(entry as usize) {
                    let _ = black_box(engine.cancel(*handle));
                }
            }
            Event::Discard(entry) => {
                if let Some(handle) = self.messages.get(entry as usize) {
                    let _ = black_box(engine.discard(*handle));
                }
            }
            Event::Promise(context, promise) => engine.set_assertions(context, promise),
            _ => {}
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use tagwire_matching::Pattern;
    use tagwire_matching::trace::Size;

    use super::*;
    use crate::trace::tests::{message, trace};

    #[test]
    fn calls_of_the_library_are_told_apart_from_the_programs() {
        let post = |tag| (Event::Post(Pattern::exact(message(0, tag))), false);
        let arrive = |tag| (Event::Arrive(message(0, tag), Size::of(8)), true);
        let one = trace(&[
            post(5),
            post(6),
            post(-3),
            arrive(-3),
            arrive(6),
            (Event::Cancel(0), true),
        ]);
        let (cost, [program, internal]) = cost_by_part(&one, &"list".parse().unwrap(), 1);
        // Two posts and the message behind one receive; a post and the message behind two.
        assert_eq!((program.calls, program.attempts), (3, 2.0 / 3.0));
        assert_eq!((internal.calls, internal.attempts), (2, 1.5));
        assert_eq!(cost.attempts, 5.0 / 6.0);
        assert!(cost.lines > Some(0.0), "{cost:?}");
    }
}
