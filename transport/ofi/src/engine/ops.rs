//! Operations under way, by name.

use std::ops::{Deref, DerefMut};

use tagwire_base::slab::Slab;
use tagwire_transport::{EndpointId, Token};

use crate::fabric::{OpId, Place, Registered};

/// An operation that the provider has.
#[derive(Debug)]
pub(crate) enum Op {
    /// A message from a buffer of ours.
    Send { link: EndpointId, place: Place },
    /// A block for messages.
    Receive { chunk: u32 },
    /// A message from a buffer of ours and one that was lent.
    ZeroCopy {
        link: EndpointId,
        place: Place,
        token: Token,
        len: usize,
        registered: Option<Registered>,
    },
    /// A put or a get.
    Access(Access),
    /// An operation of the matching transport, by its own number.
    Tagged { number: u32 },
    /// One that was given up: its slot is not used again before the provider lets go of it, which
    /// may be never.
    Orphan,
}

/// A put or a get.
#[derive(Debug)]
pub(crate) struct Access {
    pub(crate) link: EndpointId,
    pub(crate) token: Token,
    pub(crate) len: u64,
    /// Kept until the provider has let go of the buffer.
    pub(crate) registered: Option<Registered>,
}

/// All operations.
#[derive(Debug, Default)]
pub(crate) struct Ops(Slab<Op>);

impl Deref for Ops {
    type Target = Slab<Op>;

    #[inline]
    fn deref(&self) -> &Slab<Op> {
        &self.0
    }
}

impl DerefMut for Ops {
    #[inline]
    fn deref_mut(&mut self) -> &mut Slab<Op> {
        &mut self.0
    }
}

impl Ops {
    /// Ends an operation.
    #[inline]
    pub(crate) fn free(&mut self, id: OpId) {
        drop(self.0.remove(id));
    }

    /// Keeps a registration with an operation until that has ended.
    pub(crate) fn keep(&mut self, id: OpId, kept: Option<Registered>) {
        let op = self.0.get_mut(id);
        if let Some(Op::ZeroCopy { registered, .. } | Op::Access(Access { registered, .. })) = op {
            *registered = kept;
        }
    }

    /// Gives an operation up that the provider will not complete. Returns what it was; `None` where
    /// it has ended, or was given up before.
    pub(crate) fn orphan(&mut self, id: OpId) -> Option<Op> {
        match std::mem::replace(self.0.get_mut(id)?, Op::Orphan) {
            Op::Orphan => None,
            op => Some(op),
        }
    }

    /// Returns the operations with a peer, but for those of the matching transport.
    pub(crate) fn with(&self, peer: EndpointId) -> impl Iterator<Item = OpId> {
        let concerns = move |op: &Op| match op {
            Op::Send { link, .. } | Op::ZeroCopy { link, .. } => *link == peer,
            Op::Access(access) => access.link == peer,
            _ => false,
        };
        self.0
            .iter()
            .filter_map(move |(id, op)| concerns(op).then_some(id))
    }

    /// Whether bytes of lent buffers are under way, but for those of the matching transport.
    pub(crate) fn any_transfer(&self) -> bool {
        let moves = |op: &Op| matches!(op, Op::ZeroCopy { .. } | Op::Access(_) | Op::Orphan);
        self.0.iter().any(|(_, op)| moves(op))
    }

    /// Leaves everything as it is for the rest of the process.
    pub(crate) fn forget(&mut self) {
        std::mem::forget(std::mem::take(self));
    }

    /// Ends all that never completed, once the endpoint is closed.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_up_is_so_once() {
        let mut ops = Ops::default();
        let [first, second] = [1, 2].map(|chunk| ops.insert(Op::Receive { chunk }));
        ops.free(first);
        assert!(ops.orphan(first).is_none(), "it has ended");
        ops.keep(first, None);
        assert!(matches!(ops.orphan(second), Some(Op::Receive { chunk: 2 })));
        assert!(ops.orphan(second).is_none());
        assert!(ops.any_transfer());
    }
}
