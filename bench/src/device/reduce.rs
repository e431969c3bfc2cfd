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
use std::sync::mpsc::{Receiver, TryRecvError};

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
        let (groups, vectors, mine) = (self.groups, self.vectors, self.mine());
        let (mut trace, starter) = (Trace::default(), self.starter());
        let mut under_way: Vec<(usize, Box<dyn Started + 'p>)> = Vec::new();
        let mut lane: Option<Box<dyn Started + 'p>> = None;
        let (mut left, mut next, mut is_done) = (self.filled().count(), 0, false);
        while left > 0 || lane.is_some() || !is_done {
            let is_idle = under_way.is_empty() && lane.is_none();
            let mut has_moved = false;
            if let Some(event) = look(events, is_idle && !is_done)? {
                has_moved = true;
                let (part, started) = match event {
                    Event::Copied(part) => {
                        let at = now();
                        (Some((part, at)), Some(starter.start(part)?))
                    }
                    Event::Started(part, at, started) => (Some((part, at)), Some(started)),
                    Event::Done(spent) => {
                        (trace.spent, is_done) = (spent, true);
                        (None, None)
                    }
                    Event::Failed(error) => return Err(error),
                };
                if let (Some((part, at)), Some(started)) = (part, started) {
                    // All members start reductions in the same order.
                    if part < next {
                        return Err(Error::Peer(format!(
                            "the device finished partition {part} after partition {}",
                            next - 1
                        )));
                    }
                    trace.start = if next == 0 { at } else { trace.start };
                    next = part + 1;
                    under_way.push((part, started));
                }
            }
            let mut place = 0;
            while place < under_way.len() {
                let (part, started) = &mut under_way[place];
                if !started.test()? {
                    place += 1;
                    continue;
                }
                (has_moved, left) = (true, left - 1);
                if *part == groups.me {
                    let partial = vectors.partial.outgoing(0..mine);
                    let block = vectors.block.incoming(0..mine);
                    lane = Some(groups.lane.start_allreduce(partial, block)?);
                }
                under_way.swap_remove(place);
            }
            if let Some(started) = &mut lane
                && started.test()?
            {
                (has_moved, lane) = (true, None);
            }
            if !has_moved {
                std::thread::yield_now();
            }
        }
        self.gather()?;
        trace.end = now();
        Ok(trace)
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

/// Waits until the device has done all.
pub(super) fn produced(events: &Receiver<Event<'_>>) -> Result<Trace> {
    loop {
        match look(events, true)? {
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

/// Returns the next event, if there is one; with `waits`, once there is.
fn look<'p>(events: &Receiver<Event<'p>>, waits: bool) -> Result<Option<Event<'p>>> {
    let gone = || Error::Peer("the thread of the device has ended".to_owned());
    match waits {
        true => events.recv().map(Some).map_err(|_| gone()),
        false => match events.try_recv() {
            Ok(event) => Ok(Some(event)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(gone()),
        },
    }
}
