//! Lists of engines and of what lies in the queues: each combination is a job over each transport.

use std::fmt;
use std::str::FromStr;

use tagwire_base::config::parse;
use tagwire_base::named::Spec;

use super::{BenchArgs, usage};
use crate::Host;
use crate::concurrent as callers;
use crate::error::Result;
use crate::position::Position;
use crate::sizes::{Sizes, SizesError};
use crate::spread::Spread;

/// Values of an option with commas between them, each with jobs of its own.
///
/// The values differ, and there is at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct List<T>(Vec<T>);

impl<T: Clone + PartialEq> List<T> {
    /// Returns the value of a command that has one.
    pub(crate) fn only(&self) -> T {
        self.0.first().expect("no list is empty").clone()
    }

    pub(crate) const fn has_several(&self) -> bool {
        self.0.len() > 1
    }

    /// Returns commands, each with one value in place of the list, which is at a place of each.
    fn each(all: Vec<BenchArgs>, place: fn(&mut BenchArgs) -> &mut Option<Self>) -> Vec<BenchArgs> {
        let of_one = |args: BenchArgs| {
            let mut args = args;
            match place(&mut args).take() {
                None => vec![args],
                Some(list) => {
                    let with = |one| {
                        let mut args = args.clone();
                        *place(&mut args) = Some(Self(vec![one]));
                        args
                    };
                    list.0.into_iter().map(with).collect()
                }
            }
        };
        all.into_iter().flat_map(of_one).collect()
    }

    /// Returns the list, unless a value is in it twice.
    fn of(all: Vec<T>, shown: impl Fn(&T) -> String) -> Result<Self, String> {
        let is_again = |place: &usize| all[..*place].contains(&all[*place]);
        match (0..all.len()).find(is_again) {
            Some(place) => Err(format!("{} is given twice", shown(&all[place]))),
            None => Ok(Self(all)),
        }
    }
}

/// Numbers of entries, and percents.
impl FromStr for List<u32> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let short = |number: u64| {
            let number = u32::try_from(number).ok();
            let number = number.filter(|number| *number <= LONGEST);
            number.ok_or_else(|| format!("expected numbers up to {LONGEST}, such as 0,16,1K"))
        };
        let mut all = Vec::new();
        for part in text.split(',') {
            // A range is one of sizes: 1:1K, 1:1K:x4, 16:64:+16.
            let numbers = match part.contains(':') {
                true => {
                    let range: Sizes = part
                        .parse()
                        .map_err(|error: SizesError| error.to_string())?;
                    range.as_slice().to_vec()
                }
                false => vec![parse::bytes(part).unwrap_or(u64::MAX)],
            };
            for number in numbers {
                all.push(short(number)?);
            }
        }
        Self::of(all, u32::to_string)
    }
}

impl FromStr for List<Position> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = text.split(',').map(str::parse).collect::<Result<_, _>>()?;
        Self::of(all, |one| format!("'{one}'"))
    }
}

impl FromStr for List<Spread> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = text.split(',').map(str::parse).collect::<Result<_, _>>()?;
        Self::of(all, |one| format!("'{one}'"))
    }
}

/// Matching engines by name, with parameters.
impl FromStr for List<String> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::of(Spec::parts(text), |one| format!("'{one}'"))
    }
}

/// As it is read.
impl<T: fmt::Display> fmt::Display for List<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.0.iter().map(T::to_string).collect();
        f.write_str(&all.join(","))
    }
}

impl BenchArgs {
    /// Returns the commands of the jobs over each transport, each with one engine and one length of a queue.
    pub(crate) fn by_queue(&self) -> Vec<Self> {
        let all = List::each(vec![self.clone()], |args| &mut args.engine);
        let all = List::each(all, |args| &mut args.posted);
        let all = List::each(all, |args| &mut args.unexpected);
        let all = List::each(all, |args| &mut args.wild);
        let all = List::each(all, |args| &mut args.position);
        List::each(all, |args| &mut args.spread)
    }

    /// Whether there are entries of other ranks than the two that play.
    pub(crate) fn has_sources(&self) -> bool {
        let spreads = self.spread.as_ref();
        spreads.is_some_and(|list| list.0.contains(&Spread::Sources))
    }

    pub(crate) fn has_engines(&self) -> bool {
        self.engine.as_ref().is_some_and(List::has_several)
    }

