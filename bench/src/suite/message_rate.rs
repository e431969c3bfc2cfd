//! `message-rate`: messages per second between pairs of ranks, by windows of nonblocking sends as in OSU's `osu_mbw_mr`; or, with
//! `--style blocking`, empty messages by blocking sends, an answer after so many, the first among them (tables 1 and 2).

use std::time::{Duration, Instant};

use super::{Description, Ranks};
use crate::body::{Rate, ThreadedRate, Traffic};
use crate::concurrent::blocks::{self, Sample};
use crate::concurrent::work::Caller;
use crate::concurrent::{partner, sends};
use crate::error::Result;
use crate::measure::{self, Runner, Stage};
use crate::plan::Plan;
use crate::port::partitioned::PartitionedPort;
use crate::port::{Port, tags};
use crate::record::{Figures, Quantity, Row};
use crate::run::{Run, Test, staged};
use crate::units::comparison::Comparison;

pub(crate) struct MessageRate;

pub(crate) const TESTS: &[Description] = &[Description {
    name: "message-rate",
    about: "Messages per second between pairs of ranks (i and i + n/2)",
    quantity: Quantity::RATE,
    options: &[
        "ranks", "window", "threads", "memory", "profile", "percentiles", "raw", "layers", "units", "style", "ack-every",
        "start",
    ],
    ranks: Ranks::PAIRS,
    // Of the blocking style.
    units: Some(Comparison {
        sizes: Some("0"),
        units: "processes:1",
        count: 1,
        lacks: &["ranks", "window", "threads", "profile", "percentiles", "raw", "layers"],
        ..Comparison::PAIRS
    }),
    ..Description::PLAIN
}];

impl Test for MessageRate {
    fn stage<'p, P: Port>(plan: &Plan, port: &'p P) -> Result<Box<dyn Stage + 'p>> {
        let traffic = plan.traffic(port, 0, plan.window)?;
        let body = Rate::new(traffic, plan.window as usize);
        Ok(Box::new(Runner::new(port, body)))
    }

    fn figures(sample: &measure::Sample) -> Figures {
        sample.rate()
    }

    fn label(plan: &Plan, row: &mut Row) {
        (row.window, row.threads) = (Some(plan.window), Some(plan.threads));
    }

    fn measure<P: PartitionedPort + Sync>(run: &mut Run<'_, P>) -> Result<()> {
        let (port, plan) = (run.port, run.plan());
        let stage: Box<dyn Stage + '_> = match (plan.unit, plan.threads) {
            (Some(_), _) => return blocking(run),
            (None, 1) => Self::stage(plan, port)?,
            (None, threads) => {
                let threads = (0..threads).map(|thread| plan.traffic(port, thread, plan.window));
                let threads = threads.collect::<Result<_>>()?;
                let body = ThreadedRate::new(threads, plan.window as usize);
                Box::new(Runner::new(port, body))
            }
        };
        staged::measure::<Self, P>(run, vec![(plan.layers[0], stage)])
    }
}

/// One blocking send after the other.
fn blocking<P: Port + Sync>(run: &mut Run<'_, P>) -> Result<()> {
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

fn emit<P: Port>(run: &mut Run<'_, P>, sample: Sample) -> Result<()> {
    let mut row = sample.row(run);
    row.ack_every = Some(run.plan().concurrent.ack_every);
    let rate = sample.rate.times(1e9);
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
