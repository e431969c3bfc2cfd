//! Memory of a room goes back and forth: what was read is written next.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use tagwire_base::ManualClock;

use super::*;
use crate::shm::layout::{AREA, LONG, MAX_SEND, PAYLOAD, REUSED, ROOMS};
use crate::shm::segment::AreaMap;

/// Two ranks, and what each has sent that the other has not taken.
struct Two {
    members: [Member; 2],
    to: [EndpointId; 2],
    under_way: [VecDeque<(u64, Vec<u8>)>; 2],
    sent: u64,
    clock: ManualClock,
    numbers: Numbers,
}

impl Two {
    fn new(budget: usize, seed: u64) -> Self {
        Self::with(Some(true), budget, seed)
    }

    fn with(reuse: Option<bool>, budget: usize, seed: u64) -> Self {
        let (clock, job) = (ManualClock::default(), LocalJob::new(2).unwrap());
        let options = ShmOptions {
            room: Some(2 * budget),
            reuse,
            ..ShmOptions::default()
        };
        let mut members = [0, 1].map(|rank| {
            let mut member = job.member(Rank::new(rank)).with_clock(clock.clock());
            let shm = Shm::open(options.clone(), &mut member).unwrap();
            let log = Log::default();
            Member { shm, log }
        });
        let [a, b] = &mut members;
        let to = [connect(a, b), connect(b, a)];
        let mut two = Self {
            members,
            to,
            under_way: Default::default(),
            sent: 0,
            clock,
            numbers: Numbers(seed),
        };
        for _ in 0..3 {
            two.progress(0);
            two.progress(1);
        }
        two
    }

    fn send(&mut self, from: usize, len: usize) -> bool {
        let first = self.sent;
        let data = periodic(len, 251, |at| (first * 7 + at as u64) as u8);
        let posted = self.members[from].send(self.to[from], Class::Data, first, &data);
        if posted == Post::Busy {
            return false;
        }
        assert_eq!(posted, Post::Posted);
        self.under_way[from].push_back((first, data));
        self.sent += 1;
        true
    }

    /// Takes what has come, and compares it.
    fn progress(&mut self, at: usize) -> usize {
        let member = &mut self.members[at];
        member.progress();
        let mut count = 0;
        for (_, number, data) in member.log.messages.drain(..) {
            assert_eq!(self.under_way[1 - at].pop_front(), Some((number, data)));
            count += 1;
        }
        assert!(member.log.protocol.is_empty(), "{:?}", member.log.protocol);
        count
    }

    /// One message there and one back.
    fn exchange(&mut self, len: usize) {
        for from in 0..2 {
            assert!(self.send(from, len));
            assert_eq!(self.progress(1 - from), 1);
        }
    }

    /// Sends one way until the room has its full size.
    fn grow(&mut self, from: usize) {
        for _ in 0..(20 << 20) / MAX_SEND {
            assert!(self.send(from, MAX_SEND));
            self.progress(1 - from);
        }
    }

    /// What rank `from` sends.
    fn area(&self, from: usize) -> AreaMap {
        let peer = &self.members[from].shm.peers[self.to[from].index()];
        peer.outbound.clone().unwrap()
    }

    fn look_after_peers(&mut self, at: usize) {
        self.members[at].look_after_peers();
    }
}

/// An answer takes the memory of what it answers, and so does what comes after it: neither room is gone round.
#[test]
fn answers_take_the_memory_of_what_they_answer() {
    for len in [REUSED, 1000, LONG, LONG + 2500, MAX_SEND] {
        let mut two = Two::new(4 << 20, 1);
        two.grow(0);
        let areas = [two.area(0), two.area(1)];
        let read = |areas: &[AreaMap; 2]| {
            areas.each_ref().map(|area| {
                let ring = area.credit.word.load(Acquire) >> 32;
                (area.credit.room.load(Acquire), ring)
            })
        };
        // What is not credited yet is, with the slots.
        (0..100).for_each(|_| two.exchange(len));
        let before = read(&areas);
        for _ in 0..2_000 {
            two.exchange(len);
        }
        let after = read(&areas);
        assert_eq!(before, after, "nothing is credited: nobody goes on");
    }
}

/// Short messages get the smallest room once many have gone back and forth, and none where they go one way or are shorter.
#[test]
fn short_answers_are_worth_a_small_room() {
    // A rank with one peer and no room.
    const PLAIN: u64 = AREA as u64 + 8192;
    let memory = |two: &Two| two.members[1].shm.memory_in_use().unwrap();
    let mut two = Two::new(16 << 20, 1);
    for _ in 0..10_000 {
        assert!(two.send(0, LONG - 1));
        two.progress(1);
    }
    for _ in 0..10_000 {
        two.exchange(REUSED - 1);
    }
    assert!(memory(&two) <= PLAIN, "{}", memory(&two));
    for _ in 0..10_000 {
        two.exchange(LONG - 1);
    }
    let small = u64::from(ROOMS[1]);
    assert!(memory(&two) > PLAIN + small / 2, "{}", memory(&two));
    assert!(memory(&two) <= PLAIN + small, "{}", memory(&two));
}

