//! Where the time of a run went: what `--profile` reports of each rank, as in the first table of
//! "An Evaluation of Open MPI's Matching Transport Layer on the Cray XT" (Graham, Brightwell,
//! Barrett, Bosilca, Pjesivac-Grbovic; EuroPVM/MPI 2007).

use std::fmt::Write;

use serde::{Deserialize, Serialize};
use tagwire_base::Rank;
use tagwire_pml::{Counters, QueueStats, Stats};

use crate::environment::MPI;

/// One rank of one job, from the first call to the last: warm-up and calibration included.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Profile {
    /// What carried the messages.
    pub transport: String,
    /// The foreign library and its version: an MPI, or what the transport uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// What matched them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pml: Option<String>,
    /// Which start of the job.
    pub launch: u32,
    /// Which rank.
    pub rank: u32,
    /// From the first call to the last.
    pub wall_ms: f64,
    /// Of that, inside calls.
    pub library_ms: f64,
    /// The same in percent; over 100 where several threads call at once.
    pub library_pct: f64,
    /// Messages by protocol.
    pub messages: Messages,
    /// The ways in which long messages went at the end, and the algorithms of collectives that were found by trial, with what they took;
    /// the algorithms that a setting names; and what data reliability had to do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ways: Vec<String>,
    /// What the matching engine did. Absent where the library or the transport matches, and does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matching: Option<Matching>,
    /// The calls, the most expensive first.
    pub calls: Vec<Call>,
}

/// What a matching engine did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Matching {
    /// Among posted receives, for messages.
    pub posted: Searches,
    /// Among unexpected messages, for receives.
    pub unexpected: Searches,
}

/// Searches of a queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Searches {
    /// The most entries that it held at once.
    pub longest: u32,
    /// Searches that took an entry.
    pub hits: u64,
    /// Searches of a queue with entries that took none.
    pub misses: u64,
    /// Entries that searches looked at.
    pub attempts: u64,
    /// The same of one search, on the average. Absent where there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// The most that one looked at. Absent where the engine does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deepest: Option<u64>,
}

/// Messages by protocol.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Messages {
    /// All that were sent, those included by which the benchmark's ranks agree.
    pub sent: u64,
    /// Their bytes.
    pub sent_bytes: u64,
    /// All receives.
    pub received: u64,
    /// Their room in bytes.
    pub received_bytes: u64,
    /// Of the sent, those whose bytes went with the envelope. Absent, as all below, where the
    /// library does not tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_short: Option<u64>,
    /// Of the sent, those whose bytes moved after the match.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent_long: Option<u64>,
    /// Of the received, short ones that came before the receive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unexpected_short: Option<u64>,
    /// Of the received, long ones that came before the receive: the envelope was kept, and the
    /// bytes were fetched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unexpected_long: Option<u64>,
    /// Of the received, those that their sender had copied into the receive before it matched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filled: Option<u64>,
}

/// What one kind of call came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Call {
    /// Its name.
    pub call: String,
    /// How many there were.
    pub calls: u64,
    /// Their time.
    pub total_ms: f64,
    /// The time of one.
    pub mean_us: f64,
    /// Their part of all time inside calls, in percent.
    pub share_pct: f64,
}

impl Matching {
    pub(crate) fn of(stats: Stats) -> Self {
        Self {
            posted: Searches::of(stats.posted),
            unexpected: Searches::of(stats.unexpected),
        }
    }
}

impl Searches {
    fn of(stats: QueueStats) -> Self {
        let searches = stats.hits + stats.misses;
        Self {
            longest: stats.high_water,
            hits: stats.hits,
            misses: stats.misses,
            attempts: stats.attempts,
            mean: (searches > 0).then(|| stats.attempts as f64 / searches as f64),
            deepest: stats.deepest,
        }
    }
}

impl Call {
    pub(crate) fn new(name: &str, calls: u64, total_ns: f64) -> Self {
        Self {
            call: name.to_owned(),
            calls,
            total_ms: total_ns / 1e6,
            mean_us: total_ns / 1e3 / calls.max(1) as f64,
            share_pct: 0.0,
        }
    }
}

impl Messages {
    /// Of number and bytes of the sent and of the received.
    pub(crate) fn new(sent: (u64, u64), received: (u64, u64), ways: Option<Counters>) -> Self {
        Self {
            sent: sent.0,
            sent_bytes: sent.1,
            received: received.0,
            received_bytes: received.1,
            sent_short: ways.map(|ways| sent.0.saturating_sub(ways.sent_long)),
            sent_long: ways.map(|ways| ways.sent_long),
            unexpected_short: ways.map(|ways| ways.unexpected_short),
            unexpected_long: ways.map(|ways| ways.unexpected_long),
            filled: ways.map(|ways| ways.filled),
        }
    }
}

