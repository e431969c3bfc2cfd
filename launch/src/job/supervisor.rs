//! The thread that starts the ranks, sees them end, and ends them.
//!
//! ```text
//!             failure, signal, end of patience
//!   Running ---------------------------------> Ending --grace--> Killing
//!      |                                          ^
//!      +--timeout--> Reporting --about 1 s--------+
//! ```
//!
//! Every state ends early when the last rank has ended.

use std::env;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{ChildStdin, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Signal, WaitId, WaitIdOptions};
use tagwire_base::Rank;

use super::child::{self, RankProcess, Setup};
use super::hub::{Hub, HubEvent};
use super::input::{self, Forwarder};
use tagwire_base::topology::ranges;

use super::notes::Notes;
use super::output::{self, Pump, Sinks, Source, Stream};
use super::signals::Signals;
use super::{JobReport, JobSpec, OnFailure, Outcome, Part, processes};
use crate::binding::Placement;
use crate::environment::LAUNCHER;
use crate::error::{Error, Result};
use crate::files::FileLimit;
use crate::launchers;
use crate::patience::{LATE, Stop};
use crate::store::Membership;

/// How long ranks have to tell what they wait for.
const REPORT_TIME: Duration = Duration::from_secs(1);
/// The job's status when its timeout or a broken output ended it.
const STATUS_RUN_FAILED: i32 = 2;
/// What gfortran's library reads: standard output and error are written at the end of each record.
const PRINTED: &str = "GFORTRAN_UNBUFFERED_PRECONNECTED";

/// The status of a Rust program whose main thread has panicked.
const PANIC: i32 = 101;

/// Lets another thread ask for the end of the job.
#[derive(Debug, Clone)]
pub(super) struct Notice(Arc<OwnedFd>);

impl Notice {
    pub fn new() -> Result<Self> {
        rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map(|fd| Self(Arc::new(fd)))
            .map_err(|error| Error::system("make a wake-up", error))
    }

    pub fn give(&self) {
        // Fails only when it has been given more often than can be counted.
        let _ = rustix::io::write(&*self.0, &1u64.to_ne_bytes());
    }

    fn take(&self) -> bool {
        rustix::io::read(&*self.0, &mut [0; 8]).is_ok()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Running,
    /// The timeout has passed; the ranks say what they wait for.
    Reporting(Instant),
    /// The ranks have been asked to end, and have until then.
    Ending(Instant),
    Killing,
}

#[derive(Debug)]
struct Member {
    process: RankProcess,
    outcome: Option<Outcome>,
}

/// Why a job ended before its ranks did.
#[derive(Debug, Default)]
struct Causes {
    first_failure: Option<(Rank, Outcome)>,
    timed_out: bool,
    output_broken: bool,
    /// Other hosts did not come, or are lost.
    hosts_broken: bool,
    /// The status that another host has ended the job with.
    ended_elsewhere: Option<i32>,
    interrupted: Option<Signal>,
}

impl Causes {
    fn exit_status(&self) -> i32 {
        if self.timed_out || self.output_broken || self.hosts_broken {
            STATUS_RUN_FAILED
        } else if let Some(signal) = self.interrupted {
            128 + signal.as_raw()
        } else {
            let failed = self.first_failure.map(|(_, outcome)| outcome.status());
            failed.or(self.ended_elsewhere).unwrap_or(0)
        }
    }
}

#[derive(Debug)]
pub(super) struct Supervisor {
    spec: JobSpec,
    members: Vec<Member>,
    hub: Hub,
    signals: Signals,
    notice: Notice,
    notes: Notes,
    pump: Option<Pump>,
    forwarder: Option<Forwarder>,
    phase: Phase,
    deadline: Option<Instant>,
    causes: Causes,
    /// Room for the descriptors of the ranks.
    files: FileLimit,
}

impl Supervisor {
    /// Starts the store and every rank; on an error none is left.
    pub fn start(
        spec: JobSpec,
        placement: &Placement,
        notice: Notice,
        notes: Notes,
    ) -> Result<Self> {
        let mut signals = Signals::watch()?;
        let files = FileLimit::of_ranks(spec.all_ranks());
        let deadline = spec
            .timeout
            .and_then(|timeout| Instant::now().checked_add(timeout));
        let mut stop = || why_stopped(&mut signals, deadline, spec.timeout);
        let hub = Hub::open(spec.hosts.as_ref(), spec.all_ranks(), spec.quiet, &mut stop)?;
        let mut this = Self {
            spec,
            members: Vec::new(),
            hub,
            signals,
            notice,
            notes,
            pump: None,
            forwarder: None,
            phase: Phase::Running,
            deadline,
            causes: Causes::default(),
            files,
        };
        // From here on dropping `this` kills whoever was started.
        let parts = this.spec.parts();
        let parts = (0..)
            .zip(&parts)
            .flat_map(|(number, part)| std::iter::repeat_n((number, part), part.ranks as usize));
        let (mut sources, mut readers) = (Vec::new(), Vec::new());
        for ((rank, &cpu), (application, part)) in (0..).zip(&placement.cpus).zip(parts) {
            let stdin = this.start_rank(rank, cpu, application, part, &mut sources)?;
            readers.extend(stdin);
        }
        if !readers.is_empty() {
            let forwarder = Forwarder::start(readers)
                .map_err(|error| Error::system("forward the standard input", error))?;
            this.forwarder = Some(forwarder);
        }
        if this.spec.tag_output {
            let pump = Pump::start(sources, Sinks::standard())
                .map_err(|error| Error::system("start the output's thread", error))?;
            this.pump = Some(pump);
        }
        Ok(this)
    }

