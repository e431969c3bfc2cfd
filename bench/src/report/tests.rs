use std::collections::BTreeMap;
use std::io::{self, Write};

use super::output::Output;
use super::text::{Table, closing, preamble};
use super::*;
use crate::args::{Format, Percentiles};
use crate::environment::Machine;
use crate::environment::Used;
use crate::error::ExitStatus;
use crate::line_transfer::AFTER;
use crate::record::tests::sample;
use crate::record::{Sampling, Series};

/// The circumstances of a machine that does not exist.
fn environment(launches: u32) -> Environment {
    let shm = Used {
        transport: "shm".to_owned(),
        why: "asked for".to_owned(),
        pml: Some("ob1".to_owned()),
        engine: Some("bins".to_owned()),
        ..Used::default()
    };
    let text = |text: &str| Some(text.to_owned());
    Environment {
        version: "0.1.0".to_owned(),
        commit: "0123abc".to_owned(),
        profile: "dist".to_owned(),
        started_unix_s: 1_700_000_000,
        machine: Machine {
            host: text("somewhere"),
            kernel: text("6.18.0"),
            cpu_model: text("Some CPU"),
            virtual_machine: Some(true),
            cpus_online: text("0-1"),
            cpus_allowed: text("0-1"),
            cores: Some(2),
            smt: Some(false),
            numa_nodes: 1,
            governors: Vec::new(),
            boost: None,
            memory_bytes: Some(1 << 30),
            clock_source: text("tsc"),
            tcp_congestion: text("bbr"),
            clock_cost_ns: 21.5,
        },
        ranks: 2,
        launches,
        binding: "core".to_owned(),
        oversubscribed: false,
        seed: 7,
        transports: vec![shm],
        settings: BTreeMap::from([("engine".to_owned(), "list".to_owned())]),
        other: None,
    }
}

pub(crate) fn report(launches: u32) -> Report {
    Report::new(
        "latency".parse().unwrap(),
        "tagwire bench latency -m 8,64".to_owned(),
        environment(launches),
    )
}

/// Two series, two launches.
fn compared() -> Report {
    let mut report = report(2);
    for (launch, factor) in [(0, 1.0), (1, 1.5)] {
        for (size, time) in [(8, 0.2), (64, 0.4)] {
            report.add(sample(size, "shm", launch, time * factor));
            report.add(sample(size, "mpi", launch, time * 4.0));
        }
    }
    report.sum_up();
    report
}

#[test]
fn the_preamble_names_what_matters() {
    let expected = "\
# Tagwire bench latency
# Command: tagwire bench latency -m 8,64
# Version: 0.1.0 (commit 0123abc, profile dist)
# Transport: shm (asked for)
# Pml: ob1, engine bins
# Machine: Some CPU (virtual), CPUs 0-1 (allowed 0-1), 1 NUMA nodes, SMT off, governor unknown, kernel 6.18.0
# Ranks: 2, bound: core
# Clock: tsc, 21.5 ns a look
# Seed: 7
# Setting: engine = list
";
    assert_eq!(preamble(&report(1)), expected);
}

#[test]
fn one_series_has_the_value_first() {
    let mut report = report(1);
    let mut row = sample(8, "shm", 0, 0.1664);
    row.figures.set("p50_us", 0.16);
    row.figures.set("p99_9_us", 1.25);
    report.add(row.clone());
    report.sum_up();
    let percentiles: Percentiles = "50,99.9".parse().unwrap();
    let table = Table::of(&report, Some(&percentiles));
    let expected = "\
# Size       Latency (us)     Spread (%)       p50 (us)     p99.9 (us)
8                   0.166           20.0          0.160          1.250
";
    assert_eq!(table.header() + &table.line(8, &[Some(&row)]), expected);
}

