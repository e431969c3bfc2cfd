//! The conformance kits on UCX: each test file runs them on one version of the library, since a
//! process can have only one (the parts of UCX find each other by name).

#![allow(dead_code, reason = "each test file uses its part")]

#[path = "../../../../cli/src/info/conformance.rs"]
pub mod published;
pub mod writes;

use tagwire_base::Rank;
use tagwire_base::bootstrap::LocalJob;
use tagwire_conformance::byte::{Factory, Job, Tier};
use tagwire_conformance::matching;
use tagwire_conformance::tiers;
use tagwire_transport::{ByteTransport, MatchTransport};
use tagwire_ucx::{Ucx, UcxMatch, UcxOptions};

const MOST_RANKS: u32 = 8;

/// The system's library, where there is one, by its path: a name would find whichever the process
/// has opened before.
pub fn system() -> Option<String> {
    let output = std::process::Command::new("/sbin/ldconfig")
        .arg("-p")
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let line = text.lines().find(|line| line.contains("libucp.so.0"))?;
    Some(line.rsplit(' ').next()?.to_owned())
}

/// Options for `transports`, over the loopback device where they are TCP.
pub fn options(library: &str, transports: &str) -> UcxOptions {
    UcxOptions {
        library: Some(library.to_owned()),
        transports: Some(transports.to_owned()),
        devices: transports.starts_with("tcp").then(|| "lo".to_owned()),
        ..UcxOptions::default()
    }
}

/// Jobs of ranks that share this process. A rank that is killed closes its connections without a
/// word, as the system does for a process.
pub fn factory(library: Option<String>, transports: &'static str) -> Factory {
    let Some(library) = library else {
        return Factory::absent("this version of UCX is not installed");
    };
    let options = options(&library, transports);
    Factory::new(MOST_RANKS, move |size| {
        let job = LocalJob::new(size).map_err(|error| error.to_string())?;
        let open = |rank| -> Result<Box<dyn ByteTransport>, String> {
            let transport = Ucx::open(options.clone(), &job.member(Rank::new(rank)));
            Ok(Box::new(transport.map_err(|error| error.to_string())?))
        };
        let ranks: Result<_, _> = (0..size).map(open).collect();
        Ok(Job::new(ranks?).with_kill(|_, transport| drop(transport)))
    })
}

/// The same for matching. UCX itself keeps unexpected messages without bound: what is bounded is
/// what senders may take for done.
pub fn match_factory(library: Option<String>, transports: &'static str) -> matching::Factory {
    let Some(library) = library else {
        return matching::Factory::absent("this version of UCX is not installed");
    };
    let options = options(&library, transports);
    matching::Factory::new(MOST_RANKS, move |size, wanted| {
        let options = UcxOptions {
            unexpected_bytes: wanted.unexpected_bytes,
            unexpected_messages: wanted.unexpected_messages,
            ..options.clone()
        };
        let job = LocalJob::new(size).map_err(|error| error.to_string())?;
        let open = |rank| -> Result<Box<dyn MatchTransport>, String> {
            let transport = UcxMatch::open(options.clone(), &job.member(Rank::new(rank)));
            Ok(Box::new(transport.map_err(|error| error.to_string())?))
        };
        let ranks: Result<_, _> = (0..size).map(open).collect();
        Ok(matching::Job::new(ranks?).with_kill(|_, transport| drop(transport)))
    })
}

/// Compares what transports offer with what `tagwire info` publishes of them.
pub fn expect_published(name: &str, library: impl Fn() -> Option<String>) {
    for published in published::UCX.iter().filter(|one| one.library == name) {
        let offered = tiers(&factory(library(), published.detail)).unwrap();
        let offered: Vec<_> = offered.into_iter().map(Tier::name).collect();
        assert_eq!(offered, published.tiers, "{}", published.detail);
    }
}
