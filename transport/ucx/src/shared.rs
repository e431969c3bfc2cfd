//! What UCX's callbacks write to, and the callbacks themselves.
//!
//! A callback is given a pointer to a [`Mark`] or to [`Shared`], both of which stay where they are
//! until the worker is destroyed. Callbacks run on the thread that called UCX, one at a time; what
//! they touch lies in cells, so that a callback from within a send (to the own rank) is as good as
//! one from within progress.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ffi::c_void;
use std::ops::Deref;
use std::ptr::NonNull;
use std::slice;

use tagwire_transport::Upcalls;
use tagwire_ucx_sys::{
    UCP_AM_RECV_ATTR_FLAG_RNDV, UCS_ERR_REJECTED, UCS_INPROGRESS, UCS_OK, Ucp, ucp_am_recv_param_t,
    ucp_ep_h, ucp_tag_recv_info_t, ucs_status_t,
};

use crate::contact::{Inbox, Landing};
use crate::registrations::Registrations;
use crate::upcalls::LentUpcalls;

/// A value that stays where it is until it is dropped, and that C may point to meanwhile.
pub(crate) struct Pinned<T>(NonNull<T>);

impl<T> Pinned<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(NonNull::from(Box::leak(Box::new(value))))
    }

    /// The pointer, as C passes it back.
    pub(crate) const fn as_argument(&self) -> *mut c_void {
        self.0.as_ptr().cast()
    }
}

impl<T> Deref for Pinned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: made from a box that is not taken back before the drop, and only ever shared.
        unsafe { self.0.as_ref() }
    }
}

impl<T> Drop for Pinned<T> {
    fn drop(&mut self) {
        // SAFETY: leaked by `new`, and taken back once. Owners drop it after the worker, so that
        // no callback comes any more.
        drop(unsafe { Box::from_raw(self.0.as_ptr()) });
    }
}

// SAFETY: a pinned value is owned; the pointers that C has are used by callbacks alone, which run
// on the thread that drives the owner.
unsafe impl<T: Send> Send for Pinned<T> {}

/// What callbacks write to.
pub(crate) struct Shared {
    pub(crate) ucp: &'static Ucp,
    /// Something below waits to be looked at.
    pub(crate) dirty: Cell<bool>,
    /// It is more than operations that ended.
    pub(crate) stirred: Cell<bool>,
    /// Operations that ended.
    pub(crate) finished: RefCell<VecDeque<Finished>>,
    /// Peers whose connection broke, by the index of their endpoint.
    pub(crate) broken: RefCell<Vec<u32>>,
    /// Messages, and who sent them.
    pub(crate) inbox: RefCell<Inbox>,
    /// Memory that peers may reach.
    pub(crate) memory: RefCell<Registrations>,
}

// SAFETY: owned by one transport object, which one thread at a time drives; see `Pinned`. (The
// inbox holds the upcalls of a call of progress for the time of that call.)
unsafe impl Send for Shared {}

/// An operation that ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Finished {
    pub(crate) operation: u32,
    pub(crate) status: ucs_status_t,
    /// Of a receive: the sender's tag and the length.
    pub(crate) tag: u64,
    pub(crate) length: u64,
}

/// What C is given to name an operation, or an endpoint.
pub(crate) struct Mark {
    shared: NonNull<Shared>,
    index: u32,
    /// Of an operation: its callback has come, and its request is freed.
    pub(crate) ended: Cell<bool>,
}

impl Mark {
    pub(crate) fn new(shared: &Pinned<Shared>, index: u32) -> Pinned<Self> {
        Pinned::new(Self {
            shared: shared.0,
            index,
            ended: Cell::new(false),
        })
    }

    fn shared(&self) -> &Shared {
        // SAFETY: marks are dropped before what they point to (field order of their owners).
        unsafe { self.shared.as_ref() }
    }
}

// SAFETY: as for `Shared`.
unsafe impl Send for Mark {}

impl Shared {
    pub(crate) fn new(ucp: &'static Ucp, inbox: Inbox) -> Self {
        Self {
            ucp,
            dirty: Cell::new(false),
            stirred: Cell::new(false),
            finished: RefCell::new(VecDeque::new()),
            broken: RefCell::new(Vec::new()),
            inbox: RefCell::new(inbox),
            memory: RefCell::default(),
        }
    }

