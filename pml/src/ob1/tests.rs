//! Tests of ob1 on the in-memory network, driven by turns.
#![allow(unsafe_code)]

use std::time::Duration;

use proptest::prelude::*;
use tagwire_base::Clock;
use tagwire_base::bootstrap::LocalJob;
use tagwire_conformance::network::{MemoryNetwork, MemoryOptions};
use tagwire_transport::{AmHeader, Arrival, EndpointId, Payload, PeerEvent, Transport, Upcalls};

use super::header::Kind;
use super::peer::Health;
use super::*;
use crate::pml::Pml;

mod coalesce;
pub(super) mod deaths;
mod hostile;
mod puts;
mod reads;
mod schedules;
mod work;

const WORLD: ContextId = ContextId::WORLD;

fn tag(value: i32) -> Tag {
    Tag::user(value).unwrap()
}

/// The packets of all parts of ob1.
fn kinds() -> Vec<Kind> {
    let parts = [held::KINDS, flow::KINDS, super::coalesce::KINDS];
    let parts = parts.into_iter().flatten().copied();
    let services = Services::new(&Clock::default());
    protocols::kinds()
        .chain(parts)
        .chain(services.kinds())
        .collect()
}

#[test]
fn no_two_kinds_of_packets_are_one() {
    let mut bytes: Vec<u8> = kinds().into_iter().map(header::Kind::as_byte).collect();
    let count = bytes.len();
    bytes.sort_unstable();
    bytes.dedup();
    assert_eq!(bytes.len(), count);
}

impl Ob1 {
    /// Does what is pending.
    fn run_pending(&mut self) {
        self.driver.run_pending(&mut self.core);
    }
}

/// Ranks that a test drives by turns, and the buffers that are lent to them.
struct World {
    network: MemoryNetwork,
    ranks: Vec<Ob1>,
    lent: Vec<Box<[u8]>>,
}

impl World {
    fn new(size: u32, network: MemoryOptions, options: &Ob1Options) -> Self {
        let network = MemoryNetwork::new(size, network);
        let job = LocalJob::new(size).unwrap();
        let ranks = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..size)
                .map(|rank| {
                    let (network, job) = (&network, &job);
                    scope.spawn(move || {
                        let rank = Rank::new(rank);
                        let rail = Box::new(network.rank(rank));
                        Ob1::open(options, rail, Box::new(job.member(rank))).unwrap()
                    })
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| thread.join().unwrap())
                .collect()
        });
        Self {
            network,
            ranks,
            lent: Vec::new(),
        }
    }

    fn pair(network: MemoryOptions) -> Self {
        Self::new(2, network, &Ob1Options::default())
    }

    fn send(&mut self, from: usize, to: u32, tag: Tag, data: &[u8], mode: SendMode) -> RequestId {
        self.lent.push(data.into());
        let data = self.lent.last().unwrap();
        // SAFETY: the boxes live as long as the ranks and are not touched.
        let buffer = unsafe { SendBuffer::contiguous(data.as_ptr(), data.len()) };
        self.ranks[from]
            .isend(buffer, Rank::new(to), tag, WORLD, mode)
            .unwrap()
    }

    /// Posts a receive; returns the request and the place of its buffer.
    fn recv(
        &mut self,
        at: usize,
        from: SourceSelector,
        tag: TagSelector,
        len: usize,
    ) -> (RequestId, usize) {
        self.lent.push(vec![0xee; len].into());
        let data = self.lent.last_mut().unwrap();
        // SAFETY: as above; the bytes are read after completion only.
        let buffer = unsafe { RecvBuffer::contiguous(data.as_mut_ptr(), data.len()) };
        let request = self.ranks[at].irecv(buffer, from, tag, WORLD).unwrap();
        (request, self.lent.len() - 1)
    }

    /// Drives all ranks until none has anything to do.
    fn settle(&mut self) {
        let mut quiet = 0;
        for _ in 0..1_000_000 {
            let events: usize = self.ranks.iter_mut().map(PointToPoint::progress).sum();
            quiet = if events == 0 { quiet + 1 } else { 0 };
            if quiet == 4 {
                return;
            }
        }
        panic!("the ranks never come to rest");
    }

    fn finish(&mut self, at: usize, request: RequestId) -> Status {
        self.settle();
        match self.ranks[at].take(request).unwrap() {
            Some(status) => status,
            None => {
                let mut text = String::new();
                self.ranks.iter().for_each(|rank| {
                    rank.dump(&crate::ContextNames::default(), &mut text)
                        .unwrap()
                });
                panic!("not complete:\n{text}");
            }
        }
    }
}

fn networks() -> Vec<MemoryOptions> {
    vec![
        MemoryOptions::default(),
        MemoryOptions::full(),
        MemoryOptions {
            slots: 4,
            control_slots: 1,
            max_send: 64,
            ..MemoryOptions::full()
        },
        reading(),
        writing(),
    ]
}

/// Senders write long messages into their peer's memory.
fn writing() -> MemoryOptions {
    MemoryOptions {
        put: true,
        ..MemoryOptions::default()
    }
}

