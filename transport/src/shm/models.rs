//! Models for loom: every interleaving of the rings, the wake-up and the claims, with the memory
//! orders that they are compiled with.
//!
//! The membarrier of a sleeper puts a full barrier into every sender, somewhere in its program.
//! What matters is that one lies between the sender's store and its load, or that the sleeper's
//! last look comes after the store: the model has a fence on both sides instead, and one test
//! shows that without it the model finds the lost wake-up.
#![allow(unsafe_code, clippy::unwrap_used)]

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use loom::thread;
use std::time::Duration;
use tagwire_base::Time;

use super::matching;
use super::offers::{self, Chunk, Early, Side, Standing, Taken};
use super::reuse::Reuse;
use super::ring::{Consumer, Place, Pop, Producer, RingMemory};
use super::room::{Size, Table, Words};
use super::waiter::word;
use crate::message::{AmHeader, Payload};
use crate::post::Class;

/// Two slots, two lines, and four of a room where there is one, with cells that notice when one side reads what the other writes.
struct Model<const ROOM: bool> {
    slots: [[AtomicU64; 3]; 2],
    credit: AtomicU64,
    payload_state: AtomicU64,
    inline: [UnsafeCell<u64>; 2],
    lines: [UnsafeCell<u64>; 2],
    /// Granted, consumed, left.
    words: [AtomicU64; 3],
    room: [UnsafeCell<u64>; 4],
}

impl<const ROOM: bool> Model<ROOM> {
    fn new() -> Arc<Self> {
        let slot = || [AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0)];
        Arc::new(Self {
            slots: [slot(), slot()],
            credit: AtomicU64::new(0),
            payload_state: AtomicU64::new(0),
            inline: [UnsafeCell::new(0), UnsafeCell::new(0)],
            lines: [UnsafeCell::new(0), UnsafeCell::new(0)],
            words: slot(),
            room: [(); 4].map(|()| UnsafeCell::new(0)),
        })
    }

    fn cell(&self, place: Place) -> &UnsafeCell<u64> {
        match place {
            Place::Inline(index) => &self.inline[index],
            Place::Bulk(offset) => &self.lines[offset / 64],
            Place::Room(offset) => &self.room[offset / 64],
        }
    }
}

impl<const ROOM: bool> RingMemory for Arc<Model<ROOM>> {
    type Word = AtomicU64;
    const SLOTS: u32 = 2;
    const CONTROL_SLOTS: u32 = 1;
    const PAYLOAD: u32 = 128;
    const MAX_SEND: u32 = 64;
    const ROOMS: Table = [0, 256, 256, 256];
    const LONG: usize = if ROOM { 41 } else { usize::MAX };
    const ROOMY: usize = Self::LONG;

    fn room(&self) -> Option<Words<'_, AtomicU64>> {
        let [grant, credit, left] = &self.words;
        ROOM.then_some(Words {
            grant,
            credit,
            left,
            most: Size(1),
        })
    }

    fn slot(&self, index: usize) -> &[AtomicU64; 3] {
        &self.slots[index]
    }

    fn credit(&self) -> &AtomicU64 {
        &self.credit
    }

    fn payload_state(&self) -> &AtomicU64 {
        &self.payload_state
    }

    fn write(&self, place: Place, data: &[u8]) {
        // SAFETY: the protocol gives the place to the producer alone; loom checks it.
        self.cell(place)
            .with_mut(|cell| unsafe { *cell = word_of(data) });
    }

    fn read<R>(&self, place: Place, len: usize, look: impl FnOnce(Payload<'_>) -> R) -> R {
        // SAFETY: the protocol gives the place to the consumer alone; loom checks it.
        let word = self.cell(place).with(|cell| unsafe { *cell });
        let mut bytes = vec![word as u8; len];
        if let Some(first) = bytes.first_chunk_mut() {
            *first = word.to_le_bytes();
        }
        look(Payload::from_slice(&bytes))
    }
}

/// What a cell keeps of data: its first 8 bytes, which all others are like.
fn word_of(data: &[u8]) -> u64 {
    data.first_chunk()
        .map_or(0, |first| u64::from_le_bytes(*first))
}