#[test]
fn several_series_are_compared_in_one_table() {
    let report = compared();
    let table = Table::of(&report, None);
    let expected = "\
# Series 1: shm
# Series 2: mpi:Some-MPI-1.0
# Size     1 Latency (us)   1 Spread (%)   1 In run (%) 2 Latency (us)   2 Spread (%)   2 In run (%) shm/mpi:Some-MPI-1.0
8                   0.250           40.0           20.0          0.800            0.0           20.0                0.312
64                  0.500           40.0           20.0          1.600            0.0           20.0                0.312
";
    assert_eq!(table.of_summary(&report, None), expected);
    assert_eq!(table.of_summary(&report, Some(130)), expected);
    // A series is not torn apart.
    let expected = "\
# Series 1: shm
# Series 2: mpi:Some-MPI-1.0
# Size     1 Latency (us)   1 Spread (%)   1 In run (%)
8                   0.250           40.0           20.0
64                  0.500           40.0           20.0
# Size     2 Latency (us)   2 Spread (%)   2 In run (%) shm/mpi:Some-MPI-1.0
8                   0.800            0.0           20.0                0.312
64                  1.600            0.0           20.0                0.312
";
    assert_eq!(table.of_summary(&report, Some(80)), expected);
    // A column is never left out, however narrow the terminal is.
    let narrow = table.of_summary(&report, Some(1));
    assert_eq!(narrow.matches("# Size").count(), 2, "{narrow}");
}

#[test]
fn many_series_have_a_line_each() {
    let mut report = report(1);
    for (transport, time) in [
        ("shm", 0.2),
        ("ucx:tcp", 4.0),
        ("ofi:tcp", 4.1),
        ("ofi:udp", 8.0),
    ] {
        report.add(sample(8, transport, 0, time));
    }
    report.add(sample(64, "ucx:tcp", 0, 4.0));
    report.add(sample(64, "ofi:tcp", 0, 4.0));
    report.sum_up();
    let expected = "\
# Size       Latency (us)     Spread (%)        shm/own  Series
8                   0.200           20.0          1.000 *shm
8                   4.000           20.0          0.050  ucx:tcp(Some-MPI-1.0)
8                   4.100           20.0          0.049  ofi:tcp(Some-MPI-1.0)
8                   8.000           20.0          0.025  ofi:udp(Some-MPI-1.0)
64                  4.000           20.0              -  ucx:tcp(Some-MPI-1.0)
64                  4.000           20.0              -  ofi:tcp(Some-MPI-1.0)
# * is better than all others of its size, beyond the noise
";
    assert_eq!(
        Table::of(&report, None).of_summary(&report, Some(80)),
        expected
    );
    // Who is best is not known where other load ran beside one of them.
    let mut busy = sample(8, "ofi:udp", 0, 9.0);
    busy.figures.set(OTHERS, 50.0);
    report.rows.retain(|row| row.series.transport != "ofi:udp");
    report.add(busy);
    report.sum_up();
    let text = Table::of(&report, None).of_summary(&report, None);
    assert!(!text.contains("*shm"), "{text}");
}

#[test]
fn the_series_are_in_the_order_of_the_command() {
    let mut report = report(2);
    report.add(sample(8, "mpi", 0, 1.0));
    report.add(sample(8, "shm", 0, 0.5));
    report.sum_up();
    let order: Vec<&str> = report
        .series()
        .iter()
        .map(|row| row.series.transport.as_str())
        .collect();
    assert_eq!(order, ["shm", "mpi"]);
    assert_eq!(report.summary[0].series.transport, "shm");
}

#[test]
fn the_summary_holds_medians_over_launches() {
    let report = compared();
    assert_eq!((report.rows.len(), report.summary.len()), (8, 4));
    let first = &report.summary[0];
    assert_eq!(
        (first.size, first.sampling.launch, first.sampling.launches),
        (8, None, Some(2))
    );
    assert_eq!(first.sampling.iterations, 20_000);
    let expected = [
        ("latency_us", 0.25),
        ("latency_min_us", 0.2),
        ("latency_max_us", 0.3),
        ("latency_spread_pct", 40.0),
        ("latency_in_run_spread_pct", 20.0),
    ];
    assert_eq!(first.figures.iter().collect::<Vec<_>>(), expected);
}

