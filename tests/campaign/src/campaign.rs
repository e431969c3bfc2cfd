//! Many trials, one after the other.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::deadline::Deadline;
use crate::idle::wait_for_idle_processors;
use crate::oracle::Finding;
use crate::origin::Origin;
use crate::plan::{Choice, Plan};
use crate::record::{Again, Line, Record, Repeat, Verdict, append, read};
use crate::trial;

/// How often a trial with something late is repeated where nobody says it.
pub const REPEATS: usize = 2;

/// Which trials are run, and what becomes of them.
#[derive(Debug, Clone, clap::Args)]
pub struct RunOptions {
    /// The seeds of the trials, as FROM..TO
    #[arg(long, value_name = "FROM..TO", value_parser = range)]
    pub seeds: Range<u64>,
    /// Append a line of JSON for each trial to this file, and leave out those that it has of this build on this machine
    #[arg(long, value_name = "FILE")]
    pub log: Option<PathBuf>,
    /// Begin no trial after so many seconds
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<u64>,
    /// Repeat a trial in which something was late so often
    #[arg(long, default_value_t = REPEATS, value_name = "TIMES")]
    pub repeats: usize,
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
    let known = match &options.log {
        Some(log) => trials_of(&read(log)?, &options.choice),
        None => BTreeMap::new(),
    };
    let deadline = Deadline::after(options.seconds);
    let (mut finds, mut trials, mut voids) = (0, 0, 0);
    let fresh = |seed: &u64| !known.contains_key(seed);
    for seed in options.seeds.clone().filter(fresh) {
        if deadline.is_over() {
            break;
        }
        let record = logged(
            seed,
            &options.choice,
            options.repeats,
            options.log.as_deref(),
        )?;
        match record.verdict {
            Verdict::Find => finds += 1,
            Verdict::Void => voids += 1,
            Verdict::Good | Verdict::Suspect => {}
        }
        trials += 1;
    }
    println!("{trials} trials, {voids} of them void, {finds} finds");
    Ok(finds)
}

/// Returns the trials of a choice that this build has run on this machine, by their seeds.
pub fn trials_of(lines: &[Line], choice: &Choice) -> BTreeMap<u64, Record> {
    let (origin, choice) = (Origin::here(), choice.to_string());
    let trials = lines.iter().filter_map(|line| match line {
        Line::Trial(record) if record.origin == origin && record.choice == choice => {
            Some((record.seed, (**record).clone()))
        }
        _ => None,
    });
    trials.collect()
}

/// Runs one trial, says what is not good, and appends it to a log.
///
/// # Errors
/// When nothing fits what was chosen, or the log cannot be written.
pub fn logged(
    seed: u64,
    choice: &Choice,
    repeats: usize,
    log: Option<&Path>,
) -> Result<Record, String> {
    let record = one(seed, choice, repeats)?;
    if record.verdict != Verdict::Good {
        tell(&record);
    }
    if let Some(log) = log {
        append(log, &record)?;
    }
    Ok(record)
}

/// Runs one trial, and repeats it so often at most where something was late. Returns what is kept of it.
///
/// # Errors
/// When nothing fits what was chosen.
pub fn one(seed: u64, choice: &Choice, repeats: usize) -> Result<Record, String> {
    let began = Instant::now();
    let plan = Plan::of(seed, choice)?;
    let mut record = Record {
        origin: Origin::here(),
        seed,
        choice: choice.to_string(),
        ground: plan.ground.name().to_owned(),
        program: plan.program.name().to_owned(),
        ranks: plan.job.ranks,
        blows: plan.job.blows.iter().map(ToString::to_string).collect(),
        verdict: Verdict::Good,
        why: Vec::new(),
        repeats: Vec::new(),
        said: Vec::new(),
        checked: 0,
        silence_ms: 0,
        stall_ms: None,
        notice_ms: 0,
        wall_ms: 0,
    };
    match trial::run(&plan) {
        Ok(outcome) => {
            let texts = |findings: &[Finding]| -> Vec<String> {
                findings
                    .iter()
                    .map(|finding| finding.text.clone())
                    .collect()
            };
            record.why = texts(&outcome.findings);
            record.verdict = verdict(&outcome.findings);
            if record.verdict == Verdict::Suspect {
                let repeats = repeat(&plan, repeats);
                record.repeats = repeats.iter().map(|(repeat, _)| *repeat).collect();
                record.verdict = of_repeats(&record.repeats);
                let again = repeats.iter().flat_map(|(_, findings)| texts(findings));
                record
                    .why
                    .extend(again.map(|text| format!("again: {text}")));
            }
            record.said = outcome.said;
            record.checked = outcome.checked;
            record.silence_ms = outcome.times.silence.as_millis() as u64;
            record.stall_ms = Some(outcome.times.stall.as_millis() as u64);
            record.notice_ms = outcome.times.notice.as_millis() as u64;
        }
        Err(why) => {
            record.verdict = match plan.runs_everywhere() {
                true => Verdict::Find,
                false => Verdict::Void,
            };
            record.why = vec![why];
        }
    }
    record.wall_ms = began.elapsed().as_millis() as u64;
    Ok(record)
}

