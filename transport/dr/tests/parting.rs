//! How ranks under dr part: all that was sent has come or somebody is told, whoever was away meanwhile, and whatever was lost of
//! the words by which they part.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod common;

use std::time::Duration;

use common::stream::{LANE, Node, connect, header, pair_on_sim};
use common::{faults, guard, machine, options};
use tagwire_base::{Clock, Rank};
use tagwire_dr::DrOptions;
use tagwire_sim::{SimNetwork, Simulation};
use tagwire_transport::{ByteTransport, Class, EndpointId, Post, Transport};

/// Seeds of a run of the tests.
const SEEDS: u64 = 10;

/// Two ranks of a simulated network, which wait for each other for `patience`.
fn pair(spec: &str, seed: u64, patience: Duration) -> (SimNetwork, [Node; 2], [Clock; 2]) {
    let network = SimNetwork::new(2, machine());
    let open = |rank| {
        let (inside, clock) = network.open(Rank::new(rank));
        let options = DrOptions {
            patience,
            ..options(clock.clone())
        };
        let faults = faults(spec, seed);
        let dr = guard(Box::new(inside), Rank::new(rank), faults, options);
        (dr, clock)
    };
    let ((a, a_clock), (b, b_clock)) = (open(0), open(1));
    (network, connect([a, b]), [a_clock, b_clock])
}

fn unheard(node: &Node) -> Vec<Rank> {
    let mut ranks = Vec::new();
    node.dr.unheard(&mut ranks);
    ranks
}

/// Has `node` make progress for a time by its clock, and nobody else.
fn alone(node: &mut Node, clock: &Clock, time: Duration) {
    let start = clock.now();
    while clock.now().since(start) < time {
        node.progress();
    }
}

/// Has `node` make progress until it is told something, within `limit` by its clock.
fn told_within(node: &mut Node, clock: &Clock, limit: Duration) -> Duration {
    let start = clock.now();
    while node.log.events.is_empty() {
        node.progress();
        assert!(clock.now().since(start) < limit, "nothing within {limit:?}");
    }
    clock.now().since(start)
}

#[test]
fn who_gets_nothing_through_fails_the_peer_in_bounded_time() {
    const PATIENCE: Duration = Duration::from_millis(50);
    let network = SimNetwork::new(2, machine());
    let open = |rank, spec: &str| {
        let (inside, clock) = network.open(Rank::new(rank));
        let options = DrOptions {
            patience: PATIENCE,
            ..options(clock.clone())
        };
        let dr = guard(Box::new(inside), Rank::new(rank), faults(spec, 1), options);
        (dr, clock)
    };
    let ((a, clock), (b, _)) = (open(0, "loss=100%"), open(1, "loss=100%"));
    let mut nodes = connect([a, b]);
    nodes[0].send(1);
    let time = told_within(&mut nodes[0], &clock, 6 * PATIENCE);
    assert!(time >= PATIENCE);
    assert_eq!(nodes[0].log.events, ["Failed(EndpointId(0))"]);
    for _ in 0..1000 {
        nodes[0].progress();
    }
    assert_eq!(nodes[0].log.events.len(), 1, "once");
    let post = nodes[0]
        .dr
        .send(LANE, EndpointId(0), Class::Data, header(1), b"");
    assert_eq!(post, Post::Gone);
}

#[test]
fn a_goodbye_waits_for_what_was_lost() {
    for seed in 0..20 {
        let [mut a, mut b] = pair_on_sim("loss=10%,duplicate=5%", seed, 0);
        while a.sent < 100 {
            a.send(100);
            a.progress();
            b.progress();
        }
        a.dr.leave();
        while b.log.events.is_empty() {
            a.progress();
            b.progress();
        }
        assert_eq!(
            (b.log.next, &b.log.events[..]),
            (100, &["Left(EndpointId(0))".to_owned()][..])
        );
        while !a.dr.has_left() {
            a.progress();
            b.progress();
        }
        drop(a);
        for _ in 0..1000 {
            b.progress();
        }
        assert_eq!(b.log.events.len(), 1, "seed {seed}: {:?}", b.log.events);
    }
}

