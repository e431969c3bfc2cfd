//! Reductions by users' operations on datatypes that lie in memory as they like.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]
#![allow(unsafe_code)]

mod common;

use std::cell::RefCell;
use std::ffi::c_void;
use std::sync::Arc;

use common::{SUM, WORLD, counts, ignore, in_place, list, ranks, result};
use tagwire_shim::Process;
use tagwire_shim::abi::{Datatype, Info, Op, Request};
use tagwire_shim::call::{collectives as coll, complete, datatypes, operations};
use tagwire_shim::callbacks::Reduction;
use tagwire_shim::error::Class;
use tagwire_shim::raw::{In, Out, Twin};

const LONG: Datatype = Datatype(0x20a);

/// Where the two numbers of an element lie, from its address.
type Places = [isize; 2];

thread_local! {
    /// The rank of this thread, and the places of its datatype: for the function of the operation.
    static RANK: RefCell<Option<(Arc<Process>, Places)>> = const { RefCell::new(None) };
}

/// x -> a x + b, composed: depends on the order. Elements lie as the datatype says, which the function asks for.
unsafe extern "C-unwind" fn compose(
    left: *mut c_void,
    into: *mut c_void,
    length: *mut i32,
    datatype: *mut Datatype,
) {
    RANK.with_borrow(|rank| {
        let (process, places) = rank.as_ref().unwrap();
        // SAFETY: the library gives both.
        let (length, datatype) = unsafe { (*length, *datatype) };
        let extent = extent_of(process, datatype);
        for element in 0..length as isize {
            let at = |base: *mut c_void, place: usize| {
                let number = base.wrapping_byte_offset(element * extent + places[place]);
                assert!(number.addr().is_multiple_of(8), "as C aligns them");
                number.cast::<i64>()
            };
            // SAFETY: elements of the datatype have numbers there.
            unsafe {
                let (a, b) = (*at(left, 0), *at(left, 1));
                let (c, d) = (*at(into, 0), *at(into, 1));
                *at(into, 0) = a.wrapping_mul(c);
                *at(into, 1) = a.wrapping_mul(d).wrapping_add(b);
            }
        }
    });
}

/// The same for more elements than an `int` counts.
unsafe extern "C-unwind" fn compose_wide(
    left: *mut c_void,
    into: *mut c_void,
    length: *mut i64,
    datatype: *mut Datatype,
) {
    // SAFETY: the library gives it.
    let mut length = i32::try_from(unsafe { *length }).unwrap();
    // SAFETY: as above.
    unsafe { compose(left, into, &raw mut length, datatype) };
}

fn extent_of(process: &Process, datatype: Datatype) -> isize {
    let (mut lower, mut extent) = (0, 0);
    datatypes::type_get_extent(process, datatype, result(&mut lower), result(&mut extent)).unwrap();
    extent as isize
}

/// What every byte is that no element has.
const NOTHING: u8 = 0xee;

/// Memory for elements of a datatype.
struct Memory {
    bytes: Vec<u64>,
    extent: isize,
    places: Places,
    count: usize,
}

impl Memory {
    /// Far enough for all datatypes of this test in both directions.
    const MIDDLE: usize = 512;

    fn new(kind: &Shape, count: usize) -> Self {
        Self {
            bytes: vec![u64::from_ne_bytes([NOTHING; 8]); 2 * Self::MIDDLE],
            extent: kind.extent,
            places: kind.places,
            count,
        }
    }

    fn of(kind: &Shape, values: &[[i64; 2]]) -> Self {
        let mut memory = Self::new(kind, values.len());
        for (element, value) in values.iter().enumerate() {
            for (place, number) in value.iter().enumerate() {
                let word = memory.word(element, place);
                memory.bytes[word] = *number as u64;
            }
        }
        memory
    }

    fn clear(&mut self) {
        self.bytes.fill(u64::from_ne_bytes([NOTHING; 8]));
    }

    fn word(&self, element: usize, place: usize) -> usize {
        let bytes = element as isize * self.extent + self.places[place];
        (Self::MIDDLE as isize + bytes / 8) as usize
    }

    fn data(&self) -> In {
        // SAFETY: what the elements of the datatype are.
        unsafe { In::new(self.bytes[Self::MIDDLE..].as_ptr().cast()) }
    }

    fn room(&mut self) -> Out {
        let base = self.bytes.as_mut_ptr().wrapping_add(Self::MIDDLE);
        // SAFETY: as above.
        unsafe { Out::new(base.cast()) }
    }

    /// The elements are those, and nothing else was written.
    fn assert_is(&self, values: &[[i64; 2]], what: &str) {
        let mut expected = vec![u64::from_ne_bytes([NOTHING; 8]); 2 * Self::MIDDLE];
        for (element, value) in values.iter().enumerate() {
            for (place, number) in value.iter().enumerate() {
                expected[self.word(element, place)] = *number as u64;
            }
        }
        assert!(
            self.bytes == expected,
            "{what}: {:?}",
            (0..self.count)
                .map(|element| [0, 1].map(|place| self.bytes[self.word(element, place)] as i64))
                .collect::<Vec<_>>()
        );
    }
}

