use super::*;
use crate::judgement::Verdict;
use crate::record::SCHEMA;

fn parse_results(text: &str) -> Result<Results, String> {
    let rows = Rows::parse(text.as_bytes())?;
    let mut results = Results::gather(rows.measured.iter(), &[])?;
    results.failed = rows.failed;
    Ok(results)
}

/// A report of one test, with rows of (size, latency of each launch), each with repetitions that
/// differ by 2 % in both directions.
fn report(test: &str, key: &str, rows: &[(u64, &[f64])]) -> String {
    let mut text = Vec::new();
    let (stem, unit) = key.split_once('_').unwrap();
    for (size, launches) in rows {
        for (launch, value) in launches.iter().enumerate() {
            text.push(format!(
                "{{\"size\":{size},\"transport\":\"shm\",\"launch\":{launch},\"iterations\":5,\
                 \"{key}\":{value},\"{stem}_min_{unit}\":{},\"{stem}_max_{unit}\":{}}}",
                value * 0.98,
                value * 1.02
            ));
        }
    }
    format!(
        "{{\"schema\":\"{SCHEMA}\",\"test\":\"{test}\",\"rows\":[{}]}}",
        text.join(",")
    )
}

fn verdict(test: &str, key: &str, base: &[f64], new: &[f64], threshold: f64) -> Verdict {
    let parse = |values| parse_results(&report(test, key, &[(8, values)])).unwrap();
    Comparison::of(&parse(base), &parse(new), threshold).rows[0].verdict
}

#[test]
fn worse_depends_on_the_quantity() {
    let change = |test, key| verdict(test, key, &[1.0], &[2.0], 5.0);
    assert_eq!(change("latency", "latency_us"), Verdict::Worse);
    assert_eq!(change("idle", "cpu_pct"), Verdict::Worse);
    assert_eq!(change("bandwidth", "bandwidth_mb_s"), Verdict::Better);
    assert_eq!(change("message-rate", "rate_msg_s"), Verdict::Better);
}

#[test]
fn small_changes_are_none() {
    assert_eq!(
        verdict("latency", "latency_us", &[1.0], &[1.04], 5.0),
        Verdict::Same
    );
    assert_eq!(
        verdict("latency", "latency_us", &[1.0], &[1.2], 25.0),
        Verdict::Same
    );
    assert_eq!(
        verdict("latency", "latency_us", &[0.0], &[0.0], 0.0),
        Verdict::Same
    );
}

#[test]
fn one_launch_is_judged_by_its_repetitions() {
    // 0.98..1.02 and 1.009..1.050 overlap; 1.0584 and more do not.
    assert_eq!(
        verdict("latency", "latency_us", &[1.0], &[1.03], 1.0),
        Verdict::Noise
    );
    assert_eq!(
        verdict("latency", "latency_us", &[1.0], &[1.08], 1.0),
        Verdict::Worse
    );
}

#[test]
fn several_launches_are_judged_by_themselves() {
    let wide = [0.8, 1.0, 1.3];
    assert_eq!(
        verdict("latency", "latency_us", &wide, &[1.2, 1.25, 1.28], 5.0),
        Verdict::Noise
    );
    assert_eq!(
        verdict("latency", "latency_us", &wide, &[1.4, 1.4, 1.5], 5.0),
        Verdict::Worse
    );
    assert_eq!(
        verdict("latency", "latency_us", &wide, &[0.5, 0.6, 0.7], 5.0),
        Verdict::Better
    );
}

#[test]
fn rows_are_joined_by_their_variables_and_missing_ones_named() {
    let parse = |rows: &[(u64, &[f64])]| parse_results(&report("latency", "latency_us", rows));
    let base = parse(&[(8, &[1.0]), (16, &[2.0]), (9, &[3.0])]).unwrap();
    let new = parse(&[(32, &[1.0]), (16, &[2.0]), (8, &[1.0])]).unwrap();
    let comparison = Comparison::of(&base, &new, 5.0);
    let names: Vec<&str> = comparison.rows.iter().map(|row| row.row.as_str()).collect();
    assert_eq!(
        names,
        [
            "latency size=8 transport=shm",
            "latency size=16 transport=shm"
        ]
    );
    assert_eq!(comparison.missing, ["latency size=9 transport=shm"]);
    assert_eq!(comparison.added, ["latency size=32 transport=shm"]);
    assert!(comparison.is_violated());
    let text = comparison.to_text();
    assert!(
        text.contains("# MISSING from the new results: latency size=9 transport=shm"),
        "{text}"
    );
}

