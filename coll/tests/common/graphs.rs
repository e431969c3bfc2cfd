//! Topologies, and the operations of neighbourhoods in them with what a serial oracle says that they return.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use tagwire_coll::operations::{
    Blocks, CollectiveOperation, NeighbourAllgather, NeighbourAlltoall, Parts,
};
use tagwire_coll::{Call, Grid, Neighbours, Result, Team};

use super::cases::{Draws, Maker, cut, cut_mut, init, start};

/// What is in blocks that nothing is received into.
const UNTOUCHED: u8 = 0xa5;

/// `bytes` of the data with a number.
fn data(seed: u64, number: usize, bytes: usize) -> Vec<u8> {
    Draws::of(seed << 20 ^ number as u64 ^ 1 << 62).bytes(bytes)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Allgather,
    Allgatherv,
    Alltoall,
    Alltoallv,
    Alltoallw,
}

/// An operation, its buffers, and what it has to receive.
pub struct Case {
    kind: Kind,
    neighbours: Neighbours,
    input: Vec<u8>,
    to: Vec<usize>,
    out: Vec<u8>,
    from: Vec<usize>,
    expected: Vec<u8>,
}

/// An operation of any kind.
pub enum Any<'a> {
    Allgather(NeighbourAllgather<'a>),
    Alltoall(NeighbourAlltoall<'a>),
}

impl CollectiveOperation for Any<'_> {
    fn check(&self, team: &Team) -> Result<()> {
        match self {
            Self::Allgather(one) => one.check(team),
            Self::Alltoall(one) => one.check(team),
        }
    }

    fn describe(&self, team: &Team) -> String {
        match self {
            Self::Allgather(one) => one.describe(team),
            Self::Alltoall(one) => one.describe(team),
        }
    }

    async fn steps(&mut self, call: Call<'_>) -> Result<()> {
        match self {
            Self::Allgather(one) => one.steps(call).await,
            Self::Alltoall(one) => one.steps(call).await,
        }
    }
}

impl Maker for Case {
    type Operation<'a> = Any<'a>;

    fn operation(&mut self) -> Any<'_> {
        let neighbours = self.neighbours.clone();
        let (own, out) = (&self.input[..], &mut self.out[..]);
        let parts = |lengths| match self.kind {
            Kind::Allgather | Kind::Alltoall => Parts::Equal,
            _ => Parts::Of(Cow::Borrowed(lengths)),
        };
        let from = parts(&self.from[..]);
        let (input, out) = match self.kind {
            Kind::Allgather | Kind::Allgatherv => {
                return Any::Allgather(NeighbourAllgather {
                    neighbours,
                    own,
                    parts: from,
                    out,
                });
            }
            Kind::Alltoall | Kind::Alltoallv => (
                Blocks::Together(own, parts(&self.to)),
                Blocks::Together(out, from),
            ),
            Kind::Alltoallw => (
                Blocks::Apart(cut(own, &self.to)),
                Blocks::Apart(cut_mut(out, &self.from)),
            ),
        };
        Any::Alltoall(NeighbourAlltoall {
            neighbours,
            input,
            out,
        })
    }
}

impl Case {
    pub fn check(&self) {
        let (kind, neighbours) = (self.kind, &self.neighbours);
        assert!(self.out == self.expected, "{kind:?} of {neighbours:?}");
    }

    pub fn reset(&mut self) {
        self.out.fill(UNTOUCHED);
    }
}

/// A topology: edges from one member to another, which each side has in some order, with others that lead nowhere between them.
pub struct Graph {
    pub size: usize,
    /// The edges by which each member gives, by their numbers.
    pub leaving: Vec<Vec<Option<usize>>>,
    /// The same by which each member gets.
    pub coming: Vec<Vec<Option<usize>>>,
    pub edges: Vec<(usize, usize)>,
    grid: Option<Grid>,
}

impl Graph {
    /// Edges between two members are in the same order on both sides; those with others lie between them anyhow.
    pub fn random(size: usize, round: u64) -> Self {
        let mut draws = Draws::of(round);
        let few = draws.below(4 * size);
        let pair = |draws: &mut Draws| (draws.below(size), draws.below(size));
        let edges: Vec<_> = (0..few).map(|_| pair(&mut draws)).collect();
        let mut listed = |own: &dyn Fn(&(usize, usize)) -> bool| {
            // Merged from a list for each peer.
            let mut peers = BTreeMap::<_, Vec<usize>>::new();
            for edge in (0..few).filter(|edge| own(&edges[*edge])) {
                peers.entry(edges[edge]).or_default().push(edge);
            }
            let mut left: Vec<_> = peers.into_values().collect();
            let mut list = Vec::new();
            while !left.is_empty() {
                if draws.below(6) == 0 {
                    list.push(None);
                }
                let at = draws.below(left.len());
                list.push(Some(left[at].remove(0)));
                left.retain(|edges| !edges.is_empty());
            }
            list
        };
        let leaving = (0..size).map(|me| listed(&|edge| edge.0 == me)).collect();
        let coming = (0..size).map(|me| listed(&|edge| edge.1 == me)).collect();
        Self {
            size,
            leaving,
            coming,
            edges,
            grid: None,
        }
    }

