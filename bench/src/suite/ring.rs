//! `ring`: one message travels round all ranks.

use std::time::Instant;

use serde::{Deserialize, Serialize};
use tagwire_base::Rank;

use super::{Description, Ranks};
use crate::args::BenchArgs;
use crate::body::{Body, Measured, Times, Traffic};
use crate::concurrent::Callers;
use crate::error::Result;
use crate::measure::{Effort, Runner, Sample, Stage};
use crate::plan::Plan;
use crate::port::{Port, tags};
use crate::record::Figures;
use crate::run::Test;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Hops;

pub(crate) const TESTS: &[Description] = &[Description {
    name: "ring",
    about: "One message travels round all ranks: time per hop",
    options: &["ranks", "memory", "profile", "percentiles", "raw", "layers"],
    ranks: Ranks::SEVERAL,
    sizes: "8",
    ..Description::PLAIN
}];

impl Test for Hops {
    fn of(_: &BenchArgs, _: Option<Callers>) -> Self {
        Self
    }

    fn stage<'p, P: Port>(&self, plan: &Plan, port: &'p P) -> Result<Box<dyn Stage + 'p>> {
        let body = Ring::new(plan.traffic(port, 0, plan.window)?);
        Ok(Box::new(Runner::new(port, body)))
    }

    fn effort(&self, plan: &Plan) -> Effort {
        Effort::of_latency(plan)
    }

    fn figures(sample: &Sample) -> Figures {
        let mut figures = sample.latency();
        figures.set("elapsed_ms", sample.elapsed.as_secs_f64() * 1e3);
        figures
    }
}

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
