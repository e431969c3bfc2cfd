//! How vectors of a device are measured: blocks of all series by turns, each iteration between barriers.

use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};

use serde::{Deserialize, Serialize};

use super::copy;
use super::engine::{Copy, Engine, Order, wake_in_time};
use super::parts::ELEMENT;
use super::reduce::{Event, Groups, Reduction, Starter, Trace, Vectors};
use super::sharing::Turns;
use crate::args::BenchArgs;
use crate::args::device::{Algorithm, Callback, DevicePlan, EnginePlan, Series};
use crate::args::names::name_of;
use crate::body::partitioned::now;
use crate::buffer::{Difference, Memory, Pattern};
use crate::error::{Error, Result};
use crate::leader::{self, Leader, Script};
use crate::measure::{REPETITIONS, long_block};
use crate::plan::Plan;
use crate::port::group::Divide;
use crate::port::null::NullPort;
use crate::port::{Endpoint, barrier};
use crate::record::{DeviceKeys, Quantity, Row};
use crate::run::Run;
use crate::time::least;

/// How many iterations a block has at most where their number is not told.
const MOST: u64 = 200;

/// Whether a series is by an algorithm.
fn is_by(series: Series, algorithm: Algorithm) -> bool {
    matches!(series, Series::Reduced(own, _) if own == algorithm)
}

/// What the thread of a device is to do.
struct Task<'p> {
    engine: Engine,
    order: Order,
    /// Starts reductions, where that thread does.
    starter: Option<Starter<'p>>,
}

/// The thread of a device: runs its tasks, and reports each part.
fn serve<'p>(tasks: &Receiver<Task<'p>>, events: &Sender<Event<'p>>, turns: &Turns) {
    wake_in_time();
    for Task {
        engine,
        order,
        starter,
    } in tasks
    {
        let gone = |_| Error::Peer("the thread that waits for a device has ended".to_owned());
        let spent = engine.run(&order, turns, |part| {
            let event = match &starter {
                None => Event::Copied(part),
                Some(starter) => Event::Started(part, now(), starter.start(part)?),
            };
            events.send(event).map_err(gone)
        });
        if events
            .send(spent.map_or_else(Event::Failed, Event::Done))
            .is_err()
        {
            return;
        }
    }
}

/// A rank, its vectors and its device.
struct Rig<'a, 'p> {
    groups: &'p Groups<'p>,
    vectors: &'p Vectors,
    /// What the device takes, and what it has.
    input: &'p Memory,
    device: &'p Memory,
    /// `None` of one that neither computes nor moves bytes.
    engine: Option<Engine>,
    tasks: &'a Sender<Task<'p>>,
    events: &'a Receiver<Event<'p>>,
}

