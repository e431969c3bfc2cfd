//! One trial: a job is started, struck, told to end, and judged with what it has left.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::away;
use crate::disturbances;
use crate::events::Word;
use crate::grounds;
use crate::job::Job;
use crate::leftovers::{Before, PATIENCE};
use crate::oracle::{Finding, Seen, Struck, Times};
use crate::plan::Plan;

/// How long ranks have until all have a process.
const STARTING: Duration = Duration::from_secs(20);
/// How long they have to join.
const JOINING: Duration = Duration::from_secs(5);
/// How long ranks run on after the last blow.
const AFTER: Duration = Duration::from_millis(60);
/// How long they have where anything may be missing.
const WAITING: Duration = Duration::from_millis(800);
/// How long they have to end: past it they hang.
const ENDING: Duration = Duration::from_secs(25);

/// What became of a trial.
#[derive(Debug, Default)]
pub struct Outcome {
    /// What is not as it must be.
    pub findings: Vec<Finding>,
    /// How long things took.
    pub times: Times,
    /// How many messages and operations were checked.
    pub checked: u64,
    /// The last lines that nobody understands, where there are findings.
    pub said: Vec<String>,
}

/// A moment of a trial.
struct Act {
    at: Duration,
    blow: usize,
    is_end: bool,
}

/// Runs a trial.
///
/// # Errors
/// When it cannot be run here: it says nothing about the program.
pub fn run(plan: &Plan) -> Result<Outcome, String> {
    if let Some(why) = grounds::why_not(plan.ground).or_else(|| plan.program.why_not()) {
        return Err(why);
    }
    away::watch();
    let site = plan.ground.site()?;
    let folder = tempfile::tempdir().map_err(|why| format!("a folder: {why}"))?;
    let mark = format!("{}-{}", plan.job.seed, std::process::id());
    let before = Before::look();
    let mut job = Job::start(&plan.job, site, &mark, folder.path())?;
    let ranks = plan.job.ranks as usize;
    if !job.hear(STARTING, |job| job.processes() == ranks) {
        return Err(format!("{plan}: the ranks do not start: {:?}", job.others));
    }
    // One in four is struck while its ranks join.
    if !plan.job.seed.is_multiple_of(4) {
        job.hear(JOINING, |job| job.joined() == ranks);
    }
    let struck = strike(plan, &mut job)?;
    job.tell_to_end()?;
    let ended = end(plan, &mut job);
    let seen = Seen {
        plan,
        events: &job.events,
        struck: &struck,
        away: &away::spans(),
        ended,
    };
    let (mut findings, times) = seen.judge();
    let checked = job.events.iter().filter_map(|event| match event.word {
        Word::Closing(checked) => Some(checked),
        _ => None,
    });
    let checked = checked.sum();
    let said = std::mem::take(&mut job.others);
    drop(job);
    let left = before.left(&mark, folder.path(), PATIENCE);
    findings.extend(left.into_iter().filter(|_| ended));
    let said = if findings.is_empty() {
        Vec::new()
    } else {
        said
    };
    Ok(Outcome {
        findings,
        times,
        checked,
        said,
    })
}

/// Waits for the end of a job. Returns whether it has ended by itself, or as it may.
fn end(plan: &Plan, job: &mut Job) -> bool {
    if !plan.anything_goes() {
        let ended = job.finish(ENDING + plan.program.takes(plan.job.flood));
        if !ended {
            job.ask();
        }
        return ended;
    }
    // Who waits for what nobody sends waits for ever.
    if job.finish(WAITING) {
        return true;
    }
    job.signal_launchers(Signal::TERM);
    job.finish(ENDING)
}

/// Strikes all blows, each at its time.
fn strike(plan: &Plan, job: &mut Job) -> Result<Vec<Struck>, String> {
    let begin = Instant::now();
    let mut acts = Vec::new();
    for (number, blow) in plan.job.blows.iter().enumerate() {
        acts.push(Act {
            at: blow.at,
            blow: number,
            is_end: false,
        });
        acts.push(Act {
            at: blow.at + blow.lasts,
            blow: number,
            is_end: true,
        });
    }
    acts.sort_by_key(|act| act.at);
    let mut struck = Vec::new();
    for act in acts {
        job.hear_until(begin + act.at);
        let blow = &plan.job.blows[act.blow];
        let disturbance = disturbances::of(blow);
        let now = Instant::now();
        if act.is_end {
            disturbance.end(blow, job)?;
            let ended = struck
                .iter_mut()
                .find(|struck: &&mut Struck| struck.blow == act.blow);
            // What it has set going after a pause is not there at once.
            ended
                .into_iter()
                .for_each(|struck| struck.to = Instant::now());
        } else {
            disturbance.begin(blow, job)?;
            struck.push(Struck {
                blow: act.blow,
                from: now,
                to: now,
            });
        }
    }
    job.hear_until(Instant::now() + AFTER);
    Ok(struck)
}
