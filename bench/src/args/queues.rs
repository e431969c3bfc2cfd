//! Lists of engines and of what lies ahead in the queues: each combination is a job over each transport.

use std::str::FromStr;

use tagwire_base::config::parse;
use tagwire_base::named::Spec;

use super::{BenchArgs, usage};
use crate::Host;
use crate::concurrent as callers;
use crate::error::Result;

/// Numbers of entries, with commas between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entries(Vec<u32>);

/// Matching engines by name, with commas between them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineNames(Vec<String>);

impl Entries {
    /// The longest queue.
    const MOST: u32 = 1 << 24;

    /// Returns the number of a command that has one.
    pub(crate) fn only(&self) -> u32 {
        self.0.first().copied().unwrap_or_default()
    }

    fn each(of: Option<&Self>) -> Vec<Option<Self>> {
        match of {
            None => vec![None],
            Some(all) => all.0.iter().map(|one| Some(Self(vec![*one]))).collect(),
        }
    }
}

impl FromStr for Entries {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let read = |part: &str| {
            let number = parse::bytes(part)
                .ok()
                .and_then(|all| u32::try_from(all).ok());
            let number = number.filter(|number| *number <= Self::MOST);
            number.ok_or_else(|| format!("expected numbers up to {}, such as 0,16,1K", Self::MOST))
        };
        let all: Vec<u32> = text.split(',').map(read).collect::<Result<_, _>>()?;
        match twice(&all) {
            Some(one) => Err(format!("{one} is given twice")),
            None => Ok(Self(all)),
        }
    }
}

impl EngineNames {
    /// Returns the name of a command that has one.
    pub(crate) fn only(&self) -> &str {
        self.0.first().map_or("", String::as_str)
    }

    pub(crate) const fn is_list(&self) -> bool {
        self.0.len() > 1
    }

    fn each(of: Option<&Self>) -> Vec<Option<Self>> {
        match of {
            None => vec![None],
            Some(all) => all
                .0
                .iter()
                .map(|one| Some(Self(vec![one.clone()])))
                .collect(),
        }
    }
}

impl FromStr for EngineNames {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let all = Spec::parts(text);
        match twice(&all) {
            Some(one) => Err(format!("'{one}' is given twice")),
            None => Ok(Self(all)),
        }
    }
}

/// As it is read.
impl std::fmt::Display for EngineNames {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0.join(","))
    }
}

fn twice<T: PartialEq>(all: &[T]) -> Option<&T> {
    let again = |place: &usize| all[..*place].contains(&all[*place]);
    (0..all.len()).find(again).map(|place| &all[place])
}

impl BenchArgs {
    /// Returns the commands of the jobs over each transport, each with one engine and one length of a queue.
    pub(crate) fn by_queue(&self) -> Vec<Self> {
        let mut all = Vec::new();
        for engine in EngineNames::each(self.engine.as_ref()) {
            for posted in Entries::each(self.posted.as_ref()) {
                for unexpected in Entries::each(self.unexpected.as_ref()) {
                    all.extend(
                        Entries::each(self.wild.as_ref())
                            .into_iter()
                            .map(|wild| Self {
                                engine: engine.clone(),
                                posted: posted.clone(),
                                unexpected: unexpected.clone(),
                                wild,
                                ..self.clone()
                            }),
                    );
                }
            }
        }
        all
    }

    pub(crate) fn has_engines(&self) -> bool {
        self.engine.as_ref().is_some_and(EngineNames::is_list)
    }

    /// Refuses lists where jobs differ otherwise.
    pub(super) fn check_queues(&self) -> Result<()> {
        let wild = self.wild.iter().flat_map(|list| &list.0);
        if let Some(more) = wild.copied().find(|percent| *percent > 100) {
            return usage(format!("--wild is in percent of the receives: not {more}"));
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
}

impl Host {
    /// Returns the same with the settings that a command has options for.
    pub(crate) fn configured(&self, args: &BenchArgs) -> Result<Self> {
        let mut host = self.clone();
        let engine = args.engine.as_ref().map(EngineNames::only);
        for (name, value) in [("pml", args.pml.as_deref()), ("engine", engine)] {
            if let Some(value) = value {
                host.config.set(name, value)?;
            }
        }
        Ok(host)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use super::*;

    #[test]
    fn lists_are_read_and_what_is_wrong_is_told() {
        assert_eq!("0,16,1K".parse(), Ok(Entries(vec![0, 16, 1024])));
        for (text, told) in [
            ("0,x", "expected numbers up to 16777216"),
            ("17M", "expected numbers up to 16777216"),
            ("8,8", "8 is given twice"),
        ] {
            assert!(text.parse::<Entries>().unwrap_err().contains(told));
        }
        let engines: EngineNames = "list,flajslik:bins=16,key=tag,bins".parse().unwrap();
        assert_eq!(engines.0, ["list", "flajslik:bins=16,key=tag", "bins"]);
        assert_eq!(engines.to_string(), "list,flajslik:bins=16,key=tag,bins");
        let refused = "bins,bins".parse::<EngineNames>().unwrap_err();
        assert_eq!(refused, "'bins' is given twice");
    }
}
