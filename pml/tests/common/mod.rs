//! The pairs that the conformance suite runs on.
#![allow(dead_code)]

#[path = "../../../cli/src/info/conformance.rs"]
pub mod published;
#[path = "../../../ci/wheels.rs"]
mod wheels;

use std::process::Command;

use tagwire_base::Bootstrap;
use tagwire_conformance::network::MemoryOptions;
use tagwire_conformance::pml::{Factory, MatchJob, MatchRails, MemoryJob, RailJob, Rails, Tier};
use tagwire_dr::{Dr, DrOptions};
use tagwire_ofi::OfiOptions;
use tagwire_pml::ob1::Ob1Options;
use tagwire_transport::fault::FaultOptions;
use tagwire_transport::shm::{CrossAttach, Shm, ShmMatch, ShmOptions};
use tagwire_transport::{ByteTransport, MatchTransport};

/// Few slots, little in them.
pub fn tiny() -> MemoryOptions {
    MemoryOptions {
        slots: 4,
        control_slots: 1,
        max_send: 64,
        chunk: 1000,
        max_offers: 2,
        ..MemoryOptions::full()
    }
}

/// Peers read long messages out of their sender's memory.
pub fn reading() -> MemoryOptions {
    MemoryOptions {
        get: true,
        ..MemoryOptions::default()
    }
}

/// Senders write long messages into their peer's memory.
pub fn writing() -> MemoryOptions {
    MemoryOptions {
        put: true,
        ..MemoryOptions::default()
    }
}

fn with_engine(engine: &str, options: Ob1Options) -> Ob1Options {
    Ob1Options {
        engine: engine.to_owned(),
        ..options
    }
}

fn faults(text: &str) -> Option<FaultOptions> {
    (!text.is_empty()).then(|| text.parse().expect("the test's faults can be parsed"))
}

/// What is held back is let go by progress alone: it wakes nobody.
fn with_claims(factory: Factory, faults: &str) -> Factory {
    if faults.is_empty() {
        factory
    } else {
        factory.without(Tier::Wake)
    }
}

/// ob1 over the network in memory.
pub fn memory(engine: &'static str, network: MemoryOptions, text: &'static str) -> Factory {
    let packet = network.max_send;
    let factory = Factory::ob1(move |size, options| {
        let options = with_engine(engine, options);
        MemoryJob::open_with_faults(size, network.clone(), faults(text), options)
    })
    .boundaries(&[32, packet.min(4096), 16 << 10]);
    with_claims(factory, text)
}

/// The same with short messages that wait for each other.
pub fn coalescing(network: MemoryOptions, text: &'static str) -> Factory {
    let factory = Factory::ob1(move |size, options| {
        let options = Ob1Options {
            coalesce: Some(Ob1Options::COALESCE),
            ..options
        };
        MemoryJob::open_with_faults(size, network.clone(), faults(text), options)
    });
    with_claims(factory, text)
}

/// ob1 over shared memory.
pub fn shm(engine: &'static str, cross_attach: CrossAttach, text: &'static str) -> Factory {
    let factory = Factory::ob1(move |size, options| {
        let shm = ShmOptions {
            cross_attach,
            ..ShmOptions::default()
        };
        let rails = Rails::new(move |bootstrap| {
            let rail = Shm::open(shm.clone(), bootstrap as &mut dyn Bootstrap);
            match rail {
                Ok(rail) => Ok(Box::new(rail) as Box<dyn ByteTransport>),
                Err(error) => Err(error.to_string()),
            }
        })
        .with_faults(faults(text));
        RailJob::open(size, rails, with_engine(engine, options))
    });
    with_claims(factory, text)
}

/// ob1 under data reliability over shared memory.
pub fn shm_dr() -> Factory {
    Factory::ob1(move |size, options| {
        let rails = Rails::new(move |bootstrap| {
            let dr = DrOptions {
                clock: bootstrap.clock(),
                ..DrOptions::default()
            };
            let rank = bootstrap.rank();
            let shm = Shm::open(ShmOptions::default(), bootstrap as &mut dyn Bootstrap);
            let dr = shm.and_then(|shm| Dr::new(Box::new(shm), rank, dr));
            match dr {
                Ok(rail) => Ok(Box::new(rail) as Box<dyn ByteTransport>),
                Err(error) => Err(error.to_string()),
            }
        });
        RailJob::open(size, rails, options)
    })
}

