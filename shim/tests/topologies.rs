//! Virtual topologies, and the collectives of neighbourhoods in all forms, on ranks that are threads of the test.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod common;

use std::cell::Cell;

use common::{
    BYTE, INT, Ints, WORLD, array, cells, counts, data, ignore, in_place, list, named, ranks,
    result, room, unweighted, wide,
};
use tagwire_shim::abi::{Comm, Datatype, Info, PROC_NULL, Request, UNDEFINED};
use tagwire_shim::call::{collectives as near, communicators, complete, datatypes, topologies};
use tagwire_shim::error::Class;
use tagwire_shim::raw::{In, Twin};
use tagwire_shim::{Process, Result};

/// Extents with the periods of each dimension.
const GRIDS: [(&[i32], &[i32]); 10] = [
    (&[4], &[0]),
    (&[4], &[1]),
    (&[1], &[1]),
    (&[2], &[1]),
    (&[2, 3], &[0, 1]),
    (&[3, 2], &[1, 1]),
    (&[1, 3], &[1, 0]),
    (&[1, 1], &[1, 0]),
    (&[2, 1, 3], &[1, 1, 0]),
    (&[2, 2, 2], &[0, 1, 0]),
];

fn class<T>(refused: Result<T>) -> i32 {
    refused.err().map_or(0, |error| error.code())
}

fn cart(process: &Process, (extents, periods): (&[i32], &[i32])) -> Comm {
    let mut made = Comm::NULL;
    let (count, extents, periods) = (extents.len() as i32, list(extents), list(periods));
    let new = result(&mut made);
    topologies::cart_create(process, WORLD, count, extents, periods, 1, new).unwrap();
    made
}

fn coords_of(process: &Process, comm: Comm, rank: i32, dimensions: usize) -> Vec<i32> {
    let mut coords = vec![-1; dimensions];
    let most = dimensions as i32;
    topologies::cart_coords(process, comm, rank, most, array(&mut coords)).unwrap();
    coords
}

fn rank_at(process: &Process, comm: Comm, coords: &[i32]) -> Result<i32> {
    let mut rank = -1;
    topologies::cart_rank(process, comm, list(coords), result(&mut rank))?;
    Ok(rank)
}

fn kind_of(process: &Process, comm: Comm) -> i32 {
    let mut kind = -1;
    topologies::topo_test(process, comm, result(&mut kind)).unwrap();
    kind
}

fn rank_of(process: &Process, comm: Comm) -> i32 {
    let mut rank = -1;
    communicators::comm_rank(process, comm, result(&mut rank)).unwrap();
    rank
}

/// Whom a step along a dimension leads to.
fn stepped(rank: i32, (extents, periods): (&[i32], &[i32]), along: usize, step: i32) -> i32 {
    let stride: i32 = extents[along + 1..].iter().product();
    let place = rank / stride % extents[along];
    let moved = place + step;
    if periods[along] == 0 && !(0..extents[along]).contains(&moved) {
        return PROC_NULL;
    }
    rank + (moved.rem_euclid(extents[along]) - place) * stride
}

