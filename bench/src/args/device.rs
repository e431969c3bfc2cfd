//! The options of the tests whose vectors come from a device.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use super::partitioned::parse_short;
use crate::error::{Error, Result};

/// How a vector that comes from a device is reduced.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Algorithm {
    /// The allreduce of the library, after the whole vector
    Native,
    /// A reduce-scatter in each group, an allreduce of each lane, an allgather in each group; after the whole vector
    Multilane,
    /// Partitioned: a reduction of each partition in its group once it has come, and an allreduce of its lane then
    Pr,
}

/// What produces vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Producer {
    /// A thread of each rank: a stand-in for a device, which sleeps instead of computing and paces its copies
    #[default]
    Engine,
}

/// Who starts the reduction of a partition that has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Callback {
    /// The device's thread
    Direct,
    /// The thread that waits for the result, to which the device's thread reports it
    Deferred,
}

/// Where the copies of a device stand.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum CopyStream {
    /// In the stream of the computation: the next partition waits for the copy of the last
    Same,
    /// In a stream of their own
    #[default]
    Other,
}

/// Bytes per second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DataRate(pub f64);

/// Their units, the longest first.
const RATES: [(&str, f64); 4] = [("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3), ("B/s", 1.0)];

impl FromStr for DataRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = RATES
            .iter()
            .find_map(|(unit, by)| Some((text.strip_suffix(unit)?.parse::<f64>().ok()?, by)));
        match found {
            Some((number, by)) if (1e3..=1e12).contains(&(number * by)) => Ok(Self(number * by)),
            Some(_) => Err("not between 1kB/s and 1000GB/s".to_owned()),
            None => Err("expected a rate such as 10GB/s or 500MB/s".to_owned()),
        }
    }
}

impl fmt::Display for DataRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits = RATES.iter().find(|(_, by)| self.0 >= *by);
        let (unit, by) = fits.unwrap_or(&RATES[3]);
        write!(f, "{}{unit}", self.0 / by)
    }
}

/// What only the tests with a device have.
#[derive(Debug, Clone, Default, Args)]
pub struct DeviceArgs {
    /// How vectors of a device are reduced, several by commas, each a series (allreduce) [default: native,multilane,pr, where
    /// there is a --producer]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LIST")]
    pub algorithm: Vec<Algorithm>,

    /// Ranks of a group, which are neighbours; as many partitions a vector has (allreduce --algorithm)
    /// [default: half of the ranks where that is a whole number, else all]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub group_size: Option<u32>,

    /// What produces the vectors (allreduce, device-copy) [default: engine, where there is an --algorithm]
    #[arg(long, value_enum)]
    pub producer: Option<Producer>,

    /// Bytes per second of the engine's copies (--producer engine) [default: 10GB/s]
    #[arg(long, value_name = "RATE")]
    pub engine_rate: Option<DataRate>,

    /// What the engine needs to begin a copy, and the computation of a partition (--producer engine) [default: 8us]
    #[arg(long, value_name = "DURATION", value_parser = parse_short)]
    pub engine_latency: Option<Duration>,

    /// Neighbouring ranks that have one engine between them, whose computations and copies take turns (--producer engine)
    /// [default: 1]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub engine_sharing: Option<u32>,

    /// Arithmetic on each element, of which the engine does one step in the time in which it copies the element
    /// (allreduce --algorithm) [default: 1]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    pub flops_per_element: Option<u32>,

    /// Who starts the reduction of a partition, both by a comma (allreduce --algorithm pr) [default: deferred]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LIST")]
    pub callback: Vec<Callback>,

    /// Where the engine's copies stand (allreduce --algorithm) [default: other]
    #[arg(long, value_enum)]
    pub copy_stream: Option<CopyStream>,
}

/// The sizes where none are named, as the option takes them: those of the paper.
pub(crate) const SIZES: &str = "40:47M";

/// One of the series of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Series {
    /// Vectors are reduced; by partitions, with who starts that.
    Reduced(Algorithm, Option<Callback>),
    /// They are copied in so many pieces.
    Copied(u32),
}

/// The part of a job's plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct DevicePlan {
    pub engine: EnginePlan,
    /// Those of allreduce.
    pub algorithms: Vec<Algorithm>,
    /// Where that was told.
    pub group_size: Option<u32>,
    pub callbacks: Vec<Callback>,
    /// Those of device-copy.
    pub copies: Vec<u32>,
}

/// What the stand-in for a device is like.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct EnginePlan {
    pub rate: DataRate,
    pub latency: Duration,
    /// How many ranks have one between them.
    pub sharing: u32,
    pub flops_per_element: u32,
    pub copy_stream: CopyStream,
}

impl DevicePlan {
    /// Whether the device's thread calls the library beside the one that waits.
    pub(crate) fn any_thread(&self) -> bool {
        self.algorithms.contains(&Algorithm::Pr) && self.callbacks.contains(&Callback::Direct)
    }

    /// The series, in the order of the command.
    pub(crate) fn series(&self) -> Vec<Series> {
        let mut all = Vec::new();
        for &algorithm in &self.algorithms {
            let of = |callback| Series::Reduced(algorithm, callback);
            match algorithm {
                Algorithm::Pr => all.extend(self.callbacks.iter().copied().map(Some).map(of)),
                _ => all.push(of(None)),
            }
        }
        all.extend(self.copies.iter().copied().map(Series::Copied));
        all
    }

    /// Returns how many ranks a group has among so many.
    ///
    /// # Errors
    /// Where a group size that was asked for does not divide them.
    pub(crate) fn group_among(&self, ranks: u32) -> Result<u32> {
        let own = match ranks.is_multiple_of(2) {
            true => ranks / 2,
            false => ranks,
        };
        divides("group-size", self.group_size.unwrap_or(own), ranks)
    }

    /// Returns how many of so many ranks share an engine.
    ///
    /// # Errors
    /// Where that does not divide them.
    pub(crate) fn sharing_among(&self, ranks: u32) -> Result<u32> {
        divides("engine-sharing", self.engine.sharing, ranks)
    }
}

/// Returns the value of an option that divides so many ranks.
fn divides(option: &str, size: u32, ranks: u32) -> Result<u32> {
    if ranks.is_multiple_of(size) {
        return Ok(size);
    }
    let fitting = (1..=ranks).filter(|size| ranks.is_multiple_of(*size));
    let fitting: Vec<String> = fitting.map(|size| size.to_string()).collect();
    Err(Error::Usage(format!(
        "--{option} {size} does not divide {ranks} ranks: it is one of {}",
        fitting.join(", ")
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_decimal_units() {
        for (text, bytes) in [
            ("10GB/s", 10e9),
            ("7.5GB/s", 7.5e9),
            ("500MB/s", 5e8),
            ("1kB/s", 1e3),
        ] {
            let rate: DataRate = text.parse().unwrap();
            assert_eq!((rate.0, rate.to_string().as_str()), (bytes, text));
        }
        for wrong in [
            "10", "GB/s", "0GB/s", "-1GB/s", "10GiB/s", "1TB/s", "NaNGB/s",
        ] {
            assert!(wrong.parse::<DataRate>().is_err(), "{wrong}");
        }
    }
}
