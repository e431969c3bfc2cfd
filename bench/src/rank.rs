//! One rank of a job: opens its ports, measures, reports.

use tagwire_base::bootstrap::SharedBootstrap;
use tagwire_base::config::parse::format_bytes;
use tagwire_base::{Bootstrap, Config};

use crate::Host;
use crate::args::{MemoryChoice, Percentiles, Progress, TestName};
use crate::body::{
    Bandwidth, Collective, Direction, Latency, Rate, Ring, ThreadedRate, Traffic, Unexpected, Waits,
};
use crate::buffer::Memory;
use crate::environment::{MPI, Used};
use crate::error::{Error, ExitStatus, Result};
use crate::leader;
use crate::link::{Message, Reporter};
use crate::load::Load;
use crate::measure::{Effort, Runner, Sample, Stage, measure};
use crate::mpi::{Mpi, MpiPort};
use crate::plan::{Carrier, Layer, Plan};
use crate::port::Port;
use crate::port::collective::{Form, Operation};
use crate::port::pml::PmlPort;
use crate::port::profiled::Profiled;
use crate::port::rail_windows::RailWindows;
use crate::port::raw::RawPort;
use crate::port::window::Windows;
use crate::profile::Profile;
use crate::record::{FIRST_BLOCK, Figures, Quantity, Row};
use crate::stats::Summary;

mod computing;
mod concurrent;
mod device;
mod partitioned;
mod pattern;
mod remote;

/// Takes what rank 0 has to say.
pub(crate) type Sink<'a> = &'a mut dyn FnMut(Message) -> Result<()>;

/// Runs `plan` as a rank of a job that the command started, and reports to it how that ended.
pub(crate) fn run(host: &Host, plan: &Plan) -> ExitStatus {
    let Some(address) = &plan.results else {
        return ExitStatus::Usage;
    };
    let mut reporter = None;
    let mut sink = |message: Message| -> Result<()> {
        let reporter = match &mut reporter {
            Some(reporter) => reporter,
            none => none.insert(Reporter::connect(address)?),
        };
        reporter.send(&message)
    };
    Job { host, plan }.run(&mut sink)
}

/// What ranks do: the measuring loops of all tests over all ports.
///
/// What is timed in them is generic, or `#[inline]`, and so compiled in the crate that makes this value, whose profile counts. The
/// larger part of this crate times nothing, and may be built quickly.
#[derive(Debug, Clone, Copy)]
pub struct Loops(fn(Job<'_>, Sink<'_>) -> ExitStatus);

impl Loops {
    /// Returns the loops as the crate compiles them that `C` is a type of.
    #[must_use]
    pub fn of_crate<C>() -> Self {
        Self(|job, sink| job.measured(sink))
    }
}

/// A rank's part in a job.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Job<'a> {
    pub host: &'a Host,
    pub plan: &'a Plan,
}

