//! The row of a skeleton of an application: what its ranks have spent in the library.

use crate::record::{Quantity, Row};
use crate::stats::Summary;

use super::row_of;

/// What one rank has spent where.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProfiledRank {
    /// Its run time, in nanoseconds.
    pub run: u64,
    /// The part of it that it was in the library, in percent.
    pub library: f64,
    /// Messages that it has sent and that are no longer than the limit.
    pub short: u64,
    /// Those that are longer.
    pub long: u64,
    /// Long messages that came before their receive, and whose bytes were fetched later.
    pub dropped: u64,
    /// The part of the long ones that they are, in percent.
    pub dropped_share: f64,
}

/// What a skeleton has spent where.
#[derive(Debug, Clone, PartialEq)]
pub struct SimulatedProfile {
    /// Its name.
    pub name: String,
    /// The layer, by the name that rows have.
    pub pml: String,
    /// Steps that it took.
    pub steps: u64,
    /// Its ranks.
    pub ranks: Vec<ProfiledRank>,
    /// The routines, each with its part of the run time of all ranks, in percent.
    pub routines: Vec<(String, f64)>,
}

/// Routines of groups.
const COLLECTIVES: [&str; 4] = ["alltoall", "allreduce", "bcast", "barrier"];

impl SimulatedProfile {
    /// Returns its row: means over ranks, with the least and the greatest rank.
    #[must_use]
    pub fn row(&self, transport: &str) -> Row {
        let mut row = row_of(0, transport, &self.pml, self.ranks.len() as u32);
        row.series.pattern.series = Some(self.name.clone());
        row.sampling.set(self.steps, 1);
        let mean = |figure: &dyn Fn(&ProfiledRank) -> f64| {
            self.ranks.iter().map(figure).sum::<f64>() / self.ranks.len().max(1) as f64
        };
        let figures = &mut row.figures;
        let spread = |median, all: Vec<f64>| {
            Some(Summary {
                median,
                ..Summary::of(&all)?
            })
        };
        let library = self.ranks.iter().map(|rank| rank.library).collect();
        let dropped = self.ranks.iter().map(|rank| rank.dropped_share).collect();
        for (quantity, summary) in [
            (
                Quantity::LIBRARY,
                spread(mean(&|rank| rank.library), library),
            ),
            (
                Quantity::DROPPED,
                spread(mean(&|rank| rank.dropped_share), dropped),
            ),
        ] {
            if let Some(summary) = summary {
                figures.set_summary(quantity, summary);
            }
        }
        let (short, long) = (
            mean(&|rank| rank.short as f64),
            mean(&|rank| rank.long as f64),
        );
        figures.set("run_us", mean(&|rank| rank.run as f64 / 1e3));
        figures.set("short_messages", short);
        figures.set("long_messages", long);
        figures.set("dropped_messages", mean(&|rank| rank.dropped as f64));
        figures.set("short_pct", 100.0 * short / (short + long).max(1.0));
        figures.set("long_pct", 100.0 * long / (short + long).max(1.0));
        let mut in_groups = 0.0;
        for (name, part) in &self.routines {
            figures.set(format!("{name}_pct"), *part);
            if COLLECTIVES.contains(&&**name) {
                in_groups += part;
            }
        }
        let whole: f64 = self.routines.iter().map(|(_, part)| part).sum();
        figures.set(
            "collectives_pct",
            100.0 * in_groups / whole.max(f64::MIN_POSITIVE),
        );
        row
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use super::*;

    #[test]
    fn ranks_come_to_a_row() {
        let rank = |library, dropped| ProfiledRank {
            run: 2000,
            library,
            short: 30,
            long: 10,
            dropped,
            dropped_share: 10.0 * dropped as f64,
        };
        let profile = SimulatedProfile {
            name: "vh1".to_owned(),
            pml: "cm".to_owned(),
            steps: 3,
            ranks: vec![rank(10.0, 0), rank(40.0, 1), rank(70.0, 8)],
            routines: vec![("alltoall".to_owned(), 30.0), ("wait".to_owned(), 10.0)],
        };
        let row = profile.row("sim:redstorm");
        assert_eq!(row.series.pattern.series.as_deref(), Some("vh1"));
        let of = |name| row.figures.named(name).unwrap();
        let library = ["library_pct", "library_min_pct", "library_max_pct"].map(of);
        assert_eq!(library, [40.0, 10.0, 70.0]);
        assert_eq!(
            ["dropped_pct", "dropped_max_pct", "run_us"].map(of),
            [30.0, 80.0, 2.0]
        );
        assert_eq!(
            ["short_pct", "collectives_pct", "alltoall_pct"].map(of),
            [75.0, 75.0, 30.0]
        );
    }
}
