//! Why the command ends without success, and with which exit status.

use std::fmt::Display;
use std::io::Write;
use std::process::ExitCode;

/// What the exit statuses mean that this command gives itself.
pub mod status {
    /// All went well.
    pub const GOOD: u8 = 0;
    /// The command line or the environment asks for something that cannot be.
    pub const USAGE: u8 = 1;
    /// What was asked for did not work.
    pub const RUN_FAILED: u8 = 2;
    /// A bound was violated.
    pub const VIOLATED: u8 = 4;
    /// What was asked about cannot be used here.
    pub const UNUSABLE: u8 = 5;
}

/// An end without success: one line for the user, and the exit status.
#[derive(Debug)]
pub struct Failure {
    status: u8,
    message: String,
}

impl Failure {
    /// What was asked for cannot be.
    pub fn usage(message: impl Display) -> Self {
        Self::with_status(status::USAGE, message)
    }

    /// What was asked for did not work.
    pub fn run(message: impl Display) -> Self {
        Self::with_status(status::RUN_FAILED, message)
    }

    /// The same, as an end of a command that runs nothing: whatever it lacks is the caller's to mend.
    pub fn into_usage(self) -> Self {
        Self {
            status: status::USAGE,
            ..self
        }
    }

    /// An end with a status that someone else chose.
    pub fn with_status(status: u8, message: impl Display) -> Self {
        Self {
            status,
            message: message.to_string(),
        }
    }

    /// Tells the user, and the exit status. Whether anybody reads standard error changes nothing.
    pub fn report(&self) -> ExitCode {
        self.report_as("tagwire")
    }

    /// The same, where this command was called by another name: there `run` is no word of the user's.
    pub fn report_as(&self, name: &str) -> ExitCode {
        let message = match name {
            "tagwire" => &self.message,
            _ => self.message.trim_start_matches("run: "),
        };
        let message = tagwire_bench::visible::text(message);
        let _ = writeln!(std::io::stderr(), "{name}: {message}");
        ExitCode::from(self.status)
    }
}

/// Bad settings are bad usage; nothing else in `base` is the user's doing.
impl From<tagwire_base::Error> for Failure {
    fn from(error: tagwire_base::Error) -> Self {
        match error {
            tagwire_base::Error::UnknownSetting { .. } | tagwire_base::Error::BadSetting { .. } => {
                Self::usage(error)
            }
            _ => Self::run(error),
        }
    }
}

impl From<tagwire_launch::Error> for Failure {
    fn from(error: tagwire_launch::Error) -> Self {
        let status = u8::try_from(error.exit_status()).unwrap_or(status::RUN_FAILED);
        Self::with_status(status, error)
    }
}
