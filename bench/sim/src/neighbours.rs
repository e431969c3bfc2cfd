//! Long messages to four neighbours of a ring behind computation, with and without a thread that makes progress meanwhile.
//!
//! The test is that of Thakur and Gropp, *Test suite for evaluating performance of MPI implementations that support
//! MPI_THREAD_MULTIPLE* (EuroPVM/MPI 2007), section 3.5.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use tagwire_sim::SimOptions;

use crate::error::Result;
use crate::programs::tag;
use crate::rank::SimRank;
use crate::threads::Threads;

/// Who makes progress while ranks compute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Helper {
    /// Nobody.
    Nobody,
    /// A thread of the program that waits in a receive.
    Blocked,
    /// A thread of the library, which looks whenever something has come.
    Library,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Neighbours {
    /// Ranks of the ring, 2 at least.
    pub ranks: u32,
    /// Bytes of a message.
    pub bytes: usize,
    /// How long a rank computes between post and wait.
    pub compute: Duration,
    /// Who makes progress meanwhile.
    pub helper: Helper,
    /// How often.
    pub iterations: u64,
}

/// How far the neighbours are.
const DISTANCES: std::ops::RangeInclusive<u32> = 1..=4;

/// The tag of the message that ends the receive of a thread which waits.
const END: u32 = 9;

/// Runs the iterations, and returns what each took the slowest rank, in nanoseconds.
///
/// # Errors
/// When a rank cannot be opened, an operation fails, or ranks wait for ever.
pub fn run(options: &SimOptions, case: Neighbours) -> Result<Vec<u64>> {
    let mut threads = Threads::new(case.ranks, options.clone());
    let slowest = Rc::new(RefCell::new(vec![0; case.iterations as usize]));
    for rank in 0..case.ranks {
        let rank = threads.open(rank)?;
        let is_over = Rc::new(Cell::new(false));
        if case.helper != Helper::Nobody {
            let (thread, is_over) = (rank.thread(), Rc::clone(&is_over));
            threads.spawn(&thread.actor().clone(), async move {
                help(&thread, case.helper, &is_over).await
            });
        }
        let slowest = Rc::clone(&slowest);
        threads.spawn(&rank.actor().clone(), async move {
            lead(&rank, case, &slowest, &is_over).await
        });
    }
    threads.run()?;
    Ok(slowest.take())
}

/// A thread beside the first.
async fn help(rank: &SimRank, helper: Helper, is_over: &Cell<bool>) -> Result<()> {
    if helper == Helper::Blocked {
        let posted = rank.irecv(rank.rank(), tag(END), 0)?;
        rank.wait(posted).await?;
        is_over.set(true);
        rank.actor().wake();
        return Ok(());
    }
    rank.until(|| Ok(is_over.get().then_some(()))).await
}

async fn lead(
    rank: &SimRank,
    case: Neighbours,
    slowest: &RefCell<Vec<u64>>,
    is_over: &Cell<bool>,
) -> Result<()> {
    let ranks = case.ranks;
    // With fewer ranks the same neighbours come again.
    let far = |distance: u32| (distance - 1) % (ranks - 1) + 1;
    for iteration in 0..case.iterations as usize {
        rank.barrier().await?;
        let began = rank.actor().now().as_nanos();
        let mut requests = Vec::new();
        for distance in DISTANCES {
            let before = (rank.rank() + ranks - far(distance)) % ranks;
            requests.push(rank.irecv(before, tag(distance), case.bytes)?);
        }
        for distance in DISTANCES {
            let after = (rank.rank() + far(distance)) % ranks;
            requests.push(rank.isend(after, tag(distance), vec![0; case.bytes])?);
        }
        rank.compute(case.compute).await;
        for request in requests {
            rank.wait(request).await?;
        }
        let took = rank.actor().now().as_nanos() - began;
        let mut slowest = slowest.borrow_mut();
        slowest[iteration] = took.max(slowest[iteration]);
    }
    match case.helper {
        Helper::Nobody => {}
        Helper::Library => {
            is_over.set(true);
            rank.actor().wake();
        }
        Helper::Blocked => {
            let sent = rank.isend(rank.rank(), tag(END), Vec::new())?;
            rank.wait(sent).await?;
            while !is_over.get() {
                rank.actor().next().await;
            }
        }
    }
    rank.barrier().await?;
    rank.close()
}
