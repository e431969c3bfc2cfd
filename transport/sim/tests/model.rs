//! Messages on a machine take as long as the model says, to the nanosecond.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use tagwire_base::Rank;
use tagwire_sim::{
    Actor, Kill, Link, Machine, PerByte, Schedule, SimNetwork, SimOptions, SimTransport,
    Simulation, Span,
};
use tagwire_transport::message::{
    AmHeader, Arrival, EndpointId, Lane, Outcome, PeerEvent, Token, Upcalls,
};
use tagwire_transport::{ByteTransport, Class, Post, Transport};

const LANE: Lane = Lane(0);
const LATENCY: u64 = 900;
const SEND: u64 = 250;
const RECV: u64 = 300;
const GAP: u64 = 150;
/// Nanoseconds a byte.
const BYTE: u64 = 2;

fn machine() -> Machine {
    let network = Link {
        latency: Span::nanos(LATENCY),
        send: Span::nanos(SEND),
        recv: Span::nanos(RECV),
        gap: Span::nanos(GAP),
        per_byte: PerByte::femtos(BYTE * 1_000_000),
        ..Link::default()
    };
    Machine {
        network,
        local: Link {
            latency: Span::nanos(100),
            ..Link::default()
        },
        ranks_per_node: 1,
        detection: Span::nanos(5_000),
        ..Machine::default()
    }
}

/// What a rank has been told, and when.
struct Log {
    actor: Actor,
    seen: Vec<(u64, String)>,
}

impl Log {
    fn note(&mut self, what: String) {
        self.seen.push((self.actor.now().as_nanos(), what));
    }
}

impl Upcalls for Log {
    fn deliver(&mut self, arrival: Arrival<'_>) {
        let [number, _] = arrival.header.0;
        self.note(format!("message {number} of {}", arrival.payload.len()));
    }
    fn complete(&mut self, token: Token, outcome: Outcome) {
        self.note(format!("{token:?} {outcome:?}"));
    }
    fn peer(&mut self, event: PeerEvent) {
        match event {
            PeerEvent::Up { .. } => {}
            PeerEvent::Left(_) => self.note("left".to_owned()),
            PeerEvent::Failed(_) => self.note("failed".to_owned()),
            _ => self.note(format!("{event:?}")),
        }
    }
}

/// A rank: its transport, and what runs it.
struct Node {
    transport: SimTransport,
    actor: Actor,
    peers: Vec<EndpointId>,
}

impl Node {
    /// Sends a message of so many bytes, whose header is `number`.
    fn send(&mut self, to: usize, number: u64, len: usize) {
        let (peer, bytes) = (self.peers[to], vec![0; len]);
        let post = self
            .transport
            .send(LANE, peer, Class::Data, AmHeader([number, 0]), &bytes);
        assert_eq!(post, Post::Posted);
    }

    /// Returns what comes next, with when the rank has it.
    async fn hear(&mut self) -> Vec<(u64, String)> {
        loop {
            let mut log = Log {
                actor: self.actor.clone(),
                seen: Vec::new(),
            };
            self.transport.progress(LANE, &mut log);
            if !log.seen.is_empty() {
                return log.seen;
            }
            self.actor.next().await;
        }
    }

    fn end(mut self) {
        self.transport.leave();
    }
}

type Seen = Rc<RefCell<Vec<(u64, String)>>>;

/// Runs `size` ranks, each with what `body` makes of it, and returns what they have seen.
fn run<F: Future<Output = ()> + 'static>(
    size: u32,
    options: SimOptions,
    body: impl Fn(u32, Node, Seen) -> F,
) -> Vec<(u64, String)> {
    run_opened(&(0..size).collect::<Vec<_>>(), options, body)
}

