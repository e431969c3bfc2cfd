//! Patterns between ranks that are threads of this process, with every byte of every iteration checked.

use clap::Parser;

use super::*;
use crate::args::BenchArgs;
use crate::args::partitioned::ComputeMode;
use crate::plan::Carrier;
use crate::plan::Plan;
use crate::port::channel::{Spoil, job};
use crate::record::Row;
use crate::run::Ports;

#[derive(Debug, Parser)]
struct Command {
    #[command(flatten)]
    bench: BenchArgs,
}

fn args(line: &str) -> Result<BenchArgs> {
    let words = std::iter::once("bench").chain(line.split_whitespace());
    let args = Command::try_parse_from(words).unwrap_or_else(|error| panic!("{error}"));
    args.bench.check()?;
    Ok(args.bench)
}

/// Runs a command on ranks in this process, and returns the rows, or the errors of all ranks.
fn run(line: &str, spoil: Option<Spoil>) -> Result<Vec<Row>, Vec<Error>> {
    let args = args(&format!("{line} -c")).unwrap();
    let plan = Plan::new(&args, Carrier::Ours("channel".to_owned()), 7, 0);
    let results = job(plan.ranks, spoil, |port| {
        collected::rows(port, Some(port), &plan, |run| {
            let ports = Ports {
                own: port,
                single: None,
            };
            plan.own.measure(ports, run)
        })
    });
    collected::of_all(results)
}

const SMALL: &[&str] = &[
    "halo3d --grid 2x2x2 --threads 8 -m 64,4K -i 5",
    "halo3d --grid 3x1x2 --threads 1 -m 24 -i 10",
    "halo3d --grid 1x3x1 --threads 27 -m 90 -i 5",
    "sweep3d --grid 2x2 --threads 4 --slices 8 -m 64,1K -i 5",
    "sweep3d --grid 3x2 --threads 2 --slices 2 -m 6 -i 5",
    "cmb --grid 2x2x2 --threads 4 -m 64,4K -i 10 --compute-time 100us --granularity bsp,bsp-all,each",
    "cmb --grid 3x2x2 --stencil 27 --threads 2 -m 10 -i 5 --compute-time 50us --arrivals normal:20us --cache hot --granularity bins:1,each",
    "sweep3d --grid 1x4 --threads 1 --slices 4 -m 64 -i 5 --accounting equal,artefact",
];

#[test]
fn every_byte_of_every_iteration_is_that_of_a_serial_run() {
    for line in SMALL {
        let rows = run(line, None).unwrap_or_else(|errors| panic!("{line}: {errors:?}"));
        let args = args(line).unwrap();
        let sizes = args.size_list().as_slice().len();
        let accountings = args.pattern.accounting.len().max(1);
        let series = match args.pattern.granularity.len() {
            0 => 3 * accountings,
            // Each is measured on messages and on partitioned operations.
            granularities => granularities + 1,
        };
        assert_eq!(rows.len(), series * sizes, "{line}");
        for row in rows {
            for key in ["throughput_mb_s", "iteration_us", "harness_us"] {
                let value = row.figures.named(key);
                assert!(value.is_some_and(|it| it > 0.0), "{line}: {key} {row:?}");
            }
        }
    }
}

const REMOTE: &[&str] = &[
    "halo3d --grid 2x2x2 --threads 8 -m 64,4K -i 5 --mode rma",
    "halo3d --grid 1x3x1 --threads 27 -m 90 -i 5 --mode rma",
    "sweep3d --grid 2x2 --threads 4 --slices 8 -m 128,1K -i 5 --mode rma",
    "sweep3d --grid 3x2 --threads 2 --slices 2 -m 6 -i 5 --mode rma",
    "cmb --grid 2x2x2 --threads 4 -m 64,4K -i 10 --compute-time 100us --granularity bins:2,each --interface rma",
    "cmb --grid 3x2x2 --stencil 27 --threads 2 -m 10 -i 5 --compute-time 50us --cache hot --granularity bins:1 --interface rma",
];

#[test]
fn every_byte_that_is_written_remotely_is_that_of_a_serial_run() {
    for line in REMOTE {
        let rows = run(line, None).unwrap_or_else(|errors| panic!("{line}: {errors:?}"));
        for row in &rows {
            assert_eq!(
                row.series.pattern.middleware.as_deref(),
                Some("rma"),
                "{line}"
            );
            let series = row.series.pattern.series.as_deref().unwrap();
            assert!(series.contains("rma"), "{line}: {series}");
        }
        let series = if line.contains("bins:2,each") { 2 } else { 1 };
        let sizes = args(line).unwrap().size_list().as_slice().len();
        assert_eq!(rows.len(), series * sizes, "{line}");
    }
}

#[test]
fn a_spoiled_byte_is_found_in_every_mode() {
    for line in [
        "halo3d --grid 2x1x1 --threads 8 -m 64",
        "sweep3d --grid 2x1 --threads 2 --slices 4 -m 64",
    ] {
        for mode in ["single", "multiple", "partitioned", "rma"] {
            let spoil = Spoil {
                // Behind those of the keys.
                message: if mode == "rma" { 40 } else { 5 },
                offset: 7,
            };
            let line = format!("{line} -i 20 --mode {mode}");
            let errors = run(&line, Some(spoil)).unwrap_err();
            let is_wrong = |error: &Error| matches!(error, Error::Validation(_));
            assert!(errors.iter().any(is_wrong), "{line}: {errors:?}");
        }
    }
}

