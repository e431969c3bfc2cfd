//! One rank of a job: opens its ports, measures, reports.

use tagwire_base::bootstrap::SharedBootstrap;
use tagwire_base::{Bootstrap, Config};

use crate::Host;
use crate::args::Progress;
use crate::environment::{MPI, Used};
use crate::error::{Error, ExitStatus, Result};
use crate::link::{Message, Reporter};
use crate::mpi::{Mpi, MpiPort};
use crate::plan::{Carrier, Layer, Plan};
use crate::port::Endpoint;
use crate::port::partitioned::PartitionedPort;
use crate::port::pml::PmlPort;
use crate::port::profiled::Profiled;
use crate::port::raw::RawPort;
use crate::port::window::Windows;
use crate::profile::Profile;
use crate::run::{Ports, Run, Sink};

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
        let ranks = self.plan.own.check_ranks(self.plan, port.size());
        let measured = ranks.and_then(|()| {
            let leads = self.greet(&port, &used, sink)?;
            if self.plan.test.access.is_some() && !self.plan.opens_only {
                let run = &mut Run::new(&port, self.plan, &used, sink);
                self.plan.own.measure_bare(&port, run)?;
            } else if !self.plan.opens_only {
                self.measure(&port, None, Some(&port), &used, sink)?;
            }
            done(leads, sink)
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
        self.plan.own.check_ranks(self.plan, bootstrap.size())?;
        if self.plan.callers.progress == Some(Progress::LibraryThread) {
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
        let has_windows = self.plan.own.has_rma(self.plan.test) && !self.plan.opens_only;
        let any_thread = self.plan.any_thread() || has_windows;
        let open = || PmlPort::open(&config, any_thread, bootstrap.clone());
        let pml = pml.then(open).transpose()?;
        let cm = layers.contains(&Layer::Cm) && config.choice("pml") != "cm";
        let cm = cm.then(|| self.open_cm(&config, &bootstrap)).flatten();
        let single = self.needs_single();
        let single = single.then(|| PmlPort::open(&config, false, bootstrap.scoped("single")));
        let single = single.transpose()?;
        let windows = pml.as_ref().filter(|_| has_windows);
        let windows = windows.map(PmlPort::windows).transpose()?;
        let used = self.used(&config, pml.as_ref(), cm.as_ref(), &bootstrap)?;
        let no_layers = || Error::Usage("a plan without layers".to_owned());
        let leads = match (&pml, &raw) {
            (Some(pml), _) => self.greet(pml, &used, sink)?,
            (None, Some(raw)) => self.greet(raw, &used, sink)?,
            (None, None) => return Err(no_layers()),
        };
        let (plan, test) = (self.plan, &self.plan.own);
        match (&pml, &raw) {
            _ if self.plan.opens_only => {}
            (Some(pml), None) => {
                self.measure(pml, single.as_ref(), windows, &used, sink)?;
            }
            (Some(pml), Some(raw)) => {
                let mut layers = vec![(Layer::Pml, test.stage(plan, pml)?)];
                if let Some(cm) = &cm {
                    layers.push((Layer::Cm, test.stage(plan, cm)?));
                }
                layers.push((Layer::Raw, test.stage(plan, raw)?));
                test.measure_layers(&mut Run::new(pml, plan, &used, sink), layers)?;
            }
            (None, Some(raw)) => {
                test.measure_bare(raw, &mut Run::new(raw, plan, &used, sink))?;
            }
            (None, None) => return Err(no_layers()),
        }
        done(leads, sink)?;
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
        // The engine that was chosen is that of ob1, beside which this one is measured.
        let engine = config
            .entry("engine")
            .map(|entry| entry.setting().default_value());
        let set = engine.and_then(|engine| config.set("engine", &engine.to_string()));
        let opened = match set.and_then(|()| config.set("pml", "cm")) {
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
            engine: match matches {
                // With its parameters.
                false => pml.map(|_| config.named("engine").to_string()),
                true => matcher(pml)?,
            },
            engine_of_cm: matcher(cm)?,
            ..Used::default()
        })
    }

    /// Reports what is used, where this is rank 0, or the first one of another machine; returns whether it is rank 0.
    fn greet(&self, port: &dyn Endpoint, used: &Used, sink: Sink<'_>) -> Result<bool> {
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

    /// Measures over what matches messages, and keeps account of its calls where that was asked for.
    fn measure<P: PartitionedPort>(
        &self,
        port: &P,
        single: Option<&P>,
        windows: Option<&dyn Windows>,
        used: &Used,
        sink: Sink<'_>,
    ) -> Result<()> {
        if !self.plan.profile {
            let mut run = Run::new(port, self.plan, used, sink);
            run.windows = windows;
            let ports = Ports { own: port, single };
            return self.plan.own.measure(ports, &mut run);
        }
        let port = Profiled::new(port);
        let mut run = Run::new(&port, self.plan, used, &mut *sink);
        run.windows = windows;
        self.plan.own.measure_profiled(&port, &mut run)?;
        self.report(port.profile(), used, sink)
    }

    /// Whether the test needs a session at level single beside its own.
    fn needs_single(&self) -> bool {
        let is_ours = matches!(self.plan.carrier, Carrier::Ours(_));
        let units = self.plan.test.units;
        is_ours && !self.plan.opens_only && units.is_some_and(|units| units.sessions)
    }

    /// Reports where the time went.
    fn report(&self, profile: Profile, used: &Used, sink: Sink<'_>) -> Result<()> {
        sink(Message::Profile(Box::new(Profile {
            transport: used.transport.clone(),
            library: used.library.clone(),
            pml: used.pml.clone(),
            launch: self.plan.launch,
            ..profile
        })))
    }
}

/// Says that everything is over, where this is rank 0.
fn done(leads: bool, sink: Sink<'_>) -> Result<()> {
    if leads {
        sink(Message::Done)?;
    }
    Ok(())
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
