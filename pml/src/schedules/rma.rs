//! One-sided access: the threads of each rank write, read and count in parts of their own of every rank's memory.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use tagwire_base::Rank;
use tagwire_conformance::seeds;
use tagwire_transport::fault::SplitMix64;

use super::{Body, Checked, Room, Thread, accepted, run, same};
use crate::error::Error;
use crate::messenger::{Target, Window};
use crate::rma::Atomic;

/// Seeds of a run of the tests.
const SEEDS: u64 = 200;

/// Bytes of a rank's memory that belong to one thread, in four parts that are accessed at once.
const SLOT: usize = 4 * PART;
const PART: usize = 152;

/// The word in front of the slots, which all count up.
const COUNTER: usize = 8;

const STEPS: u32 = 6;

/// The longest key.
const LONGEST_KEY: usize = 1024;

const KEY: u32 = 1;
const LAST: u32 = 2;

/// What a thread has written, and how often it has counted, at each rank.
type Written = Vec<(Vec<u8>, u64)>;

/// What the threads of a rank share.
#[derive(Default)]
struct Shared {
    /// By rank; empty where memory cannot be reached.
    targets: RefCell<Vec<Target>>,
    is_open: Cell<u32>,
    /// Of each thread, by its number.
    written: RefCell<Vec<(u32, Written)>>,
    ended: Cell<u32>,
}

/// How many threads each rank has.
fn threads(seed: u64) -> Vec<u32> {
    let mut random = SplitMix64::stream(seed, 5);
    let ranks = 2 + random.below(2);
    (0..ranks).map(|_| 1 + random.below(3) as u32).collect()
}

/// Returns the length of a rank's memory, and where the slot of a thread is.
fn place(threads: &[u32], rank: u32, number: u32) -> (usize, usize) {
    let before: u32 = threads[..rank as usize].iter().sum();
    let all: u32 = threads.iter().sum();
    let at = |slots: u32| COUNTER + slots as usize * SLOT;
    (at(all), at(before + number))
}

/// Exposes memory, and reaches that of all ranks.
async fn open(thread: &Thread, room: Room, ranks: u32) -> Checked<Vec<Target>> {
    let window = thread.port.window();
    let region = accepted("expose", window.expose(&room.lend()))?;
    let own = thread.rank();
    for to in (0..ranks).filter(|rank| *rank != own) {
        thread.send(to, KEY, region.key()).await?;
    }
    let mut keys = Vec::new();
    for from in 0..ranks {
        keys.push(match from == own {
            true => region.key().to_vec(),
            false => thread.recv(from, KEY, LONGEST_KEY).await?,
        });
    }
    let mut targets = Vec::new();
    for (from, key) in (0..).zip(keys) {
        match window.reach(Rank::new(from), &key) {
            Err(Error::BadRegion(_)) => return Ok(Vec::new()),
            reached => targets.push(accepted("reach", reached)?),
        }
    }
    Ok(targets)
}

/// What a thread does with the memory of all ranks.
async fn access(
    thread: &Thread,
    seed: u64,
    threads: &[u32],
    targets: &[Target],
) -> Checked<Written> {
    let stream = 1 << 17 | u64::from(thread.rank() << 4 | thread.number);
    let mut random = SplitMix64::stream(seed, stream);
    let (_, slot) = place(threads, thread.rank(), thread.number);
    let mut written: Written = vec![(vec![0; SLOT], 0); targets.len()];
    let window = thread.port.window().keeping();
    for _ in 0..STEPS {
        thread.compute(&mut random, 5).await;
        let at = random.below(targets.len() as u64) as usize;
        let (target, (shadow, counted)) = (&targets[at], &mut written[at]);
        let mut open = Vec::new();
        for part in (0..4).filter(|_| random.chance(70)).collect::<Vec<_>>() {
            let len = random.below(PART as u64 + 1) as usize;
            let from = part * PART + random.below((PART - len) as u64 + 1) as usize;
            let bytes = random.bytes(len);
            shadow[from..from + len].copy_from_slice(&bytes);
            let data = thread.memory.room(len);
            data.write(0, &bytes);
            let put = window.put(data.lend_to_send(), target, (slot + from) as u64);
            open.push(accepted("put", put)?);
        }
        if random.chance(50) {
            *counted += 1;
            let sum = window.atomic(Atomic::Sum(1), target, 0);
            open.push(accepted("atomic", sum)?);
        }
        for access in open {
            thread
                .until(|| accepted("access", window.test(access)))
                .await?;
        }
        flush(thread, window, target).await?;
        let room = thread.memory.room(SLOT);
        let get = accepted("get", window.get(room.lend(), target, slot as u64))?;
        thread.until(|| accepted("get", window.test(get))).await?;
        same("bytes that were put", room.read(0..SLOT) == *shadow, true)?;
    }
    Ok(written)
}

