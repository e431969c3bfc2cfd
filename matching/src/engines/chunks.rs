//! Lists of chunks that hold several entries each, as Open MPI's custom matching has them (`pml/ob1/custommatch`, arrays
//! and vectors; Dosanjh and others, The case for semi-permanent cache occupancy, ICPP 2018).
//!
//! An entry lies in its chunk as what is compared, beside the slot of its node, so that a search reads chunks and touches
//! one node, that which it finds. There is one chain of chunks for each context. Entries are added behind the last one;
//! one that leaves makes a hole, which is filled again at the end of the last chunk only. `start` and `end` keep to the
//! entries that are there, and a chunk without any leaves its chain.
//!
//! ```text
//!   Table::First    for each context: first and last chunk of receives, first and last chunk of messages
//!   Table::Second   word 0: first free chunk; chunks from word 16 on, a multiple of 64 bytes each
//!
//!   chunk   [next | previous | start | end] [tag | tag mask | source | source mask] x k  [slot] x k
//!   node    the words of its link name its chunk and its place there
//! ```

use tagwire_base::named::{Named, Parameter, Spec};

use super::{Arranged, Arrangement, Found};
use crate::description::{Description, Grade};
use crate::engine::Engine;
use crate::storage::{
    ANY_SOURCE, ANY_TAG, Capacity, Cells, NIL, Node, Private, Selector, Storage, Table, WILD, Word,
};

pub(crate) static DESCRIPTION: Description = Description {
    named: Named {
        name: "chunks",
        parameters: &[Parameter::number("k", 2, 1..=64, "entries of a chunk")],
    },
    about: "for each context a list of chunks of k entries, compared by masks",
    source: "Open MPI ob1 custommatch (arrays); Dosanjh and others, ICPP 2018",
    limits: "linear in the entries ahead; a chunk stays as long as one of its entries does",
    grade: |_| Grade::Exact,
};

/// Opens the engine with its parameters.
pub(crate) fn open<C: Cells>(spec: &Spec, capacity: Capacity) -> Box<dyn Engine + Send> {
    let entries = spec.number("k");
    let words = HEADER + entries * (FIELDS + 1);
    let arrangement = Chunks {
        entries,
        words: words.next_multiple_of(LINE),
    };
    Box::new(Arranged::new(
        arrangement,
        Private::<LINKS, C>::new(capacity),
    ))
}

#[derive(Debug)]
struct Chunks {
    /// Entries of a chunk.
    entries: u32,
    /// Words of a chunk.
    words: u32,
}

/// The chain of one context in one queue.
struct Chain<'a, C: Cells> {
    heads: &'a [C::Word],
    words: &'a [C::Word],
    /// Where its first and last chunk are named.
    place: usize,
}

impl<C: Cells> Chain<'_, C> {
    fn of<S: Storage<LINKS, Cells = C>>(
        storage: &S,
        entry: Selector,
        queue: usize,
    ) -> Chain<'_, C> {
        Chain {
            heads: storage.table(Table::First),
            words: storage.table(Table::Second),
            place: place(entry) + queue,
        }
    }

    fn head(&self, which: usize) -> u32 {
        self.heads.get(self.place + which).map_or(NIL, Word::load)
    }

    fn set_head(&self, which: usize, chunk: u32) {
        if let Some(word) = self.heads.get(self.place + which) {
            word.store(chunk);
        }
    }

    /// All words of a chunk; `None` behind the last one.
    fn chunk(&self, chunk: u32, words: u32) -> Option<&[C::Word]> {
        let first = chunk as usize;
        self.words.get(first..first.checked_add(words as usize)?)
    }

    /// A word of a chunk.
    fn get(&self, chunk: u32, field: u32) -> u32 {
        let word = self.words.get(chunk as usize + field as usize);
        word.map_or(NIL, Word::load)
    }

    fn set(&self, chunk: u32, field: u32, value: u32) {
        if let Some(word) = self.words.get(chunk as usize + field as usize) {
            word.store(value);
        }
    }

    /// Puts a free chunk at the end.
    fn extend(&self) -> u32 {
        let (chunk, last) = (self.get(0, FREE_CHUNK), self.head(LAST));
        self.set(0, FREE_CHUNK, self.get(chunk, NEXT));
        for (field, value) in [(NEXT, NIL), (PREVIOUS, last), (START, 0), (END, 0)] {
            self.set(chunk, field, value);
        }
        match last {
            NIL => self.set_head(FIRST, chunk),
            last => self.set(last, NEXT, chunk),
        }
        self.set_head(LAST, chunk);
        chunk
    }

    /// Takes a chunk out and gives it back.
    fn release(&self, chunk: u32) {
        let (next, previous) = (self.get(chunk, NEXT), self.get(chunk, PREVIOUS));
        match previous {
            NIL => self.set_head(FIRST, next),
            previous => self.set(previous, NEXT, next),
        }
        match next {
            NIL => self.set_head(LAST, previous),
            next => self.set(next, PREVIOUS, previous),
        }
        self.set(chunk, NEXT, self.get(0, FREE_CHUNK));
        self.set(0, FREE_CHUNK, chunk);
    }
}

