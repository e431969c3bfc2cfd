//! Collectives of intercommunicators (MPI-5.0, section 6.2.2): data goes from each group to the other.
//!
//! Where there is a root, it passes `MPI_ROOT`, the others of its group `MPI_PROC_NULL`, and those of the other group its rank.
#![allow(clippy::too_many_arguments, reason = "those of the standard")]

use std::borrow::Cow;
use std::sync::Arc;

use tagwire_coll::operations::{
    Bystander, InterAllgather, InterAllreduce, InterAlltoall, InterBroadcast, InterGather,
    InterReduce, InterReduceScatter, InterRoot, InterScatter,
};
use tagwire_coll::{Collective, Sides};

use crate::abi::{Datatype, Op, PROC_NULL, ROOT};
use crate::call::collectives::data::{Blocks, Data};
use crate::call::collectives::operands::Operands;
use crate::call::collectives::run::{Form, Moves, in_place, run};
use crate::call::collectives::{apart, total};
use crate::error::{Class, Error, Result};
use crate::object::comm::{Communicator, Held};
use crate::process::Process;
use crate::raw::{Counts, In, List, Out};

/// Returns a root; `None` to those beside it.
fn root_of(comm: &Communicator, root: i32) -> Result<Option<InterRoot>> {
    let size = comm.peers().len();
    match (root, usize::try_from(root)) {
        (ROOT, _) => Ok(Some(InterRoot::Here)),
        (PROC_NULL, _) => Ok(None),
        (_, Ok(member)) if member < size => Ok(Some(InterRoot::There(member))),
        _ => {
            let text = format!("there is no rank {root} in a remote group of {size}");
            Err(Error::new(Class::Root, text))
        }
    }
}

/// Takes part in an operation whose root is another of this group.
fn stand_by(process: &Process, comm: &Held<'_>, form: Form, of: Collective) -> Result {
    run(process, comm, form, Moves::default(), move || Bystander {
        of,
    })
}

/// Returns data that is read. There is none in place here (MPI-5.0, section 6.2.3).
fn read(process: &Process, (data, count, datatype): (In, i64, Datatype)) -> Result<Data> {
    match data.is_in_place() {
        true => Err(in_place()),
        false => Data::of(process, Out::of_input(data), count, datatype),
    }
}

/// Returns room that is written.
fn written(process: &Process, (room, count, datatype): (Out, i64, Datatype)) -> Result<Data> {
    match room.is_in_place() {
        true => Err(in_place()),
        false => Data::of(process, room, count, datatype),
    }
}

/// Returns the blocks of each member of the remote group.
fn blocks(process: &Process, comm: &Communicator, address: Out, blocks: Blocks) -> Result<Data> {
    match address.is_in_place() {
        true => Err(in_place()),
        false => Data::blocks(process, address, blocks, comm.peers().len()),
    }
}

pub(crate) fn bcast_between(
    process: &Process,
    comm: &Held<'_>,
    form: Form,
    data: Out,
    count: i64,
    datatype: Datatype,
    root: i32,
) -> Result {
    let Some(root) = root_of(comm, root)? else {
        return stand_by(process, comm, form, Collective::Broadcast);
    };
    let data = Arc::new(written(process, (data, count, datatype))?);
    let mut moves = Moves::default();
    match root {
        InterRoot::Here => moves.fill.push(Arc::clone(&data)),
        InterRoot::There(_) => moves.drain.push(Arc::clone(&data)),
    }
    run(process, comm, form, moves, move || InterBroadcast {
        data: data.write(),
        root,
    })
}

/// Gives the `own` data of this group to a root of the other, or gets that of the other in `all`: as the root says.
fn gathered(
    process: &Process,
    comm: &Held<'_>,
    form: Form,
    root: i32,
    own: impl FnOnce() -> Result<Data>,
    all: impl FnOnce() -> Result<(Data, Vec<usize>)>,
) -> Result {
    let Some(root) = root_of(comm, root)? else {
        return stand_by(process, comm, form, Collective::Gather);
    };
    let (mut moves, is_root) = (Moves::default(), root == InterRoot::Here);
    let (data, lengths) = if is_root {
        all()?
    } else {
        (own()?, Vec::new())
    };
    let data = Arc::new(data);
    match is_root {
        true => moves.drain.push(Arc::clone(&data)),
        false => moves.fill.push(Arc::clone(&data)),
    }
    run(process, comm, form, moves, move || InterGather {
        own: if is_root { &[] } else { data.read() },
        lengths: Cow::Owned(lengths.clone()),
        out: is_root.then(|| data.write()),
        root,
    })
}