    /// Sees to it that what was just noted is looked at.
    pub(crate) fn stir(&self) {
        self.dirty.set(true);
        self.stirred.set(true);
    }

    /// Sees to it that what was just noted, if anything, is looked at.
    pub(crate) fn note(&self, anything: bool) {
        if anything {
            self.stir();
        }
    }
}

impl Shared {
    /// Tells what came early, then runs `run`; messages that UCX hands over meanwhile go straight
    /// to `upcalls`.
    #[inline]
    pub(crate) fn with_upcalls<R>(&self, upcalls: &mut dyn Upcalls, run: impl FnOnce() -> R) -> R {
        struct Returned<'a>(&'a Shared);
        impl Drop for Returned<'_> {
            fn drop(&mut self) {
                self.0.inbox.borrow_mut().lend(None);
            }
        }
        let mut inbox = self.inbox.borrow_mut();
        inbox.tell_early(upcalls);
        // SAFETY: `Returned` takes it out of the inbox, where it is private, before the borrow ends.
        let lent = unsafe { LentUpcalls::new(upcalls) };
        let _returned = Returned(self);
        inbox.lend(Some(lent));
        drop(inbox);
        run()
    }
}

/// Notes that the operation of `argument` ended.
///
/// # Safety
/// `argument` is that of a mark, `request` the one that was started with it.
unsafe fn finish(
    request: *mut c_void,
    status: ucs_status_t,
    argument: *mut c_void,
    (tag, length): (u64, u64),
) {
    // SAFETY: marks of operations under way are there, and nobody borrows them exclusively.
    let mark = unsafe { &*argument.cast::<Mark>() };
    let shared = mark.shared();
    mark.ended.set(true);
    shared.dirty.set(true);
    shared.finished.borrow_mut().push_back(Finished {
        operation: mark.index,
        status,
        tag,
        length,
    });
    // SAFETY: the request has ended, and nobody else frees it.
    unsafe { (shared.ucp.ucp_request_free)(request) };
}

/// `ucp_send_nbx_callback_t` of every operation but receives.
pub(crate) unsafe extern "C" fn on_end(
    request: *mut c_void,
    status: ucs_status_t,
    argument: *mut c_void,
) {
    // SAFETY: the worker starts operations with marks.
    unsafe { finish(request, status, argument, (0, 0)) };
}

/// `ucp_tag_recv_nbx_callback_t`.
pub(crate) unsafe extern "C" fn on_receive(
    request: *mut c_void,
    status: ucs_status_t,
    info: *const ucp_tag_recv_info_t,
    argument: *mut c_void,
) {
    // SAFETY: UCX gives what it knows of the message.
    let info = unsafe { *info };
    // SAFETY: the worker starts receives with marks.
    unsafe {
        finish(
            request,
            status,
            argument,
            (info.sender_tag, info.length as u64),
        )
    };
}

/// `ucp_am_recv_data_nbx_callback_t`: a write has landed.
pub(crate) unsafe extern "C" fn on_land(
    request: *mut c_void,
    status: ucs_status_t,
    length: usize,
    argument: *mut c_void,
) {
    // SAFETY: the worker starts receives with marks.
    unsafe { finish(request, status, argument, (0, length as u64)) };
}

/// `ucp_err_handler_cb_t`: the connection of an endpoint broke.
pub(crate) unsafe extern "C" fn on_break(
    argument: *mut c_void,
    _endpoint: ucp_ep_h,
    _status: ucs_status_t,
) {
    // SAFETY: endpoints are made with marks, which outlive them.
    let mark = unsafe { &*argument.cast::<Mark>() };
    let shared = mark.shared();
    shared.stir();
    shared.broken.borrow_mut().push(mark.index);
}

/// The bytes at `start`, or none.
///
/// # Safety
/// `start` is readable for `len` bytes for as long as the result is used.
unsafe fn bytes<'a>(start: *const c_void, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: as above; UCX has copied or owns the bytes, so no peer changes them.
    unsafe { slice::from_raw_parts(start.cast(), len) }
}

/// What a handler of active messages is called with, but for the message itself.
struct Call<'a> {
    shared: &'a Shared,
    /// The bytes are still with their sender.
    is_rendezvous: bool,
}

