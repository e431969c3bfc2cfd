//! Tools of peers as carriers: what `ucx_perftest` and fabtests end with becomes a row. A tool is a server and a client, each a
//! process on the CPU of one of two ranks.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use tagwire_launch::{JobSpec, Part};

use crate::args::tool::{FABTESTS, TOOL, Tool, UCX};
use crate::args::{BenchArgs, usage};
use crate::error::{Error, Result};
use crate::jobs::{Jobs, Reported, judge_part};
use crate::link::Message;
use crate::plan::Plan;
use crate::record::{Figures, Quantity, Row, Sampling, Series};

/// A tool, what of our tests it has, the program with its own arguments, and the figure.
struct Measure(&'static str, &'static str, &'static str, Figure);

/// A figure, its column in the last line of numbers, and what its unit is in ours.
#[derive(Clone, Copy)]
struct Figure(Quantity, usize, f64);

/// Overall averages of `ucx_perftest`, whose megabytes are 2^20 bytes; and what a transfer of fabtests takes.
const LATENCY: Figure = Figure(Quantity::LATENCY, 3, 1.0);
const BANDWIDTH: Figure = Figure(Quantity::BANDWIDTH, 5, 1.048_576);
const RATE: Figure = Figure(Quantity::RATE, 7, 1.0);
const TRANSFER: Figure = Figure(Quantity::LATENCY, 5, 1.0);

const MEASURES: [Measure; 8] = [
    Measure(UCX, "latency", "ucx_perftest -t tag_lat", LATENCY),
    Measure(UCX, "bandwidth", "ucx_perftest -t tag_bw", BANDWIDTH),
    Measure(UCX, "message-rate", "ucx_perftest -t tag_bw", RATE),
    Measure(UCX, "get", "ucx_perftest -t ucp_get", LATENCY),
    Measure(UCX, "put", "ucx_perftest -t ucp_put_lat", LATENCY),
    Measure(FABTESTS, "latency", "fi_rdm_tagged_pingpong", TRANSFER),
    Measure(FABTESTS, "get", "fi_rma_bw -o read -W 1", TRANSFER),
    Measure(FABTESTS, "put", "fi_rma_bw -o write -W 1", TRANSFER),
];

/// Runs a client until its server listens.
const CLIENT: &str =
    r#"tries=0; until "$@"; do tries=$((tries + 1)); [ $tries -lt 50 ] || exit 1; sleep 0.1; done"#;

/// After what time a tool is ended, where the command does not say.
const TIMEOUT: Duration = Duration::from_secs(60);

impl Measure {
    fn program(&self) -> &'static str {
        self.2.split(' ').next().unwrap_or_default()
    }
}

impl Tool {
    /// Returns the library that the tool measures, with its version.
    ///
    /// # Errors
    /// [`Error::Usage`] where it has nothing for the test and its options; [`Error::NotFound`] where it is not installed.
    pub(crate) fn library(&self, args: &BenchArgs) -> Result<String> {
        self.measure(args.test.name)?;
        let has_more =
            args.raw || args.layers || args.profile || args.validate || args.memory.is_some();
        let has_more =
            has_more || args.posted.is_some() || args.unexpected.is_some() || args.window.is_some();
        if has_more
            || args.percentiles.is_some()
            || args.thread_count() > 1
            || args.rank_count() != 2
        {
            return usage(format!(
                "'{self}' has two ranks of one thread, sizes and iterations, and none of the other options"
            ));
        }
        if args.side_of_two().is_some() {
            return usage(format!(
                "--listen and --connect are for our own transports; '{self}' connects by itself"
            ));
        }
        let (library, program, option) = match &*self.name {
            UCX => ("UCX", "ucx_info", "-v"),
            _ => ("libfabric", "fi_info", "--version"),
        };
        let program = self.program(program);
        let said = Command::new(&program)
            .arg(option)
            .envs(self.variables())
            .output();
        let said = said.map_err(|error| {
            let program = program.display();
            Error::NotFound(format!(
                "'{self}': {program}: {error}; say where it is installed: {TOOL}:{}@PREFIX",
                self.name
            ))
        })?;
        let said = String::from_utf8_lossy(&said.stdout);
        let number = |word: &&str| word.starts_with(|letter: char| letter.is_ascii_digit());
        let version = said.split_whitespace().find(number).unwrap_or("unknown");
        Ok(format!("{library} {version}, {}", self.name))
    }

