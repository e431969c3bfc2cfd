//! Collective accesses in two phases: the data of all members is exchanged with aggregators, each of which reads or writes a whole
//! part of the file.
//!
//! ```text
//!     member                                     aggregator
//!     its extents in the window, and their data  ------------>   puts them in the order of the file, writes runs of bytes
//!                          .. the next window ..
//!     how many bytes are written, the error      <------------
//!
//!     its extents in the window                  ------------>   reads the runs of bytes of all
//!     how many bytes are read, the error, the data  <---------
//! ```
//!
//! On one host with one aggregator, members put the data of a write into memory that they all map ([`common`]), and give their lists alone.
//!
//! A write goes on after an error: what others have given is still written. All members make all exchanges, whatever has failed.

mod aggregate;
pub(crate) mod common;
mod domains;

use std::ops::Range;
use std::path::Path;

use rustix::io::Errno;
use tagwire_coll::Team;

use crate::code::{encode, word, words};
use crate::hints::Hints;
use crate::plan::Summary;
use crate::transfer::Calls;
use crate::{Access, Data, Error, Outcome, Result, Room};
use aggregate::Fate;
use common::Common;
use domains::Domains;

/// Bytes in front of the data of a reply: the words of a [`Fate`].
const HEAD: usize = 16;

/// A collective access in two phases.
pub(crate) struct TwoPhase<'f> {
    team: &'f Team,
    calls: Calls<'f>,
    access: Access<'f>,
    len: u64,
    domains: Domains,
    common: Option<&'f Common>,
}

/// Bytes for each member, one behind the other.
#[derive(Default)]
struct Parcel {
    bytes: Vec<u8>,
    lengths: Vec<usize>,
}

/// What members have put into the memory of all, and their lists at the aggregator.
struct Put<'f> {
    common: &'f Common,
    lists: Vec<Vec<u8>>,
}

impl Parcel {
    /// Returns the parts of all members.
    fn parts(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.bytes[..];
        self.lengths.iter().map(move |len| {
            let (part, after) = rest.split_at(*len);
            rest = after;
            part
        })
    }

    /// Says that what was added since the last part is that of the next member.
    fn close(&mut self) {
        let before: usize = self.lengths.iter().sum();
        self.lengths.push(self.bytes.len() - before);
    }
}

