//! Ranks that know their numbers and one address, as torchrun's do: started one by one, by nobody who watches them.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::process::{Job, Line, Outcome, example, rank};

/// A rank of a job of `size` ranks that meet at `port`.
fn line(program: &Path, (rank, size): (u32, u32), port: u16) -> Line {
    Line::of(program, [""; 0])
        .env("RANK", rank.to_string())
        .env("WORLD_SIZE", size.to_string())
        .env("MASTER_ADDR", "127.0.0.1")
        .env("MASTER_PORT", port.to_string())
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}

fn start(program: &Path, size: u32, arguments: &[&str]) -> Vec<Job> {
    let port = free_port();
    // The others first: rank 0 may come late.
    let mut jobs: Vec<Job> = (0..size)
        .rev()
        .map(|number| line(program, (number, size), port).args(arguments).start())
        .collect();
    jobs.reverse();
    jobs
}

fn refused(outcome: &Outcome, parts: &[&str]) {
    assert_ne!(outcome.status, 0, "{outcome:#?}");
    for part in parts {
        assert!(outcome.errors().contains(part), "{part}: {outcome:#?}");
    }
}

#[test]
fn they_are_one_job() {
    for size in [1, 2, 5] {
        let outcomes: Vec<_> = start(&example("ring"), size, &["100"])
            .into_iter()
            .map(Job::finish)
            .collect();
        for outcome in &outcomes {
            assert_eq!(outcome.status, 0, "{outcome:#?}");
        }
        outcomes[0].line(&format!("{size} ranks, {} hops", 100 * size));
    }
}

#[test]
fn the_end_of_one_is_heard_by_all() {
    // Of rank 1 by the word of rank 0, of rank 0 by the loss of its store.
    for dead in [1, 0] {
        let mut jobs = start(&rank(), 3, &["hang"]);
        for (number, job) in jobs.iter_mut().enumerate() {
            job.hear(&format!("{number} ready"));
        }
        let process = jobs[dead].launcher();
        rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
        let start = Instant::now();
        for (number, job) in jobs.into_iter().enumerate() {
            let outcome = job.finish();
            assert_ne!(outcome.status, 0, "{outcome:#?}");
            let told = outcome.errors().contains(&format!("rank {dead}"));
            assert!(told || number == dead, "{outcome:#?}");
        }
        assert!(
            start.elapsed() < Duration::from_secs(5),
            "{:?}",
            start.elapsed()
        );
    }
}

/// By the word of rank 0, which sees that their connections end.
#[test]
fn an_abort_and_an_early_end_are_heard_by_all() {
    for (scenario, status) in [("abort", 7), ("exit", 3)] {
        let jobs = start(&rank(), 3, &[scenario]).into_iter();
        for (number, outcome) in jobs.map(Job::finish).enumerate() {
            if number == 1 {
                assert_eq!(outcome.status, status, "{outcome:#?}");
            } else {
                refused(&outcome, &["rank 1"]);
            }
        }
    }
}

/// Another service, which takes the connection and says nothing.
#[test]
fn whoever_says_nothing_is_waited_for_as_long_as_is_said() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let alone = line(&example("ring"), (1, 2), port).env("TAGWIRE_LATE_RANKS", "300ms");
    let start = Instant::now();
    let place = format!("127.0.0.1:{port}");
    refused(
        &alone.finish(),
        &["cannot be reached", &place, "0.3 s", "TAGWIRE_LATE_RANKS"],
    );
    // The store of a launcher has a minute.
    assert!(start.elapsed() < Duration::from_secs(30));
}

#[test]
fn ranks_that_do_not_come_are_waited_for_as_long_as_is_said() {
    for (number, part) in [(0, "not every rank"), (1, "cannot be reached")] {
        let alone =
            line(&example("ring"), (number, 2), free_port()).env("TAGWIRE_LATE_RANKS", "300ms");
        refused(
            &alone.finish(),
            &[part, "TAGWIRE_LATE_RANKS", "0.3 s", "torchrun"],
        );
    }
    let nonsense = line(&example("ring"), (0, 2), free_port()).env("TAGWIRE_LATE_RANKS", "soon");
    refused(&nonsense.finish(), &["TAGWIRE_LATE_RANKS", "soon"]);
}

