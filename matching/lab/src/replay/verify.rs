//! Whether an engine answers the calls of a trace as its grade demands.

use tagwire_matching::EngineName;
use tagwire_matching::judged::Judged;
use tagwire_matching::storage::Local;
use tagwire_matching::trace::{Event, Size};

use crate::checked::Checked;
use crate::error::{Error, Result};
use crate::follow::Follower;
use crate::program::Operation;
use crate::queued::Answer;
use crate::trace::{Call, Trace};

/// Returns how many answers are allowed and not those of the trace.
///
/// # Errors
/// The first call whose answer the engine's grade forbids, and why.
pub(crate) fn verify(trace: &Trace, engine: &EngineName) -> std::result::Result<u64, String> {
    let capacity = engine.bounded(trace.header.capacity);
    let opened = engine.open_judged::<Local>(capacity);
    let Judged {
        engine: mut opened,
        impossible,
    } = opened.map_err(|error| error.to_string())?;
    let follower = Follower::new(&mut *opened, engine.grade(), capacity).told_by(impossible);
    let mut follower = follower.bounded_by_bytes(engine.is_bounded_by_bytes());
    let mut other = 0;
    for (index, call) in trace.calls.iter().enumerate() {
        let answer = follower.apply(operation(call));
        let answer = answer.map_err(|why| format!("call {}: {why}", index + 1))?;
        let is_searched = !matches!(call.event, Event::Promise(..));
        let matched = matches!(answer, Answer::Took(..));
        other += u64::from(is_searched && matched != call.matched);
    }
    let all = follower.compare_all();
    all.map_err(|why| format!("behind the last call: {why}"))?;
    Ok(other)
}

/// Checks that an engine keeps to its grade in all calls of these traces, which follow from a seed where there is one.
///
/// # Errors
/// [`Error::Unsound`]; [`Error::Read`] where the file of its library is not there any more.
pub(crate) fn check(traces: &[Trace], engine: &EngineName, seed: Option<u64>) -> Result<Checked> {
    for trace in traces {
        verify(trace, engine).map_err(|why| Error::Unsound {
            engine: engine.to_string(),
            grade: engine.grade(),
            why,
        })?;
    }
    let operations = traces.iter().map(|trace| trace.calls.len() as u64).sum();
    Checked::of(engine, engine.grade(), operations, seed)
}

/// Bytes of a message.
pub(crate) fn bytes(size: Size) -> usize {
    usize::try_from(size.bytes()).unwrap_or(usize::MAX)
}

/// The call as the gate does it.
fn operation(call: &Call) -> Operation {
    match call.event {
        Event::Post(pattern) => Operation::Post(pattern),
        Event::Arrive(envelope, size) => Operation::Arrive(envelope, bytes(size)),
        Event::ArriveExpected(envelope) => Operation::ArriveExpected(envelope),
        Event::Expects(envelope) => Operation::Expects(envelope),
        Event::Probe(pattern) => Operation::Probe(pattern),
        Event::Claim(pattern) => Operation::Claim(pattern),
        Event::Cancel(entry) => Operation::Cancel(entry),
        Event::Discard(entry) => Operation::Discard(entry),
        Event::Promise(context, promise) => Operation::Promise(context, promise),
        other => unreachable!("{other:?} is no call"),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use tagwire_matching::Pattern;
    use tagwire_matching::registry::DESCRIPTIONS;

    use super::*;
    use crate::trace::tests::{message, trace};

    fn events() -> Vec<(Event, bool)> {
        let any = Pattern {
            source: tagwire_base::SourceSelector::ANY,
            ..Pattern::exact(message(0, 1))
        };
        let arrive = |source| Event::Arrive(message(source, 1), Size::of(8));
        vec![
            (arrive(4), false),
            (arrive(2), false),
            (arrive(3), false),
            (Event::Post(any), true),
            (Event::Post(Pattern::exact(message(4, 1))), false),
            (Event::Cancel(0), true),
            (Event::Post(Pattern::exact(message(2, 1))), true),
        ]
    }

    #[test]
    fn every_exact_engine_answers_as_the_trace() {
        for description in DESCRIPTIONS {
            let engine: EngineName = description.named.name.parse().unwrap();
            assert_eq!(verify(&trace(&events()), &engine), Ok(0), "{engine}");
        }
    }

    #[test]
    fn another_answer_is_counted() {
        let mut other = events();
        other[4].1 = true;
        let list: EngineName = "list".parse().unwrap();
        assert_eq!(verify(&trace(&other), &list), Ok(1));
        // Sources in turn by rank: the receive of any source takes from 2, and later ones find what the trace's do not.
        let rotate: EngineName = "source:dir=array,any=rotate".parse().unwrap();
        let allowed = verify(&trace(&events()), &rotate).unwrap();
        assert!(allowed > 0, "{allowed}");
    }
}
