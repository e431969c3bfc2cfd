//! Accumulates: every predefined operation on every kind of type, in place and not, and their atomicity.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod common;

use common::windows::{ALL, Ints, Made, SHARED, window};
use common::{INT, barrier, code, data, ignore, one_sided, ranks, result, room};
use tagwire_layout::{Basic, Layout, Operation};
use tagwire_shim::abi::{Datatype, Op, PROC_NULL, Request};
use tagwire_shim::call::windows::{accumulates, transfers};
use tagwire_shim::call::{complete, datatypes};
use tagwire_shim::error::Class;
use tagwire_shim::raw::{Elements, In, Out, Place, Twin};

/// Predefined datatypes of all kinds: those with instructions and without, pairs with padding and without.
const TYPES: &[(usize, Basic)] = &[
    (0x240, Basic::I8),
    (0x241, Basic::U8),
    (0x247, Basic::Byte),
    (0x248, Basic::I16),
    (0x209, Basic::I32),
    (0x251, Basic::U32),
    (0x258, Basic::I64),
    (0x20f, Basic::U64),
    (0x20a, Basic::Long),
    (0x210, Basic::F32),
    (0x214, Basic::F64),
    (0x212, Basic::Complex32),
    (0x216, Basic::Complex64),
    (0x238, Basic::Bool),
    (0x2d0, Basic::Logical32),
    (0x22b, Basic::TwoInt),
    (0x228, Basic::F32Int),
    (0x229, Basic::F64Int),
    (0x22c, Basic::ShortInt),
    (0x22a, Basic::LongInt),
];

/// The handles of the operations in `Operation::PREDEFINED`, in their order.
const OPS: [usize; 14] = [
    0x21, 0x24, 0x22, 0x23, 0x30, 0x31, 0x32, 0x28, 0x29, 0x2a, 0x38, 0x39, 0x3c, 0x3d,
];

/// Returns a value of a type as it lies in memory, with zeros for padding.
fn value(basic: Basic, number: u8) -> Vec<u8> {
    let (small, wide) = (f32::from(number), f64::from(number));
    let mut bytes = match basic {
        Basic::F32 => small.to_ne_bytes().to_vec(),
        Basic::F64 => wide.to_ne_bytes().to_vec(),
        Basic::Complex32 => [small.to_ne_bytes(), 1_f32.to_ne_bytes()].concat(),
        Basic::Complex64 => [wide.to_ne_bytes(), 1_f64.to_ne_bytes()].concat(),
        Basic::F32Int => [small.to_ne_bytes(), 3_i32.to_ne_bytes()].concat(),
        Basic::F64Int => [&wide.to_ne_bytes()[..], &3_i32.to_ne_bytes()].concat(),
        Basic::ShortInt => {
            let value = i16::from(number).to_ne_bytes();
            [&value[..], &[0, 0], &3_i32.to_ne_bytes()].concat()
        }
        Basic::Bool => vec![number % 2],
        // Of little-endian machines.
        _ => vec![number],
    };
    bytes.resize(basic.extent(), 0);
    bytes
}

fn values(basic: Basic, from: u8, count: usize) -> Vec<u8> {
    let numbers = (0..count).map(|place| from + (place % 7) as u8);
    numbers.flat_map(|number| value(basic, number)).collect()
}

/// Returns the data of values, without their padding.
fn without_padding(basic: Basic, bytes: &[u8]) -> Vec<u8> {
    let value = |value: &[u8]| match basic {
        Basic::ShortInt => [&value[..2], &value[4..8]].concat(),
        _ => value[..basic.size()].to_vec(),
    };
    bytes.chunks_exact(basic.extent()).flat_map(value).collect()
}

fn bytes_at(window: &Ints, rank: i32, count: i64, datatype: Datatype) -> Place {
    window.elements(rank, 0, count, datatype)
}

