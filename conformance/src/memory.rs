//! Memory that checks lend to transports.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::ptr;

use crate::common::pattern;
use tagwire_transport::RemoteMemory;
use tagwire_transport::allocation::Allocation;
use tagwire_transport::data::{Pack, RecvBuffer, SendBuffer, Unpack};

/// Bytes on both sides of the lent ones, which nobody may touch.
const GUARD: usize = 64;

/// What the guards hold.
const GUARD_BYTE: u8 = 0xa5;

/// Lent memory between two guards. The rig that made it keeps it until its transports are gone.
#[derive(Debug)]
pub(super) struct Memory(Bytes);

#[derive(Debug)]
enum Bytes {
    Heap(Box<[UnsafeCell<u8>]>),
    /// Of a transport.
    Lent(Allocation),
}

impl Memory {
    /// Memory that holds the pattern of `seed`.
    pub(super) fn patterned(seed: u64, len: usize, from: Option<Allocation>) -> Self {
        Self::new(&pattern(seed, len), from)
    }

    /// Memory that holds zeros.
    pub(super) fn zeroed(len: usize, from: Option<Allocation>) -> Self {
        Self::new(&vec![0; len], from)
    }

    /// How much a transport is asked for, for so much to be lent.
    pub(super) const fn with_guards(len: usize) -> usize {
        len + 2 * GUARD
    }

    fn new(bytes: &[u8], from: Option<Allocation>) -> Self {
        let guard = &[GUARD_BYTE; GUARD][..];
        let all = [guard, bytes, guard].concat();
        Self(match from {
            Some(mut memory) => {
                memory.bytes_mut()[..all.len()].copy_from_slice(&all);
                Bytes::Lent(memory)
            }
            None => {
                let all = Box::into_raw(all.into_boxed_slice());
                // SAFETY: a cell has the size and the alignment of the byte in it.
                Bytes::Heap(unsafe { Box::from_raw(all as *mut [UnsafeCell<u8>]) })
            }
        })
    }

    pub(super) fn len(&self) -> usize {
        let all = match &self.0 {
            Bytes::Heap(cells) => cells.len(),
            Bytes::Lent(memory) => memory.len(),
        };
        all - 2 * GUARD
    }

    fn start(&self) -> *mut u8 {
        let first = match &self.0 {
            Bytes::Heap(cells) => UnsafeCell::raw_get(cells.as_ptr()),
            Bytes::Lent(memory) => memory.as_ptr().as_ptr(),
        };
        first.wrapping_add(GUARD)
    }

    /// All of it, to be sent.
    pub(super) fn send_buffer(&self) -> SendBuffer {
        // SAFETY: the rig keeps the memory longer than its transports, and a check writes to it
        // only before it lends it.
        unsafe { SendBuffer::contiguous(self.start(), self.len()) }
    }

    /// All of it, in pieces of the given lengths (the last one takes the rest).
    pub(super) fn gathered(&self, lengths: &[usize]) -> SendBuffer {
        let mut pieces = Vec::new();
        let mut at = 0;
        for len in lengths.iter().copied().chain([self.len()]) {
            let len = len.min(self.len() - at);
            // SAFETY: `at + len` is at most the length.
            pieces.push((unsafe { self.start().add(at) }.cast_const(), len));
            at += len;
        }
        // SAFETY: as for `send_buffer`.
        unsafe { SendBuffer::gather(&pieces) }
    }

    /// All of it, to be filled.
    pub(super) fn recv_buffer(&self) -> RecvBuffer {
        // SAFETY: the rig keeps the memory longer than its transports, and checks lend it to one
        // operation at a time.
        unsafe { RecvBuffer::contiguous(self.start(), self.len()) }
    }

    /// All of it but a hole of `gap` bytes in the middle.
    pub(super) fn scattered(&self, gap: usize) -> RecvBuffer {
        let half = (self.len() - gap) / 2;
        let rest = self.len() - gap - half;
        // SAFETY: both pieces lie inside and apart; lent as for `recv_buffer`.
        unsafe {
            let second = self.start().add(half + gap);
            RecvBuffer::scatter(&[(self.start(), half), (second, rest)])
        }
    }

    /// The bytes from `offset` on, as a peer names them.
    pub(super) fn remote<'a>(&self, offset: usize, key: &'a [u8]) -> RemoteMemory<'a> {
        RemoteMemory {
            address: self.start().addr().wrapping_add(offset) as u64,
            key,
        }
    }

    /// Whether it holds `bytes`, and then anything.
    pub(super) fn begins_with(&self, bytes: &[u8]) -> bool {
        bytes.len() <= self.len() && self.first(bytes.len()) == bytes
    }

    /// What it holds now.
    pub(super) fn bytes(&self) -> Vec<u8> {
        self.first(self.len())
    }

    /// The first `len` bytes of what it holds now; it has as many.
    fn first(&self, len: usize) -> Vec<u8> {
        assert!(len <= self.len(), "more than there is");
        let mut out = vec![0; len];
        // SAFETY: a check reads between calls to transports that run on its own thread, so
        // nobody writes meanwhile; both ranges have `len` bytes.
        unsafe { ptr::copy_nonoverlapping(self.start(), out.as_mut_ptr(), len) };
        out
    }

    /// Whether the guards are as they were.
    pub(super) fn guards_hold(&self) -> bool {
        let intact = |place: *mut u8| {
            // SAFETY: as for `bytes`; the guards lie right before and behind.
            unsafe { place.read_volatile() == GUARD_BYTE }
        };
        let (before, behind) = (self.start().wrapping_sub(GUARD), self.start());
        (0..GUARD).all(|at| {
            intact(before.wrapping_add(at)) && intact(behind.wrapping_add(self.len() + at))
        })
    }
}

/// A layout that is packed backwards, so that no shortcut through memory gets it right.
pub(super) struct Backwards(pub(super) Vec<u8>);

impl Pack for Backwards {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn pack(&self, offset: usize, out: &mut [u8]) {
        let last = self.0.len() - 1;
        for (place, byte) in out.iter_mut().enumerate() {
            *byte = self.0[last - offset - place];
        }
    }
}

/// Takes bytes by callback and forgets them: only whether it is refused matters.
pub(super) struct Sink(pub(super) usize);

impl Unpack for Sink {
    fn capacity(&self) -> usize {
        self.0
    }

    fn unpack(&self, _offset: usize, _bytes: &[u8]) {}
}
