//! Messages: order, contents, bounds, contact, memory.

use super::*;
use crate::shm::layout::{AREA, CONTROL_SLOTS, MAX_SEND, SLOTS};
use crate::transport::Transport;

#[test]
fn contents_survive_the_wrap_of_both_rings() {
    let (mut a, mut b, to_b, _) = pair(&ShmOptions::default());
    let (mut sizes, mut expected) = (Numbers(7), VecDeque::new());
    let mut sent = 0;
    while sent < 5000 {
        let bound = [41, 300, MAX_SEND as u64 + 1][sizes.below(3) as usize];
        let len = sizes.below(bound) as usize;
        let data = sizes.bytes(len);
        match a.send(to_b, Class::Data, sent, &data) {
            Post::Posted => {
                expected.push_back((sent, data));
                sent += 1;
            }
            Post::Busy => assert!(b.progress() > 0, "busy although everything is taken"),
            other => panic!("{other:?}"),
        }
    }
    while b.progress() > 0 {}
    assert_eq!(b.log.messages.len(), expected.len());
    for ((_, number, data), (sent, bytes)) in b.log.messages.iter().zip(&expected) {
        assert_eq!((number, data == bytes), (sent, true), "message {sent}");
    }
}

#[test]
fn control_has_slots_that_data_leaves() {
    let (mut a, mut b, to_b, _) = pair(&ShmOptions::default());
    let mut count = |class| {
        let mut count = 0;
        while a.send(to_b, class, count, b"x") == Post::Posted {
            count += 1;
        }
        count as usize
    };
    assert_eq!(count(Class::Data), SLOTS - CONTROL_SLOTS);
    assert_eq!(count(Class::Control), CONTROL_SLOTS);
    assert_eq!(count(Class::Data), 0);
    while b.progress() > 0 {}
    assert_eq!(b.log.messages.len(), SLOTS);
    assert!(count(Class::Data) >= SLOTS / 2);
}

#[test]
fn progress_is_bounded_and_fair() {
    let job = LocalJob::new(3).unwrap();
    let mut ranks: Vec<_> = (0..3)
        .map(|rank| open(&job, rank, &ShmOptions::default()))
        .collect();
    let mut target = ranks.remove(0);
    for rank in &mut ranks {
        let endpoint = connect(rank, &target);
        for number in 0..200 {
            let post = rank.send(endpoint, Class::Data, number, &[]);
            assert_eq!(post, Post::Posted);
        }
    }
    target.progress();
    let before = target.log.messages.len();
    target.progress();
    let by_rank = |endpoint| {
        let mine = |message: &&(EndpointId, _, _)| message.0 == EndpointId(endpoint);
        target.log.messages.iter().filter(mine).count()
    };
    assert_eq!(target.log.messages.len() - before, 128);
    assert_eq!((by_rank(0), by_rank(1)), (64, 64));
}

#[test]
fn everybody_can_contact_everybody_at_once() {
    const RANKS: u32 = 8;
    let job = LocalJob::new(RANKS).unwrap();
    let members: Vec<_> = (0..RANKS)
        .map(|rank| open(&job, rank, &ShmOptions::default()))
        .collect();
    let addresses: Vec<_> = members.iter().map(|member| member.shm.address()).collect();
    let threads: Vec<_> = members
        .into_iter()
        .map(|mut member| {
            let addresses = addresses.clone();
            std::thread::spawn(move || {
                let own = u64::from(member.shm.identity.rank);
                for (rank, address) in addresses.iter().enumerate() {
                    let rank = Rank::new(rank as u32);
                    let to = member.shm.connect(rank, address).unwrap();
                    for number in 0..100 {
                        while member.send(to, Class::Data, own << 32 | number, &[9; 50])
                            == Post::Busy
                        {
                            member.progress();
                            std::thread::yield_now();
                        }
                    }
                }
                while member.log.messages.len() < 100 * RANKS as usize {
                    member.progress();
                    std::thread::yield_now();
                }
                member
            })
        })
        .collect();
    let members: Vec<_> = threads.into_iter().map(|t| t.join().unwrap()).collect();
    for member in &members {
        assert!(member.log.protocol.is_empty(), "{:?}", member.log.protocol);
        assert_eq!(member.log.ups.len(), RANKS as usize);
        let mut next = [0; RANKS as usize];
        for (from, number, data) in &member.log.messages {
            let rank = member.shm.peers[from.index()].rank.index();
            assert_eq!((number >> 32) as usize, rank);
            assert_eq!(number & 0xffff_ffff, next[rank]);
            assert_eq!(data, &[9; 50]);
            next[rank] += 1;
        }
    }
}

#[test]
fn a_rank_can_be_answered_without_its_address() {
    let job = LocalJob::new(2).unwrap();
    let options = ShmOptions::default();
    let (mut a, mut b) = (open(&job, 0, &options), open(&job, 1, &options));
    let to_a = connect(&mut b, &a);
    assert_eq!(b.send(to_a, Class::Data, 1, b"question"), Post::Posted);
    assert_eq!(a.progress(), 1, "contact");
    assert_eq!(a.progress(), 1, "the message");
    let from = a.log.messages[0].0;
    assert_eq!(a.send(from, Class::Data, 2, b"answer"), Post::Posted);
    b.progress();
    b.progress();
    assert_eq!(b.log.messages[0], (to_a, 2, b"answer".to_vec()));
}

