//! `tagwire match replay`: the calls of a trace on engines, each of whose answers is verified, and what they cost.

mod cost;
mod perturb;
mod verify;

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;
use tagwire_matching::{EngineName, Engines, Grade};

pub(crate) use self::cost::{Cost, Entries, cost, give};
use self::cost::{Searched, cost_by_part};
pub(crate) use self::verify::{bytes, check, verify};
use crate::checked::Checked;
use crate::error::{Error, Result};
use crate::output::{Circumstances, OutputArgs, Table};
use crate::real::{self, Plan, Ran, RealArgs, Way};
use crate::trace::{Trace, shown};
use crate::walk::{self, Walk};

/// The options of the test.
#[derive(Debug, Clone, Args)]
pub struct ReplayArgs {
    /// Traces, binary or of text, or folders of them
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Engines by name, with parameters behind a colon: list,ucx:bins=64 [default: all, without parameters]
    #[arg(long, value_name = "LIST")]
    engine: Option<String>,

    /// Shuffle the arrivals within the order that MPI allows, by this number
    #[arg(long, value_name = "SEED")]
    perturb: Option<u64>,

    /// Have real ranks of a job in this process post the receives and send the messages, under ob1 with each engine
    #[arg(long)]
    real: bool,

    #[command(flatten)]
    ranks: RealArgs,

    /// Passes of each engine over a trace, of whose times the median is reported
    #[arg(long, value_name = "COUNT", default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    passes: u32,

    /// Take what comes before something that is wrong
    #[arg(long)]
    partial: bool,

    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) const AFTER_HELP: &str = "\
Every answer of an engine is held to its grade ('checked'), and counted as 'other' where it is not that of the trace: an exact engine
has none, one of grade mpi may take another message. ns: of a call, the median of passes over the whole trace, without its
pauses; attempts: entries looked at by a call; lines: distinct cache lines of the engine's storage.
--perturb: messages that arrive in a row, of different sources, come in another order; those of one source keep theirs, and
none passes a call of the program. The answers of the trace then follow from MPI's rules.
--real: the rank of a trace and those whose messages it got are ranks of a job over --transport. Each message carries its number,
and each receive has to take the one that the rules give it. ns: of a call with all that it makes, peers included, since one
thread drives all ranks; attempts: of the layer's engine. Messages have the trace's sizes, at least 8 bytes and at most 64 KiB.

Exit status: 0 good, 1 usage, 2 a file cannot be read or is no trace, 3 an engine gave an answer that its grade forbids.

Examples:
  tagwire match replay traces --engine list,bins
  tagwire match replay traces/halo.0.twm --perturb 7 -o replay.csv
  tagwire match replay traces --real --engine list,bins --set eager-limit=1K";

/// One engine on one trace.
#[derive(Debug, Clone, Serialize)]
struct Row {
    file: String,
    rank: u32,
    engine: String,
    grade: &'static str,
    calls: usize,
    /// Answers that the grade allows and that are not those of the trace.
    other: u64,
    /// Messages that came at another place than in the trace.
    moved: usize,
    #[serde(flatten)]
    cost: Option<Cost>,
    /// The same of the program's calls that search, and of the library's own; none where real ranks made them.
    program: Option<Searched>,
    internal: Option<Searched>,
    /// The transport, where real ranks made the calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    transport: Option<String>,
    /// What of the engine was checked: these calls; `None` where one is wrong.
    checked: Option<Checked>,
    /// What the grade forbids.
    wrong: Option<String>,
}

/// Replays what is asked for; returns the exit status.
pub(crate) fn run(args: &ReplayArgs, known: &Engines, from: &Circumstances) -> Result<u8> {
    args.output.check()?;
    let mut engines = crate::depth::engines(args.engine.as_deref(), known)?;
    if args.real {
        args.ranks.check(args.ranks.way())?;
        choose_exact(&mut engines, args.engine.is_some())?;
    } else {
        args.ranks.check_unused("--real")?;
    }
    let mut rows = Vec::new();
    for (path, mut trace) in walk::read_all(&args.files, args.partial)? {
        let file = shown(&path);
        let moved = match args.perturb {
            Some(seed) => perturb::perturb(&mut trace.calls, seed),
            None => 0,
        };
        answer(&mut trace, args.perturb.is_some()).map_err(|why| Error::Trace {
            path: file.clone(),
            why,
        })?;
        let plan = match args.real {
            true => Some(Plan::new(&trace).map_err(|why| Error::Trace {
                path: file.clone(),
                why,
            })?),
            false => None,
        };
        for engine in &engines {
            let row = match &plan {
                None => row(&file, &trace, engine, args.passes),
                Some(plan) => real_row(&file, &trace, engine, plan, args, known),
            };
            let operations = trace.calls.len() as u64;
            let checked = Checked::of(engine, engine.grade(), operations, args.perturb)?;
            rows.push(Row {
                moved,
                checked: row.wrong.is_none().then_some(checked),
                ..row
            });
        }
    }
    let text = rows.iter().fold(head(), |text, row| text + &line(row));
    let table = Table::new("replay", &rows);
    args.output.deliver(&text, &table, from)?;
    let failed = rows.iter().any(|row| row.wrong.is_some());
    Ok(if failed { FAILED } else { 0 })
}

