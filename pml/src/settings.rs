//! The settings of this crate, and the way from them to an open rank.

use std::time::Duration;

use tagwire_base::bootstrap::SharedBootstrap;
use tagwire_base::config::{Config, Setting};
use tagwire_base::{Bootstrap, topology};
use tagwire_matching::AnyEngine;

use crate::cm::{Cm, CmOptions};
use crate::error::{Error, Result};
use crate::guard::ThreadLevel;
use crate::layer::Layer;
use crate::messenger::Messenger;
use crate::ob1::{Ob1, Ob1Options};
use crate::pml::Pml as _;
use crate::wait::{WaitMode, WaitPolicy};

const READER: &str = "pml";

/// The names of the point-to-point layers.
pub const LAYERS: &[&str] = &["ob1", "cm"];

const WAITS: &[&str] = &["adaptive", "spin", "yield", "sleep"];

const LEVELS: &[&str] = &["single", "funneled", "serialized", "multiple"];

/// The settings that this crate reads.
pub const SETTINGS: &[Setting] = &[
    Setting::choice(
        READER,
        "pml",
        "ob1",
        LAYERS,
        "The point-to-point layer: ob1 (matches itself), or cm (over a transport that matches)",
    ),
    Setting::choice(
        READER,
        "engine",
        AnyEngine::DEFAULT,
        AnyEngine::NAMES,
        "The engine that matches messages and receives",
    ),
    Setting::integer(
        READER,
        "match-capacity",
        1 << 26,
        1..=1 << 30,
        "Most posted receives, and most unexpected messages, that a rank may have",
    ),
    Setting::bytes_or_auto(
        READER,
        "eager-limit",
        0..=1 << 24,
        "Longest message that is sent before it is matched; auto: 8K over shared memory, 64K over networks",
    ),
    Setting::bytes_or_auto(
        READER,
        "packet",
        64..=1 << 20,
        "Most payload in one packet; longer eager messages take several, so that both sides copy at once; auto: 8K over shared memory, what a message can carry over networks",
    ),
    Setting::bytes_or_auto(
        READER,
        "coalesce",
        0..=1 << 16,
        "Longest message of a non-blocking send that may wait for others to the same rank, until the rank next waits, tests or makes progress; 0: none; auto: 0 over shared memory, 1K over networks",
    ),
    Setting::bytes(
        READER,
        "unexpected-payload",
        64 << 20,
        0..=1 << 40,
        "Budget for the payload of unexpected messages, over all peers",
    ),
    Setting::bytes(
        READER,
        "unexpected-headers",
        16 << 20,
        0..=1 << 36,
        "Budget for the envelopes of unexpected messages, over all peers; past it senders keep them",
    ),
    Setting::bytes(
        READER,
        "buffer-limit",
        64 << 20,
        0..=1 << 40,
        "Budget for buffered sends that wait",
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
            engine: config.choice("engine").to_owned(),
            match_capacity: config.integer("match-capacity") as u32,
            packet: config.bytes_or_auto("packet"),
            eager_limit: config.bytes_or_auto("eager-limit"),
            coalesce: config.bytes_or_auto("coalesce"),
            unexpected_payload: config.bytes("unexpected-payload"),
            unexpected_headers: config.bytes("unexpected-headers"),
            buffer_limit: config.bytes("buffer-limit"),
        }
    }
}

impl CmOptions {
    /// The options that `config` holds.
    #[must_use]
    pub fn from_config(config: &Config) -> Self {
        Self {
            buffer_limit: config.bytes("buffer-limit"),
        }
    }
}

/// The settings of this crate and of all below it, for a registry.
#[must_use]
pub fn all() -> Vec<&'static [Setting]> {
    let own = [tagwire_base::SETTINGS, SETTINGS];
    own.into_iter().chain(tagwire_rails::settings()).collect()
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
    let layer: Layer = if config.choice("pml") == "cm" {
        let rail = tagwire_rails::open_matching(config, &bootstrap)?;
        let rail = rail.ok_or_else(|| Error::NoMatching {
            layer: "cm",
            transport: tagwire_rails::named(config),
        })?;
        Cm::open(&CmOptions::from_config(config), rail, Box::new(bootstrap))?.into()
    } else {
        let rail = tagwire_rails::open(config, &bootstrap)?;
        Ob1::open(&Ob1Options::from_config(config), rail, Box::new(bootstrap))?.into()
    };
    let (name, transport) = (layer.name(), tagwire_rails::named(config));
    let port = Messenger::new(layer, level, policy);
    tracing::debug!(
        size = port.size(),
        layer = name,
        transport,
        ?level,
        "opened"
    );
    Ok(port)
}