/// Peers read long messages out of their sender's memory.
fn reading() -> MemoryOptions {
    MemoryOptions {
        get: true,
        ..MemoryOptions::default()
    }
}

fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len)
        .map(|i| (i.wrapping_mul(31) ^ seed.wrapping_mul(131) ^ (i >> 8)) as u8)
        .collect()
}

#[test]
fn every_length_arrives_posted_or_not() {
    for network in networks() {
        let mut world = World::pair(network);
        for (number, len) in [0, 1, 31, 32, 33, 64, 4096, 4097, 16384, 16385, 100_000]
            .into_iter()
            .enumerate()
        {
            for posted_first in [true, false] {
                for mode in [
                    SendMode::Standard,
                    SendMode::Synchronous,
                    SendMode::Buffered,
                ] {
                    let data = pattern(number, len);
                    let from = SourceSelector::exact(Rank::new(0));
                    let early = posted_first
                        .then(|| world.recv(1, from, TagSelector::exact(tag(7)), len + 3));
                    let sent = world.send(0, 1, tag(7), &data, mode);
                    world.settle();
                    let (received, place) =
                        early.unwrap_or_else(|| world.recv(1, from, TagSelector::ANY, len + 3));
                    let status = world.finish(1, received);
                    assert_eq!(status.failure, None);
                    assert_eq!((status.length, status.tag), (len, tag(7)));
                    assert_eq!(&world.lent[place][..len], &data[..]);
                    assert_eq!(&world.lent[place][len..], [0xee; 3]);
                    assert_eq!(world.finish(0, sent).failure, None);
                }
            }
        }
        assert!(world.ranks.iter().all(|rank| rank.open_work().is_none()));
        assert_eq!(world.ranks[1].core.matcher.len(), 0);
    }
}

#[test]
fn messages_are_counted_by_the_way_they_took() {
    let mut world = World::pair(networks().remove(0));
    let from = SourceSelector::exact(Rank::new(0));
    for (posted_first, len) in [(true, 8), (false, 8), (true, 100_000), (false, 100_000)] {
        let data = pattern(1, len);
        let early = posted_first.then(|| world.recv(1, from, TagSelector::ANY, len));
        let sent = world.send(0, 1, tag(7), &data, SendMode::Standard);
        world.settle();
        let (received, _) = early.unwrap_or_else(|| world.recv(1, from, TagSelector::ANY, len));
        assert_eq!(world.finish(1, received).failure, None);
        assert_eq!(world.finish(0, sent).failure, None);
    }
    let counters = |rank: usize| world.ranks[rank].counters();
    assert_eq!((counters(0).sent_long, counters(1).sent_long), (2, 0));
    assert_eq!(
        (counters(1).unexpected_short, counters(1).unexpected_long),
        (1, 1)
    );
}

#[test]
fn protocols_are_those_that_messages_take() {
    for network in networks() {
        let options = Ob1Options::default();
        let rail = MemoryNetwork::new(1, network.clone()).rank(Rank::new(0));
        let preference = rail.preference(EndpointId(0));
        let all = protocols(&options, rail.capabilities(), &rail.limits(), preference);
        assert!(all.len() > 1 && all[0].from == 0, "{all:?}");
        for protocol in all {
            for length in [Some(protocol.from), protocol.to].into_iter().flatten() {
                let mut world = World::pair(network.clone());
                let data = pattern(1, length as usize);
                let sent = world.send(0, 1, tag(7), &data, SendMode::Standard);
                world.settle();
                let is_long = world.ranks[0].counters().sent_long == 1;
                let says_long = protocol.how.starts_with("rendezvous");
                assert_eq!(is_long, says_long, "{length}: {protocol}");
                let (received, _) =
                    world.recv(1, SourceSelector::ANY, TagSelector::ANY, data.len());
                world.finish(1, received);
                world.finish(0, sent);
            }
        }
    }
}

#[test]
fn synchronous_sends_wait_for_the_match() {
    for len in [8, 5000, 100_000] {
        let mut world = World::pair(MemoryOptions::full());
        let sent = world.send(0, 1, tag(1), &pattern(1, len), SendMode::Synchronous);
        world.settle();
        assert!(!world.ranks[0].is_complete(sent), "{len} bytes");
        let (received, _) = world.recv(1, SourceSelector::ANY, TagSelector::ANY, len);
        world.finish(1, received);
        world.finish(0, sent);
    }
}

#[test]
fn truncation_concerns_one_receive() {
    for network in networks() {
        for len in [40, 5000, 100_000] {
            for posted_first in [true, false] {
                let mut world = World::pair(network.clone());
                let data = pattern(3, len);
                let early = posted_first
                    .then(|| world.recv(1, SourceSelector::ANY, TagSelector::ANY, len - 9));
                let sent = world.send(0, 1, tag(1), &data, SendMode::Standard);
                let after = world.send(0, 1, tag(2), b"fine", SendMode::Standard);
                world.settle();
                let (received, place) = early.unwrap_or_else(|| {
                    world.recv(1, SourceSelector::ANY, TagSelector::ANY, len - 9)
                });
                let status = world.finish(1, received);
                assert_eq!(status.failure, Some(Failure::truncated(len - 9)));
                assert_eq!(status.length, len);
                assert_eq!(&world.lent[place][..], &data[..len - 9]);
                assert_eq!(world.finish(0, sent).failure, None);
                let (next, place) = world.recv(1, SourceSelector::ANY, TagSelector::ANY, 4);
                assert_eq!(world.finish(1, next).failure, None);
                assert_eq!(&world.lent[place][..], b"fine");
                world.finish(0, after);
            }
        }
    }
}