/// A rank says its last and leaves while its peer computes for longer than any time-out. What the peer then reads has losses, and what
/// is lost comes again: the rank is still there.
#[test]
fn what_was_lost_while_its_receiver_computed_comes_again() {
    const ALL: u64 = 50;
    for seed in 0..SEEDS {
        let (network, nodes, _) = pair("loss=20%,reorder=4", seed, Duration::from_secs(60));
        let mut simulation = Simulation::new(&network);
        let mut ranks = (0..).map(Rank::new);
        let [mut a, mut b] = nodes.map(|node| (network.actor(ranks.next().unwrap()), node));
        simulation.spawn(&a.0.clone(), async move {
            let (actor, node) = (&a.0, &mut a.1);
            while node.sent < ALL {
                node.send(ALL);
                if node.progress() == 0 {
                    actor.next().await;
                }
            }
            node.leave(actor).await;
            assert_eq!(unheard(node), []);
        });
        simulation.spawn(&b.0.clone(), async move {
            let (actor, node) = (&b.0, &mut b.1);
            // Nothing has come by then, or what there is room for.
            actor.compute(Duration::from_secs(10)).await;
            while node.log.events.is_empty() {
                if node.progress() == 0 {
                    actor.next().await;
                }
            }
            assert_eq!((node.log.next, node.log.events.len()), (ALL, 1));
            assert!(node.log.events[0].starts_with("Left"), "seed {seed}");
        });
        assert_eq!(simulation.run(), Ok(()), "seed {seed}");
    }
}

#[test]
fn who_leaves_names_peers_that_never_acknowledge() {
    const PATIENCE: Duration = Duration::from_secs(3);
    let (_, mut nodes, [clock, _]) = pair("", 0, PATIENCE);
    nodes[0].send(5);
    nodes[0].dr.leave();
    let start = clock.now();
    alone(&mut nodes[0], &clock, PATIENCE / 2);
    assert!(!nodes[0].dr.has_left());
    assert_eq!(unheard(&nodes[0]), [Rank::new(1)]);
    while !nodes[0].dr.has_left() {
        nodes[0].progress();
        assert!(clock.now().since(start) < 3 * PATIENCE, "for ever");
    }
    assert_eq!(unheard(&nodes[0]), [Rank::new(1)]);
}

/// Where a rank is dropped before its peer has all, the peer gets all, or hears that it does not.
#[test]
fn who_is_left_without_all_is_told() {
    let mut ends = [0; 2];
    for seed in 0..SEEDS {
        let (_, nodes, _) = pair("loss=2%", seed, Duration::from_secs(60));
        let [mut a, mut b] = nodes;
        a.send(40);
        a.dr.leave();
        drop(a);
        let mut calls = 0;
        while b.log.events.is_empty() {
            b.progress();
            calls += 1;
            assert!(calls < 100_000, "seed {seed}: nobody tells");
        }
        let has_left = b.log.events[0].starts_with("Left");
        assert_eq!(
            has_left,
            b.log.next == 40,
            "seed {seed}: {:?}",
            b.log.events
        );
        ends[usize::from(has_left)] += 1;
    }
    assert!(
        ends.iter().all(|count| *count > 0),
        "one of a kind: {ends:?}"
    );
}

#[test]
fn ranks_that_leave_at_once_end() {
    const ALL: u64 = 30;
    for seed in 0..SEEDS {
        let (_, mut nodes, [clock, _]) = pair("loss=20%", seed, Duration::from_secs(60));
        for node in &mut nodes {
            node.send(ALL);
            node.dr.leave();
        }
        let start = clock.now();
        while !nodes.iter().all(|node| node.dr.has_left()) {
            for node in &mut nodes {
                node.progress();
            }
            let time = clock.now().since(start);
            assert!(time < Duration::from_secs(10), "seed {seed}: for ever");
        }
        for node in &nodes {
            // Who leaves waits for what it has sent, and not for what others have.
            assert_eq!(unheard(node), [], "seed {seed}");
        }
    }
}

