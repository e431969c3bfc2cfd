//! Virtual topologies (MPI-5.0, chapter 8). Processes keep their order: `reorder` has no effect.
#![allow(clippy::too_many_arguments, reason = "those of the standard")]

use std::sync::Arc;

use tagwire_coll::{Grid, Team};

use crate::abi::{Comm, Info, PROC_NULL, UNDEFINED};
use crate::call::dimensions::balanced;
use crate::call::{count_of, on_comm};
use crate::error::{Class, Error, Result};
use crate::object::comm::Communicator;
use crate::object::topology::{Cartesian, Distributed, Edges, Graph, Shape, Topology};
use crate::process::Process;
use crate::raw::{Array, List, Ref};

/// What `MPI_Topo_test` returns.
const CART: i32 = 211;
const GRAPH: i32 = 212;
const DIST_GRAPH: i32 = 213;

/// `MPI_Topo_test`.
pub fn topo_test(process: &Process, comm: Comm, status: Ref<i32>) -> Result {
    on_comm(process, comm, |comm| {
        status.set(match comm.topology().map(|topology| &topology.shape) {
            Some(Shape::Cartesian(_)) => CART,
            Some(Shape::Graph(_)) => GRAPH,
            Some(Shape::Distributed(_)) => DIST_GRAPH,
            None => UNDEFINED,
        });
        Ok(())
    })
}

/// `MPI_Dims_create`.
pub fn dims_create(_: &Process, nodes: i32, dimensions: i32, extents: Array<i32>) -> Result {
    let refuse = |text: String| Error::new(Class::Dims, text);
    let dimensions = count_of(dimensions, Class::Dims)?;
    if dimensions > 0 && extents.is_null() {
        return Err(Error::new(Class::Arg, "the array of extents is null"));
    }
    if nodes <= 0 {
        return Err(refuse(format!("{nodes} processes form no grid")));
    }
    let given: Vec<i32> = (0..dimensions).map(|place| extents.get(place)).collect();
    if given.iter().any(|extent| *extent < 0) {
        return Err(refuse(format!("an extent of {given:?} is negative")));
    }
    let free: Vec<usize> = (0..dimensions).filter(|place| given[*place] == 0).collect();
    let mut fixed = given.iter().filter(|extent| **extent > 0);
    let fixed = fixed.try_fold(1_i32, |product, extent| product.checked_mul(*extent));
    // Without free dimensions those given have all processes.
    let rest = fixed.filter(|fixed| nodes % fixed == 0);
    let rest = rest.map(|fixed| nodes / fixed);
    let rest = rest.filter(|rest| !free.is_empty() || given.is_empty() || *rest == 1);
    let rest =
        rest.ok_or_else(|| refuse(format!("{nodes} processes form no grid of {given:?}")))?;
    let found = balanced(rest as usize, free.len());
    for (place, extent) in free.into_iter().zip(found) {
        extents.set(place, extent as i32);
    }
    Ok(())
}

/// `MPI_Cart_create`.
pub fn cart_create(
    process: &Process,
    comm: Comm,
    dimensions: i32,
    extents: List<i32>,
    periods: List<i32>,
    _reorder: i32,
    new: Ref<Comm>,
) -> Result {
    new.set(Comm::NULL);
    on_comm(process, comm, |comm| {
        comm.check_intra()?;
        let Cartesian { grid, periods } = cartesian_of(&comm, dimensions, extents, periods)?;
        let members: Vec<usize> = (0..grid.size()).collect();
        let made = enter(process, &comm, &members, |me| {
            Topology::cartesian(grid, periods, me)
        })?;
        new.set(made);
        Ok(())
    })
}

/// `MPI_Cart_map`.
pub fn cart_map(
    process: &Process,
    comm: Comm,
    dimensions: i32,
    extents: List<i32>,
    periods: List<i32>,
    rank: Ref<i32>,
) -> Result {
    on_comm(process, comm, |comm| {
        comm.check_intra()?;
        let given = array(&extents, count_of(dimensions, Class::Arg)?)?;
        // A grid without places maps nobody elsewhere: other libraries take it, and programs count on it.
        let members = match given.contains(&0) && given.iter().all(|extent| *extent >= 0) {
            true => comm.team.size(),
            false => cartesian_of(&comm, dimensions, extents, periods)?
                .grid
                .size(),
        };
        rank.set(mapped(&comm, members));
        Ok(())
    })
}

