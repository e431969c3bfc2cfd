//! A job that runs: its launchers, its ranks' words as they come, its processes.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tagwire_base::JobSecret;
use tagwire_launch::{Hosts, JobSpec};

use crate::away;
use crate::blow::Blow;
use crate::events::{Event, Word, read, say};
use crate::grounds::network::HOSTS;
use crate::grounds::{Setting, without_settings};
use crate::site::{FIRST, MEETING, Part, SECRET, Site};

/// The variable by which the processes of a trial are known.
pub const MARK: &str = "CAMPAIGN_MARK";
/// What a rank may grow by in a flood.
pub const FLOOD_KIB: &str = "CAMPAIGN_FLOOD_KIB";
/// How many messages a rank sends in the first flood, where somebody has said so.
pub const FLOOD: &str = "CAMPAIGN_FLOOD";
/// How much of what nobody understands is kept.
const KEPT: usize = 60;

/// What a job is.
#[derive(Debug, Clone)]
pub struct Spec {
    /// The seed of its trial.
    pub seed: u64,
    /// The program, by its name.
    pub program: &'static str,
    /// How many ranks it has.
    pub ranks: u32,
    /// What strikes them.
    pub blows: Vec<Blow>,
    /// The settings of all.
    pub settings: Vec<Setting>,
    /// How many messages a rank sends in the first flood, where somebody has said so.
    pub flood: Option<u64>,
    /// What a rank may grow by in a flood, in KiB.
    pub flood_kib: u64,
}

/// What the driver reads.
enum Heard {
    Event(Event),
    Other(String),
}

/// A running job. It is killed when dropped, with its ranks.
pub struct Job {
    launchers: Vec<Child>,
    lines: Receiver<Heard>,
    /// What the ranks have said.
    pub events: Vec<Event>,
    /// What else was said: the last lines.
    pub others: Vec<String>,
    processes: BTreeMap<u32, Pid>,
    end: PathBuf,
    /// Where it runs.
    pub site: Site,
}

