//! A member that writes into the memory that ranks share, anywhere and anything: rings, offers, boards and lines of
//! collectives, the pages of their arenas.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;
use std::time::Duration;

use rustix::process::Pid;
use tagwire_conformance::Chance;

use super::{Against, Blow, Disturbance, Job, Toll};

/// Writes words of chance into shared memory. The driver does it in place of a member, who could: it is a process of the
/// same user.
#[derive(Debug)]
pub struct Scribble;

/// How many words are written at once.
const WORDS: u64 = 3000;
/// What is written first in each segment has most of the words that matter.
const FRONT: u64 = 64 << 10;

impl Disturbance for Scribble {
    fn name(&self) -> &'static str {
        "scribble"
    }

    fn about(&self) -> &'static str {
        "3,000 words of chance, twice, in the memory that a rank shares: nobody crashes, nothing is left"
    }

    fn toll(&self) -> Toll {
        Toll::Anything
    }

    fn fits(&self, against: Against<'_>) -> bool {
        against.ground.shares_memory()
    }

    fn draw(&self, chance: &mut Chance, ranks: u32) -> Blow {
        Blow {
            name: self.name().to_owned(),
            rank: chance.below(u64::from(ranks)) as u32,
            at: Duration::from_millis(chance.below(200)),
            lasts: Duration::from_millis(chance.below(100)),
            amount: chance.word() >> 16,
        }
    }

    fn begin(&self, blow: &Blow, job: &mut Job) -> Result<(), String> {
        if let Some(process) = job.process(blow.rank) {
            scribble(process, blow.amount);
        }
        Ok(())
    }

    fn end(&self, blow: &Blow, job: &mut Job) -> Result<(), String> {
        if let Some(process) = job.process(blow.rank) {
            scribble(process, !blow.amount);
        }
        Ok(())
    }
}

/// Writes into the segments of a process. One that has ended has none.
fn scribble(process: Pid, seed: u64) {
    let mut chance = Chance::new(seed);
    let segments = segments(process);
    if segments.is_empty() {
        return;
    }
    for _ in 0..WORDS {
        let (file, len) = &segments[chance.below(segments.len() as u64) as usize];
        let within = match chance.is_true() {
            true => FRONT.min(*len),
            false => *len,
        };
        let value = match chance.below(5) {
            0 => chance.word(),
            1 => chance.below(64),
            2 => chance.below(16) << 32 | chance.below(4096),
            3 => 1 << chance.below(64),
            _ => u64::MAX >> chance.below(64),
        };
        // Memory that its owner has sealed against writes stays as it is.
        let _ = file.write_all_at(&value.to_ne_bytes(), 8 * chance.below(within / 8));
    }
}

/// Opens what a process shares by memfd_create(2), each with its length.
fn segments(process: Pid) -> Vec<(File, u64)> {
    let folder = format!("/proc/{}/fd", process.as_raw_nonzero());
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let shared = entries.filter(|entry| {
        let target = std::fs::read_link(entry.path()).unwrap_or_default();
        target.to_string_lossy().starts_with("/memfd:")
    });
    let opened = shared.filter_map(|entry| {
        OpenOptions::new()
            .read(true)
            .write(true)
            .open(entry.path())
            .ok()
    });
    let with_length = opened.filter_map(|file| file.metadata().ok().map(|data| (data.len(), file)));
    with_length
        .filter(|(len, _)| *len >= 8)
        .map(|(len, file)| (file, len))
        .collect()
}
