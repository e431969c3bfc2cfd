//! Scripts in virtual time.
//!
//! `causal` is LogGP (Alexandrov, Ionescu, Schauser, Scheiman, SPAA 1995): a send and a post cost their rank `o`; messages
//! leave a rank `g` apart, and `G` for each byte; they arrive `L` later. Messages of two ranks keep their order. A
//! synchronous send is complete with the match. `sendtime` takes the times that another tool saw, and adds `L`.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use tagwire_base::named::Spec;

use super::machine::{Machine, Outcome};
use super::model::all_finished;
use crate::error::{Error, Result};

/// When things happen.
pub(super) trait Timing {
    /// When a message that is sent now arrives.
    fn arrival(&mut self, from: u32, bytes: u64, now: u64) -> u64;

    /// When a rank does its next step, after one that was done now.
    ///
    /// # Errors
    /// [`Error::Usage`] where that is not known.
    fn next(&self, machine: &Machine<'_>, rank: u32, now: u64, done: Outcome) -> Result<u64>;

    /// Whether steps that wait are known to be done.
    fn passes_waits(&self) -> bool;
}

/// What happens, in the order of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    Step(u32),
    Arrive((u32, u32)),
}

/// Runs all ranks to their ends.
pub(super) fn run(machine: &mut Machine<'_>, timing: &mut impl Timing) -> Result<()> {
    let mut events = BinaryHeap::new();
    // What happens at one time happens in the order in which it was planned.
    let mut serial = 0_u64;
    let mut plan = |events: &mut BinaryHeap<_>, at: u64, event: Event| {
        serial += 1;
        events.push(Reverse((at, serial, event)));
    };
    let mut is_blocked = vec![false; machine.size()];
    let mut last: HashMap<(u32, u32), u64> = HashMap::new();
    for rank in 0..machine.size() as u32 {
        let begin = timing.next(machine, rank, 0, Outcome::Done)?;
        plan(&mut events, begin, Event::Step(rank));
    }
    while let Some(Reverse((now, _, event))) = events.pop() {
        match event {
            Event::Arrive(pair) => machine.deliver(pair, now),
            Event::Step(rank) => {
                let done = machine.step(rank, now);
                match done {
                    Outcome::Finished => continue,
                    Outcome::Blocked if timing.passes_waits() => machine.pass(rank),
                    Outcome::Blocked => {
                        is_blocked[rank as usize] = true;
                        continue;
                    }
                    Outcome::Sent { to, bytes } => {
                        let before = last.entry((rank, to)).or_default();
                        let arrival = timing.arrival(rank, bytes, now).max(*before);
                        *before = arrival;
                        plan(&mut events, arrival, Event::Arrive((rank, to)));
                    }
                    _ => {}
                }
                let next = timing.next(machine, rank, now, done)?;
                plan(&mut events, next, Event::Step(rank));
            }
        }
        for rank in machine.take_woken() {
            if std::mem::take(&mut is_blocked[rank as usize]) {
                plan(&mut events, now, Event::Step(rank));
            }
        }
    }
    all_finished(machine)
}

/// LogGP.
#[derive(Debug)]
pub(super) struct LogGp {
    latency: u64,
    overhead: u64,
    gap: u64,
    /// Picoseconds.
    byte: u64,
    /// When each rank may put its next message onto the network.
    free: Vec<u64>,
}

impl LogGp {
    pub(super) fn new(spec: &Spec, ranks: usize) -> Self {
        let parameter = |name| u64::from(spec.number(name));
        Self {
            latency: parameter("L"),
            overhead: parameter("o"),
            gap: parameter("g"),
            byte: parameter("G"),
            free: vec![0; ranks],
        }
    }

    const fn bytes(&self, bytes: u64) -> u64 {
        bytes.saturating_mul(self.byte) / 1000
    }
}

impl Timing for LogGp {
    fn arrival(&mut self, from: u32, bytes: u64, now: u64) -> u64 {
        let (long, gap) = (self.bytes(bytes.saturating_sub(1)), self.gap);
        let busy = gap.max(self.bytes(bytes));
        let free = &mut self.free[from as usize];
        let begin = (*free).max(now.saturating_add(self.overhead));
        *free = begin.saturating_add(busy);
        begin.saturating_add(self.latency).saturating_add(long)
    }

    fn next(&self, _: &Machine<'_>, _: u32, now: u64, done: Outcome) -> Result<u64> {
        Ok(now.saturating_add(match done {
            Outcome::Computed(nanos) => nanos,
            Outcome::Posted | Outcome::Sent { .. } => self.overhead,
            _ => 0,
        }))
    }

    fn passes_waits(&self) -> bool {
        false
    }
}

/// The times that another tool saw.
#[derive(Debug)]
pub(super) struct Seen {
    latency: u64,
}

impl Seen {
    pub(super) const fn new(latency: u64) -> Self {
        Self { latency }
    }
}

impl Timing for Seen {
    fn arrival(&mut self, _: u32, _: u64, now: u64) -> u64 {
        now.saturating_add(self.latency)
    }

    fn next(&self, machine: &Machine<'_>, rank: u32, now: u64, _: Outcome) -> Result<u64> {
        if machine.is_finished(rank) {
            return Ok(now);
        }
        let seen = machine.next_at(rank).ok_or_else(|| {
            Error::Usage(
                "the model 'sendtime' goes by the times of the trace, and here are none".to_owned(),
            )
        })?;
        // A tool's clock may go back.
        Ok(seen.max(now))
    }

    fn passes_waits(&self) -> bool {
        true
    }
}
