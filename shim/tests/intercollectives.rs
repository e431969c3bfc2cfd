//! Collectives of intercommunicators: from each group to the other.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]
#![allow(unsafe_code)]

mod common;

use common::sides::{Root, each, wait};
use common::{INT, Ints, SUM, counts, data, list, result, room};
use tagwire_shim::abi::{Datatype, Info, Op, Request};
use tagwire_shim::call::{collectives as coll, complete, datatypes, operations};
use tagwire_shim::callbacks::Reduction;
use tagwire_shim::raw::Twin;

#[test]
fn what_has_a_root_goes_from_group_to_group() {
    each(|process, sides| {
        let (comm, remote) = (sides.comm, sides.remote as usize);
        for _round in 0..6 {
            coll::barrier(process, comm).unwrap();
            sides.roots(|root, is| {
                let mut values = if is == Root::Here {
                    [sides.world, 7]
                } else {
                    [-1; 2]
                };
                coll::bcast(process, room(&mut values).ints(2), root, comm).unwrap();
                let expected = match is {
                    Root::Here => [sides.world, 7],
                    Root::Beside => [-1; 2],
                    Root::There(world) => [world, 7],
                };
                assert_eq!(values, expected);

                let (own, mut all) = ([sides.world, 9], vec![-1; 2 * remote]);
                let (from, into) = (data(&own), room(&mut all));
                coll::gather(process, from.ints(2), into.ints(2), root, comm).unwrap();
                let gathered: Vec<_> = (0..sides.remote)
                    .flat_map(|rank| [sides.world_of(rank), 9])
                    .collect();
                assert_eq!(
                    all,
                    if is == Root::Here {
                        gathered
                    } else {
                        vec![-1; 2 * remote]
                    }
                );

                let parts: Vec<i32> = (0..sides.remote)
                    .map(|rank| 100 * sides.world + rank)
                    .collect();
                let mut part = [-1];
                let (from, into, mut request) = (data(&parts), room(&mut part), Request::NULL);
                let new = result(&mut request);
                coll::iscatter(process, from.ints(1), into.ints(1), root, comm, new).unwrap();
                wait(process, &mut request);
                let expected = match is {
                    Root::There(world) => 100 * world + sides.me,
                    _ => -1,
                };
                assert_eq!(part, [expected]);

                let (own, mut sum) = ([sides.world, 1], [-1; 2]);
                let (from, into) = (data(&own), room(&mut sum));
                coll::reduce(process, from, into.ints(2), SUM, root, comm).unwrap();
                let of_remote: i32 = (0..sides.remote).map(|rank| sides.world_of(rank)).sum();
                assert_eq!(
                    sum,
                    if is == Root::Here {
                        [of_remote, sides.remote]
                    } else {
                        [-1; 2]
                    }
                );
            });
        }
    });
}

/// Rank n of a group gives n + 1 elements, which lie apart in the room.
#[test]
fn lengths_differ_between_members() {
    each(|process, sides| {
        let (comm, remote) = (sides.comm, sides.remote);
        let own = vec![sides.world; sides.me as usize + 1];
        let lengths: Vec<i32> = (1..=remote).collect();
        let places: Vec<i32> = (0..remote).map(|rank| 10 * (remote - 1 - rank)).collect();
        let (lengths_of, places_of) = (counts(&lengths), counts(&places));
        let mut expected = vec![-1; 10 * remote as usize];
        for rank in 0..remote {
            let start = places[rank as usize] as usize;
            expected[start..=start + rank as usize].fill(sides.world_of(rank));
        }
        let (from, count) = (data(&own), i64::from(sides.me) + 1);
        let mut all = vec![-1; 10 * remote as usize];
        let into = room(&mut all);
        coll::allgatherv(
            process,
            from.ints(count),
            into,
            lengths_of,
            places_of,
            INT,
            comm,
        )
        .unwrap();
        assert_eq!(all, expected);
        sides.roots(|root, is| {
            let mut all = vec![-1; 10 * remote as usize];
            let into = room(&mut all);
            coll::gatherv(
                process,
                from.ints(count),
                into,
                lengths_of,
                places_of,
                INT,
                root,
                comm,
            )
            .unwrap();
            assert!(is != Root::Here || all == expected);
            let mut part = vec![-1; own.len()];
            let (from, into) = (data(&expected), room(&mut part));
            coll::scatterv(
                process,
                from,
                lengths_of,
                places_of,
                INT,
                into.ints(count),
                root,
                comm,
            )
            .unwrap();
            // The root has what this member gave.
            assert!(!matches!(is, Root::There(_)) || part == own);
        });
        // One group gives nothing.
        let gives = |world: i32| i64::from(world % 2);
        let mut got = vec![-1; remote as usize];
        let (from, into) = (data(&own), room(&mut got));
        let (out, coming) = (gives(sides.world), gives(sides.world + 1));
        coll::allgather(process, from.ints(out), into.ints(coming), comm).unwrap();
        let expected = (0..remote).map(|rank| {
            if coming == 1 {
                sides.world_of(rank)
            } else {
                -1
            }
        });
        assert_eq!(got, expected.collect::<Vec<_>>());
    });
}

