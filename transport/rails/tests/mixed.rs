//! Several transports as one: the kit on a job whose ranks are on two hosts, and what is special.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod common;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use common::{Knobs, LANE, Line, Log};
use tagwire_base::bootstrap::{LocalJob, SharedBootstrap};
use tagwire_base::clock::{Clock, ManualClock};
use tagwire_base::{Config, Rank, Registry};
use tagwire_conformance::byte::{Factory, Job};
use tagwire_conformance::network::{MemoryNetwork, MemoryOptions};
use tagwire_conformance::transport_conformance;
use tagwire_conformance::{passed_tiers, run_all};
use tagwire_dr::{Dr, DrOptions};
use tagwire_rails::Mixed;
use tagwire_transport::fault::FaultTransport;
use tagwire_transport::{
    AmHeader, ByteTransport, Capabilities, Class, Error, Lane, Post, Transport, TransportKind,
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
        let mixed = Mixed::new(Rank::new(rank), &config, &Clock::default(), rails).unwrap();
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
            Mixed::new(Rank::new(rank), &config(&host), &Clock::default(), rails).unwrap()
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
        let mixed = Mixed::new(Rank::new(0), &config("a"), &Clock::default(), rails).unwrap();
        let told = mixed.capabilities().contains(Capabilities::THREADS);
        assert_eq!(told, has_threads);
    }
}

