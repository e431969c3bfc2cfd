//! What else ran on the ranks' CPUs while blocks were measured.
//!
//! Each rank reads the kernel's counters before the first measured block and after the last, and reports the
//! difference to rank 0. That is outside of everything that is timed.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tagwire_base::topology;

use self::reading::{Reading, boot, siblings};
use crate::record::{Figures, Row};
use crate::stats::mix;

mod reading;

/// The keys of a row's figures.
pub(crate) const WAIT: &str = "run_queue_wait_pct";
pub(crate) const SWITCHES: &str = "involuntary_switches";
pub(crate) const OTHERS: &str = "other_load_pct";
pub(crate) const SIBLINGS: &str = "sibling_load_pct";

/// The kernel counts the time of CPUs in hundredths of a second: in less than so many nanoseconds
/// that says nothing.
const COUNTABLE_NS: u64 = 80_000_000;

/// From which part of the measured time on a wait for a CPU disturbs, in percent.
const WAIT_PCT: f64 = 2.0;
/// From which part of a CPU's time on others disturb, in percent, where no rank was seen to wait for
/// them; and where one was.
const OTHERS_PCT: (f64, f64) = (15.0, 2.0);

/// Whether other processes disturbed a measurement during which a rank waited `wait` percent of the
/// time for a CPU, and others took `others` percent of the ranks' CPUs. Ranks that are `oversubscribed` wait
/// for each other.
pub(crate) fn is_disturbed(wait: Option<f64>, others: Option<f64>, oversubscribed: bool) -> bool {
    let waited = wait.is_some_and(|wait| wait >= WAIT_PCT);
    match others {
        Some(others) => others >= OTHERS_PCT.0 || (waited && others >= OTHERS_PCT.1),
        None => waited && !oversubscribed,
    }
}

/// Whether a rank waited for a CPU, whoever had it.
pub(crate) fn has_waited(wait: Option<f64>) -> bool {
    wait.is_some_and(|wait| wait >= WAIT_PCT)
}

/// What a rank's thread went through during the measured blocks of a row.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct RankLoad {
    /// From the first measured block to the end of the last.
    pub measured_ms: f64,
    /// How often another thread took its CPU away.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub involuntary_switches: Option<u64>,
    /// How long it waited for a CPU while it could have run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_queue_wait_ms: Option<f64>,
}

/// What all ranks report of the measured blocks of a row.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Load {
    pub ranks: Vec<RankLoad>,
    /// The part of a rank's CPUs that other processes took, in percent, where that was most.
    others_pct: Option<f64>,
    /// How busy the other hardware threads of a rank's cores were, in percent, where that was most.
    siblings_pct: Option<f64>,
}

impl Load {
    /// Adds what it comes to.
    fn add_to(&self, figures: &mut Figures) {
        let waits = self.ranks.iter().filter_map(|rank| {
            let wait = rank.run_queue_wait_ms?;
            Some((100.0 * wait / rank.measured_ms.max(1e-6)).min(100.0))
        });
        let switches = self.ranks.iter().map(|rank| rank.involuntary_switches);
        let switches: Option<u64> = switches.sum();
        for (key, value) in [
            (WAIT, waits.reduce(f64::max)),
            (SWITCHES, switches.map(|count| count as f64)),
            (OTHERS, self.others_pct),
            (SIBLINGS, self.siblings_pct),
        ] {
            if let Some(value) = value {
                figures.set(key, value);
            }
        }
    }

    /// Adds it to a row that was measured meanwhile.
    pub(crate) fn add_to_row(&self, row: &mut Row) {
        self.add_to(&mut row.figures);
        row.load = Some(self.ranks.clone());
    }

    /// What these ranks saw.
    pub(crate) fn of(all: &[Activity]) -> Self {
        let rank = |activity: &Activity| RankLoad {
            measured_ms: milliseconds(activity.wall_ns),
            involuntary_switches: activity.switches,
            run_queue_wait_ms: activity.wait_ns.map(milliseconds),
        };
        let siblings = all.iter().filter_map(|one| one.share(one.siblings));
        Self {
            ranks: all.iter().map(rank).collect(),
            others_pct: others_pct(all),
            siblings_pct: siblings.reduce(f64::max),
        }
    }
}

