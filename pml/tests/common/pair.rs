//! Two ranks over shared memory in one thread.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use tagwire_base::Rank;
use tagwire_base::bootstrap::LocalJob;
use tagwire_dr::{Dr, DrOptions};
use tagwire_pml::ob1::{Ob1, Ob1Options};
use tagwire_pml::{Messenger, ThreadLevel, WaitPolicy};
use tagwire_transport::ByteTransport;
use tagwire_transport::fault::{FaultOptions, FaultTransport};
use tagwire_transport::shm::{Shm, ShmOptions};

/// Two ranks in this thread, by threads of their own, since opening waits for the others; and made the owner of both by a
/// messenger each.
pub(crate) fn pair(level: ThreadLevel, policy: WaitPolicy) -> [Messenger; 2] {
    pair_with(Ob1Options::default(), level, policy)
}

/// The same, with these options.
pub(crate) fn pair_with(
    options: Ob1Options,
    level: ThreadLevel,
    policy: WaitPolicy,
) -> [Messenger; 2] {
    let shm = ShmOptions::default();
    open((options, level, policy), shm, |shm, _| Box::new(shm))
}

/// Two ranks of whose shared memory these options are. They show no receives.
#[allow(dead_code, reason = "each test file uses its part")]
pub(crate) fn pair_of(shm: ShmOptions) -> [Messenger; 2] {
    let policy = WaitPolicy::adaptive(true);
    let options = Ob1Options {
        exposes: false,
        ..Ob1Options::default()
    };
    let terms = (options, ThreadLevel::Multiple, policy);
    open(terms, shm, |shm, _| Box::new(shm))
}

/// The same, under data reliability.
#[allow(dead_code, reason = "each test file uses its part")]
pub(crate) fn pair_under_dr(level: ThreadLevel, policy: WaitPolicy) -> [Messenger; 2] {
    let terms = (Ob1Options::default(), level, policy);
    open(terms, ShmOptions::default(), |shm, rank| {
        let dr = Dr::new(Box::new(shm), rank, DrOptions::default());
        Box::new(dr.unwrap())
    })
}

/// Two ranks whose transports misbehave.
#[allow(dead_code, reason = "each test file uses its part")]
pub(crate) fn pair_with_faults(faults: &FaultOptions) -> [Messenger; 2] {
    let (options, policy) = (Ob1Options::default(), WaitPolicy::adaptive(true));
    let terms = (options, ThreadLevel::Multiple, policy);
    open(terms, ShmOptions::default(), |shm, rank| {
        Box::new(FaultTransport::new(Box::new(shm), rank, faults.clone()))
    })
}

fn open(
    (options, level, policy): (Ob1Options, ThreadLevel, WaitPolicy),
    shm: ShmOptions,
    around: impl Fn(Shm, Rank) -> Box<dyn ByteTransport>,
) -> [Messenger; 2] {
    let job = LocalJob::new(2).unwrap();
    let open = |rank| {
        let mut bootstrap = job.member(Rank::new(rank));
        let shm = Shm::open(shm.clone(), &mut bootstrap);
        shm.map(|shm| (around(shm, Rank::new(rank)), bootstrap))
    };
    let rails = [open(0).unwrap(), open(1).unwrap()];
    let ranks = rails.map(|(rail, bootstrap)| {
        let options = options.clone();
        std::thread::spawn(move || Ob1::open(&options, rail, Box::new(bootstrap)).unwrap())
    });
    ranks.map(|rank| Messenger::new(rank.join().unwrap(), level, policy))
}
