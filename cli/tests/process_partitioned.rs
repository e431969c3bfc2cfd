//! Partitioned operations between processes.

use crate::process::{Job, Outcome};

fn run(options: &[&str], arguments: &[&str]) -> Outcome {
    let outcome = Job::of_ranks(2, options, arguments).finish();
    assert_eq!(outcome.status, 0, "{options:?} {arguments:?}: {outcome:#?}");
    outcome
}

/// Over channels of both kinds, and over messages.
#[test]
fn every_byte_arrives_in_every_epoch() {
    for (options, seed) in [
        (&[][..], "1"),
        (&[][..], "2"),
        (&["--shm-cma", "off"], "3"),
        (&["--shm-descriptor", "passed"], "4"),
        (&["--pml", "cm"], "5"),
        (&["--wait", "sleep"], "6"),
    ] {
        let outcome = run(options, &["partitioned", seed]);
        for rank in [0, 1] {
            outcome.line(&format!("{rank} checked all"));
        }
    }
}

/// Partitions of 32 bytes, and of 64 KiB.
#[test]
fn a_wait_ends_when_the_sender_is_killed() {
    for len in ["4", "8192"] {
        let options = ["--on-failure", "continue"];
        let mut job = Job::of_ranks(2, &options, &["partitioned-death", len]);
        job.hear("0 is in the middle");
        job.kill(0);
        let outcome = job.finish();
        outcome.line("1 saw the failure");
    }
}