#[test]
fn json_reads_back() {
    let report = compared();
    let text = report.to_json().unwrap();
    assert_eq!(serde_json::from_str::<Report>(&text).unwrap(), report);
    assert!(text.starts_with("{\n  \"schema\": \"tagwire.bench/2\",\n  \"test\": \"latency\",\n"));
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["environment"]["transports"][0]["engine"], "bins");
    assert_eq!(value["rows"][1]["series"]["library"], "Some MPI 1.0");
}

#[test]
fn csv_has_the_keys_of_all_rows() {
    let mut report = report(1);
    report.add(sample(8, "shm", 0, 0.25));
    let mut row = sample(8, "mpi", 0, 1.0);
    row.series.library = Some("A, \"quoted\" MPI".to_owned());
    report.add(row);
    let expected = [
        "test,size,transport,pml,engine,ranks,launch,iterations,repetitions,latency_us,latency_min_us,latency_max_us,latency_spread_pct,library,",
        "latency,8,shm,ob1,hash-bins,2,0,10000,5,0.25,0.225,0.275,20.0,,",
        "latency,8,mpi,,,2,0,10000,5,1.0,0.9,1.1,20.0,\"A, \"\"quoted\"\" MPI\",",
    ];
    let text = csv::to_text(&report).unwrap();
    assert_eq!(text.lines().count(), expected.len());
    for (line, expected) in text.lines().zip(expected) {
        assert!(line.starts_with(expected), "{line}");
    }
}

/// Readers of tables take neither lists nor objects; what the loads of the ranks come to is in columns of its own.
#[test]
fn csv_has_no_column_of_json() {
    let mut report = report(1);
    report.add(disturbed(8));
    assert!(report.to_json().unwrap().contains("\"load\""));
    let text = csv::to_text(&report).unwrap();
    let (heads, row) = text.split_once('\n').unwrap();
    let heads: Vec<&str> = heads.split(',').collect();
    assert!(heads.contains(&"run_queue_wait_pct") && !heads.contains(&"load"));
    let own = heads
        .iter()
        .position(|head| head.starts_with("environment"));
    for field in row.split(',').take(own.unwrap()) {
        assert!(!field.contains(['[', '{']), "{field}");
    }
}

/// Text that looks like a number, lists and what is not known come back as they were.
#[test]
fn csv_has_the_environment_and_reads_back_like_json() {
    let mut report = report(1);
    report.environment.machine.kernel = Some("6.1".to_owned());
    report.environment.machine.host = Some("a, \"b\"".to_owned());
    report.environment.machine.cpu_model = Some("null".to_owned());
    report.environment.machine.boost = None;
    report.add(sample(8, "shm", 0, 0.25));
    report.add(sample(64, "shm", 0, 0.5));
    let csv = crate::document(csv::to_text(&report).unwrap().as_bytes()).unwrap();
    let json = crate::document(report.to_json().unwrap().as_bytes()).unwrap();
    assert_eq!(csv["environment"], json["environment"]);
    for key in ["command", "test"] {
        assert_eq!(csv[key], json[key], "{key}");
    }
    for row in csv["rows"].as_array().unwrap() {
        let keys = row.as_object().unwrap().keys();
        assert!(
            keys.clone()
                .all(|key| !key.starts_with("environment") && key != "command")
        );
        assert_eq!(row["transport"], "shm");
    }
}

