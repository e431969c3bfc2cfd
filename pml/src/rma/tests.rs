//! What peers say that is wrong, and how much is under way at a time.
#![allow(unsafe_code)]

use std::sync::Arc;

use tagwire_base::{Clock, Rank};
use tagwire_transport::{
    AmHeader, Capabilities, EndpointId, Limits, Outcome, Payload, RecvBuffer, SendBuffer,
};
use zerocopy::IntoBytes;

use super::access::Way;
use super::initiator::Rma;
use super::wire::{AtomicBody, FRONT, GetBody};
use super::{Atomic, Key, Remote, What};
use crate::error::Error;
use crate::packet::{ControlHeader, Kind};
use crate::peers::{Living, PeerIndex};
use crate::service::{Out, Service, Terms, Tokens, Wire, Wrong};
use crate::slab::Handle;
use crate::types::Failure;

const OWNER: PeerIndex = PeerIndex(3);
const OTHER: PeerIndex = PeerIndex(4);

/// Bytes of a packet, without what stands in front of them.
const PIECE: usize = 100;

/// What was sent.
#[derive(Default)]
struct Sent(Vec<(PeerIndex, ControlHeader, Vec<u8>)>);

impl Out for Sent {
    fn packet(&mut self, to: PeerIndex, header: ControlHeader, payload: &[u8]) {
        self.0.push((to, header, payload.to_vec()));
    }
}

struct Everybody;

impl Living for Everybody {
    fn is_alive(&self, _: PeerIndex) -> bool {
        true
    }
}

fn rma() -> Rma {
    Rma::new(&Clock::default(), Tokens::of_service(1))
}

/// A region of `length` bytes of the owner's, over a transport of packets alone.
fn target(length: u64) -> Arc<Remote> {
    let terms = Terms {
        peer: OWNER,
        endpoint: EndpointId(0),
        write: 0,
        access: Some((Capabilities::empty(), Limits::copying(64, PIECE + FRONT))),
        carries_partitions: false,
    };
    let key = Key {
        region: Handle::from_wire(5),
        length,
        address: 0,
        memory: Box::default(),
    };
    Arc::new(Remote::new(Rank::new(1), &terms, key, false).unwrap())
}

/// Starts an access; returns its handle and what was sent.
fn start(rma: &mut Rma, target: &Arc<Remote>, what: What) -> (Handle, Sent) {
    let mut sent = Sent::default();
    let wire = &mut Wire {
        rail: None,
        peers: &Everybody,
        out: &mut sent,
    };
    let handle = rma.start(target, 0, what, wire).unwrap();
    (handle, sent)
}

fn drive(rma: &mut Rma) -> Sent {
    let mut sent = Sent::default();
    rma.drive(&mut Wire {
        rail: None,
        peers: &Everybody,
        out: &mut sent,
    });
    sent
}

fn say(
    rma: &mut Rma,
    from: PeerIndex,
    (kind, handle, argument): (Kind, Handle, u64),
    bytes: &[u8],
) -> (Result<(), Wrong>, Sent) {
    let mut sent = Sent::default();
    // As it comes by the wire.
    let header = ControlHeader {
        kind,
        handle,
        argument,
    };
    let AmHeader(words) = header.encode();
    let header = ControlHeader::decode(kind, AmHeader(words));
    let taken = rma.packet(from, header, Payload::from_slice(bytes), &mut sent);
    (taken, sent)
}

fn lent(bytes: &[u8]) -> SendBuffer {
    // SAFETY: the tests keep their bytes for longer than the access.
    unsafe { SendBuffer::contiguous(bytes.as_ptr(), bytes.len()) }
}

fn room(bytes: &mut [u8]) -> RecvBuffer {
    // SAFETY: as above; nobody else touches them.
    unsafe { RecvBuffer::contiguous(bytes.as_mut_ptr(), bytes.len()) }
}

