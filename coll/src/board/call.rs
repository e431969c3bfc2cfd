//! One operation on a group's board.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{Ordering::SeqCst, fence};

use tagwire_pml::{ContextNames, Entered, Until};
use tagwire_transport::Board;
use tagwire_transport::board::{LINE, SLOT};

use super::head::Head;
use super::kept::SharedBoard;
use super::trial::{Pair, TRIED_FROM, class};
use crate::algorithms::{Algorithm, ON_BOARD};
use crate::error::{Error, Result};
use crate::scratch::Scratch;
use crate::team::Team;

/// The largest group that has a board.
pub(super) const MOST: usize = *ON_BOARD.end();

/// So many looks are made before anything else is: they take less than a round of progress.
const LOOKS: u32 = 64;

/// Every so many waits that may find everything there one makes progress.
const WAITS_PER_PROGRESS: u32 = 128;

/// One operation on a group's board. Every member makes the same calls of it.
pub(crate) struct BoardCall<'t> {
    pub(super) team: &'t Team,
    shared: &'t Arc<SharedBoard>,
    pub(super) board: Entered<'t, Board>,
    pub(super) head: Head,
}

impl<'t> BoardCall<'t> {
    #[inline]
    pub(super) const fn new(
        team: &'t Team,
        shared: &'t Arc<SharedBoard>,
        board: Entered<'t, Board>,
        head: Head,
    ) -> Self {
        Self {
            team,
            shared,
            board,
            head,
        }
    }

