//! What the tests of the launcher share: a launcher that is a process of its own.

#![allow(dead_code, reason = "each test binary uses its part")]
#![allow(clippy::unwrap_used, reason = "helpers of tests are tests")]

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

/// No test is to take this long, however busy the machine is.
pub const LONG: Duration = Duration::from_secs(60);

/// An example of this crate, which cargo builds beside its tests.
pub fn example(name: &str) -> PathBuf {
    let mut path = std::env::current_exe().unwrap();
    path.pop();
    path.pop();
    path.push("examples");
    path.push(name);
    assert!(
        path.exists(),
        "{} is not built: test the whole package",
        path.display()
    );
    path
}

/// A launcher with `options`, and `program` as what it runs.
pub fn launcher<S: AsRef<OsStr>>(options: &[&str], program: &[S]) -> Command {
    let mut command = Command::new(example("launcher"));
    command.args(options).arg("--").args(program);
    command
}

/// A launcher that runs the member example with `deed`.
pub fn members(options: &[&str], deed: &str) -> Command {
    launcher(options, &[example("member").as_os_str(), OsStr::new(deed)])
}

/// A launcher that runs a shell script.
pub fn script(options: &[&str], script: &str) -> Command {
    launcher(options, &["sh", "-c", script])
}

/// Runs a launcher to its end.
pub fn run(mut command: Command) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    (status.code().unwrap_or(-1), text(stdout), text(stderr))
}

/// A launcher in the background.
pub struct Background {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Background {
    /// Starts `command` with every signal at its default, whatever these tests were started with:
    /// shells have what they put into the background ignore some.
    pub fn start(command: Command) -> Self {
        let mut child = Command::new("env")
            .args(["--default-signal", "--"])
            .arg(command.get_program())
            .args(command.get_args())
            .envs(
                command
                    .get_envs()
                    .filter_map(|(key, value)| Some((key, value?))),
            )
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        Self { child, lines }
    }

    /// The next line of its output.
    pub fn line(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(
            self.lines.read_line(&mut line).unwrap(),
            0,
            "the output ended"
        );
        line.trim_end().to_owned()
    }

    /// The next `count` lines, each a process id.
    pub fn pids(&mut self, count: usize) -> Vec<u32> {
        (0..count).map(|_| self.line().parse().unwrap()).collect()
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: Signal) {
        rustix::process::kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the launcher's end; its status, the rest of its output and its error output.
    pub fn end(mut self) -> (ExitStatus, String, String) {
        let (mut out, mut err) = (String::new(), String::new());
        self.lines.read_to_string(&mut out).unwrap();
        self.child
            .stderr
            .take()
            .unwrap()
            .read_to_string(&mut err)
            .unwrap();
        (self.child.wait().unwrap(), out, err)
    }
}

/// A test that fails leaves nothing running: the job dies with its launcher.
impl Drop for Background {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until `condition` holds.
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let until = Instant::now() + LONG;
    while !condition() {
        assert!(Instant::now() < until, "never came true: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// The state of a process, as its stat line has it; `None` when there is no such process.
pub fn state_of(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Whether a process runs: a zombie does not.
pub fn runs(pid: u32) -> bool {
    !matches!(state_of(pid), None | Some('Z' | 'X'))
}

pub fn wait_until_gone(pids: &[u32]) {
    wait_until("all processes are gone", || {
        !pids.iter().any(|&pid| runs(pid))
    });
}
