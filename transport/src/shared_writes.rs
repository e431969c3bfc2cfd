//! Copies into memory that another processor reads next, and has read before.
//!
//! A plain store first takes its line over from the processor that read it. Where both share a cache that is quick; where they do
//! not it is what the copy waits for, and stores that go past the caches take a quarter of the time (docs/performance.md, what was
//! tried). Which it is shows in the time of the copies themselves, and changes where the system moves a process: now and then a
//! few copies are tried both ways.
#![allow(unsafe_code)]

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use crate::data::copy_bytes;

/// Shorter copies are plain: their reader waits for memory where the caches have been passed by.
const LEAST: usize = 4096;

/// Of so many copies the first [`TRIALS`] are tried, half of them each way.
const PERIOD: u32 = 1024;
const TRIALS: u32 = 4;

/// How copies of one writer are made.
#[derive(Debug)]
pub(crate) struct SharedWrites {
    /// Long copies so far.
    count: AtomicU32,
    /// Copies go past the caches.
    stream: AtomicBool,
    /// The best time of each way in the trial under way, in ticks for a KiB.
    plain: AtomicU64,
    streamed: AtomicU64,
}

impl SharedWrites {
    pub(crate) const fn new() -> Self {
        Self {
            count: AtomicU32::new(0),
            stream: AtomicBool::new(false),
            plain: AtomicU64::new(u64::MAX),
            streamed: AtomicU64::new(u64::MAX),
        }
    }

    /// Copies `len` bytes. All of them are visible to whoever sees a later store with `Release`.
    ///
    /// # Safety
    /// `from` is readable and `to` writable for `len` bytes, and they do not overlap.
    #[inline]
    pub(crate) unsafe fn copy(&self, from: *const u8, to: *mut u8, len: usize) {
        if len < LEAST || !way::CAN_STREAM {
            // SAFETY: as the caller promises.
            return unsafe { copy_bytes(from, to, len) };
        }
        // A count that two threads lose a step of is as good.
        let turn = self.count.load(Relaxed);
        self.count.store(turn.wrapping_add(1), Relaxed);
        match turn % PERIOD {
            // SAFETY: as the caller promises.
            turn @ ..TRIALS => unsafe { self.try_out(turn, from, to, len) },
            // SAFETY: as the caller promises.
            _ if self.stream.load(Relaxed) => unsafe { way::stream(from, to, len) },
            // SAFETY: as the caller promises.
            _ => unsafe { copy_bytes(from, to, len) },
        }
    }

    /// The same, timed. The last trial decides about the copies that follow.
    ///
    /// # Safety
    /// As [`copy`](Self::copy).
    #[cold]
    unsafe fn try_out(&self, turn: u32, from: *const u8, to: *mut u8, len: usize) {
        let streams = turn >= TRIALS / 2;
        let start = way::ticks();
        match streams {
            // SAFETY: as the caller promises.
            true => unsafe { way::stream(from, to, len) },
            // SAFETY: as the caller promises.
            false => unsafe { copy_bytes(from, to, len) },
        }
        let took = way::ticks().wrapping_sub(start).saturating_mul(1024) / len as u64;
        let best = if streams { &self.streamed } else { &self.plain };
        let is_first = turn == 0 || turn == TRIALS / 2;
        let before = if is_first {
            u64::MAX
        } else {
            best.load(Relaxed)
        };
        best.store(took.min(before), Relaxed);
        if turn == TRIALS - 1 {
            let faster = self.streamed.load(Relaxed) < self.plain.load(Relaxed);
            self.stream.store(faster, Relaxed);
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod way {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128, _rdtsc};

    use super::copy_bytes;

    pub(super) const CAN_STREAM: bool = true;

    /// Returns the processor's own count of time.
    pub(super) fn ticks() -> u64 {
        // SAFETY: every processor of the architecture has it, and it changes nothing.
        // JUSTIFICATION: it takes 10 ns, where a copy may take 300.
        unsafe { _rdtsc() }
    }

    /// Copies `len` bytes past the caches.
    ///
    /// # Safety
    /// As [`SharedWrites::copy`](super::SharedWrites::copy); `len` is a line of 64 bytes at least.
    #[inline(never)]
    pub(super) unsafe fn stream(from: *const u8, to: *mut u8, len: usize) {
        // Up to the first whole line of the target.
        let head = to.align_offset(64).min(len);
        let whole = (len - head) / 64 * 64;
        let tail = head + whole;
        // SAFETY: all offsets are below `len`, for which the caller promises; the target of a streaming store is aligned to 64
        // bytes. Such stores are not ordered with others: the fence comes before anything that the caller stores.
        // JUSTIFICATION: between processors that share no cache a copy takes a quarter of the time (see the module).
        unsafe {
            copy_bytes(from, to, head);
            for line in (head..tail).step_by(64) {
                let source: *const __m128i = from.add(line).cast();
                let target: *mut __m128i = to.add(line).cast();
                let words = [0, 1, 2, 3].map(|word| _mm_loadu_si128(source.add(word)));
                for (word, value) in words.into_iter().enumerate() {
                    _mm_stream_si128(target.add(word), value);
                }
            }
            _mm_sfence();
            copy_bytes(from.add(tail), to.add(tail), len - tail);
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod way {
    pub(super) const CAN_STREAM: bool = false;

    pub(super) fn ticks() -> u64 {
        0
    }

    /// # Safety
    /// As [`copy_bytes`](super::copy_bytes).
    pub(super) unsafe fn stream(from: *const u8, to: *mut u8, len: usize) {
        // SAFETY: as the caller promises.
        unsafe { super::copy_bytes(from, to, len) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte, and none beside them, by trials and after either outcome.
    #[test]
    fn copies_are_whole() {
        const ROOM: usize = 3 * LEAST;
        let source: Vec<u8> = (0..ROOM).map(|index| (index % 251) as u8).collect();
        for stream in [false, true] {
            let writes = SharedWrites::new();
            for turn in 0..3 * TRIALS as usize {
                if turn == TRIALS as usize {
                    writes.stream.store(stream, Relaxed);
                }
                let (from, at, len) = (turn % 7, 1 + turn * 5 % 67, LEAST - 3 + turn * 13);
                let mut target = vec![255; ROOM];
                // SAFETY: both vectors are longer than offset and length together.
                unsafe { writes.copy(source[from..].as_ptr(), target[at..].as_mut_ptr(), len) };
                assert_eq!(target[at..at + len], source[from..from + len]);
                let beside = target[..at].iter().chain(&target[at + len..]);
                assert!(beside.into_iter().all(|byte| *byte == 255));
            }
        }
    }

    /// The count goes by long copies, and what a trial finds stands up to the next.
    #[test]
    fn trials_come_now_and_then() {
        let writes = SharedWrites::new();
        let (source, mut target) = (vec![1; LEAST], vec![0; LEAST]);
        let mut copy = |len| {
            // SAFETY: both vectors have so many bytes.
            unsafe { writes.copy(source.as_ptr(), target.as_mut_ptr(), len) }
        };
        copy(LEAST - 1);
        assert_eq!(writes.count.load(Relaxed), 0);
        (0..TRIALS).for_each(|_| copy(LEAST));
        let found = writes.stream.load(Relaxed);
        writes.plain.store(u64::MAX - 1, Relaxed);
        (TRIALS..PERIOD).for_each(|_| copy(LEAST));
        assert_eq!(writes.stream.load(Relaxed), found);
        assert_eq!(writes.plain.load(Relaxed), u64::MAX - 1);
        copy(LEAST);
        assert_ne!(writes.plain.load(Relaxed), u64::MAX - 1);
    }
}
