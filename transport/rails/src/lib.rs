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

#[cfg(any(test, not(all(feature = "ofi", feature = "ucx"))))]
mod absent;
mod auto;
mod bundle;
mod given;
mod mixed;
mod reliable;
mod striped;
mod waiter;

pub use auto::{AUTO, ON_ONE_HOST, chosen_by_jobs, on_one_host, taken, why_taken};
pub use given::Given;
pub use mixed::Mixed;
pub use reliable::{DR, RELIABILITY, checksums};
pub use striped::{Striped, StripedOptions};

use reliable::Guard;

use std::borrow::Cow;

use tagwire_base::Bootstrap;
use tagwire_base::bootstrap::SharedBootstrap;
use tagwire_base::config::{Chosen, Config, Setting};
use tagwire_transport::fault::FaultOptions;
use tagwire_transport::{
    ByteTransport, Capabilities, Error, ForeignLibrary, MatchTransport, Result, TransportKind,
    null, shm,
};

#[cfg(feature = "ofi")]
const OFI: &dyn TransportKind = &tagwire_ofi::OfiKind;
#[cfg(not(feature = "ofi"))]
const OFI: &dyn TransportKind = &absent::Absent("ofi");
#[cfg(feature = "ucx")]
const UCX: &dyn TransportKind = &tagwire_ucx::UcxKind;
#[cfg(not(feature = "ucx"))]
const UCX: &dyn TransportKind = &absent::Absent("ucx");

/// The transports, the default first. To open one that this build was made without is an error that names its feature.
pub const KINDS: &[&dyn TransportKind] = &[&shm::ShmKind, OFI, UCX, &null::NullKind];

/// Their names, in the same order.
pub const NAMES: &[&str] = &["shm", "ofi", "ucx", "null"];

/// What the setting may name: a transport, or the choice of one.
const CHOICES: &[&str] = &[auto::AUTO, "shm", "ofi", "ucx", "null"];

/// Those of the names that take a detail, and the file of a library.
pub const DETAILED: &[&str] = &["ofi", "ucx"];

/// The setting of the choice.
pub const SETTINGS: &[Setting] = &[Setting::stack(
    "rails",
    "transport",
    auto::AUTO,
    CHOICES,
    DETAILED,
    "What moves the bytes: auto (shm where all ranks share a host; else shm between ranks of a host and the first network that every host has), shm (shared memory), ofi or ofi:PROVIDER or ofi:PROVIDER@INTERFACE (libfabric, by one interface or local address), ucx or ucx:TLS (UCX), each with a library of its own as ofi@FILE:PROVIDER, or null (this rank alone; what is sent to others vanishes); shm+ofi:PROVIDER takes shared memory for ranks of the same host; several networks, as in ofi:tcp@eth0+ofi:tcp@eth1, share the messages, and any but the last may die",
)];

