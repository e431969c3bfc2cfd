//! The short messages of the handshake: sent by copy, received into room of their own.
#![allow(unsafe_code)]

use tagwire_base::{ContextId, Rank, SourceSelector, Tag, TagSelector};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes};

use super::held::Held;
use crate::error::{Error, Result};
use crate::layer::Layer;
use crate::lend::lend;
use crate::types::{Failure, RequestId, SendMode};

/// A short message that is awaited, with its room. Dropped, its room stays: the layer may still write to it.
#[derive(Debug)]
pub(super) struct Awaited<T> {
    request: RequestId,
    room: Held<T>,
}

impl<T: FromZeros + IntoBytes + FromBytes> Awaited<T> {
    /// Posts a receive for it.
    pub(super) fn post(
        layer: &mut Layer,
        from: Rank,
        tag: Tag,
        context: ContextId,
    ) -> Result<Self> {
        let (room, data) = Held::for_receives(Box::new(T::new_zeroed()));
        let (from, tag) = (SourceSelector::from(from), TagSelector::exact(tag));
        match layer.irecv(data, from, tag, context) {
            Ok(request) => Ok(Self { request, room }),
            Err(error) => {
                // SAFETY: the receive was refused: nothing is under way.
                drop(unsafe { room.reclaim() });
                Err(error)
            }
        }
    }

    /// The message, if it has come whole.
    ///
    /// # Errors
    /// When it cannot come any more.
    pub(super) fn take(self, layer: &mut Layer) -> Result<std::result::Result<T, Self>> {
        let Some(status) = layer.take(self.request)? else {
            return Ok(Err(self));
        };
        // SAFETY: the receive, the only operation on the room, is complete.
        let message = unsafe { self.room.reclaim() };
        let status = status.ok()?;
        if status.length != size_of::<T>() {
            return Err(Error::Failed(Failure::Protocol(status.source)));
        }
        Ok(Ok(*message))
    }

    /// Gives it up.
    pub(super) fn abandon(self, layer: &mut Layer) {
        let _ = layer.cancel(self.request);
        let _ = self.take(layer);
    }
}

/// Sends `message` by copy.
pub(super) fn say<T: IntoBytes + Immutable>(
    layer: &mut Layer,
    to: Rank,
    tag: Tag,
    context: ContextId,
    message: &T,
) -> Result<()> {
    // SAFETY: a buffered send has a copy of its own, or is out, when the call that starts it returns or panics:
    // nothing keeps this buffer for longer than `message` is borrowed.
    let data = unsafe { lend(message.as_bytes()) };
    let request = layer.isend(data, to, tag, context, SendMode::Buffered)?;
    layer.take(request)?;
    Ok(())
}
