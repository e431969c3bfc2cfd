//! `bandwidth` and `bibandwidth`: windows of messages in one direction or in both, as in OSU's `osu_bw` and `osu_bibw`.

use super::Description;
use crate::body::{Bandwidth, Direction};
use crate::error::Result;
use crate::measure::{Runner, Sample, Stage};
use crate::plan::Plan;
use crate::port::Port;
use crate::record::{Figures, Quantity, Row};
use crate::run::Test;

pub(crate) struct Windows;

const ONE: Description = Description {
    name: "bandwidth",
    about: "One rank sends windows of messages, the other acknowledges each window",
    quantity: Quantity::BANDWIDTH,
    options: &[
        "ranks",
        "window",
        "memory",
        "profile",
        "percentiles",
        "raw",
        "layers",
    ],
    ..Description::PLAIN
};

const BOTH: Description = Description {
    name: "bibandwidth",
    about: "Both ranks send windows of messages at once",
    ..ONE
};

pub(crate) const TESTS: &[Description] = &[ONE, BOTH];

impl Test for Windows {
    fn stage<'p, P: Port>(plan: &Plan, port: &'p P) -> Result<Box<dyn Stage + 'p>> {
        let direction = match plan.test.name == ONE.name {
            true => Direction::One,
            false => Direction::Both,
        };
        let traffic = plan.traffic(port, 0, plan.window)?;
        let body = Bandwidth::new(traffic, direction, plan.window as usize);
        Ok(Box::new(Runner::new(port, body)))
    }

    fn figures(sample: &Sample) -> Figures {
        sample.bandwidth()
    }

    fn label(plan: &Plan, row: &mut Row) {
        row.window = Some(plan.window);
    }
}
