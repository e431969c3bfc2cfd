//! The command with an engine of its own: the template below `examples/engine`, which `ci/engines` also builds as a crate outside
//! of the workspace.

use std::process::Command;

use serde_json::Value;

use crate::command::{Outcome, Tagwire};
use crate::process::example;

/// The template's command, in an environment without settings.
fn mine(line: &str) -> Outcome {
    let command = Tagwire::of(Command::new(example("test_engine")));
    command.args(line.split_whitespace()).outcome()
}

#[test]
fn an_engine_of_its_own_is_listed_checked_and_measured() {
    let listed = mine("match list");
    for part in [
        "ucx: bins by a hash",
        "mine: a template",
        "  reserve=0 to 1048576: ",
    ] {
        assert!(listed.stdout.contains(part), "{listed:#?}");
    }
    let checked = mine("match check mine,mine:reserve=9 --operations 20000");
    assert_eq!((checked.status, &*checked.stderr), (0, ""), "{checked:#?}");
    let told = "mine:reserve=9: passed as exact: 20000 operations";
    assert!(checked.stdout.contains(told), "{checked:#?}");
    let line = "match depth --engine mine,list --ahead 16 --cache hot --blocks 1 --format json";
    let depth: Value = serde_json::from_str(&mine(line).stdout).unwrap();
    for (row, engine) in ["mine", "list"].into_iter().enumerate() {
        let row = &depth["rows"][row];
        assert_eq!(
            (&row["engine"], &row["attempts"]),
            (&engine.into(), &17.0.into())
        );
        assert!(row["lines"].as_f64() > Some(8.0), "{row}");
    }
}

#[test]
fn an_engine_of_its_own_matches_the_messages_of_a_job() {
    let line = "bench latency -m 8 -i 20 -x 2 --posted 40 --format json --engine mine:reserve=64";
    let outcome = mine(line);
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let used = &document["environment"]["transports"][0];
    assert_eq!(used["engine"], "mine:reserve=64");
    let said = mine("info engines").stdout;
    assert!(said.contains("mine: a template"), "{said}");
}

#[test]
fn what_only_one_command_knows_is_refused_with_the_nearest_name() {
    let refused = mine("match check mime");
    assert_eq!(refused.status, 1, "{refused:#?}");
    assert!(
        refused.stderr.contains("did you mean 'mine'?"),
        "{refused:#?}"
    );
    let refused = mine("bench latency --engine mine:resrve=8");
    assert!(
        refused.stderr.contains("did you mean 'reserve'?"),
        "{refused:#?}"
    );
    let other = crate::command::tagwire()
        .args(["match", "check", "mine"])
        .outcome();
    assert_eq!(other.status, 1, "{other:#?}");
    assert!(
        other.stderr.contains("unknown matching engine 'mine'"),
        "{other:#?}"
    );
}
