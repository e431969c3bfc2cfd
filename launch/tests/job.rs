//! Jobs as their user sees them: exit statuses, signals, orphans, output.

mod common;

use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use common::{
    Background, LONG, launcher, members, run, runs, script, state_of, wait_until, wait_until_gone,
};
use rustix::process::{Pid, Signal};
use tagwire_launch::{Job, JobSpec, OnFailure, Outcome};

#[test]
fn success_is_zero() {
    let (status, out, err) = run(script(&["-n", "3"], "echo $TAGWIRE_RANK/$TAGWIRE_SIZE"));
    assert_eq!(status, 0, "{err}");
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["0/3", "1/3", "2/3"]);
}

#[test]
fn the_first_failure_ends_the_job_with_its_status() {
    let (status, _, err) = run(script(
        &["-n", "3"],
        "if [ $TAGWIRE_RANK = 1 ]; then exit 7; fi; exec sleep 1000",
    ));
    assert_eq!(status, 7);
    assert!(
        err.contains("rank 1") && err.contains("ended with status 7: ending the job"),
        "{err}"
    );
    assert!(!err.contains("rank 0"), "only the cause is told: {err}");
}

#[test]
fn a_signal_is_128_and_its_number() {
    let (status, _, err) = run(script(
        &["-n", "2"],
        "[ $TAGWIRE_RANK = 0 ] && kill -9 $$; exec sleep 1000",
    ));
    assert_eq!(status, 137);
    assert!(
        err.contains("rank 0") && err.contains("signal 9 (SIGKILL)"),
        "{err}"
    );
}

#[test]
fn with_continue_the_others_go_on_and_the_first_failure_counts() {
    let directory = tempdir("continue");
    // Rank 1 goes on after it has seen rank 0 dead, and rank 2 fails after that.
    let mut command = script(
        &["-n", "3", "--continue"],
        "until_there() { while ! [ -s $1 ]; do sleep 0.01; done; }
         case $TAGWIRE_RANK in
            0) echo $$ > zero; exit 5;;
            1) until_there zero
               until grep -q 'State:.Z' /proc/$(cat zero)/status; do sleep 0.01; done
               echo on; echo on > one;;
            2) until_there one; exit 6;;
         esac",
    );
    command.current_dir(&directory);
    let (status, out, err) = run(command);
    assert_eq!(status, 5, "{err}");
    assert_eq!(out, "on\n");
    assert!(
        err.contains("status 5") && err.contains("status 6"),
        "{err}"
    );
    std::fs::remove_dir_all(directory).unwrap();
}