pub(crate) fn gather_between(
    process: &Process,
    comm: &Held<'_>,
    form: Form,
    data: In,
    count: i64,
    datatype: Datatype,
    room: Out,
    room_count: i64,
    room_type: Datatype,
    root: i32,
) -> Result {
    let own = || read(process, (data, count, datatype));
    let all = || whole(process, comm, room, (room_count, room_type));
    gathered(process, comm, form, root, own, all)
}

/// Returns equal blocks of all members of the remote group, and their lengths.
fn whole(
    process: &Process,
    comm: &Communicator,
    room: Out,
    (count, datatype): (i64, Datatype),
) -> Result<(Data, Vec<usize>)> {
    let size = comm.peers().len();
    let all = written(process, (room, total(count, size)?, datatype))?;
    let lengths = vec![all.len() / size; size];
    Ok((all, lengths))
}

pub(crate) fn gatherv_between(
    process: &Process,
    comm: &Held<'_>,
    form: Form,
    data: In,
    count: i64,
    datatype: Datatype,
    room: Out,
    counts: Counts,
    displacements: Counts,
    room_type: Datatype,
    root: i32,
) -> Result {
    let own = || read(process, (data, count, datatype));
    let all = || {
        let parts = Blocks {
            counts,
            displacements,
            datatype: room_type,
        };
        let all = blocks(process, comm, room, parts)?;
        let lengths = all.lengths();
        Ok((all, lengths))
    };
    gathered(process, comm, form, root, own, all)
}

/// As [`gathered`], the other way.
fn scattered(
    process: &Process,
    comm: &Held<'_>,
    form: Form,
    root: i32,
    all: impl FnOnce() -> Result<(Data, Vec<usize>)>,
    own: impl FnOnce() -> Result<Data>,
) -> Result {
    let Some(root) = root_of(comm, root)? else {
        return stand_by(process, comm, form, Collective::Scatter);
    };
    let (mut moves, is_root) = (Moves::default(), root == InterRoot::Here);
    let (data, lengths) = if is_root {
        all()?
    } else {
        (own()?, Vec::new())
    };
    let data = Arc::new(data);
    match is_root {
        true => moves.fill.push(Arc::clone(&data)),
        false => moves.drain.push(Arc::clone(&data)),
    }
    run(process, comm, form, moves, move || InterScatter {
        input: is_root.then(|| data.read()),
        lengths: Cow::Owned(lengths.clone()),
        own: if is_root { &mut [] } else { data.write() },
        root,
    })
}

pub(crate) fn scatter_between(
    process: &Process,
    comm: &Held<'_>,
    form: Form,
    data: In,
    count: i64,
    datatype: Datatype,
    room: Out,
    room_count: i64,
    room_type: Datatype,
    root: i32,
) -> Result {
    let all = || whole(process, comm, Out::of_input(data), (count, datatype));
    let own = || written(process, (room, room_count, room_type));
    scattered(process, comm, form, root, all, own)
}

pub(crate) fn scatterv_between(
    process: &Process,
    comm: &Held<'_>,
    form: Form,
    data: In,
    counts: Counts,
    displacements: Counts,
    datatype: Datatype,
    room: Out,
    room_count: i64,
    room_type: Datatype,
    root: i32,
) -> Result {
    let all = || {
        let parts = Blocks {
            counts,
            displacements,
            datatype,
        };
        let all = blocks(process, comm, Out::of_input(data), parts)?;
        let lengths = all.lengths();
        Ok((all, lengths))
    };
    let own = || written(process, (room, room_count, room_type));
    scattered(process, comm, form, root, all, own)
}

/// Returns the data that is combined.
fn operand(process: &Process, operands: &Operands, data: In, count: i64) -> Result<Arc<Data>> {
    operands.input(process, data, count)?.ok_or_else(in_place)
}

/// Returns the room for a result.
fn result(process: &Process, operands: &Operands, room: Out, count: i64) -> Result<Arc<Data>> {
    match room.is_in_place() {
        true => Err(in_place()),
        false => Ok(Arc::new(operands.data(process, room, count)?)),
    }
}

