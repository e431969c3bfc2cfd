//! Many messages of mixed sizes over networks of several qualities: each comes once, whole and in order.
//!
//! A million each way: `TAGWIRE_DR_MESSAGES=1000000 cargo test --release -p tagwire-dr --test messages`.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod common;

use std::time::Duration;

use common::{QUALITIES, faults, guard, machine, on_shm, on_sim, options};
use tagwire_base::bootstrap::LocalJob;
use tagwire_base::{Clock, Rank};
use tagwire_dr::{Counters, Dr, DrOptions};
use tagwire_sim::{SimNetwork, Simulation};
use tagwire_transport::fault::SplitMix64;
use tagwire_transport::{
    AmHeader, Arrival, ByteTransport, Class, EndpointId, Lane, Outcome, PeerEvent, Post, Token,
    Transport, Upcalls,
};

const LANE: Lane = Lane(0);

/// Calls of progress after which nothing happens any more.
const VAIN: u64 = 20_000_000;

fn messages() -> u64 {
    std::env::var("TAGWIRE_DR_MESSAGES").map_or(3000, |text| text.parse().unwrap())
}

/// Mostly short, some as long as they can be.
fn length(number: u64, most: usize) -> usize {
    let mut random = SplitMix64::new(number);
    let most = match random.below(8) {
        0..5 => 64.min(most),
        5 | 6 => 1024.min(most),
        _ => most,
    };
    random.below(most as u64 + 1) as usize
}

fn header(number: u64) -> AmHeader {
    AmHeader([number, !number])
}

fn bytes(number: u64, most: usize) -> Vec<u8> {
    SplitMix64::new(!number).bytes(length(number, most))
}

/// What a rank is told: messages in their order, and nothing else.
#[derive(Default)]
struct Log {
    next: u64,
    most: usize,
    events: Vec<String>,
}

impl Upcalls for Log {
    fn deliver(&mut self, arrival: Arrival<'_>) {
        assert_eq!(arrival.header, header(self.next), "order");
        let expected = bytes(self.next, self.most);
        assert!(
            arrival.payload.to_vec() == expected,
            "message {}",
            self.next
        );
        self.next += 1;
    }

    fn complete(&mut self, _: Token, _: Outcome) {}

    fn peer(&mut self, event: PeerEvent) {
        if !matches!(event, PeerEvent::Up { .. }) {
            self.events.push(format!("{event:?}"));
        }
    }
}

struct Node {
    dr: Dr,
    log: Log,
    to: EndpointId,
    sent: u64,
}

fn connect(mut ranks: [Dr; 2]) -> [Node; 2] {
    let [there, back] = [1, 0].map(|rank| ranks[rank].address());
    let to = [
        ranks[0].connect(Rank::new(1), &there).unwrap(),
        ranks[1].connect(Rank::new(0), &back).unwrap(),
    ];
    let mut to = to.into_iter();
    ranks.map(|dr| Node {
        log: Log {
            most: dr.limits().max_send,
            ..Log::default()
        },
        to: to.next().unwrap(),
        dr,
        sent: 0,
    })
}

impl Node {
    /// Sends what there is room for, up to message `all`.
    fn send(&mut self, all: u64) {
        while self.sent < all {
            let data = bytes(self.sent, self.log.most);
            let post = self
                .dr
                .send(LANE, self.to, Class::Data, header(self.sent), &data);
            match post {
                Post::Posted => self.sent += 1,
                Post::Busy => return,
                other => panic!("message {} was answered {other:?}", self.sent),
            }
        }
    }

    fn progress(&mut self) -> usize {
        self.dr.progress(LANE, &mut self.log)
    }
}

/// Sends so many messages each way; returns what both had to do.
fn exchange(nodes: &mut [Node; 2], all: u64) -> [Counters; 2] {
    let mut vain = 0;
    while nodes.iter().any(|node| node.log.next < all) {
        for node in nodes.iter_mut() {
            node.send(all);
            vain = if node.progress() > 0 { 0 } else { vain + 1 };
        }
        if vain > VAIN {
            let mut text = String::new();
            nodes.iter().for_each(|node| node.dr.describe(&mut text));
            panic!("nothing comes any more:\n{text}");
        }
    }
    for node in nodes.iter() {
        assert!(node.log.events.is_empty(), "{:?}", node.log.events);
    }
    [nodes[0].dr.counters(), nodes[1].dr.counters()]
}

/// Both ranks of a simulated network.
fn pair_on_sim(spec: &str, seed: u64, first: u32) -> [Node; 2] {
    let network = SimNetwork::new(2, machine());
    let open = |rank| on_sim(&network, Rank::new(rank), faults(spec, seed), first).0;
    connect([open(0), open(1)])
}

#[test]
fn over_sim() {
    for (seed, quality) in (0..).zip(QUALITIES) {
        let counters = exchange(&mut pair_on_sim(quality, seed, 0), messages());
        println!("{quality}: {}; {}", counters[0], counters[1]);
        let is_lossy = quality.contains("loss=1%") || quality.contains("loss=10%");
        for counters in counters {
            assert!(counters.early > 0, "{quality}: {counters}");
            if is_lossy {
                let seen = [
                    counters.retransmitted,
                    counters.duplicates,
                    counters.corrupt,
                ];
                assert!(seen.iter().all(|count| *count > 0), "{quality}: {counters}");
            }
        }
    }
}

