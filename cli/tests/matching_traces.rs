//! Traces of matching: recorded in jobs, counted, replayed; and those of other tools and of applications' patterns.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::command::{Outcome, tagwire};
use crate::process::{Job, example, run_line};

/// Parameters of exact engines that take other ways.
const WAYS: &str = "list:per=context,source:dir=array,source:dir=trie4,ranks=16,ucx:bins=64,\
                    flajslik:bins=16,key=tag,chunks:k=3,fuzzy:bits=16,adaptive:up=2,window=16,\
                    offload:n=1,u=1,over=bins,partner:k=1,window=16";
const WAY_COUNT: usize = 10;

/// The engines that there are, by their names.
fn engines() -> Vec<String> {
    let listed = tagwire().args(["match", "list"]).outcome();
    assert_eq!(listed.status, 0, "{listed:#?}");
    let named = |line: &str| {
        let (name, _) = line.split_once(": ")?;
        (!line.starts_with(' ')).then(|| name.to_owned())
    };
    listed.stdout.lines().filter_map(named).collect()
}

fn run(line: &str, path: &Path) -> Outcome {
    tagwire().args(line.split_whitespace()).arg(path).outcome()
}

/// The rows of a command that prints JSON.
fn rows(line: &str, path: &Path) -> Vec<Value> {
    let outcome = run(line, path);
    assert_eq!((outcome.status, &*outcome.stderr), (0, ""), "{outcome:#?}");
    let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(document["schema"], "tagwire.match/1");
    document["rows"].as_array().unwrap().clone()
}

#[test]
fn a_recorded_halo_of_four_ranks_replays_on_every_exact_engine() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().to_str().unwrap();
    let job = run_line(4, &["--record", record]);
    let job = job.args([example("halo")]).args(["50"]).finish();
    assert_eq!(job.status, 0, "{job:#?}");
    let engines = engines();
    assert!(engines.len() >= 12, "{engines:?}");
    let all = format!("{},{WAYS}", engines.join(","));
    let replayed = rows(
        &format!("match replay --engine {all} --passes 1 --format json"),
        folder.path(),
    );
    assert_eq!(replayed.len(), 4 * (engines.len() + WAY_COUNT));
    for row in &replayed {
        assert_eq!(
            (&row["other"], &row["wrong"]),
            (&0.into(), &Value::Null),
            "{row}"
        );
        // Its answers were checked on these very calls.
        let checked = &row["checked"];
        assert_eq!(checked["grade"], "exact", "{row}");
        assert_eq!(checked["operations"], row["calls"], "{row}");
        assert_eq!(checked["seed"], Value::Null, "{row}");
        // Two neighbours, 50 steps: a receive and a message each.
        assert!(row["calls"].as_u64() >= Some(200), "{row}");
    }
    let counted = rows("match stats --by rank --format json", folder.path());
    for rank in 0..4 {
        let of = |row: &&Value| row["rank"] == rank && row["part"] == "program";
        let own = counted.iter().find(of).unwrap();
        // The first rank takes the heat of the others at the end.
        let receives = if rank == 0 { 103 } else { 100 };
        assert_eq!(own["posts"], receives, "{own}");
        assert_eq!(own["arrivals"], receives, "{own}");
        assert_eq!(
            (&own["any_source"], &own["any_both"]),
            (&0.into(), &0.into())
        );
    }
    let perturbed = rows(
        "match replay --engine list,source:any=rotate --perturb 3 --passes 1 --format json",
        folder.path(),
    );
    assert!(
        perturbed
            .iter()
            .all(|row| row["wrong"].is_null() && row["checked"]["seed"] == 3),
        "{perturbed:#?}"
    );
}

#[test]
fn the_twin_of_text_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().to_str().unwrap();
    let job = run_line(2, &["--record", record, "--record-clock", "coarse"]);
    let job = job.args([example("ring")]).args(["20"]).finish();
    assert_eq!(job.status, 0, "{job:#?}");
    let file = folder.path().join("ring.1.twm");
    let text = run("match cat", &file).stdout;
    assert!(
        text.starts_with("# tagwire match trace 2\n# rank: 1\n# ranks: 2\n"),
        "{text}"
    );
    assert!(text.contains("# clock: coarse\n"), "{text}");
    let twin = folder.path().join("twin.csv");
    std::fs::write(&twin, &text).unwrap();
    let back = folder.path().join("back.twm");
    let line = format!("match cat {} -o", twin.display());
    assert_eq!(run(&line, &back).status, 0);
    assert_eq!(run("match cat", &back).stdout, text);
}

