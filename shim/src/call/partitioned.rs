//! The calls of partitioned communication (MPI-5.0, chapter 4).

use std::sync::Arc;

use tagwire_pml::{ContextPair, PartitionedRecv, PartitionedSend, Policy};

use crate::abi::{Comm, Datatype, Info, PROC_NULL, Request};
use crate::call::{count_of, on_comm};
use crate::error::{Class, Error, Result};
use crate::object::comm::{CommRef, tag};
use crate::object::partitioned::{Part, Partitions, Recv, Send};
use crate::process::Process;
use crate::raw::{Elements, In, List, Out, Ref};

/// Returns the partitions of a buffer, of which `one` is the first.
fn of(process: &Process, one: Elements<Out>, partitions: i32) -> Result<(Partitions, u32)> {
    let number = u32::try_from(partitions).map_err(|_| {
        Error::new(
            Class::Arg,
            format!("the number of partitions is {partitions}"),
        )
    })?;
    let span = process.types.span(one.count, one.datatype)?;
    if number > 0 {
        span.check(one.address.read())?;
    }
    let whole = span.bytes.checked_mul(number as usize);
    whole
        .and_then(|bytes| isize::try_from(bytes).ok())
        .ok_or_else(|| Error::new(Class::Count, "the data is longer than memory"))?;
    Ok((Partitions::new(one.address, span, number), number))
}

/// Returns the rank of the job, and the ids of the context on both sides.
fn pair(comm: &CommRef<'_>, rank: i32) -> Result<(tagwire_base::Rank, ContextPair)> {
    let (rank, peer) = comm.peer(rank)?;
    let own = comm.team.context();
    Ok((rank, ContextPair { own, peer }))
}

/// `MPI_Psend_init`.
#[expect(clippy::too_many_arguments, reason = "those of the standard")]
pub fn psend_init(
    process: &Process,
    data: In,
    partitions: i32,
    count: i64,
    datatype: Datatype,
    rank: i32,
    number: i32,
    comm: Comm,
    _: Info,
    request: Ref<Request>,
) -> Result {
    let part = on_comm(process, comm, |comm| {
        let one = Out::from(data).of(count, datatype);
        let (buffer, partitions) = of(process, one, partitions)?;
        if rank == PROC_NULL {
            return Ok(Part::None);
        }
        let (tag, (rank, context)) = (tag(number)?, pair(&comm, rank)?);
        let data = buffer.place().read().buffer(0, buffer.bytes());
        let messenger = &process.messenger;
        // One partition of no bytes stands for none.
        let partitions = partitions.max(1);
        let policy = Policy::default();
        let inner =
            PartitionedSend::init(messenger, &data, partitions, rank, tag, context, policy)?;
        Ok(Part::Send(Arc::new(Send::new(inner, buffer))))
    })?;
    request.set(process.requests.enter_partitioned(part, comm)?);
    Ok(())
}

/// `MPI_Precv_init`.
#[expect(clippy::too_many_arguments, reason = "those of the standard")]
pub fn precv_init(
    process: &Process,
    data: Out,
    partitions: i32,
    count: i64,
    datatype: Datatype,
    source: i32,
    number: i32,
    comm: Comm,
    _: Info,
    request: Ref<Request>,
) -> Result {
    let part = on_comm(process, comm, |comm| {
        let (buffer, partitions) = of(process, data.of(count, datatype), partitions)?;
        if source == PROC_NULL {
            return Ok(Part::None);
        }
        let (tag, (rank, context)) = (tag(number)?, pair(&comm, source)?);
        let (data, messenger) = (buffer.place().buffer(0, buffer.bytes()), &process.messenger);
        let partitions = partitions.max(1);
        let inner = PartitionedRecv::init(messenger, &data, partitions, rank, tag, context)?;
        Ok(Part::Recv(Arc::new(Recv::new(
            inner, buffer, source, number,
        ))))
    })?;
    request.set(process.requests.enter_partitioned(part, comm)?);
    Ok(())
}

/// Returns the send of a request.
fn send_of(process: &Process, request: Request) -> Result<Option<Arc<Send>>> {
    match process.requests.part(request)? {
        Part::None => Ok(None),
        Part::Send(send) => Ok(Some(send)),
        Part::Recv(_) => Err(Error::new(Class::Request, "the request is a receive")),
    }
}

fn partition_of(number: i32) -> Result<u32> {
    u32::try_from(number)
        .map_err(|_| Error::new(Class::Arg, format!("{number} is no number of a partition")))
}

/// `MPI_Pready`.
pub fn pready(process: &Process, partition: i32, request: Request) -> Result {
    let partition = partition_of(partition)?;
    send_of(process, request)?.map_or(Ok(()), |send| send.ready(partition))
}

/// `MPI_Pready_range`: both ends are meant.
pub fn pready_range(process: &Process, low: i32, high: i32, request: Request) -> Result {
    let (low, high) = (partition_of(low)?, partition_of(high)?);
    let Some(send) = send_of(process, request)? else {
        return Ok(());
    };
    (low..=high).try_for_each(|partition| send.ready(partition))
}

/// `MPI_Pready_list`.
pub fn pready_list(
    process: &Process,
    length: i32,
    partitions: List<i32>,
    request: Request,
) -> Result {
    let length = count_of(length, Class::Count)?;
    let Some(send) = send_of(process, request)? else {
        return Ok(());
    };
    let mut all = partitions.slice(length).iter();
    all.try_for_each(|partition| send.ready(partition_of(*partition)?))
}

/// `MPI_Parrived`. Of a request that is null or inactive everything has arrived.
pub fn parrived(process: &Process, request: Request, partition: i32, flag: Ref<i32>) -> Result {
    if request == Request::NULL {
        flag.set(1);
        return Ok(());
    }
    let partition = partition_of(partition)?;
    let arrived = match process.requests.part(request)? {
        Part::None => true,
        Part::Recv(recv) if recv.is_active() => recv.arrived(partition)?,
        // Between rounds everything has arrived.
        Part::Recv(_) => true,
        Part::Send(_) => return Err(Error::new(Class::Request, "the request is a send")),
    };
    flag.set(i32::from(arrived));
    Ok(())
}