    /// Starts the rank that is `local` on this host, which runs the program `part`; returns where it is to be given its input.
    fn start_rank(
        &mut self,
        local: u32,
        cpu: Option<usize>,
        application: u32,
        part: &Part,
        sources: &mut Vec<Source>,
    ) -> Result<Option<ChildStdin>> {
        let spec = &self.spec;
        let rank = self.hub.first() + local;
        let membership = Membership {
            application: Some(application),
            ..self.hub.membership(local)
        };
        let mut command = Command::new(&part.program);
        // To the ranks of this job those of an outer launcher would be lies.
        for name in env::vars_os().map(|(name, _)| name) {
            if launchers::is_of_foreign_launcher(&name) || name == LAUNCHER {
                command.env_remove(name);
            }
        }
        // What a rank of Fortran prints is read where another one ends the job, too, as of C by MPI_Init.
        if env::var_os(PRINTED).is_none() {
            command.env(PRINTED, "y");
        }
        command
            .args(&part.args)
            .envs(part.env.iter().map(|(name, value)| (name, value)))
            .envs(membership.to_variables())
            .stdin(input::of_rank(spec.stdin, Rank::new(rank)));
        if let Some(directory) = &part.directory {
            command.current_dir(directory);
        }
        if let Some(folder) = &spec.output {
            let [out, err] = output::files_of(folder, rank)?;
            command.stdout(out).stderr(err);
        } else if spec.tag_output {
            command.stdout(Stdio::piped()).stderr(Stdio::piped());
        }
        let setup = Setup {
            cpu,
            files: self.files.before(),
            outer: launchers::outer_socket(),
        };
        let mut process =
            child::spawn(command, setup).map_err(|error| spawn_error(part, rank, error))?;
        if let Some(pipe) = process.child.stdout.take() {
            sources.push(Source::new(rank, Stream::Out, pipe.into()));
        }
        if let Some(pipe) = process.child.stderr.take() {
            sources.push(Source::new(rank, Stream::Err, pipe.into()));
        }
        let stdin = process.child.stdin.take();
        self.members.push(Member {
            process,
            outcome: None,
        });
        Ok(stdin)
    }

    /// The ranks' process ids.
    pub fn pids(&self) -> Vec<u32> {
        self.members
            .iter()
            .map(|member| member.process.child.id())
            .collect()
    }

    /// Returns where the job listens for other hosts.
    pub fn address(&self) -> Option<String> {
        self.hub.address().map(str::to_owned)
    }

    /// Watches the ranks until all have ended.
    pub fn run(mut self) -> Result<JobReport> {
        // What came with this host's place wakes nobody up.
        self.hear_of_others();
        while self.is_busy() {
            self.wait_for_events()?;
            // Before the ends of ranks here, which may come of what is heard.
            self.hear_of_others();
            self.notice_ends()?;
            self.obey_signals();
            self.notice_broken_output();
            self.keep_time();
        }
        Ok(self.conclude())
    }

    fn is_busy(&self) -> bool {
        let runs = matches!(self.phase, Phase::Running | Phase::Reporting(_));
        // A second signal, or the end of the grace, ends the wait for other hosts too: they end their ranks when the store is
        // gone.
        let waits = self.phase != Phase::Killing && self.hub.is_waiting(runs);
        self.members.iter().any(|member| member.outcome.is_none()) || waits
    }

