//! What published engines look at, as their sources say: entries, never times.
#![cfg(feature = "engines")]
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod common;

use common::{message, queue_message, queue_receive, receive};
use tagwire_base::ContextId;
use tagwire_matching::offload::{Offload, OffloadCounts, Refill, Shape};
use tagwire_matching::{
    AnyEngine, ArriveOutcome, CancelOutcome, Capacity, Cookie, Engine, Oracle, PlainList,
    PostOutcome, QueueStats,
};

fn engine(name: &str) -> AnyEngine {
    AnyEngine::by_name(name, Capacity::default()).unwrap()
}

/// Entries that a call looks at.
fn looked(engine: &mut AnyEngine, call: impl FnOnce(&mut AnyEngine)) -> u64 {
    let before = engine.stats().attempts();
    call(engine);
    engine.stats().attempts() - before
}

fn goes_to(engine: &mut AnyEngine, source: u32, tag: i32, cookie: u32) {
    let outcome = engine.arrive(message(source, tag), Cookie(0));
    assert_eq!(outcome, ArriveOutcome::Matched(Cookie(cookie)));
}

fn takes(engine: &mut AnyEngine, source: Option<u32>, tag: Option<i32>) -> u32 {
    match engine.post(receive(source, tag), Cookie(0)) {
        PostOutcome::Matched(Cookie(cookie)) => cookie,
        other => panic!("took nothing: {other:?}"),
    }
}

#[test]
fn entries_of_other_contexts_are_looked_at_by_one_list_alone() {
    for (name, entries) in [("list", 101), ("list:per=context", 1), ("chunks", 1)] {
        let mut engine = engine(name);
        for tag in 0..100 {
            let mut pattern = receive(Some(0), Some(tag));
            pattern.context = ContextId::new(7);
            queue_receive(&mut engine, pattern, 1);
        }
        queue_receive(&mut engine, receive(Some(0), Some(5)), 2);
        let count = looked(&mut engine, |engine| goes_to(engine, 0, 5, 2));
        assert_eq!(count, entries, "{name}");
    }
}

#[test]
fn every_directory_leads_to_the_entries_of_one_source() {
    for name in ["source", "source:dir=array", "source:dir=trie4,ranks=100"] {
        let mut engine = engine(name);
        for source in (0..1_000).rev() {
            queue_receive(&mut engine, receive(Some(source), Some(1)), source);
        }
        let count = looked(&mut engine, |engine| goes_to(engine, 777, 1, 777));
        assert_eq!(count, 1, "{name}");
    }
}

/// Open MPI's ob1: an any-source receive takes from the source behind the one that was last.
#[test]
fn a_rotation_serves_sources_in_turn() {
    for name in ["source:any=rotate", "source:dir=array,any=rotate"] {
        let mut engine = engine(name);
        for cookie in 0..9 {
            // Three messages of source 0, then of 1, then of 2.
            queue_message(&mut engine, message(cookie / 3, 1), cookie);
        }
        let sources = |engine: &mut AnyEngine| [0; 9].map(|_| takes(engine, None, Some(1)));
        let taken = sources(&mut engine);
        // Each source's own messages are in their order.
        for source in 0..3 {
            let own: Vec<u32> = taken
                .into_iter()
                .filter(|cookie| cookie / 3 == source)
                .collect();
            assert_eq!(
                own,
                [3 * source, 3 * source + 1, 3 * source + 2],
                "{name}: {taken:?}"
            );
        }
        for turn in taken.chunks(3) {
            let mut sources: Vec<u32> = turn.iter().map(|cookie| cookie / 3).collect();
            sources.sort_unstable();
            assert_eq!(sources, [0, 1, 2], "{name}: {taken:?}");
        }
    }
}

