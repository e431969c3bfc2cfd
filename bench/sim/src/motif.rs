//! Patterns whose threads follow a script: what they call, region after region, over messages or partitioned operations.
//!
//! ```text
//!   rank     thread 0                       other threads
//!            before: starts exchanges
//!            its own calls                  their own calls        computes, waits for parts, lets parts leave
//!            waits for the others
//!            after: ends exchanges
//! ```
//!
//! Sweep3D and Halo3D of Temucin, Grant and Afsahi, *Micro-benchmarking MPI partitioned point-to-point communication* (ICPP 2022,
//! section 3.4), are such patterns.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use tagwire_base::Tag;
use tagwire_pml::{PartitionedRecv, PartitionedSend, Policy, RequestId};
use tagwire_sim::SimOptions;

use crate::error::Result;
use crate::programs::tag;
use crate::rank::{Shape, SimRank};
use crate::threads::Threads;

/// A call of a thread. Exchanges are known by their number, edges by their place in an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Begins a round of an exchange.
    Start(usize),
    /// Lets a part of an outgoing edge leave.
    Ready {
        /// Of which exchange.
        exchange: usize,
        /// Its outgoing edge.
        edge: usize,
        /// Which part of it.
        part: u32,
    },
    /// Waits for a part of an incoming edge.
    Arrive {
        /// Of which exchange.
        exchange: usize,
        /// Its incoming edge.
        edge: usize,
        /// Which part of it.
        part: u32,
    },
    /// Waits for all edges of an exchange.
    Finish(usize),
    /// Computes until so much time has passed.
    Compute(Duration),
}

/// What moves the parts of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// Sends and receives, each of which its thread waits for.
    Calls,
    /// Messages into receives that the start posts.
    Posted,
    /// Partitioned operations.
    Partitioned(Policy),
}

/// Traffic with a peer in one direction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// The rank at the other end.
    pub peer: u32,
    /// Tells edges between the same two ranks apart, the same number at both ends.
    pub number: u32,
    /// Parts in a row.
    pub parts: u32,
    /// Bytes of a part.
    pub len: usize,
}

/// The edges of a rank that begin and end their rounds together.
#[derive(Debug, Clone)]
pub struct Edges {
    /// What moves their parts.
    pub carrier: Carrier,
    /// To peers.
    pub outs: Vec<Edge>,
    /// From peers.
    pub ins: Vec<Edge>,
}

/// What the threads of a rank do in a region.
#[derive(Debug, Clone, Default)]
pub struct Region {
    /// What the first thread does before the others begin.
    pub before: Vec<Step>,
    /// What each thread does.
    pub threads: Vec<Vec<Step>>,
    /// What the first thread does once all have ended.
    pub after: Vec<Step>,
}

/// What a rank does.
#[derive(Debug, Clone, Default)]
pub struct Script {
    /// The edges that it sets up.
    pub exchanges: Vec<Edges>,
    /// Its regions.
    pub regions: Vec<Region>,
}

/// What is run: scripts that fit to each other.
#[derive(Clone)]
pub struct Motif {
    /// Ranks.
    pub ranks: u32,
    /// Threads of each.
    pub threads: u32,
    /// What a rank does.
    pub script: Rc<dyn Fn(u32) -> Script>,
}

impl fmt::Debug for Motif {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Motif")
            .field("ranks", &self.ranks)
            .field("threads", &self.threads)
            .finish_non_exhaustive()
    }
}

impl Edge {
    fn tag(&self, part: u32) -> Tag {
        tag(self.number * self.parts + part)
    }

    const fn shape(&self, policy: Policy) -> Shape {
        Shape {
            bytes: self.parts as usize * self.len,
            partitions: self.parts,
            policy,
        }
    }
}

/// An exchange that is set up.
enum Open {
    Calls,
    Posted {
        sends: RefCell<Vec<RequestId>>,
        /// Of each edge, by part; none once it was waited for.
        receives: RefCell<Vec<Vec<Option<RequestId>>>>,
    },
    Channels(Vec<PartitionedSend>, Vec<PartitionedRecv>),
}

/// What the threads of a rank share.
struct Team {
    script: Script,
    open: Vec<Open>,
    threads: u32,
    /// Regions that have begun, and threads but the first that have ended theirs, in all regions.
    begun: Cell<usize>,
    ended: Cell<usize>,
    /// What all regions took, in nanoseconds.
    took: Cell<u64>,
}

/// Runs the regions on a simulated network, and returns how long all of them took each rank, in nanoseconds.
///
/// # Errors
/// When a rank cannot be opened, an operation fails, or ranks wait for ever: where scripts do not fit, say.
pub fn run(options: &SimOptions, motif: &Motif) -> Result<Vec<u64>> {
    let mut threads = Threads::new(motif.ranks, options.clone());
    let mut teams = Vec::new();
    for rank in threads.open_all(motif.ranks)? {
        let team = Rc::new(Team::open(&rank, motif)?);
        teams.push(Rc::clone(&team));
        for number in 1..motif.threads {
            let (thread, team) = (rank.thread(), Rc::clone(&team));
            threads.spawn(&thread.actor().clone(), async move {
                team.work(&thread, number).await
            });
        }
        threads.spawn(&rank.actor().clone(), async move { team.lead(&rank).await });
    }
    threads.run()?;
    Ok(teams.iter().map(|team| team.took.get()).collect())
}

