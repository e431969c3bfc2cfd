//! Libraries and providers of this machine, and jobs over them.

#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

pub mod disconnect;
#[path = "../../../../cli/src/info/conformance.rs"]
pub mod published;
#[path = "../../../../ci/wheels.rs"]
mod wheels;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tagwire_base::bootstrap::{LocalBootstrap, LocalJob};
use tagwire_base::{Error as BaseError, Rank};
use tagwire_conformance::byte::{Factory, Job, Tier};
use tagwire_conformance::matching;
use tagwire_conformance::tiers;
use tagwire_ofi::{Notices, Ofi, OfiMatch, OfiOptions};
use tagwire_transport::{ByteTransport, Error, MatchTransport};

/// What a command prints, without the line's end.
fn printed(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let text = text.trim();
    (output.status.success() && !text.is_empty()).then(|| text.to_owned())
}

/// The file of the system's library: by its path, since a name would find whichever library the
/// process has opened before.
pub fn system() -> Option<String> {
    let all = printed("/sbin/ldconfig", &["-p"])?;
    let line = all.lines().find(|line| line.contains("libfabric.so.1"))?;
    Some(line.rsplit(' ').next()?.to_owned())
}

/// Returns the file of the library inside of the wheel mpich (`ci/peers`): 2.x.
pub fn mpich() -> Option<String> {
    let file = wheels::wheel("mpich", "libfabric.so.1")?;
    file.into_os_string().into_string().ok()
}

/// What to open for `provider` of `library`, on the loopback interface.
pub fn options(library: &str, provider: &str) -> OfiOptions {
    let source = if provider.contains("shm") || provider.contains("verbs") {
        ""
    } else {
        "127.0.0.1"
    };
    OfiOptions {
        library: library.to_owned(),
        provider: provider.to_owned(),
        source: source.to_owned(),
        // Ranks of one thread cannot hear each other out: without connections that is in vain.
        disconnect_timeout: Duration::from_millis(if provider.contains("rxd") { 20 } else { 500 }),
        ..OfiOptions::default()
    }
}

/// Opens all ranks of a job; returns with each how to make it go without a word.
fn open_all<T>(
    size: u32,
    options: &OfiOptions,
    open: impl Fn(&OfiOptions, &LocalBootstrap) -> Result<T, Error>,
) -> Result<(Vec<T>, Vec<Arc<AtomicBool>>), String> {
    let job = LocalJob::new(size).map_err(|error| error.to_string())?;
    let one = |rank| {
        let options = OfiOptions {
            silent: Arc::default(),
            ..options.clone()
        };
        let opened = open(&options, &job.member(Rank::new(rank)));
        Ok((opened.map_err(|error| error.to_string())?, options.silent))
    };
    (0..size).map(one).collect()
}

/// Ranks die as processes do: their endpoints are closed, and they tell nobody.
fn die<T: ?Sized>(silent: &[Arc<AtomicBool>], rank: Rank, transport: Box<T>) {
    silent[rank.index()].store(true, Ordering::Relaxed);
    drop(transport);
}

pub fn factory(options: OfiOptions) -> Factory {
    Factory::new(8, move |size| {
        let (ranks, silent) =
            open_all(size, &options, |options, member| Ofi::open(options, member))?;
        let boxed = |ofi| Box::new(ofi) as Box<dyn ByteTransport>;
        let job = Job::new(ranks.into_iter().map(boxed).collect());
        if options.provider == "shm" {
            // It maps the memory of other ranks of its process once, where they have it.
            return Ok(job);
        }
        Ok(job.with_kill(move |rank, transport| die(&silent, rank, transport)))
    })
}

pub fn matching_factory(options: OfiOptions) -> matching::Factory {
    matching::Factory::new(8, move |size, wanted| {
        let options = OfiOptions {
            unexpected_bytes: wanted.unexpected_bytes,
            unexpected_messages: wanted.unexpected_messages,
            ..options.clone()
        };
        let (ranks, silent) = open_all(size, &options, |options, member| {
            OfiMatch::open(options, member)
        })?;
        let boxed = |ofi| Box::new(ofi) as Box<dyn MatchTransport>;
        let job = matching::Job::new(ranks.into_iter().map(boxed).collect());
        Ok(job.with_kill(move |rank, transport| die(&silent, rank, transport)))
    })
    .boundaries(&[16 * 1024])
}

/// A provider of a library on the bench, or the reason why it is not there.
pub fn bench(library: Option<String>, provider: &str) -> Result<OfiOptions, String> {
    let library = library.ok_or("the library is not on this machine")?;
    let options = options(&library, provider);
    match Ofi::open(&options, &LocalJob::new(1).unwrap().member(Rank::new(0))) {
        Ok(_) => Ok(options),
        Err(Error::Base(BaseError::BadSetting { expected, .. })) => Err(expected),
        Err(error) => panic!("{provider}: {error}"),
    }
}

