//! UCX's context, worker and endpoints, as calls that name what must hold.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_void};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::slice;

use tagwire_base::Error as BaseError;
use tagwire_transport::Result;
use tagwire_ucx_sys::*;

use crate::config::UcxOptions;
use crate::library::Library;
use crate::piece::Piece;
use crate::settings::settings;
use crate::shared::{
    Mark, Pinned, Shared, on_break, on_control, on_data, on_end, on_land, on_receive, on_write,
};

/// Active message numbers. Upcalls are lent the bytes where they came to. For those that UCX is to keep
/// (`UCP_AM_FLAG_PERSISTENT_DATA`) it takes memory and copies, and where it gets none it drops the
/// message without a word (docs/libraries.md).
const DATA: u32 = 1;
const CONTROL: u32 = 3;
const WRITE: u32 = 4;

/// Messages that keep their order are sent eagerly.
const EAGER: u32 = UCP_AM_SEND_FLAG_EAGER;

/// The longest write that is sent eagerly; the bytes of longer ones stay with their sender until
/// they are asked for. At this length both ways take as long over shared memory, and by TCP the
/// eager one takes two thirds of the other's time; at 1 MiB it takes 1.3 to 1.5 times as long. UCX's
/// own choice differs by version: by TCP, 1.13 asks from 32 KiB on, which takes twice as long there.
const MAX_EAGER_WRITE: usize = 64 * 1024;

/// A context: the library, opened with a configuration.
pub(crate) struct Context {
    ucp: &'static Ucp,
    raw: ucp_context_h,
    /// A worker has a descriptor to sleep on.
    pub(crate) wakes: bool,
}

impl Context {
    /// Opens a context for `features`, with wake-ups where the transports have them.
    pub(crate) fn open(library: Library, options: &UcxOptions, features: u64) -> Result<Self> {
        let wakeup = u64::from(UCP_FEATURE_WAKEUP);
        match Self::with_features(library, options, features | wakeup) {
            Ok(raw) => Ok(Self {
                ucp: library.ucp,
                raw,
                wakes: true,
            }),
            Err(_) => Ok(Self {
                ucp: library.ucp,
                raw: Self::with_features(library, options, features)?,
                wakes: false,
            }),
        }
    }

    fn with_features(
        library: Library,
        options: &UcxOptions,
        features: u64,
    ) -> Result<ucp_context_h> {
        let ucp = library.ucp;
        let config = Configuration::read(ucp)?;
        for (name, value) in settings(options, version(ucp)) {
            config.set(name, value)?;
        }
        // SAFETY: all fields of the parameters may be zero; the mask names those that are set.
        let mut params: ucp_params_t = unsafe { MaybeUninit::zeroed().assume_init() };
        params.field_mask = u64::from(UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_TAG_SENDER_MASK);
        params.features = features;
        params.tag_sender_mask = crate::layout::SOURCE_MASK;
        let mut raw = ptr::null_mut();
        // SAFETY: parameters and configuration live through the call, which writes the handle.
        let status = unsafe {
            (ucp.ucp_init_version)(
                UCP_API_MAJOR,
                UCP_API_MINOR,
                &raw const params,
                config.raw,
                &raw mut raw,
            )
        };
        check(ucp, status, || no_transport(options))?;
        Ok(raw)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: the worker, which uses it, is destroyed before (field order of `Worker`).
        unsafe { (self.ucp.ucp_cleanup)(self.raw) };
    }
}

// SAFETY: a context may be used from any thread, one at a time.
unsafe impl Send for Context {}

fn no_transport(options: &UcxOptions) -> String {
    match &options.transports {
        Some(names) => format!(
            "UCX with the transports '{names}' (after 'ucx:'; `tagwire info --why-not ucx:{names}` \
             lists what there is, and TAGWIRE_UCX names another library)"
        ),
        None => "UCX with the transports of its own choice".to_owned(),
    }
}

/// UCX's configuration, before a context is made of it.
struct Configuration {
    ucp: &'static Ucp,
    raw: *mut ucp_config_t,
}

impl Configuration {
    fn read(ucp: &'static Ucp) -> Result<Self> {
        let mut raw = ptr::null_mut();
        // SAFETY: neither prefix nor file is asked for; the call writes the handle.
        let status = unsafe { (ucp.ucp_config_read)(ptr::null(), ptr::null(), &raw mut raw) };
        check(ucp, status, || "UCX's configuration".to_owned())?;
        Ok(Self { ucp, raw })
    }

