//! `message-rate`: messages per second between pairs of ranks, by windows of nonblocking sends as in OSU's `osu_mbw_mr`; or, with
//! `--style blocking`, empty messages by blocking sends, an answer after so many, the first among them (tables 1 and 2).

use std::sync::Barrier;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use tagwire_base::Rank;

use super::{Description, Ranks};
use crate::args::BenchArgs;
use crate::body::{Body, Measured, Repeat, Times, Traffic};
use crate::concurrent::blocks::{self, Sample};
use crate::concurrent::work::Caller;
use crate::concurrent::{self, partner, sends};
use crate::error::{Error, Result};
use crate::measure::{self, Runner, Stage};
use crate::plan::Plan;
use crate::port::partitioned::PartitionedPort;
use crate::port::{Port, barrier, tags};
use crate::record::{Figures, Quantity, Row};
use crate::run::{Ports, Run, Test, staged};
use crate::units::comparison::Comparison;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct MessageRate {
    /// With `--style blocking`: after how many messages the receiver replies.
    ack_every: Option<u32>,
}

pub(crate) const TESTS: &[Description] = &[Description {
    name: "message-rate",
    about: "Messages per second between pairs of ranks (i and i + n/2)",
    quantity: Quantity::RATE,
    options: &[
        "ranks",
        "window",
        "threads",
        "memory",
        "profile",
        "percentiles",
        "raw",
        "layers",
        "units",
        "style",
        "ack-every",
        "start",
    ],
    ranks: Ranks::PAIRS,
    // Of the blocking style.
    units: Some(Comparison {
        sizes: Some("0"),
        units: "processes:1",
        count: 1,
        lacks: &[
            "ranks",
            "window",
            "threads",
            "profile",
            "percentiles",
            "raw",
            "layers",
        ],
        ..Comparison::PAIRS
    }),
    ..Description::PLAIN
}];

impl Test for MessageRate {
    fn of(args: &BenchArgs) -> Self {
        let ack_every = args.concurrent.ack_every.unwrap_or(256);
        Self {
            ack_every: concurrent::asked(args).map(|_| ack_every),
        }
    }

    fn stage<'p, P: Port>(&self, plan: &Plan, port: &'p P) -> Result<Box<dyn Stage + 'p>> {
        let traffic = plan.traffic(port, 0, plan.window)?;
        let body = Rate::new(traffic, plan.window as usize);
        Ok(Box::new(Runner::new(port, body)))
    }

    fn figures(sample: &measure::Sample) -> Figures {
        sample.rate()
    }

    fn label(&self, plan: &Plan, row: &mut Row) {
        row.series.threads = Some(plan.threads);
        row.series.ack_every = self.ack_every;
        row.series.window = self.ack_every.is_none().then_some(plan.window);
    }

    fn measure<P: PartitionedPort>(&self, ports: Ports<'_, P>, run: &mut Run<'_>) -> Result<()> {
        match self.ack_every {
            Some(every) => send(ports.own, run, every.into()),
            None => self.measure_port(ports.own, run),
        }
    }

    fn measure_port<P: PartitionedPort>(&self, port: &P, run: &mut Run<'_>) -> Result<()> {
        let plan = run.plan();
        let stage: Box<dyn Stage + '_> = match plan.threads {
            1 => self.stage(plan, port)?,
            threads => {
                let threads = (0..threads).map(|thread| plan.traffic(port, thread, plan.window));
                let threads = threads.collect::<Result<_>>()?;
                let body = ThreadedRate::new(threads, plan.window as usize);
                Box::new(Runner::new(port, body))
            }
        };
        staged::measure(self, run, vec![(plan.layers[0], stage)])
    }
}

/// One blocking send after the other.
fn send<P: Port + Sync>(port: &P, run: &mut Run<'_>, every: u64) -> Result<()> {
    let caller = |run: &Run<'_>, number: Option<u32>| {
        Ok(Sends {
            traffic: run.traffic_of(number)?,
            thread: number.unwrap_or(0),
            every,
        })
    };
    blocks::measure(port, run, (10_000, 1_000), &caller, &mut emit)
}

fn emit(run: &mut Run<'_>, sample: Sample) -> Result<()> {
    let mut row = sample.row(run);
    let rate = sample.rate.times(1e9);
    row.figures.set_summary(Quantity::RATE, rate);
    let bandwidth = sample.rate.median * sample.size as f64 * 1e3;
    row.figures.set(Quantity::BANDWIDTH.key(), bandwidth);
    sample.add_to(&mut row.figures, 1.0);
    run.emit(row)
}

/// One iteration is one message.
struct Sends {
    traffic: Traffic,
    thread: u32,
    every: u64,
}

