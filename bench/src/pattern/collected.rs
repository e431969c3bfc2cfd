//! The rows that ranks report in tests.

use crate::environment::Used;
use crate::error::{Error, Result};
use crate::link::Message;
use crate::plan::Plan;
use crate::port::partitioned::PartitionedPort;
use crate::port::window::Windows;
use crate::record::Row;
use crate::run::{Run, Target};

/// Returns the rows that `body` reports, each with its size and nothing else that is not measured.
pub(crate) fn rows(body: impl FnOnce(&mut Target<'_>) -> Result<()>) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let row = |size| Row {
        size: size as u64,
        ..Row::default()
    };
    let mut emit = |row| {
        rows.push(row);
        Ok(())
    };
    let mut target = Target {
        row: &row,
        emit: &mut emit,
    };
    body(&mut target).map(|()| rows)
}

/// Returns the rows that a rank reports of a plan's test.
pub(crate) fn of_suite<P: PartitionedPort + Windows + Sync>(
    port: &P,
    plan: &Plan,
) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    let used = Used::default();
    let mut sink = |message| {
        if let Message::Row(row) = message {
            rows.push(*row);
        }
        Ok(())
    };
    let mut run = Run::new(port, plan, &used, &mut sink);
    run.windows = Some(port);
    crate::run::measure(&mut run)?;
    Ok(rows)
}

/// Returns the rows of all ranks, or the errors of those that failed.
pub(crate) fn of_all(results: Vec<Result<Vec<Row>>>) -> Result<Vec<Row>, Vec<Error>> {
    let (rows, errors): (Vec<_>, Vec<_>) = results.into_iter().partition(Result::is_ok);
    match errors.is_empty() {
        true => Ok(rows.into_iter().flat_map(Result::unwrap).collect()),
        false => Err(errors.into_iter().map(Result::unwrap_err).collect()),
    }
}
