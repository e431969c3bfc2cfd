//! Several transports as one: the kit on a job whose ranks are on two hosts, and what is special.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod common;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use common::{Knobs, LANE, Line};
use tagwire_base::{Config, Rank, Registry};
use tagwire_conformance::byte::{Factory, Job};
use tagwire_conformance::network::{MemoryNetwork, MemoryOptions};
use tagwire_conformance::transport_conformance;
use tagwire_conformance::{passed_tiers, run_all};
use tagwire_rails::Mixed;
use tagwire_transport::{
    AmHeader, Arrival, ByteTransport, Capabilities, Class, Disposition, Error, Outcome, PeerEvent,
    Post, Retained, Token, Upcalls,
};

fn config(host: &str) -> Config {
    let lists: Vec<_> = tagwire_rails::settings().collect();
    let mut config = Config::defaults(&Registry::new(&lists));
    config.set("host", host).unwrap();
    config
}

/// A network of each kind, and the host of each rank.
fn job(size: u32, near: &MemoryOptions, far: &MemoryOptions, hosts: fn(u32) -> u32) -> Job {
    let near = MemoryNetwork::new(size, near.clone());
    let far = MemoryNetwork::new(size, far.clone());
    let open = |rank: u32| {
        let rails: Vec<Box<dyn ByteTransport>> = vec![
            Box::new(near.rank(Rank::new(rank))),
            Box::new(far.rank(Rank::new(rank))),
        ];
        let config = config(&format!("host {}", hosts(rank)));
        let mixed = Mixed::new(Rank::new(rank), &config, rails).unwrap();
        Box::new(mixed) as Box<dyn ByteTransport>
    };
    Job::new((0..size).map(open).collect()).with_kill({
        let (near, far) = (near.clone(), far.clone());
        move |rank, transport| {
            near.fail(rank);
            far.fail(rank);
            drop(transport);
        }
    })
}

fn far() -> MemoryOptions {
    MemoryOptions {
        remote: true,
        get: true,
        put: true,
        notices: true,
        max_send: 2000,
        ..MemoryOptions::default()
    }
}

fn on_one_host() -> Factory {
    Factory::new(16, |size| {
        Ok(job(size, &MemoryOptions::full(), &far(), |_| 0))
    })
}

fn each_on_its_own() -> Factory {
    Factory::new(16, |size| {
        Ok(job(size, &MemoryOptions::full(), &far(), |rank| rank))
    })
}

fn two_hosts() -> Factory {
    Factory::new(16, |size| {
        Ok(job(size, &MemoryOptions::full(), &far(), |rank| rank % 2))
    })
}

transport_conformance!(one_host, on_one_host());
transport_conformance!(own_hosts, each_on_its_own());
transport_conformance!(hosts, two_hosts());

#[test]
fn what_all_offer_is_offered() {
    for factory in [on_one_host(), each_on_its_own(), two_hosts()] {
        let tiers: Vec<_> = passed_tiers(&run_all(&factory))
            .into_iter()
            .map(|tier| tier.name())
            .collect();
        assert!(
            ["core", "failure", "wake", "get", "put", "notice"]
                .iter()
                .all(|tier| tiers.contains(tier)),
            "{tiers:?}"
        );
    }
}

#[test]
fn ranks_of_one_host_use_what_reaches_no_further() {
    let near = MemoryNetwork::new(4, MemoryOptions::full());
    let far = MemoryNetwork::new(4, far());
    let mut ranks: Vec<Mixed> = (0..4)
        .map(|rank| {
            let rails: Vec<Box<dyn ByteTransport>> = vec![
                Box::new(near.rank(Rank::new(rank))),
                Box::new(far.rank(Rank::new(rank))),
            ];
            let host = format!("host {}", rank / 2);
            Mixed::new(Rank::new(rank), &config(&host), rails).unwrap()
        })
        .collect();
    let addresses: Vec<_> = ranks.iter().map(|rank| rank.address()).collect();
    for peer in 0..4 {
        ranks[0]
            .connect(Rank::new(peer), &addresses[peer as usize])
            .unwrap();
    }
    let mut text = String::new();
    ranks[0].describe(&mut text);
    // One line for each link of each network: the own host's first.
    let links: Vec<_> = text
        .lines()
        .map(|line| line.split(": ").nth(1).unwrap())
        .collect();
    assert_eq!(links, ["rank 0", "rank 1", "rank 2", "rank 3"], "{text}");
}