/// The same, where ranks are opened in an order.
fn run_opened<F: Future<Output = ()> + 'static>(
    opened: &[u32],
    options: SimOptions,
    body: impl Fn(u32, Node, Seen) -> F,
) -> Vec<(u64, String)> {
    let size = opened.len() as u32;
    let network = SimNetwork::new(size, options);
    let mut simulation = Simulation::new(&network);
    let seen = Seen::default();
    let open = |rank: &u32| (*rank, network.rank(Rank::new(*rank)));
    let mut transports: Vec<_> = opened.iter().map(open).collect();
    transports.sort_by_key(|(rank, _)| *rank);
    let mut transports: Vec<_> = transports.into_iter().map(|(_, of)| of).collect();
    let addresses: Vec<_> = transports
        .iter()
        .map(|transport| transport.address())
        .collect();
    for (rank, mut transport) in (0..size).zip(transports.drain(..)) {
        let peers = (0..size).zip(&addresses);
        let peers = peers.map(|(peer, address)| transport.connect(Rank::new(peer), address));
        let peers = peers.collect::<Result<_, _>>().unwrap();
        let actor = network.actor(Rank::new(rank));
        let node = Node {
            transport,
            actor: actor.clone(),
            peers,
        };
        simulation.spawn(&actor, body(rank, node, Rc::clone(&seen)));
    }
    simulation.run().unwrap();
    drop(simulation);
    Rc::into_inner(seen).unwrap().into_inner()
}

#[test]
fn a_ping_pong_takes_latency_overheads_and_bytes() {
    for len in [0, 1, 8, 1000, 8192] {
        const ROUNDS: u64 = 3;
        let seen = run(
            2,
            SimOptions::of(machine()),
            |rank, mut node, seen| async move {
                for round in 0..ROUNDS {
                    if rank == 0 {
                        node.send(1, round, len);
                    }
                    let heard = node.hear().await;
                    seen.borrow_mut().extend(heard);
                    if rank == 1 {
                        node.send(0, round, len);
                    }
                }
                // Who leaves first would be heard by the other.
                std::mem::forget(node);
            },
        );
        let way = LATENCY + SEND + RECV + BYTE * len as u64;
        let expected: Vec<_> = (1..=2 * ROUNDS)
            .map(|ways| (ways * way, format!("message {} of {len}", (ways - 1) / 2)))
            .collect();
        assert_eq!(seen, expected, "{len} bytes");
    }
}

/// So many messages from ranks 1 and on to rank 0, which returns when it had each.
fn arrivals(size: u32, options: SimOptions, each: u64, len: usize) -> Vec<u64> {
    let seen = run(size, options, move |rank, mut node, seen| async move {
        if rank > 0 {
            for number in 0..each {
                node.send(0, number, len);
            }
            return std::mem::forget(node);
        }
        let mut left = each * u64::from(size - 1);
        while left > 0 {
            let heard = node.hear().await;
            left -= heard.len() as u64;
            seen.borrow_mut().extend(heard);
        }
        node.end();
    });
    seen.into_iter().map(|(at, _)| at).collect()
}

#[test]
fn messages_of_one_rank_are_as_far_apart_as_their_bytes() {
    let first = SEND + LATENCY + RECV;
    // More than the overheads of either side.
    let len = 1000;
    let bytes = BYTE * len as u64;
    let expected: Vec<_> = (1..=8).map(|number| first + number * bytes).collect();
    assert_eq!(arrivals(2, SimOptions::of(machine()), 8, len), expected);
    // Short ones are as far apart as their receiver is busy with each.
    let expected: Vec<_> = (0..8).map(|number| first + number * RECV).collect();
    assert_eq!(arrivals(2, SimOptions::of(machine()), 8, 0), expected);
}

#[test]
fn a_sender_is_busy_with_what_has_left() {
    // Longer than a message takes.
    const AFTER: u64 = 2 * (SEND + LATENCY + RECV);
    let mut machine = machine();
    machine.network.after_send = Span::nanos(AFTER);
    let first = SEND + LATENCY + RECV;
    let expected: Vec<_> = (0..4)
        .map(|number| first + number * (SEND + AFTER))
        .collect();
    assert_eq!(arrivals(2, SimOptions::of(machine), 4, 0), expected);
    // Who has sent receives later.
    let both = run(
        2,
        SimOptions::of(machine),
        |rank, mut node, seen| async move {
            node.send(1 - rank as usize, 0, 0);
            let heard = node.hear().await;
            seen.borrow_mut().extend(heard);
            std::mem::forget(node);
        },
    );
    let at: Vec<_> = both.into_iter().map(|(at, _)| at).collect();
    assert_eq!(at, [SEND + AFTER + RECV; 2]);
}

