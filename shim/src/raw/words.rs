//! Words in memory that is kept.
#![allow(unsafe_code)]

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

/// Words in memory that other processes change too, with what keeps that memory: they are found once, and not at each use.
pub(crate) struct KeptWords<M> {
    words: NonNull<[AtomicU64]>,
    _memory: Arc<M>,
}

// SAFETY: it is a reference into `M` and what keeps it, both of which go to other threads where `M` may be shared.
unsafe impl<M: Send + Sync> Send for KeptWords<M> {}
// SAFETY: as above.
unsafe impl<M: Send + Sync> Sync for KeptWords<M> {}

impl<M> fmt::Debug for KeptWords<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "KeptWords({})", self.words.len())
    }
}

impl<M> KeptWords<M> {
    /// Returns the words of a memory that `pick` returns.
    pub(crate) fn new(memory: &Arc<M>, pick: impl FnOnce(&M) -> &[AtomicU64]) -> Self {
        Self {
            words: NonNull::from(pick(memory)),
            _memory: Arc::clone(memory),
        }
    }

    /// Returns them.
    #[inline(always)]
    pub(crate) const fn get(&self) -> &[AtomicU64] {
        // SAFETY: they were borrowed from what the `Arc` keeps: nobody moves it, nor has it for itself, while this is there.
        // JUSTIFICATION: an atomic operation by MPI looks at three words: finding each in its mapping takes a quarter of its instructions.
        unsafe { self.words.as_ref() }
    }
}
