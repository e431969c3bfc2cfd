//! Exposed memory of which one side dies, or is late, at each point of its being filled. The test program runs itself again as
//! rank 1.
//!
//! Who is late says so, and waits at the point. It goes on once the other side takes its memory back: as soon as that is its owner's
//! again, nobody else touches it.

use std::cell::{Cell, RefCell};
use std::io::{BufRead, BufReader, Lines, Read};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::rc::Rc;
use std::time::Instant;

use rustix::process::{Signal, getpid, kill_process};
use tagwire_base::JobSecret;

use super::processes::{Given, PATIENCE};
use super::*;
use crate::cooperative::{CooperativeTransfers, Offer, Ticket};
use crate::data::{RecvBuffer, SendBuffer};
use crate::shm::transfer::Point;
use crate::shm::{CopyWay, CrossAttach};

const PART: &str = "SHM_DEATHS_PART";
const ADDRESS: &str = "SHM_DEATHS_ADDRESS";
const SECRET: &str = "SHM_DEATHS_SECRET";

const CHUNK: usize = 32 << 10;
const CHUNKS: u32 = 6;
const LEN: usize = CHUNKS as usize * CHUNK;

/// What a late child says.
const LATE: &str = "late at its point";

/// What the owner of memory writes there that has it back.
const PAINT: u8 = 0xaa;

const POINTS: [Point; 6] = [
    Point::Seen,
    Point::Taken,
    Point::Claimed,
    Point::Begun,
    Point::Copied,
    Point::Finished,
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

/// A transfer has come to a point.
pub(in crate::shm) fn reach(point: Point) {
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

/// How the bytes get there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copying {
    /// By cross-memory attach.
    Attach,
    /// By a mapping of the other's arena, and by nothing else.
    Arena,
}

const WAYS: [Copying; 2] = [Copying::Attach, Copying::Arena];

impl Copying {
    /// In chunks of one length, and never through the ring.
    fn options(self) -> ShmOptions {
        let (cross_attach, way) = match self {
            Self::Attach => (CrossAttach::Auto, Some(CopyWay::Halves)),
            Self::Arena => (CrossAttach::Off, None),
        };
        ShmOptions {
            cross_attach,
            way,
            chunk_min: CHUNK,
            chunk_max: CHUNK,
            ..ShmOptions::default()
        }
    }

    /// Memory of a rank, with these bytes in it. It is never freed: a test ends with its process.
    fn memory(self, of: &mut Member, bytes: &[u8]) -> &'static [Cell<u8>] {
        let memory: &'static mut [u8] = match self {
            Self::Attach => vec![0; bytes.len()].leak(),
            Self::Arena => Box::leak(Box::new(of.shm.allocate(bytes.len()).unwrap())).bytes_mut(),
        };
        memory.copy_from_slice(bytes);
        Cell::from_mut(memory).as_slice_of_cells()
    }
}

fn source() -> Vec<u8> {
    Numbers(36).bytes(LEN)
}

fn holds(memory: &[Cell<u8>], bytes: &[u8]) -> bool {
    memory
        .iter()
        .zip(bytes)
        .all(|(cell, byte)| cell.get() == *byte)
}

fn send_buffer(memory: &'static [Cell<u8>]) -> SendBuffer {
    // SAFETY: the memory is never freed.
    unsafe { SendBuffer::contiguous(memory.as_ptr().cast(), memory.len()) }
}

fn recv_buffer(memory: &'static [Cell<u8>]) -> RecvBuffer {
    // SAFETY: the memory is never freed, and only looked at through the cells.
    unsafe { RecvBuffer::contiguous(memory.as_ptr().cast_mut().cast(), memory.len()) }
}

impl Member {
    fn until(&mut self, what: &str, done: impl Fn(&Log) -> bool) {
        let start = Instant::now();
        while !done(&self.log) {
            assert!(start.elapsed() < PATIENCE, "waited in vain for {what}");
            self.progress();
            self.look_after_peers();
            std::thread::yield_now();
        }
    }

    fn expose(&mut self, to: EndpointId, memory: &'static [Cell<u8>]) -> Ticket {
        let data = recv_buffer(memory);
        match self.shm.offer_recv(LANE, to, &data, Token(1)) {
            Offer::Open(ticket) => ticket,
            other => panic!("memory is not exposed: {other:?}"),
        }
    }

    fn tell(&mut self, to: EndpointId, Ticket([first, second]): Ticket) {
        let post = self.send(to, Class::Control, second, &first.to_le_bytes());
        assert_eq!(post, Post::Posted);
    }

    fn hear(&mut self) -> Ticket {
        self.until("the ticket", |log| !log.messages.is_empty());
        let (_, second, first) = self.log.messages.pop_front().unwrap();
        Ticket([u64::from_le_bytes(first.try_into().unwrap()), second])
    }