#[test]
fn messages_that_ranks_match_have_a_gap_of_their_own() {
    // More than a receiver is busy with each.
    const MATCHING_GAP: u64 = 2 * RECV;
    let mut machine = machine();
    machine.matching_gap = Span::nanos(MATCHING_GAP);
    let first = SEND + LATENCY + RECV;
    let expected: Vec<_> = (0..8).map(|number| first + number * MATCHING_GAP).collect();
    assert_eq!(arrivals(2, SimOptions::of(machine), 8, 0), expected);
}

#[test]
fn senders_share_the_nic_of_their_receiver() {
    let len = 1000;
    let bytes = BYTE * len as u64;
    let first = SEND + LATENCY + RECV;
    let expected: Vec<_> = (1..=5).map(|number| first + number * bytes).collect();
    assert_eq!(arrivals(6, SimOptions::of(machine()), 1, len), expected);
}

#[test]
fn nics_take_turns_between_messages_to_several_ranks() {
    const TURN: u64 = 200;
    let mut machine = machine();
    machine.turn = TURN as u32;
    let (long, short) = (10_000, 100);
    let seen = run(
        3,
        SimOptions::of(machine),
        move |rank, mut node, seen| async move {
            if rank == 0 {
                node.send(1, 0, long as usize);
                node.send(2, 0, short as usize);
            } else {
                let heard = node.hear().await;
                seen.borrow_mut().extend(heard);
            }
            std::mem::forget(node);
        },
    );
    // The short one is there when the first part of the long one has left, which is as much later.
    let way = SEND + LATENCY + RECV;
    let expected = [TURN + short, long + short].map(|bytes| way + BYTE * bytes);
    let at: Vec<_> = seen.into_iter().map(|(at, _)| at).collect();
    assert_eq!(at, expected);
    // Two senders share the NIC of their receiver to the end.
    let len = 1000;
    let expected = [2 * len - TURN, 2 * len].map(|bytes| way + BYTE * bytes);
    let options = SimOptions::of(machine);
    assert_eq!(arrivals(3, options.clone(), 1, len as usize), expected);
    // Messages of a pair go one after the other.
    let alone = SimOptions::of(Machine { turn: 0, ..machine });
    for len in [0, len as usize] {
        let by_turns = arrivals(2, options.clone(), 4, len);
        assert_eq!(by_turns, arrivals(2, alone.clone(), 4, len));
    }
}

#[test]
fn parts_of_messages_go_at_the_rate_of_all_of_a_rank() {
    const PROCESS: u64 = 5 * BYTE;
    let mut machine = machine();
    machine.network.process = PerByte::femtos(PROCESS * 1_000_000);
    let len = 4000;
    let whole = to_each(machine, len);
    machine.turn = 100;
    let by_turns = to_each(machine, len);
    // The last is there at the same time, and the first not long before.
    assert_eq!(by_turns[3], whole[3]);
    assert!(by_turns[0] > whole[2], "{by_turns:?} {whole:?}");
}

#[test]
fn a_stream_of_messages_has_a_rate_of_its_own() {
    // Five times what a byte takes a NIC.
    const STREAM: u64 = 5 * BYTE;
    let mut machine = machine();
    machine.network.stream = PerByte::femtos(STREAM * 1_000_000);
    let (first, len) = (SEND + LATENCY + RECV, 1000);
    let of = |rate: u64, number: u64| first + number * rate * len as u64;
    // Those of one sender follow each other with its stream.
    let expected: Vec<_> = (1..=4).map(|number| of(STREAM, number)).collect();
    assert_eq!(arrivals(2, SimOptions::of(machine), 4, len), expected);
    // Those of several senders go between each other's bytes, and share the NIC alone.
    let expected: Vec<_> = (0..4)
        .map(|place| of(STREAM, 1) + place * BYTE * len as u64)
        .collect();
    assert_eq!(arrivals(5, SimOptions::of(machine), 1, len), expected);
}

