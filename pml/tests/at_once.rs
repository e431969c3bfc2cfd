//! Which ways messages take over shared memory: the short ones of the thread that opened a rank say so where there is more to be
//! done than they do.
#![cfg(not(loom))]
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    reason = "lends memory; a test that panics fails"
)]

#[path = "common/pair.rs"]
mod pair;

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use pair::{pair, pair_of};
use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_pml::{Failure, Messenger, RequestId, SendMode, ThreadLevel, WaitPolicy};
use tagwire_transport::shm::{CopyWay, ShmOptions};
use tagwire_transport::{Pack, RecvBuffer, SendBuffer};

const WORLD: ContextId = ContextId::WORLD;
const TAG: Tag = Tag::user(7).expect("not negative");

fn post(to: &Messenger, place: &mut [u8], from: &Messenger) -> RequestId {
    // SAFETY: each test ends the receive while `place` is there.
    let room = unsafe { RecvBuffer::contiguous(place.as_mut_ptr(), place.len()) };
    let source = SourceSelector::exact(from.rank());
    to.irecv(room, source, TagSelector::exact(TAG), WORLD)
        .unwrap()
}

fn send(from: &Messenger, to: &Messenger, bytes: &[u8]) {
    // SAFETY: the send is complete before this function returns.
    let data = unsafe { SendBuffer::contiguous(bytes.as_ptr(), bytes.len()) };
    let sent = from.isend(data, to.rank(), TAG, WORLD, SendMode::Standard);
    let sent = sent.unwrap();
    while !from.is_complete(sent).unwrap() {
        from.progress().unwrap();
        to.progress().unwrap();
    }
    from.wait(sent, None).unwrap();
}

/// A stream of messages that are received one by one, and lie in the ring: each meets the receive that waits for it.
#[test]
fn who_waits_for_one_message_leaves_the_others_where_they_are() {
    const MESSAGES: u64 = 20;
    let [a, b] = &pair(ThreadLevel::Multiple, WaitPolicy::adaptive(true));
    let mut place = [0; 8];
    let first = post(b, &mut place, a);
    send(a, b, b"contact!");
    b.wait(first, None).unwrap();

    for number in 0..MESSAGES {
        // It goes into the ring as it is posted.
        let bytes = number.to_le_bytes();
        // SAFETY: a short send is complete when it is posted, as is checked.
        let data = unsafe { SendBuffer::contiguous(bytes.as_ptr(), bytes.len()) };
        let sent = a.isend(data, b.rank(), TAG, WORLD, SendMode::Standard);
        assert_eq!(sent.unwrap(), RequestId::COMPLETE);
    }
    let before = b.statistics().unwrap().counters.unexpected_short;
    for number in 0..MESSAGES {
        let request = post(b, &mut place, a);
        b.wait(request, None).unwrap();
        assert_eq!(u64::from_le_bytes(place), number);
    }
    assert_eq!(b.statistics().unwrap().counters.unexpected_short, before);
}

#[test]
fn a_request_is_pending_until_its_message_is_there() {
    let [a, b] = &pair(ThreadLevel::Multiple, WaitPolicy::adaptive(true));
    let mut place = [0; 8];
    // First contact.
    let first = post(b, &mut place, a);
    send(a, b, b"contact!");
    b.wait(first, None).unwrap();

    let request = post(b, &mut place, a);
    let at_once = b.at_once();
    // More calls than there are between two looks at the clock.
    for _ in 0..100 {
        assert!(at_once.is_pending(request));
        assert!(at_once.has_nothing(SourceSelector::ANY, WORLD));
    }
    assert_eq!(at_once.wait(request, |_| ()), None);
    send(a, b, b"8 bytes.");
    assert!(!at_once.is_pending(request));
    assert!(!at_once.has_nothing(SourceSelector::ANY, WORLD));
    let length = at_once.wait(request, |status| status.length);
    assert_eq!((length, &place), (Some(8), b"8 bytes."));
    // It is none any more.
    assert!(!at_once.is_pending(request));
    assert_eq!(at_once.wait(request, |_| ()), None);
    assert!(at_once.has_nothing(SourceSelector::ANY, WORLD));
}

#[test]
fn a_message_that_nobody_expects_is_something() {
    let [a, b] = &pair(ThreadLevel::Multiple, WaitPolicy::adaptive(true));
    send(a, b, b"8 bytes.");
    let found = loop {
        let has_nothing = b.at_once().has_nothing(SourceSelector::ANY, WORLD);
        let found = b.probe(SourceSelector::ANY, TagSelector::ANY, WORLD);
        if let Some(found) = found.unwrap() {
            assert!(!has_nothing);
            break found;
        }
    };
    assert_eq!(found.length, 8);
    // It was delivered, and lies there.
    assert!(!b.at_once().has_nothing(SourceSelector::ANY, WORLD));
    let mut place = [0; 8];
    let request = post(b, &mut place, a);
    assert!(!b.at_once().is_pending(request));
    assert_eq!(b.wait(request, None).unwrap().length, 8);
    assert!(b.at_once().has_nothing(SourceSelector::ANY, WORLD));
}

