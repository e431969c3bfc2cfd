//! A message goes back and forth, as in OSU's `osu_latency`.

use tagwire_base::Rank;

use super::{Body, Measured, Repeat, Traffic};
use crate::error::Result;
use crate::port::{Port, barrier, tags};

/// One unit is half a round trip of each pair of ranks: i and i + n/2.
pub(crate) struct Latency<P: Port> {
    traffic: Traffic,
    /// How many receives that nothing matches lie ahead of the others, on both ranks.
    posted: u32,
    /// How many percent of them are of any source.
    wild: u32,
    ahead: Vec<P::Request>,
}

impl<P: Port> Latency<P> {
    pub(crate) const fn new(traffic: Traffic, posted: u32) -> Self {
        Self {
            traffic,
            posted,
            wild: 0,
            ahead: Vec::new(),
        }
    }
}

impl<P: Port> Latency<P> {
    /// Has so many percent of the receives ahead be of any source.
    pub(crate) fn with_wild(self, percent: u32) -> Self {
        Self {
            wild: percent,
            ..self
        }
    }
}

impl<P: Port> Body<P> for Latency<P> {
    fn begin(&mut self, port: &P, _size: usize) -> Result<()> {
        let (peer, _) = peer(port);
        for number in 0..self.posted {
            let empty = self.traffic.incoming(0, 0);
            self.ahead.push(match is_wild(number, self.wild) {
                true => port.irecv_any(empty, tags::never(number))?,
                false => port.irecv(empty, peer, tags::never(number))?,
            });
        }
        barrier(port)
    }

    fn block(&mut self, port: &P, block: Repeat<'_>) -> Result<Measured> {
        let ((peer, leads), size) = (peer(port), block.size);
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

    /// The receives end the way every port can end them: each gets its message after all. One
    /// rank after the other, so that each sends to a rank that waits.
    fn end(&mut self, port: &P, _size: usize) -> Result<()> {
        let (peer, leads) = peer(port);
        for sends in [true, false] {
            if leads != sends {
                port.wait_all(&mut self.ahead)?;
                continue;
            }
            for number in 0..self.posted {
                port.send(self.traffic.empty(), peer, tags::never(number))?;
            }
        }
        Ok(())
    }
}

/// Whether the receive of this number is of any source, where so many percent are: spread evenly, of each hundred so many.
#[inline]
pub(super) const fn is_wild(number: u32, percent: u32) -> bool {
    let (before, share) = (number as u64, percent as u64);
    (before + 1) * share / 100 > before * share / 100
}

/// The other rank of a pair, and whether this one sends first.
#[inline]
pub(super) fn peer<P: Port>(port: &P) -> (Rank, bool) {
    let (rank, pairs) = (port.rank().as_u32(), port.size() / 2);
    match rank < pairs {
        true => (Rank::new(rank + pairs), true),
        false => (Rank::new(rank - pairs), false),
    }
}