#[test]
fn the_trace_of_a_rank_that_is_killed_is_readable_up_to_its_last_call() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().to_str().unwrap();
    let options = ["--record", record, "--on-failure", "continue"];
    let mut job = Job::of_ranks(4, &options, &["death-posted"]);
    for rank in [0, 2, 3] {
        job.hear(&format!("{rank} ready"));
    }
    job.kill(1);
    job.finish();
    let counted = rows("match stats --by rank --format json", folder.path());
    let of = |row: &&Value| row["rank"] == 1 && row["part"] == "all";
    let victim = counted.iter().find(of).unwrap();
    assert!(victim["posts"].as_u64() > Some(0), "{victim}");
    let replayed = rows(
        "match replay --engine list,bins --passes 1 --format json",
        folder.path(),
    );
    assert!(
        replayed.iter().all(|row| row["other"] == 0),
        "{replayed:#?}"
    );
}

/// A ring keeps parts of 256 KiB: of some 40,000 calls the oldest are gone, and the others replay.
#[test]
fn a_ring_keeps_the_last_calls_of_a_job() {
    let folder = tempfile::tempdir().unwrap();
    let record = folder.path().to_str().unwrap();
    let options = [
        "--record",
        record,
        "--record-clock",
        "coarse",
        "--record-ring",
        "1000",
    ];
    let job = run_line(2, &options);
    let job = job.args([example("ring")]).args(["20000"]).finish();
    assert_eq!(job.status, 0, "{job:#?}");
    let file = folder.path().join("ring.1.twm");
    assert!(file.metadata().unwrap().len() <= 4096 + (2 << 18));
    let text = run("match cat", &file).stdout;
    let before = text
        .lines()
        .find_map(|line| line.strip_prefix("# before: "));
    assert!(
        before.unwrap().parse::<u64>().unwrap() > 5_000,
        "{before:?}"
    );
    assert!(
        text.lines().count() > 1000 && !text.contains("# ring"),
        "{before:?}"
    );
    let replayed = rows(
        "match replay --engine list,bins --passes 1 --format json",
        folder.path(),
    );
    assert_eq!(replayed.len(), 4);
    for row in &replayed {
        assert_eq!(
            (&row["other"], &row["wrong"]),
            (&0.into(), &Value::Null),
            "{row}"
        );
    }
    let counted = run("match stats", folder.path()).stdout;
    assert!(
        counted.contains("calls are missing before its beginning"),
        "{counted}"
    );
}

#[test]
fn what_cannot_be_recorded_or_read_is_refused_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let bench = |options: &str, record: &Path| {
        let line = format!("bench latency -m 8 -i 10 -x 1 {options}");
        let command = tagwire().args(line.split_whitespace());
        command.env("TAGWIRE_RECORD", record).outcome()
    };
    for (options, told) in [
        (
            "-p cm",
            "'bins' matches below cm and is not recorded (settings 'record', 'engine' and 'pml')",
        ),
        (
            "--engine source:any=rotate",
            "'source:any=rotate' does not match as the others do",
        ),
    ] {
        let refused = bench(options, folder.path());
        assert_ne!(refused.status, 0, "{refused:#?}");
        assert!(refused.stderr.contains(told), "{refused:#?}");
    }
    let file = folder.path().join("file");
    std::fs::write(&file, "no trace").unwrap();
    let refused = bench("", &file.join("under"));
    assert!(
        refused.stderr.contains("(setting 'record')"),
        "{refused:#?}"
    );
    for line in ["match cat", "match stats", "match replay"] {
        let refused = run(line, &file);
        assert_eq!(refused.status, 2, "{refused:#?}");
        assert!(
            refused.stderr.contains("file: it is no trace"),
            "{refused:#?}"
        );
    }
    let refused = run("match stats", folder.path());
    assert!(
        refused.stderr.contains("the folder has no traces"),
        "{refused:#?}"
    );
}

