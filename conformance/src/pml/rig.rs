//! What checks are made of: ranks driven by turns, ranks on threads, and words for what went wrong.
#![allow(unsafe_code)]

use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use tagwire_transport::fault::SplitMix64;
use tagwire_transport::{RecvBuffer, SendBuffer};

use super::{Factory, Job, Setup};
use tagwire_pml::guard::ThreadLevel;
use tagwire_pml::messenger::Messenger;
use tagwire_pml::pml::Pml;
use tagwire_pml::types::{RequestId, SendMode, Status};
use tagwire_pml::wait::WaitPolicy;

/// How a check ends.
pub(super) type Checked<T = ()> = Result<T, String>;

pub(super) const WORLD: ContextId = ContextId::WORLD;

/// Rounds without any event after which what has not happened never will; more where it takes more than the usual until ranks are at rest.
const HOPELESS: u32 = 4000;

/// How long ranks that are at rest sleep between two looks.
const NAP: Duration = Duration::from_millis(1);

/// And so often as long as things may be under way.
const HOPELESS_LATENCIES: u32 = 200;

/// How long a wait may take that is to succeed.
pub(super) const PATIENCE: Option<Duration> = Some(Duration::from_secs(20));

/// Fails the check, with words, unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($words:tt)+) => {
        if !$condition {
            return Err(format!($($words)+));
        }
    };
}
pub(super) use ensure;

/// Fails the check unless both are the same.
pub(super) fn same<T: PartialEq + fmt::Debug>(what: &str, found: T, wanted: T) -> Checked {
    if found == wanted {
        Ok(())
    } else {
        Err(format!("{what}: {found:?} where {wanted:?} is right"))
    }
}

/// Says which call was refused that should not have been.
pub(super) fn accepted<T, E: fmt::Display>(call: &str, result: Result<T, E>) -> Checked<T> {
    result.map_err(|error| format!("{call} was refused: {error}"))
}

/// A user's tag.
pub(super) fn tag(value: u32) -> Tag {
    Tag::from_wire((value & 0x7fff_ffff) as i32).unwrap_or(Tag::internal(0))
}

pub(super) fn only(value: u32) -> TagSelector {
    TagSelector::exact(tag(value))
}

pub(super) fn from(rank: u32) -> SourceSelector {
    SourceSelector::exact(Rank::new(rank))
}

pub(super) const ANYONE: SourceSelector = SourceSelector::ANY;
pub(super) const ANYTHING: TagSelector = TagSelector::ANY;

/// `len` bytes that tell message number `seed` from any other.
pub(super) fn pattern(seed: usize, len: usize) -> Vec<u8> {
    let mut bytes = SplitMix64::new(seed as u64).bytes(len);
    for (byte, own) in bytes.iter_mut().zip((seed as u32).to_le_bytes()) {
        *byte = own;
    }
    bytes
}

/// What a byte of a receive buffer is before anything is received.
pub(super) const UNTOUCHED: u8 = 0xee;

/// A receive under way, and where its buffer is.
#[derive(Debug, Clone, Copy)]
pub(super) struct Receiving {
    pub request: RequestId,
    pub buffer: usize,
    pub at: usize,
}

/// Ranks that a check drives by turns, and the buffers that are lent to them.
pub(super) struct World {
    ranks: Vec<Option<Box<dyn Pml>>>,
    job: Arc<dyn Job>,
    lent: Vec<Box<[u8]>>,
    leaky: bool,
    /// How long something may be under way while nobody has anything to do.
    latency: Duration,
    /// Rounds without any event after which ranks are taken to be at rest.
    quiet: u32,
    /// Receives that are cut short get the bytes that fit.
    pub(super) gives_cuts: bool,
}

