//! Copies into memory that another processor reads next, and has read before.
//!
//! A plain store first takes its line over from the processor that read it. Where both share a cache that is quick; where they do
//! not it is what the copy waits for, and stores that go past the caches take a quarter of the time (docs/performance.md, what was
//! tried). What a writer gains so its readers may lose, who find nothing in a cache. Which is more shows in the time that copies
//! and waits take together, and changes where the system moves a process: now and then both are tried ([`trial`]). So is a third way,
//! where its owner has it: to write into memory that this processor has read last, as an answer may (`shm/reuse.rs`).
#![allow(unsafe_code)]

mod stream;
#[cfg(test)]
mod tests;
mod trial;
mod way;

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Mutex, MutexGuard};

use tagwire_base::ticks::ticks;

pub(crate) use self::stream::CAN_STREAM;
use self::stream::stream;
use self::trial::{Step, Trial};
pub(crate) use self::way::{Way, Ways};
use crate::data::copy_bytes;

/// The shortest copies of each class of lengths but the first.
const CLASSES: [usize; 2] = [1024, 4096];

/// The choice for copies of one class.
#[derive(Debug)]
struct Class {
    /// Copies that are still made by the known way before one is looked at.
    left: AtomicU32,
    /// The way of the next copy, and that of one which finds no memory to reuse.
    way: AtomicU32,
    other: AtomicU32,
    trial: Mutex<Trial>,
}

/// How copies of one writer are made.
#[derive(Debug)]
pub(crate) struct SharedWrites {
    /// Shorter copies are plain, and not counted.
    least: usize,
    /// Shorter ones do not go past the caches: their reader waits for memory then.
    streamed: usize,
    classes: [Class; CLASSES.len() + 1],
    /// The class, from 1 on, whose last copy is timed until an answer to it is read; 0 where none is.
    timed: AtomicU32,
}

impl SharedWrites {
    /// Returns what decides how copies of `least` bytes and more are made, among `ways`; those of `streamed` bytes and more may pass the caches by.
    pub(crate) fn new(ways: Ways, least: usize, streamed: usize) -> Self {
        let class = |index: usize| {
            // Those before this one are too short to pass the caches by.
            let has_streams = CLASSES.get(index).is_none_or(|end| *end > streamed);
            let ways = match has_streams {
                true => ways,
                false => ways.without(Way::Stream),
            };
            Class {
                left: AtomicU32::new(0),
                way: AtomicU32::new(ways.first() as u32),
                other: AtomicU32::new(ways.first() as u32),
                trial: Mutex::new(Trial::new(ways)),
            }
        };
        Self {
            least,
            streamed,
            classes: std::array::from_fn(class),
            timed: AtomicU32::new(0),
        }
    }

    /// Copies `len` bytes. All of them are visible to whoever sees a later store with `Release`.
    ///
    /// # Safety
    /// `from` is readable and `to` writable for `len` bytes, and they do not overlap.
    #[inline]
    pub(crate) unsafe fn copy(&self, from: *const u8, to: *mut u8, len: usize) {
        let mut way = Way::Plain;
        if len >= self.least {
            let class = &self.classes[class_of(len)];
            let left = class.left.load(Relaxed);
            if left == 0 {
                // SAFETY: as the caller promises.
                return unsafe { self.copy_tried(from, to, len) };
            }
            // A count that two threads lose a step of is as good.
            class.left.store(left - 1, Relaxed);
            way = Way::of(class.other.load(Relaxed));
        }
        // SAFETY: as the caller promises.
        unsafe { self.copy_by(way, from, to, len) };
    }

