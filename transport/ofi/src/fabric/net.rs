//! An open endpoint, with what belongs to it: fabric, domain, completion queue, address vector.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::fmt;
use std::ops::Range;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};

use tagwire_base::Error as BaseError;
use tagwire_libfabric_sys::bindings::*;
use tagwire_libfabric_sys::{Library, calls};
use tagwire_transport::Payload;
use tagwire_transport::data::WriteRegion;

use super::context::{Contexts, OpId};
use super::info::{Info, Provider};
use super::memory::{Block, BlockId, Place, Registered};
use super::post::Refusals;
use crate::error::Failure;

/// Completions that are read at once.
pub(crate) const BATCH: usize = 16;

/// A peer's address in the address vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Peer(pub(super) fi_addr_t);

/// A completion.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Completion {
    pub(crate) op: Option<OpId>,
    pub(crate) flags: u64,
    pub(crate) len: usize,
    pub(crate) data: u64,
    pub(crate) tag: u64,
    /// Where the bytes are, or 0.
    pub(super) start: usize,
}

/// An operation that ended with an error.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fault {
    pub(crate) completion: Completion,
    /// The library's number, positive.
    pub(crate) error: i32,
    /// Bytes that did not fit.
    pub(crate) overflow: usize,
}

impl Fault {
    /// A message that was cut is a message all the same, of its true length.
    pub(crate) fn forgive_truncation(self) -> Result<Completion, Self> {
        if self.error != FI_ETRUNC as i32 {
            return Err(self);
        }
        Ok(Completion {
            len: self.completion.len + self.overflow,
            ..self.completion
        })
    }

    /// That of an operation whose end the provider does not tell.
    pub(crate) const fn given_up(op: OpId) -> Self {
        Self {
            completion: Completion {
                op: Some(op),
                flags: 0,
                len: 0,
                data: 0,
                tag: 0,
                start: 0,
            },
            error: FI_ECANCELED as i32,
            overflow: 0,
        }
    }
}

/// What the completion queue had.
#[derive(Debug)]
pub(crate) enum Reading {
    /// So many completions, to be had by [`Net::completion`].
    Some(usize),
    /// Nothing.
    Nothing,
    /// One operation failed.
    Fault(Fault),
    /// The queue itself failed, by the library's negative number.
    Broken(i32),
}

/// An endpoint and all that it needs. Objects close in the order that libfabric asks for.
pub(crate) struct Net {
    pub(super) endpoint: NonNull<fid_ep>,
    pub(super) cq: NonNull<fid_cq>,
    av: NonNull<fid_av>,
    pub(super) domain: NonNull<fid_domain>,
    fabric: NonNull<fid_fabric>,
    keeps_room: bool,
    wait: Option<OwnedFd>,
    pub(super) refusals: Refusals,
    entries: [fi_cq_tagged_entry; BATCH],
    pub(super) contexts: Contexts,
    pub(super) blocks: Vec<Block>,
    next_key: u64,
    /// The endpoint is closed.
    closed: bool,
    abandoned: bool,
    info: Info,
}

// SAFETY: the objects are not tied to a thread; one thread at a time has the net.
unsafe impl Send for Net {}

/// What is opened so far: closed in reverse where a later step fails.
struct Opening {
    fids: Vec<*mut fid>,
}

impl Opening {
    /// Takes note of an object that was opened, or of why it was not.
    fn step<T>(&mut self, code: c_int, object: *mut T) -> Result<NonNull<T>, i32> {
        let object = NonNull::new(object).filter(|_| code == 0).ok_or(code)?;
        self.fids.push(object.as_ptr().cast());
        Ok(object)
    }
}

impl Drop for Opening {
    fn drop(&mut self) {
        while let Some(fid) = self.fids.pop() {
            // SAFETY: open, and nothing uses it: opening has failed.
            unsafe { calls::fi_close(fid) };
        }
    }
}

