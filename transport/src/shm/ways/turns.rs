//! When trials begin, and whose turn it is.

use super::CopyWay;

/// The turns of the candidates of a chooser: all of them one after the other, and so again after a period.
#[derive(Debug)]
pub(super) struct Turns {
    /// Messages since the last trial, and how many there are to be before the next.
    pub(super) count: u32,
    pub(super) due: u32,
    /// Messages before each trial while all candidates are tried, and before all are tried again.
    gaps: [u32; 2],
    /// The candidate that was tried last, as an index, and how many are still to be tried after it.
    last: usize,
    left: usize,
}

impl Turns {
    pub(super) const fn new(known: CopyWay, gaps: [u32; 2]) -> Self {
        Self {
            count: 0,
            due: gaps[0],
            gaps,
            last: known as usize,
            left: 0,
        }
    }

    /// Whether a trial may begin.
    pub(super) const fn is_due(&self) -> bool {
        self.count >= self.due
    }

    /// Returns the candidate whose turn it is, of those beside `known` that `can` be tried.
    pub(super) fn next(
        &mut self,
        known: CopyWay,
        can: impl Fn(CopyWay) -> bool,
    ) -> Option<CopyWay> {
        let count = CopyWay::ALL.len();
        let mut next = (1..=count).map(|step| (self.last + step) % count);
        let at = next.find(|at| CopyWay::ALL[*at] != known && can(CopyWay::ALL[*at]))?;
        self.last = at;
        self.left = self.left.checked_sub(1).unwrap_or(count - 2);
        Some(CopyWay::ALL[at])
    }

    /// A trial is over.
    pub(super) fn end(&mut self) {
        self.due = self.gaps[usize::from(self.left == 0)];
        self.count = 0;
    }
}
