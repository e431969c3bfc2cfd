//! Exchanges of buffers on a ring of ranks, whose threads arrive one after the other: the pieces of a buffer leave as soon as their threads
//! have arrived, or all after the join.
//!
//! These are the iterations of Marts and others, *CMB: a configurable messaging benchmark* (CCGrid 2024, section 2). Rank r sends to the
//! next ranks, and receives from those before it. Where pieces are written into their receiver's memory, each peer has a window, which a
//! flush and a barrier of all ranks opens and closes.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use tagwire_pml::{RequestId, Target};
use tagwire_sim::SimOptions;

use crate::error::Result;
use crate::programs::tag;
use crate::rank::SimRank;
use crate::threads::Threads;

/// When pieces leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leaves {
    /// After the join, to one peer after the other, each of which is waited for.
    Serially,
    /// After the join, to all peers at once.
    Together,
    /// Each as soon as its last thread has arrived.
    Early,
}

/// When the threads of a rank arrive, by the number of the iteration and the rank.
pub type Arrivals = Rc<dyn Fn(u64, u32) -> Vec<Duration>>;

/// What is measured.
#[derive(Clone)]
pub struct Exchange {
    /// Ranks of the ring.
    pub ranks: u32,
    /// Threads of each: a multiple of the pieces.
    pub threads: u32,
    /// To how many ranks each sends.
    pub peers: u32,
    /// Bytes of the buffer that each gets: a multiple of the threads.
    pub bytes: usize,
    /// Into how many pieces it is cut.
    pub parts: u32,
    /// When they leave.
    pub leaves: Leaves,
    /// Whether they are written into their receiver's memory.
    pub is_remote: bool,
    /// How often.
    pub iterations: u64,
    /// When threads arrive.
    pub arrivals: Arrivals,
}

impl fmt::Debug for Exchange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exchange")
            .field("ranks", &self.ranks)
            .field("threads", &self.threads)
            .field("peers", &self.peers)
            .field("bytes", &self.bytes)
            .field("parts", &self.parts)
            .field("leaves", &self.leaves)
            .field("is_remote", &self.is_remote)
            .field("iterations", &self.iterations)
            .finish_non_exhaustive()
    }
}

/// The iteration before the first: its threads arrive at once. Ranks come into contact in it, and grant each other credit.
const WARM_UP: u64 = 0;

/// The longest key of memory.
const LONGEST_KEY: usize = 1024;

/// What the threads of a rank share.
struct Shared {
    case: Exchange,
    /// Iterations that have begun, and threads that have ended theirs, in all iterations, that of the warm-up among them.
    begun: Cell<u64>,
    ended: Cell<u64>,
    /// How many threads have arrived in each piece, in all iterations.
    arrived: Vec<Cell<u32>>,
    /// When they arrive in this iteration.
    times: RefCell<Vec<Duration>>,
    /// Sends that are under way.
    sends: RefCell<Vec<RequestId>>,
    /// The memory of the ranks to which this one sends.
    targets: RefCell<Vec<Target>>,
    /// What each iteration took, in nanoseconds.
    took: RefCell<Vec<u64>>,
}

/// Runs the iterations on a simulated network, and returns how long each took on each rank, in nanoseconds.
///
/// # Errors
/// When a rank cannot be opened, an operation fails, or ranks wait for ever.
pub fn run(options: &SimOptions, case: &Exchange) -> Result<Vec<Vec<u64>>> {
    let mut options = options.clone();
    // What is known of messages' bytes is not of reads and writes of memory: then long messages go as such.
    let is_of_messages = options
        .machine
        .is_some_and(|machine| machine.network.stream.as_femtos() > 0);
    if is_of_messages && !case.is_remote {
        (options.get, options.put) = (false, false);
    }
    let mut threads = Threads::new(case.ranks, options);
    let mut all = Vec::new();
    for rank in 0..case.ranks {
        let rank = threads.open(rank)?;
        let shared = Rc::new(Shared::new(case));
        all.push(Rc::clone(&shared));
        for number in 0..case.threads {
            let (thread, shared) = (rank.thread(), Rc::clone(&shared));
            threads.spawn(&thread.actor().clone(), async move {
                shared.arrive(&thread, number).await
            });
        }
        threads.spawn(
            &rank.actor().clone(),
            async move { shared.lead(&rank).await },
        );
    }
    threads.run()?;
    Ok(all.iter().map(|shared| shared.took.take()).collect())
}

impl Shared {
    fn new(case: &Exchange) -> Self {
        Self {
            case: case.clone(),
            begun: Cell::default(),
            ended: Cell::default(),
            arrived: (0..case.parts).map(|_| Cell::default()).collect(),
            times: RefCell::default(),
            sends: RefCell::default(),
            targets: RefCell::default(),
            took: RefCell::default(),
        }
    }

    /// The rank to which, or from which, the messages of a peer's number go.
    fn peer(&self, rank: &SimRank, number: u32, into: bool) -> u32 {
        let step = 1 + number % (self.case.ranks - 1);
        let step = match into {
            true => self.case.ranks - step,
            false => step,
        };
        (rank.rank() + step) % self.case.ranks
    }

    /// Bytes of a piece.
    fn piece(&self) -> usize {
        self.case.bytes / self.case.parts as usize
    }

