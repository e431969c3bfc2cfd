//! What only shared memory has: matching senders that die, in processes of their own. The test program
//! runs itself again as rank 1.
#![allow(unsafe_code, clippy::unwrap_used)]

mod arena;

use std::cell::Cell;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use tagwire_base::bootstrap::LocalJob;
use tagwire_base::{Bootstrap, Error, JobSecret, Locality, ManualClock, MemberEvent, Rank, Result};

use super::layout::{INITIAL, UNIT};
use super::visit::Point;
use super::{ShmMatch, lock};
use crate::data::{RecvBuffer, SendBuffer};
use crate::fault::SplitMix64;
use crate::matching::{
    Cancel, Found, MatchPattern, MatchTransport, MatchUpcalls, Posted, ReceiveEnd, Sent,
};
use crate::message::{AmHeader, EndpointId, Lane, Outcome, PeerEvent, Token};
use crate::shm::ShmOptions;
use crate::shm::config::{CrossAttach, DescriptorWay};
use crate::transport::Transport;

const PART: &str = "SHM_MATCH_TEST_PART";
const ADDRESS: &str = "SHM_MATCH_TEST_ADDRESS";
const SECRET: &str = "SHM_MATCH_TEST_SECRET";
const PATIENCE: Duration = Duration::from_secs(20);
const LANE: Lane = Lane(0);
const LONG: usize = 1 << 20;

thread_local! {
    /// Where the sender dies, and the how many-th time that it gets there.
    static DEATH: Cell<Option<(Point, u32)>> = const { Cell::new(None) };
}

/// The matching sender has come to a point.
pub(super) fn reach(point: Point) {
    let Some((fatal, times)) = DEATH.get() else {
        return;
    };
    if fatal == point {
        if times <= 1 {
            die();
        }
        DEATH.set(Some((fatal, times - 1)));
    }
}

fn die() -> ! {
    let own = rustix::process::getpid();
    rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap();
    loop {
        std::thread::sleep(PATIENCE);
    }
}

/// Just what a rank must know.
struct Given {
    rank: u32,
    secret: JobSecret,
}

impl Bootstrap for Given {
    fn rank(&self) -> Rank {
        Rank::new(self.rank)
    }
    fn size(&self) -> u32 {
        2
    }
    fn locality(&self) -> Locality {
        Locality {
            local_rank: self.rank,
            local_size: 2,
            first_local: Rank::new(0),
            address: None,
        }
    }
    fn secret(&self) -> &JobSecret {
        &self.secret
    }
    fn put(&mut self, _: &str, _: &[u8]) -> Result<()> {
        Ok(())
    }
    fn get(&mut self, _: Rank, _: &str, _: Duration) -> Result<Vec<u8>> {
        Err(Error::Bootstrap("there is no store".to_owned()))
    }
    fn fence(&mut self, _: Duration) -> Result<()> {
        Ok(())
    }
    fn put_descriptor(&mut self, _: BorrowedFd<'_>) -> Result<()> {
        Ok(())
    }
    fn get_descriptor(&mut self, _: Rank, _: Duration) -> Result<OwnedFd> {
        Err(Error::Bootstrap("there is no store".to_owned()))
    }
    fn poll_events(&mut self) -> Vec<MemberEvent> {
        Vec::new()
    }
    fn leave(&mut self) {}
}

#[derive(Default)]
struct Log {
    sent: Vec<(u64, Outcome)>,
    received: Vec<(u64, ReceiveEnd)>,
    failed: Vec<EndpointId>,
    /// What peers did that no correct one does.
    broken: Vec<String>,
}

impl MatchUpcalls for Log {
    fn sent(&mut self, token: Token, outcome: Outcome) {
        self.sent.push((token.0, outcome));
    }
    fn received(&mut self, token: Token, end: ReceiveEnd) {
        self.received.push((token.0, end));
    }
    fn probed(&mut self, _: Token, _: Option<Found>) {}
    fn peer(&mut self, event: PeerEvent) {
        match event {
            PeerEvent::Failed(endpoint) => self.failed.push(endpoint),
            PeerEvent::Protocol(_, error) => self.broken.push(error.to_string()),
            _ => {}
        }
    }
}

