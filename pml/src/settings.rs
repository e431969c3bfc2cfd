//! The settings of this crate, and the way from them to an open rank.

use std::borrow::Cow;
use std::time::Duration;

use tagwire_base::bootstrap::SharedBootstrap;
use tagwire_base::config::{Config, Entry, Origin, Setting};
use tagwire_base::{Bootstrap, topology};
use tagwire_matching::{AnyEngine, Engines, registry};

use crate::Recording;
use crate::cm::{Cm, CmOptions};
use crate::contact::OpenTimeout;
use crate::error::{Error, Result};
use crate::guard::ThreadLevel;
use crate::layer::Layer;
use crate::messenger::Messenger;
use crate::ob1::{Ob1, Ob1Options};
use crate::wait::{WaitMode, WaitPolicy};

const READER: &str = "pml";

/// The names of the point-to-point layers.
pub const LAYERS: &[&str] = &["ob1", "cm", "dr"];

const WAITS: &[&str] = &["adaptive", "spin", "yield", "sleep"];

const LEVELS: &[&str] = &["single", "funneled", "serialized", "multiple"];

/// The settings that this crate reads.
pub const SETTINGS: &[Setting] = &[
    Setting::choice(
        READER,
        "pml",
        "ob1",
        LAYERS,
        "The point-to-point layer: ob1 (matches itself), cm (over a transport that matches), or dr (ob1 with reliability=dr)",
    ),
    Setting::named(
        READER,
        "engine",
        AnyEngine::DEFAULT,
        registry::NAMES,
        "The engine that matches messages and receives under ob1, one of a library by its path; under cm the transport matches, over shared memory with bins",
    ),
    #[cfg(feature = "engines")]
    Setting::text(
        READER,
        "record",
        "",
        "The folder for a trace of what the engine of each rank is given, PROGRAM.RANK.twm ('tagwire match'), under ob1; none when empty. One of before is replaced",
    ),
    #[cfg(feature = "engines")]
    Setting::choice(
        READER,
        "record-clock",
        "each",
        &["each", "coarse"],
        "The times of a trace: each (the clock is read for each record), coarse (for one in 64, which costs less)",
    ),
    #[cfg(feature = "engines")]
    Setting::bytes(
        READER,
        "record-limit",
        1 << 30,
        1 << 20..=1 << 40,
        "Most bytes of a rank's trace, 16 for each record; it ends there",
    ),
    #[cfg(feature = "engines")]
    Setting::integer(
        READER,
        "record-ring",
        0,
        0..=1 << 30,
        "How many calls a trace keeps, the last ones, in place of all up to record-limit; 0: all",
    ),
    Setting::integer(
        READER,
        "match-capacity",
        1 << 26,
        1..=1 << 30,
        "Most posted receives, and most unexpected messages, that a rank may have under ob1; under cm the transport's limits hold, as info shows them",
    ),
    Setting::bytes_or_auto(
        READER,
        "eager-limit",
        0..=1 << 24,
        "Longest message that ob1 sends before it is matched; auto: 16K over shared memory (8K of buffers that ranks share), 64K over networks",
    ),
    Setting::bytes_or_auto(
        READER,
        "packet",
        64..=1 << 20,
        "Most payload in one packet of ob1; longer eager messages take several, so that both sides copy at once; auto: 8K over shared memory, what a message can carry over networks",
    ),
    Setting::bytes_or_auto(
        READER,
        "coalesce",
        0..=1 << 16,
        "Longest message of a non-blocking send of ob1 that may wait for others to the same rank, until the rank next waits, tests or makes progress; 0: none; auto: 0 over shared memory, 1K over networks",
    ),
    Setting::choice(
        READER,
        "rendezvous",
        "auto",
        Ob1Options::RENDEZVOUS,
        "Protocol of ob1's messages past eager-limit, where the transport has it: offer (copied once, by either rank), get (read by the receiver), put (written by the sender), push (sent in packets); auto: the first of these",
    ),
    Setting::flag(
        READER,
        "expose-receives",
        true,
        "Receives of ob1 past eager-limit that name source and tag are shown to their sender over shared memory, which copies into them while their rank computes",
    ),
    Setting::bytes(
        READER,
        "unexpected-payload",
        64 << 20,
        0..=1 << 40,
        "Budget for the payload of unexpected messages, over all peers, under ob1; under cm see shm-overflow, ofi-unexpected, ucx-unexpected-bytes",
    ),
    Setting::bytes(
        READER,
        "unexpected-headers",
        16 << 20,
        0..=1 << 36,
        "Budget for the envelopes of unexpected messages, over all peers, under ob1; past it senders keep them; under cm see shm-headers",
    ),
    Setting::bytes(
        READER,
        "buffer-limit",
        64 << 20,
        0..=1 << 40,
        "Budget for buffered sends that wait",
    ),
    Setting::integer(
        READER,
        "first-sequence",
        0,
        0..=u32::MAX as u64,
        "The number of the first message between two ranks under ob1, the same at all ranks of a job: one shortly below 2^32 has the numbers wrap early, as they do in long runs",
    ),
    Setting::choice(
        READER,
        "thread-level",
        "single",
        LEVELS,
        "From which threads a rank may be called, unless its program asks for more",
    ),
    Setting::flag(
        READER,
        "progress-thread",
        false,
        "A thread of the rank moves messages on while the program computes; the thread level is 'multiple' then",
    ),
    Setting::choice(
        READER,
        "wait",
        "adaptive",
        WAITS,
        "How a rank waits: adaptive (spin, yield, sleep), spin, yield, or sleep at once",
    ),
    Setting::duration(
        READER,
        "sleep",
        Duration::from_millis(50),
        Duration::from_millis(1)..=Duration::from_millis(500),
        "Longest sleep of a waiting rank before it looks after its peers",
    ),
    Setting::duration(
        READER,
        "open-timeout",
        OpenTimeout::DEFAULT,
        Duration::ZERO..=Duration::from_secs(86_400),
        "How long a rank that opens waits for the others to open; the default is for launchers that do not report the end of a rank: under tagwire run a rank waits without a limit, unless this is set",
    ),
    Setting::duration(
        READER,
        "close-timeout",
        Duration::from_secs(30),
        Duration::ZERO..=Duration::from_secs(86_400),
        "How long closing waits for what is under way",
    ),
];

