//! Storage in memory that one process has to itself; it grows by doubling.

use super::{Cells, Control, Local, NIL, Node, Storage, Table, Word};

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
///
/// Its words are plain ones; others, such as words that count who reads them, are a parameter.
#[derive(Debug)]
pub struct Private<const LINKS: usize, C: Cells = Local> {
    control: Control<C>,
    posted: Vec<Node<C, 1>>,
    unexpected: Vec<Node<C, LINKS>>,
    first: Vec<C::Word>,
    second: Vec<C::Word>,
    capacity: Capacity,
    step: u32,
}

impl<const LINKS: usize, C: Cells> Private<LINKS, C> {
    /// Empty storage that grows up to `capacity`.
    #[must_use]
    pub fn new(capacity: Capacity) -> Self {
        Self::apart(capacity, 1)
    }

    /// The same with `step` slots from one entry to the next, of which the others stay empty. Entries then lie as far from
    /// each other as parts of larger objects do.
    #[must_use]
    pub fn apart(capacity: Capacity, step: u32) -> Self {
        Self {
            control: Control::default(),
            posted: Vec::new(),
            unexpected: Vec::new(),
            first: Vec::new(),
            second: Vec::new(),
            capacity,
            step: step.max(1),
        }
    }
}

impl<const LINKS: usize, C: Cells> Storage<LINKS> for Private<LINKS, C> {
    type Cells = C;

    #[inline]
    fn control(&self) -> &Control<C> {
        &self.control
    }

    #[inline]
    fn posted(&self) -> &[Node<C, 1>] {
        &self.posted
    }

    #[inline]
    fn unexpected(&self) -> &[Node<C, LINKS>] {
        &self.unexpected
    }

    #[inline]
    fn table(&self, which: Table) -> &[C::Word] {
        match which {
            Table::First => &self.first,
            Table::Second => &self.second,
        }
    }

    fn grow_posted(&mut self) -> bool {
        grow(&mut self.posted, self.capacity.posted, self.step)
    }

    fn grow_unexpected(&mut self) -> bool {
        grow(&mut self.unexpected, self.capacity.unexpected, self.step)
    }

    fn grow_table(&mut self, which: Table, words: usize) -> bool {
        let table = match which {
            Table::First => &mut self.first,
            Table::Second => &mut self.second,
        };
        if words > table.len() {
            table.resize_with(words, || C::Word::with(NIL));
        }
        true
    }

    fn step(&self) -> u32 {
        self.step
    }
}

#[cold]
fn grow<C: Cells, const LINKS: usize>(
    nodes: &mut Vec<Node<C, LINKS>>,
    capacity: u32,
    step: u32,
) -> bool {
    let step = step as usize;
    let capacity = (capacity as usize).min(Capacity::MAX as usize / step);
    let entries = nodes.len() / step;
    if entries >= capacity {
        return false;
    }
    let wanted = (entries * 2).max(FIRST_SLOTS).min(capacity);
    nodes.resize_with(wanted * step, Node::default);
    true
}

/// Slots of a queue when it gets its first entry.
const FIRST_SLOTS: usize = 16;