/// A datatype of two numbers.
struct Shape {
    places: Places,
    lower: i64,
    extent: isize,
}

const SHAPES: [Shape; 6] = [
    // A gap between them, and behind.
    Shape {
        places: [0, 16],
        lower: 0,
        extent: 40,
    },
    // The lower bound is before the data, or in it.
    Shape {
        places: [8, 24],
        lower: -16,
        extent: 48,
    },
    Shape {
        places: [64, 80],
        lower: 64,
        extent: 24,
    },
    // The second one first.
    Shape {
        places: [16, 0],
        lower: 0,
        extent: 24,
    },
    // Each element lies before the one before it.
    Shape {
        places: [-8, 8],
        lower: 0,
        extent: -32,
    },
    // Without gaps, but not at the address.
    Shape {
        places: [8, 16],
        lower: 8,
        extent: 16,
    },
];

impl Shape {
    fn make(&self, process: &Process) -> Datatype {
        let (mut pair, mut made) = (Datatype::NULL, Datatype::NULL);
        let at = self.places.map(|place| place as i64);
        let types = list(&[LONG, LONG]);
        let (blocks, at) = (counts(&[1, 1]), common::wide(&at));
        datatypes::type_create_struct(process, Twin::Int, 2, blocks, at, types, result(&mut pair))
            .unwrap();
        let extent = self.extent as i64;
        datatypes::type_create_resized(
            process,
            Twin::Int,
            pair,
            self.lower,
            extent,
            result(&mut made),
        )
        .unwrap();
        datatypes::type_free(process, result(&mut pair)).unwrap();
        datatypes::type_commit(process, result(&mut made)).unwrap();
        made
    }
}

/// What member `rank` has.
fn given(rank: i32, count: usize) -> Vec<[i64; 2]> {
    let (rank, elements) = (i64::from(rank), 0..count as i64);
    elements
        .map(|element| [rank + 2, rank * 7 + element + 1])
        .collect()
}

/// What those of some members are, one after the other.
fn composed(members: impl Iterator<Item = i32>, count: usize) -> Vec<[i64; 2]> {
    let of = members.map(|rank| given(rank, count));
    let both = |left: Vec<[i64; 2]>, right: Vec<[i64; 2]>| {
        let pairs = left.into_iter().zip(right);
        pairs
            .map(|([a, b], [c, d])| [a.wrapping_mul(c), a.wrapping_mul(d).wrapping_add(b)])
            .collect()
    };
    of.reduce(both).unwrap()
}

fn operation(process: &Process, is_wide: bool) -> Op {
    let mut op = Op::NULL;
    let function = match is_wide {
        true => Reduction::Big(Some(compose_wide)),
        false => Reduction::Int(Some(compose)),
    };
    operations::op_create(process, function, 0, result(&mut op)).unwrap();
    op
}

fn wait(process: &Process, request: &mut Request) {
    complete::wait(process, result(request), ignore()).unwrap();
}

const SIZES: [u32; 4] = [1, 2, 3, 5];

#[test]
fn datatypes_lie_as_they_like_in_every_reduction() {
    for size in SIZES {
        ranks(size, |process, me| {
            let n = size as i32;
            for (number, shape) in SHAPES.iter().enumerate() {
                let datatype = shape.make(process);
                RANK.set(Some((Arc::clone(process), shape.places)));
                let op = operation(process, number % 2 == 1);
                let mine = given(me, 4);
                let own = || Memory::of(shape, &mine);
                let (from, all) = (own(), composed(0..n, 4));
                let data = from.data();

                let mut out = Memory::new(shape, 4);
                coll::allreduce(process, data, out.room().of(4, datatype), op, WORLD).unwrap();
                out.assert_is(&all, "allreduce");
                let mut both = own();
                coll::allreduce(process, in_place(), both.room().of(4, datatype), op, WORLD)
                    .unwrap();
                both.assert_is(&all, "allreduce in place");

                let mut out = Memory::new(shape, 4);
                coll::reduce(process, data, out.room().of(4, datatype), op, n - 1, WORLD).unwrap();
                let expected = if me == n - 1 { &all[..] } else { &[] };
                out.assert_is(expected, "reduce");
                let mut both = own();
                let (from_of, into) = match me {
                    0 => (in_place(), both.room()),
                    _ => (data, common::nowhere()),
                };
                coll::reduce(process, from_of, into.of(4, datatype), op, 0, WORLD).unwrap();
                both.assert_is(if me == 0 { &all } else { &mine }, "reduce in place");

                let mut out = Memory::new(shape, 4);
                coll::scan(process, data, out.room().of(4, datatype), op, WORLD).unwrap();
                out.assert_is(&composed(0..me + 1, 4), "scan");
                let mut both = own();
                coll::scan(process, in_place(), both.room().of(4, datatype), op, WORLD).unwrap();
                both.assert_is(&composed(0..me + 1, 4), "scan in place");

                let mut out = Memory::new(shape, 4);
                coll::exscan(process, data, out.room().of(4, datatype), op, WORLD).unwrap();
                match me {
                    0 => out.assert_is(&[], "exscan"),
                    _ => out.assert_is(&composed(0..me, 4), "exscan"),
                }
                let mut both = own();
                coll::exscan(process, in_place(), both.room().of(4, datatype), op, WORLD).unwrap();
                if me > 0 {
                    both.assert_is(&composed(0..me, 4), "exscan in place");
                }
                from.assert_is(&mine, "input");
                operations::op_free(process, result(&mut { op })).unwrap();
            }
        });
    }
}