#[test]
fn a_pending_wildcard_makes_arrivals_of_ucx_walk_its_queue() {
    let mut engine = engine("ucx");
    for tag in 0..1_000 {
        queue_receive(&mut engine, receive(Some(0), Some(tag)), 1);
    }
    let without = looked(&mut engine, |engine| goes_to(engine, 0, 999, 1));
    assert!(without <= 2, "{without}");
    for tag in 0..100 {
        queue_receive(&mut engine, receive(None, Some(5_000 + tag)), 2);
    }
    queue_receive(&mut engine, receive(Some(0), Some(2_000)), 3);
    let with = looked(&mut engine, |engine| goes_to(engine, 0, 2_000, 3));
    assert!((101..=103).contains(&with), "{with}");
}

/// Tags 1,021 apart lie in one bin of UCX, whose modulus that is.
#[test]
fn tags_that_collide_make_a_bin_of_ucx_a_list() {
    let deepest = |step: i32| {
        let mut engine = engine("ucx");
        for index in 0..100 {
            queue_receive(
                &mut engine,
                receive(Some(0), Some(index * step)),
                index as u32,
            );
        }
        looked(&mut engine, |engine| goes_to(engine, 0, 99 * step, 99))
    };
    assert_eq!(deepest(1021), 100);
    assert_eq!(deepest(1), 1);
}

/// A wildcard receive of either walks every unexpected message, unless what is hashed is exact.
#[test]
fn wildcard_receives_walk_all_messages_but_where_the_key_is_exact() {
    for (name, any_source) in [
        ("ucx", 101),
        ("flajslik", 101),
        ("flajslik:bins=1024,key=source", 101),
        ("flajslik:bins=1024,key=tag", 10),
    ] {
        let mut engine = engine(name);
        for tag in 0..101 {
            queue_message(&mut engine, message(1, tag), tag as u32);
        }
        let count = looked(&mut engine, |engine| {
            assert_eq!(takes(engine, None, Some(100)), 100);
        });
        match any_source {
            101 => assert_eq!(count, 101, "{name}"),
            most => assert!(count <= most, "{name}: {count}"),
        }
    }
}

#[test]
fn a_walk_of_the_wildcards_of_flajslik_ends_at_the_earlier_find() {
    let mut engine = engine("flajslik");
    queue_receive(&mut engine, receive(Some(0), Some(0)), 7);
    for tag in 1..1_000 {
        queue_receive(&mut engine, receive(None, Some(tag)), 0);
    }
    let count = looked(&mut engine, |engine| goes_to(engine, 0, 0, 7));
    assert!(count <= 2, "{count}");
}

/// Holes are skipped, and chunks without entries leave their chain: a queue that turns over stays as long as it is.
#[test]
fn chunks_skip_holes_and_give_empty_chunks_back() {
    let mut engine = engine("chunks:k=4");
    let mut handles = Vec::new();
    for tag in 0..64 {
        handles.push(queue_receive(
            &mut engine,
            receive(Some(0), Some(tag)),
            tag as u32,
        ));
    }
    // One in four stays.
    for (tag, handle) in handles.into_iter().enumerate() {
        if tag % 4 != 1 {
            let _ = engine.cancel(handle);
        }
    }
    let count = looked(&mut engine, |engine| goes_to(engine, 0, 61, 61));
    assert_eq!(count, 16);
    for turn in 0..10_000_u32 {
        queue_receive(&mut engine, receive(Some(0), Some(100)), turn);
        goes_to(&mut engine, 0, 100, turn);
    }
    let count = looked(&mut engine, |engine| goes_to(engine, 0, 57, 57));
    assert_eq!(count, 15);
}

/// Entries that a search lets through in vain, and all that it looks at.
fn in_vain(engine: &mut AnyEngine, call: impl FnOnce(&mut AnyEngine)) -> (u64, u64) {
    let before = engine.stats();
    call(engine);
    let after = engine.stats();
    (
        after.false_hits() - before.false_hits(),
        after.attempts() - before.attempts(),
    )
}

fn finds_none(engine: &mut AnyEngine, source: u32, tag: i32) {
    assert_eq!(engine.arrive_expected(message(source, tag)), None);
}