    /// Returns the program that measures a test.
    pub(crate) fn file(&self, args: &BenchArgs) -> Option<String> {
        let measure = self.measure(args.test.name).ok()?;
        Some(self.program(measure.program()).display().to_string())
    }

    fn program(&self, name: &str) -> PathBuf {
        let prefix = self.prefix.as_ref();
        prefix.map_or_else(|| name.into(), |prefix| prefix.join("bin").join(name))
    }

    fn measure(&self, test: &str) -> Result<&'static Measure> {
        let of_tool = || MEASURES.iter().filter(|measure| measure.0 == self.name);
        of_tool().find(|measure| measure.1 == test).map_or_else(
            || {
                let tests: Vec<_> = of_tool().map(|measure| measure.1).collect();
                usage(format!(
                    "'{self}' has no {test}; it has {}",
                    tests.join(", ")
                ))
            },
            Ok,
        )
    }

    fn variables(&self) -> Vec<(&'static str, String)> {
        let mut variables = vec![("UCX_WARN_UNUSED_ENV_VARS", "n".to_owned())];
        if let (Some(detail), UCX) = (&self.detail, &*self.name) {
            variables.push(("UCX_TLS", detail.clone()));
        }
        let libraries = self.prefix.as_ref().map(|prefix| prefix.join("lib"));
        variables.extend(libraries.map(|folder| ("LD_LIBRARY_PATH", folder.display().to_string())));
        variables
    }

    /// The arguments of a server, and those of a client.
    fn arguments(&self, measure: &Measure, port: u16, plan: &Plan, size: u64) -> [String; 2] {
        let (_, own) = measure.2.split_once(' ').unwrap_or_default();
        let iterations = iterations_of(plan, size);
        let warmup = plan.warmup.map(|count| format!("-w {count}"));
        let warmup = warmup.unwrap_or_default();
        if self.name == UCX {
            let server = format!("-p {port}");
            let client = format!("{server} 127.0.0.1 -s {size} -n {iterations} -f {own} {warmup}");
            return [server, client];
        }
        let provider = self.detail.as_ref().map(|detail| format!("-p {detail}"));
        let provider = provider.unwrap_or_default();
        let server = format!("-E={port} -S {size} -I {iterations} {own} {warmup} {provider}");
        [server.clone(), server + " 127.0.0.1"]
    }

    /// Measures the sizes of a plan, one after the other; `take` gets a row for each.
    pub(crate) fn run(
        &self,
        library: Option<&String>,
        jobs: &Jobs<'_>,
        plan: &Plan,
        mut take: impl FnMut(Message) -> Result<()>,
    ) -> Result<()> {
        let measure = self.measure(plan.test.name)?;
        for &size in &plan.sizes {
            let said = self.said(measure, jobs, plan, size)?;
            let Figure(quantity, column, factor) = measure.3;
            let value = figure(&said, column).ok_or_else(|| {
                let last = said.lines().last().unwrap_or_default();
                Error::Job(format!("'{self}' ended without figures: {last}"))
            })?;
            let mut figures = Figures::default();
            figures.set(quantity.key(), value * factor);
            let series = Series {
                transport: self.to_string(),
                library: library.cloned(),
                ranks: 2,
                ..Series::default()
            };
            let row = Row {
                size,
                series,
                sampling: Sampling {
                    launch: Some(plan.launch),
                    iterations: iterations_of(plan, size),
                    repetitions: 1,
                    ..Sampling::default()
                },
                figures,
                ..Row::default()
            };
            take(Message::Row(Box::new(row)))?;
        }
        Ok(())
    }

    /// Runs a server and its client to their ends, and returns what the client has said.
    fn said(&self, measure: &Measure, jobs: &Jobs<'_>, plan: &Plan, size: u64) -> Result<String> {
        let system = |error| Error::system("run a tool", error);
        let free = TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr());
        let port = free.map_err(system)?.port();
        let folder = tempfile::tempdir().map_err(system)?;
        let [server, client] = self.arguments(measure, port, plan, size);
        let program = self.program(measure.program());
        let variables = self.variables().into_iter();
        let env: Vec<_> = variables
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        let mut spec = JobSpec::new(1, &program);
        spec.args = server.split_whitespace().map(Into::into).collect();
        spec.env.clone_from(&env);
        let mut args: Vec<_> = ["-c", CLIENT, "sh"].map(Into::into).into();
        args.push(program.into());
        args.extend(client.split_whitespace().map(Into::into));
        spec.others = vec![Part {
            ranks: 1,
            program: "sh".into(),
            args,
            env,
            directory: None,
        }];
        spec.binding = jobs.placement.binding();
        spec.timeout = jobs.args.timeout.or(Some(TIMEOUT));
        spec.output = Some(folder.path().to_owned());
        spec.quiet = true;
        let timeout = spec.timeout;
        let ended = tagwire_launch::run(spec)?;
        let said = |rank| fs::read_to_string(folder.path().join(format!("rank-{rank}.txt")));
        match judge_part(&ended, &Reported::default(), timeout) {
            Ok(()) => said(1).map_err(system),
            Err(Error::Job(reason)) => {
                let said = [said(0), said(1)].map(Result::unwrap_or_default);
                let last = said
                    .iter()
                    .find_map(|said| said.lines().rfind(|line| !line.trim().is_empty()));
                Err(Error::Job(format!(
                    "'{self}': {reason}: {}",
                    last.unwrap_or_default()
                )))
            }
            Err(error) => Err(error),
        }
    }
}

