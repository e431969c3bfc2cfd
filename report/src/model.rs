//! The model: plots of series of points with intervals. Everything that is written comes from it.

use std::collections::BTreeMap;

use tagwire_bench::{Launches, Summary, main_quantity};

use crate::error::{Error, Result};
use crate::metric::Metric;
use crate::naming::{FILE, Variables, names, number, shared};
use crate::read::{Results, Row, SIZE};
use crate::words::capitalized;

/// All plots of some files.
#[derive(Debug, Clone)]
pub struct Model {
    /// By test, each with its main metric first.
    pub plots: Vec<Plot>,
}

/// One metric of one test.
#[derive(Debug, Clone)]
pub struct Plot {
    /// Its name among the plots: lower-case letters, digits and dashes.
    pub id: String,
    /// The benchmark.
    pub test: String,
    /// What was measured.
    pub metric: Metric,
    /// Whether it is what the test is about.
    pub is_main: bool,
    /// What varies along the axis.
    pub x: Variable,
    /// The variables that are the same in all series.
    pub shared: Vec<(String, String)>,
    /// A value that a line is drawn at.
    pub reference: Option<f64>,
    /// What is drawn: the new results' series before those of the base.
    pub series: Vec<Series>,
}

/// What varies along the axis of a plot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable(String);

/// Where a series comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The results that are reported.
    Measured,
    /// What they are compared with.
    Base,
}

/// Points that belong together.
#[derive(Debug, Clone)]
pub struct Series {
    /// Its name, which no other series of the plot has.
    pub name: String,
    /// Where it comes from.
    pub role: Role,
    /// The file that it comes from, by its place; of the base's 0.
    pub file: usize,
    /// Its variables, without that of the axis.
    pub variables: Variables,
    /// Which colour and marker it has: a series and its base have the same.
    pub slot: usize,
    /// Of a series of the base: the series, by place, that it is compared with. Of others: the same, the other way.
    pub counterpart: Option<usize>,
    /// By `x`, which rises.
    pub points: Vec<Point>,
}

/// A figure with its interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Point {
    /// The value of the variable.
    pub x: f64,
    /// The median, and where the figure lies if it is measured again.
    pub estimate: Summary,
    /// How many launches there were.
    pub launches: usize,
    /// Other processes ran beside half of them or more.
    pub is_disturbed: bool,
}

/// What is asked of a model.
#[derive(Debug, Clone, Default)]
pub struct Selection {
    /// The variable along the axis, where it is not to be chosen.
    pub x: Option<String>,
    /// The keys of the metrics; empty for all.
    pub metrics: Vec<String>,
}

impl Model {
    /// Makes the plots of `files`, with the series of `base` beside theirs.
    ///
    /// # Errors
    /// [`Error::Usage`] where no row has a variable or a metric that is asked for.
    pub fn of(files: &[Results], base: Option<&Results>, selection: &Selection) -> Result<Self> {
        let labels = labels(files);
        let mut sources: Vec<Source> = files
            .iter()
            .zip(&labels)
            .enumerate()
            .map(|(number, (results, label))| Source {
                results,
                number,
                role: Role::Measured,
                label: (files.len() > 1).then(|| label.clone()),
            })
            .collect();
        sources.extend(base.map(|results| Source {
            results,
            number: files.len(),
            role: Role::Base,
            label: None,
        }));
        let mut tests: Vec<&str> = Vec::new();
        for results in files {
            if !tests.contains(&results.test.as_str()) {
                tests.push(&results.test);
            }
        }
        let mut plots: Vec<Plot> = Vec::new();
        for test in tests {
            let of_test: Vec<&Source> = sources
                .iter()
                .filter(|source| source.results.test == test)
                .collect();
            plots.extend(plots_of(test, &of_test, selection)?);
        }
        if plots.is_empty() {
            return Err(no_metric(files, &selection.metrics));
        }
        make_unique(&mut plots);
        Ok(Self { plots })
    }

    /// Returns the tests, in the order of the files.
    #[must_use]
    pub fn tests(&self) -> Vec<&str> {
        let mut tests: Vec<&str> = self.plots.iter().map(|plot| plot.test.as_str()).collect();
        tests.dedup();
        tests
    }
}

impl Plot {
    /// Returns the title: the test, and the metric where it is not the test's own.
    #[must_use]
    pub fn title(&self) -> String {
        let test = self.test.replace('-', " ");
        let name = &self.metric.name;
        if name.to_lowercase().starts_with(&test.to_lowercase()) {
            return capitalized(name);
        }
        format!("{}: {}", capitalized(&test), name.to_lowercase())
    }

