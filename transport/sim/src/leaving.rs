//! What a rank's NIC has yet to send, and to whom.

use crate::place::Place;
use crate::time::Moment;

/// When the last bytes of a rank leave its NIC: to the peer for which that is latest, and to any other.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Leaving {
    peer: Option<Place>,
    last: Moment,
    others: Moment,
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