#[test]
fn the_file_is_complete_whenever_it_is_saved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.json");
    let mut output =
        Output::new(report(1), Format::Text, None, Some(&path), true, Vec::new()).unwrap();
    assert!(!path.exists());
    for count in 1..=3 {
        output.row(sample(count, "shm", 0, 0.5)).unwrap();
        output.save().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let read: Report = serde_json::from_str(&text).unwrap();
        assert_eq!(read.rows.len() as u64, count);
        assert_eq!(read.summary.len() as u64, count);
    }
    output.finish().unwrap();
}

#[test]
fn the_first_row_is_saved_at_once_and_the_last_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.json");
    let mut output =
        Output::new(report(1), Format::Text, None, Some(&path), true, Vec::new()).unwrap();
    let read = || -> Report {
        let text = std::fs::read_to_string(&path).unwrap();
        serde_json::from_str(&text).unwrap()
    };
    output.row(sample(1, "shm", 0, 0.5)).unwrap();
    assert_eq!(read().rows.len(), 1);
    output.row(sample(2, "shm", 0, 0.5)).unwrap();
    output.row(sample(3, "shm", 0, 0.5)).unwrap();
    output.finish().unwrap();
    assert_eq!((read().rows.len(), read().summary.len()), (3, 3));
}

/// A reader that has gone away.
struct Closed;

impl Write for Closed {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_closed_output_is_an_error() {
    let mut output = Output::new(report(1), Format::Text, None, None, true, Closed).unwrap();
    let error = output.row(sample(8, "shm", 0, 0.5)).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("standard output, which was closed"),
        "{error}"
    );
    assert_eq!(error.exit_status(), ExitStatus::Failed);
}

#[test]
fn every_format_goes_to_the_output() {
    for (format, beginning) in [
        (Format::Text, "# Tagwire"),
        (Format::Json, "{\n"),
        (Format::Csv, "test,size"),
    ] {
        for streams in [true, false] {
            let mut text = Vec::new();
            let mut output =
                Output::new(report(1), format, None, None, streams, &mut text).unwrap();
            output.row(sample(8, "shm", 0, 0.5)).unwrap();
            output.row(sample(9, "shm", 0, 0.5)).unwrap();
            output.finish().unwrap();
            drop(output);
            let text = String::from_utf8(text).unwrap();
            assert!(text.starts_with(beginning), "{text}");
            assert_eq!(
                text.matches("Size").count(),
                usize::from(format == Format::Text)
            );
        }
    }
}

/// A row that was measured beside other load.
fn disturbed(size: u64) -> Row {
    let mut row = sample(size, "shm", 0, 0.5);
    for (key, value) in [(WAIT, 48.0), (OTHERS, 50.5), ("involuntary_switches", 30.0)] {
        row.figures.set(key, value);
    }
    let load = "[{\"measured_ms\":100.0,\"involuntary_switches\":20,\"run_queue_wait_ms\":48.0},\
                 {\"measured_ms\":100.0,\"involuntary_switches\":10,\"run_queue_wait_ms\":12.0}]";
    row.load = serde_json::from_str(load).unwrap();
    row
}

#[test]
fn launches_of_two_placings_are_not_mixed() {
    let mut report = report(3);
    for (launch, (latency, transfer)) in [(0.1, 30.0), (0.3, 150.0), (0.12, 31.0)]
        .into_iter()
        .enumerate()
    {
        let first = report.rows.len();
        let mut row = sample(8, "shm", launch as u32, latency);
        row.figures.set(BEFORE, transfer);
        report.add(row);
        report.label(first, AFTER, transfer);
    }
    report.sum_up();
    assert_eq!(report.summary[0].sampling.launches, Some(2));
    assert_eq!(report.summary[0].figures.named("latency_us"), Some(0.11));
    assert_eq!(report.placing(), Some((Placing::OneCore, 1)));
    let end = closing(&report);
    assert!(
        end.contains("# Line transfer: 30 to 150 ns, threads of one core\n"),
        "{end}"
    );
    // One that moved while it was measured is of neither.
    let first = report.rows.len();
    let mut row = sample(8, "shm", 3, 9.0);
    row.figures.set(BEFORE, 30.0);
    report.add(row);
    report.label(first, AFTER, 150.0);
    report.sum_up();
    assert_eq!(report.summary[0].sampling.launches, Some(2));
    assert_eq!(report.placing(), Some((Placing::OneCore, 2)));
}

