//! libfabric among the transports that settings choose from.

use tagwire_base::bootstrap::SharedBootstrap;
use tagwire_base::config::{Config, Setting};
use tagwire_transport::{ByteTransport, MatchTransport, Result, TransportKind};

use crate::{NAME, Ofi, OfiMatch, OfiOptions, SETTINGS};

/// Opens [`Ofi`] and [`OfiMatch`]; the detail names the provider.
#[derive(Debug, Clone, Copy)]
pub struct OfiKind;

impl TransportKind for OfiKind {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "libfabric, with the provider behind the colon (ofi:tcp)"
    }

    fn settings(&self) -> &'static [Setting] {
        SETTINGS
    }

    fn open(
        &self,
        detail: Option<&str>,
        config: &Config,
        bootstrap: &SharedBootstrap,
    ) -> Result<Box<dyn ByteTransport>> {
        let options = OfiOptions::from_config(detail, config);
        Ok(Box::new(Ofi::open(&options, bootstrap)?))
    }

    fn open_matching(
        &self,
        detail: Option<&str>,
        config: &Config,
        bootstrap: &SharedBootstrap,
    ) -> Result<Option<Box<dyn MatchTransport>>> {
        let options = OfiOptions::from_config(detail, config);
        Ok(Some(Box::new(OfiMatch::open(&options, bootstrap)?)))
    }
}
