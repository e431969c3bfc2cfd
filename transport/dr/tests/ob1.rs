//! The suite of layers: ob1 under dr, over shared memory and simulated machines whose messages are lost, repeated, reordered and
//! changed.

mod common;

use std::time::Duration;

use common::{QUALITIES, faults, guard, machine, options};
use tagwire_base::Bootstrap;
use tagwire_conformance::pml::{CHECKS, Factory, RailJob, Rails, Tier};
use tagwire_conformance::{Verdict, pml_conformance, seeds};
use tagwire_dr::Dr;
use tagwire_sim::SimNetwork;
use tagwire_transport::ByteTransport;
use tagwire_transport::shm::{Shm, ShmOptions};

/// Seeds of a run of the tests.
const SEEDS: u64 = 4;

/// What is lost comes after a time-out, which may be the longest, or the second.
const TIMEOUT: Duration = Duration::from_millis(50);

/// Rounds of calls that find nothing after which a simulated world is at rest: a hundred looks at the timers, in which a time-out that
/// doubles with each loss in a row goes off seven times.
const QUIET: u32 = 4000;

/// Checks that run threads, whose schedule is the system's, or thousands of requests.
const LEFT_OUT: &[&str] = &["waits", "blocking", "ten_thousand", "wait_"];

fn shm(spec: &'static str) -> Factory {
    Factory::ob1(move |size, ob1| {
        let rails = Rails::new(move |bootstrap| {
            let rank = bootstrap.rank();
            let options = options(bootstrap.clock());
            let shm = Shm::open(ShmOptions::default(), bootstrap as &mut dyn Bootstrap);
            let shm = Box::new(shm.map_err(|error| error.to_string())?);
            let dr = match spec {
                "" => Dr::new(shm, rank, options).map_err(|error| error.to_string())?,
                _ => guard(shm, rank, faults(spec, 1), options),
            };
            Ok(Box::new(dr) as Box<dyn ByteTransport>)
        });
        RailJob::open(size, rails, ob1)
    })
    .latency(TIMEOUT)
}

fn sim(spec: &'static str, seed: u64) -> Factory {
    Factory::ob1(move |size, ob1| {
        let network = SimNetwork::new(size, machine());
        let mortal = network.clone();
        let rails = Rails::new(move |bootstrap| {
            let rank = bootstrap.rank();
            let (inside, clock) = network.open(rank);
            bootstrap.set_clock(clock.clone());
            let dr = guard(Box::new(inside), rank, faults(spec, seed), options(clock));
            Ok(Box::new(dr) as Box<dyn ByteTransport>)
        })
        .with_kill(move |rank| mortal.fail(rank));
        RailJob::open(size, rails, ob1)
    })
    .quiet(QUIET)
}

pml_conformance!(over_shm, shm(""));
pml_conformance!(over_lossy_sim, sim(QUALITIES[2], 1));

/// Runs the checks whose ranks are driven by turns, but for those that `but` names.
fn run(factory: &Factory, but: &[&str]) -> Result<(), String> {
    let is_in = |name: &str, parts: &[&str]| parts.iter().any(|part| name.contains(part));
    for check in CHECKS {
        if [Tier::Core, Tier::Flow].contains(&check.tier())
            && !is_in(check.name(), LEFT_OUT)
            && !is_in(check.name(), but)
            && let Verdict::Failed(reason) = check.run(factory)
        {
            return Err(format!("{}: {reason}", check.name()));
        }
    }
    Ok(())
}

#[test]
fn ob1_over_lossy_sim() {
    let again = "cargo test -p tagwire-dr --test ob1 ob1_over_lossy_sim";
    seeds::on_seeds(SEEDS, again, |seed| {
        let quality = QUALITIES[seed as usize % QUALITIES.len()];
        run(&sim(quality, seed), &[]).map_err(|reason| format!("{quality}: {reason}"))
    });
}

#[test]
fn ob1_over_lossy_shm() {
    // Random traffic waits for its end by turns and short naps: in virtual time a time-out goes by meanwhile, by a clock it may not.
    // Other qualities are those of `tests/messages.rs`.
    let quality = QUALITIES[2];
    if let Err(reason) = run(&shm(quality), &["random"]) {
        panic!("{quality}: {reason}");
    }
}
