//! Every operation of a group of two sides, and what a serial oracle says that it returns.

use std::borrow::Cow;
use std::sync::Arc;

use tagwire_coll::operations::{
    Allgather, Allreduce, Alltoall, Barrier, Blocks, Broadcast, CollectiveOperation, Gather, Parts,
    Reduce, ReduceScatter, Root, Scatter,
};
use tagwire_coll::{Bridge, Leader, Reduction, Result, Team};

use super::cases::{Draws, cut, cut_mut};
use super::composition;
use super::joined;

/// Bytes of an operand.
const OPERAND: usize = 16;

/// One of two sides of a group: of the members with an even number, which is led by their last one, and of those with an odd one,
/// led by their first.
pub struct Sided {
    side: Team,
    is_odd: bool,
}

impl Sided {
    pub fn of(team: &Team) -> Result<Self> {
        let is_odd = team.me() % 2 == 1;
        let side = team.split(Some(u32::from(is_odd)), 0)?;
        Ok(Self {
            side: side.expect("each has a color"),
            is_odd,
        })
    }

    /// Makes a group of both.
    pub fn bridge(&self, team: &Team, name: &str) -> Result<Team> {
        let last_even = (team.size() - 1) / 2 * 2;
        let (leader, number) = match self.is_odd {
            false => (self.side.size() - 1, 1),
            true => (0, last_even),
        };
        let members: Vec<_> = (0..team.size()).collect();
        let way = Leader {
            peer: team,
            number,
            members: &members,
            name,
        };
        let to = (self.side.me() == leader).then_some(way);
        Bridge { leader, to }.of(&self.side)
    }
}

/// Makes a group of two sides.
pub fn even_and_odd(team: &Team, name: &str) -> Result<Team> {
    Sided::of(team)?.bridge(team, name)
}

/// How an operation is run.
pub trait Run {
    fn run<O: CollectiveOperation>(&self, team: &Arc<Team>, operation: O) -> Result<()>;
}

/// What member `place` of a side gives, of which nobody gives the same.
fn data(is_first: bool, place: usize, round: u64, bytes: usize) -> Vec<u8> {
    Draws::of(round << 16 | (place as u64) << 1 | u64::from(is_first)).bytes(bytes)
}

/// The combination of what all of a side give.
fn combined(is_first: bool, size: usize, round: u64, bytes: usize) -> Vec<u8> {
    let (operation, layout) = composition();
    let mut inputs = (0..size).map(|place| data(is_first, place, round, bytes));
    let first = inputs.next().unwrap();
    inputs.fold(first, |sum, mut next| {
        operation.combine(&layout, &sum, &mut next).unwrap();
        next
    })
}

/// Draws of a round, which are the same for all members.
struct Round<'t> {
    team: &'t Arc<Team>,
    number: u64,
    is_first: bool,
    me: usize,
    /// Of the own side and of the other.
    sizes: [usize; 2],
}

