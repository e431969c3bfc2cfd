//! The two queues of a trace, call by call, as MPI orders them: what each call searched, and what entered and left.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

use tagwire_matching::trace::Event;
use tagwire_matching::{Capacity, Envelope, Pattern};

use crate::error::{Error, Result};
use crate::trace::{Call, Trace, shown};

/// Reads traces as [`Trace::read_all`] does. With `partial`, what comes before a call whose answer cannot be is taken as well.
///
/// # Errors
/// As [`Trace::read_all`].
pub(crate) fn read_all(paths: &[PathBuf], partial: bool) -> Result<Vec<(PathBuf, Trace)>> {
    let all = Trace::read_all(paths, partial)?;
    if !partial {
        return Ok(all);
    }
    let sound = |(path, trace): (PathBuf, Trace)| Ok((path.clone(), sound(trace, &path, partial)?));
    all.into_iter().map(sound).collect()
}

/// Returns a trace all of whose answers can be: with `partial`, what comes before the first other one.
///
/// # Errors
/// [`Error::Trace`] with the first call whose answer cannot be, without `partial`.
pub(crate) fn sound(mut trace: Trace, path: &Path, partial: bool) -> Result<Trace> {
    match wrong(&trace) {
        Some((place, _)) if partial => trace.calls.truncate(place),
        Some((place, why)) => {
            return Err(Error::Trace {
                path: shown(path),
                why: cannot_be(place, &why),
            });
        }
        None => {}
    }
    Ok(trace)
}

/// Says what is wrong with a call, and what can be done.
pub(crate) fn cannot_be(index: usize, why: &str) -> String {
    format!(
        "call {}: {why} (--partial takes what comes before)",
        index + 1
    )
}

/// The first call whose answer cannot be, and why.
fn wrong(trace: &Trace) -> Option<(usize, String)> {
    let mut walk = Walk::new(trace.header.capacity);
    let mut calls = trace.calls.iter().enumerate();
    calls.find_map(|(place, call)| {
        let search = walk.search(&call.event);
        let why = walk.apply(call, search).err()?;
        Some((place, why))
    })
}

/// Both queues.
#[derive(Debug)]
pub(crate) struct Walk {
    pub(crate) receives: Line<Pattern>,
    pub(crate) messages: Line<Envelope>,
}

/// One queue, earliest entry first.
#[derive(Debug)]
pub(crate) struct Line<T> {
    pub(crate) entries: VecDeque<Entry<T>>,
    /// How many were ever queued.
    queued: u32,
    capacity: usize,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry<T> {
    pub(crate) what: T,
    /// When it was queued.
    pub(crate) at: u64,
    /// Its number in its queue.
    pub(crate) number: u32,
}

/// What a call looks for, and where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Search {
    /// Among the receives.
    Receives(Option<usize>),
    /// Among the messages.
    Messages(Option<usize>),
}

/// What a call has changed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Change {
    None,
    ReceiveQueued,
    MessageQueued,
    /// A message took it, or it was taken back.
    ReceiveLeft(Entry<Pattern>, Left),
    /// A receive took it, or it was thrown away.
    MessageLeft(Entry<Envelope>, Left),
}

/// How an entry left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Left {
    Matched,
    Withdrawn,
}

impl Walk {
    pub(crate) fn new(capacity: Capacity) -> Self {
        Self {
            receives: Line::new(capacity.posted),
            messages: Line::new(capacity.unexpected),
        }
    }

    /// Where what a call looks for is; `None` for a call that searches nothing.
    pub(crate) fn search(&self, event: &Event) -> Option<Search> {
        Some(match event {
            Event::Arrive(message, _)
            | Event::ArriveExpected(message)
            | Event::Expects(message) => {
                Search::Receives(self.receives.find(|pattern| pattern.accepts(message)))
            }
            Event::Post(pattern) | Event::Probe(pattern) | Event::Claim(pattern) => {
                Search::Messages(self.messages.find(|message| pattern.accepts(message)))
            }
            _ => return None,
        })
    }

    /// The message that a search has found.
    pub(crate) fn found(&self, search: Option<Search>) -> Option<Envelope> {
        match search {
            Some(Search::Messages(Some(place))) => Some(self.messages.entries.get(place)?.what),
            _ => None,
        }
    }

