//! A line for each point, with its variables and the environment (RFC 4180). Read by pandas, R and gnuplot as it is.

use std::collections::BTreeSet;
use std::fmt::Write;

use crate::circumstances;
use crate::escape::csv;
use crate::model::{Plot, Point, Role, Series};
use crate::naming::FILE;
use crate::read::Results;
use crate::report::Report;

/// What is said of the file that a point comes from.
const ENVIRONMENT: [&str; 9] = [
    "host",
    "cpu_model",
    "kernel",
    "version",
    "commit",
    "binding",
    "launches",
    "seed",
    "settings",
];

/// Returns the text.
pub(super) fn write(report: &Report) -> String {
    let plots = || report.model.plots.iter();
    let series = || plots().flat_map(|plot| &plot.series);
    let mut variables: BTreeSet<&str> = series()
        .flat_map(|series| series.variables.keys().map(String::as_str))
        .collect();
    variables.extend(plots().map(|plot| plot.x.key()));
    variables.remove(FILE);
    let mut heads = vec!["test", "metric", "unit", "series", "role"];
    heads.extend(&variables);
    heads.extend([
        "median",
        "low",
        "high",
        "points_launches",
        "disturbed",
        "file",
        "measured",
    ]);
    heads.extend(ENVIRONMENT);
    heads.push("command");
    let mut text = line(heads.iter().map(|head| (*head).to_owned()));
    for plot in plots() {
        for series in &plot.series {
            for point in &series.points {
                text += &line(fields(report, plot, series, point, &variables).into_iter());
            }
        }
    }
    text
}

fn fields(
    report: &Report,
    plot: &Plot,
    series: &Series,
    point: &Point,
    variables: &BTreeSet<&str>,
) -> Vec<String> {
    let results = source(report, series);
    let role = match series.role {
        Role::Base => "base",
        Role::Measured => "measured",
        Role::Published => "published",
    };
    let key_unit = plot.metric.unit.symbol();
    let mut fields = [
        &*plot.test,
        &*plot.metric.key,
        key_unit,
        &*series.name,
        role,
    ]
    .map(str::to_owned)
    .to_vec();
    fields.extend(variables.iter().map(|key| {
        if *key == plot.x.key() {
            return point.x.to_string();
        }
        series.variables.get(*key).cloned().unwrap_or_default()
    }));
    let estimate = point.estimate;
    fields.extend([estimate.median, estimate.min, estimate.max].map(|value| value.to_string()));
    fields.push(point.launches.to_string());
    fields.push(point.is_disturbed.to_string());
    let of_file = |results: &Results| {
        let mut told = vec![
            results.file.display().to_string(),
            circumstances::measured(results),
        ];
        told.extend(ENVIRONMENT.map(|key| results.circumstance(key)));
        told.push(results.command.clone());
        told
    };
    let nothing = || vec![String::new(); ENVIRONMENT.len() + 3];
    fields.extend(results.map_or_else(nothing, of_file));
    fields
}

/// The file that a series comes from; a published one comes from none.
fn source<'a>(report: &'a Report, series: &Series) -> Option<&'a Results> {
    match series.role {
        Role::Published => None,
        Role::Base => report.base.as_ref(),
        Role::Measured => report.files.get(series.file),
    }
}

fn line(fields: impl Iterator<Item = String>) -> String {
    let mut text = String::new();
    for (place, field) in fields.enumerate() {
        let comma = if place == 0 { "" } else { "," };
        let _ = write!(text, "{comma}{}", csv(&field));
    }
    text + "\n"
}
