//! Jobs that Slurm starts, by its pmi2 and pmix plugins and without any. Skipped, loudly, where Slurm cannot be had.

use crate::process::launchers::{
    End, Slurm, a_bad_end_ends_the_job, a_death_is_heard_by_all, inner_jobs_are_their_own,
    programs_are_one_job,
};

/// One test: its daemons take seconds to start.
#[test]
fn steps_are_one_job_and_end_together() {
    let Some(slurm) = Slurm::start("jobs of Slurm") else {
        return;
    };
    for launcher in slurm.launchers() {
        programs_are_one_job(&launcher);
        for end in [End::Kill, End::Abort, End::Exit] {
            a_bad_end_ends_the_job(&launcher, end);
        }
        inner_jobs_are_their_own(&launcher);
    }
    a_death_is_heard_by_all(&slurm.step_that_goes_on());
}
