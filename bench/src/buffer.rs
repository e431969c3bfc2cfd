//! The memory that messages come from and go to.
//!
//! Benchmark bodies own a [`Memory`] and lend pieces of it to a port. Nothing ties a piece to the
//! operation that uses it, so three rules hold in this crate, and `Memory` is private to it:
//!
//! - a [`Memory`] is never freed: a rank allocates a few for its whole life and then ends, so that
//!   no transfer can ever touch memory that belongs to somebody else;
//! - a body looks at or fills a piece only while no operation on it is under way;
//! - receives that are under way at once into the same piece, as OSU's bandwidth test has them,
//!   are made only where nobody looks at the bytes.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc};
use std::fs;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering};

use tagwire_transport::{Allocation, RecvBuffer, SendBuffer};

use crate::error::{Error, Mismatch, Result};
use crate::stats::mix;

/// What a message is filled with: a stream of words that its seed determines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pattern(u64);

impl Pattern {
    /// The pattern of message number `message` that `rank`'s thread `thread` sends.
    #[inline]
    pub(crate) const fn of(seed: u64, rank: u32, thread: u32, message: u64) -> Self {
        let sender = (rank as u64) << 32 | thread as u64;
        Self(mix(mix(seed ^ mix(sender)).wrapping_add(message)))
    }

    /// The pattern that follows from a number.
    #[inline]
    pub(crate) const fn of_number(number: u64) -> Self {
        Self(mix(number))
    }

    #[inline]
    const fn number(self, index: usize) -> u64 {
        mix(self.0.wrapping_add(index as u64))
    }

    #[inline]
    pub(crate) const fn word(self, index: usize) -> [u8; 8] {
        self.number(index).to_le_bytes()
    }

    /// Fills `bytes` with it.
    #[inline]
    pub(crate) fn fill(self, bytes: &mut [u8]) {
        let (words, rest) = bytes.as_chunks_mut();
        for (index, word) in words.iter_mut().enumerate() {
            *word = self.word(index);
        }
        let last = self.word(words.len());
        rest.copy_from_slice(&last[..rest.len()]);
    }

    /// Compares `bytes` with it.
    #[inline]
    pub(crate) fn check(self, bytes: &[u8]) -> Result<(), Difference> {
        let (words, rest) = bytes.as_chunks();
        for (index, word) in words.iter().enumerate() {
            if u64::from_le_bytes(*word) != self.number(index) {
                return self.compare(index, word);
            }
        }
        self.compare(words.len(), rest)
    }

    /// Compares `bytes` with the word of that number, or what of it there are.
    fn compare(self, index: usize, bytes: &[u8]) -> Result<(), Difference> {
        let expected = self.word(index);
        let compared = Difference::between(&expected[..bytes.len()], bytes);
        compared.map_err(|found| Difference {
            offset: index * 8 + found.offset,
            ..found
        })
    }
}

/// The first byte that is not as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Difference {
    pub offset: usize,
    pub expected: u8,
    pub found: u8,
}

impl Difference {
    /// Compares bytes with those that are expected.
    #[inline]
    pub(crate) fn between(expected: &[u8], found: &[u8]) -> Result<(), Self> {
        match expected.iter().zip(found).position(|(a, b)| a != b) {
            None => Ok(()),
            Some(offset) => Err(Self {
                offset,
                expected: expected[offset],
                found: found[offset],
            }),
        }
    }

    /// What it is in a message of `size` bytes, the one number `iteration` from a rank.
    pub(crate) const fn of_message(
        self,
        rank: u32,
        from: u32,
        iteration: u64,
        size: usize,
    ) -> Error {
        Error::Validation(Mismatch {
            rank,
            from,
            iteration,
            size,
            offset: self.offset,
            expected: self.expected,
            found: self.found,
        })
    }
}

/// Writes to every cache line of `words`, and so displaces other memory from the caches.
pub(crate) fn sweep(words: &mut [u64]) {
    // By index: tests run it without optimizing, where an iterator takes ten times as long.
    let mut at = 0;
    while at < words.len() {
        words[at] = std::hint::black_box(words[at].wrapping_add(1));
        at += 8;
    }
}

/// A piece of page-aligned memory, of the heap or a transport's, that lives as long as the process.
#[derive(Debug)]
pub(crate) struct Memory {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory belongs to this object alone; the pointer is not shared with others of its
// kind.
unsafe impl Send for Memory {}

/// Bytes lent to a send.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outgoing {
    start: NonNull<u8>,
    len: usize,
}

/// Room lent to a receive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Incoming {
    start: NonNull<u8>,
    len: usize,
}

const PAGE: usize = 4096;

