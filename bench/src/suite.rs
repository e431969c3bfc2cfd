//! The tests of `bench`.
//!
//! A test is a file here and a line in `tests!`: its [`Description`], from which the command learns options, sizes and ranks,
//! and a [`Test`](crate::run::Test), which is its own part of a job's plan and what its ranks do. A file may have a family of tests. `docs/benchmarking.md` has the
//! definitions.

use std::fmt;
use std::ops::Deref;
use std::str::FromStr;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use serde::{Deserialize, Serialize};

use crate::args::BenchArgs;
use crate::error::Result;
use crate::pattern::motif::Motif;
use crate::port::collective::Operation;
use crate::port::remote::Access;
use crate::record::Quantity;
use crate::units::comparison::Comparison;

/// What the command has to know of a test.
#[derive(Debug)]
pub struct Description {
    /// Its name in commands and reports.
    pub name: &'static str,
    /// What it measures, in a line.
    pub about: &'static str,
    /// What it is about.
    pub(crate) quantity: Quantity,
    /// Those of its options that not every test has.
    pub(crate) options: &'static [&'static str],
    pub(crate) ranks: Ranks,
    /// The sizes where none are named, as the option takes them.
    pub(crate) sizes: &'static str,
    /// How many rows a size of a job has, where that is more than one.
    pub(crate) rows: fn(&BenchArgs) -> usize,
    /// Refuses what makes no sense together.
    pub(crate) check: fn(&BenchArgs) -> Result<()>,
    /// The operation that all ranks call, where that is the test.
    pub(crate) collective: Option<Operation>,
    /// What is done to another rank's memory, where that is the test.
    pub(crate) access: Option<Access>,
    /// What processes are compared with threads by.
    pub(crate) units: Option<Comparison>,
    /// The pattern of an application.
    pub(crate) motif: Option<Motif>,
}

impl Description {
    /// A test of two ranks, to be told what makes it one.
    pub(crate) const PLAIN: Self = Self {
        name: "",
        about: "",
        quantity: Quantity::LATENCY,
        options: &[],
        ranks: Ranks::TWO,
        sizes: "1:4M",
        rows: |_| 1,
        check: |_| Ok(()),
        collective: None,
        access: None,
        units: None,
        motif: None,
    };

    /// Whether an option of `bench` with this long name has a meaning for the test.
    #[must_use]
    pub fn has_option(&self, name: &str) -> bool {
        self.options.contains(&name) || !is_of_some(name)
    }
}

/// Whether not every test has an option.
pub(crate) fn is_of_some(name: &str) -> bool {
    all().any(|test| test.options.contains(&name))
}

/// How many ranks a test runs on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ranks {
    /// Where nothing is said.
    pub own: u32,
    pub fits: fn(u32) -> bool,
    /// What fits, in words.
    pub wanted: &'static str,
    /// What fits where ranks have others beside their peers.
    pub with_others: Option<&'static Self>,
}

impl Ranks {
    pub(crate) const TWO: Self = Self {
        with_others: Some(&Self::of(2, "at least 3", |ranks| ranks >= 3)),
        ..Self::of(2, "exactly 2", |ranks| ranks == 2)
    };
    pub(crate) const PAIRS: Self = Self {
        with_others: Some(&Self::of(2, "an even number (4 or more) of", |ranks| {
            ranks >= 4 && ranks.is_multiple_of(2)
        })),
        ..Self::of(2, "an even number of", |ranks| {
            ranks >= 2 && ranks.is_multiple_of(2)
        })
    };
    pub(crate) const SEVERAL: Self = Self::of(2, "at least 2", |ranks| ranks >= 2);
    pub(crate) const ANY: Self = Self::of(1, "at least 1", |ranks| ranks >= 1);

    const fn of(own: u32, wanted: &'static str, fits: fn(u32) -> bool) -> Self {
        Self {
            own,
            fits,
            wanted,
            with_others: None,
        }
    }
}

/// Declares the module of each test and enters it into the table.
macro_rules! tests {
    ($($module:ident :: $test:ident,)*) => {
        $(pub(crate) mod $module;)*

        static TESTS: &[&[Description]] = &[$($module::TESTS),*];

        /// The test of a job, with what it has of its own.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub(crate) enum Chosen {
            $($test($module::$test),)*
        }

        /// Hands the list of all tests to a macro.
        macro_rules! each {
            ($call:ident) => {
                $call! { $($module :: $test,)* }
            };
        }
        pub(crate) use each;
    };
}

tests! {
    latency::PingPong,
    bandwidth::Windows,
    message_rate::MessageRate,
    multi_latency::MultiLatency,
    ring::Hops,
    idle::Idle,
    computing::Computing,
    partitioned::Partitioned,
    one_sided::Accesses,
    thread_cost::ThreadCost,
    concurrent_bandwidth::ConcurrentBandwidth,
    concurrent_latency::ConcurrentLatency,
    short_long::ShortLong,
    overlap_neighbours::OverlapNeighbours,
    concurrent_allreduce::ConcurrentAllreduce,
    allreduce_compute::AllreduceCompute,
    halo3d::Halo3d,
    sweep3d::Sweep3d,
    cmb::Cmb,
    device_copy::DeviceCopy,
    collectives::AllRanks,
}

fn all() -> impl Iterator<Item = &'static Description> {
    TESTS.iter().copied().flatten()
}

/// One of the tests.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct TestName(&'static Description);

impl TestName {
    /// Returns all tests, in the order of the help.
    pub fn all() -> impl Iterator<Item = Self> {
        all().map(Self)
    }

    pub(crate) fn is_of(self, family: &[Description]) -> bool {
        family.iter().any(|test| test.name == self.name)
    }

    pub(crate) const fn description(self) -> &'static Description {
        self.0
    }

    /// Reads the name of a test on the command line.
    pub(crate) fn parser() -> impl TypedValueParser<Value = Self> {
        let values = all().map(|test| PossibleValue::new(test.name).help(test.about));
        PossibleValuesParser::new(values).try_map(|name| name.parse::<Self>())
    }
}

impl Deref for TestName {
    type Target = Description;

    fn deref(&self) -> &Description {
        self.0
    }
}

impl PartialEq for TestName {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for TestName {}

impl FromStr for TestName {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = all().find(|test| test.name == name);
        found
            .map(Self)
            .ok_or_else(|| format!("there is no test '{name}'"))
    }
}

impl TryFrom<String> for TestName {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        name.parse()
    }
}

impl From<TestName> for String {
    fn from(test: TestName) -> Self {
        test.name.to_owned()
    }
}

impl fmt::Debug for TestName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl fmt::Display for TestName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}
