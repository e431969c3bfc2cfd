//! `tagwire match order`: how deep searches go when messages come in another order than their receives were posted in.

mod seen;

use std::fmt;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use serde::Serialize;
use tagwire_base::config::parse;
use tagwire_base::{ContextId, Rank, Tag};
use tagwire_matching::trace::{Event, Header, Size};
use tagwire_matching::{Capacity, EngineName, Engines, Envelope, Pattern};

use crate::checked::Checked;
use crate::depth::engines;
use crate::error::{Error, Result};
use crate::output::{Circumstances, OutputArgs, Table};
use crate::random::Random;
use crate::replay::{Cost, check, cost, give};
use crate::stats::distribution::Distribution;
use crate::trace::{Call, Trace};
use crate::valgrind::{self, option};
use crate::walk::{Search, Walk};

pub(crate) use self::seen::Seen;

/// The options of the test.
#[derive(Debug, Clone, Args)]
pub struct OrderArgs {
    /// Receives that are posted, and messages that then come [default: 16,256,4K; of a file those that it has]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = entries)]
    entries: Vec<u32>,

    /// Orders of arrival: same, reverse, shuffle, window:K, merge:S, laggard:P, or a file with them
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "same,reverse,shuffle,window:16,merge:8,laggard:10"
    )]
    order: Vec<Choice>,

    #[command(flatten)]
    drain: DrainArgs,
}

/// The options of what drains a queue of receives.
#[derive(Debug, Clone, Args)]
pub(crate) struct DrainArgs {
    /// Engines by name, with parameters behind a colon [default: none; depths are those of a list]
    #[arg(long, value_name = "LIST")]
    engine: Option<String>,

    /// Drains, each in an order of its own
    #[arg(long, value_name = "COUNT", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    rounds: u32,

    /// What the orders follow from
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// What is counted of engines beside: instructions (by valgrind)
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    count: Vec<Count>,

    /// Take what comes before something that is wrong in a trace
    #[arg(long)]
    partial: bool,

    #[command(flatten)]
    output: OutputArgs,

    /// Only give an engine the calls of so many drains: what is run under valgrind
    #[arg(long, hide = true)]
    only_drains: Option<u32>,
}

/// What is counted only where it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Count {
    Instructions,
}

pub(crate) const AFTER_HELP: &str = "\
Receives with different tags are posted, then their messages come. depth: receives that a list compares for each; theory: its
mean for this order. same: as posted; reverse; shuffle: random; window:K: random within blocks of K; merge:S: as S threads send
that each keep their order; laggard:P: P in a hundred come last, in their order. With --engine also ns, attempts, cache lines and
instructions of one call, of posts and arrivals together; every answer is verified before.

A file has a slash or a dot in its name. It is a trace: each drain has the order in which the messages came of as many receives of
the program as were posted in a row. Or it has an order in each line, as different numbers with blanks or commas between them: the
receives by the order of posting, in the order in which their messages come; only which number is less counts. Drains take one block
or line after the other, and those from the first again.

Exit status: 0 good, 1 usage, 2 a file cannot be read or has no such order, or an output could not be written, 3 an engine gave an
answer that its grade forbids.

Examples:
  tagwire match order
  tagwire match order --entries 26 --order traces/halo.0.twm,shuffle,same
  tagwire match order --entries 4K --order shuffle,merge:32 --engine list,bins --count instructions
  tagwire match order --engine list,bins -o order.json && tagwire report order.json -o order.html";

/// An order of arrival, as it was named.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Choice {
    Order(Order),
    File(PathBuf),
}

/// Where drains come from.
#[derive(Debug)]
pub(crate) enum Arrivals {
    /// Drawn by a model.
    Order(Order),
    /// Seen by somebody.
    Seen(Seen),
    /// Of these receives and no others.
    Drains(Vec<Drain>),
}

/// Receives by their numbers, as they are posted and as their messages come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Drain {
    pub(crate) posted: Vec<u32>,
    pub(crate) come: Vec<u32>,
}

/// An order of arrival by a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Same,
    Reverse,
    Shuffle,
    Window(u32),
    Merge(u32),
    Laggard(u32),
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(order) => Ok(Self::Order(order)),
            Err(_) if is_path(text) => Ok(Self::File(text.into())),
            Err(why) => Err(format!(
                "{why}, or a file, with a slash or a dot in its name"
            )),
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Order(order) => order.fmt(f),
            Self::File(path) => path.display().fmt(f),
        }
    }
}

