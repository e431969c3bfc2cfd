//! Several networks that lose messages, each under data reliability: what one loses for good goes by another.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod common;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use common::{Knobs, LANE, Line, Log};
use tagwire_base::{ManualClock, Rank};
use tagwire_conformance::network::{MemoryNetwork, MemoryOptions};
use tagwire_dr::{Dr, DrOptions};
use tagwire_rails::{Striped, StripedOptions};
use tagwire_transport::fault::FaultTransport;
use tagwire_transport::{AmHeader, ByteTransport, Class, EndpointId, Post, Transport};

/// How long a turn of both ranks takes.
const TURN: Duration = Duration::from_micros(100);

/// A rail may be silent so long.
const PATIENCE: Duration = Duration::from_millis(100);

/// A peer may acknowledge nothing so long.
const TIMEOUT: Duration = Duration::from_secs(2);

struct Node {
    transport: Striped,
    knobs: Vec<Arc<Knobs>>,
    log: Log,
    to: EndpointId,
    sent: u64,
}

impl Node {
    /// Whether the bundle holds `rail` for dead.
    fn is_given_up(&self, rail: usize) -> bool {
        let mut text = String::new();
        self.transport.describe(&mut text);
        let line = text.lines().find(|line| line.starts_with("striped"));
        let states = line.and_then(|line| line.split_once('[')).unwrap().1;
        let states: Vec<_> = states.split("Some(").skip(1).collect();
        states[rail].starts_with("Ended")
    }
}

struct Pair {
    nodes: [Node; 2],
    hand: ManualClock,
}

impl Pair {
    /// Two rails, of whose messages a tenth is lost.
    fn new(seed: u64) -> Self {
        let hand = ManualClock::default();
        let networks = [0, 1].map(|_| MemoryNetwork::new(2, MemoryOptions::default()));
        let faults = format!("seed={seed},loss=10%,duplicate=5%,corrupt=5%");
        let open = |rank| {
            let rank = Rank::new(rank);
            let knobs: Vec<Arc<Knobs>> = networks.iter().map(|_| Arc::default()).collect();
            let rail = |(network, knobs): (&MemoryNetwork, &Arc<Knobs>)| {
                let line = Line::new(Box::new(network.rank(rank)), Arc::clone(knobs));
                let faulty = FaultTransport::new(Box::new(line), rank, faults.parse().unwrap());
                let options = DrOptions {
                    patience: TIMEOUT,
                    disconnect_timeout: Duration::ZERO,
                    clock: hand.clock(),
                    ..DrOptions::default()
                };
                let dr = Dr::new(Box::new(faulty), rank, options).unwrap();
                Box::new(dr) as Box<dyn ByteTransport>
            };
            let rails = networks.iter().zip(&knobs).map(rail).collect();
            let options = StripedOptions {
                patience: PATIENCE,
                disconnect_timeout: 2 * TIMEOUT,
                drop_timeout: Duration::ZERO,
                clock: hand.clock(),
                ..StripedOptions::default()
            };
            Node {
                transport: Striped::new(rails, options).unwrap(),
                knobs,
                log: Log::default(),
                to: EndpointId(0),
                sent: 0,
            }
        };
        let mut nodes = [open(0), open(1)];
        for (this, other) in [(0, 1), (1, 0)] {
            let address = nodes[other].transport.address();
            let peer = Rank::new(other as u32);
            nodes[this].to = nodes[this].transport.connect(peer, &address).unwrap();
        }
        Self { nodes, hand }
    }

    /// Sends what there is room for, up to message `all` each way; progress of both; time passes.
    fn round(&mut self, all: u64) {
        self.hand.advance(TURN);
        for node in &mut self.nodes {
            while node.sent < all {
                let (header, len) = (AmHeader([node.sent, 0]), (node.sent * 37 % 6000) as usize);
                let data = vec![node.sent as u8; len];
                let post = node
                    .transport
                    .send(LANE, node.to, Class::Data, header, &data);
                if post != Post::Posted {
                    break;
                }
                node.sent += 1;
            }
            node.transport.progress(LANE, &mut node.log);
            node.transport.look_after_peers(&mut node.log);
        }
    }

    /// Rounds until `done`, for `limit` by the clock.
    fn rounds_until(&mut self, all: u64, limit: Duration, done: impl Fn(&Self) -> bool) {
        let start = self.hand.clock().now();
        while !done(self) {
            self.round(all);
            if self.hand.clock().now().since(start) >= limit {
                let mut text = String::new();
                let nodes = self.nodes.iter();
                nodes.for_each(|node| node.transport.describe(&mut text));
                panic!("not within {limit:?}:\n{text}");
            }
        }
    }

    /// Both have got so many messages, in order.
    fn have(&self, count: u64) -> bool {
        self.nodes.iter().all(|node| {
            let numbers = node.log.messages.iter().map(|message| message.0);
            let in_order = numbers
                .zip(0..)
                .all(|(number, expected)| number == expected);
            assert!(in_order, "order");
            node.log.messages.len() as u64 == count
        })
    }

    /// Returns whom the rank `node` names, which leaves or has left.
    fn unheard(&self, node: usize) -> Vec<Rank> {
        let mut ranks = Vec::new();
        self.nodes[node].transport.unheard(&mut ranks);
        ranks
    }

    fn cut(&self, rail: usize) {
        for node in &self.nodes {
            node.knobs[rail].is_silent.store(true, Ordering::Relaxed);
            node.knobs[rail].cut();
        }
    }
}

/// Bound on anything here that is to happen.
const LIMIT: Duration = Duration::from_secs(60);

