//! Many messages of mixed sizes over networks of several qualities: each comes once, whole and in order.
//!
//! A million each way: `TAGWIRE_DR_MESSAGES=1000000 cargo test --release -p tagwire-dr --test messages`.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod common;

use std::time::Duration;

use common::stream::{connect, exchange, pair_on_sim};
use common::{QUALITIES, faults, machine, on_shm, on_sim};
use tagwire_base::Rank;
use tagwire_base::bootstrap::LocalJob;
use tagwire_sim::{SimNetwork, Simulation};
use tagwire_transport::Transport;

fn messages() -> u64 {
    std::env::var("TAGWIRE_DR_MESSAGES").map_or(3000, |text| text.parse().unwrap())
}

#[test]
fn over_sim() {
    for (seed, quality) in (0..).zip(QUALITIES) {
        let counters = exchange(&mut pair_on_sim(quality, seed, 0), messages());
        println!("{quality}: {}; {}", counters[0], counters[1]);
        let is_lossy = quality.contains("loss=1%") || quality.contains("loss=10%");
        for counters in counters {
            assert!(counters.early > 0, "{quality}: {counters}");
            // The simulated network takes 10 to 30 us, however much of it is lost.
            let trip = counters.round_trip.unwrap();
            assert!(trip < Duration::from_micros(100), "{quality}: {counters}");
            if is_lossy {
                let seen = [
                    counters.retransmitted,
                    counters.duplicates,
                    counters.corrupt,
                ];
                assert!(seen.iter().all(|count| *count > 0), "{quality}: {counters}");
            }
        }
    }
}

#[test]
fn over_shm() {
    for (seed, quality) in (0..).zip(QUALITIES) {
        let job = LocalJob::new(2).unwrap();
        let open = |rank| on_shm(&job, Rank::new(rank), faults(quality, seed)).unwrap();
        let counters = exchange(&mut connect([open(0), open(1)]), messages());
        println!("{quality}: {}; {}", counters[0], counters[1]);
    }
}

#[test]
fn numbers_wrap() {
    let first = u32::MAX - 1000;
    let counters = exchange(&mut pair_on_sim(QUALITIES[2], 7, first), 3000);
    assert!(counters.iter().all(|counters| counters.retransmitted > 0));
}

#[test]
fn ranks_that_begin_with_other_numbers_are_told_apart() {
    let network = SimNetwork::new(2, machine());
    let open = |rank, first| on_sim(&network, Rank::new(rank), faults("", 0), first).0;
    let (mut a, b) = (open(0, 0), open(1, 5));
    let error = a
        .connect(Rank::new(1), &b.address())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("rank 1") && error.contains("dr-first"),
        "{error}"
    );
}

#[test]
fn without_faults_nothing_is_sent_again() {
    let counters = exchange(&mut pair_on_sim("", 0, 0), 3000);
    for counters in counters {
        let for_nothing = [
            counters.retransmitted,
            counters.duplicates,
            counters.corrupt,
            counters.early,
        ];
        assert_eq!(for_nothing, [0; 4], "{counters}");
        assert!(
            counters
                .round_trip
                .is_some_and(|time| time > Duration::ZERO)
        );
    }
}

#[test]
fn a_peer_that_only_listens_is_told_from_one_that_is_not_there() {
    let mut nodes = pair_on_sim("loss=10%", 3, 0);
    let [a, b] = &mut nodes;
    while b.log.next < 200 {
        a.send(200);
        a.progress();
        b.progress();
    }
    // Acknowledged without a message back.
    let mut text = String::new();
    for _ in 0..1_000_000 {
        a.progress();
        b.progress();
        text.clear();
        a.dr.describe(&mut text);
        if text.contains(" 0 not acknowledged") {
            break;
        }
    }
    assert!(text.contains(" 0 not acknowledged"), "{text}");
    assert!(b.dr.counters().notes > 0);
}

#[test]
fn ranks_that_are_called_only_for_what_comes_send_again_too() {
    const ALL: u64 = 500;
    for seed in 0..4 {
        let network = SimNetwork::new(2, machine());
        let mut simulation = Simulation::new(&network);
        let spec = QUALITIES[seed as usize];
        let open = |rank| on_sim(&network, Rank::new(rank), faults(spec, seed), 0).0;
        for (rank, mut node) in (0..).zip(connect([open(0), open(1)])) {
            let actor = network.actor(Rank::new(rank));
            simulation.spawn(&actor.clone(), async move {
                while node.sent < ALL || node.log.next < ALL {
                    node.send(ALL);
                    if node.progress() == 0 {
                        actor.next().await;
                    }
                }
                node.leave(&actor).await;
            });
        }
        let end = simulation.run();
        assert_eq!(end, Ok(()), "{spec}");
    }
}

/// Messages go to and fro, one at a time, over a network whose round trip is longer than the least time-out. The first are sent again
/// until a reply has come; then the time-out is known to be too short.
#[test]
fn a_long_round_trip_is_learnt_of_single_messages() {
    const LATENCY: Duration = Duration::from_millis(4);
    const FEW: u64 = 4;
    const ALL: u64 = 300;
    let mut machine = machine();
    if let Some(machine) = &mut machine.machine {
        machine.local.latency = LATENCY.into();
    }
    let network = SimNetwork::new(2, machine);
    let mut simulation = Simulation::new(&network);
    let open = |rank| on_sim(&network, Rank::new(rank), faults("", 0), 0).0;
    for (rank, mut node) in (0..).zip(connect([open(0), open(1)])) {
        let actor = network.actor(Rank::new(rank));
        simulation.spawn(&actor.clone(), async move {
            let mut at_first = 0;
            for round in 0..ALL {
                // The second sends what the first has sent.
                while rank == 1 && node.log.next <= round {
                    if node.progress() == 0 {
                        actor.next().await;
                    }
                }
                node.send(round + 1);
                while node.log.next <= round {
                    if node.progress() == 0 {
                        actor.next().await;
                    }
                }
                if round == FEW {
                    at_first = node.dr.counters().retransmitted;
                }
            }
            let counters = node.dr.counters();
            assert_eq!(at_first, counters.retransmitted, "{counters}");
            assert!(at_first > 0, "it is not long: {counters}");
            let trip = counters.round_trip.unwrap();
            assert!(trip >= 2 * LATENCY, "{counters}");
        });
    }
    assert_eq!(simulation.run(), Ok(()));
}
