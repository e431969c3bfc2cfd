//! What comes of a run: rows as they arrive, and their summary.

use serde::{Deserialize, Serialize};

use self::advice::Advice;
use crate::environment::{Environment, Used};
use crate::error::ExitStatus;
use crate::line_transfer::{BEFORE, Placing};
use crate::load::{OTHERS, SIBLINGS, WAIT};
use crate::profile::Profile;
use crate::record::{FIRST_BLOCK, Figures, Quantity, Row, SCHEMA};
use crate::stats::Summary;
use crate::suite::TestName;
use crate::warnings::{Measurements, Seen, Warning};

pub(crate) mod advice;
pub(crate) mod csv;
pub(crate) mod file;
pub(crate) mod output;
mod pace;
#[cfg(test)]
pub(crate) mod tests;
pub(crate) mod text;

/// A run, as it is written to JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// [`SCHEMA`].
    pub schema: String,
    /// The test's name.
    pub test: String,
    /// The command, as it was typed.
    pub command: String,
    /// The circumstances.
    pub environment: Environment,
    /// One for each size, series and launch, in the order in which they came.
    pub rows: Vec<Row>,
    /// One for each size and series: medians over launches.
    pub summary: Vec<Row>,
    /// With `--profile`: one for each rank and launch.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub profiles: Vec<Profile>,
    /// With `--advise`: one for each size and transport.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub advice: Vec<Advice>,
    /// What makes the figures doubtful.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

impl Report {
    /// A report without rows.
    pub(crate) fn new(test: TestName, command: String, environment: Environment) -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            test: test.name.to_owned(),
            command,
            environment,
            rows: Vec::new(),
            summary: Vec::new(),
            profiles: Vec::new(),
            advice: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// Adds a row. The summary has it once it is [made](Self::sum_up).
    pub(crate) fn add(&mut self, row: Row) {
        self.rows.push(row);
        crate::concurrent::pair(&self.test, &mut self.rows);
    }

    /// Brings the summary up to date.
    pub(crate) fn sum_up(&mut self) {
        self.summary = self.summarize();
    }

    /// Adds a figure to the measured rows from `first` on, as [`add`](Self::add) does.
    pub(crate) fn label(&mut self, first: usize, name: &str, value: f64) {
        for row in self.rows.iter_mut().skip(first) {
            if row.error.is_none() {
                row.figures.set(name, value);
            }
        }
    }

    /// Returns how the ranks' CPUs were placed to each other for most of the measured rows, and how many rows say otherwise or both.
    pub(crate) fn placing(&self) -> Option<(Placing, usize)> {
        let known = |row: &&Row| row.figures.named(BEFORE).is_some();
        let rows: Vec<&Row> = self.measured().filter(known).collect();
        let count = |placing| {
            let fits = |row: &&&Row| Placing::of_row(row) == Some(placing);
            rows.iter().filter(fits).count()
        };
        let all = Placing::ALL.map(|placing| (count(placing), placing));
        let (most, placing) = all.into_iter().max_by_key(|(count, _)| *count)?;
        (most != 0).then_some((placing, rows.len() - most))
    }

    /// Takes the rows of an earlier part of the same run.
    pub(crate) fn restore(&mut self, rows: Vec<Row>) {
        self.rows = rows;
    }

    /// Adds a rank's profile, in its place: by launch, then by rank.
    pub(crate) fn add_profile(&mut self, profile: Profile) {
        let place = |profile: &Profile| (profile.launch, profile.transport.clone(), profile.rank);
        let behind = place(&profile);
        let at = self
            .profiles
            .partition_point(|known| place(known) <= behind);
        self.profiles.insert(at, profile);
    }