#[test]
fn grids_have_coordinates_and_shifts() {
    for (extents, periods) in GRIDS {
        let size: i32 = extents.iter().product();
        // One rank more than the grid has.
        ranks(size as u32 + 1, |process, me| {
            let grid = cart(process, (extents, periods));
            let mut mapped = -1;
            let dimensions = extents.len();
            let (count, dims, around) = (dimensions as i32, list(extents), list(periods));
            let new = result(&mut mapped);
            topologies::cart_map(process, WORLD, count, dims, around, new).unwrap();
            assert_eq!(mapped, if me < size { me } else { UNDEFINED });
            if me == size {
                assert_eq!(grid, Comm::NULL);
                return;
            }
            assert_eq!((kind_of(process, grid), rank_of(process, grid)), (211, me));
            let mut found = -1;
            topologies::cartdim_get(process, grid, result(&mut found)).unwrap();
            assert_eq!(found, count);
            let mut got = [[-1; 3]; 3];
            let [dims, around, own] = &mut got;
            let (dims, around, own) = (array(dims), array(around), array(own));
            topologies::cart_get(process, grid, 3, dims, around, own).unwrap();
            assert_eq!(got[0][..dimensions], *extents);
            assert_eq!(got[1][..dimensions], *periods);
            assert_eq!(
                got[2][..dimensions],
                coords_of(process, grid, me, dimensions)
            );
            assert_eq!(got[0][dimensions..], [-1; 3][dimensions..]);
            for rank in 0..size {
                let mut coords = coords_of(process, grid, rank, dimensions);
                assert_eq!(rank_at(process, grid, &coords).unwrap(), rank);
                for along in 0..dimensions {
                    coords[along] -= 5 * extents[along];
                    let outside = rank_at(process, grid, &coords);
                    if periods[along] == 0 {
                        assert_eq!(class(outside), Class::Arg as i32);
                    } else {
                        assert_eq!(outside.unwrap(), rank);
                    }
                    coords[along] += 5 * extents[along];
                }
            }
            for along in 0..dimensions {
                for step in [-7, -2, -1, 0, 1, 2, 7] {
                    let mut ends = [0; 2];
                    let [from, to] = &mut ends;
                    let (from, to) = (result(from), result(to));
                    topologies::cart_shift(process, grid, along as i32, step, from, to).unwrap();
                    let expected =
                        [-step, step].map(|step| stepped(me, (extents, periods), along, step));
                    assert_eq!(
                        ends, expected,
                        "{me} in {extents:?} by {step} along {along}"
                    );
                }
            }
        });
    }
}

#[test]
fn grids_are_cut() {
    ranks(12, |process, me| {
        let grid = cart(process, (&[2, 3, 2], &[0, 1, 1]));
        for mask in 0..8 {
            let remain = [mask & 1, mask & 2, mask & 4];
            let mut part = Comm::NULL;
            topologies::cart_sub(process, grid, list(&remain), result(&mut part)).unwrap();
            assert_eq!(kind_of(process, part), 211);
            let own = coords_of(process, grid, me, 3);
            let kept: Vec<usize> = (0..3).filter(|place| remain[*place] != 0).collect();
            let rank = rank_of(process, part);
            let coords = coords_of(process, part, rank, kept.len());
            assert!(kept.iter().map(|place| own[*place]).eq(coords));
            let mut got = [[-1; 3]; 3];
            let [dims, periods, coords] = &mut got;
            let (dims, periods, coords) = (array(dims), array(periods), array(coords));
            topologies::cart_get(process, part, 3, dims, periods, coords).unwrap();
            let all = [[2, 3, 2], [0, 1, 1]];
            for (number, place) in kept.iter().enumerate() {
                assert_eq!([got[0][number], got[1][number]], all.map(|all| all[*place]));
            }
            let mut size = 0;
            communicators::comm_size(process, part, result(&mut size)).unwrap();
            assert_eq!(size, kept.iter().map(|place| all[0][*place]).product());
            // Its members exchange what they are, by the neighbours of the part.
            let mut around = vec![-9; 2 * kept.len()];
            let given = [me];
            let (from, into) = (data(&given), room(&mut around));
            near::neighbor_allgather(process, from.ints(1), into.ints(1), part).unwrap();
            for (number, place) in kept.iter().enumerate() {
                let in_grid = (&all[0][..], &all[1][..]);
                let expected = [-1, 1].map(|step| match stepped(me, in_grid, *place, step) {
                    PROC_NULL => -9,
                    rank => rank,
                });
                assert_eq!(around[2 * number..][..2], expected);
            }
            communicators::comm_free(process, result(&mut part)).unwrap();
        }
    });
}

#[test]
fn extents_are_balanced() {
    ranks(1, |process, _| {
        let of = |nodes: i32, given: &[i32]| {
            let mut extents = given.to_vec();
            let count = given.len() as i32;
            topologies::dims_create(process, nodes, count, array(&mut extents)).map(|()| extents)
        };
        // Those of the standard come first.
        assert_eq!(of(6, &[0, 0]).unwrap(), [3, 2]);
        assert_eq!(of(7, &[0, 0]).unwrap(), [7, 1]);
        assert_eq!(of(6, &[0, 3, 0]).unwrap(), [2, 3, 1]);
        assert_eq!(class(of(7, &[0, 3, 0])), Class::Dims as i32);
        assert_eq!(of(24, &[0, 0, 0]).unwrap(), [4, 3, 2]);
        assert_eq!(of(24, &[0, 2, 0]).unwrap(), [4, 2, 3]);
        assert_eq!(of(1, &[0, 0]).unwrap(), [1, 1]);
        assert_eq!(of(6, &[2, 3]).unwrap(), [2, 3]);
        assert_eq!(of(6, &[]).unwrap(), []);
        for (nodes, given) in [
            (6, &[2, 2][..]),
            (12, &[2, 3]),
            (6, &[-1, 0]),
            (0, &[0]),
            (-4, &[0, 0]),
            (6, &[i32::MAX, i32::MAX, 0]),
        ] {
            assert_eq!(
                class(of(nodes, given)),
                Class::Dims as i32,
                "{nodes} {given:?}"
            );
        }
    });
}

