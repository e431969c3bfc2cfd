//! Transfers by each way, and by those that trials choose.

use std::sync::atomic::Ordering;
use std::time::Duration;

use tagwire_base::ManualClock;

use super::*;
use crate::cooperative::{CooperativeTransfers, Offer, Ticket};
use crate::data::{RecvBuffer, SendBuffer};
use crate::shm::layout::SLOTS;
use crate::shm::transfer::{Line, Marks};
use crate::shm::{CopyWay, CrossAttach};
use crate::wait::Waiter;

/// Two ranks, of which the first has sources and the second targets.
struct Ways {
    a: Member,
    b: Member,
    to_b: EndpointId,
    to_a: EndpointId,
    clock: ManualClock,
    numbers: Numbers,
    tokens: u64,
}

/// Bytes behind a target, which nobody may write.
const BEHIND: usize = 64;

/// A transfer under way.
struct Moving {
    token: u64,
    source: Vec<u8>,
    target: Vec<u8>,
}

impl Moving {
    fn data(&self) -> SendBuffer {
        // SAFETY: whoever calls keeps both buffers until the transfer has ended, or nobody moves it any more.
        unsafe { SendBuffer::contiguous(self.source.as_ptr(), self.source.len()) }
    }

    fn room(&mut self, len: usize) -> RecvBuffer {
        assert!(len <= self.target.len());
        // SAFETY: as above; nobody looks at the target meanwhile.
        unsafe { RecvBuffer::contiguous(self.target.as_mut_ptr(), len) }
    }

    /// Checks that all bytes are there, and none besides.
    fn check(&self) {
        let (target, behind) = self.target.split_at(self.source.len());
        assert!(self.source == target, "wrong bytes");
        assert!(behind.iter().all(|byte| *byte == 0xee));
    }
}

impl Ways {
    fn new(way: Option<CopyWay>) -> Self {
        let (clock, job) = (ManualClock::default(), LocalJob::new(2).unwrap());
        let options = ShmOptions {
            way,
            ..ShmOptions::default()
        };
        let open = |rank| {
            let mut member = job.member(Rank::new(rank)).with_clock(clock.clock());
            let shm = Shm::open(options.clone(), &mut member).unwrap();
            let log = Log::default();
            Member { shm, log }
        };
        let (mut a, mut b) = (open(0), open(1));
        let (to_b, to_a) = (connect(&mut a, &b), connect(&mut b, &a));
        for _ in 0..3 {
            a.progress();
            b.progress();
        }
        Self {
            a,
            b,
            to_b,
            to_a,
            clock,
            numbers: Numbers(5),
            tokens: 0,
        }
    }

    /// Begins a transfer of `len` bytes: of data that is taken, or into memory that is filled.
    fn begin(&mut self, len: usize, fills: bool) -> Moving {
        let mut moving = self.make(len);
        if fills {
            let room = moving.room(len);
            let token = Token(moving.token);
            let Offer::Open(ticket) = self.b.shm.offer_recv(LANE, self.to_a, &room, token) else {
                panic!("no offer")
            };
            let data = moving.data();
            let post = self.a.shm.fill(LANE, self.to_b, ticket, &data, token);
            assert_eq!(post, Post::Posted);
        } else {
            let ticket = self.offer(&moving);
            self.claim(&mut moving, ticket, len);
        }
        moving
    }

    /// A source of `len` bytes, and its target.
    fn make(&mut self, len: usize) -> Moving {
        self.tokens += 1;
        Moving {
            token: self.tokens,
            source: periodic(len, 251 * 256, |at| {
                (at * 7 + at / 251 + self.tokens as usize) as u8
            }),
            target: vec![0xee; len + BEHIND],
        }
    }

    fn offer(&mut self, moving: &Moving) -> Ticket {
        let token = Token(moving.token);
        match self.a.shm.offer(LANE, self.to_b, &moving.data(), token) {
            Offer::Open(ticket) => ticket,
            _ => panic!("no offer"),
        }
    }

    /// Claims an offer, for the first `len` bytes of the target.
    fn claim(&mut self, moving: &mut Moving, ticket: Ticket, len: usize) {
        let (room, token) = (moving.room(len), Token(moving.token));
        let post = self.b.shm.claim(LANE, self.to_a, ticket, &room, token);
        assert_eq!(post, Post::Posted);
    }

