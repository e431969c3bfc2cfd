//! Partitioned operations over each kind of way: over a network that has messages only, and over shared
//! memory, by staging and by cross-memory attach, under ob1 and under cm.
#![cfg(not(loom))]
#![allow(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::cell::UnsafeCell;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use tagwire_base::{ContextId, Rank, Tag};
use tagwire_conformance::network::MemoryOptions;
use tagwire_conformance::pml::{Job, MatchJob, MatchRails, MemoryJob, RailJob, Rails};
use tagwire_pml::cm::CmOptions;
use tagwire_pml::ob1::Ob1Options;
use tagwire_pml::partitioned::{PartitionedRecv, PartitionedSend, Policy};
use tagwire_pml::{Error, Failure, Messenger, ThreadLevel, WaitPolicy};
use tagwire_transport::shm::{CrossAttach, Shm, ShmMatch, ShmOptions};
use tagwire_transport::{ByteTransport, MatchTransport, RecvBuffer, SendBuffer};

const PATIENCE: Option<Duration> = Some(Duration::from_secs(60));
const WORLD: ContextId = ContextId::WORLD;

/// Memory of which threads fill and read parts, as the operations allow.
struct Memory(Box<[UnsafeCell<u8>]>);

// SAFETY: a part is written by one thread, before its ready call, and read by those that found it arrived.
unsafe impl Sync for Memory {}

impl Memory {
    fn new(len: usize) -> Self {
        Self((0..len).map(|_| UnsafeCell::new(0)).collect())
    }

    fn send(&self) -> SendBuffer {
        // SAFETY: the memory outlives the operation; a part is not written once it is ready.
        unsafe { SendBuffer::contiguous(self.0.as_ptr().cast(), self.0.len()) }
    }

    fn recv(&self) -> RecvBuffer {
        // SAFETY: the memory outlives the operation; a part is read only once it has arrived.
        unsafe { RecvBuffer::contiguous(self.0.as_ptr().cast_mut().cast(), self.0.len()) }
    }

    /// The cells of partition `place` of `count`, with their places.
    fn part(&self, place: u32, count: u32) -> impl Iterator<Item = (usize, &UnsafeCell<u8>)> {
        let each = self.0.len() / count as usize;
        let cells = self.0.iter().enumerate();
        cells.skip(place as usize * each).take(each)
    }

    /// Fills partition `place` of `count` with the pattern of `epoch`.
    fn fill(&self, epoch: u64, place: u32, count: u32) {
        for (at, cell) in self.part(place, count) {
            // SAFETY: the part is this thread's until it is ready.
            unsafe { cell.get().write(pattern(epoch, at)) };
        }
    }

    /// Checks partition `place` of `count`.
    fn check(&self, epoch: u64, place: u32, count: u32) {
        self.check_room((0, 1), epoch, place, count);
    }

    /// Checks partition `place` of `count` in one of the memory's rooms.
    fn check_room(&self, (room, rooms): (usize, usize), epoch: u64, place: u32, count: u32) {
        let len = self.0.len() / rooms;
        let each = len / count as usize;
        let cells = self.0[room * len..][..len].iter().enumerate();
        for (at, cell) in cells.skip(place as usize * each).take(each) {
            // SAFETY: the part has arrived, and nobody writes it before the next round.
            let found = unsafe { cell.get().read() };
            assert_eq!(
                found,
                pattern(epoch, at),
                "epoch {epoch}, byte {at} of {count} parts"
            );
        }
    }
}

fn pattern(epoch: u64, at: usize) -> u8 {
    (epoch.wrapping_mul(37) as usize + at / 7 + at * 3) as u8
}

/// A small generator, so that a seed is all there is to a run.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % bound
    }

    fn shuffle(&mut self, list: &mut [u32]) {
        for at in (1..list.len()).rev() {
            list.swap(at, self.below(at as u64 + 1) as usize);
        }
    }
}

fn shm(cross_attach: CrossAttach) -> RailJob {
    let rails = Rails::new(move |bootstrap| {
        let options = ShmOptions {
            cross_attach,
            ..ShmOptions::default()
        };
        let shm = Shm::open(options, bootstrap).map_err(|error| error.to_string())?;
        Ok(Box::new(shm) as Box<dyn ByteTransport>)
    });
    RailJob::open(2, rails, Ob1Options::default()).unwrap()
}

fn shm_cm() -> MatchJob {
    let rails = MatchRails::new(move |bootstrap| {
        let shm = ShmMatch::open(ShmOptions::default(), bootstrap);
        Ok(Box::new(shm.map_err(|error| error.to_string())?) as Box<dyn MatchTransport>)
    });
    MatchJob::open(2, rails, CmOptions::default()).unwrap()
}

/// A network in memory, with faults of this kind.
fn memory(options: MemoryOptions, faults: Option<&str>) -> RailJob {
    let faults = faults.map(|spec| spec.parse().unwrap());
    MemoryJob::open_with_faults(2, options, faults, Ob1Options::default()).unwrap()
}

