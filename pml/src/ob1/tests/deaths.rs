//! Exposed receives over shared memory, of which one side dies, or is late, at each point of their way. The test program runs itself
//! again as rank 1.
//!
//! Who is late says so, and waits at the point. It goes on once the other side has its memory back, or is about to: nobody else
//! touches that any more. The points within a transfer are `transport/src/shm/tests/deaths.rs`.

use std::cell::{Cell, RefCell};
use std::io::{BufRead, BufReader, Lines, Read, Write};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use rustix::process::{Signal, getpid, kill_process};
use tagwire_base::{Bootstrap, JobSecret, Locality, MemberEvent};
use tagwire_transport::shm::{CopyWay, Shm, ShmOptions};

use super::*;
use crate::ob1::points::Point;
use crate::planted;

const PART: &str = "OB1_DEATHS_PART";
const CARD: &str = "OB1_DEATHS_CARD";
const SECRET: &str = "OB1_DEATHS_SECRET";

const PATIENCE: Duration = Duration::from_secs(20);
const CHUNK: usize = 32 << 10;
const CHUNKS: u32 = 4;
const LEN: usize = CHUNKS as usize * CHUNK;

/// So long that a copy of it is seen while it is made.
const LONG: usize = 64 << 20;

/// What the child says where it waits for a word of the parent.
const WAITS: &str = "waits for a word";

/// What the owner of memory writes there that has it back.
const PAINT: u8 = 0xaa;

const POINTS: [Point; 6] = [
    Point::Opened,
    Point::Exposed,
    Point::Claimed,
    Point::Filled,
    Point::Noted,
    Point::Turn,
];

/// What this process does once it has come to a point so many times.
struct Strike {
    point: Point,
    times: u32,
    deed: Box<dyn FnOnce()>,
}

thread_local! {
    static STRIKE: RefCell<Option<Strike>> = const { RefCell::new(None) };
}

/// A message has come to a point of its way.
pub(in crate::ob1) fn reach(point: Point) {
    let deed = STRIKE.with_borrow_mut(|strike| {
        let one = strike.as_mut().filter(|one| one.point == point)?;
        one.times -= 1;
        match one.times {
            0 => strike.take().map(|one| one.deed),
            _ => None,
        }
    });
    if let Some(deed) = deed {
        deed();
    }
}

fn strike(point: Point, times: u32, deed: impl FnOnce() + 'static) {
    let deed = Box::new(deed);
    STRIKE.set(Some(Strike { point, times, deed }));
}

/// Just what a rank must know.
#[derive(Clone)]
struct Given {
    rank: u32,
    secret: JobSecret,
    /// What the two ranks have published.
    cards: Arc<Mutex<[Vec<u8>; 2]>>,
    events: Arc<Mutex<Vec<MemberEvent>>>,
}

fn of_hex(hex: &str) -> Vec<u8> {
    let byte = |i: usize| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap();
    (0..hex.len() / 2).map(byte).collect()
}

impl Given {
    /// What this rank has published.
    fn hex(&self) -> String {
        let cards = self.cards.lock().unwrap();
        let card = cards[self.rank as usize].iter();
        card.map(|byte| format!("{byte:02x}")).collect()
    }
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
    fn put(&mut self, _: &str, value: &[u8]) -> tagwire_base::Result<()> {
        self.cards.lock().unwrap()[self.rank as usize] = value.to_vec();
        Ok(())
    }
    fn get(&mut self, rank: Rank, _: &str, _: Duration) -> tagwire_base::Result<Vec<u8>> {
        Ok(self.cards.lock().unwrap()[rank.as_u32() as usize].clone())
    }
    fn fence(&mut self, _: Duration) -> tagwire_base::Result<()> {
        Ok(())
    }
    fn put_descriptor(&mut self, _: BorrowedFd<'_>) -> tagwire_base::Result<()> {
        Ok(())
    }
    fn get_descriptor(&mut self, _: Rank, _: Duration) -> tagwire_base::Result<OwnedFd> {
        Err(tagwire_base::Error::Bootstrap(
            "there is no store".to_owned(),
        ))
    }
    fn poll_events(&mut self) -> Vec<MemberEvent> {
        std::mem::take(&mut self.events.lock().unwrap())
    }
    fn leave(&mut self) {}
}

