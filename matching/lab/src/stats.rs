//! `tagwire match stats`: what the traffic of a trace was, whatever engine matched it.

pub(crate) mod distribution;
pub(crate) mod group;
mod order;
mod qstat;
mod show;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde::Serialize;
use tagwire_base::{ContextId, Tag};
use tagwire_matching::trace::Event;
use tagwire_matching::{Envelope, Pattern};

use self::group::{Group, Queue, Summary};
use crate::depth::Format;
use crate::error::{Error, Result};
use crate::output::Circumstances;
use crate::trace::{Call, Trace, shown};
use crate::walk::{self, Change, Entry, Left, Search, Walk, cannot_be};

/// The options of the test.
#[derive(Debug, Clone, Args)]
pub struct StatsArgs {
    /// Traces, binary or of text, or folders of them
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,

    /// Figures for each of these, beside those of the program and of the library over all
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    by: Vec<By>,

    /// Also write what searches found as LogGOPSim does with its option --qstat: PREFIX-rq-hit.data and five others
    #[arg(long, value_name = "PREFIX")]
    qstat: Option<PathBuf>,

    /// Take what comes before something that is wrong
    #[arg(long)]
    partial: bool,

    /// How the figures are printed
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: Format,

    /// Also write the figures to this file: .json or .csv
    #[arg(short = 'o', long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) const AFTER_HELP: &str = "\
The program's receives and messages have tags of users, the library's (collectives, partitioned operations) have internal
ones; no wildcard matches both, so each part has queues of its own in the figures. Depth is the number of entries that a
list compares: up to the match, or all. It is a property of the traffic and not of an engine.

Exit status: 0 good, 1 usage, 2 a file cannot be read, is no trace, or cannot be written.

Examples:
  tagwire run -n 4 --record traces -- ./halo && tagwire match stats traces
  tagwire match stats traces --by rank,context -o stats.csv
  tagwire match stats traces --qstat halo                   halo-rq-hit.data and the others";

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum By {
    Rank,
    Context,
}

/// Whose calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Part {
    /// With tags of users.
    Program,
    /// With internal tags.
    Internal,
    All,
}

/// Which calls of a trace a group has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) context: Option<ContextNumber>,
    pub(crate) part: Part,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(crate) struct ContextNumber(u16);

/// The groups of a trace.
pub(crate) type Groups = BTreeMap<Key, Group>;

impl Key {
    /// The program's calls in all contexts.
    pub(crate) const PROGRAM: Self = Self {
        context: None,
        part: Part::Program,
    };

    /// The library's own in all contexts.
    pub(crate) const INTERNAL: Self = Self {
        context: None,
        part: Part::Internal,
    };

    /// Whether an entry of this part and context is one of the group.
    fn has(self, part: Part, context: ContextId) -> bool {
        let is_part = self.part == Part::All || self.part == part;
        is_part && self.context.is_none_or(|one| one.0 == context.as_u16())
    }
}

/// The part and context of what is queued.
trait Of {
    fn part(&self) -> Part;
    fn context(&self) -> ContextId;
}

impl Of for Pattern {
    fn part(&self) -> Part {
        self.tag.tag().map_or(Part::Program, part)
    }

    fn context(&self) -> ContextId {
        self.context
    }
}

impl Of for Envelope {
    fn part(&self) -> Part {
        part(self.tag)
    }

    fn context(&self) -> ContextId {
        self.context
    }
}

/// Whose call it is; `None` for one that names an entry by its number, and for promises.
pub(crate) fn part_of(event: &Event) -> Option<Part> {
    match event {
        Event::Post(pattern) | Event::Probe(pattern) | Event::Claim(pattern) => {
            Some(pattern.part())
        }
        other => other.message().map(|message| message.part()),
    }
}

const fn part(tag: Tag) -> Part {
    match tag.is_internal() {
        true => Part::Internal,
        false => Part::Program,
    }
}

/// Prints the figures; returns the exit status.
pub(crate) fn run(args: &StatsArgs, from: &Circumstances) -> Result<u8> {
    crate::output::check_output(args.output.as_deref())?;
    let traces = walk::read_all(&args.files, args.partial)?;
    let mut sum = Groups::new();
    let mut rows = Vec::new();
    let mut notes = Vec::new();
    for (path, trace) in &traces {
        let groups = count(trace).map_err(|why| Error::Trace {
            path: shown(path),
            why,
        })?;
        if trace.header.before > 0 {
            notes.push(format!(
                "{}: {} calls are missing before its beginning",
                shown(path),
                trace.header.before
            ));
        }
        if trace.lost > 0 {
            notes.push(format!(
                "{}: {} calls are missing behind its end",
                shown(path),
                trace.lost
            ));
        }
        if args.by.contains(&By::Rank) {
            push(&mut rows, Some(trace.header.rank), &groups, &args.by);
        }
        merge(&mut sum, &groups);
    }
    push(&mut rows, None, &sum, &args.by);
    if let Some(prefix) = &args.qstat {
        qstat::write(prefix, &traces)?;
    }
    let to = (args.format, args.output.as_deref());
    show::print_rows(&rows, &notes, to, from)?;
    Ok(0)
}