/// Every setting that the choice and the transports read, for a registry.
pub fn settings() -> impl Iterator<Item = &'static [Setting]> {
    let choice = [
        SETTINGS,
        mixed::SETTINGS,
        striped::SETTINGS,
        reliable::SETTINGS,
        tagwire_dr::SETTINGS,
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

/// Opens the transport that `config` names, with the faults it asks for around it. Where data reliability is asked for, or what
/// is opened loses messages, each network has its own, above the faults.
///
/// # Errors
/// When the machine does not offer what the transport needs.
pub fn open(config: &Config, bootstrap: &SharedBootstrap) -> Result<Box<dyn ByteTransport>> {
    if let Some(given) = Given::taken(config) {
        let guard = Guard::from_config(config, bootstrap)?;
        return Ok(guard.around_all(guard.around_rail(given)?));
    }
    let config = &*auto::resolve(config, false, bootstrap)?;
    check_files(config.stack("transport"))?;
    let several = config.stack("transport").len() > 1;
    let guard = Guard::from_config(config, bootstrap)?;
    let mut rails = Vec::new();
    for part in config.stack("transport") {
        let detail = part.detail.as_deref();
        let opened = kind_of(part).open(detail, &config_of(config, part), bootstrap);
        let opened = opened.and_then(|rail| guard.around_rail(rail));
        rails.push(opened.map_err(|error| match several {
            true => cannot_open(part, &error),
            false => error,
        })?);
    }
    let transport = match rails.len() {
        1 => rails.remove(0),
        _ => join(rails, &guard, config, bootstrap)?,
    };
    Ok(guard.around_all(transport))
}

/// Two libraries of one kind share names of functions and of variables: with both libfabrics in a process its
/// heap is corrupt at exit.
fn check_files(parts: &[Chosen]) -> Result<()> {
    let differs = |part: &&Chosen| {
        let mut others = parts.iter().filter(|other| other.name == part.name);
        others.any(|other| other.file != part.file)
    };
    let Some(part) = parts.iter().find(differs) else {
        return Ok(());
    };
    Err(Error::Base(tagwire_base::Error::BadSetting {
        name: "transport".to_owned(),
        value: part.to_string(),
        expected: format!(
            "the same library for every {} of a process; bench compares several in one report, with \
             commas between them",
            part.name
        ),
    }))
}

/// Several networks become one, and what reaches no further is taken where it reaches.
fn join(
    rails: Vec<Box<dyn ByteTransport>>,
    guard: &Guard,
    config: &Config,
    bootstrap: &SharedBootstrap,
) -> Result<Box<dyn ByteTransport>> {
    let place = rails.iter().position(|rail| is_network(&**rail));
    let (mut networks, mut rails): (Vec<_>, Vec<_>) =
        rails.into_iter().partition(|rail| is_network(&**rail));
    let network: Option<Box<dyn ByteTransport>> = match networks.len() {
        0 | 1 => networks.pop(),
        _ => {
            let options = StripedOptions::from_config(config, bootstrap.clock());
            // Datagrams have data reliability without being told.
            let options = match networks.iter().any(|rail| rail.name() == DR) {
                true => options.over_reliable(guard.patience()),
                false => options,
            };
            Some(Box::new(Striped::new(networks, options)?))
        }
    };
    if let (Some(place), Some(network)) = (place, network) {
        rails.insert(place, network);
    }
    Ok(match rails.len() {
        1 => rails.remove(0),
        _ => Box::new(Mixed::new(
            bootstrap.rank(),
            config,
            &bootstrap.clock(),
            rails,
        )?),
    })
}

fn is_network(rail: &dyn ByteTransport) -> bool {
    rail.capabilities().contains(Capabilities::REMOTE)
}

/// Which of several transports it was that cannot be opened.
fn cannot_open(part: &Chosen, error: &Error) -> Error {
    Error::Base(tagwire_base::Error::BadSetting {
        name: "transport".to_owned(),
        value: part.to_string(),
        expected: format!("each part has to open: {error}"),
    })
}

/// Opens the transport that `config` names, as one that matches; `None` where it does not.
///
/// # Errors
/// As [`open`]; and when faults or data reliability are asked for, which come between bytes only.
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
    if config.choice(RELIABILITY) == DR {
        return Err(Error::Unsupported {
            transport: DR,
            what: "matching in the transport",
        });
    }
    // It moves bytes.
    if Given::is_in(config) {
        return Ok(None);
    }
    let config = &*auto::resolve(config, true, bootstrap)?;
    match config.stack("transport") {
        [part] => {
            let detail = part.detail.as_deref();
            kind_of(part).open_matching(detail, &config_of(config, part), bootstrap)
        }
        // One who matches sees all messages, or none.
        _ => Ok(None),
    }
}

/// What `config` names, as the setting is written, but for files of libraries.
#[must_use]
pub fn named(config: &Config) -> String {
    let without_file = |part: &Chosen| Chosen {
        file: None,
        ..part.clone()
    };
    let parts = config.stack("transport").iter().map(without_file);
    parts
        .map(|part| part.to_string())
        .collect::<Vec<_>>()
        .join("+")
}

/// The foreign libraries of what `config` names, each once.
#[must_use]
pub fn libraries(config: &Config) -> Vec<ForeignLibrary> {
    let mut all = Vec::new();
    let named = config.stack("transport").iter();
    for part in named.filter(|part| part.name != auto::AUTO) {
        let library = kind_of(part).library(&config_of(config, part));
        all.extend(library.filter(|library| !all.contains(library)));
    }
    all
}

