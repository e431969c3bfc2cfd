//! What libfabric's headers offer as inline functions: calls through the operation tables.
//!
//! Every one of them returns what the library does: 0 or a count, or a negative number. A table
//! without the operation returns `-FI_ENOSYS`.
//!
//! # Safety
//! The same for all: objects are open ones of one library, on a thread that its threading model
//! allows. Memory is readable, or writable for receives and reads, until the operation has
//! completed; contexts are null or have room for what the mode bits ask.
#![allow(unsafe_code)]
#![allow(
    clippy::missing_safety_doc,
    clippy::too_many_arguments,
    reason = "said once, above; the arguments are libfabric's"
)]

use std::ffi::{c_int, c_void};

use crate::bindings::*;

const UNSUPPORTED: c_int = -(FI_ENOSYS as c_int);

/// Calls an entry of an operation table, where the table has it.
macro_rules! call {
    ($table:expr, $entry:ident, $($argument:expr),*) => {{
        let table = $table;
        // SAFETY: an open object has its tables; the rest is the caller's promise.
        unsafe {
            if table.is_null() {
                UNSUPPORTED as _
            } else {
                match (*table).$entry {
                    Some(entry) => entry($($argument),*),
                    None => UNSUPPORTED as _,
                }
            }
        }
    }};
}

/// The table `$table` of the object `$object`.
macro_rules! table {
    ($object:expr, $table:ident) => {{
        // SAFETY: the caller passes an open object.
        unsafe { (*$object).$table }
    }};
}

/// Closes an object of any kind.
pub unsafe fn fi_close(fid: *mut fid) -> c_int {
    call!(table!(fid, ops), close, fid)
}

/// Binds two objects.
pub unsafe fn fi_bind(fid: *mut fid, other: *mut fid, flags: u64) -> c_int {
    call!(table!(fid, ops), bind, fid, other, flags)
}

/// Controls an object: `fi_enable`, `fi_mr_enable`, the wait object of a queue.
pub unsafe fn fi_control(fid: *mut fid, command: c_int, argument: *mut c_void) -> c_int {
    call!(table!(fid, ops), control, fid, command, argument)
}

/// Opens a domain.
pub unsafe fn fi_domain(
    fabric: *mut fid_fabric,
    info: *mut fi_info,
    domain: *mut *mut fid_domain,
) -> c_int {
    call!(
        table!(fabric, ops),
        domain,
        fabric,
        info,
        domain,
        std::ptr::null_mut()
    )
}

/// Whether a thread may sleep on the wait objects of `fids`.
pub unsafe fn fi_trywait(fabric: *mut fid_fabric, fids: *mut *mut fid, count: c_int) -> c_int {
    call!(table!(fabric, ops), trywait, fabric, fids, count)
}

/// Opens a completion queue.
pub unsafe fn fi_cq_open(
    domain: *mut fid_domain,
    attributes: *mut fi_cq_attr,
    cq: *mut *mut fid_cq,
) -> c_int {
    call!(
        table!(domain, ops),
        cq_open,
        domain,
        attributes,
        cq,
        std::ptr::null_mut()
    )
}

/// Opens an address vector.
pub unsafe fn fi_av_open(
    domain: *mut fid_domain,
    attributes: *mut fi_av_attr,
    av: *mut *mut fid_av,
) -> c_int {
    call!(
        table!(domain, ops),
        av_open,
        domain,
        attributes,
        av,
        std::ptr::null_mut()
    )
}

/// Opens an endpoint.
pub unsafe fn fi_endpoint(
    domain: *mut fid_domain,
    info: *mut fi_info,
    endpoint: *mut *mut fid_ep,
) -> c_int {
    call!(
        table!(domain, ops),
        endpoint,
        domain,
        info,
        endpoint,
        std::ptr::null_mut()
    )
}

/// Registers memory.
pub unsafe fn fi_mr_reg(
    domain: *mut fid_domain,
    start: *const c_void,
    len: usize,
    access: u64,
    requested_key: u64,
    mr: *mut *mut fid_mr,
) -> c_int {
    call!(
        table!(domain, mr),
        reg,
        domain.cast::<fid>(),
        start,
        len as _,
        access,
        0,
        requested_key,
        0,
        mr,
        std::ptr::null_mut()
    )
}

/// Puts addresses into an address vector; returns how many.
pub unsafe fn fi_av_insert(
    av: *mut fid_av,
    addresses: *const c_void,
    count: usize,
    out: *mut fi_addr_t,
) -> c_int {
    call!(
        table!(av, ops),
        insert,
        av,
        addresses,
        count as _,
        out,
        0,
        std::ptr::null_mut()
    )
}

/// Takes addresses out of an address vector.
pub unsafe fn fi_av_remove(av: *mut fid_av, addresses: *mut fi_addr_t, count: usize) -> c_int {
    call!(table!(av, ops), remove, av, addresses, count as _, 0)
}

/// The own address of an endpoint.
pub unsafe fn fi_getname(fid: *mut fid, address: *mut c_void, len: *mut usize) -> c_int {
    let endpoint = fid.cast::<fid_ep>();
    call!(table!(endpoint, cm), getname, fid, address, len.cast())
}

/// Sets an option of an endpoint.
pub unsafe fn fi_setopt(
    endpoint: *mut fid_ep,
    level: c_int,
    name: c_int,
    value: *const c_void,
    len: usize,
) -> c_int {
    call!(
        table!(endpoint, ops),
        setopt,
        endpoint.cast::<fid>(),
        level,
        name,
        value,
        len as _
    )
}

