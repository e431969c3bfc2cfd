//! Buffered sends and their buffers (MPI-5.0, section 3.6).

use std::sync::Arc;

use tagwire_pml::{Messenger, RequestId};

use crate::abi::{Comm, PROC_NULL, Request};
use crate::call::p2p::checked;
use crate::call::{Envelope, on_comm};
use crate::error::{Class, Error, Result};
use crate::lock::Lock;
use crate::object::buffer::{Buffer, Slot, To};
use crate::object::comm::{Communicator, tag};
use crate::object::datatype::Span;
use crate::object::pending::{End, Pending, PendingOperation};
use crate::object::request::DONE;
use crate::process::Process;
use crate::raw::{CountOut, Elements, In, Out, Pointer, Ref};

/// `MPI_BUFFER_AUTOMATIC`.
const AUTOMATIC: usize = 2;

pub(crate) fn attach(slot: &Slot, buffer: Out, size: i64) -> Result {
    let address = buffer.read().address();
    if address.addr() == AUTOMATIC {
        return slot.attach(Buffer::new(None));
    }
    let bytes = usize::try_from(size);
    let bytes = bytes.map_err(|_| Error::new(Class::Arg, format!("the size is {size}")))?;
    if address.is_null() && bytes > 0 {
        return Err(Error::new(Class::Buffer, "the buffer is null"));
    }
    slot.attach(Buffer::new(Some((buffer, bytes))))
}

pub(crate) fn detach(
    process: &Process,
    slot: &Slot,
    address: Ref<Pointer>,
    size: CountOut,
) -> Result {
    let detached = slot.detach(&process.messenger)?;
    let (at, bytes) = match detached.as_ref().map(|buffer| buffer.attached()) {
        // None was attached.
        None => (std::ptr::null_mut(), 0),
        Some(None) => (std::ptr::without_provenance_mut(AUTOMATIC), 0),
        Some(Some((memory, bytes))) => (memory.read().address().cast_mut(), bytes),
    };
    address.set(Pointer(at));
    size.set(bytes as i64)
}

/// `MPI_Buffer_attach`.
pub fn buffer_attach(process: &Process, buffer: Out, size: i64) -> Result {
    attach(&process.buffer, buffer, size)
}

/// `MPI_Buffer_detach`. It waits until all messages of the buffer have been delivered.
pub fn buffer_detach(process: &Process, address: Ref<Pointer>, size: CountOut) -> Result {
    detach(process, &process.buffer, address, size)
}

/// `MPI_Buffer_flush`.
pub fn buffer_flush(process: &Process) -> Result {
    process.buffer.flush(&process.messenger)
}

/// `MPI_Comm_attach_buffer`.
pub fn comm_attach_buffer(process: &Process, comm: Comm, buffer: Out, size: i64) -> Result {
    on_comm(process, comm, |comm| attach(comm.buffer(), buffer, size))
}

/// `MPI_Comm_detach_buffer`.
pub fn comm_detach_buffer(
    process: &Process,
    comm: Comm,
    address: Ref<Pointer>,
    size: CountOut,
) -> Result {
    on_comm(process, comm, |comm| {
        detach(process, comm.buffer(), address, size)
    })
}

/// `MPI_Comm_flush_buffer`.
pub fn comm_flush_buffer(process: &Process, comm: Comm) -> Result {
    on_comm(process, comm, |comm| {
        comm.buffer().flush(&process.messenger)
    })
}

/// The delivery of the messages that a buffer had.
#[derive(Debug)]
struct Delivery {
    buffer: Arc<Buffer>,
    messenger: Arc<Messenger>,
    awaited: Lock<Vec<RequestId>>,
}

impl PendingOperation for Delivery {
    fn is_complete(&self) -> bool {
        let mut awaited = self.awaited.lock();
        self.buffer.have_left(&mut awaited, &self.messenger)
    }

    fn take(&self) -> Option<End> {
        self.is_complete().then_some(End::EMPTY)
    }
}

/// Returns a request for the delivery of what is in a buffer.
pub(crate) fn iflush(process: &Process, slot: &Slot, comm: Comm, request: Ref<Request>) -> Result {
    request.set(match slot.get() {
        None => DONE,
        Some(buffer) => {
            let pending = Pending::Operation(Arc::new(Delivery {
                awaited: Lock::new(buffer.ids()),
                buffer,
                messenger: Arc::clone(&process.messenger),
            }));
            process.requests.enter(pending, comm)?
        }
    });
    Ok(())
}

/// `MPI_Buffer_iflush`.
pub fn buffer_iflush(process: &Process, request: Ref<Request>) -> Result {
    iflush(process, &process.buffer, Comm::SELF, request)
}

/// `MPI_Comm_iflush_buffer`.
pub fn comm_iflush_buffer(process: &Process, comm: Comm, request: Ref<Request>) -> Result {
    on_comm(process, comm, |held| {
        iflush(process, held.buffer(), comm, request)
    })
}

/// Sends elements that are looked up already.
fn bsend_on(process: &Process, comm: &Communicator, data: In, span: &Span, to: Envelope) -> Result {
    if to.rank == PROC_NULL {
        return Ok(());
    }
    let tag = tag(to.tag)?;
    let (rank, context) = comm.peer(to.rank)?;
    let of_session = || process.sessions.get(comm.session().0)?.buffer().get();
    let buffer = comm.buffer().get().or_else(of_session);
    let buffer = buffer.or_else(|| process.buffer.get());
    let buffer = buffer.ok_or_else(|| Error::new(Class::Buffer, "no buffer is attached"))?;
    let to = To { rank, tag, context };
    buffer.send(&process.messenger, data, span, to)
}

/// `MPI_Bsend`.
pub fn bsend(process: &Process, send: Elements<In>, rank: i32, tag: i32, comm: Comm) -> Result {
    let to = Envelope { rank, tag, comm };
    on_comm(process, comm, |comm| {
        let span = process.types.span(send.count, send.datatype)?;
        bsend_on(process, &comm, send.address, &span, to)
    })
}

/// `MPI_Ibsend`.
pub fn ibsend(
    process: &Process,
    send: Elements<In>,
    rank: i32,
    tag: i32,
    comm: Comm,
    request: Ref<Request>,
) -> Result {
    bsend(process, send, rank, tag, comm)?;
    // The program may use its data again: the buffer has a copy.
    request.set(DONE);
    Ok(())
}

/// `MPI_Bsend_init`.
pub fn bsend_init(
    process: &Arc<Process>,
    send: Elements<In>,
    rank: i32,
    tag: i32,
    comm: Comm,
    request: Ref<Request>,
) -> Result {
    let to = Envelope { rank, tag, comm };
    let (kept, span) = checked(process, send.count, send.datatype, to)?;
    let weak = Arc::downgrade(process);
    // It keeps what the handles stand for, which may be freed before it starts.
    let again = move || {
        if let Some(process) = weak.upgrade() {
            bsend_on(&process, &kept, send.address, &span, to)?;
        }
        Ok(Pending::Sent)
    };
    let entered = process.requests.enter_persistent(Box::new(again), comm)?;
    request.set(entered);
    Ok(())
}
