//! What came of a comparison, row by row.

use std::fmt::Write;

use serde::Serialize;
use serde_json::Value;

use super::groups::{Group, Results};
use crate::environment::Difference;
use crate::judgement::{Change, Verdict};
use crate::visible;

#[derive(Debug, Clone, Serialize)]
pub(super) struct Compared {
    pub(super) row: String,
    unit: &'static str,
    /// Ratios of it say something.
    #[serde(skip)]
    is_share: bool,
    base: f64,
    new: f64,
    /// New over base.
    pub(super) ratio: f64,
    /// How much worse it is, in percent of base; negative when it is better.
    worse_pct: f64,
    base_spread_pct: f64,
    new_spread_pct: f64,
    base_launches: usize,
    new_launches: usize,
    /// Other processes ran beside the measurement: the figure is not to be trusted.
    base_disturbed: bool,
    new_disturbed: bool,
    pub(super) verdict: Verdict,
}

impl Compared {
    /// Whether both figures are to be trusted.
    pub(super) const fn is_trusted(&self) -> bool {
        self.disturbed().is_none()
    }

    /// The verdict in words.
    fn judged(&self) -> String {
        let sure = self.is_trusted();
        match self.verdict {
            Verdict::Worse if sure => format!("WORSE by {:.1} %", self.worse_pct),
            Verdict::Worse => format!("would be worse by {:.1} %", self.worse_pct),
            Verdict::Better if sure => format!("better by {:.1} %", -self.worse_pct),
            Verdict::Better => format!("would be better by {:.1} %", -self.worse_pct),
            Verdict::Noise => "changed within the noise".to_owned(),
            Verdict::Same => "same".to_owned(),
        }
    }

    /// Which of both is not to be trusted.
    pub(super) const fn disturbed(&self) -> Option<&'static str> {
        match (self.base_disturbed, self.new_disturbed) {
            (true, true) => Some("both"),
            (true, false) => Some("base"),
            (false, true) => Some("new"),
            (false, false) => None,
        }
    }
}

/// The geometric mean of the ratios.
#[derive(Debug, Clone, Serialize)]
pub(super) struct Mean {
    /// What is divided by what.
    pub(super) of: String,
    pub(super) ratio: f64,
    pub(super) rows: usize,
}

#[derive(Debug, Clone, Serialize)]
pub(super) struct Comparison {
    schema: &'static str,
    threshold_pct: f64,
    /// The variables by which rows are not joined.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) not_joined_by: Vec<String>,
    pub(super) rows: Vec<Compared>,
    /// Over rows that are to be trusted. None for shares, and where a figure is nothing.
    pub(super) geometric_means: Vec<Mean>,
    /// Rows that only the base has.
    pub(super) missing: Vec<String>,
    /// Rows that only the new results have.
    pub(super) added: Vec<String>,
    /// Jobs of the new results that failed.
    pub(super) failed: Vec<String>,
    /// Circumstances that differ.
    pub(super) environment: Vec<Difference>,
}

impl Comparison {
    pub(super) fn of(base: &Results, new: &Results, threshold: f64) -> Self {
        let mut order: Vec<(&String, &Group)> = base.groups.iter().collect();
        order.sort_by_key(|(_, group)| group.order);
        let (mut rows, mut missing) = (Vec::new(), Vec::new());
        for (name, before) in order {
            match new.groups.get(name) {
                Some(after) => rows.push(compare(name, before, after, threshold)),
                None => missing.push(name.clone()),
            }
        }
        let added = new
            .groups
            .keys()
            .filter(|name| !base.groups.contains_key(*name));
        Self {
            schema: "tagwire.compare/1",
            threshold_pct: threshold,
            not_joined_by: Vec::new(),
            geometric_means: mean("new/base", &rows).into_iter().collect(),
            rows,
            missing,
            added: added.cloned().collect(),
            failed: new.failed.clone(),
            environment: Vec::new(),
        }
    }

    /// Says in each row which `value` of the variable `by` is compared with which.
    pub(super) fn named(mut self, by: &str, base: &str, value: &str) -> Self {
        let name = |row: &str| format!("{row} {by}={base} -> {value}");
        for row in &mut self.rows {
            row.row = name(&row.row);
        }
        for row in self.missing.iter_mut().chain(&mut self.added) {
            *row = name(row);
        }
        for mean in &mut self.geometric_means {
            mean.of = format!("{value}/{base}");
        }
        self
    }

    /// Returns how many rows are not to be trusted.
    pub(super) fn doubtful(&self) -> usize {
        let doubtful = self.rows.iter().filter(|row| !row.is_trusted());
        doubtful.count()
    }

    /// Adds another one behind this one.
    pub(super) fn extend(&mut self, other: Self) {
        self.rows.extend(other.rows);
        self.geometric_means.extend(other.geometric_means);
        self.missing.extend(other.missing);
        self.added.extend(other.added);
        self.failed.extend(other.failed);
    }

