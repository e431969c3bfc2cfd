//! Messages (MPI-5.0, chapter 3).

use std::mem;
use std::sync::Arc;

use tagwire_base::{SourceSelector, Tag, TagSelector};
use tagwire_coll::Members;
use tagwire_pml::{RequestId, SendMode};

use crate::abi::{ANY_SOURCE, ANY_TAG, Comm, Datatype, PROC_NULL, Request, Status};
use crate::call::{Envelope, on_comm};
use crate::error::{Error, On, Result};
use crate::object::comm::{Communicator, tag, tags};
use crate::object::datatype::Span;
use crate::object::pending::{End, Pending};
use crate::object::request::DONE;
use crate::process::Process;
use crate::raw::{Elements, In, Out, Ref, StagingBuffer, StatusRef};

/// Starts a send of one block that nothing stands in the way of: the fast path of the thread that initialized MPI. `None`, with
/// nothing done, where anything does, errors too: [`isend_to`] has them all.
#[inline(always)]
fn try_send(
    process: &Process,
    send: Elements<In>,
    to: Envelope,
    mode: SendMode,
) -> Option<RequestId> {
    let Some(bytes) = process.types.simple_bytes(send.count, send.datatype) else {
        return try_send_elements(process, send, to, mode);
    };
    let tag = Tag::user(to.tag)?;
    if send.address.is_constant() {
        return None;
    }
    let mut look;
    let comm = match to.comm {
        Comm::WORLD => &process.world,
        _ => {
            look = process.comms.look()?;
            look.get(to.comm.0)?
        }
    };
    let (members, number) = (comm.peers(), to.rank as u32 as usize);
    let (rank, context) = (members.rank(number)?, members.context(number)?);
    let data = send.address.buffer(0, bytes);
    let sent = process
        .messenger
        .at_once()
        .send(&data, rank, tag, context, mode);
    mem::forget(data);
    sent
}

/// The same for elements of a derived datatype: short ones with gaps are packed to where the transport keeps them.
#[inline(never)]
fn try_send_elements(
    process: &Process,
    send: Elements<In>,
    to: Envelope,
    mode: SendMode,
) -> Option<RequestId> {
    let tag = Tag::user(to.tag)?;
    if mode == SendMode::Synchronous {
        return None;
    }
    let span = process.types.span(send.count, send.datatype).ok()?;
    let comm = process.comm(to.comm).ok()?;
    let (members, number) = (comm.peers(), to.rank as u32 as usize);
    let (rank, context) = (members.rank(number)?, members.context(number)?);
    let data = span.packed(send.address).ok()?;
    let messenger = process.messenger.at_once();
    messenger
        .send_packed(&data, rank, tag, context)
        .then_some(RequestId::COMPLETE)
}

/// Returns what a receive from `rank` accepts. `None` where that is no rank.
#[inline(always)]
fn try_source(comm: &Communicator, rank: i32) -> Option<SourceSelector> {
    match rank {
        ANY_SOURCE => Some(SourceSelector::ANY),
        _ => {
            let rank = comm.peers().rank(rank as u32 as usize)?;
            Some(SourceSelector::exact(rank))
        }
    }
}

/// Returns whether a probe would find nothing, where progress would do nothing: as [`try_send`].
#[inline(always)]
fn has_nothing(process: &Process, rank: i32, tag: i32, comm: Comm) -> Option<bool> {
    if tag != ANY_TAG {
        Tag::user(tag)?;
    }
    let (source, context) = {
        let mut look;
        let comm = match comm {
            Comm::WORLD => &process.world,
            Comm(handle) => {
                look = process.comms.look()?;
                look.get(handle)?
            }
        };
        (try_source(comm, rank)?, comm.team.context())
    };
    Some(process.messenger.at_once().has_nothing(source, context))
}

/// Starts a receive of one block that is simply queued: as [`try_send`].
#[inline(always)]
fn try_recv(
    process: &Process,
    recv: Elements<Out>,
    from: Envelope,
) -> Option<(RequestId, Option<Arc<Members>>)> {
    let bytes = process.types.simple_bytes(recv.count, recv.datatype)?;
    if recv.address.is_constant() {
        return None;
    }
    let tags = match from.tag {
        ANY_TAG => TagSelector::ANY,
        tag => TagSelector::exact(Tag::user(tag)?),
    };
    let mut look;
    let comm = match from.comm {
        Comm::WORLD => &process.world,
        _ => {
            look = process.comms.look()?;
            look.get(from.comm.0)?
        }
    };
    let source = try_source(comm, from.rank)?;
    let (data, context) = (recv.address.buffer(0, bytes), comm.team.context());
    let posted = process
        .messenger
        .at_once()
        .recv(&data, source, tags, context);
    mem::forget(data);
    Some((posted?, comm.members()))
}

