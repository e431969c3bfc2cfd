//! What every engine does with a queue: slots, doubly linked lists over them, and searches.

use crate::engine::{CancelOutcome, QueueStats};
use crate::envelope::{Cookie, Envelope, Handle, Pattern};
use crate::storage::{Cells, FREE, NIL, Node, Queue, Selector, Storage, Word, count};

/// One queue's control words and slots.
///
/// A list is a head word and one [`Link`](crate::storage::Link) in each node. The first node's
/// `prev` names the last node, so that a head is a single word and both appending and removing
/// take constant time. Every index is checked where it is used; one out of range ends the list.
#[derive(Debug)]
pub struct View<'a, C: Cells, const LINKS: usize> {
    pub(crate) queue: &'a Queue<C>,
    pub(crate) nodes: &'a [Node<C, LINKS>],
}

impl<C: Cells, const LINKS: usize> Clone for View<'_, C, LINKS> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: Cells, const LINKS: usize> Copy for View<'_, C, LINKS> {}

/// The queue of posted receives of a storage.
#[inline]
pub fn posted<const LINKS: usize, S: Storage<LINKS>>(storage: &S) -> View<'_, S::Cells, 1> {
    View {
        queue: &storage.control().posted,
        nodes: storage.posted(),
    }
}

/// The queue of unexpected messages of a storage.
#[inline]
pub fn unexpected<const LINKS: usize, S: Storage<LINKS>>(storage: &S) -> View<'_, S::Cells, LINKS> {
    View {
        queue: &storage.control().unexpected,
        nodes: storage.unexpected(),
    }
}

/// Puts a receive into a slot of whatever kind, growing the storage when its slots are spent.
pub fn insert_posted<const LINKS: usize, S: Storage<LINKS>>(
    storage: &mut S,
    selector: Selector,
    cookie: Cookie,
) -> Option<Handle> {
    let step = storage.step();
    if !posted(storage).has_slot(step) && !storage.grow_posted() {
        return None;
    }
    posted(storage).insert_anywhere(step, selector, cookie)
}

/// Puts a message into a slot of whatever kind, growing the storage when its slots are spent.
pub fn insert_unexpected<const LINKS: usize, S: Storage<LINKS>>(
    storage: &mut S,
    selector: Selector,
    cookie: Cookie,
) -> Option<Handle> {
    let step = storage.step();
    if !unexpected(storage).has_slot(step) && !storage.grow_unexpected() {
        return None;
    }
    unexpected(storage).insert_anywhere(step, selector, cookie)
}

/// What is behind the first entry of a list.
pub(crate) enum Behind<'a, C: Cells, const LINKS: usize> {
    /// This one fitted, and is out of the list.
    Taken(u32, &'a Node<C, LINKS>),
    /// There is none that fits.
    Nothing,
    /// Not so far as was looked.
    Unknown,
}

