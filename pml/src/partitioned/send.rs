//! The sending end.

use std::ops::Range;
use std::sync::Arc;

use tagwire_base::{Rank, Tag};
use tagwire_transport::SendBuffer;

use super::ends::SendingEnd;
use super::policy::Policy;
use super::sending::Sending;
use super::side::Handle;
use crate::error::Result;
use crate::messenger::Messenger;
use crate::types::ContextPair;

/// The sending end of a partitioned operation (`MPI_Psend_init`): one buffer, sent again and again, each
/// partition as soon as it is ready.
///
/// [`start`](Handle::start) and the calls that wait are for one thread at a time; the ready calls
/// are for any thread at any time within a round, whatever the rank's thread level: they take no lock, and
/// what they cannot post at once is posted by the next that tests or waits.
pub type PartitionedSend = Handle<Sending>;

impl Handle<Sending> {
    /// Begins to match a send of `data` in `partitions` equal partitions with the receive that rank `to`
    /// makes under `tag` in `context`.
    ///
    /// The buffer stays lent while a round is under way, each partition from its ready call on: until then
    /// its bytes may be written. After a round that failed it stays lent until
    /// [`is_settled`](Handle::is_settled).
    ///
    /// # Errors
    /// When the rank does not exist, the buffer is not contiguous, or cannot have so many partitions.
    pub fn init(
        messenger: &Arc<Messenger>,
        data: &SendBuffer,
        partitions: u32,
        to: Rank,
        tag: Tag,
        context: impl Into<ContextPair>,
        policy: Policy,
    ) -> Result<Self> {
        let place = (to, tag, context.into());
        let sending = Arc::new(Sending::init(messenger, data, partitions, place, policy)?);
        let end: Arc<dyn SendingEnd> = Arc::<Sending>::clone(&sending);
        messenger.partitioned.attend_to(&end);
        Ok(Self(sending))
    }

    /// How many transport partitions there are.
    #[must_use]
    pub fn transport_partitions(&self) -> u32 {
        self.0.transport_partitions()
    }

    /// Partition `partition` is ready: its bytes stay as they are from now on, and travel
    /// (MPI-5.0, section 4.2.1).
    ///
    /// # Errors
    /// When no round is under way, there is no such partition, or it was ready before in this round.
    #[inline]
    pub fn ready(&self, partition: u32) -> Result<()> {
        self.0.ready(partition)
    }

    /// All of `partitions` are ready (MPI-5.0, section 4.2.1).
    ///
    /// # Errors
    /// As [`ready`](PartitionedSend::ready); those before the one that is wrong are ready.
    pub fn ready_range(&self, partitions: Range<u32>) -> Result<()> {
        self.0.ready_each(partitions)
    }

    /// All in `partitions` are ready (MPI-5.0, section 4.2.1).
    ///
    /// # Errors
    /// As [`ready_range`](PartitionedSend::ready_range).
    pub fn ready_list(&self, partitions: &[u32]) -> Result<()> {
        self.0.ready_each(partitions.iter().copied())
    }

    /// Whether `partition` was ready in the round that is under way.
    #[must_use]
    pub fn is_ready(&self, partition: u32) -> bool {
        self.0.is_ready(partition)
    }
}