#[test]
fn messages_to_oneself_arrive() {
    let mut world = World::new(1, MemoryOptions::full(), &Ob1Options::default());
    for len in [8, 100_000] {
        let data = pattern(9, len);
        let (received, place) = world.recv(0, SourceSelector::ANY, TagSelector::ANY, len);
        let sent = world.send(0, 0, tag(0), &data, SendMode::Standard);
        world.finish(0, received);
        world.finish(0, sent);
        assert_eq!(&world.lent[place][..], &data[..]);
    }
}

#[test]
fn probes_claims_and_cancels() {
    let mut world = World::pair(MemoryOptions::full());
    let any = (SourceSelector::ANY, TagSelector::ANY);
    assert_eq!(world.ranks[1].probe(any.0, any.1, WORLD).unwrap(), None);
    world.send(0, 1, tag(1), b"one", SendMode::Standard);
    world.send(0, 1, tag(2), b"two", SendMode::Standard);
    world.settle();
    let seen = world.ranks[1]
        .probe(any.0, TagSelector::exact(tag(2)), WORLD)
        .unwrap()
        .unwrap();
    assert_eq!(
        (seen.length, seen.tag, seen.source),
        (3, tag(2), Rank::new(0))
    );
    let (message, status) = world.ranks[1].claim(any.0, any.1, WORLD).unwrap().unwrap();
    assert_eq!(status.tag, tag(1));
    // The claimed message is out of matching: an any-tag receive takes the next.
    let (received, place) = world.recv(1, any.0, any.1, 3);
    assert_eq!(world.finish(1, received).tag, tag(2));
    assert_eq!(&world.lent[place][..], b"two");
    let mut one = [0; 3];
    // SAFETY: `one` outlives the request, which completes here.
    let buffer = unsafe { RecvBuffer::contiguous(one.as_mut_ptr(), 3) };
    let received = world.ranks[1].irecv_claimed(buffer, message).unwrap();
    assert_eq!(world.finish(1, received).tag, tag(1));
    assert_eq!(&one, b"one");
    assert!(matches!(
        world.ranks[1].irecv_claimed(RecvBuffer::EMPTY, message),
        Err(Error::StaleRequest)
    ));

    let (posted, _) = world.recv(1, any.0, any.1, 3);
    assert_eq!(
        world.ranks[1].cancel(posted).unwrap(),
        CancelOutcome::Cancelled
    );
    assert!(world.finish(1, posted).cancelled);
    assert!(matches!(
        world.ranks[1].cancel(posted),
        Err(Error::StaleRequest)
    ));
    let (posted, _) = world.recv(1, any.0, any.1, 3);
    world.send(0, 1, tag(3), b"now", SendMode::Standard);
    world.settle();
    assert_eq!(
        world.ranks[1].cancel(posted).unwrap(),
        CancelOutcome::AlreadyMatched
    );
    assert!(!world.finish(1, posted).cancelled);
}

#[test]
fn persistent_requests_go_round() {
    for mode in [
        SendMode::Standard,
        SendMode::Synchronous,
        SendMode::Buffered,
    ] {
        for len in [8, 20_000] {
            let mut world = World::pair(MemoryOptions::full());
            let data = pattern(5, len).into_boxed_slice();
            let mut into = vec![0; len].into_boxed_slice();
            // SAFETY: both outlive the world's last use of them.
            let (send, recv) = unsafe {
                (
                    SendBuffer::contiguous(data.as_ptr(), len),
                    RecvBuffer::contiguous(into.as_mut_ptr(), len),
                )
            };
            let send = world.ranks[0]
                .send_init(send, Rank::new(1), tag(4), WORLD, mode)
                .unwrap();
            let from = SourceSelector::exact(Rank::new(0));
            let recv = world.ranks[1]
                .recv_init(recv, from, TagSelector::exact(tag(4)), WORLD)
                .unwrap();
            assert_eq!(world.ranks[0].take(send).unwrap(), Some(Status::EMPTY));
            for _ in 0..3 {
                into.fill(0);
                world.ranks[1].start(recv).unwrap();
                assert!(world.ranks[1].start(recv).is_err(), "it is active");
                assert!(world.ranks[1].free(recv).is_err(), "it is active");
                world.ranks[0].start(send).unwrap();
                assert_eq!(world.finish(1, recv).length, len);
                world.finish(0, send);
                assert_eq!(into, data);
            }
            world.ranks[0].free(send).unwrap();
            world.ranks[1].free(recv).unwrap();
            assert!(world.ranks[1].start(recv).is_err());
        }
    }
}

