//! `kill -9` of a rank, at any moment.

use super::{Blow, Disturbance, Job, Toll};

/// Ends a rank's process.
#[derive(Debug)]
pub struct Kill;

impl Disturbance for Kill {
    fn name(&self) -> &'static str {
        "kill"
    }

    fn about(&self) -> &'static str {
        "SIGKILL to a rank"
    }

    fn toll(&self) -> Toll {
        Toll::Dies
    }

    fn begin(&self, blow: &Blow, job: &mut Job) -> Result<(), String> {
        job.signal(blow.rank, rustix::process::Signal::KILL);
        Ok(())
    }
}
