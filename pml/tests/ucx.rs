//! ob1 and cm over the system's UCX, where there is one: by TCP and by shared memory.
#![cfg(not(loom))]

use std::process::Command;
use std::time::Duration;

use tagwire_base::Bootstrap;
use tagwire_pml::conformance::{Factory, MatchJob, MatchRails, RailJob, Rails};
use tagwire_pml::pml_conformance;
use tagwire_transport::{ByteTransport, MatchTransport};
use tagwire_ucx::{Ucx, UcxMatch, UcxOptions};

/// Where the kinds of messages change.
const BOUNDARIES: &[usize] = &[64, 8192, 64 << 10];

/// How long UCX takes to connect two ranks: by TCP, a thread of its own takes part.
fn latency(transports: &str) -> Duration {
    Duration::from_millis(if transports.contains("tcp") { 50 } else { 3 })
}

/// The library's path: a name would find whichever the process has opened before.
fn library() -> Option<String> {
    let output = Command::new("/sbin/ldconfig").arg("-p").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let line = text.lines().find(|line| line.contains("libucp.so.0"))?;
    Some(line.rsplit(' ').next()?.to_owned())
}

fn options(transports: &str) -> Option<UcxOptions> {
    Some(UcxOptions {
        library: Some(library()?),
        transports: Some(transports.to_owned()),
        devices: transports.contains("tcp").then(|| "lo".to_owned()),
        ..UcxOptions::default()
    })
}

fn ob1(transports: &'static str) -> Factory {
    Factory::ob1(move |size, ob1| {
        let options = options(transports).ok_or("SKIPPED: no UCX here")?;
        let rails = Rails::new(move |bootstrap| {
            let rail = Ucx::open(options.clone(), bootstrap as &dyn Bootstrap);
            let rail = rail.map_err(|error| error.to_string())?;
            Ok(Box::new(rail) as Box<dyn ByteTransport>)
        });
        RailJob::open(size, rails, ob1)
    })
    .boundaries(BOUNDARIES)
    .latency(latency(transports))
}

fn cm(transports: &'static str) -> Factory {
    Factory::cm(move |size, budget, cm| {
        let mut options = options(transports).ok_or("SKIPPED: no UCX here")?;
        if let Some(budget) = budget {
            options.unexpected_bytes = budget.payload;
            options.unexpected_messages = budget.headers / 128;
        }
        let rails = MatchRails::new(move |bootstrap| {
            let rail = UcxMatch::open(options.clone(), bootstrap as &dyn Bootstrap);
            let rail = rail.map_err(|error| error.to_string())?;
            Ok(Box::new(rail) as Box<dyn MatchTransport>)
        });
        MatchJob::open(size, rails, cm)
    })
    .all_or_nothing()
    .boundaries(BOUNDARIES)
    .latency(latency(transports))
}

pml_conformance!(ob1_tcp, ob1("tcp,self"));
pml_conformance!(ob1_posix, ob1("posix,cma,self"));
pml_conformance!(cm_tcp, cm("tcp,self"));
pml_conformance!(cm_posix, cm("posix,cma,self"));
