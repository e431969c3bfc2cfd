//! The cases of `tagwire bench latency` and `message-rate`, as a simulation runs them between two ranks.

use crate::args::BenchArgs;
use crate::record::{Quantity, Row};

use super::row_of;

/// Messages under way at once, where the command does not say.
const WINDOW: u32 = 64;

/// Round trips or windows, where the command does not say.
const ITERATIONS: u64 = 10;

/// A size of messages between two ranks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SimulatedPair {
    /// Bytes of a message.
    pub size: usize,
    /// What matches it, by the name that rows have.
    pub pml: String,
    /// How many are under way at once, to one side and answered together; `None` of one to and fro.
    pub window: Option<u32>,
    /// How often.
    pub iterations: u64,
}

impl SimulatedPair {
    /// Returns the cases of a command; none where it is of another test.
    pub(super) fn all(args: &BenchArgs) -> Vec<Self> {
        let window = match args.test.name {
            "latency" => None,
            "message-rate" => Some(args.window.unwrap_or(WINDOW)),
            _ => return Vec::new(),
        };
        let sizes = args.size_list();
        let of_size = |size: &u64| Self {
            size: *size as usize,
            pml: args.pml.clone().unwrap_or_else(|| "ob1".to_owned()),
            window,
            iterations: args.iterations.unwrap_or(ITERATIONS),
        };
        sizes.as_slice().iter().map(of_size).collect()
    }

    /// Returns the row of what each round trip, or window with its answer, took, in nanoseconds.
    #[must_use]
    pub fn row(&self, transport: &str, times: &[f64]) -> Row {
        let mut row = row_of(self.size, transport, &self.pml, 2);
        row.series.window = self.window;
        row.sampling.set(self.iterations, 1);
        let figures = &mut row.figures;
        match self.window {
            Some(window) => {
                let rates = times.iter().map(|time| f64::from(window) * 1e9 / time);
                figures.set_all(Quantity::RATE, rates);
            }
            None => {
                figures.set_all(Quantity::LATENCY, times.iter().map(|time| time / 2e3));
                let bytes = 2.0 * self.size as f64;
                figures.set_all(
                    Quantity::BANDWIDTH,
                    times.iter().map(|time| bytes / time * 1e3),
                );
            }
        }
        row
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use super::super::Simulated;
    use super::*;

    fn cases(text: &str) -> Vec<SimulatedPair> {
        let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        Simulated::parse(&words).unwrap().pairs()
    }

    #[test]
    fn round_trips_and_windows_come_to_rows() {
        let all = cases("latency -m 0,1000 -p cm -i 2");
        let names: Vec<_> = all
            .iter()
            .map(|one| (one.size, &*one.pml, one.window))
            .collect();
        assert_eq!(names, [(0, "cm", None), (1000, "cm", None)]);
        let row = all[1].row("sim:redstorm", &[8000.0, 10_000.0, 12_000.0]);
        assert_eq!(row.figures.named("latency_us"), Some(5.0));
        assert_eq!(row.figures.named("latency_min_us"), Some(4.0));
        assert_eq!(row.figures.named("bandwidth_mb_s"), Some(200.0));
        let all = cases("message-rate -m 8 -W 64");
        assert_eq!((all[0].window, &*all[0].pml), (Some(64), "ob1"));
        let row = all[0].row("sim:redstorm", &[64_000.0]);
        assert_eq!(row.figures.named("rate_msg_s"), Some(1e6));
    }
}
