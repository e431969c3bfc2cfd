//! The conformance kit for matching transports on the network in memory, in all its ways.

use std::time::Duration;

use tagwire_base::Rank;
use tagwire_conformance::match_conformance;
use tagwire_conformance::matching::{Factory, Job};
use tagwire_conformance::network::matching::{MatchNetwork, MatchOptions};
use tagwire_conformance::network::{MemoryNetwork, MemoryOptions, Schedule};
use tagwire_conformance::seeds;
use tagwire_transport::MatchTransport;

fn network(options: MatchOptions) -> Factory {
    over(options, MatchNetwork::new)
}

/// Messages travel in virtual time, and all come late.
fn in_time(options: MatchOptions) -> Factory {
    let network = MemoryOptions {
        machine: Some(seeds::machine(2)),
        schedule: Schedule {
            seed: 5,
            shuffle: true,
            delay: Duration::from_micros(10),
            ..Schedule::default()
        },
        ..MemoryOptions::default()
    };
    over(options, move |size, options| {
        MatchNetwork::on(&MemoryNetwork::new(size, network.clone()), options)
    })
}

fn over(
    options: MatchOptions,
    network: impl Fn(u32, MatchOptions) -> MatchNetwork + 'static,
) -> Factory {
    let short = options.max_short;
    Factory::new(8, move |size, wanted| {
        let options = MatchOptions {
            unexpected_bytes: wanted.unexpected_bytes,
            unexpected_messages: wanted.unexpected_messages,
            ..options.clone()
        };
        let network = network(size, options);
        let open = |rank| Box::new(network.rank(rank)) as Box<dyn MatchTransport>;
        let ranks = (0..size).map(Rank::new).map(open).collect();
        Ok(Job::new(ranks).with_kill(move |rank, transport| {
            network.fail(rank);
            drop(transport);
        }))
    })
    .boundaries(&[short])
}

/// Everything at its smallest.
fn tight() -> MatchOptions {
    MatchOptions {
        slots: 2,
        max_short: 16,
        burst: 1,
        chunk: 4096,
        ..MatchOptions::default()
    }
}

/// As few bits as shared memory has, wildcards for the tag or not at all.
fn narrow() -> MatchOptions {
    MatchOptions {
        bits: 0x0000_ffff_ffff_ffff,
        ignorable: Some(0x7fff_ffff),
        ..MatchOptions::default()
    }
}

match_conformance!(plain, network(MatchOptions::default()));
match_conformance!(small, network(tight()));
match_conformance!(few_bits, network(narrow()));
match_conformance!(
    helping,
    network(MatchOptions {
        helping: true,
        ..MatchOptions::default()
    })
);
match_conformance!(
    late,
    network(MatchOptions {
        late_answers: true,
        busy_every: 3,
        ..tight()
    })
);

match_conformance!(in_virtual_time, in_time(MatchOptions::default()));
match_conformance!(
    matched_by_the_network,
    in_time(MatchOptions {
        helping: true,
        ..tight()
    })
);
match_conformance!(
    dropped_by_the_network,
    in_time(MatchOptions {
        helping: true,
        drops: true,
        ..tight()
    })
);
