//! Datagrams of libfabric's `udp` on the loopback interface: under data reliability, which the setting `reliability` puts around
//! them, the kit of transports passes.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::sync::OnceLock;

use tagwire_base::bootstrap::{LocalJob, SharedBootstrap};
use tagwire_base::{Config, Rank, Registry};
use tagwire_conformance::byte::{Factory, Job};
use tagwire_conformance::{assert_check, transport_conformance};
use tagwire_transport::{ByteTransport, Capabilities};

/// One address of this machine, and the provider's datagrams there.
const TRANSPORT: &str = "ofi:udp;datagram@127.0.0.1";

/// Checks of what datagrams do not do: what the dead have sent last may be lost, and nobody sends it again; a death is found by
/// what is not acknowledged, after `dr-timeout`, or told by the launcher; nothing but a goodbye says that an object is gone.
const LEFT_OUT: &[&str] = &["last_words_are_delivered", "who_says_no_goodbye_has_failed"];

fn config(settings: &[(&str, &str)]) -> Config {
    let lists: Vec<_> = tagwire_rails::settings().collect();
    let mut config = Config::defaults(&Registry::new(&lists));
    for (name, value) in settings {
        config.set(name, value).unwrap();
    }
    config
}

fn open(config: &Config, job: &LocalJob, rank: u32) -> Result<Box<dyn ByteTransport>, String> {
    let bootstrap = SharedBootstrap::new(Box::new(job.member(Rank::new(rank))));
    tagwire_rails::open(config, &bootstrap).map_err(|error| error.to_string())
}

/// Why the provider cannot be had here, said once.
fn missing() -> Option<&'static str> {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    let missing = MISSING.get_or_init(|| {
        let job = LocalJob::new(1).unwrap();
        open(&config(&[("transport", TRANSPORT)]), &job, 0).err()
    });
    missing.as_deref()
}

fn factory(faults: &'static str) -> Factory {
    Factory::new(8, move |size| {
        let config = config(&[("transport", TRANSPORT), ("fault", faults)]);
        let job = LocalJob::new(size).map_err(|error| error.to_string())?;
        let ranks: Result<Vec<_>, String> =
            (0..size).map(|rank| open(&config, &job, rank)).collect();
        ranks.map(Job::new)
    })
}

fn check(name: &str, faults: &'static str) {
    if let Some(reason) = missing() {
        println!("SKIPPED: no {TRANSPORT} here: {reason}");
    } else if !LEFT_OUT.contains(&name) {
        assert_check(name, &factory(faults));
    }
}

mod kit {
    fn check(name: &str) {
        super::check(name, "");
    }

    use super::*;
    transport_conformance!(@for_each tests);
}

mod kit_with_losses {
    fn check(name: &str) {
        super::check(name, "seed=1,loss=1%,duplicate=1%,corrupt=1%,reorder=4");
    }

    use super::*;
    transport_conformance!(@for_each tests);
}

#[test]
fn datagrams_are_one_packet_of_the_network_each() {
    if let Some(reason) = missing() {
        println!("SKIPPED: no {TRANSPORT} here: {reason}");
        return;
    }
    let job = LocalJob::new(1).unwrap();
    let dr = open(&config(&[("transport", TRANSPORT)]), &job, 0).unwrap();
    assert_eq!(dr.name(), "dr");
    assert!(
        dr.capabilities()
            .contains(Capabilities::RELIABLE | Capabilities::ORDERED)
    );
    let most = dr.limits().max_send;
    assert!((1000..1500).contains(&most), "{most}");
}
