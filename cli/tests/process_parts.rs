//! Jobs of which several `tagwire run` start a part each, as on several hosts; here all are on this one.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::process::{
    Job, KILLED, Line, Outcome, PATIENCE, eventually, example, rank, secret, tagwire,
};
use rustix::process::{Pid, Signal, kill_process};

/// How soon the end of a part ends the others.
const SOON: Duration = Duration::from_secs(5);

fn free_place() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

fn listens(place: &str, ranks: &str, of: &str) -> Line {
    Line::new([
        "run",
        "-n",
        ranks,
        "--of",
        of,
        "--listen",
        place,
        "--secret",
        &secret("ours"),
        "--",
    ])
}

fn connects(place: &str, ranks: &str, known: &str) -> Line {
    Line::new([
        "run",
        "-n",
        ranks,
        "--connect",
        place,
        "--secret",
        &secret(known),
        "--",
    ])
}

fn said(outcome: &Outcome, parts: &[&str]) {
    for part in parts {
        assert!(outcome.errors().contains(part), "{part}: {outcome:#?}");
    }
}

/// Two parts of the test program, of which each rank has said which process it is.
fn two_parts(scenario: &str) -> [Job; 2] {
    let place = free_place();
    let parts = [listens(&place, "2", "3"), connects(&place, "1", "ours")];
    parts.map(|line| line.args([rank()]).args([scenario]).start())
}

#[test]
fn parts_are_one_job_in_whatever_order_they_come() {
    let place = free_place();
    // Those that connect wait until somebody listens.
    let others: Vec<Job> = ["1", "2"]
        .map(|ranks| {
            connects(&place, ranks, "ours")
                .args([example("ring")])
                .args(["100"])
                .start()
        })
        .into();
    std::thread::sleep(Duration::from_millis(100));
    let outcome = listens(&place, "2", "5")
        .args([example("ring")])
        .args(["100"])
        .finish();
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    outcome.line("5 ranks, 500 hops");
    for other in others {
        let outcome = other.finish();
        assert_eq!(
            (outcome.status, &*outcome.stdout),
            (0, &[][..]),
            "{outcome:#?}"
        );
    }
}

#[test]
fn ranks_are_numbered_by_the_order_in_which_hosts_come() {
    let place = free_place();
    let script = "echo $TAGWIRE_RANK of $TAGWIRE_SIZE, $TAGWIRE_LOCAL_RANK of $TAGWIRE_LOCAL_SIZE";
    let words = ["sh", "-c", script];
    let first = listens(&place, "1", "3").args(words).start();
    let second = Line::new([
        "run",
        "-n",
        "2",
        "--connect",
        &place,
        "--secret",
        &secret("ours"),
        "--tag-output",
    ])
    .args(["--"])
    .args(words)
    .finish();
    let mut lines = second.stdout;
    lines.sort_unstable();
    assert_eq!(lines, ["[1] 1 of 3, 0 of 2", "[2] 2 of 3, 1 of 2"]);
    assert_eq!(first.finish().stdout, ["0 of 3, 0 of 1"]);
}

/// Two ranks of one part and one of the other, so that the groups have two levels.
#[test]
fn collectives_cross_hosts() {
    for (test, sizes) in [
        ("barrier", &[][..]),
        ("bcast", &["-m", "8,13,100K"]),
        ("reduce", &["-m", "8,13,100K"]),
        ("allreduce", &["-m", "8,13,100K"]),
        ("allgather", &["-m", "8,13,100K"]),
        ("alltoall", &["-m", "8,13,100K"]),
    ] {
        let place = free_place();
        let parts = [listens(&place, "2", "3"), connects(&place, "1", "ours")].map(|line| {
            line.args([tagwire()])
                .args(["bench", test, "-i", "3", "-x", "1", "-c"])
                .args(sizes)
                .start()
        });
        let [first, second] = parts.map(Job::finish);
        assert_eq!(
            (first.status, second.status),
            (0, 0),
            "{first:#?} {second:#?}"
        );
        let rows = first.stdout.iter().filter(|line| !line.starts_with('#'));
        assert_eq!(
            rows.count(),
            if sizes.is_empty() { 1 } else { 3 },
            "{first:#?}"
        );
    }
}

#[test]
fn a_failure_in_one_part_ends_the_others() {
    for dead in [0, 1] {
        let mut parts = two_parts("hang");
        parts[0].hear("0 ready");
        parts[0].hear("1 ready");
        parts[1].hear("2 ready");
        let number = [0, 2][dead];
        parts[dead].kill(number);
        let start = Instant::now();
        let [first, second] = parts.map(Job::finish);
        assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
        assert_eq!(
            (first.status, second.status),
            (KILLED, KILLED),
            "{first:#?} {second:#?}"
        );
    }
}

