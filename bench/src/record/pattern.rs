//! The keys that only rows of patterns have.

use std::path::Path;

use serde::{Deserialize, Serialize};

/// How the threads of a grid of ranks communicated.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PatternKeys {
    /// The series in one word: `partitioned:default/artefact@4`, `7-point/bins:2:rma@4`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<String>,
    /// The sides of the grid: `2x2x2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grid: Option<String>,
    /// `single`, `multiple`, `partitioned` or `rma`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<String>,
    /// What moved the bytes: `messages`, `partitioned`, `rma`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub middleware: Option<String>,
    /// The neighbours of a rank: `7-point`, `27-point`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stencil: Option<String>,
    /// When threads arrived: `laggard:4%`, `normal:2000ns`, `kde:FILE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<String>,
    /// In which pieces buffers left: `bsp`, `bsp-all`, `bins:2`, `each`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granularity: Option<String>,
    /// How many threads of a kernel arrived when: where the first bin begins and how wide bins are, in microseconds, and counts:
    /// `120:10:3,17,2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<String>,
    /// How bytes were counted, where not those that moved: `artefact`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accounting: Option<String>,
}

impl PatternKeys {
    /// What tells series apart, in one word; `None` of a row of another kind.
    pub(crate) fn label(&self, carrier: Option<&str>) -> Option<String> {
        let mode = self.granularity.as_deref().or(self.mode.as_deref())?;
        // What threads do says more of those that work than their neighbours.
        let arrivals = self.arrivals.as_deref().unwrap_or_default();
        let kernel = arrivals.starts_with("kernel:").then_some(arrivals);
        let stencil = kernel.or(self.stencil.as_deref());
        let mode = stencil.map_or_else(|| mode.to_owned(), |stencil| format!("{stencil}/{mode}"));
        let density = arrivals.strip_prefix("kde:").map(Path::new);
        let density = density.and_then(|file| file.file_stem()?.to_str());
        let mode = density.map_or_else(|| mode.clone(), |density| format!("kde:{density}/{mode}"));
        let accounting = self.accounting.as_deref().map(|it| format!("/{it}"));
        let carrier = carrier.map(|carrier| format!(":{carrier}"));
        let rest = [carrier, accounting].into_iter().flatten();
        Some(rest.fold(mode, |name, part| name + &part))
    }
}
