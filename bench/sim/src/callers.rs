//! Allreduces of several callers on each of some nodes at once: threads of a process, or processes, each with those of its number on the
//! other nodes.
//!
//! The test is that of Thakur and Gropp, *Test suite for evaluating performance of MPI implementations that support
//! MPI_THREAD_MULTIPLE* (EuroPVM/MPI 2007), section 3.6.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use tagwire_coll::Team;
use tagwire_sim::SimOptions;

use crate::error::Result;
use crate::rank::SimRank;
use crate::threads::Threads;

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Callers {
    /// Nodes.
    pub nodes: u32,
    /// Callers on each.
    pub callers: u32,
    /// Whether they are threads of one process; else processes.
    pub are_threads: bool,
    /// Bytes of a vector.
    pub bytes: usize,
    /// How often each calls.
    pub iterations: u64,
}

/// What the threads of a rank share.
#[derive(Default)]
struct Shared {
    groups: RefCell<Vec<Arc<Team>>>,
    has_begun: Cell<bool>,
    ended: Cell<u32>,
}

/// Runs the calls, and returns what one took each caller on average, in nanoseconds.
///
/// # Errors
/// When a rank cannot be opened, an operation fails, or ranks wait for ever.
pub fn run(options: &SimOptions, case: Callers) -> Result<Vec<f64>> {
    let mut options = options.clone();
    let ranks = match case.are_threads {
        true => case.nodes,
        false => case.nodes * case.callers,
    };
    if let Some(machine) = &mut options.machine {
        machine.ranks_per_node = ranks / case.nodes;
    }
    let mut threads = Threads::new(ranks, options);
    let times: Rc<RefCell<Vec<f64>>> = Rc::default();
    for rank in 0..ranks {
        let rank = threads.open(rank)?;
        let shared: Rc<Shared> = Rc::default();
        let others = if case.are_threads {
            1..case.callers
        } else {
            1..1
        };
        for number in others {
            let (thread, shared) = (rank.thread(), Rc::clone(&shared));
            let times = Rc::clone(&times);
            threads.spawn(&thread.actor().clone(), async move {
                while !shared.has_begun.get() {
                    thread.actor().next().await;
                }
                let end = shared.call(&thread, case, number, &times).await;
                thread.actor().wake();
                end
            });
        }
        let times = Rc::clone(&times);
        threads.spawn(&rank.actor().clone(), async move {
            shared.lead(&rank, case, &times).await
        });
    }
    threads.run()?;
    Ok(times.take())
}

impl Shared {
    /// The first thread: makes the groups, and is the first caller.
    async fn lead(&self, rank: &SimRank, case: Callers, times: &RefCell<Vec<f64>>) -> Result<()> {
        if case.are_threads {
            for _ in 0..case.callers {
                let group = rank.duplicate().await?;
                self.groups.borrow_mut().push(group);
            }
        } else {
            let group = rank.part(rank.rank() % case.callers).await?;
            self.groups.borrow_mut().push(group);
        }
        let callers = self.groups.borrow().len() as u32;
        rank.barrier().await?;
        self.has_begun.set(true);
        rank.actor().wake();
        self.call(rank, case, 0, times).await?;
        while self.ended.get() < callers {
            rank.actor().next().await;
        }
        rank.barrier().await?;
        self.groups.take();
        rank.close()
    }

    async fn call(
        &self,
        rank: &SimRank,
        case: Callers,
        number: u32,
        times: &RefCell<Vec<f64>>,
    ) -> Result<()> {
        let group = Arc::clone(&self.groups.borrow()[number as usize]);
        let began = rank.actor().now().as_nanos();
        for _ in 0..case.iterations {
            let sum = rank.start_sum(&group, vec![1; case.bytes])?;
            rank.ended(&sum).await?;
        }
        let took = rank.actor().now().as_nanos() - began;
        times
            .borrow_mut()
            .push(took as f64 / case.iterations as f64);
        self.ended.set(self.ended.get() + 1);
        Ok(())
    }
}
