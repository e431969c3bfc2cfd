//! Payload rings and rooms: they take memory with traffic, give it back in silence, and are reached outside of by nobody.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tagwire_base::ManualClock;

use super::*;
use crate::shm::layout::{AREA, INLINE, LONG, MAX_SEND, ROOMS};
use crate::shm::payload::FREEING;
use crate::shm::room::Size;
use crate::shm::segment::AreaMap;
use crate::shm::waiter::word;

/// A pair of ranks that may spend so many bytes each, by a clock of the test's.
struct Pair {
    a: Member,
    b: Member,
    to_b: EndpointId,
    clock: ManualClock,
    sent: u64,
    numbers: Numbers,
}

impl Pair {
    fn new(budget: usize) -> Self {
        let (clock, job) = (ManualClock::default(), LocalJob::new(2).unwrap());
        let options = ShmOptions {
            room: Some(2 * budget),
            ..ShmOptions::default()
        };
        let open = |rank| {
            let mut member = job.member(Rank::new(rank)).with_clock(clock.clock());
            let shm = Shm::open(options.clone(), &mut member).unwrap();
            let log = Log::default();
            Member { shm, log }
        };
        let (mut a, mut b) = (open(0), open(1));
        let (to_b, _) = (connect(&mut a, &b), connect(&mut b, &a));
        for _ in 0..3 {
            a.progress();
            b.progress();
        }
        let (sent, numbers) = (0, Numbers(7));
        Self {
            a,
            b,
            to_b,
            clock,
            sent,
            numbers,
        }
    }

    /// Sends messages of up to `longest` bytes, `bytes` in all at least, and takes them in turns of random length.
    fn move_bytes(&mut self, bytes: usize, longest: usize) {
        let mut moved = 0;
        let mut under_way = VecDeque::new();
        while moved < bytes {
            let len = self.numbers.below(longest as u64 + 1) as usize;
            let first = self.sent;
            let data = periodic(len, 256, |at| (first + at as u64) as u8);
            while self.a.send(self.to_b, Class::Data, self.sent, &data) == Post::Busy {
                assert_ne!(self.b.progress(), 0, "nobody moves");
                self.check(&mut under_way);
            }
            under_way.push_back((self.sent, data));
            (self.sent, moved) = (self.sent + 1, moved + len);
            if self.numbers.below(9) == 0 {
                self.b.progress();
                self.check(&mut under_way);
            }
        }
        while self.b.progress() > 0 {}
        self.check(&mut under_way);
        assert!(under_way.is_empty());
    }

    fn check(&mut self, under_way: &mut VecDeque<(u64, Vec<u8>)>) {
        for (_, number, data) in self.b.log.messages.drain(..) {
            assert_eq!(under_way.pop_front(), Some((number, data)));
        }
    }

    /// Lets so much time pass, in which both look after their peers.
    fn wait(&mut self, time: Duration) {
        let step = Duration::from_millis(100);
        for _ in 0..time.as_millis() / step.as_millis() {
            self.clock.advance(step);
            self.b.look_after_peers();
            self.a.look_after_peers();
        }
    }

    fn memory(&self) -> u64 {
        self.b.shm.memory_in_use().unwrap()
    }

    fn assert_alive(&self) {
        let [a, b] = [&self.a, &self.b].map(|member| &member.log.protocol);
        assert!(a.is_empty() && b.is_empty(), "{a:?} {b:?}");
    }
}

/// A rank with one peer and no room.
const PLAIN: u64 = AREA as u64 + 8192;
/// The same without the whole pages of the payload ring.
const SILENT: u64 = PLAIN - (40 << 10);