    /// Refuses lists where jobs differ otherwise.
    pub(super) fn check_queues(&self) -> Result<()> {
        let wild = self.wild.iter().flat_map(|list| &list.0);
        if let Some(more) = wild.copied().find(|percent| *percent > 100) {
            return usage(format!("--wild is in percent of the receives: not {more}"));
        }
        // Beside --unexpected, which excludes --posted, nothing else asks for it.
        if self.wild.is_some() && self.posted.is_none() {
            return usage("--wild is of the receives of --posted");
        }
        if self.position.is_some() && self.posted.is_none() && self.unexpected.is_none() {
            return usage("--position needs a queue: --posted or --unexpected");
        }
        self.check_places()?;
        if self.spread.is_some() && self.posted.is_none() && self.unexpected.is_none() {
            return usage("--spread needs a queue: --posted or --unexpected");
        }
        if self.has_sources() && self.position.is_some() {
            return usage(
                "--spread sources has no meaning with --position, whose entries are the peer's and take turns to match",
            );
        }
        if self.has_sources() && self.side_of_two().is_some() {
            return usage(
                "--listen and --connect have two ranks, and --spread sources needs others",
            );
        }
        if self.has_engines() && callers::asked(self).is_some() {
            return usage(format!(
                "{} has jobs by --units: --engine takes one engine there",
                self.test
            ));
        }
        if self.has_engines() && self.side_of_two().is_some() {
            return usage("--engine takes one engine with --listen and --connect");
        }
        Ok(())
    }

    /// Refuses a place that lies behind the last entry of a queue.
    fn check_places(&self) -> Result<()> {
        let places = self.position.iter().flat_map(|list| &list.0);
        let places = places.filter_map(|position| match position {
            Position::At(place) => Some(*place),
            _ => None,
        });
        let Some(last) = places.max() else {
            return Ok(());
        };
        for (option, list) in [("posted", &self.posted), ("unexpected", &self.unexpected)] {
            let least = list.iter().flat_map(|list| &list.0).min();
            if let Some(others) = least.filter(|others| last - 1 > **others) {
                return usage(format!(
                    "--position {last} lies behind the last entry of --{option} {others}, which has {} with the one that matches",
                    u64::from(*others) + 1
                ));
            }
        }
        Ok(())
    }
}

impl Host {
    /// Returns the same with the settings that a command has options for.
    pub(crate) fn configured(&self, args: &BenchArgs) -> Result<Self> {
        let mut host = self.clone();
        let engine = args.engine.as_ref().map(List::only);
        for (name, value) in [("pml", args.pml.as_deref()), ("engine", engine.as_deref())] {
            if let Some(value) = value {
                host.config.set(name, value)?;
            }
        }
        Ok(host)
    }
}

/// The longest queue.
const LONGEST: u32 = 1 << 24;

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_what_is_wrong_is_told() {
        assert_eq!("0,16,1K".parse(), Ok(List(vec![0, 16, 1024])));
        assert_eq!("0,16:64".parse(), Ok(List(vec![0, 16, 32, 64])));
        assert_eq!("1:1K:x32".parse(), Ok(List(vec![1, 32, 1024])));
        assert_eq!("16:48:+16".parse(), Ok(List(vec![16, 32, 48])));
        for (text, told) in [
            ("64:16", "goes backwards"),
            ("1:32M", "expected numbers up to 16777216"),
            ("16:64,32", "32 is given twice"),
            ("0,x", "expected numbers up to 16777216"),
            ("17M", "expected numbers up to 16777216"),
            ("8,8", "8 is given twice"),
        ] {
            assert!(text.parse::<List<u32>>().unwrap_err().contains(told));
        }
        let engines: List<String> = "list,flajslik:bins=16,key=tag,bins".parse().unwrap();
        assert_eq!(engines.0, ["list", "flajslik:bins=16,key=tag", "bins"]);
        assert_eq!(engines.to_string(), "list,flajslik:bins=16,key=tag,bins");
        let refused = "bins,bins".parse::<List<String>>().unwrap_err();
        assert_eq!(refused, "'bins' is given twice");
        let places: List<Position> = "head,shuffled,17".parse().unwrap();
        let wanted = [Position::Head, Position::Shuffled, Position::At(17)];
        assert_eq!(places.0, wanted);
        assert_eq!(places.to_string(), "head,shuffled,17");
        let refused = "head,head".parse::<List<Position>>().unwrap_err();
        assert_eq!(refused, "'head' is given twice");
        let spreads: List<Spread> = "sources,tags".parse().unwrap();
        assert_eq!(spreads.0, [Spread::Sources, Spread::Tags]);
        let refused = "tags,tags".parse::<List<Spread>>().unwrap_err();
        assert_eq!(refused, "'tags' is given twice");
    }
}
