//! Which number of partitions and which policy to use, from what was measured.

use std::fmt::Write;

use super::Report;
use crate::record::Row;

/// The figure by which cases are judged: what is left to wait for once the last thread is done.
const COST: &str = "after_join_us";

/// Differences that no choice should be made by: this part of the least cost, and so many microseconds.
const ALIKE: (f64, f64) = (0.1, 0.2);

/// Header lines with the best case of each size on each transport, and what the message in its place costs. Of
/// cases that are as good, the one with the fewest partitions.
pub(crate) fn lines(report: &Report) -> String {
    let mut text = String::new();
    let mut places: Vec<(&str, u64)> = report
        .summary
        .iter()
        .map(|row| (row.transport.as_str(), row.size))
        .collect();
    places.sort_unstable();
    places.dedup();
    for (transport, size) in places {
        let cost = |row: &Row| row.figures.named(COST).unwrap_or(f64::INFINITY);
        let rows = || {
            let all = report.summary.iter();
            all.filter(|row| (row.transport.as_str(), row.size) == (transport, size))
        };
        let least = rows().map(cost).fold(f64::INFINITY, f64::min);
        let enough = least * (1.0 + ALIKE.0) + ALIKE.1;
        let Some(best) = rows()
            .filter(|row| cost(row) <= enough)
            .min_by_key(|row| row.partitions)
        else {
            continue;
        };
        let (partitions, policy) = (best.partitions.unwrap_or(1), best.policy.as_deref());
        let single = best.figures.named("message_us").unwrap_or(f64::NAN);
        let _ = writeln!(
            text,
            "# Advice: {transport}, {size} bytes: {partitions} partitions, policy {}: {:.2} us after the last thread, a message {single:.2} us",
            policy.unwrap_or("default"),
            cost(best),
        );
    }
    text
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
            row.partitions = Some(partitions);
            row.policy = Some("each".to_owned());
            row.figures.set(COST, cost);
            row.figures.set("message_us", 9.5);
            report.add(row);
        }
        assert_eq!(
            lines(&report),
            "# Advice: shm, 1024 bytes: 16 partitions, policy each: 2.60 us after the last thread, a message 9.50 us\n"
        );
    }
}