#[test]
fn the_text_says_it_all() {
    let parse = |values| parse_results(&report("latency", "latency_us", &[(8, values)])).unwrap();
    let text = Comparison::of(&parse(&[1.0]), &parse(&[1.5]), 5.0).to_text();
    let expected = "\
# row                                  base          new    ratio base +-%  new +-%  verdict (threshold 5 %)
  latency size=8 transport=shm        1.000        1.500    1.500      4.0      4.0  WORSE by 50.0 %
";
    assert_eq!(text, expected);
}

#[test]
fn what_is_no_report_is_refused() {
    for (text, reason) in [
        ("", "is empty"),
        ("[1", "is cut off"),
        ("{}", "no key 'schema'"),
        (
            "{\"schema\":\"tagwire.bench/3\"}",
            "schema 'tagwire.bench/3'",
        ),
        ("{\"schema\":\"tagwire.bench/1\"}", "no key 'test'"),
        (
            "{\"schema\":\"tagwire.bench/1\",\"test\":\"latency\"}",
            "no list 'rows'",
        ),
        (
            "{\"schema\":\"tagwire.bench/1\",\"test\":\"latency\",\"rows\":[]}",
            "has no rows",
        ),
        (
            "{\"schema\":\"tagwire.bench/1\",\"test\":\"latency\",\"rows\":[1]}",
            "row 0: not an object",
        ),
        (
            "{\"schema\":\"tagwire.bench/1\",\"test\":\"latency\",\"rows\":[{\"latency_us\":null}]}",
            "row 0: 'latency_us' is no number",
        ),
    ] {
        let error = parse_results(text).unwrap_err();
        assert!(error.contains(reason), "{text}: {error}");
    }
}

fn run(base: &str, new: &str, fail_above: Option<&str>) -> ExitStatus {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    run_compare(&CompareArgs {
        base: file("base.json", base),
        new: Some(file("new.json", new)),
        by: None,
        base_value: None,
        ignore: Vec::new(),
        fail_above: fail_above.map(|text| text.parse().unwrap()),
        format: CompareFormat::Json,
    })
}

#[test]
fn the_exit_status_is_the_verdict() {
    let of = |rows: &[(u64, &[f64])]| report("latency", "latency_us", rows);
    let (good, bad) = (of(&[(8, &[1.0])]), of(&[(8, &[2.0])]));
    assert_eq!(run(&good, &bad, Some("5%")), ExitStatus::Violated);
    assert_eq!(run(&good, &bad, None), ExitStatus::Good);
    assert_eq!(run(&bad, &good, Some("5%")), ExitStatus::Good);
    assert_eq!(run(&good, &bad, Some("150")), ExitStatus::Good);
    let more = of(&[(8, &[1.0]), (16, &[1.0])]);
    assert_eq!(run(&more, &good, Some("5%")), ExitStatus::Violated);
    assert_eq!(run(&good, &more, Some("5%")), ExitStatus::Good);
    assert_eq!(
        run(&good, &of(&[(16, &[1.0])]), Some("5%")),
        ExitStatus::Usage
    );
    assert_eq!(run(&good, "{", Some("5%")), ExitStatus::Usage);
}

/// A report with one row for each launch, with `keys` beside its figure.
fn with_keys(launches: &[&str]) -> Results {
    let row = |(launch, keys): (usize, &&str)| {
        format!(
            "{{\"size\":8,\"transport\":\"ofi:tcp\",\"launch\":{launch},\"latency_us\":1.0{keys}}}"
        )
    };
    let rows: Vec<_> = launches.iter().enumerate().map(row).collect();
    let rows = rows.join(",");
    parse_results(&format!(
        "{{\"schema\":\"{SCHEMA}\",\"test\":\"latency\",\"rows\":[{rows}]}}"
    ))
    .unwrap()
}