impl<'p> Rig<'_, 'p> {
    /// Runs one iteration of a series on vectors of so many bytes. Returns when it began and how it went on.
    fn once(&self, series: Series, bytes: usize) -> Result<(u64, Trace)> {
        let reduction = Reduction::new(self.groups, self.vectors, bytes);
        let task = self.task(series, &reduction, bytes);
        let start = now();
        self.hand_over(task)?;
        let events = self.events;
        let trace = match series {
            Series::Reduced(Algorithm::Native, _) => reduction.native(events),
            Series::Reduced(Algorithm::Multilane, _) => reduction.multilane(events),
            Series::Reduced(Algorithm::Pr, _) => reduction.partitioned(events),
            Series::Copied(_) => copy::wait(events),
        };
        Ok((start, trace?))
    }

    fn hand_over(&self, task: Task<'p>) -> Result<()> {
        let gone = |_| Error::Peer("the thread of the device has ended".to_owned());
        self.tasks.send(task).map_err(gone)
    }

    fn task(&self, series: Series, reduction: &Reduction<'p>, bytes: usize) -> Task<'p> {
        let is_direct = matches!(series, Series::Reduced(_, Some(Callback::Direct)));
        let engine = self.engine.unwrap_or(Engine::idle());
        let order = self.order(series, reduction, bytes);
        Task {
            engine: match series {
                Series::Copied(_) => engine.copies_only(),
                Series::Reduced(..) => engine,
            },
            order: match self.engine {
                Some(_) => order,
                None => order.emptied(),
            },
            starter: is_direct.then(|| reduction.starter()),
        }
    }

    fn order(&self, series: Series, reduction: &Reduction<'p>, bytes: usize) -> Order {
        let (device, own) = (self.device, &self.vectors.own);
        let algorithm = match series {
            Series::Copied(count) => return copy::order(device, own, bytes, count as usize),
            Series::Reduced(algorithm, _) => algorithm,
        };
        let back = |range: Range<usize>| Copy {
            from: device.outgoing(range.clone()),
            to: own.incoming(range),
        };
        let parts = match algorithm {
            Algorithm::Pr => {
                let filled = reduction.filled();
                filled.map(|(part, range)| (part, back(range))).collect()
            }
            _ => vec![(0, back(0..bytes))],
        };
        let (from, to) = (self.input.outgoing(0..bytes), device.incoming(0..bytes));
        Order {
            input: Some(Copy { from, to }),
            parts,
        }
    }

    /// Fills what the device takes, or has, for an iteration; with `checked`, also what the result must not be left with.
    fn fill(&self, series: Series, at: &At, checked: Option<u64>) {
        let (rank, place) = (at.rank as usize + at.iteration as usize, 0..at.bytes);
        let memory = match series {
            Series::Copied(_) => self.device,
            Series::Reduced(..) => self.input,
        };
        let numbers = |to: &mut [u8]| numbers(to, |place| number(rank + place));
        memory.incoming(place.clone()).with_bytes(numbers);
        if let Some(seed) = checked {
            let pattern = Pattern::of(!seed, at.rank, 1, at.iteration);
            for memory in [&self.vectors.own, &self.vectors.result] {
                memory
                    .incoming(place.clone())
                    .with_bytes(|bytes| pattern.fill(bytes));
            }
        }
    }

    /// Compares what came of an iteration with a sum that one rank does.
    fn check(&self, series: Series, at: &At) -> Result<()> {
        let (memory, ranks) = match series {
            Series::Copied(_) => (&self.vectors.own, at.rank..at.rank + 1),
            Series::Reduced(..) => (&self.vectors.result, 0..at.ranks),
        };
        let mut expected = vec![0; at.bytes];
        let first = |rank: u32| rank as usize + at.iteration as usize;
        numbers(&mut expected, |place| {
            ranks.clone().map(|rank| number(first(rank) + place)).sum()
        });
        let found = memory.outgoing(0..at.bytes);
        let compared = Difference::between(&expected, found.bytes());
        compared.map_err(|found| found.of_message(at.rank, at.rank, at.iteration, at.bytes))
    }
}

/// Which iteration it is, and of which rank.
struct At {
    rank: u32,
    ranks: u32,
    iteration: u64,
    bytes: usize,
}

/// What a rank adds to a place: small, so that sums are exact in any order.
fn number(place: usize) -> f64 {
    [0.0, 1.0, 2.0][place % 3]
}

/// Writes doubles, each of its place.
fn numbers(to: &mut [u8], number: impl Fn(usize) -> f64) {
    for (place, bytes) in to.chunks_exact_mut(ELEMENT).enumerate() {
        bytes.copy_from_slice(&number(place).to_ne_bytes());
    }
}

/// What a series came to, on rank 0.
#[derive(Debug, Clone, Default)]
struct Found {
    iterations: u64,
    /// Nanoseconds of an iteration and of the copies back, of the slowest rank: the mean of each block.
    times: Vec<f64>,
    copies: Vec<f64>,
    /// The same of moving bytes, over all.
    moved: f64,
    /// Of all ranks together: how long reductions took, and how much of that a device was at work.
    whole: u64,
    hidden: u64,
    /// Nanoseconds that the device of rank 0 computed in an iteration.
    compute: f64,
    /// Microseconds of single iterations.
    samples: Vec<f64>,
}

