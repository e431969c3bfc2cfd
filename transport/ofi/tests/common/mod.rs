//! Libraries and providers of this machine, and jobs over them.

#![allow(dead_code, reason = "each test file uses its part")]
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::process::Command;

use tagwire_base::bootstrap::LocalJob;
use tagwire_base::{Error as BaseError, Rank};
use tagwire_ofi::{Ofi, OfiMatch, OfiOptions};
use tagwire_transport::conformance::{Factory, Job, Tier, matching, tiers};
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

/// The file of the library that comes with `pip install mpich`: 2.x.
pub fn mpich() -> Option<String> {
    const FIND: &str = "import importlib.metadata as m; \
        print([f.locate() for f in m.files('mpich') if f.name == 'libfabric.so.1'][0].resolve())";
    printed("python3", &["-c", FIND])
}

/// What to open for `provider` of `library`, on the loopback interface.
pub fn options(library: &str, provider: &str) -> OfiOptions {
    let source = if provider.contains("shm") {
        ""
    } else {
        "127.0.0.1"
    };
    OfiOptions {
        library: library.to_owned(),
        provider: provider.to_owned(),
        source: source.to_owned(),
        ..OfiOptions::default()
    }
}

/// Opens all ranks of a job.
pub fn ranks(size: u32, options: &OfiOptions) -> Result<Vec<Ofi>, String> {
    let job = LocalJob::new(size).map_err(|error| error.to_string())?;
    (0..size)
        .map(|rank| Ofi::open(options, &job.member(Rank::new(rank))))
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())
}

pub fn factory(options: OfiOptions) -> Factory {
    Factory::new(8, move |size| {
        let boxed = |ofi| Box::new(ofi) as Box<dyn ByteTransport>;
        Ok(Job::new(
            ranks(size, &options)?.into_iter().map(boxed).collect(),
        ))
    })
}

/// Opens all ranks of a job that matches.
pub fn matching_ranks(size: u32, options: &OfiOptions) -> Result<Vec<OfiMatch>, String> {
    let job = LocalJob::new(size).map_err(|error| error.to_string())?;
    (0..size)
        .map(|rank| OfiMatch::open(options, &job.member(Rank::new(rank))))
        .collect::<Result<_, _>>()
        .map_err(|error| error.to_string())
}

pub fn matching_factory(options: OfiOptions) -> matching::Factory {
    matching::Factory::new(8, move |size, wanted| {
        let options = OfiOptions {
            unexpected_bytes: wanted.unexpected_bytes,
            unexpected_messages: wanted.unexpected_messages,
            ..options.clone()
        };
        let boxed = |ofi| Box::new(ofi) as Box<dyn MatchTransport>;
        let ranks = matching_ranks(size, &options)?;
        Ok(matching::Job::new(ranks.into_iter().map(boxed).collect()))
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
        mod $name {
            fn check(name: &str) {
                match $crate::common::bench($library, $provider) {
                    Ok(options) => {
                        let factory = $crate::common::factory(options);
                        tagwire_transport::conformance::assert_check(name, &factory);
                    }
                    Err(reason) => println!("SKIPPED: no {} here: {reason}", $provider),
                }
            }

            tagwire_transport::transport_conformance!(@for_each tests);
        }
    };
}

/// Compares what a provider offers with what it is published to.
pub fn expect_tiers(library: Option<String>, provider: &str, expected: &[Tier]) {
    match bench(library, provider) {
        Ok(options) => assert_eq!(tiers(&factory(options)).unwrap(), expected, "{provider}"),
        Err(reason) => println!("SKIPPED: no {provider} here: {reason}"),
    }
}