#[test]
fn what_was_measured_beside_other_load_is_not_trusted() {
    const QUIET: &str = ",\"run_queue_wait_pct\":0.1,\"other_load_pct\":0.5,\
                         \"involuntary_switches\":3.0,\"load\":[{\"measured_ms\":1.0}]";
    const BUSY: &str = ",\"run_queue_wait_pct\":48.0,\"other_load_pct\":50.0,\
                        \"involuntary_switches\":300.0,\"load\":[{\"measured_ms\":2.0}]";
    for (base, new, which) in [
        (&[QUIET][..], &[QUIET][..], None),
        (&[QUIET], &[BUSY], Some("new")),
        (&[BUSY], &[QUIET], Some("base")),
        (&[BUSY], &[BUSY], Some("both")),
        (&[""], &[BUSY], Some("new")),
        // The median stands while fewer than half of the launches were disturbed.
        (&[QUIET], &[QUIET, BUSY, QUIET], None),
        (&[QUIET], &[QUIET, BUSY], Some("new")),
    ] {
        let comparison = Comparison::of(&with_keys(base), &with_keys(new), 5.0);
        assert!(comparison.missing.is_empty(), "{comparison:?}");
        assert_eq!(comparison.rows[0].disturbed(), which);
        let text = comparison.to_text();
        let doubt =
            which.map(|which| format!("same, not to be trusted: other load beside {which}\n"));
        match doubt {
            Some(doubt) => assert!(text.contains(&doubt) && text.contains("--bind"), "{text}"),
            None => assert!(
                !text.contains("trusted") && !text.contains("--bind"),
                "{text}"
            ),
        }
    }
}

#[test]
fn a_changed_provider_is_named() {
    let of = |provider: &str| with_keys(&[&format!(",\"provider\":\"{provider}\"")]);
    let name = |base: &Results, new: &Results| Comparison::of(base, new, 5.0).rows[0].row.clone();
    let (rxm, plain) = (of("tcp;ofi_rxm"), of("tcp"));
    assert!(name(&rxm, &plain).ends_with(" provider=tcp;ofi_rxm -> tcp"));
    assert_eq!(name(&rxm, &rxm), "latency size=8 transport=ofi:tcp");
    // Before it was told.
    assert_eq!(
        name(&with_keys(&[""]), &plain),
        "latency size=8 transport=ofi:tcp"
    );
}

#[test]
fn rows_of_jobs_that_failed_have_no_figure() {
    let base = report("latency", "latency_us", &[(8, &[1.0]), (16, &[1.0])]);
    let failed = "{\"size\":16,\"transport\":\"shm\",\"error\":\"no such thing\"}]";
    let new = report("latency", "latency_us", &[(8, &[1.0])]);
    let new = new.replace("}]", &format!("}},{failed}"));
    let parse = |text: &str| parse_results(text).unwrap();
    let comparison = Comparison::of(&parse(&base), &parse(&new), 5.0);
    assert_eq!(comparison.missing, ["latency size=16 transport=shm"]);
    assert_eq!(
        comparison.failed,
        ["latency size=16 transport=shm: no such thing"]
    );
    assert!(
        comparison
            .to_text()
            .contains("# FAILED in the new results: latency size=16")
    );
}

#[test]
fn thresholds_are_percentages() {
    assert_eq!("5%".parse(), Ok(Threshold(5.0)));
    assert_eq!("2.5".parse(), Ok(Threshold(2.5)));
    for text in ["", "-1%", "five", "NaN", "inf%"] {
        assert!(text.parse::<Threshold>().is_err());
    }
}

/// A new version of a library is compared with the old one; versions side by side with themselves.
#[test]
fn libraries_are_compared_across_versions() {
    let results = |rows: &[(&str, Option<&str>, f64)]| {
        let row = |(transport, library, latency): &(&str, Option<&str>, f64)| {
            let library = library.map_or_else(String::new, |it| format!("\"library\":\"{it}\","));
            format!(
                "{{\"size\":8,\"transport\":\"{transport}\",{library}\"latency_us\":{latency}}}"
            )
        };
        let rows: Vec<_> = rows.iter().map(row).collect();
        let rows = rows.join(",");
        parse_results(&format!(
            "{{\"schema\":\"{SCHEMA}\",\"test\":\"latency\",\"rows\":[{rows}]}}"
        ))
        .unwrap()
    };
    let old = results(&[("ofi:tcp", Some("libfabric 1.17"), 4.0)]);
    let new = results(&[("ofi:tcp", Some("libfabric 2.5"), 8.0)]);
    let before_it_was_told = results(&[("ofi:tcp", None, 4.0)]);
    for base in [&old, &before_it_was_told] {
        let comparison = Comparison::of(base, &new, 5.0);
        assert!(comparison.missing.is_empty(), "{comparison:?}");
        assert_eq!(comparison.rows[0].verdict, Verdict::Worse);
        let row = &comparison.rows[0].row;
        assert!(row.ends_with("-> libfabric 2.5"), "{row}");
    }
    let both = results(&[
        ("ofi:tcp", Some("libfabric 1.17"), 4.0),
        ("ofi:tcp", Some("libfabric 2.5"), 8.0),
    ]);
    let comparison = Comparison::of(&both, &both, 5.0);
    assert_eq!(comparison.rows.len(), 2);
    assert!(
        comparison
            .rows
            .iter()
            .all(|row| row.verdict == Verdict::Same)
    );

    // An MPI is another one, not another version of the same.
    let mpi = |name| results(&[("mpi", Some(name), 1.0)]);
    let comparison = Comparison::of(&mpi("MPICH 5"), &mpi("Open MPI 5"), 5.0);
    assert_eq!(comparison.missing.len(), 1);
}