    fn fill(&mut self, to: EndpointId, ticket: Ticket, memory: &'static [Cell<u8>]) -> Post {
        let data = send_buffer(memory);
        self.shm.fill(LANE, to, ticket, &data, Token(1))
    }
}

/// What rank 1 does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    /// Fills the memory of rank 0.
    Fill,
    /// Exposes memory, and computes.
    Compute,
    /// Exposes memory, and copies into it.
    Copy,
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

/// What the child does; in the parent's run of the tests, nothing.
#[test]
fn plays_its_part() {
    let Ok(text) = std::env::var(PART) else {
        return;
    };
    let [way, part, point, times, fate] = text.split(' ').collect::<Vec<_>>()[..] else {
        panic!("'{text}'");
    };
    let (way, part) = (
        named(&WAYS, way),
        named(&[Part::Fill, Part::Compute, Part::Copy], part),
    );
    let (point, times) = (named(&POINTS, point), times.parse().unwrap());
    let fate = named(&[Fate::Dies, Fate::IsLate], fate);
    let hex = std::env::var(ADDRESS).unwrap();
    let address: Vec<u8> = (0..hex.len() / 2)
        .map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap())
        .collect();
    let secret = JobSecret::from_hex(&std::env::var(SECRET).unwrap()).unwrap();
    let shm = Shm::open(way.options(), &mut Given { rank: 1, secret }).unwrap();
    let log = Log::default();
    let mut own = Member { shm, log };
    let to = own.shm.connect(Rank::new(0), &address).unwrap();
    assert_eq!(own.send(to, Class::Data, 0, &[]), Post::Posted);
    let struck = move || match fate {
        Fate::Dies => {
            kill_process(getpid(), Signal::KILL).unwrap();
            // Other threads may be told first.
            std::thread::sleep(PATIENCE);
        }
        Fate::IsLate => {
            println!("{LATE}");
            // Until the parent closes it.
            assert_eq!(std::io::stdin().read(&mut [0]).unwrap(), 0);
        }
    };
    if part == Part::Fill {
        let memory = way.memory(&mut own, &source());
        let ticket = own.hear();
        strike(point, times, struck);
        if own.fill(to, ticket, memory) == Post::Posted {
            own.until("the end", |log| !log.completions.is_empty());
        }
    } else {
        let memory = way.memory(&mut own, &[0; LEN]);
        let ticket = own.expose(to, memory);
        own.tell(to, ticket);
        strike(point, times, struck);
        if part == Part::Compute {
            std::thread::sleep(PATIENCE);
            return;
        }
        own.until("the end", |log| !log.completions.is_empty());
        if own.log.completions == [(1, Outcome::Done(LEN as u64))] {
            assert!(holds(memory, &source()), "wrong bytes");
        }
    }
    own.leave();
}

/// Rank 0, in contact with rank 1, which is a child.
struct Scene {
    way: Copying,
    own: Member,
    to: EndpointId,
    child: Rc<RefCell<Child>>,
    /// What the child says.
    lines: Lines<BufReader<ChildStdout>>,
}

impl Scene {
    fn new(way: Copying, part: Part, (point, times): (Point, u32), fate: Fate) -> Self {
        let secret = JobSecret::generate().unwrap();
        let hex = secret.to_hex();
        let shm = Shm::open(way.options(), &mut Given { rank: 0, secret }).unwrap();
        let log = Log::default();
        let mut own = Member { shm, log };
        let address = own.shm.address();
        let address: String = address.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args([
                "--exact",
                "shm::tests::deaths::plays_its_part",
                "--nocapture",
            ])
            .env(PART, format!("{way:?} {part:?} {point:?} {times} {fate:?}"))
            .env(ADDRESS, address)
            .env(SECRET, hex)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        own.until("contact", |log| !log.messages.is_empty());
        own.log.messages.pop_front();
        let (to, _) = own.log.ups[0];
        let said = child.stdout.take().unwrap();
        Self {
            way,
            own,
            to,
            child: Rc::new(RefCell::new(child)),
            lines: BufReader::new(said).lines(),
        }
    }

