//! Rounds of a partitioned operation between two ranks, whose threads compute and have a partition ready each.
//!
//! ```text
//!   rank 0, which sends                              rank 1
//!     a message:   threads compute; join             receives it
//!                  sends; receives a byte              sends a byte
//!     partitions:  thread t computes, ready(t),      thread t: arrived(t), then ready(t) of the reverse
//!                  waits for the reverse's t
//!     perceived:   as above without the reverse      receives all; sends a byte
//! ```
//!
//! These are the rounds of Temucin, Grant and Afsahi, *Micro-benchmarking MPI partitioned point-to-point communication* (ICPP 2022,
//! section 3), with as many threads on either side as there are partitions. All moments are of the sender's node.

use std::cell::{Cell, RefCell};
use std::fmt;
use std::rc::Rc;
use std::time::Duration;

use tagwire_pml::{PartitionedRecv, PartitionedSend, Policy};
use tagwire_sim::SimOptions;

use crate::error::Result;
use crate::programs::tag;
use crate::rank::{Shape, SimRank};
use crate::threads::Threads;

/// How long a thread computes, by the number of the round and its own.
pub type Delays = Rc<dyn Fn(u64, u32) -> Duration>;

/// What is measured.
#[derive(Clone)]
pub struct Case {
    /// Bytes of the message: a multiple of the partitions.
    pub bytes: usize,
    /// Partitions, and threads that send.
    pub partitions: u32,
    /// How partitions go together.
    pub policy: Policy,
    /// Rounds of each kind.
    pub rounds: u32,
    /// How long threads compute, by the clock.
    pub delays: Delays,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Case")
            .field("bytes", &self.bytes)
            .field("partitions", &self.partitions)
            .field("policy", &self.policy)
            .field("rounds", &self.rounds)
            .finish_non_exhaustive()
    }
}

/// A round of one message, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Single {
    /// From the fork to the join.
    pub fork_join: u64,
    /// From the join to the byte that comes back.
    pub message: u64,
}

/// A partition, in nanoseconds since the fork.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Interval {
    /// The ready call begins.
    pub called: u64,
    /// It has returned.
    pub ready: u64,
    /// The acknowledgement is here.
    pub arrived: u64,
}

/// What the rounds came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stamps {
    /// Of rounds of one message.
    pub messages: Vec<Single>,
    /// Of rounds of partitions.
    pub partitions: Vec<Vec<Interval>>,
    /// From the last ready call until the byte for all came back, in nanoseconds.
    pub last: Vec<u64>,
    /// Which way the partitions took, in words.
    pub way: String,
}

/// Bytes by tag.
const DATA: u32 = 1;
const REVERSE: u32 = 2;
const MESSAGE: u32 = 3;
const ACKNOWLEDGEMENT: u32 = 4;

/// What the threads of a rank share.
#[derive(Default)]
struct Team {
    /// Rounds that have begun, and threads that have ended theirs, in all rounds.
    begun: Cell<u64>,
    ended: Cell<u64>,
    /// When the round began.
    fork: Cell<u64>,
    /// When the last thread of this round had its partition ready.
    last: Cell<u64>,
    stamps: RefCell<Stamps>,
}

/// The operations of a rank: the data's, and the reverse's.
struct Ends<D, R> {
    data: D,
    reverse: R,
}

type Sending = Ends<PartitionedSend, PartitionedRecv>;
type Receiving = Ends<PartitionedRecv, PartitionedSend>;

/// What a round is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Message,
    Partitions,
    Perceived,
}

impl Case {
    const fn data(&self) -> Shape {
        Shape {
            bytes: self.bytes,
            partitions: self.partitions,
            policy: self.policy,
        }
    }

    /// A byte for each partition, none of which waits for another. Where data goes by messages, acknowledgements do: a library above
    /// sends and receives has nothing else.
    const fn reverse(&self) -> Shape {
        Shape {
            bytes: self.partitions as usize,
            partitions: self.partitions,
            policy: match self.policy {
                Policy::Messages(_) => Policy::Messages(u32::MAX),
                _ => Policy::Each,
            },
        }
    }

