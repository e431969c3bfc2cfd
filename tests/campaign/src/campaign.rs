//! Many trials, one after the other.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::plan::{Choice, Plan};
use crate::record::{Line, Record, Verdict, append, read};
use crate::trial::{self, Outcome};

/// How often a trial with something late is repeated.
const REPEATS: usize = 2;
/// How idle the processors are before that, and how long that is waited for.
const IDLE: f64 = 0.6;
const PATIENCE: Duration = Duration::from_secs(20);

/// Which trials are run, and what becomes of them.
#[derive(Debug, Clone, clap::Args)]
pub struct RunOptions {
    /// The seeds of the trials, as FROM..TO
    #[arg(long, value_name = "FROM..TO", value_parser = range)]
    pub seeds: Range<u64>,
    /// Append a line of JSON for each trial to this file, and leave out those that it has
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Begin no trial after so many seconds
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<u64>,
    #[command(flatten)]
    pub choice: Choice,
}

fn range(text: &str) -> Result<Range<u64>, String> {
    let (from, to) = text.split_once("..").ok_or("it is FROM..TO")?;
    let number = |part: &str| part.parse::<u64>().map_err(|why| why.to_string());
    Ok(number(from)?..number(to)?)
}

/// Runs trials. Returns how many finds there were.
///
/// # Errors
/// When the log cannot be read or written, or nothing fits what was chosen.
pub fn run(options: &RunOptions) -> Result<usize, String> {
    let choice = options.choice.to_string();
    let known = options
        .log
        .as_deref()
        .map(read)
        .transpose()?
        .unwrap_or_default();
    let known = known.into_iter().filter_map(|line| match line {
        Line::Trial(record) if record.choice == choice => Some(record.seed),
        _ => None,
    });
    let known: BTreeSet<u64> = known.collect();
    let deadline = options
        .seconds
        .map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let (mut finds, mut trials, mut voids) = (0, 0, 0);
    for seed in options.seeds.clone().filter(|seed| !known.contains(seed)) {
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            break;
        }
        let record = one(seed, &options.choice)?;
        match record.verdict {
            Verdict::Find => finds += 1,
            Verdict::Void => voids += 1,
            Verdict::Good | Verdict::Suspect => {}
        }
        if record.verdict != Verdict::Good {
            tell(&record);
        }
        if let Some(log) = &options.log {
            append(log, &record)?;
        }
        trials += 1;
    }
    println!("{trials} trials, {voids} of them void, {finds} finds");
    Ok(finds)
}

/// Runs one trial, and repeats it where something was late. Returns what is kept of it.
///
/// # Errors
/// When nothing fits what was chosen.
pub fn one(seed: u64, choice: &Choice) -> Result<Record, String> {
    let began = Instant::now();
    let plan = Plan::of(seed, choice)?;
    let mut record = Record {
        seed,
        choice: choice.to_string(),
        ground: plan.ground.name().to_owned(),
        program: plan.program.name().to_owned(),
        ranks: plan.job.ranks,
        blows: plan.job.blows.iter().map(ToString::to_string).collect(),
        verdict: Verdict::Good,
        why: Vec::new(),
        said: Vec::new(),
        checked: 0,
        silence_ms: 0,
        notice_ms: 0,
        wall_ms: 0,
    };
    match trial::run(&plan) {
        Ok(outcome) => {
            record.verdict = judge(&plan, &outcome);
            record.why = outcome
                .findings
                .iter()
                .map(|finding| finding.text.clone())
                .collect();
            record.said = outcome.said;
            record.checked = outcome.checked;
            record.silence_ms = outcome.times.silence.as_millis() as u64;
            record.notice_ms = outcome.times.notice.as_millis() as u64;
        }
        Err(why) => {
            record.verdict = Verdict::Void;
            record.why = vec![why];
        }
    }
    record.wall_ms = began.elapsed().as_millis() as u64;
    Ok(record)
}

/// Returns what a trial counts as. One in which things were late alone is repeated on an idle machine.
fn judge(plan: &Plan, outcome: &Outcome) -> Verdict {
    if outcome.findings.is_empty() {
        return Verdict::Good;
    }
    if outcome.findings.iter().any(|finding| !finding.late) {
        return Verdict::Find;
    }
    for _ in 0..REPEATS {
        let is_idle = wait_for_idle_processors();
        match trial::run(plan) {
            Ok(again) if again.findings.is_empty() => {}
            Ok(again) if again.findings.iter().all(|finding| finding.late) && !is_idle => {}
            _ => return Verdict::Find,
        }
    }
    Verdict::Suspect
}

/// Waits until the processors have little to do; not for ever. Returns whether they have.
fn wait_for_idle_processors() -> bool {
    let deadline = Instant::now() + PATIENCE;
    let mut last = processors();
    while Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(500));
        let now = processors();
        let (idle, all) = (now.0.saturating_sub(last.0), now.1.saturating_sub(last.1));
        if idle as f64 >= IDLE * all as f64 {
            return true;
        }
        last = now;
    }
    false
}

/// Returns for how long the processors were idle, and were there, by proc_stat(5).
fn processors() -> (u64, u64) {
    let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    let first = text.lines().next().unwrap_or_default();
    let ticks: Vec<u64> = first
        .split_whitespace()
        .skip(1)
        .map_while(|word| word.parse().ok())
        .collect();
    let idle = ticks.iter().skip(3).take(2).sum();
    (idle, ticks.iter().take(8).sum())
}

/// Says what a trial has found, and how it is run again.
pub fn tell(record: &Record) {
    let Record {
        seed,
        choice,
        ground,
        program,
        ranks,
        ..
    } = record;
    println!(
        "{:?}: {program} of {ranks} ranks on {ground}, {}",
        record.verdict,
        record.blows.join(" ")
    );
    println!("  again: cargo run -p tagwire-campaign -- trial {seed}{choice}");
    for line in record.why.iter().chain(record.said.iter().take(20)) {
        println!("  {line}");
    }
}
