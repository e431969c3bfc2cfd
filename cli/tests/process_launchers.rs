//! Jobs that other launchers start: Hydra and gforker of MPICH and Hydra of Intel MPI, which speak PMI-1, and PRRTE, which has PMIx. Skipped,
//! loudly, where they are not installed. Slurm has a program of its own.

use crate::process::launchers::{
    End, Launcher, a_bad_end_ends_the_job, a_death_is_heard_by_all, an_early_end_is_heard_by_all,
    inner_jobs_are_their_own, libpmix, of_intel_mpi, of_mpich, of_mpich_that_goes_on, of_open_mpi,
    of_open_mpi_that_goes_on, own, programs_are_one_job, the_table_is_of,
    those_in_contact_with_the_dead_end,
};
use crate::process::{Line, Outcome, confine, example, has_libfabric, is_root, rank, tagwire};

/// The launchers that are here.
fn launchers(test: &str) -> Vec<Launcher> {
    let mut all = vec![own()];
    all.extend(of_mpich(test));
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
    let test = "an abort under other launchers";
    let all = launchers(test).into_iter();
    for launcher in all.chain(of_open_mpi_that_goes_on(test)) {
        a_bad_end_ends_the_job(&launcher, End::Abort);
    }
}

#[test]
fn a_rank_that_ends_without_a_close_ends_the_job() {
    for launcher in launchers("an early end under other launchers") {
        a_bad_end_ends_the_job(&launcher, End::Exit);
    }
}

/// Of a launcher that leaves its ranks alone. It took 108 s once, and 0.2 s otherwise.
mod left_alone {
    use super::*;

    /// Where neither the launcher nor a server of it reports a death, the transport finds it.
    #[test]
    fn without_a_report_the_transport_finds_a_death() {
        if let Some(launcher) = of_mpich_that_goes_on("deaths that nobody reports") {
            those_in_contact_with_the_dead_end(&launcher);
        }
    }
}

#[test]
fn a_launcher_that_lets_others_go_on_says_who_failed() {
    for launcher in of_open_mpi_that_goes_on("deaths by events of PMIx") {
        a_death_is_heard_by_all(&launcher);
        an_early_end_is_heard_by_all(&launcher);
    }
}

/// The others have tests where they are started: Slurm's and torchrun's, and above those that go on.
#[test]
fn every_row_of_the_table_is_tested() {
    let test = "the table of ends";
    let mut all = launchers(test);
    all.extend(of_open_mpi_that_goes_on(test));
    let installed = all.len();
    let others = [
        "`srun --mpi=pmi2`",
        "`srun --mpi=pmix`",
        "a Slurm step without a PMI",
        "torchrun's variables, and nobody who watches",
    ];
    // With fewer launchers here, fewer rows are looked for.
    if installed > 5 {
        the_table_is_of(&all, &others);
    }
}

#[test]
fn a_job_in_a_job_is_its_own() {
    for launcher in launchers("a job in a job") {
        inner_jobs_are_their_own(&launcher);
    }
}

/// The kernel lets nobody open the descriptors of a program that its user may run and not read.
#[test]
fn ranks_that_cannot_open_each_others_memory_pass_it() {
    use std::os::unix::fs::PermissionsExt;
    let test = "ranks_that_cannot_open_each_others_memory_pass_it";
    if !is_root(test) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let program = folder.path().join("test_rank");
    std::fs::copy(rank(), &program).unwrap();
    for (path, mode) in [(folder.path(), 0o755), (&program, 0o711)] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }
    // Our own store and a PMIx server let another user in neither.
    let of_one_user = ["tagwire run", "prterun"];
    let others = launchers(test).into_iter();
    for launcher in others.filter(|launcher| !of_one_user.contains(&launcher.name)) {
        let outcome = launcher
            .line(3)
            .args([confine()])
            .args(["user", "--"])
            .args([&program])
            .args(["exchange"])
            .finish();
        succeeded(&outcome);
        for number in 0..3 {
            outcome.line(&format!("{number} exchanged all"));
        }
    }
}

/// Ranks in namespaces of their own cannot reach each other's memory.
#[test]
fn ranks_in_containers_are_on_hosts_of_their_own() {
    let test = "ranks_in_containers_are_on_hosts_of_their_own";
    if !is_root(test) || !has_libfabric(test) {
        return;
    }
    let container = ["unshare", "--pid", "--fork"];
    // The others than our own, which knows that all are on this machine, and passes descriptors.
    for launcher in launchers(test).into_iter().skip(1) {
        let outcome = launcher
            .line(2)
            .args(container)
            .args([tagwire()])
            .args(["bench", "latency", "-m", "8", "-i", "20", "--bind", "none"])
            .env("TAGWIRE_LIBPMIX", libpmix())
            .finish();
        succeeded(&outcome);
        let header = outcome.line("# Transport: ");
        assert!(
            header.starts_with("# Transport: shm+ofi:tcp"),
            "{}: {header}",
            launcher.name
        );
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
        let inner = with(crate::process::run_line(2, &[]))
            .args([example("ring")])
            .args(["10"]);
        let outcome = inner.finish();
        succeeded(&outcome);
        outcome.line("2 ranks, 20 hops");
    }
}
