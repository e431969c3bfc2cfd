//! The whole command, with real ranks: this program is its own `tagwire`, so it has a `main` of
//! its own instead of the usual test harness.
#![expect(
    clippy::unwrap_used,
    reason = "a test, which clippy cannot tell without the harness"
)]

#[path = "../../ci/wheels.rs"]
mod wheels;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode, Output};

use clap::Parser;
use serde_json::Value;
use tagwire_base::{Config, Registry};
use tagwire_bench::{BenchArgs, CompareArgs, Host, Loops};

#[derive(Debug, Parser)]
enum Cli {
    Bench(Box<BenchArgs>),
    Compare(CompareArgs),
}

fn registry() -> Registry {
    Registry::new(&tagwire_coll::settings())
        .with_reserved(&tagwire_launch::detect::RESERVED)
        .with_reserved(&tagwire_bench::VARIABLES)
}

fn main() -> ExitCode {
    let first = std::env::args_os().nth(1);
    let is_command = ["bench", "compare"]
        .iter()
        .any(|name| first.as_deref() == Some(OsStr::new(name)));
    if is_command {
        return command();
    }
    // What the harness would understand: a filter of names, and listing for other tools.
    if first.as_deref() == Some(OsStr::new("--list")) {
        return ExitCode::SUCCESS;
    }
    let filter = std::env::args()
        .nth(1)
        .filter(|word| !word.starts_with('-'));
    let mut failed = 0;
    for (name, test) in TESTS {
        if filter
            .as_ref()
            .is_some_and(|filter| !name.contains(filter.as_str()))
        {
            continue;
        }
        let passed = std::panic::catch_unwind(test).is_ok();
        println!("test {name} ... {}", if passed { "ok" } else { "FAILED" });
        failed += u8::from(!passed);
    }
    ExitCode::from(failed)
}

fn command() -> ExitCode {
    match Cli::try_parse() {
        Err(error) => {
            eprint!("{error}");
            ExitCode::from(1)
        }
        Ok(Cli::Compare(args)) => tagwire_bench::run_compare(&args).into(),
        Ok(Cli::Bench(args)) => {
            let config = Config::from_process(&registry(), [] as [(&str, &str); 0]);
            let config = config.expect("a good environment");
            let host = Host {
                version: "0.0.0".to_owned(),
                commit: "test".to_owned(),
                profile: "test".to_owned(),
                config,
                loops: Loops::of_crate::<Cli>(),
                checked: BTreeMap::new(),
            };
            tagwire_bench::run(&args, &host).into()
        }
    }
}

const TESTS: [(&str, fn()); 18] = [
    (
        "every_test_runs_and_every_byte_is_right",
        every_test_runs_and_every_byte_is_right,
    ),
    (
        "layers_are_compared_in_one_job",
        layers_are_compared_in_one_job,
    ),
    (
        "large_messages_survive_without_cross_attach",
        large_messages_survive_without_cross_attach,
    ),
    (
        "launches_and_percentiles_are_reported",
        launches_and_percentiles_are_reported,
    ),
    ("many_ranks_and_threads", many_ranks_and_threads),
    ("matching_depth_is_measured", matching_depth_is_measured),
    (
        "the_place_of_the_match_is_a_series",
        the_place_of_the_match_is_a_series,
    ),
    (
        "the_place_of_the_match_is_that_of_each_size",
        the_place_of_the_match_is_that_of_each_size,
    ),
    (
        "lists_of_engines_and_lengths_are_series",
        lists_of_engines_and_lengths_are_series,
    ),
    (
        "entries_of_other_sources_are_a_series",
        entries_of_other_sources_are_a_series,
    ),
    ("waiting_costs_little", waiting_costs_little),
    (
        "computing_ranks_are_measured_on_both_sides",
        computing_ranks_are_measured_on_both_sides,
    ),
    (
        "partitioned_operations_are_measured",
        partitioned_operations_are_measured,
    ),
    (
        "profiles_account_for_every_call",
        profiles_account_for_every_call,
    ),
    ("a_peer_runs_the_same_bodies", a_peer_runs_the_same_bodies),
    (
        "ranks_of_another_launcher_report_themselves",
        ranks_of_another_launcher_report_themselves,
    ),
    (
        "bad_requests_end_with_their_status",
        bad_requests_end_with_their_status,
    ),
    (
        "results_compare_with_themselves",
        results_compare_with_themselves,
    ),
];

