//! The test of partitioned operations.

use super::{Job, Sink, add_load, done, effort};
use crate::args::partitioned::PartitionedPlan;
use crate::body::partitioned::{Rounds, Setting};
use crate::environment::Used;
use crate::error::{Error, Result};
use crate::link::Message;
use crate::load::Watch;
use crate::measure::partitioned::{Found, Leader, follow};
use crate::port::Control;
use crate::port::partitioned::{Operation, PartitionedPort};
use crate::record::{Figures, Quantity, Row};
use crate::stats::Summary;

impl Job<'_> {
    /// Measures all sizes in all numbers of partitions; rank 0 sends.
    pub(super) fn measure_partitioned<P: PartitionedPort>(
        &self,
        port: &P,
        used: Used,
        sink: Sink<'_>,
    ) -> Result<()> {
        let leads = self.greet(port, &used, sink)?;
        let plan = self.plan.partitioned.as_ref();
        let plan = plan.ok_or_else(|| Error::Usage("a plan without partitions".to_owned()))?;
        let operations = port.operations(plan);
        let mut control = Control::new()?;
        let mut tag = 0;
        for size in self.sizes()? {
            for &partitions in &plan.partitions {
                if size < partitions as usize || !size.is_multiple_of(partitions as usize) {
                    continue;
                }
                let setting = Setting {
                    plan,
                    threads: self.plan.threads,
                    seed: self.plan.seed,
                    validate: self.plan.validate,
                    tag,
                };
                tag = (tag + operations.len() as u32) % 4096;
                let rounds = Rounds::open(port, setting, size, partitions, &operations)?;
                let watch = Watch::begin();
                if !leads {
                    follow(port, &mut control, rounds)?;
                    watch.report(|words| control.gather(port, words))?;
                    continue;
                }
                let mut leader = Leader {
                    port,
                    control: &mut control,
                    effort: &effort(self.plan),
                };
                let found = leader.measure(rounds, operations.len(), size)?;
                let load = watch.report(|words| control.gather(port, words))?;
                for (operation, found) in operations.iter().zip(&found) {
                    let row = self.row(self.plan.layers[0], size, port.size(), &used);
                    let mut row = self.partitioned_row(row, plan, (partitions, operation), found);
                    add_load(&mut row, &load);
                    sink(Message::Row(Box::new(row)))?;
                }
            }
        }
        done(leads, sink)
    }

    fn partitioned_row(
        &self,
        mut row: Row,
        plan: &PartitionedPlan,
        case: (u32, &Operation),
        found: &Found,
    ) -> Row {
        let computes = !plan.time.is_zero();
        row.threads = Some(self.plan.threads);
        let (partitions, operation) = case;
        (row.partitions, row.policy) = (Some(partitions), Some(operation.policy.clone()));
        row.buffers = (operation.buffers > 1).then_some(operation.buffers);
        let (how, time) = (plan.compute.as_str(), plan.time.as_micros());
        row.compute = computes.then(|| format!("{how}:{time}"));
        let (noise, pct) = (plan.noise.as_str(), plan.noise_pct);
        row.noise = computes.then(|| format!("{noise}:{pct}"));
        row.cold_cache = plan.cache == crate::args::partitioned::Cache::Cold;
        row.way.clone_from(&found.way);
        row.iterations = found.rounds;
        row.repetitions = found.samples["t_part_ns"].len() as u32;
        row.samples = Some(found.samples.clone());
        row.figures = figures(found);
        row
    }
}

fn figures(found: &Found) -> Figures {
    let mut figures = Figures::default();
    figures.set_summary(Quantity::PARTITIONED_OVERHEAD, found.overhead);
    // Bytes per nanosecond are 10^3 MB/s.
    let bandwidth = Summary {
        median: found.bandwidth.median * 1e3,
        min: found.bandwidth.min * 1e3,
        max: found.bandwidth.max * 1e3,
    };
    figures.set_summary(Quantity::PERCEIVED_BANDWIDTH, bandwidth);
    figures.set_summary(Quantity::APPLICATION_AVAILABILITY, found.availability);
    figures.set_summary(Quantity::EARLY_BIRD, found.early);
    for (name, sample, unit) in [
        ("part_us", "t_part_ns", 1e3),
        ("message_us", "t_pt2pt_ns", 1e3),
        ("last_us", "t_last_ns", 1e3),
        ("after_join_us", "t_after_join_ns", 1e3),
        ("early_bird_clock", "early_bird_clock", 1.0),
    ] {
        if let Some(times) = found.samples.get(sample).and_then(|list| Summary::of(list)) {
            figures.set(name, times.median / unit);
        }
    }
    figures
}
