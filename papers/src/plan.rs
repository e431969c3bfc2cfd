//! How long runs take, by what they ask of `tagwire bench`.
//!
//! ```text
//!   a run     launches x transports x jobs      a job for each of --units
//!   a job     start of its ranks + rows         sizes x partitions x policies x ...
//!   a row     what its test takes, or rounds x (computation + waking of threads + bytes)
//! ```
//!
//! What starts and rows take was measured on two cores. The stored outcomes say whether it is still so: a test compares what is told
//! here with what they took.

use std::fmt::Write as _;

use tagwire_bench::Sizes;

use crate::item::{Item, Needs};
use crate::rows::is_peer;
use crate::run::Run;

#[cfg(test)]
mod tests;

/// What carries messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Carrier {
    Memory,
    Network,
    Peer,
}

/// Seconds until the ranks of a job are there, and for each rank of it.
const fn start(carrier: Carrier) -> [f64; 2] {
    match carrier {
        Carrier::Memory => [0.01, 0.01],
        Carrier::Network => [0.28, 0.045],
        Carrier::Peer => [0.6, 0.02],
    }
}

/// Seconds of a row of a test on shared memory, on a network and on an MPI library, where that is not five blocks of 20 ms and what goes
/// before them.
const ROWS: &[(&str, [f64; 3])] = &[
    ("allreduce", [0.3, 0.45, 0.52]),
    ("availability", [1.1, 1.1, 1.02]),
    ("short-long", [0.08, 0.3, 0.1]),
    ("overlap-neighbours", [7.9, 8.8, 11.7]),
    ("concurrent-allreduce", [0.2, 0.3, 0.57]),
    ("concurrent-bandwidth", [0.5, 0.54, 0.75]),
    ("concurrent-latency", [0.3, 0.49, 1.2]),
    ("allreduce-compute", [19.3, 19.3, 6.2]),
];

/// What a row of a test takes more for each MiB, in seconds: a device copies it, or rounds are no fewer than some.
const A_MIB: [(&str, f64); 2] = [("device-copy", 0.075), ("latency", 0.13)];

/// The same of all other tests.
const ROW: [f64; 3] = [0.095, 0.15, 0.11];

/// Milliseconds that a thread works in an iteration of a kernel of cmb, on one of two cores.
const KERNEL_MS: f64 = 0.25;

/// Milliseconds that it takes to wake a thread.
const WAKE_MS: f64 = 0.015;

/// Milliseconds of a byte where messages are long.
const fn byte_ms(carrier: Carrier) -> f64 {
    match carrier {
        Carrier::Memory => 1e3 / 8e9,
        Carrier::Network => 1e3 / 1.5e9,
        Carrier::Peer => 1e3 / 4e9,
    }
}

/// Options whose lists multiply the rows of a job.
const LISTS: [&str; 8] = [
    "--partitions",
    "--noise",
    "--noise-pct",
    "--cache",
    "--policy",
    "--algorithm",
    "--progress",
    "--callback",
];

/// Returns how long the runs of items take on some transports: each item, and all together, in hours. Blocks that are measured again,
/// since others ran beside them, come on top.
#[must_use]
pub fn plan(items: &[&Item], transports: &[String], quick: bool) -> String {
    let mut out = String::new();
    let mut all = 0.0;
    for item in items.iter().filter(|item| item.needs == Needs::Real) {
        let runs = item.runs(transports, "", quick);
        let rounds = item.rounds(quick) as f64;
        let seconds: f64 = runs.iter().map(|run| rounds * run.seconds()).sum();
        all += seconds;
        let _ = writeln!(
            out,
            "{:<24} {:>3} runs {:>8.1} min",
            item.name,
            runs.len(),
            seconds / 60.0
        );
    }
    let _ = writeln!(out, "\nabout {:.1} hours on a quiet machine", all / 3600.0);
    out
}

impl Run {
    /// Returns how long it takes, in seconds, as [`plan`] counts.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        Asked(&self.arguments).seconds(self.is_over_tcp())
    }
}

