//! The rows of results, as series over sizes.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use tagwire_bench::{Summary, is_foreign};

use crate::choice::Choice;

/// The rows of several results.
#[derive(Debug, Default)]
pub struct Rows {
    all: Vec<Value>,
    /// Rows of what is measured by turns: the number of the turn, the build, and the row.
    turns: Vec<(usize, String, Value)>,
    /// That of the first of those.
    pub(crate) environment: Option<Value>,
}

/// What carried the messages of some rows: a transport with its layer, or an MPI library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) transport: String,
    library: Option<String>,
    pml: Option<String>,
}

impl Place {
    pub(crate) fn of(row: &Value) -> Option<Self> {
        let transport = text(row, "transport")?.to_owned();
        let of = |key| text(row, key).map(str::to_owned);
        Some(Self {
            // What a transport of ours stands on is in its name.
            library: of("library").filter(|_| is_foreign(&transport)),
            pml: of("pml"),
            transport,
        })
    }

    /// Whether what carried them is none of ours.
    pub(crate) fn is_foreign(&self) -> bool {
        is_foreign(&self.transport)
    }

    /// Returns a short name: `shm (ob1)`, `MPICH 5.0.2`.
    pub(crate) fn name(&self) -> String {
        match (&self.library, &self.pml) {
            (Some(library), _) => {
                let words = library.split(',').next().unwrap_or(library).split(' ');
                let words = words.filter(|word| *word != "Version:" && *word != "Library");
                let words: Vec<_> = words
                    .map(|word| match word.strip_prefix('v') {
                        Some(number) if number.starts_with(|c: char| c.is_ascii_digit()) => number,
                        _ => word,
                    })
                    .collect();
                let number = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit());
                let end = words.iter().position(number);
                words[..end.map_or(words.len(), |end| end + 1)].join(" ")
            }
            (None, Some(pml)) => format!("{} ({pml})", self.transport),
            (None, None) => self.transport.clone(),
        }
    }
}

/// A figure over sizes.
pub(crate) type Series = BTreeMap<u64, Summary>;

impl Rows {
    /// Adds the rows of results that a run of an item has left, or a run of another build of Tagwire. They are flat: what
    /// distinguishes a row and its figures are fields of its own.
    pub fn add(&mut self, mut results: Map<String, Value>, turn: Option<usize>, build: &str) {
        let mut rows = |key: &str| match results.remove(key) {
            Some(Value::Array(rows)) => rows,
            _ => Vec::new(),
        };
        let Some(turn) = turn else {
            self.all.extend(rows("rows"));
            return;
        };
        let advised = rows("advice").into_iter().map(|mut advice| {
            advice["advice"] = Value::Bool(true);
            advice
        });
        let of_turn = rows("rows").into_iter().chain(advised);
        self.turns
            .extend(of_turn.map(|row| (turn, build.to_owned(), row)));
        self.environment = self
            .environment
            .take()
            .or_else(|| results.remove("environment"));
    }

    /// Returns the rows of what is measured by turns, or the advice, each with its build.
    pub(crate) fn of_turn(
        &self,
        turn: usize,
        advice: bool,
    ) -> impl Iterator<Item = (&Value, &str)> {
        let of = move |(number, _, row): &&(usize, String, Value)| {
            *number == turn && row["advice"].is_boolean() == advice
        };
        let rows = self.turns.iter().filter(of);
        rows.map(|(_, build, row)| (row, &**build))
    }

    /// Returns the places that rows are of, in their order.
    pub(crate) fn places(&self) -> Vec<Place> {
        let mut all = Vec::new();
        for place in self.all.iter().filter_map(Place::of) {
            if !all.contains(&place) {
                all.push(place);
            }
        }
        all
    }

    /// Returns a figure over sizes of those rows of a place that have a unit, or something that makes progress.
    pub(crate) fn of_unit(&self, place: &Place, unit: &str, figure: &str) -> Series {
        let is_meant = |row: &&Value| {
            let is_unit = ["unit", "progress", "series"]
                .iter()
                .any(|key| text(row, key) == Some(unit));
            is_unit && Place::of(row).as_ref() == Some(place)
        };
        series(self.all.iter().filter(is_meant), figure)
    }

