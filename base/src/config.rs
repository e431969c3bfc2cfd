//! The configuration registry: every setting in one place, and the values they have.
//!
//! A crate declares the settings that it reads as a list, beside the code that reads them. A
//! [`Registry`] gathers the lists; command-line flags, environment variables, `tagwire info` and
//! `docs/settings.md` are all made from it. A [`Config`] holds one value for each setting:
//!
//! ```text
//!   given explicitly (a flag)  >  environment TAGWIRE_<NAME>  >  default
//! ```
//!
//! Values are checked when the configuration is built, so whoever reads one gets a good one.
//! Unknown names are refused with the nearest right one. An environment variable that is set to
//! nothing counts as not set.

use std::fmt;
use std::panic::Location;
use std::sync::OnceLock;
use std::time::Duration;

use crate::error::{Error, Result};
use crate::named::Spec;

pub mod parse;
mod registry;
mod setting;
#[cfg(test)]
mod tests;

pub use registry::Registry;
pub use setting::{Chosen, Kind, Setting, Value};

/// What the names of environment variables begin with.
pub const PREFIX: &str = "TAGWIRE_";

/// How much is logged, least first.
pub const LOG_LEVELS: &[&str] = &["off", "error", "warn", "info", "debug"];

/// The settings that every program has.
pub const SETTINGS: &[Setting] = &[Setting::choice(
    "base::log",
    "log",
    "warn",
    LOG_LEVELS,
    "How much is written to standard error; debug builds only have debug",
)];

/// Where a value came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// An environment variable.
    Environment,
    /// A flag, or the program.
    Explicit,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Default => "default",
            Self::Environment => "environment",
            Self::Explicit => "explicit",
        })
    }
}

/// One setting's value, where it came from, and who read it.
#[derive(Debug, Clone)]
pub struct Entry {
    setting: Setting,
    value: Value,
    origin: Origin,
    read_at: OnceLock<&'static Location<'static>>,
}

impl Entry {
    /// The setting.
    #[must_use]
    pub const fn setting(&self) -> &Setting {
        &self.setting
    }

    /// Its value.
    #[must_use]
    pub const fn value(&self) -> &Value {
        &self.value
    }

    /// Where the value came from.
    #[must_use]
    pub const fn origin(&self) -> Origin {
        self.origin
    }

    /// The line that first read the value, or `None` when nothing has yet: a setting that was
    /// set and is never read had no effect.
    #[must_use]
    pub fn read_at(&self) -> Option<&'static Location<'static>> {
        self.read_at.get().copied()
    }
}

/// A value for every setting of a registry.
///
/// ```
/// use tagwire_base::config::{Config, Origin, Registry};
///
/// let registry = Registry::new(&[tagwire_base::SETTINGS]);
/// let environment = [("TAGWIRE_LOG", "info"), ("HOME", "/root")];
/// let config = Config::from_environment(&registry, environment, [("log", "debug")])?;
/// assert_eq!(config.choice("log"), "debug");
/// assert_eq!(config.entry("log")?.origin(), Origin::Explicit);
/// # Ok::<(), tagwire_base::Error>(())
/// ```
///
/// The getters take the name of a setting that the caller declared itself. They panic when the
/// registry lacks it or it has another kind, which is a mistake of the program, never of its
/// user; [`Config::entry`] is for names that come from outside.
#[derive(Debug, Clone)]
pub struct Config {
    registry: Registry,
    entries: Vec<Entry>,
}

impl Config {
    /// The configuration that these environment variables and explicit values make. Variables
    /// that do not begin with `TAGWIRE_` are passed over.
    ///
    /// # Errors
    /// [`Error::UnknownSetting`] and [`Error::BadSetting`], naming what was given as it was given.
    pub fn from_environment<K: AsRef<str>, V: AsRef<str>, N: AsRef<str>, W: AsRef<str>>(
        registry: &Registry,
        environment: impl IntoIterator<Item = (K, V)>,
        explicit: impl IntoIterator<Item = (N, W)>,
    ) -> Result<Self> {
        let mut config = Self::defaults(registry);
        for (variable, text) in environment {
            let (variable, text) = (variable.as_ref(), text.as_ref());
            if !variable.starts_with(PREFIX) {
                continue;
            }
            let index = registry.index_of_variable(variable)?;
            if let Some(index) = index.filter(|_| !text.is_empty()) {
                config.assign(index, variable, text, Origin::Environment)?;
            }
        }
        for (name, text) in explicit {
            config.set(name.as_ref(), text.as_ref())?;
        }
        Ok(config)
    }

    /// The configuration that this process's environment and explicit values make.
    ///
    /// # Errors
    /// As [`Config::from_environment`]; and [`Error::BadSetting`] when a variable of ours holds
    /// no UTF-8.
    pub fn from_process<N: AsRef<str>, W: AsRef<str>>(
        registry: &Registry,
        explicit: impl IntoIterator<Item = (N, W)>,
    ) -> Result<Self> {
        let mut ours = Vec::new();
        for (variable, text) in std::env::vars_os() {
            let variable = variable.to_string_lossy().into_owned();
            if !variable.starts_with(PREFIX) {
                continue;
            }
            let text = text.into_string().map_err(|text| Error::BadSetting {
                name: variable.clone(),
                value: text.to_string_lossy().into_owned(),
                expected: "expected text in UTF-8".to_owned(),
            })?;
            ours.push((variable, text));
        }
        Self::from_environment(registry, ours, explicit)
    }

