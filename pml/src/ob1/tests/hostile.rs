//! What no correct peer sends: the peer is given up, and nothing else happens.

use tagwire_transport::{AmHeader, Arrival, Outcome, Payload, PeerEvent, Upcalls};
use zerocopy::IntoBytes;

use super::*;
use crate::ob1::header::{ControlHeader, EnvelopeHeader, Kind};
use crate::ob1::held::PullBody;
use crate::ob1::peer::{Health, PeerIndex};
use crate::slab::Handle;

const PEER: PeerIndex = PeerIndex(0);

/// Rank 0, in contact with rank 1 both ways, and at rest.
fn victim() -> World {
    let mut world = World::pair(MemoryOptions::full());
    for (from, to) in [(0, 1), (1, 0)] {
        world.send(from, to as u32, tag(0), b"hello", SendMode::Standard);
        let source = SourceSelector::exact(Rank::new(from as u32));
        let (received, _) = world.recv(to, source, TagSelector::ANY, 5);
        world.finish(to, received);
    }
    world
}

impl World {
    /// Lets a packet of rank 1 arrive at rank 0 that rank 1 never sent.
    fn forge(&mut self, header: AmHeader, payload: &[u8]) {
        let endpoint = self.ranks[0].core.lane.peers.get(PEER).unwrap().endpoint;
        self.ranks[0].core.deliver(Arrival {
            from: endpoint,
            header,
            payload: Payload::from_slice(payload),
        });
        self.ranks[0].run_pending();
    }

    fn forge_control(&mut self, kind: Kind, handle: Handle, argument: u64, body: &[u8]) {
        let header = ControlHeader {
            kind,
            handle,
            argument,
        };
        self.forge(header.encode(), body);
    }

    fn forge_envelope(&mut self, kind: Kind, length: u32, payload: &[u8]) {
        let header = EnvelopeHeader {
            kind,
            context: WORLD,
            tag: tag(1),
            sequence: self.ranks[0].core.lane.peers.get(PEER).unwrap().next_in,
            length,
        };
        self.forge(header.encode(), payload);
    }

    fn health(&self) -> Health {
        self.ranks[0].core.lane.peers.get(PEER).unwrap().health
    }

    /// A send of rank 0 that was held back, and whose envelope rank 1 has pulled.
    fn pulled_send(&mut self, len: usize) -> RequestId {
        let peer = self.ranks[0].core.lane.peers.get_mut(PEER).unwrap();
        peer.credit.envelopes = 0;
        let sent = self.send(0, 1, tag(1), &pattern(1, len), SendMode::Standard);
        let body = PullBody {
            tag: 1,
            context: 0,
            reserved: 0,
        };
        self.forge_control(Kind::PULL, Handle::NONE, 0, body.as_bytes());
        let peer = self.ranks[0].core.lane.peers.get(PEER).unwrap();
        assert_eq!(peer.pulled, Some((sent.0, 0)), "nothing was pulled");
        sent
    }
}

/// A pulled envelope may come back only while nothing has replied to it: a send whose buffer is lent,
/// or that is over, never goes out again.
#[test]
fn an_envelope_does_not_come_back_after_its_match() {
    for len in [100, 100_000] {
        for answer in [Kind::MATCHED, Kind::FRAGMENTS] {
            let mut world = victim();
            let sent = world.pulled_send(len);
            let receive = Handle::from_wire(0);
            let wanted = (len as u64).to_le_bytes();
            world.forge_control(answer, sent.0, receive.to_wire(), &wanted);
            world.forge_control(Kind::PULL_RETURNED, sent.0, 0, &[]);
            assert_eq!(world.health(), Health::Broken, "{len} bytes, {answer:?}");
            let queue = &world.ranks[0].core.lane.peers.get(PEER).unwrap().queue;
            assert!(queue.is_empty(), "{len} bytes, {answer:?}");
        }
    }
}

#[test]
fn an_envelope_that_was_not_answered_comes_back() {
    let mut world = victim();
    let sent = world.pulled_send(100);
    world.forge_control(Kind::PULL_RETURNED, sent.0, 0, &[]);
    assert_eq!(world.health(), Health::Alive);
    let queue = &world.ranks[0].core.lane.peers.get(PEER).unwrap().queue;
    assert_eq!(queue.front(), Some(&sent.0));
}

#[test]
fn flags_of_another_version_are_refused() {
    for kind in [Kind::MATCH, Kind::HEAD, Kind::RENDEZVOUS] {
        for bit in 8..16 {
            let mut world = victim();
            let header = EnvelopeHeader {
                kind,
                context: WORLD,
                tag: tag(1),
                sequence: world.ranks[0].core.lane.peers.get(PEER).unwrap().next_in,
                length: 8,
            };
            let AmHeader([word, rest]) = header.encode();
            world.forge(AmHeader([word | 1 << bit, rest]), &[0; 32]);
            assert_eq!(world.health(), Health::Broken, "{kind:?}, bit {bit}");
        }
    }
}

/// What ends for a broken peer names it.
#[test]
fn operations_with_a_broken_peer_name_it() {
    let mut world = victim();
    let (receive, _) = world.recv(0, SourceSelector::exact(Rank::new(1)), TagSelector::ANY, 8);
    world.forge(AmHeader([0xff, 0]), &[]);
    let status = world.finish(0, receive);
    assert_eq!(status.failure, Some(Failure::Protocol(Rank::new(1))));
}

