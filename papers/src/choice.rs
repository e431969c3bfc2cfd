//! Which rows of partitioned operations a claim is about.

use serde::Deserialize;

/// Which rows a series has.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Choice {
    pub(crate) partitions: u32,
    /// As in rows: `uniform:4`; without it none.
    pub(crate) noise: Option<String>,
    /// Milliseconds of computation.
    pub(crate) ms: u64,
    #[serde(default)]
    pub(crate) cold: bool,
}
