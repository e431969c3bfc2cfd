//! A job on this machine: its ranks, from their start to the end of the last one.
//!
//! - The first rank that fails ends the job, and its exit status is the job's (128 + n after
//!   signal n). With [`OnFailure::Continue`] the others go on; the job's status is still that of
//!   the first failure.
//! - Whatever ends the job early sends every rank SIGTERM and, after [`JobSpec::grace`], SIGKILL.
//!   SIGINT, SIGTERM and SIGHUP to the launcher do; a second one kills at once. The status is
//!   then 128 + n.
//! - SIGUSR1 to the launcher goes on to every process of the ranks that handles it, which makes
//!   them print what they wait for; nothing is stopped. [`JobSpec::timeout`] does the same and
//!   ends the job about a second later, with status 2.
//! - Each rank leads a process group of its own, so that a wrapper's children end with it. The
//!   groups die with the launcher, even with one that is killed; see `child.rs` for how.
//! - What the launcher has to say goes to standard error, and nothing waits for somebody to read it there.
//! - No process id is reused before the job ends: a dead rank stays a zombie until then, because
//!   peers may still name it in a system call.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use tagwire_base::Rank;

use crate::binding::Binding;
use crate::error::{Error, Result};

mod child;
mod hosts;
mod hub;
mod input;
mod notes;
mod output;
mod processes;
mod signals;
mod supervisor;

use hosts::MAX_RANKS;
pub use hosts::{Hosts, has_host_and_port};
use notes::Notes;
pub(crate) use processes::is_default;
pub use signals::KeptSignals;
use supervisor::{Notice, Supervisor};

/// What a rank's failure means to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnFailure {
    /// It ends them.
    #[default]
    Abort,
    /// They go on, and hear of it through the store.
    Continue,
}

/// Who reads the launcher's standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StdinPolicy {
    /// Nobody.
    #[default]
    Null,
    /// This rank of the job; nobody here where it is on another host. A file or a pipe is handed down to it as it is, and
    /// a terminal's input is forwarded.
    Rank(Rank),
    /// Every rank of this host, each of which has all of it. Who is 16 MiB behind holds the others up.
    All,
}

/// What to run, and how.
///
/// ```no_run
/// use tagwire_launch::{JobSpec, run};
/// let mut spec = JobSpec::new(4, "./ring");
/// spec.args = vec!["--hops".into(), "1000".into()];
/// spec.binding = "core".parse()?;
/// std::process::exit(run(spec)?.exit_status);
/// # #[allow(unreachable_code)]
/// # Ok::<(), tagwire_launch::Error>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct JobSpec {
    /// How many ranks of the program to start.
    pub ranks: u32,
    /// The program, looked up in `PATH` unless it has a slash.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Environment variables to set beside the inherited ones.
    pub env: Vec<(OsString, OsString)>,
    /// Further programs of the job, whose ranks follow in this order.
    pub others: Vec<Part>,
    /// Which part of a job these ranks are that other hosts have a part of; `None`: all of it.
    pub hosts: Option<Hosts>,
    /// Where the ranks run, and where their program is looked for when its name is relative; `None`: where the launcher does.
    pub directory: Option<PathBuf>,
    /// The folder into which all that rank N says goes, to `rank-N.txt`; `None`: where [`tag_output`](Self::tag_output)
    /// says.
    pub output: Option<PathBuf>,
    /// Which CPUs the ranks run on.
    pub binding: Binding,
    /// What a rank's failure means to the others.
    pub on_failure: OnFailure,
    /// Whether each line of output is preceded by its rank, as `[3] `. Lines of different ranks
    /// then never mix. Lines over 1 MiB are cut.
    pub tag_output: bool,
    /// After what time the job is made to tell what it waits for, and ended.
    pub timeout: Option<Duration>,
    /// How long ranks have between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// Who reads the launcher's standard input.
    pub stdin: StdinPolicy,
    /// Whether the launcher leaves it to the caller to report ranks that fail, ranks without a core of
    /// their own, and where it listens.
    pub quiet: bool,
}

