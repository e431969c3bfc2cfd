//! The page of a paper: what it claims, ours beside the published, and what a user should take from it.

use std::fmt::Write as _;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

use crate::compare::short;
use crate::error::{Error, Result};
use crate::item::all;
use crate::outcome::SCHEMA;

/// What a page says in words.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    name: String,
    title: String,
    paper: String,
    claims: Vec<String>,
    take: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pages {
    page: Vec<Words>,
}

fn words(name: &str) -> Result<&'static Words> {
    static PAGES: LazyLock<Vec<Words>> = LazyLock::new(|| {
        let pages: Pages = toml::from_str(include_str!("../data/pages.toml"))
            .expect("the words of pages are right");
        pages.page
    });
    let known = PAGES.iter().find(|page| page.name == name);
    known.ok_or_else(|| Error::NoPage(name.to_owned()))
}

/// Returns the page of a paper in Markdown, from the outcomes of its items, each as it was written to a file. `command` is how
/// it is made.
///
/// # Errors
/// [`Error::NoPage`] where there are no words for it; [`Error::NoOutcome`] where one is no outcome, or of another version.
pub fn page(name: &str, command: &str, outcomes: &[(String, String)]) -> Result<String> {
    let words = words(name)?;
    let mut out = format!("# {}\n\n{}.\n\n", words.title, words.paper);
    let _ = writeln!(
        out,
        "This page is made from stored results, by `{command}` in this folder. [benchmarking.md](../benchmarking.md) has the tests and the rules.\n"
    );
    for (title, list) in [
        ("What it claims", &words.claims),
        ("What to take from it", &words.take),
    ] {
        let _ = writeln!(out, "## {title}\n");
        for sentence in list {
            let _ = writeln!(out, "- {sentence}");
        }
        out.push('\n');
    }
    if !outcomes.is_empty() {
        out += "## Ours beside the published\n\nOther machines: ratios, orders and shapes are compared, and no absolute figures. \
            Intervals go from the least launch to the greatest.\n";
    }
    let mut measured = Vec::new();
    for (file, text) in outcomes {
        let no_outcome = |what: String| Error::NoOutcome {
            file: file.clone(),
            what,
        };
        let outcome: Value =
            serde_json::from_str(text).map_err(|error| no_outcome(error.to_string()))?;
        if outcome["schema"] != SCHEMA {
            return Err(no_outcome(format!("its schema is not {SCHEMA}")));
        }
        out += &section(&outcome);
        measured.push(word(&outcome, "name").to_owned());
    }
    out += &not_run(name, &measured);
    Ok(out)
}

/// The paper's items without an outcome, and why there is none.
fn not_run(paper: &str, measured: &[String]) -> String {
    let items = all().iter().filter(|item| item.paper() == paper);
    let mut lines = String::new();
    for item in items.filter(|item| !measured.contains(&item.name)) {
        let why = match (&item.why, item.needs) {
            (Some(why), needs) => format!("{}: {why}", needs.word()),
            (None, _) => "can be run; its outcome is not stored yet".to_owned(),
        };
        let (figure, shows) = (&item.figure, cell(&item.shows));
        let _ = writeln!(lines, "| {figure} | {shows} | {} |", cell(&why));
    }
    if lines.is_empty() {
        return lines;
    }
    format!("\n## Not run\n\n| item | what it shows | why |\n|---|---|---|\n{lines}")
}

fn word<'v>(value: &'v Value, key: &str) -> &'v str {
    value[key].as_str().unwrap_or_default()
}

fn list<'v>(value: &'v Value, key: &str) -> &'v [Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

/// Text as a cell of a table has it.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

fn section(outcome: &Value) -> String {
    let (figure, shows) = (word(outcome, "figure"), word(outcome, "shows"));
    let mut out = format!("\n### {figure}: {shows}\n\n");
    out += &measured(list(outcome, "measured"));
    let claims = list(outcome, "claims");
    let mut places: Vec<&str> = Vec::new();
    for judgement in claims.iter().flat_map(|claim| list(claim, "judgements")) {
        let on = word(judgement, "on");
        if !places.contains(&on) {
            places.push(on);
        }
    }
    places.sort_by_key(|on| (on.is_empty(), !on.contains('(')));
    let titles: Vec<String> = places
        .iter()
        .map(|on| {
            if on.is_empty() {
                "judged over libraries".to_owned()
            } else {
                cell(on)
            }
        })
        .collect();
    let _ = writeln!(out, "| claim | published | {} |", titles.join(" | "));
    let _ = writeln!(out, "|---|---|{}", "---|".repeat(places.len()));
    for claim in claims {
        let judged = |on: &&str| {
            let mut all = list(claim, "judgements").iter();
            let found = all.find(|one| word(one, "on") == *on);
            found.map_or_else(String::new, |one| {
                let evidence = word(one, "evidence").split("; ").next().unwrap_or_default();
                let verdict = word(one, "verdict").replace('-', " ");
                cell(&format!("{verdict}: {evidence}"))
            })
        };
        let (says, published) = (word(claim, "says"), word(claim, "published"));
        let cells: Vec<String> = places.iter().map(judged).collect();
        let _ = writeln!(
            out,
            "| {} | {} | {} |",
            cell(says),
            cell(published),
            cells.join(" | ")
        );
    }
    out.push('\n');
    for claim in claims {
        if let Some(reason) = claim["likely_reason"].as_str() {
            let says = word(claim, "says");
            let _ = writeln!(
                out,
                "- *{}* fails where it does, likely: {reason}",
                says.trim_end_matches('.')
            );
        }
    }
    let commands = list(outcome, "commands").iter().filter_map(Value::as_str);
    let commands: Vec<&str> = commands.collect();
    let _ = writeln!(out, "\n```sh\n{}\n```", commands.join("\n"));
    out
}

