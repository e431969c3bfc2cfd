//! The suite of layers in random schedules of simulated networks: ob1 in virtual time, cm over a network that matches, with and without.
#![cfg(not(loom))]

mod common;

use std::time::Duration;

use common::{reading, tiny, writing};
use tagwire_conformance::network::matching::MatchOptions;
use tagwire_conformance::network::{MemoryOptions, Schedule};
use tagwire_conformance::pml::{CHECKS, Factory, MemoryJob, Tier};
use tagwire_conformance::{Verdict, pml_conformance, seeds};

/// Seeds of a run of the tests.
const SEEDS: u64 = 8;

/// Checks that run threads, whose schedule is the system's, or thousands of requests.
const LEFT_OUT: &[&str] = &["waits", "blocking", "ten_thousand", "wait_"];

/// A network of a seed: what it can, its machine, and its schedule.
fn network(seed: u64) -> MemoryOptions {
    let kinds = [
        MemoryOptions::default,
        MemoryOptions::full,
        tiny,
        reading,
        writing,
    ];
    MemoryOptions {
        machine: Some(seeds::machine(1 + (seed % 3) as u32)),
        schedule: Schedule {
            seed,
            shuffle: true,
            delay: Duration::from_micros(seed % 4 * 5),
            reorder: seed % 2 == 1,
            ..Schedule::default()
        },
        trace: seeds::trace(),
        ..kinds[(seed % 5) as usize]()
    }
}

fn ob1(seed: u64) -> Factory {
    let network = network(seed);
    Factory::ob1(move |size, options| MemoryJob::open(size, network.clone(), options))
}

fn cm(seed: u64) -> Factory {
    let options = MatchOptions {
        helping: seed % 2 == 1,
        late_answers: seed % 3 == 1,
        seed: Some(seed),
        trace: seeds::trace(),
        ..MatchOptions::default()
    };
    // Every other pair of seeds has messages that take their time.
    match seed % 4 {
        0 | 1 => Factory::cm_in_memory(options),
        _ => Factory::cm_in_time(network(seed), options),
    }
}

/// Runs the checks whose ranks are driven by turns.
fn run(factory: &Factory) -> Result<(), String> {
    let tiers = [Tier::Core, Tier::Flow, Tier::Failure];
    let is_by_turns = |name: &str| !LEFT_OUT.iter().any(|part| name.contains(part));
    for check in CHECKS {
        if tiers.contains(&check.tier())
            && is_by_turns(check.name())
            && let Verdict::Failed(reason) = check.run(factory)
        {
            return Err(format!("{}: {reason}", check.name()));
        }
    }
    Ok(())
}

#[test]
fn ob1_in_random_schedules() {
    let again = "cargo test -p tagwire-pml --test sim ob1_in_random_schedules";
    seeds::on_seeds(SEEDS, again, |seed| run(&ob1(seed)));
}

#[test]
fn cm_in_random_schedules() {
    let again = "cargo test -p tagwire-pml --test sim cm_in_random_schedules";
    seeds::on_seeds(SEEDS, again, |seed| run(&cm(seed)));
}

pml_conformance!(ob1_in_virtual_time, ob1(1));

/// Progress takes what there is: threads that sleep do not come again by themselves.
fn cm_for_threads() -> Factory {
    Factory::cm_in_time(network(2), MatchOptions::default())
}

pml_conformance!(cm_in_virtual_time, cm_for_threads());