#[test]
fn what_cannot_be_mixed_or_reached_is_refused() {
    let far = || MemoryNetwork::new(2, far()).rank(Rank::new(0));
    let both: Vec<Box<dyn ByteTransport>> = vec![Box::new(far()), Box::new(far())];
    assert!(matches!(
        Mixed::new(Rank::new(0), &config("a"), &Clock::default(), both),
        Err(Error::Unsupported { .. })
    ));
    let near = MemoryNetwork::new(2, MemoryOptions::full());
    let open = |rank, host| {
        let rails: Vec<Box<dyn ByteTransport>> = vec![Box::new(near.rank(Rank::new(rank)))];
        Mixed::new(Rank::new(rank), &config(host), &Clock::default(), rails).unwrap()
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

/// Three ranks, two of them on one host; data reliability between hosts, over a network that loses messages.
fn two_hosts_with_dr(seed: u64, hand: &ManualClock) -> [Mixed; 3] {
    let near = MemoryNetwork::new(3, MemoryOptions::full());
    let far = MemoryNetwork::new(3, far());
    [0, 1, 2].map(|number| {
        let rank = Rank::new(number);
        let faults = format!("seed={seed},loss=20%,duplicate=5%").parse();
        let lossy = FaultTransport::new(Box::new(far.rank(rank)), rank, faults.unwrap());
        let options = DrOptions {
            patience: PATIENCE,
            clock: hand.clock(),
            ..DrOptions::default()
        };
        let dr = Dr::new(Box::new(lossy), rank, options).unwrap();
        let rails: Vec<Box<dyn ByteTransport>> = vec![Box::new(near.rank(rank)), Box::new(dr)];
        let config = config(&format!("host {}", number / 2));
        Mixed::new(rank, &config, &hand.clock(), rails).unwrap()
    })
}

/// How long a peer may acknowledge nothing.
const PATIENCE: Duration = Duration::from_millis(100);

/// A rank gives up one of another host, and not its neighbour. The other, once it is back, sends its last messages and leaves before it
/// hears so: it names who lacks them.
#[test]
fn who_was_given_up_beside_shared_memory_is_told() {
    for seed in 0..50 {
        let hand = ManualClock::default();
        let mut ranks = two_hosts_with_dr(seed, &hand);
        let addresses = ranks.each_ref().map(|rank| rank.address());
        let mut connect = |from: usize, to: usize| {
            let peer = Rank::new(to as u32);
            ranks[from].connect(peer, &addresses[to]).unwrap()
        };
        let (near, far, back) = (connect(0, 1), connect(0, 2), connect(2, 0));
        let mut logs = [(); 3].map(|()| Log::default());
        let mut turn = |ranks: &mut [Mixed; 3], who: &[usize]| {
            hand.advance(Duration::from_micros(500));
            for rank in who {
                ranks[*rank].progress(LANE, &mut logs[*rank]);
            }
            logs.each_ref()
                .map(|log| (log.failed, log.left, log.messages.len()))
        };
        let send = |rank: &mut Mixed, to| rank.send(LANE, to, Class::Data, AmHeader([1, 0]), b"x");
        assert_eq!(send(&mut ranks[0], far), Post::Posted);
        let mut turns = 0;
        while turn(&mut ranks, &[0, 1])[0].0 == 0 {
            turns += 1;
            assert!(turns < 4000, "seed {seed}: nobody gives it up");
        }
        assert_eq!(send(&mut ranks[0], far), Post::Gone);
        assert_eq!(send(&mut ranks[0], near), Post::Posted);
        assert_eq!(send(&mut ranks[2], back), Post::Posted);
        ranks[2].leave();
        while !ranks[2].has_left() {
            turn(&mut ranks, &[0, 1, 2]);
            turns += 1;
            if turns >= 8000 {
                // Whoever drops them would wait by a clock that stands still.
                std::mem::forget(ranks);
                panic!("seed {seed}: it waits for who has given it up");
            }
        }
        let mut unheard = Vec::new();
        ranks[2].unheard(&mut unheard);
        assert_eq!(unheard, [Rank::new(0)], "seed {seed}");
        let told = turn(&mut ranks, &[0, 1, 2]);
        // What it was sent may be lost, or not.
        let [first, neighbour, (failed, left, _)] = told;
        assert_eq!([first, neighbour], [(1, 0, 0), (0, 0, 1)], "seed {seed}");
        assert_eq!((failed, left), (1, 0), "seed {seed}");
        // Its neighbour is there, and waited for by nobody.
        assert_eq!(send(&mut ranks[0], near), Post::Posted);
        ranks[0].leave();
        while !ranks[0].has_left() {
            turn(&mut ranks, &[0, 1]);
            turns += 1;
            if turns >= 12_000 {
                // Whoever drops them would wait by a clock that stands still.
                std::mem::forget(ranks);
                panic!("seed {seed}: it waits for whom it has given up");
            }
        }
    }
}

/// While shared memory brings messages, looks at a network are rare; who is about to sleep has to see all.
#[test]
fn a_look_before_sleep_is_at_all_rails() {
    let far = MemoryNetwork::new(2, far());
    let job = LocalJob::new(2).unwrap();
    let open = |rank: u32| {
        let bootstrap = SharedBootstrap::new(Box::new(job.member(Rank::new(rank))));
        let config = config(&format!("host {rank}"));
        let shm = tagwire_transport::shm::ShmKind.open(None, &config, &bootstrap);
        let far = Box::new(far.rank(Rank::new(rank)));
        // Time stands still: looks by the clock do not come.
        let clock = ManualClock::default().clock();
        Mixed::new(Rank::new(rank), &config, &clock, vec![shm.unwrap(), far]).unwrap()
    };
    let (mut here, mut there) = (open(0), open(1));
    let to_self = here.connect(Rank::new(0), &here.address()).unwrap();
    let to_here = there.connect(Rank::new(0), &here.address()).unwrap();
    let (lane, mut log) = (Lane::default(), Log::default());
    let send = |from: &mut Mixed, to, number| {
        let posted = from.send(lane, to, Class::Data, AmHeader([number, 0]), b"");
        assert_eq!(posted, Post::Posted);
    };
    for _ in 0..1000 {
        send(&mut here, to_self, 1);
        here.progress(lane, &mut log);
    }
    log.messages.clear();
    for number in 2..100 {
        send(&mut there, to_here, number);
        here.progress(lane, &mut log);
        assert_eq!(
            log.messages.len(),
            0,
            "nothing asked for a look at the network"
        );
        let waiter = here.waiter();
        waiter.arm();
        here.progress(lane, &mut log);
        waiter.disarm();
        assert_eq!(log.messages.pop().map(|(number, _)| number), Some(number));
        // Until the network has nothing to do again.
        for _ in 0..1000 {
            send(&mut here, to_self, 1);
            here.progress(lane, &mut log);
        }
        log.messages.clear();
    }
}