/// Keeps every message that may be kept.
#[derive(Default)]
struct Keeper {
    kept: Vec<Retained>,
    messages: usize,
}

impl Upcalls for Keeper {
    fn deliver(&mut self, arrival: Arrival<'_>) -> Disposition {
        self.messages += 1;
        let Some(name) = arrival.retainable else {
            return Disposition::Released;
        };
        self.kept.push(name);
        Disposition::Retained
    }

    fn complete(&mut self, _: Token, _: Outcome) {}

    fn peer(&mut self, _: PeerEvent) {}
}

/// The rail's number has bits in the names of kept buffers: a buffer whose own name needs these is not
/// offered to be kept, since it could not be given back to its rail.
#[test]
fn buffers_are_kept_while_their_names_leave_room_for_the_rail() {
    let near = MemoryNetwork::new(2, MemoryOptions::full());
    let options = MemoryOptions {
        retain: true,
        ..far()
    };
    let far = MemoryNetwork::new(2, options);
    let knobs = Arc::new(Knobs::default());
    let mut ranks: Vec<Mixed> = (0..2)
        .map(|rank| {
            let far = Box::new(far.rank(Rank::new(rank)));
            let rails: Vec<Box<dyn ByteTransport>> = vec![
                Box::new(near.rank(Rank::new(rank))),
                Box::new(Line::new(far, Arc::clone(&knobs))),
            ];
            let host = format!("host {rank}");
            Mixed::new(Rank::new(rank), &config(&host), rails).unwrap()
        })
        .collect();
    let address = ranks[1].address();
    let to = ranks[0].connect(Rank::new(1), &address).unwrap();
    for (names_from, is_kept) in [
        (0, true),
        (1 << 60, true),
        (1 << 61, false),
        (1 << 63, false),
    ] {
        knobs.names_from.store(names_from, Ordering::Relaxed);
        let mut keeper = Keeper::default();
        let post = ranks[0].send(LANE, to, Class::Data, AmHeader::default(), b"bytes");
        assert_eq!(post, Post::Posted);
        while keeper.messages == 0 {
            ranks[0].progress(LANE, &mut keeper);
            ranks[1].progress(LANE, &mut keeper);
        }
        assert_eq!(keeper.kept.len(), usize::from(is_kept), "{names_from:x}");
        let before = knobs.released.load(Ordering::Relaxed);
        for name in keeper.kept {
            ranks[1].release(name);
        }
        let released = knobs.released.load(Ordering::Relaxed) - before;
        assert_eq!(released, u64::from(is_kept), "by the rail that it came by");
    }
}

/// Threads of one rail are threads of the mixture.
#[test]
fn threads_of_a_rail_are_told_of() {
    for has_threads in [false, true] {
        let knobs = Arc::new(Knobs::default());
        knobs.has_threads.store(has_threads, Ordering::Relaxed);
        let far = MemoryNetwork::new(1, far()).rank(Rank::new(0));
        let near = MemoryNetwork::new(1, MemoryOptions::full()).rank(Rank::new(0));
        let rails: Vec<Box<dyn ByteTransport>> = vec![
            Box::new(near),
            Box::new(Line::new(Box::new(far), Arc::clone(&knobs))),
        ];
        let mixed = Mixed::new(Rank::new(0), &config("a"), rails).unwrap();
        let told = mixed.capabilities().contains(Capabilities::THREADS);
        assert_eq!(told, has_threads);
    }
}

#[test]
fn what_cannot_be_mixed_or_reached_is_refused() {
    let far = || MemoryNetwork::new(2, far()).rank(Rank::new(0));
    let both: Vec<Box<dyn ByteTransport>> = vec![Box::new(far()), Box::new(far())];
    assert!(matches!(
        Mixed::new(Rank::new(0), &config("a"), both),
        Err(Error::Unsupported { .. })
    ));
    let near = MemoryNetwork::new(2, MemoryOptions::full());
    let open = |rank, host| {
        let rails: Vec<Box<dyn ByteTransport>> = vec![Box::new(near.rank(Rank::new(rank)))];
        Mixed::new(Rank::new(rank), &config(host), rails).unwrap()
    };
    let (mut a, b) = (open(0, "a"), open(1, "b"));
    let error = a.connect(Rank::new(1), &b.address()).unwrap_err();
    assert!(error.to_string().contains("another host"), "{error}");
    for address in [&b""[..], b"nonsense", &b.address()[1..]] {
        assert!(matches!(
            a.connect(Rank::new(1), address),
            Err(Error::BadAddress { .. })
        ));
    }
}
