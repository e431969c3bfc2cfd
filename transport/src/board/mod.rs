//! Boards: memory of one host that several ranks share, for what they do together.
//!
//! What is shown on a board is shown to all its members at once, without a message to each: matched by its place, and read
//! where it lies. Each member has a ring of its own on the board, which it alone writes.
//!
//! ```text
//!     the board  nonce, the first member that has failed, how many have left
//!     member 0   lines     round, head, 48 bytes      a line for each round, used by turns
//!                done      the last round that this member reads nothing of any more
//!                results   the last round with a result
//!                slots     64 KiB                     for what is longer than a line, used by turns
//!                handed on 64 KiB                     see below
//!     member 1   the same
//!     ...
//! ```
//!
//! **Shapes.** A board is [`Slotted`], with 32 lines and 32 slots of each member, or [`Lined`], with 128 lines and no slots.
//!
//! **Rounds** are numbered from 1. All members begin the same rounds in the same order, and show one thing at most in each.
//!
//! **Room.** A line or slot is written again once all other members have done with the round that had it, which their
//! `done` reports. What a member shows reports the same of earlier rounds: nobody shows a round more than
//! [`AHEAD`](Shape::AHEAD) after the last one that it has done with. Rounds of lines alone, in which one member shows and others read, come
//! faster than a line goes from core to core: `done` reports eight of them at once, so that who shows can be that far ahead.
//!
//! **What is handed on.** Of two members, who has read a slot has its lines in its own caches, and writes there faster than anywhere else. So what
//! is longer than 1 KiB goes into one of four slots besides, of either member, that its writer has just read, while that one's round is not
//! further behind than [`AHEAD`](Shape::AHEAD) and one; else into one of its own of these, where neither member can come back to it and the other
//! shows what is long as well; else into the slot of its round. The line of the round says which.
//!
//! **Memory.** A slot takes memory once it is written. A member [gives back](Board::give_back) that of its own slots where all others
//! have done with what it has shown.
//!
//! **Trust.** A member that keeps to nothing can change what others read, as it can change what it sends. Nothing that lies on a board
//! is a length, a place beyond those that there are, or an address in the memory of its reader: where members show where their own memory lies, that is an operand of the
//! system's call, which checks it ([`MemberMemory`]).

mod available;
#[cfg(all(test, not(loom)))]
mod hostile;
mod memory;
#[cfg(all(test, loom))]
mod models;
mod ring;
mod shape;
mod shared;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

pub use memory::BoardMemory;
pub use ring::{LINE, RESULTS_AT, SLOT};
pub use shape::{Lined, Shape, Slotted};
pub use shared::SharedMemory;

use memory::Laid;
use ring::Ring;
use tagwire_base::Owner;

use crate::allocation::PeerAllocations;
use crate::error::Result;
use crate::message::EndpointId;

/// Wakes a rank that sleeps.
pub trait BoardWaker: Send + Sync {
    /// Wakes the rank if it sleeps: something was written for it. A load where it does not.
    fn wake(&self);
}

/// Memory of another member that is read where it lies.
pub trait MemberMemory: Send + Sync {
    /// Copies what lies at `address` of that member's process. Returns whether all of it was read: it is not where the process has
    /// ended, or has nothing there that the system lets others read. What is in `into` then counts for nothing.
    fn read(&self, address: u64, into: &mut [u8]) -> bool;
}

/// A board that was just made.
#[derive(Debug)]
pub struct OpenBoard {
    /// What the other members need to join.
    pub key: Vec<u8>,
    /// The memory. Others join while its [descriptor](BoardMemory::forget_descriptor) is there.
    pub memory: BoardMemory,
}

/// The part of a transport that makes boards, from [`Transport::boards`](crate::Transport::boards).
pub trait Boards {
    /// Makes the memory of a board, of [so many bytes](Board::bytes). `None` where this transport cannot just now.
    fn open_board(&mut self, bytes: usize) -> Option<OpenBoard>;

    /// Maps the board of so many bytes that `from` made.
    ///
    /// # Errors
    /// When the key is not understood or the memory cannot be reached.
    fn join_board(&mut self, from: EndpointId, bytes: usize, key: &[u8]) -> Result<BoardMemory>;

    /// Returns what wakes the rank behind `to`. `None` where it cannot be woken.
    fn waker(&mut self, to: EndpointId) -> Option<Arc<dyn BoardWaker>>;

    /// Returns the memory of the rank behind `of`. `None` where this rank may not read it.
    fn memory(&mut self, of: EndpointId) -> Option<Arc<dyn MemberMemory>>;

    /// Returns what peers call so many bytes of allocated memory at an address. `None` of other memory.
    fn name_of(&self, address: usize, len: usize) -> Option<u64>;

    /// Returns what the rank behind `of` has allocated. `None` where this rank does not map it.
    fn allocations(&mut self, of: EndpointId) -> Option<Arc<dyn PeerAllocations>>;
}

/// One member's end of a board.
pub struct Board<S: Shape = Slotted> {
    ring: Ring<Laid<S>>,
    wakers: Box<[Arc<dyn BoardWaker>]>,
    /// The process whose end it is: a forked child has a copy, by which it may not speak.
    owner: Owner,
}

impl<S: Shape> fmt::Debug for Board<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Board").finish_non_exhaustive()
    }
}

impl<S: Shape> Board<S> {
    /// Returns how many bytes of memory a board of so many members has.
    #[must_use]
    pub const fn bytes(members: usize) -> usize {
        Laid::<S>::len(members)
    }

