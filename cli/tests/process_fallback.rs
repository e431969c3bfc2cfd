//! Fewer rights than usual: messages of every kind arrive all the same.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::process::{Line, Outcome, confine, is_root, rank, run_line, tagwire};

const RANKS: u32 = 3;

fn check_exchanged(outcome: &Outcome) {
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    for number in 0..RANKS {
        outcome.line(&format!("{number} exchanged all"));
    }
}

/// What `tagwire info` says under the same restrictions, of how large messages are copied.
fn info(line: Line) -> String {
    let outcome = line.finish();
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    outcome.stdout.join("\n")
}

/// Under `test_confine WORDS --`.
fn confined(words: &[&str]) -> Outcome {
    confined_ranks(RANKS, &[], words)
}

/// The same of so many ranks, with options of `tagwire run`.
fn confined_ranks(ranks: u32, options: &[&str], words: &[&str]) -> Outcome {
    run_line(ranks, options)
        .args([confine()])
        .args(words)
        .args(["--"])
        .args([rank()])
        .args(["exchange"])
        .finish()
}

fn confined_info(words: &[&str], options: &[&str]) -> String {
    info(
        Line::of(&confine(), words)
            .args(["--"])
            .args([tagwire()])
            .args(["info", "shm"])
            .args(options),
    )
}

#[test]
fn without_restrictions_large_messages_are_copied_once() {
    let outcome = run_line(RANKS, &[])
        .args([rank()])
        .args(["exchange"])
        .finish();
    check_exchanged(&outcome);
    assert!(info(Line::new(["info", "shm"])).contains("large messages are copied once"));
}

/// Under a limit of file sizes, in blocks of 512 bytes: `sh -c 'ulimit -f BLOCKS; COMMAND'`.
fn with_small_files(blocks: u32, command: &str) -> Line {
    let script = format!("ulimit -f {blocks}; {command}");
    Line::of(Path::new("sh"), ["-c", &script, "sh"])
        .args([tagwire()])
        .args([rank()])
}

/// The kernel ends whoever makes shared memory beyond the limit by a signal.
#[test]
fn small_files_leave_room_for_messages() {
    let run = "exec \"$1\" run -n 3 -- \"$2\" exchange";
    let ob1 = |blocks| with_small_files(blocks, run).env("TAGWIRE_PML", "ob1");
    check_exchanged(&ob1(1024).finish());
    // Not for the lists of a rank that matches in shared memory, nor for an area for each rank.
    let cm = with_small_files(1024, run)
        .env("TAGWIRE_PML", "cm")
        .finish();
    let tiny = ob1(64).finish();
    for (outcome, remedy) in [(cm, "'pml'"), (tiny, "ulimit -f")] {
        assert_eq!(outcome.status, 1, "{outcome:#?}");
        for part in ["RLIMIT_FSIZE", remedy] {
            assert!(outcome.errors().contains(part), "{outcome:#?}");
        }
    }
}

#[test]
fn small_files_are_mentioned_by_info_and_are_errors_of_writing() {
    let text = info(with_small_files(1024, "exec \"$1\" info shm"));
    assert!(text.contains("RLIMIT_FSIZE"), "{text}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out");
    let outcome = with_small_files(1, "exec \"$1\" info > \"$3\"")
        .args([&file])
        .finish();
    assert_eq!(outcome.status, 2, "{outcome:#?}");
    assert!(outcome.errors().contains("File too large"), "{outcome:#?}");
}

#[test]
fn attaching_may_be_switched_off() {
    let outcome = run_line(RANKS, &[])
        .args([rank()])
        .args(["exchange"])
        .env("TAGWIRE_SHM_CMA", "off")
        .finish();
    check_exchanged(&outcome);
    let said = info(Line::new(["info", "shm"]).env("TAGWIRE_SHM_CMA", "off"));
    assert!(said.contains("copied twice: 'shm-cma' is off"), "{said}");
}

#[test]
fn a_filter_may_forbid_attaching() {
    check_exchanged(&confined(&["no-attach"]));
    let said = confined_info(&["no-attach"], &[]);
    assert!(said.contains("copied twice: process_vm_readv"), "{said}");
    assert!(said.contains("seccomp"), "{said}");
}

#[test]
fn what_a_filter_forbids_cannot_be_insisted_on() {
    let outcome = confined_ranks(2, &["--shm-cma", "on"], &["no-attach"]);
    assert_eq!(outcome.status, 1, "{outcome:#?}");
    assert!(
        outcome.errors().contains("process_vm_readv"),
        "{outcome:#?}"
    );
}