    /// Blocks until something happens or is due. What it was, the callers find out.
    fn wait_for_events(&self) -> Result<()> {
        let due = match self.phase {
            Phase::Running => self.deadline,
            Phase::Reporting(until) | Phase::Ending(until) => Some(until),
            Phase::Killing => None,
        };
        let timeout = due
            .into_iter()
            .chain(self.hub.due())
            .min()
            .map(|due| due.saturating_duration_since(Instant::now()))
            .and_then(|left| Timespec::try_from(left).ok());
        let living = self
            .members
            .iter()
            .filter(|member| member.outcome.is_none());
        let broken = self.pump.as_ref().filter(|_| !self.causes.output_broken);
        let mut polled: Vec<PollFd<'_>> = living
            .map(|member| member.process.pidfd.as_fd())
            .chain(self.signals.sources().map(AsFd::as_fd))
            .chain([self.notice.0.as_fd()])
            .chain(self.hub.waits_for())
            .chain(broken.map(|pump| pump.broken().as_fd()))
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(Error::system("wait for the ranks", error)),
        }
    }

    fn notice_ends(&mut self) -> Result<()> {
        // Not reaped, so that the process id stays taken while peers may still name it.
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
        for index in 0..self.members.len() {
            let member = &mut self.members[index];
            if member.outcome.is_some() {
                continue;
            }
            let waited = rustix::io::retry_on_intr(|| {
                rustix::process::waitid(WaitId::PidFd(member.process.pidfd.as_fd()), options)
            });
            let status = match waited {
                Ok(None) => continue,
                Ok(Some(status)) => status,
                Err(error) => return Err(Error::system("wait for a rank", error)),
            };
            let outcome = match status.terminating_signal() {
                Some(signal) => Outcome::Signaled(signal),
                None => Outcome::Exited(status.exit_status().unwrap_or(STATUS_RUN_FAILED)),
            };
            member.outcome = Some(outcome);
            let rank = Rank::new(self.hub.first() + index as u32);
            self.hub.rank_ended(rank, outcome.status() as u32);
            self.judge(rank, outcome);
        }
        Ok(())
    }

    fn judge(&mut self, rank: Rank, outcome: Outcome) {
        // Later ends are our own doing.
        if outcome.status() == 0 || self.phase != Phase::Running {
            return;
        }
        self.causes.first_failure.get_or_insert((rank, outcome));
        let index = (rank.as_u32() - self.hub.first()) as usize;
        let pid = self.members[index].process.pid;
        let how = match outcome {
            Outcome::Exited(PANIC) => format!("ended with status {PANIC}, as after a panic"),
            Outcome::Exited(status) => format!("ended with status {status}"),
            Outcome::Signaled(signal) => format!("was killed by {}", named(signal)),
        };
        self.fail(format_args!("rank {rank} (process {pid}) {how}"));
    }

    /// Reports what has failed, and ends the job where a failure does.
    fn fail(&mut self, what: std::fmt::Arguments<'_>) {
        match self.spec.on_failure {
            OnFailure::Continue => self.report(what),
            OnFailure::Abort => {
                self.report(format_args!("{what}: ending the job"));
                self.end_ranks();
            }
        }
    }

    /// Reports a rank that failed, unless the caller does.
    fn report(&self, message: std::fmt::Arguments<'_>) {
        if !self.spec.quiet {
            self.notes.say(message);
        }
    }

    fn obey_signals(&mut self) {
        for signal in self.signals.take() {
            match signal {
                Signal::USR1 => self.ask_for_reports(),
                Signal::TSTP => self.stop_and_go_on(),
                ending => self.interrupt(ending),
            }
        }
        if self.notice.take() {
            self.interrupt(Signal::TERM);
        }
    }

