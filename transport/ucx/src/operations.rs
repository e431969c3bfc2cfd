//! Operations under way: a slot for each, which is used again.
#![allow(unsafe_code)]

use std::collections::BTreeSet;
use std::ffi::c_void;
use std::ptr::NonNull;

use tagwire_base::slab::{Entry, Handle, Slots};
use tagwire_transport::Token;

use crate::piece::Piece;
use crate::shared::{Mark, Pinned, Shared};

/// What an operation is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// A message of our own bytes; nobody waits for its end.
    Copied,
    /// The first one to a peer, which goes once there is a connection.
    Hello,
    /// The last one to a peer that has said goodbye; its endpoint is closed after it.
    Heard,
    /// What the caller lent, to be told of under the token; so many bytes.
    Lent(Token, u64),
    /// Lent before, and told to have ended with its peer; UCX has not let go of the request.
    Orphan,
    /// A receive, with room for so many bytes.
    Receive(Token, u64),
    /// A get of so many bytes: the receive under its tag.
    Get(Token, u64),
    /// The receive of a message whose sender is gone.
    Inherit,
    /// The reply to a peer's get, out of this registration.
    Serve(u32),
    /// A put of so many bytes; UCX has no part in it itself.
    Put(Token, u64),
    /// The bytes of the put of this name.
    PutBytes(u64),
    /// The receive of a peer's put into this registration, and the peer's name for it.
    Fill(u32, u64),
    /// A write of so many bytes that the caller lent.
    Write(Token, u64),
    /// The receive of a peer's write into this registration, and the value to be told then.
    Land(u32, u64),
    /// The closing of an endpoint.
    Close,
    /// The last flush.
    Flush,
}

impl Purpose {
    /// Returns the registration whose memory UCX reads or writes for it.
    pub(crate) const fn registration(self) -> Option<u32> {
        match self {
            Self::Serve(slot) | Self::Fill(slot, _) | Self::Land(slot, _) => Some(slot),
            _ => None,
        }
    }

    /// Whether it is a message that nobody but us waits for.
    pub(crate) const fn is_own(self) -> bool {
        matches!(self, Self::Copied | Self::Hello | Self::Heard)
    }

    /// Whether it is a message that the bounds of its peer count.
    pub(crate) const fn is_message(self) -> bool {
        matches!(
            self,
            Self::Copied | Self::Hello | Self::Heard | Self::Lent(..) | Self::Write(..)
        )
    }
}

/// One operation.
pub(crate) struct Operation {
    pub(crate) purpose: Purpose,
    /// The index of the peer's endpoint, where there is one.
    pub(crate) link: Option<u32>,
    /// Bytes that UCX reads or writes are the first of these; there are as many as there ever were.
    bytes: Vec<u8>,
    /// How many they are.
    len: usize,
    /// What the caller of a put lent.
    pub(crate) lent: Piece,
    /// Of a put: its bytes were asked for.
    pub(crate) asked: bool,
    /// Of a put: UCX does not read its bytes just now.
    pub(crate) sent: bool,
    /// Of a put: they are in their place.
    pub(crate) placed: bool,
    /// While it is under way.
    pub(crate) request: Option<NonNull<c_void>>,
    pub(crate) mark: Pinned<Mark>,
}

// SAFETY: requests are used through the worker alone.
unsafe impl Send for Operation {}

impl Operation {
    /// Has `header` sent, and `len` bytes behind it that `fill` writes. Not while it is under way.
    #[inline]
    pub(crate) fn fill(&mut self, header: &[u8], len: usize, fill: impl FnOnce(&mut [u8])) {
        let (first, rest) = self.room(header.len() + len).split_at_mut(header.len());
        first.copy_from_slice(header);
        fill(rest);
    }

    /// Returns room for `len` bytes, which hold anything.
    #[inline]
    fn room(&mut self, len: usize) -> &mut [u8] {
        if self.bytes.len() < len {
            self.bytes.resize(len, 0);
        }
        self.len = len;
        &mut self.bytes[..len]
    }

    /// A copy of the bytes, which UCX writes no more.
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.bytes[..self.len].to_vec()
    }

    /// Room for `len` bytes, for UCX to write until the operation has ended.
    pub(crate) fn make_room(&mut self, len: usize) -> *mut u8 {
        self.room(len).as_mut_ptr()
    }

    /// The bytes, for UCX to read until the operation has ended.
    #[inline]
    pub(crate) fn piece(&self) -> Piece {
        Piece {
            start: self.bytes.as_ptr(),
            len: self.len,
        }
    }
}

impl Entry for Operation {
    #[inline]
    fn vacate(&mut self) {
        self.request = None;
        self.lent = Piece::NONE;
        (self.asked, self.sent, self.placed) = (false, true, false);
        self.mark.ended.set(false);
    }
}

/// The slots.
#[derive(Default)]
pub(crate) struct Operations(Slots<Operation>);

impl Operations {
    /// A free slot, for `purpose`.
    #[inline]
    pub(crate) fn take(
        &mut self,
        shared: &Pinned<Shared>,
        purpose: Purpose,
        link: Option<u32>,
    ) -> u32 {
        let (handle, slot) = self.0.occupy(|index| Operation {
            purpose,
            link,
            bytes: Vec::new(),
            len: 0,
            lent: Piece::NONE,
            asked: false,
            sent: true,
            placed: false,
            request: None,
            mark: Mark::new(shared, index),
        });
        slot.purpose = purpose;
        slot.link = link;
        handle.slot()
    }

    /// Returns the peers for which UCX reads or writes the memory of a registration just now.
    pub(crate) fn users_of(&self, slot: u32) -> BTreeSet<u32> {
        let is_of = |one: &Operation| one.purpose.registration() == Some(slot);
        let using = self
            .iter()
            .filter(|(_, one)| is_of(one) && !one.mark.ended.get());
        using.filter_map(|(_, one)| one.link).collect()
    }

    #[inline]
    pub(crate) fn get(&self, index: u32) -> &Operation {
        self.0.kept(index)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, index: u32) -> &mut Operation {
        self.0.kept_mut(index)
    }

    /// Frees a slot whose operation has ended, or was never under way.
    #[inline]
    pub(crate) fn give(&mut self, index: u32) {
        self.0.remove(self.0.handle(index));
    }

    /// A number that no other operation of this rank has, now or soon.
    pub(crate) fn name(&self, index: u32) -> u64 {
        self.0.handle(index).to_wire()
    }

    /// The operation of that name, if it is under way.
    pub(crate) fn find(&self, name: u64) -> Option<u32> {
        let handle = Handle::from_wire(name);
        self.0.get(handle).map(|_| handle.slot())
    }

    /// Those under way.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Operation> {
        self.0.iter_mut().map(|(_, operation)| operation)
    }

    /// Those under way, numbered.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Operation)> {
        let numbered = self.0.iter();
        numbered.map(|(handle, operation)| (handle.slot(), operation))
    }
}
