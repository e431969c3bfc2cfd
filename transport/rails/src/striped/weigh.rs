//! How fast each rail to a peer has proved, and how long transfers are cut by that.

use std::ops::Range;

/// A rail that is slower than the fastest by more than this is taken to be slower by this: it goes
/// on being used, and so measured.
const SLOWEST: f64 = 1.0 / 16.0;

/// Shares are multiples of this, in bytes.
const GRAIN: usize = 4096;

/// How much of a new measurement counts.
const NEW: f64 = 1.0 / 8.0;

/// Shorter times than this, in microseconds, are too coarse to be measured by.
const SHORTEST: u64 = 20;

/// What one rail has done for one peer.
#[derive(Debug, Default)]
pub(super) struct Meter {
    /// Transfers under way.
    under_way: u32,
    /// When the measurement began, in microseconds.
    mark: u64,
    /// What was done since then.
    bytes: u64,
    /// Bytes a microsecond, once something was measured.
    rate: Option<f64>,
    /// What was given to the rail, by its weight: who has least is next.
    charge: f64,
}

impl Meter {
    /// A transfer begins.
    pub(super) const fn begin(&mut self, now: u64) {
        if self.under_way == 0 {
            (self.mark, self.bytes) = (now, 0);
        }
        self.under_way += 1;
    }

    /// A transfer of `bytes` has ended. Time counts while at least one is under way, so that rails
    /// compare whatever the number of those that share them.
    pub(super) fn end(&mut self, bytes: usize, now: u64) {
        self.under_way = self.under_way.saturating_sub(1);
        self.bytes += bytes as u64;
        let elapsed = now.saturating_sub(self.mark);
        if elapsed < SHORTEST || self.bytes == 0 {
            return;
        }
        let measured = self.bytes as f64 / elapsed as f64;
        let rate = self.rate.get_or_insert(measured);
        *rate += (measured - *rate) * NEW;
        (self.mark, self.bytes) = (now, 0);
    }
}

/// The weights of rails, the fastest 1, none 0; `None` is a rail that cannot be used.
pub(super) fn weights(meters: &[Option<&Meter>]) -> Vec<f64> {
    let rates = || meters.iter().flatten().filter_map(|meter| meter.rate);
    let fastest = rates().fold(0.0, f64::max);
    let weight = |meter: &Meter| match meter.rate {
        Some(rate) if fastest > 0.0 => (rate / fastest).max(SLOWEST),
        // As good as the best before it has shown otherwise.
        _ => 1.0,
    };
    meters
        .iter()
        .map(|meter| meter.map_or(0.0, weight))
        .collect()
}

/// The usable rail that was given least, for its weight.
pub(super) fn least_charged(meters: &[Option<&Meter>]) -> Option<usize> {
    let usable = meters.iter().enumerate();
    let charges = usable.filter_map(|(rail, meter)| Some((rail, (*meter)?.charge)));
    let least = charges.min_by(|a, b| a.1.total_cmp(&b.1));
    least.map(|(rail, _)| rail)
}

/// Notes that `rail` was given `bytes`.
pub(super) fn charge(meters: &mut [Option<&mut Meter>], rail: usize, bytes: usize) {
    let shared: Vec<_> = meters.iter().map(Option::as_deref).collect();
    let weight = weights(&shared)[rail];
    if weight > 0.0
        && let Some(meter) = meters[rail].as_deref_mut()
    {
        meter.charge += bytes as f64 / weight;
    }
    // What counts is the difference: who has rested owes nobody for that.
    let all = meters.iter().flatten().map(|meter| meter.charge);
    let least = all.fold(f64::INFINITY, f64::min);
    if least.is_finite() {
        let all = meters.iter_mut().flatten();
        all.for_each(|meter| meter.charge -= least);
    }
}

