//! Datagrams of libfabric's `udp` on the loopback interface: under data reliability, which the setting `reliability` puts around
//! them, the kit of transports passes.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::sync::OnceLock;
use std::thread;
use std::time::Duration;

use tagwire_base::bootstrap::{LocalJob, SharedBootstrap};
use tagwire_base::{Config, Rank, Registry};
use tagwire_conformance::byte::{Factory, Job};
use tagwire_conformance::{assert_check, transport_conformance};
use tagwire_transport::{
    AmHeader, Arrival, ByteTransport, Capabilities, Class, EndpointId, Lane, Outcome, PeerEvent,
    Post, Token, Upcalls,
};

/// One address of this machine, and the provider's datagrams there.
const TRANSPORT: &str = "ofi:udp;datagram@127.0.0.1";

/// Checks of what datagrams do not do: what the dead have sent last may be lost, and nobody sends it again; a death is found by
/// what is not acknowledged, after `dr-timeout`, or told by the launcher; nothing but a goodbye says that an object is gone.
const LEFT_OUT: &[&str] = &["last_words_are_delivered", "who_says_no_goodbye_has_failed"];

fn config(settings: &[(&str, &str)]) -> Config {
    let lists: Vec<_> = tagwire_rails::settings().collect();
    let mut config = Config::defaults(&Registry::new(&lists));
    for (name, value) in settings {
        config.set(name, value).unwrap();
    }
    config
}

fn open(config: &Config, job: &LocalJob, rank: u32) -> Result<Box<dyn ByteTransport>, String> {
    let bootstrap = SharedBootstrap::new(Box::new(job.member(Rank::new(rank))));
    tagwire_rails::open(config, &bootstrap).map_err(|error| error.to_string())
}

/// Why the provider cannot be had here, said once.
fn missing() -> Option<&'static str> {
    static MISSING: OnceLock<Option<String>> = OnceLock::new();
    let missing = MISSING.get_or_init(|| {
        let job = LocalJob::new(1).unwrap();
        open(&config(&[("transport", TRANSPORT)]), &job, 0).err()
    });
    missing.as_deref()
}

fn factory(faults: &'static str) -> Factory {
    Factory::new(8, move |size| {
        let config = config(&[("transport", TRANSPORT), ("fault", faults)]);
        let job = LocalJob::new(size).map_err(|error| error.to_string())?;
        let ranks: Result<Vec<_>, String> =
            (0..size).map(|rank| open(&config, &job, rank)).collect();
        ranks.map(Job::new)
    })
}

fn check(name: &str, faults: &'static str) {
    if let Some(reason) = missing() {
        println!("SKIPPED: no {TRANSPORT} here: {reason}");
    } else if !LEFT_OUT.contains(&name) {
        assert_check(name, &factory(faults));
    }
}

mod kit {
    fn check(name: &str) {
        super::check(name, "");
    }

    use super::*;
    transport_conformance!(@for_each tests);
}

mod kit_with_losses {
    fn check(name: &str) {
        super::check(name, "seed=1,loss=1%,duplicate=1%,corrupt=1%,reorder=4");
    }

    use super::*;
    transport_conformance!(@for_each tests);
}

#[test]
fn datagrams_are_one_packet_of_the_network_each() {
    if let Some(reason) = missing() {
        println!("SKIPPED: no {TRANSPORT} here: {reason}");
        return;
    }
    let job = LocalJob::new(1).unwrap();
    let dr = open(&config(&[("transport", TRANSPORT)]), &job, 0).unwrap();
    assert_eq!(dr.name(), "dr");
    assert!(
        dr.capabilities()
            .contains(Capabilities::RELIABLE | Capabilities::ORDERED)
    );
    let most = dr.limits().max_send;
    assert!((1000..1500).contains(&most), "{most}");
}

const LANE: Lane = Lane(0);

/// Looks, with a nap after each that finds nothing, after which a test has failed.
const VAIN: u32 = 100_000;

/// What a rank is told: the numbers of messages, and what is no message.
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
        if !matches!(event, PeerEvent::Up { .. }) {
            self.events.push(format!("{event:?}"));
        }
    }
}

type Rail = Box<dyn ByteTransport>;

