//! Rounds as the paper defines them.
//!
//! ```text
//!   rank 0, which sends                          rank 1
//!     a message:  threads compute; join            receives it
//!                 sends; receives a byte             sends a byte
//!     partitions: thread t computes, ready(t),     thread: arrived(t)? then ready(t) of the reverse
//!                 waits for the reverse's t
//!     perceived:  as above without the reverse     receives all; sends a byte
//! ```
//!
//! All times are of the sender's clock, so that each has the way back in it. A thread of the sender has one
//! partition. The receiver has as many threads as it has cores, since each of them polls.

use std::ops::Range;
use std::time::Duration;

use super::super::on_threads;
use super::{Kind, Rounds, nonsense, now};
use crate::args::partitioned::{Circumstances, ComputeMode};
use crate::buffer::Memory;
use crate::error::Result;
use crate::port::partitioned::{PartitionedPort, Partner, RecvEnd, Rounds as _, SendEnd};
use crate::port::{barrier, tags};
use crate::stats::{Seeded, mix};

/// Looks at a partition before a thread leaves its core to another.
const LOOKS: u32 = 16;

/// The policy of acknowledgements: none waits for another.
const EACH: &str = "each";

/// The way back: a byte for each partition.
pub(crate) enum Reverse<'a, P: PartitionedPort + 'a> {
    /// On the rank that receives the data.
    Send(P::Send<'a>),
    /// On the rank that sends it.
    Recv(P::Recv<'a>),
}

impl<'a, P: PartitionedPort> Reverse<'a, P> {
    pub(super) fn open(port: &'a P, partner: Partner) -> Result<Self> {
        let memory = Memory::new(partner.partitions as usize)?;
        let all = 0..partner.partitions as usize;
        Ok(match port.rank().as_u32() {
            0 => Self::Recv(port.precv(memory.incoming(all), partner, 1)?),
            _ => Self::Send(port.psend(memory.outgoing(all), partner, EACH)?),
        })
    }
}

/// A message after the join, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Single {
    /// From the fork to the join.
    pub fork_join: u64,
    /// From the join to the byte that comes back.
    pub message: u64,
}

/// A partition, in nanoseconds since the fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Interval {
    /// The ready call begins.
    pub called: u64,
    /// It has returned.
    pub ready: u64,
    /// The acknowledgement is here.
    pub arrived: u64,
}

