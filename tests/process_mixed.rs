//! Shared memory for ranks of one host and a network for the others, in one job.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod process;

use std::path::PathBuf;

use process::{Outcome, example, has_libfabric, rank, run_line};

/// What puts two ranks each on a host of their own.
const TWO_BY_TWO: &str = "TAGWIRE_HOST=host-$((TAGWIRE_RANK / 2)) exec \"$0\" \"$@\"";

const BOTH: &str = "shm+ofi:tcp;ofi_rxm";

fn on_two_hosts(ranks: u32, program: PathBuf, arguments: &[&str]) -> Outcome {
    run_line(ranks, &["--transport", BOTH])
        .args(["sh", "-c", TWO_BY_TWO])
        .args([program])
        .args(arguments)
        .finish()
}

#[test]
fn all_exchange_with_all_across_both() {
    if !has_libfabric("all_exchange_with_all_across_both") {
        return;
    }
    let outcome = on_two_hosts(4, rank(), &["exchange"]);
    assert_eq!(outcome.status, 0, "{outcome:#?}");
}

/// A master that takes results from any source, some by shared memory and some by the network.
#[test]
fn any_source_takes_from_both() {
    if !has_libfabric("any_source_takes_from_both") {
        return;
    }
    for program in ["master_worker", "halo", "ring"] {
        let outcome = on_two_hosts(4, example(program), &[]);
        assert_eq!(outcome.status, 0, "{program}: {outcome:#?}");
    }
}

#[test]
fn the_death_of_a_rank_is_known_across_both() {
    if !has_libfabric("the_death_of_a_rank_is_known_across_both") {
        return;
    }
    let outcome = on_two_hosts(4, rank(), &["panic-unmatched"]);
    assert_ne!(outcome.status, 0, "{outcome:#?}");
}
