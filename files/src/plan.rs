//! Plans: who reads or writes what.

use crate::hints::{Hints, Switch};
use crate::{Access, Result};

/// How an access is done. It is chosen from [summaries](Summary) and hints alone: members of a collective access that are given
/// the same choose the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Plan {
    /// Each member makes a system call for each of its runs of bytes.
    Direct,
    /// Each member reads its runs of bytes with what lies between them.
    Sieve,
    /// Aggregators read or write whole parts of the file, and exchange the data with the members.
    TwoPhase,
}

/// What the bytes of an access are like.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Summary {
    /// Bytes of data.
    pub bytes: u64,
    /// Where the first of them is.
    pub first: u64,
    /// Where the last of them ends.
    pub end: u64,
    /// Runs of bytes.
    pub runs: u64,
    /// The runs are in order, and the member does not ask for a plan.
    pub is_free: bool,
    /// The member asks for two phases.
    pub wants_two_phase: bool,
}

/// Reads of runs of bytes below this mean length are gathered by aggregators or sieved: a system call takes about as long as copying so
/// many bytes a few times.
const SHORT_READ: u64 = 4096;

/// The same of writes, of which the system does one of a file at a time: members that make their own calls wait for each other.
const SHORT_WRITE: u64 = 6144;

/// A part of the file of which less than one byte in so many is accessed is too sparse for aggregators.
const SPARSE: u64 = 8;

/// The same where it is asked for: aggregators would go through parts without data for longer than anybody waits.
const SPARSEST: u64 = 1024;

/// Runs are counted up to so many: more are short in any case, and counting takes time.
const COUNTED: usize = 4096;

impl Summary {
    /// Returns what `len` bytes of data are like.
    ///
    /// # Errors
    /// As [`View::extents`](crate::View::extents).
    pub fn of(access: Access<'_>, len: u64) -> Result<Self> {
        if len == 0 {
            return Ok(Self {
                is_free: true,
                ..Self::default()
            });
        }
        let mut extents = access.extents(0, len)?;
        let first = extents.next().map_or(0, |extent| extent.offset);
        let mut runs = 1;
        let mut counted = access.extents(0, len)?.map(|extent| extent.len);
        let bytes: u64 = counted.by_ref().take(COUNTED).sum();
        if bytes < len {
            // The others are taken to be as long.
            runs = (len as u128 * COUNTED as u128 / u128::from(bytes)) as u64;
        } else {
            runs += extents.count() as u64;
        }
        let last = access.view.offset_of(access.position + len - 1)?;
        Ok(Self {
            bytes: len,
            first,
            end: last + 1,
            runs,
            is_free: access.is_ordered(len),
            wants_two_phase: false,
        })
    }

    /// Returns the same, of a member with such a switch for two phases.
    #[must_use]
    pub fn with(mut self, two_phase: Switch) -> Self {
        self.wants_two_phase = self.is_free && two_phase == Switch::Enable;
        self.is_free &= two_phase != Switch::Disable;
        self
    }

    /// Returns the mean length of its runs.
    const fn mean(&self) -> u64 {
        match self.bytes.checked_div(self.runs) {
            Some(mean) => mean,
            None => 0,
        }
    }

    /// Returns the mean distance of its runs.
    const fn stride(&self) -> u64 {
        let runs = if self.runs == 0 { 1 } else { self.runs };
        // Where the view is not in order, the last byte may lie before the first.
        self.end.saturating_sub(self.first) / runs
    }
}

impl Plan {
    /// Returns how a member reads by itself.
    #[must_use]
    pub fn of_read(summary: &Summary, hints: &Hints, is_ordered: bool) -> Self {
        let pays = match hints.sieve {
            Switch::Enable => true,
            Switch::Disable => false,
            Switch::Automatic => summary.mean() < SHORT_READ && summary.stride() <= SHORT_READ,
        };
        match pays && is_ordered && summary.runs > 1 {
            true => Self::Sieve,
            false => Self::Direct,
        }
    }

    /// Returns whether a collective read of members with these summaries is in two phases: where the runs of several members are
    /// short, and lie between each other, or all of them ask for it.
    #[must_use]
    pub fn of_reads(members: &[Summary]) -> Self {
        Self::of_all(members, SHORT_READ)
    }

    /// The same of a collective write.
    #[must_use]
    pub fn of_writes(members: &[Summary]) -> Self {
        Self::of_all(members, SHORT_WRITE)
    }

    /// The same, where runs below this mean length are short.
    fn of_all(members: &[Summary], short: u64) -> Self {
        let having = || members.iter().filter(|member| member.bytes > 0);
        if !members.iter().all(|member| member.is_free) || having().next().is_none() {
            return Self::Direct;
        }
        let sum = |of: fn(&Summary) -> u64| having().map(of).fold(0_u64, u64::saturating_add);
        let (bytes, runs) = (sum(|member| member.bytes), sum(|member| member.runs));
        let range = range(members);
        let of_each = (range.1 - range.0) / bytes;
        if of_each <= SPARSEST && members.iter().all(|member| member.wants_two_phase) {
            return Self::TwoPhase;
        }
        let is_short = bytes / runs.max(1) < short && runs > members.len() as u64;
        let is_dense = of_each <= SPARSE;
        match is_short && is_dense && are_interleaved(members) {
            true => Self::TwoPhase,
            false => Self::Direct,
        }
    }
}

/// Returns from where to where members access the file.
pub(crate) fn range(members: &[Summary]) -> (u64, u64) {
    let having = || members.iter().filter(|member| member.bytes > 0);
    let first = having().map(|member| member.first).min().unwrap_or(0);
    let end = having().map(|member| member.end).max().unwrap_or(0);
    (first, end)
}

/// Returns whether two members access parts of the file that lie between each other.
fn are_interleaved(members: &[Summary]) -> bool {
    let mut parts: Vec<_> = members
        .iter()
        .filter(|member| member.bytes > 0)
        .map(|member| (member.first, member.end))
        .collect();
    parts.sort_unstable();
    parts.windows(2).any(|pair| pair[1].0 < pair[0].1)
}
