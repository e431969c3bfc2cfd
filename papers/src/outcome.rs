//! What came of an item.

use std::fmt::Write as _;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::drawn::Shows;
use crate::item::{Claim, Item};
use crate::judgement::{Judgement, Verdict};
use crate::published::{Published, of_figure};
use crate::reference::{line_of, nearest};
use crate::rows::Rows;
use crate::stored::Ran;
use crate::table::{Table, markdown};

/// The schema of outcomes.
pub const SCHEMA: &str = "tagwire.reproduce/2";

/// That before it, whose outcomes have neither rows nor circumstances; tables of performance are the same.
pub(crate) const BEFORE: &str = "tagwire.reproduce/1";

/// Says what is wrong with the schema of an outcome's file, where something is.
pub(crate) fn wrong_schema(text: &str, schema: &str) -> Option<String> {
    let all = [SCHEMA, BEFORE];
    (!all.contains(&schema)).then(|| {
        let line = line_of(text, "\"schema\"");
        let near = nearest(schema, all.into_iter());
        format!("line {line}: its schema is '{schema}'; the nearest that is read is '{near}'")
    })
}

/// The column of a simulation's verdicts.
pub(crate) const COLUMN: &str = "sim";

/// What stands for rows before they are written.
const ROWS: &str = "rows of run ";

/// What came of an item.
#[derive(Debug, Serialize)]
pub struct Outcome {
    schema: &'static str,
    name: &'static str,
    figure: &'static str,
    shows: &'static str,
    quick: bool,
    /// Whose verdicts these are, where they are not of the machine that this runs on.
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<&'static str>,
    /// The runs, with what they left.
    runs: Vec<Ran>,
    /// The files with their results, beside this one.
    results: Vec<String>,
    /// What claims about units are judged by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) measured: Vec<Measured>,
    pub(crate) claims: Vec<Judged>,
    published: Vec<&'static Published>,
    /// Where tables were measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    environment: Option<Value>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tables: Vec<Table>,
}

/// A figure of a unit, over launches.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) on: String,
    pub(crate) unit: String,
    pub(crate) figure: String,
    pub(crate) size: u64,
    pub(crate) median: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
}

impl Measured {
    /// The figures of an item's claims; of several sizes the least, the middle and the greatest.
    fn of(item: &'static Item, rows: &Rows) -> Vec<Self> {
        let claims = item.claims.iter();
        let figures = claims.filter_map(|claim| claim.predicate.figure_of_units());
        // How many messages there are is in the claims.
        let mut figures: Vec<&str> = figures.filter(|figure| *figure != "messages").collect();
        figures.sort_unstable();
        figures.dedup();
        let mut all = Vec::new();
        for figure in figures {
            for place in rows.places() {
                for unit in rows.units() {
                    let series: Vec<_> = rows.of_unit(&place, unit, figure).into_iter().collect();
                    let count = series.len();
                    let shown = |place: usize| [0, count / 2, count - 1].contains(&place);
                    let shown = (0..count).filter(|place| shown(*place));
                    all.extend(shown.map(|number| {
                        let (size, point) = series[number];
                        Self {
                            on: place.name(),
                            unit: unit.to_owned(),
                            figure: figure.to_owned(),
                            size,
                            median: point.median,
                            low: point.min,
                            high: point.max,
                        }
                    }));
                }
            }
        }
        all
    }
}

/// A claim with what came of it.
#[derive(Debug, Serialize)]
pub struct Judged {
    pub(crate) says: &'static str,
    pub(crate) published: &'static str,
    /// Why it fails, where it does: likely. Of a simulation also why it is undecided.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) likely_reason: Option<&'static str>,
    pub(crate) judgements: Vec<Judgement>,
    /// Whether it is a claim of the paper, and no check of our own.
    #[serde(skip)]
    pub(crate) is_published: bool,
}

impl Outcome {
    /// Judges the claims of an item by its results.
    #[must_use]
    pub fn of(
        item: &'static Item,
        rows: &Rows,
        quick: bool,
        runs: Vec<Ran>,
        results: Vec<String>,
    ) -> Self {
        Self {
            schema: SCHEMA,
            name: &item.name,
            figure: &item.figure,
            shows: &item.shows,
            quick,
            runs: match item.plot {
                // Tables have the values of their rows.
                _ if item.has_tables() => Vec::new(),
                Some(Shows::Shorts) => runs,
                _ => runs.into_iter().map(Ran::without_samples).collect(),
            },
            results,
            measured: Measured::of(item, rows),
            claims: item
                .claims
                .iter()
                .map(|claim| Judged::of(claim, rows))
                .collect(),
            column: rows.is_simulated().then_some(COLUMN),
            published: of_figure(&item.figure).collect(),
            environment: rows.environment.clone(),
            tables: Table::all(item, rows),
        }
    }

