//! Streams of messages of mixed sizes between two ranks, whose order and bytes are checked.

use tagwire_base::Rank;
use tagwire_dr::{Counters, Dr};
use tagwire_sim::{Actor, SimNetwork};
use tagwire_transport::fault::SplitMix64;
use tagwire_transport::{
    AmHeader, Arrival, ByteTransport, Class, EndpointId, Lane, Outcome, PeerEvent, Post, Token,
    Transport, Upcalls,
};

use super::{faults, machine, on_sim};

pub const LANE: Lane = Lane(0);

/// Calls of progress after which nothing happens any more.
pub const VAIN: u64 = 20_000_000;

/// Mostly short, some as long as they can be.
pub fn length(number: u64, most: usize) -> usize {
    let mut random = SplitMix64::new(number);
    let most = match random.below(8) {
        0..5 => 64.min(most),
        5 | 6 => 1024.min(most),
        _ => most,
    };
    random.below(most as u64 + 1) as usize
}

pub fn header(number: u64) -> AmHeader {
    AmHeader([number, !number])
}

fn bytes(number: u64, most: usize) -> Vec<u8> {
    SplitMix64::new(!number).bytes(length(number, most))
}

/// What a rank is told: messages in their order, and nothing else.
#[derive(Default)]
pub struct Log {
    pub next: u64,
    pub most: usize,
    pub events: Vec<String>,
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

pub struct Node {
    pub dr: Dr,
    pub log: Log,
    pub to: EndpointId,
    pub sent: u64,
}

pub fn connect(mut ranks: [Dr; 2]) -> [Node; 2] {
    let [there, back] = [1, 0].map(|rank| ranks[rank].address());
    let to = [
        ranks[0]
            .connect(Rank::new(1), &there)
            .expect("they know each other"),
        ranks[1]
            .connect(Rank::new(0), &back)
            .expect("they know each other"),
    ];
    let mut to = to.into_iter();
    ranks.map(|dr| Node {
        log: Log {
            most: dr.limits().max_send,
            ..Log::default()
        },
        to: to.next().expect("they know each other"),
        dr,
        sent: 0,
    })
}

impl Node {
    /// Sends what there is room for, up to message `all`.
    pub fn send(&mut self, all: u64) {
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

    pub fn progress(&mut self) -> usize {
        self.dr.progress(LANE, &mut self.log)
    }

    /// Leaves, and makes progress until it has left.
    pub async fn leave(&mut self, actor: &Actor) {
        self.dr.leave();
        while !self.dr.has_left() {
            if self.progress() == 0 {
                actor.next().await;
            }
        }
    }
}

/// Sends so many messages each way; returns what both had to do.
pub fn exchange(nodes: &mut [Node; 2], all: u64) -> [Counters; 2] {
    let mut vain = 0;
    let has_all = |node: &Node| node.log.next >= all;
    while !nodes.iter().all(has_all) {
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
pub fn pair_on_sim(spec: &str, seed: u64, first: u32) -> [Node; 2] {
    let network = SimNetwork::new(2, machine());
    let open = |rank| on_sim(&network, Rank::new(rank), faults(spec, seed), first).0;
    connect([open(0), open(1)])
}
