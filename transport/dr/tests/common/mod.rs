//! Ranks under dr, over networks that lose, repeat, reorder and change messages.
#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::expect_used, reason = "a test that panics fails")]

pub mod stream;

use std::time::Duration;

use tagwire_base::bootstrap::LocalJob;
use tagwire_base::{Bootstrap, Clock, Rank};
use tagwire_conformance::seeds;
use tagwire_dr::{Dr, DrOptions};
use tagwire_sim::presets::preset;
use tagwire_sim::{Machine, SimNetwork, SimOptions};
use tagwire_transport::ByteTransport;
use tagwire_transport::fault::{FaultOptions, FaultTransport};
use tagwire_transport::shm::{Shm, ShmOptions};

/// Faults of a network of a quality: each with reordering, and with as many that come twice or changed as the bars say.
pub const QUALITIES: [&str; 4] = [
    "reorder=4,corrupt=0.1%",
    "reorder=4,loss=0.1%,duplicate=0.1%,corrupt=0.1%",
    "reorder=4,loss=1%,duplicate=1%,corrupt=1%",
    "reorder=4,loss=10%,duplicate=10%,corrupt=10%",
];

/// Returns what `spec` says, from a seed.
pub fn faults(spec: &str, seed: u64) -> FaultOptions {
    let text = format!("seed={seed},{spec}");
    text.parse().expect("the specs here are right")
}

/// Returns the options of a simulated machine, two ranks a node. A call that finds nothing takes a twentieth of a time-out, for kits
/// lose patience after thousands.
pub fn machine() -> SimOptions {
    let niagara = preset("niagara").expect("it is there").machine;
    SimOptions {
        machine: Some(Machine {
            ranks_per_node: 2,
            ..niagara
        }),
        poll: Duration::from_micros(50),
        trace: seeds::trace(),
        ..SimOptions::default()
    }
}

/// Returns the options of dr for a rank with `clock`.
pub fn options(clock: Clock) -> DrOptions {
    DrOptions {
        clock,
        ..DrOptions::default()
    }
}

/// Puts faults, and dr above them, around a transport.
pub fn guard(
    inside: Box<dyn ByteTransport>,
    rank: Rank,
    faults: FaultOptions,
    options: DrOptions,
) -> Dr {
    let faulty = FaultTransport::new(inside, rank, faults);
    Dr::new(Box::new(faulty), rank, options).expect("there is room for a header")
}

/// Opens a rank of a simulated network.
pub fn on_sim(network: &SimNetwork, rank: Rank, faults: FaultOptions, first: u32) -> (Dr, Clock) {
    let (inside, clock) = network.open(rank);
    let options = DrOptions {
        first,
        ..options(clock.clone())
    };
    (guard(Box::new(inside), rank, faults, options), clock)
}

/// Opens a rank of a job over shared memory.
///
/// # Errors
/// In words.
pub fn on_shm(job: &LocalJob, rank: Rank, faults: FaultOptions) -> Result<Dr, String> {
    let mut bootstrap = job.member(rank);
    let shm = Shm::open(ShmOptions::default(), &mut bootstrap).map_err(|it| it.to_string())?;
    let options = options(bootstrap.clock());
    let mut shm = shm;
    shm.set_descriptor_source(move |peer| bootstrap.get_descriptor(peer, Duration::from_secs(10)));
    Ok(guard(Box::new(shm), rank, faults, options))
}