impl JobSpec {
    /// `ranks` ranks of `program`, the rest as by default: not bound, a failure ends the job, 5 s
    /// of grace, no timeout, output and error output inherited, no input.
    #[must_use]
    pub fn new(ranks: u32, program: impl Into<OsString>) -> Self {
        Self {
            ranks,
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            others: Vec::new(),
            hosts: None,
            directory: None,
            output: None,
            binding: Binding::default(),
            on_failure: OnFailure::default(),
            tag_output: false,
            timeout: None,
            grace: Duration::from_secs(5),
            stdin: StdinPolicy::default(),
            quiet: false,
        }
    }

    /// Returns the programs of the job, each with its ranks: the number of one in this list is what MPI calls its `MPI_APPNUM`.
    #[must_use]
    pub fn parts(&self) -> Vec<Part> {
        let first = Part {
            ranks: self.ranks,
            program: self.program.clone(),
            args: self.args.clone(),
            env: self.env.clone(),
            directory: self.directory.clone(),
        };
        let others = self.others.iter().cloned();
        std::iter::once(first).chain(others).collect()
    }

    /// Returns how many ranks to start on this host, of all programs.
    #[must_use]
    pub fn all_ranks(&self) -> u32 {
        let others = self.others.iter().map(|part| part.ranks);
        others.fold(self.ranks, u32::saturating_add)
    }

    /// Checks that there are ranks, and not too many.
    fn check_ranks(&self) -> Result<()> {
        if self.ranks == 0 || self.others.iter().any(|part| part.ranks == 0) {
            return Err(Error::Usage("a job needs at least 1 rank".to_owned()));
        }
        let ranks = self.all_ranks();
        if ranks > MAX_RANKS {
            return Err(Error::Usage(format!(
                "{ranks} ranks on one machine: at most {MAX_RANKS} can be started"
            )));
        }
        if let Some(hosts) = &self.hosts {
            hosts.check(ranks)?;
        }
        let all = match &self.hosts {
            None => ranks,
            Some(Hosts::Listen { total, .. }) => *total,
            // How many there are only the host that listens knows.
            Some(Hosts::Connect { .. }) => MAX_RANKS,
        };
        match self.stdin {
            StdinPolicy::Rank(reader) if reader.as_u32() >= all => Err(Error::Usage(format!(
                "rank {reader} is to read the standard input, and the job has {all}"
            ))),
            _ => Ok(()),
        }
    }

    /// Checks the directories, and makes the folder for output.
    fn check_folders(&self) -> Result<()> {
        for part in self.parts() {
            part.check_directory()?;
        }
        self.output.as_deref().map_or(Ok(()), |folder| {
            std::fs::create_dir_all(folder).map_err(|error| {
                Error::system(format!("make the folder '{}'", folder.display()), error)
            })
        })
    }
}

/// A program of a job, and its ranks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Part {
    /// How many ranks of it to start.
    pub ranks: u32,
    /// The program, looked up in `PATH` unless it has a slash.
    pub program: OsString,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// Environment variables to set beside the inherited ones.
    pub env: Vec<(OsString, OsString)>,
    /// Where the ranks run, and where their program is looked for when its name is relative; `None`: where the launcher does.
    pub directory: Option<PathBuf>,
}

impl Part {
    fn check_directory(&self) -> Result<()> {
        let missing = self.directory.as_deref().filter(|folder| !folder.is_dir());
        missing.map_or(Ok(()), |directory| {
            Err(Error::Usage(format!(
                "the ranks are to run in '{}', which is no directory",
                directory.display()
            )))
        })
    }

    /// Where the program is, when its name has a slash.
    fn place_of_program(&self) -> PathBuf {
        let directory = self.directory.clone().unwrap_or_default();
        directory.join(&self.program)
    }

    fn program_name(&self) -> String {
        Path::new(&self.program).display().to_string()
    }
}

/// How a rank's process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// With this exit status.
    Exited(i32),
    /// By this signal.
    Signaled(i32),
}

impl Outcome {
    /// As one number: the exit status, or 128 + the signal.
    #[must_use]
    pub const fn status(self) -> i32 {
        match self {
            Self::Exited(status) => status,
            Self::Signaled(signal) => 128 + signal,
        }
    }
}

/// How a job ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobReport {
    /// The job's exit status, as [`crate::job`] says.
    pub exit_status: i32,
    /// How each rank ended, those that the launcher ended included.
    pub outcomes: Vec<Outcome>,
    /// The first rank that failed and how it ended, unless something else had ended the job before. It may be on another host.
    pub first_failure: Option<(Rank, Outcome)>,
    /// Whether the timeout ended the job.
    pub timed_out: bool,
    /// The signal to the launcher that ended the job.
    pub interrupted: Option<i32>,
}

