//! A provider that returns what few do, put between a net and its own: the operation tables of its
//! objects are exchanged for ones that follow a script. For tests.
#![allow(unsafe_code)]

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::ffi::{c_int, c_void};
use std::ptr;

use tagwire_libfabric_sys::bindings::*;

use super::info::Info;
use super::net::Net;

/// What becomes of a completion on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// The next of a send ends with this error.
    Send(u64),
    /// The next of a receive ends with this error, and with no word where the message was to be.
    Receive(u64),
    /// The next of a tagged send ends with this error.
    TaggedSend(u64),
    /// The next of a tagged receive, or look, ends with this error.
    TaggedReceive(u64),
    /// The next of a put or a get ends with this error.
    Access(u64),
    /// The next of a tagged receive, or look, comes only once it is [let go](let_go).
    Held,
    /// The queue is read with this result.
    Queue(u64),
    /// The queue has an error that is no operation's.
    Event(u64),
    /// The queue ran over: that is the result of every reading from now on.
    Overrun,
}

const SEED: u32 = 4;

thread_local! {
    /// Of so many posts to the provider one gets through, and the others find it busy; 0: all get through.
    static PATIENCE: Cell<u32> = const { Cell::new(0) };
    /// Which ones, by chance, but the same in each run.
    static CHANCE: Cell<u32> = const { Cell::new(SEED) };
    /// How often each call found it busy.
    static REFUSED: RefCell<BTreeMap<&'static str, u32>> = const { RefCell::new(BTreeMap::new()) };
    /// The results of the next calls of these names.
    static ANSWERS: RefCell<VecDeque<(&'static str, u64)>> = const { RefCell::new(VecDeque::new()) };
    static FATES: RefCell<VecDeque<Fate>> = const { RefCell::new(VecDeque::new()) };
    static FAILED: Cell<Option<fi_cq_err_entry>> = const { Cell::new(None) };
    static HELD: Cell<Option<fi_cq_tagged_entry>> = const { Cell::new(None) };
    static LET_GO: Cell<bool> = const { Cell::new(false) };
    /// How often the queue was read.
    static READS: Cell<u32> = const { Cell::new(0) };
    /// Registrations that went through all their steps.
    static ENABLED: Cell<u32> = const { Cell::new(0) };
}

/// The thread's script is empty again: another test may have left something of its own.
pub(crate) fn clear() {
    PATIENCE.set(0);
    CHANCE.set(SEED);
    REFUSED.with_borrow_mut(BTreeMap::clear);
    ANSWERS.with_borrow_mut(VecDeque::clear);
    FATES.with_borrow_mut(VecDeque::clear);
    FAILED.set(None);
    HELD.set(None);
    LET_GO.set(false);
    READS.set(0);
    ENABLED.set(0);
}

/// From now on of `patience` posts of a faulty net only one gets through, more or less.
pub(crate) fn be_busy(patience: u32) {
    PATIENCE.set(patience);
}

/// How often posts by `call` found a faulty net busy.
pub(crate) fn refused(call: &str) -> u32 {
    REFUSED.with_borrow(|refused| refused.get(call).copied().unwrap_or(0))
}

/// The next post of a faulty net by `call` returns this error.
pub(crate) fn answer(call: &'static str, error: u64) {
    ANSWERS.with_borrow_mut(|answers| answers.push_back((call, error)));
}

/// What happens to a faulty net's completions, one after the other.
pub(crate) fn destine(fate: Fate) {
    FATES.with_borrow_mut(|fates| fates.push_back(fate));
}

/// Whether everything that was destined has happened.
pub(crate) fn is_fulfilled() -> bool {
    FATES.with_borrow(VecDeque::is_empty)
        && FAILED.get().is_none()
        && ANSWERS.with_borrow(VecDeque::is_empty)
}

/// The completion that is held comes now.
pub(crate) fn let_go() {
    LET_GO.set(true);
}

/// How often a faulty net's queue was read.
pub(crate) fn reads() -> u32 {
    READS.get()
}

/// How many registrations were bound, then enabled.
pub(crate) fn enabled() -> u32 {
    ENABLED.get()
}

/// What a post by `call` returns instead of being done, if so.
fn answer_to(call: &'static str) -> Option<isize> {
    let destined = ANSWERS.with_borrow_mut(|answers| {
        let place = answers.iter().position(|(name, _)| *name == call)?;
        answers.remove(place)
    });
    if let Some((_, error)) = destined {
        return Some(-(error as isize));
    }
    let patience = PATIENCE.get();
    // Not each nth: two posts that take turns would meet the same results for ever.
    let chance = CHANCE
        .get()
        .wrapping_mul(1_664_525)
        .wrapping_add(1_013_904_223);
    CHANCE.set(chance);
    let busy = patience > 0 && !(chance >> 8).is_multiple_of(patience);
    if busy {
        REFUSED.with_borrow_mut(|refused| *refused.entry(call).or_default() += 1);
    }
    busy.then_some(-(FI_EAGAIN as isize))
}

/// A table with the provider's own behind it.
#[repr(C)]
struct Exchanged<T> {
    table: T,
    own: T,
    endpoint: *mut fid_ep,
}

/// Puts a table in the place of the provider's, for ever: its own but for what `change` changes.
///
/// # Safety
/// `place` is that of a table of an open object, which only this thread uses.
unsafe fn exchange<T>(place: *mut *mut T, endpoint: *mut fid_ep, change: impl FnOnce(&mut T)) {
    // SAFETY: the caller's promise; the new table is never freed.
    unsafe {
        let mut exchanged = Box::new(Exchanged {
            table: ptr::read(*place),
            own: ptr::read(*place),
            endpoint,
        });
        change(&mut exchanged.table);
        *place = Box::into_raw(exchanged).cast();
    }
}

/// The provider's own table behind one that was exchanged.
///
/// # Safety
/// `table` was put there by [`exchange`].
unsafe fn own<T>(table: *mut T) -> T {
    // SAFETY: the caller's promise.
    unsafe { ptr::read(&raw const (*table.cast::<Exchanged<T>>()).own) }
}

/// A post that follows the script, and is passed on where that has nothing for it.
macro_rules! posts {
    ($($name:ident: $table:ident.$entry:ident($($argument:ident: $type:ty),*);)*) => {$(
        unsafe extern "C" fn $name(ep: *mut fid_ep, $($argument: $type),*) -> isize {
            if let Some(code) = answer_to(stringify!($name)) {
                return code;
            }
            // SAFETY: the caller's own call, of an endpoint whose table was exchanged.
            unsafe { (own((*ep).$table).$entry.unwrap())(ep, $($argument),*) }
        }
    )*};
}

posts! {
    fi_recvmsg: msg.recvmsg(message: *const fi_msg, flags: u64);
    fi_inject: msg.inject(bytes: *const c_void, len: usize, to: fi_addr_t);
    fi_send: msg.send(
        bytes: *const c_void, len: usize, desc: *mut c_void, to: fi_addr_t, context: *mut c_void
    );
    fi_sendmsg: msg.sendmsg(message: *const fi_msg, flags: u64);
    fi_writemsg: rma.writemsg(message: *const fi_msg_rma, flags: u64);
    fi_readmsg: rma.readmsg(message: *const fi_msg_rma, flags: u64);
    fi_tinject: tagged.inject(bytes: *const c_void, len: usize, to: fi_addr_t, tag: u64);
    fi_tinjectdata: tagged.injectdata(
        bytes: *const c_void, len: usize, data: u64, to: fi_addr_t, tag: u64
    );
    fi_tsend: tagged.send(
        bytes: *const c_void, len: usize, desc: *mut c_void, to: fi_addr_t, tag: u64,
        context: *mut c_void
    );
    fi_trecv: tagged.recv(
        bytes: *mut c_void, len: usize, desc: *mut c_void, from: fi_addr_t, tag: u64, ignore: u64,
        context: *mut c_void
    );
    fi_trecvmsg: tagged.recvmsg(message: *const fi_msg_tagged, flags: u64);
}

/// Reads one completion, and lets happen to it what is destined for its kind.
unsafe extern "C" fn read(cq: *mut fid_cq, entries: *mut c_void, count: usize) -> isize {
    if count == 0 {
        // The provider itself does this before a sleep, to move things on.
        // SAFETY: its own call.
        return unsafe { (own((*cq).ops).read.unwrap())(cq, entries, count) };
    }
    READS.set(READS.get() + 1);
    let entries = entries.cast::<fi_cq_tagged_entry>();
    let fate = FATES.with_borrow(|fates| fates.front().copied());
    let fulfil = || FATES.with_borrow_mut(VecDeque::pop_front);
    match fate {
        Some(Fate::Queue(error)) => {
            fulfil();
            return -(error as isize);
        }
        Some(Fate::Event(error)) => {
            fulfil();
            return fail(None, error);
        }
        Some(Fate::Overrun) => return -(FI_EOVERRUN as isize),
        _ => {}
    }
    if let Some(held) = HELD.get().filter(|_| LET_GO.get()) {
        HELD.set(None);
        LET_GO.set(false);
        // SAFETY: the caller has room for an entry.
        unsafe { entries.write(held) };
        return 1;
    }
    // SAFETY: the caller's own call, for one entry of those that it has room for.
    let count = unsafe { (own((*cq).ops).read.unwrap())(cq, entries.cast(), 1) };
    let (Some(fate), 1) = (fate, count) else {
        return count;
    };
    // SAFETY: the queue's entries are of this format, and one was read.
    let entry = unsafe { *entries };
    let is = |wanted, unwanted| entry.flags & wanted == wanted && entry.flags & unwanted == 0;
    let error = match fate {
        Fate::Send(error) if is(FI_SEND, FI_TAGGED) => error,
        Fate::Receive(error) if is(FI_RECV, FI_TAGGED) => error,
        Fate::TaggedSend(error) if is(FI_SEND | FI_TAGGED, 0) => error,
        Fate::TaggedReceive(error) if is(FI_RECV | FI_TAGGED, 0) => error,
        Fate::Access(error) if is(FI_RMA, FI_REMOTE_WRITE | FI_REMOTE_READ) => error,
        Fate::Held if is(FI_RECV | FI_TAGGED, 0) => {
            fulfil();
            HELD.set(Some(entry));
            return -(FI_EAGAIN as isize);
        }
        _ => return count,
    };
    fulfil();
    let nowhere = fi_cq_tagged_entry {
        len: 0,
        buf: ptr::null_mut(),
        ..entry
    };
    let is_message = matches!(fate, Fate::Receive(_));
    fail(Some(if is_message { nowhere } else { entry }), error)
}

/// The next that is read of errors is this.
fn fail(entry: Option<fi_cq_tagged_entry>, error: u64) -> isize {
    // SAFETY: numbers and pointers, for which zero is a value.
    let mut failed: fi_cq_err_entry = unsafe { std::mem::zeroed() };
    if let Some(entry) = entry {
        failed.op_context = entry.op_context;
        failed.flags = entry.flags;
        failed.len = entry.len;
        failed.buf = entry.buf;
        failed.data = entry.data;
        failed.tag = entry.tag;
    }
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
        None => unsafe { (own((*cq).ops).readerr.unwrap())(cq, entry, flags) },
    }
}

