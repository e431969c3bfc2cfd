//! What the entries of a queue differ by from the one that matches.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use tagwire_base::Rank;
use tagwire_base::nearest::nearest;

/// What the entries ahead of the one that matches differ by from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Spread {
    /// By their tags: all are of the same source.
    #[default]
    Tags,
    /// By their sources: all have the same tag.
    Sources,
}

impl Spread {
    const ALL: [Self; 2] = [Self::Tags, Self::Sources];

    /// Returns its name, as options and reports have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tags => "tags",
            Self::Sources => "sources",
        }
    }
}

impl FromStr for Spread {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let names = Self::ALL.map(Self::name);
        let found = Self::ALL.into_iter().find(|one| one.name() == text);
        found.ok_or_else(|| match nearest(text, names) {
            Some(near) => format!("'{text}' is none of tags, sources; did you mean '{near}'?"),
            None => format!("'{text}' is none of tags, sources"),
        })
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The sources of a rank's entries: all ranks of a job in turn, but for the rank itself and its peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sources {
    /// The lower one of the two ranks that are none.
    low: u32,
    high: u32,
    count: u32,
}

impl Sources {
    /// Returns those of `rank`; `None` where there is no other rank.
    pub(crate) fn of(rank: Rank, peer: Rank, ranks: u32) -> Option<Self> {
        let (rank, peer) = (rank.as_u32(), peer.as_u32());
        Some(Self {
            low: rank.min(peer),
            high: rank.max(peer),
            count: ranks.checked_sub(2).filter(|count| *count > 0)?,
        })
    }

    /// Returns the source of the entry of this number.
    pub(crate) fn source(self, number: u32) -> Rank {
        let place = number % self.count;
        let place = place + u32::from(place >= self.low);
        Rank::new(place + u32::from(place >= self.high))
    }

    /// Returns how many of so many entries are of `source`.
    pub(crate) fn share(self, source: Rank, entries: u32) -> u32 {
        let first = (0..self.count).find(|number| self.source(*number) == source);
        first.map_or(0, |first| {
            let behind = entries.saturating_sub(first);
            behind.div_ceil(self.count)
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use super::*;

    #[test]
    fn sources_are_the_other_ranks_in_turn() {
        let sources = |rank, peer, ranks| {
            let sources = Sources::of(Rank::new(rank), Rank::new(peer), ranks).unwrap();
            (0..5)
                .map(|number| sources.source(number).as_u32())
                .collect::<Vec<_>>()
        };
        assert_eq!(sources(0, 1, 5), [2, 3, 4, 2, 3]);
        assert_eq!(sources(1, 0, 3), [2, 2, 2, 2, 2]);
        assert_eq!(sources(3, 1, 4), [0, 2, 0, 2, 0]);
        assert_eq!(sources(0, 3, 6), [1, 2, 4, 5, 1]);
        assert_eq!(Sources::of(Rank::new(0), Rank::new(1), 2), None);
    }

    #[test]
    fn shares_add_up() {
        for (rank, peer, ranks, entries) in [(0, 1, 5, 7), (3, 1, 4, 9), (1, 0, 9, 3), (0, 2, 4, 0)]
        {
            let sources = Sources::of(Rank::new(rank), Rank::new(peer), ranks).unwrap();
            for source in 0..ranks {
                let source = Rank::new(source);
                let all = (0..entries).filter(|number| sources.source(*number) == source);
                assert_eq!(sources.share(source, entries), all.count() as u32);
            }
        }
    }

    #[test]
    fn names_are_read_as_they_are_written() {
        for spread in Spread::ALL {
            assert_eq!(spread.to_string().parse(), Ok(spread));
        }
        let refused = "source".parse::<Spread>().unwrap_err();
        assert_eq!(
            refused,
            "'source' is none of tags, sources; did you mean 'sources'?"
        );
        let refused = "x".parse::<Spread>().unwrap_err();
        assert_eq!(refused, "'x' is none of tags, sources");
    }
}
