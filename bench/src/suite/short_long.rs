//! `short-long`: short messages of one caller while another one sends a long message (figures 9 and 10).
//!
//! ```text
//!     processes:2   rank 0 --- long ---> rank 2       threads:2   rank 0, thread 0 --- long ---> rank 1
//!                   rank 1 -- shorts --> rank 3                           thread 1 -- shorts --> rank 2
//! ```

use std::collections::BTreeMap;
use std::sync::Barrier;

use serde::{Deserialize, Serialize};
use tagwire_base::Rank;

use super::Description;
use crate::args::BenchArgs;
use crate::body::Traffic;
use crate::buffer::Memory;
use crate::error::{Error, Result};
use crate::leader::{self, Script};
use crate::plan::Plan;
use crate::port::null::NullPort;
use crate::port::partitioned::PartitionedPort;
use crate::port::{Endpoint, Port, barrier, tags};
use crate::record::{Quantity, Row};
use crate::run::{Ports, Run, Test};
use crate::stats::Summary;
use crate::time::{nanoseconds, time_of};
use crate::units::comparison::{Comparison, Shape};
use crate::units::{Unit, UnitKind};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct ShortLong {
    /// Bytes of the long message.
    long: u64,
}

/// How many short messages there are beside the long one.
const SHORTS: usize = 96;
/// How often the whole is repeated.
const ROUNDS: u64 = 20;

pub(crate) const TESTS: &[Description] = &[Description {
    name: "short-long",
    about: "Short messages of one process or thread beside a long one of another: how evenly they wait",
    quantity: Quantity::SHORT,
    sizes: "128",
    options: &["units", "long", "memory"],
    units: Some(Comparison {
        units: "processes,threads",
        count: 2,
        shape: |unit, _| match (unit.kind, unit.count) {
            (UnitKind::Processes, 2) => Ok(Shape {
                nodes: vec![0, 0, 1, 1],
                callers: 4,
            }),
            (UnitKind::Threads, 2) => Ok(Shape {
                nodes: vec![0, 1, 1],
                callers: 4,
            }),
            _ => Err("one sends the long message and one the short ones: processes:2, threads:2"),
        },
        ..Comparison::PAIRS
    }),
    ..Description::PLAIN
}];

impl Test for ShortLong {
    fn of(args: &BenchArgs) -> Self {
        Self {
            long: args.concurrent.long.unwrap_or(4 << 20),
        }
    }

    fn label(&self, _: &Plan, row: &mut Row) {
        row.series.long = Some(self.long);
    }

    fn measure<P: PartitionedPort>(&self, ports: Ports<'_, P>, run: &mut Run<'_>) -> Result<()> {
        let plan = run.plan();
        let seed = run.seed();
        let too_long = |_| Error::Usage(format!("--long {} is too long", self.long));
        let long = usize::try_from(self.long).map_err(too_long)?;
        let port = ports.own;
        let mut part = Part {
            port,
            unit: run.unit(),
            ends: Ends::of(run.unit(), port.rank()),
            long_size: long,
            long: run.traffic(0, long, seed)?,
            short: run.traffic(1, plan.largest()?, seed)?,
            told: Memory::new(8 * SHORTS)?,
            round: Round::default(),
        };
        lead(&mut part, run)
    }
}

fn lead(part: &mut dyn Rounds, run: &mut Run<'_>) -> Result<()> {
    let plan = run.plan();
    leader::run(run.port, part, |leader| {
        for size in run.sizes()? {
            for _ in 0..plan.warmup.unwrap_or(1) {
                leader.block(&size)?;
            }
            leader.watch()?;
            let mut rounds = Vec::new();
            for _ in 0..plan.iterations.unwrap_or(ROUNDS) {
                leader.block(&size)?;
                rounds.push(leader.script.last());
            }
            let mut row = run.row(size, &leader.report()?);
            let harness = harness(run, size)?;
            set(&mut row, &rounds);
            row.figures.set("harness_us", harness / 1e3);
            run.emit(row)?;
        }
        Ok(())
    })
}

/// Whom a rank sends to or receives from.
struct Ends {
    sends: bool,
    long: Option<Rank>,
    short: Option<Rank>,
}