/// What stands in the place of a registration's operations until it is closed.
#[repr(C)]
struct Withheld {
    table: fi_ops,
    own: *mut fi_ops,
    /// What it is to be bound to.
    endpoint: *mut fid_ep,
    /// The key, which nobody has before it is enabled.
    key: u64,
    bound: bool,
}

/// What [`fid_mr`] says until it has a key.
const NO_KEY: u64 = u64::MAX;

/// Registers, and keeps the key back until the registration is bound and enabled.
#[allow(clippy::too_many_arguments, reason = "the library's own signature")]
unsafe extern "C" fn register(
    domain: *mut fid,
    bytes: *const c_void,
    len: usize,
    access: u64,
    offset: u64,
    key: u64,
    flags: u64,
    mr: *mut *mut fid_mr,
    context: *mut c_void,
) -> c_int {
    // SAFETY: the caller's own call; what it opened is then ours to change.
    unsafe {
        let exchanged = (*domain.cast::<fid_domain>())
            .mr
            .cast::<Exchanged<fi_ops_mr>>();
        let register = (*exchanged).own.reg.unwrap();
        let code = register(domain, bytes, len, access, offset, key, flags, mr, context);
        if code == 0 {
            let mr = &mut **mr;
            let withheld = Withheld {
                table: fi_ops {
                    bind: Some(bind),
                    control: Some(control),
                    close: Some(close),
                    ..*mr.fid.ops
                },
                own: mr.fid.ops,
                endpoint: (*exchanged).endpoint,
                key: std::mem::replace(&mut mr.key, NO_KEY),
                bound: false,
            };
            mr.fid.ops = Box::into_raw(Box::new(withheld)).cast();
        }
        code
    }
}

