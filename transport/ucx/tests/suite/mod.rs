//! The conformance kits on UCX: each test file runs them on one version of the library, since a
//! process can have only one (their parts find each other by name).

use tagwire_base::Rank;
use tagwire_base::bootstrap::LocalJob;
use tagwire_transport::ByteTransport;
use tagwire_transport::conformance::{Factory, Job};
use tagwire_ucx::{Ucx, UcxOptions};

use super::library;

const MOST_RANKS: u32 = 8;

/// Options for `transports` over the loopback device; nothing where there is no library.
pub fn options(transports: &str) -> Option<UcxOptions> {
    let library = library()?;
    Some(UcxOptions {
        library: Some(library),
        transports: Some(transports.to_owned()),
        devices: transports.contains("tcp").then(|| "lo".to_owned()),
        ..UcxOptions::default()
    })
}

/// Jobs of ranks that share this process. A rank that is killed closes its connections without a
/// word, as the system does for a process.
pub fn factory(transports: &'static str) -> Factory {
    Factory::new(MOST_RANKS, move |size| {
        let options = options(transports).ok_or("no library")?;
        let job = LocalJob::new(size).map_err(|error| error.to_string())?;
        let open = |rank| -> Result<Box<dyn ByteTransport>, String> {
            let bootstrap = job.member(Rank::new(rank));
            let transport = Ucx::open(options.clone(), &bootstrap);
            Ok(Box::new(transport.map_err(|error| error.to_string())?))
        };
        Ok(Job::new((0..size).map(open).collect::<Result<_, _>>()?))
    })
}
