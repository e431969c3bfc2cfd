//! By which variables rows are joined: all of them, but for those that the user compares by or ignores, and what comes with these.

use std::collections::{BTreeMap, BTreeSet};

use super::rows::Measured;
use crate::error::{Error, Result};

/// Returns the variables by which rows are not joined: those `asked` for, and names (of an engine, a library) that have one
/// value for each value of these.
///
/// # Errors
/// [`Error::Usage`] where no row has a variable that is asked for.
pub(super) fn removed(rows: &[&Measured], asked: &[String]) -> Result<Vec<String>> {
    let known: BTreeSet<&str> = rows.iter().flat_map(|row| keys(row)).collect();
    if let Some(unknown) = asked.iter().find(|key| !known.contains(key.as_str())) {
        let known: Vec<&str> = known.into_iter().collect();
        return Err(Error::Usage(format!(
            "no row has the variable '{unknown}': there are {}",
            known.join(", ")
        )));
    }
    let mut removed = asked.to_vec();
    if !asked.is_empty() {
        let coming = known.into_iter().filter(|key| comes_with(rows, asked, key));
        removed.extend(coming.map(str::to_owned));
    }
    Ok(removed)
}

/// Returns the values of a variable in their order.
pub(super) fn values<'a>(rows: &[&'a Measured], key: &str) -> Vec<&'a str> {
    let mut values = Vec::new();
    for row in rows {
        let value = row.value(key);
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

/// Returns in what no row of one side is like one of the other, in words.
pub(super) fn differing(base: &[&Measured], new: &[&Measured]) -> String {
    let all: Vec<&Measured> = base.iter().chain(new).copied().collect();
    let keys: BTreeSet<&str> = all.iter().flat_map(|row| keys(row)).collect();
    let side = |rows: &[&Measured], key: &str| -> BTreeSet<String> {
        rows.iter().map(|row| row.value(key).to_owned()).collect()
    };
    let listed =
        |values: BTreeSet<String>| values.into_iter().take(4).collect::<Vec<_>>().join(", ");
    let told = keys.into_iter().filter_map(|key| {
        let (base, new) = (side(base, key), side(new, key));
        base.is_disjoint(&new)
            .then(|| format!("{key} ({} against {})", listed(base), listed(new)))
    });
    let mut told: Vec<String> = told.collect();
    if base
        .iter()
        .all(|base| new.iter().all(|new| base.test != new.test))
    {
        told.insert(0, "test".to_owned());
    }
    match told.as_slice() {
        [] => "no single variable tells all of them apart".to_owned(),
        told => format!("they differ in {}; see --by and --ignore", told.join(", ")),
    }
}

fn keys(row: &Measured) -> impl Iterator<Item = &str> {
    let library = row.library.as_ref().map(|_| "library");
    row.variables.keys().map(String::as_str).chain(library)
}

/// Whether a variable is a name that has one value for each value of those `asked` for, and not the same in all.
fn comes_with(rows: &[&Measured], asked: &[String], key: &str) -> bool {
    let is_number = |row: &&&Measured| row.value(key).parse::<f64>().is_ok();
    if asked.iter().any(|asked| asked == key) || rows.iter().any(|row| is_number(&row)) {
        return false;
    }
    let mut of: BTreeMap<Vec<&str>, &str> = BTreeMap::new();
    let is_one = rows.iter().all(|row| {
        let of_asked = asked.iter().map(|asked| row.value(asked)).collect();
        *of.entry(of_asked).or_insert_with(|| row.value(key)) == row.value(key)
    });
    is_one && values(rows, key).len() > 1
}