    /// Does a call whose search found this.
    ///
    /// # Errors
    /// What cannot be: an entry that was never queued, or another answer than the one that was recorded.
    pub(crate) fn apply(&mut self, call: &Call, search: Option<Search>) -> Result<Change, String> {
        let (change, found) = match (call.event, search) {
            (Event::Cancel(number), _) => match self.receives.withdraw(number, "receive")? {
                Some(entry) => (Change::ReceiveLeft(entry, Left::Withdrawn), true),
                None => (Change::None, false),
            },
            (Event::Discard(number), _) => match self.messages.withdraw(number, "message")? {
                Some(entry) => (Change::MessageLeft(entry, Left::Withdrawn), true),
                None => (Change::None, false),
            },
            (Event::Promise(..), _) => return Ok(Change::None),
            (Event::Expects(_) | Event::Probe(_), Some(search)) => (Change::None, search.is_hit()),
            (_, Some(Search::Receives(Some(place)))) => {
                let entry = self.receives.entries.remove(place);
                let entry = entry.expect("a search finds what is queued");
                (Change::ReceiveLeft(entry, Left::Matched), true)
            }
            (_, Some(Search::Messages(Some(place)))) => {
                let entry = self.messages.entries.remove(place);
                let entry = entry.expect("a search finds what is queued");
                (Change::MessageLeft(entry, Left::Matched), true)
            }
            (Event::Post(pattern), _) => match self.receives.push(pattern, call.at) {
                true => (Change::ReceiveQueued, false),
                false => (Change::None, false),
            },
            (Event::Arrive(message, _), _) => match self.messages.push(message, call.at) {
                true => (Change::MessageQueued, false),
                false => (Change::None, false),
            },
            _ => (Change::None, false),
        };
        match (found, call.matched) {
            (true, false) => Err("it matched nothing, and there was something".to_owned()),
            (false, true) => Err("it matched something, and there was nothing".to_owned()),
            _ => Ok(change),
        }
    }
}

impl Search {
    pub(crate) const fn is_hit(self) -> bool {
        matches!(self, Self::Receives(Some(_)) | Self::Messages(Some(_)))
    }
}

impl<T: Copy> Line<T> {
    fn new(capacity: u32) -> Self {
        Self {
            entries: VecDeque::new(),
            queued: 0,
            capacity: capacity as usize,
        }
    }

    /// How many were ever queued.
    #[cfg(test)]
    pub(crate) const fn queued(&self) -> u32 {
        self.queued
    }

    fn find(&self, fits: impl Fn(&T) -> bool) -> Option<usize> {
        self.entries.iter().position(|entry| fits(&entry.what))
    }

    fn push(&mut self, what: T, at: u64) -> bool {
        if self.entries.len() >= self.capacity {
            return false;
        }
        let number = self.queued;
        self.queued = self.queued.wrapping_add(1);
        self.entries.push_back(Entry { what, at, number });
        true
    }

    fn withdraw(&mut self, number: u32, noun: &str) -> Result<Option<Entry<T>>, String> {
        if number >= self.queued {
            let queued = self.queued;
            return Err(format!(
                "it withdraws {noun} {number}, and {queued} were queued"
            ));
        }
        // Numbers ascend along the queue.
        let place = self
            .entries
            .binary_search_by_key(&number, |entry| entry.number);
        Ok(place.ok().and_then(|place| self.entries.remove(place)))
    }
}

#[cfg(test)]
mod tests {
    use tagwire_matching::trace::Size;

    use super::*;
    use crate::trace::tests::{message, trace};

    fn walk(events: &[(Event, bool)]) -> Result<(), String> {
        let trace = trace(events);
        let mut walk = Walk::new(Capacity::new(2, 2));
        for (index, call) in trace.calls.iter().enumerate() {
            let search = walk.search(&call.event);
            let change = walk.apply(call, search);
            change.map_err(|why| format!("{index}: {why}"))?;
        }
        Ok(())
    }

    #[test]
    fn a_trace_with_the_answers_of_the_rules_passes_and_any_other_answer_does_not() {
        let post = |tag| Event::Post(Pattern::exact(message(0, tag)));
        let arrive = |tag| Event::Arrive(message(0, tag), Size::of(8));
        let good = [
            (post(1), false),
            (post(2), false),
            // One too many: it is posted again once there is room.
            (post(3), false),
            (arrive(3), false),
            (Event::Cancel(0), true),
            (Event::Cancel(0), false),
            (Event::Expects(message(0, 2)), true),
            (arrive(2), true),
            (post(3), true),
            (Event::ArriveExpected(message(0, 9)), false),
            (Event::Claim(Pattern::exact(message(0, 3))), false),
        ];
        walk(&good).unwrap();
        for index in 0..good.len() {
            let mut other = good;
            other[index].1 = !other[index].1;
            let told = walk(&other).unwrap_err();
            assert!(told.starts_with(&format!("{index}: it matched")), "{told}");
            let mut partial = trace(&other);
            partial.header.capacity = Capacity::new(2, 2);
            let partial = sound(partial, Path::new("trace"), true).unwrap();
            assert_eq!(partial.calls, trace(&good).calls[..index]);
        }
        let told = walk(&[(post(1), false), (Event::Cancel(1), false)]).unwrap_err();
        assert_eq!(told, "1: it withdraws receive 1, and 1 were queued");
    }
}
