//! `tagwire reproduce`: what it lists, what it judges, and what bad input gets.
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::{Value, json};

use crate::process::results;

fn reproduce(directory: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tagwire"))
        .arg("reproduce")
        .args(arguments)
        .current_dir(directory)
        .output()
        .unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Leaves results as an interrupted run leaves them: of figure 4, for one layer, with one rate at each size.
fn leave(directory: &Path, number: u32, layer: &str, rate: f64) {
    let measured = directory.join("measured.json");
    let options = "message-rate -m 8 -i 100 -x 10 --bind none -o measured.json -p";
    let status = Command::new(env!("CARGO_BIN_EXE_tagwire"))
        .arg("bench")
        .args(options.split(' '))
        .arg(layer)
        .current_dir(directory)
        .output()
        .unwrap()
        .status;
    assert!(status.success());
    let mut results: Value = serde_json::from_str(&fs::read_to_string(measured).unwrap()).unwrap();
    for rows in ["rows", "summary"] {
        let one = results[rows][0].clone();
        let of = |size: u64| {
            let mut row = one.clone();
            row["size"] = json!(size);
            row["figures"]["rate_msg_s"] = json!(rate);
            row
        };
        results[rows] = [1, 8, 2048, 8192].map(of).into_iter().collect();
    }
    let run = format!("bench message-rate -m 1:8K -W 64 -p {layer} -t shm --launches 3");
    results["command"] = json!(format!("tagwire {run} -o left.json"));
    let folder = directory.join("reproduced");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join(format!("mtl-fig4-{number}.json"));
    fs::write(file, results.to_string()).unwrap();
}

#[test]
fn the_list_has_every_measured_item() {
    let directory = tempfile::tempdir().unwrap();
    let listed = reproduce(directory.path(), &["list"]);
    assert!(listed.status.success());
    let text = stdout(&listed);
    let items = text.lines().filter(|line| line.contains('/'));
    let of_papers = items.filter(|line| !line.starts_with("performance/"));
    assert_eq!(of_papers.count(), 39, "{text}");
    assert!(text.contains("performance/peers "), "{text}");
    for needs in ["real", "needs sim"] {
        assert!(text.contains(needs), "{needs}");
    }
    assert!(!directory.path().join("reproduced").exists());
}

#[test]
fn what_cannot_be_reproduced_says_why() {
    let directory = tempfile::tempdir().unwrap();
    let shown = reproduce(directory.path(), &["mtl/table1"]);
    assert!(shown.status.success());
    assert!(stdout(&shown).contains("needs sim: it needs 256"));
    let unknown = reproduce(directory.path(), &["mtl/fig9"]);
    assert_eq!(unknown.status.code(), Some(1));
    let text = stderr(&unknown);
    assert!(
        text.contains("'mtl/fig9'") && text.contains("reproduce list"),
        "{text}"
    );
}

#[test]
fn claims_are_judged_by_what_is_there() {
    let directory = tempfile::tempdir().unwrap();
    // At half the rate, as the paper has it.
    leave(directory.path(), 1, "ob1", 5e6);
    leave(directory.path(), 2, "cm", 1e7);
    let options = ["mtl/fig4", "--quick", "--resume"];
    let judged = reproduce(directory.path(), &options);
    let text = stdout(&judged);
    assert!(judged.status.success(), "{text}{}", stderr(&judged));
    assert!(
        text.contains("holds on shm: 0.500 (0.500..0.500); published 0.500"),
        "{text}"
    );
    assert!(text.contains("not testable here: no MPI library"), "{text}");
    assert!(
        text.contains("fails on shm: it falls at no size; published 2048 B"),
        "{text}"
    );
    assert!(text.contains("likely reason: "), "{text}");

    let outcome = fs::read_to_string(directory.path().join("reproduced/mtl-fig4.json")).unwrap();
    let outcome: Value = serde_json::from_str(&outcome).unwrap();
    assert_eq!(outcome["schema"], "tagwire.reproduce/2");
    // With the rows, and where they were measured.
    let run = &outcome["runs"][0];
    assert_eq!(
        (
            run["rows"]["rows"].as_array().unwrap().len(),
            &run["attempts"]
        ),
        (4, &json!(1))
    );
    assert!(run["environment"]["kernel"].is_string(), "{run}");
    assert_eq!(
        outcome["results"],
        json!(["mtl-fig4-1.json", "mtl-fig4-2.json"])
    );
    assert_eq!(outcome["claims"][0]["judgements"][0]["verdict"], "holds");
    assert_eq!(outcome["published"].as_array().unwrap().len(), 4);

    let page = fs::read_to_string(directory.path().join("reproduced/mtl-fig4.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") || page.starts_with("<!doctype html>"));

    let strict = [&options[..], &["--fail-on", "fails"]].concat();
    let strict = reproduce(directory.path(), &strict);
    assert_eq!(strict.status.code(), Some(4));
}

/// The rows of a file of results; none while there is no such file.
fn rows(file: &Path) -> Vec<Value> {
    let Ok(text) = fs::read_to_string(file) else {
        return Vec::new();
    };
    results(&text)["rows"].as_array().unwrap().clone()
}

/// Ctrl-C reaches the command and the run that it has started. What that has measured is not measured again.
#[test]
fn an_interrupted_run_of_an_item_goes_on() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("reproduced");
    let options = ["threads/fig8", "--quick", "-t", "shm"];
    let mut begun = Command::new(env!("CARGO_BIN_EXE_tagwire"))
        .arg("reproduce")
        .args(options)
        .current_dir(directory.path())
        .process_group(0)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let partial = folder.join("threads-fig8-1.partial.json");
    while rows(&partial).is_empty() && begun.try_wait().unwrap().is_none() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let group = Pid::from_raw(begun.id() as i32).unwrap();
    kill_process_group(group, Signal::INT).unwrap();
    let ended = begun.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(130), "{}", stderr(&ended));
    assert!(
        stderr(&ended).contains("--resume goes on"),
        "{}",
        stderr(&ended)
    );
    let left = rows(&partial);
    // Two sizes of processes and of threads, three launches of each.
    let all = 2 * 2 * 3;
    assert!((1..all).contains(&left.len()), "{} rows", left.len());
    assert!(!folder.join("threads-fig8-1.json").exists());

    let resumed = reproduce(directory.path(), &[&options[..], &["--resume"]].concat());
    assert!(resumed.status.success(), "{}", stderr(&resumed));
    assert!(!partial.exists());
    let whole = rows(&folder.join("threads-fig8-1.json"));
    assert_eq!(whole[..left.len()], left, "what was there stays as it was");
    let place = |row: &Value| ["unit", "size", "launch"].map(|key| row[key].to_string());
    let places: BTreeSet<_> = whole.iter().map(place).collect();
    assert_eq!((whole.len(), places.len()), (all, all), "{places:?}");
    let outcome = fs::read_to_string(folder.join("threads-fig8.json")).unwrap();
    let outcome: Value = serde_json::from_str(&outcome).unwrap();
    assert_eq!(outcome["results"], json!(["threads-fig8-1.json"]));
}