impl Profile {
    /// Of `rank`, without what it was measured over.
    pub(crate) fn new(
        rank: Rank,
        wall_ns: f64,
        calls: impl Iterator<Item = Call>,
        messages: Messages,
    ) -> Self {
        let mut calls: Vec<Call> = calls.filter(|call| call.calls > 0).collect();
        calls.sort_by(|a, b| b.total_ms.total_cmp(&a.total_ms));
        let library_ms: f64 = calls.iter().map(|call| call.total_ms).sum();
        let share = |part: f64, whole: f64| {
            if whole > 0.0 {
                100.0 * part / whole
            } else {
                0.0
            }
        };
        for call in &mut calls {
            call.share_pct = share(call.total_ms, library_ms);
        }
        Self {
            transport: String::new(),
            library: None,
            pml: None,
            launch: 0,
            rank: rank.as_u32(),
            wall_ms: wall_ns / 1e6,
            library_ms,
            library_pct: share(library_ms, wall_ns / 1e6),
            messages,
            ways: Vec::new(),
            matching: None,
            calls,
        }
    }

    /// As header lines of a text report.
    pub(crate) fn to_text(&self) -> String {
        let mut text = String::new();
        let mut line = |words: String| {
            let _ = writeln!(text, "# {words}");
        };
        let foreign = self.library.as_ref().filter(|_| self.transport == MPI);
        let over = foreign.unwrap_or(&self.transport);
        line(format!(
            "Profile: rank {} over {over}, launch {}: {:.1} % of {:.1} ms inside the library",
            self.rank, self.launch, self.library_pct, self.wall_ms
        ));
        let Messages {
            sent,
            sent_bytes,
            received,
            received_bytes,
            ..
        } = self.messages;
        line(format!(
            "  sent {sent} messages of {sent_bytes} bytes, received {received} into {received_bytes}"
        ));
        if let Messages {
            sent_short: Some(short),
            sent_long: Some(long),
            unexpected_short: Some(unexpected),
            unexpected_long: Some(fetched),
            ..
        } = self.messages
        {
            let filled = self.messages.filled.unwrap_or_default();
            line(format!(
                "  by protocol: sent short {short}, sent long {long}, unexpected {unexpected}, \
                 unexpected long and fetched {fetched}, filled by their sender {filled}"
            ));
        }
        for way in &self.ways {
            line(format!("  {way}"));
        }
        let matching = self.matching.iter();
        let queues =
            matching.flat_map(|it| [("posted", &it.posted), ("unexpected", &it.unexpected)]);
        for (queue, searches) in queues {
            let Searches {
                longest,
                hits,
                misses,
                attempts,
                mean,
                deepest,
            } = searches;
            let mean = mean.map_or_else(String::new, |mean| format!(", {mean:.2} a search"));
            let deepest =
                deepest.map_or_else(String::new, |most| format!(", {most} by one search"));
            line(format!(
                "  matching, {queue}: at most {longest} entries, {hits} hits, {misses} misses, {attempts} entries looked at{mean}{deepest}"
            ));
        }
        for call in &self.calls {
            line(format!(
                "  {:<8} {:>10} calls {:>12.3} ms {:>12.3} us each {:>6.1} %",
                call.call, call.calls, call.total_ms, call.mean_us, call.share_pct
            ));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_expensive_call_comes_first_and_shares_add_up() {
        let calls = [
            Call::new("isend", 10, 1e6),
            Call::new("recv", 5, 3e6),
            Call::new("send", 0, 0.0),
        ];
        let ways = Counters {
            sent_long: 4,
            unexpected_short: 2,
            unexpected_long: 1,
            filled: 3,
        };
        let messages = Messages::new((10, 80), (5, 40), Some(ways));
        let mut profile = Profile::new(Rank::new(1), 8e6, calls.into_iter(), messages);
        profile.ways.push("by halves".to_owned());
        let posted = QueueStats {
            high_water: 7,
            hits: 5,
            misses: 2,
            attempts: 41,
            deepest: Some(9),
            ..QueueStats::default()
        };
        profile.matching = Some(Matching::of(Stats {
            posted,
            ..Stats::default()
        }));
        assert_eq!(profile.library_pct, 50.0);
        let expected = "\
# Profile: rank 1 over , launch 0: 50.0 % of 8.0 ms inside the library
#   sent 10 messages of 80 bytes, received 5 into 40
#   by protocol: sent short 6, sent long 4, unexpected 2, unexpected long and fetched 1, filled by their sender 3
#   by halves
#   matching, posted: at most 7 entries, 5 hits, 2 misses, 41 entries looked at, 5.86 a search, 9 by one search
#   matching, unexpected: at most 0 entries, 0 hits, 0 misses, 0 entries looked at
#   recv              5 calls        3.000 ms      600.000 us each   75.0 %
#   isend            10 calls        1.000 ms      100.000 us each   25.0 %
";
        assert_eq!(profile.to_text(), expected);
        let json = serde_json::to_value(&profile).unwrap();
        let means = ["posted", "unexpected"].map(|queue| json["matching"][queue].get("mean"));
        assert_eq!(means, [Some(&(41.0 / 7.0).into()), None]);
    }
}
