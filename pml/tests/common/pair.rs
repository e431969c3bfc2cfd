//! Two ranks over shared memory in one thread.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use tagwire_base::Rank;
use tagwire_base::bootstrap::LocalJob;
use tagwire_pml::ob1::{Ob1, Ob1Options};
use tagwire_pml::{Messenger, ThreadLevel, WaitPolicy};
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
    let job = LocalJob::new(2).unwrap();
    let open = |rank| {
        let mut bootstrap = job.member(Rank::new(rank));
        Shm::open(ShmOptions::default(), &mut bootstrap).map(|rail| (rail, bootstrap))
    };
    let rails = [open(0).unwrap(), open(1).unwrap()];
    let ranks = rails.map(|(rail, bootstrap)| {
        let options = options.clone();
        std::thread::spawn(move || {
            Ob1::open(&options, Box::new(rail), Box::new(bootstrap)).unwrap()
        })
    });
    ranks.map(|rank| Messenger::new(rank.join().unwrap(), level, policy))
}
