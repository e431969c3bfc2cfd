//! The ways in which a vector that comes from a device is reduced over all ranks.
//!
//! ```text
//!     group of 2:    rank 0   rank 1      group of 2:    rank 2   rank 3
//!                      |        |                          |        |
//!     lane 0:        rank 0 ------------------------------ rank 2
//!     lane 1:                 rank 1 ------------------------------ rank 3
//! ```
//!
//! A group has neighbouring ranks, and a lane those with the same number in all groups. A vector has as many partitions as a group
//! has members; partition k is summed over the group at its member k, and over lane k from there.

use std::ops::Range;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::Duration;

use super::engine::Spent;
use super::parts::parts;
use crate::body::partitioned::now;
use crate::buffer::{Incoming, Memory, Outgoing};
use crate::error::{Error, Result};
use crate::port::group::{Group, Started};

/// What the thread that waits learns of its device, in this order.
pub(super) enum Event<'p> {
    /// A part was copied.
    Copied(usize),
    /// A part was copied, and the device's thread has started its reduction at this time.
    Started(usize, u64, Box<dyn Started + 'p>),
    /// All was done.
    Done(Spent),
    /// The device's thread could not start a reduction.
    Failed(Error),
}

/// The groups of a rank.
pub(super) struct Groups<'p> {
    pub world: Box<dyn Group + 'p>,
    pub group: Box<dyn Group + 'p>,
    pub lane: Box<dyn Group + 'p>,
    /// How many members its group has, and which one it is.
    pub size: usize,
    pub me: usize,
}

/// The vectors of a rank, on its host.
pub(super) struct Vectors {
    /// What has come from the device.
    pub own: Memory,
    /// This rank's partition, summed over its group.
    partial: Memory,
    /// The same, summed over all.
    block: Memory,
    /// What all get.
    pub result: Memory,
}

impl Vectors {
    /// For vectors of these lengths in groups of `size`.
    pub(super) fn new(lengths: &[usize], size: usize) -> Result<Self> {
        let longest = |bytes: &usize| parts(*bytes, size).iter().map(Range::len).max();
        let block = lengths.iter().filter_map(longest).max().unwrap_or(0);
        let largest = lengths.iter().copied().max().unwrap_or(0);
        Ok(Self {
            own: Memory::new(largest)?,
            partial: Memory::new(block)?,
            block: Memory::new(block)?,
            result: Memory::new(largest)?,
        })
    }
}

/// When a rank's reduction went on, in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Trace {
    /// It started, and it ended.
    pub start: u64,
    pub end: u64,
    pub spent: Spent,
}

impl Trace {
    /// How long the reduction took, and how much of that the device was at work.
    pub(super) const fn spans(&self) -> (u64, u64) {
        let whole = self.end.saturating_sub(self.start);
        let hidden = self.spent.ended.saturating_sub(self.start);
        (whole, if hidden < whole { hidden } else { whole })
    }
}

/// A rank's part in reductions of vectors of one length.
pub(super) struct Reduction<'p> {
    groups: &'p Groups<'p>,
    vectors: &'p Vectors,
    parts: Vec<Range<usize>>,
    lengths: Vec<usize>,
    bytes: usize,
}

impl<'p> Reduction<'p> {
    pub(super) fn new(groups: &'p Groups<'p>, vectors: &'p Vectors, bytes: usize) -> Self {
        let parts = parts(bytes, groups.size);
        Self {
            lengths: parts.iter().map(Range::len).collect(),
            groups,
            vectors,
            parts,
            bytes,
        }
    }

    /// The partitions that have elements, with their numbers.
    pub(super) fn filled(&self) -> impl Iterator<Item = (usize, Range<usize>)> {
        let all = self.parts.iter().cloned().enumerate();
        all.filter(|(_, part)| !part.is_empty())
    }

    /// The library's own allreduce, after the whole vector.
    pub(super) fn native(&self, events: &Receiver<Event<'_>>) -> Result<Trace> {
        let mut trace = produced(events)?;
        trace.start = now();
        let vectors = self.vectors;
        let (own, all) = (vectors.own.outgoing(0..self.bytes), 0..self.bytes);
        let world = &self.groups.world;
        world.allreduce(own, vectors.result.incoming(all))?;
        trace.end = now();
        Ok(trace)
    }

    /// By all lanes at once, after the whole vector (Träff and Hunold).
    pub(super) fn multilane(&self, events: &Receiver<Event<'_>>) -> Result<Trace> {
        let mut trace = produced(events)?;
        trace.start = now();
        let (groups, vectors) = (self.groups, self.vectors);
        let (own, mine) = (vectors.own.outgoing(0..self.bytes), self.mine());
        let partial = vectors.partial.incoming(0..mine);
        groups.group.reduce_scatter(own, &self.lengths, partial)?;
        if mine > 0 {
            let block = vectors.block.incoming(0..mine);
            groups.lane.allreduce(partial.outgoing(), block)?;
        }
        self.gather()?;
        trace.end = now();
        Ok(trace)
    }

