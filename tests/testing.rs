//! Jobs inside of a test.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Duration;

use tagwire::testing::{self, Job};
use tagwire::{ANY_SOURCE, Sum};

/// Ranks are others than in a job of one: their messages go to each other.
#[test]
fn ranks_of_a_job_exchange_messages() {
    for layer in ["ob1", "cm"] {
        let ranks = Job::new(4).setting("pml", layer).run(|session| {
            let (world, me, size) = (session.world(), session.rank(), session.size());
            let (left, right) = ((me + size - 1) % size, (me + 1) % size);
            // Of one packet, and by rendezvous.
            for count in [1, 100_000] {
                let (own, mut got) = (vec![me; count], vec![0; count]);
                session
                    .try_scope(|scope| {
                        world.irecv(scope, &mut got, left, 1)?;
                        world.isend(scope, &own, right, 1)?;
                        Ok(())
                    })
                    .unwrap();
                assert_eq!(got, vec![left; count]);
            }
            let mut sum = [u64::from(me)];
            world.allreduce(&mut sum, Sum).unwrap();
            (me, sum[0])
        });
        assert_eq!(ranks, [(0, 6), (1, 6), (2, 6), (3, 6)]);
    }
}

#[test]
fn a_job_may_have_one_rank_and_many_may_run_at_once() {
    assert_eq!(testing::job(1, |session| session.size()), [1]);
    std::thread::scope(|scope| {
        for size in [2, 3, 2, 3] {
            scope.spawn(move || {
                let ends = testing::job(size, |session| session.world().barrier().is_ok());
                assert_eq!(ends, vec![true; size as usize]);
            });
        }
    });
}

/// What the text of a panic was.
fn panic_of(run: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(run)).unwrap_err();
    match panic.downcast_ref::<String>() {
        Some(text) => text.clone(),
        None => (*panic.downcast_ref::<&str>().unwrap()).to_owned(),
    }
}

/// The test fails as the rank did, and the others, which wait for it, end before.
#[test]
fn a_rank_that_panics_fails_the_test_and_for_the_others() {
    let ended_by_error = AtomicU32::new(0);
    let text = panic_of(|| {
        testing::job(3, |session| {
            if session.rank() == 1 {
                panic!("rank 1 has had enough");
            }
            let mut room = [0u8];
            let end = session.world().recv(&mut room, 1, 7);
            assert!(end.is_err());
            ended_by_error.fetch_add(1, SeqCst);
        });
    });
    assert_eq!(text, "rank 1 has had enough");
    assert_eq!(ended_by_error.load(SeqCst), 2);
}

/// Two receives that nobody sends for: both are named, and their waits end.
#[test]
fn ranks_that_wait_for_each_other_are_reported_and_ended() {
    let text = panic_of(|| {
        Job::new(3).timeout(Duration::from_secs(2)).run(|session| {
            if session.rank() < 2 {
                let mut room = [0u8];
                let end = session.world().recv(&mut room, 1 - session.rank(), 7);
                assert!(end.is_err());
            }
        });
    });
    assert!(
        text.contains("the job of 3 ranks has not ended within 2s"),
        "{text}"
    );
    assert!(
        text.contains("rank 0 waits") && text.contains("rank 1 waits"),
        "{text}"
    );
    // The third has ended, or waits for the others to leave.
    assert!(!text.contains("rank 2 makes no call"), "{text}");
}

/// A rank that does something else is told apart from one that waits.
#[test]
fn a_rank_that_makes_no_call_is_named() {
    let (waits, goes_on) = (std::sync::Mutex::new(()), std::sync::Condvar::new());
    let text = panic_of(|| {
        Job::new(2).timeout(Duration::from_secs(3)).run(|session| {
            if session.rank() == 1 {
                drop(goes_on.wait(waits.lock().unwrap()).unwrap());
                return;
            }
            let mut room = [0u8];
            assert!(session.world().recv(&mut room, ANY_SOURCE, 7).is_err());
            drop(waits.lock().unwrap());
            goes_on.notify_all();
        });
    });
    assert!(text.contains("rank 1 makes no call"), "{text}");
}