/// Published values that have a place in the figure are points of page and plot; the page says that they are of other machines.
#[test]
fn published_values_stand_in_the_plots() {
    let directory = tempfile::tempdir().unwrap();
    let folder = directory.path().join("reproduced");
    fs::create_dir_all(&folder).unwrap();
    let options = "latency --layers -m 0,8 -i 100 -x 10 --bind none -o measured.json";
    let measured = Command::new(env!("CARGO_BIN_EXE_tagwire"))
        .arg("bench")
        .args(options.split(' '))
        .current_dir(directory.path())
        .output()
        .unwrap();
    assert!(measured.status.success(), "{}", stderr(&measured));
    let text = fs::read_to_string(directory.path().join("measured.json")).unwrap();
    let mut results: Value = serde_json::from_str(&text).unwrap();
    let run = "bench latency --layers -m 0,netpipe:8M -t shm --launches 5";
    results["command"] = json!(format!("tagwire {run} -o left.json"));
    fs::write(folder.join("mtl-fig2a-1.json"), results.to_string()).unwrap();
    let made = reproduce(directory.path(), &["mtl/fig2a", "--resume"]);
    assert!(made.status.success(), "{}", stderr(&made));
    for name in ["mtl-fig2a.html", "mtl-fig2a.svg"] {
        let text = fs::read_to_string(folder.join(name)).unwrap();
        for library in ["Cray MPI", "Open MPI CM", "Open MPI OB1"] {
            let series = format!("published: {library}");
            assert!(text.contains(&series), "{series} is not in {name}");
        }
        assert!(text.contains("6.16"), "{name}");
    }
    let page = fs::read_to_string(folder.join("mtl-fig2a.html")).unwrap();
    assert!(page.contains("Published values are of other machines"));
}