    /// Returns the end of member `me`; `wakers` wake all the others. `None` where the memory is not for so many, or the member has
    /// its end.
    #[must_use]
    pub fn new(memory: BoardMemory, me: usize, wakers: Vec<Arc<dyn BoardWaker>>) -> Option<Self> {
        let members = wakers.len() + 1;
        let laid = Laid::new(memory, members)?;
        (me < members && laid.claim(me)).then(|| Self {
            ring: Ring::new(laid, me, members),
            wakers: wakers.into(),
            owner: Owner::here(),
        })
    }

    /// Closes the descriptor by which others join: all have.
    pub fn forget_descriptor(&mut self) {
        self.ring.cells_mut().forget_descriptor();
    }

    /// Begins so many rounds. Returns the number of the first.
    #[inline]
    pub const fn begin(&mut self, rounds: u64) -> u64 {
        self.ring.begin(rounds)
    }

    /// Whether there is room to show `len` bytes in `round`. A look.
    #[inline]
    pub fn has_room(&mut self, round: u64, len: usize) -> bool {
        self.ring.has_room(round, len)
    }

    /// Shows `parts` in a row, at most [`MOST`](Shape::MOST) bytes, under `head`. Returns whether it did: there has to be room, `round` begun,
    /// later than what was shown last, and at most [`AHEAD`](Shape::AHEAD) after the last one that is done with.
    #[inline]
    pub fn show(&mut self, round: u64, head: u64, parts: &[&[u8]]) -> bool {
        let shown = self.ring.show(round, head, parts);
        self.wake();
        shown
    }

    /// Whether a member has shown something in `round`.
    #[inline]
    #[must_use]
    pub fn is_shown(&self, member: usize, round: u64) -> bool {
        self.ring.is_shown(member, round)
    }

    /// Whether all other members have shown something in `round`.
    #[inline]
    pub fn all_shown(&mut self, round: u64) -> bool {
        self.ring.all_shown(round)
    }

    /// Returns the head of what a member has shown in `round`.
    #[inline]
    #[must_use]
    pub fn head(&self, member: usize, round: u64) -> Option<u64> {
        self.ring.head(member, round)
    }

    /// Calls `look` with `range` of the `len` bytes that a member has shown in `round`. `None` when it has not, when this member
    /// has done with the round, or when there are no such bytes.
    #[inline]
    pub fn read<R>(
        &self,
        member: usize,
        round: u64,
        len: usize,
        range: Range<usize>,
        look: impl FnOnce(&[u8]) -> R,
    ) -> Option<R> {
        self.ring.read(member, round, len, range, look)
    }

    /// Shows a result of `round`, in which something was shown that left room for it: at most [`RESULTS_AT`] bytes. Returns whether
    /// it did.
    #[inline]
    pub fn show_result(&mut self, round: u64, data: &[u8]) -> bool {
        let shown = self.ring.show_result(round, data);
        self.wake();
        shown
    }

    /// Whether a member has shown the result of `round`.
    #[inline]
    #[must_use]
    pub fn has_result(&self, member: usize, round: u64) -> bool {
        self.ring.has_result(member, round)
    }

    /// Calls `look` with the `len` bytes of a member's result of `round`. `None` as for [`read`](Self::read).
    #[inline]
    pub fn read_result<R>(
        &self,
        member: usize,
        round: u64,
        len: usize,
        look: impl FnOnce(&[u8]) -> R,
    ) -> Option<R> {
        self.ring.read_result(member, round, len, look)
    }

    /// Has done with `round` and all before it: what others have shown there is read no more.
    #[inline]
    pub fn finish(&mut self, round: u64) {
        self.ring.finish(round);
        self.wake();
    }

    /// The same of a round in which nothing was shown that is longer than a line: others learn of some such rounds at once.
    #[inline]
    pub fn finish_line(&mut self, round: u64) {
        if self.ring.finish_line(round) {
            self.wake();
        }
    }

    /// Returns a bit for each slot of this member that takes memory.
    #[inline]
    #[must_use]
    pub const fn written(&self) -> u64 {
        self.ring.written()
    }

    /// Returns the last round in which this member has shown something.
    #[must_use]
    pub const fn shown(&self) -> u64 {
        self.ring.shown()
    }

    /// Gives the memory of this member's slots back to the system, where all others have done with what it has shown. Returns whether it
    /// did. What is shown later takes memory again.
    pub fn give_back(&mut self) -> bool {
        self.owner.is_here() && self.ring.give_back()
    }

    /// Takes part no more after a failure at `member`, perhaps this one: others that wait for anything [find out](Self::broken).
    pub fn give_up(&mut self, member: usize) {
        if self.owner.is_here() {
            self.ring.give_up(member);
            self.wake();
        }
    }

    /// Returns the first member that a member has failed at. A load.
    #[inline]
    #[must_use]
    pub fn broken(&self) -> Option<usize> {
        self.ring.broken()
    }

    /// Whether some member takes part no more. A load.
    #[inline]
    #[must_use]
    pub fn has_leavers(&self) -> bool {
        self.ring.has_leavers()
    }

    /// Whether a member takes part no more. What it has shown before stays.
    #[must_use]
    pub fn has_left(&self, member: usize) -> bool {
        self.ring.has_left(member)
    }

    #[inline]
    fn wake(&self) {
        for waker in &self.wakers {
            waker.wake();
        }
    }
}

impl<S: Shape> Drop for Board<S> {
    fn drop(&mut self) {
        if self.owner.is_here() {
            self.ring.leave();
            self.wake();
        }
    }
}
