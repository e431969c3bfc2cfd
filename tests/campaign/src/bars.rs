//! The bars of the campaign: how often what is tried, at least.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::campaign::{REPEATS, logged, trials_of};
use crate::deadline::Deadline;
use crate::disturbances;
use crate::grounds;
use crate::hostile;
use crate::plan::Choice;
use crate::record::{Line, Record, Verdict, read};

/// Blows that are to be struck: kills, and cables that are pulled.
const BLOWS: [(&str, u64); 4] = [("kill", 1000), ("flap", 80), ("cut", 80), ("sever", 40)];
/// Blows of each disturbance that has no bar of its own, in trials of all that seeds draw.
const MIXED: u64 = 25;
/// Messages of a flood from each rank, once on each ground.
const FLOOD: u64 = 1_000_000;
/// Packets of hostile members, over all targets.
const PACKETS: u64 = 100_000_000;

/// How the bars are run.
#[derive(Debug, Clone, clap::Args)]
pub struct BarsOptions {
    /// Append a line of JSON for each trial to this file, and go on behind those that it has of this build on this machine
    #[arg(long, value_name = "FILE")]
    pub log: PathBuf,
    /// Begin nothing after so many seconds
    #[arg(long, value_name = "SECONDS")]
    pub seconds: Option<u64>,
    /// Have so many of a thousand of everything
    #[arg(long, default_value_t = 1000, value_name = "MILLE")]
    pub share: u64,
    /// These alone: drivers of different ones can run side by side, each with a log of its own
    #[arg(long, value_name = "BAR", value_delimiter = ',', value_parser = clap::builder::PossibleValuesParser::new(names()))]
    pub only: Vec<String>,
}

impl BarsOptions {
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|one| one == name)
    }
}

/// What trials of all that seeds draw are called, and what all floods are.
const MIX: &str = "mix";
const FLOODS: &str = "flood";

/// Returns what bars are called: blows, the mix, floods, and those whom hostile members send to.
fn names() -> impl Iterator<Item = &'static str> {
    let targets = hostile::ALL.iter().map(|target| target.name());
    let blows = BLOWS.into_iter().map(|(name, _)| name);
    blows.chain([MIX, FLOODS]).chain(targets)
}

/// Trials of a choice, until something has been counted in them so often.
struct Bar {
    name: &'static str,
    what: String,
    choice: Choice,
    wanted: u64,
    counts: Counts,
}

/// What of trials counts. One that could not be run brings nothing.
enum Counts {
    Trials,
    /// The blows of a disturbance.
    Blows(&'static str),
    /// Those of the disturbance with the fewest, of those without a bar of their own.
    Least,
}

impl Bar {
    /// Returns how much trials have brought.
    fn count<'a>(&self, records: impl Iterator<Item = &'a Record>) -> u64 {
        let ran: Vec<_> = records
            .filter(|record| record.verdict != Verdict::Void)
            .collect();
        let blows = |name: &str| ran.iter().map(|record| record.blows_of(name)).sum();
        match self.counts {
            Counts::Trials => ran.len() as u64,
            Counts::Blows(name) => blows(name),
            Counts::Least => mixed().map(blows).min().unwrap_or_default(),
        }
    }
}

/// Returns the disturbances without a bar of their own.
fn mixed() -> impl Iterator<Item = &'static str> {
    let all = disturbances::ALL.iter().map(|one| one.name());
    all.filter(|name| BLOWS.iter().all(|(other, _)| other != name))
}

/// Returns the bars that take trials, a share of them in a thousand.
fn bars(share: u64) -> Vec<Bar> {
    let blows = BLOWS.map(|(name, wanted)| Bar {
        name,
        what: format!("blows of {name}"),
        choice: Choice {
            disturbance: Some(name.to_owned()),
            ..Choice::default()
        },
        wanted: (wanted * share).div_ceil(1000),
        counts: Counts::Blows(name),
    });
    let mix = Bar {
        name: MIX,
        what: "blows of each other disturbance".to_owned(),
        choice: Choice::default(),
        wanted: (MIXED * share).div_ceil(1000),
        counts: Counts::Least,
    };
    let floods = grounds::ALL.iter().map(|ground| Bar {
        name: FLOODS,
        what: format!("floods on {}", ground.name()),
        choice: Choice {
            ground: Some(ground.name().to_owned()),
            program: Some(FLOODS.to_owned()),
            // What leaves all ranks alive.
            disturbance: Some("stop".to_owned()),
            flood: Some((FLOOD * share).div_ceil(1000)),
        },
        wanted: 1,
        counts: Counts::Trials,
    });
    blows.into_iter().chain([mix]).chain(floods).collect()
}