#[test]
fn buffered_sends_have_a_budget() {
    let options = Ob1Options {
        buffer_limit: 50_000,
        ..Ob1Options::default()
    };
    let mut world = World::new(2, MemoryOptions::full(), &options);
    for _ in 0..2 {
        world.send(0, 1, tag(1), &pattern(1, 20_000), SendMode::Buffered);
    }
    let refused = world.ranks[0].isend(
        // SAFETY: a static string.
        unsafe { SendBuffer::contiguous([0u8; 20_000].as_ptr(), 20_000) },
        Rank::new(1),
        tag(1),
        WORLD,
        SendMode::Buffered,
    );
    assert!(matches!(
        refused,
        Err(Error::BufferFull { used: 40_000, .. })
    ));
    for _ in 0..2 {
        let (received, place) = world.recv(1, SourceSelector::ANY, TagSelector::ANY, 20_000);
        assert_eq!(world.finish(1, received).failure, None);
        assert_eq!(&world.lent[place][..], &pattern(1, 20_000)[..]);
    }
    assert_eq!(world.ranks[0].core.buffered, 0);
    assert!(world.ranks[0].core.requests.is_empty());
}

/// The flood, at the size of a test: budgets hold, nothing is lost, and a receive for a
/// tag behind all others completes.
#[test]
fn a_flood_stays_within_the_budgets() {
    const COUNT: usize = 5000;
    for len in [64, 4096, 6000] {
        let options = Ob1Options {
            unexpected_payload: 1 << 20,
            unexpected_headers: 200_000,
            ..Ob1Options::default()
        };
        let mut world = World::new(2, MemoryOptions::default(), &options);
        let sent: Vec<_> = (0..COUNT)
            .map(|i| world.send(0, 1, tag(i as i32), &pattern(i, len), SendMode::Standard))
            .collect();
        world.settle();
        let core = &world.ranks[1].core;
        let kept: usize = core.matcher.messages().map(|message| message.charged).sum();
        let slack = super::credit::Window::INITIAL;
        assert!(
            kept <= (1 << 20) + slack.bytes as usize,
            "{kept} bytes kept"
        );
        let entries = core.matcher.len();
        assert!(
            entries <= core.budget.total().envelopes as usize + slack.envelopes as usize,
            "{entries} envelopes kept"
        );
        assert!(entries < COUNT, "the flood fits: no test");
        let last = COUNT as i32 - 1;
        let (received, place) =
            world.recv(1, SourceSelector::ANY, TagSelector::exact(tag(last)), len);
        assert_eq!(world.finish(1, received).tag, tag(last));
        assert_eq!(&world.lent[place][..], &pattern(COUNT - 1, len)[..]);
        for i in 0..COUNT - 1 {
            let (received, place) = world.recv(1, SourceSelector::ANY, TagSelector::ANY, len);
            assert_eq!(world.finish(1, received).tag, tag(i as i32), "out of order");
            assert_eq!(&world.lent[place][..], &pattern(i, len)[..]);
        }
        for request in sent {
            assert_eq!(world.finish(0, request).failure, None);
        }
        let core = &world.ranks[1].core;
        assert!(core.matcher.len() == 0);
        audit(core);
    }
}

/// A sender that never makes progress on its own hears of new credit all the same.
#[test]
fn a_sender_that_only_posts_gets_its_credit() {
    let mut world = World::pair(MemoryOptions::default());
    for i in 0..1000 {
        let from = SourceSelector::exact(Rank::new(0));
        let (received, _) = world.recv(1, from, TagSelector::ANY, 8);
        world.send(0, 1, tag(i), b"8 bytes.", SendMode::Standard);
        for _ in 0..3 {
            world.ranks[1].progress();
        }
        assert!(
            world.ranks[1].is_complete(received),
            "message {i} stays behind"
        );
        world.ranks[1].take(received).unwrap();
    }
}

#[test]
fn receives_posted_before_the_flood_reach_behind_it() {
    let options = Ob1Options {
        unexpected_payload: 1 << 16,
        unexpected_headers: 20_000,
        ..Ob1Options::default()
    };
    let mut world = World::new(3, MemoryOptions::default(), &options);
    let (last, _) = world.recv(2, SourceSelector::ANY, TagSelector::exact(tag(99_999)), 8);
    for i in 0..2000 {
        world.send(0, 2, tag(i), b"flooding", SendMode::Standard);
        world.send(1, 2, tag(i), b"flooding", SendMode::Standard);
    }
    world.settle();
    assert!(!world.ranks[2].is_complete(last));
    world.send(1, 2, tag(99_999), b"the last", SendMode::Standard);
    assert_eq!(world.finish(2, last).source, Rank::new(1));
}

