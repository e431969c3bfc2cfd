//! Messages that go ahead of their match over shared memory, where their bytes would go through the ring anyway.
#![cfg(not(loom))]
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    reason = "lends memory; a test that panics fails"
)]

#[path = "common/pair.rs"]
mod pair;

use pair::pair_of;
use tagwire_base::{ContextId, SourceSelector, Tag, TagSelector};
use tagwire_pml::{Messenger, SendMode};
use tagwire_transport::shm::{CopyWay, ShmOptions};
use tagwire_transport::{RecvBuffer, SendBuffer};

const WORLD: ContextId = ContextId::WORLD;
const TAG: Tag = Tag::user(7).expect("not negative");

/// Sends `data` into `place`, whose receive waits. Returns whether it was a long message.
fn pass(from: &Messenger, to: &Messenger, data: &[u8], place: &mut [u8], mode: SendMode) -> bool {
    let before = from.statistics().unwrap().counters.sent_long;
    // SAFETY: both requests end before this function returns.
    let (bytes, room) = unsafe {
        (
            SendBuffer::contiguous(data.as_ptr(), data.len()),
            RecvBuffer::contiguous(place.as_mut_ptr(), place.len()),
        )
    };
    let (source, tag) = (SourceSelector::exact(from.rank()), TagSelector::exact(TAG));
    let received = to.irecv(room, source, tag, WORLD).unwrap();
    let sent = from.isend(bytes, to.rank(), TAG, WORLD, mode).unwrap();
    while !(from.is_complete(sent).unwrap() && to.is_complete(received).unwrap()) {
        // Who waits claims as soon as the envelope is there.
        to.progress().unwrap();
        from.progress().unwrap();
    }
    from.wait(sent, None).unwrap();
    assert_eq!(to.wait(received, None).unwrap().length, data.len());
    from.statistics().unwrap().counters.sent_long != before
}

/// Two ranks whose long messages go one way.
fn by(way: CopyWay) -> [Messenger; 2] {
    pair_of(ShmOptions {
        way: Some(way),
        ..ShmOptions::default()
    })
}

fn bytes(len: usize, seed: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (at * 7 + at / 251 + seed) as u8)
        .collect()
}

/// Once they are known to go through the ring, one of 32 is offered; the others are no long messages. Each arrives whole.
#[test]
fn what_goes_through_the_ring_goes_ahead() {
    let [a, b] = &by(CopyWay::Ring);
    for len in [40_000, 60_000, 200_001] {
        let mut place = vec![0; len];
        let mut long = 0;
        for round in 0..200 {
            let (from, to) = if round % 2 == 0 { (a, b) } else { (b, a) };
            let data = bytes(len, round);
            long += usize::from(pass(from, to, &data, &mut place, SendMode::Standard));
            assert!(place == data, "{len}, {round}");
        }
        assert!((2..60).contains(&long), "{long} of {len}");
    }
}

/// Whoever waits for the match is not answered before it, and by the kernel's copies no message goes ahead.
#[test]
fn synchronous_sends_and_other_ways_do_not() {
    for (way, mode) in [
        (CopyWay::Ring, SendMode::Synchronous),
        (CopyWay::Halves, SendMode::Standard),
    ] {
        let [a, b] = &by(way);
        let mut place = vec![0; 60_000];
        for round in 0..60 {
            let data = bytes(60_000, round);
            assert!(pass(a, b, &data, &mut place, mode), "{way:?}, {round}");
            assert!(place == data);
        }
    }
}
