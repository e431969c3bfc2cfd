//! Models for loom: two members, with the memory orders that boards are compiled with.
#![allow(unsafe_code, clippy::unwrap_used)]

use std::marker::PhantomData;
use std::ops::Range;

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;

use super::ring::{Cells, LINE, OWN, Place, RESULTS_AT, Ring, SLOT};
use super::shape::{Shape, Slotted};

const AHEAD: u64 = Slotted::AHEAD;
const LINES: u64 = Slotted::LINES;
const SLOTS: u64 = Slotted::SLOTS;

/// A board of lines alone, so few that models come round.
enum FewLines {}

impl Shape for FewLines {
    const LINES: u64 = 2;
    const SLOTS: u64 = 0;
    const HANDED: usize = 0;
    const AHEAD: u64 = 2;
    const ROOM: u64 = 0;
    type Lengths = [usize; 0];
}

/// The memory of a member, with a byte for each place and cells that notice when one side reads what the other writes.
struct Member {
    rounds: [AtomicU64; LINES as usize],
    heads: [AtomicU64; LINES as usize],
    done: AtomicU64,
    results: AtomicU64,
    lines: [UnsafeCell<u8>; LINES as usize],
    /// The lower half of each slot, and the upper one, where results are.
    slots: [UnsafeCell<u8>; SLOTS as usize],
    upper: [UnsafeCell<u8>; SLOTS as usize],
    handed: [UnsafeCell<u8>; Slotted::HANDED],
}

struct Model<S = Slotted> {
    shape: PhantomData<S>,
    members: [Member; 2],
    broken: AtomicU64,
    leavers: AtomicU64,
}

impl<S> Model<S> {
    fn new() -> Arc<Self> {
        let member = || Member {
            rounds: std::array::from_fn(|_| AtomicU64::new(0)),
            heads: std::array::from_fn(|_| AtomicU64::new(0)),
            done: AtomicU64::new(0),
            results: AtomicU64::new(0),
            lines: std::array::from_fn(|_| UnsafeCell::new(0)),
            slots: std::array::from_fn(|_| UnsafeCell::new(0)),
            upper: std::array::from_fn(|_| UnsafeCell::new(0)),
            handed: std::array::from_fn(|_| UnsafeCell::new(0)),
        };
        Arc::new(Self {
            shape: PhantomData,
            members: [member(), member()],
            broken: AtomicU64::new(0),
            leavers: AtomicU64::new(0),
        })
    }

    /// Returns the cells of a range of a place.
    fn touched(
        &self,
        member: usize,
        place: Place,
        range: Range<usize>,
    ) -> impl Iterator<Item = &UnsafeCell<u8>> {
        let member = &self.members[member];
        let (lower, upper) = match place {
            Place::Line(index) => (Some(&member.lines[index]), None),
            Place::Result(index) => (None, Some(&member.upper[index])),
            Place::Handed(index) => (Some(&member.handed[index]), None),
            Place::Slot(index) => {
                let is_low = range.start < RESULTS_AT;
                let is_high = range.end > RESULTS_AT;
                let lower = is_low.then(|| &member.slots[index]);
                (lower, is_high.then(|| &member.upper[index]))
            }
        };
        lower.into_iter().chain(upper)
    }
}

impl<S: Shape> Cells for Arc<Model<S>> {
    type Shape = S;
    type Word = AtomicU64;

    fn round(&self, member: usize, line: usize) -> &AtomicU64 {
        &self.members[member].rounds[line]
    }

    fn head(&self, member: usize, line: usize) -> &AtomicU64 {
        &self.members[member].heads[line]
    }

    fn done(&self, member: usize) -> &AtomicU64 {
        &self.members[member].done
    }

    fn results(&self, member: usize) -> &AtomicU64 {
        &self.members[member].results
    }

    fn broken(&self) -> &AtomicU64 {
        &self.broken
    }

    fn leavers(&self) -> &AtomicU64 {
        &self.leavers
    }

    fn write(&self, member: usize, place: Place, at: usize, data: &[u8]) {
        for cell in self.touched(member, place, at..at + data.len()) {
            // SAFETY: the ring gives the place to its writer alone; loom checks it.
            cell.with_mut(|cell| unsafe { *cell = data[0] });
        }
    }

    fn give_back(&self, member: usize) -> bool {
        let member = &self.members[member];
        for cell in member.slots.iter().chain(&member.upper) {
            // SAFETY: the ring gives the slots to their writer alone; loom checks it.
            cell.with_mut(|cell| unsafe { *cell = 0 });
        }
        true
    }