#[test]
fn rooms_grow_with_long_messages_and_go_back_in_silence() {
    let mut pair = Pair::new(16 << 20);
    pair.move_bytes(4 << 20, LONG - 1);
    assert!(pair.memory() <= PLAIN, "short ones need none");
    for _ in 0..3 {
        pair.move_bytes(20 << 20, MAX_SEND);
        let largest = u64::from(ROOMS[3]);
        assert!(pair.memory() >= largest - 16_384, "{}", pair.memory());
        assert!(pair.memory() <= largest + PLAIN, "{}", pair.memory());
        // Used now and then it stays.
        for _ in 0..10 {
            pair.wait(Duration::from_secs(2));
            pair.move_bytes(10_000, MAX_SEND);
        }
        assert!(pair.memory() >= largest - 16_384);
        pair.wait(Duration::from_secs(10));
        assert!(pair.memory() <= SILENT, "{}", pair.memory());
        pair.move_bytes(1 << 20, LONG - 1);
        assert!(pair.memory() <= PLAIN, "short ones need none again");
    }
    pair.assert_alive();
}

/// Whoever sends again while its room is taken back loses no byte.
#[test]
fn a_room_is_taken_back_under_traffic() {
    for seed in 0..8 {
        let mut pair = Pair::new(1 << 20);
        pair.numbers = Numbers(seed);
        for _ in 0..4 {
            pair.move_bytes(3 << 20, MAX_SEND);
            assert!(pair.memory() > PLAIN);
            // The owner alone looks: the sender has not noticed.
            pair.clock.advance(Duration::from_secs(10));
            pair.b.look_after_peers();
            pair.clock.advance(Duration::from_secs(10));
            pair.b.look_after_peers();
            let waits = pair.memory();
            assert!(waits > PLAIN, "it is still the sender's");
            let beside = pair.numbers.below(90_000) as usize;
            pair.move_bytes(beside, MAX_SEND);
            let unread = vec![9; MAX_SEND];
            assert_eq!(
                pair.a.send(pair.to_b, Class::Data, 77, &unread),
                Post::Posted
            );
            pair.a.look_after_peers();
            pair.b.look_after_peers();
            pair.b.progress();
            assert_eq!(pair.b.log.messages.pop_front().unwrap().2, unread);
            pair.b.look_after_peers();
            assert!(pair.memory() <= PLAIN, "{}", pair.memory());
        }
        pair.assert_alive();
    }
}

/// Whoever sends again while its payload ring goes back, or after it has gone, loses no byte.
#[test]
fn a_payload_ring_is_given_back_under_traffic() {
    for seed in 0..8 {
        let mut pair = Pair::new(0);
        pair.numbers = Numbers(seed);
        for _ in 0..4 {
            pair.move_bytes(1 << 20, MAX_SEND);
            // The owner alone looks, then the sender alone.
            for _ in 0..2 {
                pair.clock.advance(Duration::from_secs(10));
                pair.b.look_after_peers();
            }
            assert!(pair.memory() > SILENT, "it is still the sender's");
            for _ in 0..2 {
                pair.clock.advance(Duration::from_secs(10));
                pair.a.look_after_peers();
            }
            assert!(pair.memory() > SILENT, "the owner has not noticed");
            let beside = pair.numbers.below(90_000) as usize;
            pair.move_bytes(beside, MAX_SEND);
            let unread = pair.numbers.bytes(MAX_SEND);
            let sent = pair.a.send(pair.to_b, Class::Data, 77, &unread);
            assert_eq!(sent, Post::Posted);
            pair.wait(Duration::from_secs(10));
            assert!(pair.memory() > SILENT, "not all is read");
            pair.b.progress();
            assert_eq!(pair.b.log.messages.pop_front().unwrap().2, unread);
            pair.wait(Duration::from_secs(10));
            assert!(pair.memory() <= SILENT, "{}", pair.memory());
        }
        pair.assert_alive();
    }
}

/// A pair whose sender has left its payload ring, and the area of that.
fn with_ring_left() -> (Pair, AreaMap) {
    let mut pair = Pair::new(0);
    pair.move_bytes(100_000, MAX_SEND);
    pair.b.look_after_peers();
    for _ in 0..2 {
        pair.a.look_after_peers();
        pair.clock.advance(Duration::from_secs(10));
    }
    pair.a.look_after_peers();
    let area = pair.a.shm.peers[pair.to_b.index()].outbound.clone();
    (pair, area.unwrap())
}

