//! `tagwire match offload`: which searches end in hardware that holds so many entries, and how long they take by a model of costs.
//!
//! The calls of traces, or of applications under models of arrivals, go to [`Offload`]: hardware that holds the oldest entries,
//! over an engine that holds the rest. What is counted there does not depend on time; time is what a model of costs makes of
//! it, linear in the entries that each side looks at.

mod cm;
mod policy;
mod ucx;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;
use tagwire_base::config::parse;
use tagwire_matching::offload::{OffloadCounts, Refill};
use tagwire_matching::{EngineName, Engines};

use self::policy::{Adapter, Policy, Shape};
use self::ucx::Kept;

use crate::apps::AppName;
use crate::checked::Checked;
use crate::error::{Error, Result};
use crate::output::{Circumstances, OutputArgs, Table};
use crate::real::{RealArgs, Way};
use crate::replay::check;
use crate::stats::{Part, part_of};
use crate::trace::{Trace, shown};
use crate::traffic::Model;
use crate::walk::sound;

/// The options of the test.
#[derive(Debug, Clone, Args)]
pub struct OffloadArgs {
    /// Traces or folders of them, or applications with parameters: halo27:messages=4
    #[arg(value_name = "FILE|NAME", required = true)]
    sources: Vec<String>,

    /// Models of how the messages of applications arrive
    #[arg(long, value_name = "LIST", default_value = "posted,shuffled")]
    arrivals: String,

    /// Receives that hardware holds
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "0,16,64,256,1K", value_parser = entries)]
    capacity: Vec<u32>,

    /// Unexpected messages that hardware holds [default: as many as receives]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = entries)]
    headers: Vec<u32>,

    /// When receives get into hardware that came to software first: each (one for each that leaves hardware), drained (when hardware has
    /// none), ucx (by the rules of UCX, which also keeps receives away from hardware)
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "each", value_parser = refill)]
    refill: Vec<String>,

    /// Of ucx: bytes from which on a receive may go to hardware (UCX_TM_THRESH) [default: 1K]
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = size)]
    threshold: Vec<u64>,

    /// Of ucx: bytes from which on it takes those before it along (UCX_TM_FORCE_THRESH) [default: 8K]
    #[arg(long, value_name = "BYTES", value_parser = size)]
    force: Option<u64>,

    /// The engines that are the software, with parameters behind a colon
    #[arg(long, value_name = "LIST", default_value = "list")]
    engine: String,

    /// Time of software over that of hardware, for each entry that is looked at
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,2,10,100", value_parser = cost)]
    ratio: Vec<f64>,

    /// Time of hardware for each entry that it looks at
    #[arg(long, value_name = "NS", default_value = "1", value_parser = cost)]
    hw: f64,

    /// Time of software for each entry, in place of the ratios
    #[arg(long, value_name = "NS", value_parser = cost, conflicts_with = "ratio")]
    sw: Option<f64>,

    /// Time to put an entry into hardware, when it comes and when it moves up
    #[arg(long, value_name = "NS", default_value = "0", value_parser = cost)]
    post: f64,

    /// Time that each entry costs beside that is left to software
    #[arg(long, value_name = "NS", default_value = "0", value_parser = cost)]
    spill: f64,

    /// Also have real ranks under cm make the calls, and tell what their transport counts
    #[arg(long)]
    real: bool,

    #[command(flatten)]
    ranks: RealArgs,

    /// Take what comes before something that is wrong in a trace
    #[arg(long)]
    partial: bool,

    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) const AFTER_HELP: &str = "\
Hardware holds the oldest receives, up to --capacity, and the first unexpected messages; an engine in software holds the
rest. in hardware: searches that needed no software, of those in queues with entries; spilled: receives, and messages, that
were left to software; refilled: receives that moved up; hw, sw: entries that a search looks at there. ns: mean time of a search by
a model: --hw for each entry in hardware, --ratio times that in software, --post for each entry put into hardware, --spill
for each left to software. What is not given costs nothing.

--refill ucx: a receive goes into hardware as it is posted, or stays in software: below --threshold, of any source, behind a
wildcard or one of its bin in software (from --force on those of its bin go along), without room, and of any tag behind any in
software. Hardware has no unexpected messages. kept: how many each rule kept in software. A receive is as long as its message.

