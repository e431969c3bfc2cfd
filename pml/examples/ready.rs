//! What a ready call costs, in nanoseconds of the calling threads' own time: one that only counts, alone and
//! with seven other threads on the same channel, and one that posts. A rank sends to itself over shared
//! memory, so that nobody else runs.
//!
//! ```text
//! cargo run --release -p tagwire-pml --example ready
//! ```
#![allow(unsafe_code)]

use std::sync::{Arc, Barrier};

use rustix::time::{ClockId, clock_gettime};
use tagwire_base::bootstrap::LocalJob;
use tagwire_base::{ContextId, Rank, Tag};
use tagwire_pml::ob1::{Ob1, Ob1Options};
use tagwire_pml::partitioned::{PartitionedRecv, PartitionedSend, Policy};
use tagwire_pml::{Error, Messenger, ThreadLevel, WaitPolicy};
use tagwire_transport::shm::{Shm, ShmOptions};
use tagwire_transport::{RecvBuffer, SendBuffer};

const PARTITIONS: u32 = 1 << 9;
/// Bytes of a partition.
const EACH: usize = 8;
const ROUNDS: usize = 1000;

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let job = LocalJob::new(1)?;
    let mut member = job.member(Rank::new(0));
    let shm = Shm::open(ShmOptions::default(), &mut member)?;
    let layer = Ob1::open(&Ob1Options::default(), Box::new(shm), Box::new(member))?;
    let policy = WaitPolicy::adaptive(true);
    let port = Arc::new(Messenger::new(layer, ThreadLevel::Multiple, policy));
    println!(
        "# ns a call, of the calling thread's time: medians of {ROUNDS} rounds of {PARTITIONS} calls"
    );
    for (threads, policy, what) in [
        (1, Policy::Fixed(1), "counts"),
        (8, Policy::Fixed(1), "counts"),
        (1, Policy::Each, "posts 8 bytes"),
        (8, Policy::Each, "posts 8 bytes"),
    ] {
        let cost = measure(&port, threads, policy)?;
        println!("{threads} threads, each call {what}: {cost:.1}");
    }
    Ok(())
}

/// Nanoseconds of a ready call in rounds to which so many threads contribute.
fn measure(port: &Arc<Messenger>, threads: u32, policy: Policy) -> Outcome<f64> {
    let (own, world, tag) = (Rank::new(0), ContextId::WORLD, Tag::user(1).ok_or("a tag")?);
    let data = vec![1_u8; PARTITIONS as usize * EACH];
    let mut room = data.clone();
    // SAFETY: both live until the channels are settled, below; nobody writes the first, and nobody looks at
    // the second before that.
    let (from, to) = unsafe {
        (
            SendBuffer::contiguous(data.as_ptr(), data.len()),
            RecvBuffer::contiguous(room.as_mut_ptr(), room.len()),
        )
    };
    let recv = PartitionedRecv::init(port, &to, 1, own, tag, world)?;
    let send = PartitionedSend::init(port, &from, PARTITIONS, own, tag, world, policy)?;
    let mut costs = Vec::new();
    for _ in 0..ROUNDS {
        recv.start()?;
        send.start()?;
        // Matched, and with credit: what is timed is the call alone.
        port.progress()?;
        let (share, together) = (PARTITIONS / threads, Barrier::new(threads as usize));
        let spent: Vec<Result<f64, Error>> = std::thread::scope(|scope| {
            let start = |thread| {
                let (send, together) = (&send, &together);
                scope.spawn(move || {
                    together.wait();
                    let before = own_time();
                    for partition in thread * share..(thread + 1) * share {
                        send.ready(partition)?;
                    }
                    Ok((own_time() - before) / f64::from(share))
                })
            };
            let running: Vec<_> = (0..threads).map(start).collect();
            let ended = running.into_iter().map(std::thread::ScopedJoinHandle::join);
            ended
                .map(|thread| thread.unwrap_or(Err(Error::Closed)))
                .collect()
        });
        let spent: Vec<f64> = spent.into_iter().collect::<Result<_, _>>()?;
        costs.push(spent.iter().sum::<f64>() / f64::from(threads));
        recv.wait(None)?;
        send.wait(None)?;
    }
    assert!(
        recv.is_settled() && send.is_settled(),
        "nobody is at the buffers"
    );
    costs.sort_by(f64::total_cmp);
    Ok(costs[costs.len() / 2])
}

/// The calling thread's own time, in nanoseconds.
fn own_time() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}
