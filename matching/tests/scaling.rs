//! How many entries a search looks at, by depth: the engines' complexity as assertions.

mod common;

use common::{message, queue_message, queue_receive, receive};
use tagwire_matching::storage::{Local, Node, Shared};
use tagwire_matching::{
    ArriveOutcome, Capacity, Cookie, Engine, Envelope, HashBins, Pattern, PerSource, PlainList,
    PostOutcome, bins as hash_bins, list, sources,
};

const DEEP: u32 = 65_536;
/// What the search that finds the list too long has looked at by then.
const FIRST_LOOK: u64 = hash_bins::FEW_UNEXPECTED as u64;

fn bins() -> HashBins {
    HashBins::with_capacity(Capacity::default())
}

/// Entries looked at while `work` runs.
fn attempts<E: Engine>(engine: &mut E, work: impl FnOnce(&mut E)) -> u64 {
    let before = engine.stats().attempts();
    work(engine);
    engine.stats().attempts() - before
}

fn arrives_at(engine: &mut impl Engine, envelope: Envelope, cookie: u32) {
    assert_eq!(
        engine.arrive(envelope, Cookie(0)),
        ArriveOutcome::Matched(Cookie(cookie))
    );
}

fn takes(engine: &mut impl Engine, pattern: Pattern, cookie: u32) {
    assert_eq!(
        engine.post(pattern, Cookie(0)),
        PostOutcome::Matched(Cookie(cookie))
    );
}

/// `DEEP` receives of one source, each with a tag of its own.
fn post_deep(engine: &mut impl Engine) {
    for index in 0..DEEP {
        queue_receive(engine, receive(Some(0), Some(index as i32)), index);
    }
}

/// `DEEP` messages of one source, each with a tag of its own.
fn arrive_deep(engine: &mut impl Engine) {
    for index in 0..DEEP {
        queue_message(engine, message(0, index as i32), index);
    }
}

#[test]
fn bins_find_any_of_65536_receives_at_once() {
    let mut engine = bins();
    post_deep(&mut engine);
    for index in [DEEP - 1, 0, DEEP / 2, 12_345] {
        let looked = attempts(&mut engine, |engine| {
            arrives_at(engine, message(0, index as i32), index);
        });
        assert!(looked <= 8, "receive {index}: {looked} entries");
    }
}

#[test]
fn bins_match_65536_receives_in_reverse_with_few_looks_each() {
    let mut engine = bins();
    post_deep(&mut engine);
    let looked = attempts(&mut engine, |engine| {
        for index in (0..DEEP).rev() {
            arrives_at(engine, message(0, index as i32), index);
        }
    });
    assert!(looked <= 2 * u64::from(DEEP), "{looked} entries");
    assert_eq!(engine.posted_len(), 0);
}

#[test]
fn bins_find_the_last_of_65536_unexpected_messages_at_once() {
    let mut engine = bins();
    arrive_deep(&mut engine);
    let last = DEEP - 1;
    let looked = attempts(&mut engine, |engine| {
        assert!(engine.probe(receive(Some(0), Some(last as i32))).is_some());
        takes(engine, receive(Some(0), Some(last as i32)), last);
    });
    assert!(looked <= FIRST_LOOK + 16, "{looked} entries");
}

#[test]
fn bins_find_wildcard_receives_messages_behind_65536_others() {
    let mut engine = bins();
    arrive_deep(&mut engine);
    queue_message(&mut engine, message(1, 70_000), DEEP);
    queue_message(&mut engine, message(2, 70_001), DEEP + 1);
    let looked = attempts(&mut engine, |engine| {
        takes(engine, receive(Some(2), None), DEEP + 1);
        takes(engine, receive(None, Some(70_000)), DEEP);
        takes(engine, receive(None, None), 0);
    });
    assert!(looked <= 3 * (FIRST_LOOK + 8), "{looked} entries");
}

#[test]
fn bins_probing_in_vain_looks_at_few_entries() {
    let mut engine = bins();
    arrive_deep(&mut engine);
    let looked = attempts(&mut engine, |engine| {
        for _ in 0..100 {
            assert_eq!(engine.probe(receive(Some(0), Some(99_999))), None);
            assert_eq!(engine.probe(receive(Some(9), None)), None);
            assert_eq!(engine.probe(receive(None, Some(99_999))), None);
        }
    });
    assert!(looked <= 300 * 8, "{looked} entries");
}