/// A rank that hears a goodbye, and leaves at once, is there until its peer knows that the goodbye was heard.
#[test]
fn who_leaves_second_answers_until_the_first_knows() {
    let mut waits = 0;
    for seed in 0..SEEDS {
        let (_, nodes, clocks) = pair("loss=30%", seed, Duration::from_secs(60));
        let [mut a, mut b] = nodes;
        a.send(3);
        a.dr.leave();
        while b.log.events.is_empty() {
            a.progress();
            b.progress();
        }
        b.dr.leave();
        while !b.dr.has_left() {
            a.progress();
            b.progress();
        }
        waits += u64::from(!a.dr.has_left());
        alone(&mut a, &clocks[0], Duration::from_millis(500));
        assert!(a.dr.has_left(), "seed {seed}: it waits for who is gone");
        assert_eq!(unheard(&a), [], "seed {seed}");
    }
    assert_eq!(waits, 0, "of {SEEDS} were left alone");
}

/// Neither is left waiting where one has given up the other, which only listens.
#[test]
fn who_was_given_up_is_told() {
    const PATIENCE: Duration = Duration::from_millis(300);
    for seed in 0..SEEDS {
        let (_, nodes, clocks) = pair("loss=20%", seed, PATIENCE);
        let [mut a, mut b] = nodes;
        while b.log.next < 5 {
            a.send(5);
            a.progress();
            b.progress();
        }
        a.send(6);
        let time = told_within(&mut a, &clocks[0], 6 * PATIENCE);
        assert!(time >= PATIENCE, "seed {seed}");
        // It has been silent for longer than it says that it has given up.
        alone(&mut a, &clocks[0], Duration::from_secs(5));
        let mut calls = 0;
        while b.log.events.is_empty() {
            a.progress();
            b.progress();
            calls += 1;
            assert!(calls < 100_000, "seed {seed}: it waits for ever");
        }
        for node in [&mut a, &mut b] {
            assert_eq!(node.log.events, ["Failed(EndpointId(0))"], "seed {seed}");
            let post = node
                .dr
                .send(LANE, EndpointId(0), Class::Data, header(9), b"");
            assert_eq!(post, Post::Gone);
            node.dr.leave();
        }
        while !(a.dr.has_left() && b.dr.has_left()) {
            a.progress();
            b.progress();
        }
    }
}

/// A peer gives up a rank that is away. When the rank is back, it sends its last messages and leaves before it hears so: what it has sent
/// is lost, and it says to whom.
#[test]
fn what_was_sent_to_who_has_given_up_the_sender_is_named() {
    const PATIENCE: Duration = Duration::from_millis(300);
    for seed in 0..10 * SEEDS {
        let (_, nodes, clocks) = pair("loss=20%", seed, PATIENCE);
        let [mut a, mut b] = nodes;
        b.send(1);
        told_within(&mut b, &clocks[1], 6 * PATIENCE);
        a.send(1 + seed % 3);
        a.dr.leave();
        let start = clocks[0].now();
        while !a.dr.has_left() {
            a.progress();
            b.progress();
            let time = clocks[0].now().since(start);
            assert!(time < Duration::from_secs(10), "seed {seed}: for ever");
        }
        assert_eq!(
            (b.log.next, &b.log.events[..]),
            (0, &["Failed(EndpointId(0))".to_owned()][..])
        );
        assert_eq!(unheard(&a), [Rank::new(1)], "seed {seed}");
    }
}

#[test]
fn who_has_left_by_the_bootstraps_word_is_waited_for_no_more() {
    let (_, nodes, clocks) = pair("", 0, Duration::from_secs(60));
    let [a, mut b] = nodes;
    // It ends without a word, as where its goodbye was lost.
    std::mem::forget(a);
    b.send(2);
    b.dr.peer_left(Rank::new(0), &mut b.log);
    let time = told_within(&mut b, &clocks[1], Duration::from_secs(3));
    assert!(
        time >= Duration::from_millis(900),
        "its last words may come"
    );
    assert_eq!(b.log.events, ["Left(EndpointId(0))"]);
    b.dr.leave();
    b.progress();
    assert!(b.dr.has_left());
}
