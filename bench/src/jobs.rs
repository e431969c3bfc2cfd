//! The jobs that a command starts, and how their ends are to be understood.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use tagwire_launch::{JobReport, JobSpec, Outcome};

use crate::Host;
use crate::args::BenchArgs;
use crate::binding::Placement;
use crate::drive::Start;
use crate::error::{Error, ExitStatus, Result, signal_name};
use crate::link::{Message, ReportServer};
use crate::mpi::Family;
use crate::plan::{self, Plan};

/// What the ranks of a job have reported so far.
#[derive(Debug, Default)]
pub(crate) struct Reported {
    is_done: bool,
    /// The gravest failure: wrong bytes before anything else, else the first.
    failure: Option<(u32, String, i32)>,
}

/// What starts a command's jobs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Jobs<'a> {
    pub args: &'a BenchArgs,
    pub host: &'a Host,
    pub placement: &'a Placement,
}

impl Jobs<'_> {
    /// Runs one job to its end. `take` gets what its ranks report.
    pub(crate) fn run(
        &self,
        start: &Start,
        mut plan: Plan,
        mut take: impl FnMut(Message) -> Result<()> + Send,
    ) -> Result<()> {
        let server = ReportServer::open()?;
        plan.results = Some(server.address().clone());
        let spec = self.spec(start, &mut plan)?;
        let mut heard = Reported::default();
        let listen = |message| {
            heard.note(&message);
            take(message)
        };
        let (ended, taken) = server.serve(listen, || tagwire_launch::run(spec));
        taken?;
        judge(&ended?, &heard, self.args.timeout)
    }

    fn spec(&self, start: &Start, plan: &mut Plan) -> Result<JobSpec> {
        let mut spec = match &start.mpiexec {
            None => spec_of_ours(plan, plan.ranks, self.placement)?,
            Some((mpiexec, family)) => {
                let (program, own) = own_command(plan)?;
                if *family == Family::OpenMpi {
                    plan.bind_here.clone_from(&self.placement.cpus);
                }
                let ranks = plan.ranks;
                let cpus = self.placement.cpus.as_deref();
                let mut spec = JobSpec::new(1, mpiexec);
                spec.args = family
                    .arguments(ranks, cpus)
                    .into_iter()
                    .map(Into::into)
                    .collect();
                spec.args.push(program.into());
                spec.args.extend(own);
                spec
            }
        };
        spec.timeout = self.args.timeout;
        complete(&mut spec, plan, self.host)?;
        Ok(spec)
    }
}

/// This program, and the arguments that make it a rank.
fn own_command(plan: &Plan) -> Result<(PathBuf, [OsString; 2])> {
    let program = std::env::current_exe()
        .map_err(|error| Error::system("find this program's own file", error))?;
    Ok((program, ["bench".into(), plan.test.name.into()]))
}

/// Returns what starts `ranks` ranks of a plan over our own transports.
pub(crate) fn spec_of_ours(plan: &Plan, ranks: u32, placement: &Placement) -> Result<JobSpec> {
    let (program, own) = own_command(plan)?;
    let mut spec = JobSpec::new(ranks, program);
    spec.args = own.into();
    spec.binding = placement.binding();
    Ok(spec)
}

/// Adds what every job is started with: its plan and the settings.
pub(crate) fn complete(spec: &mut JobSpec, plan: &Plan, host: &Host) -> Result<()> {
    // The failure that a rank reports is the cause; how its process ended follows from it.
    spec.quiet = true;
    spec.env = vec![(plan::VARIABLE.into(), plan.to_text()?.into())];
    let settings = host.config.to_environment();
    spec.env
        .extend(settings.map(|(name, value)| (name.into(), value.into())));
    Ok(())
}

impl Reported {
    /// Keeps what ranks report of how a job ended.
    pub(crate) fn note(&mut self, message: &Message) {
        match message {
            Message::Done => self.is_done = true,
            Message::Failure {
                rank,
                message,
                status,
            } => self.failed(*rank, message.clone(), *status),
            _ => {}
        }
    }

    fn failed(&mut self, rank: u32, message: String, status: i32) {
        let wrong_bytes = |status: i32| ExitStatus::from_code(status) == ExitStatus::Invalid;
        let says_more = self
            .failure
            .as_ref()
            .is_none_or(|(.., known)| wrong_bytes(status) && !wrong_bytes(*known));
        if says_more {
            self.failure = Some((rank, message, status));
        }
    }

    /// The failure, if there is one.
    pub(crate) fn result(&self) -> Result<()> {
        match &self.failure {
            None => Ok(()),
            Some((rank, message, status)) => Err(Error::Rank {
                rank: *rank,
                message: message.clone(),
                status: *status,
            }),
        }
    }
}

/// How a job's end is to be understood.
pub(crate) fn judge(ended: &JobReport, heard: &Reported, limit: Option<Duration>) -> Result<()> {
    judge_part(ended, heard, limit)?;
    if !heard.is_done {
        return Err(Error::Job(
            "the job ended without all of its results".to_owned(),
        ));
    }
    Ok(())
}

/// The same of a part of a job, whose results may have gone elsewhere.
pub(crate) fn judge_part(
    ended: &JobReport,
    heard: &Reported,
    limit: Option<Duration>,
) -> Result<()> {
    if ended.timed_out {
        let after = limit.unwrap_or_default().as_secs_f64();
        return Err(Error::Job(format!(
            "the job did not end within {after} s (option --timeout)"
        )));
    }
    if let Some(signal) = ended.interrupted {
        return Err(Error::Interrupted { signal });
    }
    heard.result()?;
    if ended.exit_status != 0 {
        let how = match ended.first_failure {
            None => format!("the job failed with exit status {}", ended.exit_status),
            Some((rank, Outcome::Exited(status))) => {
                format!("rank {rank} ended with status {status}")
            }
            Some((rank, Outcome::Signaled(signal))) => {
                let name = signal_name(signal);
                format!("rank {rank} was killed by signal {signal} ({name})")
            }
        };
        return Err(Error::Job(format!(
            "{how} before the results were complete"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