--real: the rank of a trace and those whose messages it got are ranks of a job in this process, under cm over --transport, which
matches. What the transport counted stands in a line before the rows: receives and messages that were queued, in all and at once; messages
that senders kept, since their receiver had no room (settings shm-headers, shm-overflow, ucx-unexpected-bytes, ...).

Figures to start from: --hw 1 (published: Cassini compares an entry in a stage of a pipeline, US 11,882,025; assumed: a cycle
of 1 ns), --sw 2.2 to 16 (measured: an entry of a list, docs/engines.md), --spill 500 (published: a round trip over PCIe is
about half a microsecond, Neugebauer and others, SIGCOMM 2018).

Exit status: 0 good, 1 usage, 2 a file cannot be read or is no trace, or an output cannot be written.

Examples:
  tagwire match offload traces --capacity 0,64,1K
  tagwire match offload halo27 fds storm --ratio 2,100
  tagwire match offload storm --real --set shm-headers=64 --capacity 64
  tagwire match offload fds --refill each,drained --sw 2.2 --spill 500 -o offload.csv
  tagwire match offload traces --refill ucx --engine ucx --threshold 0,1K,64K --capacity 1K";

/// One shape of hardware over one engine, for one kind of traffic and one ratio of costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Row {
    origin: String,
    /// The model of arrivals; that of the traces.
    arrivals: String,
    engine: String,
    capacity: u32,
    headers: u32,
    refill: &'static str,
    /// Of UCX's rules, in bytes; none of others.
    threshold: Option<u64>,
    force: Option<u64>,
    /// Of the costs.
    ratio: f64,
    searches: u64,
    /// Of the searches.
    in_hardware_share: f64,
    /// The library's own among the searches (with internal tags: collectives, partitioned operations), and how many of these ended in
    /// hardware.
    internal_searches: u64,
    internal_in_hardware_share: Option<f64>,
    receives_spilled: u64,
    messages_spilled: u64,
    refilled: u64,
    /// Receives that UCX's rules left to software; none of others.
    kept: Option<Kept>,
    /// Entries that a search looks at, on the average.
    hardware_looked: f64,
    software_looked: f64,
    /// Of a search, on the average, by the model.
    ns: f64,
    /// What of the engine was checked: what it returns for these calls.
    checked: Option<Checked>,
    /// What cm's transport counted of the same traces.
    #[serde(skip_serializing_if = "Option::is_none")]
    cm: Option<cm::Counts>,
}

/// What things cost, in nanoseconds.
#[derive(Debug, Clone, Copy)]
struct Costs {
    hardware: f64,
    software: f64,
    post: f64,
    spill: f64,
}

/// Prints the rows; returns the exit status.
pub(crate) fn run(args: &OffloadArgs, known: &Engines, from: &Circumstances) -> Result<u8> {
    args.output.check()?;
    let engines = known.list(&args.engine)?;
    if args.hw == 0.0 {
        return Err(Error::Usage(
            "--hw is more than 0: the ratios are to it".to_owned(),
        ));
    }
    if args.real {
        let way = args.ranks.way();
        args.ranks.check(Way { layer: "cm", ..way })?;
    } else {
        args.ranks.check_unused("--real")?;
    }
    let shapes = shapes(args)?;
    let is_ucx = |shape: &Shape| matches!(shape.policy, Policy::Ucx { .. });
    let mut rows = Vec::new();
    for traffic in traffic(args)? {
        let sizes = match shapes.iter().any(is_ucx) {
            true => ucx::sizes_of(&traffic)?,
            false => Vec::new(),
        };
        let cm = match args.real {
            true => Some(cm::count(&traffic, &args.ranks, known)?),
            false => None,
        };
        let Traffic {
            origin,
            arrivals,
            traces,
            ..
        } = traffic;
        for engine in &engines {
            let checked = Some(check(&traces, engine, None)?);
            for &shape in &shapes {
                let counts = counts(&traces, &sizes, engine, shape);
                for costs in costs(args) {
                    rows.push(Row {
                        origin: origin.clone(),
                        arrivals: arrivals.clone(),
                        checked,
                        cm: cm.clone(),
                        ..row(engine, shape, &counts, costs)
                    });
                }
            }
        }
    }
    let table = Table::new("offload", &rows);
    args.output.deliver(&text(&rows), &table, from)?;
    Ok(0)
}