fn open(given: &Given, chunk: usize) -> Ob1 {
    // In chunks of one length, and never through the ring.
    let options = ShmOptions {
        chunk_min: chunk,
        chunk_max: chunk,
        way: Some(CopyWay::Halves),
        ..ShmOptions::default()
    };
    let mut given = given.clone();
    let shm = Shm::open(options, &mut given).unwrap();
    Ob1::open(&Ob1Options::default(), Box::new(shm), Box::new(given)).unwrap()
}

/// Memory with these bytes in it. It is never freed: a test ends with its process.
fn memory(bytes: Vec<u8>) -> &'static [Cell<u8>] {
    Cell::from_mut(bytes.leak()).as_slice_of_cells()
}

fn holds(memory: &[Cell<u8>], bytes: &[u8]) -> bool {
    memory
        .iter()
        .zip(bytes)
        .all(|(cell, byte)| cell.get() == *byte)
}

fn is_painted(memory: &[Cell<u8>]) -> bool {
    memory.iter().all(|cell| cell.get() == PAINT)
}

/// Paints it, from its end: who is writing there comes to that later.
fn paint(memory: &[Cell<u8>]) {
    memory.iter().rev().for_each(|cell| cell.set(PAINT));
}

fn source() -> Vec<u8> {
    pattern(36, LEN)
}

fn post(own: &mut Ob1, memory: &'static [Cell<u8>]) -> RequestId {
    let start = memory.as_ptr().cast_mut().cast();
    // SAFETY: the memory is never freed, and only looked at through the cells.
    let room = unsafe { RecvBuffer::contiguous(start, memory.len()) };
    let from = SourceSelector::exact(Rank::new(1 - own.rank().as_u32()));
    own.irecv(room, from, TagSelector::exact(tag(7)), WORLD)
        .unwrap()
}

fn send(own: &mut Ob1, memory: &'static [Cell<u8>]) -> RequestId {
    // SAFETY: as above.
    let data = unsafe { SendBuffer::contiguous(memory.as_ptr().cast(), memory.len()) };
    let to = Rank::new(1 - own.rank().as_u32());
    own.isend(data, to, tag(7), WORLD, SendMode::Standard)
        .unwrap()
}

/// Makes progress until the request is complete. Returns its status.
fn finish(own: &mut Ob1, request: RequestId) -> Status {
    let start = Instant::now();
    loop {
        if let Some(status) = own.take(request).unwrap() {
            return status;
        }
        let state = own.describe(request);
        assert!(start.elapsed() < PATIENCE, "waited in vain for {state:?}");
        if own.progress() == 0 {
            own.look_after_peers();
            std::thread::yield_now();
        }
        reach(Point::Turn);
    }
}

/// Both have had a message of the other.
fn meet(own: &mut Ob1) {
    let (sent, received) = (memory(vec![1; 8]), memory(vec![0; 8]));
    let received = post(own, received);
    let sent = send(own, sent);
    for request in [received, sent] {
        assert_eq!(finish(own, request).failure, None);
    }
}

/// Closes within bounded time, with nothing left open.
fn close(own: &mut Ob1) {
    own.begin_close();
    let start = Instant::now();
    while let Some(open) = own.open_work() {
        assert!(start.elapsed() < PATIENCE, "still open: {open}");
        own.progress();
        own.look_after_peers();
    }
    own.leave();
}

/// What rank 1 does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Sends, after it has heard of the receive. Its envelope goes at once.
    Send,
    /// The same. Its envelope goes when the memory is filled.
    SendFirst,
    /// Sends before it has heard of the receive: its envelope is out.
    SendEarly,
    /// As the first, a message of one chunk, which is long.
    SendLong,
    /// As the second, the same message.
    SendLongFirst,
    /// Receives.
    Receive,
}

const SENDING: [Part; 3] = [Part::Send, Part::SendFirst, Part::SendEarly];

impl Part {
    const fn chunk(self) -> usize {
        match self {
            // What may be shared is.
            Self::SendLong | Self::SendLongFirst => 2 * LONG,
            _ => CHUNK,
        }
    }

