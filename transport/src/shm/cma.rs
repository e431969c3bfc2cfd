//! Cross-memory attach: copying between the memory of two processes by system call.
//!
//! An address of a peer is only ever an operand of these calls: the kernel checks it against the
//! peer's mappings, and a wrong one is an error code.
//!
//! The calls name a process by its number, which the system may give to another process once the
//! first one has ended and its parent has taken note. So whoever copies makes sure of the peer: before
//! each writing call, which must not go astray, and after reading, before the bytes count. (That a peer
//! ended while it was written to is the same as that it ended just after.) To make sure is a `poll` of
//! the peer's descriptor, or a look at the clock where the last one was within a millisecond: the poll
//! takes 0.25 us, and a copy of 16 KiB 2 us.
//!
//! What remains: the peer ends, is reaped, and every other number of the namespace is given out in turn,
//! all within that millisecond, or between the look at the clock and the call that follows at once (this
//! thread may be stopped just there); and then the new process of that number must be one that this user may attach to, with writable memory at
//! the same address. There is no call that copies by a descriptor of the process. `tagwire run` reaps no
//! rank before the job has ended, so that under it no number is given out again.
#![allow(unsafe_code)]

use std::io;
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

use crate::data::{ReadRegion, WriteRegion};

/// Whether this process can attach to a peer's memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Attach {
    /// Nobody has tried.
    Untested,
    /// It can: by this process id.
    Usable(u32),
    /// It cannot, and why.
    Forbidden(String),
}

impl Attach {
    /// Tries to read the number `nonce` where process `pid` says that it lies. So it shows at
    /// once that attaching is allowed and that `pid` is the process that was meant.
    pub(super) fn test(pid: u32, nonce_address: u64, nonce: u64) -> Self {
        let mut found = [0; 8];
        let target = found.as_mut_ptr();
        // SAFETY: `found` has 8 writable bytes.
        match unsafe { read_once(pid, nonce_address, target, found.len()) } {
            Ok(8) if u64::from_ne_bytes(found) == nonce => Self::Usable(pid),
            Ok(_) => Self::Forbidden(format!("process {pid} is not the one that was meant")),
            Err(error) => Self::Forbidden(format!("process_vm_readv: {error}")),
        }
    }
}

/// Copies from `address` of process `pid` into the part `range` of `to`, all of it.
///
/// # Safety
/// `to` is lent for writing.
pub(super) unsafe fn read(
    pid: u32,
    address: u64,
    to: WriteRegion,
    range: Range<usize>,
) -> io::Result<()> {
    let (start, len) = check(range, to.len())?;
    let mut done = 0;
    while done < len {
        let from = address.wrapping_add(done as u64);
        // SAFETY: `start + len` is within the region, of which the caller says that it is lent.
        done +=
            retry(|| unsafe { read_once(pid, from, to.as_ptr().add(start + done), len - done) })?;
    }
    Ok(())
}

/// Copies the part `range` of `from` to `address` of process `pid`, all of it. Before each call
/// `is_there` reports whether `pid` is still the process that is meant.
///
/// # Safety
/// `from` is lent for reading.
pub(super) unsafe fn write(
    pid: u32,
    address: u64,
    from: ReadRegion,
    range: Range<usize>,
    is_there: impl Fn() -> bool,
) -> io::Result<()> {
    let (start, len) = check(range, from.len())?;
    let mut done = 0;
    while done < len {
        let local = libc::iovec {
            // SAFETY: `start + len` is within the region, of which the caller says that it is lent.
            iov_base: unsafe { from.as_ptr().add(start + done) }.cast_mut().cast(),
            iov_len: len - done,
        };
        let remote = remote(address.wrapping_add(done as u64), len - done);
        // SAFETY: the local vector is lent readable memory, which the call only reads; what the
        // remote one names is the kernel's to check.
        let call = || unsafe { libc::process_vm_writev(id(pid), &local, 1, &remote, 1, 0) };
        done += retry(|| {
            if is_there() {
                answer(call())
            } else {
                Err(io::Error::from_raw_os_error(libc::ESRCH))
            }
        })?;
    }
    Ok(())
}

