//! Layers over the transports of libraries: a pair is a line in the test file of its library, since
//! a process can have one version only, and one in what `tagwire info` publishes.
#![allow(dead_code, unsafe_code)]

use std::sync::Arc;
use std::time::Duration;

use tagwire_base::{Bootstrap, ContextId, Rank, Tag};
use tagwire_conformance::assert_check;
use tagwire_conformance::pml::{Factory, MatchJob, MatchRails, RailJob, Rails, Setup};
use tagwire_ofi::{Ofi, OfiMatch, OfiOptions};
use tagwire_pml::{PartitionedRecv, PartitionedSend, Policy, ThreadLevel, WaitPolicy};
use tagwire_transport::{ByteTransport, MatchTransport, RecvBuffer, SendBuffer};
use tagwire_ucx::{Ucx, UcxMatch, UcxOptions};

use super::common::published::{self, FabricPair};
use super::common::{of_system, ofi_options, wheel};

/// How long a test waits.
const PATIENCE: Duration = Duration::from_secs(60);

/// The tests of a pair: `for_each` check of the suite, or those of the `selection` alone.
#[macro_export]
macro_rules! pair {
    ($name:ident: $checks:ident, $layer:literal, $transport:literal, $library:ident) => {
        mod $name {
            use $crate::common::published::$library;

            fn check(name: &str) {
                $crate::fabrics::check($layer, $transport, $library, name);
            }

            tagwire_conformance::pml_conformance!(@$checks tests);

            #[test]
            fn what_runs_is_published() {
                let run = tagwire_conformance::pml_conformance!(@$checks names);
                $crate::fabrics::expect_published($layer, $transport, $library, &run);
            }
        }
    };
}

/// Runs a check on a pair, but for those that `tagwire info` publishes as skipped; it says so loudly
/// where the library or the transport is not there.
pub fn check(layer: &str, transport: &str, library: &str, name: &str) {
    let pair = published_pair(layer, transport, library);
    if pair.but.contains(&name) {
        println!("SKIPPED: {transport} has no means for this");
        return;
    }
    if let Some(factory) = factory(pair) {
        assert_check(name, &factory);
    }
}

/// Checks that the tests of a pair are those that are published.
pub fn expect_published(layer: &str, transport: &str, library: &str, run: &[&str]) {
    let whole = tagwire_conformance::pml_conformance!(@for_each names);
    let only = published_pair(layer, transport, library).only;
    assert_eq!(run, only.unwrap_or(&whole));
}

/// Checks that partitions of a pair are written into their receiver's memory; it says so loudly where the library or the
/// transport is not there.
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
pub fn expect_written(layer: &str, transport: &str, library: &str) {
    let Some(factory) = factory(published_pair(layer, transport, library)) else {
        return;
    };
    let job = factory.job(2, &Setup::default()).unwrap();
    std::thread::scope(|scope| {
        for rank in [0, 1] {
            let job = Arc::clone(&job);
            scope.spawn(move || {
                let (own, other) = (Rank::new(rank), Rank::new(1 - rank));
                let port = job.port(own, ThreadLevel::Single, WaitPolicy::adaptive(true));
                let port = Arc::new(port.unwrap());
                let mut bytes = [rank as u8; 4096];
                let (world, tag) = (ContextId::WORLD, Tag::user(7).unwrap());
                if rank == 0 {
                    // SAFETY: the bytes stay where they are, and nobody else touches them, until the operation is freed.
                    let data = unsafe { SendBuffer::contiguous(bytes.as_ptr(), bytes.len()) };
                    let send =
                        PartitionedSend::init(&port, &data, 4, other, tag, world, Policy::Each);
                    let send = send.unwrap();
                    send.start().unwrap();
                    send.ready_list(&[0, 1, 2, 3]).unwrap();
                    send.wait(Some(PATIENCE)).unwrap();
                    let how = send.describe().unwrap();
                    assert!(how.contains("written into place"), "{how}");
                    send.free().unwrap();
                } else {
                    // SAFETY: as above.
                    let room = unsafe { RecvBuffer::contiguous(bytes.as_mut_ptr(), bytes.len()) };
                    let recv = PartitionedRecv::init(&port, &room, 4, other, tag, world).unwrap();
                    recv.start().unwrap();
                    recv.wait(Some(PATIENCE)).unwrap();
                    recv.free().unwrap();
                    assert_eq!(bytes, [0; 4096]);
                }
                port.close(PATIENCE).unwrap();
            });
        }
    });
}

/// What `tagwire info` publishes of a pair.
fn published_pair(layer: &str, transport: &str, library: &str) -> &'static FabricPair {
    let mut pairs = published::FABRIC_PAIRS.iter();
    pairs
        .find(|pair| (pair.layer, pair.transport, pair.library) == (layer, transport, library))
        .expect("what runs here is published")
}

