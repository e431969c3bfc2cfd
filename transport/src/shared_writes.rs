//! Copies into memory that another processor reads next, and has read before.
//!
//! A plain store first takes its line over from the processor that read it. Where both share a cache that is quick; where they do
//! not it is what the copy waits for, and stores that go past the caches take a quarter of the time (docs/performance.md, what was
//! tried). What a writer gains so its readers may lose, who find nothing in a cache. Which is more shows in the time that copies
//! and waits take together, and changes where the system moves a process: now and then both are tried. So is a third way, where its owner has it: to write into memory that this
//! processor has read last, as an answer may (`shm/reuse.rs`).
#![allow(unsafe_code)]

use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicU32, AtomicU64};

use tagwire_base::ticks::ticks;

use crate::data::copy_bytes;

/// Of so many copies the first are tried: two blocks for each way.
const PERIOD: u32 = 4096;
/// So many are made one way, then as many the next.
const BLOCK: u32 = 24;
/// Of a block so many are not timed: readers still have what was written before it.
const SETTLING: u32 = 8;

/// A period is shorter by fewer copies than this.
const JITTER: u32 = 1024;

/// Whether a time is less than another one by more than a sixteenth: what is as fast is not changed for.
const fn is_less(time: u64, other: u64) -> bool {
    time < other - other / 16
}

/// How a copy is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// By plain stores.
    Plain,
    /// Past the caches.
    Stream,
    /// By plain stores into memory that this processor has read last, where there is some.
    Reuse,
}

impl Way {
    const ALL: [Self; 3] = [Self::Plain, Self::Stream, Self::Reuse];

    const fn of(number: u32) -> Self {
        Self::ALL[number as usize % 3]
    }
}

/// How copies of one writer are made.
#[derive(Debug)]
pub(crate) struct SharedWrites {
    /// Shorter copies are plain, and not counted.
    least: usize,
    /// Shorter ones do not go past the caches: their reader waits for memory then.
    streamed: usize,
    /// Long copies in the period.
    count: AtomicU32,
    /// How many of [`Way::ALL`] there are, the one that copies go by, and the one of those that find no memory to reuse.
    ways: u32,
    way: AtomicU32,
    other: AtomicU32,
    /// How often memory was reused in the block.
    reused: AtomicU32,
    /// When the timed part of a block began, and its bytes so far.
    since: AtomicU64,
    bytes: AtomicU64,
    /// The best time of each way in the trial under way, in ticks for a KiB.
    best: [AtomicU64; 3],
}

impl SharedWrites {
    /// Returns what decides about copies of `least` bytes and more: plain or past the caches.
    #[cfg(any(test, feature = "coll"))]
    pub(crate) const fn new(least: usize) -> Self {
        Self::with(least, least, 2)
    }

    /// The same, of a writer who may reuse memory, and passes the caches by with copies of `streamed` bytes and more.
    pub(crate) const fn with_reuse(least: usize, streamed: usize) -> Self {
        Self::with(least, streamed, 3)
    }

    const fn with(least: usize, streamed: usize, ways: u32) -> Self {
        Self {
            least,
            streamed,
            count: AtomicU32::new(0),
            ways,
            way: AtomicU32::new(0),
            other: AtomicU32::new(0),
            reused: AtomicU32::new(0),
            since: AtomicU64::new(0),
            bytes: AtomicU64::new(0),
            best: [const { AtomicU64::new(u64::MAX) }; 3],
        }
    }

    /// Copies of a period that are tried.
    const fn trials(&self) -> u32 {
        2 * self.ways * BLOCK
    }

    /// Copies `len` bytes. All of them are visible to whoever sees a later store with `Release`.
    ///
    /// # Safety
    /// `from` is readable and `to` writable for `len` bytes, and they do not overlap.
    #[inline]
    pub(crate) unsafe fn copy(&self, from: *const u8, to: *mut u8, len: usize) {
        let way = match self.count(len) {
            Way::Reuse => Way::of(self.other.load(Relaxed)),
            way => way,
        };
        match way::CAN_STREAM && way == Way::Stream && len >= self.streamed {
            // SAFETY: as the caller promises.
            true => unsafe { way::stream(from, to, len) },
            // SAFETY: as the caller promises.
            false => unsafe { copy_bytes(from, to, len) },
        }
    }

    /// Returns the way of the next copy, of `len` bytes. It need not be made so.
    #[inline]
    pub(crate) fn next(&self, len: usize) -> Way {
        if len < self.least {
            return Way::Plain;
        }
        let turn = self.count.load(Relaxed);
        match turn > self.trials() {
            true => Way::of(self.way.load(Relaxed)),
            false => self.tried(turn),
        }
    }

