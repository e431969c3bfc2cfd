//! Far more unexpected messages than a rank has memory for.

use crate::process::Job;

/// Messages of 4 KiB: 0.16 GB, more than twice the budget. The variable sets another number; `ci/full` has 120,000. Where
/// others compute on the ranks' core, each message past the budget takes a millisecond.
const COUNT: &str = "40000";
const COUNT_VARIABLE: &str = "FLOOD_TEST_COUNT";
/// The budgets for payload and headers, and what is no message: the first contact and the code's pages, less than
/// 1 MiB, and rounding where the system gives huge pages unasked.
const MOST_KIB: u64 = (64 + 16 + 8) << 10;

#[test]
fn a_flood_stays_within_the_budgets_and_loses_nothing() {
    let count = std::env::var(COUNT_VARIABLE).unwrap_or_else(|_| COUNT.to_owned());
    let outcome = Job::of_ranks(2, &[], &["flood", &count]).finish();
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    let line = outcome.line("0 grew ");
    eprintln!("{count} messages of 4 KiB: {line}");
    // `0 grew A KiB until the last tag, B KiB at most; ...`
    let words: Vec<&str> = line.split(' ').collect();
    for place in [2, 8] {
        let grown: u64 = words[place].parse().unwrap();
        assert!(grown <= MOST_KIB, "{line}");
    }
}

/// What a request costs does not grow with their number, beyond what caches do.
#[test]
fn a_scope_may_have_very_many_requests() {
    let outcome = Job::of_ranks(1, &[], &["many-requests"]).finish();
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    let cost = |count: &str| -> f64 {
        let line = outcome.line(&format!("for one of {count}:"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    let (few, many) = (cost("2000"), cost("100000"));
    eprintln!("a request costs {few} us among 2,000 and {many} us among 100,000");
    // Where each is searched for among the others, this factor is near 50.
    assert!(many < 15.0 * few.max(0.2), "{few} us, {many} us");
}
