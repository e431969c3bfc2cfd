//! The rows of results, as series over sizes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};
use tagwire_bench::{Summary, is_foreign, line_transfer};

use crate::answer::quotient;
use crate::choice::Choice;
use crate::known::{Known, simulated};
use crate::on::{On, STANDS_FOR};
use crate::run::Run;

/// The rows of several results.
#[derive(Debug, Default)]
pub struct Rows {
    all: Vec<Value>,
    /// How many runs they are of.
    runs: usize,
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
    /// Whether a library was told to use TCP on one host.
    is_over_tcp: bool,
    /// What here stands for it: of a simulated machine.
    stands_for: Option<String>,
}

impl Place {
    pub(crate) fn of(row: &Value) -> Option<Self> {
        let transport = text(row, "transport")?.to_owned();
        let of = |key| text(row, key).map(str::to_owned);
        Some(Self {
            // What a transport of ours stands on is in its name.
            library: of("library").filter(|_| is_foreign(&transport)),
            pml: of("pml"),
            is_over_tcp: row[OVER_TCP].as_bool().unwrap_or(false),
            stands_for: of(STANDS_FOR),
            transport,
        })
    }

    /// Whether what carried them is none of ours.
    pub(crate) fn is_foreign(&self) -> bool {
        is_foreign(&self.transport)
    }

    /// Whether a layer of ours has matched the messages.
    pub(crate) fn is_of(&self, layer: &str) -> bool {
        !self.is_foreign() && self.pml.as_deref() == Some(layer)
    }

    /// Whether it is a simulated machine.
    pub(crate) fn is_simulated(&self) -> bool {
        self.transport.starts_with(SIMULATED)
    }

    /// Returns how exactly its figures are known.
    pub(crate) fn known(&self) -> Known {
        match self.is_simulated() {
            true => Known::Simulated,
            false => Known::Measured,
        }
    }

    /// Whether it is shared memory of ours.
    pub(crate) fn is_shared(&self) -> bool {
        self.transport.starts_with("shm")
    }