    fn memory(&mut self, bytes: &[u8]) -> &'static [Cell<u8>] {
        self.way.memory(&mut self.own, bytes)
    }

    /// Waits until the child is late, or has ended. Returns whether it is late.
    fn is_late(&mut self) -> bool {
        self.lines.any(|line| line.unwrap().contains(LATE))
    }

    fn wait(&self) -> ExitStatus {
        self.child.borrow_mut().wait().unwrap()
    }

    fn go_on(&self) {
        self.child.borrow_mut().stdin.take();
    }

    fn kill(child: &RefCell<Child>) {
        let mut child = child.borrow_mut();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    /// Waits for the end of the transfer. Returns its outcome.
    fn end(&mut self) -> Outcome {
        self.own.until("the end", |log| !log.completions.is_empty());
        let [(1, outcome)] = self.own.log.completions[..] else {
            panic!("{:?}", self.own.log.completions);
        };
        outcome
    }

    /// The child is dead: the survivor knows, and has nothing of it left.
    fn check_survivor(&mut self) {
        self.own.until("the failure", |log| !log.failed.is_empty());
        for _ in 0..100 {
            self.own.progress();
        }
        assert_eq!(self.own.log.failed, [self.to]);
        assert!(
            self.own.log.completions.len() <= 1,
            "{:?}",
            self.own.log.completions
        );
        assert!(!self.own.shm.transfers.are_pending());
        assert_eq!(self.own.send(self.to, Class::Data, 1, &[]), Post::Gone);
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        // Of a test that has failed.
        let _ = self.child.borrow_mut().kill();
    }
}

/// Checks how a transfer has ended that this side goes on with after the other's death at a point: it is done where nothing was left
/// to do, and may be where nothing was left undone by the dead.
fn check_end(outcome: Outcome, (point, times): (Point, u32), what: &str) {
    let is_over = (point, times) == (Point::Finished, CHUNKS);
    let is_undone = [Point::Taken, Point::Begun, Point::Copied].contains(&point);
    match outcome {
        Outcome::Done(moved) => assert!(moved == LEN as u64 && !is_undone, "{what}"),
        outcome => assert!(
            outcome == Outcome::PeerFailed && !is_over,
            "{what}: {outcome:?}"
        ),
    }
}

/// Runs `case` at each point, for each time that the transfer comes there: it returns whether it did.
fn sweep(points: &[Point], mut case: impl FnMut(Point, u32) -> bool) {
    for &point in points {
        let mut times = 1;
        while case(point, times) {
            times += 1;
        }
        let chunks = if POINTS[3..].contains(&point) {
            CHUNKS
        } else {
            1
        };
        assert_eq!(times - 1, chunks, "{point:?}");
    }
}

#[test]
fn who_fills_dies_at_each_point() {
    for way in WAYS {
        sweep(&POINTS, |point, times| {
            let mut scene = Scene::new(way, Part::Fill, (point, times), Fate::Dies);
            let memory = scene.memory(&[0; LEN]);
            let ticket = scene.own.expose(scene.to, memory);
            scene.own.tell(scene.to, ticket);
            // The receiver computes.
            let has_struck = !scene.wait().success();
            let what = format!("{way:?} {point:?} {times}");
            if point == Point::Seen && has_struck {
                // Nobody has taken it.
                assert!(scene.own.shm.revoke(scene.to, ticket), "{what}");
                memory.iter().for_each(|cell| cell.set(PAINT));
                scene.check_survivor();
                assert!(holds(memory, &[PAINT; LEN]), "{what}");
                assert_eq!(scene.own.log.completions, [], "{what}");
                return true;
            }
            assert!(!scene.own.shm.revoke(scene.to, ticket), "{what}");
            let outcome = scene.end();
            if has_struck {
                check_end(outcome, (point, times), &what);
            }
            let is_done = outcome == Outcome::Done(LEN as u64);
            assert!(is_done || has_struck, "{what}: {outcome:?}");
            assert!(!is_done || holds(memory, &source()), "{what}: wrong bytes");
            if has_struck {
                scene.check_survivor();
            }
            has_struck
        });
    }
}

/// How a receiver takes its memory back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taking {
    /// It revokes it.
    Revoke,
    /// It is told that its peer has failed.
    Fail,
    /// It closes.
    Close,
}

#[test]
fn who_fills_late_writes_nothing_that_was_taken_back() {
    for way in WAYS {
        for taking in [Taking::Revoke, Taking::Fail, Taking::Close] {
            // To close takes a while where a chunk is in the other's hands, and gives nothing back.
            let points = match taking {
                Taking::Close => &POINTS[..3],
                _ => &POINTS[..],
            };
            sweep(points, |point, times| {
                let mut scene = Scene::new(way, Part::Fill, (point, times), Fate::IsLate);
                let memory = scene.memory(&[0; LEN]);
                let ticket = scene.own.expose(scene.to, memory);
                scene.own.tell(scene.to, ticket);
                let is_late = scene.is_late();
                if is_late {
                    let what = format!("{way:?} {taking:?} {point:?} {times}");
                    a_late_filler_goes_on(&mut scene, memory, ticket, taking, &what);
                }
                is_late
            });
        }
    }
}