/// What is run.
#[derive(Debug)]
struct Traffic {
    /// A file, a folder, or an application with its parameters.
    origin: String,
    /// The model of arrivals.
    arrivals: String,
    /// Of the ranks.
    traces: Vec<Trace>,
    /// What each trace is called where it is wrong: its file, or its rank of the application.
    names: Vec<String>,
}

impl Traffic {
    /// Makes the traces of an application.
    ///
    /// # Errors
    /// [`Error::Script`] for what its ranks cannot do.
    fn of_app(app: &AppName, model: &Model) -> Result<Self> {
        let origin = app.to_string();
        let traces = model.traces(&app.scripts(), &origin)?;
        let name = |trace: &Trace| format!("rank {} of {origin}", trace.header.rank);
        Ok(Self {
            arrivals: model.to_string(),
            names: traces.iter().map(name).collect(),
            traces,
            origin,
        })
    }

    /// Does something with each trace.
    ///
    /// # Errors
    /// [`Error::Trace`] with the name of the trace that is wrong.
    fn each<T>(&self, of: impl Fn(&Trace) -> Result<T, String>) -> Result<Vec<T>> {
        let named = self.traces.iter().zip(&self.names);
        let of = |(trace, name): (&Trace, &String)| {
            of(trace).map_err(|why| Error::Trace {
                path: name.clone(),
                why,
            })
        };
        named.map(of).collect()
    }
}

/// Reads the files that are asked for, and makes the traces of applications.
fn traffic(args: &OffloadArgs) -> Result<Vec<Traffic>> {
    let mut all = Vec::new();
    for source in &args.sources {
        if Path::new(source).exists() {
            let read = Trace::read_all(&[PathBuf::from(source)], args.partial)?;
            let names = read.iter().map(|(path, _)| shown(path)).collect();
            let sound = |(path, trace): (PathBuf, Trace)| sound(trace, &path, args.partial);
            all.push(Traffic {
                origin: source.clone(),
                arrivals: "as recorded".to_owned(),
                traces: read.into_iter().map(sound).collect::<Result<_>>()?,
                names,
            });
            continue;
        }
        let app = AppName::parse(source)
            .map_err(|error| Error::Usage(format!("'{source}' is no file; {error}")))?;
        for model in Model::parse_list(&args.arrivals)? {
            all.push(Traffic::of_app(&app, &model)?);
        }
    }
    Ok(all)
}

/// Every policy with every capacity.
///
/// # Errors
/// [`Error::Usage`] for bytes that no policy goes by.
fn shapes(args: &OffloadArgs) -> Result<Vec<Shape>> {
    let named = |name: &String| name == policy::UCX;
    if !args.refill.iter().any(named) && (!args.threshold.is_empty() || args.force.is_some()) {
        return Err(Error::Usage(
            "--threshold and --force are of --refill ucx".to_owned(),
        ));
    }
    let mut all = Vec::new();
    for name in &args.refill {
        let policies = match Refill::by_name(name) {
            Some(refill) => vec![Policy::Oldest(refill)],
            None => Policy::of_ucx(&args.threshold, args.force),
        };
        for policy in policies {
            for &receives in &args.capacity {
                let as_many = [receives];
                let headers: &[u32] = match (policy, &*args.headers) {
                    (Policy::Ucx { .. }, _) => &[0],
                    (_, []) => &as_many,
                    (_, headers) => headers,
                };
                all.extend(headers.iter().map(|&messages| Shape {
                    receives,
                    messages,
                    policy,
                }));
            }
        }
    }
    Ok(all)
}

fn costs(args: &OffloadArgs) -> Vec<Costs> {
    let of = |software| Costs {
        hardware: args.hw,
        software,
        post: args.post,
        spill: args.spill,
    };
    match args.sw {
        Some(software) => vec![of(software)],
        None => args.ratio.iter().map(|ratio| of(ratio * args.hw)).collect(),
    }
}

/// What hardware and software have seen.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    /// Of receives and of messages, in all.
    queues: [OffloadCounts; 2],
    /// The library's own searches, and those of them that ended in hardware.
    internal: [u64; 2],
    /// What UCX's rules kept in software.
    kept: Kept,
}