    fn read<R>(
        &self,
        member: usize,
        place: Place,
        range: Range<usize>,
        look: impl FnOnce(&[u8]) -> R,
    ) -> R {
        let mut byte = 0;
        for cell in self.touched(member, place, range.clone()) {
            // SAFETY: the ring gives the place to its readers; loom checks it.
            byte = cell.with(|cell| unsafe { *cell });
        }
        look(&vec![byte; range.len()])
    }
}

/// Waits, in a model: others have their turn.
fn wait(mut ready: impl FnMut() -> bool) {
    while !ready() {
        thread::yield_now();
    }
}

/// Checks what both members run, with so many preemptions.
fn both<S: Send + Sync + 'static>(
    preemptions: usize,
    run: impl Fn(usize, Arc<Model<S>>) + Copy + Send + Sync + 'static,
) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        let memory = Model::new();
        let of_other = Arc::clone(&memory);
        let other = thread::spawn(move || run(1, of_other));
        run(0, memory);
        other.join().unwrap();
    });
}

/// A root that shows `rounds` values of `len` bytes, and a member that reads each. The root goes around its ring, so that it
/// waits for room.
fn one_way(rounds: u64, len: fn(u64) -> usize, finish: fn(&mut Ring<Arc<Model>>, u64)) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(move || {
        let memory = Model::<Slotted>::new();
        let mut root = Ring::new(Arc::clone(&memory), 0, 2);
        let writer = thread::spawn(move || {
            for _ in 0..rounds {
                let round = root.begin(1);
                let len = len(round);
                wait(|| root.has_room(round, len));
                assert!(root.show(round, 7, &[&vec![round as u8; len]]));
                root.finish(round);
            }
        });
        let mut member = Ring::new(memory, 1, 2);
        for _ in 0..rounds {
            let round = member.begin(1);
            let len = len(round);
            wait(|| member.is_shown(0, round));
            let value = member.read(0, round, len, 0..len, |bytes| bytes[len - 1]);
            assert_eq!(value, Some(round as u8));
            assert_eq!(member.head(0, round), Some(7));
            finish(&mut member, round);
            assert_eq!(member.read(0, round, len, 0..1, |bytes| bytes[0]), None);
        }
        writer.join().unwrap();
    });
}

fn finish_line(ring: &mut Ring<Arc<Model>>, round: u64) {
    ring.finish_line(round);
}

#[test]
fn what_is_shown_is_read_before_it_is_written_again() {
    one_way(SLOTS + 1, |_| LINE + 1, Ring::finish);
}

#[test]
fn what_lies_where_results_would_is_read_too() {
    one_way(SLOTS + 1, |_| RESULTS_AT + 1, Ring::finish);
}

#[test]
fn lines_come_again() {
    one_way(LINES + 1, |_| 1, Ring::finish);
}

/// Who shows lines learns once in some rounds that they were read, and has room all the same.
#[test]
fn lines_come_again_of_which_others_tell_seldom() {
    one_way(LINES + 2, |_| 1, finish_line);
}

/// What is long has room once the lines before it were read, which their reader tells seldom.
#[test]
fn what_is_long_has_room_behind_lines() {
    const LONG: u64 = Slotted::ROOM + 3;
    let len = |round| if round < LONG { 1 } else { LINE + 1 };
    one_way(LONG, len, finish_line);
}

/// Both show and read, a round ahead; what they see of each other is all that they know of room.
fn one_ahead<const ROUNDS: u64>(len: usize) {
    both(2, move |me, memory: Arc<Model>| {
        let mut ring = Ring::new(memory, me, 2);
        let first = ring.begin(ROUNDS);
        let show = |ring: &mut Ring<_>, round: u64| {
            wait(|| ring.has_room(round, len));
            assert!(ring.show(round, 0, &[&vec![round as u8; len]]));
        };
        show(&mut ring, first);
        for round in first..first + ROUNDS {
            if round + 1 < first + ROUNDS {
                show(&mut ring, round + 1);
            }
            wait(|| ring.all_shown(round));
            let value = ring.read(1 - me, round, len, 0..1, |bytes| bytes[0]);
            assert_eq!(value, Some(round as u8));
            ring.finish(round);
        }
    });
}

#[test]
fn both_ways_one_ahead() {
    one_ahead::<{ SLOTS + 1 }>(LINE + 1);
}