impl Found {
    /// Adds a block, of whose iterations each has what all ranks told.
    fn add(&mut self, block: &[Vec<Told>]) {
        let most =
            |all: &Vec<Told>, of: fn(&Told) -> u64| all.iter().map(of).max().unwrap_or(0) as f64;
        let sum = |of| block.iter().map(|all| most(all, of)).sum::<f64>();
        let count = block.len() as f64;
        self.times.push(sum(|it| it.time) / count);
        self.copies.push(sum(|it| it.copy) / count);
        self.moved += sum(|it| it.moved);
        let singly = block.iter().map(|all| most(all, |it| it.time) / 1e3);
        self.samples.extend(singly);
        for told in block.iter().flatten() {
            self.whole += told.whole;
            self.hidden += told.hidden;
        }
        self.compute = block.last().map_or(0.0, |all| all[0].compute);
        self.iterations += block.len() as u64;
    }
}

/// What a rank reports of an iteration, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
struct Told {
    time: u64,
    /// The reduction, and how much of it the device was at work.
    whole: u64,
    hidden: u64,
    copy: u64,
    moved: u64,
    compute: f64,
}

/// Returns how many rows a size has.
pub(crate) fn rows(args: &BenchArgs) -> usize {
    args.device_plan().map_or(1, |plan| plan.series().len())
}

/// Measures all sizes and series of a plan.
pub(crate) fn measure(run: &mut Run<'_>, device: &DevicePlan) -> Result<()> {
    let (port, plan) = (run.port, run.plan());
    let size = device.group_among(port.size())?;
    let turns = Turns::share(port, device.sharing_among(port.size())?)?;
    let null = NullPort::of(port);
    let nobody = groups(&null, size)?;
    let all = match device.algorithms.is_empty() {
        // Nothing is reduced.
        true => groups(&null, size)?,
        false => groups(port, size)?,
    };
    let lengths = plan.lengths()?;
    let largest = lengths.iter().copied().max().unwrap_or(0);
    let vectors = Vectors::new(&lengths, size as usize)?;
    let (input, memory) = (Memory::new(largest)?, Memory::new(largest)?);
    let (tasks, orders) = channel();
    let (told, events) = channel();
    std::thread::scope(|scope| {
        // Its thread ends with this end of the channel.
        let tasks = tasks;
        scope.spawn(move || serve(&orders, &told, &turns));
        let rig = Rig {
            groups: &all,
            vectors: &vectors,
            input: &input,
            device: &memory,
            engine: Some(Engine::new(&device.engine)),
            tasks: &tasks,
            events: &events,
        };
        let idle = Rig {
            groups: &nobody,
            engine: None,
            ..rig
        };
        let mut runs = Runs {
            port,
            plan,
            device,
            size,
            rig,
            idle,
            all: device.series(),
            iterations: 0,
        };
        leader::run(port, &mut runs, |leader| {
            let mut lengths = lengths.iter();
            lengths.try_for_each(|&bytes| measure_length(leader, bytes, run))
        })
    })
}

/// The groups of a rank. All ranks make them, in the same order.
fn groups(port: &dyn Endpoint, size: u32) -> Result<Groups<'_>> {
    let rank = port.rank().as_u32();
    Ok(Groups {
        world: port.group(Divide::All)?,
        group: port.group(Divide::Color(rank / size))?,
        lane: port.group(Divide::Color(rank % size))?,
        size: size as usize,
        me: (rank % size) as usize,
    })
}

