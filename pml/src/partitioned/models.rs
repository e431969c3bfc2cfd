//! Models for loom: every interleaving of ready calls, and of the post queue with the credit.
#![allow(unsafe_code)]

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::thread;
use tagwire_base::sync::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};
use tagwire_base::sync::{AtomicBool, AtomicU32, AtomicU64, fence};

use super::arrivals::{Arrival, Arrivals};
use super::timer::{NEVER, Wake};

/// Two partitions of one group, written by two threads: in each of two epochs exactly one of them is the
/// last, and it sees what both wrote.
#[test]
fn loom_one_of_two_is_the_last_and_sees_all() {
    struct Shared {
        arrivals: Arrivals,
        cells: [UnsafeCell<u64>; 2],
    }
    loom::model(|| {
        let shared = Arc::new(Shared {
            arrivals: Arrivals::new(2, 1, 1),
            cells: [UnsafeCell::new(0), UnsafeCell::new(0)],
        });
        for epoch in 1..=2 {
            let part = move |place: u32, shared: &Shared| {
                shared.cells[place as usize].with_mut(|cell| {
                    // SAFETY: the partition is this thread's until it is ready; loom checks it.
                    unsafe {
                        *cell = epoch;
                    }
                });
                let last = shared.arrivals.arrive(epoch, place, 0, 2) == Arrival::Last;
                if last {
                    for cell in &shared.cells {
                        // SAFETY: all partitions are ready: nobody writes any more.
                        let value = cell.with(|cell| unsafe { *cell });
                        assert_eq!(value, epoch);
                    }
                }
                last
            };
            let theirs = Arc::clone(&shared);
            let other = thread::spawn(move || part(0, &theirs));
            let mine = part(1, &shared);
            assert!(mine != other.join().unwrap(), "one is last");
        }
    });
}

/// A unit cannot be posted until the credit is there. The owner of the lane looks after the credit has
/// come, the other thread once more after it has queued: one of both posts, and only one.
#[test]
fn loom_what_is_queued_is_posted_once() {
    loom::model(|| {
        let shared = Arc::new((
            Arrivals::new(1, 1, 1),
            AtomicBool::new(false),
            AtomicU32::new(0),
        ));
        let flush = |shared: &(Arrivals, AtomicBool, AtomicU32)| {
            let (arrivals, credit, posts) = shared;
            if credit.load(Acquire) && arrivals.dequeue(1, 0) {
                posts.fetch_add(1, Relaxed);
            }
        };
        let theirs = Arc::clone(&shared);
        let other = thread::spawn(move || {
            assert_eq!(theirs.0.arrive(1, 0, 0, 1), Arrival::Last);
            theirs.0.enqueue(1, 0);
            flush(&theirs);
        });
        shared.1.store(true, Release);
        fence(SeqCst);
        if shared.0.are_waiting() {
            flush(&shared);
        }
        other.join().unwrap();
        assert_eq!(shared.2.load(Relaxed), 1, "posted once");
    });
}

/// The first of a group sets its time while the alarm's thread goes to sleep: the thread sleeps no longer
/// than that, or is woken.
#[test]
fn loom_a_time_that_is_set_is_not_slept_through() {
    loom::model(|| {
        let shared = Arc::new((Wake::new(), AtomicU64::new(0), AtomicBool::new(false)));
        // It has slept until an earlier time.
        shared.0.sleep(3);
        let theirs = Arc::clone(&shared);
        let setter = thread::spawn(move || {
            let (wake, due, woken) = &*theirs;
            assert!(due.compare_exchange(0, 5, AcqRel, Relaxed).is_ok());
            if wake.earlier(5) {
                woken.store(true, Release);
            }
        });
        let (wake, due, woken) = &*shared;
        wake.look();
        let seen = due.load(Acquire);
        let until = wake.sleep(if seen == 0 { NEVER } else { seen });
        setter.join().unwrap();
        assert!(until <= 5 || woken.load(Acquire));
    });
}

#[test]
fn loom_ready_twice_is_told_to_one() {
    loom::model(|| {
        let arrivals = Arc::new(Arrivals::new(1, 1, 1));
        let theirs = Arc::clone(&arrivals);
        let other = thread::spawn(move || theirs.arrive(1, 0, 0, 1));
        let mine = arrivals.arrive(1, 0, 0, 1);
        let theirs = other.join().unwrap();
        assert_ne!(mine, theirs);
        assert!([mine, theirs].contains(&Arrival::Twice));
    });
}
