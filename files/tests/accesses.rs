//! Accesses of all kinds against an array of bytes: random views, ranks, hints and lengths.

use std::sync::Arc;

use tagwire_files::{File, Outcome};

use crate::common::cases::{Case, Part, with_data, with_room};
use crate::common::memory::{Fault, Memory, When};
use crate::common::{Chance, cases_of, open, open_on_a_host, ranks, ranks_of_a_host};

/// Groups: on which host each member is.
const GROUPS: [&[u64]; 6] = [
    &[0],
    &[0, 0],
    &[0, 1],
    &[0, 0, 0],
    &[5, 3, 5],
    &[0, 1, 0, 1],
];

/// Cases with each group, of 256.
const CASES: u64 = 43;

pub fn write(file: &File, part: &Part, is_collective: bool) -> Outcome {
    with_data(&part.data, part.has_gaps, |data| match is_collective {
        true => file.write_all(part.access(), data),
        false => file.write(part.access(), data),
    })
}

pub fn read(file: &File, part: &Part, is_collective: bool) -> (Outcome, Vec<u8>) {
    with_room(part.data.len(), part.has_gaps, |room| match is_collective {
        true => file.read_all(part.access(), room),
        false => file.read(part.access(), room),
    })
}

/// Returns the bytes that a member reads of a file.
pub fn expected(part: &Part, file: &[u8]) -> Vec<u8> {
    let own = part.own().iter();
    let found = own.map_while(|offset| file.get(*offset as usize));
    found.copied().collect()
}

/// Returns how many cases each group has: `FILES_CASES` says how many all of [`GROUPS`] have.
fn cases() -> u64 {
    let all = std::env::var("FILES_CASES").ok();
    let all = all.and_then(|all| all.parse::<u64>().ok());
    all.map_or_else(|| cases_of(CASES), |all| all.div_ceil(GROUPS.len() as u64))
}

/// Runs cases on each group. System calls fail as `when` says, which shows in nothing.
fn run(seed: u64, when: When) {
    for (number, hosts) in GROUPS.iter().enumerate() {
        let memory = Memory::default();
        ranks(hosts.len() as u32, |team| {
            let me = team.me();
            let first = Case::new(hosts.len(), &mut Chance::new(seed));
            let file = open(team, Arc::new(memory.clone()), first.hints, hosts[me]).unwrap();
            for round in 0..cases() {
                let chance = seed + (number as u64) * 10_000_000 + round;
                one(&file, &memory, chance, when);
            }
            file.close().unwrap();
        });
    }
}

/// Runs cases on groups of a host, whose members map memory of each other.
fn run_on_a_host(seed: u64, when: When) {
    for size in 2..=4 {
        let memory = Memory::default();
        ranks_of_a_host(size, |team| {
            let first = Case::new(size as usize, &mut Chance::new(seed));
            let file = open_on_a_host(team, Arc::new(memory.clone()), first.hints).unwrap();
            for round in 0..cases() {
                let chance = seed + u64::from(size) * 10_000_000 + round;
                one(&file, &memory, chance, when);
            }
            let said = format!("{file:?}");
            assert!(said.contains("common: OnceLock(Some("), "{said}");
            file.close().unwrap();
        });
    }
}

fn one(file: &File, memory: &Memory, seed: u64, when: When) {
    let mut chance = Chance::new(seed);
    let (me, size) = (file.team().me(), file.team().size());
    let case = Case::new(size, &mut chance);
    let [writes_all, reads_all] = [chance.below(4) > 0, chance.below(4) > 0];
    file.change_hints(|hints| *hints = case.hints.clone());
    if me == 0 {
        memory.set(&case.file);
        memory.fail(when);
    }
    file.team().barrier().unwrap();
    let part = &case.members[me];
    let outcome = write(file, part, writes_all);
    assert!(outcome.error.is_none(), "seed {seed}: {outcome:?}");
    assert_eq!(outcome.bytes, part.data.len() as u64, "seed {seed}");
    file.team().barrier().unwrap();
    let written = case.written();
    assert!(
        memory.bytes() == written,
        "seed {seed}: another file: {case:?}"
    );
    // What others have written is read, too, and less where the file ends.
    let other = Case::new(size, &mut chance);
    let part = &other.members[me];
    let (outcome, bytes) = read(file, part, reads_all);
    let wanted = expected(part, &written);
    assert!(outcome.error.is_none(), "seed {seed}: {outcome:?}");
    assert_eq!(outcome.bytes, wanted.len() as u64, "seed {seed}: {other:?}");
    assert_eq!(bytes[..wanted.len()], wanted, "seed {seed}");
    file.team().barrier().unwrap();
}

#[test]
fn files_are_as_an_array_of_bytes_is() {
    run(1, When::Never);
}

#[test]
fn files_of_a_host_are_as_an_array_of_bytes_is() {
    run_on_a_host(4, When::Never);
}

#[test]
fn short_calls_are_gone_on_with() {
    run(2, When::Always(Fault::Short));
}

#[test]
fn interrupted_calls_are_repeated() {
    run(3, When::Always(Fault::Interrupted));
}
