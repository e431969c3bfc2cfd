//! Random epochs of windows against plain bytes: every kind of synchronization and of access, with derived datatypes, and calls that
//! are wrong where they are made.
//!
//! `PROPTEST_CASES=n` runs more seeds or fewer, of which the usual number is 256; `WINDOWS_SEED=n` runs one.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

#[path = "../common/mod.rs"]
mod common;
mod misuse;
mod oracle;
mod origin;
mod program;
mod rank;
mod shapes;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use common::sites::{FAR, NEAR, SERVED, Site};
use program::Program;
use tagwire_base::bootstrap::LocalJob;
use tagwire_conformance::{Chance, cases_of};

/// Programs that are run by one group of ranks.
const PROGRAMS: usize = 4;

/// Runs programs of a seed. A rank whose checks fail is declared dead, so that the others end.
fn run(seed: u64, sizes: &[usize], site: Site) {
    let mut chance = Chance::new(seed);
    let size = chance.one_of(sizes);
    let kinds = site.kinds();
    let programs: Vec<Program> = (0..PROGRAMS)
        .map(|_| Program::new(size, kinds, &mut chance))
        .collect();
    let job = LocalJob::new(size as u32).unwrap();
    let body = |number: u32| {
        let process = site.open(&job, size as u32, number).unwrap();
        let run = || {
            for program in &programs {
                rank::Rank::run(&process, number as usize, program);
            }
        };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
            job.declare_failed(tagwire_base::Rank::new(number));
            resume_unwind(panic);
        }
        process.finalize().unwrap();
    };
    let ends: Vec<_> = std::thread::scope(|scope| {
        let body = &body;
        let ranks = (0..size as u32).map(|number| scope.spawn(move || body(number)));
        let ranks: Vec<_> = ranks.collect();
        ranks.into_iter().map(|rank| rank.join()).collect()
    });
    // Each has said why it failed.
    if let Some(panic) = ends.into_iter().find_map(Result::err) {
        resume_unwind(panic);
    }
}

/// Runs so many seeds.
fn check(few: u64, sizes: &[usize], site: Site) {
    let one = std::env::var("WINDOWS_SEED").ok();
    let seeds = match one.map(|seed| seed.parse::<u64>().unwrap()) {
        Some(seed) => seed..seed + 1,
        None => 0..cases_of(few),
    };
    for seed in seeds {
        let run = AssertUnwindSafe(|| run(seed, sizes, site));
        if let Err(panic) = catch_unwind(run) {
            eprintln!("seed {seed}, {site:?}; again: WINDOWS_SEED={seed}");
            resume_unwind(panic);
        }
    }
}

#[test]
fn windows_are_as_plain_bytes_are() {
    check(40, &[1, 2, 3, 4], NEAR);
}

#[test]
fn windows_are_the_same_without_cross_memory_attach() {
    check(20, &[2, 3, 4], SERVED);
}

#[test]
fn windows_are_the_same_between_hosts() {
    let test = "windows_are_the_same_between_hosts";
    for site in FAR {
        if site.is_there(test) {
            check(4, &[2, 3, 4], site);
        }
    }
}
