//! The words of the options and of the rows.

use clap::ValueEnum;
use serde::Serialize;

/// Which queue is searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Queue {
    Posted,
    Unexpected,
}

/// What a wildcard leaves open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WildKind {
    Source,
    Tag,
    Both,
}

/// Where the wildcards lie among the entries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WildAt {
    Front,
    Spread,
}

/// What the keys of the entries look like that do not match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Keys {
    Tags,
    Sources,
    Grid,
    Random,
    CollideUcx,
    CollideFuzzy,
}

/// How entries lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Layout {
    Fresh,
    Aged,
    Shuffled,
}

/// What the caches hold before a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Cache {
    Hot,
    Cold,
}

/// Returns the word of the command line for such a value.
pub(super) fn word(value: impl ValueEnum) -> String {
    let value = value.to_possible_value();
    value.map_or_else(String::new, |value| value.get_name().to_owned())
}

/// How rows are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
    Csv,
}