/// The tests of the kit on one provider; they say so loudly where it is not there.
#[macro_export]
macro_rules! provider_conformance {
    ($name:ident, $library:expr, $provider:literal) => {
        $crate::provider_conformance!($name, $library, $provider, |options| options);
    };
    ($name:ident, $library:expr, $provider:literal, $but:expr) => {
        mod $name {
            fn check(name: &str) {
                match $crate::common::bench($library, $provider) {
                    Ok(options) => {
                        let but: fn(tagwire_ofi::OfiOptions) -> tagwire_ofi::OfiOptions = $but;
                        let factory = $crate::common::factory(but(options));
                        tagwire_conformance::assert_check(name, &factory);
                    }
                    Err(reason) => println!("SKIPPED: no {} here: {reason}", $provider),
                }
            }

            tagwire_conformance::transport_conformance!(@for_each tests);
        }
    };
}

/// Compares what the providers of a library offer with what `tagwire info` publishes of them.
pub fn expect_published(library: Option<String>, name: &str) {
    for published in published::OFI.iter().filter(|one| one.library == name) {
        let provider = published.detail;
        let options = match bench(library.clone(), provider) {
            Ok(options) => options,
            Err(reason) => {
                println!("SKIPPED: no {provider} here: {reason}");
                continue;
            }
        };
        // Some are wrong in old libraries only.
        match open_matching(&options) {
            Ok(version) => assert!(
                published.matching_but.is_some() || version >= (1, 19),
                "{provider} matches"
            ),
            Err(why) => assert!(published.matching_but.is_none(), "{provider}: {why}"),
        }
        let offered = tiers(&factory(options)).unwrap().into_iter();
        let offered: Vec<_> = offered.map(Tier::name).collect();
        assert_eq!(offered, published.tiers, "{provider}");
    }
}

/// The tests of the kit for matching on one provider, but for the checks that it is known not to
/// pass.
#[macro_export]
macro_rules! provider_matching {
    ($name:ident, $library:expr, $provider:literal, $except:expr) => {
        $crate::provider_matching!($name, $library, $provider, $except, |options| options);
    };
    ($name:ident, $library:expr, $provider:literal, $except:expr, $but:expr) => {
        mod $name {
            fn check(name: &str) {
                if $crate::common::published::UNSEEN.iter().chain($except).any(|other| *other == name) {
                    println!("SKIPPED: {} has no means for this", $provider);
                    return;
                }
                match $crate::common::bench($library, $provider) {
                    Ok(options) => {
                        let but: fn(tagwire_ofi::OfiOptions) -> tagwire_ofi::OfiOptions = $but;
                        let factory = $crate::common::matching_factory(but(options));
                        tagwire_conformance::assert_check(name, &factory);
                    }
                    Err(reason) => println!("SKIPPED: no {} here: {reason}", $provider),
                }
            }

            tagwire_conformance::match_conformance!(@for_each tests);
        }
    };
}

/// Runs tests of this file in a process of their own, with the small buffers of `ofi_rxm` that its users may ask for: libfabric reads its
/// variables when a process asks it for the first time, for whichever provider that is.
pub fn with_small_buffers(tests: &[&str]) {
    alone(tests, "FI_OFI_RXM_BUFFER_SIZE", "256");
}

/// Runs tests of this file in a process of their own, with a variable of its environment. Says which were skipped.
pub fn alone(tests: &[&str], variable: &str, value: &str) {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--show-output"])
        .args(tests)
        .env(variable, value)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let passed = format!("{} passed", tests.len());
    assert!(output.status.success() && text.contains(&passed), "{text}");
    let skipped = text.lines().filter(|line| line.starts_with("SKIPPED"));
    skipped.for_each(|line| println!("{line}"));
}

/// As over a provider with 4 bytes of completion data, which are those of RDMA devices.
pub fn with_little_data(options: OfiOptions) -> OfiOptions {
    OfiOptions {
        little_data: true,
        ..options
    }
}

/// As over a provider whose writes say nothing to their target.
pub fn without_notices(options: OfiOptions) -> OfiOptions {
    OfiOptions {
        notices: Notices::Flags,
        ..options
    }
}

/// Opens a rank that matches; returns the library's version.
pub fn open_matching(options: &OfiOptions) -> Result<(u32, u32), String> {
    let alone = || LocalJob::new(1).unwrap().member(Rank::new(0));
    let opened = OfiMatch::open(options, &alone()).and_then(|_| Ofi::open(options, &alone()));
    opened
        .map(|ofi| ofi.library_version())
        .map_err(|error| error.to_string())
}