/// What is handed on is not written before it was read.
#[test]
fn what_is_handed_on_one_ahead() {
    one_ahead::<4>(OWN + 1);
}

/// Both are as far ahead as they may be.
#[test]
fn both_ways_far_ahead() {
    const ROUNDS: u64 = SLOTS + 2;
    both(2, move |me, memory: Arc<Model>| {
        let mut ring = Ring::new(memory, me, 2);
        let first = ring.begin(ROUNDS);
        let end = first + ROUNDS;
        let show = |ring: &mut Ring<_>, round: u64| {
            wait(|| ring.has_room(round, LINE + 1));
            assert!(ring.show(round, 0, &[&[round as u8; LINE + 1]]));
        };
        (first..end.min(first + AHEAD)).for_each(|round| show(&mut ring, round));
        // Farther than that is refused.
        assert!(!ring.show(first + AHEAD, 0, &[&[0; LINE + 1]]));
        for round in first..end {
            wait(|| ring.all_shown(round));
            let value = ring.read(1 - me, round, LINE + 1, 0..1, |bytes| bytes[0]);
            assert_eq!(value, Some(round as u8));
            ring.finish(round);
            if round + AHEAD < end {
                show(&mut ring, round + AHEAD);
            }
        }
    });
}

/// Members show what is long in some of the rounds, so that each writes where it has read.
fn handed_on<const ROUNDS: usize>(shown: [[bool; 2]; ROUNDS]) {
    both(2, move |me, memory: Arc<Model>| {
        let mut ring = Ring::new(memory, me, 2);
        for (index, shows) in shown.into_iter().enumerate() {
            let round = ring.begin(1);
            let len = [OWN, RESULTS_AT][index % 2] + 1;
            let value = |member: usize| (index * 2 + member) as u8;
            if shows[me] {
                wait(|| ring.has_room(round, len));
                assert!(ring.show(round, 0, &[&vec![value(me); len]]));
            }
            if shows[1 - me] {
                wait(|| ring.is_shown(1 - me, round));
                let seen = ring.read(1 - me, round, len, 0..len, |bytes| bytes[len - 1]);
                assert_eq!(seen, Some(value(1 - me)));
            }
            ring.finish(round);
        }
    });
}

#[test]
fn what_was_read_is_handed_on() {
    let (both, one, other) = ([true, true], [true, false], [false, true]);
    handed_on([both, both, one, other, both]);
}

/// A slot that nobody has handed on for some rounds is its owner's.
#[test]
fn what_is_not_handed_on_goes_back() {
    let (both, none) = ([true, true], [false, false]);
    handed_on([both, both, none, none, none, none, both, both]);
}

/// Slots are given back when the other has read them, and are written again.
#[test]
fn slots_are_given_back_once_they_were_read() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        const ROUNDS: u64 = 3;
        let memory = Model::<Slotted>::new();
        let mut root = Ring::new(Arc::clone(&memory), 0, 2);
        let writer = thread::spawn(move || {
            for _ in 0..ROUNDS {
                let round = root.begin(1);
                assert!(root.show(round, 7, &[&[round as u8; LINE + 1]]));
                root.finish(round);
                assert!(root.written() > 0);
                if root.give_back() {
                    assert_eq!(root.written(), 0);
                }
            }
            wait(|| root.give_back());
        });
        let mut member = Ring::new(memory, 1, 2);
        for _ in 0..ROUNDS {
            let round = member.begin(1);
            wait(|| member.is_shown(0, round));
            let value = member.read(0, round, LINE + 1, 0..1, |bytes| bytes[0]);
            assert_eq!(value, Some(round as u8));
            member.finish(round);
        }
        writer.join().unwrap();
    });
}

/// Lines alone, shown as far ahead as there are any: none is written before the other has done with what was there.
#[test]
fn lines_alone_come_again_far_ahead() {
    const AHEAD: u64 = FewLines::AHEAD;
    const ROUNDS: u64 = 2 * FewLines::LINES + 1;
    both(2, move |me, memory: Arc<Model<FewLines>>| {
        let mut ring = Ring::new(memory, me, 2);
        let first = ring.begin(ROUNDS);
        let end = first + ROUNDS;
        let show = |ring: &mut Ring<_>, round: u64| {
            wait(|| ring.has_room(round, 1));
            assert!(ring.show(round, 0, &[&[round as u8]]));
        };
        // What is longer than a line is refused.
        assert!(!ring.show(first, 0, &[&[0; LINE + 1]]));
        (first..first + AHEAD).for_each(|round| show(&mut ring, round));
        for round in first..end {
            wait(|| ring.is_shown(1 - me, round));
            let value = ring.read(1 - me, round, 1, 0..1, |bytes| bytes[0]);
            assert_eq!(value, Some(round as u8));
            ring.finish(round);
            if round + AHEAD < end {
                show(&mut ring, round + AHEAD);
            }
        }
    });
}

