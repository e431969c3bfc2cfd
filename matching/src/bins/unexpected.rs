//! The unexpected messages of [`HashBins`]: a list in order of arrival, and indexes over it.

use super::{FEW, FIRST_BINS, HashBins, INDEXES, LINKS, clear, hash};
use crate::engine::ArriveOutcome;
use crate::envelope::{Cookie, Envelope, Handle};
use crate::queue::{self, View};
use crate::storage::{ANY_TAG, Cells, Node, Selector, Storage, Table, WILD, Word};

type Found<'a, C> = Option<(u32, &'a Node<C, LINKS>)>;

impl<S: Storage<LINKS>> HashBins<S> {
    #[inline]
    pub(super) fn unexpected(&self) -> View<'_, S::Cells, LINKS> {
        queue::unexpected(&self.storage)
    }

    /// Takes the earliest message that the receive accepts.
    #[inline]
    pub(super) fn take_unexpected(&self, receive: Selector) -> Option<(Selector, Cookie)> {
        if self.unexpected().is_empty() {
            return None;
        }
        self.search_unexpected(receive)
    }

    #[inline(never)]
    fn search_unexpected(&self, receive: Selector) -> Option<(Selector, Cookie)> {
        let view = self.unexpected();
        let (found, looked) = self.find_unexpected(receive);
        view.count_search(found.is_some(), looked);
        let (slot, node) = found?;
        Some((node.selector(), self.remove_unexpected(slot, node)))
    }

    /// The same, leaving the message in place.
    #[inline]
    pub(super) fn probe_unexpected(&self, receive: Selector) -> Option<(Selector, Cookie)> {
        let view = self.unexpected();
        if view.is_empty() {
            return None;
        }
        let (found, looked) = self.find_unexpected(receive);
        view.count_probe(looked);
        found.map(|(_, node)| (node.selector(), node.cookie()))
    }

    /// Queues a message that found no receive.
    #[inline(never)]
    pub(super) fn queue_unexpected(&mut self, message: Selector, cookie: Cookie) -> ArriveOutcome {
        let Some(handle) = queue::insert_unexpected(&mut self.storage, message, cookie) else {
            return ArriveOutcome::Full;
        };
        let view = self.unexpected();
        view.append(ORDER, &view.queue.head, handle.slot);
        let indexed = view.queue.mode.load();
        if indexed != 0 {
            self.add_to_indexes(indexed, handle.slot, message);
            if view.len() as usize > self.unexpected_mask + 1 {
                self.spread_unexpected();
            }
        } else if view.len() > FEW {
            self.index_unexpected();
        }
        ArriveOutcome::Queued(handle)
    }

    /// Throws away the message that the handle names.
    pub(super) fn withdraw_unexpected(&self, handle: Handle) -> Option<Cookie> {
        let node = self.unexpected().named(handle)?;
        Some(self.remove_unexpected(handle.slot, node))
    }

    /// Visits the messages, earliest first.
    pub(super) fn visit_unexpected(&self, visit: &mut dyn FnMut(Envelope, Cookie)) {
        let view = self.unexpected();
        view.visit_envelopes(ORDER, view.queue.head.load(), visit);
    }

    #[inline]
    fn find_unexpected(&self, receive: Selector) -> (Found<'_, S::Cells>, u64) {
        let view = self.unexpected();
        if view.queue.mode.load() != 0 {
            return self.find_indexed(receive);
        }
        let head = view.queue.head.load();
        view.find(ORDER, head, |entry, _| receive.accepts(entry))
    }

    /// Looks into the index for this kind of receive, where equal selectors are in order.
    fn find_indexed(&self, receive: Selector) -> (Found<'_, S::Cells>, u64) {
        let index = Index::of(receive.kind);
        let view = self.unexpected();
        let indexed = view.queue.mode.load();
        if indexed & index.bit() == 0 {
            self.build(index);
        }
        let Some(head) = self.unexpected_bin(index, receive) else {
            return (None, 0);
        };
        view.find(index.link(), head.load(), |entry, _| {
            index.selector(entry) == Some(receive)
        })
    }

    #[inline]
    fn remove_unexpected(&self, slot: u32, node: &Node<S::Cells, LINKS>) -> Cookie {
        let view = self.unexpected();
        view.unlink(ORDER, &view.queue.head, slot, node);
        let indexed = view.queue.mode.load();
        if indexed != 0 {
            self.drop_from_indexes(indexed, slot, node);
        }
        let cookie = view.release(slot, node);
        if view.is_empty() {
            view.queue.mode.store(0);
        }
        cookie
    }

    fn add_to_indexes(&self, indexed: u32, slot: u32, message: Selector) {
        for index in Index::in_use(indexed) {
            self.add_to(index, slot, message);
        }
    }

    fn drop_from_indexes(&self, indexed: u32, slot: u32, node: &Node<S::Cells, LINKS>) {
        let view = self.unexpected();
        for index in Index::in_use(indexed) {
            let selector = index.selector(node.selector());
            let head = selector.and_then(|selector| self.unexpected_bin(index, selector));
            if let Some(head) = head {
                view.unlink(index.link(), head, slot, node);
            }
        }
    }

    #[inline]
    fn add_to(&self, index: Index, slot: u32, message: Selector) {
        let selector = index.selector(message);
        let head = selector.and_then(|selector| self.unexpected_bin(index, selector));
        if let Some(head) = head {
            self.unexpected().append(index.link(), head, slot);
        }
    }

    #[inline]
    fn unexpected_bin(&self, index: Index, key: Selector) -> Option<&<S::Cells as Cells>::Word> {
        let first = index.0 as usize * (self.unexpected_mask + 1);
        let heads = self.storage.table(Table::Second);
        heads.get(first + (hash(key) & self.unexpected_mask))
    }

    /// Makes one index over what is queued.
    #[cold]
    fn build(&self, index: Index) {
        let view = self.unexpected();
        view.queue.mode.store(view.queue.mode.load() | index.bit());
        view.visit(ORDER, view.queue.head.load(), |slot, node| {
            self.add_to(index, slot, node.selector());
        });
    }

    /// The list has become long: makes the index for exact receives.
    #[cold]
    fn index_unexpected(&mut self) {
        if self.storage.table(Table::Second).len() < INDEXES {
            self.storage.grow_table(Table::Second, INDEXES * FIRST_BINS);
            self.measure();
        }
        if self.storage.table(Table::Second).len() >= INDEXES {
            self.build(Index::EXACT);
        }
    }

    /// The bins have become crowded: doubles them and makes the indexes anew.
    #[cold]
    fn spread_unexpected(&mut self) {
        let bins = self.unexpected_mask + 1;
        if !self.storage.grow_table(Table::Second, INDEXES * 2 * bins) {
            return;
        }
        self.measure();
        clear(self.storage.table(Table::Second));
        for index in Index::in_use(self.unexpected().queue.mode.load()) {
            self.build(index);
        }
    }
}