#[test]
fn what_a_cut_rail_had_goes_by_another_that_loses_messages() {
    for (seed, rail) in [(1, 0), (2, 1), (3, 0)] {
        let mut pair = Pair::new(seed);
        pair.rounds_until(300, LIMIT, |pair| {
            pair.nodes[1].log.messages.len() > 50 * seed as usize
        });
        pair.cut(rail);
        // Found within its patience and half of it, and what it had taken sent again.
        pair.rounds_until(300, Duration::from_secs(3), |pair| pair.have(300));
        pair.rounds_until(600, LIMIT, |pair| pair.have(600));
        for node in &pair.nodes {
            assert_eq!((node.log.failed, node.log.left), (0, 0));
            assert!(node.log.protocol.is_empty(), "{:?}", node.log.protocol);
        }
    }
}

#[test]
fn with_all_rails_cut_the_peer_fails_in_bounded_time() {
    let mut pair = Pair::new(4);
    pair.rounds_until(100, LIMIT, |pair| pair.have(100));
    pair.cut(0);
    pair.cut(1);
    pair.rounds_until(101, 4 * TIMEOUT, |pair| {
        pair.nodes.iter().all(|node| node.log.failed == 1)
    });
    let node = &mut pair.nodes[0];
    let post = node
        .transport
        .send(LANE, node.to, Class::Data, AmHeader::default(), b"");
    assert_eq!(post, Post::Gone);
}

/// A rail dies while nobody uses it, so that nobody knows when a rank leaves, or when both do.
#[test]
fn who_has_heard_a_goodbye_by_one_rail_is_not_waited_for_by_another() {
    for (seed, rail) in (0..20).flat_map(|seed| [(seed, 0), (seed, 1)]) {
        for leavers in [1, 2] {
            let mut pair = Pair::new(seed);
            pair.rounds_until(50, LIMIT, |pair| pair.have(50));
            pair.cut(rail);
            let leaving = pair.nodes.iter_mut().take(leavers);
            leaving.for_each(|node| node.transport.leave());
            // Less than the peer may be silent by a rail: a goodbye that is lost is said again.
            pair.rounds_until(50, TIMEOUT / 2, |pair| {
                let mut leaving = pair.nodes.iter().take(leavers);
                leaving.all(|node| node.transport.has_left())
            });
            (0..leavers).for_each(|node| assert_eq!(pair.unheard(node), [], "seed {seed}"));
            // Nobody has to be there for the other to know.
            if leavers == 1 {
                pair.cut(1 - rail);
                pair.rounds_until(50, TIMEOUT / 2, |pair| pair.nodes[1].log.left == 1);
            }
            let failed = pair.nodes.iter().map(|node| node.log.failed).sum::<usize>();
            assert_eq!(failed, 0, "seed {seed}, rail {rail}");
        }
    }
}

/// A rail that was given up before the rank leaves is not waited for at all.
#[test]
fn a_rail_that_was_given_up_is_not_waited_for() {
    for (seed, rail) in (0..10).flat_map(|seed| [(seed, 0), (seed, 1)]) {
        let mut pair = Pair::new(seed);
        pair.cut(rail);
        pair.rounds_until(300, LIMIT, |pair| pair.have(300));
        // Each looks after its rails once more.
        pair.rounds_until(300, TIMEOUT, |pair| {
            pair.nodes.iter().all(|node| node.is_given_up(rail))
        });
        pair.nodes[0].transport.leave();
        pair.rounds_until(300, PATIENCE / 2, |pair| pair.nodes[0].transport.has_left());
        assert_eq!(pair.unheard(0), []);
    }
}

/// A peer that computes, longer than a rail may be silent, hears the goodbye when it is back: a dead rail has not told it.
#[test]
fn a_dead_rail_tells_no_goodbye() {
    for (seed, rail) in (0..10).flat_map(|seed| [(seed, 0), (seed, 1)]) {
        let mut pair = Pair::new(seed);
        pair.cut(rail);
        pair.rounds_until(300, LIMIT, |pair| pair.have(300));
        pair.rounds_until(300, TIMEOUT, |pair| {
            pair.nodes.iter().all(|node| node.is_given_up(rail))
        });
        let Pair { nodes, hand } = &mut pair;
        nodes[0].transport.leave();
        let back = hand.clock().now() + 3 * PATIENCE;
        while hand.clock().now() < back {
            hand.advance(TURN);
            let Node { transport, log, .. } = &mut nodes[0];
            transport.progress(LANE, log);
            transport.look_after_peers(log);
        }
        pair.rounds_until(300, TIMEOUT, |pair| {
            pair.nodes[0].transport.has_left()
                && pair.nodes[1].log.left + pair.nodes[1].log.failed == 1
        });
        let [one, other] = &pair.nodes;
        assert_eq!(
            (one.log.failed, other.log.failed),
            (0, 0),
            "seed {seed}, rail {rail}"
        );
    }
}

/// Where all rails are dead, who leaves says whom it could not reach, in bounded time.
#[test]
fn who_lacks_messages_is_named() {
    for seed in 0..10 {
        let mut pair = Pair::new(seed);
        pair.rounds_until(50, LIMIT, |pair| pair.have(50));
        pair.cut(0);
        pair.cut(1);
        pair.round(51);
        pair.nodes[0].transport.leave();
        assert_eq!(pair.unheard(0), [Rank::new(1)]);
        pair.rounds_until(51, 4 * TIMEOUT, |pair| pair.nodes[0].transport.has_left());
        assert_eq!(pair.unheard(0), [Rank::new(1)]);
    }
}
