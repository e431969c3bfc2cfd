//! What an aggregator does with a window of the file.

use std::ops::Range;

use rustix::io::Errno;

use crate::code::Decoder;
use crate::transfer::Calls;
use crate::{Error, Extent, Result};

/// Runs of bytes up to so far apart are read as one.
const GAP: u64 = 4096;

/// What became of a member's bytes in a window: how many of its first ones are good, and the error of the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Fate {
    pub(super) good: u64,
    /// 0 where there was none.
    pub(super) errno: i32,
}

/// The runs of bytes of a member in a window.
struct Part<'a> {
    extents: Vec<Extent>,
    data: &'a [u8],
    fate: Fate,
}

impl<'a> Part<'a> {
    /// Reads what a member has sent: a list, and as many bytes of data as `has_data` says.
    fn of(bytes: &'a [u8], window: &Range<u64>, member: usize, has_data: bool) -> Result<Self> {
        let mut extents = Vec::new();
        let (mut decoder, mut total) = (None, 0_u64);
        if !bytes.is_empty() {
            let decoder = decoder.insert(Decoder::new(bytes, window.start, window.end, member)?);
            while let Some(extent) = decoder.extent()? {
                extents.push(extent);
                total += extent.len;
            }
        }
        let data = decoder.as_ref().map_or(&[][..], Decoder::rest);
        let expected = if has_data { total } else { 0 };
        match decoder {
            Some(decoder) if data.len() as u64 != expected => {
                decoder.broken("its data are not as long as its extents")
            }
            _ => Ok(Self {
                extents,
                data,
                fate: Fate::default(),
            }),
        }
    }
}

/// Returns the parts of all members. One that breaks the protocol has none, and is told so.
fn parts<'a>(
    given: impl Iterator<Item = &'a [u8]>,
    window: &Range<u64>,
    has_data: bool,
) -> Vec<Part<'a>> {
    let part = |(member, bytes)| {
        Part::of(bytes, window, member, has_data).unwrap_or_else(|_| Part {
            extents: Vec::new(),
            data: &[],
            fate: Fate {
                good: 0,
                errno: Errno::PROTO.raw_os_error(),
            },
        })
    };
    given.enumerate().map(part).collect()
}

/// Returns the runs of bytes of all parts, joined where no more than `gap` bytes are between them.
fn joined(parts: &[Part<'_>], gap: u64) -> Vec<Extent> {
    let all = parts.iter().flat_map(|part| &part.extents).copied();
    let mut all: Vec<Extent> = all.collect();
    // Those of each member are in order already, which a stable sort makes use of.
    all.sort_by_key(|extent| extent.offset);
    let mut runs: Vec<Extent> = Vec::new();
    for extent in all {
        match runs.last_mut() {
            Some(last) if extent.offset <= last.end().saturating_add(gap) => {
                last.len = last.end().max(extent.end()) - last.offset;
            }
            _ => runs.push(extent),
        }
    }
    runs
}

/// What a system call has done of a run of bytes.
struct Done {
    run: Extent,
    good: u64,
    errno: i32,
}

impl Done {
    fn of(run: Extent, outcome: &crate::Outcome) -> Self {
        let errno = match &outcome.error {
            Some(Error::System { errno, .. }) => errno.raw_os_error(),
            Some(_) => Errno::IO.raw_os_error(),
            None => 0,
        };
        let good = outcome.bytes;
        Self { run, good, errno }
    }
}

/// Returns how many of an extent's bytes are good, and the error of the next; the runs are in order, and one holds it.
fn fate_of(extent: &Extent, done: &[Done]) -> Fate {
    let behind = done.partition_point(|one| one.run.offset <= extent.offset);
    let Some(one) = behind.checked_sub(1).map(|before| &done[before]) else {
        return Fate::default();
    };
    let good = (one.run.offset + one.good).saturating_sub(extent.offset);
    let good = good.min(extent.len);
    let errno = if good < extent.len { one.errno } else { 0 };
    Fate { good, errno }
}

/// Adds up the fates of a member's extents, to the first that is not all good.
fn settle(part: &mut Part<'_>, done: &[Done]) {
    if part.fate.errno != 0 {
        return;
    }
    for extent in &part.extents {
        let fate = fate_of(extent, done);
        part.fate.good += fate.good;
        if fate.good < extent.len {
            part.fate.errno = fate.errno;
            return;
        }
    }
}

/// Writes what members have sent, each its extents and their data. Returns what became of the bytes of each.
pub(super) fn write<'a>(
    calls: Calls<'_>,
    window: &Range<u64>,
    given: impl Iterator<Item = &'a [u8]>,
    memory: &mut Vec<u8>,
) -> Vec<Fate> {
    let parts = parts(given, window, true);
    let runs = joined(&parts, 0);
    let len = runs.last().map_or(0, |run| run.end() - window.start);
    if memory.len() < len as usize {
        memory.resize(len as usize, 0);
    }
    let place = |offset: u64| (offset - window.start) as usize;
    for part in &parts {
        let mut rest = part.data;
        for extent in &part.extents {
            let (now, after) = rest.split_at(extent.len as usize);
            memory[place(extent.offset)..place(extent.end())].copy_from_slice(now);
            rest = after;
        }
    }
    write_runs(calls, window, (parts, runs), memory)
}

