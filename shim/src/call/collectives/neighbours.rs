//! Collectives of neighbourhoods (MPI-5.0, section 8.6).

use tagwire_coll::Neighbours;
use tagwire_coll::operations::{Blocks, NeighbourAlltoall};

use super::buffers::Edges;
use super::data::{Data, Side, in_place};
use super::run::Call;
use crate::error::{Class, Error, Result};

/// Gives the `own` block to each neighbour, and gets one of each in `all`.
pub(super) fn allgather(call: &Call<'_>, own: Side, all: Side) -> Result {
    let neighbours = neighbours(call, own, all)?;
    let input = vec![own.block(call.process, 0)?];
    exchange(call, neighbours, input, all)
}

/// Exchanges a block with each neighbour.
pub(super) fn alltoall(call: &Call<'_>, send: Side, recv: Side) -> Result {
    let neighbours = neighbours(call, send, recv)?;
    let input = blocks(call, neighbours.destinations(), send)?;
    exchange(call, neighbours, input, recv)
}

/// Returns the neighbours of this process.
fn neighbours(call: &Call<'_>, send: Side, recv: Side) -> Result<Neighbours> {
    call.comm.check_intra()?;
    let topology = call.comm.topology();
    let topology = topology.ok_or_else(|| {
        let text = "the communicator has no topology, and so no neighbours";
        Error::new(Class::Topology, text)
    })?;
    match send.is_in_place() || recv.is_in_place() {
        true => Err(in_place()),
        false => Ok(topology.neighbours.clone()),
    }
}

/// Returns the block of each edge. That of an edge to nobody is neither read nor written.
fn blocks(call: &Call<'_>, edges: &[Option<usize>], side: Side) -> Result<Vec<Data>> {
    let blocks = edges.iter().enumerate().map(|(number, edge)| match edge {
        Some(_) => side.block(call.process, number),
        None => Ok(Data::none()),
    });
    blocks.collect()
}

/// Exchanges blocks with the neighbours: each stays where it lies if that is one piece of memory.
fn exchange(call: &Call<'_>, neighbours: Neighbours, input: Vec<Data>, recv: Side) -> Result {
    let output = blocks(call, neighbours.sources(), recv)?;
    call.run(Edges { input, output }, move |(input, out)| {
        // An allgather gives the same to all.
        let input = input.iter().copied().cycle();
        let input = input.take(neighbours.destinations().len()).collect();
        NeighbourAlltoall {
            neighbours: neighbours.clone(),
            input: Blocks::Apart(input),
            out: Blocks::Apart(out),
        }
    })
}
