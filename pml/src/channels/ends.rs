//! The two ends, as any thread sees them.

use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crossbeam_queue::ArrayQueue;
use tagwire_base::Time;
use tagwire_base::sync::{AtomicBool, AtomicU32, AtomicU64, fence};
use tagwire_base::sync::{Ordering::AcqRel, Ordering::Acquire, Ordering::Relaxed};
use tagwire_base::sync::{Ordering::Release, Ordering::SeqCst};
use tagwire_transport::{Buffering, Post, RecvChannel, SendChannel};

use super::key::Run;
use super::state::{Call, Doorbell};

const OPEN: u32 = 0;
/// Nobody starts a round any more.
const CLOSING: u32 = 1;
/// The transport has let go of the buffer.
const CLOSED: u32 = 2;

/// How long a rank looks for another reason why a write did not work: longer than it takes to find out
/// that a peer has failed.
const BLAME: Duration = Duration::from_secs(10);

/// Instead of a number of rounds: the other end has not closed.
const NEVER: u64 = u64::MAX;

/// What both ends have: how they call whoever drives their rank, and how they end.
#[derive(Debug)]
pub(super) struct Line {
    doorbell: Arc<Doorbell>,
    call: Call,
    /// The call is in the list.
    called: AtomicBool,
    state: AtomicU32,
    /// How many rounds the other end had complete when it closed.
    over_there: AtomicU64,
    /// When a write did not work.
    broken: OnceLock<Time>,
    /// Something that was taken out of the queue has not left.
    held: AtomicBool,
    how: String,
}

impl Line {
    pub(super) fn new(doorbell: Arc<Doorbell>, call: Call, how: String) -> Self {
        Self {
            doorbell,
            call,
            called: AtomicBool::new(false),
            state: AtomicU32::new(OPEN),
            over_there: AtomicU64::new(NEVER),
            broken: OnceLock::new(),
            held: AtomicBool::new(false),
            how,
        }
    }

    /// Asks to be heard.
    #[inline]
    pub(super) fn call(&self) {
        if !self.called.swap(true, AcqRel) {
            self.doorbell.calls.push(self.call);
        }
    }

    /// The call was taken out of the list. What is asked for from now on calls again.
    pub(super) fn heard(&self) {
        self.called.swap(false, AcqRel);
    }

    fn close(&self) -> bool {
        if self
            .state
            .compare_exchange(OPEN, CLOSING, AcqRel, Acquire)
            .is_ok()
        {
            self.call();
        }
        self.is_closed()
    }

    pub(super) fn is_open(&self) -> bool {
        self.state.load(Acquire) == OPEN
    }

    pub(super) fn is_closing(&self) -> bool {
        self.state.load(Acquire) == CLOSING
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state.load(Acquire) == CLOSED
    }

    /// The transport has let go of the buffer.
    pub(super) fn end(&self) {
        self.state.store(CLOSED, Release);
    }

    /// The other end has closed after so many rounds.
    pub(super) fn ended_there(&self, rounds: u64) {
        self.over_there.store(rounds.min(NEVER - 1), Release);
    }

    /// Whether the other end has closed.
    pub(super) fn has_ended_there(&self) -> bool {
        self.over_there.load(Acquire) != NEVER
    }

    /// Whether something that was taken out of the queue has not left.
    pub(super) fn hold(&self, held: bool) {
        self.held.store(held, Release);
    }

    /// A write did not work: no round ends any more.
    pub(super) fn break_down(&self) {
        self.broken.get_or_init(|| self.doorbell.clock.now());
    }

    fn is_broken(&self) -> bool {
        self.broken.get().is_some()
    }

    /// Whether the other end has closed, or a write did not work, and its peer was not found to have failed
    /// since: who dies has its memory gone before anybody knows.
    fn is_over(&self, epoch: u64) -> bool {
        let has_waited = |at: &Time| self.doorbell.clock.now().since(*at) > BLAME;
        self.was_given_up(epoch) || self.broken.get().is_some_and(has_waited)
    }

    /// Whether the other end has closed before `epoch`.
    fn was_given_up(&self, epoch: u64) -> bool {
        epoch > self.over_there.load(Acquire)
    }
}

