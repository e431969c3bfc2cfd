//! How an origin and a target exchange short accesses that the target does, by two lines of its control block: see
//! [`served`](super::served).

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst};

use tagwire_base::Clock;
use tagwire_layout::Basic;
use tagwire_pml::{Demand, Driven, Driver};
use tagwire_transport::BoardWaker;

use crate::abi::Op;
use crate::error::Result;
use crate::object::window::block::Lines;

/// Words of data in a line, and their bytes.
const WORDS: usize = 5;
pub(crate) const BYTES: usize = 8 * WORDS;

/// The data of an access.
pub(crate) type Data = [u8; BYTES];

/// A target that looked so long ago, in nanoseconds, is not asked. That of a test may have to share its processor with anybody.
pub(super) const LATELY: u64 = if cfg!(test) { 20_000_000 } else { 20_000 };

/// After so long, in nanoseconds, a target says again that it looks.
pub(super) const STAMP: u64 = 5_000;

/// Every so many looks read the clock.
pub(super) const LOOKS_PER_STAMP: u32 = 16;

/// So long, in nanoseconds, an origin waits for a target to take its access.
const PATIENCE: u64 = if cfg!(test) { 5_000_000 } else { 5_000 };

/// Every so many looks for a reply an origin looks at its clock, and does what others ask of it.
const LOOKS: u32 = 64;

/// So many accesses by calls of the system within [`SOON`] wake a target that sleeps.
const MANY: u32 = 16;
const SOON: u64 = 500_000;

/// After so many misses one after another a target is not asked for so many accesses, as a power of two.
const MOST_MISSES: u32 = 10;

/// How an access ended, or who has it: the lowest bits of the first word of a reply, beside its number.
mod state {
    pub(super) const TAKEN: u64 = 0;
    pub(super) const DONE: u64 = 1;
    pub(super) const REFUSED: u64 = 2;
    pub(super) const WITHDRAWN: u64 = 3;
    pub(super) const BITS: u32 = 2;
}

/// What an access does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    /// Writes, or reads, so many bytes.
    Put(usize),
    Get(usize),
    /// Changes a value of a type by the operation with a handle.
    Change(Op, Basic),
    /// Compares a value of a type with the first word of data, and writes the second where they are equal.
    CompareSwap(Basic),
}

impl What {
    pub(super) fn encode(self) -> u64 {
        match self {
            Self::Put(bytes) => (bytes as u64) << 8,
            Self::Get(bytes) => 1 | (bytes as u64) << 8,
            Self::Change(op, basic) => 2 | (op.0 as u64 & 0xff) << 8 | (basic as u64) << 16,
            Self::CompareSwap(basic) => 3 | (basic as u64) << 16,
        }
    }

    pub(super) fn decode(word: u64) -> Option<Self> {
        let bytes = usize::try_from(word >> 8).ok();
        let bytes = bytes.filter(|bytes| (1..=BYTES).contains(bytes));
        let basic = || Basic::ALL.get((word >> 16) as usize).copied();
        Some(match word & 0xff {
            0 => Self::Put(bytes?),
            1 => Self::Get(bytes?),
            2 => Self::Change(Op((word >> 8 & 0xff) as usize), basic()?),
            3 => Self::CompareSwap(basic()?),
            _ => return None,
        })
    }

    /// Returns how many bytes of the target it accesses.
    pub(super) const fn bytes(self) -> usize {
        match self {
            Self::Put(bytes) | Self::Get(bytes) => bytes,
            Self::Change(_, basic) | Self::CompareSwap(basic) => basic.size(),
        }
    }
}

/// What an origin knows of a target.
#[derive(Debug, Default)]
pub(super) struct Asker {
    number: u64,
    /// When an access was withdrawn or refused last, how many have been one after another, and how many are not asked for since.
    missed: u64,
    misses: u32,
    skips: u32,
    /// Accesses by calls of the system, and since when.
    stale: u32,
    since: u64,
}

