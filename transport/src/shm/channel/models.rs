//! Models for loom: every interleaving of two ends that take a block, and of one that closes.
#![allow(unsafe_code, clippy::unwrap_used)]

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use loom::thread;

use super::claims;

/// Both ends of a channel take the same block: one of them copies, and what was shown before is seen.
#[test]
fn loom_a_block_is_copied_by_one_end() {
    loom::model(|| {
        let shared = Arc::new((AtomicU64::new(0), UnsafeCell::new(0u64), AtomicU32::new(0)));
        let copy = |side, shared: &(AtomicU64, UnsafeCell<u64>, AtomicU32)| {
            if claims::take(&shared.0, 1, side) {
                // SAFETY: whoever took the block has its bytes to itself; loom checks it.
                assert_eq!(shared.1.with(|cell| unsafe { *cell }), 7);
                shared.2.fetch_add(1, Ordering::Relaxed);
                claims::finish(&shared.0, 1);
            }
        };
        let theirs = Arc::clone(&shared);
        let receiver = thread::spawn(move || {
            copy(claims::Side::Receiver, &theirs);
            claims::is_done(&theirs.0, 1)
        });
        // SAFETY: nothing is shown yet; loom checks it.
        shared.1.with_mut(|cell| unsafe { *cell = 7 });
        claims::show(&shared.0, 1);
        copy(claims::Side::Sender, &shared);
        let _ = receiver.join().unwrap();
        assert_eq!(shared.2.load(Ordering::Relaxed), 1);
        assert!(claims::is_done(&shared.0, 1));
    });
}

/// One end closes while the other takes a block: either the one that takes sees that, or the one that
/// closes sees the block taken.
#[test]
fn loom_an_end_that_closes_sees_who_copies() {
    loom::model(|| {
        let shared = Arc::new((AtomicU64::new(0), AtomicU64::new(1)));
        claims::show(&shared.0, 1);
        let theirs = Arc::clone(&shared);
        let other = thread::spawn(move || {
            let taken = claims::take(&theirs.0, 1, claims::Side::Sender);
            fence(Ordering::SeqCst);
            taken && theirs.1.load(Ordering::SeqCst) == 1
        });
        shared.1.store(u64::MAX, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let seen = claims::is_taken(&shared.0, claims::Side::Sender);
        let copies = other.join().unwrap();
        assert!(!copies || seen, "it copies, and nobody knows");
    });
}
