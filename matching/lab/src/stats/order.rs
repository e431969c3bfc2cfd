//! In which order posted receives are matched, and how their queue drains.

use super::distribution::Distribution;

/// The order of the matches of a group.
#[derive(Debug, Clone, Default)]
pub(crate) struct Order {
    /// Numbers of receives, in the order of their matches, since the last window.
    window: Vec<u32>,
    last: Option<u32>,
    pairs: u64,
    in_order: u64,
    /// Pairs within windows, and how many of them are in the other order.
    compared: u64,
    discordant: u64,
    /// When the run of matches began, and how many it has.
    run: Option<(u64, u64)>,
    /// Matches of the runs that emptied the queue, and their nanoseconds.
    pub(crate) drained: Distribution,
    pub(crate) drain_ns: Distribution,
}

impl Order {
    /// A receive was posted that waits.
    pub(crate) const fn note_post(&mut self) {
        self.run = None;
    }

    /// The receive of this number was matched; `empties`: no other waits.
    pub(crate) fn note_match(&mut self, number: u32, at: u64, empties: bool) {
        if let Some(last) = self.last {
            self.pairs += 1;
            self.in_order += u64::from(number > last);
        }
        self.last = Some(number);
        self.window.push(number);
        if self.window.len() == WINDOW {
            self.end();
        }
        let (began, count) = self.run.unwrap_or((at, 0));
        self.run = Some((began, count + 1));
        if empties {
            self.drained.note(count + 1);
            self.drain_ns.note(at - began);
            self.run = None;
        }
    }

    /// Compares what the window holds.
    pub(crate) fn end(&mut self) {
        for (place, later) in self.window.iter().enumerate() {
            self.compared += place as u64;
            let before = self.window[..place].iter();
            self.discordant += before.filter(|earlier| *earlier > later).count() as u64;
        }
        self.window.clear();
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.pairs += other.pairs;
        self.in_order += other.in_order;
        self.compared += other.compared;
        self.discordant += other.discordant;
        self.drained.add(&other.drained);
        self.drain_ns.add(&other.drain_ns);
    }

    pub(crate) fn in_order_share(&self) -> f64 {
        match self.pairs {
            0 => 1.0,
            pairs => self.in_order as f64 / pairs as f64,
        }
    }

    /// Kendall's tau-a: 1 where all pairs are in order, -1 where none is.
    pub(crate) fn tau(&self) -> f64 {
        match self.compared {
            0 => 1.0,
            compared => 1.0 - 2.0 * self.discordant as f64 / compared as f64,
        }
    }
}

/// Matches of a window, in which every pair is compared.
const WINDOW: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn order(numbers: impl IntoIterator<Item = u32>) -> Order {
        let mut order = Order::default();
        for number in numbers {
            order.note_match(number, 0, false);
        }
        order.end();
        order
    }

    #[test]
    fn tau_is_between_all_in_order_and_all_reversed() {
        let same = order(0..200);
        assert_eq!((same.in_order_share(), same.tau()), (1.0, 1.0));
        let reverse = order((0..WINDOW as u32).rev());
        assert_eq!((reverse.in_order_share(), reverse.tau()), (0.0, -1.0));
        // 1 0 3 2: two of six pairs are in the other order, and one of three neighbours is in order.
        let swapped = order([1, 0, 3, 2]);
        assert!((swapped.tau() - 1.0 / 3.0).abs() < 1e-12);
        assert!((swapped.in_order_share() - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn a_drain_is_a_run_of_matches_that_ends_with_an_empty_queue() {
        let mut order = Order::default();
        order.note_match(0, 10, false);
        order.note_post();
        order.note_match(1, 20, false);
        order.note_match(2, 50, true);
        order.note_match(3, 60, true);
        assert_eq!(
            (order.drained.count(), order.drained.quantiles().max),
            (2, 2)
        );
        assert_eq!(order.drain_ns.quantiles().max, 30);
    }
}
