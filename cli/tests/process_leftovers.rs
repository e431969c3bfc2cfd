//! Whatever is killed, nothing stays: no process, no shared memory, no file.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::process::{Job, KILLED, eventually, rank, run_line};
use rustix::process::{Pid, Signal, kill_process};

const RANKS: u32 = 3;
/// A variable that no setting has, by which the processes of one job are known.
const MARK: &str = "PROCESS_TEST_MARK";

/// A job whose ranks all sleep in a receive, after contact by all ways of transfer.
struct Marked {
    job: Job,
    mark: String,
    /// Where it would put files.
    folder: tempfile::TempDir,
}

fn start(name: &str, options: &[&str]) -> Marked {
    let mark = format!("{name}-{}", std::process::id());
    let folder = tempfile::tempdir().unwrap();
    let mut job = run_line(RANKS, options)
        .args([rank()])
        .args(["death-asleep"])
        .env(MARK, &mark)
        .env("TMPDIR", folder.path())
        .start();
    for number in 0..RANKS {
        job.hear(&format!("{number} ready"));
    }
    Marked { job, mark, folder }
}

impl Marked {
    /// The living processes of the job, the launcher among them.
    fn processes(&self) -> BTreeSet<i32> {
        let wanted = format!("{MARK}={}", self.mark).into_bytes();
        let has_mark = |pid: &i32| {
            // What cannot be read has ended, or is a zombie without an environment.
            fs::read(format!("/proc/{pid}/environ")).is_ok_and(|environment| {
                environment
                    .split(|byte| *byte == 0)
                    .any(|entry| entry == wanted)
            })
        };
        let entries = fs::read_dir("/proc").unwrap();
        entries
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter(has_mark)
            .collect()
    }

    /// Nothing that a process of the job has mapped for sharing, or open, has a name in a file
    /// system: what has none ends with its last process.
    fn check_nothing_has_a_name(&self) {
        let processes = self.processes();
        assert_eq!(processes.len(), RANKS as usize + 1, "{processes:?}");
        let mut segments = 0;
        for pid in processes {
            for line in fs::read_to_string(format!("/proc/{pid}/maps"))
                .unwrap()
                .lines()
            {
                let mut fields = line.split_whitespace();
                let shared = fields.nth(1).unwrap().ends_with('s');
                if shared {
                    let name = fields.skip(3).collect::<Vec<_>>().join(" ");
                    assert!(name.starts_with("/memfd:"), "process {pid} shares '{name}'");
                    segments += 1;
                }
            }
            for entry in fs::read_dir(format!("/proc/{pid}/fd")).unwrap() {
                let target = fs::read_link(entry.unwrap().path()).unwrap_or_default();
                for folder in [Path::new("/dev/shm"), self.folder.path()] {
                    assert!(!target.starts_with(folder), "process {pid} has {target:?}");
                }
            }
        }
        assert!(segments >= RANKS, "only {segments} mappings are shared");
    }

    /// Nothing is left of a job that has ended.
    fn check_gone(self, memory_before: &BTreeSet<String>) {
        eventually("the end of all processes", || self.processes().is_empty());
        let files: Vec<_> = fs::read_dir(self.folder.path()).unwrap().collect();
        assert!(files.is_empty(), "{files:?}");
        // Other programs come and go there.
        let mut fresh: Vec<_> = shared_memory().difference(memory_before).cloned().collect();
        fresh.retain(|name| name.contains("tagwire"));
        assert!(fresh.is_empty(), "{fresh:?}");
    }
}

fn shared_memory() -> BTreeSet<String> {
    let Ok(entries) = fs::read_dir("/dev/shm") else {
        return BTreeSet::new();
    };
    entries
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .collect()
}

fn kill(pid: i32) {
    // Already gone, if it fails.
    let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
}

#[test]
fn nothing_stays_of_killed_ranks() {
    let before = shared_memory();
    let mut marked = start("ranks", &[]);
    marked.check_nothing_has_a_name();
    for number in 0..RANKS {
        // The launcher ends the others once it hears of the first: who is quicker does not matter.
        let _ = kill_process(marked.job.process(number), Signal::KILL);
    }
    eventually("the launcher's end", || marked.processes().is_empty());
    marked.check_gone(&before);
}

#[test]
fn nothing_stays_of_a_killed_launcher() {
    let before = shared_memory();
    let marked = start("launcher", &["--on-failure", "continue"]);
    kill(marked.job.launcher().as_raw_nonzero().get());
    marked.check_gone(&before);
}

#[test]
fn nothing_stays_when_everything_is_killed_at_once() {
    let before = shared_memory();
    let marked = start("everything", &["--shm-descriptor", "passed"]);
    marked.check_nothing_has_a_name();
    marked.processes().into_iter().for_each(kill);
    marked.check_gone(&before);
}

#[test]
fn ranks_that_are_killed_one_by_one_end_the_job_with_the_first_ones_status() {
    let mut marked = start("one-by-one", &["--on-failure", "continue"]);
    for number in (0..RANKS).rev() {
        let _ = kill_process(marked.job.process(number), Signal::KILL);
    }
    let outcome = marked.job.finish();
    assert_eq!(outcome.status, KILLED, "{outcome:#?}");
}