/// Returns when each of four ranks has a message of a fifth, which sends one to each of them.
fn to_each(machine: Machine, len: usize) -> Vec<u64> {
    let seen = run(
        5,
        SimOptions::of(machine),
        move |rank, mut node, seen| async move {
            if rank == 0 {
                for to in 1..5 {
                    node.send(to, 0, len);
                }
            } else {
                let heard = node.hear().await;
                seen.borrow_mut().extend(heard);
            }
            // No goodbyes.
            std::mem::forget(node);
        },
    );
    let mut times: Vec<_> = seen.into_iter().map(|(at, _)| at).collect();
    times.sort_unstable();
    times
}

#[test]
fn bytes_to_several_ranks_at_once_leave_more_slowly() {
    const BESIDE: u64 = 5 * BYTE;
    let mut machine = machine();
    machine.network.beside = PerByte::femtos(BESIDE * 1_000_000);
    let len = 1000;
    let way = LATENCY + BYTE * len as u64 + RECV;
    // Nothing leaves beside the first.
    let expected: Vec<_> = (0..4)
        .map(|number| SEND + way + number * (BYTE + BESIDE) * len as u64)
        .collect();
    assert_eq!(to_each(machine, len), expected);
    // Nor beside any where each has left before the next comes.
    let short = (SEND / BYTE) as usize;
    let expected: Vec<_> = (1..=4)
        .map(|number| number * SEND + LATENCY + BYTE * short as u64 + RECV)
        .collect();
    assert_eq!(to_each(machine, short), expected);
    // Those to one rank follow each other as the NIC has them.
    let bytes = BYTE * len as u64;
    let expected: Vec<_> = (0..4).map(|number| SEND + way + number * bytes).collect();
    assert_eq!(arrivals(2, SimOptions::of(machine), 4, len), expected);
    // Writes have a rate of their own.
    (machine.network.beside, machine.network.beside_put) =
        (machine.network.beside_put, machine.network.beside);
    let expected: Vec<_> = (1..=4)
        .map(|number| SEND + LATENCY + number * bytes + RECV)
        .collect();
    assert_eq!(to_each(machine, len), expected);
}

#[test]
fn all_messages_of_a_rank_may_have_one_rate() {
    // Five times what a byte takes a NIC.
    const PROCESS: u64 = 5 * BYTE;
    let mut machine = machine();
    machine.network.process = PerByte::femtos(PROCESS * 1_000_000);
    let (first, len) = (SEND + LATENCY + RECV, 1000);
    // To several receivers as to one.
    let of = |rate: u64| -> Vec<_> {
        let after = |number| first + number * rate * len as u64;
        (1..=4).map(after).collect()
    };
    assert_eq!(to_each(machine, len), of(PROCESS));
    // Those that come while less than so many bytes have yet to leave go as the NIC has them.
    machine.network.process_from = 2 * len as u32;
    let behind = |number: u64| first + (2 * BYTE + number * PROCESS) * len as u64;
    let [one, two, ..] = of(BYTE)[..] else {
        panic!("there are four");
    };
    assert_eq!(to_each(machine, len), [one, two, behind(1), behind(2)]);
    // What cores write into the NIC is not among them.
    machine.network.crowding_up_to = 1000;
    assert_eq!(to_each(machine, len), of(BYTE));
}

