//! Tests that run one block after the other at each size, at one layer or at several.

use super::{Run, Test};
use crate::error::Result;
use crate::measure::{self, Effort, Sample, Stage};
use crate::plan::Layer;
use crate::record::{Figures, Row};

/// Measures all sizes at all layers; the port of the run is the first one's.
pub(crate) fn measure<T: Test>(
    test: &T,
    run: &mut Run<'_>,
    layers: Vec<(Layer, Box<dyn Stage + '_>)>,
) -> Result<()> {
    measure_by(run, &test.effort(run.plan()), T::figures, layers)
}

/// The same, once for all tests.
fn measure_by(
    run: &mut Run<'_>,
    effort: &Effort,
    figures: fn(&Sample) -> Figures,
    layers: Vec<(Layer, Box<dyn Stage + '_>)>,
) -> Result<()> {
    let (layers, stages): (Vec<_>, Vec<_>) = layers.into_iter().unzip();
    let port = run.port;
    let sizes = run.sizes()?;
    let mut emit = |samples: Vec<Sample>| {
        let mut rows = rows(run, figures, &layers, &samples).into_iter();
        rows.try_for_each(|row| run.emit(row))
    };
    measure::measure(port, stages, &sizes, effort, &mut emit)
}

/// The rows of one size, one for each layer.
fn rows(
    run: &Run<'_>,
    figures: fn(&Sample) -> Figures,
    layers: &[Layer],
    samples: &[Sample],
) -> Vec<Row> {
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
            row.figures = figures(sample);
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
