//! What a rank takes of what comes, and what it does not. Skipped, loudly, where there is no libfabric.

use tagwire_base::bootstrap::LocalJob;
use tagwire_transport::{Outcome, Token};

use super::*;

#[derive(Default)]
struct Log {
    messages: Vec<(EndpointId, Vec<u8>)>,
    ups: Vec<Rank>,
}

impl Upcalls for Log {
    fn deliver(&mut self, arrival: Arrival<'_>) {
        self.messages.push((arrival.from, arrival.payload.to_vec()));
    }

    fn complete(&mut self, _: Token, _: Outcome) {}

    fn peer(&mut self, event: PeerEvent) {
        if let PeerEvent::Up { rank, .. } = event {
            self.ups.push(rank);
        }
    }
}

/// Rank 0 of a job of three.
fn open() -> Option<OfiDatagram> {
    let options = OfiOptions {
        provider: "udp".to_owned(),
        source: "127.0.0.1".to_owned(),
        ..OfiOptions::default()
    };
    let job = LocalJob::new(3).unwrap();
    match OfiDatagram::open(&options, &job.member(Rank::new(0))) {
        Ok(rank) => Some(rank),
        Err(error) => {
            println!("SKIPPED: {error}");
            None
        }
    }
}

impl OfiDatagram {
    /// Returns a datagram that rank `from` sends to this one, as its `count`-th.
    fn datagram_of(&self, from: u32, count: u64, address: Option<&Address>) -> Vec<u8> {
        let way = wire::Way {
            from: Rank::new(from),
            to: self.rank,
            at: &self.published,
        };
        let mut bytes = Vec::new();
        let address = address.map(Address::encode).unwrap_or_default();
        let words = AmHeader([7, 8]);
        wire::write(way, count, words, &self.secret, &address, &mut bytes);
        bytes.extend([from as u8, count as u8]);
        bytes
    }
}

#[test]
fn what_was_overheard_is_taken_once() {
    let Some(mut rank) = open() else {
        return;
    };
    let mut log = Log::default();
    let address = Address {
        rank: Rank::new(1),
        ..rank.address.clone()
    };
    for count in [1, 2] {
        let datagram = rank.datagram_of(1, count, Some(&address));
        assert!(rank.take(&datagram, &mut log));
        for _ in 0..3 {
            assert!(!rank.take(&datagram, &mut log));
        }
    }
    let payloads: Vec<_> = log.messages.iter().map(|(_, bytes)| &bytes[..]).collect();
    assert_eq!(payloads, [[1, 1], [1, 2]]);
    assert_eq!((rank.repeated, rank.foreign), (6, 0));
    let mut text = String::new();
    rank.describe(&mut text);
    assert!(text.contains("0 datagrams that are not the job's, 6 that had come before"));
}

#[test]
fn who_has_no_way_back_is_no_peer() {
    let Some(mut rank) = open() else {
        return;
    };
    let mut log = Log::default();
    // Nothing is known of where rank 1 is.
    let lost = rank.datagram_of(1, 1, None);
    assert!(!rank.take(&lost, &mut log));
    let nowhere = Address {
        rank: Rank::new(1),
        name: vec![0xff; rank.address.name.len()],
        ..rank.address.clone()
    };
    let datagram = rank.datagram_of(1, 2, Some(&nowhere));
    assert!(!rank.take(&datagram, &mut log));
    assert!(rank.connect(Rank::new(1), &nowhere.encode()).is_err());
    // What does not say where it is has no way to be answered.
    let datagram = rank.datagram_of(1, 3, None);
    assert!(!rank.take(&datagram, &mut log));
    assert!(rank.links.is_empty() && log.ups.is_empty());
    let address = Address {
        name: rank.address.name.clone(),
        ..nowhere
    };
    let datagram = rank.datagram_of(1, 4, Some(&address));
    assert!(rank.take(&datagram, &mut log));
    assert_eq!(log.ups, [Rank::new(1)]);
    let (from, _) = log.messages[0];
    let post = rank.send(Lane(0), from, Class::Data, AmHeader::default(), b"back");
    assert_eq!(post, Post::Posted);
}
