//! Collectives (MPI-5.0, chapter 6): each call in its blocking, nonblocking and persistent form.
#![allow(clippy::too_many_arguments, reason = "those of the standard")]

mod data;
mod fast;
mod inter;
pub mod neighbours;
mod operands;
mod run;

use std::borrow::Cow;
use std::sync::Arc;

use tagwire_coll::Operator;
use tagwire_coll::operations::{
    Allgather, Allgatherv, Allreduce, Alltoall, Alltoallv, Barrier, Broadcast, Exscan, Gather,
    Gatherv, Reduce, ReduceScatter, Scan, Scatter, Scatterv,
};

use crate::abi::{Datatype, Op};
use crate::call::collectives::data::{Blocks, Data};
use crate::call::collectives::inter::{
    allgather_between, allgatherv_between, allreduce_between, alltoall_between, alltoallv_between,
    alltoallw_between, bcast_between, gather_between, gatherv_between, reduce_between,
    reduce_scatter_between, reduce_scatter_block_between, scatter_between, scatterv_between,
};
use crate::call::collectives::operands::Operands;
use crate::call::collectives::run::{Form, Moves, forms, in_place, run};
use crate::error::{Class, Error, Result};
use crate::object::comm::Held;
use crate::process::Process;
use crate::raw::{Counts, In, List, Out};

/// Returns a root as a member.
fn root_of(comm: &Held<'_>, root: i32) -> Result<usize> {
    let member = usize::try_from(root).ok();
    let member = member.filter(|member| *member < comm.team.size());
    member.ok_or_else(|| {
        let text = format!("there is no rank {root} in a group of {}", comm.size());
        Error::new(Class::Root, text)
    })
}

forms! {
    barrier, ibarrier, barrier_init by barrier_by between barrier_between(), "Barrier";
    bcast, ibcast, bcast_init by bcast_by between bcast_between(data: Out, count: i64, datatype: Datatype, root: i32), "Bcast";
    reduce, ireduce, reduce_init by reduce_by between reduce_between(data: In, room: Out, count: i64, datatype: Datatype, op: Op, root: i32), "Reduce";
    allreduce, iallreduce, allreduce_init by allreduce_by between allreduce_between(data: In, room: Out, count: i64, datatype: Datatype, op: Op), "Allreduce";
    scan, iscan, scan_init by scan_by(data: In, room: Out, count: i64, datatype: Datatype, op: Op), "Scan";
    exscan, iexscan, exscan_init by exscan_by(data: In, room: Out, count: i64, datatype: Datatype, op: Op), "Exscan";
    reduce_scatter, ireduce_scatter, reduce_scatter_init by reduce_scatter_by between reduce_scatter_between(data: In, room: Out, counts: Counts, datatype: Datatype, op: Op), "Reduce_scatter";
    reduce_scatter_block, ireduce_scatter_block, reduce_scatter_block_init by reduce_scatter_block_by between reduce_scatter_block_between(data: In, room: Out, count: i64, datatype: Datatype, op: Op), "Reduce_scatter_block";
    allgather, iallgather, allgather_init by allgather_by between allgather_between(data: In, count: i64, datatype: Datatype, room: Out, room_count: i64, room_type: Datatype), "Allgather";
    allgatherv, iallgatherv, allgatherv_init by allgatherv_by between allgatherv_between(data: In, count: i64, datatype: Datatype, room: Out, counts: Counts, displacements: Counts, room_type: Datatype), "Allgatherv";
    gather, igather, gather_init by gather_by between gather_between(data: In, count: i64, datatype: Datatype, room: Out, room_count: i64, room_type: Datatype, root: i32), "Gather";
    gatherv, igatherv, gatherv_init by gatherv_by between gatherv_between(data: In, count: i64, datatype: Datatype, room: Out, counts: Counts, displacements: Counts, room_type: Datatype, root: i32), "Gatherv";
    scatter, iscatter, scatter_init by scatter_by between scatter_between(data: In, count: i64, datatype: Datatype, room: Out, room_count: i64, room_type: Datatype, root: i32), "Scatter";
    scatterv, iscatterv, scatterv_init by scatterv_by between scatterv_between(data: In, counts: Counts, displacements: Counts, datatype: Datatype, room: Out, room_count: i64, room_type: Datatype, root: i32), "Scatterv";
    alltoall, ialltoall, alltoall_init by alltoall_by between alltoall_between(data: In, count: i64, datatype: Datatype, room: Out, room_count: i64, room_type: Datatype), "Alltoall";
    alltoallv, ialltoallv, alltoallv_init by alltoallv_by between alltoallv_between(data: In, counts: Counts, displacements: Counts, datatype: Datatype, room: Out, room_counts: Counts, room_displacements: Counts, room_type: Datatype), "Alltoallv";
    alltoallw, ialltoallw, alltoallw_init by alltoallw_by between alltoallw_between(data: In, counts: Counts, displacements: Counts, types: List<Datatype>, room: Out, room_counts: Counts, room_displacements: Counts, room_types: List<Datatype>), "Alltoallw";
}