fn messages_arrive(lengths: &'static [usize]) {
    loom::model(move || {
        let memory = Model::<false>::new();
        let mut producer = Producer::new(Arc::clone(&memory));
        let mut consumer = Consumer::new(memory);
        let sender = thread::spawn(move || {
            for (i, len) in lengths.iter().enumerate() {
                let (header, data) = (AmHeader([i as u64, !i as u64]), vec![i as u8 + 1; *len]);
                while !producer.push(Class::Control, header, &data) {
                    thread::yield_now();
                }
            }
        });
        for (i, len) in lengths.iter().enumerate() {
            loop {
                let popped = consumer.pop(|header, payload| {
                    assert_eq!(header.0, [i as u64, !i as u64]);
                    assert_eq!(payload.to_vec(), vec![i as u8 + 1; *len]);
                });
                match popped {
                    Pop::Empty | Pop::Left => thread::yield_now(),
                    Pop::Message(()) => break,
                    Pop::Other => panic!("a piece"),
                    Pop::Corrupt(shape) => panic!("corrupt: {shape:#x}"),
                }
            }
        }
        sender.join().unwrap();
    });
}

#[test]
fn short_messages_arrive_whole_and_in_order() {
    messages_arrive(&[8, 8, 8, 8]);
}

#[test]
fn long_messages_arrive_whole_and_in_order() {
    messages_arrive(&[64, 41, 64]);
}

/// The room is granted and taken back while messages come; once it is left, its memory is the owner's.
#[test]
fn a_room_that_was_left_is_touched_by_nobody() {
    loom::model(|| {
        let memory = Model::<true>::new();
        let mut producer = Producer::new(Arc::clone(&memory));
        let mut consumer = Consumer::new(Arc::clone(&memory));
        consumer.grow_room(Size(1));
        let sender = thread::spawn(move || {
            for i in 0..2 {
                producer.look_at_room();
                while !producer.push(Class::Control, AmHeader([i, !i]), &[i as u8 + 1; 64]) {
                    thread::yield_now();
                }
            }
            producer.look_at_room();
        });
        consumer.withdraw_room();
        let (mut taken, mut is_left) = (0, false);
        for _ in 0..3 {
            let popped = consumer.pop(|header, payload| {
                assert_eq!(header.0, [taken, !taken]);
                assert_eq!(payload.to_vec(), vec![taken as u8 + 1; 64]);
            });
            taken += u64::from(matches!(popped, Pop::Message(())));
            if !is_left && consumer.leaves_room() {
                is_left = true;
                // SAFETY: nobody else has the cells any more; loom checks it.
                let free = |cell: &UnsafeCell<u64>| cell.with_mut(|cell| unsafe { *cell = 9 });
                memory.room.iter().for_each(free);
            }
        }
        sender.join().unwrap();
    });
}

/// The payload ring is left, freed and taken again while payloads come: while it is freed its memory is the owner's.
#[test]
fn a_payload_ring_that_is_freed_is_touched_by_nobody() {
    let push = |producer: &mut Producer<_>, number: u64| {
        let header = AmHeader([number, !number]);
        while !producer.push(Class::Control, header, &[number as u8; 64]) {
            thread::yield_now();
        }
    };
    let pop = |consumer: &mut Consumer<Arc<Model<false>>>, number: u64| {
        let popped = consumer.pop(|header, payload| {
            assert_eq!(header.0, [number, !number]);
            assert_eq!(payload.to_vec(), vec![number as u8; 64]);
        });
        matches!(popped, Pop::Message(()))
    };
    let at = |seconds| Time::default() + Duration::from_secs(seconds);
    loom::model(move || {
        let memory = Model::<false>::new();
        let mut producer = Producer::new(Arc::clone(&memory));
        let mut consumer = Consumer::new(Arc::clone(&memory));
        push(&mut producer, 1);
        assert!(pop(&mut consumer, 1));
        producer.look_after(at(0));
        let sender = thread::spawn(move || {
            producer.look_after(at(9));
            push(&mut producer, 2);
            producer.look_after(at(10));
            producer.look_after(at(19));
            assert!(producer.credit_is_sane());
        });
        // SAFETY: nobody else has the cells; loom checks it.
        let free = |cell: &UnsafeCell<u64>| cell.with_mut(|cell| unsafe { *cell = 9 });
        loop {
            let freed = consumer.free_payload(|| memory.lines.iter().for_each(free));
            assert!(freed.is_ok());
            if pop(&mut consumer, 2) {
                break;
            }
            thread::yield_now();
        }
        sender.join().unwrap();
    });
}

