//! Receives that lie ahead of the one that a message matches.

use tagwire_base::{Rank, Tag};

use super::Traffic;
use super::latency::is_wild;
use crate::error::Result;
use crate::port::{Port, tags};
use crate::spread::{Sources, Spread};

/// The receives that are posted ahead on each rank of a pair, and never match until the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Ahead {
    /// How many there are.
    pub count: u32,
    /// How many percent of them are of any source. Each of these has a tag of its own.
    pub wild: u32,
    /// What the others differ by from the receive that matches.
    pub spread: Spread,
}

/// The pairs of ranks of a job that send to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pairs {
    /// Rank i plays with rank i + this number.
    count: u32,
    ranks: u32,
}

impl Pairs {
    /// Returns as many as there can be: i and i + n/2.
    #[inline]
    pub(crate) const fn all(ranks: u32) -> Self {
        Self {
            count: ranks / 2,
            ranks,
        }
    }

    /// Returns that of ranks 0 and 1 alone.
    #[inline]
    pub(crate) const fn first(ranks: u32) -> Self {
        Self { count: 1, ranks }
    }

    /// Returns the other rank of a pair, and whether this one sends first; `None` of a rank that is in none.
    #[inline]
    pub(crate) fn peer(self, rank: Rank) -> Option<(Rank, bool)> {
        let (rank, count) = (rank.as_u32(), self.count);
        match rank {
            _ if rank < count => Some((Rank::new(rank + count), true)),
            _ if rank < 2 * count => Some((Rank::new(rank - count), false)),
            _ => None,
        }
    }
}

/// A receive ahead: from whom, where that is not anybody; who ends it; with which tag.
struct Entry {
    from: Option<Rank>,
    ended_by: Rank,
    tag: Tag,
}

impl Ahead {
    /// Returns the entries of a rank whose peer this is.
    fn entries(self, pairs: Pairs, rank: Rank, peer: Rank) -> impl Iterator<Item = Entry> {
        let sources = match self.spread {
            Spread::Tags => None,
            Spread::Sources => Sources::of(rank, peer, pairs.ranks),
        };
        (0..self.count).map(move |number| match sources {
            // With the tag of the messages it would take them.
            _ if is_wild(number, self.wild) => Entry {
                from: None,
                ended_by: peer,
                tag: tags::never(number),
            },
            None => Entry {
                from: Some(peer),
                ended_by: peer,
                tag: tags::never(number),
            },
            Some(sources) => Entry {
                from: Some(sources.source(number)),
                ended_by: sources.source(number),
                tag: tags::DATA,
            },
        })
    }

    /// Posts those of this rank, where it is in a pair.
    pub(super) fn post<P: Port>(
        self,
        pairs: Pairs,
        port: &P,
        traffic: &Traffic,
    ) -> Result<Vec<P::Request>> {
        let Some((peer, _)) = pairs.peer(port.rank()) else {
            return Ok(Vec::new());
        };
        let entries = self.entries(pairs, port.rank(), peer);
        entries
            .map(|Entry { from, tag, .. }| {
                let empty = traffic.incoming(0, 0);
                match from {
                    None => port.irecv_any(empty, tag),
                    Some(from) => port.irecv(empty, from, tag),
                }
            })
            .collect()
    }

    /// Ends them the way every port can end them: each gets a message after all. One rank after the other has them, so that all
    /// send to a rank that waits.
    pub(super) fn end<P: Port>(
        self,
        pairs: Pairs,
        port: &P,
        traffic: &Traffic,
        posted: &mut Vec<P::Request>,
    ) -> Result<()> {
        let me = port.rank();
        for to in (0..pairs.ranks).map(Rank::new) {
            let Some((peer, _)) = pairs.peer(to) else {
                continue;
            };
            if to == me {
                port.wait_all(posted)?;
                continue;
            }
            let own = self.entries(pairs, to, peer);
            for Entry { tag, .. } in own.filter(|entry| entry.ended_by == me) {
                port.send(traffic.empty(), to, tag)?;
            }
        }
        Ok(())
    }
}
