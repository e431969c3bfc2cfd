//! `tagwire compare`: did it get worse?
//!
//! Rows of two reports are joined by their independent variables: every key that is neither a
//! figure (its name ends in a unit) nor says how often was measured. So reports of later versions
//! with more variables compare as well. The library that a transport of ours uses is one of them only
//! where a report has several: an upgrade of a library is what a comparison is made for.

use std::io::Write as _;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};

use self::groups::Results;
use self::outcome::Comparison;
use self::rows::{Measured, Rows};
use crate::environment::differences;
use crate::error::{Error, ExitStatus, Result};
use crate::judgement::NOTABLE;
use crate::visible;

mod by;
mod groups;
mod joining;
mod outcome;
mod rows;

/// The options of `tagwire compare`.
#[derive(Debug, Clone, Args)]
pub struct CompareArgs {
    /// The earlier results, JSON or CSV
    #[arg(value_name = "BASE.json")]
    pub base: PathBuf,

    /// The later results
    #[arg(value_name = "NEW.json", required_unless_present = "by")]
    pub new: Option<PathBuf>,

    /// Compare rows that differ in this variable (transport, engine, ...) with those of its first value in the order of the
    /// command, within one file or over both; 'series' compares what the report shows as series
    #[arg(long, value_name = "VARIABLE")]
    pub by: Option<String>,

    /// With --by: compare with the rows of this value, not of the first one
    #[arg(long = "base", value_name = "VALUE", requires = "by")]
    pub base_value: Option<String>,

    /// Join rows of both files whatever these variables are
    #[arg(long, value_name = "VARIABLE", value_delimiter = ',')]
    pub ignore: Vec<String>,

    /// Exit with status 4 when a row got worse by more than this and by more than the noise, or
    /// is missing from NEW; else with 6 when rows were measured beside other load, so that it cannot be told
    #[arg(long, value_name = "PERCENT")]
    pub fail_above: Option<Threshold>,

    /// How the comparison is printed
    #[arg(long, value_enum, default_value = "text")]
    pub format: CompareFormat,
}

/// How a comparison is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
#[non_exhaustive]
pub enum CompareFormat {
    /// A line per row: its variables, both figures, their ratio and spreads, and a verdict
    #[default]
    Text,
    /// One JSON document with the same, an object per row
    Json,
}

/// A part of a figure, in percent.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Threshold(f64);

impl FromStr for Threshold {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let number = text.strip_suffix('%').unwrap_or(text);
        match number.trim().parse::<f64>() {
            Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(Self(percent)),
            _ => Err("not a percentage; write 5% or 2.5%".to_owned()),
        }
    }
}

/// Compares two reports and prints what came of it. Errors go to standard error.
#[must_use]
pub fn run_compare(args: &CompareArgs) -> ExitStatus {
    match compare_files(args) {
        Ok(status) => status,
        Err(error) => {
            let _ = writeln!(
                std::io::stderr(),
                "error: {}",
                visible::text(&error.to_string())
            );
            error.exit_status()
        }
    }
}

fn compare_files(args: &CompareArgs) -> Result<ExitStatus> {
    let base = Rows::read(&args.base)?;
    let new = args.new.as_deref().map(Rows::read).transpose()?;
    let threshold = args.fail_above.map_or(NOTABLE, |threshold| threshold.0);
    let mut comparison = match (&args.by, &new) {
        (Some(by), _) => by::compare(by, &base, new.as_ref(), args, threshold)?,
        (None, Some(new)) => compare_two(&base, new, args, threshold)?,
        (None, None) => {
            return Err(Error::Usage(
                "there is one file: name NEW.json, or a variable (--by)".to_owned(),
            ));
        }
    };
    if let Some(new) = &new {
        comparison.environment = differences(&base.environment, &new.environment);
    }
    print(&comparison, args.format)?;
    Ok(match args.fail_above {
        Some(_) if comparison.is_violated() => ExitStatus::Violated,
        Some(_) if comparison.doubtful() > 0 => ExitStatus::Untold,
        _ => ExitStatus::Good,
    })
}

/// The rows of one file with those of the other.
fn compare_two(base: &Rows, new: &Rows, args: &CompareArgs, threshold: f64) -> Result<Comparison> {
    let all: Vec<&Measured> = base.measured.iter().chain(&new.measured).collect();
    let removed = joining::removed(&all, &args.ignore)?;
    let gather = |rows: &Rows, file: Option<&PathBuf>| {
        Results::gather(rows.measured.iter(), &removed).map_err(|key| Error::Input {
            file: file.cloned().unwrap_or_default(),
            reason: format!("has several values of '{key}', which is ignored: compare --by {key}"),
        })
    };
    let mut results = gather(new, args.new.as_ref())?;
    results.failed.clone_from(&new.failed);
    let mut comparison = Comparison::of(&gather(base, Some(&args.base))?, &results, threshold);
    if comparison.rows.is_empty() {
        return Err(Error::Input {
            file: args.new.clone().unwrap_or_default(),
            reason: format!(
                "no row has its counterpart in {}: {}",
                args.base.display(),
                joining::differing(
                    &base.measured.iter().collect::<Vec<_>>(),
                    &new.measured.iter().collect::<Vec<_>>()
                )
            ),
        });
    }
    comparison.not_joined_by = removed;
    Ok(comparison)
}

fn print(comparison: &Comparison, format: CompareFormat) -> Result<()> {
    let text = match format {
        CompareFormat::Text => comparison.to_text(),
        CompareFormat::Json => {
            let text = serde_json::to_string_pretty(comparison);
            text.map_err(|error| Error::Job(error.to_string()))? + "\n"
        }
    };
    std::io::stdout()
        .write_all(text.as_bytes())
        .map_err(|source| Error::Output {
            what: "to the standard output".to_owned(),
            source,
        })
}

#[cfg(test)]
mod tests;