fn tagwire(line: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(line.split_whitespace());
    command
}

fn run(line: &str) -> Output {
    tagwire(line).output().unwrap()
}

/// Runs a command that has to succeed, and reads its JSON.
fn measure(line: &str) -> Value {
    let output = run(&format!("{line} --format json --timeout 60"));
    let errors = String::from_utf8_lossy(&output.stderr);
    // Beside other load there may be no row with a figure.
    let is_untold = output.status.code() == Some(6) && line.starts_with("bench availability");
    assert!(output.status.success() || is_untold, "{line}: {errors}");
    let document = results(&output.stdout);
    assert_eq!(document["schema"], "tagwire.bench/2");
    document
}

/// What results hold, with flat rows.
fn results(bytes: &[u8]) -> Value {
    Value::Object(tagwire_bench::document(bytes).unwrap())
}

fn rows(document: &Value) -> &Vec<Value> {
    document["rows"].as_array().unwrap()
}

fn assert_positive(row: &Value, key: &str) {
    assert!(row[key].as_f64().unwrap() > 0.0, "{key} of {row}");
}

fn every_test_runs_and_every_byte_is_right() {
    for (test, key) in [
        ("latency", "latency_us"),
        ("bandwidth -W 9", "bandwidth_mb_s"),
        ("bibandwidth -W 9", "bandwidth_mb_s"),
        ("message-rate -W 9", "rate_msg_s"),
        ("ring", "latency_us"),
    ] {
        for raw in ["", "--raw", "-p cm"] {
            let sizes = "1,8,63,64,4096,10000,70000,1M";
            let document = measure(&format!("bench {test} -c -m {sizes} -i 6 -x 1 {raw}"));
            assert_eq!(rows(&document).len(), 8);
            for row in rows(&document) {
                assert_positive(row, key);
                assert_eq!(row["validated"], true);
            }
        }
    }
}

fn layers_are_compared_in_one_job() {
    let document = measure("bench latency --layers -m 8,64K -i 20 -x 1");
    let layers: Vec<_> = rows(&document)
        .iter()
        .map(|row| row["layer"].as_str().unwrap())
        .collect();
    assert_eq!(layers, ["ob1", "cm", "raw", "ob1", "cm", "raw"]);
    for size in rows(&document).chunks(3) {
        assert_positive(&size[0], "ratio_to_raw");
        assert_eq!(size[2]["ratio_to_raw"], 1.0);
    }
}