/// `MPI_Cartdim_get`.
pub fn cartdim_get(process: &Process, comm: Comm, dimensions: Ref<i32>) -> Result {
    on_comm(process, comm, |comm| {
        dimensions.set(cartesian(&comm)?.dimensions() as i32);
        Ok(())
    })
}

/// `MPI_Cart_get`.
pub fn cart_get(
    process: &Process,
    comm: Comm,
    most: i32,
    extents: Array<i32>,
    periods: Array<i32>,
    coords: Array<i32>,
) -> Result {
    on_comm(process, comm, |comm| {
        let found = cartesian(&comm)?;
        check_room(most, found.dimensions())?;
        let own = coordinates(found, comm.rank())?;
        for (place, extent) in found.extents().enumerate() {
            extents.set(place, extent);
            periods.set(place, i32::from(found.periods[place]));
            coords.set(place, own[place]);
        }
        Ok(())
    })
}

/// `MPI_Cart_rank`.
pub fn cart_rank(process: &Process, comm: Comm, coords: List<i32>, rank: Ref<i32>) -> Result {
    on_comm(process, comm, |comm| {
        let found = cartesian(&comm)?;
        let coords = array(&coords, found.dimensions())?;
        let places: Vec<isize> = coords.iter().map(|place| *place as isize).collect();
        let member = found.grid.member(&places).ok_or_else(|| {
            let extents: Vec<i32> = found.extents().collect();
            let text = format!("the coordinates {coords:?} are not in a grid of {extents:?}");
            Error::new(Class::Arg, text)
        })?;
        rank.set(member as i32);
        Ok(())
    })
}

/// `MPI_Cart_coords`.
pub fn cart_coords(
    process: &Process,
    comm: Comm,
    rank: i32,
    most: i32,
    coords: Array<i32>,
) -> Result {
    on_comm(process, comm, |comm| {
        let found = cartesian(&comm)?;
        check_room(most, found.dimensions())?;
        for (place, coordinate) in coordinates(found, rank)?.into_iter().enumerate() {
            coords.set(place, coordinate);
        }
        Ok(())
    })
}

/// `MPI_Cart_shift`.
pub fn cart_shift(
    process: &Process,
    comm: Comm,
    direction: i32,
    displacement: i32,
    source: Ref<i32>,
    destination: Ref<i32>,
) -> Result {
    on_comm(process, comm, |comm| {
        let found = cartesian(&comm)?;
        let along = usize::try_from(direction).ok();
        let along = along.filter(|along| *along < found.dimensions());
        let along = along.ok_or_else(|| {
            let text = format!(
                "there is no dimension {direction} in a grid of {}",
                found.dimensions()
            );
            Error::new(Class::Dims, text)
        })?;
        let distance = displacement as isize;
        let (from, to) = found.grid.shift(comm.team.me(), along, distance)?;
        let rank_of = |member: Option<usize>| member.map_or(PROC_NULL, |member| member as i32);
        source.set(rank_of(from));
        destination.set(rank_of(to));
        Ok(())
    })
}

/// `MPI_Cart_sub`.
pub fn cart_sub(process: &Process, comm: Comm, remain: List<i32>, new: Ref<Comm>) -> Result {
    new.set(Comm::NULL);
    on_comm(process, comm, |comm| {
        let found = cartesian(&comm)?;
        let remain = array(&remain, found.dimensions())?;
        let own = coordinates(found, comm.rank())?;
        let is_beside = |member: &usize| {
            let coords = coordinates(found, *member as i32);
            coords.is_ok_and(|coords| {
                let mut pairs = remain.iter().zip(coords.iter().zip(&own));
                pairs.all(|(remains, (its, own))| *remains != 0 || its == own)
            })
        };
        let members: Vec<usize> = (0..found.grid.size()).filter(is_beside).collect();
        let kept = remain
            .iter()
            .zip(found.grid.extents().zip(&found.periods))
            .filter(|(remains, _)| **remains != 0);
        let (extents, periods): (Vec<usize>, Vec<bool>) = kept.map(|(_, both)| both).unzip();
        let grid = Grid::new(&extents, &periods)?;
        let made = enter(process, &comm, &members, |me| {
            Topology::cartesian(grid, periods, me)
        })?;
        new.set(made);
        Ok(())
    })
}

