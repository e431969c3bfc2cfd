//! The benchmark bodies: what is measured, written once for every port.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};
use tagwire_base::{Rank, Tag};

use crate::buffer::{Incoming, Memory, Outgoing, Pattern};
use crate::error::{Error, Result};
use crate::port::{Endpoint, Port};
use crate::time::nanoseconds;

mod ahead;
pub(crate) mod compute;
mod latency;
pub(crate) mod overlap;
pub(crate) mod partitioned;
mod placed;
pub(crate) mod rotation;
mod unexpected;

pub(crate) use ahead::Ahead;
pub(crate) use latency::Latency;
pub(crate) use placed::Placed;
pub(crate) use unexpected::{Unexpected, UnexpectedAt};

/// One test. All ranks call the same methods in the same order.
pub(crate) trait Body<P: Port> {
    /// Sets up for messages of `size` bytes.
    #[inline]
    fn begin(&mut self, port: &P, size: usize) -> Result<()> {
        let _ = (port, size);
        Ok(())
    }

    /// Runs `count` iterations with messages of `size` bytes. With `times`, each is timed.
    fn block(&mut self, port: &P, block: Repeat<'_>) -> Result<Measured>;

    /// Returns the time of a block, in nanoseconds, of which all ranks have measured this: the longest.
    #[inline]
    fn time(&self, told: &[Measured]) -> u64 {
        let times = told.iter().map(|rank| nanoseconds(rank.elapsed));
        times.max().unwrap_or(0)
    }

    /// Takes back what `begin` set up.
    #[inline]
    fn end(&mut self, port: &P, size: usize) -> Result<()> {
        let _ = (port, size);
        Ok(())
    }
}

/// What a block of iterations took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Measured {
    /// On this rank's clock.
    pub elapsed: Duration,
    /// How many units of the test (one-way trips, messages, hops) all ranks did in it together.
    pub units: u64,
}

impl Measured {
    /// That of a rank that takes no part.
    pub(crate) const NOTHING: Self = Self {
        elapsed: Duration::ZERO,
        units: 0,
    };
}

/// So many iterations at a size.
#[derive(Debug)]
pub(crate) struct Repeat<'t> {
    pub size: usize,
    pub count: u64,
    /// Of single iterations, where they are asked for.
    pub times: Option<&'t mut Times>,
}

impl<'t> Repeat<'t> {
    /// Returns iterations that are not timed singly.
    #[inline]
    pub(crate) const fn untimed(size: usize, count: u64) -> Self {
        let times = None;
        Self { size, count, times }
    }

    /// Returns the same, whose iterations are timed singly on this rank only if it leads.
    #[inline]
    pub(crate) fn timed_if(self, leads: bool) -> Self {
        let times = self.times.filter(|_| leads);
        Self { times, ..self }
    }

    /// Runs the iterations, each of so many units.
    #[inline]
    pub(crate) fn run(
        mut self,
        units: u64,
        mut one: impl FnMut() -> Result<()>,
    ) -> Result<Measured> {
        let start = Instant::now();
        for _ in 0..self.count {
            let began = self.times.is_some().then(Instant::now);
            one()?;
            if let (Some(times), Some(began)) = (&mut self.times, began) {
                times.record(began.elapsed(), units);
            }
        }
        Ok(Measured {
            elapsed: start.elapsed(),
            units: self.count * units,
        })
    }
}

/// The times of single iterations.
#[derive(Debug)]
pub(crate) struct Times {
    histogram: Histogram<u64>,
    /// How many units one iteration has: its time is divided by them.
    units: u64,
}

impl Times {
    #[inline]
    pub(crate) fn new() -> Self {
        // From 1 ns to 1,000 s with three digits: the bounds and the digits are valid.
        let histogram =
            Histogram::new_with_bounds(1, 1_000_000_000_000, 3).expect("bounds in order");
        Self {
            histogram,
            units: 1,
        }
    }

    /// An iteration of `units` units took `elapsed`.
    #[inline]
    pub(crate) fn record(&mut self, elapsed: Duration, units: u64) {
        let elapsed = u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX);
        self.units = units;
        self.histogram.saturating_record(elapsed.max(1));
    }

    /// The time of one unit, in nanoseconds, below which `percentile` percent of all lie.
    #[inline]
    pub(crate) fn percentile_ns(&self, percentile: f64) -> f64 {
        self.histogram.value_at_percentile(percentile) as f64 / self.units as f64
    }

    #[inline]
    pub(crate) fn clear(&mut self) {
        self.histogram.reset();
    }
}

/// What one thread of a rank sends and receives: its memory, and its part in the validation.
#[derive(Debug)]
pub(crate) struct Traffic {
    out: Memory,
    into: Memory,
    /// Filled and checked when there is one.
    seed: Option<u64>,
    rank: u32,
    thread: u32,
    largest: usize,
    sent: u64,
    received: u64,
}

