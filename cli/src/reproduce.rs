//! `tagwire reproduce`: figures and tables of papers, measured here, beside what they publish; and those of Tagwire's performance.

use std::fmt::Write as _;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use clap::{Args, ValueEnum};
use serde_json::Value;
use signal_hook::consts::{SIGINT, SIGTERM};
use tagwire_base::Clock;
use tagwire_papers::{Item, Needs, Outcome, Ran, Rows, Run, Verdict};
use tagwire_report::{Format, Published, Report, Selection, Written};

use crate::failure::{Failure, status};
use crate::output::print;
use crate::projection::ProjectionOptions;

mod draw;
mod partial;
mod simulated;
mod store;

pub use partial::write;
pub use store::ATTEMPTS;

/// The options of `tagwire reproduce`.
#[derive(Debug, Args)]
pub struct ReproduceOptions {
    /// Figures such as mtl/fig2a, papers such as mtl, 'all' papers, Tagwire's performance beside its peers, or 'list'
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,

    /// On which transports; an MPI library stands beside them as mpi or mpi:PREFIX. Items of performance have transports of
    /// their own, and take peers from here
    #[arg(
        short,
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "shm"
    )]
    transport: Vec<String>,

    /// In place of measuring here, simulate the machines of the papers; with a name, one of those that 'tagwire sim list' has
    #[arg(long, value_name = "sim[:PRESET]", conflicts_with_all = ["build", "plan", "resume", "page"])]
    on: Option<simulated::On>,

    /// Fewer sizes and launches: minutes for all
    #[arg(long)]
    quick: bool,

    /// Keep what an earlier run with the same options has measured, and go on
    #[arg(long)]
    resume: bool,

    /// Keep outcomes in a folder, of full runs alone: goes on with what is there, and measures blocks again that others took
    /// more than 5 % of the cores beside. With 'list', says which outcomes of the folder are older than the code they measure
    #[arg(long, value_name = "DIR", conflicts_with = "quick")]
    store: Option<PathBuf>,

    /// Measure nothing, and say how long the runs take
    #[arg(long, conflicts_with_all = ["page", "store", "resume"])]
    plan: bool,

    /// The folder of results and outcomes
    #[arg(short, long, value_name = "DIR", default_value = "reproduced")]
    output: PathBuf,

    /// Measure nothing, and write the paper's page in Markdown from the outcomes in the folder; of performance, the tables between
    /// the marks of a page
    #[arg(long, value_name = "FILE", conflicts_with_all = ["quick", "resume", "fail_on"])]
    page: Option<PathBuf>,

    /// Measure this build of Tagwire, and others by turns, each in a column of its name (performance)
    #[arg(long, value_name = "NAME=PATH", value_parser = build)]
    build: Vec<Build>,

    #[command(flatten)]
    projection: ProjectionOptions,

    /// Status 4 where a claim has this verdict
    #[arg(long, value_name = "VERDICT")]
    fail_on: Option<FailOn>,
}

/// A build of Tagwire, and what its columns are called.
#[derive(Debug, Clone, Default)]
struct Build {
    name: String,
    /// This one where there is none.
    program: Option<PathBuf>,
}

fn build(text: &str) -> Result<Build, String> {
    let (name, program) = text.split_once('=').ok_or("expected NAME=PATH")?;
    // A name alone would be searched for.
    let file = fs::canonicalize(program).ok().filter(|file| file.is_file());
    let file = file.ok_or_else(|| format!("there is no program '{program}'"))?;
    Ok(Build {
        name: name.to_owned(),
        program: Some(file),
    })
}

/// What ends with status 4.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FailOn {
    /// A claim that does not hold here
    Fails,
}

