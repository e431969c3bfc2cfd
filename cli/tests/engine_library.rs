//! Engines in libraries: the example in C, checked, measured, in jobs, recorded, and refused where it cannot be.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::command::{Outcome, tagwire};
use crate::process::{example, run_line};

/// Builds the example as its page says.
fn library(folder: &Path) -> String {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/engine_c");
    let file = folder.join("liblist.so");
    let made = Command::new("make")
        .arg("-C")
        .arg(here)
        .args(["--silent"])
        .arg(format!("OUTPUT={}", file.display()))
        .status()
        .unwrap();
    assert!(made.success());
    file.to_str().unwrap().to_owned()
}

/// Makes a library of a source.
fn compile(source: &Path, file: &Path) {
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c11", "-shared", "-fPIC", "-I"]);
    compiler
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("../include"))
        .arg("-o")
        .arg(file)
        .arg(source);
    assert!(compiler.status().unwrap().success());
}

fn run(line: &str) -> Outcome {
    tagwire().args(line.split_whitespace()).outcome()
}

#[test]
fn an_engine_in_c_is_checked_measured_and_matches_the_messages_of_a_job() {
    let folder = tempfile::tempdir().unwrap();
    let file = library(folder.path());
    let checked = run(&format!("match check {file} --operations 20000"));
    assert_eq!((checked.status, &*checked.stderr), (0, ""), "{checked:#?}");
    assert!(
        checked.stdout.contains("passed as exact: 20000 operations"),
        "{checked:#?}"
    );
    let list = format!("list,{file},{file}:guard=off");
    let depth = run(&format!(
        "match depth --engine {list} --ahead 16 --cache hot --blocks 1 --format json"
    ));
    assert_eq!((depth.status, &*depth.stderr), (0, ""), "{depth:#?}");
    let depth: Value = serde_json::from_str(&depth.stdout).unwrap();
    let hash = Command::new("sha256sum").arg(&file).output().unwrap();
    let hash = String::from_utf8(hash.stdout).unwrap();
    let hash = hash.split(' ').next().unwrap();
    let rows = depth["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3);
    for row in rows {
        assert_eq!(row["attempts"], 17.0, "{row}");
        assert_eq!(row["lines"].is_null(), row["engine"] != "list", "{row}");
        assert_eq!(row["checked"]["grade"], "exact", "{row}");
        let checked = match row["engine"] == "list" {
            true => Value::Null,
            false => hash.into(),
        };
        assert_eq!(row["checked"]["sha256"], checked, "{row}");
    }
    for queue in ["--posted", "--unexpected"] {
        let line =
            format!("bench latency -m 8 -i 20 -x 2 {queue} 40 --format json --engine {file}");
        let outcome = run(&line);
        assert_eq!(outcome.status, 0, "{outcome:#?}");
        let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
        let used = &document["environment"]["transports"][0];
        assert_eq!(used["engine"], *file);
        let checked = format!("exact 20000 1 sha256:{hash}");
        assert_eq!(document["rows"][0]["checked"], checked);
    }
}

#[test]
fn allocations_of_an_engine_in_c_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let right = std::fs::read_to_string(here.join("examples/engine_c/list.c")).unwrap();
    let (search, body) = (
        "uint32_t at = search(&it->unexpected, receive, 1);",
        "void *volatile own = malloc(24);\n  free(own);",
    );
    // It allocates in each post.
    let each = right.replace(search, &format!("{body}\n  {search}"));
    assert_ne!(each, right);
    let file = folder.path().join("libeach.so");
    let source = folder.path().join("each.c");
    std::fs::write(&source, each).unwrap();
    compile(&source, &file);
    // The guard's table is not the engine's.
    let file = format!("{}:guard=off", file.display());
    let line =
        format!("match check list,{file} --operations 100 --count allocations --format json");
    let counted = run(&line);
    if counted
        .stderr
        .contains("'valgrind --version' cannot be run")
    {
        return eprintln!("SKIPPED: no valgrind");
    }
    assert_eq!(counted.status, 0, "{counted:#?}");
    let document: Value = serde_json::from_str(&counted.stdout).unwrap();
    let rows = document["rows"].as_array().unwrap();
    let of = |engine: &str| {
        let row = rows.iter().find(|row| row["engine"] == engine).unwrap();
        row["allocations"].as_f64().unwrap()
    };
    assert_eq!(of("list"), 0.0);
    // A post is one call in eight, and looks for a message in its queue.
    assert_eq!(of(&file), 0.125);
}