/// Adds the groups of a trace to those of others.
pub(crate) fn merge(sum: &mut Groups, groups: &Groups) {
    for (key, group) in groups {
        sum.entry(*key).or_default().add(group);
    }
}

fn push(rows: &mut Vec<show::Row>, rank: Option<u32>, groups: &Groups, by: &[By]) {
    let wanted = |key: &Key| key.context.is_none() || by.contains(&By::Context);
    rows.extend(
        groups
            .iter()
            .filter(|(key, _)| wanted(key))
            .map(|(key, group)| {
                let summary: Summary = group.summary();
                show::Row {
                    rank,
                    context: key.context,
                    part: key.part,
                    summary,
                }
            }),
    );
}

/// Counts what is in a trace.
///
/// # Errors
/// The record whose answer cannot be, and why.
pub(crate) fn count(trace: &Trace) -> Result<Groups, String> {
    let mut walk = Walk::new(trace.header.capacity);
    let mut groups = Groups::new();
    let mut end = 0;
    for (index, call) in trace.calls.iter().enumerate() {
        let search = walk.search(&call.event);
        if let Some((part, context)) = whose(&call.event) {
            for key in keys(part, context) {
                note(groups.entry(key).or_default(), key, call, search, &walk);
            }
        }
        let change = walk.apply(call, search);
        let change = change.map_err(|why| cannot_be(index, &why))?;
        apply(&mut groups, call, change);
        end = call.at;
    }
    for group in groups.values_mut() {
        group.end(end);
    }
    Ok(groups)
}

/// The groups that a call of this part and context is in.
fn keys(part: Part, context: ContextId) -> impl Iterator<Item = Key> {
    let contexts = [None, Some(ContextNumber(context.as_u16()))];
    let parts = [part, Part::All];
    contexts
        .into_iter()
        .flat_map(move |context| parts.map(|part| Key { context, part }))
}

fn whose(event: &Event) -> Option<(Part, ContextId)> {
    match event {
        Event::Post(pattern) | Event::Probe(pattern) | Event::Claim(pattern) => {
            Some((pattern.part(), pattern.context))
        }
        Event::Arrive(message, _) | Event::ArriveExpected(message) => {
            Some((message.part(), message.context))
        }
        // What the library asks itself is no traffic, and withdrawals are known by what they withdraw.
        _ => None,
    }
}

/// Counts a call before it is done.
fn note(group: &mut Group, key: Key, call: &Call, search: Option<Search>, walk: &Walk) {
    match call.event {
        Event::Post(pattern) => group.note_post(&pattern),
        Event::Arrive(message, size) => {
            group.note_message(&message);
            group.bytes.note(size.bytes());
        }
        Event::ArriveExpected(message) => group.note_message(&message),
        Event::Probe(_) => {
            group.note_probe(call.matched);
            return;
        }
        Event::Claim(_) => group.note_probe(call.matched),
        _ => {}
    }
    match search {
        Some(Search::Receives(place)) => {
            let compared = compared(&walk.receives.entries, place, key);
            group.receives.search(compared, place.is_some());
        }
        Some(Search::Messages(place)) => {
            let compared = compared(&walk.messages.entries, place, key);
            group.messages.search(compared, place.is_some());
        }
        None => {}
    }
}

/// How many entries of the group a list compares up to this place, or all.
fn compared<T: Of>(entries: &VecDeque<Entry<T>>, place: Option<usize>, key: Key) -> u64 {
    let looked = place.map_or(entries.len(), |place| place + 1);
    let entries = entries.iter().take(looked);
    let of_group = entries.filter(|entry| key.has(entry.what.part(), entry.what.context()));
    of_group.count() as u64
}

