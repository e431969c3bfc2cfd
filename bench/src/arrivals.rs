//! When threads arrive: models, measured times, and densities that are estimated from measured times.

use std::path::Path;
use std::time::Duration;

use statrs::distribution::{ContinuousCDF, Normal};
use statrs::statistics::{Data, Distribution, OrderStatistics};

use crate::args::arrivals::{Arrivals, Model};
use crate::error::{Error, Result};
use crate::noise::{normal, unit};
use crate::stats::Seeded;

/// Draws the arrivals of threads.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// The first thread is late by so many percent.
    Laggard(f64),
    /// Each thread is late, or early, by a normal variable of this deviation.
    Normal(Duration),
    /// Each thread draws from a density.
    Density(Density),
    /// Iterations of a file by turns; a line has the times of all threads.
    Trace(Vec<Vec<Duration>>),
    /// Threads work instead.
    Kernel,
}

impl Source {
    /// Reads what a model needs.
    ///
    /// # Errors
    /// [`Error::Input`] of a file that has no arrivals, or not for so many threads.
    pub(crate) fn of(arrivals: &Arrivals, threads: u32) -> Result<Self> {
        Ok(match &arrivals.model {
            Model::Laggard(pct) => Self::Laggard(*pct),
            Model::Normal(deviation) => Self::Normal(*deviation),
            Model::Density(file) => Self::Density(Density::of(&samples(file)?, arrivals.bandwidth)),
            Model::Kernel(_) => Self::Kernel,
            Model::Trace(file) => Self::Trace(trace(file, threads)?),
        })
    }

    /// Draws the arrivals of `threads` threads in iteration `iteration`, whose computation takes `time`.
    pub(crate) fn draw(
        &self,
        random: &mut Seeded,
        iteration: u64,
        time: Duration,
        threads: u32,
    ) -> Vec<Duration> {
        let each = |random: &mut Seeded, thread: u32| match self {
            Self::Laggard(pct) if thread == 0 => time.mul_f64(1.0 + pct / 100.0),
            Self::Laggard(_) => time,
            Self::Normal(deviation) => {
                let ns = time.as_nanos() as f64 + normal(random) * deviation.as_nanos() as f64;
                Duration::from_nanos(ns.max(0.0) as u64)
            }
            Self::Kernel => Duration::ZERO,
            Self::Density(density) => Duration::from_nanos(density.draw(random) as u64),
            Self::Trace(lines) => lines[(iteration % lines.len() as u64) as usize][thread as usize],
        };
        (0..threads).map(|thread| each(random, thread)).collect()
    }
}

/// A density by a Gaussian kernel over samples.
#[derive(Debug, Clone)]
pub(crate) struct Density {
    samples: Vec<f64>,
    /// The deviation of the kernel.
    pub bandwidth: f64,
}

impl Density {
    /// Of at least two samples; the bandwidth is Silverman's unless it is given.
    pub(crate) fn of(samples: &[f64], bandwidth: Option<Duration>) -> Self {
        let own = || silverman(samples);
        Self {
            samples: samples.to_vec(),
            bandwidth: bandwidth.map_or_else(own, |it| it.as_nanos() as f64),
        }
    }

    /// Returns the distance between the distributions of the samples and of so many draws.
    pub(crate) fn misses(&self, seed: u64, draws: usize) -> f64 {
        let mut random = Seeded::new(seed);
        let drawn: Vec<f64> = (0..draws).map(|_| self.draw(&mut random)).collect();
        distance(&drawn, &self.samples)
    }

    /// Returns the distance between the distribution of the samples and the density's own, looked at in some of the samples.
    pub(crate) fn smooths(&self) -> f64 {
        const LOOKS: usize = 256;
        let mut samples = self.samples.clone();
        samples.sort_by(f64::total_cmp);
        let count = samples.len() as f64;
        let Ok(kernel) = Normal::new(0.0, self.bandwidth) else {
            return 0.0;
        };
        let upto = |time: f64| samples.iter().map(|it| kernel.cdf(time - it)).sum::<f64>();
        // Draws below 0 are drawn again.
        let negative = upto(0.0);
        let step = samples.len().div_ceil(LOOKS);
        let looks = samples.iter().step_by(step).map(|&time| {
            let smooth = count * (upto(time) - negative) / (count - negative);
            let below = samples.partition_point(|it| *it < time) as f64;
            let here = samples.partition_point(|it| *it <= time) as f64;
            (smooth - below).abs().max((smooth - here).abs()) / count
        });
        looks.fold(0.0, f64::max)
    }