impl Ends {
    fn of(unit: Unit, rank: Rank) -> Self {
        let (long, short) = match (unit.kind, rank.as_u32()) {
            (UnitKind::Threads, 0) => (Some(1), Some(2)),
            (UnitKind::Threads, 1) => (Some(0), None),
            (UnitKind::Threads, _) => (None, Some(0)),
            (UnitKind::Processes, 0) => (Some(2), None),
            (UnitKind::Processes, 1) => (None, Some(3)),
            (UnitKind::Processes, 2) => (Some(0), None),
            (UnitKind::Processes, _) => (None, Some(1)),
        };
        let senders = if unit.is_threads() { 1 } else { 2 };
        Self {
            sends: rank.as_u32() < senders,
            long: long.map(Rank::new),
            short: short.map(Rank::new),
        }
    }
}

/// The times of a round, in nanoseconds.
#[derive(Debug, Clone, Default)]
struct Round {
    long: u64,
    shorts: Vec<u64>,
}

/// What the ranks do.
struct Part<'p, P> {
    port: &'p P,
    unit: Unit,
    ends: Ends,
    long_size: usize,
    long: Traffic,
    short: Traffic,
    /// The times of the short messages, on their way to rank 0.
    told: Memory,
    /// What the last round took, on rank 0.
    round: Round,
}

impl<P: Port + Sync> Script for Part<'_, P> {
    type Case = ();
    /// All messages once, the short ones of this size.
    type Block = usize;
    type Told = ();

    fn block(&mut self, &size: &usize) -> Result<()> {
        let (port, long) = (self.port, self.long_size);
        let Self {
            ends,
            long: long_traffic,
            short,
            told,
            ..
        } = self;
        barrier(port)?;
        let mut round = Round::default();
        match (ends.sends, ends.long, ends.short) {
            (true, Some(to), Some(short_to)) => {
                let begin = Barrier::new(2);
                round = std::thread::scope(|scope| {
                    let thread = scope.spawn(|| {
                        begin.wait();
                        send_shorts(port, short, size, short_to)
                    });
                    begin.wait();
                    let long = send_long(port, long_traffic, long, to);
                    let shorts = thread.join();
                    let shorts = shorts.map_err(|_| Error::Peer("a thread panicked".to_owned()))?;
                    Ok::<Round, Error>(Round {
                        long: long?,
                        shorts: shorts?,
                    })
                })?;
            }
            (true, Some(to), None) => round.long = send_long(port, long_traffic, long, to)?,
            (true, None, Some(to)) => round.shorts = send_shorts(port, short, size, to)?,
            (_, Some(from), _) => long_traffic.recv(port, long, from, tags::thread(0).0)?,
            (_, None, Some(from)) => {
                for _ in 0..SHORTS {
                    short.recv(port, size, from, tags::thread(1).0)?;
                }
            }
            (_, None, None) => {}
        }
        if !self.unit.is_threads() {
            tell(port, told, &mut round)?;
        }
        self.round = round;
        Ok(())
    }
}

/// The blocks over any port.
trait Rounds: Script<Case = (), Block = usize, Told = ()> {
    /// Returns what the last round took, on rank 0.
    fn last(&mut self) -> Round;
}

impl<P: Port + Sync> Rounds for Part<'_, P> {
    fn last(&mut self) -> Round {
        std::mem::take(&mut self.round)
    }
}

/// Rank 0 learns the times of rank 1.
fn tell(port: &dyn Endpoint, told: &mut Memory, round: &mut Round) -> Result<()> {
    match port.rank().as_u32() {
        0 => {
            port.recv(told.incoming(0..8 * SHORTS), Rank::new(1), tags::SENT)?;
            round.shorts = told.words(SHORTS);
        }
        1 => {
            told.write_words(&round.shorts);
            port.send(told.outgoing(0..8 * SHORTS), Rank::new(0), tags::SENT)?;
        }
        _ => {}
    }
    Ok(())
}

// Standard sends of short messages would be complete before anything is on its way.
fn send_long<P: Port>(port: &P, traffic: &mut Traffic, size: usize, to: Rank) -> Result<u64> {
    let data = traffic.outgoing(0, size);
    time_of(|| port.ssend(data, to, tags::thread(0).0)).map(nanoseconds)
}

