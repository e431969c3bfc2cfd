//! The kit of byte transports on simulated machines: in virtual time, in order and in random schedules.

use std::time::Duration;

use tagwire_base::Rank;
use tagwire_conformance::byte::{CHECKS, Factory, Job, Tier};
use tagwire_conformance::{Verdict, seeds, tiers, transport_conformance};
use tagwire_sim::presets::preset;
use tagwire_sim::{Machine, Schedule, SimNetwork, SimOptions};
use tagwire_transport::ByteTransport;

/// Seeds of a run of the tests.
const SEEDS: u64 = 4;

fn factory(options: SimOptions) -> Factory {
    Factory::new(16, move |size| {
        let network = SimNetwork::new(size, options.clone());
        let open = |rank| Box::new(network.rank(Rank::new(rank))) as Box<dyn ByteTransport>;
        let ranks = (0..size).map(open).collect();
        Ok(Job::new(ranks).with_kill(move |rank, transport| {
            network.fail(rank);
            drop(transport);
        }))
    })
}

/// Two ranks a node, which have all that there is.
fn machine() -> SimOptions {
    let niagara = preset("niagara").expect("it is there").machine;
    SimOptions {
        machine: Some(Machine {
            ranks_per_node: 2,
            ..niagara
        }),
        ..SimOptions::full()
    }
}

fn scheduled(seed: u64) -> SimOptions {
    SimOptions {
        schedule: Schedule {
            seed,
            shuffle: true,
            delay: Duration::from_micros(seed % 3 * 10),
            reorder: seed % 2 == 1,
            ..Schedule::default()
        },
        trace: seeds::trace(),
        ..machine()
    }
}

transport_conformance!(on_a_machine, factory(machine()));
transport_conformance!(in_random_order, factory(scheduled(5)));

#[test]
fn a_machine_offers_all_tiers() {
    let all = Tier::ALL.into_iter().filter(|tier| *tier != Tier::ZeroCopy);
    let all: Vec<_> = all.collect();
    assert_eq!(tiers(&factory(machine())), Ok(all));
}

#[test]
fn the_kit_in_random_schedules() {
    let again = "cargo test -p tagwire-sim --test conformance the_kit_in_random_schedules";
    seeds::on_seeds(SEEDS, again, |seed| {
        let factory = factory(scheduled(seed));
        for check in CHECKS {
            // The schedule of threads is the system's.
            if check.tier() != Tier::Wake
                && let Verdict::Failed(reason) = check.run(&factory)
            {
                return Err(format!("{}: {reason}", check.name()));
            }
        }
        Ok(())
    });
}
