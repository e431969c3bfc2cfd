//! Storage in memory that one process has to itself; it grows by doubling.

use super::{Control, Local, NIL, Node, Storage, Table};
use std::cell::Cell;

/// How many entries each queue may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capacity {
    /// Posted receives.
    pub posted: u32,
    /// Unexpected messages.
    pub unexpected: u32,
}

impl Capacity {
    /// The largest number of entries in a queue: what 32-bit indices can name.
    pub const MAX: u32 = NIL - 1;

    /// Bounds for the two queues, in entries.
    #[must_use]
    pub const fn new(posted: u32, unexpected: u32) -> Self {
        Self { posted, unexpected }
    }
}

impl Default for Capacity {
    /// No bound but [`Capacity::MAX`].
    fn default() -> Self {
        Self::new(Self::MAX, Self::MAX)
    }
}

/// Storage in private memory: nothing at first, doubled when spent, up to a capacity.
#[derive(Debug)]
pub struct Private<const LINKS: usize> {
    control: Control<Local>,
    posted: Vec<Node<Local, 1>>,
    unexpected: Vec<Node<Local, LINKS>>,
    first: Vec<Cell<u32>>,
    second: Vec<Cell<u32>>,
    capacity: Capacity,
}

impl<const LINKS: usize> Private<LINKS> {
    /// Empty storage that grows up to `capacity`.
    #[must_use]
    pub fn new(capacity: Capacity) -> Self {
        Self {
            control: Control::default(),
            posted: Vec::new(),
            unexpected: Vec::new(),
            first: Vec::new(),
            second: Vec::new(),
            capacity,
        }
    }
}

impl<const LINKS: usize> Storage<LINKS> for Private<LINKS> {
    type Cells = Local;

    #[inline]
    fn control(&self) -> &Control<Local> {
        &self.control
    }

    #[inline]
    fn posted(&self) -> &[Node<Local, 1>] {
        &self.posted
    }

    #[inline]
    fn unexpected(&self) -> &[Node<Local, LINKS>] {
        &self.unexpected
    }

    #[inline]
    fn table(&self, which: Table) -> &[Cell<u32>] {
        match which {
            Table::First => &self.first,
            Table::Second => &self.second,
        }
    }

    fn grow_posted(&mut self) -> bool {
        grow(&mut self.posted, self.capacity.posted)
    }

    fn grow_unexpected(&mut self) -> bool {
        grow(&mut self.unexpected, self.capacity.unexpected)
    }

    fn grow_table(&mut self, which: Table, words: usize) -> bool {
        let table = match which {
            Table::First => &mut self.first,
            Table::Second => &mut self.second,
        };
        if words > table.len() {
            table.resize_with(words, || Cell::new(NIL));
        }
        true
    }
}

#[cold]
fn grow<const LINKS: usize>(nodes: &mut Vec<Node<Local, LINKS>>, capacity: u32) -> bool {
    let capacity = capacity.min(Capacity::MAX) as usize;
    if nodes.len() >= capacity {
        return false;
    }
    let wanted = (nodes.len() * 2).max(FIRST_SLOTS).min(capacity);
    nodes.resize_with(wanted, Node::default);
    true
}

/// Slots of a queue when it gets its first entry.
const FIRST_SLOTS: usize = 16;