/// A report with a row for each of (size, variables, latency).
fn with_variables(rows: &[(u64, &str, f64)]) -> String {
    let row = |(size, variables, latency): &(u64, &str, f64)| {
        format!("{{\"size\":{size},{variables},\"latency_us\":{latency}}}")
    };
    let rows: Vec<_> = rows.iter().map(row).collect();
    let rows = rows.join(",");
    format!("{{\"schema\":\"{SCHEMA}\",\"test\":\"latency\",\"rows\":[{rows}]}}")
}

fn rows(text: &str) -> Rows {
    Rows::parse(text.as_bytes()).unwrap()
}

fn options(by: Option<&str>, ignore: &[&str]) -> CompareArgs {
    CompareArgs {
        base: "base.json".into(),
        new: Some("new.json".into()),
        by: by.map(str::to_owned),
        base_value: None,
        ignore: ignore.iter().map(|key| (*key).to_owned()).collect(),
        fail_above: None,
        format: CompareFormat::Text,
    }
}

#[test]
fn rows_of_one_file_are_compared_by_a_variable() {
    const SHM: &str = "\"transport\":\"shm\",\"pml\":\"ob1\"";
    const MPI: &str = "\"transport\":\"mpi\",\"library\":\"MPICH 5, of a name that is long\"";
    let file = rows(&with_variables(&[
        (8, SHM, 1.0),
        (16, SHM, 2.0),
        (32, SHM, 2.0),
        (8, MPI, 2.0),
        (16, MPI, 16.0),
    ]));
    // The library and the pml come with the transport.
    let compared = by::compare("transport", &file, None, &options(None, &[]), 5.0).unwrap();
    let names: Vec<_> = compared
        .rows
        .iter()
        .map(|row| (row.row.as_str(), row.ratio))
        .collect();
    assert_eq!(
        names,
        [
            ("latency size=8 transport=shm -> mpi", 2.0),
            ("latency size=16 transport=shm -> mpi", 8.0)
        ]
    );
    assert_eq!(compared.missing, ["latency size=32 transport=shm -> mpi"]);
    assert_eq!(compared.not_joined_by, ["transport", "library", "pml"]);
    let text = compared.to_text();
    assert!(
        text.contains("# geometric mean of mpi/shm: 4.000 over 2 rows\n"),
        "{text}"
    );
    assert!(
        text.contains("# not joined by: transport, library, pml\n"),
        "{text}"
    );
    let by_library = by::compare("library", &file, None, &options(None, &[]), 5.0).unwrap();
    assert_eq!(
        by_library.rows[0].row,
        "latency size=8 library=none -> MPICH 5"
    );
}

