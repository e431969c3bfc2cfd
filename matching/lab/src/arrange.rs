//! From scripts to traces and figures, under one model of arrivals after the other: what `app` and `import` share.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use crate::error::{Error, Result};
use crate::output::{Circumstances, OutputArgs, Table};
use crate::stats::distribution::Quantiles;
use crate::stats::{Groups, Key, count, merge};
use crate::trace::{Trace, make_folder};
use crate::traffic::{Model, Script};

/// The options of what makes traces of scripts.
#[derive(Debug, Clone, Args)]
pub struct ArrangeArgs {
    /// Models of how messages arrive, with parameters behind a colon: causal:L=500, posted, shuffled, random:seed=7, sendtime
    #[arg(
        long,
        value_name = "LIST",
        default_value = "causal,posted,shuffled,random"
    )]
    arrivals: String,

    /// Also write the traces, FOLDER/MODEL/NAME.RANK.twm, for match stats and match replay
    #[arg(long, value_name = "FOLDER")]
    traces: Option<PathBuf>,

    #[command(flatten)]
    output: OutputArgs,
}

pub(crate) const MODELS: &str = "\
Models of arrivals: causal (virtual time by LogGP: L, o, g in ns, G in ps a byte), posted (each message when its receive is
the next that is waited for: the best case), shuffled (once all ranks wait, what is on its way comes in random order), random
(steps and arrivals by lot, as messages allow), sendtime (the times of the trace, and L). Messages of two ranks keep their
order in all. The order of arrivals was not seen: figures are the range over models.";

/// What traces are made of.
pub(crate) struct Arranged<'a> {
    /// The test, for the rows.
    pub(crate) test: &'static str,
    /// The name of the files of traces.
    pub(crate) file: &'a str,
    /// Where the scripts come from, for headers and rows.
    pub(crate) origin: String,
    pub(crate) scripts: &'a [Script],
    /// Ranks that run them beside the models.
    pub(crate) real: Option<Real<'a>>,
    /// The mean depth that theory has, by the name of the model.
    pub(crate) theory: &'a dyn Fn(&str) -> Option<f64>,
}

/// Real ranks that run scripts.
pub(crate) struct Real<'a> {
    pub(crate) transport: &'a str,
    /// Runs them, and returns the traces of the ranks.
    pub(crate) run: &'a dyn Fn() -> Result<Vec<Trace>>,
}

/// The program's figures over all ranks, under one model.
#[derive(Debug, Clone, Serialize)]
struct Row {
    origin: String,
    arrivals: String,
    /// What carried the messages of real ranks.
    #[serde(skip_serializing_if = "Option::is_none")]
    transport: Option<String>,
    ranks: usize,
    receives: u64,
    messages: u64,
    wildcard_share: f64,
    unexpected_share: f64,
    /// When the queue was searched.
    length: Quantiles,
    /// Of hits among posted receives.
    depth: Quantiles,
    /// The mean that it is to have, where theory has one.
    depth_theory: Option<f64>,
    /// Of receives that look for a message.
    message_depth: Quantiles,
    /// Receives of the library itself, and the depth of hits among those of them that wait.
    internal_receives: u64,
    internal_depth: Quantiles,
}

/// Prints the rows; returns the exit status.
pub(crate) fn run(arranged: &Arranged<'_>, args: &ArrangeArgs, from: &Circumstances) -> Result<u8> {
    args.output.check()?;
    let mut rows = Vec::new();
    for model in Model::parse_list(&args.arrivals)? {
        let traces = model.traces(arranged.scripts, &arranged.origin);
        let traces = traces.map_err(|error| match error {
            Error::Script(why) => Error::Trace {
                path: arranged.origin.clone(),
                why,
            },
            other => other,
        })?;
        rows.push(row(arranged, args, model.to_string(), &traces)?);
    }
    if let Some(real) = &arranged.real {
        let mut traces = (real.run)()?;
        for trace in &mut traces {
            trace.header.arrivals = REAL.to_owned();
            trace.header.command.clone_from(&arranged.origin);
        }
        rows.push(Row {
            transport: Some(real.transport.to_owned()),
            ..row(arranged, args, REAL.to_owned(), &traces)?
        });
    }
    let table = Table::new(arranged.test, &rows);
    let text = text(arranged.test, &rows);
    args.output.deliver(&text, &table, from)?;
    Ok(0)
}

