//! A directory with a word for each rank, as Open MPI's ob1 keeps its peers of a communicator (`proc_array`).

use super::directory::{Directory, LINKS};
use crate::storage::{Cells, NIL, Storage, Table, Word};

/// One word for each rank up to the highest that was heard of: found at once, and as long as the job is large.
#[derive(Debug, Clone, Copy)]
pub struct Array;

impl Directory for Array {
    fn enter<S: Storage<LINKS>>(&self, storage: &mut S, source: u32, record: u32) -> Option<()> {
        let wanted = source as usize + 1;
        if storage.table(Table::First).len() < wanted
            && !storage.grow_table(Table::First, wanted.max(FIRST_RANKS))
        {
            return None;
        }
        storage
            .table(Table::First)
            .get(source as usize)?
            .store(record);
        Some(())
    }

    #[inline]
    fn find<S: Storage<LINKS>>(&self, storage: &S, source: u32) -> Option<u32> {
        entry(storage, source)
    }

    /// Every rank is one, also those that sent nothing.
    fn places<S: Storage<LINKS>>(&self, storage: &S) -> u32 {
        storage.table(Table::First).len() as u32
    }

    fn at<S: Storage<LINKS>>(&self, storage: &S, place: u32) -> Option<u32> {
        entry(storage, place)
    }
}

fn entry<S: Storage<LINKS>>(storage: &S, rank: u32) -> Option<u32> {
    let word: &<S::Cells as Cells>::Word = storage.table(Table::First).get(rank as usize)?;
    Some(word.load()).filter(|record| *record != NIL)
}

/// Room for this many ranks at first.
const FIRST_RANKS: usize = 16;