    fn set(&self, name: &str, value: &str) -> Result<()> {
        let bad = |expected: &str| BaseError::BadSetting {
            name: format!("UCX_{name}"),
            value: value.to_owned(),
            expected: expected.to_owned(),
        };
        let string = |text: &str| CString::new(text).map_err(|_| bad("text without a zero byte"));
        let (name, text) = (string(name)?, string(value)?);
        // SAFETY: the handle is open, the strings live through the call.
        let status =
            unsafe { (self.ucp.ucp_config_modify)(self.raw, name.as_ptr(), text.as_ptr()) };
        if status == UCS_OK {
            Ok(())
        } else {
            Err(bad(&format!("UCX says: {}", status_text(self.ucp, status))).into())
        }
    }
}

impl Drop for Configuration {
    fn drop(&mut self) {
        // SAFETY: opened by `read`, released once.
        unsafe { (self.ucp.ucp_config_release)(self.raw) };
    }
}

/// A status as an error that says what was tried.
fn check(ucp: &Ucp, status: ucs_status_t, what: impl FnOnce() -> String) -> Result<()> {
    if status == UCS_OK {
        return Ok(());
    }
    Err(BaseError::System {
        what: what(),
        source: std::io::Error::other(status_text(ucp, status)),
    }
    .into())
}

/// UCX's words for a status.
pub(crate) fn status_text(ucp: &Ucp, status: ucs_status_t) -> String {
    // SAFETY: any status may be asked for; the string is the library's and stays.
    unsafe { CStr::from_ptr((ucp.ucs_status_string)(status)) }
        .to_string_lossy()
        .into_owned()
}

/// The library's version.
pub(crate) fn version(ucp: &Ucp) -> (u32, u32, u32) {
    let (mut major, mut minor, mut release) = (0, 0, 0);
    // SAFETY: the call writes the three numbers.
    unsafe { (ucp.ucp_get_version)(&raw mut major, &raw mut minor, &raw mut release) };
    (major, minor, release)
}

/// An endpoint: the way to one peer. Valid until it is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Endpoint(NonNull<ucp_ep>);

// SAFETY: used through the worker alone, on the thread that drives it.
unsafe impl Send for Endpoint {}

/// What became of a wish to be woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Armed {
    /// The descriptor becomes readable with the next event.
    Yes,
    /// There are events already.
    Busy,
}

/// A worker: what one thread at a time drives.
pub(crate) struct Worker {
    ucp: &'static Ucp,
    raw: ucp_worker_h,
    pub(crate) address: Vec<u8>,
    /// After the worker, which uses it.
    context: Context,
}

// SAFETY: created for threads that take turns (`UCS_THREAD_MODE_SERIALIZED`).
unsafe impl Send for Worker {}

impl Worker {
    /// A worker whose messages go to `shared`, which outlives it.
    pub(crate) fn open(context: Context, shared: &Pinned<Shared>) -> Result<Self> {
        let ucp = context.ucp;
        // SAFETY: as for the parameters of a context.
        let mut params: ucp_worker_params_t = unsafe { MaybeUninit::zeroed().assume_init() };
        params.field_mask = u64::from(UCP_WORKER_PARAM_FIELD_THREAD_MODE);
        params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
        let mut raw = ptr::null_mut();
        // SAFETY: the context is open; the call writes the handle.
        let status =
            unsafe { (ucp.ucp_worker_create)(context.raw, &raw const params, &raw mut raw) };
        check(ucp, status, || "a worker of UCX".to_owned())?;
        let mut worker = Self {
            ucp,
            raw,
            address: Vec::new(),
            context,
        };
        worker.address = worker.read_address()?;
        worker.handle(DATA, on_data, shared)?;
        worker.handle(CONTROL, on_control, shared)?;
        worker.handle(WRITE, on_write, shared)?;
        Ok(worker)
    }

    fn read_address(&self) -> Result<Vec<u8>> {
        // SAFETY: as for the parameters of a context.
        let mut attributes: ucp_worker_attr_t = unsafe { MaybeUninit::zeroed().assume_init() };
        attributes.field_mask = u64::from(UCP_WORKER_ATTR_FIELD_ADDRESS);
        // SAFETY: the worker is open; the call fills the fields that the mask names.
        let status = unsafe { (self.ucp.ucp_worker_query)(self.raw, &raw mut attributes) };
        check(self.ucp, status, || {
            "the address of a worker of UCX".to_owned()
        })?;
        // SAFETY: the library says where the address is and how long; it stays until released.
        let address = unsafe {
            slice::from_raw_parts(attributes.address.cast::<u8>(), attributes.address_length)
        }
        .to_vec();
        // SAFETY: given by the query, released once, copied before.
        unsafe { (self.ucp.ucp_worker_release_address)(self.raw, attributes.address) };
        Ok(address)
    }