/// While the owner frees the memory there is no space, but for what slots hold. It wakes a sender that sleeps for that.
#[test]
fn a_payload_ring_is_busy_while_it_is_freed() {
    let (mut pair, area) = with_ring_left();
    let state = &area.payload_state.word;
    let left = state.swap(FREEING, Ordering::AcqRel);
    let long = [1; 200];
    let send = |pair: &mut Pair, data: &[u8]| pair.a.send(pair.to_b, Class::Data, 5, data);
    assert_eq!(send(&mut pair, &long), Post::Busy);
    assert_eq!(send(&mut pair, &[2; INLINE]), Post::Posted);
    state.store(left, Ordering::Release);
    let sleeping = pair.a.shm.header.clone();
    let key = word::arm(&sleeping.sleeping.word);
    pair.b.progress();
    pair.b.look_after_peers();
    assert_ne!(sleeping.sleeping.word.load(Ordering::SeqCst), key);
    assert!(pair.memory() <= SILENT, "{}", pair.memory());
    assert_eq!(send(&mut pair, &long), Post::Posted);
    pair.b.progress();
    assert_eq!(pair.b.log.messages[1].2, long);
    pair.assert_alive();
}

#[test]
fn an_impossible_state_of_a_payload_ring_ends_whoever_wrote_it() {
    for state in [FREEING, 4, u64::MAX] {
        let (mut pair, area) = with_ring_left();
        area.payload_state.word.store(state, Ordering::Release);
        pair.b.look_after_peers();
        let protocol = &pair.b.log.protocol;
        assert!(
            matches!(&protocol[..], [(Some(_), reason)] if reason.contains("rank 0")),
            "{state}: {protocol:?}"
        );
    }
    // The owner may free what was left, and nothing else.
    for (is_left, states) in [(true, [1, 4, u64::MAX]), (false, [0, 2, FREEING])] {
        for state in states {
            let (mut pair, area) = with_ring_left();
            if !is_left {
                pair.move_bytes(200, 200);
            }
            area.payload_state.word.store(state, Ordering::Release);
            pair.a.look_after_peers();
            assert_eq!(pair.a.log.protocol.len(), 1, "{is_left} {state}");
        }
    }
}

#[test]
fn a_budget_bounds_the_rooms_of_all_peers() {
    for (budget, expected) in [
        (0, 0),
        // The least that works.
        (100_000, 256 << 10),
        (300_000, 256 << 10),
        (1_500_000, 1 << 20),
    ] {
        let mut pair = Pair::new(budget);
        pair.move_bytes(20 << 20, MAX_SEND);
        let used = pair.memory().saturating_sub(PLAIN);
        let most = if budget == 0 {
            0
        } else {
            budget.max(256 << 10)
        };
        assert!(used <= most as u64, "{used} bytes of {budget}");
        assert!(pair.memory() >= expected, "{} of {budget}", pair.memory());
        pair.assert_alive();
    }
}

#[test]
fn a_peer_that_ends_leaves_its_room_and_its_payload_ring() {
    let mut pair = Pair::new(4 << 20);
    pair.move_bytes(20 << 20, MAX_SEND);
    assert!(pair.memory() > 3 << 20);
    let Pair { a, mut b, .. } = pair;
    a.leave();
    b.look_after_peers();
    assert!(b.shm.memory_in_use().unwrap() <= SILENT);
    assert_eq!(b.log.left.len(), 1);
}

/// What is wrong with a slot, by what it says of the room; the position in it is right.
fn with_slot(room: u64, len: u64) -> Pair {
    let mut pair = Pair::new(4 << 20);
    pair.move_bytes(1 << 20, MAX_SEND);
    let area = pair.a.shm.peers[pair.to_b.index()]
        .outbound
        .clone()
        .unwrap();
    let at = pair.sent;
    let slot = &area.slots[at as usize % 256];
    let out = pair.a.shm.outbound[pair.to_b.index()].as_ref();
    let position = out.map_or(0, |out| out.producer.room_position());
    // SAFETY: the test writes what a broken peer would; nobody else does.
    unsafe { slot.inline.get().cast::<u32>().write_unaligned(position) };
    let [word, header, inverse] = &slot.words;
    header.store(at, Ordering::Relaxed);
    inverse.store(!at, Ordering::Relaxed);
    word.store(
        (at + 1) | 1 << 32 | room << 40 | len << 48,
        Ordering::Release,
    );
    pair.b.progress();
    pair
}

