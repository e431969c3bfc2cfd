//! A row of ranks, each with several threads: every thread computes a slice of a field and hands it to the next rank
//! the moment it is done, while the others still compute.
//!
//! ```text
//! tagwire run -n 2 -- target/release/examples/partitioned 100
//! ```

use tagwire::{PartitionedRecv, PartitionedSend, Policy, Result, Session, ThreadLevel};

/// Threads of a rank, and so partitions of what it sends.
const THREADS: u32 = 4;

/// Partitions of what a rank receives: as many as suit it.
const PARTS: u32 = 3;

/// Elements of the field.
const LEN: usize = 12 * 1024;

/// What a thread computes for one element.
fn element(rank: u32, round: u64, at: usize) -> u64 {
    u64::from(rank) + round * at as u64
}

/// Fills each partition by a thread of its own.
fn produce(send: &mut PartitionedSend<u64>, rank: u32, round: u64) -> Result<()> {
    let sending = send.start()?;
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|number| {
                scope.spawn(move || {
                    let mut part = sending.partition(number)?;
                    let first = number as usize * part.len();
                    for (at, value) in part.iter_mut().enumerate() {
                        *value = element(rank, round, first + at);
                    }
                    part.ready()
                })
            })
            .collect();
        let mut ends = threads.into_iter().map(|thread| thread.join());
        ends.try_for_each(|end| end.unwrap_or(Ok(())))
    })?;
    sending.wait()
}

/// Adds up what arrives, in the order in which it does.
fn consume(recv: &mut PartitionedRecv<u64>) -> Result<u64> {
    let arriving = recv.start()?;
    let (mut sum, mut left) = (0, (0..PARTS).collect::<Vec<_>>());
    while !left.is_empty() {
        let mut still = Vec::new();
        for part in left {
            match arriving.partition(part)? {
                Some(values) => sum += values.iter().sum::<u64>(),
                None => still.push(part),
            }
        }
        left = still;
        std::thread::yield_now();
    }
    arriving.wait()?;
    Ok(sum)
}

fn main() -> Result<()> {
    let rounds = std::env::args().nth(1);
    let rounds = rounds.and_then(|text| text.parse().ok()).unwrap_or(10);
    let session = Session::builder().threads(ThreadLevel::Multiple).open()?;
    let (world, rank, size) = (session.world(), session.rank(), session.size());
    let (next, previous) = (rank + 1, rank.checked_sub(1));
    let field = || vec![0u64; LEN];
    let mut send = (next < size)
        .then(|| world.psend_init_with(Policy::Each, field(), THREADS, next, 1))
        .transpose()?;
    let mut recv = previous
        .map(|previous| world.precv_init(field(), PARTS, previous, 1))
        .transpose()?;
    let mut sum = 0u64;
    for round in 0..rounds {
        if let Some(send) = &mut send {
            produce(send, rank, round)?;
        }
        if let Some(recv) = &mut recv {
            sum = sum.wrapping_add(consume(recv)?);
        }
    }
    let mut sums = [sum];
    if rank + 1 == size {
        world.send(&sums, 0, 2)?;
    }
    if rank == 0 {
        world.recv(&mut sums, size - 1, 2)?;
        println!(
            "{size} ranks, {rounds} rounds, the last rank's sum {}",
            sums[0]
        );
    }
    drop((send, recv));
    session.close()
}