impl Asker {
    /// Asks a target for an access. `serve` does what others ask of this process, `wait` waits for what it is given while the target
    /// lives. Returns what was there, or `None` where the access is still to be done.
    ///
    /// # Errors
    /// Those of `wait`.
    pub(super) fn ask(
        &mut self,
        lines: Lines<'_>,
        (what, offset, data): (What, i64, &Data),
        (clock, waker): (&Clock, Option<&dyn BoardWaker>),
        serve: impl Fn(),
        wait: impl FnOnce(&dyn Fn() -> bool) -> Result,
    ) -> Result<Option<Data>> {
        let now = || clock.now().as_nanos();
        let began = now();
        let looked = match lines.attends.load(Relaxed) {
            0 => lines.looked.load(Relaxed),
            _ => began,
        };
        if !self.asks(began, looked) {
            if self.calls(began)
                && let Some(waker) = waker
            {
                lines.called.store(1, Relaxed);
                waker.wake();
            }
            return Ok(None);
        }
        self.number += 1;
        let number = self.number;
        let before = lines.reply[0].load(Relaxed);
        lines.ask[1].store(what.encode(), Relaxed);
        lines.ask[2].store(offset as u64, Relaxed);
        store(data, &lines.ask[3..]);
        lines.ask[0].store(number, Release);
        let end = || match lines.reply[0].load(SeqCst) {
            reply if reply >> state::BITS != number => None,
            reply => Some(reply & ((1 << state::BITS) - 1)).filter(|end| *end != state::TAKEN),
        };
        let mut looks = 0_u32;
        while end().is_none() {
            looks += 1;
            if looks.is_multiple_of(LOOKS) {
                // It may wait for an access to this one.
                serve();
                if now() - began > PATIENCE {
                    let withdrawn = number << state::BITS | state::WITHDRAWN;
                    let reply = &lines.reply[0];
                    let swapped = reply.compare_exchange(before, withdrawn, AcqRel, Acquire);
                    if swapped.is_ok() {
                        self.miss(now());
                        return Ok(None);
                    }
                    // Taken: it ends, unless the target does.
                    wait(&|| end().is_some())?;
                    break;
                }
            }
            std::hint::spin_loop();
        }
        if end() != Some(state::DONE) {
            self.miss(now());
            return Ok(None);
        }
        self.misses = 0;
        Ok(Some(load(&lines.reply[1..])))
    }

    /// Returns whether a target is asked that has looked at a time: lately, and after it was asked in vain. One that comes late again
    /// and again is asked ever more seldom.
    pub(super) fn asks(&mut self, now: u64, looked: u64) -> bool {
        if now.saturating_sub(looked) > LATELY || looked <= self.missed {
            return false;
        }
        let skips = self.skips > 0;
        self.skips = self.skips.saturating_sub(1);
        !skips
    }

    /// The target has not done an access.
    pub(super) fn miss(&mut self, now: u64) {
        self.missed = now;
        self.skips = 1 << self.misses;
        self.misses = (self.misses + 1).min(MOST_MISSES);
    }

    /// Returns whether it is time to wake a target that has not looked lately, for accesses that come one after another.
    pub(super) fn calls(&mut self, now: u64) -> bool {
        if now.saturating_sub(self.since) > SOON {
            (self.since, self.stale) = (now, 0);
        }
        self.stale += 1;
        self.stale == MANY
    }
}

/// Takes what a member asks for, where that is new: by its number, where `last` was over before. Returns it with how it is answered.
pub(super) fn taken<'l>(lines: Lines<'l>, last: &AtomicU64) -> Option<Taken<'l>> {
    let number = lines.ask[0].load(Acquire);
    if number == last.load(Relaxed) {
        return None;
    }
    last.store(number, Relaxed);
    let before = lines.reply[0].load(Acquire);
    // Withdrawn, or another thread's.
    if before >> state::BITS >= number {
        return None;
    }
    let taken = number << state::BITS | state::TAKEN;
    let reply = &lines.reply[0];
    let swapped = reply.compare_exchange(before, taken, AcqRel, Relaxed);
    swapped.is_ok().then_some(Taken { lines, number })
}

/// An access that this process has taken, and has to answer.
pub(super) struct Taken<'l> {
    lines: Lines<'l>,
    number: u64,
}

impl Taken<'_> {
    /// Returns what it does, the offset, and the data; `None` where it is none.
    pub(super) fn asked(&self) -> Option<(What, u64, Data)> {
        let what = What::decode(self.lines.ask[1].load(Relaxed))?;
        let offset = self.lines.ask[2].load(Relaxed);
        Some((what, offset, load(&self.lines.ask[3..])))
    }

    /// Says that it is done, with what was there, or that it cannot be done so.
    pub(super) fn answer(self, done: Option<Data>) {
        let end = match done {
            Some(data) => {
                store(&data, &self.lines.reply[1..]);
                state::DONE
            }
            None => state::REFUSED,
        };
        let reply = self.number << state::BITS | end;
        // Whoever answers looks for those who wait after this, and they look for the answer after they have said so.
        self.lines.reply[0].store(reply, SeqCst);
    }
}

fn store(data: &Data, to: &[AtomicU64]) {
    for (to, word) in to.iter().zip(data.as_chunks::<8>().0) {
        to.store(u64::from_ne_bytes(*word), Relaxed);
    }
}

fn load(from: &[AtomicU64]) -> Data {
    let mut data: Data = [0; BYTES];
    for (to, word) in data.as_chunks_mut::<8>().0.iter_mut().zip(from) {
        *to = word.load(Relaxed).to_ne_bytes();
    }
    data
}

/// What does accesses for others, and is driven, until dropped.
pub(super) struct Serving {
    server: Arc<dyn Driver>,
    demand: Demand,
    _driven: Driven,
}

impl Serving {
    pub(super) fn new(server: Arc<dyn Driver>, driven: Driven) -> Self {
        let demand = driven.demand();
        demand.raise();
        Self {
            server,
            demand,
            _driven: driven,
        }
    }

    pub(super) fn server(&self) -> Arc<dyn Driver> {
        Arc::clone(&self.server)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.demand.lower();
    }
}

impl fmt::Debug for Serving {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Serving")
    }
}
