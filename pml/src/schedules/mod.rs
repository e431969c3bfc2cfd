//! Ranks of several threads in random schedules of a simulated network: partitioned operations and one-sided access; and faults that are
//! planted, which they find.
//!
//! A thread waits as those of programs do: it makes progress, announces that it will sleep, and sleeps until something comes for its rank
//! or another of its threads tells it. Where a word is missing, a rank waits for ever, which the simulation says.

mod partitioned;
mod rma;
mod room;

use std::cell::{Cell, RefCell};
use std::future::Future;
use std::ops::ControlFlow;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use tagwire_base::{Clock, ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_conformance::network::matching::{MatchNetwork, MatchOptions};
use tagwire_conformance::network::{
    Actor, Machine, MemoryNetwork, MemoryOptions, Schedule, SimJob, Simulation, Span,
};
use tagwire_conformance::seeds;
use tagwire_transport::fault::SplitMix64;

use self::room::{Memory, Room};
use crate::cm::{Cm, CmOptions};
use crate::guard::ThreadLevel;
use crate::messenger::Messenger;
use crate::ob1::{Ob1, Ob1Options};
use crate::types::{RequestId, SendMode};
use crate::wait::{WaitMode, WaitPolicy};

type Checked<T = ()> = Result<T, String>;

/// What a thread does.
type Body = Pin<Box<dyn Future<Output = Checked>>>;

const WORLD: ContextId = ContextId::WORLD;

/// How long a rank that ends goes on with what it has begun.
const CLOSING: Duration = Duration::from_millis(100);

/// A network of a seed: what it can, its machine, and its schedule. Packets are late by up to twenty times its latency.
fn network(seed: u64) -> MemoryOptions {
    let mut random = SplitMix64::stream(seed, 3);
    let mut chance = |percent| random.chance(percent);
    let max_send = if chance(30) { 64 } else { 4096 };
    MemoryOptions {
        cooperative: chance(50),
        get: chance(70),
        put: chance(75),
        notices: chance(50),
        ordered_puts: chance(60),
        max_send,
        puts: if chance(20) { 2 } else { usize::MAX },
        completions: if chance(20) { 1 } else { usize::MAX },
        machine: Some(Machine {
            cores: (seed % 4) as u32,
            slice: Span::nanos(5_000),
            handover: Span::nanos(50),
            ..seeds::machine(1 + (seed % 3) as u32)
        }),
        schedule: Schedule {
            seed,
            shuffle: true,
            delay: Duration::from_micros(seed % 5 * 5),
            reorder: chance(50),
            ..Schedule::default()
        },
        trace: seeds::trace(),
        ..MemoryOptions::default()
    }
}

/// A thread of a rank.
#[derive(Clone)]
struct Thread {
    port: Arc<Messenger>,
    actor: Actor,
    /// 0 is the one that opened the rank.
    number: u32,
    memory: Rc<Memory>,
}

impl Thread {
    fn rank(&self) -> u32 {
        self.port.rank().as_u32()
    }

    /// Waits until `look` returns a value.
    async fn until<T>(&self, mut look: impl FnMut() -> Checked<Option<T>>) -> Checked<T> {
        loop {
            let seen = self.port.sleepers.noted();
            if let Some(value) = look()? {
                return Ok(value);
            }
            if let Some(armed) = accepted("arm", self.port.arm(seen))? {
                self.actor.next().await;
                drop(armed);
            }
        }
    }

    /// Waits until a word is at least `value`.
    async fn reaches(&self, word: &Cell<u32>, value: u32) {
        while word.get() < value {
            self.actor.next().await;
        }
    }

    /// Sets a word for which other threads of the rank wait.
    fn set(&self, word: &Cell<u32>, value: u32) {
        word.set(value);
        self.actor.wake();
    }

    /// Computes for up to `most` microseconds.
    async fn compute(&self, random: &mut SplitMix64, most: u64) {
        let time = Duration::from_nanos(random.below(most * 1000 + 1));
        self.actor.compute(time).await;
    }

    /// Sends `bytes`.
    async fn send(&self, to: u32, number: u32, bytes: &[u8]) -> Checked {
        let room = self.memory.room(bytes.len());
        room.write(0, bytes);
        let (data, to) = (room.lend_to_send(), Rank::new(to));
        let sent = self
            .port
            .isend(data, to, tag(number), WORLD, SendMode::Standard);
        let sent = accepted("isend", sent)?;
        match sent == RequestId::COMPLETE {
            true => Ok(()),
            false => self.end_of(sent).await.map(drop),
        }
    }

    /// Receives up to `len` bytes.
    async fn recv(&self, from: u32, number: u32, len: usize) -> Checked<Vec<u8>> {
        let room = self.memory.room(len);
        let from = SourceSelector::exact(Rank::new(from));
        let only = TagSelector::exact(tag(number));
        let posted = accepted("irecv", self.port.irecv(room.lend(), from, only, WORLD))?;
        let length = self.end_of(posted).await?;
        Ok(room.read(0..length))
    }

    async fn end_of(&self, request: RequestId) -> Checked<usize> {
        let look = || accepted("take", self.port.take(request));
        let status = self.until(look).await?;
        match status.failure {
            None => Ok(status.length),
            Some(failure) => Err(format!("a message: {failure:?}")),
        }
    }

    /// Ends the rank, when all its threads have.
    async fn close(&self) -> Checked {
        let is_idle = || {
            let open = self.port.call(|layer| Ok(layer.open_work()));
            Ok(accepted("open work", open)?.is_none().then_some(()))
        };
        self.until(is_idle).await?;
        accepted("close", self.port.close(CLOSING))
    }
}

fn tag(number: u32) -> Tag {
    Tag::user(number as i32).expect("small, and not negative")
}

fn accepted<T>(what: &str, result: crate::Result<T>) -> Checked<T> {
    result.map_err(|error| format!("{what}: {error}"))
}

fn same<T: PartialEq + std::fmt::Debug>(what: &str, is: T, expected: T) -> Checked {
    match is == expected {
        true => Ok(()),
        false => Err(format!("{what}: {is:?} where {expected:?} is expected")),
    }
}

/// Bytes that tell their place and what they are of.
fn pattern(of: u64, len: usize) -> Vec<u8> {
    SplitMix64::stream(of, 77).bytes(len)
}

/// Opens a rank: cm for every fifth seed, else ob1.
struct Opener {
    seed: u64,
    job: SimJob,
    bytes: MemoryNetwork,
    matching: Option<MatchNetwork>,
}

impl Opener {
    fn new(seed: u64, network: &MemoryNetwork) -> Self {
        let options = MatchOptions {
            helping: seed % 2 == 1,
            seed: Some(seed),
            ..MatchOptions::default()
        };
        Self {
            seed,
            job: SimJob::new(network),
            bytes: network.clone(),
            matching: (seed % 5 == 4).then(|| MatchNetwork::on(network, options)),
        }
    }

    fn open(&self, rank: Rank) -> Checked<Messenger> {
        let policy = WaitPolicy {
            mode: WaitMode::Sleep,
            ..WaitPolicy::adaptive(true)
        };
        let level = ThreadLevel::Multiple;
        let bootstrap = |clock: &Clock| Box::new(self.job.member(rank, clock.clone()));
        let opened = match &self.matching {
            None => {
                let (rail, clock) = self.bytes.open(rank);
                let options = Ob1Options::default();
                let ob1 = Ob1::open(&options, Box::new(rail), bootstrap(&clock));
                ob1.map(|ob1| Messenger::new(ob1, level, policy).with_clock(clock))
            }
            Some(network) => {
                let (rail, clock) = network.open(rank);
                let options = CmOptions::default();
                let cm = Cm::open(&options, Box::new(rail), bootstrap(&clock));
                cm.map(|cm| Messenger::new(cm, level, policy).with_clock(clock))
            }
        };
        opened.map_err(|error| format!("seed {}: {error}", self.seed))
    }
}

/// Runs ranks, each with as many threads as `threads` says, and with what `body` makes of each, on the network of a seed.
fn run(seed: u64, threads: &[u32], body: impl Fn(Thread) -> Body) -> Checked {
    let network = network(seed);
    let network = MemoryNetwork::new(threads.len() as u32, network);
    let (opener, memory) = (Opener::new(seed, &network), Rc::new(Memory::default()));
    let wrong = Rc::new(RefCell::new(ControlFlow::Continue(())));
    let mut simulation = Simulation::new(&network);
    for (rank, count) in (0..).map(Rank::new).zip(threads) {
        let port = Arc::new(opener.open(rank)?);
        let first = network.actor(rank);
        for number in 0..*count {
            let actor = match number {
                0 => first.clone(),
                _ => first.thread(),
            };
            let (port, memory) = (Arc::clone(&port), Rc::clone(&memory));
            let body = body(Thread {
                port,
                actor: actor.clone(),
                number,
                memory,
            });
            let wrong = Rc::clone(&wrong);
            simulation.spawn(&actor, async move {
                if let Err(reason) = body.await {
                    let mut first = wrong.borrow_mut();
                    if first.is_continue() {
                        *first = ControlFlow::Break(format!("{rank:?}, thread {number}: {reason}"));
                    }
                }
            });
        }
    }
    let ended = simulation.run();
    // Ranks are gone before what they have borrowed.
    drop(simulation);
    drop(memory);
    match Rc::into_inner(wrong).map(RefCell::into_inner) {
        Some(ControlFlow::Break(reason)) => Err(reason),
        _ => ended.map_err(|error| error.to_string()),
    }
}

#[test]
fn threads_of_a_rank_wait_for_what_another_receives() {
    let body = |thread: Thread| -> Body {
        Box::pin(async move {
            let (own, number) = (thread.rank(), thread.number);
            let other = 1 - own;
            for round in 0..20 {
                let tag = number * 100 + round;
                let bytes = pattern(u64::from(tag), 50);
                if (round + own) % 2 == 0 {
                    thread.send(other, tag, &bytes).await?;
                } else {
                    same("bytes", thread.recv(other, tag, 50).await?, bytes)?;
                }
            }
            Ok(())
        })
    };
    for seed in 0..20 {
        assert_eq!(run(seed, &[3, 3], body), Ok(()), "seed {seed}");
    }
}
