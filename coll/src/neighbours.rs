//! With whom a member exchanges data in the collectives of neighbourhoods.

use std::sync::Arc;

use crate::call::{check_length, check_root};
use crate::error::{Error, Result};
use crate::grid::Grid;
use crate::team::Team;

/// A topology as one member sees it (MPI-5.0, chapter 8): the edges by which it gets data from its sources, and those by which it
/// gives data to its destinations. Each edge has a block of data in the operations of neighbourhoods, in the order given here.
///
/// A member may be named several times, and be its own neighbour. `None` is an edge that leads nowhere: nothing is sent or
/// received, and the block of a source stays as it is (`MPI_PROC_NULL`).
///
/// The n-th edge from one member to another there is the n-th edge from that one here. Every member has to name its side of an
/// edge. Clones share what there is.
///
/// ```
/// use tagwire_coll::operations::{NeighbourAllgather, Parts};
/// use tagwire_coll::{Neighbours, Team};
///
/// # fn example(team: &Team) -> tagwire_coll::Result<()> {
/// // A ring: data go to the next member.
/// let (last, next) = ((team.me() + team.size() - 1) % team.size(), (team.me() + 1) % team.size());
/// let neighbours = Neighbours::adjacent(vec![Some(last)], vec![Some(next)]);
/// let mut from_last = [0; 8];
/// team.call(NeighbourAllgather {
///     neighbours,
///     own: &[team.me() as u8; 8],
///     parts: Parts::Equal,
///     out: &mut from_last,
/// })?;
/// assert_eq!(from_last, [last as u8; 8]);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbours {
    sources: Arc<[Option<usize>]>,
    destinations: Arc<[Option<usize>]>,
    arrivals: Arrivals,
}

/// In which order the blocks of the sources match messages, where several come from one member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Arrivals {
    /// That of the sources.
    InOrder,
    /// That of a grid, whose sources are in pairs. In a periodic dimension of one or two members both neighbours are one member: its
    /// first message goes in the negative direction, and comes from the positive one.
    PairsReversed,
}

impl Neighbours {
    /// Returns the neighbours of a member from its lists of them (MPI-5.0, section 8.5.4, `MPI_Dist_graph_create_adjacent`).
    #[must_use]
    pub fn adjacent(sources: Vec<Option<usize>>, destinations: Vec<Option<usize>>) -> Self {
        Self {
            sources: sources.into(),
            destinations: destinations.into(),
            arrivals: Arrivals::InOrder,
        }
    }

    /// Returns the neighbours of a member in a grid, the same as sources and as destinations: two for each dimension, in the negative
    /// and in the positive direction (MPI-5.0, section 8.6). Beyond the end of a dimension that is not periodic there is `None`.
    ///
    /// What is sent in one direction of a dimension arrives as what comes from the other, also where both neighbours are the same
    /// member.
    ///
    /// # Errors
    /// [`Error::Argument`] when the member is not in the grid.
    pub fn cartesian(grid: &Grid, member: usize) -> Result<Self> {
        grid.check(member)?;
        let around: Arc<[_]> = grid.around(member).collect();
        Ok(Self {
            sources: Arc::clone(&around),
            destinations: around,
            arrivals: Arrivals::PairsReversed,
        })
    }

    /// Returns where data come from, edge by edge.
    #[must_use]
    pub fn sources(&self) -> &[Option<usize>] {
        &self.sources
    }

    /// Returns where data go to, edge by edge.
    #[must_use]
    pub fn destinations(&self) -> &[Option<usize>] {
        &self.destinations
    }

    /// Returns the sources with their blocks, in the order in which messages of one member match.
    pub(crate) fn arrivals<B>(
        &self,
        blocks: impl Iterator<Item = B>,
    ) -> impl Iterator<Item = (usize, B)> {
        let mut edges = self.sources.iter().copied().zip(blocks);
        let mut second = None;
        std::iter::from_fn(move || {
            if self.arrivals == Arrivals::InOrder {
                return edges.next();
            }
            second.take().or_else(|| {
                second = edges.next();
                // Blocks are in pairs here.
                edges.next()
            })
        })
        .filter_map(|(source, block)| Some((source?, block)))
    }

    /// Returns the destinations with their blocks.
    pub(crate) fn departures<B>(
        &self,
        blocks: impl Iterator<Item = B> + Clone,
    ) -> impl Iterator<Item = (usize, B)> + Clone {
        let edges = self.destinations.iter().copied().zip(blocks);
        edges.filter_map(|(destination, block)| Some((destination?, block)))
    }

    /// Returns how many edges there are to and from others than `me`.
    pub(crate) fn messages(&self, me: usize) -> usize {
        let edges = self.sources.iter().chain(&*self.destinations);
        edges.flatten().filter(|member| **member != me).count()
    }

    /// Checks that the neighbours are members, and that what this member gives itself it gets.
    pub(crate) fn check(&self, team: &Team) -> Result<()> {
        let mut members = self.sources.iter().chain(&*self.destinations).flatten();
        members.try_for_each(|member| check_root(team, *member))?;
        let me = Some(team.me());
        let to_oneself = |edges: &[Option<usize>]| edges.iter().filter(|it| **it == me).count();
        let (coming, leaving) = (to_oneself(&self.sources), to_oneself(&self.destinations));
        match coming == leaving {
            true => Ok(()),
            false => Err(Error::Argument(format!(
                "rank {} is {coming} times its own source and {leaving} times its own destination",
                team.me()
            ))),
        }
    }

    /// Checks the lengths of the blocks that this member gives itself.
    pub(crate) fn check_own(
        &self,
        team: &Team,
        leaving: impl Iterator<Item = usize> + Clone,
        coming: impl Iterator<Item = usize>,
    ) -> Result<()> {
        let is_own = |(member, _): &(usize, usize)| *member == team.me();
        let given = self.departures(leaving).filter(is_own);
        let got = self.arrivals(coming).filter(is_own);
        let mut blocks = got.zip(given);
        blocks
            .try_for_each(|((_, got), (_, given))| check_length("a block for oneself", got, given))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_a_grid_match_crosswise() {
        let grid = Grid::new(&[2, 1, 3], &[true, true, false]).unwrap();
        let neighbours = Neighbours::cartesian(&grid, 0).unwrap();
        let around = [Some(3), Some(3), Some(0), Some(0), None, Some(1)];
        assert_eq!(neighbours.sources(), around);
        assert_eq!(neighbours.destinations(), around);
        let arrivals: Vec<_> = neighbours.arrivals(0..6).collect();
        assert_eq!(arrivals, [(3, 1), (3, 0), (0, 3), (0, 2), (1, 5)]);
        let departures: Vec<_> = neighbours.departures(0..6).collect();
        assert_eq!(departures, [(3, 0), (3, 1), (0, 2), (0, 3), (1, 5)]);
        assert_eq!(neighbours.messages(0), 6);
        assert!(Neighbours::cartesian(&grid, 6).is_err());
    }

    #[test]
    fn blocks_of_lists_match_in_their_order() {
        let sources = vec![Some(2), None, Some(1), Some(2)];
        let neighbours = Neighbours::adjacent(sources, vec![None, Some(0)]);
        let arrivals: Vec<_> = neighbours.arrivals(0..4).collect();
        assert_eq!(arrivals, [(2, 0), (1, 2), (2, 3)]);
        assert_eq!(neighbours.departures(0..2).collect::<Vec<_>>(), [(0, 1)]);
        assert_eq!(neighbours.messages(0), 3);
    }
}
