//! Runs that are measured by turns, and the cells of tables that their rows are.

use serde::Deserialize;
use serde_json::Value;
use tagwire_bench::number::bytes;

use crate::rows::{Place, is_peer, tool};
use crate::run::{OVER_TCP, Run};

/// A run of `tagwire bench` on several transports, each of which is started once in each round.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Turn {
    /// The test and its options.
    bench: String,
    /// Transports, each with options of its own behind it. `{peers}`, `{peers-tcp}` and the name of a tool in braces stand for
    /// those among the transports of the command.
    on: Vec<String>,
    /// Which table its rows are in; keys of rows in braces.
    #[serde(default)]
    pub(crate) table: String,
    /// Which line they are in.
    pub(crate) line: String,
    /// Which column our own rows are in; of others it is their name.
    #[serde(default = "own")]
    column: String,
    /// What columns of ratios go by: `best`, or the column that the others are divided by.
    #[serde(default)]
    pub(crate) ratio: String,
    /// Whether a table of several machines has its lines.
    #[serde(default)]
    pub(crate) chief: bool,
    /// Whether it is about what `--advise` says, and not about rows.
    #[serde(default)]
    pub(crate) advice: bool,
    /// Keys of figures, each with a title behind a colon where it is shown.
    figures: Vec<String>,
    /// What figures are multiplied with where they are shown.
    #[serde(default = "one")]
    pub(crate) scale: f64,
}

fn own() -> String {
    "Tagwire".to_owned()
}

const fn one() -> f64 {
    1.0
}

impl Turn {
    /// Returns its runs on transports of its own, and on those of the command that it has a place for.
    pub(crate) fn runs(&self, number: usize, transports: &[String]) -> Vec<Run> {
        let of = |on: &String| {
            let (name, options) = on.split_once(' ').unwrap_or((on, ""));
            let place = name.strip_prefix('{').and_then(|it| it.split_once('}'));
            let names: Vec<String> = match place {
                None => vec![name.to_owned()],
                Some((kind, detail)) => {
                    let is_meant = |name: &&String| match kind {
                        "peers" | "peers-tcp" => is_peer(name),
                        kind => tool(name) == Some(kind),
                    };
                    let meant = transports.iter().filter(is_meant);
                    meant.map(|name| name.clone() + detail).collect()
                }
            };
            let environment = match place {
                Some(("peers-tcp", _)) => OVER_TCP,
                _ => &[],
            };
            let run = move |name: String| Run {
                arguments: self
                    .bench
                    .split_whitespace()
                    .chain(["-t", &name])
                    .chain(options.split_whitespace())
                    .chain(["--timeout", "300", "--launches", "1"])
                    .map(str::to_owned)
                    .collect(),
                environment,
                turn: Some(number),
                is_own: place.is_none(),
            };
            names.into_iter().map(run).collect::<Vec<_>>()
        };
        self.on.iter().flat_map(of).collect()
    }

    /// Returns its figures: keys and titles.
    pub(crate) fn figures(&self) -> impl Iterator<Item = (&str, &str)> {
        let figures = self.figures.iter();
        figures.map(|figure| figure.split_once(": ").unwrap_or((figure, "")))
    }

    /// Returns the column that a row's figure is in.
    pub(crate) fn column(&self, row: &Value, figure: &str, build: &str) -> String {
        let place = Place::of(row).filter(Place::is_foreign);
        match place {
            Some(place) if !self.column.contains("{figure}") => place.name(),
            place => {
                let column = filled(&self.column, row, figure);
                match (build, place) {
                    ("", _) | (_, Some(_)) => column,
                    (build, None) => format!("{column}, {build}"),
                }
            }
        }
    }
}

/// Returns a text with what a row has for the keys in its braces: `{size}` with its unit, `{place}` as the short name of what
/// carried the messages, `{figure}` as the title of the figure.
pub(crate) fn filled(text: &str, row: &Value, figure: &str) -> String {
    let Some((before, rest)) = text.split_once('{') else {
        return text.to_owned();
    };
    let (key, rest) = rest.split_once('}').unwrap_or((rest, ""));
    let value = match (key, &row[key]) {
        ("figure", _) => filled(figure, row, ""),
        ("place", _) => Place::of(row).map_or_else(String::new, |place| place.name()),
        ("size", size) => bytes(size.as_u64().unwrap_or(0) as f64),
        (_, Value::String(text)) => text.clone(),
        (_, Value::Null) => String::new(),
        (_, value) => value.to_string(),
    };
    format!("{before}{value}{}", filled(rest, row, figure))
}
