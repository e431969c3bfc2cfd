//! How the transport partitions of a channel come, once its ends are matched.

use std::ops::Range;
use std::sync::Arc;

use tagwire_base::sync::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use tagwire_base::{ContextId, Rank, TagSelector};
use tagwire_transport::{Buffering, RecvBuffer, RecvChannel};

use super::plan::Plan;
use super::wire::{Room, message_tag};
use crate::error::{Error, Result};
use crate::layer::Layer;
use crate::types::{Failure, RequestId};

/// What matching gave.
#[derive(Debug)]
pub(super) struct Matched {
    pub plan: Plan,
    pub way: Carrier,
}

/// How transport partitions come.
#[derive(Debug)]
pub(super) enum Carrier {
    /// By the transport's own means.
    Channel(Arc<dyn RecvChannel>),
    /// Each as a message.
    Messages(Messages),
}

/// A persistent receive for each transport partition, in each room of the buffer.
#[derive(Debug)]
pub(super) struct Messages {
    pub requests: Box<[RequestId]>,
    /// How many bytes each has.
    pub lengths: Box<[usize]>,
    /// The round in which each was last complete.
    pub landed: Box<[AtomicU64]>,
    pub buffering: Buffering,
    /// The last round whose receives were started.
    pub started: AtomicU64,
}

impl Matched {
    pub(super) const fn new(plan: Plan, way: Carrier) -> Self {
        Self { plan, way }
    }

    /// Closes a channel to which no sender comes.
    pub(super) fn close(&self) {
        if let Carrier::Channel(channel) = &self.way {
            channel.close();
        }
    }

    pub(super) fn is_driven(&self) -> bool {
        matches!(&self.way, Carrier::Channel(channel) if channel.is_driven())
    }
}

impl Carrier {
    /// Receives for all of `plan`, from the rank, in the context and under the tags of `source`.
    #[allow(unsafe_code, reason = "parts of a buffer are lent that is lent itself")]
    pub(super) fn messages(
        layer: &mut Layer,
        plan: &Plan,
        room: Room,
        source: (Rank, ContextId, u32),
    ) -> Result<Self> {
        let (from, context, first_tag) = source;
        let Room {
            region, buffering, ..
        } = room;
        let units = plan.transport();
        let mut make = |place: u32| {
            let (base, t) = ((place / units) as usize * room.bytes(), place % units);
            let range = plan.bytes_of(t);
            let part = region.slice(base + range.start..base + range.end);
            let part = part.ok_or_else(|| Error::BadPartitions {
                count: units,
                bytes: room.bytes(),
            })?;
            let tag = TagSelector::exact(message_tag(first_tag.wrapping_add(1 + t)));
            // SAFETY: the buffer is lent in rounds until the end is settled, and before that the requests are
            // freed. The parts of a room do not overlap.
            let part = unsafe { RecvBuffer::of(part) };
            layer.recv_init(part, from.into(), tag, context)
        };
        let places = 0..units * buffering.rooms() as u32;
        Ok(Self::Messages(Messages {
            requests: places.clone().map(&mut make).collect::<Result<_>>()?,
            lengths: (0..units).map(|t| plan.bytes_of(t).len()).collect(),
            landed: places.map(|_| AtomicU64::new(0)).collect(),
            buffering,
            started: AtomicU64::new(0),
        }))
    }
}

impl Messages {
    /// The places of what comes in `epoch`.
    pub(super) fn places(&self, epoch: u64) -> Range<usize> {
        let units = self.lengths.len();
        let first = self.buffering.room(epoch) * units;
        first..first + units
    }

    /// Whether a transport partition of `epoch` has come.
    pub(super) fn has_landed(&self, epoch: u64, partition: u32) -> bool {
        let first = self.places(epoch).start;
        self.landed[first + partition as usize].load(Acquire) == epoch
    }

    /// Starts the receives of all rounds that may be sent now that `epoch` has begun, in their order.
    pub(super) fn start(&self, layer: &mut Layer, epoch: u64) -> Result<()> {
        for round in self.started.load(Relaxed) + 1..=self.buffering.credit(epoch) {
            let mut requests = self.requests[self.places(round)].iter();
            requests.try_for_each(|request| layer.start(*request))?;
            self.started.store(round, Relaxed);
        }
        Ok(())
    }

    /// Takes the ends of those that are complete. Returns whether all are.
    pub(super) fn advance(&self, layer: &mut Layer, epoch: u64) -> Result<bool> {
        let mut all = true;
        let places = self.places(epoch);
        let parts = self.requests[places.clone()].iter();
        let parts = parts.zip(&self.landed[places]).zip(&self.lengths);
        for ((request, landed), length) in parts {
            if landed.load(Relaxed) == epoch {
                continue;
            }
            match layer.take(*request)? {
                Some(status) => {
                    let status = status.ok()?;
                    if status.length != *length {
                        return Err(Error::Failed(Failure::Protocol(status.source)));
                    }
                    landed.store(epoch, Release);
                }
                None => all = false,
            }
        }
        Ok(all)
    }
}