impl Job {
    /// Starts a job, whose processes have a mark and put files into a folder.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start(spec: &Spec, site: Site, mark: &str, folder: &Path) -> Result<Self, String> {
        let (sender, lines) = channel();
        let mut job = Self {
            launchers: Vec::new(),
            lines,
            events: Vec::new(),
            others: Vec::new(),
            processes: BTreeMap::new(),
            end: folder.join("end"),
            site,
        };
        for part in job.site.parts(spec.ranks, folder)? {
            let mut command = job.command(spec, &part)?;
            command.env(MARK, mark).env("TMPDIR", folder);
            let launcher = command
                .spawn()
                .map_err(|why| format!("the launcher: {why}"))?;
            job.launchers.push(launcher);
        }
        for launcher in &mut job.launchers {
            if let (Some(out), Some(err)) = (launcher.stdout.take(), launcher.stderr.take()) {
                listen(out, sender.clone());
                listen(err, sender.clone());
            }
        }
        Ok(job)
    }

    /// Returns the command line of a part's launcher.
    fn command(&self, spec: &Spec, part: &Part) -> Result<Command, String> {
        let program = std::env::current_exe().map_err(|why| format!("this program: {why}"))?;
        let mut words = part.before.clone();
        words.extend([
            program.clone().into(),
            "launch".into(),
            part.ranks.to_string().into(),
            program.into(),
        ]);
        words.extend(["rank", spec.program, &spec.seed.to_string()].map(OsString::from));
        words.push(self.end.clone().into());
        words.extend(
            spec.blows
                .iter()
                .map(|blow| OsString::from(blow.to_string())),
        );
        let mut command = Command::new(&words[0]);
        without_settings(&mut command);
        command
            .args(&words[1..])
            .envs(spec.settings.iter().map(|(name, value)| (name, value)))
            .env(FLOOD_KIB, spec.flood_kib.to_string())
            .envs(spec.flood.map(|flood| (FLOOD, flood.to_string())))
            .envs(part.variables.iter().map(|(name, value)| (name, value)))
            // Its end is the driver's, however that ends.
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Ok(command)
    }

    /// Hears what is said until then. Returns whether anybody can still say something.
    pub fn hear_until(&mut self, then: Instant) -> bool {
        loop {
            match self
                .lines
                .recv_timeout(then.saturating_duration_since(Instant::now()))
            {
                Ok(heard) => self.note(heard),
                Err(RecvTimeoutError::Timeout) => return true,
                Err(RecvTimeoutError::Disconnected) => return false,
            }
            if Instant::now() >= then {
                return true;
            }
        }
    }

    /// Hears what is said until something holds, for so long at most. Returns whether it does.
    pub fn hear(&mut self, patience: Duration, holds: impl Fn(&Self) -> bool) -> bool {
        let began = Instant::now();
        while !holds(self) {
            match self.lines.recv_timeout(left(began, patience)) {
                Ok(heard) => self.note(heard),
                Err(RecvTimeoutError::Timeout) if !is_over(began, patience) => {}
                Err(_) => return holds(self),
            }
        }
        true
    }

    fn note(&mut self, heard: Heard) {
        match heard {
            Heard::Event(event) => {
                if let Word::Process(id) = event.word
                    && let Some(process) = Pid::from_raw(id)
                {
                    self.processes.insert(event.rank, process);
                }
                self.events.push(event);
            }
            Heard::Other(line) => {
                if self.others.len() == KEPT {
                    self.others.remove(0);
                }
                self.others.push(line);
            }
        }
    }

    /// Returns how many ranks have a process.
    pub fn processes(&self) -> usize {
        self.processes.len()
    }

    /// Returns how many ranks have joined, or cannot.
    pub fn joined(&self) -> usize {
        let words = self.events.iter().map(|event| &event.word);
        words
            .filter(|word| matches!(word, Word::Ready | Word::Unopened(_)))
            .count()
    }

    /// Returns the process of a rank that has said so.
    pub fn process(&self, rank: u32) -> Option<Pid> {
        self.processes.get(&rank).copied()
    }

    /// Sends a signal to a rank. One that has ended does not mind: its launcher has not taken its end before the job's
    /// own, so that nobody else has its number.
    pub fn signal(&self, rank: u32, signal: Signal) {
        if let Some(process) = self.process(rank) {
            let _ = kill_process(process, signal);
        }
    }

    /// Sends a signal to the launchers.
    pub fn signal_launchers(&self, signal: Signal) {
        for launcher in &self.launchers {
            let _ = kill_process(Pid::from_child(launcher), signal);
        }
    }

    /// Kills the launchers. Their ranks end with them, and nobody keeps the numbers of these any more: no signal follows.
    pub fn kill_launchers(&mut self) {
        for launcher in &mut self.launchers {
            let _ = launcher.kill();
        }
        self.processes.clear();
    }

    /// Has ranks end.
    ///
    /// # Errors
    /// When the file that tells them cannot be made.
    pub fn tell_to_end(&self) -> Result<(), String> {
        std::fs::write(&self.end, "").map_err(|why| format!("{}: {why}", self.end.display()))
    }

    /// Has ranks say what they wait for, and hears it.
    pub fn ask(&mut self) {
        self.signal_launchers(Signal::USR1);
        self.hear_until(Instant::now() + Duration::from_secs(1));
    }

    /// Waits until the launchers have ended, after the last of their words, for so long at most.
    pub fn finish(&mut self, patience: Duration) -> bool {
        let began = Instant::now();
        while self.hear_until(began + patience + away::since(began)) {
            if is_over(began, patience) {
                return false;
            }
        }
        self.launchers
            .iter_mut()
            .all(|launcher| launcher.wait().is_ok())
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        // Stopped ones die too.
        for launcher in &mut self.launchers {
            let _ = launcher.kill();
            let _ = launcher.wait();
        }
    }
}