#[test]
fn a_program_that_cannot_run_is_named() {
    let directory = tempdir("programs");
    let plain = directory.join("plain");
    std::fs::write(&plain, "no program").unwrap();
    let orphaned = directory.join("orphaned");
    std::fs::write(&orphaned, "#!/no/such/interpreter\n").unwrap();
    std::fs::set_permissions(
        &orphaned,
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    for (program, expected) in [
        ("no-such-program-anywhere", 127),
        ("/no/such/program", 127),
        (plain.to_str().unwrap(), 126),
        (orphaned.to_str().unwrap(), 126),
        (directory.to_str().unwrap(), 126),
    ] {
        let (status, _, err) = run(launcher(&["-n", "3"], &[program]));
        assert_eq!(status, expected, "{program}: {err}");
        assert!(err.contains(program), "{err}");
    }
    std::fs::remove_dir_all(directory).unwrap();
}

fn tempdir(name: &str) -> std::path::PathBuf {
    let path = std::env::temp_dir().join(format!("tagwire-{name}-{}", std::process::id()));
    std::fs::create_dir(&path).expect("the folder for temporary files takes one more");
    path
}

#[test]
fn bad_usage_is_one() {
    for options in [
        &["-n", "0"][..],
        &["-n", "4000000000"],
        &["--bind", "1000"],
        &["--bind", "x"],
        &["--bind", ""],
    ] {
        let (status, _, err) = run(script(options, "true"));
        assert_eq!(status, 1, "{options:?}: {err}");
        assert!(err.starts_with("tagwire: "), "{err}");
    }
}

#[test]
fn many_ranks_on_few_cores_find_each_other() {
    let (status, out, err) = run(members(&["-n", "100", "--bind", "core"], "ring"));
    assert_eq!(status, 0, "{err}");
    assert_eq!(out.lines().count(), 100);
    let cores = std::thread::available_parallelism().unwrap().get();
    if cores < 100 {
        assert!(
            err.contains(&format!("note: 100 ranks on {cores} core")),
            "{err}"
        );
    }
}

#[test]
fn more_ranks_than_open_files_allow_by_default() {
    let mut command = script(&["-n", "40"], "ulimit -n");
    // 40 ranks cost the launcher more than 64 descriptors; the ranks keep their limit.
    let limit = rustix::process::Rlimit {
        current: Some(64),
        maximum: rustix::process::getrlimit(rustix::process::Resource::Nofile).maximum,
    };
    set_file_limit(&mut command, limit);
    let (status, out, err) = run(command);
    assert_eq!(status, 0, "{err}");
    assert!(
        out.lines().count() == 40 && out.lines().all(|line| line == "64"),
        "{out}"
    );
}

#[allow(unsafe_code)]
fn set_file_limit(command: &mut std::process::Command, limit: rustix::process::Rlimit) {
    // SAFETY: one system call that allocates nothing, between fork and exec.
    unsafe {
        command.pre_exec(move || {
            Ok(rustix::process::setrlimit(
                rustix::process::Resource::Nofile,
                limit,
            )?)
        });
    }
}

#[test]
fn ranks_are_bound() {
    let (status, out, _) = run(members(&["-n", "3", "--bind", "0"], "cpus"));
    assert_eq!(status, 0);
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort_unstable();
    assert_eq!(lines, ["0 [0]", "1 [0]", "2 [0]"]);
}

/// A rank that prints its process id and that of a child which a wrapper started.
const WRAPPED: &str = "sleep 1000 & echo $$; echo $!; wait";

#[test]
fn a_killed_launcher_leaves_no_orphans() {
    for tag in [&["-n", "2"][..], &["-n", "2", "--tag"]] {
        let mut job = Background::start(script(tag, WRAPPED));
        let pids: Vec<u32> = (0..4)
            .map(|_| job.line().rsplit(' ').next().unwrap().parse().unwrap())
            .collect();
        assert!(pids.iter().all(|&pid| runs(pid)));
        job.signal(Signal::KILL);
        wait_until_gone(&pids);
        job.end();
    }
}

#[test]
fn a_signal_to_the_launcher_ends_all_ranks() {
    for (signal, expected) in [(Signal::TERM, 143), (Signal::INT, 130), (Signal::HUP, 129)] {
        let mut job = Background::start(script(&["-n", "2"], WRAPPED));
        let pids = job.pids(4);
        job.signal(signal);
        let (status, _, err) = job.end();
        assert_eq!(status.code(), Some(expected), "{err}");
        wait_until_gone(&pids);
    }
}

#[test]
fn ranks_get_a_polite_signal_first() {
    let mut job = Background::start(script(
        &["-n", "2"],
        "trap 'echo polite; exit 0' TERM; echo ready; while :; do sleep 0.01; done",
    ));
    assert_eq!(
        (job.line(), job.line()),
        ("ready".to_owned(), "ready".to_owned())
    );
    job.signal(Signal::TERM);
    let (status, out, _) = job.end();
    assert_eq!(status.code(), Some(143));
    assert_eq!(out, "polite\npolite\n");
}

const STUBBORN: &str = "trap '' TERM; echo $$; while :; do sleep 0.01; done";

#[test]
fn who_does_not_listen_is_killed_after_the_grace() {
    let mut job = Background::start(script(&["-n", "2", "--grace-ms", "200"], STUBBORN));
    let pids = job.pids(2);
    job.signal(Signal::TERM);
    assert_eq!(job.end().0.code(), Some(143));
    assert!(!pids.iter().any(|&pid| runs(pid)));
}

#[test]
fn a_second_signal_kills_at_once() {
    let mut job = Background::start(script(&["-n", "2", "--grace-ms", "1000000"], STUBBORN));
    job.pids(2);
    job.signal(Signal::INT);
    job.signal(Signal::INT);
    // Both may have been counted before the first was obeyed; a different one cannot be lost.
    job.signal(Signal::TERM);
    let (status, ..) = job.end();
    assert!(matches!(status.code(), Some(130 | 143)), "{status}");
}

#[test]
fn children_that_a_rank_leaves_behind_end_with_the_job() {
    let mut job = Background::start(script(&["-n", "2"], "sleep 1000 >&2 & echo $!"));
    let pids = job.pids(2);
    // The error output stays open as long as the children have it.
    let (status, ..) = job.end();
    assert_eq!(status.code(), Some(0));
    wait_until_gone(&pids);
}

#[test]
fn the_dead_keep_their_process_id_until_the_end() {
    let mut job = Background::start(script(
        &["-n", "2", "--continue"],
        "echo $$; [ $TAGWIRE_RANK = 0 ] && exit 0; exec sleep 1000",
    ));
    let pids = job.pids(2);
    wait_until("one rank is a zombie", || {
        pids.iter().any(|&pid| state_of(pid) == Some('Z'))
    });
    std::thread::sleep(std::time::Duration::from_millis(50));
    assert!(
        pids.iter().all(|&pid| state_of(pid).is_some()),
        "a zombie was reaped"
    );
    job.signal(Signal::TERM);
    job.end();
    assert!(
        pids.iter().all(|&pid| state_of(pid).is_none()),
        "a zombie is left"
    );
}

#[test]
fn a_timeout_asks_for_reports_and_ends_the_job() {
    let member = common::example("member");
    // Through a shell that would die of the signal, and does not get it.
    let wrapped = format!("'{}' hang; exit 9", member.display());
    for command in [
        members(&["-n", "3", "--timeout-ms", "5000"], "hang"),
        script(&["-n", "3", "--timeout-ms", "5000"], &wrapped),
    ] {
        let (status, _, err) = run(command);
        assert_eq!(status, 2, "{err}");
        for rank in 0..3 {
            assert!(
                err.contains(&format!("rank {rank} waits for nothing")),
                "{err}"
            );
        }
        assert!(err.contains("still running: rank 0-2"), "{err}");
        assert!(err.contains("timeout: ending the job"), "{err}");
    }
}

#[test]
fn a_report_can_be_asked_for_without_stopping_anything() {
    let member = common::example("member");
    let mut job = Background::start(script(
        &["-n", "2"],
        &format!("'{}' hang 2>&1", member.display()),
    ));
    assert_eq!(
        (job.line(), job.line()),
        ("hanging".to_owned(), "hanging".to_owned())
    );
    for _ in 0..3 {
        job.signal(Signal::USR1);
        let mut reports = [job.line(), job.line()];
        reports.sort_unstable();
        assert_eq!(
            reports,
            ["rank 0 waits for nothing", "rank 1 waits for nothing"]
        );
    }
    job.signal(Signal::TERM);
    assert_eq!(job.end().0.code(), Some(143));
}

#[test]
fn a_stopped_launcher_stops_its_ranks() {
    // Ranks that start nothing: while a child is between vfork and exec, its parent does not stop.
    let mut job = Background::start(script(&["-n", "2"], "echo $$; exec sleep 1000"));
    let pids = job.pids(2);
    job.signal(Signal::TSTP);
    wait_until("all are stopped", || {
        pids.iter().all(|&pid| state_of(pid) == Some('T'))
    });
    wait_until("the launcher is stopped", || {
        state_of(job.pid()) == Some('T')
    });
    job.signal(Signal::CONT);
    wait_until("all go on", || {
        pids.iter()
            .all(|&pid| matches!(state_of(pid), Some('S' | 'R')))
    });
    job.signal(Signal::TERM);
    assert_eq!(job.end().0.code(), Some(143));
}

#[test]
fn after_the_job_signals_do_what_they_did_before() {
    for signal in [Signal::INT, Signal::TERM, Signal::USR1] {
        let mut command = script(&["-n", "1"], "true");
        command.env("LINGER", "1");
        let mut launcher = Background::start(command);
        assert_eq!(launcher.line(), "lingering");
        launcher.signal(signal);
        let (status, ..) = launcher.end();
        assert_eq!(
            std::os::unix::process::ExitStatusExt::signal(&status),
            Some(signal.as_raw())
        );
    }
}

#[test]
fn a_job_is_an_object() {
    let mut spec = JobSpec::new(3, "sh");
    spec.args = vec!["-c".into(), "exec sleep $LONG".into()];
    spec.env = vec![("LONG".into(), "1000".into())];
    let job = Job::start(spec.clone()).unwrap();
    assert_eq!(job.pids().len(), 3);
    job.end();
    let report = job.wait().unwrap();
    assert_eq!((report.exit_status, report.interrupted), (143, Some(15)));
    assert_eq!(report.outcomes, [Outcome::Signaled(15); 3]);
    assert_eq!((report.first_failure, report.timed_out), (None, false));

    let dropped = Job::start(spec.clone()).unwrap();
    let pids = dropped.pids().to_vec();
    drop(dropped);
    assert!(pids.iter().all(|&pid| state_of(pid).is_none()));

    spec.args[1] = "exit $((TAGWIRE_RANK + 1))".into();
    spec.on_failure = OnFailure::Continue;
    let report = tagwire_launch::run(spec).unwrap();
    assert_eq!(report.outcomes, [1, 2, 3].map(Outcome::Exited));
    let (first, _) = report.first_failure.unwrap();
    assert_eq!(report.exit_status, first.as_u32() as i32 + 1);
}

/// A full pipe that nobody reads: the launcher has lines to say, and goes on with everything else.
#[test]
fn standard_error_that_nobody_reads_holds_nothing_up() {
    let (reader, writer) = rustix::pipe::pipe().unwrap();
    rustix::io::ioctl_fionbio(&writer, true).unwrap();
    while rustix::io::write(&writer, &[0; 4096]).is_ok() {}
    rustix::io::ioctl_fionbio(&writer, false).unwrap();
    let stuck = |options: &[&str]| {
        let mut command = script(
            &[&["-n", "2", "--continue"], options].concat(),
            "test $TAGWIRE_RANK = 1 && exit 3; exec sleep 1000",
        );
        command.stdout(std::process::Stdio::null());
        command.stderr(writer.try_clone().unwrap());
        command.spawn().unwrap()
    };
    // By its own time ...
    let mut timed = stuck(&["--timeout-ms", "100"]);
    // ... and by a signal, once it has had something to say.
    let mut signalled = stuck(&[]);
    std::thread::sleep(Duration::from_millis(300));
    let pid = Pid::from_child(&signalled);
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    for (launcher, status) in [(&mut timed, 2), (&mut signalled, 143)] {
        let until = Instant::now() + LONG;
        let ended = loop {
            if let Some(ended) = launcher.try_wait().unwrap() {
                break ended;
            }
            if Instant::now() > until {
                launcher.kill().unwrap();
                panic!("the launcher that was to end with {status} hangs");
            }
            std::thread::sleep(Duration::from_millis(10));
        };
        assert_eq!(ended.code(), Some(status));
    }
    drop(reader);
}

#[test]
fn an_ignored_hangup_stays_ignored() {
    let mut command = std::process::Command::new("nohup");
    let launcher = script(&["-n", "1"], "echo ready; sleep 0.5; echo end");
    command
        .arg(launcher.get_program())
        .args(launcher.get_args());
    let mut job = Background::start(command);
    assert_eq!(job.line(), "ready");
    job.signal(Signal::HUP);
    let (status, out, _) = job.end();
    assert_eq!((status.code(), out.as_str()), (Some(0), "end\n"));
}

#[test]
fn tagged_lines_stay_whole() {
    let (status, out, err) = run(script(
        &["-n", "8", "--tag"],
        "i=0; while [ $i -lt 200 ]; do printf 'line %s ' $i; echo of $TAGWIRE_RANK; i=$((i+1)); done
         printf 'no end'; echo error >&2",
    ));
    assert_eq!(status, 0, "{err}");
    for rank in 0..8 {
        let tag = format!("[{rank}] ");
        let lines: Vec<&str> = out
            .lines()
            .filter_map(|line| line.strip_prefix(&*tag))
            .collect();
        assert_eq!(lines.len(), 201);
        for (number, line) in lines[..200].iter().enumerate() {
            assert_eq!(*line, format!("line {number} of {rank}"));
        }
        assert_eq!(lines[200], "no end");
        assert!(err.contains(&format!("[{rank}] error\n")), "{err}");
    }
    assert_eq!(out.lines().count(), 8 * 201);
}

#[test]
fn a_closed_output_is_an_error_and_no_panic() {
    let mut command = script(&["-n", "2", "--tag"], "while :; do echo much; done");
    let mut launcher = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(launcher.stdout.take());
    let output = launcher.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(err.contains("cannot write the ranks' output"), "{err}");
    assert!(!err.contains("panicked"), "{err}");
}

#[test]
fn a_full_disk_is_an_error() {
    let Ok(full) = std::fs::File::options().write(true).open("/dev/full") else {
        eprintln!("SKIPPED: no /dev/full here");
        return;
    };
    let mut command = script(&["-n", "1", "--tag"], "echo lost");
    let output = command
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(err.contains("cannot write the ranks' output"), "{err}");
}

#[test]
fn input_goes_to_the_rank_that_is_asked_for() {
    for (options, expected) in [
        (&["-n", "2", "--stdin", "0"][..], "0: hello\n"),
        (&["-n", "3", "--stdin", "2"], "2: hello\n"),
        (&["-n", "1", "--stdin", "all"], "0: hello\n"),
        (&["-n", "2"], ""),
    ] {
        let mut command = script(options, "sed \"s/^/$TAGWIRE_RANK: /\"");
        let mut launcher = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        // Without the option nobody reads it.
        let _ = launcher.stdin.take().unwrap().write_all(b"hello\n");
        let output = launcher.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected);
    }
}