/// Two ranks send each other payloads in rooms, of which either may reuse what it has read: nobody writes what the other may read, and
/// what is read is what was sent.
#[test]
fn what_is_reused_is_written_by_one_side_and_read_by_the_other() {
    type Ends = (Producer<Arc<Model<true>>>, Consumer<Arc<Model<true>>>);
    let rank = |(mut producer, mut consumer): Ends, first: u8, answers: bool| {
        let mut push = |producer: &mut Producer<_>, number: u8| {
            producer.look_at_room();
            let header = AmHeader([u64::from(number), !u64::from(number)]);
            while !producer.push(Class::Control, header, &[number; 64]) {
                thread::yield_now();
            }
        };
        let mut pop = |consumer: &mut Consumer<Arc<Model<true>>>, number: u8| {
            loop {
                let popped = consumer.pop(|header, payload| {
                    assert_eq!(header.0[0], u64::from(number));
                    assert_eq!(payload.to_vec(), vec![number; 64]);
                });
                match popped {
                    Pop::Message(()) => break,
                    Pop::Empty => thread::yield_now(),
                    other => panic!("{other:?}"),
                }
            }
        };
        let other = 3 - first;
        if answers {
            pop(&mut consumer, other);
            push(&mut producer, first);
            pop(&mut consumer, other + 10);
        } else {
            push(&mut producer, first);
            pop(&mut consumer, other);
            push(&mut producer, first + 10);
        }
    };
    loom::model(move || {
        let memories = [Model::<true>::new(), Model::<true>::new()];
        // Of rank 0 to rank 1, and the other way round.
        let ends = |own: usize| {
            let (there, here) = (&memories[own], &memories[1 - own]);
            let mut producer = Producer::new(Arc::clone(there));
            let mut consumer = Consumer::new(Arc::clone(here));
            let reuse = std::sync::Arc::new(Reuse::default());
            producer.reuse(std::sync::Arc::clone(&reuse), Arc::clone(here), Some(true));
            consumer.reuse(reuse, Arc::clone(there));
            (producer, consumer)
        };
        let (a, mut b) = (ends(0), ends(1));
        b.1.grow_room(Size(1));
        let a = thread::spawn(move || rank(a, 1, false));
        rank(b, 2, true);
        a.join().unwrap();
    });
}

/// Runs a sender and a sleeper; `barrier` stands for the membarrier. Panics
/// when the sleeper would sleep although the message is there and nobody wakes it.
fn nobody_sleeps_on_a_message(barrier: bool) {
    loom::model(move || {
        let message = Arc::new(AtomicU64::new(0));
        let sleeping = Arc::new(AtomicU32::new(0));
        let sender = {
            let (message, sleeping) = (Arc::clone(&message), Arc::clone(&sleeping));
            thread::spawn(move || {
                message.store(1, Ordering::Release);
                if barrier {
                    fence(Ordering::SeqCst);
                }
                if word::is_armed(&*sleeping) {
                    word::advance(&*sleeping);
                }
            })
        };
        let key = word::arm(&*sleeping);
        if barrier {
            fence(Ordering::SeqCst);
        }
        let missed = message.load(Ordering::Acquire) == 0;
        sender.join().unwrap();
        // A futex wait returns once the word is not the key any more.
        if missed {
            assert_ne!(sleeping.load(Ordering::SeqCst), key, "lost wake-up");
        }
    });
}

#[test]
fn a_wake_up_is_never_lost() {
    nobody_sleeps_on_a_message(true);
}

#[test]
#[should_panic(expected = "lost wake-up")]
fn without_the_barrier_a_wake_up_can_be_lost() {
    nobody_sleeps_on_a_message(false);
}

#[test]
fn a_second_sleeper_does_not_swallow_the_wake_up_of_the_first() {
    loom::model(|| {
        let sleeping = Arc::new(AtomicU32::new(0));
        let first = word::arm(&*sleeping);
        let waker = {
            let sleeping = Arc::clone(&sleeping);
            thread::spawn(move || word::advance(&*sleeping))
        };
        let second = word::arm(&*sleeping);
        assert!(waker.join().unwrap());
        let now = sleeping.load(Ordering::SeqCst);
        assert_ne!(now, first);
        // The second armed before the wake-up, and is woken too, or after it, and sleeps on.
        assert!(now == second || now == second + 1);
    });
}

/// One side's part of a transfer: returns how it ended for it.
fn copy_units(
    shared: &(AtomicU64, AtomicU64, Vec<AtomicU32>),
    side: Side,
    fails: bool,
) -> Standing {
    let (claims, finished, copies) = shared;
    let units = copies.len() as u32;
    while let Taken::Chunk(chunk) = offers::take(claims, side, units, |free| free / 2) {
        if fails {
            offers::stop(claims);
        } else {
            for unit in chunk.first..chunk.first + chunk.count {
                // Relaxed: the words of the descriptor have to order it.
                assert_eq!(copies[unit as usize].fetch_add(1, Ordering::Relaxed), 0);
            }
        }
        offers::finish(finished, side, chunk.count);
        if fails {
            break;
        }
    }
    loop {
        match offers::standing(claims, finished, side, units) {
            Standing::Running | Standing::Stopping => thread::yield_now(),
            end => return end,
        }
    }
}

