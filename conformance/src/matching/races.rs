//! What happens at the same time on different threads: exactly one wins, every time.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::Factory;
use super::rig::{Checked, Log, Rig, exact};
use crate::common::{LANE, ensure, pattern as bytes_of, rounds};
use crate::memory::Memory;
use tagwire_transport::capability::Capabilities;
use tagwire_transport::data::{RecvBuffer, SendBuffer};
use tagwire_transport::fault::SplitMix64;
use tagwire_transport::matching::{
    Cancel, MatchPattern, MatchTransport, Posted, Probed, ReceiveEnd, Sent,
};
use tagwire_transport::message::{EndpointId, Outcome, Token};

/// How many messages each sender of a race sends: fewer over networks, where each costs more.
const COUNT: u64 = 3000;
const COUNT_REMOTE: u64 = 500;

/// How long they are, by their number: they go with their envelope, are brought by the sender, or are
/// copied by both.
const LENGTHS: [usize; 16] = [0, 8, 0, 5000, 0, 8, 100_000, 0, 8, 0, 5000, 0, 8, 0, 0, 8];

/// The longest of them.
const LONGEST: usize = 100_000;

/// After how many messages a sender sends the same bytes again.
const PERIOD: u64 = 64;

/// Where a race stands: it runs, all is received, or the receiver has found something wrong.
const RUNNING: u32 = 0;
const OVER: u32 = 1;
const GIVEN_UP: u32 = 2;

/// How long a race may take.
const LONG: Duration = Duration::from_secs(60);

/// A receiver that waits lets others run after so many turns.
const TURNS: u64 = 64;

const fn length_of(number: u64) -> usize {
    LENGTHS[number as usize % LENGTHS.len()]
}

/// What the bytes of message `number` of `sender` are made of.
const fn seed_of(sender: usize, number: u64) -> u64 {
    sender as u64 * PERIOD + number % PERIOD
}

/// Sends `count` messages whose number is their bits, until told that it is over.
fn send_all(
    transport: &mut dyn MatchTransport,
    to: EndpointId,
    seed: u64,
    memories: &[Memory],
    count: u64,
    stage: &AtomicU32,
) -> Checked {
    let (mut random, mut log) = (SplitMix64::new(seed), Log::default());
    let start = Instant::now();
    let mut open = 0;
    for number in 0..count {
        for _ in 0..random.below(300) {
            std::hint::spin_loop();
        }
        if random.below(16) == 0 {
            // It waits for a while, as long as it takes to look after what lies untaken.
            for _ in 0..random.below(200) {
                transport.progress(LANE, &mut log);
            }
        }
        let data = memories[(number % PERIOD) as usize].send_buffer();
        loop {
            let synchronous = number % 5 == 0;
            match transport.send(LANE, to, number, &data, synchronous, Token(number)) {
                Sent::Done => break,
                Sent::Open => {
                    open += 1;
                    break;
                }
                Sent::Busy
                    if stage.load(Ordering::Acquire) != RUNNING || start.elapsed() > LONG =>
                {
                    return Err("a sender never got through".to_owned());
                }
                Sent::Busy => {
                    transport.progress(LANE, &mut log);
                    thread::yield_now();
                }
                other => return Err(format!("a send was answered {other:?}")),
            }
        }
    }
    while stage.load(Ordering::Acquire) == RUNNING {
        if transport.progress(LANE, &mut log) == 0 {
            transport.look_after_peers(&mut log);
            thread::yield_now();
        }
    }
    // The last notices, which a receiver that has given up does not give.
    let start = Instant::now();
    let waits = || stage.load(Ordering::Acquire) == OVER && start.elapsed() < LONG;
    while log.sent.len() < open && waits() {
        transport.progress(LANE, &mut log);
        thread::yield_now();
    }
    ensure(log.sent.len() == open, || {
        format!("{open} sends were open and {} ended", log.sent.len())
    })
}

/// The receiver of a race: one receive after the other, and what it has got so far.
struct Racer<'a> {
    transport: &'a mut dyn MatchTransport,
    log: Log,
    /// The next number of each source.
    next: Vec<u64>,
    total: u64,
    room: Rc<Memory>,
    /// The bytes of the first messages of each source.
    bytes: Vec<Vec<Vec<u8>>>,
    start: Instant,
}