/// Both show a round once they have seen the other's before, and never ask for room: what they see of each other is all that they
/// know of it.
#[test]
fn what_is_seen_of_the_others_is_room() {
    const ROUNDS: u64 = SLOTS + 2;
    both(2, move |me, memory: Arc<Model>| {
        let mut ring = Ring::new(memory, me, 2);
        let first = ring.begin(ROUNDS);
        for round in first..first + ROUNDS {
            assert!(ring.show(round, 0, &[&[round as u8; LINE + 1]]));
            wait(|| ring.all_shown(round));
            let value = ring.read(1 - me, round, LINE + 1, 0..1, |bytes| bytes[0]);
            assert_eq!(value, Some(round as u8));
            ring.finish(round);
        }
    });
}

/// The steps of an operation by parts: what is shown is reduced into a result, which the other reads.
fn results<const ROUNDS: u64>(len: usize) {
    both(1, move |me, memory: Arc<Model>| {
        let mut ring = Ring::new(memory, me, 2);
        let first = ring.begin(ROUNDS);
        for round in first..first + ROUNDS {
            wait(|| ring.has_room(round, len));
            assert!(ring.show(round, 0, &[&vec![round as u8; len]]));
            wait(|| ring.all_shown(round));
            let value = ring.read(1 - me, round, len, 0..1, |bytes| bytes[0]);
            assert!(ring.show_result(round, &[value.unwrap() + 10]));
            wait(|| ring.has_result(1 - me, round));
            let result = ring.read_result(1 - me, round, 1, |bytes| bytes[0]);
            assert_eq!(result, Some(round as u8 + 10));
            ring.finish(round);
        }
    });
}

#[test]
fn results_come_again() {
    results::<{ SLOTS + 1 }>(LINE + 1);
}

/// What is handed on leaves the slots of the rounds to the results.
#[test]
fn results_lie_beside_what_is_handed_on() {
    results::<3>(OWN + 1);
}

/// A member that leaves has read what it reads: others may write over it.
#[test]
fn who_leaves_gives_room() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        const ROUNDS: u64 = SLOTS + 1;
        let memory = Model::<Slotted>::new();
        let mut root = Ring::new(Arc::clone(&memory), 0, 2);
        let writer = thread::spawn(move || {
            for _ in 0..ROUNDS {
                let round = root.begin(1);
                wait(|| root.has_room(round, LINE + 1));
                assert!(root.show(round, 7, &[&[round as u8; LINE + 1]]));
                root.finish(round);
            }
            wait(|| root.has_leavers());
            assert_eq!((root.broken(), root.has_left(1)), (Some(1), true));
        });
        let mut member = Ring::new(memory, 1, 2);
        let round = member.begin(1);
        wait(|| member.is_shown(0, round));
        let value = member.read(0, round, LINE + 1, 0..1, |bytes| bytes[0]);
        assert_eq!(value, Some(1));
        member.give_up(1);
        assert_eq!(
            member.read(0, round, LINE + 1, 0..1, |bytes| bytes[0]),
            None
        );
        writer.join().unwrap();
    });
}

/// What is shown and the results of a round have places of their own.
#[test]
fn results_follow_what_was_shown() {
    both(2, move |me, memory: Arc<Model>| {
        let mut ring = Ring::new(memory, me, 2);
        let round = ring.begin(1);
        assert!(ring.show(round, 0, &[&[me as u8; LINE + 1]]));
        wait(|| ring.is_shown(1 - me, round));
        let value = ring.read(1 - me, round, LINE + 1, 0..1, |bytes| bytes[0]);
        // One who expects more is not let at the place of the result.
        let more = ring.read(1 - me, round, SLOT, RESULTS_AT..SLOT, |_| ());
        assert_eq!(more, None);
        assert!(ring.show_result(round, &[value.unwrap() + 10]));
        wait(|| ring.has_result(1 - me, round));
        let result = ring.read_result(1 - me, round, 1, |bytes| bytes[0]);
        assert_eq!(result, Some(me as u8 + 10));
        ring.finish(round);
    });
}