#[test]
fn an_abort_ends_all_parts_with_its_status() {
    let [first, second] = two_parts("abort").map(Job::finish);
    assert_eq!(
        (first.status, second.status),
        (7, 7),
        "{first:#?} {second:#?}"
    );
}

/// A part whose one rank says its process and is over, and one whose rank ends with 3 once `file` is there, or with its host.
fn one_over_and_one_that_goes_on(over: Line, goes_on: Line, file: &Path) -> [Job; 2] {
    let waits = format!(
        "echo waits; while [ ! -e {} ]; do sleep 0.01; done; exit 3",
        file.display()
    );
    let mut goes_on = goes_on.args(["sh", "-c", &waits]).start();
    let mut over = over.args(["sh", "-c", "echo process $$"]).start();
    goes_on.hear("waits");
    let process = over.hear("process ").split_off("process ".len());
    eventually("the rank is over", || {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
        stat.is_ok_and(|stat| stat.contains(") Z "))
    });
    [over, goes_on]
}

#[test]
fn all_parts_have_the_status_of_the_job_also_those_that_were_over_before() {
    let folder = tempfile::tempdir().unwrap();
    for listening in [true, false] {
        let file = folder.path().join(format!("go-{listening}"));
        let place = free_place();
        let (first, other) = (listens(&place, "1", "2"), connects(&place, "1", "ours"));
        let parts = if listening {
            one_over_and_one_that_goes_on(other, first, &file)
        } else {
            one_over_and_one_that_goes_on(first, other, &file)
        };
        std::fs::write(&file, "").unwrap();
        let [over, went_on] = parts.map(Job::finish);
        assert_eq!(
            (over.status, went_on.status),
            (3, 3),
            "{over:#?} {went_on:#?}"
        );
        said(&over, &["with status 3"]);
    }
}

#[test]
fn a_part_that_is_over_hears_that_the_host_that_listens_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let place = free_place();
    let (first, other) = (listens(&place, "1", "2"), connects(&place, "1", "ours"));
    let file = folder.path().join("never");
    let [over, goes_on] = one_over_and_one_that_goes_on(other, first, &file);
    kill_process(goes_on.launcher(), Signal::KILL).unwrap();
    let outcome = over.finish();
    assert_eq!(outcome.status, 2, "{outcome:#?}");
    said(&outcome, &["the host that listens is lost"]);
}

#[test]
fn a_launcher_that_is_lost_ends_its_ranks_and_the_others() {
    for lost in [0, 1] {
        let mut parts = two_parts("hang");
        parts[0].hear("1 ready");
        parts[1].hear("2 ready");
        let survivor = 1 - lost;
        let [first, second] = &mut parts;
        let process = if lost == 0 { first } else { second }.launcher();
        kill_process(process, Signal::KILL).unwrap();
        let start = Instant::now();
        let outcome = parts.map(Job::finish).into_iter().nth(survivor).unwrap();
        assert_eq!(outcome.status, 2, "{outcome:#?}");
        assert!(start.elapsed() < SOON, "{:?}", start.elapsed());
        let own = rustix::system::uname();
        let lost = match lost {
            0 => "the host that listens is lost".to_owned(),
            _ => {
                let name = own.nodename().to_string_lossy();
                format!("the host '{name}' is lost, and with it rank 2")
            }
        };
        said(&outcome, &[&lost]);
    }
}

#[test]
fn hosts_that_do_not_come_or_do_not_belong_are_named() {
    let place = free_place();
    let alone = listens(&place, "1", "3")
        .args(["sleep", "30"])
        .env("TAGWIRE_LATE_RANKS", "1500ms")
        .start();
    let stranger = connects(&place, "1", "theirs").args(["true"]).finish();
    said(&stranger, &["wrong job secret", &place]);
    let many = connects(&place, "3", "ours").args(["true"]).finish();
    said(&many, &["brings 3 ranks", "2 of the job's 3 are left"]);
    let outcome = alone.finish();
    assert_eq!(outcome.status, 2, "{outcome:#?}");
    said(
        &outcome,
        &["0 of 2 ranks within 1.5 s", "TAGWIRE_LATE_RANKS"],
    );
    let nobody = connects(&place, "1", "ours")
        .args(["true"])
        .env("TAGWIRE_LATE_RANKS", "200ms");
    let outcome = nobody.finish();
    assert_eq!(outcome.status, 2, "{outcome:#?}");
    said(&outcome, &[&place, "--listen", "TAGWIRE_LATE_RANKS"]);
}

