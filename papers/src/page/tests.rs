use serde_json::json;

use super::*;
use crate::outcome::Outcome;
use crate::rows::Rows;
use crate::stored::Ran;

fn day(seconds: u64) -> String {
    format!("day {} UTC", seconds / 86_400).replacen(' ', "-", 1)
}

/// An outcome of an item by rows of one run.
fn outcome(name: &str, quick: bool, rows: &[serde_json::Value]) -> String {
    let item = find(name).unwrap()[0];
    let run = &item.runs(&["shm".to_owned()], "", quick)[0];
    let results = json!({
        "environment": {"commit": "abc123", "host": "vm", "cores": 2, "cpu_model": "M", "kernel": "6.1", "started_unix_s": 172_800},
        "rows": rows,
    });
    let results = results.as_object().unwrap();
    let ran = Ran::new(run, "tagwire bench x".to_owned(), results, 3).that_took(Some(90.0));
    Outcome::of(item, &Rows::default(), quick, vec![ran], Vec::new()).json()
}

fn latency(unit: &str, launch: u32, value: f64, load: f64) -> serde_json::Value {
    json!({
        "transport": "shm", "pml": "ob1", "unit": unit, "size": 0, "launch": launch, "latency_us": value, "other_load_pct": load
    })
}

/// Two launches of each, one more beside other load.
fn thread_cost() -> Vec<serde_json::Value> {
    vec![
        latency("processes:1", 0, 1.0, 1.0),
        latency("processes:1", 1, 1.01, 0.5),
        latency("threads:1", 0, 1.0, 2.0),
        latency("threads:1", 1, 1.02, 1.0),
        latency("threads:1", 2, 9.0, 60.0),
    ]
}

fn made(name: &str, outcomes: &[String]) -> Page {
    let files: Vec<_> = outcomes
        .iter()
        .map(|text| ("a.json".to_owned(), text.clone()))
        .collect();
    page(name, "tagwire reproduce", &files, &day).unwrap()
}

#[test]
fn a_page_has_circumstances_verdicts_and_plots() {
    let full = outcome("threads/fig3", false, &thread_cost());
    let page = made("threads", &[full]);
    for part in [
        "# Threads against processes",
        "14 figures and tables: 1 with a full outcome, 0 with a quick one; 65 of 66 published values have a claim or a place in a plot",
        ". Judgements: holds: 1, fails: 0",
        "### 003 fig 3: What thread safety costs in latency, on shared memory",
        "> **Full run**.",
        "**Machine**: M, 2 cores, Linux 6.1, host vm. **Measured** on day-2 at commit abc123. It took 1.5 minutes.",
        "**Others took** 2.0 % of the cores at the most. 1 rows were not measured without other load in 3 attempts",
        "**Stands in**: All ranks are of one machine",
        "![003 fig 3: What thread safety costs in latency, on shared memory](threads/threads-fig3.svg)",
        "| Full thread safety costs nothing to be seen. | negligible (IBM MPI) | shm (ob1) | **holds** | the same at 1 of 1 sizes",
        "| processes:1 | threads:1 |",
        "tagwire bench x",
        // What is taken from it rests on the figure.
        "so ask for it where it may be needed. (003 fig 3: shm (ob1): the same at 1 of 1 sizes",
        "- Nothing is said of 003 table 2",
    ] {
        assert!(page.text.contains(part), "{part} is not in {}", page.text);
    }
    // What other load ran beside is neither judged nor drawn.
    assert!(!page.text.contains("9.00"), "{}", page.text);
    assert_eq!(page.plots.len(), 1);
    let drawn = &page.plots[0].plot;
    assert_eq!(
        (&*page.plots[0].file, &*drawn.figure),
        ("threads-fig3.svg", "latency_us")
    );
    let names: Vec<&str> = drawn.lines.iter().map(|line| &*line.name).collect();
    assert_eq!(names, ["threads:1, shm (ob1)", "processes:1, shm (ob1)"]);
}

