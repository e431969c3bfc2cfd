//! Claims about units are judged on each transport and layer, and on each MPI library by itself.

use crate::judgement::Judgement;
use crate::rows::{Place, Rows, Series};

/// Finds a series by the name of a unit and of a figure.
pub(crate) type Find<'a> = &'a dyn Fn(&str, &str) -> Series;

/// Judges something of units at each place, and there for each name that a star in theirs stands for.
pub(crate) fn at_each(
    rows: &Rows,
    places: &[Place],
    units: &[&str],
    decide: &dyn Fn(Find<'_>) -> Judgement,
) -> Vec<Judgement> {
    let mut all = Vec::new();
    for place in places {
        for star in stars(rows, place, units) {
            let series =
                |unit: &str, figure: &str| rows.of_unit(place, &unit.replace('*', star), figure);
            let on = match star.is_empty() || star == "library" {
                true => place.name(),
                false => format!("{}, {star}", place.name()),
            };
            all.push(decide(&series).on(on));
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
