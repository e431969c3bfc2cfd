//! Shared memory for ranks of one host and a network for the others, in one job.
use std::path::PathBuf;
use std::time::Duration;

use crate::process::{KILLED, Line, Outcome, example, has_libfabric, rank, run_line};

/// What puts two ranks each on a host of their own.
const TWO_BY_TWO: &str = "TAGWIRE_HOST=host-$((TAGWIRE_RANK / 2)) exec \"$0\" \"$@\"";

const BOTH: &str = "shm+ofi:tcp;ofi_rxm";

/// The design says one second. Here more, for machines that do ten other things.
const SOON: Duration = Duration::from_secs(2);

fn line_on_two_hosts(ranks: u32, options: &[&str], program: PathBuf, arguments: &[&str]) -> Line {
    run_line(ranks, &[&["--transport", BOTH], options].concat())
        .args(["sh", "-c", TWO_BY_TWO])
        .args([program])
        .args(arguments)
}

fn on_two_hosts(ranks: u32, program: PathBuf, arguments: &[&str]) -> Outcome {
    line_on_two_hosts(ranks, &[], program, arguments).finish()
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

/// Rank 1 dies: rank 0 shares its host, ranks 2 and 3 reach it by the network. All sleep in receives.
#[test]
fn the_death_of_a_rank_is_known_across_both() {
    if !has_libfabric("the_death_of_a_rank_is_known_across_both") {
        return;
    }
    let mut job =
        line_on_two_hosts(4, &["--on-failure", "continue"], rank(), &["death-asleep"]).start();
    for rank in 0..4 {
        job.hear(&format!("{rank} ready"));
    }
    // Long enough for all to have gone from spinning to sleeping.
    std::thread::sleep(Duration::from_millis(500));
    let killed = job.kill(1);
    for rank in [0, 2, 3] {
        job.hear(&format!("{rank} saw it fail"));
        let took = killed.elapsed();
        eprintln!("rank {rank} saw it {took:?} after the death");
        assert!(took < SOON, "rank {rank} saw it after {took:?}");
    }
    let outcome = job.finish();
    assert_eq!(outcome.status, KILLED, "{outcome:#?}");
}
