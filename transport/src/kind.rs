//! A kind of transport: how the settings name it, and how one is opened.

use std::fmt;

use tagwire_base::bootstrap::SharedBootstrap;
use tagwire_base::config::{Config, Setting};

use crate::byte::ByteTransport;
use crate::error::Result;
use crate::network::MatchTransport;

/// One thing that a transport can be told to use: a provider, a network.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Way {
    /// What is written behind the colon; empty where nothing is, and nothing can be.
    pub detail: String,
    /// What it is and has here, one sentence each.
    pub notes: Vec<String>,
    /// Why it cannot move bytes here.
    pub why_not: Option<String>,
    /// Why it cannot match here.
    pub why_not_matching: Option<String>,
}

/// What the choice among transports needs to know of one of them. `detail` is what the user
/// wrote behind the colon, as in `ofi:tcp`.
pub trait TransportKind: fmt::Debug + Sync {
    /// The name in settings and reports.
    fn name(&self) -> &'static str;

    /// What it is, in a few words.
    fn about(&self) -> &'static str;

    /// The settings that it reads.
    fn settings(&self) -> &'static [Setting];

    /// What may stand behind the colon on this machine, and what cannot and why. Looks at
    /// libraries and devices: may take seconds.
    fn ways(&self, config: &Config) -> Vec<Way> {
        let _ = config;
        Vec::new()
    }

    /// Opens it as bytes.
    ///
    /// # Errors
    /// When the machine does not offer what it needs, or the detail names nothing.
    fn open(
        &self,
        detail: Option<&str>,
        config: &Config,
        bootstrap: &SharedBootstrap,
    ) -> Result<Box<dyn ByteTransport>>;

    /// Opens it as one that matches; `None` where it does not.
    ///
    /// # Errors
    /// As [`open`](TransportKind::open).
    fn open_matching(
        &self,
        detail: Option<&str>,
        config: &Config,
        bootstrap: &SharedBootstrap,
    ) -> Result<Option<Box<dyn MatchTransport>>> {
        let _ = (detail, config, bootstrap);
        Ok(None)
    }
}