/// One that writes into its peers' memory, with or without notices, in order or who knows.
fn writing(notices: bool, ordered_puts: bool, faults: Option<&str>) -> Arc<dyn Job> {
    let options = MemoryOptions {
        notices,
        ordered_puts,
        ..MemoryOptions::full()
    };
    Arc::new(memory(options, faults))
}

/// The kinds of way that there are.
const MESSAGES: usize = 0;
const SHM: usize = 1;
const SHM_STAGED: usize = 2;
const SHM_CM: usize = 3;
const WRITES: usize = 4;
const FLUSHED: usize = 5;
const FAULTY: usize = 6;
const NOTICES_FAULTY: usize = 7;
const FLAGGED: usize = 8;
const FLAGS_FAULTY: usize = 9;
const ALL: Range<usize> = 0..10;

fn job(kind: usize) -> (&'static str, Arc<dyn Job>) {
    const FAULTS: Option<&str> = Some("seed=9,delay=0..5,reorder=6,busy=20%");
    match kind {
        MESSAGES => ("memory", Arc::new(memory(MemoryOptions::default(), None))),
        SHM => ("shm", Arc::new(shm(CrossAttach::Auto))),
        SHM_STAGED => ("shm without cma", Arc::new(shm(CrossAttach::Off))),
        SHM_CM => ("shm, cm", Arc::new(shm_cm())),
        WRITES => ("writes", writing(true, false, None)),
        FLUSHED => ("flushed writes", writing(false, false, None)),
        FLAGGED => ("writes with flags", writing(false, true, None)),
        FLAGS_FAULTY => ("writes with flags, faults", writing(false, true, FAULTS)),
        FAULTY => ("flushed writes, faults", writing(false, false, FAULTS)),
        _ => ("writes, faults", writing(true, false, FAULTS)),
    }
}

fn jobs() -> Vec<(&'static str, Arc<dyn Job>)> {
    ALL.map(job).collect()
}

/// Runs `body` on both ranks.
fn on_both(job: &Arc<dyn Job>, level: ThreadLevel, body: impl Fn(&Arc<Messenger>) + Sync) {
    std::thread::scope(|scope| {
        for rank in 0..2 {
            let (job, body) = (Arc::clone(job), &body);
            scope.spawn(move || {
                let port = job.port(Rank::new(rank), level, WaitPolicy::adaptive(true));
                let port = Arc::new(port.unwrap());
                body(&port);
                port.close(Duration::from_secs(30)).unwrap();
            });
        }
    });
}

fn tag(number: i32) -> Tag {
    Tag::user(number).unwrap()
}

fn is_sender(port: &Messenger) -> bool {
    port.rank() == Rank::new(0)
}

/// What one run is about.
#[derive(Debug, Clone, Copy)]
struct Case {
    sender: u32,
    receiver: u32,
    bytes: usize,
    policy: Policy,
    threads: u32,
    epochs: u64,
    seed: u64,
    /// The receiver has room for two rounds.
    double: bool,
}

impl Case {
    fn send(self, port: &Arc<Messenger>) {
        let memory = Memory::new(self.bytes);
        let (to, data) = (Rank::new(1), memory.send());
        let send = PartitionedSend::init(port, &data, self.sender, to, tag(3), WORLD, self.policy);
        let send = send.unwrap();
        let mut random = Random(self.seed);
        for epoch in 1..=self.epochs {
            let mut order: Vec<u32> = (0..self.sender).collect();
            random.shuffle(&mut order);
            send.start().unwrap();
            let share = (self.sender as usize).div_ceil(self.threads as usize);
            std::thread::scope(|scope| {
                for (number, list) in order.chunks(share).enumerate() {
                    let (send, memory) = (&send, &memory);
                    let work = move || {
                        for place in list {
                            memory.fill(epoch, *place, self.sender);
                            if number % 2 == 0 {
                                send.ready(*place).unwrap();
                            }
                        }
                        if number % 2 == 1 {
                            send.ready_list(list).unwrap();
                        }
                    };
                    if self.threads == 1 {
                        work();
                    } else {
                        scope.spawn(work);
                    }
                }
            });
            send.wait(PATIENCE).unwrap();
        }
        send.free().unwrap();
        assert!(send.is_settled());
    }

    fn recv(self, port: &Arc<Messenger>) {
        let rooms = 1 + usize::from(self.double);
        let memory = Memory::new(self.bytes * rooms);
        let (from, data) = (Rank::new(0), memory.recv());
        let init = match self.double {
            true => PartitionedRecv::init_double,
            false => PartitionedRecv::init,
        };
        let recv = init(port, &data, self.receiver, from, tag(3), WORLD).unwrap();
        let check = |epoch, place| {
            let room = (recv.room(), rooms);
            memory.check_room(room, epoch, place, self.receiver);
        };
        let mut random = Random(self.seed ^ 99);
        for epoch in 1..=self.epochs {
            recv.start().unwrap();
            let looks = random.below(2 * u64::from(self.receiver));
            for _ in 0..looks {
                let place = random.below(u64::from(self.receiver)) as u32;
                if recv.arrived(place).unwrap() {
                    check(epoch, place);
                }
            }
            if random.below(2) == 0 {
                for place in 0..self.receiver {
                    while !recv.arrived(place).unwrap() {
                        std::thread::yield_now();
                    }
                    check(epoch, place);
                }
            }
            recv.wait(PATIENCE).unwrap();
            for place in 0..self.receiver {
                assert!(recv.arrived(place).unwrap());
                check(epoch, place);
            }
        }
        recv.free().unwrap();
        // Of a buffer for two rounds the sender may write the second until it knows.
        let until = Instant::now() + Duration::from_secs(60);
        while !recv.is_settled() {
            assert!(Instant::now() < until, "the buffer never came back");
            port.progress().unwrap();
        }
    }

