//! ob1 over several networks as one.
#![cfg(not(loom))]

mod common;

use std::time::Duration;

use common::{ofi_options, reading};
use tagwire_base::Bootstrap;
use tagwire_conformance::network::MemoryNetwork;
use tagwire_conformance::pml::{Factory, RailJob, Rails, Tier};
use tagwire_conformance::pml_conformance;
use tagwire_ofi::{Ofi, OfiOptions};
use tagwire_rails::{Striped, StripedOptions};
use tagwire_transport::ByteTransport;
use tagwire_transport::fault::FaultTransport;

/// Checks that no network passes whose ranks are driven by one thread, see `ofi.rs`.
const ONE_THREAD: &[&str] = &[
    "a_close_past_its_deadline_names_what_is_open",
    "those_who_left_are_no_failures",
];

fn stripe(rails: Vec<Box<dyn ByteTransport>>) -> Result<Box<dyn ByteTransport>, String> {
    let options = StripedOptions {
        fragment: 4096,
        // Ranks of one thread cannot hear each other out.
        disconnect_timeout: Duration::from_millis(1),
        ..StripedOptions::default()
    };
    let striped = Striped::new(rails, options).map_err(|error| error.to_string())?;
    Ok(Box::new(striped))
}

fn over(options: OfiOptions) -> Factory {
    Factory::ob1(move |size, ob1| {
        let options = options.clone();
        let rails = Rails::new(move |bootstrap| {
            let mut rails: Vec<Box<dyn ByteTransport>> = Vec::new();
            for source in ["127.0.0.1", "127.0.0.2"] {
                let options = OfiOptions {
                    source: source.to_owned(),
                    ..options.clone()
                };
                let rail = Ofi::open(&options, bootstrap).map_err(|error| error.to_string())?;
                rails.push(Box::new(rail));
            }
            stripe(rails)
        });
        RailJob::open(size, rails, ob1)
    })
    .boundaries(&[200, 16 * 1024 - 56])
    .latency(Duration::from_millis(20))
}

/// Over two networks in memory, of which one lets messages overtake each other.
fn in_memory() -> Factory {
    Factory::ob1(|size, ob1| {
        let networks = [(); 2].map(|()| MemoryNetwork::new(size, reading()));
        let rails = Rails::new(move |bootstrap| {
            let rank = bootstrap.rank();
            let [first, second] = networks
                .each_ref()
                .map(|network| Box::new(network.rank(rank)) as Box<dyn ByteTransport>);
            let faults = "seed=3,reorder=4".parse().map_err(|_| "the faults")?;
            let first = Box::new(FaultTransport::new(first, rank, faults));
            stripe(vec![first, second])
        });
        RailJob::open(size, rails, ob1)
    })
    .boundaries(&[24, 8192 - 16])
    // What is held back is let go by progress alone: it wakes nobody.
    .without(Tier::Wake)
}

pml_conformance!(ob1_memory, in_memory());

/// The suite, over two addresses of `tcp` of 2.x; it says so loudly where that is not there.
mod ob1 {
    use super::*;

    fn check(name: &str) {
        if ONE_THREAD.contains(&name) {
            println!("SKIPPED: no network has means for this");
            return;
        }
        if let Some(options) = ofi_options(true, "tcp") {
            tagwire_conformance::assert_check(name, &over(options).tried(3));
        }
    }

    pml_conformance!(@for_each tests);
}