impl Job<'_> {
    /// Opens the ports that the plan names, and measures. What goes wrong is said as a message.
    pub(crate) fn run(self, sink: Sink<'_>) -> ExitStatus {
        (self.host.loops.0)(self, sink)
    }

    #[inline]
    fn measured(self, sink: Sink<'_>) -> ExitStatus {
        if let Carrier::Mpi(file) = &self.plan.carrier {
            return self.run_mpi(file, sink);
        }
        match tagwire_launch::detect::detect() {
            Ok(detected) => self.run_as(detected.bootstrap, sink),
            Err(error) => report_failure(0, &error.into(), sink),
        }
    }

    /// The same over our own transports, as a rank of the job that `bootstrap` knows.
    #[inline]
    fn run_as(&self, bootstrap: Box<dyn Bootstrap>, sink: Sink<'_>) -> ExitStatus {
        let rank = bootstrap.rank().as_u32();
        self.run_ours(SharedBootstrap::new(bootstrap), sink)
            .map_or_else(
                |error| report_failure(rank, &error, sink),
                |()| ExitStatus::Good,
            )
    }

    #[inline]
    fn run_mpi(&self, file: &std::path::Path, sink: Sink<'_>) -> ExitStatus {
        let port = match Mpi::load(file).and_then(|mpi| {
            self.bind_for_mpi()?;
            MpiPort::open(mpi, self.plan.any_thread())
        }) {
            Ok(port) => port,
            Err(error) => return report_failure(0, &error, sink),
        };
        let used = Used {
            transport: MPI.to_owned(),
            why: String::new(),
            library: Some(port.version().to_owned()),
            file: Some(file.display().to_string()),
            ..Used::default()
        };
        let rank = port.rank().as_u32();
        let ranks = self.check_ranks(port.size());
        let measured = ranks.and_then(|()| match self.plan.test {
            _ if self.plan.opens_only => self
                .greet(&port, &used, sink)
                .and_then(|leads| done(leads, sink)),
            TestName::Partitioned => self.measure_partitioned(&port, used, sink),
            _ if self.plan.pattern.is_some() => {
                self.measure_pattern(&port, Some(&port), &used, sink)
            }
            _ if self.plan.device.is_some() => self.measure_device(&port, &used, sink),
            test if test.access().is_some() => self.measure_remote(&port, &used, sink),
            _ if self.plan.unit.is_some() => self.measure_concurrent(&port, None, &used, sink),
            _ => self.measure_shared(&port, used, sink),
        });
        if let Err(error) = measured {
            let status = report_failure(rank, &error, sink);
            // The other ranks wait inside the library: only it can end them.
            port.abort(i32::from(status.code()));
            return status;
        }
        match port.close() {
            Ok(()) => ExitStatus::Good,
            Err(error) => report_failure(rank, &error, sink),
        }
    }

    /// Binds this process where the library's launcher could not be told to.
    fn bind_for_mpi(&self) -> Result<()> {
        let Some(cpus) = &self.plan.bind_here else {
            return Ok(());
        };
        let Some(rank) = crate::mpi::local_rank() else {
            return Ok(());
        };
        let cpu = cpus.get(rank % cpus.len().max(1)).copied().unwrap_or(0);
        Ok(tagwire_base::topology::bind_to(
            u32::try_from(cpu).unwrap_or(u32::MAX),
        )?)
    }

    #[inline]
    fn run_ours(&self, mut bootstrap: SharedBootstrap, sink: Sink<'_>) -> Result<()> {
        let mut config = self.host.config.clone();
        if let Carrier::Ours(transport) = &self.plan.carrier {
            config.set("transport", transport)?;
        }
        self.check_ranks(bootstrap.size())?;
        if self.plan.progress == Some(Progress::LibraryThread) {
            config.set("progress-thread", "on")?;
        }
        let layers = &self.plan.layers;
        let raw = layers.contains(&Layer::Raw);
        let pml = layers.contains(&Layer::Pml);
        // What both put has one key: a launcher may keep the first value of it.
        let mut below = match pml {
            true => bootstrap.scoped("raw"),
            false => bootstrap.clone(),
        };
        let raw = raw
            .then(|| RawPort::open(&config, &mut below))
            .transpose()?;
        let any_thread = self.plan.any_thread();
        let open = || PmlPort::open(&config, any_thread, bootstrap.clone());
        let pml = pml.then(open).transpose()?;
        let cm = layers.contains(&Layer::Cm) && config.choice("pml") != "cm";
        let cm = cm.then(|| self.open_cm(&config, &bootstrap)).flatten();
        let single = self.needs_single();
        let single = single.then(|| PmlPort::open(&config, false, bootstrap.scoped("single")));
        let single = single.transpose()?;
        let windows = self.plan.has_rma() && !self.plan.opens_only;
        let windows = windows.then(|| RailWindows::open(&config, bootstrap.scoped("rma")));
        let windows = windows.transpose()?;
        let used = self.used(&config, pml.as_ref(), cm.as_ref(), &bootstrap)?;
        match (&pml, &raw) {
            (Some(pml), _) if self.plan.opens_only => done(self.greet(pml, &used, sink)?, sink)?,
            (None, Some(raw)) if self.plan.opens_only => done(self.greet(raw, &used, sink)?, sink)?,
            (Some(pml), None) if self.plan.test == TestName::Partitioned => {
                self.measure_partitioned(pml, used, sink)?;
            }
            (Some(pml), None) if self.plan.pattern.is_some() => {
                let windows = windows.as_ref().map(|it| it as &dyn Windows);
                self.measure_pattern(pml, windows, &used, sink)?;
            }
            (Some(pml), None) if self.plan.device.is_some() => {
                self.measure_device(pml, &used, sink)?;
            }
            (Some(pml), None) if self.plan.unit.is_some() => {
                self.measure_concurrent(pml, single.as_ref(), &used, sink)?;
            }
            (Some(pml), None) => self.measure_shared(pml, used, sink)?,
            (Some(pml), Some(raw)) => {
                let mut layers = vec![(Layer::Pml, self.stage(pml)?)];
                if let Some(cm) = &cm {
                    layers.push((Layer::Cm, self.stage(cm)?));
                }
                layers.push((Layer::Raw, self.stage(raw)?));
                self.measure(pml, layers, used, sink)?;
            }
            (None, Some(raw)) if self.plan.test.access().is_some() => {
                self.measure_remote(raw, &used, sink)?;
            }
            (None, Some(raw)) => {
                let layers = vec![(Layer::Raw, self.stage(raw)?)];
                self.measure(raw, layers, used, sink)?;
            }
            (None, None) => return Err(Error::Usage("a plan without layers".to_owned())),
        }
        drop(windows);
        for beside in [cm, single].into_iter().flatten() {
            beside.close()?;
        }
        match pml {
            Some(pml) => pml.close()?,
            None => {
                bootstrap.fence(std::time::Duration::from_secs(30))?;
                bootstrap.leave();
            }
        }
        Ok(())
    }

    /// cm beside the pml of the configuration; `None`, and a word of it, where the transport does not match. All
    /// ranks find the same.
    fn open_cm(&self, config: &Config, bootstrap: &SharedBootstrap) -> Option<PmlPort> {
        let mut config = config.clone();
        let scoped = bootstrap.scoped("cm");
        let opened = match config.set("pml", "cm") {
            Ok(()) => PmlPort::open(&config, self.plan.any_thread(), scoped),
            Err(error) => Err(error.into()),
        };
        opened
            .inspect_err(|error| {
                if bootstrap.rank().as_u32() == 0 {
                    eprintln!("note: without cm: {error}");
                }
            })
            .ok()
    }

    /// The engine is the one that matches, which under cm the setting does not choose.
    fn used(
        &self,
        config: &Config,
        pml: Option<&PmlPort>,
        cm: Option<&PmlPort>,
        bootstrap: &SharedBootstrap,
    ) -> Result<Used> {
        let matcher = |port: Option<&PmlPort>| {
            port.map(|port| port.matcher().map(str::to_owned))
                .transpose()
        };
        let matches = pml.is_some() && config.choice("pml") == "cm";
        let why = tagwire_rails::why_taken(config, bootstrap).unwrap_or_default();
        let config = &*tagwire_rails::taken(config, matches, bootstrap);
        let libraries = tagwire_rails::libraries(config);
        let joined = |words: Vec<String>| (!words.is_empty()).then(|| words.join(" + "));
        // One rank of each machine reports it.
        let rank = bootstrap.rank().as_u32();
        let leads = rank == 0 || self.plan.other_from == Some(rank);
        let opened = leads.then(|| tagwire_rails::opened(config, matches, bootstrap));
        Ok(Used {
            transport: tagwire_rails::named(config),
            why: why.to_owned(),
            library: joined(libraries.iter().map(ToString::to_string).collect()),
            provider: opened.flatten(),
            file: joined(libraries.into_iter().map(|library| library.file).collect()),
            pml: pml.map(|_| config.choice("pml").to_owned()),
            engine: matcher(pml)?,
            engine_of_cm: matcher(cm)?,
            ..Used::default()
        })
    }

    /// Reports what is used, where this is rank 0, or the first one of another machine; returns whether it is rank 0.
    fn greet<P: Port>(&self, port: &P, used: &Used, sink: Sink<'_>) -> Result<bool> {
        let rank = port.rank().as_u32();
        let used = || Used {
            ranks: port.size(),
            ..used.clone()
        };
        if rank == 0 {
            sink(Message::Greeting(used()))?;
        } else if self.plan.other_from == Some(rank) {
            sink(Message::OtherGreeting(used()))?;
        }
        Ok(rank == 0)
    }

    /// Measures over a port that several threads may use.
    fn measure_shared<P: Port + Sync>(&self, port: &P, used: Used, sink: Sink<'_>) -> Result<()> {
        if self.plan.profile {
            return self.measure_threads(&Profiled::new(port), used, sink);
        }
        self.measure_threads(port, used, sink)
    }

    fn measure_threads<P: Port + Sync>(&self, port: &P, used: Used, sink: Sink<'_>) -> Result<()> {
        if self.plan.test.computes() {
            return self.measure(port, Vec::new(), used, sink);
        }
        let stage = if self.plan.threads > 1 {
            let threads = (0..self.plan.threads).map(|thread| self.traffic(port, thread));
            let threads = threads.collect::<Result<_>>()?;
            let body = ThreadedRate::new(threads, self.plan.window as usize);
            Box::new(Runner::new(port, body))
        } else {
            self.stage(port)?
        };
        self.measure(port, vec![(self.plan.layers[0], stage)], used, sink)
    }

    /// Memory for messages, from where the plan says.
    fn memory<P: Port>(&self, port: &P, len: usize) -> Result<Memory> {
        if self.plan.memory != Some(MemoryChoice::Arena) || len == 0 {
            return Memory::new(len);
        }
        let memory = port.allocate(len)?;
        memory
            .map(Memory::of)
            .ok_or(Error::Arena { needed: len as u64 })
    }

    fn traffic<P: Port>(&self, port: &P, thread: u32) -> Result<Traffic> {
        let seed = self.plan.validate.then_some(self.plan.seed);
        let window = self.plan.window as usize;
        let largest = self.plan.largest()?;
        let memory = |len| self.memory(port, len);
        Traffic::new(port.rank(), thread, largest, window, seed, memory)
    }

    /// The messages of rank 1 that nobody has received: when bytes are checked, each needs memory
    /// of its own there until the end.
    fn traffic_ahead<P: Port>(&self, port: &P) -> Result<Traffic> {
        let seed = self.plan.validate.then_some(self.plan.seed);
        let window = match port.rank().as_u32() {
            0 => 1,
            _ => self.plan.unexpected as usize,
        };
        let largest = self.plan.largest()?;
        let memory = |len| self.memory(port, len);
        Traffic::new(port.rank(), 1, largest, window, seed, memory)
    }

    fn collective<'p, P: Port>(
        &self,
        port: &'p P,
        operation: Operation,
    ) -> Result<Box<dyn Stage + 'p>> {
        let seed = self.plan.validate.then_some(self.plan.seed);
        let largest = self.plan.largest()?;
        let memory = |len| self.memory(port, len);
        let form = match self.plan.nonblocking {
            true => Form::Nonblocking,
            false => Form::Blocking,
        };
        let collectives = port.collectives(form)?;
        let fresh = self
            .plan
            .fresh
            .map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        let body = Collective::new(port, collectives, operation, largest, fresh, seed, memory)?;
        Ok(Box::new(Runner::new(port, body)))
    }

    fn stage<'p, P: Port>(&self, port: &'p P) -> Result<Box<dyn Stage + 'p>> {
        let plan = self.plan;
        if let Some(operation) = plan.test.collective() {
            return self.collective(port, operation);
        }
        let traffic = self.traffic(port, 0)?;
        let window = plan.window as usize;
        Ok(match plan.test {
            TestName::Latency if plan.unexpected > 0 => {
                let ahead = self.traffic_ahead(port)?;
                let body = Unexpected::new(traffic, ahead, plan.unexpected);
                Box::new(Runner::new(port, body))
            }
            TestName::Bandwidth => Box::new(Runner::new(
                port,
                Bandwidth::new(traffic, Direction::One, window),
            )),
            TestName::Bibandwidth => Box::new(Runner::new(
                port,
                Bandwidth::new(traffic, Direction::Both, window),
            )),
            TestName::MessageRate => Box::new(Runner::new(port, Rate::new(traffic, window))),
            TestName::Ring => Box::new(Runner::new(port, Ring::new(traffic))),
            // Others than `latency` have bodies of another kind, and this one for the words of the ranks.
            _ => Box::new(Runner::new(port, Latency::new(traffic, plan.posted))),
        })
    }

    /// Measures all sizes at all layers; `port` is the first one's.
    fn measure<P: Port>(
        &self,
        port: &P,
        layers: Vec<(Layer, Box<dyn Stage + '_>)>,
        used: Used,
        sink: Sink<'_>,
    ) -> Result<()> {
        let (layers, stages): (Vec<_>, Vec<_>) = layers.into_iter().unzip();
        let leads = self.greet(port, &used, sink)?;
        if self.plan.test == TestName::Idle {
            self.measure_idle(port, &used, sink)?;
        } else if self.plan.test.computes() {
            self.measure_computing(port, &used, sink)?;
        } else {
            let mut emit = |samples: Vec<Sample>| {
                self.rows(&layers, &samples, port.size(), &used)
                    .into_iter()
                    .try_for_each(|row| sink(Message::Row(Box::new(row))))
            };
            let effort = effort(self.plan);
            measure(port, stages, &self.sizes()?, &effort, &mut emit)?;
        }
        self.report_profile(port, &used, sink)?;
        done(leads, sink)
    }

    /// Reports where the time went, where account was kept of it.
    fn report_profile<P: Port>(&self, port: &P, used: &Used, sink: Sink<'_>) -> Result<()> {
        let Some(profile) = port.profile() else {
            return Ok(());
        };
        sink(Message::Profile(Box::new(Profile {
            transport: used.transport.clone(),
            library: used.library.clone(),
            pml: used.pml.clone(),
            launch: self.plan.launch,
            ..profile
        })))
    }

    fn measure_idle<P: Port>(&self, port: &P, used: &Used, sink: Sink<'_>) -> Result<()> {
        let waits = Waits {
            port,
            traffic: self.traffic(port, 0)?,
            pause: self.plan.idle,
            waited: None,
        };
        leader::run(port, waits, |leader| {
            for size in self.sizes()? {
                leader.watch()?;
                leader.block(&size)?;
                let load = leader.report()?;
                let Some(idle) = leader.script.waited else {
                    continue;
                };
                let mut row = self.row(self.plan.layers[0], size, port.size(), used);
                let elapsed = idle.elapsed.as_secs_f64();
                let cpu = 100.0 * idle.busy.as_secs_f64() / elapsed.max(1e-9);
                row.figures.set(Quantity::CPU.key(), cpu);
                row.figures.set("elapsed_ms", elapsed * 1e3);
                (row.iterations, row.repetitions) = (1, 1);
                add_load(&mut row, &load);
                sink(Message::Row(Box::new(row)))?;
            }
            Ok(())
        })
    }

    fn sizes(&self) -> Result<Vec<usize>> {
        self.plan.largest()?;
        // All sizes fit where the largest does.
        Ok(self
            .plan
            .sizes
            .iter()
            .filter_map(|&size| usize::try_from(size).ok())
            .collect())
    }

    /// The rows of one size, one for each layer.
    fn rows(&self, layers: &[Layer], samples: &[Sample], ranks: u32, used: &Used) -> Vec<Row> {
        let raw = layers
            .iter()
            .position(|&layer| layer == Layer::Raw)
            .filter(|_| layers.len() > 1);
        let key = crate::report::main_quantity(self.plan.test.as_str()).key();
        let mut rows: Vec<Row> = samples
            .iter()
            .map(|sample| {
                let mut row = self.row(layers[sample.stage], sample.size, ranks, used);
                (row.iterations, row.repetitions) = (sample.iterations, sample.repetitions);
                row.figures = figures(self.plan.test, sample);
                add_load(&mut row, &sample.load);
                row
            })
            .collect();
        if let Some(raw) = raw.and_then(|raw| rows[raw].figures.named(&key)) {
            for row in &mut rows {
                if let Some(own) = row.figures.named(&key) {
                    row.figures.set("ratio_to_raw", own / raw);
                }
            }
        }
        rows
    }

    fn row(&self, layer: Layer, size: usize, ranks: u32, used: &Used) -> Row {
        let plan = self.plan;
        let windowed = matches!(
            plan.test,
            TestName::Bandwidth | TestName::Bibandwidth | TestName::MessageRate
        );
        let some = |number: u32| (number > 0).then_some(number);
        let (pml, engine) = match layer {
            Layer::Pml => (used.pml.clone(), used.engine.clone()),
            Layer::Cm => (Some("cm".to_owned()), used.engine_of_cm.clone()),
            Layer::Raw | Layer::Mpi => (None, None),
        };
        Row {
            size: size as u64,
            transport: used.transport.clone(),
            library: used.library.clone(),
            provider: used.provider.clone(),
            pml,
            engine,
            layer: plan
                .layers
                .contains(&Layer::Raw)
                .then(|| layer.name(used.pml.as_deref())),
            ranks,
            window: windowed.then_some(plan.window),
            threads: (plan.test == TestName::MessageRate).then_some(plan.threads),
            posted: some(plan.posted),
            unexpected: some(plan.unexpected),
            cache: plan
                .fresh
                .map(|bytes| format!("fresh:{}", format_bytes(bytes))),
            nonblocking: plan.nonblocking,
            memory: plan.memory.map(|memory| memory.as_str().to_owned()),
            validated: plan.validate,
            profiled: plan.profile,
            launch: Some(plan.launch),
            ..Row::default()
        }
    }
}

