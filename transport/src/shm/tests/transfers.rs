//! Cooperative transfers.

use super::*;
use crate::cooperative::{CooperativeTransfers, Offer, Ticket};
use crate::data::{RecvBuffer, SendBuffer};
use crate::shm::CrossAttach;

/// A transfer between two ranks with buffers of their own.
struct Scene {
    a: Member,
    b: Member,
    to_b: EndpointId,
    to_a: EndpointId,
    source: Vec<u8>,
    target: Vec<u8>,
}

impl Scene {
    fn new(source: usize, target: usize) -> Self {
        Self::with(&ShmOptions::default(), source, target)
    }

    fn with(options: &ShmOptions, source: usize, target: usize) -> Self {
        let (a, b, to_b, to_a) = pair(options);
        Self {
            a,
            b,
            to_b,
            to_a,
            source: Numbers(source as u64).bytes(source),
            target: vec![0xee; target],
        }
    }

    fn offer(&mut self, token: u64) -> Offer {
        // SAFETY: the scene keeps its buffers until its ranks are gone.
        let data = unsafe { SendBuffer::contiguous(self.source.as_ptr(), self.source.len()) };
        self.a.shm.offer(LANE, self.to_b, &data, Token(token))
    }

    fn open(&mut self, token: u64) -> Ticket {
        match self.offer(token) {
            Offer::Open(ticket) => ticket,
            other => panic!("{other:?}"),
        }
    }

    fn claim(&mut self, ticket: Ticket, token: u64) -> Post {
        let start = self.target.as_mut_ptr();
        // SAFETY: as above.
        let data = unsafe { RecvBuffer::contiguous(start, self.target.len()) };
        self.b
            .shm
            .claim(LANE, self.to_a, ticket, &data, Token(token))
    }

    /// Offers the target, which is filled.
    fn open_target(&mut self, token: u64) -> Ticket {
        let start = self.target.as_mut_ptr();
        // SAFETY: as above.
        let data = unsafe { RecvBuffer::contiguous(start, self.target.len()) };
        match self.b.shm.offer_recv(LANE, self.to_a, &data, Token(token)) {
            Offer::Open(ticket) => ticket,
            other => panic!("{other:?}"),
        }
    }

    fn fill(&mut self, ticket: Ticket, token: u64) -> Post {
        // SAFETY: as above.
        let data = unsafe { SendBuffer::contiguous(self.source.as_ptr(), self.source.len()) };
        self.a
            .shm
            .fill(LANE, self.to_b, ticket, &data, Token(token))
    }

    fn check(&self, moved: usize) {
        assert!(self.target[..moved] == self.source[..moved], "wrong bytes");
        assert!(self.target[moved..].iter().all(|byte| *byte == 0xee));
    }
}

/// Which ranks have time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Free {
    Sender,
    Receiver,
    Both,
}

#[test]
fn whoever_has_time_copies() {
    for free in [Free::Sender, Free::Receiver, Free::Both] {
        for len in [1, 4095, 4096, 40_000, 65_536, 1 << 20, (3 << 20) + 17] {
            let mut scene = Scene::new(len, len);
            let ticket = scene.open(1);
            assert_eq!(scene.claim(ticket, 2), Post::Posted);
            for _ in 0..40 {
                if free != Free::Receiver {
                    scene.a.progress();
                }
                if free != Free::Sender {
                    scene.b.progress();
                }
            }
            // Whoever computed looks once, at the end.
            scene.a.progress();
            scene.b.progress();
            let done = Outcome::Done(len as u64);
            assert_eq!(scene.a.log.completions, [(1, done)], "{free:?} {len}");
            assert_eq!(scene.b.log.completions, [(2, done)], "{free:?} {len}");
            scene.check(len);
        }
    }
}

#[test]
fn memory_that_is_offered_is_filled_by_whoever_has_time() {
    for free in [Free::Sender, Free::Receiver, Free::Both] {
        for (len, room) in [
            (1, 1),
            (65_536, 65_536),
            (40_000, 1 << 20),
            (1 << 20, 4096),
            (0, 9),
        ] {
            let mut scene = Scene::new(len, room);
            let ticket = scene.open_target(2);
            assert_eq!(scene.fill(ticket, 1), Post::Posted);
            for _ in 0..40 {
                if free != Free::Receiver {
                    scene.a.progress();
                }
                if free != Free::Sender {
                    scene.b.progress();
                }
            }
            scene.a.progress();
            scene.b.progress();
            let moved = len.min(room);
            let done = Outcome::Done(moved as u64);
            assert_eq!(scene.a.log.completions, [(1, done)], "{free:?} {len}");
            assert_eq!(scene.b.log.completions, [(2, done)], "{free:?} {len}");
            scene.check(moved);
        }
    }
}