impl World {
    /// `size` ranks as `setup` asks.
    pub(super) fn open(factory: &Factory, size: u32, setup: &Setup) -> Checked<Self> {
        let job = factory.job(size, setup)?;
        let opened: Vec<Checked<Box<dyn Pml>>> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..size)
                .map(|rank| {
                    let job = Arc::clone(&job);
                    scope.spawn(move || job.open(Rank::new(rank)))
                })
                .collect();
            threads
                .into_iter()
                .map(|thread| {
                    thread
                        .join()
                        .unwrap_or_else(|_| Err("opening a rank panicked".into()))
                })
                .collect()
        });
        let mut ranks = Vec::new();
        for rank in opened {
            ranks.push(Some(rank?));
        }
        Ok(Self {
            ranks,
            job,
            lent: Vec::new(),
            leaky: false,
            latency: factory.claims.latency,
            quiet: factory.claims.quiet,
            gives_cuts: !factory.claims.all_or_nothing,
        })
    }

    /// Two ranks, or the one there can be.
    pub(super) fn pair(factory: &Factory) -> Checked<Self> {
        Self::open(factory, 2, &Setup::default())
    }

    pub(super) fn size(&self) -> usize {
        self.ranks.len()
    }

    pub(super) fn is_alive(&self, rank: usize) -> bool {
        self.ranks[rank].is_some()
    }

    pub(super) fn pml(&mut self, rank: usize) -> Checked<&mut dyn Pml> {
        match self.ranks.get_mut(rank) {
            Some(Some(pml)) => Ok(&mut **pml),
            _ => Err(format!("rank {rank} is not there: the check is wrong")),
        }
    }

    /// The bytes that were received.
    pub(super) fn bytes(&self, receiving: Receiving) -> &[u8] {
        &self.lent[receiving.buffer]
    }

    /// Lends `data` for as long as the ranks live.
    pub(super) fn lend(&mut self, data: &[u8]) -> SendBuffer {
        self.lent.push(data.into());
        let data = &self.lent[self.lent.len() - 1];
        // SAFETY: the boxes outlive the ranks, and nobody touches them meanwhile.
        unsafe { SendBuffer::contiguous(data.as_ptr(), data.len()) }
    }

    /// Lends room for `len` bytes, and returns where it is.
    pub(super) fn lend_room(&mut self, len: usize) -> (RecvBuffer, usize) {
        self.lent.push(vec![UNTOUCHED; len].into());
        let place = self.lent.len() - 1;
        let room = &mut self.lent[place];
        // SAFETY: as above; the bytes are looked at after the end of the operation only.
        (
            unsafe { RecvBuffer::contiguous(room.as_mut_ptr(), len) },
            place,
        )
    }

    /// Overwrites the buffer that was lent last, as a caller may who has it back.
    pub(super) fn scribble(&mut self) {
        if let Some(last) = self.lent.last_mut() {
            last.fill(0xdd);
        }
    }

    pub(super) fn send_in(
        &mut self,
        at: usize,
        to: u32,
        tag: Tag,
        context: ContextId,
        data: &[u8],
        mode: SendMode,
    ) -> Checked<RequestId> {
        let data = self.lend(data);
        let sent = self.pml(at)?.isend(data, Rank::new(to), tag, context, mode);
        accepted("isend", sent)
    }

    pub(super) fn send(
        &mut self,
        at: usize,
        to: u32,
        value: u32,
        data: &[u8],
        mode: SendMode,
    ) -> Checked<RequestId> {
        self.send_in(at, to, tag(value), WORLD, data, mode)
    }

    pub(super) fn recv_in(
        &mut self,
        at: usize,
        source: SourceSelector,
        tag: TagSelector,
        context: ContextId,
        len: usize,
    ) -> Checked<Receiving> {
        let (room, buffer) = self.lend_room(len);
        let posted = self.pml(at)?.irecv(room, source, tag, context);
        Ok(Receiving {
            request: accepted("irecv", posted)?,
            buffer,
            at,
        })
    }

    pub(super) fn recv(
        &mut self,
        at: usize,
        source: SourceSelector,
        tag: TagSelector,
        len: usize,
    ) -> Checked<Receiving> {
        self.recv_in(at, source, tag, WORLD, len)
    }

    /// Every rank makes progress once. Returns how many things happened.
    pub(super) fn turn(&mut self) -> usize {
        self.ranks
            .iter_mut()
            .flatten()
            .map(|pml| pml.progress())
            .sum()
    }

    /// Everybody looks after its peers.
    pub(super) fn look_around(&mut self) {
        for pml in self.ranks.iter_mut().flatten() {
            pml.look_after_peers();
        }
    }

    /// Drives all until none has anything to do.
    pub(super) fn settle(&mut self) {
        let never = self.settle_unless(|_| Ok(false));
        debug_assert_eq!(never, Ok(false));
    }

    /// Drives all until the request is complete, or until none has anything to do; returns whether
    /// it is complete.
    pub(super) fn settle_or_complete(&mut self, at: usize, request: RequestId) -> Checked<bool> {
        self.settle_unless(|world| world.is_complete(at, request))
    }

    /// Drives all until `done`, or until none has anything to do; returns whether it is done.
    fn settle_unless(&mut self, mut done: impl FnMut(&mut Self) -> Checked<bool>) -> Checked<bool> {
        let mut quiet = 0;
        let mut slept = Duration::ZERO;
        // Ranks that talk for ever are found by the checks: nothing of theirs completes.
        for _ in 0..2_000_000 {
            if done(self)? {
                return Ok(true);
            }
            quiet = match self.turn() == 0 && self.job.is_at_rest() {
                true => quiet + 1,
                false => 0,
            };
            if quiet == 0 {
                slept = Duration::ZERO;
            }
            if quiet < self.quiet {
                continue;
            }
            if slept >= self.latency {
                break;
            }
            // Naps and no clock: on a busy machine they last longer, just as the network's own
            // threads take longer to get their turns.
            thread::sleep(NAP);
            slept += NAP;
        }
        Ok(false)
    }

    /// Drives all until `done`; fails with the dumps of all ranks where that never comes.
    pub(super) fn until(
        &mut self,
        what: &str,
        mut done: impl FnMut(&mut Self) -> Checked<bool>,
    ) -> Checked {
        let mut quiet = 0;
        let mut since = Instant::now();
        for round in 0..4_000_000_u32 {
            if done(self)? {
                return Ok(());
            }
            quiet = if self.turn() == 0 { quiet + 1 } else { 0 };
            if quiet == 0 {
                since = Instant::now();
            }
            if quiet >= HOPELESS.max(50 * self.quiet) {
                if since.elapsed() >= HOPELESS_LATENCIES * self.latency {
                    break;
                }
                thread::sleep(Duration::from_millis(1));
            }
            if round % 512 == 511 {
                self.look_around();
            }
        }
        Err(format!("{what} never comes\n{}", self.dumps()))
    }

    /// What all ranks wait for.
    pub(super) fn dumps(&self) -> String {
        let mut text = String::new();
        for pml in self.ranks.iter().flatten() {
            let _ = pml.dump(&tagwire_pml::ContextNames::default(), &mut text);
        }
        text
    }

    pub(super) fn is_complete(&mut self, at: usize, request: RequestId) -> Checked<bool> {
        Ok(self.pml(at)?.is_complete(request))
    }

    /// Drives all until the request is complete, and takes its end.
    pub(super) fn finish(&mut self, at: usize, request: RequestId) -> Checked<Status> {
        self.until(&format!("the end of a request of rank {at}"), |world| {
            world.is_complete(at, request)
        })?;
        let taken = accepted("take", self.pml(at)?.take(request))?;
        taken.ok_or_else(|| "a complete request has no end".into())
    }

    /// Drives all until the operation is complete; it must have gone well.
    pub(super) fn finish_well(&mut self, at: usize, request: RequestId) -> Checked<Status> {
        let status = self.finish(at, request)?;
        same("the failure", status.failure, None)?;
        ensure!(!status.cancelled, "cancelled, though nobody asked for it");
        Ok(status)
    }

    /// Finishes a receive, which must have got message `seed` of `len` bytes.
    pub(super) fn got(
        &mut self,
        receiving: Receiving,
        source: u32,
        value: u32,
        seed: usize,
        len: usize,
    ) -> Checked {
        let status = self.finish_well(receiving.at, receiving.request)?;
        same("the source", status.source, Rank::new(source))?;
        same("the tag", status.tag, tag(value))?;
        same("the length", status.length, len)?;
        let bytes = self.bytes(receiving);
        ensure!(
            bytes[..len] == pattern(seed, len),
            "{len} bytes with tag {value} are not those that were sent"
        );
        ensure!(
            bytes[len..].iter().all(|byte| *byte == UNTOUCHED),
            "something was written behind the {len} bytes of the message"
        );
        Ok(())
    }

    /// Has the ranks in contact where that takes a network's own threads: for checks that look at what
    /// is there once all are at rest.
    pub(super) fn meet(&mut self) -> Checked {
        if self.latency.is_zero() {
            return Ok(());
        }
        self.acquaint()
    }

    /// Everyone sends everyone else a message: contact in all directions.
    pub(super) fn acquaint(&mut self) -> Checked {
        for a in 0..self.size() {
            for b in 0..self.size() {
                if a != b {
                    let receiving = self.recv(b, from(a as u32), only(0), 4)?;
                    let sent = self.send(a, b as u32, 0, &pattern(a, 4), SendMode::Standard)?;
                    self.got(receiving, a as u32, 0, a, 4)?;
                    self.finish_well(a, sent)?;
                }
            }
        }
        Ok(())
    }

    /// `rank` dies.
    pub(super) fn kill(&mut self, rank: usize) {
        if let Some(pml) = self.ranks[rank].take() {
            let is_gone = self.job.kill(Rank::new(rank as u32), Box::new(pml));
            self.leaky |= !is_gone;
        }
    }

    /// `rank` leaves in good order, with nothing open.
    pub(super) fn leave(&mut self, rank: usize) -> Checked {
        self.pml(rank)?.begin_close();
        self.until("a close", |world| {
            Ok(world.pml(rank)?.open_work().is_none())
        })?;
        self.pml(rank)?.leave();
        let leaving = self.ranks[rank].take();
        if self.latency.is_zero() {
            return Ok(());
        }
        // Over a network of the system it may wait until the others have read its goodbye.
        let leaving = thread::spawn(move || drop(leaving));
        while !leaving.is_finished() {
            self.turn();
        }
        leaving.join().map_err(|_| "a close panicked".to_owned())
    }

    /// Whether nothing is under way anywhere.
    pub(super) fn is_idle(&mut self) -> Checked {
        self.settle();
        for pml in self.ranks.iter().flatten() {
            if let Some(open) = pml.open_work() {
                return Err(format!(
                    "rank {} still has {open}\n{}",
                    pml.rank(),
                    self.dumps()
                ));
            }
        }
        Ok(())
    }
}

