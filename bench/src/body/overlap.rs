//! One message while one of two ranks computes: what the availability and the overlap of
//! communication and computation are measured with.
//!
//! An iteration, after the post-work-wait method of the Sandia Micro-Benchmarks:
//!
//! ```text
//!   rank 0, which computes         rank 1
//!     handshake <--------------------> handshake
//!     post a send or receive           post the other
//!     compute                          wait
//!     wait
//! ```
//!
//! Who posts before the handshake depends on the [`Order`]: with an early receive it is the
//! receiver, with a late one the sender. The times of iterations go from the end of one to the end
//! of the next, handshake included.

use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::compute::compute;
use super::{Traffic, other};
use crate::args::Side;
use crate::error::Result;
use crate::port::{Port, tags};

/// Whether the receive is posted before or after the message has been sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Order {
    /// The receive is posted first.
    Early,
    /// The send is posted first.
    Late,
}

impl Order {
    #[inline]
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Early => "early",
            Self::Late => "late",
        }
    }
}

/// What a message is to be measured with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Case {
    pub size: usize,
    /// What rank 0 does: it sends or it receives.
    pub side: Side,
    pub order: Order,
}

/// What the iterations of a block consist of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// The handshake, and rank 0 computes: no message.
    Work,
    /// A message, and rank 0 computes.
    Both,
    /// A message, and rank 1 computes. Timed from the handshake to the end of rank 0's wait.
    AloneHere,
    /// A message, and rank 0 computes. Timed from the handshake to the end of rank 1's wait.
    AloneThere,
}

/// So many iterations, with so much computation in each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Block {
    pub case: Case,
    pub kind: Kind,
    pub count: u64,
    pub units: u64,
}

/// Runs blocks. All ranks call it with the same blocks.
pub(crate) struct Overlap<P: Port> {
    traffic: Traffic,
    requests: Vec<P::Request>,
    handshake: Vec<P::Request>,
    /// The times of the last block's iterations on this rank, in nanoseconds.
    times: Vec<u64>,
}

impl<P: Port> Overlap<P> {
    #[inline]
    pub(crate) const fn new(traffic: Traffic) -> Self {
        Self {
            traffic,
            requests: Vec::new(),
            handshake: Vec::new(),
            times: Vec::new(),
        }
    }

    /// Runs a block and returns the time of one of its iterations on this rank, in nanoseconds:
    /// the mean of the middle half, so that neither an interrupt counts nor is it hidden when a
    /// good part of the iterations take longer than the others.
    #[inline]
    pub(crate) fn block(&mut self, port: &P, block: Block) -> Result<f64> {
        self.times.clear();
        self.times
            .reserve(usize::try_from(block.count).unwrap_or(0));
        // Both ranks are in the block before the first iteration begins.
        self.shake_hands(port)?;
        let mut before = Instant::now();
        for _ in 0..block.count {
            let began = self.iteration(port, block)?;
            let now = Instant::now();
            let start = began.unwrap_or(before);
            let time = now.duration_since(start).as_nanos();
            self.times.push(u64::try_from(time).unwrap_or(u64::MAX));
            before = now;
        }
        Ok(middle_mean(&mut self.times))
    }

    /// Returns when the message began to move, where that is what is timed.
    #[inline]
    fn iteration(&mut self, port: &P, block: Block) -> Result<Option<Instant>> {
        let Block { case, kind, .. } = block;
        let here = port.rank().as_u32() == 0;
        let receives = here == (case.side == Side::Recv);
        let computes = here != (kind == Kind::AloneHere);
        if kind == Kind::Work {
            self.shake_hands(port)?;
            if computes {
                compute(block.units);
            }
            return Ok(None);
        }
        let posts_first = receives == (case.order == Order::Early);
        if posts_first {
            self.post(port, case.size, receives)?;
        }
        self.shake_hands(port)?;
        let alone = matches!(kind, Kind::AloneHere | Kind::AloneThere);
        let began = alone.then(Instant::now);
        if !posts_first {
            self.post(port, case.size, receives)?;
        }
        if computes {
            compute(block.units);
        }
        port.wait_all(&mut self.requests)?;
        if receives {
            self.traffic.check(1, case.size, other(port.rank()))?;
        }
        Ok(began)
    }

    #[inline]
    fn post(&mut self, port: &P, size: usize, receives: bool) -> Result<()> {
        let peer = other(port.rank());
        let request = if receives {
            port.irecv(self.traffic.incoming(0, size), peer, tags::DATA)?
        } else {
            port.isend(self.traffic.outgoing(0, size), peer, tags::DATA)?
        };
        self.requests.push(request);
        Ok(())
    }

    /// An empty message each way: afterwards each rank has done what it did before.
    #[inline]
    fn shake_hands(&mut self, port: &P) -> Result<()> {
        let peer = other(port.rank());
        self.handshake
            .push(port.isend(self.traffic.empty(), peer, tags::ACK)?);
        port.recv(self.traffic.incoming(0, 0), peer, tags::ACK)?;
        port.wait_all(&mut self.handshake)
    }
}

/// The mean of the middle half.
#[inline]
fn middle_mean(times: &mut [u64]) -> f64 {
    times.sort_unstable();
    let quarter = times.len() / 4;
    let middle = &times[quarter..times.len() - quarter];
    middle.iter().map(|&time| time as f64).sum::<f64>() / middle.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_half_counts() {
        assert_eq!(middle_mean(&mut [9, 1, 1000, 2, 3, 4, 5, 0]), 3.5);
        assert_eq!(middle_mean(&mut [7]), 7.0);
        assert_eq!(middle_mean(&mut [2, 4, 90]), 32.0);
        assert_eq!(middle_mean(&mut []), 0.0);
    }
}
