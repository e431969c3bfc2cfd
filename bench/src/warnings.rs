//! What makes figures doubtful, and the option to try: one line each, from what was measured.

use serde::{Deserialize, Serialize};

use crate::line_transfer::Placing;
use crate::load::{has_waited, is_disturbed};

/// A spread from here on is named, in percent.
const SPREAD_PCT: f64 = 15.0;
/// So much longer than the longest of the others the first block is an outlier, in percent.
const FIRST_BLOCK_PCT: f64 = 15.0;
/// So busy the other hardware thread of a core is named, in percent.
const SIBLING_PCT: f64 = 10.0;
/// The governor that keeps the clock of a core up.
const PERFORMANCE: &str = "performance";
/// The congestion control that paces what it sends, by what it takes the rate of the way for.
const PACING: &str = "bbr";
/// How many sizes are named.
const NAMED_SIZES: usize = 4;

/// Something that makes figures doubtful.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Warning {
    /// Which one it is: `other-load`, `own-threads`, `spread`, `first-block`, `governor`, `tcp-pacing`, `smt-sibling`,
    /// `one-launch`, `oversubscribed`, `busy-threads`, `placing`.
    pub kind: String,
    /// What was seen.
    pub message: String,
    /// What to try.
    pub advice: String,
}

impl Warning {
    fn new(kind: &str, message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            kind: kind.to_owned(),
            message: message.into(),
            advice: advice.into(),
        }
    }

    /// One line without its end.
    pub(crate) fn to_text(&self) -> String {
        format!("{}; try {}", self.message, self.advice)
    }
}

/// What was measured of a row besides its figures, each as far as it is known.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Seen {
    pub size: u64,
    /// The part of the time that a rank waited for a CPU, in percent.
    pub wait: Option<f64>,
    /// The part of a rank's CPUs that other processes took, in percent.
    pub others: Option<f64>,
    /// How busy the other hardware thread of a rank's core was, in percent.
    pub siblings: Option<f64>,
    /// How much longer the first block took than the longest of the others, in percent.
    pub first_block: Option<f64>,
}

/// All that the warnings follow from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Measurements {
    pub rows: Vec<Seen>,
    /// Sizes and their spreads, in percent: over launches where there are several, else over blocks.
    pub spreads: Vec<(u64, f64)>,
    pub governors: Vec<String>,
    /// The congestion control of TCP, where that was measured.
    pub tcp_congestion: Option<String>,
    /// How many times each job is started; `None` where this command cannot start it again.
    pub launches: Option<u32>,
    pub ranks: u32,
    /// The units that have more processes or threads than cores.
    pub crowded: Vec<String>,
    /// There are more ranks or threads than cores.
    pub oversubscribed: bool,
    /// Threads compute busily.
    pub computes_busily: bool,
    /// How the ranks' CPUs were placed to each other for most rows, and how many rows were not measured so.
    pub placing: Option<(Placing, usize)>,
}

/// What makes these measurements doubtful, the worst first.
pub(crate) fn of(seen: &Measurements) -> Vec<Warning> {
    [
        other_load(seen),
        own_threads(seen),
        oversubscribed(seen),
        busy_threads(seen),
        sibling(seen),
        placing(seen),
        spread(seen),
        first_block(seen),
        governor(seen),
        tcp_pacing(seen),
        one_launch(seen),
    ]
    .into_iter()
    .flatten()
    .collect()
}

