//! What a setting is: its name, what values it takes, and who reads it.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use super::parse;
use crate::named::{Named, Spec};
use crate::nearest::nearest;

/// What a size is called that nobody has chosen.
const AUTO: &str = "auto";

/// One setting, as the crate that reads it declares it.
///
/// ```
/// use tagwire_base::config::Setting;
///
/// /// The settings of this crate.
/// pub const SETTINGS: &[Setting] = &[
///     Setting::bytes("pml::ob1", "eager-limit", 16 << 10, 0..=1 << 30,
///         "Longest message that is sent before it is matched"),
///     Setting::flag("pml::ob1", "checksum", false, "Check every payload"),
/// ];
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    name: &'static str,
    reader: &'static str,
    kind: Kind,
    help: &'static str,
}

/// The kind of a setting's value, with its default and its range.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// On or off.
    Flag {
        /// When nobody sets it.
        default: bool,
    },
    /// A whole number.
    Integer {
        /// When nobody sets it.
        default: u64,
        /// Smallest value.
        min: u64,
        /// Largest value.
        max: u64,
    },
    /// A size in bytes.
    Bytes {
        /// When nobody sets it.
        default: u64,
        /// Smallest value.
        min: u64,
        /// Largest value.
        max: u64,
    },
    /// A size in bytes, or `auto`, which it is when nobody sets it: whoever reads it knows best.
    BytesOrAuto {
        /// Smallest value.
        min: u64,
        /// Largest value.
        max: u64,
    },
    /// A duration.
    Duration {
        /// When nobody sets it.
        default: Duration,
        /// Smallest value.
        min: Duration,
        /// Largest value.
        max: Duration,
    },
    /// One of several names.
    Choice {
        /// When nobody sets it.
        default: &'static str,
        /// The names.
        names: &'static [&'static str],
    },
    /// Some of several names, with a plus between them; some may carry a file behind an at sign and a
    /// detail behind a colon.
    Stack {
        /// When nobody sets it.
        default: &'static str,
        /// The names.
        names: &'static [&'static str],
        /// Those of the names that take a file and a detail.
        detailed: &'static [&'static str],
    },
    /// One of several names with parameters, as [`Spec::parse`] reads it.
    Named {
        /// When nobody sets it.
        default: &'static str,
        /// The names.
        known: &'static [&'static Named],
    },
    /// Any text.
    Text {
        /// When nobody sets it.
        default: &'static str,
    },
}

/// A value of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Value {
    /// On or off.
    Flag(bool),
    /// A whole number.
    Integer(u64),
    /// A size in bytes.
    Bytes(u64),
    /// A size in bytes, or `None` for `auto`.
    BytesOrAuto(Option<u64>),
    /// A duration.
    Duration(Duration),
    /// One of the setting's names.
    Choice(&'static str),
    /// Some of the setting's names, each once or with different details.
    Stack(Vec<Chosen>),
    /// One of the setting's names with its parameters.
    Named(Spec),
    /// A text.
    Text(String),
}

/// One of the names of a setting, with what follows it: `NAME@FILE:DETAIL`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// The name.
    pub name: &'static str,
    /// The file behind an at sign, never empty.
    pub file: Option<String>,
    /// The detail behind a colon, never empty.
    pub detail: Option<String>,
}

/// In a list of settings, `reader` is the path of the module that reads the setting, without the
/// `tagwire_` of its crate, such as `pml::ob1`; `name` is lower case with dashes.
impl Setting {
    /// A switch.
    #[must_use]
    pub const fn flag(
        reader: &'static str,
        name: &'static str,
        default: bool,
        help: &'static str,
    ) -> Self {
        Self::new(reader, name, Kind::Flag { default }, help)
    }

