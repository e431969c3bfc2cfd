//! `put`, `get` and `atomic`: operations on the memory of another rank.

use super::Description;
use crate::args::{BenchArgs, usage};
use crate::body::{Body, OneSided};
use crate::buffer::Memory;
use crate::error::{Error, Result};
use crate::measure::{Effort, Runner, Sample, Stage, measure};
use crate::plan::Plan;
use crate::port::null::NullPort;
use crate::port::remote::{Access, RemotePort};
use crate::record::Row;
use crate::run::{Run, Test};

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
    fn effort(plan: &Plan) -> Effort {
        Effort::of(plan, (1_000, 100), (100, 10))
    }

    /// One operation at a time, and a window of them.
    fn measure_bare<P: RemotePort>(run: &mut Run<'_, P>) -> Result<()> {
        let (port, plan) = (run.port, run.plan());
        let access = plan.test.access;
        let access = access.ok_or_else(|| Error::Usage("a plan without accesses".to_owned()))?;
        let windows = match access {
            Access::Add => vec![1],
            _ => vec![1, plan.window as usize],
        };
        let body = |window: usize| -> Result<Box<dyn Stage + '_>> {
            let memory = |len| target(plan, port, len);
            let largest = plan.largest()?;
            let body = OneSided::open(port, (access, window), largest, plan.checked(), memory)?;
            Ok(Box::new(Runner::new(port, body)))
        };
        let stages = windows.into_iter().map(body).collect::<Result<Vec<_>>>()?;
        let (sizes, effort) = (run.sizes()?, Self::effort(plan));
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
    let matching = [
        ("pml", args.pml.is_some()),
        ("engine", args.engine.is_some()),
    ];
    if let Some((name, _)) = matching.into_iter().find(|(_, given)| *given) {
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
    (row.iterations, row.repetitions) = (one.iterations, one.repetitions);
    row.figures = one.latency();
    if let [_, many] = samples {
        row.window = Some(plan.window);
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
    let mut body = OneSided::open(null, (access, 1), size, None, Memory::new)?;
    let mut one = || body.block(null, size, IDLE, None);
    one()?;
    Ok(one()?.elapsed.as_nanos() as f64 / IDLE as f64)
}