    /// Runs the operation on so many bytes by `algorithm`, which the table has for it, or by another one that is tried or was found to
    /// be faster.
    #[inline]
    pub(crate) fn by_trial(
        &mut self,
        bytes: usize,
        algorithm: &'static Algorithm,
        run: impl FnOnce(&mut Self, &'static Algorithm) -> Result<()>,
    ) -> Result<()> {
        match bytes >= TRIED_FROM && self.team.selection().tries(algorithm.collective) {
            true => self.by_chosen(bytes, algorithm, run),
            false => run(self, algorithm),
        }
    }

    fn by_chosen(
        &mut self,
        bytes: usize,
        first: &'static Algorithm,
        run: impl FnOnce(&mut Self, &'static Algorithm) -> Result<()>,
    ) -> Result<()> {
        let board = &self.team.board;
        let can = |it: &Algorithm| !it.reads_memory || self.reads_memory();
        let plan = board.trials().chooser(bytes, first).plan(can);
        if !plan.is_tried {
            return run(self, plan.algorithm);
        }
        let clock = self.team.messenger().clock();
        let begun = clock.now();
        run(self, plan.algorithm)?;
        let took = clock.now().since(begun).as_nanos();
        let took = u64::try_from(took).unwrap_or(u64::MAX);
        let over = board.trials().chooser(bytes, first).took(took);
        if let Some(own) = over {
            let least = self.least_of_all(own)?;
            let ended = board.trials().chooser(bytes, first).judge(least);
            if let Some(standing) = ended {
                board.found.note(self.size(), class(bytes), standing);
            }
        }
        Ok(())
    }

    /// Returns the least times of all members; these are this one's.
    fn least_of_all(&mut self, own: Pair) -> Result<Pair> {
        let round = self.begin(1);
        self.show(round, &[&own.to_bytes()])?;
        self.wait_for_all(round)?;
        let mut least = own;
        for member in self.others() {
            let mut theirs = [0; Pair::BYTES];
            self.copy(member, round, &mut theirs)?;
            least = least.least(Pair::from_bytes(&theirs));
        }
        self.finish(round);
        Ok(least)
    }

    #[inline]
    pub(crate) const fn me(&self) -> usize {
        self.team.me()
    }

    #[inline]
    pub(super) const fn size(&self) -> usize {
        self.team.size()
    }

    /// Returns all other members.
    #[inline]
    pub(super) fn others(&self) -> impl Iterator<Item = usize> + Clone + use<> {
        let me = self.me();
        (0..self.size()).filter(move |member| *member != me)
    }

    /// Makes progress, for the rank's other operations, and looks whether the group has broken: one that always finds everything
    /// there never waits.
    #[cold]
    fn look_around(&mut self) -> Result<()> {
        self.team.messenger().progress()?;
        self.team.check_members()?;
        match self.board.broken() {
            Some(member) => Err(Error::Gone { member }),
            None => Ok(()),
        }
    }

    /// Takes part no more, and reports that to the others.
    #[cold]
    pub(super) fn give_up(&mut self, error: &Error) {
        self.board.give_up(self.team.failed_member(error));
        // What the program then does with its data, others that read it find behind that (`single_copy`).
        fence(SeqCst);
        self.team.break_off(error);
    }

    /// Begins so many rounds. Returns the number of the first.
    #[inline]
    pub(super) fn begin(&mut self, rounds: usize) -> u64 {
        self.board.begin(rounds as u64)
    }

    /// Waits until `ready`, and makes progress meanwhile. `lacks` returns whether it is a member's part that is not there.
    #[inline]
    fn wait(
        &mut self,
        mut ready: impl FnMut(&mut Board) -> bool,
        lacks: impl Fn(&Board, usize) -> bool,
    ) -> Result<()> {
        if self.team.board.count().is_multiple_of(WAITS_PER_PROGRESS) {
            self.look_around()?;
        }
        for _ in 0..LOOKS {
            if ready(&mut self.board) {
                return Ok(());
            }
        }
        self.wait_at_length(&mut ready, &lacks)
    }

    #[cold]
    #[inline(never)]
    fn wait_at_length(
        &mut self,
        ready: &mut dyn FnMut(&mut Board) -> bool,
        lacks: &dyn Fn(&Board, usize) -> bool,
    ) -> Result<()> {
        let others = self.others();
        // One who has left shows nothing more; others may not need it any more.
        let left = |board: &Board| {
            let has_left = |member: &usize| board.has_left(*member) && lacks(board, *member);
            match board.has_leavers() {
                true => others.clone().find(has_left),
                false => None,
            }
        };
        let Self {
            team, board, head, ..
        } = self;
        let what = |names: &ContextNames| team.waits_for(names, head.describe());
        team.messenger()
            .progress_until(Until::done_with(&what), || {
                for _ in 0..LOOKS {
                    if ready(board) {
                        return Ok(Some(Ok(())));
                    }
                }
                // Who leaves says before why.
                let left = || left(board).map(|member| board.broken().unwrap_or(member));
                let checked = team.check_members();
                let ended = checked.and_then(|()| match board.broken().or_else(left) {
                    Some(member) => Err(Error::Gone { member }),
                    None => Ok(()),
                });
                Ok(ended.err().map(|error| match ready(board) {
                    // What was shown before counts.
                    true => Ok(()),
                    false => Err(error),
                }))
            })?
    }

    /// Shows `parts` in `round`, once there is room.
    #[inline]
    pub(super) fn show(&mut self, round: u64, parts: &[&[u8]]) -> Result<()> {
        let len = parts.iter().map(|part| part.len()).sum();
        // Who has left has done with everything.
        self.wait(|board| board.has_room(round, len), |_, _| false)?;
        let written = self.board.written();
        let shown = self.board.show(round, self.head.to_bits(), parts);
        debug_assert!(shown, "rounds are shown in their order");
        if len > LINE {
            self.note_kept(written);
        }
        Ok(())
    }

    /// Waits until a member has shown what it has for `round`, which has to be of the same call.
    #[inline]
    pub(super) fn wait_for(&mut self, member: usize, round: u64) -> Result<()> {
        self.wait(
            |board| board.is_shown(member, round),
            |_, other| other == member,
        )?;
        self.check(member, round)
    }

    /// The same for all other members.
    #[inline]
    pub(super) fn wait_for_all(&mut self, round: u64) -> Result<()> {
        self.wait(
            |board| board.all_shown(round),
            |board, other| !board.is_shown(other, round),
        )?;
        for member in self.others() {
            self.check(member, round)?;
        }
        Ok(())
    }

    #[inline]
    fn check(&self, member: usize, round: u64) -> Result<()> {
        match self.board.head(member, round) {
            Some(theirs) => self.head.check(theirs, self.team.members(), member),
            None => Err(Error::Gone { member }),
        }
    }

    /// Calls `look` with `range` of the `len` bytes that a member has shown: it was waited for.
    #[inline]
    pub(super) fn read<R>(
        &self,
        member: usize,
        round: u64,
        len: usize,
        range: Range<usize>,
        look: impl FnOnce(&[u8]) -> R,
    ) -> Result<R> {
        let looked = self.board.read(member, round, len, range, look);
        looked.ok_or(Error::Gone { member })
    }

    /// Copies all that a member has shown: it was waited for.
    #[inline]
    pub(super) fn copy(&self, member: usize, round: u64, into: &mut [u8]) -> Result<()> {
        let len = into.len();
        self.read(member, round, len, 0..len, |bytes| {
            into.copy_from_slice(bytes)
        })
    }

    /// Lends a copy of `data`.
    pub(super) fn copy_of(&self, data: &[u8]) -> Scratch<'t> {
        let mut copy = self.team.scratch(data.len());
        copy.copy_from_slice(data);
        copy
    }

    /// Returns the pieces of blocks of which a member shows one for each other at once.
    #[inline]
    pub(super) const fn pieces_to_each(&self, block: usize) -> Pieces {
        Pieces::at_most(block, 1, SLOT / (self.size() - 1))
    }

    /// Copies what a member has shown for this one, by [`to_each`]: it was waited for.
    #[inline]
    pub(super) fn copy_own(&self, from: usize, round: u64, into: &mut [u8]) -> Result<()> {
        let len = into.len();
        let place = self.me() - usize::from(self.me() > from);
        let (all, range) = (len * (self.size() - 1), place * len..(place + 1) * len);
        self.read(from, round, all, range, |bytes| into.copy_from_slice(bytes))
    }

    /// Shows a result of `round`.
    pub(super) fn show_result(&mut self, round: u64, data: &[u8]) {
        let written = self.board.written();
        let shown = self.board.show_result(round, data);
        debug_assert!(shown, "results are shown in their order");
        self.note_kept(written);
    }

    /// Notes what memory the slots take, where that is more than it was.
    #[inline]
    fn note_kept(&self, before: u64) {
        let written = self.board.written();
        if written != before {
            let bytes = written.count_ones() as usize * SLOT;
            self.team.board.kept.note(self.shared, bytes);
        }
    }

    /// Waits for a member's result of `round`, and copies it.
    pub(super) fn copy_result(&mut self, member: usize, round: u64, into: &mut [u8]) -> Result<()> {
        self.wait(
            |board| board.has_result(member, round),
            |_, other| other == member,
        )?;
        let len = into.len();
        let copied = self
            .board
            .read_result(member, round, len, |bytes| into.copy_from_slice(bytes));
        copied.ok_or(Error::Gone { member })
    }

    /// Has done with `round`.
    #[inline]
    pub(super) fn finish(&mut self, round: u64) {
        self.board.finish(round);
    }

    /// Has done with `round`, in which some members showed `len` bytes each and others read them, as far behind as they are.
    #[inline]
    pub(super) fn finish_one_way(&mut self, round: u64, len: usize) {
        match len <= LINE {
            true => self.board.finish_line(round),
            false => self.board.finish(round),
        }
    }
}

/// Returns `range` of the block for each other member, of equal ones in `blocks`.
#[inline]
pub(super) fn to_each<'b>(
    call: &BoardCall<'_>,
    blocks: &'b [u8],
    range: Range<usize>,
) -> [&'b [u8]; MOST - 1] {
    let block = blocks.len() / call.size();
    let mut parts: [&[u8]; MOST - 1] = [&[]; MOST - 1];
    for (part, member) in parts.iter_mut().zip(call.others()) {
        *part = &blocks[member * block..][..block][range.clone()];
    }
    parts
}