/// Jobs of a pair; `None`, said loudly, where they cannot be had here.
fn factory(pair: &'static FabricPair) -> Option<Factory> {
    let (kind, detail) = pair.transport.split_once(':')?;
    let matches = pair.layer == "cm";
    if kind == "ofi" {
        let options = ofi_options(pair.library == published::NEWER_LIBFABRIC, detail)?;
        return Some(if matches {
            ofi_matching(options)
        } else {
            ofi(options)
        });
    }
    let options = ucx_options(pair.library == published::NEWER_UCX, detail)?;
    Some(if matches {
        ucx_matching(options)
    } else {
        ucx(options)
    })
}

/// How long a provider may take to connect two ranks.
const OFI_LATENCY: Duration = Duration::from_millis(20);

/// ob1 over libfabric.
pub fn ofi(options: OfiOptions) -> Factory {
    Factory::ob1(move |size, ob1| {
        let ofi = options.clone();
        let rails = Rails::new(move |bootstrap| match Ofi::open(&ofi, bootstrap) {
            Ok(rail) => Ok(Box::new(rail) as Box<dyn ByteTransport>),
            Err(error) => Err(error.to_string()),
        });
        RailJob::open(size, rails, ob1)
    })
    .boundaries(&[216, 16 * 1024 - 40])
    .latency(OFI_LATENCY)
}

/// cm over libfabric.
pub fn ofi_matching(options: OfiOptions) -> Factory {
    Factory::cm(move |size, budget, cm| {
        let mut ofi = options.clone();
        if let Some(budget) = budget {
            ofi.unexpected_bytes = budget.payload.min(ofi.unexpected_bytes);
            ofi.unexpected_messages = (budget.headers / 128).min(ofi.unexpected_messages);
        }
        let rails = MatchRails::new(move |bootstrap| match OfiMatch::open(&ofi, bootstrap) {
            Ok(rail) => Ok(Box::new(rail) as Box<dyn MatchTransport>),
            Err(error) => Err(error.to_string()),
        });
        MatchJob::open(size, rails, cm)
    })
    .boundaries(&[16 * 1024])
    .latency(OFI_LATENCY)
}

/// Where UCX changes the kinds of messages.
const UCX_BOUNDARIES: &[usize] = &[64, 8192, 64 << 10];

/// How long UCX takes to connect two ranks: by TCP, a thread of its own takes part.
fn ucx_latency(options: &UcxOptions) -> Duration {
    let transports = options.transports.as_deref().unwrap_or_default();
    Duration::from_millis(if transports.contains("tcp") { 50 } else { 3 })
}

/// Returns the library's path: that of the wheel libucx-cu12 where `newer`.
fn ucx_library(newer: bool) -> Option<String> {
    if newer {
        wheel("libucx-cu12", "libucp.so.0")
    } else {
        of_system("libucp.so.0")
    }
}

/// What to open for transports of UCX, on the loopback interface where they are a network of the system
/// alone.
fn ucx_options(newer: bool, transports: &str) -> Option<UcxOptions> {
    let Some(library) = ucx_library(newer) else {
        println!("SKIPPED: no such UCX here");
        return None;
    };
    let options = UcxOptions {
        library: Some(library),
        transports: Some(transports.to_owned()),
        devices: transports.starts_with("tcp").then(|| "lo".to_owned()),
        ..UcxOptions::default()
    };
    if transports.contains("verbs") {
        let seen = tagwire_ucx::survey(&options);
        let first = transports.split(',').next();
        let mut offers = seen.transports.into_iter();
        let offer = offers.find(|offer| Some(offer.name) == first);
        if let Some(why) = offer.and_then(|offer| offer.why_not) {
            println!("SKIPPED: no {transports} here: {why}");
            return None;
        }
    }
    Some(options)
}

/// ob1 over UCX.
fn ucx(options: UcxOptions) -> Factory {
    let latency = ucx_latency(&options);
    Factory::ob1(move |size, ob1| {
        let ucx = options.clone();
        let rails = Rails::new(move |bootstrap| {
            let rail = Ucx::open(ucx.clone(), bootstrap as &dyn Bootstrap);
            let rail = rail.map_err(|error| error.to_string())?;
            Ok(Box::new(rail) as Box<dyn ByteTransport>)
        });
        RailJob::open(size, rails, ob1)
    })
    .boundaries(UCX_BOUNDARIES)
    .latency(latency)
}

/// cm over UCX.
fn ucx_matching(options: UcxOptions) -> Factory {
    let latency = ucx_latency(&options);
    Factory::cm(move |size, budget, cm| {
        let mut ucx = options.clone();
        if let Some(budget) = budget {
            ucx.unexpected_bytes = budget.payload;
            ucx.unexpected_messages = budget.headers / 128;
        }
        let rails = MatchRails::new(move |bootstrap| {
            let rail = UcxMatch::open(ucx.clone(), bootstrap as &dyn Bootstrap);
            let rail = rail.map_err(|error| error.to_string())?;
            Ok(Box::new(rail) as Box<dyn MatchTransport>)
        });
        MatchJob::open(size, rails, cm)
    })
    .all_or_nothing()
    .boundaries(UCX_BOUNDARIES)
    .latency(latency)
}
