//! Messages (MPI-5.0, chapter 3).

use std::sync::Arc;

use tagwire_pml::{RequestId, SendMode};

use crate::abi::{Comm, Datatype, PROC_NULL, Request, Status};
use crate::comm::{Held, tag, tags};
use crate::error::{On, Result};
use crate::process::Process;
use crate::raw::{In, Out, Ref, StatusRef};
use crate::request::{DONE, Pending, end_of};

/// Runs the body of a call on a communicator, where its errors are raised.
#[inline]
pub(crate) fn on_comm<'p, R>(
    process: &'p Process,
    handle: Comm,
    body: impl FnOnce(Held<'p>) -> Result<R>,
) -> Result<R> {
    let comm = process.comm(handle)?;
    body(comm).map_err(|error| error.on(On::Comm(handle)))
}

/// Where a message goes, or what a receive accepts: the last arguments of calls.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Envelope {
    pub(crate) rank: i32,
    pub(crate) tag: i32,
    pub(crate) comm: Comm,
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

fn send_by(process: &Process, data: (In, i64, Datatype), to: Envelope, mode: SendMode) -> Result {
    match isend_to(process, data, to, mode)? {
        None | Some(RequestId::COMPLETE) => Ok(()),
        Some(request) => {
            let ended = process.messenger.wait(request, None)?;
            let end = end_of(&ended, None, true);
            end.error
                .map_or(Ok(()), |error| Err(error.on(On::Comm(to.comm))))
        }
    }
}

fn isend_by(
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
fn finish(process: &Process, pending: &Pending, comm: Comm, status: StatusRef) -> Result {
    let end = match pending {
        Pending::Recv(id, members) => {
            let ended = process.messenger.wait(*id, None);
            let ended = ended.map_err(|error| crate::Error::from(error).on(On::Comm(comm)))?;
            end_of(&ended, members.as_deref(), false)
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
    let (comm, span) = on_comm(process, to.comm, |comm| {
        if to.rank != PROC_NULL {
            comm.peer(to.rank)?;
            tag(to.tag)?;
        }
        Ok((Arc::clone(&comm), process.types.span(count, datatype)?))
    })?;
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
        .enter_persistent(Arc::new(again), to.comm)?;
    request.set(entered);
    Ok(())
}

/// Checks the arguments of a send that is still to be started.
pub(crate) fn check(process: &Process, count: i64, datatype: Datatype, to: Envelope) -> Result {
    on_comm(process, to.comm, |comm| {
        process.types.span(count, datatype)?;
        if to.rank != PROC_NULL {
            comm.peer(to.rank)?;
            tag(to.tag)?;
        }
        Ok(())
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
    let pending = irecv_from(process, (room, count, datatype), from)?;
    finish(process, &pending, comm, status)
}

/// `MPI_Irecv`.
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
    let pending = irecv_from(process, (room, count, datatype), from)?;
    request.set(process.requests.enter(pending, comm)?);
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
        .enter_persistent(Arc::new(again), from.comm)?;
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
    if let Some(id) = sent.filter(|id| *id != RequestId::COMPLETE) {
        let ended = process.messenger.wait(id, None)?;
        let end = end_of(&ended, None, true);
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
    on_comm(process, comm, |comm| {
        if rank == PROC_NULL {
            flag.set(1);
            status.set(Status::NO_PROC);
            return Ok(());
        }
        let (from, tags) = (comm.source(rank)?, tags(tag)?);
        process.messenger.progress()?;
        let found = process.messenger.probe(from, tags, comm.team.context())?;
        flag.set(i32::from(found.is_some()));
        if let Some(found) = found {
            status.set(crate::comm::status(&found, comm.members().as_deref()));
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
        status.set(crate::comm::status(&found, comm.members().as_deref()));
        Ok(())
    })
}
