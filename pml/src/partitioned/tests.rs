//! Ends that are given up while their rank is in a call: every turn is set by the test.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::sync::Arc;

use tagwire_base::bootstrap::LocalJob;
use tagwire_base::{ContextId, Rank, Tag};
use tagwire_transport::shm::{Shm, ShmOptions};

use super::held::Held;
use super::{PartitionedRecv, PartitionedSend, Policy};
use crate::guard::ThreadLevel;
use crate::messenger::Messenger;
use crate::ob1::{Ob1, Ob1Options};
use crate::wait::WaitPolicy;

const OWN: Rank = Rank::new(0);
const TAG: Tag = Tag::user(7).expect("not negative");
const WORLD: ContextId = ContextId::WORLD;

/// A rank alone, with shared memory; this thread is its owner.
fn rank(level: ThreadLevel) -> Arc<Messenger> {
    let job = LocalJob::new(1).unwrap();
    let mut bootstrap = Box::new(job.member(OWN));
    let shm = Shm::open(ShmOptions::default(), &mut *bootstrap).unwrap();
    let ob1 = Ob1::open(&Ob1Options::default(), Box::new(shm), bootstrap).unwrap();
    Arc::new(Messenger::new(ob1, level, WaitPolicy::adaptive(true)))
}

/// A send of the rank to itself. Its memory stays for good.
fn send(port: &Arc<Messenger>) -> PartitionedSend {
    let (_data, from) = Held::for_sends(vec![1u8; 4096].into_boxed_slice());
    PartitionedSend::init(port, &from, 1, OWN, TAG, WORLD, Policy::Each).unwrap()
}

fn recv(port: &Arc<Messenger>) -> PartitionedRecv {
    let (_room, to) = Held::for_receives(vec![0u8; 4096].into_boxed_slice());
    PartitionedRecv::init(port, &to, 1, OWN, TAG, WORLD).unwrap()
}

fn on_another_thread<T: Send>(body: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|threads| threads.spawn(body).join().unwrap())
}

/// The owner may be copying what was posted, from which nobody else can keep it, nor wait for it.
#[test]
fn a_send_is_not_settled_by_who_cannot_wait_for_the_owner() {
    for level in [ThreadLevel::Single, ThreadLevel::Funneled] {
        let port = rank(level);
        let (recv, send) = (recv(&port), send(&port));
        recv.start().unwrap();
        send.start().unwrap();
        while send.describe().is_none() {
            port.progress().unwrap();
        }
        let way = send.describe().unwrap();
        assert!(way.contains("control block"), "{way}");
        let is_settled = send.ending();
        on_another_thread(move || drop(send));
        let inside = port.call(|_| Ok((on_another_thread(&is_settled), is_settled())));
        assert_eq!(inside.unwrap(), (false, false));
        assert!(
            !on_another_thread(&is_settled),
            "the owner may call any time"
        );
        assert!(is_settled());
    }
}

/// The same for one that no receiver has replied to.
#[test]
fn nor_is_one_that_was_not_matched() {
    let port = rank(ThreadLevel::Single);
    let send = send(&port);
    let is_settled = send.ending();
    on_another_thread(move || drop(send));
    let inside = port.call(|_| Ok((on_another_thread(&is_settled), is_settled())));
    assert_eq!(inside.unwrap(), (false, false));
    assert!(is_settled());
    // The receiver that comes late is told that nobody does.
    let recv = recv(&port);
    recv.start().unwrap();
    let ended = recv.wait(Some(std::time::Duration::from_secs(60)));
    assert!(ended.is_err_and(|error| !matches!(error, crate::Error::TimedOut(_))));
}
