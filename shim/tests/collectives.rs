//! Collectives in all forms, on ranks that are threads of the test.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]
#![allow(unsafe_code)]

mod common;

use std::ffi::c_void;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use common::{
    BYTE, DOUBLE, DOUBLE_INT, INT, Ints, SUM, WORLD, counts, data, ignore, in_place, list, ranks,
    result, room,
};
use tagwire_shim::Process;
use tagwire_shim::abi::{Comm, Datatype, Info, Op, Request};
use tagwire_shim::call::{collectives as coll, communicators, complete, datatypes, operations};
use tagwire_shim::callbacks::Reduction;
use tagwire_shim::error::Class;
use tagwire_shim::raw::{Out, Twin};

const SIZES: [u32; 4] = [1, 2, 3, 5];

/// Waits for a nonblocking operation.
fn wait(process: &Process, request: &mut Request) {
    complete::wait(process, result(request), ignore()).unwrap();
}

/// Runs a persistent operation twice, and frees it.
fn twice(process: &Process, mut request: Request, mut check: impl FnMut()) {
    for _ in 0..2 {
        complete::start(process, result(&mut request)).unwrap();
        wait(process, &mut request);
        check();
    }
    complete::request_free(process, result(&mut request)).unwrap();
}

#[test]
fn data_goes_where_it_is_to_go() {
    for size in SIZES {
        ranks(size, |process, me| {
            let n = size as i32;
            let root = n - 1;
            for _round in 0..6 {
                coll::barrier(process, WORLD).unwrap();
                let mut values = if me == root { [4, 5, 6] } else { [0; 3] };
                coll::bcast(process, room(&mut values).ints(3), root, WORLD).unwrap();
                assert_eq!(values, [4, 5, 6]);

                let own = [me, me + 10];
                let mut all = vec![-1; 2 * size as usize];
                let (from, into) = (data(&own), room(&mut all));
                coll::gather(process, from.ints(2), into.ints(2), root, WORLD).unwrap();
                let gathered: Vec<i32> = (0..n).flat_map(|rank| [rank, rank + 10]).collect();
                assert!(me != root || all == gathered);
                let (from, into) = (data(&own), room(&mut all));
                coll::allgather(process, from.ints(2), into.ints(2), WORLD).unwrap();
                assert_eq!(all, gathered);
                // In place: the own block is in its place already.
                let mut all = vec![-1; 2 * size as usize];
                all[2 * me as usize..][..2].copy_from_slice(&own);
                let into = room(&mut all);
                coll::allgather(process, in_place().ints(0), into.ints(2), WORLD).unwrap();
                assert_eq!(all, gathered);

                let mut part = [0; 2];
                let (from, into) = (data(&gathered), room(&mut part));
                coll::scatter(process, from.ints(2), into.ints(2), 0, WORLD).unwrap();
                assert_eq!(part, own);

                let out: Vec<i32> = (0..n).map(|to| 100 * me + to).collect();
                let mut into = vec![0; size as usize];
                let room_of = room(&mut into);
                coll::alltoall(process, data(&out).ints(1), room_of.ints(1), WORLD).unwrap();
                let expected: Vec<i32> = (0..n).map(|from| 100 * from + me).collect();
                assert_eq!(into, expected);
                let mut both = out.clone();
                let room_of = room(&mut both);
                coll::alltoall(process, in_place().ints(0), room_of.ints(1), WORLD).unwrap();
                assert_eq!(both, expected);
            }
        });
    }
}