    /// Obeys ranks that abort the job, and ends what other hosts have ended or lost.
    fn hear_of_others(&mut self) {
        for heard in self.hub.hear() {
            if !matches!(self.phase, Phase::Running | Phase::Reporting(_)) {
                continue;
            }
            match heard {
                // With that rank's status, whatever a failure means to the others. As the system cuts a status; a job that
                // was aborted is never a good one.
                HubEvent::Abort { rank, status } => {
                    let aborted = (rank, Outcome::Exited((status & 0xff).max(1) as i32));
                    self.causes.first_failure.get_or_insert(aborted);
                    self.end_ranks_but(Some(rank));
                    self.report(format_args!("rank {rank} aborts the job"));
                }
                HubEvent::Failed { rank, status } => {
                    let failed = (rank, Outcome::Exited(status as i32));
                    self.causes.first_failure.get_or_insert(failed);
                    self.fail(format_args!(
                        "rank {rank}, on another host, ended with status {status}"
                    ));
                }
                HubEvent::HostLost { name, ranks } => {
                    self.causes.hosts_broken |= self.causes.first_failure.is_none();
                    let ranks = ranges(ranks.into_iter().map(Rank::as_u32));
                    self.fail(format_args!(
                        "the host '{name}' is lost, and with it rank {ranks}"
                    ));
                }
                HubEvent::End { status } => {
                    self.causes.ended_elsewhere = Some(status as i32);
                    self.end_ranks();
                    if status != 0 {
                        self.report(format_args!(
                            "the host that listens ends the job, with status {status}"
                        ));
                    }
                }
                HubEvent::Lost => {
                    self.causes.hosts_broken = true;
                    self.notes.say(format_args!(
                        "the connection to the host that listens is lost: ending the job"
                    ));
                    self.end_ranks();
                }
                HubEvent::Late {
                    came,
                    wanted,
                    within,
                } => {
                    self.causes.hosts_broken = true;
                    self.notes.say(format_args!(
                        "other hosts have brought {came} of {wanted} ranks within {} s ({LATE}): ending the job",
                        within.as_secs_f64()
                    ));
                    self.end_ranks();
                }
            }
        }
    }

    fn interrupt(&mut self, signal: Signal) {
        match self.phase {
            Phase::Running | Phase::Reporting(_) => {
                self.causes.interrupted = Some(signal);
                self.end_ranks();
            }
            Phase::Ending(_) => self.kill_ranks(),
            Phase::Killing => {}
        }
    }

    /// Stops with the job, as a shell's user expects of ^Z, until somebody continues us.
    fn stop_and_go_on(&self) {
        self.signal_groups(Signal::STOP);
        stop_here();
        self.signal_groups(Signal::CONT);
    }

    fn notice_broken_output(&mut self) {
        let failure = match &self.pump {
            Some(pump) if !self.causes.output_broken => pump.failure(),
            _ => None,
        };
        let Some(why) = failure else { return };
        self.causes.output_broken = true;
        if matches!(self.phase, Phase::Running | Phase::Reporting(_)) {
            self.notes.say(format_args!(
                "cannot write the ranks' output: {why}: ending the job"
            ));
            self.end_ranks();
        }
    }

    fn keep_time(&mut self) {
        let now = Instant::now();
        match self.phase {
            Phase::Running if self.deadline.is_some_and(|deadline| deadline <= now) => {
                self.time_out(now);
            }
            Phase::Reporting(until) if until <= now => {
                self.notes.say(format_args!("timeout: ending the job"));
                self.end_ranks();
            }
            Phase::Ending(until) if until <= now => self.kill_ranks(),
            _ => {}
        }
    }

    fn time_out(&mut self, now: Instant) {
        let running = (self.hub.first()..)
            .zip(&self.members)
            .filter(|(_, member)| member.outcome.is_none());
        let running = match ranges(running.map(|(rank, _)| rank)) {
            none if none.is_empty() => "ranks of other hosts".to_owned(),
            ranks => format!("rank {ranks}"),
        };
        self.notes.say(format_args!(
            "timeout: the job has not ended within {:?}; still running: {running} (--coll-check on finds collectives that the ranks call differently)",
            self.spec.timeout.unwrap_or_default()
        ));
        self.causes.timed_out = true;
        self.phase = Phase::Reporting(now + REPORT_TIME);
        self.ask_for_reports();
    }

    /// Has every process of the ranks that can say what it waits for do so.
    fn ask_for_reports(&self) {
        let groups = self
            .members
            .iter()
            .map(|member| member.process.pid)
            .collect();
        for pid in processes::handlers(&groups, Signal::USR1) {
            // Gone meanwhile, if it fails.
            let _ = rustix::process::kill_process(pid, Signal::USR1);
        }
    }

    fn end_ranks(&mut self) {
        self.end_ranks_but(None);
    }

    /// Ends all ranks but one, which leaves by itself: it may still have output to write. Where it does not leave, it is
    /// killed with those that do not end.
    fn end_ranks_but(&mut self, leaving: Option<Rank>) {
        self.hub.end_job(self.causes.exit_status() as u32);
        self.phase = match Instant::now().checked_add(self.spec.grace) {
            Some(until) => Phase::Ending(until),
            None => Phase::Killing,
        };
        let first = self.hub.first();
        for signal in [Signal::TERM, Signal::CONT] {
            // A stopped process would not hear the first one.
            self.signal_groups_but(
                leaving.map(|rank| rank.as_u32().wrapping_sub(first)),
                signal,
            );
        }
    }