/// A trace of text with these calls, in a folder.
fn trace_of(calls: &str, folder: &Path) -> PathBuf {
    let made = run(
        "match app farm:workers=2,tasks=3 --arrivals posted --traces",
        folder,
    );
    assert_eq!(made.status, 0, "{made:#?}");
    let text = run("match cat", &folder.join("posted/farm.0.twm")).stdout;
    let is_head = |line: &&str| line.starts_with('#') || line.starts_with("ns,");
    let head: Vec<&str> = text.lines().filter(is_head).collect();
    let file = folder.join("wrong.csv");
    std::fs::write(&file, format!("{}\n{calls}\n", head.join("\n"))).unwrap();
    file
}

/// A receive of rank 1 and its message.
const PAIR: &str = "0,post,0,1,5,0,,\n0,arrive,1,1,5,0,8,";

/// What reads traces refuses a call whose answer cannot be, and takes what comes before where that is asked for.
#[test]
fn a_call_whose_answer_cannot_be_is_refused_with_its_file_by_whatever_reads_it() {
    let folder = tempfile::tempdir().unwrap();
    for (call, why) in [
        (
            "0,arrive,1,1,5,0,8,",
            "it matched something, and there was nothing",
        ),
        (
            "0,cancel,0,,,,,4",
            "it withdraws receive 4, and 4 were queued",
        ),
    ] {
        let wrong = trace_of(&format!("{}\n{call}", [PAIR; 4].join("\n")), folder.path());
        let told = format!("wrong.csv: call 9: {why} (--partial takes what comes before)");
        for line in [
            "match stats",
            "match replay --engine list --passes 1",
            "match offload",
            "match offload --refill ucx",
            "match offload --capacity 1 --real",
            "match order --entries 4 --order",
            "match threads --grid 1x1 --stencil 5 --order-from",
        ] {
            let refused = run(line, &wrong);
            assert_eq!(refused.status, 2, "{line}: {refused:#?}");
            assert!(refused.stderr.contains(&told), "{line}: {refused:#?}");
            let partial = tagwire().args(line.split_whitespace()).arg(&wrong);
            let partial = partial.arg("--partial").outcome();
            assert_eq!(partial.status, 0, "{line}: {partial:#?}");
        }
        let partial = rows("match offload --partial --format json", &wrong);
        assert_eq!(partial[0]["searches"], 4, "{partial:#?}");
    }
    // What real ranks cannot do is of a file too.
    let gone = "0,arrive,0,1,5,0,8,\n0,discard,1,,,,,0";
    let gone = trace_of(gone, folder.path());
    let refused = run("match offload --capacity 1 --real", &gone);
    assert_eq!(refused.status, 2, "{refused:#?}");
    let told = "wrong.csv: call 2: a message is thrown away";
    assert!(refused.stderr.contains(told), "{refused:#?}");
}

#[test]
fn applications_and_imports_have_a_row_for_each_model() {
    let folder = tempfile::tempdir().unwrap();
    let made = rows(
        "match app halo7:steps=2 --arrivals posted,shuffled:seed=3,causal:L=5 --format json --traces",
        folder.path(),
    );
    assert_eq!(made.len(), 3);
    for (row, name) in made.iter().zip(["posted", "shuffled:seed=3", "causal:L=5"]) {
        assert_eq!(
            (&row["arrivals"], &row["receives"]),
            (&name.into(), &(64 * 6 * 2).into())
        );
    }
    assert_eq!(made[0]["depth"]["mean"], made[0]["depth_theory"]);
    let replayed = rows(
        "match replay --engine list --passes 1 --format json",
        &folder.path().join("shuffled-seed-3"),
    );
    assert_eq!(replayed.len(), 64);
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../matching/lab/tests/samples");
    for (line, receives) in [
        (
            "match import dumpi-text --arrivals sendtime,random --format json",
            12,
        ),
        (
            "match import allprof --arrivals sendtime,random --format json",
            15,
        ),
    ] {
        let name = if line.contains("dumpi") {
            "dumpi"
        } else {
            "allprof"
        };
        let imported = rows(line, &samples.join(name));
        assert_eq!(imported.len(), 2);
        assert_eq!(imported[1]["receives"], receives, "{imported:#?}");
    }
}