#[test]
fn short_messages_that_wait_keep_their_receiver_busy() {
    const CROWDING: u64 = 10;
    const BESIDE: u64 = 3;
    let len = 1000;
    // A rank looks once all are there. It knows both senders by then.
    let looked = 1_000_000;
    let taken = |machine: Machine| {
        let seen = run(
            3,
            SimOptions::of(machine),
            move |rank, mut node, seen| async move {
                if rank == 0 {
                    let mut known = 0;
                    while known < 2 {
                        known += node.hear().await.len();
                    }
                    let left = looked - node.actor.now().as_nanos();
                    node.actor.sleep(Duration::from_nanos(left)).await;
                    while seen.borrow().len() < 4 {
                        let heard = node.hear().await;
                        seen.borrow_mut().extend(heard);
                    }
                } else {
                    node.send(0, 9, 0);
                    node.actor.sleep(Duration::from_micros(100)).await;
                    match rank {
                        1 => (0..3).for_each(|number| node.send(0, number, len)),
                        _ => node.send(0, 3, len),
                    }
                }
                std::mem::forget(node);
            },
        );
        seen.into_iter().map(|(at, _)| at).collect::<Vec<_>>()
    };
    let mut machine = machine();
    machine.network.crowding_up_to = len as u32;
    let apart = |busy: [u64; 4]| -> Vec<_> {
        let sum = |count: usize| busy[..count].iter().sum::<u64>() * len as u64;
        (1..=4)
            .map(|count| looked + count as u64 * RECV + sum(count))
            .collect()
    };
    assert_eq!(taken(machine), apart([0; 4]));
    // The message of rank 2 is the second to be there: two messages of rank 1 are behind its first, and one behind its second.
    machine.network.crowding = PerByte::femtos(CROWDING * 1_000_000);
    let own = [2 * CROWDING, 0, CROWDING, 0];
    assert_eq!(taken(machine), apart(own));
    machine.network.crowding_beside = PerByte::femtos(BESIDE * 1_000_000);
    let both = [0, 1, 2, 3].map(|place| own[place] + (3 - place as u64) * BESIDE);
    assert_eq!(taken(machine), apart(both));
    // The NIC fetches longer ones.
    machine.network.crowding_up_to = len as u32 - 1;
    assert_eq!(taken(machine), apart([0; 4]));
}

#[test]
fn a_rank_that_matches_is_busy_with_it() {
    let machine = Machine {
        matching: Span::nanos(700),
        ..machine()
    };
    let first = SEND + LATENCY + RECV + 700;
    let expected: Vec<_> = (0..4).map(|number| first + number * (RECV + 700)).collect();
    assert_eq!(arrivals(2, SimOptions::of(machine), 4, 0), expected);
}

#[test]
fn ranks_of_a_node_share_its_nic() {
    // Ranks 2 to 5 are on another node than rank 0, and rank 1 on the same.
    let machine = Machine {
        ranks_per_node: 4,
        ..machine()
    };
    let len = 1000;
    let seen = run(
        8,
        SimOptions::of(machine),
        move |rank, mut node, seen| async move {
            match rank {
                // On three different nodes: nothing but their own NIC is shared.
                4..8 => node.send(rank as usize - 4, rank.into(), len),
                _ => {
                    let heard = node.hear().await;
                    seen.borrow_mut().extend(heard);
                }
            }
            std::mem::forget(node);
        },
    );
    let first = SEND + LATENCY + RECV;
    let expected: Vec<_> = (1..=4)
        .map(|place| first + place * BYTE * len as u64)
        .collect();
    let times: Vec<_> = seen.iter().map(|(at, _)| *at).collect();
    assert_eq!(times, expected);
}

#[test]
fn ranks_of_a_node_reach_each_other_by_its_memory() {
    let machine = Machine {
        ranks_per_node: 2,
        ..machine()
    };
    assert_eq!(arrivals(2, SimOptions::of(machine), 1, 1000), [100]);
}

