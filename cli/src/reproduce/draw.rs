//! Plots of the pages of papers.

use tagwire_bench::Sense;
use tagwire_papers::{Item, Plot};
use tagwire_report::metric::{Metric, Unit};
use tagwire_report::model::{self, Point, Role, Series, Variable};
use tagwire_report::naming::Variables;

use crate::failure::Failure;

/// Returns a plot as SVG.
pub fn svg(item: &Item, plot: &Plot) -> Result<String, Failure> {
    let (mut measured, mut published) = (0, 0);
    let series = plot.lines.iter().map(|line| {
        let (role, slot) = match line.is_published {
            true => (Role::Published, &mut published),
            false => (Role::Measured, &mut measured),
        };
        let name = match line.is_published {
            true => format!("published: {}", line.name),
            false => line.name.clone(),
        };
        *slot += 1;
        #[allow(clippy::cast_precision_loss, reason = "sizes and numbers of messages")]
        let point = |&(size, estimate): &(u64, tagwire_bench::Summary)| Point {
            x: size as f64,
            estimate,
            launches: 0,
            is_disturbed: false,
        };
        Series {
            name,
            role,
            file: 0,
            variables: Variables::new(),
            slot: *slot - 1,
            counterpart: None,
            points: line.points.iter().map(point).collect(),
        }
    });
    let drawn = model::Plot {
        id: item.name.replace('/', "-"),
        test: format!("{}: {}", item.figure, item.shows),
        panel: None,
        metric: metric(&plot.figure),
        is_main: true,
        x: Variable::named(plot.over),
        shared: Vec::new(),
        reference: None,
        series: series.collect(),
    };
    tagwire_report::draw::file(&drawn).map_err(Failure::usage)
}

/// The metric of a figure: that of `report`, or one that is named by its key.
fn metric(key: &str) -> Metric {
    Metric::among(&[key]).into_iter().next().unwrap_or_else(|| {
        let unit = match key {
            key if key.ends_with("_us") => Unit::Microseconds,
            key if key.ends_with("_mb_s") => Unit::MegabytesPerSecond,
            key if key.ends_with("_pct") => Unit::Percent,
            _ => Unit::None,
        };
        let name = key.trim_end_matches("_us").trim_end_matches("_mb_s");
        Metric {
            key: key.to_owned(),
            name: name.trim_end_matches("_pct").replace('_', " "),
            unit,
            sense: Sense::LessIsBetter,
            is_judged: true,
            bounds: (String::new(), String::new()),
        }
    })
}