/// Returns what a trial counts as by itself.
fn verdict(findings: &[Finding]) -> Verdict {
    if findings.is_empty() {
        return Verdict::Good;
    }
    match findings.iter().all(|finding| finding.late) {
        true => Verdict::Suspect,
        false => Verdict::Find,
    }
}

/// Repeats a trial in which something was late, on idle processors where they become idle. Ends once it is a find.
fn repeat(plan: &Plan, times: usize) -> Vec<(Repeat, Vec<Finding>)> {
    let mut repeats = Vec::new();
    for _ in 0..times {
        let idle = wait_for_idle_processors();
        let findings = trial::run(plan).map(|outcome| outcome.findings);
        let again = match findings.as_deref().map(verdict) {
            Ok(Verdict::Good) => Again::Good,
            Ok(Verdict::Suspect) => Again::Late,
            Ok(_) => Again::Wrong,
            Err(_) => Again::Void,
        };
        repeats.push((Repeat { again, idle }, findings.unwrap_or_default()));
        let done: Vec<Repeat> = repeats.iter().map(|(repeat, _)| *repeat).collect();
        if of_repeats(&done) == Verdict::Find {
            break;
        }
    }
    repeats
}

/// Returns what a late trial counts as after its repetitions: what is late beside other load alone remains a suspect.
fn of_repeats(repeats: &[Repeat]) -> Verdict {
    let is_find =
        |one: &Repeat| one.again == Again::Wrong || (one.again == Again::Late && one.idle);
    match repeats.iter().any(is_find) {
        true => Verdict::Find,
        false => Verdict::Suspect,
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Standing;

    #[test]
    fn known_trials_are_of_this_build_and_machine() {
        let choice = Choice {
            ground: Some("shm".to_owned()),
            ..Choice::default()
        };
        let record = crate::record::tests::record();
        let line = |change: &dyn Fn(&mut Record)| {
            let mut record = record.clone();
            record.choice = choice.to_string();
            change(&mut record);
            // As it is read from a log.
            serde_json::from_str(&serde_json::to_string(&record).unwrap()).unwrap()
        };
        let lines: Vec<Line> = vec![
            line(&|record| record.seed = 1),
            line(&|record| (record.seed, record.choice) = (2, String::new())),
            line(&|record| (record.seed, record.origin.revision) = (3, "another".to_owned())),
            line(&|record| (record.seed, record.origin.machine) = (4, "another".to_owned())),
        ];
        let known = trials_of(&lines, &choice);
        assert_eq!(known.into_keys().collect::<Vec<_>>(), [1]);
    }

    #[test]
    fn suspects_are_told_apart() {
        let repeat = |again, idle| Repeat { again, idle };
        let of = |repeats: &[Repeat]| {
            let mut record = crate::record::tests::record();
            record.repeats = repeats.to_vec();
            (of_repeats(repeats), record.standing())
        };
        let good = |idle| repeat(Again::Good, idle);
        let late = |idle| repeat(Again::Late, idle);
        for (repeats, standing) in [
            (&[good(true), good(true)][..], Standing::GoodAlone),
            (&[good(true), good(false)], Standing::GoodBesideLoad),
            (&[late(false), good(true)], Standing::LateBesideLoad),
            (&[repeat(Again::Void, true)], Standing::NotRepeated),
            (&[], Standing::NotRepeated),
        ] {
            assert_eq!(of(repeats), (Verdict::Suspect, standing));
        }
        for repeats in [
            [good(false), late(true)],
            [good(true), repeat(Again::Wrong, false)],
        ] {
            assert_eq!(of(&repeats).0, Verdict::Find);
        }
    }
}
