//! `tagwire match check`: the gate, and how what an engine does grows with its queues.

use std::fmt::Write as _;

use clap::{Args, ValueEnum};
use serde::Serialize;
use tagwire_base::config::parse;
use tagwire_matching::{Capacity, EngineName, Engines, Grade};

use crate::checked::Checked;
use crate::depth::Format;
use crate::error::{Error, Result};
use crate::gate::Gate;
use crate::growth::{self, Grown, Growth};
use crate::output::{Circumstances, OutputArgs, Table, print};
use crate::rounds::Rounds;
use crate::valgrind::{self, option};

/// The options of the test.
#[derive(Debug, Clone, Args)]
pub struct CheckArgs {
    /// Engines by name, with parameters behind a colon: ucx:bins=64
    #[arg(value_name = "ENGINE", required = true)]
    engines: Vec<String>,

    /// What they are held to [default: what each promises]
    #[arg(long, value_name = "GRADE", value_parser = grade)]
    grade: Option<Grade>,

    /// Operations for each engine, over all programs
    #[arg(long, value_name = "COUNT", default_value = "1000000", value_parser = operations)]
    operations: u64,

    /// What the random programs follow from
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,

    /// What is counted beside: allocations (by valgrind), of calls of every kind once the engine is warm
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    count: Vec<Count>,

    #[command(flatten)]
    output: OutputArgs,

    /// Only do so many rounds of calls of one engine: what is run under valgrind
    #[arg(long, hide = true)]
    only_rounds: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Count {
    Allocations,
}

pub(crate) const AFTER_HELP: &str = "\
Grades: exact (as the oracle: messages of all sources in the order of arrival), mpi (messages of one source and context
in their order, receives in theirs), free (overtaking allowed). A failure is shown as a program: each line is a call of
the engine with its answer, and 'line 2' names what that call queued.

An engine that passes is told by how each kind of operation grows: what it looks at, and the lines of its storage, behind
16 to 16,384 entries that do not fit. The number behind O(1) is the figure, behind O(posted) what each entry adds. Rows
are of a kind and a number of entries.

Exit status: 0 all engines passed, 1 usage, 2 the output could not be written or valgrind is not there, 3 an engine failed.

Examples:
  tagwire match check ucx                                   10^6 operations
  tagwire match check list,flajslik:bins=16,key=tag         several engines
  tagwire match check source:any=rotate --grade exact       fails: MPI allows more than the oracle does
  tagwire match check ./libmine.so --count allocations      0 where it has its memory before
  tagwire match check bins,ucx -o check.json                for 'tagwire report': attempts and lines over entries
  tagwire match check chunks:k=7 --operations 1G --seed 7";

/// A kind of operation behind so many entries, or an engine that failed.
#[derive(Debug, Clone, Default, Serialize)]
struct Row {
    engine: String,
    programs: u64,
    operation: Option<&'static str>,
    behind: Option<&'static str>,
    ahead: Option<u32>,
    attempts: Option<f64>,
    lines: Option<f64>,
    /// How the attempts grow over all entries, and the lines.
    growth: Option<String>,
    growth_factor: Option<f64>,
    lines_growth: Option<String>,
    lines_growth_factor: Option<f64>,
    /// Of a call, on the average over all kinds, once the engine is warm; `None` where they were not counted.
    allocations: Option<f64>,
    /// What it has passed; `None` where it failed.
    checked: Option<Checked>,
    /// Where it failed.
    wrong: Option<String>,
}

/// Checks what is asked for; returns the exit status.
pub(crate) fn run(args: &CheckArgs, known: &Engines, from: &Circumstances) -> Result<u8> {
    let engines = known.list(&args.engines.join(","))?;
    if let Some(rounds) = args.only_rounds {
        return only(&engines, rounds);
    }
    args.output.check()?;
    if args.count.contains(&Count::Allocations) {
        valgrind::require("--count allocations")?;
    }
    let mut rows = Vec::new();
    for engine in engines {
        let (text, of_engine) = check(&engine, args)?;
        if args.output.format == Format::Text {
            print(&text)?;
        }
        rows.extend(of_engine);
    }
    let table = Table::new("check", &rows);
    // Text is printed by now.
    args.output.deliver("", &table, from)?;
    let failed = rows.iter().any(|row| row.wrong.is_some());
    Ok(if failed { FAILED } else { PASSED })
}