/// Says that everything is over, where this is rank 0.
fn done(leads: bool, sink: Sink<'_>) -> Result<()> {
    if leads {
        sink(Message::Done)?;
    }
    Ok(())
}

/// Adds what ranks saw of the machine while `row` was measured.
fn add_load(row: &mut Row, load: &Load) {
    load.add_to(&mut row.figures);
    row.load = Some(load.ranks.clone());
}

/// Says why this rank ends.
fn report_failure(rank: u32, error: &Error, sink: Sink<'_>) -> ExitStatus {
    let status = error.exit_status();
    let failure = Message::Failure {
        rank,
        message: error.to_string(),
        status: i32::from(status.code()),
    };
    // Where nobody listens any more, the exit status has to do.
    let _ = sink(failure);
    status
}

/// OSU's numbers of iterations: a test with windows needs fewer.
fn effort(plan: &Plan) -> Effort {
    let (small, large) = match plan.test {
        TestName::Latency if plan.unexpected > 0 => ((100, 10), (20, 2)),
        TestName::Latency | TestName::Ring | TestName::Idle => ((10_000, 100), (1_000, 10)),
        test if test.collective().is_some() || test.access().is_some() => ((1_000, 100), (100, 10)),
        _ => ((100, 10), (20, 2)),
    };
    Effort::of(plan, small, large)
}