#[test]
fn ranks_of_a_node_may_share_its_local_link() {
    let local = Link {
        latency: Span::nanos(100),
        per_byte: PerByte::femtos(BYTE * 1_000_000),
        ..Link::default()
    };
    let machine = |shares_local| Machine {
        local,
        ranks_per_node: 2,
        shares_local,
        ..machine()
    };
    // Both send at once.
    let exchange = |machine| {
        run(
            2,
            SimOptions::of(machine),
            |rank, mut node, seen| async move {
                node.send(1 - rank as usize, 0, 1000);
                let heard = node.hear().await;
                seen.borrow_mut().extend(heard);
                std::mem::forget(node);
            },
        )
    };
    let at = |seen: Vec<(u64, String)>| seen.into_iter().map(|(at, _)| at).collect::<Vec<_>>();
    let bytes = 1000 * BYTE;
    assert_eq!(at(exchange(machine(false))), [100 + bytes; 2]);
    assert_eq!(at(exchange(machine(true))), [100 + bytes, 100 + 2 * bytes]);
}

/// When three ranks of a node with two cores and slices of 1 us have computed for 2 us, by the clock or of a core's time.
fn computed(by_clock: bool) -> Vec<(u64, String)> {
    let machine = Machine {
        ranks_per_node: 3,
        cores: 2,
        slice: Span::nanos(1000),
        ..machine()
    };
    let mut seen = run(3, SimOptions::of(machine), |rank, node, seen| async move {
        let time = Duration::from_nanos(2000);
        match by_clock {
            true => node.actor.compute_by_clock(time).await,
            false => node.actor.compute(time).await,
        }
        let now = node.actor.now().as_nanos();
        seen.borrow_mut().push((now, format!("rank {rank}")));
        std::mem::forget(node);
    });
    seen.sort_unstable();
    seen
}

#[test]
fn ranks_that_compute_share_their_nodes_cores() {
    let at = |at: u64, rank: u32| (at, format!("rank {rank}"));
    assert_eq!(computed(false), [at(2000, 0), at(3000, 1), at(3000, 2)]);
    // Rank 1 has had a core for 1 us. Rank 2 has its first one at 1 us.
    assert_eq!(computed(true), [at(2000, 0), at(2000, 1), at(3000, 2)]);
}

#[test]
fn messages_are_as_long_as_the_machines_library_sends_them_before_they_match() {
    for (eager, longest) in [(0, 64 << 10), (8192, 8192)] {
        let machine = Machine { eager, ..machine() };
        let network = SimNetwork::new(1, SimOptions::of(machine));
        let rank = network.rank(Rank::new(0));
        assert_eq!(rank.limits().max_send, longest);
        assert_eq!(rank.preference(EndpointId(0)).eager, longest);
    }
}

#[test]
fn the_dead_are_found_when_the_machine_says_and_after_their_last_words() {
    let kills = vec![Kill {
        rank: 1,
        at: Duration::from_nanos(400),
    }];
    let options = SimOptions {
        schedule: Schedule {
            kills,
            ..Schedule::default()
        },
        ..SimOptions::of(machine())
    };
    let seen = run(2, options, |rank, mut node, seen| async move {
        if rank == 1 {
            node.send(0, 7, 0);
            node.actor.compute(Duration::from_secs(1)).await;
            unreachable!("it is dead");
        }
        for _ in 0..2 {
            let heard = node.hear().await;
            seen.borrow_mut().extend(heard);
        }
        node.end();
    });
    let first = SEND + LATENCY + RECV;
    let expected = [
        (first, "message 7 of 0".to_owned()),
        (5_400, "failed".to_owned()),
    ];
    assert_eq!(seen, expected);
}

/// A storm in which all talk to all, as one text.
fn storm(schedule: Schedule) -> String {
    storm_of([0, 1, 2, 3, 4, 5, 6, 7], schedule)
}

/// The same, where ranks are opened in an order.
fn storm_of(opened: [u32; 8], schedule: Schedule) -> String {
    let options = SimOptions {
        schedule,
        ..SimOptions::of(machine())
    };
    let seen = run_opened(&opened, options, |rank, mut node, seen| async move {
        for number in 0..20 {
            for to in 0..8 {
                node.send(to, number, (number * 7) as usize);
            }
            node.actor.compute(Duration::from_nanos(100)).await;
        }
        let mut left: usize = 8 * 20;
        while left > 0 {
            let heard = node.hear().await;
            left -= heard.iter().filter(|(_, what)| what != "left").count();
            let mut seen = seen.borrow_mut();
            seen.extend(
                heard
                    .into_iter()
                    .map(|(at, what)| (at, format!("{rank}: {what}"))),
            );
        }
        node.end();
    });
    format!("{seen:?}")
}

