//! Writes which functions are there, as tables in Markdown.

use std::fmt::Write as _;

use crate::function::{Flag, Function, Handler};
use crate::{Api, Chapter};

/// Writes a summary and a table for each chapter.
pub(crate) fn write(api: &Api) -> String {
    let mut out = "| chapter | done | error |\n|---|---|---|\n".to_owned();
    let mut sums = [0, 0];
    for chapter in api.chapters() {
        let [done, error] = counts(chapter);
        let _ = writeln!(out, "| {} | {done} | {error} |", chapter.title);
        sums = [sums[0] + done, sums[1] + error];
    }
    let _ = writeln!(out, "| all | {} | {} |", sums[0], sums[1]);
    for chapter in api.chapters() {
        let _ = write!(out, "\n### {}\n\n", chapter.title);
        for (what, wanted) in [("Done", true), ("Error", false)] {
            let functions = chapter.functions.iter();
            let names: Vec<_> = functions
                .filter(|function| is_done(function) == wanted)
                .map(name)
                .collect();
            if !names.is_empty() {
                let _ = writeln!(out, "- {what}: {}.", names.join(", "));
            }
        }
    }
    out
}

/// How many names of a chapter are done, and how many report an error.
fn counts(chapter: &Chapter) -> [usize; 2] {
    let count = |wanted: bool| {
        let functions = chapter.functions.iter();
        let chosen = functions.filter(|function| is_done(function) == wanted);
        chosen.map(|function| function.twins().len()).sum()
    };
    [count(true), count(false)]
}

fn is_done(function: &Function) -> bool {
    function.handler != Handler::Missing
}

/// A name, with `[_c]` where it has a twin.
fn name(function: &Function) -> String {
    let twin = if function.has_twin() { "[_c]" } else { "" };
    let mark = match function.has(Flag::Deprecated) {
        true => " (deprecated)",
        false => "",
    };
    format!("`MPI_{}{twin}`{mark}", function.name)
}