async fn flush(thread: &Thread, window: Window<'_>, target: &Target) -> Checked {
    let is_flushed = || Ok(accepted("flush", window.test_flush(target))?.then_some(()));
    thread.until(is_flushed).await
}

/// Tells each rank what this one has written there, and compares what others say with what is here.
async fn compare(thread: &Thread, threads: &[u32], own: &Shared, room: Room) -> Checked {
    let (me, ranks) = (thread.rank(), threads.len() as u32);
    let said = |to: u32| {
        let mut bytes = Vec::new();
        let mut written = own.written.borrow_mut();
        // Threads end in any order.
        written.sort_by_key(|(number, _)| *number);
        for (_, of_thread) in written.iter() {
            let (slot, counted) = &of_thread[to as usize];
            bytes.extend(counted.to_ne_bytes());
            bytes.extend(slot);
        }
        bytes
    };
    for to in (0..ranks).filter(|rank| *rank != me) {
        thread.send(to, LAST, &said(to)).await?;
    }
    let mut counted = 0;
    for from in 0..ranks {
        let each = SLOT + COUNTER;
        let bytes = match from == me {
            true => said(me),
            false => {
                let len = each * threads[from as usize] as usize;
                thread.recv(from, LAST, len).await?
            }
        };
        for (number, bytes) in (0..).zip(bytes.chunks(each)) {
            let (_, at) = place(threads, from, number);
            let (count, slot) = bytes.split_at(COUNTER);
            counted += u64::from_ne_bytes(count.try_into().expect("a counter's bytes"));
            same("what was put here", room.read(at..at + SLOT) == slot, true)?;
        }
    }
    let count = room.read(0..COUNTER);
    same("the counter", count, counted.to_ne_bytes().to_vec())
}

fn body(seed: u64, threads: &[u32]) -> impl Fn(Thread) -> Body {
    let threads: Rc<[u32]> = threads.into();
    let ranks: Rc<[Shared]> = threads.iter().map(|_| Shared::default()).collect();
    move |thread| {
        let (ranks, threads) = (Rc::clone(&ranks), Rc::clone(&threads));
        Box::pin(async move {
            let own = &ranks[thread.rank() as usize];
            let room = thread.memory.room(place(&threads, 0, 0).0);
            if thread.number == 0 {
                let count = threads.len() as u32;
                *own.targets.borrow_mut() = open(&thread, room, count).await?;
                thread.set(&own.is_open, 1);
            }
            thread.reaches(&own.is_open, 1).await;
            let targets = own.targets.borrow().clone();
            if !targets.is_empty() {
                let written = access(&thread, seed, &threads, &targets).await?;
                own.written.borrow_mut().push((thread.number, written));
            }
            thread.set(&own.ended, own.ended.get() + 1);
            if thread.number > 0 {
                return Ok(());
            }
            let all = threads[thread.rank() as usize];
            thread.reaches(&own.ended, all).await;
            if !targets.is_empty() {
                compare(&thread, &threads, own, room).await?;
            }
            thread.close().await
        })
    }
}

fn accesses(seed: u64) -> Checked {
    let threads = threads(seed);
    run(seed, &threads, body(seed, &threads))
}

#[test]
fn accesses_end_in_any_schedule() {
    let again = "cargo test -p tagwire-pml --lib accesses_end_in_any_schedule";
    seeds::on_seeds(SEEDS, again, accesses);
}