/// A rank, what it was told, and the memory it has lent, which is never freed: the test ends
/// with the process.
struct Member {
    shm: ShmMatch,
    log: Log,
    /// Posted receives have their memory in the arena.
    in_arena: bool,
}

impl Member {
    fn open(rank: u32, secret: JobSecret, options: ShmOptions) -> Self {
        Self::over(ShmMatch::open(options, &mut Given { rank, secret }).unwrap())
    }

    fn over(shm: ShmMatch) -> Self {
        Self {
            shm,
            log: Log::default(),
            in_arena: false,
        }
    }

    fn send(&mut self, to: EndpointId, bits: u64, len: usize) -> Sent {
        let memory: &'static [u8] = vec![bits as u8; len].leak();
        // SAFETY: the memory is never freed.
        let data = unsafe { SendBuffer::contiguous(memory.as_ptr(), len) };
        self.shm.send(LANE, to, bits, &data, false, Token(bits))
    }

    /// Posts a receive for messages with these bits, from anybody.
    fn post(&mut self, bits: u64, len: usize, token: u64) -> &'static [Cell<u8>] {
        let memory: &'static mut [u8] = if self.in_arena {
            let memory = self.shm.allocate(len).unwrap();
            Box::leak(Box::new(memory)).bytes_mut()
        } else {
            vec![0; len].leak()
        };
        // SAFETY: the memory is never freed, and only looked at through the cells.
        let data = unsafe { RecvBuffer::contiguous(memory.as_mut_ptr(), len) };
        let pattern = MatchPattern {
            bits,
            ignore: 0,
            source: None,
        };
        match self.shm.post(LANE, pattern, &data, Token(token)) {
            Posted::Done(end) => self.log.received.push((token, end)),
            Posted::Open => {}
            other => panic!("a receive was answered {other:?}"),
        }
        Cell::from_mut(memory).as_slice_of_cells()
    }

    fn progress(&mut self) {
        self.shm.progress(LANE, &mut self.log);
    }

    fn until(&mut self, what: &str, done: impl Fn(&Log) -> bool) {
        let start = Instant::now();
        while !done(&self.log) {
            assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
            self.progress();
            self.shm.look_after_peers(&mut self.log);
            std::thread::yield_now();
        }
    }

    fn ends_of(&self, token: u64) -> Vec<ReceiveEnd> {
        let ends = self.log.received.iter();
        ends.filter(|(other, _)| *other == token)
            .map(|(_, end)| *end)
            .collect()
    }
}

/// Opens rank 0 here and has it post; then starts rank 1, which plays `part`, with the same options.
fn with_child(part: &str, way: Copying, post: impl FnOnce(&mut Member)) -> (Member, Child) {
    let secret = JobSecret::generate().unwrap();
    let mut parent = Member::open(0, secret.clone(), way.options());
    parent.in_arena = way == Copying::Arena;
    post(&mut parent);
    let address = parent.shm.address();
    let address: String = address.iter().map(|byte| format!("{byte:02x}")).collect();
    let child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "shm::matching::tests::plays_its_part",
            "--nocapture",
        ])
        .env(PART, format!("{way:?} {part}"))
        .env(ADDRESS, address)
        .env(SECRET, secret.to_hex())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    (parent, child)
}

/// How long messages get to the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copying {
    /// By cross-memory attach.
    Attach,
    /// Through its arena, and by nothing else.
    Arena,
}

impl Copying {
    fn options(self) -> ShmOptions {
        match self {
            Self::Attach => ShmOptions::default(),
            Self::Arena => arena::mapped_only(),
        }
    }
}

const POINTS: [Point; 6] = [
    Point::Locked,
    Point::Matched,
    Point::Claimed,
    Point::Landed,
    Point::Dealt,
    Point::Taken,
];