    /// Whether messages went over a network, or a library was told to use one. A simulated machine is what stands for it here.
    pub(crate) fn is_network(&self) -> bool {
        match (self.is_foreign(), self.stands_for.as_deref()) {
            (true, _) => self.is_over_tcp,
            (false, Some(of)) => of == On::Network.name(),
            (false, None) => !self.is_shared(),
        }
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
                let name = words[..end.map_or(words.len(), |end| end + 1)].join(" ");
                match self.is_over_tcp {
                    true => name + " over TCP",
                    false => name,
                }
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
    pub fn add(&mut self, mut results: Map<String, Value>, run: &Run, build: &str) {
        let mut rows = |key: &str| match results.remove(key) {
            Some(Value::Array(rows)) => rows,
            _ => Vec::new(),
        };
        let Some(turn) = run.turn else {
            self.add_stored(rows("rows"), run.is_over_tcp());
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

    /// Adds rows of a run that an outcome has stored.
    pub(crate) fn add_stored(&mut self, rows: Vec<Value>, is_over_tcp: bool) {
        self.runs += 1;
        let run = self.runs;
        let marked = rows.into_iter().map(|mut row| {
            row[RUN] = run.into();
            if is_over_tcp {
                row[OVER_TCP] = Value::Bool(true);
            }
            row
        });
        self.all.extend(marked);
    }

    /// Adds the rows of another item, whose units are named with its name before theirs.
    pub fn add_other(&mut self, item: &str, other: &Self) {
        let of = other.all.iter().filter(|row| row[ITEM].is_null());
        self.all.extend(of.map(|row| {
            let mut row = row.clone();
            row[ITEM] = item.into();
            row
        }));
    }

    /// Returns them with a figure as it is where there is no effect.
    pub(crate) fn without_effect(&self, figure: &str, value: f64) -> Self {
        let all = self.all.iter().map(|row| {
            let mut row = row.clone();
            if row[figure].is_number() {
                row[figure] = value.into();
            }
            row
        });
        Self {
            all: all.collect(),
            ..Self::default()
        }
    }

    /// Returns those whose launches had the ranks' CPUs placed to each other as most of those with a figure had, of each place by itself
    /// or of all together. Figures of other placings do not compare. All are left where none has most of them, and of each series, which
    /// intervals show; `None` where that is so everywhere.
    pub(crate) fn of_one_placing(&self, figure: &str, by_place: bool) -> Option<Self> {
        let placing = |row: &Value| line_transfer::placing(|name| row[name].as_f64());
        let place = |row: &Value| match by_place {
            true => Place::of(row).map(|place| place.name()),
            false => None,
        };
        let mut counts: BTreeMap<_, BTreeMap<&str, usize>> = BTreeMap::new();
        let rows = self.all.iter().filter(|row| row[figure].is_number());
        for (row, placing) in rows.filter_map(|row| Some((row, placing(row)?))) {
            let of_place = counts.entry(place(row)).or_default();
            *of_place.entry(placing).or_default() += 1;
        }
        let mut most: BTreeMap<_, &str> = counts
            .into_iter()
            .filter_map(|(place, counts)| {
                let all: usize = counts.values().sum();
                let most = counts.into_iter().find(|(_, count)| count * 2 > all)?;
                (most.1 < all).then_some((place, most.0))
            })
            .collect();
        // Nor may one launch of many stand for a series.
        let mut kept: BTreeMap<_, [usize; 2]> = BTreeMap::new();
        let rows = self.all.iter().filter(|row| row[figure].is_number());
        for (row, placing) in rows.filter_map(|row| Some((row, placing(row)?))) {
            let place = place(row);
            let is_kept = most.get(&place) == Some(&placing);
            let [some, all] = kept.entry((place, told_by(row))).or_default();
            *some += usize::from(is_kept);
            *all += 1;
        }
        most.retain(|place, _| {
            let of_place = kept.iter().filter(|((of, _), _)| of == place);
            of_place.into_iter().all(|(_, [some, all])| some * 2 > *all)
        });
        if most.is_empty() {
            return None;
        }
        let most = |row: &Value| most.get(&place(row)).copied();
        let is_meant = |row: &&Value| match (placing(row), most(row)) {
            (Some(found), Some(most)) => found == most,
            _ => true,
        };
        Some(Self {
            all: self.all.iter().filter(is_meant).cloned().collect(),
            ..Self::default()
        })
    }

    /// Returns the rows of the item itself.
    pub(crate) fn own(&self) -> impl Iterator<Item = &Value> {
        self.all.iter().filter(|row| row[ITEM].is_null())
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

    /// Whether all rows of the item are of a simulated machine.
    pub(crate) fn is_simulated(&self) -> bool {
        let places = self.places();
        !places.is_empty() && places.iter().all(Place::is_simulated)
    }

    /// Returns the places that rows are of, in their order.
    pub(crate) fn places(&self) -> Vec<Place> {
        let mut all = Vec::new();
        for place in self.own().filter_map(Place::of) {
            if !all.contains(&place) {
                all.push(place);
            }
        }
        all
    }

    /// Returns a figure over sizes of those rows of a place that have a unit, or something that makes progress. Behind the name of
    /// another item and a space it is a unit of that one.
    pub(crate) fn of_unit(&self, place: &Place, unit: &str, figure: &str) -> Series {
        series(self.with_unit(place, unit), figure)
    }

    /// Returns the ratio of two units at each size: of each launch where they share launches, otherwise of their intervals. Figures
    /// that are not above 0 have none.
    pub(crate) fn ratio(&self, place: &Place, of: &str, over: &str, figure: &str) -> Series {
        let rows = |unit| self.with_unit(place, unit).collect::<Vec<_>>();
        ratios(&rows(of), &rows(over), figure)
    }

    /// Returns a figure of those series that are beside a unit's: its own with other arrivals.
    pub(crate) fn beside_unit(&self, place: &Place, unit: &str, figure: &str) -> Vec<Series> {
        let of_place = self
            .own()
            .filter(|row| Place::of(row).as_ref() == Some(place));
        let names: BTreeSet<&str> = of_place
            .filter_map(|row| text(row, "series"))
            .filter(|name| name.split_once(BESIDE).is_some_and(|(of, _)| of == unit))
            .collect();
        let series = names.into_iter();
        series
            .map(|name| self.of_unit(place, name, figure))
            .collect()
    }

    fn with_unit<'r>(&'r self, place: &'r Place, unit: &str) -> impl Iterator<Item = &'r Value> {
        let (item, unit) = match unit.split_once(' ') {
            Some((item, unit)) => (Some(item.to_owned()), unit.to_owned()),
            None => (None, unit.to_owned()),
        };
        self.all.iter().filter(move |row| {
            text(row, ITEM) == item.as_deref()
                && UNITS.iter().any(|key| text(row, key) == Some(&*unit))
                && Place::of(row).as_ref() == Some(place)
        })
    }

    /// Returns a figure over sizes of all rows of a place.
    pub(crate) fn of_place(&self, place: &Place, figure: &str) -> Series {
        let is_meant = |row: &&Value| Place::of(row).as_ref() == Some(place);
        series(self.own().filter(is_meant), figure)
    }

    /// Returns the rows of a place that have a unit.
    pub(crate) fn of_place_and_unit<'r>(
        &'r self,
        place: &'r Place,
        unit: &'r str,
    ) -> impl Iterator<Item = &'r Value> {
        self.own().filter(move |row| {
            UNITS.iter().any(|key| text(row, key) == Some(unit))
                && Place::of(row).as_ref() == Some(place)
        })
    }

    /// Returns the units that rows of a place have, each once, in the order of names.
    pub(crate) fn units_at(&self, place: &Place) -> Vec<&str> {
        let of_place = self
            .own()
            .filter(|row| Place::of(row).as_ref() == Some(place));
        let units = of_place.flat_map(|row| UNITS.iter().filter_map(|key| text(row, key)));
        let units = units.filter(|unit| !unit.contains(BESIDE));
        units.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Returns the policies by which rows of a place aggregate partitions, in their order.
    pub(crate) fn policies(&self, place: &Place) -> Vec<&str> {
        let mut all = Vec::new();
        let of_place = |row: &&Value| Place::of(row).as_ref() == Some(place);
        for policy in self
            .own()
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
        series(self.with_parts(place, policy, of), figure)
    }

    /// Returns the ratio of two choices of partitioned operations, as [`ratio`](Self::ratio) does.
    pub(crate) fn ratio_of_parts(
        &self,
        place: &Place,
        policy: &str,
        [of, over]: [&Choice; 2],
        figure: &str,
    ) -> Series {
        let rows = |choice| self.with_parts(place, policy, choice).collect::<Vec<_>>();
        ratios(&rows(of), &rows(over), figure)
    }

    fn with_parts<'r>(
        &'r self,
        place: &'r Place,
        policy: &'r str,
        of: &'r Choice,
    ) -> impl Iterator<Item = &'r Value> {
        self.own().filter(move |row| {
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
        })
    }

    /// Returns the units that rows have, or what makes progress: fewer before more, processes before threads.
    pub(crate) fn units(&self) -> Vec<&str> {
        let of = |row| {
            ["progress", "unit", "series"]
                .iter()
                .find_map(|key| text(row, key))
        };
        let is_meant = |unit: &&str| !unit.contains(BESIDE);
        let mut all: Vec<&str> = self.own().filter_map(of).filter(is_meant).collect();
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

    /// Returns a figure over sizes of those rows on `transport` that `layer` matched.
    pub(crate) fn series(&self, transport: &str, layer: Option<&str>, figure: &str) -> Series {
        series(self.on(transport, layer), figure)
    }

    /// Returns the ratio of two layers on `transport`, as [`ratio`](Self::ratio) does.
    pub(crate) fn ratio_of_layers(
        &self,
        transport: &str,
        [of, over]: [&str; 2],
        figure: &str,
    ) -> Series {
        let rows = |layer| self.on(transport, Some(layer)).collect::<Vec<_>>();
        ratios(&rows(of), &rows(over), figure)
    }

    fn on<'r>(
        &'r self,
        transport: &'r str,
        layer: Option<&'r str>,
    ) -> impl Iterator<Item = &'r Value> {
        self.own().filter(move |row| {
            text(row, "transport") == Some(transport)
                && layer.is_none_or(|layer| text(row, "pml") == Some(layer))
        })
    }
}