    fn run(self, name: &str, job: &Arc<dyn Job>) {
        eprintln!("{name}: {self:?}");
        let ended = AtomicU32::new(0);
        on_both(job, ThreadLevel::Multiple, |port| {
            if is_sender(port) {
                self.send(port);
            } else {
                self.recv(port);
            }
            // Nobody leaves before the other is done: with a message for each partition on cm, a
            // receive that is started after its sender has left may be told so instead of taking
            // what is there.
            ended.fetch_add(1, Ordering::SeqCst);
            let until = Instant::now() + Duration::from_secs(60);
            while ended.load(Ordering::SeqCst) < 2 && Instant::now() < until {
                let _ = port.progress();
                std::thread::yield_now();
            }
        });
    }
}

/// How many times more epochs than usual: `TAGWIRE_CONFORMANCE_ROUNDS`, as for the suite.
fn rounds() -> u64 {
    let given = std::env::var("TAGWIRE_CONFORMANCE_ROUNDS").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(1)
}

fn policies() -> [Policy; 7] {
    [
        "each",
        "default",
        "fixed:3",
        "timer:4096:50",
        "model",
        "single",
        "messages",
    ]
    .map(|text| text.parse().unwrap())
}

#[test]
fn every_byte_arrives_in_every_epoch() {
    let mut random = Random(20_261_121);
    for kind in ALL {
        for policy in policies() {
            let (name, job) = job(kind);
            let (sender, receiver) = (random.below(40) as u32 + 1, random.below(40) as u32 + 1);
            let each = [1, 9, 130, 700][random.below(4) as usize];
            Case {
                sender,
                receiver,
                bytes: sender as usize * receiver as usize * each,
                policy,
                threads: [1, 2, 3][random.below(3) as usize],
                epochs: 30 * rounds(),
                seed: random.below(1 << 30),
                double: random.below(2) == 0,
            }
            .run(name, &job);
        }
    }
}

/// What is copied in place, by both sides.
#[test]
fn long_partitions_arrive_too() {
    for (sender, receiver, bytes, policy) in [
        (32, 32, 1 << 20, Policy::Each),
        (8, 3, 3 << 20, Policy::default()),
        (1, 16, 4 << 20, Policy::default()),
        (16, 1, 1 << 18, Policy::Fixed(5)),
    ] {
        let cases =
            [SHM, SHM_STAGED, WRITES, FLUSHED, FLAGGED].map(|kind| [(kind, false), (kind, true)]);
        for (kind, double) in cases.into_iter().flatten() {
            let (name, job) = job(kind);
            Case {
                sender,
                receiver,
                bytes,
                policy,
                threads: 2,
                epochs: 4 * rounds(),
                seed: 5,
                double,
            }
            .run(name, &job);
        }
    }
}

/// In sum.
#[test]
fn ten_thousand_epochs() {
    for kind in [SHM, WRITES, FAULTY, NOTICES_FAULTY, FLAGS_FAULTY] {
        let mut random = Random(77 + kind as u64);
        for _ in 0..20 {
            let (name, job) = job(kind);
            let (sender, receiver) = (random.below(12) as u32 + 1, random.below(12) as u32 + 1);
            Case {
                sender,
                receiver,
                bytes: (sender * receiver) as usize * [1, 30, 200][random.below(3) as usize],
                policy: policies()[random.below(5) as usize],
                threads: random.below(3) as u32 + 1,
                epochs: 100 * rounds(),
                seed: random.below(1 << 30),
                double: random.below(2) == 0,
            }
            .run(name, &job);
        }
    }
}

/// Makes progress until `done`.
fn keep_up(port: &Messenger, done: &dyn Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < until, "nothing moves");
        port.progress().unwrap();
        std::thread::yield_now();
    }
}

