//! `tagwire match import`: traces of other tools, as scripts.
//!
//! None of them has the order of arrivals. What they have are calls of MPI, which become steps of a [`Script`], and a
//! model makes the order. Communicators become contexts by their number. Collectives are left out, and counted.

mod allprof;
mod dumpi;
mod goal;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_matching::Pattern;

use crate::arrange::{self, ArrangeArgs, Arranged};
use crate::error::{Error, Result};
use crate::output::Circumstances;
use crate::trace::shown;
use crate::traffic::{Request, Script};

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

    #[command(flatten)]
    arrange: ArrangeArgs,
}

pub(crate) const AFTER_HELP: &str = "\
Calls between two ranks become posts, sends and waits; collectives are left out and counted. A receive whose sender is not
among the files would wait for ever, and is refused: take the files of all ranks.

Exit status: 0 good, 1 usage, 2 a file cannot be read or is none of its format, or an output could not be written.

Examples:
  tagwire match import allprof sweep3d-2x2 --arrivals causal,posted,random
  tagwire match import dumpi-text texts --arrivals sendtime:L=2000 --traces out
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
}

/// Prints the rows of what is imported; returns the exit status.
pub(crate) fn run(args: &ImportArgs, from: &Circumstances) -> Result<u8> {
    let imported = match args.kind {
        Kind::DumpiText => ranks(&args.path, "txt", dumpi::parse)?,
        Kind::Allprof => ranks(&args.path, "txt", allprof::parse)?,
        Kind::Goal => {
            let text = read(&args.path)?;
            let parsed = goal::parse(&text, args.goal_comm_bits);
            parsed.map_err(|why| wrong(&args.path, why))?
        }
    };
    let counts = imported.left_out.iter();
    let left_out: Vec<String> = counts
        .map(|(name, count)| format!("{count} {name}"))
        .collect();
    let mut origin = shown(&args.path);
    if !left_out.is_empty() {
        origin.push_str(&format!(" (left out: {})", left_out.join(", ")));
    }
    let stem = args.path.file_stem().unwrap_or_default();
    let arranged = Arranged {
        test: "import",
        file: &stem.to_string_lossy(),
        origin,
        scripts: &imported.scripts,
        theory: &|_| None,
    };
    arrange::run(&arranged, &args.arrange, from)
}

/// Reads the file of each rank. Its number is the last in the file's name.
fn ranks(
    path: &Path,
    ending: &str,
    parse: fn(&str, &mut Importer) -> Result<(), String>,
) -> Result<Imported> {
    let mut files: BTreeMap<u32, PathBuf> = BTreeMap::new();
    if path.is_dir() {
        let entries = fs::read_dir(path).map_err(|error| Error::Read(shown(path), error))?;
        for file in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            let is_wanted = file.extension().is_some_and(|end| end == ending);
            if let Some(rank) = number(&file).filter(|_| is_wanted) {
                files.insert(rank, file);
            }
        }
    } else {
        files.insert(0, path.to_owned());
    }
    let count = files.len();
    if files.is_empty() || !files.keys().copied().eq(0..count as u32) {
        let have: Vec<String> = files.keys().map(u32::to_string).collect();
        let have = have.join(", ");
        return Err(wrong(
            path,
            format!(
                "it is to have a file that ends with the rank and .{ending} for each rank from 0; it has [{have}]"
            ),
        ));
    }
    let mut imported = Imported::default();
    for (rank, file) in files {
        let mut importer = Importer::default();
        parse(&read(&file)?, &mut importer)
            .map_err(|why| wrong(&file, format!("rank {rank}: {why}")))?;
        imported.scripts.push(importer.script);
        for (name, count) in importer.left_out {
            *imported.left_out.entry(name).or_default() += count;
        }
    }
    Ok(imported)
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

    fn leave_out(&mut self, call: &str) {
        *self.left_out.entry(call.to_owned()).or_default() += 1;
    }
}

