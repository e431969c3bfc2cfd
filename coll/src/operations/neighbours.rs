//! Operations of neighbourhoods (MPI-5.0, section 8.6): each member exchanges data with its neighbours alone.
//!
//! Every member of the group calls them, also one without neighbours. They end at a member once its own edges are done.

use std::borrow::Cow;
use std::iter::repeat_n;

use super::CollectiveOperation;
use super::blocks::check_blocks;
use crate::call::{Call, check_length};
use crate::error::{Error, Result};
use crate::neighbours::Neighbours;
use crate::scattered::{self, parts, parts_mut};
use crate::team::Team;

/// Gives the same data to all destinations, and gets those of each source (MPI-5.0, section 8.6.1).
#[derive(Debug)]
pub struct NeighbourAllgather<'a> {
    /// With whom.
    pub neighbours: Neighbours,
    /// What this member gives.
    pub own: &'a [u8],
    /// What the sources give: equal blocks, in their order.
    pub out: &'a mut [u8],
}

impl CollectiveOperation for NeighbourAllgather<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        self.neighbours.check(team)?;
        let sources = self.neighbours.sources().len();
        match self.neighbours.destinations().is_empty() {
            true => equal_blocks(self.out.len(), sources, SOURCES).map(|_| ()),
            false => {
                let needed = self.own.len().saturating_mul(sources);
                check_length(COMING, self.out.len(), needed)
            }
        }
    }

    fn describe(&self, _: &Team) -> String {
        "a neighbour allgather".to_owned()
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        let (to, from) = edges(&self.neighbours);
        let lengths = repeat_n(self.out.len() / from.max(1), from);
        let (own, out) = (repeat_n(self.own, to), parts_mut(self.out, lengths));
        scattered::neighbours(call, &self.neighbours, own, out).await
    }
}

/// As [`NeighbourAllgather`], with blocks of different lengths (MPI-5.0, section 8.6.1).
#[derive(Debug)]
pub struct NeighbourAllgatherv<'a> {
    /// With whom.
    pub neighbours: Neighbours,
    /// What this member gives.
    pub own: &'a [u8],
    /// The length of each source's block.
    pub lengths: Cow<'a, [usize]>,
    /// What the sources give, in their order.
    pub out: &'a mut [u8],
}

impl CollectiveOperation for NeighbourAllgatherv<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        self.neighbours.check(team)?;
        let (to, from) = edges(&self.neighbours);
        check_blocks(self.lengths.len(), from, SOURCES)?;
        check_total(COMING, self.out.len(), &self.lengths)?;
        let (leaving, coming) = (repeat_n(self.own.len(), to), self.lengths.iter().copied());
        self.neighbours.check_own(team, leaving, coming)
    }

    fn describe(&self, _: &Team) -> String {
        "a neighbour allgatherv".to_owned()
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        let own = repeat_n(self.own, self.neighbours.destinations().len());
        let out = parts_mut(self.out, self.lengths.iter().copied());
        scattered::neighbours(call, &self.neighbours, own, out).await
    }
}

/// Gives each destination a block, and gets one of each source (MPI-5.0, section 8.6.2).
#[derive(Debug)]
pub struct NeighbourAlltoall<'a> {
    /// With whom.
    pub neighbours: Neighbours,
    /// Equal blocks for the destinations, in their order.
    pub input: &'a [u8],
    /// Equal blocks of the sources, in their order.
    pub out: &'a mut [u8],
}

impl CollectiveOperation for NeighbourAlltoall<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        self.neighbours.check(team)?;
        let (to, from) = edges(&self.neighbours);
        let given = equal_blocks(self.input.len(), to, DESTINATIONS)?;
        let expected = equal_blocks(self.out.len(), from, SOURCES)?;
        match to == 0 {
            true => Ok(()),
            false => check_length(COMING, expected * from, given.saturating_mul(from)),
        }
    }

    fn describe(&self, _: &Team) -> String {
        "a neighbour alltoall".to_owned()
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        let (to, from) = edges(&self.neighbours);
        let input = parts(self.input, repeat_n(self.input.len() / to.max(1), to));
        let lengths = repeat_n(self.out.len() / from.max(1), from);
        let out = parts_mut(self.out, lengths);
        scattered::neighbours(call, &self.neighbours, input, out).await
    }
}