pub(crate) fn reduce_between(
    process: &Process,
    comm: &Held<'_>,
    form: Form,
    data: In,
    room: Out,
    count: i64,
    datatype: Datatype,
    op: Op,
    root: i32,
) -> Result {
    let Some(root) = root_of(comm, root)? else {
        return stand_by(process, comm, form, Collective::Reduce);
    };
    let operands = Operands::of(process, op, datatype)?;
    let (mut moves, is_root) = (Moves::default(), root == InterRoot::Here);
    let data = match is_root {
        true => result(process, &operands, room, count)?,
        false => operand(process, &operands, data, count)?,
    };
    match is_root {
        true => moves.unpacks(&data),
        false => moves.packs(&data),
    }
    let operator = operands.operator();
    run(process, comm, form, moves, move || InterReduce {
        operator: operator.clone(),
        input: if is_root { &[] } else { data.read() },
        out: is_root.then(|| data.write()),
        root,
    })
}

pub(crate) fn allreduce_between(
    process: &Process,
    comm: &Held<'_>,
    form: Form,
    data: In,
    room: Out,
    count: i64,
    datatype: Datatype,
    op: Op,
) -> Result {
    let operands = Operands::of(process, op, datatype)?;
    let input = operand(process, &operands, data, count)?;
    let out = result(process, &operands, room, count)?;
    apart(Some(&input), &out)?;
    let mut moves = Moves::default();
    moves.packs(&input);
    moves.unpacks(&out);
    let operator = operands.operator();
    run(process, comm, form, moves, move || InterAllreduce {
        operator: operator.clone(),
        input: input.read(),
        out: out.write(),
    })
}

/// Returns the number of members of this group, and this process's rank in it.
fn local(comm: &Communicator) -> (usize, usize) {
    let local = comm.sides().map_or(0, |sides| sides.local().len());
    (local, comm.sides().map_or(0, Sides::me))
}

pub(crate) fn reduce_scatter_between(
    process: &Process,
    comm: &Held<'_>,
    form: Form,
    data: In,
    room: Out,
    counts: Counts,
    datatype: Datatype,
    op: Op,
) -> Result {
    let counts = (0..local(comm).0).map(|member| counts.get(member));
    let (both, counts) = ((data, room), counts.collect());
    reduce_scattered(process, comm, form, both, counts, (datatype, op))
}

pub(crate) fn reduce_scatter_block_between(
    process: &Process,
    comm: &Held<'_>,
    form: Form,
    data: In,
    room: Out,
    count: i64,
    datatype: Datatype,
    op: Op,
) -> Result {
    let (both, counts) = ((data, room), vec![count; local(comm).0]);
    reduce_scattered(process, comm, form, both, counts, (datatype, op))
}

fn reduce_scattered(
    process: &Process,
    comm: &Held<'_>,
    form: Form,
    (data, room): (In, Out),
    counts: Vec<i64>,
    (datatype, op): (Datatype, Op),
) -> Result {
    if let Some(count) = counts.iter().find(|count| **count < 0) {
        return Err(Error::new(Class::Count, format!("the count is {count}")));
    }
    let mut all = counts.iter();
    let sum = all.try_fold(0_i64, |sum, count| sum.checked_add(*count));
    let sum = sum.ok_or_else(|| Error::new(Class::Count, "the counts are too many"))?;
    let operands = Operands::of(process, op, datatype)?;
    let input = operand(process, &operands, data, sum)?;
    let out = result(process, &operands, room, counts[local(comm).1])?;
    apart(Some(&input), &out)?;
    let mut moves = Moves::default();
    moves.packs(&input);
    moves.unpacks(&out);
    let element = operands.element();
    let lengths = counts.iter().map(|count| *count as usize * element);
    let lengths: Vec<usize> = lengths.collect();
    let operator = operands.operator();
    run(process, comm, form, moves, move || InterReduceScatter {
        operator: operator.clone(),
        input: input.read(),
        lengths: Cow::Owned(lengths.clone()),
        out: out.write(),
    })
}

