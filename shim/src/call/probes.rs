//! Probes that take their message out of matching (MPI-5.0, section 3.8.2).

use tagwire_pml::MessageId;

use crate::abi::{Comm, Message, PROC_NULL, Request, Status};
use crate::call::on_comm;
use crate::error::{Error, On, Result};
use crate::object::comm::{CommRef, status as status_of, tags};
use crate::object::message::Claimed;
use crate::object::pending::{End, Pending};
use crate::process::Process;
use crate::raw::{Elements, Out, Ref, StatusRef};

fn enter(
    process: &Process,
    comm: &CommRef<'_>,
    found: (MessageId, tagwire_pml::Status),
    message: Ref<Message>,
    status: StatusRef,
) -> Result {
    let ((id, found), members) = (found, comm.members());
    status.set(status_of(&found, members.as_deref()));
    let comm = comm.handle;
    let claimed = Claimed { id, members, comm };
    let entered = process.messages.insert_with(|_| claimed)?;
    message.set(Message(entered));
    Ok(())
}

/// `MPI_Improbe`.
pub fn improbe(
    process: &Process,
    rank: i32,
    tag: i32,
    comm: Comm,
    flag: Ref<i32>,
    message: Ref<Message>,
    status: StatusRef,
) -> Result {
    on_comm(process, comm, |comm| {
        if rank == PROC_NULL {
            flag.set(1);
            message.set(Message::NO_PROC);
            status.set(Status::NO_PROC);
            return Ok(());
        }
        let (from, tags) = (comm.source(rank)?, tags(tag)?);
        let context = comm.team.context();
        let found = process.messenger.claim(from, tags, context)?;
        flag.set(i32::from(found.is_some()));
        match found {
            Some(found) => enter(process, &comm, found, message, status),
            None => Ok(()),
        }
    })
}

/// `MPI_Mprobe`.
pub fn mprobe(
    process: &Process,
    rank: i32,
    tag: i32,
    comm: Comm,
    message: Ref<Message>,
    status: StatusRef,
) -> Result {
    on_comm(process, comm, |comm| {
        if rank == PROC_NULL {
            message.set(Message::NO_PROC);
            status.set(Status::NO_PROC);
            return Ok(());
        }
        let (from, tags) = (comm.source(rank)?, tags(tag)?);
        let context = comm.team.context();
        let found = process.messenger.wait_claim(from, tags, context, None)?;
        enter(process, &comm, found, message, status)
    })
}

/// Starts to receive a message. Returns its communicator too.
fn start(process: &Process, recv: Elements<Out>, message: Ref<Message>) -> Result<(Pending, Comm)> {
    let given = message.get()?;
    if given == Message::NO_PROC {
        message.set(Message::NULL);
        return Ok((Pending::NoProcess, Comm::SELF));
    }
    let claimed = process.messages.find(given.0)?;
    let on = On::Comm(claimed.comm);
    let data = process.types.recv(recv.address, recv.count, recv.datatype);
    let data = data.map_err(|error| error.on(on))?;
    let id = process.messenger.irecv_claimed(data, claimed.id);
    let id = id.map_err(|error| Error::from(error).on(on))?;
    process.messages.remove(given.0);
    message.set(Message::NULL);
    Ok((Pending::Recv(id, claimed.members.clone()), claimed.comm))
}

/// `MPI_Imrecv`.
pub fn imrecv(
    process: &Process,
    recv: Elements<Out>,
    message: Ref<Message>,
    request: Ref<Request>,
) -> Result {
    let (pending, comm) = start(process, recv, message)?;
    request.set(process.requests.enter(pending, comm)?);
    Ok(())
}

/// `MPI_Mrecv`.
pub fn mrecv(
    process: &Process,
    recv: Elements<Out>,
    message: Ref<Message>,
    status: StatusRef,
) -> Result {
    let (pending, comm) = start(process, recv, message)?;
    let Pending::Recv(id, members) = pending else {
        status.set(Status::NO_PROC);
        return Ok(());
    };
    let ended = process.messenger.wait(id, None)?;
    let end = End::of_recv(&ended, members.as_deref());
    status.set(end.status);
    end.outcome(comm)
}
