//! One round of a partitioned operation, or of a message in its place.
//!
//! ```text
//!   rank 0, which sends                        rank 1
//!     start                                      start
//!     threads: compute, ready, compute, ready    look which partitions have arrived, with the time of each
//!     join
//!     wait                                       wait
//!            <------ the times, as a message -----
//! ```
//!
//! Both ranks read the same clock, that of the machine (`CLOCK_MONOTONIC`).

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use tagwire_base::Rank;

use super::compute::Computation;
use super::on_threads;
use crate::args::partitioned::Circumstances;
use crate::buffer::{self, Memory, Pattern};
use crate::error::{Error, Result};
use crate::noise::Model;
use crate::port::partitioned::{
    Operation, PartitionedPort, Partner, RecvEnd, Rounds as _, SendEnd,
};
use crate::port::{barrier, tags};
use crate::stats::Seeded;

pub(crate) mod paper;

/// What a round moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Kind {
    /// One ordinary message of all bytes.
    Message,
    /// The partitioned operation with this number.
    Partitioned(usize),
}

/// One end of each operation, on the rank that has it.
enum End<'a, P: PartitionedPort + 'a> {
    Send(P::Send<'a>),
    Recv(P::Recv<'a>),
}

/// The times of a round, in nanoseconds of the machine's clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Stamps {
    /// The first ready call, or the send, begins.
    pub first: u64,
    /// The last ready call begins.
    pub last: u64,
    /// All threads have been joined.
    pub join: u64,
    /// Everything has arrived.
    pub end: u64,
    /// Each of the receiver's partitions has been found to have arrived.
    pub arrived: Vec<u64>,
}

/// Rounds for messages of one size in one number of partitions.
pub(crate) struct Rounds<'a, P: PartitionedPort> {
    port: &'a P,
    circumstances: Circumstances,
    threads: u32,
    partitions: u32,
    size: usize,
    memory: Memory,
    ends: Vec<End<'a, P>>,
    /// What acknowledges each partition, by the paper's definition.
    reverse: Option<paper::Reverse<'a, P>>,
    stamps: Memory,
    sweep: Vec<u64>,
    random: Seeded,
    computation: Computation,
    /// The seed of what is drawn by thread and round.
    draws: u64,
    /// Filled and checked when there is one.
    seed: Option<u64>,
    round: u64,
}

/// A size in one number of partitions under some circumstances.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Case {
    pub size: usize,
    pub partitions: u32,
    pub circumstances: Circumstances,
}

/// What of a run concerns the rounds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setting {
    /// Partitions are acknowledged too.
    pub has_paper: bool,
    pub threads: u32,
    pub seed: u64,
    pub validate: bool,
    /// The first tag that is free.
    pub tag: u32,
}

impl<'a, P: PartitionedPort> Rounds<'a, P> {
    /// Makes all of `operations`; both ranks do so, in the same order.
    pub(crate) fn open(
        port: &'a P,
        setting: Setting,
        case: Case,
        operations: &[Operation],
    ) -> Result<Self> {
        let Case {
            size,
            partitions,
            circumstances,
        } = case;
        let rooms = operations.iter().map(|operation| operation.buffers).max();
        let memory = Memory::new(size * rooms.unwrap_or(1) as usize)?;
        let sends = port.rank().as_u32() == 0;
        let peer = super::other(port.rank());
        let partner = |number| Partner {
            rank: peer,
            tag: tags::thread(number).0,
            partitions,
        };
        let mut ends = Vec::new();
        for (number, operation) in (setting.tag..).zip(operations) {
            ends.push(if sends {
                let data = memory.outgoing(0..size);
                End::Send(port.psend(data, partner(number), &operation.policy)?)
            } else {
                let buffers = operation.buffers;
                let data = memory.incoming(0..size * buffers as usize);
                End::Recv(port.precv(data, partner(number), buffers)?)
            });
        }
        let number = setting.tag + operations.len() as u32;
        let reverse = setting
            .has_paper
            .then(|| paper::Reverse::open(port, partner(number)));
        Ok(Self {
            port,
            circumstances,
            threads: setting.threads,
            partitions,
            size,
            memory,
            ends,
            reverse: reverse.transpose()?,
            stamps: Memory::new(8 * (partitions as usize + 1))?,
            sweep: vec![1; circumstances.sweep() / 8],
            random: Seeded::new(setting.seed),
            computation: Computation::new(circumstances.compute),
            draws: setting.seed,
            seed: setting.validate.then_some(setting.seed),
            round: 0,
        })
    }

