//! Which faults, and how a user names them.

use std::fmt;
use std::str::FromStr;

use tagwire_base::config::{Config, Setting};
use tagwire_base::nearest::nearest;
use tagwire_base::{Error, Result};

use super::damage::Damage;
use super::share::Share;

/// The settings of this module.
pub const SETTINGS: &[Setting] = &[Setting::text(
    "transport::fault",
    SETTING,
    "",
    "Faults to put between a rank and its transport, as in \
     'seed=42,delay=0..8,reorder=4,busy=10%,loss=0.1%,duplicate=1%,corrupt=0.1%,kill-after=1000'; none when empty",
)];

const SETTING: &str = "fault";

const KEYS: [&str; 9] = [
    "seed",
    "delay",
    "reorder",
    "busy",
    "loss",
    "duplicate",
    "corrupt",
    "kill-after",
    "kill",
];

/// How many calls of progress a message is held back, when it may overtake and nothing is said:
/// without any delay there would be few messages at once to be put in another order.
const DELAY_TO_REORDER: Delay = Delay { min: 0, max: 4 };

/// For how many calls of progress a message is held back: a number drawn between the two, both
/// included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Delay {
    /// At least.
    pub min: u32,
    /// At most.
    pub max: u32,
}

/// What dies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Kill {
    /// The transport object: it sends nothing and hears nothing any more.
    #[default]
    Object,
    /// The whole process, by `SIGKILL`.
    Process,
}

/// The faults of a [`FaultTransport`](super::FaultTransport). The default has none.
///
/// ```
/// use tagwire_transport::fault::FaultOptions;
///
/// let options: FaultOptions = "seed=42,delay=0..8,busy=10%".parse()?;
/// assert_eq!((options.seed, options.delay.max, options.busy_percent), (42, 8, 10));
/// assert_eq!(options.to_string().parse::<FaultOptions>()?, options);
/// let error = "sede=42".parse::<FaultOptions>().unwrap_err();
/// assert!(error.to_string().contains("did you mean 'seed'?"));
/// # Ok::<(), tagwire_base::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FaultOptions {
    /// Where the randomness starts.
    pub seed: u64,
    /// How long messages are held back.
    pub delay: Delay,
    /// How many places late a message may arrive; with 0 the order is kept.
    pub reorder: u32,
    /// How often a verb is busy although there is room, in percent: 99 at most.
    pub busy_percent: u8,
    /// What becomes of messages that arrive. With any, the transport is [reliable](crate::Capabilities::RELIABLE) no more.
    pub damage: Damage,
    /// After how many messages, sent and received, the rank dies.
    pub kill_after: Option<u64>,
    /// What dies then.
    pub kill: Kill,
}

impl FaultOptions {
    /// What the setting `fault` says; `None` when it is empty.
    ///
    /// # Errors
    /// As for parsing.
    pub fn from_config(config: &Config) -> Result<Option<Self>> {
        match config.text(SETTING) {
            "" => Ok(None),
            text => text.parse().map(Some),
        }
    }
}

impl FromStr for FaultOptions {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut options = Self::default();
        let mut delay = None;
        for part in text
            .split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
        {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            match key {
                "seed" => options.seed = number(key, value, u64::MAX)?,
                "delay" => delay = Some(parse_delay(key, value)?),
                "reorder" => options.reorder = number(key, value, u32::MAX.into())? as u32,
                "busy" => options.busy_percent = parse_percent(key, value)?,
                "loss" => options.damage.loss = parse_share(key, value)?,
                "duplicate" => options.damage.duplicate = parse_share(key, value)?,
                "corrupt" => options.damage.corrupt = parse_share(key, value)?,
                "kill-after" => options.kill_after = Some(number(key, value, u64::MAX)?),
                "kill" => options.kill = parse_kill(key, value)?,
                _ => {
                    return Err(Error::UnknownSetting {
                        name: format!("{SETTING}: {key}"),
                        nearest: nearest(key, KEYS).map(str::to_owned),
                    });
                }
            }
        }
        let unsaid = match options.reorder {
            0 => Delay::default(),
            _ => DELAY_TO_REORDER,
        };
        options.delay = delay.unwrap_or(unsaid);
        Ok(options)
    }
}

impl fmt::Display for FaultOptions {
    /// As it can be parsed again.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Delay { min, max } = self.delay;
        write!(f, "seed={},delay={min}..{max}", self.seed)?;
        write!(f, ",reorder={},busy={}%", self.reorder, self.busy_percent)?;
        let Damage {
            loss,
            duplicate,
            corrupt,
        } = self.damage;
        for (key, share) in [
            ("loss", loss),
            ("duplicate", duplicate),
            ("corrupt", corrupt),
        ] {
            if share != Share::NONE {
                write!(f, ",{key}={share}")?;
            }
        }
        if let Some(count) = self.kill_after {
            write!(f, ",kill-after={count}")?;
        }
        match self.kill {
            Kill::Object => Ok(()),
            Kill::Process => f.write_str(",kill=process"),
        }
    }
}

fn bad(key: &str, value: &str, expected: impl Into<String>) -> Error {
    Error::BadSetting {
        name: format!("{SETTING}: {key}"),
        value: value.to_owned(),
        expected: expected.into(),
    }
}

fn number(key: &str, value: &str, max: u64) -> Result<u64> {
    value
        .parse()
        .ok()
        .filter(|number| *number <= max)
        .ok_or_else(|| bad(key, value, format!("a whole number up to {max}")))
}

fn parse_delay(key: &str, value: &str) -> Result<Delay> {
    let (min, max) = value.split_once("..").unwrap_or((value, value));
    let end = |text| number(key, text, u32::MAX.into()).map(|count| count as u32);
    match (end(min), end(max)) {
        (Ok(min), Ok(max)) if min <= max => Ok(Delay { min, max }),
        _ => Err(bad(key, value, "calls of progress, as in '3' or '0..8'")),
    }
}

fn parse_percent(key: &str, value: &str) -> Result<u8> {
    let digits = value.strip_suffix('%').unwrap_or(value);
    number(key, digits, 99)
        .map(|percent| percent as u8)
        .map_err(|_| bad(key, value, "a percentage from 0% to 99%"))
}

fn parse_share(key: &str, value: &str) -> Result<Share> {
    Share::parse(value).ok_or_else(|| {
        bad(
            key,
            value,
            "a percentage from 0% to 100%, with up to four decimals",
        )
    })
}

fn parse_kill(key: &str, value: &str) -> Result<Kill> {
    match value {
        "object" => Ok(Kill::Object),
        "process" => Ok(Kill::Process),
        _ => {
            let hint = nearest(value, ["object", "process"])
                .map_or_else(String::new, |name| format!("; did you mean '{name}'?"));
            Err(bad(key, value, format!("'object' or 'process'{hint}")))
        }
    }
}