impl Net {
    /// Opens an endpoint. Where the provider does multi-receives, a buffer takes messages as long
    /// as `min_room` bytes are left in it. Errors call it `name`.
    ///
    /// # Errors
    /// What the provider says, and at which step.
    pub(crate) fn open(info: Info, name: &str, min_room: usize) -> Result<Self, BaseError> {
        let library = info.library().clone();
        let failed = |what: &'static str| {
            let library = library.clone();
            move |code| BaseError::from(Failure::new(name, what, &library.describe(code)))
        };
        let mut opening = Opening { fids: Vec::new() };
        let fabric = open_fabric(&info, &mut opening).map_err(failed("opening a fabric"))?;
        let domain =
            open_domain(&info, fabric, &mut opening).map_err(failed("opening a domain"))?;
        let av = open_av(domain, &mut opening).map_err(failed("opening an address vector"))?;
        let (cq, wait) =
            open_cq(&info, domain, &mut opening).map_err(failed("opening a completion queue"))?;
        let endpoint = open_endpoint(&info, domain, av, cq, min_room, &mut opening)
            .map_err(failed("opening an endpoint"))?;
        opening.fids.clear();
        Ok(Self {
            endpoint,
            keeps_room: room_of(endpoint).is_none_or(|room| room >= min_room),
            cq,
            av,
            domain,
            fabric,
            wait,
            refusals: Refusals::default(),
            // SAFETY: numbers and pointers, for which zero is a value.
            entries: unsafe { std::mem::zeroed() },
            contexts: Contexts::new(),
            blocks: Vec::new(),
            next_key: 1,
            closed: false,
            abandoned: false,
            info,
        })
    }

    /// Closes the endpoint: from now on the provider touches no buffer any more, and everything
    /// that was registered may be given back. The net is not to be used again.
    pub(crate) fn close_endpoint(&mut self) {
        if std::mem::replace(&mut self.closed, true) {
            return;
        }
        // SAFETY: open until now, closed this once.
        let code = unsafe { calls::fi_close(self.endpoint.as_ptr().cast()) };
        if code != 0 {
            self.abandon();
        }
    }

    /// Leaves everything open for the rest of the process, with the memory that the provider may
    /// go on touching.
    pub(crate) fn abandon(&mut self) {
        self.closed = true;
        self.abandoned = true;
        self.blocks.drain(..).for_each(std::mem::forget);
        std::mem::forget(std::mem::replace(&mut self.contexts, Contexts::new()));
    }

    /// Whether the endpoint could not be closed: the provider may still touch what it was given.
    pub(crate) const fn is_abandoned(&self) -> bool {
        self.abandoned
    }

    /// What this was opened with.
    pub(crate) const fn info(&self) -> &Info {
        &self.info
    }

    pub(crate) const fn provider(&self) -> Provider<'_> {
        self.info.provider()
    }

    pub(crate) const fn library(&self) -> &Library {
        self.info.library()
    }

    /// What to sleep on, where the provider has such a thing.
    pub(crate) fn wait_descriptor(&self) -> Option<BorrowedFd<'_>> {
        use std::os::fd::AsFd;
        self.wait.as_ref().map(AsFd::as_fd)
    }

    /// Returns how often the provider had no room, to be looked at by any thread.
    pub(crate) const fn refusals(&self) -> &Refusals {
        &self.refusals
    }

    /// Whether a buffer for many messages is full before there is no room in it for the longest, as far as the provider says.
    pub(crate) const fn keeps_room(&self) -> bool {
        self.keeps_room
    }

    /// Whether a thread may go to sleep on the descriptor: nothing came meanwhile.
    pub(crate) fn may_sleep(&self) -> bool {
        let mut fids = [self.cq.as_ptr().cast::<fid>()];
        // SAFETY: both objects are open.
        unsafe { calls::fi_trywait(self.fabric.as_ptr(), fids.as_mut_ptr(), 1) == 0 }
    }

    /// The own address.
    ///
    /// # Errors
    /// The library's number.
    pub(crate) fn address(&self) -> Result<Vec<u8>, i32> {
        let mut bytes = vec![0; 512];
        let mut len = bytes.len();
        // SAFETY: an open endpoint, and `len` bytes of room.
        let code = unsafe {
            calls::fi_getname(
                self.endpoint.as_ptr().cast(),
                bytes.as_mut_ptr().cast(),
                &raw mut len,
            )
        };
        if code != 0 {
            return Err(code);
        }
        bytes.truncate(len);
        Ok(bytes)
    }

    /// Enters a peer's address. It has to be of a length that the provider's addresses have.
    ///
    /// # Errors
    /// The library's number.
    pub(crate) fn insert(&self, address: &[u8]) -> Result<Peer, i32> {
        let mut padded = [0; 512];
        let room = padded.get_mut(..address.len()).ok_or(-(FI_EINVAL as i32))?;
        room.copy_from_slice(address);
        let mut peer = fi_addr_t::MAX;
        // SAFETY: an open vector; more bytes than any provider's address has, the rest zero.
        let count = unsafe {
            calls::fi_av_insert(self.av.as_ptr(), padded.as_ptr().cast(), 1, &raw mut peer)
        };
        match count {
            1 if peer != fi_addr_t::MAX => Ok(Peer(peer)),
            code if code < 0 => Err(code),
            _ => Err(-(FI_EINVAL as i32)),
        }
    }

    /// Whether the endpoint is closed: nothing is to be posted to it any more.
    pub(super) const fn is_closed(&self) -> bool {
        self.closed
    }

    /// Takes a peer's address out: providers that have connections close the one to it, which ends
    /// what is under way. The address is not to be used again.
    pub(crate) fn remove(&self, peer: Peer) {
        let mut address = peer.0;
        // SAFETY: an open vector and one address of it.
        unsafe { calls::fi_av_remove(self.av.as_ptr(), &raw mut address, 1) };
    }

    /// Reads completions.
    #[inline]
    pub(crate) fn read(&mut self) -> Reading {
        // SAFETY: the queue's entries are of this format, and there is room for so many.
        let count = unsafe {
            calls::fi_cq_read(
                self.cq.as_ptr(),
                self.entries.as_mut_ptr().cast(),
                self.entries.len(),
            )
        };
        match count {
            1.. => Reading::Some((count as usize).min(BATCH)),
            0 => Reading::Nothing,
            code if code == -(FI_EAGAIN as isize) => Reading::Nothing,
            code if code == -(FI_EAVAIL as isize) => self.read_fault(),
            code => Reading::Broken(code as i32),
        }
    }

    /// One of the completions that were read last.
    #[inline]
    pub(crate) fn completion(&self, place: usize) -> Completion {
        let entry = &self.entries[place];
        // SAFETY: the contexts of all operations are ours.
        let op = unsafe { Contexts::op(entry.op_context) };
        Completion {
            op,
            flags: entry.flags,
            len: entry.len,
            data: entry.data,
            tag: entry.tag,
            start: entry.buf.addr(),
        }
    }

    #[cold]
    fn read_fault(&mut self) -> Reading {
        // SAFETY: numbers and pointers; no room for the provider's own words is offered.
        let mut entry: fi_cq_err_entry = unsafe { std::mem::zeroed() };
        // SAFETY: an open queue and room for an entry.
        let count = unsafe { calls::fi_cq_readerr(self.cq.as_ptr(), &raw mut entry, 0) };
        if count != 1 {
            return if count == 0 || count == -(FI_EAGAIN as isize) {
                Reading::Nothing
            } else {
                Reading::Broken(count as i32)
            };
        }
        // SAFETY: the contexts of all operations are ours.
        let op = unsafe { Contexts::op(entry.op_context) };
        Reading::Fault(Fault {
            completion: Completion {
                op,
                flags: entry.flags,
                len: entry.len,
                data: entry.data,
                tag: entry.tag,
                start: entry.buf.addr(),
            },
            error: entry.err,
            overflow: entry.olen,
        })
    }

    /// A block of memory for messages, registered where the provider asks for it.
    ///
    /// # Errors
    /// The library's number.
    pub(crate) fn allocate(&mut self, len: usize) -> Result<BlockId, i32> {
        let mut block = Block::new(len);
        if self.provider().registration_mode() & FI_MR_LOCAL != 0 {
            let start = block.at(0, 0);
            let access = FI_SEND | FI_RECV | FI_READ | FI_WRITE;
            // SAFETY: the block ends its registration before it frees its memory.
            block.registered = Some(unsafe { self.register(start, block.len(), access) }?);
        }
        self.blocks.push(block);
        Ok(BlockId(self.blocks.len() as u32 - 1))
    }

    /// Returns the `len` bytes at a place that no operation uses, to be filled.
    #[inline]
    pub(crate) fn room(&mut self, place: Place, len: usize) -> &mut [u8] {
        let start = self.blocks[place.block.0 as usize].at(place.offset, len);
        // SAFETY: inside of the block, which was zeroed when it was made; nobody but the provider has other pointers to
        // it, and it does not look at places that no operation uses. The net is borrowed meanwhile: none begins.
        unsafe { std::slice::from_raw_parts_mut(start, len) }
    }

    /// Copies the `len` bytes at `place` to a buffer that was lent, as many as it has room for.
    pub(crate) fn copy_out(&self, place: Place, len: usize, target: WriteRegion) {
        let len = len.min(target.len());
        let from = self.blocks[place.block.0 as usize].at(place.offset, len);
        // SAFETY: inside of the block, where no operation writes any more; the buffer was lent to be
        // written, and is none of ours.
        unsafe { ptr::copy_nonoverlapping(from, target.as_ptr(), len) };
    }

    /// Where in `block` a message lies that came into it: where the completion says, or at the start.
    #[inline]
    pub(crate) fn place(&self, block: BlockId, completion: &Completion) -> Option<Range<usize>> {
        let block = &self.blocks[block.0 as usize];
        let len = completion.len;
        let offset = match completion.start {
            0 => 0,
            start => block.offset_of(start, len)?,
        };
        (len <= block.len() - offset).then(|| offset..offset + len)
    }

    /// The bytes of a message that came into `block`.
    #[inline]
    pub(crate) fn payload(&self, block: BlockId, completion: &Completion) -> Option<Payload<'_>> {
        let place = self.place(block, completion)?;
        let start = self.blocks[block.0 as usize].at(place.start, place.len());
        // SAFETY: inside of the block, which lives as long as the net. The provider does not
        // write to a message again before its buffer is posted again.
        Some(unsafe { Payload::from_raw(start, place.len()) })
    }

    /// Registers `len` bytes at `start`.
    ///
    /// # Safety
    /// The memory is there, for what `access` names, until the registration has been dropped.
    ///
    /// # Errors
    /// The library's number.
    pub(crate) unsafe fn register(
        &mut self,
        start: *const u8,
        len: usize,
        access: u64,
    ) -> Result<Registered, i32> {
        if self.closed {
            return Err(-(FI_EOPBADSTATE as i32));
        }
        let key = self.next_key;
        self.next_key += 1;
        let mut mr = ptr::null_mut();
        // SAFETY: an open domain. The caller says that the memory outlives the registration;
        // registering touches no bytes.
        let code = unsafe {
            calls::fi_mr_reg(
                self.domain.as_ptr(),
                start.cast(),
                len,
                access,
                key,
                &raw mut mr,
            )
        };
        let registered = NonNull::new(mr).filter(|_| code == 0).ok_or(code)?;
        let registered = Registered::new(registered);
        if self.provider().registration_mode() & FI_MR_ENDPOINT != 0 {
            self.enable(&registered)?;
        }
        Ok(registered)
    }

    /// Binds a registration to the endpoint, for providers that want that.
    fn enable(&self, registered: &Registered) -> Result<(), i32> {
        let mr = registered.as_ptr().cast::<fid>();
        // SAFETY: both objects are open.
        let code = unsafe {
            match calls::fi_bind(mr, self.endpoint.as_ptr().cast(), 0) {
                0 => calls::fi_control(mr, FI_ENABLE as c_int, ptr::null_mut()),
                code => code,
            }
        };
        if code == 0 { Ok(()) } else { Err(code) }
    }
}

