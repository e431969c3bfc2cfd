//! The board of a group.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};

use tagwire_transport::Board;

/// The board of a group, once it has one.
#[derive(Debug, Default)]
pub(crate) struct TeamBoard {
    pub(super) board: OnceLock<Option<Mutex<Board>>>,
    /// Operations that would have taken it. All members count the same ones.
    pub(super) calls: AtomicU32,
    /// Waits of operations on it.
    waits: AtomicU32,
}

impl TeamBoard {
    /// Counts a wait. Threads may lose counts to each other: it is a rhythm, no sum.
    #[inline]
    pub(super) fn count(&self) -> u32 {
        let waits = self.waits.load(Relaxed).wrapping_add(1);
        self.waits.store(waits, Relaxed);
        waits
    }

    /// Takes part no more after a failure at `member`, and reports that to the others; an operation that is under way on the board does so itself.
    pub(crate) fn give_up(&self, member: usize) {
        if let Some(Some(board)) = self.board.get()
            && let Ok(mut board) = board.try_lock()
        {
            board.give_up(member);
        }
    }
}
