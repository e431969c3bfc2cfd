//! The memory that members attach to a dynamic window (MPI-5.0, section 12.2.5).
//!
//! Each member keeps a table of it behind its control block. Displacements are addresses of the owner. Others read the table, and
//! keep what they have read until its version changes.
//!
//! ```text
//!     0    address     of the owner's program
//!     8    length      in bytes
//!     16   key length  of what remote memory access needs
//!     24   key         at most 104 bytes
//! ```

use std::ops::Range;
use std::sync::Arc;

use tagwire_pml::{Messenger, Region, Target};

use crate::error::{Class, Error, Result};
use crate::lock::Lock;
use crate::object::datatype::Span;
use crate::object::window::Window;
use crate::object::window::accesses::{At, Part};
use crate::object::window::block::{self, Word};
use crate::raw::Out;

/// Bytes of an entry.
const ENTRY: usize = 128;

/// Most bytes of a key.
const KEY: usize = ENTRY - 24;

/// How many pieces of memory a member may have attached at once.
pub(crate) const MOST: usize = 1024;

/// Bytes of a table.
pub(crate) const TABLE: usize = MOST * ENTRY;

/// What this process has attached, and what it knows of others.
#[derive(Debug, Default)]
pub(crate) struct Attached {
    own: Lock<Vec<Own>>,
    known: Lock<Vec<Option<Arc<Known>>>>,
}

/// Memory of this process.
#[derive(Debug)]
struct Own {
    address: u64,
    length: u64,
    /// None of no bytes.
    region: Option<Region>,
}

/// The table of a member.
#[derive(Debug)]
struct Known {
    version: u64,
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Entry {
    address: u64,
    length: u64,
    /// By which it is reached; this process reaches its own at its address.
    target: Option<Target>,
}

impl Attached {
    /// Returns those of a window with so many members.
    pub(crate) fn new(members: usize) -> Self {
        let known = std::iter::repeat_with(|| None).take(members);
        Self {
            own: Lock::default(),
            known: Lock::new(known.collect()),
        }
    }

    /// Returns the regions of all that is attached.
    pub(crate) fn take_regions(&self) -> Vec<Region> {
        let own = std::mem::take(&mut *self.own.lock());
        own.into_iter().filter_map(|one| one.region).collect()
    }
}

impl Window {
    /// Attaches memory.
    ///
    /// # Errors
    /// `MPI_ERR_RMA_ATTACH` where some of it is attached, or there is no room for more.
    pub(crate) fn attach(&self, base: Out, bytes: usize) -> Result {
        let (address, length) = (
            base.read().address().expose_provenance() as u64,
            bytes as u64,
        );
        let mut own = self.attached.own.lock();
        let end = address.saturating_add(length);
        let overlaps =
            |one: &Own| one.address < end && address < one.address.saturating_add(one.length);
        if own.iter().any(overlaps) {
            return Err(refused("some of the memory is attached already"));
        }
        if own.len() == MOST {
            let text = format!("a process attaches {MOST} pieces of memory to a window at most");
            return Err(refused(text));
        }
        if bytes == 0 {
            own.push(Own {
                address,
                length,
                region: None,
            });
            return Ok(());
        }
        let window = self.messenger().window();
        let region = window.expose(&base.buffer(0, bytes))?;
        if region.key().len() > KEY {
            let text = format!(
                "the transport's key of {} bytes is too long",
                region.key().len()
            );
            window.withdraw(region)?;
            return Err(refused(text));
        }
        own.push(Own {
            address,
            length,
            region: Some(region),
        });
        self.publish(&own)
    }

    /// Detaches the memory that begins at an address.
    ///
    /// # Errors
    /// `MPI_ERR_BASE` where none does.
    pub(crate) fn detach(&self, base: u64) -> Result {
        let mut own = self.attached.own.lock();
        let place = own.iter().position(|one| one.address == base);
        let place = place.ok_or_else(|| {
            let text = format!("no attached memory begins at {base:#x}");
            Error::new(Class::Base, text)
        })?;
        let detached = own.remove(place);
        let published = self.publish(&own);
        if let Some(region) = detached.region {
            self.messenger().window().withdraw(region)?;
        }
        published
    }

    /// Writes the table of this process.
    fn publish(&self, own: &[Own]) -> Result {
        let (block, messenger) = (&self.members()[self.me()].block, self.messenger());
        block.add(messenger, Word::Version, 1)?;
        let mut count = 0;
        for one in own {
            let Some(region) = &one.region else { continue };
            let mut entry = [0; ENTRY];
            let key = region.key();
            entry[..8].copy_from_slice(&one.address.to_ne_bytes());
            entry[8..16].copy_from_slice(&one.length.to_ne_bytes());
            entry[16..24].copy_from_slice(&(key.len() as u64).to_ne_bytes());
            entry[24..24 + key.len()].copy_from_slice(key);
            block.write(self.table() + count * ENTRY, &entry);
            count += 1;
        }
        block.set(messenger, Word::Attached, count as u64)?;
        block.add(messenger, Word::Version, 1)?;
        Ok(())
    }