/// A transport may end an operation with a peer that has failed before it delivers what that peer has sent before, and before it tells of the failure.
#[test]
fn what_a_peer_sent_before_it_failed_breaks_nothing() {
    let mut world = victim();
    let sent = world.send(0, 1, tag(1), &pattern(1, 100_000), SendMode::Standard);
    world.ranks[0].core.done(sent.0, Outcome::PeerFailed);
    let wanted = 100_000_u64.to_le_bytes();
    world.forge_control(Kind::FRAGMENTS, sent.0, 0, &wanted);
    assert_eq!(world.health(), Health::Alive);
    let status = world.finish(0, sent);
    assert_eq!(status.failure, Some(Failure::PeerFailed(Rank::new(1))));
    let endpoint = world.ranks[0].core.lane.peers.get(PEER).unwrap().endpoint;
    world.ranks[0].core.peer(PeerEvent::Failed(endpoint));
    assert_eq!(world.health(), Health::Failed);
}

#[test]
fn no_message_begins_inside_of_another() {
    for posted in [true, false] {
        for kind in [Kind::HEAD, Kind::MATCH] {
            let mut world = victim();
            if posted {
                world.recv(0, SourceSelector::ANY, TagSelector::ANY, 100);
            }
            world.forge_envelope(Kind::HEAD, 100, &[1; 40]);
            assert_eq!(world.health(), Health::Alive);
            world.forge_envelope(kind, 50, &[2; 50]);
            assert_eq!(world.health(), Health::Broken, "{kind:?}");
        }
    }
}

/// What a peer still says when it is gone is bounded by what it might have said before.
#[test]
fn last_words_are_bounded() {
    for claim in [u32::MAX, 1 << 20] {
        let mut world = victim();
        world.network.fail(Rank::new(1));
        world.ranks[0].look_after_peers();
        assert_eq!(world.health(), Health::Failed);
        world.forge_envelope(Kind::MATCH, 5, b"fine.");
        assert_eq!(world.ranks[0].core.matcher.len(), 1);
        world.forge_envelope(Kind::HEAD, claim, &[1; 64]);
        assert_eq!(world.ranks[0].core.matcher.len(), 1, "{claim} bytes");
    }
    let mut world = victim();
    world.network.fail(Rank::new(1));
    world.ranks[0].look_after_peers();
    for _ in 0..1000 {
        world.forge_envelope(Kind::MATCH, 0, &[]);
    }
    let kept = world.ranks[0].core.matcher.len();
    assert!(kept <= 64, "{kept} envelopes of a dead peer");
}

#[test]
fn batches_hold_whole_messages_and_nothing_else() {
    let header = |kind, sequence, length| {
        EnvelopeHeader {
            kind,
            context: WORLD,
            tag: tag(1),
            sequence,
            length,
        }
        .encode()
    };
    let forge = |change: &dyn Fn(&mut Vec<u8>, tagwire_base::Sequence)| {
        let mut world = victim();
        let next = world.ranks[0].core.lane.peers.get(PEER).unwrap().next_in;
        let mut batch = Vec::new();
        batch.extend_from_slice(header(Kind::MATCH, next, 5).0.as_bytes());
        batch.extend_from_slice(b"first");
        change(&mut batch, next.next());
        world.forge(AmHeader([u64::from(Kind::BATCH.as_byte()), 0]), &batch);
        world.health()
    };
    assert_eq!(forge(&|_, _| {}), Health::Alive);
    let second = |kind, length, bytes: &'static [u8]| {
        move |batch: &mut Vec<u8>, sequence| {
            batch.extend_from_slice(header(kind, sequence, length).0.as_bytes());
            batch.extend_from_slice(bytes);
        }
    };
    assert_eq!(forge(&second(Kind::MATCH, 6, b"second")), Health::Alive);
    assert_eq!(forge(&second(Kind::MATCH, 7, b"second")), Health::Broken);
    assert_eq!(forge(&second(Kind::MATCH, u32::MAX, b"")), Health::Broken);
    assert_eq!(forge(&second(Kind::BATCH, 0, b"")), Health::Broken);
    assert_eq!(forge(&second(Kind::SYNC, 8, &[0; 8])), Health::Broken);
    assert_eq!(forge(&|batch, _| batch.push(1)), Health::Broken);
    // The same message twice.
    let twice = |batch: &mut Vec<u8>, _| batch.extend_from_within(..);
    assert_eq!(forge(&twice), Health::Broken);
}

/// The sender has exposed its bytes, and the transport has no room for the envelope: nobody can know of it.
#[test]
fn an_answer_to_an_envelope_that_is_not_out_is_refused() {
    for kind in [Kind::GOT, Kind::FRAGMENTS] {
        let network = MemoryOptions {
            slots: 4,
            control_slots: 1,
            ..reading()
        };
        let mut world = World::pair(network);
        for (from, to) in [(0, 1), (1, 0)] {
            world.send(from, to as u32, tag(0), b"hello", SendMode::Standard);
            let (received, _) = world.recv(to, SourceSelector::ANY, TagSelector::ANY, 5);
            world.finish(to, received);
        }
        for _ in 0..3 {
            world.send(0, 1, tag(1), b"fills a slot", SendMode::Standard);
        }
        let sent = world.send(0, 1, tag(2), &pattern(1, 100_000), SendMode::Standard);
        assert_eq!(world.network.exposed(), 1, "it has begun");
        let queue = &world.ranks[0].core.lane.peers.get(PEER).unwrap().queue;
        assert_eq!(queue.front(), Some(&sent.0), "its envelope is not out");
        world.forge_control(kind, sent.0, 0, &8_u64.to_le_bytes());
        assert_eq!(world.health(), Health::Broken, "{kind:?}");
        let status = world.finish(0, sent);
        assert_eq!(status.failure, Some(Failure::Protocol(Rank::new(1))));
        assert_eq!(world.network.exposed(), 0, "{kind:?}");
    }
}
