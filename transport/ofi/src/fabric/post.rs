//! Posting operations to an endpoint.
#![allow(unsafe_code)]

use std::ffi::c_void;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use libc::iovec;
use tagwire_libfabric_sys::bindings::*;
use tagwire_libfabric_sys::calls;
use tagwire_transport::data::{ReadRegion, WriteRegion};

use super::context::OpId;
use super::memory::{BlockId, Place, Registered};
use super::net::{Net, Peer};

/// What became of a posted operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Took {
    /// It is under way.
    Yes,
    /// No room just now.
    Busy,
    /// The library's negative number.
    Failed(i32),
}

/// How often the provider had no room. Providers that have connections make progress before they refuse: what would have ended a
/// sleep may be gone by then, the end of a handshake above all.
#[derive(Debug, Clone, Default)]
pub(crate) struct Refusals(Arc<AtomicU32>);

impl Refusals {
    pub(crate) fn count(&self) -> u32 {
        self.0.load(Ordering::SeqCst)
    }

    #[cold]
    pub(crate) fn note(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Memory of a peer.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Remote {
    pub(crate) address: u64,
    pub(crate) key: u64,
}

pub(super) fn descriptor(registered: Option<&Registered>) -> *mut c_void {
    registered.map_or(ptr::null_mut(), Registered::descriptor)
}

pub(super) fn region(start: *const u8, len: usize) -> iovec {
    iovec {
        iov_base: start.cast_mut().cast(),
        iov_len: len,
    }
}

impl Net {
    /// Returns what became of an operation for which the library returned `code`.
    #[inline]
    pub(super) fn took(&self, code: isize) -> Took {
        match code {
            0.. => Took::Yes,
            code if code == -(FI_EAGAIN as isize) => {
                self.refusals.note();
                Took::Busy
            }
            code => Took::Failed(code as i32),
        }
    }

    /// Gives all of a block to the provider, to receive one message, or with `multi` as many as fit.
    pub(crate) fn receive_into(&mut self, block: BlockId, multi: bool, op: OpId) -> Took {
        let context = self.contexts.pointer(op);
        let block = &self.blocks[block.0 as usize];
        let memory = region(block.at(0, 0), block.len());
        let mut descriptor = block.descriptor();
        let message = fi_msg {
            msg_iov: &raw const memory,
            desc: &raw mut descriptor,
            iov_count: 1,
            addr: fi_addr_t::MAX,
            context,
            data: 0,
        };
        let flags = FI_COMPLETION | if multi { FI_MULTI_RECV } else { 0 };
        // SAFETY: the block stays where it is until the endpoint is closed, and is not written to
        // before the provider says that it is done with it.
        self.took(unsafe { calls::fi_recvmsg(self.endpoint.as_ptr(), &raw const message, flags) })
    }

    /// Sends a short message; done on return.
    #[inline]
    pub(crate) fn inject(&self, to: Peer, bytes: &[u8]) -> Took {
        // SAFETY: the provider copies the bytes before it returns.
        self.took(unsafe {
            calls::fi_inject(
                self.endpoint.as_ptr(),
                bytes.as_ptr().cast(),
                bytes.len(),
                to.0,
            )
        })
    }

    /// Sends the `len` bytes at `place`, which are left alone until `op` completes.
    #[inline]
    pub(crate) fn send(&mut self, to: Peer, place: Place, len: usize, op: OpId) -> Took {
        let context = self.contexts.pointer(op);
        let block = &self.blocks[place.block.0 as usize];
        // SAFETY: the bytes are inside of the block, which lives until the endpoint is closed.
        self.took(unsafe {
            calls::fi_send(
                self.endpoint.as_ptr(),
                block.at(place.offset, len).cast(),
                len,
                block.descriptor(),
                to.0,
                context,
            )
        })
    }

    /// Sends the `len` bytes at `place`, then `data`: both are left alone until `op` completes.
    ///
    /// # Safety
    /// `data` is lent until `op` has completed, with the registration.
    pub(crate) unsafe fn send_both(
        &mut self,
        to: Peer,
        place: Place,
        len: usize,
        data: ReadRegion,
        registered: Option<&Registered>,
        op: OpId,
    ) -> Took {
        let context = self.contexts.pointer(op);
        let block = &self.blocks[place.block.0 as usize];
        let pieces = [
            region(block.at(place.offset, len), len),
            region(data.as_ptr(), data.len()),
        ];
        let mut descriptors = [block.descriptor(), descriptor(registered)];
        let message = fi_msg {
            msg_iov: pieces.as_ptr(),
            desc: descriptors.as_mut_ptr(),
            iov_count: if data.is_empty() { 1 } else { 2 },
            addr: to.0,
            context,
            data: 0,
        };
        // SAFETY: the first piece as for `send`; of the second the caller says that it is lent.
        self.took(unsafe {
            calls::fi_sendmsg(self.endpoint.as_ptr(), &raw const message, FI_COMPLETION)
        })
    }

    /// Writes `data` to a peer's memory. The operation ends once it is there; with `immediate`, of which
    /// the peer is told then, once the buffer may be used again.
    ///
    /// # Safety
    /// `data` is lent until `op` has completed, with the registration.
    pub(crate) unsafe fn write(
        &mut self,
        to: Peer,
        data: ReadRegion,
        registered: Option<&Registered>,
        remote: Remote,
        immediate: Option<u64>,
        op: OpId,
    ) -> Took {
        let memory = region(data.as_ptr(), data.len());
        let flags = match immediate {
            Some(_) => FI_COMPLETION | FI_REMOTE_CQ_DATA,
            None => FI_COMPLETION | FI_DELIVERY_COMPLETE,
        };
        let message = |mut message: fi_msg_rma, endpoint| {
            message.data = immediate.unwrap_or(0);
            // SAFETY: the caller says that the buffer is lent until the operation ends.
            unsafe { calls::fi_writemsg(endpoint, &raw const message, flags) }
        };
        self.access(to, memory, registered, remote, op, message)
    }

    /// Reads a peer's memory into `data`.
    ///
    /// # Safety
    /// `data` is lent until `op` has completed, with the registration.
    pub(crate) unsafe fn fetch(
        &mut self,
        from: Peer,
        data: WriteRegion,
        registered: Option<&Registered>,
        remote: Remote,
        op: OpId,
    ) -> Took {
        let memory = region(data.as_ptr(), data.len());
        let message = |message: fi_msg_rma, endpoint| {
            // SAFETY: the caller says that the buffer is lent until the operation ends.
            unsafe { calls::fi_readmsg(endpoint, &raw const message, FI_COMPLETION) }
        };
        self.access(from, memory, registered, remote, op, message)
    }

    fn access(
        &mut self,
        peer: Peer,
        memory: iovec,
        registered: Option<&Registered>,
        remote: Remote,
        op: OpId,
        post: impl FnOnce(fi_msg_rma, *mut fid_ep) -> isize,
    ) -> Took {
        let context = self.contexts.pointer(op);
        let mut descriptor = descriptor(registered);
        let target = fi_rma_iov {
            addr: remote.address,
            len: memory.iov_len,
            key: remote.key,
        };
        let message = fi_msg_rma {
            msg_iov: &raw const memory,
            desc: &raw mut descriptor,
            iov_count: 1,
            addr: peer.0,
            rma_iov: &raw const target,
            rma_iov_count: 1,
            context,
            data: 0,
        };
        self.took(post(message, self.endpoint.as_ptr()))
    }

    /// Asks the provider to give `op` up; its completion says what became of it. One that has ended
    /// is left alone, with whichever operation has its slot now.
    pub(crate) fn cancel(&mut self, op: OpId) {
        let Some(context) = self.contexts.find(op).filter(|_| !self.is_closed()) else {
            return;
        };
        // SAFETY: an open endpoint; a context that no operation has is no one's.
        unsafe { calls::fi_cancel(self.endpoint.as_ptr(), context) };
    }
}
