//! What is kept of a trial: a line of JSON.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::origin::Origin;

/// How a trial ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// All was as it must be.
    Good,
    /// Something was late, and no repetition on idle processors was: see [`Record::repeats`].
    Suspect,
    /// Something was not as it must be.
    Find,
    /// It could not be run here.
    Void,
}

/// What a repetition of a late trial came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Again {
    /// Nothing was late.
    Good,
    /// Something was late again.
    Late,
    /// It was more than late.
    Wrong,
    /// It could not be run.
    Void,
}

/// A repetition of a late trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Repeat {
    /// What it came to.
    pub again: Again,
    /// Whether the processors had nothing else to do before it.
    pub idle: bool,
}

/// What is known of a suspect.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// It was good each time it was repeated, on idle processors.
    GoodAlone,
    /// It was good each time it was repeated, and not always on idle processors.
    GoodBesideLoad,
    /// It was late again beside other load, and was never repeated on idle processors, or was good there once.
    LateBesideLoad,
    /// It could not be repeated.
    NotRepeated,
}

impl Standing {
    /// All of them, in the order of pages.
    pub const ALL: [Self; 4] = [
        Self::GoodAlone,
        Self::GoodBesideLoad,
        Self::LateBesideLoad,
        Self::NotRepeated,
    ];

    /// Returns its words in pages.
    pub const fn text(self) -> &'static str {
        match self {
            Self::GoodAlone => "good when repeated on idle processors",
            Self::GoodBesideLoad => "good when repeated beside other load",
            Self::LateBesideLoad => "late again beside other load",
            Self::NotRepeated => "not repeated",
        }
    }
}

/// A trial that has been run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
    /// Which build ran it, and where.
    pub origin: Origin,
    /// Its seed.
    pub seed: u64,
    /// What was chosen in place of what the seed draws, as options.
    pub choice: String,
    /// Where it ran.
    pub ground: String,
    /// What ran.
    pub program: String,
    /// With how many ranks.
    pub ranks: u32,
    /// What struck it.
    pub blows: Vec<String>,
    /// How it ended.
    pub verdict: Verdict,
    /// What was not as it must be, or why it was not run.
    pub why: Vec<String>,
    /// How often it was repeated since something was late, and what came of it.
    pub repeats: Vec<Repeat>,
    /// What its processes said beside.
    pub said: Vec<String>,
    /// How many messages and operations were checked.
    pub checked: u64,
    /// The longest that a rank said nothing while nothing disturbed it, in milliseconds.
    pub silence_ms: u64,
    /// The longest that nothing ended of what could go on, in milliseconds. Older records have none.
    #[serde(default)]
    pub stall_ms: Option<u64>,
    /// The longest until a rank knew of a death, in milliseconds.
    pub notice_ms: u64,
    /// How long the trial took, in milliseconds.
    pub wall_ms: u64,
}

impl Record {
    /// Returns what its repetitions say of a suspect.
    pub fn standing(&self) -> Standing {
        let any = |again| self.repeats.iter().any(|repeat| repeat.again == again);
        if self.repeats.is_empty() || any(Again::Void) {
            return Standing::NotRepeated;
        }
        if any(Again::Late) {
            return Standing::LateBesideLoad;
        }
        match self.repeats.iter().all(|repeat| repeat.idle) {
            true => Standing::GoodAlone,
            false => Standing::GoodBesideLoad,
        }
    }

    /// Returns how many blows of a disturbance it had.
    pub fn blows_of(&self, disturbance: &str) -> u64 {
        let names = self.blows.iter().map(|blow| blow.split(':').next());
        names.filter(|name| *name == Some(disturbance)).count() as u64
    }
}

/// What hostile members in one process have come to.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HostileRecord {
    /// Which build ran it, and where.
    pub origin: Origin,
    /// What their victims stood on.
    pub hostile: String,
    /// The seed of the first of them.
    pub seed: u64,
    /// The seed behind the last.
    pub end: u64,
    /// How many there were that could be judged.
    pub villains: u64,
    /// How many packets they sent.
    pub packets: u64,
    /// How many of them were given up.
    pub given_up: u64,
    /// How many operations of services ended as with a correct peer. Older records have none.
    #[serde(default)]
    pub ended: u64,
    /// Which took too long beside other load, and could not be repeated on idle processors.
    pub late: Vec<u64>,
    /// What was not as it must be, with the seed of its villain.
    pub why: Vec<(u64, String)>,
    /// How long it took, in milliseconds.
    pub wall_ms: u64,
}

/// A line of a log.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub enum Line {
    /// A trial.
    Trial(Box<Record>),
    /// Hostile members.
    Hostile(HostileRecord),
}

/// Reads all records of a file; none where there is no file.
///
/// # Errors
/// Names the file, and the line that is no record.
pub fn read(path: &Path) -> Result<Vec<Line>, String> {
    let Ok(file) = File::open(path) else {
        return Ok(Vec::new());
    };
    let mut records = Vec::new();
    for (number, line) in BufReader::new(file).lines().enumerate() {
        let wrong =
            |why: &dyn std::fmt::Display| format!("{}, line {}: {why}", path.display(), number + 1);
        let line = line.map_err(|why| wrong(&why))?;
        records.push(serde_json::from_str(&line).map_err(|why| wrong(&why))?);
    }
    Ok(records)
}

/// Appends a record to a file.
///
/// # Errors
/// When it cannot be written.
pub fn append(path: &Path, record: &impl Serialize) -> Result<(), String> {
    let text = serde_json::to_string(record).map_err(|why| why.to_string())?;
    let file = OpenOptions::new().create(true).append(true).open(path);
    let written = file.and_then(|mut file| file.write_all(format!("{text}\n").as_bytes()));
    written.map_err(|why| format!("{}: {why}", path.display()))
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// Returns a good trial of this build.
    pub fn record() -> Record {
        Record {
            origin: Origin::here(),
            seed: 7,
            choice: String::new(),
            ground: "shm".to_owned(),
            program: "mesh".to_owned(),
            ranks: 3,
            blows: vec!["kill:1:100:0:0".to_owned(), "stop:0:5:10:0".to_owned()],
            verdict: Verdict::Good,
            why: Vec::new(),
            repeats: Vec::new(),
            said: Vec::new(),
            checked: 10,
            silence_ms: 5,
            stall_ms: Some(7),
            notice_ms: 6,
            wall_ms: 1000,
        }
    }

    #[test]
    fn a_record_says_which_build_it_is_of() {
        let origin = record().origin;
        assert!(!origin.revision.is_empty() && !origin.machine.is_empty());
        let mut text = serde_json::to_value(record()).unwrap();
        assert!(serde_json::from_value::<Record>(text.clone()).is_ok());
        text.as_object_mut().unwrap().remove("origin");
        assert!(serde_json::from_value::<Record>(text).is_err());
    }
}
