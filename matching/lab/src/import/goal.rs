//! Schedules of GOAL, LogGOPSim's language (Hoefler, Siebert, Lumsdaine, ICPP 2009).
//!
//! ```text
//! num_ranks 2
//! rank 0 {
//!   l1: recv 8b from 1 tag 5
//!   l2: calc 100
//!   l3: send 8b to 1 tag 5
//!   l3 requires l2
//! }
//! ```
//!
//! Operations that do not depend on each other are done in the order of the file, those first for which nothing is to be waited
//! for. `requires` is the end of an operation, `irequires` its begin.

use std::collections::BTreeMap;

use super::{Imported, pattern, shortened};
use crate::traffic::{Outgoing, Request, Script};

/// What an operation is.
enum Kind {
    Send { to: u32, tag: i64, bytes: u64 },
    Receive { source: i64, tag: i64 },
    Compute(u64),
}

struct Operation {
    kind: Kind,
    line: usize,
    requires: Vec<usize>,
    irequires: Vec<usize>,
}

#[derive(Default)]
struct Rank<'a> {
    has_begun: bool,
    operations: Vec<Operation>,
    labels: BTreeMap<&'a str, usize>,
}

/// Returns what is in a schedule, and what is wrong behind that.
///
/// # Errors
/// What is wrong with one of which nothing can be used.
pub(super) fn parse(text: &str, comm_bits: u32) -> Result<(Imported, Option<String>), String> {
    let mut ranks: Vec<Rank<'_>> = Vec::new();
    let mut open: Option<usize> = None;
    let mut wrong = None;
    for (index, line) in text.lines().enumerate() {
        let read = read(line, index + 1, &mut ranks, &mut open);
        if let Err(why) = read {
            wrong = Some(format!("line {}: {why}", index + 1));
            break;
        }
    }
    if ranks.is_empty() {
        return Err(wrong.unwrap_or_else(|| "it has no line 'num_ranks COUNT'".to_owned()));
    }
    let missing = ranks.iter().position(|rank| !rank.has_begun);
    let last = text.lines().count();
    let wrong = wrong.or_else(|| match (open, missing) {
        (Some(rank), _) => Some(format!("line {last}: the file ends within rank {rank}")),
        (None, Some(rank)) => Some(format!(
            "line {} is missing: the file ends without rank {rank}",
            last + 1
        )),
        (None, None) => None,
    });
    let mut imported = Imported::default();
    for (number, rank) in ranks.iter().enumerate() {
        let script = rank.script(comm_bits);
        imported
            .scripts
            .push(script.map_err(|why| format!("rank {number}: {why}"))?);
    }
    Ok((imported, wrong))
}

/// Reads a line, within the rank that is open.
fn read<'a>(
    line: &'a str,
    number: usize,
    ranks: &mut Vec<Rank<'a>>,
    open: &mut Option<usize>,
) -> Result<(), String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    match words[..] {
        [] => {}
        [first, ..] if first.starts_with("//") || first.starts_with('#') => {}
        ["num_ranks", count] if ranks.is_empty() => {
            let count: usize = count
                .parse()
                .ok()
                .filter(|count| (1..=MOST).contains(count))
                .ok_or_else(|| format!("'{count}' is no number of ranks from 1 to {MOST}"))?;
            ranks.resize_with(count, Rank::default);
        }
        ["rank", name, "{"] => {
            if let Some(open) = open {
                return Err(format!("rank {name} begins within rank {open}"));
            }
            let rank: usize = name.parse().unwrap_or(usize::MAX);
            let count = ranks.len();
            let own = ranks.get_mut(rank);
            own.ok_or_else(|| format!("there are {count} ranks"))?
                .has_begun = true;
            *open = Some(rank);
        }
        ["}"] if open.is_some() => *open = None,
        _ => {
            let count = ranks.len() as u32;
            let rank = open.and_then(|open| ranks.get_mut(open));
            let rank = rank.ok_or_else(|| format!("'{}' is in no rank", shortened(line)))?;
            rank.line(&words, number, count)?;
        }
    }
    Ok(())
}

