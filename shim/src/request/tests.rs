//! Requests that are freed while their operations are under way.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use tagwire_base::Rank;
use tagwire_base::bootstrap::LocalJob;

use super::*;
use crate::process::Process;

/// An operation that ends when it is told to, and counts how often it was looked at.
#[derive(Debug, Default)]
struct Told {
    has_ended: AtomicBool,
    looks: AtomicUsize,
}

impl PendingOperation for Told {
    fn is_complete(&self) -> bool {
        self.has_ended.load(SeqCst)
    }

    fn take(&self) -> Option<End> {
        self.looks.fetch_add(1, SeqCst);
        self.is_complete().then_some(End::EMPTY)
    }
}

/// Each request that is freed pays for a few operations, however many are under way, and none stays that has ended.
#[test]
fn a_request_that_is_freed_looks_at_a_few_others() {
    const COUNT: usize = 1000;
    let job = LocalJob::new(1).unwrap();
    let process = Process::open(Box::new(job.member(Rank::new(0))), &[]).unwrap();
    let requests = &process.requests;
    let free = || {
        let told = Arc::<Told>::default();
        let pending = Pending::Operation(Arc::clone(&told) as Arc<dyn PendingOperation>);
        let request = requests.enter(pending, Comm::WORLD).unwrap();
        requests.free(request).unwrap();
        told
    };
    let all: Vec<_> = (0..COUNT).map(|_| free()).collect();
    let looks: usize = all.iter().map(|one| one.looks.load(SeqCst)).sum();
    assert!(looks <= COUNT * ORPHANS_AT_ONCE, "{looks}");
    let kept = || requests.orphans.lock().unwrap().len();
    assert_eq!(kept(), COUNT);
    for one in &all {
        one.has_ended.store(true, SeqCst);
    }
    let later: Vec<_> = (0..COUNT / (ORPHANS_AT_ONCE - 1) + 1)
        .map(|_| free())
        .collect();
    assert!(kept() <= later.len(), "{}", kept());
    for one in &later {
        one.has_ended.store(true, SeqCst);
    }
    requests.abandon(usize::MAX);
    assert_eq!(kept(), 0);
    process.finalize().unwrap();
}