#[test]
fn graphs_are_known_as_a_whole() {
    // The example of the standard: 0 has 1 and 3, 1 has 0, 2 has 3, 3 has 0 and 2.
    let (ends, edges) = ([2, 3, 4, 6], [1, 3, 0, 3, 0, 2]);
    ranks(5, |process, me| {
        let (mut made, mut mapped) = (Comm::NULL, -1);
        let (ends_of, edges_of) = (list(&ends), list(&edges));
        let new = result(&mut made);
        topologies::graph_create(process, WORLD, 4, ends_of, edges_of, 0, new).unwrap();
        let new = result(&mut mapped);
        topologies::graph_map(process, WORLD, 4, ends_of, edges_of, new).unwrap();
        assert_eq!(mapped, if me < 4 { me } else { UNDEFINED });
        if me == 4 {
            assert_eq!(made, Comm::NULL);
            return;
        }
        assert_eq!(kind_of(process, made), 212);
        let (mut nodes, mut count) = (0, 0);
        topologies::graphdims_get(process, made, result(&mut nodes), result(&mut count)).unwrap();
        assert_eq!((nodes, count), (4, 6));
        let (mut got_ends, mut got_edges) = ([0; 4], [0; 6]);
        let (into, also) = (array(&mut got_ends), array(&mut got_edges));
        topologies::graph_get(process, made, 4, 6, into, also).unwrap();
        assert_eq!((got_ends, got_edges), (ends, edges));
        let short = topologies::graph_get(process, made, 4, 5, into, also);
        assert_eq!(class(short), Class::Arg as i32);
        for rank in 0..4 {
            let start = if rank == 0 {
                0
            } else {
                ends[rank - 1] as usize
            };
            let expected = &edges[start..ends[rank] as usize];
            let (mut degree, mut around) = (0, [-1; 6]);
            let rank = rank as i32;
            let found = result(&mut degree);
            topologies::graph_neighbors_count(process, made, rank, found).unwrap();
            let found = array(&mut around);
            topologies::graph_neighbors(process, made, rank, degree, found).unwrap();
            assert_eq!(around[..degree as usize], *expected);
            assert_eq!(around[degree as usize], -1);
        }
        let beyond = topologies::graph_neighbors_count(process, made, 4, result(&mut count));
        assert_eq!(class(beyond), Class::Rank as i32);

        let mut copy = Comm::NULL;
        communicators::comm_dup(process, made, result(&mut copy)).unwrap();
        assert_eq!(kind_of(process, copy), 212);
        let mut got = [-1; 2];
        let given = [10 * me];
        let (from, into) = (data(&given), room(&mut got));
        near::neighbor_allgather(process, from.ints(1), into.ints(1), copy).unwrap();
        let expected = [[10, 30], [0, -1], [30, -1], [0, 20]];
        assert_eq!(got, expected[me as usize]);
    });
}

/// The edges of a graph with several between two ranks, with oneself, and with ranks without any: from, to and weight.
fn edges_among(size: i32) -> Vec<(i32, i32, i32)> {
    let mut edges = Vec::new();
    for from in 0..size {
        for number in 0..(from * 2 + 1) % 5 {
            let to = (from * number + 1) % size;
            edges.push((from, to, 10 * from + number));
            if number % 2 == 0 {
                edges.push((from, to, 100 + number));
            }
        }
    }
    edges
}

