//! A Slurm step without a PMI: `srun --mpi=none`, whose ranks know their numbers and share a host.

use tagwire_base::Rank;

use super::{At, Found, Known, Launcher, Meeting};
use crate::environment::Environment;
use crate::error::{Error, Result};

/// What `srun` sets for each task of a step.
const RANK: &str = "SLURM_PROCID";
const SIZE: &str = "SLURM_STEP_NUM_TASKS";
const HOSTS: &str = "SLURM_STEP_NUM_NODES";
const JOB: &str = "SLURM_JOB_ID";
const STEP: &str = "SLURM_STEP_ID";

/// A batch script has the rank and the job too, and is no task of a step.
const OF_STEP: [&str; 3] = [SIZE, HOSTS, STEP];

const WAY_OUT: &str = "srun --mpi=pmi2; TAGWIRE_LAUNCHER=single runs each task as a job of its own";

/// A step of a Slurm job.
#[derive(Debug)]
pub(crate) struct Step;

impl Known for Step {
    fn launcher(&self) -> Launcher {
        Launcher("Slurm step")
    }

    fn choice(&self) -> &'static str {
        "slurm"
    }

    fn find(&self, environment: &Environment<'_>) -> Result<Found> {
        if !OF_STEP.iter().any(|name| environment.has(name)) {
            return Ok(Found::unset(&OF_STEP));
        }
        environment.has_all(
            &[RANK, SIZE, HOSTS, JOB, STEP],
            &format!("srun sets them all; {WAY_OUT}"),
        )?;
        let (rank, size) = environment.rank_of(RANK, SIZE)?;
        if size == 1 {
            return Ok(Found::No("its step has one task".to_owned()));
        }
        let hosts = environment.number(HOSTS)?;
        if hosts > 1 {
            return Err(Error::Environment(format!(
                "this process is one of {size} that srun has started on {hosts} hosts without a PMI, by which ranks of several hosts find each other: {WAY_OUT}"
            )));
        }
        let (job, step) = (environment.number(JOB)?, environment.number(STEP)?);
        Ok(Found::Rank(Box::new(Meeting {
            launcher: self.launcher().name(),
            rank: Rank::new(rank),
            size,
            at: At::Host(format!(
                "tagwire-slurm-{}-{job}.{step}",
                rustix::process::geteuid().as_raw()
            )),
        })))
    }
}