    /// What the descriptor of an offer says of its claim.
    fn marks(&self, ticket: Ticket) -> Marks {
        let area = self.b.shm.peers[self.to_a.index()].inbound.clone();
        let line = Line::of(area.unwrap(), ticket);
        Marks::of_bits(line.get().claimed.load(Ordering::Relaxed))
    }

    /// Lets both make progress, in turns of random length, until a transfer has ended on both sides.
    fn finish(&mut self, moving: Moving) {
        let done = (moving.token, Outcome::Done(moving.source.len() as u64));
        for _ in 0..100_000 {
            self.clock.advance(Duration::from_nanos(200));
            match self.numbers.below(2) {
                0 => self.a.progress(),
                _ => self.b.progress(),
            };
            if [&self.a, &self.b]
                .iter()
                .all(|member| member.log.completions.contains(&done))
            {
                moving.check();
                self.a.log.completions.retain(|end| *end != done);
                self.b.log.completions.retain(|end| *end != done);
                return;
            }
        }
        panic!("{:?} {:?}", self.a.log.completions, self.b.log.completions);
    }

    fn assert_alive(&self) {
        let [a, b] = [&self.a, &self.b].map(|member| &member.log.protocol);
        assert!(a.is_empty() && b.is_empty(), "{a:?} {b:?}");
    }

    fn ways(&self) -> String {
        let mut lines = Vec::new();
        self.a.shm.ways(&mut lines);
        self.b.shm.ways(&mut lines);
        lines.join("\n")
    }
}

const LENGTHS: [usize; 9] = [
    1,
    40,
    4096,
    4097,
    8_191,
    40_000,
    65_536,
    300_001,
    (1 << 20) + 17,
];

#[test]
fn each_way_moves_every_length_in_both_roles() {
    for way in CopyWay::ALL {
        let mut ways = Ways::new(Some(way));
        for fills in [false, true] {
            for len in LENGTHS {
                let moving = ways.begin(len, fills);
                ways.finish(moving);
            }
        }
        ways.assert_alive();
        let named = format!(": {}, ", way.name());
        assert!(ways.ways().contains(&named), "{}", ways.ways());
    }
}

#[test]
fn many_transfers_and_messages_go_at_once() {
    for way in [None, Some(CopyWay::Ring)] {
        let mut ways = Ways::new(way);
        for round in 0..60 {
            let count = 1 + ways.numbers.below(12);
            let moving: Vec<_> = (0..count)
                .map(|_| {
                    let len = ways.numbers.below(200_000) as usize;
                    let fills = ways.numbers.below(2) == 1;
                    ways.begin(len, fills)
                })
                .collect();
            for number in 0..ways.numbers.below(40) {
                let data = vec![round as u8; 100 * number as usize];
                let _ = ways.a.send(ways.to_b, Class::Data, number, &data);
            }
            moving.into_iter().for_each(|moving| ways.finish(moving));
            while ways.b.progress() > 0 {}
            ways.b.log.messages.drain(..).for_each(|(_, number, data)| {
                assert_eq!(data, vec![round as u8; 100 * number as usize]);
            });
        }
        ways.assert_alive();
    }
}

/// Trials in traffic: by a clock that each call of progress moves on, all ways are tried, and every byte arrives.
#[test]
fn trials_move_every_byte() {
    let mut ways = Ways::new(None);
    let mut tried = [false; 3];
    // At times a candidate has to wait for its next turn, where its other side happened not to copy.
    for round in 0..20_000 {
        if tried.iter().all(|tried| *tried) && round >= 400 {
            break;
        }
        let moving = ways.begin(65_536, round % 2 == 1);
        let claims = ways.a.shm.peers[ways.to_b.index()]
            .outbound
            .clone()
            .unwrap();
        for line in &claims.offers {
            tried[(line.claimed.load(Ordering::Relaxed) >> 5 & 3) as usize] = true;
        }
        ways.finish(moving);
    }
    ways.assert_alive();
    assert!(tried.iter().all(|tried| *tried), "{tried:?}");
    assert!(
        ways.ways().contains("sent, up to 64 KiB: "),
        "{}",
        ways.ways()
    );
}

