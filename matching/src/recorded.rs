//! An engine whose calls are recorded.

use std::fmt;

use tagwire_base::ContextId;

use crate::bins::{self, HashBins};
use crate::engine::{ArriveOutcome, CancelOutcome, ContextAssertions, Engine, PostOutcome, Stats};
use crate::envelope::{Cookie, Envelope, Handle, Pattern};
use crate::storage::{Apart, Capacity, Private};
use crate::trace::{
    ARRIVE, ARRIVE_EXPECTED, Both, CANCEL, CLAIM, DISCARD, EXPECTS, POST, PROBE, Packed, Queues,
    Sink, Size, entry, promised,
};

/// Answers as the engine in it does, by default the default one, and gives each call with its answer to a sink.
/// [`trace`](crate::trace) has the format.
///
/// The number of a queued entry is the generation of its handle: the engines of the table count the entries of a queue so.
pub struct Recorded<S, E: ?Sized = HashBins<Private<{ bins::LINKS }, Apart>>> {
    engine: Box<E>,
    sink: S,
}

impl<S> Recorded<S> {
    pub(crate) fn of_default(capacity: Capacity, sink: S) -> Self {
        Self::new(Box::new(HashBins::new(Private::new(capacity))), sink)
    }
}

impl<S, E: ?Sized> Recorded<S, E> {
    pub(crate) const fn new(engine: Box<E>, sink: S) -> Self {
        Self { engine, sink }
    }
}

impl<S: Sink, E: Engine + ?Sized> Recorded<S, E> {
    #[inline(always)]
    fn note(&mut self, record: Packed) {
        let engine = &*self.engine;
        self.sink.note(record, || queues(engine));
    }
}

impl<S, E: ?Sized> fmt::Debug for Recorded<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorded").finish_non_exhaustive()
    }
}

impl<S: Sink, E: Engine + ?Sized> Engine for Recorded<S, E> {
    // As for the engine itself: the calls of the hot path are inlined.
    #[inline(always)]
    fn post(&mut self, pattern: Pattern, cookie: Cookie) -> PostOutcome {
        let outcome = self.engine.post(pattern, cookie);
        let matched = matches!(outcome, PostOutcome::Matched(_));
        self.note(Packed::pattern(POST, pattern, matched));
        outcome
    }

    fn arrive(&mut self, envelope: Envelope, cookie: Cookie) -> ArriveOutcome {
        self.arrive_sized(envelope, cookie, 0)
    }

    #[inline(always)]
    fn arrive_sized(&mut self, envelope: Envelope, cookie: Cookie, bytes: usize) -> ArriveOutcome {
        let outcome = self.engine.arrive_sized(envelope, cookie, bytes);
        let matched = matches!(outcome, ArriveOutcome::Matched(_));
        let size = Size::of(bytes as u64);
        self.note(Packed::envelope(ARRIVE, envelope, size, matched));
        outcome
    }

    fn arrive_expected(&mut self, envelope: Envelope) -> Option<Cookie> {
        let taken = self.engine.arrive_expected(envelope);
        let none = Size::default();
        self.note(Packed::envelope(
            ARRIVE_EXPECTED,
            envelope,
            none,
            taken.is_some(),
        ));
        taken
    }

    fn expects(&mut self, envelope: Envelope) -> Option<Cookie> {
        let found = self.engine.expects(envelope);
        let none = Size::default();
        self.note(Packed::envelope(EXPECTS, envelope, none, found.is_some()));
        found
    }

    fn probe(&mut self, pattern: Pattern) -> Option<(Envelope, Cookie)> {
        let found = self.engine.probe(pattern);
        self.note(Packed::pattern(PROBE, pattern, found.is_some()));
        found
    }

    fn claim(&mut self, pattern: Pattern) -> Option<(Envelope, Cookie)> {
        let taken = self.engine.claim(pattern);
        self.note(Packed::pattern(CLAIM, pattern, taken.is_some()));
        taken
    }

    fn cancel(&mut self, handle: Handle) -> CancelOutcome {
        let outcome = self.engine.cancel(handle);
        let matched = matches!(outcome, CancelOutcome::Cancelled(_));
        self.note(entry(CANCEL, handle.generation(), matched));
        outcome
    }

