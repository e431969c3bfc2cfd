//! Traces in parts, as ranks write them.
//!
//! What was queued when the first call that a ring keeps was made is not in the trace. It is nothing at the first moment at which
//! both queues are empty, which their lengths tell: from there on the calls can be repeated and counted.

use tagwire_matching::Capacity;
use tagwire_matching::trace::{BEGINNING, Both, Event, PART, Queues, RECORD, Record};

use super::{Call, Parsed, Trace, cut, parse_records};

/// A part of the file, with what it begins with.
pub(super) struct Part<'a> {
    /// Calls before it.
    calls: u64,
    queues: Queues,
    records: &'a [[u8; RECORD]],
    /// Where it is among all records.
    place: usize,
}

/// Returns the parts that records lie in, in the order of their calls; none where the records lie in a row.
pub(super) fn found(records: &[[u8; RECORD]]) -> Vec<Part<'_>> {
    let size = PART / RECORD;
    let places = (0..records.len()).step_by(size);
    let parts = places.zip(records.chunks(size));
    let mut parts: Vec<Part<'_>> = parts
        .filter_map(|(place, records)| Part::of(place, records))
        .collect();
    // One that was being copied when the rank died is there twice, and the first is whole.
    parts.sort_by_key(|part| part.calls);
    parts.dedup_by_key(|part| part.calls);
    parts
}

