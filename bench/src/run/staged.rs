//! Tests that run one block after the other at each size, at one layer or at several.

use super::{Run, Test};
use crate::error::Result;
use crate::measure::{self, Effort, Sample, Stage};
use crate::plan::{Layer, Plan};
use crate::record::{Figures, Row};

/// What of such a test is not its blocks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Staged {
    effort: fn(&Plan) -> Effort,
    figures: fn(&Sample) -> Figures,
    label: fn(&Plan, &mut Row),
}

impl Staged {
    pub(crate) fn of<T: Test>() -> Self {
        Self {
            effort: T::effort,
            figures: T::figures,
            label: T::label,
        }
    }
}

/// Measures all sizes at all layers; the port of the run is the first one's.
pub(crate) fn measure(
    run: &mut Run<'_>,
    test: Staged,
    layers: Vec<(Layer, Box<dyn Stage + '_>)>,
) -> Result<()> {
    let (layers, stages): (Vec<_>, Vec<_>) = layers.into_iter().unzip();
    let port = run.port;
    let (sizes, effort) = (run.sizes()?, (test.effort)(run.plan()));
    let mut emit = |samples: Vec<Sample>| {
        let mut rows = rows(run, test, &layers, &samples).into_iter();
        rows.try_for_each(|row| run.emit(row))
    };
    measure::measure(port, stages, &sizes, &effort, &mut emit)
}

/// The rows of one size, one for each layer.
fn rows(run: &Run<'_>, test: Staged, layers: &[Layer], samples: &[Sample]) -> Vec<Row> {
    let raw = layers
        .iter()
        .position(|&layer| layer == Layer::Raw)
        .filter(|_| layers.len() > 1);
    let key = run.plan().test.quantity.key();
    let mut rows: Vec<Row> = samples
        .iter()
        .map(|sample| {
            let mut row = run.row_at(layers[sample.stage], sample.size);
            row.sampling.set(sample.iterations, sample.repetitions);
            row.figures = (test.figures)(sample);
            (test.label)(run.plan(), &mut row);
            sample.load.add_to_row(&mut row);
            row
        })
        .collect();
    if let Some(raw) = raw.and_then(|raw| rows[raw].figures.named(&key)) {
        for row in &mut rows {
            if let Some(own) = row.figures.named(&key) {
                row.figures.set("ratio_to_raw", own / raw);
            }
        }
    }
    rows
}
