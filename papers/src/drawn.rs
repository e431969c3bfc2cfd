//! What plots show.

use serde::Deserialize;

use crate::choice::Choice;
use crate::on::On;
use crate::rows::Place;

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
    /// By how much a program is faster with one library than with another, over its time in the library.
    Projections,
}

/// A plot of a figure over sizes, and its lines. Without units and partitions a line is all that a place has.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Draw {
    /// What distinguishes it from other plots of the item.
    #[serde(default)]
    pub(crate) panel: String,
    pub(crate) figure: String,
    /// The figure of published points, where these are put at another one.
    pub(crate) points: Option<String>,
    /// Another figure that is drawn with it, and what its lines are called.
    pub(crate) beside: Option<[String; 2]>,
    on: Option<On>,
    whose: Option<Whose>,
    /// The policies of partitions, where these are not all.
    #[serde(default)]
    policies: Vec<String>,
    /// Lines of partitioned operations.
    #[serde(default)]
    pub(crate) parts: Vec<Choice>,
    /// Lines by names of units; a star stands for whatever is there.
    #[serde(default)]
    pub(crate) units: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Whose {
    Ours,
    Peers,
}

impl Draw {
    /// Returns a plot of all that has a figure.
    pub(crate) fn of(figure: &str) -> Self {
        Self {
            figure: figure.to_owned(),
            ..Self::default()
        }
    }

    /// Whether lines of a place are drawn.
    pub(crate) fn has(&self, place: &Place) -> bool {
        let is_on = self
            .on
            .is_none_or(|on| place.is_network() == (on == On::Network));
        let is_whose = self
            .whose
            .is_none_or(|whose| place.is_foreign() == (whose == Whose::Peers));
        is_on && is_whose
    }

    /// Whether lines of a policy are drawn.
    pub(crate) fn has_policy(&self, policy: &str) -> bool {
        self.policies.is_empty() || self.policies.iter().any(|one| one == policy)
    }

    /// Whether a published range that is of some places stands beside its lines.
    pub(crate) fn is_on(&self, on: Option<On>) -> bool {
        self.on.is_none() || on.is_none() || self.on == on
    }
}