fn barrier_by(process: &Process, comm: Held<'_>, form: Form) -> Result {
    barrier_between(process, &comm, form)
}

/// Of one group, or of both together.
fn barrier_between(process: &Process, comm: &Held<'_>, form: Form) -> Result {
    if let Some(done) = fast::barrier(&comm.team, form) {
        return done;
    }
    run(process, comm, form, Moves::default(), || Barrier)
}

fn bcast_by(
    process: &Process,
    comm: Held<'_>,
    form: Form,
    data: Out,
    count: i64,
    datatype: Datatype,
    root: i32,
) -> Result {
    let root = root_of(&comm, root)?;
    let all = (data, count, datatype);
    if let Some(done) = fast::broadcast(process, &comm.team, form, all, root) {
        return done;
    }
    let data = Arc::new(Data::of(process, data, count, datatype)?);
    let mut moves = Moves::default();
    match comm.team.me() == root {
        true => moves.fill.push(Arc::clone(&data)),
        false => moves.drain.push(Arc::clone(&data)),
    }
    run(process, &comm, form, moves, move || Broadcast {
        data: data.write(),
        root,
    })
}

/// A reduction of which every member has the result.
struct Reducing {
    operator: Operator<'static>,
    /// None where it lies in place.
    input: Option<Arc<Data>>,
    room: Arc<Data>,
    moves: Moves,
}

impl Reducing {
    fn new(
        process: &Process,
        (data, room): (In, Out),
        count: i64,
        (datatype, op): (Datatype, Op),
    ) -> Result<Self> {
        let operands = Operands::of(process, op, datatype)?;
        let input = operands.input(process, data, count)?;
        let room = Arc::new(operands.data(process, room, count)?);
        apart(input.as_deref(), &room)?;
        let mut moves = Moves::default();
        moves.packs(input.as_ref().unwrap_or(&room));
        moves.unpacks(&room);
        Ok(Self {
            operator: operands.operator(),
            input,
            room,
            moves,
        })
    }
}

/// Checks that what is read is not what is written. In place nothing else is read.
pub(crate) fn apart(data: Option<&Data>, room: &Data) -> Result {
    data.map_or(Ok(()), |data| data.apart_from(room))
}

fn reduce_by(
    process: &Process,
    comm: Held<'_>,
    form: Form,
    data: In,
    room: Out,
    count: i64,
    datatype: Datatype,
    op: Op,
    root: i32,
) -> Result {
    let root = root_of(&comm, root)?;
    let (both, what) = ((data, room), (count, datatype, op));
    if let Some(done) = fast::reduce(process, &comm.team, form, both, what, root) {
        return done;
    }
    if comm.team.me() == root {
        let Reducing {
            operator,
            input,
            room,
            moves,
        } = Reducing::new(process, (data, room), count, (datatype, op))?;
        return run(process, &comm, form, moves, move || Reduce {
            operator: operator.clone(),
            input: input.as_ref().map(|data| data.read()),
            out: Some(room.write()),
            root,
        });
    }
    // The others' rooms mean nothing, and may be null.
    let operands = Operands::of(process, op, datatype)?;
    let input = operands.input(process, data, count)?.ok_or_else(in_place)?;
    let mut moves = Moves::default();
    moves.packs(&input);
    let operator = operands.operator();
    run(process, &comm, form, moves, move || Reduce {
        operator: operator.clone(),
        input: Some(input.read()),
        out: None,
        root,
    })
}

