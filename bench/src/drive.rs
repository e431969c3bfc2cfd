//! The command: starts the jobs of a run and gathers their results.

use std::io::{IsTerminal, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tagwire_launch::detect::{Detection, Launcher};

use crate::Host;
use crate::args::names::name_of;
use crate::args::{BenchArgs, TransportChoice};
use crate::concurrent;
use crate::environment::{self, Environment};
use crate::error::{Error, ExitStatus, Result};
use crate::jobs::Jobs;
use crate::joined;
use crate::line_transfer;
use crate::link::Message;
use crate::machines::{self, Director, Joined};
use crate::mpi::was_launched;
use crate::plan::{Carrier, Plan};
use crate::rank;
use crate::record::{Row, Sampling, Series};
use crate::report::Report;
use crate::report::output::{Output, terminal_width};
use crate::stats::Seeded;
use crate::visible;

use self::cases::{Queue, binding, cases};
use self::resume::{Earlier, Kept, Key, Shape, check_used};
use self::start::{Unusable, refuse_aliases};

pub(crate) use self::cases::Case;
pub(crate) use self::start::{Start, starts};

mod cases;
mod resume;
mod start;

/// Runs the benchmark that `args` describe: as a rank, when this process is one, else as the
/// command that starts the ranks. Errors go to standard error.
#[must_use]
pub fn run(args: &BenchArgs, host: &Host) -> ExitStatus {
    let result = match Plan::of_environment() {
        Ok(Some(plan)) => Ok(rank::run(host, &plan)),
        Ok(None) => command(args, host),
        Err(error) => Err(error),
    };
    result.unwrap_or_else(|error| {
        // A reader that has seen enough ends the command as it ends others, unless a file lacks what comes.
        if error.is_closed_pipe() && args.output.is_none() {
            return ExitStatus::Signal(signal_hook::consts::SIGPIPE as u8);
        }
        let mut stderr = std::io::stderr();
        let _ = writeln!(stderr, "error: {}", visible::text(&error.to_string()));
        if matches!(error, Error::Interrupted { .. })
            && let Some(file) = resumable(args)
        {
            let _ = writeln!(
                stderr,
                "the same command with --resume goes on: it measures what {} lacks",
                file.display()
            );
        }
        error.exit_status()
    })
}

/// The file of an interrupted run, where it has something and `--resume` can go on with it.
fn resumable(args: &BenchArgs) -> Option<&Path> {
    let file = args.output.as_deref()?;
    let can_go_on = !args.profile && args.side_of_two().is_none();
    let has_rows = || Earlier::read(file).is_ok_and(|earlier| earlier.is_some());
    (can_go_on && args.pattern.record.is_none() && has_rows()).then_some(file)
}

fn command(args: &BenchArgs, host: &Host) -> Result<ExitStatus> {
    let launcher = Detection::of_environment()?.launcher();
    let foreign = matches!(args.transports(&host.config)[..], [TransportChoice::Mpi(_)]);
    if launcher != Launcher::SINGLE || foreign && was_launched() {
        return joined::under_launcher(args, host, launcher);
    }
    args.check()?;
    let host = host.configured(args)?;
    let (starts, unusable) = starts(args, &host)?;
    let other = match args.side_of_two() {
        None => None,
        Some(side) => match machines::join(args, &host, &side)? {
            Joined::Over(status) => return Ok(status),
            Joined::Director(director) => Some(director),
        },
    };
    let cases = cases(args, &host, other.as_deref())?;
    let command = command_line();
    let file = args.output.as_deref().filter(|_| args.resume);
    let earlier = file.map(Earlier::read).transpose()?.flatten();
    let begun = args
        .output
        .as_deref()
        .filter(|_| !args.resume && !args.overwrite);
    let begun = begun.and_then(|file| Earlier::read(file).ok()?.filter(|it| it.is_of(&command)));
    let drawn = || earlier.as_ref().map_or_else(seed_of_clock, Earlier::seed);
    let seed = args.seed.unwrap_or_else(drawn);
    let mut environment = environment(args, &host, &cases, seed, &starts);
    if let Some(other) = &other {
        other.describe(&mut environment);
    }
    let per_size = args.rows_per_size();
    let is_one = starts.len() + unusable.len() == 1 && cases.len() == 1;
    let streams = is_one && args.launches == 1 && per_size == 1 && earlier.is_none();
    let sizes = args.size_list();
    let sessions = concurrent::asked(args).is_some_and(|test| test.sessions);
    let shape = Shape {
        sizes: sizes.as_slice(),
        most: per_size,
        sessions: sessions.then_some(cases.len()),
        has_queues: cases.iter().any(|case| case.own.is_some()),
        has_engines: args.has_engines(),
    };
    let kept = match earlier {
        None => Kept::default(),
        Some(earlier) => {
            earlier.check(&command, &environment)?;
            let (kept, then) = earlier.kept(shape);
            environment.resumes(then);
            kept
        }
    };
    let report = Report::new(args.test, command, environment);
    let mut output = Output::new(
        report,
        args.format,
        args.percentiles.clone(),
        args.output.as_deref(),
        streams,
        std::io::stdout(),
    )?;
    output.advises = args.partitioned.advise;
    output.starts_again = true;
    output.width = terminal_width();
    output.restore(with_cases(kept.rows.clone(), &cases, shape));
    let jobs = starts.len() * cases.len() * args.launches as usize;
    let total = jobs * sizes.as_slice().len();
    let progress = progress_bar(per_size * total, terminal());
    progress.inc(kept.rows.len() as u64);
    let mut run = Run {
        args,
        host: &host,
        jobs: (starts.len() + unusable.len()) * cases.len() * args.launches as usize,
        cases,
        starts,
        unusable,
        failed: Failed::default(),
        seed,
        other,
        output,
        progress,
        kept,
        line_transfer: None,
    };
    if let Some(begun) = begun {
        run.spares(begun, shape)?;
    }
    let result = match run.lacks_nothing() {
        true => Ok(()),
        false => run.open_all().and_then(|()| run.all()),
    };
    run.progress.finish_and_clear();
    // What was measured is printed even when the run broke off.
    let printed = run.output.finish();
    result.and(printed)?;
    Ok(run.output.report().status())
}

pub(crate) fn environment(
    args: &BenchArgs,
    host: &Host,
    cases: &[Case],
    seed: u64,
    starts: &[Start],
) -> Environment {
    let placement = &cases[0].placement;
    let jobs = environment::Jobs {
        ranks: args.rank_count(),
        launches: args.launches,
        binding: placement.text.clone(),
        cores: placement.cores,
        threads: args.thread_count(),
        seed,
    };
    let mut environment = Environment::capture(host, &jobs);
    environment.binding = binding(cases);
    environment.oversubscribed |= cases.iter().any(Case::is_oversubscribed);
    environment.transports = starts.iter().map(|start| start.used.clone()).collect();
    environment
}

struct Run<'a, W: Write> {
    args: &'a BenchArgs,
    host: &'a Host,
    cases: Vec<Case>,
    starts: Vec<Start>,
    /// What cannot be used, of several transports.
    unusable: Vec<Unusable>,
    failed: Failed,
    /// How many jobs were asked for.
    jobs: usize,
    seed: u64,
    /// The other one of two machines.
    other: Option<Box<Director>>,
    output: Output<W>,
    progress: ProgressBar,
    /// What an interrupted run has left.
    kept: Kept,
    /// What the CPUs of the job under way took for a cache line before it began.
    line_transfer: Option<f64>,
}