    /// The same of a copy that is looked at.
    ///
    /// # Safety
    /// As for [`copy`](Self::copy).
    #[cold]
    unsafe fn copy_tried(&self, from: *const u8, to: *mut u8, len: usize) {
        let step = self.begin(len, ticks(), false);
        let other = Way::of(self.classes[class_of(len)].other.load(Relaxed));
        let way = if step.way == Way::Reuse {
            other
        } else {
            step.way
        };
        let first = len / step.part;
        // SAFETY: as the caller promises; the first bytes are no more than all of them.
        unsafe {
            self.copy_by(way, from, to, first);
            self.copy_by(other, from.add(first), to.add(first), len - first);
        }
    }

    /// # Safety
    /// As for [`copy`](Self::copy).
    #[inline]
    unsafe fn copy_by(&self, way: Way, from: *const u8, to: *mut u8, len: usize) {
        match CAN_STREAM && way == Way::Stream && len >= self.streamed {
            // SAFETY: as the caller promises.
            true => unsafe { stream(from, to, len) },
            // SAFETY: as the caller promises.
            false => unsafe { copy_bytes(from, to, len) },
        }
    }

    /// Returns the way of the next copy, of `len` bytes. It need not be made so.
    #[inline]
    pub(crate) fn next(&self, len: usize) -> Way {
        match len < self.least {
            true => Way::Plain,
            false => Way::of(self.classes[class_of(len)].way.load(Relaxed)),
        }
    }

    /// Counts a copy of `len` bytes into memory that is reused.
    #[inline]
    pub(crate) fn count_reuse(&self, len: usize) {
        if len < self.least {
            return;
        }
        let class = &self.classes[class_of(len)];
        match class.left.load(Relaxed) {
            0 => {
                self.begin(len, ticks(), true);
            }
            left => class.left.store(left - 1, Relaxed),
        }
    }

    /// An answer to the last copy was read.
    #[inline]
    pub(crate) fn note_answer(&self) {
        let timed = self.timed.load(Relaxed);
        if timed != 0 {
            self.close(timed, ticks());
        }
    }

    /// Calls `tell` with the bounds of each class whose copies were timed, its way, and that way's ticks for a KiB.
    pub(crate) fn known(&self, mut tell: impl FnMut(usize, Option<usize>, Way, u64)) {
        for (index, class) in self.classes.iter().enumerate() {
            if let (way, Some(time)) = locked(class).known() {
                let from = index
                    .checked_sub(1)
                    .map_or(self.least, |last| CLASSES[last]);
                tell(from.max(self.least), CLASSES.get(index).copied(), way, time);
            }
        }
    }

    /// Begins a copy that is looked at.
    #[cold]
    fn begin(&self, len: usize, now: u64, is_reused: bool) -> Step {
        let class = &self.classes[class_of(len)];
        let mut trial = locked(class);
        let (step, left) = trial.begin(len, now);
        if is_reused {
            trial.count_reuse();
        }
        class.show(&trial, left);
        let number = 1 + class_of(len) as u32;
        self.timed
            .store(if left.is_none() { number } else { 0 }, Relaxed);
        step
    }

    #[cold]
    fn close(&self, timed: u32, now: u64) {
        self.timed.store(0, Relaxed);
        let class = &self.classes[timed as usize - 1];
        let mut trial = locked(class);
        trial.close(now);
        class.show(&trial, None);
    }
}

impl Class {
    /// Shows what comes next. Where nothing is tried `left` copies are not looked at.
    fn show(&self, trial: &Trial, left: Option<u32>) {
        self.way.store(trial.way() as u32, Relaxed);
        self.other.store(trial.other() as u32, Relaxed);
        self.left.store(left.unwrap_or(0), Relaxed);
    }
}

/// Returns the number of the class that copies of `len` bytes are of.
#[inline]
fn class_of(len: usize) -> usize {
    CLASSES.iter().filter(|from| len >= **from).count()
}

fn locked(class: &Class) -> MutexGuard<'_, Trial> {
    // Nothing panics while it is held but what breaks no choice.
    class
        .trial
        .lock()
        .unwrap_or_else(|poisoned| poisoned.into_inner())
}