/// The sending end.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) line: Line,
    units: u64,
    /// Writes that end for each of them: of its bytes, and of its flag where there are such.
    writes: u64,
    buffering: Buffering,
    /// Runs that were posted. There is room for all that a round can have.
    posts: ArrayQueue<Run>,
    /// The last round that the receiver has opened.
    opened: AtomicU64,
    /// Writes of transport partitions that have ended, in all rounds.
    released: AtomicU64,
    /// Those of which the receiver knows, or will.
    notification: AtomicU64,
}

impl Sender {
    pub(super) fn new(line: Line, units: u32, buffering: Buffering, writes: u64) -> Self {
        Self {
            line,
            units: units.into(),
            writes,
            buffering,
            posts: ArrayQueue::new(units as usize),
            opened: AtomicU64::new(0),
            released: AtomicU64::new(0),
            notification: AtomicU64::new(0),
        }
    }

    /// What the receiver says: the last round it has opened, and, where it has closed, how many it had
    /// complete.
    pub(super) fn heed(&self, opened: u64, closed: Option<u64>) {
        self.opened.fetch_max(opened, AcqRel);
        // A thread that has found no credit has queued before this, or looks again after it.
        fence(SeqCst);
        if let Some(rounds) = closed {
            self.line.ended_there(rounds);
        }
    }

    /// A run that was posted.
    pub(super) fn next_post(&self) -> Option<Run> {
        self.posts.pop()
    }

    /// The round whose partitions are written: those of the next one wait for the end of all of them.
    pub(super) fn epoch(&self) -> u64 {
        self.released.load(Acquire) / (self.units * self.writes) + 1
    }

    /// Writes of so many transport partitions have ended.
    pub(super) fn release(&self, units: u32) {
        self.released.fetch_add(units.into(), AcqRel);
    }

    /// The receiver knows of so many transport partitions, or will.
    pub(super) fn tell(&self, units: u32) {
        self.notification.fetch_add(units.into(), AcqRel);
    }

    /// How many rounds were told as a whole.
    pub(super) fn rounds(&self) -> u64 {
        self.notification.load(Acquire) / self.units
    }
}

impl SendChannel for Sender {
    fn start(&self, _: u64) {}

    #[inline]
    fn post(&self, epoch: u64, partitions: Range<u32>) -> Post {
        let is_over = self.line.was_given_up(epoch) || self.line.is_broken();
        if self.opened.load(Acquire) < epoch || is_over {
            return Post::Busy;
        }
        if partitions.is_empty() {
            return Post::Posted;
        }
        let run = Run {
            room: self.buffering.room(epoch),
            units: partitions,
        };
        if self.posts.push(run).is_err() {
            return Post::Busy;
        }
        self.line.call();
        Post::Posted
    }

    fn advance(&self, _: u64) -> usize {
        0
    }

    #[inline]
    fn is_complete(&self, epoch: u64) -> bool {
        self.released.load(Acquire) == epoch * self.units * self.writes && !self.line.is_broken()
    }

    fn is_over(&self, epoch: u64) -> bool {
        self.line.is_over(epoch)
    }

    fn is_driven(&self) -> bool {
        true
    }

    fn holds_back(&self) -> bool {
        self.line.called.load(Acquire) || self.line.held.load(Acquire)
    }

    fn close(&self) -> bool {
        self.line.close()
    }

    fn describe(&self) -> String {
        self.line.how.clone()
    }
}

/// The receiving end.
#[derive(Debug)]
pub(super) struct Receiver {
    pub(super) line: Line,
    units: usize,
    buffering: Buffering,
    /// The round in which each transport partition was last written, of each room.
    landed: Box<[AtomicU64]>,
    /// Transport partitions that were written, in all rounds of each room.
    counts: [AtomicU64; 2],
    /// The last round that was begun.
    begun: AtomicU64,
}

