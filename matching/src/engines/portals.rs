//! Lists of bounded length, as Portals 4 has them (The Portals 4.3 network programming interface, sections 3.12 and 3.13).
//!
//! Receives are match entries of a *priority list*: 64 match bits, and 64 ignore bits that are not compared. An entry is used
//! once. A message that none accepts goes into a block of the *overflow list*, which is memory that was posted beforehand, and
//! leaves a *header* in the list of unexpected ones. Posting searches the headers first and then links the entry, as one step.
//! All three are bounded: without a header or a block with room left the message is refused (`Full`), which Portals calls a
//! disabled portal-table entry; without an entry the receive is (`PTL_NO_SPACE`).
//!
//! ```text
//!   match bits   63..60 protocol, 0 | 59..48 context | 47..24 source | 23 internal | 22..0 tag
//!   ignore bits  of any source: 24 bits; of any tag: 23 bits, so that bit 23 keeps internal tags out
//! ```
//!
//! Wider fields are cut off in the match bits. An entry whose bits fit is compared whole, which Portals does not do: one that
//! differs in what was cut off is a false hit.
//!
//! A message takes its bytes from the first block that is linked and has room, or none where it is longer than `eager`:
//! then it waits with its sender. A block that has less than `eager` bytes left is unlinked (`PTL_ME_MANAGE_LOCAL` with a
//! minimum of free bytes) and linked again, empty, once all its messages were taken.

use std::cell::Cell;
use std::collections::VecDeque;

use tagwire_base::named::{Named, Parameter, Spec};

use super::arranged::{Arranged, Arrangement, Found};
use crate::description::{Description, Grade};
use crate::engine::Engine;
use crate::queue;
use crate::storage::{
    ANY_SOURCE, ANY_TAG, Capacity, Cells, Node, Private, Selector, Storage, Table, WILD, Word,
};

pub(crate) static DESCRIPTION: Description = Description {
    named: Named {
        name: "portals",
        parameters: &[
            bound(
                "entries",
                0,
                "receives that the priority list holds; 0: no bound",
            ),
            bound("headers", 0, "unexpected headers; 0: no bound"),
            bound("overflow", 0, "blocks of the overflow list; 0: no bound"),
            bound("space", 1 << 20, "bytes of a block"),
            bound(
                "eager",
                8 << 10,
                "longest message that goes into a block, in bytes; no longer than a block",
            ),
        ],
    },
    about: "one priority list and one list of unexpected headers, both of bounded length, compared by match and ignore bits",
    source: "Portals 4.3, sections 3.12 and 3.13, and its reference implementation",
    limits: "linear in the entries ahead; out of entries, headers or blocks it refuses, which ends a job; fields over 12, 24 and \
             23 bits collide",
    grade: |_| Grade::Exact,
};

const fn bound(name: &'static str, default: u32, help: &'static str) -> Parameter {
    Parameter::number(name, default, 0..=u32::MAX - 1, help)
}

/// Returns how many entries the engine holds with these parameters.
pub(crate) fn bounded(spec: &Spec, capacity: Capacity) -> Capacity {
    let least = |name, most: u32| match spec.number(name) {
        0 => most,
        bound => most.min(bound),
    };
    Capacity::new(
        least("entries", capacity.posted),
        least("headers", capacity.unexpected),
    )
}

/// Opens the engine with its parameters.
pub(crate) fn open<C: Cells>(spec: &Spec, capacity: Capacity) -> Box<dyn Engine + Send> {
    let space = spec.number("space");
    let portal = Portal {
        overflow: Overflow {
            blocks: Vec::new(),
            linked: VecDeque::new(),
            most: spec.number("overflow"),
            space,
            eager: spec.number("eager").min(space),
        },
        bytes: 0,
    };
    let storage = Private::<LINKS, C>::new(bounded(spec, capacity));
    Box::new(Arranged::new(portal, storage))
}

#[derive(Debug)]
struct Portal {
    overflow: Overflow,
    /// Of the message for which room was made.
    bytes: u32,
}

/// Whether an entry takes a message by their match bits, and then as a whole; one that does not as a whole is counted.
fn fits(receive: Selector, message: Selector, false_hits: &Cell<u64>) -> bool {
    if (match_bits(receive) ^ match_bits(message)) & !ignore_bits(receive) != 0 {
        return false;
    }
    let accepts = receive.accepts(message);
    false_hits.set(false_hits.get() + u64::from(!accepts));
    accepts
}

impl<S: Storage<LINKS>> Arrangement<S, LINKS> for Portal {
    fn reserve_unexpected(&mut self, storage: &mut S, _: Selector, bytes: usize) -> bool {
        let bytes = u32::try_from(bytes).ok();
        // A longer message leaves its header alone.
        self.bytes = bytes
            .filter(|bytes| *bytes <= self.overflow.eager)
            .unwrap_or(0);
        // A word for each slot, which names its block.
        let slots = storage.unexpected().len() + SPARE;
        self.overflow.has_room() && storage.grow_table(Table::First, slots * 2)
    }

