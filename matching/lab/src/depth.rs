//! `tagwire match depth`: what one match costs, by entries ahead, entries behind, share of wildcards and engine.

mod axes;
mod cache;
mod count;
mod hardware;
mod instructions;
mod keys;
mod rows;
mod scenario;
mod time;

use clap::{Args, ValueEnum};
use tagwire_base::config::parse;
use tagwire_matching::{Capacity, EngineName, Engines};

use self::axes::{Cache, Layout, WildAt, word};
pub(crate) use self::axes::{Format, Keys, Queue, WildKind};
use self::count::Counts;
pub(crate) use self::count::distinct_lines;
use self::rows::{Report, Row};
pub(crate) use self::scenario::Scenario;
use crate::checked::Checked;
use crate::error::{Error, Result};
use crate::gate::Gate;
use crate::output::{Circumstances, OutputArgs};
use crate::valgrind;

/// The options of the test.
#[derive(Debug, Clone, Args)]
pub struct DepthArgs {
    /// Engines by name, with parameters behind a colon: list,ucx:bins=64 [default: all, without parameters]
    #[arg(long, value_name = "LIST")]
    engine: Option<String>,

    /// The queue that is searched: posted (a message arrives), unexpected (a receive is posted)
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "posted"
    )]
    queue: Vec<Queue>,

    /// Entries before the one that matches
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "0,1,16,1K,64K", value_parser = entries)]
    ahead: Vec<u32>,

    /// Entries behind it
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "0", value_parser = entries)]
    behind: Vec<u32>,

    /// Wildcards in percent: of the receives in the queue, or of those that are posted
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "0", value_parser = clap::value_parser!(u32).range(0..=100))]
    wild: Vec<u32>,

    /// What the wildcards are: any source, any tag, or both (posted alone)
    #[arg(long, value_name = "KIND", default_value = "source")]
    wild_kind: WildKind,

    /// Where the wildcards lie in the queue: spread (evenly), front (they were posted before all entries that have none)
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "spread"
    )]
    wild_at: Vec<WildAt>,

    /// What the keys of the entries look like that do not match: tags (of one source), sources (with one tag), grid (a few of
    /// both), random, collide-ucx (one bin of UCX's 1,024), collide-fuzzy (one partial key)
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "tags",
        hide_possible_values = true
    )]
    keys: Vec<Keys>,

    /// How entries lie: fresh (in the order of the queue), aged (as after --age), shuffled (in no order at all)
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "fresh"
    )]
    layout: Vec<Layout>,

    /// Of an aged layout: entries of a full queue that left before, each by lot, with another one queued for each; in percent of the queue
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "100", value_parser = clap::value_parser!(u32).range(0..=10_000))]
    age: Vec<u32>,

    /// Caches: hot (matches in a row), cold (swept before each match)
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "hot,cold"
    )]
    cache: Vec<Cache>,

    /// Bytes that are written to sweep the caches
    #[arg(long, value_name = "BYTES", default_value = "32M", value_parser = bytes)]
    sweep: u64,

    /// Blocks whose median is reported, each on an engine of its own
    #[arg(long, value_name = "COUNT", default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    blocks: u32,

    /// What is counted beside: lines (cache lines and misses of a model), instructions (by valgrind), hardware (by the processor)
    #[arg(
        long,
        value_name = "LIST",
        value_delimiter = ',',
        default_value = "lines"
    )]
    count: Vec<Count>,

    /// Bytes of the model's first level of cache
    #[arg(long, value_name = "BYTES", default_value = "32K", value_parser = bytes)]
    l1: u64,

    /// Bytes of the model's second level
    #[arg(long, value_name = "BYTES", default_value = "1M", value_parser = bytes)]
    l2: u64,

    /// What random keys, an aged or shuffled layout and the check follow from
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// Measure engines that were not checked before
    #[arg(long)]
    unchecked: bool,

    #[command(flatten)]
    output: OutputArgs,

    /// Only do so many matches of the one case: what is run under valgrind
    #[arg(long, hide = true)]
    only_matches: Option<u32>,
}

pub(crate) const AFTER_HELP: &str = "\
Figures are of one match: the arrival that takes a posted receive, or the receive that takes an unexpected message.
ns: median of blocks (hot) or of single matches (cold, less what the clock takes); attempts: entries looked at; lines:
distinct cache lines of the engine's storage; l1 and l2: misses of a model, fully associative with LRU. Lines and misses
do not depend on the processor. K is 1024.

Exit status: 0 good, 1 usage, 2 the output could not be written or nothing counts what --count names, 3 an engine fails its check.

