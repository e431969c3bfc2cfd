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
use tagwire_transport::{
    ByteTransport, Capabilities, Error, MatchTransport, Result, TransportKind, null, shm,
};

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
    "What moves the bytes: shm (shared memory), ofi or ofi:PROVIDER or ofi:PROVIDER@INTERFACE (libfabric, by one interface or local address), ucx or ucx:TLS (UCX), or null (this rank alone; what is sent to others vanishes); shm+ofi:PROVIDER takes shared memory for ranks of the same host; several networks, as in ofi:tcp@eth0+ofi:tcp@eth1, share the messages, and any but the last may die",
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
    let several = config.stack("transport").len() > 1;
    let mut rails = Vec::new();
    for (kind, detail) in chosen(config) {
        let opened = kind.open(detail, config, bootstrap);
        rails.push(opened.map_err(|error| match several {
            true => cannot_open(kind.name(), detail, &error),
            false => error,
        })?);
    }
    let transport = match rails.len() {
        1 => rails.remove(0),
        _ => join(rails, config, bootstrap)?,
    };
    Ok(match FaultOptions::from_config(config)? {
        Some(options) => Box::new(FaultTransport::new(transport, bootstrap.rank(), options)),
        None => transport,
    })
}

/// Several networks become one, and what reaches no further is taken where it reaches.
fn join(
    rails: Vec<Box<dyn ByteTransport>>,
    config: &Config,
    bootstrap: &SharedBootstrap,
) -> Result<Box<dyn ByteTransport>> {
    let place = rails.iter().position(|rail| is_network(&**rail));
    let (mut networks, mut rails): (Vec<_>, Vec<_>) =
        rails.into_iter().partition(|rail| is_network(&**rail));
    let network: Option<Box<dyn ByteTransport>> = match networks.len() {
        0 | 1 => networks.pop(),
        _ => {
            let options = StripedOptions::from_config(config);
            Some(Box::new(Striped::new(networks, options)?))
        }
    };
    if let (Some(place), Some(network)) = (place, network) {
        rails.insert(place, network);
    }
    Ok(match rails.len() {
        1 => rails.remove(0),
        _ => Box::new(Mixed::new(bootstrap.rank(), config, rails)?),
    })
}

fn is_network(rail: &dyn ByteTransport) -> bool {
    rail.capabilities().contains(Capabilities::REMOTE)
}

/// Which of several transports it was that cannot be opened.
fn cannot_open(name: &'static str, detail: Option<&str>, error: &Error) -> Error {
    let detail = detail.map(str::to_owned);
    let part = Chosen { name, detail };
    Error::Base(tagwire_base::Error::BadSetting {
        name: "transport".to_owned(),
        value: part.to_string(),
        expected: format!("each part has to open: {error}"),
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