fn allreduce_by(
    process: &Process,
    comm: Held<'_>,
    form: Form,
    data: In,
    room: Out,
    count: i64,
    datatype: Datatype,
    op: Op,
) -> Result {
    let (both, what) = ((data, room), (count, datatype, op));
    if let Some(done) = fast::allreduce(process, &comm.team, form, both, what) {
        return done;
    }
    let Reducing {
        operator,
        input,
        room,
        moves,
    } = Reducing::new(process, (data, room), count, (datatype, op))?;
    run(process, &comm, form, moves, move || Allreduce {
        operator: operator.clone(),
        input: input.as_ref().map(|data| data.read()),
        data: room.write(),
    })
}

fn scan_by(
    process: &Process,
    comm: Held<'_>,
    form: Form,
    data: In,
    room: Out,
    count: i64,
    datatype: Datatype,
    op: Op,
) -> Result {
    let Reducing {
        operator,
        input,
        room,
        mut moves,
    } = Reducing::new(process, (data, room), count, (datatype, op))?;
    let copied = input.map(|input| (input, Arc::clone(&room)));
    moves.copy.extend(copied);
    run(process, &comm, form, moves, move || Scan {
        operator: operator.clone(),
        data: room.write(),
    })
}

fn exscan_by(
    process: &Process,
    comm: Held<'_>,
    form: Form,
    data: In,
    room: Out,
    count: i64,
    datatype: Datatype,
    op: Op,
) -> Result {
    let operands = Operands::of(process, op, datatype)?;
    let input = operands.input(process, data, count)?;
    let mut moves = Moves::default();
    let room = match &input {
        // The first member's room means nothing: it stays as it is.
        Some(input) if comm.team.me() == 0 => {
            if !room.is_constant() {
                // Where it is the same memory at all members, all refuse it.
                input.apart_from(&operands.data(process, room, count)?)?;
            }
            Arc::new(Data::beside(input.len()))
        }
        _ => Arc::new(operands.data(process, room, count)?),
    };
    apart(input.as_deref(), &room)?;
    moves.packs(input.as_ref().unwrap_or(&room));
    moves.unpacks(&room);
    let copied = input.map(|input| (input, Arc::clone(&room)));
    moves.copy.extend(copied);
    let operator = operands.operator();
    run(process, &comm, form, moves, move || Exscan {
        operator: operator.clone(),
        data: room.write(),
    })
}

fn reduce_scatter_by(
    process: &Process,
    comm: Held<'_>,
    form: Form,
    data: In,
    room: Out,
    counts: Counts,
    datatype: Datatype,
    op: Op,
) -> Result {
    let counts = (0..comm.team.size()).map(|member| counts.get(member));
    reduce_scattered(
        process,
        &comm,
        form,
        (data, room),
        counts.collect(),
        (datatype, op),
    )
}