/// What is held is for answers: where trials decide, only the first payloads after one of the peer's go there.
#[test]
fn long_rows_are_no_answers() {
    let mut two = Two::with(None, 4 << 20, 1);
    two.grow(0);
    // Short ones follow who began.
    let held = |two: &Two, count: usize| {
        let out = two.members[1].shm.outbound[two.to[1].index()].as_ref();
        let tail = out.unwrap().producer.sent();
        let area = two.area(1);
        let is_held = |back: u32| {
            let slot = &area.slots[(tail.wrapping_sub(1 + back)) as usize % 256];
            slot.words[0].load(Relaxed) >> 40 & 0xff == 0x80
        };
        (0..count as u32).filter(|back| is_held(*back)).count()
    };
    for _ in 0..20 {
        assert!(two.send(1, 1000));
    }
    assert_eq!(held(&two, 20), 4);
    two.progress(0);
    assert!(two.send(0, MAX_SEND));
    two.progress(1);
    for _ in 0..2 {
        assert!(two.send(1, 1000));
    }
    assert_eq!(held(&two, 2), 2);
    two.progress(0);
}

/// The packets of a message that goes ahead of its match are stored as pieces are, which need no trial of their own.
#[test]
fn packets_of_a_long_message_take_held_memory() {
    let mut two = Two::with(None, 4 << 20, 1);
    two.grow(0);
    let before = two.area(1).credit.room.load(Acquire);
    for _ in 0..200 {
        for from in 0..2 {
            let to = two.to[from];
            let out = two.members[from].shm.outbound[to.index()].as_mut();
            out.unwrap().producer.begin_long(6 * MAX_SEND);
            for _ in 0..6 {
                assert!(two.send(from, MAX_SEND));
            }
            assert_eq!(two.progress(1 - from), 6);
        }
    }
    assert_eq!(
        two.area(1).credit.room.load(Acquire),
        before,
        "nobody goes on"
    );
}

/// Messages of either side, of all lengths, in every order, and rooms that grow and go back: each byte arrives, in order, and nobody waits
/// for anything but the other's progress.
#[test]
fn every_order_of_messages_is_right() {
    let seeds = std::env::var("REUSE_SEEDS").map_or(6, |seeds| seeds.parse().unwrap());
    for seed in 0..seeds {
        let budget = [256 << 10, 1 << 20, 16 << 20][seed as usize % 3];
        let reuse = (seed % 2 == 0).then_some(true);
        let mut two = Two::with(reuse, budget, seed);
        let mut idle = 0;
        for _ in 0..if cfg!(miri) { 100 } else { 12_000 } {
            let at = two.numbers.below(2) as usize;
            match two.numbers.below(40) {
                0..=15 => {
                    let longest = [64, LONG, MAX_SEND, MAX_SEND][two.numbers.below(4) as usize];
                    let len = two.numbers.below(longest as u64 + 1) as usize;
                    let most = two.numbers.below(60);
                    for _ in 0..most {
                        if !two.send(at, len) {
                            idle += 1;
                            break;
                        }
                    }
                }
                16..=25 => {
                    for _ in 0..two.numbers.below(30) {
                        two.progress(at);
                        let len = MAX_SEND - two.numbers.below(3000) as usize;
                        two.send(at, len);
                    }
                }
                26..=38 => {
                    two.progress(at);
                }
                _ => {
                    let time = two.numbers.below(9_000);
                    two.clock.advance(Duration::from_millis(time));
                    two.look_after_peers(at);
                }
            }
            // Who finds no space does so once the other has taken everything, and this side what came back.
            if two.numbers.below(50) == 0 {
                while two.progress(0) + two.progress(1) > 0 {}
                assert!(two.under_way.iter().all(VecDeque::is_empty));
                assert!(two.send(0, MAX_SEND) && two.send(1, MAX_SEND));
            }
        }
        assert!(idle > 0, "nothing was ever full");
    }
}

/// Whoever streams, and reads an answer in the middle, is not held up by it: the credits go beyond it once it is read.
#[test]
fn a_stream_goes_on_behind_an_answer() {
    for seed in 0..20 {
        let mut two = Two::new(256 << 10, seed);
        two.grow(0);
        for _ in 0..30 {
            let ahead = two.numbers.below(12);
            for _ in 0..ahead {
                two.send(0, MAX_SEND);
            }
            two.progress(1);
            assert!(two.send(1, MAX_SEND));
            // Nobody has read the answer.
            while two.send(0, MAX_SEND) {}
            two.progress(0);
            for _ in 0..200 {
                if !two.send(0, MAX_SEND) {
                    two.progress(1);
                    assert!(two.send(0, MAX_SEND), "nobody lets it go on");
                }
            }
            two.progress(1);
            two.progress(0);
        }
    }
}