/// `MPI_Graph_create`.
pub fn graph_create(
    process: &Process,
    comm: Comm,
    nodes: i32,
    ends: List<i32>,
    edges: List<i32>,
    _reorder: i32,
    new: Ref<Comm>,
) -> Result {
    new.set(Comm::NULL);
    on_comm(process, comm, |comm| {
        comm.check_intra()?;
        let graph = graph_of(&comm, nodes, ends, edges)?;
        let members: Vec<usize> = (0..graph.ends.len()).collect();
        let made = enter(process, &comm, &members, |me| {
            Ok(Topology::graph(graph, me))
        })?;
        new.set(made);
        Ok(())
    })
}

/// `MPI_Graph_map`.
pub fn graph_map(
    process: &Process,
    comm: Comm,
    nodes: i32,
    ends: List<i32>,
    edges: List<i32>,
    rank: Ref<i32>,
) -> Result {
    on_comm(process, comm, |comm| {
        comm.check_intra()?;
        let made = graph_of(&comm, nodes, ends, edges)?;
        rank.set(mapped(&comm, made.ends.len()));
        Ok(())
    })
}

/// `MPI_Graphdims_get`.
pub fn graphdims_get(process: &Process, comm: Comm, nodes: Ref<i32>, edges: Ref<i32>) -> Result {
    on_comm(process, comm, |comm| {
        let found = graph(&comm)?;
        nodes.set(found.ends.len() as i32);
        edges.set(found.edges.len() as i32);
        Ok(())
    })
}

/// `MPI_Graph_get`.
pub fn graph_get(
    process: &Process,
    comm: Comm,
    most_nodes: i32,
    most_edges: i32,
    ends: Array<i32>,
    edges: Array<i32>,
) -> Result {
    on_comm(process, comm, |comm| {
        let found = graph(&comm)?;
        check_room(most_nodes, found.ends.len())?;
        check_room(most_edges, found.edges.len())?;
        copy(&found.ends, ends);
        copy(&found.edges, edges);
        Ok(())
    })
}

/// `MPI_Graph_neighbors_count`.
pub fn graph_neighbors_count(process: &Process, comm: Comm, rank: i32, count: Ref<i32>) -> Result {
    on_comm(process, comm, |comm| {
        count.set(around(graph(&comm)?, rank)?.len() as i32);
        Ok(())
    })
}

/// `MPI_Graph_neighbors`. Where there is less room, the first ones are returned.
pub fn graph_neighbors(
    process: &Process,
    comm: Comm,
    rank: i32,
    most: i32,
    neighbors: Array<i32>,
) -> Result {
    on_comm(process, comm, |comm| {
        let around = around(graph(&comm)?, rank)?;
        let most = count_of(most, Class::Arg)?.min(around.len());
        copy(&around[..most], neighbors);
        Ok(())
    })
}

/// `MPI_Dist_graph_create_adjacent`.
pub fn dist_graph_create_adjacent(
    process: &Process,
    comm: Comm,
    in_degree: i32,
    sources: List<i32>,
    source_weights: List<i32>,
    out_degree: i32,
    destinations: List<i32>,
    destination_weights: List<i32>,
    _info: Info,
    _reorder: i32,
    new: Ref<Comm>,
) -> Result {
    new.set(Comm::NULL);
    on_comm(process, comm, |comm| {
        comm.check_intra()?;
        let (sources, from_weighted) = edges_of(&comm, in_degree, sources, source_weights)?;
        let to = edges_of(&comm, out_degree, destinations, destination_weights)?;
        let (destinations, to_weighted) = to;
        // The weights of no edges may be anything.
        let is_weighted = match (sources.ranks.is_empty(), destinations.ranks.is_empty()) {
            (true, false) => to_weighted,
            (false, true) => from_weighted,
            _ if from_weighted == to_weighted => from_weighted,
            (true, true) => false,
            (false, false) => {
                let text = "MPI_UNWEIGHTED was given for the edges of one direction alone";
                return Err(Error::new(Class::Arg, text));
            }
        };
        let edges = Distributed {
            sources,
            destinations,
            is_weighted,
        };
        new.set(enter_distributed(process, &comm, edges)?);
        Ok(())
    })
}

