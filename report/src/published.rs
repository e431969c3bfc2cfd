//! Values that a paper publishes, as series of their own beside what was measured.

use tagwire_bench::Summary;

use crate::model::{Plot, Point, Role, Series};
use crate::naming::Variables;
use crate::read::SIZE;
use crate::report::Report;

/// A published value that has a place in a plot over sizes.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// What it is of: a library, a case.
    pub of: String,
    /// The key of the metric.
    pub metric: String,
    /// The message size in bytes.
    pub size: f64,
    /// The value, in the metric's unit.
    pub value: f64,
}

impl Report {
    /// Adds published values to the plots of their metrics. They are drawn and listed, and nothing is judged by them: they are of
    /// other machines.
    pub fn add_published(&mut self, all: &[Published]) {
        for plot in &mut self.model.plots {
            if plot.x.key() == SIZE {
                let key = plot.metric.key.clone();
                for one in all.iter().filter(|one| one.metric == key) {
                    plot.add_published(one);
                }
                if !plot.is_single() {
                    // A value at another size than the only one that was measured.
                    plot.shared.retain(|(key, _)| key != SIZE);
                }
            }
        }
    }
}

impl Plot {
    fn add_published(&mut self, published: &Published) {
        let Published { size, value, .. } = *published;
        let point = Point {
            x: size,
            estimate: Summary {
                median: value,
                min: value,
                max: value,
            },
            launches: 0,
            is_disturbed: false,
        };
        let name = format!("published: {}", published.of);
        let is_known = |series: &&mut Series| series.role == Role::Published && series.name == name;
        if let Some(known) = self.series.iter_mut().find(is_known) {
            let place = known.points.partition_point(|before| before.x <= size);
            return known.points.insert(place, point);
        }
        let others = self.series.iter();
        let slot = others
            .filter(|series| series.role == Role::Published)
            .count();
        self.series.push(Series {
            name,
            role: Role::Published,
            file: 0,
            variables: Variables::new(),
            slot,
            counterpart: None,
            points: vec![point],
        });
    }
}
