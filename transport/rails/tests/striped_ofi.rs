//! Two networks of libfabric as one: the kit over `tcp;ofi_rxm` on two addresses of this machine.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tagwire_base::bootstrap::{LocalJob, SharedBootstrap};
use tagwire_base::{Config, Rank, Registry};
use tagwire_conformance::byte::Tier::{Core, Failure, Get, Wake};
use tagwire_conformance::byte::{Factory, Job};
use tagwire_conformance::transport_conformance;
use tagwire_conformance::{assert_check, tiers};
use tagwire_ofi::{Ofi, OfiOptions};
use tagwire_rails::{Striped, StripedOptions};
use tagwire_transport::ByteTransport;

const PROVIDER: &str = "tcp;ofi_rxm";

/// Why the provider cannot be had here, said once.
fn missing() -> Option<&'static str> {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    let missing = MISSING.get_or_init(|| {
        let options = OfiOptions {
            provider: PROVIDER.to_owned(),
            ..OfiOptions::default()
        };
        let survey = tagwire_ofi::survey(&options);
        survey.missing.clone().or_else(|| survey.why_not(PROVIDER))
    });
    missing.as_deref()
}

/// Jobs of ranks with a rail on each of two addresses.
fn factory() -> Factory {
    Factory::new(8, |size| {
        let job = LocalJob::new(size).map_err(|error| error.to_string())?;
        let mut silent: Vec<Arc<AtomicBool>> = Vec::new();
        let mut ranks = Vec::new();
        for rank in 0..size {
            let is_silent = Arc::new(AtomicBool::new(false));
            let rail = |source: &str| {
                let options = OfiOptions {
                    provider: PROVIDER.to_owned(),
                    source: source.to_owned(),
                    silent: Arc::clone(&is_silent),
                    ..OfiOptions::default()
                };
                let opened = Ofi::open(&options, &job.member(Rank::new(rank)));
                let boxed = |ofi| Box::new(ofi) as Box<dyn ByteTransport>;
                opened.map(boxed).map_err(|error| error.to_string())
            };
            let rails = vec![rail("127.0.0.1")?, rail("127.0.0.2")?];
            let options = StripedOptions {
                fragment: 4096,
                disconnect_timeout: Duration::from_secs(1),
                ..StripedOptions::default()
            };
            let striped = Striped::new(rails, options).map_err(|error| error.to_string())?;
            ranks.push(Box::new(striped) as Box<dyn ByteTransport>);
            silent.push(is_silent);
        }
        Ok(Job::new(ranks).with_kill(move |rank, transport| {
            silent[rank.index()].store(true, Ordering::Relaxed);
            drop(transport);
        }))
    })
}

mod kit {
    use super::*;

    fn check(name: &str) {
        if let Some(reason) = missing() {
            println!("SKIPPED: no {PROVIDER} here: {reason}");
            return;
        }
        // Where a peer closes its connection with something unread, its goodbye is lost with it.
        if name == "says_goodbye_after_the_last_message" {
            println!("SKIPPED: {PROVIDER} loses goodbyes, see docs/fabrics.md");
            return;
        }
        assert_check(name, &factory());
    }

    transport_conformance!(@for_each tests);
}

#[test]
fn what_is_offered() {
    match missing() {
        None => assert_eq!(tiers(&factory()).unwrap(), [Core, Failure, Wake, Get]),
        Some(reason) => println!("SKIPPED: no {PROVIDER} here: {reason}"),
    }
}

fn open(transport: &str) -> Result<Box<dyn ByteTransport>, String> {
    let lists: Vec<_> = tagwire_rails::settings().collect();
    let mut config = Config::defaults(&Registry::new(&lists));
    config.set("transport", transport).unwrap();
    let job = LocalJob::new(1).unwrap();
    let bootstrap = SharedBootstrap::new(Box::new(job.member(Rank::new(0))));
    tagwire_rails::open(&config, &bootstrap).map_err(|error| error.to_string())
}

#[test]
fn settings_name_rails() {
    if let Some(reason) = missing() {
        println!("SKIPPED: no {PROVIDER} here: {reason}");
        return;
    }
    let [one, two] = ["127.0.0.1", "127.0.0.2"].map(|at| format!("ofi:{PROVIDER}@{at}"));
    let name = |transport: String| open(&transport).unwrap().name();
    assert_eq!(name(one.clone()), "ofi");
    assert_eq!(name(format!("{one}+{two}")), "striped");
    assert_eq!(name(format!("shm+{one}")), "mixed");
    assert_eq!(name(format!("shm+{one}+{two}")), "mixed");
    // It is said which one cannot be opened: no interface here has that address.
    let error = open(&format!("{one}+ofi:{PROVIDER}@203.0.113.9"))
        .err()
        .unwrap();
    assert!(error.contains("@203.0.113.9"), "{error}");
    let error = open(&format!("{one}+ofi:nonsense")).err().unwrap();
    assert!(error.contains("ofi:nonsense"), "{error}");
}
