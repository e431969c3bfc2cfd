//! The matching laboratory, and jobs on each of its engines.

use serde_json::Value;

use crate::command::{Outcome, tagwire};
use crate::matching_traces::fields;

/// Engines by name, with parameters that take other ways.
const ENGINES: &[&str] = &[
    "list:per=context",
    "source:dir=array",
    "source:dir=trie4,any=rotate",
    "ucx:bins=64",
    "flajslik:bins=16,key=tag",
    "chunks:k=3",
    "list:stride=256",
    "lanes",
    "fuzzy:bits=16",
    "portals:headers=1000,overflow=2,space=65536",
    "offload:n=8,u=8,over=bins",
    "adaptive:up=4,window=32",
    "partner:k=2,window=16",
];

fn run(line: &str) -> Outcome {
    tagwire().args(line.split_whitespace()).outcome()
}

/// Returns a file of the project.
fn read(name: &str) -> String {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    std::fs::read_to_string(root.join(name)).unwrap()
}

#[test]
fn the_page_of_matching_has_each_call_of_an_engine() {
    let (page, source) = (read("docs/matching.md"), read("matching/src/engine.rs"));
    let (_, contract) = source.split_once("pub trait Engine {").unwrap();
    let (contract, _) = contract.split_once("\n}").unwrap();
    let calls = contract
        .lines()
        .filter_map(|line| line.strip_prefix("    fn "));
    let calls: Vec<&str> = calls.filter_map(|line| line.split('(').next()).collect();
    assert!(calls.contains(&"expects"), "{calls:?}");
    let table = page.lines().filter(|line| line.starts_with("| `"));
    let told: Vec<&str> = table.filter_map(|line| line.split('|').nth(1)).collect();
    for call in calls {
        // With its arguments, or without where there are none.
        let names = match call.starts_with("for_each_") {
            true => vec!["`for_each_*`".to_owned()],
            false => vec![format!("`{call}("), format!("`{call}`")],
        };
        let has = |cell: &&str| names.iter().any(|name| cell.contains(name));
        assert!(told.iter().any(has), "{call}: {told:?}");
    }
}

#[test]
fn the_page_of_engines_has_each_engine_and_its_parameters() {
    let page = read("docs/engines.md");
    let listed = run("match list").stdout;
    let mut parameters = 0;
    for line in listed.lines() {
        if let Some((name, _)) = line.split_once(": ").filter(|_| !line.starts_with(' ')) {
            let row = |row: &str| row.starts_with(&format!("| `{name}"));
            assert!(page.lines().any(row), "{name}");
        } else if let Some((name, _)) = line.trim_start().split_once('=')
            && !name.contains(' ')
        {
            parameters += 1;
            let with_value = |before: &str| page.contains(&format!("{before}{name}="));
            let is_told = [":", ",", "`"].into_iter().any(with_value);
            let is_told = is_told || page.contains(&format!("`{name}`"));
            assert!(is_told, "{name}: {line}");
        }
    }
    assert!(parameters > 20, "{listed}");
}

#[test]
fn an_engine_passes_its_grade_or_is_shown_a_program() {
    let line =
        "match check list,flajslik:bins=8,key=tag source:any=rotate --operations 3000 --seed 5";
    let passed = run(line);
    assert_eq!((passed.status, &*passed.stderr), (0, ""), "{passed:#?}");
    for part in [
        "list: passed as exact: 3000 operations in ",
        "flajslik:bins=8,key=tag: passed as exact: 3000 operations",
        "source:any=rotate: passed as mpi: 3000 operations",
        "seed 5\n",
        "\n  post any-source             messages of other sources and tags  O(unexpected) 1.000",
        "\n  arrive                      receives of other sources           O(1) 1.000",
    ] {
        assert!(passed.stdout.contains(part), "{part}: {passed:#?}");
    }
    let failed = run("match check source:any=rotate --grade exact --operations 3000");
    assert_eq!(failed.status, 3, "{failed:#?}");
    for part in [
        "FAILED as exact",
        "  1  arrive ",
        "-> queued\n",
        "  wrong: the receive took",
    ] {
        assert!(failed.stdout.contains(part), "{part}: {failed:#?}");
    }
    let rows =
        run("match check bins,source:any=rotate --grade exact --operations 3000 --format json");
    assert_eq!((rows.status, &*rows.stderr), (3, ""), "{rows:#?}");
    let document: Value = serde_json::from_str(&rows.stdout).unwrap();
    let rows = document["rows"].as_array().unwrap();
    let (failed, passed) = rows.split_last().unwrap();
    assert!(
        failed["wrong"].is_string() && failed["checked"].is_null(),
        "{failed}"
    );
    assert!(passed.len() > 60, "{rows:#?}");
    for row in passed {
        assert_eq!(
            (&row["growth"], &row["checked"]["grade"]),
            (&"O(1)".into(), &"exact".into()),
            "{row}"
        );
        assert!(row["attempts"].as_f64().unwrap() <= 6.0, "{row}");
    }
    let listed = run("match list").stdout;
    assert!(
        listed.contains("ucx: bins by a hash of the 64-bit tag"),
        "{listed}"
    );
}

