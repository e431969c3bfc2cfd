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

/// How entries lie in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Layout {
    Fresh,
    Shuffled,
}

/// What the caches hold before a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Cache {
    Hot,
    Cold,
}

/// How rows are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    Text,
    Json,
    Csv,
}
