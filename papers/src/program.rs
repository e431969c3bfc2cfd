//! Programs that were run here under an account of their calls (`bench/mpi_profile`), beside what a paper says of programs.

use std::fmt::Write as _;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::projection::{PROJECTED, projected, share_of_profile};
use crate::reference::by_id;
use crate::words::short;

/// A program and its runs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Program {
    /// The item that it stands beside.
    item: String,
    name: String,
    /// What it computes.
    input: String,
    machine: String,
    measured: String,
    /// What each run left.
    runs: Vec<Map<String, Value>>,
}

fn programs() -> &'static [Program] {
    static PROGRAMS: LazyLock<Vec<Program>> = LazyLock::new(|| {
        serde_json::from_str(include_str!("../data/programs.json"))
            .expect("the programs are written by bench/mpi_profile")
    });
    &PROGRAMS
}

/// Returns the table of what programs of ours do in the library, beside an item; nothing where there is none.
pub(crate) fn beside(item: &str) -> String {
    let mut out = String::new();
    for program in programs().iter().filter(|program| program.item == item) {
        let _ = writeln!(
            out,
            "A program of ours, which is not among the paper's: **{}**, {}, on {}, {}, by `bench/mpi_profile`; medians of {} runs with the least and the greatest:\n",
            program.name,
            program.input,
            program.machine,
            program.measured,
            program.runs.len()
        );
        out += &program.table();
    }
    out
}

impl Program {
    fn table(&self) -> String {
        let mut cells = vec![
            ("ranks", self.ranks()),
            (
                "time in the library, %",
                interval(self.of_runs(|run| mean(run, |profile| profile["library_pct"].as_f64()))),
            ),
            (
                "in sends, receives and waits, %",
                interval(self.of_runs(|run| share_of_profile(run).ok())),
            ),
            ("short messages of a rank", self.messages("sent_short")),
            ("long ones", self.messages("sent_long")),
        ];
        if self.item == PROJECTED
            && let Some(factor) = by_id(FACTOR).ok().and_then(|factor| factor.value.as_f64())
        {
            let gain =
                |run: &Map<String, Value>| Some(projected(share_of_profile(run).ok()?, factor));
            cells.push((
                "gain, sends and receives by the published factor",
                interval(self.of_runs(gain)),
            ));
        }
        let (heads, values): (Vec<_>, Vec<_>) = cells.into_iter().unzip();
        let rule = "---|".repeat(heads.len());
        format!(
            "| {} |\n|{rule}\n| {} |\n\n",
            heads.join(" | "),
            values.join(" | ")
        )
    }

    fn ranks(&self) -> String {
        let run = self.runs.first();
        run.map_or_else(String::new, |run| run["environment"]["ranks"].to_string())
    }

    /// Returns how many messages a rank sends, of the ranks' mean: the same in each run.
    fn messages(&self, kind: &str) -> String {
        let all = self.of_runs(|run| mean(run, |profile| profile["messages"][kind].as_f64()));
        all.first()
            .map_or_else(String::new, |count| format!("{count:.0}"))
    }

    fn of_runs(&self, of: impl Fn(&Map<String, Value>) -> Option<f64>) -> Vec<f64> {
        self.runs.iter().filter_map(of).collect()
    }
}

/// Returns the mean over the ranks of a run.
fn mean(run: &Map<String, Value>, of: impl Fn(&Value) -> Option<f64>) -> Option<f64> {
    let profiles = run.get("profiles")?.as_array()?;
    let all: Option<Vec<f64>> = profiles.iter().map(of).collect();
    let all = all.filter(|all| !all.is_empty())?;
    Some(all.iter().sum::<f64>() / all.len() as f64)
}

/// Returns the median with the least and the greatest.
fn interval(mut values: Vec<f64>) -> String {
    values.sort_by(f64::total_cmp);
    match (values.first(), values.get(values.len() / 2), values.last()) {
        (Some(least), Some(median), Some(greatest)) => {
            format!(
                "{} ({}..{})",
                short(*median),
                short(*least),
                short(*greatest)
            )
        }
        _ => String::new(),
    }
}

/// The published factor of sends and receives.
const FACTOR: &str = "000/fig13/factor-applied-to-send-receive-time";

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use super::*;
    use crate::item::find;

    #[test]
    fn programs_stand_beside_items_and_have_profiles() {
        for program in programs() {
            assert_eq!(find(&program.item).unwrap().len(), 1, "{}", program.item);
            for run in &program.runs {
                let share = share_of_profile(run).unwrap();
                let library = mean(run, |profile| profile["library_pct"].as_f64()).unwrap();
                // Sends, receives and waits are a part of what is called.
                assert!(
                    0.0 < share && share <= library + 0.01,
                    "{}: {share} of {library}",
                    program.name
                );
            }
        }
    }

    #[test]
    fn the_table_has_medians_and_the_projection() {
        let run = |ms: f64| {
            let text = format!(
                "{{\"environment\": {{\"ranks\": 1}}, \"profiles\": [{{\"wall_ms\": 100, \"library_pct\": {ms}, \"messages\": {{\"sent_short\": 3, \"sent_long\": 4}}, \
                 \"calls\": [{{\"call\": \"wait\", \"total_ms\": {ms}}}, {{\"call\": \"barrier\", \"total_ms\": 1}}]}}]}}"
            );
            serde_json::from_str(&text).unwrap()
        };
        let program = Program {
            item: PROJECTED.to_owned(),
            name: "a".to_owned(),
            input: "b".to_owned(),
            machine: "c".to_owned(),
            measured: "d".to_owned(),
            runs: vec![run(50.0), run(40.0), run(60.0)],
        };
        let table = program.table();
        assert!(
            table.contains("| 1 | 50.0 (40.0..60.0) | 50.0 (40.0..60.0) | 3 | 4 | 1.8"),
            "{table}"
        );
    }
}