#[test]
fn memory_is_revoked_or_filled_and_never_both() {
    let mut scene = Scene::new(8192, 8192);
    let ticket = scene.open_target(2);
    assert!(scene.b.shm.revoke(scene.to_a, ticket));
    assert!(!scene.b.shm.revoke(scene.to_a, ticket), "once");
    assert_eq!(scene.fill(ticket, 1), Post::Unsupported);
    let ticket = scene.open_target(3);
    assert_eq!(scene.fill(ticket, 4), Post::Posted);
    assert!(!scene.b.shm.revoke(scene.to_a, ticket));
    assert_eq!(scene.fill(ticket, 5), Post::Unsupported, "once");
    for _ in 0..10 {
        scene.a.progress();
        scene.b.progress();
    }
    let done = Outcome::Done(8192);
    assert_eq!(scene.a.log.completions, [(4, done)]);
    assert_eq!(scene.b.log.completions, [(3, done)]);
    // Its line serves again.
    for number in 0..3 * crate::shm::layout::OFFERS as u64 {
        let ticket = scene.open_target(number);
        assert!(scene.b.shm.revoke(scene.to_a, ticket));
    }
}

/// The ticket of memory is none of data, and the other way round.
#[test]
fn tickets_of_both_kinds_are_told_apart() {
    let mut scene = Scene::new(8192, 8192);
    let (data, memory) = (scene.open(1), scene.open_target(2));
    assert_eq!(scene.claim(memory, 3), Post::Unsupported);
    assert_eq!(scene.fill(data, 4), Post::Unsupported);
    let Ticket([place, seal]) = memory;
    let forged = Ticket([place, seal ^ 1]);
    assert_eq!(scene.claim(forged, 5), Post::Unsupported);
    assert_eq!(scene.fill(memory, 6), Post::Posted);
}

/// Whoever has the memory closes while it is being filled, or dies, or whoever fills it does.
#[test]
fn memory_whose_peer_ends_completes_with_that() {
    let mut scene = Scene::new(1 << 20, 1 << 20);
    let ticket = scene.open_target(2);
    assert_eq!(scene.fill(ticket, 1), Post::Posted);
    let to_a = scene.to_a;
    scene.b.shm.stop_transfers(to_a, Outcome::PeerFailed);
    for _ in 0..10 {
        scene.a.progress();
        scene.b.progress();
    }
    assert_eq!(scene.b.log.completions, [(2, Outcome::PeerFailed)]);
    assert_eq!(scene.a.log.completions, [(1, Outcome::Impossible)]);
}

#[test]
fn threads_share_the_copying() {
    const LEN: usize = 8 << 20;
    for _ in 0..20 {
        let mut scene = Scene::new(LEN, LEN);
        let ticket = scene.open(1);
        assert_eq!(scene.claim(ticket, 2), Post::Posted);
        let Scene { a, b, .. } = &mut scene;
        std::thread::scope(|scope| {
            for member in [a, b] {
                scope.spawn(move || {
                    while member.log.completions.is_empty() {
                        member.progress();
                    }
                });
            }
        });
        let done = Outcome::Done(LEN as u64);
        assert_eq!(scene.a.log.completions, [(1, done)]);
        assert_eq!(scene.b.log.completions, [(2, done)]);
        scene.check(LEN);
    }
}

#[test]
fn the_shorter_side_decides() {
    for (source, target) in [(100_000, 30_000), (30_000, 100_000), (5, 0), (0, 5)] {
        let mut scene = Scene::new(source, target);
        let ticket = scene.open(1);
        assert_eq!(scene.claim(ticket, 2), Post::Posted);
        for _ in 0..10 {
            scene.a.progress();
            scene.b.progress();
        }
        let moved = source.min(target);
        let done = Outcome::Done(moved as u64);
        assert_eq!(scene.a.log.completions, [(1, done)]);
        assert_eq!(scene.b.log.completions, [(2, done)]);
        scene.check(moved);
    }
}

