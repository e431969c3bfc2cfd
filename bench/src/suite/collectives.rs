//! The collectives: operations that all ranks call, one after the other.

use serde::{Deserialize, Serialize};
use tagwire_base::config::parse::format_bytes;

use super::{Description, Ranks};
use crate::args::device::DevicePlan;
use crate::args::{BenchArgs, check_ranks};
use crate::body::rotation::Rotation;
use crate::body::{Body, Measured, Repeat};
use crate::buffer::{Difference, Memory, Pattern};
use crate::device::measure as device;
use crate::error::{Error, Result};
use crate::measure::{Effort, Runner, Stage};
use crate::plan::Plan;
use crate::port::collective::{Collectives, Form, Operation, Summand};
use crate::port::partitioned::PartitionedPort;
use crate::port::{Endpoint, Port, barrier};
use crate::record::Row;
use crate::run::{Run, Test, staged};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) enum AllRanks {
    /// Bytes of the ranks' memory.
    Memory {
        /// Operations are started and waited for.
        nonblocking: bool,
        /// How many bytes of buffers a rank goes through before one comes again.
        fresh: Option<u64>,
    },
    /// Vectors that come from a device.
    Device(DevicePlan),
}

impl AllRanks {
    const fn device(&self) -> Option<&DevicePlan> {
        match self {
            Self::Device(device) => Some(device),
            Self::Memory { .. } => None,
        }
    }
}

/// One that has data.
const fn with_data(name: &'static str, about: &'static str, operation: Operation) -> Description {
    Description {
        name,
        about,
        options: &[
            "ranks",
            "nonblocking",
            "memory",
            "profile",
            "percentiles",
            "cache",
            "cache-bytes",
        ],
        ranks: Ranks::SEVERAL,
        sizes: "8:1M",
        collective: Some(operation),
        ..Description::PLAIN
    }
}

pub(crate) const TESTS: &[Description] = &[
    Description {
        options: &["ranks", "nonblocking", "memory", "profile", "percentiles"],
        sizes: "0",
        ..with_data(
            "barrier",
            "No rank leaves before all have come",
            Operation::Barrier,
        )
    },
    with_data("bcast", "Rank 0's bytes to all", Operation::Bcast),
    with_data(
        "reduce",
        "The sum of all ranks' doubles at rank 0",
        Operation::Reduce,
    ),
    Description {
        // Those of vectors that come from a device, too.
        options: &[
            "ranks",
            "nonblocking",
            "memory",
            "profile",
            "percentiles",
            "cache",
            "cache-bytes",
            "algorithm",
            "group-size",
            "producer",
            "engine-rate",
            "engine-latency",
            "engine-sharing",
            "flops-per-element",
            "callback",
            "copy-stream",
        ],
        rows: device::rows,
        ..with_data(
            "allreduce",
            "The sum of all ranks' doubles at all",
            Operation::Allreduce,
        )
    },
    with_data(
        "reduce-scatter",
        "A block of the sum of all ranks' doubles at each",
        Operation::ReduceScatter,
    ),
    with_data(
        "allgather",
        "Each rank's bytes to all",
        Operation::Allgather,
    ),
    with_data(
        "alltoall",
        "A block of each rank to each",
        Operation::Alltoall,
    ),
    with_data("gather", "Each rank's bytes to rank 0", Operation::Gather),
    with_data("scatter", "A block of rank 0 to each", Operation::Scatter),
];

impl Test for AllRanks {
    fn of(args: &BenchArgs) -> Self {
        match args.device_plan() {
            Some(device) => Self::Device(device),
            None => Self::Memory {
                nonblocking: args.nonblocking,
                fresh: args.fresh_bytes(),
            },
        }
    }

    fn any_thread(&self) -> bool {
        self.device().is_some_and(DevicePlan::any_thread)
    }

    fn check_ranks(&self, plan: &Plan, ranks: u32) -> Result<()> {
        if let Some(device) = self.device() {
            device.group_among(ranks)?;
        }
        check_ranks(plan.test, false, ranks)
    }

    fn label(&self, _: &Plan, row: &mut Row) {
        if let Self::Memory { nonblocking, fresh } = *self {
            row.series.nonblocking = nonblocking;
            row.series.cache = fresh.map(|bytes| format!("fresh:{}", format_bytes(bytes)));
        }
    }

    fn stage<'p, P: Port>(&self, plan: &Plan, port: &'p P) -> Result<Box<dyn Stage + 'p>> {
        Ok(Box::new(Runner::new(
            port,
            Collective::new(self, plan, port)?,
        )))
    }

    fn effort(&self, plan: &Plan) -> Effort {
        Effort::of(plan, (1_000, 100), (100, 10))
    }

    fn measure_port<P: PartitionedPort>(&self, port: &P, run: &mut Run<'_>) -> Result<()> {
        let plan = run.plan();
        if let Self::Device(device) = self {
            return device::measure(run, device);
        }
        let stage = self.stage(plan, port)?;
        staged::measure(self, run, vec![(plan.layers[0], stage)])
    }
}

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
    rank: u32,
    ranks: u32,
}

