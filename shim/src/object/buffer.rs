//! Buffers for buffered sends (MPI-5.0, section 3.6).
//!
//! A message is copied into the first gap that holds it, and is sent from there in standard mode:
//!
//! ```text
//!     | message | message |    gap    | message |      room      |
//! ```
//!
//! Each counts with an overhead, so that a buffer holds what the standard promises although messages end in another order than
//! they began.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tagwire_base::{ContextId, Rank, Tag};
use tagwire_pml::{Messenger, RequestId, SendMode};

use crate::error::{Class, Error, Result};
use crate::lock::Lock;
use crate::object::datatype::Span;
use crate::raw::{In, Out, StagingBuffer};

/// `MPI_BSEND_OVERHEAD`.
const OVERHEAD: usize = 512;

/// How long a send waits for room where the buffer has none. The standard lets it fail at once (MPI-5.0, section 3.6), but
/// programs count on messages that need no receive to leave by themselves.
const PATIENCE: Duration = Duration::from_secs(1);

/// Messages begin at multiples of it.
const ALIGNMENT: usize = 16;

/// Where the program has attached a buffer, or may.
#[derive(Debug, Default)]
pub(crate) struct Slot(Lock<Option<Arc<Buffer>>>);

impl Slot {
    pub(crate) fn get(&self) -> Option<Arc<Buffer>> {
        self.0.lock().clone()
    }

    /// Attaches a buffer.
    ///
    /// # Errors
    /// `MPI_ERR_BUFFER` where there is one.
    pub(crate) fn attach(&self, buffer: Buffer) -> Result {
        let mut held = self.0.lock();
        if held.is_some() {
            return Err(Error::new(Class::Buffer, "a buffer is attached already"));
        }
        *held = Some(Arc::new(buffer));
        Ok(())
    }

    /// Returns a slot with its buffer, and has none any more.
    pub(crate) fn moved(&self) -> Self {
        Self(Lock::new(self.0.lock().take()))
    }

    /// Waits until all messages of the buffer have been delivered.
    pub(crate) fn flush(&self, messenger: &Messenger) -> Result {
        self.get().map_or(Ok(()), |buffer| buffer.flush(messenger))
    }

    /// Takes the buffer, and waits as well. Another thread that is about to send finds no buffer.
    pub(crate) fn detach(&self, messenger: &Messenger) -> Result<Option<Arc<Buffer>>> {
        let detached = self.0.lock().take();
        if let Some(buffer) = &detached {
            buffer.close(messenger)?;
        }
        Ok(detached)
    }
}

/// A buffer.
pub(crate) struct Buffer {
    attached: Option<Attached>,
    /// In order of their places. `None` once it was detached.
    messages: Lock<Option<Vec<Message>>>,
}

/// The program's memory. Where a buffer has none, it is `MPI_BUFFER_AUTOMATIC`: each message has memory of its own.
#[derive(Debug, Clone, Copy)]
struct Attached {
    address: Out,
    size: usize,
}

/// A message on its way.
struct Message {
    start: usize,
    bytes: usize,
    id: RequestId,
    _memory: Option<StagingBuffer>,
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({:?})", self.attached)
    }
}

/// Where a message goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct To {
    pub(crate) rank: Rank,
    pub(crate) tag: Tag,
    pub(crate) context: ContextId,
}

impl Buffer {
    /// Returns one for memory of the program; for none, an automatic one.
    pub(crate) const fn new(attached: Option<(Out, usize)>) -> Self {
        let attached = match attached {
            Some((address, size)) => Some(Attached { address, size }),
            None => None,
        };
        Self {
            attached,
            messages: Lock::new(Some(Vec::new())),
        }
    }

    /// Returns the program's memory. `None` for an automatic one.
    pub(crate) fn attached(&self) -> Option<(Out, usize)> {
        self.attached
            .map(|attached| (attached.address, attached.size))
    }

    /// Copies data and sends the copy.
    ///
    /// # Errors
    /// `MPI_ERR_BUFFER` where there is no room; those of sending.
    pub(crate) fn send(&self, messenger: &Messenger, data: In, span: &Span, to: To) -> Result {
        if !self.try_send(messenger, data, span, to)? {
            // What is delivered meanwhile gives room: a message is on its way until its peer has been met, say.
            let waited = messenger.progress_until(Some(PATIENCE), || {
                Ok(self.has_room(messenger, span.bytes).then_some(()))
            });
            match waited {
                Err(tagwire_pml::Error::TimedOut(_)) => {}
                other => other?,
            }
            if !self.try_send(messenger, data, span, to)? {
                let text = format!("the attached buffer has no room for {} bytes", span.bytes);
                return Err(Error::new(Class::Buffer, text));
            }
        }
        Ok(())
    }

