//! Partitioned operations: some threads have partitions ready, others wait for the round; some ask for partitions, each of which is compared
//! as soon as it is said to have arrived.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use tagwire_base::Rank;
use tagwire_conformance::seeds;
use tagwire_transport::fault::SplitMix64;

use super::WORLD;
use super::{Body, Checked, Room, Thread, accepted, pattern, run, same, tag};
use crate::partitioned::{PartitionedRecv, PartitionedSend, Policy};
use crate::planted;

/// Seeds of a run of the tests.
const SEEDS: u64 = 1000;

/// Seeds within which a planted fault is found.
const SEEDS_OF_FAULTS: u64 = 1000;

/// The tag of the last word.
const LAST: u32 = 9;

/// One operation, and how it is used.
#[derive(Debug, Clone, Copy)]
struct Case {
    seed: u64,
    /// Partitions of either side.
    partitions: [u32; 2],
    bytes: usize,
    policy: Policy,
    /// How many rounds the receiver has room for.
    rooms: usize,
    rounds: u32,
    /// Threads of either side. Where there are more than one, the first only waits.
    threads: [u32; 2],
}

impl Case {
    fn of(seed: u64) -> Self {
        let mut random = SplitMix64::stream(seed, 4);
        let mut up_to = |most: u64| random.below(most) as u32 + 1;
        let partitions = [up_to(8), up_to(8)];
        let each = [1, 8, 60, 400][up_to(4) as usize - 1];
        let policies = [
            Policy::Each,
            Policy::Default,
            Policy::Fixed(3),
            Policy::Bytes(1024),
            Policy::Messages(4),
        ];
        Self {
            seed,
            partitions,
            bytes: (partitions[0] * partitions[1]) as usize * each,
            policy: policies[up_to(5) as usize - 1],
            rooms: up_to(2) as usize,
            rounds: up_to(4),
            threads: [up_to(4), up_to(3)],
        }
    }

    fn part(&self, side: usize, number: u32) -> Range<usize> {
        let each = self.bytes / self.partitions[side] as usize;
        number as usize * each..(number as usize + 1) * each
    }

    fn pattern(&self, round: u32) -> Vec<u8> {
        pattern(self.seed * 10 + u64::from(round), self.bytes)
    }

    /// Returns the partitions of a thread in a round, in the order in which it takes them.
    fn share(&self, thread: &Thread, round: u32) -> Vec<u32> {
        let side = thread.rank() as usize;
        let count = self.threads[side];
        // The first thread waits where others work.
        let (own, workers) = match count {
            1 => (Some(0), 1),
            _ => (thread.number.checked_sub(1), count - 1),
        };
        let stream = u64::from(round) << 8 | u64::from(thread.rank() << 4 | thread.number);
        let mut random = SplitMix64::stream(self.seed, stream);
        let mut numbers = random.shuffled(self.partitions[side]);
        numbers.retain(|number| Some(number % workers) == own);
        numbers
    }
}

/// What the threads of both ranks share, each rank its own.
struct Side<E> {
    end: RefCell<Option<Rc<E>>>,
    room: RefCell<Option<Room>>,
    /// The round that has begun.
    round: Cell<u32>,
    /// Shares of threads that are done, of all rounds.
    done: Cell<u32>,
}

impl<E> Default for Side<E> {
    fn default() -> Self {
        Self {
            end: RefCell::default(),
            room: RefCell::default(),
            round: Cell::default(),
            done: Cell::default(),
        }
    }
}

impl<E> Side<E> {
    fn open(&self, end: E, room: Room) -> Rc<E> {
        let end = Rc::new(end);
        *self.end.borrow_mut() = Some(Rc::clone(&end));
        *self.room.borrow_mut() = Some(room);
        end
    }

    /// Returns the end and its room, once the first thread has opened them.
    fn opened(&self) -> Checked<(Rc<E>, Room)> {
        let room = *self.room.borrow();
        let opened = self.end.borrow().clone().zip(room);
        opened.ok_or_else(|| "a round of no operation".to_owned())
    }
}

type Sender = Side<PartitionedSend>;
type Receiver = Side<PartitionedRecv>;

/// The thread that opens the sending end, starts its rounds and waits for them.
async fn lead_sender(thread: &Thread, case: Case, own: &Sender) -> Checked {
    let room = thread.memory.room(case.bytes);
    let end = PartitionedSend::init(
        &thread.port,
        &room.lend_to_send(),
        case.partitions[0],
        Rank::new(1),
        tag(1),
        WORLD,
        case.policy,
    );
    let end = own.open(accepted("psend_init", end)?, room);
    for round in 1..=case.rounds {
        accepted("start", end.start())?;
        thread.set(&own.round, round);
        make_ready(thread, case, own, round).await?;
        let ended = || Ok(accepted("test", end.test())?.then_some(()));
        thread.until(ended).await?;
    }
    accepted("free", end.free())?;
    let settled = || Ok(end.is_settled().then_some(()));
    thread.until(settled).await?;
    // The receiver's last word.
    thread.recv(1, LAST, 8).await.map(drop)
}