/// What stands in names of series between a unit's and what else its rows have than those of the figure.
pub(crate) const BESIDE: &str = "~";

/// Keys of rows that name what a series is of.
const UNITS: [&str; 3] = ["unit", "progress", "series"];

/// The key of rows of another item.
const ITEM: &str = "of_item";

/// The key of rows of a library that was told to use TCP on one host.
const OVER_TCP: &str = "over_tcp";

fn series<'r>(rows: impl Iterator<Item = &'r Value>, figure: &str) -> Series {
    let mut values: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    let mut is_simulated = false;
    for row in rows {
        let size = row.get("size").and_then(Value::as_u64);
        let value = row.get(figure).and_then(Value::as_f64);
        if let (Some(size), Some(value)) = (size, value) {
            is_simulated |= is_of_simulation(row);
            values.entry(size).or_default().push(value);
        }
    }
    let points = values.into_iter().filter_map(|(size, values)| {
        let point = Summary::of(&values)?;
        let point = match is_simulated {
            true => simulated(point, figure),
            false => point,
        };
        Some((size, point))
    });
    points.collect()
}

/// The ratio of a figure of some rows over that of others.
fn ratios(of: &[&Value], over: &[&Value], figure: &str) -> Series {
    let whole = |rows: &[&Value]| series(rows.iter().copied(), figure);
    let (all_of, all_over) = (whole(of), whole(over));
    let paired = match of.iter().any(|row| is_of_simulation(row)) {
        // Its intervals are not those of launches.
        true => BTreeMap::new(),
        false => by_launch(of, over, figure),
    };
    let ratio = |(size, of): (&u64, &Summary)| {
        let over = all_over.get(size)?;
        if of.min <= 0.0 || over.min <= 0.0 {
            return None;
        }
        let of_launches = paired.get(size).and_then(|ratios| Summary::of(ratios));
        Some((*size, of_launches.unwrap_or_else(|| quotient(of, over))))
    };
    all_of.iter().filter_map(ratio).collect()
}