fn large_messages_survive_without_cross_attach() {
    for raw in ["", "--raw"] {
        let line = format!("bench bibandwidth -c -W 3 -m 100000,1M -i 3 -x 1 --format json {raw}");
        let output = tagwire(&line)
            .env("TAGWIRE_SHM_CMA", "off")
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

fn launches_and_percentiles_are_reported() {
    let document =
        measure("bench latency -m 8 -i 50 -x 1 --launches 3 -z 50,99.9 --seed 5 --bind none");
    assert_eq!(rows(&document).len(), 3);
    for (launch, row) in rows(&document).iter().enumerate() {
        assert_eq!(row["launch"], launch);
        assert_positive(row, "p50_us");
        assert_positive(row, "p99_9_us");
    }
    let summary = &document["summary"][0];
    assert_eq!(summary["launches"], 3);
    assert_positive(summary, "latency_us");
    assert_eq!(document["environment"]["seed"], 5);
    assert_eq!(document["environment"]["transports"][0]["engine"], "bins");
}

fn many_ranks_and_threads() {
    let document = measure("bench message-rate -n 4 -m 8 -i 5 -x 1 -c");
    assert_eq!(rows(&document)[0]["ranks"], 4);
    let document = measure("bench message-rate --threads 2 -m 8 -i 5 -x 1 -c");
    assert_eq!(rows(&document)[0]["threads"], 2);
    let document = measure("bench ring -n 3 -i 30 -x 3");
    assert_eq!(rows(&document)[0]["iterations"], 30);
}

fn matching_depth_is_measured() {
    for engine in ["list", "source", "bins"] {
        for what in ["posted", "unexpected"] {
            let line = format!("bench latency --{what} 100 -i 10 -x 1 -c --engine {engine}");
            let document = measure(&line);
            assert_eq!(rows(&document)[0][what], 100);
            assert_eq!(rows(&document)[0]["engine"], engine);
        }
    }
}

fn the_place_of_the_match_is_a_series() {
    // A list looks at as many entries as lie ahead, and at the one that matches; messages by which ranks agree look at all.
    for what in ["posted", "unexpected"] {
        let line = format!(
            "bench latency --{what} 100 --position head,middle,tail,shuffled -i 1000 -x 1 -c --engine list --profile"
        );
        let document = measure(&line);
        let rows = rows(&document);
        let places: Vec<&str> = rows
            .iter()
            .filter_map(|row| row["position"].as_str())
            .collect();
        for position in ["head", "middle", "tail", "shuffled"] {
            assert_eq!(places.iter().filter(|one| **one == position).count(), 1);
        }
        assert!(rows.iter().all(|row| row[what] == 100));
        let looked = document["profiles"].as_array().unwrap().iter();
        let looked = looked.map(|one| one["matching"][what]["attempts"].as_u64().unwrap());
        // Rank 1 has no unexpected messages.
        let looked = looked.filter(|looked| *looked > 0);
        let (least, most) = looked.fold((u64::MAX, 0), |(least, most), one| {
            (least.min(one), most.max(one))
        });
        assert!(most > 5 * least, "{what}: {least} to {most}");
    }
}

/// The queue is made anew for each size, and the match lies at its place in each.
fn the_place_of_the_match_is_that_of_each_size() {
    let attempts = |position: &str, sizes: &str| {
        let line = format!(
            "bench latency --unexpected 100 --position {position} -m {sizes} -i 5 -x 1 -c --engine list --profile"
        );
        let document = measure(&line);
        let profiles = document["profiles"].as_array().unwrap().iter();
        let each = profiles.map(|one| one["matching"]["unexpected"]["attempts"].as_u64().unwrap());
        each.sum::<u64>()
    };
    let (one, two) = (attempts("head", "8"), attempts("head", "8,16"));
    // What lies at the head is found at once. Where the second size had begun in the middle of the first one's turns, each of its
    // receives would have looked at many.
    assert!(two <= 3 * one, "{one}, {two}");
}

fn lists_of_engines_and_lengths_are_series() {
    let line = "bench latency --engine list,bins:first=64,source:dir=array --posted 0,40 --wild 50 -i 10 -x 1 -c --profile";
    let document = measure(line);
    let mut told: Vec<(String, u64)> = rows(&document)
        .iter()
        .map(|row| {
            assert_eq!(row["wild"], 50, "{row}");
            let engine = row["engine"].as_str().unwrap().to_owned();
            (engine, row["posted"].as_u64().unwrap())
        })
        .collect();
    told.sort();
    let wanted = ["bins", "list", "source:dir=array"]
        .map(|engine| [0, 40].map(|it| (engine.to_owned(), it)));
    assert_eq!(told, wanted.concat());
    let used = &document["environment"]["transports"][0];
    assert_eq!(used["engine"], "list,bins:first=64,source:dir=array");
    // Two ranks of six jobs. A list looks at all that lie ahead.
    let profiles = document["profiles"].as_array().unwrap();
    assert_eq!(profiles.len(), 12);
    let most = profiles
        .iter()
        .map(|one| one["matching"]["posted"]["longest"].as_u64().unwrap());
    assert!(
        most.clone().max() >= Some(41) && most.clone().min() < Some(40),
        "{profiles:#?}"
    );
    let unexpected = measure("bench latency --unexpected 0,9 -i 10 -x 1 -c");
    let lengths = rows(&unexpected)
        .iter()
        .map(|row| row["unexpected"].as_u64().unwrap());
    let mut lengths: Vec<u64> = lengths.collect();
    lengths.sort_unstable();
    assert_eq!(lengths, [0, 9]);
}

/// Receives and messages ahead that differ by their tags or by their sources: which engine looks at them, and that they are there.
fn entries_of_other_sources_are_a_series() {
    let looked = |what: &str, engine: &str| {
        let line = format!(
            "bench latency -n 5 --{what} 60 --spread sources -i 400 -x 1 -c --engine {engine} --profile"
        );
        let document = measure(&line);
        let told: Vec<_> = rows(&document)
            .iter()
            .map(|row| {
                (
                    row["spread"].as_str().unwrap(),
                    row["ranks"].as_u64(),
                    row[what].as_u64(),
                )
            })
            .collect();
        assert!(told.contains(&("sources", Some(5), Some(60))), "{told:?}");
        let profiles = document["profiles"].as_array().unwrap().iter();
        let searches = profiles.map(|one| &one["matching"][what]);
        let searches: Vec<_> = searches
            .filter(|one| one["longest"].as_u64() >= Some(60))
            .collect();
        assert!(!searches.is_empty(), "{document:#}");
        let each = searches.iter().map(|one| one["attempts"].as_u64().unwrap());
        each.sum::<u64>() / searches.len() as u64
    };
    for what in ["posted", "unexpected"] {
        // A list looks at all entries. Lists for each source hold those of others apart.
        let (list, source) = (looked(what, "list"), looked(what, "source"));
        assert!(list > 400 * 60, "{what}: {list}");
        assert!(source < list / 8, "{what}: {list}, {source}");
    }
    // By their tags all are the peer's, beside the same ranks.
    let line = "bench latency -n 3 --posted 9 --spread sources,tags -i 10 -x 1 -c";
    let document = measure(line);
    let spreads = rows(&document).iter().map(|row| row["spread"].as_str());
    let mut spreads: Vec<_> = spreads.collect();
    spreads.sort_unstable();
    assert_eq!(spreads, [Some("sources"), Some("tags")]);
    let document =
        measure("bench multi-latency -n 4 --posted 9 --wild 50 --spread sources -i 10 -x 1 -c");
    assert_eq!(rows(&document)[0]["spread"], "sources");
}

fn waiting_costs_little() {
    let document = measure("bench idle --seconds 0.3");
    let cpu = rows(&document)[0]["cpu_pct"].as_f64().unwrap();
    // A rank that spun would use all of a core; how little it is, the benchmark itself says.
    assert!(cpu < 10.0, "{cpu} % of a core");
}

fn computing_ranks_are_measured_on_both_sides() {
    let document = measure("bench availability -m 8,64K -i 20 -x 1 -c");
    let sides: Vec<_> = rows(&document)
        .iter()
        .map(|row| row["side"].as_str().unwrap())
        .collect();
    assert_eq!(sides, ["send", "recv", "send", "recv"]);
    for row in rows(&document) {
        if let Some(why) = row["error"].as_str() {
            // Beside other load the work alone may have been held up for longer than the message takes.
            assert!(why.contains("availability was not measured"), "{row}");
            continue;
        }
        let figure = |key: &str| row[key].as_f64().unwrap();
        for key in ["base_us", "iter_us", "work_us"] {
            assert_positive(row, key);
        }
        let overhead = figure("iter_us") - figure("work_us");
        // Figures have seven digits.
        let digits = 1e-3 + 2e-6 * figure("iter_us");
        assert!((overhead - figure("overhead_us")).abs() < digits, "{row}");
        let available = 100.0 * (1.0 - overhead / figure("base_us"));
        assert!(
            (available - figure("availability_pct")).abs() < 0.1 + 1e-5 * available.abs(),
            "{row}"
        );
        assert!(figure("availability_min_pct") <= figure("availability_max_pct"));
    }
    let document = measure("bench overlap --side recv -m 8,64K -i 20 -x 1 -p cm");
    let receives: Vec<_> = rows(&document)
        .iter()
        .map(|row| row["receive"].as_str().unwrap())
        .collect();
    assert_eq!(receives, ["early", "late", "early", "late"]);
    for row in rows(&document) {
        assert!(row["overlap_pct"].is_number(), "{row}");
        for key in ["communication_us", "computation_us", "total_us"] {
            assert_positive(row, key);
        }
    }
}

fn partitioned_operations_are_measured() {
    let line = "bench partitioned -m 64,1K,100 --partitions 1,16 --threads 2 --policy default,each,messages \
                --compute-time 1ms --noise gaussian --cache cold -c -i 30 --seed 7 --advise";
    let document = measure(line);
    let rows = rows(&document);
    // 100 bytes are no multiple of 16.
    assert_eq!(rows.len(), 3 * (2 + 2 + 1), "{document:#}");
    for row in rows {
        assert_positive(row, "overhead");
        assert_positive(row, "perceived_bandwidth_mb_s");
        let early = row["early_bird"].as_f64().unwrap();
        assert!((0.0..=1.0).contains(&early), "{row}");
        assert!(row["application_availability"].as_f64().unwrap() <= 1.0);
        assert!(row["samples"]["t_part_ns"].as_array().unwrap().len() > 1);
        assert_eq!(row["noise"], "gaussian:4");
        assert_eq!(row["compute"], "sleep:1000");
        let way = row["way"].as_str().unwrap();
        assert_eq!(way.starts_with("shm"), row["policy"] != "messages", "{way}");
    }
}

fn profiles_account_for_every_call() {
    for pml in ["ob1", "cm"] {
        accounts_for_every_call(pml);
    }
    // What is named is what matched.
    let document = measure("bench latency -m 8 -i 20 -x 1 -p cm");
    assert_eq!(rows(&document)[0]["engine"], "bins");
    let refused = run("bench latency --engine list -m 8 -i 20 -x 1 -p cm");
    assert!(!refused.status.success());
    let errors = String::from_utf8_lossy(&refused.stderr);
    assert!(
        errors.contains("the engine 'list' runs under ob1 alone"),
        "{errors}"
    );
    // Short ones are short also where they are kept back.
    let document = measure("bench latency --unexpected 2000 --profile -m 8 -i 20 -x 1 -p cm");
    for profile in document["profiles"].as_array().unwrap() {
        assert_eq!(profile["messages"]["sent_long"], 0, "{profile}");
    }
    let text = run("bench latency --profile -m 8 -i 20 -x 1");
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(
        text.contains("# Profile: rank 1 over shm, launch 0: "),
        "{text}"
    );
    assert!(text.contains("by protocol: sent short"), "{text}");
}

fn accounts_for_every_call(pml: &str) {
    let document = measure(&format!(
        "bench latency --profile -m 8,64K -i 20 -x 1 -p {pml}"
    ));
    assert_eq!(rows(&document)[0]["profiled"], true);
    assert_eq!(document["profiles"][0]["pml"], pml);
    let profiles = document["profiles"].as_array().unwrap();
    let ranks: Vec<_> = profiles.iter().map(|profile| &profile["rank"]).collect();
    assert_eq!(ranks, [0, 1]);
    let total = |key: &str| -> u64 {
        let of = |profile: &Value| profile["messages"][key].as_u64().unwrap();
        profiles.iter().map(of).sum()
    };
    // Two ranks among themselves: what one sends the other receives. 20 + 1 round trips are long.
    assert_eq!(total("sent"), total("received"));
    assert_eq!(total("sent_long"), 2 * 21);
    assert_eq!(total("sent_short") + total("sent_long"), total("sent"));
    for profile in profiles {
        assert!(
            profile["library_pct"].as_f64().unwrap() <= 100.0,
            "{profile}"
        );
        let calls = profile["calls"].as_array().unwrap();
        let of = |name: &str| calls.iter().find(|call| call["call"] == name).unwrap();
        assert!(of("send")["calls"].as_u64().unwrap() >= 42, "{profile}");
        assert!(of("recv")["calls"].as_u64().unwrap() >= 42, "{profile}");
    }
}

fn a_peer_runs_the_same_bodies() {
    let line = "bench latency -t shm,mpi -c -m 8,100000 -i 10 -x 1 --format json --launches 2";
    let mut command = tagwire(line);
    if let Some(mpich) = wheels::environment("mpich") {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::iter::once(mpich.join("bin")).chain(std::env::split_paths(&path));
        command.env("PATH", std::env::join_paths(folders).unwrap());
        // Cargo's has our own library.
        command.env_remove("LD_LIBRARY_PATH");
    }
    let output = command.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    if errors.contains("no libmpi_abi.so") {
        eprintln!("not checked: {errors}");
        return;
    }
    assert!(output.status.success(), "{errors}");
    let document = results(&output.stdout);
    let of = |transport: &str| {
        rows(&document)
            .iter()
            .filter(|r| r["transport"] == transport)
            .count()
    };
    assert_eq!((of("shm"), of("mpi")), (4, 4));
    assert_eq!(document["summary"][0]["transport"], "shm");
    assert!(document["summary"][1]["library"].as_str().unwrap().len() > 3);
    assert!(
        document["environment"]["transports"][1]["file"]
            .as_str()
            .unwrap()
            .contains("libmpi")
    );
}

fn ranks_of_another_launcher_report_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("results.json");
    let mut spec = tagwire_launch::JobSpec::new(2, std::env::current_exe().unwrap());
    let line = "bench latency -m 8,16 -i 10 -x 1 -o";
    spec.args = line.split_whitespace().map(Into::into).collect();
    spec.args.push(file.clone().into());
    let ended = tagwire_launch::run(spec).unwrap();
    assert_eq!(ended.exit_status, 0);
    let document = results(&fs::read(&file).unwrap());
    assert_eq!(rows(&document).len(), 2);
    assert_eq!(document["environment"]["ranks"], 2);
}

fn bad_requests_end_with_their_status() {
    for (line, status, reason) in [
        ("bench latency -n 0", 1, "0 is not in"),
        ("bench latency -n 3", 1, "exactly 2 ranks"),
        ("bench latency -m 2T", 1, "over 2^40"),
        ("bench latency --engine bin", 1, "bins"),
        ("bench latency --bind 9000", 1, "9000"),
        ("bench latency -m 1T", 2, "memory"),
        (
            "bench latency -t mpi:/nowhere/libmpi_abi.so",
            2,
            "/nowhere/libmpi_abi.so",
        ),
        (
            "bench latency -m 8 -i 1 -o /nowhere/x.json",
            2,
            "/nowhere/x.json",
        ),
        ("bench latency -m 8 -i 1 -o /dev/full", 2, "/dev/full"),
        ("bench idle --seconds 60 --timeout 0.5", 2, "--timeout"),
        (
            "compare /nowhere/a.json /nowhere/b.json",
            1,
            "/nowhere/a.json",
        ),
    ] {
        let output = run(line);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(status), "{line}: {errors}");
        assert!(errors.contains(reason), "{line}: {errors}");
        assert!(!errors.contains("panicked"), "{line}: {errors}");
    }
    let full = fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let output = tagwire("bench latency -m 8 -i 1")
        .stdout(full)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("standard output"));
}