/// Whoever changes a rule or the words of a page writes it anew.
#[test]
fn the_pages_in_the_tree_are_what_their_results_say() {
    let papers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/papers");
    let directory = tempfile::tempdir().unwrap();
    for name in ["partitioned", "cmb", "reduction", "threads", "mtl"] {
        let page = directory.path().join(format!("{name}.md"));
        let options = [name, "--page", page.to_str().unwrap(), "-o", name];
        let written = reproduce(&papers, &options);
        assert!(written.status.success(), "{}", stderr(&written));
        let then = fs::read_to_string(papers.join(format!("{name}.md")));
        let now = fs::read_to_string(page).unwrap();
        let command =
            format!("in docs/papers: tagwire reproduce {name} --page {name}.md -o {name}");
        assert!(now == then.unwrap(), "{command}");
        // Every plot that the page names is there, as it is drawn now.
        for plot in now.split("](").filter_map(|part| part.split_once(".svg)")) {
            let file = format!("{}.svg", plot.0);
            let [then, now] =
                [&papers, directory.path()].map(|folder| fs::read(folder.join(&file)).unwrap());
            assert!(now == then, "{file}: {command}");
        }
    }

    let missing = ["mtl", "--page", "mtl.md", "-o", "nowhere"];
    let missing = reproduce(directory.path(), &missing);
    assert_eq!(missing.status.code(), Some(1));
    assert!(
        stderr(&missing).contains("nowhere/mtl-fig2a.json"),
        "{}",
        stderr(&missing)
    );
    let mixed = reproduce(&papers, &["threads", "mtl", "--page", "x.md"]);
    assert_eq!(mixed.status.code(), Some(1));
    assert!(stderr(&mixed).contains("one paper"), "{}", stderr(&mixed));
}

/// A build that measures nothing: it notes its arguments, and leaves its process's number as the latency. It fails where a file says so.
const BUILD: &str = r#"#!/bin/sh
echo "${0##*/}: $*" >> "$LOG"
grep -qx -- "$*" "$LOG.fails" && exit 2
line="$*"
while [ "$1" != -o ]; do shift; done
cat > "$2" <<EOF
{"schema": "tagwire.bench/1", "test": "barrier", "command": "tagwire ${line%% -o *} -o $2",
 "environment": {"launches": 1, "started_unix_s": 0, "commit": "c", "cores": 2},
 "rows": [{"size": 8, "transport": "shm", "pml": "ob1", "ranks": 2, "launch": 0, "iterations": 1, "repetitions": 1, "latency_us": $$}]}
EOF
"#;