impl Memory {
    /// `len` bytes, every page of which is there already.
    ///
    /// # Errors
    /// [`Error::Memory`] when the machine has not that much left.
    #[inline]
    pub(crate) fn new(len: usize) -> Result<Self> {
        let available = available_memory();
        let too_much = || Error::Memory {
            needed: len as u64,
            available,
        };
        if len as u64 > available {
            return Err(too_much());
        }
        let layout = Layout::from_size_align(len.max(1), PAGE).map_err(|_| too_much())?;
        // SAFETY: the layout has a length of at least 1.
        let start = NonNull::new(unsafe { alloc(layout) }).ok_or_else(too_much)?;
        // SAFETY: `start` is a fresh allocation of at least `len` bytes.
        unsafe { start.write_bytes(0x5a, len.max(1)) };
        Ok(Self { start, len })
    }

    /// Memory of a transport, every page of which is made to be there.
    #[inline]
    pub(crate) fn of(memory: Allocation) -> Self {
        let (start, len) = (memory.as_ptr(), memory.len());
        std::mem::forget(memory);
        // SAFETY: it is never given back, so that its bytes are this value's.
        unsafe { start.write_bytes(0x5a, len) };
        Self { start, len }
    }

    /// Length in bytes.
    #[inline]
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    #[inline]
    fn piece(&self, range: Range<usize>) -> (NonNull<u8>, usize) {
        assert!(
            range.start <= range.end && range.end <= self.len,
            "a piece outside the memory"
        );
        // SAFETY: the range lies inside the allocation, as was just looked at.
        (unsafe { self.start.add(range.start) }, range.len())
    }

    /// Lends `range` to a send.
    #[inline]
    pub(crate) fn outgoing(&self, range: Range<usize>) -> Outgoing {
        let (start, len) = self.piece(range);
        Outgoing { start, len }
    }

    /// Lends `range` to a receive.
    #[inline]
    pub(crate) fn incoming(&self, range: Range<usize>) -> Incoming {
        let (start, len) = self.piece(range);
        Incoming { start, len }
    }

    /// Writes `bytes` at the start.
    #[inline]
    pub(crate) fn write(&mut self, bytes: &[u8]) {
        self.write_at(0, bytes);
    }

    /// Writes `bytes` from `place` on.
    #[inline]
    pub(crate) fn write_at(&mut self, place: usize, bytes: &[u8]) {
        let (start, len) = self.piece(place..place + bytes.len());
        // SAFETY: `start` has `len` bytes of our own; `bytes` is borrowed from elsewhere.
        unsafe { start.copy_from_nonoverlapping(NonNull::from(bytes).cast(), len) };
    }

    /// Reads bytes from the start.
    pub(crate) fn read<const N: usize>(&self) -> [u8; N] {
        let (start, _) = self.piece(0..N);
        // SAFETY: `start` has `N` readable, initialised bytes; an array of bytes needs no alignment.
        unsafe { start.cast::<[u8; N]>().read() }
    }

    /// The first `count` words.
    #[inline]
    pub(crate) fn words(&self, count: usize) -> Vec<u64> {
        let (start, _) = self.piece(0..8 * count);
        let word = |place| {
            // SAFETY: the piece has so many initialised words; by this module's rules no operation on them is
            // under way.
            unsafe { start.cast::<u64>().add(place).read_unaligned() }
        };
        (0..count).map(word).collect()
    }

    /// The bytes of `range`.
    #[inline]
    pub(crate) fn bytes(&self, range: Range<usize>) -> Vec<u8> {
        let (start, len) = self.piece(range);
        // SAFETY: `start` has `len` initialised bytes; by this module's rules no operation on them is under way.
        unsafe { std::slice::from_raw_parts(start.as_ptr(), len) }.to_vec()
    }

    /// Writes words at the start.
    #[inline]
    pub(crate) fn write_words(&mut self, words: &[u64]) {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        self.write(&bytes);
    }

    /// Fills `range` with `pattern`.
    #[inline]
    pub(crate) fn fill(&mut self, range: Range<usize>, pattern: Pattern) {
        let (start, len) = self.piece(range);
        // SAFETY: `start` has `len` initialised bytes; by this module's rules no operation on them
        // is under way, and `self` is borrowed for the only reference.
        let bytes = unsafe { std::slice::from_raw_parts_mut(start.as_ptr(), len) };
        pattern.fill(bytes);
    }

    /// Compares `range` with `pattern`.
    #[inline]
    pub(crate) fn check(&self, range: Range<usize>, pattern: Pattern) -> Result<(), Difference> {
        let (start, len) = self.piece(range);
        // SAFETY: `start` has `len` initialised bytes; by this module's rules no operation on them
        // is under way.
        let bytes = unsafe { std::slice::from_raw_parts(start.as_ptr(), len) };
        pattern.check(bytes)
    }
}

impl Outgoing {
    /// The bytes, for a pml or a transport.
    #[inline]
    pub(crate) fn buffer(self) -> SendBuffer {
        // SAFETY: the memory is never freed, and by this module's rules nobody writes to the piece
        // while an operation on it is under way.
        unsafe { SendBuffer::contiguous(self.start.as_ptr(), self.len) }
    }

    /// The bytes as a slice, for a copy that ends before the next call of the port.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: as for `buffer`; the memory is initialised.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// The same bytes, as room for a receive within this process.
    #[cfg(test)]
    #[inline]
    pub(crate) const fn incoming(self) -> Incoming {
        Incoming {
            start: self.start,
            len: self.len,
        }
    }