fn open_fabric(info: &Info, opening: &mut Opening) -> Result<NonNull<fid_fabric>, i32> {
    // SAFETY: an info of this library.
    let fabric = unsafe { info.library().open_fabric((*info.as_ptr()).fabric_attr) }?;
    opening.step(0, fabric)
}

fn open_domain(
    info: &Info,
    fabric: NonNull<fid_fabric>,
    opening: &mut Opening,
) -> Result<NonNull<fid_domain>, i32> {
    let mut domain = ptr::null_mut();
    // SAFETY: an open fabric of the same info.
    let code = unsafe { calls::fi_domain(fabric.as_ptr(), info.as_ptr(), &raw mut domain) };
    opening.step(code, domain)
}

fn open_av(domain: NonNull<fid_domain>, opening: &mut Opening) -> Result<NonNull<fid_av>, i32> {
    // SAFETY: numbers and pointers, for which zero is a value.
    let mut attributes: fi_av_attr = unsafe { std::mem::zeroed() };
    attributes.type_ = FI_AV_TABLE;
    let mut av = ptr::null_mut();
    // SAFETY: an open domain.
    let code = unsafe { calls::fi_av_open(domain.as_ptr(), &raw mut attributes, &raw mut av) };
    opening.step(code, av)
}

/// A queue with a descriptor to sleep on, or without where the provider has none.
fn open_cq(
    info: &Info,
    domain: NonNull<fid_domain>,
    opening: &mut Opening,
) -> Result<(NonNull<fid_cq>, Option<OwnedFd>), i32> {
    let (transmit, receive) = info.provider().queue_sizes();
    let mut last = 0;
    for wait_obj in [FI_WAIT_FD, FI_WAIT_NONE] {
        // SAFETY: numbers and pointers, for which zero is a value.
        let mut attributes: fi_cq_attr = unsafe { std::mem::zeroed() };
        attributes.size = (2 * (transmit + receive)).max(4096);
        attributes.format = FI_CQ_FORMAT_TAGGED;
        attributes.wait_obj = wait_obj;
        let mut cq = ptr::null_mut();
        // SAFETY: an open domain.
        last = unsafe { calls::fi_cq_open(domain.as_ptr(), &raw mut attributes, &raw mut cq) };
        if last == 0 {
            let cq = opening.step(last, cq)?;
            let wait = if wait_obj == FI_WAIT_FD {
                descriptor(cq)
            } else {
                None
            };
            return Ok((cq, wait));
        }
    }
    Err(last)
}

