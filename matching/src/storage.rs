//! Where an engine keeps its state: arrays of plain words, reached by index.
//!
//! An engine owns nothing but its storage. Everything that it must remember (heads, links, free
//! lists, counts, sequence numbers, directories) lies in four arrays and one control block, and
//! all links are 32-bit indices. So the same engine runs over [`Private`] memory, which grows, and
//! over an arena of fixed size that several processes map.
//!
//! ```text
//!   control   one Control block: heads, free lists, counts, sequences, statistics
//!   posted    Node[..]   one per posted receive
//!   unexpected Node[..]  one per unexpected message
//!   table(First), table(Second)   words, for the heads of bins or a directory of sources
//! ```
//!
//! In an arena other processes may write at any time, also nonsense. Hence two rules. Fields are
//! *cells* that are read and written whole through a shared reference ([`Cells`]): plain cells in
//! private memory, relaxed atomics in shared memory, the same machine code in both. And no index
//! read from storage is trusted: an index out of range counts as the end of a list, every walk is
//! bounded by the number of nodes, and the lengths of the arrays come from the storage object,
//! never from the arena. A corrupted arena may give wrong matches, never a panic or an endless
//! loop.

#[cfg(feature = "engines")]
pub mod counting;
mod private;

use std::cell::Cell;
use std::fmt::Debug;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};

pub use private::{Capacity, Private};

use crate::engine::QueueStats;
use crate::envelope::{Cookie, Envelope, Pattern};
use crate::promises::Promises;

/// "No entry": the end of a list.
pub const NIL: u32 = u32::MAX;

/// The arrays of one engine. `LINKS` is how many lists an unexpected message is on.
pub trait Storage<const LINKS: usize> {
    /// The kind of words that the arrays are made of.
    type Cells: Cells;

    /// The control block.
    fn control(&self) -> &Control<Self::Cells>;

    /// The slots for posted receives.
    fn posted(&self) -> &[Node<Self::Cells, 1>];

    /// The slots for unexpected messages.
    fn unexpected(&self) -> &[Node<Self::Cells, LINKS>];

    /// The words of a table.
    fn table(&self, which: Table) -> &[<Self::Cells as Cells>::Word];

    /// Adds slots for posted receives behind those that are there; `false` at the capacity.
    fn grow_posted(&mut self) -> bool;

    /// Adds slots for unexpected messages behind those that are there; `false` at the capacity.
    fn grow_unexpected(&mut self) -> bool;

    /// Makes a table `words` long or longer, keeping the words that are there and setting new ones
    /// to [`NIL`]; `false`, with nothing changed, where it cannot grow.
    fn grow_table(&mut self, which: Table, words: usize) -> bool;

    /// How many slots lie from one entry to the next: 1, unless entries are to lie apart. It stays the same.
    #[inline]
    fn step(&self) -> u32 {
        1
    }
}

/// Names one of the two tables; each engine says what it keeps in which.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Table {
    /// The first table.
    First,
    /// The second table.
    Second,
}

/// The words of one kind of memory.
pub trait Cells: Debug + 'static {
    /// 32 bits.
    type Word: Word<u32>;
    /// 64 bits.
    type Wide: Word<u64>;

    /// Says that an engine reads or writes memory of its own beside these words, such as a vector of keys. What counts
    /// accesses notes it; nothing else does.
    #[inline(always)]
    fn touch<T: ?Sized>(memory: &T) {
        let _ = memory;
    }
}

/// A word that is read and written whole, through a shared reference.
pub trait Word<T>: Debug + Send {
    /// A word with this value.
    fn with(value: T) -> Self;
    /// Reads it.
    fn load(&self) -> T;
    /// Writes it.
    fn store(&self, value: T);
}

/// Memory that one process has to itself.
#[derive(Debug)]
pub enum Local {}

impl Cells for Local {
    type Word = Cell<u32>;
    type Wide = Cell<u64>;
}

/// The same, as a type of its own: engines over it have code of their own. An engine that is called from two places is
/// inlined into neither.
#[derive(Debug)]
pub enum Apart {}