#[test]
fn a_run_without_a_figure_tells_nothing() {
    let mut report = report(1);
    assert_eq!(report.status(), ExitStatus::Good, "nothing was asked for");
    report.add(failed(8));
    assert_eq!(report.status(), ExitStatus::Untold);
    report.add(sample(8, "shm", 0, 0.25));
    assert_eq!(report.status(), ExitStatus::Good);
}

/// A job that failed.
fn failed(size: u64) -> Row {
    Row {
        size,
        series: Series {
            transport: "ofi:verbs".to_owned(),
            ..Series::default()
        },
        sampling: Sampling {
            launch: Some(0),
            ..Sampling::default()
        },
        error: Some("no device\nhere".to_owned()),
        ..Row::default()
    }
}

#[test]
fn load_errors_and_warnings_stand_behind_the_table() {
    let mut text = Vec::new();
    let mut output = Output::new(report(1), Format::Text, None, None, false, &mut text).unwrap();
    output.starts_again = true;
    for row in [disturbed(8), failed(8), disturbed(64)] {
        output.row(row).unwrap();
    }
    output.finish().unwrap();
    let kinds = output.report().warnings.iter();
    let kinds: Vec<&str> = kinds.map(|warning| warning.kind.as_str()).collect();
    assert_eq!(kinds, ["other-load", "spread", "one-launch"]);
    let end = closing(output.report());
    let expected = "\
# Load: measured time in wait for a CPU (involuntary switches): rank 0 48.0 % (40), rank 1 12.0 % (20); \
others had up to 50.5 % of a rank's CPUs
# Error: ofi:verbs, launch 0, size 8: no device here
# Warning: other processes ran on the ranks' CPUs (sizes 8, 64): ";
    assert!(end.starts_with(expected), "{end}");
    drop(output);
    let text = String::from_utf8(text).unwrap();
    assert!(text.ends_with(&end), "{text}");
    // The row without figures is in no table.
    let rows: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
    assert_eq!(rows.len(), 2, "{text}");
}

#[test]
fn warnings_and_load_are_in_the_json_that_is_saved() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.json");
    let mut output = Output::new(
        report(2),
        Format::Json,
        None,
        Some(&path),
        false,
        Vec::new(),
    )
    .unwrap();
    output.row(disturbed(8)).unwrap();
    output.row(failed(8)).unwrap();
    output.save().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["warnings"][0]["kind"], "other-load");
    assert!(
        value["warnings"][0]["advice"]
            .as_str()
            .unwrap()
            .contains("--bind")
    );
    assert_eq!(value["rows"][0]["load"][1]["involuntary_switches"], 10);
    assert_eq!(value["rows"][0]["figures"]["run_queue_wait_pct"], 48.0);
    assert_eq!(value["rows"][1]["error"], "no device\nhere");
    // A job that failed has no summary.
    assert_eq!(value["summary"].as_array().unwrap().len(), 1);
    assert_eq!(value["summary"][0]["figures"]["other_load_pct"], 50.5);
    let read: Report = serde_json::from_str(&text).unwrap();
    assert_eq!(&read, output.report());
}

#[test]
fn what_the_library_opened_is_named() {
    let mut report = report(1);
    let used = &mut report.environment.transports[0];
    used.transport = "ofi:tcp".to_owned();
    used.provider = Some("tcp;ofi_rxm".to_owned());
    let text = preamble(&report);
    assert!(
        text.contains("# Transport: ofi:tcp (asked for)\n# Provider: tcp;ofi_rxm\n"),
        "{text}"
    );
    assert!(text.contains("# TCP: congestion control bbr\n"), "{text}");
}
