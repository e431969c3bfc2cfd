//! `latency`: a message goes back and forth, as in OSU's `osu_latency`.

use serde::{Deserialize, Serialize};
use tagwire_base::Rank;

use super::Description;
use crate::args::{BenchArgs, List, check_ranks};
use crate::body::{Ahead, Latency, Placed, Unexpected, UnexpectedAt};
use crate::error::Result;
use crate::measure::{Effort, Runner, Stage};
use crate::plan::Plan;
use crate::port::Port;
use crate::position::Position;
use crate::record::Row;
use crate::run::Test;
use crate::spread::{Sources, Spread};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PingPong {
    posted: Option<u32>,
    wild: Option<u32>,
    unexpected: Option<u32>,
    position: Option<Position>,
    spread: Option<Spread>,
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
        "position",
        "spread",
    ],
    ..Description::PLAIN
}];

impl Test for PingPong {
    fn of(args: &BenchArgs) -> Self {
        Self {
            posted: args.posted.as_ref().map(List::only),
            wild: args.wild.as_ref().map(List::only),
            unexpected: args.unexpected.as_ref().map(List::only),
            position: args.position.as_ref().map(List::only),
            spread: args.spread.as_ref().map(List::only),
        }
    }

    fn check_ranks(&self, plan: &Plan, ranks: u32) -> Result<()> {
        // Jobs of `tags` that are compared with those of `sources` have the same ranks.
        let has_others = match self.spread {
            None => false,
            Some(Spread::Tags) => ranks > 2,
            Some(Spread::Sources) => true,
        };
        check_ranks(plan.test, has_others, ranks)
    }

    fn stage<'p, P: Port>(&self, plan: &Plan, port: &'p P) -> Result<Box<dyn Stage + 'p>> {
        let traffic = |thread, window| plan.traffic(port, thread, window);
        // Messages that nobody has received are those of ranks behind 0: when bytes are checked, each needs memory of its own there until the end.
        let kept = |messages| {
            if port.rank().as_u32() == 0 {
                1
            } else {
                messages
            }
        };
        let posted = self.posted.unwrap_or(0);
        let spread = self.spread.unwrap_or_default();
        Ok(match (self.unexpected, self.position) {
            (None, None) => {
                let ahead = Ahead {
                    count: posted,
                    wild: self.wild.unwrap_or(0),
                    spread,
                };
                let body = Latency::new(traffic(0, plan.window)?, ahead);
                Box::new(Runner::new(port, body.alone()))
            }
            (None, Some(position)) => {
                let body = Placed::new(traffic(0, posted + 1)?, position, posted);
                Box::new(Runner::new(port, body.with_wild(self.wild.unwrap_or(0))))
            }
            (Some(unexpected), None) => {
                let ahead = traffic(1, kept(unexpected.max(1)))?;
                let body = Unexpected::new(traffic(0, plan.window)?, ahead, unexpected);
                let sources = match spread {
                    Spread::Tags => None,
                    Spread::Sources => Sources::of(Rank::new(0), Rank::new(1), port.size()),
                };
                Box::new(Runner::new(port, body.with_sources(sources)))
            }
            (Some(unexpected), Some(position)) => {
                let window = kept(UnexpectedAt::<P>::window(unexpected));
                let body = UnexpectedAt::new(traffic(0, window)?, position, unexpected);
                Box::new(Runner::new(port, body))
            }
        })
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
        row.series.position = self.position;
        row.series.spread = self.spread;
    }
}