impl Choice {
    /// Reads the file, where it is one.
    fn open(&self, partial: bool) -> Result<Arrivals> {
        match self {
            Self::Order(order) => Ok(Arrivals::Order(*order)),
            Self::File(path) => Ok(Arrivals::Seen(Seen::read(path, partial)?)),
        }
    }
}

/// Whether a word that names no order names a file.
pub(crate) fn is_path(text: &str) -> bool {
    text.contains(['/', '.'])
}

impl Drain {
    /// Receives that are posted by their numbers, and whose messages come in this order.
    pub(crate) fn of(come: Vec<u32>) -> Self {
        Self {
            posted: (0..come.len() as u32).collect(),
            come,
        }
    }
}

impl Arrivals {
    /// Returns so many drains of so many receives; those of a model follow from a seed.
    fn drains(&self, entries: u32, rounds: u32, seed: u64) -> Result<Vec<Drain>> {
        match self {
            Self::Order(order) => {
                let mut random = Random::new(seed);
                let draw = |_| Drain::of(order.arrivals(entries, &mut random));
                Ok((0..rounds).map(draw).collect())
            }
            Self::Seen(seen) => seen.drains(entries, rounds),
            Self::Drains(drains) => Ok(drains.clone()),
        }
    }

    /// Returns the mean of the receives that a list compares, where it is known.
    fn depth(&self, entries: u32) -> Option<f64> {
        match self {
            Self::Order(order) => Some(order.depth(entries)),
            _ => None,
        }
    }
}

impl FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, number) = text.split_once(':').unwrap_or((text, ""));
        let number = |most: u32| {
            let read = parse::bytes(number)
                .ok()
                .and_then(|number| u32::try_from(number).ok());
            let read = read.filter(|number| (1..=most).contains(number));
            read.ok_or_else(|| format!("'{name}' takes a number from 1 to {most}: {name}:8"))
        };
        match name {
            "same" => Ok(Self::Same),
            "reverse" => Ok(Self::Reverse),
            "shuffle" => Ok(Self::Shuffle),
            "window" => Ok(Self::Window(number(LONGEST)?)),
            "merge" => Ok(Self::Merge(number(LONGEST)?)),
            "laggard" => Ok(Self::Laggard(number(99)?)),
            _ => Err(
                "the orders are same, reverse, shuffle, window:K, merge:S, laggard:P".to_owned(),
            ),
        }
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Same => "same".to_owned(),
            Self::Reverse => "reverse".to_owned(),
            Self::Shuffle => "shuffle".to_owned(),
            Self::Window(length) => format!("window:{length}"),
            Self::Merge(streams) => format!("merge:{streams}"),
            Self::Laggard(percent) => format!("laggard:{percent}"),
        };
        f.pad(&text)
    }
}

impl Order {
    /// Returns the numbers of so many receives, in the order in which their messages come.
    pub(crate) fn arrivals(self, count: u32, random: &mut Random) -> Vec<u32> {
        let mut all: Vec<u32> = (0..count).collect();
        match self {
            Self::Same => {}
            Self::Reverse => all.reverse(),
            Self::Shuffle => random.shuffle(&mut all),
            Self::Window(length) => {
                for block in all.chunks_mut(length as usize) {
                    random.shuffle(block);
                }
            }
            Self::Merge(streams) => {
                // Places are dealt to streams at random, and each stream fills its own in order.
                let length = count.div_ceil(streams);
                let mut places: Vec<u32> = all.iter().map(|number| number / length).collect();
                random.shuffle(&mut places);
                let mut next: Vec<u32> = (0..streams).map(|stream| stream * length).collect();
                for (number, stream) in all.iter_mut().zip(places) {
                    *number = next[stream as usize];
                    next[stream as usize] += 1;
                }
            }
            Self::Laggard(percent) => {
                let late = laggards(count, percent) as usize;
                random.shuffle(&mut all);
                let (last, first) = all.split_at_mut(late);
                last.sort_unstable();
                first.sort_unstable();
                all.rotate_left(late);
            }
        }
        all
    }

