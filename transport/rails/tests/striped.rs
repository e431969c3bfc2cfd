//! Several networks as one transport: the kit.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::time::Duration;

use tagwire_base::Rank;
use tagwire_conformance::byte::{Factory, Job};
use tagwire_conformance::network::{MemoryNetwork, MemoryOptions};
use tagwire_conformance::transport_conformance;
use tagwire_conformance::{passed_tiers, run_all};
use tagwire_rails::{Striped, StripedOptions};
use tagwire_transport::fault::{FaultOptions, FaultTransport};
use tagwire_transport::{ByteTransport, Capabilities, Error, Transport};

/// Jobs over so many networks in memory, with faults on the first.
fn over(networks: &'static [fn() -> MemoryOptions], faults: &'static str) -> Factory {
    Factory::new(16, move |size| {
        let networks: Vec<_> = (networks.iter())
            .map(|options| MemoryNetwork::new(size, options()))
            .collect();
        let open = |rank| {
            let rank = Rank::new(rank);
            let mut rails: Vec<Box<dyn ByteTransport>> = Vec::new();
            for network in &networks {
                rails.push(Box::new(network.rank(rank)));
            }
            if !faults.is_empty() {
                let options: FaultOptions = faults.parse().unwrap();
                let first = rails.remove(0);
                rails.insert(0, Box::new(FaultTransport::new(first, rank, options)));
            }
            let options = StripedOptions {
                fragment: 1024,
                disconnect_timeout: Duration::from_secs(5),
                ..StripedOptions::default()
            };
            Box::new(Striped::new(rails, options).unwrap()) as Box<dyn ByteTransport>
        };
        let job = Job::new((0..size).map(open).collect());
        Ok(job.with_kill(move |rank, transport| {
            networks.iter().for_each(|network| network.fail(rank));
            drop(transport);
        }))
    })
}

fn full() -> MemoryOptions {
    MemoryOptions::full()
}

fn short() -> MemoryOptions {
    MemoryOptions {
        slots: 6,
        control_slots: 2,
        max_send: 1000,
        burst: 3,
        ..MemoryOptions::full()
    }
}

transport_conformance!(two_equal, over(&[full, full], ""));
transport_conformance!(three_unequal, over(&[short, full, short], ""));
transport_conformance!(one, over(&[full], ""));
transport_conformance!(
    one_disorderly,
    over(&[full, full], "seed=5,reorder=6,busy=20%")
);

#[test]
fn what_all_offer_is_offered() {
    let tiers = |factory: &Factory| {
        let tiers = passed_tiers(&run_all(factory)).into_iter();
        tiers.map(|tier| tier.name()).collect::<Vec<_>>()
    };
    let all = ["core", "failure", "detection", "wake", "get"];
    assert_eq!(tiers(&over(&[full, full], "")), all);
    let plain = ["core", "failure", "detection", "wake"];
    let unlike = over(&[full, MemoryOptions::default], "");
    assert_eq!(tiers(&unlike), plain);
}

#[test]
fn order_is_offered_over_rails_without() {
    let job = over(&[full, full], "reorder=6");
    let names: Vec<_> = run_all(&job)
        .into_iter()
        .filter(|(check, verdict)| {
            check.name() == "keeps_order_per_peer"
                && *verdict == tagwire_conformance::Verdict::Passed
        })
        .collect();
    assert_eq!(names.len(), 1);
}

#[test]
fn what_cannot_be_striped_is_refused() {
    let network = MemoryNetwork::new(8, MemoryOptions::default());
    let rails = |count| (0..count).map(|rank| Box::new(network.rank(Rank::new(rank))) as _);
    for count in [0, 5] {
        let rails = rails(count).collect();
        let refused = Striped::new(rails, StripedOptions::default());
        assert!(matches!(refused, Err(Error::Unsupported { .. })), "{count}");
    }
}

#[test]
fn a_peer_with_fewer_rails_is_reached_by_the_common_ones() {
    let networks = [(); 2].map(|()| MemoryNetwork::new(2, MemoryOptions::full()));
    let open = |rank, count: usize| {
        let rails = networks[..count].iter();
        let rails = rails.map(|network| Box::new(network.rank(Rank::new(rank))) as _);
        Striped::new(rails.collect(), StripedOptions::default()).unwrap()
    };
    let (mut both, mut one) = (open(0, 2), open(1, 1));
    assert!(both.capabilities().contains(Capabilities::GET));
    both.connect(Rank::new(1), &one.address()).unwrap();
    one.connect(Rank::new(0), &both.address()).unwrap();
    for (transport, rank) in [(&both, "rank 1"), (&one, "rank 0")] {
        let mut text = String::new();
        transport.describe(&mut text);
        let line = text.lines().next().unwrap();
        assert!(line.contains(rank) && line.contains("Some(Open)"), "{line}");
        assert!(!line.contains("Some(Open), Some"), "{line}");
    }
}
