//! A message goes back and forth between the callers of a pair.

use std::time::{Duration, Instant};

use super::work::Caller;
use super::{partner, sends};
use crate::body::Traffic;
use crate::error::Result;
use crate::port::{Port, tags};

/// One iteration is a round trip.
pub(crate) struct PingPong {
    pub traffic: Traffic,
    pub thread: u32,
}

impl<P: Port> Caller<P> for PingPong {
    fn block(&mut self, port: &P, size: usize, count: u64) -> Result<Option<Duration>> {
        let (tag, _) = tags::thread(self.thread);
        let peer = partner(port.rank());
        if !sends(port.rank()) {
            for _ in 0..count {
                self.traffic.recv(port, size, peer, tag)?;
                self.traffic.send(port, size, peer, tag)?;
            }
            return Ok(None);
        }
        let start = Instant::now();
        for _ in 0..count {
            self.traffic.send(port, size, peer, tag)?;
            self.traffic.recv(port, size, peer, tag)?;
        }
        Ok(Some(start.elapsed()))
    }
}