/// Of messages that move beside each other, too, all ways are tried, and every byte arrives.
#[test]
fn trials_of_messages_beside_each_other_move_every_byte() {
    let mut ways = Ways::new(None);
    let is_known = |ways: &Ways| {
        ways.ways()
            .contains("received beside others, up to 64 KiB: ")
    };
    for _ in 0..4000 {
        if is_known(&ways) {
            break;
        }
        let moving: Vec<_> = (0..16).map(|_| ways.begin(65_536, false)).collect();
        moving.into_iter().for_each(|moving| ways.finish(moving));
    }
    ways.assert_alive();
    assert!(is_known(&ways), "{}", ways.ways());
}

/// Pieces for many transfers come one after the other: the receiver takes those out, and copies meanwhile what would come last.
#[test]
fn many_transfers_go_from_both_ends() {
    let mut ways = Ways::new(Some(CopyWay::Ring));
    let moving: Vec<_> = (0..24).map(|_| ways.begin(65_536, false)).collect();
    while ways.b.log.completions.len() < moving.len() {
        // The receiver looks more often than the sender stages.
        ways.a.progress();
        for _ in 0..8 {
            ways.clock.advance(Duration::from_micros(5));
            ways.b.progress();
        }
    }
    let area = ways.b.shm.peers[ways.to_a.index()].inbound.clone().unwrap();
    let lines = area.offers.iter().take(moving.len());
    let by_claimer: Vec<_> = lines
        .map(|line| line.claims.load(Ordering::Relaxed) as u32 & (u32::MAX >> 1))
        .collect();
    let count = by_claimer.len();
    assert_eq!(by_claimer[..6], [0; 6], "{by_claimer:?}");
    assert_eq!(by_claimer[count - 6..], [16; 6], "{by_claimer:?}");
    moving.into_iter().for_each(|moving| ways.finish(moving));
}

/// One whose pieces are waited for is not copied before it has been waited for in vain, however many there are behind it.
#[test]
fn the_first_of_many_is_waited_for() {
    let mut ways = Ways::new(Some(CopyWay::Ring));
    let moving: Vec<_> = (0..6).map(|_| ways.begin(65_536, false)).collect();
    let area = ways.b.shm.peers[ways.to_a.index()].inbound.clone().unwrap();
    let by_claimer = |at: usize| {
        let claims = area.offers[at].claims.load(Ordering::Relaxed);
        claims as u32 & (u32::MAX >> 1)
    };
    for _ in 0..80 {
        ways.clock.advance(Duration::from_micros(1));
        ways.b.progress();
    }
    assert_eq!([0, 1, 5].map(by_claimer), [0, 16, 16]);
    for _ in 0..80 {
        ways.clock.advance(Duration::from_micros(1));
        ways.b.progress();
    }
    assert_eq!(by_claimer(0), 16);
    moving.into_iter().for_each(|moving| ways.finish(moving));
}

/// A sender that computes does not hold up a receiver for long which waits for its pieces: it copies by the kernel.
#[test]
fn who_waits_for_pieces_in_vain_copies() {
    for way in [CopyWay::Ring, CopyWay::OneSide] {
        let mut ways = Ways::new(Some(way));
        let moving = ways.begin(100_000, way == CopyWay::OneSide);
        // The receiver alone makes progress.
        for _ in 0..10_000 {
            ways.clock.advance(Duration::from_micros(1));
            ways.b.progress();
        }
        moving.check();
        ways.finish(moving);
    }
}

/// A receiver that computes takes no pieces out: its sender copies the rest by the kernel, and fills an exposed receive without it.
#[test]
fn who_waits_for_space_in_vain_copies() {
    for fills in [false, true] {
        let mut ways = Ways::new(Some(CopyWay::Ring));
        let moving = ways.begin(300_000, fills);
        // The sender alone makes progress.
        for _ in 0..10_000 {
            ways.clock.advance(Duration::from_micros(1));
            ways.a.progress();
        }
        if fills {
            moving.check();
        }
        // What is left to the receiver is what the ring holds.
        ways.b.progress();
        moving.check();
        ways.finish(moving);
        ways.assert_alive();
    }
}