#[test]
fn a_dead_peer_fails_what_involves_it() {
    for network in networks() {
        let mut world = World::new(3, network, &Ob1Options::default());
        // Contact in all directions.
        for (from, to) in [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)] {
            let at = to as usize;
            let (received, _) = world.recv(
                at,
                SourceSelector::exact(Rank::new(from)),
                TagSelector::ANY,
                1,
            );
            world.send(from as usize, to, tag(0), b"x", SendMode::Standard);
            world.finish(at, received);
        }
        let dead = Rank::new(2);
        let sent_before = world.send(2, 0, tag(5), b"last words", SendMode::Standard);
        assert_eq!(sent_before, RequestId::COMPLETE);
        let (from_dead, _) = world.recv(
            0,
            SourceSelector::exact(dead),
            TagSelector::exact(tag(1)),
            8,
        );
        let (from_any, _) = world.recv(0, SourceSelector::ANY, TagSelector::exact(tag(2)), 8);
        let (from_living, _) = world.recv(
            0,
            SourceSelector::exact(Rank::new(1)),
            TagSelector::exact(tag(3)),
            8,
        );
        let unmatched = world.send(0, 2, tag(9), &pattern(1, 100_000), SendMode::Standard);
        let synchronous = world.send(0, 2, tag(9), b"8 bytes.", SendMode::Synchronous);
        world.settle();
        world.network.fail(dead);
        let killed = world.ranks.pop().unwrap();
        for _ in 0..3 {
            world.settle();
            world.ranks.iter_mut().for_each(LocalRank::look_after_peers);
        }
        let failure = Some(Failure::PeerFailed(dead));
        for request in [from_dead, from_any, unmatched, synchronous] {
            assert_eq!(world.finish(0, request).failure, failure);
        }
        assert_eq!(world.ranks[0].failed(), [dead]);
        // What it sent before is still there.
        let (received, place) = world.recv(
            0,
            SourceSelector::exact(dead),
            TagSelector::exact(tag(5)),
            10,
        );
        assert_eq!(world.finish(0, received).failure, None);
        assert_eq!(&world.lent[place][..], b"last words");
        // New operations fail at once; those among the living work.
        let (received, _) = world.recv(0, SourceSelector::exact(dead), TagSelector::ANY, 8);
        assert_eq!(world.finish(0, received).failure, failure);
        let sent = world.send(0, 2, tag(0), b"x", SendMode::Standard);
        assert_eq!(world.finish(0, sent).failure, failure);
        world.send(1, 0, tag(3), b"fine now", SendMode::Standard);
        assert_eq!(world.finish(0, from_living).failure, None);
        // Any source: only after the failure is acknowledged.
        let (received, _) = world.recv(0, SourceSelector::ANY, TagSelector::exact(tag(4)), 8);
        assert_eq!(world.finish(0, received).failure, failure);
        assert_eq!(world.ranks[0].acknowledge_failures(), [dead]);
        let (received, _) = world.recv(0, SourceSelector::ANY, TagSelector::exact(tag(4)), 8);
        world.send(1, 0, tag(4), b"any more", SendMode::Standard);
        assert_eq!(world.finish(0, received).source, Rank::new(1));
        assert!(world.ranks.iter().all(|rank| rank.open_work().is_none()));
        drop(killed);
    }
}

fn audit(core: &Core) {
    let accounts = core.lane.peers.iter().map(|(_, peer)| &peer.account);
    let kept = core.matcher.messages().map(|message| message.charged);
    core.budget.audit(accounts, kept);
}

/// A refill looks at those who have sent something, however many are in contact.
#[test]
fn refills_look_only_at_who_has_sent() {
    const PEERS: u32 = 40;
    let mut world = World::new(PEERS + 1, MemoryOptions::default(), &Ob1Options::default());
    let receive = |world: &mut World, from: u32, count: i32| {
        for i in 0..count {
            let source = SourceSelector::exact(Rank::new(from));
            let (received, _) = world.recv(0, source, TagSelector::ANY, 8);
            world.send(from as usize, 0, tag(i), b"x", SendMode::Standard);
            world.finish(0, received);
        }
    };
    for from in 1..=PEERS {
        receive(&mut world, from, 1);
    }
    assert_eq!(world.ranks[0].core.budget.unsettled(), PEERS as usize);
    // More than half a window: it is refilled, and all accounts are settled.
    receive(&mut world, 1, 40);
    assert!(world.ranks[0].core.budget.unsettled() <= 1);
    audit(&world.ranks[0].core);
    // From now on it is one peer that counts.
    receive(&mut world, 1, 3000);
    assert_eq!(world.ranks[0].core.budget.unsettled(), 1);
    audit(&world.ranks[0].core);
}

#[test]
fn the_window_of_the_dead_goes_back_to_the_budget() {
    for deaths in [0, 1] {
        let options = Ob1Options {
            unexpected_payload: 1 << 16,
            unexpected_headers: 20_000,
            ..Ob1Options::default()
        };
        let mut world = World::new(4, MemoryOptions::default(), &options);
        // Rank 1 only listens: it is in contact, and was granted nothing.
        world.send(0, 1, tag(0), b"hello", SendMode::Standard);
        for i in 0..200 {
            world.send(2, 0, tag(i), &pattern(1, 100), SendMode::Standard);
            world.send(3, 0, tag(i), &pattern(1, 100), SendMode::Standard);
            if i % 50 == 0 {
                world.settle();
            }
        }
        world.settle();
        audit(&world.ranks[0].core);
        // Some of it is received, some is still there when its sender dies.
        for i in 0..20 {
            let (received, _) = world.recv(0, SourceSelector::ANY, TagSelector::exact(tag(i)), 100);
            world.finish(0, received);
        }
        audit(&world.ranks[0].core);
        for dead in [2, 1].into_iter().take(deaths * 2) {
            world.network.fail(Rank::new(dead));
            for _ in 0..3 {
                world.settle();
                world.ranks[0].look_after_peers();
            }
            audit(&world.ranks[0].core);
        }
        world.ranks[0].acknowledge_failures();
        for i in 20..200 {
            let from = SourceSelector::exact(Rank::new(3));
            let (received, _) = world.recv(0, from, TagSelector::exact(tag(i)), 100);
            assert_eq!(world.finish(0, received).failure, None);
        }
        audit(&world.ranks[0].core);
    }
}

