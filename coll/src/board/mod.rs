//! Operations of a group on one host, through a board that its members share (`tagwire_transport::board`).
//!
//! Short ones are straight code: a line is written, lines are read. Long ones go in pieces through slots, so that all members copy
//! and combine at once. Nothing is allocated.
//!
//! Short nonblocking operations have a board of their own (`line`), where the blocking ones do not wait for them.
//!
//! Where members may read each other's memory, long ones can go without slots: each byte is copied once, from where it lies (`single_copy`).
//! Which of an operation's algorithms by a board is taken for a length is found by trial (`trial`), but where a setting says it.
//!
//! The boards of a rank may keep so much memory, the setting `coll-board-memory` (`kept`); what is above it idle ones give back.
//!
//! A group gets its boards with the fourth operation that would take one, blocking or not, if all members can reach them:
//! short-lived groups have none. A reduction combines from the first member to the last, whatever the number of pieces.

mod allgather;
mod allreduce;
mod alltoall;
mod barrier;
mod broadcast;
mod call;
mod found;
mod gather;
mod head;
mod kept;
pub(crate) mod line;
mod meeting;
mod memories;
mod parts;
mod reduce;
mod reduce_scatter;
mod scatter;
mod single_copy;
pub(crate) mod state;
mod trial;

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use tagwire_base::Tag;
use tagwire_base::unwind::NoUnwind;

use crate::algorithms::{Algorithm, Collective, ON_BOARD};
use crate::error::Result;
use crate::reduction::Reduction;
use crate::team::Team;
use kept::SharedBoard;
use state::{Boards, Stage};

pub(crate) use allgather::allgather;
pub(crate) use allreduce::allreduce;
pub(crate) use alltoall::alltoall;
pub(crate) use barrier::barrier;
pub(crate) use broadcast::broadcast;
pub(crate) use call::{BoardCall, LARGEST_UNIT};
pub(crate) use gather::{gather, give};
pub(crate) use head::Head;
pub use line::LineCall;
pub(crate) use line::NextLine;
pub(crate) use reduce::reduce;
pub(crate) use reduce_scatter::{fits_parts, reduce_scatter};
pub(crate) use scatter::{scatter, take};
pub use trial::TRIED_FROM;

impl Team {
    /// Runs an operation on the group's board. `None`, with nothing done, where it has none or the
    /// table says otherwise.
    #[inline]
    pub(crate) fn on_board(
        &self,
        head: Head,
        body: impl FnOnce(&mut BoardCall<'_>) -> Result<()>,
    ) -> Option<Result<()>> {
        if !self.may_have_boards() {
            return None;
        }
        let board = match self.board.board.get() {
            Some(made) => made.as_ref()?,
            None => match self.make_board() {
                Ok(made) => made?,
                Err(error) => return Some(Err(error)),
            },
        };
        Some(self.run_on(board, head, body))
    }

    /// Whether the group is of a size that has boards, and does not compare calls by messages.
    #[inline]
    fn may_have_boards(&self) -> bool {
        ON_BOARD.contains(&self.size()) && !self.checks()
    }

    /// Returns the algorithm by which such an operation goes on a board, where the table gives it one: data of two sides go by
    /// messages.
    #[inline]
    pub(crate) fn by_board(
        &self,
        what: Collective,
        bytes: usize,
        may_reorder: bool,
    ) -> Option<&'static Algorithm> {
        if self.sides().is_some() {
            return None;
        }
        self.selection()
            .on_board(what, self.size(), bytes, may_reorder)
    }

    /// Returns the one of a reduction.
    #[inline]
    pub(crate) fn reduces_on_board(
        &self,
        what: Collective,
        bytes: usize,
        reduction: &Reduction<'_>,
    ) -> Option<&'static Algorithm> {
        // Two operands are one tree, and values do not lie across pieces.
        let may_reorder = self.size() == 2 || self.may_reorder(reduction);
        let is_ordered = reduction.layout.extent() <= LARGEST_UNIT;
        let taken = || self.by_board(what, bytes, may_reorder);
        is_ordered.then(taken).flatten()
    }

    #[inline]
    fn run_on(
        &self,
        shared: &Arc<SharedBoard>,
        head: Head,
        body: impl FnOnce(&mut BoardCall<'_>) -> Result<()>,
    ) -> Result<()> {
        self.check()?;
        self.messenger().check_thread()?;
        let board = shared.enter()?;
        let inside = NoUnwind::of("a collective");
        let mut call = BoardCall::new(self, shared, board, head);
        let failed = body(&mut call).err();
        if let Some(error) = &failed {
            call.give_up(error);
        }
        drop(call);
        // An operation that went on meanwhile may have failed, while the board was in use.
        if let Some(error) = self.broken_by() {
            self.board.give_up(self.failed_member(&error));
        }
        inside.over();
        failed.map_or(Ok(()), Err)
    }

    /// Counts an operation, and makes the board with the fourth, or waits until a nonblocking one has.
    #[cold]
    fn make_board(&self) -> Result<Option<&Arc<SharedBoard>>> {
        // A call that is refused counts for none of the others.
        self.check()?;
        self.messenger().check_thread()?;
        match self.board.count_call() {
            Stage::Early => return Ok(None),
            Stage::Meets => self.run(self.make_boards(Boards::tags(self)))?,
            Stage::Made => self.run(self.boards_made())?,
        }
        Ok(self.board.board.get().and_then(Option::as_ref))
    }

    /// Meets the other members, and keeps the boards if all have got them.
    async fn make_boards(&self, tags: [Tag; 2]) -> Result<()> {
        let made = Boards::meet(self, tags).await;
        // Those who wait for it find the failure by themselves.
        let made = made.map(|made| self.board.keep(made));
        made.inspect_err(|_| self.board.keep(None))
    }

    /// Waits until an operation that was called earlier has made the boards, or has found that there are none.
    async fn boards_made(&self) -> Result<()> {
        poll_fn(|_| match self.board.board.get() {
            Some(_) => Poll::Ready(Ok(())),
            None => match self.check_members() {
                Ok(()) => Poll::Pending,
                Err(error) => {
                    // The one that makes the boards is told of it by nobody else.
                    self.break_off(&error);
                    Poll::Ready(Err(error))
                }
            },
        })
        .await
    }
}
