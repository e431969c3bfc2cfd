//! Jobs of ob1 on simulated machines.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::time::Duration;

use tagwire_bench_sim::{Arguments, Error, Outcome, PROGRAMS, Pml, program, run, run_on};
use tagwire_sim::presets::{PRESETS, preset};
use tagwire_sim::{Kill, Machine, Schedule, SimOptions, Span};

fn arguments(rounds: u32, bytes: usize) -> Arguments {
    Arguments {
        rounds,
        bytes,
        compute: Duration::ZERO,
    }
}

fn niagara() -> Machine {
    preset("niagara").unwrap().machine
}

fn scheduled(machine: Machine, seed: u64, delay: Duration) -> SimOptions {
    SimOptions {
        schedule: Schedule {
            seed,
            shuffle: true,
            delay,
            reorder: seed % 2 == 1,
            ..Schedule::default()
        },
        ..SimOptions::of(machine)
    }
}

fn well(name: &str, ranks: u32, options: &SimOptions, arguments: Arguments) -> Outcome {
    let outcome = run(program(name).unwrap(), ranks, options, arguments).unwrap();
    assert_eq!(outcome.failed, [], "{name}");
    assert_eq!(outcome.rounds.len(), arguments.rounds as usize, "{name}");
    outcome
}

/// Each round takes what the network of the machine does for two messages.
fn check_ping_pong(outcome: &Outcome, bytes: usize) {
    let network = niagara().network;
    let way = network.latency + network.send + network.recv + network.per_byte.of(bytes);
    for pair in outcome.rounds.windows(2) {
        let round = pair[1].last.since_start().as_picos() - pair[0].last.since_start().as_picos();
        assert_eq!(Span::picos(round), way + way, "{bytes} bytes");
    }
}

#[test]
fn a_ping_pong_of_ob1_takes_what_the_network_does() {
    for bytes in [0, 8, 4096] {
        let outcome = well(
            "ping-pong",
            2,
            &SimOptions::of(niagara()),
            arguments(4, bytes),
        );
        check_ping_pong(&outcome, bytes);
    }
}

#[test]
fn every_program_runs_on_every_machine_in_any_schedule() {
    for (seed, preset) in (0..).zip(PRESETS) {
        for program in PROGRAMS {
            for ranks in [program.least, 5, 12] {
                let machine = Machine {
                    ranks_per_node: 1 + ranks % 4,
                    ..preset.machine
                };
                let options = scheduled(machine, seed, Duration::from_micros(3));
                for bytes in [8, 100_000] {
                    well(program.name, ranks, &options, arguments(2, bytes));
                }
            }
        }
    }
}

#[test]
fn a_seed_names_its_rows() {
    let rows = |seed| {
        let options = scheduled(niagara(), seed, Duration::from_micros(2));
        let outcome = well("stencil", 64, &options, arguments(5, 100));
        (outcome.rounds, outcome.counts, outcome.end)
    };
    assert_eq!(rows(2), rows(2));
    assert_ne!(rows(2), rows(4));
}

#[test]
fn the_peers_of_a_dead_rank_end_and_say_why() {
    let mut options = SimOptions::of(niagara());
    options.schedule.kills = vec![Kill {
        rank: 2,
        at: Duration::from_micros(30),
    }];
    let outcome = run(program("ring").unwrap(), 4, &options, arguments(1000, 8)).unwrap();
    assert!(!outcome.failed.is_empty());
    for (rank, why) in &outcome.failed {
        assert!(*rank != 2, "it is dead");
        assert!(why.contains("rank"), "rank {rank}: {why}");
    }
    assert!(
        outcome
            .failed
            .iter()
            .any(|(rank, why)| *rank == 3 && why.contains('2')),
        "{outcome:?}"
    );
}

#[test]
fn cores_are_shared_by_the_ranks_of_a_node() {
    let machine = Machine {
        ranks_per_node: 8,
        cores: 2,
        ..niagara()
    };
    let computing = Arguments {
        compute: Duration::from_millis(10),
        ..arguments(1, 8)
    };
    let ends = |machine| {
        let outcome = well("barrier", 8, &SimOptions::of(machine), computing);
        outcome.rounds[0].last.as_nanos() / 1_000_000
    };
    assert_eq!(ends(machine), 40);
    assert_eq!(
        ends(Machine {
            cores: 0,
            ..machine
        }),
        10
    );
}

#[test]
fn jobs_that_cannot_be_are_refused() {
    let options = SimOptions::of(niagara());
    let error = run(program("ring").unwrap(), 1, &options, arguments(1, 8)).unwrap_err();
    assert!(matches!(error, Error::TooFew { takes: 2, .. }), "{error}");
    let error = run(
        program("barrier").unwrap(),
        u32::MAX,
        &options,
        arguments(1, 8),
    )
    .unwrap_err();
    assert!(matches!(error, Error::Memory { .. }), "{error}");
}

#[test]
fn every_program_runs_where_the_network_matches() {
    for (seed, program) in (0..).zip(PROGRAMS) {
        let options = scheduled(niagara(), 2 * seed, Duration::from_micros(3));
        for bytes in [8, 100_000] {
            let arguments = arguments(2, bytes);
            let outcome = run_on(Pml::Cm, program, 6, &options, arguments).unwrap();
            assert_eq!(outcome.failed, [], "{}", program.name);
            assert_eq!(outcome.rounds.len(), 2, "{}", program.name);
        }
    }
}

#[test]
fn a_ping_pong_of_cm_takes_what_the_network_does() {
    for bytes in [0, 8, 4096] {
        let options = SimOptions::of(niagara());
        let arguments = arguments(4, bytes);
        let program = program("ping-pong").unwrap();
        let outcome = run_on(Pml::Cm, program, 2, &options, arguments).unwrap();
        check_ping_pong(&outcome, bytes);
    }
}