#[test]
fn who_does_not_know_the_secret_is_no_rank() {
    let port = free_port();
    let inside = line(&example("ring"), (0, 2), port)
        .env("TAGWIRE_RENDEZVOUS_SECRET", "known to two")
        .env("TAGWIRE_LATE_RANKS", "1s")
        .start();
    let outside = line(&example("ring"), (1, 2), port).finish();
    refused(&outside, &["secret"]);
    refused(&inside.finish(), &["not every rank"]);
    let long =
        line(&example("ring"), (0, 2), port).env("TAGWIRE_RENDEZVOUS_SECRET", "x".repeat(33));
    refused(&long.finish(), &["TAGWIRE_RENDEZVOUS_SECRET", "33 bytes"]);
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let outcome = line(&example("ring"), (0, 2), port).finish();
    refused(&outcome, &[&port.to_string(), "in use"]);
}

/// A library whose interface is another one, one that is none, and none at all.
#[test]
fn a_pmix_library_that_does_not_fit_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let old = folder.path().join("libpmix.so.2");
    let source = folder.path().join("old.c");
    let code = "const char *PMIx_Get_version(void) { return \"OpenPMIx 2.2.5\"; }\n";
    std::fs::write(&source, code).unwrap();
    let compiled = Command::new("cc")
        .args(["-shared", "-fPIC", "-o"])
        .args([&old, &source])
        .status();
    assert!(compiled.unwrap().success());
    let libc = Path::new("libc.so.6");
    let none = folder.path().join("nothing.so");
    for (library, part) in [
        (old.as_path(), "versions from 3 on"),
        (libc, "has no PMIx_Get_version"),
        (&none, "cannot be opened"),
    ] {
        let outcome = Line::of(&example("ring"), ["10"])
            .env("PMIX_RANK", "0")
            .env("PMIX_NAMESPACE", "job")
            .env("PMIX_SERVER_URI41", "nobody")
            .env("TAGWIRE_LIBPMIX", library)
            .finish();
        refused(&outcome, &[part, &library.display().to_string()]);
    }
}

/// A PMIx library whose server says this rank's number, and of so many ranks as `SIZE`, or nothing.
const PMIX: &str = r#"
#include <string.h>
typedef struct { char namespace[256]; unsigned rank; } process;
typedef struct { unsigned short type; union { unsigned number; long long room[3]; } data; } value;
typedef void (*on_value)(int, value *, void *);
const char *PMIx_Get_version(void) { return "OpenPMIx 5.0.0"; }
const char *PMIx_Error_string(int status) { return status == -25 ? "UNREACHABLE" : "?"; }
int PMIx_Init(process *own, void *info, unsigned long count) {
    strcpy(own->namespace, "job");
    own->rank = 7;
    return INIT;
}
int PMIx_Get_nb(const process *of, const char *key, const void *info, unsigned long count, on_value done, void *context) {
    value size = { 14, { .number = SIZE } };
    if (SIZE > 0)
        done(0, &size, context);
    return 0;
}
int PMIx_Put(unsigned char scope, const char *key, value *value) { return 0; }
int PMIx_Commit(void) { return 0; }
int PMIx_Fence_nb(void *of, unsigned long n, void *info, unsigned long count, void *done, void *context) { return 0; }
int PMIx_Finalize(void *info, unsigned long count) { return 0; }
int PMIx_Initialized(void) { return 0; }
int PMIx_Abort(int status, const char *text, void *of, unsigned long count) { return 0; }
int PMIx_Register_event_handler(void) { return -1; }
int PMIx_Deregister_event_handler(void) { return -1; }
"#;

#[test]
fn a_pmix_server_that_says_nonsense_or_nothing_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("server.c");
    std::fs::write(&source, PMIX).unwrap();
    for (name, init, size, parts) in [
        (
            "refuses",
            "-25",
            "2",
            &["PMIx_Init returns -25 (UNREACHABLE)"][..],
        ),
        ("out", "0", "2", &["this is rank 7 of 2"]),
        (
            "silent",
            "0",
            "0",
            &["no number of ranks", "within 0.3 s", "TAGWIRE_LATE_RANKS"],
        ),
        // All is well but for the other ranks, which do not come.
        (
            "alone",
            "0",
            "9",
            &["not every rank", "within 0.3 s", "TAGWIRE_LATE_RANKS"],
        ),
    ] {
        let library = folder.path().join(format!("{name}.so"));
        let compiled = Command::new("cc")
            .args(["-shared", "-fPIC", "-o"])
            .args([&library, &source])
            .args([format!("-DINIT={init}"), format!("-DSIZE={size}")])
            .status();
        assert!(compiled.unwrap().success());
        let outcome = Line::of(&example("ring"), ["10"])
            .env("PMIX_RANK", "7")
            .env("PMIX_NAMESPACE", "job")
            .env("PMIX_SERVER_URI41", "nobody")
            .env("TAGWIRE_LIBPMIX", library)
            .env("TAGWIRE_LATE_RANKS", "300ms")
            .finish();
        refused(&outcome, &[&["PMIx"], parts].concat());
    }
}