/// The pattern of a receive; a negative source or tag is any.
fn pattern(source: i64, tag: i64, context: u16) -> Result<Pattern, String> {
    let source = match u32::try_from(source) {
        Ok(rank) if rank <= Rank::MAX => Rank::new(rank).into(),
        Ok(_) => return Err(format!("no rank has the number {source}")),
        Err(_) => SourceSelector::ANY,
    };
    let tag = match i32::try_from(tag) {
        Ok(tag) => Tag::user(tag).map_or(TagSelector::ANY, Into::into),
        Err(_) => return Err(format!("no tag has the number {tag}")),
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
mod tests {
    use super::*;
    use crate::stats::{Groups, Key, count, group::Summary, merge};
    use crate::traffic::Model;

    fn samples() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples")
    }

    /// The public samples, where they lie beside the project: they are not part of it.
    fn public(name: &str) -> Option<PathBuf> {
        let folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
        let mut found = folders.map(|folder| folder.join("shared/traces").join(name));
        let found = found.find(|folder| folder.exists());
        if found.is_none() {
            eprintln!("skipped: the public sample {name} is not here");
        }
        found
    }

    fn figures(scripts: &[Script], model: &str) -> Summary {
        let model: Model = model.parse().unwrap();
        let mut sum = Groups::new();
        for trace in model.traces(scripts, "test").unwrap() {
            merge(&mut sum, &count(&trace).unwrap());
        }
        sum[&Key::PROGRAM].summary()
    }

    fn receives_and_sends(scripts: &[Script]) -> Vec<(usize, usize)> {
        let both = |script: &Script| (script.receives(), script.sends());
        scripts.iter().map(both).collect()
    }

    #[test]
    fn text_of_dumpi_becomes_steps_with_its_times() {
        let imported = ranks(&samples().join("dumpi"), "txt", dumpi::parse).unwrap();
        assert_eq!(receives_and_sends(&imported.scripts), [(4, 4); 3]);
        let left_out: Vec<_> = imported
            .left_out
            .iter()
            .map(|(name, count)| (name.as_str(), *count))
            .collect();
        assert_eq!(left_out, [("MPI_Allreduce", 6), ("MPI_Barrier", 3)]);
        for model in ["causal", "posted", "shuffled", "random", "sendtime:L=100"] {
            let figures = figures(&imported.scripts, model);
            assert_eq!((figures.posts, figures.arrivals), (12, 12), "{model}");
            // Rank 0 receives twice from any source, all of them twice with any tag.
            assert_eq!((figures.any_source, figures.any_tag), (2, 6), "{model}");
            assert_eq!(figures.bytes.max, 128);
        }
        // The calls of a rank span 120 us, and its messages arrive after their latency.
        let span = figures(&imported.scripts, "sendtime:L=100").span_ns;
        assert!((100_000..200_000).contains(&span), "{span}");
    }

    #[test]
    fn lines_of_liballprof_become_steps() {
        let imported = ranks(&samples().join("allprof"), "txt", allprof::parse).unwrap();
        assert_eq!(receives_and_sends(&imported.scripts), [(6, 9), (9, 6)]);
        assert_eq!(imported.left_out["MPI_Bcast"], 6);
        // The message whose receive was posted second comes first.
        let figures = figures(&imported.scripts, "shuffled");
        assert_eq!(
            (figures.receives.hit_depth.max, figures.bytes.max),
            (2, 768)
        );
        let sendtime = super::tests::figures(&imported.scripts, "sendtime");
        assert_eq!(sendtime.arrivals, 15);
    }

    #[test]
    fn a_schedule_keeps_its_dependencies() {
        let text = read(&samples().join("ring.goal")).unwrap();
        let imported = goal::parse(&text, 0).unwrap();
        assert_eq!(
            receives_and_sends(&imported.scripts),
            [(1, 1), (2, 1), (1, 2)]
        );
        let causal = figures(&imported.scripts, "causal");
        assert_eq!((causal.posts, causal.arrivals, causal.any_both), (4, 4, 1));
        let split = goal::parse(&text.replace("tag 5", "tag 16777221"), 8).unwrap();
        let model: Model = "posted".parse().unwrap();
        let traces = model.traces(&split.scripts, "test").unwrap();
        let message = traces[0]
            .calls
            .iter()
            .find_map(|call| call.event.message())
            .unwrap();
        assert_eq!((message.context.as_u16(), message.tag.as_i32()), (1, 5));
        // Times are none of a schedule's.
        let refused = "sendtime"
            .parse::<Model>()
            .unwrap()
            .traces(&imported.scripts, "test");
        assert!(refused.unwrap_err().to_string().contains("here are none"));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_line() {
        for (text, told) in [
            ("num_ranks 2\nrank 2 {", "line 2: there are 2 ranks"),
            (
                "num_ranks 1\nrank 0 {\nl: jump",
                "line 3: 'l: jump' is no operation",
            ),
            (
                "num_ranks 1\nrank 0 {\nl1 requires l2",
                "line 3: no operation is called 'l1'",
            ),
            ("num_ranks 1\ncalc 5", "line 2: it is in no rank"),
            (
                "num_ranks 1\nrank 0 {\na: calc 1\nb: calc 1\na requires b\nb requires a\n}",
                "rank 0: its operations require each other in a circle",
            ),
            ("num_ranks 99999999999", "is no number of ranks"),
        ] {
            let refused = goal::parse(text, 0).unwrap_err();
            assert!(refused.contains(told), "{refused}");
        }
        let mut importer = Importer::default();
        let refused = dumpi::parse(
            "MPI_Recv entering at walltime 1.5, cputime\nint count=1\nMPI_Recv returning at walltime 1",
            &mut importer,
        );
        assert_eq!(
            refused.unwrap_err(),
            "line 3: MPI_Recv: it has no argument 'source'"
        );
        let refused = allprof::parse("# a\nMPI_Recv:1.0:2:x", &mut importer).unwrap_err();
        assert_eq!(refused, "line 2: MPI_Recv has no argument 5");
        let refused = ranks(&samples(), "txt", dumpi::parse)
            .unwrap_err()
            .to_string();
        assert!(refused.contains("for each rank from 0"), "{refused}");
    }

    #[test]
    fn a_rank_that_waits_for_ever_is_named_with_its_step() {
        let text = "num_ranks 2\nrank 0 {\na: recv 8b from 1 tag 3\n}\nrank 1 {\n}";
        let imported = goal::parse(text, 0).unwrap();
        for model in ["causal", "posted", "shuffled", "random"] {
            let model: Model = model.parse().unwrap();
            let refused = model
                .traces(&imported.scripts, "test")
                .unwrap_err()
                .to_string();
            assert!(
                refused
                    .contains("rank 0 waits for ever in step 2, for a message that is never sent"),
                "{refused}"
            );
        }
        let far = goal::parse("num_ranks 1\nrank 0 {\na: send 8b to 4 tag 3\n}", 0).unwrap();
        let refused = "causal"
            .parse::<Model>()
            .unwrap()
            .traces(&far.scripts, "test");
        assert!(
            refused
                .unwrap_err()
                .to_string()
                .contains("rank 0 sends to rank 4")
        );
    }

    /// 4 ranks with 1,440 receives, 8 pairs of source and tag, and no wildcards.
    #[test]
    fn the_public_sweep_has_the_figures_that_are_known_of_it() {
        let Some(folder) = public("allprof-sweep3d-2x2") else {
            return;
        };
        let imported = ranks(&folder, "txt", allprof::parse).unwrap();
        assert_eq!(receives_and_sends(&imported.scripts), [(1440, 1440); 4]);
        for model in ["causal", "posted", "random", "sendtime"] {
            let figures = figures(&imported.scripts, model);
            assert_eq!((figures.posts, figures.pairs), (4 * 1440, 8), "{model}");
            assert_eq!((figures.tags, figures.wildcard_share), (8, 0.0), "{model}");
        }
    }

    /// The calls are those that its own file counts.
    #[test]
    fn the_public_text_of_dumpi_has_the_calls_that_are_known_of_it() {
        let Some(folder) = public("dumpi") else {
            return;
        };
        // One rank alone was printed as text.
        let imported = ranks(&folder.join("testtrace-0000.txt"), "txt", dumpi::parse).unwrap();
        let counts = read(&folder.join("callcounts-single.txt")).unwrap();
        let called = |name: &str| -> u64 {
            let mut lines = counts.lines();
            let line = lines.find(|line| line.starts_with(&format!("{name} called ")));
            line.unwrap().split(' ').nth(2).unwrap().parse().unwrap()
        };
        let [(receives, sends)] = receives_and_sends(&imported.scripts)[..] else {
            panic!("one rank");
        };
        assert_eq!(
            (receives as u64, sends as u64),
            (called("MPI_Recv"), called("MPI_Isend"))
        );
        for name in ["MPI_Barrier", "MPI_Allreduce"] {
            assert_eq!(imported.left_out[name], called(name), "{name}");
        }
    }
}
