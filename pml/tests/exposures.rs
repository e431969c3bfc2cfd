//! Receives that their senders fill: whichever way a message takes, it goes to the receive that MPI's order names.
#![cfg(not(loom))]
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    reason = "lends memory; a test that panics fails"
)]

#[path = "common/pair.rs"]
mod pair;

use std::time::Duration;

use pair::{pair, pair_under_dr, pair_with, pair_with_faults};
use tagwire_base::{ContextId, SourceSelector, Tag, TagSelector};
use tagwire_pml::ob1::Ob1Options;
use tagwire_pml::{
    CancelOutcome, Error, Messenger, RequestId, SendMode, Status, ThreadLevel, WaitPolicy,
};
use tagwire_transport::{RecvBuffer, SendBuffer};

const WORLD: ContextId = ContextId::WORLD;
const TAGS: [Tag; 3] = [tag(1), tag(2), tag(3)];
const LONG: usize = 64 << 10;

const fn tag(number: i32) -> Tag {
    Tag::user(number).expect("not negative")
}

fn post(to: &Messenger, place: &mut [u8], from: SourceSelector, tag: TagSelector) -> RequestId {
    // SAFETY: each test ends the receive while `place` is there.
    let room = unsafe { RecvBuffer::contiguous(place.as_mut_ptr(), place.len()) };
    to.irecv(room, from, tag, WORLD).unwrap()
}

fn send(from: &Messenger, to: &Messenger, bytes: &[u8], tag: Tag, mode: SendMode) -> RequestId {
    // SAFETY: each test ends the send while `bytes` are there.
    let data = unsafe { SendBuffer::contiguous(bytes.as_ptr(), bytes.len()) };
    from.isend(data, to.rank(), tag, WORLD, mode).unwrap()
}

/// Drives both until `request` of `of` is complete.
fn finish([a, b]: &[Messenger; 2], of: &Messenger, request: RequestId) -> Status {
    while !of.is_complete(request).unwrap() {
        a.progress().unwrap();
        b.progress().unwrap();
    }
    of.wait(request, None).unwrap()
}

/// Two ranks that have heard of each other.
fn in_contact() -> [Messenger; 2] {
    met(pair(ThreadLevel::Multiple, WaitPolicy::adaptive(true)))
}

/// Has two ranks hear of each other.
fn met(ranks: [Messenger; 2]) -> [Messenger; 2] {
    let [a, b] = &ranks;
    for (from, to) in [(a, b), (b, a)] {
        let mut place = [0; 8];
        let from_it = SourceSelector::exact(from.rank());
        let request = post(to, &mut place, from_it, TagSelector::exact(TAGS[0]));
        let sent = send(from, to, b"contact!", TAGS[0], SendMode::Standard);
        finish(&ranks, to, request);
        finish(&ranks, from, sent);
    }
    ranks
}

#[test]
fn a_long_message_is_there_before_its_receiver_looks() {
    let ranks = in_contact();
    let [a, b] = &ranks;
    let (data, mut place) = (vec![7; LONG], vec![0; LONG]);
    for mode in [SendMode::Standard, SendMode::Synchronous, SendMode::Ready] {
        place.fill(0);
        let from = SourceSelector::exact(a.rank());
        let request = post(b, &mut place, from, TagSelector::exact(TAGS[0]));
        let sent = send(a, b, &data, TAGS[0], mode);
        // The receiver does nothing.
        let status = a.wait(sent, None).unwrap();
        assert_eq!(status.failure, None);
        assert!(place == data);
        let status = finish(&ranks, b, request);
        assert_eq!((status.length, status.failure), (LONG, None));
    }
    assert_eq!(b.statistics().unwrap().counters.filled, 3);
}

