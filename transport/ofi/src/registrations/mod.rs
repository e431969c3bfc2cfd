//! Registrations of buffers that operations are lent, kept for the next operation on the same memory.
//!
//! Those for this rank alone, which some providers want (`FI_MR_LOCAL`): an operation names its memory by one. A registration with rights
//! for peers is never kept, since a peer could reach memory that was given back.
//!
//! A registration is of pages, not of addresses. Where a program gives memory back and has other memory at the same address later, a
//! registration of before names pages that are nobody's any more. So what is kept is [watched](watch), and is used again where nothing has
//! happened to the memory. What cannot be watched is registered for each operation: pages of files, memory that processes share, and all
//! memory where the kernel does not tell (Linux before 5.19, or forbidden).

mod changes;
mod ranges;
#[cfg(test)]
mod ranges_tests;
mod sync;
#[cfg(test)]
mod tests;
mod watch;

use std::collections::{BTreeMap, VecDeque};
use std::fmt::{Display, Formatter};
use std::ops::Range;
use std::sync::Arc;

use rustix::param::page_size;
use rustix::process::{Resource, getrlimit};
use tagwire_libfabric_sys::bindings::{FI_READ, FI_RECV, FI_SEND, FI_WRITE};
use tagwire_transport::process_memory;

use crate::fabric::Registered;
#[cfg(test)]
pub(crate) use watch::THREAD;
use watch::{Watch, Watched};

/// All that an operation of this rank may do to its own memory.
const RIGHTS: u64 = FI_SEND | FI_RECV | FI_READ | FI_WRITE;

/// How many of those that begin at or before a buffer are looked at.
const LOOK: usize = 8;

/// How many ranges that cannot be watched are remembered, and for how many look-ups.
const REFUSED: usize = 16;
const LATELY: u64 = 1024;

/// A registration that is kept.
#[derive(Debug)]
struct Kept {
    end: usize,
    access: u64,
    /// When it was used last, in look-ups.
    used: u64,
    registered: Registered,
    watched: Watched,
}

/// What has happened so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Counts {
    hits: u64,
    misses: u64,
    /// Those of the misses that were registered for their operation alone.
    passing: u64,
    evicted: u64,
    invalidated: u64,
}

/// The registrations that a rank keeps.
#[derive(Debug)]
pub(crate) struct Registrations {
    most: usize,
    most_bytes: usize,
    /// By where they begin.
    kept: BTreeMap<usize, Kept>,
    bytes: usize,
    /// Ranges that could not be watched, and when, the last first.
    refused: VecDeque<(Range<usize>, u64)>,
    /// Look-ups so far.
    now: u64,
    /// There from the first buffer on, unless there is none to be had.
    watch: Option<Arc<Watch>>,
    /// What `watch` said when the ended were last dropped.
    ended: u64,
    counts: Counts,
}

impl Registrations {
    /// Keeps so many registrations at most, of so many bytes.
    pub(crate) fn new(most: usize, most_bytes: Option<usize>) -> Self {
        Self {
            most,
            most_bytes: most_bytes.unwrap_or_else(share_of_memory),
            kept: BTreeMap::new(),
            bytes: 0,
            refused: VecDeque::with_capacity(REFUSED),
            now: 0,
            watch: None,
            ended: 0,
            counts: Counts::default(),
        }
    }

    /// Returns a registration of the `len` bytes at `start`, of those that are kept or one that `register` makes.
    ///
    /// # Errors
    /// What `register` returns.
    pub(crate) fn lend(
        &mut self,
        start: *const u8,
        len: usize,
        access: u64,
        mut register: impl FnMut(*const u8, usize, u64) -> Result<Registered, i32>,
    ) -> Result<Registered, i32> {
        let pages = pages_of(start.addr(), len);
        self.drop_ended();
        let found = pages.as_ref().and_then(|pages| self.find(pages, access));
        if let Some(found) = found {
            self.counts.hits += 1;
            return Ok(found);
        }
        self.counts.misses += 1;
        if let Some(watched) = pages.clone().and_then(|pages| self.watch(pages))
            && let Some(pages) = pages
        {
            // Memory that may only be read cannot be registered to be written to.
            let access = if watched.is_writable() {
                RIGHTS
            } else {
                access
            };
            if let Ok(registered) = register(start.with_addr(pages.start), pages.len(), access) {
                self.keep(&pages, access, registered.clone(), watched);
                return Ok(registered);
            }
        }
        self.counts.passing += 1;
        match register(start, len, access) {
            // The memory that may be locked, or what the device has for registrations, may all be in what is kept.
            Err(_) if self.give_back() > 0 => register(start, len, access),
            result => result,
        }
    }

