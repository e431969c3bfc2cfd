//! `message-rate --style blocking`: empty messages by blocking sends, an answer after so many, the first among them
//! (tables 1 and 2).

use std::time::{Duration, Instant};

use super::blocks::{self, Sample};
use super::run::{Run, partner, sends};
use super::work::Caller;
use super::{Description, Shape, Test};
use crate::args::TestName;
use crate::body::Traffic;
use crate::error::Result;
use crate::port::{Port, tags};
use crate::record::Quantity;

pub(super) struct MessageRate;

impl Test for MessageRate {
    const DESCRIPTION: Description = Description {
        test: TestName::MessageRate,
        quantity: Quantity::RATE,
        sizes: "0",
        granule: 1,
        units: "processes:1",
        count: 1,
        window: 0,
        options: &["units", "style", "ack-every", "start", "memory"],
        sessions: false,
        shape: |unit, _| Ok(Shape::pairs(unit)),
        paired: None,
    };

    fn measure<P: Port + Sync>(run: &mut Run<'_, P>, _: Option<&P>) -> Result<()> {
        let every = u64::from(run.plan().concurrent.ack_every);
        let largest = run.plan().largest()?;
        let seed = run.seed();
        let caller = |run: &mut Run<'_, P>, thread, seed| {
            Ok(Blocking {
                traffic: run.traffic(thread, largest, seed)?,
                thread,
                every,
            })
        };
        blocks::measure(
            run,
            (10_000, 1_000),
            |run, thread| caller(run, thread, seed),
            |run| caller(run, 0, None),
            &mut emit,
        )
    }
}

fn emit<P: Port>(run: &mut Run<'_, P>, sample: Sample) -> Result<()> {
    let mut row = run.row_of(&sample);
    row.ack_every = Some(run.plan().concurrent.ack_every);
    let rate = sample.scaled(sample.rate, 1e9);
    row.figures.set_summary(Quantity::RATE, rate);
    let bandwidth = sample.rate.median * sample.size as f64 * 1e3;
    row.figures.set(Quantity::BANDWIDTH.key(), bandwidth);
    sample.add_to(&mut row.figures, 1.0);
    run.emit(row)
}

/// One iteration is one message.
struct Blocking {
    traffic: Traffic,
    thread: u32,
    every: u64,
}

impl<P: Port> Caller<P> for Blocking {
    fn block(&mut self, port: &P, size: usize, count: u64) -> Result<Option<Duration>> {
        let (data, answer) = tags::thread(self.thread);
        let peer = partner(port.rank());
        if !sends(port.rank()) {
            for message in 0..count {
                self.traffic.recv(port, size, peer, data)?;
                if message % self.every == 0 {
                    port.send(self.traffic.empty(), peer, answer)?;
                }
            }
            port.send(self.traffic.empty(), peer, answer)?;
            return Ok(None);
        }
        let start = Instant::now();
        for message in 0..count {
            self.traffic.send(port, size, peer, data)?;
            if message % self.every == 0 {
                port.recv(self.traffic.incoming(0, 0), peer, answer)?;
            }
        }
        port.recv(self.traffic.incoming(0, 0), peer, answer)?;
        Ok(Some(start.elapsed()))
    }
}
