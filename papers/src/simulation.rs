//! What of an item is simulated: commands of `tagwire bench` with the paper's numbers of nodes, cores, threads and sizes, and on which
//! machine.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::on::{On, STANDS_FOR};
use crate::run::Run;

/// Arrivals of threads of applications, as files for `kde:`: their name, and a time in nanoseconds on each line. The paper has histograms of
/// its applications without numbers; these are assumed, with the same tendencies, as quantiles: of a normal variable of 50 ms and a deviation
/// of 1 ms, of 50 ms and an exponential of 0.5 ms, and of 49 and 52 ms by turns with a deviation of 0.3 ms.
pub const ARRIVALS: [(&str, &str); 3] = [
    ("spmv.csv", include_str!("../data/arrivals/spmv.csv")),
    (
        "particles.csv",
        include_str!("../data/arrivals/particles.csv"),
    ),
    (
        "monte-carlo.csv",
        include_str!("../data/arrivals/monte-carlo.csv"),
    ),
];

/// Commands that are simulated on a machine.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Simulation {
    /// The machine, by the name of its preset.
    pub on: String,
    /// Which claims are of it, where some are of shared memory and some of a network here.
    of: Option<On>,
    /// What stands at the end of names of series, and what claims have in its place: they name fewer threads.
    series: Option<[String; 2]>,
    /// What of the paper's grid the runs leave out.
    #[serde(default)]
    pub(crate) cut: String,
    /// Options of each run with `--quick`, in place of the item's.
    pub(crate) quick: Option<String>,
    /// What stands for what the paper ran.
    #[serde(default)]
    pub(crate) stands_in: String,
    /// The arguments of `tagwire bench`.
    runs: Vec<String>,
}

/// A run that is simulated.
#[derive(Debug, Clone)]
pub struct SimulatedRun {
    /// The machine, and what claims call its rows.
    pub of: &'static Simulation,
    /// The words behind `bench`.
    pub run: Run,
}

impl Simulation {
    /// Returns the words of each run, where [`ARRIVALS`] are in a folder.
    pub(crate) fn words(&self, arrivals: &str) -> impl Iterator<Item = Vec<String>> {
        let word = move |word: &str| word.replace("{arrivals}", arrivals);
        let words = move |run: &String| run.split_whitespace().map(word).collect();
        self.runs.iter().map(words)
    }

    /// Gives the rows of results the names that claims know them by.
    pub fn name_rows(&self, results: &mut Map<String, Value>) {
        let rows = results.get_mut("rows").and_then(Value::as_array_mut);
        for row in rows.into_iter().flatten() {
            if let Some(of) = self.of {
                row[STANDS_FOR] = of.name().into();
            }
            let series = row["series"].as_str().zip(self.series.as_ref());
            let named = series.and_then(|(name, [end, other])| {
                let start = name.strip_suffix(end.as_str())?;
                Some(format!("{start}{other}"))
            });
            if let Some(named) = named {
                row["series"] = named.into();
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rows_have_the_names_that_claims_know() {
        let text = "on = 'manzano'\nof = 'shared'\nseries = ['@32', '@16']\nruns = ['cmb -m 256']";
        let simulation: Simulation = toml::from_str(text).unwrap();
        assert_eq!(simulation.words("").next().unwrap(), ["cmb", "-m", "256"]);
        let results = json!({"rows": [{"series": "7-point-ring/each@32"}, {"series": "7-point-ring/each@8"}, {"size": 1}]});
        let mut results = results.as_object().unwrap().clone();
        simulation.name_rows(&mut results);
        let wanted = json!([
            {"series": "7-point-ring/each@16", "stands_for": "shared"},
            {"series": "7-point-ring/each@8", "stands_for": "shared"},
            {"size": 1, "stands_for": "shared"},
        ]);
        assert_eq!(results["rows"], wanted);
    }
}