    /// The way that is tried in this turn.
    const fn tried(&self, turn: u32) -> Way {
        Way::of(turn / BLOCK % self.ways)
    }

    /// Counts a copy of `len` bytes into memory that is reused.
    #[inline]
    pub(crate) fn count_reuse(&self, len: usize) {
        self.reused.store(self.reused.load(Relaxed) + 1, Relaxed);
        self.count(len);
    }

    /// Counts a copy of `len` bytes, which goes by the way that is returned.
    #[inline]
    fn count(&self, len: usize) -> Way {
        match len < self.least {
            true => Way::Plain,
            false => self.choose(len, ticks),
        }
    }

    #[inline]
    fn choose(&self, len: usize, ticks: impl FnOnce() -> u64) -> Way {
        // Counts that two threads lose a step of are as good.
        let turn = self.count.load(Relaxed);
        self.count.store((turn + 1) % PERIOD, Relaxed);
        if turn > self.trials() {
            return Way::of(self.way.load(Relaxed));
        }
        self.try_out(turn, len as u64, ticks())
    }

    /// The same in a trial. What is timed is the whole of a block, with the waits for those who read: what a writer gains past the
    /// caches its readers may lose.
    #[cold]
    fn try_out(&self, turn: u32, len: u64, now: u64) -> Way {
        let (block, place) = (turn / BLOCK, turn % BLOCK);
        match place {
            0 if turn == 0 => self
                .best
                .iter()
                .for_each(|best| best.store(u64::MAX, Relaxed)),
            0 => {
                let took = now.saturating_sub(self.since.load(Relaxed));
                let bytes = self.bytes.load(Relaxed).max(1);
                let before = (block + self.ways - 1) % self.ways;
                let best = &self.best[before as usize];
                // A block that found little to reuse says nothing of it.
                let most = (BLOCK - SETTLING) / 2;
                if Way::of(before) != Way::Reuse || self.reused.load(Relaxed) > most {
                    best.fetch_min(took.saturating_mul(1024) / bytes, Relaxed);
                }
            }
            SETTLING => {
                self.since.store(now, Relaxed);
                self.bytes.store(0, Relaxed);
                self.reused.store(0, Relaxed);
            }
            _ => {}
        }
        self.bytes.fetch_add(len, Relaxed);
        if turn == self.trials() {
            let best = self.best.each_ref().map(|best| best.load(Relaxed));
            // What is as fast is not changed for.
            let choose = |known: u32, ways: u32| {
                let fastest = (0..ways).min_by_key(|way| best[*way as usize]);
                let fastest =
                    fastest.filter(|way| is_less(best[*way as usize], best[known as usize]));
                fastest.unwrap_or(known)
            };
            let other = choose(self.other.load(Relaxed) % 2, 2);
            let known = match Way::of(self.way.load(Relaxed)) {
                Way::Reuse if best[2] != u64::MAX => Way::Reuse as u32,
                _ => other,
            };
            let way = choose(known, self.ways);
            self.other.store(other, Relaxed);
            self.way.store(way, Relaxed);
            // Two ranks that answer each other count alike: where one tried one way whenever the other tried the other, neither would
            // see a difference. So they do not try at the same time again.
            self.count.store(turn + 1 + now as u32 % JITTER, Relaxed);
            return Way::of(way);
        }
        self.tried(turn)
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
            let trials = writes.trials() as usize;
            for turn in 0..2 * trials {
                if turn == trials + 1 {
                    writes.way.store(u32::from(stream), Relaxed);
                    writes.other.store(u32::from(stream), Relaxed);
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

    /// A clock by which copies take so many times 1,024 ticks each way, whatever their length, so that no period is shorter. What is to be reused is
    /// there.
    fn period(writes: &SharedWrites, times: [u64; 3]) -> Vec<Way> {
        let mut now = 0;
        let copies = (0..PERIOD).map(|_| {
            let next = writes.next(LEAST);
            if next == Way::Reuse {
                writes.reused.fetch_add(1, Relaxed);
            }
            let way = writes.choose(LEAST, || now);
            let is_last = writes.count.load(Relaxed) > writes.trials() && next != way;
            assert!(next == way || is_last, "what comes next is known");
            now += times[way as usize] * u64::from(JITTER);
            way
        });
        copies.collect()
    }

    /// A block in which little was reused says nothing: what is found is what the others take.
    #[test]
    fn few_answers_say_nothing() {
        for (reused, fastest) in [(4, Way::Plain), (9, Way::Reuse)] {
            let writes = SharedWrites::with_reuse(LEAST, LEAST);
            let mut now = 0;
            for turn in 0..PERIOD {
                let way = writes.next(LEAST);
                if way == Way::Reuse
                    && turn % BLOCK > SETTLING
                    && turn % BLOCK < SETTLING + 1 + reused
                {
                    writes.reused.fetch_add(1, Relaxed);
                }
                writes.choose(LEAST, || now);
                now += if way == Way::Reuse { 500 } else { 1000 } * u64::from(JITTER);
            }
            assert_eq!(Way::of(writes.way.load(Relaxed)), fastest);
        }
    }

    /// Copies that are too short for it do not pass the caches by, and are counted.
    #[test]
    fn short_copies_do_not_pass_the_caches_by() {
        let writes = SharedWrites::with_reuse(256, 1024);
        assert_eq!(writes.next(255), Way::Plain);
        writes.count(255);
        assert_eq!(writes.count.load(Relaxed), 0);
        writes.count(256);
        assert_eq!(writes.count.load(Relaxed), 1);
    }

    /// Each way is tried as often, and what is faster with its waits is taken until the next period, which finds out anew.
    #[test]
    fn the_fastest_way_is_taken() {
        let (both, all) = (
            SharedWrites::new(LEAST),
            SharedWrites::with_reuse(LEAST, LEAST),
        );
        for (writes, times, fastest) in [
            (&both, [1200, 800, 1], Way::Stream),
            (&both, [800, 1200, 1], Way::Plain),
            (&both, [800, 800, 1], Way::Plain),
            (&both, [800, 780, 1], Way::Plain),
            (&all, [1200, 800, 1000], Way::Stream),
            (&all, [1200, 1000, 800], Way::Reuse),
            (&all, [1200, 780, 800], Way::Reuse),
            (&all, [800, 1200, 1000], Way::Plain),
        ] {
            let copies = period(writes, times);
            let (tried, taken) = copies.split_at(writes.trials() as usize);
            for way in &Way::ALL[..writes.ways as usize] {
                let count = tried.iter().filter(|tried| *tried == way).count();
                assert_eq!(count, tried.len() / writes.ways as usize);
            }
            assert!(taken.iter().all(|way| *way == fastest), "{times:?}");
        }
    }

    /// Where there is never anything to reuse copies go by the faster one of the other ways, in trials as well.
    #[test]
    fn what_cannot_be_reused_goes_by_another_way() {
        let writes = SharedWrites::with_reuse(LEAST, LEAST);
        for (plain, streamed, other) in [(1200, 800, 1), (800, 1200, 0), (1200, 800, 1)] {
            let mut now = 0;
            for _ in 0..PERIOD {
                now += match writes.choose(LEAST, || now) {
                    Way::Plain => plain,
                    Way::Stream => streamed,
                    // As fast as can be, by chance.
                    Way::Reuse => 1,
                } * u64::from(JITTER);
            }
            assert_eq!(writes.way.load(Relaxed), other);
            assert_eq!(writes.other.load(Relaxed), other);
        }
        // What was reused, and is not any more.
        assert_eq!(period(&writes, [1200, 800, 100]).last(), Some(&Way::Reuse));
        let (mut now, mut last) = (0, Way::Plain);
        for _ in 0..PERIOD {
            last = writes.choose(LEAST, || now);
            now += [1200, 800, 1][last as usize] * u64::from(JITTER);
        }
        assert_eq!(last, Way::Stream);
    }

    /// What is known stays where the other way is as fast.
    #[test]
    fn a_way_that_is_as_fast_is_not_changed_for() {
        let writes = SharedWrites::new(LEAST);
        for (plain, streamed, way) in [
            (1200, 800, Way::Stream),
            (780, 800, Way::Stream),
            (800, 1200, Way::Plain),
            (800, 780, Way::Plain),
        ] {
            assert_eq!(period(&writes, [plain, streamed, 1]).last(), Some(&way));
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
            let _ = writes.choose(LEAST, || now);
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
        for turn in 0..=writes.trials() {
            let streams = writes.choose(LEAST, || now) == Way::Stream;
            now += if streams { 800 } else { 1200 };
            let (block, place) = (turn / BLOCK, turn % BLOCK);
            if place == SETTLING + 2 && (block == 1 || block == 2) {
                now += 1_000_000;
            }
        }
        assert_eq!(writes.next(LEAST), Way::Stream);
    }
}
