//! An operation that all ranks call, again and again.

use std::time::Instant;

use super::rotation::Rotation;
use super::{Body, Measured, Times};
use crate::buffer::{Memory, Pattern};
use crate::error::{Error, Mismatch, Result};
use crate::port::collective::{Collectives, Operation, Summand};
use crate::port::{Port, barrier};

/// One unit is one operation, whose time is that of the slowest rank over a block.
pub(crate) struct Collective<'p> {
    collectives: Box<dyn Collectives + 'p>,
    operation: Operation,
    out: Memory,
    into: Memory,
    /// Which pieces of both the next operation uses.
    out_at: Rotation,
    into_at: Rotation,
    /// Filled and checked when there is one.
    seed: Option<u64>,
    done: u64,
}

impl<'p> Collective<'p> {
    /// For sizes up to `largest`, with memory that `memory` makes. With `fresh`, each buffer is a piece of that many bytes, and
    /// another one each time.
    pub(crate) fn new<P: Port>(
        port: &P,
        collectives: Box<dyn Collectives + 'p>,
        operation: Operation,
        largest: usize,
        fresh: Option<usize>,
        seed: Option<u64>,
        memory: impl Fn(usize) -> Result<Memory>,
    ) -> Result<Self> {
        let (out, into) = operation.lengths(largest, port.size() as usize);
        let length = |len: usize| match len {
            0 => 0,
            len => len.max(fresh.unwrap_or(0)),
        };
        let (out, into) = (length(out), length(into));
        // Without `fresh` there is one piece, whatever the size.
        let rotation = |len| Rotation::new(fresh.map_or(0, |_| len));
        Ok(Self {
            collectives,
            operation,
            out: memory(out)?,
            into: memory(into)?,
            out_at: rotation(out),
            into_at: rotation(into),
            seed,
            done: 0,
        })
    }

    fn once<P: Port>(&mut self, port: &P, size: usize) -> Result<()> {
        let (out, into) = self.operation.lengths(size, port.size() as usize);
        if let Some(seed) = self.seed {
            self.fill(port, seed, size);
        }
        let (from, to) = (self.out_at.start(), self.into_at.start());
        let giving = self.out.outgoing(from..from + out);
        let getting = self.into.incoming(to..to + into);
        self.collectives.call(self.operation, giving, getting)?;
        if let Some(seed) = self.seed {
            self.check(port, seed, size)?;
        }
        self.done += 1;
        self.out_at.turn();
        self.into_at.turn();
        Ok(())
    }

    /// What a rank adds to the number at `place`: small, so that sums are exact in every summand.
    #[inline]
    const fn number(&self, rank: usize, place: usize) -> u8 {
        ((rank + place + self.done as usize) % 3) as u8
    }

    /// The bytes of `len` bytes of summands, each of which is `number` of its place. What they are follows from the `size` of
    /// the test.
    #[inline]
    fn numbers(size: usize, len: usize, number: impl Fn(usize) -> u8) -> Vec<u8> {
        match Summand::of(size) {
            Summand::Double => (0..len / 8)
                .flat_map(|place| f64::from(number(place)).to_ne_bytes())
                .collect(),
            Summand::Byte => (0..len).map(number).collect(),
        }
    }

    fn fill<P: Port>(&mut self, port: &P, seed: u64, size: usize) {
        let rank = port.rank().as_u32();
        let (out, into) = self.operation.lengths(size, port.size() as usize);
        // Nothing of the last time is to be taken for a result.
        let (from, to) = (self.out_at.start(), self.into_at.start());
        self.into
            .fill(to..to + into, Pattern::of(!seed, rank, 1, self.done));
        if self.operation.reduces() {
            let numbers = Self::numbers(size, out, |place| self.number(rank as usize, place));
            self.out.write_at(from, &numbers);
        } else if self.operation == Operation::Bcast && rank == 0 {
            self.into
                .fill(to..to + into, Pattern::of(seed, 0, 0, self.done));
        } else {
            // One pattern for each rank that gets a part.
            for part in 0..out.checked_div(size).unwrap_or(0) {
                let pattern = Pattern::of(seed, rank, part as u32, self.done);
                let start = from + part * size;
                self.out.fill(start..start + size, pattern);
            }
        }
    }

