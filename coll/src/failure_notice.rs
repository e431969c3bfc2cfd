//! What a member that breaks off tells the others: which member it has lost.
//!
//! On the wire 4 bytes, little-endian: the number of the lost member in the group, with the bit [`GONE`] where it is not known to
//! have failed; [`NONE`] where it was something else.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

use tagwire_base::{ContextId, Rank};
use tagwire_pml::{MessageId, Messenger, RequestId, SendMode};
use tagwire_transport::{Pack, RecvBuffer, SendBuffer, Unpack};

use crate::error::Result;
use crate::tags::BROKEN;

const NONE: u32 = u32::MAX;

const GONE: u32 = 1 << 31;

/// A member by which a group was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lost {
    /// It has failed.
    Dead(usize),
    /// It takes part no more, as others say. It may be dead: they hear of that earlier.
    Gone(usize),
}

impl Lost {
    /// Returns its number.
    pub(crate) const fn member(self) -> usize {
        match self {
            Self::Dead(member) | Self::Gone(member) => member,
        }
    }
}

/// Sends a member the news that `lost` is lost. Where that fails the member is gone, and needs no news.
pub(crate) fn send(messenger: &Messenger, lost: Option<Lost>, (to, context): (Rank, ContextId)) {
    let word = match lost {
        None => NONE,
        Some(Lost::Dead(member)) => member as u32,
        Some(Lost::Gone(member)) => member as u32 | GONE,
    };
    let whole = SendBuffer::packed(Box::new(Outgoing(word.to_le_bytes())));
    let send = |data| messenger.isend(data, to, BROKEN, context, SendMode::Buffered);
    // Without room in the layer's memory it goes without the number.
    let _ = send(whole).or_else(|_| send(SendBuffer::EMPTY));
}

/// News that was claimed, and may not be here yet: where a library matches it takes a while.
#[derive(Debug)]
pub(crate) struct Notice {
    request: RequestId,
    lost: Arc<AtomicU32>,
}

impl Notice {
    /// Begins to receive news that was claimed.
    pub(crate) fn receive(messenger: &Messenger, message: MessageId) -> Result<Self> {
        let lost = Arc::new(AtomicU32::new(NONE));
        let room = RecvBuffer::unpacked(Box::new(Incoming(Arc::clone(&lost))));
        let request = messenger.irecv_claimed(room, message)?;
        Ok(Self { request, lost })
    }

    /// Returns the member that is lost, where the news says so; nothing before it is here. Makes no progress.
    pub(crate) fn read(&self, messenger: &Messenger) -> Result<Option<Option<Lost>>> {
        if messenger.take(self.request)?.is_none() {
            return Ok(None);
        }
        let word = self.lost.load(Relaxed);
        let member = (word & !GONE) as usize;
        Ok(Some(match word {
            NONE => None,
            _ if word & GONE == 0 => Some(Lost::Dead(member)),
            _ => Some(Lost::Gone(member)),
        }))
    }
}

struct Outgoing([u8; 4]);

impl Pack for Outgoing {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn pack(&self, offset: usize, out: &mut [u8]) {
        out.copy_from_slice(&self.0[offset..offset + out.len()]);
    }
}

struct Incoming(Arc<AtomicU32>);

impl Unpack for Incoming {
    fn capacity(&self) -> usize {
        size_of::<u32>()
    }

    /// Four bytes are never cut: other lengths are of no member that is in order, and say nothing.
    fn unpack(&self, offset: usize, bytes: &[u8]) {
        if let (0, Ok(bytes)) = (offset, bytes.try_into()) {
            self.0.store(u32::from_le_bytes(bytes), Relaxed);
        }
    }
}