/// The pieces of a transfer: its bytes, cut into equal ones of whole units, and the rest.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pieces {
    total: usize,
    piece: usize,
}

impl Pieces {
    /// Cuts `total` bytes, whole `unit`s, into as few pieces as slots allow. Zero bytes are one piece.
    #[inline]
    pub(super) const fn new(total: usize, unit: usize) -> Self {
        Self::at_most(total, unit, SLOT)
    }

    /// The same in pieces of at most `most` bytes, or a unit.
    #[inline]
    pub(super) const fn at_most(total: usize, unit: usize, most: usize) -> Self {
        let piece = if unit >= most {
            unit
        } else {
            most - most % unit
        };
        Self { total, piece }
    }

    #[inline]
    pub(super) const fn count(self) -> usize {
        if self.total <= self.piece {
            1
        } else {
            self.total.div_ceil(self.piece)
        }
    }

    #[inline]
    pub(super) fn range(self, index: usize) -> Range<usize> {
        let start = index * self.piece;
        start..self.total.min(start + self.piece)
    }
}

/// The largest unit of a reduction that goes through a board.
pub(crate) const LARGEST_UNIT: usize = SLOT / 2;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_whole_units_and_all_of_them() {
        for (total, unit) in [
            (0, 8),
            (48, 8),
            (100_002, 3),
            (32 << 10, 8),
            (90_000, 30_000),
        ] {
            let pieces = Pieces::new(total, unit);
            let mut end = 0;
            for index in 0..pieces.count() {
                let range = pieces.range(index);
                assert_eq!(range.start, end);
                assert!(range.len().is_multiple_of(unit) && range.len() <= SLOT);
                end = range.end;
            }
            assert_eq!(end, total);
        }
    }
}
