//! How patterns are measured: blocks of all series by turns, between barriers.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tagwire_base::Rank;

use super::exchange::Memories;
use super::grid::Grid;
use super::motif::Series;
use super::{Context, Own, Pattern, Prepared, arriving, team};
use crate::args::granularity::{Granularity, Interface};
use crate::args::names::name_of;
use crate::args::partitioned::Cache;
use crate::args::pattern::{Accounting, Sides};
use crate::body::compute::Computation;
use crate::body::partitioned::now;
use crate::buffer::Memory;
use crate::error::{Error, Result};
use crate::leader::{self, Leader, Script};
use crate::load::Load;
use crate::measure::{REPETITIONS, long_block};
use crate::plan::Plan;
use crate::port::null::NullPort;
use crate::port::partitioned::PartitionedPort;
use crate::port::{Endpoint, barrier, tags};
use crate::record::{Figures, PatternKeys, Quantity, Row};
use crate::run::Run;
use crate::stats::Summary;
use crate::time::least;

/// How many iterations a block has at most where their number is not told.
const MOST: u64 = 1000;

/// Measures all sizes and series of a plan.
pub(crate) fn measure<T: Pattern, P: PartitionedPort>(
    own: &Own,
    port: &P,
    run: &mut Run<'_>,
) -> Result<()> {
    let (windows, plan) = (run.windows, run.plan());
    let (pattern, partitioned) = (&own.pattern, &own.partitioned);
    let missing = || Error::Usage(format!("{} is no pattern", plan.test));
    let operations = port.operations(partitioned).into_iter();
    let policies: Vec<String> = operations.map(|it| it.policy).collect();
    let motif = plan.test.motif.ok_or_else(missing)?;
    let all = (motif.series)(pattern, &policies);
    let memories = Memories::new(T::room(pattern, plan.largest()?))?;
    let single = partitioned.single();
    let context = Context {
        port,
        windows,
        seed: plan.seed,
        threads: plan.threads,
        pattern,
        partitioned,
        grid: Grid::new(&pattern.grid),
        memories: &memories,
        time: single.time,
        checked: plan.checked(),
        computation: Computation::new(single.compute),
        recorder: None,
    };
    let null = NullPort::of(port);
    let idle = Context {
        port: &null,
        windows: windows.and(Some(&null)),
        seed: plan.seed,
        threads: plan.threads,
        pattern,
        partitioned,
        grid: Grid::new(&pattern.grid),
        memories: &memories,
        time: Duration::ZERO,
        checked: None,
        computation: context.computation,
        recorder: None,
    };
    let mut blocks = Blocks {
        port,
        open: &|series, size| T::open(&context, series, size),
        idle: &|series, size| T::open(&idle, series, size),
        figures: T::figures,
        series: &all,
        ready: Vec::new(),
        words: Memory::new(0)?,
        singly: Vec::new(),
        arrived: Vec::new(),
    };
    lead(&mut blocks, own, run)
}

fn lead(blocks: &mut Blocks<'_, '_>, own: &Own, run: &mut Run<'_>) -> Result<()> {
    let plan = run.plan();
    let failed = |source| Error::Output {
        what: "the arrivals (--record)".to_owned(),
        source,
    };
    let path = own.pattern.cmb.record.as_deref();
    let path = path.filter(|_| run.leads());
    let mut file = path.map(arriving::create).transpose().map_err(failed)?;
    leader::run(run.port, blocks, |leader| {
        for size in plan.lengths()? {
            leader.watch()?;
            leader.begin(&size)?;
            let counts = 0..leader.script.series.len();
            let counts = counts.map(|series| warm_up(leader, plan, series));
            let counts = counts.collect::<Result<Vec<u64>>>()?;
            let found = blocks_of(leader, &counts)?;
            leader.end(&size)?;
            let load = leader.report()?;
            if let Some(file) = &mut file {
                let arrived = found.iter().flat_map(|found| &found.arrived);
                arriving::record(file, arrived).map_err(failed)?;
            }
            let series = leader.script.series.iter();
            let harness = series.map(|series| leader.script.harness(series, size));
            let harness = harness.collect::<Result<Vec<f64>>>()?;
            rows(leader.script, own, size, &found, &harness, &load, run)?;
        }
        Ok(())
    })
}

/// What a series came to, on rank 0.
#[derive(Default)]
struct Found {
    iterations: u64,
    partitions: u32,
    threads: u32,
    keys: PatternKeys,
    /// What rank 0 sends and receives in an iteration.
    bytes: f64,
    /// When the threads of rank 0 arrived, where they work: iteration, thread, nanoseconds.
    arrived: Vec<[u64; 3]>,
    /// Where single iterations are timed: of each block, for each the time of the slowest rank, in nanoseconds.
    slowest: Vec<Vec<f64>>,
    /// The times of each rank's iterations together, in nanoseconds.
    sums: Vec<f64>,
    /// Nanoseconds of an iteration, by block, of the mean rank.
    times: Vec<f64>,
    /// Bytes per nanosecond, by block, of the mean rank.
    rates: Vec<f64>,
}

