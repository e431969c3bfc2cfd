//! The boards of a group.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tagwire_pml::{Guarded, ThreadLevel};
use tagwire_transport::Board;
use tagwire_transport::board::Lined;

use super::found::Found;
use super::kept::{Kept, SharedBoard};
use super::line::Lines;
use super::memories::Memories;
use super::trial::Trials;
use crate::active::Order;
use crate::algorithms::{Algorithm, Needs};
use crate::selection::Lack;

/// The operation, of those that could take a board, with which the boards are made.
const FOURTH: u32 = 4;

/// How far a group without boards is with them, by the number of an operation that could take one. It is the same on all members.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// It goes by messages.
    Early,
    /// The boards are made with it.
    Meets,
    /// One that was called earlier makes them.
    Made,
}

/// A member's ends of the boards of its group.
pub(super) struct Boards {
    /// That of blocking operations.
    pub(super) blocking: Board,
    /// That of short nonblocking ones.
    pub(super) lines: Board<Lined>,
    /// The memory of the others, where each may read that of each.
    pub(super) memories: Option<Memories>,
}

/// The boards of a group, once it has them.
#[derive(Debug)]
pub(crate) struct TeamBoard {
    pub(super) board: OnceLock<Option<Arc<SharedBoard>>>,
    /// The memory that the boards of the rank keep.
    pub(super) kept: Arc<Kept>,
    /// What trials of the rank's groups have found.
    pub(crate) found: Arc<Found>,
    /// There before `board` is.
    lines: OnceLock<Mutex<Lines>>,
    /// There before `board` is, where there are any.
    memories: OnceLock<Memories>,
    /// Of the operations on `board`, which is locked before.
    trials: Mutex<Trials>,
    /// Operations that would have taken one. All members count the same ones.
    calls: AtomicU32,
    /// Rounds of `lines` that operations have been given.
    rounds: AtomicU64,
    /// Waits of operations on it.
    waits: AtomicU32,
}

impl TeamBoard {
    /// Returns that of a rank's first group, which has no boards yet. Those of the rank may keep so much memory.
    pub(crate) fn new(memory: usize) -> Self {
        Self::of_rank(Kept::new(memory), Arc::default())
    }

    fn of_rank(kept: Arc<Kept>, found: Arc<Found>) -> Self {
        Self {
            board: OnceLock::new(),
            kept,
            found,
            lines: OnceLock::new(),
            memories: OnceLock::new(),
            trials: Mutex::default(),
            calls: AtomicU32::new(0),
            rounds: AtomicU64::new(0),
            waits: AtomicU32::new(0),
        }
    }

    /// Returns that of another group of the same rank.
    pub(crate) fn beside(&self) -> Self {
        Self::of_rank(Arc::clone(&self.kept), Arc::clone(&self.found))
    }

    /// Counts an operation that could take a board, while it is not known whether there is one.
    pub(super) fn count_call(&self) -> Stage {
        match self.calls.fetch_add(1, Relaxed) + 1 {
            ..FOURTH => Stage::Early,
            FOURTH => Stage::Meets,
            _ => Stage::Made,
        }
    }

    /// Returns the next round of short nonblocking operations, from 1.
    pub(super) fn next_round(&self) -> u64 {
        self.rounds.fetch_add(1, Relaxed) + 1
    }

    /// Keeps the boards of the group, if it has got any.
    pub(super) fn keep(&self, made: Option<Boards>) {
        let blocking = made.map(|made| {
            let kept = self.lines.set(Mutex::new(Lines::new(made.lines)));
            let read = made.memories.map_or(Ok(()), |it| self.memories.set(it));
            debug_assert!(kept.is_ok() && read.is_ok(), "the boards are made once");
            Arc::new(Guarded::new(ThreadLevel::Multiple, made.blocking))
        });
        let kept = self.board.set(blocking);
        debug_assert!(kept.is_ok(), "the boards are made once");
    }

    /// Returns the board of short nonblocking operations. Members that have called the same operations all have it, or none.
    pub(super) fn lines(&self) -> Option<&Mutex<Lines>> {
        self.lines.get()
    }

    /// Returns the memory of the others. Members all have it, or none.
    pub(super) fn memories(&self) -> Option<&Memories> {
        self.memories.get()
    }

    /// Returns what the group lacks of what an algorithm needs, as far as it has looked.
    pub(crate) fn lacks(&self, algorithm: &Algorithm) -> Option<Lack> {
        let reads_memory = || self.memories().is_some_and(Memories::are_read);
        match self.board.get()? {
            None if algorithm.needs == Needs::Board => Some(Lack::Board),
            Some(_) if algorithm.reads_memory && !reads_memory() => Some(Lack::Reads),
            _ => None,
        }
    }

    /// Returns which algorithms are tried, to a member's operation on the board.
    pub(super) fn trials(&self) -> MutexGuard<'_, Trials> {
        self.trials.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns how the operation of `round` stands to others: it takes no turns while there is no board.
    pub(crate) fn order(&self, round: u64) -> Order {
        let Some(lines) = self.lines.get() else {
            return Order::Any;
        };
        let lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
        match lines.was_shown(round) {
            true => Order::Shown,
            false => Order::Waits,
        }
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
            && let Some(mut board) = board.try_enter()
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
