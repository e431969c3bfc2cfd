//! An arena that somebody overwrites with nonsense: wrong matches at worst, no panic, no hang.

use std::sync::atomic::AtomicU32;

use proptest::prelude::*;
use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};

use crate::bins::{self, HashBins};
use crate::engine::{ArriveOutcome, Engine, PostOutcome};
use crate::envelope::{Cookie, Envelope, Handle, Pattern};
use crate::list::{self, PlainList};
use crate::sources::{self, PerSource};
use crate::storage::{Control, NIL, Node, Queue, Shared, Storage, Table, Word};

const SLOTS: usize = 32;

#[derive(Debug)]
struct Arena<const LINKS: usize> {
    control: Control<Shared>,
    posted: Vec<Node<Shared, 1>>,
    unexpected: Vec<Node<Shared, LINKS>>,
    tables: [Vec<AtomicU32>; 2],
}

impl<const LINKS: usize> Arena<LINKS> {
    fn new() -> Self {
        let words = || (0..4 * SLOTS).map(|_| AtomicU32::new(NIL)).collect();
        Self {
            control: Control::default(),
            posted: (0..SLOTS).map(|_| Node::default()).collect(),
            unexpected: (0..SLOTS).map(|_| Node::default()).collect(),
            tables: [words(), words()],
        }
    }

    /// Overwrites one of the 32-bit words or the low half of one of the 64-bit ones.
    fn corrupt(&self, which: usize, value: u32) {
        let control = &self.control;
        let mut words: Vec<&AtomicU32> = vec![&control.records, &control.wildcards];
        words.extend(&control.by_kind);
        words.extend(self.tables.iter().flatten());
        for queue in [&control.posted, &control.unexpected] {
            let Queue {
                head,
                free,
                len,
                mode,
                fresh,
                ..
            } = queue;
            // Control words weigh as much as the many words of the nodes.
            words.extend([head, free, len, mode, fresh].repeat(16));
        }
        for node in &self.posted {
            words.extend([&node.kind, &node.cookie]);
            words.extend(node.links.iter().flat_map(|link| [&link.next, &link.prev]));
        }
        for node in &self.unexpected {
            words.extend([&node.kind, &node.cookie]);
            words.extend(node.links.iter().flat_map(|link| [&link.next, &link.prev]));
        }
        Word::store(words[which % words.len()], value);
        let node = &self.posted[which % SLOTS];
        if value.is_multiple_of(3) {
            Word::store(&node.key, u64::from(value) << 32 | u64::from(value));
            Word::store(&node.sequence, u64::from(value));
        }
    }
}

impl<const LINKS: usize> Storage<LINKS> for &Arena<LINKS> {
    type Cells = Shared;

    fn control(&self) -> &Control<Shared> {
        &self.control
    }

    fn posted(&self) -> &[Node<Shared, 1>] {
        &self.posted
    }

    fn unexpected(&self) -> &[Node<Shared, LINKS>] {
        &self.unexpected
    }

    fn table(&self, which: Table) -> &[AtomicU32] {
        &self.tables[usize::from(which == Table::Second)]
    }

    fn grow_posted(&mut self) -> bool {
        false
    }

    fn grow_unexpected(&mut self) -> bool {
        false
    }

    fn grow_table(&mut self, _: Table, _: usize) -> bool {
        false
    }
}

/// What one step does, by numbers that mean anything.
type Step = (u8, u32, i32, usize, u32);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let value = prop_oneof![0..SLOTS as u32 + 2, Just(NIL), any::<u32>(),];
    prop::collection::vec(
        (0..10_u8, 0..6_u32, -2..6_i32, any::<usize>(), value),
        1..300,
    )
}

fn run<const LINKS: usize>(arena: &Arena<LINKS>, mut engine: impl Engine, steps: &[Step]) {
    let mut handles = vec![Handle::from_parts(0, 0)];
    for &(what, source, tag, which, value) in steps {
        let envelope = Envelope {
            source: Rank::new(source),
            tag: Tag::user(tag).unwrap_or_else(|| Tag::internal(!tag as u32)),
            context: ContextId::WORLD,
        };
        let mut pattern = Pattern::exact(envelope);
        if source == 0 {
            pattern.source = SourceSelector::ANY;
        }
        if tag == 0 {
            pattern.tag = TagSelector::ANY;
        }
        match what {
            0..=1 => {
                if let PostOutcome::Queued(handle) = engine.post(pattern, Cookie(1)) {
                    handles.push(handle);
                }
            }
            2..=3 => {
                if let ArriveOutcome::Queued(handle) = engine.arrive(envelope, Cookie(1)) {
                    handles.push(handle);
                }
            }
            4 => drop(engine.probe(pattern)),
            5 => drop(engine.claim(pattern)),
            6 => drop(engine.cancel(handles[which % handles.len()])),
            7 => drop(engine.discard(handles[which % handles.len()])),
            _ => arena.corrupt(which, value),
        }
    }
    engine.for_each_posted(&mut |_, _| {});
    engine.for_each_unexpected(&mut |_, _| {});
    engine.set_assertions(ContextId::WORLD, crate::ContextAssertions::default());
    let _ = engine.stats();
}

proptest! {
    #[test]
    fn a_corrupted_list_neither_panics_nor_hangs(steps in steps()) {
        let arena = Arena::<{ list::LINKS }>::new();
        run(&arena, PlainList::new(&arena), &steps);
    }

    #[test]
    fn corrupted_sources_neither_panic_nor_hang(steps in steps()) {
        let arena = Arena::<{ sources::LINKS }>::new();
        run(&arena, PerSource::new(&arena), &steps);
    }

    #[test]
    fn corrupted_bins_neither_panic_nor_hang(steps in steps()) {
        let arena = Arena::<{ bins::LINKS }>::new();
        run(&arena, HashBins::new(&arena), &steps);
    }
}
