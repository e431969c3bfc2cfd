//! The time of a receive whose message has arrived already, behind others that nobody has
//! received.

use std::time::{Duration, Instant};

use super::{Body, Measured, Repeat, Traffic, other};
use crate::error::Result;
use crate::port::{Port, tags};

/// How many messages of one iteration are received in one go: the clock is read once for all.
const BATCH: usize = 16;

/// One unit is one receive. Rank 1 sends, rank 0 receives.
pub(crate) struct Unexpected<P: Port> {
    traffic: Traffic,
    /// The messages that lie ahead.
    before: Traffic,
    /// How many messages lie ahead.
    ahead: u32,
    requests: Vec<P::Request>,
}

impl<P: Port> Unexpected<P> {
    /// `traffic` has a window of at least [`BATCH`] messages, `before` one of `ahead` on rank 1.
    pub(crate) const fn new(traffic: Traffic, before: Traffic, ahead: u32) -> Self {
        Self {
            traffic,
            before,
            ahead,
            requests: Vec::new(),
        }
    }

    fn receive_batch(&mut self, port: &P, size: usize) -> Result<Duration> {
        let peer = other(port.rank());
        // Whatever was sent before this one has arrived when it has.
        port.recv(self.traffic.incoming(0, 0), peer, tags::SENT)?;
        let start = Instant::now();
        for _ in 0..BATCH {
            self.traffic.recv(port, size, peer, tags::DATA)?;
        }
        let elapsed = start.elapsed();
        port.send(self.traffic.empty(), peer, tags::ACK)?;
        Ok(elapsed)
    }

    fn send_batch(&mut self, port: &P, size: usize) -> Result<()> {
        let peer = other(port.rank());
        let mut batch = Vec::with_capacity(BATCH);
        for slot in 0..BATCH {
            batch.push(port.isend(self.traffic.outgoing(slot, size), peer, tags::DATA)?);
        }
        port.send(self.traffic.empty(), peer, tags::SENT)?;
        port.recv(self.traffic.incoming(0, 0), peer, tags::ACK)?;
        port.wait_all(&mut batch)
    }
}

impl<P: Port> Body<P> for Unexpected<P> {
    fn begin(&mut self, port: &P, size: usize) -> Result<()> {
        let peer = other(port.rank());
        if port.rank().as_u32() == 0 {
            port.recv(self.traffic.incoming(0, 0), peer, tags::SENT)?;
            return port.send(self.traffic.empty(), peer, tags::ACK);
        }
        for slot in 0..self.ahead as usize {
            let data = self.before.outgoing(slot, size);
            self.requests.push(port.isend(data, peer, tags::AHEAD)?);
        }
        port.send(self.traffic.empty(), peer, tags::SENT)?;
        port.recv(self.traffic.incoming(0, 0), peer, tags::ACK)
    }

    fn block(&mut self, port: &P, mut block: Repeat<'_>) -> Result<Measured> {
        let mut elapsed = Duration::ZERO;
        for _ in 0..block.count {
            if port.rank().as_u32() != 0 {
                self.send_batch(port, block.size)?;
                continue;
            }
            let took = self.receive_batch(port, block.size)?;
            elapsed += took;
            if let Some(times) = &mut block.times {
                times.record(took, BATCH as u64);
            }
        }
        Ok(Measured {
            elapsed,
            units: block.count * BATCH as u64,
        })
    }

    fn end(&mut self, port: &P, size: usize) -> Result<()> {
        let peer = other(port.rank());
        if port.rank().as_u32() != 0 {
            return port.wait_all(&mut self.requests);
        }
        for _ in 0..self.ahead {
            self.before.recv(port, size, peer, tags::AHEAD)?;
        }
        Ok(())
    }
}
