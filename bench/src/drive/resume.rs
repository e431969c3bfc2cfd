//! What an interrupted run has left in its file, for `--resume`.
//!
//! The rows of a file lie in the order in which they were measured: jobs one after the other, sizes one after the other within a
//! job. So a size is whole where a later one of its job has rows, and a job where rows of another follow. Only of the last job,
//! and of jobs that failed, the last size is in question: it counts where it has as many rows as a size can have.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::cases::Queue;
use crate::document::document;
use crate::environment::{Environment, Used};
use crate::error::{Error, Result};
use crate::record::{Row, SCHEMA};
use crate::report::Report;

/// What a row's job is told by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Key {
    pub transport: String,
    pub library: Option<String>,
    pub launch: Option<u32>,
    /// Where it is one of several over its transport.
    pub unit: Option<String>,
    pub progress: Option<String>,
    pub queue: Queue,
}

/// How the jobs of a run and their rows belong together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape<'a> {
    pub sizes: &'a [u64],
    /// How many rows a size of a job can have.
    pub most: usize,
    /// Over our own transports one job has the rows of all units, so many.
    pub sessions: Option<usize>,
    /// Whether jobs differ by what lies in the queues or by engine, and whether by engine.
    pub has_queues: bool,
    pub has_engines: bool,
}

impl Shape<'_> {
    fn key(&self, row: &Row) -> Key {
        let is_one = self.sessions.is_some() && !row.is_foreign();
        Key {
            transport: row.series.transport.clone(),
            library: row.series.library.clone(),
            launch: row.sampling.launch,
            unit: row.series.unit.clone().filter(|_| !is_one),
            progress: row.series.progress.clone(),
            queue: Queue::of_row(row, self.has_queues, self.has_engines),
        }
    }

    fn most(&self, row: &Row) -> usize {
        match self.sessions {
            Some(units) if !row.is_foreign() => units,
            _ => self.most,
        }
    }
}

/// The results of a file.
#[derive(Debug)]
pub(super) struct Earlier {
    file: PathBuf,
    report: Report,
}

/// What need not be measured again.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub rows: Vec<Row>,
    /// Which jobs have rows, and from which place in the list of sizes on each lacks them; `None` where it is whole.
    jobs: Vec<(Key, Option<usize>)>,
    /// What carried the messages, in the order of the command.
    transports: Vec<Used>,
}

impl Earlier {
    /// Reads a file; `None` where there is none, or a pipe or a device, which keeps nothing.
    ///
    /// # Errors
    /// [`Error::Input`] where it holds no results of `bench`.
    pub(super) fn read(file: &Path) -> Result<Option<Self>> {
        let input = |reason: String| Error::Input {
            file: file.to_path_buf(),
            reason,
        };
        if fs::metadata(file).is_ok_and(|known| !known.is_file()) {
            return Ok(None);
        }
        let bytes = match fs::read(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            read => read.map_err(|error| input(error.to_string()))?,
        };
        let found = document(&bytes).map_err(input)?;
        let schema = found.get("schema").and_then(Value::as_str);
        if let Some(other) = schema.filter(|schema| *schema != SCHEMA) {
            return Err(input(format!(
                "is of the version '{other}', and --resume goes on with '{SCHEMA}'; measure anew without, or into another file"
            )));
        }
        // Not by way of the document, whose maps have lost their order.
        let report: Report = serde_json::from_slice(&bytes).map_err(|error| {
            input(format!(
                "has no whole results of this version ({SCHEMA}): {error}"
            ))
        })?;
        Ok(Some(Self {
            file: file.to_path_buf(),
            report,
        }))
    }

    /// Returns where it lies.
    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    /// Whether it is of this command.
    pub(super) fn is_of(&self, command: &str) -> bool {
        self.report.command == command
    }

    /// Returns the seed by which the order of jobs was drawn.
    pub(super) const fn seed(&self) -> u64 {
        self.report.environment.seed
    }

    /// Refuses what cannot stand in one file with what was measured: another command, or other circumstances.
    ///
    /// # Errors
    /// [`Error::Input`], with what differs.
    pub(super) fn check(&self, command: &str, now: &Environment) -> Result<()> {
        let refused = |reason: String| {
            let reason = format!(
                "{reason}: --resume cannot go on with it; measure anew without, or into another file"
            );
            Err(Error::Input {
                file: self.file.clone(),
                reason,
            })
        };
        if self.report.command != command {
            return refused(format!(
                "is of another command, '{}', and this one is '{command}'",
                self.report.command
            ));
        }
        let differing = differing(&self.report.environment, now)?;
        if !differing.is_empty() {
            return refused(format!("was measured elsewhere: {}", differing.join("; ")));
        }
        Ok(())
    }