fn results_compare_with_themselves() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("results.json");
    let name = file.display();
    let output = run(&format!("bench latency -m 8 -i 20 -x 1 -o {name}"));
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let values: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let [line] = values[..] else { panic!("{text}") };
    let mut words = line.split_whitespace();
    assert_eq!(words.next(), Some("8"));
    assert!(words.next().unwrap().parse::<f64>().unwrap() > 0.0);
    calm_down(&file);
    let output = run(&format!("compare {name} {name} --fail-above 0%"));
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    slow_down(&file);
    let slow = folder.path().join("slow.json");
    let output = run(&format!(
        "compare {name} {} --fail-above 5%",
        slow.display()
    ));
    assert_eq!(output.status.code(), Some(4));
    assert!(String::from_utf8_lossy(&output.stdout).contains("WORSE"));
}

/// Writes the results of a machine that is ten times slower beside `file`: slower than whatever the base's
/// blocks spread to.
/// Takes the load of others out of results: where they ran beside them, nothing could be told of them.
fn calm_down(file: &Path) {
    let mut document = results(&fs::read(file).unwrap());
    for row in document["rows"].as_array_mut().unwrap() {
        for key in [
            "run_queue_wait_pct",
            "other_load_pct",
            "involuntary_switches",
        ] {
            row[key] = Value::from(0.0);
        }
    }
    fs::write(file, document.to_string()).unwrap();
}

fn slow_down(file: &Path) {
    let mut document = results(&fs::read(file).unwrap());
    for row in document["rows"].as_array_mut().unwrap() {
        let slow = row["latency_max_us"].as_f64().unwrap() * 10.0;
        for key in ["latency_us", "latency_min_us", "latency_max_us"] {
            row[key] = Value::from(slow);
        }
    }
    fs::write(file.with_file_name("slow.json"), document.to_string()).unwrap();
}
