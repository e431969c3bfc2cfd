//! What plots show.

use serde::Deserialize;

/// What the plot of an item shows, where that is no figure over sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Shows {
    /// The time of each of the short messages beside a long one.
    Shorts,
    /// How many threads arrive when.
    Arrivals,
    /// What a program gains by the shares of profiles, over ranks.
    Gains,
}