    /// How often a sender comes to a point. It makes more turns than there are chunks.
    const fn times(self, point: Point) -> u32 {
        match (point, self) {
            (Point::Opened | Point::Exposed, _) => 0,
            (Point::Filled, Self::SendFirst) => 1,
            (Point::Filled, _) | (Point::Noted, Self::SendEarly) => 0,
            (Point::Turn, _) => CHUNKS,
            _ => 1,
        }
    }
}

/// What happens to rank 1 at its point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Dies,
    IsLate,
}

fn named<T: Copy + std::fmt::Debug>(all: &[T], name: &str) -> T {
    let mut all = all.iter().copied();
    all.find(|one| format!("{one:?}") == name).unwrap()
}

/// Waits for a word of the parent.
fn pause() {
    println!("{WAITS}");
    std::io::stdin().read_exact(&mut [0]).unwrap();
}

/// What the child does; in the parent's run of the tests, nothing.
#[test]
fn plays_its_part() {
    let Ok(text) = std::env::var(PART) else {
        return;
    };
    let [part, point, times, fate] = text.split(' ').collect::<Vec<_>>()[..] else {
        panic!("'{text}'");
    };
    let others = [Part::SendLong, Part::SendLongFirst, Part::Receive];
    let part = named(&[&SENDING[..], &others].concat(), part);
    let (point, times) = (named(&POINTS, point), times.parse().unwrap());
    let fate = named(&[Fate::Dies, Fate::IsLate], fate);
    let given = Given {
        rank: 1,
        secret: JobSecret::from_hex(&std::env::var(SECRET).unwrap()).unwrap(),
        cards: Arc::new(Mutex::new([
            of_hex(&std::env::var(CARD).unwrap()),
            Vec::new(),
        ])),
        events: Arc::default(),
    };
    let mut own = open(&given, part.chunk());
    println!("{CARD} {}", given.hex());
    meet(&mut own);
    let struck = move || match fate {
        Fate::Dies => {
            kill_process(getpid(), Signal::KILL).unwrap();
            // Other threads may be told first.
            std::thread::sleep(PATIENCE);
        }
        Fate::IsLate => pause(),
    };
    if part == Part::Receive {
        let memory = memory(vec![0; LEN]);
        pause();
        strike(point, times, struck);
        let request = post(&mut own, memory);
        pause();
        let status = finish(&mut own, request);
        assert!(
            status.failure.is_some() || holds(memory, &source()),
            "wrong bytes"
        );
    } else {
        planted::LATE_NOTES.set([Part::SendFirst, Part::SendLongFirst].contains(&part));
        let memory = match part {
            Part::SendLong | Part::SendLongFirst => memory(pattern(36, LONG)),
            _ => memory(source()),
        };
        pause();
        if part != Part::SendEarly {
            // It hears of the receive.
            (0..8).for_each(|_| _ = own.progress());
        }
        strike(point, times, struck);
        let request = send(&mut own, memory);
        if part == Part::SendEarly {
            pause();
        }
        finish(&mut own, request);
    }
    close(&mut own);
}

/// The process of rank 1.
struct Other {
    child: RefCell<Child>,
    lines: RefCell<Lines<BufReader<ChildStdout>>>,
}

impl Other {
    /// Gives it its word.
    fn let_go(&self) {
        let mut child = self.child.borrow_mut();
        child.stdin.as_mut().unwrap().write_all(b".").unwrap();
    }

    /// Waits until it waits for its word, or has ended. Returns whether it waits.
    fn waits(&self) -> bool {
        let mut lines = self.lines.borrow_mut();
        lines.any(|line| line.unwrap().contains(WAITS))
    }

    /// Waits for its end. Returns whether it has ended well.
    fn ends_well(&self) -> bool {
        self.child.borrow_mut().wait().unwrap().success()
    }

    fn kill(&self) {
        self.child.borrow_mut().kill().unwrap();
        self.ends_well();
    }
}

impl Drop for Other {
    fn drop(&mut self) {
        STRIKE.set(None);
        // Of a test that has failed.
        let _ = self.child.borrow_mut().kill();
    }
}

/// Rank 0, in contact with rank 1.
struct Scene {
    own: Ob1,
    given: Given,
    other: Rc<Other>,
}