#[test]
fn bins_of_65536_wildcards_cost_no_more_than_one() {
    let mut engine = bins();
    for index in 0..DEEP {
        let tag = Some(index as i32);
        let pattern = match index % 3 {
            0 => receive(None, tag),
            1 => receive(Some(index), None),
            _ => receive(Some(index), tag),
        };
        queue_receive(&mut engine, pattern, index);
    }
    for index in (DEEP - 30..DEEP).rev() {
        let looked = attempts(&mut engine, |engine| {
            arrives_at(engine, message(index, index as i32), index);
        });
        assert!(looked <= 16, "receive {index}: {looked} entries");
    }
}

/// What the list costs, so that the tests above are known to measure something.
#[test]
fn a_plain_list_looks_at_every_entry_ahead() {
    let mut engine = PlainList::with_capacity(Capacity::default());
    post_deep(&mut engine);
    let looked = attempts(&mut engine, |engine| {
        arrives_at(engine, message(0, DEEP as i32 - 1), DEEP - 1);
    });
    assert_eq!(looked, u64::from(DEEP));
}

#[test]
fn per_source_lists_are_flat_in_sources_and_linear_in_one() {
    let mut engine = PerSource::with_capacity(Capacity::default());
    for source in 0..DEEP {
        queue_receive(&mut engine, receive(Some(source), Some(0)), source);
    }
    let flat = attempts(&mut engine, |engine| {
        arrives_at(engine, message(DEEP - 1, 0), DEEP - 1);
    });
    assert_eq!(flat, 1);

    let mut engine = PerSource::with_capacity(Capacity::default());
    post_deep(&mut engine);
    let linear = attempts(&mut engine, |engine| {
        arrives_at(engine, message(0, DEEP as i32 - 1), DEEP - 1);
    });
    assert_eq!(linear, u64::from(DEEP));
}

/// The walk of the any-source list ends at the receive that already won.
#[test]
fn per_source_merging_stops_at_the_earlier_find() {
    let mut engine = PerSource::with_capacity(Capacity::default());
    queue_receive(&mut engine, receive(Some(0), Some(0)), 7);
    for tag in 1..1_000 {
        queue_receive(&mut engine, receive(None, Some(tag)), 0);
    }
    let looked = attempts(&mut engine, |engine| arrives_at(engine, message(0, 0), 7));
    assert!(looked <= 2, "{looked} entries");
}

/// The sizes that `docs/matching.md` gives.
#[test]
fn nodes_are_as_small_as_documented() {
    assert_eq!(size_of::<Node<Local, { list::LINKS }>>(), 32);
    assert_eq!(size_of::<Node<Local, { sources::LINKS }>>(), 40);
    assert_eq!(size_of::<Node<Local, { hash_bins::LINKS }>>(), 64);
    assert_eq!(size_of::<Node<Shared, 1>>(), size_of::<Node<Local, 1>>());
}

/// Receives that are matched in order stay in a list, where nothing has to be looked for.
#[test]
fn bins_match_in_order_without_passing_any_entry() {
    let mut engine = bins();
    post_deep(&mut engine);
    for index in 0..DEEP {
        arrives_at(&mut engine, message(0, index as i32), index);
    }
    assert_eq!(engine.stats().posted.attempts, u64::from(DEEP));
}

/// Receives that were in bins are a list again when one is left: a message behind one that stays for ever looks at both. Two that
/// stay keep the bins, where it looks at its own.
#[test]
fn the_last_receive_in_bins_is_a_list() {
    let exact = |tag: i32| receive(Some(0), Some(tag));
    for stays in 1..=2_u32 {
        let mut engine = bins();
        for tag in 0..10 {
            queue_receive(&mut engine, exact(tag), tag as u32);
        }
        // Those that stay are in the middle; the first search looks past the few.
        let stay = 4..4 + stays as i32;
        for tag in (0..10).rev().filter(|tag| !stay.contains(tag)) {
            arrives_at(&mut engine, message(0, tag), tag as u32);
        }
        for cookie in 20..30 {
            queue_receive(&mut engine, exact(77), cookie);
            let looked = attempts(&mut engine, |engine| {
                arrives_at(engine, message(0, 77), cookie);
            });
            assert_eq!(looked, if stays == 1 { 2 } else { 1 });
        }
        for tag in stay {
            arrives_at(&mut engine, message(0, tag), tag as u32);
        }
        assert_eq!(engine.posted_len(), 0);
    }
}
