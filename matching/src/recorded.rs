//! An engine whose calls are recorded.

use std::fmt;

use tagwire_base::ContextId;

use crate::bins::{self, HashBins};
use crate::engine::{ArriveOutcome, CancelOutcome, ContextAssertions, Engine, PostOutcome, Stats};
use crate::envelope::{Cookie, Envelope, Handle, Pattern};
use crate::storage::{Apart, Capacity, Private};
use crate::trace::{
    ARRIVE_EXPECTED, Both, CANCEL, CLAIM, DISCARD, EXPECTS, POST, PROBE, Packed, Queues, Sink,
    Size, entry, promised,
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

/// What an engine does in line for the usual call. So the answer is known where the call is recorded; one that several ways lead to is
/// stored, and told apart again behind the record, which is half of what that costs.
pub trait Quick: Engine {
    /// Queues the receive, where it is clear at once that no message is here for it, and `note`, which is called before that,
    /// returns `true`. Else nothing happens.
    #[inline(always)]
    fn post_quickly(
        &mut self,
        pattern: Pattern,
        cookie: Cookie,
        note: impl FnOnce() -> bool,
    ) -> Option<Handle> {
        let _ = (pattern, cookie, note);
        None
    }

    /// Takes the receive that comes first, where it is the message's. Else nothing happens.
    #[inline(always)]
    fn take_quickly(&mut self, envelope: Envelope) -> Option<Cookie> {
        let _ = envelope;
        None
    }
}

impl Quick for dyn Engine + Send {}

impl<S: Sink, E: Quick + ?Sized> Recorded<S, E> {
    fn note(&mut self, record: Packed) {
        if !note_quickly(&mut self.sink, record) {
            self.note_slowly(record);
        }
    }

    #[cold]
    #[inline(never)]
    fn note_slowly(&mut self, record: Packed) {
        if self.sink.keep(record) {
            return;
        }
        let engine = &*self.engine;
        self.sink.note(record, || queues(engine));
    }

    #[cold]
    #[inline(never)]
    fn post_slowly(&mut self, pattern: Pattern, cookie: Cookie) -> PostOutcome {
        let Self { engine, sink } = self;
        // Where each record is to have its time, this is the usual way.
        let keep = || sink.keep(Packed::pattern(POST, pattern, false));
        if let Some(handle) = engine.post_quickly(pattern, cookie, keep) {
            return PostOutcome::Queued(handle);
        }
        let outcome = self.engine.post(pattern, cookie);
        let matched = matches!(outcome, PostOutcome::Matched(_));
        self.note(Packed::pattern(POST, pattern, matched));
        outcome
    }

    #[cold]
    #[inline(never)]
    fn arrive_slowly(&mut self, envelope: Envelope, cookie: Cookie, bytes: usize) -> ArriveOutcome {
        let outcome = self.engine.arrive_sized(envelope, cookie, bytes);
        let matched = matches!(outcome, ArriveOutcome::Matched(_));
        self.note(Packed::arrival(envelope, bytes as u64, matched));
        outcome
    }
}

impl<S, E: ?Sized> fmt::Debug for Recorded<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorded").finish_non_exhaustive()
    }
}

impl<S: Sink, E: Quick + ?Sized> Engine for Recorded<S, E> {
    // As for the engine itself: the calls of the hot path are inlined.
    #[inline(always)]
    fn post(&mut self, pattern: Pattern, cookie: Cookie) -> PostOutcome {
        let Self { engine, sink } = self;
        // Before the receive is queued, while few values are in registers.
        let note = || note_quickly(sink, Packed::pattern(POST, pattern, false));
        match engine.post_quickly(pattern, cookie, note) {
            Some(handle) => PostOutcome::Queued(handle),
            None => self.post_slowly(pattern, cookie),
        }
    }

    fn arrive(&mut self, envelope: Envelope, cookie: Cookie) -> ArriveOutcome {
        self.arrive_sized(envelope, cookie, 0)
    }

