//! What matches cost in entries, cache lines and misses.

use tagwire_matching::storage::counting::take_log;
use tagwire_matching::{Capacity, Engine, EngineName};

use super::axes::Cache;
use super::cache::{Caches, Misses};
use super::scenario::Scenario;

/// Figures of one match, on the average.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Counts {
    /// Distinct cache lines.
    pub lines: f64,
    /// Misses of the first level and of the second.
    pub first: f64,
    pub second: f64,
}

/// Entries that a match looks at, on the average.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Looked {
    pub attempts: f64,
    /// Those that a coarse comparison let through in vain.
    pub false_hits: f64,
}

/// Returns how many entries a match looks at.
pub(super) fn attempts(engine: &EngineName, scenario: &Scenario) -> Looked {
    let matches = scenario.matches(MOST);
    let mut engine = engine.open(Capacity::default());
    scenario.prepare(&mut engine, matches);
    let before = engine.stats();
    let taken = (0..matches)
        .filter(|index| scenario.operate(&mut engine, *index))
        .count();
    let after = engine.stats();
    let each = |count: u64| count as f64 / taken.max(1) as f64;
    Looked {
        attempts: each(after.attempts() - before.attempts()),
        false_hits: each(after.false_hits() - before.false_hits()),
    }
}

/// Returns the lines of a match and the misses of caches of these sizes; `None` for an engine whose lines cannot be counted.
pub(super) fn lines(
    engine: &EngineName,
    scenario: &Scenario,
    cache: Cache,
    sizes: [u64; 2],
) -> Option<Counts> {
    let matches = scenario.matches(MOST);
    let mut caches = Caches::new(sizes);
    let mut log = Vec::new();
    take_log(&mut log);
    let mut engine = engine.open_counting(Capacity::default())?;
    scenario.prepare(&mut *engine, matches);
    take_log(&mut log);
    caches.touch(&log);
    let (mut distinct, mut misses) = (0, Misses::default());
    for index in 0..matches {
        if cache == Cache::Cold {
            caches.clear();
        }
        scenario.operate(&mut *engine, index);
        take_log(&mut log);
        let missed = caches.touch(&log);
        misses.first += missed.first;
        misses.second += missed.second;
        distinct += distinct_lines(&mut log);
    }
    let each = |total: u64| total as f64 / f64::from(matches);
    Some(Counts {
        lines: each(distinct),
        first: each(misses.first),
        second: each(misses.second),
    })
}

/// Returns how many different lines an operation has touched; they are left in the log, each once.
pub(crate) fn distinct_lines(log: &mut Vec<usize>) -> u64 {
    log.sort_unstable();
    log.dedup();
    log.len() as u64
}

/// Matches that are counted.
const MOST: u32 = 64;

#[cfg(test)]
mod tests {
    use super::super::axes::{Layout, Queue};
    use super::*;

    fn scenario(ahead: u32) -> Scenario {
        Scenario::behind(Queue::Posted, ahead)
    }

    fn cold(name: &str, ahead: u32) -> Counts {
        let engine: EngineName = name.parse().unwrap();
        lines(&engine, &scenario(ahead), Cache::Cold, [32 << 10, 1 << 20]).unwrap()
    }

    /// 32-byte nodes in a row: a line for every two, or three where nodes lie across lines, and whatever else falls on the lines that the allocator gave.
    #[test]
    fn a_list_touches_the_lines_of_all_entries_ahead() {
        let (near, far) = (cold("list", 0), cold("list", 1024));
        let more = far.lines - near.lines;
        assert!((508.0..=518.0).contains(&more), "{near:?} {far:?}");
        assert!(far.first >= far.lines, "{far:?}");
    }

    /// Other tags lie in other bins, so that hardly any entry ahead is touched.
    #[test]
    fn bins_touch_few_lines_at_any_depth() {
        let (near, far) = (cold("bins", 64), cold("bins", 4096));
        assert!(near.lines < 12.0 && far.lines < 14.0, "{near:?} {far:?}");
    }

    /// What was touched before is there, as long as it fits.
    #[test]
    fn hot_caches_miss_what_does_not_fit() {
        let engine: EngineName = "list".parse().unwrap();
        let hot = |ahead, sizes| lines(&engine, &scenario(ahead), Cache::Hot, sizes).unwrap();
        assert_eq!(hot(256, [32 << 10, 1 << 20]).first, 0.0);
        let walk = hot(4096, [32 << 10, 1 << 20]);
        assert!(walk.first > 2000.0 && walk.second == 0.0, "{walk:?}");
        let small = hot(4096, [4 << 10, 64 << 10]);
        assert!(small.second > 2000.0, "{small:?}");
    }

    /// Entries beside each other share a line and cost half a miss, those apart one, or one and a half where the allocator has
    /// laid entries across lines. Of an aged queue e^-0.2 and e^-1 of the pairs are left.
    #[test]
    fn an_aged_list_misses_more_than_a_fresh_one_and_less_than_a_shuffled_one() {
        let engine: EngineName = "list".parse().unwrap();
        for (layout, age, expected) in [
            (Layout::Fresh, 0, 510.0..540.0),
            (Layout::Aged, 0, 510.0..540.0),
            (Layout::Aged, 10, 570.0..750.0),
            (Layout::Aged, 50, 770.0..1250.0),
            (Layout::Shuffled, 0, 900.0..1650.0),
        ] {
            let scenario = Scenario {
                layout,
                age,
                ..scenario(1024)
            };
            // A sixteenth of the entries fits.
            let counts = lines(&engine, &scenario, Cache::Cold, [2 << 10, 1 << 20]);
            let misses = counts.unwrap().first;
            assert!(expected.contains(&misses), "{layout:?} {age}: {misses}");
        }
    }

    #[test]
    fn a_list_looks_at_all_entries_ahead_and_at_the_match() {
        let engine: EngineName = "list".parse().unwrap();
        let looked = attempts(&engine, &scenario(100));
        assert_eq!((looked.attempts, looked.false_hits), (101.0, 0.0));
    }

    /// 1,024 keys of 8 bits and as many masks are 16 vectors of two lines each, beside the head of each vector.
    #[test]
    fn vectors_touch_the_lines_of_their_keys() {
        let (near, far) = (cold("fuzzy", 0), cold("fuzzy", 1024));
        let more = far.lines - near.lines;
        // A head has 24 bytes, so that 16 of them lie on 6 or 7 lines; tags that differ by 256 are false hits.
        let false_hits = attempts(&"fuzzy".parse().unwrap(), &scenario(1024)).false_hits;
        assert_eq!(false_hits, 4.0);
        assert!((36.0..=56.0).contains(&more), "{near:?} {far:?}");
        let whole = cold("lanes", 1024).lines - cold("lanes", 0).lines;
        assert!((256.0 + 20.0..=256.0 + 30.0).contains(&whole), "{whole}");
    }

    /// Entries 256 bytes apart lie on a line each, or on two.
    #[test]
    fn entries_a_stride_apart_share_no_line() {
        let more = |name: &str| cold(name, 1024).lines - cold(name, 0).lines;
        assert!((508.0..=518.0).contains(&more("list")));
        for stride in [64, 256, 512] {
            let lines = more(&format!("list:stride={stride}"));
            assert!((1020.0..=2060.0).contains(&lines), "{stride}: {lines}");
        }
    }
}