    fn place_posted(&mut self, storage: &S, slot: u32, node: &Node<S::Cells, 1>) {
        let view = queue::posted(storage);
        view.push(CHAIN, &view.queue.head, slot, node);
    }

    fn place_unexpected(&mut self, storage: &S, slot: u32, node: &Node<S::Cells, LINKS>) {
        let view = queue::unexpected(storage);
        view.push(CHAIN, &view.queue.head, slot, node);
        let block = self.overflow.take(self.bytes);
        if let Some(word) = storage.table(Table::First).get(slot as usize) {
            word.store(block);
        }
    }

    fn remove_posted(&mut self, storage: &S, slot: u32, node: &Node<S::Cells, 1>) {
        let view = queue::posted(storage);
        view.unlink(CHAIN, &view.queue.head, slot, node);
    }

    fn remove_unexpected(&mut self, storage: &S, slot: u32, node: &Node<S::Cells, LINKS>) {
        let view = queue::unexpected(storage);
        view.unlink(CHAIN, &view.queue.head, slot, node);
        if let Some(word) = storage.table(Table::First).get(slot as usize) {
            self.overflow.give_back(word.load());
        }
    }

    fn find_posted(&mut self, storage: &S, message: Selector) -> Found {
        let false_hits = Cell::new(0);
        let view = queue::posted(storage);
        let found = view.find(CHAIN, view.queue.head.load(), |receive, _| {
            fits(receive, message, &false_hits)
        });
        Found {
            false_hits: false_hits.get(),
            ..Found::of(found)
        }
    }

    fn find_unexpected(&mut self, storage: &S, receive: Selector) -> Found {
        let false_hits = Cell::new(0);
        let view = queue::unexpected(storage);
        let found = view.find(CHAIN, view.queue.head.load(), |message, _| {
            fits(receive, message, &false_hits)
        });
        Found {
            false_hits: false_hits.get(),
            ..Found::of(found)
        }
    }
}

/// The blocks for the bytes of unexpected messages.
#[derive(Debug)]
struct Overflow {
    blocks: Vec<Block>,
    /// Those that take messages, in the order in which they were linked.
    linked: VecDeque<u32>,
    /// How many there may be; 0 for any number.
    most: u32,
    /// Bytes of each.
    space: u32,
    /// Longest message.
    eager: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Block {
    used: u32,
    /// Messages that were put in and not taken yet.
    held: u32,
}

impl Overflow {
    /// Makes sure of a linked block; it has room for any message, or it had been unlinked.
    fn has_room(&mut self) -> bool {
        if !self.linked.is_empty() {
            return true;
        }
        let count = self.blocks.len() as u32;
        if self.most != 0 && count >= self.most {
            return false;
        }
        self.blocks.push(Block::default());
        self.linked.push_back(count);
        true
    }

    /// Takes bytes from the first linked block, of which there is one; returns its number.
    fn take(&mut self, bytes: u32) -> u32 {
        let number = self.linked.front().copied().unwrap_or_default();
        let Some(block) = self.blocks.get_mut(number as usize) else {
            return number;
        };
        block.used += bytes;
        block.held += 1;
        if self.space - block.used < self.eager {
            self.linked.pop_front();
        }
        number
    }

    /// Gives back what a message had of a block.
    fn give_back(&mut self, number: u32) {
        let Some(block) = self.blocks.get_mut(number as usize) else {
            return;
        };
        block.held -= 1;
        let is_unlinked = self.space - block.used < self.eager;
        if block.held == 0 && is_unlinked {
            block.used = 0;
            self.linked.push_back(number);
        }
    }
}

/// The 64 match bits of a receive or a message.
const fn match_bits(entry: Selector) -> u64 {
    let context = (entry.kind & !WILD) as u64 & 0xfff;
    let source = entry.source() as u64 & SOURCE;
    // The selector of any tag is the least number, which is negative as internal tags are.
    let is_internal = entry.is_internal() && entry.kind & ANY_TAG == 0;
    let tag = (is_internal as u64) << 23 | entry.tag() as u64 & TAG;
    context << 48 | source << 24 | tag
}

/// The match bits of a receive that are not compared.
const fn ignore_bits(receive: Selector) -> u64 {
    let source = if receive.kind & ANY_SOURCE != 0 {
        SOURCE << 24
    } else {
        0
    };
    let tag = if receive.kind & ANY_TAG != 0 { TAG } else { 0 };
    source | tag
}

const SOURCE: u64 = 0xff_ffff;
const TAG: u64 = 0x7f_ffff;

const LINKS: usize = 1;
/// The list of an entry.
const CHAIN: usize = 0;
/// Words for messages that are made before there are slots.
const SPARE: usize = 16;