/// Each operation on each type, of few values and of many, is what the kernels make of them; what was there is returned.
#[test]
fn each_operation_does_what_it_does_in_reductions() {
    const BYTES: usize = 40 * 16;
    ranks(2, |process, me| {
        for made in [Made::Created, Made::Allocated] {
            let window = window(process, made, BYTES / 4);
            for (handle, basic) in TYPES {
                for (op, operation) in OPS.iter().zip(&Operation::PREDEFINED) {
                    for count in [1, 5, 40] {
                        let (datatype, op) = (Datatype(*handle), Op(*op));
                        let first = values(*basic, 2, count);
                        let second = values(*basic, 4, count);
                        window.fence().unwrap();
                        if me == 0 {
                            let origin = data(&first).of(count as i64, datatype);
                            let place = bytes_at(&window, 1, count as i64, datatype);
                            one_sided::put(process, origin, place, window.win).unwrap();
                        }
                        window.fence().unwrap();
                        let mut old = vec![9_u8; first.len()];
                        let layout = Layout::of(*basic);
                        let is_defined = operation.check(&layout).is_ok();
                        if me == 0 {
                            let origin = data(&second).of(count as i64, datatype);
                            let into = room(&mut old).of(count as i64, datatype);
                            let place = bytes_at(&window, 1, count as i64, datatype);
                            let win = window.win;
                            let done =
                                one_sided::get_accumulate(process, origin, into, place, op, win);
                            match is_defined {
                                true => done.unwrap(),
                                false => assert_eq!(code(done), Class::Op),
                            }
                        }
                        window.fence().unwrap();
                        let mut wanted = first.clone();
                        if is_defined {
                            operation
                                .combine_right(&layout, &mut wanted, &second)
                                .unwrap();
                        }
                        if me == 0 && is_defined {
                            let got = without_padding(*basic, &old);
                            let before = without_padding(*basic, &first);
                            assert_eq!(got, before, "{operation:?} of {basic:?}");
                        }
                        if me == 1 {
                            let own: Vec<u8> = window
                                .own(first.len().div_ceil(4))
                                .into_iter()
                                .flat_map(i32::to_ne_bytes)
                                .take(first.len())
                                .collect();
                            let got = without_padding(*basic, &own);
                            let wanted = without_padding(*basic, &wanted);
                            assert_eq!(got, wanted, "{count} {operation:?} of {basic:?}, {made:?}");
                        }
                    }
                }
            }
            window.fence().unwrap();
            window.free().unwrap();
        }
    });
}

/// The bytes between the parts of pairs, and behind the last of them, are the program's.
#[test]
fn padding_of_pairs_is_not_written() {
    const MAXLOC: Op = Op(0x39);
    const MARKED: u8 = 0xee;
    let pairs = [
        (0x22c, Basic::ShortInt),
        (0x229, Basic::F64Int),
        (0x22a, Basic::LongInt),
    ];
    ranks(2, |process, me| {
        for (made, target) in ALL.into_iter().flat_map(|made| [(made, 0), (made, 1)]) {
            let window = window(process, made, 16);
            for (handle, basic) in pairs {
                let (datatype, layout) = (Datatype(handle), Layout::of(basic));
                let (first, second) = (values(basic, 2, 3), values(basic, 4, 3));
                window.fence().unwrap();
                if me == target {
                    let marked = [i32::from_ne_bytes([MARKED; 4]); 16];
                    window.put(&marked, me, 0).unwrap();
                }
                window.fence().unwrap();
                let place = bytes_at(&window, target, 3, datatype);
                if me == 0 {
                    let origin = data(&first).of(3, datatype);
                    one_sided::put(process, origin, place, window.win).unwrap();
                }
                window.fence().unwrap();
                if me == 0 {
                    let origin = data(&second).of(3, datatype);
                    one_sided::accumulate(process, origin, place, MAXLOC, window.win).unwrap();
                }
                window.fence().unwrap();
                if me == target {
                    let mut wanted = first.clone();
                    let maxloc = Operation::MaxLoc;
                    maxloc.combine_right(&layout, &mut wanted, &second).unwrap();
                    let is_padding = |at: usize| match basic {
                        Basic::ShortInt => matches!(at % 8, 2 | 3),
                        _ => at % 16 >= 12,
                    };
                    for (at, byte) in wanted.iter_mut().enumerate() {
                        if is_padding(at) {
                            *byte = MARKED;
                        }
                    }
                    wanted.resize(64, MARKED);
                    let own = window.own(16).into_iter();
                    let own: Vec<u8> = own.flat_map(i32::to_ne_bytes).collect();
                    assert_eq!(own, wanted, "{basic:?}, {made:?}, at {target}");
                }
            }
            window.fence().unwrap();
            window.free().unwrap();
        }
    });
}