/// A descriptor of our own for what the queue signals.
fn descriptor(cq: NonNull<fid_cq>) -> Option<OwnedFd> {
    let mut number: c_int = -1;
    // SAFETY: an open queue and room for a descriptor.
    let code = unsafe {
        calls::fi_control(
            cq.as_ptr().cast(),
            FI_GETWAIT as c_int,
            (&raw mut number).cast(),
        )
    };
    if code != 0 || number < 0 {
        return None;
    }
    // SAFETY: the descriptor is the queue's, which is open.
    let borrowed = unsafe { BorrowedFd::borrow_raw(number) };
    borrowed.try_clone_to_owned().ok()
}

fn open_endpoint(
    info: &Info,
    domain: NonNull<fid_domain>,
    av: NonNull<fid_av>,
    cq: NonNull<fid_cq>,
    min_room: usize,
    opening: &mut Opening,
) -> Result<NonNull<fid_ep>, i32> {
    let mut endpoint = ptr::null_mut();
    // SAFETY: an open domain of the same info.
    let code = unsafe { calls::fi_endpoint(domain.as_ptr(), info.as_ptr(), &raw mut endpoint) };
    let endpoint = opening.step(code, endpoint)?;
    // The rule is to ask first, and `ofi_rxm` of 2.x heeds nothing later. Shared memory of 1.17 cannot be asked before the endpoint
    // is enabled.
    let early = info.provider().name() != "shm";
    if early {
        ask_for_room(endpoint, min_room);
    }
    enable(endpoint, av, cq)?;
    if !early {
        ask_for_room(endpoint, min_room);
    }
    Ok(endpoint)
}

