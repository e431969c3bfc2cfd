//! The rows of a report. Documented for readers of the JSON in `docs/benchmarking.md`.

use std::collections::BTreeMap;

use serde::de::{MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::environment::is_foreign;
use crate::load::RankLoad;
use crate::position::Position;
use crate::spread::Spread;
use crate::stats::Summary;

mod device;
mod pattern;

pub use self::device::DeviceKeys;
pub use self::pattern::PatternKeys;

/// The schema's name and version. Keys may be added within a version, never changed or removed.
pub const SCHEMA: &str = "tagwire.bench/2";

/// One row: what was measured, how often and how, and the figures.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Row {
    /// Message size in bytes.
    pub size: u64,
    /// By what it differs from rows of other series.
    pub series: Series,
    /// How often it was measured.
    pub sampling: Sampling,
    /// Which way a partitioned operation took, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub way: Option<String>,
    /// How the engine was checked before, where the command chose it: `exact 20000 1`, its grade, the operations and their seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checked: Option<String>,
    /// Why there are no figures: with `--keep-going`, a job that failed at this size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// What was measured.
    #[serde(default)]
    pub figures: Figures,
    /// The samples that the figures are medians of, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<BTreeMap<String, Vec<f64>>>,
    /// What each rank went through while this was measured, in the order of ranks. None in a summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<Vec<RankLoad>>,
    /// Where the job stands among those over its transport, in the order of the command.
    #[serde(skip)]
    pub(crate) case: usize,
}

/// How often a row was measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Sampling {
    /// Which start of the job, counted from 0. None in a summary.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch: Option<u32>,
    /// How many launches a summary is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launches: Option<u32>,
    /// Iterations of all repetitions together.
    pub iterations: u64,
    /// How many times the block of iterations was repeated.
    pub repetitions: u32,
}

impl Sampling {
    /// Sets how many iterations there were, of all repetitions together.
    pub(crate) const fn set(&mut self, iterations: u64, repetitions: u32) {
        (self.iterations, self.repetitions) = (iterations, repetitions);
    }
}

/// What distinguishes the rows of one series from those of another, beside the size: a key for each independent variable.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Series {
    /// What carried the messages: `shm`, `mpi`.
    pub transport: String,
    /// The foreign library and its version: an MPI, or what the transport uses (`libfabric 1.17`).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// What the library opened for the transport, such as its provider `tcp;ofi_rxm` for `ofi:tcp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// What matched them; none for the bare transport and for foreign libraries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pml: Option<String>,
    /// The matching engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// With `--layers` and `--raw`: at which height it was measured, `raw` or the pml's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub layer: Option<String>,
    /// Ranks of the job.
    pub ranks: u32,
    /// Messages under way at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u32>,
    /// What communicates at once: `processes:4`, `threads:4`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    /// After how many blocking sends the receiver answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ack_every: Option<u32>,
    /// Which tags the threads of a process used, where those were not their own: `shared`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<String>,
    /// When threads began, where that was not together: `staggered`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<String>,
    /// Bytes of the long message beside the short ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long: Option<u64>,
    /// Who made progress while ranks computed: `none`, `blocked-thread`, `progress-thread`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub progress: Option<String>,
    /// How often a rank passed over its arrays while messages were on their way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub passes: Option<u32>,
    /// Whether the unit had more processes or threads than there are cores for them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub oversubscribed: bool,
    /// Threads per rank.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Never-matching receives ahead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub posted: Option<u32>,
    /// Unexpected messages ahead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unexpected: Option<u32>,
    /// How many percent of the never-matching receives are of any source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wild: Option<u32>,
    /// Where among the entries of the queue the one that matched lay, where that was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<Position>,
    /// What the other entries of the queue differed by from it, where that was chosen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<Spread>,
    /// User partitions of a partitioned operation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partitions: Option<u32>,
    /// How they were aggregated; `library` for a foreign one, which decides itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// How, and for how many microseconds, a thread computed before its partitions were ready: `sleep:10000`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compute: Option<String>,
    /// Which threads took longer, and by how many percent: `uniform:4`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<String>,
    /// How many rounds the receiver has room for, where that is not 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub buffers: Option<u32>,
    /// With `--cache fresh`: how many bytes of buffers a rank went through before one came again, `fresh:40M`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<String>,
    /// Whether the caches were swept before each round.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cold_cache: bool,
    /// What the rank that computes does: `send` or `recv`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub side: Option<String>,
    /// When the receive was posted, before the message was sent or after: `early` or `late`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receive: Option<String>,
    /// Whether collectives were started and waited for.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nonblocking: bool,
    /// Where the buffers came from, where that was said: `heap` or `arena`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<String>,
    /// Whether every byte was checked, which the times include.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub validated: bool,
    /// Whether each call was timed, which the times include.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub profiled: bool,
    /// What only patterns have.
    #[serde(flatten)]
    pub pattern: PatternKeys,
    /// What only vectors from a device have.
    #[serde(flatten)]
    pub device: DeviceKeys,
}

