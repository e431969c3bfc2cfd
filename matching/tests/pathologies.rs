//! Inputs on which known matching engines are slow or wrong; each is a test here.

mod common;

use common::{Arena, EXACT, message, queue_message, queue_receive, receive};
use tagwire_base::ContextId;
use tagwire_matching::{
    AnyEngine, ArriveOutcome, CancelOutcome, Capacity, ContextAssertions, Cookie, Engine, Envelope,
    Handle, HashBins, Oracle, PerSource, PostOutcome, bins, sources,
};

/// Runs a body on every engine, and on the oracle, which must agree.
fn on_every_engine(body: impl Fn(&mut dyn Engine)) {
    body(&mut Oracle::default());
    for name in EXACT {
        let engine = AnyEngine::by_name(name, Capacity::default());
        body(&mut engine.expect("the name is one of EXACT"));
    }
}

/// As above, with queues too short and too long for a list.
fn at_every_depth(body: impl Fn(&mut dyn Engine)) {
    for filler in [0, 2, 100] {
        on_every_engine(|engine| {
            let elsewhere = ContextId::new(9);
            for tag in 0..filler {
                let mut pattern = receive(Some(0), Some(tag));
                pattern.context = elsewhere;
                assert!(matches!(
                    engine.post(pattern, Cookie(999)),
                    PostOutcome::Queued(_)
                ));
                let mut envelope = message(1, tag);
                envelope.context = elsewhere;
                assert!(matches!(
                    engine.arrive(envelope, Cookie(999)),
                    ArriveOutcome::Queued(_)
                ));
            }
            body(engine);
        });
    }
}

fn post(engine: &mut dyn Engine, source: Option<u32>, tag: Option<i32>, cookie: u32) -> Handle {
    match engine.post(receive(source, tag), Cookie(cookie)) {
        PostOutcome::Queued(handle) => handle,
        other => panic!("not queued: {other:?}"),
    }
}

fn arrive(engine: &mut dyn Engine, source: u32, tag: i32, cookie: u32) -> Handle {
    match engine.arrive(message(source, tag), Cookie(cookie)) {
        ArriveOutcome::Queued(handle) => handle,
        other => panic!("not queued: {other:?}"),
    }
}

fn goes_to(engine: &mut dyn Engine, envelope: Envelope, cookie: u32) {
    let outcome = engine.arrive(envelope, Cookie(0));
    assert_eq!(outcome, ArriveOutcome::Matched(Cookie(cookie)));
}

// --- wrong results seen in other engines -------------------------------------------------------

/// libfabric's srx compared against the wrong member and let the directed receive win.
#[test]
fn an_earlier_any_source_receive_wins_over_a_directed_one() {
    at_every_depth(|engine| {
        post(engine, None, Some(5), 1);
        post(engine, Some(3), Some(5), 2);
        goes_to(engine, message(3, 5), 1);
        goes_to(engine, message(3, 5), 2);
    });
}

#[test]
fn an_earlier_directed_receive_wins_over_any_source() {
    at_every_depth(|engine| {
        post(engine, Some(3), Some(5), 1);
        post(engine, None, Some(5), 2);
        goes_to(engine, message(3, 5), 1);
        goes_to(engine, message(3, 5), 2);
    });
}

/// All four patterns that fit, in every order.
#[test]
fn the_earliest_of_all_kinds_of_receive_wins() {
    let kinds = [
        (Some(3), Some(5)),
        (None, Some(5)),
        (Some(3), None),
        (None, None),
    ];
    for first in 0..4 {
        for step in [1, 3] {
            at_every_depth(|engine| {
                for turn in 0..4 {
                    let (source, tag) = kinds[(first + turn * step) % 4];
                    post(engine, source, tag, turn as u32);
                }
                for turn in 0..4 {
                    goes_to(engine, message(3, 5), turn);
                }
            });
        }
    }
}

/// Open MPI's custom engines mask any-tag as "everything", internal tags included.
#[test]
fn any_tag_never_takes_an_internal_message() {
    at_every_depth(|engine| {
        post(engine, Some(3), None, 1);
        post(engine, None, None, 2);
        let internal = arrive(engine, 3, -1, 3);
        assert_eq!(engine.probe(receive(Some(3), None)), None);
        assert_eq!(engine.claim(receive(None, None)), None);
        goes_to(engine, message(3, 0), 1);
        goes_to(engine, message(3, 0), 2);
        let found = engine.probe(receive(None, Some(-1)));
        assert_eq!(found, Some((message(3, -1), Cookie(3))));
        assert_eq!(
            engine.discard(internal),
            CancelOutcome::Cancelled(Cookie(3))
        );
    });
}

