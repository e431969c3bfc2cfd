//! Operation contexts: the memory that a provider may use for each operation under way.
#![allow(unsafe_code)]

use std::cell::{Cell, UnsafeCell};
use std::ffi::c_void;
use std::ptr;

use tagwire_libfabric_sys::bindings::fi_context2;

/// Names an operation under way.
pub(crate) use tagwire_base::slab::Handle as OpId;

/// What the provider is given a pointer to: its own room first, then the operation that has it.
#[repr(C)]
struct Slot {
    room: UnsafeCell<fi_context2>,
    op: Cell<OpId>,
}

/// Slots that come with each growth.
const CHUNK: usize = 256;

/// A context for each operation; they stay where they are.
pub(super) struct Contexts {
    chunks: Vec<Box<[Slot]>>,
}

impl Contexts {
    pub(super) const fn new() -> Self {
        Self { chunks: Vec::new() }
    }

    /// Gives the context of its slot to `op`, and returns it as the provider takes it. No other
    /// operation that is under way may have the slot.
    #[inline]
    pub(super) fn pointer(&mut self, op: OpId) -> *mut c_void {
        while self.chunks.len() * CHUNK <= op.slot() as usize {
            self.grow();
        }
        let slot = &self.chunks[op.slot() as usize / CHUNK][op.slot() as usize % CHUNK];
        slot.op.set(op);
        ptr::from_ref(slot).cast_mut().cast()
    }

    /// Returns the context of `op`, where no other operation has had its slot since.
    pub(super) fn find(&self, op: OpId) -> Option<*mut c_void> {
        let slot = self
            .chunks
            .get(op.slot() as usize / CHUNK)?
            .get(op.slot() as usize % CHUNK)?;
        (slot.op.get() == op).then(|| ptr::from_ref(slot).cast_mut().cast())
    }

    #[cold]
    fn grow(&mut self) {
        let first = self.chunks.len() * CHUNK;
        let slot = |place| Slot {
            // SAFETY: pointers for the provider's own use, for which null is a value.
            room: UnsafeCell::new(unsafe { std::mem::zeroed() }),
            op: Cell::new(OpId::new((first + place) as u32, 0)),
        };
        self.chunks.push((0..CHUNK).map(slot).collect());
    }

    /// The operation whose context a completion names.
    ///
    /// # Safety
    /// `context` is null or came from [`pointer`](Self::pointer) of contexts that are alive.
    #[inline]
    pub(super) unsafe fn op(context: *const c_void) -> Option<OpId> {
        // SAFETY: the caller's promise; the provider writes to the room before our name only.
        unsafe { context.cast::<Slot>().as_ref() }.map(|slot| slot.op.get())
    }
}
