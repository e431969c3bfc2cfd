//! Names with parameters, `NAME:KEY=VALUE,...`: what there is, and what somebody chose of it.
//!
//! ```
//! use tagwire_base::named::{Named, Parameter, Spec};
//!
//! static BINS: Named = Named {
//!     name: "bins",
//!     parameters: &[Parameter::number("first", 64, 1..=4096, "Bins of an empty queue")],
//! };
//! let spec = Spec::parse("bins:first=8", &[&BINS])?;
//! assert_eq!((spec.name(), spec.number("first")), ("bins", 8));
//! assert_eq!(Spec::parse("bins:first=64", &[&BINS])?.to_string(), "bins");
//! let refused = Spec::parse("bins:frist=8", &[&BINS]).unwrap_err();
//! assert_eq!(refused.to_string(), "'bins' has no parameter 'frist'; did you mean 'first'?");
//! # Ok::<(), tagwire_base::named::Refused>(())
//! ```

use std::fmt;
use std::ops::RangeInclusive;

use crate::nearest::{distance, nearest};

/// What can be chosen by a name. One whose name begins with `./` stands for files: it is meant by each name with a slash, and
/// takes whatever parameters follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Named {
    /// Its name.
    pub name: &'static str,
    /// What may follow it.
    pub parameters: &'static [Parameter],
}

/// A parameter of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Its values.
    pub range: Range,
    /// What it does.
    pub help: &'static str,
}

impl Parameter {
    /// Returns a parameter that is a whole number within bounds.
    #[must_use]
    pub const fn number(
        name: &'static str,
        default: u32,
        bounds: RangeInclusive<u32>,
        help: &'static str,
    ) -> Self {
        let (min, max) = (*bounds.start(), *bounds.end());
        let range = Range::Number { default, min, max };
        Self { name, range, help }
    }
}

/// The values of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Range {
    /// A whole number; K, M and G behind it are 1024, 1024^2 and 1024^3.
    Number {
        /// When nobody gives it.
        default: u32,
        /// Smallest value.
        min: u32,
        /// Largest value.
        max: u32,
    },
    /// One of several words.
    Word {
        /// When nobody gives it.
        default: &'static str,
        /// The words.
        words: &'static [&'static str],
    },
}

/// A name with a value for each of its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    named: &'static Named,
    /// In the order of the parameters.
    values: Vec<Value>,
    file: Option<File>,
}

/// A file as it was named.
#[derive(Debug, Clone, PartialEq, Eq)]
struct File {
    path: String,
    parameters: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    Number(u32),
    Word(&'static str),
}

/// Why a text is no name with parameters.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// Nothing has the name.
    #[error("{}", unknown(.nearest, .known))]
    Name {
        /// The name as given.
        name: String,
        /// The nearest that exists, where one is close.
        nearest: Option<&'static str>,
        /// All that exist.
        known: Vec<&'static str>,
    },
    /// The name has no such parameter.
    #[error("'{name}' {}", lacking(.parameter, .nearest))]
    Parameter {
        /// The name.
        name: &'static str,
        /// The parameter as given.
        parameter: String,
        /// The nearest that the name has.
        nearest: Option<&'static str>,
    },
    /// A parameter has no such value.
    #[error("'{parameter}' of '{name}' is {range}, not '{value}'")]
    Value {
        /// The name.
        name: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// The values that it has, in words.
        range: String,
        /// The value as given.
        value: String,
    },
    /// A parameter is given twice.
    #[error("'{parameter}' of '{name}' is given twice")]
    Twice {
        /// The name.
        name: &'static str,
        /// The parameter.
        parameter: &'static str,
    },
}