    /// Returns the policies by which rows of a place aggregate partitions, in their order.
    pub(crate) fn policies(&self, place: &Place) -> Vec<&str> {
        let mut all = Vec::new();
        let of_place = |row: &&Value| Place::of(row).as_ref() == Some(place);
        for policy in self
            .all
            .iter()
            .filter(of_place)
            .filter_map(|row| text(row, "policy"))
        {
            if !all.contains(&policy) {
                all.push(policy);
            }
        }
        all
    }

    /// Returns a figure over sizes of those partitioned operations of a place that a choice names.
    pub(crate) fn of_parts(
        &self,
        place: &Place,
        policy: &str,
        of: &Choice,
        figure: &str,
    ) -> Series {
        let is_meant = |row: &&Value| {
            let number = row.get("partitions").and_then(Value::as_u64);
            let is_cold = row.get("cold_cache").and_then(Value::as_bool);
            let (compute, noise) = (text(row, "compute"), text(row, "noise"));
            let is_noise = match &of.noise {
                Some(noise_of) => noise == Some(noise_of),
                None => noise.is_none_or(|noise| noise.starts_with("none:")),
            };
            let time = compute.and_then(|how| how.rsplit(':').next()?.parse::<u64>().ok());
            number == Some(u64::from(of.partitions))
                && is_noise
                && time.unwrap_or(0) == of.ms * 1000
                && is_cold.unwrap_or(false) == of.cold
                && text(row, "policy") == Some(policy)
                && Place::of(row).as_ref() == Some(place)
        };
        series(self.all.iter().filter(is_meant), figure)
    }

    /// Returns the units that rows have, or what makes progress: fewer before more, processes before threads.
    pub(crate) fn units(&self) -> Vec<&str> {
        let of = |row| {
            ["progress", "unit", "series"]
                .iter()
                .find_map(|key| text(row, key))
        };
        let mut all: Vec<&str> = self.all.iter().filter_map(of).collect();
        let order = |unit: &str| {
            let number = unit
                .split(':')
                .nth(1)
                .and_then(|number| number.parse::<u32>().ok());
            let place = ["none", "blocked-thread"]
                .iter()
                .position(|word| *word == unit);
            (number, place.unwrap_or(2), unit.to_owned())
        };
        all.sort_by_key(|unit| order(unit));
        all.dedup();
        all
    }

    /// Returns the transports that rows have, MPI libraries or others, in the order of the rows.
    pub(crate) fn transports(&self, peers: bool) -> Vec<&str> {
        let mut all = Vec::new();
        for transport in self.all.iter().filter_map(|row| text(row, "transport")) {
            if is_peer(transport) == peers && !all.contains(&transport) {
                all.push(transport);
            }
        }
        all
    }

    /// Returns a figure over sizes of those rows on `transport` that `layer` matched; of an MPI library, whatever it has.
    pub(crate) fn series(&self, transport: &str, layer: Option<&str>, figure: &str) -> Series {
        let is_meant = |row: &&Value| {
            text(row, "transport") == Some(transport)
                && layer.is_none_or(|layer| text(row, "pml") == Some(layer))
        };
        series(self.all.iter().filter(is_meant), figure)
    }
}

fn series<'r>(rows: impl Iterator<Item = &'r Value>, figure: &str) -> Series {
    let mut values: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for row in rows {
        let size = row.get("size").and_then(Value::as_u64);
        let value = row.get(figure).and_then(Value::as_f64);
        if let (Some(size), Some(value)) = (size, value) {
            values.entry(size).or_default().push(value);
        }
    }
    let points = values.into_iter();
    points
        .filter_map(|(size, values)| Some((size, Summary::of(&values)?)))
        .collect()
}

fn text<'r>(row: &'r Value, key: &str) -> Option<&'r str> {
    row.get(key).and_then(Value::as_str)
}

/// Returns which tool a transport of `tagwire bench` is.
pub(crate) fn tool(transport: &str) -> Option<&str> {
    transport.strip_prefix("tool:")?.split(['@', ':']).next()
}