/// Claims about layers are of a transport, without a layer in its name.
#[test]
fn what_is_taken_may_rest_on_layers() {
    let row = |pml: &str, size: u64, value: f64| json!({"transport": "shm", "pml": pml, "size": size, "launch": 0, "availability_pct": value});
    let sizes = [65_536, 4_194_304];
    let rows = ["ob1", "cm"].map(|pml| sizes.map(|size| row(pml, size, 90.0)));
    let mut shown = [Shown::read("a.json", &outcome("mtl/fig3a", false, &rows.concat())).unwrap()];
    Shown::join(&mut shown);
    let says = "cm leaves nearly all of the sender's processor for large messages.";
    let told = shown[0].own(says, Verdict::Holds);
    assert!(told.is_some_and(|told| told.starts_with("shm: 90.0")));
}

#[test]
fn quick_outcomes_say_so_and_nothing_is_taken_from_them() {
    let page = made("threads", &[outcome("threads/fig3", true, &thread_cost())]);
    for part in [
        "### 003 fig 3, quick: ",
        "> **Quick**: fewer",
        "- Nothing is said of 003 fig 3",
    ] {
        assert!(page.text.contains(part), "{part} is not in {}", page.text);
    }
}

/// What a simulated machine has made of figure 7, where threads also vary `normal`ly.
fn simulated(normal: Option<f64>) -> String {
    let row = |noise: &str, size: u64, value: f64| {
        json!({"transport": "sim:niagara", "pml": "ob1", "policy": "messages", "partitions": 16, "compute": "sleep:10000",
            "noise": noise, "size": size, "launch": 0, "availability_paper": value})
    };
    let sizes = [2048, 65_536, 16_777_216];
    let of = |noise: &'static str, value| sizes.map(|size| row(noise, size, value));
    let mut rows: Vec<_> = [of("single:4", 0.9), of("uniform:4", 0.5)].concat();
    rows.extend(normal.into_iter().flat_map(|value| of("normal:4", value)));
    let environment = json!({"simulated": "niagara", "about": "Niagara: of a paper", "commit": "def456", "parameters": [
        {"field": "cores", "source": "text", "note": "40"}, {"field": "far-handover", "source": "fitted", "note": "on fig. 4"}]});
    let item = find("partitioned/fig7").unwrap()[0];
    let run = &item.simulated("", false).unwrap()[0].run;
    let results = json!({"environment": environment, "rows": rows});
    let ran = Ran::new(
        run,
        "tagwire reproduce x --on sim".to_owned(),
        results.as_object().unwrap(),
        1,
    );
    let mut all = Rows::default();
    all.add_stored(rows, false);
    Outcome::of(item, &all, false, vec![ran], Vec::new()).json()
}

#[test]
fn what_is_simulated_stands_in_a_column_of_its_own() {
    let alone = made("partitioned", &[simulated(None)]).text;
    for part in [
        "10 figures and tables: 0 with a full outcome, 0 with a quick one",
        "On simulated machines: holds: 2, fails: 0",
        "**Simulated** on Niagara: of a paper. Fitted: far-handover (on fig. 4).",
        "> Simulated at commit def456.<br>",
        "> **Cut** on the simulated machine: 20 rounds for 100.<br>",
        "| sim:niagara (ob1), messages | **holds** |",
    ] {
        assert!(alone.contains(part), "{part} is not in {alone}");
    }
    let before = json!({
        "schema": "tagwire.reproduce/1", "name": "partitioned/fig7", "quick": true, "commands": [], "measured": [], "claims": [],
    });
    let beside = made("partitioned", &[before.to_string(), simulated(None)]).text;
    for part in [
        "0 with a full outcome, 1 with a quick one",
        "| claim | published | sim |",
        "| sim:niagara (ob1), messages: **holds**: below at 3 of 3 sizes",
    ] {
        assert!(beside.contains(part), "{part} is not in {beside}");
    }
    assert_eq!(beside.matches("### 000 fig 7").count(), 1);
    let why = "- *One late thread leaves more than all threads that vary normally* fails";
    assert!(!beside.contains(why), "{beside}");
    for outcomes in [
        vec![simulated(Some(0.99))],
        vec![before.to_string(), simulated(Some(0.99))],
    ] {
        let text = made("partitioned", &outcomes).text;
        assert!(text.contains(why), "{why} is not in {text}");
    }
}

