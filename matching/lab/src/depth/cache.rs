//! A model of two levels of cache: each keeps the lines that were used last, wherever they lie (fully associative, LRU).
//!
//! Misses of the model depend on the accesses alone. A processor's caches have sets, share room with everything else and
//! fetch ahead, so that its misses are others: more by conflicts, fewer where lines are fetched in their order.

use std::collections::{BTreeMap, HashMap};

use tagwire_matching::storage::counting::LINE;

/// The two levels.
#[derive(Debug)]
pub(crate) struct Caches {
    levels: [Level; 2],
}

/// How many accesses each level did not have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Misses {
    pub first: u64,
    pub second: u64,
}

impl Caches {
    /// Empty caches of these sizes in bytes.
    pub(crate) fn new(sizes: [u64; 2]) -> Self {
        Self {
            levels: sizes.map(Level::new),
        }
    }

    /// Touches these lines in their order.
    pub(crate) fn touch(&mut self, lines: &[usize]) -> Misses {
        let mut misses = Misses::default();
        let [first, second] = &mut self.levels;
        for &line in lines {
            if !first.touch(line) {
                misses.first += 1;
                misses.second += u64::from(!second.touch(line));
            }
        }
        misses
    }

    /// Forgets every line.
    pub(crate) fn clear(&mut self) {
        for level in &mut self.levels {
            level.used.clear();
            level.ages.clear();
        }
    }
}

#[derive(Debug)]
struct Level {
    lines: usize,
    /// When a line was used last, and the line that was used at a time.
    used: HashMap<usize, u64>,
    ages: BTreeMap<u64, usize>,
    now: u64,
}

impl Level {
    fn new(bytes: u64) -> Self {
        Self {
            lines: (bytes as usize / LINE).max(1),
            used: HashMap::new(),
            ages: BTreeMap::new(),
            now: 0,
        }
    }

    /// Uses a line; whether it was there.
    fn touch(&mut self, line: usize) -> bool {
        self.now += 1;
        let before = self.used.insert(line, self.now);
        if let Some(before) = before {
            self.ages.remove(&before);
        }
        self.ages.insert(self.now, line);
        if self.used.len() > self.lines
            && let Some((_, oldest)) = self.ages.pop_first()
        {
            self.used.remove(&oldest);
        }
        before.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_recently_used_line_goes() {
        let mut caches = Caches::new([2 * 64, 4 * 64]);
        let misses = |first, second| Misses { first, second };
        assert_eq!(caches.touch(&[1, 2, 1, 3]), misses(3, 3));
        // Line 2 went from the first level, and is in the second.
        assert_eq!(caches.touch(&[1, 2]), misses(1, 0));
        assert_eq!(caches.touch(&[4, 5, 6]), misses(3, 3));
        assert_eq!(caches.touch(&[6, 5]), misses(0, 0));
        assert_eq!(caches.touch(&[1]), misses(1, 1));
        caches.clear();
        assert_eq!(caches.touch(&[6]), misses(1, 1));
    }

    #[test]
    fn a_walk_longer_than_the_cache_misses_every_line_each_time() {
        let mut caches = Caches::new([64 * 64, 1024 * 64]);
        let walk: Vec<usize> = (0..100).collect();
        assert_eq!(caches.touch(&walk).first, 100);
        assert_eq!(
            caches.touch(&walk),
            Misses {
                first: 100,
                second: 0
            }
        );
    }
}
