//! The options of `tagwire bench partitioned`.

use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use tagwire_base::config::parse;
use tagwire_pml::Policy;

use super::names::name_of;

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
    /// All do or are faster, by a normal variable whose deviation is the percentage
    Normal,
}

/// Whose metrics are measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Definition {
    /// Tagwire's: one clock for both ranks, and the join of the same round
    #[default]
    Ours,
    /// The paper's: an acknowledgement of each partition, and the mean join of rounds without partitions
    Paper,
    /// One after the other
    Both,
}

impl Definition {
    /// Whether Tagwire's are measured.
    pub(crate) const fn has_ours(self) -> bool {
        matches!(self, Self::Ours | Self::Both)
    }

    /// Whether the paper's are measured.
    pub(crate) const fn has_paper(self) -> bool {
        matches!(self, Self::Paper | Self::Both)
    }
}

/// Whether the message lies in the caches when a round begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Cache {
    /// As the round before left them
    #[default]
    Hot,
    /// Both ranks sweep over so many bytes of other memory before each round (partitioned)
    Cold(u64),
    /// Each operation has other buffers than those before it (collectives)
    Fresh,
}

impl FromStr for Cache {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "hot" => Ok(Self::Hot),
            None if text == "cold" => Ok(Self::Cold(SWEEP)),
            None if text == "fresh" => Ok(Self::Fresh),
            Some(("cold", bytes)) => match parse::bytes(bytes)? {
                bytes @ 8..=SWEEP_MOST => Ok(Self::Cold(bytes)),
                _ => Err(format!("'{bytes}' is not between 8 bytes and 1 GiB")),
            },
            _ => Err(format!("'{text}' is none of hot, cold, cold:BYTES, fresh")),
        }
    }
}

/// Bytes that a cold round sweeps over where that is not told: more than caches of one core have.
pub(crate) const SWEEP: u64 = 8 << 20;
const SWEEP_MOST: u64 = 1 << 30;

/// What only the test of partitioned operations has.
#[derive(Debug, Clone, Default, Args)]
pub struct PartitionedArgs {
    /// Numbers of partitions (partitioned) [default: 32]
    #[arg(long, value_name = "LIST")]
    pub partitions: Option<Counts>,

    /// How partitions are aggregated, several by commas (partitioned): default, each, fixed:COUNT,
    /// bytes:BYTES, model[:DELAY_US], timer:BYTES:US, messages[:COUNT], single [default: default,each,messages,single]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_policy)]
    pub policy: Vec<String>,

    /// How the sending threads compute before a partition is ready (partitioned) [default: sleep]
    #[arg(long, value_enum)]
    pub compute: Option<ComputeMode>,

    /// How long they compute, in seconds or with a unit: us, ms or s; several by commas (partitioned) [default: 0]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_short)]
    pub compute_time: Vec<Duration>,

    /// Which of them take longer, several by commas (partitioned) [default: none]
    #[arg(long, value_name = "LIST", value_enum, value_delimiter = ',')]
    pub noise: Vec<Noise>,

    /// How much longer, in percent, several by commas (partitioned) [default: 4]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_percent)]
    pub noise_pct: Vec<f64>,

    /// Whose metrics are measured (partitioned) [default: ours]
    #[arg(long, value_enum)]
    pub definition: Option<Definition>,

    /// Name the number of partitions and the policy to use for each size, by what is left to wait for
    /// after the last thread (partitioned)
    #[arg(long)]
    pub advise: bool,

    /// How many rounds the receiver has room for, 1 or 2, or both by a comma (partitioned) [default: 1]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = parse_buffers)]
    pub buffers: Vec<u32>,

    /// What the caches hold when a round or an operation begins: hot, cold or cold:BYTES, several by commas
    /// (partitioned); hot, fresh (collectives) [default: hot]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub cache: Vec<Cache>,
}

impl PartitionedArgs {
    /// Whether operations of a collective have other buffers each time.
    pub(crate) fn is_fresh(&self) -> bool {
        self.cache == [Cache::Fresh]
    }

    /// What is to be measured.
    pub(crate) fn plan(&self) -> PartitionedPlan {
        let policies = ["default", "each", "messages", "single"];
        PartitionedPlan {
            partitions: self.partitions.clone().unwrap_or_default().0,
            policies: or(&self.policy, &policies.map(str::to_owned)),
            circumstances: self.circumstances(),
            definition: self.definition.unwrap_or_default(),
            buffers: or(&self.buffers, &[1]),
        }
    }

    /// Returns every combination of the lists, each once.
    pub(super) fn circumstances(&self) -> Vec<Circumstances> {
        let compute = self.compute.unwrap_or_default();
        let mut all = Vec::new();
        for cache in or(&self.cache, &[Cache::Hot]) {
            for time in or(&self.compute_time, &[Duration::ZERO]) {
                for noise in or(&self.noise, &[Noise::None]) {
                    for noise_pct in or(&self.noise_pct, &[4.0]) {
                        // Without computation or a percentage there is no noise.
                        let has_noise = noise_pct > 0.0 && !time.is_zero();
                        let one = Circumstances {
                            compute,
                            time,
                            noise: if has_noise { noise } else { Noise::None },
                            noise_pct,
                            cache,
                        };
                        let is_same = |known: &Circumstances| known.is_same(&one);
                        if !all.iter().any(is_same) {
                            all.push(one);
                        }
                    }
                }
            }
        }
        all
    }
}