/// Single values and many, by all ranks at once: no change is lost.
#[test]
fn changes_of_one_value_by_all_ranks_are_atomic() {
    for size in [1, 2, 4] {
        ranks(size, |process, me| {
            for made in ALL {
                let window = window(process, made, 40);
                window.lock_all().unwrap();
                let (ones, mut seen) = ([1_i32; 40], Vec::new());
                for round in 0..60 {
                    let mut old = -1;
                    window.fetch_add(&mut old, 0, 3).unwrap();
                    window.flush(0).unwrap();
                    seen.push(old);
                    if round % 3 == me % 3 {
                        window.add(&ones, 0, 0).unwrap();
                    }
                }
                window.unlock_all().unwrap();
                assert!(seen.is_sorted(), "the order of one origin");
                barrier(process);
                window.lock(SHARED, 0).unwrap();
                let mut all = [0; 40];
                window.get(&mut all, 0, 0).unwrap();
                window.unlock(0).unwrap();
                assert_eq!(all[3], 80 * size as i32, "{made:?}");
                assert_eq!(all[39], 20 * size as i32, "{made:?}");
                barrier(process);
                window.free().unwrap();
            }
        });
    }
}

/// The first accumulate of many values in a window finds others at single ones.
#[test]
fn the_first_long_accumulate_waits_for_changes_of_one_value() {
    const ONES: i32 = 2_000;
    ranks(2, |process, me| {
        for round in 0..40 {
            let window = window(process, Made::Allocated, 64);
            window.lock_all().unwrap();
            barrier(process);
            match me {
                0 => {
                    for _ in 0..ONES {
                        window.add(&[1], 0, 3).unwrap();
                    }
                }
                _ => {
                    // At another time in each round.
                    for _ in 0..round * 10 {
                        window.add(&[1], 0, 5).unwrap();
                    }
                    for _ in 0..4 {
                        window.add(&[1; 40], 0, 0).unwrap();
                    }
                }
            }
            window.flush(0).unwrap();
            barrier(process);
            let mut all = [0; 40];
            window.get(&mut all, 0, 0).unwrap();
            window.flush(0).unwrap();
            let wanted = (ONES + 4, 4 + round * 10, 4);
            assert_eq!((all[3], all[5], all[39]), wanted, "{round}");
            window.unlock_all().unwrap();
            barrier(process);
            window.free().unwrap();
        }
    });
}

/// More values than are changed at a time.
#[test]
fn long_accumulates_are_whole() {
    const COUNT: usize = 100_000;
    ranks(2, |process, me| {
        for made in ALL {
            let window = window(process, made, COUNT);
            let numbers: Vec<i32> = (0..COUNT as i32).collect();
            let mut old = vec![-1_i32; COUNT - 1];
            window.lock_all().unwrap();
            window.add(&numbers, 0, 0).unwrap();
            window.flush(0).unwrap();
            barrier(process);
            if me == 1 {
                let count = COUNT as i64 - 1;
                let (one, into) = (data(&numbers).of(count, INT), room(&mut old).of(count, INT));
                let (place, win) = (window.place(0, 1, count), window.win);
                one_sided::get_accumulate(process, one, into, place, common::SUM, win).unwrap();
                window.flush(0).unwrap();
                let mut got = vec![0_i32; COUNT];
                window.get(&mut got, 0, 0).unwrap();
                window.flush(0).unwrap();
                for place in 1..COUNT {
                    let number = place as i32;
                    assert_eq!(old[place - 1], 2 * number, "{made:?}");
                    assert_eq!(got[place], 3 * number - 1, "{made:?}");
                }
                assert_eq!(got[0], 0);
            }
            window.unlock_all().unwrap();
            barrier(process);
            window.free().unwrap();
        }
    });
}

fn swap(window: &Ints, compare: i32, new: i32, rank: i32) -> tagwire_shim::Result<i32> {
    let (mut old, place) = (-7, window.place(rank, 0, 1));
    let values = [compare, new];
    one_sided::compare_and_swap(
        &window.process,
        data(&values[1..]),
        data(&values),
        room(std::slice::from_mut(&mut old)),
        INT,
        rank,
        place.displacement,
        window.win,
    )?;
    window.flush(rank)?;
    Ok(old)
}

