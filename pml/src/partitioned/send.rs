//! The sending end.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use tagwire_base::{Rank, Tag};
use tagwire_transport::SendBuffer;

use super::ends::SendingEnd;
use super::policy::Policy;
use super::sending::Sending;
use crate::error::Result;
use crate::layer::Layer;
use crate::messenger::Messenger;
use crate::types::ContextPair;

/// The sending end of a partitioned operation (`MPI_Psend_init`): one buffer, sent again and again, each
/// partition as soon as it is ready.
///
/// [`start`](PartitionedSend::start) and the calls that wait are for one thread at a time; the ready calls
/// are for any thread at any time within a round, whatever the rank's thread level: they take no lock, and
/// what they cannot post at once is posted by the next that tests or waits.
#[derive(Debug)]
pub struct PartitionedSend(Arc<Sending>);

impl PartitionedSend {
    /// Begins to match a send of `data` in `partitions` equal partitions with the receive that rank `to`
    /// makes under `tag` in `context`.
    ///
    /// The buffer stays lent while a round is under way, each partition from its ready call on: until then
    /// its bytes may be written. After a round that failed it stays lent until
    /// [`is_settled`](PartitionedSend::is_settled).
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

    /// How many partitions the buffer has on this side.
    #[must_use]
    pub fn partitions(&self) -> u32 {
        self.0.partitions()
    }

    /// How many transport partitions there are.
    #[must_use]
    pub fn transport_partitions(&self) -> u32 {
        self.0.transport_partitions()
    }

    /// Begins a round: partitions may become ready (MPI-5.0, section 4.2.1).
    ///
    /// # Errors
    /// When one is under way, or the operation has failed or was freed.
    pub fn start(&self) -> Result<()> {
        self.0.start()
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

    /// Ends the round if the buffer is the caller's again.
    ///
    /// # Errors
    /// When the receiver is gone: the operation is over.
    pub fn test(&self) -> Result<bool> {
        self.0.test()
    }

    /// Waits until all partitions were ready and the buffer is the caller's again, and ends the round.
    /// At once where none is under way.
    ///
    /// # Errors
    /// As [`test`](PartitionedSend::test); [`Error::TimedOut`](crate::Error::TimedOut), and the round goes on.
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
    /// [`Error::BadRound`](crate::Error::BadRound) while a round is under way.
    pub fn free(&self) -> Result<()> {
        self.0.free()
    }

    /// Whether a round has failed: the operation is over, and the peer may be at the buffer until this
    /// [is settled](PartitionedSend::is_settled).
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.0.has_failed()
    }

    /// Whether a round is under way.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.0.is_active()
    }

    /// Whether `partition` was ready in the round that is under way.
    #[must_use]
    pub fn is_ready(&self, partition: u32) -> bool {
        self.0.is_ready(partition)
    }

    /// Whether nobody can touch the buffer any more, now that the operation is freed, or dropped: ask
    /// again where not, on a thread that may call the rank. Another does not find out.
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

impl Drop for PartitionedSend {
    fn drop(&mut self) {
        self.0.abandon();
    }
}