impl<'a> Rank<'a> {
    /// Adds an operation of so many ranks, or what it waits for.
    fn line(&mut self, words: &[&'a str], line: usize, ranks: u32) -> Result<(), String> {
        let bad = || format!("'{}' is no operation", words.join(" "));
        if let [one, how @ ("requires" | "irequires"), other] = *words {
            let label = |label: &str| {
                let found = self.labels.get(label).copied();
                found.ok_or_else(|| format!("no operation is called '{label}'"))
            };
            let (one, other) = (label(one)?, label(other)?);
            let operation = &mut self.operations[one];
            match how {
                "requires" => operation.requires.push(other),
                _ => operation.irequires.push(other),
            }
            return Ok(());
        }
        let (label, words) = match words[0].strip_suffix(':') {
            Some(label) => (Some(label), &words[1..]),
            None => (None, words),
        };
        let bytes = |word: &str| {
            let number = word.strip_suffix('b').unwrap_or(word);
            number.parse::<u64>().map_err(|_| bad())
        };
        let after = |named: &[&str], name: &str| -> Result<Option<i64>, String> {
            let mut pairs = named.chunks(2);
            let pair = pairs.find(|pair| pair[0] == name);
            let value = pair.map(|pair| pair.get(1).and_then(|value| value.parse().ok()));
            value.map(|value| value.ok_or_else(bad)).transpose()
        };
        // What else a schedule says of an operation: on which processor, and over which adapter.
        let are = |named: &[&str], names: &[&str]| {
            let is_pair = |pair: &[&str]| pair.len() == 2 && names.contains(&pair[0]);
            match named.chunks(2).all(is_pair) {
                true => Ok(()),
                false => Err(bad()),
            }
        };
        let peer = |named: &[&str], name: &str| -> Result<i64, String> {
            are(named, &[name, "tag", "cpu", "nic"])?;
            let peer = after(named, name)?.ok_or_else(bad)?;
            match peer < i64::from(ranks) {
                true => Ok(peer),
                false => Err(format!("{name} rank {peer}: there are {ranks} ranks")),
            }
        };
        let kind = match words {
            ["calc", nanos, named @ ..] => {
                are(named, &["cpu", "nic"])?;
                Kind::Compute(nanos.parse().map_err(|_| bad())?)
            }
            ["send", size, named @ ..] => Kind::Send {
                to: u32::try_from(peer(named, "to")?).map_err(|_| bad())?,
                tag: after(named, "tag")?.unwrap_or(0),
                bytes: bytes(size)?,
            },
            ["recv", size, named @ ..] => {
                bytes(size)?;
                Kind::Receive {
                    source: peer(named, "from")?,
                    tag: after(named, "tag")?.unwrap_or(0),
                }
            }
            _ => return Err(bad()),
        };
        if let Some(label) = label {
            self.labels.insert(label, self.operations.len());
        }
        self.operations.push(Operation {
            kind,
            line,
            requires: Vec::new(),
            irequires: Vec::new(),
        });
        Ok(())
    }

    fn script(&self, comm_bits: u32) -> Result<Script, String> {
        let mut script = Script::new();
        let count = self.operations.len();
        let mut requests: Vec<Option<Request>> = vec![None; count];
        let mut is_done = vec![false; count];
        let mut is_waited = vec![false; count];
        let mut left: Vec<usize> = (0..count).collect();
        while !left.is_empty() {
            let is_ready = |one: &&usize| {
                let operation = &self.operations[**one];
                let mut before = operation.requires.iter().chain(&operation.irequires);
                before.all(|other| is_done[*other])
            };
            let waits_for = |one: usize| -> Vec<usize> {
                let before = self.operations[one].requires.iter().copied();
                before
                    .filter(|other| requests[*other].is_some() && !is_waited[*other])
                    .collect()
            };
            let mut ready = left.iter().filter(is_ready);
            let next = ready.clone().find(|one| waits_for(**one).is_empty());
            let next = next.or_else(|| ready.next()).copied();
            let next =
                next.ok_or_else(|| "its operations require each other in a circle".to_owned())?;
            let waited = waits_for(next);
            script.at_line(self.operations[next].line);
            if !waited.is_empty() {
                script.wait(waited.iter().filter_map(|other| requests[*other]).collect());
                waited.into_iter().for_each(|other| is_waited[other] = true);
            }
            requests[next] = add(&mut script, &self.operations[next].kind, comm_bits)
                .map_err(|why| format!("line {}: {why}", self.operations[next].line))?;
            is_done[next] = true;
            left.retain(|one| *one != next);
        }
        let open = (0..count).filter(|one| !is_waited[*one]);
        script.wait(open.filter_map(|one| requests[one]).collect());
        Ok(script)
    }
}

fn add(script: &mut Script, kind: &Kind, comm_bits: u32) -> Result<Option<Request>, String> {
    // The highest bits of a 32-bit tag are the communicator.
    let split = |tag: i64| -> Result<(u16, i64), String> {
        let word = u32::try_from(tag).map_err(|_| format!("no tag has the number {tag}"))?;
        let below = 32 - comm_bits;
        let context = u64::from(word) >> below;
        Ok((
            context as u16,
            (u64::from(word) & ((1 << below) - 1)) as i64,
        ))
    };
    Ok(match kind {
        Kind::Compute(nanos) => {
            script.compute(*nanos);
            None
        }
        Kind::Send { to, tag, bytes } => {
            let (context, tag) = split(*tag)?;
            Some(script.send(Outgoing {
                to: *to,
                tag: i32::try_from(tag).map_err(|_| format!("no tag has the number {tag}"))?,
                context,
                bytes: *bytes,
                synchronous: false,
            }))
        }
        // Any tag is that of every communicator in GOAL; here it is of the first.
        Kind::Receive { source, tag } if *tag < 0 => Some(script.post(pattern(*source, -1, 0)?)),
        Kind::Receive { source, tag } => {
            let (context, tag) = split(*tag)?;
            Some(script.post(pattern(*source, tag, context)?))
        }
    })
}

/// Most ranks of a schedule.
const MOST: usize = 1 << 20;