#[test]
fn compare_and_swap_counts() {
    for size in [2, 4] {
        ranks(size, |process, _| {
            for made in ALL {
                let window = window(process, made, 1);
                window.lock_all().unwrap();
                let mut known = 0;
                for _ in 0..40 {
                    loop {
                        let found = swap(&window, known, known + 1, 0).unwrap();
                        if found == known {
                            known += 1;
                            break;
                        }
                        known = found;
                    }
                }
                barrier(process);
                assert_eq!(
                    swap(&window, -1, -1, 0).unwrap(),
                    40 * size as i32,
                    "{made:?}"
                );
                window.unlock_all().unwrap();
                barrier(process);
                window.free().unwrap();
            }
        });
    }
}

#[test]
fn operations_and_types_are_checked() {
    ranks(2, |process, me| {
        let window = window(process, Made::Allocated, 8);
        let win = window.win;
        window.fence().unwrap();
        let (one, mut old) = ([1.0_f64, 2.0], [0.0_f64]);
        let double = Datatype(0x214);
        let place = window.place(1 - me, 0, 1);
        let origin = data(&[1_i32]).of(1, INT);
        // An operation of the program is none of windows.
        let made = one_sided::accumulate(process, origin, place, Op(0x20), win);
        assert_eq!(code(made), Class::Op);
        let others = data(&one).of(1, double);
        let made = one_sided::accumulate(process, others, place, common::SUM, win);
        assert_eq!(code(made), Class::Truncate);
        let four = data(&[0_f32]).of(1, Datatype(0x210));
        let made = one_sided::accumulate(process, four, place, common::SUM, win);
        assert_eq!(code(made), Class::Type);
        let swapped = one_sided::compare_and_swap(
            process,
            data(&one),
            data(&one),
            room(&mut old),
            double,
            0,
            0,
            win,
        );
        assert_eq!(code(swapped), Class::Type);
        let mut pair = Datatype::NULL;
        datatypes::type_contiguous(process, Twin::Int, 2, INT, result(&mut pair)).unwrap();
        datatypes::type_commit(process, result(&mut pair)).unwrap();
        let (from, into) = (data(&one), room(&mut old));
        let fetched = one_sided::fetch_and_op(process, from, into, pair, 0, 0, common::SUM, win);
        assert_eq!(code(fetched), Class::Type);
        one_sided::fetch_and_op(process, from, into, INT, PROC_NULL, 0, common::SUM, win).unwrap();
        window.fence().unwrap();
        window.free().unwrap();
    });
}

/// Fewer values than the target has room for change its first; what is returned are all of the target, and may be fewer than the
/// result has room for.
#[test]
fn fewer_values_than_there_is_room_for_are_combined() {
    ranks(2, |process, me| {
        for made in ALL {
            let window = window(process, made, 16);
            let (win, by) = (window.win, [10_i32, 20, 30]);
            let from = |count: i64| -> Elements<In> { data(&by).of(count, INT) };
            let mut apart = Datatype::NULL;
            datatypes::type_vector(process, Twin::Int, 2, 1, 2, INT, result(&mut apart)).unwrap();
            datatypes::type_commit(process, result(&mut apart)).unwrap();
            window.fence().unwrap();
            if me == 0 {
                window.put(&[1, 2, 3, 4, 5, 6, 7, 8], 1, 0).unwrap();
            }
            window.fence().unwrap();
            let (mut old, mut all) = ([9_i32; 5], [9_i32; 4]);
            if me == 0 {
                let place = window.place(1, 0, 3);
                one_sided::accumulate(process, from(1), place, common::SUM, win).unwrap();
                // The second value at every second place, and the first of the next three.
                let place = window.elements(1, 2, 2, apart);
                one_sided::accumulate(process, from(3), place, common::SUM, win).unwrap();
                let (into, place) = (room(&mut old).of(5, INT), window.place(1, 0, 3));
                one_sided::get_accumulate(process, from(2), into, place, common::SUM, win).unwrap();
                let (into, place) = (room(&mut all).of(4, INT), window.place(1, 6, 2));
                let nothing = common::nowhere().read().of(0, INT);
                one_sided::get_accumulate(process, nothing, into, place, Op(0x3d), win).unwrap();
                let mut short = [9_i32; 1];
                let (into, place) = (room(&mut short).of(1, INT), window.place(1, 0, 2));
                let made =
                    one_sided::get_accumulate(process, from(1), into, place, common::SUM, win);
                assert_eq!(code(made), Class::Truncate);
            }
            window.fence().unwrap();
            if me == 0 {
                assert_eq!(old, [11, 2, 13, 9, 9], "{made:?}");
                assert_eq!(all, [7, 8, 9, 9], "{made:?}");
            } else {
                assert_eq!(window.own(8), [21, 22, 13, 4, 25, 36, 7, 8], "{made:?}");
            }
            window.fence().unwrap();
            window.free().unwrap();
        }
    });
}

