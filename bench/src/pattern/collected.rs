//! The rows that ranks report in tests.

use crate::environment::Used;
use crate::error::{Error, Result};
use crate::link::Message;
use crate::plan::Plan;
use crate::port::Endpoint;
use crate::port::window::Windows;
use crate::record::Row;
use crate::run::Run;

/// Returns the rows that `measure` reports.
pub(crate) fn rows(
    port: &dyn Endpoint,
    windows: Option<&dyn Windows>,
    plan: &Plan,
    measure: impl FnOnce(&mut Run<'_>) -> Result<()>,
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
    run.windows = windows;
    measure(&mut run)?;
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
