//! What engines have in common that keep exact entries in a fixed number of bins.
//!
//! A message lies in its bin and in the list of all. A receive lies in its bin, or with a wildcard in a field that the bins go by, in
//! one list of these.
//!
//! ```text
//!   Table::First    heads of posted receives: one for each bin, and that of the list of wildcards
//!   Table::Second   heads of unexpected messages: one for each bin; the list of all begins in the queue's control words
//! ```

use std::fmt::Debug;

use super::{Arranged, Arrangement, Found};
use crate::engine::Engine;
use crate::queue::{self, View};
use crate::storage::{Capacity, Cells, Node, Private, Selector, Storage, Table, Word};

/// Which bin an entry lies in, and how the receive of a message is found.
pub(super) trait Bins: Debug + Send + 'static {
    /// Returns how many bins each queue has.
    fn count(&self) -> usize;

    /// Returns the bits of a selector's kind that keep a receive out of the bins.
    fn barred(&self) -> u32;

    /// Returns the bin of an entry that has none of these bits.
    fn bin(&self, entry: Selector) -> usize;

    /// Finds the receive that such a message goes to, in the bin and the list of wildcards that begin at these slots.
    fn find_posted<C: Cells>(view: View<'_, C, 1>, first: [u32; 2], message: Selector) -> Found;
}

/// Opens the engine with these bins.
pub(super) fn open<C: Cells>(bins: impl Bins, capacity: Capacity) -> Box<dyn Engine + Send> {
    let mut storage = Private::<LINKS, C>::new(capacity);
    storage.grow_table(Table::First, bins.count() + 1);
    storage.grow_table(Table::Second, bins.count());
    Box::new(Arranged::new(Binned(bins), storage))
}

#[derive(Debug)]
struct Binned<B>(B);

impl<B: Bins> Binned<B> {
    /// Returns the place of a receive's head: its bin, or the list of wildcards.
    fn posted_place(&self, receive: Selector) -> usize {
        match receive.kind & self.0.barred() {
            0 => self.0.bin(receive),
            _ => self.0.count(),
        }
    }
}

impl<S: Storage<LINKS>, B: Bins> Arrangement<S, LINKS> for Binned<B> {
    fn place_posted(&mut self, storage: &S, slot: u32, node: &Node<S::Cells, 1>) {
        let place = self.posted_place(node.selector());
        if let Some(head) = storage.table(Table::First).get(place) {
            queue::posted(storage).push(CHAIN, head, slot, node);
        }
    }

    fn place_unexpected(&mut self, storage: &S, slot: u32, node: &Node<S::Cells, LINKS>) {
        let view = queue::unexpected(storage);
        view.push(ALL, &view.queue.head, slot, node);
        if let Some(head) = storage
            .table(Table::Second)
            .get(self.0.bin(node.selector()))
        {
            view.push(BIN, head, slot, node);
        }
    }

    fn remove_posted(&mut self, storage: &S, slot: u32, node: &Node<S::Cells, 1>) {
        let place = self.posted_place(node.selector());
        if let Some(head) = storage.table(Table::First).get(place) {
            queue::posted(storage).unlink(CHAIN, head, slot, node);
        }
    }

    fn remove_unexpected(&mut self, storage: &S, slot: u32, node: &Node<S::Cells, LINKS>) {
        let view = queue::unexpected(storage);
        view.unlink(ALL, &view.queue.head, slot, node);
        if let Some(head) = storage
            .table(Table::Second)
            .get(self.0.bin(node.selector()))
        {
            view.unlink(BIN, head, slot, node);
        }
    }

    fn find_posted(&mut self, storage: &S, message: Selector) -> Found {
        let heads = storage.table(Table::First);
        let (bin, wild) = (heads.get(self.0.bin(message)), heads.get(self.0.count()));
        let (Some(bin), Some(wild)) = (bin, wild) else {
            return Found::default();
        };
        B::find_posted(queue::posted(storage), [bin.load(), wild.load()], message)
    }

    fn find_unexpected(&mut self, storage: &S, receive: Selector) -> Found {
        let view = queue::unexpected(storage);
        let accepts = |entry: Selector, _: &_| receive.accepts(entry);
        if receive.kind & self.0.barred() != 0 {
            return Found::of(view.find(ALL, view.queue.head.load(), accepts));
        }
        match storage.table(Table::Second).get(self.0.bin(receive)) {
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
pub(super) const CHAIN: usize = 0;
