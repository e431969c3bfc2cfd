//! How exactly figures are known: of launches by their scatter, of a simulation by what a model is good for.

use tagwire_bench::Summary;

/// Where figures are from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Known {
    Measured,
    Simulated,
}

/// Differences in percent that are smaller cannot be told apart on a shared machine.
const MEASURED_PCT: f64 = 3.0;

/// A simulated figure is known to this part. Two are told apart by twice that.
const SIMULATED_PART: f64 = 0.01;

/// The figure of run times of one application that computes alike with each layer, from one seed: they differ by the layers alone.
pub(crate) const RUN_TIME: &str = "run_us";

/// A gain in percent is a part of a whole time: a simulated one is known to these points at best.
const SIMULATED_POINTS: f64 = 0.05;

/// A published gain in percent is known to these points: paper 001 has gains of -0.48 to 0.47 % where messages are too short to gain
/// anything (figure 7, RMA with 26 peers up to 64 KiB).
const PUBLISHED_POINTS: f64 = 0.5;

impl Known {
    /// Returns which differences in percent cannot be told apart. A simulation does not scatter, and what is published does.
    pub(crate) const fn percent(self) -> f64 {
        match self {
            Self::Measured => MEASURED_PCT,
            Self::Simulated => PUBLISHED_POINTS,
        }
    }
}

/// Returns a simulated figure with the interval in which it is known.
pub(crate) fn simulated(point: Summary, figure: &str) -> Summary {
    let least = match is_gain(figure) {
        true => SIMULATED_POINTS,
        false => 0.0,
    };
    let part = match figure {
        RUN_TIME => 0.0,
        _ => SIMULATED_PART,
    };
    let about = |value: f64| (value.abs() * part).max(least);
    Summary {
        min: point.min - about(point.min),
        median: point.median,
        max: point.max + about(point.max),
    }
}

/// Whether a figure is a gain or a loss, in percent of a whole time or rate.
fn is_gain(figure: &str) -> bool {
    figure.starts_with("speedup") && figure.ends_with("_pct") || figure == "loss_pct"
}

/// Returns the value of a figure where there is no effect: no gain, no cost, no inequality; or as much as another.
pub(crate) fn without_effect(figure: &str) -> f64 {
    let is_zero = is_gain(figure) || figure.ends_with("_pct") || ZERO.contains(&figure);
    if is_zero { 0.0 } else { 1.0 }
}

/// Figures beside percentages that are 0 where there is no effect.
const ZERO: [&str; 4] = ["cost_us", "gini", "arrival_skewness", "early_bird_paper"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::answer::{Answer, less};

    fn point(value: f64, figure: &str) -> Summary {
        let one = Summary {
            min: value,
            median: value,
            max: value,
        };
        simulated(one, figure)
    }

    #[test]
    fn simulated_figures_are_told_apart_from_two_percent_on() {
        let less = |one, other, figure| less(&point(one, figure), &point(other, figure));
        assert_eq!(less(65.7, 65.8, "latency_us"), Answer::Open);
        assert_eq!(less(65.7, 67.5, "latency_us"), Answer::Yes);
        assert_eq!(less(67.5, 65.7, "latency_us"), Answer::No);
        // Gains near 0 are told apart from a tenth of a point on.
        assert_eq!(less(-0.001, 0.006, "speedup_pct"), Answer::Open);
        assert_eq!(less(-0.1, 0.1, "speedup_pct"), Answer::Yes);
        assert_eq!(point(0.0, "messages").max, 0.0);
    }

    #[test]
    fn no_effect_is_nothing_or_as_much() {
        assert_eq!(without_effect("speedup_pct"), 0.0);
        assert_eq!(without_effect("gini"), 0.0);
        assert_eq!(without_effect("overhead_paper"), 1.0);
    }
}