impl Scene {
    fn new(part: Part, (point, times): (Point, u32), fate: Fate) -> Self {
        let given = Given {
            rank: 0,
            secret: JobSecret::generate().unwrap(),
            cards: Arc::default(),
            events: Arc::default(),
        };
        let mut own = open(&given, part.chunk());
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "ob1::tests::deaths::plays_its_part",
                "--nocapture",
            ])
            .env(PART, format!("{part:?} {point:?} {times} {fate:?}"))
            .env(CARD, given.hex())
            .env(SECRET, given.secret.to_hex())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        // The test's own words may come before, on the same line.
        let card = lines.find_map(|line| Some(of_hex(line.unwrap().split_once(CARD)?.1.trim())));
        given.cards.lock().unwrap()[1] = card.unwrap();
        meet(&mut own);
        let (child, lines) = (RefCell::new(child), RefCell::new(lines));
        let other = Rc::new(Other { child, lines });
        assert!(other.waits());
        Self { own, given, other }
    }

    /// Posts a receive that the other, which sends, hears of as its part says.
    fn expose(&mut self, part: Part, memory: &'static [Cell<u8>]) -> RequestId {
        if part == Part::SendEarly {
            let other = Rc::clone(&self.other);
            strike(Point::Opened, 1, move || {
                other.let_go();
                assert!(other.waits());
            });
        }
        let request = post(&mut self.own, memory);
        self.other.let_go();
        request
    }

    /// The launcher takes the other for dead. Returns whether the request is complete, while the other does nothing.
    fn hear_of_failure(&mut self, request: RequestId) -> bool {
        let failed = MemberEvent::Failed(Rank::new(1));
        self.given.events.lock().unwrap().push(failed);
        for _ in 0..100 {
            self.own.look_after_peers();
            self.own.progress();
        }
        self.own.is_complete(request)
    }

    /// Leaves, and waits for the end of the other, which ends well.
    fn part(mut self, what: &str) {
        close(&mut self.own);
        let start = Instant::now();
        while !self.own.transport().has_left() {
            assert!(start.elapsed() < PATIENCE, "{what}: does not leave");
            self.own.progress();
        }
        drop(self.own);
        assert!(self.other.ends_well(), "{what}");
    }

    fn filled(&self) -> u64 {
        self.own.core.counters.filled
    }

    /// The dead is known as that, nothing of it is left, and the rank closes.
    fn check_survivor(mut self) {
        let start = Instant::now();
        while self.own.failed() != [Rank::new(1)] {
            assert!(start.elapsed() < PATIENCE, "the failure is not heard of");
            self.own.progress();
            self.own.look_after_peers();
        }
        let peers = &mut self.own.core.lane.peers;
        let index = peers.find(Rank::new(1)).unwrap();
        let exposures = &peers.get(index).unwrap().exposures;
        assert!(!exposures.is_exposed() && !exposures.has_targets());
        let late = post(&mut self.own, memory(vec![0; LEN]));
        assert_eq!(finish(&mut self.own, late).failure, Some(FAILED));
        close(&mut self.own);
    }
}

const FAILED: Failure = Failure::PeerFailed(Rank::new(1));

/// Runs `case` for each part and point, and each time that the sender comes there: it returns whether it did.
fn sweep(mut case: impl FnMut(Part, Point, u32) -> bool) {
    for part in SENDING {
        for point in POINTS.into_iter().filter(|point| part.times(*point) > 0) {
            let mut times = 1;
            while case(part, point, times) {
                times += 1;
            }
            assert!(times > part.times(point), "{part:?} {point:?}: {times}");
        }
    }
}

#[test]
fn who_sends_dies_at_each_point() {
    sweep(|part, point, times| {
        let what = format!("{part:?} {point:?} {times}");
        let mut scene = Scene::new(part, (point, times), Fate::Dies);
        let memory = memory(vec![0; LEN]);
        let request = scene.expose(part, memory);
        // The receiver computes.
        let has_struck = !scene.other.ends_well();
        let is_there = holds(memory, &source());
        let status = finish(&mut scene.own, request);
        match status.failure {
            // Without an envelope there is no message.
            None => {
                assert!(holds(memory, &source()), "{what}: wrong bytes");
                let is_noted =
                    part != Part::SendFirst || ![Point::Claimed, Point::Filled].contains(&point);
                assert!(is_noted || !has_struck, "{what}");
                assert_eq!(scene.filled(), 1, "{what}");
            }
            failure => {
                assert_eq!(failure, Some(FAILED), "{what}");
                assert!(has_struck, "{what}");
                let is_noted = is_there && point == Point::Noted;
                assert!(!is_noted, "{what}: all was there");
            }
        }
        if has_struck {
            scene.check_survivor();
        }
        has_struck
    });
}