#[test]
fn an_engine_that_fails_its_grade_is_measured_where_that_is_asked_for_alone() {
    let folder = tempfile::tempdir().unwrap();
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let right = std::fs::read_to_string(here.join("examples/engine_c/list.c")).unwrap();
    let (from, back) = (
        "at = q->first; at != NIL; at = q->entries[at].next",
        "at = q->last; at != NIL; at = q->entries[at].prev",
    );
    // It takes the last entry that fits.
    let wrong = right.replace(from, back);
    assert_ne!(wrong, right);
    let (source, file) = (
        folder.path().join("last.c"),
        folder.path().join("liblast.so"),
    );
    std::fs::write(&source, wrong).unwrap();
    compile(&source, &file);
    let line = format!(
        "bench latency -m 8 -i 20 -x 2 --format json --engine list,{}",
        file.display()
    );
    let refused = run(&line);
    assert_eq!((refused.status, &*refused.stdout), (2, ""), "{refused:#?}");
    let told = "liblast.so fails as exact and is not measured: it visits the receive of line 2";
    assert!(refused.stderr.contains(told), "{refused:#?}");
    let measured = run(&format!("{line} --unchecked"));
    assert_eq!(measured.status, 0, "{measured:#?}");
    let document: Value = serde_json::from_str(&measured.stdout).unwrap();
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert!(rows.iter().all(|row| row["checked"].is_null()), "{rows:#?}");
}

/// The library of the tests of `matching/foreign`, whose answers are wrong as `lie=` says.
fn lying(folder: &Path) -> String {
    let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let file = folder.join("liblying.so");
    compile(&here.join("matching/foreign/tests/lying.c"), &file);
    file.to_str().unwrap().to_owned()
}

#[test]
fn an_answer_that_cannot_be_ends_every_test_with_its_name_and_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    let file = lying(folder.path());
    let trace = folder.path().join("traces");
    let made = run(&format!(
        "match app halo7:x=3,y=3,z=3,steps=1 --arrivals posted --traces {}",
        trace.display()
    ));
    assert_eq!(made.status, 0, "{made:#?}");
    let trace = trace.join("posted/halo7.0.twm");
    let small = |command: &str| format!("{command} {file}:lie=small");
    let status = "answered a post with the status 9, which there is not";
    for (line, told) in [
        (format!("match check {file}:lie=status"), status),
        (
            format!("match check {file}:lie=visits"),
            "the engine has posted what cannot be: source 4294967295",
        ),
        (small("match check"), "cannot be made for"),
        (
            format!("match depth --engine {file}:lie=status --ahead 1"),
            status,
        ),
        (
            format!("match depth --engine {file}:lie=status --ahead 1 --unchecked"),
            status,
        ),
        (
            small("match depth --unchecked --engine"),
            "it holds 4 receives",
        ),
        (small("match depth --engine"), "it holds 4 receives"),
        (
            small("match threads --rounds 1 --engine"),
            "it holds 4 receives",
        ),
        (
            format!("match order --entries 8 --engine {file}:lie=status"),
            status,
        ),
        (
            format!(
                "match replay {} --passes 1 --engine {file}:lie=status",
                trace.display()
            ),
            status,
        ),
        (
            format!(
                "match replay {} --passes 1 --engine {file}:lie=small",
                trace.display()
            ),
            "it holds 4 receives",
        ),
        (
            format!(
                "match replay {} --real --passes 1 --engine {file}:lie=status",
                trace.display()
            ),
            status,
        ),
    ] {
        let refused = run(&line);
        assert_eq!(refused.status, 3, "{line}: {refused:#?}");
        let said = format!("{}{}", refused.stdout, refused.stderr);
        assert!(said.contains(told), "{line}: {said}");
        for other in ["panicked", "no room", "was full"] {
            assert!(!said.contains(other), "{line}: {said}");
        }
    }
}

#[test]
fn a_program_of_ranks_is_recorded_on_it_and_the_trace_replays() {
    let folder = tempfile::tempdir().unwrap();
    let file = library(folder.path());
    let traces = folder.path().join("traces");
    let record = traces.to_str().unwrap();
    let job = run_line(2, &["--record", record, "--engine", &file]);
    let job = job.args([example("halo")]).args(["20"]).finish();
    assert_eq!(job.status, 0, "{job:#?}");
    let line = format!("match replay {record} --engine list,bins,{file} --passes 1 --format json");
    let replayed = run(&line);
    assert_eq!(replayed.status, 0, "{replayed:#?}");
    let document: Value = serde_json::from_str(&replayed.stdout).unwrap();
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 6);
    assert!(rows.iter().all(|row| row["other"] == 0), "{rows:#?}");
    let unguarded = format!("{file}:guard=off");
    let job = run_line(1, &["--record", record, "--engine", &unguarded]);
    let job = job.args([example("ring")]).args(["1"]).finish();
    assert_ne!(job.status, 0, "{job:#?}");
    assert!(
        job.errors().contains("does not count its entries"),
        "{job:#?}"
    );
}

#[test]
fn a_library_is_refused_where_it_cannot_be() {
    let folder = tempfile::tempdir().unwrap();
    let file = library(folder.path());
    for (line, told) in [
        (
            format!("match check {file}:bins=64"),
            "it takes no parameters, and is given 'bins=64'",
        ),
        ("match check ./no/such.so".to_owned(), "No such file"),
        (
            format!("bench latency -m 8 -i 10 -p cm --engine {file}"),
            "runs under ob1 alone: under cm the transport matches, here bins",
        ),
        (
            "bench latency -m 8 -i 10 --engine ./no/such.so".to_owned(),
            "No such file",
        ),
    ] {
        let refused = run(&line);
        assert_ne!(refused.status, 0, "{line}: {refused:#?}");
        assert!(refused.stderr.contains(told), "{line}: {refused:#?}");
    }
}