/// One of them never reads, and is gone before the end of the input.
#[test]
fn input_goes_to_all_ranks_when_asked() {
    let options = ["-n", "3", "--stdin", "all", "--tag"];
    let mut command = script(&options, "[ $TAGWIRE_RANK = 1 ] || wc -c");
    let mut launcher = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = launcher.stdin.take().unwrap();
    for _ in 0..100 {
        input.write_all(&[b'x'; 10_000]).unwrap();
    }
    drop(input);
    let output = launcher.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let mut lines: Vec<_> = output.stdout.split(|byte| *byte == b'\n').collect();
    lines.sort_unstable();
    let expected: [&[u8]; 3] = [b"", b"[0] 1000000", b"[2] 1000000"];
    assert_eq!(lines, expected);
}

#[test]
fn a_rank_that_is_not_there_reads_nothing() {
    let (status, _, err) = run(script(&["-n", "2", "--stdin", "2"], "cat"));
    assert_ne!(status, 0);
    assert!(err.contains("rank 2 is to read"), "{err}");
}

#[test]
fn the_socket_of_an_outer_launcher_is_not_the_ranks() {
    let (_launcher_s, ours) = std::os::unix::net::UnixStream::pair().unwrap();
    // A number that no shell takes for itself, which the launcher inherits as mpiexec's ranks do.
    let inherited = rustix::io::fcntl_dupfd_cloexec(&ours, 100).unwrap();
    rustix::io::fcntl_setfd(&inherited, rustix::io::FdFlags::empty()).unwrap();
    let number = inherited.as_raw_fd().to_string();
    for (variable, status) in [("PMI_FD", 1), ("ANOTHER", 0)] {
        let mut command = script(&[], &format!("test -e /proc/$$/fd/{number}"));
        command.env(variable, &number);
        let (ended, _, err) = run(command);
        assert_eq!(ended, status, "{variable}: {err}");
    }
}