/// Member n has n + 1 elements; blocks lie in the reverse order, with a gap between them.
#[test]
fn blocks_have_lengths_and_places() {
    for size in SIZES {
        ranks(size, |process, me| {
            let n = size as i32;
            let lengths: Vec<i32> = (1..=n).collect();
            let places: Vec<i32> = (0..n).map(|rank| (n - 1 - rank) * (n + 2)).collect();
            let own = vec![f64::from(me); me as usize + 1];
            let room_of = || vec![-1.0; (n * (n + 2)) as usize];
            let is_right = |all: &[f64]| {
                let mut expected = room_of();
                for rank in 0..n {
                    let start = places[rank as usize] as usize;
                    expected[start..=start + rank as usize].fill(f64::from(rank));
                }
                assert_eq!(all, expected);
            };
            let (count, from) = (i64::from(me) + 1, data(&own));
            let (lengths_of, places_of) = (counts(&lengths), counts(&places));
            let mut all = room_of();
            let into = room(&mut all);
            coll::allgatherv(
                process,
                from.of(count, DOUBLE),
                into,
                lengths_of,
                places_of,
                DOUBLE,
                WORLD,
            )
            .unwrap();
            is_right(&all);
            let mut gathered = room_of();
            let (into, mut request) = (room(&mut gathered), Request::NULL);
            let requested = result(&mut request);
            coll::igatherv(
                process,
                from.of(count, DOUBLE),
                into,
                lengths_of,
                places_of,
                DOUBLE,
                0,
                WORLD,
                requested,
            )
            .unwrap();
            wait(process, &mut request);
            if me == 0 {
                is_right(&gathered);
            } else {
                assert_eq!(gathered, room_of());
            }
            let mut part = vec![0.0; own.len()];
            let (from, into) = (data(&all), room(&mut part));
            coll::scatterv(
                process,
                from,
                lengths_of,
                places_of,
                DOUBLE,
                into.of(count, DOUBLE),
                n - 1,
                WORLD,
            )
            .unwrap();
            assert_eq!(part, own);

            // From a to b go a + b doubles, as bytes on the way in.
            let to: Vec<i32> = (0..n).map(|other| me + other).collect();
            let starts = |lengths: &[i32]| {
                let sums = lengths.iter().scan(0, |sum, length| {
                    let start = *sum;
                    *sum += length;
                    Some(start)
                });
                sums.collect::<Vec<_>>()
            };
            let total: i32 = to.iter().sum();
            let out = vec![f64::from(me); total as usize];
            let mut into = vec![-1.0; total as usize];
            let bytes: Vec<i32> = to.iter().map(|length| 8 * length).collect();
            let (at, at_bytes) = (starts(&to), starts(&bytes));
            let (into_types, out_types) = (vec![BYTE; n as usize], vec![DOUBLE; n as usize]);
            let room_of = room(&mut into);
            coll::alltoallw(
                process,
                data(&out),
                counts(&to),
                counts(&at_bytes),
                list(&out_types),
                room_of,
                counts(&bytes),
                counts(&at_bytes),
                list(&into_types),
                WORLD,
            )
            .unwrap();
            let expected: Vec<f64> = (0..n)
                .flat_map(|from| vec![f64::from(from); (from + me) as usize])
                .collect();
            assert_eq!(into, expected);
            into.fill(0.0);
            let room_of = room(&mut into);
            let (out, to, at) = (data(&out), counts(&to), counts(&at));
            coll::alltoallv(process, out, to, at, DOUBLE, room_of, to, at, DOUBLE, WORLD).unwrap();
            assert_eq!(into, expected);
        });
    }
}