/// What a sample means in the quantities of its test.
fn figures(test: TestName, sample: &Sample) -> Figures {
    let mut figures = Figures::default();
    let time = sample.unit_ns;
    let inverse = |scale: f64| Summary {
        median: scale / time.median,
        min: scale / time.max,
        max: scale / time.min,
    };
    // Bytes per nanosecond are 10^3 MB/s.
    let bandwidth = inverse(sample.size as f64 * 1e3);
    let rate = inverse(1e9);
    match test {
        TestName::Bandwidth | TestName::Bibandwidth => {
            figures.set_summary(Quantity::BANDWIDTH, bandwidth);
            figures.set(Quantity::RATE.key(), rate.median);
        }
        TestName::MessageRate => {
            figures.set_summary(Quantity::RATE, rate);
            figures.set(Quantity::BANDWIDTH.key(), bandwidth.median);
        }
        TestName::Availability | TestName::Overlap | TestName::Partitioned => {}
        _ => {
            let scaled = Summary {
                median: time.median / 1e3,
                min: time.min / 1e3,
                max: time.max / 1e3,
            };
            figures.set_summary(Quantity::LATENCY, scaled);
        }
    }
    if test == TestName::Ring {
        figures.set("elapsed_ms", sample.elapsed.as_secs_f64() * 1e3);
    }
    if let Some(longer) = sample.first_block_pct {
        figures.set(FIRST_BLOCK, longer);
    }
    for &(percentile, time) in &sample.percentiles {
        figures.set(Percentiles::key(percentile), time / 1e3);
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Sample {
        Sample {
            stage: 0,
            size: 1000,
            iterations: 10,
            repetitions: 5,
            unit_ns: Summary {
                median: 500.0,
                min: 400.0,
                max: 1000.0,
            },
            first_block_pct: Some(-10.0),
            load: Load::default(),
            elapsed: std::time::Duration::from_millis(5),
            percentiles: vec![(99.9, 800.0)],
        }
    }

    #[test]
    fn units_are_those_of_their_names() {
        let latency = figures(TestName::Latency, &sample());
        assert_eq!(latency.named("latency_us"), Some(0.5));
        assert_eq!(latency.named("p99_9_us"), Some(0.8));
        let bandwidth = figures(TestName::Bandwidth, &sample());
        assert_eq!(bandwidth.named("bandwidth_mb_s"), Some(2000.0));
        assert_eq!(bandwidth.named("bandwidth_min_mb_s"), Some(1000.0));
        assert_eq!(bandwidth.named("bandwidth_max_mb_s"), Some(2500.0));
        let rate = figures(TestName::MessageRate, &sample());
        assert_eq!(rate.named("rate_msg_s"), Some(2e6));
        assert_eq!(
            figures(TestName::Ring, &sample()).named("elapsed_ms"),
            Some(5.0)
        );
    }
}
