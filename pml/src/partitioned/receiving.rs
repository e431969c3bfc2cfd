//! What a receiving end consists of: shared between the handle, and the rank, which matches it.

use std::sync::{Arc, OnceLock};

use tagwire_base::sync::{AtomicBool, AtomicU32, AtomicU64, Ordering::AcqRel, Ordering::Acquire};
use tagwire_base::sync::{Ordering::Relaxed, Ordering::Release};
use tagwire_base::{Rank, SourceSelector};
use tagwire_transport::Buffering;

use super::closing::close;
use super::ends::ReceivingEnd;
use super::matched::{Carrier, Matched, Messages};
use super::round::{Rhythm, Round};
use super::side::Side;
use super::wire::{GIVEN_UP, again};
use crate::error::{Error, Result};
use crate::layer::Layer;
use crate::messenger::Messenger;

/// After how many looks in vain a thread moves the rank's other traffic on.
const LOOKS: u32 = 64;

/// A receiving end.
#[derive(Debug)]
pub struct Receiving {
    messenger: Arc<Messenger>,
    from: Rank,
    buffering: Buffering,
    round: Round,
    /// What matching gave.
    slot: OnceLock<Result<Matched>>,
    /// Matching has begun. Where a panic leaves the slot empty all the same, a channel may be open.
    opening: AtomicBool,
    /// The round that the way has been told of.
    begun: AtomicU64,
    /// The round in which each user partition was last found complete.
    arrived: Box<[AtomicU64]>,
    looks: AtomicU32,
    /// When to look whether the sender has gone.
    ends: Rhythm,
}

impl Receiving {
    /// An end with so many partitions, not matched yet.
    pub(super) fn new(
        messenger: &Arc<Messenger>,
        partitions: u32,
        from: Rank,
        buffering: Buffering,
    ) -> Self {
        Self {
            messenger: Arc::clone(messenger),
            from,
            buffering,
            round: Round::new(),
            slot: OnceLock::new(),
            opening: AtomicBool::new(false),
            begun: AtomicU64::new(0),
            arrived: (0..partitions).map(|_| AtomicU64::new(0)).collect(),
            looks: AtomicU32::new(0),
            ends: Rhythm::default(),
        }
    }

    /// Which room of the buffer the round that is under way uses, or the last one did.
    pub(super) fn room(&self) -> usize {
        match self.round.last() {
            0 => 0,
            epoch => self.buffering.room(epoch),
        }
    }

    /// Lets the sender know of the round that has begun, where that takes the rank's progress.
    fn tell(&self, matched: &Matched) {
        if matched.is_driven() {
            self.messenger.nudge();
        }
    }

    /// Whether partition `partition` has arrived. Looks, and where it has not, makes progress. Any
    /// thread may ask. Between rounds everything has arrived.
    ///
    /// # Errors
    /// When there is no such partition, and when it cannot arrive any more.
    #[inline]
    pub(super) fn arrived(&self, partition: u32) -> Result<bool> {
        let Some(word) = self.arrived.get(partition as usize) else {
            return Err(Error::BadPartition {
                partition,
                what: "is out of range",
            });
        };
        let Some(epoch) = self.round.under_way()? else {
            return Ok(true);
        };
        if word.load(Acquire) == epoch {
            return Ok(true);
        }
        self.look(epoch, partition)
    }

    /// The same for what has not been found yet.
    fn look(&self, epoch: u64, partition: u32) -> Result<bool> {
        let is_channel = |matched: &Matched| matches!(matched.way, Carrier::Channel(_));
        let looks = self.looks.load(Relaxed).wrapping_add(1);
        self.looks.store(looks, Relaxed);
        match self.slot.get() {
            Some(Ok(matched)) if is_channel(matched) => {
                if self.has_landed(matched, epoch, partition)? {
                    return Ok(true);
                }
                if looks.is_multiple_of(LOOKS) {
                    return self.look_around(epoch, partition);
                }
                Ok(false)
            }
            _ => self.look_around(epoch, partition),
        }
    }

    /// Moves the rank's other traffic on, on the part of a thread that only looks, and looks again. Where
    /// the transport has channels, one that may not, or finds another at it, is none the worse.
    fn look_around(&self, epoch: u64, partition: u32) -> Result<bool> {
        let around = self.messenger.try_call(|layer| {
            layer.progress();
            self.messenger.partitioned.drive(layer);
            if self.round.active() != Some(epoch) || self.advance(layer, epoch)? {
                return Ok(());
            }
            if self.ends_itself(epoch) {
                return Ok(());
            }
            let gone = layer.receive_can_happen(SourceSelector::from(self.from));
            if gone.is_err() {
                // What it sent before its end counts.
                self.advance(layer, epoch)?;
            }
            gone
        });
        let Some(Ok(matched)) = self.slot.get() else {
            return around.unwrap_or(Ok(())).map(|()| false);
        };
        if self.has_landed(matched, epoch, partition)? {
            return Ok(true);
        }
        match (around, &matched.way) {
            (None, Carrier::Messages(_)) => self.messenger.progress().map(|_| false),
            (around, _) => around.unwrap_or(Ok(())).map(|()| false),
        }
    }

    /// Whether all that a partition needs is here.
    fn has_landed(&self, matched: &Matched, epoch: u64, partition: u32) -> Result<bool> {
        let mut needed = matched.plan.transports_for(partition);
        let here = match &matched.way {
            Carrier::Channel(channel) => {
                self.begin(matched, epoch, None)?;
                needed.all(|t| channel.has_landed(epoch, t))
            }
            Carrier::Messages(messages) => needed.all(|t| messages.has_landed(epoch, t)),
        };
        if here {
            self.arrived[partition as usize].store(epoch, Release);
        }
        Ok(here)
    }

