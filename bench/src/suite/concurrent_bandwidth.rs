//! `concurrent-bandwidth`: each sender sends long messages one after the other, and gets one answer (figures 5 and 6).

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::Description;
use crate::args::{BenchArgs, Tags};
use crate::body::Traffic;
use crate::concurrent::blocks::{self, Sample};
use crate::concurrent::work::Caller;
use crate::concurrent::{partner, sends};
use crate::error::Result;
use crate::plan::Plan;
use crate::port::partitioned::PartitionedPort;
use crate::port::{Port, tags};
use crate::record::{Quantity, Row};
use crate::run::{Ports, Run, Test};
use crate::units::comparison::Comparison;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ConcurrentBandwidth {
    tags: Tags,
}

pub(crate) const TESTS: &[Description] = &[Description {
    name: "concurrent-bandwidth",
    about: "Bandwidth of several processes or threads that send long messages at once",
    quantity: Quantity::BANDWIDTH,
    sizes: "8M",
    options: &["units", "window", "tags", "start", "memory"],
    units: Some(Comparison {
        window: 25,
        ..Comparison::PAIRS
    }),
    ..Description::PLAIN
}];

impl Test for ConcurrentBandwidth {
    fn of(args: &BenchArgs) -> Self {
        Self {
            tags: args.concurrent.tags.unwrap_or_default(),
        }
    }

    fn label(&self, plan: &Plan, row: &mut Row) {
        row.series.window = Some(plan.window);
        row.series.tags = (self.tags == Tags::Shared).then(|| "shared".to_owned());
    }

    fn measure<P: PartitionedPort>(&self, ports: Ports<'_, P>, run: &mut Run<'_>) -> Result<()> {
        let plan = run.plan();
        let caller = |run: &Run<'_>, number: Option<u32>| {
            Ok(Stream {
                traffic: run.traffic_of(number)?,
                thread: number.unwrap_or(0),
                messages: plan.window,
                tags: self.tags,
            })
        };
        blocks::measure(ports.own, run, (5, 1), &caller, &mut emit)
    }
}

/// The sum over senders.
fn emit(run: &mut Run<'_>, sample: Sample) -> Result<()> {
    let mut row = sample.row(run);
    let messages = f64::from(run.plan().window);
    let bytes = messages * sample.size as f64;
    // Bytes per nanosecond are 10^3 MB/s.
    let bandwidth = sample.rate.times(bytes * 1e3);
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