/// Whether a transport of `tagwire bench` is an MPI library.
pub(crate) fn is_peer(transport: &str) -> bool {
    transport == "mpi" || transport.starts_with("mpi:")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
pub(crate) mod tests {

    use serde_json::json;

    use super::*;

    /// Returns rows of `(transport, layer, size, values over launches)` of the figure `x`.
    pub(crate) fn rows(series: &[(&str, &str, u64, &[f64])]) -> Rows {
        let rows = series.iter().flat_map(|(transport, layer, size, values)| {
            values.iter().map(
                move |value| json!({"transport": transport, "pml": layer, "size": size, "x": value}),
            )
        });
        Rows {
            all: rows.collect(),
            ..Rows::default()
        }
    }

    /// Returns rows of `(transport, library, unit, values over launches)` of the figure `x` at size 0.
    pub(crate) fn rows_of_units(series: &[(&str, Option<&str>, &str, &[f64])]) -> Rows {
        let rows = series.iter().flat_map(|(transport, library, unit, values)| {
            let pml = library.is_none().then_some("ob1");
            values.iter().map(move |value| {
                json!({"transport": transport, "library": library, "pml": pml, "unit": unit, "size": 0, "x": value})
            })
        });
        Rows {
            all: rows.collect(),
            ..Rows::default()
        }
    }

    /// Returns rows of `(series, values at sizes 1, 2 and so on)` of the figure `x` on shared memory.
    pub(crate) fn rows_of_sizes(series: &[(&str, &[f64])]) -> Rows {
        let rows = series.iter().flat_map(|(series, values)| {
            values.iter().zip(1..).map(move |(value, size)| {
                json!({"transport": "shm", "pml": "ob1", "series": series, "size": size, "x": value})
            })
        });
        Rows {
            all: rows.collect(),
            ..Rows::default()
        }
    }

    /// Returns rows of `(partitions, noise, milliseconds, cold, size, values over launches)` of the figure `x`.
    #[allow(clippy::type_complexity, reason = "a table of a test")]
    pub(crate) fn rows_of_parts(samples: &[(u32, &str, u64, bool, u64, &[f64])]) -> Rows {
        let rows = samples.iter().flat_map(|(partitions, noise, ms, cold, size, values)| {
            values.iter().map(move |value| {
                json!({
                    "transport": "shm", "pml": "ob1", "policy": "each", "partitions": partitions, "noise": noise,
                    "compute": format!("sleep:{}", ms * 1000), "cold_cache": cold, "size": size, "x": value
                })
            })
        });
        Rows {
            all: rows.collect(),
            ..Rows::default()
        }
    }

    #[test]
    fn libraries_have_short_names() {
        for (library, name) in [
            ("MPICH Version: 5.0.2", "MPICH 5.0.2"),
            ("Open MPI v5.0.11, package: Open MPI x@y", "Open MPI 5.0.11"),
            (
                "Intel(R) MPI Library 2021.18 for Linux* OS",
                "Intel(R) MPI 2021.18",
            ),
            ("Tagwire 0.1.0 (commit 1)", "Tagwire 0.1.0"),
        ] {
            let rows = rows_of_units(&[("mpi", Some(library), "threads:1", &[1.0])]);
            assert_eq!(rows.places()[0].name(), name);
        }
    }

    #[test]
    fn launches_become_points() {
        let rows = rows(&[
            ("shm", "ob1", 8, &[3.0, 1.0, 2.0]),
            ("shm", "cm", 8, &[7.0]),
            ("mpi:/a", "", 8, &[9.0, 10.0]),
        ]);
        let point = rows.series("shm", Some("ob1"), "x")[&8];
        assert_eq!((point.min, point.median, point.max), (1.0, 2.0, 3.0));
        assert_eq!(rows.series("mpi:/a", None, "x")[&8].median, 9.5);
        assert!(rows.series("shm", Some("ob1"), "y").is_empty());
        assert_eq!(rows.transports(false), ["shm"]);
        assert_eq!(rows.transports(true), ["mpi:/a"]);
    }
}