/// Asks for an option of an endpoint; `len` is the room for it, and then its length.
pub unsafe fn fi_getopt(
    endpoint: *mut fid_ep,
    level: c_int,
    name: c_int,
    value: *mut c_void,
    len: *mut usize,
) -> c_int {
    call!(
        table!(endpoint, ops),
        getopt,
        endpoint.cast::<fid>(),
        level,
        name,
        value,
        len
    )
}

/// Cancels the operation with `context`, if that is still possible.
pub unsafe fn fi_cancel(endpoint: *mut fid_ep, context: *mut c_void) -> isize {
    call!(
        table!(endpoint, ops),
        cancel,
        endpoint.cast::<fid>(),
        context
    )
}

/// Reads completions; returns how many.
#[inline]
pub unsafe fn fi_cq_read(cq: *mut fid_cq, entries: *mut c_void, count: usize) -> isize {
    call!(table!(cq, ops), read, cq, entries, count as _)
}

/// Reads an error completion.
pub unsafe fn fi_cq_readerr(cq: *mut fid_cq, entry: *mut fi_cq_err_entry, flags: u64) -> isize {
    call!(table!(cq, ops), readerr, cq, entry, flags)
}

/// Posts a buffer for messages.
#[inline]
pub unsafe fn fi_recvmsg(endpoint: *mut fid_ep, message: *const fi_msg, flags: u64) -> isize {
    call!(table!(endpoint, msg), recvmsg, endpoint, message, flags)
}

/// Sends a message.
#[inline]
pub unsafe fn fi_send(
    endpoint: *mut fid_ep,
    start: *const c_void,
    len: usize,
    descriptor: *mut c_void,
    to: fi_addr_t,
    context: *mut c_void,
) -> isize {
    call!(
        table!(endpoint, msg),
        send,
        endpoint,
        start,
        len as _,
        descriptor,
        to,
        context
    )
}

/// Sends a message of several pieces.
#[inline]
pub unsafe fn fi_sendmsg(endpoint: *mut fid_ep, message: *const fi_msg, flags: u64) -> isize {
    call!(table!(endpoint, msg), sendmsg, endpoint, message, flags)
}

/// Sends a short message whose buffer is free on return, without a completion.
#[inline]
pub unsafe fn fi_inject(
    endpoint: *mut fid_ep,
    start: *const c_void,
    len: usize,
    to: fi_addr_t,
) -> isize {
    call!(table!(endpoint, msg), inject, endpoint, start, len as _, to)
}

/// Posts a tagged receive, or looks for a message.
#[inline]
pub unsafe fn fi_trecvmsg(
    endpoint: *mut fid_ep,
    message: *const fi_msg_tagged,
    flags: u64,
) -> isize {
    call!(table!(endpoint, tagged), recvmsg, endpoint, message, flags)
}

/// Posts a tagged receive.
#[inline]
pub unsafe fn fi_trecv(
    endpoint: *mut fid_ep,
    start: *mut c_void,
    len: usize,
    descriptor: *mut c_void,
    from: fi_addr_t,
    tag: u64,
    ignore: u64,
    context: *mut c_void,
) -> isize {
    call!(
        table!(endpoint, tagged),
        recv,
        endpoint,
        start,
        len as _,
        descriptor,
        from,
        tag,
        ignore,
        context
    )
}

/// Sends a tagged message.
#[inline]
pub unsafe fn fi_tsend(
    endpoint: *mut fid_ep,
    start: *const c_void,
    len: usize,
    descriptor: *mut c_void,
    to: fi_addr_t,
    tag: u64,
    context: *mut c_void,
) -> isize {
    call!(
        table!(endpoint, tagged),
        send,
        endpoint,
        start,
        len as _,
        descriptor,
        to,
        tag,
        context
    )
}

/// Sends a short tagged message whose buffer is free on return, without a completion.
#[inline]
pub unsafe fn fi_tinject(
    endpoint: *mut fid_ep,
    start: *const c_void,
    len: usize,
    to: fi_addr_t,
    tag: u64,
) -> isize {
    call!(
        table!(endpoint, tagged),
        inject,
        endpoint,
        start,
        len as _,
        to,
        tag
    )
}

/// Sends a tagged message with data for the receiver's completion.
#[inline]
pub unsafe fn fi_tsenddata(
    endpoint: *mut fid_ep,
    start: *const c_void,
    len: usize,
    descriptor: *mut c_void,
    data: u64,
    to: fi_addr_t,
    tag: u64,
    context: *mut c_void,
) -> isize {
    call!(
        table!(endpoint, tagged),
        senddata,
        endpoint,
        start,
        len as _,
        descriptor,
        data,
        to,
        tag,
        context
    )
}

/// As [`fi_tsenddata`] for a short message whose buffer is free on return, without a completion.
#[inline]
pub unsafe fn fi_tinjectdata(
    endpoint: *mut fid_ep,
    start: *const c_void,
    len: usize,
    data: u64,
    to: fi_addr_t,
    tag: u64,
) -> isize {
    call!(
        table!(endpoint, tagged),
        injectdata,
        endpoint,
        start,
        len as _,
        data,
        to,
        tag
    )
}

/// Writes to remote memory.
#[inline]
pub unsafe fn fi_writemsg(endpoint: *mut fid_ep, message: *const fi_msg_rma, flags: u64) -> isize {
    call!(table!(endpoint, rma), writemsg, endpoint, message, flags)
}

/// Reads remote memory.
#[inline]
pub unsafe fn fi_readmsg(endpoint: *mut fid_ep, message: *const fi_msg_rma, flags: u64) -> isize {
    call!(table!(endpoint, rma), readmsg, endpoint, message, flags)
}