/// A buffer of a dropped operation comes back, whatever the other end is doing, as long as it makes progress.
#[test]
fn buffers_come_back_while_the_other_end_lives_on() {
    for kind in ALL {
        // A long message that is not matched any more would stay with its sender: that rival reports to nobody.
        for (policy, bytes) in [("each", 4000), ("messages", 4000), ("timer:4096:50", 4000)] {
            let (name, job) = job(kind);
            eprintln!("{name}, {policy}");
            let policy: Policy = policy.parse().unwrap();
            let over = AtomicU32::new(0);
            let say_over = || over.fetch_add(1, Ordering::SeqCst);
            let both_over = || over.load(Ordering::SeqCst) == 2;
            on_both(&job, ThreadLevel::Multiple, |port| {
                if is_sender(port) {
                    let (memory, to) = (Memory::new(bytes), Rank::new(1));
                    let send =
                        PartitionedSend::init(port, &memory.send(), 4, to, tag(1), WORLD, policy);
                    let send = send.unwrap();
                    for epoch in 1..=2 {
                        send.start().unwrap();
                        (0..4).for_each(|place| memory.fill(epoch, place, 4));
                        send.ready_range(0..4).unwrap();
                        if epoch == 1 {
                            send.wait(PATIENCE).unwrap();
                        }
                    }
                    // In the middle of the second round, of which the receiver wants the first half.
                    let ending = send.ending();
                    drop(send);
                    keep_up(port, &ending);
                    assert!(ending(), "it stays so");
                    say_over();
                    return keep_up(port, &both_over);
                }
                let (memory, from) = (Memory::new(2 * bytes), Rank::new(0));
                let recv =
                    PartitionedRecv::init_double(port, &memory.recv(), 2, from, tag(1), WORLD);
                let recv = recv.unwrap();
                recv.start().unwrap();
                recv.wait(PATIENCE).unwrap();
                (0..2).for_each(|place| memory.check_room((0, 2), 1, place, 2));
                let ending = recv.ending();
                drop(recv);
                keep_up(port, &ending);
                assert!(ending(), "it stays so");
                say_over();
                keep_up(port, &both_over);
            });
        }
    }
}

/// A receive that is matched, begun and dropped before its sender has heard of any of that.
#[test]
fn a_receive_that_ends_before_its_sender_joins_gets_its_buffer() {
    for (name, job) in jobs() {
        eprintln!("{name}");
        let (gone, over) = (AtomicBool::new(false), AtomicBool::new(false));
        on_both(&job, ThreadLevel::Single, |port| {
            if is_sender(port) {
                let (memory, to) = (Memory::new(4000), Rank::new(1));
                let policy = Policy::Each;
                let send =
                    PartitionedSend::init(port, &memory.send(), 4, to, tag(1), WORLD, policy);
                let send = send.unwrap();
                // The init is out; the sender is elsewhere until the receiver has gone.
                port.progress().unwrap();
                while !gone.load(Ordering::SeqCst) {
                    std::thread::yield_now();
                }
                keep_up(port, &|| over.load(Ordering::SeqCst));
                return drop(send);
            }
            let (memory, from) = (Memory::new(4000), Rank::new(0));
            let recv = PartitionedRecv::init(port, &memory.recv(), 4, from, tag(1), WORLD).unwrap();
            keep_up(port, &|| recv.describe().is_some());
            recv.start().unwrap();
            let ending = recv.ending();
            drop(recv);
            // So that all words are on their way before the sender looks.
            (0..100).for_each(|_| drop(port.progress()));
            gone.store(true, Ordering::SeqCst);
            keep_up(port, &ending);
            over.store(true, Ordering::SeqCst);
        });
    }
}

/// Where the receiver has room for two rounds, the second is over for the sender before the receiver begins
/// it; the third is not.
#[test]
fn a_second_room_takes_the_credit_off_the_way() {
    // What is short goes at once in messages, too; what is long is copied by the sender while it waits.
    for (kind, bytes) in ALL.flat_map(|kind| [(kind, 64), (kind, 1 << 20)]) {
        let (name, job) = job(kind);
        if bytes > 64 && !matches!(kind, SHM | SHM_CM | WRITES | FLUSHED | FLAGGED) {
            continue;
        }
        eprintln!("{name}, {bytes} bytes");
        let (ahead, begun) = (AtomicU32::new(0), AtomicBool::new(false));
        let over = AtomicBool::new(false);
        on_both(&job, ThreadLevel::Single, |port| {
            if is_sender(port) {
                let (memory, to) = (Memory::new(bytes), Rank::new(1));
                let policy = Policy::Each;
                let send =
                    PartitionedSend::init(port, &memory.send(), 4, to, tag(1), WORLD, policy);
                let send = send.unwrap();
                for epoch in 1..=3 {
                    (0..4).for_each(|place| memory.fill(epoch, place, 4));
                    send.start().unwrap();
                    send.ready_range(0..4).unwrap();
                    if epoch == 3 && kind != SHM_STAGED && bytes > 64 {
                        for _ in 0..1000 {
                            assert!(!send.test().unwrap(), "a third room");
                        }
                    }
                    if epoch == 3 {
                        begun.store(true, Ordering::SeqCst);
                    }
                    send.wait(PATIENCE).unwrap();
                    ahead.store(epoch as u32, Ordering::SeqCst);
                }
                return keep_up(port, &|| over.load(Ordering::SeqCst));
            }
            let (memory, from) = (Memory::new(2 * bytes), Rank::new(0));
            let recv =
                PartitionedRecv::init_double(port, &memory.recv(), 4, from, tag(1), WORLD).unwrap();
            recv.start().unwrap();
            recv.wait(PATIENCE).unwrap();
            keep_up(port, &|| ahead.load(Ordering::SeqCst) >= 2);
            keep_up(port, &|| begun.load(Ordering::SeqCst));
            for epoch in 1..=3 {
                if epoch > 1 {
                    recv.start().unwrap();
                    recv.wait(PATIENCE).unwrap();
                }
                assert_eq!(recv.room(), (epoch as usize - 1) % 2);
                (0..4).for_each(|place| memory.check_room((recv.room(), 2), epoch, place, 4));
            }
            over.store(true, Ordering::SeqCst);
            drop(recv);
        });
    }
}