fn other_load(seen: &Measurements) -> Option<Warning> {
    let disturbed = |row: &Seen| is_disturbed(row.wait, row.others, seen.oversubscribed);
    let rows: Vec<Seen> = seen.rows.iter().copied().filter(disturbed).collect();
    let sizes = sizes(rows.iter().map(|row| row.size))?;
    let most = |of: fn(&Seen) -> Option<f64>| rows.iter().filter_map(of).reduce(f64::max);
    let waited = most(|row| row.wait);
    let others = most(|row| row.others);
    let parts = [
        waited.map(|pct| format!("ranks waited for a CPU for up to {pct:.1} % of the time")),
        others.map(|pct| format!("others had up to {pct:.1} % of a rank's CPUs")),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    Some(Warning::new(
        "other-load",
        format!(
            "other processes ran on the ranks' CPUs ({sizes}): {}",
            parts.join(", ")
        ),
        "a quiet machine, or idle CPUs with --bind LIST",
    ))
}

fn own_threads(seen: &Measurements) -> Option<Warning> {
    let waited = |row: &&Seen| {
        has_waited(row.wait) && !is_disturbed(row.wait, row.others, seen.oversubscribed)
    };
    let sizes = sizes(seen.rows.iter().filter(waited).map(|row| row.size))?;
    (!seen.oversubscribed).then(|| {
        Warning::new(
            "own-threads",
            format!(
                "threads of the ranks themselves waited for each other on their CPUs ({sizes})"
            ),
            "--bind none, so that the threads of a transport have other cores",
        )
    })
}

fn oversubscribed(seen: &Measurements) -> Option<Warning> {
    if !seen.crowded.is_empty() {
        let units = seen.crowded.join(", ");
        return Some(Warning::new(
            "oversubscribed",
            format!("{units}: more processes or threads than cores, they take turns"),
            "fewer with --units, or more CPUs with --bind LIST",
        ));
    }
    seen.oversubscribed.then(|| {
        Warning::new(
            "oversubscribed",
            format!(
                "{} ranks with their threads have fewer cores: they take turns, times are long",
                seen.ranks
            ),
            "fewer with -n or --threads, or more CPUs with --bind LIST",
        )
    })
}

fn busy_threads(seen: &Measurements) -> Option<Warning> {
    (seen.oversubscribed && seen.computes_busily).then(|| {
        Warning::new(
            "busy-threads",
            "threads that compute busily take turns on too few cores",
            "--compute sleep, which alone means something here",
        )
    })
}

fn sibling(seen: &Measurements) -> Option<Warning> {
    let busy = |row: &&Seen| row.siblings.is_some_and(|pct| pct >= SIBLING_PCT);
    let rows = seen.rows.iter().filter(busy);
    let sizes = sizes(rows.clone().map(|row| row.size))?;
    let most = rows.filter_map(|row| row.siblings).fold(0.0, f64::max);
    Some(Warning::new(
        "smt-sibling",
        format!(
            "the other hardware thread of a rank's core was busy for up to {most:.1} % of the time ({sizes})"
        ),
        "--bind LIST with one CPU of each idle core",
    ))
}

fn placing(seen: &Measurements) -> Option<Warning> {
    let (placing, others) = seen.placing.filter(|(_, others)| *others != 0)?;
    let rows = if others == 1 { "row was" } else { "rows were" };
    Some(Warning::new(
        "placing",
        format!(
            "the ranks' CPUs were {} for most of the time, and {others} {rows} not measured so: medians leave them out where there are others",
            placing.name()
        ),
        "the same again; each row's line_transfer_ns tells",
    ))
}

fn spread(seen: &Measurements) -> Option<Warning> {
    let wide = seen.spreads.iter().filter(|(_, pct)| *pct > SPREAD_PCT);
    let sizes = sizes(wide.clone().map(|(size, _)| *size))?;
    let most = wide.map(|(_, pct)| *pct).fold(0.0, f64::max);
    let advice = match seen.launches {
        Some(launches) => format!(
            "--launches {} for medians over more launches, or longer blocks with -i",
            (2 * launches).max(5)
        ),
        None => "longer blocks with -i".to_owned(),
    };
    Some(Warning::new(
        "spread",
        format!("the spread is up to {most:.1} %, over {SPREAD_PCT} % ({sizes})"),
        advice,
    ))
}

fn first_block(seen: &Measurements) -> Option<Warning> {
    let slow = |row: &&Seen| row.first_block.is_some_and(|pct| pct > FIRST_BLOCK_PCT);
    let rows = seen.rows.iter().filter(slow);
    let sizes = sizes(rows.clone().map(|row| row.size))?;
    let most = rows.filter_map(|row| row.first_block).fold(0.0, f64::max);
    Some(Warning::new(
        "first-block",
        format!("the first block took up to {most:.1} % longer than any other ({sizes})"),
        "a longer warm-up with -x",
    ))
}

fn governor(seen: &Measurements) -> Option<Warning> {
    let others = seen.governors.iter().filter(|name| *name != PERFORMANCE);
    let others: Vec<&str> = others.map(String::as_str).collect();
    (!others.is_empty()).then(|| {
        Warning::new(
            "governor",
            format!(
                "the frequency governor is {}: the clock of a core follows its load",
                others.join(", ")
            ),
            "cpupower frequency-set -g performance",
        )
    })
}

fn tcp_pacing(seen: &Measurements) -> Option<Warning> {
    let name = seen.tcp_congestion.as_deref();
    name.filter(|name| *name == PACING).map(|name| {
        Warning::new(
            "tcp-pacing",
            format!("TCP's congestion control is {name}, which paces the loopback too: figures wander by a factor"),
            "a network namespace with net.ipv4.tcp_congestion_control=reno",
        )
    })
}

fn one_launch(seen: &Measurements) -> Option<Warning> {
    (seen.launches == Some(1) && !seen.rows.is_empty()).then(|| {
        Warning::new(
            "one-launch",
            "one launch: what differs from launch to launch is not seen",
            "--launches 5",
        )
    })
}

/// The sizes in words; `None` where there are none.
fn sizes(all: impl Iterator<Item = u64>) -> Option<String> {
    let mut list: Vec<u64> = all.collect();
    list.sort_unstable();
    list.dedup();
    let named = list.iter().take(NAMED_SIZES).map(u64::to_string);
    let named = named.collect::<Vec<_>>().join(", ");
    match list.len() {
        0 => None,
        1 => Some(format!("size {named}")),
        count if count > NAMED_SIZES => {
            Some(format!("sizes {named} and {} more", count - NAMED_SIZES))
        }
        _ => Some(format!("sizes {named}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Five launches on a quiet machine.
    fn quiet() -> Measurements {
        let row = |size| Seen {
            size,
            wait: Some(0.1),
            others: Some(1.0),
            siblings: Some(2.0),
            first_block: Some(3.0),
        };
        Measurements {
            rows: vec![row(8), row(64)],
            spreads: vec![(8, 4.0), (64, 15.0)],
            governors: vec![PERFORMANCE.to_owned()],
            tcp_congestion: Some("cubic".to_owned()),
            launches: Some(5),
            ranks: 2,
            crowded: Vec::new(),
            oversubscribed: false,
            computes_busily: false,
            placing: Some((Placing::Apart, 0)),
        }
    }

    fn kinds(seen: &Measurements) -> Vec<String> {
        of(seen).into_iter().map(|warning| warning.kind).collect()
    }

    fn only(seen: &Measurements) -> String {
        let all = of(seen);
        assert_eq!(all.len(), 1, "{all:?}");
        all[0].to_text()
    }

    #[test]
    fn a_quiet_machine_gives_no_warning() {
        assert!(of(&quiet()).is_empty());
        assert!(of(&Measurements::default()).is_empty());
    }

    #[test]
    fn other_load_is_named_with_its_sizes() {
        let mut seen = quiet();
        (seen.rows[1].wait, seen.rows[1].others) = (Some(48.21), Some(50.0));
        assert_eq!(
            only(&seen),
            "other processes ran on the ranks' CPUs (size 64): ranks waited for a CPU for up to 48.2 % \
             of the time, others had up to 50.0 % of a rank's CPUs; try a quiet machine, or idle CPUs with \
             --bind LIST"
        );
    }

    #[test]
    fn ranks_that_wait_for_themselves_are_no_other_load() {
        let mut seen = quiet();
        (seen.rows[0].wait, seen.rows[0].others) = (Some(30.0), Some(0.0));
        assert_eq!(kinds(&seen), ["own-threads"]);
        seen.oversubscribed = true;
        assert_eq!(kinds(&seen), ["oversubscribed"]);
        seen.computes_busily = true;
        assert_eq!(kinds(&seen), ["oversubscribed", "busy-threads"]);
        seen.crowded = vec!["threads:4".to_owned()];
        assert!(of(&seen)[0].to_text().contains("threads:4: more processes"));
    }

    #[test]
    fn a_wide_spread_is_named_with_the_option_to_try() {
        let mut seen = quiet();
        seen.spreads = (0..6).map(|power| (1 << power, 15.1)).collect();
        assert_eq!(
            only(&seen),
            "the spread is up to 15.1 %, over 15 % (sizes 1, 2, 4, 8 and 2 more); try --launches 10 for \
             medians over more launches, or longer blocks with -i"
        );
        seen.launches = None;
        assert!(only(&seen).ends_with("try longer blocks with -i"));
    }

    #[test]
    fn rows_of_another_placing_are_counted() {
        let mut seen = quiet();
        seen.placing = Some((Placing::OneCore, 2));
        assert_eq!(
            only(&seen),
            "the ranks' CPUs were threads of one core for most of the time, and 2 rows were not measured so: medians leave them out \
             where there are others; try the same again; each row's line_transfer_ns tells"
        );
    }

    #[test]
    fn a_slow_first_block_asks_for_a_longer_warm_up() {
        let mut seen = quiet();
        seen.rows[0].first_block = Some(40.0);
        assert_eq!(
            only(&seen),
            "the first block took up to 40.0 % longer than any other (size 8); try a longer warm-up with -x"
        );
    }

    #[test]
    fn each_other_cause_has_its_line() {
        let mut seen = quiet();
        seen.governors = vec!["performance".to_owned(), "powersave".to_owned()];
        assert!(only(&seen).contains("governor is powersave"));
        let mut seen = quiet();
        seen.tcp_congestion = Some("bbr".to_owned());
        assert!(only(&seen).contains("congestion control is bbr"));
        let mut seen = quiet();
        seen.rows[0].siblings = Some(80.0);
        assert!(only(&seen).contains("busy for up to 80.0 % of the time (size 8); try --bind"));
        let mut seen = quiet();
        seen.launches = Some(1);
        assert!(only(&seen).ends_with("try --launches 5"));
        seen.launches = None;
        assert!(of(&seen).is_empty());
    }
}
