//! `tagwire match threads`: the receives of a process whose threads exchange messages with those of the processes around it.
//!
//! A process is a block of threads in a grid of one thread a cell, as Schonbein and others have it (Euro-Par 2018): each thread
//! receives a message from every cell of the stencil that is outside of the block. The length of the list is a property of
//! the block and the stencil alone.

mod race;

use std::collections::BTreeMap;
use std::fmt::{self, Write as _};
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;
use serde::Serialize;
use tagwire_matching::{Engines, Envelope};

use self::race::{Race, race};
use crate::error::{Error, Result};
use crate::order::{
    Arrivals, DrainArgs, Order, Row, Seen, drain, envelope, finish, head, is_path, line,
};
use crate::output::Circumstances;
use crate::real::RealArgs;
use crate::trace::{make_folder, shown};
use crate::valgrind::option;

/// The options of the test.
#[derive(Debug, Clone, Args)]
pub struct ThreadsArgs {
    /// Threads of a process along two or three axes [default: of 32x32, 64x32, 8x8x4 and 1x1x256 those with such axes]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    grid: Vec<Grid>,

    /// Cells of the stencil: 5 or 9 on two axes, 7 or 27 on three [default: both of a grid's axes]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    stencil: Vec<Stencil>,

    /// Where the order of arrival comes from: model (that of --order), race (threads of two real ranks), or a file with orders
    #[arg(long, value_name = "SOURCE", default_value = "model")]
    order_from: Source,

    /// Orders of arrival of the model: same, reverse, shuffle, window:K, merge:S, laggard:P [default: shuffle]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    order: Vec<Order>,

    /// With a race: also write the trace of the receiving rank, FOLDER/threads-GRID-STENCIL.0.twm
    #[arg(long, value_name = "FOLDER")]
    traces: Option<PathBuf>,

    #[command(flatten)]
    ranks: RealArgs,

    #[command(flatten)]
    drain: DrainArgs,
}

pub(crate) const AFTER_HELP: &str = "\
receiving: threads of the process with a neighbour outside; sending: cells outside that are somebody's neighbour; entries: the
messages between them, each with a tag of its own, which is the length of the list. Each grid is combined with the stencils of as many
axes, and one without is refused. depth: receives that a list compares for each message; theory: its mean for this order.

--order-from race: two ranks of a job in this process, over --transport, play the process and all around it. Each receiving thread
of the one posts its receives, then each sending thread of the other sends its messages, and the drains are what the engine of the
first was given. Which order that is depends on the machine, its processors and what else it does; rows have no theory, and two runs
are not alike. --traces keeps it, for --order-from FILE on any machine.
--order-from FILE: a trace or lines of numbers, as match order --order takes them.

Exit status: 0 good, 1 usage, 2 a file cannot be read or has no such order, ranks cannot be run, or an output could not be written, 3
an engine gave an answer that its grade forbids.

Examples:
  tagwire match threads
  tagwire match threads --grid 32x32 --stencil 9 --order same,shuffle,merge:16 --engine list,bins
  tagwire match threads --grid 32x32 --order-from race --traces seen
  tagwire match threads --grid 32x32 --stencil 9 --order-from seen/threads-32x32-9.0.twm";

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

/// Where an order of arrival comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    Model,
    Race,
    File(PathBuf),
}

/// The same, with what is in the file.
#[derive(Debug)]
enum Opened {
    Model,
    Race,
    /// By the name of the file.
    File(String, Seen),
}

/// A process with its neighbourhood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Process {
    grid: String,
    stencil: u32,
    receiving: usize,
    sending: usize,
    /// What the threads ran on that raced.
    #[serde(skip_serializing_if = "Option::is_none")]
    race: Option<Race>,
}

/// What a process receives in a step.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) process: Process,
    /// The messages, by their numbers; a message's tag is its number, and its source the process around this one that sends it.
    pub(crate) messages: Vec<Envelope>,
    /// The numbers of what each receiving thread receives, and of what each sending cell sends.
    pub(crate) received: Vec<Vec<u32>>,
    pub(crate) sent: Vec<Vec<u32>>,
}

impl FromStr for Source {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "model" => Ok(Self::Model),
            "race" => Ok(Self::Race),
            _ if is_path(text) => Ok(Self::File(text.into())),
            _ => Err("it is model, race, or a file, with a slash or a dot in its name".to_owned()),
        }
    }
}

impl Source {
    /// Reads the file, where it is one.
    fn open(&self, partial: bool) -> Result<Opened> {
        match self {
            Self::Model => Ok(Opened::Model),
            Self::Race => Ok(Opened::Race),
            Self::File(path) => Ok(Opened::File(shown(path), Seen::read(path, partial)?)),
        }
    }
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

impl Grid {
    /// Returns a grid of these sides, two or three, none of which is 0.
    pub(crate) fn new(sides: &[u32]) -> Self {
        Self(sides.to_vec())
    }