impl Cells for Apart {
    type Word = Cell<u32>;
    type Wide = Cell<u64>;
}

/// Memory that other processes write too. Who holds the matching lock sees what the holder before
/// it wrote; against writers without the lock, words at least do not tear.
#[derive(Debug)]
pub enum Shared {}

impl Cells for Shared {
    type Word = AtomicU32;
    type Wide = AtomicU64;
}

impl<T: Copy + Debug + Send> Word<T> for Cell<T> {
    #[inline]
    fn with(value: T) -> Self {
        Self::new(value)
    }

    #[inline]
    fn load(&self) -> T {
        self.get()
    }

    #[inline]
    fn store(&self, value: T) {
        self.set(value);
    }
}

impl Word<u32> for AtomicU32 {
    #[inline]
    fn with(value: u32) -> Self {
        Self::new(value)
    }

    #[inline]
    fn load(&self) -> u32 {
        Self::load(self, Ordering::Relaxed)
    }

    #[inline]
    fn store(&self, value: u32) {
        Self::store(self, value, Ordering::Relaxed);
    }
}

impl Word<u64> for AtomicU64 {
    #[inline]
    fn with(value: u64) -> Self {
        Self::new(value)
    }

    #[inline]
    fn load(&self) -> u64 {
        Self::load(self, Ordering::Relaxed)
    }

    #[inline]
    fn store(&self, value: u64) {
        Self::store(self, value, Ordering::Relaxed);
    }
}

/// One queued entry: 24 bytes and 8 for each list that it is on.
///
/// ```text
///    0        8          16        20       24
///   +--------+----------+---------+--------+------+------+--
///   | key    | sequence | kind    | cookie | next | prev | ...
///   +--------+----------+---------+--------+------+------+--
///   key  = source << 32 | tag, wildcards as their selectors' values
///   kind = context | any-source << 16 | any-tag << 17; all ones in a free slot
/// ```
///
/// Key and kind are laid out so that an exact receive is recognised by two compares.
#[derive(Debug)]
#[repr(C)]
pub struct Node<C: Cells, const LINKS: usize> {
    pub(crate) key: C::Wide,
    pub(crate) sequence: C::Wide,
    pub(crate) kind: C::Word,
    pub(crate) cookie: C::Word,
    pub(crate) links: [Link<C>; LINKS],
}

impl<C: Cells, const LINKS: usize> Default for Node<C, LINKS> {
    fn default() -> Self {
        Self {
            key: C::Wide::with(0),
            sequence: C::Wide::with(0),
            kind: C::Word::with(FREE),
            cookie: C::Word::with(0),
            links: std::array::from_fn(|_| Link::default()),
        }
    }
}

impl<C: Cells, const LINKS: usize> Node<C, LINKS> {
    /// What the node holds, as words.
    #[inline]
    pub fn selector(&self) -> Selector {
        Selector {
            key: self.key.load(),
            kind: self.kind.load(),
        }
    }

    /// The caller's word.
    #[inline]
    pub fn cookie(&self) -> Cookie {
        Cookie(self.cookie.load())
    }
}

/// A node's place in one list. The first node's `prev` is the last node.
#[derive(Debug)]
#[repr(C)]
pub struct Link<C: Cells> {
    pub(crate) next: C::Word,
    pub(crate) prev: C::Word,
}

impl<C: Cells> Default for Link<C> {
    fn default() -> Self {
        Self {
            next: C::Word::with(NIL),
            prev: C::Word::with(NIL),
        }
    }
}

/// The state of an engine that is not in a node or table.
#[derive(Debug)]
#[repr(C)]
pub struct Control<C: Cells> {
    pub(crate) posted: Queue<C>,
    pub(crate) unexpected: Queue<C>,
    /// How many of the engine's directory records are in use.
    pub(crate) records: C::Word,
    /// Posted wildcards, together and by kind (any-source, any-tag, both).
    pub(crate) wildcards: C::Word,
    pub(crate) by_kind: [C::Word; 3],
    pub(crate) promises: Promises<C>,
}