Examples:
  tagwire match depth                                           all engines, 0 to 64K receives ahead
  tagwire match depth --engine list,bins --layout fresh,shuffled --cache hot
  tagwire match depth --engine list --layout fresh,aged,shuffled --age 25,100,400 --ahead 64K
  tagwire match depth --engine source,ucx --wild 0,1,10,50 --ahead 1K
  tagwire match depth --engine ucx,bins --wild 10 --wild-at front,spread --ahead 1K --behind 1K
  tagwire match depth --engine ucx,fuzzy,bins --keys tags,random,collide-ucx,collide-fuzzy --ahead 1K
  tagwire match depth --engine bins --count lines,instructions -o depth.json";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Count {
    Lines,
    Instructions,
    Hardware,
}

/// Measures what is asked for; returns the exit status.
pub(crate) fn run(args: &DepthArgs, known: &Engines, from: &Circumstances) -> Result<u8> {
    let engines = engines(args.engine.as_deref(), known)?;
    let scenarios = scenarios(args)?;
    if let Some(matches) = args.only_matches {
        return only(&engines, &scenarios, matches);
    }
    args.output.check()?;
    if args.count.contains(&Count::Instructions) {
        valgrind::require("--count instructions")?;
    }
    if args.count.contains(&Count::Hardware) {
        hardware::require()?;
    }
    let mut report = Report::new(args.output.format, args.seed, [args.l1, args.l2]);
    for engine in &engines {
        let checked = match args.unchecked {
            true => None,
            false => Some(check(engine, args.seed)?),
        };
        for scenario in &scenarios {
            for row in measure(engine, scenario, args)? {
                report.add(Row { checked, ..row })?;
            }
        }
    }
    report.finish(args.output.path(), from)?;
    Ok(0)
}

/// The engines of a list, or all without parameters.
pub(crate) fn engines(list: Option<&str>, known: &Engines) -> Result<Vec<EngineName>> {
    let names: Vec<&str> = known.descriptions().map(|one| one.named.name).collect();
    let all = || names.join(",");
    let list = list.map_or_else(all, str::to_owned);
    Ok(known.list(&list)?)
}

/// Every combination of the lists, in the order in which rows are printed.
fn scenarios(args: &DepthArgs) -> Result<Vec<Scenario>> {
    let is_unexpected = args.queue.contains(&Queue::Unexpected);
    if is_unexpected && args.wild_kind == WildKind::Both && args.wild.iter().any(|wild| *wild > 0) {
        return Err(Error::Usage(
            "--wild-kind both has no meaning for --queue unexpected: such a receive takes the first message whatever it is"
                .to_owned(),
        ));
    }
    if is_unexpected
        && args.wild_at.contains(&WildAt::Front)
        && args.wild.iter().any(|wild| *wild > 0)
    {
        return Err(Error::Usage(
            "--wild-at front has no meaning for --queue unexpected: messages have no wildcards, and receives that are posted take turns"
                .to_owned(),
        ));
    }
    let mut all = Vec::new();
    for &queue in &args.queue {
        for (layout, age) in layouts(args) {
            for &keys in &args.keys {
                refuse(keys, queue, args)?;
                let plain = Scenario {
                    kind: args.wild_kind,
                    keys,
                    layout,
                    age,
                    seed: args.seed,
                    ..Scenario::behind(queue, 0)
                };
                all.extend(lengths(plain, args));
            }
        }
    }
    Ok(all)
}

/// The layouts, an aged one with each age.
fn layouts(args: &DepthArgs) -> Vec<(Layout, u32)> {
    let ages = |&layout: &Layout| match layout {
        Layout::Aged => args.age.iter().map(|&age| (layout, age)).collect(),
        Layout::Fresh | Layout::Shuffled => vec![(layout, 0)],
    };
    args.layout.iter().flat_map(ages).collect()
}

/// The same with each share and place of wildcards, and each length.
fn lengths(plain: Scenario, args: &DepthArgs) -> Vec<Scenario> {
    let mut all = Vec::new();
    for &wild in &args.wild {
        for &wild_at in &args.wild_at {
            for &behind in &args.behind {
                all.extend(args.ahead.iter().map(|&ahead| Scenario {
                    ahead,
                    behind,
                    wild,
                    wild_at,
                    ..plain
                }));
            }
        }
    }
    all
}

