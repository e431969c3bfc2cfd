//! The conformance kit on shared memory with faults in between: what the layers above are tested
//! on is a transport, too.

use std::time::Duration;

use tagwire_base::Rank;
use tagwire_base::bootstrap::{Bootstrap, LocalJob};
use tagwire_conformance::byte::{Factory, Job};
use tagwire_conformance::transport_conformance;
use tagwire_transport::ByteTransport;
use tagwire_transport::fault::{FaultOptions, FaultTransport};
use tagwire_transport::shm::{Shm, ShmOptions};

fn open(
    job: &LocalJob,
    rank: Rank,
    faults: &FaultOptions,
) -> Result<Box<dyn ByteTransport>, String> {
    let mut bootstrap = job.member(rank);
    let mut shm = Shm::open(ShmOptions::default(), &mut bootstrap).map_err(|e| e.to_string())?;
    shm.set_descriptor_source(move |peer| bootstrap.get_descriptor(peer, Duration::from_secs(10)));
    let faulty = FaultTransport::new(Box::new(shm), rank, faults.clone());
    Ok(Box::new(faulty))
}

fn factory(spec: &str) -> Factory {
    let faults: FaultOptions = spec.parse().expect("the specs here are right");
    Factory::new(16, move |size| {
        let job = LocalJob::new(size).map_err(|error| error.to_string())?;
        (0..size)
            .map(|rank| open(&job, Rank::new(rank), &faults))
            .collect::<Result<_, _>>()
            .map(Job::new)
    })
}

transport_conformance!(with_delays, factory("seed=1,delay=0..8"));
transport_conformance!(with_reordering, factory("seed=2,reorder=4"));
transport_conformance!(
    with_everything,
    factory("seed=3,delay=1..5,reorder=8,busy=25%")
);
