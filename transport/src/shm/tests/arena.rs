//! User memory from the arena.

use std::sync::atomic::Ordering::SeqCst;

use super::*;
use crate::allocation::Allocation;
use crate::cooperative::{CooperativeTransfers, Offer, Ticket};
use crate::data::{RecvBuffer, SendBuffer};
use crate::shm::CrossAttach;
use crate::shm::arena::IN_ARENA;
use crate::shm::segment::Segment;
use crate::transport::Transport;

/// A buffer, in the arena or on the heap.
enum Memory {
    Arena(Allocation),
    Heap(Vec<u8>),
}

impl Memory {
    fn new(member: &mut Member, in_arena: bool, bytes: Vec<u8>) -> Self {
        if !in_arena {
            return Self::Heap(bytes);
        }
        let mut memory = member.shm.allocate(bytes.len()).unwrap();
        memory.bytes_mut().copy_from_slice(&bytes);
        Self::Arena(memory)
    }

    fn bytes(&self) -> &[u8] {
        match self {
            Self::Arena(memory) => memory.bytes(),
            Self::Heap(bytes) => bytes,
        }
    }

    fn send(&self) -> SendBuffer {
        let bytes = self.bytes();
        // SAFETY: tests keep their memory until its operation is over.
        unsafe { SendBuffer::contiguous(bytes.as_ptr(), bytes.len()) }
    }

    fn recv(&mut self) -> RecvBuffer {
        let bytes = match self {
            Self::Arena(memory) => memory.bytes_mut(),
            Self::Heap(bytes) => bytes,
        };
        // SAFETY: as above.
        unsafe { RecvBuffer::contiguous(bytes.as_mut_ptr(), bytes.len()) }
    }
}

/// No way to a buffer but by a mapping.
fn mapped_only() -> ShmOptions {
    ShmOptions {
        cross_attach: CrossAttach::Off,
        arena: 8 << 20,
        ..ShmOptions::default()
    }
}