/// The key of how much longer the first block took than the longest of the others, in percent.
pub(crate) const FIRST_BLOCK: &str = "first_block_pct";

/// Named figures, in the order in which they were added. A name ends in its unit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Figures(Vec<(String, f64)>);

impl Row {
    /// Whether another's library carried the messages, and matched them.
    pub(crate) fn is_foreign(&self) -> bool {
        is_foreign(&self.series.transport)
    }
}

impl Figures {
    /// The figure called `name`.
    #[must_use]
    pub fn named(&self, name: &str) -> Option<f64> {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .map(|(_, value)| *value)
    }

    /// All figures, in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.0.iter().map(|(key, value)| (key.as_str(), *value))
    }

    /// Adds a figure, or replaces the one of that name.
    pub(crate) fn set(&mut self, name: impl Into<String>, value: f64) {
        let (name, value) = (name.into(), rounded(value));
        match self.0.iter_mut().find(|(key, _)| *key == name) {
            Some((_, old)) => *old = value,
            None => self.0.push((name, value)),
        }
    }

    /// Adds the median of `values`, and how they scatter; nothing where there are none, or one is no number.
    pub(crate) fn set_all(&mut self, quantity: Quantity, values: impl IntoIterator<Item = f64>) {
        if let Some(summary) = Summary::of(&values.into_iter().collect::<Vec<_>>()) {
            self.set_summary(quantity, summary);
        }
    }

    /// Adds a median as `STEM_UNIT`, and how values scatter.
    pub(crate) fn set_summary(&mut self, quantity: Quantity, summary: Summary) {
        let stem = quantity.stem;
        let (least, greatest) = quantity.bounds();
        self.set(quantity.key(), summary.median);
        self.set(least, summary.min);
        self.set(greatest, summary.max);
        let spread = if quantity.is_share() {
            summary.max - summary.min
        } else {
            summary.spread_pct()
        };
        self.set(format!("{stem}_spread_pct"), spread);
    }
}

/// `value` to seven significant digits: more than any clock here reports, and short in a file.
fn rounded(value: f64) -> f64 {
    // Printing and reading is the exact way to the nearest such number.
    format!("{value:.6e}").parse().unwrap_or(value)
}

/// A measured quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Quantity {
    /// Its name.
    pub stem: &'static str,
    /// Its unit, as the end of a key.
    pub unit: &'static str,
    /// Its name and unit in a header.
    pub title: &'static str,
    /// Whether less is better.
    pub less_is_better: bool,
}