/// What a timer lets go leaves while all threads of the sender are elsewhere.
#[test]
fn a_timer_waits_for_nobody() {
    for (name, job) in jobs() {
        eprintln!("{name}");
        let (seen, see) = std::sync::mpsc::channel::<()>();
        let see = std::sync::Mutex::new(see);
        on_both(&job, ThreadLevel::Multiple, |port| {
            if is_sender(port) {
                let (memory, to) = (Memory::new(4000), Rank::new(1));
                let policy: Policy = "timer:1048576:500".parse().unwrap();
                let send =
                    PartitionedSend::init(port, &memory.send(), 4, to, tag(1), WORLD, policy);
                let send = send.unwrap();
                for epoch in 1..=3 {
                    send.start().unwrap();
                    // Until the ends are matched it takes somebody who makes progress.
                    while send.describe().is_none() {
                        port.progress().unwrap();
                    }
                    (0..4).for_each(|place| memory.fill(epoch, place, 4));
                    send.ready_range(1..3).unwrap();
                    see.lock()
                        .unwrap()
                        .recv_timeout(Duration::from_secs(60))
                        .unwrap();
                    send.ready_list(&[0, 3]).unwrap();
                    send.wait(PATIENCE).unwrap();
                }
                return;
            }
            let (memory, from) = (Memory::new(4000), Rank::new(0));
            let recv = PartitionedRecv::init(port, &memory.recv(), 4, from, tag(1), WORLD).unwrap();
            for epoch in 1..=3 {
                recv.start().unwrap();
                while !(recv.arrived(1).unwrap() && recv.arrived(2).unwrap()) {
                    std::thread::yield_now();
                }
                assert!(!recv.arrived(0).unwrap(), "it is not ready");
                seen.send(()).unwrap();
                recv.wait(PATIENCE).unwrap();
                (0..4).for_each(|place| memory.check(epoch, place, 4));
            }
        });
    }
}

/// Two sends under one tag match two receives in the order of the calls; another tag in between does
/// not matter, nor does which side comes first.
#[test]
fn operations_match_in_order() {
    for (name, job) in jobs() {
        eprintln!("{name}");
        let numbers = [(7, 64), (8, 128), (7, 192), (9, 256)];
        on_both(&job, ThreadLevel::Single, |port| {
            let memories = numbers.map(|(_, bytes)| Memory::new(bytes));
            if is_sender(port) {
                let sends: Vec<_> = numbers
                    .iter()
                    .zip(&memories)
                    .map(|((number, _), memory)| {
                        let policy = Policy::default();
                        let data = memory.send();
                        let to = Rank::new(1);
                        PartitionedSend::init(port, &data, 4, to, tag(*number), WORLD, policy)
                            .unwrap()
                    })
                    .collect();
                for (send, memory) in sends.iter().zip(&memories) {
                    send.start().unwrap();
                    for place in 0..4 {
                        memory.fill(1, place, 4);
                    }
                    send.ready_range(0..4).unwrap();
                }
                for send in &sends {
                    send.wait(PATIENCE).unwrap();
                }
            } else {
                // In another order, but for those of one tag.
                let recvs: Vec<_> = [3, 1, 0, 2]
                    .map(|at: usize| {
                        let from = Rank::new(0);
                        let data = memories[at].recv();
                        let number = tag(numbers[at].0);
                        let recv = PartitionedRecv::init(port, &data, 2, from, number, WORLD);
                        (at, recv.unwrap())
                    })
                    .into();
                for (_, recv) in &recvs {
                    recv.start().unwrap();
                }
                for (at, recv) in &recvs {
                    recv.wait(PATIENCE).unwrap();
                    memories[*at].check(1, 0, 1);
                }
            }
        });
    }
}

/// A rank that only asks for partitions of what it sends itself: nobody waits or tests.
#[test]
fn looking_alone_moves_everything_on() {
    for (name, job) in jobs() {
        eprintln!("{name}");
        on_both(&job, ThreadLevel::Single, |port| {
            let (out, into) = (Memory::new(64), Memory::new(64));
            let (own, policy) = (port.rank(), Policy::Fixed(2));
            let recv = PartitionedRecv::init(port, &into.recv(), 2, own, tag(1), WORLD).unwrap();
            recv.start().unwrap();
            let send = PartitionedSend::init(port, &out.send(), 4, own, tag(1), WORLD, policy);
            let send = send.unwrap();
            send.start().unwrap();
            (0..4).for_each(|place| out.fill(1, place, 4));
            send.ready_range(0..4).unwrap();
            while !(recv.arrived(0).unwrap() && recv.arrived(1).unwrap()) {}
            into.check(1, 0, 1);
            recv.wait(PATIENCE).unwrap();
            send.wait(PATIENCE).unwrap();
        });
    }
}

