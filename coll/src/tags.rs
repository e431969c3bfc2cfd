//! The internal tags of a group's operations.

use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tagwire_base::Tag;

use crate::error::{Error, Result};

/// How many tags operations take in turn.
const IN_TURN: u32 = Tag::COLLECTIVES - PERSISTENT - 1;

/// The tag of messages by which a member reports that it has broken off. As one of collectives it is dropped by those who have too.
pub(crate) const BROKEN: Tag = Tag::internal(IN_TURN);

/// So many of the tags are for persistent operations, which have one for as long as they are there: others take turns, and
/// would come round to it.
const PERSISTENT: u32 = Tag::COLLECTIVES / 4;

/// The tags that a group's operations have, and how many it has begun.
#[derive(Debug, Default)]
pub(crate) struct Tags {
    begun: AtomicU32,
    persistent: Mutex<Persistent>,
}

/// The tags of persistent operations. Members make these in the same order, and free them in any.
#[derive(Debug, Default)]
struct Persistent {
    made: u32,
    taken: Vec<Tag>,
}

impl Tags {
    /// Returns the tag of the next operation.
    pub(crate) fn next(&self) -> Tag {
        Tag::internal(self.begun.fetch_add(1, Relaxed) % IN_TURN)
    }

    /// Returns the tag of the next persistent operation, which has it until it is [given back](Self::give_back).
    ///
    /// # Errors
    /// [`Error::Persistent`] when an older one still has it.
    pub(crate) fn take(&self) -> Result<Tag> {
        let mut tags = self.persistent();
        let number = tags.made % PERSISTENT;
        let tag = Tag::internal(Tag::COLLECTIVES - PERSISTENT + number);
        if tags.taken.contains(&tag) {
            return Err(Error::Persistent(PERSISTENT as usize));
        }
        tags.made = tags.made.wrapping_add(1);
        tags.taken.push(tag);
        Ok(tag)
    }

    /// Takes the tag of a persistent operation back.
    pub(crate) fn give_back(&self, tag: Tag) {
        self.persistent().taken.retain(|taken| *taken != tag);
    }

    fn persistent(&self) -> MutexGuard<'_, Persistent> {
        let tags = self.persistent.lock();
        tags.unwrap_or_else(PoisonError::into_inner)
    }
}
