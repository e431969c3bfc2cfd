//! Tests of what is special to shared memory; what all transports have in common is in
//! `tests/shm.rs`, by the conformance kit.

#![allow(unsafe_code, clippy::unwrap_used)]

use std::collections::VecDeque;

use tagwire_base::Rank;
use tagwire_base::bootstrap::LocalJob;

use super::{Shm, ShmOptions};
use crate::byte::ByteTransport;
use crate::capability::Capabilities;
use crate::message::{AmHeader, Arrival, EndpointId, Lane, Outcome, PeerEvent, Token, Upcalls};
use crate::post::{Class, Post};
use crate::transport::Transport;

mod arena;
mod contact;
pub(super) mod deaths;
mod hostile;
mod neighbours;
mod processes;
mod remote;
mod reuse;
mod ring;
mod room;
#[cfg(feature = "coll")]
mod shared;
mod sighting;
mod traffic;
mod transfers;
mod users;
mod ways;
mod writes;

const LANE: Lane = Lane(0);

/// What a rank was told.
#[derive(Default)]
struct Log {
    messages: VecDeque<(EndpointId, u64, Vec<u8>)>,
    completions: Vec<(u64, Outcome)>,
    ups: Vec<(EndpointId, Rank)>,
    left: Vec<EndpointId>,
    failed: Vec<EndpointId>,
    protocol: Vec<(Option<EndpointId>, String)>,
}

impl Upcalls for Log {
    fn deliver(&mut self, arrival: Arrival<'_>) {
        assert_eq!(arrival.header.0[1], !arrival.header.0[0], "torn header");
        self.messages
            .push_back((arrival.from, arrival.header.0[0], arrival.payload.to_vec()));
    }

    fn complete(&mut self, token: Token, outcome: Outcome) {
        self.completions.push((token.0, outcome));
    }

    fn peer(&mut self, event: PeerEvent) {
        match event {
            PeerEvent::Up { endpoint, rank } => self.ups.push((endpoint, rank)),
            PeerEvent::Left(endpoint) => self.left.push(endpoint),
            PeerEvent::Failed(endpoint) => self.failed.push(endpoint),
            PeerEvent::Protocol(endpoint, error) => {
                self.protocol.push((endpoint, error.to_string()));
            }
        }
    }
}

/// A rank and what it was told.
struct Member {
    shm: Shm,
    log: Log,
}

impl Member {
    fn send(&mut self, to: EndpointId, class: Class, number: u64, data: &[u8]) -> Post {
        let header = AmHeader([number, !number]);
        self.shm.send(LANE, to, class, header, data)
    }

    fn progress(&mut self) -> usize {
        self.shm.progress(LANE, &mut self.log)
    }

    /// Closes in good order.
    fn leave(mut self) {
        self.shm.leave();
    }

    fn look_after_peers(&mut self) {
        self.shm.look_after_peers(&mut self.log);
    }
}

fn open(job: &LocalJob, rank: u32, options: &ShmOptions) -> Member {
    let shm = Shm::open(options.clone(), &mut job.member(Rank::new(rank))).unwrap();
    Member {
        shm,
        log: Log::default(),
    }
}

fn connect(from: &mut Member, to: &Member) -> EndpointId {
    let rank = Rank::new(to.shm.identity.rank);
    from.shm.connect(rank, &to.shm.address()).unwrap()
}

/// Two ranks, connected both ways.
fn pair(options: &ShmOptions) -> (Member, Member, EndpointId, EndpointId) {
    let job = LocalJob::new(2).unwrap();
    let (mut a, mut b) = (open(&job, 0, options), open(&job, 1, options));
    let (to_b, to_a) = (connect(&mut a, &b), connect(&mut b, &a));
    for _ in 0..3 {
        a.progress();
        b.progress();
    }
    assert_eq!(a.log.ups, [(to_b, Rank::new(1))]);
    assert_eq!(b.log.ups, [(to_a, Rank::new(0))]);
    (a, b, to_b, to_a)
}

/// So many bytes of a pattern that comes again after `period` of them: made once, and copied.
fn periodic(len: usize, period: usize, byte: impl Fn(usize) -> u8) -> Vec<u8> {
    let once: Vec<u8> = (0..len.min(period)).map(byte).collect();
    let mut all = once.repeat(len.div_ceil(period));
    all.truncate(len);
    all
}

/// A stream of numbers that is the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len + 8);
        while bytes.len() < len {
            bytes.extend_from_slice(&self.next().to_le_bytes());
        }
        bytes.truncate(len);
        bytes
    }
}