    /// Drops those whose memory has changed.
    fn drop_ended(&mut self) {
        let Some(ended) = self.watch.as_ref().map(|watch| watch.ended()) else {
            return;
        };
        if std::mem::replace(&mut self.ended, ended) == ended {
            return;
        }
        let before = self.kept.len();
        self.kept.retain(|start, kept| {
            let gone = kept.watched.has_ended();
            self.bytes -= if gone { kept.end - start } else { 0 };
            !gone
        });
        self.counts.invalidated += (before - self.kept.len()) as u64;
    }

    /// Returns one that covers `pages` with these rights, of the same memory.
    fn find(&mut self, pages: &Range<usize>, access: u64) -> Option<Registered> {
        self.now += 1;
        let before = self.kept.range_mut(..=pages.start).rev().take(LOOK);
        let covers = |kept: &Kept| kept.end >= pages.end && kept.access & access == access;
        let (start, kept) = before
            .map(|(start, kept)| (*start, kept))
            .find(|(_, kept)| covers(kept))?;
        match kept.watched.is_same() {
            Some(true) => {
                kept.used = self.now;
                return Some(kept.registered.clone());
            }
            Some(false) => {
                self.counts.invalidated += 1;
                self.forget(start);
            }
            None => {}
        }
        None
    }

    /// Watches pages, and makes room for them.
    fn watch(&mut self, pages: Range<usize>) -> Option<Watched> {
        // Where the same memory is kept with fewer bytes, or fewer rights, or nothing is known of it for now, it makes way.
        self.forget(pages.start);
        if self.most == 0 || pages.len() > self.most_bytes || self.is_refused(&pages) {
            return None;
        }
        if self.watch.is_none() {
            let opened = Watch::of_process().inspect_err(|error| {
                tracing::debug!(
                    %error,
                    "ofi: registrations are not kept, since the kernel does not tell how memory changes"
                );
                self.most = 0;
            });
            self.watch = opened.ok();
        }
        let Some(watched) = self.watch.as_ref()?.watch(pages.clone()) else {
            self.refused.truncate(REFUSED - 1);
            self.refused.push_front((pages, self.now));
            return None;
        };
        while self.kept.len() >= self.most || pages.len() > self.most_bytes - self.bytes {
            if !self.evict() {
                return None;
            }
        }
        Some(watched)
    }

    /// Returns whether it was found lately that pages cannot be watched, which takes longer to find than some registrations.
    fn is_refused(&self, pages: &Range<usize>) -> bool {
        self.refused.iter().any(|(refused, at)| {
            refused.start <= pages.start && pages.end <= refused.end && self.now - at < LATELY
        })
    }

    fn keep(
        &mut self,
        pages: &Range<usize>,
        access: u64,
        registered: Registered,
        watched: Watched,
    ) {
        let kept = Kept {
            end: pages.end,
            access,
            used: self.now,
            registered,
            watched,
        };
        self.kept.insert(pages.start, kept);
        self.bytes += pages.len();
    }

    fn forget(&mut self, start: usize) {
        if let Some(kept) = self.kept.remove(&start) {
            self.bytes -= kept.end - start;
        }
    }

    /// Drops the one that no operation has and that was used least recently; returns whether there was one.
    fn evict(&mut self) -> bool {
        let idle = self
            .kept
            .iter()
            .filter(|(_, kept)| !kept.registered.is_shared());
        let oldest = idle
            .min_by_key(|(_, kept)| kept.used)
            .map(|(start, _)| *start);
        if let Some(start) = oldest {
            self.counts.evicted += 1;
            self.forget(start);
        }
        oldest.is_some()
    }

    /// Drops all that no operation has; returns how many.
    fn give_back(&mut self) -> usize {
        std::iter::from_fn(|| self.evict().then_some(())).count()
    }
}

impl Display for Registrations {
    fn fmt(&self, out: &mut Formatter<'_>) -> std::fmt::Result {
        let Counts {
            hits,
            misses,
            passing,
            evicted,
            invalidated,
        } = self.counts;
        write!(
            out,
            "{} registrations of {} bytes kept; {hits} hits, {misses} misses, {passing} of which are not kept, {evicted} evicted, \
             {invalidated} invalidated",
            self.kept.len(),
            self.bytes,
        )
    }
}

/// Returns the whole pages in which `len` bytes at `start` lie.
fn pages_of(start: usize, len: usize) -> Option<Range<usize>> {
    let page = page_size();
    let end = start.checked_add(len)?.checked_next_multiple_of(page)?;
    Some(start - start % page..end)
}

/// Returns the bytes that stay registered where the user does not say: some of the memory that there is, and of what may be locked.
fn share_of_memory() -> usize {
    let lockable = getrlimit(Resource::Memlock).current.unwrap_or(u64::MAX);
    usize::try_from((process_memory() / 64).min(lockable / 4)).unwrap_or(usize::MAX)
}