/// Refuses keys with which the wildcards that are asked for would take another message than that of the match.
fn refuse(keys: Keys, queue: Queue, args: &DepthArgs) -> Result<()> {
    let why = keys.why_not(queue, args.wild_kind);
    let Some(why) = why.filter(|_| args.wild.iter().any(|wild| *wild > 0)) else {
        return Ok(());
    };
    let (kind, keys) = (word(args.wild_kind), word(keys));
    Err(Error::Usage(format!(
        "--wild and --wild-kind {kind} have no meaning for --queue unexpected with --keys {keys}: messages {why}"
    )))
}

/// Has an engine that is to be measured pass its grade, by random operations of a seed.
///
/// # Errors
/// [`Error::Unsound`] where it does not; [`Error::Read`] where the file of its library is not there any more.
pub fn check(engine: &EngineName, seed: u64) -> Result<Checked> {
    let gate = Gate {
        grade: engine.grade(),
        seed,
        operations: CHECKED,
    };
    match gate.check_named(engine) {
        Ok(passed) => Checked::of(engine, gate.grade, passed.operations, Some(gate.seed)),
        Err(failed) => Err(Error::Unsound {
            engine: engine.to_string(),
            grade: gate.grade,
            why: failed.complaint,
        }),
    }
}

/// The rows of a case: one for each state of the caches.
fn measure(engine: &EngineName, scenario: &Scenario, args: &DepthArgs) -> Result<Vec<Row>> {
    let is_counted = |what| args.count.contains(&what);
    let instructions = match is_counted(Count::Instructions) {
        true => Some(instructions::per_match(engine, scenario)?),
        false => None,
    };
    let looked = count::attempts(engine, scenario);
    let mut rows = Vec::new();
    for &cache in &args.cache {
        let counts = is_counted(Count::Lines)
            .then(|| count::lines(engine, scenario, cache, [args.l1, args.l2]))
            .flatten();
        let times = match cache {
            Cache::Hot => time::hot(engine, scenario, args.blocks),
            Cache::Cold => time::cold(engine, scenario, args.blocks, args.sweep as usize),
        };
        let events = match is_counted(Count::Hardware) {
            true => {
                let sweep = args.sweep as usize;
                let events = hardware::per_match(engine, scenario, cache, args.blocks, sweep);
                Some(events?)
            }
            false => None,
        };
        let Counts {
            lines,
            first,
            second,
        } = counts.unwrap_or_default();
        let counted = |figure: f64| counts.is_some().then_some(figure);
        rows.push(Row {
            engine: engine.to_string(),
            queue: scenario.queue,
            layout: scenario.layout,
            age: (scenario.layout == Layout::Aged).then_some(scenario.age),
            keys: scenario.keys,
            cache,
            wild: scenario.wild,
            wild_kind: scenario.kind,
            wild_at: scenario.wild_at,
            ahead: scenario.ahead,
            behind: scenario.behind,
            ns: times.median,
            ns_min: times.least,
            ns_max: times.greatest,
            attempts: looked.attempts,
            false_hits: looked.false_hits,
            lines: counted(lines),
            l1_misses: counted(first),
            l2_misses: counted(second),
            instructions,
            hw_instructions: events.map(|events| events.instructions),
            hw_l1_misses: events.map(|events| events.first),
            hw_misses: events.map(|events| events.all),
            checked: None,
        });
    }
    Ok(rows)
}

/// Does the matches of one case and no more.
fn only(engines: &[EngineName], scenarios: &[Scenario], matches: u32) -> Result<u8> {
    let ([engine], [scenario]) = (engines, scenarios) else {
        return Err(Error::Usage("--only-matches is of one case".to_owned()));
    };
    let mut engine = engine.open(Capacity::default());
    scenario.prepare(&mut engine, instructions::MOST);
    for index in 0..matches {
        if !scenario.operate(&mut engine, index) {
            return Err(Error::Usage(format!("match {index} failed")));
        }
    }
    Ok(0)
}

fn entries(text: &str) -> Result<u32, String> {
    let number = parse::bytes(text).map_err(|_| "expected a number such as 8 or 64K".to_owned())?;
    let number = u32::try_from(number)
        .ok()
        .filter(|number| *number <= LONGEST);
    number.ok_or_else(|| format!("expected at most {LONGEST} entries"))
}

fn bytes(text: &str) -> Result<u64, String> {
    let size = parse::bytes(text)?;
    (64..=1 << 34)
        .contains(&size)
        .then_some(size)
        .ok_or_else(|| "expected 64 to 16G".to_owned())
}

/// The longest queue.
const LONGEST: u32 = 1 << 20;
/// Operations by which an engine is checked before it is measured.
const CHECKED: u64 = 20_000;
