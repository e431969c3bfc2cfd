//! Operations of a group on one host, through a board that its members share (`tagwire_transport::board`).
//!
//! Short ones are straight code: a line is written, lines are read. Long ones go in pieces through slots, so that all members copy
//! and combine at once. Nothing is allocated.
//!
//! A group gets its board with the fourth operation that would take one, if all members can reach it: short-lived groups
//! have none. A reduction combines from the first member to the last, whatever the number of pieces.

mod allgather;
mod allreduce;
mod alltoall;
mod barrier;
mod broadcast;
mod call;
mod gather;
mod reduce;
mod scatter;
pub(crate) mod state;

use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, PoisonError};

use tagwire_layout::{Basic, Layout, Operation};
use tagwire_transport::{Board, BoardMemory, OpenBoard, Rouser};

use crate::algorithms::{Collective, ON_BOARD};
use crate::call::Call;
use crate::error::Result;
use crate::reduction::Reduction;
use crate::team::Team;
use crate::unwind::NoUnwind;
use crate::{allreduce as by_messages, broadcast as from_root};

pub(crate) use allgather::allgather;
pub(crate) use allreduce::allreduce;
pub(crate) use alltoall::alltoall;
pub(crate) use barrier::barrier;
pub(crate) use broadcast::broadcast;
pub(crate) use call::{BoardCall, LARGEST_UNIT};
pub(crate) use gather::gather;
pub(crate) use reduce::reduce;
pub(crate) use scatter::scatter;

/// The operation, of those that could take a board, with which it is made.
const FOURTH: u32 = 4;

/// Most bytes of a board's key.
const KEY: usize = 31;

impl Team {
    /// Runs an operation, a barrier if it is not named, on the group's board. `None`, with nothing done, where it has none or the
    /// table says otherwise.
    #[inline]
    pub(crate) fn on_board(
        &self,
        what: Option<Collective>,
        bytes: usize,
        body: impl FnOnce(&mut BoardCall<'_>) -> Result<()>,
    ) -> Option<Result<()>> {
        if !ON_BOARD.contains(&self.size()) || self.checks() {
            return None;
        }
        let board = match self.board.board.get() {
            Some(made) => made.as_ref()?,
            None => match self.make_board() {
                Ok(made) => made?,
                Err(error) => return Some(Err(error)),
            },
        };
        Some(self.run_on(board, what, bytes, body))
    }

    /// Whether the table gives a board to such an operation.
    #[inline]
    pub(crate) fn takes_board(&self, what: Collective, bytes: usize, may_reorder: bool) -> bool {
        self.selection()
            .takes_board(what, self.size(), bytes, may_reorder)
    }

    /// The same for a reduction.
    #[inline]
    pub(crate) fn reduces_on_board(
        &self,
        what: Collective,
        bytes: usize,
        reduction: &Reduction<'_>,
    ) -> bool {
        // Two operands are one tree, and values do not lie across pieces.
        let may_reorder = self.size() == 2 || self.may_reorder(reduction);
        let is_ordered = reduction.layout.extent() <= LARGEST_UNIT;
        is_ordered && self.takes_board(what, bytes, may_reorder)
    }

    #[inline]
    fn run_on(
        &self,
        board: &Mutex<Board>,
        what: Option<Collective>,
        bytes: usize,
        body: impl FnOnce(&mut BoardCall<'_>) -> Result<()>,
    ) -> Result<()> {
        self.check()?;
        self.messenger().check_thread()?;
        let board = board.lock().unwrap_or_else(PoisonError::into_inner);
        let inside = NoUnwind;
        let mut call = BoardCall::new(self, board, what, bytes);
        let done = body(&mut call);
        if let Err(error) = &done {
            call.give_up(error);
        }
        drop(call);
        // An operation that went on meanwhile may have failed, while the board was in use.
        if let Some(error) = self.broken_by() {
            self.board.give_up(self.culprit(&error));
        }
        std::mem::forget(inside);
        done
    }

    /// Counts an operation, and makes the board with the fourth.
    #[cold]
    fn make_board(&self) -> Result<Option<&Mutex<Board>>> {
        // A call that is refused counts for none of the others.
        self.check()?;
        self.messenger().check_thread()?;
        if self.board.calls.fetch_add(1, Relaxed) + 1 < FOURTH {
            return Ok(None);
        }
        let made = self.meet_on_board()?.map(Mutex::new);
        Ok(self.board.board.get_or_init(|| made).as_ref())
    }

    /// The first member makes a board, and all join it, or none does.
    fn meet_on_board(&self) -> Result<Option<Board>> {
        let mut key = [0; 1 + KEY];
        let mut memory = None;
        if self.me() == 0
            && let Some(open) = self.open_board()
            && open.key.len() <= KEY
        {
            key[0] = open.key.len() as u8;
            key[1..=open.key.len()].copy_from_slice(&open.key);
            memory = Some(open.memory);
        }
        self.run(from_root::binomial(Call::begin(self)?, &mut key, 0))?;
        if self.me() != 0 {
            let len = usize::from(key[0]).min(KEY);
            memory = (len > 0).then(|| self.join_board(&key[1..=len])).flatten();
        }
        let rousers: Option<Vec<_>> = (0..self.size())
            .filter(|member| *member != self.me())
            .map(|member| self.rouser(member))
            .collect();
        // Should the rest fail here alone, it is dropped: others find that this member has left.
        let board = memory
            .zip(rousers)
            .and_then(|(memory, rousers)| Board::new(memory, self.me(), rousers));
        let mut have_all = [u8::from(board.is_some())];
        let least = Reduction {
            operation: &Operation::Min,
            layout: &Layout::of(Basic::U8),
        };
        let call = Call::begin(self)?;
        self.run(by_messages::recursive_doubling(call, least, &mut have_all))?;
        let joined = board.filter(|_| have_all == [1]);
        Ok(joined.map(|mut board| {
            board.forget_descriptor();
            board
        }))
    }

    fn open_board(&self) -> Option<OpenBoard> {
        let with = self.members().rank(1)?;
        let size = self.size();
        let opened = self
            .messenger()
            .with_boards(with, |boards, _| boards.open_board(size));
        opened.ok().flatten().flatten()
    }

    fn join_board(&self, key: &[u8]) -> Option<BoardMemory> {
        let from = self.members().rank(0)?;
        let size = self.size();
        let joined = self
            .messenger()
            .with_boards(from, |boards, from| boards.join_board(from, size, key));
        match joined {
            Ok(Some(Ok(memory))) => Some(memory),
            Ok(Some(Err(error))) => {
                tracing::debug!(%error, "no board: the group goes by messages");
                None
            }
            _ => None,
        }
    }

    fn rouser(&self, member: usize) -> Option<Arc<dyn Rouser>> {
        let to = self.members().rank(member)?;
        let lent = self
            .messenger()
            .with_boards(to, |boards, to| boards.rouser(to));
        lent.ok().flatten().flatten()
    }
}
