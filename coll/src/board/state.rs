//! The boards of a group.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, OnceLock};

use tagwire_transport::Board;

use super::line::Lines;

/// A member's ends of the boards of its group.
pub(super) struct Boards {
    /// That of blocking operations.
    pub(super) blocking: Board,
    /// That of short nonblocking ones.
    pub(super) lines: Board,
}

/// The boards of a group, once it has them.
#[derive(Debug, Default)]
pub(crate) struct TeamBoard {
    pub(super) board: OnceLock<Option<Mutex<Board>>>,
    /// There before `board` is.
    lines: OnceLock<Mutex<Lines>>,
    /// Operations that would have taken it. All members count the same ones.
    pub(super) calls: AtomicU32,
    /// Waits of operations on it.
    waits: AtomicU32,
}

impl TeamBoard {
    /// Keeps the boards of the group, if it has got any. Returns that of blocking operations.
    pub(super) fn keep(&self, made: Option<Boards>) -> Option<&Mutex<Board>> {
        let blocking = made.map(|Boards { blocking, lines }| {
            let kept = self.lines.set(Mutex::new(Lines::new(lines)));
            debug_assert!(kept.is_ok(), "the boards are made once");
            Mutex::new(blocking)
        });
        self.board.get_or_init(|| blocking).as_ref()
    }

    /// Returns the board of short nonblocking operations. Members that have called the same operations all have it, or none.
    pub(super) fn lines(&self) -> Option<&Mutex<Lines>> {
        self.lines.get()
    }

    /// Counts a wait. Threads may lose counts to each other: it is a rhythm, no sum.
    #[inline]
    pub(super) fn count(&self) -> u32 {
        let waits = self.waits.load(Relaxed).wrapping_add(1);
        self.waits.store(waits, Relaxed);
        waits
    }

    /// Takes part no more after a failure at `member`, and reports that to the others; an operation that is under way on a board
    /// does so itself.
    pub(crate) fn give_up(&self, member: usize) {
        if let Some(Some(board)) = self.board.get()
            && let Ok(mut board) = board.try_lock()
        {
            board.give_up(member);
        }
        if let Some(lines) = self.lines.get()
            && let Ok(mut lines) = lines.try_lock()
        {
            lines.give_up(member);
        }
    }
}