/// Cuts `total` bytes by the weights of rails, into fragments of `least` or more; what is too short
/// to be cut goes to those that were given least so far.
pub(super) fn cut(
    total: usize,
    meters: &[Option<&Meter>],
    least: usize,
) -> Vec<(usize, Range<usize>)> {
    let weights = weights(meters);
    let mut rails: Vec<usize> = (0..meters.len())
        .filter(|rail| weights[*rail] > 0.0)
        .collect();
    let charge = |rail: usize| meters[rail].map_or(0.0, |meter| meter.charge);
    rails.sort_by(|a, b| charge(*a).total_cmp(&charge(*b)));
    rails.truncate((total / least.max(1)).max(1));
    // The slow first: where one gets more than its share, the faster ones have enough left.
    rails.sort_by(|a, b| weights[*a].total_cmp(&weights[*b]));
    let mut sum: f64 = rails.iter().map(|rail| weights[*rail]).sum();
    let mut start = 0;
    let mut pieces = Vec::with_capacity(rails.len());
    for (place, rail) in rails.iter().copied().enumerate() {
        let left = total - start;
        let share = if place + 1 == rails.len() {
            left
        } else {
            let share = (left as f64 * weights[rail] / sum) as usize;
            (share / GRAIN * GRAIN).max(least).min(left)
        };
        sum -= weights[rail];
        pieces.push((rail, start..start + share));
        start += share;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_rate(rate: Option<f64>) -> Meter {
        Meter {
            rate,
            ..Meter::default()
        }
    }

    fn lengths(total: usize, rates: &[Option<f64>]) -> Vec<(usize, usize)> {
        let meters: Vec<_> = rates.iter().copied().map(of_rate).collect();
        let meters: Vec<_> = meters.iter().map(Some).collect();
        let pieces = cut(total, &meters, 64 << 10);
        let mut next = 0;
        for (_, range) in &pieces {
            assert_eq!(range.start, next);
            next = range.end;
        }
        assert_eq!(next, total);
        let mut lengths: Vec<_> = pieces
            .into_iter()
            .map(|(rail, range)| (rail, range.len() >> 10))
            .collect();
        lengths.sort_unstable();
        lengths
    }

    #[test]
    fn shares_follow_the_weights() {
        const MIB: usize = 1 << 20;
        assert_eq!(lengths(MIB, &[None, None]), [(0, 512), (1, 512)]);
        assert_eq!(lengths(MIB, &[Some(3.0), Some(1.0)]), [(0, 768), (1, 256)]);
        // However slow, it is used; and never for less than a fragment.
        assert_eq!(lengths(MIB, &[Some(1e-9), Some(1.0)]), [(0, 64), (1, 960)]);
        // One that was not measured is taken to be as good as the best.
        assert_eq!(lengths(MIB, &[None, Some(9.0)]), [(0, 512), (1, 512)]);
        assert_eq!(
            lengths(MIB, &[Some(1.0), Some(1.0), Some(2.0)]),
            [(0, 256), (1, 256), (2, 512)]
        );
    }

    #[test]
    fn what_is_short_is_not_cut() {
        assert_eq!(lengths(0, &[None, None]), [(0, 0)]);
        assert_eq!(lengths(127 << 10, &[None, None]), [(0, 127)]);
        assert_eq!(lengths(128 << 10, &[None, None]), [(0, 64), (1, 64)]);
        let mut meters = [of_rate(Some(4.0)), of_rate(Some(1.0))];
        let mut given = [0; 2];
        for _ in 0..100 {
            let shared: Vec<_> = meters.iter().map(Some).collect();
            let rail = least_charged(&shared).unwrap();
            given[rail] += 1;
            let mut meters: Vec<_> = meters.iter_mut().map(Some).collect();
            charge(&mut meters, rail, 1000);
        }
        assert_eq!(given, [80, 20]);
    }

    #[test]
    fn rates_are_of_the_time_in_use() {
        let mut meter = Meter::default();
        meter.begin(1000);
        meter.begin(1000);
        meter.end(500, 1010);
        assert_eq!(meter.rate, None, "too short to be measured by");
        meter.end(500, 1100);
        assert_eq!(meter.rate, Some(10.0));
        // What is idle is not slow.
        meter.begin(9000);
        meter.end(2000, 9100);
        assert_eq!(meter.rate, Some(11.25));
    }
}
