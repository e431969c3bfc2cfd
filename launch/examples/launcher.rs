//! A launcher of one page: `launcher [options] -- PROGRAM ARGS`. The tests start it as a process
//! of its own; `tagwire run` is the one for users.

use std::process::ExitCode;
use std::time::Duration;

use tagwire_base::Rank;
use tagwire_launch::{Error, JobSpec, OnFailure, Result, StdinPolicy, run};

fn main() -> ExitCode {
    match parse().and_then(run) {
        Ok(report) => {
            if std::env::var_os("LINGER").is_some() {
                println!("lingering");
                std::thread::sleep(Duration::from_secs(1000));
            }
            ExitCode::from(u8::try_from(report.exit_status).unwrap_or(u8::MAX))
        }
        Err(error) => {
            use std::io::Write;
            let _ = writeln!(std::io::stderr(), "tagwire: {error}");
            ExitCode::from(u8::try_from(error.exit_status()).unwrap_or(u8::MAX))
        }
    }
}

fn parse() -> Result<JobSpec> {
    let mut arguments = std::env::args_os().skip(1);
    let mut spec = JobSpec::new(1, "");
    while let Some(option) = arguments.next() {
        let mut value = || {
            let value = arguments.next().and_then(|value| value.into_string().ok());
            value.ok_or_else(|| Error::Usage("a value is missing".to_owned()))
        };
        match option.to_str().unwrap_or_default() {
            "-n" => spec.ranks = number(&value()?)?,
            "--bind" => spec.binding = value()?.parse()?,
            "--continue" => spec.on_failure = OnFailure::Continue,
            "--tag" => spec.tag_output = true,
            "--timeout-ms" => spec.timeout = Some(milliseconds(&value()?)?),
            "--grace-ms" => spec.grace = milliseconds(&value()?)?,
            "--stdin" => spec.stdin = reader(&value()?)?,
            "--" => {
                spec.program = arguments.next().unwrap_or_default();
                spec.args = arguments.collect();
                return Ok(spec);
            }
            other => return Err(Error::Usage(format!("unknown option '{other}'"))),
        }
    }
    Err(Error::Usage("no program after --".to_owned()))
}

fn reader(text: &str) -> Result<StdinPolicy> {
    match text {
        "all" => Ok(StdinPolicy::All),
        rank => Ok(StdinPolicy::Rank(Rank::new(number(rank)?))),
    }
}

fn number(text: &str) -> Result<u32> {
    text.parse()
        .map_err(|_| Error::Usage(format!("'{text}' is no number")))
}

fn milliseconds(text: &str) -> Result<Duration> {
    number(text).map(|number| Duration::from_millis(number.into()))
}