impl Drop for World {
    fn drop(&mut self) {
        if self.latency.is_zero() {
            self.ranks.clear();
        }
        // As in `leave`. A panic was reported where it happened.
        let closing: Vec<_> = self
            .ranks
            .drain(..)
            .map(|rank| thread::spawn(move || drop(rank)))
            .collect();
        for rank in closing {
            let _ = rank.join();
        }
        if self.leaky {
            std::mem::forget(std::mem::take(&mut self.lent));
        }
    }
}

/// Runs `body` for each of `size` ranks on a thread of its own, and closes the ranks.
pub(super) fn on_threads(
    factory: &Factory,
    size: u32,
    level: ThreadLevel,
    policy: WaitPolicy,
    body: impl Fn(&Arc<Messenger>) -> Checked + Sync,
) -> Checked {
    let job = factory.job(size, &Setup::default())?;
    let results: Vec<Checked> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..size)
            .map(|rank| {
                let (job, body) = (&job, &body);
                scope.spawn(move || {
                    let port = Arc::new(job.port(Rank::new(rank), level, policy)?);
                    body(&port)?;
                    accepted("close", port.close(Duration::from_secs(20)))
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err("a rank panicked".into()))
            })
            .collect()
    });
    results.into_iter().collect()
}

/// The policy that most checks wait with: ranks outnumber cores.
pub(super) const fn waiting() -> WaitPolicy {
    WaitPolicy::adaptive(true)
}