#[test]
fn what_cannot_be_is_refused_with_what_is_right() {
    for (line, told) in [
        ("match check ucz", "did you mean 'ucx'?"),
        (
            "match check ucx:bin=8",
            "'ucx' has no parameter 'bin'; did you mean 'bins'?",
        ),
        (
            "match check ucx:bins=1",
            "'bins' of 'ucx' is 2 to 1048576, not '1'",
        ),
        ("match check list --grade exactly", "exact, mpi, free"),
        (
            "match depth --engine list:per=contxt",
            "'per' of 'list' is vci, context, not 'contxt'",
        ),
        ("match check list --operations 0", "and not 0"),
        ("match depth --ahead 2M", "at most 1048576 entries"),
        (
            "match depth --queue unexpected --wild 1 --wild-kind both",
            "no meaning for --queue unexpected",
        ),
        (
            "match depth --queue unexpected --wild 0,1 --keys tags,grid",
            "--wild and --wild-kind source have no meaning for --queue unexpected with --keys grid: messages have the tag",
        ),
        (
            "match depth --queue posted,unexpected --wild 0,1 --wild-at spread,front",
            "--wild-at front has no meaning for --queue unexpected",
        ),
        ("match depth --keys collide-uxc", "'collide-ucx'"),
        ("match depth -o rows.txt", ".json or .csv"),
        (
            "match depth --engine fuzzy:bits=7",
            "'bits' of 'fuzzy' is 8, 16, 32, not '7'",
        ),
        ("match offload nothing.twm", "'nothing.twm' is no file; "),
        (
            "match app halo28",
            "no application is called 'halo28': did you mean 'halo27'?",
        ),
        (
            "match app halo27:zz=3",
            "'halo27' has no parameter 'zz'; did you mean 'z'?",
        ),
        (
            "match app halo7 --arrivals casual",
            "no model of arrivals is called 'casual': did you mean 'causal'?",
        ),
        ("match offload halo7 --refill al", "each, drained, ucx"),
        (
            "match offload halo7 --threshold 1K",
            "--threshold and --force are of --refill ucx",
        ),
        ("match offload halo7 --hw 0", "--hw is more than 0"),
        ("match offload halo7 --capacity 2M", "up to 1048576 entries"),
        (
            "info --engine flajslik:key=sauce",
            "'key' of 'flajslik' is source, tag, both, not 'sauce'",
        ),
    ] {
        let refused = run(line);
        assert_eq!(refused.status, 1, "{line}: {refused:#?}");
        assert!(refused.stderr.contains(told), "{line}: {refused:#?}");
    }
}

#[test]
fn depth_has_a_row_for_each_case_with_its_figures() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("depth.csv");
    let line = "match depth --engine list,ucx:bins=64 --ahead 0,16 --wild 0,50 --blocks 3 --sweep 1M --format json -o";
    let outcome = tagwire().args(line.split(' ')).arg(&file).outcome();
    assert_eq!((outcome.status, &*outcome.stderr), (0, ""), "{outcome:#?}");
    let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(document["schema"], "tagwire.match/1");
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 2 * 2 * 2);
    for row in rows {
        let figure = |name: &str| row[name].as_f64().unwrap();
        assert!(
            figure("ns_min") <= figure("ns") && figure("ns") <= figure("ns_max"),
            "{row}"
        );
        assert_eq!(row["checked"]["grade"], "exact", "{row}");
        if row["cache"] == "cold" {
            assert!(figure("lines") <= figure("l1_misses"), "{row}");
        }
        if row["engine"] == "list" {
            assert_eq!(figure("attempts"), figure("ahead") + 1.0, "{row}");
        }
    }
    let written = std::fs::read_to_string(file).unwrap();
    let lines: Vec<&str> = written.lines().collect();
    assert_eq!(lines.len(), rows.len() + 1);
    assert!(lines[0].starts_with("engine,queue,"), "{written}");
    let columns = fields(lines[0]).len();
    assert!(
        lines.iter().all(|line| fields(line).len() == columns),
        "{written}"
    );
}