    fn handle(
        &self,
        number: u32,
        handler: unsafe extern "C" fn(
            *mut c_void,
            *const c_void,
            usize,
            *mut c_void,
            usize,
            *const ucp_am_recv_param_t,
        ) -> ucs_status_t,
        shared: &Pinned<Shared>,
    ) -> Result<()> {
        let params = ucp_am_handler_param_t {
            field_mask: u64::from(
                UCP_AM_HANDLER_PARAM_FIELD_ID
                    | UCP_AM_HANDLER_PARAM_FIELD_FLAGS
                    | UCP_AM_HANDLER_PARAM_FIELD_CB
                    | UCP_AM_HANDLER_PARAM_FIELD_ARG,
            ),
            id: number,
            flags: UCP_AM_FLAG_WHOLE_MSG,
            cb: Some(handler),
            arg: shared.as_argument(),
        };
        // SAFETY: the argument outlives the worker, as the caller of `open` sees to.
        let status =
            unsafe { (self.ucp.ucp_worker_set_am_recv_handler)(self.raw, &raw const params) };
        check(self.ucp, status, || {
            "a handler of active messages in UCX".to_owned()
        })
    }

    /// Whether there is something to sleep on.
    pub(crate) const fn wakes(&self) -> bool {
        self.context.wakes
    }

    /// The descriptor that becomes readable once the worker was [armed](Worker::arm) and something
    /// happened; a copy, which may outlive the worker.
    pub(crate) fn descriptor(&self) -> Option<OwnedFd> {
        if !self.context.wakes {
            return None;
        }
        let mut number = -1;
        // SAFETY: the worker is open; the call writes the number.
        let status = unsafe { (self.ucp.ucp_worker_get_efd)(self.raw, &raw mut number) };
        if status != UCS_OK || number < 0 {
            return None;
        }
        // SAFETY: the descriptor is the worker's and open while it lives.
        let descriptor = unsafe { BorrowedFd::borrow_raw(number) };
        rustix::io::fcntl_dupfd_cloexec(descriptor, 0).ok()
    }

    /// Asks to be woken.
    pub(crate) fn arm(&self) -> Armed {
        // SAFETY: the worker is open, and driven by this thread.
        match unsafe { (self.ucp.ucp_worker_arm)(self.raw) } {
            UCS_OK => Armed::Yes,
            _ => Armed::Busy,
        }
    }

    /// Makes progress; returns how many things happened.
    #[inline]
    pub(crate) fn progress(&self) -> u32 {
        // SAFETY: the worker is open, and driven by this thread.
        unsafe { (self.ucp.ucp_worker_progress)(self.raw) }
    }

    /// An endpoint to the worker at `address`; `mark` names it when it breaks, and outlives it.
    pub(crate) fn connect(
        &self,
        address: &[u8],
        mark: &Pinned<Mark>,
    ) -> Result<Endpoint, ucs_status_t> {
        // SAFETY: as for the parameters of a context.
        let mut params: ucp_ep_params_t = unsafe { MaybeUninit::zeroed().assume_init() };
        params.field_mask = u64::from(
            UCP_EP_PARAM_FIELD_REMOTE_ADDRESS
                | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE
                | UCP_EP_PARAM_FIELD_ERR_HANDLER,
        );
        params.address = address.as_ptr().cast();
        params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
        params.err_handler = ucp_err_handler_t {
            cb: Some(on_break),
            arg: mark.as_argument(),
        };
        let mut raw = ptr::null_mut();
        // SAFETY: the address is one that a worker of this job made, which its digest says, and
        // lives through the call; the mark outlives the endpoint.
        let status = unsafe { (self.ucp.ucp_ep_create)(self.raw, &raw const params, &raw mut raw) };
        NonNull::new(raw)
            .filter(|_| status == UCS_OK)
            .map(Endpoint)
            .ok_or(status)
    }

    /// Closes `endpoint` at once: what is under way on it ends with an error.
    ///
    /// # Safety
    /// The endpoint was not closed before and is not used after. The mark stays until it ended.
    pub(crate) unsafe fn close(&self, endpoint: Endpoint, mark: &Pinned<Mark>) -> Started {
        let mut param = request(mark);
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
        param.flags = UCP_EP_CLOSE_FLAG_FORCE;
        // SAFETY: as the caller says.
        let pointer = unsafe { (self.ucp.ucp_ep_close_nbx)(endpoint.0.as_ptr(), &raw const param) };
        Started::from_pointer(pointer)
    }