/// The part of their CPUs that ranks did not use themselves. Ranks that may run on the same CPUs
/// are looked at together.
fn others_pct(all: &[Activity]) -> Option<f64> {
    let mut places: BTreeMap<u64, Activity> = BTreeMap::new();
    for one in all {
        let together = places
            .entry(one.place)
            .or_insert(Activity { own_ns: 0, ..*one });
        together.own_ns += one.own_ns;
        together.cpus.busy_ns = together.cpus.busy_ns.max(one.cpus.busy_ns);
    }
    let shares = places.values().filter_map(|place| {
        let busy_ns = place.cpus.busy_ns.saturating_sub(place.own_ns);
        place.share(Cpus {
            busy_ns,
            ..place.cpus
        })
    });
    shares.reduce(f64::max)
}

/// What a rank is watched by, between two moments.
#[derive(Debug)]
pub(crate) struct Watch {
    earlier: Reading,
}

impl Watch {
    /// Begins to watch the calling thread and its CPUs.
    pub(crate) fn begin() -> Self {
        Self {
            earlier: Reading::take(Path::new("/")),
        }
    }

    /// Returns what this rank saw since it began.
    pub(crate) fn activity(&self) -> Activity {
        let root = Path::new("/");
        let (before, now) = (&self.earlier, Reading::take(root));
        let own = topology::binding().unwrap_or_default();
        let since = |now: Option<u64>, before: Option<u64>| Some(now?.saturating_sub(before?));
        let busy = |cpus: &topology::CpuList| {
            let known = cpus.iter().filter_map(|cpu| busy_ns(cpu, before, &now));
            known.fold(Cpus::default(), |sum, busy_ns| Cpus {
                count: sum.count + 1,
                busy_ns: sum.busy_ns + busy_ns,
            })
        };
        Activity {
            wall_ns: u64::try_from((now.ended - before.began).as_nanos()).unwrap_or(u64::MAX),
            own_ns: now.own_ns.saturating_sub(before.own_ns),
            switches: since(now.switches, before.switches),
            wait_ns: since(now.wait_ns, before.wait_ns),
            place: place(&boot(root), &own.to_string()),
            cpus: busy(&own),
            siblings: busy(&siblings(root, &own)),
        }
    }
}

/// Returns how long a CPU was not idle between two readings, in nanoseconds.
fn busy_ns(cpu: u32, before: &Reading, now: &Reading) -> Option<u64> {
    let (idle, earlier) = (now.idle_ns.get(&cpu)?, before.idle_ns.get(&cpu)?);
    let whole = u64::try_from((now.at - before.at).as_nanos()).unwrap_or(u64::MAX);
    Some(whole.saturating_sub(idle.saturating_sub(*earlier)))
}

/// Some CPUs, and how long they were busy together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Cpus {
    count: u64,
    busy_ns: u64,
}

/// What a rank saw between two moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Activity {
    wall_ns: u64,
    /// Processor time of its process.
    own_ns: u64,
    switches: Option<u64>,
    wait_ns: Option<u64>,
    /// The same for ranks that may run on the same CPUs of the same machine.
    place: u64,
    /// Those that it may run on.
    cpus: Cpus,
    /// The other hardware threads of their cores.
    siblings: Cpus,
}

impl Activity {
    /// The part of their time that `cpus` were busy, in percent; `None` where there are none, or the
    /// time is too short.
    fn share(&self, cpus: Cpus) -> Option<f64> {
        let whole = cpus.count as f64 * self.wall_ns as f64;
        let known = cpus.count > 0 && self.wall_ns >= COUNTABLE_NS;
        known.then(|| (100.0 * cpus.busy_ns as f64 / whole).min(100.0))
    }
}

fn milliseconds(nanoseconds: u64) -> f64 {
    (nanoseconds as f64 / 1e3).round() / 1e3
}

