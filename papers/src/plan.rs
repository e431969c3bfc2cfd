//! How long runs take, by what they ask of `tagwire bench`.

use std::fmt::Write as _;

use tagwire_bench::Sizes;

use crate::item::{Item, Needs};
use crate::run::Run;

/// Options whose lists multiply the rows of a run.
const LISTS: [&str; 12] = [
    "--partitions",
    "--noise",
    "--noise-pct",
    "--cache",
    "--policy",
    "--accounting",
    "--units",
    "--granularity",
    "--interface",
    "--algorithm",
    "--progress",
    "--callback",
];

/// Seconds of a row whose iterations are counted by `bench` itself: five blocks of 20 ms, or of 100 ms where an iteration is long, the
/// warm-up, and a part of the start.
const ROW_S: f64 = 0.4;

/// Returns how long the runs of items take on some transports: each item, and all together, in hours. Time that threads compute is
/// counted; of rows without it 0.4 s. Blocks that are measured again come on top.
#[must_use]
pub fn plan(items: &[&Item], transports: &[String], quick: bool) -> String {
    let mut out = String::new();
    let mut all = 0.0;
    for item in items.iter().filter(|item| item.needs == Needs::Real) {
        let runs = item.runs(transports, "", quick);
        let rounds = item.rounds(quick) as f64;
        let seconds: f64 = runs
            .iter()
            .map(|run| rounds * seconds(&run.arguments))
            .sum();
        all += seconds;
        let _ = writeln!(
            out,
            "{:<24} {:>3} runs {:>8.0} min",
            item.name,
            runs.len(),
            seconds / 60.0
        );
    }
    let _ = writeln!(out, "\nabout {:.1} hours on a quiet machine", all / 3600.0);
    out
}

/// The words behind an option.
fn list<'w>(words: &'w [String], option: &str) -> Vec<&'w str> {
    let place = words.iter().position(|word| word == option);
    let list = place.and_then(|place| words.get(place + 1));
    list.map_or_else(Vec::new, |list| list.split(',').collect())
}

fn number(words: &[String], option: &str) -> Option<f64> {
    list(words, option).first()?.parse().ok()
}

/// Milliseconds of a duration such as `10ms`, `4194us` or `1s`; nothing of another text.
fn milliseconds(text: &str) -> f64 {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let value: f64 = digits.parse().unwrap_or(0.0);
    match &text[digits.len()..] {
        "us" => value / 1e3,
        "ms" => value,
        _ => value * 1e3,
    }
}

fn seconds(words: &[String]) -> f64 {
    let test = words.first().map_or("", String::as_str);
    let sizes = list(words, "-m").join(",").parse::<Sizes>();
    let sizes = sizes.map_or(1, |sizes| sizes.as_slice().len()) as f64;
    let count = |option: &str| list(words, option).len().max(1) as f64;
    let rows = LISTS.iter().map(|option| count(option)).product::<f64>();
    let launches = number(words, "--launches").unwrap_or(1.0);
    let transports = count("-t");
    let warmup = number(words, "-x").unwrap_or(2.0);
    let iterations = number(words, "-i").map(|count| count + warmup);
    let works = list(words, "--arrivals")
        .iter()
        .any(|model| model.starts_with("kernel:"));
    let compute: f64 = match (&list(words, "--compute-time")[..], test) {
        // Its threads work a millisecond or so in place of sleeping.
        ([], "cmb") if works => 2.0,
        // The default of the test: 2^26 ns.
        ([], "cmb") => 67.1,
        ([], _) => 0.0,
        (times, _) => times.iter().map(|time| milliseconds(time)).sum(),
    };
    let phases = match test {
        // The message after the join, the partitions, and those whose last one is timed.
        "partitioned" => 1.0 / count("--policy") + 2.0,
        // Eight sweeps of 16 slices, which threads share; one thread and messages of each beside partitions.
        "sweep3d" => {
            let threads = number(words, "--threads").unwrap_or(4.0);
            8.0 * (16.0 + 2.0 * (16.0 / threads).ceil()) / count("--policy")
        }
        "halo3d" => 3.0 / count("--policy"),
        _ => 1.0,
    };
    let each = match iterations {
        Some(iterations) if compute > 0.0 => ROW_S.max(iterations * phases * compute / 1e3),
        _ => ROW_S,
    };
    // Of ours, of the layer below, and of the bare transport.
    let layers = match words.iter().any(|word| word == "--layers") {
        true => 3.0,
        false => 1.0,
    };
    launches * transports * sizes * rows * layers * each
}

impl Run {
    /// Returns how long it takes, in seconds, as [`plan`] counts.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        seconds(&self.arguments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::find;

    fn of(line: &str) -> f64 {
        seconds(&line.split(' ').map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn computation_and_rows_are_counted() {
        let near = |found: f64, wanted: f64| (found - wanted).abs() < 1e-6 * wanted;
        assert!(near(of("latency -m 0,8 -t shm --launches 5"), 4.0));
        assert!(near(
            of("latency --layers -m 0,8 -t shm --launches 5"),
            12.0
        ));
        let line = "partitioned -m 1K,2K --partitions 1,2 --compute-time 10ms -i 98 -x 2 --launches 3 -t shm";
        assert!(
            near(of(line), 3.0 * 2.0 * 2.0 * 100.0 * 3.0 * 0.01),
            "{}",
            of(line)
        );
        assert!(of("cmb -m 256 -i 50 -t shm") > 50.0 * 0.067);
        assert!((milliseconds("4194us") - 4.194).abs() < 1e-9);
    }

    /// All items go by themselves within the hours of a night.
    #[test]
    fn a_whole_reproduction_takes_ten_hours_at_most() {
        let transports: Vec<String> = ["shm", "ofi:tcp", "mpi:/a", "mpi:/b", "mpi:/c"]
            .map(str::to_owned)
            .into();
        let items = find("all").unwrap_or_default();
        let runs = items
            .iter()
            .flat_map(|item| item.runs(&transports, "", false));
        let hours: f64 = runs.map(|run| run.seconds()).sum::<f64>() / 3600.0;
        let told = plan(&items, &transports, false);
        assert!(hours <= 10.0, "{told}");
        assert!(told.contains(&format!("about {hours:.1} hours")), "{told}");
    }
}
