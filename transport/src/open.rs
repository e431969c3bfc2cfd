//! From settings to an open transport.

use std::time::Duration;

use tagwire_base::Bootstrap;
use tagwire_base::bootstrap::SharedBootstrap;
use tagwire_base::config::{Config, Setting};

use crate::byte::ByteTransport;
use crate::error::{Error, Result};
use crate::fault::{FaultOptions, FaultTransport};
use crate::network::MatchTransport;
use crate::null::{NullOptions, NullTransport};
use crate::shm::{Shm, ShmMatch, ShmOptions};

/// The names of the transports that a job can run on.
pub const NAMES: &[&str] = &["shm", "null"];

/// The settings of the choice; each transport has its own beside its code.
pub const SETTINGS: &[Setting] = &[Setting::choice(
    "transport",
    "transport",
    "shm",
    NAMES,
    "What moves the bytes: shm (shared memory), or null (this rank alone; what is sent to others vanishes)",
)];

/// Opens the transport that `config` names, with the faults it asks for around it.
///
/// # Errors
/// When the machine does not offer what the transport needs.
pub fn open(config: &Config, bootstrap: &SharedBootstrap) -> Result<Box<dyn ByteTransport>> {
    let rank = bootstrap.rank();
    let transport: Box<dyn ByteTransport> = match config.choice("transport") {
        "null" => Box::new(NullTransport::new(rank, NullOptions::default())),
        _ => Box::new(open_shm(config, bootstrap)?),
    };
    Ok(match FaultOptions::from_config(config)? {
        Some(options) => Box::new(FaultTransport::new(transport, rank, options)),
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
    match config.choice("transport") {
        "shm" => {
            let mut passing = bootstrap.clone();
            let mut shm = ShmMatch::open(ShmOptions::from_config(config), &mut passing)?;
            shm.set_descriptor_source(move |rank| passing.get_descriptor(rank, DESCRIPTOR_TIMEOUT));
            Ok(Some(Box::new(shm)))
        }
        _ => Ok(None),
    }
}

/// Shared memory, with the bootstrap to pass descriptors where process namespaces differ.
fn open_shm(config: &Config, bootstrap: &SharedBootstrap) -> Result<Shm> {
    let mut passing = bootstrap.clone();
    let mut shm = Shm::open(ShmOptions::from_config(config), &mut passing)?;
    shm.set_descriptor_source(move |rank| passing.get_descriptor(rank, DESCRIPTOR_TIMEOUT));
    Ok(shm)
}

/// How long the launcher may take to pass a descriptor, which every rank leaves with it on
/// opening.
const DESCRIPTOR_TIMEOUT: Duration = Duration::from_secs(30);
