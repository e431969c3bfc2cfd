//! A provider that answers what few do, put between a net and its own: the operation tables of its
//! objects are exchanged for ones that follow a script. For tests.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ffi::c_void;

use tagwire_libfabric_sys::bindings::*;

use super::net::Net;

/// What becomes of a completion on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The next of a send ends with this error.
    Send(u64),
    /// The next of a receive ends with this error.
    Receive(u64),
    /// The queue is read with this answer.
    Queue(u64),
}

thread_local! {
    /// Of so many posts to the provider, all but the last find it busy; 0: none does.
    static PATIENCE: Cell<u32> = const { Cell::new(0) };
    static POSTS: Cell<u32> = const { Cell::new(0) };
    static FATES: RefCell<VecDeque<Fate>> = const { RefCell::new(VecDeque::new()) };
    static FAILED: Cell<Option<fi_cq_err_entry>> = const { Cell::new(None) };
    static OWN: Cell<Option<(fi_ops_msg, fi_ops_cq)>> = const { Cell::new(None) };
}

/// From now on only each `patience`th post of a faulty net gets through.
pub(crate) fn be_busy(patience: u32) {
    PATIENCE.set(patience);
}

/// What happens to a faulty net's completions, one after the other.
pub(crate) fn destine(fate: Fate) {
    FATES.with_borrow_mut(|fates| fates.push_back(fate));
}

/// Whether everything that was destined has happened.
pub(crate) fn is_fulfilled() -> bool {
    FATES.with_borrow(VecDeque::is_empty) && FAILED.get().is_none()
}

fn finds_it_busy() -> bool {
    let patience = PATIENCE.get();
    POSTS.set(POSTS.get() + 1);
    patience > 0 && !POSTS.get().is_multiple_of(patience)
}

const BUSY: isize = -(FI_EAGAIN as isize);

fn own() -> (fi_ops_msg, fi_ops_cq) {
    OWN.get().expect("a net of this thread is faulty")
}

unsafe extern "C" fn inject(
    ep: *mut fid_ep,
    bytes: *const c_void,
    len: usize,
    to: fi_addr_t,
) -> isize {
    if finds_it_busy() {
        return BUSY;
    }
    // SAFETY: the caller's own call.
    unsafe { (own().0.inject.unwrap())(ep, bytes, len, to) }
}

unsafe extern "C" fn send(
    ep: *mut fid_ep,
    bytes: *const c_void,
    len: usize,
    desc: *mut c_void,
    to: fi_addr_t,
    context: *mut c_void,
) -> isize {
    if finds_it_busy() {
        return BUSY;
    }
    // SAFETY: the caller's own call.
    unsafe { (own().0.send.unwrap())(ep, bytes, len, desc, to, context) }
}

unsafe extern "C" fn sendv(
    ep: *mut fid_ep,
    iov: *const libc::iovec,
    desc: *mut *mut c_void,
    count: usize,
    to: fi_addr_t,
    context: *mut c_void,
) -> isize {
    if finds_it_busy() {
        return BUSY;
    }
    // SAFETY: the caller's own call.
    unsafe { (own().0.sendv.unwrap())(ep, iov, desc, count, to, context) }
}

/// Reads one completion, and lets happen to it what is destined for its kind.
unsafe extern "C" fn read(cq: *mut fid_cq, entries: *mut c_void, _count: usize) -> isize {
    let fate = FATES.with_borrow(|fates| fates.front().copied());
    if let Some(Fate::Queue(error)) = fate {
        FATES.with_borrow_mut(VecDeque::pop_front);
        return -(error as isize);
    }
    // SAFETY: the caller's own call, for one entry of those that it has room for.
    let count = unsafe { (own().1.read.unwrap())(cq, entries, 1) };
    let (Some(fate), 1) = (fate, count) else {
        return count;
    };
    // SAFETY: the queue's entries are of this format, and one was read.
    let entry = unsafe { *entries.cast::<fi_cq_tagged_entry>() };
    let error = match fate {
        Fate::Send(error) if entry.flags & FI_SEND != 0 => error,
        Fate::Receive(error) if entry.flags & FI_RECV != 0 => error,
        _ => return count,
    };
    FATES.with_borrow_mut(VecDeque::pop_front);
    // SAFETY: numbers and pointers, for which zero is a value.
    let mut failed: fi_cq_err_entry = unsafe { std::mem::zeroed() };
    failed.op_context = entry.op_context;
    failed.flags = entry.flags;
    failed.err = error as i32;
    FAILED.set(Some(failed));
    -(FI_EAVAIL as isize)
}

unsafe extern "C" fn readerr(cq: *mut fid_cq, entry: *mut fi_cq_err_entry, flags: u64) -> isize {
    match FAILED.take() {
        Some(failed) => {
            // SAFETY: the caller has room for an entry.
            unsafe { entry.write(failed) };
            1
        }
        // SAFETY: the caller's own call.
        None => unsafe { (own().1.readerr.unwrap())(cq, entry, flags) },
    }
}

impl Net {
    /// Makes this net follow the script of this thread; one net of a thread can. Answers are the
    /// provider's own but for what the script says.
    pub(crate) fn make_faulty(&mut self) {
        // SAFETY: open objects, which only this thread uses; the new tables live for ever, and are
        // the provider's but for the entries that pass calls on.
        unsafe {
            let (ep, cq) = (self.endpoint.as_ptr(), self.cq.as_ptr());
            OWN.set(Some((*(*ep).msg, *(*cq).ops)));
            let posts = fi_ops_msg {
                inject: Some(inject),
                send: Some(send),
                sendv: Some(sendv),
                ..*(*ep).msg
            };
            let reads = fi_ops_cq {
                read: Some(read),
                readerr: Some(readerr),
                ..*(*cq).ops
            };
            (*ep).msg = Box::leak(Box::new(posts));
            (*cq).ops = Box::leak(Box::new(reads));
        }
    }
}