    fn check<P: Port>(&self, port: &P, seed: u64, size: usize) -> Result<()> {
        let (rank, ranks) = (port.rank().as_u32(), port.size());
        let leads = rank == 0;
        match self.operation {
            Operation::Barrier => Ok(()),
            Operation::Reduce if !leads => Ok(()),
            Operation::Reduce | Operation::Allreduce | Operation::ReduceScatter => {
                let blocks_before = match self.operation {
                    Operation::ReduceScatter => rank as usize,
                    _ => 0,
                };
                let whole = Self::numbers(size, (blocks_before + 1) * size, |place| {
                    (0..ranks as usize)
                        .map(|from| self.number(from, place))
                        .sum()
                });
                self.check_numbers(rank, &whole[blocks_before * size..])
            }
            Operation::Gather if !leads => Ok(()),
            Operation::Bcast | Operation::Scatter => self.check_part(rank, 0, seed, size, {
                match self.operation {
                    Operation::Scatter => rank,
                    _ => 0,
                }
            }),
            Operation::Allgather | Operation::Gather => {
                (0..ranks).try_for_each(|from| self.check_part(rank, from, seed, size, 0))
            }
            Operation::Alltoall => {
                (0..ranks).try_for_each(|from| self.check_part(rank, from, seed, size, rank))
            }
        }
    }

    /// Checks the part that came from `from`, which gave it as number `number`.
    #[inline]
    fn check_part(&self, rank: u32, from: u32, seed: u64, size: usize, number: u32) -> Result<()> {
        let place = match self.operation {
            Operation::Bcast | Operation::Scatter => 0,
            _ => from as usize * size,
        };
        let pattern = Pattern::of(seed, from, number, self.done);
        let start = self.into_at.start() + place;
        let checked = self.into.check(start..start + size, pattern);
        checked.map_err(|found| {
            self.mismatch(
                rank,
                from,
                size,
                found.offset,
                (found.expected, found.found),
            )
        })
    }

    #[inline]
    fn check_numbers(&self, rank: u32, expected: &[u8]) -> Result<()> {
        let start = self.into_at.start();
        let found = self.into.bytes(start..start + expected.len());
        match expected.iter().zip(&found).position(|(a, b)| a != b) {
            None => Ok(()),
            Some(at) => {
                let bytes = (expected[at], found[at]);
                Err(self.mismatch(rank, rank, expected.len(), at, bytes))
            }
        }
    }

    #[inline]
    const fn mismatch(
        &self,
        rank: u32,
        from: u32,
        size: usize,
        offset: usize,
        (expected, found): (u8, u8),
    ) -> Error {
        Error::Validation(Mismatch {
            rank,
            from,
            iteration: self.done,
            size,
            offset,
            expected,
            found,
        })
    }
}

impl<P: Port> Body<P> for Collective<'_> {
    #[inline]
    fn begin(&mut self, port: &P, size: usize) -> Result<()> {
        let (out, into) = self.operation.lengths(size, port.size() as usize);
        self.out_at.cut(out);
        self.into_at.cut(into);
        barrier(port)
    }

    #[inline]
    fn block(
        &mut self,
        port: &P,
        size: usize,
        count: u64,
        mut times: Option<&mut Times>,
    ) -> Result<Measured> {
        let start = Instant::now();
        for _ in 0..count {
            let began = Times::begin(times.as_deref());
            self.once(port, size)?;
            if let (Some(times), Some(began)) = (&mut times, began) {
                times.record(began, 1);
            }
        }
        Ok(Measured {
            elapsed: start.elapsed(),
            units: count,
        })
    }
}