/// Asks that a buffer for many messages is full where fewer bytes are left in it. A provider without such buffers says no, which is as
/// good.
fn ask_for_room(endpoint: NonNull<fid_ep>, min_room: usize) {
    // SAFETY: an open endpoint and a number of the length that is said.
    unsafe {
        calls::fi_setopt(
            endpoint.as_ptr(),
            FI_OPT_ENDPOINT as c_int,
            FI_OPT_MIN_MULTI_RECV as c_int,
            (&raw const min_room).cast(),
            size_of::<usize>(),
        );
    }
}

/// Returns with how many bytes left in it a buffer for many messages is full, if the provider says so.
fn room_of(endpoint: NonNull<fid_ep>) -> Option<usize> {
    let (mut room, mut len) = (0_usize, size_of::<usize>());
    // SAFETY: an open endpoint and room for a number of the length that is said.
    let code = unsafe {
        calls::fi_getopt(
            endpoint.as_ptr(),
            FI_OPT_ENDPOINT as c_int,
            FI_OPT_MIN_MULTI_RECV as c_int,
            (&raw mut room).cast(),
            &raw mut len,
        )
    };
    (code == 0 && len == size_of::<usize>()).then_some(room)
}

fn enable(endpoint: NonNull<fid_ep>, av: NonNull<fid_av>, cq: NonNull<fid_cq>) -> Result<(), i32> {
    let fid = endpoint.as_ptr().cast::<fid>();
    let done = |code| if code == 0 { Ok(()) } else { Err(code) };
    // SAFETY: all objects are open and of one domain.
    unsafe {
        done(calls::fi_bind(fid, av.as_ptr().cast(), 0))?;
        done(calls::fi_bind(
            fid,
            cq.as_ptr().cast(),
            FI_TRANSMIT | FI_RECV,
        ))?;
    }
    // SAFETY: an open endpoint, which both are bound to.
    let enabled = || done(unsafe { calls::fi_control(fid, FI_ENABLE as c_int, ptr::null_mut()) });
    match enabled() {
        // Shared memory names its memory by the number of the process. What one has left behind that was killed and had the same number
        // is removed by the attempt.
        Err(code) if code == -(FI_EBUSY as c_int) => enabled(),
        other => other,
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        self.close_endpoint();
        if self.abandoned {
            return;
        }
        // Blocks may be registered, which has to end before the domain does.
        self.blocks.clear();
        // SAFETY: open, closed this once, in the order in which they build on each other.
        unsafe {
            calls::fi_close(self.cq.as_ptr().cast());
            calls::fi_close(self.av.as_ptr().cast());
            calls::fi_close(self.domain.as_ptr().cast());
            calls::fi_close(self.fabric.as_ptr().cast());
        }
    }
}