/// Equal blocks follow each other; others have gaps between them, in the reverse order.
#[test]
fn data_may_be_in_place() {
    for size in SIZES {
        ranks(size, |process, me| {
            let (n, root) = (size as i32, size as i32 / 2);
            let ones = vec![1; size as usize];
            let places: Vec<i32> = (0..n).map(|rank| 2 * (n - 1 - rank)).collect();
            let bytes: Vec<i32> = places.iter().map(|place| 4 * place).collect();
            let (ones, places_of, bytes) = (counts(&ones), counts(&places), counts(&bytes));
            let apart = |value: fn(i32, i32) -> i32| {
                let mut all = vec![-1; 2 * size as usize];
                (0..n).for_each(|rank| all[places[rank as usize] as usize] = value(me, rank));
                all
            };
            let own = [me + 7];
            // What a member gives, or the root, whose block is in place.
            let from = match me == root {
                true => in_place(),
                false => data(&own),
            };

            let mut all: Vec<i32> = (0..n)
                .map(|rank| if rank == me { me + 7 } else { 0 })
                .collect();
            let (into, mut request) = (room(&mut all), Request::NULL);
            let requested = result(&mut request);
            coll::igather(process, from.ints(1), into.ints(1), root, WORLD, requested).unwrap();
            wait(process, &mut request);
            assert!(me != root || all == (7..n + 7).collect::<Vec<_>>());
            let mut all = apart(|me, rank| if rank == me { me + 7 } else { 0 });
            let into = room(&mut all);
            coll::gatherv(
                process,
                from.ints(1),
                into,
                ones,
                places_of,
                INT,
                root,
                WORLD,
            )
            .unwrap();
            assert!(me != root || all == apart(|_, rank| rank + 7));
            let mut all = apart(|me, rank| if rank == me { me + 7 } else { 0 });
            let (none, into) = (in_place().ints(0), room(&mut all));
            coll::allgatherv(process, none, into, ones, places_of, INT, WORLD).unwrap();
            assert_eq!(all, apart(|_, rank| rank + 7));

            let (all, mut part) = ((0..n).collect::<Vec<_>>(), [-5]);
            let into = match me == root {
                true => Out::from(in_place()),
                false => room(&mut part),
            };
            coll::scatter(process, data(&all).ints(1), into.ints(1), root, WORLD).unwrap();
            assert_eq!(part, [if me == root { -5 } else { me }]);
            let all = apart(|_, rank| 3 * rank);
            let from = data(&all);
            coll::scatterv(
                process,
                from,
                ones,
                places_of,
                INT,
                into.ints(1),
                root,
                WORLD,
            )
            .unwrap();
            assert_eq!(part, [if me == root { -5 } else { 3 * me }]);

            let (nobody, expected) = (counts(&[]), apart(|me, rank| 10 * rank + me));
            let mut all = apart(|me, rank| 10 * me + rank);
            let (none, into) = (in_place(), room(&mut all));
            coll::alltoallv(
                process, none, nobody, nobody, INT, into, ones, places_of, INT, WORLD,
            )
            .unwrap();
            assert_eq!(all, expected);
            let (mut all, types) = (apart(|me, rank| 10 * me + rank), vec![INT; size as usize]);
            let (types, into) = (list(&types), room(&mut all));
            let mut request = Request::NULL;
            let requested = result(&mut request);
            coll::ialltoallw(
                process, none, nobody, nobody, types, into, ones, bytes, types, WORLD, requested,
            )
            .unwrap();
            wait(process, &mut request);
            assert_eq!(all, expected);
        });
    }
}