/// Start and length of `range`, if it lies within `len` bytes.
fn check(range: Range<usize>, len: usize) -> io::Result<(usize, usize)> {
    if range.start <= range.end && range.end <= len {
        Ok((range.start, range.end - range.start))
    } else {
        Err(io::Error::from(io::ErrorKind::InvalidInput))
    }
}

/// One call, which may move less than was asked for.
///
/// # Safety
/// `to` is writable for `len` bytes.
unsafe fn read_once(pid: u32, address: u64, to: *mut u8, len: usize) -> io::Result<usize> {
    let local = libc::iovec {
        iov_base: to.cast(),
        iov_len: len,
    };
    let remote = remote(address, len);
    // SAFETY: the caller vouches for the local vector; the remote one is the kernel's to check.
    answer(unsafe { libc::process_vm_readv(id(pid), &local, 1, &remote, 1, 0) })
}

/// As [`write`], the first `len` bytes of `payload`.
pub(super) fn write_payload(
    pid: u32,
    address: u64,
    payload: crate::message::Payload<'_>,
    len: usize,
    is_there: impl Fn() -> bool,
) -> io::Result<()> {
    let region = payload.region();
    // SAFETY: a payload is readable memory for the time of this call; a peer that changes it
    // meanwhile changes what is copied, nothing else.
    unsafe { write(pid, address, region, 0..len.min(region.len()), is_there) }
}

fn remote(address: u64, len: usize) -> libc::iovec {
    libc::iovec {
        iov_base: std::ptr::without_provenance_mut(address as usize),
        iov_len: len,
    }
}

fn id(pid: u32) -> libc::pid_t {
    libc::pid_t::try_from(pid).unwrap_or(-1)
}

fn answer(moved: isize) -> io::Result<usize> {
    usize::try_from(moved).map_err(|_| io::Error::last_os_error())
}

/// Repeats what a signal interrupted; moving nothing at all is an error.
fn retry(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Lets other processes attach to this one, as long as it lives, where the Yama module asks for such a word
/// (`ptrace_scope` 1). The word holds for the whole process, so that the last one takes it back: a program that goes on
/// without a rank is no more open than before. Whatever else in the process gave it loses it then; the
/// kernel does not say whether anybody did.
#[derive(Debug)]
pub(super) struct Attachable(());

/// How many [`Attachable`] there are in this process.
static ATTACHABLE: Mutex<usize> = Mutex::new(0);

impl Attachable {
    pub(super) fn new() -> Self {
        count(&ATTACHABLE, |users| users + 1, allow);
        Self(())
    }
}

impl Drop for Attachable {
    fn drop(&mut self) {
        count(&ATTACHABLE, |users| users - 1, allow);
    }
}

/// Changes the number of users, and calls `allow` where the first one comes or the last one goes.
fn count(users: &Mutex<usize>, change: impl FnOnce(usize) -> usize, allow: impl FnOnce(bool)) {
    let mut users = users.lock().unwrap_or_else(PoisonError::into_inner);
    let before = std::mem::replace(&mut *users, 0);
    *users = change(before);
    if (before == 0) != (*users == 0) {
        allow(*users > 0);
    }
}

fn allow(allowed: bool) {
    use rustix::process::PTracer;
    if yama_scope() == Some(1) {
        let tracer = if allowed { PTracer::Any } else { PTracer::None };
        let _ = rustix::process::set_ptracer(tracer);
    }
}

/// The Yama module's restriction, where there is one.
pub(super) fn yama_scope() -> Option<u32> {
    let text = std::fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok()?;
    text.trim().parse().ok()
}

/// The number that shows a peer that it reads the right memory: private, at a fixed place.
#[derive(Debug)]
pub(super) struct Nonce(Box<AtomicU64>);

impl Nonce {
    pub(super) fn new(value: u64) -> Self {
        Self(Box::new(AtomicU64::new(value)))
    }

    /// Where it lies.
    pub(super) fn address(&self) -> u64 {
        std::ptr::from_ref::<AtomicU64>(&self.0).addr() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_user_takes_the_permission_back() {
        let users = Mutex::new(0);
        let mut said = Vec::new();
        for change in [1, 1, -1, -1, 1, -1_isize] {
            count(
                &users,
                |users| users.checked_add_signed(change).unwrap(),
                |allowed| said.push(allowed),
            );
        }
        assert_eq!(said, [true, false, true, false]);
    }
}