/// Runs what the log lacks. Returns how many bars are not reached, and how many finds there were.
///
/// # Errors
/// When the log cannot be read or written.
pub fn run(options: &BarsOptions) -> Result<(usize, usize), String> {
    let deadline = Deadline::after(options.seconds);
    let (mut short, mut finds) = (0, 0);
    let wanted = bars(options.share)
        .into_iter()
        .filter(|bar| options.wants(bar.name));
    for bar in wanted {
        let mut known = trials_of(&read(&options.log)?, &bar.choice);
        let sum = |known: &BTreeMap<u64, Record>| bar.count(known.values());
        let is_void = |record: &&Record| record.verdict == Verdict::Void;
        let mut voids = known.values().filter(is_void).count();
        for seed in 0.. {
            // What cannot be run here never can. Of all that seeds draw some always can.
            let never = voids > VOIDS && bar.name != MIX;
            if sum(&known) >= bar.wanted || deadline.is_over() || never {
                break;
            }
            if known.contains_key(&seed) {
                continue;
            }
            let record = logged(seed, &bar.choice, REPEATS, Some(&options.log))?;
            voids += usize::from(record.verdict == Verdict::Void);
            known.insert(seed, record);
        }
        let found = known
            .values()
            .filter(|record| record.verdict == Verdict::Find);
        let found = found.count();
        finds += said(&bar.what, sum(&known), bar.wanted, found, &mut short);
    }
    let each = (PACKETS * options.share).div_ceil(1000 * hostile::ALL.len() as u64);
    let targets = hostile::ALL
        .iter()
        .filter(|target| options.wants(target.name()));
    for target in targets {
        hostile::go_on(*target, 0, each, Some(&options.log), deadline)?;
        let lines = read(&options.log)?;
        let (_, packets) = hostile::known(&lines, *target, 0);
        let of_it = lines.iter().filter_map(|line| match line {
            Line::Hostile(record) if record.hostile == target.name() => Some(record.why.len()),
            _ => None,
        });
        let what = format!("packets to {}", target.name());
        finds += said(&what, packets, each, of_it.sum(), &mut short);
    }
    Ok((short, finds))
}

/// Says how far a bar is. Returns its finds.
fn said(what: &str, is: u64, wanted: u64, finds: usize, short: &mut usize) -> usize {
    println!("{what}: {is} of {wanted}, {finds} finds");
    *short += usize::from(is < wanted);
    finds
}

/// After so many trials that could not be run a bar is left.
const VOIDS: usize = 3;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_trials_that_count_for_them() {
        for bar in bars(1000) {
            // Of what seeds draw at all each disturbance has a blow in a few hundred.
            let seeds = if bar.name == MIX { 0..400 } else { 3..4 };
            let records = seeds.map(|seed| {
                let plan = crate::plan::Plan::of(seed, &bar.choice).unwrap();
                let mut record = crate::record::tests::record();
                record.blows = plan.job.blows.iter().map(ToString::to_string).collect();
                record
            });
            let mut records: Vec<_> = records.collect();
            assert!(bar.count(records.iter()) > 0, "{}", bar.what);
            for record in &mut records {
                record.verdict = Verdict::Void;
            }
            assert_eq!(bar.count(records.iter()), 0, "{}", bar.what);
        }
    }

    #[test]
    fn each_bar_can_be_had_alone() {
        let of = |only: &[&str]| BarsOptions {
            log: PathBuf::new(),
            seconds: None,
            share: 1000,
            only: only.iter().map(|&name| name.to_owned()).collect(),
        };
        for name in names() {
            let wanted: Vec<_> = names().filter(|other| of(&[name]).wants(other)).collect();
            assert_eq!(wanted, [name]);
            assert!(of(&[]).wants(name));
        }
        for bar in bars(1000) {
            assert!(names().any(|name| name == bar.name), "{}", bar.what);
        }
    }

    #[test]
    fn cuts_are_two_hundred() {
        let cuts = BLOWS.iter().filter(|(name, _)| *name != "kill");
        assert_eq!(cuts.map(|(_, wanted)| wanted).sum::<u64>(), 200);
    }
}