/// Every key is the same where source XOR tag is: each of the entries is a false hit, whatever the bits.
#[test]
fn a_constant_source_xor_tag_makes_every_entry_a_false_hit_of_fuzzy() {
    const ALIKE: u32 = 0x5a_5a5a;
    for name in [
        "fuzzy",
        "fuzzy:bits=16",
        "fuzzy:bits=32",
        "fuzzy:isa=scalar",
    ] {
        let mut engine = engine(name);
        let tag = |source: u32| (source ^ ALIKE) as i32;
        for source in 0..1_000 {
            queue_receive(
                &mut engine,
                receive(Some(source), Some(tag(source))),
                source,
            );
        }
        let none = in_vain(&mut engine, |engine| finds_none(engine, 2_000, tag(2_000)));
        assert_eq!(none, (1_000, 1_000), "{name}");
        let last = in_vain(&mut engine, |engine| goes_to(engine, 999, tag(999), 999));
        assert_eq!(last, (999, 1_000), "{name}");
        // Messages likewise.
        let mut engine = self::engine(name);
        for source in 0..1_000 {
            queue_message(&mut engine, message(source, tag(source)), source);
        }
        let last = in_vain(&mut engine, |engine| {
            assert_eq!(takes(engine, Some(999), Some(tag(999))), 999);
        });
        assert_eq!(last, (999, 1_000), "{name}");
    }
}

/// Keys that are spread evenly: n / 2^bits false hits.
#[test]
fn false_hits_of_fuzzy_halve_with_each_bit() {
    for (name, wanted) in [
        ("fuzzy", 4_096 / 256),
        ("fuzzy:bits=16", 0),
        ("fuzzy:bits=32", 0),
        ("lanes", 0),
    ] {
        let mut engine = engine(name);
        for tag in 0..4_096 {
            queue_receive(&mut engine, receive(Some(0), Some(tag)), tag as u32);
        }
        let none = in_vain(&mut engine, |engine| finds_none(engine, 0, 4_096));
        assert_eq!(none, (wanted, wanted), "{name}");
        // All but the one that fits.
        let hit = in_vain(&mut engine, |engine| goes_to(engine, 0, 4_095, 4_095));
        assert_eq!(hit.0, wanted.saturating_sub(1), "{name}");
    }
}

/// Receives with a wildcard have no mask in fuzzy, and one for each field in lanes.
#[test]
fn wildcards_are_candidates_of_every_search_of_fuzzy() {
    for (name, false_hits) in [("fuzzy", 200), ("lanes", 0)] {
        let mut engine = engine(name);
        for index in 0..100 {
            queue_receive(&mut engine, receive(None, Some(index)), 1);
            queue_receive(&mut engine, receive(Some(500 + index as u32), None), 2);
        }
        queue_receive(&mut engine, receive(Some(3), Some(1_000)), 3);
        let seen = in_vain(&mut engine, |engine| goes_to(engine, 3, 1_000, 3));
        assert_eq!(seen, (false_hits, false_hits + 1), "{name}");
    }
}

/// The mask of an any-tag receive lets internal tags through; the whole comparison refuses them.
#[test]
fn internal_tags_are_false_hits_of_any_tag_receives() {
    let mut engine = engine("lanes");
    for _ in 0..50 {
        queue_receive(&mut engine, receive(Some(3), None), 1);
    }
    let seen = in_vain(&mut engine, |engine| finds_none(engine, 3, -1));
    assert_eq!(seen, (50, 50));
}

/// Holes within a vector stay, vectors without entries are used again.
#[test]
fn vectors_skip_holes_and_give_empty_vectors_back() {
    for name in ["lanes", "fuzzy", "fuzzy:bits=32,isa=scalar"] {
        let mut engine = engine(name);
        let mut handles = Vec::new();
        for tag in 0..512 {
            handles.push(queue_receive(
                &mut engine,
                receive(Some(0), Some(tag)),
                tag as u32,
            ));
        }
        for (tag, handle) in handles.into_iter().enumerate() {
            if tag % 64 != 17 {
                let _ = engine.cancel(handle);
            }
        }
        for turn in 0..5_000 {
            queue_receive(
                &mut engine,
                receive(Some(0), Some(600 + turn % 7)),
                turn as u32,
            );
            goes_to(&mut engine, 0, 600 + turn % 7, turn as u32);
        }
        let mut left = Vec::new();
        engine.for_each_posted(&mut |_, cookie| left.push(cookie.0));
        assert_eq!(left, [17, 81, 145, 209, 273, 337, 401, 465], "{name}");
        for tag in left {
            goes_to(&mut engine, 0, tag as i32, tag);
        }
    }
}

