//! `ring`: one message travels round all ranks.

use super::{Description, Ranks};
use crate::body::Ring;
use crate::error::Result;
use crate::measure::{Effort, Runner, Sample, Stage};
use crate::plan::Plan;
use crate::port::Port;
use crate::record::Figures;
use crate::run::Test;

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
    fn stage<'p, P: Port>(plan: &Plan, port: &'p P) -> Result<Box<dyn Stage + 'p>> {
        let body = Ring::new(plan.traffic(port, 0, plan.window)?);
        Ok(Box::new(Runner::new(port, body)))
    }

    fn effort(plan: &Plan) -> Effort {
        Effort::of_latency(plan)
    }

    fn figures(sample: &Sample) -> Figures {
        let mut figures = sample.latency();
        figures.set("elapsed_ms", sample.elapsed.as_secs_f64() * 1e3);
        figures
    }
}
