//! MPI programs that compute between the post of a long receive and its wait: who sends copies.

use crate::process::installed::program;
use crate::process::run_line;

/// Naps of a rank whose message comes by itself: half a minute for each.
const MANY: &str = "30000";

/// Returns what the program says, which receives 20 messages.
fn said(options: &[&str], arguments: &[&str]) -> String {
    let options = [&["-t", "shm", "--pml", "ob1"], options].concat();
    let line = run_line(2, &options).args([program("computes")]);
    let outcome = line.args(["20"]).args(arguments).finish();
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    outcome.line("computes: ").to_owned()
}

#[test]
fn long_messages_are_there_before_their_receiver_waits() {
    let all = "computes: 20 of 20 messages were there";
    assert_eq!(said(&[], &[MANY]), all);
    assert_eq!(said(&[], &[MANY, "alloc"]), all);
}

/// Nobody else moves bytes into a rank that computes.
#[test]
fn nothing_is_there_before_the_wait_where_receives_are_not_exposed() {
    let none = "computes: 0 of 20 messages were there";
    assert_eq!(said(&["--expose-receives", "no"], &["5"]), none);
}

/// As `--profile` shows it of benchmarks.
#[test]
fn a_program_says_how_its_messages_went_where_its_log_is_asked_to() {
    let line = run_line(2, &["-t", "shm", "--pml", "ob1", "--log", "info"]);
    let outcome = line.args([program("computes")]).args(["20", "5"]).finish();
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    let said = |line: &String| line.contains(": info: shm: rank ");
    assert!(outcome.stderr.iter().any(said), "{outcome:#?}");
}