/// What the child does; in the parent's run of the tests, nothing.
#[test]
fn plays_its_part() {
    let Ok(part) = std::env::var(PART) else {
        return;
    };
    let hex = std::env::var(ADDRESS).unwrap();
    let address: Vec<u8> = (0..hex.len() / 2)
        .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
        .collect();
    let secret = JobSecret::from_hex(&std::env::var(SECRET).unwrap()).unwrap();
    let (way, part) = part.split_once(' ').unwrap();
    let way = [Copying::Attach, Copying::Arena]
        .into_iter()
        .find(|known| format!("{known:?}") == way)
        .unwrap();
    let mut own = Member::open(1, secret, way.options());
    let to = own.shm.connect(Rank::new(0), &address).unwrap();
    if part == "copy" {
        arena::copy_and_die(own, to);
    }
    if part == "receive" {
        for token in 0..1000 {
            own.post(9000 + token, 64, token);
        }
        // Contact, so that the parent can send; and then no word any more.
        assert_eq!(own.send(to, 1, 8), Sent::Done);
        let start = Instant::now();
        while own.log.received.len() < 10 {
            assert!(start.elapsed() < PATIENCE);
            own.progress();
        }
        die();
    }
    let (point, times) = part.split_once(' ').unwrap();
    let point = POINTS
        .into_iter()
        .find(|known| format!("{known:?}") == point)
        .unwrap();
    DEATH.set(Some((point, times.parse().unwrap())));
    // Posted, posted for a long buffer, for nobody, long.
    assert_eq!(own.send(to, 1, 8), Sent::Done);
    assert_eq!(own.send(to, 2, 5000), Sent::Done);
    assert_eq!(own.send(to, 3, 100), Sent::Done);
    assert_eq!(own.send(to, 4, LONG), Sent::Open);
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        own.progress();
    }
    // The point was never reached: the parent sees an exit instead of a death.
}

/// A matching sender dies at a point of its work, the receiver not looking. What it had sent is received,
/// each message once; its long one ends with it; and matching goes on.
fn a_visitor_dies(point: Point, times: u32) {
    a_visitor_dies_by(Copying::Attach, point, times);
    a_visitor_dies_by(Copying::Arena, point, times);
}

fn a_visitor_dies_by(way: Copying, point: Point, times: u32) {
    let mut memory = None;
    let (mut parent, mut child) = with_child(&format!("{point:?} {times}"), way, |parent| {
        let first = parent.post(1, 8, 101);
        let second = parent.post(2, 6000, 102);
        memory = Some((first, second));
        parent.post(4, LONG, 104);
        parent.post(99, 8, 199);
    });
    let status = child.wait().unwrap();
    assert!(
        !status.success(),
        "{point:?} {times}: the point was not reached"
    );
    parent.until("the failure", |log| !log.failed.is_empty());
    let third = parent.post(3, 100, 103);
    for _ in 0..100 {
        parent.progress();
    }
    let (first, second) = memory.unwrap();
    for (token, memory, bits, len) in [
        (101, first, 1, 8),
        (102, second, 2, 5000),
        (103, third, 3, 100),
    ] {
        let ends = parent.ends_of(token);
        let [ReceiveEnd::Matched(envelope, Outcome::Done(moved))] = ends[..] else {
            panic!("{point:?} {times}: the receive of {len} bytes ended {ends:?}");
        };
        assert_eq!((envelope.bits, envelope.length, moved), (bits, len, len));
        assert!(memory[..len as usize].iter().all(|b| b.get() == bits as u8));
    }
    match parent.ends_of(104)[..] {
        [ReceiveEnd::Matched(_, Outcome::PeerFailed)] => {}
        [] => {
            let answer = parent.shm.cancel(LANE, Token(104));
            assert_eq!(answer, Cancel::Cancelled, "{point:?} {times}");
        }
        ref ends => panic!("{point:?} {times}: the long receive ended {ends:?}"),
    }
    // Nothing is there twice ...
    for bits in 1..=4 {
        parent.post(bits, 8, 200 + bits);
        let answer = parent.shm.cancel(LANE, Token(200 + bits));
        assert_eq!(answer, Cancel::Cancelled, "{point:?} {times}: {bits} again");
    }
    // ... and the list works.
    let address = parent.shm.address();
    let own = parent.shm.connect(Rank::new(0), &address).unwrap();
    assert_eq!(parent.send(own, 99, 8), Sent::Done);
    parent.until("a message to oneself", |log| {
        log.received.iter().any(|(token, _)| *token == 199)
    });
}

