//! The conformance kit on the transports that need nothing from the machine, and on those with
//! faults in between.

use tagwire_base::Rank;
use tagwire_conformance::byte::{Factory, Job, Tier};
use tagwire_conformance::network::{MemoryNetwork, MemoryOptions};
use tagwire_conformance::tiers;
use tagwire_conformance::transport_conformance;
use tagwire_transport::ByteTransport;
use tagwire_transport::fault::{FaultOptions, FaultTransport};
use tagwire_transport::null::{NullOptions, NullTransport};

const MOST_RANKS: u32 = 16;

fn null() -> Factory {
    Factory::new(1, |_| {
        let transport = NullTransport::new(Rank::new(0), NullOptions::default());
        Ok(Job::new(vec![Box::new(transport)]))
    })
}

/// Ranks of a memory network, each with faults when `faults` says so.
fn network(options: MemoryOptions, faults: Option<&str>) -> Factory {
    let faults: Option<FaultOptions> =
        faults.map(|spec| spec.parse().expect("the specs here are right"));
    Factory::new(MOST_RANKS, move |size| {
        let network = MemoryNetwork::new(size, options.clone());
        let open = |number| -> Box<dyn ByteTransport> {
            let rank = Rank::new(number);
            let plain = Box::new(network.rank(rank));
            match &faults {
                Some(faults) => Box::new(FaultTransport::new(plain, rank, faults.clone())),
                None => plain,
            }
        };
        let ranks = (0..size).map(open).collect();
        Ok(Job::new(ranks).with_kill(move |rank, transport| {
            network.fail(rank);
            drop(transport);
        }))
    })
}

fn plain() -> MemoryOptions {
    MemoryOptions::default()
}

/// Everything at its smallest, so that each bound is met.
fn tight() -> MemoryOptions {
    MemoryOptions {
        slots: 2,
        control_slots: 1,
        max_send: 64,
        burst: 1,
        chunk: 4096,
        max_offers: 1,
        ..MemoryOptions::full()
    }
}

transport_conformance!(on_null, null());
transport_conformance!(on_memory, network(plain(), None));
transport_conformance!(on_full_memory, network(MemoryOptions::full(), None));
transport_conformance!(on_tight_memory, network(tight(), None));
transport_conformance!(
    with_delays,
    network(MemoryOptions::full(), Some("seed=1,delay=0..8"))
);
transport_conformance!(
    with_reordering,
    network(MemoryOptions::full(), Some("seed=2,reorder=4"))
);
transport_conformance!(
    with_busy_verbs,
    network(MemoryOptions::full(), Some("seed=3,busy=40%"))
);
transport_conformance!(
    with_everything,
    network(tight(), Some("seed=4,delay=1..5,reorder=8,busy=25%"))
);

/// No tier passes by not being claimed.
#[test]
fn each_transport_offers_what_it_should() {
    use Tier::{Cooperative, Core, Detection, Failure, Get, Notice, Put, Wake};
    assert_eq!(tiers(&null()).unwrap(), [Core, Wake, Put, Get, Notice]);
    assert_eq!(
        tiers(&network(plain(), None)).unwrap(),
        [Core, Failure, Detection, Wake]
    );
    let full = [
        Core,
        Failure,
        Detection,
        Cooperative,
        Wake,
        Put,
        Get,
        Notice,
    ];
    assert_eq!(tiers(&network(MemoryOptions::full(), None)).unwrap(), full);
    assert_eq!(tiers(&network(tight(), Some("reorder=4"))).unwrap(), full);
}