    /// Returns the mean of the receives that a list compares.
    pub(crate) fn depth(self, count: u32) -> f64 {
        let n = f64::from(count);
        let shuffled = |n: f64| (n + 3.0) / 4.0;
        match self {
            Self::Same => 1.0,
            Self::Reverse => (n + 1.0) / 2.0,
            Self::Shuffle => shuffled(n),
            Self::Window(length) => {
                let (whole, rest) = (count / length, f64::from(count % length));
                let length = f64::from(length);
                (f64::from(whole) * length * shuffled(length) + rest * shuffled(rest)) / n
            }
            // Of two streams in order, one message finds half of the receives of the other that were posted before.
            Self::Merge(streams) => {
                let length = count.div_ceil(streams);
                let lengths: Vec<f64> = (0..streams)
                    .map(|stream| f64::from(count.saturating_sub(stream * length).min(length)))
                    .collect();
                let mut before = 0.0;
                let mut compared = n;
                for length in lengths {
                    compared += length * before / 2.0;
                    before += length;
                }
                compared / n
            }
            // Those in time pass over the late ones before them, half of these on the average.
            Self::Laggard(percent) => {
                let late = f64::from(laggards(count, percent));
                ((n - late) * (1.0 + late / 2.0) + late) / n
            }
        }
    }
}

fn laggards(count: u32, percent: u32) -> u32 {
    (u64::from(count) * u64::from(percent) / 100) as u32
}

/// A queue of receives that is drained in one order.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row<C: Serialize> {
    #[serde(flatten)]
    pub(crate) case: C,
    pub(crate) order: String,
    pub(crate) entries: u32,
    /// Receives that a list compares.
    pub(crate) depth: f64,
    pub(crate) depth_p99: u64,
    pub(crate) depth_max: u64,
    /// Where the order is that of a model.
    pub(crate) depth_theory: Option<f64>,
    pub(crate) engine: Option<String>,
    #[serde(flatten)]
    pub(crate) cost: Option<Cost>,
    /// Of a call, where they were counted.
    pub(crate) instructions: Option<f64>,
    /// What of the engine was checked: these calls.
    pub(crate) checked: Option<Checked>,
    /// Of a whole drain, with its posts.
    pub(crate) drain_ns: Option<f64>,
}

