//! When the threads of kernels arrived: figures, and a file.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Duration;

use statrs::statistics::{Data, Distribution, OrderStatistics};

use crate::arrivals::Density;
use crate::record::Row;
use crate::stats::Summary;

/// How many draws of a density are compared with its samples.
const DRAWS: usize = 100_000;

/// Nanoseconds of a bin of a histogram, as in the paper, where that makes no more bins than this.
const BIN: u64 = 10_000;
const BINS: u64 = 200;

/// Adds how threads arrived (iteration, thread, nanoseconds), and how well draws from a density of their times meet them.
pub(super) fn add(row: &mut Row, arrived: &[[u64; 3]], bandwidth: Option<Duration>, seed: u64) {
    let times: Vec<f64> = arrived.iter().map(|it| it[2] as f64).collect();
    let scaled: Vec<f64> = times.iter().map(|time| time / 1e3).collect();
    let figures = &mut row.figures;
    if let Some(summary) = Summary::of(&scaled) {
        figures.set("arrival_us", summary.median);
        figures.set("arrival_min_us", summary.min);
        figures.set("arrival_max_us", summary.max);
    }
    let mut data = Data::new(times.clone());
    let spread = 100.0 * data.interquartile_range() / data.median();
    if spread.is_finite() {
        figures.set("arrival_spread_pct", spread);
    }
    if let Some(skewness) = skewness(&times) {
        figures.set("arrival_skewness", skewness);
    }
    let density = Density::of(&times, bandwidth);
    let (distance, own) = (density.misses(seed, DRAWS), density.smooths());
    figures.set("bandwidth_ns", density.bandwidth);
    figures.set("kolmogorov", distance);
    figures.set("kolmogorov_smoothing", own);
    figures.set("kolmogorov_excess", distance - own);
    row.series.pattern.histogram = Some(histogram(arrived.iter().map(|it| it[2])));
}

/// The third moment over the deviation's cube: above 0 where the tail is of late ones.
fn skewness(times: &[f64]) -> Option<f64> {
    let data = Data::new(times.to_vec());
    let (mean, deviation) = (data.mean()?, data.std_dev()?);
    let cubes = times.iter().map(|time| ((time - mean) / deviation).powi(3));
    (deviation > 0.0).then(|| cubes.sum::<f64>() / times.len() as f64)
}

/// How many fall into bins of equal width: where the first begins and how wide they are, in microseconds, and the counts.
fn histogram(times: impl Iterator<Item = u64> + Clone) -> String {
    let (first, last) = times.clone().fold((u64::MAX, 0), |(low, high), time| {
        (low.min(time), high.max(time))
    });
    let first = first.min(last);
    let mut width = BIN;
    while (last - first / width * width) / width >= BINS {
        width *= 2;
    }
    let first = first / width * width;
    let mut counts = vec![0_u64; ((last - first) / width + 1) as usize];
    for time in times {
        counts[((time - first) / width) as usize] += 1;
    }
    let mut text = format!("{}:{}:", first / 1000, width / 1000);
    for (place, count) in counts.iter().enumerate() {
        let comma = if place == 0 { "" } else { "," };
        let _ = write!(text, "{comma}{count}");
    }
    text
}

/// Writes when threads arrived: iteration, thread, nanoseconds.
pub(super) fn record<'a>(
    file: &mut BufWriter<File>,
    arrived: impl Iterator<Item = &'a [u64; 3]>,
) -> std::io::Result<()> {
    for [iteration, thread, ns] in arrived {
        writeln!(file, "{iteration},0,{thread},{ns}")?;
    }
    file.flush()
}

/// Creates a file for them.
pub(super) fn create(path: &Path) -> std::io::Result<BufWriter<File>> {
    let mut file = BufWriter::new(File::create(path)?);
    writeln!(file, "iteration,rank,thread,ns")?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_arrival_is_in_one_bin() {
        let times = [25_000, 31_000, 39_999, 40_000, 61_000];
        assert_eq!(histogram(times.into_iter()), "20:10:1,2,1,0,1");
        assert_eq!(histogram([7].into_iter()), "0:10:1");
        let wide = histogram([0, 10_000_000].into_iter());
        let counts: Vec<u64> = wide.rsplit(':').next().map_or(Vec::new(), |list| {
            list.split(',')
                .filter_map(|count| count.parse().ok())
                .collect()
        });
        assert!(wide.starts_with("0:80:1,0"), "{wide}");
        assert_eq!((counts.len(), counts.iter().sum::<u64>()), (126, 2));
    }

    #[test]
    fn a_late_tail_is_skewed() {
        let even: Vec<f64> = (0..=100).map(f64::from).collect();
        let late: Vec<f64> = even.iter().map(|time| time * time).collect();
        let found = [even, late].map(|list| skewness(&list).unwrap_or(f64::NAN));
        assert!(found[0].abs() < 1e-9 && found[1] > 0.5, "{found:?}");
        assert_eq!(skewness(&[3.0, 3.0, 3.0]), None);
    }

    #[test]
    fn a_density_misses_its_samples_by_its_smoothing_and_little_more() {
        // Two humps, which a wide kernel joins.
        let arrived: Vec<[u64; 3]> = (0..400)
            .map(|at| {
                [
                    at,
                    0,
                    if at % 2 == 0 { 1_000_000 } else { 2_000_000 } + at * 100,
                ]
            })
            .collect();
        let mut row = Row::default();
        add(&mut row, &arrived, None, 5);
        let of = |key: &str| row.figures.named(key).unwrap_or(f64::NAN);
        assert!(of("kolmogorov_smoothing") > 0.05, "{:?}", row.figures);
        assert!(of("kolmogorov_excess").abs() < 0.02, "{:?}", row.figures);
        assert!(of("arrival_skewness").abs() < 0.1, "{:?}", row.figures);
        assert!(of("arrival_spread_pct") > 30.0, "{:?}", row.figures);
        let histogram = row.series.pattern.histogram.unwrap_or_default();
        assert!(
            histogram.starts_with("1000:10:50,50,50,50,0"),
            "{histogram}"
        );
    }
}
