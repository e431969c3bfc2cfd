//! Operations under way, by name.

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

/// All operations, each in a slot. A slot that is used again has another generation, so that no name
/// of an operation that has ended names one that is under way.
#[derive(Debug, Default)]
pub(crate) struct Slab {
    slots: Vec<Slot>,
    free: Vec<u32>,
}

#[derive(Debug)]
struct Slot {
    /// How many operations have ended here.
    generation: u32,
    op: Option<Op>,
}

impl Slab {
    /// Enters an operation.
    #[inline]
    pub(crate) fn enter(&mut self, op: Op) -> OpId {
        let Some(free) = self.free.pop() else {
            return self.grow(op);
        };
        let slot = &mut self.slots[free as usize];
        slot.op = Some(op);
        OpId {
            slot: free,
            generation: slot.generation,
        }
    }

    #[cold]
    fn grow(&mut self, op: Op) -> OpId {
        self.slots.push(Slot {
            generation: 0,
            op: Some(op),
        });
        OpId::first(self.slots.len() as u32 - 1)
    }

    #[inline]
    fn slot(&mut self, id: OpId) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(id.index())?;
        (slot.generation == id.generation).then_some(slot)
    }

    /// Returns the operation that `id` names; `None` once that has ended.
    #[inline]
    pub(crate) fn get(&self, id: OpId) -> Option<&Op> {
        let slot = self.slots.get(id.index())?;
        slot.op
            .as_ref()
            .filter(|_| slot.generation == id.generation)
    }

    /// Takes an operation out; `None` where it has ended before.
    #[inline]
    pub(crate) fn take(&mut self, id: OpId) -> Option<Op> {
        let slot = self.slot(id)?;
        let op = slot.op.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(id.slot);
        Some(op)
    }

    /// Ends an operation.
    #[inline]
    pub(crate) fn free(&mut self, id: OpId) {
        drop(self.take(id));
    }

    /// Keeps a registration with an operation until that has ended.
    pub(crate) fn keep(&mut self, id: OpId, kept: Option<Registered>) {
        let op = self.slot(id).and_then(|slot| slot.op.as_mut());
        if let Some(Op::ZeroCopy { registered, .. } | Op::Access(Access { registered, .. })) = op {
            *registered = kept;
        }
    }

    /// Gives an operation up that the provider will not complete. Returns what it was; `None` where
    /// it has ended, or was given up before.
    pub(crate) fn orphan(&mut self, id: OpId) -> Option<Op> {
        let op = self.slot(id)?.op.as_mut()?;
        match std::mem::replace(op, Op::Orphan) {
            Op::Orphan => None,
            op => Some(op),
        }
    }

    /// Returns all operations.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (OpId, &Op)> {
        let named = |(number, slot): (u32, &Slot)| OpId {
            slot: number,
            generation: slot.generation,
        };
        (0..)
            .zip(&self.slots)
            .filter_map(move |one| Some((named(one), one.1.op.as_ref()?)))
    }

    /// Returns the operations with a peer, but for those of the matching transport.
    pub(crate) fn with(&self, peer: EndpointId) -> impl Iterator<Item = OpId> {
        let concerns = move |op: &Op| match op {
            Op::Send { link, .. } | Op::ZeroCopy { link, .. } => *link == peer,
            Op::Access(access) => access.link == peer,
            _ => false,
        };
        self.iter()
            .filter_map(move |(id, op)| concerns(op).then_some(id))
    }

    /// Whether bytes of lent buffers are under way, but for those of the matching transport.
    pub(crate) fn any_transfer(&self) -> bool {
        let moves = |op: &Op| matches!(op, Op::ZeroCopy { .. } | Op::Access(_) | Op::Orphan);
        self.iter().any(|(_, op)| moves(op))
    }

    /// Leaves everything as it is for the rest of the process.
    pub(crate) fn forget(&mut self) {
        self.slots.drain(..).for_each(std::mem::forget);
        self.free.clear();
    }

    /// Ends all that never completed, once the endpoint is closed.
    pub(crate) fn clear(&mut self) {
        self.slots.clear();
        self.free.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_used_again_under_other_names() {
        let mut slab = Slab::default();
        let ids = [0, 1, 2].map(|chunk| slab.enter(Op::Receive { chunk }));
        assert_eq!(ids, [0, 1, 2].map(OpId::first));
        slab.free(ids[0]);
        slab.free(ids[2]);
        slab.free(ids[2]);
        let again = [9, 8, 7].map(|chunk| slab.enter(Op::Receive { chunk }));
        assert_eq!(again.map(|id| id.slot), [2, 0, 3], "freed once");
        assert!(matches!(slab.get(again[0]), Some(Op::Receive { chunk: 9 })));
        // What has ended cannot be reached by the name it had.
        assert!(slab.get(ids[2]).is_none());
        assert!(slab.take(ids[2]).is_none());
        assert!(slab.orphan(ids[2]).is_none());
        slab.keep(ids[2], None);
        assert!(matches!(slab.get(again[0]), Some(Op::Receive { chunk: 9 })));
        assert!(matches!(
            slab.orphan(again[0]),
            Some(Op::Receive { chunk: 9 })
        ));
        assert!(slab.orphan(again[0]).is_none(), "given up once");
    }
}