#[test]
fn so_many_pieces_are_under_way_and_no_more() {
    let (mut rma, bytes) = (rma(), vec![7; 20 * PIECE]);
    let target = target(bytes.len() as u64);
    let (put, sent) = start(&mut rma, &target, What::Put(lent(&bytes)));
    assert_eq!(sent.0.len(), 8);
    let lengths = sent.0.iter().map(|(_, _, payload)| payload.len() - FRONT);
    assert_eq!(lengths.sum::<usize>(), 8 * PIECE);
    for piece in 0..20 {
        let (taken, _) = say(&mut rma, OWNER, (Kind::RMA_DONE, put, PIECE as u64), &[]);
        assert_eq!(taken, Ok(()));
        assert_eq!(
            drive(&mut rma).0.len(),
            usize::from(piece < 12),
            "after {piece}"
        );
    }
    assert_eq!(rma.unfinished(), 0);
    assert!(rma.has_ended(put), "and its end is there to be taken");
    assert!(matches!(rma.take(put), Ok(Some(_))));
    assert!(matches!(rma.take(put), Err(Error::StaleRequest)));
    assert!(rma.has_ended(put), "one whose end was taken has ended");
}

#[test]
fn a_flush_leaves_the_ends_of_accesses_that_are_kept() {
    let (mut rma, bytes) = (rma(), [0; 50]);
    let target = target(1000);
    let flush = |rma: &mut Rma| {
        let wire = &mut Wire {
            rail: None,
            peers: &Everybody,
            out: &mut Sent::default(),
        };
        rma.flush(&target, wire)
    };
    let (kept, _) = start(&mut rma, &target, What::Put(lent(&bytes)));
    rma.keep(kept);
    let (other, _) = start(&mut rma, &target, What::Put(lent(&bytes)));
    assert!(matches!(flush(&mut rma), Ok(false)));
    for access in [kept, other] {
        let (taken, _) = say(&mut rma, OWNER, (Kind::RMA_DONE, access, 50), &[]);
        assert_eq!(taken, Ok(()));
    }
    assert!(matches!(flush(&mut rma), Ok(true)));
    assert!(matches!(rma.take(other), Err(Error::StaleRequest)));
    assert!(matches!(rma.take(kept), Ok(Some(_))));
    assert!(matches!(rma.take(kept), Err(Error::StaleRequest)));
}

#[test]
fn replies_that_fit_no_access_are_told() {
    let bytes = [0; 50];
    let target = target(1000);
    let long = u64::MAX;
    for (from, kind, argument, payload) in [
        (OTHER, Kind::RMA_DONE, 50, &[][..]),
        (OWNER, Kind::RMA_DONE, 51, &[]),
        (OWNER, Kind::RMA_DONE, long, &[]),
        (OWNER, Kind::RMA_VALUE, 0, &[]),
        (OWNER, Kind::RMA_DATA, 0, &[1; 50]),
    ] {
        let mut rma = rma();
        let (put, _) = start(&mut rma, &target, What::Put(lent(&bytes)));
        let (taken, _) = say(&mut rma, from, (kind, put, argument), payload);
        assert!(taken.is_err(), "{kind:?} {argument}");
    }
    for (offset, count) in [(0, 51), (1, 50), (50, 1), (long, 2)] {
        let (mut rma, mut bytes) = (rma(), [0; 50]);
        let (get, _) = start(&mut rma, &target, What::Get(room(&mut bytes)));
        let (taken, _) = say(
            &mut rma,
            OWNER,
            (Kind::RMA_DATA, get, offset),
            &vec![1; count],
        );
        assert!(taken.is_err(), "{count} at {offset}");
        assert_eq!(bytes, [0; 50]);
    }
    // Of which the sum is beyond all numbers.
    let (mut rma, bytes) = (rma(), [0; 50]);
    let (put, _) = start(&mut rma, &target, What::Put(lent(&bytes)));
    assert_eq!(
        say(&mut rma, OWNER, (Kind::RMA_DONE, put, 1), &[]).0,
        Ok(())
    );
    assert!(
        say(&mut rma, OWNER, (Kind::RMA_DONE, put, long), &[])
            .0
            .is_err()
    );
    // Of an access that has ended nobody wants to know more.
    let (taken, _) = say(&mut rma, OWNER, (Kind::RMA_DONE, Handle::NONE, 50), &[]);
    assert_eq!(taken, Ok(()));
}

