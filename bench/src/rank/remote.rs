//! The tests of one-sided operations.

use super::{Job, Sink, add_load, done, effort, figures};
use crate::args::TestName;
use crate::body::{Body, OneSided};
use crate::buffer::Memory;
use crate::environment::Used;
use crate::error::{Error, Result};
use crate::link::Message;
use crate::measure::{Runner, Sample, Stage, measure};
use crate::port::null::NullPort;
use crate::port::remote::{Access, RemotePort};
use crate::record::{Figures, Row};

/// Iterations over nothing.
const IDLE: u64 = 10_000;

impl Job<'_> {
    /// Measures all sizes: one operation at a time, and a window of them.
    pub(super) fn measure_remote<P: RemotePort>(
        &self,
        port: &P,
        used: &Used,
        sink: Sink<'_>,
    ) -> Result<()> {
        let access = self.plan.test.access();
        let access = access.ok_or_else(|| Error::Usage("a plan without accesses".to_owned()))?;
        let windows = match access {
            Access::Add => vec![1],
            _ => vec![1, self.plan.window as usize],
        };
        let body = |window: usize| -> Result<Box<dyn Stage + '_>> {
            let seed = self.plan.validate.then_some(self.plan.seed);
            let memory = |len| self.target(port, access, len);
            let body = OneSided::open(port, (access, window), self.plan.largest()?, seed, memory)?;
            Ok(Box::new(Runner::new(port, body)))
        };
        let stages = windows.into_iter().map(body).collect::<Result<Vec<_>>>()?;
        let leads = self.greet(port, used, sink)?;
        let mut emit = |samples: Vec<Sample>| {
            let mut row = self.row(self.plan.layers[0], samples[0].size, port.size(), used);
            self.fill(&mut row, &samples);
            let harness = harness(&NullPort::of(port), access, samples[0].size)?;
            row.figures.set("harness_us", harness / 1e3);
            sink(Message::Row(Box::new(row)))
        };
        let effort = effort(self.plan);
        measure(port, stages, &self.sizes()?, &effort, &mut emit)?;
        done(leads, sink)
    }

    /// Memory for the operations: unless it was said where from, atomic ones have it from the arena where there is one, since
    /// over shared memory no other memory has them.
    fn target<P: RemotePort>(&self, port: &P, access: Access, len: usize) -> Result<Memory> {
        if access == Access::Add
            && self.plan.memory.is_none()
            && len > 0
            && let Some(memory) = port.allocate(len)?
        {
            return Ok(Memory::of(memory));
        }
        self.memory(port, len)
    }

    /// The figures of one operation at a time, and then what a window adds.
    fn fill(&self, row: &mut Row, samples: &[Sample]) {
        let [one, ..] = samples else {
            return;
        };
        (row.iterations, row.repetitions) = (one.iterations, one.repetitions);
        row.figures = figures(TestName::Latency, one);
        if let [_, many] = samples {
            row.window = Some(self.plan.window);
            let more: Figures = figures(TestName::Bandwidth, many);
            for (name, value) in more.iter() {
                if row.figures.named(name).is_none() {
                    row.figures.set(name, value);
                }
            }
        }
        add_load(row, &one.load);
    }
}

/// What an operation takes where nothing is done, in nanoseconds.
fn harness(null: &NullPort, access: Access, size: usize) -> Result<f64> {
    let mut body = OneSided::open(null, (access, 1), size, None, Memory::new)?;
    let mut one = || body.block(null, size, IDLE, None);
    one()?;
    Ok(one()?.elapsed.as_nanos() as f64 / IDLE as f64)
}