fn offer(member: &mut Member, to: EndpointId, memory: &Memory) -> Ticket {
    match member.shm.offer(LANE, to, &memory.send(), Token(1)) {
        Offer::Open(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

#[test]
fn whoever_can_map_the_other_copies() {
    for (source_there, target_there) in [(true, false), (false, true), (true, true)] {
        for (a_moves, b_moves) in [(true, false), (false, true), (true, true)] {
            for len in [1, 4096, 65_536, (3 << 20) + 17] {
                let (mut a, mut b, to_b, to_a) = pair(&mapped_only());
                let source = Memory::new(&mut a, source_there, Numbers(7).bytes(len));
                let mut target = Memory::new(&mut b, target_there, vec![0xee; len]);
                let ticket = offer(&mut a, to_b, &source);
                let post = b.shm.claim(LANE, to_a, ticket, &target.recv(), Token(2));
                assert_eq!(post, Post::Posted);
                for _ in 0..40 {
                    if a_moves {
                        a.progress();
                    }
                    if b_moves {
                        b.progress();
                    }
                }
                let moved = a_moves && target_there || b_moves && source_there;
                let same = source.bytes() == target.bytes();
                assert_eq!(moved, same, "{source_there} {target_there} {a_moves} {len}");
                for _ in 0..40 {
                    a.progress();
                    b.progress();
                }
                assert_eq!(source.bytes(), target.bytes());
                let done = Outcome::Done(len as u64);
                assert_eq!(a.log.completions, [(1, done)]);
                assert_eq!(b.log.completions, [(2, done)]);
            }
        }
    }
}

#[test]
fn between_two_heaps_nothing_is_claimed() {
    let (mut a, mut b, to_b, to_a) = pair(&mapped_only());
    let source = Memory::Heap(vec![1; 10_000]);
    let mut target = Memory::Heap(vec![0; 10_000]);
    let ticket = offer(&mut a, to_b, &source);
    let post = b.shm.claim(LANE, to_a, ticket, &target.recv(), Token(2));
    assert_eq!(post, Post::Unsupported);
    a.shm.withdraw(to_b, ticket);
    a.progress();
    assert_eq!(a.log.completions, [(1, Outcome::Withdrawn)]);
}

/// Each rank has the arena that it says; one without goes well with one that has some.
#[test]
fn arenas_may_differ() {
    let job = LocalJob::new(2).unwrap();
    let none = ShmOptions {
        arena: 0,
        ..mapped_only()
    };
    let (mut a, mut b) = (open(&job, 0, &none), open(&job, 1, &mapped_only()));
    let (to_b, to_a) = (connect(&mut a, &b), connect(&mut b, &a));
    assert!(a.shm.allocate(100).is_none());
    assert!(!a.shm.capabilities().contains(Capabilities::ALLOCATION));
    for _ in 0..3 {
        a.progress();
        b.progress();
    }
    let source = Memory::Heap(vec![3; 50_000]);
    let mut target = Memory::new(&mut b, true, vec![0; 50_000]);
    let ticket = offer(&mut a, to_b, &source);
    let post = b.shm.claim(LANE, to_a, ticket, &target.recv(), Token(2));
    assert_eq!(post, Post::Posted);
    for _ in 0..5 {
        a.progress();
    }
    assert_eq!(source.bytes(), target.bytes());
    // The other way nobody could.
    let offered = b.shm.offer(LANE, to_a, &source.send(), Token(3));
    assert_eq!(offered, Offer::Unsupported);
}

/// An arena longer than the file, or shorter, is no arena: what is mapped is what is there.
#[test]
fn an_arena_that_is_not_there_is_refused() {
    let job = LocalJob::new(2).unwrap();
    let (mut a, b) = (open(&job, 0, &mapped_only()), open(&job, 1, &mapped_only()));
    let identity = b.shm.identity;
    for arena in [0, 1 << 16, (8 << 20) + (1 << 16), 1 << 40] {
        let liar = crate::shm::identity::Identity { arena, ..identity };
        let answer = a.shm.connect(Rank::new(1), &liar.to_bytes());
        assert!(answer.is_err(), "{arena}: {answer:?}");
        let number = identity.descriptor;
        assert!(Segment::open_in(identity.pid, number, liar.extent()).is_err());
    }
    let mut words = identity.to_bytes();
    words[63] = 0x80;
    let error = crate::shm::identity::Identity::from_bytes(&words).unwrap_err();
    assert!(error.contains("arena"), "{error}");
}

/// Names that reach outside of an arena of 8 MiB, for a buffer of 10,000 bytes.
const OUTSIDE: [u64; 6] = [
    IN_ARENA | 8 << 20,
    IN_ARENA | ((8 << 20) - 9999),
    IN_ARENA | 1 << 40,
    u64::MAX,
    u64::MAX - 9999,
    u64::MAX - 10_000,
];

#[test]
fn a_source_outside_ends_its_sender() {
    for name in OUTSIDE {
        let (mut a, mut b, to_b, to_a) = pair(&mapped_only());
        let source = Memory::new(&mut a, true, vec![1; 10_000]);
        let mut target = Memory::new(&mut b, true, vec![0xee; 10_000]);
        let ticket = offer(&mut a, to_b, &source);
        let area = a.shm.peers[to_b.index()].outbound.clone().unwrap();
        area.offers[0].made.store(name, SeqCst);
        let post = b.shm.claim(LANE, to_a, ticket, &target.recv(), Token(2));
        assert_eq!(post, Post::Unsupported, "{name:#x}");
        b.progress();
        assert!(
            matches!(&b.log.protocol[..], [(Some(at), reason)] if *at == to_a && reason.contains("arena")),
            "{name:#x}: {:?}",
            b.log.protocol
        );
        assert!(target.bytes().iter().all(|byte| *byte == 0xee));
    }
}

#[test]
fn a_target_outside_ends_its_receiver() {
    for name in OUTSIDE {
        let (mut a, mut b, to_b, to_a) = pair(&mapped_only());
        let source = Memory::new(&mut a, true, vec![1; 10_000]);
        let mut target = Memory::new(&mut b, true, vec![0; 10_000]);
        let ticket = offer(&mut a, to_b, &source);
        let post = b.shm.claim(LANE, to_a, ticket, &target.recv(), Token(2));
        assert_eq!(post, Post::Posted);
        let area = a.shm.peers[to_b.index()].outbound.clone().unwrap();
        area.offers[0].joined.store(name, SeqCst);
        a.progress();
        assert!(
            matches!(&a.log.protocol[..], [(Some(at), reason)] if *at == to_b && reason.contains("arena")),
            "{name:#x}: {:?}",
            a.log.protocol
        );
        // The receiver is told by its own copying that the sender has stopped.
        b.progress();
        a.progress();
        assert_eq!(a.log.completions.len(), 1, "{name:#x}");
    }
}

/// A sender that could not map its receiver's arena says so, and another protocol carries the bytes.
#[test]
fn who_cannot_map_stops_the_transfer() {
    let (mut a, mut b, to_b, to_a) = pair(&mapped_only());
    let source = Memory::Heap(vec![1; 10_000]);
    let mut target = Memory::new(&mut b, true, vec![0; 10_000]);
    let ticket = offer(&mut a, to_b, &source);
    a.shm.peers[to_b.index()].arena = None;
    let post = b.shm.claim(LANE, to_a, ticket, &target.recv(), Token(2));
    assert_eq!(post, Post::Posted);
    for _ in 0..3 {
        a.progress();
        b.progress();
    }
    assert_eq!(a.log.completions, [(1, Outcome::Impossible)]);
    assert_eq!(b.log.completions, [(2, Outcome::Impossible)]);
}

#[test]
fn what_is_freed_is_the_systems_again() {
    let options = ShmOptions {
        arena: 1 << 20,
        ..ShmOptions::default()
    };
    let job = LocalJob::new(1).unwrap();
    let mut a = open(&job, 0, &options);
    assert!(a.shm.allocate(0).is_none());
    assert!(a.shm.allocate((1 << 20) + 1).is_none());
    assert!(a.shm.allocate(usize::MAX).is_none());
    let before = a.shm.memory_in_use().unwrap();
    for _ in 0..3 {
        let mut pieces: Vec<_> = (1..=16)
            .map(|n| a.shm.allocate((64 << 10) - n).unwrap())
            .collect();
        assert!(a.shm.allocate(1).is_none(), "all pages are given out");
        for (number, piece) in pieces.iter_mut().enumerate() {
            assert!(piece.bytes().iter().all(|byte| *byte == 0), "not fresh");
            piece.bytes_mut().fill(number as u8 + 1);
        }
        for (number, piece) in pieces.iter().enumerate() {
            let is_own = |byte: &u8| *byte == number as u8 + 1;
            assert!(piece.bytes().iter().all(is_own), "two share memory");
        }
        assert!(a.shm.memory_in_use().unwrap() >= before + (1 << 20));
        // Every other first, so that what is free is in pieces that join.
        let mut at = 0;
        pieces.retain(|_| {
            at += 1;
            at % 2 == 0
        });
        assert!(a.shm.allocate((64 << 10) + 1).is_none());
        drop(pieces);
        assert_eq!(a.shm.memory_in_use().unwrap(), before);
    }
    let last = a.shm.allocate(1 << 20).unwrap();
    drop(a);
    assert!(last.bytes().iter().all(|byte| *byte == 0));
}

/// Who knows what an allocation is called maps it, as long as it keeps that.
#[test]
fn allocations_are_mapped_by_their_name() {
    let (mut a, mut b, to_b, to_a) = pair(&mapped_only());
    let mut memory = a.shm.allocate(10_000).unwrap();
    memory.bytes_mut()[9_999] = 7;
    let address = memory.as_ptr().as_ptr().addr();
    let boards = a.shm.boards(to_b).unwrap().0;
    assert_eq!(boards.name_of(address + 9_999, usize::MAX / 2), None);
    let heap = [0_u8; 8];
    assert_eq!(boards.name_of(heap.as_ptr().addr(), 8), None);
    let name = boards.name_of(address, 10_000).unwrap();
    let (boards, of) = b.shm.boards(to_a).unwrap();
    let mapped = boards.allocations(of).unwrap();
    drop(b);
    assert!(mapped.at(name, usize::MAX / 2).is_none());
    assert!(
        mapped.at(address as u64, 8).is_none(),
        "an address is no name"
    );
    let there = mapped.at(name, 10_000).unwrap();
    // SAFETY: so many bytes are mapped, and nobody writes them meanwhile.
    assert_eq!(unsafe { there.add(9_999).read_volatile() }, 7);
}