/// What one search looked at most is the most that the counts grew by in one call, of receives, of messages and of probes.
#[test]
fn the_deepest_search_is_the_greatest_growth_of_the_counts() {
    let names = [
        "bins", "list", "source", "ucx", "flajslik", "chunks", "lanes", "fuzzy", "adaptive",
        "partner",
    ];
    for name in names {
        let mut engine = engine(name);
        let mut most = [0, 0];
        let mut before = engine.stats();
        let mut note = |engine: &AnyEngine| {
            let now = engine.stats();
            let grown = [
                now.posted.attempts - before.posted.attempts,
                now.unexpected.attempts - before.unexpected.attempts,
            ];
            most = [most[0].max(grown[0]), most[1].max(grown[1])];
            let deepest = [now.posted.deepest, now.unexpected.deepest];
            assert_eq!(deepest, most.map(Some), "{name}");
            before = now;
        };
        note(&engine);
        for number in 0..400_u32 {
            // More is posted than arrives, then the other way round; tags come in another order than they were posted in.
            let tag = (number * 7 % 40).cast_signed();
            let posts = number % 4 != (number / 200) * 3;
            let source = (number % 5 != 0).then_some(number % 3);
            if posts {
                let _ = engine.post(receive(source, Some(tag)), Cookie(number));
            } else {
                let _ = engine.arrive(message(number % 3, tag), Cookie(number));
            }
            note(&engine);
            let _ = engine.probe(receive(None, Some(tag)));
            note(&engine);
        }
        assert!(most.iter().all(|most| *most > 0), "{name}: {most:?}");
    }
}

/// A list whose entries lie apart does what one does whose entries lie side by side.
#[test]
fn a_stride_changes_where_entries_lie_alone() {
    let slots = |name: &str| {
        let mut engine = engine(name);
        let handles =
            (0..100).map(|tag| queue_receive(&mut engine, receive(Some(0), Some(tag)), 1));
        let slots: Vec<u32> = handles.map(|handle| handle.slot()).collect();
        goes_to(&mut engine, 0, 99, 1);
        (slots, engine.stats())
    };
    let (near, counted) = slots("list");
    assert_eq!(near, (0..100).collect::<Vec<u32>>());
    for (name, step) in [
        ("list:stride=64", 2),
        ("list:stride=512", 16),
        ("list:per=context,stride=256", 8),
    ] {
        let (apart, same) = slots(name);
        let wanted: Vec<u32> = near.iter().map(|slot| slot * step).collect();
        assert_eq!((apart, same), (wanted, counted), "{name}");
    }
}

#[test]
fn portals_refuse_when_entries_or_headers_run_out() {
    let mut engine = engine("portals:entries=3,headers=2");
    for tag in 0..3 {
        queue_receive(&mut engine, receive(Some(0), Some(tag)), tag as u32);
    }
    let full = engine.post(receive(Some(0), Some(3)), Cookie(3));
    assert_eq!(full, PostOutcome::Full);
    goes_to(&mut engine, 0, 1, 1);
    queue_receive(&mut engine, receive(Some(0), Some(3)), 3);
    for tag in 10..12 {
        queue_message(&mut engine, message(0, tag), tag as u32);
    }
    assert_eq!(
        engine.arrive(message(0, 12), Cookie(0)),
        ArriveOutcome::Full
    );
    // One for which there is a receive takes no header.
    goes_to(&mut engine, 0, 3, 3);
    assert_eq!(takes(&mut engine, Some(0), Some(11)), 11);
    queue_message(&mut engine, message(0, 12), 12);
}