#[test]
fn reductions_combine_in_all_forms() {
    for size in SIZES {
        ranks(size, |process, me| {
            let n = size as i32;
            let all: i32 = (1..=n).sum();
            let own = [me + 1, 10 * (me + 1)];
            for _round in 0..6 {
                let mut out = [0; 2];
                let into = room(&mut out);
                coll::allreduce(process, data(&own), into.ints(2), SUM, WORLD).unwrap();
                assert_eq!(out, [all, 10 * all]);
                let mut out = own;
                let into = room(&mut out);
                coll::allreduce(process, in_place(), into.ints(2), SUM, WORLD).unwrap();
                assert_eq!(out, [all, 10 * all]);
                let mut out = [0; 2];
                let into = room(&mut out);
                coll::reduce(process, data(&own), into.ints(2), SUM, n - 1, WORLD).unwrap();
                assert_eq!(out, if me == n - 1 { [all, 10 * all] } else { [0; 2] });
                let mut out = [0; 2];
                let into = room(&mut out);
                coll::scan(process, data(&own), into.ints(2), SUM, WORLD).unwrap();
                assert_eq!(out[0], (1..=me + 1).sum());
                let mut out = own;
                let into = room(&mut out);
                coll::exscan(process, in_place(), into.ints(2), SUM, WORLD).unwrap();
                assert!(me == 0 || out[0] == (1..=me).sum());
            }
            let lengths: Vec<i32> = (0..n).map(|rank| 1 + rank % 2).collect();
            let total: i32 = lengths.iter().sum();
            let input: Vec<i32> = (0..total).map(|place| place * (me + 1)).collect();
            let start: i32 = lengths[..me as usize].iter().sum();
            let end = start + lengths[me as usize];
            let expected: Vec<i32> = (start..end).map(|place| place * all).collect();
            let mut out = vec![0; expected.len()];
            let (from, into) = (data(&input), room(&mut out));
            coll::reduce_scatter(process, from, into, counts(&lengths), INT, SUM, WORLD).unwrap();
            assert_eq!(out, expected);
            let mut both = input.clone();
            let into = room(&mut both);
            coll::reduce_scatter(process, in_place(), into, counts(&lengths), INT, SUM, WORLD)
                .unwrap();
            assert_eq!(both[..expected.len()], expected);

            // Three at once, which end in any order.
            let mut outs = [[0; 2]; 3];
            let mut requests = [Request::NULL; 3];
            for (out, request) in outs.iter_mut().zip(&mut requests) {
                let (into, request) = (room(out), result(request));
                coll::iallreduce(process, data(&own), into.ints(2), SUM, WORLD, request).unwrap();
            }
            for request in requests.iter_mut().rev() {
                wait(process, request);
            }
            assert_eq!(outs, [[all, 10 * all]; 3]);

            let mut out = [0; 2];
            let mut request = Request::NULL;
            let (into, requested) = (room(&mut out), result(&mut request));
            coll::allreduce_init(
                process,
                data(&own),
                into.ints(2),
                SUM,
                WORLD,
                Info::NULL,
                requested,
            )
            .unwrap();
            let seen = std::ptr::from_ref(&out);
            twice(process, request, || {
                // SAFETY: the operation has ended.
                assert_eq!(unsafe { seen.read() }, [all, 10 * all]);
            });
        });
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
#[repr(C)]
struct Located {
    value: f64,
    place: i32,
}

static CALLED: AtomicUsize = AtomicUsize::new(0);

/// x -> a x + b, composed: depends on the order.
unsafe extern "C-unwind" fn compose(
    left: *mut c_void,
    into: *mut c_void,
    length: *mut i32,
    datatype: *mut Datatype,
) {
    CALLED.fetch_add(1, Relaxed);
    // SAFETY: the library gives as many pairs.
    unsafe {
        assert!((*datatype).0 >= 4096);
        let (left, into): (*mut [i64; 2], *mut [i64; 2]) = (left.cast(), into.cast());
        for place in 0..*length as usize {
            let ([a, b], [c, d]) = (*left.add(place), *into.add(place));
            *into.add(place) = [a.wrapping_mul(c), a.wrapping_mul(d).wrapping_add(b)];
        }
    }
}

#[test]
fn pairs_and_users_operations_combine() {
    for size in SIZES {
        ranks(size, |process, me| {
            let own = [(); 3].map(|()| Located {
                value: f64::from(-me),
                place: me,
            });
            let mut least = [Located {
                value: 9.0,
                place: 9,
            }; 3];
            let (from, into, minloc) = (data(&own), room(&mut least), Op(0x38));
            coll::allreduce(process, from, into.of(3, DOUBLE_INT), minloc, WORLD).unwrap();
            let last = size as i32 - 1;
            assert_eq!(
                least,
                [Located {
                    value: f64::from(-last),
                    place: last
                }; 3]
            );

            let (mut op, mut pair) = (Op::NULL, Datatype::NULL);
            let function = Reduction::Int(Some(compose));
            operations::op_create(process, function, 0, result(&mut op)).unwrap();
            let long = Datatype(0x20a);
            datatypes::type_contiguous(process, Twin::Int, 2, long, result(&mut pair)).unwrap();
            datatypes::type_commit(process, result(&mut pair)).unwrap();
            let given = |rank: i32| [i64::from(rank) + 2, i64::from(rank) * 7 + 1];
            let mut expected = given(0);
            for rank in 1..size as i32 {
                let ([a, b], [c, d]) = (expected, given(rank));
                expected = [a * c, a * d + b];
            }
            let (own, mut out) = ([given(me); 4], [[0; 2]; 4]);
            let (from, into) = (data(&own), room(&mut out));
            coll::allreduce(process, from, into.of(4, pair), op, WORLD).unwrap();
            assert_eq!(out, [expected; 4]);
            let mut out = [[0; 2]; 4];
            let into = room(&mut out);
            coll::reduce(process, from, into.of(4, pair), op, last, WORLD).unwrap();
            assert!(me != last || out == [expected; 4]);
            operations::op_free(process, result(&mut op)).unwrap();
            assert_eq!(op, Op::NULL);
            let into = room(&mut out);
            let refused = coll::allreduce(process, from, into.of(4, pair), op, WORLD);
            assert_eq!(refused.unwrap_err().code(), Class::Op as i32);
        });
    }
    assert!(CALLED.load(Relaxed) > 0);
}

/// Columns of a matrix are gathered as columns of a wider one.
#[test]
fn types_with_gaps_are_gathered() {
    ranks(3, |process, me| {
        const ROWS: usize = 50;
        let mut column = Datatype::NULL;
        datatypes::type_vector(
            process,
            Twin::Int,
            ROWS as i64,
            1,
            3,
            INT,
            result(&mut column),
        )
        .unwrap();
        let mut narrow = Datatype::NULL;
        datatypes::type_create_resized(process, Twin::Int, column, 0, 4, result(&mut narrow))
            .unwrap();
        datatypes::type_commit(process, result(&mut narrow)).unwrap();
        let own: Vec<i32> = (0..ROWS as i32).map(|row| 10 * row + me).collect();
        let mut all = vec![-1; 3 * ROWS];
        for _round in 0..6 {
            all.fill(-1);
            let (from, into) = (data(&own), room(&mut all));
            coll::allgather(process, from.ints(ROWS as i64), into.of(1, narrow), WORLD).unwrap();
            for (place, value) in all.iter().enumerate() {
                assert_eq!(*value, 10 * (place / 3) as i32 + (place % 3) as i32);
            }
        }
        let mut request = Request::NULL;
        all.fill(-1);
        let (from, into, requested) = (data(&own), room(&mut all), result(&mut request));
        coll::iallgather(
            process,
            from.ints(ROWS as i64),
            into.of(1, narrow),
            WORLD,
            requested,
        )
        .unwrap();
        wait(process, &mut request);
        assert_eq!(all[5], 12);
    });
}

/// What means something at one rank alone may be null at others, and stays as it is.
#[test]
fn rooms_that_mean_nothing_are_not_looked_at() {
    ranks(3, |process, me| {
        let (own, mut out) = ([me + 1], [-1]);
        let into = if me == 1 {
            room(&mut out)
        } else {
            common::nowhere()
        };
        coll::reduce(process, data(&own), into.ints(1), SUM, 1, WORLD).unwrap();
        assert!(me != 1 || out == [6]);
        out = [-1];
        let into = room(&mut out);
        coll::exscan(process, data(&own), into.ints(1), SUM, WORLD).unwrap();
        assert_eq!(out, [[-1], [1], [3]][me as usize]);
        let into = if me == 0 {
            common::nowhere()
        } else {
            room(&mut out)
        };
        coll::exscan(process, data(&own), into.ints(1), SUM, WORLD).unwrap();
    });
}

/// Where it is not allowed, and where it is no buffer.
#[test]
fn in_place_is_refused_where_it_means_nothing() {
    ranks(2, |process, me| {
        let mut values = [1, 2];
        let into = room(&mut values);
        if me == 1 {
            let refused = coll::reduce(process, in_place(), into.ints(2), SUM, 0, WORLD);
            assert_eq!(refused.unwrap_err().code(), Class::Buffer as i32);
            let refused = coll::gather(process, in_place().ints(2), into.ints(2), 0, WORLD);
            assert_eq!(refused.unwrap_err().code(), Class::Buffer as i32);
        }
        let root = coll::bcast(process, into.ints(2), 2, WORLD);
        assert_eq!(root.unwrap_err().code(), Class::Root as i32);
        coll::barrier(process, WORLD).unwrap();
    });
}

#[test]
fn groups_are_split_and_compared() {
    use tagwire_shim::abi::Group;
    use tagwire_shim::call::groups;
    ranks(4, |process, me| {
        let (mut half, mut copy) = (Comm::NULL, Comm::NULL);
        communicators::comm_split(process, WORLD, me % 2, 0, result(&mut half)).unwrap();
        communicators::comm_dup(process, half, result(&mut copy)).unwrap();
        let mut sum = [0];
        let into = room(&mut sum);
        coll::allreduce(process, data(&[me]), into.ints(1), SUM, copy).unwrap();
        assert_eq!(sum, [2 + 2 * (me % 2)]);
        let mut compared = 0;
        communicators::comm_compare(process, half, copy, result(&mut compared)).unwrap();
        assert_eq!(compared, 202, "congruent");
        communicators::comm_compare(process, WORLD, copy, result(&mut compared)).unwrap();
        assert_eq!(compared, 204, "unequal");
        let mut none = Comm::NULL;
        let undefined = tagwire_shim::abi::UNDEFINED;
        communicators::comm_split(process, WORLD, undefined, 0, result(&mut none)).unwrap();
        assert_eq!(none, Comm::NULL);
        let (mut all, mut outer) = (Group::NULL, Group::NULL);
        groups::comm_group(process, WORLD, result(&mut all)).unwrap();
        let picked = list(&[3, 0]);
        groups::group_incl(process, all, 2, picked, result(&mut outer)).unwrap();
        let mut made = Comm::NULL;
        communicators::comm_create(process, WORLD, outer, result(&mut made)).unwrap();
        assert_eq!(made == Comm::NULL, me == 1 || me == 2);
        if made != Comm::NULL {
            let mut rank = -1;
            communicators::comm_rank(process, made, result(&mut rank)).unwrap();
            assert_eq!(rank, i32::from(me == 0));
            coll::barrier(process, made).unwrap();
        }
        for comm in [&mut half, &mut copy] {
            communicators::comm_free(process, result(comm)).unwrap();
        }
    });
}

/// Memory that is read and written at once is no input, but for `MPI_IN_PLACE`.
#[test]
fn the_same_memory_is_not_read_and_written() {
    ranks(2, |process, me| {
        let mut values = [1, 2, 3, 4];
        let (from, into) = (data(&values), room(&mut values));
        let own = data(&values[me as usize..]);
        let class = |done: tagwire_shim::Result| done.unwrap_err().code();
        let refused = [
            coll::allreduce(process, from, into.ints(2), SUM, WORLD),
            coll::scan(process, from, into.ints(2), SUM, WORLD),
            coll::exscan(process, from, into.ints(2), SUM, WORLD),
            coll::reduce_local(process, from, into.ints(2), SUM),
            coll::reduce_scatter_block(process, from, into.ints(1), SUM, WORLD),
            coll::allgather(process, own.ints(1), into.ints(1), WORLD),
            coll::alltoall(process, from.ints(1), into.ints(1), WORLD),
        ];
        for (number, done) in refused.into_iter().enumerate() {
            assert_eq!(class(done), Class::Buffer as i32, "{number}");
        }
        // Blocks in another order than their places.
        let (one, places) = (counts(&[1, 1]), counts(&[1, 0]));
        let swapped = coll::alltoallv(
            process, from, one, places, INT, into, one, places, INT, WORLD,
        );
        assert_eq!(class(swapped), Class::Buffer as i32);
        if me == 0 {
            for done in [
                coll::reduce(process, from, into.ints(2), SUM, 0, WORLD),
                coll::gather(process, from.ints(1), into.ints(1), 0, WORLD),
                coll::scatter(process, from.ints(1), into.ints(1), 0, WORLD),
            ] {
                assert_eq!(class(done), Class::Buffer as i32);
            }
        }
        // Nothing was begun, and halves of the same array are no such memory.
        let (half, other) = values.split_at_mut(2);
        let (from, into) = (data(half), room(other));
        coll::allreduce(process, from, into.ints(2), SUM, WORLD).unwrap();
        assert_eq!(values, [1, 2, 2, 4]);
    });
}