/// A rank that sleeps looks twice in 50 ms: it waits as long as one that spins, and its sleeps are bounded while it does.
#[test]
fn who_sleeps_waits_no_longer() {
    for (way, fills) in [(CopyWay::Ring, false), (CopyWay::OneSide, true)] {
        let mut ways = Ways::new(Some(way));
        // Always, where the system has no barriers.
        let always = ways.b.shm.waiter.is_bounded();
        let moving = ways.begin(100_000, fills);
        ways.b.progress();
        assert!(ways.b.shm.waiter.is_bounded(), "{way:?}");
        for _ in 0..8 {
            ways.clock.advance(Duration::from_millis(25));
            ways.b.progress();
        }
        moving.check();
        ways.finish(moving);
        assert_eq!(ways.b.shm.waiter.is_bounded(), always);
    }
}

/// Whoever takes the last pieces out, in a call that looks at nothing else, wakes the sender: its transfer is complete.
#[test]
fn the_last_piece_wakes_its_sender() {
    let mut ways = Ways::new(Some(CopyWay::Ring));
    let moving = ways.begin(30_000, false);
    for _ in 0..8 {
        ways.a.progress();
    }
    let key = ways.a.shm.waiter.arm();
    let word = &ways.a.shm.header.sleeping.word;
    assert_eq!(word.load(Ordering::Relaxed), key.0);
    let b = &mut ways.b.shm;
    let way = &mut b.inbound[0];
    assert!(b.transfers.take_pieces(way) > 1);
    assert_ne!(word.load(Ordering::Relaxed), key.0);
    ways.a.shm.waiter.disarm();
    ways.finish(moving);
}

#[test]
fn a_death_in_the_middle_ends_the_other_side() {
    for steps in 0..30 {
        for (fills, source_dies) in [(false, false), (false, true), (true, false), (true, true)] {
            let mut ways = Ways::new(Some(CopyWay::Ring));
            let moving = ways.begin(200_000, fills);
            for _ in 0..steps {
                ways.a.progress();
                ways.b.progress();
            }
            let Ways { a, b, .. } = ways;
            let (dies, mut stays) = if source_dies { (a, b) } else { (b, a) };
            drop(dies);
            for _ in 0..10 {
                stays.progress();
                stays.look_after_peers();
            }
            let ends: Vec<_> = stays.log.completions.iter().map(|end| end.1).collect();
            let done = Outcome::Done(200_000);
            assert!(ends == [Outcome::PeerFailed] || ends == [done], "{ends:?}");
            if ends == [done] {
                moving.check();
            }
        }
    }
}

/// What a peer writes about pieces at random: a peer failure at most, and no byte outside of the buffer that it may fill.
#[test]
fn pieces_that_lie_end_their_sender() {
    let mut found = 0;
    for seed in 0..300 {
        let mut ways = Ways::new(Some(CopyWay::Ring));
        ways.numbers = Numbers(seed);
        let moving = ways.begin(50_000, false);
        ways.b.progress();
        ways.a.progress();
        let area = ways.a.shm.peers[ways.to_b.index()]
            .outbound
            .clone()
            .unwrap();
        for _ in 0..4 {
            let slot = &area.slots[ways.numbers.below(16) as usize % SLOTS];
            let word = 1 + ways.numbers.below(2) as usize;
            let value = ways.numbers.next() >> ways.numbers.below(64);
            slot.words[word].store(value, Ordering::Relaxed);
            let kind = ways.numbers.below(4) << 32;
            slot.words[0].fetch_xor(kind, Ordering::Relaxed);
        }
        let mut log = Silent::default();
        for _ in 0..40 {
            ways.b.shm.progress(LANE, &mut log);
            ways.a.shm.progress(LANE, &mut Silent::default());
        }
        found += log.broken;
        assert!(log.broken <= 1, "one peer is ended once");
        assert!(log.ends <= 1, "a transfer ends once");
        if log.broken == 1 {
            assert_eq!(log.ends, 1, "no receive waits for a peer that is ended");
        }
        let behind = &moving.target[moving.source.len()..];
        assert!(behind.iter().all(|byte| *byte == 0xee));
        drop(ways);
    }
    assert!(found > 20, "{found} of 300");
}

