//! What the user may set, and tests.

use std::time::Duration;

use tagwire_base::Clock;
use tagwire_base::config::{Config, Setting};

/// The options of a [`Striped`](super::Striped).
#[derive(Debug, Clone)]
pub struct StripedOptions {
    /// Transfers are cut into fragments no shorter than this, in bytes.
    pub fragment: usize,
    /// How long a rail may be silent to a peer that replies on another before it is given up.
    pub patience: Duration,
    /// How long a rank that closes waits until its last messages are acknowledged.
    #[doc(hidden)]
    pub disconnect_timeout: Duration,
    /// How long one waits at most that is dropped before it has left.
    #[doc(hidden)]
    pub drop_timeout: Duration,
    /// The rank's clock.
    #[doc(hidden)]
    pub clock: Clock,
}

impl Default for StripedOptions {
    fn default() -> Self {
        Self {
            fragment: FRAGMENT as usize,
            patience: PATIENCE,
            disconnect_timeout: SHORT_FAREWELL,
            drop_timeout: Duration::MAX,
            clock: Clock::default(),
        }
    }
}

impl StripedOptions {
    /// The options that `config` holds under the names of the settings, for a rank with `clock`.
    #[must_use]
    pub fn from_config(config: &Config, clock: Clock) -> Self {
        Self {
            fragment: config.bytes("stripe"),
            patience: config.duration("rail-patience"),
            clock,
            ..Self::default()
        }
    }

    /// Of rails under data reliability, which send again what is not acknowledged: a rank that closes waits for as long as they do.
    #[must_use]
    pub(crate) fn over_reliable(mut self, patience: Duration) -> Self {
        self.drop_timeout = self.disconnect_timeout;
        self.disconnect_timeout = patience;
        self
    }

    /// Returns the time by the clock, in microseconds.
    pub(super) fn now(&self) -> u64 {
        self.clock.now().as_nanos() / 1000
    }
}

/// Default of [`StripedOptions::disconnect_timeout`].
const SHORT_FAREWELL: Duration = Duration::from_millis(200);

/// Default of [`StripedOptions::fragment`].
const FRAGMENT: u64 = 64 << 10;

/// Default of [`StripedOptions::patience`].
const PATIENCE: Duration = Duration::from_secs(2);

/// The settings of striping.
pub(crate) const SETTINGS: &[Setting] = &[
    Setting::bytes(
        READER,
        "stripe",
        FRAGMENT,
        4096..=1 << 30,
        "Long messages over several networks are cut into fragments no shorter than this",
    ),
    Setting::duration(
        READER,
        "rail-patience",
        PATIENCE,
        Duration::from_millis(10)..=Duration::from_secs(3600),
        "How long one of several networks may be silent to a peer that answers on another before \
         it is given up for that peer",
    ),
];

const READER: &str = "rails::striped";
