//! Messages (MPI-5.0, chapter 3).

use std::mem;
use std::sync::Arc;

use tagwire_base::{SourceSelector, Tag, TagSelector};
use tagwire_coll::Members;
use tagwire_pml::{RequestId, SendMode};

use crate::abi::{ANY_SOURCE, ANY_TAG, Comm, Datatype, PROC_NULL, Request, Status};
use crate::error::{Class, Error, On, Result};
use crate::object::comm::{Communicator, Held, tag, tags};
use crate::object::datatype::Span;
use crate::object::pending::{End, Pending};
use crate::object::request::DONE;
use crate::process::{self, Process};
use crate::raw::{In, Out, Ref, StatusRef};

/// Runs the body of a call on a communicator, where its errors are raised.
#[inline(always)]
pub(crate) fn on_comm<'p, R>(
    process: &'p Process,
    handle: Comm,
    body: impl FnOnce(Held<'p>) -> Result<R>,
) -> Result<R> {
    let comm = process.comm(handle)?;
    body(comm).map_err(|error| error.on(On::Comm(handle)))
}

/// Returns a count of the call's arrays.
///
/// # Errors
/// `MPI_ERR_COUNT` where it is negative.
#[inline]
pub(crate) fn count_of(count: i32) -> Result<usize> {
    usize::try_from(count).map_err(|_| Error::new(Class::Count, format!("the count is {count}")))
}

/// Where a message goes, or what a receive accepts: the last arguments of calls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Envelope {
    pub(crate) rank: i32,
    pub(crate) tag: i32,
    pub(crate) comm: Comm,
}

/// Starts a send of one block that nothing stands in the way of: the short way of the thread that initialized MPI. `None`, with
/// nothing done, where anything does, errors too: [`isend_to`] has them all.
#[inline(always)]
fn send_now(
    process: &Process,
    (data, count, datatype): (In, i64, Datatype),
    to: Envelope,
    mode: SendMode,
) -> Option<RequestId> {
    let Some(bytes) = process.types.simple_bytes(count, datatype) else {
        return send_elements_now(process, (data, count, datatype), to, mode);
    };
    let tag = Tag::user(to.tag)?;
    if data.is_constant() {
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
    let data = data.buffer(0, bytes);
    let sent = process
        .messenger
        .at_once()
        .send(&data, rank, tag, context, mode);
    mem::forget(data);
    sent
}

/// The same for elements of a datatype that is made: short ones with gaps are packed beside, and copied from there.
#[inline(never)]
fn send_elements_now(
    process: &Process,
    (data, count, datatype): (In, i64, Datatype),
    to: Envelope,
    mode: SendMode,
) -> Option<RequestId> {
    let tag = Tag::user(to.tag)?;
    let span = process.types.span(count, datatype).ok()?;
    if span.bytes > process::SCRATCH || mode == SendMode::Synchronous {
        return None;
    }
    let comm = process.comm(to.comm).ok()?;
    let (members, number) = (comm.peers(), to.rank as u32 as usize);
    let (rank, context) = (members.rank(number)?, members.context(number)?);
    let mut packer = span.packer(data).ok()?;
    let mut scratch = process.scratch.enter_by_bias()?;
    let packed = &mut scratch.value()[..span.bytes];
    let messenger = process.messenger.at_once();
    messenger
        .send_packed(packed, rank, tag, context, |packed| {
            packer.pack(packed);
        })
        .then_some(RequestId::COMPLETE)
}

/// Returns what a receive from `rank` accepts. `None` where that is no rank.
#[inline(always)]
fn source_now(comm: &Communicator, rank: i32) -> Option<SourceSelector> {
    match rank {
        ANY_SOURCE => Some(SourceSelector::ANY),
        _ => {
            let rank = comm.peers().rank(rank as u32 as usize)?;
            Some(SourceSelector::exact(rank))
        }
    }
}

/// Returns whether a probe would find nothing, where progress would do nothing: as [`send_now`].
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
        (source_now(comm, rank)?, comm.team.context())
    };
    Some(process.messenger.at_once().has_nothing(source, context))
}