    /// The rounds, from 1 on, and what each is of.
    fn phases(&self) -> impl Iterator<Item = (u64, Phase)> + use<> {
        let phases = [Phase::Message, Phase::Partitions, Phase::Perceived];
        let rounds = self.rounds as usize;
        (1..).zip(
            phases
                .into_iter()
                .flat_map(move |phase| std::iter::repeat_n(phase, rounds)),
        )
    }
}

/// Runs the rounds on a simulated network.
///
/// # Errors
/// When a rank cannot be opened, an operation fails, or ranks wait for ever.
pub fn run(options: &SimOptions, case: &Case) -> Result<Stamps> {
    let mut threads = Threads::new(2, options.clone());
    let sender = Rc::new(Team::default());
    let (data, reverse) = (case.data(), case.reverse());
    for rank in threads.open_all(2)? {
        if rank.rank() == 0 {
            let ends = Ends {
                data: rank.psend(1, tag(DATA), data)?,
                reverse: rank.precv(1, tag(REVERSE), reverse)?,
            };
            let team = Rc::clone(&sender);
            spawn(
                &mut threads,
                rank,
                case,
                team,
                ends,
                Worker::send,
                lead_sender,
            );
        } else {
            let ends = Ends {
                data: rank.precv(0, tag(DATA), data)?,
                reverse: rank.psend(0, tag(REVERSE), reverse)?,
            };
            let team = Rc::default();
            spawn(
                &mut threads,
                rank,
                case,
                team,
                ends,
                Worker::receive,
                lead_receiver,
            );
        }
    }
    threads.run()?;
    Ok(sender.stamps.take())
}

/// Gives the threads of a rank their tasks: each with a partition `works`, and the first one `leads`.
fn spawn<E: 'static>(
    threads: &mut Threads,
    rank: SimRank,
    case: &Case,
    team: Rc<Team>,
    ends: E,
    works: impl AsyncFn(&Worker, &Case, &E) -> Result<()> + Copy + 'static,
    leads: impl AsyncFn(&SimRank, &Case, &Team, &E) -> Result<()> + 'static,
) {
    let ends = Rc::new(ends);
    for number in 0..case.partitions {
        let worker = Worker {
            rank: rank.thread(),
            number,
            team: Rc::clone(&team),
        };
        let (case, ends) = (case.clone(), Rc::clone(&ends));
        threads.spawn(&worker.rank.actor().clone(), async move {
            works(&worker, &case, &ends).await
        });
    }
    let case = case.clone();
    threads.spawn(&rank.actor().clone(), async move {
        leads(&rank, &case, &team, &ends).await
    });
}

/// A thread of a rank with a partition.
struct Worker {
    rank: SimRank,
    number: u32,
    team: Rc<Team>,
}

impl Worker {
    /// Waits for the beginning of a round.
    async fn fork(&self, round: u64) {
        while self.team.begun.get() < round {
            self.rank.actor().next().await;
        }
        // It may have looked while the first thread was still on its way to the fork.
        let early = self.team.fork.get().saturating_sub(now(&self.rank));
        if early > 0 {
            self.rank.actor().sleep(Duration::from_nanos(early)).await;
        }
    }

    fn join(&self) {
        self.team.ended.set(self.team.ended.get() + 1);
        self.rank.actor().wake();
    }

    async fn send(&self, case: &Case, ends: &Sending) -> Result<()> {
        let (number, team) = (self.number, &self.team);
        for (round, phase) in case.phases() {
            self.fork(round).await;
            self.rank
                .compute_by_clock((case.delays)(round, number))
                .await;
            if phase != Phase::Message {
                let called = now(&self.rank);
                ends.data.ready(number)?;
                let ready = now(&self.rank);
                team.last.set(team.last.get().max(ready));
                if phase == Phase::Partitions {
                    let is_there = || Ok(ends.reverse.arrived(number)?.then_some(()));
                    self.rank.until(is_there).await?;
                    let fork = team.fork.get();
                    let interval = Interval {
                        called: called - fork,
                        ready: ready - fork,
                        arrived: now(&self.rank) - fork,
                    };
                    if let Some(of_round) = team.stamps.borrow_mut().partitions.last_mut() {
                        of_round[number as usize] = interval;
                    }
                }
            }
            self.join();
        }
        Ok(())
    }