    /// The first byte, for a foreign library.
    #[inline]
    pub(crate) const fn as_ptr(self) -> *const u8 {
        self.start.as_ptr()
    }

    /// Length in bytes.
    #[inline]
    pub(crate) const fn len(self) -> usize {
        self.len
    }
}

impl Incoming {
    /// A part of it.
    #[inline]
    pub(crate) fn part(self, range: Range<usize>) -> Self {
        assert!(
            range.start <= range.end && range.end <= self.len,
            "a part outside the piece"
        );
        // SAFETY: the range lies inside the piece, as was just looked at.
        let start = unsafe { self.start.add(range.start) };
        let len = range.len();
        Self { start, len }
    }

    /// The same bytes, to be sent.
    #[inline]
    pub(crate) const fn outgoing(self) -> Outgoing {
        Outgoing {
            start: self.start,
            len: self.len,
        }
    }

    /// Has `write` write to the bytes, and ends before the next call of the port.
    #[inline]
    pub(crate) fn with_bytes<R>(self, write: impl FnOnce(&mut [u8]) -> R) -> R {
        // SAFETY: the memory is initialised and never freed; by this module's rules nobody else touches the piece
        // meanwhile.
        write(unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) })
    }

    /// The word at `place`, which others may be writing.
    #[inline]
    pub(crate) fn shared_word(self, place: usize) -> u64 {
        self.shared(place).load(Ordering::Acquire)
    }

    /// Writes a word that others may be reading.
    #[inline]
    pub(crate) fn set_shared_word(self, place: usize, value: u64) {
        self.shared(place).store(value, Ordering::Release);
    }

    #[inline]
    fn shared(&self, place: usize) -> &AtomicU64 {
        let word = self.part(place..place + 8).start.cast::<u64>();
        assert!(word.is_aligned(), "a word between two");
        // SAFETY: eight initialised bytes that are never freed, at a multiple of eight. Whoever writes them meanwhile does so as one word, or is
        // another process or a foreign library, of whose writes nothing but the word's value is taken.
        unsafe { AtomicU64::from_ptr(word.as_ptr()) }
    }

    /// The room, for a pml or a transport.
    #[inline]
    pub(crate) fn buffer(self) -> RecvBuffer {
        // SAFETY: the memory is never freed, and by this module's rules nobody touches the piece
        // while an operation on it is under way, or nobody looks at what comes of it.
        unsafe { RecvBuffer::contiguous(self.start.as_ptr(), self.len) }
    }

    /// The first byte, for a foreign library.
    #[inline]
    pub(crate) const fn as_ptr(self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Length in bytes.
    #[inline]
    pub(crate) const fn len(self) -> usize {
        self.len
    }
}

// SAFETY: a lent piece is a range of memory that is never freed; who lends it keeps off it.
unsafe impl Send for Outgoing {}
// SAFETY: as above.
unsafe impl Send for Incoming {}
// SAFETY: a piece is an address and a length, which nothing changes; through a reference one can but copy it, and send the copy.
unsafe impl Sync for Incoming {}

/// How much memory a process can still take without harm, in bytes.
#[inline]
pub(crate) fn available_memory() -> u64 {
    let parse = |text: String| {
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("MemAvailable:"))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let kilobytes = fs::read_to_string("/proc/meminfo").ok().and_then(parse);
    kilobytes.map_or(u64::MAX, |kilobytes| kilobytes.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_byte_is_found_where_it_is() {
        let pattern = Pattern::of(1, 2, 3, 4);
        let mut memory = Memory::new(64).unwrap();
        for len in 0..40 {
            memory.fill(3..3 + len, pattern);
            assert_eq!(memory.check(3..3 + len, pattern), Ok(()));
            for offset in 0..len {
                let mut bytes: [u8; 64] = memory.read();
                bytes[3 + offset] ^= 0x10;
                memory.write(&bytes);
                let difference = memory.check(3..3 + len, pattern).unwrap_err();
                assert_eq!(difference.offset, offset);
                assert_eq!(difference.found ^ difference.expected, 0x10);
                bytes[3 + offset] ^= 0x10;
                memory.write(&bytes);
            }
        }
    }

    #[test]
    fn messages_differ_by_rank_thread_number_and_seed() {
        let patterns = [
            Pattern::of(1, 0, 0, 0),
            Pattern::of(2, 0, 0, 0),
            Pattern::of(1, 1, 0, 0),
            Pattern::of(1, 0, 1, 0),
            Pattern::of(1, 0, 0, 1),
        ];
        for (i, a) in patterns.iter().enumerate() {
            assert!(patterns[..i].iter().all(|b| a.word(0) != b.word(0)));
        }
    }

    #[test]
    fn more_than_the_machine_has_is_refused() {
        let error = Memory::new(1 << 46).unwrap_err();
        assert!(
            matches!(error, Error::Memory { needed, .. } if needed == 1 << 46),
            "{error}"
        );
    }
}
