//! What a rank's NIC has yet to send, and to whom.

use std::collections::VecDeque;

use crate::place::Place;
use crate::time::Moment;

/// When the last bytes of a rank leave its NIC: to the peer for which that is latest, and to any other.
#[derive(Debug, Default)]
pub(crate) struct Leaving {
    peer: Option<Place>,
    last: Moment,
    others: Moment,
    /// When counted bytes of messages have left, later ones behind earlier ones, and how many have been counted up to them.
    counted: VecDeque<(Moment, usize)>,
    /// How many have been counted in all.
    all: usize,
    /// How many of them are known to have left.
    gone: usize,
}

impl Leaving {
    /// Says when bytes to a peer leave.
    pub(crate) fn add(&mut self, peer: Place, at: Moment) {
        if self.peer == Some(peer) {
            self.last = self.last.max(at);
        } else if at >= self.last {
            (self.peer, self.last, self.others) = (Some(peer), at, self.last);
        } else {
            self.others = self.others.max(at);
        }
    }

    /// Counts bytes that leave up to a moment. What has left by now counts no longer.
    pub(crate) fn add_bytes(&mut self, now: Moment, gone: Moment, bytes: usize) {
        while self.counted.front().is_some_and(|(at, _)| *at <= now) {
            self.gone = self.counted.pop_front().map_or(self.gone, |(_, all)| all);
        }
        let last = self.counted.back().map_or(gone, |(at, _)| gone.max(*at));
        self.all += bytes;
        self.counted.push_back((last, self.all));
    }

    /// Returns how many counted bytes have yet to leave at a moment.
    pub(crate) fn bytes(&self, at: Moment) -> usize {
        let left = self.counted.partition_point(|(gone, _)| *gone <= at);
        match left.checked_sub(1) {
            Some(last) => self.all - self.counted[last].1,
            None => self.all - self.gone,
        }
    }

    /// Returns whether bytes to others than this peer have yet to leave at a moment.
    pub(crate) fn is_beside(&self, peer: Place, at: Moment) -> bool {
        let others = match self.peer == Some(peer) {
            true => self.others,
            false => self.last,
        };
        others > at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::Span;

    #[test]
    fn bytes_that_have_yet_to_leave_are_counted() {
        let at = |us: u64| Moment::default() + Span::nanos(1000 * us);
        let mut leaving = Leaving::default();
        assert_eq!(leaving.bytes(at(0)), 0);
        leaving.add_bytes(at(0), at(4), 100);
        leaving.add_bytes(at(1), at(6), 10);
        // It cannot leave before what is ahead of it.
        leaving.add_bytes(at(2), at(5), 1);
        let bytes = [2, 4, 5, 6].map(|us| leaving.bytes(at(us)));
        assert_eq!(bytes, [111, 11, 11, 0]);
        leaving.add_bytes(at(5), at(9), 7);
        assert_eq!(leaving.bytes(at(5)), 18);
        assert_eq!(leaving.counted.len(), 3);
    }

    #[test]
    fn what_leaves_to_others_is_known() {
        let at = |us: u64| Moment::default() + Span::nanos(1000 * us);
        let mut leaving = Leaving::default();
        let [first, second, third] = [0, 1, 2].map(Place);
        let beside = |of: &Leaving, us| [first, second, third].map(|to| of.is_beside(to, at(us)));
        assert_eq!(beside(&leaving, 0), [false; 3]);
        leaving.add(first, at(5));
        assert_eq!(beside(&leaving, 4), [false, true, true]);
        assert_eq!(beside(&leaving, 5), [false; 3]);
        // A short one that is gone before leaves nothing.
        leaving.add(second, at(3));
        assert_eq!(beside(&leaving, 2), [true; 3]);
        assert_eq!(beside(&leaving, 4), [false, true, true]);
        leaving.add(second, at(9));
        assert_eq!(beside(&leaving, 4), [true; 3]);
        assert_eq!(beside(&leaving, 6), [true, false, true]);
        leaving.add(second, at(11));
        leaving.add(third, at(10));
        assert_eq!(beside(&leaving, 9), [true; 3]);
        assert_eq!(beside(&leaving, 10), [true, false, true]);
    }
}
