//! The option `--granularity`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// In which pieces a buffer leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Granularity {
    /// As one message for each peer, after the join, one peer after the other
    Bsp,
    /// The same to all peers at once
    BspAll,
    /// In so many bins, each as soon as its last thread has arrived
    Bins(u32),
    /// In the pieces of threads, each as soon as its thread has arrived
    Each,
}

impl Granularity {
    /// Into how many messages a buffer of so many threads is cut.
    pub(crate) const fn parts(self, threads: u32) -> u32 {
        match self {
            Self::Bsp | Self::BspAll => 1,
            Self::Bins(bins) => bins,
            Self::Each => threads,
        }
    }

    /// Whether pieces leave before all threads have arrived.
    pub(crate) const fn is_early(self) -> bool {
        matches!(self, Self::Bins(_) | Self::Each)
    }
}

impl fmt::Display for Granularity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bsp => f.write_str("bsp"),
            Self::BspAll => f.write_str("bsp-all"),
            Self::Bins(bins) => write!(f, "bins:{bins}"),
            Self::Each => f.write_str("each"),
        }
    }
}

impl FromStr for Granularity {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.split_once(':')) {
            ("bsp", _) => Ok(Self::Bsp),
            ("bsp-all", _) => Ok(Self::BspAll),
            ("each", _) => Ok(Self::Each),
            (_, Some(("bins", count))) => match count.parse() {
                Ok(count @ 1..=1024) => Ok(Self::Bins(count)),
                _ => Err(format!("'{count}' is no number of bins from 1 to 1024")),
            },
            _ => Err(format!(
                "'{text}' is no granularity: expected bsp, bsp-all, bins:COUNT or each"
            )),
        }
    }
}

/// What carries pieces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Interface {
    /// Messages
    P2p,
    /// Partitioned operations with each policy of --policy
    Partitioned,
    /// Writes into the receivers' memory
    Rma,
}
