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
    /// What trials have cost since all were tried: messages that would have been moved in that time.
    spent: u32,
    /// All were tried before.
    is_seasoned: bool,
}

/// Messages between two trials for each that one has cost, so that trials cost less than a hundredth, and most of them.
const WORTH: u32 = 128;
const MOST: u32 = 32_768;
/// The first trials find memory that nobody has touched yet, and are repeated after one part in so many of the usual messages, whatever they cost.
const SOON: u32 = 16;

impl Turns {
    pub(super) const fn new(known: CopyWay, gaps: [u32; 2]) -> Self {
        Self {
            count: 0,
            due: gaps[0],
            gaps,
            last: known as usize,
            left: 0,
            spent: 0,
            is_seasoned: false,
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

    /// A trial is over, and has cost the time of so many messages.
    pub(super) fn end(&mut self, spent: u32) {
        self.spent = self.spent.saturating_add(spent);
        self.due = self.gaps[usize::from(self.left == 0)];
        if self.left == 0 {
            self.due = match std::mem::replace(&mut self.is_seasoned, true) {
                true => self.due.max(self.spent.saturating_mul(WORTH).min(MOST)),
                false => self.due / SOON,
            };
            self.spent = 0;
        }
        self.count = 0;
    }
}