/// `MPI_Dist_graph_create`. Edges are in the order of the processes that name them, and of each in its own.
pub fn dist_graph_create(
    process: &Process,
    comm: Comm,
    nodes: i32,
    sources: List<i32>,
    degrees: List<i32>,
    destinations: List<i32>,
    weights: List<i32>,
    _info: Info,
    _reorder: i32,
    new: Ref<Comm>,
) -> Result {
    new.set(Comm::NULL);
    on_comm(process, comm, |comm| {
        comm.check_intra()?;
        let nodes = count_of(nodes, Class::Arg)?;
        let (sources, degrees) = (array(&sources, nodes)?, array(&degrees, nodes)?);
        check_ranks(sources, comm.team.size(), Class::Rank)?;
        let mut count = 0_i32;
        for degree in degrees {
            let sum = count.checked_add(*degree).filter(|_| *degree >= 0);
            count = sum.ok_or_else(|| Error::new(Class::Arg, format!("a degree is {degree}")))?;
        }
        let (named, is_weighted) = edges_of(&comm, count, destinations, weights)?;
        let mut named = named.ranks.into_iter().zip(named.weights);
        let mut lists: Vec<Distributed> = Vec::new();
        lists.resize_with(comm.team.size(), Distributed::default);
        for (source, degree) in sources.iter().zip(degrees) {
            for (destination, weight) in named.by_ref().take(*degree as usize) {
                lists[destination as usize].sources.push(*source, weight);
                let of_source = &mut lists[*source as usize];
                of_source.destinations.push(destination, weight);
            }
        }
        let mut edges = exchange(&comm.team, &lists)?;
        edges.is_weighted = is_weighted;
        new.set(enter_distributed(process, &comm, edges)?);
        Ok(())
    })
}

/// `MPI_Dist_graph_neighbors_count`.
pub fn dist_graph_neighbors_count(
    process: &Process,
    comm: Comm,
    in_degree: Ref<i32>,
    out_degree: Ref<i32>,
    weighted: Ref<i32>,
) -> Result {
    on_comm(process, comm, |comm| {
        let found = distributed(&comm)?;
        in_degree.set(found.sources.ranks.len() as i32);
        out_degree.set(found.destinations.ranks.len() as i32);
        weighted.set(i32::from(found.is_weighted));
        Ok(())
    })
}

/// `MPI_Dist_graph_neighbors`. Where there is less room, the first ones are returned; weights only of a graph that has them.
pub fn dist_graph_neighbors(
    process: &Process,
    comm: Comm,
    most_sources: i32,
    sources: Array<i32>,
    source_weights: Array<i32>,
    most_destinations: i32,
    destinations: Array<i32>,
    destination_weights: Array<i32>,
) -> Result {
    on_comm(process, comm, |comm| {
        let found = distributed(&comm)?;
        for (edges, most, ranks, weights) in [
            (&found.sources, most_sources, sources, source_weights),
            (
                &found.destinations,
                most_destinations,
                destinations,
                destination_weights,
            ),
        ] {
            let most = count_of(most, Class::Arg)?.min(edges.ranks.len());
            copy(&edges.ranks[..most], ranks);
            if found.is_weighted {
                copy(&edges.weights[..most], weights.for_weights());
            }
        }
        Ok(())
    })
}

