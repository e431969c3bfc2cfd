//! `latency`: a message goes back and forth, as in OSU's `osu_latency`.

use serde::{Deserialize, Serialize};

use super::Description;
use crate::args::{BenchArgs, Entries};
use crate::body::{Latency, Unexpected};
use crate::error::Result;
use crate::measure::{Effort, Runner, Stage};
use crate::plan::Plan;
use crate::port::Port;
use crate::record::Row;
use crate::run::Test;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PingPong {
    posted: Option<u32>,
    wild: Option<u32>,
    unexpected: Option<u32>,
}

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
        "wild",
        "unexpected",
    ],
    ..Description::PLAIN
}];

impl Test for PingPong {
    fn of(args: &BenchArgs) -> Self {
        Self {
            posted: args.posted.as_ref().map(Entries::only),
            wild: args.wild.as_ref().map(Entries::only),
            unexpected: args.unexpected.as_ref().map(Entries::only),
        }
    }

    fn stage<'p, P: Port>(&self, plan: &Plan, port: &'p P) -> Result<Box<dyn Stage + 'p>> {
        let traffic = plan.traffic(port, 0, plan.window)?;
        let Some(unexpected) = self.unexpected else {
            let body =
                Latency::new(traffic, self.posted.unwrap_or(0)).with_wild(self.wild.unwrap_or(0));
            return Ok(Box::new(Runner::new(port, body)));
        };
        // Those of rank 1 that nobody has received: when bytes are checked, each needs memory of its own there until the end.
        let window = match port.rank().as_u32() {
            0 => 1,
            _ => unexpected.max(1),
        };
        let ahead = plan.traffic(port, 1, window)?;
        let body = Unexpected::new(traffic, ahead, unexpected);
        Ok(Box::new(Runner::new(port, body)))
    }

    fn effort(&self, plan: &Plan) -> Effort {
        match self.unexpected {
            None => Effort::of_latency(plan),
            Some(_) => Effort::of(plan, (100, 10), (20, 2)),
        }
    }

    fn label(&self, _: &Plan, row: &mut Row) {
        row.series.posted = self.posted;
        row.series.wild = self.wild;
        row.series.unexpected = self.unexpected;
    }
}
