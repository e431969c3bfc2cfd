//! What the user may set, and tests.

use std::time::Duration;

use tagwire_base::Clock;
use tagwire_base::config::{Config, Setting};

/// The options of a [`Dr`](crate::Dr).
#[derive(Debug, Clone)]
pub struct DrOptions {
    /// The number of the first message to each peer. All ranks of a job have the same.
    pub first: u32,
    /// The least time after which a message that is not acknowledged is sent again.
    pub retry: Duration,
    /// How long a peer may acknowledge nothing that was sent to it before it counts as failed. A rank that leaves waits as long until
    /// its last messages are acknowledged.
    pub patience: Duration,
    /// How long a rank that leaves answers peers of which nothing comes, and which left before it or were given up: the last word between
    /// two may be lost. A rank that is dropped before it has left waits as long for its peers.
    pub disconnect_timeout: Duration,
    /// The rank's clock.
    pub clock: Clock,
}

impl Default for DrOptions {
    fn default() -> Self {
        Self {
            first: 0,
            retry: RETRY,
            patience: PATIENCE,
            disconnect_timeout: Duration::from_secs(1),
            clock: Clock::default(),
        }
    }
}

impl DrOptions {
    /// Returns the options that `config` holds under the names of the settings, for a rank with `clock`.
    #[must_use]
    pub fn from_config(config: &Config, clock: Clock) -> Self {
        Self {
            // The setting's range is that of the type.
            first: config.integer("dr-first") as u32,
            retry: config.duration("dr-retry"),
            patience: config.duration("dr-timeout"),
            clock,
            ..Self::default()
        }
    }
}

/// Default of [`DrOptions::retry`].
const RETRY: Duration = Duration::from_millis(1);

/// Default of [`DrOptions::patience`].
const PATIENCE: Duration = Duration::from_secs(60);

/// The settings of this crate.
pub const SETTINGS: &[Setting] = &[
    Setting::integer(
        READER,
        "dr-first",
        0,
        0..=u32::MAX as u64,
        "The number of the first message to each peer under dr, the same for all ranks; numbers have 32 bits and wrap",
    ),
    Setting::duration(
        READER,
        "dr-retry",
        RETRY,
        Duration::from_micros(50)..=Duration::from_secs(10),
        "The least time after which dr sends a message again that is not acknowledged; by measured round trips it is longer",
    ),
    Setting::duration(
        READER,
        "dr-timeout",
        PATIENCE,
        Duration::from_millis(10)..=Duration::from_secs(3600),
        "How long a peer may acknowledge nothing under dr before it counts as failed; a rank acknowledges while it calls Tagwire",
    ),
];

const READER: &str = "dr";
