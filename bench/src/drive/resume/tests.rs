#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use super::*;
use crate::record::tests::sample;
use crate::report::tests::report;

const SIZES: [u64; 3] = [8, 64, 1];

fn earlier(rows: Vec<Row>) -> Earlier {
    let mut report = report(2);
    report.rows = rows;
    Earlier {
        file: PathBuf::from("a.json"),
        report,
    }
}

fn kept(rows: Vec<Row>, most: usize, sessions: Option<usize>) -> Kept {
    let shape = Shape {
        sizes: &SIZES,
        most,
        sessions,
        has_queues: false,
        has_engines: false,
    };
    earlier(rows).kept(shape).0
}

fn job(transport: &str, launch: u32, unit: Option<&str>) -> Key {
    let row = sample(0, transport, launch, 1.0);
    Key {
        transport: row.series.transport,
        library: row.series.library,
        launch: Some(launch),
        unit: unit.map(str::to_owned),
        progress: None,
        queue: Queue::default(),
    }
}

/// Sizes go by their order in the command, not by their value.
#[test]
fn the_last_job_lacks_what_follows_its_last_size() {
    let rows = vec![
        sample(8, "mpi", 0, 1.0),
        sample(8, "shm", 0, 1.0),
        sample(64, "shm", 0, 1.0),
    ];
    let kept = kept(rows, 1, None);
    assert_eq!(kept.rows.len(), 3);
    assert_eq!(kept.lacking(&job("shm", 0, None), &SIZES), [1]);
    // Another job came after it: it was whole, and sizes without rows have none.
    assert!(kept.lacking(&job("mpi", 0, None), &SIZES).is_empty());
    assert_eq!(kept.lacking(&job("mpi", 1, None), &SIZES), SIZES);
}

/// Of a size that can have three rows, two may be all, or not: who cannot tell measures it again, and keeps none of them.
#[test]
fn a_size_that_was_broken_off_is_measured_anew() {
    let rows = [8, 8, 8, 64, 64].map(|size| sample(size, "shm", 0, 1.0));
    let kept = kept(rows.to_vec(), 3, None);
    assert_eq!(kept.rows.iter().map(|row| row.size).max(), Some(8));
    assert_eq!(kept.lacking(&job("shm", 0, None), &SIZES), [64, 1]);
}

#[test]
fn jobs_that_failed_go_on_where_they_ended() {
    let mut failed = sample(64, "shm", 0, 1.0);
    (failed.error, failed.sampling.iterations) = (Some("no memory".to_owned()), 0);
    // Measured, though the figure meant nothing: it is not measured again for that.
    let mut measured = sample(1, "mpi", 0, 1.0);
    measured.error = Some("not measured".to_owned());
    let rows = vec![
        sample(8, "shm", 0, 1.0),
        failed.clone(),
        sample(8, "mpi", 0, 1.0),
        sample(64, "mpi", 0, 1.0),
        measured.clone(),
    ];
    let kept = kept(rows, 1, None);
    assert_eq!((kept.rows.len(), kept.rows.last()), (4, Some(&measured)));
    assert_eq!(kept.lacking(&job("shm", 0, None), &SIZES), [64, 1]);
    assert!(kept.lacking(&job("mpi", 0, None), &SIZES).is_empty());
    let nothing = self::kept(vec![failed], 1, None);
    assert_eq!(nothing.lacking(&job("shm", 0, None), &SIZES), SIZES);
}

/// Units are jobs of their own, but for sessions of the same processes, whose rows come together.
#[test]
fn units_tell_jobs_apart() {
    let of = |transport: &str, size: u64, unit: &str| {
        let mut row = sample(size, transport, 0, 1.0);
        row.series.unit = Some(unit.to_owned());
        row
    };
    let rows = vec![
        of("shm", 8, "processes:1"),
        of("shm", 8, "threads:1"),
        of("shm", 64, "processes:1"),
    ];
    let apart = kept(rows.clone(), 1, None);
    assert_eq!(
        apart.lacking(&job("shm", 0, Some("processes:1")), &SIZES),
        [1]
    );
    assert!(
        apart
            .lacking(&job("shm", 0, Some("threads:1")), &SIZES)
            .is_empty()
    );
    let together = kept(rows, 1, Some(2));
    assert_eq!(together.rows.len(), 2);
    assert_eq!(together.lacking(&job("shm", 0, None), &SIZES), [64, 1]);
}

#[test]
fn other_commands_builds_and_machines_are_refused() {
    let earlier = earlier(vec![sample(8, "shm", 0, 1.0)]);
    let command = "tagwire bench latency -m 8,64";
    let mut now = earlier.report.environment.clone();
    // What differs each time.
    now.started_unix_s += 5;
    now.machine.clock_cost_ns = 99.0;
    earlier.check(command, &now).unwrap();
    let refused = |command: &str, now: &Environment| {
        let error = earlier.check(command, now).unwrap_err();
        assert_eq!(error.exit_status().code(), 1);
        error.to_string()
    };
    let text = refused("tagwire bench latency -m 8", &now);
    assert!(
        text.contains("a.json") && text.contains("'tagwire bench latency -m 8'"),
        "{text}"
    );
    now.commit = "4567def".to_owned();
    now.settings.clear();
    let text = refused(command, &now);
    let differing =
        "commit was \"0123abc\" and is \"4567def\"; settings was {\"engine\":\"list\"} and is {}";
    assert!(text.contains(differing), "{text}");
}

#[test]
fn another_library_is_refused() {
    let used = |library: &str, ranks: u32| Used {
        transport: "ofi:tcp".to_owned(),
        library: Some(library.to_owned()),
        ranks,
        ..Used::default()
    };
    let then = used("libfabric 1.17", 2);
    check_used(&then, &used("libfabric 1.17", 2)).unwrap();
    let text = check_used(&then, &used("libfabric 2.0", 2)).unwrap_err();
    let text = text.to_string();
    assert!(
        text.contains("libfabric 1.17") && text.contains("libfabric 2.0"),
        "{text}"
    );
    // It had not begun.
    check_used(&used("", 0), &used("libfabric 2.0", 2)).unwrap();
}

#[test]
fn files_are_read_or_named() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("a.json");
    assert!(Earlier::read(&file).unwrap().is_none());
    let mut report = report(1);
    report.add(sample(8, "shm", 0, 0.25));
    report.sum_up();
    fs::write(&file, report.to_json().unwrap()).unwrap();
    let read = Earlier::read(&file).unwrap().unwrap();
    assert_eq!((read.report, read.file.clone()), (report, file.clone()));
    for text in [
        "",
        "{}",
        "{\"schema\":\"tagwire.bench/2\",\"rows\":[",
        "{\"schema\":\"tagwire.bench/1\",\"rows\":[]}",
        "test,size\nring,8\n",
    ] {
        fs::write(&file, text).unwrap();
        let error = Earlier::read(&file).unwrap_err();
        assert!(error.to_string().contains("a.json"), "{error}");
        assert_eq!(error.exit_status().code(), 1);
    }
}