impl Quantity {
    /// Half a round trip, a hop, a receive.
    pub const LATENCY: Self = Self::less("latency", "us", "Latency (us)");
    /// The same of the slowest caller.
    pub const SLOWEST: Self = Self::less("slowest", "us", "Slowest (us)");
    /// What full thread safety adds to it.
    pub const THREAD_COST: Self = Self::less("cost", "us", "Cost (us)");
    /// Bytes of payload, in units of 10^6 per second.
    pub const BANDWIDTH: Self = Self::more("bandwidth", "mb_s", "Bandwidth (MB/s)");
    /// Messages.
    pub const RATE: Self = Self::more("rate", "msg_s", "Messages/s");
    /// Use of one core.
    pub const CPU: Self = Self::less("cpu", "pct", "CPU (% of a core)");
    /// What of a core is left for computation while a message is on its way.
    pub const AVAILABILITY: Self = Self::more("availability", "pct", "Availability (%)");
    /// The same, against the time that one core needs for the message.
    pub const AVAILABILITY_ONE_CORE: Self =
        Self::more("availability_one_core", "pct", "Of one core (%)");
    /// What a message adds to the time of the work.
    pub const OVERHEAD: Self = Self::less("overhead", "us", "Overhead (us)");
    /// An iteration without work.
    pub const BASE: Self = Self::less("base", "us", "Base (us)");
    /// An iteration without work in which one core moves the message.
    pub const BASE_ONE_CORE: Self = Self::less("base_one_core", "us", "One core (us)");
    /// An iteration with work.
    pub const ITER: Self = Self::less("iter", "us", "Iter (us)");
    /// The work.
    pub const WORK: Self = Self::less("work", "us", "Work (us)");
    /// Which part of the shorter of message and computation the longer one hides.
    pub const OVERLAP: Self = Self::more("overlap", "pct", "Overlap (%)");
    /// A message alone.
    pub const COMMUNICATION: Self = Self::less("communication", "us", "Message (us)");
    /// Computation alone.
    pub const COMPUTATION: Self = Self::less("computation", "us", "Compute (us)");
    /// Both at once.
    pub const TOTAL: Self = Self::less("total", "us", "Both (us)");

    /// A short message beside a long one.
    pub const SHORT: Self = Self::less("short", "us", "Short (us)");
    /// The slowest of the short messages.
    pub const SHORT_WORST: Self = Self::less("short_worst", "us", "Worst (us)");
    /// The slowest over the median.
    pub const UNFAIRNESS: Self = Self::less("worst_over_median", "", "Worst/median");
    /// How unevenly the time is spread over the short messages: Gini's coefficient.
    pub const GINI: Self = Self::less("gini", "", "Gini");
    /// The slowest short message over the long one.
    pub const WAITED: Self = Self::less("waited", "pct", "Of long (%)");
    /// The long message.
    pub const LONG: Self = Self::less("long_message", "us", "Long (us)");
    /// An iteration of messages to neighbours and computation.
    pub const ITERATION: Self = Self::less("iteration", "us", "Iteration (us)");
    /// Which part of the messages' time is hidden that is not without help.
    pub const HIDDEN: Self = Self::more("hidden", "pct", "Hidden (%)");
    /// Bytes that a rank of a pattern sends and receives, in units of 10^6 per second.
    pub const THROUGHPUT: Self = Self::more("throughput", "mb_s", "Throughput (MB/s)");
    /// What early pieces gain over bulk-synchronous messages to one peer after the other.
    pub const SPEEDUP: Self = Self::more("speedup", "pct", "Gain (%)");
    /// What they gain over bulk-synchronous messages to all peers at once.
    pub const SPEEDUP_ALL: Self = Self::more("speedup_all", "pct", "Over all (%)");
    /// An allreduce of vectors that come from a device.
    pub const TIME: Self = Self::less("time", "us", "Time (us)");
    /// A device's copies to its host.
    pub const COPY: Self = Self::less("copy", "us", "Copy (us)");
    /// What an algorithm gains over that by lanes.
    pub const OVER_MULTILANE: Self = Self::more("speedup_vs_multilane", "pct", "Over lanes (%)");
    /// How many times as fast it is as the library's own.
    pub const OVER_NATIVE: Self = Self::more("speedup_vs_native", "", "Over native (x)");
    /// Passes of computing threads beside an allreduce.
    pub const PASSES: Self = Self::more("passes", "per_s", "Passes/s");
    /// The same without the allreduce.
    pub const PASSES_ALONE: Self = Self::more("passes_alone", "per_s", "Alone (/s)");
    /// What the allreduce takes of them.
    pub const LOSS: Self = Self::less("loss", "pct", "Loss (%)");