/// Starts a receive of one block that is simply queued: as [`send_now`].
#[inline(always)]
fn recv_now(
    process: &Process,
    (room, count, datatype): (Out, i64, Datatype),
    from: Envelope,
) -> Option<(RequestId, Option<Arc<Members>>)> {
    let bytes = process.types.simple_bytes(count, datatype)?;
    if room.is_constant() {
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
    let source = source_now(comm, from.rank)?;
    let (room, context) = (room.buffer(0, bytes), comm.team.context());
    let posted = process
        .messenger
        .at_once()
        .recv(&room, source, tags, context);
    mem::forget(room);
    Some((posted?, comm.members()))
}

/// Starts a send. `None` where it goes to no process.
pub(crate) fn isend_to(
    process: &Process,
    (data, count, datatype): (In, i64, Datatype),
    to: Envelope,
    mode: SendMode,
) -> Result<Option<RequestId>> {
    on_comm(process, to.comm, |comm| {
        if to.rank == PROC_NULL {
            return Ok(None);
        }
        let tag = tag(to.tag)?;
        let (rank, context) = comm.peer(to.rank)?;
        let data = process.types.send(data, count, datatype)?;
        let sent = process.messenger.isend(data, rank, tag, context, mode)?;
        Ok(Some(sent))
    })
}

#[inline]
fn send_by(process: &Process, data: (In, i64, Datatype), to: Envelope, mode: SendMode) -> Result {
    match send_now(process, data, to, mode) {
        Some(RequestId::COMPLETE) => Ok(process.messenger.flush()?),
        Some(id) => finish_send(process, id, to.comm),
        None => send_at_length(process, data, to, mode),
    }
}

/// Waits for a send.
fn finish_send(process: &Process, id: RequestId, comm: Comm) -> Result {
    let ended = process.messenger.wait(id, None);
    let ended = ended.map_err(|error| Error::from(error).on(On::Comm(comm)))?;
    let end = End::of_send(&ended);
    end.error
        .map_or(Ok(()), |error| Err(error.on(On::Comm(comm))))
}

#[inline(never)]
fn send_at_length(
    process: &Process,
    data: (In, i64, Datatype),
    to: Envelope,
    mode: SendMode,
) -> Result {
    match isend_to(process, data, to, mode)? {
        None => Ok(()),
        Some(id) => finish_send(process, id, to.comm),
    }
}

#[inline(always)]
fn isend_by(
    process: &Process,
    data: (In, i64, Datatype),
    to: Envelope,
    request: Ref<Request>,
    mode: SendMode,
) -> Result {
    let entered = match send_now(process, data, to, mode) {
        Some(RequestId::COMPLETE) => DONE,
        Some(id) => process.requests.enter_with(|| Pending::Send(id), to.comm)?,
        None => return isend_at_length(process, data, to, request, mode),
    };
    request.set(entered);
    Ok(())
}

#[inline(never)]
fn isend_at_length(
    process: &Process,
    data: (In, i64, Datatype),
    to: Envelope,
    request: Ref<Request>,
    mode: SendMode,
) -> Result {
    let entered = match isend_to(process, data, to, mode)? {
        None | Some(RequestId::COMPLETE) => DONE,
        Some(id) => process.requests.enter(Pending::Send(id), to.comm)?,
    };
    request.set(entered);
    Ok(())
}

/// Starts a receive.
pub(crate) fn irecv_from(
    process: &Process,
    (room, count, datatype): (Out, i64, Datatype),
    from: Envelope,
) -> Result<Pending> {
    on_comm(process, from.comm, |comm| {
        if from.rank == PROC_NULL {
            return Ok(Pending::NoProcess);
        }
        let (tag, source) = (tags(from.tag)?, comm.source(from.rank)?);
        let room = process.types.recv(room, count, datatype)?;
        let context = comm.team.context();
        let id = process.messenger.irecv(room, source, tag, context)?;
        Ok(Pending::Recv(id, comm.members()))
    })
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
    end.error
        .map_or(Ok(()), |error| Err(error.on(On::Comm(comm))))
}

/// Makes the calls of a mode of sending: `blocking, nonblocking, persistent: the mode`.
macro_rules! sends {
    ($($send:ident, $isend:ident, $init:ident: $mode:expr, $Send:literal;)*) => {$(
        #[doc = concat!("`MPI_", $Send, "`.")]
        pub fn $send(
            process: &Process,
            data: In,
            count: i64,
            datatype: Datatype,
            rank: i32,
            tag: i32,
            comm: Comm,
        ) -> Result {
            send_by(process, (data, count, datatype), Envelope { rank, tag, comm }, $mode)
        }

        #[doc = concat!("The nonblocking form of `MPI_", $Send, "`.")]
        #[inline(always)]
        #[expect(clippy::too_many_arguments, reason = "those of the standard")]
        pub fn $isend(
            process: &Process,
            data: In,
            count: i64,
            datatype: Datatype,
            rank: i32,
            tag: i32,
            comm: Comm,
            request: Ref<Request>,
        ) -> Result {
            let to = Envelope { rank, tag, comm };
            isend_by(process, (data, count, datatype), to, request, $mode)
        }

        #[doc = concat!("The persistent form of `MPI_", $Send, "`.")]
        #[expect(clippy::too_many_arguments, reason = "those of the standard")]
        pub fn $init(
            process: &Arc<Process>,
            data: In,
            count: i64,
            datatype: Datatype,
            rank: i32,
            tag: i32,
            comm: Comm,
            request: Ref<Request>,
        ) -> Result {
            let to = Envelope { rank, tag, comm };
            send_init_by(process, (data, count, datatype), to, request, $mode)
        }
    )*};
}

sends! {
    send, isend, send_init: SendMode::Standard, "Send";
    ssend, issend, ssend_init: SendMode::Synchronous, "Ssend";
    rsend, irsend, rsend_init: SendMode::Ready, "Rsend";
}

fn send_init_by(
    process: &Arc<Process>,
    data: (In, i64, Datatype),
    to: Envelope,
    request: Ref<Request>,
    mode: SendMode,
) -> Result {
    let (data, count, datatype) = data;
    let (comm, span) = checked(process, count, datatype, to)?;
    let messenger = Arc::clone(&process.messenger);
    // It keeps what the handles stand for, which may be freed before it starts.
    let again = move || {
        if to.rank == PROC_NULL {
            return Ok(Pending::Sent);
        }
        let ((rank, context), tag) = (comm.peer(to.rank)?, tag(to.tag)?);
        Ok(
            match messenger.isend(span.send(data)?, rank, tag, context, mode)? {
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
#[expect(clippy::too_many_arguments, reason = "those of the standard")]
pub fn recv(
    process: &Process,
    room: Out,
    count: i64,
    datatype: Datatype,
    rank: i32,
    tag: i32,
    comm: Comm,
    status: StatusRef,
) -> Result {
    let from = Envelope { rank, tag, comm };
    let room = (room, count, datatype);
    match recv_now(process, room, from) {
        Some((id, members)) => finish(process, &Pending::Recv(id, members), comm, status),
        None => recv_at_length(process, room, from, status),
    }
}

#[inline(never)]
fn recv_at_length(
    process: &Process,
    room: (Out, i64, Datatype),
    from: Envelope,
    status: StatusRef,
) -> Result {
    let pending = irecv_from(process, room, from)?;
    finish(process, &pending, from.comm, status)
}

/// `MPI_Irecv`.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "those of the standard")]
pub fn irecv(
    process: &Process,
    room: Out,
    count: i64,
    datatype: Datatype,
    rank: i32,
    tag: i32,
    comm: Comm,
    request: Ref<Request>,
) -> Result {
    let from = Envelope { rank, tag, comm };
    let room = (room, count, datatype);
    if let Some((id, members)) = recv_now(process, room, from) {
        let make = || Pending::Recv(id, members);
        request.set(process.requests.enter_with(make, comm)?);
        return Ok(());
    }
    irecv_at_length(process, room, from, request)
}

#[inline(never)]
fn irecv_at_length(
    process: &Process,
    room: (Out, i64, Datatype),
    from: Envelope,
    request: Ref<Request>,
) -> Result {
    let pending = irecv_from(process, room, from)?;
    request.set(process.requests.enter(pending, from.comm)?);
    Ok(())
}

/// `MPI_Recv_init`.
#[expect(clippy::too_many_arguments, reason = "those of the standard")]
pub fn recv_init(
    process: &Arc<Process>,
    room: Out,
    count: i64,
    datatype: Datatype,
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
        Ok((Arc::clone(&comm), process.types.span(count, datatype)?))
    })?;
    let messenger = Arc::clone(&process.messenger);
    let again = move || {
        if from.rank == PROC_NULL {
            return Ok(Pending::NoProcess);
        }
        let (source, tag) = (comm.source(from.rank)?, tags(from.tag)?);
        let context = comm.team.context();
        let id = messenger.irecv(span.recv(room)?, source, tag, context)?;
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
    data: In,
    count: i64,
    datatype: Datatype,
    to: i32,
    send_tag: i32,
    room: Out,
    room_count: i64,
    room_type: Datatype,
    from: i32,
    recv_tag: i32,
    comm: Comm,
    status: StatusRef,
) -> Result {
    let (rank, tag) = (from, recv_tag);
    let from = Envelope { rank, tag, comm };
    let pending = irecv_from(process, (room, room_count, room_type), from)?;
    let (rank, tag) = (to, send_tag);
    let to = Envelope { rank, tag, comm };
    let sent = isend_to(process, (data, count, datatype), to, SendMode::Standard);
    let sent = match sent {
        Ok(sent) => sent,
        Err(error) => {
            // Its room is the program's again once it has ended.
            if let Pending::Recv(id, _) = pending {
                let _ = process.messenger.cancel(id);
                let _ = process.messenger.wait(id, None);
            }
            return Err(error);
        }
    };
    let received = finish(process, &pending, comm, status);
    if let Some(id) = sent {
        let ended = process.messenger.wait(id, None)?;
        let end = End::of_send(&ended);
        if let (Ok(()), Some(error)) = (&received, end.error) {
            return Err(error.on(On::Comm(comm)));
        }
    }
    received
}

/// `MPI_Sendrecv_replace`.
#[expect(clippy::too_many_arguments, reason = "those of the standard")]
pub fn sendrecv_replace(
    process: &Process,
    data: Out,
    count: i64,
    datatype: Datatype,
    to: i32,
    send_tag: i32,
    from: i32,
    recv_tag: i32,
    comm: Comm,
    status: StatusRef,
) -> Result {
    let span = process.types.span(count, datatype);
    let span = span.map_err(|error| error.on(On::Comm(comm)))?;
    let mut copy = vec![0; span.bytes];
    span.packer(data.read())?.pack(&mut copy);
    let packed = In::of(&copy);
    sendrecv(
        process,
        packed,
        span.bytes as i64,
        Datatype::PACKED,
        to,
        send_tag,
        data,
        count,
        datatype,
        from,
        recv_tag,
        comm,
        status,
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
    iprobe_at_length(process, rank, tag, comm, flag, status)
}

#[inline(never)]
fn iprobe_at_length(
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
