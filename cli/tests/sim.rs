//! `tagwire sim`: the same rows from the same seed, in any process, and what bad input gets.
use std::fs;
use std::process::{Command, Output};

fn sim(arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tagwire"))
        .arg("sim")
        .args(arguments.split_whitespace())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_same_seed_gives_the_same_rows() {
    let storm = "stencil -n 32 --rounds 4 -m 20000 --delay 3us --reorder --seed";
    let rows = |seed| {
        let output = sim(&format!("{storm} {seed}"));
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(text(&output.stderr).contains("events/s"));
        text(&output.stdout)
    };
    assert_eq!(rows(5), rows(5));
    assert_ne!(rows(5), rows(6));
    assert_eq!(
        rows(5).lines().filter(|row| !row.starts_with('#')).count(),
        4
    );
}

#[test]
fn the_list_names_programs_and_machines() {
    let list = text(&sim("list").stdout);
    for name in [
        "ring",
        "halo3d",
        "allreduce",
        "vh1",
        "redstorm",
        "niagara",
        "assumed",
        "derived",
    ] {
        assert!(list.contains(name), "{name}: {list}");
    }
}

#[test]
fn a_skeleton_has_a_profile() {
    let output = sim("vh1 -n 16 --rounds 1 --preset redstorm --pml cm");
    let rows = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let figure = |name: &str| {
        let line = rows.lines().find(|line| line.starts_with(name)).unwrap();
        let words: Vec<&str> = line[name.len()..].split_whitespace().collect();
        words[0].parse::<f64>().unwrap()
    };
    // 8 exchanges with 15 others, and two sums of 4 messages.
    assert_eq!(figure("long messages"), 120.0);
    assert_eq!(figure("short messages"), 8.0);
    let parts = figure("alltoall") + figure("allreduce");
    assert!((parts - figure("in the library, %")).abs() < 0.1, "{rows}");
}

#[test]
fn a_machine_may_come_from_a_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("machine");
    let machine = "latency = 1us\noverhead-send = 100ns\noverhead-recv = 100ns\nper-byte = 1ns\n";
    fs::write(&path, machine).unwrap();
    let output = sim(&format!(
        "ping-pong -n 2 --rounds 1 -m 1000 --preset {}",
        path.display()
    ));
    // Twice 1 us, two overheads, 1000 bytes.
    assert!(
        text(&output.stdout).contains(" 4.400000 "),
        "{}",
        text(&output.stdout)
    );
    fs::write(&path, format!("{machine}gap = soon\n")).unwrap();
    let output = sim(&format!("ping-pong -n 2 --preset {}", path.display()));
    assert_eq!(output.status.code(), Some(1));
    let why = text(&output.stderr);
    assert!(why.contains("line 5: 'gap': 'soon' is no time"), "{why}");
}

#[test]
fn what_cannot_be_is_refused() {
    for (arguments, status, words) in [
        ("sprint", 1, "'sprint' is no program"),
        ("ring --preset moon", 1, "'moon' is no machine"),
        ("ring -n 1", 2, "takes 2 ranks"),
        ("ring -n 4 --kill 4@1us", 1, "rank 4 of 4"),
        ("ring --compute soon", 1, "has a unit"),
        ("vh1 --imbalance=-1", 1, "of percent"),
        ("vh1 -n 4", 2, "takes 16 ranks"),
        ("barrier -n 4000000000", 2, "MiB are available"),
        ("vh1 -n 4000000000", 2, "MiB are available"),
        ("s3d -n 4000000000 --pml cm", 2, "MiB are available"),
    ] {
        let output = sim(arguments);
        let why = text(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{arguments}: {why}");
        assert!(why.contains(words), "{arguments}: {why}");
    }
}

#[test]
fn who_waits_for_the_dead_says_so() {
    let output = sim("ring -n 8 --rounds 100 --kill 3@20us");
    let rows = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(rows.contains("ended early"), "{rows}");
}

#[test]
fn a_run_leaves_a_picture_of_who_waited_for_whom() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("run.svg");
    let output = sim(&format!(
        "ping-pong -n 2 --rounds 2 --preset niagara --picture {}",
        file.display()
    ));
    assert!(output.status.success(), "{}", text(&output.stderr));
    let picture = fs::read_to_string(&file).unwrap();
    assert!(picture.contains("message of 8 bytes, rank 0 to rank 1"));
    // Both have waited for what has come.
    assert!(picture.matches("#f0c060").count() >= 2, "{picture}");
    let output = sim("ping-pong -n 2 --picture /nowhere/run.svg");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("--picture /nowhere/run.svg"));
}