#[test]
fn owners_do_what_lies_in_their_region_and_refuse_the_rest() {
    let (mut rma, mut words) = (rma(), [1_u64, 2, 3, 4]);
    let memory = room(words.as_mut_bytes());
    let (region, _) = {
        let (mut sent, regions) = (Sent::default(), &mut rma.regions);
        let wire = &mut Wire {
            rail: None,
            peers: &Everybody,
            out: &mut sent,
        };
        regions.expose(&memory, wire).unwrap()
    };
    let access = 77_u64.to_le_bytes();
    let reply = |rma: &mut Rma, kind, offset, bytes: &[u8]| {
        let (taken, sent) = say(rma, OTHER, (kind, region, offset), bytes);
        taken.map(|()| (sent.0[0].1.kind, sent.0[0].1.argument, sent.0[0].2.clone()))
    };
    let put = [&access[..], &9_u64.to_le_bytes()].concat();
    for (offset, kind) in [
        (8, Kind::RMA_DONE),
        (25, Kind::RMA_REFUSED),
        (33, Kind::RMA_REFUSED),
        (u64::MAX, Kind::RMA_REFUSED),
    ] {
        assert_eq!(
            reply(&mut rma, Kind::RMA_PUT, offset, &put).unwrap().0,
            kind
        );
    }
    let get = |length: u64| GetBody {
        access: 77.into(),
        length: length.into(),
    };
    let got = reply(&mut rma, Kind::RMA_GET, 8, get(16).as_bytes()).unwrap();
    let expected = [9_u64.to_le_bytes(), 3_u64.to_le_bytes()].concat();
    assert_eq!(got, (Kind::RMA_DATA, 8, expected));
    let refused = reply(&mut rma, Kind::RMA_GET, 17, get(16).as_bytes()).unwrap();
    assert_eq!((refused.0, refused.2.len()), (Kind::RMA_REFUSED, 0));
    let sum = AtomicBody::new(Handle::from_wire(77), Atomic::Sum(5));
    let value = reply(&mut rma, Kind::RMA_ATOMIC, 24, sum.as_bytes()).unwrap();
    assert_eq!((value.0, value.1), (Kind::RMA_VALUE, 4));
    for offset in [4, 32] {
        let refused = reply(&mut rma, Kind::RMA_ATOMIC, offset, sum.as_bytes());
        assert_eq!(refused.unwrap().0, Kind::RMA_REFUSED, "at {offset}");
    }
    let mut none = sum;
    none.operation = 99.into();
    for (kind, bytes) in [
        (Kind::RMA_PUT, &access[..7]),
        (Kind::RMA_GET, &get(8).as_bytes()[..15]),
        (Kind::RMA_GET, get(1 << 20).as_bytes()),
        (Kind::RMA_ATOMIC, &sum.as_bytes()[..31]),
        (Kind::RMA_ATOMIC, none.as_bytes()),
    ] {
        assert!(reply(&mut rma, kind, 0, bytes).is_err(), "{kind:?}");
    }
    assert_eq!(words, [1, 9, 3, 9]);
}

#[test]
fn what_waits_for_the_dead_ends_and_what_the_transport_has_ends_with_that() {
    let (mut rma, bytes) = (rma(), [0; 50]);
    let target = target(1000);
    let (by_packets, _) = start(&mut rma, &target, What::Put(lent(&bytes)));
    let failure = Failure::PeerLeft(Rank::new(1));
    rma.lose(OTHER, failure);
    assert!(!rma.has_ended(by_packets));
    assert!(matches!(rma.take(by_packets), Ok(None)));
    rma.lose(OWNER, failure);
    let ended = rma.take(by_packets);
    assert!(
        matches!(ended, Err(Error::Failed(Failure::PeerLeft(_)))),
        "{ended:?}"
    );
    // What the transport has ends when the transport says so, and nothing goes by packets then.
    let (with_transport, _) = start(&mut rma, &target, What::Put(lent(&bytes)));
    rma.accesses.get_mut(with_transport).unwrap().way = Way::WithTransport;
    rma.lose(OWNER, failure);
    assert!(matches!(rma.take(with_transport), Ok(None)));
    rma.complete(with_transport, Outcome::Impossible, &mut Sent::default());
    assert_eq!(drive(&mut rma).0.len(), 0);
    let ended = rma.take(with_transport);
    assert!(
        matches!(ended, Err(Error::Failed(Failure::PeerLeft(_)))),
        "{ended:?}"
    );
    // A late word of the transport's about what is no access.
    rma.complete(by_packets, Outcome::Done(0), &mut Sent::default());
    assert_eq!(rma.unfinished(), 0);
}
