//! Memory of the transport's own that providers read from and write to.
#![allow(unsafe_code)]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ffi::c_void;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use tagwire_libfabric_sys::bindings::fid_mr;
use tagwire_libfabric_sys::calls;

/// Alignment of blocks: a page.
const PAGE: usize = 4096;

/// Names a block of a [`Net`](super::Net).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct BlockId(pub(super) u32);

#[cfg(test)]
impl BlockId {
    /// Returns the name of a block that is in no net.
    pub(crate) const fn of_test() -> Self {
        Self(u32::MAX)
    }
}

/// A place in a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) block: BlockId,
    pub(crate) offset: usize,
}

/// A registration, closed when the last that holds it drops it.
#[derive(Debug, Clone)]
pub(crate) struct Registered(Arc<Open>);

#[derive(Debug)]
struct Open {
    mr: NonNull<fid_mr>,
}

// SAFETY: the object is driven by the thread that drives its net, one at a time; who shares it is of that net too.
unsafe impl Send for Open {}

// SAFETY: as above.
unsafe impl Sync for Open {}

impl Registered {
    pub(crate) fn new(mr: NonNull<fid_mr>) -> Self {
        Self(Arc::new(Open { mr }))
    }

    pub(super) fn as_ptr(&self) -> *mut fid_mr {
        self.0.mr.as_ptr()
    }

    /// What local operations on the memory name.
    pub(super) fn descriptor(&self) -> *mut c_void {
        // SAFETY: open until dropped.
        unsafe { (*self.as_ptr()).mem_desc }
    }

    /// What peers name, where the provider has such keys.
    pub(crate) fn key(&self) -> u64 {
        // SAFETY: as above.
        unsafe { (*self.as_ptr()).key }
    }

    /// Returns whether something else holds it too.
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // SAFETY: open, and closed this once.
        unsafe { calls::fi_close(self.mr.as_ptr().cast()) };
    }
}

/// A piece of memory that stays where it is.
#[derive(Debug)]
pub(super) struct Block {
    start: NonNull<u8>,
    layout: Layout,
    /// Where the provider wants local memory registered.
    pub(super) registered: Option<Registered>,
}

// SAFETY: the memory is ours alone but for the provider, whichever thread drives.
unsafe impl Send for Block {}

impl Block {
    pub(super) fn new(len: usize) -> Self {
        let layout = Layout::from_size_align(len.max(PAGE), PAGE)
            .expect("blocks are far smaller than the address space");
        // SAFETY: the layout is not of size 0.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else {
            handle_alloc_error(layout);
        };
        Self {
            start,
            layout,
            registered: None,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.layout.size()
    }

    pub(super) fn descriptor(&self) -> *mut c_void {
        self.registered
            .as_ref()
            .map_or(ptr::null_mut(), Registered::descriptor)
    }

    /// The byte at `offset`, with `len` bytes from there on.
    #[inline]
    pub(super) fn at(&self, offset: usize, len: usize) -> *mut u8 {
        assert!(
            offset <= self.len() && len <= self.len() - offset,
            "places are inside of their blocks"
        );
        // SAFETY: inside of the block, or one past.
        unsafe { self.start.as_ptr().add(offset) }
    }

    /// Where `address` lies, if `len` bytes from there on are inside.
    #[inline]
    pub(super) fn offset_of(&self, address: usize, len: usize) -> Option<usize> {
        let offset = address.checked_sub(self.start.as_ptr().addr())?;
        (offset <= self.len() && len <= self.len() - offset).then_some(offset)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        self.registered = None;
        // SAFETY: allocated with this layout; the net drops blocks once its endpoint is closed.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}
