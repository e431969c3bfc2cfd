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

/// Returns what a call costs on the average, the times by so many passes.
pub(crate) fn cost(trace: &Trace, engine: &EngineName, passes: u32) -> Cost {
    let open = || engine.open(trace.header.capacity);
    let calls = trace.calls.len().max(1) as f64;
    let pass = |_| {
        let mut engine = open();
        let start = Instant::now();
        give(&mut engine, &trace.calls);
        start.elapsed().as_nanos() as f64 / calls
    };
    let mut times: Vec<f64> = (0..passes).map(pass).collect();
    times.sort_by(f64::total_cmp);
    let mut opened = open();
    give(&mut opened, &trace.calls);
    Cost {
        ns: times.get(times.len() / 2).copied().unwrap_or_default(),
        attempts: opened.stats().attempts() as f64 / calls,
        lines: lines(trace, engine).map(|lines| lines as f64 / calls),
    }
}

/// Calls of the program or of the library that search a queue.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub(crate) struct Searched {
    pub(crate) calls: u64,
    /// Entries that one looks at, on the average.
    pub(crate) attempts: f64,
}

/// Returns what the program's calls look at, and what the library's own do (collectives, partitioned operations): they have internal tags.
/// Both are in the same queues.
pub(crate) fn by_part(trace: &Trace, engine: &EngineName) -> [Searched; 2] {
    let mut engine = engine.open(trace.header.capacity);
    let mut entries = Entries::default();
    let mut parts = [(0_u64, 0_u64); 2];
    for call in &trace.calls {
        let before = engine.stats().attempts();
        entries.call(&mut engine, call);
        if let Some(part) = part_of(&call.event) {
            let own = &mut parts[usize::from(part == Part::Internal)];
            own.0 += 1;
            own.1 += engine.stats().attempts() - before;
        }
    }
    parts.map(|(calls, attempts)| Searched {
        calls,
        attempts: attempts as f64 / calls.max(1) as f64,
    })
}

/// Gives the calls to an engine.
pub(crate) fn give(engine: &mut AnyEngine, calls: &[Call]) {
    let mut entries = Entries::default();
    for call in calls {
        entries.call(black_box(&mut *engine), call);
    }
}

/// The distinct lines of each call, summed up.
fn lines(trace: &Trace, engine: &EngineName) -> Option<u64> {
    let mut engine = engine.open_counting(trace.header.capacity)?;
    let (mut entries, mut log, mut sum) = (Entries::default(), Vec::new(), 0);
    take_log(&mut log);
    for call in &trace.calls {
        entries.call(&mut *engine, call);
        take_log(&mut log);
        sum += distinct_lines(&mut log);
    }
    Some(sum)
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
        let [program, internal] = by_part(&one, &"list".parse().unwrap());
        // Two posts and the message behind one receive; a post and the message behind two.
        assert_eq!((program.calls, program.attempts), (3, 2.0 / 3.0));
        assert_eq!((internal.calls, internal.attempts), (2, 1.5));
    }
}
