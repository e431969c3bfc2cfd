//! The gate finds what is wrong with an engine, shows it in few operations, and passes engines that are right.
//!
//! `GATE_OPERATIONS` and `GATE_SEED` choose how long every engine is checked, and by which programs.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod faulty;

use faulty::{Fault, Faulty};
use tagwire_lab::{Failed, Gate};
use tagwire_matching::registry::DESCRIPTIONS;
use tagwire_matching::{Capacity, Engine, EngineName, Grade, Oracle};

/// Names with parameters that take other ways, beside those of all engines without.
const VARIANTS: &[&str] = &[
    "list:per=context",
    "source:dir=array",
    "source:dir=trie4,ranks=16",
    "source:any=rotate",
    "source:dir=array,any=rotate",
    "source:dir=trie4,any=rotate",
    "bins:few=0,few-unexpected=0,first=1",
    "ucx:bins=3",
    "flajslik:bins=1,key=tag",
    "flajslik:key=source",
    "chunks:k=1",
    "chunks:k=5",
    "list:stride=256",
    "list:per=context,stride=64",
    "lanes:isa=scalar",
    "fuzzy:isa=scalar",
    "fuzzy:bits=16",
    "fuzzy:bits=32",
    "portals:entries=5,headers=7",
    "portals:headers=3,overflow=1,space=64",
    "offload:n=0,u=0",
    "offload:n=4,u=2,refill=drained",
    "offload:n=7,u=3,over=bins",
    "offload:n=2,u=0,over=fuzzy",
    "adaptive:up=1,window=7",
    "partner:k=1,window=3",
    "partner:k=3,window=20",
];

fn gate(grade: Grade, operations: u64) -> Gate {
    Gate {
        grade,
        seed: 1,
        operations,
    }
}

fn named(name: &str) -> EngineName {
    name.parse().unwrap()
}

fn check(name: &EngineName, gate: Gate) -> Result<tagwire_lab::Passed, Box<Failed>> {
    gate.check_named(name)
}

/// What the gate finds in an engine with a fault, in so many programs and operations at most.
fn finds(fault: Fault, told: &str) {
    let failed = gate(Grade::Exact, 100_000)
        .check(&|capacity| Box::new(Faulty::new(fault, capacity)))
        .unwrap_err();
    assert!(
        failed.programs <= 20,
        "{fault:?} took {} programs",
        failed.programs
    );
    assert!(failed.program.operations.len() <= 6, "{fault:?}:\n{failed}");
    assert!(failed.complaint.contains(told), "{fault:?}:\n{failed}");
}

#[test]
fn any_tag_that_takes_internal_messages_is_found() {
    finds(Fault::AnyTagTakesInternal, "does not accept");
}

#[test]
fn a_directed_receive_that_wins_over_an_earlier_any_source_one_is_found() {
    finds(Fault::DirectedWins, "was posted before");
}

#[test]
fn a_search_that_skips_a_node_is_found() {
    finds(Fault::ProbeSkipsNode, "found no message, and accepts");
}

#[test]
fn a_rotation_that_claims_to_be_exact_is_found() {
    let rotating = named("source:any=rotate");
    let failed = check(&rotating, gate(Grade::Exact, 100_000)).unwrap_err();
    assert!(
        failed.programs <= 20 && failed.program.operations.len() <= 6,
        "{failed}"
    );
    assert!(failed.complaint.contains("came before"), "{failed}");
    assert_eq!(rotating.grade(), Grade::Mpi);
}

#[test]
fn an_engine_without_a_fault_passes_beside_the_faulty_ones() {
    let sound = gate(Grade::Exact, 20_000);
    sound
        .check(&|capacity| Box::new(Faulty::new(Fault::None, capacity)))
        .unwrap();
    sound
        .check(&|capacity| Box::new(Oracle::with_capacity(capacity)))
        .unwrap();
}

/// Overtaking is what `free` allows, and `mpi` does not.
#[test]
fn the_latest_instead_of_the_earliest_passes_as_free_alone() {
    let open = |capacity: Capacity| -> Box<dyn Engine + Send> {
        Box::new(Faulty::new(Fault::Latest, capacity))
    };
    gate(Grade::Free, 20_000).check(&open).unwrap();
    let failed = gate(Grade::Mpi, 20_000).check(&open).unwrap_err();
    assert!(failed.program.operations.len() <= 6, "{failed}");
}

/// A number of the environment.
fn chosen(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap())
}

#[test]
fn every_engine_passes_its_grade() {
    let operations = chosen("GATE_OPERATIONS", 20_000);
    let plain = DESCRIPTIONS
        .iter()
        .map(|description| description.named.name);
    for name in plain.chain(VARIANTS.iter().copied()) {
        let name = named(name);
        let held = Gate {
            grade: name.grade(),
            seed: chosen("GATE_SEED", 1),
            operations,
        };
        let passed = check(&name, held);
        let passed =
            passed.unwrap_or_else(|failed| panic!("{name}, seed {}:\n{failed}", held.seed));
        assert_eq!(passed.operations, operations);
    }
}

/// The text that a user reads: the program, the answers, and what is wrong.
#[test]
fn a_failure_reads_as_a_program_with_answers() {
    let failed = gate(Grade::Exact, 100_000)
        .check(&|capacity| Box::new(Faulty::new(Fault::DirectedWins, capacity)))
        .unwrap_err();
    let text = failed.to_string();
    for part in [
        "  1  post            any source, ",
        "-> queued\n",
        "\n  wrong: the message went to the receive of line 2, and that of line 1 was posted before and accepts it",
    ] {
        assert!(text.contains(part), "{part} is missing:\n{text}");
    }
    let same = gate(Grade::Exact, 100_000)
        .check(&|capacity| Box::new(Faulty::new(Fault::DirectedWins, capacity)))
        .unwrap_err();
    assert_eq!(failed, same, "a seed gives one program");
}
