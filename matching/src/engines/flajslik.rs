//! Bins with ordered wildcards, after Flajslik, Dinan and Underwood (Mitigating MPI message matching misery, ISC 2016).
//!
//! A receive whose hashed fields are all exact lies in the bin of their hash, any other in one list. The paper keeps the
//! wildcards in their order by markers in every bin, which are patented; here each receive has a sequence number, and the
//! lower one of the two finds wins. A message lies in its bin and in the list of all; a receive with a hashed field wild
//! walks that list.
//!
//! ```text
//!   Table::First    heads of posted receives: one for each bin, and that of the list of wildcards
//!   Table::Second   heads of unexpected messages: one for each bin; the list of all begins in the queue's control words
//! ```

use tagwire_base::named::{Named, Parameter, Range, Spec};

use super::{Arranged, Arrangement, Found};
use crate::bins::hash;
use crate::description::{Description, Grade};
use crate::engine::Engine;
use crate::queue;
use crate::storage::{
    ANY_SOURCE, ANY_TAG, Capacity, Cells, Node, Private, Selector, Storage, Table, Word,
};

pub(crate) static DESCRIPTION: Description = Description {
    named: Named {
        name: "flajslik",
        parameters: &[
            Parameter {
                name: "bins",
                range: Range::Number {
                    default: 256,
                    min: 1,
                    max: 1 << 20,
                },
                help: "bins of each queue",
            },
            Parameter {
                name: "key",
                range: Range::Word {
                    default: "both",
                    words: &["source", "tag", "both"],
                },
                help: "what the hash goes by",
            },
        ],
    },
    about: "a fixed number of bins by source, tag or both, one list of wildcards, merged by sequence number",
    source: "Flajslik, Dinan and Underwood, ISC 2016, with sequence numbers in place of its markers",
    limits: "a receive with a hashed field wild walks all unexpected messages; entries per bin grow with the queue",
    grade: |_| Grade::Exact,
};

/// Opens the engine with its parameters.
pub(crate) fn open<C: Cells>(spec: &Spec, capacity: Capacity) -> Box<dyn Engine + Send> {
    let arrangement = Binned {
        bins: spec.number("bins") as usize,
        // The bits of a selector's kind that keep it out of the bins.
        barred: match spec.word("key") {
            "source" => ANY_SOURCE,
            "tag" => ANY_TAG,
            _ => ANY_SOURCE | ANY_TAG,
        },
    };
    let mut storage = Private::<LINKS, C>::new(capacity);
    storage.grow_table(Table::First, arrangement.bins + 1);
    storage.grow_table(Table::Second, arrangement.bins);
    Box::new(Arranged::new(arrangement, storage))
}

#[derive(Debug)]
struct Binned {
    bins: usize,
    barred: u32,
}

impl Binned {
    /// The bin of an entry whose hashed fields are exact.
    fn bin(&self, entry: Selector) -> usize {
        let mut fields = 0;
        if self.barred & ANY_SOURCE != 0 {
            fields |= u64::from(u32::MAX) << 32;
        }
        if self.barred & ANY_TAG != 0 {
            fields |= u64::from(u32::MAX);
        }
        let hashed = Selector {
            key: entry.key & fields,
            kind: 0,
        };
        hash(hashed) % self.bins
    }

    /// The place of a receive's head: its bin, or the list of wildcards.
    fn posted_place(&self, receive: Selector) -> usize {
        match receive.kind & self.barred {
            0 => self.bin(receive),
            _ => self.bins,
        }
    }
}

impl<S: Storage<LINKS>> Arrangement<S, LINKS> for Binned {
    fn place_posted(&self, storage: &S, slot: u32, node: &Node<S::Cells, 1>) {
        let place = self.posted_place(node.selector());
        if let Some(head) = storage.table(Table::First).get(place) {
            queue::posted(storage).push(CHAIN, head, slot, node);
        }
    }

    fn place_unexpected(&self, storage: &S, slot: u32, node: &Node<S::Cells, LINKS>) {
        let view = queue::unexpected(storage);
        view.push(ALL, &view.queue.head, slot, node);
        if let Some(head) = storage.table(Table::Second).get(self.bin(node.selector())) {
            view.push(BIN, head, slot, node);
        }
    }

    fn remove_posted(&self, storage: &S, slot: u32, node: &Node<S::Cells, 1>) {
        let place = self.posted_place(node.selector());
        if let Some(head) = storage.table(Table::First).get(place) {
            queue::posted(storage).unlink(CHAIN, head, slot, node);
        }
    }

    fn remove_unexpected(&self, storage: &S, slot: u32, node: &Node<S::Cells, LINKS>) {
        let view = queue::unexpected(storage);
        view.unlink(ALL, &view.queue.head, slot, node);
        if let Some(head) = storage.table(Table::Second).get(self.bin(node.selector())) {
            view.unlink(BIN, head, slot, node);
        }
    }

    fn find_posted(&self, storage: &S, message: Selector) -> Found {
        let heads = storage.table(Table::First);
        let (Some(bin), Some(wild)) = (heads.get(self.bin(message)), heads.get(self.bins)) else {
            return Found::default();
        };
        let view = queue::posted(storage);
        let (exact, looked) = view.find(CHAIN, bin.load(), |entry, _| entry.accepts(message));
        let limit = exact.map_or(u64::MAX, |(_, node)| node.sequence.load());
        // Past the limit no wildcard can win, so the walk ends there.
        let (wild, steps) = view.find(CHAIN, wild.load(), |entry, node| {
            node.sequence.load() >= limit || entry.accepts(message)
        });
        let earlier = wild.filter(|(_, node)| node.sequence.load() < limit);
        Found::of((earlier.or(exact), looked + steps))
    }

    fn find_unexpected(&self, storage: &S, receive: Selector) -> Found {
        let view = queue::unexpected(storage);
        let accepts = |entry: Selector, _: &_| receive.accepts(entry);
        if receive.kind & self.barred != 0 {
            return Found::of(view.find(ALL, view.queue.head.load(), accepts));
        }
        match storage.table(Table::Second).get(self.bin(receive)) {
            Some(head) => Found::of(view.find(BIN, head.load(), accepts)),
            None => Found::default(),
        }
    }
}

/// Lists that a message is on: that of all, and its bin's.
const LINKS: usize = 2;
const ALL: usize = 0;
const BIN: usize = 1;
/// The list that a receive is on.
const CHAIN: usize = 0;