#[test]
fn visitors_die_with_the_lock() {
    for times in 1..=2 {
        a_visitor_dies(Point::Locked, 1);
        a_visitor_dies(Point::Matched, times);
    }
}

#[test]
fn visitors_die_between_a_receive_and_the_ring() {
    for times in 1..=3 {
        a_visitor_dies(Point::Landed, times);
    }
    a_visitor_dies(Point::Claimed, 1);
}

#[test]
fn visitors_die_between_a_message_and_the_ring() {
    for times in 1..=4 {
        a_visitor_dies(Point::Dealt, times);
        a_visitor_dies(Point::Taken, times);
    }
}

/// A receiver dies with its list full of receives; the sender is told, and goes on.
#[test]
fn a_receiver_dies_with_its_list_full() {
    let (mut parent, mut child) = with_child("receive", Copying::Attach, |parent| {
        parent.post(1, 8, 101);
    });
    parent.until("contact", |log| !log.received.is_empty());
    let to = parent.shm.shm.by_rank[&Rank::new(1)];
    let mut open = 0;
    for bits in 0..10 {
        open += usize::from(parent.send(to, 9000 + bits, 64) == Sent::Open);
    }
    let start = Instant::now();
    while !matches!(child.try_wait(), Ok(Some(_))) {
        assert!(start.elapsed() < PATIENCE);
        parent.progress();
    }
    // Some of them for receives of the dead; a long one; more than is allowed.
    for bits in 0..400 {
        match parent.send(to, 9010 + bits, if bits == 0 { LONG } else { 64 }) {
            Sent::Open => open += 1,
            Sent::Done | Sent::Gone => {}
            other => panic!("a send was answered {other:?}"),
        }
    }
    parent.until("the failure", |log| !log.failed.is_empty());
    parent.until("the ends", |log| log.sent.len() >= open);
    assert!(
        parent
            .log
            .sent
            .iter()
            .all(|(_, outcome)| matches!(outcome, Outcome::PeerFailed | Outcome::Done(_)))
    );
    assert_eq!(parent.send(to, 1, 8), Sent::Gone);
    let address = parent.shm.address();
    let own = parent.shm.connect(Rank::new(0), &address).unwrap();
    parent.post(99, 8, 199);
    assert_eq!(parent.send(own, 99, 8), Sent::Done);
    parent.until("a message to oneself", |log| {
        log.received.iter().any(|(token, _)| *token == 199)
    });
}

/// Who lacks descriptors or memory cannot ask for the bytes of a message that has matched: it asks later, and takes its
/// sender for gone no more than the sender is.
#[test]
fn bytes_are_asked_for_after_a_shortage() {
    let job = LocalJob::new(2).unwrap();
    let options = ShmOptions {
        cross_attach: CrossAttach::Off,
        ..ShmOptions::default()
    };
    let open = |rank| {
        let bootstrap = &mut job.member(Rank::new(rank));
        Member::over(ShmMatch::open(options.clone(), bootstrap).unwrap())
    };
    let (mut receiver, mut sender) = (open(0), open(1));
    receiver.shm.shm.options.descriptor = DescriptorWay::Passed;
    let short = || Error::system("take a descriptor", rustix::io::Errno::MFILE);
    receiver
        .shm
        .shm
        .set_descriptor_source(move |_| Err(short()));
    let address = receiver.shm.address();
    let to = sender.shm.connect(Rank::new(0), &address).unwrap();
    let memory = receiver.post(7, LONG, 107);
    assert_eq!(sender.send(to, 7, LONG), Sent::Open);
    for _ in 0..100 {
        sender.progress();
        receiver.progress();
        receiver.shm.look_after_peers(&mut receiver.log);
    }
    assert!(receiver.ends_of(107).is_empty() && receiver.log.failed.is_empty());

    receiver.shm.shm.options.descriptor = DescriptorWay::Auto;
    let start = Instant::now();
    while receiver.ends_of(107).is_empty() {
        assert!(start.elapsed() < PATIENCE, "waited in vain for the bytes");
        sender.progress();
        receiver.progress();
    }
    assert!(matches!(
        receiver.ends_of(107)[..],
        [ReceiveEnd::Matched(_, Outcome::Done(len))] if len == LONG as u64
    ));
    assert!(memory.iter().all(|byte| byte.get() == 7));
}