impl Receiver {
    pub(super) fn new(line: Line, units: u32, buffering: Buffering) -> Self {
        let units = units as usize;
        let words = units * buffering.rooms();
        Self {
            line,
            units,
            buffering,
            landed: (0..words).map(|_| AtomicU64::new(0)).collect(),
            counts: [AtomicU64::new(0), AtomicU64::new(0)],
            begun: AtomicU64::new(0),
        }
    }

    /// The last round that the sender may write.
    pub(super) fn opened(&self) -> u64 {
        match self.begun.load(Acquire) {
            0 => 0,
            begun => self.buffering.credit(begun),
        }
    }

    /// Whether everything has arrived of the rounds that were opened: nobody writes.
    pub(super) fn is_at_rest(&self) -> bool {
        self.rounds() == self.opened()
    }

    /// How many rounds have arrived as a whole.
    pub(super) fn rounds(&self) -> u64 {
        let whole = |count: &AtomicU64| count.load(Acquire) / self.units as u64;
        self.counts.iter().map(whole).sum()
    }

    /// Whether something is not there yet of the rounds that have begun here.
    pub(super) fn waits(&self) -> bool {
        let begun = self.begun.load(Acquire);
        self.missing().any(|(_, _, epoch)| epoch <= begun)
    }

    /// What is not there yet of the rounds that are open, by room and transport partition, with the round.
    pub(super) fn missing(&self) -> impl Iterator<Item = (usize, usize, u64)> {
        let opened = self.opened();
        let rooms = (0..self.buffering.rooms()).map(move |room| (room, self.open_in(opened, room)));
        let open = rooms.filter(|(room, epoch)| {
            let whole = self.buffering.turn(*epoch) * self.units as u64;
            *epoch > 0 && self.counts[*room].load(Acquire) < whole
        });
        open.flat_map(move |(room, epoch)| {
            let words = self.landed.chunks(self.units).nth(room).unwrap_or_default();
            let missing = words.iter().enumerate();
            let missing = missing.filter(move |(_, word)| word.load(Relaxed) < epoch);
            missing.map(move |(unit, _)| (room, unit, epoch))
        })
    }

    /// Of the rounds that are open where `opened` is the last, the one that uses `room`; 0 for none.
    fn open_in(&self, opened: u64, room: usize) -> u64 {
        match self.buffering.room(opened) == room {
            true => opened,
            false => opened.saturating_sub(1),
        }
    }

    /// `run` has been written. Returns whether that can be: each partition once in a round.
    pub(super) fn land(&self, run: &Run) -> bool {
        let opened = self.opened();
        let epoch = self.open_in(opened, run.room);
        let units = run.units.start as usize..run.units.end as usize;
        let room = self.landed.chunks(self.units).nth(run.room);
        let Some(landed) = room.and_then(|room| room.get(units)) else {
            return false;
        };
        let count = landed.len() as u64;
        if opened == 0 || landed.iter().any(|word| word.load(Relaxed) >= epoch) {
            return false;
        }
        for word in landed {
            word.store(epoch, Release);
        }
        self.counts[run.room].fetch_add(count, AcqRel);
        true
    }

    /// The word of a transport partition in the room of `epoch`.
    #[inline]
    fn word(&self, epoch: u64, partition: u32) -> &AtomicU64 {
        &self.landed[self.buffering.room(epoch) * self.units + partition as usize]
    }
}

impl RecvChannel for Receiver {
    fn start(&self, epoch: u64) {
        // Not back: a thread may come late with a round that is over.
        self.begun.fetch_max(epoch, AcqRel);
        self.line.call();
    }

    #[inline]
    fn has_landed(&self, epoch: u64, partition: u32) -> bool {
        self.word(epoch, partition).load(Acquire) == epoch
    }

    fn advance(&self, epoch: u64) -> bool {
        let count = self.counts[self.buffering.room(epoch)].load(Acquire);
        count == self.buffering.turn(epoch) * self.units as u64
    }

    fn is_over(&self, epoch: u64) -> bool {
        self.line.is_over(epoch)
    }

    fn is_driven(&self) -> bool {
        true
    }

    fn close(&self) -> bool {
        self.line.close()
    }

    fn describe(&self) -> String {
        self.line.how.clone()
    }
}