    /// The sides along three axes: a flat grid has one layer.
    fn sides(&self) -> [u32; 3] {
        std::array::from_fn(|axis| self.0.get(axis).copied().unwrap_or(1))
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

    /// Returns that of two or three axes, with the cells across faces or with all around.
    pub(crate) const fn new(axes: usize, is_full: bool) -> Self {
        Self { axes, is_full }
    }

    /// Returns how many messages a process receives that has these threads.
    pub(crate) fn messages(self, grid: &Grid) -> u128 {
        let sides = grid.sides().map(u128::from);
        let outside = |offset: [i64; 3]| {
            // Those whose cell is one of the process's.
            let inside = sides.iter().zip(offset);
            let inside = inside.map(|(side, step)| side - u128::from(step.unsigned_abs()));
            sides.iter().product::<u128>() - inside.product::<u128>()
        };
        self.offsets().map(outside).sum()
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

impl Exchange {
    /// Returns what a process receives that has these threads, thread by thread.
    pub(crate) fn new(grid: &Grid, stencil: Stencil) -> Self {
        let sides = grid.sides().map(i64::from);
        let (mut messages, mut received) = (Vec::new(), Vec::new());
        let mut sent: BTreeMap<[i64; 3], Vec<u32>> = BTreeMap::new();
        for z in 0..sides[2] {
            for y in 0..sides[1] {
                for x in 0..sides[0] {
                    let mut own = Vec::new();
                    for [dx, dy, dz] in stencil.offsets() {
                        let cell = [x + dx, y + dy, z + dz];
                        // Processes lie around this one as cells do around a thread.
                        let process = cell.iter().zip(sides).fold(0, |process, (at, side)| {
                            process * 3 + u32::from(*at >= 0) + u32::from(*at >= side)
                        });
                        if process != OWN {
                            let number = messages.len() as u32;
                            messages.push(envelope(process, number));
                            sent.entry(cell).or_default().push(number);
                            own.push(number);
                        }
                    }
                    received.extend((!own.is_empty()).then_some(own));
                }
            }
        }
        let process = Process {
            grid: grid.to_string(),
            stencil: stencil.cells(),
            receiving: received.len(),
            sending: sent.len(),
            race: None,
        };
        Self {
            process,
            messages,
            received,
            sent: sent.into_values().collect(),
        }
    }
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

    /// Refuses options that the source of the order has no use for.
    fn check(&self) -> Result<()> {
        self.drain.check()?;
        let is_race = self.order_from == Source::Race;
        if self.order_from != Source::Model && !self.order.is_empty() {
            return Err(Error::Usage(
                "--order is that of --order-from model, and another source was given".to_owned(),
            ));
        }
        if !is_race && self.traces.is_some() {
            return Err(Error::Usage(
                "--traces is of what --order-from race has seen".to_owned(),
            ));
        }
        if is_race && self.drain.counts_instructions() {
            return Err(Error::Usage(
                "no two races are alike, and --count instructions compares two runs: keep one with --traces, and take it as --order-from FILE"
                    .to_owned(),
            ));
        }
        match is_race {
            true => self.ranks.check(self.ranks.way()),
            false => self.ranks.check_unused("--order-from race"),
        }
    }

    /// Where the drains of an exchange come from, each with its name and with the option that names it.
    fn arrivals(
        &self,
        exchange: &mut Exchange,
        source: &Opened,
        known: &Engines,
    ) -> Result<Vec<(String, String, Arrivals)>> {
        match source {
            Opened::Model => {
                let orders: &[Order] = match &self.order[..] {
                    [] => &[Order::Shuffle],
                    given => given,
                };
                let named = |order: &Order| {
                    let option = option("order", order);
                    (order.to_string(), option, Arrivals::Order(*order))
                };
                Ok(orders.iter().map(named).collect())
            }
            Opened::File(name, seen) => {
                let drains = seen.drains(exchange.messages.len() as u32, self.drain.rounds())?;
                let option = option("order-from", name);
                Ok(vec![(name.clone(), option, Arrivals::Drains(drains))])
            }
            Opened::Race => {
                let raced = race(exchange, self.drain.rounds(), self.ranks.way(), known)?;
                if let Some(folder) = &self.traces {
                    make_folder(folder)?;
                    let Process { grid, stencil, .. } = &exchange.process;
                    let name = format!("threads-{grid}-{stencil}.0.twm");
                    raced.trace.write(&folder.join(name))?;
                }
                exchange.process.race = Some(raced.race);
                let (name, option) = ("race".to_owned(), option("order-from", "race"));
                Ok(vec![(name, option, Arrivals::Drains(raced.drains))])
            }
        }
    }
}

/// Drains the lists that are asked for; returns the exit status.
pub(crate) fn run(args: &ThreadsArgs, known: &Engines, from: &Circumstances) -> Result<u8> {
    args.check()?;
    let source = args.order_from.open(args.drain.partial())?;
    let mut rows: Vec<Row<Process>> = Vec::new();
    for (grid, stencil) in args.cases()? {
        let mut exchange = Exchange::new(&grid, stencil);
        for (name, order, arrivals) in args.arrivals(&mut exchange, &source, known)? {
            let Exchange {
                process, messages, ..
            } = &exchange;
            let words = [
                "threads".to_owned(),
                option("grid", &process.grid),
                option("stencil", process.stencil),
                order,
            ];
            rows.extend(drain(
                (process, &words[..]),
                messages,
                (&name, &arrivals),
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
            ..
        } = &row.case;
        let _ = write!(
            text,
            "{grid:<12}{stencil:>8}{receiving:>10}{sending:>9}  {}",
            line(row)
        );
    }
    if let Some(race) = rows.iter().find_map(|row| row.case.race.as_ref()) {
        let _ = writeln!(text, "{race}");
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
    use std::fs;

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
            let Exchange {
                process,
                messages,
                received,
                sent,
            } = Exchange::new(&grid.parse().unwrap(), stencil);
            assert_eq!(
                (process.receiving, process.sending),
                (receiving, sending),
                "{grid}"
            );
            assert_eq!(messages.len(), length, "{grid}");
            assert_eq!(stencil.messages(&grid.parse().unwrap()), length as u128);
            // Each message is of one thread and of one cell.
            for threads in [received, sent] {
                let mut all: Vec<u32> = threads.into_iter().flatten().collect();
                all.sort_unstable();
                assert!(all.into_iter().eq(0..length as u32), "{grid}");
            }
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

    fn args(order_from: Source, rounds: u32) -> ThreadsArgs {
        ThreadsArgs {
            grid: vec!["4x4".parse().unwrap()],
            stencil: vec!["9".parse().unwrap()],
            order_from,
            order: Vec::new(),
            traces: None,
            ranks: RealArgs::default(),
            drain: DrainArgs::without_engines(rounds),
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
            ..args(Source::Model, 1)
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

    /// The mean depth of the first case.
    fn depth(args: &ThreadsArgs) -> f64 {
        let (grid, stencil) = args.cases().unwrap().remove(0);
        let mut exchange = Exchange::new(&grid, stencil);
        let known = Engines::default();
        let source = args.order_from.open(false).unwrap();
        let arrivals = args.arrivals(&mut exchange, &source, &known);
        let (name, _, arrivals) = arrivals.unwrap().remove(0);
        let words: [String; 0] = [];
        let case = (&exchange.process, &words[..]);
        let drained = (&name[..], &arrivals);
        let rows = drain(case, &exchange.messages, drained, &args.drain, &known).unwrap();
        assert_eq!(rows[0].case.race.is_some(), args.order_from == Source::Race);
        rows[0].depth
    }

    #[test]
    fn a_race_that_was_kept_and_numbers_are_orders_as_those_of_the_model() {
        let folder = tempfile::tempdir().unwrap();
        let kept = Some(folder.path().to_owned());
        let raced = ThreadsArgs {
            traces: kept,
            ..args(Source::Race, 3)
        };
        let raced = depth(&raced);
        let file = folder.path().join("threads-4x4-9.0.twm");
        assert_eq!(depth(&args(Source::File(file), 3)), raced);
        // 4 x 4 threads with all around them have 44 messages.
        let backwards: Vec<String> = (0..44)
            .rev()
            .map(|number: u32| number.to_string())
            .collect();
        let file = folder.path().join("order.txt");
        fs::write(&file, backwards.join(" ")).unwrap();
        assert_eq!(depth(&args(Source::File(file.clone()), 2)), 22.5);
        fs::write(&file, "1 2 3").unwrap();
        let told = Seen::read(&file, false).unwrap().drains(44, 1).unwrap_err();
        let told = told.to_string();
        assert!(
            told.contains("line 1 has 3 numbers, and 44 receives are posted"),
            "{told}"
        );
    }

    #[test]
    fn options_that_a_source_has_no_use_for_are_refused() {
        for (text, source) in [
            ("model", Source::Model),
            ("race", Source::Race),
            ("./race", Source::File("./race".into())),
            ("a.twm", Source::File("a.twm".into())),
        ] {
            assert_eq!(text.parse(), Ok(source));
        }
        assert!("rice".parse::<Source>().is_err());
        let ordered = |order_from| ThreadsArgs {
            order: vec![Order::Same],
            ..args(order_from, 1)
        };
        let traced = |order_from| ThreadsArgs {
            traces: Some("traces".into()),
            ..args(order_from, 1)
        };
        let carried = |order_from| ThreadsArgs {
            ranks: RealArgs::of("auto", &[]),
            ..args(order_from, 1)
        };
        for good in [
            args(Source::Model, 1),
            ordered(Source::Model),
            traced(Source::Race),
            carried(Source::Race),
        ] {
            good.check().unwrap();
        }
        for (bad, told) in [
            (
                ordered(Source::Race),
                "--order is that of --order-from model",
            ),
            (
                traced(Source::Model),
                "--traces is of what --order-from race",
            ),
            (carried(Source::Model), "which '--order-from race' has"),
        ] {
            let refused = bad.check().unwrap_err();
            assert_eq!(refused.exit_status(), 1);
            assert!(refused.to_string().contains(told), "{refused}");
        }
    }
}
