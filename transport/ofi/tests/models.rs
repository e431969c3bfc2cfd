//! The order in which memory changes, its event is read and a look-up asks, in all interleavings: the table of watched ranges with loom's
//! atomics, and a kernel of a few words. No look-up takes a registration of pages of before for one of those that are there.

#![allow(dead_code, reason = "a model needs a part of the table")]

use std::ops::Range;
use std::sync::Arc;

use loom::model::Builder;
use loom::thread;

use ranges::{Change, Ranges};
use sync::{AtomicUsize, Ordering, fence};

#[path = "../src/registrations/ranges.rs"]
mod ranges;

mod sync {
    pub(super) use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
    pub(super) use loom::thread::yield_now;

    pub(super) const DISCARDED: usize = 1;
    pub(super) const LOOKS: usize = 1;
}

const RANGE: Range<usize> = 0..10;

/// What the kernel has of one range.
struct Kernel {
    /// Changes whose event was not read.
    changing: AtomicUsize,
    queued: AtomicUsize,
    was_read: AtomicUsize,
    /// Which pages are there: 1, and 2 after the change.
    pages: AtomicUsize,
    ranges: Ranges,
}

impl Kernel {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            changing: AtomicUsize::new(0),
            queued: AtomicUsize::new(0),
            was_read: AtomicUsize::new(0),
            pages: AtomicUsize::new(1),
            ranges: Ranges::new(1),
        })
    }

    /// Counts a change, and has its event read.
    fn begin(&self) {
        self.changing.fetch_add(1, Ordering::Relaxed);
        self.queued.store(1, Ordering::Release);
    }

    fn read(&self, change: Change) {
        while self.queued.load(Ordering::Acquire) == 0 {
            thread::yield_now();
        }
        self.ranges.take(|each| {
            self.was_read.store(1, Ordering::Release);
            self.changing.fetch_sub(1, Ordering::Relaxed);
            each(change);
        });
    }

    fn is_same(&self) -> bool {
        let look = || {
            let is_quiet = self.changing.load(Ordering::Relaxed) == 0;
            fence(Ordering::SeqCst);
            is_quiet.then(|| self.ranges.is_whole(0))
        };
        self.ranges.settled(look) == Some(true)
    }
}

/// Runs `before`, then `owner` beside a thread that makes a change, and one that reads it.
fn check(change: Change, make: fn(&Kernel), before: fn(&Kernel), owner: fn(&Kernel)) {
    let mut builder = Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(move || {
        let kernel = Kernel::new();
        before(&kernel);
        let (making, reading, change) = (Arc::clone(&kernel), Arc::clone(&kernel), change.clone());
        let making = thread::spawn(move || make(&making));
        let reading = thread::spawn(move || reading.read(change));
        owner(&kernel);
        making.join().expect("the change is made");
        reading.join().expect("its event is read");
    });
}

/// Pages are unmapped and others are there before the event is: whoever has seen those finds nothing of before.
#[test]
fn pages_that_took_the_place_of_others_are_known() {
    let make = |kernel: &Kernel| {
        kernel.changing.fetch_add(1, Ordering::Relaxed);
        kernel.pages.store(2, Ordering::Release);
        kernel.queued.store(1, Ordering::Release);
    };
    let before = |kernel: &Kernel| kernel.ranges.enter(0, &RANGE);
    check(Change::Unmapped(RANGE), make, before, |kernel| {
        let (registered, seen) = (1, kernel.pages.load(Ordering::Acquire));
        assert!(!kernel.is_same() || registered == seen);
    });
}

/// Pages go after their event was read: what was registered in between is not taken for what is there then.
#[test]
fn pages_that_are_discarded_are_not_kept() {
    let make = |kernel: &Kernel| {
        kernel.begin();
        while kernel.was_read.load(Ordering::Acquire) == 0 {
            thread::yield_now();
        }
        kernel.pages.store(2, Ordering::Release);
    };
    check(
        Change::Discarded(RANGE),
        make,
        |_| {},
        |kernel| {
            kernel.ranges.enter(0, &RANGE);
            if kernel.ranges.is_discarded(&RANGE) {
                return;
            }
            let registered = kernel.pages.load(Ordering::Acquire);
            let seen = kernel.pages.load(Ordering::Acquire);
            assert!(!kernel.is_same() || registered == seen);
        },
    );
}
