//! The memory of the other members of a group.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

use tagwire_transport::MemberMemory;

/// The memory of all other members, where each may read that of each.
pub(crate) struct Memories {
    /// By member; none of this one.
    pub(super) members: Box<[Option<Arc<dyn MemberMemory>>]>,
    /// Some member could not read what another has given. It is the same on all members.
    is_refused: AtomicBool,
}

impl fmt::Debug for Memories {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Memories of {} members", self.members.len())
    }
}

impl Memories {
    pub(super) fn new(members: Vec<Option<Arc<dyn MemberMemory>>>) -> Self {
        Self {
            members: members.into(),
            is_refused: AtomicBool::new(false),
        }
    }

    /// Whether members read each other's memory: all could so far.
    pub(super) fn are_read(&self) -> bool {
        !self.is_refused.load(Relaxed)
    }

    /// Copies what lies at `address` of a member's process. Returns whether it could be read.
    pub(super) fn read(&self, member: usize, address: u64, into: &mut [u8]) -> bool {
        let memory = self.members.get(member).and_then(Option::as_ref);
        memory.is_some_and(|memory| memory.read(address, into))
    }

    /// Members read no memory of each other any more.
    pub(super) fn refuse(&self) {
        tracing::debug!("memory of a member cannot be read: the group copies through its board");
        self.is_refused.store(true, Relaxed);
    }
}