/// Returns what is left of a time that has begun. While the machine runs nobody it does not pass.
fn left(began: Instant, patience: Duration) -> Duration {
    (patience + away::since(began)).saturating_sub(began.elapsed())
}

/// Whether nothing is left of it. It may just have been known that the machine ran nobody.
fn is_over(began: Instant, patience: Duration) -> bool {
    std::thread::sleep(2 * away::LOOK);
    left(began, patience).is_zero()
}

fn listen(pipe: impl Read + Send + 'static, to: Sender<Heard>) {
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n') {
            let Ok(line) = line else { break };
            let line = String::from_utf8_lossy(&line);
            let at = Instant::now();
            let heard = match read(&line) {
                Some((rank, word)) => Heard::Event(Event { rank, word, at }),
                None => Heard::Other(line.into_owned()),
            };
            if to.send(heard).is_err() {
                break;
            }
        }
    });
}

/// Runs as the launcher of a job: so many ranks of a program.
///
/// # Errors
/// When the job cannot be run.
pub fn launch(ranks: u32, program: OsString, arguments: Vec<OsString>) -> Result<i32, String> {
    end_with_the_driver();
    let mut spec = JobSpec::new(ranks, program);
    spec.args = arguments;
    spec.on_failure = tagwire_launch::OnFailure::Continue;
    spec.quiet = true;
    if let Some(share) = std::env::var(HOSTS)
        .ok()
        .and_then(|share| share.parse::<u32>().ok())
    {
        return of_hosts(spec, share);
    }
    spec.hosts = meeting()?;
    run(spec)
}

/// Ends this launcher, and its ranks with it, once the driver has: nothing comes from there before.
fn end_with_the_driver() {
    std::thread::spawn(|| {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = kill_process(rustix::process::getpid(), Signal::KILL);
    });
}

/// Runs the ranks of this launcher, and says how each has ended.
fn run(spec: JobSpec) -> Result<i32, String> {
    let first = std::env::var(FIRST)
        .ok()
        .and_then(|first| first.parse().ok());
    let report = tagwire_launch::run(spec).map_err(|why| why.to_string())?;
    for (rank, outcome) in (first.unwrap_or(0_u32)..).zip(&report.outcomes) {
        say(rank, &Word::Ended(outcome.status()));
    }
    Ok(report.exit_status)
}

/// Returns which part of a job this launcher has, by its variables.
fn meeting() -> Result<Option<Hosts>, String> {
    let (Ok(meeting), Some(secret)) = (std::env::var(MEETING), std::env::var_os(SECRET)) else {
        return Ok(None);
    };
    let secret = JobSecret::of_option(&format!("@{}", secret.display()))?;
    let words: Vec<&str> = meeting.split(' ').collect();
    let wrong = || format!("{MEETING}: '{meeting}'");
    let hosts = match words[..] {
        ["listen", address, total] => Hosts::Listen {
            address: address.to_owned(),
            total: total.parse().map_err(|_| wrong())?,
            secret: Some(secret),
        },
        ["connect", address] => Hosts::Connect {
            address: address.to_owned(),
            secret,
        },
        _ => return Err(wrong()),
    };
    Ok(Some(hosts))
}

/// The same where so many ranks each say that they share a host: each has a program of its own in the job.
fn of_hosts(mut spec: JobSpec, share: u32) -> Result<i32, String> {
    let all = spec.ranks;
    let host = |first: u32| vec![("TAGWIRE_HOST".into(), format!("host-{first}").into())];
    spec.ranks = share.min(all);
    spec.env = host(0);
    for first in (share..all).step_by(share.max(1) as usize) {
        spec.others.push(tagwire_launch::Part {
            ranks: share.min(all - first),
            program: spec.program.clone(),
            args: spec.args.clone(),
            env: host(first),
            directory: None,
        });
    }
    run(spec)
}