    /// Acknowledges the partition as soon as it has arrived.
    async fn receive(&self, case: &Case, ends: &Receiving) -> Result<()> {
        for (round, phase) in case.phases() {
            self.fork(round).await;
            if phase == Phase::Partitions {
                let is_there = || Ok(ends.data.arrived(self.number)?.then_some(()));
                self.rank.until(is_there).await?;
                ends.reverse.ready(self.number)?;
            }
            self.join();
        }
        Ok(())
    }
}

fn now(rank: &SimRank) -> u64 {
    rank.actor().now().as_nanos()
}

/// Has the threads of a rank begin a round, and waits until all have ended theirs.
async fn fork_join(rank: &SimRank, case: &Case, team: &Team, round: u64) {
    team.last.set(0);
    team.fork.set(now(rank));
    team.begun.set(round);
    rank.actor().wake();
    while team.ended.get() < round * u64::from(case.partitions) {
        rank.actor().next().await;
    }
}

/// What the first thread of the rank does that sends.
async fn lead_sender(rank: &SimRank, case: &Case, team: &Team, ends: &Sending) -> Result<()> {
    for (round, phase) in case.phases() {
        if phase == Phase::Partitions {
            let none = vec![Interval::default(); case.partitions as usize];
            team.stamps.borrow_mut().partitions.push(none);
        }
        rank.barrier().await?;
        if phase != Phase::Message {
            ends.data.start()?;
        }
        if phase == Phase::Partitions {
            ends.reverse.start()?;
        }
        let fork = now(rank);
        fork_join(rank, case, team, round).await;
        let join = now(rank);
        match phase {
            Phase::Message => {
                let bytes = vec![0; case.bytes];
                let sent = rank.isend(1, tag(MESSAGE), bytes)?;
                let answer = rank.irecv(1, tag(ACKNOWLEDGEMENT), 1)?;
                rank.wait(sent).await?;
                rank.wait(answer).await?;
                team.stamps.borrow_mut().messages.push(Single {
                    fork_join: join - fork,
                    message: now(rank) - join,
                });
            }
            Phase::Partitions => {
                rank.until(|| Ok(ends.data.test()?.then_some(()))).await?;
                rank.until(|| Ok(ends.reverse.test()?.then_some(())))
                    .await?;
            }
            Phase::Perceived => {
                let answer = rank.irecv(1, tag(ACKNOWLEDGEMENT), 1)?;
                rank.until(|| Ok(ends.data.test()?.then_some(()))).await?;
                rank.wait(answer).await?;
                let took = now(rank).saturating_sub(team.last.get()).max(1);
                team.stamps.borrow_mut().last.push(took);
            }
        }
    }
    team.stamps.borrow_mut().way = ends.data.describe().unwrap_or_default();
    end(rank).await
}

/// The same of the rank that receives.
async fn lead_receiver(rank: &SimRank, case: &Case, team: &Team, ends: &Receiving) -> Result<()> {
    for (round, phase) in case.phases() {
        let message = match phase {
            Phase::Message => Some(rank.irecv(0, tag(MESSAGE), case.bytes)?),
            _ => None,
        };
        rank.barrier().await?;
        if phase != Phase::Message {
            ends.data.start()?;
        }
        if phase == Phase::Partitions {
            ends.reverse.start()?;
        }
        fork_join(rank, case, team, round).await;
        match message {
            Some(message) => drop(rank.wait(message).await?),
            None => rank.until(|| Ok(ends.data.test()?.then_some(()))).await?,
        }
        if phase == Phase::Partitions {
            rank.until(|| Ok(ends.reverse.test()?.then_some(())))
                .await?;
        } else {
            let answer = rank.isend(0, tag(ACKNOWLEDGEMENT), vec![0])?;
            rank.wait(answer).await?;
        }
    }
    end(rank).await
}

/// Both ranks have ended their rounds.
async fn end(rank: &SimRank) -> Result<()> {
    rank.barrier().await?;
    rank.close()
}