    /// The part of a program's run time that its ranks are in the library.
    pub const LIBRARY: Self = Self::less("library", "pct", "In the library (%)");
    /// The part of long messages that came before their receive, and whose bytes were fetched later.
    pub const DROPPED: Self = Self::less("dropped", "pct", "Dropped (% of long)");

    /// A partitioned operation's time over that of one message.
    pub const PARTITIONED_OVERHEAD: Self = Self::less("overhead", "", "Overhead (x)");
    /// A message's bytes over the time of its last partition.
    pub const PERCEIVED_BANDWIDTH: Self =
        Self::more("perceived_bandwidth", "mb_s", "Perceived (MB/s)");
    /// What a partitioned operation leaves of a message's time after the threads are joined.
    pub const APPLICATION_AVAILABILITY: Self =
        Self::more("application_availability", "", "App. availability");
    /// The part of a partitioned operation that is over when the threads are joined.
    pub const EARLY_BIRD: Self = Self::more("early_bird", "", "Early bird");
    /// The first of these as the paper defines it: a ratio of means, each with the way back.
    pub const OVERHEAD_PAPER: Self = Self::less("overhead_paper", "", "Paper's ovh. (x)");
    /// The second.
    pub const PERCEIVED_BANDWIDTH_PAPER: Self =
        Self::more("perceived_bandwidth_paper", "mb_s", "Paper's (MB/s)");
    /// The third.
    pub const AVAILABILITY_PAPER: Self =
        Self::more("availability_paper", "", "Paper's availability");
    /// The fourth.
    pub const EARLY_BIRD_PAPER: Self = Self::more("early_bird_paper", "", "Paper's early bird");

    /// All that there are, in the order in which a table shows them.
    pub const ALL: [Self; 45] = [
        Self::LATENCY,
        Self::SLOWEST,
        Self::THREAD_COST,
        Self::BANDWIDTH,
        Self::RATE,
        Self::CPU,
        Self::AVAILABILITY,
        Self::OVERHEAD,
        Self::BASE,
        Self::ITER,
        Self::WORK,
        Self::BASE_ONE_CORE,
        Self::AVAILABILITY_ONE_CORE,
        Self::OVERLAP,
        Self::COMMUNICATION,
        Self::COMPUTATION,
        Self::TOTAL,
        Self::SHORT,
        Self::SHORT_WORST,
        Self::UNFAIRNESS,
        Self::GINI,
        Self::WAITED,
        Self::LONG,
        Self::THROUGHPUT,
        Self::SPEEDUP,
        Self::SPEEDUP_ALL,
        Self::TIME,
        Self::COPY,
        Self::OVER_MULTILANE,
        Self::OVER_NATIVE,
        Self::ITERATION,
        Self::HIDDEN,
        Self::PASSES,
        Self::PASSES_ALONE,
        Self::LOSS,
        Self::LIBRARY,
        Self::DROPPED,
        Self::PARTITIONED_OVERHEAD,
        Self::PERCEIVED_BANDWIDTH,
        Self::APPLICATION_AVAILABILITY,
        Self::EARLY_BIRD,
        Self::OVERHEAD_PAPER,
        Self::PERCEIVED_BANDWIDTH_PAPER,
        Self::AVAILABILITY_PAPER,
        Self::EARLY_BIRD_PAPER,
    ];

    const fn less(stem: &'static str, unit: &'static str, title: &'static str) -> Self {
        Self {
            stem,
            unit,
            title,
            less_is_better: true,
        }
    }

