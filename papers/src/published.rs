//! The values that the papers publish.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A published value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// What claims name it by: paper, item, and what tells it from the others.
    pub id: String,
    /// Number and short name of the paper.
    pub paper: String,
    /// The figure or table, or where else it stands.
    pub item: String,
    /// What it is a value of.
    pub quantity: String,
    /// Under what conditions.
    pub conditions: serde_json::Map<String, Value>,
    /// The value: a number, or a word for a shape.
    pub value: Value,
    /// The unit of numbers.
    pub unit: Option<String>,
    /// `number`, `ratio`, `percent`, `shape`.
    pub kind: String,
}

impl Published {
    /// Returns the value with its unit, or the words of a shape.
    #[must_use]
    pub fn told(&self) -> String {
        let unit = match self.unit.as_deref() {
            Some("ratio") | None => String::new(),
            Some("percent") => " %".to_owned(),
            Some("bytes") => " B".to_owned(),
            Some(unit) => format!(" {unit}"),
        };
        match &self.value {
            Value::String(words) => words.clone(),
            value => format!("{value}{unit}"),
        }
    }
}

/// Returns all of them.
///
/// # Panics
/// Never: a test reads them.
pub fn published() -> &'static [Published] {
    static ALL: LazyLock<Vec<Published>> = LazyLock::new(|| {
        serde_json::from_str(include_str!("../data/published.json"))
            .expect("the published values are right")
    });
    &ALL
}

/// Returns those of an item by paper and number, such as `004 fig 2a`.
pub(crate) fn of_figure(figure: &str) -> impl Iterator<Item = &'static Published> {
    let mut words = figure.split_whitespace();
    let paper = words.next().unwrap_or_default().to_owned();
    let item: String = words.collect();
    published()
        .iter()
        .filter(move |one| one.paper.starts_with(&paper) && is_of(&one.item, &item))
}

/// Whether it is the figure, or panels of it: `fig5a` of `fig5`.
fn is_of(item: &str, figure: &str) -> bool {
    let panel = item.strip_prefix(figure);
    panel.is_some_and(|panel| panel.chars().all(|letter| letter.is_ascii_lowercase()))
}

/// Which published values of an item are drawn, and where.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Drawn {
    /// What they are values of.
    quantity: String,
    /// The figure of `tagwire bench` that means the same.
    figure: String,
    /// The size at which they were measured.
    size: u64,
}

/// A published value with its place in a plot. It was measured on another machine.
#[derive(Debug, Clone, PartialEq)]
pub struct PublishedPoint {
    /// Of which library, and in which case.
    pub of: String,
    /// The figure of `tagwire bench` that means the same, such as `latency_us`.
    pub figure: String,
    /// The message size in bytes.
    pub size: u64,
    /// The value, in the figure's unit.
    pub value: f64,
}

/// Returns the published values of an item that are drawn.
pub(crate) fn drawn(figure: &str, drawn: &[Drawn]) -> impl Iterator<Item = &'static Published> {
    let quantities = drawn.iter().map(|one| &one.quantity);
    quantities
        .flat_map(move |quantity| of_figure(figure).filter(move |one| one.quantity == *quantity))
}

/// Published values that no claim answers.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Unanswered {
    /// Why.
    pub(crate) why: String,
    of: Vec<String>,
}

impl Unanswered {
    /// Returns their ids.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        self.of.iter().map(String::as_str)
    }
}

/// Returns all of them, by reasons.
pub(crate) fn unanswered() -> &'static [Unanswered] {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct All {
        unanswered: Vec<Unanswered>,
    }
    static ALL: LazyLock<Vec<Unanswered>> = LazyLock::new(|| {
        let all: All = toml::from_str(include_str!("../data/unanswered.toml"))
            .expect("the list of what no claim answers is right");
        all.unanswered
    });
    &ALL
}

/// Returns the values of an item that are drawn.
pub(crate) fn points(figure: &str, drawn: &[Drawn]) -> Vec<PublishedPoint> {
    let of = |published: &Published| {
        let told = ["library", "case"].map(|key| published.conditions.get(key)?.as_str());
        told.into_iter().flatten().collect::<Vec<_>>().join(", ")
    };
    let placed = drawn.iter().flat_map(|drawn| {
        let values = of_figure(figure).filter(|one| one.quantity == drawn.quantity);
        values.filter_map(|published| {
            Some(PublishedPoint {
                of: of(published),
                figure: drawn.figure.clone(),
                size: drawn.size,
                value: published.value.as_f64()?,
            })
        })
    });
    placed.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::all;

    /// Names differ, and the figure has the unit that the paper has.
    #[test]
    fn values_with_a_place_are_points() {
        let mut count = 0;
        for item in all().iter().filter(|item| !item.points().is_empty()) {
            let points = item.points();
            let mut names: Vec<_> = points.iter().map(|point| &point.of).collect();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), points.len(), "{}", item.name);
            for point in &points {
                let unit = match &*point.figure {
                    "latency_us" => "us",
                    "rate_msg_s" => "messages/s",
                    other => panic!("the unit of {other} is not known"),
                };
                let is_same = |one: &&Published| {
                    one.value.as_f64() == Some(point.value) && one.unit.as_deref() == Some(unit)
                };
                assert!(
                    of_figure(&item.figure).any(|one| is_same(&one)),
                    "{point:?}"
                );
            }
            count += points.len();
        }
        assert_eq!(count, 19);
        let first = &crate::find("mtl/fig2a").unwrap()[0].points()[0];
        assert_eq!((&*first.of, first.size, first.value), ("Cray MPI", 0, 4.78));
        let table = crate::find("threads/table2").unwrap()[0].points();
        assert_eq!(
            (&*table[3].of, table[3].value),
            ("Sun MPI, 4T-4T", 465_120.0)
        );
    }

    #[test]
    fn all_values_are_read() {
        assert_eq!(published().len(), 344);
        assert_eq!(of_figure("004 fig 2a").count(), 5);
        // The panels of a figure are of it, and other figures are not.
        assert_eq!(of_figure("001 fig 5").count(), 43);
        assert_eq!(of_figure("003 fig 1").count(), 1);
        assert_eq!(of_figure("004 table 1").count(), 58);
    }
}