    fn kill_ranks(&mut self) {
        self.phase = Phase::Killing;
        self.signal_groups(Signal::KILL);
    }

    /// Signals every rank's group. None of the numbers can have been reused: their leaders are
    /// not reaped.
    fn signal_groups(&self, signal: Signal) {
        self.signal_groups_but(None, signal);
    }

    /// The same but for the group of one member.
    fn signal_groups_but(&self, spared: Option<u32>, signal: Signal) {
        for (index, Member { process, .. }) in self.members.iter().enumerate() {
            if spared != Some(index as u32) {
                // Fails when nobody is left in the group.
                let _ = rustix::process::kill_process_group(process.pid, signal);
            }
        }
    }

    fn conclude(mut self) -> JobReport {
        // Those whose ranks all ended well wait for it.
        self.hub.end_job(self.causes.exit_status() as u32);
        // Whoever a rank left behind.
        self.signal_groups(Signal::KILL);
        self.forwarder = None;
        let report = JobReport {
            exit_status: self.causes.exit_status(),
            outcomes: self
                .members
                .iter()
                .filter_map(|member| member.outcome)
                .collect(),
            first_failure: self.causes.first_failure,
            timed_out: self.causes.timed_out,
            interrupted: self.causes.interrupted.map(Signal::as_raw),
        };
        let pump = self.pump.take();
        let notes = self.notes.clone();
        // Gives the signals back first: output that nobody takes can be interrupted.
        drop(self);
        let report = finish_output(pump, &notes, report);
        notes.finish();
        report
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        self.signal_groups(Signal::KILL);
        for Member { process, .. } in self.members.drain(..) {
            child::kill_and_reap(process.child, process.pid);
        }
    }
}

/// Returns why a job ends that has no ranks yet, where it does.
fn why_stopped(
    signals: &mut Signals,
    deadline: Option<Instant>,
    timeout: Option<Duration>,
) -> Option<Stop> {
    for signal in signals.take() {
        match signal {
            // There are no ranks to report.
            Signal::USR1 => {}
            Signal::TSTP => stop_here(),
            ending => {
                let why = format!("{} came before", named(ending.as_raw()));
                let status = 128 + ending.as_raw();
                return Some(Stop { why, status });
            }
        }
    }
    let is_late = deadline.is_some_and(|deadline| deadline <= Instant::now());
    is_late.then(|| Stop {
        why: format!(
            "the job was to end within {:?} (--timeout)",
            timeout.unwrap_or_default()
        ),
        status: STATUS_RUN_FAILED,
    })
}

/// Stops this process until somebody continues it.
fn stop_here() {
    // To this very thread, so that it does not run on while another one takes the signal.
    let _ = signal_hook::low_level::raise(Signal::STOP.as_raw());
}

/// Returns a signal's number and name.
fn named(signal: i32) -> String {
    let name = signal_hook::low_level::signal_name(signal).unwrap_or("no known name");
    format!("signal {signal} ({name})")
}

/// Moves the last output. A job whose output is lost has not gone well.
fn finish_output(pump: Option<Pump>, notes: &Notes, mut report: JobReport) -> JobReport {
    let Some(mut pump) = pump else { return report };
    pump.finish();
    if let Some(why) = pump.failure()
        && report.exit_status == 0
    {
        notes.say(format_args!("cannot write the ranks' output: {why}"));
        report.exit_status = STATUS_RUN_FAILED;
    }
    report
}

fn spawn_error(part: &Part, rank: u32, source: io::Error) -> Error {
    let program = part.program_name();
    let has_slash = |program: &OsString| program.as_encoded_bytes().contains(&b'/');
    match source.kind() {
        // There, and yet not found: the interpreter that its first line names is missing.
        io::ErrorKind::NotFound if has_slash(&part.program) && part.place_of_program().exists() => {
            Error::NotExecutable { program, source }
        }
        io::ErrorKind::NotFound => Error::NotFound { program },
        _ => match source.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::ACCESS | Errno::NOEXEC | Errno::ISDIR | Errno::NOTDIR) => {
                Error::NotExecutable { program, source }
            }
            _ => Error::system(format!("start rank {rank} of '{program}'"), source),
        },
    }
}
