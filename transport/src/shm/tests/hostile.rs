//! Peers that do not belong here, and peers that write nonsense.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::cooperative::{CooperativeTransfers, Offer, Ticket};
use crate::data::{RecvBuffer, SendBuffer};
use crate::shm::layout::AREA;
use crate::transport::Transport;

#[test]
fn who_does_not_know_the_secret_is_refused() {
    let options = ShmOptions::default();
    let (job, other) = (LocalJob::new(2).unwrap(), LocalJob::new(2).unwrap());
    let (mut target, mut stranger) = (open(&job, 0, &options), open(&other, 1, &options));
    let to = connect(&mut stranger, &target);
    assert_eq!(
        stranger.send(to, Class::Data, 1, b"let me in"),
        Post::Posted
    );
    for _ in 0..4 {
        target.progress();
        stranger.progress();
    }
    assert!(target.log.messages.is_empty());
    assert!(target.log.ups.is_empty());
    let [(None, reason)] = &target.log.protocol[..] else {
        panic!("{:?}", target.log.protocol);
    };
    assert!(reason.contains("secret"), "{reason}");
    assert!(matches!(&stranger.log.protocol[..], [(Some(at), _)] if *at == to));
    assert_eq!(stranger.send(to, Class::Data, 2, b"please"), Post::Gone);
    // It costs nothing further.
    assert!(target.shm.inbound.is_empty());
    assert_eq!(target.progress(), 0);
}

#[test]
fn a_wrong_version_or_rank_is_refused() {
    for spoil in [0, 1] {
        let job = LocalJob::new(3).unwrap();
        let options = ShmOptions::default();
        let (mut a, mut b) = (open(&job, 0, &options), open(&job, 1, &options));
        let to = connect(&mut b, &a);
        let area = b.shm.peers[to.index()].outbound.clone().unwrap();
        let word = [&area.hello.magic, &area.hello.rank][spoil];
        word.store(
            word.load(Ordering::Relaxed) ^ 2 << (spoil * 55),
            Ordering::Relaxed,
        );
        let word = &area.hello.rank;
        if spoil == 1 {
            word.store(2 | 3 << 32, Ordering::Relaxed);
        }
        a.progress();
        assert!(
            matches!(&a.log.protocol[..], [(None, _)]),
            "{:?}",
            a.log.protocol
        );
        assert!(a.log.ups.is_empty());
    }
}

#[test]
fn an_area_is_used_by_one_sender_only() {
    let job = LocalJob::new(2).unwrap();
    let options = ShmOptions::default();
    let a = open(&job, 0, &options);
    let mut first = open(&job, 1, &options);
    connect(&mut first, &a);
    let mut second = open(&job, 1, &options);
    let error = second
        .shm
        .connect(Rank::new(0), &a.shm.address())
        .unwrap_err();
    assert!(error.to_string().contains("used before"), "{error}");
}

#[test]
fn addresses_are_checked() {
    let job = LocalJob::new(2).unwrap();
    let options = ShmOptions::default();
    let (mut a, b) = (open(&job, 0, &options), open(&job, 1, &options));
    let good = b.shm.address();
    let mut numbers = Numbers(11);
    for _ in 0..2000 {
        let mut bad = good.clone();
        let at = numbers.below(8 * bad.len() as u64);
        bad[at as usize / 8] ^= 1 << (at % 8);
        assert!(a.shm.connect(Rank::new(1), &bad).is_err(), "bit {at}");
    }
    assert!(a.shm.connect(Rank::new(1), &good[..63]).is_err());
    assert!(a.shm.connect(Rank::new(0), &good).is_err());
    assert!(a.shm.connect(Rank::new(1), &good).is_ok());
}

#[test]
fn a_corrupt_slot_ends_that_peer_alone() {
    let job = LocalJob::new(3).unwrap();
    let options = ShmOptions::default();
    let mut a = open(&job, 0, &options);
    let (mut b, mut c) = (open(&job, 1, &options), open(&job, 2, &options));
    let (from_b, from_c) = (connect(&mut b, &a), connect(&mut c, &a));
    assert_eq!(b.send(from_b, Class::Data, 1, b"good"), Post::Posted);
    a.progress();
    let area = b.shm.peers[from_b.index()].outbound.clone().unwrap();
    // Stamp right, length of 65535.
    area.slots[1].words[0].store(2 | 1 << 32 | 0xffff << 48, Ordering::Release);
    a.progress();
    assert_eq!(a.log.messages.len(), 1);
    assert!(
        matches!(&a.log.protocol[..], [(Some(EndpointId(0)), reason)] if reason.contains("rank 1")),
        "{:?}",
        a.log.protocol
    );
    assert_eq!(a.send(EndpointId(0), Class::Data, 1, b""), Post::Gone);
    assert_eq!(c.send(from_c, Class::Data, 7, b"alive"), Post::Posted);
    a.progress();
    assert_eq!(a.log.messages[1].1, 7);
}

#[test]
fn impossible_stamps_and_credits_are_found_in_time() {
    let (mut a, mut b, to_b, _) = pair(&ShmOptions::default());
    let area = a.shm.peers[to_b.index()].outbound.clone().unwrap();
    area.slots[0].words[0].store(77, Ordering::Release);
    b.progress();
    assert!(b.log.protocol.is_empty());
    b.look_after_peers();
    assert_eq!(b.log.protocol.len(), 1, "{:?}", b.log.protocol);
    area.credit.word.store(1 << 20, Ordering::Release);
    assert_eq!(a.log.protocol.len(), 0);
    a.look_after_peers();
    assert_eq!(a.log.protocol.len(), 1, "{:?}", a.log.protocol);
}