impl Chunks {
    /// The word of the slot of an entry.
    const fn slot_at(&self, index: u32) -> u32 {
        HEADER + self.entries * FIELDS + index
    }

    /// Makes sure of a word for the context and of a free chunk.
    fn reserve<S: Storage<LINKS>>(&self, storage: &mut S, entry: Selector) -> bool {
        let wanted = place(entry) + HEADS;
        if storage.table(Table::First).len() < wanted && !storage.grow_table(Table::First, wanted) {
            return false;
        }
        let words = storage.table(Table::Second);
        if words.first().is_some_and(|free| free.load() != NIL) {
            return true;
        }
        let have = words.len().max(LINE as usize);
        // Chunks are named by the index of their first word.
        let added = (have / self.words as usize).max(FIRST_CHUNKS);
        let wanted = have + added * self.words as usize;
        if wanted > NIL as usize || !storage.grow_table(Table::Second, wanted) {
            return false;
        }
        let chain = Chain::of(storage, entry, 0);
        for number in (0..added).rev() {
            let chunk = (have + number * self.words as usize) as u32;
            chain.set(chunk, NEXT, chain.get(0, FREE_CHUNK));
            chain.set(0, FREE_CHUNK, chunk);
        }
        true
    }

    /// Adds an entry at the end of a chain; returns its chunk and its place there.
    fn append<C: Cells>(&self, chain: &Chain<'_, C>, entry: Selector, slot: u32) -> (u32, u32) {
        let last = chain.head(LAST);
        let chunk = match last == NIL || chain.get(last, END) >= self.entries {
            true => chain.extend(),
            false => last,
        };
        let index = chain.get(chunk, END);
        let mask = |wild: u32| if entry.kind & wild == 0 { u32::MAX } else { 0 };
        let fields = [
            entry.tag() as u32,
            mask(ANY_TAG),
            entry.source(),
            mask(ANY_SOURCE),
        ];
        for (field, value) in (HEADER + index * FIELDS..).zip(fields) {
            chain.set(chunk, field, value);
        }
        chain.set(chunk, self.slot_at(index), slot);
        chain.set(chunk, END, index + 1);
        (chunk, index)
    }

    /// Takes an entry out of its chunk, and the chunk out of its chain when it was the last one.
    fn remove<C: Cells>(&self, chain: &Chain<'_, C>, (chunk, index): (u32, u32)) {
        chain.set(chunk, self.slot_at(index), NIL);
        let (mut start, mut end) = (chain.get(chunk, START), chain.get(chunk, END));
        let is_hole = |index| chain.get(chunk, self.slot_at(index)) == NIL;
        while start < end && is_hole(start) {
            start += 1;
        }
        while start < end && is_hole(end - 1) {
            end -= 1;
        }
        if start == end {
            return chain.release(chunk);
        }
        chain.set(chunk, START, start);
        chain.set(chunk, END, end);
    }

