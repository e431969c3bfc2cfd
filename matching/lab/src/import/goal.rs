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

use super::{Imported, pattern};
use crate::traffic::{Outgoing, Request, Script};

/// What an operation is.
enum Kind {
    Send { to: u32, tag: i64, bytes: u64 },
    Receive { source: i64, tag: i64 },
    Compute(u64),
}

struct Operation {
    kind: Kind,
    requires: Vec<usize>,
    irequires: Vec<usize>,
}

#[derive(Default)]
struct Rank<'a> {
    operations: Vec<Operation>,
    labels: BTreeMap<&'a str, usize>,
}

pub(super) fn parse(text: &str, comm_bits: u32) -> Result<Imported, String> {
    let mut ranks: Vec<Rank<'_>> = Vec::new();
    let mut open: Option<usize> = None;
    for (index, line) in text.lines().enumerate() {
        let told = |why: String| format!("line {}: {why}", index + 1);
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [] => {}
            [first, ..] if first.starts_with("//") || first.starts_with('#') => {}
            ["num_ranks", count] => {
                let count: usize = count
                    .parse()
                    .ok()
                    .filter(|count| *count <= MOST)
                    .ok_or_else(|| told(format!("'{count}' is no number of ranks up to {MOST}")))?;
                ranks.resize_with(count, Rank::default);
            }
            ["rank", number, "{"] => {
                let number: usize = number.parse().unwrap_or(usize::MAX);
                if number >= ranks.len() {
                    return Err(told(format!("there are {} ranks", ranks.len())));
                }
                open = Some(number);
            }
            ["}"] => open = None,
            _ => {
                let rank = open.and_then(|open| ranks.get_mut(open));
                let rank = rank.ok_or_else(|| told("it is in no rank".to_owned()))?;
                rank.line(&words).map_err(told)?;
            }
        }
    }
    let mut imported = Imported::default();
    for (number, rank) in ranks.iter().enumerate() {
        let script = rank.script(comm_bits);
        imported
            .scripts
            .push(script.map_err(|why| format!("rank {number}: {why}"))?);
    }
    Ok(imported)
}

impl<'a> Rank<'a> {
    fn line(&mut self, words: &[&'a str]) -> Result<(), String> {
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
        let words = match words[0].strip_suffix(':') {
            Some(label) => {
                self.labels.insert(label, self.operations.len());
                &words[1..]
            }
            None => words,
        };
        let bytes = |word: &str| word.trim_end_matches('b').parse::<u64>().map_err(|_| bad());
        let after = |word: &str| {
            let place = words.iter().position(|one| *one == word);
            let value = place.and_then(|place| words.get(place + 1)?.parse::<i64>().ok());
            value.ok_or_else(bad)
        };
        let kind = match words {
            ["calc", nanos, ..] => Kind::Compute(nanos.parse().map_err(|_| bad())?),
            ["send", size, "to", ..] => Kind::Send {
                to: u32::try_from(after("to")?).map_err(|_| bad())?,
                tag: after("tag").unwrap_or(0),
                bytes: bytes(size)?,
            },
            ["recv", _, "from", ..] => Kind::Receive {
                source: after("from")?,
                tag: after("tag").unwrap_or(0),
            },
            _ => return Err(bad()),
        };
        self.operations.push(Operation {
            kind,
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
            if !waited.is_empty() {
                script.wait(waited.iter().filter_map(|other| requests[*other]).collect());
                waited.into_iter().for_each(|other| is_waited[other] = true);
            }
            requests[next] = add(&mut script, &self.operations[next].kind, comm_bits)?;
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