    /// Ends once what was sent by this worker is on its way.
    ///
    /// # Safety
    /// The mark stays until it ended.
    pub(crate) unsafe fn flush_all(&self, mark: &Pinned<Mark>) -> Started {
        let param = request(mark);
        // SAFETY: the worker is open.
        let pointer = unsafe { (self.ucp.ucp_worker_flush_nbx)(self.raw, &raw const param) };
        Started::from_pointer(pointer)
    }

    /// Sends a control message.
    ///
    /// # Safety
    /// As [`Worker::send_message`].
    pub(crate) unsafe fn send_control(
        &self,
        endpoint: Endpoint,
        data: Piece,
        mark: &Pinned<Mark>,
    ) -> Started {
        // SAFETY: as the caller says.
        unsafe { self.send(endpoint, (CONTROL, EAGER), Piece::NONE, data, mark) }
    }

    /// Sends a write: its bytes with it, or, of a long one, once they are asked for.
    ///
    /// # Safety
    /// As [`Worker::send_message`].
    pub(crate) unsafe fn send_write(
        &self,
        endpoint: Endpoint,
        header: Piece,
        data: Piece,
        mark: &Pinned<Mark>,
    ) -> Started {
        let flags = if data.len <= MAX_EAGER_WRITE {
            EAGER
        } else {
            UCP_AM_SEND_FLAG_RNDV
        };
        // SAFETY: as the caller says.
        unsafe { self.send(endpoint, (WRITE, flags), header, data, mark) }
    }

    /// Sends a short message at once; returns whether it did, and does nothing otherwise.
    ///
    /// # Safety
    /// The endpoint is open.
    #[inline]
    pub(crate) unsafe fn send_at_once(
        &self,
        endpoint: Endpoint,
        header: &[u8],
        data: &[u8],
    ) -> bool {
        // What the mask does not name is not read.
        let mut param = MaybeUninit::<ucp_request_param_t>::uninit();
        let start = param.as_mut_ptr();
        // SAFETY: fields of the value on our stack.
        unsafe {
            (&raw mut (*start).op_attr_mask)
                .write(UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL);
            (&raw mut (*start).flags).write(EAGER);
        }
        // SAFETY: the endpoint is open. A call that has to be complete at once leaves no request
        // behind, and does not read header and data after it has returned.
        let pointer = unsafe {
            (self.ucp.ucp_am_send_nbx)(
                endpoint.0.as_ptr(),
                DATA,
                header.as_ptr().cast(),
                header.len(),
                data.as_ptr().cast(),
                data.len(),
                start,
            )
        };
        Started::from_pointer(pointer) == Started::Done
    }

    /// Sends an active message, eagerly.
    ///
    /// # Safety
    /// The endpoint is open. `header` and `data` stay as they are until the mark ended.
    #[inline]
    pub(crate) unsafe fn send_message(
        &self,
        endpoint: Endpoint,
        header: Piece,
        data: Piece,
        mark: &Pinned<Mark>,
    ) -> Started {
        // SAFETY: as the caller says.
        unsafe { self.send(endpoint, (DATA, EAGER), header, data, mark) }
    }

    #[inline(always)]
    unsafe fn send(
        &self,
        endpoint: Endpoint,
        (number, flags): (u32, u32),
        header: Piece,
        data: Piece,
        mark: &Pinned<Mark>,
    ) -> Started {
        let mut param = request(mark);
        param.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
        param.flags = flags;
        // SAFETY: as the caller says.
        let pointer = unsafe {
            (self.ucp.ucp_am_send_nbx)(
                endpoint.0.as_ptr(),
                number,
                header.start.cast(),
                header.len,
                data.start.cast(),
                data.len,
                &raw const param,
            )
        };
        Started::from_pointer(pointer)
    }

    /// Drops a write that was kept.
    ///
    /// # Safety
    /// It was kept by a handler's result, and is given back once.
    pub(crate) unsafe fn release(&self, owner: NonNull<c_void>) {
        // SAFETY: as the caller says.
        unsafe { (self.ucp.ucp_am_data_release)(self.raw, owner.as_ptr()) };
    }

    /// Sends a message to be matched; with `synchronous`, it ends once it was.
    ///
    /// # Safety
    /// As [`Worker::send_message`].
    #[inline]
    pub(crate) unsafe fn send_tagged(
        &self,
        endpoint: Endpoint,
        tag: u64,
        data: Piece,
        synchronous: bool,
        mark: &Pinned<Mark>,
    ) -> Started {
        let param = request(mark);
        let send = if synchronous {
            self.ucp.ucp_tag_send_sync_nbx
        } else {
            self.ucp.ucp_tag_send_nbx
        };
        // SAFETY: as the caller says.
        let pointer = unsafe {
            send(
                endpoint.0.as_ptr(),
                data.start.cast(),
                data.len,
                tag,
                &raw const param,
            )
        };
        Started::from_pointer(pointer)
    }

