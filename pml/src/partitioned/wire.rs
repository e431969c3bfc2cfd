//! The messages of the handshake between the two ends of a channel, and their tags.

use tagwire_base::Tag;
use tagwire_transport::{Buffering, WriteRegion};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::channels::LONGEST_KEY;
use crate::error::Error;

/// The first message of a sending end.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Init {
    pub version: u32,
    /// The user's tag.
    pub tag: i32,
    /// User partitions.
    pub sender: u32,
    /// Transport partitions.
    pub transport: u32,
    pub bytes: u64,
    /// The first of the sender's internal tags for this channel: the reply's; the messages' follow.
    pub first_tag: u32,
    /// 1 where each transport partition is to be a message.
    pub messages: u32,
}

/// The reply of the receiving end.
#[derive(Debug, Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub(super) struct Reply {
    pub bytes: u64,
    /// User partitions.
    pub receiver: u32,
    /// How many bytes of the key count; 0 where each transport partition is to be a message.
    pub key_len: u32,
    pub key: [u8; Self::MOST],
}

impl Reply {
    pub(super) const MOST: usize = LONGEST_KEY;

    /// The channel's key, if it has one.
    pub(super) fn key(&self) -> Option<&[u8]> {
        self.key
            .get(..self.key_len as usize)
            .filter(|key| !key.is_empty())
    }
}

/// The tag of all inits.
pub(super) const INIT_TAG: Tag = Tag::internal(PARTITIONED);

/// Where the internal tags of partitioned channels begin.
const PARTITIONED: u32 = 1 << 30;

/// How many of them there are for replies, and as many for messages. They come again once all were used.
const TAGS: u32 = (1 << 29) - 16;

/// The internal tag of the reply with this number, counted on after [`Registry::take_tags`](super::Registry). Replies and
/// messages come from the same rank in the same context, under numbers that two ranks count: they have
/// tags of their own, so that neither is taken for the other.
pub(super) fn reply_tag(number: u32) -> Tag {
    Tag::internal(PARTITIONED + 1 + 2 * (number % TAGS))
}

/// The internal tag of the message with this number.
pub(super) fn message_tag(number: u32) -> Tag {
    Tag::internal(PARTITIONED + 2 + 2 * (number % TAGS))
}

/// The version of the handshake.
pub(super) const VERSION: u32 = 1;

/// What a receiver has for the bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub partitions: u32,
    /// For one round, or for two.
    pub region: WriteRegion,
    pub buffering: Buffering,
}

impl Room {
    /// Bytes of one round.
    pub(super) const fn bytes(&self) -> usize {
        self.region.len() / self.buffering.rooms()
    }
}

/// The same error once more, for another call.
pub(super) const fn again(error: &Error) -> Error {
    match error {
        Error::Failed(failure) => Error::Failed(*failure),
        Error::Mismatch { sent, received } => Error::Mismatch {
            sent: *sent,
            received: *received,
        },
        Error::BadPartitions { count, bytes } => Error::BadPartitions {
            count: *count,
            bytes: *bytes,
        },
        Error::Closed => Error::Closed,
        _ => Error::BadRound("could not be matched"),
    }
}

/// What becomes of a round whose other end has gone.
pub(super) const GIVEN_UP: Error = Error::BadRound("was given up by the other end");