/// Leaves engines that answer as the rules of the trace's order have it; refuses others that were named.
fn choose_exact(engines: &mut Vec<EngineName>, are_named: bool) -> Result<()> {
    let is_exact = |engine: &EngineName| engine.grade() == Grade::Exact;
    match engines.iter().find(|engine| !is_exact(engine)) {
        Some(engine) if are_named => Err(Error::Usage(format!(
            "'{engine}' does not match as the trace says, and --real takes exact engines"
        ))),
        _ => {
            engines.retain(is_exact);
            Ok(())
        }
    }
}

/// Holds the answers of a trace to MPI's rules; one that was perturbed is given those that follow.
fn answer(trace: &mut Trace, follows: bool) -> Result<(), String> {
    let mut walk = Walk::new(trace.header.capacity);
    for (index, call) in trace.calls.iter_mut().enumerate() {
        let search = walk.search(&call.event);
        if follows && let Some(search) = search {
            call.matched = search.is_hit();
        }
        let done = walk.apply(call, search);
        done.map_err(|why| walk::cannot_be(index, &why))?;
    }
    Ok(())
}

fn row(file: &str, trace: &Trace, engine: &EngineName, passes: u32) -> Row {
    let verified = verify(trace, engine);
    let (other, wrong) = match verified {
        // What is exact answers as the trace does.
        Ok(other) if other > 0 && engine.grade() == Grade::Exact => (
            other,
            Some(format!("{other} answers are not those of the trace")),
        ),
        Ok(other) => (other, None),
        Err(why) => (0, Some(why)),
    };
    let measured = wrong.is_none().then(|| cost_by_part(trace, engine, passes));
    let (cost, parts) = measured.unzip();
    let [program, internal] = parts.map_or([None; 2], |parts| parts.map(Some));
    Row {
        other,
        cost,
        program,
        internal,
        wrong,
        ..empty_row(file, trace, engine)
    }
}

/// The same of real ranks.
fn real_row(
    file: &str,
    trace: &Trace,
    engine: &EngineName,
    plan: &Plan,
    args: &ReplayArgs,
    known: &Engines,
) -> Row {
    let way = Way {
        layer: "ob1",
        engine: Some(&engine.to_string()),
        ..args.ranks.way()
    };
    let passes = (0..args.passes).map(|_| real::run(plan, way, known));
    let passes: Result<Vec<Ran>, String> = passes.collect();
    let calls = trace.calls.len().max(1) as f64;
    let cost = passes.as_ref().ok().and_then(|passes| {
        let mut times: Vec<f64> = passes
            .iter()
            .map(|ran| ran.elapsed.as_nanos() as f64 / calls)
            .collect();
        times.sort_by(f64::total_cmp);
        Some(Cost {
            ns: *times.get(times.len() / 2)?,
            attempts: passes.first()?.engine?.attempts() as f64 / calls,
            lines: None,
        })
    });
    Row {
        transport: Some(way.transport.to_owned()),
        cost,
        wrong: passes.err(),
        ..empty_row(file, trace, engine)
    }
}

fn empty_row(file: &str, trace: &Trace, engine: &EngineName) -> Row {
    Row {
        file: file.to_owned(),
        rank: trace.header.rank,
        engine: engine.to_string(),
        grade: engine.grade().name(),
        calls: trace.calls.len(),
        other: 0,
        moved: 0,
        cost: None,
        program: None,
        internal: None,
        transport: None,
        checked: None,
        wrong: None,
    }
}

fn head() -> String {
    format!(
        "# tagwire match replay: figures of one call\n{:<28} {:>5} {:<26} {:<6} {:>10} {:>7} {:>9} {:>9} {:>9}  checked\n",
        "file", "rank", "engine", "grade", "calls", "other", "ns", "attempts", "lines"
    )
}

fn line(row: &Row) -> String {
    let Row {
        file,
        rank,
        engine,
        grade,
        calls,
        other,
        ..
    } = row;
    let mut text = format!("{file:<28} {rank:>5} {engine:<26} {grade:<6} {calls:>10} {other:>7}");
    if let Some(Cost {
        ns,
        attempts,
        lines,
    }) = row.cost
    {
        let lines = lines.map_or_else(|| "-".to_owned(), |lines| format!("{lines:.2}"));
        let _ = write!(text, " {ns:>9.1} {attempts:>9.2} {lines:>9}");
    }
    if let Some(checked) = row.checked {
        let _ = write!(text, "  {checked}");
    }
    text.push('\n');
    if let (Some(program), Some(internal)) = (row.program, row.internal)
        && internal.calls > 0
    {
        let _ = writeln!(
            text,
            "  of the program {} calls search, attempts {:.2}; of the library's own {}, {:.2}",
            program.calls, program.attempts, internal.calls, internal.attempts
        );
    }
    if let Some(wrong) = &row.wrong {
        let _ = writeln!(text, "  WRONG: {wrong}");
    }
    text
}

/// The exit status when an engine gave an answer that its grade forbids.
const FAILED: u8 = 3;