/// The bytes may be there before there is room for the envelope.
#[test]
fn a_receive_that_is_filled_hears_of_it_however_busy_the_transport_is() {
    let faults = "seed=5,busy=60%".parse().unwrap();
    let ranks = met(pair_with_faults(&faults));
    let [a, b] = &ranks;
    let from = SourceSelector::exact(a.rank());
    for round in 0..300 {
        let (data, mut place) = (vec![round as u8; LONG], vec![0; LONG]);
        let received = post(b, &mut place, from, TagSelector::exact(TAGS[0]));
        // The sender knows of the receive, mostly.
        for _ in 0..8 {
            a.progress().unwrap();
            b.progress().unwrap();
        }
        let sent = send(a, b, &data, TAGS[0], SendMode::Standard);
        for (of, request) in [(a, sent), (b, received)] {
            let mut turns = 0;
            while !of.is_complete(request).unwrap() {
                a.progress().unwrap();
                b.progress().unwrap();
                turns += 1;
                assert!(turns < 100_000, "round {round}: {}", b.dump().unwrap());
            }
            assert_eq!(of.wait(request, None).unwrap().failure, None);
        }
        assert!(place == data, "round {round}");
    }
    assert!(b.statistics().unwrap().counters.filled > 10);
}

/// Few receives of a rank that waits are exposed. One that begins to compute is helped soon: what its messages find tells, also where they
/// were not exposed.
#[test]
fn a_rank_that_begins_to_compute_is_helped_soon() {
    let ranks = in_contact();
    let [a, b] = &ranks;
    let from = SourceSelector::exact(a.rank());
    let filled = || b.statistics().unwrap().counters.filled;
    let data = vec![7; LONG];
    let exchange = |waits: bool| {
        let mut place = vec![0; LONG];
        let received = post(b, &mut place, from, TagSelector::exact(TAGS[0]));
        if waits {
            let early = b.wait(received, Some(Duration::from_micros(1)));
            assert!(matches!(early, Err(Error::TimedOut(_))), "{early:?}");
        }
        for _ in 0..4 {
            a.progress().unwrap();
        }
        let sent = send(a, b, &data, TAGS[0], SendMode::Standard);
        for _ in 0..4 {
            a.progress().unwrap();
        }
        assert_eq!(finish(&ranks, b, received).failure, None);
        assert_eq!(finish(&ranks, a, sent).failure, None);
        assert!(place == data);
    };
    for _ in 0..300 {
        exchange(true);
    }
    let before = filled();
    exchange(true);
    assert_eq!(filled(), before, "one of many is exposed");
    // One whose message was there by chance says nothing.
    for round in 0..100 {
        exchange(round % 3 != 0);
    }
    assert!(filled() <= before + 1, "{}", filled() - before);
    let before = filled();
    for _ in 0..8 {
        exchange(false);
    }
    assert!(filled() >= before + 4, "{} of 8", filled() - before);
}

#[test]
fn nothing_is_exposed_where_the_user_says_so() {
    let options = Ob1Options {
        exposes: false,
        ..Ob1Options::default()
    };
    let policy = WaitPolicy::adaptive(true);
    let ranks = met(pair_with(options, ThreadLevel::Multiple, policy));
    let [a, b] = &ranks;
    let (data, mut place) = (vec![7; LONG], vec![0; LONG]);
    let from = SourceSelector::exact(a.rank());
    let request = post(b, &mut place, from, TagSelector::exact(TAGS[0]));
    let sent = send(a, b, &data, TAGS[0], SendMode::Standard);
    for _ in 0..100 {
        a.progress().unwrap();
    }
    assert!(!a.is_complete(sent).unwrap());
    finish(&ranks, b, request);
    finish(&ranks, a, sent);
    assert!(place == data);
    assert_eq!(b.statistics().unwrap().counters.filled, 0);
}

