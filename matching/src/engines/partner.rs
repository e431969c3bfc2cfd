//! Lists for the sources that matter, one list for all others (Ghazimirsaeed, Grant and Afsahi, A dynamic, unified design for
//! dedicated message matching engines, Parallel Computing 89, 2019: partner and non-partner queues).
//!
//! The `k` sources for whose messages and receives most searches were in the last window have a list each in both queues, the
//! partners; all others share one. Any-source receives have a list of their own. An arrival walks its source's list and that
//! of any-source receives, and the earlier of the two finds wins. Messages are also in one list in the order of arrival, which
//! any-source receives walk. When partners change, their entries move, in their order.
//!
//! ```text
//!   Table::First    heads of posted receives: each partner's, that of all others, that of any-source
//!   Table::Second   heads of messages: each partner's, that of all others; the list of all begins in the control words
//! ```

use std::collections::HashMap;

use tagwire_base::named::{Named, Parameter, Spec};

use super::{Arranged, Arrangement, Found};
use crate::description::{Description, Grade};
use crate::engine::Engine;
use crate::queue::{self, View};
use crate::storage::{
    ANY_SOURCE, Capacity, Cells, FREE, NIL, Node, Private, Selector, Storage, Table, Word,
};

pub(crate) static DESCRIPTION: Description = Description {
    named: Named {
        name: "partner",
        parameters: &[
            Parameter::number("k", 8, 1..=1024, "sources that have a list of their own"),
            Parameter::number(
                "window",
                1024,
                1..=1 << 24,
                "searches after which these sources are chosen again",
            ),
        ],
    },
    about: "lists for the k sources that are searched for most, one list for all others, one of any-source receives",
    source: "Ghazimirsaeed, Grant and Afsahi, Parallel Computing 89, 2019 (partner and non-partner queues)",
    limits: "linear in the entries of a partner, and in those of all other sources together; a change of partners links all \
             entries anew; which sources are counted is kept outside of the storage",
    grade: |_| Grade::Exact,
};

/// Opens the engine with its parameters.
pub(crate) fn open<C: Cells>(spec: &Spec, capacity: Capacity) -> Box<dyn Engine + Send> {
    let count = spec.number("k") as usize;
    let mut storage = Private::<LINKS, C>::new(capacity);
    storage.grow_table(Table::First, count + 2);
    storage.grow_table(Table::Second, count + 1);
    let partners = Partners {
        count,
        window: spec.number("window"),
        lists: HashMap::new(),
        searches: HashMap::new(),
        searched: 0,
        most: Vec::new(),
        live: Vec::new(),
    };
    Box::new(Arranged::new(partners, storage))
}

#[derive(Debug)]
struct Partners {
    /// How many there may be.
    count: usize,
    /// Searches of a window.
    window: u32,
    /// The lists of the partners.
    lists: HashMap<u32, usize>,
    /// How often each source was searched for in this window.
    searches: HashMap<u32, u32>,
    searched: u32,
    /// The sources of a window by their searches, and the entries that are linked anew: kept, so that nothing is allocated for
    /// each window.
    most: Vec<(u32, u32)>,
    live: Vec<u32>,
}

impl Partners {
    /// The list of an entry that is from one source.
    fn list(&self, source: u32) -> usize {
        self.lists.get(&source).copied().unwrap_or(self.count)
    }

    /// The list of a receive.
    fn posted_list(&self, receive: Selector) -> usize {
        match receive.kind & ANY_SOURCE {
            0 => self.list(receive.source()),
            _ => self.count + 1,
        }
    }

    /// Counts a search for a source; whether the partners have changed with it.
    fn search_for(&mut self, source: u32) -> bool {
        *self.searches.entry(source).or_default() += 1;
        self.searched += 1;
        if self.searched < self.window {
            return false;
        }
        self.most.clear();
        self.most.extend(self.searches.drain());
        self.searched = 0;
        self.most
            .sort_unstable_by_key(|(source, searches)| (std::cmp::Reverse(*searches), *source));
        self.most.truncate(self.count);
        let is_known = |(source, _): &(u32, u32)| self.lists.contains_key(source);
        if self.most.len() == self.lists.len() && self.most.iter().all(is_known) {
            return false;
        }
        self.lists.clear();
        let numbered = self.most.iter().enumerate();
        let lists = numbered.map(|(list, (source, _))| (*source, list));
        self.lists.extend(lists);
        true
    }