/// Lists items, or reproduces them.
pub fn reproduce(options: &ReproduceOptions) -> Result<ExitCode, Failure> {
    if options.names.iter().any(|name| name == "list") {
        if options.names.len() > 1 {
            return Err(Failure::usage("'list' stands alone: it lists all items"));
        }
        let text = match &options.store {
            Some(folder) => store::stored(folder, tagwire_report::circumstances::date),
            None => list(),
        };
        print(&text)?;
        return Ok(ExitCode::SUCCESS);
    }
    let mut items: Vec<&'static Item> = Vec::new();
    for name in &options.names {
        for item in tagwire_papers::find(name).map_err(Failure::usage)? {
            if !items.iter().any(|known| known.name == item.name) {
                items.push(item);
            }
        }
    }
    options.projection.check(&items)?;
    if let (Some(item), false) = (
        items.iter().find(|item| !item.has_tables()),
        options.build.is_empty(),
    ) {
        let text = format!(
            "--build is of performance: {} is measured with one",
            item.name
        );
        return Err(Failure::usage(text));
    }
    if let Some(file) = &options.page {
        return page(options, &items, file);
    }
    if let Some(text) = options.projection.without_measuring()? {
        print(&text)?;
        return Ok(ExitCode::SUCCESS);
    }
    for name in &options.transport {
        let known = name.parse::<tagwire_bench::TransportChoice>();
        known.map_err(|reason| Failure::usage(format!("-t {name}: {reason}")))?;
    }
    if options.plan {
        print(&tagwire_papers::plan(
            &items,
            &options.transport,
            options.quick,
        ))?;
        return Ok(ExitCode::SUCCESS);
    }
    fs::create_dir_all(&options.output).map_err(|error| unwritable(&options.output, &error))?;
    partial::clean(&options.output);
    if items.iter().any(|item| !item.has_tables()) {
        write_arrivals(options)?;
    }
    let interrupted = interruptions()?;
    let (mut failed_runs, mut fails) = (0, 0);
    for item in items {
        check(&interrupted)?;
        if let Some(on) = &options.on {
            match simulated::one(options, on, item)? {
                Ok(outcome) => {
                    fails += outcome.count(Verdict::Fails);
                    print(&format!("{}\n", outcome.text()))?;
                }
                Err(why) => print(&format!(
                    "{} ({}): not simulated: {why}\n\n",
                    item.name, item.figure
                ))?,
            }
            continue;
        }
        if item.needs != Needs::Real {
            let why = item.why.as_deref().unwrap_or_default();
            print(&format!(
                "{} ({}): {}: {why}\n\n",
                item.name,
                item.figure,
                item.needs.word()
            ))?;
            continue;
        }
        let (outcome, rows, failed) = one(options, item, &interrupted)?;
        failed_runs += failed;
        fails += outcome.count(Verdict::Fails);
        print(&format!("{}\n", outcome.text()))?;
        if let Some(text) = options.projection.measured(&rows)? {
            print(&text)?;
        }
    }
    if failed_runs > 0 {
        let text = format!(
            "{failed_runs} runs of 'tagwire bench' failed; their claims are not testable, their cells empty"
        );
        return Err(Failure::run(text));
    }
    Ok(match options.fail_on {
        Some(FailOn::Fails) if fails > 0 => ExitCode::from(status::VIOLATED),
        _ => ExitCode::SUCCESS,
    })
}