/// Makes a communicator of members with a topology, which `topology` returns for the place among them. All others get none.
fn enter(
    process: &Process,
    comm: &Communicator,
    members: &[usize],
    topology: impl FnOnce(usize) -> Result<Topology>,
) -> Result<Comm> {
    let place = members.iter().position(|member| *member == comm.team.me());
    let Some(place) = place else {
        return Ok(Comm::NULL);
    };
    let topology = topology(place)?;
    let team = comm.team.subset(members)?;
    let made = process.enter_comm_like(team, comm)?;
    process.comm(made)?.set_topology(Arc::new(topology));
    Ok(made)
}

fn enter_distributed(process: &Process, comm: &Communicator, edges: Distributed) -> Result<Comm> {
    let members: Vec<usize> = (0..comm.team.size()).collect();
    enter(process, comm, &members, |_| {
        Ok(Topology::distributed(edges))
    })
}

/// Gives each member the edges that this one knows for it. Returns those that all know for this one.
fn exchange(team: &Team, lists: &[Distributed]) -> Result<Distributed> {
    let mut data = Vec::new();
    let mut to = Vec::with_capacity(lists.len());
    for list in lists {
        let start = data.len();
        let count = list.sources.ranks.len() as i32;
        let numbers = std::iter::once(count)
            .chain(list.sources.numbers())
            .chain(list.destinations.numbers());
        data.extend(numbers.flat_map(i32::to_ne_bytes));
        to.push(data.len() - start);
    }
    let lengths: Vec<u8> = to.iter().flat_map(|length| length.to_ne_bytes()).collect();
    let mut coming = vec![0; lengths.len()];
    team.alltoall(&lengths, &mut coming)?;
    let from: Vec<usize> = coming
        .as_chunks()
        .0
        .iter()
        .map(|length| usize::from_ne_bytes(*length))
        .collect();
    let mut all = vec![0; from.iter().sum()];
    team.alltoallv(&data, &to, &mut all, &from)?;
    let mut edges = Distributed::default();
    let mut rest = &all[..];
    for length in from {
        let (list, after) = rest.split_at(length);
        rest = after;
        let numbers = list.as_chunks().0.iter();
        let mut numbers = numbers.map(|number| i32::from_ne_bytes(*number));
        let mut sources = numbers.next().unwrap_or(0);
        while let (Some(rank), Some(weight)) = (numbers.next(), numbers.next()) {
            match sources {
                0 => edges.destinations.push(rank, weight),
                _ => {
                    edges.sources.push(rank, weight);
                    sources -= 1;
                }
            }
        }
    }
    Ok(edges)
}

fn cartesian(comm: &Communicator) -> Result<&Cartesian> {
    match comm.topology().map(|topology| &topology.shape) {
        Some(Shape::Cartesian(found)) => Ok(found),
        _ => Err(no_topology("Cartesian")),
    }
}

fn graph(comm: &Communicator) -> Result<&Graph> {
    match comm.topology().map(|topology| &topology.shape) {
        Some(Shape::Graph(found)) => Ok(found),
        _ => Err(no_topology("graph")),
    }
}

fn distributed(comm: &Communicator) -> Result<&Distributed> {
    match comm.topology().map(|topology| &topology.shape) {
        Some(Shape::Distributed(found)) => Ok(found),
        _ => Err(no_topology("distributed graph")),
    }
}

#[cold]
fn no_topology(kind: &str) -> Error {
    let text = format!("the communicator has no {kind} topology");
    Error::new(Class::Topology, text)
}

/// Returns the grid that a call describes for the processes of a communicator.
fn cartesian_of(
    comm: &Communicator,
    dimensions: i32,
    extents: List<i32>,
    periods: List<i32>,
) -> Result<Cartesian> {
    let dimensions = count_of(dimensions, Class::Arg)?;
    let (extents, periods) = (array(&extents, dimensions)?, array(&periods, dimensions)?);
    if let Some(extent) = extents.iter().find(|extent| **extent <= 0) {
        let text = format!("the extent of a dimension is {extent}");
        return Err(Error::new(Class::Dims, text));
    }
    let sizes: Vec<usize> = extents.iter().map(|extent| *extent as usize).collect();
    let periods: Vec<bool> = periods.iter().map(|period| *period != 0).collect();
    let grid = Grid::new(&sizes, &periods).ok();
    let grid = grid.filter(|grid| grid.size() <= comm.team.size());
    let grid = grid.ok_or_else(|| {
        let text = format!("{} processes form no grid of {extents:?}", comm.size());
        Error::new(Class::Arg, text)
    })?;
    Ok(Cartesian { grid, periods })
}