/// The jobs that were passed over.
#[derive(Debug, Default)]
struct Failed {
    count: usize,
    status: Option<ExitStatus>,
}

impl<W: Write + Send> Run<'_, W> {
    /// Opens each of several transports before anything is measured: a job whose ranks do no more.
    fn open_all(&mut self) -> Result<()> {
        let all = self.starts.len() + self.unusable.len();
        if all > 1 {
            let mut usable = Vec::new();
            for job in 0..self.starts.len() {
                match self.open(job) {
                    Ok(()) => usable.push(job),
                    Err(error @ Error::Interrupted { .. }) => return Err(error),
                    Err(error) => {
                        self.unusable.push((self.starts[job].name.clone(), error));
                    }
                }
            }
            self.keep(&usable);
            refuse_aliases(&self.starts, &self.output.report().environment.transports)?;
        }
        if self.unusable.is_empty() {
            return Ok(());
        }
        let why = |(name, error): &Unusable| (name.clone(), error.to_string());
        let list: Vec<(String, String)> = self.unusable.iter().map(why).collect();
        if !self.args.keep_going {
            return Err(Error::Unusable { all, list });
        }
        for (name, why) in list {
            self.failed.count += self.cases.len() * self.args.launches as usize;
            self.failed.status.get_or_insert(ExitStatus::Failed);
            self.pass_over(name, None, 0, 0, why)?;
        }
        Ok(())
    }

    /// Leaves out all jobs but these.
    fn keep(&mut self, jobs: &[usize]) {
        self.starts = jobs.iter().map(|&job| self.starts[job].clone()).collect();
        let environment = &mut self.output.report_mut().environment;
        let others = environment
            .other
            .as_mut()
            .map(|other| &mut other.transports);
        for transports in [&mut environment.transports].into_iter().chain(others) {
            *transports = jobs.iter().map(|&job| transports[job].clone()).collect();
        }
    }

    /// All launches of all jobs; in each round in another order.
    fn all(&mut self) -> Result<()> {
        let mut random = Seeded::new(self.seed);
        for launch in 0..self.args.launches {
            let mut order = self.order();
            random.shuffle(&mut order);
            for (job, case) in order {
                let sizes = self.lacking(job, case, launch);
                if sizes.is_empty() {
                    continue;
                }
                match self.measure(job, case, launch, sizes) {
                    Err(error) if self.args.keep_going && error.is_of_a_job() => {
                        self.fail(job, case, launch, &error)?;
                    }
                    result => result?,
                }
            }
        }
        match self.failed.status {
            None => Ok(()),
            Some(status) => Err(Error::Incomplete {
                count: self.failed.count,
                all: self.jobs,
                status,
            }),
        }
    }

    /// Each case over each transport.
    fn order(&self) -> Vec<(usize, usize)> {
        let is_own = |job: usize| matches!(self.starts[job].carrier, Carrier::Ours(_));
        let sessions = concurrent::asked(self.args).is_some_and(|test| test.sessions);
        let is_job = |case: usize| {
            // Where units are sessions, the job of threads has both.
            let variant = self.cases[case].variant.as_ref();
            variant.is_none_or(|variant| variant.unit.is_threads())
        };
        let jobs = (0..self.starts.len()).flat_map(|job| {
            let cases = 0..self.cases.len();
            cases.map(move |case| (job, case))
        });
        // Other libraries have engines of their own, and each length of a queue once.
        let is_other = |case: usize| {
            let queue = &self.cases[case].queue;
            let mut before = self.cases[..case].iter().map(|case| &case.queue);
            queue.engine.is_none() || !before.any(|one| one.of_foreign() == queue.of_foreign())
        };
        jobs.filter(|&(job, case)| match is_own(job) {
            true => !sessions || is_job(case),
            false => is_other(case),
        })
        .collect()
    }

    /// A job has failed, and the others go on.
    fn fail(&mut self, job: usize, case: usize, launch: u32, error: &Error) -> Result<()> {
        let status = error.exit_status();
        self.failed.count += 1;
        // Wrong bytes are worse than anything else.
        if self.failed.status != Some(ExitStatus::Invalid) {
            self.failed.status = Some(match status {
                ExitStatus::Invalid => status,
                _ => ExitStatus::Failed,
            });
        }
        let used = self.output.report().environment.transports[job].clone();
        let (transport, library) = (used.transport, used.library);
        self.pass_over(transport, library, case, launch, error.to_string())
    }

    /// Leaves a row with the error of a job.
    fn pass_over(
        &mut self,
        transport: String,
        library: Option<String>,
        case: usize,
        launch: u32,
        error: String,
    ) -> Result<()> {
        let variant = self.cases[case].variant.as_ref();
        let unit = variant.map(|variant| variant.unit.to_string());
        let progress = variant.and_then(|variant| variant.progress);
        let progress = progress.map(name_of);
        let queue = self.cases[case].queue.clone();
        let ranks = variant.map(|variant| variant.shape.nodes.len() as u32);
        let sizes = self.args.size_list();
        let done = |size: u64| {
            let mut rows = self.output.report().rows.iter();
            rows.any(|row| {
                let job = (
                    &row.series.transport,
                    &row.series.library,
                    row.sampling.launch,
                );
                let of_case = (&row.series.unit, &row.series.progress) == (&unit, &progress);
                let of_queue =
                    Queue::of_row(row, queue != Queue::default(), queue.engine.is_some());
                of_case
                    && of_queue == queue
                    && row.size == size
                    && job == (&transport, &library, Some(launch))
            })
        };
        let size = sizes.as_slice().iter().copied().find(|&size| !done(size));
        let row = Row {
            size: size.unwrap_or_else(|| sizes.largest()),
            series: Series {
                ranks: ranks.unwrap_or_else(|| self.args.rank_count()),
                unit: unit.clone(),
                progress: progress.clone(),
                engine: queue.engine.clone(),
                posted: queue.posted,
                unexpected: queue.unexpected,
                wild: queue.wild,
                position: queue.position,
                spread: queue.spread,
                transport,
                library,
                ..Series::default()
            },
            sampling: Sampling {
                launch: Some(launch),
                ..Sampling::default()
            },
            error: Some(error),
            ..Row::default()
        };
        self.output.row(row)
    }

    /// The sizes that a launch of a job has no rows of yet.
    fn lacking(&self, job: usize, case: usize, launch: u32) -> Vec<u64> {
        let used = &self.output.report().environment.transports[job];
        let variant = self.cases[case].variant.as_ref();
        let sessions = concurrent::asked(self.args).is_some_and(|test| test.sessions);
        let is_own = matches!(self.starts[job].carrier, Carrier::Ours(_));
        let is_one = sessions && is_own;
        let queue = &self.cases[case].queue;
        let unit = variant.map(|variant| variant.unit.to_string());
        let key = Key {
            transport: used.transport.clone(),
            library: used.library.clone(),
            launch: Some(launch),
            unit: unit.filter(|_| !is_one),
            progress: variant.and_then(|variant| variant.progress).map(name_of),
            queue: match is_own {
                true => queue.clone(),
                false => queue.of_foreign(),
            },
        };
        self.kept.lacking(&key, self.args.size_list().as_slice())
    }

    /// Whether an interrupted run has left nothing to do.
    fn lacks_nothing(&self) -> bool {
        let launches = 0..self.args.launches;
        self.unusable.is_empty()
            && launches.into_iter().all(|launch| {
                let mut jobs = self.order().into_iter();
                jobs.all(|(job, case)| self.lacking(job, case, launch).is_empty())
            })
    }

    /// Refuses to overwrite what an interrupted run of the same command has left.
    fn spares(&mut self, begun: Earlier, shape: Shape<'_>) -> Result<()> {
        let file = begun.file().to_path_buf();
        let (kept, then) = begun.kept(shape);
        let own = self.output.report().environment.clone();
        self.output.report_mut().environment.resumes(then);
        let none = std::mem::replace(&mut self.kept, kept);
        let is_whole = self.lacks_nothing();
        self.output.report_mut().environment = own;
        self.kept = none;
        match is_whole {
            true => Ok(()),
            false => Err(Error::Input {
                file,
                reason: "has the unfinished results of this command: --resume goes on with them, --overwrite measures anew"
                    .to_owned(),
            }),
        }
    }

    /// A job whose ranks open everything, and no more.
    fn open(&mut self, job: usize) -> Result<()> {
        let mut plan = self.plan(job, 0, 0);
        plan.opens_only = true;
        self.one(job, 0, plan)
    }

    /// One launch of a job, for these sizes.
    fn measure(&mut self, job: usize, case: usize, launch: u32, sizes: Vec<u64>) -> Result<()> {
        let name = &self.starts[job].name;
        self.progress
            .set_message(under_way(name, launch, self.args.launches));
        let mut plan = self.plan(job, case, launch);
        plan.sizes = sizes;
        // Of another machine's CPUs this one says nothing.
        let cpus = self.cases[case].placement.first_two();
        let cpus = cpus.filter(|_| self.other.is_none());
        let transfer = || cpus.and_then(line_transfer::measure);
        let (rows, before) = (self.output.report().rows.len(), transfer());
        self.line_transfer = before;
        let result = self.one(job, case, plan);
        self.line_transfer = None;
        if let Some(after) = before.and_then(|_| transfer()) {
            self.output.label(rows, line_transfer::AFTER, after);
        }
        // Between two jobs nothing is measured.
        let saved = self.output.save();
        result.and(saved)
    }

    fn plan(&self, job: usize, case: usize, launch: u32) -> Plan {
        let carrier = self.starts[job].carrier.clone();
        let case = &self.cases[case];
        let args = case.args(self.args);
        Plan::of(args, case.variant(), carrier, self.seed, launch)
    }

    /// Runs a job, and takes what its ranks report.
    fn one(&mut self, job: usize, case: usize, plan: Plan) -> Result<()> {
        let (start, number) = (&self.starts[job], case);
        let case = &self.cases[number];
        let own = case.own.as_deref();
        let own = own.map(|args| self.host.configured(args)).transpose()?;
        let jobs = Jobs {
            args: case.args(self.args),
            host: own.as_ref().unwrap_or(self.host),
            placement: &case.placement,
        };
        let engines = self.args.engine.as_ref().filter(|list| list.has_several());
        let other = self.other.as_deref();
        let agreed = match other {
            None => None,
            Some(other) => {
                let agreed = other.agree(&jobs, plan.clone())?;
                // The head of the results is written with the first row.
                let environment = &mut self.output.report_mut().environment;
                other.describe_binding(environment, &jobs.placement.text, &agreed);
                Some((other, agreed))
            }
        };
        let known = self.kept.transports();
        let known = known.get(job).filter(|_| known.len() == self.starts.len());
        let (output, progress, host) = (&mut self.output, &self.progress, self.host);
        let transfer = self.line_transfer;
        let take = |message| {
            let environment = &mut output.report_mut().environment;
            match message {
                Message::Greeting(used) => {
                    let used_here = &mut environment.transports[job];
                    used_here.learn(used);
                    if let (Some(engine), Some(all)) = (&mut used_here.engine, engines) {
                        *engine = all.to_string();
                    }
                    if let Some(known) = known {
                        check_used(known, &environment.transports[job])?;
                    }
                }
                Message::OtherGreeting(used) => {
                    if let Some(other) = &mut environment.other {
                        other.transports[job].learn(used);
                    }
                }
                Message::Row(mut row) => {
                    row.case = number;
                    host.mark(&mut row);
                    if let Some(transfer) = transfer {
                        row.figures.set(line_transfer::BEFORE, transfer);
                    }
                    progress.inc(1);
                    return progress.suspend(|| output.row(*row));
                }
                Message::Profile(profile) => output.report_mut().add_profile(*profile),
                Message::Done | Message::Failure { .. } => {}
            }
            Ok(())
        };
        if let Carrier::Tool(tool) = &start.carrier {
            let library = start.used.library.as_ref();
            return match plan.opens_only {
                true => Ok(()),
                false => tool.run(library, &jobs, &plan, take),
            };
        }
        match agreed {
            None => jobs.run(start, plan, take),
            Some((other, agreed)) => other.run(&jobs, agreed, take),
        }
    }
}

