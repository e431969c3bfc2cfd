//! The limit of open files, which jobs of one process share. A test program of its own: the limit is the process's.

#![allow(clippy::unwrap_used, reason = "a test")]

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tagwire_launch::{Job, JobSpec};

#[test]
fn the_last_job_of_a_process_puts_the_limit_back() {
    const LOW: u64 = 64;
    let original = Rlimit {
        current: Some(LOW),
        ..getrlimit(Resource::Nofile)
    };
    setrlimit(Resource::Nofile, original).unwrap();
    let current = || getrlimit(Resource::Nofile).current.unwrap();
    let start = |ranks: u32| {
        let mut spec = JobSpec::new(ranks, "sh");
        // Each rank has the limit that the process had before any job.
        spec.args = vec![
            "-c".into(),
            "test $(ulimit -n) = 64 && exec sleep 1000".into(),
        ];
        Job::start(spec).unwrap()
    };
    let first = start(1);
    let with_one = current();
    assert!(with_one > LOW);
    let second = start(2);
    let with_two = current();
    assert!(with_two > with_one, "{with_two}");
    first.end();
    assert_eq!(first.wait().unwrap().exit_status, 143);
    assert_eq!(current(), with_two, "the other job runs on");
    let third = start(1);
    for job in [second, third] {
        job.end();
        assert_eq!(job.wait().unwrap().exit_status, 143);
    }
    assert_eq!(getrlimit(Resource::Nofile), original);
}
