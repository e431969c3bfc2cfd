//! `tagwire match threads`: the receives of a process whose threads exchange messages with those of the processes around it.
//!
//! A process is a block of threads in a grid of one thread a cell, as Schonbein and others have it (Euro-Par 2018): each thread
//! receives a message from every cell of the stencil that is outside of the block. The length of the list is a property of
//! the block and the stencil alone.

use std::fmt::{self, Write as _};
use std::str::FromStr;

use clap::Args;
use serde::Serialize;
use tagwire_matching::{Engines, Envelope};

use crate::callgrind::option;
use crate::error::{Error, Result};
use crate::order::{Arrivals, DrainArgs, Order, Row, drain, envelope, finish, head, line};
use crate::output::Circumstances;

/// The options of the test.
#[derive(Debug, Clone, Args)]
pub struct ThreadsArgs {
    /// Threads of a process along two or three axes [default: of 32x32, 64x32, 8x8x4 and 1x1x256 those with such axes]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    grid: Vec<Grid>,

    /// Cells of the stencil: 5 or 9 on two axes, 7 or 27 on three [default: both of a grid's axes]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    stencil: Vec<Stencil>,

    /// Orders of arrival: same, reverse, shuffle, window:K, merge:S, laggard:P
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "shuffle"
    )]
    order: Vec<Order>,

    #[command(flatten)]
    drain: DrainArgs,
}

pub(crate) const AFTER_HELP: &str = "\
receiving: threads of the process with a neighbour outside; sending: cells outside that are somebody's neighbour; entries: the
messages between them, each with a tag of its own, which is the length of the list. Each grid is combined with the stencils of as many
axes, and one without is refused. depth: receives that a list compares for each message; theory: its mean for this order.

Exit status: 0 good, 1 usage, 2 an output could not be written, 3 an engine gave an answer that its grade forbids.

Examples:
  tagwire match threads
  tagwire match threads --grid 32x32 --stencil 9 --order same,shuffle,merge:16 --engine list,bins";

/// Threads along each axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Grid(Vec<u32>);

/// The cells whose values a thread needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Stencil {
    axes: usize,
    /// Whether cells across edges and corners are among them.
    is_full: bool,
}

/// A process with its neighbourhood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Process {
    grid: String,
    stencil: u32,
    receiving: usize,
    sending: usize,
}

impl FromStr for Grid {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let sides: Option<Vec<u32>> = text.split('x').map(|side| side.parse().ok()).collect();
        let sides = sides
            .filter(|sides| (2..=3).contains(&sides.len()) && sides.iter().all(|side| *side > 0));
        let product = |sides: &Vec<u32>| {
            sides
                .iter()
                .try_fold(1_u32, |all, side| all.checked_mul(*side))
        };
        let sides = sides.filter(|sides| product(sides).is_some_and(|all| all <= MOST));
        sides.map(Self).ok_or_else(|| {
            format!("expected two or three sides of up to {MOST} threads, as in 32x32 or 8x8x4")
        })
    }
}

impl fmt::Display for Grid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sides: Vec<String> = self.0.iter().map(u32::to_string).collect();
        f.write_str(&sides.join("x"))
    }
}

impl FromStr for Stencil {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (axes, is_full) = match text {
            "5" => (2, false),
            "9" => (2, true),
            "7" => (3, false),
            "27" => (3, true),
            _ => return Err("the stencils are 5, 9, 7, 27".to_owned()),
        };
        Ok(Self { axes, is_full })
    }
}

impl Stencil {
    const fn cells(self) -> u32 {
        match (self.axes, self.is_full) {
            (2, false) => 5,
            (2, true) => 9,
            (_, false) => 7,
            (_, true) => 27,
        }
    }

    /// The offsets of the cells around a thread.
    fn offsets(self) -> impl Iterator<Item = [i64; 3]> {
        let depth = if self.axes == 3 { -1..=1 } else { 0..=0 };
        let all = depth.flat_map(|z| (-1..=1).flat_map(move |y| (-1..=1).map(move |x| [x, y, z])));
        all.filter(move |offset: &[i64; 3]| {
            let far = offset.iter().map(|way| way.abs()).sum::<i64>();
            far == 1 || (self.is_full && far > 1)
        })
    }
}

