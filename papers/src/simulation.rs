//! What of an item is simulated: commands of `tagwire bench` with the paper's numbers of nodes, cores, threads and sizes, and on which
//! machine.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::on::{On, STANDS_FOR};
use crate::rows::BESIDE;
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
    /// With which arrivals each run is made, where a paper's ranges go over several. The first are those of the figure; rows of the others
    /// count in ranges alone.
    #[serde(default)]
    arrivals: Vec<String>,
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
    /// Its arrivals, where they are not those of the figure.
    pub(crate) beside: Option<&'static str>,
}

impl SimulatedRun {
    /// Gives the rows of its results the names that claims know them by.
    pub fn name_rows(&self, results: &mut Map<String, Value>) {
        self.of.name_rows(results, self.beside);
    }
}

impl Simulation {
    /// Returns the words of each run, where [`ARRIVALS`] are in a folder, and its arrivals where they are not those of the figure.
    pub(crate) fn words(&self, arrivals: &str) -> Vec<(Vec<String>, Option<&str>)> {
        let mut all = Vec::new();
        for run in &self.runs {
            let word = |word: &str| word.replace("{arrivals}", arrivals);
            let words: Vec<String> = run.split_whitespace().map(word).collect();
            for (place, with) in self.arrivals.iter().enumerate() {
                let option = ["--arrivals".to_owned(), with.clone()];
                let words = words.iter().cloned().chain(option).collect();
                all.push((words, (place > 0).then_some(&**with)));
            }
            if self.arrivals.is_empty() {
                all.push((words, None));
            }
        }
        all
    }

    fn name_rows(&self, results: &mut Map<String, Value>, beside: Option<&str>) {
        let rows = results.get_mut("rows").and_then(Value::as_array_mut);
        for row in rows.into_iter().flatten() {
            if let Some(of) = self.of {
                row[STANDS_FOR] = of.name().into();
            }
            if let Some(name) = row["series"].as_str() {
                row["series"] = self.name(name, beside).into();
            }
        }
    }

    /// Returns what claims call a series.
    fn name(&self, series: &str, beside: Option<&str>) -> String {
        let renamed = self.series.as_ref().and_then(|[end, other]| {
            let start = series.strip_suffix(end.as_str())?;
            Some(format!("{start}{other}"))
        });
        let name = renamed.unwrap_or_else(|| series.to_owned());
        match beside {
            Some(arrivals) => name + BESIDE + arrivals,
            None => name,
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
        let words = ["cmb", "-m", "256"].map(str::to_owned).to_vec();
        assert_eq!(simulation.words(""), [(words, None)]);
        let results = json!({"rows": [{"series": "7-point-ring/each@32"}, {"series": "7-point-ring/each@8"}, {"size": 1}]});
        let mut results = results.as_object().unwrap().clone();
        simulation.name_rows(&mut results, None);
        let wanted = json!([
            {"series": "7-point-ring/each@16", "stands_for": "shared"},
            {"series": "7-point-ring/each@8", "stands_for": "shared"},
            {"size": 1, "stands_for": "shared"},
        ]);
        assert_eq!(results["rows"], wanted);
    }

    #[test]
    fn rows_of_other_arrivals_have_a_name_beside_that_of_the_figure() {
        let text =
            "on = 'mutrino'\narrivals = ['laggard:4%', 'laggard:10%']\nruns = ['cmb -m 256']";
        let simulation: Simulation = toml::from_str(text).unwrap();
        let words = |late: &str| {
            let words = format!("cmb -m 256 --arrivals laggard:{late}");
            words.split(' ').map(str::to_owned).collect()
        };
        let wanted = [(words("4%"), None), (words("10%"), Some("laggard:10%"))];
        assert_eq!(simulation.words(""), wanted);
        for (beside, wanted) in [(None, "each@16"), (wanted[1].1, "each@16~laggard:10%")] {
            let rows = json!({"rows": [{"series": "each@16"}]});
            let mut results = rows.as_object().unwrap().clone();
            simulation.name_rows(&mut results, beside);
            assert_eq!(results["rows"][0]["series"], wanted);
        }
    }
}