/// Has the thread's share of partitions ready, one after the other.
async fn make_ready(thread: &Thread, case: Case, own: &Sender, round: u32) -> Checked {
    let (end, room) = own.opened()?;
    let stream = 1 << 16 | u64::from(round << 4 | thread.number);
    let mut random = SplitMix64::stream(case.seed, stream);
    let data = case.pattern(round);
    for number in case.share(thread, round) {
        thread.compute(&mut random, 20).await;
        let part = case.part(0, number);
        room.write(part.start, &data[part]);
        accepted("ready", end.ready(number))?;
    }
    Ok(())
}

/// The same of the receiving end.
async fn lead_receiver(thread: &Thread, case: Case, own: &Receiver) -> Checked {
    let room = thread.memory.room(case.bytes * case.rooms);
    let init = match case.rooms {
        1 => PartitionedRecv::init,
        _ => PartitionedRecv::init_double,
    };
    let (data, count) = (room.lend(), case.partitions[1]);
    let end = init(&thread.port, &data, count, Rank::new(0), tag(1), WORLD);
    let end = own.open(accepted("precv_init", end)?, room);
    let askers = case.threads[1].max(2) - 1;
    for round in 1..=case.rounds {
        accepted("start", end.start())?;
        thread.set(&own.round, round);
        ask(thread, case, own, round).await?;
        let ended = || Ok(accepted("test", end.test())?.then_some(()));
        thread.until(ended).await?;
        let base = end.room() * case.bytes;
        let is_whole = room.read(base..base + case.bytes) == case.pattern(round);
        same("the bytes of a round", is_whole, true)?;
        thread.reaches(&own.done, askers * round).await;
    }
    accepted("free", end.free())?;
    let settled = || Ok(end.is_settled().then_some(()));
    thread.until(settled).await?;
    thread.send(0, LAST, &[9; 8]).await
}

/// Waits for the thread's share of partitions, and compares each.
async fn ask(thread: &Thread, case: Case, own: &Receiver, round: u32) -> Checked {
    let (end, room) = own.opened()?;
    let base = end.room() * case.bytes;
    let data = case.pattern(round);
    if thread.number == 0 && case.threads[1] > 1 {
        return Ok(());
    }
    for number in case.share(thread, round) {
        let arrived = || Ok(accepted("arrived", end.arrived(number))?.then_some(()));
        thread.until(arrived).await?;
        let part = case.part(1, number);
        let is_there = room.read(base + part.start..base + part.end) == data[part];
        same("the bytes of a partition that has arrived", is_there, true)?;
    }
    thread.set(&own.done, own.done.get() + 1);
    Ok(())
}

/// All threads of a job. The first of a rank closes it when the others have ended.
fn body(case: Case) -> impl Fn(Thread) -> Body {
    let (sender, receiver) = (Rc::new(Sender::default()), Rc::new(Receiver::default()));
    let ended = [Rc::new(Cell::new(0)), Rc::new(Cell::new(0))];
    move |thread| {
        let (sender, receiver) = (Rc::clone(&sender), Rc::clone(&receiver));
        let side = thread.rank() as usize;
        let ended = Rc::clone(&ended[side]);
        Box::pin(async move {
            if thread.number == 0 {
                match side {
                    0 => lead_sender(&thread, case, &sender).await?,
                    _ => lead_receiver(&thread, case, &receiver).await?,
                }
                thread.reaches(&ended, case.threads[side] - 1).await;
                sender.end.take();
                receiver.end.take();
                return thread.close().await;
            }
            for round in 1..=case.rounds {
                let begun = [&sender.round, &receiver.round][side];
                thread.reaches(begun, round).await;
                match side {
                    0 => make_ready(&thread, case, &sender, round).await?,
                    _ => ask(&thread, case, &receiver, round).await?,
                }
            }
            thread.set(&ended, ended.get() + 1);
            Ok(())
        })
    }
}

fn partitions(seed: u64) -> Checked {
    let case = Case::of(seed);
    run(seed, &case.threads, body(case)).map_err(|reason| format!("{reason}; {case:?}"))
}

#[test]
fn partitions_arrive_in_any_schedule() {
    let again = "cargo test -p tagwire-pml --lib partitions_arrive_in_any_schedule";
    seeds::on_seeds(SEEDS, again, partitions);
}

#[test]
fn a_flag_that_is_set_before_its_data_is_found() {
    seeds::assert_found(&planted::UNFENCED_FLAGS, SEEDS_OF_FAULTS, partitions);
}

#[test]
fn a_waiter_that_is_not_told_is_found() {
    seeds::assert_found(&planted::UNTOLD_WAITERS, SEEDS_OF_FAULTS, partitions);
}