#[test]
fn misuse_is_told() {
    for (name, job) in jobs() {
        eprintln!("{name}");
        on_both(&job, ThreadLevel::Single, |port| {
            let memory = Memory::new(64);
            let (data, policy) = (memory.send(), Policy::Each);
            if is_sender(port) {
                let make = |count| {
                    PartitionedSend::init(port, &data, count, Rank::new(1), tag(1), WORLD, policy)
                };
                assert!(matches!(make(0), Err(Error::BadPartitions { .. })));
                assert!(matches!(make(3), Err(Error::BadPartitions { .. })));
                let send = make(4).unwrap();
                assert!(matches!(send.ready(0), Err(Error::BadRound(_))));
                assert!(send.test().unwrap());
                send.start().unwrap();
                assert!(matches!(send.start(), Err(Error::BadRound(_))));
                assert!(matches!(send.free(), Err(Error::BadRound(_))));
                send.ready(1).unwrap();
                assert!(send.is_ready(1) && !send.is_ready(2));
                for (partition, list) in [(1, &[1][..]), (4, &[4]), (1, &[2, 1])] {
                    match send.ready_list(list) {
                        Err(Error::BadPartition {
                            partition: told, ..
                        }) => {
                            assert_eq!(told, partition);
                        }
                        other => panic!("{list:?}: {other:?}"),
                    }
                }
                send.ready_list(&[0, 3]).unwrap();
                send.wait(PATIENCE).unwrap();
                let way = send.describe().unwrap();
                let expected = match name {
                    "memory" => "a message for each of 4 partitions",
                    "writes" | "writes, faults" => {
                        "sim: written into place; each write tells the receiver"
                    }
                    "writes with flags" | "writes with flags, faults" => {
                        "sim: written into place, and a flag behind it"
                    }
                    name if name.starts_with("shm") => "shm: ",
                    _ => "sim: written into place and flushed",
                };
                let way = way.replace("fault: ", "sim: ");
                assert!(way.starts_with(expected), "{name}: {way}");
                assert!(matches!(send.ready(0), Err(Error::BadRound(_))));
                send.free().unwrap();
                assert!(matches!(send.start(), Err(Error::BadRound(_))));
            } else {
                let recv = |bytes: &Memory| {
                    PartitionedRecv::init(port, &bytes.recv(), 2, Rank::new(0), tag(1), WORLD)
                };
                let good = recv(&memory).unwrap();
                assert!(good.arrived(0).unwrap());
                good.start().unwrap();
                assert!(matches!(good.arrived(2), Err(Error::BadPartition { .. })));
                assert!(matches!(good.free(), Err(Error::BadRound(_))));
                good.wait(PATIENCE).unwrap();
            }
        });
    }
}

#[test]
fn sizes_that_differ_are_told_on_both_sides() {
    for (name, job) in jobs() {
        eprintln!("{name}");
        on_both(&job, ThreadLevel::Single, |port| {
            let memory = Memory::new(if is_sender(port) { 64 } else { 128 });
            let other = Rank::new(1 - port.rank().as_u32());
            let error = if is_sender(port) {
                let data = memory.send();
                let policy = Policy::default();
                let send =
                    PartitionedSend::init(port, &data, 4, other, tag(1), WORLD, policy).unwrap();
                let _ = send.start();
                send.wait(PATIENCE).and_then(|()| send.start()).unwrap_err()
            } else {
                let data = memory.recv();
                let recv = PartitionedRecv::init(port, &data, 4, other, tag(1), WORLD).unwrap();
                match recv.start().and_then(|()| recv.wait(PATIENCE)) {
                    Err(error) => error,
                    Ok(()) => panic!("it arrived"),
                }
            };
            match error {
                Error::Mismatch { sent, received } => assert_eq!((sent, received), (64, 128)),
                // The start itself was told, and the operation is over.
                Error::BadRound(_) if is_sender(port) => {}
                other => panic!("{other:?}"),
            }
        });
    }
}

#[test]
fn a_wait_can_time_out_and_goes_on() {
    for (name, job) in jobs() {
        eprintln!("{name}");
        let met = Barrier::new(2);
        on_both(&job, ThreadLevel::Single, |port| {
            let memory = Memory::new(64);
            let soon = Some(Duration::from_millis(5));
            if is_sender(port) {
                let data = memory.send();
                let policy = Policy::default();
                let to = Rank::new(1);
                let send =
                    PartitionedSend::init(port, &data, 2, to, tag(1), WORLD, policy).unwrap();
                send.start().unwrap();
                send.ready(0).unwrap();
                assert!(matches!(send.wait(soon), Err(Error::TimedOut(_))));
                met.wait();
                send.ready(1).unwrap();
                send.wait(PATIENCE).unwrap();
            } else {
                let data = memory.recv();
                let recv =
                    PartitionedRecv::init(port, &data, 1, Rank::new(0), tag(1), WORLD).unwrap();
                recv.start().unwrap();
                assert!(matches!(recv.wait(soon), Err(Error::TimedOut(_))));
                assert!(!recv.arrived(0).unwrap());
                met.wait();
                recv.wait(PATIENCE).unwrap();
            }
        });
    }
}