impl Racer<'_> {
    fn progress(&mut self) {
        self.transport.progress(LANE, &mut self.log);
    }

    /// A receive has ended.
    fn take(&mut self, end: ReceiveEnd) -> Checked {
        let ReceiveEnd::Matched(envelope, outcome) = end else {
            return Ok(());
        };
        let (source, number) = (envelope.source, envelope.bits);
        let next = self.next[source.index()];
        ensure(next == number, || {
            format!("message {number} of {source:?} came where {next} was next")
        })?;
        let length = length_of(number);
        let right = envelope.length == length as u64 && outcome == Outcome::Done(length as u64);
        ensure(right, || {
            format!("message {number} of {length} bytes ended thus: {end:?}")
        })?;
        let bytes = &self.bytes[source.index()][(number % PERIOD) as usize];
        ensure(self.room.begins_with(bytes), || {
            format!("message {number} of {source:?} has other bytes")
        })?;
        self.next[source.index()] += 1;
        self.total += 1;
        Ok(())
    }

    /// Waits for the end of a receive.
    fn end(&mut self, token: Token) -> Checked<ReceiveEnd> {
        let mut turns = 0_u64;
        loop {
            if let Some(ends) = self.log.received.remove(&token) {
                ensure(ends.len() == 1, || {
                    format!("a receive ended thus: {ends:?}")
                })?;
                return Ok(ends[0]);
            }
            turns += 1;
            if turns.is_multiple_of(TURNS) {
                let late = self.start.elapsed() >= LONG;
                ensure(!late, || "a receive never ends".to_owned())?;
                // Where racers share processors, for the one that it waits for.
                thread::sleep(Duration::from_micros(20));
            }
            self.progress();
        }
    }

    /// Claims what it finds, and receives it.
    fn claim(&mut self, pattern: MatchPattern, token: Token) -> Checked {
        let found = match self.transport.probe(LANE, pattern, true, token) {
            Probed::Found(found) => Some(found),
            Probed::Pending => loop {
                self.progress();
                if let Some(found) = self.log.probed.remove(&token) {
                    break found;
                }
            },
            _ => None,
        };
        let Some(found) = found else {
            self.progress();
            return Ok(());
        };
        let claim = found.claim.ok_or("a claim without a name")?;
        let data = self.room.recv_buffer();
        loop {
            match self.transport.receive_claimed(LANE, claim, &data, token) {
                Posted::Done(end) => return self.take(end),
                Posted::Open => {
                    let end = self.end(token)?;
                    return self.take(end);
                }
                Posted::Busy => self.progress(),
                other => return Err(format!("a claimed receive was answered {other:?}")),
            }
        }
    }

    /// Posts a receive, which it may take back.
    fn post(&mut self, pattern: MatchPattern, token: Token, random: &mut SplitMix64) -> Checked {
        let data = self.room.recv_buffer();
        match self.transport.post(LANE, pattern, &data, token) {
            Posted::Done(end) => return self.take(end),
            Posted::Open => {}
            Posted::Busy => {
                self.progress();
                return Ok(());
            }
            other => return Err(format!("a receive was answered {other:?}")),
        }
        if random.below(20) == 0 {
            // It computes: whoever else can match does.
            thread::sleep(Duration::from_micros(100 + random.below(300)));
        }
        for _ in 0..random.below(4) {
            self.progress();
            thread::yield_now();
        }
        if !self.log.received.contains_key(&token)
            && self.transport.cancel(LANE, token) == Cancel::Cancelled
        {
            return Ok(());
        }
        let end = self.end(token)?;
        self.take(end)
    }
}

/// Receives all by receives that it cancels again, by probes and by claims.
fn receive_all(rig: &mut Rig, senders: usize, count: u64, seed: u64) -> Checked {
    let mut random = SplitMix64::new(seed);
    let pattern = MatchPattern {
        ignore: rig.wild(0).ignore,
        ..exact(0)
    };
    let room = rig.zeroed(LONGEST);
    let bytes = |sender| {
        let of = |number| bytes_of(seed_of(sender, number), length_of(number));
        (0..PERIOD).map(of).collect()
    };
    let mut racer = Racer {
        transport: rig.transport(0),
        log: Log::default(),
        next: vec![0; senders + 1],
        total: 0,
        room,
        bytes: (0..=senders).map(bytes).collect(),
        start: Instant::now(),
    };
    let mut token = 0;
    while racer.total < count * senders as u64 {
        let total = racer.total;
        ensure(racer.start.elapsed() < LONG, || {
            format!("after {total} messages nothing more comes")
        })?;
        token += 1;
        if random.below(3) == 0 {
            racer.claim(pattern, Token(token))?;
        } else {
            racer.post(pattern, Token(token), &mut random)?;
        }
    }
    Ok(())
}

