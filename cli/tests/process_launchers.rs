//! Jobs that other launchers start: Hydra and gforker of MPICH and Hydra of Intel MPI, which speak PMI-1, and PRRTE, which has PMIx. Skipped,
//! loudly, where they are not installed. Slurm has a program of its own.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod process;

use process::launchers::{
    End, Launcher, a_bad_end_ends_the_job, a_death_is_heard_by_all, of_intel_mpi, of_mpich,
    of_open_mpi, of_open_mpi_that_goes_on, programs_are_one_job,
};
use process::{Line, Outcome, example};

/// The launchers that are here.
fn launchers(test: &str) -> Vec<Launcher> {
    let mut all = of_mpich(test);
    all.extend(of_intel_mpi(test));
    all.extend(of_open_mpi(test));
    all
}

fn succeeded(outcome: &Outcome) {
    assert_eq!(outcome.status, 0, "{outcome:#?}");
}

#[test]
fn programs_of_every_launcher_are_one_job() {
    for launcher in launchers("examples and benchmarks under other launchers") {
        programs_are_one_job(&launcher);
    }
}

#[test]
fn a_killed_rank_ends_the_job() {
    for launcher in launchers("a killed rank under other launchers") {
        a_bad_end_ends_the_job(&launcher, End::Kill);
    }
}

#[test]
fn an_abort_ends_the_job_with_its_status() {
    for launcher in launchers("an abort under other launchers") {
        let outcome = a_bad_end_ends_the_job(&launcher, End::Abort);
        if launcher.tells {
            assert_eq!(outcome.status, 7, "{}: {outcome:#?}", launcher.name);
        }
    }
}

#[test]
fn a_rank_that_ends_without_a_close_ends_the_job() {
    for launcher in launchers("an early end under other launchers") {
        a_bad_end_ends_the_job(&launcher, End::Exit);
    }
}

#[test]
fn a_launcher_that_lets_others_go_on_says_who_failed() {
    for launcher in of_open_mpi_that_goes_on("deaths by events of PMIx") {
        a_death_is_heard_by_all(&launcher);
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