/// Either end dies in the middle of a round: the other's wait ends, and nothing counts as arrived.
#[test]
fn a_wait_ends_when_the_peer_dies() {
    for kind in [
        MESSAGES,
        SHM_STAGED,
        WRITES,
        FLUSHED,
        FLAGGED,
        NOTICES_FAULTY,
    ] {
        for victim in [0, 1] {
            let (name, job) = job(kind);
            eprintln!("{name}, rank {victim} dies");
            let (begun, dead) = (Barrier::new(2), Barrier::new(2));
            let run = |rank: u32| {
                let policy = WaitPolicy::adaptive(true);
                let port = job.port(Rank::new(rank), ThreadLevel::Single, policy);
                let port = Arc::new(port.unwrap());
                let memory = Memory::new(64);
                let other = Rank::new(1 - rank);
                let soon = Some(Duration::from_millis(20));
                let die = || {
                    std::mem::forget(Arc::clone(&port));
                    job.kill(Rank::new(rank), Box::new(()));
                };
                let failed = |ended: Result<(), Error>| {
                    let told = matches!(
                        ended,
                        Err(Error::Failed(Failure::PeerFailed(rank))) if rank == other
                    );
                    assert!(told, "{ended:?}");
                };
                if rank == 0 {
                    let data = memory.send();
                    let send =
                        PartitionedSend::init(&port, &data, 4, other, tag(1), WORLD, Policy::Each);
                    let send = send.unwrap();
                    send.start().unwrap();
                    send.ready(2).unwrap();
                    assert!(matches!(send.wait(soon), Err(Error::TimedOut(_))));
                    begun.wait();
                    if victim == rank {
                        std::mem::forget(send);
                        die();
                    } else {
                        failed(send.wait(PATIENCE));
                        assert!(send.has_failed() && send.start().is_err());
                        assert!(send.ready(3).is_err() && send.wait(PATIENCE).is_err());
                    }
                } else {
                    let data = memory.recv();
                    let recv = PartitionedRecv::init(&port, &data, 4, other, tag(1), WORLD);
                    let recv = recv.unwrap();
                    recv.start().unwrap();
                    assert!(matches!(recv.wait(soon), Err(Error::TimedOut(_))));
                    begun.wait();
                    if victim == rank {
                        std::mem::forget(recv);
                        die();
                    } else {
                        failed(recv.wait(PATIENCE));
                        assert!(recv.has_failed() && recv.start().is_err());
                        assert!(recv.arrived(0).is_err(), "it never came");
                        assert!(recv.wait(PATIENCE).is_err());
                    }
                }
                dead.wait();
            };
            std::thread::scope(|scope| {
                scope.spawn(|| run(0));
                scope.spawn(|| run(1));
            });
        }
    }
}

/// Each rank sends what the other receives, under numbers that each counts for itself: of one channel on
/// this side, and two on the other.
#[test]
fn channels_go_both_ways() {
    for kind in ALL {
        for policy in [Policy::Each, Policy::Messages(u32::MAX)] {
            let (name, job) = job(kind);
            eprintln!("{name}, {policy}");
            on_both(&job, ThreadLevel::Single, |port| {
                let other = Rank::new(1 - port.rank().as_u32());
                let channels = |rank: u32| match rank {
                    0 => vec![(4, 64)],
                    _ => vec![(1, 8), (1, 240)],
                };
                let memories = |rank: u32| -> Vec<_> {
                    let all = channels(rank).into_iter();
                    all.map(|(_, bytes)| Memory::new(bytes)).collect()
                };
                let (out, into) = (memories(port.rank().as_u32()), memories(other.as_u32()));
                let sends: Vec<_> = channels(port.rank().as_u32())
                    .into_iter()
                    .zip(&out)
                    .map(|((count, _), memory)| {
                        let data = memory.send();
                        PartitionedSend::init(port, &data, count, other, tag(1), WORLD, policy)
                            .unwrap()
                    })
                    .collect();
                let recvs: Vec<_> = into
                    .iter()
                    .map(|memory| {
                        let data = memory.recv();
                        PartitionedRecv::init(port, &data, 2, other, tag(1), WORLD).unwrap()
                    })
                    .collect();
                for epoch in 1..=5 {
                    recvs.iter().for_each(|recv| recv.start().unwrap());
                    for (send, memory) in sends.iter().zip(&out) {
                        send.start().unwrap();
                        memory.fill(epoch, 0, 1);
                        send.ready_range(0..send.partitions()).unwrap();
                    }
                    for (recv, memory) in recvs.iter().zip(&into) {
                        recv.wait(PATIENCE).unwrap();
                        memory.check(epoch, 0, 1);
                    }
                    sends.iter().for_each(|send| send.wait(PATIENCE).unwrap());
                }
            });
        }
    }
}

