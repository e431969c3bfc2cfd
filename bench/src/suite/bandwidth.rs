//! `bandwidth` and `bibandwidth`: windows of messages in one direction or in both, as in OSU's `osu_bw` and `osu_bibw`.

use serde::{Deserialize, Serialize};

use super::Description;
use crate::args::BenchArgs;
use crate::body::{Body, Measured, Repeat, Traffic, other};
use crate::error::Result;
use crate::measure::{Runner, Sample, Stage};
use crate::plan::Plan;
use crate::port::{Port, tags};
use crate::record::{Figures, Quantity, Row};
use crate::run::Test;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    fn of(_: &BenchArgs) -> Self {
        Self
    }

    fn stage<'p, P: Port>(&self, plan: &Plan, port: &'p P) -> Result<Box<dyn Stage + 'p>> {
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

    fn label(&self, plan: &Plan, row: &mut Row) {
        row.series.window = Some(plan.window);
    }
}

/// Who sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Rank 0 sends; rank 1 acknowledges each window.
    One,
    /// Both send, and nobody acknowledges.
    Both,
}

/// One unit is one message.
pub(crate) struct Bandwidth<P: Port> {
    traffic: Traffic,
    direction: Direction,
    window: usize,
    requests: Vec<P::Request>,
}

impl<P: Port> Bandwidth<P> {
    pub(crate) fn new(traffic: Traffic, direction: Direction, window: usize) -> Self {
        Self {
            traffic,
            direction,
            window,
            requests: Vec::with_capacity(2 * window),
        }
    }

    fn iteration(&mut self, port: &P, size: usize) -> Result<()> {
        let peer = other(port.rank());
        let leads = port.rank().as_u32() == 0;
        let (sends, receives, acknowledges) = match self.direction {
            Direction::Both => (true, true, false),
            Direction::One => (leads, !leads, true),
        };
        if receives {
            for slot in 0..self.window {
                let room = self.traffic.incoming(slot, size);
                self.requests.push(port.irecv(room, peer, tags::DATA)?);
            }
        }
        if sends {
            for slot in 0..self.window {
                let data = self.traffic.outgoing(slot, size);
                self.requests.push(port.isend(data, peer, tags::DATA)?);
            }
        }
        port.wait_all(&mut self.requests)?;
        if receives {
            self.traffic.check(self.window, size, peer)?;
        }
        if acknowledges {
            exchange_ack(&self.traffic, port, leads)?;
        }
        Ok(())
    }
}

/// The end of a window: an empty message back to the sender.
fn exchange_ack<P: Port>(traffic: &Traffic, port: &P, sends: bool) -> Result<()> {
    let peer = other(port.rank());
    if sends {
        port.recv(traffic.incoming(0, 0), peer, tags::ACK)
    } else {
        port.send(traffic.empty(), peer, tags::ACK)
    }
}

impl<P: Port> Body<P> for Bandwidth<P> {
    fn block(&mut self, port: &P, block: Repeat<'_>) -> Result<Measured> {
        let size = block.size;
        let measured = block.run(1, || self.iteration(port, size))?;
        let directions = match self.direction {
            Direction::Both => 2,
            Direction::One => 1,
        };
        Ok(Measured {
            units: measured.units * self.window as u64 * directions,
            ..measured
        })
    }
}
