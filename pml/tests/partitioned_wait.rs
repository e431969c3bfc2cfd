//! One wait for several partitioned operations.
#![cfg(not(loom))]
#![allow(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use tagwire_base::{ContextId, Rank, Tag};
use tagwire_conformance::network::MemoryOptions;
use tagwire_conformance::pml::{Job, MatchJob, MatchRails, MemoryJob, RailJob, Rails};
use tagwire_pml::cm::CmOptions;
use tagwire_pml::ob1::Ob1Options;
use tagwire_pml::partitioned::{End, PartitionedRecv, PartitionedSend, Policy, wait_all};
use tagwire_pml::{Error, Messenger, ThreadLevel, WaitPolicy};
use tagwire_transport::shm::{Shm, ShmMatch, ShmOptions};
use tagwire_transport::{ByteTransport, MatchTransport, RecvBuffer, SendBuffer};

const PATIENCE: Option<Duration> = Some(Duration::from_secs(60));
const WORLD: ContextId = ContextId::WORLD;
/// Copied in place over shared memory, by whichever end has time.
const LONG: usize = 1 << 20;

fn jobs(ranks: u32) -> Vec<(&'static str, Arc<dyn Job>)> {
    let memory = |options| {
        let job = MemoryJob::open_with_faults(ranks, options, None, Ob1Options::default());
        Arc::new(job.unwrap()) as Arc<dyn Job>
    };
    let shm = Rails::new(|bootstrap| {
        let shm = Shm::open(ShmOptions::default(), bootstrap);
        Ok(Box::new(shm.map_err(|error| error.to_string())?) as Box<dyn ByteTransport>)
    });
    let shm_cm = MatchRails::new(|bootstrap| {
        let shm = ShmMatch::open(ShmOptions::default(), bootstrap);
        Ok(Box::new(shm.map_err(|error| error.to_string())?) as Box<dyn MatchTransport>)
    });
    let shm = RailJob::open(ranks, shm, Ob1Options::default()).unwrap();
    let shm_cm = MatchJob::open(ranks, shm_cm, CmOptions::default()).unwrap();
    vec![
        ("messages", memory(MemoryOptions::default())),
        ("writes", memory(MemoryOptions::full())),
        ("shm", Arc::new(shm)),
        ("shm, cm", Arc::new(shm_cm)),
    ]
}

fn on_both(job: &Arc<dyn Job>, body: impl Fn(&Arc<Messenger>, Rank) + Sync) {
    std::thread::scope(|scope| {
        for rank in 0..2 {
            let (job, body) = (Arc::clone(job), &body);
            scope.spawn(move || {
                let level = ThreadLevel::Multiple;
                let port = job.port(Rank::new(rank), level, WaitPolicy::adaptive(true));
                let port = Arc::new(port.unwrap());
                body(&port, Rank::new(1 - rank));
                port.close(Duration::from_secs(30)).unwrap();
            });
        }
    });
}

fn send(port: &Arc<Messenger>, data: &[u8], count: u32, to: Rank, number: i32) -> PartitionedSend {
    let tag = Tag::user(number).unwrap();
    // SAFETY: the bytes outlive the operation, and stay as they are within rounds.
    let data = unsafe { SendBuffer::contiguous(data.as_ptr(), data.len()) };
    PartitionedSend::init(port, &data, count, to, tag, WORLD, Policy::Each).unwrap()
}

fn recv(port: &Arc<Messenger>, data: &mut [u8], from: Rank, number: i32) -> PartitionedRecv {
    let tag = Tag::user(number).unwrap();
    // SAFETY: the bytes outlive the operation, and nobody looks at them within rounds.
    let data = unsafe { RecvBuffer::contiguous(data.as_mut_ptr(), data.len()) };
    PartitionedRecv::init(port, &data, 1, from, tag, WORLD).unwrap()
}

fn pattern(rank: Rank, number: usize, len: usize) -> Vec<u8> {
    let first = rank.index() * 101 + number * 17;
    (0..len).map(|at| (first + at / 5 + at) as u8).collect()
}

#[test]
fn all_rounds_of_both_directions_end_in_one_wait() {
    for (name, job) in jobs(2) {
        eprintln!("{name}");
        on_both(&job, |port, other| {
            let lengths = [64, 4096, LONG, 12, LONG / 2];
            let all = || (0..).zip(lengths);
            let out: Vec<Vec<u8>> = all()
                .map(|(number, len)| pattern(port.rank(), number, len))
                .collect();
            let mut into: Vec<Vec<u8>> = lengths.iter().map(|len| vec![0; *len]).collect();
            let sends = || (0..).zip(&out);
            let sends: Vec<_> = sends()
                .map(|(number, data)| send(port, data, 4, other, number))
                .collect();
            let receives: Vec<_> = (0..)
                .zip(&mut into)
                .map(|(number, data)| recv(port, data, other, number))
                .collect();
            let ends = || {
                receives
                    .iter()
                    .map(End::Recv)
                    .chain(sends.iter().map(End::Send))
            };
            let ends: Vec<End<'_>> = ends().collect();
            // Nothing is under way.
            wait_all(&ends, PATIENCE).unwrap();
            wait_all(&[], PATIENCE).unwrap();
            for _ in 0..5 {
                receives.iter().for_each(|end| end.start().unwrap());
                for end in &sends {
                    end.start().unwrap();
                    end.ready_list(&[2, 0, 3, 1]).unwrap();
                }
                wait_all(&ends, PATIENCE).unwrap();
                assert!(!sends.iter().any(PartitionedSend::is_active));
                assert!(!receives.iter().any(PartitionedRecv::is_active));
            }
            drop((sends, receives));
            for (number, data) in into.iter().enumerate() {
                assert!(
                    *data == pattern(other, number, data.len()),
                    "{name} {number}"
                );
            }
        });
    }
}