/// Whether a message of so many bytes is queued.
fn arrives(engine: &mut AnyEngine, tag: i32, bytes: usize) -> bool {
    let outcome = engine.arrive_sized(message(0, tag), Cookie(tag as u32), bytes);
    matches!(outcome, ArriveOutcome::Queued(_))
}

/// A block is unlinked when it has not room for the longest message, and linked again once its messages have been taken.
#[test]
fn blocks_of_portals_come_back_when_their_messages_have_left() {
    let mut engine = engine("portals:overflow=2,space=1000,eager=400");
    // Two messages of 400 bytes leave too little in a block of 1,000.
    for tag in 0..4 {
        assert!(arrives(&mut engine, tag, 400), "{tag}");
    }
    assert!(!arrives(&mut engine, 4, 1));
    // A header alone takes a block's number, too.
    assert!(!arrives(&mut engine, 5, 4_000));
    assert_eq!(takes(&mut engine, Some(0), Some(3)), 3);
    assert!(
        !arrives(&mut engine, 6, 1),
        "the other message of the block is there"
    );
    assert_eq!(takes(&mut engine, Some(0), Some(2)), 2);
    // The longer ones stay with their sender.
    for tag in 7..20 {
        assert!(arrives(&mut engine, tag, 401), "{tag}");
    }
    assert!(
        arrives(&mut engine, 20, 400)
            && arrives(&mut engine, 21, 400)
            && !arrives(&mut engine, 22, 1)
    );
}

/// What is cut off in the match bits is compared whole.
#[test]
fn fields_wider_than_match_bits_are_false_hits_of_portals() {
    let mut engine = engine("portals");
    queue_receive(&mut engine, receive(Some(1), Some(5)), 1);
    queue_receive(&mut engine, receive(Some(1), Some(5 + (1 << 23))), 2);
    queue_receive(&mut engine, receive(Some(1 + (1 << 24)), Some(5)), 3);
    let seen = in_vain(&mut engine, |engine| goes_to(engine, 1 + (1 << 24), 5, 3));
    assert_eq!(seen, (2, 3));
    let seen = in_vain(&mut engine, |engine| goes_to(engine, 1, 5 + (1 << 23), 2));
    assert_eq!(seen, (1, 2));
}

/// Posts 8 receives over hardware of 3, and takes the first 4 of them; what receives have seen.
fn drained(refill: Refill) -> OffloadCounts {
    let shape = Shape {
        receives: 3,
        messages: 0,
        refill,
    };
    let capacity = Capacity::default();
    let software = Box::new(PlainList::with_capacity(capacity));
    let mut engine = Offload::new(shape, capacity, software);
    let mut oracle = Oracle::with_capacity(capacity);
    for tag in 0..8 {
        queue_receive(&mut engine, receive(Some(0), Some(tag)), tag as u32);
        queue_receive(&mut oracle, receive(Some(0), Some(tag)), tag as u32);
    }
    for tag in 0..4 {
        let outcome = engine.arrive(message(0, tag), Cookie(0));
        assert_eq!(outcome, ArriveOutcome::Matched(Cookie(tag as u32)));
        assert_eq!(outcome, oracle.arrive(message(0, tag), Cookie(0)));
    }
    // The model does not tell how far one search went through both.
    let counted = QueueStats {
        deepest: None,
        ..oracle.stats().posted
    };
    assert_eq!(engine.stats().posted, counted);
    let [receives, messages] = engine.counts();
    assert_eq!(messages, OffloadCounts::default());
    receives
}

#[test]
fn receives_move_up_each_or_when_hardware_is_drained() {
    let each = drained(Refill::Each);
    let wanted = OffloadCounts {
        searches: 4,
        in_hardware: 4,
        hardware_looked: 4,
        software_looked: 0,
        accepted: 3,
        spilled: 5,
        refilled: 4,
    };
    assert_eq!(each, wanted);
    // Three leave, then the next three move up.
    let drained = drained(Refill::Drained);
    assert_eq!(
        drained,
        OffloadCounts {
            refilled: 3,
            ..wanted
        }
    );
}