    /// The edge `2 d` of a member goes in the negative direction of dimension `d`, the next one in the positive direction.
    pub fn grid(extents: &[usize], periods: &[bool]) -> Self {
        let size: usize = extents.iter().product();
        let mut edges = Vec::new();
        let mut leaving = vec![vec![None; 2 * extents.len()]; size];
        let mut coming = leaving.clone();
        for (member, leaving) in leaving.iter_mut().enumerate() {
            let mut stride = size;
            for (dimension, extent) in extents.iter().enumerate() {
                stride /= extent;
                let place = member / stride % extent;
                for (direction, ends) in [place == 0, place + 1 == *extent].iter().enumerate() {
                    if *ends && !periods[dimension] {
                        continue;
                    }
                    let to = (place + [extent - 1, 1][direction]) % extent;
                    let to = member - place * stride + to * stride;
                    leaving[2 * dimension + direction] = Some(edges.len());
                    coming[to][2 * dimension + 1 - direction] = Some(edges.len());
                    edges.push((member, to));
                }
            }
        }
        Self {
            size,
            leaving,
            coming,
            edges,
            grid: Some(Grid::new(extents, periods).unwrap()),
        }
    }

    fn neighbours(&self, me: usize) -> Neighbours {
        if let Some(grid) = &self.grid {
            return Neighbours::cartesian(grid, me).unwrap();
        }
        let source = |edge: &Option<usize>| edge.map(|edge| self.edges[edge].0);
        let destination = |edge: &Option<usize>| edge.map(|edge| self.edges[edge].1);
        Neighbours::adjacent(
            self.coming[me].iter().map(source).collect(),
            self.leaving[me].iter().map(destination).collect(),
        )
    }

    /// All operations of a member.
    pub fn cases(&self, me: usize, seed: u64) -> Vec<Case> {
        const LENGTHS: [usize; 8] = [0, 1, 8, 100, 8160, 16_320, 70_000, 3];
        let mut draws = Draws::of(seed);
        let (block, shift) = (LENGTHS[draws.below(8)] % 9000, draws.below(8));
        let kinds = [
            Kind::Allgather,
            Kind::Allgatherv,
            Kind::Alltoall,
            Kind::Alltoallv,
            Kind::Alltoallw,
        ];
        kinds
            .into_iter()
            .map(|kind| {
                let gathers = matches!(kind, Kind::Allgather | Kind::Allgatherv);
                let is_equal = matches!(kind, Kind::Allgather | Kind::Alltoall);
                // Of a member or of an edge.
                let length = |number: usize| match is_equal {
                    true => block,
                    false => LENGTHS[(number + shift) % 8],
                };
                let given = |number: usize| data(seed, number, length(number));
                let nothing = || vec![UNTOUCHED; if is_equal { block } else { 5 }];
                let to: Vec<_> = match gathers {
                    true => vec![given(me)],
                    false => {
                        let edges = self.leaving[me].iter();
                        edges.map(|edge| edge.map_or_else(nothing, given)).collect()
                    }
                };
                let source = |edge: usize| if gathers { self.edges[edge].0 } else { edge };
                let got = |edge: usize| given(source(edge));
                let edges = self.coming[me].iter();
                let from: Vec<_> = edges.map(|edge| edge.map_or_else(nothing, got)).collect();
                let expected = from.concat();
                Case {
                    kind,
                    neighbours: self.neighbours(me),
                    input: to.concat(),
                    to: to.iter().map(Vec::len).collect(),
                    out: vec![UNTOUCHED; expected.len()],
                    from: from.iter().map(Vec::len).collect(),
                    expected,
                }
            })
            .collect()
    }

    /// All operations of a member, in each way.
    pub fn exchange(&self, team: &Arc<Team>, seed: u64) {
        let mut list = self.cases(team.me(), seed);
        for case in &mut list {
            team.call(case.operation()).unwrap();
            case.check();
            case.reset();
        }
        let open: Vec<_> = list
            .iter_mut()
            .map(|case| start(case, team).unwrap())
            .collect();
        for request in open.iter().rev() {
            request.wait(None).unwrap();
        }
        list.iter().for_each(Case::check);
        let mut all: Vec<_> = list.iter_mut().map(|case| init(case, team)).collect();
        for _ in 0..3 {
            list.iter_mut().for_each(Case::reset);
            // Started in another order on each member.
            for place in 0..all.len() {
                let at = (place + team.me()) % all.len();
                all[at].start().unwrap();
            }
            all.iter_mut().for_each(|one| one.wait(None).unwrap());
            list.iter().for_each(Case::check);
        }
    }
}