#[test]
fn closing_ends_receives_and_flushes_sends() {
    let mut world = World::pair(MemoryOptions::full());
    let (posted, _) = world.recv(0, SourceSelector::ANY, TagSelector::ANY, 8);
    let sent = world.send(0, 1, tag(1), &pattern(1, 100_000), SendMode::Standard);
    world.ranks[0].begin_close();
    world.settle();
    assert_eq!(world.finish(0, posted).failure, Some(Failure::Closed));
    let open = world.ranks[0].open_work().unwrap();
    assert!(open.contains("1 sends"), "{open}");
    let refused = world.ranks[0].irecv(
        RecvBuffer::EMPTY,
        SourceSelector::ANY,
        TagSelector::ANY,
        WORLD,
    );
    assert!(matches!(refused, Err(Error::Closed)));
    let (received, _) = world.recv(1, SourceSelector::ANY, TagSelector::ANY, 100_000);
    world.finish(1, received);
    world.finish(0, sent);
    assert_eq!(world.ranks[0].open_work(), None);
    world.ranks[0].leave();
    drop(world.ranks.remove(0));
    world.settle();
    let (after, _) = world.recv(0, SourceSelector::exact(Rank::new(0)), TagSelector::ANY, 8);
    let status = world.finish(0, after);
    assert_eq!(status.failure, Some(Failure::PeerLeft(Rank::new(0))));
}

/// The launcher may tell of a goodbye before the transport was looked at for the first time: what
/// the rank sent before it left is delivered all the same.
#[test]
fn last_words_are_heard_of_one_never_met() {
    let mut world = World::pair(MemoryOptions::default());
    let from = SourceSelector::exact(Rank::new(0));
    let (received, place) = world.recv(1, from, TagSelector::ANY, 9);
    let sent = world.send(0, 1, tag(1), b"last word", SendMode::Standard);
    assert_eq!(sent, RequestId::COMPLETE);
    world.ranks[0].begin_close();
    world.ranks[0].leave();
    drop(world.ranks.remove(0));
    world.ranks[0].look_after_peers();
    assert_eq!(world.finish(0, received).failure, None);
    assert_eq!(&world.lent[place][..], b"last word");
}

#[test]
fn contexts_keep_apart_and_drop_what_is_left() {
    let mut world = World::pair(MemoryOptions::default());
    let other = world.ranks[1].open_context().unwrap();
    world.send(0, 1, tag(1), b"world", SendMode::Standard);
    world.settle();
    assert_eq!(
        world.ranks[1]
            .probe(SourceSelector::ANY, TagSelector::ANY, other)
            .unwrap(),
        None
    );
    // Rank 0 sends with the id of rank 1, which it has not opened itself; internal messages too.
    for tag in [tag(1), Tag::internal(3)] {
        // SAFETY: the bytes are there for good.
        let left = unsafe { lend(b"left") };
        let sent = world.ranks[0].isend(left, Rank::new(1), tag, other, SendMode::Standard);
        assert_eq!(sent.unwrap(), RequestId::COMPLETE);
    }
    world.settle();
    assert_eq!(world.ranks[1].core.matcher.len(), 3);
    world.ranks[1].close_context(other).unwrap();
    assert_eq!(world.ranks[1].core.matcher.len(), 1, "the world's is there");
    assert!(world.ranks[1].core.requests.is_empty());
    assert!(world.ranks[1].close_context(other).is_err());
    assert!(world.ranks[1].close_context(WORLD).is_err());
    let nobody = world.ranks[0].isend(
        SendBuffer::EMPTY,
        Rank::new(2),
        tag(0),
        WORLD,
        SendMode::Ready,
    );
    assert!(matches!(nobody, Err(Error::NoSuchRank { .. })));
}

/// One step of a random run.
#[derive(Debug, Clone)]
enum Action {
    Send {
        from: u8,
        to: u8,
        tag: i32,
        len: usize,
        mode: SendMode,
    },
    Recv {
        at: u8,
        from: Option<u8>,
        tag: Option<i32>,
    },
    Progress {
        rank: u8,
    },
}

fn actions(ranks: u8) -> impl Strategy<Value = Vec<Action>> {
    let lengths = prop_oneof![0..64usize, 3000..6000usize, 16_000..60_000usize];
    let modes = prop_oneof![
        4 => Just(SendMode::Standard),
        1 => Just(SendMode::Synchronous),
        1 => Just(SendMode::Buffered),
    ];
    let send = (0..ranks, 0..ranks, 0..3, lengths, modes).prop_map(|(from, to, tag, len, mode)| {
        Action::Send {
            from,
            to,
            tag,
            len,
            mode,
        }
    });
    let recv = (
        0..ranks,
        proptest::option::of(0..ranks),
        proptest::option::of(0..3),
    )
        .prop_map(|(at, from, tag)| Action::Recv { at, from, tag });
    let progress = (0..ranks).prop_map(|rank| Action::Progress { rank });
    proptest::collection::vec(prop_oneof![3 => send, 3 => recv, 2 => progress], 1..150)
}