/// The process and the messages that it receives, thread by thread: from which process around it, and with which number.
fn messages(grid: &Grid, stencil: Stencil) -> (Process, Vec<Envelope>) {
    let sides: [i64; 3] =
        std::array::from_fn(|axis| i64::from(grid.0.get(axis).copied().unwrap_or(1)));
    let (mut receiving, mut sending, mut messages) = (0, Vec::new(), Vec::new());
    for z in 0..sides[2] {
        for y in 0..sides[1] {
            for x in 0..sides[0] {
                let before = messages.len();
                for [dx, dy, dz] in stencil.offsets() {
                    let cell = [x + dx, y + dy, z + dz];
                    // Processes lie around this one as cells do around a thread.
                    let process = cell.iter().zip(sides).fold(0, |process, (at, side)| {
                        process * 3 + u32::from(*at >= 0) + u32::from(*at >= side)
                    });
                    if process != OWN {
                        messages.push(envelope(process, messages.len() as u32));
                        sending.push(cell);
                    }
                }
                receiving += usize::from(messages.len() > before);
            }
        }
    }
    sending.sort_unstable();
    sending.dedup();
    let process = Process {
        grid: grid.to_string(),
        stencil: stencil.cells(),
        receiving,
        sending: sending.len(),
    };
    (process, messages)
}

impl ThreadsArgs {
    /// The grids, each with its stencils: what was given, in its order, and the others of the defaults that go with it.
    ///
    /// # Errors
    /// A grid without a stencil of as many axes, or a stencil without a grid.
    fn cases(&self) -> Result<Vec<(Grid, Stencil)>> {
        let grids: Vec<Grid> = match self.grid.is_empty() {
            true => GRIDS.iter().filter_map(|text| text.parse().ok()).collect(),
            false => self.grid.clone(),
        };
        let stencils: Vec<Stencil> = match self.stencil.is_empty() {
            true => STENCILS
                .iter()
                .filter_map(|text| text.parse().ok())
                .collect(),
            false => self.stencil.clone(),
        };
        let fits = |grid: &Grid, stencil: &Stencil| stencil.axes == grid.0.len();
        let alone = self
            .grid
            .iter()
            .find(|grid| !stencils.iter().any(|one| fits(grid, one)));
        if let Some(grid) = alone {
            let cells: Vec<String> = stencils.iter().map(|one| one.cells().to_string()).collect();
            let (axes, cells) = (grid.0.len(), cells.join(" or "));
            return Err(Error::Usage(format!(
                "a grid of {axes} axes, {grid}, has no stencil of {cells} points: those of two axes have 5 or 9, of three 7 or 27"
            )));
        }
        let alone = self
            .stencil
            .iter()
            .find(|stencil| !grids.iter().any(|one| fits(one, stencil)));
        if let Some(stencil) = alone {
            let (cells, axes) = (stencil.cells(), stencil.axes);
            return Err(Error::Usage(format!(
                "a stencil of {cells} points is one of {axes} axes, and no grid has so many"
            )));
        }
        let of_grid = |grid: Grid| {
            let own = stencils.iter().filter(|stencil| fits(&grid, stencil));
            let own: Vec<_> = own.map(|stencil| (grid.clone(), *stencil)).collect();
            own
        };
        Ok(grids.into_iter().flat_map(of_grid).collect())
    }
}

/// Drains the lists that are asked for; returns the exit status.
pub(crate) fn run(args: &ThreadsArgs, known: &Engines, from: &Circumstances) -> Result<u8> {
    args.drain.check()?;
    let mut rows: Vec<Row<Process>> = Vec::new();
    for (grid, stencil) in args.cases()? {
        let (process, receives) = messages(&grid, stencil);
        for order in &args.order {
            let words = [
                "threads".to_owned(),
                option("grid", &process.grid),
                option("stencil", process.stencil),
                option("order", order),
            ];
            rows.extend(drain(
                (&process, &words[..]),
                &receives,
                (&order.to_string(), &Arrivals::Order(*order)),
                &args.drain,
                known,
            )?);
        }
    }
    let mut text =
        String::from("# tagwire match threads: the receives of a process of threads are drained\n");
    let _ = write!(
        text,
        "{:<12}{:>8}{:>10}{:>9}  {}",
        "grid",
        "stencil",
        "receiving",
        "sending",
        head()
    );
    for row in &rows {
        let Process {
            grid,
            stencil,
            receiving,
            sending,
        } = &row.case;
        let _ = write!(
            text,
            "{grid:<12}{stencil:>8}{receiving:>10}{sending:>9}  {}",
            line(row)
        );
    }
    finish("threads", &text, &rows, &args.drain, from)
}

