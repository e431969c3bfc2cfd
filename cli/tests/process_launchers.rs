//! Jobs that other launchers start: Hydra and gforker of MPICH, which speak PMI-1. Skipped, loudly, where they are not
//! installed.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod process;

use std::path::{Path, PathBuf};

use process::{Line, Outcome, example, rank, tagwire, wheel};

/// The launchers of MPICH that are here.
fn launchers(test: &str) -> Vec<PathBuf> {
    // The environment of the wheel: its programs lie beside its libraries.
    let Some(library) = wheel(test, "mpich", "libfabric.so.1") else {
        return Vec::new();
    };
    let bin = library
        .ancestors()
        .map(|folder| folder.join("bin"))
        .find(|bin| bin.join("mpiexec.hydra").exists());
    let bin = bin.expect("the wheel has its launchers");
    ["mpiexec.hydra", "mpiexec.gforker"]
        .map(|name| bin.join(name))
        .into()
}

/// `LAUNCHER -n RANKS`, for a program to follow.
fn line(launcher: &Path, ranks: u32) -> Line {
    Line::of(launcher, ["-n", &ranks.to_string()])
}

fn succeeded(outcome: &Outcome) {
    assert_eq!(outcome.status, 0, "{outcome:#?}");
}

#[test]
fn examples_are_one_job() {
    for launcher in launchers("examples under Hydra and gforker") {
        for ranks in [1, 2, 4] {
            let outcome = line(&launcher, ranks)
                .args([example("ring")])
                .args(["100"])
                .finish();
            succeeded(&outcome);
            outcome.line(&format!("{ranks} ranks, {} hops", 100 * ranks));
        }
        for name in ["halo", "master_worker"] {
            succeeded(&line(&launcher, 2).args([example(name)]).finish());
        }
    }
}

#[test]
fn benchmarks_are_one_job() {
    for launcher in launchers("bench under Hydra and gforker") {
        for test in ["latency", "message-rate"] {
            let outcome = line(&launcher, 2)
                .args([tagwire()])
                .args(["bench", test, "-m", "8", "-i", "100", "--bind", "none"])
                .finish();
            succeeded(&outcome);
            let rows = outcome.stdout.iter().filter(|line| line.starts_with("8 "));
            assert_eq!(rows.count(), 1, "one rank reports: {outcome:#?}");
        }
    }
}

/// The launcher ends the others, in the middle of its own protocol too. Hydra's status says so; gforker's is 0.
#[test]
fn a_killed_rank_ends_the_job() {
    for launcher in launchers("a killed rank under Hydra and gforker") {
        let mut job = line(&launcher, 2).args([rank()]).args(["hang"]).start();
        // Each calls itself 0 here: the number is of our own launcher's variable.
        let _ = job.kill(0);
        let outcome = job.finish();
        if launcher.ends_with("mpiexec.hydra") {
            assert_ne!(outcome.status, 0, "{outcome:#?}");
        }
    }
}

/// A rank that finds only a part of what its launcher sets, or another one's marks, is no job of its own.
#[test]
fn one_of_several_is_refused() {
    for (variables, part) in [
        (
            &[("PMI_RANK", "0"), ("PMI_SIZE", "2")][..],
            "PMI_FD is missing",
        ),
        (
            &[("PMI_FD", "1000"), ("PMI_RANK", "0"), ("PMI_SIZE", "2")],
            "PMI_FD is 1000",
        ),
        (
            &[("SLURM_PROCID", "1"), ("SLURM_STEP_NUM_TASKS", "4")],
            "srun --mpi=pmi2",
        ),
        (
            &[("OMPI_COMM_WORLD_RANK", "1"), ("OMPI_COMM_WORLD_SIZE", "4")],
            "Open MPI",
        ),
    ] {
        let with = |line: Line| {
            let set = |line: Line, (name, value): &(&str, &str)| line.env(name, value);
            variables.iter().fold(line, set)
        };
        let refused = with(Line::of(&example("ring"), ["10"])).finish();
        assert_ne!(refused.status, 0, "{refused:#?}");
        for part in [part, "TAGWIRE_LAUNCHER=single"] {
            assert!(refused.errors().contains(part), "{refused:#?}");
        }
        let alone = with(Line::of(&example("ring"), ["10"])).env("TAGWIRE_LAUNCHER", "single");
        succeeded(&alone.finish());
        // The ranks of our own launcher are not another's.
        let inner = with(process::run_line(2, &[]))
            .args([example("ring")])
            .args(["10"]);
        let outcome = inner.finish();
        succeeded(&outcome);
        outcome.line("2 ranks, 20 hops");
    }
}