/// Writes what members have put into the window, each of which has sent its extents. Returns what became of the bytes of each.
pub(super) fn write_window<'a>(
    calls: Calls<'_>,
    window: &Range<u64>,
    lists: impl Iterator<Item = &'a [u8]>,
    bytes: &[u8],
) -> Vec<Fate> {
    let parts = parts(lists, window, false);
    let runs = joined(&parts, 0);
    write_runs(calls, window, (parts, runs), bytes)
}

/// Writes runs of a window, whose bytes these are. Returns what became of those of each part.
fn write_runs(
    calls: Calls<'_>,
    window: &Range<u64>,
    (mut parts, runs): (Vec<Part<'_>>, Vec<Extent>),
    bytes: &[u8],
) -> Vec<Fate> {
    let place = |offset: u64| (offset - window.start) as usize;
    let written = runs.into_iter().map(|run| {
        let data = &bytes[place(run.offset)..place(run.end())];
        Done::of(run, &calls.write(run.offset, data))
    });
    let done: Vec<Done> = written.collect();
    parts.iter_mut().for_each(|part| settle(part, &done));
    parts.into_iter().map(|part| part.fate).collect()
}

/// Reads what members have asked for. Calls `reply` with what became of the bytes of each, and these.
pub(super) fn read<'a>(
    calls: Calls<'_>,
    window: &Range<u64>,
    given: impl Iterator<Item = &'a [u8]>,
    memory: &mut Vec<u8>,
    mut reply: impl FnMut(Fate, &mut dyn Iterator<Item = &[u8]>),
) {
    let mut parts = parts(given, window, false);
    let runs = joined(&parts, GAP);
    let len = runs.last().map_or(0, |run| run.end() - window.start);
    if memory.len() < len as usize {
        memory.resize(len as usize, 0);
    }
    let place = |offset: u64| (offset - window.start) as usize;
    let read = runs.into_iter().map(|run| {
        let room = &mut memory[place(run.offset)..place(run.end())];
        Done::of(run, &calls.read(run.offset, room))
    });
    let done: Vec<Done> = read.collect();
    parts.iter_mut().for_each(|part| settle(part, &done));
    for part in &parts {
        let mut left = part.fate.good;
        let mut pieces = part.extents.iter().map_while(|extent| {
            let len = extent.len.min(left);
            left -= len;
            let start = place(extent.offset);
            (len > 0).then(|| &memory[start..start + len as usize])
        });
        reply(part.fate, &mut pieces);
    }
}
