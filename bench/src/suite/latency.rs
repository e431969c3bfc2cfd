//! `latency`: a message goes back and forth, as in OSU's `osu_latency`.

use super::Description;
use crate::body::{Latency, Unexpected};
use crate::error::Result;
use crate::measure::{Effort, Runner, Stage};
use crate::plan::Plan;
use crate::port::Port;
use crate::run::Test;

pub(crate) struct PingPong;

pub(crate) const TESTS: &[Description] = &[Description {
    name: "latency",
    about: "Half the round trip of a message that goes back and forth between two ranks",
    options: &[
        "ranks",
        "memory",
        "profile",
        "percentiles",
        "raw",
        "layers",
        "posted",
        "unexpected",
    ],
    ..Description::PLAIN
}];

impl Test for PingPong {
    fn stage<'p, P: Port>(plan: &Plan, port: &'p P) -> Result<Box<dyn Stage + 'p>> {
        let traffic = plan.traffic(port, 0, plan.window)?;
        if plan.unexpected == 0 {
            let body = Latency::new(traffic, plan.posted);
            return Ok(Box::new(Runner::new(port, body)));
        }
        // Those of rank 1 that nobody has received: when bytes are checked, each needs memory of its own there until the end.
        let window = match port.rank().as_u32() {
            0 => 1,
            _ => plan.unexpected,
        };
        let ahead = plan.traffic(port, 1, window)?;
        let body = Unexpected::new(traffic, ahead, plan.unexpected);
        Ok(Box::new(Runner::new(port, body)))
    }

    fn effort(plan: &Plan) -> Effort {
        match plan.unexpected {
            0 => Effort::of_latency(plan),
            _ => Effort::of(plan, (100, 10), (20, 2)),
        }
    }
}