#[test]
fn descriptors_are_used_again() {
    let mut scene = Scene::new(10_000, 10_000);
    let tickets: Vec<_> = (0..64).map(|token| scene.open(token)).collect();
    assert_eq!(scene.offer(99), Offer::Busy);
    let old = tickets[0];
    for (token, ticket) in tickets.into_iter().enumerate() {
        assert_eq!(scene.claim(ticket, token as u64), Post::Posted);
    }
    while scene.b.log.completions.len() < 64 {
        scene.a.progress();
        scene.b.progress();
    }
    let ticket = scene.open(100);
    assert_ne!(ticket, old);
    assert_eq!(scene.claim(old, 101), Post::Unsupported);
    assert_eq!(scene.claim(ticket, 102), Post::Posted);
    for _ in 0..3 {
        scene.a.progress();
        scene.b.progress();
    }
    let last = scene.b.log.completions.last().unwrap();
    assert_eq!(*last, (102, Outcome::Done(10_000)));
}

/// A line whose transfer the receiver has moved and released is not used again while the sender,
/// who has not looked, still lists that transfer.
#[test]
fn a_descriptor_is_in_use_until_both_sides_are_done() {
    const LEN: usize = 10_000;
    let mut scene = Scene::new(LEN, LEN);
    for token in 0..64 {
        let ticket = scene.open(token);
        assert_eq!(scene.claim(ticket, token), Post::Posted);
    }
    while scene.b.log.completions.len() < 64 {
        scene.b.progress();
    }
    assert_eq!(scene.offer(64), Offer::Busy);
    scene.a.progress();
    let mut ended = std::mem::take(&mut scene.a.log.completions);
    ended.sort_by_key(|(token, _)| *token);
    let done = Outcome::Done(LEN as u64);
    assert_eq!(
        ended,
        (0..64).map(|token| (token, done)).collect::<Vec<_>>()
    );
    let ticket = scene.open(65);
    assert_eq!(scene.claim(ticket, 66), Post::Posted);
    scene.b.progress();
    scene.a.progress();
    assert_eq!(scene.a.log.completions, [(65, done)]);
}

#[test]
fn a_withdrawn_offer_cannot_be_claimed() {
    let mut scene = Scene::new(10_000, 10_000);
    for round in 0..200 {
        let ticket = scene.open(round);
        scene.a.shm.withdraw(scene.to_b, ticket);
        scene.a.progress();
        assert_eq!(
            scene.a.log.completions.pop(),
            Some((round, Outcome::Withdrawn))
        );
        assert_eq!(scene.claim(ticket, 7), Post::Unsupported);
    }
    scene.check(0);
}

/// The peer has ended, and its number names another process now: here, this one, in which the
/// addresses mean something. Nothing may be written there, and nothing read there counts.
#[test]
fn the_number_of_a_dead_peer_is_not_trusted() {
    // Short enough to be moved in one piece.
    const LEN: usize = 20_000;
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let watch = || crate::shm::liveness::Liveness::watch(child.id());
    let dead: [_; 4] = std::array::from_fn(|_| watch());
    let mut dead = dead.into_iter();
    child.wait().unwrap();
    for sender_copies in [true, false] {
        let mut scene = Scene::new(LEN, LEN);
        let ticket = scene.open(1);
        assert_eq!(scene.claim(ticket, 2), Post::Posted);
        scene.a.shm.peers[scene.to_b.index()].liveness = dead.next().unwrap();
        scene.b.shm.peers[scene.to_a.index()].liveness = dead.next().unwrap();
        if sender_copies {
            scene.a.progress();
            assert_eq!(scene.a.log.completions, [(1, Outcome::PeerFailed)]);
            scene.check(0);
        } else {
            scene.b.progress();
            assert_eq!(scene.b.log.completions, [(2, Outcome::PeerFailed)]);
        }
    }
}

