//! The ways of a message of [`HashBins`] behind the first entry of a list.
//!
//! Each function is for one thing that is found, and leads to the next by a tail call:
//!
//! ```text
//!   arrive_at_length -+-> the second of the list       -> arrive_further -> arrive_by_search
//!                     +-> arrive_at_wildcard, in front -> arrive_further
//!                     +-> arrive_at_bins, the first of its bin -> arrive_in_bin
//!                     |                               wildcards -> arrive_by_search
//!                     +-> queue_unexpected, as all of them where nothing is for it
//! ```
//!
//! So most of them need no more registers than a call leaves free, and save none.

use super::posted::{CHAIN, toggle};
use super::{Bounds, HashBins, LINKS, Told};
use crate::envelope::Cookie;
use crate::queue::Behind;
use crate::storage::{Node, Selector, Storage, WILD, Word};

impl<S: Storage<LINKS>, B: Bounds> HashBins<S, B> {
    /// Handles a message that is not for the first receive of a list.
    ///
    /// Nothing is saved here, and the ways on are tail calls: each has all registers that a call leaves free.
    #[inline(never)]
    pub(super) fn arrive_at_length(&mut self, message: Selector, cookie: Cookie) -> Told {
        if self.is_binned() {
            return self.arrive_at_bins(message, cookie);
        }
        let view = self.posted();
        let Some(first) = view.node(view.queue.head.load()) else {
            return self.queue_unexpected(message, cookie);
        };
        if first.kind.load() & WILD != 0 {
            return self.arrive_at_wildcard(message, cookie);
        }
        match self.take_second_posted(message, first) {
            Some(taken) => Told::matched(taken),
            None => self.arrive_further(message, cookie),
        }
    }

    /// Handles a message that finds a list with a wildcard in front.
    #[inline(never)]
    fn arrive_at_wildcard(&mut self, message: Selector, cookie: Cookie) -> Told {
        let view = self.posted();
        let head = &view.queue.head;
        let slot = head.load();
        let Some(first) = view.node(slot) else {
            return self.queue_unexpected(message, cookie);
        };
        if first.selector().accepts(message) {
            view.unlink_first(CHAIN, head, first);
            return Told::matched(view.release(slot, first));
        }
        match self.take_second_posted(message, first) {
            Some(taken) => Told::matched(taken),
            None => self.arrive_further(message, cookie),
        }
    }

    /// Handles a message that is not for the first of a list, nor the only one that the second is for.
    #[inline(never)]
    fn arrive_further(&mut self, message: Selector, cookie: Cookie) -> Told {
        let view = self.posted();
        let Some(first) = view.node(view.queue.head.load()) else {
            return self.queue_unexpected(message, cookie);
        };
        let few = self.bounds.few();
        match view.take_behind(CHAIN, first, few, |entry| entry.accepts(message)) {
            Behind::Taken(slot, node) => Told::matched(view.release(slot, node)),
            Behind::Nothing => self.queue_unexpected(message, cookie),
            Behind::Unknown => self.arrive_by_search(message, cookie),
        }
    }

    /// Handles a message that looks far into a list, or that finds receives in bins among which are wildcards.
    #[inline(never)]
    fn arrive_by_search(&mut self, message: Selector, cookie: Cookie) -> Told {
        match self.search_posted(message) {
            Some(taken) => Told::matched(taken),
            None => self.queue_unexpected(message, cookie),
        }
    }

    /// Takes the second receive of the list if it is for exactly this message, where the first is not for it: what a receive that
    /// stays leaves to the others.
    #[inline(always)]
    fn take_second_posted(&self, message: Selector, first: &Node<S::Cells, 1>) -> Option<Cookie> {
        if self.bounds.few() < 2 {
            return None;
        }
        let view = self.posted();
        let slot = first.links[CHAIN].next.load();
        let node = view.node(slot)?;
        if node.selector() != message {
            return None;
        }
        view.unlink_behind(CHAIN, first, first, node);
        view.queue.count_looked(1, 2);
        Some(view.release(slot, node))
    }

    /// Handles a message that finds receives in bins: in line the usual case, that the first of its own is the one.
    #[inline(never)]
    fn arrive_at_bins(&mut self, message: Selector, cookie: Cookie) -> Told {
        let view = self.posted();
        if self.storage.control().wildcards.load() != 0 {
            return self.arrive_by_search(message, cookie);
        }
        let Some(head) = self.posted_bin(message) else {
            return self.arrive_by_search(message, cookie);
        };
        let Some((slot, node)) = view.first_equal(head, message) else {
            return self.arrive_in_bin(message, cookie, head.load());
        };
        view.unlink_first(CHAIN, head, node);
        self.told_of_binned(slot, node)
    }

    /// Handles a message whose receive may be in a bin, behind the first, which has this slot.
    #[inline(never)]
    fn arrive_in_bin(&mut self, message: Selector, cookie: Cookie, first: u32) -> Told {
        let view = self.posted();
        let Some(first) = view.node(first) else {
            view.count_search(false, 0);
            return self.queue_unexpected(message, cookie);
        };
        // More steps than there are nodes take only the circles of a corrupted arena.
        let all = view.nodes.len() + 1;
        match view.take_behind(CHAIN, first, all, |entry| entry == message) {
            Behind::Taken(slot, node) => self.told_of_binned(slot, node),
            Behind::Nothing | Behind::Unknown => self.queue_unexpected(message, cookie),
        }
    }

    /// Gives back the slot of a receive that is out of its bin, and has been matched.
    #[inline(always)]
    fn told_of_binned(&self, slot: u32, node: &Node<S::Cells, 1>) -> Told {
        let view = self.posted();
        let cookie = view.release(slot, node);
        toggle(view.queue, slot);
        if view.len() <= 1 {
            return self.list_last_behind(cookie);
        }
        Told::matched(cookie)
    }

    /// Returns that a receive was matched, where [one is left](Self::list_last).
    #[cold]
    #[inline(never)]
    fn list_last_behind(&self, cookie: Cookie) -> Told {
        self.list_last();
        Told::matched(cookie)
    }
}