impl Ob1Options {
    /// The options that `config` holds.
    #[must_use]
    pub fn from_config(config: &Config) -> Self {
        Self {
            engine: config.named("engine").to_string(),
            engines: engines(config),
            match_capacity: config.integer("match-capacity") as u32,
            record: Recording::from_config(config),
            packet: config.bytes_or_auto("packet"),
            eager_limit: config.bytes_or_auto("eager-limit"),
            coalesce: config.bytes_or_auto("coalesce"),
            rendezvous: config.choice("rendezvous").to_owned(),
            exposes: config.flag("expose-receives"),
            unexpected_payload: config.bytes("unexpected-payload"),
            unexpected_headers: config.bytes("unexpected-headers"),
            buffer_limit: config.bytes("buffer-limit"),
            open_timeout: OpenTimeout::from_config(config),
            first_sequence: config.integer("first-sequence") as u32,
        }
    }
}

/// Returns the engines that the program of this configuration knows.
#[must_use]
pub fn engines(config: &Config) -> Engines {
    let own = config.registry().value::<Engines>();
    let engines = own.cloned().unwrap_or_default();
    #[cfg(feature = "engines")]
    let engines = engines.with_loader(tagwire_foreign::load);
    engines
}

impl CmOptions {
    /// The options that `config` holds.
    #[must_use]
    pub fn from_config(config: &Config) -> Self {
        Self {
            buffer_limit: config.bytes("buffer-limit"),
            open_timeout: OpenTimeout::from_config(config),
        }
    }
}

/// The settings of this crate and of all below it, for a registry.
#[must_use]
pub fn all() -> Vec<&'static [Setting]> {
    let own = [tagwire_base::SETTINGS, SETTINGS];
    own.into_iter().chain(tagwire_rails::settings()).collect()
}