    /// Links the entries of both queues by the partners that there are now.
    fn link_anew<S: Storage<LINKS>>(&mut self, storage: &S) {
        let mut live = std::mem::take(&mut self.live);
        let heads = storage.table(Table::First);
        let list = |receive| self.posted_list(receive);
        link_anew(queue::posted(storage), CHAIN, heads, &mut live, list);
        let heads = storage.table(Table::Second);
        let list = |message: Selector| self.list(message.source());
        link_anew(queue::unexpected(storage), GROUP, heads, &mut live, list);
        self.live = live;
    }
}

/// Links all entries of a queue into the lists that they belong to, in the order in which they were queued.
fn link_anew<C: Cells, const LINKS: usize>(
    view: View<'_, C, LINKS>,
    link: usize,
    heads: &[C::Word],
    live: &mut Vec<u32>,
    list: impl Fn(Selector) -> usize,
) {
    heads.iter().for_each(|head| head.store(NIL));
    live.clear();
    let nodes = (0..).zip(view.nodes);
    let queued = nodes.filter(|(_, node)| node.kind.load() != FREE);
    live.extend(queued.map(|(slot, _)| slot));
    live.sort_unstable_by_key(|&slot| view.node(slot).map(|node| node.sequence.load()));
    for &slot in live.iter() {
        let Some(node) = view.node(slot) else {
            continue;
        };
        if let Some(head) = heads.get(list(node.selector())) {
            view.push(link, head, slot, node);
        }
    }
}

impl<S: Storage<LINKS>> Arrangement<S, LINKS> for Partners {
    fn place_posted(&mut self, storage: &S, slot: u32, node: &Node<S::Cells, 1>) {
        let list = self.posted_list(node.selector());
        if let Some(head) = storage.table(Table::First).get(list) {
            queue::posted(storage).push(CHAIN, head, slot, node);
        }
    }

    fn place_unexpected(&mut self, storage: &S, slot: u32, node: &Node<S::Cells, LINKS>) {
        let view = queue::unexpected(storage);
        view.push(ALL, &view.queue.head, slot, node);
        let list = self.list(node.selector().source());
        if let Some(head) = storage.table(Table::Second).get(list) {
            view.push(GROUP, head, slot, node);
        }
    }

    fn remove_posted(&mut self, storage: &S, slot: u32, node: &Node<S::Cells, 1>) {
        let list = self.posted_list(node.selector());
        if let Some(head) = storage.table(Table::First).get(list) {
            queue::posted(storage).unlink(CHAIN, head, slot, node);
        }
    }

    fn remove_unexpected(&mut self, storage: &S, slot: u32, node: &Node<S::Cells, LINKS>) {
        let view = queue::unexpected(storage);
        view.unlink(ALL, &view.queue.head, slot, node);
        let list = self.list(node.selector().source());
        if let Some(head) = storage.table(Table::Second).get(list) {
            view.unlink(GROUP, head, slot, node);
        }
    }

    fn find_posted(&mut self, storage: &S, message: Selector) -> Found {
        if self.search_for(message.source()) {
            self.link_anew(storage);
        }
        let heads = storage.table(Table::First);
        let own = heads.get(self.list(message.source()));
        let (Some(own), Some(any)) = (own, heads.get(self.count + 1)) else {
            return Found::default();
        };
        let view = queue::posted(storage);
        let accepts = |receive: Selector, _: &_| receive.accepts(message);
        let (own, looked) = view.find(CHAIN, own.load(), accepts);
        let limit = own.map_or(u64::MAX, |(_, node)| node.sequence.load());
        // Past the limit no any-source receive can win, so the walk ends there.
        let (any, steps) = view.find(CHAIN, any.load(), |receive, node| {
            node.sequence.load() >= limit || receive.accepts(message)
        });
        let earlier = any.filter(|(_, node)| node.sequence.load() < limit);
        Found::of((earlier.or(own), looked + steps))
    }

    fn find_unexpected(&mut self, storage: &S, receive: Selector) -> Found {
        let view = queue::unexpected(storage);
        let accepts = |message: Selector, _: &_| receive.accepts(message);
        if receive.kind & ANY_SOURCE != 0 {
            return Found::of(view.find(ALL, view.queue.head.load(), accepts));
        }
        if self.search_for(receive.source()) {
            self.link_anew(storage);
        }
        match storage
            .table(Table::Second)
            .get(self.list(receive.source()))
        {
            Some(head) => Found::of(view.find(GROUP, head.load(), accepts)),
            None => Found::default(),
        }
    }
}

/// Lists that a message is on: that of all, and that of its source or of the others.
const LINKS: usize = 2;
const ALL: usize = 0;
const GROUP: usize = 1;
/// The list that a receive is on.
const CHAIN: usize = 0;