impl<P: Port> Caller<P> for Sends {
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

/// One unit is one message. Rank i of the lower half sends windows to rank i + n/2.
#[derive(Debug)]
pub(crate) struct Rate {
    traffic: Traffic,
    window: usize,
}

impl Rate {
    #[inline]
    pub(crate) const fn new(traffic: Traffic, window: usize) -> Self {
        Self { traffic, window }
    }
}

/// As [`Rate`], with several threads in each rank: each sends to the one with its number, under
/// its own tag.
#[derive(Debug)]
pub(crate) struct ThreadedRate {
    threads: Vec<Traffic>,
    window: usize,
}

impl ThreadedRate {
    #[inline]
    pub(crate) const fn new(threads: Vec<Traffic>, window: usize) -> Self {
        Self { threads, window }
    }
}

/// A thread's part of a block.
struct Share<'a, P> {
    port: &'a P,
    peer: Rank,
    sends: bool,
    thread: u32,
    window: usize,
    size: usize,
    count: u64,
}

impl<P: Port> Share<'_, P> {
    #[inline]
    fn run(&self, traffic: &mut Traffic, times: Option<&mut Times>) -> Result<Duration> {
        let mut requests = Vec::with_capacity(self.window);
        let (size, count) = (self.size, self.count);
        let block = Repeat { size, count, times };
        let measured = block.run(1, || self.iteration(traffic, &mut requests))?;
        Ok(measured.elapsed)
    }

    #[inline]
    fn iteration(&self, traffic: &mut Traffic, requests: &mut Vec<P::Request>) -> Result<()> {
        let (data, ack) = tags::thread(self.thread);
        let (port, peer, size) = (self.port, self.peer, self.size);
        if self.sends {
            for slot in 0..self.window {
                requests.push(port.isend(traffic.outgoing(slot, size), peer, data)?);
            }
            port.wait_all(requests)?;
            return port.recv(traffic.incoming(0, 0), peer, ack);
        }
        for slot in 0..self.window {
            requests.push(port.irecv(traffic.incoming(slot, size), peer, data)?);
        }
        port.wait_all(requests)?;
        traffic.check(self.window, size, peer)?;
        port.send(traffic.empty(), peer, ack)
    }
}

impl<'a, P: Port> Share<'a, P> {
    /// The part of this rank's thread number `thread`.
    #[inline]
    fn of(port: &'a P, thread: u32, window: usize, block: &Repeat<'_>) -> Self {
        let half = port.size() / 2;
        let rank = port.rank().as_u32();
        let sends = rank < half;
        let peer = Rank::new(if sends { rank + half } else { rank - half });
        Self {
            port,
            peer,
            sends,
            thread,
            window,
            size: block.size,
            count: block.count,
        }
    }

    /// What `elapsed` and the messages of `threads` threads in all ranks come to. A receiver's
    /// clock runs on until its last acknowledgement is on its way: only the senders' counts.
    #[inline]
    fn measured(&self, elapsed: Duration, threads: usize) -> Measured {
        let pairs = u64::from(self.port.size() / 2);
        let messages = self.count * self.window as u64 * threads as u64 * pairs;
        let elapsed = if self.sends { elapsed } else { Duration::ZERO };
        Measured {
            elapsed,
            units: messages,
        }
    }
}

impl<P: Port> Body<P> for Rate {
    #[inline]
    fn block(&mut self, port: &P, block: Repeat<'_>) -> Result<Measured> {
        barrier(port)?;
        let share = Share::of(port, 0, self.window, &block);
        let elapsed = share.run(&mut self.traffic, block.times)?;
        Ok(share.measured(elapsed, 1))
    }
}

impl<P: Port + Sync> Body<P> for ThreadedRate {
    #[inline]
    fn block(&mut self, port: &P, block: Repeat<'_>) -> Result<Measured> {
        barrier(port)?;
        let Repeat { size, count, times } = block;
        let block = Repeat::untimed(size, count);
        let share = |thread| Share::of(port, thread, self.window, &block);
        let elapsed = run_threads(&mut self.threads, share, times)?;
        Ok(share(0).measured(elapsed, self.threads.len()))
    }
}

/// All threads start together; the longest time is the block's. The first one's iterations are
/// timed singly.
fn run_threads<'a, P: Port + Sync + 'a>(
    traffic: &mut [Traffic],
    share: impl Fn(u32) -> Share<'a, P>,
    times: Option<&mut Times>,
) -> Result<Duration> {
    let start = Barrier::new(traffic.len());
    std::thread::scope(|scope| {
        let mut handles = Vec::new();
        let mut times = times;
        for (number, traffic) in (0..).zip(traffic.iter_mut()) {
            let (share, start, times) = (share(number), &start, times.take());
            handles.push(scope.spawn(move || {
                start.wait();
                share.run(traffic, times)
            }));
        }
        let mut longest = Duration::ZERO;
        for handle in handles {
            let joined = handle
                .join()
                .map_err(|_| Error::Peer("a thread panicked".to_owned()))?;
            longest = longest.max(joined?);
        }
        Ok(longest)
    })
}