    /// What threads do before partitions are ready, and what lies in the caches.
    pub(crate) const fn circumstances(&self) -> Circumstances {
        self.circumstances
    }

    /// Which way the operation `number` takes, once that is known.
    pub(crate) fn describe(&self, number: usize) -> Option<String> {
        match self.ends.get(number) {
            Some(End::Send(send)) => send.describe(),
            _ => None,
        }
    }

    /// Runs `count` rounds without computation and returns how long each took: from before the start to
    /// the receiver's acknowledgement, an empty message.
    pub(crate) fn block(&mut self, kind: Kind, count: u64) -> Result<Vec<u64>> {
        barrier(self.port)?;
        let mut times = Vec::with_capacity(count as usize);
        for _ in 0..count {
            self.prepare()?;
            let began = now();
            self.plain(kind)?;
            times.push(now() - began);
            self.check(kind)?;
        }
        Ok(times)
    }

    /// Evicts, and fills.
    fn prepare(&mut self) -> Result<()> {
        self.round += 1;
        if let Some(seed) = self.seed
            && self.port.rank().as_u32() == 0
        {
            let pattern = Pattern::of(seed, 0, 0, self.round);
            self.memory.fill(0..self.size, pattern);
        }
        if !self.sweep.is_empty() {
            buffer::sweep(&mut self.sweep);
            barrier(self.port)?;
        }
        Ok(())
    }

    /// Looks at what has come.
    fn check(&self, kind: Kind) -> Result<()> {
        let (Some(seed), 1) = (self.seed, self.port.rank().as_u32()) else {
            return Ok(());
        };
        let pattern = Pattern::of(seed, 0, 0, self.round);
        let room = match kind {
            Kind::Message => 0,
            Kind::Partitioned(number) => self.receiver(number)?.room(),
        };
        let range = room * self.size..(room + 1) * self.size;
        let checked = self.memory.check(range, pattern);
        checked.map_err(|found| found.of_message(1, 0, self.round, self.size))
    }

    fn plain(&self, kind: Kind) -> Result<()> {
        let empty = 0..0;
        let peer = super::other(self.port.rank());
        if self.port.rank().as_u32() == 0 {
            match kind {
                Kind::Message => self.send_message(peer)?,
                Kind::Partitioned(number) => {
                    let send = self.sender(number)?;
                    send.start()?;
                    for partition in 0..self.partitions {
                        send.ready(partition)?;
                    }
                    send.wait()?;
                }
            }
            return self.port.recv(self.stamps.incoming(empty), peer, tags::ACK);
        }
        match kind {
            Kind::Message => self.recv_message(peer)?,
            Kind::Partitioned(number) => {
                let recv = self.receiver(number)?;
                recv.start()?;
                recv.wait()?;
            }
        }
        self.port.send(self.stamps.outgoing(empty), peer, tags::ACK)
    }

    fn send_message(&self, to: Rank) -> Result<()> {
        self.port
            .send(self.memory.outgoing(0..self.size), to, tags::DATA)
    }

    fn recv_message(&self, from: Rank) -> Result<()> {
        self.port
            .recv(self.memory.incoming(0..self.size), from, tags::DATA)
    }

