//! One message travels round all ranks.

use std::time::Instant;

use tagwire_base::Rank;

use super::{Body, Measured, Times, Traffic};
use crate::error::Result;
use crate::port::{Port, tags};

/// One unit is one hop. So is one iteration; rounds are always whole.
#[derive(Debug)]
pub(crate) struct Ring {
    traffic: Traffic,
}

impl Ring {
    pub(crate) const fn new(traffic: Traffic) -> Self {
        Self { traffic }
    }
}

impl<P: Port> Body<P> for Ring {
    fn block(
        &mut self,
        port: &P,
        size: usize,
        count: u64,
        mut times: Option<&mut Times>,
    ) -> Result<Measured> {
        let (rank, ranks) = (port.rank().as_u32(), port.size());
        let next = Rank::new((rank + 1) % ranks);
        let previous = Rank::new((rank + ranks - 1) % ranks);
        let hops = u64::from(ranks);
        let rounds = count.div_ceil(hops);
        let start = Instant::now();
        for _ in 0..rounds {
            if rank != 0 {
                self.traffic.recv(port, size, previous, tags::DATA)?;
                self.traffic.send(port, size, next, tags::DATA)?;
                continue;
            }
            let began = Times::begin(times.as_deref());
            self.traffic.send(port, size, next, tags::DATA)?;
            self.traffic.recv(port, size, previous, tags::DATA)?;
            if let (Some(times), Some(began)) = (&mut times, began) {
                times.record(began, hops);
            }
        }
        Ok(Measured {
            elapsed: start.elapsed(),
            units: rounds * hops,
        })
    }
}
