//! How the choice among transports opens this one.

use tagwire_base::bootstrap::SharedBootstrap;
use tagwire_base::config::{Config, Setting};
use tagwire_transport::{ByteTransport, MatchTransport, Result, TransportKind};

use crate::config::{SETTINGS, UcxOptions};
use crate::{NAME, Ucx, UcxMatch};

/// `ucx`, or `ucx:TLS` with the words of `UCX_TLS`.
#[derive(Debug, Clone, Copy)]
pub struct UcxKind;

impl TransportKind for UcxKind {
    fn name(&self) -> &'static str {
        NAME
    }

    fn about(&self) -> &'static str {
        "UCX: InfiniBand, TCP and shared memory by a library that is loaded at run time"
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
        let options = UcxOptions::from_config(detail, config);
        Ok(Box::new(Ucx::open(options, bootstrap)?))
    }

    fn open_matching(
        &self,
        detail: Option<&str>,
        config: &Config,
        bootstrap: &SharedBootstrap,
    ) -> Result<Option<Box<dyn MatchTransport>>> {
        let options = UcxOptions::from_config(detail, config);
        Ok(Some(Box::new(UcxMatch::open(options, bootstrap)?)))
    }
}
