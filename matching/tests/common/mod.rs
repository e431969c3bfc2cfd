//! Short hands of the engine tests, and storage of fixed size as a shared arena has it.
#![allow(dead_code, reason = "no test program uses all of it")]

use std::sync::atomic::AtomicU32;

use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_matching::storage::{Control, NIL, Node, Shared, Storage, Table};
use tagwire_matching::{ArriveOutcome, Cookie, Engine, Envelope, Handle, Pattern, PostOutcome};

/// Engines by name, with parameters that take other ways: all that are exact.
pub const EXACT: &[&str] = &[
    "list",
    "list:per=context",
    "source",
    "source:dir=array",
    "source:dir=trie4",
    "source:dir=trie4,ranks=16",
    "bins",
    "bins:few=0,few-unexpected=0,first=1",
    "bins:few=300,first=3",
    "ucx",
    "ucx:bins=3",
    "flajslik",
    "flajslik:bins=1",
    "flajslik:bins=8,key=source",
    "flajslik:bins=8,key=tag",
    "chunks",
    "chunks:k=1",
    "chunks:k=7",
    "list:stride=64",
    "list:per=context,stride=512",
    "lanes",
    "lanes:isa=scalar",
    "fuzzy",
    "fuzzy:isa=scalar",
    "fuzzy:bits=16",
    "fuzzy:bits=32",
    "portals",
    "offload",
    "offload:n=0,u=0",
    "offload:n=3,u=1,refill=drained",
    "offload:n=5,u=9,over=bins",
    "offload:n=2,u=2,over=lanes",
    "adaptive",
    "adaptive:up=1,window=5",
    "partner",
    "partner:k=1,window=3",
];

/// Negative tags are internal ones.
pub fn tag(value: i32) -> Tag {
    Tag::user(value).unwrap_or_else(|| Tag::internal(!value as u32))
}

pub fn message(source: u32, tag_value: i32) -> Envelope {
    Envelope {
        source: Rank::new(source),
        tag: tag(tag_value),
        context: ContextId::WORLD,
    }
}

/// `None` is the wildcard.
pub fn receive(source: Option<u32>, tag_value: Option<i32>) -> Pattern {
    Pattern {
        source: source.map_or(SourceSelector::ANY, |source| Rank::new(source).into()),
        tag: tag_value.map_or(TagSelector::ANY, |value| tag(value).into()),
        context: ContextId::WORLD,
    }
}

/// Posts a receive that finds no message.
pub fn queue_receive(engine: &mut impl Engine, pattern: Pattern, cookie: u32) -> Handle {
    match engine.post(pattern, Cookie(cookie)) {
        PostOutcome::Queued(handle) => handle,
        other => panic!("{pattern} was not queued: {other:?}"),
    }
}

/// Lets a message arrive that finds no receive.
pub fn queue_message(engine: &mut impl Engine, envelope: Envelope, cookie: u32) -> Handle {
    match engine.arrive(envelope, Cookie(cookie)) {
        ArriveOutcome::Queued(handle) => handle,
        other => panic!("{envelope} was not queued: {other:?}"),
    }
}

/// An arena: arrays of fixed size, made of atomics.
#[derive(Debug)]
pub struct Arena<const LINKS: usize> {
    control: Control<Shared>,
    posted: Vec<Node<Shared, 1>>,
    unexpected: Vec<Node<Shared, LINKS>>,
    first: Vec<AtomicU32>,
    second: Vec<AtomicU32>,
}

impl<const LINKS: usize> Arena<LINKS> {
    pub fn new(posted: u32, unexpected: u32, tables: [usize; 2]) -> Self {
        let words = |count| (0..count).map(|_| AtomicU32::new(NIL)).collect();
        Self {
            control: Control::default(),
            posted: (0..posted).map(|_| Node::default()).collect(),
            unexpected: (0..unexpected).map(|_| Node::default()).collect(),
            first: words(tables[0]),
            second: words(tables[1]),
        }
    }
}

/// By reference, as each process has its own engine over the one arena.
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
        match which {
            Table::First => &self.first,
            Table::Second => &self.second,
        }
    }

    fn grow_posted(&mut self) -> bool {
        false
    }

    fn grow_unexpected(&mut self) -> bool {
        false
    }

    fn grow_table(&mut self, which: Table, words: usize) -> bool {
        self.table(which).len() >= words
    }
}