impl Spec {
    /// Reads `NAME` or `NAME:KEY=VALUE,...`, where the name is one of `known`.
    ///
    /// # Errors
    /// [`Refused`], with the nearest right name where a name, parameter or word is wrong.
    pub fn parse(text: &str, known: &[&'static Named]) -> Result<Self, Refused> {
        let (name, parameters) = match text.split_once(':') {
            Some((name, parameters)) => (name, Some(parameters)),
            None => (text, None),
        };
        let files = known.iter().find(|named| named.is_of_files());
        if let Some(named) = files.filter(|_| name.contains('/')) {
            return Ok(Self {
                named,
                values: Vec::new(),
                file: Some(File {
                    path: name.to_owned(),
                    parameters: parameters.unwrap_or_default().to_owned(),
                }),
            });
        }
        let Some(named) = known.iter().find(|named| named.name == name) else {
            let names = || known.iter().map(|named| named.name);
            return Err(Refused::Name {
                name: name.to_owned(),
                nearest: nearest(name, names()),
                known: names().collect(),
            });
        };
        let mut values: Vec<Option<Value>> = vec![None; named.parameters.len()];
        for part in parameters.into_iter().flat_map(|text| text.split(',')) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let place = named.place(key)?;
            let parameter = &named.parameters[place];
            if values[place].is_some() {
                return Err(Refused::Twice {
                    name: named.name,
                    parameter: parameter.name,
                });
            }
            let read = parameter.range.read(value).ok_or_else(|| Refused::Value {
                name: named.name,
                parameter: parameter.name,
                range: parameter.range.to_string(),
                value: value.to_owned(),
            })?;
            values[place] = Some(read);
        }
        let all = named.parameters.iter().zip(values);
        let values =
            all.map(|(parameter, value)| value.unwrap_or_else(|| parameter.range.default()));
        Ok(Self {
            named,
            values: values.collect(),
            file: None,
        })
    }

    /// Reads several with commas between them: what has an equals sign and no colon before it is a further parameter.
    ///
    /// # Errors
    /// [`Refused`], for the first that is.
    pub fn parse_list(text: &str, known: &[&'static Named]) -> Result<Vec<Self>, Refused> {
        let read = |part: &String| Self::parse(part, known);
        Self::parts(text).iter().map(read).collect()
    }

    /// Returns the names of such a list, each with its parameters.
    #[must_use]
    pub fn parts(text: &str) -> Vec<String> {
        let mut parts: Vec<String> = Vec::new();
        for part in text.split(',') {
            let head = part.split('=').next().unwrap_or(part);
            let goes_on = part.contains('=') && !head.contains(':');
            match parts.last_mut().filter(|_| goes_on) {
                Some(last) => {
                    last.push(',');
                    last.push_str(part);
                }
                None => parts.push(part.to_owned()),
            }
        }
        parts
    }

    /// Returns the name.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.named.name
    }

    /// Whether every parameter has its default.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        let file = self.file.as_ref();
        self.given().next().is_none() && file.is_none_or(|file| file.parameters.is_empty())
    }

    /// Returns the path of a file and the parameters behind it, as they are written; `None` for what is no file.
    #[must_use]
    pub fn file(&self) -> Option<(&str, &str)> {
        let file = self.file.as_ref()?;
        Some((&file.path, &file.parameters))
    }

    /// Returns the same name of a file with another path and other parameters.
    #[must_use]
    pub fn with_file(&self, path: &str, parameters: &str) -> Self {
        Self {
            file: Some(File {
                path: path.to_owned(),
                parameters: parameters.to_owned(),
            }),
            ..self.clone()
        }
    }

    /// Returns the value of a number.
    ///
    /// # Panics
    /// When the name has no number of this name: a mistake of who registered it.
    #[must_use]
    #[track_caller]
    pub fn number(&self, parameter: &str) -> u32 {
        match self.value(parameter) {
            Some(Value::Number(number)) => number,
            _ => panic!("'{}' has no number '{parameter}'", self.named.name),
        }
    }

    /// Returns the value of a word.
    ///
    /// # Panics
    /// When the name has no word of this name: a mistake of who registered it.
    #[must_use]
    #[track_caller]
    pub fn word(&self, parameter: &str) -> &'static str {
        match self.value(parameter) {
            Some(Value::Word(word)) => word,
            _ => panic!("'{}' has no word '{parameter}'", self.named.name),
        }
    }

    fn value(&self, parameter: &str) -> Option<Value> {
        let place = self.named.place(parameter).ok()?;
        self.values.get(place).copied()
    }

    /// The parameters that have no default value, with what they have.
    fn given(&self) -> impl Iterator<Item = (&'static str, Value)> {
        let all = self.named.parameters.iter().zip(&self.values);
        let given = all.filter(|(parameter, value)| parameter.range.default() != **value);
        given.map(|(parameter, value)| (parameter.name, *value))
    }
}