/// A receive of a random run, in the order of posting, and what it got.
struct Posted {
    at: usize,
    from: SourceSelector,
    tag: TagSelector,
    request: RequestId,
    buffer: usize,
    got: Option<usize>,
}

fn run(actions: &[Action], network: MemoryOptions, options: &Ob1Options) {
    const RANKS: u8 = 3;
    let mut world = World::new(u32::from(RANKS), network, options);
    // Sent messages: (from, to, tag, length); the number is the message's name.
    let mut messages: Vec<(u8, u8, i32, usize)> = Vec::new();
    let mut sends = Vec::new();
    let mut posted: Vec<Posted> = Vec::new();
    let selector = |from: Option<u8>| {
        from.map_or(SourceSelector::ANY, |rank| {
            Rank::new(u32::from(rank)).into()
        })
    };
    let wanted = |wish: Option<i32>| wish.map_or(TagSelector::ANY, |value| tag(value).into());
    for action in actions {
        match *action {
            Action::Send {
                from,
                to,
                tag: value,
                len,
                mode,
            } => {
                let data = pattern(messages.len(), len);
                let request = world.send(usize::from(from), u32::from(to), tag(value), &data, mode);
                messages.push((from, to, value, len));
                sends.push((usize::from(from), request));
            }
            Action::Recv {
                at,
                from,
                tag: value,
            } => {
                let (from, tag) = (selector(from), wanted(value));
                let (request, buffer) = world.recv(usize::from(at), from, tag, 60_000);
                posted.push(Posted {
                    at: usize::from(at),
                    from,
                    tag,
                    request,
                    buffer,
                    got: None,
                });
            }
            Action::Progress { rank } => {
                world.ranks[usize::from(rank)].progress();
            }
        }
    }
    // Then receive whatever is left, so that every message ends somewhere.
    for at in 0..RANKS {
        world.settle();
        let due = messages.iter().filter(|message| message.1 == at).count();
        let done = |world: &World, p: &Posted| world.ranks[p.at].is_complete(p.request);
        let here = |p: &&Posted| p.at == usize::from(at);
        let taken = posted
            .iter()
            .filter(here)
            .filter(|p| done(&world, p))
            .count();
        for _ in 0..due - taken {
            let (from, tag) = (SourceSelector::ANY, TagSelector::ANY);
            let (request, buffer) = world.recv(usize::from(at), from, tag, 60_000);
            posted.push(Posted {
                at: usize::from(at),
                from,
                tag,
                request,
                buffer,
                got: None,
            });
        }
    }
    world.settle();
    let mut seen = vec![false; messages.len()];
    for receive in &mut posted {
        let Some(status) = world.ranks[receive.at].take(receive.request).unwrap() else {
            continue;
        };
        assert_eq!(status.failure, None);
        let data = &world.lent[receive.buffer][..status.length];
        let candidates = messages.iter().enumerate().position(|(number, message)| {
            !seen[number]
                && u32::from(message.0) == status.source.as_u32()
                && usize::from(message.1) == receive.at
                && message.2 == status.tag.as_i32()
                && message.3 == status.length
                && data == pattern(number, status.length)
        });
        let number = candidates.expect("a receive got what nobody sent, or sent once");
        seen[number] = true;
        receive.got = Some(number);
    }
    assert!(seen.iter().all(|seen| *seen), "a message was lost");
    for (at, request) in sends {
        assert_eq!(world.finish(at, request).failure, None);
    }
    check_order(&posted, &messages);
}