/// Each member gets its elements of the result; the first one none.
#[test]
fn results_are_scattered() {
    for size in SIZES {
        ranks(size, |process, me| {
            let n = size as i32;
            for shape in &SHAPES {
                let datatype = shape.make(process);
                RANK.set(Some((Arc::clone(process), shape.places)));
                let op = operation(process, false);
                let lengths: Vec<i32> = (0..n).collect();
                let total = lengths.iter().sum::<i32>() as usize;
                let from = Memory::of(shape, &given(me, total.max(1)));
                let all = composed(0..n, total.max(1));
                let start = lengths[..me as usize].iter().sum::<i32>() as usize;
                let own = &all[start..start + me as usize];

                let mut out = Memory::new(shape, me as usize);
                let (data, into, lengths) = (from.data(), out.room(), counts(&lengths));
                coll::reduce_scatter(process, data, into, lengths, datatype, op, WORLD).unwrap();
                out.assert_is(own, "reduce_scatter");

                let mut both = Memory::of(shape, &given(me, size as usize));
                let into = both.room();
                coll::reduce_scatter_block(process, in_place(), into.of(1, datatype), op, WORLD)
                    .unwrap();
                let mut expected = given(me, size as usize);
                expected[0] = composed(0..n, size as usize)[me as usize];
                both.assert_is(&expected, "reduce_scatter_block in place");
            }
        });
    }
}

/// The program has freed both when the function runs.
#[test]
fn datatypes_and_operations_may_be_freed_while_they_are_needed() {
    for size in SIZES {
        ranks(size, |process, me| {
            let n = size as i32;
            for shape in &SHAPES {
                let datatype = shape.make(process);
                RANK.set(Some((Arc::clone(process), shape.places)));
                let op = operation(process, false);
                let from = Memory::of(shape, &given(me, 3));
                let (mut once, mut again) = (Memory::new(shape, 3), Memory::new(shape, 3));
                let (mut request, mut rounds) = (Request::NULL, Request::NULL);
                let (data, into) = (from.data(), once.room());
                let requested = result(&mut request);
                coll::iallreduce(process, data, into.of(3, datatype), op, WORLD, requested)
                    .unwrap();
                let (into, requested, info) = (again.room(), result(&mut rounds), Info::NULL);
                coll::scan_init(
                    process,
                    data,
                    into.of(3, datatype),
                    op,
                    WORLD,
                    info,
                    requested,
                )
                .unwrap();
                datatypes::type_free(process, result(&mut { datatype })).unwrap();
                let twice = datatypes::type_free(process, result(&mut { datatype }));
                assert_eq!(common::code(twice), Class::Type);
                operations::op_free(process, result(&mut { op })).unwrap();

                wait(process, &mut request);
                once.assert_is(&composed(0..n, 3), "iallreduce");
                for _round in 0..2 {
                    complete::start(process, result(&mut rounds)).unwrap();
                    wait(process, &mut rounds);
                    again.assert_is(&composed(0..me + 1, 3), "scan_init");
                    again.clear();
                }
                complete::request_free(process, result(&mut rounds)).unwrap();
                let (mut lower, mut extent) = (0, 0);
                let (lower, extent) = (result(&mut lower), result(&mut extent));
                let gone = datatypes::type_get_extent(process, datatype, lower, extent);
                assert_eq!(common::code(gone), Class::Type, "nobody needs it any more");
            }
        });
    }
}

#[test]
fn elements_are_combined_without_others() {
    ranks(1, |process, _| {
        for shape in &SHAPES {
            let datatype = shape.make(process);
            RANK.set(Some((Arc::clone(process), shape.places)));
            let op = operation(process, true);
            let (left, mut right) = (
                Memory::of(shape, &given(0, 3)),
                Memory::of(shape, &given(1, 3)),
            );
            let into = right.room();
            coll::reduce_local(process, left.data(), into.of(3, datatype), op).unwrap();
            right.assert_is(&composed(0..2, 3), "reduce_local");
            left.assert_is(&given(0, 3), "input");
            // No operation of the standard's is defined for such datatypes (MPI-5.0, section 6.9.2).
            if shape.extent != 16 {
                let refused = coll::reduce_local(process, left.data(), into.of(3, datatype), SUM);
                assert_eq!(common::code(refused), Class::Op);
            }
            let negative = coll::reduce_local(process, left.data(), into.of(-1, datatype), op);
            assert_eq!(common::code(negative), Class::Count);
        }
    });
}