    /// Returns what all series have in common, in words.
    #[must_use]
    pub fn caption(&self) -> String {
        let told = self
            .shared
            .iter()
            .map(|(key, value)| crate::naming::told(key, value));
        told.collect::<Vec<_>>().join(", ")
    }

    /// Returns every value of the variable, rising.
    #[must_use]
    pub fn xs(&self) -> Vec<f64> {
        let mut xs: Vec<f64> = self
            .series
            .iter()
            .flat_map(|series| series.points.iter().map(|point| point.x))
            .collect();
        xs.sort_by(f64::total_cmp);
        xs.dedup();
        xs
    }

    /// Whether there is one value of the variable: series stand side by side, without lines.
    #[must_use]
    pub fn is_single(&self) -> bool {
        self.xs().len() == 1
    }

    /// Returns the series of the new results, each with its place.
    pub fn measured(&self) -> impl Iterator<Item = (usize, &Series)> {
        self.series
            .iter()
            .enumerate()
            .filter(|(_, series)| series.role == Role::Measured)
    }
}

impl Variable {
    /// Returns the variable with this key.
    #[must_use]
    pub fn named(key: &str) -> Self {
        Self(key.to_owned())
    }

    /// Returns its key in the rows.
    #[must_use]
    pub fn key(&self) -> &str {
        &self.0
    }

    /// Whether its values are bytes.
    #[must_use]
    pub fn is_bytes(&self) -> bool {
        self.0 == SIZE
    }

    /// Returns its name, as an axis has it.
    #[must_use]
    pub fn title(&self) -> String {
        match self.0.as_str() {
            SIZE => "Message size".to_owned(),
            "posted" => "Posted receives ahead".to_owned(),
            "unexpected" => "Unexpected messages ahead".to_owned(),
            "threads" => "Threads of a rank".to_owned(),
            other => capitalized(&other.replace('_', " ")),
        }
    }

    /// Returns one of its values, as a table has it.
    #[must_use]
    pub fn value(&self, value: f64) -> String {
        if self.is_bytes() {
            crate::number::bytes(value)
        } else {
            crate::number::plain(value)
        }
    }
}

impl Series {
    /// Returns its point at `x`.
    #[must_use]
    pub fn at(&self, x: f64) -> Option<&Point> {
        self.points.iter().find(|point| point.x == x)
    }
}

/// A file and what it is for.
#[derive(Debug)]
struct Source<'a> {
    results: &'a Results,
    /// Its place among the files.
    number: usize,
    role: Role,
    /// Its name, where it needs one.
    label: Option<String>,
}

/// Returns a short name for each file: its stem, or the whole path where two have the same stem.
#[must_use]
pub fn labels(files: &[Results]) -> Vec<String> {
    let stem = |results: &Results| {
        let stem = results.file.file_stem().unwrap_or(results.file.as_os_str());
        stem.to_string_lossy().into_owned()
    };
    let stems: Vec<String> = files.iter().map(stem).collect();
    let is_double = |stem: &String| stems.iter().filter(|other| *other == stem).count() > 1;
    let named = files.iter().zip(&stems).map(|(results, stem)| {
        if is_double(stem) {
            results.file.display().to_string()
        } else {
            stem.clone()
        }
    });
    named.collect()
}

/// The launches of a series, by the bits of `x`: values of a file are whole, or written the same way.
type Cases = BTreeMap<u64, Launches>;

/// A series while its rows come.
struct Gathered<'a> {
    role: Role,
    variables: Variables,
    /// Where its transport stands in the command.
    place: (usize, usize),
    rows: Vec<&'a Row>,
}

fn plots_of(test: &str, sources: &[&Source], selection: &Selection) -> Result<Vec<Plot>> {
    let rows = || sources.iter().flat_map(|source| &source.results.rows);
    let x = match &selection.x {
        Some(asked) if rows().any(|row| number_of(row, asked).is_some()) => asked.clone(),
        Some(asked) => return Err(no_variable(test, asked, rows())),
        None => chosen_x(rows()),
    };
    let gathered = gather(sources, &x);
    let mut keys: Vec<&str> = rows()
        .flat_map(|row| row.figures.keys().map(String::as_str))
        .collect();
    keys.sort_unstable();
    keys.dedup();
    let main = main_quantity(test).key();
    let mut metrics = Metric::among(&keys);
    metrics
        .retain(|metric| selection.metrics.is_empty() || selection.metrics.contains(&metric.key));
    metrics.sort_by_key(|metric| metric.key != main);
    let plots = metrics.into_iter().map(|metric| {
        let is_main = metric.key == main;
        plot(test, metric, is_main, &x, &gathered)
    });
    Ok(plots.collect())
}