impl<C: Cells> Default for Control<C> {
    fn default() -> Self {
        let control = Self {
            posted: Queue::default(),
            unexpected: Queue::default(),
            records: C::Word::with(0),
            wildcards: C::Word::with(0),
            by_kind: std::array::from_fn(|_| C::Word::with(0)),
            promises: Promises::none(),
        };
        control.reset();
        control
    }
}

impl<C: Cells> Control<C> {
    /// Sets every word to that of an engine with nothing queued.
    pub fn reset(&self) {
        self.posted.reset();
        self.unexpected.reset();
        self.records.store(0);
        self.wildcards.store(0);
        self.by_kind.iter().for_each(|word| word.store(0));
        self.promises.clear();
    }
}

/// The state of one queue: its list, its slots and its statistics.
///
/// What matters on the hot path is not counted there but derived: an entry that left without being
/// withdrawn was matched, and the slots that were ever used are the most that were in use at once.
#[derive(Debug)]
#[repr(C)]
pub struct Queue<C: Cells> {
    /// First node of the queue's list in order.
    pub(crate) head: C::Word,
    /// First free slot.
    pub(crate) free: C::Word,
    /// Entries in the queue.
    pub(crate) len: C::Word,
    /// What the engine keeps up beyond the list; 0 for nothing.
    pub(crate) mode: C::Word,
    /// Slots from here on were never used.
    pub(crate) fresh: C::Word,
    /// What the engine makes of it.
    pub(crate) reserved: C::Word,
    /// The sequence number of the next entry.
    pub(crate) sequence: C::Wide,
    /// Entries that were cancelled or discarded.
    pub(crate) withdrawn: C::Wide,
    /// Entries that searches looked at and did not take.
    pub(crate) passed: C::Wide,
    /// Searches that took none.
    pub(crate) misses: C::Wide,
    pub(crate) probes: C::Wide,
    /// The most entries that one search or probe looked at, where it was not the first alone.
    pub(crate) deepest: C::Wide,
}

impl<C: Cells> Default for Queue<C> {
    fn default() -> Self {
        Self {
            head: C::Word::with(NIL),
            free: C::Word::with(NIL),
            len: C::Word::with(0),
            mode: C::Word::with(0),
            fresh: C::Word::with(0),
            reserved: C::Word::with(0),
            sequence: C::Wide::with(0),
            withdrawn: C::Wide::with(0),
            passed: C::Wide::with(0),
            misses: C::Wide::with(0),
            probes: C::Wide::with(0),
            deepest: C::Wide::with(0),
        }
    }
}

impl<C: Cells> Queue<C> {
    fn reset(&self) {
        self.head.store(NIL);
        self.free.store(NIL);
        for word in [&self.len, &self.mode, &self.fresh, &self.reserved] {
            word.store(0);
        }
        for wide in [
            &self.sequence,
            &self.withdrawn,
            &self.passed,
            &self.misses,
            &self.probes,
            &self.deepest,
        ] {
            wide.store(0);
        }
    }

    pub(crate) fn stats(&self) -> QueueStats {
        let queued = self.sequence.load();
        let left = queued.wrapping_sub(u64::from(self.len.load()));
        let hits = left.wrapping_sub(self.withdrawn.load());
        QueueStats {
            queued,
            high_water: self.fresh.load(),
            hits,
            misses: self.misses.load(),
            probes: self.probes.load(),
            attempts: hits.wrapping_add(self.passed.load()),
            false_hits: 0,
            // A search that ends with the first entry is not noted.
            deepest: Some(self.deepest.load().max(u64::from(hits != 0))),
        }
    }

    /// Counts entries that a search looked at and did not take, of all that it looked at.
    #[inline]
    pub(crate) fn count_looked(&self, passed: u64, looked: u64) {
        count(&self.passed, passed);
        if looked > self.deepest.load() {
            self.deepest.store(looked);
        }
    }
}

/// Adds to a counter; wraps, since a counter in an arena may hold anything.
#[inline]
pub(crate) fn count<W: Word<u64>>(counter: &W, by: u64) {
    counter.store(counter.load().wrapping_add(by));
}

