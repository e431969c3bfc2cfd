//! Copies into memory that another processor reads next, and has read before.
//!
//! A plain store first takes its line over from the processor that read it. Where both share a cache that is quick; where they do
//! not it is what the copy waits for, and stores that go past the caches take a quarter of the time (docs/performance.md, what was
//! tried). What a writer gains so its readers may lose, who find nothing in a cache. Which is more shows in the time that copies
//! and waits take together, and changes where the system moves a process: now and then both are tried.
#![allow(unsafe_code)]

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

use tagwire_base::ticks::ticks;

use crate::data::copy_bytes;

/// Of so many copies the first [`TRIALS`] are tried.
const PERIOD: u32 = 4096;
/// So many are made one way, then as many the other, twice.
const BLOCK: u32 = 24;
const TRIALS: u32 = 4 * BLOCK;
/// Of a block so many are not timed: readers still have what was written before it.
const SETTLING: u32 = 8;

/// A period is shorter by fewer copies than this.
const JITTER: u32 = 1024;

/// Whether a time is less than another one by more than a sixteenth: what is as fast is not changed for.
const fn is_less(time: u64, other: u64) -> bool {
    time < other - other / 16
}

/// How copies of one writer are made.
#[derive(Debug)]
pub(crate) struct SharedWrites {
    /// Shorter copies are plain: their reader waits for memory where the caches have been passed by.
    least: usize,
    /// Long copies in the period.
    count: AtomicU32,
    /// Copies go past the caches.
    stream: AtomicBool,
    /// When the timed part of a block began, and its bytes so far.
    since: AtomicU64,
    bytes: AtomicU64,
    /// The best time of each way in the trial under way, in ticks for a KiB: plain, past the caches.
    best: [AtomicU64; 2],
}

impl SharedWrites {
    /// Returns what decides about copies of `least` bytes and more.
    pub(crate) const fn new(least: usize) -> Self {
        Self {
            least,
            count: AtomicU32::new(0),
            stream: AtomicBool::new(false),
            since: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            best: [const { AtomicU64::new(u64::MAX) }; 2],
        }
    }

    /// Copies `len` bytes. All of them are visible to whoever sees a later store with `Release`.
    ///
    /// # Safety
    /// `from` is readable and `to` writable for `len` bytes, and they do not overlap.
    #[inline]
    pub(crate) unsafe fn copy(&self, from: *const u8, to: *mut u8, len: usize) {
        let streams = len >= self.least && way::CAN_STREAM && self.streams(len, ticks);
        match streams {
            // SAFETY: as the caller promises.
            true => unsafe { way::stream(from, to, len) },
            // SAFETY: as the caller promises.
            false => unsafe { copy_bytes(from, to, len) },
        }
    }

    /// Whether another copy like the last, of `len` bytes, will go past the caches.
    #[inline]
    pub(crate) fn will_stream(&self, len: usize) -> bool {
        let turn = self.count.load(Relaxed);
        len >= self.least
            && way::CAN_STREAM
            && match turn > TRIALS {
                true => self.stream.load(Relaxed),
                false => turn / BLOCK % 2 == 1,
            }
    }

    /// Whether the next copy, of `len` bytes, goes past the caches.
    #[inline]
    fn streams(&self, len: usize, ticks: impl FnOnce() -> u64) -> bool {
        // Counts that two threads lose a step of are as good.
        let turn = self.count.load(Relaxed);
        self.count.store((turn + 1) % PERIOD, Relaxed);
        if turn > TRIALS {
            return self.stream.load(Relaxed);
        }
        self.try_out(turn, len as u64, ticks())
    }

