//! The programs: what each rank does.
//!
//! A program is an asynchronous function of a rank in a file of its own, and a line of [`PROGRAMS`].

mod allreduce;
mod barrier;
mod faces;
pub(crate) mod halo3d;
pub(crate) mod ping_pong;
mod ring;
pub(crate) mod stencil;
pub(crate) mod stream;
mod sweep3d;

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use tagwire_base::Tag;

use crate::error::Result;
use crate::rank::SimRank;
use crate::rounds::Clockwork;

/// What a program is told.
#[derive(Debug, Clone, Copy)]
pub struct Arguments {
    /// How often it does what it does.
    pub rounds: u32,
    /// Bytes of each message.
    pub bytes: usize,
    /// What each rank computes in a round.
    pub compute: Duration,
}

/// What a rank's body is: it ends when its program has.
pub(crate) type Body<'a> = Pin<Box<dyn Future<Output = Result<()>> + 'a>>;

/// A program.
#[derive(Clone, Copy)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// What it does, in a sentence.
    pub about: &'static str,
    /// How many ranks it takes at least.
    pub least: u32,
    /// With how many others a rank of a large job exchanges messages, about, for the estimate of memory.
    pub peers: fn(u32) -> u32,
    pub(crate) body: for<'a> fn(&'a SimRank, Arguments, &'a Rc<Clockwork>) -> Body<'a>,
}

impl std::fmt::Debug for Program {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Program").field(&self.name).finish()
    }
}

/// The programs, in the order of reports.
pub const PROGRAMS: &[Program] = &[
    ping_pong::PROGRAM,
    stream::PROGRAM,
    ring::PROGRAM,
    stencil::PROGRAM,
    halo3d::PROGRAM,
    faces::PROGRAM,
    sweep3d::PROGRAM,
    barrier::PROGRAM,
    allreduce::PROGRAM,
];

/// Returns the program called `name`.
#[must_use]
pub fn program(name: &str) -> Option<&'static Program> {
    PROGRAMS.iter().find(|program| program.name == name)
}

/// Returns the tag of messages of a kind.
pub(crate) fn tag(number: u32) -> Tag {
    Tag::user((number & 0xffff) as i32).expect("it is no more than 16 bits")
}

/// Returns in how many steps of doubling `ranks` are reached: the peers of a rank in most collectives.
pub(crate) const fn doublings(ranks: u32) -> u32 {
    u32::BITS - ranks.saturating_sub(1).leading_zeros()
}

/// Returns a grid of `ranks` in `N` directions, as near to a cube as there is: its extents, the greatest first.
#[must_use]
pub fn grid<const N: usize>(ranks: u32) -> [u32; N] {
    let mut extents = [1; N];
    let mut left = ranks;
    for (index, extent) in extents.iter_mut().enumerate() {
        let directions = (N - index) as f64;
        let ideal = f64::from(left).powf(directions.recip()).round().max(1.0) as u32;
        let nearest = (ideal..=left).find(|extent| left.is_multiple_of(*extent));
        *extent = nearest.unwrap_or(left);
        left /= *extent;
    }
    extents.sort_unstable_by_key(|extent| std::cmp::Reverse(*extent));
    extents
}

/// Computes and does `round`, so many times.
async fn rounds(
    rank: &SimRank,
    arguments: Arguments,
    clockwork: &Clockwork,
    round: impl AsyncFn() -> Result<()>,
) -> Result<()> {
    for number in 0..arguments.rounds {
        rank.compute(arguments.compute).await;
        round().await?;
        clockwork.note(rank, number);
    }
    Ok(())
}

/// Exchanges `bytes` with each of `neighbours`: `(to, from)`. Messages to different ones have tags of their own, since a neighbour may be
/// so in two directions.
async fn exchange(rank: &SimRank, neighbours: &[(u32, u32)], bytes: usize) -> Result<()> {
    let mut requests = Vec::with_capacity(2 * neighbours.len());
    for (direction, (_, from)) in neighbours.iter().enumerate() {
        requests.push(rank.irecv(*from, tag(direction as u32), bytes)?);
    }
    for (direction, (to, _)) in neighbours.iter().enumerate() {
        requests.push(rank.isend(*to, tag(direction as u32), vec![0; bytes])?);
    }
    for request in requests {
        rank.wait(request).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_have_all_ranks() {
        for ranks in [1, 2, 7, 8, 12, 27, 64, 1000, 65_536] {
            assert_eq!(grid::<3>(ranks).iter().product::<u32>(), ranks);
            assert_eq!(grid::<2>(ranks).iter().product::<u32>(), ranks);
        }
        assert_eq!(grid::<3>(64), [4, 4, 4]);
        assert_eq!(grid::<2>(65_536), [256, 256]);
    }

    #[test]
    fn doublings_reach_all() {
        assert_eq!([1, 2, 3, 4, 5, 65_536].map(doublings), [0, 1, 2, 2, 3, 16]);
    }
}