    fn tag(&self, peer: u32, part: u32) -> tagwire_base::Tag {
        tag(peer * self.case.parts + part)
    }

    /// A thread: arrives, and has the pieces leave whose last one it is.
    async fn arrive(&self, rank: &SimRank, number: u32) -> Result<()> {
        let case = &self.case;
        let part = number * case.parts / case.threads;
        for iteration in WARM_UP..=case.iterations {
            while self.begun.get() <= iteration {
                rank.actor().next().await;
            }
            let time = self.times.borrow()[number as usize];
            rank.actor().sleep(time).await;
            if case.leaves == Leaves::Early {
                let arrived = &self.arrived[part as usize];
                arrived.set(arrived.get() + 1);
                if arrived.get().is_multiple_of(case.threads / case.parts) {
                    for peer in 0..case.peers {
                        self.leave(rank, peer, part)?;
                        rank.actor().give_way().await;
                    }
                }
            }
            self.ended.set(self.ended.get() + 1);
            rank.actor().wake();
        }
        Ok(())
    }

    /// A piece leaves.
    fn leave(&self, rank: &SimRank, peer: u32, part: u32) -> Result<()> {
        if self.case.is_remote {
            let target = self.targets.borrow()[peer as usize].clone();
            let offset = u64::from(peer) * self.case.bytes as u64;
            let place = offset + u64::from(part) * self.piece() as u64;
            return rank.put(&target, place, vec![1; self.piece()]);
        }
        let to = self.peer(rank, peer, false);
        let sent = rank.isend(to, self.tag(peer, part), vec![1; self.piece()])?;
        self.sends.borrow_mut().push(sent);
        Ok(())
    }

    /// The first thread: opens windows, begins each iteration, and ends it.
    async fn lead(&self, rank: &SimRank) -> Result<()> {
        let case = &self.case;
        if case.is_remote {
            self.open_windows(rank).await?;
        }
        for iteration in WARM_UP..=case.iterations {
            rank.barrier().await?;
            let began = rank.actor().now().as_nanos();
            let mut receives = Vec::new();
            if case.is_remote {
                self.fence(rank).await?;
            } else {
                for peer in 0..case.peers {
                    let from = self.peer(rank, peer, true);
                    let post = |part| rank.irecv(from, self.tag(peer, part), self.piece());
                    let posted = (0..case.parts).map(post).collect::<Result<Vec<_>>>()?;
                    receives.push(posted);
                }
            }
            *self.times.borrow_mut() = match iteration {
                WARM_UP => vec![Duration::ZERO; case.threads as usize],
                _ => (case.arrivals)(iteration - 1, rank.rank()),
            };
            self.begun.set(iteration + 1);
            rank.actor().wake();
            while self.ended.get() < self.begun.get() * u64::from(case.threads) {
                rank.actor().next().await;
            }
            self.end(rank, receives).await?;
            let took = rank.actor().now().as_nanos() - began;
            if iteration != WARM_UP {
                self.took.borrow_mut().push(took);
            }
        }
        rank.barrier().await?;
        rank.close()
    }

    /// What is done after the join.
    async fn end(&self, rank: &SimRank, receives: Vec<Vec<RequestId>>) -> Result<()> {
        if self.case.is_remote {
            return self.fence(rank).await;
        }
        if self.case.leaves == Leaves::Together {
            for peer in 0..self.case.peers {
                self.leave(rank, peer, 0)?;
            }
        }
        for (peer, posted) in (0..).zip(receives) {
            if self.case.leaves == Leaves::Serially {
                self.leave(rank, peer, 0)?;
                self.sent(rank).await?;
            }
            for request in posted {
                rank.wait(request).await?;
            }
        }
        self.sent(rank).await
    }

    /// Waits for what was sent.
    async fn sent(&self, rank: &SimRank) -> Result<()> {
        let sends = self.sends.take();
        for sent in sends {
            rank.wait(sent).await?;
        }
        Ok(())
    }

    /// Ends the accesses to each window: a synchronisation of all ranks for each.
    async fn fence(&self, rank: &SimRank) -> Result<()> {
        let targets = self.targets.borrow().clone();
        for target in &targets {
            rank.flush(target).await?;
            rank.barrier().await?;
        }
        Ok(())
    }

    /// Exposes the memory for all peers, and reaches theirs.
    async fn open_windows(&self, rank: &SimRank) -> Result<()> {
        let key = rank.expose(self.case.peers as usize * self.case.bytes)?;
        let keys = 1 << 15;
        let mut posted = Vec::new();
        for peer in 0..self.case.peers {
            let to = self.peer(rank, peer, false);
            posted.push((to, rank.irecv(to, tag(keys + peer), LONGEST_KEY)?));
        }
        let mut sends = Vec::new();
        for peer in 0..self.case.peers {
            let from = self.peer(rank, peer, true);
            sends.push(rank.isend(from, tag(keys + peer), key.clone())?);
        }
        for sent in sends {
            rank.wait(sent).await?;
        }
        for (to, request) in posted {
            let key = rank.wait_for_bytes(request).await?;
            self.targets.borrow_mut().push(rank.reach(to, &key)?);
        }
        Ok(())
    }
}
