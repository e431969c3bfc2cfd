//! Which number of partitions and which policy to use, from what was measured.

use serde::{Deserialize, Serialize};

use super::Report;
use crate::record::Row;

/// The figure by which cases are judged: what is left to wait for once the last thread is done.
const COST: &str = "after_join_us";

/// Differences that no choice should be made by: this part of the least cost, and so many microseconds.
const ALIKE: (f64, f64) = (0.1, 0.2);

/// What to use for messages of one size on one transport.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Advice {
    /// The transport.
    pub transport: String,
    /// Bytes of the message.
    pub size: u64,
    /// User partitions.
    pub partitions: u32,
    /// How they are aggregated.
    pub policy: String,
    /// What is left to wait for after the last thread, in microseconds.
    pub after_join_us: f64,
    /// What one message in its place takes, in microseconds.
    pub message_us: f64,
}

impl Advice {
    /// A header line.
    pub(crate) fn to_text(&self) -> String {
        format!(
            "# Advice: {}, {} bytes: {} partitions, policy {}: {:.2} us after the last thread, a message {:.2} us\n",
            self.transport,
            self.size,
            self.partitions,
            self.policy,
            self.after_join_us,
            self.message_us,
        )
    }
}

/// The best case of each size on each transport. Of cases that are as good, the one with the fewest
/// partitions.
pub(crate) fn of(report: &Report) -> Vec<Advice> {
    let mut places: Vec<(&str, u64)> = report
        .summary
        .iter()
        .map(|row| (row.series.transport.as_str(), row.size))
        .collect();
    places.sort_unstable();
    places.dedup();
    let best = |(transport, size): (&str, u64)| {
        let cost = |row: &Row| row.figures.named(COST).unwrap_or(f64::INFINITY);
        let rows = || {
            let all = report.summary.iter();
            all.filter(|row| (row.series.transport.as_str(), row.size) == (transport, size))
        };
        let least = rows().map(cost).fold(f64::INFINITY, f64::min);
        let enough = least * (1.0 + ALIKE.0) + ALIKE.1;
        let best = rows()
            .filter(|row| cost(row) <= enough)
            .min_by_key(|row| row.series.partitions)?;
        Some(Advice {
            transport: transport.to_owned(),
            size,
            partitions: best.series.partitions.unwrap_or(1),
            policy: best
                .series
                .policy
                .clone()
                .unwrap_or_else(|| "default".to_owned()),
            after_join_us: cost(best),
            message_us: best.figures.named("message_us")?,
        })
    };
    places.into_iter().filter_map(best).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::report;

    #[test]
    fn the_least_to_wait_for_is_advised() {
        let mut report = report(1);
        for (partitions, cost) in [(1, 9.0), (16, 2.6), (32, 2.5), (64, 3.0)] {
            let mut row = crate::record::tests::sample(1024, "shm", 0, 1.0);
            row.series.partitions = Some(partitions);
            row.series.policy = Some("each".to_owned());
            row.figures.set(COST, cost);
            row.figures.set("message_us", 9.5);
            report.add(row);
        }
        report.sum_up();
        let text: Vec<_> = of(&report).iter().map(Advice::to_text).collect();
        assert_eq!(
            text.concat(),
            "# Advice: shm, 1024 bytes: 16 partitions, policy each: 2.60 us after the last thread, a message 9.50 us\n"
        );
    }
}