/// An envelope or a pattern in the form in which nodes hold it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Selector {
    pub(crate) key: u64,
    pub(crate) kind: u32,
}

/// Bits of `Node::kind`.
pub(crate) const ANY_SOURCE: u32 = 1 << 16;
pub(crate) const ANY_TAG: u32 = 1 << 17;
pub(crate) const WILD: u32 = ANY_SOURCE | ANY_TAG;
pub(crate) const FREE: u32 = u32::MAX;

impl Selector {
    /// Returns the selector of a message.
    #[inline]
    pub fn of_message(envelope: Envelope) -> Self {
        Self {
            key: key(envelope.source.as_u32(), envelope.tag.as_i32()),
            kind: u32::from(envelope.context.as_u16()),
        }
    }

    /// Returns the selector of a receive.
    #[inline]
    pub fn of_receive(pattern: Pattern) -> Self {
        let mut kind = u32::from(pattern.context.as_u16());
        // Most receives are exact.
        if pattern.source.is_any() {
            cold();
            kind |= ANY_SOURCE;
        }
        if pattern.tag.is_any() {
            cold();
            kind |= ANY_TAG;
        }
        Self {
            key: key(pattern.source.as_u32(), pattern.tag.as_i32()),
            kind,
        }
    }

    /// The selector of the receives of one kind of wildcard that would take this message.
    #[inline]
    pub(crate) const fn widened(self, wild: u32) -> Self {
        let mut key = self.key;
        if wild & ANY_SOURCE != 0 {
            key |= SOURCE_BITS;
        }
        if wild & ANY_TAG != 0 {
            key = (key & SOURCE_BITS) | ANY_TAG_KEY;
        }
        Self {
            key,
            kind: self.kind | wild,
        }
    }

    /// Whether a receive with this selector takes the message.
    #[inline]
    pub const fn accepts(self, message: Self) -> bool {
        if self.kind == message.kind {
            return self.key == message.key;
        }
        self.kind & WILD != 0 && self.accepts_wild(message)
    }

    pub(crate) const fn accepts_wild(self, message: Self) -> bool {
        if self.kind & !WILD != message.kind {
            return false;
        }
        let source = self.kind & ANY_SOURCE != 0 || self.source() == message.source();
        let tag = if self.kind & ANY_TAG != 0 {
            !message.is_internal()
        } else {
            self.tag() == message.tag()
        };
        source && tag
    }

    /// Whether the tag is outside the users' space.
    #[inline]
    pub const fn is_internal(self) -> bool {
        self.tag() < 0
    }

    /// Returns the source's number, that of any for any.
    #[inline]
    pub const fn source(self) -> u32 {
        (self.key >> 32) as u32
    }

    /// Returns the tag's number, that of any for any.
    #[inline]
    pub const fn tag(self) -> i32 {
        self.key as u32 as i32
    }

    /// The message's envelope, or `None` when the words are no message (a corrupted arena).
    #[inline]
    pub fn envelope(self) -> Option<Envelope> {
        Some(Envelope {
            source: rank(self.source())?,
            tag: Tag::from_wire(self.tag())?,
            context: self.context()?,
        })
    }

    /// The receive's pattern, or `None` when the slot is free.
    #[inline]
    pub fn pattern(self) -> Option<Pattern> {
        Some(Pattern {
            source: SourceSelector::from_u32(self.source()),
            tag: TagSelector::from_i32(self.tag()),
            context: self.context()?,
        })
    }

    #[inline]
    fn context(self) -> Option<ContextId> {
        u16::try_from(self.kind & !WILD).ok().map(ContextId::new)
    }
}

/// Says that what leads here is seldom.
#[cold]
#[inline(always)]
const fn cold() {}

#[inline]
fn rank(number: u32) -> Option<Rank> {
    SourceSelector::from_u32(number).rank()
}

#[inline]
const fn key(source: u32, tag: i32) -> u64 {
    (source as u64) << 32 | tag as u32 as u64
}

const SOURCE_BITS: u64 = (u32::MAX as u64) << 32;
const ANY_TAG_KEY: u64 = TagSelector::ANY.as_i32() as u32 as u64;
