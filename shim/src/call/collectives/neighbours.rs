//! Collectives of neighbourhoods (MPI-5.0, section 8.6): each call in its blocking, nonblocking and persistent form.
#![allow(clippy::too_many_arguments, reason = "those of the standard")]

use std::borrow::Cow;
use std::sync::Arc;

use tagwire_coll::Neighbours;
use tagwire_coll::operations::NeighbourAlltoallw;

use crate::abi::Datatype;
use crate::call::collectives::data::{Blocks, Data};
use crate::call::collectives::run::{Form, Moves, forms, in_place, run};
use crate::error::{Class, Error, Result};
use crate::object::comm::Held;
use crate::process::Process;
use crate::raw::{Counts, In, List, Out};

forms! {
    neighbor_allgather, ineighbor_allgather, neighbor_allgather_init by allgather_by(data: In, count: i64, datatype: Datatype, room: Out, room_count: i64, room_type: Datatype), "Neighbor_allgather";
    neighbor_allgatherv, ineighbor_allgatherv, neighbor_allgatherv_init by allgatherv_by(data: In, count: i64, datatype: Datatype, room: Out, counts: Counts, displacements: Counts, room_type: Datatype), "Neighbor_allgatherv";
    neighbor_alltoall, ineighbor_alltoall, neighbor_alltoall_init by alltoall_by(data: In, count: i64, datatype: Datatype, room: Out, room_count: i64, room_type: Datatype), "Neighbor_alltoall";
    neighbor_alltoallv, ineighbor_alltoallv, neighbor_alltoallv_init by alltoallv_by(data: In, counts: Counts, displacements: Counts, datatype: Datatype, room: Out, room_counts: Counts, room_displacements: Counts, room_type: Datatype), "Neighbor_alltoallv";
    neighbor_alltoallw, ineighbor_alltoallw, neighbor_alltoallw_init by alltoallw_by(data: In, counts: Counts, displacements: Counts, types: List<Datatype>, room: Out, room_counts: Counts, room_displacements: Counts, room_types: List<Datatype>), "Neighbor_alltoallw";
}

/// Returns the neighbours of this process, and the address of what it gives them.
fn neighbours(comm: &Held<'_>, data: In, room: Out) -> Result<(Neighbours, Out)> {
    let topology = comm.topology();
    let topology = topology.ok_or_else(|| {
        let text = "the communicator has no topology, and so no neighbours";
        Error::new(Class::Topology, text)
    })?;
    match data.is_in_place() || room.is_in_place() {
        true => Err(in_place()),
        false => Ok((topology.neighbours.clone(), Out::of_input(data))),
    }
}

/// Returns the block of each edge, which `block` makes of its number. One of an edge to nobody is neither read nor written.
fn each(
    edges: &[Option<usize>],
    mut block: impl FnMut(usize) -> Result<Data>,
) -> Result<Vec<Arc<Data>>> {
    let blocks = edges.iter().enumerate().map(|(number, neighbour)| {
        let data = match neighbour {
            Some(_) => block(number)?,
            None => Data::none(),
        };
        Ok(Arc::new(data))
    });
    blocks.collect()
}

/// Runs the exchange of blocks with neighbours: each stays where it lies if that is one piece of memory.
fn exchange(
    process: &Process,
    comm: &Held<'_>,
    form: Form,
    neighbours: Neighbours,
    given: Vec<Arc<Data>>,
    room: Vec<Arc<Data>>,
) -> Result {
    let mut fill = given.clone();
    // An allgather gives the same to all.
    fill.dedup_by(|one, last| Arc::ptr_eq(one, last));
    let moves = Moves {
        fill,
        copy: Vec::new(),
        drain: room.clone(),
    };
    run(process, comm, form, moves, move || NeighbourAlltoallw {
        neighbours: neighbours.clone(),
        input: Cow::Owned(given.iter().map(|block| block.read()).collect()),
        out: room.iter().map(|block| block.write()).collect(),
    })
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
    let (neighbours, data) = neighbours(&comm, data, room)?;
    let own = Arc::new(Data::of(process, data, count, datatype)?);
    let given = vec![own; neighbours.destinations().len()];
    let room = each(neighbours.sources(), |number| {
        Data::block(process, room, (room_count, room_type), number)
    })?;
    exchange(process, &comm, form, neighbours, given, room)
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
    let (neighbours, data) = neighbours(&comm, data, room)?;
    let own = Arc::new(Data::of(process, data, count, datatype)?);
    let given = vec![own; neighbours.destinations().len()];
    let blocks = Blocks {
        counts,
        displacements,
        datatype: room_type,
    };
    let room = each(neighbours.sources(), |number| {
        Data::block_of(process, room, blocks, number)
    })?;
    exchange(process, &comm, form, neighbours, given, room)
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
    let (neighbours, data) = neighbours(&comm, data, room)?;
    let given = each(neighbours.destinations(), |number| {
        Data::block(process, data, (count, datatype), number)
    })?;
    let room = each(neighbours.sources(), |number| {
        Data::block(process, room, (room_count, room_type), number)
    })?;
    exchange(process, &comm, form, neighbours, given, room)
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
    let (neighbours, data) = neighbours(&comm, data, room)?;
    let blocks = Blocks {
        counts,
        displacements,
        datatype,
    };
    let given = each(neighbours.destinations(), |number| {
        Data::block_of(process, data, blocks, number)
    })?;
    let blocks = Blocks {
        counts: room_counts,
        displacements: room_displacements,
        datatype: room_type,
    };
    let room = each(neighbours.sources(), |number| {
        Data::block_of(process, room, blocks, number)
    })?;
    exchange(process, &comm, form, neighbours, given, room)
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
    let (neighbours, data) = neighbours(&comm, data, room)?;
    let (to, from) = (neighbours.destinations(), neighbours.sources());
    let (types, room_types) = (types.slice(to.len()), room_types.slice(from.len()));
    let given = each(to, |number| {
        let elements = (counts.get(number), typed(types, number)?);
        Data::displaced(process, data, elements, displacements.get(number))
    })?;
    let room = each(from, |number| {
        let elements = (room_counts.get(number), typed(room_types, number)?);
        Data::displaced(process, room, elements, room_displacements.get(number))
    })?;
    exchange(process, &comm, form, neighbours, given, room)
}

/// Returns the datatype of an edge.
fn typed(types: &[Datatype], number: usize) -> Result<Datatype> {
    let found = types.get(number).copied();
    found.ok_or_else(|| Error::new(Class::Arg, "the array of datatypes is null"))
}
