//! `tagwire sim`: runs a program and reports its rows and its cost.
//!
//! Rows are the same for the same options, byte for byte. What the run has cost is another text: it depends on the machine
//! that this runs on.

use std::fmt::Write as _;
use std::time::Duration;

use tagwire_sim::presets::PRESETS;
use tagwire_sim::{Counts, Moment, SimOptions};

use crate::apps::{self, APPS};
use crate::args::SimArgs;
use crate::cost::{memory, processor_time};
use crate::error::Error;
use crate::job::{self, Outcome};
use crate::profile::{Profile, RankProfile};
use crate::programs::PROGRAMS;

/// What is to be printed.
#[derive(Debug)]
pub struct Report {
    /// For standard output.
    pub rows: String,
    /// For standard error; empty where nothing was run.
    pub cost: String,
    /// Ranks have ended early that nothing was to happen to.
    pub has_failed: bool,
}

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// What is asked for cannot be.
    #[error("{0}")]
    Usage(String),
    /// It did not work.
    #[error(transparent)]
    Run(#[from] Error),
}

/// The name that asks for what there is.
const LIST: &str = "list";

/// Does what the options ask for.
///
/// # Errors
/// When they ask for what there is not, or the job cannot be run.
pub fn simulate(args: &SimArgs) -> Result<Report, Refusal> {
    if args.program == LIST {
        return Ok(Report {
            rows: list(),
            cost: String::new(),
            has_failed: false,
        });
    }
    let (began, before) = (processor_time(), memory("VmRSS:"));
    if let Some((app, case)) = args.app() {
        let options = args.options().map_err(Refusal::Usage)?;
        let profile = apps::run(&options, args.pml, app, case);
        leave_picture(args, &options)?;
        let profile = profile?;
        let took = processor_time().saturating_sub(began);
        return Ok(Report {
            rows: profiled(args, &profile),
            cost: cost(
                args,
                profile.counts,
                took,
                memory("VmHWM:").saturating_sub(before),
            ),
            has_failed: false,
        });
    }
    let program = args.program().map_err(Refusal::Usage)?;
    let options = args.options().map_err(Refusal::Usage)?;
    let outcome = job::run_on(
        args.pml,
        program,
        args.rank_count(),
        &options,
        args.arguments(),
    );
    leave_picture(args, &options)?;
    let outcome = outcome?;
    let took = processor_time().saturating_sub(began);
    let grown = memory("VmHWM:").saturating_sub(before);
    Ok(Report {
        rows: rows(args, &outcome),
        cost: cost(args, outcome.counts, took, grown),
        has_failed: !outcome.failed.is_empty() && args.kill.is_empty(),
    })
}

/// Leaves the picture that is asked for. Of a job that did not end well it says most.
fn leave_picture(args: &SimArgs, options: &SimOptions) -> Result<(), Refusal> {
    if let (Some(file), Some(trace)) = (&args.picture, &options.trace) {
        let picture = trace.svg().unwrap_or_default();
        let wrong = |error| Refusal::Usage(format!("--picture {}: {error}", file.display()));
        std::fs::write(file, picture).map_err(wrong)?;
    }
    Ok(())
}

/// Returns the programs and the machines, with where each value of these comes from.
fn list() -> String {
    let mut text = String::from("programs\n");
    for program in PROGRAMS {
        let _ = writeln!(text, "  {:<10} {}", program.name, program.about);
    }
    text.push_str("applications\n");
    for app in APPS {
        let _ = writeln!(text, "  {:<10} {}", app.name, app.about);
    }
    text.push_str("machines\n");
    for preset in PRESETS {
        let _ = writeln!(text, "  {:<10} {}", preset.name, preset.about);
        for value in preset.values {
            let source = value.source.name();
            let _ = writeln!(text, "    {:<10} {source:<8} {}", value.field, value.note);
        }
    }
    text
}

fn rows(args: &SimArgs, outcome: &Outcome) -> String {
    let mut text = format!(
        "# {} on {}: {} ranks, {} rounds, {} bytes, seed {}\n",
        args.program,
        args.preset,
        args.rank_count(),
        args.rounds,
        args.bytes,
        args.seed
    );
    text.push_str("# round, the first rank has ended it, the last has, in us\n");
    for (number, round) in outcome.rounds.iter().enumerate() {
        let (first, last) = (micros(round.first), micros(round.last));
        let _ = writeln!(text, "{number:>7} {first:>16} {last:>16}");
    }
    for (rank, why) in &outcome.failed {
        let _ = writeln!(text, "# rank {rank} ended early: {why}");
    }
    let counts = outcome.counts;
    let _ = writeln!(
        text,
        "# {} events, {} messages of {} bytes, {} us",
        counts.events,
        counts.messages,
        counts.bytes,
        micros(outcome.end)
    );
    text
}

/// Returns the profile of a skeleton: what ranks have spent in the library, and their messages.
fn profiled(args: &SimArgs, profile: &Profile) -> String {
    let mut text = format!(
        "# {} on {}: {} ranks, {} steps, seed {}\n# of ranks: mean, least, greatest\n",
        args.program,
        args.preset,
        profile.ranks.len(),
        args.rounds,
        args.seed
    );
    for (name, [mean, least, most]) in [
        ("run time, us", profile.spread(|rank| rank.run as f64 / 1e3)),
        ("in the library, %", profile.spread(RankProfile::library)),
        ("short messages", profile.spread(|rank| rank.short() as f64)),
        ("long messages", profile.spread(|rank| rank.long as f64)),
        ("dropped", profile.spread(|rank| rank.dropped as f64)),
        (
            "dropped, % of long",
            profile.spread(RankProfile::dropped_share),
        ),
    ] {
        let _ = writeln!(text, "{name:<20} {mean:>14.2} {least:>14.2} {most:>14.2}");
    }
    text.push_str("# routine, % of the run time\n");
    for (routine, part) in profile.routines() {
        let _ = writeln!(text, "{routine:<20} {part:>14.2}");
    }
    let (counts, end) = (profile.counts, micros(profile.end));
    let (events, messages, bytes) = (counts.events, counts.messages, counts.bytes);
    let _ = writeln!(
        text,
        "# {events} events, {messages} messages of {bytes} bytes, {end} us"
    );
    text
}

/// Returns a moment in microseconds, exactly.
fn micros(moment: Moment) -> String {
    let picos = moment.since_start().as_picos();
    format!("{}.{:06}", picos / 1_000_000, picos % 1_000_000)
}

fn cost(args: &SimArgs, counts: Counts, took: Duration, grown: u64) -> String {
    let seconds = took.as_secs_f64();
    format!(
        "{seconds:.3} s of processor time, {:.0} events/s, {} bytes a rank\n",
        counts.events as f64 / seconds.max(1e-9),
        grown / u64::from(args.rank_count())
    )
}
