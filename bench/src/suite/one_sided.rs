//! `put`, `get` and `atomic`: operations on the memory of another rank.

use std::ops::Range;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Description;
use crate::args::{BenchArgs, usage};
use crate::body::{Body, Measured, Repeat, other};
use crate::buffer::{Difference, Memory, Pattern};
use crate::error::{Error, Result};
use crate::measure::{Effort, Runner, Sample, Stage, measure};
use crate::plan::Plan;
use crate::port::null::NullPort;
use crate::port::remote::{Access, RemotePort};
use crate::port::tags;
use crate::record::Row;
use crate::run::{Run, Test};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Accesses;

/// Iterations over nothing.
const IDLE: u64 = 10_000;

const PUT: Description = Description {
    name: "put",
    about: "Bytes written into the memory of another rank, until they are visible there: one at a time, and windows of them",
    options: &["ranks", "window", "memory", "percentiles"],
    check,
    access: Some(Access::Put),
    ..Description::PLAIN
};

pub(crate) const TESTS: &[Description] = &[
    PUT,
    Description {
        name: "get",
        about: "Bytes read from the memory of another rank, until they are here: one at a time, and windows of them",
        access: Some(Access::Get),
        ..PUT
    },
    Description {
        name: "atomic",
        about: "A fetch-and-add to a word of another rank, until the old value is here",
        options: &["ranks", "memory", "percentiles"],
        sizes: "8",
        access: Some(Access::Add),
        ..PUT
    },
];

impl Test for Accesses {
    fn of(_: &BenchArgs) -> Self {
        Self
    }

    fn effort(&self, plan: &Plan) -> Effort {
        Effort::of(plan, (1_000, 100), (100, 10))
    }

    /// One operation at a time, and a window of them.
    fn measure_bare<P: RemotePort>(&self, port: &P, run: &mut Run<'_>) -> Result<()> {
        let plan = run.plan();
        let access = plan.test.access;
        let access = access.ok_or_else(|| Error::Usage("a plan without accesses".to_owned()))?;
        let windows = match access {
            Access::Add => vec![1],
            _ => vec![1, plan.window as usize],
        };
        let body = |window: usize| -> Result<Box<dyn Stage + '_>> {
            let memory = |len| target(plan, port, len);
            let largest = plan.largest()?;
            let body = OneSided::open(port, access, window, largest, plan.checked(), memory)?;
            Ok(Box::new(Runner::new(port, body)))
        };
        let stages = windows.into_iter().map(body).collect::<Result<Vec<_>>>()?;
        let (sizes, effort) = (run.sizes()?, self.effort(plan));
        let mut emit = |samples: Vec<Sample>| {
            let mut row = run.row_at(plan.layers[0], samples[0].size);
            fill(&mut row, plan, &samples);
            let harness = harness(&NullPort::of(port), access, samples[0].size)?;
            row.figures.set("harness_us", harness / 1e3);
            run.emit(row)
        };
        measure(port, stages, &sizes, &effort, &mut emit)
    }
}

/// Refuses what makes no sense together.
fn check(args: &BenchArgs) -> Result<()> {
    if args.raw || args.layers {
        return usage(format!(
            "{} is of the bare transport already, without --raw and --layers",
            args.test
        ));
    }
    if let Some(name) = args.given.first_of(&["pml", "engine"]) {
        return usage(format!(
            "--{name} has no meaning for {}: nothing is matched",
            args.test
        ));
    }
    let sizes = args.size_list();
    match args.test.access {
        Some(Access::Add) if sizes.as_slice().iter().any(|size| *size != 8) => {
            usage("atomic is of words of 8 bytes: without -m, or -m 8")
        }
        _ => Ok(()),
    }
}

/// Memory for the operations: unless it was said where from, atomic ones have it from the arena where there is one, since over
/// shared memory no other memory has them.
fn target<P: RemotePort>(plan: &Plan, port: &P, len: usize) -> Result<Memory> {
    if plan.test.access == Some(Access::Add)
        && plan.memory.is_none()
        && len > 0
        && let Some(memory) = port.allocate(len)?
    {
        return Ok(Memory::of(memory));
    }
    plan.buffers(port, len)
}

/// The figures of one operation at a time, and then what a window adds.
fn fill(row: &mut Row, plan: &Plan, samples: &[Sample]) {
    let [one, ..] = samples else {
        return;
    };
    row.sampling.set(one.iterations, one.repetitions);
    row.figures = one.latency();
    if let [_, many] = samples {
        row.series.window = Some(plan.window);
        for (name, value) in many.bandwidth().iter() {
            if row.figures.named(name).is_none() {
                row.figures.set(name, value);
            }
        }
    }
    one.load.add_to_row(row);
}

/// What an operation takes where nothing is done, in nanoseconds.
fn harness(null: &NullPort, access: Access, size: usize) -> Result<f64> {
    let mut body = OneSided::open(null, access, 1, size, None, Memory::new)?;
    let mut one = || body.block(null, Repeat::untimed(size, IDLE));
    one()?;
    Ok(one()?.elapsed.as_nanos() as f64 / IDLE as f64)
}

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
        access: Access,
        window: usize,
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
            Some(_) if old != expected => {
                let compared = Difference::between(&expected.to_le_bytes(), &old.to_le_bytes());
                compared.map_err(|found| found.of_message(0, 1, expected, 8))
            }
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
            found.map_err(|found| found.of_message(rank, 1 - rank, number, size))?;
        }
        self.done += self.window as u64;
        Ok(())
    }

    /// The iterations of a block; the rank that is reached has none without validation.
    fn operations(&mut self, port: &P, block: Repeat<'_>) -> Result<Measured> {
        let (leads, size) = (port.rank().as_u32() == 0, block.size);
        let (block, window) = (block.timed_if(leads), self.window as u64);
        match (self.seed, leads) {
            (Some(seed), _) => block.run(window, || self.checked(port, size, seed)),
            (None, true) => block.run(window, || self.operate(port, size)),
            (None, false) => Ok(Measured {
                elapsed: Duration::ZERO,
                units: block.count * window,
            }),
        }
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
    fn block(&mut self, port: &P, block: Repeat<'_>) -> Result<Measured> {
        let (leads, peer) = (port.rank().as_u32() == 0, other(port.rank()));
        let mut measured = self.operations(port, block)?;
        match leads {
            true => port.send(self.own.outgoing(0..0), peer, tags::ACK)?,
            false => {
                port.recv(self.own.incoming(0..0), peer, tags::ACK)?;
                // It has only waited.
                measured.elapsed = Duration::ZERO;
            }
        }
        Ok(measured)
    }
}
