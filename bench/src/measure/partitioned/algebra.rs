//! Sets of disjoint intervals on a line of time.

/// A set of intervals, by start; none touches the next.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Union(Vec<(u64, u64)>);

impl Union {
    /// Returns what is covered by at least one interval from the first to the second of a pair.
    pub(super) fn of(mut intervals: Vec<(u64, u64)>) -> Self {
        intervals.retain(|(start, end)| start < end);
        intervals.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::new();
        for (start, end) in intervals {
            match merged.last_mut() {
                Some(last) if start <= last.1 => last.1 = last.1.max(end),
                _ => merged.push((start, end)),
            }
        }
        Self(merged)
    }

    /// Returns how much is covered.
    pub(super) fn measure(&self) -> u64 {
        self.0.iter().map(|(start, end)| end - start).sum()
    }

    /// Returns how much is covered before a time.
    pub(super) fn before(&self, time: f64) -> f64 {
        let part = |(start, end): &(u64, u64)| (time.min(*end as f64) - *start as f64).max(0.0);
        self.0.iter().map(part).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlaps_count_once() {
        let union = Union::of(vec![(10, 20), (0, 5), (12, 15), (20, 30), (40, 40)]);
        assert_eq!(union, Union(vec![(0, 5), (10, 30)]));
        assert_eq!(union.measure(), 25);
        assert_eq!(union.before(0.0), 0.0);
        assert_eq!(union.before(12.5), 7.5);
        assert_eq!(union.before(100.0), 25.0);
        assert_eq!(Union::of(Vec::new()).measure(), 0);
    }

    /// Four threads, of which the fourth is late; a join of the same threads without partitions comes in the middle of the third
    /// transfer. Two transfers and a part of the third lie before it, as in the paper's figure 3.
    #[test]
    fn the_third_transfer_is_cut_by_the_join() {
        let union = Union::of(vec![(100, 140), (110, 180), (180, 220), (300, 340)]);
        assert_eq!(union.measure(), 160);
        assert_eq!(union.before(200.0), 100.0);
    }
}