/// Pairs with padding at every second place, from an origin where they lie side by side.
#[test]
fn derived_datatypes_are_combined_value_by_value() {
    ranks(2, |process, me| {
        for made in ALL {
            let window = window(process, made, 64);
            let pair = Datatype(0x229);
            let mut apart = Datatype::NULL;
            datatypes::type_vector(process, Twin::Int, 3, 1, 2, pair, result(&mut apart)).unwrap();
            datatypes::type_commit(process, result(&mut apart)).unwrap();
            let pairs = values(Basic::F64Int, 5, 3);
            window.fence().unwrap();
            if me == 0 {
                let origin: Elements<In> = data(&pairs).of(3, pair);
                let place = bytes_at(&window, 1, 1, apart);
                one_sided::accumulate(process, origin, place, Op(0x39), window.win).unwrap();
            }
            window.fence().unwrap();
            if me == 0 {
                let mut old = vec![0_u8; pairs.len()];
                let into: Elements<Out> = room(&mut old).of(3, pair);
                let place = bytes_at(&window, 1, 1, apart);
                let nothing = common::nowhere().read().of(0, INT);
                let win = window.win;
                one_sided::get_accumulate(process, nothing, into, place, Op(0x3d), win).unwrap();
                let got = without_padding(Basic::F64Int, &old);
                assert_eq!(got, without_padding(Basic::F64Int, &pairs), "{made:?}");
            }
            window.fence().unwrap();
            if me == 1 {
                // What lies between was not touched.
                let own = window.own(24);
                assert_eq!(own[4..8], [0; 4], "{made:?}");
            }
            window.fence().unwrap();
            window.free().unwrap();
        }
    });
}

#[test]
fn request_forms_have_ended_when_they_are_waited_for() {
    ranks(2, |process, me| {
        for made in ALL {
            let (window, to) = (window(process, made, 4), 1 - me);
            let (win, mut request) = (window.win, Request::NULL);
            let (values, mut got, mut old) = ([3_i32, 4], [0_i32; 2], [0_i32; 2]);
            window.lock_all().unwrap();
            let place = window.place(to, 1, 2);
            let origin = data(&values).of(2, INT);
            let wait = |request: &mut Request| {
                assert_ne!(*request, Request::NULL);
                complete::wait(process, result(request), ignore()).unwrap();
                assert_eq!(*request, Request::NULL);
            };
            transfers::rput(process, origin, place, win, result(&mut request)).unwrap();
            wait(&mut request);
            window.flush(to).unwrap();
            let asked = result(&mut request);
            accumulates::raccumulate(process, origin, place, common::SUM, win, asked).unwrap();
            wait(&mut request);
            window.flush(to).unwrap();
            let into = room(&mut old).of(2, INT);
            let asked = result(&mut request);
            accumulates::rget_accumulate(process, origin, into, place, common::SUM, win, asked)
                .unwrap();
            wait(&mut request);
            assert_eq!(old, [6, 8], "{made:?}");
            let into = room(&mut got).of(2, INT);
            transfers::rget(process, into, place, win, result(&mut request)).unwrap();
            wait(&mut request);
            assert_eq!(got, [9, 12], "{made:?}");
            window.unlock_all().unwrap();
            barrier(process);
            window.free().unwrap();
        }
    });
}
