//! Of which places claims are.

use serde::Deserialize;

/// The key of rows of a simulated machine that says what stands for it here.
pub(crate) const STANDS_FOR: &str = "stands_for";

/// Of which places a claim is, where it is not of all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum On {
    /// Shared memory, and MPI libraries there.
    Shared,
    /// Our transports over a network, and MPI libraries that are told to use one.
    Network,
}

impl On {
    /// Returns its name in data.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Network => "network",
        }
    }
}