impl Found {
    /// Adds the single iterations of a block, by rank.
    fn add(&mut self, all: &[Vec<u64>]) {
        let Some(first) = all.first() else { return };
        let of = |place: usize| all.iter().map(move |times| times[place]);
        let slowest = |place| of(place).max().unwrap_or(0) as f64;
        self.slowest.push((0..first.len()).map(slowest).collect());
        self.sums.resize(all.len(), 0.0);
        for (sum, times) in self.sums.iter_mut().zip(all) {
            *sum += times.iter().sum::<u64>() as f64;
        }
    }

    /// The sum of the slowest ranks' times, by block.
    fn totals(&self) -> Vec<f64> {
        self.slowest
            .iter()
            .map(|block| block.iter().sum::<f64>() / block.len() as f64)
            .collect()
    }
}

/// A series set up for a size.
struct Open<'p> {
    prepared: Prepared<'p>,
    /// The next region.
    next: u64,
}

/// So many iterations of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Block {
    series: usize,
    count: u64,
}

/// Sets up a series for a size.
type Opener<'a, 'p> = dyn Fn(&Series, usize) -> Result<Prepared<'p>> + 'a;

/// What the ranks do.
struct Blocks<'a, 'p> {
    port: &'a dyn Endpoint,
    open: &'a Opener<'a, 'p>,
    /// The same, where nothing moves and nothing computes.
    idle: &'a Opener<'a, 'p>,
    /// Adds figures that follow from the others.
    figures: fn(&mut Figures),
    series: &'a [Series],
    ready: Vec<Open<'p>>,
    /// For the times of single iterations.
    words: Memory,
    /// What rank 0 has learned of the last block: the times of each rank's iterations, and when its threads arrived.
    singly: Vec<Vec<u64>>,
    arrived: Vec<[u64; 3]>,
}

impl Script for Blocks<'_, '_> {
    /// A size.
    type Case = usize;
    type Block = Block;
    /// Nanoseconds.
    type Told = u64;

    fn begin(&mut self, &size: &usize) -> Result<()> {
        let open = self.series.iter().map(|series| {
            Ok(Open {
                prepared: (self.open)(series, size)?,
                next: 0,
            })
        });
        self.ready = open.collect::<Result<_>>()?;
        Ok(())
    }

    fn block(&mut self, block: &Block) -> Result<u64> {
        let missing = || Error::Peer("rank 0 announced a series that does not exist".to_owned());
        let port = self.port;
        let Open { prepared, next } = self.ready.get_mut(block.series).ok_or_else(missing)?;
        let (program, regions) = (&*prepared.program, block.count * prepared.regions);
        barrier(port)?;
        let start = now();
        team::run(program, prepared.threads, *next, regions)?;
        barrier(port)?;
        let time = now() - start;
        *next += regions;
        self.arrived = program.arrivals();
        self.singly = singly(port, &mut self.words, program.times())?;
        Ok(time)
    }

    fn end(&mut self, _: &usize) -> Result<()> {
        self.ready.clear();
        Ok(())
    }
}

impl Blocks<'_, '_> {
    /// Returns the time of an iteration that moves nothing and computes nothing, in nanoseconds: the least of several.
    fn harness(&self, series: &Series, size: usize) -> Result<f64> {
        const COUNT: u64 = 20;
        let prepared = (self.idle)(series, size)?;
        let (program, regions) = (&*prepared.program, COUNT * prepared.regions);
        least(5, || {
            let start = now();
            team::run(program, prepared.threads, 0, regions)?;
            Ok((now() - start) as f64 / COUNT as f64)
        })
    }
}

/// Returns the times of each rank's iterations, of which this rank has its own, on rank 0.
fn singly(port: &dyn Endpoint, words: &mut Memory, own: Vec<u64>) -> Result<Vec<Vec<u64>>> {
    let (count, bytes) = (own.len(), 8 * own.len());
    if own.is_empty() {
        return Ok(Vec::new());
    }
    if words.len() < bytes {
        *words = Memory::new(bytes)?;
    }
    if port.rank().as_u32() != 0 {
        words.write_words(&own);
        port.send(words.outgoing(0..bytes), Rank::new(0), tags::CONTROL)?;
        return Ok(Vec::new());
    }
    let mut all = vec![own];
    for rank in 1..port.size() {
        port.recv(words.incoming(0..bytes), Rank::new(rank), tags::CONTROL)?;
        all.push(words.words(count));
    }
    Ok(all)
}