    /// Every setting at its default.
    #[must_use]
    pub fn defaults(registry: &Registry) -> Self {
        let entry = |setting: &Setting| Entry {
            setting: *setting,
            value: setting.default_value(),
            origin: Origin::Default,
            read_at: OnceLock::new(),
        };
        Self {
            registry: registry.clone(),
            entries: registry.settings().map(entry).collect(),
        }
    }

    /// Sets `name` explicitly, over whatever it was.
    ///
    /// # Errors
    /// [`Error::UnknownSetting`] and [`Error::BadSetting`].
    pub fn set(&mut self, name: &str, text: &str) -> Result<()> {
        let index = self.registry.index(name)?;
        self.assign(index, name, text, Origin::Explicit)
    }

    fn assign(&mut self, index: usize, given: &str, text: &str, origin: Origin) -> Result<()> {
        let entry = &mut self.entries[index];
        entry.value = entry
            .setting
            .parse(text)
            .map_err(|expected| Error::BadSetting {
                name: given.to_owned(),
                value: text.to_owned(),
                expected,
            })?;
        entry.origin = origin;
        Ok(())
    }

    /// The registry that this is a configuration of.
    #[must_use]
    pub const fn registry(&self) -> &Registry {
        &self.registry
    }

    /// All settings with their values. Looking here does not count as reading.
    pub fn entries(&self) -> impl ExactSizeIterator<Item = &Entry> {
        self.entries.iter()
    }

    /// The entry of the setting called `name`.
    ///
    /// # Errors
    /// [`Error::UnknownSetting`] with the nearest name.
    pub fn entry(&self, name: &str) -> Result<&Entry> {
        self.registry.index(name).map(|index| &self.entries[index])
    }

    /// The environment variables that make another process's configuration equal to this one:
    /// those of the settings that are not at their default.
    pub fn to_environment(&self) -> impl Iterator<Item = (String, String)> {
        self.entries
            .iter()
            .filter(|entry| entry.origin != Origin::Default)
            .map(|entry| (entry.setting.variable(), entry.value.to_string()))
    }

    /// A switch.
    ///
    /// # Panics
    /// When no switch of this name is registered.
    #[must_use]
    #[track_caller]
    pub fn flag(&self, name: &str) -> bool {
        match self.read(name) {
            Value::Flag(on) => *on,
            other => wrong_kind(name, "switch", other),
        }
    }

    /// A whole number.
    ///
    /// # Panics
    /// When no integer of this name is registered.
    #[must_use]
    #[track_caller]
    pub fn integer(&self, name: &str) -> u64 {
        match self.read(name) {
            Value::Integer(number) => *number,
            other => wrong_kind(name, "integer", other),
        }
    }

    /// A size in bytes.
    ///
    /// # Panics
    /// When no size of this name is registered.
    #[must_use]
    #[track_caller]
    pub fn bytes(&self, name: &str) -> usize {
        match self.read(name) {
            Value::Bytes(size) => {
                usize::try_from(*size).expect("the range of a size fits this machine")
            }
            other => wrong_kind(name, "size", other),
        }
    }

    /// A size in bytes; `None` where nobody chose one.
    ///
    /// # Panics
    /// When no such size of this name is registered.
    #[must_use]
    #[track_caller]
    pub fn bytes_or_auto(&self, name: &str) -> Option<usize> {
        match self.read(name) {
            Value::BytesOrAuto(size) => size
                .map(|size| usize::try_from(size).expect("the range of a size fits this machine")),
            other => wrong_kind(name, "size or auto", other),
        }
    }

    /// A duration.
    ///
    /// # Panics
    /// When no duration of this name is registered.
    #[must_use]
    #[track_caller]
    pub fn duration(&self, name: &str) -> Duration {
        match self.read(name) {
            Value::Duration(time) => *time,
            other => wrong_kind(name, "duration", other),
        }
    }

    /// One of the setting's names.
    ///
    /// # Panics
    /// When no choice of this name is registered.
    #[must_use]
    #[track_caller]
    pub fn choice(&self, name: &str) -> &'static str {
        match self.read(name) {
            Value::Choice(chosen) => chosen,
            other => wrong_kind(name, "choice", other),
        }
    }

    /// Some of the setting's names, with their details; at least one.
    ///
    /// # Panics
    /// When no such setting is registered.
    #[must_use]
    #[track_caller]
    pub fn stack(&self, name: &str) -> &[Chosen] {
        match self.read(name) {
            Value::Stack(parts) => parts,
            other => wrong_kind(name, "choice of several", other),
        }
    }

    /// One of the setting's names, with its parameters.
    ///
    /// # Panics
    /// When no such setting is registered.
    #[must_use]
    #[track_caller]
    pub fn named(&self, name: &str) -> &Spec {
        match self.read(name) {
            Value::Named(spec) => spec,
            other => wrong_kind(name, "name with parameters", other),
        }
    }

    /// A text.
    ///
    /// # Panics
    /// When no text of this name is registered.
    #[must_use]
    #[track_caller]
    pub fn text(&self, name: &str) -> &str {
        match self.read(name) {
            Value::Text(text) => text,
            other => wrong_kind(name, "text", other),
        }
    }

    #[track_caller]
    fn read(&self, name: &str) -> &Value {
        match self.entry(name) {
            Ok(entry) => {
                // A second reader of the same setting is no news.
                let _ = entry.read_at.set(Location::caller());
                &entry.value
            }
            Err(error) => panic!("{error}: its reader must declare it in the registry"),
        }
    }
}

#[track_caller]
fn wrong_kind(name: &str, asked: &str, value: &Value) -> ! {
    panic!("setting '{name}' is read as a {asked} and holds {value:?}")
}