    /// Returns the names of the files with its results.
    #[must_use]
    pub fn results(&self) -> &[String] {
        &self.results
    }

    /// Returns it as JSON, in which each row has a line.
    #[must_use]
    pub fn json(&self) -> String {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        let mut lines = Vec::new();
        for run in value["runs"].as_array_mut().into_iter().flatten() {
            let rows = run["rows"]["rows"].take();
            let rows = rows.as_array().map_or(&[][..], Vec::as_slice);
            let rows: Vec<String> = rows.iter().map(Value::to_string).collect();
            run["rows"]["rows"] = Value::String(format!("{ROWS}{}", lines.len()));
            lines.push(format!("[\n{}\n]", rows.join(",\n")));
        }
        let mut text = format!("{value:#}\n");
        for (number, rows) in lines.iter().enumerate() {
            text = text.replacen(&format!("\"{ROWS}{number}\""), rows, 1);
        }
        text
    }

    /// Returns how many judgements are of a kind.
    #[must_use]
    pub fn count(&self, verdict: Verdict) -> usize {
        let all = self.claims.iter().flat_map(|claim| &claim.judgements);
        all.filter(|judgement| judgement.verdict == verdict).count()
    }

    /// Returns it in words.
    #[must_use]
    pub fn text(&self) -> String {
        let mut out = format!("{} ({}): {}\n", self.name, self.figure, self.shows);
        if !self.tables.is_empty() {
            out += &format!("\n{}", markdown(&self.tables));
        }
        for claim in &self.claims {
            let _ = writeln!(out, "\n  {}", claim.says);
            let _ = writeln!(out, "    published: {}", claim.published);
            for judgement in &claim.judgements {
                let on = match judgement.on.is_empty() {
                    true => String::new(),
                    false => format!(" on {}", judgement.on),
                };
                let (word, evidence) = (judgement.verdict.word(), &judgement.evidence);
                let _ = writeln!(out, "    {word}{on}: {evidence}");
            }
            if let Some(reason) = claim.likely_reason {
                let _ = writeln!(out, "    likely reason: {reason}");
            }
        }
        out
    }
}

impl Judged {
    fn of(claim: &'static Claim, rows: &Rows) -> Self {
        let mut judgements = match &claim.simulated {
            Some(times) if rows.is_simulated() => times.judge(rows),
            _ => claim.judge(rows),
        };
        if claim.fitted && rows.is_simulated() {
            judgements = judgements.into_iter().map(Judgement::input).collect();
        }
        if let (Some(why), true) = (&claim.no_sim, rows.is_simulated()) {
            let not_told = judgements.into_iter().map(|one| one.untold(why));
            judgements = not_told.collect();
        }
        let is_any = |verdict| judgements.iter().any(|one| one.verdict == verdict);
        let fails = is_any(Verdict::Fails);
        // A simulation that is run again decides no more than before.
        let (reason, fails) = match rows.is_simulated() {
            true => (&claim.sim_reason, fails || is_any(Verdict::Undecided)),
            false => (&claim.reason, fails),
        };
        Self {
            says: &claim.says,
            published: claim.published.text(),
            is_published: claim.is_published(),
            likely_reason: reason.as_deref().filter(|_| fails),
            judgements,
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::item::find;

    #[test]
    fn a_simulation_that_decides_nothing_says_why() {
        let item = find("partitioned/fig5").unwrap()[0];
        let row = |(power, value): (u32, f64)| {
            json!({"transport": "sim:niagara", "pml": "ob1", "policy": "messages", "partitions": 16, "compute": "sleep:10000",
                "noise": "none:0", "size": 4_u64.pow(power), "launch": 0, "perceived_bandwidth_paper_mb_s": value})
        };
        let mut rows = Rows::default();
        let values = [1.0, 5.0, 4.0, 3.0, 2.0];
        rows.add_stored((0..).zip(values).map(row).collect(), false);
        let outcome = Outcome::of(item, &rows, false, Vec::new(), Vec::new());
        let says = "Without noise it is an ordinary curve of bandwidth.";
        let mut claims = outcome.claims.iter();
        let claim = claims.find(|claim| claim.says == says).unwrap();
        assert_eq!(claim.judgements[0].verdict, Verdict::Undecided);
        assert!(claim.likely_reason.is_some());
    }

    #[test]
    fn claims_without_rows_are_not_testable() {
        let item = find("mtl/fig2a").unwrap()[0];
        let outcome = Outcome::of(item, &Rows::default(), true, Vec::new(), Vec::new());
        assert_eq!(outcome.count(Verdict::NotTestable), 3);
        assert!(outcome.text().contains("not testable here: "));
        assert_eq!(outcome.published.len(), 5);
        let written = outcome.json();
        assert!(written.contains(SCHEMA) && !written.contains("likely_reason"));
    }
}
