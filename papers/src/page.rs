//! The page of a paper: what it claims, ours beside the published, and what a user should take from it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::error::{Error, Result};
use crate::item::{Claim, Item, all, find};
use crate::judgement::Verdict;
use crate::plot::Plot;
use crate::published::{published, unanswered};

use self::shown::Shown;

mod shown;

pub use self::shown::{Drawn, Page};

/// What a page says in words.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Words {
    name: String,
    title: String,
    paper: String,
    claims: Vec<String>,
    take: Vec<Take>,
}

/// What a user should take from it: said where what it rests on was measured and holds.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Take {
    says: String,
    /// The item.
    item: String,
    /// The claim.
    claim: String,
    /// What has become of it on our transports.
    verdict: Wanted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Wanted {
    Holds,
    Fails,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Pages {
    page: Vec<Words>,
}

fn words(name: &str) -> Result<&'static Words> {
    static PAGES: LazyLock<Vec<Words>> = LazyLock::new(|| {
        let pages: Pages = toml::from_str(include_str!("../data/pages.toml"))
            .expect("the words of the pages are right");
        pages.page
    });
    let found = PAGES.iter().find(|page| page.name == name);
    found.ok_or_else(|| Error::NoPage(name.to_owned()))
}

/// Returns the page of a paper with its plots. An outcome is given by the name of its file and what it holds; `command` is how
/// the page is made, and `date` returns a time since 1970 as text.
///
/// # Errors
/// [`Error::NoPage`] where there are no words for it; [`Error::NoOutcome`] where one is no outcome, or of another version.
pub fn page(
    name: &str,
    command: &str,
    outcomes: &[(String, String)],
    date: &dyn Fn(u64) -> String,
) -> Result<Page> {
    let words = words(name)?;
    let read = outcomes.iter().map(|(file, text)| Shown::read(file, text));
    let mut shown = read.collect::<Result<Vec<_>>>()?;
    let mut simulated: Vec<Shown> = shown.extract_if(.., |one| one.is_simulated()).collect();
    Shown::join(&mut shown);
    Shown::join(&mut simulated);
    let shown = Shown::with(shown, simulated);
    let mut out = format!("# {}\n\n{}.\n\n", words.title, words.paper);
    let _ = writeln!(
        out,
        "This page is made from stored results, by `{command}` in this folder. [benchmarking.md](../benchmarking.md) has the tests and the rules.\n"
    );
    let _ = writeln!(out, "## What it claims\n");
    for sentence in &words.claims {
        let _ = writeln!(out, "- {sentence}");
    }
    let _ = writeln!(out, "\n## What to take from it\n");
    out += &taken(&words.take, &shown);
    out += &overview(name, &shown);
    if !shown.is_empty() {
        out += "\n## Ours beside the published\n\nOther machines: ratios, orders and shapes are compared, and no absolute figures. \
            Intervals go from the least launch to the greatest; those of simulated figures are 1 % to either side, and 0.05 points of a gain at least. \
            Ratios are of launches that both figures have. Published values are grey in plots.\n";
    }
    let mut plots = Vec::new();
    for one in &shown {
        let drawn = one.plots();
        let files: Vec<(String, &Plot)> = drawn
            .iter()
            .map(|one| (format!("{name}/{}", one.file), &one.plot))
            .collect();
        out += &one.section(&files, date);
        plots.extend(drawn);
    }
    out += &not_run(name, &shown);
    out += &excused(name);
    Ok(Page { text: out, plots })
}

/// What rests on a stored figure, with that; and what cannot be said.
fn taken(all: &[Take], shown: &[Shown]) -> String {
    let mut out = String::new();
    for take in all {
        let wanted = match take.verdict {
            Wanted::Holds => Verdict::Holds,
            Wanted::Fails => Verdict::Fails,
        };
        let of_item = shown.iter().find(|one| one.item.name == take.item);
        let figure = find(&take.item).map_or("", |items| &items[0].figure);
        match of_item.and_then(|one| one.own(&take.claim, wanted)) {
            Some(evidence) => {
                let _ = writeln!(out, "- {} ({figure}: {evidence}.)", take.says);
            }
            None => {
                let _ = writeln!(
                    out,
                    "- Nothing is said of {figure} (*{}*): no full outcome is stored by which it {}.",
                    take.claim.trim_end_matches('.'),
                    wanted.word()
                );
            }
        }
    }
    out
}

