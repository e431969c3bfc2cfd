//! A message goes back and forth, as in OSU's `osu_latency`.

use tagwire_base::Rank;

use super::ahead::{Ahead, Pairs};
use super::{Body, Measured, Repeat, Traffic};
use crate::error::Result;
use crate::port::{Port, barrier, tags};

/// One unit is half a round trip of each pair of ranks. A rank that is in no pair does nothing, but for the entries of others
/// that are of it.
pub(crate) struct Latency<P: Port> {
    traffic: Traffic,
    ahead: Ahead,
    /// Only ranks 0 and 1 are a pair, whatever ranks there are.
    is_alone: bool,
    posted: Vec<P::Request>,
}

impl<P: Port> Latency<P> {
    /// Returns that of as many pairs as there can be.
    pub(crate) const fn new(traffic: Traffic, ahead: Ahead) -> Self {
        Self {
            traffic,
            ahead,
            is_alone: false,
            posted: Vec::new(),
        }
    }

    /// Returns the same of ranks 0 and 1 alone.
    pub(crate) fn alone(self) -> Self {
        Self {
            is_alone: true,
            ..self
        }
    }

    #[inline]
    fn pairs(&self, port: &P) -> Pairs {
        match self.is_alone {
            true => Pairs::first(port.size()),
            false => Pairs::all(port.size()),
        }
    }
}

impl<P: Port> Body<P> for Latency<P> {
    fn begin(&mut self, port: &P, _size: usize) -> Result<()> {
        let pairs = self.pairs(port);
        self.posted = self.ahead.post(pairs, port, &self.traffic)?;
        barrier(port)
    }

    fn block(&mut self, port: &P, block: Repeat<'_>) -> Result<Measured> {
        let Some((peer, leads)) = self.pairs(port).peer(port.rank()) else {
            return Ok(Measured::NOTHING);
        };
        let size = block.size;
        let traffic = &mut self.traffic;
        if leads {
            return block.run(2, || {
                traffic.send(port, size, peer, tags::DATA)?;
                traffic.recv(port, size, peer, tags::DATA)
            });
        }
        block.timed_if(false).run(2, || {
            traffic.recv(port, size, peer, tags::DATA)?;
            traffic.send(port, size, peer, tags::DATA)
        })
    }

    fn end(&mut self, port: &P, _size: usize) -> Result<()> {
        let pairs = self.pairs(port);
        self.ahead.end(pairs, port, &self.traffic, &mut self.posted)
    }
}

/// Whether the receive of this number is of any source, where so many percent are: spread evenly, of each hundred so many.
#[inline]
pub(super) const fn is_wild(number: u32, percent: u32) -> bool {
    let (before, share) = (number as u64, percent as u64);
    (before + 1) * share / 100 > before * share / 100
}

/// The other rank of a pair, and whether this one sends first, where all ranks are in pairs.
#[inline]
pub(super) fn peer<P: Port>(port: &P) -> (Rank, bool) {
    let pairs = Pairs::all(port.size());
    pairs.peer(port.rank()).expect("an even number of ranks")
}