/// One of the indexes over the unexpected messages: that for receives of one kind.
///
/// Number 0 serves exact receives, 1 any-source, 2 any-tag, 3 both: the two wildcard bits of
/// `Node::kind`, so that an index's key is the selector of the receives it serves.
#[derive(Clone, Copy)]
struct Index(u32);

impl Index {
    const EXACT: Self = Self(0);

    #[inline]
    const fn of(kind: u32) -> Self {
        Self((kind & WILD) >> 16)
    }

    /// The indexes whose bits are set.
    #[inline]
    fn in_use(indexed: u32) -> impl Iterator<Item = Self> {
        (0..INDEXES as u32)
            .map(Self)
            .filter(move |index| indexed & index.bit() != 0)
    }

    #[inline]
    const fn bit(self) -> u32 {
        1 << self.0
    }

    #[inline]
    const fn link(self) -> usize {
        1 + self.0 as usize
    }

    /// The key under which this index holds a message; `None` when it leaves the message out,
    /// because any-tag never takes an internal one.
    #[inline]
    const fn selector(self, message: Selector) -> Option<Selector> {
        let wild = self.0 << 16;
        if wild & ANY_TAG != 0 && message.is_internal() {
            return None;
        }
        Some(message.widened(wild))
    }
}

/// The list of all messages in order of arrival.
const ORDER: usize = 0;