#[test]
fn who_only_asks_hears_of_a_peer_that_ends() {
    let [a, b] = pair(ThreadLevel::Multiple, WaitPolicy::adaptive(true));
    let mut place = [0; 8];
    let first = post(&b, &mut place, &a);
    send(&a, &b, b"contact!");
    b.wait(first, None).unwrap();
    let request = post(&b, &mut place, &a);
    drop(a);
    while b.at_once().is_pending(request) {}
    let ended = loop {
        if let Some(ended) = b.test(request).unwrap() {
            break ended;
        }
    };
    assert_eq!(ended.failure, Some(Failure::PeerFailed(Rank::new(0))));
}

#[test]
fn another_thread_has_no_short_way() {
    let [a, b] = &pair(ThreadLevel::Multiple, WaitPolicy::adaptive(true));
    let mut place = [0; 8];
    let request = post(b, &mut place, a);
    let asked = || {
        let at_once = b.at_once();
        (
            at_once.is_pending(request),
            at_once.has_nothing(SourceSelector::ANY, WORLD),
            at_once.wait(request, |_| ()),
        )
    };
    let elsewhere = std::thread::scope(|scope| scope.spawn(asked).join().unwrap());
    assert_eq!(elsewhere, (false, false, None));
    assert!(b.at_once().pass());
    b.cancel(request).unwrap();
    b.wait(request, None).unwrap();
}

/// Past one packet, bytes that the receiver gets at by a mapping are copied once; others go eagerly up to 16 KiB.
#[test]
fn shared_buffers_are_copied_once_past_a_packet() {
    let [a, b] = &pair(ThreadLevel::Multiple, WaitPolicy::adaptive(true));
    let allocation = a.allocate(32 << 10).unwrap();
    let mut shared = allocation.expect("shared memory is there");
    shared.bytes_mut().fill(7);
    let own = vec![7; 32 << 10];
    let mut place = vec![0; 32 << 10];
    // Bytes, and whether a message of so many is long: of memory that is shared, and of other memory.
    let ways = [
        (8 << 10, false, false),
        ((8 << 10) + 1, true, false),
        (16 << 10, true, false),
        ((16 << 10) + 1, true, true),
    ];
    for (length, of_shared, of_own) in ways {
        for (data, is_long) in [(shared.bytes(), of_shared), (&own[..], of_own)] {
            let before = a.statistics().unwrap().counters.sent_long;
            place.fill(0);
            let request = post(b, &mut place[..length], a);
            send(a, b, &data[..length]);
            b.wait(request, None).unwrap();
            assert!(place[..length].iter().all(|byte| *byte == 7));
            let long = a.statistics().unwrap().counters.sent_long - before;
            assert_eq!(long == 1, is_long, "{length} bytes");
        }
    }
}

/// Sends `data` into `place`, whose receive waits. Returns whether it was a long message.
fn pass(from: &Messenger, to: &Messenger, data: &[u8], place: &mut [u8], mode: SendMode) -> bool {
    let before = from.statistics().unwrap().counters.sent_long;
    let received = post(to, place, from);
    // SAFETY: the send ends before this function returns.
    let bytes = unsafe { SendBuffer::contiguous(data.as_ptr(), data.len()) };
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

/// Long messages go ahead of their match where they are known to go through the ring: one of 32 is offered; the others are no long messages. Each arrives whole.
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
fn synchronous_sends_and_other_ways_do_not_go_ahead() {
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

/// A message of so many sevens, which counts how often it is packed.
struct Sevens<'c>(usize, &'c AtomicUsize);

impl Pack for Sevens<'_> {
    fn len(&self) -> usize {
        self.0
    }

    fn pack(&self, offset: usize, out: &mut [u8]) {
        assert!(offset + out.len() <= self.0);
        self.1.fetch_add(1, Relaxed);
        out.fill(7);
    }
}

/// What has gaps is packed once it is known to go: not for a peer without contact, nor where it is long, nor without room.
#[test]
fn what_cannot_go_at_once_is_not_packed() {
    let [a, b] = &pair(ThreadLevel::Multiple, WaitPolicy::adaptive(true));
    let packs = &AtomicUsize::new(0);
    let send_packed = |length| {
        a.at_once()
            .send_packed(&Sevens(length, packs), b.rank(), TAG, WORLD)
    };
    assert!(!send_packed(8), "no contact yet");
    let mut place = [0; 2000];
    let first = post(b, &mut place[..8], a);
    send(a, b, b"contact!");
    b.wait(first, None).unwrap();
    assert!(!send_packed(1 << 20), "too long");
    assert_eq!(packs.load(Relaxed), 0);

    for length in [8, 2000] {
        place.fill(0);
        let request = post(b, &mut place[..length], a);
        assert!(send_packed(length));
        b.wait(request, None).unwrap();
        assert!(place[..length].iter().all(|byte| *byte == 7));
    }

    packs.store(0, Relaxed);
    let sent = (0..1 << 20).take_while(|_| send_packed(8)).count();
    assert!(sent < 1 << 20, "there is always room");
    assert_eq!(packs.load(Relaxed), sent);
    for _ in 0..sent {
        let request = post(b, &mut place[..8], a);
        b.wait(request, None).unwrap();
    }
}