/// A room is not freed before answers there are read.
#[test]
fn a_room_with_an_answer_is_kept() {
    let mut two = Two::new(1 << 20, 3);
    two.grow(0);
    let used = |two: &Two| two.members[1].shm.memory_in_use().unwrap();
    let full = used(&two);
    assert!(full > u64::from(ROOMS[1]));
    assert!(two.send(1, MAX_SEND));
    for _ in 0..3 {
        two.clock.advance(Duration::from_secs(10));
        two.look_after_peers(1);
        two.look_after_peers(0);
    }
    let freed = full - used(&two);
    assert!(freed <= PAYLOAD as u64, "an answer lies in the room");
    assert_eq!(two.progress(0), 1);
    two.look_after_peers(1);
    assert!(used(&two) < u64::from(ROOMS[1]));
    // The next ones find memory again.
    two.grow(0);
    two.exchange(MAX_SEND);
}

/// What a slot says of an answer is not believed: nothing is read outside, and a place that cannot be ends the peer.
#[test]
fn impossible_places_of_answers_end_the_peer() {
    let room = u64::from(ROOMS[3]);
    for (offset, ends) in [
        (0, false),
        (room - MAX_SEND as u64, false),
        (room - MAX_SEND as u64 + 64, true),
        (32, true),
        (room, true),
        (u64::from(u32::MAX) & !63, true),
    ] {
        let mut two = Two::new(16 << 20, 5);
        two.grow(0);
        assert!(two.send(1, MAX_SEND));
        let area = two.area(1);
        let slot = &area.slots[(two.members[1].shm.outbound[two.to[1].index()])
            .as_ref()
            .map_or(0, |out| out.producer.sent() as usize - 1)
            % 256];
        assert_eq!(slot.words[0].load(Relaxed) >> 40 & 0xff, 0x80, "an answer");
        // SAFETY: the test writes what a broken peer would; nobody else does.
        unsafe {
            slot.inline
                .get()
                .cast::<u64>()
                .write_unaligned(offset << 32)
        };
        two.members[0].progress();
        let protocol = &two.members[0].log.protocol;
        assert_eq!(!protocol.is_empty(), ends, "{offset}: {protocol:?}");
    }
}

/// A payload in a room whose producer cannot stand where it says ends the peer.
#[test]
fn impossible_positions_end_the_peer() {
    for (by, ends) in [(0, false), (64, true), (0_u32.wrapping_sub(64), true)] {
        let mut two = Two::new(16 << 20, 6);
        two.grow(0);
        assert!(two.send(0, MAX_SEND));
        let area = two.area(0);
        let out = two.members[0].shm.outbound[two.to[0].index()].as_ref();
        let slot = &area.slots[(out.unwrap().producer.sent() as usize - 1) % 256];
        let word = slot.inline.get().cast::<u32>();
        // SAFETY: as above.
        unsafe { word.write_unaligned(word.read_unaligned().wrapping_add(by)) };
        two.members[1].progress();
        let protocol = &two.members[1].log.protocol;
        assert_eq!(!protocol.is_empty(), ends, "{by}: {protocol:?}");
    }
}

/// All that a broken peer may write about answers, at random: a peer failure at most.
#[test]
fn garbage_about_answers_gives_protocol_errors_and_nothing_else() {
    for seed in 0..30 {
        let mut two = Two::new(1 << 20, seed);
        two.grow(0);
        let areas = [two.area(0), two.area(1)];
        let data = [3; MAX_SEND];
        for round in 0..60 {
            let numbers = &mut two.numbers;
            let area = &areas[numbers.below(2) as usize];
            let slot = &area.slots[numbers.below(256) as usize];
            match numbers.below(3) {
                0 => {
                    let value = numbers.next() >> numbers.below(64);
                    // SAFETY: as above.
                    unsafe { slot.inline.get().cast::<u64>().write_unaligned(value) };
                }
                1 => {
                    slot.words[0].fetch_xor(0x80 << 40, Relaxed);
                }
                _ => area.credit.word.store(numbers.next(), Release),
            }
            for from in 0..2 {
                for _ in 0..two.numbers.below(20) {
                    let _ = two.members[from].send(two.to[from], Class::Data, round, &data);
                }
                two.members[1 - from].progress();
                two.members[1 - from].log.messages.clear();
                two.clock.advance(Duration::from_millis(300));
                two.look_after_peers(from);
            }
        }
        let ends = two
            .members
            .each_ref()
            .map(|member| member.log.protocol.len());
        assert!(ends[0] <= 1 && ends[1] <= 1);
    }
}