impl Traffic {
    /// For messages of at most `largest` bytes, `window` of them under way at once. With a `seed`
    /// for validation each has memory of its own; without, all share one piece, as OSU has it. Memory is what
    /// `memory` makes of a length.
    #[inline]
    pub(crate) fn new(
        rank: Rank,
        thread: u32,
        largest: usize,
        window: usize,
        seed: Option<u64>,
        memory: impl Fn(usize) -> Result<Memory>,
    ) -> Result<Self> {
        let slots = if seed.is_some() { window } else { 1 };
        let len = largest.saturating_mul(slots);
        Ok(Self {
            out: memory(len)?,
            into: memory(len)?,
            seed,
            rank: rank.as_u32(),
            thread,
            largest,
            sent: 0,
            received: 0,
        })
    }

    #[inline]
    const fn place(&self, slot: usize, size: usize) -> std::ops::Range<usize> {
        let start = if self.seed.is_some() {
            slot * self.largest
        } else {
            0
        };
        start..start + size
    }

    /// The next message, as number `slot` of those under way.
    #[inline]
    pub(crate) fn outgoing(&mut self, slot: usize, size: usize) -> Outgoing {
        let place = self.place(slot, size);
        if let Some(seed) = self.seed {
            let pattern = Pattern::of(seed, self.rank, self.thread, self.sent);
            self.out.fill(place.clone(), pattern);
            self.sent += 1;
        }
        self.out.outgoing(place)
    }

    /// A message of no bytes, outside the validation's count.
    #[inline]
    pub(crate) fn empty(&self) -> Outgoing {
        self.out.outgoing(0..0)
    }

    /// Room for the message number `slot` of those under way.
    #[inline]
    pub(crate) fn incoming(&self, slot: usize, size: usize) -> Incoming {
        self.into.incoming(self.place(slot, size))
    }

    /// Looks at the next `count` messages that have come from `from`, in slots 0 and up.
    #[inline]
    pub(crate) fn check(&mut self, count: usize, size: usize, from: Rank) -> Result<()> {
        match self.seed {
            None => Ok(()),
            Some(_) => (0..count).try_for_each(|slot| self.check_at(slot, size, from)),
        }
    }

    /// Looks at the next message that has come from `from`, in this slot.
    #[inline]
    pub(crate) fn check_at(&mut self, slot: usize, size: usize, from: Rank) -> Result<()> {
        let sent = self.received;
        self.received += 1;
        self.check_sent(slot, size, from, sent)
    }

    /// Looks at the message that was sent as number `sent` of those of `from`, in this slot.
    #[inline]
    pub(crate) fn check_sent(&self, slot: usize, size: usize, from: Rank, sent: u64) -> Result<()> {
        let Some(seed) = self.seed else { return Ok(()) };
        let from = from.as_u32();
        let pattern = Pattern::of(seed, from, self.thread, sent);
        let checked = self.into.check(self.place(slot, size), pattern);
        checked.map_err(|found| found.of_message(self.rank, from, sent, size))
    }

    /// Sends one message.
    #[inline]
    pub(crate) fn send<P: Endpoint + ?Sized>(
        &mut self,
        port: &P,
        size: usize,
        to: Rank,
        tag: Tag,
    ) -> Result<()> {
        port.send(self.outgoing(0, size), to, tag)
    }

    /// Receives one message.
    #[inline]
    pub(crate) fn recv<P: Endpoint + ?Sized>(
        &mut self,
        port: &P,
        size: usize,
        from: Rank,
        tag: Tag,
    ) -> Result<()> {
        port.recv(self.incoming(0, size), from, tag)?;
        self.check(1, size, from)
    }
}

/// Returns what so many threads at once come to, in their order; one is this thread.
fn on_threads<T: Send>(count: u32, work: impl Fn(u32) -> Result<T> + Sync) -> Result<Vec<T>> {
    if count == 1 {
        return Ok(vec![work(0)?]);
    }
    std::thread::scope(|scope| {
        let spawn = |thread| {
            scope.spawn({
                let work = &work;
                move || work(thread)
            })
        };
        let threads: Vec<_> = (0..count).map(spawn).collect();
        let panicked = |_| Error::Peer("a thread panicked".to_owned());
        let ended = threads.into_iter();
        ended
            .map(|thread| thread.join().map_err(panicked)?)
            .collect()
    })
}

/// The other rank of a pair.
#[inline]
pub(crate) const fn other(rank: Rank) -> Rank {
    Rank::new(1 - rank.as_u32())
}

#[cfg(test)]
mod tests;
