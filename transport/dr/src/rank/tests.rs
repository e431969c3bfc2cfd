//! What hostile members send: right checksums, and anything behind them.

use tagwire_sim::{SimNetwork, SimOptions, SimTransport};
use tagwire_transport::fault::SplitMix64;

use super::*;
use crate::rail::LANE;
use crate::wire;

#[derive(Default)]
struct Log {
    messages: Vec<(AmHeader, Vec<u8>)>,
    events: Vec<String>,
}

impl Upcalls for Log {
    fn deliver(&mut self, arrival: Arrival<'_>) {
        self.messages
            .push((arrival.header, arrival.payload.to_vec()));
    }

    fn complete(&mut self, _: Token, _: Outcome) {}

    fn peer(&mut self, event: PeerEvent) {
        match event {
            PeerEvent::Up { .. } => {}
            PeerEvent::Protocol(_, error) => self.events.push(error.to_string()),
            other => self.events.push(format!("{other:?}")),
        }
    }
}

/// A rank under dr, and a member that writes packets itself.
struct Pair {
    dr: Dr,
    log: Log,
    hostile: SimTransport,
    to: EndpointId,
    start: u32,
}

impl Pair {
    fn new() -> Self {
        let network = SimNetwork::new(2, SimOptions::default());
        let (own, member) = (Rank::new(0), Rank::new(1));
        let inside = Box::new(network.rank(own));
        let mut hostile = network.rank(member);
        let to = hostile.connect(own, &inside.address()).unwrap();
        Self {
            dr: Dr::new(inside, own, DrOptions::default()).unwrap(),
            log: Log::default(),
            hostile,
            to,
            start: wire::start(member, own),
        }
    }

    fn post(&mut self, header: AmHeader, payload: &[u8]) {
        while self
            .hostile
            .send(LANE, self.to, Class::Data, header, payload)
            == Post::Busy
        {
            self.progress();
        }
        self.progress();
    }

    /// Sends what a correct peer would have to check, with a right checksum.
    fn send(&mut self, header: Header, payload: &[u8]) {
        self.post(header.seal(self.start, payload), payload);
    }

    fn progress(&mut self) {
        self.dr.progress(LANE, &mut self.log);
        self.hostile.progress(LANE, &mut Log::default());
    }
}

const fn header(kind: Kind, number: u32, consumed: u32) -> Header {
    Header {
        kind,
        is_urgent: false,
        is_overdue: false,
        is_final: false,
        is_again: false,
        number,
        consumed,
    }
}

#[test]
fn each_offence_ends_the_peer_with_its_reason() {
    let above = [7; ABOVE];
    let offences: [(Header, &[u8], &str); 5] = [
        (header(Kind::Message, 0, 0), &above[1..], "without a header"),
        (header(Kind::Message, WINDOW, 0), &above, "too far ahead"),
        (header(Kind::Message, 0, 1), &above, "never sent"),
        (header(Kind::Note, 0, 0), &above, "another length"),
        (header(Kind::Note, 0, 0), &[0; 100], "another length"),
    ];
    for (header, payload, reason) in offences {
        let mut pair = Pair::new();
        pair.send(header, payload);
        let [event] = &pair.log.events[..] else {
            panic!("{reason}: {:?}", pair.log.events);
        };
        assert!(
            event.contains("rank 1") && event.contains(reason),
            "{event}"
        );
        pair.send(self::header(Kind::Message, 0, 0), &above);
        assert!(pair.log.messages.is_empty(), "it is dead");
        let post = pair
            .dr
            .send(LANE, EndpointId(0), Class::Data, AmHeader::default(), b"");
        assert_eq!(post, Post::Gone);
    }
}

#[test]
fn a_header_of_unknown_kind_or_flags_is_an_offence() {
    for first in [4, 0xff, 1 << 10, 1 << 11, 1 << 12, 1 << 31] {
        let mut pair = Pair::new();
        let crc = crate::crc::with_words(pair.start, [first, 0], &[]);
        pair.post(AmHeader([first, u64::from(crc) << 32]), &[]);
        assert!(pair.log.events[0].contains("a header that is none"));
    }
}

#[test]
fn wrong_checksums_are_counted_and_nothing_else() {
    let mut pair = Pair::new();
    let mut random = SplitMix64::new(3);
    for _ in 0..10_000 {
        let len = random.below(300) as usize;
        let words = [random.next_u64(), random.next_u64()];
        pair.post(AmHeader(words), &random.bytes(len));
    }
    assert_eq!(pair.dr.counters().corrupt, 10_000);
    assert!(pair.log.messages.is_empty() && pair.log.events.is_empty());
    pair.send(header(Kind::Message, 0, 0), &[9; ABOVE + 1]);
    assert_eq!(pair.log.messages.len(), 1, "the peer itself is alive");
}

/// Anything behind a right checksum is a message, an acknowledgement or the end of the peer, and leaves little memory behind.
#[test]
fn no_packet_does_more_than_end_its_sender() {
    for seed in 0..300 {
        let mut random = SplitMix64::new(seed);
        let mut pair = Pair::new();
        let back = pair.hostile.progress(LANE, &mut Log::default());
        assert_eq!(back, 0);
        for _ in 0..100 {
            let near = |random: &mut SplitMix64| match random.below(3) {
                0 => random.below(4) as u32,
                1 => random.below(300) as u32,
                _ => random.next_u64() as u32,
            };
            let kinds = [Kind::Message, Kind::Note, Kind::Goodbye, Kind::End];
            // One in a hundred is an end, behind which nothing else is looked at.
            let kind = kinds[random.below(100) as usize / 33];
            let header = Header {
                is_urgent: random.chance(50),
                is_overdue: random.chance(50),
                is_final: kind == Kind::Note && random.chance(50),
                is_again: kind == Kind::Note && random.chance(50),
                ..header(kind, near(&mut random), near(&mut random) % 3)
            };
            let len = [0, 16, 20, 32, 400][random.below(5) as usize];
            pair.send(header, &random.bytes(len));
            if random.chance(20) {
                // Not answered Busy for ever, and no panic.
                let _ = pair
                    .dr
                    .send(LANE, EndpointId(0), Class::Data, AmHeader::default(), b"x");
            }
        }
        assert!(
            pair.log.events.len() <= 1,
            "seed {seed}: {:?}",
            pair.log.events
        );
        assert!(pair.log.messages.len() <= 100);
    }
}

#[test]
fn a_silent_peer_has_no_state() {
    let network = SimNetwork::new(3, SimOptions::default());
    let open = |rank| {
        let rank = Rank::new(rank);
        Dr::new(Box::new(network.rank(rank)), rank, DrOptions::default()).unwrap()
    };
    let (mut a, b, c) = (open(0), open(1), open(2));
    let to = a.connect(Rank::new(1), &b.address()).unwrap();
    a.connect(Rank::new(2), &c.address()).unwrap();
    assert_eq!(a.core.links.iter().count(), 0);
    let post = a.send(LANE, to, Class::Data, AmHeader::default(), b"x");
    assert_eq!((post, a.core.links.iter().count()), (Post::Posted, 1));
}
