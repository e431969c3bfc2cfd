//! Operations of neighbourhoods (MPI-5.0, section 8.6): each member exchanges data with its neighbours alone.
//!
//! Every member of the group calls them, also one without neighbours. They end at a member once its own edges are done.

use std::iter::repeat_n;
use std::ops::Deref;

use super::CollectiveOperation;
use super::blocks::{Blocks, Parts, check_blocks, check_total};
use crate::call::{Call, check_length};
use crate::error::{Error, Result};
use crate::neighbours::Neighbours;
use crate::scattered::{self, parts_mut};
use crate::team::Team;

/// Gives the same data to all destinations, and gets those of each source (MPI-5.0, section 8.6.1).
#[derive(Debug)]
pub struct NeighbourAllgather<'a> {
    /// With whom.
    pub neighbours: Neighbours,
    /// What this member gives.
    pub own: &'a [u8],
    /// The blocks of `out`.
    pub parts: Parts<'a>,
    /// What the sources give, in their order.
    pub out: &'a mut [u8],
}

impl CollectiveOperation for NeighbourAllgather<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        self.neighbours.check(team)?;
        let (to, from) = edges(&self.neighbours);
        let (own, total) = (self.own.len(), self.out.len());
        match &self.parts {
            Parts::Equal if to > 0 => check_length(COMING, total, own.saturating_mul(from)),
            parts => {
                check_parts(parts, total, from, [COMING, SOURCES])?;
                let coming = parts.lengths(total, from);
                let leaving = repeat_n(own, to);
                self.neighbours
                    .check_own(team, leaving, coming.iter().copied())
            }
        }
    }

    fn describe(&self, _: &Team) -> String {
        let v = if let Parts::Of(_) = self.parts {
            "v"
        } else {
            ""
        };
        format!("a neighbour allgather{v}")
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        let (to, from) = edges(&self.neighbours);
        let lengths = self.parts.lengths(self.out.len(), from);
        let out = parts_mut(self.out, lengths.iter().copied());
        scattered::neighbours(call, &self.neighbours, repeat_n(self.own, to), out).await
    }
}

/// Gives each destination a block, and gets one of each source (MPI-5.0, section 8.6.2).
#[derive(Debug)]
pub struct NeighbourAlltoall<'a> {
    /// With whom.
    pub neighbours: Neighbours,
    /// A block for each destination, in their order.
    pub input: Blocks<'a, &'a [u8]>,
    /// A block of each source, in their order.
    pub out: Blocks<'a, &'a mut [u8]>,
}

impl CollectiveOperation for NeighbourAlltoall<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        self.neighbours.check(team)?;
        let (to, from) = edges(&self.neighbours);
        check_edges(&self.input, to, ["the buffer of what leaves", DESTINATIONS])?;
        check_edges(&self.out, from, [COMING, SOURCES])?;
        if let (Some(given), Some(coming)) = (self.input.equal(), self.out.equal()) {
            return match to == 0 {
                true => Ok(()),
                false => check_length(COMING, coming, (given / to).saturating_mul(from)),
            };
        }
        let (leaving, coming) = (self.input.lengths(to), self.out.lengths(from));
        let (leaving, coming) = (leaving.iter().copied(), coming.iter().copied());
        self.neighbours.check_own(team, leaving, coming)
    }

    fn describe(&self, _: &Team) -> String {
        let form = match (&self.input, &self.out) {
            (Blocks::Apart(_), _) | (_, Blocks::Apart(_)) => "w",
            (Blocks::Together(_, Parts::Equal), Blocks::Together(_, Parts::Equal)) => "",
            _ => "v",
        };
        format!("a neighbour alltoall{form}")
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        let (to, from) = edges(&self.neighbours);
        let (input, out) = (self.input.cut(to), self.out.cut_mut(from));
        let (input, out) = (input.into_iter(), out.into_iter());
        scattered::neighbours(call, &self.neighbours, input, out).await
    }
}

/// How many destinations and sources there are.
fn edges(neighbours: &Neighbours) -> (usize, usize) {
    (neighbours.destinations().len(), neighbours.sources().len())
}

/// Checks that there is a block for each edge to or from some `[what, members]`.
fn check_edges<D: Deref<Target = [u8]>>(
    blocks: &Blocks<'_, D>,
    edges: usize,
    names: [&str; 2],
) -> Result<()> {
    match blocks {
        Blocks::Together(data, parts) => check_parts(parts, data.len(), edges, names),
        Blocks::Apart(list) => check_blocks(list.len(), edges, names[1]),
    }
}

/// The same in one buffer of `total` bytes.
fn check_parts(
    parts: &Parts<'_>,
    total: usize,
    edges: usize,
    [what, members]: [&str; 2],
) -> Result<()> {
    match parts {
        Parts::Of(lengths) => {
            check_blocks(lengths.len(), edges, members)?;
            check_total(what, total, lengths)
        }
        Parts::Equal if total / edges.max(1) * edges == total => Ok(()),
        Parts::Equal => Err(Error::Argument(format!(
            "{total} bytes are not equal blocks for {edges} {members}"
        ))),
    }
}

const COMING: &str = "the buffer of what comes";
const DESTINATIONS: &str = "destinations";
const SOURCES: &str = "sources";