    /// Returns what counts of it, and its environment.
    pub(super) fn kept(self, shape: Shape<'_>) -> (Kept, Environment) {
        let (failed, mut rows): (Vec<Row>, Vec<Row>) =
            self.report.rows.into_iter().partition(is_failed);
        let key = |row: &Row| shape.key(row);
        let mut doubtful: Vec<Key> = failed.iter().map(key).collect();
        doubtful.extend(rows.last().map(key));
        let mut jobs: Vec<(Key, Option<usize>)> = Vec::new();
        for row in &rows {
            let own = key(row);
            if !jobs.iter().any(|(known, _)| *known == own) {
                jobs.push((own, None));
            }
        }
        for (job, from) in &mut jobs {
            if !doubtful.contains(job) {
                continue;
            }
            let own = |row: &&Row| key(row) == *job;
            let Some(last) = rows.iter().rfind(own) else {
                continue;
            };
            let (size, most) = (last.size, shape.most(last));
            let is_last = |row: &Row| own(&row) && row.size == size;
            let place = shape.sizes.iter().position(|known| *known == size);
            let place = place.unwrap_or(0);
            if rows.iter().filter(|row| is_last(row)).count() >= most {
                *from = Some(place + 1);
            } else {
                *from = Some(place);
                rows.retain(|row| !is_last(row));
            }
        }
        let transports = self.report.environment.transports.clone();
        let kept = Kept {
            rows,
            jobs,
            transports,
        };
        (kept, self.report.environment)
    }
}

/// Whether a row is left of a job that failed. One that was measured, and whose figure means nothing, is not.
const fn is_failed(row: &Row) -> bool {
    row.error.is_some() && row.sampling.iterations == 0
}

impl Kept {
    /// Returns what carried the messages, in the order of the command.
    pub(super) fn transports(&self) -> &[Used] {
        &self.transports
    }

    /// Returns the sizes that a job lacks.
    pub(super) fn lacking(&self, job: &Key, sizes: &[u64]) -> Vec<u64> {
        let known = self.jobs.iter().find(|(known, _)| known == job);
        match known {
            None => sizes.to_vec(),
            Some((_, None)) => Vec::new(),
            Some((_, Some(from))) => sizes[(*from).min(sizes.len())..].to_vec(),
        }
    }
}

/// What differs from run to run on the same machine with the same build.
const OF_EACH_RUN: [&str; 4] = ["started_unix_s", "clock_cost_ns", "seed", "transports"];

/// The circumstances that two runs do not share, each with both values.
fn differing(then: &Environment, now: &Environment) -> Result<Vec<String>> {
    let map = |environment: &Environment| -> Result<Map<String, Value>> {
        match serde_json::to_value(environment) {
            Ok(Value::Object(map)) => Ok(map),
            Ok(_) => Ok(Map::new()),
            Err(error) => Err(Error::Job(error.to_string())),
        }
    };
    let (then, now) = (map(then)?, map(now)?);
    let differs = |key: &&String| then.get(*key) != now.get(*key);
    let keys = then
        .keys()
        .chain(now.keys().filter(|key| !then.contains_key(*key)));
    let keys = keys.filter(|key| !OF_EACH_RUN.contains(&key.as_str()));
    let told = |map: &Map<String, Value>, key: &String| {
        map.get(key)
            .map_or_else(|| "not told".to_owned(), Value::to_string)
    };
    let differing = keys.filter(differs).map(|key| {
        let (then, now) = (told(&then, key), told(&now, key));
        format!("{key} was {then} and is {now}")
    });
    Ok(differing.collect())
}

/// Refuses a job that uses something else than it did before the interruption.
///
/// # Errors
/// [`Error::Usage`], with what differs.
pub(super) fn check_used(then: &Used, now: &Used) -> Result<()> {
    let of = |used: &Used| {
        (
            used.library.clone(),
            used.provider.clone(),
            used.engine.clone(),
        )
    };
    // A job that had not begun is not known.
    if then.ranks == 0 || of(then) == of(now) {
        return Ok(());
    }
    let told = |used: &Used| {
        let parts = [&used.library, &used.provider, &used.engine];
        let parts: Vec<&str> = parts.into_iter().flatten().map(String::as_str).collect();
        parts.join(", ")
    };
    Err(Error::Usage(format!(
        "{} was measured over '{}', and is '{}' now: --resume cannot go on with it",
        now.transport,
        told(then),
        told(now)
    )))
}

#[cfg(test)]
mod tests;
