//! What two ranks take for messages of one size: to and fro, or a window of them to one side that is answered.

use std::time::Duration;

use tagwire_sim::SimOptions;

use crate::error::{Error, Result};
use crate::job::{Pml, run_on};
use crate::programs::{Arguments, program};

/// Returns what round trips took, in nanoseconds, without the first, which gets in contact.
///
/// # Errors
/// When a rank does not end well.
pub fn round_trips(options: &SimOptions, pml: Pml, bytes: usize, count: u32) -> Result<Vec<f64>> {
    rounds("ping-pong", options, pml, bytes, count)
}

/// Returns what windows of 64 messages took with their acknowledgements, in nanoseconds, without the first.
///
/// # Errors
/// As [`round_trips`].
pub fn windows(options: &SimOptions, pml: Pml, bytes: usize, count: u32) -> Result<Vec<f64>> {
    rounds("stream", options, pml, bytes, count)
}

fn rounds(
    name: &'static str,
    options: &SimOptions,
    pml: Pml,
    bytes: usize,
    count: u32,
) -> Result<Vec<f64>> {
    let arguments = Arguments {
        rounds: count.saturating_add(1),
        bytes,
        compute: Duration::ZERO,
    };
    let program = program(name).ok_or(Error::Unknown(name))?;
    let outcome = run_on(pml, program, 2, options, arguments)?;
    if let Some((rank, why)) = outcome.failed.into_iter().next() {
        return Err(Error::Failed { rank, why });
    }
    let ends = outcome.rounds.iter().map(|round| round.last);
    let ends: Vec<f64> = ends
        .map(|end| end.since_start().as_picos() as f64 / 1e3)
        .collect();
    Ok(ends.windows(2).map(|two| two[1] - two[0]).collect())
}