/// Starts a send. `None` where it goes to no process.
pub(crate) fn isend_to(
    process: &Process,
    send: Elements<In>,
    to: Envelope,
    mode: SendMode,
) -> Result<Option<RequestId>> {
    on_comm(process, to.comm, |comm| {
        if to.rank == PROC_NULL {
            return Ok(None);
        }
        let tag = tag(to.tag)?;
        let (rank, context) = comm.peer(to.rank)?;
        let data = process
            .types
            .send(send.address, send.count, send.datatype)?;
        let sent = process
            .messenger
            .isend_slow(data, rank, tag, context, mode)?;
        Ok(Some(sent))
    })
}

#[inline]
fn send_impl(process: &Process, send: Elements<In>, to: Envelope, mode: SendMode) -> Result {
    match try_send(process, send, to, mode) {
        Some(RequestId::COMPLETE) => Ok(process.messenger.flush()?),
        Some(id) => finish_send(process, id, to.comm),
        None => send_slow(process, send, to, mode),
    }
}

/// Waits for a send.
fn finish_send(process: &Process, id: RequestId, comm: Comm) -> Result {
    let ended = process.messenger.wait(id, None);
    let ended = ended.map_err(|error| Error::from(error).on(On::Comm(comm)))?;
    let end = End::of_send(&ended);
    end.outcome(comm)
}

#[inline(never)]
fn send_slow(process: &Process, send: Elements<In>, to: Envelope, mode: SendMode) -> Result {
    match isend_to(process, send, to, mode)? {
        None => Ok(()),
        Some(id) => finish_send(process, id, to.comm),
    }
}

#[inline(always)]
fn isend_impl(
    process: &Process,
    send: Elements<In>,
    to: Envelope,
    request: Ref<Request>,
    mode: SendMode,
) -> Result {
    let entered = match try_send(process, send, to, mode) {
        Some(RequestId::COMPLETE) => DONE,
        Some(id) => process.requests.enter_with(|| Pending::Send(id), to.comm)?,
        None => return isend_slow(process, send, to, request, mode),
    };
    request.set(entered);
    Ok(())
}

#[inline(never)]
fn isend_slow(
    process: &Process,
    send: Elements<In>,
    to: Envelope,
    request: Ref<Request>,
    mode: SendMode,
) -> Result {
    let entered = match isend_to(process, send, to, mode)? {
        None | Some(RequestId::COMPLETE) => DONE,
        Some(id) => process.requests.enter(Pending::Send(id), to.comm)?,
    };
    request.set(entered);
    Ok(())
}

/// Starts a receive.
pub(crate) fn irecv_from(
    process: &Process,
    recv: Elements<Out>,
    from: Envelope,
) -> Result<Pending> {
    on_comm(process, from.comm, |comm| {
        if from.rank == PROC_NULL {
            return Ok(Pending::NoProcess);
        }
        let (tag, source) = (tags(from.tag)?, comm.source(from.rank)?);
        let data = process
            .types
            .recv(recv.address, recv.count, recv.datatype)?;
        let context = comm.team.context();
        let id = process.messenger.irecv(data, source, tag, context)?;
        Ok(Pending::Recv(id, comm.members()))
    })
}

/// Starts the send of an operation whose receive is under way: where that fails, the receive ends too.
pub(crate) fn send_or_revoke(
    process: &Process,
    send: Elements<In>,
    to: Envelope,
    receive: &Pending,
) -> Result<Option<RequestId>> {
    let sent = isend_to(process, send, to, SendMode::Standard);
    if let (Err(_), Pending::Recv(id, _)) = (&sent, receive) {
        // Its buffer is the program's again once it has ended.
        let _ = process.messenger.cancel(*id);
        let _ = process.messenger.wait(*id, None);
    }
    sent
}

/// Waits for a receive.
#[inline]
fn finish(process: &Process, pending: &Pending, comm: Comm, status: StatusRef) -> Result {
    let end = match pending {
        Pending::Recv(id, members) => {
            let ended = process.messenger.wait(*id, None);
            let ended = ended.map_err(|error| crate::Error::from(error).on(On::Comm(comm)))?;
            End::of_recv(&ended, members.as_deref())
        }
        Pending::NoProcess => {
            status.set(Status::NO_PROC);
            return Ok(());
        }
        _ => return Ok(()),
    };
    status.set(end.status);
    end.outcome(comm)
}