/// Each round starts each run with each build once; what fails is left out, and measured where the item goes on.
#[test]
fn builds_are_measured_by_turns() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    for name in ["before", "after"] {
        let program = directory.path().join(name);
        fs::write(&program, BUILD).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let measure = |more: &[&str], fails: &str| {
        fs::write(directory.path().join("log.fails"), fails).unwrap();
        fs::write(&log, "").unwrap();
        let output = Command::new(env!("CARGO_BIN_EXE_tagwire"))
            .args(["reproduce", "performance/collectives"])
            .args(["--build", "old=before", "--build", "new=after"])
            .args(more)
            .env("LOG", &log)
            .current_dir(directory.path())
            .output()
            .unwrap();
        let lines = fs::read_to_string(&log).unwrap();
        let lines: Vec<String> = lines.lines().map(str::to_owned).collect();
        (output, lines)
    };
    let partial = "reproduced/performance-collectives-2.partial.json";
    let fails =
        format!("bench barrier -t shm --timeout 300 --launches 1 -o {partial} --overwrite\n");
    let (output, lines) = measure(&[], &fails);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let text = stderr(&output);
    assert!(text.contains("5 runs of 'tagwire bench' failed"), "{text}");
    // 11 runs of two builds in each of 5 rounds.
    assert_eq!(lines.len(), 11 * 2 * 5);
    assert!(lines[0].starts_with("before: bench barrier -t shm --timeout 300 --launches 1 "));
    assert!(lines[1].starts_with("after: bench barrier -t shm --timeout 300 --launches 1 "));
    assert_eq!(lines[..22], lines[22..44]);

    let (output, lines) = measure(&["--resume"], "");
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(lines.len(), 5, "{lines:?}");
    let text = stdout(&output);
    assert!(
        text.contains("| what | Tagwire, old | Tagwire, new | Tagwire, old / best |"),
        "{text}"
    );
    let file = directory
        .path()
        .join("reproduced/performance-collectives-2.json");
    let launches: Vec<_> = rows(&file)
        .iter()
        .map(|row| row["launch"].clone())
        .collect();
    assert_eq!(launches, [0, 1, 2, 3, 4].map(|launch| json!(launch)));
    let outcome = fs::read_to_string(
        directory
            .path()
            .join("reproduced/performance-collectives.json"),
    );
    let outcome: Value = serde_json::from_str(&outcome.unwrap()).unwrap();
    assert_eq!(outcome["environment"]["launches"], 5);
    let values = &outcome["tables"][0]["lines"][0]["values"];
    for build in [0, 1] {
        let values: BTreeSet<_> = values[build]
            .as_array()
            .unwrap()
            .iter()
            .map(Value::to_string)
            .collect();
        assert_eq!(values.len(), 5, "{values:?}");
    }

    // What is left of another build gets no launches of this one.
    let left = fs::read_to_string(&file).unwrap();
    let fewer = left.replace("\"launch\": 4", "\"launch\": 3");
    fs::write(
        &file,
        fewer.replace("\"commit\": \"c\"", "\"commit\": \"d\""),
    )
    .unwrap();
    let (output, _) = measure(&["--resume"], "");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("of another build"),
        "{}",
        stderr(&output)
    );

    for (arguments, word) in [
        (
            ["mtl/fig4", "--build", "old=before"],
            "--build is of performance: mtl/fig4",
        ),
        (
            ["performance", "--build", "old=nowhere"],
            "there is no program 'nowhere'",
        ),
        (["performance", "--build", "before"], "NAME=PATH"),
    ] {
        let refused = reproduce(directory.path(), &arguments);
        assert_eq!(refused.status.code(), Some(1));
        assert!(stderr(&refused).contains(word), "{}", stderr(&refused));
    }
}

/// Whoever stores other results writes the tables anew; a figure that was not measured is found, and written over.
#[test]
fn the_tables_in_the_tree_are_those_of_the_stored_results() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let directory = tempfile::tempdir().unwrap();
    let fill = |page: &Path| {
        let options = [
            "performance",
            "--page",
            page.to_str().unwrap(),
            "-o",
            "docs/results",
        ];
        reproduce(&root, &options)
    };
    for (name, row) in [
        ("README.md", "| latency, 8 B, us | "),
        ("docs/performance.md", "| barrier, us | "),
    ] {
        let then = fs::read_to_string(root.join(name)).unwrap();
        let page = directory.path().join("page.md");
        let (before, after) = then.split_once(row).unwrap();
        fs::write(&page, format!("{before}{row}0.001{after}")).unwrap();
        let filled = fill(&page);
        assert!(filled.status.success(), "{}", stderr(&filled));
        let now = fs::read_to_string(&page).unwrap();
        assert!(
            now == then,
            "tagwire reproduce performance --page {name} -o docs/results"
        );
    }
    let missing = fill(&directory.path().join("nowhere.md"));
    assert_eq!(missing.status.code(), Some(1));
    assert!(
        stderr(&missing).contains("nowhere.md"),
        "{}",
        stderr(&missing)
    );
}