    /// The rows that have figures.
    pub(crate) fn measured(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| row.error.is_none())
    }

    /// Returns how a run ends that went well: with nothing to be told where no row has a figure.
    pub(crate) fn status(&self) -> ExitStatus {
        match self.rows.is_empty() || self.measured().next().is_some() {
            true => ExitStatus::Good,
            false => ExitStatus::Untold,
        }
    }

    /// What the warnings follow from, where the command can start jobs `again`.
    pub(crate) fn measurements(&self, again: bool) -> Measurements {
        let environment = &self.environment;
        let seen = |row: &Row| Seen {
            size: row.size,
            wait: row.figures.named(WAIT),
            others: row.figures.named(OTHERS),
            siblings: row.figures.named(SIBLINGS),
            first_block: row.figures.named(FIRST_BLOCK),
        };
        let has = |key: &str| self.rows.iter().any(|row| row.figures.named(key).is_some());
        let spread = format!("{}_spread_pct", quantity_of_row(&self.test, has).stem);
        let spreads = self.summary.iter();
        let spreads = spreads.filter_map(|row| Some((row.size, row.figures.named(&spread)?)));
        let mut crowded: Vec<String> = Vec::new();
        for row in self
            .series()
            .into_iter()
            .filter(|row| row.series.oversubscribed)
        {
            let unit = row.series.unit.clone();
            crowded.extend(unit.filter(|unit| !crowded.contains(unit)));
        }
        let is_busy = |row: &Row| {
            row.series
                .compute
                .as_ref()
                .is_some_and(|how| how.starts_with("busy"))
        };
        Measurements {
            rows: self.measured().map(seen).collect(),
            spreads: spreads.collect(),
            governors: environment.machine.governors.clone(),
            tcp_congestion: environment.tcp_congestion().map(str::to_owned),
            launches: again.then_some(environment.launches),
            ranks: environment.ranks,
            crowded,
            oversubscribed: environment.oversubscribed,
            placing: self.placing(),
            computes_busily: self.measured().any(is_busy),
        }
    }

    /// The series, each by its first row: in the order of the command, whatever the order of the
    /// launches was.
    pub(crate) fn series(&self) -> Vec<&Row> {
        let mut series: Vec<&Row> = Vec::new();
        for row in self.measured() {
            if !series.iter().any(|known| known.series == row.series) {
                series.push(row);
            }
        }
        series.sort_by_key(|row| (self.place(row), row.case));
        series
    }

    /// Where a row's transport stands in the command.
    fn place(&self, row: &Row) -> usize {
        let fits = |used: &Used| {
            used.transport == row.series.transport && used.library == row.series.library
        };
        let transports = &self.environment.transports;
        transports.iter().position(fits).unwrap_or(transports.len())
    }

    /// One row for each size and series: the median over launches of each quantity, how launches
    /// scatter, and how the repetitions inside a launch do. Launches on threads of one core and on cores apart are not mixed:
    /// those count that are placed as most of the run is, where there are any.
    fn summarize(&self) -> Vec<Row> {
        let mut summary = Vec::new();
        let placing = self.placing();
        let series = self.series();
        let mut sizes: Vec<u64> = Vec::new();
        for row in self.measured() {
            if !sizes.contains(&row.size) {
                sizes.push(row.size);
            }
        }
        for size in sizes {
            for series in &series {
                let fits = |row: &&Row| row.size == size && row.series == series.series;
                let mut group: Vec<&Row> = self.measured().filter(fits).collect();
                if let Some((placing, 1..)) = placing {
                    let is_alike = |row: &&&Row| Placing::of_row(row) == Some(placing);
                    let alike: Vec<&Row> = group.iter().filter(is_alike).copied().collect();
                    if !alike.is_empty() {
                        group = alike;
                    }
                }
                if !group.is_empty() {
                    summary.push(summary_of(&group));
                }
            }
        }
        summary
    }

    /// As text, with a line for each row.
    pub(crate) fn to_json(&self) -> serde_json::Result<String> {
        fn lines<T: Serialize>(rows: &[T]) -> serde_json::Result<String> {
            let lines: Vec<_> = rows
                .iter()
                .map(serde_json::to_string)
                .collect::<serde_json::Result<_>>()?;
            Ok(lines
                .iter()
                .map(|line| format!("\n    {line}"))
                .collect::<Vec<_>>()
                .join(","))
        }
        /// A part that is there only where there is something in it.
        fn part<T: Serialize>(name: &str, rows: &[T]) -> serde_json::Result<String> {
            match rows {
                [] => Ok(String::new()),
                rows => Ok(format!(",\n  \"{name}\": [{}\n  ]", lines(rows)?)),
            }
        }
        let profiles = part("profiles", &self.profiles)?;
        let advice = part("advice", &self.advice)? + &part("warnings", &self.warnings)?;
        let environment = serde_json::to_string_pretty(&self.environment)?.replace('\n', "\n  ");
        Ok(format!(
            "{{\n  \"schema\": {},\n  \"test\": {},\n  \"command\": {},\n  \
             \"environment\": {environment},\n  \"rows\": [{}\n  ],\n  \"summary\": [{}\n  ]{profiles}{advice}\n}}\n",
            serde_json::to_string(&self.schema)?,
            serde_json::to_string(&self.test)?,
            serde_json::to_string(&self.command)?,
            lines(&self.rows)?,
            lines(&self.summary)?,
        ))
    }
}

/// Returns the quantity that a test is about.
#[must_use]
pub fn main_quantity(test: &str) -> Quantity {
    let known = test.parse::<TestName>();
    known.map_or(Quantity::LATENCY, |test| test.quantity)
}

/// Returns the quantity that a row is about, of which `has` says whether it has a figure: that of its test; of a partitioned
/// operation that was measured by the paper's definition alone, the paper's; of an allreduce of vectors from a device, its time; of an
/// application, its part in the library.
pub fn quantity_of_row(test: &str, has: impl Fn(&str) -> bool) -> Quantity {
    match main_quantity(test) {
        Quantity::PARTITIONED_OVERHEAD
            if !has(&Quantity::PARTITIONED_OVERHEAD.key())
                && has(&Quantity::OVERHEAD_PAPER.key()) =>
        {
            Quantity::OVERHEAD_PAPER
        }
        Quantity::LATENCY if has(&Quantity::TIME.key()) => Quantity::TIME,
        Quantity::LATENCY if has(&Quantity::LIBRARY.key()) => Quantity::LIBRARY,
        main => main,
    }
}

fn summary_of(group: &[&Row]) -> Row {
    let mut summary = group[0].clone();
    summary.sampling.launch = None;
    (summary.samples, summary.load) = (None, None);
    summary.sampling.launches = Some(u32::try_from(group.len()).unwrap_or(u32::MAX));
    summary.sampling.iterations = group.iter().map(|row| row.sampling.iterations).sum();
    if group.len() == 1 {
        return summary;
    }
    let over_launches = |name: &str| {
        let values: Vec<f64> = group
            .iter()
            .filter_map(|row| row.figures.named(name))
            .collect();
        Summary::of(&values)
    };
    let names: Vec<String> = summary
        .figures
        .iter()
        .map(|(name, _)| name.to_owned())
        .collect();
    let mut figures = Figures::default();
    for quantity in Quantity::ALL {
        if let Some(values) = over_launches(&quantity.key()) {
            figures.set_summary(quantity, values);
            let spread = format!("{}_spread_pct", quantity.stem);
            if let Some(inside) = over_launches(&spread) {
                figures.set(
                    format!("{}_in_run_spread_pct", quantity.stem),
                    inside.median,
                );
            }
        }
    }
    for name in names {
        if figures.named(&name).is_none()
            && let Some(values) = over_launches(&name)
        {
            figures.set(name, values.median);
        }
    }
    summary.figures = figures;
    summary
}