/// The graph of a communicator as its members see it: sources, their weights, destinations, theirs.
fn listed(process: &Process, comm: Comm) -> ([Vec<i32>; 4], i32) {
    let (mut coming, mut leaving, mut weighted) = (-1, -1, -1);
    let (from, to, also) = (
        result(&mut coming),
        result(&mut leaving),
        result(&mut weighted),
    );
    topologies::dist_graph_neighbors_count(process, comm, from, to, also).unwrap();
    let lengths = [coming, coming, leaving, leaving];
    let mut lists = lengths.map(|length| vec![-7; length as usize]);
    let [sources, from_weights, destinations, to_weights] = &mut lists;
    topologies::dist_graph_neighbors(
        process,
        comm,
        coming,
        array(sources),
        array(from_weights),
        leaving,
        array(destinations),
        array(to_weights),
    )
    .unwrap();
    (lists, weighted)
}

#[test]
fn distributed_graphs_keep_their_edges() {
    for size in [1, 2, 3, 5] {
        let edges = edges_among(size);
        ranks(size as u32, |process, me| {
            let coming = edges.iter().filter(|edge| edge.1 == me);
            let leaving = edges.iter().filter(|edge| edge.0 == me);
            let (sources, from_weights): (Vec<_>, Vec<_>) =
                coming.map(|edge| (edge.0, edge.2)).unzip();
            let (destinations, to_weights): (Vec<_>, Vec<_>) =
                leaving.map(|edge| (edge.1, edge.2)).unzip();
            let lists = [sources, from_weights, destinations, to_weights];
            let weights = |number: usize| match lists[number].is_empty() {
                true => named(11),
                false => list(&lists[number]),
            };
            let mut made = Comm::NULL;
            topologies::dist_graph_create_adjacent(
                process,
                WORLD,
                lists[0].len() as i32,
                list(&lists[0]),
                weights(1),
                lists[2].len() as i32,
                list(&lists[2]),
                weights(3),
                Info::NULL,
                0,
                result(&mut made),
            )
            .unwrap();
            assert_eq!(kind_of(process, made), 213);
            assert_eq!(listed(process, made), (lists.clone(), 1));
            exchanges(process, made, me, &edges, (&lists[0], &lists[2]));

            // Each rank names the edges whose number says so, in one group for each source.
            for with_weights in [true, false] {
                let mine = edges.iter().enumerate();
                let mine = mine.filter(|(number, _)| *number as i32 * 3 % size == me);
                let mine: Vec<_> = mine.map(|(_, edge)| *edge).collect();
                let from: Vec<i32> = mine.iter().map(|edge| edge.0).collect();
                let to: Vec<i32> = mine.iter().map(|edge| edge.1).collect();
                let of: Vec<i32> = mine.iter().map(|edge| edge.2).collect();
                let mut made = Comm::NULL;
                topologies::dist_graph_create(
                    process,
                    WORLD,
                    mine.len() as i32,
                    list(&from),
                    list(&vec![1; mine.len()]),
                    list(&to),
                    if with_weights { list(&of) } else { named(10) },
                    Info::NULL,
                    1,
                    result(&mut made),
                )
                .unwrap();
                let (found, weighted) = listed(process, made);
                assert_eq!(weighted, i32::from(with_weights));
                let pairs = |ranks: &[i32], weights: &[i32]| {
                    let pairs = ranks.iter().copied().zip(weights.iter().copied());
                    let mut pairs: Vec<_> = pairs.collect();
                    pairs.sort_unstable();
                    pairs
                };
                for side in [0, 2] {
                    let expected = match with_weights {
                        true => lists[side + 1].clone(),
                        false => vec![-7; lists[side].len()],
                    };
                    let expected = pairs(&lists[side], &expected);
                    assert_eq!(pairs(&found[side], &found[side + 1]), expected);
                }
                exchanges(process, made, me, &edges, (&found[0], &found[2]));
                // Less room, and no interest in weights.
                let mut one = [-7; 1];
                let (sources, no) = (array(&mut one), unweighted());
                topologies::dist_graph_neighbors(process, made, 1, sources, no, 0, no, no).unwrap();
                assert_eq!(one[0], *found[0].first().unwrap_or(&-7));
            }
        });
    }
}