/// What is said of an engine, and its rows.
fn check(engine: &EngineName, args: &CheckArgs) -> Result<(String, Vec<Row>)> {
    let gate = Gate {
        grade: args.grade.unwrap_or_else(|| engine.grade()),
        seed: args.seed,
        operations: args.operations,
    };
    let (grade, seed) = (gate.grade, gate.seed);
    match gate.check_named(engine) {
        Ok(passed) => {
            let checked = Checked::of(engine, grade, passed.operations, Some(seed))?;
            let grown = growth::of(engine);
            let allocations = match args.count.contains(&Count::Allocations) {
                true => Some(allocations(engine)?),
                false => None,
            };
            let (operations, programs) = (passed.operations, passed.programs);
            let mut text = format!(
                "{engine}: passed as {grade}: {operations} operations in {programs} programs, seed {seed}\n{}",
                growth_text(&grown)
            );
            if let Some(allocations) = allocations {
                let _ = writeln!(text, "  allocations of a call, once warm: {allocations:.3}");
            }
            let row = Row {
                engine: engine.to_string(),
                programs,
                allocations,
                checked: Some(checked),
                ..Row::default()
            };
            Ok((text, rows(&row, &grown)))
        }
        Err(failed) => {
            let (programs, length) = (failed.programs, failed.program.operations.len());
            let text = format!(
                "{engine}: FAILED as {grade} in program {programs}, seed {seed}; its shortest form, of {length} operations:\n{failed}\n"
            );
            let row = Row {
                engine: engine.to_string(),
                programs,
                wrong: Some(failed.complaint),
                ..Row::default()
            };
            Ok((text, vec![row]))
        }
    }
}

/// The rows of an engine that has passed, which have all of `row`.
fn rows(row: &Row, grown: &[Grown]) -> Vec<Row> {
    if grown.is_empty() {
        return vec![row.clone()];
    }
    let of_kind = |grown: &Grown| {
        let of_kind = Row {
            operation: Some(grown.kind.operation),
            behind: Some(grown.kind.behind),
            growth: Some(grown.attempts.to_string()),
            growth_factor: Some(grown.attempts.factor),
            lines_growth: grown.lines.map(|lines| lines.to_string()),
            lines_growth_factor: grown.lines.map(|lines| lines.factor),
            ..row.clone()
        };
        let points = grown.points.iter().map(|point| Row {
            ahead: Some(point.entries),
            attempts: Some(point.attempts),
            lines: point.lines,
            ..of_kind.clone()
        });
        points.collect::<Vec<_>>()
    };
    grown.iter().flat_map(of_kind).collect()
}

/// Returns how often an engine allocates in a call, on the average over all kinds: the difference of two runs, whose rounds
/// differ in number. Its own library may have an allocator that valgrind does not know; then it counts none.
fn allocations(engine: &EngineName) -> Result<f64> {
    let run = |rounds: u32| {
        let words = [
            "check".to_owned(),
            engine.to_string(),
            option("only-rounds", rounds),
        ];
        valgrind::allocations(words)
    };
    let (warm, all) = (run(Rounds::WARM)?, run(Rounds::WARM + COUNTED)?);
    Ok(all.saturating_sub(warm) as f64 / f64::from(COUNTED * Rounds::CALLS))
}

/// Does rounds of calls and no more.
fn only(engines: &[EngineName], rounds: u32) -> Result<u8> {
    let [engine] = engines else {
        return Err(Error::Usage("--only-rounds is of one engine".to_owned()));
    };
    let mut engine = engine.open(Capacity::default());
    Rounds::new().run(&mut engine, rounds);
    Ok(PASSED)
}

fn growth_text(grown: &[Grown]) -> String {
    let mut text = String::new();
    let shown = |growth: &Growth| format!("{growth} {:.3}", growth.factor);
    if !grown.is_empty() {
        let _ = writeln!(
            text,
            "  {:<28}{:<36}{:<24}lines",
            "operation", "behind", "looked at"
        );
    }
    for one in grown {
        let lines = one.lines.as_ref().map_or_else(|| "-".to_owned(), shown);
        let _ = writeln!(
            text,
            "  {:<28}{:<36}{:<24}{lines}",
            one.kind.operation,
            one.kind.behind,
            shown(&one.attempts)
        );
    }
    text
}

fn operations(text: &str) -> Result<u64, String> {
    let number = parse::bytes(text).ok().filter(|number| *number > 0);
    number.ok_or_else(|| "expected a number such as 20000 or 1M, and not 0".to_owned())
}

fn grade(text: &str) -> Result<Grade, String> {
    let all = [Grade::Exact, Grade::Mpi, Grade::Free];
    let found = all.into_iter().find(|grade| grade.name() == text);
    found.ok_or_else(|| format!("it is one of {}", Grade::NAMES.join(", ")))
}

/// Rounds whose allocations are counted.
const COUNTED: u32 = 50;
/// The exit status when all engines passed, and when one failed.
const PASSED: u8 = 0;
const FAILED: u8 = 3;