impl OrderArgs {
    /// How many receives are posted: what was asked for; or else what lines of numbers have, and the defaults where there are
    /// other orders.
    fn lengths(&self, orders: &[(&Choice, Arrivals)]) -> Vec<u32> {
        if !self.entries.is_empty() {
            return self.entries.clone();
        }
        let of_lines = |arrivals: &Arrivals| match arrivals {
            Arrivals::Seen(seen) => seen.entries(),
            _ => None,
        };
        let lengths: Vec<Option<u32>> = orders.iter().map(|(_, one)| of_lines(one)).collect();
        let defaults = ENTRIES.iter().copied();
        let defaults = defaults.filter(|_| lengths.contains(&None));
        let mut all: Vec<u32> = lengths.iter().flatten().copied().chain(defaults).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

impl DrainArgs {
    /// Options of which all but one are the defaults.
    #[cfg(test)]
    pub(crate) const fn without_engines(rounds: u32) -> Self {
        Self {
            engine: None,
            rounds,
            seed: 1,
            count: Vec::new(),
            partial: false,
            output: OutputArgs::TEXT,
            only_drains: None,
        }
    }

    /// Returns how many drains there are.
    pub(crate) const fn rounds(&self) -> u32 {
        self.rounds
    }

    /// Whether what comes before something that is wrong in a trace is taken.
    pub(crate) const fn partial(&self) -> bool {
        self.partial
    }

    /// Whether it runs the command again, to count its instructions.
    pub(crate) fn counts_instructions(&self) -> bool {
        self.count.contains(&Count::Instructions)
    }

    /// Refuses an output of another kind, and what cannot be counted here, before anything is measured.
    pub(crate) fn check(&self) -> Result<()> {
        self.output.check()?;
        match self.counts_instructions() {
            true => valgrind::require("--count instructions"),
            false => Ok(()),
        }
    }

    /// The instructions of a call: the difference of a run with one drain and one with several, whose calls are made alike.
    fn instructions(&self, engine: &EngineName, case: &[String], calls: u32) -> Result<f64> {
        let run = |drains: u32| {
            let own = [
                option("engine", engine),
                option("seed", self.seed),
                option("rounds", DRAINS),
                option("only-drains", drains),
            ];
            let partial = self.partial.then(|| "--partial".to_owned());
            valgrind::instructions(case.iter().cloned().chain(own).chain(partial))
        };
        let (one, all) = (run(1)?, run(DRAINS)?);
        Ok(all.saturating_sub(one) as f64 / f64::from((DRAINS - 1) * calls))
    }
}

/// Nothing beside the order.
#[derive(Debug, Clone, Serialize)]
struct Plain {}

/// Drains the queues that are asked for; returns the exit status.
pub(crate) fn run(args: &OrderArgs, known: &Engines, from: &Circumstances) -> Result<u8> {
    args.drain.check()?;
    let mut rows = Vec::new();
    let orders = args
        .order
        .iter()
        .map(|order| Ok((order, order.open(args.drain.partial)?)));
    let orders: Vec<(&Choice, Arrivals)> = orders.collect::<Result<_>>()?;
    for entries in args.lengths(&orders) {
        let receives: Vec<Envelope> = (0..entries).map(|tag| envelope(0, tag)).collect();
        let orders = orders.iter().filter(|(_, arrivals)| match arrivals {
            // Lengths that nobody asked for are not those of each file.
            Arrivals::Seen(seen) => !args.entries.is_empty() || seen.has(entries),
            _ => true,
        });
        for (order, arrivals) in orders {
            let words = [
                "order".to_owned(),
                option("entries", entries),
                option("order", order),
            ];
            let case = (&Plain {}, &words[..]);
            let order = order.to_string();
            rows.extend(drain(
                case,
                &receives,
                (&order, arrivals),
                &args.drain,
                known,
            )?);
        }
    }
    if rows.is_empty() && args.drain.only_drains.is_none() {
        return Err(Error::Usage(
            "no file of --order has orders of so many receives: give --entries".to_owned(),
        ));
    }
    let mut text = String::from("# tagwire match order: a queue of receives is drained\n");
    text.push_str(&head());
    for row in &rows {
        text.push_str(&line(row));
    }
    finish("order", &text, &rows, &args.drain, from)
}

pub(crate) fn finish<C: Serialize>(
    test: &'static str,
    text: &str,
    rows: &[Row<C>],
    args: &DrainArgs,
    from: &Circumstances,
) -> Result<u8> {
    let table = Table::new(test, rows);
    args.output.deliver(text, &table, from)?;
    Ok(0)
}

/// A message of this source with this tag.
pub(crate) fn envelope(source: u32, tag: u32) -> Envelope {
    Envelope {
        source: Rank::new(source),
        tag: Tag::user(tag as i32).expect("there are fewer entries than tags"),
        context: ContextId::WORLD,
    }
}

/// Posts receives for these messages and has them come in an order, again and again: a row for a list, or for each engine. The case
/// has the words that `match` is to be given for it.
pub(crate) fn drain<C: Serialize + Clone>(
    (case, words): (&C, &[String]),
    receives: &[Envelope],
    (order, arrivals): (&str, &Arrivals),
    args: &DrainArgs,
    known: &Engines,
) -> Result<Vec<Row<C>>> {
    let count = receives.len() as u32;
    let mut calls = Vec::new();
    for drain in arrivals.drains(count, args.rounds, args.seed)? {
        let mut add = |event, matched| {
            let at = calls.len() as u64;
            calls.push(Call { at, event, matched });
        };
        for number in drain.posted {
            let receive = receives[number as usize];
            add(Event::Post(Pattern::exact(receive)), false);
        }
        for number in drain.come {
            let message = receives[number as usize];
            add(Event::Arrive(message, Size::default()), true);
        }
    }
    let trace = Trace {
        header: Header {
            rank: 0,
            ranks: 1,
            engine: "list".to_owned(),
            capacity: Capacity::default(),
            clock: "steps".to_owned(),
            arrivals: order.to_owned(),
            ring: 0,
            before: 0,
            host: "-".to_owned(),
            command: "match order".to_owned(),
        },
        calls,
        lost: 0,
    };
    if let Some(drains) = args.only_drains {
        let calls = trace.calls.len().min((drains * 2 * count) as usize);
        for engine in engines(args.engine.as_deref(), known)? {
            give(
                &mut engine.open(trace.header.capacity),
                &trace.calls[..calls],
            );
        }
        return Ok(Vec::new());
    }
    let depth = depths(&trace)?.quantiles();
    let row = |engine: Option<(&EngineName, Checked)>, cost: Option<Cost>| Row {
        case: case.clone(),
        order: order.to_owned(),
        entries: count,
        depth: depth.mean,
        depth_p99: depth.p99,
        depth_max: depth.max,
        depth_theory: arrivals.depth(count),
        engine: engine.map(|(engine, _)| engine.to_string()),
        cost,
        instructions: None,
        checked: engine.map(|(_, checked)| checked),
        drain_ns: cost.map(|cost| cost.ns * f64::from(2 * count)),
    };
    let Some(list) = &args.engine else {
        return Ok(vec![row(None, None)]);
    };
    let mut rows = Vec::new();
    for engine in engines(Some(list), known)? {
        let checked = check(std::slice::from_ref(&trace), &engine, Some(args.seed))?;
        let instructions = match args.counts_instructions() {
            true => Some(args.instructions(&engine, words, 2 * count)?),
            false => None,
        };
        rows.push(Row {
            instructions,
            ..row(Some((&engine, checked)), Some(cost(&trace, &engine, 3)))
        });
    }
    Ok(rows)
}

/// How many receives a list compares for each message.
fn depths(trace: &Trace) -> Result<Distribution> {
    let mut walk = Walk::new(trace.header.capacity);
    let mut depths = Distribution::default();
    for call in &trace.calls {
        let search = walk.search(&call.event);
        if let Some(Search::Receives(Some(place))) = search {
            depths.note(place as u64 + 1);
        }
        walk.apply(call, search).map_err(Error::Usage)?;
    }
    Ok(depths)
}

pub(crate) fn head() -> String {
    format!(
        "{:<12}{:>9}{:>10}{:>10}{:>9}{:>9}  {:<20}{:>9}{:>10}{:>8}{:>14}{:>14}\n",
        "order",
        "entries",
        "depth",
        "theory",
        "p99",
        "max",
        "engine",
        "ns",
        "attempts",
        "lines",
        "drain, ns",
        "instructions"
    )
}

pub(crate) fn line<C: Serialize>(row: &Row<C>) -> String {
    let theory = row.depth_theory;
    let theory = theory.map_or_else(|| "-".to_owned(), |depth| format!("{depth:.2}"));
    let mut text = format!(
        "{:<12}{:>9}{:>10.2}{theory:>10}{:>9}{:>9}",
        row.order, row.entries, row.depth, row.depth_p99, row.depth_max
    );
    if let (Some(engine), Some(cost)) = (&row.engine, row.cost) {
        let Cost {
            ns,
            attempts,
            lines,
        } = cost;
        let shown = |figure: Option<f64>| {
            figure.map_or_else(|| "-".to_owned(), |figure| format!("{figure:.2}"))
        };
        let (lines, instructions) = (shown(lines), shown(row.instructions));
        let drain = row.drain_ns.unwrap_or_default();
        let _ = write!(
            text,
            "  {engine:<20}{ns:>9.1}{attempts:>10.2}{lines:>8}{drain:>14.0}{instructions:>14}"
        );
    }
    text.push('\n');
    text
}

fn entries(text: &str) -> Result<u32, String> {
    let number = parse::bytes(text).map_err(|_| "expected a number such as 8 or 4K".to_owned())?;
    let number = u32::try_from(number)
        .ok()
        .filter(|number| (1..=LONGEST).contains(number));
    number.ok_or_else(|| format!("expected 1 to {LONGEST} entries"))
}

/// Receives by default.
const ENTRIES: [u32; 3] = [16, 256, 4096];
/// Most receives.
const LONGEST: u32 = 1 << 16;
/// Drains of the longer run under valgrind.
const DRAINS: u32 = 3;

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use super::*;

    #[test]
    fn every_order_is_as_deep_as_theory_has_it() {
        let receives: Vec<Envelope> = (0..500).map(|tag| envelope(0, tag)).collect();
        for (text, error) in [
            ("same", 0.0),
            ("reverse", 0.0),
            ("shuffle", 0.05),
            ("window:16", 0.05),
            ("window:7", 0.05),
            ("merge:1", 0.0),
            ("merge:8", 0.05),
            ("merge:7", 0.05),
            ("laggard:10", 0.05),
        ] {
            let order: Order = text.parse().unwrap();
            assert_eq!(order.to_string(), text);
            let words: [String; 0] = [];
            let case = (&Plain {}, &words[..]);
            let rows = drain(
                case,
                &receives,
                (text, &Arrivals::Order(order)),
                &DrainArgs::without_engines(30),
                &Engines::default(),
            )
            .unwrap();
            let (depth, theory) = (rows[0].depth, rows[0].depth_theory.unwrap());
            assert!(
                (depth - theory).abs() <= error * theory,
                "{text}: {depth}, {theory}"
            );
        }
    }

    #[test]
    fn every_message_comes_once() {
        let mut random = Random::new(7);
        for order in [
            Order::Merge(6),
            Order::Window(9),
            Order::Laggard(33),
            Order::Shuffle,
        ] {
            let mut arrivals = order.arrivals(100, &mut random);
            arrivals.sort_unstable();
            assert!(arrivals.into_iter().eq(0..100), "{order}");
        }
    }
}
