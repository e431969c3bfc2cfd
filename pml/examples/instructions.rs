//! Sends 8-byte messages and receives them, so many times, for counting instructions:
//!
//! ```text
//! valgrind --tool=callgrind --callgrind-out-file=/dev/null instructions CASE COUNT
//! ```
//!
//! The difference between two counts, divided by the difference of the numbers collected, is
//! what one message costs, set-up excluded. `ci/instructions` does that and compares with the
//! figures that are checked in. CASE is:
//!
//! - `self`: one rank to itself over shm: isend, irecv, progress, take.
//! - `pair`: two ranks over shm in one thread: the sum of both sides, receive posted first.
//! - `unexpected`: as `pair`, the message comes first.
//! - `window`: as `self`, 64 messages at a time: receives posted, sent, and waited for together. A
//!   message is a 64th of a turn.
//! - `pair-recorded`: as `pair`, and each call of both engines goes into a trace, with a coarse clock: two records a message.
//! - `cm-self`, `cm-window`, `cm-pair`, `cm-unexpected`: the same on cm.
//! - `dr-self`, `dr-window`, `dr-pair`, `dr-unexpected`: the same on dr.
//! - `send`: as `pair`, the sender's side alone is repeated, 32 messages a turn.
//! - `ready`: partitions that become ready, up to 32,767, and wait for the rest of their group.
//! - `ready-each`: the same, and each is posted: 8 bytes through the control block of shm.
#![allow(unsafe_code)]

use std::sync::Arc;

use tagwire_base::bootstrap::{LocalJob, SharedBootstrap};
use tagwire_base::{Config, ContextId, Rank, Registry, SourceSelector, Tag, TagSelector};
use tagwire_pml::{
    Messenger, PartitionedRecv, PartitionedSend, Policy, Result, SendMode, ThreadLevel,
};
use tagwire_transport::{RecvBuffer, SendBuffer};

/// Messages of a turn of `window`.
const WINDOW: u64 = 64;

const TAG: Tag = Tag::user(7).expect("not negative");

/// A rank of `job`, opened on a thread of its own, since opening waits for the others.
fn open(
    job: &LocalJob,
    layer: &str,
    rank: u32,
    level: ThreadLevel,
    record: &str,
) -> Result<Messenger> {
    let registry = Registry::new(&tagwire_pml::settings::all());
    let mut config = Config::defaults(&registry);
    config.set("pml", layer)?;
    config.set("shm-staged", "1M")?;
    config.set("record", record)?;
    config.set("record-clock", "coarse")?;
    let bootstrap = SharedBootstrap::new(Box::new(job.member(Rank::new(rank))));
    tagwire_pml::open(&config, level, Box::new(bootstrap))
}

/// Makes the first `count` of very many partitions ready.
fn ready(here: &Arc<Messenger>, there: &Arc<Messenger>, policy: Policy, count: u64) -> Result<()> {
    let (out, mut into) = (vec![1u8; 8 << 15], vec![0u8; 8 << 15]);
    let (rank, world) = (Rank::new, ContextId::WORLD);
    // SAFETY: the vectors are leaked at the end: the round is left unfinished.
    let (data, room) = unsafe {
        (
            SendBuffer::contiguous(out.as_ptr(), out.len()),
            RecvBuffer::contiguous(into.as_mut_ptr(), into.len()),
        )
    };
    let recv = PartitionedRecv::init(there, &room, 1, rank(0), TAG, world)?;
    let send = PartitionedSend::init(here, &data, 1 << 15, rank(1), TAG, world, policy)?;
    send.start()?;
    while send.describe().is_none() {
        there.progress()?;
        here.progress()?;
    }
    for partition in 0..(count as u32).min((1 << 15) - 1) {
        send.ready(partition)?;
    }
    std::mem::forget((out, into, send, recv));
    Ok(())
}

/// A folder for traces, which are of no use afterwards.
fn folder() -> String {
    let folder = std::env::temp_dir().join("tagwire-instructions");
    folder.to_string_lossy().into_owned()
}

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let case = arguments.next().unwrap_or_else(|| "pair".to_owned());
    let count: u64 = arguments
        .next()
        .and_then(|text| text.parse().ok())
        .unwrap_or(1000);
    let (layer, case) = match case.split_once('-') {
        Some(("cm", case)) => ("cm", case),
        Some(("dr", case)) => ("dr", case),
        _ => ("ob1", case.as_str()),
    };
    let (record, case) = match case.strip_suffix("-recorded") {
        Some(case) => (folder(), case),
        None => (String::new(), case),
    };
    let size = if matches!(case, "self" | "window") {
        1
    } else {
        2
    };
    let job = LocalJob::new(size)?;
    // Any thread may have opened a rank at the level 'multiple'; the one that did keeps the bias,
    // so the rank under test is opened here, last.
    let peer = (size == 2).then(|| {
        let (job, record) = (job.clone(), record.clone());
        std::thread::spawn(move || open(&job, layer, 1, ThreadLevel::Multiple, &record))
    });
    let here = Arc::new(open(&job, layer, 0, ThreadLevel::Single, &record)?);
    let there = match peer {
        Some(thread) => Arc::new(thread.join().expect("opening does not panic")?),
        None => Arc::clone(&here),
    };
    let out = [1u8; 8];
    let mut into = [0u8; 8];
    let to = there.rank();
    // SAFETY: the arrays outlive every operation: each is complete before the next begins.
    let (send, mut recv) = (
        || unsafe { SendBuffer::contiguous(out.as_ptr(), 8) },
        || unsafe { RecvBuffer::contiguous(into.as_mut_ptr(), 8) },
    );
    let (from, tag, world) = (
        SourceSelector::exact(Rank::new(0)),
        TagSelector::exact(TAG),
        ContextId::WORLD,
    );
    if case.starts_with("ready") {
        let policy = match case {
            "ready" => Policy::Fixed(1),
            _ => Policy::Each,
        };
        return ready(&here, &there, policy, count);
    }
    let mut requests = Vec::with_capacity(WINDOW as usize);
    let turns = if case == "window" {
        count / WINDOW
    } else {
        count
    };
    for _ in 0..turns {
        match case {
            "window" => {
                for _ in 0..WINDOW {
                    requests.push(there.irecv(recv(), from, tag, world)?);
                }
                for _ in 0..WINDOW {
                    here.isend(send(), to, TAG, world, SendMode::Standard)?;
                }
                there.wait_all_quiet(&requests, None)?;
                requests.clear();
            }
            "unexpected" => {
                here.isend(send(), to, TAG, world, SendMode::Standard)?;
                there.progress()?;
                let request = there.irecv(recv(), from, tag, world)?;
                there.wait(request, None)?;
            }
            "send" => {
                for _ in 0..32 {
                    here.isend(send(), to, TAG, world, SendMode::Standard)?;
                }
                for _ in 0..32 {
                    let request = there.irecv(recv(), from, tag, world)?;
                    there.wait(request, None)?;
                }
            }
            _ => {
                let request = there.irecv(recv(), from, tag, world)?;
                here.isend(send(), to, TAG, world, SendMode::Standard)?;
                there.wait(request, None)?;
            }
        }
    }
    if !record.is_empty() {
        // What remains is in nobody's way.
        let _ = std::fs::remove_dir_all(record);
    }
    Ok(())
}