#[test]
fn each_exchanges_with_all_of_the_other_group() {
    each(|process, sides| {
        let (comm, remote) = (sides.comm, sides.remote);
        let out: Vec<i32> = (0..remote).map(|to| 100 * sides.world + to).collect();
        let expected: Vec<i32> = (0..remote)
            .map(|from| 100 * sides.world_of(from) + sides.me)
            .collect();
        let mut got = vec![-1; remote as usize];
        let into = room(&mut got);
        coll::alltoall(process, data(&out).ints(1), into.ints(1), comm).unwrap();
        assert_eq!(got, expected);
        // In the reverse order, persistent.
        let (ones, places): (Vec<i32>, Vec<i32>) =
            (vec![1; remote as usize], (0..remote).rev().collect());
        let (ones_of, places_of) = (counts(&ones), counts(&places));
        let (mut request, from) = (Request::NULL, data(&out));
        let in_order: Vec<i32> = (0..remote).collect();
        let new = result(&mut request);
        coll::alltoallv_init(
            process,
            from,
            ones_of,
            counts(&in_order),
            INT,
            into,
            ones_of,
            places_of,
            INT,
            comm,
            Info::NULL,
            new,
        )
        .unwrap();
        for _round in 0..3 {
            got.fill(-1);
            complete::start(process, result(&mut request)).unwrap();
            wait(process, &mut request);
            assert_eq!(got, expected.iter().rev().copied().collect::<Vec<_>>());
        }
        complete::request_free(process, result(&mut request)).unwrap();
        let bytes: Vec<i32> = (0..remote).map(|rank| 4 * rank).collect();
        let all = vec![INT; remote as usize];
        let (places_of, types) = (counts(&bytes), list(&all));
        coll::alltoallw(
            process, from, ones_of, places_of, types, into, ones_of, places_of, types, comm,
        )
        .unwrap();
        assert_eq!(got, expected);
    });
}

/// `left` of lower ranks: pairs are compositions of `x -> a x + b`.
extern "C-unwind" fn compose(
    left: *mut std::ffi::c_void,
    into: *mut std::ffi::c_void,
    count: *mut i32,
    _: *mut Datatype,
) {
    // SAFETY: as many pairs, with a gap after each, as the tests' types say.
    unsafe {
        let (left, into) = (left.cast::<[i32; 3]>(), into.cast::<[i32; 3]>());
        for place in 0..*count as usize {
            let ([a, b, _], [c, d, _]) = (*left.add(place), *into.add(place));
            (*into.add(place))[0] = a.wrapping_mul(c);
            (*into.add(place))[1] = a.wrapping_mul(d).wrapping_add(b);
        }
    }
}

#[test]
fn reductions_are_of_the_other_group_in_its_order() {
    each(|process, sides| {
        let (comm, mut op, mut pair, mut gapped) =
            (sides.comm, Op::NULL, Datatype::NULL, Datatype::NULL);
        let function = Reduction::Int(Some(compose));
        operations::op_create(process, function, 0, result(&mut op)).unwrap();
        datatypes::type_contiguous(process, Twin::Int, 2, INT, result(&mut pair)).unwrap();
        datatypes::type_create_resized(process, Twin::Int, pair, 0, 12, result(&mut gapped))
            .unwrap();
        datatypes::type_commit(process, result(&mut gapped)).unwrap();
        let of = |world: i32| [world + 2, 3 * world + 1];
        let composed = (0..sides.remote).map(|rank| of(sides.world_of(rank)));
        let composed = composed
            .reduce(|[a, b], [c, d]| [a.wrapping_mul(c), a.wrapping_mul(d).wrapping_add(b)])
            .unwrap();
        let [a, b] = of(sides.world);
        let (own, mut got) = ([a, b, 77, a, b, 77], [-1; 6]);
        let (from, into) = (data(&own), room(&mut got));
        let expected = [composed[0], composed[1], -1, composed[0], composed[1], -1];
        for _round in 0..6 {
            got.fill(-1);
            coll::allreduce(process, from, into.of(2, gapped), op, comm).unwrap();
            assert_eq!(got, expected);
        }
        sides.roots(|root, is| {
            got.fill(-1);
            coll::reduce(process, from, into.of(2, gapped), op, root, comm).unwrap();
            assert_eq!(got, if is == Root::Here { expected } else { [-1; 6] });
        });
        coll::allreduce(process, from, into.of(0, gapped), op, comm).unwrap();

        // As many elements on both sides: `size * remote`.
        let total = sides.size * sides.remote;
        let own: Vec<i32> = (0..total).map(|place| 1000 * sides.world + place).collect();
        let sum = |place: i32| {
            (0..sides.remote)
                .map(|rank| 1000 * sides.world_of(rank) + place)
                .sum::<i32>()
        };
        let part = |me: i32| {
            (me * sides.remote..(me + 1) * sides.remote)
                .map(sum)
                .collect::<Vec<i32>>()
        };
        let mut got = vec![-1; sides.remote as usize];
        let (from, into) = (data(&own), room(&mut got));
        let count = i64::from(sides.remote);
        coll::reduce_scatter_block(process, from, into.ints(count), SUM, comm).unwrap();
        assert_eq!(got, part(sides.me));
        // The first one gets all.
        let mut lengths = vec![0; sides.size as usize];
        lengths[0] = total;
        let mut got = vec![-1; total as usize];
        let (into, mut request) = (room(&mut got), Request::NULL);
        let new = result(&mut request);
        coll::ireduce_scatter(process, from, into, counts(&lengths), INT, SUM, comm, new).unwrap();
        wait(process, &mut request);
        let all: Vec<i32> = (0..total).map(sum).collect();
        assert_eq!(
            got,
            if sides.me == 0 {
                all
            } else {
                vec![-1; total as usize]
            }
        );
        operations::op_free(process, result(&mut op)).unwrap();
        for made in [&mut pair, &mut gapped] {
            datatypes::type_free(process, result(made)).unwrap();
        }
    });
}
