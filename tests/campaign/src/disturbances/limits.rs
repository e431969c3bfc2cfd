//! Limits of a rank's process that leave it no descriptor, or no memory, for a while.

use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use tagwire_conformance::Chance;

use super::{Against, Blow, Disturbance, Job, Toll};

/// What a rank has no more of.
#[derive(Debug)]
pub struct Limit {
    name: &'static str,
    about: &'static str,
    toll: Toll,
    resource: Resource,
    /// What the process uses now.
    used: fn(Pid) -> Option<u64>,
    /// How much more it gets is a number below this.
    most: u64,
}

/// No descriptor is left.
pub const DESCRIPTORS: Limit = Limit {
    name: "descriptors",
    about: "a rank has no descriptor left, or up to 2, for up to 300 ms (RLIMIT_NOFILE)",
    toll: Toll::None,
    resource: Resource::Nofile,
    used: |process| {
        let folder = format!("/proc/{}/fd", process.as_raw_nonzero());
        let entries = std::fs::read_dir(folder).ok()?.flatten();
        let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u64>().ok());
        numbers.max().map(|last| last + 1)
    },
    most: 3,
};
/// No address space is left. A process whose program cannot go on without ends itself.
pub const MEMORY: Limit = Limit {
    name: "memory",
    about: "a rank gets no more memory, or up to 8 MiB, for up to 300 ms (RLIMIT_AS); it may end",
    toll: Toll::MayDie,
    resource: Resource::As,
    used: |process| {
        let path = format!("/proc/{}/statm", process.as_raw_nonzero());
        let text = std::fs::read_to_string(path).ok()?;
        let pages = text.split_whitespace().next()?.parse::<u64>().ok()?;
        Some(pages * rustix::param::page_size() as u64)
    },
    most: 8 << 20,
};

impl Disturbance for Limit {
    fn name(&self) -> &'static str {
        self.name
    }

    fn about(&self) -> &'static str {
        self.about
    }

    fn toll(&self) -> Toll {
        self.toll
    }

    fn makes_short(&self) -> bool {
        true
    }

    fn fits(&self, against: Against<'_>) -> bool {
        against.calls_again
    }

    fn draw(&self, chance: &mut Chance, ranks: u32) -> Blow {
        Blow {
            name: self.name.to_owned(),
            rank: chance.below(u64::from(ranks)) as u32,
            // Most is opened at the beginning.
            at: Duration::from_millis(chance.one_of(&[0, 0, 2, 5, 10, 50, 200])),
            lasts: Duration::from_millis(1 + chance.below(300)),
            amount: chance.below(self.most),
        }
    }

    fn begin(&self, blow: &Blow, job: &mut Job) -> Result<(), String> {
        let Some(process) = job.process(blow.rank) else {
            return Ok(());
        };
        // A process that has ended uses nothing.
        if let Some(used) = (self.used)(process) {
            self.set(process, Some(used + blow.amount));
        }
        Ok(())
    }

    fn end(&self, blow: &Blow, job: &mut Job) -> Result<(), String> {
        if let Some(process) = job.process(blow.rank) {
            let now = rustix::process::getrlimit(self.resource);
            self.set(process, now.current);
        }
        Ok(())
    }
}

impl Limit {
    /// Sets the soft limit. A process that has ended does not mind.
    fn set(&self, process: Pid, current: Option<u64>) {
        let maximum = rustix::process::getrlimit(self.resource).maximum;
        let _ = prlimit(Some(process), self.resource, Rlimit { current, maximum });
    }
}
