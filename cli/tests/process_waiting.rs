//! Ranks that wait: what they tell when asked, and what they cost. And ranks that do not belong
//! to the job.

use crate::process::{Job, Line, has, rank, results, run_line};
use rustix::process::{Signal, kill_process};

#[test]
fn a_rank_that_is_asked_tells_what_it_waits_for_and_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let go = folder.path().join("go");
    let scenario = ["wait-for-file", go.to_str().unwrap()];
    let mut job = Job::of_ranks(2, &[], &scenario);
    job.hear("1 ready");
    let process = job.process(1);
    kill_process(process, Signal::USR1).unwrap();
    let layer = std::env::var("TAGWIRE_PML").unwrap_or_else(|_| "ob1".to_owned());
    job.hear(&format!("tagwire: rank 1 of 2 ({layer} over shm"));
    job.hear("receives under way: 1");
    let state = match layer.as_str() {
        "ob1" => "not matched",
        _ => "with the transport",
    };
    job.hear(&format!("room for 32 bytes: {state}"));
    job.hear("sends under way: 1");
    job.hear("to rank 0");
    job.hear("unexpected messages: 1");
    job.hear("peers in contact: 1");
    if layer == "ob1" {
        job.hear("envelopes and ");
    }
    std::fs::write(&go, "").unwrap();
    let outcome = job.finish();
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    outcome.line("1 received 8 of [42, 0, 0, 0]");
    let errors = outcome.errors();
    assert!(!errors.contains("tagwire: rank 0 of 2"), "{errors}");
    let receive = outcome
        .stderr
        .iter()
        .find(|line| line.contains("receive from"))
        .unwrap();
    assert!(receive.contains('5'), "the tag is not told: {receive}");
}

/// One that tests in a loop has the core for milliseconds where it does not yield: many thousand tests, each time that another
/// one's turn comes.
#[test]
fn ranks_that_test_take_turns() {
    let cores = std::thread::available_parallelism().unwrap().get();
    let ranks = cores as u32 + 1;
    let outcome = Job::of_ranks(ranks, &[], &["turns"]).finish();
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    for number in 0..ranks {
        let line = outcome.line(&format!("{number} tested in vain "));
        let tests: u64 = line.split(' ').nth(4).unwrap().parse().unwrap();
        assert!(tests < 50 * 1_000, "{line}");
    }
}

#[test]
fn the_launcher_asks_all_ranks() {
    let mut job = Job::of_ranks(3, &[], &["hang"]);
    for number in 0..3 {
        job.hear(&format!("{number} ready"));
    }
    kill_process(job.launcher(), Signal::USR1).unwrap();
    for number in 0..3 {
        job.hear(&format!("tagwire: rank {number} of 3"));
    }
    kill_process(job.launcher(), Signal::TERM).unwrap();
    let outcome = job.finish();
    assert_eq!(outcome.status, 128 + 15, "{outcome:#?}");
}

/// Messages of all protocols are waited for with `poll`, beside a pipe.
#[test]
fn a_descriptor_serves_for_waiting() {
    let test = "a_descriptor_serves_for_waiting";
    for transport in ["shm", "ofi:tcp;ofi_rxm", "ucx:tcp", "shm+ofi:tcp;ofi_rxm"] {
        if !has(test, transport) {
            continue;
        }
        let outcome = Job::of_ranks(2, &["-t", transport], &["descriptor"]).finish();
        assert_eq!(outcome.status, 0, "{transport}: {outcome:#?}");
        for number in 0..2 {
            outcome.line(&format!("{number} waited 100 times"));
        }
    }
}

#[test]
fn a_job_that_takes_too_long_tells_why_and_ends() {
    for wrapper in [&[][..], &["sh", "-c", "\"$0\" \"$@\"; exit $?"]] {
        let outcome = run_line(3, &["--timeout", "1500ms"])
            .args(wrapper)
            .args([rank()])
            .args(["hang"])
            .finish();
        assert_eq!(outcome.status, 2, "{outcome:#?}");
        let errors = outcome.errors();
        assert!(errors.contains("timeout"), "{errors}");
        for number in 0..3 {
            let dump = format!("tagwire: rank {number} of 3");
            assert_eq!(errors.matches(&dump).count(), 1, "{errors}");
        }
        assert_eq!(errors.matches("receives under way: 1").count(), 3);
    }
}

#[test]
fn a_benchmark_that_takes_too_long_ends_too() {
    let line = ["bench", "idle", "--seconds", "60", "--timeout", "1.5"];
    let outcome = Line::new(line).finish();
    assert_eq!(outcome.status, 2, "{outcome:#?}");
    assert!(
        outcome.errors().contains("tagwire: rank 0 of 2"),
        "{outcome:#?}"
    );
}

#[test]
fn a_waiting_rank_costs_next_to_nothing() {
    let line = ["bench", "idle", "--seconds", "1", "--format", "json"];
    let outcome = Line::new(line).finish();
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    let document = results(&outcome.stdout.join("\n"));
    let percent = document["rows"][0]["cpu_pct"].as_f64().unwrap();
    eprintln!("a rank that waits for one second uses {percent:.3} % of a core");
    // Processor time of the rank alone: what others do on the machine is not in it.
    assert!(percent < 2.0, "{percent} %");
}

/// A wrapper that gives rank 1 another secret.
fn with_wrong_secret(scenario: &str) -> String {
    let wrong = "0123456789abcdef".repeat(4);
    format!(
        "[ $TAGWIRE_RANK = 1 ] && export TAGWIRE_SECRET={wrong}; exec {} {scenario}",
        rank().display()
    )
}

#[test]
fn a_rank_without_the_secret_is_refused() {
    let script = with_wrong_secret("exchange");
    let outcome = run_line(3, &[]).args(["sh", "-c", &script]).finish();
    assert_ne!(outcome.status, 0, "{outcome:#?}");
    let errors = outcome.errors();
    assert!(errors.contains("secret"), "{errors}");
    assert!(errors.contains("rank 1: test_rank"), "{errors}");
    assert!(errors.contains("rank 1 (process"), "{errors}");
    // What it does not know it is not told either.
    assert!(
        !outcome.stdout.iter().any(|line| line.contains("exchanged")),
        "{outcome:#?}"
    );
}

#[test]
fn a_secret_that_is_none_is_refused_without_being_shown() {
    let script = format!(
        "export TAGWIRE_SECRET=not-hexadecimal; exec {} exchange",
        rank().display()
    );
    let outcome = run_line(2, &[]).args(["sh", "-c", &script]).finish();
    assert_ne!(outcome.status, 0, "{outcome:#?}");
    let errors = outcome.errors();
    assert!(errors.contains("TAGWIRE_SECRET"), "{errors}");
    assert!(!errors.contains("not-hexadecimal"), "{errors}");
}
