//! Engines allocate nothing once they are warm: each kind of call, with wildcards, over and over.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use tagwire_conformance::allocations::{CountingAllocator, allocations};
use tagwire_lab::Rounds;
use tagwire_matching::registry::DESCRIPTIONS;
use tagwire_matching::{Capacity, Engine, EngineName};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// What an engine allocates in so many rounds.
fn allocated(rounds: &mut Rounds, engine: &mut dyn Engine, count: u32) -> u64 {
    let before = allocations();
    rounds.run(engine, count);
    allocations() - before
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
        let cold = allocated(&mut rounds, &mut engine, Rounds::WARM);
        assert!(cold > 0, "{name} has no memory, or nothing is counted");
        let warm = allocated(&mut rounds, &mut engine, 50);
        if warm > 0 {
            wrong.push(format!("{name}: {warm}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
