//! `tagwire report`: what it writes where, and what it says of files that are none and of outputs that cannot be written.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::command::{Outcome, tagwire};
use tempfile::TempDir;

/// Results of two transports and three sizes, in a folder.
fn results(factor: f64) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let rows = [8, 64, 512].into_iter().flat_map(|size| {
        [("shm", 1.0), ("ucx:tcp", 4.0)].map(|(transport, times)| {
            let latency = factor * times * f64::from(size) / 100.0;
            format!("{{\"size\":{size},\"transport\":\"{transport}\",\"ranks\":2,\"latency_us\":{latency}}}")
        })
    });
    let rows: Vec<String> = rows.collect();
    let text = format!(
        "{{\"schema\":\"tagwire.bench/1\",\"test\":\"latency\",\"command\":\"tagwire bench latency\",\"environment\":{{}},\"rows\":[{}]}}",
        rows.join(",")
    );
    let file = folder.path().join("results.json");
    fs::write(&file, text).unwrap();
    (folder, file)
}

fn report(arguments: &[&Path]) -> Outcome {
    tagwire().arg("report").args(arguments).outcome()
}

/// What is in a folder, hidden files among them.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn the_output_s_name_says_the_format() {
    let (folder, file) = results(1.0);
    for (name, begins) in [
        ("report.html", "<!DOCTYPE html>"),
        ("plot.svg", "<svg "),
        ("report.md", "# Latency\n"),
        ("report.csv", "test,metric,unit,series,"),
    ] {
        let output = folder.path().join(name);
        let outcome = report(&[&file, Path::new("-o"), &output]);
        assert_eq!(
            (outcome.status, &*outcome.stdout, &*outcome.stderr),
            (0, "", ""),
            "{name}"
        );
        assert!(
            fs::read_to_string(&output).unwrap().starts_with(begins),
            "{name}"
        );
    }
    let outcome = tagwire()
        .arg("report")
        .arg(&file)
        .args(["--format", "md"])
        .outcome();
    assert!(
        outcome
            .stdout
            .contains("| 8 B | 0.08 (0.08 to 0.08) | 0.32 (0.32 to 0.32) | 4.00x |"),
        "{outcome:?}"
    );
}

#[test]
fn plots_go_into_a_folder() {
    let (folder, file) = results(1.0);
    let (_base_folder, base) = results(2.0);
    let plots = folder.path().join("a/b");
    let outcome = tagwire()
        .arg("report")
        .arg(&file)
        .arg("--base")
        .arg(&base)
        .args(["--format", "svg", "-o"])
        .arg(&plots)
        .outcome();
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert_eq!(
        names(&plots),
        ["latency-latency-us-ratio.svg", "latency-latency-us.svg"]
    );
    let outcome = tagwire()
        .arg("report")
        .arg(&file)
        .arg("--base")
        .arg(&base)
        .args(["-o", "both.svg"])
        .outcome();
    assert_eq!(outcome.status, 1);
    assert!(
        outcome
            .stderr
            .contains("there are 2 plots (latency-latency-us, latency-latency-us-ratio)"),
        "{outcome:?}"
    );
}

#[test]
fn what_is_no_report_is_named_with_what_is_wrong() {
    let (folder, file) = results(1.0);
    let whole = fs::read_to_string(&file).unwrap();
    let output = folder.path().join("report.html");
    for (text, reason) in [
        (String::new(), "is empty"),
        (whole[..whole.len() / 2].to_owned(), "is cut off in line 1"),
        (
            whole.replace("bench/1", "bench/3"),
            "has the schema 'tagwire.bench/3', this version reads 'tagwire.bench/2', 'tagwire.bench/1' and 'tagwire.match/1'",
        ),
        ("hello".to_owned(), "is no JSON"),
    ] {
        let bad = folder.path().join("bad.json");
        fs::write(&bad, text).unwrap();
        let outcome = report(&[&file, &bad, Path::new("-o"), &output]);
        assert_eq!(outcome.status, 1, "{outcome:?}");
        let wanted = format!("tagwire: {}: {reason}", bad.display());
        assert!(outcome.stderr.starts_with(&wanted), "{wanted}: {outcome:?}");
        assert_eq!(outcome.stderr.lines().count(), 1);
        assert!(!output.exists());
    }
    let outcome = report(&[&folder.path().join("none.json")]);
    assert_eq!(outcome.status, 1);
    assert!(
        outcome.stderr.contains("none.json: No such file"),
        "{outcome:?}"
    );
}

