//! The options of the tests that compare processes with threads.

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use tagwire_base::config::parse;

use crate::units::Units;

/// How messages are sent in a rate test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
#[non_exhaustive]
pub enum Style {
    /// Windows of nonblocking sends, each acknowledged
    #[default]
    Windows,
    /// One blocking send after the other
    Blocking,
}

/// Which tags the threads of a process use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Tags {
    /// Each has its own
    #[default]
    Own,
    /// All have the same, so that receives match messages of other threads
    Shared,
}

/// When threads begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Begin {
    /// All at once, behind a barrier
    #[default]
    Together,
    /// Each as soon as it runs
    Staggered,
}

/// Who makes progress while a rank computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Progress {
    /// Nobody: the rank has one thread
    #[default]
    None,
    /// A thread of the program that waits in a receive until the end
    BlockedThread,
    /// The library's own thread (setting progress-thread)
    #[value(name = "progress-thread")]
    #[serde(rename = "progress-thread")]
    LibraryThread,
}

/// What only the tests that compare processes with threads have.
#[derive(Debug, Clone, Default, Args)]
pub struct ConcurrentArgs {
    /// What communicates at once, several by commas, each a series: processes:N are N pairs of processes at level
    /// single, threads:N one pair with N threads each at level multiple [default: the test's]
    #[arg(long, value_name = "LIST")]
    pub units: Option<Units>,

    /// How messages are sent (message-rate) [default: windows]
    #[arg(long, value_enum)]
    pub style: Option<Style>,

    /// After how many messages the receiver replies, the first among them (message-rate --style blocking) [default: 256]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..))]
    pub ack_every: Option<u32>,

    /// Which tags the threads of a process use (concurrent-bandwidth) [default: own]
    #[arg(long, value_enum)]
    pub tags: Option<Tags>,

    /// When threads begin (concurrent tests) [default: together]
    #[arg(long, value_enum)]
    pub start: Option<Begin>,

    /// Bytes of the long message (short-long) [default: 4M]
    #[arg(long, value_name = "BYTES", value_parser = parse::bytes)]
    pub long: Option<u64>,

    /// Who makes progress while ranks compute, several by commas, each a series (overlap-neighbours)
    /// [default: none,blocked-thread]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LIST")]
    pub progress: Vec<Progress>,

    /// How often a rank passes over its arrays between post and wait (overlap-neighbours) [default: 50]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub passes: Option<u32>,
}