/// How many judgements there are of each kind.
fn overview(name: &str, shown: &[Shown]) -> String {
    let items = all().iter().filter(|item| item.paper() == name).count();
    let of_this = || shown.iter().filter(|one| !one.is_simulated());
    let full = of_this().filter(|one| one.is_full()).count();
    let quick = of_this().count() - full;
    let mut out = format!(
        "\n{items} figures and tables: {full} with a full outcome, {quick} with a quick one"
    );
    let (answered, of_paper) = answered(name);
    let _ = write!(
        out,
        "; {answered} of {of_paper} published values have a claim or a place in a plot, the others are listed below"
    );
    let counts = Verdict::ALL.map(|verdict| {
        let count: usize = of_this().map(|one| one.count(verdict)).sum();
        format!("{}: {count}", verdict.word())
    });
    if of_this().any(Shown::is_judged) {
        let _ = write!(out, ". Judgements: {}", counts.join(", "));
    }
    let simulated = || shown.iter().filter_map(Shown::simulated);
    if simulated().next().is_some() {
        let counts = Verdict::ALL.map(|verdict| {
            let count: usize = simulated().map(|one| one.count(verdict)).sum();
            format!("{}: {count}", verdict.word())
        });
        let _ = write!(out, ". On simulated machines: {}", counts.join(", "));
    }
    out + ".\n"
}

/// How many published values of a paper claims answer or plots have, and of how many.
fn answered(name: &str) -> (usize, usize) {
    let items = || all().iter().filter(|item| item.paper() == name);
    let of_claims = items().flat_map(|item| item.claims.iter().flat_map(Claim::answers));
    let drawn = items().flat_map(Item::drawn);
    let ids: BTreeSet<&str> = of_claims.chain(drawn).map(|one| &*one.id).collect();
    let number = number_of(name);
    let of_paper = published().iter().filter(|one| one.id.starts_with(number));
    (ids.len(), of_paper.count())
}

/// The number of a paper, as ids of published values begin with it.
fn number_of(name: &str) -> &'static str {
    let item = all().iter().find(|item| item.paper() == name);
    item.and_then(|item| item.figure.split(' ').next())
        .unwrap_or_default()
}

/// The paper's items without an outcome, and why there is none.
fn not_run(paper: &str, shown: &[Shown]) -> String {
    let items = all().iter().filter(|item| item.paper() == paper);
    let mut lines = String::new();
    for item in items.filter(|item| !shown.iter().any(|one| one.item.name == item.name)) {
        let why = match (&item.why, item.needs) {
            (Some(why), needs) => format!("{}: {why}", needs.word()),
            (None, _) => "can be run; its outcome is not stored yet".to_owned(),
        };
        let (figure, shows) = (&item.figure, shown::cell(&item.shows));
        let _ = writeln!(lines, "| {figure} | {shows} | {} |", shown::cell(&why));
    }
    if lines.is_empty() {
        return lines;
    }
    format!("\n## Not run\n\n| item | what it shows | why |\n|---|---|---|\n{lines}")
}

/// Published values of the paper that no claim answers.
fn excused(name: &str) -> String {
    let number = number_of(name);
    let mut lines = String::new();
    for one in unanswered() {
        let of = one.ids().filter(|id| id.starts_with(number));
        let values = of.filter_map(|id| published().iter().find(|one| one.id == id));
        let told: Vec<String> = values
            .map(|one| format!("{}: {}, {}", one.item, one.quantity, one.told()))
            .collect();
        if !told.is_empty() {
            let _ = writeln!(
                lines,
                "| {} | {} |",
                shown::cell(&one.why),
                shown::cell(&told.join("; "))
            );
        }
    }
    if lines.is_empty() {
        return lines;
    }
    format!("\n## Published values that no claim answers\n\n| why | values |\n|---|---|\n{lines}")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests;