/// Sizes where there are several, else the number that takes most values.
fn chosen_x<'a>(rows: impl Iterator<Item = &'a Row> + Clone) -> String {
    let mut values: BTreeMap<&str, Vec<u64>> = BTreeMap::new();
    for row in rows {
        for key in row.variables.keys() {
            if let Some(number) = number_of(row, key) {
                let seen = values.entry(key).or_default();
                if !seen.contains(&number.to_bits()) {
                    seen.push(number.to_bits());
                }
            }
        }
    }
    let count = |key: &str| values.get(key).map_or(0, Vec::len);
    let most = values
        .keys()
        .copied()
        .max_by_key(|key| (count(key), *key == SIZE));
    match most {
        Some(key) if count(SIZE) < 2 && count(key) > 1 => key.to_owned(),
        _ => SIZE.to_owned(),
    }
}

fn number_of(row: &Row, key: &str) -> Option<f64> {
    let number: f64 = row.variables.get(key)?.parse().ok()?;
    number.is_finite().then_some(number)
}

/// The series, in the order of the command, and the base's behind the others.
fn gather<'a>(sources: &[&'a Source], x: &str) -> Vec<Gathered<'a>> {
    let mut all: Vec<Gathered> = Vec::new();
    for source in sources {
        for row in &source.results.rows {
            let mut variables = row.variables.clone();
            variables.remove(x);
            if let Some(label) = &source.label {
                variables.insert(FILE.to_owned(), label.clone());
            }
            let is_known =
                |known: &&mut Gathered| known.role == source.role && known.variables == variables;
            if let Some(known) = all.iter_mut().find(is_known) {
                known.rows.push(row);
                continue;
            }
            all.push(Gathered {
                role: source.role,
                place: (source.number, source.results.place(&variables)),
                variables,
                rows: vec![row],
            });
        }
    }
    all.sort_by_key(|series| (series.role == Role::Base, series.place));
    all
}

fn plot(test: &str, metric: Metric, is_main: bool, x: &str, gathered: &[Gathered]) -> Plot {
    let cases = gathered
        .iter()
        .map(|series| (series, cases(series, x, &metric)));
    let there: Vec<(&Gathered, Cases)> = cases.filter(|(_, cases)| !cases.is_empty()).collect();
    let variables: Vec<&Variables> = there.iter().map(|(series, _)| &series.variables).collect();
    let new = there
        .iter()
        .filter(|(series, _)| series.role == Role::Measured)
        .count();
    let counterparts = counterparts(&variables, new);
    let names = distinct_names(&variables, new, &counterparts);
    let mut free = new;
    let series = there
        .iter()
        .zip(names)
        .enumerate()
        .map(|(place, ((series, cases), name))| {
            let counterpart = counterparts[place];
            let slot = match (series.role, counterpart) {
                (Role::Measured, _) => place,
                (Role::Base, Some(new)) => new,
                (Role::Base, None) => {
                    free += 1;
                    free - 1
                }
            };
            Series {
                name,
                role: series.role,
                file: if series.role == Role::Base {
                    0
                } else {
                    series.place.0
                },
                variables: series.variables.clone(),
                slot,
                counterpart,
                points: points(cases),
            }
        });
    let mut plot = Plot {
        id: slug(&format!("{test}-{}", metric.key)),
        test: test.to_owned(),
        is_main,
        reference: None,
        x: Variable::named(x),
        shared: shared(&variables, FILE),
        series: series.collect(),
        metric,
    };
    if let [only] = plot.xs()[..]
        && only != NOTHING
    {
        plot.shared.insert(0, (x.to_owned(), only.to_string()));
    }
    plot
}

/// The place of rows that lack the variable of the axis.
const NOTHING: f64 = -1.0;

fn cases(series: &Gathered, x: &str, metric: &Metric) -> Cases {
    let mut cases = Cases::new();
    for row in &series.rows {
        let Some(&median) = row.figures.get(&metric.key) else {
            continue;
        };
        let bound = |key: &String| row.figures.get(key).copied().unwrap_or(median);
        let blocks = Summary {
            median,
            min: bound(&metric.bounds.0).min(median),
            max: bound(&metric.bounds.1).max(median),
        };
        let x = number_of(row, x).unwrap_or(NOTHING);
        cases
            .entry(x.to_bits())
            .or_default()
            .add(blocks, row.is_disturbed);
    }
    cases
}