fn reduce_scatter_block_by(
    process: &Process,
    comm: Held<'_>,
    form: Form,
    data: In,
    room: Out,
    count: i64,
    datatype: Datatype,
    op: Op,
) -> Result {
    let counts = vec![count; comm.team.size()];
    reduce_scattered(process, &comm, form, (data, room), counts, (datatype, op))
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
    let total = counts
        .iter()
        .try_fold(0_i64, |sum, count| sum.checked_add(*count));
    let total = total.ok_or_else(|| Error::new(Class::Count, "the counts are too many"))?;
    let whole = if data.is_in_place() {
        room
    } else {
        Out::of_input(data)
    };
    let operands = Operands::of(process, op, datatype)?;
    let whole = Arc::new(operands.data(process, whole, total)?);
    let own = counts[comm.team.me()];
    let out = Arc::new(operands.data(process, room, own)?);
    let mut moves = Moves::default();
    moves.packs(&whole);
    moves.unpacks(&out);
    // The result lies over what is combined, but for what is packed.
    let input = match (data.is_in_place(), whole.is_beside()) {
        (true, false) => {
            let copy = Arc::new(Data::beside(whole.len()));
            moves.copy.push((whole, Arc::clone(&copy)));
            copy
        }
        (true, true) => whole,
        (false, _) => {
            whole.apart_from(&out)?;
            whole
        }
    };
    let element = operands.element();
    let lengths = counts.iter().map(|count| *count as usize * element);
    let lengths: Vec<usize> = lengths.collect();
    let operator = operands.operator();
    run(process, comm, form, moves, move || ReduceScatter {
        operator: operator.clone(),
        input: input.read(),
        lengths: Cow::Owned(lengths.clone()),
        out: out.write(),
    })
}

/// Returns what a member gives to a gather: its data, or its block of the room.
fn given(
    process: &Process,
    (data, count, datatype): (In, i64, Datatype),
    in_place: impl FnOnce() -> Result<Data>,
    moves: &mut Moves,
) -> Result<Arc<Data>> {
    if !data.is_in_place() {
        let own = Arc::new(Data::of(process, Out::of_input(data), count, datatype)?);
        moves.fill.push(Arc::clone(&own));
        return Ok(own);
    }
    let block = Arc::new(in_place()?);
    moves.fill.push(Arc::clone(&block));
    let copy = Arc::new(Data::beside(block.len()));
    moves.copy.push((block, Arc::clone(&copy)));
    Ok(copy)
}

pub(crate) fn total(count: i64, size: usize) -> Result<i64> {
    count
        .checked_mul(size as i64)
        .ok_or_else(|| Error::new(Class::Count, "the counts are too many"))
}

fn allgather_by(
    process: &Process,
    comm: Held<'_>,
    form: Form,
    data: In,
    count: i64,
    datatype: Datatype,
    room: Out,
    room_count: i64,
    room_type: Datatype,
) -> Result {
    let (own, all) = ((data, count, datatype), (room, room_count, room_type));
    if let Some(done) = fast::allgather(process, &comm.team, form, own, all) {
        return done;
    }
    let (me, size) = (comm.team.me(), comm.team.size());
    let mut moves = Moves::default();
    let block = || Data::block(process, room, (room_count, room_type), me);
    let own = given(process, (data, count, datatype), block, &mut moves)?;
    let all = Data::of(process, room, total(room_count, size)?, room_type)?;
    let all = Arc::new(all);
    own.apart_from(&all)?;
    moves.drain.push(Arc::clone(&all));
    run(process, &comm, form, moves, move || Allgather {
        own: own.read(),
        out: all.write(),
    })
}

fn allgatherv_by(
    process: &Process,
    comm: Held<'_>,
    form: Form,
    data: In,
    count: i64,
    datatype: Datatype,
    room: Out,
    counts: Counts,
    displacements: Counts,
    room_type: Datatype,
) -> Result {
    let (me, size) = (comm.team.me(), comm.team.size());
    let blocks = Blocks {
        counts,
        displacements,
        datatype: room_type,
    };
    let mut moves = Moves::default();
    let block = || Data::block_of(process, room, blocks, me);
    let own = given(process, (data, count, datatype), block, &mut moves)?;
    let all = Arc::new(Data::blocks(process, room, blocks, size)?);
    own.apart_from(&all)?;
    moves.drain.push(Arc::clone(&all));
    let lengths = all.lengths();
    run(process, &comm, form, moves, move || Allgatherv {
        own: own.read(),
        lengths: Cow::Owned(lengths.clone()),
        out: all.write(),
    })
}

