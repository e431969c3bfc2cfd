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
    let panel = Some(&plot.panel).filter(|panel| !panel.is_empty());
    let drawn = model::Plot {
        id: item.name.replace('/', "-"),
        test: format!("{}: {}", item.figure, item.shows),
        panel: None,
        metric: metric(&plot.figure),
        is_main: true,
        x: Variable::named(plot.over),
        // What is so is told by its name.
        shared: panel
            .into_iter()
            .map(|panel| (panel.clone(), "true".to_owned()))
            .collect(),
        reference: None,
        series: series.collect(),
    };
    tagwire_report::draw::file(&drawn).map_err(Failure::usage)
}

/// The metric of a figure: that of `report`, or one that is named by its key; in the papers' words where they have some.
fn metric(key: &str) -> Metric {
    let mut metric = Metric::among(&[key]).into_iter().next().unwrap_or_else(|| {
        let unit = match key {
            key if key.ends_with("_us") => Unit::Microseconds,
            key if key.ends_with("_mb_s") => Unit::MegabytesPerSecond,
            key if key.ends_with("_pct") => Unit::Percent,
            _ => Unit::None,
        };
        let name = key.trim_end_matches("_us").trim_end_matches("_mb_s");
        let name = name.trim_end_matches("_pct").replace('_', " ");
        Metric {
            key: key.to_owned(),
            name: name[..1].to_uppercase() + &name[1..],
            unit,
            sense: Sense::LessIsBetter,
            is_judged: true,
            bounds: (String::new(), String::new()),
        }
    });
    if let Some((_, name, sense)) = WORDS.iter().find(|(known, ..)| *known == key) {
        (*name).clone_into(&mut metric.name);
        // A count or a share is neither good nor bad.
        metric.is_judged = sense.is_some();
        metric.sense = sense.unwrap_or(metric.sense);
    }
    metric
}

/// Names of figures on axes, and which way is good where one is.
const WORDS: [(&str, &str, Option<Sense>); 15] = [
    ("availability_paper", "Availability", MORE),
    ("early_bird_paper", "Early-bird share", MORE),
    ("faster_pct", "Faster by", MORE),
    ("latency_min_us", "Latency", LESS),
    ("library_pct", "Time in the library", None),
    ("long_messages", "Long messages", None),
    ("loss_pct", "Loss", LESS),
    ("overhead_paper", "Overhead over one send", LESS),
    ("passes_per_s", "Iterations of each thread per second", MORE),
    (
        "perceived_bandwidth_paper_mb_s",
        "Perceived bandwidth",
        MORE,
    ),
    ("projected_speedup", "Projected speedup", MORE),
    ("short_us", "Short message", LESS),
    ("speedup_pct", "Speedup", MORE),
    ("speedup_vs_multilane_pct", "Gain over lanes", MORE),
    ("threads_that_arrive", "Threads that arrive", None),
];

const MORE: Option<Sense> = Some(Sense::MoreIsBetter);
const LESS: Option<Sense> = Some(Sense::LessIsBetter);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_the_words_of_the_papers() {
        let told = |key| {
            let metric = metric(key);
            (metric.title(), metric.is_judged, metric.direction())
        };
        for (key, title, is_judged, direction) in [
            ("loss_pct", "Loss (%)", true, "less is better"),
            (
                "threads_that_arrive",
                "Threads that arrive",
                false,
                "less is better",
            ),
            (
                "perceived_bandwidth_paper_mb_s",
                "Perceived bandwidth (MB/s)",
                true,
                "more is better",
            ),
            ("dropped_min_pct", "Dropped min (%)", true, "less is better"),
        ] {
            assert_eq!(told(key), (title.to_owned(), is_judged, direction), "{key}");
        }
    }
}