#[test]
fn rows_of_two_files_are_compared_by_a_variable() {
    let engine = |name: &str| format!("\"transport\":\"shm\",\"engine\":\"{name}\"");
    let list = with_variables(&[(8, &engine("list"), 1.0)]);
    let bins = with_variables(&[(8, &engine("bins"), 0.5)]);
    let (list, bins) = (rows(&list), rows(&bins));
    let compared = by::compare("engine", &list, Some(&bins), &options(None, &[]), 5.0).unwrap();
    assert_eq!(
        compared.rows[0].row,
        "latency size=8 transport=shm engine=list -> bins"
    );
    assert_eq!(compared.rows[0].verdict, Verdict::Better);
    // Or whatever the engine is.
    let compared = compare_two(&list, &bins, &options(None, &["engine"]), 5.0).unwrap();
    assert_eq!(compared.rows[0].row, "latency size=8 transport=shm");
    let refused = compare_two(&list, &bins, &options(None, &[]), 5.0)
        .unwrap_err()
        .to_string();
    assert_eq!(
        refused,
        "new.json: no row has its counterpart in base.json: they differ in engine (list against bins); see --by and --ignore"
    );
    let both = [(8, &*engine("list"), 1.0), (8, &*engine("bins"), 0.5)];
    let both = rows(&with_variables(&both));
    let refused = compare_two(&both, &bins, &options(None, &["engine"]), 5.0)
        .unwrap_err()
        .to_string();
    assert_eq!(
        refused,
        "base.json: has several values of 'engine', which is ignored: compare --by engine"
    );
    for (by, reason) in [
        (
            "size",
            "all rows have the same 'size': there is nothing to compare (--by)",
        ),
        (
            "colour",
            "no row has the variable 'colour': there are engine, size, transport",
        ),
    ] {
        let refused = by::compare(by, &list, Some(&bins), &options(None, &[]), 5.0).unwrap_err();
        assert_eq!(refused.to_string(), reason);
    }
}

#[test]
fn circumstances_that_differ_are_named() {
    let map = |text: &str| serde_json::from_str(text).unwrap();
    let base = map(
        "{\"host\":\"a\",\"profile\":\"release\",\"kernel\":\"6.1\",\"seed\":1,\"governors\":[\"performance\"]}",
    );
    let new = map("{\"host\":\"b\",\"profile\":\"dist\",\"kernel\":\"6.1\",\"seed\":2}");
    let found = differences(&base, &new);
    let keys: Vec<_> = found.iter().map(|it| it.key.as_str()).collect();
    assert_eq!(keys, ["governors", "host", "profile"]);
    assert!(
        differences(&base, &serde_json::Map::new()).is_empty(),
        "CSV tells nothing"
    );
    let same = parse_results(&report("latency", "latency_us", &[(8, &[1.0])])).unwrap();
    let mut comparison = Comparison::of(&same, &same, 5.0);
    comparison.environment = found;
    let text = comparison.to_text();
    let line = "# environments differ: governors [\"performance\"] -> not told; host a -> b; profile release -> dist\n";
    assert!(text.contains(line), "{text}");
}

const MPICH: &str = "\"transport\":\"mpi\",\"library\":\"MPICH Version: 5.0.2\"";
const OPEN_MPI: &str = "\"transport\":\"mpi\",\"library\":\"Open MPI v5.0.11, package\"";
const SHM: &str = "\"transport\":\"shm\",\"pml\":\"ob1\",\"engine\":\"bins\"";

/// Rows lie in the order in which jobs were launched; the base is the first one of the command.
#[test]
fn the_base_is_the_first_one_of_the_command() {
    let launched = [(8, MPICH, 2.0), (8, SHM, 1.0)];
    let text = with_variables(&launched);
    let environment = "\"environment\":{\"transports\":[{\"transport\":\"shm\"},\
                       {\"transport\":\"mpi\",\"library\":\"MPICH Version: 5.0.2\"}]},\"rows\"";
    let in_order = rows(&text.replace("\"rows\"", environment));
    let name = |file: &Rows, base: Option<&str>| {
        let mut options = options(Some("transport"), &[]);
        options.base_value = base.map(str::to_owned);
        let compared = by::compare("transport", file, None, &options, 5.0);
        compared.map(|compared| compared.rows[0].row.clone())
    };
    let forth = "latency size=8 transport=shm -> mpi";
    assert_eq!(name(&in_order, None).unwrap(), forth);
    let back = name(&in_order, Some("mpi")).unwrap();
    assert_eq!(back, "latency size=8 transport=mpi -> shm");
    let refused = name(&in_order, Some("ucx")).unwrap_err().to_string();
    assert_eq!(
        refused,
        "no row has transport=ucx (--base): there are shm, mpi"
    );
    // Series over one transport: the summary has them in the order of the command.
    let unit = |unit: &str| format!("\"transport\":\"shm\",\"unit\":\"{unit}\"");
    let (threads, processes) = (unit("threads:2"), unit("processes:2"));
    let text = with_variables(&[(8, &threads, 2.0), (8, &processes, 1.0)]);
    let summary = format!("],\"summary\":[{{\"size\":8,{processes}}},{{\"size\":8,{threads}}}]}}");
    let file = rows(&text.replace("]}", &summary));
    let compared = by::compare("unit", &file, None, &options(Some("unit"), &[]), 5.0).unwrap();
    assert!(
        compared.rows[0]
            .row
            .ends_with("unit=processes:2 -> threads:2")
    );
}