impl Call<'_> {
    /// # Safety
    /// UCX called a handler with `argument` and `param`, and it has not returned.
    #[inline(always)]
    unsafe fn of(argument: *mut c_void, param: *const ucp_am_recv_param_t) -> Self {
        // SAFETY: handlers are set with the shared part as argument, which outlives the worker.
        let shared = unsafe { &*argument.cast::<Shared>() };
        // SAFETY: UCX describes the message.
        let attributes = unsafe { (*param).recv_attr };
        let has = |flag: u32| attributes & u64::from(flag) != 0;
        Self {
            shared,
            is_rendezvous: has(UCP_AM_RECV_ATTR_FLAG_RNDV),
        }
    }
}

/// `ucp_am_recv_callback_t` of data. The prefix is the message's header, or, where all of it was
/// sent in one piece, its first bytes.
pub(crate) unsafe extern "C" fn on_data(
    argument: *mut c_void,
    header: *const c_void,
    header_length: usize,
    data: *mut c_void,
    length: usize,
    param: *const ucp_am_recv_param_t,
) -> ucs_status_t {
    // SAFETY: UCX calls.
    let call = unsafe { Call::of(argument, param) };
    let mut inbox = call.shared.inbox.borrow_mut();
    if call.is_rendezvous {
        // Ours are sent eagerly, all of them.
        inbox.complain("a message by rendezvous");
        return UCS_OK;
    }
    // SAFETY: UCX lends header and data for the time of the callback.
    let (header, body) = unsafe { (bytes(header, header_length), bytes(data, length)) };
    inbox.take_data(header, body);
    UCS_OK
}

/// `ucp_am_recv_callback_t` of control messages.
pub(crate) unsafe extern "C" fn on_control(
    argument: *mut c_void,
    _header: *const c_void,
    _header_length: usize,
    data: *mut c_void,
    length: usize,
    param: *const ucp_am_recv_param_t,
) -> ucs_status_t {
    // SAFETY: UCX calls.
    let call = unsafe { Call::of(argument, param) };
    let mut inbox = call.shared.inbox.borrow_mut();
    if call.is_rendezvous {
        inbox.complain("a control message by rendezvous");
        return UCS_OK;
    }
    call.shared.stir();
    // SAFETY: UCX lends the data for the time of the callback.
    inbox.take_control(unsafe { bytes(data, length) });
    UCS_OK
}

/// What the sender of a refused write is told, where UCX has a way to: it is no failure of anybody.
pub(crate) const REFUSED: ucs_status_t = UCS_ERR_REJECTED;

/// `ucp_am_recv_callback_t` of writes. What has come with the message is put in its place at once;
/// what its sender still has, by rendezvous, is fetched once UCX has returned.
pub(crate) unsafe extern "C" fn on_write(
    argument: *mut c_void,
    header: *const c_void,
    header_length: usize,
    data: *mut c_void,
    length: usize,
    param: *const ucp_am_recv_param_t,
) -> ucs_status_t {
    // SAFETY: UCX calls.
    let call = unsafe { Call::of(argument, param) };
    let shared = call.shared;
    // Of bytes that have come UCX knows no refusal.
    let refused = match call.is_rendezvous {
        true => REFUSED,
        false => UCS_OK,
    };
    let mut inbox = shared.inbox.borrow_mut();
    // SAFETY: UCX lends the header for the time of the callback.
    let write = inbox.take_write(unsafe { bytes(header, header_length) }, length);
    let Some((from, access)) = write else {
        return refused;
    };
    let target = shared.memory.borrow().writable_part(&access);
    let Some(target) = target else {
        shared.note(inbox.end_write(from, None));
        return refused;
    };
    if call.is_rendezvous {
        let Some(message) = NonNull::new(data) else {
            return refused;
        };
        let landing = Landing {
            from,
            access,
            message,
        };
        if !inbox.begin_landing(landing) {
            shared.note(inbox.end_write(from, None));
            return refused;
        }
        shared.stir();
        return UCS_INPROGRESS;
    }
    // SAFETY: the memory was registered as one to be written, so lent, and the target is as long as
    // the message, whose bytes UCX lends for the time of the callback; to the own rank both may be
    // the same.
    unsafe { std::ptr::copy(data.cast(), target.start.cast_mut(), length) };
    shared.note(inbox.end_write(from, Some(access.tag.get())));
    UCS_OK
}
