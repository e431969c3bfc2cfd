//! The receiving end.

use std::sync::Arc;

use tagwire_base::{Rank, Tag};
use tagwire_transport::{Buffering, RecvBuffer};

use super::plan::check_count;
use super::receiving::Receiving;
use super::side::Handle;
use super::wire::Room;
use crate::error::{Error, Result};
use crate::messenger::Messenger;
use crate::types::ContextPair;

/// The receiving end of a partitioned operation (`MPI_Precv_init`): one buffer, filled again and again, of
/// which each partition can be asked for.
///
/// [`start`](Handle::start) and the calls that wait are for one thread at a time;
/// [`arrived`](PartitionedRecv::arrived) is for any thread at any time, whatever the rank's thread level
/// where the transport has channels.
pub type PartitionedRecv = Handle<Receiving>;

impl Handle<Receiving> {
    /// Begins to match a receive of `data` in `partitions` equal partitions with the send that rank `from`
    /// makes under `tag` in `context`: the first of its sends with the first of the receives.
    ///
    /// The buffer stays lent while a round is under way, and after one that failed until
    /// [`is_settled`](Handle::is_settled).
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

    /// Which half of a buffer for two rounds the round that is under way uses, or the last one did; 0
    /// before the first, and where the buffer has room for one.
    #[must_use]
    pub fn room(&self) -> usize {
        self.0.room()
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
}