#[test]
fn over_shm() {
    for (seed, quality) in (0..).zip(QUALITIES) {
        let job = LocalJob::new(2).unwrap();
        let open = |rank| on_shm(&job, Rank::new(rank), faults(quality, seed)).unwrap();
        let counters = exchange(&mut connect([open(0), open(1)]), messages());
        println!("{quality}: {}; {}", counters[0], counters[1]);
    }
}

#[test]
fn numbers_wrap() {
    let first = u32::MAX - 1000;
    let counters = exchange(&mut pair_on_sim(QUALITIES[2], 7, first), 3000);
    assert!(counters.iter().all(|counters| counters.retransmitted > 0));
}

#[test]
fn ranks_that_begin_with_other_numbers_are_told_apart() {
    let network = SimNetwork::new(2, machine());
    let open = |rank, first| on_sim(&network, Rank::new(rank), faults("", 0), first).0;
    let (mut a, b) = (open(0, 0), open(1, 5));
    let error = a
        .connect(Rank::new(1), &b.address())
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("rank 1") && error.contains("dr-first"),
        "{error}"
    );
}

#[test]
fn without_faults_nothing_is_sent_again() {
    let counters = exchange(&mut pair_on_sim("", 0, 0), 3000);
    for counters in counters {
        let for_nothing = [
            counters.retransmitted,
            counters.duplicates,
            counters.corrupt,
            counters.early,
        ];
        assert_eq!(for_nothing, [0; 4], "{counters}");
        assert!(
            counters
                .round_trip
                .is_some_and(|time| time > Duration::ZERO)
        );
    }
}

/// Has `node` make progress until it is told something, within `limit` by its clock.
fn told_within(node: &mut Node, clock: &Clock, limit: Duration) -> Duration {
    let start = clock.now();
    while node.log.events.is_empty() {
        node.progress();
        assert!(clock.now().since(start) < limit, "nothing within {limit:?}");
    }
    clock.now().since(start)
}

#[test]
fn who_gets_nothing_through_fails_the_peer_in_bounded_time() {
    const PATIENCE: Duration = Duration::from_millis(50);
    let network = SimNetwork::new(2, machine());
    let open = |rank, spec: &str| {
        let (inside, clock) = network.open(Rank::new(rank));
        let options = DrOptions {
            patience: PATIENCE,
            ..options(clock.clone())
        };
        let dr = guard(Box::new(inside), Rank::new(rank), faults(spec, 1), options);
        (dr, clock)
    };
    let ((a, clock), (b, _)) = (open(0, "loss=100%"), open(1, "loss=100%"));
    let mut nodes = connect([a, b]);
    nodes[0].send(1);
    let time = told_within(&mut nodes[0], &clock, 6 * PATIENCE);
    assert!(time >= PATIENCE);
    assert_eq!(nodes[0].log.events, ["Failed(EndpointId(0))"]);
    for _ in 0..1000 {
        nodes[0].progress();
    }
    assert_eq!(nodes[0].log.events.len(), 1, "once");
    let post = nodes[0]
        .dr
        .send(LANE, EndpointId(0), Class::Data, header(1), b"");
    assert_eq!(post, Post::Gone);
}

#[test]
fn a_peer_that_only_listens_is_told_from_one_that_is_not_there() {
    let mut nodes = pair_on_sim("loss=10%", 3, 0);
    let [a, b] = &mut nodes;
    while b.log.next < 200 {
        a.send(200);
        a.progress();
        b.progress();
    }
    // Acknowledged without a message back.
    let mut text = String::new();
    for _ in 0..1_000_000 {
        a.progress();
        b.progress();
        text.clear();
        a.dr.describe(&mut text);
        if text.contains(" 0 not acknowledged") {
            break;
        }
    }
    assert!(text.contains(" 0 not acknowledged"), "{text}");
    assert!(b.dr.counters().notes > 0);
}

#[test]
fn a_goodbye_waits_for_what_was_lost() {
    for seed in 0..20 {
        let [mut a, mut b] = pair_on_sim("loss=10%,duplicate=5%", seed, 0);
        while a.sent < 100 {
            a.send(100);
            a.progress();
            b.progress();
        }
        a.dr.leave();
        while b.log.events.is_empty() {
            a.progress();
            b.progress();
        }
        assert_eq!(
            (b.log.next, &b.log.events[..]),
            (100, &["Left(EndpointId(0))".to_owned()][..])
        );
        while !a.dr.has_left() {
            a.progress();
            b.progress();
        }
        drop(a);
        for _ in 0..1000 {
            b.progress();
        }
        assert_eq!(b.log.events.len(), 1, "seed {seed}: {:?}", b.log.events);
    }
}

#[test]
fn ranks_that_are_called_only_for_what_comes_send_again_too() {
    const ALL: u64 = 500;
    for seed in 0..4 {
        let network = SimNetwork::new(2, machine());
        let mut simulation = Simulation::new(&network);
        let spec = QUALITIES[seed as usize];
        let open = |rank| on_sim(&network, Rank::new(rank), faults(spec, seed), 0).0;
        for (rank, mut node) in (0..).zip(connect([open(0), open(1)])) {
            let actor = network.actor(Rank::new(rank));
            simulation.spawn(&actor.clone(), async move {
                while node.sent < ALL || node.log.next < ALL {
                    node.send(ALL);
                    if node.progress() == 0 {
                        actor.next().await;
                    }
                }
                node.dr.leave();
                while !node.dr.has_left() {
                    if node.progress() == 0 {
                        actor.next().await;
                    }
                }
            });
        }
        let end = simulation.run();
        assert_eq!(end, Ok(()), "{spec}");
    }
}
