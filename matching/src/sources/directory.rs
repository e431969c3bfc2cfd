//! Which sources were heard of, and where their lists begin.
//!
//! ```text
//!   Table::First    buckets: index of the first record of each
//!   Table::Second   records: [source | next record in bucket | posted head | unexpected head]
//! ```
//!
//! Records are added at the end and stay; `Control::records` counts them. Two tables instead of
//! open addressing, so that growing moves no record.

use super::LINKS;
use crate::bins::hash;
use crate::storage::{Cells, NIL, Selector, Storage, Table, Word};

/// Forgets every source.
pub(super) fn clear<S: Storage<LINKS>>(storage: &S) {
    storage.control().records.store(0);
    for bucket in storage.table(Table::First) {
        bucket.store(NIL);
    }
}

/// The record of a source.
#[inline]
pub(super) fn find<S: Storage<LINKS>>(storage: &S, source: u32) -> Option<u32> {
    let mut record = bucket(storage, source)?.load();
    // Bounded by the table, since the links of a corrupted arena may form a circle.
    for _ in 0..storage.table(Table::Second).len() / RECORD {
        if word(storage, record, SOURCE)?.load() == source {
            return Some(record);
        }
        record = word(storage, record, NEXT)?.load();
    }
    None
}

/// The record of a source, a new one if need be; `None` when there is no room for it.
#[inline]
pub(super) fn find_or_add<S: Storage<LINKS>>(storage: &mut S, source: u32) -> Option<u32> {
    if let Some(record) = find(storage, source) {
        return Some(record);
    }
    add(storage, source)
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

#[cold]
fn add<S: Storage<LINKS>>(storage: &mut S, source: u32) -> Option<u32> {
    let record = storage.control().records.load();
    if storage.table(Table::Second).len() / RECORD <= record as usize {
        let wanted = (2 * record as usize).max(FIRST_RECORDS);
        if !storage.grow_table(Table::Second, wanted * RECORD) {
            return None;
        }
    }
    if storage.table(Table::First).len() <= record as usize {
        let wanted = (2 * record as usize).max(FIRST_RECORDS);
        if storage.grow_table(Table::First, wanted) {
            spread(storage);
        }
    }
    word(storage, record, SOURCE)?.store(source);
    word(storage, record, POSTED)?.store(NIL);
    word(storage, record, UNEXPECTED)?.store(NIL);
    storage.control().records.store(record.checked_add(1)?);
    link(storage, record, source)?;
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
        link(storage, record, source.load());
    }
}

/// Puts a record at the front of its source's bucket.
fn link<S: Storage<LINKS>>(storage: &S, record: u32, source: u32) -> Option<()> {
    let bucket = bucket(storage, source)?;
    word(storage, record, NEXT)?.store(bucket.load());
    bucket.store(record);
    Some(())
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

/// Words of a record.
const RECORD: usize = 4;
const SOURCE: usize = 0;
const NEXT: usize = 1;
const POSTED: usize = 2;
const UNEXPECTED: usize = 3;
/// Room for this many sources at first.
const FIRST_RECORDS: usize = 16;
