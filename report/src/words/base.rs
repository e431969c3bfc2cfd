//! What got worse and what got better, in words.

use tagwire_bench::{Sense, Verdict};

use super::places::{place, ranges};
use crate::judge::{Compared, compared, missing, overall};
use crate::model::{Plot, Role, Series};
use crate::number;
use crate::phrase::{between, listed};

/// How many missing points are named.
const NAMED: usize = 4;

/// Returns what became of the series that a base has, none where there is no base.
pub(super) fn sentences(plot: &Plot) -> Vec<String> {
    if !plot.series.iter().any(|series| series.role == Role::Base) {
        return Vec::new();
    }
    let all = compared(plot);
    // Each change with the series of which it holds.
    let mut changes: Vec<(String, Vec<&str>)> = Vec::new();
    let mut without = Vec::new();
    for (place, series) in plot.measured() {
        let Some(base) = series.counterpart.map(|base| &plot.series[base]) else {
            without.push(series.name.as_str());
            continue;
        };
        let own: Vec<&Compared> = all
            .iter()
            .filter(|compared| compared.series == place)
            .collect();
        let change = change(plot, base, series, &own);
        match changes.iter_mut().find(|(known, _)| *known == change) {
            Some((_, names)) => names.push(&series.name),
            None => changes.push((change, vec![&series.name])),
        }
    }
    let told = changes
        .iter()
        .map(|(change, names)| format!("{} against the base: {change}.", listed(names)));
    let mut sentences: Vec<String> = told.collect();
    if !without.is_empty() {
        sentences.push(format!("Not in the base: {}.", listed(&without)));
    }
    sentences.extend(lacking(plot));
    sentences
}

fn change(plot: &Plot, base: &Series, series: &Series, own: &[&Compared]) -> String {
    if own.is_empty() {
        return "nothing in common".to_owned();
    }
    let verdicts = [(Verdict::Worse, "worse"), (Verdict::Better, "better")];
    let told = |trusted: bool, prefix: &str| {
        let parts = verdicts.iter().filter_map(|(verdict, word)| {
            let is_such =
                |one: &&&Compared| one.change.verdict == *verdict && one.is_trusted() == trusted;
            extent(plot, own, is_such, &format!("{prefix}{word}"))
        });
        parts.collect::<Vec<_>>()
    };
    let (mut parts, would) = (told(true, ""), told(false, "would be "));
    if parts.is_empty() {
        parts.push(match own.iter().any(|one| one.is_trusted()) {
            true => "no change beyond the noise".to_owned(),
            false => "nothing that is to be trusted".to_owned(),
        });
    }
    parts.extend(would);
    if plot.metric.sense != Sense::Share
        && let Some(overall) = overall(plot.metric.sense, base, series)
    {
        parts.push(format!(
            "new over base {} in the geometric mean",
            number::ratio(overall.mean)
        ));
    }
    parts.join("; ")
}

/// By how much, and where; `None` where none is such.
fn extent(
    plot: &Plot,
    own: &[&Compared],
    is_such: impl Fn(&&&Compared) -> bool,
    word: &str,
) -> Option<String> {
    let xs: Vec<f64> = own.iter().map(|compared| compared.new.x).collect();
    let of: Vec<_> = own.iter().filter(is_such).collect();
    let changes = of.iter().map(|compared| compared.change.worse_pct.abs());
    let least = changes.clone().reduce(f64::min)?;
    let greatest = changes.reduce(f64::max)?;
    let by = between(&number::plain(least), &number::plain(greatest), " %");
    let at: Vec<f64> = of.iter().map(|compared| compared.new.x).collect();
    Some(format!("{word} by {by} {}", ranges(&plot.x, &xs, &at)))
}

/// What only the base has.
fn lacking(plot: &Plot) -> Option<String> {
    let lacking = missing(plot);
    let named = lacking.iter().take(NAMED);
    let named =
        named.map(|(series, x)| format!("{} at {}", plot.series[*series].name, place(&plot.x, *x)));
    let named: Vec<String> = named.collect();
    let more = match lacking.len().saturating_sub(NAMED) {
        0 => String::new(),
        count => format!(" and {count} more"),
    };
    (!named.is_empty())
        .then(|| format!("Missing from the new results: {}{more}.", named.join(", ")))
}
