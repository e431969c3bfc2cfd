//! The receiving end.

use std::sync::Arc;
use std::time::Duration;

use tagwire_base::{Rank, Tag};
use tagwire_transport::{Buffering, RecvBuffer};

use super::plan::check_count;
use super::receiving::Receiving;
use super::wire::Room;
use crate::error::{Error, Result};
use crate::layer::Layer;
use crate::messenger::Messenger;
use crate::types::ContextPair;

/// The receiving end of a partitioned operation (`MPI_Precv_init`): one buffer, filled again and again, of
/// which each partition can be asked for.
///
/// [`start`](PartitionedRecv::start) and the calls that wait are for one thread at a time;
/// [`arrived`](PartitionedRecv::arrived) is for any thread at any time, whatever the rank's thread level
/// where the transport has channels.
#[derive(Debug)]
pub struct PartitionedRecv(Arc<Receiving>);

impl PartitionedRecv {
    /// Begins to match a receive of `data` in `partitions` equal partitions with the send that rank `from`
    /// makes under `tag` in `context`: the first of its sends with the first of the receives.
    ///
    /// The buffer stays lent while a round is under way, and after one that failed until
    /// [`is_settled`](PartitionedRecv::is_settled).
    ///
    /// # Errors
    /// When the rank does not exist, the buffer is not contiguous, or cannot have so many partitions.
    pub fn init(
        messenger: &Arc<Messenger>,
        data: &RecvBuffer,
        partitions: u32,
        from: Rank,
        tag: Tag,
        context: impl Into<ContextPair>,
    ) -> Result<Self> {
        let place = (from, tag, context.into());
        Self::make(messenger, data, partitions, Buffering::Single, place)
    }

    /// The same with room for two rounds: `data` has twice the bytes of one, and rounds use its halves by
    /// turns, the first round the first ([`room`](PartitionedRecv::room)). A round's start then lets
    /// the sender write the next round too, whose bytes may come before it is started here: the sender does
    /// not wait for that. What a round has brought stays until the next is started, as ever.
    ///
    /// # Errors
    /// As [`init`](PartitionedRecv::init); when the bytes are not even in number.
    pub fn init_double(
        messenger: &Arc<Messenger>,
        data: &RecvBuffer,
        partitions: u32,
        from: Rank,
        tag: Tag,
        context: impl Into<ContextPair>,
    ) -> Result<Self> {
        let place = (from, tag, context.into());
        Self::make(messenger, data, partitions, Buffering::Double, place)
    }

    fn make(
        messenger: &Arc<Messenger>,
        data: &RecvBuffer,
        partitions: u32,
        buffering: Buffering,
        place: (Rank, Tag, ContextPair),
    ) -> Result<Self> {
        let (from, tag, context) = place;
        let region = data
            .region()
            .ok_or(Error::BadRound("needs a contiguous buffer"))?;
        let room = Room {
            partitions,
            region,
            buffering,
        };
        if !region.len().is_multiple_of(buffering.rooms()) {
            return Err(Error::BadRound("needs a buffer of two halves"));
        }
        check_count(partitions, room.bytes())?;
        let receiving = Arc::new(Receiving::new(messenger, partitions, from, buffering));
        let entry = Arc::clone(&receiving);
        messenger.call(|layer| {
            if from.as_u32() >= layer.size() {
                let size = layer.size();
                return Err(Error::NoSuchRank { rank: from, size });
            }
            let registry = &messenger.partitioned;
            registry.enter(layer, from, context, (tag, room), entry);
            Ok(())
        })?;
        Ok(Self(receiving))
    }

    /// How many partitions the buffer has on this side.
    #[must_use]
    pub fn partitions(&self) -> u32 {
        self.0.partitions()
    }

    /// Which half of a buffer for two rounds the round that is under way uses, or the last one did; 0
    /// before the first, and where the buffer has room for one.
    #[must_use]
    pub fn room(&self) -> usize {
        self.0.room()
    }

    /// Begins a round: the buffer may be written (MPI-5.0, section 4.2.1).
    ///
    /// # Errors
    /// When one is under way, or the operation has failed or was freed.
    pub fn start(&self) -> Result<()> {
        self.0.start()
    }

    /// Whether partition `partition` has arrived. Looks, and where it has not, makes progress. Any
    /// thread may ask. Between rounds everything has arrived (MPI-5.0, section 4.2.2).
    ///
    /// # Errors
    /// When there is no such partition, and when it cannot arrive any more.
    #[inline]
    pub fn arrived(&self, partition: u32) -> Result<bool> {
        self.0.arrived(partition)
    }

    /// Ends the round if everything has arrived.
    ///
    /// # Errors
    /// When it cannot arrive any more: the operation is over.
    pub fn test(&self) -> Result<bool> {
        self.0.test()
    }

    /// Waits until everything has arrived, and ends the round. At once where none is under way.
    ///
    /// # Errors
    /// As [`test`](PartitionedRecv::test); [`Error::TimedOut`], and the round goes on.
    pub fn wait(&self, timeout: Option<Duration>) -> Result<()> {
        self.0.wait(timeout)
    }

    pub(super) fn messenger(&self) -> &Arc<Messenger> {
        self.0.messenger()
    }

    /// Moves the round on, and ends it where everything is over.
    pub(super) fn poll(&self, layer: &mut Layer) -> Result<Option<()>> {
        self.0.poll(layer)
    }

    /// Ends the operation.
    ///
    /// # Errors
    /// [`Error::BadRound`] while a round is under way.
    pub fn free(&self) -> Result<()> {
        self.0.free()
    }

    /// Whether a round has failed: the operation is over, and the peer may be at the buffer until this
    /// [is settled](PartitionedRecv::is_settled).
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.0.has_failed()
    }

    /// Whether a round is under way.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.0.is_active()
    }

    /// Whether nobody can touch the buffer any more, now that the operation is freed, or dropped: ask
    /// again where not.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.0.is_settled()
    }

    /// Tells whether nobody can touch the buffer any more, also once the operation is dropped.
    pub fn ending(&self) -> impl Fn() -> bool + Send + Sync + use<> {
        let end = Arc::clone(&self.0);
        move || end.is_settled()
    }

    /// Which way the partitions take, and why; `None` before the two ends are matched.
    #[must_use]
    pub fn describe(&self) -> Option<String> {
        self.0.describe()
    }
}

impl Drop for PartitionedRecv {
    fn drop(&mut self) {
        self.0.abandon();
    }
}