/// Gives the calls of the traces, each to an engine of its own; `sizes` has the bytes of each one's receives, where a policy goes by them.
fn counts(traces: &[Trace], sizes: &[Vec<u64>], engine: &EngineName, shape: Shape) -> Seen {
    let mut seen = Seen::default();
    let searched = |adapter: &Adapter| {
        let sum = |of: fn(&OffloadCounts) -> u64| adapter.counts().iter().map(of).sum::<u64>();
        [sum(|own| own.searches), sum(|own| own.in_hardware)]
    };
    for (place, trace) in traces.iter().enumerate() {
        let sizes = sizes.get(place).map_or(&[][..], |sizes| sizes);
        let mut adapter = Adapter::new(shape, trace.header.capacity, engine);
        for call in &trace.calls {
            if part_of(&call.event) != Some(Part::Internal) {
                adapter.call(call, sizes);
                continue;
            }
            let before = searched(&adapter);
            adapter.call(call, sizes);
            let after = searched(&adapter);
            for (sum, (after, before)) in
                seen.internal.iter_mut().zip(after.into_iter().zip(before))
            {
                *sum += after - before;
            }
        }
        for (sum, own) in seen.queues.iter_mut().zip(adapter.counts()) {
            sum.searches += own.searches;
            sum.in_hardware += own.in_hardware;
            sum.hardware_looked += own.hardware_looked;
            sum.software_looked += own.software_looked;
            sum.accepted += own.accepted;
            sum.spilled += own.spilled;
            sum.refilled += own.refilled;
        }
        seen.kept.add(adapter.kept());
    }
    seen
}

fn row(engine: &EngineName, shape: Shape, seen: &Seen, costs: Costs) -> Row {
    let [receives, messages] = &seen.queues;
    let [internal, ended] = seen.internal;
    let sum = |of: fn(&OffloadCounts) -> u64| of(receives) + of(messages);
    let searches = sum(|counts| counts.searches);
    let each = |value: f64| value / searches.max(1) as f64;
    let hardware = sum(|counts| counts.hardware_looked) as f64;
    let software = sum(|counts| counts.software_looked) as f64;
    let posted = sum(|counts| counts.accepted + counts.refilled) as f64;
    let spilled = sum(|counts| counts.spilled) as f64;
    let ns = costs.hardware * hardware
        + costs.software * software
        + costs.post * posted
        + costs.spill * spilled;
    Row {
        origin: String::new(),
        arrivals: String::new(),
        engine: engine.to_string(),
        capacity: shape.receives,
        headers: shape.messages,
        refill: shape.policy.name(),
        threshold: shape.policy.bytes().map(|(threshold, _)| threshold),
        force: shape.policy.bytes().map(|(_, force)| force),
        ratio: costs.software / costs.hardware,
        searches,
        in_hardware_share: each(sum(|counts| counts.in_hardware) as f64),
        internal_searches: internal,
        internal_in_hardware_share: (internal > 0).then(|| ended as f64 / internal as f64),
        receives_spilled: receives.spilled,
        messages_spilled: messages.spilled,
        refilled: receives.refilled,
        kept: shape.policy.bytes().map(|_| seen.kept),
        hardware_looked: each(hardware),
        software_looked: each(software),
        ns: each(ns),
        checked: None,
        cm: None,
    }
}

/// The rows, those that differ in the ratio alone on one line.
fn text(rows: &[Row]) -> String {
    let mut text = String::new();
    let mut before: Option<&Row> = None;
    for row in rows {
        if let Some(before) = before
            && before.is_same_case(row)
        {
            let _ = write!(text, "{:>11.1}", row.ns);
            continue;
        }
        if let Some(before) = before {
            text += &before.ending();
        }
        if before.is_none_or(|before| before.origin != row.origin) {
            text += &head(row, rows);
        } else if before.is_some_and(|before| before.arrivals != row.arrivals) {
            text += &counted(row);
        }
        let Row {
            arrivals,
            engine,
            capacity,
            headers,
            ..
        } = row;
        let refill = match row.threshold {
            Some(bytes) => format!("{}>={bytes}", row.refill),
            None => row.refill.to_owned(),
        };
        let _ = write!(
            text,
            "{arrivals:<18} {engine:<14} {refill:<13}{capacity:>8}{headers:>8}{:>10.2} %{:>10}{:>10}{:>10}{:>9.2}{:>9.2}{:>11.1}",
            100.0 * row.in_hardware_share,
            row.receives_spilled,
            row.messages_spilled,
            row.refilled,
            row.hardware_looked,
            row.software_looked,
            row.ns,
        );
        before = Some(row);
    }
    text + &before.map_or_else(String::new, Row::ending)
}