impl<'p> Collective<'p> {
    /// With `--cache fresh`, each buffer is a piece of so many bytes, and another one each time.
    fn new(test: &AllRanks, plan: &Plan, port: &'p dyn Endpoint) -> Result<Self> {
        let missing = || Error::Usage(format!("{} is no collective", plan.test));
        let operation = plan.test.collective.ok_or_else(missing)?;
        let (form, fresh) = match *test {
            AllRanks::Memory {
                nonblocking: true,
                fresh,
            } => (Form::Nonblocking, fresh),
            AllRanks::Memory { fresh, .. } => (Form::Blocking, fresh),
            AllRanks::Device(_) => (Form::Blocking, None),
        };
        let fresh = fresh.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX));
        let (out, into) = operation.lengths(plan.largest()?, port.size() as usize);
        let length = |len: usize| match len {
            0 => 0,
            len => len.max(fresh.unwrap_or(0)),
        };
        let (out, into) = (length(out), length(into));
        // Without `fresh` there is one piece, whatever the size.
        let rotation = |len| Rotation::new(fresh.map_or(0, |_| len));
        Ok(Self {
            collectives: port.collectives(form)?,
            operation,
            out: plan.buffers(port, out)?,
            into: plan.buffers(port, into)?,
            out_at: rotation(out),
            into_at: rotation(into),
            seed: plan.checked(),
            done: 0,
            rank: port.rank().as_u32(),
            ranks: port.size(),
        })
    }

    // A call of its own would be 17 ns of each broadcast of 8 bytes.
    #[inline(always)]
    fn once(&mut self, size: usize) -> Result<()> {
        let (out, into) = self.operation.lengths(size, self.ranks as usize);
        if let Some(seed) = self.seed {
            self.fill(seed, size);
        }
        let (from, to) = (self.out_at.start(), self.into_at.start());
        let giving = self.out.outgoing(from..from + out);
        let getting = self.into.incoming(to..to + into);
        self.collectives.call(self.operation, giving, getting)?;
        if let Some(seed) = self.seed {
            self.check(seed, size)?;
        }
        self.done += 1;
        self.out_at.turn();
        self.into_at.turn();
        Ok(())
    }

    /// What a rank adds to the number at `place`: small, so that sums are exact in every summand.
    const fn number(&self, rank: usize, place: usize) -> u8 {
        ((rank + place + self.done as usize) % 3) as u8
    }

    /// The bytes of `len` bytes of summands, each of which is `number` of its place. What they are follows from the `size` of
    /// the test.
    fn numbers(size: usize, len: usize, number: impl Fn(usize) -> u8) -> Vec<u8> {
        match Summand::of(size) {
            Summand::Double => (0..len / 8)
                .flat_map(|place| f64::from(number(place)).to_ne_bytes())
                .collect(),
            Summand::Byte => (0..len).map(number).collect(),
        }
    }

    fn fill(&mut self, seed: u64, size: usize) {
        let rank = self.rank;
        let (out, into) = self.operation.lengths(size, self.ranks as usize);
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

    fn check(&self, seed: u64, size: usize) -> Result<()> {
        let (rank, ranks) = (self.rank, self.ranks);
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
    fn check_part(&self, rank: u32, from: u32, seed: u64, size: usize, number: u32) -> Result<()> {
        let place = match self.operation {
            Operation::Bcast | Operation::Scatter => 0,
            _ => from as usize * size,
        };
        let pattern = Pattern::of(seed, from, number, self.done);
        let start = self.into_at.start() + place;
        let checked = self.into.check(start..start + size, pattern);
        checked.map_err(|found| found.of_message(rank, from, self.done, size))
    }

    fn check_numbers(&self, rank: u32, expected: &[u8]) -> Result<()> {
        let start = self.into_at.start();
        let found = self.into.bytes(start..start + expected.len());
        let compared = Difference::between(expected, &found);
        compared.map_err(|found| found.of_message(rank, rank, self.done, expected.len()))
    }
}

impl<P: Port> Body<P> for Collective<'_> {
    #[inline]
    fn begin(&mut self, port: &P, size: usize) -> Result<()> {
        let (out, into) = self.operation.lengths(size, self.ranks as usize);
        self.out_at.cut(out);
        self.into_at.cut(into);
        barrier(port)
    }

    #[inline]
    fn block(&mut self, _: &P, block: Repeat<'_>) -> Result<Measured> {
        let size = block.size;
        block.run(1, || self.once(size))
    }
}