/// What a peer was allowed that has died is allowed to others.
#[test]
fn the_allowance_of_the_dead_is_given_out_again() {
    let job = LocalJob::new(3).unwrap();
    let options = ShmOptions {
        headers: 300,
        ..ShmOptions::default()
    };
    let open = |rank| {
        let bootstrap = &mut job.member(Rank::new(rank));
        Member::over(ShmMatch::open(options.clone(), bootstrap).unwrap())
    };
    let (mut receiver, mut first, mut second) = (open(0), open(1), open(2));
    let address = receiver.shm.address();
    let to = first.shm.connect(Rank::new(0), &address).unwrap();
    for bits in 0..8 {
        assert_eq!(first.send(to, bits, 8), Sent::Done);
    }
    for _ in 0..10 {
        receiver.progress();
        first.progress();
    }
    drop(first);
    receiver.until("the failure", |log| !log.failed.is_empty());
    let to = second.shm.connect(Rank::new(0), &address).unwrap();
    let mut done = 0;
    for bits in 0..290 {
        done += usize::from(second.send(to, bits, 8) == Sent::Done);
        receiver.progress();
        second.progress();
    }
    done += second.log.sent.len();
    assert!(done > 250, "only {done} of 290 messages were allowed");
}

/// The payload ring goes back in silence, as where ranks do not match, whoever of both has read it.
#[test]
fn payload_rings_are_given_back() {
    let (clock, job) = (ManualClock::default(), LocalJob::new(2).unwrap());
    let open = |rank| {
        let mut bootstrap = job.member(Rank::new(rank)).with_clock(clock.clock());
        Member::over(ShmMatch::open(ShmOptions::default(), &mut bootstrap).unwrap())
    };
    let (mut receiver, mut sender) = (open(0), open(1));
    let to = (sender.shm)
        .connect(Rank::new(0), &receiver.shm.address())
        .unwrap();
    let memory = |receiver: &Member| receiver.shm.shm.memory_in_use().unwrap();
    for round in 1..4 {
        for number in 0..40 {
            let token = round * 100 + number;
            let buffer = receiver.post(round, 2000, token);
            assert_eq!(sender.send(to, round, 2000), Sent::Done);
            if number % 2 == 0 {
                sender.progress();
            }
            receiver.until("a message", |log| {
                log.received.iter().any(|(other, _)| *other == token)
            });
            assert!(buffer.iter().all(|byte| byte.get() == round as u8));
        }
        let busy = memory(&receiver);
        for _ in 0..100 {
            clock.advance(Duration::from_millis(100));
            receiver.shm.look_after_peers(&mut receiver.log);
            sender.shm.look_after_peers(&mut sender.log);
        }
        let quiet = memory(&receiver);
        assert!(quiet + (30 << 10) <= busy, "{quiet} of {busy}");
    }
    assert!(receiver.log.broken.is_empty() && sender.log.broken.is_empty());
}

/// A piece of a transfer is nothing that a rank which matches is sent: its sender ends, and what comes behind it is not looked at.
#[test]
fn a_piece_ends_its_sender() {
    let job = LocalJob::new(2).unwrap();
    let open = |rank| {
        let bootstrap = &mut job.member(Rank::new(rank));
        Member::over(ShmMatch::open(ShmOptions::default(), bootstrap).unwrap())
    };
    let (mut receiver, mut sender) = (open(0), open(1));
    let address = receiver.shm.address();
    let to = sender.shm.connect(Rank::new(0), &address).unwrap();
    assert_eq!(sender.send(to, 1, 8), Sent::Done);
    for _ in 0..4 {
        receiver.progress();
        sender.progress();
    }
    assert!(receiver.log.broken.is_empty());
    let out = sender.shm.shm.outbound[to.index()].as_mut().unwrap();
    assert!(out.producer.push_piece(AmHeader([0; 2]), &[1; 8]));
    for _ in 0..4 {
        receiver.progress();
    }
    let [reason] = &receiver.log.broken[..] else {
        panic!("{:?}", receiver.log.broken);
    };
    assert!(
        reason.contains("rank 1") && reason.contains("piece"),
        "{reason}"
    );
}