/// Returns a list of the command, or a test's own where it is empty.
pub(super) fn or<T: Clone>(list: &[T], own: &[T]) -> Vec<T> {
    if list.is_empty() { own } else { list }.to_vec()
}

/// What threads do before partitions are ready, and what lies in the caches.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(crate) struct Circumstances {
    pub compute: ComputeMode,
    pub time: Duration,
    pub noise: Noise,
    pub noise_pct: f64,
    pub cache: Cache,
}

impl Circumstances {
    /// Whether rounds of both are the same: without noise whatever the percentage.
    fn is_same(&self, other: &Self) -> bool {
        let percent = |one: &Self| match one.noise {
            Noise::None => 0.0,
            _ => one.noise_pct,
        };
        let of = |one: &Self| (one.time, one.noise, one.cache);
        of(self) == of(other) && percent(self) == percent(other)
    }

    /// How threads compute and which take longer, as a row has it; none where they do not.
    pub(crate) fn labels(&self) -> [Option<String>; 2] {
        let (how, time) = (name_of(self.compute), self.time.as_micros());
        let (noise, pct) = (name_of(self.noise), self.noise_pct);
        let labels = [format!("{how}:{time}"), format!("{noise}:{pct}")];
        labels.map(|label| (!self.time.is_zero()).then_some(label))
    }

    /// Bytes that both ranks sweep over before a round.
    pub(crate) fn sweep(&self) -> usize {
        match self.cache {
            Cache::Cold(bytes) => usize::try_from(bytes).unwrap_or(0),
            Cache::Hot | Cache::Fresh => 0,
        }
    }
}

/// The part of a job's plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PartitionedPlan {
    pub partitions: Vec<u32>,
    pub policies: Vec<String>,
    /// At least one.
    pub circumstances: Vec<Circumstances>,
    pub definition: Definition,
    pub buffers: Vec<u32>,
}

impl PartitionedPlan {
    /// Returns the circumstances of a test that has one combination of them.
    pub(crate) fn single(&self) -> Circumstances {
        self.circumstances[0]
    }
}

/// Numbers of partitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counts(Vec<u32>);

impl Counts {
    /// The numbers, in the order of the command.
    pub(crate) fn as_slice(&self) -> &[u32] {
        &self.0
    }
}

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
        let counts: Vec<u32> = text.split(',').map(count).collect::<Result<_, _>>()?;
        let mut places = 0..counts.len();
        match places.find(|&place| counts[..place].contains(&counts[place])) {
            Some(twice) => Err(format!("'{}' is given twice", counts[twice])),
            None => Ok(Self(counts)),
        }
    }
}

/// A policy of aggregation, by its name.
fn parse_policy(name: &str) -> Result<String, String> {
    name.parse::<Policy>().map(|_| name.to_owned())
}

/// A number of rounds that a receiver has room for.
fn parse_buffers(text: &str) -> Result<u32, String> {
    match text.trim() {
        "1" => Ok(1),
        "2" => Ok(2),
        _ => Err(format!("'{text}' is neither 1 nor 2")),
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

/// A number of percent.
fn parse_percent(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(percent) if (0.0..=1000.0).contains(&percent) => Ok(percent),
        _ => Err("not between 0 and 1000".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_combination_is_measured_once() {
        let millis = Duration::from_millis;
        let args = PartitionedArgs {
            compute_time: vec![millis(10), millis(100)],
            noise: vec![Noise::Single, Noise::Uniform],
            noise_pct: vec![0.0, 4.0],
            cache: vec![Cache::Hot, Cache::Cold(SWEEP)],
            ..PartitionedArgs::default()
        };
        let all = args.circumstances();
        // None, single and uniform, for each time and cache.
        assert_eq!(all.len(), 3 * 2 * 2);
        let still = all.iter().filter(|one| one.noise == Noise::None);
        assert!(still.into_iter().all(|one| one.noise_pct == 0.0));
        // Without computation there is no noise.
        let args = PartitionedArgs {
            noise: args.noise,
            noise_pct: vec![1.0, 4.0],
            ..PartitionedArgs::default()
        };
        assert_eq!(args.circumstances().len(), 1);
    }

    #[test]
    fn caches_have_names() {
        assert_eq!("cold".parse(), Ok(Cache::Cold(8 << 20)));
        assert_eq!("cold:64M".parse(), Ok(Cache::Cold(64 << 20)));
        for wrong in ["warm", "cold:1", "cold:2G", "hot:1"] {
            assert!(wrong.parse::<Cache>().is_err(), "{wrong}");
        }
    }
}