/// Writes the page of a paper from the outcomes of its items.
fn page(
    options: &ReproduceOptions,
    items: &[&'static Item],
    file: &Path,
) -> Result<ExitCode, Failure> {
    let name = items.first().map_or("", |item| item.paper());
    if items.iter().any(|item| item.paper() != name) {
        return Err(Failure::usage("--page is of one paper"));
    }
    if items.iter().all(|item| item.has_tables()) {
        let text = fs::read_to_string(file);
        let text = text.map_err(|error| Failure::usage(format!("{}: {error}", file.display())))?;
        let date = tagwire_report::circumstances::date;
        let filled = tagwire_papers::fill(&text, &options.output, date);
        write(file, &filled.map_err(Failure::usage)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let (mut outcomes, mut missing) = (Vec::new(), None);
    let has_outcome = |item: &&&Item| matches!(item.needs, Needs::Real | Needs::Sim);
    for item in items.iter().filter(has_outcome) {
        let stored = options.output.join(item.name.replace('/', "-") + ".json");
        let of_sim = options
            .output
            .join(simulated::file_of(&item.name.replace('/', "-")));
        if let Ok(text) = fs::read_to_string(&of_sim) {
            outcomes.push((of_sim.display().to_string(), text));
        }
        match fs::read_to_string(&stored) {
            Ok(text) => outcomes.push((stored.display().to_string(), text)),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                missing.get_or_insert_with(|| format!("{}: {error}", stored.display()));
            }
            Err(error) => return Err(Failure::usage(format!("{}: {error}", stored.display()))),
        }
    }
    // The page names what is not stored; of a folder without any outcome it would name all.
    if let (Some(missing), true) = (missing, outcomes.is_empty()) {
        return Err(Failure::usage(missing));
    }
    let (page, folder) = (
        file.file_name().unwrap_or_default(),
        options.output.display(),
    );
    let page = page.to_string_lossy();
    let command = format!("tagwire reproduce {name} --page {page} -o {folder}");
    let date = tagwire_report::circumstances::date;
    let made = tagwire_papers::page(name, &command, &outcomes, &date).map_err(Failure::usage)?;
    write(file, &made.text)?;
    // The page names them from its own folder.
    let beside = file.with_file_name(name);
    fs::create_dir_all(&beside).map_err(|error| unwritable(&beside, &error))?;
    for plot in &made.plots {
        write(&beside.join(&plot.file), &draw::svg(plot.item, &plot.plot)?)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Measures an item and judges it. Returns what was measured, and how many runs failed, too.
fn one(
    options: &ReproduceOptions,
    item: &'static Item,
    interrupted: &AtomicUsize,
) -> Result<(Outcome, Rows, usize), Failure> {
    let stem = item.name.replace('/', "-");
    let (mut rows, mut failed) = (Rows::default(), 0);
    let this = [Build::default()];
    let builds = match &options.build[..] {
        [] => &this[..],
        builds => builds,
    };
    let runs = item.runs(&options.transport, &arrivals(options), options.quick);
    // Peers are measured with the first build.
    let started = runs.iter().flat_map(|run| {
        let count = if run.is_own { builds.len() } else { 1 };
        builds[..count].iter().map(move |build| (run, build))
    });
    let started: Vec<_> = (1..)
        .zip(started)
        .map(|(number, (run, build))| (format!("{stem}-{number}.json"), run, build))
        .collect();
    let resumes = options.resume || options.store.is_some();
    // Of each run whose results are there, how long they took.
    let mut took: Vec<Option<Took>> = vec![None; started.len()];
    for round in 0..item.rounds(options.quick) {
        for ((name, run, build), took) in started.iter().zip(&mut took) {
            let file = options.output.join(name);
            let left = resumes.then(|| results_of(&file, run)).flatten();
            if left.is_some_and(|left| launches(&left) > round) {
                took.get_or_insert(Took(None));
                continue;
            }
            let partial = file.with_extension("partial.json");
            if let Some(this) = measure(run, build, &partial, resumes, interrupted)? {
                keep(&partial, &file, took.is_some())?;
                *took = Some(took.map_or(this, |before| before.and(this)));
            } else {
                failed += 1;
            }
            check(interrupted)?;
        }
    }
    let earlier = store::earlier(&options.output.join(format!("{stem}.json")));
    let (mut runs, mut results) = (Vec::new(), Vec::new());
    let there = started.into_iter().zip(took);
    let there = there.filter_map(|(of, took)| Some((of, took?)));
    for ((name, run, build), Took(seconds)) in there {
        let file = options.output.join(&name);
        let mut attempts = 1;
        if options.store.is_some() {
            attempts = again(run, build, &file, interrupted)?;
        }
        let mut found = crate::results::read(&file)?;
        tagwire_papers::add_share(&mut found);
        let variables = run.environment.iter();
        let variables = variables.map(|(name, value)| format!("{name}={value} "));
        let command = variables.collect::<String>() + "tagwire " + &command_line(run);
        let before = earlier.iter().find(|known| known.command() == command);
        attempts = attempts.max(before.map_or(0, |known| known.attempts() + attempts - 1));
        let seconds = seconds.or_else(|| before?.seconds());
        runs.push(Ran::new(run, command, &found, attempts).that_took(seconds));
        rows.add(found, run, &build.name);
        results.push(name);
    }
    for with in &item.with {
        rows.add_other(with, &left_of(options, with)?);
    }
    let outcome = Outcome::of(item, &rows, options.quick, runs, results);
    let file = options.output.join(format!("{stem}.json"));
    let text = outcome.json();
    write(&file, &text)?;
    if let (Some(folder), 0) = (&options.store, failed) {
        let stored = store::file_of(folder, item);
        let parent = stored.parent().unwrap_or(folder);
        fs::create_dir_all(parent).map_err(|error| unwritable(parent, &error))?;
        partial::clean(parent);
        write(&stored, &text)?;
    }
    draw(&options.output, item, &stem, outcome.results())?;
    Ok((outcome, rows, failed))
}

/// Measures blocks again that other load ran beside, some times at the most; returns how often they were measured.
fn again(run: &Run, build: &Build, file: &Path, interrupted: &AtomicUsize) -> Result<u32, Failure> {
    let partial = file.with_extension("partial.json");
    for attempt in 1..ATTEMPTS {
        let text = fs::read_to_string(file).map_err(Failure::run)?;
        let results: Value = serde_json::from_str(&text).map_err(Failure::run)?;
        let Some(left) = store::without_disturbed(&results) else {
            return Ok(attempt);
        };
        write(&partial, &format!("{left:#}\n"))?;
        if measure(run, build, &partial, true, interrupted)?.is_none() {
            return Ok(attempt);
        }
        fs::rename(&partial, file).map_err(|error| unwritable(file, &error))?;
        check(interrupted)?;
    }
    Ok(ATTEMPTS)
}

/// Returns the folder of the arrivals that densities are estimated from.
fn arrivals(options: &ReproduceOptions) -> String {
    options.output.join(ASSUMED).display().to_string()
}

/// Writes these arrivals.
fn write_arrivals(options: &ReproduceOptions) -> Result<(), Failure> {
    let folder = options.output.join(ASSUMED);
    fs::create_dir_all(&folder).map_err(|error| unwritable(&folder, &error))?;
    partial::clean(&folder);
    let mut all = tagwire_papers::ARRIVALS.into_iter();
    all.try_for_each(|(name, text)| write(&folder.join(name), text))
}

const ASSUMED: &str = "assumed";

/// The rows that runs of another item have left.
fn left_of(options: &ReproduceOptions, name: &str) -> Result<Rows, Failure> {
    let arrivals = arrivals(options);
    let mut rows = Rows::default();
    for item in tagwire_papers::find(name).map_err(Failure::usage)? {
        let stem = item.name.replace('/', "-");
        let runs = item.runs(&options.transport, &arrivals, options.quick);
        for (number, run) in (1..).zip(&runs) {
            let file = options.output.join(format!("{stem}-{number}.json"));
            if results_of(&file, run).is_some() {
                rows.add(crate::results::read(&file)?, run, "");
            }
        }
    }
    Ok(rows)
}

/// Writes the page of an item's results, as `tagwire report` does, and its main plot; both with the published values that have
/// a place there.
fn draw(folder: &Path, item: &Item, stem: &str, results: &[String]) -> Result<(), Failure> {
    let files: Vec<PathBuf> = results.iter().map(|name| folder.join(name)).collect();
    if files.is_empty() {
        return Ok(());
    }
    let mut report = Report::read(&files, None, &Selection::default()).map_err(Failure::usage)?;
    let published = item.points().into_iter().map(|point| Published {
        of: point.of,
        metric: point.figure,
        size: point.size as f64,
        value: point.value,
    });
    report.add_published(&published.collect::<Vec<_>>());
    for (format, extension) in [(Format::Html, "html"), (Format::Svg, "svg")] {
        let file = folder.join(format!("{stem}.{extension}"));
        match report.write(format).map_err(Failure::usage)? {
            Written::One(page) => write(&file, &page)?,
            // The main metric's comes first.
            Written::Each(plots) => {
                if let Some((_, plot)) = plots.first() {
                    write(&file, plot)?;
                }
            }
        }
    }
    Ok(())
}

/// How long results took, in seconds; nothing where not all of them were measured at one go.
#[derive(Debug, Clone, Copy)]
struct Took(Option<f64>);

impl Took {
    /// Returns how long these took, and others behind them.
    fn and(self, more: Self) -> Self {
        Self(self.0.zip(more.0).map(|(one, other)| one + other))
    }
}

/// Runs the suite, whose results are whole in the file where it went well: then it returns how long they took. Where it `resumes`, it
/// goes on with what an interrupted run has left there, if that was under the same circumstances.
fn measure(
    run: &Run,
    build: &Build,
    file: &Path,
    resumes: bool,
    interrupted: &AtomicUsize,
) -> Result<Option<Took>, Failure> {
    let own = std::env::current_exe().map_err(Failure::run)?;
    let suite = |more: &[&str]| {
        Command::new(build.program.as_ref().unwrap_or(&own))
            .arg("bench")
            .args(&run.arguments)
            .envs(run.environment.iter().copied())
            .arg("-o")
            .arg(file)
            .args(more)
            .stdout(Stdio::null())
            .status()
            .map_err(Failure::run)
    };
    let mut ended = None;
    if resumes && results_of(file, run).is_some() {
        let went_on = suite(&["--resume"])?;
        // Another build or machine: it has said so.
        ended = Some(went_on).filter(|ended| ended.code() != Some(status::USAGE.into()));
    }
    let (ended, took) = match ended {
        Some(ended) => (ended, Took(None)),
        None => {
            let clock = Clock::default();
            let began = clock.now();
            let ended = suite(&["--overwrite"])?;
            let took = clock.now().since(began);
            (ended, Took(Some(took.as_secs_f64())))
        }
    };
    if ended.success() {
        return Ok(Some(took));
    }
    check(interrupted)?;
    // Rows with errors stand in the place of those that a library owes.
    let is_rest_measured = ended.code() == Some(status::RUN_FAILED.into())
        && run.keeps_going()
        && results_of(file, run).is_some_and(|results| has_figures(&results));
    Ok(is_rest_measured.then_some(took))
}

/// Whether any row was measured.
fn has_figures(results: &Value) -> bool {
    let rows = results["rows"].as_array();
    rows.is_some_and(|rows| rows.iter().any(|row| row["error"].is_null()))
}

/// Puts results in the place of a file, or behind those in it as another launch.
fn keep(results: &Path, file: &Path, is_more: bool) -> Result<(), Failure> {
    let of = |file: &Path| {
        let text = fs::read_to_string(file).map_err(Failure::run)?;
        serde_json::from_str::<Value>(&text).map_err(Failure::run)
    };
    if !is_more {
        return fs::rename(results, file).map_err(|error| unwritable(file, &error));
    }
    let (mut whole, mut more) = (of(file)?, of(results)?);
    let place = |results: &Value| {
        ["commit", "profile", "host"].map(|key| results["environment"].get(key).cloned())
    };
    if place(&whole) != place(&more) {
        let file = file.display();
        return Err(Failure::usage(format!(
            "{file}: it is of another build or machine: measure anew, without --resume"
        )));
    }
    let launch = launches(&whole);
    for row in more["rows"].as_array_mut().into_iter().flatten() {
        match row.get_mut("sampling") {
            Some(sampling) => sampling["launch"] = launch.into(),
            // Of version 1, which an earlier build writes.
            None => row["launch"] = launch.into(),
        }
    }
    for key in ["rows", "advice"] {
        let more = more[key].as_array_mut().map(std::mem::take);
        if let (Some(whole), Some(more)) = (whole[key].as_array_mut(), more) {
            whole.extend(more);
        }
    }
    whole["environment"]["launches"] = (launch + 1).into();
    // Of the first launch alone.
    whole["summary"] = Value::Array(Vec::new());
    write(file, &format!("{whole:#}\n"))?;
    fs::remove_file(results).map_err(|error| unwritable(results, &error))
}

/// How many launches results are of.
fn launches(results: &Value) -> u64 {
    let rows = results["rows"].as_array().into_iter().flatten();
    let launches = rows.filter_map(|row| row.get("sampling").unwrap_or(row)["launch"].as_u64());
    launches.max().map_or(0, |last| last + 1)
}

/// Ends the command where a signal has come.
fn check(interrupted: &AtomicUsize) -> Result<(), Failure> {
    match interrupted.load(Relaxed) {
        0 => Ok(()),
        signal => {
            let text = "interrupted; what was measured is kept, and --resume goes on with it";
            Err(Failure::with_status(128 + signal as u8, text))
        }
    }
}

/// Returns what a file has of the results of a run.
fn results_of(file: &Path, run: &Run) -> Option<Value> {
    // Not of a pipe, say, which would be waited for.
    let read = file.is_file().then(|| fs::read_to_string(file).ok())?;
    let results: Value = serde_json::from_str(&read?).ok()?;
    let begin = format!("{} -o ", command_line(run));
    let is_of = results["command"].as_str()?.contains(&begin);
    is_of.then_some(results)
}

fn command_line(run: &Run) -> String {
    let words: Vec<String> = run
        .arguments
        .iter()
        .map(|word| tagwire_bench::quoted(word))
        .collect();
    format!("bench {}", words.join(" "))
}

/// Counts nothing while no signal has come; then it has its number. The suite gets it too, and ends.
fn interruptions() -> Result<Arc<AtomicUsize>, Failure> {
    let interrupted = Arc::new(AtomicUsize::new(0));
    for signal in [SIGINT, SIGTERM] {
        let number = signal as usize;
        signal_hook::flag::register_usize(signal, Arc::clone(&interrupted), number)
            .map_err(Failure::run)?;
    }
    Ok(interrupted)
}

fn unwritable(file: &Path, error: &std::io::Error) -> Failure {
    let hint = match error.kind() {
        ErrorKind::NotADirectory | ErrorKind::AlreadyExists => ": it is no folder",
        _ => "",
    };
    Failure::usage(format!("{}{hint}: {error}", file.display()))
}

fn list() -> String {
    let mut out = String::new();
    for item in tagwire_papers::all() {
        let (name, figure, needs) = (&item.name, &item.figure, item.needs.word());
        let _ = writeln!(
            out,
            "{name:<24} {figure:<12} {needs:<14} {}  {}",
            item.priority, item.shows
        );
    }
    let count = |needs| {
        let all = tagwire_papers::all().iter();
        all.filter(|item| item.needs == needs).count()
    };
    let _ = writeln!(
        out,
        "\n{} items: {} can be reproduced now; the others need options of bench ({}), patterns ({}), the simulator ({}) or hardware ({}).",
        tagwire_papers::all().len(),
        count(Needs::Real),
        count(Needs::Options),
        count(Needs::Patterns),
        count(Needs::Sim),
        count(Needs::Hardware),
    );
    out
}
