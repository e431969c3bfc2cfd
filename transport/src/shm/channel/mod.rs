//! Partitioned channels over shared memory: a control block that both ends map, and no lock.
//!
//! The receiver makes the control block, one memfd for each channel, and its key informs the sender where. A
//! transport partition is cut into blocks, each with a word in the control block; the words tell everything,
//! so that any thread posts, looks, and copies.
//!
//! ```text
//!   a word:  epoch << 3 | state         staged:  READY                       (landed: the receiver's own note)
//!                                       direct:  READY -> TAKEN by either -> DONE
//! ```
//!
//! - **Partitions of small messages are staged** (setting `shm-staged`): the thread that is last copies
//!   them into the control block and sets the words; the receiver copies them out. There is room for two epochs, so that the credit for an epoch
//!   is that the one before the last has been consumed, which is so before anybody asks.
//! - **Others are read or written in place** by cross-memory attach, by whichever side has time: the
//!   receiver takes ready blocks from the front, the sender, once it waits, from the back. Neighbours are
//!   taken together, half of them at a time, in one call. The receiver needs no credit for what it reads
//!   itself; the sender writes only in an epoch that the receiver has open: the last that it has begun, or,
//!   where its buffer has room for two, the one after that.
//!
//! **Buffers.** Each end has a word for the epoch it has open. Who takes a block looks at the other's word
//! after that, who closes looks for taken blocks after that, with full fences: one of both sees the other.
//!
//! **Trust.** Offsets and lengths are each end's own. What the peer's words can do is make bytes count as
//! arrived that are not; its address is an operand of the system call.

mod claims;
mod control;
#[cfg(all(test, loom))]
mod models;
mod recv;
mod send;

use std::sync::Arc;

use claims::Blocks;
use control::{ControlBlock, Key, Mode, Source, Target};
use recv::Receiver;
use send::Sender;

use super::NAME;
use super::rank::Shm;
use crate::channel::{Buffering, Channels, OpenChannel, SendChannel};
use crate::data::{RecvBuffer, SendBuffer};
use crate::error::{Error, Result};
use crate::message::EndpointId;

/// Bytes of a staged block: large enough to be worth a word, and small enough that both sides copy at once.
const STAGED_BLOCK: u64 = 4096;
/// Fewest bytes of a block that is copied in place, where the partition has them.
const DIRECT_BLOCK: u64 = 32 * 1024;
/// Most blocks that one message is cut into beyond its partitions.
const DIRECT_BLOCKS: u64 = 64;

impl Channels for Shm {
    /// `None` as well where the sender could not open the control block, being in another namespace of processes.
    #[allow(unsafe_code, reason = "the channel is lent the buffer")]
    fn open_channel(
        &mut self,
        from: EndpointId,
        data: &RecvBuffer,
        ends: &[u64],
        buffering: Buffering,
    ) -> Option<OpenChannel> {
        let region = data.region()?;
        let partner = self.partner(from)?;
        let total = ends.last().copied().unwrap_or(0);
        if region.len() as u64 != total * buffering.rooms() as u64 {
            return None;
        }
        let staged = self.options.staged as u64;
        let mode = choose(total, staged, partner.pid().is_some());
        let blocks = Blocks::new(ends, mode.block());
        let control = ControlBlock::create(&blocks, mode).ok()?;
        // SAFETY: whoever opens a channel lends the buffer like this; see `Channels::open_channel`.
        let (target, own) = (unsafe { Target::new(region) }, self.header.clone());
        let end = Receiver::new(control, blocks, mode, buffering, target, partner, own);
        Some(OpenChannel {
            key: end.key().to_bytes(),
            end: Arc::new(end),
        })
    }

    #[allow(unsafe_code, reason = "the channel is lent the buffer")]
    fn join_channel(
        &mut self,
        to: EndpointId,
        data: &SendBuffer,
        ends: &[u64],
        key: &[u8],
    ) -> Result<Arc<dyn SendChannel>> {
        let unsupported = Error::Unsupported {
            transport: NAME,
            what: "a channel for this buffer or peer",
        };
        let (Some(region), Some(partner)) = (data.region(), self.partner(to)) else {
            return Err(unsupported);
        };
        let peer = self.peers[to.index()].rank;
        let broken = |reason| Error::Protocol {
            transport: NAME,
            peer,
            reason,
        };
        let key = Key::from_bytes(key).ok_or_else(|| broken("a channel's key".to_owned()))?;
        let blocks = Blocks::new(ends, key.mode.block());
        let control = ControlBlock::open(partner.process(), &key, &blocks).map_err(broken)?;
        // SAFETY: whoever joins a channel lends the buffer like this; see `Channels::join_channel`.
        let (source, own) = (unsafe { Source::new(region) }, self.header.clone());
        Ok(Arc::new(Sender::new(
            control,
            blocks,
            (key.mode, key.buffering),
            source,
            partner,
            own,
        )))
    }
}

/// How a message of `total` bytes travels: through the control block up to `staged` bytes, and where the receiver
/// cannot attach to the sender.
fn choose(total: u64, staged: u64, attached: bool) -> Mode {
    if total <= staged || !attached {
        Mode::Staged {
            block: STAGED_BLOCK.max(total / 1024).next_multiple_of(64),
        }
    } else {
        Mode::Direct {
            block: DIRECT_BLOCK.max(total / DIRECT_BLOCKS).next_multiple_of(64),
        }
    }
}