/// Of 1,000 messages of 1 MiB that nobody receives the receiver keeps headers, and of most of
/// them not even these: the sender does.
#[test]
fn long_messages_cost_their_receiver_headers_only() {
    let job = LocalJob::new(2).unwrap();
    let open = |rank| {
        let bootstrap = &mut job.member(Rank::new(rank));
        Member::over(ShmMatch::open(ShmOptions::default(), bootstrap).unwrap())
    };
    let (mut receiver, mut sender) = (open(0), open(1));
    let address = receiver.shm.address();
    let to = sender.shm.connect(Rank::new(0), &address).unwrap();
    // Messages of their own bytes: each begins one further on.
    let memory: &'static [u8] = (0..LONG as u64 + 1000)
        .map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8)
        .collect::<Vec<u8>>()
        .leak();
    let before = receiver.shm.memory_in_use().unwrap();
    for bits in 0..1000 {
        // SAFETY: the memory is never freed.
        let data = unsafe { SendBuffer::contiguous(memory[bits..].as_ptr(), LONG) };
        let bits = bits as u64;
        let sent = sender.shm.send(LANE, to, bits, &data, false, Token(bits));
        assert_eq!(sent, Sent::Open);
        receiver.progress();
        sender.progress();
    }
    let levels = receiver.shm.levels();
    assert_eq!(levels.unexpected_bytes, 0);
    assert_eq!(levels.unexpected + sender.shm.levels().held, 1000);
    // The pair's area of 64 KiB, headers of 64 bytes, nodes of the engine of as many: in pages.
    let grown = receiver.shm.memory_in_use().unwrap() - before;
    let each = grown / levels.unexpected as u64;
    println!(
        "{grown} bytes for {} headers, {each} each",
        levels.unexpected
    );
    assert!(grown < 256 << 10, "{grown} bytes of memory");
    // The last 25, which the sender keeps, and the first 25.
    for bits in (975..1000).rev().chain(0..25) {
        let landed = receiver.post(bits, LONG, bits);
        let start = Instant::now();
        while receiver.ends_of(bits).is_empty() {
            assert!(start.elapsed() < PATIENCE, "message {bits} is not received");
            receiver.progress();
            sender.progress();
        }
        let ends = receiver.ends_of(bits);
        assert!(
            matches!(ends[..], [ReceiveEnd::Matched(_, Outcome::Done(len))] if len == LONG as u64),
            "{ends:?}"
        );
        let sent = &memory[bits as usize..][..LONG];
        assert!(
            landed
                .iter()
                .zip(sent)
                .all(|(got, sent)| got.get() == *sent),
            "message {bits} has other bytes"
        );
        receiver.log.received.clear();
    }
}

/// A long message that its sender has matched, noticed in a posting call before the sender's
/// contact was looked at: it is received, and not taken for one of the dead.
#[test]
fn what_a_stranger_matched_is_received() {
    let job = LocalJob::new(2).unwrap();
    let open = |rank| {
        let bootstrap = &mut job.member(Rank::new(rank));
        Member::over(ShmMatch::open(ShmOptions::default(), bootstrap).unwrap())
    };
    let (mut receiver, mut sender) = (open(0), open(1));
    // The receiver has spoken first, so that it knows the sender's rank, and then computes.
    let address = sender.shm.address();
    let there = receiver.shm.connect(Rank::new(1), &address).unwrap();
    assert_eq!(receiver.send(there, 50, 8), Sent::Done);
    let memory = receiver.post(5, LONG, 105);
    let address = receiver.shm.address();
    let here = sender.shm.connect(Rank::new(0), &address).unwrap();
    assert_eq!(sender.send(here, 5, LONG), Sent::Open);
    for _ in 0..1000 {
        sender.progress();
    }
    receiver.post(6, 8, 106);
    let start = Instant::now();
    while receiver.ends_of(105).is_empty() {
        assert!(start.elapsed() < PATIENCE, "the message is not received");
        receiver.progress();
        sender.progress();
    }
    let ends = receiver.ends_of(105);
    assert!(
        matches!(ends[..], [ReceiveEnd::Matched(_, Outcome::Done(len))] if len == LONG as u64),
        "{ends:?}"
    );
    assert!(memory.iter().all(|byte| byte.get() == 5));
}