    /// A whole number within a range.
    ///
    /// # Panics
    /// When the default is outside the range: in a constant, at compile time.
    #[must_use]
    pub const fn integer(
        reader: &'static str,
        name: &'static str,
        default: u64,
        range: RangeInclusive<u64>,
        help: &'static str,
    ) -> Self {
        let (min, max) = (*range.start(), *range.end());
        assert!(min <= default && default <= max, "default out of range");
        Self::new(reader, name, Kind::Integer { default, min, max }, help)
    }

    /// A size in bytes within a range.
    ///
    /// # Panics
    /// When the default is outside the range, or the range does not fit this machine's memory
    /// addresses: in a constant, at compile time.
    #[must_use]
    pub const fn bytes(
        reader: &'static str,
        name: &'static str,
        default: u64,
        range: RangeInclusive<u64>,
        help: &'static str,
    ) -> Self {
        let (min, max) = (*range.start(), *range.end());
        assert!(min <= default && default <= max, "default out of range");
        assert!(max <= usize::MAX as u64, "a size beyond this machine");
        Self::new(reader, name, Kind::Bytes { default, min, max }, help)
    }

    /// A size within a range, in bytes, or `auto`, the default.
    #[must_use]
    pub const fn bytes_or_auto(
        reader: &'static str,
        name: &'static str,
        range: RangeInclusive<u64>,
        help: &'static str,
    ) -> Self {
        let (min, max) = (*range.start(), *range.end());
        assert!(max <= usize::MAX as u64, "a size beyond this machine");
        Self::new(reader, name, Kind::BytesOrAuto { min, max }, help)
    }

    /// A duration within a range.
    ///
    /// # Panics
    /// When the default is outside the range: in a constant, at compile time.
    #[must_use]
    pub const fn duration(
        reader: &'static str,
        name: &'static str,
        default: Duration,
        range: RangeInclusive<Duration>,
        help: &'static str,
    ) -> Self {
        let (min, max) = (*range.start(), *range.end());
        assert!(
            min.as_nanos() <= default.as_nanos() && default.as_nanos() <= max.as_nanos(),
            "default out of range"
        );
        Self::new(reader, name, Kind::Duration { default, min, max }, help)
    }

    /// One of several names. That the default is one of them is checked by
    /// [`Registry::new`](super::Registry::new).
    #[must_use]
    pub const fn choice(
        reader: &'static str,
        name: &'static str,
        default: &'static str,
        names: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        Self::new(reader, name, Kind::Choice { default, names }, help)
    }

