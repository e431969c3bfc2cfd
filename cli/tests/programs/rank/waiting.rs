//! Ranks that wait, and are asked for what.

use std::path::Path;
use std::time::Duration;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use tagwire::{ANY_SOURCE, Session};

use crate::{Outcome, say};

const TAG: i32 = 5;
const NEVER: i32 = 6;
const LATER: i32 = 7;
/// Words of a message that waits for its receive.
const LONG: usize = 100_000;

/// Every rank waits for ever, in a receive with a tag of its own.
pub fn hang() -> Outcome {
    let session = Session::open()?;
    let rank = session.rank();
    say(rank, "ready");
    session
        .world()
        .recv(&mut [0u64], ANY_SOURCE, NEVER + rank as i32)?;
    Err("the receive ended".into())
}

/// Rank 1 waits in a receive, with a long send under way. Rank 0 sends once the file named by the argument
/// is there, and receives then.
pub fn for_file(arguments: &[String]) -> Outcome {
    let path = Path::new(arguments.first().ok_or("which file?")?);
    let session = Session::open()?;
    let world = session.world();
    if session.rank() == 0 {
        world.isend_owned(vec![9u16; 9], 1, NEVER)?.wait()?;
        while !path.exists() {
            std::thread::sleep(Duration::from_millis(10));
        }
        world.send(&[42u64], 1, TAG)?;
        world.recv(&mut vec![0u64; LONG], 1, LATER)?;
    } else {
        world.wait_probe(0, NEVER, None)?;
        let late = world.isend_owned(vec![3u64; LONG], 0, LATER)?;
        say(1, "ready");
        let mut message = [0u64; 4];
        let status = world.recv(&mut message, 0, TAG)?;
        say(1, format!("received {} of {:?}", status.bytes(), message));
        world.recv(&mut [0u16; 9], 0, NEVER)?;
        late.wait()?;
    }
    Ok(session.close()?)
}

/// Passes a token round, all ranks on one core: who has not got it tests in a loop. Says how often.
pub fn turns() -> Outcome {
    const ROUNDS: u32 = 50;
    let (own, mut one) = (sched_getaffinity(None)?, CpuSet::new());
    let first = (0..CpuSet::MAX_CPU).find(|cpu| own.is_set(*cpu));
    one.set(first.ok_or("no core")?);
    sched_setaffinity(None, &one)?;
    let session = Session::open()?;
    let (world, rank, size) = (session.world(), session.rank(), session.size());
    let (next, previous) = ((rank + 1) % size, (rank + size - 1) % size);
    let mut tests = 0u64;
    for round in 0..ROUNDS {
        let mut token = world.irecv_owned(vec![0u32], previous, TAG)?;
        if rank == 0 {
            world.send(&[round], next, TAG)?;
        }
        loop {
            match token.test() {
                Ok(ended) => break drop(ended?),
                Err(early) => token = early,
            }
            tests += 1;
        }
        if rank != 0 {
            world.send(&[round], next, TAG)?;
        }
    }
    say(rank, format!("tested in vain {tests} times"));
    Ok(session.close()?)
}