#[test]
fn results_that_are_none_are_named() {
    let directory = tempfile::tempdir().unwrap();
    leave(directory.path(), 1, "ob1", 5e6);
    leave(directory.path(), 2, "cm", 1e7);
    let file = directory.path().join("reproduced/mtl-fig4-2.json");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replace("tagwire.bench/2", "tagwire.bench/7")).unwrap();
    let refused = reproduce(directory.path(), &["mtl/fig4", "--quick", "--resume"]);
    assert_eq!(refused.status.code(), Some(1));
    let text = stderr(&refused);
    assert!(
        text.contains("mtl-fig4-2.json") && text.contains("tagwire.bench/7"),
        "{text}"
    );
}

#[test]
fn what_makes_no_sense_is_refused_before_anything_is_measured() {
    let directory = tempfile::tempdir().unwrap();
    for (arguments, word) in [
        (
            &["mtl/fig4", "-t", "bogus"][..],
            "-t bogus: unknown transport",
        ),
        (&["list", "mtl"], "'list' stands alone"),
        (&["mtl", "--quick", "--store", "x"], "cannot be used with"),
        (&["mtl", "--plan", "--resume"], "cannot be used with"),
    ] {
        let refused = reproduce(directory.path(), arguments);
        assert_eq!(refused.status.code(), Some(1));
        assert!(stderr(&refused).contains(word), "{}", stderr(&refused));
    }
    assert!(!directory.path().join("reproduced").exists());
}

/// What is kept is told with its age; what an earlier version kept, with what it lacks.
#[test]
fn stored_outcomes_are_told_with_their_age() {
    let directory = tempfile::tempdir().unwrap();
    leave(directory.path(), 1, "ob1", 5e6);
    leave(directory.path(), 2, "cm", 1e7);
    let folder = directory.path().join("reproduced");
    for number in [1, 2] {
        let file = folder.join(format!("mtl-fig4-{number}.json"));
        let text = fs::read_to_string(&file).unwrap();
        let text = text.replace("--launches 3", "--launches 5");
        let mut results: Value = serde_json::from_str(&text).unwrap();
        for row in results["rows"].as_array_mut().unwrap() {
            // Whatever runs beside this test.
            row["figures"]["other_load_pct"] = json!(1.0);
        }
        fs::write(&file, results.to_string()).unwrap();
    }
    let stored = reproduce(directory.path(), &["mtl/fig4", "--store", "kept"]);
    let text = format!("{}{}", stdout(&stored), stderr(&stored));
    assert!(stored.status.success(), "{text}");
    let kept = fs::read_to_string(directory.path().join("kept/mtl/mtl-fig4.json")).unwrap();
    let kept: Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(
        (&kept["quick"], &kept["schema"]),
        (&json!(false), &json!("tagwire.reproduce/2"))
    );
    let listed = stdout(&reproduce(directory.path(), &["list", "--store", "kept"]));
    let of = |name: &str| {
        listed
            .lines()
            .find(|line| line.starts_with(name))
            .unwrap()
            .to_owned()
    };
    assert!(of("mtl/fig4 ").contains(" full, 2"), "{listed}");
    assert!(of("mtl/fig4 ").contains("older than its code"), "{listed}");
    assert!(of("mtl/fig3a ").ends_with(" not stored"), "{listed}");
    assert!(of("mtl/table1 ").ends_with(" needs sim"), "{listed}");
}

#[test]
fn the_plan_has_hours_and_measures_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let planned = reproduce(directory.path(), &["mtl", "--plan", "-t", "shm,mpi"]);
    let text = stdout(&planned);
    assert!(planned.status.success(), "{text}{}", stderr(&planned));
    assert!(
        text.contains("mtl/fig2a ") && text.contains(" hours on a quiet machine"),
        "{text}"
    );
    assert!(!directory.path().join("reproduced").exists());
}

#[test]
fn a_folder_that_cannot_be_made_is_named() {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("taken"), "").unwrap();
    let refused = reproduce(directory.path(), &["mtl/fig4", "-o", "taken"]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("taken"));
}