/// The axes beside the lengths are lists too, in rows and as series of plots.
#[test]
fn depth_has_rows_for_each_kind_of_keys() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("depth.json");
    let line = "match depth --engine ucx,list --ahead 64,256 --keys random,collide-ucx --cache hot --blocks 1 -o";
    let told = tagwire().args(line.split(' ')).arg(&file).outcome();
    assert_eq!((told.status, &*told.stderr), (0, ""), "{told:#?}");
    assert_eq!(told.stdout.matches(" collide-ucx ").count(), 4, "{told:#?}");
    let document: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 8);
    for row in rows {
        let figure = |name: &str| row[name].as_f64().unwrap();
        let is_list = row["engine"] == "list" || row["keys"] == "collide-ucx";
        assert_eq!(
            figure("attempts") == figure("ahead") + 1.0,
            is_list,
            "{row}"
        );
    }
}

#[test]
fn an_aged_layout_has_a_row_for_each_age() {
    let line = "match depth --engine list --ahead 64 --layout fresh,aged,shuffled --age 25,200 --cache hot --blocks 1";
    let told = run(line);
    assert_eq!((told.status, &*told.stderr), (0, ""), "{told:#?}");
    for part in [" aged 25%  ", " aged 200% ", " fresh ", " shuffled "] {
        assert_eq!(told.stdout.matches(part).count(), 1, "{part}: {told:#?}");
    }
    let told = run(&format!("{line} --format json"));
    let document: Value = serde_json::from_str(&told.stdout).unwrap();
    let ages: Vec<&Value> = (0..4).map(|row| &document["rows"][row]["age"]).collect();
    assert_eq!(ages, [&Value::Null, &25.into(), &200.into(), &Value::Null]);
}

#[test]
fn wildcards_in_front_have_rows_of_their_own() {
    let line = "match depth --engine ucx --ahead 100 --behind 100 --wild 10 --wild-at spread,front --cache hot --blocks 1";
    let told = run(line);
    assert_eq!((told.status, &*told.stderr), (0, ""), "{told:#?}");
    assert!(told.stdout.contains(" 10%        "), "{told:#?}");
    assert!(told.stdout.contains(" 10% front  "), "{told:#?}");
    let told = run(&format!("{line} --format json"));
    let document: Value = serde_json::from_str(&told.stdout).unwrap();
    // Those that are ahead, and the match.
    for (row, at, attempts) in [(0, "spread", 11.0), (1, "front", 21.0)] {
        let row = &document["rows"][row];
        assert_eq!(
            (&row["wild_at"], &row["attempts"]),
            (&at.into(), &attempts.into()),
            "{row}"
        );
    }
}

#[test]
fn offload_has_a_row_for_each_shape_and_ratio() {
    let line = "match offload halo27:steps=1 storm:messages=8 --arrivals posted,shuffled --capacity 0,4,1K --ratio 1,100";
    let told = run(line);
    assert_eq!((told.status, &*told.stderr), (0, ""), "{told:#?}");
    for part in [
        "# tagwire match offload: halo27:steps=1: ",
        "# tagwire match offload: storm:messages=8: ",
        "ns x1  ",
        "ns x100\n",
        "shuffled           list           each",
    ] {
        assert!(told.stdout.contains(part), "{part}: {told:#?}");
    }
    // A head for each origin, and a line for each model and capacity.
    assert_eq!(told.stdout.lines().count(), 2 * (2 + 2 * 3), "{told:#?}");
    let told = run(&format!("{line} --format json"));
    let document: Value = serde_json::from_str(&told.stdout).unwrap();
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 * 2 * 3 * 2);
    for row in rows {
        let figure = |name: &str| row[name].as_f64().unwrap();
        let share = figure("in_hardware_share");
        match figure("capacity") {
            0.0 => assert_eq!((share, figure("hardware_looked")), (0.0, 0.0), "{row}"),
            1024.0 => assert_eq!((share, figure("software_looked")), (1.0, 0.0), "{row}"),
            _ => assert!(share > 0.0 && share <= 1.0, "{row}"),
        }
        let ns = figure("hardware_looked") + figure("ratio") * figure("software_looked");
        assert!((figure("ns") - ns).abs() < 1e-6 * ns.max(1.0), "{row}");
    }
}

