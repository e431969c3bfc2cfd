//! `kill -9` of the launcher: its ranks end with it, and leave nothing.

use super::{Blow, Disturbance, Job, Toll};

/// Ends the launcher's process.
#[derive(Debug)]
pub struct Launcher;

impl Disturbance for Launcher {
    fn name(&self) -> &'static str {
        "launcher"
    }

    fn about(&self) -> &'static str {
        "SIGKILL to the launcher"
    }

    fn toll(&self) -> Toll {
        Toll::Job
    }

    fn begin(&self, _blow: &Blow, job: &mut Job) -> Result<(), String> {
        job.kill_launchers();
        Ok(())
    }
}