fn place(boot: &str, cpus: &str) -> u64 {
    let bytes = boot.bytes().chain(cpus.bytes());
    bytes.fold(0, |hash, byte| mix(hash ^ u64::from(byte)).wrapping_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// A rank that had a CPU to itself for a second and used all of it.
    fn alone(place: u64) -> Activity {
        Activity {
            wall_ns: SECOND,
            own_ns: SECOND,
            switches: Some(2),
            wait_ns: Some(1_000_000),
            place,
            cpus: Cpus {
                count: 1,
                busy_ns: SECOND,
            },
            siblings: Cpus::default(),
        }
    }

    fn figures(all: &[Activity]) -> Vec<(String, f64)> {
        let mut figures = Figures::default();
        Load::of(all).add_to(&mut figures);
        let pairs = figures.iter();
        pairs.map(|(key, value)| (key.to_owned(), value)).collect()
    }

    fn named(all: &[Activity], key: &str) -> Option<f64> {
        let figures = figures(all);
        figures.iter().find(|(name, _)| name == key).map(|it| it.1)
    }

    #[test]
    fn a_quiet_machine_has_no_load_beside_the_ranks() {
        let all = [alone(1), alone(2)];
        let expected = [(WAIT, 0.1), (SWITCHES, 4.0), (OTHERS, 0.0)];
        let expected = expected.map(|(key, value)| (key.to_owned(), value));
        assert_eq!(figures(&all), expected);
    }

    #[test]
    fn what_ranks_do_not_use_of_their_cpus_others_do() {
        let halved = Activity {
            own_ns: SECOND / 2,
            wait_ns: Some(SECOND / 2),
            switches: Some(250),
            ..alone(2)
        };
        let all = [alone(1), halved];
        assert_eq!(named(&all, OTHERS), Some(50.0));
        assert_eq!(named(&all, WAIT), Some(50.0));
        assert_eq!(named(&all, SWITCHES), Some(252.0));
    }

    #[test]
    fn a_thread_waits_for_all_of_the_time_at_most() {
        let all = [Activity {
            wait_ns: Some(5 * SECOND),
            ..alone(1)
        }];
        assert_eq!(named(&all, WAIT), Some(100.0));
    }

    #[test]
    fn ranks_on_the_same_cpus_are_no_load_for_each_other() {
        let both = |own_ns| Activity {
            own_ns,
            cpus: Cpus {
                count: 2,
                busy_ns: 2 * SECOND,
            },
            ..alone(7)
        };
        assert_eq!(named(&[both(SECOND), both(SECOND)], OTHERS), Some(0.0));
        assert_eq!(named(&[both(SECOND), both(SECOND / 2)], OTHERS), Some(25.0));
    }

    #[test]
    fn a_busy_sibling_is_seen() {
        let shared = Activity {
            siblings: Cpus {
                count: 1,
                busy_ns: SECOND / 4,
            },
            ..alone(1)
        };
        assert_eq!(named(&[alone(2), shared], SIBLINGS), Some(25.0));
    }

    #[test]
    fn what_the_kernel_does_not_count_is_absent() {
        let short = Activity {
            wall_ns: 1_000_000,
            switches: None,
            wait_ns: None,
            ..alone(1)
        };
        assert!(
            figures(&[short, alone(2)])
                .iter()
                .all(|it| it.0 != SWITCHES)
        );
        assert!(figures(&[short]).is_empty());
    }

    #[test]
    fn places_differ_by_machine_and_by_cpus() {
        assert_eq!(place("boot\n", "0-1"), place("boot\n", "0-1"));
        assert_ne!(place("boot\n", "0-1"), place("boot\n", "0"));
        assert_ne!(place("boot\n", "0-1"), place("other\n", "0-1"));
    }

    #[test]
    fn a_watch_reports_to_itself() {
        let load = Load::of(&[Watch::begin().activity()]);
        assert_eq!(load.ranks.len(), 1);
        assert!(load.ranks[0].measured_ms >= 0.0);
    }

    #[test]
    fn disturbed_is_what_waits_for_others() {
        for (wait, others, oversubscribed, disturbed) in [
            (Some(0.1), Some(1.0), false, false),
            (Some(48.0), Some(50.0), false, true),
            (Some(48.0), Some(50.0), true, true),
            // The ranks' own threads.
            (Some(48.0), Some(0.0), false, false),
            // Too short for the kernel's count of CPUs.
            (Some(48.0), None, false, true),
            (Some(48.0), None, true, false),
            (Some(0.0), Some(20.0), false, true),
            (None, None, false, false),
        ] {
            assert_eq!(
                is_disturbed(wait, others, oversubscribed),
                disturbed,
                "{wait:?} {others:?} {oversubscribed}"
            );
        }
    }
}