/// An outcome without rows is shown, and not judged.
#[test]
fn outcomes_of_the_version_before_are_not_judged() {
    let before = json!({
        "schema": "tagwire.reproduce/1", "name": "threads/table2", "quick": true, "commands": ["tagwire bench y"],
        "measured": [
            {"on": "shm (ob1)", "unit": "threads:1", "figure": "rate_msg_s", "size": 0, "median": 2e6, "low": 1e6, "high": 3e6},
        ],
        "claims": [{"says": "It is so.", "published": "0.5", "judgements": [{"on": "x", "verdict": "holds", "evidence": "0.4 (0.1..0.9); published 0.5"}]}],
    });
    let page = made("threads", &[before.to_string()]);
    for part in [
        "### 003 table 2, quick: ",
        "**Not judged**: an earlier version stored it without rows",
        "| shm (ob1) | 2.00e6 (1.00e6..3.00e6) |",
        "| 1T/1P is that of Sun MPI. | 0.344 (Sun MPI; derived) |",
        "| It is so. | x | 0.4 (0.1..0.9) |",
        "tagwire bench y",
    ] {
        assert!(page.text.contains(part), "{part} is not in {}", page.text);
    }
    assert!(!page.text.contains("**holds**"));
    // The published rates are drawn beside ours.
    let lines = &page.plots[0].plot.lines;
    assert_eq!(lines.iter().filter(|line| line.is_published).count(), 8);
}

/// What `bench` warned of stands in the box; a wide table has its units as lines, and numbers of messages stand in claims alone.
#[test]
fn boxes_have_warnings_and_wide_tables_are_turned() {
    let item = find("cmb/fig7").unwrap()[0];
    let run = &item.runs(&["shm".to_owned()], "", false)[0];
    let units = ["bins:2", "bins:4", "bins:8", "each"];
    let row = |kernel: &str, unit: &str| {
        json!({"transport": "shm", "pml": "ob1", "series": format!("kde:{kernel}/7-point-ring/{unit}@16"), "size": 256, "launch": 0,
            "speedup_pct": 1.0, "messages": 6.0})
    };
    let rows = ["spmv", "particles"].map(|kernel| units.map(|unit| row(kernel, unit)));
    let results = json!({"environment": {}, "rows": rows.concat(), "warnings": [{"message": "the spread is up to 30 %"}]});
    let ran = Ran::new(run, String::new(), results.as_object().unwrap(), 1);
    let outcome = Outcome::of(item, &Rows::default(), false, vec![ran], Vec::new()).json();
    let text = made("cmb", &[outcome]).text;
    for part in [
        "> **Warnings**: the spread is up to 30 %.",
        "| `speedup_pct` at 256 B | shm (ob1) |",
        "| kde:particles/7-point-ring/each@16 | 1.00 (1.00..1.00) |",
    ] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert!(!text.contains("`messages`"), "{text}");
}