/// As [`Spec::parse`] reads it; parameters that have their default are left out.
impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(File { path, parameters }) = &self.file {
            let colon = if parameters.is_empty() { "" } else { ":" };
            return write!(f, "{path}{colon}{parameters}");
        }
        f.write_str(self.named.name)?;
        for (place, (name, value)) in self.given().enumerate() {
            let before = if place == 0 { ':' } else { ',' };
            match value {
                Value::Number(number) => write!(f, "{before}{name}={number}")?,
                Value::Word(word) => write!(f, "{before}{name}={word}")?,
            }
        }
        Ok(())
    }
}

impl Named {
    /// Whether it stands for files.
    #[must_use]
    pub fn is_of_files(&self) -> bool {
        self.name.starts_with("./")
    }

    /// The place of a parameter.
    fn place(&'static self, key: &str) -> Result<usize, Refused> {
        let mut parameters = self.parameters.iter();
        let place = parameters.position(|parameter| parameter.name == key);
        place.ok_or_else(|| {
            let names = self.parameters.iter().map(|parameter| parameter.name);
            Refused::Parameter {
                name: self.name,
                parameter: key.to_owned(),
                nearest: names.min_by_key(|name| distance(name, key)),
            }
        })
    }
}

impl Range {
    /// Returns the value when nobody gives it, as it is written.
    #[must_use]
    pub fn default_text(&self) -> String {
        match self {
            Self::Number { default, .. } => default.to_string(),
            Self::Word { default, .. } => (*default).to_owned(),
        }
    }

    const fn default(&self) -> Value {
        match self {
            Self::Number { default, .. } => Value::Number(*default),
            Self::Word { default, .. } => Value::Word(default),
        }
    }

    fn read(&self, text: &str) -> Option<Value> {
        match self {
            Self::Number { min, max, .. } => {
                let number = crate::config::parse::bytes(text).ok()?;
                let number = u32::try_from(number).ok()?;
                (*min..=*max)
                    .contains(&number)
                    .then_some(Value::Number(number))
            }
            Self::Word { words, .. } => {
                let word = words.iter().find(|word| **word == text)?;
                Some(Value::Word(word))
            }
        }
    }
}

/// The values, in words.
impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number { min, max, .. } => write!(f, "{min} to {max}"),
            Self::Word { words, .. } => f.write_str(&words.join(", ")),
        }
    }
}

fn unknown(nearest: &Option<&str>, known: &[&str]) -> String {
    let all = known.join(", ");
    match nearest {
        Some(name) => format!("did you mean '{name}'? The choices are {all}"),
        None => format!("the choices are {all}"),
    }
}