#[test]
fn a_message_is_received_whose_sender_has_left_before_its_receiver_looks() {
    let [a, b] = in_contact();
    let (data, mut place) = (vec![7; LONG], vec![0; LONG]);
    let from = SourceSelector::exact(a.rank());
    let request = post(&b, &mut place, from, TagSelector::exact(TAGS[0]));
    let sent = send(&a, &b, &data, TAGS[0], SendMode::Standard);
    a.wait(sent, None).unwrap();
    a.close(Duration::from_secs(10)).unwrap();
    drop(a);
    let status = b.wait(request, None).unwrap();
    assert_eq!((status.length, status.failure), (LONG, None));
    assert!(place == data);
}

/// Its envelope is out before the receive is posted, and its receiver has not looked.
#[test]
fn a_message_that_waits_fills_a_receive_that_comes_later() {
    let ranks = in_contact();
    let [a, b] = &ranks;
    let (data, mut place) = (vec![7; LONG], vec![0; LONG]);
    let sent = send(a, b, &data, TAGS[0], SendMode::Standard);
    assert!(!a.is_complete(sent).unwrap());
    let from = SourceSelector::exact(a.rank());
    let request = post(b, &mut place, from, TagSelector::exact(TAGS[0]));
    finish(&ranks, b, request);
    finish(&ranks, a, sent);
    assert!(place == data);
}

#[test]
fn a_receive_is_cancelled_or_filled() {
    let ranks = in_contact();
    let [a, b] = &ranks;
    let (data, mut place, mut other) = (vec![7; LONG], vec![0; LONG], vec![0; LONG]);
    let (from, tags) = (SourceSelector::exact(a.rank()), TagSelector::exact(TAGS[0]));
    let cancelled = post(b, &mut place, from, tags);
    assert_eq!(b.cancel(cancelled).unwrap(), CancelOutcome::Cancelled);
    assert!(b.wait(cancelled, None).unwrap().cancelled);
    let kept = post(b, &mut other, from, tags);
    let sent = send(a, b, &data, TAGS[0], SendMode::Standard);
    finish(&ranks, b, kept);
    finish(&ranks, a, sent);
    assert!(other == data && place.iter().all(|byte| *byte == 0));

    let filled = post(b, &mut place, from, tags);
    let sent = send(a, b, &data, TAGS[0], SendMode::Standard);
    a.wait(sent, None).unwrap();
    assert_eq!(b.cancel(filled).unwrap(), CancelOutcome::AlreadyMatched);
    let status = finish(&ranks, b, filled);
    assert!(!status.cancelled && place == data);
}

/// A receive that waits, as the oracle knows it.
struct Posted {
    request: RequestId,
    tag: Option<Tag>,
    place: Vec<u8>,
    cancelled: bool,
}

struct Sent {
    request: RequestId,
    tag: Tag,
    data: Vec<u8>,
}