impl OpenTimeout {
    /// The time that `config` holds: the default is not for launchers that report the ends of ranks.
    #[must_use]
    pub fn from_config(config: &Config) -> Self {
        match config.entry("open-timeout") {
            Ok(entry) if entry.origin() != Origin::Default => {
                Self::Limit(config.duration("open-timeout"))
            }
            _ => Self::Auto,
        }
    }
}

impl ThreadLevel {
    /// The level that `config` holds.
    #[must_use]
    pub fn from_config(config: &Config) -> Self {
        match config.choice("thread-level") {
            "funneled" => Self::Funneled,
            "serialized" => Self::Serialized,
            "multiple" => Self::Multiple,
            _ => Self::Single,
        }
    }
}

impl WaitPolicy {
    /// The policy that `config` holds, for `local_size` ranks on this machine.
    #[must_use]
    pub fn from_config(config: &Config, local_size: u32) -> Self {
        let cores = topology::Topology::of_machine()
            .online
            .map_or(1, |online| online.len());
        let mode = match config.choice("wait") {
            "spin" => WaitMode::Spin,
            "yield" => WaitMode::Yield,
            "sleep" => WaitMode::Sleep,
            _ => WaitMode::Adaptive,
        };
        let oversubscribed = local_size as usize > cores;
        Self {
            mode,
            sleep: config.duration("sleep"),
            ..Self::adaptive(oversubscribed)
        }
    }
}

/// The settings of ob1 that cm leaves to its transport, beside `engine`.
const OF_OB1: &[&str] = &[
    "match-capacity",
    "eager-limit",
    "packet",
    "coalesce",
    "rendezvous",
    "expose-receives",
    "unexpected-payload",
    "unexpected-headers",
];

/// The settings in `config` that somebody set and that cm does not go by.
fn unused_by_cm(config: &Config) -> impl Iterator<Item = &Entry> {
    OF_OB1
        .iter()
        .filter_map(|name| config.entry(name).ok())
        .filter(move |entry| entry.origin() != Origin::Default)
}

/// Refuses an engine that somebody chose, unless it is what matches here or the default.
fn refuse_engine(config: &Config, matcher: &'static str) -> Result<()> {
    let engine = config.named("engine").to_string();
    if engine == matcher || engine == AnyEngine::DEFAULT {
        return Ok(());
    }
    Err(Error::NoEngine { engine, matcher })
}

/// Refuses a trace of what the transport matches: its visitors are other processes.
fn refuse_record(config: &Config, matcher: &str) -> Result<()> {
    match Recording::from_config(config) {
        None => Ok(()),
        Some(_) => Err(Error::Unrecorded {
            matcher: matcher.to_owned(),
            why: "matches below cm and is not recorded",
        }),
    }
}

fn warn_of_unused(config: &Config, matcher: &str) {
    for entry in unused_by_cm(config) {
        tracing::warn!(
            "the setting {} = {} has no effect: under cm the transport matches ({matcher}), by its own settings",
            entry.setting().name(),
            entry.value(),
        );
    }
}

/// Returns the settings that the layer of `config` goes by: one may be another with a setting.
#[must_use]
pub fn of_layer(config: &Config) -> Cow<'_, Config> {
    if config.choice("pml") != tagwire_rails::DR {
        return Cow::Borrowed(config);
    }
    let mut config = config.clone();
    let set = config.set(tagwire_rails::RELIABILITY, tagwire_rails::DR);
    debug_assert!(set.is_ok(), "it is one of the values: {set:?}");
    Cow::Owned(config)
}

