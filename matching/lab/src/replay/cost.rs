//! What the calls of a trace cost an engine.

use std::hint::black_box;
use std::time::Instant;

use serde::Serialize;
use tagwire_matching::storage::counting::take_log;
use tagwire_matching::trace::Event;
use tagwire_matching::{AnyEngine, ArriveOutcome, Cookie, Engine, EngineName, Handle, PostOutcome};

use super::verify::bytes;
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
        log.sort_unstable();
        log.dedup();
        sum += log.len() as u64;
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