fn head(first: &Row, rows: &[Row]) -> String {
    let mut text = format!(
        "# tagwire match offload: {}: {} searches of queues with entries{}\n",
        first.origin,
        first.searches,
        match first.internal_searches {
            0 => String::new(),
            own => format!(", {own} of them the library's own"),
        }
    ) + &counted(first);
    let _ = write!(
        text,
        "{:<18} {:<14} {:<13}{:>8}{:>8}{:>12}{:>10}{:>10}{:>10}{:>9}{:>9}",
        "arrivals",
        "software",
        "refill",
        "entries",
        "headers",
        "in hardware",
        "spilled",
        "messages",
        "refilled",
        "hw",
        "sw"
    );
    for row in rows.iter().filter(|row| first.is_same_case(row)) {
        let _ = write!(text, "{:>11}", format!("ns x{}", row.ratio));
    }
    text.push('\n');
    text
}

/// What cm counted, where it was asked for.
fn counted(row: &Row) -> String {
    row.cm
        .as_ref()
        .map_or_else(String::new, cm::Counts::to_text)
}

impl Row {
    /// Whether rows differ in the ratio of costs alone.
    fn is_same_case(&self, other: &Self) -> bool {
        (&self.origin, &self.arrivals) == (&other.origin, &other.arrivals)
            && self.is_shape_of(other)
    }

    fn is_shape_of(&self, other: &Self) -> bool {
        (&self.engine, self.capacity, self.headers, self.refill)
            == (&other.engine, other.capacity, other.headers, other.refill)
            && (self.threshold, self.force) == (other.threshold, other.force)
    }

    /// What stands behind the figures of a line: its end, and a line with what UCX's rules kept.
    fn ending(&self) -> String {
        let kept = self.kept.map(|kept| format!("  kept: {kept}\n"));
        format!("\n{}", kept.unwrap_or_default())
    }
}

fn entries(text: &str) -> Result<u32, String> {
    let number = parse::bytes(text).ok();
    let number = number.and_then(|number| u32::try_from(number).ok());
    let number = number.filter(|number| *number <= MOST);
    number.ok_or_else(|| format!("expected up to {MOST} entries, such as 64 or 1K"))
}

fn refill(text: &str) -> Result<String, String> {
    let is_known = text == policy::UCX || Refill::by_name(text).is_some();
    let known = || format!("{}, {}", Refill::NAMES.join(", "), policy::UCX);
    is_known
        .then(|| text.to_owned())
        .ok_or_else(|| format!("it is one of {}", known()))
}

fn size(text: &str) -> Result<u64, String> {
    parse::bytes(text).map_err(|_| "expected bytes, such as 1K".to_owned())
}

fn cost(text: &str) -> Result<f64, String> {
    let number: Option<f64> = text.parse().ok();
    let number = number.filter(|number| (0.0..=1e9).contains(number));
    number.ok_or_else(|| "expected a number from 0 to 1e9".to_owned())
}