impl<'a, C: Cells, const LINKS: usize> View<'a, C, LINKS> {
    /// Whether nothing is queued.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.queue.len.load() == 0
    }

    /// How many entries are queued.
    #[inline]
    pub fn len(self) -> u32 {
        self.queue.len.load()
    }

    /// The head of the queue's list in order.
    #[must_use]
    pub const fn head(self) -> &'a C::Word {
        &self.queue.head
    }

    /// The first slot of the queue's list in order; [`NIL`] where it is empty.
    #[must_use]
    pub fn first(self) -> u32 {
        self.queue.head.load()
    }

    /// What the queue has seen.
    #[must_use]
    pub fn stats(self) -> QueueStats {
        self.queue.stats()
    }

    /// The slot of this number.
    #[inline]
    pub fn node(self, slot: u32) -> Option<&'a Node<C, LINKS>> {
        self.nodes.get(slot as usize)
    }

    /// Fills a slot that was used before; the caller links it. `None` when there is none.
    #[inline]
    pub fn insert(
        self,
        selector: Selector,
        cookie: Cookie,
    ) -> Option<(Handle, &'a Node<C, LINKS>)> {
        let (slot, node) = self.spare()?;
        Some((self.fill_spare((slot, node), selector, cookie), node))
    }

    /// The slot that [`insert`](Self::insert) would fill.
    #[inline]
    pub(crate) fn spare(self) -> Option<(u32, &'a Node<C, LINKS>)> {
        let slot = self.queue.free.load();
        Some((slot, self.node(slot)?))
    }

    /// Fills [it](Self::spare); the caller links it.
    #[inline]
    pub(crate) fn fill_spare(
        self,
        (slot, node): (u32, &Node<C, LINKS>),
        selector: Selector,
        cookie: Cookie,
    ) -> Handle {
        self.queue.free.store(node.links[0].next.load());
        self.fill(slot, node, selector, cookie)
    }

    /// Fills a slot, also one that was never used, of which one in `step` is; the caller links it.
    fn insert_anywhere(self, step: u32, selector: Selector, cookie: Cookie) -> Option<Handle> {
        if let Some((handle, _)) = self.insert(selector, cookie) {
            return Some(handle);
        }
        let fresh = self.queue.fresh.load();
        let slot = fresh.checked_mul(step)?;
        let node = self.node(slot)?;
        self.queue.fresh.store(fresh.wrapping_add(1));
        Some(self.fill(slot, node, selector, cookie))
    }

    fn has_slot(self, step: u32) -> bool {
        let queue = self.queue;
        let fresh = queue.fresh.load().checked_mul(step);
        self.node(queue.free.load()).is_some()
            || fresh.is_some_and(|slot| self.node(slot).is_some())
    }

    #[inline]
    fn fill(self, slot: u32, node: &Node<C, LINKS>, selector: Selector, cookie: Cookie) -> Handle {
        let sequence = self.queue.sequence.load();
        self.queue.sequence.store(sequence.wrapping_add(1));
        node.key.store(selector.key);
        node.sequence.store(sequence);
        node.kind.store(selector.kind);
        node.cookie.store(cookie.0);
        self.queue.len.store(self.queue.len.load().wrapping_add(1));
        Handle {
            slot,
            generation: sequence as u32,
        }
    }

    /// Gives an unlinked node's slot back.
    #[inline]
    pub fn release(self, slot: u32, node: &Node<C, LINKS>) -> Cookie {
        node.kind.store(FREE);
        node.links[0].next.store(self.queue.free.load());
        self.queue.free.store(slot);
        self.queue.len.store(self.queue.len.load().wrapping_sub(1));
        node.cookie()
    }

    /// The live entry that a handle names.
    #[inline]
    pub fn named(self, handle: Handle) -> Option<&'a Node<C, LINKS>> {
        let node = self.node(handle.slot)?;
        let live = node.kind.load() != FREE && node.sequence.load() as u32 == handle.generation;
        live.then_some(node)
    }

    /// Puts a node at the end of a list.
    #[inline]
    pub fn append(self, link: usize, head: &C::Word, slot: u32) {
        if let Some(node) = self.node(slot) {
            self.push(link, head, slot, node);
        }
    }

    /// The same, with the node at hand.
    #[inline]
    pub fn push(self, link: usize, head: &C::Word, slot: u32, node: &Node<C, LINKS>) {
        match self.node(head.load()) {
            None => self.push_first(link, head, slot, node),
            Some(first) => self.push_last(link, first, slot, node),
        }
    }

    /// Puts the entry at the end of the list whose first this is.
    #[inline]
    pub(crate) fn push_last(
        self,
        link: usize,
        first: &Node<C, LINKS>,
        slot: u32,
        node: &Node<C, LINKS>,
    ) {
        let own = &node.links[link];
        own.next.store(NIL);
        let last = first.links[link].prev.load();
        own.prev.store(last);
        first.links[link].prev.store(slot);
        if let Some(last) = self.node(last) {
            last.links[link].next.store(slot);
        }
    }

    /// Makes the entry the only one of a list.
    #[inline]
    pub(crate) fn push_first(self, link: usize, head: &C::Word, slot: u32, node: &Node<C, LINKS>) {
        let own = &node.links[link];
        own.next.store(NIL);
        own.prev.store(slot);
        head.store(slot);
    }

    /// The first node of a list, if its selector is this one: what most searches find.
    #[inline]
    pub fn first_equal(
        self,
        head: &C::Word,
        selector: Selector,
    ) -> Option<(u32, &'a Node<C, LINKS>)> {
        let slot = head.load();
        let node = self.node(slot)?;
        (node.selector() == selector).then_some((slot, node))
    }

    /// Takes the first node out of a list.
    #[inline]
    pub fn unlink_first(self, link: usize, head: &C::Word, node: &Node<C, LINKS>) {
        let next = node.links[link].next.load();
        head.store(next);
        if let Some(after) = self.node(next) {
            after.links[link].prev.store(node.links[link].prev.load());
        }
    }

    /// Takes the earliest entry that fits out of a list whose first is `first`, which does not fit. Looks at no more than `limit`
    /// entries, the first among them.
    #[inline(always)]
    pub(crate) fn take_behind(
        self,
        link: usize,
        first: &'a Node<C, LINKS>,
        limit: usize,
        fits: impl Fn(Selector) -> bool,
    ) -> Behind<'a, C, LINKS> {
        let mut before = first;
        let mut looked = 1;
        while looked < limit as u64 {
            let slot = before.links[link].next.load();
            let Some(node) = self.node(slot) else {
                self.count_search(false, looked);
                return Behind::Nothing;
            };
            if fits(node.selector()) {
                self.unlink_behind(link, first, before, node);
                self.queue.count_looked(looked, looked + 1);
                return Behind::Taken(slot, node);
            }
            looked += 1;
            before = node;
        }
        Behind::Unknown
    }

    /// Takes the node behind `before` out of the list whose first is `first`.
    #[inline]
    pub(crate) fn unlink_behind(
        self,
        link: usize,
        first: &Node<C, LINKS>,
        before: &Node<C, LINKS>,
        node: &Node<C, LINKS>,
    ) {
        let own = &node.links[link];
        let next = own.next.load();
        before.links[link].next.store(next);
        // The last node is the `prev` of the first.
        let after = self.node(next).unwrap_or(first);
        after.links[link].prev.store(own.prev.load());
    }

    /// Takes a node out of the list that begins at `head`.
    #[inline]
    pub fn unlink(self, link: usize, head: &C::Word, slot: u32, node: &Node<C, LINKS>) {
        let first = head.load();
        if first == slot {
            return self.unlink_first(link, head, node);
        }
        let next = node.links[link].next.load();
        let prev = node.links[link].prev.load();
        if let Some(before) = self.node(prev) {
            before.links[link].next.store(next);
        }
        // The last node is the `prev` of the first.
        let after = if next == NIL { first } else { next };
        if let Some(after) = self.node(after) {
            after.links[link].prev.store(prev);
        }
    }

    /// The first node from `slot` on that fits, and how many nodes were looked at.
    #[inline]
    pub fn find(
        self,
        link: usize,
        slot: u32,
        fits: impl Fn(Selector, &Node<C, LINKS>) -> bool,
    ) -> (Option<(u32, &'a Node<C, LINKS>)>, u64) {
        // More steps than there are nodes take only the circles of a corrupted arena.
        self.find_within(self.nodes.len(), link, slot, fits)
    }

    /// The same, giving up after `limit` nodes.
    #[inline]
    pub fn find_within(
        self,
        limit: usize,
        link: usize,
        mut slot: u32,
        fits: impl Fn(Selector, &Node<C, LINKS>) -> bool,
    ) -> (Option<(u32, &'a Node<C, LINKS>)>, u64) {
        for looked in 0..limit {
            let Some(node) = self.node(slot) else {
                return (None, looked as u64);
            };
            if fits(node.selector(), node) {
                return (Some((slot, node)), looked as u64 + 1);
            }
            slot = node.links[link].next.load();
        }
        (None, limit as u64)
    }

    /// Visits a list from its head.
    pub fn visit(self, link: usize, head: u32, mut visit: impl FnMut(u32, &'a Node<C, LINKS>)) {
        let mut slot = head;
        for _ in 0..self.nodes.len() {
            let Some(node) = self.node(slot) else { return };
            // Read first, so that the visitor may move the node to another list.
            let next = node.links[link].next.load();
            visit(slot, node);
            slot = next;
        }
    }

    /// Counts a search that takes the entry it finds.
    #[inline]
    pub fn count_search(self, hit: bool, looked: u64) {
        self.queue.count_looked(looked - u64::from(hit), looked);
        if !hit {
            count(&self.queue.misses, 1);
        }
    }

    /// Counts a search that leaves the entry in place.
    #[inline]
    pub fn count_probe(self, looked: u64) {
        self.queue.count_looked(looked, looked);
        count(&self.queue.probes, 1);
    }

    /// The outcome of a cancel or discard that found this entry, or none; counted.
    #[inline]
    pub fn withdrawn(self, entry: Option<Cookie>) -> CancelOutcome {
        let Some(cookie) = entry else {
            return CancelOutcome::AlreadyMatched;
        };
        count(&self.queue.withdrawn, 1);
        CancelOutcome::Cancelled(cookie)
    }
}

impl<C: Cells, const LINKS: usize> View<'_, C, LINKS> {
    /// Visits a list of messages as envelopes.
    pub fn visit_envelopes(self, link: usize, head: u32, visit: &mut dyn FnMut(Envelope, Cookie)) {
        self.visit(link, head, |_, node| {
            if let Some(envelope) = node.selector().envelope() {
                visit(envelope, node.cookie());
            }
        });
    }
}

impl<'a, C: Cells, const LINKS: usize> View<'a, C, LINKS> {
    /// The entries in the order in which they were queued, whatever lists they are on.
    fn sorted(self) -> Vec<&'a Node<C, LINKS>> {
        let live = self.nodes.iter().filter(|node| node.kind.load() != FREE);
        let mut live: Vec<_> = live.collect();
        live.sort_by_key(|node| node.sequence.load());
        live
    }

    /// Visits the messages in the order in which they arrived.
    #[cfg(feature = "engines")]
    pub(crate) fn visit_sorted_envelopes(self, visit: &mut dyn FnMut(Envelope, Cookie)) {
        for node in self.sorted() {
            if let Some(envelope) = node.selector().envelope() {
                visit(envelope, node.cookie());
            }
        }
    }
}

impl<C: Cells> View<'_, C, 1> {
    /// Visits the receives in the order in which they were posted.
    pub fn visit_sorted(self, visit: &mut dyn FnMut(Pattern, Cookie)) {
        for node in self.sorted() {
            if let Some(pattern) = node.selector().pattern() {
                visit(pattern, node.cookie());
            }
        }
    }
}