/// No earlier receive may hold a later message of the same source than a later receive, when it
/// would have accepted the earlier message too.
fn check_order(posted: &[Posted], messages: &[(u8, u8, i32, usize)]) {
    for (i, earlier) in posted.iter().enumerate() {
        for later in &posted[i + 1..] {
            if earlier.at != later.at {
                continue;
            }
            let Some(second) = later.got else { continue };
            let (source, _, value, _) = messages[second];
            let accepts = earlier.from.accepts(Rank::new(u32::from(source)))
                && earlier.tag.accepts(tag(value));
            match earlier.got {
                Some(first) if messages[first].0 == source && accepts && second < first => {
                    // Messages of no bytes cannot be told apart; they may have changed names.
                    let (a, b) = (messages[first], messages[second]);
                    assert!(
                        (a.2, a.3) == (b.2, 0),
                        "message {second} was overtaken by {first}"
                    );
                }
                None => assert!(!accepts, "an earlier receive was passed over"),
                _ => {}
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn random_runs_keep_the_order(actions in actions(3), which in 0..4usize) {
        run(&actions, networks()[which].clone(), &Ob1Options::default());
    }

    #[test]
    fn random_runs_keep_the_order_in_batches(actions in actions(3), which in 0..4usize) {
        let options = Ob1Options {
            coalesce: Some(200),
            ..Ob1Options::default()
        };
        run(&actions, networks()[which].clone(), &options);
    }

    #[test]
    fn random_runs_keep_the_order_on_small_budgets(actions in actions(3)) {
        let options = Ob1Options {
            unexpected_payload: 4000,
            unexpected_headers: 1000,
            ..Ob1Options::default()
        };
        run(&actions, MemoryOptions::default(), &options);
    }

    /// Whatever a peer sends: no panic, and at worst the peer is given up.
    #[test]
    fn hostile_packets_do_no_harm(
        packets in proptest::collection::vec(
            (
                prop_oneof![
                    4 => proptest::sample::select(kinds()).prop_map(|kind| u64::from(kind.as_byte())),
                    1 => 0..=u64::from(u8::MAX),
                    1 => any::<u64>(),
                ],
                prop_oneof![0..8u64, any::<u64>()],
                proptest::collection::vec(any::<u8>(), 0..64),
                any::<bool>(),
            ),
            1..60,
        )
    ) {
        let mut world = World::pair(MemoryOptions::full());
        let (receive, _) = world.recv(0, SourceSelector::ANY, TagSelector::ANY, 100);
        world.send(0, 1, tag(1), &pattern(1, 100_000), SendMode::Standard);
        let (_, _) = world.recv(0, SourceSelector::ANY, TagSelector::ANY, 100);
        let core = &mut world.ranks[0].core;
        core.peer(PeerEvent::Up { endpoint: EndpointId(0), rank: Rank::new(1) });
        for (sequence, (word, rest, payload, in_turn)) in packets.into_iter().enumerate() {
            let rest = if in_turn { (sequence as u64) << 32 | rest & 0xffff_ffff } else { rest };
            core.deliver(Arrival {
                from: EndpointId(0),
                header: AmHeader([word, rest]),
                payload: Payload::from_slice(&payload),
            });
        }
        world.ranks[0].run_pending();
        let _ = world.ranks[0].take(receive);
        let mut text = String::new();
        world.ranks[0].dump(&crate::ContextNames::default(), &mut text).unwrap();
    }
}

/// A dead sender's bytes are gone, and what it sent behind them is no message in their place.
#[test]
fn nothing_takes_the_place_of_a_message_that_died_with_its_sender() {
    let mut world = World::pair(MemoryOptions::full());
    let dead = Rank::new(1);
    for (number, len) in [(1, 8), (2, 100_000), (3, 8)] {
        world.send(1, 0, tag(1), &pattern(number, len), SendMode::Standard);
    }
    world.settle();
    world.network.fail(dead);
    world.ranks.pop();
    world.settle();
    world.ranks[0].look_after_peers();
    let failure = Some(Failure::PeerFailed(dead));
    for (number, expected) in [(1, None), (2, failure), (3, failure)] {
        let source = SourceSelector::exact(dead);
        let (received, _) = world.recv(0, source, TagSelector::ANY, 100_000);
        let status = world.finish(0, received);
        assert_eq!(status.failure, expected, "receive {number}");
    }
}

#[test]
fn how_many_receives_there_can_be_is_told_and_one_more_names_what_bounds_it() {
    for (engine, capacity, bound) in [
        ("bins", 4, "setting 'match-capacity'"),
        #[cfg(feature = "engines")]
        ("portals", 4, "setting 'match-capacity'"),
        #[cfg(feature = "engines")]
        (
            "portals:entries=4",
            1 << 20,
            "parameter 'entries' of the setting 'engine'",
        ),
    ] {
        let network = MemoryNetwork::new(1, MemoryOptions::default());
        let job = LocalJob::new(1).unwrap();
        let options = Ob1Options {
            engine: engine.to_owned(),
            match_capacity: capacity,
            ..Ob1Options::default()
        };
        let opened = Ob1::open(
            &options,
            Box::new(network.rank(Rank::new(0))),
            Box::new(job.member(Rank::new(0))),
        );
        let mut rank = opened.unwrap();
        assert_eq!(rank.tag_limits().receives, 4, "{engine}");
        let mut room = [0; 8];
        let mut post = |_| {
            // SAFETY: no message comes, and the rank is dropped before the bytes.
            let buffer = unsafe { RecvBuffer::contiguous(room.as_mut_ptr(), room.len()) };
            rank.irecv(buffer, SourceSelector::ANY, TagSelector::ANY, WORLD)
        };
        let refused = (0..5).map(&mut post).find_map(Result::err).unwrap();
        let told = format!("no room for another posted receive ({bound})");
        assert_eq!(refused.to_string(), told, "{engine}");
    }
}

#[test]
fn opening_with_an_unknown_engine_names_the_nearest() {
    let network = MemoryNetwork::new(1, MemoryOptions::default());
    let job = LocalJob::new(1).unwrap();
    let options = Ob1Options {
        engine: "bin".to_owned(),
        ..Ob1Options::default()
    };
    let refused = Ob1::open(
        &options,
        Box::new(network.rank(Rank::new(0))),
        Box::new(job.member(Rank::new(0))),
    );
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("bins"), "{text}");
    let _ = Duration::ZERO;
}