/// Runs a series once or as often as was said, and returns how many iterations its blocks have.
fn warm_up(leader: &mut Leader<'_, Blocks<'_, '_>>, plan: &Plan, series: usize) -> Result<u64> {
    let count = plan.warmup.unwrap_or(1);
    let mut one = 1;
    if count > 0 {
        let times = leader.block(&Block { series, count })?;
        one = times.into_iter().max().unwrap_or(1) / count;
    }
    Ok(long_block(plan, MOST, one))
}

/// Runs the blocks of all series by turns.
fn blocks_of(leader: &mut Leader<'_, Blocks<'_, '_>>, counts: &[u64]) -> Result<Vec<Found>> {
    let of = |Open { prepared, .. }: &Open<'_>| Found {
        partitions: prepared.partitions,
        threads: prepared.threads,
        keys: prepared.keys.clone(),
        bytes: prepared.bytes.first().copied().unwrap_or(0.0),
        ..Found::default()
    };
    let mut found: Vec<Found> = leader.script.ready.iter().map(of).collect();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    for _ in 0..REPETITIONS {
        for (series, (found, &count)) in found.iter_mut().zip(counts).enumerate() {
            let times = leader.block(&Block { series, count })?;
            let times = times.iter().map(|&time| time as f64 / count as f64);
            let times: Vec<f64> = times.collect();
            let script = &mut leader.script;
            let bytes = script.ready[series].prepared.bytes.iter();
            let rates: Vec<f64> = bytes
                .zip(&times)
                .map(|(bytes, time)| bytes / time)
                .collect();
            found.rates.push(mean(&rates));
            found.times.push(mean(&times));
            found.iterations += count;
            found.arrived.append(&mut script.arrived);
            found.add(&script.singly);
        }
    }
    Ok(found)
}

fn rows(
    blocks: &Blocks<'_, '_>,
    own: &Own,
    size: usize,
    found: &[Found],
    harness: &[f64],
    load: &Load,
    run: &mut Run<'_>,
) -> Result<()> {
    let (all, plan) = (blocks.series, run.plan());
    for (place, series) in all.iter().enumerate() {
        let found_here = &found[place];
        let mut row = run.row_at(plan.layers[0], size);
        describe(&mut row, own, series, found_here);
        let figures = &mut row.figures;
        set_rates(figures, all, found, place);
        figures.set("harness_us", harness[place] / 1e3);
        if !found_here.slowest.is_empty() {
            stencil_figures(figures, all, found, place);
            // To each neighbour as many as the buffer has pieces; what is sent is half of all.
            let buffers = found_here.bytes / (2.0 * size.max(1) as f64);
            figures.set("messages", buffers * f64::from(found_here.partitions));
        }
        (blocks.figures)(figures);
        load.add_to_row(&mut row);
        if found_here.arrived.len() > 1 {
            let bandwidth = own.pattern.cmb.arrivals.bandwidth;
            arriving::add(&mut row, &found_here.arrived, bandwidth, plan.seed);
        }
        run.emit(row)?;
    }
    Ok(())
}

/// Sets how fast a series is, and by how much it is faster than those of messages.
fn set_rates(figures: &mut Figures, all: &[Series], found: &[Found], place: usize) {
    let (series, own) = (&all[place], &found[place]);
    set_scaled(figures, Quantity::THROUGHPUT, &own.rates, 1e3);
    set_scaled(figures, Quantity::ITERATION, &own.times, 1e-3);
    for (other, found) in all.iter().zip(found) {
        let is_base = other.accounting == series.accounting
            && other.interface == Interface::P2p
            && other.granularity.is_none();
        if is_base && other != series {
            let ratio = median(&own.rates) / median(&found.rates);
            figures.set(format!("ratio_to_{}", name_of(other.mode)), ratio);
        }
    }
}

/// A series whose iterations were done elsewhere.
pub(crate) struct Done {
    pub series: Series,
    pub threads: u32,
    pub partitions: u32,
    pub keys: PatternKeys,
    /// What an iteration of each rank is credited with, in bytes.
    pub bytes: Vec<f64>,
    pub iterations: u64,
    /// Nanoseconds of an iteration, of each rank.
    pub times: Vec<f64>,
}

