//! The options of the tests that put partitioned communication into patterns.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};

use super::arrivals::{Arrivals, Model};
use super::granularity::{Granularity, Interface};
use super::partitioned::{or, parse_short};
use crate::pattern::grid::Grid;

/// How the threads of a rank communicate in a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Mode {
    /// One thread computes, sends and receives
    Single,
    /// Each thread sends and receives messages of its own
    Multiple,
    /// The threads share partitioned operations, with each policy of --policy
    Partitioned,
    /// The threads write parts into the receivers' memory
    Rma,
}

/// How bytes are counted where modes move different numbers of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Accounting {
    /// All modes move the same bytes, and those are counted
    #[default]
    Equal,
    /// Modes move what the public code of the paper has them move, and all are credited with the same
    Artefact,
}

/// The sides of a grid of ranks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sides(pub Vec<u32>);

impl fmt::Display for Sides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sides: Vec<String> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&sides.join("x"))
    }
}

impl FromStr for Sides {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let side = |piece: &str| match piece.parse() {
            Ok(side @ 1..=1024) => Ok(side),
            _ => Err(format!("'{piece}' is no side from 1 to 1024")),
        };
        let sides: Vec<u32> = text.split('x').map(side).collect::<Result<_, _>>()?;
        match sides.len() {
            2 | 3 => Ok(Self(sides)),
            _ => Err("expected two or three sides, such as 2x2 or 2x2x2".to_owned()),
        }
    }
}

/// What only the tests of patterns have.
#[derive(Debug, Clone, Default, Args)]
pub struct PatternArgs {
    /// The grid of ranks: PxQ (sweep3d) or PxQxR (halo3d) [default: that of -n, else 2x2 or 2x2x2]
    #[arg(long, value_name = "SIDES")]
    pub grid: Option<Sides>,

    /// How threads communicate, several by commas, each a series (sweep3d, halo3d)
    /// [default: single,multiple,partitioned]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LIST")]
    pub mode: Vec<Mode>,

    /// Slices of a rank's pencil, each a message or a partition (sweep3d) [default: 16]
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u32).range(1..=1024))]
    pub slices: Option<u32>,

    /// How bytes are counted, both by a comma (sweep3d) [default: equal]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LIST")]
    pub accounting: Vec<Accounting>,

    /// To how many neighbours of a periodic grid a rank sends: 7 or 27 points, itself among them (cmb) [default: 7]
    #[arg(long, value_name = "POINTS")]
    pub stencil: Option<Stencil>,

    /// Send to as many of the next ranks as a stencil has neighbours, and receive from as many before, as the authors' program does
    /// (cmb) [default: neighbours of a grid]
    #[arg(long)]
    pub ring: bool,

    /// When threads arrive (cmb): laggard:PERCENT%, normal:DEVIATION, kde:FILE (a density over the times of a file, in
    /// nanoseconds), trace:FILE (a line for each iteration) or kernel:NAME (a step of spmv, particles or monte-carlo
    /// instead of sleep) [default: laggard:4%]
    #[arg(long, value_name = "MODEL")]
    pub arrivals: Option<Model>,

    /// Write the arrivals of rank 0's threads to this file (cmb --arrivals kernel:NAME)
    #[arg(long, value_name = "FILE")]
    pub record: Option<PathBuf>,

    /// The bandwidth of a density (cmb) [default: Silverman's]
    #[arg(long, value_name = "DURATION", value_parser = parse_short)]
    pub bandwidth: Option<Duration>,

    /// In which pieces buffers leave, several by commas (cmb): bsp, bsp-all, bins:COUNT, each
    /// [default: bsp,bsp-all,bins:2,each]
    #[arg(long, value_delimiter = ',', value_name = "LIST")]
    pub granularity: Vec<Granularity>,

    /// What carries early pieces, several by commas (cmb) [default: p2p,partitioned]
    #[arg(long, value_enum, value_delimiter = ',', value_name = "LIST")]
    pub interface: Vec<Interface>,
}

/// How many points a stencil has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stencil(pub u32);

impl FromStr for Stencil {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "7" => Ok(Self(7)),
            "27" => Ok(Self(27)),
            _ => Err("stencils have 7 or 27 points".to_owned()),
        }
    }
}

impl PatternArgs {
    /// The part of a job's plan.
    pub(crate) fn plan(&self, grid: &Grid) -> PatternPlan {
        PatternPlan {
            grid: grid.sides().to_vec(),
            modes: or(
                &self.mode,
                &[Mode::Single, Mode::Multiple, Mode::Partitioned],
            ),
            slices: self.slices.unwrap_or(16),
            accounting: or(&self.accounting, &[Accounting::Equal]),
            cmb: self.cmb(),
        }
    }

    fn cmb(&self) -> CmbPlan {
        let own = [
            Granularity::Bsp,
            Granularity::BspAll,
            Granularity::Bins(2),
            Granularity::Each,
        ];
        CmbPlan {
            stencil: self.stencil.map_or(7, |stencil| stencil.0),
            ring: self.ring,
            arrivals: Arrivals {
                model: self.arrivals.clone().unwrap_or(Model::Laggard(4.0)),
                bandwidth: self.bandwidth,
            },
            // Ranks may have another working directory.
            record: self
                .record
                .as_ref()
                .map(|file| std::path::absolute(file).unwrap_or_else(|_| file.clone())),
            granularity: or(&self.granularity, &own),
            interface: or(&self.interface, &[Interface::P2p, Interface::Partitioned]),
        }
    }
}

/// The part of a job's plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct PatternPlan {
    pub grid: Vec<u32>,
    pub modes: Vec<Mode>,
    pub slices: u32,
    pub accounting: Vec<Accounting>,
    pub cmb: CmbPlan,
}

/// The part of it that is of cmb alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct CmbPlan {
    pub stencil: u32,
    /// Neighbours are of a ring, and not of a grid.
    #[serde(default)]
    pub ring: bool,
    pub arrivals: Arrivals,
    pub record: Option<PathBuf>,
    pub granularity: Vec<Granularity>,
    pub interface: Vec<Interface>,
}