/// Gives this process's data to all of the other group, and gets that of each.
fn allgathered(
    process: &Process,
    comm: &Held<'_>,
    form: Form,
    own: Data,
    (all, lengths): (Data, Vec<usize>),
) -> Result {
    own.apart_from(&all)?;
    let (own, all) = (Arc::new(own), Arc::new(all));
    let mut moves = Moves::default();
    moves.fill.push(Arc::clone(&own));
    moves.drain.push(Arc::clone(&all));
    run(process, comm, form, moves, move || InterAllgather {
        own: own.read(),
        lengths: Cow::Owned(lengths.clone()),
        out: all.write(),
    })
}

pub(crate) fn allgather_between(
    process: &Process,
    comm: &Held<'_>,
    form: Form,
    data: In,
    count: i64,
    datatype: Datatype,
    room: Out,
    room_count: i64,
    room_type: Datatype,
) -> Result {
    let own = read(process, (data, count, datatype))?;
    let all = whole(process, comm, room, (room_count, room_type))?;
    allgathered(process, comm, form, own, all)
}

pub(crate) fn allgatherv_between(
    process: &Process,
    comm: &Held<'_>,
    form: Form,
    data: In,
    count: i64,
    datatype: Datatype,
    room: Out,
    counts: Counts,
    displacements: Counts,
    room_type: Datatype,
) -> Result {
    let own = read(process, (data, count, datatype))?;
    let parts = Blocks {
        counts,
        displacements,
        datatype: room_type,
    };
    let all = blocks(process, comm, room, parts)?;
    let lengths = all.lengths();
    allgathered(process, comm, form, own, (all, lengths))
}

/// Exchanges a block with each of the other group.
fn exchange(
    process: &Process,
    comm: &Held<'_>,
    form: Form,
    (data, to): (Data, Vec<usize>),
    (room, from): (Data, Vec<usize>),
) -> Result {
    data.apart_from(&room)?;
    let (data, room) = (Arc::new(data), Arc::new(room));
    let mut moves = Moves::default();
    moves.fill.push(Arc::clone(&data));
    moves.drain.push(Arc::clone(&room));
    run(process, comm, form, moves, move || InterAlltoall {
        input: data.read(),
        to: Cow::Owned(to.clone()),
        out: room.write(),
        from: Cow::Owned(from.clone()),
    })
}

pub(crate) fn alltoall_between(
    process: &Process,
    comm: &Held<'_>,
    form: Form,
    data: In,
    count: i64,
    datatype: Datatype,
    room: Out,
    room_count: i64,
    room_type: Datatype,
) -> Result {
    let data = whole(process, comm, Out::of_input(data), (count, datatype))?;
    let room = whole(process, comm, room, (room_count, room_type))?;
    exchange(process, comm, form, data, room)
}

pub(crate) fn alltoallv_between(
    process: &Process,
    comm: &Held<'_>,
    form: Form,
    data: In,
    counts: Counts,
    displacements: Counts,
    datatype: Datatype,
    room: Out,
    room_counts: Counts,
    room_displacements: Counts,
    room_type: Datatype,
) -> Result {
    let parts = |counts, displacements, datatype| Blocks {
        counts,
        displacements,
        datatype,
    };
    let to = parts(counts, displacements, datatype);
    let data = blocks(process, comm, Out::of_input(data), to)?;
    let from = parts(room_counts, room_displacements, room_type);
    let room = blocks(process, comm, room, from)?;
    let (to, from) = (data.lengths(), room.lengths());
    exchange(process, comm, form, (data, to), (room, from))
}

pub(crate) fn alltoallw_between(
    process: &Process,
    comm: &Held<'_>,
    form: Form,
    data: In,
    counts: Counts,
    displacements: Counts,
    types: List<Datatype>,
    room: Out,
    room_counts: Counts,
    room_displacements: Counts,
    room_types: List<Datatype>,
) -> Result {
    if data.is_in_place() || room.is_in_place() {
        return Err(in_place());
    }
    let size = comm.peers().len();
    let (at, address) = ((counts, displacements), Out::of_input(data));
    let data = Data::blocks_of_types(process, address, at, types.slice(size))?;
    let at = (room_counts, room_displacements);
    let room = Data::blocks_of_types(process, room, at, room_types.slice(size))?;
    let (to, from) = (data.lengths(), room.lengths());
    exchange(process, comm, form, (data, to), (room, from))
}
