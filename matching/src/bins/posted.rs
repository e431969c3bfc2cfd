//! The posted receives of [`HashBins`]: a list, or bins by pattern.

use tagwire_base::ContextId;

use super::{Bounds, HashBins, LINKS, Told, hash};
use crate::engine::{ContextAssertions, PostOutcome};
use crate::envelope::{Cookie, Handle};
use crate::queue::{self, View};
use crate::storage::{
    ANY_SOURCE, ANY_TAG, Cells, NIL, Node, Queue, Selector, Storage, Table, WILD, Word,
};

/// A receive that would take the message, and the head of its bin.
struct Candidate<'a, C: Cells> {
    slot: u32,
    node: &'a Node<C, 1>,
    head: &'a C::Word,
}

impl<S: Storage<LINKS>, B: Bounds> HashBins<S, B> {
    #[inline]
    pub(super) fn posted(&self) -> View<'_, S::Cells, 1> {
        queue::posted(&self.storage)
    }

    /// Takes the first receive of the list if it is for exactly this message: the usual case.
    #[inline(always)]
    pub(super) fn take_first_posted(&self, message: Selector) -> Option<Cookie> {
        let view = self.posted();
        let head = &view.queue.head;
        // With bins the list is empty.
        let (slot, node) = view.first_equal(head, message)?;
        view.unlink_first(CHAIN, head, node);
        Some(view.release(slot, node))
    }

    /// Takes the earliest receive that accepts the message. A list that proves long gets bins.
    #[inline]
    pub(super) fn search_posted(&mut self, message: Selector) -> Option<Cookie> {
        let view = self.posted();
        if view.is_empty() {
            return None;
        }
        if view.queue.mode.load() & BINNED != 0 {
            return self.take_binned(message, 0);
        }
        let accepts = |entry: Selector, _: &Node<S::Cells, 1>| entry.accepts(message);
        let first = view.queue.head.load();
        let (mut found, mut looked) = view.find_within(self.bounds.few(), CHAIN, first, accepts);
        if found.is_none() && view.len() as usize > self.bounds.few() {
            if self.index_posted() {
                return self.take_binned(message, looked);
            }
            (found, looked) = self.posted().find(CHAIN, first, accepts);
        }
        let view = self.posted();
        view.count_search(found.is_some(), looked);
        let (slot, node) = found?;
        view.unlink(CHAIN, &view.queue.head, slot, node);
        Some(view.release(slot, node))
    }

    /// The earliest receive that accepts the message; it stays. A list that proves long gets bins.
    pub(super) fn probe_posted(&mut self, message: Selector) -> Option<Cookie> {
        let view = self.posted();
        if view.is_empty() {
            return None;
        }
        let mut looked = 0;
        if view.queue.mode.load() & BINNED == 0 {
            let accepts = |entry: Selector, _: &Node<S::Cells, 1>| entry.accepts(message);
            let first = view.queue.head.load();
            let (found, steps) = view.find_within(self.bounds.few(), CHAIN, first, accepts);
            if found.is_some() || view.len() as usize <= self.bounds.few() {
                view.count_probe(steps);
                return found.map(|(_, node)| node.cookie());
            }
            looked = steps;
            if !self.index_posted() {
                let view = self.posted();
                let (found, looked) = view.find(CHAIN, first, accepts);
                view.count_probe(looked);
                return found.map(|(_, node)| node.cookie());
            }
        }
        let best = self.find_binned(message, &mut looked);
        self.posted().count_probe(looked);
        best.map(|best| best.node.cookie())
    }

    /// Puts a receive at the end of the list, where there are no messages, a used slot is free, and `note` returns `true`.
    #[cfg(feature = "engines")]
    #[inline(always)]
    pub(super) fn list_receive(
        &self,
        receive: Selector,
        cookie: Cookie,
        note: impl FnOnce() -> bool,
    ) -> Option<Handle> {
        let view = self.posted();
        if !self.unexpected().is_empty() || view.queue.mode.load() != 0 {
            return None;
        }
        let (slot, node) = view.spare()?;
        if !note() {
            return None;
        }
        let handle = view.fill_spare((slot, node), receive, cookie);
        view.push(CHAIN, &view.queue.head, slot, node);
        Some(handle)
    }

    /// Takes the earliest message for the receive, or queues it.
    #[inline(always)]
    pub(super) fn post_receive(&mut self, receive: Selector, cookie: Cookie) -> PostOutcome {
        let view = self.posted();
        if self.unexpected().is_empty() {
            if view.queue.mode.load() == 0
                && let Some((handle, node)) = view.insert(receive, cookie)
            {
                view.push(CHAIN, &view.queue.head, handle.slot, node);
                return PostOutcome::Queued(handle);
            }
            return self.post_at_length(receive, cookie).into_post();
        }
        if let Some(taken) = self.take_first_unexpected(receive) {
            return PostOutcome::Matched(taken);
        }
        self.post_beside_messages(receive, cookie).into_post()
    }

    /// Queues a receive, with bins, with promises, or with no used slot free.
    #[inline(never)]
    pub(super) fn post_at_length(&mut self, receive: Selector, cookie: Cookie) -> Told {
        let view = self.posted();
        if view.queue.mode.load() == BINNED
            && receive.kind & WILD == 0
            && let Some(head) = self.posted_bin(receive)
            && let Some((slot, node)) = view.spare()
        {
            let first = head.load();
            if view.node(first).is_some() {
                return self.post_into_bin(receive, cookie, first);
            }
            let handle = view.fill_spare((slot, node), receive, cookie);
            view.push_first(CHAIN, head, slot, node);
            toggle(view.queue, slot);
            return Told::queued(handle);
        }
        self.place_posted(receive, cookie)
    }

    /// Queues a receive in a bin with others, of which this slot is the first.
    #[inline(never)]
    fn post_into_bin(&mut self, receive: Selector, cookie: Cookie, first: u32) -> Told {
        let view = self.posted();
        if let Some(first) = view.node(first)
            && let Some((handle, node)) = view.insert(receive, cookie)
        {
            view.push_last(CHAIN, first, handle.slot, node);
            toggle(view.queue, handle.slot);
            if view.len() as usize > self.posted_mask + 1 {
                return self.spread_behind(handle);
            }
            return Told::queued(handle);
        }
        self.place_posted(receive, cookie)
    }

    /// Doubles the bins behind a receive that was queued: they have become crowded.
    #[cold]
    #[inline(never)]
    fn spread_behind(&mut self, handle: Handle) -> Told {
        self.spread_posted();
        Told::queued(handle)
    }

    /// Queues a receive, whatever that takes.
    #[inline(never)]
    fn place_posted(&mut self, receive: Selector, cookie: Cookie) -> Told {
        let Some(handle) = queue::insert_posted(&mut self.storage, receive, cookie) else {
            return Told::FULL;
        };
        let view = self.posted();
        let mode = view.queue.mode.load();
        if mode & PROMISED != 0 && receive.kind & WILD != 0 {
            self.storage.control().promises.end(receive);
        }
        if mode & BINNED != 0 {
            if view.len() as usize > self.posted_mask + 1 {
                self.spread_posted();
            }
            self.bin_posted(handle.slot, receive);
        } else {
            view.append(CHAIN, &view.queue.head, handle.slot);
        }
        Told::queued(handle)
    }

    /// Takes back the receive that the handle names.
    pub(super) fn withdraw_posted(&self, handle: Handle) -> Option<Cookie> {
        let view = self.posted();
        let node = view.named(handle)?;
        let head = if view.queue.mode.load() & BINNED == 0 {
            &view.queue.head
        } else {
            self.posted_bin(node.selector())?
        };
        Some(self.remove_posted(&Candidate {
            slot: handle.slot,
            node,
            head,
        }))
    }

    /// Notes what was promised of a context, unless a queued receive already breaks it.
    pub(super) fn promise(&self, context: ContextId, assertions: ContextAssertions) {
        let mut queued = 0;
        self.posted().visit_sorted(&mut |pattern, _| {
            if pattern.context == context {
                queued |= Selector::of_receive(pattern).kind & WILD;
            }
        });
        let promises = &self.storage.control().promises;
        promises.give(context, assertions, queued);
        let mode = &self.posted().queue.mode;
        mode.store(mode.load() | PROMISED);
    }

    /// Whether receives lie in bins, and the list is empty.
    #[inline(always)]
    pub(super) fn is_binned(&self) -> bool {
        self.posted().queue.mode.load() & BINNED != 0
    }

    /// Looks into the bins of the patterns that accept the message; the earliest receive wins.
    #[inline(never)]
    fn take_binned(&self, message: Selector, mut looked: u64) -> Option<Cookie> {
        let best = self.find_binned(message, &mut looked);
        self.posted().count_search(best.is_some(), looked);
        best.map(|best| self.remove_posted(&best))
    }

    /// The earliest receive in the bins of the patterns that accept the message.
    #[inline]
    fn find_binned(&self, message: Selector, looked: &mut u64) -> Option<Candidate<'_, S::Cells>> {
        let mut best = self.first_binned(message, looked);
        if self.storage.control().wildcards.load() != 0 {
            for wild in self.wildcards_for(message) {
                let rival = self.first_binned(message.widened(wild), looked);
                best = earlier(best, rival);
            }
        }
        best
    }

    /// The earliest receive with exactly this selector.
    #[inline]
    fn first_binned(&self, wanted: Selector, looked: &mut u64) -> Option<Candidate<'_, S::Cells>> {
        let head = self.posted_bin(wanted)?;
        let (found, steps) = self
            .posted()
            .find(CHAIN, head.load(), |entry, _| entry == wanted);
        *looked += steps;
        found.map(|(slot, node)| Candidate { slot, node, head })
    }

    /// The kinds of wildcards that are posted and may take the message.
    fn wildcards_for(&self, message: Selector) -> impl Iterator<Item = u32> + use<'_, S, B> {
        let control = self.storage.control();
        let barred = control.promises.barred(message);
        let kinds = KINDS.into_iter().zip(&control.by_kind);
        kinds.filter_map(move |(wild, posted)| {
            (wild & barred == 0 && posted.load() != 0).then_some(wild)
        })
    }

    #[inline]
    fn remove_posted(&self, entry: &Candidate<'_, S::Cells>) -> Cookie {
        let view = self.posted();
        view.unlink(CHAIN, entry.head, entry.slot, entry.node);
        if view.queue.mode.load() & BINNED == 0 {
            return view.release(entry.slot, entry.node);
        }
        self.count_wildcard(entry.node.kind.load(), 1_u32.wrapping_neg());
        self.release_binned(entry.slot, entry.node)
    }

    /// Gives back the slot of a receive that is out of its bin.
    #[inline]
    fn release_binned(&self, slot: u32, node: &Node<S::Cells, 1>) -> Cookie {
        let view = self.posted();
        let cookie = view.release(slot, node);
        toggle(view.queue, slot);
        if view.len() <= 1 {
            self.list_last();
        }
        cookie
    }

    /// One receive is left in the bins, or none: it is the list again.
    #[inline(never)]
    pub(super) fn list_last(&self) {
        let view = self.posted();
        view.queue.mode.store(view.queue.mode.load() & !BINNED);
        let slot = view.queue.reserved.load();
        if view.is_empty() {
            return;
        }
        if let Some(node) = view.node(slot)
            && let Some(bin) = self.posted_bin(node.selector())
        {
            // Nothing else is in its bin.
            bin.store(NIL);
            view.append(CHAIN, &view.queue.head, slot);
        }
    }

    /// Puts a receive at the end of its bin.
    #[inline]
    fn bin_posted(&self, slot: u32, receive: Selector) {
        let view = self.posted();
        if let Some(head) = self.posted_bin(receive) {
            view.append(CHAIN, head, slot);
        }
        toggle(view.queue, slot);
        self.count_wildcard(receive.kind, 1);
    }

    #[inline]
    fn count_wildcard(&self, kind: u32, by: u32) {
        let wild = (kind & WILD) >> 16;
        if wild == 0 {
            return;
        }
        let control = self.storage.control();
        let by_kind = &control.by_kind[wild as usize - 1];
        for word in [&control.wildcards, by_kind] {
            word.store(word.load().wrapping_add(by));
        }
    }

    #[inline]
    pub(super) fn posted_bin(&self, selector: Selector) -> Option<&<S::Cells as Cells>::Word> {
        self.storage
            .table(Table::First)
            .get(hash(selector) & self.posted_mask)
    }

    /// A search went past the first entries: moves them all to bins. `false` where there are none.
    #[cold]
    #[inline(never)]
    fn index_posted(&mut self) -> bool {
        let wanted = (self.posted().len() as usize).max(self.bounds.first_bins());
        if self.storage.table(Table::First).len() < wanted {
            self.storage
                .grow_table(Table::First, wanted.next_power_of_two());
            self.measure();
        }
        if self.storage.table(Table::First).is_empty() {
            return false;
        }
        let control = self.storage.control();
        control.wildcards.store(0);
        control.by_kind.iter().for_each(|word| word.store(0));
        let view = self.posted();
        view.queue.mode.store(view.queue.mode.load() | BINNED);
        view.queue.reserved.store(0);
        let head = view.queue.head.load();
        view.queue.head.store(NIL);
        view.visit(CHAIN, head, |slot, node| {
            self.bin_posted(slot, node.selector())
        });
        true
    }

    /// The bins have become crowded: doubles them. Entries keep their order within a bin.
    #[cold]
    fn spread_posted(&mut self) {
        let bins = self.posted_mask + 1;
        if !self.storage.grow_table(Table::First, 2 * bins) {
            return;
        }
        self.measure();
        let view = self.posted();
        for bin in self.storage.table(Table::First).iter().take(bins) {
            let head = bin.load();
            bin.store(NIL);
            view.visit(CHAIN, head, |slot, node| {
                if let Some(bin) = self.posted_bin(node.selector()) {
                    view.append(CHAIN, bin, slot);
                }
            });
        }
    }
}

/// Notes that a slot comes into the bins or leaves them: the word is the exclusive or of all that are there, so that it names the
/// last one.
#[inline(always)]
pub(super) fn toggle<C: Cells>(queue: &Queue<C>, slot: u32) {
    queue.reserved.store(queue.reserved.load() ^ slot);
}

#[inline]
fn earlier<'a, C: Cells>(
    a: Option<Candidate<'a, C>>,
    b: Option<Candidate<'a, C>>,
) -> Option<Candidate<'a, C>> {
    match (a, b) {
        (Some(a), Some(b)) if b.node.sequence.load() < a.node.sequence.load() => Some(b),
        (Some(a), _) => Some(a),
        (None, b) => b,
    }
}

/// The kinds of wildcards, in the order of `Control::by_kind`.
const KINDS: [u32; 3] = [ANY_SOURCE, ANY_TAG, WILD];
/// Bits of the queue's mode: entries are in bins; promises may have been given.
const BINNED: u32 = 1;
const PROMISED: u32 = 2;
/// A posted receive is on one list: the queue's, or its bin's.
pub(super) const CHAIN: usize = 0;
