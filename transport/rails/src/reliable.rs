//! What stands between a transport and the layer above, or a bundle of several: faults, and data reliability.

use tagwire_base::bootstrap::SharedBootstrap;
use tagwire_base::config::{Config, Setting};
use tagwire_base::{Bootstrap, Rank};
use tagwire_dr::{Dr, DrOptions};
use tagwire_transport::fault::{FaultOptions, FaultTransport};
use tagwire_transport::{ByteTransport, Capabilities, Result};

/// The setting that asks for data reliability.
pub const RELIABILITY: &str = "reliability";

/// The value of [`RELIABILITY`] with which all transports have it.
pub const DR: &str = tagwire_dr::NAME;

/// Returns how data reliability computes its checksums here, for reports.
#[must_use]
pub fn checksums() -> &'static str {
    tagwire_dr::crc::means()
}

/// The settings of this module.
pub(crate) const SETTINGS: &[Setting] = &[Setting::choice(
    "rails::reliable",
    RELIABILITY,
    "auto",
    &["auto", DR],
    "Who sees to it that messages come once and whole: auto (the transport; data reliability around one that loses messages, and where 'fault' has some lost), dr (data reliability around each transport: checksums, acknowledgements, retransmission; no remote access, and no memory that ranks share)",
)];

/// What `config` asks for.
pub(crate) struct Guard {
    rank: Rank,
    faults: Option<FaultOptions>,
    options: DrOptions,
    /// Each transport has data reliability, above its own faults.
    is_each: bool,
}

impl Guard {
    /// Returns what `config` asks for, for the rank of `bootstrap`.
    ///
    /// # Errors
    /// When the faults are not understood.
    pub(crate) fn from_config(config: &Config, bootstrap: &SharedBootstrap) -> Result<Self> {
        let faults = FaultOptions::from_config(config)?;
        let has_losses = faults.as_ref().is_some_and(|faults| !faults.is_reliable());
        Ok(Self {
            rank: bootstrap.rank(),
            options: DrOptions::from_config(config, bootstrap.clock()),
            is_each: has_losses || config.choice(RELIABILITY) == DR,
            faults,
        })
    }

    /// Returns how long a rank that leaves waits for acknowledgements, where a transport has data reliability.
    pub(crate) const fn patience(&self) -> std::time::Duration {
        self.options.patience
    }

    /// Puts around one of the transports what belongs there.
    ///
    /// # Errors
    /// When it cannot carry what dr puts in front of a message.
    pub(crate) fn around_rail(
        &self,
        rail: Box<dyn ByteTransport>,
    ) -> Result<Box<dyn ByteTransport>> {
        let is_reliable = rail.capabilities().contains(Capabilities::RELIABLE);
        if !self.is_each && is_reliable {
            return Ok(rail);
        }
        let rail = match self.is_each {
            true => self.with_faults(rail),
            false => rail,
        };
        Ok(Box::new(Dr::new(rail, self.rank, self.options.clone())?))
    }

    /// Puts around all of them together what is not around each.
    pub(crate) fn around_all(&self, transport: Box<dyn ByteTransport>) -> Box<dyn ByteTransport> {
        match self.is_each {
            true => transport,
            false => self.with_faults(transport),
        }
    }

    fn with_faults(&self, transport: Box<dyn ByteTransport>) -> Box<dyn ByteTransport> {
        match &self.faults {
            Some(options) => {
                let options = options.clone();
                Box::new(FaultTransport::new(transport, self.rank, options))
            }
            None => transport,
        }
    }
}
