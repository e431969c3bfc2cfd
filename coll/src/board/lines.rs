//! The board of short nonblocking operations.

use tagwire_transport::Board;

use super::head::Head;

/// The board of short nonblocking operations, and how far this member is with them.
#[derive(Debug)]
pub(super) struct Lines {
    board: Board,
    /// The round whose turn it is to be shown.
    to_show: u64,
    /// The round whose turn it is to end.
    to_end: u64,
}

impl Lines {
    pub(super) const fn new(board: Board) -> Self {
        Self {
            board,
            to_show: 1,
            to_end: 1,
        }
    }

    pub(super) fn give_up(&mut self, member: usize) {
        self.board.give_up(member);
    }

    pub(super) const fn board(&self) -> &Board {
        &self.board
    }

    /// Takes the next round.
    pub(super) fn begin(&mut self) -> u64 {
        self.board.begin(1)
    }

    /// Shows `data` in `round`, or nothing, if it is its turn and there is room.
    pub(super) fn show(&mut self, round: u64, head: Head, data: Option<&[u8]>) -> Option<()> {
        if self.to_show != round {
            return None;
        }
        if let Some(data) = data
            && !self.board.show(round, head.to_bits(), &[data])
        {
            return None;
        }
        self.to_show += 1;
        Some(())
    }

    /// Whether it is the turn of `round` to end, and these members have shown their lines.
    pub(super) fn is_there(&self, round: u64, mut from: impl Iterator<Item = usize>) -> bool {
        self.to_end == round && from.all(|member| self.board.is_shown(member, round))
    }

    /// Has done with `round`.
    pub(super) fn end(&mut self, round: u64) {
        self.board.finish(round);
        self.to_end += 1;
    }
}
