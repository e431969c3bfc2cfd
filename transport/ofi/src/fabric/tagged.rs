//! Posting tagged operations to an endpoint.
#![allow(unsafe_code)]

use std::ptr;

use tagwire_libfabric_sys::bindings::*;
use tagwire_libfabric_sys::calls;
use tagwire_transport::data::{ReadRegion, WriteRegion};

use super::context::OpId;
use super::memory::{BlockId, Place, Registered};
use super::net::{Net, Peer};
use super::post::{Took, descriptor, region};

/// What a tagged receive or a look accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Pattern {
    pub(crate) tag: u64,
    pub(crate) ignore: u64,
}

impl Pattern {
    /// Just this tag.
    pub(crate) const fn exact(tag: u64) -> Self {
        Self { tag, ignore: 0 }
    }
}

impl Net {
    /// Sends a short tagged message; done on return.
    #[inline]
    pub(crate) fn inject_tagged(&self, to: Peer, tag: u64, bytes: &[u8]) -> Took {
        // SAFETY: the provider copies the bytes before it returns.
        self.took(unsafe {
            calls::fi_tinject(
                self.endpoint.as_ptr(),
                bytes.as_ptr().cast(),
                bytes.len(),
                to.0,
                tag,
            )
        })
    }

    /// Sends an empty tagged message with `data` for the receiver's completion; done on return.
    pub(crate) fn inject_word(&self, to: Peer, tag: u64, data: u64) -> Took {
        // SAFETY: no bytes are read.
        self.took(unsafe {
            calls::fi_tinjectdata(
                self.endpoint.as_ptr(),
                ptr::dangling::<u8>().cast(),
                0,
                data,
                to.0,
                tag,
            )
        })
    }

    /// Sends the `len` bytes at `place`, which are left alone until `op` completes.
    #[inline]
    pub(crate) fn send_tagged(
        &mut self,
        to: Peer,
        tag: u64,
        place: Place,
        len: usize,
        op: OpId,
    ) -> Took {
        let context = self.contexts.pointer(op);
        let block = &self.blocks[place.block.0 as usize];
        // SAFETY: the bytes are inside of the block, which lives until the endpoint is closed.
        self.took(unsafe {
            calls::fi_tsend(
                self.endpoint.as_ptr(),
                block.at(place.offset, len).cast(),
                len,
                block.descriptor(),
                to.0,
                tag,
                context,
            )
        })
    }

    /// Sends `data`.
    ///
    /// # Safety
    /// `data` is lent until `op` has completed, with the registration.
    pub(crate) unsafe fn send_region_tagged(
        &mut self,
        to: Peer,
        tag: u64,
        data: ReadRegion,
        registered: Option<&Registered>,
        op: OpId,
    ) -> Took {
        let context = self.contexts.pointer(op);
        // SAFETY: the caller says that the buffer is lent until the operation ends.
        self.took(unsafe {
            calls::fi_tsend(
                self.endpoint.as_ptr(),
                data.as_ptr().cast(),
                data.len(),
                descriptor(registered),
                to.0,
                tag,
                context,
            )
        })
    }

    /// Posts a receive into `data`; what does not fit goes to `rest`, whose bytes nobody wants.
    ///
    /// # Safety
    /// `data` is lent until `op` has completed, with the registration.
    #[inline]
    pub(crate) unsafe fn receive_tagged(
        &mut self,
        pattern: Pattern,
        data: WriteRegion,
        registered: Option<&Registered>,
        rest: Option<(BlockId, usize)>,
        op: OpId,
    ) -> Took {
        let context = self.contexts.pointer(op);
        let Some((block, len)) = rest else {
            // SAFETY: the caller says that the buffer is lent until the operation ends.
            return self.took(unsafe {
                calls::fi_trecv(
                    self.endpoint.as_ptr(),
                    data.as_ptr().cast(),
                    data.len(),
                    descriptor(registered),
                    fi_addr_t::MAX,
                    pattern.tag,
                    pattern.ignore,
                    context,
                )
            });
        };
        let block = &self.blocks[block.0 as usize];
        let all = [
            region(data.as_ptr(), data.len()),
            region(block.at(0, len), len),
        ];
        let mut descriptors = [descriptor(registered), block.descriptor()];
        // A buffer of no bytes is not a piece.
        let first = usize::from(data.is_empty());
        let message = fi_msg_tagged {
            msg_iov: all[first..].as_ptr(),
            desc: descriptors[first..].as_mut_ptr(),
            iov_count: 2 - first,
            addr: fi_addr_t::MAX,
            tag: pattern.tag,
            ignore: pattern.ignore,
            context,
            data: 0,
        };
        // SAFETY: the buffer was lent until the operation ends; the block lives until the endpoint
        // is closed, and nobody reads it.
        self.took(unsafe {
            calls::fi_trecvmsg(self.endpoint.as_ptr(), &raw const message, FI_COMPLETION)
        })
    }

    /// Posts a receive into the `len` bytes at `place`.
    pub(crate) fn receive_tagged_at(
        &mut self,
        pattern: Pattern,
        place: Place,
        len: usize,
        op: OpId,
    ) -> Took {
        let context = self.contexts.pointer(op);
        let block = &self.blocks[place.block.0 as usize];
        // SAFETY: the bytes are inside of the block, which lives until the endpoint is closed.
        self.took(unsafe {
            calls::fi_trecv(
                self.endpoint.as_ptr(),
                block.at(place.offset, len).cast(),
                len,
                block.descriptor(),
                fi_addr_t::MAX,
                pattern.tag,
                pattern.ignore,
                context,
            )
        })
    }

    /// Looks for a message and leaves it.
    pub(crate) fn peek(&mut self, pattern: Pattern, op: OpId) -> Took {
        let message = fi_msg_tagged {
            msg_iov: ptr::null(),
            desc: ptr::null_mut(),
            iov_count: 0,
            addr: fi_addr_t::MAX,
            tag: pattern.tag,
            ignore: pattern.ignore,
            context: self.contexts.pointer(op),
            data: 0,
        };
        let flags = FI_PEEK | FI_COMPLETION;
        // SAFETY: a look takes no bytes.
        self.took(unsafe { calls::fi_trecvmsg(self.endpoint.as_ptr(), &raw const message, flags) })
    }
}
