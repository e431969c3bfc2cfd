//! Which sources were heard of, and where their lists begin.
//!
//! ```text
//!   Table::First    what leads from a source to its record: the directory's own
//!   Table::Second   records: [source | next record in chain | posted head | unexpected head]
//! ```
//!
//! Records are added at the end and stay; `Control::records` counts them. Two tables instead of
//! open addressing, so that growing moves no record.

use std::fmt::Debug;

use crate::bins::hash;
use crate::storage::{Cells, NIL, Selector, Storage, Table, Word};

/// Leads from the number of a source to its record.
pub trait Directory: Debug {
    /// Makes way to a new record, behind those that `Control::records` counts; `None` when there is no room.
    fn enter<S: Storage<LINKS>>(&self, storage: &mut S, source: u32, record: u32) -> Option<()>;

    /// Returns the record of a source.
    fn find<S: Storage<LINKS>>(&self, storage: &S, source: u32) -> Option<u32>;

    /// Returns how many places a receive looks into that goes round all sources.
    fn places<S: Storage<LINKS>>(&self, storage: &S) -> u32 {
        storage.control().records.load()
    }

    /// Returns the record at a place.
    fn at<S: Storage<LINKS>>(&self, storage: &S, place: u32) -> Option<u32> {
        let _ = storage;
        Some(place)
    }
}

/// Buckets of records that are chained: as many as there are sources.
#[derive(Debug, Default, Clone, Copy)]
pub struct Hashed;

impl Directory for Hashed {
    fn enter<S: Storage<LINKS>>(&self, storage: &mut S, source: u32, record: u32) -> Option<()> {
        if storage.table(Table::First).len() <= record as usize {
            let wanted = (2 * record as usize).max(FIRST_RECORDS);
            if storage.grow_table(Table::First, wanted) {
                spread(storage);
            }
        }
        chain(storage, bucket(storage, source)?, record)
    }

    #[inline]
    fn find<S: Storage<LINKS>>(&self, storage: &S, source: u32) -> Option<u32> {
        find_in_chain(storage, bucket(storage, source)?.load(), source)
    }
}

/// Forgets every source.
pub(super) fn clear<S: Storage<LINKS>>(storage: &S) {
    storage.control().records.store(0);
    for word in storage.table(Table::First) {
        word.store(NIL);
    }
}

/// The record of a source, a new one if need be; `None` when there is no room for it.
#[inline]
pub(super) fn find_or_add<S: Storage<LINKS>>(
    directory: &impl Directory,
    storage: &mut S,
    source: u32,
) -> Option<u32> {
    if let Some(record) = directory.find(storage, source) {
        return Some(record);
    }
    add(directory, storage, source)
}

/// Where a source's posted receives begin.
#[inline]
pub(super) fn posted_head<S: Storage<LINKS>>(
    storage: &S,
    record: u32,
) -> Option<&<S::Cells as Cells>::Word> {
    word(storage, record, POSTED)
}

/// Where a source's unexpected messages begin.
#[inline]
pub(super) fn unexpected_head<S: Storage<LINKS>>(
    storage: &S,
    record: u32,
) -> Option<&<S::Cells as Cells>::Word> {
    word(storage, record, UNEXPECTED)
}

/// Follows a chain of records to that of a source.
#[inline]
pub(super) fn find_in_chain<S: Storage<LINKS>>(
    storage: &S,
    mut record: u32,
    source: u32,
) -> Option<u32> {
    // Bounded by the table, since the links of a corrupted arena may form a circle.
    for _ in 0..storage.table(Table::Second).len() / RECORD {
        if word(storage, record, SOURCE)?.load() == source {
            return Some(record);
        }
        record = word(storage, record, NEXT)?.load();
    }
    None
}

/// Puts a record at the front of a chain.
pub(super) fn chain<S: Storage<LINKS>>(
    storage: &S,
    first: &<S::Cells as Cells>::Word,
    record: u32,
) -> Option<()> {
    word(storage, record, NEXT)?.store(first.load());
    first.store(record);
    Some(())
}

#[cold]
fn add<S: Storage<LINKS>>(directory: &impl Directory, storage: &mut S, source: u32) -> Option<u32> {
    let record = storage.control().records.load();
    if storage.table(Table::Second).len() / RECORD <= record as usize {
        let wanted = (2 * record as usize).max(FIRST_RECORDS);
        if !storage.grow_table(Table::Second, wanted * RECORD) {
            return None;
        }
    }
    word(storage, record, SOURCE)?.store(source);
    word(storage, record, POSTED)?.store(NIL);
    word(storage, record, UNEXPECTED)?.store(NIL);
    directory.enter(storage, source, record)?;
    storage.control().records.store(record.checked_add(1)?);
    Some(record)
}

/// Puts every record into its bucket anew, after the number of buckets changed.
fn spread<S: Storage<LINKS>>(storage: &S) {
    for bucket in storage.table(Table::First) {
        bucket.store(NIL);
    }
    for record in 0..storage.control().records.load() {
        let Some(source) = word(storage, record, SOURCE) else {
            return;
        };
        if let Some(bucket) = bucket(storage, source.load()) {
            chain(storage, bucket, record);
        }
    }
}

#[inline]
fn bucket<S: Storage<LINKS>>(storage: &S, source: u32) -> Option<&<S::Cells as Cells>::Word> {
    let buckets = storage.table(Table::First);
    let mixed = hash(Selector {
        key: u64::from(source),
        kind: 0,
    });
    // A multiplication in place of a remainder: any number of buckets will do.
    buckets.get(((mixed as u32 as u64 * buckets.len() as u64) >> 32) as usize)
}

#[inline]
fn word<S: Storage<LINKS>>(
    storage: &S,
    record: u32,
    field: usize,
) -> Option<&<S::Cells as Cells>::Word> {
    storage
        .table(Table::Second)
        .get(record as usize * RECORD + field)
}

/// How many lists an unexpected message is on.
pub const LINKS: usize = 2;
/// Words of a record.
const RECORD: usize = 4;
const SOURCE: usize = 0;
const NEXT: usize = 1;
const POSTED: usize = 2;
const UNEXPECTED: usize = 3;
/// Room for this many sources at first.
const FIRST_RECORDS: usize = 16;