/// A receive is to be taken back once the lock is to be had. It gets its message first, and the next one
/// has its token, and may have its place: that one is left alone.
#[test]
fn receives_are_not_taken_back_in_place_of_others() {
    let job = LocalJob::new(2).unwrap();
    let open = |rank| {
        let bootstrap = &mut job.member(Rank::new(rank));
        Member::over(ShmMatch::open(ShmOptions::default(), bootstrap).unwrap())
    };
    let (mut receiver, mut sender) = (open(0), open(1));
    let address = receiver.shm.address();
    let to = sender.shm.connect(Rank::new(0), &address).unwrap();
    receiver.post(9, 8, 109);
    assert_eq!(sender.send(to, 9, 8), Sent::Done);
    receiver.until("contact", |log| !log.received.is_empty());
    receiver.post(1, 8, 101);
    let map = receiver.shm.state.receiver.list.table.map.clone();
    let word = &map.head().lock;
    let held = lock::try_lock(word, 1).unwrap();
    assert_eq!(receiver.shm.cancel(LANE, Token(101)), Cancel::Pending);
    receiver.progress();
    lock::unlock(word, held);
    // It is matched within a posting call, and told of by progress that does not get the lock.
    assert_eq!(sender.send(to, 1, 8), Sent::Done);
    receiver.post(2, 8, 102);
    let held = lock::try_lock(word, 1).unwrap();
    receiver.progress();
    lock::unlock(word, held);
    let is_matched = |end: &ReceiveEnd| matches!(end, ReceiveEnd::Matched(..));
    let ends = receiver.ends_of(101);
    assert!(ends.len() == 1 && is_matched(&ends[0]), "{ends:?}");
    receiver.post(3, 8, 101);
    receiver.progress();
    assert!(receiver.shm.state.receiver.cancels.is_empty());
    assert_eq!(receiver.ends_of(101), ends);
    assert_eq!(sender.send(to, 3, 8), Sent::Done);
    receiver.progress();
    assert!(receiver.ends_of(101).iter().skip(1).all(is_matched));
    assert_eq!(receiver.ends_of(101).len(), 2);
}

/// A sender whose messages nobody receives fills a receiver up, and is held; another one's messages,
/// for which receives are posted, are taken no later for it, and none of them is kept back.
#[test]
fn a_flooder_slows_no_other_sender() {
    // By headers, and by blocks. Of the long ones the ring holds five.
    for (headers, overflow, len, burst) in [(200, 16 << 20, 8, INITIAL), (4096, 64 * 8192, 8000, 4)]
    {
        let job = LocalJob::new(3).unwrap();
        let options = ShmOptions {
            headers,
            overflow,
            ..ShmOptions::default()
        };
        let open = |rank| Member {
            shm: ShmMatch::open(options.clone(), &mut job.member(Rank::new(rank))).unwrap(),
            log: Log::default(),
            in_arena: false,
        };
        let (mut receiver, mut flooder, mut bystander) = (open(0), open(1), open(2));
        let address = receiver.shm.address();
        let to = flooder.shm.connect(Rank::new(0), &address).unwrap();
        for bits in 0..2000 {
            let _ = flooder.send(to, bits, len);
            receiver.progress();
            flooder.progress();
        }
        let held = flooder.shm.levels().held;
        assert!(held > 1000, "the flooder is not held: {held}");
        let to = bystander.shm.connect(Rank::new(0), &address).unwrap();
        let mut number = 10_000;
        // One after the other, and so many at once as every sender has room for.
        for burst in [1, burst] {
            for _ in 0..300 {
                for bits in number..number + u64::from(burst) {
                    receiver.post(bits, len, bits);
                    let sent = bystander.send(to, bits, len);
                    assert_eq!(sent, Sent::Done, "message {bits} is kept back");
                }
                // The receiver alone: nobody matches for it.
                for _ in 0..3 {
                    receiver.progress();
                }
                for bits in number..number + u64::from(burst) {
                    assert_eq!(receiver.ends_of(bits).len(), 1, "message {bits}");
                }
                number += u64::from(burst);
                receiver.log.received.clear();
            }
        }
        // The same for messages that come first, of which each is taken before the next one.
        for bits in number..number + 300 {
            let sent = bystander.send(to, bits, len);
            assert_eq!(sent, Sent::Done, "message {bits} is kept back");
            receiver.progress();
            receiver.post(bits, len, bits);
            assert_eq!(receiver.ends_of(bits).len(), 1, "message {bits}");
        }
        assert_eq!(
            receiver
                .shm
                .state
                .receiver
                .list
                .table
                .map
                .head()
                .visits
                .load(Relaxed),
            0
        );
        assert!(flooder.shm.levels().held > 0, "the flooder is held no more");
    }
}