/// As [`NeighbourAlltoall`], with blocks of different lengths (MPI-5.0, section 8.6.2).
#[derive(Debug)]
pub struct NeighbourAlltoallv<'a> {
    /// With whom.
    pub neighbours: Neighbours,
    /// A block for each destination, in their order.
    pub input: &'a [u8],
    /// Their lengths.
    pub to: Cow<'a, [usize]>,
    /// A block of each source, in their order.
    pub out: &'a mut [u8],
    /// Their lengths.
    pub from: Cow<'a, [usize]>,
}

impl CollectiveOperation for NeighbourAlltoallv<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        self.neighbours.check(team)?;
        let (to, from) = edges(&self.neighbours);
        check_blocks(self.to.len(), to, DESTINATIONS)?;
        check_blocks(self.from.len(), from, SOURCES)?;
        check_total("the buffer of what leaves", self.input.len(), &self.to)?;
        check_total(COMING, self.out.len(), &self.from)?;
        let (leaving, coming) = (self.to.iter().copied(), self.from.iter().copied());
        self.neighbours.check_own(team, leaving, coming)
    }

    fn describe(&self, _: &Team) -> String {
        "a neighbour alltoallv".to_owned()
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        let input = parts(self.input, self.to.iter().copied());
        let out = parts_mut(self.out, self.from.iter().copied());
        scattered::neighbours(call, &self.neighbours, input, out).await
    }
}

/// As [`NeighbourAlltoallv`], with blocks that lie anywhere: each may have a type and a place of its own
/// (MPI-5.0, section 8.6.2, `MPI_Neighbor_alltoallw`).
#[derive(Debug)]
pub struct NeighbourAlltoallw<'a> {
    /// With whom.
    pub neighbours: Neighbours,
    /// The block for each destination.
    pub input: Cow<'a, [&'a [u8]]>,
    /// The block of each source.
    pub out: Vec<&'a mut [u8]>,
}

impl CollectiveOperation for NeighbourAlltoallw<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        self.neighbours.check(team)?;
        let (to, from) = edges(&self.neighbours);
        check_blocks(self.input.len(), to, DESTINATIONS)?;
        check_blocks(self.out.len(), from, SOURCES)?;
        let leaving = self.input.iter().map(|block| block.len());
        let coming = self.out.iter().map(|block| block.len());
        self.neighbours.check_own(team, leaving, coming)
    }

    fn describe(&self, _: &Team) -> String {
        "a neighbour alltoallw".to_owned()
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        let input = self.input.iter().copied();
        let out = self.out.iter_mut().map(|block| &mut **block);
        scattered::neighbours(call, &self.neighbours, input, out).await
    }
}

/// How many destinations and sources there are.
fn edges(neighbours: &Neighbours) -> (usize, usize) {
    (neighbours.destinations().len(), neighbours.sources().len())
}

/// Returns the length of each of as many equal blocks as there are `members`.
fn equal_blocks(total: usize, blocks: usize, members: &str) -> Result<usize> {
    let block = total / blocks.max(1);
    match block * blocks == total {
        true => Ok(block),
        false => Err(Error::Argument(format!(
            "{total} bytes are not equal blocks for {blocks} {members}"
        ))),
    }
}

/// Checks that blocks of these lengths fill a buffer.
fn check_total(what: &str, given: usize, lengths: &[usize]) -> Result<()> {
    let mut lengths = lengths.iter();
    let total = lengths.try_fold(0usize, |sum, length| sum.checked_add(*length));
    check_length(what, given, total.unwrap_or(usize::MAX))
}

const COMING: &str = "the buffer of what comes";
const DESTINATIONS: &str = "destinations";
const SOURCES: &str = "sources";
