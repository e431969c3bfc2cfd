//! What a trial leaves: processes, names in `/dev/shm`, files, descriptors of the driver.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::job::MARK;
use crate::oracle::Finding;

/// How long the kernel and the launcher have to end everything.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// How often a program without an environment is looked at: it may just begin.
const LOOKS: u32 = 100;
const LOOK: Duration = Duration::from_millis(1);

/// What is there before a trial.
#[derive(Debug)]
pub struct Before {
    memory: BTreeSet<String>,
    descriptors: usize,
}

impl Before {
    /// Looks.
    pub fn look() -> Self {
        Self {
            memory: shared_memory(),
            descriptors: descriptors(),
        }
    }

    /// Returns what a trial with this mark and this folder has left after a while. Ends what processes there are. A name in `/dev/shm` may be of
    /// others on the machine: such a trial is repeated on idle processors, as where something was late.
    pub fn left(&self, mark: &str, folder: &Path, patience: Duration) -> Vec<Finding> {
        let certain = self.processes_and_files(mark, folder, patience);
        let names = self
            .names()
            .into_iter()
            .map(|text| Finding { late: true, text });
        let certain = certain
            .into_iter()
            .map(|text| Finding { late: false, text });
        certain.chain(names).collect()
    }

    /// Returns the names in `/dev/shm` that were not there before, and whose memory no process has.
    fn names(&self) -> Vec<String> {
        let after = shared_memory();
        let fresh = after.difference(&self.memory);
        let left = fresh.filter(|name| !is_held(name));
        left.map(|name| format!("/dev/shm/{name} is left, and no process has it"))
            .collect()
    }

    fn processes_and_files(&self, mark: &str, folder: &Path, patience: Duration) -> Vec<String> {
        let deadline = Instant::now() + patience;
        let mut found = Vec::new();
        let mut alive = processes(mark);
        while !alive.is_empty() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(2));
            alive = processes(mark);
        }
        for process in alive {
            let name = fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default();
            found.push(format!(
                "process {process} is left: {}",
                name.replace('\0', " ")
            ));
            if let Some(process) = rustix::process::Pid::from_raw(process) {
                let _ = rustix::process::kill_process(process, rustix::process::Signal::KILL);
            }
        }
        let files = fs::read_dir(folder).into_iter().flatten().flatten();
        let names = files.map(|file| file.file_name().to_string_lossy().into_owned());
        found.extend(
            names
                .filter(|name| name != "end" && name != "secret")
                .map(|name| format!("the file {name} is left")),
        );
        let now = descriptors();
        if now > self.descriptors {
            found.push(format!(
                "the driver has {now} descriptors, {} before",
                self.descriptors
            ));
        }
        found
    }
}

fn shared_memory() -> BTreeSet<String> {
    let entries = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect()
}

/// Whether a living process has the shared memory of a name: then it is none of a trial, whose processes have ended.
fn is_held(name: &str) -> bool {
    let path = Path::new("/dev/shm").join(name);
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut processes = entries.filter(|entry| {
        let name = entry.file_name();
        name.to_string_lossy()
            .bytes()
            .all(|byte| byte.is_ascii_digit())
    });
    processes.any(|process| {
        let maps = fs::read_to_string(process.path().join("maps")).unwrap_or_default();
        let open = fs::read_dir(process.path().join("fd"))
            .into_iter()
            .flatten()
            .flatten();
        let mut open = open.filter_map(|entry| fs::read_link(entry.path()).ok());
        maps.lines()
            .any(|line| line.ends_with(&*path.to_string_lossy()))
            || open.any(|file| file == path)
    })
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

/// Returns the living processes with a mark.
fn processes(mark: &str) -> Vec<i32> {
    let wanted = format!("{MARK}={mark}").into_bytes();
    let has_mark = |process: &i32| {
        environment(*process)
            .split(|byte| *byte == 0)
            .any(|entry| entry == wanted)
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(has_mark).collect()
}

/// Returns the environment of a process; nothing of one that has ended, is a zombie, or the kernel's own.
fn environment(process: i32) -> Vec<u8> {
    let has_program = || fs::read_link(format!("/proc/{process}/exe")).is_ok();
    for _ in 0..LOOKS {
        let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        if !environment.is_empty() || !has_program() {
            return environment;
        }
        // It is in execve(2): whoever has started it goes on before its new memory is filled.
        std::thread::sleep(LOOK);
    }
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let before = Before::look();
        let mark = format!("leftovers-{}", std::process::id());
        let mut command = std::process::Command::new("sleep");
        let mut child = command.arg("60").env(MARK, &mark).spawn().unwrap();
        fs::write(folder.path().join("forgotten"), "").unwrap();
        let found = before.left(&mark, folder.path(), Duration::ZERO);
        child.wait().unwrap();
        for part in ["is left: sleep 60", "the file forgotten"] {
            let has = |one: &Finding| one.text.contains(part);
            assert!(found.iter().any(has), "{found:?}");
        }
    }

    #[test]
    fn shared_memory_that_nobody_has_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let before = Before::look();
        let file = tempfile::Builder::new()
            .prefix("a-library-")
            .tempfile_in("/dev/shm")
            .unwrap();
        let found = || {
            let left = before.left("no mark", folder.path(), Duration::ZERO);
            left.iter()
                .any(|one| one.late && one.text.starts_with("/dev/shm/a-library-"))
        };
        assert!(!found(), "this process has it open");
        let name = file.into_temp_path();
        assert!(found());
        name.close().unwrap();
        assert!(!found());
    }
}