impl<P: PartitionedPort> Rounds<'_, P> {
    /// Sends one message once all threads have computed; what it took is known on rank 0.
    pub(crate) fn paper_message(&mut self) -> Result<Option<Single>> {
        self.prepare()?;
        let delays = self.paper_delays();
        barrier(self.port)?;
        let peer = super::super::other(self.port.rank());
        let single = if self.port.rank().as_u32() == 0 {
            let fork = now();
            self.compute_then(fork, &delays, &|_| Ok(()))?;
            let join = now();
            // The sender looks, too, as it does for what comes back of partitions.
            let message = self.memory.outgoing(0..self.size);
            let mut sent = vec![self.port.isend(message, peer, tags::DATA)?];
            self.port
                .recv_looking(self.stamps.incoming(0..1), peer, tags::ACK)?;
            self.port.wait_all(&mut sent)?;
            let message = now() - join;
            Some(Single {
                fork_join: join - fork,
                message,
            })
        } else {
            // As the receiver of partitions waits: what waking it takes is of neither.
            self.port
                .recv_looking(self.memory.incoming(0..self.size), peer, tags::DATA)?;
            self.port
                .send(self.stamps.outgoing(0..1), peer, tags::ACK)?;
            None
        };
        self.check(Kind::Message)?;
        Ok(single)
    }

    /// Sends partitions, each of which is acknowledged; what they took is known on rank 0.
    pub(crate) fn paper_partitions(&mut self, number: usize) -> Result<Option<Vec<Interval>>> {
        self.prepare()?;
        let delays = self.paper_delays();
        barrier(self.port)?;
        let found = match self.reverse.as_ref().ok_or_else(nonsense)? {
            Reverse::Recv(reverse) => {
                let data = self.sender(number)?;
                data.start()?;
                reverse.start()?;
                let fork = now();
                let body = |partition| {
                    let called = now();
                    data.ready(partition)?;
                    let ready = now();
                    until_arrived(reverse, partition)?;
                    Ok((called - fork, ready - fork, now() - fork))
                };
                let stamps = self.compute_then(fork, &delays, &body)?;
                data.wait()?;
                reverse.wait()?;
                let interval = |(called, ready, arrived)| Interval {
                    called,
                    ready,
                    arrived,
                };
                Some(stamps.into_iter().map(interval).collect())
            }
            Reverse::Send(reverse) => {
                let data = self.receiver(number)?;
                data.start()?;
                reverse.start()?;
                acknowledge(data, reverse, self.partitions)?;
                data.wait()?;
                reverse.wait()?;
                None
            }
        };
        self.check(Kind::Partitioned(number))?;
        Ok(found)
    }

    /// Sends partitions, and one byte comes back for all; returns on rank 0 how long after the last ready call that came,
    /// in nanoseconds.
    pub(crate) fn paper_perceived(&mut self, number: usize) -> Result<Option<u64>> {
        self.prepare()?;
        let delays = self.paper_delays();
        barrier(self.port)?;
        let peer = super::super::other(self.port.rank());
        let found = if self.port.rank().as_u32() == 0 {
            let data = self.sender(number)?;
            data.start()?;
            let fork = now();
            let body = |partition| {
                data.ready(partition)?;
                Ok(now())
            };
            let ready = self.compute_then(fork, &delays, &body)?;
            self.port
                .recv_looking(self.stamps.incoming(0..1), peer, tags::ACK)?;
            let arrived = now();
            data.wait()?;
            let last = ready.into_iter().max().unwrap_or(fork);
            Some(arrived.saturating_sub(last).max(1))
        } else {
            let data = self.receiver(number)?;
            data.start()?;
            (0..self.partitions).try_for_each(|partition| data.arrive(partition))?;
            data.wait()?;
            self.port
                .send(self.stamps.outgoing(0..1), peer, tags::ACK)?;
            None
        };
        self.check(Kind::Partitioned(number))?;
        Ok(found)
    }

    /// How long the thread of each partition computes in this round. Where one is late, it is the first. Each has a
    /// stream of random numbers of its own.
    fn paper_delays(&self) -> Vec<Duration> {
        let (noise, time) = (self.noise(), self.circumstances.time);
        let of = |thread| {
            let stream = mix(u64::from(thread) << 40 | self.round);
            let mut random = Seeded::new(self.draws ^ stream);
            noise.of_thread(time, thread == 0, &mut random)
        };
        (0..self.partitions).map(of).collect()
    }

    /// Has a thread for each partition compute from `fork` on, and then run `body`.
    fn compute_then<T: Send>(
        &self,
        fork: u64,
        delays: &[Duration],
        body: &(impl Fn(u32) -> Result<T> + Sync),
    ) -> Result<Vec<T>> {
        let circumstances = self.circumstances;
        let of_thread = |partition: u32| {
            let delay = delays[partition as usize].as_nanos();
            compute_until(circumstances, fork + delay as u64);
            body(partition)
        };
        on_threads(delays.len() as u32, of_thread)
    }
}

/// Computes until the clock shows `deadline`.
fn compute_until(circumstances: Circumstances, deadline: u64) {
    if circumstances.time.is_zero() {
        return;
    }
    match circumstances.compute {
        ComputeMode::Sleep => {
            std::thread::sleep(Duration::from_nanos(deadline.saturating_sub(now())));
        }
        ComputeMode::Busy => while now() < deadline {},
    }
}

/// Polls one partition. Where threads are more than cores, the others have to get theirs.
fn until_arrived(recv: &impl RecvEnd, partition: u32) -> Result<()> {
    loop {
        for _ in 0..LOOKS {
            if recv.arrived(partition)? {
                return Ok(());
            }
        }
        std::thread::yield_now();
    }
}

/// Acknowledges each partition once it has arrived, by as many threads as there are cores for this rank.
fn acknowledge<R: RecvEnd + Sync>(data: &R, reverse: &impl SendEnd, partitions: u32) -> Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from) as u32;
    let threads = (cores / 2).clamp(1, partitions);
    let of_thread = |thread: u32| {
        let bound = |thread| thread * partitions / threads;
        poll(data, reverse, bound(thread)..bound(thread + 1))
    };
    on_threads(threads, of_thread).map(drop)
}

fn poll(data: &impl RecvEnd, reverse: &impl SendEnd, partitions: Range<u32>) -> Result<()> {
    let mut open: Vec<u32> = partitions.collect();
    let mut looks = 0_u32;
    while !open.is_empty() {
        let mut at = 0;
        while at < open.len() {
            match data.arrived(open[at])? {
                true => reverse.ready(open.swap_remove(at))?,
                false => at += 1,
            }
        }
        looks += 1;
        if looks.is_multiple_of(LOOKS) {
            std::thread::yield_now();
        }
    }
    Ok(())
}
