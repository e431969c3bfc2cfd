//! `availability` and `overlap`: a rank computes while a message is on its way.

use serde::{Deserialize, Serialize};

use super::Description;
use crate::args::{BenchArgs, Side};
use crate::body::overlap::{Case, Order, Overlap};
use crate::error::Result;
use crate::judgement::{NOTABLE, unmeasured};
use crate::leader;
use crate::load::Load;
use crate::measure::Effort;
use crate::measure::overlap::{Availability, Blocks, Lead, Overlapped, Steps};
use crate::port::partitioned::PartitionedPort;
use crate::record::{Figures, Quantity};
use crate::run::{Run, Test};
use crate::stats::Summary;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Computing {
    /// On which sides ranks compute.
    sides: Vec<Side>,
}

const AVAILABILITY: Description = Description {
    name: "availability",
    about: "What is left of a core for computation while a message is on its way",
    quantity: Quantity::AVAILABILITY,
    options: &["ranks", "side", "memory", "profile"],
    rows: |args| args.sides().len(),
    ..Description::PLAIN
};

const OVERLAP: Description = Description {
    name: "overlap",
    about: "How far a message and computation at the same time hide each other",
    quantity: Quantity::OVERLAP,
    rows: |args| 2 * args.sides().len(),
    ..AVAILABILITY
};

pub(crate) const TESTS: &[Description] = &[AVAILABILITY, OVERLAP];

impl Test for Computing {
    fn of(args: &BenchArgs) -> Self {
        Self {
            sides: args.sides().to_vec(),
        }
    }

    /// Rank 0 computes.
    fn measure_port<P: PartitionedPort>(&self, port: &P, run: &mut Run<'_>) -> Result<()> {
        let plan = run.plan();
        let traffic = plan.traffic(run.port, 0, plan.window)?;
        lead(
            &mut Blocks::new(port, Overlap::new(traffic)),
            &self.sides,
            run,
        )
    }
}

fn lead(blocks: &mut Steps<'_>, sides: &[Side], run: &mut Run<'_>) -> Result<()> {
    let plan = run.plan();
    let effort = Effort::of(plan, (100, 10), (20, 2));
    let is_availability = plan.test.name == AVAILABILITY.name;
    leader::run(run.port, blocks, |leader| {
        let mut lead = Lead::new(leader, &effort);
        for size in run.sizes()? {
            for &side in sides {
                let mut emit = |order: Option<Order>,
                                iterations,
                                repetitions,
                                figures: Figures,
                                load: &Load| {
                    let mut row = run.row_at(plan.layers[0], size);
                    row.series.side = Some(side.as_str().to_owned());
                    row.series.receive = order.map(|order| order.as_str().to_owned());
                    row.sampling.set(iterations, repetitions);
                    row.error = unmeasured(|key| figures.named(key)).map(str::to_owned);
                    if row.error.is_none() {
                        row.figures = figures;
                    }
                    load.add_to_row(&mut row);
                    run.emit(row)
                };
                if is_availability {
                    let (found, load) = lead.watched(|lead| lead.availability(size, side))?;
                    let (iterations, repetitions) = (found.iterations, found.repetitions);
                    emit(None, iterations, repetitions, availability(&found), &load)?;
                    continue;
                }
                for order in [Order::Early, Order::Late] {
                    let case = Case { size, side, order };
                    let (found, load) = lead.watched(|lead| lead.overlap(case))?;
                    let (iterations, repetitions) = (found.iterations, found.repetitions);
                    emit(Some(order), iterations, repetitions, overlap(&found), &load)?;
                }
            }
        }
        Ok(())
    })
}

/// The row's own figures follow from each other: `overhead_us` is `iter_us` less `work_us`, and
/// `availability_pct` follows from it and `base_us`.
fn availability(found: &Availability) -> Figures {
    let base = found.base.median;
    let overhead = found.iter.median - found.work.median;
    let left = |overhead: f64, base: f64| 100.0 * (1.0 - overhead / base.max(1.0));
    let mut figures = Figures::default();
    figures.set_summary(
        Quantity::AVAILABILITY,
        Summary {
            median: left(overhead, base),
            min: left(found.overhead.max, base),
            max: left(found.overhead.min, base),
        },
    );
    let overheads = Summary {
        median: overhead,
        ..found.overhead
    };
    figures.set_summary(Quantity::OVERHEAD, overheads.times(1e-3));
    figures.set_summary(Quantity::BASE, found.base.times(1e-3));
    figures.set(Quantity::ITER.key(), found.iter.median / 1e3);
    figures.set(Quantity::WORK.key(), found.work.median / 1e3);
    if let Some(base) = found.base_one_core {
        figures.set(Quantity::BASE_ONE_CORE.key(), base / 1e3);
        let left = left(overhead, base);
        if left >= -NOTABLE {
            figures.set(Quantity::AVAILABILITY_ONE_CORE.key(), left);
        }
    }
    figures
}

fn overlap(found: &Overlapped) -> Figures {
    let mut figures = Figures::default();
    figures.set_summary(Quantity::OVERLAP, found.overlap);
    for (quantity, time) in [
        (Quantity::COMMUNICATION, found.communication),
        (Quantity::COMPUTATION, found.computation),
        (Quantity::TOTAL, found.total),
    ] {
        figures.set(quantity.key(), time.median / 1e3);
    }
    figures
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(value: f64) -> Summary {
        Summary {
            median: value,
            min: value,
            max: value,
        }
    }

    #[test]
    fn availability_follows_from_overhead_and_base() {
        let overhead = Summary {
            median: 110.0,
            min: 90.0,
            max: 130.0,
        };
        let found = Availability {
            base: same(1000.0),
            iter: same(1600.0),
            work: same(1500.0),
            overhead,
            base_one_core: Some(2000.0),
            iterations: 9,
            repetitions: 9,
        };
        let figures = availability(&found);
        for (key, value) in [
            ("availability_pct", 90.0),
            ("availability_min_pct", 87.0),
            ("availability_max_pct", 91.0),
            ("availability_spread_pct", 4.0),
            ("overhead_us", 0.1),
            ("base_us", 1.0),
            ("iter_us", 1.6),
            ("work_us", 1.5),
            ("base_one_core_us", 2.0),
            ("availability_one_core_pct", 95.0),
        ] {
            assert_eq!(figures.named(key), Some(value), "{key}");
        }
    }
}
