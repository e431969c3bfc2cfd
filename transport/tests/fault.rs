//! What a transport with faults does to messages, by seed.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use tagwire_base::Rank;
use tagwire_transport::{
    ByteTransport, Capabilities, Class, CooperativeTransfers, Offer, Post, Transport,
};

use tagwire_conformance::network::{MemoryNetwork, MemoryOptions, MemoryTransport};
use tagwire_transport::fault::{Damage, Delay, FaultOptions, FaultTransport, Kill, Share};
use tagwire_transport::message::{
    AmHeader, Arrival, EndpointId, Lane, Outcome, PeerEvent, Token, Upcalls,
};

/// The first header words of what came, and what became of the peer.
#[derive(Default)]
struct Log {
    numbers: Vec<u64>,
    events: Vec<String>,
}

impl Upcalls for Log {
    fn deliver(&mut self, arrival: Arrival<'_>) {
        self.numbers.push(arrival.header.0[0]);
    }
    fn complete(&mut self, _: Token, _: Outcome) {}
    fn peer(&mut self, event: PeerEvent) {
        let number = self.numbers.len();
        self.events.push(match event {
            PeerEvent::Up { .. } => format!("up after {number}"),
            PeerEvent::Left(_) => format!("left after {number}"),
            PeerEvent::Failed(_) => format!("failed after {number}"),
            _ => format!("{event:?}"),
        });
    }
}

/// A plain sender and a receiver with faults.
fn pair(spec: &str) -> (MemoryNetwork, MemoryTransport, FaultTransport, EndpointId) {
    let network = MemoryNetwork::new(2, MemoryOptions::full());
    let mut a = network.rank(Rank::new(0));
    let b = network.rank(Rank::new(1));
    let to = a.connect(Rank::new(1), &b.address()).unwrap();
    let b = FaultTransport::new(Box::new(b), Rank::new(1), spec.parse().unwrap());
    (network, a, b, to)
}

fn post(from: &mut dyn ByteTransport, to: EndpointId, number: u64) -> Post {
    from.send(Lane(0), to, Class::Data, AmHeader([number, 0]), b"x")
}

fn arrivals(spec: &str) -> Vec<u64> {
    let (_network, mut a, mut b, to) = pair(spec);
    let mut log = Log::default();
    for number in 0..300 {
        while post(&mut a, to, number) == Post::Busy {
            b.progress(Lane(0), &mut log);
        }
    }
    a.leave();
    drop(a);
    while log.events.len() < 2 {
        b.progress(Lane(0), &mut log);
    }
    assert_eq!(log.events, ["up after 0", "left after 300"], "{spec}");
    log.numbers
}

#[test]
fn delays_keep_order_and_reordering_does_not() {
    let in_order: Vec<u64> = (0..300).collect();
    assert_eq!(arrivals("seed=1,delay=0..8"), in_order);
    let mixed = arrivals("seed=1,reorder=4");
    assert_ne!(mixed, in_order);
    for (place, number) in mixed.iter().enumerate() {
        let late = place as i64 - *number as i64;
        assert!(
            (-4..=4).contains(&late),
            "message {number} came {late} places late"
        );
    }
    assert_eq!(mixed, arrivals("seed=1,reorder=4"), "not repeatable");
    assert_ne!(
        mixed,
        arrivals("seed=2,reorder=4"),
        "the seed changes nothing"
    );
    let (_n, _a, b, _) = pair("reorder=4");
    assert!(!b.capabilities().contains(Capabilities::ORDERED));
}

#[test]
fn a_delayed_message_waits_its_calls_of_progress() {
    let (_network, mut a, mut b, to) = pair("delay=3");
    assert_eq!(post(&mut a, to, 5), Post::Posted);
    let mut log = Log::default();
    for _ in 0..3 {
        assert!(b.progress(Lane(0), &mut log) > 0, "a sleeper would miss it");
        assert!(log.numbers.is_empty());
    }
    b.progress(Lane(0), &mut log);
    assert_eq!(log.numbers, [5]);
    assert_eq!(b.progress(Lane(0), &mut log), 0);
}

#[test]
fn busy_comes_about_as_often_as_asked() {
    let (_network, a, mut b, _) = pair("seed=3,busy=25%");
    let to = b.connect(Rank::new(0), &a.address()).unwrap();
    let buffer = tagwire_transport::SendBuffer::EMPTY;
    let mut busy = 0;
    for number in 0..1000 {
        match b.offer(Lane(0), to, &buffer, Token(number)) {
            Offer::Open(ticket) => b.withdraw(to, ticket),
            Offer::Busy => busy += 1,
            Offer::Unsupported => panic!("offers were asked for"),
        }
    }
    assert!((200..300).contains(&busy), "{busy} of 1000");
}

