//! What is kept of a trial: a line of JSON.

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// How a trial ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// All was as it must be.
    Good,
    /// Something was late, and was not when the trial was repeated alone, or there was no idle machine to repeat it on.
    Suspect,
    /// Something was not as it must be.
    Find,
    /// It could not be run here.
    Void,
}

/// A trial that has been run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Record {
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
    /// What its processes said beside.
    pub said: Vec<String>,
    /// How many messages and operations were checked.
    pub checked: u64,
    /// The longest that a rank said nothing while nothing disturbed it, in milliseconds.
    pub silence_ms: u64,
    /// The longest until a rank knew of a death, in milliseconds.
    pub notice_ms: u64,
    /// How long the trial took, in milliseconds.
    pub wall_ms: u64,
}

/// What hostile members in one process have come to.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct HostileRecord {
    /// What their victims stood on.
    pub hostile: String,
    /// The seed of the first of them.
    pub seed: u64,
    /// How many there were.
    pub villains: u64,
    /// How many packets they sent.
    pub packets: u64,
    /// How many of them were given up.
    pub given_up: u64,
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