#[test]
fn a_seed_names_a_run() {
    let shuffled = |seed| Schedule {
        seed,
        shuffle: true,
        delay: Duration::from_micros(3),
        ..Schedule::default()
    };
    assert_eq!(storm(Schedule::default()), storm(Schedule::default()));
    assert_eq!(storm(shuffled(1)), storm(shuffled(1)));
    assert_ne!(storm(shuffled(1)), storm(shuffled(2)));
    assert_ne!(storm(shuffled(1)), storm(Schedule::default()));
    // Whoever is opened first.
    let others = [5, 0, 7, 3, 1, 6, 2, 4];
    assert_eq!(storm(shuffled(1)), storm_of(others, shuffled(1)));
}

#[test]
fn messages_overtake_each_other_where_that_is_asked_for_alone() {
    let numbers = |reorder| {
        let schedule = Schedule {
            seed: 3,
            shuffle: true,
            delay: Duration::from_micros(30),
            reorder,
            ..Schedule::default()
        };
        let options = SimOptions {
            schedule,
            ..SimOptions::of(machine())
        };
        let seen = run(2, options, |rank, mut node, seen| async move {
            if rank == 0 {
                for number in 0..40 {
                    node.send(1, number, 0);
                }
                return std::mem::forget(node);
            }
            while seen.borrow().len() < 40 {
                let heard = node.hear().await;
                seen.borrow_mut().extend(heard);
            }
            node.end();
        });
        seen.into_iter().map(|(_, what)| what).collect::<Vec<_>>()
    };
    let sent: Vec<_> = (0..40)
        .map(|number| format!("message {number} of 0"))
        .collect();
    assert_eq!(numbers(false), sent);
    let mut overtaken = numbers(true);
    assert_ne!(overtaken, sent);
    overtaken.sort_by_key(|what| sent.iter().position(|sent| sent == what));
    assert_eq!(overtaken, sent);
}

#[test]
fn who_waits_for_nobody_is_named() {
    let network = SimNetwork::new(2, SimOptions::of(machine()));
    let mut simulation = Simulation::new(&network);
    for rank in [0, 1].map(Rank::new) {
        let transport = network.rank(rank);
        let actor = network.actor(rank);
        let own = actor.clone();
        simulation.spawn(&actor, async move {
            if rank == Rank::new(1) {
                own.next().await;
                own.next().await;
            }
            std::mem::forget(transport);
        });
    }
    let stuck = simulation.run().unwrap_err();
    assert_eq!(stuck.ranks, [Rank::new(1)]);
    let text = stuck.to_string();
    assert!(
        text.starts_with("1 ranks (1) wait for what never comes"),
        "{text}"
    );
}

