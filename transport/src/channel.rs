//! The contract of partitioned channels: remote writes of transport partitions, by any thread, into
//! memory that the receiver has exposed for one epoch after the other.
//!
//! The layer above matches the two ends, agrees on the partitions, and carries the receiver's key to the
//! sender. From then on the ends talk to each other without the rank's other traffic: a partition is
//! posted, and it lands.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use crate::data::{RecvBuffer, SendBuffer};
use crate::error::Result;
use crate::message::EndpointId;
use crate::post::Post;

/// How many rounds the receiver's buffer has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Buffering {
    /// One: the credit for an epoch comes with its start.
    #[default]
    Single,
    /// Two, in halves that epochs use by turns: the credit comes with the start of the epoch before.
    Double,
}

impl Buffering {
    const fn halves(self) -> u64 {
        match self {
            Self::Single => 1,
            Self::Double => 2,
        }
    }

    /// How many times the bytes of one epoch the buffer has.
    #[must_use]
    pub const fn rooms(self) -> usize {
        self.halves() as usize
    }

    /// The room that `epoch` uses.
    #[inline]
    #[must_use]
    pub const fn room(self, epoch: u64) -> usize {
        (epoch.wrapping_sub(1) % self.halves()) as usize
    }

    /// How many epochs up to this one have used its room.
    #[inline]
    #[must_use]
    pub const fn turn(self, epoch: u64) -> u64 {
        epoch.div_ceil(self.halves())
    }

    /// The last epoch that may be written once `epoch` has begun.
    #[inline]
    #[must_use]
    pub const fn credit(self, epoch: u64) -> u64 {
        epoch + (self.halves() - 1)
    }
}

/// A receiving end that has just been opened.
#[derive(Debug)]
pub struct OpenChannel {
    /// What the sender needs to join.
    pub key: Vec<u8>,
    /// The end itself.
    pub end: Arc<dyn RecvChannel>,
}

/// The part of a transport that opens partitioned channels, from [`Transport::channels`](crate::Transport::channels).
pub trait Channels {
    /// Opens the receiving end of a partitioned channel: `data`, in transport partitions that end at
    /// `ends`, is to be written by `from`; the buffer has as many bytes for each of its
    /// [rooms](Buffering::rooms). `None` where this transport, or this pair of ranks, has no way of
    /// its own for that. The buffer stays lent until the channel is [closed](crate::RecvChannel::close), in
    /// epochs only.
    fn open_channel(
        &mut self,
        from: EndpointId,
        data: &RecvBuffer,
        ends: &[u64],
        buffering: Buffering,
    ) -> Option<OpenChannel>;

    /// Joins the channel that `to` opened under `key`, with a buffer of the same partitions. Each partition is
    /// lent from its post to the end of the epoch.
    ///
    /// # Errors
    /// When the key is not understood or the channel cannot be reached.
    fn join_channel(
        &mut self,
        to: EndpointId,
        data: &SendBuffer,
        ends: &[u64],
        key: &[u8],
    ) -> Result<Arc<dyn SendChannel>>;
}

/// The sending end of a partitioned channel.
///
/// **Who calls.** [`post`](SendChannel::post) any thread at any time within an epoch;
/// [`start`](SendChannel::start) likewise, the same epoch perhaps several times, and late; [`advance`](SendChannel::advance) a thread that
/// drives the rank, since it may write into the peer's memory.
///
/// Epochs are numbered from 1, without gaps, the same on both ends.
pub trait SendChannel: Send + Sync + fmt::Debug {
    /// Begins `epoch`. All partitions of the epoch before are complete.
    fn start(&self, epoch: u64);

    /// The bytes of `partitions` are final: they may travel. No lock, and a system call
    /// only where the peer sleeps. [`Post::Busy`] when the receiver has not given its credit for this
    /// epoch: nothing was done, and the rank is woken when that changes.
    fn post(&self, epoch: u64, partitions: Range<u32>) -> Post;

    /// Moves bytes of `epoch` that were posted, if it is for this side to do so. Returns how many partitions,
    /// or parts of them, it moved.
    fn advance(&self, epoch: u64) -> usize;

    /// Whether the buffer is the caller's again: everything posted in `epoch`, which is all there
    /// is, has been copied. A look.
    fn is_complete(&self, epoch: u64) -> bool;

    /// Whether the other end has closed, or the way is broken, so that `epoch` will not complete if it
    /// has not by now. A look; what is complete is complete all the same.
    fn is_over(&self, epoch: u64) -> bool;

    /// Whether what is posted leaves with the rank's next progress, not at once.
    fn is_driven(&self) -> bool {
        false
    }

    /// Whether something that was posted has not left, and does so with the rank's progress only. A look.
    fn holds_back(&self) -> bool {
        false
    }

    /// Ends the channel. Returns whether nobody can touch the buffer any more; where not, the caller may
    /// ask again, after progress.
    fn close(&self) -> bool;

    /// Which completion the channel uses, and why, in words.
    fn describe(&self) -> String;
}

/// The receiving end of a partitioned channel. Any thread calls anything; [`start`](RecvChannel::start) as
/// for the [`SendChannel`].
pub trait RecvChannel: Send + Sync + fmt::Debug {
    /// Begins `epoch`: the buffer may be written. This is the sender's [credit](Buffering::credit).
    fn start(&self, epoch: u64);

    /// Whether `partition` has arrived in `epoch` and lies in the buffer. Takes it in where it has
    /// come and that is for this side to do.
    fn has_landed(&self, epoch: u64, partition: u32) -> bool;

    /// Takes in everything of `epoch` that has come. Returns whether that is all there is.
    fn advance(&self, epoch: u64) -> bool;

    /// As [`SendChannel::is_over`].
    fn is_over(&self, epoch: u64) -> bool;

    /// Whether the credit is told with the rank's next progress, not at once.
    fn is_driven(&self) -> bool {
        false
    }

    /// Ends the channel; as [`SendChannel::close`].
    fn close(&self) -> bool;

    /// Which completion the channel uses, and why, in words.
    fn describe(&self) -> String;
}
