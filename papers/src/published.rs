//! The values that the papers publish.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A published value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
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
        .filter(move |one| one.paper.starts_with(&paper) && one.item == item)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_values_are_read() {
        assert_eq!(published().len(), 344);
        assert_eq!(of_figure("004 fig 2a").count(), 5);
        assert_eq!(of_figure("004 table 1").count(), 58);
    }
}