/// An alltoall of a graph: the n-th block from one rank to another is the n-th from that one.
fn exchanges(
    process: &Process,
    comm: Comm,
    me: i32,
    edges: &[(i32, i32, i32)],
    (sources, destinations): (&[i32], &[i32]),
) {
    let numbered = |ranks: &[i32], name: &dyn Fn(i32, usize) -> i32| {
        let numbers = ranks.iter().enumerate().map(|(place, rank)| {
            let before = ranks[..place].iter().filter(|other| *other == rank);
            name(*rank, before.count())
        });
        numbers.collect::<Vec<_>>()
    };
    let out = numbered(destinations, &|to, n| 10_000 * me + 100 * to + n as i32);
    let expected = numbered(sources, &|from, n| 10_000 * from + 100 * me + n as i32);
    assert_eq!(
        expected.len(),
        edges.iter().filter(|edge| edge.1 == me).count()
    );
    let mut into = vec![-1; expected.len()];
    let (from, at) = (data(&out), room(&mut into));
    near::neighbor_alltoall(process, from.ints(1), at.ints(1), comm).unwrap();
    assert_eq!(into, expected);
}

/// Runs a call in its three forms, the persistent one three times, and checks each round. The room is filled anew before it.
macro_rules! in_forms {
    ($process:ident, $comm:ident, $name:ident, $iname:ident, $init:ident($($argument:expr),*), $into:ident, $expected:expr) => {
        let check = |form: &str| {
            let found: Vec<i32> = $into.iter().map(|cell| cell.replace(NONE)).collect();
            assert_eq!(found, $expected, "{} {form}", stringify!($name));
        };
        near::$name($process, $($argument,)* $comm).unwrap();
        check("blocking");
        let mut request = Request::NULL;
        near::$iname($process, $($argument,)* $comm, result(&mut request)).unwrap();
        complete::wait($process, result(&mut request), ignore()).unwrap();
        check("nonblocking");
        near::$init($process, $($argument,)* $comm, Info::NULL, result(&mut request)).unwrap();
        for _round in 0..3 {
            complete::start($process, result(&mut request)).unwrap();
            complete::wait($process, result(&mut request), ignore()).unwrap();
            check("persistent");
        }
        complete::request_free($process, result(&mut request)).unwrap();
    };
}

/// What is where nothing is received.
const NONE: i32 = -5;

fn empty(length: usize) -> Vec<Cell<i32>> {
    vec![Cell::new(NONE); length]
}

/// Two ints with a gap of one between them, and one behind.
fn padded(process: &Process) -> Datatype {
    let (mut spaced, mut padded) = (Datatype::NULL, Datatype::NULL);
    datatypes::type_vector(process, Twin::Int, 2, 1, 2, INT, result(&mut spaced)).unwrap();
    datatypes::type_create_resized(process, Twin::Int, spaced, 0, 16, result(&mut padded)).unwrap();
    datatypes::type_commit(process, result(&mut padded)).unwrap();
    padded
}

/// The edges of a rank in a grid: the place of its block, whom it leads to, and the place of that rank's block for this one.
fn edges_in(me: i32, grid: (&[i32], &[i32])) -> Vec<(usize, i32, usize)> {
    let edges = (0..2 * grid.0.len()).map(|place| {
        let step = if place % 2 == 0 { -1 } else { 1 };
        (place, stepped(me, grid, place / 2, step), place ^ 1)
    });
    edges.filter(|edge| edge.1 != PROC_NULL).collect()
}

/// An element of a block: says whose it is, in which of its blocks, and where there.
fn value(rank: i32, place: usize, element: usize) -> i32 {
    1000 * rank + 10 * place as i32 + element as i32
}