#[test]
fn series_are_compared_by_the_names_of_the_report() {
    let file = rows(&with_variables(&[
        (8, SHM, 1.0),
        (16, SHM, 1.0),
        (8, MPICH, 2.0),
        (16, MPICH, 2.0),
        (8, OPEN_MPI, 4.0),
    ]));
    let options = options(Some("series"), &[]);
    let compared = by::compare("series", &file, None, &options, 5.0).unwrap();
    let names: Vec<_> = compared.rows.iter().map(|row| row.row.as_str()).collect();
    assert_eq!(
        names,
        [
            "latency size=8 series=shm -> MPICH 5.0.2",
            "latency size=16 series=shm -> MPICH 5.0.2",
            "latency size=8 series=shm -> Open MPI 5.0.11"
        ]
    );
    assert_eq!(compared.geometric_means[0].of, "MPICH 5.0.2/shm");
    // In two files the same series has the file's name.
    let compared = by::compare("series", &file, Some(&file), &options, 5.0).unwrap();
    assert_eq!(
        compared.rows[0].row,
        "latency size=8 series=shm · base -> MPICH 5.0.2 · base"
    );
}

#[test]
fn what_is_not_to_be_trusted_is_no_verdict() {
    const BUSY: &str = "\"transport\":\"shm\",\"run_queue_wait_pct\":48.0,\"other_load_pct\":50.0";
    const QUIET: &str = "\"transport\":\"shm\"";
    let of = |load: &str, values: &[f64]| {
        let rows: Vec<_> = (3..)
            .zip(values)
            .map(|(n, value)| (1 << n, load, *value))
            .collect();
        with_variables(&rows)
    };
    let base = of(QUIET, &[1.0]);
    for (new, status) in [
        (of(QUIET, &[1.0]), ExitStatus::Good),
        (of(BUSY, &[1.0]), ExitStatus::Untold),
        (of(BUSY, &[5.0]), ExitStatus::Untold),
        (of(QUIET, &[5.0]), ExitStatus::Violated),
    ] {
        assert_eq!(run(&base, &new, Some("5%")), status);
        assert_eq!(run(&base, &new, None), ExitStatus::Good);
    }
    assert_eq!(ExitStatus::Untold.code(), 6);
    // What is known to be worse, or missing, is worse whatever else is not known.
    let both = with_variables(&[(8, BUSY, 1.0), (16, QUIET, 5.0)]);
    let two = of(QUIET, &[1.0, 1.0]);
    assert_eq!(run(&two, &both, Some("5%")), ExitStatus::Violated);
    assert_eq!(
        run(&two, &of(BUSY, &[1.0]), Some("5%")),
        ExitStatus::Violated
    );

    let gather = |text: &str| parse_results(text).unwrap();
    let compared = Comparison::of(&gather(&two), &gather(&both), 5.0);
    let mean = &compared.geometric_means[0];
    assert_eq!((mean.ratio.round(), mean.rows), (5.0, 1));
    let compared = Comparison::of(&gather(&base), &gather(&of(BUSY, &[5.0])), 5.0);
    assert!(compared.geometric_means.is_empty());
    let text = compared.to_text();
    assert!(
        text.contains("would be worse by 400.0 %, not to be trusted") && !text.contains("WORSE"),
        "{text}"
    );
    assert!(
        text.contains("# 1 of 1 rows cannot be told: other processes ran"),
        "{text}"
    );
}

#[test]
fn no_name_of_a_file_changes_the_terminal_or_adds_a_line() {
    let evil = "\\u001b[31mx\\u202e\\n# fine";
    let variables =
        format!("\"transport\":\"{evil}\",\"{evil}\":\"{evil}\",\"library\":\"{evil}\"");
    let file = with_variables(&[(8, &variables, 1.0), (16, SHM, 1.0)]);
    let results = parse_results(&file).unwrap();
    let text = Comparison::of(&results, &results, 5.0).to_text();
    assert!(!text.contains(['\u{1b}', '\u{202e}']), "{text:?}");
    assert_eq!(text.lines().count(), 4, "{text:?}");
}