    /// Whether receives are under way for all that is to come. They end with their peer, once what
    /// it sent before is in: that it is gone says nothing about messages that are still moving.
    fn ends_itself(&self, epoch: u64) -> bool {
        let slot = self.slot.get();
        let matched = slot.and_then(|slot| slot.as_ref().ok());
        matched.is_some_and(|matched| matches!(matched.way, Carrier::Messages(_)))
            && self.begun.load(Acquire) == epoch
    }

    /// Takes in what has come. Returns whether that is everything.
    fn advance(&self, layer: &mut Layer, epoch: u64) -> Result<bool> {
        match self.settle(layer)? {
            None => Ok(false),
            Some(matched) => match &matched.way {
                Carrier::Channel(channel) => {
                    if channel.advance(epoch) {
                        return Ok(true);
                    }
                    // What came before the end counts.
                    let over = self.ends.is_time() && channel.is_over(epoch);
                    match over && !channel.advance(epoch) {
                        true => Err(GIVEN_UP),
                        false => Ok(false),
                    }
                }
                Carrier::Messages(messages) => messages.advance(layer, epoch),
            },
        }
    }

    /// What matching has given, with the round begun.
    fn settle(&self, layer: &mut Layer) -> Result<Option<&Matched>> {
        if self.slot.get().is_none() {
            self.messenger.partitioned.settle(layer);
        }
        match self.slot.get() {
            None => Ok(None),
            Some(Err(error)) => Err(again(error)),
            Some(Ok(matched)) => {
                if let Some(epoch) = self.round.active()
                    && self.begun.load(Acquire) != epoch
                {
                    self.begin(matched, epoch, Some(&mut *layer))?;
                    if matched.is_driven() {
                        layer.progress();
                    }
                }
                Ok(Some(matched))
            }
        }
    }

    /// Tells the way of the round. Several threads may tell a channel at once, and one of them late, since a
    /// channel does not go back; messages are started by the one that has the layer.
    #[inline]
    fn begin(&self, matched: &Matched, epoch: u64, layer: Option<&mut Layer>) -> Result<()> {
        if self.begun.load(Acquire) >= epoch {
            return Ok(());
        }
        match (&matched.way, layer) {
            (Carrier::Channel(channel), _) => channel.start(epoch),
            (Carrier::Messages(messages), Some(layer)) => messages.start(layer, epoch)?,
            (Carrier::Messages(_), None) => return Ok(()),
        }
        self.begun.fetch_max(epoch, AcqRel);
        Ok(())
    }

    /// Frees the requests; returns whether that was possible.
    fn free_messages(&self, messages: &Messages) -> bool {
        let freed = self.messenger.call(|layer| {
            for request in &messages.requests {
                let _ = layer.cancel(*request);
                let _ = layer.take(*request);
                match layer.free(*request) {
                    Ok(()) | Err(Error::StaleRequest) => {}
                    Err(error) => return Err(error),
                }
            }
            Ok(())
        });
        freed.is_ok()
    }
}

/// The round that waits for the match begins with it.
impl ReceivingEnd for Receiving {
    fn opens(&self) {
        self.opening.store(true, Release);
    }

    fn matched(&self, layer: &mut Layer, outcome: Result<Matched>) {
        let _ = self.slot.set(outcome);
        // What goes wrong is told to whoever waits.
        let _ = self.settle(layer);
    }
}

impl Side for Receiving {
    fn messenger(&self) -> &Arc<Messenger> {
        &self.messenger
    }

    fn peer(&self) -> Rank {
        self.from
    }

    fn round(&self) -> &Round {
        &self.round
    }

    fn partitions(&self) -> u32 {
        self.arrived.len() as u32
    }

    fn start(&self) -> Result<()> {
        let epoch = self.round.start()?;
        if let Some(Ok(matched)) = self.slot.get()
            && let Carrier::Channel(_) = &matched.way
        {
            self.begin(matched, epoch, None)?;
            self.tell(matched);
            return Ok(());
        }
        self.messenger
            .call(|layer| self.settle(layer).map(|_| ()))
            .inspect_err(|_| self.round.fail())
    }

    fn move_on(&self, layer: &mut Layer, epoch: u64) -> Result<bool> {
        let all = self.advance(layer, epoch)?;
        if all || self.ends_itself(epoch) {
            return Ok(all);
        }
        match layer.receive_can_happen(SourceSelector::from(self.from)) {
            Ok(()) => Ok(false),
            // What it sent before its end counts.
            Err(error) => match self.advance(layer, epoch) {
                Ok(true) => Ok(true),
                _ => Err(error),
            },
        }
    }

    fn is_settled(&self) -> bool {
        // From here on no sender is matched. One that just is, is waited for.
        self.messenger.partitioned.forget(self);
        match self.slot.get() {
            Some(Ok(matched)) => match &matched.way {
                Carrier::Channel(channel) => {
                    close(&self.messenger, channel.is_driven(), || channel.close())
                }
                Carrier::Messages(messages) => self.free_messages(messages),
            },
            Some(Err(_)) => true,
            None => !self.opening.load(Acquire),
        }
    }

    fn describe(&self) -> Option<String> {
        match self.slot.get() {
            Some(Ok(matched)) => Some(match &matched.way {
                Carrier::Channel(channel) => channel.describe(),
                Carrier::Messages(messages) => {
                    format!(
                        "a message for each of {} partitions",
                        messages.requests.len()
                    )
                }
            }),
            _ => None,
        }
    }
}
