//! The options of `tagwire sim`.

use std::time::Duration;

use clap::Args;
use tagwire_sim::presets::{self, Preset};
use tagwire_sim::{Kill, Machine, Schedule, SimOptions, Trace};

use crate::apps::{App, Case, app};
use crate::job::Pml;
use crate::programs::{Arguments, PROGRAMS, Program, program};

/// What `tagwire sim` is asked for.
#[derive(Debug, Clone, Args)]
pub struct SimArgs {
    /// What the ranks do, or 'list' for the programs and the machines, or 'predict': measures two ranks here, and compares what programs
    /// take here with what they take on a machine of these parameters
    #[arg(value_name = "PROGRAM")]
    pub program: String,

    /// How many ranks [default: 64; 2 with 'predict'; those of the paper with skeletons of applications]
    #[arg(short = 'n', long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub ranks: Option<u32>,

    /// Which layer sends messages
    #[arg(short, long, value_enum, default_value_t = Pml::Ob1)]
    pub pml: Pml,

    /// What is measured, several by commas (predict)
    #[arg(
        short,
        long,
        value_name = "NAME",
        value_delimiter = ',',
        default_value = "shm,ofi:tcp"
    )]
    pub transport: Vec<String>,

    /// The machine: a name of 'list', or a file with a line for each value
    #[arg(long, value_name = "NAME|FILE", default_value = "niagara")]
    pub preset: String,

    /// Ranks on each node [default: what the machine says; 1]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub ranks_per_node: Option<u32>,

    /// Names the run: decides what comes first of what is at one moment, and how late messages are
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub seed: u64,

    /// How often each rank does what its program does
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub rounds: u32,

    /// Bytes of each message
    #[arg(short = 'm', long, value_name = "BYTES", default_value = "8", value_parser = parse_bytes)]
    pub bytes: usize,

    /// What each rank computes in a round, on a core of its node [default: 0us; skeletons of applications have their own]
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub compute: Option<Duration>,

    /// By how many percent ranks differ in that, as a standard deviation (skeletons of applications, which have their own)
    #[arg(long, value_name = "PCT", value_parser = parse_percent)]
    pub imbalance: Option<f64>,

    /// By how many percent times of one rank do (the same)
    #[arg(long, value_name = "PCT", value_parser = parse_percent)]
    pub jitter: Option<f64>,

    /// Messages are late by up to this, as the seed says
    #[arg(long, value_name = "TIME", value_parser = parse_time, default_value = "0us")]
    pub delay: Duration,

    /// Messages that are late may be overtaken by others of their sender
    #[arg(long)]
    pub reorder: bool,

    /// A file for a picture of the last packets: who sent to whom, and who waited for whom (SVG)
    #[arg(long, value_name = "FILE")]
    pub picture: Option<std::path::PathBuf>,

    /// A file for what was measured and what was simulated, with the machine and the commit (JSON, predict)
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<std::path::PathBuf>,

    /// A rank that dies, and when; several times for several
    #[arg(long, value_name = "RANK@TIME", value_parser = parse_kill)]
    pub kill: Vec<Kill>,
}