/// ob1 over shared memory, where the numbers of messages and the places in rings wrap early.
pub fn shm_that_wraps(text: &'static str) -> Factory {
    let factory = Factory::ob1(move |size, options| {
        let shm = wrapping_shm();
        let rails = Rails::new(move |bootstrap| {
            match Shm::open(shm.clone(), bootstrap as &mut dyn Bootstrap) {
                Ok(rail) => Ok(Box::new(rail) as Box<dyn ByteTransport>),
                Err(error) => Err(error.to_string()),
            }
        })
        .with_faults(faults(text));
        RailJob::open(size, rails, wrapping(options))
    });
    with_claims(factory, text)
}

/// Rings that wrap within the first messages.
pub fn wrapping_shm() -> ShmOptions {
    ShmOptions {
        first_slot: u32::MAX - 5,
        ..ShmOptions::default()
    }
}

/// Numbers of messages that wrap within the first ones.
fn wrapping(options: Ob1Options) -> Ob1Options {
    Ob1Options {
        first_sequence: u32::MAX - 3,
        ..options
    }
}

/// ob1 over the network in memory, where the numbers of messages wrap early.
pub fn memory_that_wraps(text: &'static str) -> Factory {
    let factory = Factory::ob1(move |size, options| {
        let network = MemoryOptions::default();
        MemoryJob::open_with_faults(size, network, faults(text), wrapping(options))
    });
    with_claims(factory, text)
}

/// cm over shared memory.
pub fn shm_matching(options: ShmOptions) -> Factory {
    Factory::cm(move |size, budget, cm| {
        let mut options = options.clone();
        if let Some(budget) = budget {
            options.overflow = budget.payload.min(options.overflow);
            options.headers = (budget.headers / 128).min(options.headers);
        }
        let rails = MatchRails::new(move |bootstrap| {
            match ShmMatch::open(options.clone(), bootstrap as &mut dyn Bootstrap) {
                Ok(rail) => Ok(Box::new(rail) as Box<dyn MatchTransport>),
                Err(error) => Err(error.to_string()),
            }
        });
        MatchJob::open(size, rails, cm)
    })
    .boundaries(&[16, 40, 8192])
}

/// Returns the path of a library of a Python wheel.
pub fn wheel(package: &str, file: &str) -> Option<String> {
    let file = wheels::wheel(package, file)?;
    file.into_os_string().into_string().ok()
}

/// Returns the path of a library of the system: a name would find whichever the process has opened before.
pub fn of_system(file: &str) -> Option<String> {
    let output = Command::new("/sbin/ldconfig").arg("-p").output().ok()?;
    let all = String::from_utf8(output.stdout).ok()?;
    let line = all.lines().find(|line| line.contains(file))?;
    Some(line.rsplit(' ').next()?.to_owned())
}

/// What to open for a provider of libfabric, on the loopback interface where it is a network of the
/// system; `None`, said loudly, where it is not on this machine. Of 2.x where `newer`, which is inside of
/// the wheel mpich (`ci/peers`).
pub fn ofi_options(newer: bool, provider: &str) -> Option<OfiOptions> {
    let library = if newer {
        wheel("mpich", "libfabric.so.1")
    } else {
        of_system("libfabric.so.1")
    };
    let library = library.unwrap_or_default();
    let has_address = !provider.contains("shm") && !provider.contains("verbs");
    let source = if has_address { "127.0.0.1" } else { "" };
    let options = OfiOptions {
        library,
        provider: provider.to_owned(),
        source: source.to_owned(),
        ..OfiOptions::default()
    };
    let why = if options.library.is_empty() {
        Some("the library is not there".to_owned())
    } else {
        tagwire_ofi::survey(&options).why_not(provider)
    };
    match why {
        None => Some(options),
        Some(why) => {
            println!("SKIPPED: no {provider} here: {why}");
            None
        }
    }
}
