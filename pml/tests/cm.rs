//! cm over the network in memory that matches, in all its ways.
#![cfg(not(loom))]

use tagwire_pml::conformance::{Factory, MatchJob, MatchRails};
use tagwire_pml::pml_conformance;
use tagwire_transport::memory::matching::{MatchNetwork, MatchOptions};
use tagwire_transport::{Directed, MatchTransport};

fn network(options: MatchOptions) -> Factory {
    let short = options.max_short;
    Factory::cm(move |size, budget, cm| {
        let mut options = options.clone();
        if let Some(budget) = budget {
            options.unexpected_bytes = budget.payload;
            options.unexpected_messages = budget.headers / 64;
        }
        let network = MatchNetwork::new(size, options);
        let mortal = network.clone();
        let rails = MatchRails::new(move |bootstrap| {
            let rank = tagwire_base::Bootstrap::rank(bootstrap);
            Ok(Box::new(network.rank(rank)) as Box<dyn MatchTransport>)
        })
        .with_kill(move |rank| mortal.fail(rank));
        MatchJob::open(size, rails, cm)
    })
    .boundaries(&[short, 8192])
}

/// Everything at its smallest, and no room every other time.
fn tight() -> MatchOptions {
    MatchOptions {
        slots: 2,
        max_short: 16,
        burst: 1,
        chunk: 4096,
        busy_every: 2,
        ..MatchOptions::default()
    }
}

pml_conformance!(plain, network(MatchOptions::default()));
pml_conformance!(small_and_busy, network(tight()));
pml_conformance!(
    helping,
    network(MatchOptions {
        helping: true,
        ..MatchOptions::default()
    })
);
pml_conformance!(
    late,
    network(MatchOptions {
        late_answers: true,
        busy_every: 3,
        ..MatchOptions::default()
    })
);
pml_conformance!(
    few_bits,
    network(MatchOptions {
        bits: 0x0000_ffff_ffff_ffff,
        ignorable: Some(0x7fff_ffff),
        directed: Directed::AfterConnect,
        ..MatchOptions::default()
    })
);
pml_conformance!(
    source_in_bits,
    network(MatchOptions {
        bits: 0x000f_ffff_ffff_ffff,
        directed: Directed::InBits,
        helping: true,
        ..MatchOptions::default()
    })
);