/// Opens a job of one rank, and returns what is said where it cannot.
fn opened(options: ShmOptions) -> Result<(), String> {
    let job = LocalJob::new(1).unwrap();
    let opened = Shm::open(options, &mut job.member(Rank::new(0)));
    opened.map(drop).map_err(|error| error.to_string())
}

#[test]
fn a_way_that_cannot_be_used_is_refused_by_name() {
    let open = |way, cross_attach, matches| {
        let options = ShmOptions {
            way: Some(way),
            cross_attach,
            matches,
            ..ShmOptions::default()
        };
        opened(options)
    };
    for (way, attach, matches, reason) in [
        (CopyWay::OneSide, CrossAttach::Off, false, "shm-cma is off"),
        (CopyWay::Halves, CrossAttach::Off, false, "shm-cma is off"),
        (CopyWay::Halves, CrossAttach::Off, true, "shm-cma is off"),
        (CopyWay::Ring, CrossAttach::Auto, true, "pml=cm"),
        (CopyWay::OneSide, CrossAttach::Auto, true, "pml=cm"),
    ] {
        let error = open(way, attach, matches).unwrap_err();
        let names = ["shm-way", way.name(), reason];
        assert!(names.iter().all(|name| error.contains(name)), "{error}");
    }
    assert_eq!(open(CopyWay::Ring, CrossAttach::Off, false), Ok(()));
    assert_eq!(open(CopyWay::Halves, CrossAttach::Auto, true), Ok(()));
}

#[test]
fn reuse_without_rooms_is_refused_by_name() {
    let open = |room, matches| {
        let options = ShmOptions {
            reuse: Some(true),
            room,
            matches,
            ..ShmOptions::default()
        };
        opened(options)
    };
    for (room, matches, reason) in [(Some(0), false, "shm-room is 0"), (None, true, "pml=cm")] {
        let error = open(room, matches).unwrap_err();
        let names = ["shm-reuse", "on", reason];
        assert!(names.iter().all(|name| error.contains(name)), "{error}");
    }
    assert_eq!(open(None, false), Ok(()));
}

/// Counts broken peers and completions, and takes any message.
#[derive(Default)]
struct Silent {
    broken: usize,
    ends: usize,
}