/// A receive that hardware does not hold is found in software, behind all that hardware holds.
#[test]
fn searches_go_on_in_software_where_hardware_has_none() {
    let mut engine = engine("offload:n=10,u=10,over=bins");
    for tag in 0..1_000 {
        queue_receive(&mut engine, receive(Some(0), Some(tag)), tag as u32);
    }
    let count = looked(&mut engine, |engine| goes_to(engine, 0, 999, 999));
    // What the first search of bins looks at, too.
    assert!((11..=20).contains(&count), "{count}");
    let count = looked(&mut engine, |engine| goes_to(engine, 0, 998, 998));
    assert!((11..=16).contains(&count), "{count}");
}

/// Takes receives of tags from the last one down, which a list finds behind all others.
fn drain_backwards(engine: &mut AnyEngine, tags: std::ops::Range<i32>) {
    for tag in tags.rev() {
        goes_to(engine, 0, tag, tag as u32);
    }
}

#[test]
fn an_adaptive_engine_leaves_a_list_that_looks_at_much_and_comes_back() {
    let mut engine = engine("adaptive:up=8,window=16");
    let handles: Vec<_> = (0..200)
        .map(|tag| queue_receive(&mut engine, receive(Some(0), Some(tag)), tag as u32))
        .collect();
    let list = looked(&mut engine, |engine| drain_backwards(engine, 184..200));
    assert_eq!(list, (185..=200).sum::<u64>());
    // One source: bins from here on.
    let bins = looked(&mut engine, |engine| drain_backwards(engine, 100..184));
    assert!(bins <= 84 * 3, "{bins}");
    // Handles of before the move still name their entries.
    assert_eq!(
        engine.cancel(handles[50]),
        CancelOutcome::Cancelled(Cookie(50))
    );
    assert_eq!(engine.cancel(handles[150]), CancelOutcome::AlreadyMatched);
    drain_backwards(&mut engine, 51..100);
    drain_backwards(&mut engine, 0..50);
    // Short queues: a list again, which looks at those of other sources too.
    for turn in 0..64 {
        queue_receive(&mut engine, receive(Some(0), Some(1)), turn);
        goes_to(&mut engine, 0, 1, turn);
    }
    for source in 0..4 {
        queue_receive(&mut engine, receive(Some(source), Some(1)), source);
    }
    let count = looked(&mut engine, |engine| goes_to(engine, 3, 1, 3));
    assert_eq!(count, 4);
}

#[test]
fn an_adaptive_engine_takes_lists_for_each_source_where_there_are_many() {
    let mut engine = engine("adaptive:up=8,window=16");
    for source in 0..200 {
        for tag in 0..2 {
            let cookie = 2 * source + tag as u32;
            queue_receive(&mut engine, receive(Some(source), Some(tag)), cookie);
        }
    }
    for source in 150..166 {
        goes_to(&mut engine, source, 0, 2 * source);
    }
    // The second receive of a source stands behind the first one alone.
    let count = looked(&mut engine, |engine| goes_to(engine, 100, 1, 201));
    assert_eq!(count, 2);
}

/// The source that is searched for most has a list of its own from the next window on, and its entries keep their order.
#[test]
fn partners_have_lists_of_their_own() {
    let mut engine = engine("partner:k=1,window=10");
    for source in 100..200 {
        queue_receive(&mut engine, receive(Some(source), Some(1)), source);
    }
    for cookie in 0..20 {
        queue_receive(&mut engine, receive(Some(5), Some(1)), cookie);
    }
    // The tenth search ends the window before it looks.
    for cookie in 0..9 {
        let count = looked(&mut engine, |engine| goes_to(engine, 5, 1, cookie));
        assert_eq!(count, 101);
    }
    for cookie in 9..20 {
        let count = looked(&mut engine, |engine| goes_to(engine, 5, 1, cookie));
        assert_eq!(count, 1);
    }
    // Any-source receives come in between in their order.
    queue_receive(&mut engine, receive(None, Some(2)), 1);
    queue_receive(&mut engine, receive(Some(5), Some(2)), 2);
    goes_to(&mut engine, 5, 2, 1);
    goes_to(&mut engine, 5, 2, 2);
}