/// The ratios of launches that both have, by size.
fn by_launch(of: &[&Value], over: &[&Value], figure: &str) -> BTreeMap<u64, Vec<f64>> {
    let values = |rows: &[&Value]| {
        let mut values: BTreeMap<(u64, u64, u64), Vec<f64>> = BTreeMap::new();
        for row in rows {
            let number = |key: &str| row[key].as_u64();
            let launch = number("size").zip(number("launch")).zip(number(RUN));
            if let (Some(((size, launch), run)), Some(value)) = (launch, row[figure].as_f64()) {
                values.entry((size, run, launch)).or_default().push(value);
            }
        }
        values
    };
    let (of, over) = (values(of), values(over));
    let mut all: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for (launch, values) in of {
        let over = over.get(&launch).and_then(|values| Summary::of(values));
        if let (Some(of), Some(over)) = (Summary::of(&values), over) {
            all.entry(launch.0)
                .or_default()
                .push(of.median / over.median);
        }
    }
    all
}

/// What launches of a row's series are told by.
fn told_by(row: &Value) -> String {
    let keys = [
        ITEM,
        "transport",
        "library",
        "pml",
        OVER_TCP,
        "policy",
        "partitions",
        "noise",
        "compute",
        "cold_cache",
        "size",
    ];
    let all = UNITS.iter().chain(&keys).map(|key| row[*key].to_string());
    all.collect::<Vec<_>>().join(" ")
}

/// Whether a row is of a simulated machine.
fn is_of_simulation(row: &Value) -> bool {
    text(row, "transport").is_some_and(|transport| transport.starts_with(SIMULATED))
}

/// What transports of simulated machines begin with.
const SIMULATED: &str = "sim:";

/// The key of the number of the run that a row is of.
const RUN: &str = "run";

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

    /// Returns rows as they are.
    pub(crate) fn of_rows(all: Vec<Value>) -> Rows {
        Rows {
            all,
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
        assert_eq!(rows.series("mpi:/a", Some(""), "x")[&8].median, 9.5);
        assert!(rows.series("shm", Some("ob1"), "y").is_empty());
    }
}