/// The tables of a figure's values: a line for each place, a column for each unit.
fn measured(all: &[Value]) -> String {
    let mut out = String::new();
    let distinct = |of: &dyn Fn(&Value) -> String| {
        let mut found: Vec<String> = Vec::new();
        for value in all.iter().map(of) {
            if !found.contains(&value) {
                found.push(value);
            }
        }
        found
    };
    let text = |key: &'static str| move |value: &Value| word(value, key).to_owned();
    let (places, units) = (distinct(&text("on")), distinct(&text("unit")));
    let of = |value: &Value| format!("`{}` at {} B", word(value, "figure"), value["size"]);
    for table in distinct(&of) {
        let _ = writeln!(out, "| {table} | {} |", units.join(" | "));
        let _ = writeln!(out, "|---|{}", "---|".repeat(units.len()));
        for place in &places {
            let value = |unit: &String| {
                let mut rows = all.iter();
                let found = rows.find(|row| {
                    of(row) == table && word(row, "on") == place && word(row, "unit") == unit
                });
                let number =
                    |row: &Value, key: &str| row[key].as_f64().map_or_else(String::new, short);
                found.map_or_else(String::new, |row| {
                    let [median, low, high] = ["median", "low", "high"].map(|key| number(row, key));
                    format!("{median} ({low}..{high})")
                })
            };
            let cells: Vec<String> = units.iter().map(value).collect();
            if cells.iter().any(|cell| !cell.is_empty()) {
                let _ = writeln!(out, "| {} | {} |", cell(place), cells.join(" | "));
            }
        }
        out.push('\n');
    }
    out
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use serde_json::json;

    use super::*;

    fn outcome() -> Value {
        json!({
            "schema": SCHEMA, "figure": "003 table 2", "shows": "Rates",
            "commands": ["tagwire bench x"],
            "measured": [
                {"on": "shm (ob1)", "unit": "threads:1", "figure": "rate_msg_s", "size": 0, "median": 2e6, "low": 1e6, "high": 3e6},
            ],
            "claims": [{
                "says": "It is so.", "published": "0.5", "likely_reason": "Two cores.",
                "judgements": [{"on": "shm (ob1)", "verdict": "not-testable", "evidence": "0.4 (0.1..0.9); published 0.5"}],
            }],
        })
    }

    #[test]
    fn a_page_has_claims_verdicts_and_values() {
        let file = ("a.json".to_owned(), outcome().to_string());
        let text = page("threads", "tagwire reproduce", &[file]).unwrap();
        for part in [
            "# Threads against processes",
            "### 003 table 2: Rates",
            "| `rate_msg_s` at 0 B | threads:1 |",
            "| shm (ob1) | 2.00e6 (1.00e6..3.00e6) |",
            "| It is so. | 0.5 | not testable: 0.4 (0.1..0.9) |",
            "- *It is so* fails where it does, likely: Two cores.",
            "tagwire bench x",
        ] {
            assert!(text.contains(part), "{part} is not in {text}");
        }
    }

    #[test]
    fn items_without_an_outcome_are_listed_with_why() {
        let text = page("mtl", "", &[]).unwrap();
        let (_, listed) = text.split_once("## Not run").unwrap();
        let items = listed.lines().filter(|line| line.starts_with("| 004 "));
        assert_eq!(items.count(), 7, "{listed}");
        assert!(listed.contains("needs sim: it needs 256"), "{listed}");
        assert!(listed.contains("not stored yet"), "{listed}");
    }

    #[test]
    fn files_that_are_no_outcomes_are_named() {
        for text in ["", "{}", "{\"schema\": \"tagwire.bench/1\"}"] {
            let file = ("a.json".to_owned(), text.to_owned());
            let error = page("threads", "", &[file]).unwrap_err().to_string();
            assert!(error.contains("a.json"), "{error}");
        }
        assert!(matches!(page("none", "", &[]), Err(Error::NoPage(_))));
    }
}
