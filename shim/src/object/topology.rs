//! Virtual topologies: what a communicator keeps of how its processes are connected (MPI-5.0, chapter 8).

use tagwire_coll::{Grid, Neighbours};

use crate::error::Result;

/// The topology of a communicator, as one of its processes knows it.
#[derive(Debug)]
pub(crate) struct Topology {
    pub(crate) shape: Shape,
    /// With whom this process exchanges data.
    pub(crate) neighbours: Neighbours,
}

#[derive(Debug)]
pub(crate) enum Shape {
    Cartesian(Cartesian),
    Graph(Graph),
    Distributed(Distributed),
}

#[derive(Debug)]
pub(crate) struct Cartesian {
    pub(crate) grid: Grid,
    pub(crate) periods: Vec<bool>,
}

/// A graph that all processes know as a whole.
#[derive(Debug)]
pub(crate) struct Graph {
    /// Where the edges of each process end among all.
    pub(crate) ends: Vec<i32>,
    /// The neighbours of the first process, then those of the next one.
    pub(crate) edges: Vec<i32>,
}

/// The edges of one process.
#[derive(Debug, Default)]
pub(crate) struct Distributed {
    pub(crate) sources: Edges,
    pub(crate) destinations: Edges,
    pub(crate) is_weighted: bool,
}

#[derive(Debug, Default)]
pub(crate) struct Edges {
    pub(crate) ranks: Vec<i32>,
    /// As many; 1 each in a graph without weights.
    pub(crate) weights: Vec<i32>,
}

impl Topology {
    /// Returns that of process `me` in a grid.
    pub(crate) fn cartesian(grid: Grid, periods: Vec<bool>, me: usize) -> Result<Self> {
        Ok(Self {
            neighbours: Neighbours::cartesian(&grid, me)?,
            shape: Shape::Cartesian(Cartesian { grid, periods }),
        })
    }

    /// Returns that of process `me` in a graph.
    pub(crate) fn graph(graph: Graph, me: usize) -> Self {
        let around = members(graph.around(me).unwrap_or_default());
        Self {
            neighbours: Neighbours::adjacent(around.clone(), around),
            shape: Shape::Graph(graph),
        }
    }

    pub(crate) fn distributed(edges: Distributed) -> Self {
        let (from, to) = (&edges.sources.ranks, &edges.destinations.ranks);
        Self {
            neighbours: Neighbours::adjacent(members(from), members(to)),
            shape: Shape::Distributed(edges),
        }
    }
}

impl Cartesian {
    /// Returns the extents of the dimensions.
    pub(crate) fn extents(&self) -> impl Iterator<Item = i32> + '_ {
        self.grid.extents().map(|extent| extent as i32)
    }

    /// Returns how many dimensions there are.
    pub(crate) const fn dimensions(&self) -> usize {
        self.periods.len()
    }
}

impl Graph {
    /// Returns the neighbours of a process; `None` where there is no such process.
    pub(crate) fn around(&self, member: usize) -> Option<&[i32]> {
        let end = *self.ends.get(member)?;
        let start = match member {
            0 => 0,
            _ => self.ends[member - 1],
        };
        self.edges.get(start as usize..end as usize)
    }
}

impl Edges {
    pub(crate) fn push(&mut self, rank: i32, weight: i32) {
        self.ranks.push(rank);
        self.weights.push(weight);
    }

    /// Returns the ranks, each with its weight behind it.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = i32> + '_ {
        let pairs = self.ranks.iter().zip(&self.weights);
        pairs.flat_map(|(rank, weight)| [*rank, *weight])
    }
}

fn members(ranks: &[i32]) -> Vec<Option<usize>> {
    ranks
        .iter()
        .map(|rank| usize::try_from(*rank).ok())
        .collect()
}