    #[inline(always)]
    fn arrive_sized(&mut self, envelope: Envelope, cookie: Cookie, bytes: usize) -> ArriveOutcome {
        let Some(taken) = self.engine.take_quickly(envelope) else {
            return self.arrive_slowly(envelope, cookie, bytes);
        };
        let record = Packed::arrival(envelope, bytes as u64, true);
        if !note_quickly(&mut self.sink, record) {
            self.note_slowly(record);
        }
        ArriveOutcome::Matched(taken)
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

/// Stores a record where there is a place at hand; returns whether there was.
#[inline(always)]
fn note_quickly(sink: &mut impl Sink, record: Packed) -> bool {
    let Some(place) = sink.place() else {
        return false;
    };
    *place = record.after(0);
    true
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

    use tagwire_base::{Rank, SourceSelector, Tag};

    use super::*;
    use crate::any::AnyEngine;
    use crate::registry::EngineName;
    use crate::storage::Capacity;
    use crate::trace::{Event, RECORD, Record};

    /// Keeps records; it has a place at hand for all but one in `every`, and keeps every other one of these when asked to.
    #[derive(Default)]
    struct Kept {
        every: usize,
        calls: usize,
        /// How often it was asked to keep one, which it does every other time.
        asked: usize,
        /// What was stored into the place of before.
        place: Option<[u8; RECORD]>,
        records: Arc<Mutex<Vec<Record>>>,
    }

    impl Kept {
        fn push(&mut self, bytes: [u8; RECORD]) {
            let read = Record::from_bytes(bytes).unwrap().unwrap();
            self.records.lock().unwrap().push(read);
        }

        fn push_place(&mut self) {
            if let Some(bytes) = self.place.take() {
                self.push(bytes);
            }
        }
    }

    impl Sink for Kept {
        fn place(&mut self) -> Option<&mut [u8; RECORD]> {
            self.push_place();
            self.calls += 1;
            if self.calls.is_multiple_of(self.every) {
                return None;
            }
            Some(self.place.insert([0; RECORD]))
        }

        fn keep(&mut self, record: Packed) -> bool {
            self.asked += 1;
            let keeps = self.asked.is_multiple_of(2);
            if keeps {
                self.push(record.after(0));
            }
            keeps
        }

        fn note(&mut self, record: Packed, queues: impl Fn() -> Queues) {
            let Queues { lengths, queued } = queues();
            assert!(lengths.posted <= queued.posted && lengths.unexpected <= queued.unexpected);
            self.push(record.after(0));
        }
    }

    impl Drop for Kept {
        fn drop(&mut self) {
            self.push_place();
        }
    }

    /// Calls that take the short way and calls that take the long one are answered as the engine answers, and each is recorded once.
    #[test]
    fn what_is_done_in_line_is_answered_and_recorded_as_the_rest() {
        let name: EngineName = AnyEngine::DEFAULT.parse().unwrap();
        for every in 1..6 {
            let records = Arc::default();
            let kept = Kept {
                every,
                records: Arc::clone(&records),
                ..Kept::default()
            };
            let capacity = Capacity::new(9, 9);
            let mut plain = name.open(capacity);
            let mut recorded = name.open_recorded(capacity, kept);
            let mut wanted = Vec::new();
            let mut random = 1_u32;
            for cookie in 0..5_000 {
                random = random.wrapping_mul(1_103_515_245).wrapping_add(12_345);
                let (tag, choice) = ((random >> 16) % 4, (random >> 24) % 8);
                let envelope = Envelope {
                    source: Rank::new(tag / 2),
                    tag: Tag::user(tag as i32).unwrap(),
                    context: ContextId::new(tag as u16 % 2),
                };
                let mut pattern = Pattern::exact(envelope);
                if choice == 0 {
                    pattern.source = SourceSelector::ANY;
                }
                let cookie = Cookie(cookie);
                if choice < 4 {
                    let outcome = plain.post(pattern, cookie);
                    assert_eq!(recorded.post(pattern, cookie), outcome);
                    let matched = matches!(outcome, PostOutcome::Matched(_));
                    wanted.push((Event::Post(pattern), matched));
                } else {
                    let bytes = tag as usize * 64;
                    let outcome = plain.arrive(envelope, cookie);
                    assert_eq!(recorded.arrive_sized(envelope, cookie, bytes), outcome);
                    let matched = matches!(outcome, ArriveOutcome::Matched(_));
                    let size = Size::of(bytes as u64);
                    wanted.push((Event::Arrive(envelope, size), matched));
                }
            }
            assert_eq!(recorded.stats(), plain.stats());
            drop(recorded);
            let records = records.lock().unwrap();
            let told: Vec<_> = records.iter().map(|one| (one.event, one.matched)).collect();
            assert!(told == wanted, "with a place for all but one in {every}");
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
            let records = Arc::default();
            let kept = Kept {
                every: 1,
                records: Arc::clone(&records),
                ..Kept::default()
            };
            let name: EngineName = name.parse().unwrap();
            let mut engine = name.open_recorded(Capacity::default(), kept);
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
            let records = records.lock().unwrap();
            let told: Vec<_> = records.iter().map(|one| (one.event, one.matched)).collect();
            assert_eq!(told, wanted, "{name}");
        }
    }
}