#[test]
fn an_output_that_cannot_be_written_leaves_what_was_there() {
    let (folder, file) = results(1.0);
    for output in ["/nowhere/report.html", "/dev/full", "/proc/version"] {
        let outcome = report(&[&file, Path::new("-o"), Path::new(output)]);
        assert_eq!(outcome.status, 1, "{outcome:?}");
        assert!(
            outcome
                .stderr
                .starts_with(&format!("tagwire: cannot write {output}: ")),
            "{outcome:?}"
        );
    }
    let outcome = tagwire()
        .arg("report")
        .arg(&file)
        .stdout_to(Path::new("/dev/full"))
        .outcome();
    assert_eq!(outcome.status, 1, "{outcome:?}");
    assert!(
        outcome.stderr.contains("cannot write to standard output"),
        "{outcome:?}"
    );
    let outcome = tagwire().arg("report").arg(&file).stdout_closed().outcome();
    assert_eq!(outcome.status, 0, "{outcome:?}");
    // A disk that fills in the middle: a limit of 4 KiB for files.
    let output = folder.path().join("report.html");
    fs::write(&output, "the last good one").unwrap();
    let line = "ulimit -f 4; exec \"$0\" report \"$1\" -o \"$2\"";
    let filled = Command::new("bash")
        .args(["-c", line, env!("CARGO_BIN_EXE_tagwire")])
        .arg(&file)
        .arg(&output)
        .output()
        .unwrap();
    assert_eq!(filled.status.code(), Some(1), "{filled:?}");
    let said = String::from_utf8_lossy(&filled.stderr);
    assert!(
        said.starts_with(&format!("tagwire: cannot write {}: ", output.display())),
        "{said}"
    );
    assert_eq!(fs::read_to_string(&output).unwrap(), "the last good one");
    assert_eq!(names(folder.path()), ["report.html", "results.json"]);
}

#[test]
fn results_are_not_overwritten() {
    let (folder, file) = results(1.0);
    let before = fs::read_to_string(&file).unwrap();
    let link = folder.path().join("link.html");
    std::os::unix::fs::symlink(&file, &link).unwrap();
    for output in [&file, &link] {
        let outcome = report(&[&file, Path::new("-o"), output]);
        assert_eq!(outcome.status, 1, "{outcome:?}");
        assert!(
            outcome.stderr.contains("cannot be the output"),
            "{outcome:?}"
        );
        assert_eq!(fs::read_to_string(&file).unwrap(), before);
    }
}

/// From a run to its page.
#[test]
fn what_bench_writes_report_reads() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ring.json");
    let csv = folder.path().join("ring.csv");
    let bench = tagwire()
        .args(["bench", "ring", "-n", "2", "-m", "8", "-i", "100", "-o"])
        .arg(&file)
        .outcome();
    assert_eq!(bench.status, 0, "{bench:?}");
    let bench = tagwire()
        .args(["bench", "ring", "-n", "2", "-m", "8", "-i", "100", "-o"])
        .arg(&csv)
        .outcome();
    assert_eq!(bench.status, 0, "{bench:?}");
    let outcome = report(&[&csv, Path::new("--base"), &file]);
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(
        outcome.stdout.contains("shm against the base: "),
        "{outcome:?}"
    );
    let outcome = tagwire().arg("report").arg(&file).outcome();
    assert_eq!(outcome.status, 0, "{outcome:?}");
    assert!(
        outcome.stdout.contains("<h2>Ring: latency</h2>"),
        "{outcome:?}"
    );
    assert!(
        outcome
            .stdout
            .contains("tagwire bench ring -n 2 -m 8 -i 100"),
        "the exact command"
    );
}

