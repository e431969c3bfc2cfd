//! `tagwire match import`: traces of other tools, as scripts.
//!
//! None of them has the order of arrivals. What they have are calls of MPI, which become steps of a [`Script`], and a
//! model makes the order. Communicators become contexts by their number. Collectives are left out and counted, or become
//! [messages](collectives).

mod allprof;
mod calls;
mod collectives;
mod dumpi;
mod goal;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_matching::Pattern;

use self::collectives::{Collective, Collectives, Kind as Call, Placed};
use crate::arrange::{self, ArrangeArgs, Arranged};
use crate::error::{Error, Result};
use crate::output::Circumstances;
use crate::trace::shown;
use crate::traffic::{Outgoing, Request, Script};

/// The options.
#[derive(Debug, Clone, Args)]
pub struct ImportArgs {
    /// What the files are: dumpi-text (dumpi2ascii), allprof (liballprof), goal (LogGOPSim)
    #[arg(value_name = "FORMAT")]
    kind: Kind,

    /// The folder with a file for each rank, or one file
    #[arg(value_name = "PATH")]
    path: PathBuf,

    /// Bits of a GOAL tag, the highest, that are the number of the communicator
    #[arg(long, value_name = "COUNT", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=15))]
    goal_comm_bits: u32,

    /// Collectives of all ranks: drop (they are counted), expand (they become messages with internal tags)
    #[arg(long, value_name = "WHAT", default_value = "drop")]
    collectives: Collectives,

    /// Take what comes before something that is wrong; ranks that wait for what is missing end there
    #[arg(long)]
    partial: bool,

    #[command(flatten)]
    arrange: ArrangeArgs,
}

pub(crate) const AFTER_HELP: &str = "\
Calls between two ranks become posts, sends and waits; collectives are left out and counted. A receive whose sender is not
among the files would wait for ever, and is refused: take the files of all ranks. A file that was cut is refused with the line
from which on it cannot be used.
--collectives expand: MPI_Barrier by dissemination, MPI_Bcast and MPI_Reduce by binomial trees, MPI_Allreduce by recursive doubling,
MPI_Allgather by a ring, MPI_Alltoall by pairwise exchanges, as MPI libraries do them for short messages: which algorithm it was is in
no trace. Their messages are the library's own in match stats. Others, and those of communicators that have not all ranks, are left
out. GOAL has none: whoever made the schedule has expanded them, with tags as those of the program.

Exit status: 0 good, 1 usage, 2 a file cannot be read or is none of its format, or an output could not be written.

Examples:
  tagwire match import allprof sweep3d-2x2 --arrivals causal,posted,random
  tagwire match import dumpi-text texts --arrivals sendtime:L=2000 --traces out
  tagwire match import allprof sweep3d-2x2 --collectives expand --traces out && tagwire match stats out/causal
  tagwire match import goal schedule.goal --goal-comm-bits 8";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Kind {
    DumpiText,
    Allprof,
    Goal,
}

/// What was read.
#[derive(Debug, Default)]
pub(crate) struct Imported {
    /// By rank.
    pub(crate) scripts: Vec<Script>,
    /// How often each call was left out.
    pub(crate) left_out: BTreeMap<String, u64>,
    /// How often each kind of collective has become messages.
    pub(crate) expanded: BTreeMap<Call, u64>,
    /// What is wrong behind what was read.
    pub(crate) cut: Option<String>,
}