/// Open MPI's "arrays" engine steps to the next node inside its inner loop when it only looks.
#[test]
fn a_search_that_removes_nothing_skips_nothing() {
    at_every_depth(|engine| {
        for tag in 0..50 {
            arrive(engine, 0, tag, tag as u32);
        }
        let queued = engine.unexpected_len();
        for tag in 0..50 {
            let exact = Some((message(0, tag), Cookie(tag as u32)));
            assert_eq!(engine.probe(receive(Some(0), Some(tag))), exact);
            assert_eq!(engine.probe(receive(None, Some(tag))), exact);
        }
        assert_eq!(engine.unexpected_len(), queued);
        for tag in 0..50 {
            let first = engine.claim(receive(None, None));
            assert_eq!(first, Some((message(0, tag), Cookie(tag as u32))));
        }
    });
}

/// Open MPI's per-peer counters report the whole queue under its custom engines; ours count queues.
#[test]
fn lengths_and_counters_are_those_of_their_queue() {
    for name in EXACT {
        let mut engine = AnyEngine::by_name(name, Capacity::default()).unwrap();
        for tag in 0..20 {
            post(&mut engine, Some(0), Some(tag), 0);
        }
        for tag in 100..107 {
            arrive(&mut engine, 0, tag, 0);
        }
        goes_to(&mut engine, message(0, 3), 0);
        assert_eq!(
            (engine.posted_len(), engine.unexpected_len()),
            (19, 7),
            "{name}"
        );
        let stats = engine.stats();
        assert_eq!(
            (stats.posted.high_water, stats.unexpected.high_water),
            (20, 7)
        );
        assert_eq!((stats.posted.hits, stats.posted.misses), (1, 7));
        assert_eq!((stats.posted.queued, stats.unexpected.queued), (20, 7));
        assert_eq!((stats.matches(), stats.posted.searches()), (1, 8));
    }
}

#[test]
fn equal_envelopes_and_equal_patterns_are_first_in_first_out() {
    at_every_depth(|engine| {
        for turn in 0..30 {
            arrive(engine, 1, 1, turn);
        }
        for turn in 0..30 {
            assert_eq!(
                engine.claim(receive(Some(1), Some(1))),
                Some((message(1, 1), Cookie(turn)))
            );
        }
        for turn in 0..30 {
            post(engine, Some(1), Some(1), turn);
        }
        for turn in 0..30 {
            goes_to(engine, message(1, 1), turn);
        }
    });
}

#[test]
fn a_stale_handle_never_names_the_slots_next_user() {
    on_every_engine(|engine| {
        let stale = post(engine, Some(0), Some(0), 1);
        goes_to(engine, message(0, 0), 1);
        let fresh = post(engine, Some(0), Some(0), 2);
        assert_ne!(stale, fresh);
        assert_eq!(engine.cancel(stale), CancelOutcome::AlreadyMatched);
        assert_eq!(engine.posted_len(), 1);
        assert_eq!(engine.cancel(fresh), CancelOutcome::Cancelled(Cookie(2)));
        let made_up = Handle::from_parts(u32::MAX, 0);
        assert_eq!(engine.cancel(made_up), CancelOutcome::AlreadyMatched);
        assert_eq!(engine.discard(made_up), CancelOutcome::AlreadyMatched);
    });
}

// --- inputs that make other engines slow --------------------------------------------------------

fn bins_engine() -> HashBins {
    HashBins::with_capacity(Capacity::default())
}

/// Posts these, lets them arrive in the same order, and returns the most entries that one arrival
/// looked at.
fn worst_look(keys: impl Iterator<Item = (u32, i32)> + Clone) -> u64 {
    let mut engine = bins_engine();
    for (source, tag) in keys.clone() {
        queue_receive(&mut engine, receive(Some(source), Some(tag)), 0);
    }
    let mut worst = 0;
    for (source, tag) in keys {
        let before = engine.stats().posted.attempts;
        goes_to(&mut engine, message(source, tag), 0);
        worst = worst.max(engine.stats().posted.attempts - before);
    }
    worst
}

/// UCX's bin is the XOR of two residues modulo 1,021; these all fall into one such bin.
#[test]
fn tags_that_collide_under_xor_and_modulo_do_not_collide() {
    assert!(worst_look((0..4_096).map(|i| (0, i * 1_021))) <= 12);
    assert!(worst_look((0..1_021_u32).map(|i| (i, i as i32))) <= 12);
    assert!(worst_look((0..4_096).map(|i| (0, i << 16))) <= 12);
    assert!(worst_look((0..4_096_u32).map(|i| (i % 64, (i / 64 * 1_024) as i32))) <= 12);
}

#[test]
fn many_to_one_with_tags_in_reverse_stays_linear() {
    let mut engine = bins_engine();
    let ranks = 4_096;
    for tag in 0..ranks {
        queue_receive(
            &mut engine,
            receive(Some(tag as u32), Some(tag)),
            tag as u32,
        );
    }
    for tag in (0..ranks).rev() {
        goes_to(&mut engine, message(tag as u32, tag), tag as u32);
    }
    assert!(engine.stats().posted.attempts <= 2 * ranks as u64);
}