impl Round<'_> {
    fn data(&self, bytes: usize) -> Vec<u8> {
        data(self.is_first, self.me, self.number, bytes)
    }

    fn remote(&self, place: usize, bytes: usize) -> Vec<u8> {
        data(!self.is_first, place, self.number, bytes)
    }

    /// Draws a root of either side.
    fn root(&self, draws: &mut Draws) -> (Root, usize) {
        let total = self.sizes[0] + self.sizes[1];
        let first = if self.is_first {
            self.sizes[0]
        } else {
            self.sizes[1]
        };
        let drawn = draws.below(total);
        let (of_first, place) = match drawn < first {
            true => (true, drawn),
            false => (false, drawn - first),
        };
        let root = match of_first == self.is_first {
            true if place == self.me => Root::Here,
            true => Root::Beside,
            false => Root::There(place),
        };
        (root, place)
    }

    fn broadcast(&self, run: &impl Run, draws: &mut Draws, bytes: usize) -> Result<()> {
        let (root, place) = self.root(draws);
        let expected = match root {
            Root::Here => self.data(bytes),
            Root::There(_) => self.remote(place, bytes),
            _ => Vec::new(),
        };
        let mut buffer = match root {
            Root::There(_) => vec![0; bytes],
            _ => expected.clone(),
        };
        let data = &mut buffer[..];
        run.run(self.team, Broadcast { data, root })?;
        assert_eq!(buffer, expected);
        Ok(())
    }

    /// Lengths of blocks, which differ where `bytes` do.
    fn lengths(&self, size: usize, bytes: usize) -> Vec<usize> {
        (0..size).map(|place| bytes * (place % 3)).collect()
    }

    fn gather(&self, run: &impl Run, draws: &mut Draws, bytes: usize) -> Result<()> {
        let (root, _) = self.root(draws);
        let own = self.data(bytes * (self.me % 3));
        let lengths = self.lengths(self.sizes[1], bytes);
        let mut out = vec![0; lengths.iter().sum()];
        let is_root = root == Root::Here;
        let gather = Gather {
            own: Some(&own),
            parts: Parts::Of(Cow::Borrowed(&lengths)),
            out: is_root.then_some(&mut out[..]),
            root,
        };
        run.run(self.team, gather)?;
        let parts = lengths.iter().enumerate();
        let expected = joined(parts.map(|(place, len)| self.remote(place, *len)));
        assert!(!is_root || out == expected);
        Ok(())
    }

    fn scatter(&self, run: &impl Run, draws: &mut Draws, bytes: usize) -> Result<()> {
        let (root, place) = self.root(draws);
        let of_remote = self.lengths(self.sizes[1], bytes);
        let input = self.data(of_remote.iter().sum());
        let mut own = vec![0; bytes * (self.me % 3)];
        let is_root = root == Root::Here;
        let scatter = Scatter {
            input: is_root.then_some(&input),
            parts: Parts::Of(Cow::Borrowed(&of_remote)),
            own: Some(&mut own),
            root,
        };
        run.run(self.team, scatter)?;
        if let Root::There(_) = root {
            let lengths = self.lengths(self.sizes[0], bytes);
            let start = lengths[..self.me].iter().sum::<usize>();
            let all = self.remote(place, lengths.iter().sum());
            assert_eq!(own, all[start..start + own.len()]);
        }
        Ok(())
    }

    fn reduce(&self, run: &impl Run, draws: &mut Draws, values: usize) -> Result<()> {
        let (root, _) = self.root(draws);
        let (operation, layout) = &composition();
        let bytes = values * OPERAND;
        let (input, mut out) = (self.data(bytes), vec![0; bytes]);
        let is_root = root == Root::Here;
        let reduce = Reduce {
            operator: Reduction { operation, layout }.into(),
            input: Some(&input),
            out: is_root.then_some(&mut out[..]),
            root,
        };
        run.run(self.team, reduce)?;
        let expected = combined(!self.is_first, self.sizes[1], self.number, bytes);
        assert!(!is_root || out == expected);
        Ok(())
    }

    fn allreduce(&self, run: &impl Run, values: usize) -> Result<()> {
        let (operation, layout) = &composition();
        let bytes = values * OPERAND;
        let (input, mut out) = (self.data(bytes), vec![0; bytes]);
        let allreduce = Allreduce {
            operator: Reduction { operation, layout }.into(),
            input: Some(&input),
            data: &mut out,
        };
        run.run(self.team, allreduce)?;
        let expected = combined(!self.is_first, self.sizes[1], self.number, bytes);
        assert_eq!(out, expected);
        Ok(())
    }

    /// Each side has its own parts of as much.
    fn reduce_scatter(&self, run: &impl Run, values: usize) -> Result<()> {
        let (operation, layout) = &composition();
        let [size, remote] = self.sizes;
        let bytes = values * OPERAND * size * remote;
        let (input, part) = (self.data(bytes), values * OPERAND * remote);
        let mut lengths = vec![part; size];
        // The first one has all of the last one's.
        lengths[0] += part;
        lengths[size - 1] -= part;
        let start = lengths[..self.me].iter().sum::<usize>();
        let mut out = vec![0; lengths[self.me]];
        let reduce_scatter = ReduceScatter {
            operator: Reduction { operation, layout }.into(),
            input: Some(&input),
            lengths: Cow::Borrowed(&lengths),
            out: &mut out,
        };
        run.run(self.team, reduce_scatter)?;
        let expected = combined(!self.is_first, remote, self.number, bytes);
        assert_eq!(out, expected[start..start + lengths[self.me]]);
        Ok(())
    }

    /// The sides give blocks of different lengths: one may give nothing.
    fn allgather(&self, run: &impl Run, bytes: [usize; 2]) -> Result<()> {
        let bytes = [
            bytes[usize::from(self.is_first)],
            bytes[usize::from(!self.is_first)],
        ];
        let own = self.data(bytes[0] * (self.me % 3));
        let lengths = self.lengths(self.sizes[1], bytes[1]);
        let mut out = vec![0; lengths.iter().sum()];
        let allgather = Allgather {
            own: Some(&own),
            parts: Parts::Of(Cow::Borrowed(&lengths)),
            out: &mut out,
        };
        run.run(self.team, allgather)?;
        let parts = lengths.iter().enumerate();
        let expected = joined(parts.map(|(place, len)| self.remote(place, *len)));
        assert_eq!(out, expected);
        Ok(())
    }

    fn alltoall(&self, run: &impl Run, bytes: usize) -> Result<()> {
        let to = self.lengths(self.sizes[1], bytes);
        let from = vec![bytes * (self.me % 3); self.sizes[1]];
        let input = self.data(to.iter().sum());
        let mut out = vec![0; from.iter().sum()];
        let parts = |lengths| Parts::Of(Cow::Borrowed(lengths));
        let alltoall = match self.number % 2 {
            0 => Alltoall {
                input: Some(Blocks::Together(&input, parts(&to))),
                out: Blocks::Together(&mut out, parts(&from)),
            },
            _ => Alltoall {
                input: Some(Blocks::Apart(cut(&input, &to))),
                out: Blocks::Apart(cut_mut(&mut out, &from)),
            },
        };
        run.run(self.team, alltoall)?;
        let mine = self.lengths(self.sizes[0], bytes);
        let start = mine[..self.me].iter().sum::<usize>();
        let expected = joined((0..self.sizes[1]).map(|place| {
            let all = self.remote(place, mine.iter().sum());
            all[start..start + mine[self.me]].to_vec()
        }));
        assert_eq!(out, expected);
        Ok(())
    }
}

