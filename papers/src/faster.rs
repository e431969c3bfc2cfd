//! Run times of applications on a simulated machine: by how many percent they are shorter with one layer than with another.

use serde::Deserialize;
use tagwire_bench::Summary;

use crate::answer::{Band, quotient};
use crate::judgement::{Judgement, nothing};
use crate::predicate::{KNOWN_GAIN_PCT, Who};
use crate::reference::Number;
use crate::rows::{Place, Rows, Series};
use crate::words::{short, told};

/// A skeleton of an application takes a published part less time with one layer than with another. Rows name it as their series.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Faster {
    of: String,
    fast: Who,
    slow: Who,
    /// In percent of the run time with the slow one.
    value: Number,
}

impl Faster {
    /// Judges it on each simulated machine.
    pub(crate) fn judge(&self, rows: &Rows) -> Vec<Judgement> {
        let places = rows.places();
        let mut machines: Vec<&str> = places.iter().map(|place| &*place.transport).collect();
        machines.dedup();
        let time = |machine: &str, who: Who| {
            let is_meant = |place: &&Place| place.transport == machine && place.is_of(who.name());
            let place = places.iter().find(is_meant);
            let series = place.map_or_else(Series::new, |at| rows.of_unit(at, &self.of, TIME));
            series.into_values().next()
        };
        let of = |machine: &&str| {
            let judged = match (time(machine, self.slow), time(machine, self.fast)) {
                (Some(slow), Some(fast)) if slow.min > 0.0 => self.decide(&slow, &fast),
                _ => nothing(),
            };
            judged.on(*machine)
        };
        machines.iter().map(of).collect()
    }

    fn decide(&self, slow: &Summary, fast: &Summary) -> Judgement {
        let rest = quotient(fast, slow);
        let shorter = |rest: f64| 100.0 * (1.0 - rest);
        let ours = Summary {
            min: shorter(rest.max),
            median: shorter(rest.median),
            max: shorter(rest.min),
        };
        let evidence = format!(
            "{} % faster: {} and {} us of run time; published {}",
            told(&ours),
            short(fast.median),
            short(slow.median),
            self.value.value()
        );
        let band = Band::of_differences(self.value.value(), self.value.value(), KNOWN_GAIN_PCT);
        Judgement::new(band.has(&ours).verdict(), evidence)
    }
}

/// The figure of rows.
const TIME: &str = "run_us";

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::judgement::Verdict;
    use crate::rows::tests::of_rows;

    fn row(name: &str, pml: &str, time: f64) -> Value {
        json!({"transport": "sim:redstorm", "pml": pml, "series": name, "size": 0, TIME: time})
    }

    #[test]
    fn run_times_of_one_application_are_compared() {
        let text =
            "of = 'pop'\nfast = 'cm'\nslow = 'ob1'\nvalue = '004/fig5/cm-faster-than-ob1/pop'";
        let faster: Faster = toml::from_str(text).unwrap();
        let judged = |time| {
            let rows = [
                row("vh1", "cm", 1.0),
                row("pop", "ob1", 100.0),
                row("pop", "cm", time),
            ];
            let mut judged = faster.judge(&of_rows(rows.to_vec()));
            assert_eq!(judged.len(), 1);
            judged.remove(0)
        };
        let holds = judged(82.0);
        assert_eq!(
            (&*holds.on, holds.verdict),
            ("sim:redstorm", Verdict::Holds)
        );
        assert!(holds.evidence.starts_with("18.0 "), "{}", holds.evidence);
        assert_eq!(judged(99.0).verdict, Verdict::Fails);
        // The other way round is no gain.
        assert_eq!(judged(118.0).verdict, Verdict::Fails);
        let alone = faster.judge(&of_rows(vec![row("pop", "cm", 1.0)]));
        assert_eq!(alone[0].verdict, Verdict::NotTestable);
    }
}
