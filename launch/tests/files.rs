//! The limit of open files, which jobs and stores of one process share. A test program of its own: the limit is the process's.

#![allow(clippy::unwrap_used, reason = "a test")]

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, connect, socket};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tagwire_base::{JobSecret, Rank};
use tagwire_launch::{Job, JobSpec, Store, StoreBootstrap};

const LOW: u64 = 64;

/// One test has the limit at a time.
fn alone() -> MutexGuard<'static, ()> {
    static LIMIT: Mutex<()> = Mutex::new(());
    LIMIT.lock().unwrap_or_else(PoisonError::into_inner)
}

fn limit(current: u64) -> Rlimit {
    let limit = Rlimit {
        current: Some(current),
        ..getrlimit(Resource::Nofile)
    };
    setrlimit(Resource::Nofile, limit).unwrap();
    limit
}

fn current() -> u64 {
    getrlimit(Resource::Nofile).current.unwrap()
}

#[test]
fn the_last_job_of_a_process_puts_the_limit_back() {
    let _alone = alone();
    let original = limit(LOW);
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

#[test]
fn a_store_has_room_for_the_ranks_of_all_hosts() {
    let _alone = alone();
    let original = limit(LOW);
    let secret = JobSecret::from_bytes([1; JobSecret::LEN]);
    let store = Store::start_tcp(100, "127.0.0.1:0", secret).unwrap();
    assert!(current() > 100, "{}", current());
    drop(store);
    assert_eq!(getrlimit(Resource::Nofile), original);
}

/// What this process has had of the processors, in ticks of 10 ms.
fn ticks() -> u64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields = stat.rsplit(')').next().unwrap().split_whitespace();
    let times = fields.skip(11).take(2).map(|time| time.parse::<u64>());
    times.map(Result::unwrap).sum()
}

#[test]
fn a_store_without_a_descriptor_for_a_connection_lets_it_wait() {
    let _alone = alone();
    let store = Store::start(2).unwrap();
    let (before, knocking) = (current(), ticks());
    let stranger = socket(AddressFamily::UNIX, SocketType::STREAM, None).unwrap();
    limit(0);
    let name = SocketAddrUnix::new_abstract_name(store.name().as_bytes()).unwrap();
    connect(&stranger, &name).unwrap();
    std::thread::sleep(Duration::from_millis(500));
    limit(before);
    let spent = ticks() - knocking;
    assert!(spent < 10, "{spent} ticks for a connection that waits");
    // It is taken, as are those behind it, once there is room.
    StoreBootstrap::connect(store.membership(Rank::new(0))).unwrap();
}
