//! A bare transport that is connected to every other rank.

use std::time::Duration;

use tagwire_base::bootstrap::SharedBootstrap;
use tagwire_base::{Bootstrap, Config, Rank};
use tagwire_transport::{ByteTransport, EndpointId};

use crate::error::Result;

const KEY: &str = "bench/raw";
/// How long the other ranks have to publish their addresses.
const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct Connected {
    pub rail: Box<dyn ByteTransport>,
    /// By rank; none for this one.
    pub endpoints: Vec<Option<EndpointId>>,
}

/// Opens the transport that `config` names, refuses it where `check` does, and connects it to every other rank.
#[inline]
pub(super) fn connect(
    config: &Config,
    bootstrap: &mut SharedBootstrap,
    check: impl FnOnce(&dyn ByteTransport) -> Result<()>,
) -> Result<Connected> {
    let mut rail = tagwire_rails::open(config, bootstrap)?;
    check(&*rail)?;
    bootstrap.put(KEY, &rail.address())?;
    // Launchers show what was put before a fence behind it.
    bootstrap.fence(PATIENCE)?;
    let (rank, size) = (bootstrap.rank(), bootstrap.size());
    let mut endpoints = Vec::new();
    for peer in (0..size).map(Rank::new) {
        if peer == rank {
            endpoints.push(None);
            continue;
        }
        let address = bootstrap.get(peer, KEY, PATIENCE)?;
        endpoints.push(Some(rail.connect(peer, &address)?));
    }
    bootstrap.fence(PATIENCE)?;
    Ok(Connected { rail, endpoints })
}