#[test]
fn one_wildcard_posted_for_ever_does_not_slow_the_rest() {
    let mut engine = bins_engine();
    queue_receive(&mut engine, receive(None, Some(-7)), 1);
    for tag in 0..4_096 {
        queue_receive(&mut engine, receive(Some(0), Some(tag)), 2);
    }
    for tag in (0..4_096).rev() {
        goes_to(&mut engine, message(0, tag), 2);
    }
    assert!(engine.stats().posted.attempts <= 4 * 4_096);
    goes_to(&mut engine, message(5, -7), 1);
}

/// Constant: neither cancelling nor what is left behind costs any look at an entry.
#[test]
fn deep_cancels_look_at_nothing() {
    let mut engine = bins_engine();
    let handles: Vec<_> = (0..65_536)
        .map(|tag| queue_receive(&mut engine, receive(Some(0), Some(tag)), tag as u32))
        .collect();
    for handle in handles.iter().skip(1).rev().step_by(2) {
        assert!(matches!(
            engine.cancel(*handle),
            CancelOutcome::Cancelled(_)
        ));
    }
    assert_eq!(engine.stats().attempts(), 0);
    goes_to(&mut engine, message(0, 0), 0);
    assert_eq!(engine.posted_len(), 32_767);
}

/// Post order and arrival order that have nothing to do with each other.
#[test]
fn decorrelated_orders_cost_two_looks_each() {
    let mut engine = bins_engine();
    let count = 8_192_u32;
    for index in 0..count {
        queue_message(&mut engine, message(index % 7, index as i32), index);
    }
    for turn in 0..count {
        // An odd multiplier visits every index once.
        let index = turn.wrapping_mul(2_654_435_761) % count;
        let outcome = engine.post(receive(Some(index % 7), Some(index as i32)), Cookie(0));
        assert_eq!(outcome, PostOutcome::Matched(Cookie(index)));
    }
    assert!(engine.stats().unexpected.attempts <= 2 * u64::from(count));
}

// --- promises and bounds ------------------------------------------------------------------------

#[test]
fn a_broken_promise_changes_no_outcome() {
    at_every_depth(|engine| {
        let promise = ContextAssertions {
            no_any_source: true,
            no_any_tag: true,
            overtaking: false,
        };
        post(engine, None, Some(1), 1);
        engine.set_assertions(ContextId::WORLD, promise);
        post(engine, Some(0), Some(1), 2);
        goes_to(engine, message(0, 1), 1);
        engine.set_assertions(ContextId::WORLD, promise);
        post(engine, Some(0), None, 3);
        goes_to(engine, message(0, 1), 2);
        goes_to(engine, message(0, 1), 3);
    });
}

#[test]
fn a_kept_promise_spares_the_look_at_wildcards_of_other_contexts() {
    let mut engine = bins_engine();
    for tag in 0..100 {
        let mut pattern = receive(None, Some(tag));
        pattern.context = ContextId::new(5);
        queue_receive(&mut engine, pattern, 0);
    }
    queue_receive(&mut engine, receive(Some(0), Some(0)), 1);
    let promise = ContextAssertions {
        no_any_source: true,
        ..ContextAssertions::default()
    };
    engine.set_assertions(ContextId::WORLD, promise);
    goes_to(&mut engine, message(0, 0), 1);
    assert_eq!(engine.posted_len(), 100);
}

#[test]
fn a_directory_of_fixed_size_answers_full() {
    let arena = Arena::<{ sources::LINKS }>::new(9, 9, [4, 3 * 4]);
    let mut engine = PerSource::new(&arena);
    for source in 0..3 {
        queue_receive(&mut engine, receive(Some(source), Some(0)), source);
    }
    assert_eq!(
        engine.post(receive(Some(3), Some(0)), Cookie(3)),
        PostOutcome::Full
    );
    assert_eq!(engine.arrive(message(4, 0), Cookie(4)), ArriveOutcome::Full);
    assert_eq!((engine.posted_len(), engine.unexpected_len()), (3, 0));
    queue_receive(&mut engine, receive(None, Some(0)), 9);
    goes_to(&mut engine, message(2, 0), 2);
}

/// What one process queued, another finds: all state is in the storage.
#[test]
fn an_engine_attached_to_the_storage_goes_on_where_the_other_stopped() {
    let arena = Arena::<{ bins::LINKS }>::new(100, 100, [64, 256]);
    let mut first = HashBins::new(&arena);
    for tag in 0..50 {
        queue_receive(&mut first, receive(Some(0), Some(tag)), tag as u32);
    }
    let mut second = HashBins::attach(&arena);
    goes_to(&mut second, message(0, 30), 30);
    goes_to(&mut second, message(0, 49), 49);
    assert_eq!(first.posted_len(), 48);
    goes_to(&mut first, message(0, 31), 31);
}
