//! `ring`: one message travels round all ranks.

use serde::{Deserialize, Serialize};
use tagwire_base::Rank;

use super::{Description, Ranks};
use crate::args::BenchArgs;
use crate::body::{Body, Measured, Repeat, Traffic};
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
    fn of(_: &BenchArgs) -> Self {
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
    fn block(&mut self, port: &P, block: Repeat<'_>) -> Result<Measured> {
        let (rank, ranks) = (port.rank().as_u32(), port.size());
        let next = Rank::new((rank + 1) % ranks);
        let previous = Rank::new((rank + ranks - 1) % ranks);
        let (hops, size) = (u64::from(ranks), block.size);
        let rounds = Repeat {
            count: block.count.div_ceil(hops),
            ..block
        };
        let traffic = &mut self.traffic;
        if rank == 0 {
            return rounds.run(hops, || {
                traffic.send(port, size, next, tags::DATA)?;
                traffic.recv(port, size, previous, tags::DATA)
            });
        }
        rounds.timed_if(false).run(hops, || {
            traffic.recv(port, size, previous, tags::DATA)?;
            traffic.send(port, size, next, tags::DATA)
        })
    }
}
