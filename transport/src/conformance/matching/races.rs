//! What happens at the same time on different threads: exactly one wins, every time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use tagwire_base::Rank;

use super::super::rig::{LANE, ensure};
use super::Factory;
use super::rig::{Checked, Log, Rig, exact};
use crate::data::{RecvBuffer, SendBuffer};
use crate::fault::SplitMix64;
use crate::message::{EndpointId, Token};
use crate::network::{Cancel, MatchTransport, Posted, Probed, ReceiveEnd, Sent};

/// How many messages each sender of a race sends.
const COUNT: u64 = 4000;

/// How long a race may take.
const LONG: Duration = Duration::from_secs(60);

/// Sends `COUNT` messages whose number is their upper bits, until told that it is over.
fn send_all(
    transport: &mut dyn MatchTransport,
    to: EndpointId,
    seed: u64,
    over: &AtomicBool,
) -> Checked {
    let (mut random, mut log) = (SplitMix64::new(seed), Log::default());
    let nothing = SendBuffer::EMPTY;
    let start = Instant::now();
    let mut open = 0;
    for number in 0..COUNT {
        for _ in 0..random.below(300) {
            std::hint::spin_loop();
        }
        loop {
            let synchronous = number % 5 == 0;
            match transport.send(LANE, to, number, &nothing, synchronous, Token(number)) {
                Sent::Done => break,
                Sent::Open => {
                    open += 1;
                    break;
                }
                Sent::Busy if over.load(Ordering::Acquire) || start.elapsed() > LONG => {
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
    while !over.load(Ordering::Acquire) {
        if transport.progress(LANE, &mut log) == 0 {
            transport.look_after_peers(&mut log);
            thread::yield_now();
        }
    }
    // The last notices.
    let start = Instant::now();
    while log.sent.len() < open && start.elapsed() < LONG {
        transport.progress(LANE, &mut log);
        thread::yield_now();
    }
    ensure(log.sent.len() == open, || {
        format!("{open} sends were open and {} ended", log.sent.len())
    })
}

/// What a racing receiver has got: the numbers of each source, in order.
struct Harvest {
    next: Vec<u64>,
    total: u64,
}

impl Harvest {
    fn take(&mut self, source: Rank, number: u64) -> Checked {
        let next = &mut self.next[source.index()];
        ensure(*next == number, || {
            format!("message {number} of {source:?} came where {next} was next")
        })?;
        *next += 1;
        self.total += 1;
        Ok(())
    }
}

/// Receives all by receives that it cancels again, by probes and by claims.
fn receive_all(transport: &mut dyn MatchTransport, senders: usize, any: u64, seed: u64) -> Checked {
    let (mut random, mut log) = (SplitMix64::new(seed), Log::default());
    let mut harvest = Harvest {
        next: vec![0; senders + 1],
        total: 0,
    };
    let room = RecvBuffer::EMPTY;
    let pattern = crate::network::MatchPattern {
        ignore: any,
        ..exact(0)
    };
    let start = Instant::now();
    let mut token = 0;
    while harvest.total < COUNT * senders as u64 {
        ensure(start.elapsed() < LONG, || {
            format!("after {} messages nothing more comes", harvest.total)
        })?;
        token += 1;
        if random.below(3) == 0 {
            let found = match transport.probe(LANE, pattern, true, Token(token)) {
                Probed::Found(found) => Some(found),
                Probed::Pending => loop {
                    transport.progress(LANE, &mut log);
                    if let Some(found) = log.probed.remove(&Token(token)) {
                        break found;
                    }
                },
                _ => None,
            };
            if let Some(found) = found {
                let claim = found.claim.ok_or("a claim without a name")?;
                while transport.receive_claimed(LANE, claim, &room, Token(token)) == Posted::Busy {
                    transport.progress(LANE, &mut log);
                }
                harvest.take(found.envelope.source, found.envelope.bits)?;
            } else {
                transport.progress(LANE, &mut log);
            }
            continue;
        }
        match transport.post(LANE, pattern, &room, Token(token)) {
            Posted::Done(ReceiveEnd::Matched(envelope, _)) => {
                harvest.take(envelope.source, envelope.bits)?;
                continue;
            }
            Posted::Open => {}
            Posted::Busy => {
                transport.progress(LANE, &mut log);
                continue;
            }
            other => return Err(format!("a receive was answered {other:?}")),
        }
        for _ in 0..random.below(4) {
            transport.progress(LANE, &mut log);
            thread::yield_now();
        }
        if !log.received.contains_key(&Token(token))
            && transport.cancel(LANE, Token(token)) == Cancel::Cancelled
        {
            continue;
        }
        let end = loop {
            if let Some(ends) = log.received.remove(&Token(token)) {
                ensure(ends.len() == 1, || {
                    format!("a receive ended thus: {ends:?}")
                })?;
                break ends[0];
            }
            ensure(start.elapsed() < LONG, || "a receive never ends".to_owned())?;
            transport.progress(LANE, &mut log);
        };
        if let ReceiveEnd::Matched(envelope, _) = end {
            harvest.take(envelope.source, envelope.bits)?;
        }
    }
    Ok(())
}

/// Two senders, and a receiver that posts, cancels and claims: each message is had once, in the
/// order of its sender.
pub(super) fn each_message_is_had_once(factory: &Factory) -> Checked {
    for seed in 1..4 {
        let mut rig = Rig::plenty(factory, 3)?;
        let any = rig.wild(0).ignore;
        let endpoints = [rig.connect(1, 0)?, rig.connect(2, 0)?];
        let over = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        for (place, to) in endpoints.into_iter().enumerate() {
            let mut transport = rig.take(place + 1);
            let over = Arc::clone(&over);
            threads.push(thread::spawn(move || {
                let sent = send_all(&mut *transport, to, seed * 10 + place as u64, &over);
                (sent, transport)
            }));
        }
        let received = receive_all(rig.transport(0), 2, any, seed)
            .map_err(|error| format!("seed {seed}: {error}"));
        over.store(true, Ordering::Release);
        let mut results = vec![received];
        // The receiver's notices may still be under way.
        while !threads.iter().all(thread::JoinHandle::is_finished) {
            rig.progress(0);
            thread::yield_now();
        }
        for thread in threads {
            let (sent, transport) = thread.join().map_err(|_| "a sender panicked".to_owned())?;
            results.push(sent.map_err(|error| format!("seed {seed}: {error}")));
            drop(transport);
        }
        results.into_iter().collect::<Checked>()?;
    }
    Ok(())
}

/// Rounds of sleeping and waking.
const ROUNDS: u64 = 3000;

/// How long a sleeper sleeps whom nobody wakes.
const SLEEP: Duration = Duration::from_secs(10);

/// A rank that sleeps until its receive ends, and answers.
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
        let result = answer_asleep(&mut *other, back, ROUNDS, false);
        (result, other)
    });
    let result = answer_asleep(rig.transport(0), there, ROUNDS, true);
    let (other, transport) = thread
        .join()
        .map_err(|_| "the sleeper panicked".to_owned())?;
    drop(transport);
    result.and(other)
}
