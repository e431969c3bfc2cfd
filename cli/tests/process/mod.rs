//! Jobs of `tagwire run`, watched from outside: their lines as they come, their processes, their
//! end. Nothing here waits for ever: a job that hangs is made to tell what it waits for, and the
//! test fails with all that was said.

pub mod hosts;
pub mod installed;
pub mod launchers;
#[path = "../../../ci/wheels.rs"]
pub mod wheels;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// How long anything may take on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// The exit status of a rank, and of its job, after `kill -9`.
pub const KILLED: i32 = 128 + 9;

/// What results of `bench` hold, with flat rows.
pub fn results(text: &str) -> serde_json::Value {
    serde_json::Value::Object(tagwire_bench::document(text.as_bytes()).unwrap())
}

/// The `tagwire` command of this build.
pub fn tagwire() -> PathBuf {
    env!("CARGO_BIN_EXE_tagwire").into()
}

/// An example of this package, built as it is now.
pub fn example(name: &str) -> PathBuf {
    static EXAMPLES: OnceLock<PathBuf> = OnceLock::new();
    EXAMPLES.get_or_init(build_examples).join(name)
}

/// Builds the examples into the folder where they would be anyway: `cargo test` with a filter
/// leaves them out, or as they were.
fn build_examples() -> PathBuf {
    let profile_folder = tagwire().parent().unwrap().to_owned();
    // `ci/tests` has built everything, and runs programs that wait for cargo's locks otherwise.
    if std::env::var_os("CI_ARTIFACTS").is_some() {
        return profile_folder.join("examples");
    }
    let profile = match profile_folder.file_name().and_then(OsStr::to_str) {
        Some("debug") | None => "dev",
        Some(name) => name,
    };
    let output = Command::new(env!("CARGO"))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        // Of the whole workspace: the features of a package alone would have things built again.
        .args([
            "build",
            "--quiet",
            "--workspace",
            "--examples",
            "--profile",
            profile,
        ])
        .arg("--target-dir")
        .arg(profile_folder.parent().unwrap())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cannot build the examples: {said}");
    profile_folder.join("examples")
}

/// The program whose scenarios the tests run.
pub fn rank() -> PathBuf {
    example("test_rank")
}

/// The program that runs another one with fewer rights.
pub fn confine() -> PathBuf {
    example("test_confine")
}

/// Returns what names the file with this secret, which its owner alone may read: `@FILE`.
pub fn secret(text: &str) -> String {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let place = folder.join(format!("secret-{text}"));
    if !place.exists() {
        let made = tempfile::NamedTempFile::new_in(folder).unwrap();
        std::fs::write(made.path(), text).unwrap();
        // Whoever else makes it writes the same.
        made.persist(&place).unwrap();
    }
    format!("@{}", place.display())
}

/// Whether this test may do what only an administrator may. Where not, it says so, loudly.
pub fn is_root(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("SKIPPED: {test} needs to be run as root");
    }
    root
}

/// How a job ended, and all that it said.
#[derive(Debug)]
pub struct Outcome {
    /// The exit status; 128 + n after signal n.
    pub status: i32,
    pub stdout: Vec<String>,
    pub stderr: Vec<String>,
}

impl Outcome {
    /// The job's only line on standard output that contains `part`.
    pub fn line(&self, part: &str) -> &str {
        let mut lines = self.stdout.iter().filter(|line| line.contains(part));
        let line = lines.next();
        assert!(
            line.is_some() && lines.next().is_none(),
            "'{part}' is not said exactly once: {self:#?}"
        );
        line.unwrap()
    }

    /// The whole of standard error.
    pub fn errors(&self) -> String {
        self.stderr.join("\n")
    }
}

/// Where a line was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stream {
    Out,
    Err,
}

/// A command line that begins with `tagwire`, in an environment without settings but for the layer that
/// the suite is run on.
pub struct Line(Command);

impl Line {
    pub fn new<A: AsRef<OsStr>>(arguments: impl IntoIterator<Item = A>) -> Self {
        Self::of(&tagwire(), arguments)
    }

    /// `program arguments` in the same environment.
    pub fn of<A: AsRef<OsStr>>(program: &Path, arguments: impl IntoIterator<Item = A>) -> Self {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("TAGWIRE_") && name != "TAGWIRE_PML" {
                command.env_remove(name);
            }
        }
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Self(command)
    }

    pub fn args<A: AsRef<OsStr>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.0.args(arguments);
        self
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.0.env(name, value);
        self
    }

    pub fn start(mut self) -> Job {
        let mut child = self.0.spawn().unwrap();
        let (sender, lines) = channel();
        forward(Stream::Out, child.stdout.take().unwrap(), sender.clone());
        forward(Stream::Err, child.stderr.take().unwrap(), sender);
        Job {
            child,
            lines,
            said: Vec::new(),
        }
    }

    pub fn finish(self) -> Outcome {
        self.start().finish()
    }
}

fn forward(stream: Stream, pipe: impl Read + Send + 'static, to: Sender<(Stream, String)>) {
    std::thread::spawn(move || {
        for line in BufReader::new(pipe).split(b'\n') {
            let Ok(line) = line else { break };
            let line = String::from_utf8_lossy(&line).into_owned();
            if to.send((stream, line)).is_err() {
                break;
            }
        }
    });
}

/// A running job. Killed when dropped, and its ranks with it.
#[derive(Debug)]
pub struct Job {
    child: Child,
    lines: Receiver<(Stream, String)>,
    said: Vec<(Stream, String)>,
}