/// Waits until a thread of `process` has this name.
fn wait_for_thread(process: Pid, name: &str) {
    let threads = format!("/proc/{}/task", process.as_raw_nonzero());
    let is_there = || {
        let threads = std::fs::read_dir(&threads).unwrap().flatten();
        let mut names = threads.map(|thread| std::fs::read_to_string(thread.path().join("comm")));
        names.any(|found| found.is_ok_and(|found| found.trim_end() == name))
    };
    let start = Instant::now();
    while !is_there() {
        assert!(start.elapsed() < PATIENCE, "no thread '{name}'");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_wait_for_the_host_that_listens_ends_when_it_is_told_to() {
    let place = free_place();
    let waits = connects(&place, "1", "ours").args(["true"]).start();
    wait_for_thread(waits.launcher(), "tagwire-reach");
    kill_process(waits.launcher(), Signal::INT).unwrap();
    let outcome = waits.finish();
    assert_eq!(outcome.status, 130, "{outcome:#?}");
    said(&outcome, &[&place, "signal 2 (SIGINT)"]);

    // Somebody who takes the connection and says nothing.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let place = silent.local_addr().unwrap().to_string();
    let waits = connects(&place, "1", "ours").args(["true"]).start();
    let _connection = silent.accept().unwrap();
    kill_process(waits.launcher(), Signal::TERM).unwrap();
    let outcome = waits.finish();
    assert_eq!(outcome.status, 143, "{outcome:#?}");
    said(&outcome, &[&place, "signal 15 (SIGTERM)"]);

    let place = free_place();
    let connect = [
        "run",
        "-n",
        "1",
        "--secret",
        &secret("ours"),
        "--connect",
        &place,
    ];
    let outcome = Line::new(connect)
        .args(["--timeout", "300ms", "--", "true"])
        .finish();
    assert_eq!(outcome.status, 2, "{outcome:#?}");
    said(&outcome, &[&place, "300ms", "--timeout"]);
}

#[test]
fn options_that_do_not_fit_are_refused() {
    for (options, part) in [
        (&["--of", "4"][..], "--listen"),
        (&["--listen", "127.0.0.1:0"], "--of"),
        (&["--connect", "127.0.0.1:1"], "--secret"),
        (&["--listen", "127.0.0.1:0", "--of", "2"], "2 in all"),
        (&["--secret", &secret("ours")], "--secret"),
        (
            &["--listen", "nowhere", "--of", "4"],
            "--listen is 'nowhere', and takes HOST:PORT",
        ),
        (
            &["--connect", "10.0.0.1", "--secret", &secret("ours")],
            "--connect is '10.0.0.1', and takes HOST:PORT",
        ),
        (
            &["--connect", "127.0.0.1:1", "--secret", "ours"],
            "--secret takes @FILE",
        ),
    ] {
        let outcome = Line::new(["run", "-n", "2"])
            .args(options)
            .args(["--", "true"])
            .finish();
        assert_ne!(outcome.status, 0, "{options:?}: {outcome:#?}");
        said(&outcome, &[part]);
    }
}

/// What is drawn is said where a user reads it, and nowhere else.
#[test]
fn a_secret_is_drawn_for_a_terminal_alone() {
    let program = tagwire();
    let program = program.to_str().unwrap();
    let run = ["run", "-n", "1", "--of", "2", "--listen", "127.0.0.1:0"];
    let bench = ["bench", "latency", "--listen", "127.0.0.1:0"];
    let ends = ["--timeout", "300ms"];
    for line in [
        [&run[..], &ends, &["--", "true"]].concat(),
        [&bench[..], &ends].concat(),
    ] {
        let outcome = Line::new(&line).finish();
        assert_eq!(outcome.status, 1, "{outcome:#?}");
        said(&outcome, &["terminal", "--secret @FILE"]);
        assert!(!outcome.errors().contains("this secret"), "{outcome:#?}");
        // The terminal is that of `script` (util-linux).
        let words = [&[program][..], &line[..]].concat().join(" ");
        let terminal = Command::new("script")
            .args(["-qec", &words, "/dev/null"])
            .stdin(Stdio::null())
            .output();
        let Ok(output) = terminal else {
            eprintln!("SKIPPED: there is no program 'script', which has a terminal");
            continue;
        };
        let text = String::from_utf8_lossy(&output.stdout);
        let drawn = text.split("this secret: ").nth(1).unwrap_or_default();
        let digits = drawn.chars().take_while(char::is_ascii_hexdigit).count();
        assert_eq!(digits, 32, "{text}");
    }
}