/// A send that is given up before its receiver has been heard of: the receiver is told.
#[test]
fn a_send_that_never_joined_is_told_of() {
    for kind in ALL.filter(|kind| *kind != MESSAGES) {
        let (name, job) = job(kind);
        eprintln!("{name}");
        let (met, told) = (Barrier::new(2), AtomicBool::new(false));
        on_both(&job, ThreadLevel::Single, |port| {
            let memory = Memory::new(64);
            if is_sender(port) {
                let (data, to, policy) = (memory.send(), Rank::new(1), Policy::Each);
                let send = PartitionedSend::init(port, &data, 4, to, tag(1), WORLD, policy);
                drop(send.unwrap());
                met.wait();
                let until = Instant::now() + Duration::from_secs(60);
                while !told.load(Ordering::SeqCst) && Instant::now() < until {
                    port.progress().unwrap();
                    std::thread::yield_now();
                }
            } else {
                met.wait();
                let data = memory.recv();
                let recv = PartitionedRecv::init(port, &data, 4, Rank::new(0), tag(1), WORLD);
                let recv = recv.unwrap();
                recv.start().unwrap();
                let ended = recv.wait(PATIENCE);
                assert!(matches!(ended, Err(Error::BadRound(_))), "{ended:?}");
                told.store(true, Ordering::SeqCst);
            }
        });
    }
}

/// A policy that goes by what the way costs has it measured, and says what came of that.
#[test]
fn costs_are_measured_and_told() {
    for (name, job) in jobs() {
        eprintln!("{name}");
        on_both(&job, ThreadLevel::Single, |port| {
            let memory = Memory::new(1 << 16);
            if is_sender(port) {
                let told = ["model", "model:0:7:1000000"].map(|policy| {
                    let (to, policy) = (Rank::new(1), policy.parse().unwrap());
                    let data = memory.send();
                    let send = PartitionedSend::init(port, &data, 16, to, tag(1), WORLD, policy);
                    let send = send.unwrap();
                    send.start().unwrap();
                    send.ready_range(0..16).unwrap();
                    send.wait(PATIENCE).unwrap();
                    send.describe().unwrap()
                });
                assert!(told[0].contains(" ns each and "), "{told:?}");
                let given = "; 1 of them, for 7 ns each and 1000000 ps a byte";
                assert!(told[1].ends_with(given), "{told:?}");
            } else {
                for _ in 0..2 {
                    let data = memory.recv();
                    let recv = PartitionedRecv::init(port, &data, 2, Rank::new(0), tag(1), WORLD);
                    let recv = recv.unwrap();
                    recv.start().unwrap();
                    recv.wait(PATIENCE).unwrap();
                }
            }
        });
    }
}

/// An end that is dropped in the middle of a round takes the other's hope, not its thread.
#[test]
fn an_end_that_is_dropped_is_told() {
    for kind in ALL.filter(|kind| *kind != MESSAGES) {
        for sender_drops in [true, false] {
            let (name, job) = job(kind);
            eprintln!("{name}: {sender_drops}");
            let met = Barrier::new(2);
            on_both(&job, ThreadLevel::Single, |port| {
                let memory = Memory::new(64 << 10);
                let soon = Some(Duration::from_millis(20));
                let wait_for_the_other = || {
                    // What this end has said leaves with the rank's progress.
                    for _ in 0..2000 {
                        port.progress().unwrap();
                    }
                    met.wait();
                    // Until it was told: that this rank leaves the job is another story.
                    met.wait();
                };
                let told = |outcome| match outcome {
                    Err(Error::BadRound(what)) => assert!(what.contains("given up"), "{what}"),
                    other => panic!("{other:?}"),
                };
                if is_sender(port) {
                    let (to, policy) = (Rank::new(1), Policy::Each);
                    let send =
                        PartitionedSend::init(port, &memory.send(), 4, to, tag(1), WORLD, policy);
                    let send = send.unwrap();
                    send.start().unwrap();
                    send.ready_range(0..3).unwrap();
                    assert!(matches!(send.wait(soon), Err(Error::TimedOut(_))));
                    met.wait();
                    if sender_drops {
                        drop(send);
                        wait_for_the_other();
                    } else {
                        met.wait();
                        told(send.wait(PATIENCE));
                        met.wait();
                        assert!(send.is_settled());
                    }
                } else {
                    let from = Rank::new(0);
                    let recv = PartitionedRecv::init(port, &memory.recv(), 2, from, tag(1), WORLD);
                    let recv = recv.unwrap();
                    recv.start().unwrap();
                    assert!(matches!(recv.wait(soon), Err(Error::TimedOut(_))));
                    met.wait();
                    if sender_drops {
                        met.wait();
                        told(recv.wait(PATIENCE));
                        met.wait();
                        assert!(recv.is_settled());
                    } else {
                        drop(recv);
                        wait_for_the_other();
                    }
                }
            });
        }
    }
}
