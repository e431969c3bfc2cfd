//! The unexpected messages of [`HashBins`]: a list in order of arrival, and indexes over it.

use super::{Bounds, HashBins, INDEXES, LINKS, Told, clear, hash};
use crate::envelope::{Cookie, Envelope, Handle};
use crate::queue::{self, Behind, View};
use crate::storage::{ANY_TAG, Cells, Node, Selector, Storage, Table, WILD, Word};

impl<S: Storage<LINKS>, B: Bounds> HashBins<S, B> {
    #[inline]
    pub(super) fn unexpected(&self) -> View<'_, S::Cells, LINKS> {
        queue::unexpected(&self.storage)
    }

    /// Takes the earliest message that the receive accepts.
    #[inline]
    pub(super) fn take_unexpected(&mut self, receive: Selector) -> Option<(Selector, Cookie)> {
        if self.unexpected().is_empty() {
            return None;
        }
        match self.take_first_unexpected(receive) {
            Some(taken) => Some((receive, taken)),
            None => self.search_unexpected(receive),
        }
    }

    /// Takes the earliest message of all, where there are no indexes and its selector is the receive's: what most receives find.
    #[inline(always)]
    pub(super) fn take_first_unexpected(&mut self, receive: Selector) -> Option<Cookie> {
        let view = self.unexpected();
        let head = &view.queue.head;
        if view.queue.mode.load() != 0 {
            return None;
        }
        let (slot, node) = view.first_equal(head, receive)?;
        view.unlink_first(ORDER, head, node);
        Some(view.release(slot, node))
    }

    /// Handles a receive with messages queued, the first of which is not simply the one.
    #[inline(never)]
    pub(super) fn post_beside_messages(&mut self, receive: Selector, cookie: Cookie) -> Told {
        let view = self.unexpected();
        let indexed = view.queue.mode.load();
        if receive.kind & WILD != 0 || indexed > Index::EXACT.bit() {
            return self.post_by_search(receive, cookie);
        }
        if indexed != 0 {
            return self.post_at_exact_index(receive, cookie);
        }
        let Some(first) = view.node(view.queue.head.load()) else {
            return self.post_at_length(receive, cookie);
        };
        let few = self.bounds.few_unexpected();
        match view.take_behind(ORDER, first, few, |entry| entry == receive) {
            Behind::Taken(slot, node) => Told::matched(view.release(slot, node)),
            Behind::Nothing => self.post_at_length(receive, cookie),
            Behind::Unknown => self.post_by_search(receive, cookie),
        }
    }

    /// Handles an exact receive that finds the index for such receives, and no other.
    #[inline(never)]
    fn post_at_exact_index(&mut self, receive: Selector, cookie: Cookie) -> Told {
        let view = self.unexpected();
        let link = Index::EXACT.link();
        let Some(head) = self.unexpected_bin(Index::EXACT, receive) else {
            return self.post_by_search(receive, cookie);
        };
        let (slot, node) = match view.first_equal(head, receive) {
            Some((slot, node)) => {
                view.unlink_first(link, head, node);
                (slot, node)
            }
            None => {
                let Some(first) = view.node(head.load()) else {
                    view.count_search(false, 0);
                    return self.post_at_length(receive, cookie);
                };
                let all = view.nodes.len() + 1;
                match view.take_behind(link, first, all, |entry| entry == receive) {
                    Behind::Taken(slot, node) => (slot, node),
                    _ => return self.post_at_length(receive, cookie),
                }
            }
        };
        view.unlink(ORDER, &view.queue.head, slot, node);
        let taken = view.release(slot, node);
        if view.is_empty() {
            view.queue.mode.store(0);
        }
        Told::matched(taken)
    }

    /// Handles a receive that looks far into the list, that is a wildcard, or that finds other indexes.
    #[inline(never)]
    fn post_by_search(&mut self, receive: Selector, cookie: Cookie) -> Told {
        match self.search_unexpected(receive) {
            Some((_, taken)) => Told::matched(taken),
            None => self.post_at_length(receive, cookie),
        }
    }

    /// Takes the earliest message that the receive accepts, where it is not simply [the first](Self::take_first_unexpected).
    #[inline(never)]
    pub(super) fn search_unexpected(&mut self, receive: Selector) -> Option<(Selector, Cookie)> {
        let (found, looked) = self.find_unexpected(receive);
        let view = self.unexpected();
        view.count_search(found.is_some(), looked);
        let slot = found?;
        let node = view.node(slot)?;
        Some((node.selector(), self.remove_unexpected(slot, node)))
    }

    /// The same, leaving the message in place.
    #[inline]
    pub(super) fn probe_unexpected(&mut self, receive: Selector) -> Option<(Selector, Cookie)> {
        if self.unexpected().is_empty() {
            return None;
        }
        let (found, looked) = self.find_unexpected(receive);
        let view = self.unexpected();
        view.count_probe(looked);
        let node = view.node(found?)?;
        Some((node.selector(), node.cookie()))
    }

    /// Queues a message that found no receive.
    #[inline(never)]
    pub(super) fn queue_unexpected(&mut self, message: Selector, cookie: Cookie) -> Told {
        let view = self.unexpected();
        if view.queue.mode.load() == 0
            && let Some((handle, node)) = view.insert(message, cookie)
        {
            view.push(ORDER, &view.queue.head, handle.slot, node);
            return Told::queued(handle);
        }
        self.queue_at_length(message, cookie)
    }

    /// The same with indexes, or with no used slot free: in line with the index for exact receives alone.
    #[inline(never)]
    fn queue_at_length(&mut self, message: Selector, cookie: Cookie) -> Told {
        let view = self.unexpected();
        if view.queue.mode.load() == Index::EXACT.bit()
            && (view.len() as usize) <= self.unexpected_mask
            && let Some(head) = self.unexpected_bin(Index::EXACT, message)
            && let Some((handle, node)) = view.insert(message, cookie)
        {
            view.push(ORDER, &view.queue.head, handle.slot, node);
            view.push(Index::EXACT.link(), head, handle.slot, node);
            return Told::queued(handle);
        }
        self.place_unexpected(message, cookie)
    }

    /// Queues a message, whatever that takes.
    #[inline(never)]
    fn place_unexpected(&mut self, message: Selector, cookie: Cookie) -> Told {
        let Some(handle) = queue::insert_unexpected(&mut self.storage, message, cookie) else {
            return Told::FULL;
        };
        let view = self.unexpected();
        view.append(ORDER, &view.queue.head, handle.slot);
        let indexed = view.queue.mode.load();
        if indexed != 0 {
            self.add_to_indexes(indexed, handle.slot, message);
            if view.len() as usize > self.unexpected_mask + 1 {
                self.spread_unexpected();
            }
        }
        Told::queued(handle)
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

    /// The slot of the earliest message that the receive accepts, and how many entries were looked
    /// at. A list that proves long gets the index that this kind of receive needs.
    fn find_unexpected(&mut self, receive: Selector) -> (Option<u32>, u64) {
        let view = self.unexpected();
        let accepts = |entry: Selector, _: &Node<S::Cells, LINKS>| receive.accepts(entry);
        let first = view.queue.head.load();
        let mut looked = 0;
        if view.queue.mode.load() & Index::of(receive.kind).bit() == 0 {
            let (found, steps) =
                view.find_within(self.bounds.few_unexpected(), ORDER, first, accepts);
            if found.is_some() || view.len() as usize <= self.bounds.few_unexpected() {
                return (found.map(|(slot, _)| slot), steps);
            }
            if !self.index_unexpected(Index::of(receive.kind)) {
                let (found, steps) = self.unexpected().find(ORDER, first, accepts);
                return (found.map(|(slot, _)| slot), steps);
            }
            looked = steps;
        }
        let (found, steps) = self.find_indexed(receive);
        (found, looked + steps)
    }

    /// Looks into the index for this kind of receive, where equal selectors are in order.
    fn find_indexed(&self, receive: Selector) -> (Option<u32>, u64) {
        let index = Index::of(receive.kind);
        let Some(head) = self.unexpected_bin(index, receive) else {
            return (None, 0);
        };
        let head = head.load();
        let (found, looked) = self.unexpected().find(index.link(), head, |entry, _| {
            index.selector(entry) == Some(receive)
        });
        (found.map(|(slot, _)| slot), looked)
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

    #[inline]
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

    /// A search went past the first entries: makes the index that would have spared it. `false`
    /// where there is no room for one.
    #[cold]
    #[inline(never)]
    fn index_unexpected(&mut self, index: Index) -> bool {
        let view = self.unexpected();
        let wanted = INDEXES
            * (view.len() as usize)
                .max(self.bounds.first_bins())
                .next_power_of_two();
        let unused = view.queue.mode.load() == 0;
        if unused && self.storage.table(Table::Second).len() < wanted {
            self.storage.grow_table(Table::Second, wanted);
            self.measure();
        }
        if self.storage.table(Table::Second).len() < INDEXES {
            return false;
        }
        self.build(index);
        true
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
        // Bits that name no index can only come from a corrupted arena.
        let mut left = indexed & ((1 << INDEXES) - 1);
        std::iter::from_fn(move || {
            let index = (left != 0).then(|| Self(left.trailing_zeros()))?;
            left &= left - 1;
            Some(index)
        })
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
