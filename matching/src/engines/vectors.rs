//! What engines have in common that compare many entries at once, with the processor's vectors.
//!
//! A vector holds the keys of up to [`Keys::SLOTS`] entries side by side. A kernel of `tagwire-lanes` returns a bit for each
//! slot whose key may fit; these candidates are compared whole, in the order of their slots, and the first that fits is it. One
//! that does not is a false hit. There is one chain of vectors for each context in each queue. Entries are added at the end
//! of the last vector; one that leaves clears its bit in `live`, and a vector without any goes back to the free ones.
//!
//! Vectors cannot be read through cells, so they lie in memory of the engine's own: such an engine runs in private memory only.
//! What is read of it is said by [`Cells::touch`].
//!
//! ```text
//!   keys     a line of 64 bytes for each key or mask of a vector (Keys::Receives, Keys::Messages)
//!   heads    [live | end | next | previous] of each vector
//!   entries  SLOTS words of each vector: the slots of the nodes
//!   node     the words of its link name its vector and its place there
//! ```

use std::fmt::Debug;
use std::marker::PhantomData;

use tagwire_base::named::{Parameter, Range, Refused, Spec};
use tagwire_lanes::{Isa, Kernels};

use super::arranged::{Arranged, Arrangement, Found};
use crate::engine::Engine;
use crate::queue;
use crate::storage::{Capacity, Cells, Link, NIL, Node, Private, Selector, Storage, WILD, Word};

/// What the entries of a vector are compared by.
pub(super) trait Keys: Debug + Send + 'static {
    /// Entries of a vector: 64 at most.
    const SLOTS: usize;

    /// The keys of a vector of receives.
    type Receives: Debug + Default + Send;

    /// The keys of a vector of messages.
    type Messages: Debug + Default + Send;

    /// Puts the keys of a receive into a slot.
    fn put_receive(receives: &mut Self::Receives, slot: usize, receive: Selector);

    /// Puts the keys of a message into a slot.
    fn put_message(messages: &mut Self::Messages, slot: usize, message: Selector);

    /// Returns a bit for each slot whose receive may take such a message.
    fn receives(kernels: Kernels, receives: &Self::Receives, message: Selector) -> u64;

    /// Returns a bit for each slot whose message such a receive may take.
    fn messages(kernels: Kernels, messages: &Self::Messages, receive: Selector) -> u64;
}

/// The parameter that chooses the kernels.
pub(super) const ISA: Parameter = Parameter {
    name: "isa",
    range: Range::Word {
        default: "auto",
        words: &["auto", "avx512", "avx2", "sse2", "neon", "scalar"],
    },
    help: "the instruction set of the kernels: the widest that the processor has, or this one",
};

/// Returns the kernels that a name with [`ISA`] asks for.
///
/// # Errors
/// [`Refused::Value`] where the processor lacks them, with those that it has.
pub(crate) fn kernels(spec: &Spec) -> Result<Kernels, Refused> {
    let Some(isa) = Isa::by_name(spec.word(ISA.name)) else {
        return Ok(Kernels::best());
    };
    Kernels::of(isa).map_err(|missing| Refused::Value {
        name: spec.name(),
        parameter: ISA.name,
        range: Isa::available().fold("auto".to_owned(), |all, isa| format!("{all}, {isa}"))
            + " on this processor",
        value: missing.isa.name().to_owned(),
    })
}

/// Opens the engine with these keys.
pub(super) fn open<C: Cells, K: Keys>(spec: &Spec, capacity: Capacity) -> Box<dyn Engine + Send> {
    let vectors = Vectors::<K> {
        // A name that asks for others was refused.
        kernels: kernels(spec).unwrap_or_else(|_| Kernels::best()),
        receives: Chains::default(),
        messages: Chains::default(),
        keys: PhantomData,
    };
    Box::new(Arranged::new(vectors, Private::<LINKS, C>::new(capacity)))
}

#[derive(Debug)]
struct Vectors<K: Keys> {
    kernels: Kernels,
    receives: Chains<K::Receives>,
    messages: Chains<K::Messages>,
    keys: PhantomData<fn() -> K>,
}

impl<S: Storage<LINKS>, K: Keys> Arrangement<S, LINKS> for Vectors<K> {
    fn place_posted(&mut self, storage: &S, slot: u32, node: &Node<S::Cells, 1>) {
        let _ = storage;
        let receive = node.selector();
        let put = |keys: &mut K::Receives, place| K::put_receive(keys, place, receive);
        let chains = &mut self.receives;
        chains.append::<S::Cells>(context(receive), (slot, &node.links[0]), K::SLOTS, put);
    }

    fn place_unexpected(&mut self, storage: &S, slot: u32, node: &Node<S::Cells, LINKS>) {
        let _ = storage;
        let message = node.selector();
        let put = |keys: &mut K::Messages, place| K::put_message(keys, place, message);
        let chains = &mut self.messages;
        chains.append::<S::Cells>(context(message), (slot, &node.links[0]), K::SLOTS, put);
    }

    fn remove_posted(&mut self, _: &S, _: u32, node: &Node<S::Cells, 1>) {
        let context = context(node.selector());
        self.receives.remove::<S::Cells>(context, &node.links[0]);
    }

    fn remove_unexpected(&mut self, _: &S, _: u32, node: &Node<S::Cells, LINKS>) {
        let context = context(node.selector());
        self.messages.remove::<S::Cells>(context, &node.links[0]);
    }

    fn find_posted(&mut self, storage: &S, message: Selector) -> Found {
        let view = queue::posted(storage);
        self.receives.find::<S::Cells>(
            context(message),
            K::SLOTS,
            |keys| K::receives(self.kernels, keys, message),
            |slot| {
                view.node(slot)
                    .is_some_and(|node| node.selector().accepts(message))
            },
        )
    }