#[test]
fn shares_and_factors_are_projected_without_measuring() {
    let directory = tempfile::tempdir().unwrap();
    let project = |options: &[&str]| {
        let all = [&["partitioned/fig13"], options].concat();
        reproduce(directory.path(), &all)
    };
    let published = project(&["--factor", "15.1"]);
    let text = stdout(&published);
    assert!(published.status.success(), "{text}{}", stderr(&published));
    for gain in ["1.009", "1.059", "1.235", "2.036"] {
        assert!(text.contains(gain), "{gain}: {text}");
    }
    let given = stdout(&project(&["--share", "50%", "--factor", "2"]));
    assert!(
        given.contains("50.00 %    2.000    1.333  as given"),
        "{given}"
    );
    assert!(!directory.path().join("reproduced").exists());
    for (options, reason) in [
        (&["--share", "101", "--factor", "2"][..], "0 to 100 percent"),
        (&["--factor", "0"], "greater than 0"),
        (&["--profile", "nowhere.json"], "nowhere.json"),
        (
            &["--share", "1", "--profile", "x.json"],
            "cannot be used with",
        ),
        (&["cmb/fig5", "--factor", "2"], "of partitioned/fig13 alone"),
    ] {
        let refused = project(options);
        assert_eq!(refused.status.code(), Some(1), "{options:?}");
        let text = stderr(&refused);
        assert!(text.contains(reason), "{options:?}: {text}");
    }
    let other = reproduce(directory.path(), &["mtl/fig4", "--share", "3"]);
    assert_eq!(other.status.code(), Some(1));
}

#[test]
fn figures_are_simulated_on_the_machine_of_their_paper() {
    let directory = tempfile::tempdir().unwrap();
    let on = |name: &str, on: &str| {
        let arguments = [name, "--on", on, "--quick", "-o", "out"];
        reproduce(directory.path(), &arguments)
    };
    let output = on("partitioned/fig7", "sim");
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains(" on sim:niagara (ob1), messages: "));
    let file = directory.path().join("out/partitioned-fig7.sim.json");
    let outcome: Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(outcome["column"], "sim");
    assert_eq!(outcome["runs"][0]["environment"]["simulated"], "niagara");
    assert!(outcome["runs"][0]["environment"]["commit"].is_string());
    // The same again, to the byte.
    let first = fs::read(&file).unwrap();
    assert!(on("partitioned/fig7", "sim:niagara").status.success());
    assert_eq!(fs::read(&file).unwrap(), first);
    let folder = directory.path().join("out");
    // What another process writes there at the same moment is in nobody's way.
    fs::create_dir_all(folder.join("assumed/spmv.partial")).unwrap();
    let output = on("mtl/table1", "sim");
    assert!(output.status.success(), "{}", stderr(&output));
    let text = fs::read_to_string(folder.join("mtl-table1.sim.json")).unwrap();
    let outcome: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(outcome["runs"].as_array().unwrap().len(), 4);
    // What was assumed of the skeletons is not judged.
    assert!(text.contains("collectives_pct") && text.contains("the answer is what was assumed"));
    let output = on("threads/fig5", "sim");
    assert!(stdout(&output).contains("not simulated: it is of the locks"));
    let output = on("partitioned/fig7", "sim:nosuch");
    assert_eq!(output.status.code(), Some(1));
    assert!(
        stderr(&output).contains("there is no preset 'nosuch'"),
        "{}",
        stderr(&output)
    );
}

/// What is stored of a simulation is what it is today. Where the model has changed, `tagwire reproduce ITEM --on sim --store docs/papers` is to be
/// run again, for all items.
#[test]
fn what_is_stored_of_a_simulation_is_simulated_again() {
    const ITEM: &str = "threads/fig13";
    let directory = tempfile::tempdir().unwrap();
    let output = reproduce(directory.path(), &[ITEM, "--on", "sim", "-o", "out"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let read = |file: &Path| -> Value {
        serde_json::from_str(&fs::read_to_string(file).unwrap()).unwrap()
    };
    let now = read(&directory.path().join("out/threads-fig13.sim.json"));
    let stored = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/papers/threads");
    let stored = read(&stored.join("threads-fig13.sim.json"));
    let rows = |outcome: &Value| -> Vec<Value> {
        let runs = outcome["runs"].as_array().unwrap().iter();
        runs.map(|run| run["rows"].clone()).collect()
    };
    assert!(!rows(&now).is_empty());
    assert_eq!(rows(&now), rows(&stored));
    // They also say by which build.
    for outcome in [now, stored] {
        let commit = outcome["runs"][0]["environment"]["commit"].as_str();
        assert!(commit.is_some_and(|commit| !commit.is_empty()));
    }
}
