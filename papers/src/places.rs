//! Claims about units are judged on each transport and layer, and on each MPI library by itself.

use crate::judgement::Judgement;
use crate::known::Known;
use crate::rows::{Place, Rows, Series};

/// The series of a place, by the names of units and of figures.
pub(crate) struct At<'r> {
    rows: &'r Rows,
    place: &'r Place,
    /// What stands for stars in names.
    star: &'r str,
}

impl At<'_> {
    /// Returns a series by the name of a unit and of a figure.
    pub(crate) fn series(&self, unit: &str, figure: &str) -> Series {
        self.rows.of_unit(self.place, &self.named(unit), figure)
    }

    /// Returns a series, and those beside it.
    pub(crate) fn with_others(&self, unit: &str, figure: &str) -> Vec<Series> {
        let mut all = self.rows.beside_unit(self.place, &self.named(unit), figure);
        all.insert(0, self.series(unit, figure));
        all
    }

    /// Returns the ratio of two units.
    pub(crate) fn ratio(&self, of: &str, over: &str, figure: &str) -> Series {
        let (of, over) = (self.named(of), self.named(over));
        self.rows.ratio(self.place, &of, &over, figure)
    }

    /// Returns how exactly figures are known.
    pub(crate) fn known(&self) -> Known {
        self.place.known()
    }

    fn named(&self, unit: &str) -> String {
        unit.replace('*', self.star)
    }
}

/// Judges something of units at each place that has one of them, and there for each name that a star in theirs stands for.
pub(crate) fn at_each(
    rows: &Rows,
    places: &[Place],
    units: &[&str],
    figure: &str,
    decide: &dyn Fn(&At<'_>) -> Judgement,
) -> Vec<Judgement> {
    let mut all = Vec::new();
    for place in places {
        for star in stars(rows, place, units) {
            let at = At { rows, place, star };
            // Not every run of an item has all places.
            let is_there = |unit: &&str| !at.series(unit, figure).is_empty();
            if !units.iter().any(is_there) {
                continue;
            }
            let on = match star.is_empty() || star == "library" {
                true => place.name(),
                false => format!("{}, {star}", place.name()),
            };
            all.push(decide(&at).on(on));
        }
    }
    match all.is_empty() {
        true => vec![Judgement::not_testable(
            "nothing was measured for it: it needs -t shm, a network such as ofi:tcp, or mpi:PREFIX",
        )],
        false => all,
    }
}

/// Returns what stars stand for at a place; once nothing where there is none.
pub(crate) fn stars<'r>(rows: &'r Rows, place: &Place, units: &[&str]) -> Vec<&'r str> {
    let Some((before, behind)) = units.iter().find_map(|unit| unit.split_once('*')) else {
        return vec![""];
    };
    let of = |unit: &'r str| unit.strip_prefix(before)?.strip_suffix(behind);
    let found: Vec<&str> = rows
        .units_at(place)
        .into_iter()
        .filter_map(of)
        .filter(|star| !star.contains('/'))
        .collect();
    match found.is_empty() {
        true => vec![""],
        false => found,
    }
}