#[test]
fn a_slot_of_a_room_that_was_not_granted_ends_the_peer() {
    // It had 256 KiB and then 1 MiB by now: neither a larger room, nor a smaller one, nor one of a short payload.
    for (room, len) in [
        (3, 4096),
        (1, 4096),
        (4, 4096),
        (255, 4096),
        (2, 40),
        (2, MAX_SEND as u64 + 64),
    ] {
        let pair = with_slot(room, len);
        let protocol = &pair.b.log.protocol;
        assert!(
            matches!(&protocol[..], [(Some(_), reason)] if reason.contains("rank 0")),
            "{room} {len}: {protocol:?}"
        );
        assert!(pair.memory() <= PLAIN, "its room is freed");
    }
    assert!(with_slot(2, 4096).b.log.protocol.is_empty());
}

#[test]
fn impossible_grants_and_credits_of_a_room_end_its_owner() {
    for (grant, credit) in [
        (Some(4), None),
        (Some(0xff | 1 << 8), None),
        (None, Some(1 << 30)),
    ] {
        let mut pair = Pair::new(4 << 20);
        pair.move_bytes(1 << 20, MAX_SEND);
        let area = pair.a.shm.peers[pair.to_b.index()]
            .outbound
            .clone()
            .unwrap();
        if let Some(grant) = grant {
            area.grant.word.store(grant, Ordering::Release);
        }
        if let Some(credit) = credit {
            area.credit.room.store(credit, Ordering::Release);
        }
        // Nothing is written outside meanwhile: the test's process would end.
        let data = [1; MAX_SEND];
        while pair.a.send(pair.to_b, Class::Data, 0, &data) == Post::Posted {}
        pair.a.look_after_peers();
        assert_eq!(pair.a.log.protocol.len(), 1, "{grant:?} {credit:?}");
    }
}

/// All that the two sides write about rooms, at random, while messages flow: a peer failure at most, and no access outside.
#[test]
fn garbage_about_rooms_gives_protocol_errors_and_nothing_else() {
    let mut found = 0;
    for seed in 0..60 {
        let mut pair = Pair::new(1 << 20);
        pair.numbers = Numbers(seed);
        pair.move_bytes(1 << 20, MAX_SEND);
        let area = pair.a.shm.peers[pair.to_b.index()]
            .outbound
            .clone()
            .unwrap();
        let data = [3; MAX_SEND];
        for round in 0..40 {
            let numbers = &mut pair.numbers;
            let value = numbers.next() >> numbers.below(64);
            let words = [
                &area.grant.word,
                &area.left.word,
                &area.credit.room,
                &area.payload_state.word,
            ];
            words[numbers.below(4) as usize].store(value, Ordering::Release);
            let slot = numbers.below(256) as usize;
            let sizes = numbers.next() & 0xff << 40;
            area.slots[slot].words[0].fetch_xor(sizes, Ordering::AcqRel);
            for _ in 0..30 {
                let _ = pair.a.send(pair.to_b, Class::Data, round, &data);
            }
            pair.b.progress();
            pair.b.log.messages.clear();
            pair.wait(Duration::from_secs(1));
        }
        let ends = |member: &Member| member.log.protocol.len();
        assert!(ends(&pair.a) <= 1 && ends(&pair.b) <= 1);
        found += ends(&pair.a) + ends(&pair.b);
    }
    assert!(found > 30, "found in {found} of 60");
}

#[test]
fn sizes_that_are_not_there_have_no_bytes() {
    assert_eq!(Size(9).len(&ROOMS), 0);
    assert_eq!(Size(255).next().len(&ROOMS), 0);
}