    /// Posts a receive. Where the message was there, the mark has ended when this returns.
    ///
    /// # Safety
    /// The `len` bytes at `start` are UCX's to write until the mark ended.
    #[inline]
    pub(crate) unsafe fn receive_tagged(
        &self,
        start: *mut u8,
        len: usize,
        tag: u64,
        mask: u64,
        mark: &Pinned<Mark>,
    ) -> Started {
        let param = receive_request(mark);
        // SAFETY: as the caller says.
        let pointer = unsafe {
            (self.ucp.ucp_tag_recv_nbx)(self.raw, start.cast(), len, tag, mask, &raw const param)
        };
        Started::from_pointer(pointer)
    }

    /// Receives a message that was taken out of matching, as
    /// [`receive_tagged`](Worker::receive_tagged).
    ///
    /// # Safety
    /// As [`Worker::receive_tagged`]; the message was taken out, and is received once.
    pub(crate) unsafe fn receive_taken(
        &self,
        message: Message,
        start: *mut u8,
        len: usize,
        mark: &Pinned<Mark>,
    ) -> Started {
        let param = receive_request(mark);
        // SAFETY: as the caller says.
        let pointer = unsafe {
            (self.ucp.ucp_tag_msg_recv_nbx)(
                self.raw,
                start.cast(),
                len,
                message.0.as_ptr(),
                &raw const param,
            )
        };
        Started::from_pointer(pointer)
    }

    /// Receives a write whose bytes are still with its sender.
    ///
    /// # Safety
    /// The handler of writes was given `message` and kept it; it is received or
    /// [released](Worker::release) once. The `len` bytes at `start`, as many as it said there were,
    /// are UCX's to write until the mark ended.
    pub(crate) unsafe fn receive_write(
        &self,
        message: NonNull<c_void>,
        start: *mut u8,
        len: usize,
        mark: &Pinned<Mark>,
    ) -> Started {
        let mut param = receive_request(mark);
        param.cb.recv_am = Some(on_land);
        // SAFETY: as the caller says.
        let pointer = unsafe {
            (self.ucp.ucp_am_recv_data_nbx)(
                self.raw,
                message.as_ptr(),
                start.cast(),
                len,
                &raw const param,
            )
        };
        Started::from_pointer(pointer)
    }

    /// The earliest unexpected message under `tag`, taken out of matching where `take` says so.
    pub(crate) fn probe(
        &self,
        tag: u64,
        mask: u64,
        take: bool,
    ) -> Option<(Message, ucp_tag_recv_info_t)> {
        let mut info = ucp_tag_recv_info_t {
            sender_tag: 0,
            length: 0,
        };
        // SAFETY: the worker is open; the call describes what it found.
        let found = unsafe {
            (self.ucp.ucp_tag_probe_nb)(self.raw, tag, mask, i32::from(take), &raw mut info)
        };
        Some((Message(NonNull::new(found)?), info))
    }

    /// Takes back the receive under way as `request`, if that is still possible.
    ///
    /// # Safety
    /// The request's callback has not come.
    pub(crate) unsafe fn cancel(&self, request: NonNull<c_void>) {
        // SAFETY: as the caller says.
        unsafe { (self.ucp.ucp_request_cancel)(self.raw, request.as_ptr()) };
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // SAFETY: the owner has closed the endpoints; what is under way ends without a word.
        unsafe { (self.ucp.ucp_worker_destroy)(self.raw) };
    }
}

/// An unexpected message that was taken out of matching.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Message(NonNull<ucp_recv_desc>);

// SAFETY: used through the worker alone.
unsafe impl Send for Message {}

/// The parameters of an operation that ends by `mark`.
#[inline]
fn request(mark: &Pinned<Mark>) -> ucp_request_param_t {
    // SAFETY: as for the parameters of a context.
    let mut param: ucp_request_param_t = unsafe { MaybeUninit::zeroed().assume_init() };
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    param.cb.send = Some(on_end);
    param.user_data = mark.as_argument();
    param
}

/// The parameters of a receive that ends by `mark`. It always does so by its callback: of receives
/// that are complete at once UCX reports neither tag nor length otherwise, whatever its header says.
#[inline]
fn receive_request(mark: &Pinned<Mark>) -> ucp_request_param_t {
    let mut param = request(mark);
    param.op_attr_mask |= UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
    param.cb.recv = Some(on_receive);
    param
}
