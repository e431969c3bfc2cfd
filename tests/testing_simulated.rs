//! Jobs inside of tests, on a simulated network.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::panic::catch_unwind;
use std::time::Duration;

use tagwire::testing::Job;
use tagwire::{ANY_SOURCE, ANY_TAG, Session, Sum};

const MS: fn(u64) -> Duration = Duration::from_millis;

/// Returns from whom the messages of all others come to rank 0, and with what tags.
fn heard(job: Job) -> Vec<(u32, i32)> {
    let all = job.run(|session: &Session| {
        let (world, me) = (session.world(), session.rank());
        if me > 0 {
            for tag in 0..20 {
                let len = 1 + 700 * tag as usize;
                world.send(&vec![tag as u8; len], 0, tag).unwrap();
            }
            return Vec::new();
        }
        let mut room = vec![0_u8; 1 << 14];
        let count = 20 * (session.size() - 1);
        let receive = |_| {
            let status = world.recv(&mut room, ANY_SOURCE, ANY_TAG).unwrap();
            let (len, tag) = (1 + 700 * status.tag() as usize, status.tag());
            assert_eq!(status.bytes(), len);
            assert!(room[..len].iter().all(|byte| *byte == tag as u8));
            (status.source(), tag)
        };
        (0..count).map(receive).collect()
    });
    all.into_iter().next().unwrap()
}

/// Each message once, those of each rank in their order.
fn are_all(heard: &[(u32, i32)], size: u32) {
    for rank in 1..size {
        let of_rank = heard.iter().filter(|(from, _)| *from == rank);
        let tags: Vec<_> = of_rank.map(|(_, tag)| *tag).collect();
        assert_eq!(tags, Vec::from_iter(0..20), "of rank {rank}");
    }
}

#[test]
fn a_seed_says_who_comes_first() {
    let job = |seed| heard(Job::new(4).simulated(seed).delay(Duration::from_micros(40)));
    let first = job(0);
    assert_eq!(first, job(0));
    let others: Vec<_> = (1..6).map(job).collect();
    assert!(others.iter().any(|other| *other != first));
    others.iter().for_each(|heard| are_all(heard, 4));
}

#[test]
fn messages_that_overtake_each_other_are_put_in_order() {
    for seed in 0..5 {
        let job = Job::new(3).simulated(seed);
        let job = job.delay(Duration::from_micros(100)).reorder();
        are_all(&heard(job.clone()), 3);
        // Data reliability is above the network as it is elsewhere.
        are_all(&heard(job.setting("pml", "dr")), 3);
    }
}

#[test]
fn collectives_come_to_the_same() {
    for seed in 0..5 {
        let job = Job::new(4).simulated(seed).delay(Duration::from_micros(20));
        let sums = job.run(|session| {
            let world = session.world();
            let mut numbers = vec![u64::from(session.rank()); 5000];
            world.allreduce(&mut numbers, Sum).unwrap();
            let group = world.duplicate().unwrap();
            group.barrier().unwrap();
            numbers[4999]
        });
        assert_eq!(sums, [6; 4]);
    }
}

#[test]
fn the_dead_say_nothing_and_the_others_hear_of_it() {
    for seed in 0..8 {
        let at = Duration::from_micros(100 + seed);
        let rounds = Job::new(4).simulated(seed).kill(2, at).run(|session| {
            let world = session.world();
            for round in 0_u64.. {
                let mut sum = [1_u64];
                if let Err(error) = world.allreduce(&mut sum, Sum) {
                    return (session.rank(), round, error.to_string());
                }
                assert_eq!(sum, [4]);
            }
            unreachable!()
        });
        let ranks: Vec<_> = rounds.iter().map(|(rank, ..)| *rank).collect();
        assert_eq!(ranks, [0, 1, 3], "the killed one returns nothing");
        assert!(rounds.iter().any(|(_, round, _)| *round > 0), "{rounds:?}");
        // Others may hear first that one who has heard of it leaves.
        let named = |(.., error): &(u32, u64, String)| error.contains("rank 2 failed");
        assert!(rounds.iter().any(named), "{rounds:?}");
    }
}

/// What a rank waits for ends with its own death, be it of itself.
#[test]
fn the_dead_wait_for_nobody() {
    let ranks = Job::new(2)
        .simulated(0)
        .kill(1, MS(1))
        .timeout(MS(30_000))
        .run(|session| {
            let mut byte = [0_u8];
            let end = session.world().recv(&mut byte, 1, 0);
            assert!(end.is_err());
            session.rank()
        });
    assert_eq!(ranks, [0]);
}

/// A wait of ten minutes is one of virtual time.
#[test]
fn time_is_virtual() {
    let waited = Job::new(2).simulated(1).timeout(MS(30_000)).run(|session| {
        let world = session.world();
        let mut byte = [0_u8];
        if session.rank() == 1 {
            world.recv(&mut byte, 0, 2).unwrap();
            world.send(&[7_u8], 0, 1).unwrap();
            return 0;
        }
        let receive = world.irecv_owned(vec![0_u8], 1, 1).unwrap();
        let Err(open) = receive.wait_for(Duration::from_secs(600)) else {
            panic!("nothing was sent");
        };
        world.send(&byte, 1, 2).unwrap();
        let (_, data) = open.wait().unwrap();
        data[0]
    });
    assert_eq!(waited, [7, 0]);
}

fn panic_of(job: impl FnOnce() + std::panic::UnwindSafe) -> String {
    let panic = catch_unwind(job).unwrap_err();
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap()
}

#[test]
fn who_panics_fails_for_the_others() {
    let text = panic_of(|| {
        Job::new(3).simulated(5).run(|session| {
            if session.rank() == 1 {
                panic!("on purpose");
            }
            let mut byte = [0_u8];
            let error = session.world().recv(&mut byte, 1, 0).unwrap_err();
            assert!(error.to_string().contains("rank 1"), "{error}");
        });
    });
    assert_eq!(text, "on purpose");
}

#[test]
fn ranks_that_wait_for_each_other_are_told_of() {
    let text = panic_of(|| {
        Job::new(2).simulated(3).timeout(MS(500)).run(|session| {
            let mut byte = [0_u8];
            let other = 1 - session.rank();
            session.world().recv(&mut byte, other, 0).unwrap();
        });
    });
    assert!(text.contains("has not ended within 500ms"), "{text}");
    assert!(text.contains("rank 0 waits"), "{text}");
}