impl<'f> TwoPhase<'f> {
    /// Returns the access of a member whose data has `len` bytes, among members with these summaries.
    pub(crate) fn new(
        (team, calls): (&'f Team, Calls<'f>),
        (access, len): (Access<'f>, u64),
        (members, hosts): (&[Summary], &[u64]),
        hints: &Hints,
    ) -> Self {
        Self {
            team,
            calls,
            access,
            len,
            domains: Domains::new(members, hosts, hints),
            common: None,
        }
    }

    /// Returns whether it has several rounds, of one aggregator.
    pub(crate) fn has_rounds(&self) -> bool {
        self.domains.len() == 1 && self.domains.rounds() > 1
    }

    /// Has data of writes go through memory of all members, where one aggregates.
    pub(crate) fn through(mut self, common: Option<&'f Common>) -> Self {
        self.common = common.filter(|_| self.domains.len() == 1);
        self
    }

    /// Writes the data of all members.
    pub(crate) fn write(&self, data: &Data<'_>) -> Outcome {
        match self.write_rounds(data) {
            Ok(fates) => self.outcome("pwrite", &fates),
            Err(error) => error.into(),
        }
    }

    /// The same. Returns what each aggregator says of this member's bytes.
    fn write_rounds(&self, data: &Data<'_>) -> Result<Vec<Fate>> {
        let mut memory = Vec::new();
        let mut fates = vec![Fate::default(); self.team.size()];
        for round in 0..self.domains.rounds() {
            let window = self.domains.window_of(self.team.me(), round);
            let now = match self.shared(round, data)? {
                Some(_) if window.is_empty() => continue,
                Some(Put { common, lists }) => {
                    let lists = lists.iter().map(Vec::as_slice);
                    aggregate::write_window(self.calls, &window, lists, common.window(round))
                }
                None => {
                    let given = self.exchange(round, Some(data))?;
                    if window.is_empty() {
                        continue;
                    }
                    aggregate::write(self.calls, &window, given.parts(), &mut memory)
                }
            };
            for (fate, now) in fates.iter_mut().zip(now) {
                add(fate, now);
            }
        }
        let words = fates.iter().flat_map(|fate| fate_words(*fate));
        let words: Vec<u8> = words.collect();
        let mut all = vec![0; words.len()];
        self.team.alltoall(&words, &mut all)?;
        let of = |(member, _): (usize, Range<u64>)| fate_at(&all[member * HEAD..]);
        Ok(self.domains.windows(0).map(of).collect())
    }

    /// Reads the data of all members.
    pub(crate) fn read(&self, room: &mut Room<'_>) -> Outcome {
        match self.read_rounds(room) {
            Ok(fates) => self.outcome("pread", &fates),
            Err(error) => error.into(),
        }
    }

    fn read_rounds(&self, room: &mut Room<'_>) -> Result<Vec<Fate>> {
        let mut memory = Vec::new();
        let mut fates = vec![Fate::default(); self.domains.len()];
        let mut has_ended = vec![false; self.domains.len()];
        for round in 0..self.domains.rounds() {
            let asked = self.exchange(round, None)?;
            let replies = self.replies(round, &asked, &mut memory)?;
            for (number, (member, window)) in self.domains.windows(round).enumerate() {
                let positions = self.positions(&window)?;
                let Some(reply) = replies
                    .parts()
                    .nth(member)
                    .filter(|reply| reply.len() >= HEAD)
                else {
                    continue;
                };
                let (now, data) = (fate_at(reply), &reply[HEAD..]);
                let expected = positions.end - positions.start;
                if now.good > expected || now.good > data.len() as u64 {
                    let what = "more bytes are read than there are";
                    return Err(Error::Protocol { member, what });
                }
                // What others have written meanwhile behind an end that was found is not read.
                if !has_ended[number] {
                    room.fill(positions.start, &data[..now.good as usize]);
                    add(&mut fates[number], now);
                    has_ended[number] = now.good < expected;
                }
            }
        }
        Ok(fates)
    }

    /// Answers what members have asked for, and returns the answers to this one.
    fn replies(&self, round: u64, asked: &Parcel, memory: &mut Vec<u8>) -> Result<Parcel> {
        let mut out = Parcel::default();
        let window = self.domains.window_of(self.team.me(), round);
        let mut asks = asked.lengths.iter().map(|len| *len > 0);
        aggregate::read(
            self.calls,
            &window,
            asked.parts(),
            memory,
            |fate, pieces| {
                if asks.next() == Some(true) {
                    out.bytes.extend(fate_words(fate));
                    pieces.for_each(|piece| out.bytes.extend_from_slice(piece));
                }
                out.close();
            },
        );
        self.sent(&out)
    }

    /// Puts the data of this member into the memory of all, where there is some and it has room, and meets the others. Returns the lists of
    /// all members to the aggregator.
    fn shared(&self, round: u64, data: &Data<'_>) -> Result<Option<Put<'f>>> {
        let (Some(common), Some((aggregator, window))) =
            (self.common, self.domains.windows(round).next())
        else {
            return Ok(None);
        };
        let positions = self.positions(&window)?;
        let len = positions.end - positions.start;
        let mut list = Vec::new();
        if len > 0 {
            let extents = self.access.extents(positions.start, len)?;
            encode(extents, window.start, &mut list);
        }
        let mut told = u64::MAX;
        if common.fits(&window, list.len()) {
            if len > 0 {
                let extents = self.access.extents(positions.start, len)?;
                let places = extents.map(|extent| (extent.offset - window.start, extent.len));
                data.scatter(positions, places, |at, bytes| common.put(round, at, bytes));
            }
            common.put_list(round, self.team.me(), &list);
            told = list.len() as u64;
        }
        let mut all = vec![0; 8 * self.team.size()];
        self.team.allgather(&words([told]), &mut all)?;
        let lengths = (0..self.team.size()).map(|member| (member, word(&all, member)));
        if lengths.clone().any(|(_, length)| length == u64::MAX) {
            return Ok(None);
        }
        let list = |(member, length)| common.list(round, member, length);
        let lists = match aggregator == self.team.me() {
            true => lengths.map(list).collect(),
            false => Vec::new(),
        };
        Ok(Some(Put { common, lists }))
    }

    /// Sends each aggregator the extents of this member in its window, with their data where there is some. Returns what this member
    /// has got as an aggregator.
    fn exchange(&self, round: u64, data: Option<&Data<'_>>) -> Result<Parcel> {
        let mut out = Parcel::default();
        let windows: Vec<_> = self.domains.windows(round).collect();
        for member in 0..self.team.size() {
            let window = windows.iter().find(|(other, _)| *other == member);
            if let Some((_, window)) = window {
                let positions = self.positions(window)?;
                let len = positions.end - positions.start;
                if len > 0 {
                    let extents = self.access.extents(positions.start, len)?;
                    encode(extents, window.start, &mut out.bytes);
                }
                if let Some(data) = data {
                    let start = out.bytes.len();
                    out.bytes.resize(start + len as usize, 0);
                    data.copy(positions.start, &mut out.bytes[start..]);
                }
            }
            out.close();
        }
        self.sent(&out)
    }

    /// Gives every member its part. Returns what all have given this one.
    fn sent(&self, out: &Parcel) -> Result<Parcel> {
        let lengths = out.lengths.iter().flat_map(|len| words([*len as u64]));
        let lengths: Vec<u8> = lengths.collect();
        let mut coming = vec![0; lengths.len()];
        self.team.alltoall(&lengths, &mut coming)?;
        let coming = (0..self.team.size()).map(|member| word(&coming, member) as usize);
        let coming: Vec<usize> = coming.collect();
        if let Some(member) = coming.iter().position(|len| *len > self.domains.longest()) {
            let what = "it sends more than a window of the file has";
            return Err(Error::Protocol { member, what });
        }
        let mut bytes = vec![0; coming.iter().sum()];
        self.team
            .alltoallv(&out.bytes, &out.lengths, &mut bytes, &coming)?;
        let lengths = coming;
        Ok(Parcel { bytes, lengths })
    }

    /// Returns which part of this member's data is in a window of the file.
    fn positions(&self, window: &Range<u64>) -> Result<Range<u64>> {
        if window.is_empty() || self.len == 0 {
            return Ok(0..0);
        }
        let before = |offset| self.access.before(offset, self.len);
        Ok(before(window.start)?..before(window.end)?)
    }

    /// Returns how the access ended of which aggregators, in the order of the file, say this.
    fn outcome(&self, call: &'static str, fates: &[Fate]) -> Outcome {
        let mut bytes = 0;
        for (fate, (member, part)) in fates.iter().zip(self.domains.windows(0)) {
            bytes += fate.good;
            if fate.errno != 0 {
                let member = Some(member).filter(|member| *member != self.team.me());
                let error = system(call, self.calls.path, fate.errno, member);
                return Outcome::failed(bytes, error);
            }
            // Behind the end of the file nothing is read.
            let whole = self.whole(&part);
            if whole.is_some_and(|whole| fate.good < whole) {
                break;
            }
        }
        Outcome::good(bytes)
    }

    /// Returns how many bytes of this member's data are in all windows of the aggregator whose first is this.
    fn whole(&self, first: &Range<u64>) -> Option<u64> {
        let mut windows = self.domains.windows(0).map(|(_, window)| window.start);
        let next = windows.find(|start| *start > first.start);
        let positions = self.positions(&(first.start..next.unwrap_or(u64::MAX)));
        positions
            .ok()
            .map(|positions| positions.end - positions.start)
    }
}

fn system(call: &'static str, path: &Path, errno: i32, member: Option<usize>) -> Error {
    Error::System {
        call,
        path: path.to_owned(),
        errno: Errno::from_raw_os_error(errno),
        member,
    }
}

/// Adds what became of a member's next bytes, unless some before have failed.
fn add(fate: &mut Fate, now: Fate) {
    if fate.errno == 0 {
        fate.good += now.good;
        fate.errno = now.errno;
    }
}

fn fate_words(fate: Fate) -> Vec<u8> {
    words([fate.good, fate.errno as u32 as u64])
}

fn fate_at(bytes: &[u8]) -> Fate {
    Fate {
        good: word(bytes, 0),
        errno: word(bytes, 1) as u32 as i32,
    }
}
