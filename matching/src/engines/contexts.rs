//! A list for each context: `list:per=context`.
//!
//! As Open MPI keeps the receives and messages of a communicator apart, so that no entry of another one is ever looked at.
//! The lists of a context are found by its number, in a table that is as long as the highest number that was used.
//!
//! ```text
//!   Table::First    [posted head | unexpected head] for each context
//! ```

use super::{Arranged, Arrangement, Found};
use crate::engine::Engine;
use crate::queue;
use crate::storage::{Cells, Node, Private, Selector, Storage, Table, WILD, Word};

/// Opens the engine over a storage without tables.
pub(crate) fn open<C: Cells>(storage: Private<LINKS, C>) -> Box<dyn Engine + Send> {
    Box::new(Arranged::new(PerContext, storage))
}

#[derive(Debug)]
struct PerContext;

impl PerContext {
    /// The head of a context's list in one of the queues.
    fn head<S: Storage<LINKS>>(
        storage: &S,
        entry: Selector,
        queue: usize,
    ) -> Option<&<S::Cells as Cells>::Word> {
        storage.table(Table::First).get(place(entry) + queue)
    }

    fn reserve<S: Storage<LINKS>>(storage: &mut S, entry: Selector) -> bool {
        let wanted = place(entry) + HEADS;
        storage.table(Table::First).len() >= wanted || storage.grow_table(Table::First, wanted)
    }
}

impl<S: Storage<LINKS>> Arrangement<S, LINKS> for PerContext {
    fn reserve_posted(&mut self, storage: &mut S, receive: Selector) -> bool {
        Self::reserve(storage, receive)
    }

    fn reserve_unexpected(&mut self, storage: &mut S, message: Selector, _: usize) -> bool {
        Self::reserve(storage, message)
    }

    fn place_posted(&mut self, storage: &S, slot: u32, node: &Node<S::Cells, 1>) {
        if let Some(head) = Self::head(storage, node.selector(), POSTED) {
            queue::posted(storage).push(CHAIN, head, slot, node);
        }
    }

    fn place_unexpected(&mut self, storage: &S, slot: u32, node: &Node<S::Cells, LINKS>) {
        if let Some(head) = Self::head(storage, node.selector(), UNEXPECTED) {
            queue::unexpected(storage).push(CHAIN, head, slot, node);
        }
    }

    fn remove_posted(&mut self, storage: &S, slot: u32, node: &Node<S::Cells, 1>) {
        if let Some(head) = Self::head(storage, node.selector(), POSTED) {
            queue::posted(storage).unlink(CHAIN, head, slot, node);
        }
    }

    fn remove_unexpected(&mut self, storage: &S, slot: u32, node: &Node<S::Cells, LINKS>) {
        if let Some(head) = Self::head(storage, node.selector(), UNEXPECTED) {
            queue::unexpected(storage).unlink(CHAIN, head, slot, node);
        }
    }

    fn find_posted(&mut self, storage: &S, message: Selector) -> Found {
        let Some(head) = Self::head(storage, message, POSTED) else {
            return Found::default();
        };
        let accepts = |entry: Selector, _: &_| entry.accepts(message);
        Found::of(queue::posted(storage).find(CHAIN, head.load(), accepts))
    }

    fn find_unexpected(&mut self, storage: &S, receive: Selector) -> Found {
        let Some(head) = Self::head(storage, receive, UNEXPECTED) else {
            return Found::default();
        };
        let accepts = |entry: Selector, _: &_| receive.accepts(entry);
        Found::of(queue::unexpected(storage).find(CHAIN, head.load(), accepts))
    }
}

/// Where the heads of an entry's context begin.
const fn place(entry: Selector) -> usize {
    (entry.kind & !WILD) as usize * HEADS
}

const LINKS: usize = 1;
/// The list of a context.
const CHAIN: usize = 0;
/// Words of a context in the table.
const HEADS: usize = 2;
const POSTED: usize = 0;
const UNEXPECTED: usize = 1;