/// Blocks of the same length, with gaps on one side. What is beside them and between them stays.
#[test]
fn neighbours_in_grids_exchange_equal_blocks() {
    for grid in GRIDS {
        let size: i32 = grid.0.iter().product();
        ranks(size as u32, |process, me| {
            let (comm, padded) = (cart(process, grid), padded(process));
            let degree = 2 * grid.0.len();
            let edges = edges_in(me, grid);
            let of = |place| [0, 1].map(|element| value(me, place, element));
            let out: Vec<i32> = (0..degree).flat_map(of).collect();
            let mut expected = vec![NONE; 4 * degree];
            for (place, rank, there) in &edges {
                expected[4 * place] = value(*rank, *there, 0);
                expected[4 * place + 2] = value(*rank, *there, 1);
            }
            let into = empty(expected.len());
            let (from, at) = (data(&out), cells(&into));
            in_forms!(
                process,
                comm,
                neighbor_alltoall,
                ineighbor_alltoall,
                neighbor_alltoall_init(from.ints(2), at.of(1, padded)),
                into,
                expected
            );

            let own = [value(me, 0, 0), NONE, value(me, 0, 1), NONE];
            let mut expected = vec![NONE; 2 * degree];
            for (place, rank, _) in &edges {
                expected[2 * place] = value(*rank, 0, 0);
                expected[2 * place + 1] = value(*rank, 0, 1);
            }
            let into = empty(expected.len());
            let (from, at) = (data(&own), cells(&into));
            in_forms!(
                process,
                comm,
                neighbor_allgather,
                ineighbor_allgather,
                neighbor_allgather_init(from.of(1, padded), at.ints(2)),
                into,
                expected
            );
        });
    }
}

/// Blocks with lengths and places of their own: those that come lie in the reverse order, with gaps between them.
#[test]
fn neighbours_in_grids_exchange_blocks_of_any_length() {
    // Elements of the block that a rank has at a place.
    let length = |rank: i32, place: usize| (rank as usize + place) % 3;
    for grid in GRIDS {
        let size: i32 = grid.0.iter().product();
        ranks(size as u32, |process, me| {
            let (comm, padded) = (cart(process, grid), padded(process));
            let degree = 2 * grid.0.len();
            let edges = edges_in(me, grid);
            // In elements of 4 ints, of which there are 4 for each edge.
            let to: Vec<i32> = (0..degree).map(|place| length(me, place) as i32).collect();
            let at: Vec<i32> = (0..degree as i32).map(|place| 4 * place).collect();
            let back: Vec<i32> = at.iter().rev().copied().collect();
            let mut out = vec![NONE; 16 * degree];
            for place in 0..degree {
                for element in 0..2 * length(me, place) {
                    out[16 * place + 2 * element] = value(me, place, element);
                }
            }
            let mut from = vec![3; degree];
            for (place, rank, there) in &edges {
                from[*place] = length(*rank, *there) as i32;
            }
            // Where an element of a block lies.
            let found = |place: usize, element: usize, step: usize| {
                16 * (degree - 1 - place) + step * element
            };
            let expected = |step: &dyn Fn(usize) -> usize| {
                let mut expected = vec![NONE; 16 * degree];
                for (place, rank, there) in &edges {
                    for element in 0..2 * length(*rank, *there) {
                        let at = found(*place, element, step(*place));
                        expected[at] = value(*rank, *there, element);
                    }
                }
                expected
            };
            let into = empty(16 * degree);
            let (given, room) = (data(&out), cells(&into));
            in_forms!(
                process,
                comm,
                neighbor_alltoallv,
                ineighbor_alltoallv,
                neighbor_alltoallv_init(
                    given,
                    counts(&to),
                    counts(&at),
                    padded,
                    room,
                    counts(&from),
                    counts(&back),
                    padded
                ),
                into,
                expected(&|_| 2)
            );

            // Places in bytes; each second block comes as bytes without gaps.
            let in_bytes = |places: &[i32]| {
                let places = places.iter().map(|place| 16 * i64::from(*place));
                places.collect::<Vec<_>>()
            };
            let (at_bytes, back_bytes) = (in_bytes(&at), in_bytes(&back));
            let (types, mut kinds) = (vec![padded; degree], vec![padded; degree]);
            let mut lengths: Vec<i64> = from.iter().map(|count| i64::from(*count)).collect();
            for place in (1..degree).step_by(2) {
                kinds[place] = BYTE;
                lengths[place] *= 8;
            }
            in_forms!(
                process,
                comm,
                neighbor_alltoallw,
                ineighbor_alltoallw,
                neighbor_alltoallw_init(
                    given,
                    counts(&to),
                    wide(&at_bytes),
                    list(&types),
                    room,
                    wide(&lengths),
                    wide(&back_bytes),
                    list(&kinds)
                ),
                into,
                expected(&|place| 2 - place % 2)
            );

            // An allgather of as many elements as the first block has.
            let mut from = vec![3; degree];
            let mut expected = vec![NONE; 16 * degree];
            for (place, rank, _) in &edges {
                from[*place] = length(*rank, 0) as i32;
                for element in 0..2 * length(*rank, 0) {
                    expected[found(*place, element, 2)] = value(*rank, 0, element);
                }
            }
            let count = i64::from(to[0]);
            in_forms!(
                process,
                comm,
                neighbor_allgatherv,
                ineighbor_allgatherv,
                neighbor_allgatherv_init(
                    given.of(count, padded),
                    room,
                    counts(&from),
                    counts(&back),
                    padded
                ),
                into,
                expected
            );
        });
    }
}