/// Returns the graph that a call describes for the processes of a communicator.
fn graph_of(comm: &Communicator, nodes: i32, ends: List<i32>, edges: List<i32>) -> Result<Graph> {
    let nodes = count_of(nodes, Class::Arg)?;
    if nodes > comm.team.size() {
        let text = format!("there are {} processes for {nodes} nodes", comm.size());
        return Err(Error::new(Class::Arg, text));
    }
    let ends = array(&ends, nodes)?;
    if ends.first().is_some_and(|end| *end < 0) || !ends.is_sorted() {
        let text = format!("{ends:?} are no cumulative degrees");
        return Err(Error::new(Class::Arg, text));
    }
    let edges = array(&edges, ends.last().map_or(0, |end| *end as usize))?;
    check_ranks(edges, nodes, Class::Arg)?;
    Ok(Graph {
        ends: ends.to_vec(),
        edges: edges.to_vec(),
    })
}

/// Returns edges to or from processes of a communicator, and whether they have weights.
fn edges_of(
    comm: &Communicator,
    count: i32,
    ranks: List<i32>,
    weights: List<i32>,
) -> Result<(Edges, bool)> {
    let count = count_of(count, Class::Arg)?;
    let ranks = array(&ranks, count)?.to_vec();
    check_ranks(&ranks, comm.team.size(), Class::Rank)?;
    let given = weights.weights(count)?;
    if let Some(weight) = given.unwrap_or_default().iter().find(|weight| **weight < 0) {
        let text = format!("the weight of an edge is {weight}");
        return Err(Error::new(Class::Arg, text));
    }
    let weights = given.map_or_else(|| vec![1; count], <[i32]>::to_vec);
    Ok((Edges { ranks, weights }, given.is_some()))
}

/// Returns the rank that this process would have among the first `members`.
fn mapped(comm: &Communicator, members: usize) -> i32 {
    match comm.team.me() < members {
        true => comm.rank(),
        false => UNDEFINED,
    }
}

fn coordinates(found: &Cartesian, rank: i32) -> Result<Vec<i32>> {
    let member = usize::try_from(rank).ok();
    let coords = member.and_then(|member| found.grid.coords(member));
    let coords = coords.ok_or_else(|| no_rank(rank, found.grid.size(), Class::Rank))?;
    Ok(coords.into_iter().map(|place| place as i32).collect())
}

fn around(found: &Graph, rank: i32) -> Result<&[i32]> {
    let member = usize::try_from(rank).ok();
    let around = member.and_then(|member| found.around(member));
    around.ok_or_else(|| no_rank(rank, found.ends.len(), Class::Rank))
}

/// Returns an array of `count` elements.
fn array(list: &List<i32>, count: usize) -> Result<&[i32]> {
    match count > 0 && list.is_null() {
        true => Err(Error::new(Class::Arg, "an array is null")),
        false => Ok(list.slice(count)),
    }
}

/// Checks that there is room for as many elements.
fn check_room(most: i32, needed: usize) -> Result {
    match usize::try_from(most).is_ok_and(|most| most >= needed) {
        true => Ok(()),
        false => Err(Error::new(
            Class::Arg,
            format!("there is room for {most} elements of {needed}"),
        )),
    }
}

fn check_ranks(ranks: &[i32], size: usize, class: Class) -> Result {
    let is_one = |rank: i32| usize::try_from(rank).is_ok_and(|rank| rank < size);
    match ranks.iter().find(|rank| !is_one(**rank)) {
        Some(rank) => Err(no_rank(*rank, size, class)),
        None => Ok(()),
    }
}

#[cold]
fn no_rank(rank: i32, size: usize, class: Class) -> Error {
    let text = format!("there is no rank {rank} among {size} processes");
    Error::new(class, text)
}

fn copy(values: &[i32], to: Array<i32>) {
    for (place, value) in values.iter().enumerate() {
        to.set(place, *value);
    }
}