/// The fields of a line of a table: those with commas are between quotation marks.
pub(crate) fn fields(line: &str) -> Vec<String> {
    let (mut all, mut is_quoted) = (vec![String::new()], false);
    for letter in line.chars() {
        match letter {
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => all.push(String::new()),
            other => all.last_mut().unwrap().push(other),
        }
    }
    all
}

/// A row of a table that stands alone says what made it and where, as one of `bench` does.
#[test]
fn rows_of_a_table_carry_the_commit_the_processor_and_the_command() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a,b.csv");
    for (line, first) in [
        ("match order --entries 8 --order same -o", "same,"),
        (
            "match depth --engine list --ahead 1 --blocks 1 --cache hot -o",
            "list,",
        ),
    ] {
        let outcome = run(line, &file);
        assert_eq!(outcome.status, 0, "{outcome:#?}");
        let text = std::fs::read_to_string(&file).unwrap();
        let (head, row) = text.split_once('\n').unwrap();
        assert!(row.contains(first), "{row}");
        let names: Vec<&str> = head.split(',').collect();
        assert_eq!(names.last(), Some(&"command"), "{head}");
        let values = fields(row.trim_end());
        assert_eq!(names.len(), values.len(), "{text}");
        let command = values.last().unwrap();
        assert!(
            command.starts_with("tagwire match ") && command.ends_with("a,b.csv"),
            "{command}"
        );
        for name in [
            "environment.commit",
            "environment.cpu_model",
            "environment.profile",
        ] {
            let place = names.iter().position(|one| *one == name).unwrap();
            assert!(!values[place].is_empty(), "{name}: {text}");
        }
    }
}

#[test]
fn a_file_that_was_cut_is_refused_unless_a_part_is_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cut.goal");
    std::fs::write(&file, "num_ranks 2\nrank 0 {\na: send 8b to 1 tag 3\n").unwrap();
    let refused = run("match import goal", &file);
    assert_eq!(refused.status, 2, "{refused:#?}");
    let told = "cut.goal: line 3: the file ends within rank 0 (--partial";
    assert!(refused.stderr.contains(told), "{refused:#?}");
    let imported = rows("match import goal --partial --format json", &file);
    assert_eq!(imported[0]["messages"], 1);
    let origin = imported[0]["origin"].as_str().unwrap();
    assert!(
        origin.ends_with("(read up to line 3: the file ends within rank 0)"),
        "{origin}"
    );
}

#[test]
fn orders_and_threads_have_their_lengths_and_depths() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rows.json");
    let drained = rows(
        "match threads --engine bins --rounds 5 --format json -o",
        &file,
    );
    let figure = |row: &Value, name: &str| row[name].as_f64().unwrap();
    assert_eq!(drained.len(), 8);
    for row in &drained {
        let (depth, theory) = (figure(row, "depth"), figure(row, "depth_theory"));
        assert!((depth - theory).abs() < 0.05 * theory, "{row}");
        assert_eq!(theory, (figure(row, "entries") + 3.0) / 4.0);
        assert!(figure(row, "attempts") < 3.0, "{row}");
    }
    let written: Value = serde_json::from_str(&std::fs::read_to_string(&file).unwrap()).unwrap();
    assert_eq!(written["rows"].as_array().unwrap(), &drained);
    let ordered = rows(
        "match order --entries 64 --order reverse,same --format json -o",
        &file,
    );
    assert_eq!(
        (figure(&ordered[0], "depth"), figure(&ordered[1], "depth")),
        (32.5, 1.0)
    );
}