/// What the libraries opened for what `config` names: the provider alone where it names one transport,
/// else the whole with the providers in the place of the details. `None` where no library chooses. A
/// transport that `matches` may get another provider than one that moves bytes.
#[must_use]
pub fn opened(config: &Config, matches: bool, bootstrap: &SharedBootstrap) -> Option<String> {
    let parts = config.stack("transport");
    if auto::is_asked_for(config) {
        return None;
    }
    let opened = parts.iter().map(|part| {
        let (detail, config) = (part.detail.as_deref(), config_of(config, part));
        kind_of(part).opened(detail, matches, &config, bootstrap)
    });
    join_opened(parts, &opened.collect::<Vec<_>>())
}

fn join_opened(parts: &[Chosen], opened: &[Option<String>]) -> Option<String> {
    if let [one] = opened {
        return one.clone();
    }
    opened.iter().flatten().next()?;
    let whole = parts.iter().zip(opened).map(|(part, opened)| {
        let part = Chosen {
            file: None,
            detail: opened.clone().or_else(|| part.detail.clone()),
            ..part.clone()
        };
        part.to_string()
    });
    Some(whole.collect::<Vec<_>>().join("+"))
}

/// The configuration for one part of what it names: with the library whose file goes with the part.
#[must_use]
pub fn config_of<'a>(config: &'a Config, part: &Chosen) -> Cow<'a, Config> {
    let (Some(file), Some(setting)) = (&part.file, kind_of(part).library_setting()) else {
        return Cow::Borrowed(config);
    };
    let mut config = config.clone();
    let set = config.set(setting, file);
    debug_assert!(set.is_ok(), "any text is a file's name: {set:?}");
    Cow::Owned(config)
}

fn kind_of(part: &Chosen) -> &'static dyn TransportKind {
    kind(part.name).expect("every name of the setting is a kind of this build")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_opened_stands_in_the_place_of_what_was_asked_for() {
        let config = |text: &str| {
            let registry = tagwire_base::config::Registry::new(&[SETTINGS]);
            let mut config = Config::defaults(&registry);
            config.set("transport", text).unwrap();
            config
        };
        let of = |text: &str, opened: &[Option<&str>]| {
            let opened: Vec<_> = opened.iter().map(|it| it.map(str::to_owned)).collect();
            join_opened(config(text).stack("transport"), &opened)
        };
        let rxm = Some("tcp;ofi_rxm");
        assert_eq!(of("ofi:tcp", &[rxm]).as_deref(), rxm);
        assert_eq!(of("shm", &[None]), None);
        assert_eq!(of("shm+ucx:tcp", &[None, None]), None);
        let whole = of("shm+ofi@/some/file:tcp", &[None, rxm]);
        assert_eq!(whole.as_deref(), Some("shm+ofi:tcp;ofi_rxm"));
    }

    #[test]
    fn one_library_of_a_kind_is_loaded() {
        let parts = |text| match SETTINGS[0].parse(text) {
            Ok(tagwire_base::config::Value::Stack(parts)) => parts,
            other => panic!("{other:?}"),
        };
        let good = [
            "shm+ofi@/a:tcp",
            "ofi@/a:tcp@x+ofi@/a:tcp@y",
            "ofi:tcp+ucx@/b:tcp",
        ];
        assert!(good.iter().all(|text| check_files(&parts(text)).is_ok()));
        for text in ["ofi@/a:tcp+ofi@/b:tcp", "ofi@/a:tcp@x+ofi:tcp@y"] {
            let error = check_files(&parts(text)).unwrap_err().to_string();
            assert!(
                error.contains("/a") && error.contains("the same library"),
                "{error}"
            );
        }
    }

    #[test]
    fn names_are_those_of_the_kinds() {
        let names: Vec<_> = KINDS.iter().map(|kind| kind.name()).collect();
        assert_eq!(names, NAMES);
        assert_eq!(CHOICES, [&[auto::AUTO], NAMES].concat());
        assert!(DETAILED.iter().all(|name| NAMES.contains(name)));
        let is_here = cfg!(all(feature = "ofi", feature = "ucx"));
        let with_library = |kind: &&&dyn TransportKind| {
            kind.library_setting().is_some() || !is_here && DETAILED.contains(&kind.name())
        };
        let with_library = KINDS.iter().filter(with_library).map(|kind| kind.name());
        assert_eq!(with_library.collect::<Vec<_>>(), DETAILED);
    }
}