/// The rows of a file, each with the place of its job among those over its transport.
fn with_cases(mut rows: Vec<Row>, cases: &[Case], shape: Shape<'_>) -> Vec<Row> {
    for row in &mut rows {
        let queue = Queue::of_row(row, shape.has_queues, shape.has_engines);
        let fits = |case: &Case| {
            if shape.has_queues {
                let is_foreign = row.is_foreign() && case.queue.of_foreign() == queue;
                return is_foreign || case.queue == queue;
            }
            let variant = case.variant.as_ref();
            let progress = variant.and_then(|variant| variant.progress);
            variant.is_some_and(|variant| Some(variant.unit.to_string()) == row.series.unit)
                && progress.map(name_of) == row.series.progress
        };
        row.case = cases.iter().position(fits).unwrap_or(0);
    }
    rows
}

pub(crate) fn seed_of_clock() -> u64 {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    // Short enough to be typed again.
    u64::from(now.subsec_nanos())
}

/// Where the line of progress is drawn: standard error, where that is a terminal.
fn terminal() -> ProgressDrawTarget {
    if std::io::stderr().is_terminal() {
        ProgressDrawTarget::stderr()
    } else {
        ProgressDrawTarget::hidden()
    }
}

/// Returns the line of progress of a run of `total` rows.
fn progress_bar(total: usize, target: ProgressDrawTarget) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(total as u64), target);
    if let Ok(style) = ProgressStyle::with_template(
        "{bar:30} {pos}/{len} rows, {msg}, {elapsed}, about {eta} left",
    ) {
        bar.set_style(style);
    }
    bar
}

/// Returns what the line of progress says of the launch under way.
fn under_way(name: &str, launch: u32, launches: u32) -> String {
    format!("{name}, launch {} of {launches}", launch + 1)
}

/// Returns the command as it was typed, quoted for a shell where needed. One that goes on with a run is the same command.
#[must_use]
pub fn command_line() -> String {
    let mut words = std::env::args_os().map(|word| word.to_string_lossy().into_owned());
    let program = words.next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default().to_owned();
    std::iter::once(name)
        .chain(words.filter(|word| word != "--resume" && word != "--overwrite"))
        .map(|word| quoted(&word))
        .collect::<Vec<_>>()
        .join(" ")
}

/// Returns a word as a shell takes it.
#[must_use]
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+%@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests;