/// Runs every operation once with lengths and roots that are drawn, and compares what it returns.
pub fn everything(team: &Arc<Team>, number: u64, run: &impl Run) -> Result<()> {
    let sides = team.sides().unwrap();
    let round = Round {
        team,
        number,
        is_first: sides.local().start == 0,
        me: sides.me(),
        sizes: [sides.local().len(), sides.remote().len()],
    };
    let mut draws = Draws::of(number);
    let draws = &mut draws;
    let count = |draws: &mut Draws| match draws.below(4) {
        0 => 0,
        3 => draws.below(30_000),
        _ => draws.below(40),
    };
    run.run(team, Barrier)?;
    for _ in 0..2 {
        let lengths = [count(draws), count(draws), count(draws), count(draws)];
        round.broadcast(run, draws, lengths[0])?;
        round.gather(run, draws, lengths[1])?;
        round.scatter(run, draws, lengths[2])?;
        round.reduce(run, draws, lengths[3] / OPERAND)?;
        round.allreduce(run, lengths[0] / OPERAND)?;
        round.reduce_scatter(run, lengths[1] / OPERAND % 300)?;
        round.allgather(run, [lengths[2], lengths[3]])?;
        round.alltoall(run, lengths[0])?;
    }
    Ok(())
}

/// Runs operations to their end.
pub struct Blocking;

impl Run for Blocking {
    fn run<O: CollectiveOperation>(&self, team: &Arc<Team>, operation: O) -> Result<()> {
        team.call(operation)
    }
}
