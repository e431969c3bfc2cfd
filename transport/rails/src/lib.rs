//! Rails: from the setting `transport` to open transports.
//!
//! ```text
//!    pml, bench, info        ask for what the settings name
//!    ----------------   <-   this crate: the kinds of this build
//!    shm   ofi   ucx   null
//! ```
//!
//! Here alone all transports are known by name. Who has one of another make opens it himself and
//! hands it to a pml.

mod bundle;
mod mixed;
mod striped;
mod waiter;

pub use mixed::Mixed;
pub use striped::{Clock, Striped, StripedOptions};

use tagwire_base::Bootstrap;
use tagwire_base::bootstrap::SharedBootstrap;
use tagwire_base::config::{Chosen, Config, Setting};
use tagwire_transport::fault::{FaultOptions, FaultTransport};
use tagwire_transport::{ByteTransport, Error, MatchTransport, Result, TransportKind, null, shm};

/// The transports of this build, the default first.
pub const KINDS: &[&dyn TransportKind] = &[
    &shm::ShmKind,
    &tagwire_ofi::OfiKind,
    &tagwire_ucx::UcxKind,
    &null::NullKind,
];

/// Their names, in the same order.
pub const NAMES: &[&str] = &["shm", "ofi", "ucx", "null"];

/// Those of the names that take a detail.
pub const DETAILED: &[&str] = &["ofi", "ucx"];

/// The setting of the choice.
pub const SETTINGS: &[Setting] = &[Setting::stack(
    "rails",
    "transport",
    "shm",
    NAMES,
    DETAILED,
    "What moves the bytes: shm (shared memory), ofi or ofi:PROVIDER (libfabric), ucx or ucx:TLS (UCX), or null (this rank alone; what is sent to others vanishes); shm+ofi:PROVIDER takes shared memory for ranks of the same host",
)];

/// Every setting that the choice and the transports read, for a registry.
pub fn settings() -> impl Iterator<Item = &'static [Setting]> {
    let choice = [
        SETTINGS,
        mixed::SETTINGS,
        striped::SETTINGS,
        tagwire_transport::fault::SETTINGS,
    ];
    choice
        .into_iter()
        .chain(KINDS.iter().map(|kind| kind.settings()))
}

/// The kind called `name`.
#[must_use]
pub fn kind(name: &str) -> Option<&'static dyn TransportKind> {
    KINDS.iter().find(|kind| kind.name() == name).copied()
}

/// Opens the transport that `config` names, with the faults it asks for around it.
///
/// # Errors
/// When the machine does not offer what the transport needs.
pub fn open(config: &Config, bootstrap: &SharedBootstrap) -> Result<Box<dyn ByteTransport>> {
    let mut rails = Vec::new();
    for (kind, detail) in chosen(config) {
        rails.push(kind.open(detail, config, bootstrap)?);
    }
    let transport = match rails.pop() {
        Some(only) if rails.is_empty() => only,
        last => {
            rails.extend(last);
            Box::new(Mixed::new(bootstrap.rank(), config, rails)?)
        }
    };
    Ok(match FaultOptions::from_config(config)? {
        Some(options) => Box::new(FaultTransport::new(transport, bootstrap.rank(), options)),
        None => transport,
    })
}

/// Opens the transport that `config` names, as one that matches; `None` where it does not.
///
/// # Errors
/// As [`open`]; and when faults are asked for, which come between bytes only.
pub fn open_matching(
    config: &Config,
    bootstrap: &SharedBootstrap,
) -> Result<Option<Box<dyn MatchTransport>>> {
    if FaultOptions::from_config(config)?.is_some() {
        return Err(Error::Unsupported {
            transport: "fault",
            what: "matching in the transport",
        });
    }
    let mut kinds = chosen(config);
    match (kinds.next(), kinds.next()) {
        (Some((kind, detail)), None) => kind.open_matching(detail, config, bootstrap),
        // One who matches sees all messages, or none.
        _ => Ok(None),
    }
}

/// What `config` names, as the setting is written.
#[must_use]
pub fn named(config: &Config) -> String {
    let parts = config.stack("transport").iter().map(Chosen::to_string);
    parts.collect::<Vec<_>>().join("+")
}

/// The rails that are asked for.
fn chosen(config: &Config) -> impl Iterator<Item = (&'static dyn TransportKind, Option<&str>)> {
    config
        .stack("transport")
        .iter()
        .map(|Chosen { name, detail }| {
            let kind = kind(name).expect("every name of the setting is a kind of this build");
            (kind, detail.as_deref())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_kinds() {
        let names: Vec<_> = KINDS.iter().map(|kind| kind.name()).collect();
        assert_eq!(names, NAMES);
        assert!(DETAILED.iter().all(|name| NAMES.contains(name)));
    }
}
