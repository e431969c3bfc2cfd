//! Operations under way, by number.

use tagwire_transport::{EndpointId, Token};

use crate::fabric::{OpId, Place, Registered};

/// An operation that the provider has.
#[derive(Debug)]
pub(crate) enum Op {
    /// None: the number is free, and that of the next free one.
    Free { next: Option<OpId> },
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
    /// One that was given up: the number is not used again before the provider lets go of it,
    /// which may be never.
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
pub(crate) struct Slab {
    list: Vec<Op>,
    free: Option<OpId>,
}

impl Slab {
    /// Enters an operation.
    #[inline]
    pub(crate) fn enter(&mut self, op: Op) -> OpId {
        match self.free {
            Some(id) => {
                let slot = &mut self.list[id.index()];
                if let Op::Free { next } = slot {
                    self.free = *next;
                }
                *slot = op;
                id
            }
            None => {
                self.list.push(op);
                OpId(self.list.len() as u32 - 1)
            }
        }
    }

    /// The operation under `id`, which may be free.
    #[inline]
    pub(crate) fn get(&self, id: OpId) -> &Op {
        &self.list[id.index()]
    }

    /// Takes an operation out.
    #[inline]
    pub(crate) fn take(&mut self, id: OpId) -> Op {
        let free = Op::Free { next: self.free };
        match std::mem::replace(&mut self.list[id.index()], free) {
            Op::Free { next } => {
                // It was free already, and stays where it is in the list of the free.
                self.list[id.index()] = Op::Free { next };
                Op::Free { next: None }
            }
            op => {
                self.free = Some(id);
                op
            }
        }
    }

    /// Ends an operation.
    #[inline]
    pub(crate) fn free(&mut self, id: OpId) {
        drop(self.take(id));
    }

    /// Keeps a registration with an operation until that has ended.
    pub(crate) fn keep(&mut self, id: OpId, kept: Option<Registered>) {
        match &mut self.list[id.index()] {
            Op::ZeroCopy { registered, .. } | Op::Access(Access { registered, .. }) => {
                *registered = kept;
            }
            _ => {}
        }
    }

    /// Gives an operation up that the provider will not complete.
    pub(crate) fn orphan(&mut self, id: OpId) -> Op {
        match &mut self.list[id.index()] {
            Op::Free { .. } => Op::Free { next: None },
            op => std::mem::replace(op, Op::Orphan),
        }
    }

    /// The operations with a peer, but for those of the matching transport.
    pub(crate) fn with(&self, peer: EndpointId) -> impl Iterator<Item = OpId> {
        let concerns = move |op: &Op| match op {
            Op::Send { link, .. } | Op::ZeroCopy { link, .. } => *link == peer,
            Op::Access(access) => access.link == peer,
            _ => false,
        };
        (0..)
            .map(OpId)
            .zip(&self.list)
            .filter_map(move |(id, op)| concerns(op).then_some(id))
    }

    /// Whether bytes of lent buffers are under way, but for those of the matching transport.
    pub(crate) fn any_transfer(&self) -> bool {
        let moves = |op: &Op| matches!(op, Op::ZeroCopy { .. } | Op::Access(_) | Op::Orphan);
        self.list.iter().any(moves)
    }

    /// Leaves everything as it is for the rest of the process.
    pub(crate) fn forget(&mut self) {
        self.list.drain(..).for_each(std::mem::forget);
        self.free = None;
    }

    /// Ends all that never completed, once the endpoint is closed.
    pub(crate) fn clear(&mut self) {
        self.list.clear();
        self.free = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_used_again_and_freed_once() {
        let mut slab = Slab::default();
        let ids = [0, 1, 2].map(|chunk| slab.enter(Op::Receive { chunk }));
        assert_eq!(ids, [OpId(0), OpId(1), OpId(2)]);
        slab.free(ids[0]);
        slab.free(ids[2]);
        slab.free(ids[2]);
        assert_eq!(slab.enter(Op::Receive { chunk: 9 }), ids[2]);
        assert_eq!(slab.enter(Op::Receive { chunk: 8 }), ids[0]);
        assert_eq!(slab.enter(Op::Receive { chunk: 7 }), OpId(3));
        assert!(matches!(slab.get(ids[2]), Op::Receive { chunk: 9 }));
    }
}