/// Receives of all shapes are posted and cancelled while messages of all lengths come: each message goes to the first receive that
/// was posted and accepts it, and that no message before it has.
#[test]
fn messages_match_in_order_whichever_way_they_take() {
    for seed in 1..=500_u64 {
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut random = |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        let ranks = in_contact();
        let [a, b] = &ranks;
        let (mut posted, mut sent): (Vec<Posted>, Vec<Sent>) = (Vec::new(), Vec::new());
        for _ in 0..60 {
            match random(10) {
                0..=3 => {
                    let any = random(8) == 0;
                    let tag = (random(8) > 0).then(|| TAGS[random(3) as usize]);
                    let tags = tag.map_or(TagSelector::ANY, TagSelector::exact);
                    let from = match any {
                        true => SourceSelector::ANY,
                        false => SourceSelector::exact(a.rank()),
                    };
                    let room = [100, 20_000, 70_000, 200_000][random(4) as usize];
                    let mut place = vec![0xee; room];
                    let request = post(b, &mut place, from, tags);
                    posted.push(Posted {
                        request,
                        tag,
                        place,
                        cancelled: false,
                    });
                }
                4..=6 => {
                    let length = [8, 1000, 20_000, 64 << 10, 150_000][random(5) as usize];
                    let mut data = vec![sent.len() as u8; length];
                    data[..8].copy_from_slice(&(sent.len() as u64).to_le_bytes());
                    let (tag, mode) = (TAGS[random(3) as usize], random(4));
                    let mode = match mode {
                        0 => SendMode::Synchronous,
                        _ => SendMode::Standard,
                    };
                    let request = send(a, b, &data, tag, mode);
                    sent.push(Sent { request, tag, data });
                }
                7 => {
                    a.progress().unwrap();
                }
                8 => {
                    b.progress().unwrap();
                }
                _ if posted.is_empty() => {}
                _ => {
                    let last = posted.len() - 1;
                    let one = &mut posted[last - random(3).min(last as u64) as usize];
                    if !one.cancelled && !b.is_complete(one.request).unwrap() {
                        one.cancelled = b.cancel(one.request).unwrap() == CancelOutcome::Cancelled;
                    }
                }
            }
        }
        // What no receive waits for, and what no message came for.
        let mut taken = vec![None; posted.len()];
        for (number, message) in sent.iter().enumerate() {
            let accepts =
                |one: &Posted| !one.cancelled && one.tag.is_none_or(|tag| tag == message.tag);
            let mut free = posted.iter().zip(&mut taken);
            let first = free.find(|(one, taken)| taken.is_none() && accepts(one));
            match first {
                Some((_, taken)) => *taken = Some(number),
                None => {
                    let mut place = vec![0xee; 200_000];
                    let tag = TagSelector::exact(message.tag);
                    let request = post(b, &mut place, SourceSelector::ANY, tag);
                    posted.push(Posted {
                        request,
                        tag: Some(message.tag),
                        place,
                        cancelled: false,
                    });
                    taken.push(Some(number));
                }
            }
        }
        for (one, taken) in posted.iter().zip(&taken) {
            match taken {
                Some(number) => {
                    let (status, message) = (finish(&ranks, b, one.request), &sent[*number]);
                    let moved = message.data.len().min(one.place.len());
                    assert_eq!(status.length, message.data.len(), "seed {seed}");
                    assert!(one.place[..moved] == message.data[..moved], "seed {seed}");
                    assert!(one.place[moved..].iter().all(|byte| *byte == 0xee));
                }
                None => {
                    if !one.cancelled {
                        let outcome = b.cancel(one.request).unwrap();
                        assert_eq!(outcome, CancelOutcome::Cancelled, "seed {seed}");
                    }
                    assert!(b.wait(one.request, None).unwrap().cancelled, "seed {seed}");
                    assert!(one.place.iter().all(|byte| *byte == 0xee), "seed {seed}");
                }
            }
        }
        for message in &sent {
            if message.request != RequestId::COMPLETE {
                assert_eq!(finish(&ranks, a, message.request).failure, None);
            }
        }
    }
}

/// Under data reliability a rank that closes says who has not acknowledged what it was sent, and which may still have it.
#[test]
fn closing_names_who_has_not_acknowledged() {
    let [a, b] = pair_under_dr(ThreadLevel::Multiple, WaitPolicy::adaptive(true));
    let sent = send(&a, &b, &[7; 8], TAGS[0], SendMode::Standard);
    a.wait(sent, None).unwrap();
    match a.close(Duration::from_millis(50)) {
        Err(Error::CloseDeadline { open, .. }) => {
            assert_eq!(open, "rank 1 has not acknowledged all that was sent to it");
        }
        other => panic!("a close whose peer is away: {other:?}"),
    }
    let mut place = [0; 8];
    let from_it = SourceSelector::exact(a.rank());
    drop(a);
    let request = post(&b, &mut place, from_it, TagSelector::exact(TAGS[0]));
    b.wait(request, None).unwrap();
    assert_eq!(place, [7; 8]);
    b.close(Duration::from_secs(10)).unwrap();
}
