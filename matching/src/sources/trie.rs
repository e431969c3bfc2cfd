//! A directory of four levels, as Zounmevo and Afsahi index the ranks of large jobs (Future Generation Computer Systems 30,
//! 2014).
//!
//! ```text
//!   source = digits d0 d1 d2 d3 of base B, B = the fourth root of the number of ranks, rounded up
//!
//!   root           level 1        level 2        level 3
//!   [B words] d0-> [B words] d1-> [B words] d2-> [B words] d3-> record
//! ```
//!
//! Tables are made when the first source of theirs is heard of. They lie in `Table::First`, the root first;
//! `Control::by_kind[0]` counts them. Sources beyond B^4 share the way of one below it, in a chain.

use super::directory::{Directory, LINKS, chain, find_in_chain};
use crate::storage::{Cells, NIL, Storage, Table, Word};

/// Four levels of tables of the same size.
#[derive(Debug, Clone, Copy)]
pub struct Trie {
    base: u32,
}

impl Trie {
    /// Returns the directory for a job of about `ranks`.
    pub fn for_ranks(ranks: u32) -> Self {
        let mut base = 2;
        while u64::from(base).pow(LEVELS) < u64::from(ranks) {
            base += 1;
        }
        Self { base }
    }

    /// The digit of a source that a level goes by.
    const fn digit(self, source: u32, level: u32) -> u32 {
        source / self.base.pow(LEVELS - 1 - level) % self.base
    }

    /// The word of a table.
    fn word<S: Storage<LINKS>>(
        self,
        storage: &S,
        table: u32,
        digit: u32,
    ) -> Option<&<S::Cells as Cells>::Word> {
        let place = table as usize * self.base as usize + digit as usize;
        storage.table(Table::First).get(place)
    }

    /// Returns the number of a new table, which is empty.
    fn add_table<S: Storage<LINKS>>(self, storage: &mut S) -> Option<u32> {
        let table = storage.control().by_kind[0].load();
        let next = table.checked_add(1)?;
        let wanted = next as usize * self.base as usize;
        let have = storage.table(Table::First).len();
        if have < wanted && !storage.grow_table(Table::First, wanted.max(2 * have)) {
            return None;
        }
        storage.control().by_kind[0].store(next);
        Some(table)
    }
}

impl Directory for Trie {
    fn enter<S: Storage<LINKS>>(&self, storage: &mut S, source: u32, record: u32) -> Option<()> {
        if storage.control().by_kind[0].load() == 0 {
            self.add_table(storage)?;
        }
        let mut table = 0;
        for level in 0..LEVELS - 1 {
            let digit = self.digit(source, level);
            let mut below = self.word(storage, table, digit)?.load();
            if below == NIL {
                below = self.add_table(storage)?;
                self.word(storage, table, digit)?.store(below);
            }
            table = below;
        }
        let leaf = self.word(storage, table, self.digit(source, LEVELS - 1))?;
        chain(storage, leaf, record)
    }

    fn find<S: Storage<LINKS>>(&self, storage: &S, source: u32) -> Option<u32> {
        if storage.control().by_kind[0].load() == 0 {
            return None;
        }
        let mut next = 0;
        for level in 0..LEVELS {
            next = self.word(storage, next, self.digit(source, level))?.load();
        }
        find_in_chain(storage, next, source)
    }
}

const LEVELS: u32 = 4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::directory::find_or_add;
    use crate::storage::{Capacity, Private};

    #[test]
    fn tables_follow_the_sources_and_not_the_job() {
        let trie = Trie::for_ranks(1_000_000);
        assert_eq!(trie.base, 32);
        let mut storage = Private::<LINKS>::new(Capacity::default());
        for source in 0..8 {
            assert_eq!(find_or_add(&trie, &mut storage, source), Some(source));
        }
        assert_eq!(storage.control().by_kind[0].load(), LEVELS, "one way");
        find_or_add(&trie, &mut storage, 999_999).unwrap();
        assert_eq!(storage.control().by_kind[0].load(), 2 * LEVELS - 1);
    }

    #[test]
    fn sources_beyond_the_job_are_found_beside_their_likes() {
        let trie = Trie::for_ranks(16);
        let mut storage = Private::<LINKS>::new(Capacity::default());
        for (record, source) in [3, 19, 35, u32::MAX / 2].into_iter().enumerate() {
            assert_eq!(trie.find(&storage, source), None);
            assert_eq!(
                find_or_add(&trie, &mut storage, source),
                Some(record as u32)
            );
            assert_eq!(trie.find(&storage, source), Some(record as u32));
        }
    }
}