/// The runs of a rank.
struct Runs<'a, 'p> {
    port: &'a dyn Endpoint,
    plan: &'a Plan,
    device: &'a DevicePlan,
    size: u32,
    rig: Rig<'a, 'p>,
    /// The same without bytes, computation and other ranks.
    idle: Rig<'a, 'p>,
    all: Vec<Series>,
    /// Of all series so far.
    iterations: u64,
}

/// One iteration of a series with vectors of so many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
struct Iteration {
    series: usize,
    bytes: usize,
}

impl Script for Runs<'_, '_> {
    type Case = ();
    type Block = Iteration;
    type Told = Told;

    fn block(&mut self, &Iteration { series, bytes }: &Iteration) -> Result<Told> {
        let missing = || Error::Peer("rank 0 announced a series that does not exist".to_owned());
        let series = *self.all.get(series).ok_or_else(missing)?;
        let at = At {
            rank: self.port.rank().as_u32(),
            ranks: self.port.size(),
            iteration: self.iterations,
            bytes,
        };
        self.iterations += 1;
        let checked = self.plan.validate.then_some(self.plan.seed);
        self.rig.fill(series, &at, checked);
        barrier(self.port)?;
        let (start, trace) = self.rig.once(series, bytes)?;
        if checked.is_some() {
            self.rig.check(series, &at)?;
        }
        let (whole, hidden) = trace.spans();
        Ok(Told {
            time: trace.end - start,
            whole,
            hidden,
            copy: trace.spent.copy as u64,
            moved: trace.spent.moved as u64,
            compute: trace.spent.compute,
        })
    }
}

/// Measures all series with vectors of one length.
fn measure_length(
    leader: &mut Leader<'_, Runs<'_, '_>>,
    bytes: usize,
    run: &mut Run<'_>,
) -> Result<()> {
    let all = leader.script.all.clone();
    let of = |series| Iteration { series, bytes };
    leader.watch()?;
    let counts = (0..all.len()).map(|series| warm_up(leader, &of(series)));
    let counts = counts.collect::<Result<Vec<u64>>>()?;
    let mut found = vec![Found::default(); all.len()];
    for _ in 0..REPETITIONS {
        for (series, (found, &count)) in found.iter_mut().zip(&counts).enumerate() {
            let block = (0..count).map(|_| leader.block(&of(series)));
            found.add(&block.collect::<Result<Vec<_>>>()?);
        }
    }
    let load = leader.report()?;
    let runs = &leader.script;
    for (place, &series) in all.iter().enumerate() {
        let harness = runs.harness(series, bytes)?;
        let row = run.row_at(runs.plan.layers[0], bytes);
        let mut row = runs.row(row, series);
        figures(&mut row, &all, &found, place);
        row.figures.set("harness_us", harness / 1e3);
        load.add_to_row(&mut row);
        run.emit(row)?;
    }
    Ok(())
}

/// Runs a series once or as often as was said, and returns how many iterations its blocks have.
fn warm_up(leader: &mut Leader<'_, Runs<'_, '_>>, iteration: &Iteration) -> Result<u64> {
    let plan = leader.script.plan;
    let mut one = 1;
    for _ in 0..plan.warmup.unwrap_or(1) {
        let told = leader.block(iteration)?;
        one = told.iter().map(|told| told.time).max().unwrap_or(1);
    }
    Ok(long_block(plan, MOST, one))
}

impl Runs<'_, '_> {
    /// The time of an iteration without bytes, computation and other ranks, in nanoseconds: the least of several.
    fn harness(&self, series: Series, bytes: usize) -> Result<f64> {
        least(20, || {
            let (start, trace) = self.idle.once(series, bytes)?;
            Ok((trace.end - start) as f64)
        })
    }

    /// Adds to a row what its series is.
    fn row(&self, row: Row, series: Series) -> Row {
        described(row, &self.device.engine, self.size, series)
    }
}