/// A provider that does not ask for a step does not know it.
const fn forgive(code: c_int) -> c_int {
    if code == -(FI_ENOSYS as c_int) {
        0
    } else {
        code
    }
}

unsafe extern "C" fn bind(mr: *mut fid, to: *mut fid, flags: u64) -> c_int {
    // SAFETY: a registration whose operations were exchanged.
    unsafe {
        let withheld = (*mr).ops.cast::<Withheld>();
        if to != (*withheld).endpoint.cast() {
            return -(FI_EINVAL as c_int);
        }
        (*withheld).bound = true;
        forgive(((*(*withheld).own).bind.unwrap())(mr, to, flags))
    }
}

unsafe extern "C" fn control(mr: *mut fid, command: c_int, argument: *mut c_void) -> c_int {
    // SAFETY: as above.
    unsafe {
        let withheld = (*mr).ops.cast::<Withheld>();
        if command == FI_ENABLE as c_int {
            if !(*withheld).bound {
                return -(FI_EINVAL as c_int);
            }
            (*mr.cast::<fid_mr>()).key = (*withheld).key;
            ENABLED.set(ENABLED.get() + 1);
        }
        forgive(((*(*withheld).own).control.unwrap())(mr, command, argument))
    }
}

unsafe extern "C" fn close(mr: *mut fid) -> c_int {
    // SAFETY: as above; it is closed as what the provider made it.
    unsafe {
        let withheld = Box::from_raw((*mr).ops.cast::<Withheld>());
        (*mr.cast::<fid_mr>()).key = withheld.key;
        (*mr).ops = withheld.own;
        ((*withheld.own).close.unwrap())(mr)
    }
}

