//! The test of partitioned operations.

use tagwire_base::config::parse::format_bytes;

use super::{Job, Sink, add_load, done, effort};
use crate::args::partitioned::{Cache, PartitionedPlan, SWEEP};
use crate::body::partitioned::{Case, Setting};
use crate::environment::Used;
use crate::error::{Error, Result};
use crate::leader;
use crate::link::Message;
use crate::measure::partitioned::{Blocks, Found, Lead, Paper};
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
        let setting = Setting {
            has_paper: plan.definition.has_paper(),
            threads: self.plan.threads,
            seed: self.plan.seed,
            validate: self.plan.validate,
            tag: 0,
        };
        let blocks = Blocks::new(port, &operations, setting);
        let effort = effort(self.plan);
        leader::run(port, blocks, |leader| {
            for case in self.partitioned_cases(plan)? {
                leader.begin(&case)?;
                leader.watch()?;
                let effort = &effort;
                let found = Lead { leader, effort }.measure(case.size, plan.definition)?;
                let load = leader.report()?;
                leader.end(&case)?;
                for (operation, found) in operations.iter().zip(&found) {
                    let row = self.row(self.plan.layers[0], case.size, port.size(), &used);
                    let mut row = self.partitioned_row(row, case, operation, found);
                    add_load(&mut row, &load);
                    sink(Message::Row(Box::new(row)))?;
                }
            }
            Ok(())
        })?;
        done(leads, sink)
    }

    /// Sizes, partitions and circumstances; no partition is empty, and all are of the same size.
    fn partitioned_cases(&self, plan: &PartitionedPlan) -> Result<Vec<Case>> {
        let mut all = Vec::new();
        for size in self.sizes()? {
            for &partitions in &plan.partitions {
                let fits = size >= partitions as usize && size.is_multiple_of(partitions as usize);
                let circumstances = plan.circumstances.iter().filter(|_| fits);
                all.extend(circumstances.map(|circumstances| Case {
                    size,
                    partitions,
                    circumstances: *circumstances,
                }));
            }
        }
        Ok(all)
    }

    fn partitioned_row(
        &self,
        mut row: Row,
        case: Case,
        operation: &Operation,
        found: &Found,
    ) -> Row {
        let circumstances = case.circumstances;
        let computes = !circumstances.time.is_zero();
        row.threads = Some(self.plan.threads);
        (row.partitions, row.policy) = (Some(case.partitions), Some(operation.policy.clone()));
        row.buffers = (operation.buffers > 1).then_some(operation.buffers);
        let (how, time) = (
            circumstances.compute.as_str(),
            circumstances.time.as_micros(),
        );
        row.compute = computes.then(|| format!("{how}:{time}"));
        let (noise, pct) = (circumstances.noise.as_str(), circumstances.noise_pct);
        row.noise = computes.then(|| format!("{noise}:{pct}"));
        if let Cache::Cold(bytes) = circumstances.cache {
            row.cold_cache = true;
            row.cache = (bytes != SWEEP).then(|| format!("cold:{}", format_bytes(bytes)));
        }
        row.way.clone_from(&found.way);
        (row.iterations, row.repetitions) = (found.rounds, found.repetitions);
        row.samples = Some(found.samples.clone());
        row.figures = figures(found);
        row
    }
}

fn figures(found: &Found) -> Figures {
    let mut figures = Figures::default();
    if let Some(ours) = &found.ours {
        figures.set_summary(Quantity::PARTITIONED_OVERHEAD, ours.overhead);
        figures.set_summary(
            Quantity::PERCEIVED_BANDWIDTH,
            megabytes_a_second(ours.bandwidth),
        );
        figures.set_summary(Quantity::APPLICATION_AVAILABILITY, ours.availability);
        figures.set_summary(Quantity::EARLY_BIRD, ours.early);
    }
    if let Some(paper) = &found.paper {
        set_paper(&mut figures, paper);
    }
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

fn set_paper(figures: &mut Figures, paper: &Paper) {
    let metrics = [
        (Quantity::OVERHEAD_PAPER, paper.overhead),
        (
            Quantity::PERCEIVED_BANDWIDTH_PAPER,
            megabytes_a_second(paper.bandwidth),
        ),
        (Quantity::AVAILABILITY_PAPER, paper.availability),
        (Quantity::EARLY_BIRD_PAPER, paper.early),
    ];
    let [overhead, bandwidth, availability, early] = paper.pruned;
    let pruned = [overhead, bandwidth * 1e3, availability, early];
    for ((quantity, summary), pruned) in metrics.into_iter().zip(pruned) {
        figures.set_summary(quantity, summary);
        figures.set(quantity.key_of("pruned"), pruned);
    }
    figures.set("overhead_paper_text", paper.overhead_of_text);
    figures.set("ready_us", paper.ready / 1e3);
}

/// Bytes per nanosecond are 10^3 MB/s.
fn megabytes_a_second(bandwidth: Summary) -> Summary {
    Summary {
        median: bandwidth.median * 1e3,
        min: bandwidth.min * 1e3,
        max: bandwidth.max * 1e3,
    }
}