    pub(super) fn is_violated(&self) -> bool {
        let is_worse = |row: &Compared| row.verdict == Verdict::Worse && row.is_trusted();
        !self.missing.is_empty() || self.rows.iter().any(is_worse)
    }

    pub(super) fn to_text(&self) -> String {
        let mut text = String::new();
        let width = self
            .rows
            .iter()
            .map(|row| row.row.len())
            .max()
            .unwrap_or(0)
            .max(6);
        let _ = writeln!(
            text,
            "# {:<width$} {:>12} {:>12} {:>8} {:>8} {:>8}  verdict (threshold {} %)",
            "row", "base", "new", "ratio", "base +-%", "new +-%", self.threshold_pct
        );
        for row in &self.rows {
            let verdict = row.judged();
            let doubt = row.disturbed().map_or_else(String::new, |which| {
                format!(", not to be trusted: other load beside {which}")
            });
            let _ = writeln!(
                text,
                "  {:<width$} {:>12.3} {:>12.3} {:>8.3} {:>8.1} {:>8.1}  {verdict}{doubt}",
                row.row, row.base, row.new, row.ratio, row.base_spread_pct, row.new_spread_pct
            );
        }
        // The mean of one row is that row.
        for mean in self.geometric_means.iter().filter(|mean| mean.rows > 1) {
            let _ = writeln!(
                text,
                "# geometric mean of {}: {:.3} over {} rows",
                mean.of, mean.ratio, mean.rows
            );
        }
        if !self.not_joined_by.is_empty() {
            let _ = writeln!(text, "# not joined by: {}", self.not_joined_by.join(", "));
        }
        if !self.environment.is_empty() {
            let differing = self.environment.iter();
            let differing = differing.map(|it| {
                format!(
                    "{} {} -> {}",
                    visible::line(&it.key),
                    told(&it.base),
                    told(&it.new)
                )
            });
            let differing: Vec<String> = differing.collect();
            let _ = writeln!(text, "# environments differ: {}", differing.join("; "));
        }
        let doubtful = self.doubtful();
        if doubtful > 0 {
            let _ = writeln!(
                text,
                "# {doubtful} of {} rows cannot be told: other processes ran on the ranks' CPUs while they were measured: \
                 measure these again, on a quiet machine or on idle CPUs (--bind)",
                self.rows.len()
            );
        }
        for why in &self.failed {
            let _ = writeln!(text, "# FAILED in the new results: {why}");
        }
        for name in &self.missing {
            let _ = writeln!(text, "# MISSING from the new results: {name}");
        }
        for name in &self.added {
            let _ = writeln!(text, "# only in the new results: {name}");
        }
        text
    }
}

fn mean(of: &str, rows: &[Compared]) -> Option<Mean> {
    let is_ratio = |row: &&Compared| !row.is_share && row.ratio.is_finite() && row.ratio > 0.0;
    let rows: Vec<&Compared> = rows.iter().filter(|row| row.is_trusted()).collect();
    if rows.is_empty() || !rows.iter().all(is_ratio) {
        return None;
    }
    #[allow(clippy::cast_precision_loss, reason = "a count of rows")]
    let mean = rows.iter().map(|row| row.ratio.ln()).sum::<f64>() / rows.len() as f64;
    Some(Mean {
        of: of.to_owned(),
        ratio: mean.exp(),
        rows: rows.len(),
    })
}

/// A circumstance in a line.
fn told(value: &Value) -> String {
    match value {
        Value::Null => "not told".to_owned(),
        Value::String(text) => visible::line(text),
        other => other.to_string(),
    }
}

fn compare(name: &str, before: &Group, after: &Group, threshold: f64) -> Compared {
    let (base, new) = (before.summary(), after.summary());
    let change = Change::of(
        before.quantity.into(),
        before.estimate(),
        after.estimate(),
        threshold,
    );
    let mut row = name.to_owned();
    if before.library != after.library {
        let known = |group: &Group| group.library.clone().unwrap_or_else(|| "?".to_owned());
        let _ = write!(row, " library={} -> {}", known(before), known(after));
    }
    if let (Some(old), Some(new)) = (&before.provider, &after.provider)
        && old != new
    {
        let _ = write!(row, " provider={old} -> {new}");
    }
    Compared {
        row,
        unit: before.quantity.unit,
        is_share: before.quantity.is_share(),
        base: base.median,
        new: new.median,
        ratio: change.ratio,
        worse_pct: change.worse_pct,
        base_spread_pct: before.estimate().spread_pct(),
        new_spread_pct: after.estimate().spread_pct(),
        base_launches: before.launches.count(),
        new_launches: after.launches.count(),
        base_disturbed: before.launches.is_disturbed(),
        new_disturbed: after.launches.is_disturbed(),
        verdict: change.verdict,
    }
}