/// Ways and algorithms that need it, each refused with its setting, itself and the system's reason.
#[test]
fn what_needs_what_a_filter_forbids_cannot_be_fixed() {
    for (setting, value) in [
        ("shm-way", "halves"),
        ("shm-way", "one-side"),
        ("coll-algorithm", "allreduce:single-copy"),
    ] {
        // Under cm ranks copy by halves alone, whatever the system lets them.
        let options = ["--pml", "ob1", &format!("--{setting}"), value];
        let outcome = confined_ranks(2, &options, &["no-attach"]);
        assert_eq!(outcome.status, 1, "{value}: {outcome:#?}");
        let errors = outcome.errors();
        let parts = [setting, value, "this system forbids", "process_vm_readv"];
        assert!(parts.iter().all(|part| errors.contains(part)), "{errors}");
    }
    let options = ["--pml", "ob1", "--shm-way", "ring"];
    check_exchanged(&confined_ranks(RANKS, &options, &["no-attach"]));
    let said = confined_info(&["no-attach"], &["--pml", "ob1"]);
    assert!(said.contains("way of long messages: ring alone"), "{said}");
    let reason =
        "not by halves or one-side: this system forbids the kernel's copy (process_vm_readv";
    assert!(said.contains(reason), "{said}");
}

#[test]
fn a_filter_may_forbid_barriers() {
    check_exchanged(&confined(&["no-membarrier"]));
    let said = confined_info(&["no-membarrier"], &[]);
    assert!(said.contains("membarrier is not available"), "{said}");
}

#[test]
fn a_filter_may_forbid_both() {
    check_exchanged(&confined(&["no-attach", "no-membarrier"]));
}

#[test]
fn only_one_rank_may_be_restricted() {
    for words in ["no-attach", "no-membarrier"] {
        let script = format!(
            "[ $TAGWIRE_RANK = 1 ] && exec {} {words} -- {rank} exchange; exec {rank} exchange",
            confine().display(),
            rank = rank().display(),
        );
        let outcome = run_line(RANKS, &[]).args(["sh", "-c", &script]).finish();
        check_exchanged(&outcome);
    }
}

/// Copies of programs, in a folder that every user may enter.
fn for_everybody(programs: &[PathBuf]) -> (tempfile::TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = |program: &PathBuf| {
        let copy = folder.path().join(program.file_name().unwrap());
        fs::copy(program, &copy).unwrap();
        copy
    };
    let copies = programs.iter().map(copy).collect();
    (folder, copies)
}

/// A whole job, launcher and all, of a user without rights; of this one, where it has none.
fn as_user(tagwire: &Path, rank: &Path, options: &[&str]) -> Outcome {
    let user = confine();
    Line::of(&user, ["user", "--"])
        .args([tagwire])
        .args(["run", "-n", &RANKS.to_string()])
        .args(options)
        .args(["--"])
        .args([rank])
        .args(["exchange"])
        .finish()
}

#[test]
fn ordinary_users_may_do_all_this() {
    let (_folder, programs) = for_everybody(&[tagwire(), rank()]);
    for options in [
        &[][..],
        &["--shm-cma", "off"],
        &["--shm-descriptor", "passed"],
        &["--shm-cma", "off", "--shm-descriptor", "passed"],
    ] {
        check_exchanged(&as_user(&programs[0], &programs[1], options));
    }
    let said = info(
        Line::of(&confine(), ["user", "--"])
            .args([&programs[0]])
            .args(["info", "shm"]),
    );
    assert!(said.contains("large messages are copied"), "{said}");
}

#[test]
fn ranks_may_live_in_process_namespaces_of_their_own() {
    if !is_root("a test of process namespaces") {
        return;
    }
    let unshare = ["unshare", "--pid", "--fork"];
    if !Line::of(Path::new("unshare"), &unshare[1..])
        .args(["true"])
        .finish()
        .status
        .eq(&0)
    {
        eprintln!("SKIPPED: this machine does not let root make a process namespace");
        return;
    }
    for options in [&[][..], &["--shm-cma", "off"]] {
        let outcome = run_line(RANKS, options)
            .args(unshare)
            .args([rank()])
            .args(["exchange"])
            .finish();
        check_exchanged(&outcome);
    }
    // Some ranks here, some there.
    let script = format!(
        "[ $TAGWIRE_RANK = 1 ] && exec {} {rank} exchange; exec {rank} exchange",
        unshare.join(" "),
        rank = rank().display()
    );
    check_exchanged(&run_line(RANKS, &[]).args(["sh", "-c", &script]).finish());
}