fn transfer(units: u32, receiver_fails: bool) {
    loom::model(move || {
        let copies = (0..units).map(|_| AtomicU32::new(0)).collect();
        let shared = Arc::new((AtomicU64::new(0), AtomicU64::new(0), copies));
        offers::prepare(&shared.0, &shared.1, units);
        let sender = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || copy_units(&shared, Side::Maker, false))
        };
        let ends = copy_units(&shared, Side::Claimer, receiver_fails);
        if ends == Standing::Complete {
            // Everything is visible here before the sender is even joined.
            for copied in &shared.2 {
                assert_eq!(copied.load(Ordering::Relaxed), 1);
            }
        }
        assert_eq!(sender.join().unwrap(), ends);
        assert!(receiver_fails || ends == Standing::Complete);
    });
}

#[test]
fn each_unit_is_copied_once_and_both_sides_see_the_end() {
    transfer(3, false);
}

#[test]
fn a_failed_copy_ends_both_sides_alike() {
    transfer(2, true);
}

/// A maker takes units while its offer is claimed: they are its own where the claimer keeps what was taken, and free again where not.
fn early(keeps: bool) {
    const UNITS: u32 = 3;
    loom::model(move || {
        let shared = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
        offers::open(&shared.0, UNITS);
        let maker = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || offers::take_early(&shared.0, 1, |_| true))
        };
        let (claims, finished) = &*shared;
        if keeps {
            assert!(offers::prepare_begun(claims, finished, UNITS));
        } else {
            offers::prepare(claims, finished, UNITS);
        }
        let taken = offers::take(claims, Side::Claimer, UNITS, |free| free);
        let early = maker.join().unwrap();
        let own = u32::from(keeps && matches!(early, Early::Chunk(_)));
        let rest = Chunk {
            first: 0,
            count: UNITS - own,
        };
        assert_eq!(taken, Taken::Chunk(rest));
    });
}

#[test]
fn what_is_taken_early_is_kept() {
    early(true);
}

#[test]
fn what_is_taken_early_in_vain_is_free_again() {
    early(false);
}

/// The lock of a match list: two passers-by and the owner, who takes it over from a holder that
/// died, never have it together, and each sees what the one before wrote.
#[test]
fn the_match_lock_has_one_holder() {
    loom::model(|| {
        let shared = Arc::new((AtomicU64::new(0), UnsafeCell::new(0_u64)));
        let visit = |shared: &(AtomicU64, UnsafeCell<u64>), rank| {
            if let Some(held) = matching::try_lock(&shared.0, rank) {
                // SAFETY: the lock gives the cell to its holder alone; loom checks it.
                shared.1.with_mut(|cell| unsafe { *cell += 1 });
                matching::unlock(&shared.0, held);
                return 1;
            }
            0
        };
        let senders: Vec<_> = [1, 2]
            .map(|rank| {
                let shared = Arc::clone(&shared);
                thread::spawn(move || visit(&shared, rank))
            })
            .into();
        let own = visit(&shared, 0);
        let total: u64 = own + senders.into_iter().map(|v| v.join().unwrap()).sum::<u64>();
        let counted = matching::try_lock(&shared.0, 0).map(|_| {
            // SAFETY: as above.
            shared.1.with(|cell| unsafe { *cell })
        });
        assert_eq!(counted, Some(total));
    });
}

/// The owner takes the lock over from a holder that it takes for dead, while a passer-by tries
/// for it: one of both has it. The dead does nothing any more.
#[test]
fn the_lock_of_the_dead_is_taken_over_once() {
    loom::model(|| {
        let word = Arc::new(AtomicU64::new(0));
        // The holder dies without giving it back.
        let _dead = matching::try_lock(&*word, 7).unwrap();
        let found = word.load(Ordering::Relaxed);
        let passer = {
            let word = Arc::clone(&word);
            thread::spawn(move || matching::try_lock(&*word, 1).is_some())
        };
        let owner = matching::take_over(&*word, found, 0);
        let again = matching::take_over(&*word, found, 0);
        assert!(owner.is_some() && again.is_none());
        assert!(!passer.join().unwrap());
        matching::unlock(&*word, owner.unwrap());
        assert!(matching::try_lock(&*word, 1).is_some());
    });
}
