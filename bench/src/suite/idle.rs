//! `idle`: what waiting costs.

use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use super::Description;
use crate::args::BenchArgs;
use crate::body::{Traffic, other};
use crate::error::Result;
use crate::leader::{self, Script};
use crate::port::partitioned::PartitionedPort;
use crate::port::remote::RemotePort;
use crate::port::{Endpoint, barrier, tags};
use crate::record::Quantity;
use crate::run::{Run, Test};
use crate::time::processor_time;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Idle {
    pause: Duration,
}

pub(crate) const TESTS: &[Description] = &[Description {
    name: "idle",
    about: "Rank 0 waits in a receive for --seconds: the part of a core that it uses",
    quantity: Quantity::CPU,
    options: &["ranks", "seconds", "memory", "profile", "raw", "layers"],
    sizes: "8",
    ..Description::PLAIN
}];

impl Test for Idle {
    fn of(args: &BenchArgs) -> Self {
        Self {
            pause: args.seconds.unwrap_or(Duration::from_secs(1)),
        }
    }

    fn measure_port<P: PartitionedPort>(&self, _: &P, run: &mut Run<'_>) -> Result<()> {
        waits(self.pause, run)
    }

    fn measure_bare<P: RemotePort>(&self, _: &P, run: &mut Run<'_>) -> Result<()> {
        waits(self.pause, run)
    }
}

fn waits(pause: Duration, run: &mut Run<'_>) -> Result<()> {
    let (port, plan) = (run.port, run.plan());
    let mut waits = Waits {
        port,
        traffic: plan.traffic(port, 0, plan.window)?,
        pause,
        waited: None,
    };
    leader::run(port, &mut waits, |leader| {
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
            row.sampling.set(1, 1);
            run.emit(row)?;
        }
        Ok(())
    })
}

/// What a wait took.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waited {
    /// By the wall clock.
    pub elapsed: Duration,
    /// Processor time of the whole process, all threads.
    pub busy: Duration,
}

/// Rank 1 sleeps, and then sends; rank 0 waits for it.
pub(crate) struct Waits<'p> {
    pub port: &'p dyn Endpoint,
    pub traffic: Traffic,
    pub pause: Duration,
    /// What the last wait took, on rank 0.
    pub waited: Option<Waited>,
}

impl Script for Waits<'_> {
    type Case = ();
    /// One message of this size.
    type Block = usize;
    type Told = ();

    fn block(&mut self, &size: &usize) -> Result<()> {
        let (port, traffic) = (self.port, &mut self.traffic);
        let peer = other(port.rank());
        barrier(port)?;
        if port.rank().as_u32() != 0 {
            std::thread::sleep(self.pause);
            return traffic.send(port, size, peer, tags::DATA);
        }
        let (start, before) = (Instant::now(), processor_time());
        traffic.recv(port, size, peer, tags::DATA)?;
        let (elapsed, after) = (start.elapsed(), processor_time());
        self.waited = Some(Waited {
            elapsed,
            busy: after.saturating_sub(before),
        });
        Ok(())
    }
}