/// Two ranks of a job, and where the first has the second; `None`, loudly, where there is no provider.
fn pair(transport: &str, settings: &[(&str, &str)]) -> Option<([Rail; 2], EndpointId)> {
    if let Some(reason) = missing() {
        println!("SKIPPED: no {TRANSPORT} here: {reason}");
        return None;
    }
    let job = LocalJob::new(2).unwrap();
    let [mut a, b] = [("0", 0), ("1", 1)].map(|(host, rank)| {
        let own = [("transport", transport), ("host", host)];
        open(&config(&[&own, settings].concat()), &job, rank).unwrap()
    });
    let to = a.connect(Rank::new(1), &b.address()).unwrap();
    Some(([a, b], to))
}

/// Makes progress until `done`.
fn until(rail: &mut Rail, log: &mut Log, mut done: impl FnMut(&mut Rail, &Log) -> bool) {
    let mut vain = 0;
    while !done(rail, log) {
        if rail.progress(LANE, log) == 0 {
            vain += 1;
            assert!(vain < VAIN, "{:?}", log.events);
            thread::sleep(Duration::from_micros(100));
        }
    }
}

/// Sends messages `numbers`.
fn send(rail: &mut Rail, log: &mut Log, to: EndpointId, mut numbers: std::ops::Range<u64>) {
    until(rail, log, |rail, _| {
        let header = AmHeader([numbers.start, 0]);
        if !numbers.is_empty()
            && rail.send(LANE, to, Class::Data, header, &[7; 1000]) == Post::Posted
        {
            numbers.start += 1;
        }
        numbers.is_empty()
    });
}

/// A rank says its last and leaves, while its peer computes for longer than a rank waits that is dropped. What its peer then reads has
/// losses, and no launcher tells it anything.
#[test]
fn what_was_lost_while_its_receiver_computed_comes_again() {
    const ALL: u64 = 60;
    let Some(([mut a, mut b], to)) = pair(TRANSPORT, &[("fault", "seed=3,loss=20%")]) else {
        return;
    };
    thread::scope(|scope| {
        let leaver = scope.spawn(move || {
            let mut log = Log::default();
            send(&mut a, &mut log, to, 0..ALL);
            a.leave();
            until(&mut a, &mut log, |a, _| a.has_left());
            let mut unheard = Vec::new();
            a.unheard(&mut unheard);
            unheard
        });
        thread::sleep(Duration::from_millis(1500));
        let mut log = Log::default();
        until(&mut b, &mut log, |_, log| !log.events.is_empty());
        assert!(log.numbers.into_iter().eq(0..ALL));
        assert_eq!(log.events, ["Left(EndpointId(0))"]);
        b.leave();
        let mut log = Log::default();
        until(&mut b, &mut log, |b, _| b.has_left());
        assert_eq!(leaver.join().unwrap(), []);
    });
}

#[test]
fn who_was_given_up_is_told() {
    let losses = ("fault", "seed=5,loss=20%");
    give_up(TRANSPORT, &[losses, ("dr-timeout", "100ms")]);
}

/// The same between hosts whose own ranks share memory.
#[test]
fn who_was_given_up_is_told_where_ranks_of_a_host_share_memory() {
    let mixed = format!("shm+{TRANSPORT}");
    give_up(&mixed, &[("dr-timeout", "100ms")]);
}

/// A rank gives up a peer that computes. The peer, which then only listens, hears so; and nobody waits for the other.
fn give_up(transport: &str, settings: &[(&str, &str)]) {
    let Some(([mut a, mut b], to)) = pair(transport, settings) else {
        return;
    };
    let mut log = Log::default();
    send(&mut a, &mut log, to, 0..1);
    until(&mut a, &mut log, |_, log| !log.events.is_empty());
    let mut told = Log::default();
    until(&mut b, &mut told, |_, told| {
        a.progress(LANE, &mut log);
        !told.events.is_empty()
    });
    for (rail, mut log) in [(&mut a, log), (&mut b, told)] {
        assert_eq!(log.events, ["Failed(EndpointId(0))"]);
        let post = rail.send(LANE, EndpointId(0), Class::Data, AmHeader::default(), b"");
        assert_eq!(post, Post::Gone);
        rail.leave();
        until(rail, &mut log, |rail, _| rail.has_left());
        assert_eq!(log.events.len(), 1, "once");
    }
}