impl Info {
    /// As if the provider had no multi-receive.
    pub(crate) fn withhold_multi_receives(&mut self) {
        // SAFETY: an info of ours alone.
        unsafe { (*self.as_ptr()).caps &= !FI_MULTI_RECV };
    }
}

impl Net {
    /// Makes this net follow the script of the thread that drives it. Results are the provider's
    /// own but for what the script says.
    pub(crate) fn make_faulty(&mut self) {
        // SAFETY: open objects, which only this thread uses.
        unsafe {
            let (ep, cq) = (self.endpoint.as_ptr(), self.cq.as_ptr());
            exchange(&raw mut (*ep).msg, ep, |table| {
                table.recvmsg = Some(fi_recvmsg);
                table.inject = Some(fi_inject);
                table.send = Some(fi_send);
                table.sendmsg = Some(fi_sendmsg);
            });
            exchange(&raw mut (*cq).ops, ep, |table| {
                table.read = Some(read);
                table.readerr = Some(readerr);
            });
            if !ptr::eq((*ep).rma, ptr::null()) {
                exchange(&raw mut (*ep).rma, ep, |table| {
                    table.writemsg = Some(fi_writemsg);
                    table.readmsg = Some(fi_readmsg);
                });
            }
            if !ptr::eq((*ep).tagged, ptr::null()) {
                exchange(&raw mut (*ep).tagged, ep, |table| {
                    table.inject = Some(fi_tinject);
                    table.injectdata = Some(fi_tinjectdata);
                    table.send = Some(fi_tsend);
                    table.recv = Some(fi_trecv);
                    table.recvmsg = Some(fi_trecvmsg);
                });
            }
        }
    }

    /// Makes this net look as if its provider wanted all memory registered, local memory as well,
    /// and registrations bound to the endpoint and enabled. What is open already stays as it is.
    pub(crate) fn ask_for_bound_registrations(&mut self) {
        // SAFETY: open objects and an info of ours, which only this thread uses.
        unsafe {
            let domain = self.domain.as_ptr();
            exchange(&raw mut (*domain).mr, self.endpoint.as_ptr(), |table| {
                table.reg = Some(register);
            });
            let attributes = (*self.info().as_ptr()).domain_attr;
            (*attributes).mr_mode |= (FI_MR_LOCAL | FI_MR_ENDPOINT) as c_int;
        }
    }
}