/// How a receiver takes its memory back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taking {
    /// It cancels the receive.
    Cancel,
    /// The launcher tells it that its peer has failed.
    Fail,
    /// It closes.
    Close,
}

#[test]
fn who_sends_late_writes_nothing_that_was_taken_back() {
    for taking in [Taking::Cancel, Taking::Fail, Taking::Close] {
        sweep(|part, point, times| {
            let mut scene = Scene::new(part, (point, times), Fate::IsLate);
            let memory = memory(vec![0; LEN]);
            let request = scene.expose(part, memory);
            let is_late = scene.other.waits();
            if is_late {
                let what = format!("{taking:?} {part:?} {point:?} {times}");
                take_back(scene, (request, memory), taking, &what);
                assert!(is_painted(memory), "{what}: written late");
            }
            is_late
        });
    }
}

/// Takes the memory of a receive back while its sender is late, paints it as soon as it is back, and lets the sender go on.
fn take_back(
    mut scene: Scene,
    (request, memory): (RequestId, &'static [Cell<u8>]),
    taking: Taking,
    what: &str,
) {
    let other = Rc::clone(&scene.other);
    let is_back = match taking {
        Taking::Cancel => scene.own.cancel(request).unwrap() == CancelOutcome::Cancelled,
        Taking::Fail => scene.hear_of_failure(request),
        Taking::Close => {
            scene.own.begin_close();
            scene.own.is_complete(request)
        }
    };
    if !is_back {
        other.let_go();
    }
    let status = finish(&mut scene.own, request);
    if status.failure.is_none() && !status.cancelled {
        assert!(holds(memory, &source()), "{what}: wrong bytes");
    }
    paint(memory);
    if is_back {
        other.let_go();
    }
    match taking {
        Taking::Cancel if is_back => {
            assert!(status.cancelled, "{what}");
            // The message goes to the next receive.
            let next = self::memory(vec![0; LEN]);
            let request = post(&mut scene.own, next);
            assert_eq!(finish(&mut scene.own, request).failure, None, "{what}");
            assert!(holds(next, &source()), "{what}: wrong bytes");
        }
        Taking::Fail if status.failure.is_some() => {
            assert_eq!(status.failure, Some(FAILED), "{what}");
        }
        Taking::Close if is_back => assert_eq!(status.failure, Some(Failure::Closed), "{what}"),
        _ => assert_eq!(status.failure, None, "{what}"),
    }
    scene.part(what);
}

/// The sender is late, or dies, while the bytes of a chunk are being written, wherever that is just then.
#[test]
fn memory_is_not_given_back_while_it_is_written() {
    let parts = [Part::SendLong, Part::SendLongFirst];
    for (part, is_dead) in parts
        .into_iter()
        .flat_map(|part| [(part, false), (part, true)])
    {
        let never = (Point::Opened, 1);
        let mut scene = Scene::new(part, never, Fate::Dies);
        let memory = memory(vec![0; LONG]);
        let request = scene.expose(part, memory);
        let start = Instant::now();
        while memory[0].get() == 0 {
            assert!(start.elapsed() < PATIENCE, "it is not filled");
            std::thread::yield_now();
        }
        let other = Rc::clone(&scene.other);
        if is_dead {
            other.child.borrow_mut().kill().unwrap();
        } else {
            scene.hear_of_failure(request);
        }
        let status = finish(&mut scene.own, request);
        match status.failure {
            None => assert!(holds(memory, &pattern(36, LONG)), "wrong bytes"),
            failure => assert_eq!(failure, Some(FAILED)),
        }
        paint(memory);
        if is_dead {
            scene.check_survivor();
        } else {
            scene.part("written");
        }
        assert!(is_painted(memory), "written late");
    }
}

/// A receiver that does nothing by itself, and rank 0 on the point of sending to it.
fn receiver(part: Part) -> Scene {
    let (point, fate) = match part {
        Part::SendEarly => (Point::Opened, Fate::IsLate),
        // Where it never is.
        _ => (Point::Claimed, Fate::Dies),
    };
    let mut scene = Scene::new(Part::Receive, (point, 1), fate);
    scene.other.let_go();
    assert!(scene.other.waits());
    if part != Part::SendEarly {
        // It hears of the receive.
        (0..8).for_each(|_| _ = scene.own.progress());
    }
    scene
}

#[test]
fn who_receives_dies_at_each_point_of_the_sender() {
    sweep(|part, point, times| {
        let what = format!("{part:?} {point:?} {times}");
        let mut scene = receiver(part);
        planted::LATE_NOTES.set(part == Part::SendFirst);
        let (other, has_struck) = (Rc::clone(&scene.other), Rc::new(Cell::new(false)));
        let struck = Rc::clone(&has_struck);
        strike(point, times, move || {
            other.kill();
            struck.set(true);
        });
        let request = send(&mut scene.own, memory(source()));
        if part == Part::SendEarly && !has_struck.get() {
            scene.other.let_go();
            assert!(scene.other.waits());
        }
        let failure = finish(&mut scene.own, request).failure;
        STRIKE.set(None);
        planted::LATE_NOTES.set(false);
        assert!(
            failure.is_none() || failure == Some(FAILED),
            "{what}: {failure:?}"
        );
        // What was not copied yet is not received.
        let is_failed = point == Point::Claimed && has_struck.get();
        assert!(failure.is_some() || !is_failed, "{what}");
        assert!(failure.is_none() || has_struck.get(), "{what}");
        if has_struck.get() {
            scene.check_survivor();
        }
        has_struck.get()
    });
}

/// Runs `case` for each point of a receiver, and each time that it comes there: it returns whether it did.
fn sweep_receiver(mut case: impl FnMut(Point, u32) -> bool) {
    for (point, least) in [
        (Point::Opened, 1),
        (Point::Exposed, 1),
        (Point::Turn, CHUNKS),
    ] {
        let mut times = 1;
        while case(point, times) {
            times += 1;
        }
        assert!(times > least, "{point:?}: {times}");
    }
}

#[test]
fn who_receives_dies_at_each_point() {
    sweep_receiver(|point, times| {
        let what = format!("{point:?} {times}");
        let mut scene = Scene::new(Part::Receive, (point, times), Fate::Dies);
        scene.other.let_go();
        let has_posted = scene.other.waits();
        let request = send(&mut scene.own, memory(source()));
        if has_posted {
            scene.other.let_go();
        }
        // It copies by itself.
        let has_struck = !scene.other.ends_well();
        let failure = finish(&mut scene.own, request).failure;
        match failure {
            None => assert!(has_posted, "{what}"),
            _ => assert!(failure == Some(FAILED) && has_struck, "{what}: {failure:?}"),
        }
        if has_struck {
            scene.check_survivor();
        }
        has_struck
    });
}

/// It receives the right bytes, or none.
#[test]
fn who_receives_late_reads_nothing_that_was_taken_back() {
    sweep_receiver(|point, times| {
        let what = format!("{point:?} {times}");
        let mut scene = Scene::new(Part::Receive, (point, times), Fate::IsLate);
        let (other, bytes) = (Rc::clone(&scene.other), memory(source()));
        other.let_go();
        assert!(other.waits());
        let request = send(&mut scene.own, bytes);
        let is_computing = point == Point::Turn;
        if is_computing {
            other.let_go();
            if !other.waits() {
                return false;
            }
        }
        let is_back = scene.hear_of_failure(request);
        let is_over = times > 1 && !is_computing;
        if is_back {
            paint(bytes);
        }
        other.let_go();
        if !is_computing && !is_over {
            other.let_go();
        }
        let failure = finish(&mut scene.own, request).failure;
        assert!(
            failure.is_none() || failure == Some(FAILED),
            "{what}: {failure:?}"
        );
        paint(bytes);
        scene.part(&what);
        !is_over
    });
}
