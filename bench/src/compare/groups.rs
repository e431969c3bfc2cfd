//! Rows of the same thing, gathered by their variables.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::rows::Measured;
use crate::judgement::Launches;
use crate::record::Quantity;
use crate::stats::Summary;

/// The measured rows of one side, gathered by their variables.
#[derive(Debug)]
pub(super) struct Results {
    pub(super) groups: BTreeMap<String, Group>,
    /// The rows of jobs that failed, each with its error.
    pub(super) failed: Vec<String>,
}

/// All launches of the same thing.
#[derive(Debug)]
pub(super) struct Group {
    /// Where it comes in the file.
    pub(super) order: usize,
    /// The library that carried the messages, where that is not in the name.
    pub(super) library: Option<String>,
    /// What the library opened.
    pub(super) provider: Option<String>,
    pub(super) quantity: Quantity,
    pub(super) launches: Launches,
    /// The values of the variables by which it is not joined.
    removed: Vec<String>,
}

impl Results {
    /// Gathers rows by all variables but those that are `removed`.
    ///
    /// # Errors
    /// The name of a removed variable that has several values among rows of the same name.
    pub(super) fn gather<'a>(
        rows: impl Iterator<Item = &'a Measured>,
        removed: &[String],
    ) -> Result<Self, String> {
        let rows: Vec<&Measured> = rows.collect();
        let names = names(&rows, removed);
        let mut groups: BTreeMap<String, Group> = BTreeMap::new();
        for (row, (name, library)) in rows.into_iter().zip(names) {
            let values: Vec<String> = removed
                .iter()
                .map(|key| row.value(key).to_owned())
                .collect();
            let order = groups.len();
            let group = groups.entry(name).or_insert_with(|| Group {
                order,
                library,
                provider: row.provider.clone(),
                quantity: row.quantity,
                launches: Launches::default(),
                removed: values.clone(),
            });
            if let Some(differing) =
                (0..values.len()).find(|key| values[*key] != group.removed[*key])
            {
                return Err(removed[differing].clone());
            }
            group.launches.add(row.figure, row.is_disturbed);
        }
        Ok(Self {
            groups,
            failed: Vec::new(),
        })
    }
}

/// The name of each row, and its library where that is not in the name: it is where rows of one name have several.
fn names(rows: &[&Measured], removed: &[String]) -> Vec<(String, Option<String>)> {
    let is_removed = removed.iter().any(|key| key == "library");
    let library = |row: &Measured| row.library.clone().filter(|_| !is_removed);
    let named = rows.iter().map(|row| (row.name(removed), library(row)));
    let mut named: Vec<(String, Option<String>)> = named.collect();
    let all: BTreeSet<_> = named.iter().cloned().collect();
    for (name, library) in &mut named {
        let of_name = (name.clone(), None)..;
        let mut same = all.range(of_name).take_while(|(other, _)| other == name);
        if same.nth(1).is_some()
            && let Some(library) = library.take()
        {
            let _ = write!(name, " library={library}");
        }
    }
    named
}

impl Group {
    pub(super) fn summary(&self) -> Summary {
        self.launches.summary().expect(HAS_ROW)
    }

    pub(super) fn estimate(&self) -> Summary {
        self.launches.estimate().expect(HAS_ROW)
    }
}

/// Why a group has figures.
const HAS_ROW: &str = "a group has a row, and rows have finite figures";
