//! The options of `tagwire bench partitioned`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use tagwire_base::config::parse;
use tagwire_pml::Policy;

/// How threads compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum ComputeMode {
    /// By arithmetic
    Busy,
    /// By sleeping, which several threads can do on one core
    #[default]
    Sleep,
}

impl ComputeMode {
    /// The name in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Sleep => "sleep",
        }
    }
}

/// Which threads take longer than the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Noise {
    /// None does
    #[default]
    None,
    /// One does, by the whole percentage
    Single,
    /// All do, by anything up to the percentage
    Uniform,
    /// All do, by the absolute value of a normal variable whose deviation is the percentage
    Gaussian,
}

impl Noise {
    /// The name in reports.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Single => "single",
            Self::Uniform => "uniform",
            Self::Gaussian => "gaussian",
        }
    }
}

/// Whether the message lies in the caches when a round begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Cache {
    /// As the round before left them
    #[default]
    Hot,
    /// Both ranks sweep over 8 MiB of other memory before each round (partitioned)
    Cold,
    /// Each operation has other buffers than those before it (collectives)
    Fresh,
}

/// What only the test of partitioned operations has.
#[derive(Debug, Clone, Default, Args)]
pub struct PartitionedArgs {
    /// Numbers of partitions (partitioned) [default: 32]
    #[arg(long, value_name = "LIST")]
    pub partitions: Option<Counts>,

    /// How partitions are aggregated, several by commas (partitioned): default, each, fixed:COUNT,
    /// bytes:BYTES, model[:DELAY_US], timer:BYTES:US, messages[:COUNT], single [default: default,each,messages,single]
    #[arg(long, value_name = "LIST")]
    pub policy: Option<Policies>,

    /// How the sending threads compute before a partition is ready (partitioned) [default: sleep]
    #[arg(long, value_enum)]
    pub compute: Option<ComputeMode>,

    /// How long they compute, in seconds or with a unit: us, ms or s (partitioned) [default: 0]
    #[arg(long, value_name = "DURATION", value_parser = parse_short)]
    pub compute_time: Option<Duration>,

    /// Which of them take longer (partitioned) [default: none]
    #[arg(long, value_enum)]
    pub noise: Option<Noise>,

    /// How much longer, in percent (partitioned) [default: 4]
    #[arg(long, value_name = "PERCENT")]
    pub noise_pct: Option<f64>,

    /// Name the number of partitions and the policy to use for each size, by what is left to wait for
    /// after the last thread (partitioned)
    #[arg(long)]
    pub advise: bool,

    /// How many rounds the receiver has room for, 1 or 2, or both by a comma (partitioned) [default: 1]
    #[arg(long, value_name = "LIST")]
    pub buffers: Option<Buffers>,

    /// What the caches hold when a round or an operation begins (partitioned, collectives) [default: hot]
    #[arg(long, value_enum)]
    pub cache: Option<Cache>,
}

impl PartitionedArgs {
    /// The long names of these options, and whether each was given.
    pub(crate) const fn given(&self) -> [(&'static str, bool); 9] {
        [
            ("partitions", self.partitions.is_some()),
            ("policy", self.policy.is_some()),
            ("compute", self.compute.is_some()),
            ("compute-time", self.compute_time.is_some()),
            ("noise", self.noise.is_some()),
            ("noise-pct", self.noise_pct.is_some()),
            ("buffers", self.buffers.is_some()),
            ("cache", self.cache.is_some()),
            ("advise", self.advise),
        ]
    }

    /// Whether this is the long name of one of these options.
    pub(crate) fn has_option(name: &str) -> bool {
        let options = Self::default().given();
        options.iter().any(|(option, _)| *option == name)
    }

    /// What is to be measured.
    pub(crate) fn plan(&self) -> PartitionedPlan {
        let policies = self.policy.clone().unwrap_or_default();
        PartitionedPlan {
            partitions: self.partitions.clone().unwrap_or_default().0,
            policies: policies.0.iter().map(ToString::to_string).collect(),
            compute: self.compute.unwrap_or_default(),
            time: self.compute_time.unwrap_or_default(),
            noise: self.noise.unwrap_or_default(),
            noise_pct: self.noise_pct.unwrap_or(4.0).clamp(0.0, 1000.0),
            cache: self.cache.unwrap_or_default(),
            buffers: self.buffers.clone().unwrap_or_default().0,
        }
    }
}

/// The part of a job's plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PartitionedPlan {
    pub partitions: Vec<u32>,
    pub policies: Vec<String>,
    pub compute: ComputeMode,
    pub time: Duration,
    pub noise: Noise,
    pub noise_pct: f64,
    pub cache: Cache,
    pub buffers: Vec<u32>,
}

/// Numbers of rounds that a receiver has room for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffers(Vec<u32>);

impl Default for Buffers {
    fn default() -> Self {
        Self(vec![1])
    }
}

impl FromStr for Buffers {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let count = |piece: &str| match piece.trim() {
            "1" => Ok(1),
            "2" => Ok(2),
            _ => Err(format!("'{piece}' is neither 1 nor 2")),
        };
        text.split(',')
            .map(count)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

/// Numbers of partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts(Vec<u32>);

impl Default for Counts {
    fn default() -> Self {
        Self(vec![32])
    }
}

impl FromStr for Counts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let count = |piece: &str| match piece.trim().parse() {
            Ok(count @ 1..=32_768) => Ok(count),
            _ => Err(format!(
                "'{piece}' is no number of partitions from 1 to 32768"
            )),
        };
        text.split(',')
            .map(count)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

/// Policies of aggregation, each with the name by which it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policies(Vec<PolicyName>);

/// A policy's name.
#[derive(Debug, Clone, PartialEq, Eq)]
struct PolicyName(String);

impl fmt::Display for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Default for Policies {
    fn default() -> Self {
        let names = ["default", "each", "messages", "single"];
        Self(names.map(|name| PolicyName(name.to_owned())).into())
    }
}

impl FromStr for Policies {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let name = |name: &str| name.parse::<Policy>().map(|_| PolicyName(name.to_owned()));
        text.split(',')
            .map(name)
            .collect::<Result<_, _>>()
            .map(Self)
    }
}

/// A duration with its unit, or a number of seconds; none is one too.
pub(crate) fn parse_short(text: &str) -> Result<Duration, String> {
    let seconds = match text.parse::<f64>() {
        Ok(seconds) => seconds,
        Err(_) => parse::duration(text)?.as_secs_f64(),
    };
    if !(0.0..=100.0).contains(&seconds) {
        return Err("not between 0 and 100 s".to_owned());
    }
    Ok(Duration::from_secs_f64(seconds))
}