impl Upcalls for Silent {
    fn deliver(&mut self, _: Arrival<'_>) {}
    fn complete(&mut self, _: Token, _: Outcome) {
        self.ends += 1;
    }
    fn peer(&mut self, event: PeerEvent) {
        self.broken += usize::from(matches!(event, PeerEvent::Protocol(..)));
    }
}

/// Where the last transfers went through the ring, an offer is begun before it is claimed; what came early counts where its receiver was waiting.
#[test]
fn what_is_staged_before_the_claim_counts() {
    for len in LENGTHS.into_iter().filter(|len| *len > 64) {
        let mut ways = Ways::new(Some(CopyWay::Ring));
        let mut moving = ways.make(len);
        let ticket = ways.offer(&moving);
        let before = ways.a.shm.outbound[ways.to_b.index()]
            .as_ref()
            .unwrap()
            .producer
            .sent();
        ways.a.progress();
        let out = ways.a.shm.outbound[ways.to_b.index()].as_ref().unwrap();
        assert_ne!(out.producer.sent(), before, "{len}");
        ways.claim(&mut moving, ticket, len);
        assert!(ways.marks(ticket).keeps);
        if len <= 40_000 {
            // All of it is there: the receiver needs nothing of its sender.
            ways.b.progress();
            moving.check();
        }
        ways.finish(moving);
        ways.assert_alive();
    }
}

/// A receiver that was not waiting throws away what came, in part or all, and gets all of it later; after that its sender is more careful.
#[test]
fn what_is_staged_in_vain_comes_again() {
    let mut ways = Ways::new(Some(CopyWay::Ring));
    let mut staged = 0;
    for round in 0..200 {
        let len = 1 + ways.numbers.below(400_000) as usize;
        let mut moving = ways.make(len);
        let ticket = ways.offer(&moving);
        let mut was_thrown = false;
        for _ in 0..ways.numbers.below(5) {
            ways.a.progress();
            if ways.numbers.below(2) == 0 {
                was_thrown |= ways.b.progress() > 0;
            }
        }
        staged += usize::from(was_thrown);
        ways.claim(&mut moving, ticket, len);
        assert!(!was_thrown || !ways.marks(ticket).keeps, "round {round}");
        ways.finish(moving);
    }
    ways.assert_alive();
    assert!((3..60).contains(&staged), "{staged}");
}

/// Data that is cut off begins anew, and an offer that is taken back leaves nothing.
#[test]
fn what_is_staged_and_not_wanted_does_no_harm() {
    let mut ways = Ways::new(Some(CopyWay::Ring));
    for round in 0..20 {
        let mut moving = ways.make(60_000);
        let ticket = ways.offer(&moving);
        ways.a.progress();
        if round % 2 == 0 {
            ways.claim(&mut moving, ticket, 10_001);
            assert!(!ways.marks(ticket).keeps);
            for _ in 0..50 {
                ways.clock.advance(Duration::from_micros(10));
                ways.a.progress();
                ways.b.progress();
            }
            assert_eq!(moving.target[..10_001], moving.source[..10_001]);
            assert!(moving.target[10_001..].iter().all(|byte| *byte == 0xee));
        } else {
            ways.a.shm.withdraw(ways.to_b, ticket);
            for _ in 0..5 {
                ways.a.progress();
                ways.b.progress();
            }
            assert!(moving.target.iter().all(|byte| *byte == 0xee));
        }
        let ends = ways.a.log.completions.drain(..);
        assert_eq!(ends.count(), 1);
        ways.b.log.completions.clear();
    }
    ways.assert_alive();
    let moving = ways.begin(60_000, false);
    ways.finish(moving);
}

/// Messages of `len` that do not go ahead are offered, and claimed at once, or after a look of the receiver where it `is_late`. Returns how many went
/// ahead.
fn ahead_of(ways: &mut Ways, messages: usize, len: usize, is_late: bool) -> usize {
    let mut ahead = 0;
    for _ in 0..messages {
        let mut moving = ways.make(len);
        if ways.a.shm.goes_ahead(ways.to_b, &moving.data()) {
            // Nothing of it is sent here.
            ahead += 1;
            continue;
        }
        let ticket = ways.offer(&moving);
        ways.a.progress();
        if is_late {
            ways.b.progress();
        }
        ways.claim(&mut moving, ticket, len);
        ways.finish(moving);
    }
    ahead
}

/// Messages go ahead of their match once offers of their length went through the ring and were claimed in time, but for one now and then.
#[test]
fn what_goes_through_the_ring_in_time_goes_ahead() {
    for (len, goes) in [
        (20_000, true),
        (60_000, true),
        (200_000, true),
        (3 << 20, false),
    ] {
        let mut ways = Ways::new(Some(CopyWay::Ring));
        assert_eq!(ahead_of(&mut ways, 8, len, false), 0);
        let ahead = ahead_of(&mut ways, 320, len, false);
        assert_eq!(ahead, if goes { 310 } else { 0 }, "{len}");
        ways.assert_alive();
    }
}

/// By the kernel's copies none does, nor where the receiver is late, and once it is none does any more.
#[test]
fn what_is_late_or_goes_by_the_kernel_is_offered() {
    for way in [CopyWay::Halves, CopyWay::OneSide] {
        let mut ways = Ways::new(Some(way));
        assert_eq!(ahead_of(&mut ways, 100, 60_000, false), 0);
    }
    let mut ways = Ways::new(Some(CopyWay::Ring));
    assert_eq!(ahead_of(&mut ways, 100, 60_000, true), 0);
    let mut ways = Ways::new(Some(CopyWay::Ring));
    assert!(ahead_of(&mut ways, 100, 60_000, false) > 80);
    // Those that are left of the last offer's.
    assert!(ahead_of(&mut ways, 100, 60_000, true) < 32);
    assert_eq!(ahead_of(&mut ways, 100, 60_000, true), 0);
}