fn lacking(parameter: &str, nearest: &Option<&str>) -> String {
    match nearest {
        Some(nearest) => format!("has no parameter '{parameter}'; did you mean '{nearest}'?"),
        None => "takes no parameters".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    static PLAIN: Named = Named {
        name: "list",
        parameters: &[],
    };
    static HASHED: Named = Named {
        name: "hashed",
        parameters: &[
            Parameter::number("bins", 64, 2..=1 << 20, "Bins"),
            Parameter {
                name: "key",
                range: Range::Word {
                    default: "both",
                    words: &["source", "tag", "both"],
                },
                help: "What is hashed",
            },
        ],
    };
    const KNOWN: &[&Named] = &[&PLAIN, &HASHED];

    #[test]
    fn what_is_given_is_read_and_written_and_the_rest_has_its_default() {
        for (text, bins, key, canonical) in [
            ("hashed", 64, "both", "hashed"),
            ("hashed:key=tag", 64, "tag", "hashed:key=tag"),
            (
                "hashed:key=tag,bins=1K",
                1024,
                "tag",
                "hashed:bins=1024,key=tag",
            ),
            ("hashed:bins=64", 64, "both", "hashed"),
        ] {
            let spec = Spec::parse(text, KNOWN).unwrap();
            assert_eq!(
                (spec.number("bins"), spec.word("key")),
                (bins, key),
                "{text}"
            );
            assert_eq!(spec.to_string(), canonical);
            assert_eq!(Spec::parse(canonical, KNOWN).unwrap(), spec);
            assert_eq!(spec.is_plain(), canonical == "hashed");
        }
    }

    #[test]
    fn what_has_a_slash_is_a_file_where_there_may_be_files() {
        static FILES: Named = Named {
            name: "./LIBRARY.so",
            parameters: &[],
        };
        let known: &[&Named] = &[&PLAIN, &HASHED, &FILES];
        for (text, path, parameters) in [
            ("./a.so", "./a.so", ""),
            ("/b/a.so:c=1,d", "/b/a.so", "c=1,d"),
        ] {
            let spec = Spec::parse(text, known).unwrap();
            assert_eq!(spec.file(), Some((path, parameters)));
            assert_eq!(spec.to_string(), text);
            assert_eq!(spec.is_plain(), parameters.is_empty());
        }
        let several = Spec::parse_list("list,./a.so:c=1,d=2,hashed", known).unwrap();
        let texts: Vec<String> = several.iter().map(ToString::to_string).collect();
        assert_eq!(texts, ["list", "./a.so:c=1,d=2", "hashed"]);
        assert!(Spec::parse("./a.so", KNOWN).is_err());
        assert_eq!(Spec::parse("list", known).unwrap().file(), None);
    }

    #[test]
    fn what_is_wrong_is_refused_with_what_is_right() {
        for (text, told) in [
            (
                "hashd",
                "did you mean 'hashed'? The choices are list, hashed",
            ),
            ("xyzzy", "the choices are list, hashed"),
            ("list:bins=1", "'list' takes no parameters"),
            ("list:", "'list' takes no parameters"),
            (
                "hashed:bin=8",
                "'hashed' has no parameter 'bin'; did you mean 'bins'?",
            ),
            (
                "hashed:kye=8",
                "'hashed' has no parameter 'kye'; did you mean 'key'?",
            ),
            (
                "hashed:bins=1",
                "'bins' of 'hashed' is 2 to 1048576, not '1'",
            ),
            ("hashed:bins", "'bins' of 'hashed' is 2 to 1048576, not ''"),
            (
                "hashed:bins=99999999999",
                "'bins' of 'hashed' is 2 to 1048576, not '99999999999'",
            ),
            (
                "hashed:key=tags",
                "'key' of 'hashed' is source, tag, both, not 'tags'",
            ),
            ("hashed:bins=8,bins=9", "'bins' of 'hashed' is given twice"),
        ] {
            assert_eq!(
                Spec::parse(text, KNOWN).unwrap_err().to_string(),
                told,
                "{text}"
            );
        }
    }

    #[test]
    fn a_list_keeps_parameters_with_their_name() {
        let texts = |list| -> Vec<String> {
            let specs = Spec::parse_list(list, KNOWN).unwrap();
            specs.iter().map(ToString::to_string).collect()
        };
        assert_eq!(texts("list"), ["list"]);
        assert_eq!(
            texts("list,hashed:bins=8,key=tag,hashed:key=source,list"),
            ["list", "hashed:bins=8,key=tag", "hashed:key=source", "list"]
        );
        assert!(Spec::parse_list("key=tag", KNOWN).is_err());
    }
}