#[test]
fn wrong_arguments_are_refused() {
    ranks(2, |process, me| {
        let (mut made, mut value) = (Comm::NULL, -1);
        let (new, found) = (result(&mut made), result(&mut value));
        let grid = cart(process, (&[2], &[0]));
        let mut numbers = [0; 4];
        let some = array(&mut numbers);
        assert_eq!(kind_of(process, WORLD), UNDEFINED);

        let (own, mut into) = ([me], [0; 2]);
        let (from, at) = (data(&own), room(&mut into));
        let (two, none) = (list(&[2, 2]), list(&[0, 0]));
        let zero = list(&[0]);
        let create = |dimensions, extents| {
            topologies::cart_create(process, WORLD, dimensions, extents, none, 0, new)
        };
        let adjacent = |sources, weights, others| {
            topologies::dist_graph_create_adjacent(
                process,
                WORLD,
                1,
                sources,
                weights,
                1,
                zero,
                others,
                Info::NULL,
                0,
                new,
            )
        };
        let graph = |nodes, ends, edges| {
            topologies::graph_create(process, WORLD, nodes, ends, edges, 0, new)
        };
        let allgather =
            |from: In, comm| near::neighbor_allgather(process, from.ints(1), at.ints(1), comm);
        for (refused, expected) in [
            (allgather(from, WORLD), Class::Topology),
            (
                topologies::cartdim_get(process, WORLD, found),
                Class::Topology,
            ),
            (
                topologies::graphdims_get(process, grid, found, found),
                Class::Topology,
            ),
            (
                topologies::dist_graph_neighbors_count(process, grid, found, found, found),
                Class::Topology,
            ),
            (allgather(in_place(), grid), Class::Buffer),
            (
                topologies::topo_test(process, Comm::NULL, found),
                Class::Comm,
            ),
            (create(2, two), Class::Arg),
            (create(-1, two), Class::Arg),
            (create(1, none), Class::Dims),
            (create(1, named(0)), Class::Arg),
            (
                topologies::cart_rank(process, grid, list(&[2]), found),
                Class::Arg,
            ),
            (
                topologies::cart_coords(process, grid, 2, 1, some),
                Class::Rank,
            ),
            (
                topologies::cart_coords(process, grid, -1, 1, some),
                Class::Rank,
            ),
            (
                topologies::cart_coords(process, grid, 0, 0, some),
                Class::Arg,
            ),
            (
                topologies::cart_shift(process, grid, 1, 1, found, found),
                Class::Dims,
            ),
            (
                topologies::cart_shift(process, grid, -1, 1, found, found),
                Class::Dims,
            ),
            (graph(3, two, none), Class::Arg),
            (graph(2, list(&[1, 0]), none), Class::Arg),
            (graph(2, list(&[1, 2]), two), Class::Arg),
            (adjacent(list(&[2]), zero, zero), Class::Rank),
            (adjacent(list(&[PROC_NULL]), zero, zero), Class::Rank),
            (adjacent(zero, named(10), zero), Class::Arg),
            (adjacent(zero, named(11), zero), Class::Arg),
            (adjacent(zero, list(&[-1]), zero), Class::Arg),
        ] {
            assert_eq!(class(refused), expected as i32);
            assert_eq!(made, Comm::NULL);
        }

        // A grid without dimensions has one process.
        let point = cart(process, (&[], &[]));
        assert_eq!(point == Comm::NULL, me == 1);
        if me == 0 {
            assert_eq!((kind_of(process, point), rank_of(process, point)), (211, 0));
            assert_eq!(rank_at(process, point, &[]).unwrap(), 0);
            allgather(from, point).unwrap();
        }
    });
}
