//! The null transport among the transports that settings choose from.

use tagwire_base::Bootstrap;
use tagwire_base::bootstrap::SharedBootstrap;
use tagwire_base::config::{Config, Setting};

use super::{NAME, NullOptions, NullTransport};
use crate::byte::ByteTransport;
use crate::error::Result;
use crate::kind::TransportKind;

/// Opens [`NullTransport`].
#[derive(Debug, Clone, Copy)]
pub struct NullKind;

impl TransportKind for NullKind {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "no wire: the own rank only, to measure the layers above"
    }

    fn settings(&self) -> &'static [Setting] {
        &[]
    }

    fn open(
        &self,
        _detail: Option<&str>,
        _config: &Config,
        bootstrap: &SharedBootstrap,
    ) -> Result<Box<dyn ByteTransport>> {
        let options = NullOptions::default();
        Ok(Box::new(NullTransport::new(bootstrap.rank(), options)))
    }
}
