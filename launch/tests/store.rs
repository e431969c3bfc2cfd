//! The store between processes.

mod common;

use std::os::unix::process::CommandExt;

use common::{Background, example, launcher, members, run, script};
use rustix::process::Signal;

#[test]
fn ranks_exchange_values_and_fence() {
    let (status, out, err) = run(members(&["-n", "5"], "ring"));
    assert_eq!(status, 0, "{err}");
    assert_eq!(out.lines().count(), 5);
}

#[test]
fn a_process_alone_is_a_job_of_one() {
    let output = std::process::Command::new(example("member"))
        .arg("ring")
        .output()
        .unwrap();
    assert!(output.status.success());
    assert_eq!(output.stdout, b"rank 0 of 1 done\n");
}

#[test]
fn a_rank_may_join_twice() {
    let (status, out, err) = run(members(&["-n", "4"], "twice"));
    assert_eq!(status, 0, "{err}");
    assert_eq!(out.lines().count(), 8);
    let member = example("member");
    let both = format!("'{0}' ring && '{0}' ring", member.display());
    let (status, out, err) = run(script(&["-n", "4"], &both));
    assert_eq!(status, 0, "{err}");
    assert_eq!(out.lines().count(), 8);
}

#[test]
fn descriptors_travel_between_ranks() {
    let (status, out, err) = run(members(&["-n", "4"], "descriptor"));
    assert_eq!((status, out.as_str()), (0, "xxx\n"), "{err}");
}

#[test]
fn the_living_hear_who_failed_and_who_left() {
    let (status, out, err) = run(members(&["-n", "4", "--continue"], "watch"));
    assert_eq!(status, 137, "{err}");
    assert_eq!(
        out,
        "[Failed(rank 1), Failed(rank 2), Left(rank 3)]\n\
         bootstrap: rank 1 ended without putting key 'nothing'\n"
    );
}

#[test]
fn half_an_environment_is_refused_and_named() {
    let wrapper = format!(
        "unset TAGWIRE_STORE; exec '{}' ring",
        example("member").display()
    );
    let (status, _, err) = run(script(&["-n", "1"], &wrapper));
    assert_eq!(status, 3);
    assert!(err.contains("TAGWIRE_STORE is missing"), "{err}");
    let wrong = "0".repeat(64);
    let wrapper = format!(
        "TAGWIRE_SECRET={wrong} exec '{}' ring",
        example("member").display()
    );
    let (status, _, err) = run(script(&["-n", "1"], &wrapper));
    assert_eq!(status, 3);
    assert!(err.contains("wrong job secret"), "{err}");
}

#[test]
fn a_job_within_a_job_is_its_own() {
    let inner = [
        example("launcher").into_os_string(),
        "-n".into(),
        "2".into(),
        "--".into(),
        example("member").into_os_string(),
        "ring".into(),
    ];
    let (status, out, err) = run(launcher(&["-n", "2"], &inner));
    assert_eq!(status, 0, "{err}");
    assert_eq!(
        out.lines()
            .filter(|line| line.contains("of 2 done"))
            .count(),
        4,
        "{out}"
    );
}

#[test]
fn nothing_is_left_of_the_store() {
    let names = || {
        let sockets = std::fs::read_to_string("/proc/net/unix").unwrap();
        sockets
            .lines()
            .filter_map(|line| line.split_once('@'))
            .map(|(_, name)| name.to_owned())
            .collect::<Vec<String>>()
    };
    let mut job = Background::start(script(&["-n", "1"], "echo $TAGWIRE_STORE; exec sleep 1000"));
    let name = job.line();
    assert!(names().contains(&name));
    job.signal(Signal::KILL);
    job.end();
    common::wait_until("the socket is gone", || !names().contains(&name));
}

/// Jobs of a user without rights, where this test may become one.
#[test]
fn an_ordinary_user_can_do_it_all() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: only root can become somebody else, and everybody else is ordinary");
        return;
    }
    // The build folder may be closed to others, so the programs go where they are not.
    let folder = std::env::temp_dir().join(format!("tagwire-user-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    for name in ["launcher", "member"] {
        std::fs::copy(example(name), folder.join(name)).unwrap();
    }
    for (deed, expected) in [("ring", 0), ("descriptor", 0), ("watch", 137)] {
        let mut command = std::process::Command::new(folder.join("launcher"));
        command.args(["-n", "4", "--continue", "--bind", "core", "--tag", "--"]);
        command.arg(folder.join("member")).arg(deed);
        command.uid(65534).gid(65534).current_dir("/");
        let (status, _, err) = run(command);
        assert_eq!(status, expected, "{deed}: {err}");
    }
    // And another user's store is closed to him.
    let mut command = script(
        &["-n", "1"],
        "echo $TAGWIRE_STORE; echo $TAGWIRE_SECRET; sleep 1000",
    );
    let mut job = Background::start({
        command.current_dir("/");
        command
    });
    let (store, secret) = (job.line(), job.line());
    let mut intruder = std::process::Command::new(folder.join("member"));
    intruder
        .arg("ring")
        .uid(65534)
        .gid(65534)
        .current_dir("/")
        .envs([
            ("TAGWIRE_RANK", "0"),
            ("TAGWIRE_SIZE", "1"),
            ("TAGWIRE_LOCAL_RANK", "0"),
            ("TAGWIRE_LOCAL_SIZE", "1"),
            ("TAGWIRE_STORE", &*store),
            ("TAGWIRE_SECRET", &*secret),
        ]);
    let (status, _, err) = run(intruder);
    assert_eq!(status, 3);
    assert!(
        err.contains(&format!("store '{store}': it is another user's")),
        "{err}"
    );
    job.signal(Signal::TERM);
    job.end();
    std::fs::remove_dir_all(folder).unwrap();
}