fn gather_by(
    process: &Process,
    comm: Held<'_>,
    form: Form,
    data: In,
    count: i64,
    datatype: Datatype,
    room: Out,
    room_count: i64,
    room_type: Datatype,
    root: i32,
) -> Result {
    let root = root_of(&comm, root)?;
    let (size, is_root) = (comm.team.size(), comm.team.me() == root);
    if data.is_in_place() && !is_root {
        return Err(in_place());
    }
    let mut moves = Moves::default();
    let block = || Data::block(process, room, (room_count, room_type), root);
    let own = given(process, (data, count, datatype), block, &mut moves)?;
    let all = match is_root {
        true => Data::of(process, room, total(room_count, size)?, room_type)?,
        false => Data::none(),
    };
    let all = Arc::new(all);
    own.apart_from(&all)?;
    moves.drain.push(Arc::clone(&all));
    run(process, &comm, form, moves, move || Gather {
        own: own.read(),
        out: is_root.then(|| all.write()),
        root,
    })
}

fn gatherv_by(
    process: &Process,
    comm: Held<'_>,
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
    let root = root_of(&comm, root)?;
    let (size, is_root) = (comm.team.size(), comm.team.me() == root);
    if data.is_in_place() && !is_root {
        return Err(in_place());
    }
    let blocks = Blocks {
        counts,
        displacements,
        datatype: room_type,
    };
    let mut moves = Moves::default();
    let block = || Data::block_of(process, room, blocks, root);
    let own = given(process, (data, count, datatype), block, &mut moves)?;
    let all = match is_root {
        true => Data::blocks(process, room, blocks, size)?,
        false => Data::none(),
    };
    let all = Arc::new(all);
    own.apart_from(&all)?;
    moves.drain.push(Arc::clone(&all));
    let lengths = all.lengths();
    run(process, &comm, form, moves, move || Gatherv {
        own: own.read(),
        lengths: Cow::Owned(lengths.clone()),
        out: is_root.then(|| all.write()),
        root,
    })
}

/// Returns what a member gets of a scatter: its room, or, where the root's block stays in place, memory that nobody looks at.
fn taken(
    process: &Process,
    (room, count, datatype): (Out, i64, Datatype),
    in_place_bytes: impl FnOnce() -> usize,
    moves: &mut Moves,
) -> Result<Arc<Data>> {
    if room.is_in_place() {
        return Ok(Arc::new(Data::beside(in_place_bytes())));
    }
    let own = Arc::new(Data::of(process, room, count, datatype)?);
    moves.drain.push(Arc::clone(&own));
    Ok(own)
}

fn scatter_by(
    process: &Process,
    comm: Held<'_>,
    form: Form,
    data: In,
    count: i64,
    datatype: Datatype,
    room: Out,
    room_count: i64,
    room_type: Datatype,
    root: i32,
) -> Result {
    let root = root_of(&comm, root)?;
    let (size, is_root) = (comm.team.size(), comm.team.me() == root);
    if room.is_in_place() && !is_root {
        return Err(in_place());
    }
    let mut moves = Moves::default();
    let all = match is_root {
        true => Data::of(process, Out::of_input(data), total(count, size)?, datatype)?,
        false => Data::none(),
    };
    let all = Arc::new(all);
    moves.fill.push(Arc::clone(&all));
    let own = (room, room_count, room_type);
    let own = taken(process, own, || all.len() / size, &mut moves)?;
    all.apart_from(&own)?;
    run(process, &comm, form, moves, move || Scatter {
        input: is_root.then(|| all.read()),
        own: own.write(),
        root,
    })
}

fn scatterv_by(
    process: &Process,
    comm: Held<'_>,
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
    let root = root_of(&comm, root)?;
    let (size, is_root) = (comm.team.size(), comm.team.me() == root);
    if room.is_in_place() && !is_root {
        return Err(in_place());
    }
    let blocks = Blocks {
        counts,
        displacements,
        datatype,
    };
    let mut moves = Moves::default();
    let all = match is_root {
        true => Data::blocks(process, Out::of_input(data), blocks, size)?,
        false => Data::none(),
    };
    let all = Arc::new(all);
    moves.fill.push(Arc::clone(&all));
    let lengths = all.lengths();
    let own = (room, room_count, room_type);
    let own = taken(process, own, || lengths[root], &mut moves)?;
    all.apart_from(&own)?;
    run(process, &comm, form, moves, move || Scatterv {
        input: is_root.then(|| all.read()),
        lengths: Cow::Owned(lengths.clone()),
        own: own.write(),
        root,
    })
}