/// Makes the calls of a mode of sending: `blocking, nonblocking, persistent: the mode`.
macro_rules! sends {
    ($($send:ident, $isend:ident, $init:ident: $mode:expr, $Send:literal;)*) => {$(
        #[doc = concat!("`MPI_", $Send, "`.")]
        pub fn $send(
            process: &Process,
            send: Elements<In>,
            rank: i32,
            tag: i32,
            comm: Comm,
        ) -> Result {
            send_impl(process, send, Envelope { rank, tag, comm }, $mode)
        }

        #[doc = concat!("The nonblocking form of `MPI_", $Send, "`.")]
        #[inline(always)]
        pub fn $isend(
            process: &Process,
            send: Elements<In>,
            rank: i32,
            tag: i32,
            comm: Comm,
            request: Ref<Request>,
        ) -> Result {
            let to = Envelope { rank, tag, comm };
            isend_impl(process, send, to, request, $mode)
        }

        #[doc = concat!("The persistent form of `MPI_", $Send, "`.")]
        pub fn $init(
            process: &Arc<Process>,
            send: Elements<In>,
            rank: i32,
            tag: i32,
            comm: Comm,
            request: Ref<Request>,
        ) -> Result {
            let to = Envelope { rank, tag, comm };
            send_init_impl(process, send, to, request, $mode)
        }
    )*};
}

sends! {
    send, isend, send_init: SendMode::Standard, "Send";
    ssend, issend, ssend_init: SendMode::Synchronous, "Ssend";
    rsend, irsend, rsend_init: SendMode::Ready, "Rsend";
}

fn send_init_impl(
    process: &Arc<Process>,
    send: Elements<In>,
    to: Envelope,
    request: Ref<Request>,
    mode: SendMode,
) -> Result {
    let (comm, span) = checked(process, send.count, send.datatype, to)?;
    let messenger = Arc::clone(&process.messenger);
    // It keeps what the handles stand for, which may be freed before it starts.
    let again = move || {
        if to.rank == PROC_NULL {
            return Ok(Pending::Sent);
        }
        let ((rank, context), tag) = (comm.peer(to.rank)?, tag(to.tag)?);
        Ok(
            match messenger.isend(span.send(send.address)?, rank, tag, context, mode)? {
                RequestId::COMPLETE => Pending::Sent,
                id => Pending::Send(id),
            },
        )
    };
    let entered = process
        .requests
        .enter_persistent(Box::new(again), to.comm)?;
    request.set(entered);
    Ok(())
}

/// Checks the arguments of a send that is still to be started. Returns what its handles stand for.
pub(crate) fn checked(
    process: &Process,
    count: i64,
    datatype: Datatype,
    to: Envelope,
) -> Result<(Arc<Communicator>, Span)> {
    on_comm(process, to.comm, |comm| {
        if to.rank != PROC_NULL {
            comm.peer(to.rank)?;
            tag(to.tag)?;
        }
        Ok((Arc::clone(&comm), process.types.span(count, datatype)?))
    })
}

/// `MPI_Recv`.
pub fn recv(
    process: &Process,
    recv: Elements<Out>,
    rank: i32,
    tag: i32,
    comm: Comm,
    status: StatusRef,
) -> Result {
    let from = Envelope { rank, tag, comm };
    match try_recv(process, recv, from) {
        Some((id, members)) => finish(process, &Pending::Recv(id, members), comm, status),
        None => recv_slow(process, recv, from, status),
    }
}

#[inline(never)]
fn recv_slow(process: &Process, recv: Elements<Out>, from: Envelope, status: StatusRef) -> Result {
    let pending = irecv_from(process, recv, from)?;
    finish(process, &pending, from.comm, status)
}

/// `MPI_Irecv`.
#[inline(always)]
pub fn irecv(
    process: &Process,
    recv: Elements<Out>,
    rank: i32,
    tag: i32,
    comm: Comm,
    request: Ref<Request>,
) -> Result {
    let from = Envelope { rank, tag, comm };
    if let Some((id, members)) = try_recv(process, recv, from) {
        let make = || Pending::Recv(id, members);
        request.set(process.requests.enter_with(make, comm)?);
        return Ok(());
    }
    irecv_slow(process, recv, from, request)
}

#[inline(never)]
fn irecv_slow(
    process: &Process,
    recv: Elements<Out>,
    from: Envelope,
    request: Ref<Request>,
) -> Result {
    let pending = irecv_from(process, recv, from)?;
    request.set(process.requests.enter(pending, from.comm)?);
    Ok(())
}