#[cfg(test)]
mod tests {
    use tagwire_base::{Clock, ManualClock};

    use super::*;

    fn line() -> Line {
        line_of(Clock::default())
    }

    fn line_of(clock: Clock) -> Line {
        let bell = Doorbell {
            clock,
            ..Doorbell::default()
        };
        Line::new(
            Arc::new(bell),
            Call::Sender(crate::slab::Handle::NONE),
            String::new(),
        )
    }

    #[test]
    fn a_broken_end_is_over_once_its_peer_would_be_known_to_be_dead() {
        let hand = ManualClock::default();
        let end = Sender::new(line_of(hand.clock()), 1, Buffering::Single, 1);
        end.line.break_down();
        for (seconds, is_over) in [(0, false), (10, false), (1, true)] {
            hand.advance(Duration::from_secs(seconds));
            assert_eq!(end.is_over(1), is_over);
        }
    }

    #[test]
    fn a_partition_lands_once_in_a_round() {
        let end = Receiver::new(line(), 4, Buffering::Single);
        let land = |units| end.land(&Run { room: 0, units });
        assert!(!land(0..1), "no round is open");
        end.start(1);
        assert!(land(1..3));
        assert!(!land(2..4), "partition 2 was there");
        assert!(!land(3..5), "there is no partition 4");
        assert!(end.has_landed(1, 1) && !end.has_landed(1, 3));
        assert!(land(3..4) && land(0..1));
        assert!(end.advance(1));
        assert_eq!(end.rounds(), 1);
        assert!(!land(0..1), "the round is over");
        end.start(2);
        assert!(!end.has_landed(2, 0));
        assert!(land(0..4));
    }

    #[test]
    fn with_two_rooms_the_next_round_may_come_early() {
        let end = Receiver::new(line(), 2, Buffering::Double);
        let land = |room, units| end.land(&Run { room, units });
        assert!(!land(0, 0..1) && !land(1, 0..1), "no round is open");
        end.start(1);
        assert!(land(0, 0..1));
        assert!(land(1, 0..2), "the second round");
        assert!(!end.advance(1) && !end.has_landed(1, 1));
        assert!(!land(1, 1..2) && !land(0, 0..1), "twice");
        assert!(!land(1, 1..3) && !land(0, 1..3), "there is no partition 2");
        assert!(land(0, 1..2));
        assert!(
            end.advance(1) && !land(0, 0..1),
            "the third round is not open"
        );
        end.start(2);
        assert!(end.advance(2) && end.has_landed(2, 0));
        assert!(land(0, 0..2), "the third");
        assert!(end.is_at_rest());
        assert_eq!(end.rounds(), 3);
        end.start(3);
        assert!(end.advance(3) && !end.has_landed(4, 0));
    }

    #[test]
    fn nothing_is_posted_before_its_credit() {
        let end = Sender::new(line(), 4, Buffering::Single, 1);
        assert_eq!(end.post(1, 0..1), Post::Busy);
        end.heed(1, None);
        assert_eq!(end.post(1, 0..3), Post::Posted);
        assert_eq!(end.post(2, 0..0), Post::Busy);
        let run = Run {
            room: 0,
            units: 0..3,
        };
        assert_eq!(end.next_post(), Some(run));
        assert_eq!(end.next_post(), None);
        end.release(3);
        assert!(!end.is_complete(1));
        assert_eq!(end.post(1, 3..4), Post::Posted);
        end.release(1);
        assert!(end.is_complete(1));
        assert_eq!(end.rounds(), 0, "the receiver was told of nothing");
        end.tell(4);
        assert_eq!(end.rounds(), 1);
        end.line.break_down();
        assert!(!end.is_complete(1) && end.post(1, 0..0) == Post::Busy);
        assert!(!end.is_over(1), "the peer may have failed");
    }

    #[test]
    fn an_end_is_over_after_the_rounds_that_the_other_had() {
        let end = Sender::new(line(), 1, Buffering::Single, 1);
        assert!(!end.is_over(1));
        end.heed(3, Some(2));
        assert!(!end.is_over(2) && end.is_over(3));
    }
}
