//! From results to the model: which rows are a series, and what lies along the axis.

use std::collections::BTreeMap;

use tagwire_bench::{Launches, Summary, quantity_of_row};

use crate::draw::style::COLOURS;
use crate::error::{Error, Result};
use crate::join::{counterparts, distinct_names};
use crate::matching::{self, Panel};
use crate::metric::Metric;
use crate::model::{Model, Plot, Point, Role, Series, Variable};
use crate::naming::{FILE, Naming, Variables, axis, shared};
use crate::read::{Results, Row, labels};

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
        let mut all: Vec<(Vec<&Source>, Gathering)> = Vec::new();
        for test in tests {
            let of_test: Vec<&Source> = sources
                .iter()
                .filter(|source| source.results.test == test)
                .collect();
            for panel in panels(gathering(test, &of_test, selection)?) {
                all.push((of_test.clone(), panel));
            }
        }
        let naming = naming(all.iter().map(|(_, gathering)| gathering));
        let plots = all
            .iter()
            .flat_map(|(of_test, gathering)| plots_of(gathering, of_test, selection, &naming));
        let mut plots: Vec<Plot> = plots.collect();
        if plots.is_empty() {
            return Err(no_metric(files, &selection.metrics));
        }
        make_unique(&mut plots);
        give_slots(&mut plots);
        Ok(Self { plots })
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

/// A test, while its rows come.
struct Gathering<'a> {
    test: &'a str,
    /// The variable along the axis.
    x: String,
    /// Which part of the series it has, where they are too many for one plot.
    panel: Option<String>,
    series: Vec<Gathered<'a>>,
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

fn gathering<'a>(
    test: &'a str,
    sources: &[&'a Source],
    selection: &Selection,
) -> Result<Gathering<'a>> {
    let rows = || sources.iter().flat_map(|source| &source.results.rows);
    let x = match &selection.x {
        Some(asked) if rows().any(|row| number_of(row, asked).is_some()) => asked.clone(),
        Some(asked) => return Err(no_variable(test, asked, rows())),
        None => axis(rows().map(|row| &row.variables)),
    };
    let series = gather(sources, &x);
    Ok(Gathering {
        test,
        x,
        panel: None,
        series,
    })
}

/// Splits what has more series than there are colours, in the ways of its test, one after the other until none has.
fn panels(all: Gathering) -> Vec<Gathering> {
    let ways = matching::panels(all.test);
    ways.fold(vec![all], |panels, way| {
        let split = panels.into_iter().flat_map(|one| {
            let measured = one.series.iter();
            let measured = measured.filter(|series| series.role == Role::Measured);
            match measured.count() > COLOURS.len() {
                true => split(one, way),
                false => vec![one],
            }
        });
        split.collect()
    })
}

/// A gathering for each panel, in the order of the series.
fn split(whole: Gathering, way: Panel) -> Vec<Gathering> {
    let mut panels: Vec<(Option<String>, Gathering)> = Vec::new();
    for series in whole.series {
        let own = way.of(&series.variables);
        let known = panels.iter_mut().find(|(known, _)| *known == own);
        if let Some((_, panel)) = known {
            panel.series.push(series);
            continue;
        }
        let names = [whole.panel.clone(), own.clone()];
        let names: Vec<String> = names.into_iter().flatten().collect();
        let panel = Gathering {
            test: whole.test,
            x: whole.x.clone(),
            panel: (!names.is_empty()).then(|| names.join(", ")),
            series: vec![series],
        };
        panels.push((own, panel));
    }
    panels.into_iter().map(|(_, panel)| panel).collect()
}

fn plots_of(
    gathering: &Gathering,
    sources: &[&Source],
    selection: &Selection,
    naming: &Naming,
) -> Vec<Plot> {
    let rows = || sources.iter().flat_map(|source| &source.results.rows);
    let test = gathering.test;
    let mut keys: Vec<&str> = rows()
        .flat_map(|row| row.figures.keys().map(String::as_str))
        .collect();
    keys.sort_unstable();
    keys.dedup();
    let has = |key: &str| keys.contains(&key);
    let main = match matching::main_key(test, has) {
        Some(key) => key.to_owned(),
        None => quantity_of_row(test, has).key(),
    };
    let mut metrics = Metric::among(&keys);
    metrics
        .retain(|metric| selection.metrics.is_empty() || selection.metrics.contains(&metric.key));
    metrics.sort_by_key(|metric| metric.key != main);
    let plots = metrics.into_iter().map(|metric| {
        let is_main = metric.key == main;
        plot(gathering, metric, is_main, naming)
    });
    plots.collect()
}

fn number_of(row: &Row, key: &str) -> Option<f64> {
    crate::naming::number_of(&row.variables, key)
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

fn plot(gathering: &Gathering, metric: Metric, is_main: bool, naming: &Naming) -> Plot {
    let (test, x) = (gathering.test, &*gathering.x);
    let cases = gathering
        .series
        .iter()
        .map(|series| (series, cases(series, x, &metric)));
    let there: Vec<(&Gathered, Cases)> = cases.filter(|(_, cases)| !cases.is_empty()).collect();
    let variables: Vec<&Variables> = there.iter().map(|(series, _)| &series.variables).collect();
    let new = there
        .iter()
        .filter(|(series, _)| series.role == Role::Measured)
        .count();
    let counterparts = counterparts(&variables, new);
    let names = distinct_names(naming, &variables, new, &counterparts);
    let series = there
        .iter()
        .zip(names)
        .enumerate()
        .map(|(place, ((series, cases), name))| {
            let counterpart = counterparts[place];
            Series {
                name,
                role: series.role,
                file: if series.role == Role::Base {
                    0
                } else {
                    series.place.0
                },
                variables: series.variables.clone(),
                slot: 0,
                counterpart,
                points: points(cases),
            }
        });
    let mut plot = Plot {
        id: slug(&match &gathering.panel {
            Some(panel) => format!("{test}-{}-{panel}", metric.key),
            None => format!("{test}-{}", metric.key),
        }),
        test: test.to_owned(),
        panel: gathering.panel.clone(),
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

/// How series are called in all plots. Those of a base have the names of the series that they belong to.
fn naming<'a>(all: impl Iterator<Item = &'a Gathering<'a>>) -> Naming {
    let tests = all.map(|gathering| {
        let variables: Vec<&Variables> =
            gathering.series.iter().map(|one| &one.variables).collect();
        let is_new = |series: &&Gathered| series.role == Role::Measured;
        let new = gathering.series.iter().filter(is_new).count();
        let counterparts = counterparts(&variables, new);
        let places =
            (0..variables.len()).filter(|place| *place < new || counterparts[*place].is_none());
        places.map(|place| variables[place]).collect()
    });
    Naming::of(&tests.collect::<Vec<_>>())
}

/// Gives each series its colour and marker: the same in all plots, and to a base those of the series that it belongs to.
fn give_slots(plots: &mut [Plot]) {
    let mut known: Vec<String> = Vec::new();
    let mut slot_of = |name: &String| {
        let place = known.iter().position(|known| known == name);
        place.unwrap_or_else(|| {
            known.push(name.clone());
            known.len() - 1
        })
    };
    for role in [Role::Measured, Role::Base] {
        for plot in plots.iter_mut() {
            for place in 0..plot.series.len() {
                let series = &plot.series[place];
                if series.role == role {
                    let own = series.counterpart.filter(|_| role == Role::Base);
                    let slot = own.map(|new| plot.series[new].slot);
                    plot.series[place].slot =
                        slot.unwrap_or_else(|| slot_of(&plot.series[place].name));
                }
            }
        }
    }
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
