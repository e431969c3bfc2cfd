//! Operation contexts: the memory that a provider may use for each operation under way.
#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::ffi::c_void;

use tagwire_libfabric_sys::bindings::fi_context2;

/// Names an operation under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct OpId(pub(crate) u32);

impl OpId {
    pub(crate) const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What the provider is given a pointer to: its own room first, then our number.
#[repr(C)]
struct Slot {
    room: UnsafeCell<fi_context2>,
    op: OpId,
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

    /// The context of `op`, as the provider takes it.
    #[inline]
    pub(super) fn pointer(&mut self, op: OpId) -> *mut c_void {
        while self.chunks.len() * CHUNK <= op.index() {
            self.grow();
        }
        let slot = &raw const self.chunks[op.index() / CHUNK][op.index() % CHUNK];
        slot.cast_mut().cast()
    }

    #[cold]
    fn grow(&mut self) {
        let first = self.chunks.len() * CHUNK;
        let slot = |place| Slot {
            // SAFETY: pointers for the provider's own use, for which null is a value.
            room: UnsafeCell::new(unsafe { std::mem::zeroed() }),
            op: OpId((first + place) as u32),
        };
        self.chunks.push((0..CHUNK).map(slot).collect());
    }

    /// The operation whose context a completion names.
    ///
    /// # Safety
    /// `context` is null or came from [`pointer`](Self::pointer) of contexts that are alive.
    #[inline]
    pub(super) unsafe fn op(context: *const c_void) -> Option<OpId> {
        // SAFETY: the caller's promise; the provider writes to the room before our number only.
        unsafe { context.cast::<Slot>().as_ref() }.map(|slot| slot.op)
    }
}