    /// The same in a trial. What is timed is the whole of a block, with the waits for those who read: what a writer gains past the
    /// caches its readers may lose.
    #[cold]
    fn try_out(&self, turn: u32, len: u64, now: u64) -> bool {
        let (block, place) = (turn / BLOCK, turn % BLOCK);
        match place {
            0 if turn == 0 => self
                .best
                .iter()
                .for_each(|best| best.store(u64::MAX, Relaxed)),
            0 => {
                let took = now.saturating_sub(self.since.load(Relaxed));
                let bytes = self.bytes.load(Relaxed).max(1);
                let best = &self.best[(block as usize + 1) % 2];
                best.fetch_min(took.saturating_mul(1024) / bytes, Relaxed);
            }
            SETTLING => {
                self.since.store(now, Relaxed);
                self.bytes.store(0, Relaxed);
            }
            _ => {}
        }
        self.bytes.fetch_add(len, Relaxed);
        if turn == TRIALS {
            let [plain, streamed] = self.best.each_ref().map(|best| best.load(Relaxed));
            let stream = match self.stream.load(Relaxed) {
                true => !is_less(plain, streamed),
                false => is_less(streamed, plain),
            };
            self.stream.store(stream, Relaxed);
            // Two ranks that answer each other count alike: where one tried one way whenever the other tried the other, neither would
            // see a difference. So they do not try at the same time again.
            self.count.store(turn + 1 + now as u32 % JITTER, Relaxed);
            return stream;
        }
        block % 2 == 1
    }
}

#[cfg(target_arch = "x86_64")]
mod way {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};

    use super::copy_bytes;

    pub(super) const CAN_STREAM: bool = true;

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

    const LEAST: usize = 4096;

    /// Every byte, and none beside them, by trials and after either outcome.
    #[test]
    fn copies_are_whole() {
        const ROOM: usize = 3 * LEAST;
        let source: Vec<u8> = (0..ROOM).map(|index| (index % 251) as u8).collect();
        for stream in [false, true] {
            let writes = SharedWrites::new(LEAST);
            for turn in 0..2 * TRIALS as usize {
                if turn == TRIALS as usize + 1 {
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

    /// A clock by which copies take so many times 1,024 ticks each way, whatever their length, so that no period is shorter.
    fn period(writes: &SharedWrites, plain: u64, streamed: u64) -> Vec<bool> {
        let mut now = 0;
        let copies = (0..PERIOD).map(|_| {
            let streams = writes.streams(LEAST, || now);
            let took = if streams { streamed } else { plain };
            now += took * u64::from(JITTER);
            streams
        });
        copies.collect()
    }

    /// Each way is tried as often, and what is faster with its waits is taken until the next period, which finds out anew.
    #[test]
    fn the_faster_way_is_taken() {
        let writes = SharedWrites::new(LEAST);
        for (plain, streamed) in [(1200, 800), (800, 1200), (800, 800), (800, 780)] {
            let copies = period(&writes, plain, streamed);
            let (tried, taken) = copies.split_at(TRIALS as usize);
            let streams = tried.iter().filter(|streams| **streams).count();
            assert_eq!(streams, tried.len() / 2);
            let is_faster = is_less(streamed, plain);
            assert!(taken.iter().all(|streams| *streams == is_faster));
        }
    }

    /// What is known stays where the other way is as fast.
    #[test]
    fn a_way_that_is_as_fast_is_not_changed_for() {
        let writes = SharedWrites::new(LEAST);
        for (plain, streamed, streams) in [
            (1200, 800, true),
            (780, 800, true),
            (800, 1200, false),
            (800, 780, false),
        ] {
            assert_eq!(period(&writes, plain, streamed).last(), Some(&streams));
        }
    }

    /// Ranks whose copies take as long do not go on trying at the same time.
    #[test]
    fn periods_differ() {
        let writes = SharedWrites::new(LEAST);
        let mut now = 0;
        let mut trials = Vec::new();
        for copy in 0..4 * PERIOD {
            if writes.count.load(Relaxed) == 0 {
                trials.push(copy);
            }
            let _ = writes.streams(LEAST, || now);
            now += 1237;
        }
        let lengths: Vec<u32> = trials.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(lengths.len() >= 3 && lengths.iter().all(|length| *length <= PERIOD));
        assert!(lengths.windows(2).any(|pair| pair[0] != pair[1]));
    }

    /// A pause in one block of each way, as where the system runs another, decides nothing.
    #[test]
    fn a_block_may_be_slow() {
        let writes = SharedWrites::new(LEAST);
        let mut now = 0;
        for turn in 0..=TRIALS {
            let streams = writes.streams(LEAST, || now);
            now += if streams { 800 } else { 1200 };
            let (block, place) = (turn / BLOCK, turn % BLOCK);
            if place == SETTLING + 2 && (block == 1 || block == 2) {
                now += 1_000_000;
            }
        }
        assert!(writes.stream.load(Relaxed));
    }
}