/// A running job. Dropping it ends it as SIGTERM would.
#[derive(Debug)]
pub struct Job {
    pids: Vec<u32>,
    address: Option<String>,
    notice: Notice,
    supervisor: Option<JoinHandle<Result<JobReport>>>,
}

impl Job {
    /// Starts the store and every rank.
    ///
    /// While the job runs, SIGINT, SIGTERM, SIGHUP, SIGUSR1 and SIGTSTP of this process are the
    /// job's, unless they were ignored.
    ///
    /// # Errors
    /// [`Error::Usage`] for what cannot be run, [`Error::NotFound`] and
    /// [`Error::NotExecutable`] for the program, [`Error::Ended`] when a signal or the timeout comes
    /// before the host that listens is found, [`Error::System`] when the system refuses. No rank is
    /// left then.
    pub fn start(spec: JobSpec) -> Result<Self> {
        spec.check_ranks()?;
        spec.check_folders()?;
        let ranks = spec.all_ranks();
        let placement = spec.binding.place(ranks)?;
        let notes = Notes::default();
        if ranks as usize > placement.distinct && !spec.quiet {
            notes.say(format_args!(
                "note: {ranks} ranks on {} core{}: they take turns",
                placement.distinct,
                if placement.distinct == 1 { "" } else { "s" }
            ));
        }
        let notice = Notice::new()?;
        let (started, outcome) = mpsc::sync_channel(1);
        let supervisor_notice = notice.clone();
        // One thread starts the ranks and outlives them: the kernel ends a child with the
        // thread that forked it.
        let supervisor = std::thread::Builder::new()
            .name("tagwire-launch".to_owned())
            .spawn(
                move || match Supervisor::start(spec, &placement, supervisor_notice, notes) {
                    Ok(supervisor) => {
                        // The other side waits for exactly this.
                        let _ = started.send(Ok((supervisor.pids(), supervisor.address())));
                        supervisor.run()
                    }
                    Err(error) => {
                        let _ = started.send(Err(error));
                        Err(lost())
                    }
                },
            )
            .map_err(|error| Error::system("start the launcher's thread", error))?;
        let (pids, address) = outcome.recv().unwrap_or_else(|_| Err(lost()))?;
        Ok(Self {
            pids,
            address,
            notice,
            supervisor: Some(supervisor),
        })
    }

    /// Waits until every rank has ended.
    ///
    /// # Errors
    /// [`Error::System`] when the launcher could not watch its ranks any more; they are dead
    /// then.
    pub fn wait(mut self) -> Result<JobReport> {
        match self.supervisor.take().map(JoinHandle::join) {
            Some(Ok(report)) => report,
            _ => Err(lost()),
        }
    }

    /// The process ids of the ranks, which stay theirs until the job ends.
    #[must_use]
    pub fn pids(&self) -> &[u32] {
        &self.pids
    }

    /// Returns where it listens for the ranks of other hosts; `None` where it does not.
    #[must_use]
    pub fn address(&self) -> Option<&str> {
        self.address.as_deref()
    }

    /// Ends the job, as SIGTERM to the launcher would. Does not wait.
    pub fn end(&self) {
        self.notice.give();
    }

    /// Returns what ends the job from another thread while this one waits for it.
    #[must_use]
    pub fn ender(&self) -> Ender {
        Ender(self.notice.clone())
    }
}

/// Ends a job from any thread.
#[derive(Debug, Clone)]
pub struct Ender(Notice);

impl Ender {
    /// Ends the job as [`Job::end`] does; nothing where it is over.
    pub fn end(&self) {
        self.0.give();
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        if let Some(supervisor) = self.supervisor.take() {
            self.notice.give();
            let _ = supervisor.join();
        }
    }
}

/// Runs a job to its end.
///
/// # Errors
/// As [`Job::start`] and [`Job::wait`].
pub fn run(spec: JobSpec) -> Result<JobReport> {
    Job::start(spec)?.wait()
}

fn lost() -> Error {
    Error::system(
        "watch the ranks",
        std::io::Error::other("the launcher's thread ended"),
    )
}