/// Returns the input of an exchange of all with all: a copy of the room where that lies in place.
fn exchanged(data: Option<Data>, room: &Arc<Data>, moves: &mut Moves) -> Result<Arc<Data>> {
    moves.drain.push(Arc::clone(room));
    if let Some(data) = data {
        data.apart_from(room)?;
        let data = Arc::new(data);
        moves.fill.push(Arc::clone(&data));
        return Ok(data);
    }
    moves.fill.push(Arc::clone(room));
    let copy = Arc::new(Data::beside(room.len()));
    moves.copy.push((Arc::clone(room), Arc::clone(&copy)));
    Ok(copy)
}

fn alltoall_by(
    process: &Process,
    comm: Held<'_>,
    form: Form,
    data: In,
    count: i64,
    datatype: Datatype,
    room: Out,
    room_count: i64,
    room_type: Datatype,
) -> Result {
    let (input, out) = ((data, count, datatype), (room, room_count, room_type));
    if let Some(done) = fast::alltoall(process, &comm.team, form, input, out) {
        return done;
    }
    let size = comm.team.size();
    let room = Data::of(process, room, total(room_count, size)?, room_type)?;
    let room = Arc::new(room);
    let data = match data.is_in_place() {
        true => None,
        false => Some(Data::of(
            process,
            Out::of_input(data),
            total(count, size)?,
            datatype,
        )?),
    };
    let mut moves = Moves::default();
    let data = exchanged(data, &room, &mut moves)?;
    run(process, &comm, form, moves, move || Alltoall {
        input: data.read(),
        out: room.write(),
    })
}

/// Runs an exchange of blocks of any lengths.
fn exchange(
    process: &Process,
    comm: &Held<'_>,
    form: Form,
    data: Option<Data>,
    room: Data,
) -> Result {
    let room = Arc::new(room);
    let from = room.lengths();
    let to = data.as_ref().map_or_else(|| from.clone(), Data::lengths);
    let mut moves = Moves::default();
    let data = exchanged(data, &room, &mut moves)?;
    run(process, comm, form, moves, move || Alltoallv {
        input: data.read(),
        to: Cow::Owned(to.clone()),
        out: room.write(),
        from: Cow::Owned(from.clone()),
    })
}

fn alltoallv_by(
    process: &Process,
    comm: Held<'_>,
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
    let size = comm.team.size();
    let blocks = Blocks {
        counts: room_counts,
        displacements: room_displacements,
        datatype: room_type,
    };
    let room = Data::blocks(process, room, blocks, size)?;
    let blocks = Blocks {
        counts,
        displacements,
        datatype,
    };
    let data = match data.is_in_place() {
        true => None,
        false => Some(Data::blocks(process, Out::of_input(data), blocks, size)?),
    };
    exchange(process, &comm, form, data, room)
}

fn alltoallw_by(
    process: &Process,
    comm: Held<'_>,
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
    let size = comm.team.size();
    let at = (room_counts, room_displacements);
    let room = Data::blocks_of_types(process, room, at, room_types.slice(size))?;
    let data = match data.is_in_place() {
        true => None,
        false => {
            let at = (counts, displacements);
            let types = types.slice(size);
            Some(Data::blocks_of_types(
                process,
                Out::of_input(data),
                at,
                types,
            )?)
        }
    };
    exchange(process, &comm, form, data, room)
}

/// `MPI_Reduce_local`.
pub fn reduce_local(
    process: &Process,
    data: In,
    room: Out,
    count: i64,
    datatype: Datatype,
    op: Op,
) -> Result {
    let operands = Operands::of(process, op, datatype)?;
    let into = operands.data(process, room, count)?;
    let left = operands.data(process, Out::of_input(data), count)?;
    left.apart_from(&into)?;
    left.fill()?;
    into.fill()?;
    operands.combine(left.read(), into.write())?;
    into.drain()
}