impl fmt::Debug for Net {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Net({})", self.provider().name())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that panics fails")]
mod tests {
    use super::*;
    use crate::fixture;

    /// Opens an endpoint of shared memory; nothing, loudly, where there is no such provider.
    fn on_shm() -> Option<Net> {
        let info = fixture::info_of("shm")?;
        Some(Net::open(info, "ofi:shm", 0).unwrap())
    }

    /// What processes with this one's number have left behind does not keep an endpoint from opening.
    #[test]
    fn names_of_the_dead_are_taken() {
        const LEN: u64 = 1 << 16;
        let Some(first) = on_shm() else {
            return;
        };
        let address = first.address().unwrap();
        let address = address.split(|byte| *byte == 0).next().unwrap();
        // fi_shm://PROCESS:USER:NUMBER, the number counted by the process. Other tests may have the next ones.
        let name = str::from_utf8(address).unwrap().rsplit('/').next().unwrap();
        let (process, number) = name.rsplit_once(':').unwrap();
        let number: u32 = number.parse().unwrap();
        let left = (number + 1..number + 4).map(|number| format!("/dev/shm/{process}:{number}"));
        let left: Vec<String> = left.collect();
        for path in &left {
            if let Ok(file) = std::fs::File::create_new(path) {
                // Of no version of the provider.
                file.set_len(LEN).unwrap();
            }
        }
        let second = on_shm().unwrap();
        assert_ne!(second.address().unwrap(), first.address().unwrap());
        drop(second);
        let is_left = |path: &String| std::fs::metadata(path).is_ok_and(|file| file.len() == LEN);
        for path in left.iter().filter(|path| is_left(path)) {
            let _ = std::fs::remove_file(path);
        }
    }
}