/// The first in the list is the last to come: what has come of the others is taken in all the same.
#[test]
fn rounds_end_in_any_order() {
    for (name, job) in jobs(2) {
        eprintln!("{name}");
        let (ready, seen) = (Barrier::new(2), Barrier::new(2));
        on_both(&job, |port, other| {
            let data = pattern(Rank::new(0), 0, LONG);
            if port.rank() == Rank::new(0) {
                let (late, early) = (
                    send(port, &data, 2, other, 0),
                    send(port, &data, 2, other, 1),
                );
                late.start().unwrap();
                early.start().unwrap();
                early.ready_range(0..2).unwrap();
                ready.wait();
                while !port_is_idle(port, &early) {}
                seen.wait();
                late.ready_range(0..2).unwrap();
                wait_all(&[End::Send(&early), End::Send(&late)], PATIENCE).unwrap();
            } else {
                let (mut first, mut second) = (vec![0; LONG], vec![0; LONG]);
                let late = recv(port, &mut first, other, 0);
                let early = recv(port, &mut second, other, 1);
                late.start().unwrap();
                early.start().unwrap();
                ready.wait();
                let ends = [End::Recv(&late), End::Recv(&early)];
                let until = Instant::now() + Duration::from_secs(60);
                while early.is_active() {
                    assert!(Instant::now() < until, "{name}: it waits for the first");
                    let waited = wait_all(&ends, Some(Duration::from_millis(2)));
                    assert!(
                        matches!(waited, Err(Error::TimedOut(_))),
                        "{name}: {waited:?}"
                    );
                }
                assert!(late.is_active());
                seen.wait();
                wait_all(&ends, PATIENCE).unwrap();
                drop((late, early));
                assert!(first == data && second == data, "{name}");
            }
        });
    }
}

/// Makes progress, as the sender of what is to arrive has to over some ways; returns whether the round is over.
fn port_is_idle(port: &Messenger, send: &PartitionedSend) -> bool {
    port.progress().unwrap();
    std::thread::yield_now();
    send.test().unwrap()
}

#[test]
fn a_failure_is_told_once_the_others_are_over() {
    for (name, job) in jobs(2) {
        eprintln!("{name}");
        on_both(&job, |port, other| {
            let data = pattern(Rank::new(0), 0, 4096);
            if port.rank() == Rank::new(0) {
                let (bad, good) = (
                    send(port, &data[..64], 1, other, 0),
                    send(port, &data, 1, other, 1),
                );
                good.start().unwrap();
                good.ready(0).unwrap();
                // The receiver's reply may be here already.
                let _ = bad.start();
                let ends = [End::Send(&bad), End::Send(&good)];
                let told = wait_all(&ends, PATIENCE).unwrap_err();
                let is_meant = matches!(told, Error::Mismatch { .. } | Error::BadRound(_));
                assert!(is_meant, "{name}: {told:?}");
                assert!(bad.has_failed() && !good.has_failed() && !good.is_active());
            } else {
                let (mut short, mut room) = (vec![0; 128], vec![0; 4096]);
                let bad = recv(port, &mut short, other, 0);
                let good = recv(port, &mut room, other, 1);
                let _ = bad.start();
                good.start().unwrap();
                let ends = [End::Recv(&bad), End::Recv(&good)];
                wait_all(&ends, PATIENCE).unwrap_err();
                assert!(bad.has_failed() && !good.has_failed() && !good.is_active());
                drop((bad, good));
                assert!(room == data, "{name}");
            }
        });
    }
}

#[test]
fn ends_of_two_ranks_are_refused() {
    let data = [0; 8];
    let open = || {
        let (_, job) = jobs(1).swap_remove(0);
        let policy = WaitPolicy::adaptive(true);
        let port = job.port(Rank::new(0), ThreadLevel::Single, policy);
        Arc::new(port.unwrap())
    };
    let ports = [open(), open()];
    let sends = ports
        .each_ref()
        .map(|port| send(port, &data, 1, Rank::new(0), 0));
    let ends = sends.each_ref().map(End::Send);
    let told = wait_all(&ends, PATIENCE).unwrap_err();
    assert!(matches!(told, Error::WrongRequest(_)), "{told:?}");
    assert!(told.to_string().contains("another rank"), "{told}");
    wait_all(&ends[..1], PATIENCE).unwrap();
}