    /// One of several names with parameters, such as `a:key=1`. That the default is one of the names is checked by
    /// [`Registry::new`](super::Registry::new).
    #[must_use]
    pub const fn named(
        reader: &'static str,
        name: &'static str,
        default: &'static str,
        known: &'static [&'static Named],
        help: &'static str,
    ) -> Self {
        Self::new(reader, name, Kind::Named { default, known }, help)
    }

    /// Some of several names, such as `a+b:detail`; those of `detailed` take a detail. That the
    /// default is one of the names is checked by [`Registry::new`](super::Registry::new).
    #[must_use]
    pub const fn stack(
        reader: &'static str,
        name: &'static str,
        default: &'static str,
        names: &'static [&'static str],
        detailed: &'static [&'static str],
        help: &'static str,
    ) -> Self {
        let kind = Kind::Stack {
            default,
            names,
            detailed,
        };
        Self::new(reader, name, kind, help)
    }

    /// Any text, such as a path.
    #[must_use]
    pub const fn text(
        reader: &'static str,
        name: &'static str,
        default: &'static str,
        help: &'static str,
    ) -> Self {
        Self::new(reader, name, Kind::Text { default }, help)
    }

    const fn new(reader: &'static str, name: &'static str, kind: Kind, help: &'static str) -> Self {
        Self {
            name,
            reader,
            kind,
            help,
        }
    }

    /// The name, as it follows `--`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The module that reads the setting.
    #[must_use]
    pub const fn reader(&self) -> &'static str {
        self.reader
    }

    /// Kind, default and range.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// What the setting does, in one sentence.
    #[must_use]
    pub const fn help(&self) -> &'static str {
        self.help
    }

    /// The environment variable that sets it.
    ///
    /// ```
    /// # use tagwire_base::config::Setting;
    /// let setting = Setting::flag("base", "some-switch", true, "Switches something");
    /// assert_eq!(setting.variable(), "TAGWIRE_SOME_SWITCH");
    /// ```
    #[must_use]
    pub fn variable(&self) -> String {
        let name = self.name.replace('-', "_").to_ascii_uppercase();
        format!("{}{name}", super::PREFIX)
    }

    /// The value when nobody sets it.
    #[must_use]
    pub fn default_value(&self) -> Value {
        match self.kind {
            Kind::Flag { default } => Value::Flag(default),
            Kind::Integer { default, .. } => Value::Integer(default),
            Kind::Bytes { default, .. } => Value::Bytes(default),
            Kind::BytesOrAuto { .. } => Value::BytesOrAuto(None),
            Kind::Duration { default, .. } => Value::Duration(default),
            Kind::Choice { default, .. } => Value::Choice(default),
            Kind::Stack { default, .. } => Value::Stack(vec![Chosen {
                name: default,
                file: None,
                detail: None,
            }]),
            Kind::Named { default, known } => {
                Value::Named(Spec::parse(default, known).expect("the registry has checked it"))
            }
            Kind::Text { default } => Value::Text(default.to_owned()),
        }
    }

    /// Reads a value of this setting.
    ///
    /// # Errors
    /// What is accepted, when `text` is something else.
    pub fn parse(&self, text: &str) -> Result<Value, String> {
        match self.kind {
            Kind::Flag { .. } => parse::flag(text).map(Value::Flag),
            Kind::Integer { min, max, .. } => self.within(
                Value::Integer(parse::integer(text)?),
                |v| matches!(v, Value::Integer(n) if (min..=max).contains(n)),
            ),
            Kind::Bytes { min, max, .. } => self.within(
                Value::Bytes(parse::bytes(text)?),
                |v| matches!(v, Value::Bytes(n) if (min..=max).contains(n)),
            ),
            Kind::BytesOrAuto { .. } if text == AUTO => Ok(Value::BytesOrAuto(None)),
            Kind::BytesOrAuto { min, max } => self.within(
                Value::BytesOrAuto(Some(parse::bytes(text)?)),
                |v| matches!(v, Value::BytesOrAuto(Some(n)) if (min..=max).contains(n)),
            ),
            Kind::Duration { min, max, .. } => self.within(
                Value::Duration(parse::duration(text)?),
                |v| matches!(v, Value::Duration(d) if (min..=max).contains(d)),
            ),
            Kind::Choice { names, .. } => choose(text, names).map(Value::Choice),
            Kind::Stack {
                names, detailed, ..
            } => stack(text, names, detailed).map(Value::Stack),
            Kind::Named { known, .. } => Spec::parse(text, known)
                .map(Value::Named)
                .map_err(|refused| refused.to_string()),
            Kind::Text { .. } => Ok(Value::Text(text.to_owned())),
        }
    }

    fn within(&self, value: Value, fits: impl Fn(&Value) -> bool) -> Result<Value, String> {
        if fits(&value) {
            Ok(value)
        } else {
            Err(format!("expected {}", self.kind.range()))
        }
    }
}

/// The name of `names` that `text` is.
fn choose(text: &str, names: &'static [&'static str]) -> Result<&'static str, String> {
    if let Some(name) = names.iter().find(|name| **name == text) {
        return Ok(name);
    }
    let all = names.join(", ");
    Err(match nearest(text, names.iter().copied()) {
        Some(name) => format!("did you mean '{name}'? The choices are {all}"),
        None => format!("the choices are {all}"),
    })
}