fn points(cases: &Cases) -> Vec<Point> {
    let point = |(bits, launches): (&u64, &Launches)| {
        Some(Point {
            x: f64::from_bits(*bits),
            estimate: launches.estimate()?,
            launches: launches.count(),
            is_disturbed: launches.is_disturbed(),
        })
    };
    let mut points: Vec<Point> = cases.iter().filter_map(point).collect();
    points.sort_by(|a, b| a.x.total_cmp(&b.x));
    points
}

/// Which series belong together, `new` ones and those of the base behind them. The version of a library that a
/// transport of ours uses tells only where there are several, as for `tagwire compare`; the file never does.
fn counterparts(all: &[&Variables], new: usize) -> Vec<Option<usize>> {
    let without = |variables: &Variables, keys: &[&str]| {
        let mut variables = variables.clone();
        variables.retain(|key, _| !keys.contains(&key.as_str()));
        variables
    };
    let mut found = vec![None; all.len()];
    for exact in [true, false] {
        for base in new..all.len() {
            let ignored: &[&str] = match all[base].get("transport").map(String::as_str) {
                Some("mpi") => &[FILE],
                _ if exact => &[FILE],
                _ => &[FILE, "library"],
            };
            let wanted = without(all[base], ignored);
            let fits =
                |place: &usize| found[*place].is_none() && without(all[*place], ignored) == wanted;
            let fitting: Vec<usize> = (0..new).filter(fits).collect();
            if found[base].is_some() || fitting.is_empty() || (!exact && fitting.len() > 1) {
                continue;
            }
            found[base] = fitting.first().copied();
            for place in fitting {
                found[place] = Some(base);
            }
        }
    }
    found
}

/// A name for each, the base's with a word behind it.
fn distinct_names(all: &[&Variables], new: usize, counterparts: &[Option<usize>]) -> Vec<String> {
    let mut own: Vec<&Variables> = all[..new].to_vec();
    let mut named_as: Vec<usize> = (0..new).collect();
    for base in new..all.len() {
        match counterparts[base] {
            // By the name of what it is compared with, unless several files are.
            Some(place) if !all[place].contains_key(FILE) => named_as.push(place),
            _ => {
                let place = own.iter().position(|known| *known == all[base]);
                named_as.push(place.unwrap_or(own.len()));
                if place.is_none() {
                    own.push(all[base]);
                }
            }
        }
    }
    let names = names(&own);
    let with_role = |(place, named): (usize, &usize)| {
        let suffix = if place < new { "" } else { " (base)" };
        format!("{}{suffix}", names[*named])
    };
    let mut all: Vec<String> = named_as.iter().enumerate().map(with_role).collect();
    number(&mut all);
    all
}

/// What can stand in a file's name and in an id.
fn slug(text: &str) -> String {
    let letters = text
        .chars()
        .map(|letter| match letter.to_ascii_lowercase() {
            letter @ ('a'..='z' | '0'..='9') => letter,
            _ => '-',
        });
    letters.take(60).collect()
}

fn make_unique(plots: &mut [Plot]) {
    for place in 1..plots.len() {
        let (before, rest) = plots.split_at_mut(place);
        if before.iter().any(|plot| plot.id == rest[0].id) {
            rest[0].id = format!("{}-{place}", rest[0].id);
        }
    }
}

fn no_variable<'a>(test: &str, asked: &str, rows: impl Iterator<Item = &'a Row>) -> Error {
    let mut known: Vec<&str> = rows
        .flat_map(|row| {
            row.variables
                .keys()
                .filter(|key| number_of(row, key).is_some())
        })
        .map(String::as_str)
        .collect();
    known.sort_unstable();
    known.dedup();
    Error::Usage(format!(
        "no row of {test} has a number '{asked}' (--x): there are {}",
        known.join(", ")
    ))
}

fn no_metric(files: &[Results], asked: &[String]) -> Error {
    let rows = files.iter().flat_map(|results| &results.rows);
    let mut keys: Vec<&str> = rows
        .flat_map(|row| row.figures.keys().map(String::as_str))
        .collect();
    keys.sort_unstable();
    keys.dedup();
    let known: Vec<String> = Metric::among(&keys)
        .into_iter()
        .map(|metric| metric.key)
        .collect();
    Error::Usage(format!(
        "no row has '{}' (--metric): there are {}",
        asked.join("', '"),
        known.join(", ")
    ))
}
