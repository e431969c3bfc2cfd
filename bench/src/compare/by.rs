//! The values of one variable compared with each other, among them the series of a report.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::CompareArgs;
use super::groups::Results;
use super::joining;
use super::outcome::Comparison;
use super::rows::{Measured, Rows};
use crate::error::{Error, Result};
use crate::naming::{FILE, Naming, Variables, axis};
use crate::visible;

/// What stands for all variables that tell the series of a report apart.
const SERIES: &str = "series";

/// Compares the rows of each value of a variable with those of its first value, or of the one that is asked for.
pub(super) fn compare(
    by: &str,
    base: &Rows,
    new: Option<&Rows>,
    args: &CompareArgs,
    threshold: f64,
) -> Result<Comparison> {
    let news = new.map_or(&[][..], |new| &new.measured);
    let mut rows = base.measured.clone();
    rows.extend_from_slice(news);
    let is_of_series = by == SERIES && rows.iter().all(|row| !row.variables.contains_key(SERIES));
    let mut asked = vec![by.to_owned()];
    if is_of_series {
        let labels = args.new.as_deref().filter(|_| new.is_some());
        let labels = labels.map(|new| labels_of(&args.base, new));
        asked.extend(name_series(&mut rows, base.measured.len(), labels));
    }
    let all: Vec<&Measured> = rows.iter().collect();
    asked.extend(args.ignore.iter().cloned());
    let mut seen = BTreeSet::new();
    asked.retain(|key| seen.insert(key.clone()));
    let mut removed = joining::removed(&all, &asked)?;
    let values = ordered_values(by, &all, args.base_value.as_deref())?;
    let (first, others) = values.split_first().ok_or_else(|| nothing(by))?;
    let of = |value: &str| {
        let rows = all.iter().copied().filter(|row| row.value(by) == value);
        Results::gather(rows, &removed).map_err(|key| {
            Error::Usage(format!(
                "rows with {by}={value} have several values of '{key}', which is ignored; --by series compares them one by one"
            ))
        })
    };
    let first_results = of(first)?;
    let mut whole: Option<Comparison> = None;
    for value in others {
        let one = Comparison::of(&first_results, &of(value)?, threshold);
        let one = one.named(by, shown(first, &values), shown(value, &values));
        match &mut whole {
            Some(whole) => whole.extend(one),
            None => whole = Some(one),
        }
    }
    let mut whole = whole
        .filter(|whole| !whole.rows.is_empty())
        .ok_or_else(|| without_counterpart(by, first, &all))?;
    removed.retain(|key| joining::values(&all, key).len() > 1);
    whole.not_joined_by = removed;
    let failed = [Some(base), new].into_iter().flatten();
    whole.failed = failed.flat_map(|rows| rows.failed.clone()).collect();
    Ok(whole)
}

/// The values of a variable, that of the base first.
fn ordered_values<'a>(by: &str, all: &[&'a Measured], base: Option<&str>) -> Result<Vec<&'a str>> {
    let mut values = joining::values(all, by);
    if values.len() < 2 {
        return Err(nothing(by));
    }
    if let Some(base) = base {
        let is_base = |value: &&str| *value == base || shown(value, &values) == base;
        let Some(place) = values.iter().position(is_base) else {
            let known: Vec<&str> = values.iter().map(|value| shown(value, &values)).collect();
            return Err(Error::Usage(format!(
                "no row has {by}={base} (--base): there are {}",
                known.join(", ")
            )));
        };
        values[..=place].rotate_right(1);
    }
    Ok(values)
}

/// Gives each row the name that its series has in a report, and returns the variables that the names stand for. Rows from
/// `second` on are of the second file.
fn name_series(
    rows: &mut [Measured],
    second: usize,
    labels: Option<[String; 2]>,
) -> BTreeSet<String> {
    let mut tests: BTreeMap<String, Vec<Variables>> = BTreeMap::new();
    let mut known = BTreeSet::new();
    for (place, row) in rows.iter().enumerate() {
        let mut variables = row.all_variables();
        known.extend(variables.keys().cloned());
        if let Some(labels) = &labels {
            let label = &labels[usize::from(place >= second)];
            variables.insert(FILE.to_owned(), label.clone());
        }
        tests.entry(row.test.clone()).or_default().push(variables);
    }
    for all in tests.values_mut() {
        let along = axis(all.iter());
        known.remove(&along);
        for variables in all {
            variables.remove(&along);
        }
    }
    let series: Vec<Vec<&Variables>> = tests.values().map(|all| all.iter().collect()).collect();
    let naming = Naming::of(&series);
    let mut names: BTreeMap<&String, _> = tests
        .keys()
        .zip(&series)
        .map(|(test, all)| (test, naming.names(all).into_iter()))
        .collect();
    for row in rows {
        if let Some(name) = names.get_mut(&row.test).and_then(Iterator::next) {
            row.variables.insert(SERIES.to_owned(), name);
        }
    }
    known
}

/// Short names for both files: their stems, or the whole paths where these are the same.
fn labels_of(base: &Path, new: &Path) -> [String; 2] {
    let stem = |file: &Path| {
        let stem = file.file_stem().unwrap_or(file.as_os_str());
        visible::line(&stem.to_string_lossy())
    };
    let whole = |file: &Path| visible::line(&file.display().to_string());
    match stem(base) == stem(new) {
        true => [whole(base), whole(new)],
        false => [stem(base), stem(new)],
    }
}

/// A value without what its library adds behind a comma, where that tells it from the others.
fn shown<'a>(value: &'a str, all: &[&str]) -> &'a str {
    let short = |value: &'a str| value.split(',').next().unwrap_or(value);
    let same = all
        .iter()
        .filter(|other| other.split(',').next() == Some(short(value)));
    if same.count() == 1 {
        short(value)
    } else {
        value
    }
}

fn nothing(by: &str) -> Error {
    Error::Usage(format!(
        "all rows have the same '{by}': there is nothing to compare (--by)"
    ))
}

fn without_counterpart(by: &str, first: &str, all: &[&Measured]) -> Error {
    let (base, others): (Vec<&Measured>, Vec<&Measured>) =
        all.iter().copied().partition(|row| row.value(by) == first);
    let series = if by == SERIES {
        ""
    } else {
        "; --by series compares all that differ"
    };
    Error::Usage(format!(
        "no row has its counterpart with {by}={first}: {}{series}",
        joining::differing(&base, &others)
    ))
}
