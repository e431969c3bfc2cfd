//! Jobs over a provider that every libfabric has, with both ends in this process. For tests.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{env, fs, thread};

use tagwire_base::Rank;
use tagwire_base::bootstrap::{LocalBootstrap, LocalJob};
use tagwire_transport::Result;

use crate::config::OfiOptions;
use crate::fabric::{Info, faulty};
use crate::open::{Use, open_info};
use crate::registrations;

/// All ranks of a job, and with each how to make it go without a word.
pub(crate) struct Ranks<T> {
    pub(crate) ranks: Vec<T>,
    pub(crate) silent: Vec<Arc<AtomicBool>>,
}

/// The provider on the loopback interface, with an empty script; nothing, loudly, without a libfabric.
pub(crate) fn options(wanted: Use) -> Option<OfiOptions> {
    faulty::clear();
    let options = OfiOptions {
        provider: "tcp;ofi_rxm".to_owned(),
        source: "127.0.0.1".to_owned(),
        ..OfiOptions::default()
    };
    info(&options, wanted).map(|_| options)
}

/// A provider as it is asked for; nothing, loudly, where there is none.
pub(crate) fn info(options: &OfiOptions, wanted: Use) -> Option<Info> {
    let info = open_info(options, 2, wanted);
    info.inspect_err(|error| println!("SKIPPED: {error}")).ok()
}

/// The same by its name, for remote access.
pub(crate) fn info_of(provider: &str) -> Option<Info> {
    let options = OfiOptions {
        provider: provider.to_owned(),
        ..OfiOptions::default()
    };
    info(&options, Use::Bytes)
}

/// Opens all ranks of a job.
pub(crate) fn open_all<T>(
    size: u32,
    options: &OfiOptions,
    open: impl Fn(&OfiOptions, &LocalBootstrap) -> Result<T>,
) -> Ranks<T> {
    let job = LocalJob::new(size).unwrap();
    let (mut ranks, mut silent) = (Vec::new(), Vec::new());
    for rank in 0..size {
        let options = OfiOptions {
            silent: Arc::default(),
            ..options.clone()
        };
        ranks.push(open(&options, &job.member(Rank::new(rank))).unwrap());
        silent.push(options.silent);
    }
    Ranks { ranks, silent }
}

/// The rank dies as processes do: its endpoint is closed, and it informs nobody.
pub(crate) fn die<T: ?Sized>(silent: &[Arc<AtomicBool>], rank: Rank, transport: Box<T>) {
    silent[rank.index()].store(true, Ordering::Relaxed);
    drop(transport);
}

/// Runs `test` in a process of its own, which is this program with the test's `name`: what a process has one of is that test's then.
pub(crate) fn alone(name: &str, test: impl FnOnce()) {
    const ALONE: &str = "TAGWIRE_TEST_ALONE";
    if env::var_os(ALONE).is_some() {
        return test();
    }
    let output = Command::new(env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads", "1"])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    println!("{text}");
    assert!(output.status.success(), "{:?}: {text}", output.status);
    assert!(text.contains("1 passed"), "there is no test of that name");
}

/// Expects so many threads of this process to watch memory, each with its descriptor. A thread has its name, and is gone, a little
/// later than who waits for it goes on.
pub(crate) fn expect_watchers(count: usize) {
    let expected = (count, count);
    for _ in 0..1000 {
        if watchers() == expected {
            return;
        }
        thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(watchers(), expected);
}

fn watchers() -> (usize, usize) {
    let entries = |folder: &str| fs::read_dir(folder).unwrap().flatten();
    let threads = entries("/proc/self/task")
        .filter_map(|task| fs::read_to_string(task.path().join("comm")).ok())
        .filter(|name| name.trim() == registrations::THREAD)
        .count();
    let descriptors = entries("/proc/self/fd")
        .filter_map(|entry| fs::read_link(entry.path()).ok())
        .filter(|link| link.to_string_lossy().contains("userfaultfd"))
        .count();
    (threads, descriptors)
}