    /// The first entry of a chain that fits, by its tag with mask and its source with mask.
    fn find<C: Cells>(&self, chain: &Chain<'_, C>, fits: impl Fn([u32; 4]) -> bool) -> Found {
        let mut looked = 0;
        let mut chunk = chain.head(FIRST);
        // A slice for each chunk, so that its words are read without a check for each.
        while let Some(words) = chain.chunk(chunk, self.words) {
            let (header, words) = words.split_at(HEADER as usize);
            let (keys, slots) = words.split_at((self.entries * FIELDS) as usize);
            let (start, end) = (header[START as usize].load(), header[END as usize].load());
            for index in start as usize..end as usize {
                let first = index * FIELDS as usize;
                let Some([tag, tag_mask, source, source_mask]) = keys.get(first..first + 4) else {
                    break;
                };
                let slot = slots.get(index).map_or(NIL, Word::load);
                if slot == NIL {
                    continue;
                }
                looked += 1;
                let key = [
                    tag.load(),
                    tag_mask.load(),
                    source.load(),
                    source_mask.load(),
                ];
                if fits(key) {
                    return Found {
                        slot: Some(slot),
                        looked,
                        false_hits: 0,
                    };
                }
            }
            chunk = header[NEXT as usize].load();
        }
        Found {
            looked,
            ..Found::default()
        }
    }
}

impl<S: Storage<LINKS>> Arrangement<S, LINKS> for Chunks {
    fn reserve_posted(&mut self, storage: &mut S, receive: Selector) -> bool {
        self.reserve(storage, receive)
    }

    fn reserve_unexpected(&mut self, storage: &mut S, message: Selector, _: usize) -> bool {
        self.reserve(storage, message)
    }

    fn place_posted(&mut self, storage: &S, slot: u32, node: &Node<S::Cells, 1>) {
        let entry = node.selector();
        let (chunk, index) = self.append(&Chain::of(storage, entry, POSTED), entry, slot);
        node.links[0].prev.store(chunk);
        node.links[0].next.store(index);
    }

    fn place_unexpected(&mut self, storage: &S, slot: u32, node: &Node<S::Cells, LINKS>) {
        let entry = node.selector();
        let (chunk, index) = self.append(&Chain::of(storage, entry, UNEXPECTED), entry, slot);
        node.links[0].prev.store(chunk);
        node.links[0].next.store(index);
    }

    fn remove_posted(&mut self, storage: &S, _: u32, node: &Node<S::Cells, 1>) {
        let place = (node.links[0].prev.load(), node.links[0].next.load());
        self.remove(&Chain::of(storage, node.selector(), POSTED), place);
    }

    fn remove_unexpected(&mut self, storage: &S, _: u32, node: &Node<S::Cells, LINKS>) {
        let place = (node.links[0].prev.load(), node.links[0].next.load());
        self.remove(&Chain::of(storage, node.selector(), UNEXPECTED), place);
    }

    fn find_posted(&mut self, storage: &S, message: Selector) -> Found {
        let chain = Chain::of(storage, message, POSTED);
        let is_internal = message.is_internal();
        self.find(&chain, |[tag, tag_mask, source, source_mask]| {
            (tag ^ message.tag() as u32) & tag_mask == 0
                && (source ^ message.source()) & source_mask == 0
                && !(is_internal && tag_mask == 0)
        })
    }

    fn find_unexpected(&mut self, storage: &S, receive: Selector) -> Found {
        let chain = Chain::of(storage, receive, UNEXPECTED);
        let (any_source, any_tag) = (receive.kind & ANY_SOURCE != 0, receive.kind & ANY_TAG != 0);
        self.find(&chain, |[tag, _, source, _]| {
            let fits = match any_tag {
                true => (tag as i32) >= 0,
                false => tag as i32 == receive.tag(),
            };
            fits && (any_source || source == receive.source())
        })
    }
}

/// Where the words of an entry's context begin.
const fn place(entry: Selector) -> usize {
    (entry.kind & !WILD) as usize * HEADS
}

const LINKS: usize = 1;
/// Words of a context in the first table, and where those of a queue begin.
const HEADS: usize = 4;
const POSTED: usize = 0;
const UNEXPECTED: usize = 2;
/// Of the words of a queue: its first chunk, its last.
const FIRST: usize = 0;
const LAST: usize = 1;
/// Words at the front of a chunk.
const NEXT: u32 = 0;
const PREVIOUS: u32 = 1;
const START: u32 = 2;
const END: u32 = 3;
const HEADER: u32 = 4;
/// Words that an entry is compared by.
const FIELDS: u32 = 4;
/// The word of the second table that names the first free chunk.
const FREE_CHUNK: u32 = 0;
/// Words of 64 bytes.
const LINE: u32 = 16;
/// Chunks that are made first.
const FIRST_CHUNKS: usize = 16;
