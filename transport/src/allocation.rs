//! Memory for user data that a transport gave out.
#![allow(unsafe_code)]

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

/// What memory was taken from.
pub(crate) trait Lender: Send + Sync {
    /// Takes the `len` bytes at `start` back, of which nobody makes use any more.
    fn take_back(&self, start: NonNull<u8>, len: usize);
}

/// Memory that a peer has from [`Transport::allocate`](crate::Transport::allocate), as this process maps it.
pub trait PeerAllocations: Send + Sync {
    /// Returns where so many bytes are that the peer calls so, while this value is there. `None` where it has none there.
    fn at(&self, name: u64, len: usize) -> Option<NonNull<u8>>;
}

/// Memory for user data that peers can reach, from [`Transport::allocate`](crate::Transport::allocate): page-aligned
/// and zero at first. It may outlive its transport. Dropping it gives it back, so whoever lends it to an operation
/// keeps it until that is complete, as any buffer.
///
/// Peers that keep to the protocol write to it only where it is lent to a receive, and read it only where
/// it is lent to a send. One that knows the job's secret and keeps to nothing can change it at any time, as it
/// can change all memory of this process where it may attach to it.
pub struct Allocation {
    start: NonNull<u8>,
    len: usize,
    lender: Arc<dyn Lender>,
}

// SAFETY: the bytes belong to this value alone, and its lender may be called from any thread.
unsafe impl Send for Allocation {}
// SAFETY: as above; shared, it only shows them.
unsafe impl Sync for Allocation {}

impl Allocation {
    /// The `len` bytes at `start`.
    ///
    /// # Safety
    /// The bytes are initialised, and stay mapped until `lender` has them back; nobody else of this process touches
    /// them before that.
    pub(crate) const unsafe fn new(
        start: NonNull<u8>,
        len: usize,
        lender: Arc<dyn Lender>,
    ) -> Self {
        Self { start, len, lender }
    }

    /// The first byte.
    #[must_use]
    pub const fn as_ptr(&self) -> NonNull<u8> {
        self.start
    }

    /// Length in bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The bytes.
    #[must_use]
    pub const fn bytes(&self) -> &[u8] {
        // SAFETY: the maker promised initialised bytes that are ours; `self` is borrowed.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }

    /// The bytes, to be written.
    #[must_use]
    pub const fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as for `bytes`; `self` is borrowed for the only reference.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        self.lender.take_back(self.start, self.len);
    }
}

impl fmt::Debug for Allocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Allocation({} bytes)", self.len)
    }
}