/// Where there is no descriptor of the process, the peer is known by its number in private memory.
#[test]
fn a_process_that_does_not_know_the_nonce_is_not_trusted() {
    // Short enough to be moved in one piece.
    const LEN: usize = 20_000;
    let mut scene = Scene::new(LEN, LEN);
    let ticket = scene.open(1);
    assert_eq!(scene.claim(ticket, 2), Post::Posted);
    scene.a.progress();
    let ticket = scene.open(3);
    scene.a.log.completions.clear();
    let peer = &mut scene.a.shm.peers[scene.to_b.index()];
    peer.liveness = crate::shm::liveness::Liveness::Unknown;
    peer.identity.as_mut().unwrap().nonce ^= 1;
    scene.target.fill(0xee);
    assert_eq!(scene.claim(ticket, 4), Post::Posted);
    scene.a.progress();
    assert_eq!(scene.a.log.completions, [(3, Outcome::Impossible)]);
    scene.check(0);
}

/// The kernel refuses to read from there.
#[test]
fn a_copy_that_fails_ends_both_sides() {
    let mut scene = Scene::new(0, 1 << 20);
    let hole = memmap2::MmapOptions::new().len(1 << 20).map_anon().unwrap();
    let hole = hole.make_read_only().unwrap();
    let start = hole.as_ptr();
    drop(hole);
    // SAFETY: nothing is there, and nothing here looks: the kernel is asked to, and says no.
    let data = unsafe { SendBuffer::contiguous(start, 1 << 20) };
    let offer = scene.a.shm.offer(LANE, scene.to_b, &data, Token(1));
    let Offer::Open(ticket) = offer else {
        panic!("{offer:?}")
    };
    assert_eq!(scene.claim(ticket, 2), Post::Posted);
    for _ in 0..3 {
        scene.b.progress();
        scene.a.progress();
    }
    assert_eq!(scene.a.log.completions, [(1, Outcome::Impossible)]);
    assert_eq!(scene.b.log.completions, [(2, Outcome::Impossible)]);
}

#[test]
fn without_attach_nothing_is_offered_or_claimed() {
    let off = ShmOptions {
        cross_attach: CrossAttach::Off,
        arena: 0,
        ..ShmOptions::default()
    };
    let on = ShmOptions {
        cross_attach: CrossAttach::Auto,
        ..off.clone()
    };
    let mut scene = Scene::with(&on, 10_000, 10_000);
    let ticket = scene.open(1);
    scene.b.shm.options = off.clone();
    assert_eq!(scene.claim(ticket, 2), Post::Unsupported);
    scene.a.shm.options = off;
    assert_eq!(scene.offer(3), Offer::Unsupported);
    // The maker ends what was not claimed.
    scene.a.shm.withdraw(scene.to_b, ticket);
    scene.a.progress();
    assert_eq!(scene.a.log.completions, [(1, Outcome::Withdrawn)]);
}

#[test]
fn a_peer_that_closes_gives_the_buffers_back() {
    let mut scene = Scene::new(1 << 20, 1 << 20);
    let claimed = scene.open(1);
    scene.open(2);
    assert_eq!(scene.claim(claimed, 3), Post::Posted);
    scene.b.progress();
    let Scene { mut a, b, to_b, .. } = scene;
    b.leave();
    a.progress();
    assert_eq!(a.log.left, [to_b]);
    a.log.completions.sort_by_key(|(token, _)| *token);
    let gone = Outcome::PeerFailed;
    assert_eq!(a.log.completions, [(1, gone), (2, gone)]);
}

/// The last thing that a rank does before it leaves is often to copy all of a message.
#[test]
fn what_a_peer_has_moved_before_it_closed_is_done() {
    const LEN: usize = 40_000;
    let done = Outcome::Done(LEN as u64);
    for alone in [Free::Sender, Free::Receiver] {
        let mut scene = Scene::new(LEN, LEN);
        let ticket = scene.open(1);
        assert_eq!(scene.claim(ticket, 2), Post::Posted);
        let Scene { a, b, .. } = &mut scene;
        let busy = if alone == Free::Sender { a } else { b };
        while busy.log.completions.is_empty() {
            busy.progress();
        }
        scene.check(LEN);
        let Scene { a, b, .. } = scene;
        let (mut stays, leaves, token) = match alone {
            Free::Sender => (b, a, 2),
            _ => (a, b, 1),
        };
        leaves.leave();
        stays.look_after_peers();
        assert_eq!(stays.log.completions, [(token, done)], "{alone:?}");
        assert_eq!(stays.log.left.len(), 1);
    }
}