/// The words of a command of `tagwire bench`.
#[derive(Debug, Clone, Copy)]
struct Asked<'w>(&'w [String]);

impl<'w> Asked<'w> {
    fn test(self) -> &'w str {
        self.0.first().map_or("", String::as_str)
    }

    /// The list behind an option.
    fn list(self, option: &str) -> Vec<&'w str> {
        let place = self.0.iter().position(|word| word == option);
        let list = place.and_then(|place| self.0.get(place + 1));
        list.map_or_else(Vec::new, |list| list.split(',').collect())
    }

    fn number(self, option: &str) -> Option<f64> {
        self.list(option).first()?.parse().ok()
    }

    /// How many a list has; one where it is not there.
    fn count(self, option: &str) -> f64 {
        self.list(option).len().max(1) as f64
    }

    fn sizes(self) -> Vec<f64> {
        let sizes = self.list("-m").join(",").parse::<Sizes>();
        let sizes = sizes.map(|sizes| sizes.as_slice().iter().map(|size| *size as f64).collect());
        sizes.unwrap_or_else(|_| vec![0.0])
    }

    fn threads(self) -> f64 {
        self.number("--threads").unwrap_or(4.0)
    }

    /// The ranks along each side of a grid.
    fn sides(self) -> Vec<f64> {
        let grid = self.list("--grid");
        let sides = grid.first().into_iter().flat_map(|grid| grid.split('x'));
        sides.filter_map(|side| side.parse().ok()).collect()
    }

    /// The ranks of a job with a unit such as `processes:4`.
    fn ranks(self, unit: Option<&str>) -> f64 {
        let sides = self.sides();
        if !sides.is_empty() {
            return sides.iter().product();
        }
        let own = self.number("-n").unwrap_or(2.0);
        match unit.map(|unit| unit.split_once(':').unwrap_or((unit, ""))) {
            Some(("processes", "")) => own.max(4.0),
            Some(("threads", "")) => own.max(3.0),
            Some(("processes", count)) => own.max(2.0 * count.parse().unwrap_or(1.0)),
            _ => own,
        }
    }

    fn seconds(self, is_over_tcp: bool) -> f64 {
        let launches = self.number("--launches").unwrap_or(1.0);
        let units = match &self.list("--units")[..] {
            [] => vec![None],
            units => units.iter().map(|unit| Some(*unit)).collect(),
        };
        let carriers = self.list("-t").into_iter().map(|name| match name {
            name if is_peer(name) => Carrier::Peer,
            "shm" => Carrier::Memory,
            _ => Carrier::Network,
        });
        let of = |carrier| {
            let bytes = match is_over_tcp {
                true => Carrier::Network,
                false => carrier,
            };
            let [first, each] = start(carrier);
            let starts = units.iter().map(|unit| first + each * self.ranks(*unit));
            starts.sum::<f64>() + units.len() as f64 * self.rows(carrier, byte_ms(bytes))
        };
        launches * carriers.map(of).sum::<f64>()
    }

    /// What the rows of a job take.
    fn rows(self, carrier: Carrier, byte_ms: f64) -> f64 {
        let found = ROWS.iter().find(|(test, _)| *test == self.test());
        let row = found.map_or(ROW, |(_, row)| *row)[carrier as usize];
        let iterations = self.number("-i");
        let rounds = iterations.map(|count| count + self.number("-x").unwrap_or(2.0));
        let computes = self.computes();
        let sizes = self.sizes();
        match rounds.filter(|_| !computes.is_empty()) {
            Some(rounds) => {
                let each = |size: &f64| {
                    let of = |ms: &f64| {
                        let (count, ms) = self.a_round(*ms, *size, byte_ms);
                        (rounds * ms / 1e3).max(count * row)
                    };
                    computes.iter().map(of).sum::<f64>()
                };
                sizes.iter().map(each).sum()
            }
            None => {
                let of_test = A_MIB.iter().find(|(test, _)| *test == self.test());
                let a_mib = of_test.map_or(0.0, |(_, seconds)| *seconds);
                let of_size = |size: &f64| row + size / f64::from(1 << 20) * a_mib;
                sizes.iter().map(of_size).sum::<f64>() * self.rows_of_a_size()
            }
        }
    }

    /// Milliseconds that threads compute; nothing where they do not.
    fn computes(self) -> Vec<f64> {
        let models = self.list("--arrivals");
        match (&self.list("--compute-time")[..], self.test()) {
            ([], "cmb") if models.iter().any(|model| model.starts_with("kernel:")) => {
                vec![KERNEL_MS * self.ranks(None) * self.threads()]
            }
            // The default of the test: 2^26 ns.
            ([], "cmb") => vec![67.1],
            (times, _) => times.iter().map(|time| milliseconds(time)).collect(),
        }
    }

    fn rows_of_a_size(self) -> f64 {
        // Of ours, of the layer below, and of the bare transport.
        let layers = match self.0.iter().any(|word| word == "--layers") {
            true => 3.0,
            false => 1.0,
        };
        // A session of each level of thread safety.
        let levels = match self.test() {
            "thread-cost" => 2.0,
            _ => 1.0,
        };
        let lists = LISTS.iter().map(|option| self.count(option));
        layers * levels * lists.product::<f64>()
    }

    /// How many rows a size has, and what a round of all of them takes, in milliseconds.
    fn a_round(self, compute: f64, size: f64, byte_ms: f64) -> (f64, f64) {
        let ranks = self.ranks(None);
        let noise = self.list("--noise-pct").into_iter().map(str::parse);
        let noise: f64 = noise.filter_map(Result::ok).fold(0.0, f64::max);
        let compute = compute * (1.0 + noise / 100.0) + WAKE_MS * ranks * self.threads();
        let policies = self.count("--policy");
        match self.test() {
            // The message after the join, then for each policy the partitions, and those whose last one is timed.
            "partitioned" => {
                let cases = self.rows_of_a_size() / policies;
                let phases = 1.0 + 2.0 * policies;
                (
                    cases * policies,
                    cases * phases * (compute + size * byte_ms),
                )
            }
            // Eight sweeps of 16 slices, which threads share, and the way of the first slice through the grid.
            "sweep3d" => {
                let fill: f64 = self.sides().iter().map(|side| side - 1.0).sum();
                let shared = (16.0 / self.threads()).ceil() + fill;
                let modes = match self.list("--mode").is_empty() {
                    true => 1.0 + policies,
                    false => 0.0,
                };
                let accountings = self.list("--accounting");
                // Bytes of a slice in the public code: 8 slices of one thread, 16, and all of them together.
                let slices = |accounting: &&str| match *accounting {
                    "artefact" => 8.0 + 16.0 + policies,
                    _ => 2.0 + policies,
                };
                let moved: f64 = accountings.iter().map(slices).sum();
                let count = self.count("--accounting");
                let steps = 8.0 * (16.0 + fill + modes * shared);
                (
                    count * (1.0 + modes),
                    count * steps * compute + 8.0 * ranks * moved.max(1.0) * size * byte_ms,
                )
            }
            // One thread, messages of each, and partitions. A rank of a cube has three neighbours at least.
            "halo3d" => {
                let modes = 2.0 + policies;
                (modes, modes * (compute + 3.0 * ranks * size * byte_ms))
            }
            // Bulk-synchronous exchanges go by messages alone.
            "cmb" => {
                let pieces = self.list("--granularity");
                let bulk = pieces.iter().filter(|piece| piece.starts_with("bsp"));
                let bulk = bulk.count() as f64;
                let early = self.count("--granularity") - bulk;
                let count = bulk + early * self.count("--interface");
                let peers = self.number("--stencil").unwrap_or(7.0) - 1.0;
                (count, count * (compute + ranks * peers * size * byte_ms))
            }
            _ => {
                let count = self.rows_of_a_size();
                (count, count * (compute + size * byte_ms))
            }
        }
    }
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