/// UCX gives hardware the receives of long messages: all of a pattern whose messages are long enough, none of one whose are not.
#[test]
fn offload_by_ucx_has_a_row_for_each_threshold() {
    let line = "match offload halo27:steps=1,bytes=4096 --arrivals shuffled --refill each,ucx --threshold 1K,16K --engine ucx \
                --capacity 4,1K --ratio 1";
    let told = run(line);
    assert_eq!((told.status, &*told.stderr), (0, ""), "{told:#?}");
    for part in [
        "ucx>=1024",
        "ucx>=16384",
        "  kept: 0 short, 0 of any source, ",
    ] {
        assert!(told.stdout.contains(part), "{part}: {told:#?}");
    }
    let told = run(&format!("{line} --format json"));
    let document: Value = serde_json::from_str(&told.stdout).unwrap();
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2 + 2 * 2);
    for row in rows {
        let posted = |name: &str| row["kept"][name].as_u64();
        let share = row["in_hardware_share"].as_f64().unwrap();
        match (row["threshold"].as_u64(), row["capacity"].as_u64()) {
            (None, _) => assert_eq!(
                (&row["force"], &row["kept"]),
                (&Value::Null, &Value::Null),
                "{row}"
            ),
            (Some(1024), Some(4)) => {
                assert!(
                    posted("without_room") > Some(0) && share > 0.0 && share < 1.0,
                    "{row}"
                );
                assert_eq!(
                    (row["headers"].as_u64(), row["force"].as_u64()),
                    (Some(0), Some(8192)),
                    "{row}"
                );
            }
            (Some(1024), _) => {
                assert_eq!((share, &row["receives_spilled"]), (1.0, &0.into()), "{row}")
            }
            (Some(_), _) => {
                let all = row["receives_spilled"].as_u64();
                assert_eq!((posted("short"), share), (all, 0.0), "{row}");
            }
        }
    }
}

#[test]
fn instructions_of_a_list_grow_with_the_entries_ahead() {
    let line = "match depth --engine list --ahead 0,256 --cache hot --blocks 1 --count instructions --format json";
    let outcome = run(line);
    if outcome
        .stderr
        .contains("'valgrind --version' cannot be run")
    {
        return eprintln!("SKIPPED: no valgrind");
    }
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let of = |row: usize| document["rows"][row]["instructions"].as_f64().unwrap();
    let each = (of(1) - of(0)) / 256.0;
    // About 15 where code is optimised.
    assert!((4.0..400.0).contains(&each), "{each} for each entry");
    // Half of the receives are passed over for a message, whose call is one of two.
    let line = "match order --entries 64 --order same,reverse --rounds 1 --engine list --count instructions --format json";
    let outcome = run(line);
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let of = |row: usize| document["rows"][row]["instructions"].as_f64().unwrap();
    let each = (of(1) - of(0)) / (63.0 / 4.0);
    assert!((4.0..400.0).contains(&each), "{each} for each entry");
    assert_eq!(document["rows"][0]["checked"]["grade"], "exact");
}

#[test]
fn every_engine_matches_the_messages_of_a_job_under_ob1() {
    for engine in ENGINES {
        for queue in ["--posted", "--unexpected"] {
            let line =
                format!("bench latency -m 8 -i 20 -x 2 {queue} 40 --format json --engine {engine}");
            let outcome = run(&line);
            assert_eq!(outcome.status, 0, "{line}: {outcome:#?}");
            let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
            let used = &document["environment"]["transports"][0];
            assert_eq!(
                (&used["pml"], &used["engine"]),
                (&"ob1".into(), &(*engine).into())
            );
            assert!(document["rows"][0]["figures"]["latency_us"].as_f64() > Some(0.0));
        }
    }
}

#[test]
fn an_engine_is_refused_under_cm_with_the_reason() {
    let refused = run("bench latency -m 8 -i 10 -p cm --engine ucx:bins=64");
    assert_ne!(refused.status, 0, "{refused:#?}");
    let told =
        "the engine 'ucx:bins=64' runs under ob1 alone: under cm the transport matches, here bins";
    assert!(refused.stderr.contains(told), "{refused:#?}");
    // Beside ob1, whose engine it is, cm is measured all the same.
    let layers = run("bench latency -m 8 -i 10 --layers --engine ucx:bins=64 --format json");
    assert_eq!(layers.status, 0, "{layers:#?}");
    assert!(layers.stdout.contains("\"cm\""), "{layers:#?}");
    assert!(!layers.stderr.contains("without cm"), "{layers:#?}");
}

/// Receives of any source take their turns with the others, and lists of lengths have ranges.
#[test]
fn wildcards_have_a_position_too() {
    let outcome = run(
        "bench latency -m 8 -i 50 -x 2 --posted 0,4:16:x4 --position head,shuffled --wild 50 --engine bins --format json",
    );
    assert_eq!(outcome.status, 0, "{outcome:#?}");
    let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let rows = document["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 3 * 2, "{rows:#?}");
    for row in rows {
        let series = &row["series"];
        assert_eq!(series["wild"], 50, "{row}");
        assert!(series["position"].is_string(), "{row}");
    }
}
