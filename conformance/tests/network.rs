//! The in-process network reports what a transport has to report.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use tagwire_base::Rank;
use tagwire_conformance::network::{MemoryNetwork, MemoryOptions, MemoryTransport};
use tagwire_transport::message::{
    AmHeader, Arrival, EndpointId, Lane, Outcome, PeerEvent, Token, Upcalls,
};
use tagwire_transport::{ByteTransport, Class, Post, Transport};

const LANE: Lane = Lane(0);

/// What was told, in words.
#[derive(Default)]
struct Log(Vec<String>);

impl Upcalls for Log {
    fn deliver(&mut self, arrival: Arrival<'_>) {
        let text = String::from_utf8(arrival.payload.to_vec()).unwrap();
        self.0
            .push(format!("{} {} {text}", arrival.from.0, arrival.header.0[0]));
    }
    fn complete(&mut self, token: Token, outcome: Outcome) {
        self.0.push(format!("{token:?} {outcome:?}"));
    }
    fn peer(&mut self, event: PeerEvent) {
        self.0.push(match event {
            PeerEvent::Up { endpoint, rank } => format!("up {} = {rank}", endpoint.0),
            PeerEvent::Left(endpoint) => format!("left {}", endpoint.0),
            PeerEvent::Failed(endpoint) => format!("failed {}", endpoint.0),
            _ => format!("{event:?}"),
        });
    }
}

fn pair(options: MemoryOptions) -> (MemoryNetwork, MemoryTransport, MemoryTransport, EndpointId) {
    let network = MemoryNetwork::new(2, options);
    let mut a = network.rank(Rank::new(0));
    let b = network.rank(Rank::new(1));
    let to = a.connect(Rank::new(1), &b.address()).unwrap();
    (network, a, b, to)
}

fn told(transport: &mut MemoryTransport) -> Vec<String> {
    let mut log = Log::default();
    transport.progress(LANE, &mut log);
    log.0
}

#[test]
fn a_peer_comes_sends_and_leaves() {
    let (_, mut a, mut b, to) = pair(MemoryOptions::default());
    assert_eq!(
        a.send(LANE, to, Class::Data, AmHeader([7, 0]), b"x"),
        Post::Posted
    );
    a.leave();
    drop(a);
    assert_eq!(told(&mut b), ["up 0 = 0", "0 7 x", "left 0"]);
    assert!(told(&mut b).is_empty());
    assert_eq!(
        b.send(LANE, EndpointId(0), Class::Data, AmHeader([0, 0]), b""),
        Post::Gone
    );
}

#[test]
fn full_queues_keep_room_for_control() {
    let options = MemoryOptions {
        slots: 4,
        control_slots: 1,
        ..MemoryOptions::default()
    };
    let (_, mut a, mut b, to) = pair(options);
    let mut send = |class| a.send(LANE, to, class, AmHeader([0, 0]), b"");
    for _ in 0..3 {
        assert_eq!(send(Class::Data), Post::Posted);
    }
    assert_eq!(send(Class::Data), Post::Busy);
    assert_eq!(send(Class::Control), Post::Posted);
    assert_eq!(send(Class::Control), Post::Busy);
    assert_eq!(told(&mut b).len(), 5);
    assert_eq!(
        a.send(LANE, to, Class::Data, AmHeader([0, 0]), b""),
        Post::Posted
    );
}

#[test]
fn a_dead_rank_is_found_when_looked_after() {
    let (network, mut a, mut b, to) = pair(MemoryOptions::full());
    assert_eq!(
        a.send(LANE, to, Class::Data, AmHeader([1, 0]), b"last"),
        Post::Posted
    );
    network.fail(Rank::new(0));
    assert_eq!(
        a.send(LANE, to, Class::Data, AmHeader([2, 0]), b"never"),
        Post::Gone
    );
    assert_eq!(told(&mut b), ["up 0 = 0", "0 1 last"]);
    let mut log = Log::default();
    b.look_after_peers(&mut log);
    b.look_after_peers(&mut log);
    b.peer_failed(Rank::new(0), &mut log);
    assert_eq!(log.0, ["failed 0"]);
    drop(a);
    assert!(told(&mut b).is_empty());
}

#[test]
fn addresses_of_other_networks_are_refused() {
    let (_, mut a, b, _) = pair(MemoryOptions::default());
    let other = MemoryNetwork::new(2, MemoryOptions::default());
    let stranger = other.rank(Rank::new(1)).address();
    assert!(a.connect(Rank::new(1), &stranger).is_err());
    assert!(a.connect(Rank::new(0), &b.address()).is_err());
    assert!(a.connect(Rank::new(1), b"").is_err());
}

#[test]
fn silent_ranks_cost_nothing() {
    let network = MemoryNetwork::new(u32::MAX, MemoryOptions::default());
    let mut a = network.rank(Rank::new(4_000_000_000));
    assert!(told(&mut a).is_empty());
    assert_eq!(network.known(), 1);
}
