//! The point-to-point layers of this build, and what each has room for on this machine.

use serde::Serialize;
use tagwire_base::Config;
use tagwire_pml::{TagLimits, ThreadLevel};

use super::choices::{Named, PML, choices};
use super::conformance;
use super::transports::only_rank;

/// What there is to say of a layer.
#[derive(Debug, Serialize)]
pub struct PmlReport {
    /// Its name, and whether it is used.
    #[serde(flatten)]
    pub named: Named,
    /// The largest tag and the number of contexts over the transport in use; `None` where it
    /// cannot be opened.
    pub largest_tag: Option<i32>,
    pub contexts: Option<usize>,
    /// How many receives can be posted at once; `None` as well where nothing bounds them.
    pub receives: Option<usize>,
    /// How it computes checksums, where it has some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checksums: Option<&'static str>,
    /// Why it cannot be opened.
    pub why_not: Option<String>,
    /// The tiers of the conformance suite that it passes, by transport.
    pub conformance: Vec<Passed>,
}

/// The tiers of a conformance suite that are passed over a transport.
#[derive(Debug, Serialize)]
pub struct Passed {
    pub transport: &'static str,
    /// The library that it was run with, where there is one.
    pub library: Option<&'static str>,
    pub tiers: &'static [&'static str],
    /// The checks that are run, where that is not the whole suite.
    pub only: Option<&'static [&'static str]>,
    /// Checks of these tiers that are skipped.
    pub but: &'static [&'static str],
}

fn passed(layer: &str) -> Vec<Passed> {
    let own = conformance::PAIRS.iter().filter(|pair| pair.0 == layer);
    let own = own.map(|&(_, transport, tiers)| Passed {
        transport,
        library: None,
        tiers,
        only: None,
        but: &[],
    });
    let fabrics = conformance::FABRIC_PAIRS.iter();
    let fabrics = fabrics.filter(|pair| pair.layer == layer);
    let fabrics = fabrics.map(|pair| Passed {
        transport: pair.transport,
        library: Some(pair.library),
        tiers: pair.tiers,
        only: pair.only,
        but: pair.but,
    });
    own.chain(fabrics).collect()
}

/// Every layer of this build.
pub fn catalogue(config: &Config) -> Vec<PmlReport> {
    choices(config, PML)
        .into_iter()
        .map(|named| describe(named, config))
        .collect()
}

/// One of them.
pub fn describe(named: Named, config: &Config) -> PmlReport {
    let limits = limits(named.name, config);
    let known = limits.as_ref().ok();
    PmlReport {
        largest_tag: known.map(|limits| limits.largest_tag),
        contexts: known.map(|limits| limits.contexts),
        receives: known
            .map(|limits| limits.receives)
            .filter(|receives| *receives != usize::MAX),
        checksums: (named.name == tagwire_rails::DR).then(tagwire_rails::checksums),
        conformance: passed(named.name),
        why_not: limits.err(),
        named,
    }
}

/// Opens the layer as the only rank of a job would.
fn limits(name: &str, config: &Config) -> Result<TagLimits, String> {
    let (config, member) = only_rank(config, &[(PML, name)])?;
    let opened = tagwire_pml::open(&config, ThreadLevel::Single, member);
    let messenger = opened.map_err(|error| error.to_string())?;
    messenger.tag_limits().map_err(|error| error.to_string())
}