/// Opens this process's rank as `config` says, at thread level `level`, or above it where a
/// [progress thread](crate::ProgressThread::from_config) is to come.
///
/// # Errors
/// When the transport cannot be opened, does not match where the layer needs that, or the job's
/// bootstrap breaks.
pub fn open(
    config: &Config,
    level: ThreadLevel,
    bootstrap: Box<dyn Bootstrap>,
) -> Result<Messenger> {
    let level = if config.flag("progress-thread") {
        ThreadLevel::Multiple
    } else {
        level
    };
    let policy = WaitPolicy::from_config(config, bootstrap.locality().local_size);
    let bootstrap = SharedBootstrap::new(bootstrap);
    let clock = bootstrap.clock();
    let (layer, policy): (Layer, _) = if config.choice("pml") == "cm" {
        let rail = tagwire_rails::open_matching(config, &bootstrap)?;
        let rail = rail.ok_or_else(|| Error::NoMatching {
            layer: "cm",
            transport: tagwire_rails::named(config),
        })?;
        refuse_engine(config, rail.matcher())?;
        refuse_record(config, rail.matcher())?;
        warn_of_unused(config, rail.matcher());
        let policy = policy.over(rail.capabilities());
        let cm = Cm::open(&CmOptions::from_config(config), rail, Box::new(bootstrap))?;
        (cm.into(), policy)
    } else {
        let rail = tagwire_rails::open(&of_layer(config), &bootstrap)?;
        let policy = policy.over(rail.capabilities());
        let ob1 = Ob1::open(&Ob1Options::from_config(config), rail, Box::new(bootstrap))?;
        (ob1.into(), policy)
    };
    let (name, transport) = (layer.name(), tagwire_rails::named(config));
    let port = Messenger::new(layer, level, policy).with_clock(clock);
    tracing::debug!(
        size = port.size(),
        layer = name,
        transport,
        ?level,
        "opened"
    );
    Ok(port)
}

#[cfg(test)]
mod tests {
    use tagwire_base::Registry;

    use super::*;

    #[test]
    fn cm_names_what_it_does_not_go_by() {
        let registry = Registry::new(&all());
        let mut config = Config::defaults(&registry);
        let unused = |config: &Config| -> Vec<&str> {
            unused_by_cm(config)
                .map(|entry| entry.setting().name())
                .collect()
        };
        assert_eq!(unused(&config), [""; 0]);
        config.set("buffer-limit", "1M").unwrap();
        assert_eq!(unused(&config), [""; 0]);
        config.set("eager-limit", "4K").unwrap();
        assert_eq!(unused(&config), ["eager-limit"]);
    }

    /// A program gives its engines with the registry, and they reach the layer.
    #[test]
    fn an_engine_of_the_program_is_chosen_as_any_other() {
        let engines = Engines::default().with::<tagwire_matching::Oracle>("mine");
        let registry = Registry::new(&all());
        assert!(Config::defaults(&registry).set("engine", "mine").is_err());
        let registry = registry.with_names("engine", engines.names());
        let mut config = Config::defaults(&registry.with_value(engines));
        config.set("engine", "mine").unwrap();
        let options = Ob1Options::from_config(&config);
        let engine = options.engines.named(&options.engine).unwrap();
        let opened = engine.open(tagwire_matching::Capacity::default());
        assert_eq!(opened.name(), "mine");
        let refused = refuse_engine(&config, "bins").unwrap_err().to_string();
        assert!(refused.contains("'mine' runs under ob1 alone"), "{refused}");
    }

    #[test]
    fn cm_refuses_an_engine_with_the_reason() {
        let registry = Registry::new(&all());
        let mut config = Config::defaults(&registry);
        refuse_engine(&config, "libfabric").unwrap();
        config.set("engine", "list").unwrap();
        refuse_engine(&config, "list").unwrap();
        config.set("engine", "source:dir=array").unwrap();
        let refused = refuse_engine(&config, "bins").unwrap_err().to_string();
        assert_eq!(
            refused,
            "the engine 'source:dir=array' runs under ob1 alone: under cm the transport matches, here bins \
             (settings 'engine' and 'pml')"
        );
        #[cfg(feature = "engines")]
        {
            config.set("record", "traces").unwrap();
            let refused = refuse_record(&config, "libfabric").unwrap_err().to_string();
            let why = "'libfabric' matches below cm and is not recorded (settings 'record', 'engine' and 'pml')";
            assert_eq!(refused, why);
        }
    }
}