    /// Draws a time that is not negative.
    pub(crate) fn draw(&self, random: &mut Seeded) -> f64 {
        loop {
            let place = (unit(random) * self.samples.len() as f64) as usize;
            let value = self.samples[place.min(self.samples.len() - 1)];
            let drawn = value + self.bandwidth * normal(random);
            if drawn >= 0.0 {
                return drawn;
            }
        }
    }
}

/// Silverman's rule of thumb.
fn silverman(samples: &[f64]) -> f64 {
    let mut data = Data::new(samples.to_vec());
    let deviation = data.std_dev().unwrap_or(0.0);
    let range = data.interquartile_range() / 1.34;
    // Where half of the samples are the same, the range says nothing.
    let narrow = if range > 0.0 {
        deviation.min(range)
    } else {
        deviation
    };
    0.9 * narrow * (samples.len() as f64).powf(-0.2)
}

/// The greatest distance between the distributions of two lists of samples (Kolmogorov and Smirnov).
fn distance(one: &[f64], other: &[f64]) -> f64 {
    let sorted = |list: &[f64]| {
        let mut list = list.to_vec();
        list.sort_by(f64::total_cmp);
        list
    };
    let (one, other) = (sorted(one), sorted(other));
    let below = |list: &[f64], value: f64| {
        list.partition_point(|it| *it <= value) as f64 / list.len() as f64
    };
    let all = one.iter().chain(&other);
    all.map(|&value| (below(&one, value) - below(&other, value)).abs())
        .fold(0.0, f64::max)
}

fn refuse<T>(file: &Path, reason: impl Into<String>) -> Result<T> {
    Err(Error::Input {
        file: file.to_path_buf(),
        reason: reason.into(),
    })
}

fn read(file: &Path) -> Result<String> {
    std::fs::read_to_string(file).or_else(|error| refuse(file, format!("cannot be read: {error}")))
}

/// A time in nanoseconds.
fn time(file: &Path, line: usize, text: &str) -> Result<f64> {
    match text.trim().parse::<f64>() {
        Ok(value) if value.is_finite() && value >= 0.0 => Ok(value),
        Ok(value) => refuse(
            file,
            format!("line {line}: {value} is no time: nanoseconds from 0 on"),
        ),
        Err(_) => refuse(
            file,
            format!("line {line}: '{text}' is no number of nanoseconds"),
        ),
    }
}

/// Reads a file with a time on each line: the whole line, or the last of columns by commas. A first line of names is skipped.
///
/// # Errors
/// [`Error::Input`].
pub(crate) fn samples(file: &Path) -> Result<Vec<f64>> {
    let text = read(file)?;
    let lines = (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty());
    let is_head = |number: usize, line: &str| {
        number == 1 && line.contains(|letter: char| letter.is_ascii_alphabetic() && letter != 'e')
    };
    let mut samples = Vec::new();
    for (number, line) in lines.filter(|(number, line)| !is_head(*number, line)) {
        let last = line.rsplit(',').next().unwrap_or(line);
        samples.push(time(file, number, last)?);
    }
    match samples.len() {
        0 | 1 => refuse(
            file,
            format!(
                "{} arrivals are too few for a density: at least 2",
                samples.len()
            ),
        ),
        _ => Ok(samples),
    }
}