/// The parts of `text`, each a name of `names` with its detail.
fn stack(
    text: &str,
    names: &'static [&'static str],
    detailed: &[&str],
) -> Result<Vec<Chosen>, String> {
    let mut parts: Vec<Chosen> = Vec::new();
    for part in text.split('+') {
        let split = |text, at| match str::split_once(text, at) {
            Some((before, after)) => (before, Some(after)),
            None => (text, None),
        };
        // A detail may have at signs of its own.
        let (head, detail) = split(part, ':');
        let (name, file) = split(head, '@');
        let name = choose(name, names)?;
        for (sign, word, after) in [('@', "at sign", file), (':', "colon", detail)] {
            match after {
                Some("") => return Err(format!("'{name}{sign}' lacks what the {word} announces")),
                Some(_) if !detailed.contains(&name) => {
                    return Err(format!("'{name}' takes nothing after it"));
                }
                _ => {}
            }
        }
        let chosen = Chosen {
            name,
            file: file.map(str::to_owned),
            detail: detail.map(str::to_owned),
        };
        if parts.contains(&chosen) {
            return Err(format!("'{chosen}' is given twice"));
        }
        parts.push(chosen);
    }
    Ok(parts)
}

impl Kind {
    /// The kind's name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Flag { .. } => "switch",
            Self::Integer { .. } => "integer",
            Self::Bytes { .. } => "bytes",
            Self::BytesOrAuto { .. } => "bytes or auto",
            Self::Duration { .. } => "duration",
            Self::Choice { .. } => "choice",
            Self::Stack { .. } => "choices",
            Self::Named { .. } => "choice",
            Self::Text { .. } => "text",
        }
    }

    /// What values are accepted, in words.
    #[must_use]
    pub fn range(&self) -> String {
        match self {
            Self::Flag { .. } => "on or off".to_owned(),
            Self::Integer { min, max, .. } => format!("{min} to {max}"),
            Self::Bytes { min, max, .. } => {
                format!(
                    "{} to {}",
                    parse::format_bytes(*min),
                    parse::format_bytes(*max)
                )
            }
            Self::BytesOrAuto { min, max } => format!(
                "{AUTO}, or {} to {}",
                parse::format_bytes(*min),
                parse::format_bytes(*max)
            ),
            Self::Duration { min, max, .. } => format!(
                "{} to {}",
                parse::format_duration(*min),
                parse::format_duration(*max)
            ),
            Self::Choice { names, .. } => names.join(", "),
            Self::Stack {
                names, detailed, ..
            } => {
                let shape = |name: &&str| match detailed.contains(name) {
                    true => format!("{name}, {name}:..."),
                    false => (*name).to_owned(),
                };
                names.iter().map(shape).collect::<Vec<_>>().join(", ")
            }
            Self::Named { known, .. } => {
                let shape = |named: &&Named| match named.parameters {
                    [] => named.name.to_owned(),
                    _ => format!("{0}, {0}:...", named.name),
                };
                known.iter().map(shape).collect::<Vec<_>>().join(", ")
            }
            Self::Text { .. } => "any text".to_owned(),
        }
    }
}

/// As the parser of the same kind reads it.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Flag(true) => f.write_str("on"),
            Self::Flag(false) => f.write_str("off"),
            Self::Integer(number) => number.fmt(f),
            Self::Bytes(size) => f.write_str(&parse::format_bytes(*size)),
            Self::BytesOrAuto(Some(size)) => f.write_str(&parse::format_bytes(*size)),
            Self::BytesOrAuto(None) => f.write_str(AUTO),
            Self::Duration(time) => f.write_str(&parse::format_duration(*time)),
            Self::Choice(name) => f.write_str(name),
            Self::Stack(parts) => {
                for (place, part) in parts.iter().enumerate() {
                    let plus = if place == 0 { "" } else { "+" };
                    write!(f, "{plus}{part}")?;
                }
                Ok(())
            }
            Self::Named(spec) => spec.fmt(f),
            Self::Text(text) => f.write_str(text),
        }
    }
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)?;
        for (sign, after) in [('@', &self.file), (':', &self.detail)] {
            if let Some(after) = after {
                write!(f, "{sign}{after}")?;
            }
        }
        Ok(())
    }
}