/// Each test of `match` that has rows is drawn, with the build, the machine and the command that its file names.
#[test]
fn the_laboratory_s_results_are_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rows.json");
    for (line, plot) in [
        (
            "match depth --engine list,bins --ahead 0,16 --blocks 2 --cache hot",
            "match-depth-ns",
        ),
        (
            "match order --entries 4,8 --order same,reverse",
            "match-order-depth",
        ),
        (
            "match threads --grid 4x4,8x4 --rounds 2 --engine list",
            "match-threads-ns",
        ),
        (
            "match offload halo7:steps=1 --capacity 0,4 --ratio 1",
            "match-offload-ns",
        ),
        (
            "match app halo7:steps=1 --arrivals posted,shuffled",
            "match-app-depth-mean",
        ),
    ] {
        let made = tagwire()
            .args(line.split(' '))
            .arg("-o")
            .arg(&file)
            .outcome();
        assert_eq!(made.status, 0, "{made:?}");
        let told = report(&[&file, Path::new("--format"), Path::new("md")]);
        assert_eq!((told.status, &*told.stderr), (0, ""), "{told:?}");
        for part in [
            format!("tagwire {line} -o ").as_str(),
            "Measured",
            "Commit",
            "match ",
        ] {
            assert!(told.stdout.contains(part), "{part}: {told:?}");
        }
        let plots = folder.path().join(plot);
        let drawn = report(&[
            &file,
            Path::new("--format"),
            Path::new("svg"),
            Path::new("-o"),
            &plots,
        ]);
        assert_eq!((drawn.status, &*drawn.stderr), (0, ""), "{drawn:?}");
        let drawn = names(&plots);
        assert!(drawn.contains(&format!("{plot}.svg")), "{drawn:?}");
    }
}

/// What README.md and the pages show is what this command makes of what is stored.
#[test]
fn the_plots_in_the_docs_are_those_of_the_stored_results() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut count = 0;
    for entry in fs::read_dir(root.join("docs/results")).unwrap() {
        let folder = entry.unwrap();
        let machine = folder.file_name().into_string().unwrap().to_lowercase();
        for (files, options) in DRAWN {
            let all = files.iter().map(|file| folder.path().join(file));
            let all: Vec<PathBuf> = all.collect();
            if !all[0].exists() {
                continue;
            }
            let outcome = tagwire()
                .arg("report")
                .args(&all)
                .args(["--format", "svg"])
                .args(options)
                .outcome();
            assert_eq!(outcome.status, 0, "{outcome:?}");
            let name = files[0].trim_end_matches(".json");
            let plot = format!("docs/plots/{name}-{machine}.svg");
            let is_same = fs::read_to_string(root.join(&plot)).unwrap() == outcome.stdout;
            assert!(is_same, "{plot} is not what is stored; tagwire report");
            count += 1;
        }
    }
    assert!(count > 0);
}

/// The files of a machine's results that a plot is made of, the first of which has its name, and the options of `report`.
const DRAWN: [(&[&str], &[&str]); 7] = [
    (&["latency.json"], &[]),
    (
        &["posted-peers.json", "posted-ucx.json"],
        &["--x", "posted"],
    ),
    (&["match-depth.json"], &["--metric", "ns"]),
    (&["match-order.json"], &["--metric", "depth"]),
    (&["match-threads.json"], &["--metric", "depth"]),
    (&["match-offload.json"], &["--metric", "ns"]),
    (&["match-replay.json"], &["--metric", "ns"]),
];