/// Two senders, and a receiver that posts, cancels and claims, and now and then computes: each message
/// is had once, in the order of its sender, with its bytes.
pub(super) fn each_message_is_had_once(factory: &Factory) -> Checked {
    for seed in 1..4 {
        let mut rig = Rig::plenty(factory, 3)?;
        let capabilities = rig.transport(0).capabilities();
        let count = if capabilities.contains(Capabilities::REMOTE) {
            COUNT_REMOTE
        } else {
            COUNT
        };
        let endpoints = [rig.connect(1, 0)?, rig.connect(2, 0)?];
        let stage = Arc::new(AtomicU32::new(RUNNING));
        let mut threads = Vec::new();
        for (place, to) in endpoints.into_iter().enumerate() {
            let mut transport = rig.take(place + 1);
            let stage = Arc::clone(&stage);
            threads.push(thread::spawn(move || {
                let memory =
                    |number| Memory::patterned(seed_of(place + 1, number), length_of(number), None);
                let memories: Vec<Memory> = (0..PERIOD).map(memory).collect();
                let seed = seed * 10 + place as u64;
                let sent = send_all(&mut *transport, to, seed, &memories, count, &stage);
                // Here, where the receiver still calls progress: networks wait for it. The memory
                // outlives whom it was lent to.
                drop(transport);
                drop(memories);
                sent
            }));
        }
        let received =
            receive_all(&mut rig, 2, count, seed).map_err(|error| format!("seed {seed}: {error}"));
        let now = if received.is_ok() { OVER } else { GIVEN_UP };
        stage.store(now, Ordering::Release);
        let mut results = vec![received];
        // The receiver's notices may still be under way.
        while !threads.iter().all(thread::JoinHandle::is_finished) {
            rig.progress(0);
            thread::yield_now();
        }
        for thread in threads {
            let sent = thread.join().map_err(|_| "a sender panicked".to_owned())?;
            results.push(sent.map_err(|error| format!("seed {seed}: {error}")));
        }
        results.into_iter().collect::<Checked>()?;
    }
    Ok(())
}

/// Rounds of sleeping and waking, at length.
const ROUNDS: u64 = 3000;

/// How long a sleeper sleeps whom nobody wakes.
const SLEEP: Duration = Duration::from_secs(10);

/// A rank that sleeps until its receive ends, and replies.
fn answer_asleep(
    transport: &mut dyn MatchTransport,
    to: EndpointId,
    rounds: u64,
    answer_first: bool,
) -> Checked {
    let waiter = transport.waiter();
    let mut log = Log::default();
    let (room, nothing) = (RecvBuffer::EMPTY, SendBuffer::EMPTY);
    for round in 0..rounds {
        if answer_first {
            while transport.send(LANE, to, round, &nothing, false, Token(round)) == Sent::Busy {
                transport.progress(LANE, &mut log);
            }
        }
        let mut posted = transport.post(LANE, exact(round), &room, Token(round));
        while posted == Posted::Busy {
            transport.progress(LANE, &mut log);
            posted = transport.post(LANE, exact(round), &room, Token(round));
        }
        while !matches!(posted, Posted::Done(_)) && !log.received.contains_key(&Token(round)) {
            let key = waiter.arm();
            if transport.progress(LANE, &mut log) > 0 {
                waiter.disarm();
                continue;
            }
            let start = Instant::now();
            waiter.sleep(key, SLEEP);
            ensure(start.elapsed() < SLEEP, || {
                format!("a message was slept over in round {round}")
            })?;
            transport.look_after_peers(&mut log);
        }
        if !answer_first {
            while transport.send(LANE, to, round, &nothing, false, Token(round)) == Sent::Busy {
                transport.progress(LANE, &mut log);
            }
        }
    }
    Ok(())
}

/// Two ranks that sleep whenever they wait, and wake each other.
pub(super) fn messages_wake_a_sleeper(factory: &Factory) -> Checked {
    let mut rig = Rig::plenty(factory, 2)?;
    rig.acquaint(0, 1)?;
    let (there, back) = (rig.connect(0, 1)?, rig.connect(1, 0)?);
    let mut other = rig.take(1);
    let thread = thread::spawn(move || {
        let result = answer_asleep(&mut *other, back, rounds(ROUNDS), false);
        (result, other)
    });
    let result = answer_asleep(rig.transport(0), there, rounds(ROUNDS), true);
    let (other, transport) = thread
        .join()
        .map_err(|_| "the sleeper panicked".to_owned())?;
    drop(transport);
    result.and(other)
}