fn send_shorts<P: Port>(
    port: &P,
    traffic: &mut Traffic,
    size: usize,
    to: Rank,
) -> Result<Vec<u64>> {
    let mut times = Vec::with_capacity(SHORTS);
    for _ in 0..SHORTS {
        let data = traffic.outgoing(0, size);
        let one = time_of(|| port.ssend(data, to, tags::thread(1).0))?;
        times.push(nanoseconds(one));
    }
    Ok(times)
}

/// A short message where nothing is carried, in nanoseconds.
fn harness(run: &Run<'_>, size: usize) -> Result<f64> {
    let port = NullPort::of(run.port);
    let mut traffic = run.traffic(1, size, None)?;
    let times = send_shorts(&port, &mut traffic, size, Rank::new(0))?;
    Ok(times.iter().sum::<u64>() as f64 / SHORTS as f64)
}

fn set(row: &mut Row, rounds: &[Round]) {
    row.sampling.iterations = rounds.len() as u64;
    row.sampling.repetitions = rounds.len() as u32;
    let fair: Vec<Fairness> = rounds.iter().map(Fairness::of).collect();
    let figures = &mut row.figures;
    let mut set =
        |quantity, of: fn(&Fairness) -> f64| figures.set_all(quantity, fair.iter().map(of));
    set(Quantity::SHORT, |it| it.mean);
    set(Quantity::SHORT_WORST, |it| it.worst);
    set(Quantity::UNFAIRNESS, |it| it.worst / it.median.max(1e-6));
    set(Quantity::GINI, |it| it.gini);
    set(Quantity::WAITED, |it| 100.0 * it.worst / it.long.max(1e-6));
    set(Quantity::LONG, |it| it.long);
    let by_number = |number: usize| {
        let times: Vec<f64> = rounds
            .iter()
            .map(|round| round.shorts[number] as f64)
            .collect();
        Summary::of(&times).map_or(0.0, |summary| summary.median / 1e3)
    };
    let medians = (0..SHORTS).map(by_number).collect();
    let first = rounds[0].shorts.iter().map(|time| *time as f64 / 1e3);
    row.samples = Some(BTreeMap::from([
        ("short_us".to_owned(), medians),
        ("short_first_round_us".to_owned(), first.collect()),
    ]));
}

/// How a round's short messages waited, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Fairness {
    mean: f64,
    median: f64,
    worst: f64,
    /// Gini's coefficient: 0 where all took as long, near 1 where one took everything.
    gini: f64,
    long: f64,
}

impl Fairness {
    fn of(round: &Round) -> Self {
        let mut times: Vec<f64> = round.shorts.iter().map(|time| *time as f64 / 1e3).collect();
        times.sort_by(f64::total_cmp);
        let count = times.len() as f64;
        let sum: f64 = times.iter().sum();
        let weighted: f64 = (1..)
            .zip(&times)
            .map(|(place, time)| f64::from(place) * time)
            .sum();
        let summary = Summary::of(&times);
        Self {
            mean: sum / count,
            median: summary.map_or(0.0, |summary| summary.median),
            worst: summary.map_or(0.0, |summary| summary.max),
            gini: 2.0 * weighted / (count * sum.max(1e-9)) - (count + 1.0) / count,
            long: round.long as f64 / 1e3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fairness_is_none_where_all_wait_as_long() {
        let even = Round {
            long: 8_000,
            shorts: vec![2_000; SHORTS],
        };
        let fair = Fairness::of(&even);
        assert_eq!((fair.mean, fair.median, fair.worst), (2.0, 2.0, 2.0));
        assert!(fair.gini.abs() < 1e-9);
        let mut spike = even;
        spike.shorts[7] = 2_000 * 1_000;
        let unfair = Fairness::of(&spike);
        assert_eq!((unfair.median, unfair.worst), (2.0, 2000.0));
        assert!(unfair.gini > 0.9, "{unfair:?}");
    }

    #[test]
    fn each_message_has_two_ends() {
        for (unit, ranks) in [(Unit::processes(2), 4), (Unit::threads(2), 3)] {
            let ends: Vec<Ends> = (0..ranks)
                .map(|rank| Ends::of(unit, Rank::new(rank)))
                .collect();
            for (rank, end) in (0..).map(Rank::new).zip(&ends).filter(|(_, end)| end.sends) {
                if let Some(to) = end.long {
                    assert_eq!(ends[to.index()].long, Some(rank));
                }
                if let Some(to) = end.short {
                    assert_eq!(ends[to.index()].short, Some(rank));
                }
            }
        }
    }
}