/// Counts what a call has changed.
fn apply(groups: &mut Groups, call: &Call, change: Change) {
    let mut each = |part, context, count: &mut dyn FnMut(&mut Group)| {
        for key in keys(part, context) {
            count(groups.entry(key).or_default());
        }
    };
    let queue_change = |queue: &mut Queue, by| queue.change(call.at, by);
    match (change, call.event) {
        (Change::ReceiveQueued, Event::Post(pattern)) => {
            each(pattern.part(), pattern.context, &mut |group| {
                queue_change(&mut group.receives, 1);
                group.order.note_post();
            });
        }
        (Change::MessageQueued, Event::Arrive(message, _)) => {
            each(message.part(), message.context, &mut |group| {
                queue_change(&mut group.messages, 1);
                group.unexpected += 1;
            });
        }
        (Change::ReceiveLeft(entry, left), _) => {
            let waited = call.at.saturating_sub(entry.at);
            each(entry.what.part(), entry.what.context, &mut |group| {
                queue_change(&mut group.receives, -1);
                group.note_receive_left(&entry.what, waited);
                match left {
                    Left::Matched => {
                        group.receives.residence.note(waited);
                        let empties = group.receives.is_empty();
                        group.order.note_match(entry.number, call.at, empties);
                    }
                    Left::Withdrawn => group.cancels += 1,
                }
            });
        }
        (Change::MessageLeft(entry, left), _) => {
            let waited = call.at.saturating_sub(entry.at);
            each(entry.what.part(), entry.what.context, &mut |group| {
                queue_change(&mut group.messages, -1);
                match left {
                    Left::Matched => group.messages.residence.note(waited),
                    Left::Withdrawn => group.discards += 1,
                }
            });
        }
        _ => {}
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use tagwire_base::{SourceSelector, TagSelector};
    use tagwire_matching::trace::Size;

    use super::*;
    use crate::trace::tests::{message, trace};

    fn post(source: u32, tag: i32) -> (Event, bool) {
        (Event::Post(Pattern::exact(message(source, tag))), false)
    }

    fn arrive(source: u32, tag: i32, matched: bool) -> (Event, bool) {
        (Event::Arrive(message(source, tag), Size::of(8)), matched)
    }

    #[test]
    fn the_library_and_the_program_have_queues_of_their_own() {
        let groups = count(&trace(&[
            post(0, -5),
            post(0, 1),
            post(0, -6),
            post(0, 2),
            arrive(0, 2, true),
            arrive(0, -6, true),
            arrive(0, 9, false),
        ]))
        .unwrap();
        let depth = |part| {
            let group = &groups[&Key {
                context: None,
                part,
            }];
            let summary = group.summary();
            (
                summary.receives.hit_depth.mean,
                summary.receives.miss_depth.mean,
            )
        };
        assert_eq!(depth(Part::All), (3.5, 2.0));
        assert_eq!(depth(Part::Program), (2.0, 1.0));
        assert_eq!(depth(Part::Internal), (2.0, 0.0));
        let program = groups[&Key::PROGRAM].summary();
        assert_eq!(
            (program.posts, program.arrivals, program.unexpected),
            (2, 2, 1)
        );
        assert_eq!((program.tags, program.receives.high_water), (2, 2));
    }

    #[test]
    fn lengths_residence_wildcards_and_withdrawals_are_counted() {
        let any = Pattern {
            source: SourceSelector::ANY,
            tag: TagSelector::ANY,
            context: ContextId::WORLD,
        };
        let mut one = trace(&[
            (Event::Post(any), false),
            post(0, 1),
            arrive(3, 7, true),
            arrive(3, 8, false),
            (Event::Probe(any), true),
            (Event::Cancel(1), true),
            (Event::Claim(any), true),
            arrive(0, 4, false),
            (Event::Discard(1), true),
        ]);
        for call in &mut one.calls {
            call.at *= 100;
        }
        let group = count(&one).unwrap()[&Key::PROGRAM].summary();
        assert_eq!((group.any_both, group.wildcard_share), (1, 0.5));
        assert_eq!(group.longest_wildcard_ns, 200);
        assert_eq!((group.cancels, group.discards, group.probes), (1, 1, 2));
        assert_eq!(group.receives.residence_ns.max, 200);
        assert_eq!(group.messages.residence_ns.max, 300);
        // 100 ns of one, 100 of two, 300 of one, 300 of none.
        assert_eq!(group.receives.length_over_time.mean, 600.0 / 800.0);
        assert_eq!((group.unexpected_share, group.span_ns), (2.0 / 3.0, 800));
    }

    #[test]
    fn probes_that_find_nothing_are_told_apart() {
        let (here, other) = (Pattern::exact(message(0, 4)), Pattern::exact(message(9, 4)));
        let one = trace(&[
            (Event::Claim(other), false),
            arrive(0, 4, false),
            (Event::Probe(other), false),
            (Event::Probe(here), true),
            (Event::Claim(here), true),
        ]);
        let group = count(&one).unwrap()[&Key::PROGRAM].summary();
        assert_eq!((group.probes, group.probes_found), (4, 2));
    }

    #[test]
    fn an_answer_that_cannot_be_is_told_with_its_call() {
        let told = count(&trace(&[post(0, 1), arrive(0, 1, false)])).unwrap_err();
        assert_eq!(
            told,
            "call 2: it matched nothing, and there was something (--partial takes what comes before)"
        );
    }
}