    /// Returns where the table of a block begins.
    fn table(&self) -> usize {
        block::bytes(self.members().len())
    }

    /// Returns where bytes of a range from a displacement on are in what a member has attached: those of elements, or all.
    ///
    /// # Errors
    /// `MPI_ERR_RMA_RANGE` where it has not attached all bytes of them; those between their blocks need not be.
    pub(crate) fn find_attached(
        &self,
        member: usize,
        displacement: i64,
        range: Range<i64>,
        elements: Option<&Span>,
    ) -> Result<At> {
        if range.is_empty() {
            return Ok(At::Nowhere);
        }
        let (known, mut parts) = (self.known(member)?, Vec::new());
        let mut is_attached = known.has(displacement, &range, &mut parts);
        if let (false, Some(span)) = (is_attached, elements) {
            parts.clear();
            let mut blocks = span.program.blocks(span.count)?;
            is_attached = blocks.all(|block| {
                let block = block.offset..block.offset + block.length as i64;
                known.has(displacement, &block, &mut parts)
            });
        }
        if !is_attached {
            let text = format!(
                "{} bytes from {} on, at the address {displacement:#x}, are not all attached by rank {member} of the window",
                range.end.wrapping_sub(range.start),
                range.start
            );
            return Err(Error::new(Class::RmaRange, text));
        }
        Ok(match member == self.me() {
            true => At::Here(Out::EMPTY.moved(displacement)),
            false => At::There(parts.into(), displacement),
        })
    }

    /// Returns the table of a member as it is now.
    fn known(&self, member: usize) -> Result<Arc<Known>> {
        let (block, messenger) = (&self.members()[member].block, self.messenger());
        let mut found = None;
        let what = "the table of attached memory";
        self.wait(member, what, || {
            let version = block.get(messenger, Word::Version)?;
            if !version.is_multiple_of(2) {
                return Ok(false);
            }
            let kept = self.attached.known.lock()[member].clone();
            if let Some(kept) = kept.filter(|kept| kept.version == version) {
                found = Some(kept);
                return Ok(true);
            }
            let count = block.get(messenger, Word::Attached)?.min(MOST as u64) as usize;
            let bytes = block.read(messenger, self.table(), count * ENTRY)?;
            if block.get(messenger, Word::Version)? != version {
                return Ok(false);
            }
            let own = member == self.me();
            let rank = self.members()[member].rank;
            let entries = bytes.chunks_exact(ENTRY).map(|bytes| {
                let mut entry = Entry::decode(bytes);
                if !own {
                    entry.target = Some(reach(messenger, rank, bytes)?);
                }
                Ok(entry)
            });
            let entries = entries.collect::<Result<_>>()?;
            let read = Arc::new(Known { version, entries });
            self.attached.known.lock()[member] = Some(Arc::clone(&read));
            found = Some(read);
            Ok(true)
        })?;
        found.ok_or_else(|| Error::new(Class::Intern, "there is no table of attached memory"))
    }
}

impl Known {
    /// Returns whether all bytes of a range from a displacement on are attached. Adds the regions that they are in to `parts`. Pieces
    /// that touch each other are one memory.
    fn has(&self, displacement: i64, range: &Range<i64>, parts: &mut Vec<Part>) -> bool {
        let start = displacement.checked_add(range.start);
        let (Some(mut reached), Some(end)) = (start, displacement.checked_add(range.end)) else {
            return false;
        };
        while reached < end {
            let mut entries = self.entries.iter();
            let Some(found) = entries.find(|entry| entry.range().contains(&reached)) else {
                return false;
            };
            let range = found.range();
            reached = range.end;
            let is_known = parts.iter().any(|part| part.start == range.start);
            if let (false, Some(target)) = (is_known, &found.target) {
                parts.push(Part {
                    target: target.clone(),
                    start: range.start,
                    end: range.end,
                });
            }
        }
        true
    }
}

impl Entry {
    fn range(&self) -> Range<i64> {
        let start = self.address as i64;
        start..start.saturating_add(self.length as i64)
    }

    fn decode(bytes: &[u8]) -> Self {
        Self {
            address: word(bytes, 0),
            length: word(bytes, 8),
            target: None,
        }
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_ne_bytes(word)
}

fn reach(messenger: &Messenger, rank: tagwire_base::Rank, entry: &[u8]) -> Result<Target> {
    let length = (word(entry, 16) as usize).min(KEY);
    Ok(messenger.window().reach(rank, &entry[24..24 + length])?)
}

#[cold]
fn refused(text: impl Into<String>) -> Error {
    Error::new(Class::RmaAttach, text)
}
