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

impl Choice {
    /// Returns it with another number of partitions.
    pub(crate) fn with(&self, partitions: u32) -> Self {
        Self {
            partitions,
            ..self.clone()
        }
    }

    /// Returns by how many microseconds a thread is late at the most.
    pub(crate) fn window_us(&self) -> f64 {
        let percent = self
            .noise
            .as_deref()
            .and_then(|noise| noise.split_once(':'));
        let percent = percent.and_then(|(_, percent)| percent.parse::<f64>().ok());
        self.ms as f64 * 10.0 * percent.unwrap_or(0.0)
    }

    /// Returns what a line of a plot is called.
    pub(crate) fn name(&self) -> String {
        let noise = self.noise.as_deref().unwrap_or("no noise");
        let cache = if self.cold { ", cold" } else { "" };
        format!(
            "{} partitions, {noise}, {} ms{cache}",
            self.partitions, self.ms
        )
    }
}