/// What threads of a rank have done, and when.
type Done = Rc<RefCell<Vec<(u64, &'static str)>>>;

/// Opens a rank and a peer, and runs what `start` spawns.
fn threads(
    machine: Machine,
    start: impl FnOnce(&mut Simulation, &Rc<RefCell<Node>>, &Done),
) -> Vec<(u64, &'static str)> {
    let network = SimNetwork::new(2, SimOptions::of(machine));
    let mut transport = network.rank(Rank::new(0));
    let peer = network.rank(Rank::new(1));
    let peers = vec![transport.connect(Rank::new(1), &peer.address()).unwrap()];
    let node = Node {
        transport,
        actor: network.actor(Rank::new(0)),
        peers,
    };
    let (node, done) = (Rc::new(RefCell::new(node)), Done::default());
    let mut simulation = Simulation::new(&network);
    start(&mut simulation, &node, &done);
    simulation.run().unwrap();
    drop(simulation);
    done.take()
}

#[test]
fn threads_compute_side_by_side_and_send_one_after_the_other() {
    const HANDOVER: u64 = 40;
    let machine = Machine {
        handover: Span::nanos(HANDOVER),
        ..machine()
    };
    let done = threads(machine, |simulation, node, done| {
        let first = node.borrow().actor.clone();
        for actor in [first.thread(), first.thread()] {
            let (node, done) = (Rc::clone(node), Rc::clone(done));
            simulation.spawn(&actor.clone(), async move {
                actor.compute(Duration::from_nanos(1000)).await;
                let mut node = node.borrow_mut();
                let to = node.peers[0];
                let header = AmHeader([1, 0]);
                let post = node.transport.send(LANE, to, Class::Data, header, b"");
                assert_eq!(post, Post::Posted);
                done.borrow_mut().push((actor.now().as_nanos(), "sent"));
            });
        }
    });
    let first = 1000 + SEND;
    assert_eq!(done, [(first, "sent"), (first + HANDOVER + SEND, "sent")]);
}

#[test]
fn who_sleeps_has_no_core_and_who_computes_is_not_called_away() {
    let machine = Machine {
        cores: 1,
        slice: Span::nanos(1000),
        ..machine()
    };
    let done = threads(machine, |simulation, node, done| {
        let first = node.borrow().actor.clone();
        let [sleeps, computes, calls] = [first.thread(), first.thread(), first.thread()];
        let note = |actor: &Actor, what| {
            let (actor, done) = (actor.clone(), Rc::clone(done));
            move || done.borrow_mut().push((actor.now().as_nanos(), what))
        };
        let slept = note(&sleeps, "slept");
        simulation.spawn(&sleeps.clone(), async move {
            sleeps.sleep(Duration::from_nanos(5000)).await;
            slept();
        });
        let computed = note(&computes, "computed");
        simulation.spawn(&computes.clone(), async move {
            computes.compute(Duration::from_nanos(5000)).await;
            computed();
        });
        let called = note(&calls, "called");
        simulation.spawn(&calls.clone(), async move {
            calls.sleep(Duration::from_nanos(2000)).await;
            calls.wake();
            called();
        });
    });
    assert_eq!(
        done,
        [(2000, "called"), (5000, "slept"), (5000, "computed")]
    );
}

#[test]
fn a_sleeper_goes_on_too_late_by_what_the_seed_has() {
    let machine = Machine {
        wake: Span::nanos(500),
        ..machine()
    };
    let slept = || {
        threads(machine, |simulation, node, done| {
            let first = node.borrow().actor.clone();
            for _ in 0..8 {
                let (thread, done) = (first.thread(), Rc::clone(done));
                simulation.spawn(&thread.clone(), async move {
                    thread.sleep(Duration::from_nanos(1000)).await;
                    done.borrow_mut().push((thread.now().as_nanos(), "slept"));
                });
            }
        })
    };
    let times = slept();
    assert_eq!(times.len(), 8);
    assert!(times.iter().all(|(at, _)| (1000..=1500).contains(at)));
    assert!(times.iter().any(|(at, _)| *at != times[0].0), "{times:?}");
    assert_eq!(slept(), times, "the same again");
}

#[test]
fn one_thread_tells_another() {
    let done = threads(machine(), |simulation, node, done| {
        let first = node.borrow().actor.clone();
        let other = first.thread();
        let is_set = Rc::new(std::cell::Cell::new(false));
        let (flag, ended) = (Rc::clone(&is_set), Rc::clone(done));
        simulation.spawn(&first.clone(), async move {
            while !flag.get() {
                first.next().await;
            }
            ended.borrow_mut().push((first.now().as_nanos(), "told"));
        });
        simulation.spawn(&other.clone(), async move {
            other.sleep(Duration::from_nanos(700)).await;
            is_set.set(true);
            other.wake();
        });
    });
    assert_eq!(done, [(700, "told")]);
}
