//! `tagwire sim`: runs a program and reports its rows and its cost.
//!
//! Rows are the same for the same options, byte for byte. What the run has cost is another text: it depends on the machine
//! that this runs on.

use std::fmt::Write as _;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use tagwire_sim::Moment;
use tagwire_sim::presets::PRESETS;

use crate::args::SimArgs;
use crate::error::Error;
use crate::job::{self, Outcome};
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
    let program = args.program().map_err(Refusal::Usage)?;
    let options = args.options().map_err(Refusal::Usage)?;
    let (began, before) = (processor_time(), memory("VmRSS:"));
    let outcome = job::run_on(
        args.pml,
        program,
        args.rank_count(),
        &options,
        args.arguments(),
    );
    // Of a job that did not end well it says most.
    if let (Some(file), Some(trace)) = (&args.picture, &options.trace) {
        let picture = trace.svg().unwrap_or_default();
        let wrong = |error| Refusal::Usage(format!("--picture {}: {error}", file.display()));
        std::fs::write(file, picture).map_err(wrong)?;
    }
    let outcome = outcome?;
    let took = processor_time().saturating_sub(began);
    let grown = memory("VmHWM:").saturating_sub(before);
    Ok(Report {
        rows: rows(args, &outcome),
        cost: cost(args, &outcome, took, grown),
        has_failed: !outcome.failed.is_empty() && args.kill.is_empty(),
    })
}

/// Returns the programs and the machines, with where each value of these comes from.
fn list() -> String {
    let mut text = String::from("programs\n");
    for program in PROGRAMS {
        let _ = writeln!(text, "  {:<10} {}", program.name, program.about);
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

/// Returns a moment in microseconds, exactly.
fn micros(moment: Moment) -> String {
    let picos = moment.since_start().as_picos();
    format!("{}.{:06}", picos / 1_000_000, picos % 1_000_000)
}

fn cost(args: &SimArgs, outcome: &Outcome, took: Duration, grown: u64) -> String {
    let seconds = took.as_secs_f64();
    format!(
        "{seconds:.3} s of processor time, {:.0} events/s, {} bytes a rank\n",
        outcome.counts.events as f64 / seconds.max(1e-9),
        grown / u64::from(args.rank_count())
    )
}

/// Returns how long this process has computed.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    Duration::new(seconds, u32::try_from(time.tv_nsec).unwrap_or_default())
}

/// Returns a figure of this process's memory in bytes (man 5 `proc_pid_status`); 0 where it cannot be read.
fn memory(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    kibibytes(&status, name).unwrap_or_default() * 1024
}

/// Returns the number of the line that begins with `name`, in KiB.
pub(crate) fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_proc_have_numbers() {
        let text = "VmPeak:\t  9 kB\nVmHWM:\t    1234 kB\n";
        assert_eq!(kibibytes(text, "VmHWM:"), Some(1234));
        assert_eq!(kibibytes(text, "VmRSS:"), None);
    }
}