fn a_late_filler_goes_on(
    scene: &mut Scene,
    memory: &'static [Cell<u8>],
    ticket: Ticket,
    taking: Taking,
    what: &str,
) {
    let to = scene.to;
    let mut is_back = match taking {
        Taking::Revoke => scene.own.shm.revoke(to, ticket),
        Taking::Fail => {
            scene.own.shm.peer_failed(Rank::new(1), &mut scene.own.log);
            for _ in 0..100 {
                scene.own.progress();
                scene.own.look_after_peers();
            }
            !scene.own.log.completions.is_empty()
        }
        Taking::Close => scene.own.shm.abandon_transfers().is_empty(),
    };
    let paint = || memory.iter().for_each(|cell| cell.set(PAINT));
    if is_back {
        paint();
    }
    scene.go_on();
    // Revoked memory has no completion, and nobody is left to report one who has closed.
    if !is_back && taking != Taking::Close {
        let outcome = scene.end();
        match taking {
            Taking::Revoke => assert_eq!(outcome, Outcome::Done(LEN as u64), "{what}"),
            _ => assert_eq!(outcome, Outcome::PeerFailed, "{what}"),
        }
        assert!(taking == Taking::Fail || holds(memory, &source()), "{what}");
        paint();
        is_back = true;
    }
    assert!(scene.wait().success(), "{what}");
    if is_back {
        assert!(holds(memory, &[PAINT; LEN]), "{what}: written late");
        assert!(!scene.own.shm.transfers.are_pending(), "{what}");
    }
}

#[test]
fn who_exposes_dies_at_each_point_of_the_filler() {
    for way in WAYS {
        sweep(&POINTS, |point, times| {
            let mut scene = Scene::new(way, Part::Compute, (point, 1), Fate::Dies);
            let memory = scene.memory(&source());
            let ticket = scene.own.hear();
            let (child, has_struck) = (Rc::clone(&scene.child), Rc::new(Cell::new(false)));
            let struck = Rc::clone(&has_struck);
            strike(point, times, move || {
                Scene::kill(&child);
                struck.set(true);
            });
            let what = format!("{way:?} {point:?} {times}");
            assert_eq!(
                scene.own.fill(scene.to, ticket, memory),
                Post::Posted,
                "{what}"
            );
            match scene.end() {
                Outcome::Done(moved) => {
                    assert_eq!(moved, LEN as u64, "{what}");
                    let is_over = [Point::Copied, Point::Finished].contains(&point);
                    let is_over = is_over && times == CHUNKS || way == Copying::Arena;
                    assert!(!has_struck.get() || is_over, "{what}");
                }
                outcome => assert_eq!(outcome, Outcome::PeerFailed, "{what}"),
            }
            STRIKE.set(None);
            if !has_struck.get() {
                Scene::kill(&scene.child);
            }
            scene.check_survivor();
            has_struck.get()
        });
    }
}

/// It copies into its memory itself, and the filler does not look.
#[test]
fn who_exposes_dies_at_each_point_of_its_own() {
    for way in WAYS {
        sweep(&POINTS[3..], |point, times| {
            let mut scene = Scene::new(way, Part::Copy, (point, times), Fate::Dies);
            let memory = scene.memory(&source());
            let ticket = scene.own.hear();
            assert_eq!(scene.own.fill(scene.to, ticket, memory), Post::Posted);
            let has_struck = !scene.wait().success();
            let what = format!("{way:?} {point:?} {times}");
            let outcome = scene.end();
            if has_struck {
                check_end(outcome, (point, times), &what);
                scene.check_survivor();
            } else {
                assert_eq!(outcome, Outcome::Done(LEN as u64), "{what}");
            }
            has_struck
        });
    }
}

/// Bytes that the receiver may still read stay lent; it never ends well with others.
#[test]
fn who_exposes_and_is_late_reads_nothing_that_was_taken_back() {
    for way in WAYS {
        sweep(&POINTS[3..], |point, times| {
            let mut scene = Scene::new(way, Part::Copy, (point, times), Fate::IsLate);
            let memory = scene.memory(&source());
            let ticket = scene.own.hear();
            assert_eq!(scene.own.fill(scene.to, ticket, memory), Post::Posted);
            if !scene.is_late() {
                return false;
            }
            let what = format!("{way:?} {point:?} {times}");
            scene.own.shm.peer_failed(Rank::new(1), &mut scene.own.log);
            for _ in 0..100 {
                scene.own.progress();
                scene.own.look_after_peers();
            }
            let is_held = scene.own.log.completions.is_empty();
            assert_eq!(is_held, point != Point::Finished, "{what}");
            scene.go_on();
            scene.end();
            memory.iter().for_each(|cell| cell.set(PAINT));
            assert!(scene.wait().success(), "{what}");
            assert!(!scene.own.shm.transfers.are_pending(), "{what}");
            true
        });
    }
}
