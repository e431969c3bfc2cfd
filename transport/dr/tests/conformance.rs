//! The kit of byte transports under dr: over shared memory and simulated machines, whose messages are lost, repeated, reordered
//! and changed.

mod common;

use common::{QUALITIES, faults, machine, on_shm, on_sim};
use tagwire_base::Rank;
use tagwire_base::bootstrap::LocalJob;
use tagwire_conformance::byte::{CHECKS, Factory, Job, Tier};
use tagwire_conformance::{Verdict, seeds, tiers, transport_conformance};
use tagwire_sim::SimNetwork;
use tagwire_transport::ByteTransport;

/// Seeds of a run of the tests.
const SEEDS: u64 = 4;

/// What the dead have sent last may be lost, and nobody sends it again.
const OF_THE_DEAD: &[&str] = &["last_words_are_delivered"];

fn shm(spec: &'static str) -> Factory {
    Factory::new(16, move |size| {
        let job = LocalJob::new(size).map_err(|error| error.to_string())?;
        let open = |rank| {
            let dr = on_shm(&job, Rank::new(rank), faults(spec, 1))?;
            Ok(Box::new(dr) as Box<dyn ByteTransport>)
        };
        (0..size)
            .map(open)
            .collect::<Result<_, String>>()
            .map(Job::new)
    })
}

fn sim(spec: &'static str, seed: u64) -> Factory {
    Factory::new(16, move |size| {
        let network = SimNetwork::new(size, machine());
        let open = |rank| {
            let (dr, _) = on_sim(&network, Rank::new(rank), faults(spec, seed), 0);
            Box::new(dr) as Box<dyn ByteTransport>
        };
        let ranks = (0..size).map(open).collect();
        Ok(Job::new(ranks).with_kill(move |rank, transport| {
            network.fail(rank);
            drop(transport);
        }))
    })
}

transport_conformance!(over_shm, shm(""));
transport_conformance!(over_shm_in_disorder, shm("reorder=4"));
transport_conformance!(over_sim, sim("", 1));

/// Runs the kit, without what cannot hold where messages are lost.
fn run(factory: &Factory, without_threads: bool) -> Result<(), String> {
    for check in CHECKS {
        let is_left_out = OF_THE_DEAD.iter().any(|name| check.name().contains(name))
            || without_threads && check.tier() == Tier::Wake;
        if !is_left_out && let Verdict::Failed(reason) = check.run(factory) {
            return Err(format!("{}: {reason}", check.name()));
        }
    }
    Ok(())
}

#[test]
fn the_kit_over_lossy_sim() {
    let again = "cargo test -p tagwire-dr --test conformance the_kit_over_lossy_sim";
    seeds::on_seeds(SEEDS, again, |seed| {
        let quality = QUALITIES[seed as usize % QUALITIES.len()];
        run(&sim(quality, seed), true).map_err(|reason| format!("{quality}: {reason}"))
    });
}

#[test]
fn the_kit_over_lossy_shm() {
    for quality in QUALITIES {
        if let Err(reason) = run(&shm(quality), false) {
            panic!("{quality}: {reason}");
        }
    }
}

#[test]
fn dr_offers_messages_alone() {
    let all = [Tier::Core, Tier::Failure, Tier::Detection, Tier::Wake];
    assert_eq!(tiers(&sim("", 1)), Ok(all.to_vec()));
}
