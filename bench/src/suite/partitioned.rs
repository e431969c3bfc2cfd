//! `partitioned`: partitioned operations against one message of the same size.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tagwire_base::config::parse::format_bytes;

use super::Description;
use crate::args::partitioned::{Cache, PartitionedPlan, SWEEP};
use crate::args::{BenchArgs, usage};
use crate::body::partitioned::{Case, Setting};
use crate::error::Result;
use crate::leader;
use crate::measure::Effort;
use crate::measure::partitioned::{Blocks, Found, Lead, Paper, Steps};
use crate::plan::Plan;
use crate::port::partitioned::{Operation, PartitionedPort};
use crate::record::{Figures, Quantity, Row};
use crate::run::{Ports, Run, Test};
use crate::stats::Summary;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Partitioned(PartitionedPlan);

pub(crate) const TESTS: &[Description] = &[Description {
    name: "partitioned",
    about: "Partitioned operations against one message of the same size: overhead, perceived bandwidth, application \
            availability, early-bird share",
    quantity: Quantity::PARTITIONED_OVERHEAD,
    options: &[
        "ranks",
        "threads",
        "partitions",
        "policy",
        "compute",
        "compute-time",
        "noise",
        "noise-pct",
        "definition",
        "buffers",
        "cache",
        "advise",
    ],
    sizes: "64:1M",
    rows: |args| {
        let plan = args.partitioned.plan();
        plan.partitions.len() * plan.policies.len() * plan.circumstances.len()
    },
    check,
    ..Description::PLAIN
}];

impl Test for Partitioned {
    fn of(args: &BenchArgs) -> Self {
        Self(args.partitioned.plan())
    }

    fn any_thread(&self) -> bool {
        let is_divided = self.0.partitions.iter().any(|count| *count > 1);
        self.0.definition.has_paper() && is_divided
    }

    /// Rank 0 sends.
    fn measure<P: PartitionedPort>(&self, ports: Ports<'_, P>, run: &mut Run<'_>) -> Result<()> {
        let (port, plan, own) = (ports.own, run.plan(), &self.0);
        let operations = port.operations(own);
        let setting = Setting {
            has_paper: own.definition.has_paper(),
            threads: plan.threads,
            seed: plan.seed,
            validate: plan.validate,
            tag: 0,
        };
        let mut blocks = Blocks::new(port, &operations, setting);
        lead(&mut blocks, own, &operations, run)
    }
}

fn lead(
    blocks: &mut Steps<'_>,
    own: &PartitionedPlan,
    operations: &[Operation],
    run: &mut Run<'_>,
) -> Result<()> {
    let plan = run.plan();
    let effort = Effort::of(plan, (100, 10), (20, 2));
    leader::run(run.port, blocks, |leader| {
        for case in cases(plan, own)? {
            leader.begin(&case)?;
            leader.watch()?;
            let effort = &effort;
            let found = Lead { leader, effort }.measure(case.size, own.definition)?;
            let load = leader.report()?;
            leader.end(&case)?;
            for (operation, found) in operations.iter().zip(&found) {
                let mut row = run.row_at(plan.layers[0], case.size);
                row.series.threads = Some(plan.threads);
                describe(&mut row, case, operation, found);
                load.add_to_row(&mut row);
                run.emit(row)?;
            }
        }
        Ok(())
    })
}

/// Sizes, partitions and circumstances; no partition is empty, and all are of the same size.
fn cases(plan: &Plan, own: &PartitionedPlan) -> Result<Vec<Case>> {
    let mut all = Vec::new();
    for size in plan.lengths()? {
        for &partitions in &own.partitions {
            let fits = size >= partitions as usize && size.is_multiple_of(partitions as usize);
            let circumstances = own.circumstances.iter().filter(|_| fits);
            all.extend(circumstances.map(|circumstances| Case {
                size,
                partitions,
                circumstances: *circumstances,
            }));
        }
    }
    Ok(all)
}

/// Refuses lists of a test of partitioned operations of which nothing would come.
fn check(args: &BenchArgs) -> Result<()> {
    let partitioned = &args.partitioned;
    let is_still = partitioned.compute_time.iter().all(Duration::is_zero);
    if !partitioned.noise.is_empty() && is_still {
        return usage("--noise makes threads compute longer: it needs --compute-time");
    }
    if !partitioned.noise_pct.is_empty() && partitioned.noise.is_empty() {
        return usage("--noise-pct says how much of --noise there is, and that is not given");
    }
    let (counts, sizes) = (partitioned.plan().partitions, args.size_list());
    let sizes = sizes.as_slice();
    let fits = |count: &u32| {
        let count = u64::from(*count);
        sizes
            .iter()
            .any(|size| *size >= count && size.is_multiple_of(count))
    };
    match counts.iter().find(|count| !fits(count)) {
        Some(count) => usage(format!(
            "no size of -m has {count} partitions (--partitions): sizes are multiples of it, and of {count} bytes at least"
        )),
        None => Ok(()),
    }
}

/// Adds to a row what was measured, and of what.
fn describe(row: &mut Row, case: Case, operation: &Operation, found: &Found) {
    let circumstances = case.circumstances;
    (row.series.partitions, row.series.policy) =
        (Some(case.partitions), Some(operation.policy.clone()));
    row.series.buffers = (operation.buffers > 1).then_some(operation.buffers);
    [row.series.compute, row.series.noise] = circumstances.labels();
    if let Cache::Cold(bytes) = circumstances.cache {
        row.series.cold_cache = true;
        row.series.cache = (bytes != SWEEP).then(|| format!("cold:{}", format_bytes(bytes)));
    }
    row.way.clone_from(&found.way);
    row.sampling.set(found.rounds, found.repetitions);
    row.samples = Some(found.samples.clone());
    row.figures = figures(found);
}

/// Bytes per nanosecond are 10^3 MB/s.
fn figures(found: &Found) -> Figures {
    let mut figures = Figures::default();
    if let Some(ours) = &found.ours {
        figures.set_summary(Quantity::PARTITIONED_OVERHEAD, ours.overhead);
        figures.set_summary(Quantity::PERCEIVED_BANDWIDTH, ours.bandwidth.times(1e3));
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

pub(crate) fn set_paper(figures: &mut Figures, paper: &Paper) {
    let metrics = [
        (Quantity::OVERHEAD_PAPER, paper.overhead),
        (
            Quantity::PERCEIVED_BANDWIDTH_PAPER,
            paper.bandwidth.times(1e3),
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