/// Rows of a file have no theoretical depth; those of models keep theirs.
#[test]
fn an_order_of_a_file_is_drained_beside_those_of_models() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("order.txt");
    std::fs::write(&file, "# backwards\n30,20,10\n").unwrap();
    let line = format!(
        "match order --order same,{} --rounds 2 --format json -o",
        file.display()
    );
    let drained = rows(&line, &folder.path().join("rows.json"));
    let of_file: Vec<&Value> = drained
        .iter()
        .filter(|row| row["order"] != "same")
        .collect();
    assert_eq!(of_file.len(), 1, "{drained:#?}");
    assert_eq!(
        (&of_file[0]["entries"], &of_file[0]["depth"]),
        (&3.into(), &2.0.into())
    );
    assert_eq!(of_file[0]["depth_theory"], Value::Null);
    // Those of the model have the length of the file beside their own.
    assert_eq!(drained.len(), 1 + 4, "{drained:#?}");
    let refused = run("match order --entries 4 --order", &file);
    assert_eq!(refused.status, 2, "{refused:#?}");
    let told = "line 2 has 3 numbers, and 4 receives are posted";
    assert!(refused.stderr.contains(told), "{refused:#?}");
    let refused = run("match order --order", &folder.path().join("none"));
    assert_eq!(refused.status, 2, "{refused:#?}");
}

/// Which order it is, is the machine's; a trace that was kept has it again.
#[test]
fn threads_that_race_have_a_row_that_names_the_machine_and_a_trace_that_has_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let line = "match threads --grid 4x4 --stencil 5 --rounds 3 --format json --order-from";
    let raced = rows(&format!("{line} race --traces"), folder.path());
    assert_eq!(raced.len(), 1);
    let raced = &raced[0];
    assert_eq!(
        (&raced["order"], &raced["entries"], &raced["depth_theory"]),
        (&"race".into(), &16.into(), &Value::Null)
    );
    assert_eq!(raced["race"]["transport"], "shm");
    assert!(raced["race"]["processors"].as_u64() >= Some(1), "{raced}");
    let kept = rows(line, &folder.path().join("threads-4x4-5.0.twm"));
    assert_eq!(kept[0]["depth"], raced["depth"]);
    assert!(kept[0].get("race").is_none(), "{kept:#?}");
    let refused = tagwire()
        .args("match threads --order same --order-from race".split(' '))
        .outcome();
    assert_eq!(refused.status, 1, "{refused:#?}");
}

#[test]
fn real_ranks_run_an_application_beside_the_models() {
    let folder = tempfile::tempdir().unwrap();
    let line = "match app threads:x=2,y=2,steps=2 --arrivals posted --real --format json --traces";
    let made = rows(line, folder.path());
    assert_eq!(made.len(), 2);
    // 9 processes of 2 x 2 threads, each with 20 cells outside that are beside one of them.
    for row in &made {
        assert_eq!(row["receives"], 9 * 20 * 2, "{row}");
    }
    assert_eq!(
        (&made[1]["arrivals"], &made[1]["transport"]),
        (&"real".into(), &"shm".into())
    );
    let replayed = rows(
        "match replay --engine list,bins --passes 1 --format json",
        &folder.path().join("real"),
    );
    assert_eq!(replayed.len(), 2 * 9);
    assert!(
        replayed.iter().all(|row| row["other"] == 0),
        "{replayed:#?}"
    );
    let refused = tagwire()
        .args("match app storm --transport tcp".split(' '))
        .outcome();
    assert!(
        refused.stderr.contains("which '--real' has"),
        "{refused:#?}"
    );
}

#[test]
fn collectives_of_an_import_are_messages_of_the_library_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../matching/lab/tests/samples");
    let traces = folder.path().join("traces");
    let line = format!(
        "match import --collectives expand --arrivals causal --format json --traces {} dumpi-text",
        traces.display()
    );
    let imported = &rows(&line, &samples.join("dumpi"))[0];
    assert_eq!(
        (&imported["receives"], &imported["internal_receives"]),
        (&12.into(), &14.into())
    );
    let origin = imported["origin"].as_str().unwrap();
    let told = "expanded: 3 MPI_Barrier by dissemination, 6 MPI_Allreduce by recursive doubling";
    assert!(origin.contains(told), "{origin}");
    let folder = traces.join("causal");
    let counted = rows("match stats --format json", &folder);
    let own = counted
        .iter()
        .find(|row| row["part"] == "internal")
        .unwrap();
    assert_eq!((&own["posts"], &own["arrivals"]), (&14.into(), &14.into()));
    let text = run("match cat", &folder.join("dumpi.0.twm")).stdout;
    assert!(text.contains(told), "the header has it: {text}");
}
