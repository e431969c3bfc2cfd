//! References to published values: a claim names them by their `id`, and has none of them twice.

use serde::{Deserialize, Deserializer, de};

use crate::answer::{Band, Extreme};
use crate::known::Known;
use crate::published::{Published, published};
use crate::words::short;

/// A number of a claim.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Number {
    /// A published one.
    Published(&'static Published, f64),
    /// One of ours: what counts as even, say, where the paper has a word and no number.
    Ours(f64),
}

impl Number {
    pub(crate) const fn value(self) -> f64 {
        match self {
            Self::Published(_, value) | Self::Ours(value) => value,
        }
    }

    /// Returns the published value that it is.
    pub(crate) const fn published(self) -> Option<&'static Published> {
        match self {
            Self::Published(one, _) => Some(one),
            Self::Ours(_) => None,
        }
    }

    /// Returns the size in bytes that it is.
    pub(crate) const fn size(self) -> u64 {
        self.value() as u64
    }

    /// Returns what lies about it: differences where it is in percent, otherwise ratios.
    pub(crate) fn band(self, known: Known) -> Band {
        self.of_its_kind(self.value(), self.value(), known)
    }

    /// Returns what lies between two values of its kind. Of a simulation that is what lies between the published ends themselves, as far as
    /// these are known: they say how far figures go, and those do not scatter.
    pub(crate) fn between(self, [low, high]: [f64; 2], known: Known) -> Band {
        match known {
            Known::Simulated if low < high && self.is_percent() => {
                Band::exactly(low - known.percent(), high + known.percent())
            }
            Known::Simulated if low < high => Band::of_ends(low, high),
            _ => self.of_its_kind(low, high, known),
        }
    }

    /// Returns that end of a range of values of its kind which is further from no effect, where figures have to come near it.
    pub(crate) fn extreme(self, [low, high]: [f64; 2], known: Known) -> Extreme {
        let far = |value: f64| match self.is_percent() {
            true => value.abs(),
            false => value.ln().abs(),
        };
        let is_low = far(low) > far(high);
        let value = if is_low { low } else { high };
        Extreme {
            value,
            is_low,
            band: self.of_its_kind(value, value, known),
        }
    }

    fn of_its_kind(self, low: f64, high: f64, known: Known) -> Band {
        match self.is_percent() {
            true => Band::of_differences(low, high, known.percent()),
            false => Band::of_ratios(low, high),
        }
    }

    fn is_percent(self) -> bool {
        let unit = self.published().and_then(|one| one.unit.as_deref());
        unit == Some("percent")
    }

    pub(crate) fn told(self, to: Option<Self>) -> String {
        match to {
            Some(to) => format!("{} to {}", short(self.value()), short(to.value())),
            None => short(self.value()),
        }
    }
}

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Either {
            Id(String),
            Number(f64),
        }
        match Either::deserialize(deserializer)? {
            Either::Number(value) => Ok(Self::Ours(value)),
            Either::Id(id) => {
                let one = by_id(&id).map_err(de::Error::custom)?;
                let value = one.value.as_f64();
                let value = value.ok_or_else(|| {
                    de::Error::custom(format!("the published value '{id}' is no number"))
                })?;
                Ok(Self::Published(one, value))
            }
        }
    }
}

/// Returns the published value with an id, or says which is nearest.
pub(crate) fn by_id(id: &str) -> Result<&'static Published, String> {
    let found = published().iter().find(|one| one.id == id);
    found.ok_or_else(|| {
        let near = nearest(id, published().iter().map(|one| one.id.as_str()));
        format!("there is no published value '{id}'; the nearest is '{near}'")
    })
}

/// Returns the name that takes fewest changes of letters.
pub(crate) fn nearest<'n>(name: &str, all: impl Iterator<Item = &'n str>) -> &'n str {
    all.min_by_key(|known| distance(name, known))
        .unwrap_or_default()
}

/// Returns the number of the first line that has some text; 1 where none has.
pub(crate) fn line_of(text: &str, part: &str) -> usize {
    let line = text.lines().position(|line| line.contains(part));
    line.map_or(1, |line| line + 1)
}

/// How many letters have to be changed, added or left out (Levenshtein 1966).
fn distance(one: &str, other: &str) -> usize {
    let mut before: Vec<usize> = (0..=other.len()).collect();
    for (row, letter) in one.bytes().enumerate() {
        let mut now = vec![row + 1];
        for (column, with) in other.bytes().enumerate() {
            let changed = before[column] + usize::from(letter != with);
            now.push(changed.min(before[column + 1] + 1).min(now[column] + 1));
        }
        before = now;
    }
    before[other.len()]
}

/// Text of a claim, with published values by their ids in braces.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Text {
    text: String,
    of: Vec<&'static Published>,
}

impl Text {
    /// Returns it with the values in their places.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the values that it has.
    pub(crate) fn of(&self) -> &[&'static Published] {
        &self.of
    }

    fn parse(template: &str) -> Result<Self, String> {
        let (mut text, mut of, mut rest) = (String::new(), Vec::new(), template);
        while let Some((before, behind)) = rest.split_once('{') {
            let (id, behind) = behind
                .split_once('}')
                .ok_or_else(|| format!("'{template}' has no end of an id"))?;
            let one = by_id(id)?;
            text += before;
            text += &one.told();
            of.push(one);
            rest = behind;
        }
        text += rest;
        Ok(Self { text, of })
    }
}

impl<'de> Deserialize<'de> for Text {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let template = String::deserialize(deserializer)?;
        Self::parse(&template).map_err(de::Error::custom)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Line {
        value: Number,
    }

    #[test]
    fn numbers_are_published_or_ours() {
        let line: Line =
            toml::from_str("value = '000/fig4/overhead/partitions-32/small/max'").unwrap();
        assert!(matches!(line.value, Number::Published(one, 59.4) if one.item == "fig4"));
        let line: Line = toml::from_str("value = 3").unwrap();
        assert_eq!(line.value, Number::Ours(3.0));
    }

    /// The line and the nearest right name.
    #[test]
    fn wrong_ids_are_told_with_their_line() {
        let wrong = toml::from_str::<Line>("\n\nvalue = '000/fig4/overhead/partition-1/max'");
        let told = wrong.unwrap_err().to_string();
        assert!(told.contains("line 3"), "{told}");
        assert!(
            told.contains("the nearest is '000/fig4/overhead/partitions-1/max'"),
            "{told}"
        );
        let shape = toml::from_str::<Line>("value = '000/fig4/overhead-by-size'");
        assert!(shape.unwrap_err().to_string().contains("is no number"));
        assert!(Text::parse("{000/fig9}").unwrap_err().contains("nearest"));
        assert!(Text::parse("{000/fig9").unwrap_err().contains("no end"));
    }

    #[test]
    fn texts_have_the_values() {
        let text = Text::parse("{004/fig2a/half-round-trip-0-b/cray-mpi} against {004/fig2a/half-round-trip-0-b/open-mpi-cm}").unwrap();
        assert_eq!(text.text(), "4.78 us against 4.91 us");
        assert_eq!(text.of().len(), 2);
    }
}