/// Prints the rows of what is imported; returns the exit status.
pub(crate) fn run(args: &ImportArgs, from: &Circumstances) -> Result<u8> {
    let partial = args.partial;
    let imported = match args.kind {
        Kind::DumpiText => ranks(&args.path, dumpi::parse, args.collectives, partial)?,
        Kind::Allprof => ranks(&args.path, allprof::parse, args.collectives, partial)?,
        Kind::Goal => schedule(&args.path, args.goal_comm_bits, partial)?,
    };
    let counts = imported.left_out.iter();
    let left_out: Vec<String> = counts
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    let mut origin = shown(&args.path);
    let expanded = imported.expanded.iter().map(|(call, count)| {
        let (name, algorithm) = (call.call(), call.algorithm());
        format!("{count} {name} by {algorithm}")
    });
    let expanded: Vec<String> = expanded.collect();
    if !expanded.is_empty() {
        origin.push_str(&format!(" (expanded: {})", expanded.join(", ")));
    }
    if !left_out.is_empty() {
        origin.push_str(&format!(" (left out: {})", left_out.join(", ")));
    }
    if let Some(cut) = &imported.cut {
        origin.push_str(&format!(" (read up to {cut})"));
    }
    let stem = args.path.file_stem().unwrap_or_default();
    let arranged = Arranged {
        test: "import",
        file: &stem.to_string_lossy(),
        origin,
        scripts: &imported.scripts,
        real: None,
        theory: &|_| None,
    };
    arrange::run(&arranged, &args.arrange, from)
}

/// Reads a schedule of all ranks.
fn schedule(path: &Path, comm_bits: u32, partial: bool) -> Result<Imported> {
    let parsed = goal::parse(&read(path)?, comm_bits);
    let (mut imported, cut) = parsed.map_err(|why| wrong(path, why))?;
    if let Some(why) = cut {
        if !partial {
            return Err(wrong(path, with_hint(&why)));
        }
        imported.scripts.iter_mut().for_each(Script::cut);
        imported.cut = Some(why);
    }
    Ok(imported)
}

/// Reads the file of each rank. Its number is the last in the file's name.
fn ranks(
    path: &Path,
    parse: fn(&str, &mut Importer) -> Result<(), String>,
    collectives: Collectives,
    partial: bool,
) -> Result<Imported> {
    let is_folder = path.is_dir();
    let files = files(path, "txt")?;
    // One file alone says not how many others there are.
    let count = is_folder.then_some(files.len() as u32);
    let mut imported = Imported::default();
    let mut called = Vec::new();
    for (rank, file) in files {
        let mut importer = Importer {
            rank,
            ranks: count,
            collectives,
            ..Importer::default()
        };
        let told = |why: &str| format!("rank {rank}: {why}");
        if let Err(why) = parse(&read(&file)?, &mut importer) {
            if importer.calls == 0 {
                return Err(wrong(&file, told(&why)));
            }
            if !partial {
                return Err(wrong(&file, told(&with_hint(&why))));
            }
            importer.script.cut();
            imported.cut.get_or_insert_with(|| told(&why));
        }
        imported.scripts.push(importer.script);
        called.push(importer.called);
        for (name, count) in importer.left_out {
            *imported.left_out.entry(name).or_default() += count;
        }
    }
    let counts = collectives::expand(&mut imported.scripts, &called);
    let counts = counts.map_err(|why| wrong(path, why))?;
    imported.expanded = counts.expanded;
    for (kind, count) in counts.left_out {
        let name = kind.call().to_owned();
        *imported.left_out.entry(name).or_default() += count;
    }
    Ok(imported)
}

/// The files of a folder by rank, or one file.
fn files(path: &Path, ending: &str) -> Result<BTreeMap<u32, PathBuf>> {
    let mut files: BTreeMap<u32, PathBuf> = BTreeMap::new();
    if path.is_dir() {
        let entries = fs::read_dir(path).map_err(|error| Error::Read(shown(path), error))?;
        for file in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let is_wanted = file.extension().is_some_and(|end| end == ending);
            if let Some(rank) = number(&file).filter(|_| is_wanted)
                && let Some(other) = files.insert(rank, file.clone())
            {
                let (file, other) = (shown(&file), shown(&other));
                return Err(wrong(
                    path,
                    format!("two files are of rank {rank}: {file} and {other}"),
                ));
            }
        }
    } else {
        files.insert(0, path.to_owned());
    }
    if files.is_empty() || !files.keys().copied().eq(0..files.len() as u32) {
        let have: Vec<String> = files.keys().map(u32::to_string).collect();
        let have = have.join(", ");
        return Err(wrong(
            path,
            format!(
                "it is to have a file that ends with the rank and .{ending} for each rank from 0; it has [{have}]"
            ),
        ));
    }
    Ok(files)
}

fn with_hint(why: &str) -> String {
    format!("{why} (--partial takes what comes before)")
}