impl Job {
    /// `tagwire run -n RANKS OPTIONS -- test_rank SCENARIO`.
    pub fn of_ranks(ranks: u32, options: &[&str], scenario: &[&str]) -> Self {
        run_line(ranks, options)
            .args([rank()])
            .args(scenario)
            .start()
    }

    /// The launcher's process.
    pub fn launcher(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Waits until a line with `part` has been said on either stream; returns it.
    pub fn hear(&mut self, part: &str) -> String {
        let found = |line: &str| line.contains(part);
        if let Some((_, line)) = self.said.iter().find(|(_, line)| found(line)) {
            return line.clone();
        }
        let deadline = Instant::now() + PATIENCE;
        loop {
            match self.next_line(deadline) {
                Ok(line) if found(&line) => return line,
                Ok(_) => {}
                Err(why) => self.give_up(&format!("waiting for '{part}': {why:?}")),
            }
        }
    }

    /// Waits until `count` lines with `part` have been said; returns them.
    pub fn hear_several(&mut self, part: &str, count: usize) -> Vec<String> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let said = self.said.iter().map(|(_, line)| line);
            let found: Vec<_> = said.filter(|line| line.contains(part)).cloned().collect();
            if found.len() >= count {
                return found;
            }
            if let Err(why) = self.next_line(deadline) {
                self.give_up(&format!("waiting for {count} times '{part}': {why:?}"));
            }
        }
    }

    /// The process of a rank of the test program, which says so at its start.
    pub fn process(&mut self, rank: u32) -> Pid {
        let start = format!("{rank} is process ");
        let line = self.hear(&start);
        let number = line.strip_prefix(&start).unwrap().parse().unwrap();
        Pid::from_raw(number).unwrap()
    }

    /// `kill -9` of a rank; returns when.
    pub fn kill(&mut self, rank: u32) -> Instant {
        let process = self.process(rank);
        let now = Instant::now();
        kill_process(process, Signal::KILL).unwrap();
        now
    }

    fn next_line(&mut self, deadline: Instant) -> Result<String, RecvTimeoutError> {
        let left = deadline.saturating_duration_since(Instant::now());
        let (stream, line) = self.lines.recv_timeout(left)?;
        self.said.push((stream, line.clone()));
        Ok(line)
    }

    /// Waits for the end.
    pub fn finish(mut self) -> Outcome {
        use std::os::unix::process::ExitStatusExt;
        let deadline = Instant::now() + PATIENCE;
        // The pipes end with the last process that holds them.
        if let Err(why) = self.read_to_end(deadline) {
            self.give_up(&format!("waiting for the job's end: {why:?}"));
        }
        let status = self.child.wait().unwrap();
        let of = |wanted| {
            let lines = self.said.iter().filter(|(stream, _)| *stream == wanted);
            lines.map(|(_, line)| line.clone()).collect()
        };
        Outcome {
            status: status
                .code()
                .or_else(|| status.signal().map(|signal| 128 + signal))
                .unwrap(),
            stdout: of(Stream::Out),
            stderr: of(Stream::Err),
        }
    }

    fn read_to_end(&mut self, deadline: Instant) -> Result<(), RecvTimeoutError> {
        loop {
            match self.next_line(deadline) {
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
                Err(timeout) => return Err(timeout),
            }
        }
    }

    /// Has the job tell what it waits for, and fails the test.
    fn give_up(&mut self, why: &str) -> ! {
        let _ = kill_process(self.launcher(), Signal::USR1);
        let _ = self.read_to_end(Instant::now() + Duration::from_secs(3));
        panic!("{why}; said so far: {:#?}", self.said);
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        // Its ranks die with it.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// `tagwire run -n RANKS OPTIONS --`, for a program to follow.
pub fn run_line(ranks: u32, options: &[&str]) -> Line {
    Line::new(["run", "-n", &ranks.to_string()])
        .args(options)
        .args(["--"])
}

/// Waits until `done` holds.
pub fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "{what}: not in time");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether libfabric is here with plain sockets in it. Where not, it says so, loudly.
pub fn has_libfabric(test: &str) -> bool {
    has(test, "ofi:tcp;ofi_rxm")
}

/// Whether a transport of a library can be used here. Where not, it says so, loudly.
pub fn has(test: &str, transport: &str) -> bool {
    let found = works(transport);
    if !found {
        eprintln!("SKIPPED: {test} needs {transport}");
    }
    found
}

/// Whether a transport can be used on this machine. A program asks once: the answer takes a look at each device.
fn works(transport: &str) -> bool {
    static FOUND: Mutex<BTreeMap<String, bool>> = Mutex::new(BTreeMap::new());
    let mut found = FOUND.lock().unwrap();
    if let Some(&known) = found.get(transport) {
        return known;
    }
    let outcome = Line::new(["info", "--why-not", transport]).finish();
    let told = format!("transport {transport}: ");
    let mut answers = outcome.stdout.iter();
    let answer = answers.find_map(|line| line.strip_prefix(&told));
    let works = answer.is_some_and(|answer| answer.starts_with("works"));
    found.insert(transport.to_owned(), works);
    works
}

/// Returns a library of a Python wheel; `None`, said loudly, where it is not installed.
pub fn wheel(test: &str, package: &str, file: &str) -> Option<PathBuf> {
    let found = wheels::wheel(package, file);
    if found.is_none() {
        eprintln!("SKIPPED: {test} needs `ci/peers {package}`");
    }
    found
}