/// Returns the rows of series of a size, each a block. `row` is a row of nothing yet, `figures` adds what follows from the others.
pub(crate) fn rows_of(
    own: &Own,
    done: &[Done],
    row: impl Fn() -> Row,
    figures: fn(&mut Figures),
) -> Vec<Row> {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let found = |one: &Done| {
        let rates = one.bytes.iter().zip(&one.times);
        let rates: Vec<f64> = rates.map(|(bytes, time)| bytes / time).collect();
        Found {
            iterations: one.iterations,
            partitions: one.partitions,
            threads: one.threads,
            keys: one.keys.clone(),
            bytes: one.bytes.first().copied().unwrap_or(0.0),
            times: vec![mean(&one.times)],
            rates: vec![mean(&rates)],
            ..Found::default()
        }
    };
    let found: Vec<Found> = done.iter().map(found).collect();
    let series: Vec<Series> = done.iter().map(|one| one.series.clone()).collect();
    let rows = series.iter().enumerate().map(|(place, one)| {
        let mut row = row();
        describe(&mut row, own, one, &found[place]);
        set_rates(&mut row.figures, &series, &found, place);
        figures(&mut row.figures);
        row
    });
    rows.collect()
}

/// Adds to a row what its series is.
fn describe(row: &mut Row, own: &Own, series: &Series, found: &Found) {
    let partitioned = own.partitioned.single();
    [row.series.compute, row.series.noise] = partitioned.labels();
    row.series.threads = Some(found.threads);
    row.series.partitions = Some(found.partitions);
    row.series.policy.clone_from(&series.policy);
    row.sampling.set(found.iterations, REPETITIONS as u32);
    row.series.pattern = found.keys.clone();
    if found.keys.granularity.is_some() {
        let sleeps = !partitioned.time.is_zero() && found.arrived.is_empty();
        row.series.compute = sleeps.then(|| format!("sleep:{}", partitioned.time.as_micros()));
        row.series.noise = None;
        row.series.cold_cache = matches!(partitioned.cache, Cache::Cold(_));
    }
    let sides = Sides(own.pattern.grid.clone());
    row.series.pattern.grid = Some(sides.to_string());
    row.series.pattern.mode = Some(name_of(series.mode));
    let middleware = match series.interface {
        Interface::P2p => "messages",
        Interface::Partitioned => "partitioned",
        Interface::Rma => "rma",
    };
    row.series.pattern.middleware = Some(middleware.to_owned());
    let is_nominal = series.accounting == Accounting::Artefact;
    row.series.pattern.accounting = is_nominal.then(|| name_of(series.accounting));
    // The mode says so where there is no granularity.
    let rma = series.interface == Interface::Rma && series.granularity.is_some();
    let carrier = series
        .policy
        .as_deref()
        .or_else(|| rma.then_some(middleware));
    let label = row.series.pattern.label(carrier);
    row.series.pattern.series = label.map(|label| format!("{label}@{}", found.threads));
}

/// What the paper of cmb reports: the slowest rank's time of an iteration, three sums, and the gain over bulk-synchronous
/// messages, serial as published and all at once.
fn stencil_figures(figures: &mut Figures, all: &[Series], found: &[Found], place: usize) {
    let own = &found[place];
    let blocks: Vec<f64> = own
        .slowest
        .iter()
        .map(|block| median(block) / 1e3)
        .collect();
    set_scaled(figures, Quantity::ITER, &blocks, 1.0);
    let global: f64 = own.slowest.iter().flatten().sum();
    let local = own.sums.iter().copied().fold(0.0, f64::max);
    let mean = own.sums.iter().sum::<f64>() / own.sums.len() as f64;
    for (key, sum) in [
        ("max_global_ms", global),
        ("max_local_ms", local),
        ("mean_ms", mean),
    ] {
        figures.set(key, sum / 1e6);
    }
    for (quantity, base) in [
        (Quantity::SPEEDUP, Granularity::Bsp),
        (Quantity::SPEEDUP_ALL, Granularity::BspAll),
    ] {
        let is_base = |series: &Series| series.granularity == Some(base);
        let Some(base) = all.iter().position(is_base) else {
            continue;
        };
        let both = found[base].totals().into_iter().zip(own.totals());
        let gains: Vec<f64> = both
            .map(|(base, own)| 100.0 * (base - own) / base)
            .collect();
        set_scaled(figures, quantity, &gains, 1.0);
    }
}

/// Returns the figures of series whose iterations took so long on each rank, in nanoseconds: a block each.
pub(crate) fn figures_of(series: &[Series], times: &[&[Vec<u64>]]) -> Vec<Figures> {
    let found = times.iter().map(|times| {
        let mut found = Found::default();
        found.add(times);
        found
    });
    let found: Vec<Found> = found.collect();
    let of = |place| {
        let mut figures = Figures::default();
        stencil_figures(&mut figures, series, &found, place);
        figures
    };
    (0..found.len()).map(of).collect()
}

fn set_scaled(figures: &mut Figures, quantity: Quantity, values: &[f64], by: f64) {
    figures.set_all(quantity, values.iter().map(|value| value * by));
}

fn median(values: &[f64]) -> f64 {
    Summary::of(values).map_or(f64::NAN, |summary| summary.median)
}