/// The number of the process itself among those around it: the middle of 3 x 3 x 3.
const OWN: u32 = 13;
/// What there is by default.
const GRIDS: [&str; 4] = ["32x32", "64x32", "8x8x4", "1x1x256"];
const STENCILS: [&str; 4] = ["5", "9", "7", "27"];
/// Most threads of a process.
const MOST: u32 = 1 << 16;

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use super::*;

    /// The table of the paper: grid, stencil, receiving, sending, length of the list.
    #[test]
    fn threads_and_lengths_are_those_of_the_decomposition() {
        for (grid, stencil, receiving, sending, length) in [
            ("32x32", "5", 124, 128, 128),
            ("64x32", "5", 188, 192, 192),
            ("32x32", "9", 124, 132, 380),
            ("64x32", "9", 188, 196, 572),
            ("8x8x4", "7", 184, 256, 256),
            ("1x1x256", "7", 256, 1026, 1026),
            ("8x8x4", "27", 184, 344, 2072),
            ("1x1x256", "27", 256, 2066, 6146),
        ] {
            let stencil: Stencil = stencil.parse().unwrap();
            let (process, messages) = messages(&grid.parse().unwrap(), stencil);
            assert_eq!(
                (process.receiving, process.sending),
                (receiving, sending),
                "{grid}"
            );
            assert_eq!(messages.len(), length, "{grid}");
            // On two axes the third is flat.
            let most = if stencil.axes == 2 { 8 } else { 26 };
            let mut sources: Vec<u32> = messages.iter().map(|one| one.source.as_u32()).collect();
            sources.sort_unstable();
            sources.dedup();
            assert!(
                sources.len() <= most && !sources.contains(&OWN),
                "{sources:?}"
            );
        }
    }

    #[test]
    fn what_is_no_grid_is_refused() {
        for text in ["32", "0x4", "1x2x3x4", "axb", "65536x65536"] {
            assert!(text.parse::<Grid>().is_err(), "{text}");
        }
    }

    fn cases(grid: &str, stencil: &str) -> Result<Vec<String>> {
        let list = |text: &str| -> Vec<String> {
            let words = text.split(',').filter(|word| !word.is_empty());
            words.map(str::to_owned).collect()
        };
        let args = ThreadsArgs {
            grid: list(grid)
                .iter()
                .map(|text| text.parse().unwrap())
                .collect(),
            stencil: list(stencil)
                .iter()
                .map(|text| text.parse().unwrap())
                .collect(),
            order: Vec::new(),
            drain: crate::order::DrainArgs::without_engines(1),
        };
        let cases = args.cases()?.into_iter();
        Ok(cases
            .map(|(grid, stencil)| format!("{grid}/{}", stencil.cells()))
            .collect())
    }

    #[test]
    fn a_grid_without_a_stencil_of_its_axes_is_refused() {
        assert_eq!(
            cases("", "").unwrap(),
            [
                "32x32/5",
                "32x32/9",
                "64x32/5",
                "64x32/9",
                "8x8x4/7",
                "8x8x4/27",
                "1x1x256/7",
                "1x1x256/27"
            ]
        );
        assert_eq!(cases("8x8", "").unwrap(), ["8x8/5", "8x8/9"]);
        assert_eq!(cases("", "9").unwrap(), ["32x32/9", "64x32/9"]);
        assert_eq!(cases("8x8,4x4x4", "27,5").unwrap(), ["8x8/5", "4x4x4/27"]);
        for (grid, stencil, told) in [
            (
                "8x8",
                "27",
                "a grid of 2 axes, 8x8, has no stencil of 27 points",
            ),
            (
                "4x4x4",
                "5,9",
                "a grid of 3 axes, 4x4x4, has no stencil of 5 or 9 points",
            ),
            (
                "8x8",
                "5,27",
                "a stencil of 27 points is one of 3 axes, and no grid has so many",
            ),
        ] {
            let refused = cases(grid, stencil).unwrap_err();
            assert_eq!(refused.exit_status(), 1);
            assert!(refused.to_string().contains(told), "{refused}");
        }
    }
}