/// `MPI_Recv_init`.
pub fn recv_init(
    process: &Arc<Process>,
    recv: Elements<Out>,
    rank: i32,
    tag: i32,
    comm: Comm,
    request: Ref<Request>,
) -> Result {
    let from = Envelope { rank, tag, comm };
    let (comm, span) = on_comm(process, comm, |comm| {
        if rank != PROC_NULL {
            tags(tag)?;
            comm.source(rank)?;
        }
        Ok((
            Arc::clone(&comm),
            process.types.span(recv.count, recv.datatype)?,
        ))
    })?;
    let messenger = Arc::clone(&process.messenger);
    let again = move || {
        if from.rank == PROC_NULL {
            return Ok(Pending::NoProcess);
        }
        let (source, tag) = (comm.source(from.rank)?, tags(from.tag)?);
        let context = comm.team.context();
        let id = messenger.irecv(span.recv(recv.address)?, source, tag, context)?;
        Ok(Pending::Recv(id, comm.members()))
    };
    let entered = process
        .requests
        .enter_persistent(Box::new(again), from.comm)?;
    request.set(entered);
    Ok(())
}

/// `MPI_Sendrecv`.
#[expect(clippy::too_many_arguments, reason = "those of the standard")]
pub fn sendrecv(
    process: &Process,
    send: Elements<In>,
    to: i32,
    send_tag: i32,
    recv: Elements<Out>,
    from: i32,
    recv_tag: i32,
    comm: Comm,
    status: StatusRef,
) -> Result {
    let envelope = |rank, tag| Envelope { rank, tag, comm };
    let (to, from) = (envelope(to, send_tag), envelope(from, recv_tag));
    let pending = match try_recv(process, recv, from) {
        Some((id, members)) => Pending::Recv(id, members),
        None => irecv_from(process, recv, from)?,
    };
    let sent = match try_send(process, send, to, SendMode::Standard) {
        None => send_or_revoke(process, send, to, &pending)?,
        sent => sent,
    };
    let received = finish(process, &pending, comm, status);
    if let Some(id) = sent {
        let ended = process.messenger.wait(id, None)?;
        return received.and_then(|()| End::of_send(&ended).outcome(comm));
    }
    received
}

/// `MPI_Sendrecv_replace`.
#[expect(clippy::too_many_arguments, reason = "those of the standard")]
pub fn sendrecv_replace(
    process: &Process,
    data: Elements<Out>,
    to: i32,
    send_tag: i32,
    from: i32,
    recv_tag: i32,
    comm: Comm,
    status: StatusRef,
) -> Result {
    let span = process.types.span(data.count, data.datatype);
    let span = span.map_err(|error| error.on(On::Comm(comm)))?;
    let copy = StagingBuffer::new(span.bytes);
    span.pack(data.address.read(), copy.address())?;
    let packed = copy.packed();
    sendrecv(
        process, packed, to, send_tag, data, from, recv_tag, comm, status,
    )
}

/// `MPI_Iprobe`.
pub fn iprobe(
    process: &Process,
    rank: i32,
    tag: i32,
    comm: Comm,
    flag: Ref<i32>,
    status: StatusRef,
) -> Result {
    if let Some(true) = has_nothing(process, rank, tag, comm) {
        flag.set(0);
        return Ok(());
    }
    iprobe_slow(process, rank, tag, comm, flag, status)
}

#[inline(never)]
fn iprobe_slow(
    process: &Process,
    rank: i32,
    tag: i32,
    comm: Comm,
    flag: Ref<i32>,
    status: StatusRef,
) -> Result {
    on_comm(process, comm, |comm| {
        if rank == PROC_NULL {
            flag.set(1);
            status.set(Status::NO_PROC);
            return Ok(());
        }
        let (from, tags) = (comm.source(rank)?, tags(tag)?);
        let found = process.messenger.probe(from, tags, comm.team.context())?;
        flag.set(i32::from(found.is_some()));
        if let Some(found) = found {
            status.set(crate::object::comm::status(
                &found,
                comm.members().as_deref(),
            ));
        }
        Ok(())
    })
}

/// `MPI_Probe`.
pub fn probe(process: &Process, rank: i32, tag: i32, comm: Comm, status: StatusRef) -> Result {
    on_comm(process, comm, |comm| {
        if rank == PROC_NULL {
            status.set(Status::NO_PROC);
            return Ok(());
        }
        let (from, tags) = (comm.source(rank)?, tags(tag)?);
        let context = comm.team.context();
        let found = process.messenger.wait_probe(from, tags, context, None)?;
        status.set(crate::object::comm::status(
            &found,
            comm.members().as_deref(),
        ));
        Ok(())
    })
}
