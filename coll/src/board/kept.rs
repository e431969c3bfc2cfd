//! The memory that the boards of a rank keep, and its bound.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tagwire_pml::Guarded;
use tagwire_transport::Board;

/// The board of blocking operations. A thread that is alone enters it without a locked instruction, which would wait until all that it has
/// written for others is on its way.
pub(super) type SharedBoard = Guarded<Board>;

/// The boards of a rank whose slots take memory, and how much of it they may take together. The groups of the rank share it.
///
/// Each member decides by itself: its own slots are given back, which nobody else notices. A board that was used since the last
/// look keeps its memory where others are enough.
pub(crate) struct Kept {
    most: usize,
    boards: Mutex<Boards>,
}

/// So many boards are noted without an allocation.
const FIRST: usize = 8;

struct Boards {
    bytes: usize,
    /// The one that was looked at last is the last.
    all: Vec<One>,
}

struct One {
    board: Weak<SharedBoard>,
    bytes: usize,
    /// What it had shown at the last look.
    shown: u64,
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kept")
            .field("most", &self.most)
            .finish_non_exhaustive()
    }
}

impl Kept {
    /// Returns that of a rank without boards, which may keep so many bytes.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        // A call that is the first to write a slot of its board is no place for an allocation.
        let all = Vec::with_capacity(FIRST);
        let boards = Mutex::new(Boards { bytes: 0, all });
        Arc::new(Self { most, boards })
    }

    /// Notes that the slots of a board, which the caller has locked, take so many bytes. Where all together take more than they may,
    /// others give theirs back.
    #[cold]
    pub(super) fn note(&self, board: &Arc<SharedBoard>, bytes: usize) {
        let mut boards = self.boards.lock().unwrap_or_else(PoisonError::into_inner);
        boards.note(board, bytes);
        // In the first round those that were used since are passed over.
        for is_last in [false, true] {
            for _ in 0..boards.all.len() {
                if boards.bytes <= self.most {
                    return;
                }
                boards.look_at_first(is_last);
            }
        }
    }
}

impl Boards {
    fn note(&mut self, board: &Arc<SharedBoard>, bytes: usize) {
        let mut all = self.all.iter_mut();
        if let Some(one) = all.find(|one| one.board.as_ptr() == Arc::as_ptr(board)) {
            self.bytes = self.bytes - one.bytes + bytes;
            one.bytes = bytes;
        } else {
            self.bytes += bytes;
            let (board, shown) = (Arc::downgrade(board), 0);
            self.all.push(One {
                board,
                bytes,
                shown,
            });
        }
    }

    /// Has the board that was looked at first give its memory back, if it can. It goes behind the others where it keeps some.
    fn look_at_first(&mut self, whatever_it_was_used: bool) {
        let mut one = self.all.remove(0);
        let keeps = one.board.upgrade().is_some_and(|board| {
            // One in use is locked.
            let Some(mut board) = board.try_enter() else {
                return true;
            };
            let shown = std::mem::replace(&mut one.shown, board.shown());
            let was_used = shown != one.shown;
            (was_used && !whatever_it_was_used) || !board.give_back()
        });
        match keeps {
            true => self.all.push(one),
            false => self.bytes -= one.bytes,
        }
    }
}
