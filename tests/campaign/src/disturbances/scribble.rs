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

/// How often a rank is looked at that shares no memory yet.
const LOOKS: u32 = 3000;
const LOOK: Duration = Duration::from_millis(1);
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
        strike(job, blow, blow.amount)
    }

    fn end(&self, blow: &Blow, job: &mut Job) -> Result<(), String> {
        strike(job, blow, !blow.amount)
    }
}

/// Writes into the memory of a rank's process, once it shares some. One that has ended does not mind.
fn strike(job: &mut Job, blow: &Blow, seed: u64) -> Result<(), String> {
    let Some(process) = job.process(blow.rank) else {
        return Ok(());
    };
    for _ in 0..LOOKS {
        let written = match segments(process) {
            Ok(segments) => scribble(&segments, seed),
            Err(_) if has_ended(process) => return Ok(()),
            Err(why) => return Err(format!("the memory of rank {}: {why}", blow.rank)),
        };
        if written > 0 || has_ended(process) {
            return Ok(());
        }
        std::thread::sleep(LOOK);
    }
    Err(format!("rank {} has no memory to write into", blow.rank))
}

/// Whether a process has ended; its launcher may not have taken its end.
fn has_ended(process: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", process.as_raw_nonzero()));
    let state = stat.unwrap_or_default();
    let state = state
        .rsplit(')')
        .next()
        .and_then(|rest| rest.split_whitespace().next());
    state.is_none_or(|state| state == "Z" || state == "X")
}

/// Writes into segments. Returns how many words it has written.
fn scribble(segments: &[(File, u64)], seed: u64) -> u64 {
    if segments.is_empty() {
        return 0;
    }
    let mut chance = Chance::new(seed);
    let mut written = 0;
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
        let place = 8 * chance.below(within / 8);
        written += u64::from(file.write_all_at(&value.to_ne_bytes(), place).is_ok());
    }
    written
}

/// Opens what a process shares by memfd_create(2), each with its length.
fn segments(process: Pid) -> std::io::Result<Vec<(File, u64)>> {
    let folder = format!("/proc/{}/fd", process.as_raw_nonzero());
    let mut segments = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        // One that the process has closed since is no segment of it.
        let target = std::fs::read_link(&path).unwrap_or_default();
        if !target.to_string_lossy().starts_with("/memfd:") {
            continue;
        }
        let file = match OpenOptions::new().read(true).write(true).open(&path) {
            Ok(file) => file,
            Err(why) if why.kind() == std::io::ErrorKind::NotFound => continue,
            Err(why) => return Err(why),
        };
        let len = file.metadata()?.len();
        if len >= 8 {
            segments.push((file, len));
        }
    }
    Ok(segments)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_written_and_counted() {
        let memory =
            rustix::fs::memfd_create("scribbled", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let memory = File::from(memory);
        memory.set_len(1 << 20).unwrap();
        let segments = segments(rustix::process::getpid()).unwrap();
        let ours = segments.into_iter().filter(|(file, _)| {
            let inode =
                |file: &File| std::os::unix::fs::MetadataExt::ino(&file.metadata().unwrap());
            inode(file) == inode(&memory)
        });
        assert_eq!(scribble(&ours.collect::<Vec<_>>(), 7), WORDS);
        let mut bytes = vec![0; 1 << 20];
        memory.read_exact_at(&mut bytes, 0).unwrap();
        assert!(bytes.iter().any(|byte| *byte != 0));
        assert_eq!(scribble(&[], 7), 0);
    }

    #[test]
    fn a_process_that_has_ended_is_known() {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let process = Pid::from_child(&child);
        assert!(!has_ended(rustix::process::getpid()));
        child.wait().unwrap();
        assert!(has_ended(process));
    }
}
