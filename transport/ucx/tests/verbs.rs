//! The conformance kits on the system's UCX over RDMA devices, where there are any: `tests/verbs/run`
//! brings this program to a guest that has one in software.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod suite;

use suite::{factory, match_factory, published, system};
use tagwire_conformance::byte::Factory;
use tagwire_conformance::matching;
use tagwire_conformance::{match_conformance, transport_conformance};
use tagwire_ucx::UcxOptions;

/// Reliable connections, made by way of TCP. Unreliable datagrams are left to benchmarks.
const CONNECTED: &str = "rc_verbs,tcp,self";

/// Why there is no RDMA device for UCX here.
fn why_not() -> Option<String> {
    let Some(library) = system() else {
        return Some("this version of UCX is not installed".to_owned());
    };
    let seen = tagwire_ucx::survey(&UcxOptions {
        library: Some(library),
        ..UcxOptions::default()
    });
    let mut offers = seen.transports.into_iter();
    offers.find(|offer| offer.name == "rc_verbs")?.why_not
}

fn bytes() -> Factory {
    match why_not() {
        None => factory(system(), CONNECTED),
        Some(why) => Factory::absent(why),
    }
}

mod rc {
    use super::*;

    fn check(name: &str) {
        if published::CLOSED_EARLY.contains(&name) {
            println!("SKIPPED: UCX crashes now and then");
            return;
        }
        tagwire_conformance::assert_check(name, &bytes());
    }

    transport_conformance!(@for_each tests);
}

mod match_rc {
    use super::*;

    fn check(name: &str) {
        if published::MANY_JOBS.contains(&name) {
            println!("SKIPPED: under emulation it takes too long");
            return;
        }
        let factory = match why_not() {
            None => match_factory(system(), CONNECTED),
            Some(why) => matching::Factory::absent(why),
        };
        tagwire_conformance::assert_check(name, &factory);
    }

    match_conformance!(@for_each tests);
}

/// No tier passes by not being claimed.
#[test]
fn each_transport_offers_what_it_should() {
    if let Some(why) = why_not() {
        println!("SKIPPED: {why}");
        return;
    }
    suite::expect_published(published::SOFTWARE_UCX, system);
}