/// Reads a file whose lines have the times of all threads of an iteration, by commas.
fn trace(file: &Path, threads: u32) -> Result<Vec<Vec<Duration>>> {
    let text = read(file)?;
    let lines = (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty());
    let mut iterations = Vec::new();
    for (number, line) in lines {
        let times = line.split(',').map(|text| time(file, number, text));
        let times: Vec<f64> = times.collect::<Result<_>>()?;
        if times.len() != threads as usize {
            return refuse(
                file,
                format!(
                    "line {number}: {} times, and --threads is {threads}",
                    times.len()
                ),
            );
        }
        let times = times.into_iter();
        iterations.push(times.map(|ns| Duration::from_nanos(ns as u64)).collect());
    }
    match iterations.is_empty() {
        true => refuse(file, "no line of arrivals"),
        false => Ok(iterations),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    const TIME: Duration = Duration::from_millis(4);

    fn file(text: &str) -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    #[test]
    fn the_first_thread_is_the_laggard() {
        let drawn = Source::Laggard(4.0).draw(&mut Seeded::new(1), 0, TIME, 3);
        assert_eq!(drawn, [TIME.mul_f64(1.04), TIME, TIME]);
    }

    #[test]
    fn normal_arrivals_have_their_mean_and_deviation_and_are_never_negative() {
        let source = Source::Normal(Duration::from_micros(20));
        let drawn = source.draw(&mut Seeded::new(1), 0, TIME, 20_000);
        let drawn: Vec<f64> = drawn.iter().map(|it| it.as_nanos() as f64).collect();
        let data = Data::new(drawn);
        assert!((data.mean().unwrap() - 4e6).abs() < 600.0);
        assert!((data.std_dev().unwrap() - 2e4).abs() < 600.0);
        let wide = Source::Normal(10 * TIME).draw(&mut Seeded::new(1), 0, TIME, 1000);
        let stopped = wide.iter().filter(|it| it.is_zero()).count();
        assert!((300..600).contains(&stopped), "{stopped}");
    }

    #[test]
    fn draws_of_a_density_are_distributed_as_its_samples() {
        let mut random = Seeded::new(3);
        // Two humps, of which one is twice as high.
        let hump = |random: &mut Seeded, place: u64| {
            let middle = if place.is_multiple_of(3) { 2e6 } else { 5e6 };
            middle + 1e5 * normal(random)
        };
        let samples: Vec<f64> = (0..5_000).map(|place| hump(&mut random, place)).collect();
        let density = Density::of(&samples, Some(Duration::from_micros(10)));
        let draw = |seed| {
            let mut random = Seeded::new(seed);
            (0..50_000)
                .map(|_| density.draw(&mut random))
                .collect::<Vec<_>>()
        };
        assert!(distance(&draw(1), &samples) < 0.02);
        assert_eq!(draw(1), draw(1), "a seed gives the same draws");
        let single: Vec<f64> = (0..5_000)
            .map(|_| 4e6 + 1e6 * normal(&mut random))
            .collect();
        assert!(
            distance(&draw(1), &single) > 0.2,
            "it is no normal distribution"
        );
    }

    #[test]
    fn the_bandwidth_is_silvermans() {
        let samples: Vec<f64> = (0..1000).map(f64::from).collect();
        // Of a uniform distribution the deviation is the smaller of the two.
        let wanted = 0.9 * 288.8 * 1000_f64.powf(-0.2);
        assert!((silverman(&samples) / wanted - 1.0).abs() < 0.01);
        assert_eq!(silverman(&[5.0; 10]), 0.0);
    }

    #[test]
    fn the_distance_is_that_of_the_steps() {
        assert!(distance(&[1.0, 2.0], &[1.0, 2.0]).abs() < 1e-12);
        assert!((distance(&[1.0, 2.0], &[3.0, 4.0]) - 1.0).abs() < 1e-12);
        assert!((distance(&[1.0, 3.0], &[2.0, 3.0]) - 0.5).abs() < 1e-12);
    }

    #[test]
    fn files_have_a_time_a_line() {
        let with_names = file("iteration,rank,thread,ns\n0,0,0,100\n0,0,1,250.5\n");
        assert_eq!(samples(with_names.path()).unwrap(), [100.0, 250.5]);
        assert_eq!(samples(file("7\n\n9\n").path()).unwrap(), [7.0, 9.0]);
        for (text, reason) in [
            ("5\n-1\n", "line 2: -1 is no time"),
            ("5\n", "1 arrivals are too few"),
            ("", "0 arrivals are too few"),
            ("5\nx\n", "line 2: 'x'"),
            ("5\nNaN\n", "line 2: NaN"),
        ] {
            let error = samples(file(text).path()).unwrap_err();
            assert!(error.to_string().contains(reason), "{text:?}: {error}");
            assert_eq!(error.exit_status().code(), 1);
        }
    }

    #[test]
    fn a_trace_has_a_line_for_each_iteration() {
        let two = file("10,20\n30,40\n");
        let source = Source::Trace(trace(two.path(), 2).unwrap());
        let drawn = source.draw(&mut Seeded::new(1), 3, TIME, 2);
        assert_eq!(drawn, [30, 40].map(Duration::from_nanos));
        let error = trace(two.path(), 3).unwrap_err();
        assert!(error.to_string().contains("2 times, and --threads is 3"));
    }
}