/// Adds the calls of parts to a trace, of which there is the header.
pub(super) fn join(mut trace: Trace, parts: &[Part<'_>]) -> Parsed {
    let Some(first) = parts.first() else {
        return (trace, None);
    };
    // What comes before is missing in a ring alone.
    let before = match trace.header.ring {
        0 => 0,
        _ => first.calls,
    };
    let (mut queues, mut at) = (first.queues, 0);
    for part in parts {
        let calls = before.saturating_add(trace.calls.len() as u64);
        if part.calls != calls {
            let (place, found) = (part.place + 1, part.calls);
            let wrong = format!("record {place} is behind {found} calls, and {calls} are there");
            return (trace, Some(wrong));
        }
        let before = part.place + BEGINNING;
        let wrong = parse_records(&mut trace, part.records, before, &mut at);
        if let Some(wrong) = wrong.or_else(|| part.cut()) {
            return (trace, Some(wrong));
        }
    }
    trace.header.before = before;
    let Some(start) = start(&trace.calls, &mut queues, trace.header.capacity) else {
        let wrong = "at no time within what it keeps are both queues empty, so that nobody knows what was in them";
        return (trace, Some(wrong.to_owned()));
    };
    trace.header.before = trace.header.before.saturating_add(start as u64);
    if queues.queued != Both::default() {
        trace.calls = renumbered(&trace.calls[start..], queues.queued);
    }
    (trace, None)
}

impl<'a> Part<'a> {
    /// Returns the part, where it is one and not a part that was about to be written over.
    fn of(place: usize, records: &'a [[u8; RECORD]]) -> Option<Self> {
        let (beginning, records) = records.split_first_chunk::<BEGINNING>()?;
        let events = beginning.map(|bytes| Some(Record::from_bytes(bytes).ok()??.event));
        let [
            Some(Event::Begin(calls)),
            Some(Event::Lengths(lengths)),
            Some(Event::Queued(queued)),
        ] = events
        else {
            return None;
        };
        Some(Self {
            calls,
            queues: Queues { lengths, queued },
            records,
            place,
        })
    }

    /// What is wrong with a part that is neither full nor has an end.
    fn cut(&self) -> Option<String> {
        let is_full = BEGINNING + self.records.len() == PART / RECORD;
        let cut = || cut(self.records, self.place + BEGINNING);
        (!is_full).then(cut).flatten()
    }
}

/// Returns the place of the first call before which both queues are empty; `queues` are then as they are there.
fn start(calls: &[Call], queues: &mut Queues, capacity: Capacity) -> Option<usize> {
    let is_empty = |queues: &Queues| queues.lengths == Both::default();
    for (place, call) in calls.iter().enumerate() {
        if is_empty(queues) {
            return Some(place);
        }
        follow(call, queues, capacity)?;
    }
    is_empty(queues).then_some(calls.len())
}

/// What the queues are after a call; `None` where it takes from an empty queue.
fn follow(call: &Call, queues: &mut Queues, capacity: Capacity) -> Option<()> {
    let Queues { lengths, queued } = queues;
    let takes = |length: &mut u32| {
        *length = length.checked_sub(1)?;
        Some(())
    };
    let puts = |length: &mut u32, queued: &mut u32, most: u32| {
        if *length < most {
            *length += 1;
            *queued = queued.wrapping_add(1);
        }
        Some(())
    };
    match (call.event, call.matched) {
        (Event::Post(_) | Event::Claim(_) | Event::Discard(_), true) => {
            takes(&mut lengths.unexpected)
        }
        (Event::Arrive(..) | Event::ArriveExpected(_) | Event::Cancel(_), true) => {
            takes(&mut lengths.posted)
        }
        (Event::Post(_), false) => puts(&mut lengths.posted, &mut queued.posted, capacity.posted),
        (Event::Arrive(..), false) => puts(
            &mut lengths.unexpected,
            &mut queued.unexpected,
            capacity.unexpected,
        ),
        _ => Some(()),
    }
}

/// The calls with the numbers of entries from 0. Those of entries that were queued before found nothing, and are left out.
fn renumbered(calls: &[Call], before: Both) -> Vec<Call> {
    let mut kept = Vec::with_capacity(calls.len());
    for call in calls {
        let mut call = *call;
        let (number, before) = match &mut call.event {
            Event::Cancel(number) => (number, before.posted),
            Event::Discard(number) => (number, before.unexpected),
            _ => {
                kept.push(call);
                continue;
            }
        };
        *number = number.wrapping_sub(before);
        // Numbers go round at 2^32: what lies before is far ahead.
        if *number < 1 << 31 {
            kept.push(call);
        }
    }
    kept
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use std::fs;

    use tagwire_matching::Pattern;
    use tagwire_matching::trace::{HEADER, Packed, Size};

    use super::super::tests::{header, message};
    use super::*;

    fn both(posted: u32, unexpected: u32) -> Both {
        Both { posted, unexpected }
    }

    /// A part with these calls, behind so many.
    fn part(calls: u64, lengths: Both, queued: Both, events: &[(Event, bool)]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let [lengths, queued] = Packed::queues(Queues { lengths, queued });
        for record in [Packed::begin(calls), lengths, queued] {
            bytes.extend(record.after(0));
        }
        for (event, matched) in events {
            let record = Record {
                event: *event,
                matched: *matched,
                after: 1,
            };
            bytes.extend(record.to_bytes());
        }
        bytes
    }

    fn file(parts: &[Vec<u8>]) -> Vec<u8> {
        let mut header = header();
        header.ring = 5;
        let mut bytes = header.to_page().to_vec();
        for (index, part) in parts.iter().enumerate() {
            bytes.extend(part);
            bytes.resize(HEADER + (1 + index) * PART, 0);
        }
        bytes
    }

    fn read(bytes: &[u8]) -> Result<Trace, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.twm");
        fs::write(&path, bytes).unwrap();
        Trace::read(&path, false).map_err(|error| error.to_string())
    }

    fn calls() -> [(Event, bool); 6] {
        let arrive = |tag| Event::Arrive(message(0, tag), Size::of(8));
        [
            // Of the two receives that were queued one is taken, the other goes.
            (arrive(1), true),
            (Event::Cancel(9), true),
            (Event::Cancel(8), false),
            (Event::Post(Pattern::exact(message(0, 3))), false),
            (Event::Cancel(10), true),
            (arrive(4), false),
        ]
    }

    /// A part that is full of what changes nothing.
    fn full(calls: u64, lengths: Both, queued: Both) -> Vec<u8> {
        let look = (Event::Expects(message(0, 7)), false);
        part(
            calls,
            lengths,
            queued,
            &vec![look; PART / RECORD - BEGINNING],
        )
    }

    #[test]
    fn a_ring_begins_where_both_queues_are_empty_and_its_numbers_do_too() {
        let each = (PART / RECORD - BEGINNING) as u64;
        let (two, ten) = (both(2, 0), both(10, 4));
        let newest = part(1000 + each, two, ten, &calls());
        let read = super::tests::read(&file(&[newest, full(1000, two, ten)])).unwrap();
        assert_eq!((read.header.ring, read.header.before), (0, 1000 + each + 2));
        let mut wanted = calls()[3..].to_vec();
        wanted[1].0 = Event::Cancel(0);
        let told: Vec<_> = read
            .calls
            .iter()
            .map(|one| (one.event, one.matched))
            .collect();
        assert_eq!(told, wanted);
        // Both forms keep how many came before.
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.twm", "a.csv"] {
            let path = folder.path().join(name);
            read.write(&path).unwrap();
            assert_eq!(Trace::read(&path, false).unwrap(), read, "{name}");
        }
    }

    #[test]
    fn a_ring_that_was_not_full_is_all_there_and_a_part_that_was_about_to_be_written_over_is_not() {
        let none = Both::default();
        let post = (Event::Post(Pattern::exact(message(0, 3))), false);
        let whole = part(0, none, none, &[post; 3]);
        let mut gone = full(7, none, none);
        gone[..RECORD].fill(0);
        let read = read(&file(&[whole, gone])).unwrap();
        assert_eq!(read.header.before, 0);
        let told: Vec<_> = read
            .calls
            .iter()
            .map(|one| (one.event, one.matched))
            .collect();
        assert_eq!(told, [post; 3]);
    }

    /// The rank died while it copied its second part behind the first, and that part is the mapped one as well.
    #[test]
    fn of_a_part_that_is_there_twice_the_whole_one_counts() {
        let none = Both::default();
        let each = (PART / RECORD - BEGINNING) as u64;
        let second = full(each, none, none);
        let mut copied = second.clone();
        copied.truncate(5 * RECORD);
        let mut bytes = file(&[second, full(0, none, none), copied]);
        // It is no ring.
        bytes[..HEADER].copy_from_slice(&header().to_page());
        bytes.truncate(HEADER + 2 * PART + 5 * RECORD);
        let whole = read(&bytes).unwrap();
        assert_eq!((whole.header.before, whole.lost), (0, 0));
        assert_eq!(whole.calls.len() as u64, 2 * each);
        // A file that was cut within a record.
        let within = [&*bytes, &[1; 3]].concat();
        let refused = read(&within).unwrap_err();
        assert!(refused.contains("the file was cut"), "{refused}");
        // Without the mapped one the trace ends where the copy does, and it was cut there.
        bytes[HEADER..HEADER + RECORD].fill(0);
        let refused = read(&bytes).unwrap_err();
        let record = 2 * PART / RECORD + 6;
        let told = format!("record {record} is missing: the file was cut");
        assert!(refused.contains(&told), "{refused}");
        // All but the mapped part is gone: no ring begins in the middle.
        let none = Both::default();
        let mut bytes = file(&[full(each, none, none)]);
        let ring = read(&bytes).unwrap();
        assert_eq!(ring.header.before, each);
        bytes[..HEADER].copy_from_slice(&header().to_page());
        let refused = read(&bytes).unwrap_err();
        let told = format!("record 1 is behind {each} calls, and 0 are there");
        assert!(refused.contains(&told), "{refused}");
    }

    #[test]
    fn what_is_missing_in_a_ring_is_told() {
        let (one, ten) = (both(1, 0), both(10, 4));
        let look = (Event::Expects(message(0, 7)), false);
        let refused = read(&file(&[part(5, one, ten, &[look])])).unwrap_err();
        assert!(
            refused.contains("at no time within what it keeps"),
            "{refused}"
        );
        let parts = [part(5, one, ten, &[look]), part(9, one, ten, &[look])];
        let refused = read(&file(&parts)).unwrap_err();
        let told = format!(
            "record {} is behind 9 calls, and 6 are there",
            PART / RECORD + 1
        );
        assert!(refused.contains(&told), "{refused}");
    }
}
