//! A program that opens its session again and again, as long runs of many steps do.

use crate::process::Job;

/// How many sessions. The variable sets another number; `ci/full` has 10,000.
const COUNT: u32 = 300;
const COUNT_VARIABLE: &str = "RESTARTS_TEST_COUNT";
/// How often each rank says how far it is.
const STEP: usize = 50;

/// Descriptors, mappings and memory of the ranks and of their launcher are what they were.
#[test]
fn sessions_that_are_opened_again_leave_nothing_behind() {
    let count = std::env::var(COUNT_VARIABLE).map_or(COUNT, |count| count.parse().unwrap());
    let mut job = Job::of_ranks(2, &[], &["restarts", &count.to_string()]);
    for number in (STEP..=count as usize).step_by(STEP) {
        job.hear_several(&format!("has had {number} sessions"), 2);
    }
    let outcome = job.finish();
    for line in outcome.stdout.iter().filter(|line| line.contains(" held ")) {
        eprintln!("{count} sessions: {line}");
    }
    assert_eq!(outcome.status, 0, "{outcome:#?}");
}
