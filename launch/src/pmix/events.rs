//! The ends of other ranks, by the events of a PMIx server (PMIx standard, version 4.1, chapter 9). A server sends them where
//! it lets the others go on: `prterun --runtime-options recoverable,notifyerrors`.
#![allow(
    unsafe_code,
    reason = "callbacks of a C library, opened at run time; what they lend is copied before they return"
)]

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tagwire_base::Rank;
use tagwire_base::bootstrap::MemberEvent;

use super::raw::{POINTER, PROCESS, RawData, RawInfo, RawProcess};

/// The rank has asked for the job's end, has ended without `PMIx_Finalize`, was ended by order, could not be started, was
/// ended by a signal, has used too much, has ended with another status than 0; and what versions 3 said of all these.
const FAILURES: [c_int; 9] = [-7, -8, -9, -200, -400, -401, -402, -403, -404];

/// The server is lost.
const LOST: c_int = -61;

/// What a handler says that has done all that there is to do.
const ACTION_COMPLETE: c_int = -334;

/// A handler whose number is not known (yet).
const UNKNOWN: usize = usize::MAX;

/// How long the end of a registration is waited for.
const PATIENCE: Duration = Duration::from_secs(1);

type OnDone = unsafe extern "C" fn(c_int, *mut c_void);
type OnRegistered = unsafe extern "C" fn(c_int, usize, *mut c_void);
type Reply =
    unsafe extern "C" fn(c_int, *mut RawInfo, usize, Option<OnDone>, *mut c_void, *mut c_void);
type OnEvent = unsafe extern "C" fn(
    usize,
    c_int,
    *const RawProcess,
    *const RawInfo,
    usize,
    *mut RawInfo,
    usize,
    Option<Reply>,
    *mut c_void,
);

pub(super) type Register = unsafe extern "C" fn(
    *const c_int,
    usize,
    *const RawInfo,
    usize,
    OnEvent,
    OnRegistered,
    *mut c_void,
) -> c_int;
pub(super) type Deregister = unsafe extern "C" fn(usize, OnDone, *mut c_void) -> c_int;

/// The library's calls for events.
pub(super) struct Symbols {
    pub(super) register: Register,
    pub(super) deregister: Deregister,
}

/// What the library's thread has heard.
struct Heard {
    /// Codes and attributes of the registration, which the library may read until it has called back.
    codes: Vec<c_int>,
    attributes: [RawInfo; 1],
    namespace: RawProcess,
    handler: AtomicUsize,
    events: Mutex<Vec<MemberEvent>>,
}

// SAFETY: what is not atomic or behind the mutex is written before the library is given a pointer to it, and only read then; its
// one pointer is an address that the library hands back.
unsafe impl Send for Heard {}
// SAFETY: as above.
unsafe impl Sync for Heard {}

/// A registration for the ends of ranks of one namespace.
pub(super) struct Events {
    calls: Symbols,
    heard: Option<Arc<Heard>>,
}

impl Events {
    pub(super) const fn new(calls: Symbols) -> Self {
        Self { calls, heard: None }
    }

    /// Asks for the events that concern ranks of the namespace of `process`. Returns before the server has answered: it keeps
    /// events for those who ask late.
    ///
    /// # Safety
    /// The library is initialised, and stays so until [`end`](Self::end).
    pub(super) unsafe fn begin(&mut self, process: &RawProcess) {
        let heard = Arc::new_cyclic(|own: &Weak<Heard>| {
            let pointer = own.as_ptr().cast_mut().cast();
            Heard {
                codes: FAILURES.into_iter().chain([LOST]).collect(),
                attributes: [RawInfo::new(c"pmix.evobject", POINTER, RawData { pointer })],
                namespace: process.clone(),
                handler: AtomicUsize::new(UNKNOWN),
                events: Mutex::default(),
            }
        });
        // The library's own count of it, which `end` takes back.
        let context = Arc::into_raw(Arc::clone(&heard)).cast_mut().cast();
        // SAFETY: codes and attributes lie in what the library's count keeps alive.
        let status = unsafe {
            (self.calls.register)(
                heard.codes.as_ptr(),
                heard.codes.len(),
                heard.attributes.as_ptr(),
                heard.attributes.len(),
                on_event,
                on_registered,
                context,
            )
        };
        tracing::trace!(status, "asked the server for the ends of ranks");
        self.heard = Some(heard);
    }

