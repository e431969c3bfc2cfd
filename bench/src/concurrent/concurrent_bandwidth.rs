//! `concurrent-bandwidth`: each sender sends long messages one after the other, and gets one answer (figures 5 and 6).

use std::time::{Duration, Instant};

use super::blocks::{self, Sample};
use super::run::{Run, partner, sends};
use super::work::Caller;
use super::{Description, Shape, Test};
use crate::args::{Tags, TestName};
use crate::body::Traffic;
use crate::error::Result;
use crate::port::{Port, tags};
use crate::record::Quantity;

pub(super) struct ConcurrentBandwidth;

impl Test for ConcurrentBandwidth {
    const DESCRIPTION: Description = Description {
        test: TestName::ConcurrentBandwidth,
        quantity: Quantity::BANDWIDTH,
        sizes: "8M",
        granule: 1,
        units: "processes:4,threads:4",
        count: 4,
        window: 25,
        options: &["units", "window", "tags", "start", "memory"],
        sessions: false,
        shape: |unit, _| Ok(Shape::pairs(unit)),
        paired: None,
    };

    fn measure<P: Port + Sync>(run: &mut Run<'_, P>, _: Option<&P>) -> Result<()> {
        let plan = run.plan();
        let largest = plan.largest()?;
        let caller = |run: &mut Run<'_, P>, thread, seed| {
            Ok(Stream {
                traffic: run.traffic(thread, largest, seed)?,
                thread,
                messages: plan.window,
                tags: plan.concurrent.tags,
            })
        };
        let seed = run.seed();
        blocks::measure(
            run,
            (5, 1),
            |run, thread| caller(run, thread, seed),
            |run| caller(run, 0, None),
            &mut emit,
        )
    }
}

/// The sum over senders.
fn emit<P: Port>(run: &mut Run<'_, P>, sample: Sample) -> Result<()> {
    let mut row = run.row_of(&sample);
    let plan = run.plan();
    row.window = Some(plan.window);
    row.tags = (plan.concurrent.tags == Tags::Shared).then(|| "shared".to_owned());
    let messages = f64::from(plan.window);
    let bytes = messages * sample.size as f64;
    // Bytes per nanosecond are 10^3 MB/s.
    let bandwidth = sample.scaled(sample.rate, bytes * 1e3);
    row.figures.set_summary(Quantity::BANDWIDTH, bandwidth);
    sample.add_to(&mut row.figures, messages);
    run.emit(row)
}

/// One iteration is so many messages and an answer.
struct Stream {
    traffic: Traffic,
    thread: u32,
    messages: u32,
    tags: Tags,
}

impl<P: Port> Caller<P> for Stream {
    fn block(&mut self, port: &P, size: usize, count: u64) -> Result<Option<Duration>> {
        let (_, answer) = tags::thread(self.thread);
        let peer = partner(port.rank());
        let tag = |message: u32| match self.tags {
            Tags::Own => tags::thread(self.thread).0,
            Tags::Shared => tags::thread(message % 1024).0,
        };
        let is_sender = sends(port.rank());
        let start = Instant::now();
        for _ in 0..count {
            for message in 0..self.messages {
                match is_sender {
                    true => self.traffic.send(port, size, peer, tag(message))?,
                    false => self.traffic.recv(port, size, peer, tag(message))?,
                }
            }
            match is_sender {
                true => port.recv(self.traffic.incoming(0, 0), peer, answer)?,
                false => port.send(self.traffic.empty(), peer, answer)?,
            }
        }
        Ok(is_sender.then(|| start.elapsed()))
    }
}