#[test]
fn a_spoiled_byte_of_a_stencil_is_found_in_every_granularity() {
    let line = "cmb --grid 2x2x2 --threads 2 -m 64 -i 5 --compute-time 0 --cache hot";
    for granularity in ["bsp", "bsp-all", "bins:1", "bins:2", "each"] {
        let spoil = Spoil {
            message: if granularity == "bins:1" { 40 } else { 9 },
            offset: 3,
        };
        let interface = if granularity == "bins:1" {
            "rma"
        } else {
            "p2p"
        };
        let line = format!("{line} --granularity {granularity} --interface {interface}");
        let errors = run(&line, Some(spoil)).unwrap_err();
        let is_wrong = |error: &Error| matches!(error, Error::Validation(_));
        assert!(errors.iter().any(is_wrong), "{line}: {errors:?}");
    }
}

#[test]
fn gains_are_over_serial_and_over_all_messages_of_the_same_job() {
    let line = "cmb --grid 2x2x2 --threads 2 -m 64 -i 10 --compute-time 200us --cache hot";
    let rows = run(line, None).unwrap();
    let of = |granularity: &str, key: &str| {
        let is_meant = |row: &&Row| row.series.pattern.granularity.as_deref() == Some(granularity);
        rows.iter()
            .find(is_meant)
            .unwrap()
            .figures
            .named(key)
            .unwrap()
    };
    assert!(of("bsp", "speedup_pct").abs() < 1e-9);
    assert!(of("bsp-all", "speedup_all_pct").abs() < 1e-9);
    for granularity in ["bsp", "bsp-all", "bins:2", "each"] {
        let of = |key| of(granularity, key);
        assert!(of("max_global_ms") >= of("max_local_ms"), "{granularity}");
        assert!(of("max_local_ms") >= of("mean_ms"), "{granularity}");
        // No thread arrives before it has slept.
        assert!(of("iter_us") > 200.0, "{granularity}");
    }
}

#[test]
fn arrivals_of_a_kernel_are_recorded_and_can_be_given_again() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().display();
    let line = "cmb --grid 2x2x2 --threads 2 -m 64 -i 10 --cache hot --granularity bsp";
    for kernel in ["spmv", "particles", "monte-carlo"] {
        let rows = run(
            &format!("{line} --arrivals kernel:{kernel} --record {path}"),
            None,
        )
        .unwrap();
        let series = format!("kernel:{kernel}/bsp@2");
        assert_eq!(rows[0].series.pattern.series.as_ref(), Some(&series));
        let distance = rows[0].figures.named("kolmogorov").unwrap();
        assert!((0.0..0.5).contains(&distance), "{distance}");
        let text = std::fs::read_to_string(file.path()).unwrap();
        assert!(text.starts_with("iteration,rank,thread,ns\n"), "{text}");
        // Ten iterations of two threads, below the line of names.
        assert_eq!(text.lines().count(), 21, "{text}");
        let again = format!("{line} --arrivals kde:{path}");
        let rows = run(&again, None).unwrap();
        assert!(rows[0].figures.named("iter_us").unwrap() > 0.0);
    }
}

#[test]
fn what_does_not_fit_is_refused_with_what_fits() {
    for (line, reason) in [
        ("sweep3d --grid 2x2 -n 6", "--grid 3x2"),
        ("sweep3d --grid 2x2x2", "2 sides"),
        ("halo3d --grid 4x2", "3 sides"),
        ("halo3d --grid 1x1x1", "at least 2 ranks"),
        ("halo3d --threads 4", "1, 8, 27 or 64"),
        ("halo3d --threads 8 -m 6", "multiples of 4"),
        ("sweep3d --threads 3", "--slices 18"),
        ("sweep3d -m 100", "multiples of 16"),
        (
            "sweep3d --slices 3 --threads 3 -m 3 --accounting artefact",
            "odd",
        ),
        ("cmb --threads 4 --granularity bins:3", "bins of 1, 2, 4 do"),
        ("cmb -m 10", "multiples of 4"),
        ("cmb --grid 1x1x1", "at least 2 ranks"),
        ("cmb --arrivals kde:/nowhere/arrivals", "cannot be read"),
        ("cmb --record a.csv", "--record needs a kernel"),
        ("cmb --mode single", "--mode has no meaning"),
        ("halo3d --slices 4", "--slices has no meaning"),
        ("sweep3d --partitions 4", "--partitions has no meaning"),
        ("sweep3d --window 4", "--window has no meaning"),
        ("latency --grid 2x2", "--grid has no meaning"),
    ] {
        let error = args(line).unwrap_err();
        assert!(error.to_string().contains(reason), "{line}: {error}");
        assert_eq!(error.exit_status().code(), 1, "{line}");
    }
    assert_eq!(args("sweep3d -n 6").unwrap().rank_count(), 6);
    assert_eq!(args("cmb -n 7").unwrap().rank_count(), 7);
    assert_eq!(args("cmb --grid 4x2x1").unwrap().rank_count(), 8);
    assert_eq!(args("halo3d").unwrap().rank_count(), 8);
}

#[test]
fn threads_sleep_where_they_outnumber_the_cores() {
    let mode = |line: &str, cores| args(line).unwrap().compute_mode(cores);
    assert_eq!(mode("sweep3d --grid 2x1 --threads 2", 4), ComputeMode::Busy);
    assert_eq!(
        mode("sweep3d --grid 2x1 --threads 2", 3),
        ComputeMode::Sleep
    );
    let asked = "sweep3d --grid 2x1 --threads 2 --compute busy";
    assert_eq!(mode(asked, 1), ComputeMode::Busy);
}