/// A line of a file, or its beginning where it is long.
fn shortened(line: &str) -> String {
    match line.char_indices().nth(40) {
        Some((place, _)) => format!("{}...", &line[..place]),
        None => line.to_owned(),
    }
}

fn number(file: &Path) -> Option<u32> {
    let name = file.file_stem()?.to_str()?;
    let digits = name.len() - name.bytes().rev().take_while(u8::is_ascii_digit).count();
    name[digits..].parse().ok()
}

fn read(path: &Path) -> Result<String> {
    let bytes = fs::read(path).map_err(|error| Error::Read(shown(path), error))?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

fn wrong(path: &Path, why: String) -> Error {
    Error::Trace {
        path: shown(path),
        why,
    }
}

/// The script of a rank while it is read, with the tool's names of its requests.
#[derive(Debug, Default)]
pub(crate) struct Importer {
    pub(crate) script: Script,
    open: BTreeMap<u64, Request>,
    left_out: BTreeMap<String, u64>,
    /// Whose script it is.
    rank: u32,
    /// How many ranks there are, where that is known.
    ranks: Option<u32>,
    collectives: Collectives,
    /// Those that are to become messages, once the scripts of all ranks are known.
    called: Vec<Placed>,
    /// Calls that were read.
    calls: u64,
}

impl Importer {
    /// A request was made; the tool calls it so. A name of before that nobody waited for is taken over.
    fn name(&mut self, name: u64, request: Request) {
        self.open.insert(name, request);
    }

    /// The requests of these names, which are waited for; those that nobody made (of persistent or of other operations) are
    /// passed over.
    fn named(&mut self, names: impl IntoIterator<Item = u64>) -> Vec<Request> {
        names
            .into_iter()
            .filter_map(|name| self.open.remove(&name))
            .collect()
    }

    /// Refuses a rank that there is not.
    fn within(&self, rank: u32) -> Result<(), String> {
        match self.ranks {
            Some(ranks) if rank >= ranks => Err(format!(
                "it is of rank {rank}, and there are files of {ranks} ranks"
            )),
            _ => Ok(()),
        }
    }

    fn send(&mut self, message: Outgoing) -> Result<Request, String> {
        self.within(message.to)?;
        Ok(self.script.send(message))
    }

    /// The pattern of a receive.
    fn pattern(&self, source: i64, tag: i64, context: u16) -> Result<Pattern, String> {
        let pattern = pattern(source, tag, context)?;
        if let Some(source) = pattern.source.rank() {
            self.within(source.as_u32())?;
        }
        Ok(pattern)
    }

    /// A collective is called, or another call that is left out; `read` says which one it is.
    fn collective(
        &mut self,
        call: &str,
        (at, line): (u64, usize),
        read: impl FnOnce(Call) -> Result<Collective, String>,
    ) -> Result<(), String> {
        let kind = Call::of(call).filter(|_| self.collectives == Collectives::Expand);
        let Some(kind) = kind else {
            self.leave_out(call);
            return Ok(());
        };
        let what = read(kind)?;
        self.within(what.root)?;
        self.called.push(Placed {
            before: self.script.steps().len(),
            at,
            line,
            what,
        });
        Ok(())
    }

    fn leave_out(&mut self, call: &str) {
        *self.left_out.entry(call.to_owned()).or_default() += 1;
    }
}

/// The pattern of a receive; a source of -1 or -2, or a tag of -1, is any.
fn pattern(source: i64, tag: i64, context: u16) -> Result<Pattern, String> {
    let source = match u32::try_from(source) {
        Ok(rank) if rank <= Rank::MAX => Rank::new(rank).into(),
        Err(_) if matches!(source, -2 | -1) => SourceSelector::ANY,
        _ => return Err(format!("no rank has the number {source}")),
    };
    let tag = match i32::try_from(tag) {
        Ok(-1) => TagSelector::ANY,
        Ok(tag) if tag >= 0 => Tag::user(tag).map_or(TagSelector::ANY, Into::into),
        _ => return Err(format!("no tag has the number {tag}")),
    };
    let context = ContextId::new(context);
    Ok(Pattern {
        source,
        tag,
        context,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests;