/// `data`, lent for ever: a check that gives up must not leave a rank with freed memory.
pub(super) fn lend(data: &[u8]) -> SendBuffer {
    let data: &'static [u8] = Box::leak(data.into());
    // SAFETY: never freed, never written.
    unsafe { SendBuffer::contiguous(data.as_ptr(), data.len()) }
}

/// Room that is lent for ever.
#[derive(Debug)]
pub(super) struct Room(*mut u8, usize);

// SAFETY: the threads of a check use parts of it that are their own at the time.
unsafe impl Sync for Room {}

impl Room {
    pub(super) fn new(len: usize) -> Self {
        let room: &'static mut [u8] = Box::leak(vec![UNTOUCHED; len].into());
        Self(room.as_mut_ptr(), len)
    }

    /// The room, to be received into: once at a time.
    pub(super) const fn lend(&self) -> RecvBuffer {
        // SAFETY: never freed; the check lends it to one operation at a time.
        unsafe { RecvBuffer::contiguous(self.0, self.1) }
    }

    /// The same, to be sent from: nobody writes what is being sent.
    pub(super) const fn lend_to_send(&self) -> SendBuffer {
        // SAFETY: never freed; the check writes to a part only while it is not being sent.
        unsafe { SendBuffer::contiguous(self.0, self.1) }
    }