/// Counts what is in traces whose messages arrived in this way, and writes them where that is asked for.
fn row(
    arranged: &Arranged<'_>,
    args: &ArrangeArgs,
    arrivals: String,
    traces: &[Trace],
) -> Result<Row> {
    let mut sum = Groups::new();
    for trace in traces {
        let path = || format!("{}.{}", arranged.file, trace.header.rank);
        let counted = count(trace).map_err(|why| Error::Trace { path: path(), why })?;
        merge(&mut sum, &counted);
    }
    if let Some(folder) = &args.traces {
        let folder = folder.join(arrivals.replace([':', '='], "-"));
        make_folder(&folder)?;
        for trace in traces {
            let name = format!("{}.{}.twm", arranged.file, trace.header.rank);
            trace.write(&folder.join(name))?;
        }
    }
    let figures = sum.entry(Key::PROGRAM).or_default().summary();
    let internal = sum.entry(Key::INTERNAL).or_default().summary();
    let plain = arrivals.split(':').next().unwrap_or_default();
    Ok(Row {
        origin: arranged.origin.clone(),
        transport: None,
        ranks: traces.len(),
        receives: figures.posts,
        messages: figures.arrivals,
        wildcard_share: figures.wildcard_share,
        unexpected_share: figures.unexpected_share,
        length: figures.receives.length,
        depth: figures.receives.hit_depth,
        depth_theory: (arranged.theory)(plain),
        message_depth: figures.messages.depth,
        internal_receives: internal.posts,
        internal_depth: internal.receives.hit_depth,
        arrivals,
    })
}

fn text(test: &str, rows: &[Row]) -> String {
    let mut text = String::new();
    let Some(first) = rows.first() else {
        return text;
    };
    let (origin, ranks) = (&first.origin, first.ranks);
    let (receives, messages) = (first.receives, first.messages);
    let _ = writeln!(
        text,
        "# tagwire match {test}: {origin}: {ranks} ranks, {receives} receives ({:.1} % wildcards), {messages} messages",
        100.0 * first.wildcard_share
    );
    let _ = writeln!(
        text,
        "{:<28}{:>12}{:>10}{:>10}{:>10}{:>10}{:>10}{:>10}{:>14}",
        "arrivals",
        "unexpected",
        "length",
        "depth",
        "theory",
        "p99",
        "max",
        "messages",
        "their depth"
    );
    for row in rows {
        let theory = row.depth_theory;
        let theory = theory.map_or_else(|| "-".to_owned(), |depth| format!("{depth:.2}"));
        let _ = writeln!(
            text,
            "{:<28}{:>10.1} %{:>10.2}{:>10.2}{theory:>10}{:>10}{:>10}{:>10}{:>14.2}",
            row.arrivals,
            100.0 * row.unexpected_share,
            row.length.mean,
            row.depth.mean,
            row.depth.p99,
            row.depth.max,
            row.message_depth.count,
            row.message_depth.mean,
        );
    }
    if let Some(range) = range(rows, |row| row.depth) {
        let _ = writeln!(text, "depth over models: {range}");
    }
    let internal = rows.iter().map(|row| row.internal_receives).max();
    if let Some(internal) = internal.filter(|count| *count > 0) {
        let _ = write!(text, "of the library itself: {internal} receives");
        let range = range(rows, |row| row.internal_depth);
        let range = range.map(|range| format!(", depth over models: {range}"));
        let _ = writeln!(text, "{}", range.unwrap_or_default());
    }
    text
}

/// The range of a mean over several rows.
fn range(rows: &[Row], figure: impl Fn(&Row) -> Quantiles) -> Option<String> {
    let figures = rows.iter().map(figure).filter(|figure| figure.count > 0);
    let means: Vec<f64> = figures.map(|figure| figure.mean).collect();
    let least = means.iter().copied().fold(f64::INFINITY, f64::min);
    let most = means.iter().copied().fold(0.0, f64::max);
    (means.len() > 1).then(|| format!("{least:.2} to {most:.2}"))
}

/// The row of what real ranks did.
const REAL: &str = "real";