/// The table of sums in the page about simulation is that of the stored outcomes, and each claim that does not hold has its reason.
#[test]
fn the_sums_of_simulated_verdicts_are_told() {
    use std::fs;
    let docs = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    let (mut lines, mut sums) = (Vec::new(), [0; 4]);
    for name in ["partitioned", "cmb", "reduction", "threads", "mtl"] {
        let mut shown = Vec::new();
        for entry in fs::read_dir(docs.join("papers").join(name)).unwrap() {
            let file = entry.unwrap().path().display().to_string();
            if file.ends_with(".sim.json") {
                shown.push(Shown::read(&file, &fs::read_to_string(&file).unwrap()).unwrap());
            }
        }
        Shown::join(&mut shown);
        for claim in shown.iter().flat_map(|one| &one.claims) {
            let is_open = |one: &crate::Judgement| {
                [Verdict::Fails, Verdict::Undecided].contains(&one.verdict)
            };
            let is_said = claim.likely_reason.is_some() || !claim.judgements.iter().any(is_open);
            assert!(is_said, "{name}: {}: no sim_reason", claim.says);
        }
        let counts = Verdict::ALL.map(|verdict| shown.iter().map(|one| one.count(verdict)).sum());
        for (sum, count) in sums.iter_mut().zip(counts) {
            *sum += count;
        }
        let title = &words(name).unwrap().title;
        lines.push((format!("[{title}](papers/{name}.md)"), counts));
    }
    lines.push(("**All**".to_owned(), sums));
    let mut table = "| paper | holds | fails | undecided | not testable | holds of those that were tested |\n|---|---|---|---|---|---|\n".to_owned();
    for (name, [holds, fails, undecided, not_testable]) in lines {
        let tested = holds + fails + undecided;
        let share = match tested {
            0 => "-".to_owned(),
            _ => format!("{} %", (holds * 100 + tested / 2) / tested),
        };
        let _ = writeln!(
            table,
            "| {name} | {holds} | {fails} | {undecided} | {not_testable} | {share} |"
        );
    }
    let page = fs::read_to_string(docs.join("simulation.md")).unwrap();
    assert!(page.contains(&table), "docs/simulation.md lacks:\n{table}");
}

#[test]
fn items_without_an_outcome_and_values_without_a_claim_are_listed_with_why() {
    let text = made("mtl", &[]).text;
    let (_, listed) = text.split_once("## Not run").unwrap();
    let items = listed.lines().filter(|line| line.starts_with("| 004 "));
    assert_eq!(items.count(), 7, "{listed}");
    assert!(listed.contains("needs sim: it needs 256"), "{listed}");
    assert!(listed.contains("not stored yet"), "{listed}");
    assert!(
        listed.contains("| It takes the same codes with and without dropped messages. | table1: "),
        "{listed}"
    );
}

#[test]
fn files_that_are_no_outcomes_are_named() {
    let error_of = |text: &str| {
        let file = ("a.json".to_owned(), text.to_owned());
        page("threads", "", &[file], &day).unwrap_err().to_string()
    };
    for text in [
        "",
        "{}",
        "{\"schema\": \"tagwire.bench/1\"}",
        "{\"schema\": \"tagwire.reproduce/2\", \"name\": \"no/such\", \"quick\": true}",
    ] {
        let error = error_of(text);
        assert!(error.contains("a.json"), "{error}");
    }
    for (text, told) in [
        (
            "{\n\n\"schema\": \"tagwire.reproduce/3\"}",
            "a.json: it has no outcome of 'tagwire reproduce': line 3: its schema is 'tagwire.reproduce/3'; the nearest that is read is 'tagwire.reproduce/2'",
        ),
        (
            "{\"schema\": \"tagwire.reproduce/2\",\n\"name\": \"threads/fig33\", \"quick\": true}",
            "line 2: there is no figure or table 'threads/fig33'; 'tagwire reproduce list' has them all; the nearest is 'threads/fig3'",
        ),
    ] {
        let error = error_of(text);
        assert!(error.contains(told), "{error}");
    }
    assert!(matches!(page("none", "", &[], &day), Err(Error::NoPage(_))));
}

/// What is to be taken from a paper names a claim of an item.
#[test]
fn what_is_taken_rests_on_claims() {
    for name in ["threads", "mtl", "partitioned", "cmb", "reduction"] {
        for take in &words(name).unwrap().take {
            let item = find(&take.item).unwrap()[0];
            let claims: Vec<&str> = item.claims.iter().map(|claim| &*claim.says).collect();
            let near = crate::reference::nearest(&take.claim, claims.iter().copied());
            assert!(
                claims.contains(&&*take.claim),
                "{}: '{}'; the nearest is '{near}'",
                take.item,
                take.claim
            );
        }
    }
}