    fn find_unexpected(&mut self, storage: &S, receive: Selector) -> Found {
        let view = queue::unexpected(storage);
        self.messages.find::<S::Cells>(
            context(receive),
            K::SLOTS,
            |keys| K::messages(self.kernels, keys, receive),
            |slot| {
                view.node(slot)
                    .is_some_and(|node| receive.accepts(node.selector()))
            },
        )
    }
}

/// The vectors of one queue.
#[derive(Debug)]
struct Chains<V> {
    keys: Vec<V>,
    heads: Vec<Head>,
    entries: Vec<u32>,
    /// The first free vector.
    free: u32,
    /// The first and the last vector of each context.
    ends: Vec<[u32; 2]>,
}

/// What there is to say of a vector beside its keys.
#[derive(Debug, Clone, Copy)]
struct Head {
    /// A bit for each slot with an entry.
    live: u64,
    /// Slots from here on have none and never had one since the vector was empty.
    end: u32,
    next: u32,
    previous: u32,
}

impl<V> Default for Chains<V> {
    fn default() -> Self {
        Self {
            keys: Vec::new(),
            heads: Vec::new(),
            entries: Vec::new(),
            free: NIL,
            ends: Vec::new(),
        }
    }
}

impl<V: Default> Chains<V> {
    /// Adds an entry, which lies in a slot of the queue, at the end of a context's chain; `put` fills its keys in.
    fn append<C: Cells>(
        &mut self,
        context: usize,
        (slot, link): (u32, &Link<C>),
        slots: usize,
        put: impl Fn(&mut V, usize),
    ) {
        if self.ends.len() <= context {
            self.ends.resize(context + 1, [NIL; 2]);
        }
        let last = self.ends[context][LAST];
        let vector = match self.heads.get(last as usize) {
            Some(head) if (head.end as usize) < slots => last,
            _ => self.extend(context, slots),
        } as usize;
        let head = &mut self.heads[vector];
        let place = head.end as usize;
        head.end += 1;
        head.live |= 1 << place;
        self.entries[vector * slots + place] = slot;
        put(&mut self.keys[vector], place);
        C::touch(&self.heads[vector]);
        C::touch(&self.entries[vector * slots + place]);
        C::touch(&self.keys[vector]);
        link.prev.store(vector as u32);
        link.next.store(place as u32);
    }

    /// Puts a free vector at the end of a chain.
    fn extend(&mut self, context: usize, slots: usize) -> u32 {
        let [first, last] = self.ends[context];
        let head = Head {
            live: 0,
            end: 0,
            next: NIL,
            previous: last,
        };
        let vector = match self.heads.get_mut(self.free as usize) {
            Some(free) => {
                let vector = self.free;
                self.free = free.next;
                *free = head;
                vector
            }
            None => {
                self.heads.push(head);
                self.keys.push(V::default());
                self.entries.resize(self.heads.len() * slots, NIL);
                (self.heads.len() - 1) as u32
            }
        };
        if let Some(last) = self.heads.get_mut(last as usize) {
            last.next = vector;
        }
        self.ends[context] = [if first == NIL { vector } else { first }, vector];
        vector
    }

    /// Takes an entry out of its vector, and a vector without any out of its chain.
    fn remove<C: Cells>(&mut self, context: usize, link: &Link<C>) {
        let (vector, place) = (link.prev.load(), link.next.load());
        let Some(head) = self.heads.get_mut(vector as usize) else {
            return;
        };
        C::touch(head);
        head.live &= !(1 << place);
        if head.live != 0 {
            // Holes at the end are filled again; those before it would break the order.
            head.end = u64::BITS - head.live.leading_zeros();
            return;
        }
        let Head { next, previous, .. } = *head;
        head.next = self.free;
        self.free = vector;
        match self.heads.get_mut(previous as usize) {
            Some(previous) => previous.next = next,
            None => self.ends[context][FIRST] = next,
        }
        match self.heads.get_mut(next as usize) {
            Some(next) => next.previous = previous,
            None => self.ends[context][LAST] = previous,
        }
    }

    /// The first entry of a context's chain that `hits` lets through and that fits.
    fn find<C: Cells>(
        &self,
        context: usize,
        slots: usize,
        hits: impl Fn(&V) -> u64,
        fits: impl Fn(u32) -> bool,
    ) -> Found {
        let mut found = Found::default();
        let mut vector = self.ends.get(context).map_or(NIL, |ends| ends[FIRST]) as usize;
        while let (Some(head), Some(keys)) = (self.heads.get(vector), self.keys.get(vector)) {
            C::touch(head);
            C::touch(keys);
            let mut candidates = hits(keys) & head.live;
            while candidates != 0 {
                let place = vector * slots + candidates.trailing_zeros() as usize;
                candidates &= candidates - 1;
                C::touch(&self.entries[place]);
                found.looked += 1;
                if fits(self.entries[place]) {
                    found.slot = Some(self.entries[place]);
                    return found;
                }
                found.false_hits += 1;
            }
            vector = head.next as usize;
        }
        found
    }
}

const fn context(entry: Selector) -> usize {
    (entry.kind & !WILD) as usize
}

/// A line of ones, as a mask, and one of zeros.
pub(super) const ONES: [u32; 16] = [u32::MAX; 16];
pub(super) const ZEROS: [u32; 16] = [0; 16];

/// Lists that a node is on: its link names its vector instead.
const LINKS: usize = 1;
/// Of the ends of a chain.
const FIRST: usize = 0;
const LAST: usize = 1;