/// A log that takes anything.
#[derive(Default)]
struct Anything {
    protocol: usize,
    others: usize,
}

impl Upcalls for Anything {
    fn deliver(&mut self, arrival: Arrival<'_>) {
        assert!(arrival.payload.to_vec().len() <= 8192);
    }
    fn complete(&mut self, _: Token, _: Outcome) {}
    fn peer(&mut self, event: PeerEvent) {
        match event {
            PeerEvent::Protocol(..) => self.protocol += 1,
            _ => self.others += 1,
        }
    }
}

/// All words of both areas of a pair, as its hostile member sees them.
fn words(area: &crate::shm::segment::AreaMap) -> Vec<&AtomicU64> {
    let mut words = Vec::with_capacity(AREA / 8);
    words.extend([&area.answer.word, &area.credit.word, &area.admission.state]);
    words.push(&area.payload_state.word);
    words.extend(&area.admission.secret);
    for line in &area.offers {
        words.extend([&line.offered, &line.made, &line.made_len, &line.joined]);
        words.extend([
            &line.joined_len,
            &line.claims,
            &line.finished,
            &line.claimed,
        ]);
    }
    for slot in &area.slots {
        words.extend(&slot.words);
    }
    words
}

/// A peer that knows the secret, and writes random words everywhere while transfers are open.
#[test]
fn garbage_gives_protocol_errors_and_nothing_else() {
    let mut found = 0;
    for seed in 0..60 {
        let (mut a, b, to_b, _) = pair(&ShmOptions::default());
        let mut numbers = Numbers(seed);
        let (source, mut target) = (vec![1; 200_000], vec![0; 200_000]);
        let area_out = a.shm.peers[to_b.index()].outbound.clone().unwrap();
        let area_in = a.shm.peers[to_b.index()].inbound.clone().unwrap();
        // SAFETY: both live until the end of the round, when nobody copies any more.
        let (send, receive) = unsafe {
            (
                SendBuffer::contiguous(source.as_ptr(), source.len()),
                RecvBuffer::contiguous(target.as_mut_ptr(), target.len()),
            )
        };
        let mut log = Anything::default();
        for round in 0..300 {
            for area in [&area_in, &area_out] {
                let words = words(area);
                for _ in 0..1 + numbers.below(60) {
                    let word = words[numbers.below(words.len() as u64) as usize];
                    // Small values are the dangerous ones; addresses of others are kept out, so
                    // that the test does not harm its own process, which is its peer.
                    let value = numbers.next() >> numbers.below(64);
                    word.store(value & 0x0000_00ff_ffff_ffff, Ordering::SeqCst);
                }
                for line in &area.offers {
                    // In the arena, or beyond it, or where nothing is.
                    let in_arena = numbers.below(2) << 63;
                    let mut name = || numbers.next() >> (24 + numbers.below(40));
                    let (source, target) = match in_arena {
                        0 => (name() % 4096, name() % 4096),
                        bit => (bit | name(), bit | name()),
                    };
                    line.made.store(source, Ordering::Relaxed);
                    line.joined.store(target, Ordering::Relaxed);
                }
            }
            let _ = a.send(to_b, Class::Data, round, &[0; 60]);
            if let Offer::Open(_) = a.shm.offer(LANE, to_b, &send, Token(1)) {}
            let ticket = Ticket([numbers.below(64) | numbers.below(4) << 32, numbers.next()]);
            let _ = a.shm.claim(LANE, to_b, ticket, &receive, Token(2));
            a.shm.progress(LANE, &mut log);
            if round % 7 == 0 {
                a.shm.look_after_peers(&mut log);
            }
        }
        assert!(log.protocol <= 1, "one peer is ended once");
        assert_eq!(log.others, 0);
        found += log.protocol;
        assert!(target.iter().all(|byte| *byte == 0), "written by nobody");
        drop((a, b));
    }
    assert!(found > 30, "garbage was found in {found} of 60 rounds only");
}

#[test]
fn impossible_claims_end_the_peer() {
    let (mut a, b, to_b, to_a) = pair(&ShmOptions::default());
    let mut b = b;
    let (source, mut target) = (vec![1; 1 << 20], vec![0; 1 << 20]);
    // SAFETY: both outlive the ranks' use of them.
    let (send, receive) = unsafe {
        (
            SendBuffer::contiguous(source.as_ptr(), source.len()),
            RecvBuffer::contiguous(target.as_mut_ptr(), target.len()),
        )
    };
    let Offer::Open(ticket) = a.shm.offer(LANE, to_b, &send, Token(1)) else {
        panic!("no offer")
    };
    assert_eq!(
        b.shm.claim(LANE, to_a, ticket, &receive, Token(2)),
        Post::Posted
    );
    let area = a.shm.peers[to_b.index()].outbound.clone().unwrap();
    area.offers[0].claims.store(9 | 3 << 32, Ordering::SeqCst);
    b.progress();
    assert!(
        matches!(&b.log.protocol[..], [(Some(at), reason)] if *at == to_a && reason.contains("claims")),
        "{:?}",
        b.log.protocol
    );
}