    fn try_send(&self, messenger: &Messenger, data: In, span: &Span, to: To) -> Result<bool> {
        let bytes = span.bytes;
        let mut held = self.messages.lock();
        let messages = held
            .as_mut()
            .ok_or_else(|| Error::new(Class::Buffer, "the buffer was detached"))?;
        reap(messages, messenger);
        let (place, start, memory, copy) = match self.attached {
            None => {
                let memory = StagingBuffer::new(bytes);
                let copy = memory.address();
                (messages.len(), 0, Some(memory), copy)
            }
            Some(attached) => {
                let Some((place, start)) = gap(messages, attached.size, bytes) else {
                    return Ok(false);
                };
                (place, start, None, attached.address.moved(start as i64))
            }
        };
        span.pack(data, copy)?;
        let data = copy.read().buffer(0, bytes);
        let id = messenger.isend(data, to.rank, to.tag, to.context, SendMode::Standard)?;
        if id != RequestId::COMPLETE {
            let message = Message {
                start,
                bytes,
                id,
                _memory: memory,
            };
            messages.insert(place, message);
        }
        Ok(true)
    }

    /// Returns whether a message of so many bytes has room, or never will have while nothing is delivered.
    fn has_room(&self, messenger: &Messenger, bytes: usize) -> bool {
        let mut held = self.messages.lock();
        let (Some(messages), Some(attached)) = (held.as_mut(), self.attached) else {
            return true;
        };
        reap(messages, messenger);
        let fits = gap(&[], attached.size, bytes).is_some();
        !fits || messages.is_empty() || gap(messages, attached.size, bytes).is_some()
    }

    /// Returns the messages that are in it now.
    pub(crate) fn ids(&self) -> Vec<RequestId> {
        let now = self.messages.lock();
        now.iter().flatten().map(|one| one.id).collect()
    }

    /// Forgets those of some messages that have been delivered. Returns whether all have.
    pub(crate) fn have_left(&self, awaited: &mut Vec<RequestId>, messenger: &Messenger) -> bool {
        let mut held = self.messages.lock();
        let Some(messages) = held.as_mut() else {
            return true;
        };
        reap(messages, messenger);
        awaited.retain(|id| messages.iter().any(|one| one.id == *id));
        awaited.is_empty()
    }

    /// Waits until all messages that are in it now have been delivered.
    pub(crate) fn flush(&self, messenger: &Messenger) -> Result {
        let mut awaited = self.ids();
        messenger.progress_until(None, || {
            Ok(self.have_left(&mut awaited, messenger).then_some(()))
        })?;
        Ok(())
    }

    /// Waits until no message is in it, and takes none from then on.
    fn close(&self, messenger: &Messenger) -> Result {
        messenger.progress_until(None, || {
            let mut held = self.messages.lock();
            let messages = held.get_or_insert_default();
            reap(messages, messenger);
            let is_empty = messages.is_empty();
            if is_empty {
                *held = None;
            }
            Ok(is_empty.then_some(()))
        })?;
        Ok(())
    }
}

/// Forgets messages that have been delivered. One that failed has nobody to tell: its call has returned.
fn reap(messages: &mut Vec<Message>, messenger: &Messenger) {
    messages.retain(|message| matches!(messenger.take(message.id), Ok(None)));
}

/// Returns where a message has room among those that are there, which are in order of their places.
fn gap(messages: &[Message], size: usize, bytes: usize) -> Option<(usize, usize)> {
    let used: usize = messages.iter().map(|one| one.bytes + OVERHEAD).sum();
    used.checked_add(bytes)?
        .checked_add(OVERHEAD)
        .filter(|used| *used <= size)?;
    let mut start = 0;
    for (place, message) in messages.iter().enumerate() {
        if start + bytes <= message.start {
            return Some((place, start));
        }
        start = (message.start + message.bytes).next_multiple_of(ALIGNMENT);
    }
    (start + bytes <= size).then_some((messages.len(), start))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(start: usize, bytes: usize) -> Message {
        Message {
            start,
            bytes,
            id: RequestId::COMPLETE,
            _memory: None,
        }
    }

    /// As many messages fit as the standard's model holds, with the overhead of each, and gaps are used again.
    #[test]
    fn messages_are_placed_in_gaps() {
        let size = 3 * (100 + OVERHEAD);
        let mut all = Vec::new();
        for start in [0, 112, 224] {
            let (place, found) = gap(&all, size, 100).unwrap();
            assert_eq!((place, found), (all.len(), start));
            all.push(message(found, 100));
        }
        assert_eq!(gap(&all, size, 0), None);
        all.remove(1);
        assert_eq!(gap(&all, size, 100), Some((1, 112)));
        assert_eq!(gap(&all, size, 101), None, "more than counted");
        all.remove(0);
        assert_eq!(gap(&all, size, 200), Some((0, 0)));
        assert_eq!(gap(&all, size, 500), Some((1, 336)));
        assert_eq!(gap(&all, size, usize::MAX), None);
    }
}