    /// Changes the bytes from `at` on, which no operation has just now.
    pub(super) fn write(&self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.1, "the room is longer");
        // SAFETY: inside of memory that is never freed, and which the check alone has.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.0.add(at), bytes.len()) };
    }

    /// A copy of the bytes in `range`, which have arrived.
    pub(super) fn read(&self, range: std::ops::Range<usize>) -> Vec<u8> {
        assert!(
            range.start <= range.end && range.end <= self.1,
            "the room is longer"
        );
        let mut bytes = vec![0; range.len()];
        // SAFETY: inside of memory that is never freed; nobody writes what has arrived.
        unsafe {
            std::ptr::copy_nonoverlapping(self.0.add(range.start), bytes.as_mut_ptr(), range.len());
        }
        bytes
    }

    /// What was received, once that is over.
    pub(super) const fn bytes(&self) -> &[u8] {
        // SAFETY: never freed; the check looks after the end of the operation.
        unsafe { std::slice::from_raw_parts(self.0, self.1) }
    }
}

/// Sends and waits.
pub(super) fn send(port: &Messenger, to: u32, value: u32, data: &[u8], mode: SendMode) -> Checked {
    let sent = port.isend(lend(data), Rank::new(to), tag(value), WORLD, mode);
    let status = accepted("wait", port.wait(accepted("isend", sent)?, PATIENCE))?;
    same("a send's failure", status.failure, None)
}

/// Receives message `seed` of `len` bytes.
pub(super) fn recv(
    port: &Messenger,
    source: SourceSelector,
    value: TagSelector,
    seed: usize,
    len: usize,
) -> Checked<Status> {
    let room = Room::new(len);
    let posted = accepted("irecv", port.irecv(room.lend(), source, value, WORLD))?;
    let status = accepted("wait", port.wait(posted, PATIENCE))?;
    same("a receive's failure", status.failure, None)?;
    same("the length", status.length, len)?;
    ensure!(
        room.bytes() == pattern(seed, len),
        "{len} bytes are not those that were sent"
    );
    Ok(status)
}