#[test]
fn a_killed_rank_sends_and_hears_nothing() {
    let (network, mut a, b, to) = pair("kill-after=3");
    let mut b = b.on_death(move |rank| network.fail(rank));
    let back = b.connect(Rank::new(0), &a.address()).unwrap();
    assert_eq!(post(&mut a, to, 1), Post::Posted);
    assert_eq!(post(&mut b, back, 2), Post::Posted);
    assert_eq!(post(&mut b, back, 3), Post::Posted);
    let mut log = Log::default();
    b.progress(Lane(0), &mut log);
    assert_eq!(log.numbers, [1]);
    assert!(!b.is_dead());
    assert_eq!(post(&mut b, back, 4), Post::Gone);
    assert!(b.is_dead());
    assert_eq!(post(&mut a, to, 5), Post::Posted);
    assert_eq!(b.progress(Lane(0), &mut log), 0);
    drop(b);
    let mut seen = Log::default();
    a.progress(Lane(0), &mut seen);
    a.look_after_peers(&mut seen);
    assert_eq!(seen.numbers, [2, 3]);
    assert_eq!(seen.events, ["up after 0", "failed after 2"]);
}

#[test]
fn specs_are_read_and_refused_by_key() {
    let text = "seed=42, delay=0..8,reorder=4,busy=10%,loss=0.1%,duplicate=2,corrupt=100%,\
                kill-after=1000,kill=process";
    let all: FaultOptions = text.parse().unwrap();
    let expected = FaultOptions {
        seed: 42,
        delay: Delay { min: 0, max: 8 },
        reorder: 4,
        busy_percent: 10,
        damage: Damage {
            loss: Share::per_million(1000),
            duplicate: Share::per_million(20_000),
            corrupt: Share::ALL,
        },
        kill_after: Some(1000),
        kill: Kill::Process,
    };
    assert_eq!(all, expected);
    assert_eq!(all.to_string().parse::<FaultOptions>().unwrap(), all);
    assert_eq!("".parse::<FaultOptions>().unwrap(), FaultOptions::default());
    for (spec, told) in [
        ("dely=3", "did you mean 'delay'?"),
        ("kill-afer=3", "did you mean 'kill-after'?"),
        ("delay=8..0", "fault: delay"),
        ("delay=x", "fault: delay"),
        ("busy=100%", "from 0% to 99%"),
        ("loss=101%", "from 0% to 100%"),
        ("corrupt=x", "fault: corrupt"),
        ("duplicat=1%", "did you mean 'duplicate'?"),
        ("seed=-1", "fault: seed"),
        ("reorder=9999999999", "fault: reorder"),
        ("kill=proces", "did you mean 'process'?"),
        ("seed", "fault: seed"),
    ] {
        let error = spec.parse::<FaultOptions>().unwrap_err().to_string();
        assert!(error.contains(told), "{spec}: {error}");
    }
}

/// Runs itself again in a process that is to die.
#[test]
fn a_process_can_be_killed() {
    use std::os::unix::process::ExitStatusExt;
    const VICTIM: &str = "TAGWIRE_TEST_FAULT_VICTIM";
    if std::env::var_os(VICTIM).is_some() {
        let (_network, a, mut b, _) = pair("kill-after=1,kill=process");
        let back = b.connect(Rank::new(0), &a.address()).unwrap();
        assert_eq!(post(&mut b, back, 1), Post::Posted);
        let post = post(&mut b, back, 2);
        panic!("a killed process goes on: {post:?}");
    }
    let status = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_process_can_be_killed"])
        .env(VICTIM, "1")
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.signal(), Some(9), "{status}");
}

/// The numbers in the headers of what arrives of 2,000 messages.
fn damaged(spec: &str) -> Vec<u64> {
    let (_network, mut a, mut b, to) = pair(spec);
    assert!(!b.capabilities().contains(Capabilities::RELIABLE));
    let mut log = Log::default();
    for number in 0..2000 {
        while post(&mut a, to, number) == Post::Busy {
            b.progress(Lane(0), &mut log);
        }
    }
    a.leave();
    drop(a);
    while log.events.len() < 2 {
        b.progress(Lane(0), &mut log);
    }
    log.numbers
}

#[test]
fn messages_are_lost_repeated_and_changed_as_often_as_asked() {
    let all: Vec<u64> = (0..2000).collect();
    let lost = damaged("seed=1,loss=10%");
    assert!((1700..1900).contains(&lost.len()), "{}", lost.len());
    assert!(lost.is_sorted_by(|one, next| one < next));
    assert_eq!(damaged("seed=1,loss=100%"), [0; 0]);

    let mut repeated = damaged("seed=2,duplicate=10%");
    assert!((2100..2300).contains(&repeated.len()), "{}", repeated.len());
    repeated.dedup();
    assert_eq!(repeated, all);

    let changed = damaged("seed=3,corrupt=50%");
    assert_eq!(changed.len(), 2000);
    // Of those, some in the number itself: it is 64 of 136 bits.
    let wrong = changed.iter().zip(&all).filter(|(is, was)| is != was);
    assert!((400..1000).contains(&wrong.count()));
    assert_eq!(changed, damaged("seed=3,corrupt=50%"), "not repeatable");
}