    /// What starts the sums of partitions over the group.
    pub(super) fn starter(&self) -> Starter<'p> {
        let (groups, vectors) = (self.groups, self.vectors);
        let pieces = self.parts.iter().cloned().enumerate().map(|(part, range)| {
            // The others' room is not touched.
            let room = match part == groups.me {
                true => vectors.partial.incoming(0..range.len()),
                false => vectors.result.incoming(range.clone()),
            };
            (vectors.own.outgoing(range), room)
        });
        Starter {
            group: &*groups.group,
            pieces: pieces.collect(),
        }
    }

    /// Partition after partition, each as soon as it has come.
    pub(super) fn partitioned(&self, events: &Receiver<Event<'p>>) -> Result<Trace> {
        let mut going = UnderWay {
            reduction: self,
            starter: self.starter(),
            trace: Trace::default(),
            sums: Vec::new(),
            lane: None,
            next: 0,
        };
        let mut looks = 0_u32;
        let spent = loop {
            let is_idle = going.sums.is_empty() && going.lane.is_none();
            let patience = match looks {
                _ if is_idle => None,
                ..LOOKS => Some(Duration::ZERO),
                LOOKS.. => Some(PATIENCE),
            };
            match look(events, patience)? {
                Some(Event::Copied(part)) => {
                    let (at, started) = (now(), going.starter.start(part)?);
                    going.add(part, at, started)?;
                }
                Some(Event::Started(part, at, started)) => going.add(part, at, started)?,
                Some(Event::Done(spent)) => break spent,
                Some(Event::Failed(error)) => return Err(error),
                None => looks = looks.saturating_add(1),
            }
            if going.poll()? {
                looks = 0;
            }
        };
        going.wait()?;
        self.gather()?;
        Ok(Trace {
            end: now(),
            spent,
            ..going.trace
        })
    }

    /// Bytes of this rank's partition.
    fn mine(&self) -> usize {
        self.lengths[self.groups.me]
    }

    /// Puts the vector together from the members' partitions.
    fn gather(&self) -> Result<()> {
        let block = self.vectors.block.outgoing(0..self.mine());
        let result = self.vectors.result.incoming(0..self.bytes);
        self.groups.group.allgather(block, &self.lengths, result)
    }
}

/// Starts the sums of partitions over a group, on any thread.
pub(super) struct Starter<'p> {
    group: &'p dyn Group,
    /// What this rank gives of each, and where the sum goes.
    pieces: Vec<(Outgoing, Incoming)>,
}

impl<'p> Starter<'p> {
    pub(super) fn start(&self, part: usize) -> Result<Box<dyn Started + 'p>> {
        let (own, room) = self.pieces[part];
        self.group.start_reduce(own, room, part)
    }
}

/// The sums of partitions that are under way.
struct UnderWay<'r, 'p> {
    reduction: &'r Reduction<'p>,
    starter: Starter<'p>,
    trace: Trace,
    /// Over the group, each with its partition.
    sums: Vec<(usize, Box<dyn Started + 'p>)>,
    /// Of this rank's partition over its lane.
    lane: Option<Box<dyn Started + 'p>>,
    /// The partition that may come next, or one behind it.
    next: usize,
}

impl<'p> UnderWay<'_, 'p> {
    fn add(&mut self, part: usize, at: u64, started: Box<dyn Started + 'p>) -> Result<()> {
        // All members start reductions in the same order.
        if part < self.next {
            let last = self.next - 1;
            return Err(Error::Peer(format!(
                "the device finished partition {part} after partition {last}"
            )));
        }
        if self.sums.is_empty() && self.next == 0 {
            self.trace.start = at;
        }
        self.next = part + 1;
        self.sums.push((part, started));
        Ok(())
    }

    /// Tests each, and returns whether one has ended.
    fn poll(&mut self) -> Result<bool> {
        let (mut place, mut has_moved) = (0, false);
        while place < self.sums.len() {
            if !self.sums[place].1.test()? {
                place += 1;
                continue;
            }
            has_moved = true;
            let (part, _) = self.sums.swap_remove(place);
            self.ended(part)?;
        }
        if let Some(started) = &mut self.lane
            && started.test()?
        {
            (has_moved, self.lane) = (true, None);
        }
        Ok(has_moved)
    }

    /// Waits for all, for what others wait for first.
    fn wait(&mut self) -> Result<()> {
        let me = self.reduction.groups.me;
        self.sums.sort_by_key(|(part, _)| *part != me);
        for (part, mut started) in std::mem::take(&mut self.sums) {
            started.wait()?;
            self.ended(part)?;
        }
        self.lane
            .take()
            .map_or(Ok(()), |mut started| started.wait())
    }

    /// Starts what follows a sum over the group.
    fn ended(&mut self, part: usize) -> Result<()> {
        let (groups, vectors) = (self.reduction.groups, self.reduction.vectors);
        if part == groups.me {
            let mine = 0..self.reduction.mine();
            let (partial, block) = (
                vectors.partial.outgoing(mine.clone()),
                vectors.block.incoming(mine),
            );
            self.lane = Some(groups.lane.start_allreduce(partial, block)?);
        }
        Ok(())
    }
}

/// How often operations are tested before the thread sleeps between tests, and how long it sleeps at most: the device wakes it.
const LOOKS: u32 = 64;
const PATIENCE: Duration = Duration::from_micros(20);

/// Waits until the device has done all.
pub(super) fn produced(events: &Receiver<Event<'_>>) -> Result<Trace> {
    loop {
        match look(events, None)? {
            Some(Event::Done(spent)) => {
                return Ok(Trace {
                    spent,
                    ..Trace::default()
                });
            }
            Some(Event::Failed(error)) => return Err(error),
            _ => {}
        }
    }
}

/// Returns the next event, where there is one within that time; without a time, once there is.
fn look<'p>(events: &Receiver<Event<'p>>, patience: Option<Duration>) -> Result<Option<Event<'p>>> {
    let gone = || Error::Peer("the thread of the device has ended".to_owned());
    match patience {
        None => events.recv().map(Some).map_err(|_| gone()),
        Some(Duration::ZERO) => match events.try_recv() {
            Ok(event) => Ok(Some(event)),
            Err(TryRecvError::Empty) => {
                std::thread::yield_now();
                Ok(None)
            }
            Err(TryRecvError::Disconnected) => Err(gone()),
        },
        Some(time) => match events.recv_timeout(time) {
            Ok(event) => Ok(Some(event)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => Err(gone()),
        },
    }
}
