//! One-sided operations of rank 0 on the memory of rank 1, which waits in a receive meanwhile.
//!
//! An iteration is one operation, or a window of them, until the bytes are visible where they go: there after a put, here
//! after a get. With validation the ranks tell each other when there is something to fill or to look at.

use std::ops::Range;
use std::time::Duration;

use super::{Body, Measured, Times, other};
use crate::buffer::{Memory, Pattern};
use crate::error::{Error, Mismatch, Result};
use crate::port::remote::{Access, RemotePort};
use crate::port::tags;
use crate::time::time_of;

/// One unit is one operation.
pub(crate) struct OneSided<'p, P: RemotePort + 'p> {
    access: Access,
    window: usize,
    /// What rank 0 puts, or what it gets.
    own: Memory,
    /// What the other rank reaches.
    shared: Memory,
    region: P::Region<'p>,
    largest: usize,
    /// Bytes are filled and checked when there is one.
    seed: Option<u64>,
    /// Operations so far.
    done: u64,
}

impl<'p, P: RemotePort> OneSided<'p, P> {
    /// For operations of at most `largest` bytes, `window` of them at once. Without a `seed` all share one piece of memory, as
    /// messages do.
    pub(crate) fn open(
        port: &'p P,
        (access, window): (Access, usize),
        largest: usize,
        seed: Option<u64>,
        memory: impl Fn(usize) -> Result<Memory>,
    ) -> Result<Self> {
        let slots = if seed.is_some() { window } else { 1 };
        let len = largest.saturating_mul(slots).max(8);
        let mut shared = memory(len)?;
        shared.write_words(&[0]);
        Ok(Self {
            access,
            window,
            own: memory(len)?,
            region: port.share(shared.incoming(0..len), access)?,
            shared,
            largest,
            seed,
            done: 0,
        })
    }

    const fn place(&self, slot: usize, size: usize) -> Range<usize> {
        let start = if self.seed.is_some() {
            slot * self.largest
        } else {
            0
        };
        start..start + size
    }

    #[inline]
    fn operate(&mut self, port: &P, size: usize) -> Result<()> {
        for slot in 0..self.window {
            let place = self.place(slot, size);
            let offset = place.start;
            match self.access {
                Access::Put => port.put(self.own.outgoing(place), &self.region, offset)?,
                Access::Get => port.get(self.own.incoming(place), &self.region, offset)?,
                Access::Add => {
                    let old = port.add_one(&self.region)?;
                    self.check_old(old)?;
                }
            }
        }
        if self.access != Access::Add {
            port.flush(&self.region)?;
        }
        Ok(())
    }

    /// Each operation adds one: the old value is how many there were.
    fn check_old(&mut self, old: u64) -> Result<()> {
        let expected = self.done;
        self.done += 1;
        match self.seed {
            Some(_) if old != expected => Err(Error::Validation(Mismatch {
                rank: 0,
                from: 1,
                iteration: expected,
                size: 8,
                offset: 0,
                expected: expected as u8,
                found: old as u8,
            })),
            _ => Ok(()),
        }
    }

    fn fill(&mut self, seed: u64, size: usize) {
        for slot in 0..self.window {
            let (place, number) = (self.place(slot, size), self.done + slot as u64);
            let pattern = Pattern::of(seed, 0, 0, number);
            match self.access {
                Access::Put => self.own.fill(place, pattern),
                _ => self.shared.fill(place, pattern),
            }
        }
    }

    fn check(&mut self, seed: u64, size: usize, rank: u32) -> Result<()> {
        for slot in 0..self.window {
            let (place, number) = (self.place(slot, size), self.done + slot as u64);
            let memory = match self.access {
                Access::Put => &self.shared,
                _ => &self.own,
            };
            let found = memory.check(place, Pattern::of(seed, 0, 0, number));
            found.map_err(|found| {
                Error::Validation(Mismatch {
                    rank,
                    from: 1 - rank,
                    iteration: number,
                    size,
                    offset: found.offset,
                    expected: found.expected,
                    found: found.found,
                })
            })?;
        }
        self.done += self.window as u64;
        Ok(())
    }

    /// `count` iterations; the rank that is reached has none without validation.
    fn operations(
        &mut self,
        port: &P,
        size: usize,
        count: u64,
        mut times: Option<&mut Times>,
    ) -> Result<()> {
        let leads = port.rank().as_u32() == 0;
        for _ in 0..count {
            let began = Times::begin(times.as_deref().filter(|_| leads));
            match self.seed {
                Some(seed) => self.checked(port, size, seed)?,
                None if leads => self.operate(port, size)?,
                None => break,
            }
            if let (Some(times), Some(began)) = (&mut times, began) {
                times.record(began, self.window as u64);
            }
        }
        Ok(())
    }

    /// An iteration of which every byte is looked at.
    fn checked(&mut self, port: &P, size: usize, seed: u64) -> Result<()> {
        let (leads, peer) = (port.rank().as_u32() == 0, other(port.rank()));
        match (self.access, leads) {
            (Access::Put, true) => {
                self.fill(seed, size);
                self.operate(port, size)?;
                self.done += self.window as u64;
                port.send(self.own.outgoing(0..0), peer, tags::SENT)?;
                port.recv(self.own.incoming(0..0), peer, tags::SENT)
            }
            (Access::Put, false) => {
                port.recv(self.own.incoming(0..0), peer, tags::SENT)?;
                self.check(seed, size, 1)?;
                port.send(self.own.outgoing(0..0), peer, tags::SENT)
            }
            (Access::Get, true) => {
                port.recv(self.own.incoming(0..0), peer, tags::SENT)?;
                self.operate(port, size)?;
                self.check(seed, size, 0)?;
                port.send(self.own.outgoing(0..0), peer, tags::SENT)
            }
            (Access::Get, false) => {
                self.fill(seed, size);
                self.done += self.window as u64;
                port.send(self.own.outgoing(0..0), peer, tags::SENT)?;
                port.recv(self.own.incoming(0..0), peer, tags::SENT)
            }
            (Access::Add, true) => self.operate(port, size),
            (Access::Add, false) => Ok(()),
        }
    }
}

impl<P: RemotePort> Body<P> for OneSided<'_, P> {
    fn block(
        &mut self,
        port: &P,
        size: usize,
        count: u64,
        times: Option<&mut Times>,
    ) -> Result<Measured> {
        let (leads, peer) = (port.rank().as_u32() == 0, other(port.rank()));
        let mut elapsed = time_of(|| self.operations(port, size, count, times))?;
        match leads {
            true => port.send(self.own.outgoing(0..0), peer, tags::ACK)?,
            false => {
                port.recv(self.own.incoming(0..0), peer, tags::ACK)?;
                // It has only waited.
                elapsed = Duration::ZERO;
            }
        }
        Ok(Measured {
            elapsed,
            units: count * self.window as u64,
        })
    }
}
