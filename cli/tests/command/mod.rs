//! Runs the `tagwire` command as a user does.

use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

/// A command line of `tagwire`, in an environment without settings.
pub struct Tagwire(Command);

/// How a command ended.
#[derive(Debug)]
pub struct Outcome {
    /// The exit status; 128 + n after signal n.
    pub status: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// The command of this build.
pub fn tagwire() -> Tagwire {
    Tagwire::of(Command::new(env!("CARGO_BIN_EXE_tagwire")))
}

// Each file of tests uses some of these.
impl Tagwire {
    /// A program that is the command too.
    pub fn of(mut command: Command) -> Self {
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("TAGWIRE_") {
                command.env_remove(name);
            }
        }
        command.stdin(Stdio::null());
        Self(command)
    }

    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.0.arg(argument);
        self
    }

    pub fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        self.0.args(arguments);
        self
    }

    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.0.env(name, value);
        self
    }

    /// Reads standard input from a file.
    pub fn stdin_from(mut self, path: &Path) -> Self {
        self.0.stdin(std::fs::File::open(path).unwrap());
        self
    }

    /// Sends standard output to a file.
    pub fn stdout_to(mut self, path: &Path) -> Self {
        let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
        self.0.stdout(file);
        self
    }

    /// Gives standard output to a pipe that nobody reads.
    pub fn stdout_closed(mut self) -> Self {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        self.0.stdout(writer);
        self
    }

    /// Gives standard error to a pipe that nobody reads.
    pub fn stderr_closed(mut self) -> Self {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        self.0.stderr(writer);
        self
    }

    pub fn outcome(mut self) -> Outcome {
        use std::os::unix::process::ExitStatusExt;
        let output = self.0.output().unwrap();
        let status = output.status;
        Outcome {
            status: status
                .code()
                .or_else(|| status.signal().map(|signal| 128 + signal))
                .unwrap(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}
