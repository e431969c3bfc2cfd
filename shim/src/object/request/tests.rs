//! Requests that are freed while their operations are under way, and those that there is no room for.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use tagwire_base::bootstrap::LocalJob;
use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_pml::SendMode;
use tagwire_transport::{RecvBuffer, SendBuffer};

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
    let kept = || requests.orphans.lock().len();
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

/// Nothing stays of what was started where the table is full: a receive would take a message that another one waits for.
#[test]
fn what_there_is_no_room_for_is_ended() {
    let job = LocalJob::new(1).unwrap();
    let process = Process::open(Box::new(job.member(Rank::new(0))), &[]).unwrap();
    let (requests, messenger) = (&process.requests, &process.messenger);
    let (me, tag, context) = (Rank::new(0), Tag::user(1).unwrap(), ContextId::WORLD);
    let receive = || {
        let (from, tag) = (SourceSelector::ANY, TagSelector::exact(tag));
        let posted = messenger.irecv(RecvBuffer::EMPTY, from, tag, context);
        posted.unwrap()
    };
    let first = receive();
    requests.revoke(Pending::Recv(first, None)).unwrap();
    assert!(messenger.take(first).is_err(), "it is no more");

    let second = receive();
    let mode = SendMode::Synchronous;
    let sent = messenger.isend(SendBuffer::EMPTY, me, tag, context, mode);
    let sent = sent.unwrap();
    requests.revoke(Pending::Send(sent)).unwrap();
    assert!(messenger.take(sent).is_err(), "it is no more");
    messenger.wait(second, None).unwrap();

    let told = Arc::<Told>::default();
    requests.revoke(Pending::Operation(told.clone())).unwrap();
    assert_eq!(requests.orphans.lock().len(), 1);
    told.has_ended.store(true, SeqCst);
    requests.abandon(1);
    assert_eq!(requests.orphans.lock().len(), 0);
    process.finalize().unwrap();
}

#[test]
fn a_communicator_has_requests_until_they_are_freed() {
    let job = LocalJob::new(1).unwrap();
    let process = Process::open(Box::new(job.member(Rank::new(0))), &[]).unwrap();
    let requests = &process.requests;
    let are_of = || [Comm::WORLD, Comm::SELF].map(|comm| requests.are_of(comm));
    assert_eq!(are_of(), [false, false]);
    let request = requests.enter(Pending::Sent, Comm::WORLD).unwrap();
    assert_eq!(are_of(), [true, false]);
    requests.free(request).unwrap();
    assert_eq!(are_of(), [false, false]);
    process.finalize().unwrap();
}