impl Team {
    fn open(rank: &SimRank, motif: &Motif) -> Result<Self> {
        let script = (motif.script)(rank.rank());
        let open = script.exchanges.iter().map(|edges| open(rank, edges));
        Ok(Self {
            open: open.collect::<Result<_>>()?,
            script,
            threads: motif.threads,
            begun: Cell::default(),
            ended: Cell::default(),
            took: Cell::default(),
        })
    }

    /// A thread but the first.
    async fn work(&self, rank: &SimRank, number: u32) -> Result<()> {
        for (place, region) in self.script.regions.iter().enumerate() {
            while self.begun.get() <= place {
                rank.actor().next().await;
            }
            self.all(rank, &region.threads[number as usize]).await?;
            self.ended.set(self.ended.get() + 1);
            rank.actor().wake();
        }
        Ok(())
    }

    async fn lead(&self, rank: &SimRank) -> Result<()> {
        rank.barrier().await?;
        let began = rank.actor().now().as_nanos();
        let others = self.threads as usize - 1;
        for (place, region) in self.script.regions.iter().enumerate() {
            self.all(rank, &region.before).await?;
            self.begun.set(place + 1);
            rank.actor().wake();
            self.all(rank, &region.threads[0]).await?;
            while self.ended.get() < (place + 1) * others {
                rank.actor().next().await;
            }
            self.all(rank, &region.after).await?;
        }
        rank.barrier().await?;
        self.took.set(rank.actor().now().as_nanos() - began);
        rank.close()
    }

    async fn all(&self, rank: &SimRank, steps: &[Step]) -> Result<()> {
        for step in steps {
            self.step(rank, *step).await?;
        }
        Ok(())
    }

    async fn step(&self, rank: &SimRank, step: Step) -> Result<()> {
        match step {
            Step::Compute(time) => rank.compute_by_clock(time).await,
            Step::Start(exchange) => self.start(rank, exchange)?,
            Step::Ready {
                exchange,
                edge,
                part,
            } => {
                let to = &self.script.exchanges[exchange].outs[edge];
                match &self.open[exchange] {
                    Open::Channels(sends, _) => sends[edge].ready(part)?,
                    Open::Calls => {
                        let sent = rank.isend(to.peer, to.tag(part), vec![0; to.len])?;
                        rank.wait(sent).await?;
                    }
                    Open::Posted { sends, .. } => {
                        let sent = rank.isend(to.peer, to.tag(part), vec![0; to.len])?;
                        sends.borrow_mut().push(sent);
                    }
                }
            }
            Step::Arrive {
                exchange,
                edge,
                part,
            } => {
                let from = &self.script.exchanges[exchange].ins[edge];
                match &self.open[exchange] {
                    Open::Channels(_, receives) => {
                        let is_there = || Ok(receives[edge].arrived(part)?.then_some(()));
                        rank.until(is_there).await?;
                    }
                    Open::Calls => {
                        let posted = rank.irecv(from.peer, from.tag(part), from.len)?;
                        rank.wait(posted).await?;
                    }
                    Open::Posted { receives, .. } => {
                        let posted = receives.borrow_mut()[edge][part as usize].take();
                        if let Some(posted) = posted {
                            rank.wait(posted).await?;
                        }
                    }
                }
            }
            Step::Finish(exchange) => self.finish(rank, exchange).await?,
        }
        Ok(())
    }

    fn start(&self, rank: &SimRank, exchange: usize) -> Result<()> {
        match &self.open[exchange] {
            Open::Calls => {}
            Open::Posted { receives, .. } => {
                let post = |edge: &Edge| {
                    let one = |part| {
                        let posted = rank.irecv(edge.peer, edge.tag(part), edge.len);
                        posted.map(Some)
                    };
                    (0..edge.parts).map(one).collect()
                };
                let ins = self.script.exchanges[exchange].ins.iter();
                *receives.borrow_mut() = ins.map(post).collect::<Result<_>>()?;
            }
            Open::Channels(sends, posted) => {
                for receive in posted {
                    receive.start()?;
                }
                for send in sends {
                    send.start()?;
                }
            }
        }
        Ok(())
    }

    async fn finish(&self, rank: &SimRank, exchange: usize) -> Result<()> {
        match &self.open[exchange] {
            Open::Calls => {}
            Open::Posted { sends, receives } => {
                let posted = std::mem::take(&mut *receives.borrow_mut());
                for request in posted.into_iter().flatten().flatten() {
                    rank.wait(request).await?;
                }
                for request in sends.take() {
                    rank.wait(request).await?;
                }
            }
            Open::Channels(sends, receives) => {
                for receive in receives {
                    rank.until(|| Ok(receive.test()?.then_some(()))).await?;
                }
                for send in sends {
                    rank.until(|| Ok(send.test()?.then_some(()))).await?;
                }
            }
        }
        Ok(())
    }
}

fn open(rank: &SimRank, edges: &Edges) -> Result<Open> {
    let policy = match edges.carrier {
        Carrier::Calls => return Ok(Open::Calls),
        Carrier::Posted => {
            return Ok(Open::Posted {
                sends: RefCell::default(),
                receives: RefCell::default(),
            });
        }
        Carrier::Partitioned(policy) => policy,
    };
    let ins = edges.ins.iter();
    let receives = ins.map(|edge| rank.precv(edge.peer, tag(edge.number), edge.shape(policy)));
    let receives = receives.collect::<Result<_>>()?;
    let outs = edges.outs.iter();
    let sends = outs.map(|edge| rank.psend(edge.peer, tag(edge.number), edge.shape(policy)));
    Ok(Open::Channels(sends.collect::<Result<_>>()?, receives))
}