/// Most entries in hardware.
const MOST: u32 = 1 << 20;

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use tagwire_matching::{Engine, Oracle};

    use super::*;
    use crate::replay::Entries;

    fn traces(app: &str, model: &str) -> Vec<Trace> {
        let model: Model = model.parse().unwrap();
        let app = AppName::parse(app).unwrap();
        model.traces(&app.scripts(), "test").unwrap()
    }

    fn shape(entries: u32) -> Shape {
        Shape {
            receives: entries,
            messages: entries,
            policy: Policy::Oldest(Refill::Each),
        }
    }

    fn row_of(traces: &[Trace], entries: u32, ratio: f64) -> Row {
        let list: EngineName = "list".parse().unwrap();
        let counts = counts(traces, &[], &list, shape(entries));
        let costs = Costs {
            hardware: 1.0,
            software: ratio,
            post: 0.0,
            spill: 0.0,
        };
        row(&list, shape(entries), &counts, costs)
    }

    /// The longest of both queues over all ranks, and the entries that a list looks at in all.
    fn oracle(traces: &[Trace]) -> (u32, u64) {
        let (mut longest, mut looked) = (0, 0);
        for trace in traces {
            let mut oracle = Oracle::with_capacity(trace.header.capacity);
            let mut entries = Entries::default();
            for call in &trace.calls {
                entries.call(&mut oracle, call);
            }
            let stats = oracle.stats();
            longest = longest
                .max(stats.posted.high_water)
                .max(stats.unexpected.high_water);
            looked += stats.attempts();
        }
        (longest, looked)
    }

    const APPS: [&str; 3] = ["halo27", "fds", "storm"];

    /// However many entries hardware has, both sides together look at what one list looks at.
    #[test]
    fn hardware_and_software_look_at_what_a_list_does() {
        for app in APPS {
            let traces = traces(app, "shuffled:seed=3");
            let (longest, looked) = oracle(&traces);
            for entries in [0, 1, 7, longest / 2, longest] {
                let row = row_of(&traces, entries, 1.0);
                let sum = (row.hardware_looked + row.software_looked) * row.searches as f64;
                assert!(
                    (sum - looked as f64).abs() < 0.5,
                    "{app}: {row:?}, {looked}"
                );
            }
        }
    }

    /// Levy and Ferreira, EuroMPI 2019: where software is not much slower, hardware may be short; where it is, each search has
    /// to end in hardware.
    #[test]
    fn short_hardware_is_dear_where_software_is_slow_alone() {
        for app in APPS {
            let traces = traces(app, "shuffled:seed=3");
            let (longest, _) = oracle(&traces);
            let time = |entries, ratio| row_of(&traces, entries, ratio).ns;
            let whole = row_of(&traces, longest, 100.0);
            assert_eq!(whole.in_hardware_share, 1.0, "{app}: {whole:?}");
            assert_eq!(whole.receives_spilled + whole.messages_spilled, 0);
            assert_eq!(whole.ns, time(longest, 2.0), "{app}");
            let half = longest / 2;
            assert!(time(half, 2.0) < 1.6 * time(longest, 2.0), "{app}");
            assert!(time(half, 100.0) > 5.0 * time(longest, 100.0), "{app}");
        }
    }

    /// The library's own calls share the lists with the program's, and are told apart.
    #[test]
    fn searches_of_the_library_are_told_apart() {
        use crate::trace::tests::{message, trace};
        use tagwire_matching::Pattern;
        use tagwire_matching::trace::{Event, Size};
        let post = |tag| (Event::Post(Pattern::exact(message(0, tag))), false);
        let arrive = |tag| (Event::Arrive(message(0, tag), Size::of(8)), true);
        let one = trace(&[
            post(5),
            post(-3),
            arrive(-3),
            arrive(5),
            post(-3),
            arrive(-3),
        ]);
        let row = row_of(std::slice::from_ref(&one), 1, 1.0);
        // That of the first internal message goes on in software; its queue is empty when the last one is posted.
        assert_eq!((row.searches, row.internal_searches), (3, 2), "{row:?}");
        assert_eq!(row.internal_in_hardware_share, Some(0.5), "{row:?}");
        let none = row_of(&traces("halo27", "posted"), 16, 1.0);
        assert_eq!(
            (none.internal_searches, none.internal_in_hardware_share),
            (0, None)
        );
    }

    /// What costs something beside entries is counted once for each.
    #[test]
    fn posts_and_spills_cost_what_is_said() {
        let traces = traces("fds", "shuffled");
        let list: EngineName = "list".parse().unwrap();
        let counts = counts(&traces, &[], &list, shape(16));
        let ns = |post, spill| {
            let costs = Costs {
                hardware: 1.0,
                software: 1.0,
                post,
                spill,
            };
            let row = row(&list, shape(16), &counts, costs);
            row.ns * row.searches as f64
        };
        let [receives, messages] = counts.queues;
        let posted = receives.accepted + receives.refilled + messages.accepted;
        let spilled = receives.spilled + messages.spilled;
        assert!(
            receives.spilled > 0 && receives.refilled > 0,
            "{receives:?}"
        );
        assert!((ns(3.0, 0.0) - ns(0.0, 0.0) - 3.0 * posted as f64).abs() < 1.0);
        assert!((ns(0.0, 7.0) - ns(0.0, 0.0) - 7.0 * spilled as f64).abs() < 1.0);
    }
}