/// How often a tool sends: as was said, else for about as long at every size.
fn iterations_of(plan: &Plan, size: u64) -> u64 {
    let own = || ((2 << 30) / size.max(1)).clamp(500, 300_000);
    plan.iterations.unwrap_or_else(own)
}

/// The figure of a column in the last line that is numbers alone.
fn figure(said: &str, column: usize) -> Option<f64> {
    let begins = |line: &&str| {
        line.trim_start()
            .starts_with(|letter: char| letter.is_ascii_digit())
    };
    let mut words = said.lines().rfind(begins)?.split_whitespace();
    words.nth(column)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_numbers_has_the_figure() {
        let ucx = "+---+\n|   Test  |\n   20000   0.161   6.200   6.201   1.23   1.24   161293   161294\n";
        let figures = [LATENCY, BANDWIDTH, RATE].map(|it| figure(ucx, it.1));
        assert_eq!(figures, [6.201, 1.24, 161_294.0].map(Some));
        let fabtest = "bytes   iters   total   time   MB/sec   usec/xfer   Mxfers/sec\n8   20k   312k   0.12s   2.60   3.07   0.33\n";
        assert_eq!(figure(fabtest, TRANSFER.1), Some(3.07));
        for none in ["", "connect: refused\n", "20000 0.1\n"] {
            assert_eq!(figure(none, 3), None);
        }
    }

    #[test]
    fn names_have_a_prefix_and_a_detail() {
        let tool: Tool = "ucx_perftest@/opt/ucx:tcp,self".parse().unwrap();
        assert_eq!(tool.to_string(), "tool:ucx_perftest:tcp,self");
        assert_eq!(
            tool.program("ucx_info"),
            PathBuf::from("/opt/ucx/bin/ucx_info")
        );
        let tls = ("UCX_TLS", "tcp,self".to_owned());
        assert!(tool.variables().contains(&tls));
        let tool: Tool = "fabtests:tcp;ofi_rxm".parse().unwrap();
        assert_eq!(tool.program("fi_info"), PathBuf::from("fi_info"));
        assert_eq!(tool.to_string(), "tool:fabtests:tcp;ofi_rxm");
        let error = tool.measure("barrier").err().unwrap().to_string();
        assert!(
            error.ends_with("has no barrier; it has latency, get, put"),
            "{error}"
        );
        assert!(
            "osu:tcp"
                .parse::<Tool>()
                .unwrap_err()
                .contains("'fabtests'")
        );
    }
}
