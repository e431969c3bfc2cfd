//! What the user may set, and tests.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

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
    pub farewell: Duration,
    /// What time it is: for tests.
    #[doc(hidden)]
    pub clock: Clock,
}

impl Default for StripedOptions {
    fn default() -> Self {
        Self {
            fragment: FRAGMENT as usize,
            patience: PATIENCE,
            farewell: Duration::from_millis(200),
            clock: Clock::default(),
        }
    }
}

impl StripedOptions {
    /// The options that `config` holds under the names of the settings.
    #[must_use]
    pub fn from_config(config: &Config) -> Self {
        Self {
            fragment: config.bytes("stripe"),
            patience: config.duration("rail-patience"),
            ..Self::default()
        }
    }
}

/// Tells how much time has passed since some moment.
#[derive(Clone)]
pub struct Clock(Arc<dyn Fn() -> Duration + Send + Sync>);

impl Clock {
    /// The clock that `now` reads.
    #[must_use]
    pub fn new(now: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        Self(Arc::new(now))
    }

    /// In microseconds.
    pub(super) fn now(&self) -> u64 {
        micros((self.0)())
    }
}

impl Default for Clock {
    fn default() -> Self {
        let start = Instant::now();
        Self::new(move || start.elapsed())
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Clock({:?})", (self.0)())
    }
}

/// Whole microseconds: half a million years fit.
pub(super) fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

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
