//! Engines allocate nothing once they are warm: each kind of call, with wildcards, over and over.

#![allow(
    unsafe_code,
    clippy::unwrap_used,
    reason = "an allocator that counts; a test that panics fails"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use tagwire_lab::Rounds;
use tagwire_matching::registry::DESCRIPTIONS;
use tagwire_matching::{Capacity, Engine, EngineName};

/// Counts what the current thread allocates: other tests have threads of their own.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // A thread that is ending has no counter any more.
    let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
}

// SAFETY: everything is the system's allocator's; counting touches only a cell of this thread.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promise, handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(place, layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as above.
        unsafe { System.realloc(place, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// What an engine allocates in so many rounds.
fn allocations(rounds: &mut Rounds, engine: &mut dyn Engine, count: u32) -> u64 {
    let before = ALLOCATIONS.get();
    rounds.run(engine, count);
    ALLOCATIONS.get() - before
}

/// Names with parameters that take other ways, beside those of all engines without.
const VARIANTS: &[&str] = &[
    "list:per=context",
    "list:stride=256",
    "source:dir=array",
    "source:dir=trie4,any=rotate",
    "bins:few=0,few-unexpected=0,first=1",
    "ucx:bins=3",
    "flajslik:key=tag",
    "chunks:k=1",
    "lanes:isa=scalar",
    "fuzzy:bits=32",
    "portals:entries=50,headers=7,overflow=2,space=64",
    "offload:n=4,u=2,refill=drained",
    "adaptive:up=1,window=7",
    "partner:k=3,window=20",
];

#[test]
fn a_warm_engine_allocates_nothing() {
    let plain = DESCRIPTIONS
        .iter()
        .map(|description| description.named.name);
    let mut wrong = Vec::new();
    for name in plain.chain(VARIANTS.iter().copied()) {
        let engine: EngineName = name.parse().unwrap();
        let mut engine = engine.open(Capacity::default());
        let mut rounds = Rounds::new();
        let cold = allocations(&mut rounds, &mut engine, Rounds::WARM);
        assert!(cold > 0, "{name} has no memory, or nothing is counted");
        let warm = allocations(&mut rounds, &mut engine, 50);
        if warm > 0 {
            wrong.push(format!("{name}: {warm}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
