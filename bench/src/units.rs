//! What communicates at once: so many pairs of processes, or so many threads of one pair.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub(crate) mod comparison;

/// The most that a unit may have.
const MOST: u32 = 1024;

/// What a unit is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum UnitKind {
    /// Processes of one thread each.
    Processes,
    /// Threads of a process on each side.
    Threads,
}

impl UnitKind {
    /// The name in commands and reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Processes => "processes",
            Self::Threads => "threads",
        }
    }
}

/// So many processes or threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Unit {
    /// Of what.
    pub kind: UnitKind,
    /// How many.
    pub count: u32,
}

impl Unit {
    pub(crate) const fn processes(count: u32) -> Self {
        Self {
            kind: UnitKind::Processes,
            count,
        }
    }

    #[cfg(test)]
    pub(crate) const fn threads(count: u32) -> Self {
        Self {
            kind: UnitKind::Threads,
            count,
        }
    }

    pub(crate) fn is_threads(self) -> bool {
        self.kind == UnitKind::Threads
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.kind.as_str(), self.count)
    }
}

/// A list of units, each of which is a series. A number that is not told is the test's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Units(Vec<(UnitKind, Option<u32>)>);

impl Units {
    /// Returns the units, where one without a number has `own`.
    pub(crate) fn resolve(&self, own: u32) -> Vec<Unit> {
        let unit = |&(kind, count): &(UnitKind, Option<u32>)| Unit {
            kind,
            count: count.unwrap_or(own),
        };
        self.0.iter().map(unit).collect()
    }
}

impl FromStr for Units {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut units = Vec::new();
        for piece in text.split(',').map(str::trim) {
            let (name, number) = match piece.split_once(':') {
                Some((name, number)) => (name, Some(number)),
                None => (piece, None),
            };
            let kind = match name {
                "processes" => UnitKind::Processes,
                "threads" => UnitKind::Threads,
                _ => {
                    return Err(format!(
                        "'{piece}' is no unit: expected processes:N or threads:N, such as processes:4,threads:4"
                    ));
                }
            };
            let count = match number.map(str::parse) {
                None => None,
                Some(Ok(count @ 1..=MOST)) => Some(count),
                Some(_) => return Err(format!("'{piece}': the number is from 1 to {MOST}")),
            };
            if units.contains(&(kind, count)) {
                return Err(format!("'{piece}' is given twice"));
            }
            units.push((kind, count));
        }
        Ok(Self(units))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_a_list_of_kinds_and_numbers() {
        let units: Units = "processes:4, threads".parse().unwrap();
        let units = units.resolve(2);
        assert_eq!(units, [Unit::processes(4), Unit::threads(2)]);
        assert_eq!(units[0].to_string(), "processes:4");
        for (text, reason) in [
            ("", "no unit"),
            ("cores:4", "processes:N or threads:N"),
            ("4", "no unit"),
            ("threads:0", "from 1 to 1024"),
            ("threads:1025", "from 1 to 1024"),
            ("processes:-1", "from 1 to 1024"),
            ("processes:4,processes:4", "given twice"),
        ] {
            let error = text.parse::<Units>().unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
