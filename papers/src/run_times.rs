//! Run times of applications on a simulated machine, with one layer and with another.

use serde::Deserialize;
use tagwire_bench::Summary;

use crate::answer::{Answer, Band, Tally, quotient};
use crate::judgement::{Judgement, nothing};
use crate::known::RUN_TIME;
use crate::predicate::{KNOWN_GAIN_PCT, Who};
use crate::reference::Number;
use crate::rows::{Place, Rows};
use crate::words::{short, told};

/// When a claim about run times holds. Rows name applications as their series.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(crate) enum RunTimes {
    /// It takes a published part less time with one layer than with another, in percent of the time with the slow one.
    Faster {
        of: String,
        fast: Who,
        slow: Who,
        value: Number,
    },
    /// Two thirds take clearly less time with one layer than with another, and none clearly more.
    Ahead {
        of: Vec<String>,
        fast: Who,
        slow: Who,
    },
}

impl RunTimes {
    /// Judges it on each simulated machine.
    pub(crate) fn judge(&self, rows: &Rows) -> Vec<Judgement> {
        let machines = Machines::of(rows);
        let of = |machine: &str| {
            let judged = match self {
                Self::Faster {
                    of,
                    fast,
                    slow,
                    value,
                } => {
                    let both = machines.times(machine, of, [*slow, *fast]);
                    both.map(|[slow, fast]| by_part(&slow, &fast, *value))
                }
                Self::Ahead { of, fast, slow } => {
                    let all = of
                        .iter()
                        .map(|of| machines.times(machine, of, [*slow, *fast]));
                    all.collect::<Option<Vec<_>>>().map(|all| ahead(&all))
                }
            };
            judged.unwrap_or_else(nothing).on(machine)
        };
        machines.names().into_iter().map(of).collect()
    }

    /// Returns by how many percent one application is faster on each simulated machine, and with which layers. Nothing where it is about
    /// several.
    pub(crate) fn gains(&self, rows: &Rows) -> Vec<(String, Summary)> {
        let Self::Faster { of, fast, slow, .. } = self else {
            return Vec::new();
        };
        let machines = Machines::of(rows);
        let gain = |machine: &str| {
            let [slower, faster] = machines.times(machine, of, [*slow, *fast])?;
            let name = format!("{} than {}, {machine}", fast.name(), slow.name());
            Some((name, gain(&slower, &faster)))
        };
        machines.names().into_iter().filter_map(gain).collect()
    }
}

/// Run times of applications on simulated machines.
struct Machines<'r> {
    rows: &'r Rows,
    places: Vec<Place>,
}

impl<'r> Machines<'r> {
    fn of(rows: &'r Rows) -> Self {
        let places = rows.places();
        Self { rows, places }
    }

    fn names(&self) -> Vec<&str> {
        let of_places = self.places.iter();
        let mut names: Vec<&str> = of_places.map(|place| &*place.transport).collect();
        names.dedup();
        names
    }

    /// Returns how long an application takes on a machine with each of two layers.
    fn times(&self, machine: &str, of: &str, layers: [Who; 2]) -> Option<[Summary; 2]> {
        let time = |who: Who| {
            let is_meant = |place: &&Place| place.transport == machine && place.is_of(who.name());
            let place = self.places.iter().find(is_meant)?;
            let series = self.rows.of_unit(place, of, RUN_TIME);
            let first = series.into_values().next();
            first.filter(|summary| summary.min > 0.0)
        };
        let [slow, fast] = layers;
        Some([time(slow)?, time(fast)?])
    }
}

/// Returns by how many percent of the slow one's time the fast one is faster.
fn gain(slow: &Summary, fast: &Summary) -> Summary {
    let rest = quotient(fast, slow);
    let shorter = |rest: f64| 100.0 * (1.0 - rest);
    Summary {
        min: shorter(rest.max),
        median: shorter(rest.median),
        max: shorter(rest.min),
    }
}

fn by_part(slow: &Summary, fast: &Summary, value: Number) -> Judgement {
    let ours = gain(slow, fast);
    let evidence = format!(
        "{} % faster: {} and {} us of run time; published {}",
        told(&ours),
        short(fast.median),
        short(slow.median),
        value.value()
    );
    let band = Band::of_differences(value.value(), value.value(), KNOWN_GAIN_PCT);
    Judgement::new(band.has(&ours).verdict(), evidence)
}

fn ahead(all: &[[Summary; 2]]) -> Judgement {
    let gains: Vec<Summary> = all.iter().map(|[slow, fast]| gain(slow, fast)).collect();
    let answer = |gain: &Summary| Answer::of(gain.min > KNOWN_GAIN_PCT, gain.max < -KNOWN_GAIN_PCT);
    let tally = Tally::of(gains.iter().map(answer));
    let medians: Vec<String> = gains.iter().map(|gain| short(gain.median)).collect();
    let evidence = format!(
        "faster by more than {KNOWN_GAIN_PCT} % with {} of {}, slower with {}: by {} %",
        tally.yes,
        tally.all,
        tally.no,
        medians.join(", ")
    );
    Judgement::new(tally.order(), evidence)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::judgement::Verdict;
    use crate::rows::tests::of_rows;

    fn row(name: &str, pml: &str, time: f64) -> Value {
        json!({"transport": "sim:redstorm", "pml": pml, "series": name, "size": 0, RUN_TIME: time})
    }

    #[test]
    fn run_times_of_one_application_are_compared() {
        let value = "004/fig5/cm-faster-than-ob1/pop";
        let text =
            format!("faster = {{ of = 'pop', fast = 'cm', slow = 'ob1', value = '{value}' }}");
        let faster: RunTimes = toml::from_str(&text).unwrap();
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

    #[test]
    fn most_applications_are_clearly_ahead_and_none_behind() {
        let text = "ahead = { of = ['gtc', 'pop', 's3d'], fast = 'cm', slow = 'ob1' }";
        let ahead: RunTimes = toml::from_str(text).unwrap();
        let judged = |times: [f64; 3]| {
            let names = ["gtc", "pop", "s3d"];
            let rows = names.iter().zip(times);
            let rows =
                rows.flat_map(|(name, time)| [row(name, "ob1", 100.0), row(name, "cm", time)]);
            ahead.judge(&of_rows(rows.collect()))[0].verdict
        };
        assert_eq!(judged([97.0, 99.0, 100.1]), Verdict::Holds);
        assert_eq!(judged([97.0, 99.9, 100.1]), Verdict::Undecided);
        assert_eq!(judged([97.0, 99.0, 101.0]), Verdict::Fails);
    }
}