/// Reads a time with its unit.
fn parse_time(text: &str) -> Result<Duration, String> {
    let units = [("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0)];
    let unit = units.iter().find(|(unit, _)| text.ends_with(unit));
    let number = unit.and_then(|(unit, _)| text.strip_suffix(unit)?.trim_end().parse().ok());
    let seconds = number
        .zip(unit)
        .map(|(number, (_, size)): (f64, _)| number * size);
    let seconds = seconds.filter(|seconds| (0.0..=3600.0).contains(seconds));
    let time = seconds.map(Duration::from_secs_f64);
    time.ok_or_else(|| "a time of up to an hour has a unit: ns, us, ms or s".to_owned())
}

/// Reads a size of up to 1 GiB.
fn parse_bytes(text: &str) -> Result<usize, String> {
    let bytes = tagwire_base::config::parse::bytes(text)?;
    let most = usize::try_from(bytes)
        .ok()
        .filter(|bytes| *bytes <= 1 << 30);
    most.ok_or_else(|| "a message has up to 1 GiB".to_owned())
}

fn parse_percent(text: &str) -> Result<f64, String> {
    let percent = text.parse().ok().filter(|pct| (0.0..=1000.0).contains(pct));
    percent.ok_or_else(|| "a number of percent, up to 1000".to_owned())
}

fn parse_kill(text: &str) -> Result<Kill, String> {
    let (rank, at) = text.split_once('@').ok_or("as in '3@20us'")?;
    Ok(Kill {
        rank: rank.parse().map_err(|_| format!("'{rank}' is no rank"))?,
        at: parse_time(at)?,
    })
}

impl SimArgs {
    /// Returns how many ranks a program has.
    pub(crate) fn rank_count(&self) -> u32 {
        let own = app(&self.program).map_or(64, |app| app.ranks);
        self.ranks.unwrap_or(own)
    }

    /// Returns the program.
    ///
    /// # Errors
    /// When there is none of that name.
    pub(crate) fn program(&self) -> Result<&'static Program, String> {
        program(&self.program).ok_or_else(|| {
            let names: Vec<_> = PROGRAMS.iter().map(|program| program.name).collect();
            format!(
                "'{}' is no program; there are {}",
                self.program,
                names.join(", ")
            )
        })
    }

    /// Returns the machine, with the ranks on its nodes.
    ///
    /// # Errors
    /// When there is none of that name, or the file cannot be read.
    pub(crate) fn machine(&self) -> Result<Machine, String> {
        let named = presets::preset(&self.preset).map(|preset: &Preset| preset.machine);
        let mut machine = match named {
            Some(machine) => machine,
            None => self.machine_of_file()?,
        };
        if let Some(ranks) = self.ranks_per_node {
            machine.ranks_per_node = ranks;
        }
        Ok(machine)
    }

    fn machine_of_file(&self) -> Result<Machine, String> {
        let path = &self.preset;
        let text = std::fs::read_to_string(path).map_err(|error| {
            let names: Vec<_> = presets::PRESETS.iter().map(|preset| preset.name).collect();
            format!(
                "'{path}' is no machine ({}) and no file: {error}",
                names.join(", ")
            )
        })?;
        Machine::from_text(&text).map_err(|error| format!("{path}: {error}"))
    }

    /// Returns the network.
    ///
    /// # Errors
    /// As [`machine`](Self::machine); when a rank is to die that there is not.
    pub(crate) fn options(&self) -> Result<SimOptions, String> {
        let ranks = self.rank_count();
        if let Some(kill) = self.kill.iter().find(|kill| kill.rank >= ranks) {
            return Err(format!("--kill: rank {} of {} ranks", kill.rank, ranks));
        }
        Ok(SimOptions {
            schedule: Schedule {
                seed: self.seed,
                shuffle: true,
                delay: self.delay,
                reorder: self.reorder,
                kills: self.kill.clone(),
            },
            trace: self.picture.as_ref().map(|_| Trace::default()),
            ..SimOptions::of(self.machine()?)
        })
    }

    /// Returns what the program is told.
    pub(crate) const fn arguments(&self) -> Arguments {
        Arguments {
            rounds: self.rounds,
            bytes: self.bytes,
            compute: match self.compute {
                Some(time) => time,
                None => Duration::ZERO,
            },
        }
    }

    /// Returns the skeleton of an application that is asked for, and how it is to run; `None` where it is a program.
    pub fn app(&self) -> Option<(&'static App, Case)> {
        let app = app(&self.program)?;
        let case = Case {
            ranks: self.ranks.unwrap_or(app.ranks),
            steps: self.rounds,
            compute: self.compute.unwrap_or(app.compute),
            imbalance: self.imbalance.unwrap_or(app.imbalance),
            jitter: self.jitter.unwrap_or(app.jitter),
            seed: self.seed,
        };
        Some((app, case))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(parse_time("1.5us"), Ok(Duration::from_nanos(1500)));
        assert_eq!(parse_time("0s"), Ok(Duration::ZERO));
        for text in ["1", "us", "-1us", "nans", "infs", "2h", "1e9s"] {
            assert!(parse_time(text).is_err(), "{text}");
        }
    }

    #[test]
    fn deaths_have_a_rank_and_a_time() {
        let kill = parse_kill("3@20us").unwrap();
        assert_eq!((kill.rank, kill.at), (3, Duration::from_micros(20)));
        for text in ["3", "x@1us", "3@1", "@"] {
            assert!(parse_kill(text).is_err(), "{text}");
        }
    }
}
