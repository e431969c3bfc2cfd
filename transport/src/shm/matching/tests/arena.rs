//! Receives whose memory is in the arena, where there is no cross-memory attach.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use super::*;
use crate::shm::CrossAttach;
use crate::shm::arena::IN_ARENA;
use crate::transport::Transport;

/// Large messages go by mappings only, in small pieces.
pub(super) fn mapped_only() -> ShmOptions {
    ShmOptions {
        cross_attach: CrossAttach::Off,
        chunk_min: 4096,
        chunk_max: 64 << 10,
        ..ShmOptions::default()
    }
}

/// Two ranks of a job, and the sender's endpoint for the receiver.
fn pair() -> (Member, Member, EndpointId) {
    let job = LocalJob::new(2).unwrap();
    let open = |rank| {
        let bootstrap = &mut job.member(Rank::new(rank));
        Member::over(ShmMatch::open(mapped_only(), bootstrap).unwrap())
    };
    let (receiver, mut sender) = (open(0), open(1));
    let address = receiver.shm.address();
    let to = sender.shm.connect(Rank::new(0), &address).unwrap();
    (receiver, sender, to)
}

/// What the issue asks for: the receiver computes, and finds its message there.
#[test]
fn the_sender_alone_fills_receives_in_the_arena() {
    let (mut receiver, mut sender, to) = pair();
    receiver.in_arena = true;
    let lengths = [2048, 4096, 8192, 8193, 200_000, 4 << 20];
    let memories: Vec<_> = (1..)
        .zip(lengths)
        .map(|(bits, len)| receiver.post(bits, len + 5, bits))
        .collect();
    for (bits, len) in (1..).zip(lengths) {
        assert_ne!(sender.send(to, bits, len), Sent::Gone);
    }
    let start = Instant::now();
    let is_there = |memory: &&[Cell<u8>], bits: u64, len: usize| {
        memory[..len].iter().all(|byte| byte.get() == bits as u8)
    };
    for ((bits, len), memory) in (1..).zip(lengths).zip(&memories) {
        while !is_there(memory, bits, len) {
            assert!(start.elapsed() < PATIENCE, "{len} bytes are not there");
            sender.progress();
        }
        assert!(memory[len..].iter().all(|byte| byte.get() == 0));
    }
    assert!(receiver.log.received.is_empty());
    receiver.until("all ends", |log| log.received.len() == lengths.len());
    for (token, len) in (1..).zip(lengths) {
        let ends = receiver.ends_of(token);
        assert!(
            matches!(ends[..], [ReceiveEnd::Matched(_, Outcome::Done(moved))] if moved == len as u64),
            "{ends:?}"
        );
    }
}

/// The same without: the bytes come through the ring, and not before the receiver looks.
#[test]
fn receives_elsewhere_wait_for_their_receiver() {
    let (mut receiver, mut sender, to) = pair();
    let memory = receiver.post(1, LONG, 1);
    assert_eq!(sender.send(to, 1, LONG), Sent::Open);
    for _ in 0..5000 {
        sender.progress();
    }
    assert!(memory.iter().all(|byte| byte.get() == 0));
    let start = Instant::now();
    while receiver.log.received.is_empty() {
        assert!(start.elapsed() < PATIENCE);
        sender.progress();
        receiver.progress();
    }
    assert!(memory.iter().all(|byte| byte.get() == 1));
}

/// Matching senders copy nothing to where a receive's name reaches outside of the arena: the receiver, who
/// knows its buffer, gets the bytes by its own calls.
#[test]
fn receives_outside_of_the_arena_are_not_written() {
    let len = ShmOptions::default().arena as u64;
    for name in [
        IN_ARENA | len,
        IN_ARENA | (len - 100),
        u64::MAX,
        u64::MAX - 8192,
        1,
    ] {
        let (mut receiver, mut sender, to) = pair();
        receiver.in_arena = true;
        let memories = [(1, 5000), (2, 100_000)].map(|(bits, len)| {
            let memory = receiver.post(bits, len, bits);
            (bits, len, memory)
        });
        for index in 0..64 {
            if let Some(shared) = receiver.shm.state.receiver.list.table.map.receive(index)
                && shared.address.load(Relaxed) != 0
            {
                shared.address.store(name, SeqCst);
            }
        }
        for (bits, len, _) in memories {
            assert_ne!(sender.send(to, bits, len), Sent::Gone);
        }
        for _ in 0..2000 {
            sender.progress();
        }
        let start = Instant::now();
        while receiver.log.received.len() < 2 {
            assert!(start.elapsed() < PATIENCE, "{name:#x}");
            sender.progress();
            receiver.progress();
        }
        for (bits, _, memory) in memories {
            assert!(memory.iter().all(|byte| byte.get() == bits as u8));
        }
        assert!(sender.log.failed.is_empty() && receiver.log.failed.is_empty());
    }
}

/// The child's part: it dies with a piece of a long message copied into the receiver's arena.
pub(super) fn copy_and_die(mut own: Member, to: EndpointId) -> ! {
    assert_eq!(own.send(to, 4, LONG), Sent::Open);
    let area = own.shm.shm.outbound_area(to).unwrap().clone();
    let start = Instant::now();
    loop {
        own.progress();
        let moved = |line: &crate::shm::layout::DescriptorLine| line.finished.load(Relaxed) != 0;
        if area.offers.iter().any(moved) {
            die();
        }
        assert!(start.elapsed() < PATIENCE);
    }
}

#[test]
fn a_sender_dies_while_it_copies_into_the_arena() {
    let mut memory = None;
    let (mut parent, mut child) = with_child("copy", Copying::Arena, |parent| {
        memory = Some(parent.post(4, LONG, 104));
        parent.post(99, 8, 199);
    });
    assert!(!child.wait().unwrap().success());
    parent.until("the failure", |log| !log.failed.is_empty());
    parent.until("the end of the receive", |log| !log.received.is_empty());
    let ends = parent.ends_of(104);
    assert!(
        matches!(ends[..], [ReceiveEnd::Matched(_, Outcome::PeerFailed)]),
        "{ends:?}"
    );
    let memory = memory.unwrap();
    let count = memory.iter().filter(|byte| byte.get() == 4).count();
    assert!((1..LONG).contains(&count), "{count} bytes were copied");
    let address = parent.shm.address();
    let own = parent.shm.connect(Rank::new(0), &address).unwrap();
    assert_eq!(parent.send(own, 99, 8), Sent::Done);
    parent.until("a message to oneself", |log| {
        log.received.iter().any(|(token, _)| *token == 199)
    });
}