    /// Returns what has come since the last call.
    pub(super) fn take(&self) -> Vec<MemberEvent> {
        let Some(heard) = &self.heard else {
            return Vec::new();
        };
        std::mem::take(&mut heard.events.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Forgets the registration, which the library has ended with itself.
    ///
    /// # Safety
    /// The library's thread has ended: no handler runs, and none will.
    pub(super) unsafe fn forget(&mut self) {
        if let Some(heard) = self.heard.take() {
            // SAFETY: the library's count, which nobody uses any more.
            drop(unsafe { Arc::from_raw(Arc::as_ptr(&heard)) });
        }
    }

    /// Ends the registration of a library that stays. What it may still read stays where the server does not answer in time.
    ///
    /// # Safety
    /// The library is initialised.
    pub(super) unsafe fn end(&mut self) {
        let Some(heard) = self.heard.take() else {
            return;
        };
        let handler = heard.handler.load(Ordering::Acquire);
        if handler == UNKNOWN {
            return;
        }
        let (sender, ended) = channel::<()>();
        let context = Box::into_raw(Box::new(sender));
        // SAFETY: the handler is one of this registration; the context is the callback's.
        let status = unsafe { (self.calls.deregister)(handler, on_done, context.cast()) };
        if status == 0 && ended.recv_timeout(PATIENCE).is_ok() {
            // SAFETY: handlers run on the thread that has just called back, so none is running and none follows: the
            // library's count is ours again.
            drop(unsafe { Arc::from_raw(Arc::as_ptr(&heard)) });
        }
    }
}

/// Learns the handler's number.
unsafe extern "C" fn on_registered(status: c_int, handler: usize, context: *mut c_void) {
    if status == 0 {
        // SAFETY: the context is what `begin` gave, which the library's count keeps until the registration has ended.
        let heard = unsafe { &*context.cast_const().cast::<Heard>() };
        heard.handler.store(handler, Ordering::Release);
    }
}

/// Tells the caller of a call that it is done.
unsafe extern "C" fn on_done(_: c_int, context: *mut c_void) {
    // SAFETY: the context is the sender that `end` has boxed for this one call, which comes once.
    let sender = unsafe { Box::from_raw(context.cast::<Sender<()>>()) };
    // Whoever waited may have given up.
    let _ = sender.send(());
}

/// Keeps what has happened for the rank's thread.
unsafe extern "C" fn on_event(
    _: usize,
    code: c_int,
    source: *const RawProcess,
    attributes: *const RawInfo,
    count: usize,
    _: *mut RawInfo,
    _: usize,
    reply: Option<Reply>,
    context: *mut c_void,
) {
    let attributes = if attributes.is_null() {
        &[]
    } else {
        // SAFETY: the library lends so many attributes for the length of this call.
        unsafe { std::slice::from_raw_parts(attributes, count) }
    };
    let find = |key, kind| {
        let mut found = attributes.iter().filter(|info| info.is(key));
        found.find(|info| info.value.kind == kind)
    };
    // SAFETY: an attribute of this type holds the address that `begin` gave with it.
    let own = find(c"pmix.evobject", POINTER).map(|info| unsafe { info.value.data.pointer });
    // SAFETY: an attribute of this type holds a process or nothing, lent for the length of this call.
    let affected = find(c"pmix.evproc", PROCESS).map(|info| unsafe { info.value.data.process });
    // SAFETY: the library's count keeps it until the registration has ended.
    let heard = own.and_then(|own| unsafe { own.cast_const().cast::<Heard>().as_ref() });
    // SAFETY: both are lent for the length of this call.
    let process = unsafe { affected.unwrap_or(source).as_ref() };
    if let Some(heard) = heard
        && let Some(event) = event_of(code, process, &heard.namespace)
    {
        let mut events = heard.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.push(event);
    }
    if let Some(reply) = reply {
        let nothing: *mut c_void = std::ptr::null_mut();
        // SAFETY: a handler calls it once, with the context that it was given.
        unsafe {
            reply(ACTION_COMPLETE, nothing.cast(), 0, None, nothing, context);
        }
    }
}

/// Returns what an event says of a rank of the namespace, if anything.
fn event_of(
    code: c_int,
    process: Option<&RawProcess>,
    namespace: &RawProcess,
) -> Option<MemberEvent> {
    if code == LOST {
        return Some(MemberEvent::StoreLost);
    }
    let process = process.filter(|process| process.namespace == namespace.namespace)?;
    let is_other = process.rank != namespace.rank;
    (FAILURES.contains(&code) && is_other).then(|| MemberEvent::Failed(Rank::new(process.rank)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(namespace: u8, rank: u32) -> RawProcess {
        let mut process = RawProcess::nobody();
        process.namespace[0] = namespace.cast_signed();
        process.rank = rank;
        process
    }

    #[test]
    fn ends_of_ranks_of_the_same_job_are_failures() {
        let own = process(b'a', 0);
        let failed = Some(MemberEvent::Failed(Rank::new(2)));
        for code in FAILURES {
            assert_eq!(event_of(code, Some(&process(b'a', 2)), &own), failed);
        }
        assert_eq!(event_of(-402, Some(&process(b'b', 2)), &own), None);
        assert_eq!(event_of(-402, Some(&own), &own), None);
        assert_eq!(event_of(-201, Some(&process(b'a', 2)), &own), None);
        assert_eq!(event_of(-402, None, &own), None);
        assert_eq!(event_of(LOST, None, &own), Some(MemberEvent::StoreLost));
    }
}
