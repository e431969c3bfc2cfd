//! What waiting costs: rank 0 blocks in a receive and looks at the processor time of its process.

use std::time::{Duration, Instant};

use super::{Traffic, other};
use crate::error::Result;
use crate::leader::Script;
use crate::port::{Port, barrier, tags};
use crate::time::processor_time;

/// What a wait took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Idle {
    /// By the wall clock.
    pub elapsed: Duration,
    /// Processor time of the whole process, all threads.
    pub busy: Duration,
}

/// Rank 1 sleeps, and then sends; rank 0 waits for it.
pub(crate) struct Waits<'p, P> {
    pub port: &'p P,
    pub traffic: Traffic,
    pub pause: Duration,
    /// What the last wait took, on rank 0.
    pub waited: Option<Idle>,
}

impl<P: Port> Script for Waits<'_, P> {
    type Case = ();
    /// One message of this size.
    type Block = usize;
    type Told = ();

    fn block(&mut self, &size: &usize) -> Result<()> {
        let (port, traffic) = (self.port, &mut self.traffic);
        let peer = other(port.rank());
        barrier(port)?;
        if port.rank().as_u32() != 0 {
            std::thread::sleep(self.pause);
            return traffic.send(port, size, peer, tags::DATA);
        }
        let (start, before) = (Instant::now(), processor_time());
        traffic.recv(port, size, peer, tags::DATA)?;
        let (elapsed, after) = (start.elapsed(), processor_time());
        self.waited = Some(Idle {
            elapsed,
            busy: after.saturating_sub(before),
        });
        Ok(())
    }
}