/// Whatever is sent, received, claimed and visited in whatever order: the receiver keeps no more than its
/// bounds and what each sender has for its own, and when all is received everybody may send again.
#[test]
fn what_is_given_back_stays_within_bounds() {
    const HEADERS: usize = 40;
    const MESSAGES: usize = 16;
    for seed in 1..=8 {
        let mut random = SplitMix64::new(seed);
        let job = LocalJob::new(4).unwrap();
        let options = ShmOptions {
            headers: HEADERS,
            overflow: MESSAGES * 8192,
            ..ShmOptions::default()
        };
        let open = |rank| Member {
            shm: ShmMatch::open(options.clone(), &mut job.member(Rank::new(rank))).unwrap(),
            log: Log::default(),
            in_arena: false,
        };
        let mut receiver = open(0);
        let address = receiver.shm.address();
        let mut senders = [1, 2, 3].map(open);
        let to = senders
            .each_mut()
            .map(|sender| sender.shm.connect(Rank::new(0), &address).unwrap());
        let (mut sent, mut next) = ([0_u64; 3], [0_u64; 3]);
        for step in 0..4000 {
            let who = random.below(3) as usize;
            let own = who as u64 * 10_000;
            // Half of the time more is sent than received; then less.
            let sends = if step < 2000 { 6 } else { 1 };
            match random.below(10) {
                choice if choice < sends && sent[who] < 2000 => {
                    let len = [8, 100, 3000, 8000][random.below(4) as usize];
                    let answer = senders[who].send(to[who], own + sent[who], len);
                    assert!(matches!(answer, Sent::Done | Sent::Open), "{answer:?}");
                    sent[who] += 1;
                }
                8 => receiver.progress(),
                // As long as it takes until it visits.
                9 => (0..200).for_each(|_| senders[who].progress()),
                _ if next[who] < sent[who] => {
                    receiver.post(own + next[who], 8000, own + next[who]);
                    next[who] += 1;
                }
                _ => {}
            }
            let head = receiver.shm.state.receiver.list.table.map.head();
            let (live, used) = (&head.headers.live, &head.blocks.used);
            let initial = 3 * INITIAL as usize;
            assert!(
                live.load(Relaxed) as usize <= HEADERS + initial,
                "seed {seed}, step {step}: {live:?} headers"
            );
            assert!(
                used.load(Relaxed) as usize * UNIT <= (MESSAGES + initial) * 8192,
                "seed {seed}, step {step}: {used:?} units"
            );
        }
        for who in 0..3 {
            for number in next[who]..sent[who] {
                let own = who as u64 * 10_000;
                receiver.post(own + number, 8000, own + number);
            }
        }
        let all: u64 = sent.iter().sum();
        let start = Instant::now();
        while receiver.log.received.len() < all as usize {
            assert!(start.elapsed() < PATIENCE, "seed {seed}: not all received");
            receiver.progress();
            senders.iter_mut().for_each(Member::progress);
        }
        for (who, sender) in senders.iter_mut().enumerate() {
            for bits in 0..u64::from(INITIAL) {
                let answer = sender.send(to[who], 90_000 + bits, 8);
                assert_eq!(answer, Sent::Done, "seed {seed}: sender {who}");
            }
        }
    }
}