    const fn more(stem: &'static str, unit: &'static str, title: &'static str) -> Self {
        Self {
            stem,
            unit,
            title,
            less_is_better: false,
        }
    }

    /// Whether it is a part of something that can be none, or less: it scatters by points, and
    /// ratios of it say nothing.
    #[must_use]
    pub fn is_share(&self) -> bool {
        self.unit == "pct" && *self != Self::CPU
    }

    /// The key of the median.
    #[must_use]
    pub fn key(&self) -> String {
        self.with_unit(self.stem)
    }

    /// A key that ends in the unit; a ratio has none.
    fn with_unit(&self, stem: &str) -> String {
        match self.unit {
            "" => stem.to_owned(),
            unit => format!("{stem}_{unit}"),
        }
    }

    /// The key of something else of it, such as `pruned`.
    pub(crate) fn key_of(&self, what: &str) -> String {
        self.with_unit(&format!("{}_{what}", self.stem))
    }

    /// The key of the least and the greatest value of the repetitions.
    #[must_use]
    pub fn bounds(&self) -> (String, String) {
        (self.key_of("min"), self.key_of("max"))
    }
}

impl Serialize for Figures {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Figures {
    /// Takes every number; what later versions add beside numbers is passed over.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Numbers;
        impl<'de> Visitor<'de> for Numbers {
            type Value = Figures;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object of figures")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Figures, A::Error> {
                let mut figures = Figures::default();
                while let Some((name, value)) = map.next_entry::<String, serde_json::Value>()? {
                    if let Some(value) = value.as_f64() {
                        figures.0.push((name, value));
                    }
                }
                Ok(figures)
            }
        }
        deserializer.deserialize_map(Numbers)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A row as the latency test makes it.
    pub(crate) fn sample(size: u64, transport: &str, launch: u32, latency: f64) -> Row {
        let mut figures = Figures::default();
        let summary = Summary {
            median: latency,
            min: latency * 0.9,
            max: latency * 1.1,
        };
        figures.set_summary(Quantity::LATENCY, summary);
        let ours = transport == "shm";
        Row {
            size,
            series: Series {
                transport: transport.to_owned(),
                library: (!ours).then(|| "Some MPI 1.0".to_owned()),
                pml: ours.then(|| "ob1".to_owned()),
                engine: ours.then(|| "hash-bins".to_owned()),
                ranks: 2,
                ..Series::default()
            },
            sampling: Sampling {
                launch: Some(launch),
                iterations: 10_000,
                repetitions: 5,
                ..Sampling::default()
            },
            figures,
            ..Row::default()
        }
    }

    #[test]
    fn rows_read_back_and_keep_their_order() {
        let row = sample(8, "shm", 0, 0.125);
        let text = serde_json::to_string(&row).unwrap();
        assert_eq!(
            text,
            "{\"size\":8,\"series\":{\"transport\":\"shm\",\"pml\":\"ob1\",\"engine\":\"hash-bins\",\"ranks\":2},\
             \"sampling\":{\"launch\":0,\"iterations\":10000,\"repetitions\":5},\
             \"figures\":{\"latency_us\":0.125,\"latency_min_us\":0.1125,\"latency_max_us\":0.1375,\
             \"latency_spread_pct\":20.0}}"
        );
        assert_eq!(serde_json::from_str::<Row>(&text).unwrap(), row);
    }

    #[test]
    fn keys_of_later_versions_are_passed_over() {
        let text = "{\"size\":8,\"series\":{\"transport\":\"shm\",\"ranks\":2,\"smell\":1},\"colour\":\"red\",\
                    \"sampling\":{\"iterations\":1,\"repetitions\":1},\"figures\":{\"latency_us\":2.5,\"shape\":\"round\"}}";
        let row: Row = serde_json::from_str(text).unwrap();
        assert_eq!(
            row.figures.iter().collect::<Vec<_>>(),
            [("latency_us", 2.5)]
        );
    }
}