    fn sender(&self, number: usize) -> Result<&P::Send<'a>> {
        match self.ends.get(number) {
            Some(End::Send(send)) => Ok(send),
            _ => Err(nonsense()),
        }
    }

    fn receiver(&self, number: usize) -> Result<&P::Recv<'a>> {
        match self.ends.get(number) {
            Some(End::Recv(recv)) => Ok(recv),
            _ => Err(nonsense()),
        }
    }

    /// One round with computation and the time of everything; what it came to is known on rank 0.
    pub(crate) fn stamped(&mut self, kind: Kind) -> Result<Option<Stamps>> {
        self.prepare()?;
        let delays = self.delays();
        let stamps = if self.port.rank().as_u32() == 0 {
            self.stamped_send(kind, &delays).map(Some)
        } else {
            self.stamped_recv(kind).map(|()| None)
        }?;
        self.check(kind)?;
        Ok(stamps)
    }

    fn stamped_send(&self, kind: Kind, delays: &[Duration]) -> Result<Stamps> {
        let peer = super::other(self.port.rank());
        let work = Work {
            computation: self.computation,
            partitions: self.partitions,
            threads: delays.len() as u32,
        };
        let mut stamps = match kind {
            Kind::Message => {
                barrier(self.port)?;
                self.computation.run(self.circumstances.time);
                let first = now();
                self.send_message(peer)?;
                Stamps {
                    first,
                    last: first,
                    join: first,
                    end: 0,
                    arrived: Vec::new(),
                }
            }
            Kind::Partitioned(number) => {
                let send = self.sender(number)?;
                barrier(self.port)?;
                send.start()?;
                let (first, last) = work.contribute(send, delays)?;
                let join = now();
                send.wait()?;
                Stamps {
                    first,
                    last,
                    join,
                    end: 0,
                    arrived: Vec::new(),
                }
            }
        };
        let words = self.partitions as usize + 1;
        let room = self.stamps.incoming(0..8 * words);
        self.port.recv(room, peer, tags::SENT)?;
        let told = self.stamps.words(words);
        stamps.end = told[0];
        stamps.arrived = told[1..].to_vec();
        Ok(stamps)
    }

    const fn noise(&self) -> Model {
        Model {
            noise: self.circumstances.noise,
            pct: self.circumstances.noise_pct,
        }
    }

    /// How long each thread computes in this round. Drawn on both ranks, and used on one.
    fn delays(&mut self) -> Vec<Duration> {
        let threads = self.threads.min(self.partitions);
        self.noise()
            .draw(&mut self.random, self.circumstances.time, threads)
    }

    fn stamped_recv(&mut self, kind: Kind) -> Result<()> {
        let peer = super::other(self.port.rank());
        let mut words = vec![0; self.partitions as usize + 1];
        match kind {
            Kind::Message => {
                barrier(self.port)?;
                self.recv_message(peer)?;
                words[0] = now();
            }
            Kind::Partitioned(number) => {
                barrier(self.port)?;
                let recv = self.receiver(number)?;
                recv.start()?;
                watch(recv, &mut words[1..])?;
                recv.wait()?;
                words[0] = now();
            }
        }
        self.stamps.write_words(&words);
        let data = self.stamps.outgoing(0..8 * words.len());
        self.port.send(data, peer, tags::SENT)
    }
}

/// What the sending threads do before a partition is ready.
#[derive(Debug, Clone, Copy)]
struct Work {
    computation: Computation,
    partitions: u32,
    threads: u32,
}

impl Work {
    /// Lets the threads compute and make their partitions ready; returns when the first and the last
    /// ready call began.
    fn contribute(self, send: &impl SendEnd, delays: &[Duration]) -> Result<(u64, u64)> {
        let of_thread = |thread: u32| self.of_thread(thread, delays[thread as usize], send);
        let ended = on_threads(self.threads, of_thread)?.into_iter();
        let both = |both: (u64, u64), ended: (u64, u64)| (both.0.min(ended.0), both.1.max(ended.1));
        Ok(ended.fold((u64::MAX, 0), both))
    }

    fn of_thread(self, thread: u32, time: Duration, send: &impl SendEnd) -> Result<(u64, u64)> {
        let first_of = |thread| {
            (u64::from(thread) * u64::from(self.partitions) / u64::from(self.threads)) as u32
        };
        let mine = first_of(thread)..first_of(thread + 1);
        let each = time / (mine.len() as u32).max(1);
        let (mut first, mut last) = (u64::MAX, 0);
        for partition in mine {
            self.computation.run(each);
            last = now();
            first = first.min(last);
            send.ready(partition)?;
        }
        Ok((first, last))
    }
}

/// Looks at all partitions until all have arrived, and notes when each did.
fn watch(recv: &impl RecvEnd, arrived: &mut [u64]) -> Result<()> {
    let mut left = arrived.len();
    while left > 0 {
        for (partition, stamp) in (0..).zip(&mut *arrived) {
            if *stamp == 0 && recv.arrived(partition)? {
                *stamp = now();
                left -= 1;
            }
        }
    }
    Ok(())
}

/// The machine's clock, in nanoseconds, the same for all ranks.
pub(crate) fn now() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
}

fn nonsense() -> Error {
    Error::Peer("a partitioned operation that does not exist".to_owned())
}