/// A peer that we have connected to makes its own contact, speaks and closes, all since we looked
/// last: its words come before its goodbye.
#[test]
fn a_peer_that_came_and_went_is_heard() {
    let job = LocalJob::new(2).unwrap();
    let options = ShmOptions::default();
    let (mut a, mut b) = (open(&job, 0, &options), open(&job, 1, &options));
    let to_a = connect(&mut b, &a);
    let to_b = connect(&mut a, &b);
    assert_eq!(a.send(to_b, Class::Data, 1, b"last words"), Post::Posted);
    a.leave();
    b.look_after_peers();
    assert_eq!(b.log.messages, [(to_a, 1, b"last words".to_vec())]);
}

#[test]
fn silent_peers_cost_nothing() {
    let job = LocalJob::new(1000).unwrap();
    let options = ShmOptions::default();
    let mut target = open(&job, 0, &options);
    let page = rustix::param::page_size() as u64;
    assert!(target.shm.memory_in_use().unwrap() <= page);
    for rank in [1, 999] {
        let mut peer = open(&job, rank, &options);
        let to = connect(&mut peer, &target);
        let mut numbers = Numbers(3);
        for number in 0..2000 {
            let data = numbers.bytes(number as usize % 1000);
            while peer.send(to, Class::Data, number, &data) == Post::Busy {
                target.progress();
            }
        }
        while target.progress() > 0 {}
        // It is not driven any more, but still there.
        std::mem::forget(peer);
    }
    assert_eq!(target.log.messages.len(), 4000);
    let used = target.shm.memory_in_use().unwrap();
    assert!(used <= 2 * AREA as u64 + page, "{used} bytes");
    assert!(used > AREA as u64, "{used} bytes");
}

#[test]
fn the_credits_wrap_around() {
    // 2^32 messages take too long: the counters start shortly before, at whatever place of the ring, and at the first stamp that is 0.
    for before in [1, 2, 255, 256, 1000, 70_001] {
        let options = ShmOptions {
            first_slot: 0_u32.wrapping_sub(before),
            ..ShmOptions::default()
        };
        let (mut a, mut b, to_b, to_a) = pair(&options);
        let mut sent = 0;
        for number in 0..5000 {
            // Some of each length that a ring has a way for, until it is full, and less than credits are given for.
            let data = vec![number as u8; [8, 100, 4000][number as usize % 3]];
            while a.send(to_b, Class::Data, number, &data) == Post::Posted {
                sent += 1;
                if sent % 17 == 0 {
                    break;
                }
            }
            b.progress();
            a.look_after_peers();
            b.look_after_peers();
        }
        while b.progress() > 0 {}
        assert_eq!(b.log.messages.len(), sent, "{before} before the wrap");
        assert!(b.log.messages.iter().all(|(from, ..)| *from == to_a));
        assert!(
            b.log
                .messages
                .iter()
                .is_sorted_by_key(|(_, number, _)| *number)
        );
        assert!(b.log.protocol.is_empty(), "{:?}", b.log.protocol);
        assert!(a.log.protocol.is_empty(), "{:?}", a.log.protocol);
    }
}

#[test]
fn who_sleeps_for_room_is_woken_by_credits() {
    let (mut a, mut b, to_b, _) = pair(&ShmOptions::default());
    let patience = std::time::Duration::from_secs(60);
    let waiter = a.shm.waiter();
    while a.send(to_b, Class::Data, 0, b"") == Post::Posted {}
    let (armed, is_armed) = std::sync::mpsc::channel();
    let start = std::time::Instant::now();
    let sleeper = std::thread::spawn(move || {
        let key = waiter.arm();
        armed.send(()).unwrap();
        if a.send(to_b, Class::Data, 0, b"") == Post::Busy {
            waiter.sleep(key, patience);
        } else {
            waiter.disarm();
        }
        assert_eq!(a.send(to_b, Class::Data, 0, b""), Post::Posted);
    });
    is_armed.recv().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    while b.progress() > 0 {}
    sleeper.join().unwrap();
    assert!(start.elapsed() < patience / 2, "nobody woke it");
}

/// By that a thread which the kernel wakes on the CPU of its waker knows to go back (`slept_on`).
#[test]
fn who_wakes_says_on_which_cpu() {
    use std::sync::atomic::Ordering;

    use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

    let (a, ..) = pair(&ShmOptions::default());
    let (waiter, line) = (a.shm.waiter(), &a.shm.header.sleeping);
    assert_eq!(line.woken_on.load(Ordering::Relaxed), 0);
    let allowed = sched_getaffinity(None).unwrap();
    for cpu in (0..CpuSet::MAX_CPU as u32).filter(|cpu| allowed.is_set(*cpu as usize)) {
        tagwire_base::topology::bind_to(cpu).unwrap();
        let key = waiter.arm();
        waiter.wake();
        let said = line.woken_on.load(Ordering::Relaxed);
        assert_eq!(said, cpu + 1);
        // It has been woken before it sleeps.
        waiter.sleep(key, std::time::Duration::from_secs(60));
    }
    sched_setaffinity(None, &allowed).unwrap();
}
