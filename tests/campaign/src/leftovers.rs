//! What a trial leaves: processes, names in `/dev/shm`, files, descriptors of the driver.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use crate::job::MARK;

/// How long the kernel and the launcher have to end everything.
pub const PATIENCE: Duration = Duration::from_secs(5);

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

    /// Returns what a trial with this mark and this folder has left after a while. Ends what processes there are.
    pub fn left(&self, mark: &str, folder: &Path, patience: Duration) -> Vec<String> {
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
        let after = shared_memory();
        let fresh = after
            .difference(&self.memory)
            .filter(|name| name.contains("tagwire"));
        found.extend(fresh.map(|name| format!("/dev/shm/{name} is left")));
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

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").map_or(0, Iterator::count)
}

/// Returns the living processes with a mark.
fn processes(mark: &str) -> Vec<i32> {
    let wanted = format!("{MARK}={mark}").into_bytes();
    // What cannot be read has ended, or is a zombie without an environment.
    let has_mark = |process: &i32| {
        let environment = fs::read(format!("/proc/{process}/environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|entry| entry == wanted)
    };
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(has_mark).collect()
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
            assert!(found.iter().any(|text| text.contains(part)), "{found:?}");
        }
    }
}