/// Adds to a row what its series is, of an engine and groups of so many ranks.
fn described(mut row: Row, engine: &EnginePlan, size: u32, series: Series) -> Row {
    let (rate, latency) = (engine.rate, engine.latency.as_secs_f64() * 1e6);
    let shared = match engine.sharing {
        1 => String::new(),
        ranks => format!(" shared by {ranks} ranks"),
    };
    row.series.device = DeviceKeys {
        producer: Some(format!(
            "engine {rate} {latency}us{shared} (stand-in for a device)"
        )),
        ..DeviceKeys::default()
    };
    match series {
        Series::Copied(copies) => row.series.device.copies = Some(copies),
        Series::Reduced(algorithm, callback) => {
            row.series.device.algorithm = Some(name_of(algorithm));
            row.series.device.group_size = Some(size);
            row.series.device.flops_per_element = Some(engine.flops_per_element);
            row.series.device.copy_stream = Some(name_of(engine.copy_stream));
            row.series.device.callback = callback.map(name_of);
        }
    }
    row.series.pattern.series = row.series.device.label();
    row
}

/// A series of reductions that were done elsewhere.
pub(crate) struct Done {
    pub series: Series,
    /// Nanoseconds of each iteration, of the slowest rank.
    pub times: Vec<f64>,
    /// Nanoseconds of the copies back.
    pub copies: f64,
}

/// Returns the rows of series of a size. `row` is a row of nothing yet.
pub(crate) fn rows_of(
    engine: &EnginePlan,
    size: u32,
    done: &[Done],
    row: impl Fn() -> Row,
) -> Vec<Row> {
    let found = |one: &Done| Found {
        iterations: one.times.len() as u64,
        times: one.times.clone(),
        copies: vec![one.copies],
        samples: one.times.iter().map(|time| time / 1e3).collect(),
        ..Found::default()
    };
    let found: Vec<Found> = done.iter().map(found).collect();
    let all: Vec<Series> = done.iter().map(|one| one.series).collect();
    let rows = all.iter().enumerate().map(|(place, series)| {
        let mut row = described(row(), engine, size, *series);
        figures(&mut row, &all, &found, place);
        row
    });
    rows.collect()
}

/// Sets the figures of a series.
fn figures(row: &mut Row, all: &[Series], found: &[Found], place: usize) {
    let (series, own) = (all[place], &found[place]);
    row.sampling.set(own.iterations, REPETITIONS as u32);
    let count = own.iterations as f64;
    let figures = &mut row.figures;
    let mut set = |quantity, values: &[f64], by: f64| {
        figures.set_all(quantity, values.iter().map(|value| value * by));
    };
    if let Series::Copied(_) = series {
        set(Quantity::COPY, &own.times, 1e-3);
        figures.set("moved_us", own.moved / count / 1e3);
        row.samples = Some([("copy_us".to_owned(), own.samples.clone())].into());
        return;
    }
    set(Quantity::TIME, &own.times, 1e-3);
    set(Quantity::COPY, &own.copies, 1e-3);
    let gain = |base: Algorithm, of: fn(f64, f64) -> f64| {
        let base = all.iter().position(|series| is_by(*series, base));
        let base = base.filter(|base| *base != place)?;
        let pairs = found[base].times.iter().zip(&own.times);
        Some(
            pairs
                .map(|(&base, &own)| of(base, own))
                .collect::<Vec<f64>>(),
        )
    };
    if let Some(gains) = gain(Algorithm::Multilane, |base, own| {
        100.0 * (base - own) / base
    }) {
        set(Quantity::OVER_MULTILANE, &gains, 1.0);
    }
    if let Some(gains) = gain(Algorithm::Native, |base, own| base / own) {
        set(Quantity::OVER_NATIVE, &gains, 1.0);
    }
    figures.set("compute_us", own.compute / 1e3);
    let share = own.hidden as f64 / (own.whole as f64).max(1.0);
    figures.set(Quantity::OVERLAP.key(), 100.0 * share);
    row.samples = Some([("time_us".to_owned(), own.samples.clone())].into());
}