    fn discard(&mut self, handle: Handle) -> CancelOutcome {
        let outcome = self.engine.discard(handle);
        let matched = matches!(outcome, CancelOutcome::Cancelled(_));
        self.note(entry(DISCARD, handle.generation(), matched));
        outcome
    }

    fn posted_len(&self) -> usize {
        self.engine.posted_len()
    }

    #[inline]
    fn unexpected_len(&self) -> usize {
        self.engine.unexpected_len()
    }

    fn stats(&self) -> Stats {
        self.engine.stats()
    }

    fn for_each_posted(&self, visit: &mut dyn FnMut(Pattern, Cookie)) {
        self.engine.for_each_posted(visit);
    }

    fn for_each_unexpected(&self, visit: &mut dyn FnMut(Envelope, Cookie)) {
        self.engine.for_each_unexpected(visit);
    }

    fn set_assertions(&mut self, context: ContextId, assertions: ContextAssertions) {
        self.engine.set_assertions(context, assertions);
        self.note(promised(context, assertions));
    }
}

/// What is and was in the queues. Numbers of entries go up to 2^32, as the generations of handles do.
#[cold]
fn queues(engine: &(impl Engine + ?Sized)) -> Queues {
    let stats = engine.stats();
    Queues {
        lengths: Both {
            posted: engine.posted_len() as u32,
            unexpected: engine.unexpected_len() as u32,
        },
        queued: Both {
            posted: stats.posted.queued as u32,
            unexpected: stats.unexpected.queued as u32,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tagwire_base::{Rank, Tag};

    use super::*;
    use crate::registry::EngineName;
    use crate::storage::Capacity;
    use crate::trace::{Event, Record};

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<Record>>>);

    impl Sink for Kept {
        fn note(&mut self, record: Packed, queues: impl Fn() -> Queues) {
            let Queues { lengths, queued } = queues();
            assert!(lengths.posted <= queued.posted && lengths.unexpected <= queued.unexpected);
            let read = Record::from_bytes(record.after(0)).unwrap().unwrap();
            self.0.lock().unwrap().push(read);
        }
    }

    /// Every call is there with its answer, and the numbers of entries are those of their queues, on all engines.
    #[test]
    fn calls_are_recorded_in_their_order_with_their_answers() {
        let message = |tag| Envelope {
            source: Rank::new(1),
            tag: Tag::user(tag).unwrap(),
            context: ContextId::WORLD,
        };
        let names = crate::registry::KNOWN.iter().map(|known| known.name);
        for name in names {
            let kept = Kept::default();
            let name: EngineName = name.parse().unwrap();
            let mut engine = name.open_recorded(Capacity::default(), kept.clone());
            assert_eq!(engine.name(), name.name());
            let mut handles = Vec::new();
            for tag in 0..3 {
                match engine.post(Pattern::exact(message(tag)), Cookie(0)) {
                    PostOutcome::Queued(handle) => handles.push(handle),
                    other => panic!("{other:?}"),
                }
            }
            let _ = engine.arrive_sized(message(0), Cookie(1), 100);
            let _ = engine.arrive_sized(message(7), Cookie(2), 8);
            assert!(engine.cancel(handles[2]) != CancelOutcome::AlreadyMatched);
            assert!(engine.cancel(handles[0]) == CancelOutcome::AlreadyMatched);
            assert!(engine.probe(Pattern::exact(message(7))).is_some());
            assert!(engine.claim(Pattern::exact(message(8))).is_none());
            let post = |tag| (Event::Post(Pattern::exact(message(tag))), false);
            let wanted = [
                post(0),
                post(1),
                post(2),
                (Event::Arrive(message(0), Size::of(96)), true),
                (Event::Arrive(message(7), Size::of(8)), false),
                (Event::Cancel(2), true),
                (Event::Cancel(0), false),
                (Event::Probe(Pattern::exact(message(7))), true),
                (Event::Claim(Pattern::exact(message(8))), false),
            ];
            let records = kept.0.lock().unwrap();
            let told: Vec<_> = records.iter().map(|one| (one.event, one.matched)).collect();
            assert_eq!(told, wanted, "{name}");
        }
    }
}
