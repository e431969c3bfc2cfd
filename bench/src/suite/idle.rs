//! `idle`: what waiting costs.

use super::Description;
use crate::body::Waits;
use crate::error::Result;
use crate::leader;
use crate::port::partitioned::PartitionedPort;
use crate::port::remote::RemotePort;
use crate::port::Port;
use crate::record::Quantity;
use crate::run::{Run, Test};

pub(crate) struct Idle;

pub(crate) const TESTS: &[Description] = &[Description {
    name: "idle",
    about: "Rank 0 waits in a receive for --seconds: the part of a core that it uses",
    quantity: Quantity::CPU,
    options: &["ranks", "seconds", "memory", "profile", "raw", "layers"],
    sizes: "8",
    ..Description::PLAIN
}];

impl Test for Idle {
    fn measure<P: PartitionedPort + Sync>(run: &mut Run<'_, P>) -> Result<()> {
        waits(run)
    }

    fn measure_bare<P: RemotePort>(run: &mut Run<'_, P>) -> Result<()> {
        waits(run)
    }
}

fn waits<P: Port>(run: &mut Run<'_, P>) -> Result<()> {
    let (port, plan) = (run.port, run.plan());
    let waits = Waits {
        port,
        traffic: plan.traffic(port, 0, plan.window)?,
        pause: plan.idle,
        waited: None,
    };
    leader::run(port, waits, |leader| {
        for size in run.sizes()? {
            leader.watch()?;
            leader.block(&size)?;
            let load = leader.report()?;
            let Some(idle) = leader.script.waited else {
                continue;
            };
            let mut row = run.row(size, &load);
            let elapsed = idle.elapsed.as_secs_f64();
            let cpu = 100.0 * idle.busy.as_secs_f64() / elapsed.max(1e-9);
            row.figures.set(Quantity::CPU.key(), cpu);
            row.figures.set("elapsed_ms", elapsed * 1e3);
            (row.iterations, row.repetitions) = (1, 1);
            run.emit(row)?;
        }
        Ok(())
    })
}
