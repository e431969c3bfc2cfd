//! Random traffic in random schedules of a simulated network; and faults that are planted, which it finds.

use tagwire_conformance::network::{Link, Machine, PerByte, Schedule, Span};
use tagwire_conformance::seeds;
use tagwire_transport::fault::SplitMix64;

use super::*;
use crate::planted;

/// Seeds of a run of the tests.
const SEEDS: u64 = 12;

/// Seeds within which a planted fault is found.
const SEEDS_OF_FAULTS: u64 = 1000;

const RANKS: u64 = 3;
const MESSAGES: u64 = 400;

/// Packets of a network are late by up to ten times its latency, and overtake each other for one seed of three.
fn network(seed: u64) -> MemoryOptions {
    let link = Link {
        latency: Span::nanos(1000),
        send: Span::nanos(100),
        recv: Span::nanos(100),
        gap: Span::nanos(50),
        per_byte: PerByte::femtos(100_000),
        ..Link::default()
    };
    let mut networks = networks();
    let kind = (seed % networks.len() as u64) as usize;
    MemoryOptions {
        machine: Some(Machine {
            network: link,
            local: link,
            ranks_per_node: 1 + (seed % 2) as u32,
            ..Machine::default()
        }),
        schedule: Schedule {
            seed,
            shuffle: true,
            delay: Duration::from_micros(10),
            reorder: seed.is_multiple_of(3),
            ..Schedule::default()
        },
        trace: seeds::trace(),
        ..networks.swap_remove(kind)
    }
}

/// A message of the traffic: from, to, length, whether its receive is posted first.
#[derive(Debug, Clone, Copy)]
struct Planned {
    from: usize,
    to: u32,
    len: usize,
    early: bool,
}

fn plan(seed: u64) -> Vec<Planned> {
    let mut random = SplitMix64::stream(seed, 1);
    let one = |_| {
        let lengths = [0, 8, 8, 8, 100, 1000, 5000, 40_000];
        let from = random.below(RANKS) as usize;
        let to = if random.chance(80) {
            0
        } else {
            random.below(RANKS)
        };
        Planned {
            from,
            to: to as u32,
            len: lengths[random.below(lengths.len() as u64) as usize],
            early: random.chance(20),
        }
    };
    (0..MESSAGES).map(one).collect()
}

/// Sends what is planned, with now and then some progress, receives it, and compares every byte.
fn traffic(seed: u64) -> Result<(), String> {
    // Little room, so that senders run out of credit.
    let options = Ob1Options {
        unexpected_payload: 256 << 10,
        unexpected_headers: 32 << 10,
        ..Ob1Options::default()
    };
    let mut world = World::new(RANKS as u32, network(seed), &options);
    let mut random = SplitMix64::stream(seed, 2);
    let mut receives = Vec::new();
    let post = |world: &mut World, number: usize, planned: Planned| {
        let from = SourceSelector::exact(Rank::new(planned.from as u32));
        let only = TagSelector::exact(tag(number as i32));
        world.recv(planned.to as usize, from, only, planned.len)
    };
    let plan = plan(seed);
    for (number, planned) in plan.iter().copied().enumerate() {
        if planned.early {
            receives.push((number, post(&mut world, number, planned)));
        }
        let data = pattern(number, planned.len);
        world.send(
            planned.from,
            planned.to,
            tag(number as i32),
            &data,
            SendMode::Standard,
        );
        for _ in 0..random.below(4) {
            let rank = random.below(RANKS) as usize;
            world.ranks[rank].progress();
        }
    }
    for (number, planned) in plan.iter().copied().enumerate() {
        if !planned.early {
            receives.push((number, post(&mut world, number, planned)));
        }
    }
    for (number, (request, place)) in receives {
        let at = plan[number].to as usize;
        let mut quiet = 0;
        while !world.ranks[at].is_complete(request) {
            let events: usize = world.ranks.iter_mut().map(PointToPoint::progress).sum();
            quiet = if events == 0 { quiet + 1 } else { 0 };
            if quiet > 5000 {
                return Err(format!("message {number} never comes"));
            }
        }
        let status = world.ranks[at].take(request);
        let status = status.map_err(|error| error.to_string())?;
        if let Some(failure) = status.and_then(|status| status.failure) {
            return Err(format!("message {number}: {failure:?}"));
        }
        if *world.lent[place] != *pattern(number, plan[number].len) {
            return Err(format!("message {number} has other bytes than were sent"));
        }
    }
    Ok(())
}

#[test]
fn traffic_arrives_in_any_schedule() {
    let again = "cargo test -p tagwire-pml --lib traffic_arrives_in_any_schedule";
    seeds::on_seeds(SEEDS, again, traffic);
}

#[test]
fn credit_that_is_granted_twice_is_found() {
    seeds::assert_found(&planted::GRANTS_TWICE, SEEDS_OF_FAULTS, traffic);
}
