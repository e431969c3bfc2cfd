//! Shared memory among the transports that settings choose from.

use std::time::Duration;

use tagwire_base::Bootstrap;
use tagwire_base::bootstrap::SharedBootstrap;
use tagwire_base::config::{Config, Setting};

use super::{NAME, SETTINGS, Shm, ShmMatch, ShmOptions};
use crate::byte::ByteTransport;
use crate::error::Result;
use crate::kind::TransportKind;
use crate::matching::MatchTransport;

/// How long the launcher may take to pass a descriptor, which every rank leaves with it on
/// opening.
const DESCRIPTOR_TIMEOUT: Duration = Duration::from_secs(30);

/// Opens [`Shm`] and [`ShmMatch`], with the bootstrap to pass descriptors where process
/// namespaces differ.
#[derive(Debug, Clone, Copy)]
pub struct ShmKind;

impl TransportKind for ShmKind {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "shared memory between the ranks of one machine"
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    fn open(
        &self,
        _detail: Option<&str>,
        config: &Config,
        bootstrap: &SharedBootstrap,
    ) -> Result<Box<dyn ByteTransport>> {
        let mut passing = bootstrap.clone();
        let mut shm = Shm::open(ShmOptions::from_config(config), &mut passing)?;
        shm.set_descriptor_source(move |rank| passing.get_descriptor(rank, DESCRIPTOR_TIMEOUT));
        Ok(Box::new(shm))
    }

    fn open_matching(
        &self,
        _detail: Option<&str>,
        config: &Config,
        bootstrap: &SharedBootstrap,
    ) -> Result<Option<Box<dyn MatchTransport>>> {
        let mut passing = bootstrap.clone();
        let mut shm = ShmMatch::open(ShmOptions::from_config(config), &mut passing)?;
        shm.set_descriptor_source(move |rank| passing.get_descriptor(rank, DESCRIPTOR_TIMEOUT));
        Ok(Some(Box::new(shm)))
    }
}
