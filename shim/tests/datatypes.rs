//! Datatypes: how they were made, those that are found by what they hold, and packing.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod common;

use common::{
    DOUBLE, INT, Ints, WORLD, array, code, count, counts, data, list, ranks, result, room, text,
    wide,
};
use tagwire_shim::Process;
use tagwire_shim::abi::{Comm, Datatype, Status, UNDEFINED};
use tagwire_shim::call::{contents, datatypes, environment, fortran, packing};
use tagwire_shim::error::{Class, On};
use tagwire_shim::raw::{Array, CountOut, Ref, Twin};

const FLOAT: Datatype = Datatype(0x210);
const CHAR: Datatype = Datatype(0x243);
const OFFSET: Datatype = Datatype(0x203);

/// What an envelope and contents tell.
#[derive(Debug, PartialEq)]
struct Told {
    combiner: i32,
    integers: Vec<i32>,
    addresses: Vec<i64>,
    counts: Vec<i64>,
    types: Vec<Datatype>,
}

fn tell(process: &Process, twin: Twin, datatype: Datatype) -> tagwire_shim::Result<Told> {
    let (mut combiner, mut sizes) = (0, [-1; 4]);
    {
        let [integers, addresses, counts, types] = &mut sizes;
        let out = |size| CountOut::wide(result(size));
        let (integers, addresses, types) = (out(integers), out(addresses), out(types));
        let (counts, combiner) = (result(counts), result(&mut combiner));
        contents::type_get_envelope(
            process, twin, datatype, integers, addresses, counts, types, combiner,
        )?;
    }
    let mut told = Told {
        combiner,
        integers: vec![0; sizes[0] as usize],
        addresses: vec![0; sizes[1] as usize],
        counts: vec![0; sizes[2] as usize],
        types: vec![Datatype::NULL; sizes[3] as usize],
    };
    let [integers, addresses, counts, types] = sizes;
    contents::type_get_contents(
        process,
        twin,
        datatype,
        integers,
        addresses,
        counts,
        types,
        array(&mut told.integers),
        array(&mut told.addresses),
        array(&mut told.counts),
        array(&mut told.types),
    )?;
    Ok(told)
}

fn shape(process: &Process, datatype: Datatype) -> (i32, i64, i64) {
    let (mut size, mut lower, mut extent) = (0, 0, 0);
    datatypes::type_size(process, datatype, count(&mut size)).unwrap();
    datatypes::type_get_extent(process, datatype, result(&mut lower), result(&mut extent)).unwrap();
    (size, lower, extent)
}

/// A call of a constructor, and what is told of it.
struct Case {
    make: fn(&Process, Twin, Ref<Datatype>) -> tagwire_shim::Result,
    combiner: i32,
    /// By the twin of `int`.
    integers: &'static [i32],
    addresses: &'static [i64],
    /// By the other: with these integers.
    counts: &'static [i64],
    fixed: &'static [i32],
    of: Datatype,
}

const CASES: &[Case] = &[
    Case {
        make: |p, twin, new| datatypes::type_contiguous(p, twin, 5, OFFSET, new),
        combiner: 103,
        integers: &[5],
        addresses: &[],
        counts: &[5],
        fixed: &[],
        of: OFFSET,
    },
    Case {
        make: |p, twin, new| datatypes::type_vector(p, twin, 3, 2, -4, INT, new),
        combiner: 104,
        integers: &[3, 2, -4],
        addresses: &[],
        counts: &[3, 2, -4],
        fixed: &[],
        of: INT,
    },
    Case {
        make: |p, twin, new| datatypes::type_create_hvector(p, twin, 3, 2, 40, INT, new),
        combiner: 105,
        integers: &[3, 2],
        addresses: &[40],
        counts: &[3, 2, 40],
        fixed: &[],
        of: INT,
    },
    Case {
        make: |p, twin, new| {
            datatypes::type_indexed(p, twin, 2, counts(&[1, 2]), counts(&[9, 3]), INT, new)
        },
        combiner: 106,
        integers: &[2, 1, 2, 9, 3],
        addresses: &[],
        counts: &[2, 1, 2, 9, 3],
        fixed: &[],
        of: INT,
    },
    Case {
        make: |p, twin, new| {
            datatypes::type_create_hindexed(p, twin, 2, counts(&[1, 2]), wide(&[-9, 3]), INT, new)
        },
        combiner: 107,
        integers: &[2, 1, 2],
        addresses: &[-9, 3],
        counts: &[2, 1, 2, -9, 3],
        fixed: &[],
        of: INT,
    },
    Case {
        make: |p, twin, new| {
            datatypes::type_create_indexed_block(p, twin, 2, 7, counts(&[0, 30]), INT, new)
        },
        combiner: 108,
        integers: &[2, 7, 0, 30],
        addresses: &[],
        counts: &[2, 7, 0, 30],
        fixed: &[],
        of: INT,
    },
    Case {
        make: |p, twin, new| {
            datatypes::type_create_hindexed_block(p, twin, 2, 7, wide(&[0, 30]), INT, new)
        },
        combiner: 109,
        integers: &[2, 7],
        addresses: &[0, 30],
        counts: &[2, 7, 0, 30],
        fixed: &[],
        of: INT,
    },
    Case {
        make: |p, twin, new| datatypes::type_create_resized(p, twin, INT, -8, 24, new),
        combiner: 116,
        integers: &[],
        addresses: &[-8, 24],
        counts: &[-8, 24],
        fixed: &[],
        of: INT,
    },
    Case {
        make: |p, twin, new| {
            let (sizes, parts, starts) = (counts(&[6, 7]), counts(&[2, 3]), counts(&[1, 4]));
            datatypes::type_create_subarray(p, twin, 2, sizes, parts, starts, 15, INT, new)
        },
        combiner: 111,
        integers: &[2, 6, 7, 2, 3, 1, 4, 15],
        addresses: &[],
        counts: &[6, 7, 2, 3, 1, 4],
        fixed: &[2, 15],
        of: INT,
    },
    Case {
        make: |p, twin, new| {
            let (kinds, arguments) = (list(&[17, 18, 16]), list(&[19, 2, 19]));
            let (sizes, grid) = (counts(&[6, 7, 5]), list(&[2, 3, 1]));
            datatypes::type_create_darray(
                p, twin, 6, 4, 3, sizes, kinds, arguments, grid, 12, INT, new,
            )
        },
        combiner: 112,
        integers: &[6, 4, 3, 6, 7, 5, 17, 18, 16, 19, 2, 19, 2, 3, 1, 12],
        addresses: &[],
        counts: &[6, 7, 5],
        fixed: &[6, 4, 3, 17, 18, 16, 19, 2, 19, 2, 3, 1, 12],
        of: INT,
    },
];

#[test]
fn contents_are_the_arguments_of_the_call() {
    ranks(1, |process, _| {
        for case in CASES {
            let [mut small, mut large] = [Datatype::NULL; 2];
            (case.make)(process, Twin::Int, result(&mut small)).unwrap();
            (case.make)(process, Twin::Big, result(&mut large)).unwrap();
            let expected = Told {
                combiner: case.combiner,
                integers: case.integers.to_vec(),
                addresses: case.addresses.to_vec(),
                counts: Vec::new(),
                types: vec![case.of],
            };
            // Both calls tell of what has no large counts.
            assert_eq!(tell(process, Twin::Int, small).unwrap(), expected);
            assert_eq!(tell(process, Twin::Big, small).unwrap(), expected);
            let expected = Told {
                integers: case.fixed.to_vec(),
                addresses: Vec::new(),
                counts: case.counts.to_vec(),
                ..expected
            };
            assert_eq!(tell(process, Twin::Big, large).unwrap(), expected);
            let refused = tell(process, Twin::Int, large).map(drop);
            assert_eq!(code(refused), Class::Type);
            assert_eq!(shape(process, small), shape(process, large));
        }
    });
}

#[test]
fn handles_of_parts_are_new_but_for_predefined_ones() {
    ranks(1, |process, _| {
        let (mut pair, mut both, mut copy) = (Datatype::NULL, Datatype::NULL, Datatype::NULL);
        datatypes::type_contiguous(process, Twin::Big, 2, DOUBLE, result(&mut pair)).unwrap();
        let parts = [pair, CHAR];
        let (blocks, at, of) = (counts(&[1, 3]), wide(&[0, 64]), list(&parts));
        datatypes::type_create_struct(process, Twin::Int, 2, blocks, at, of, result(&mut both))
            .unwrap();
        datatypes::type_free(process, result(&mut { pair })).unwrap();
        datatypes::type_dup(process, both, result(&mut copy)).unwrap();
        let mut told = tell(process, Twin::Int, both).unwrap();
        assert_eq!((told.combiner, &told.integers[..]), (110, &[2, 1, 3][..]));
        assert_eq!(told.addresses, [0, 64]);
        assert_eq!(told.types[1], CHAR);
        assert_ne!(told.types[0], pair, "that one was freed");
        assert_eq!(shape(process, told.types[0]), (16, 0, 16));
        // The part tells of itself what it told when it was given.
        let part = tell(process, Twin::Big, told.types[0]).unwrap();
        assert_eq!((part.counts, part.types), (vec![2], vec![DOUBLE]));
        datatypes::type_free(process, result(&mut told.types[0])).unwrap();
        let told = tell(process, Twin::Int, copy).unwrap();
        assert_eq!((told.combiner, told.integers.len()), (102, 0));
        assert_eq!(shape(process, told.types[0]), shape(process, both));

        let named = tell(process, Twin::Int, INT).map(drop);
        assert_eq!(code(named), Class::Type);
        let (mut integers, mut types_of) = ([0; 2], [Datatype::NULL; 2]);
        let short = contents::type_get_contents(
            process,
            Twin::Int,
            both,
            2,
            2,
            0,
            2,
            array(&mut integers),
            array(&mut [0; 2]),
            Array::null(),
            array(&mut types_of),
        );
        assert_eq!(code(short), Class::Arg);
    });
}

#[test]
fn kinds_of_fortran_are_found_and_stay() {
    ranks(1, |process, _| {
        type Make = fn(&Process, i32, i32, Ref<Datatype>) -> tagwire_shim::Result;
        let integer: Make = |p, _, range, new| fortran::type_create_f90_integer(p, range, new);
        for (make, precision, range, size, combiner) in [
            (fortran::type_create_f90_real as Make, 6, 30, 4, 113),
            (fortran::type_create_f90_real, 7, UNDEFINED, 8, 113),
            (fortran::type_create_f90_real, UNDEFINED, 300, 8, 113),
            (fortran::type_create_f90_complex, 6, 37, 8, 114),
            (fortran::type_create_f90_complex, 15, 307, 16, 114),
            (integer, 0, 2, 1, 115),
            (integer, 0, 9, 4, 115),
            (integer, 0, 10, 8, 115),
        ] {
            let [mut once, mut again] = [Datatype::NULL; 2];
            make(process, precision, range, result(&mut once)).unwrap();
            make(process, precision, range, result(&mut again)).unwrap();
            assert_eq!(once, again);
            assert_eq!(shape(process, once).0, size);
            let told = tell(process, Twin::Int, once).unwrap();
            let arguments = if combiner == 115 {
                vec![range]
            } else {
                vec![precision, range]
            };
            assert_eq!((told.combiner, told.integers), (combiner, arguments));
            let freed = datatypes::type_free(process, result(&mut again));
            assert_eq!(code(freed), Class::Type);
            // Parts of this kind are no new handles.
            let mut pair = Datatype::NULL;
            datatypes::type_contiguous(process, Twin::Int, 2, once, result(&mut pair)).unwrap();
            assert_eq!(tell(process, Twin::Int, pair).unwrap().types, [once]);
        }
        let mut none = Datatype::NULL;
        for (precision, range) in [(16, 10), (5, 308), (UNDEFINED, UNDEFINED)] {
            let refused =
                fortran::type_create_f90_real(process, precision, range, result(&mut none));
            assert_eq!(code(refused), Class::Arg, "{precision}, {range}");
        }
        let refused = fortran::type_create_f90_integer(process, 39, result(&mut none));
        assert_eq!(code(refused), Class::Arg);
    });
}

#[test]
fn datatypes_are_found_by_size_and_by_parts() {
    ranks(1, |process, _| {
        let mut found = Datatype::NULL;
        for (class, size, number) in [
            (192, 1, 0x2c1),
            (192, 8, 0x2d9),
            (193, 4, 0x2d2),
            (193, 8, 0x2da),
            (194, 16, 0x2e3),
            (191, 4, 0x2d0),
            (193, 16, 0x220),
            (194, 32, 0x224),
        ] {
            fortran::type_match_size(process, class, size, result(&mut found)).unwrap();
            assert_eq!(found, Datatype(number));
            assert_eq!(shape(process, found).0, size);
        }
        for (class, size) in [(193, 2), (193, 32), (192, 3), (192, 0), (192, -4), (1, 4)] {
            let refused = fortran::type_match_size(process, class, size, result(&mut found));
            assert_eq!(code(refused), Class::Arg, "{class}, {size}");
        }
        fortran::type_get_value_index(process, FLOAT, INT, result(&mut found)).unwrap();
        assert_eq!(found, Datatype(0x228));
        fortran::type_get_value_index(process, INT, INT, result(&mut found)).unwrap();
        assert_eq!(found, Datatype(0x22b));
        fortran::type_get_value_index(process, INT, FLOAT, result(&mut found)).unwrap();
        assert_eq!(found, Datatype::NULL);
        let none = fortran::type_get_value_index(process, Datatype::NULL, INT, result(&mut found));
        assert_eq!(code(none), Class::Type);
        // MPI_REAL2, which this library does not have.
        let mut size = 0;
        datatypes::type_size(process, Datatype(0x2ca), count(&mut size)).unwrap();
        assert_eq!(size, UNDEFINED);
        let (mut name, mut length) = ([0; 128], 0);
        let (into, length) = (common::text_out(&mut name), result(&mut length));
        datatypes::type_get_name(process, Datatype(0x2ca), into, length).unwrap();
        assert_eq!(common::said(&name), "MPI_REAL2");
    });
}

#[test]
fn external_data_is_packed_and_unpacked() {
    ranks(1, |process, _| {
        let mut every_second = Datatype::NULL;
        let new = result(&mut every_second);
        datatypes::type_vector(process, Twin::Int, 2, 1, 2, INT, new).unwrap();
        datatypes::type_commit(process, result(&mut every_second)).unwrap();
        let external = text(c"external32");
        let (mut size, mut position) = (0, 3);
        packing::pack_external_size(process, external, 2, every_second, result(&mut size)).unwrap();
        assert_eq!(size, 16);
        let (values, mut packed) = ([1, 2, 3, 4, 5, 6], [0xee_u8; 20]);
        let (from, into) = (data(&values), room(&mut packed));
        let at = result(&mut position);
        packing::pack_external(process, external, from.of(2, every_second), into, 20, at).unwrap();
        assert_eq!(position, 19);
        // The extent of an element is three numbers: the second one begins with the fourth.
        assert_eq!(packed[3..7], 1_i32.to_be_bytes());
        assert_eq!(packed[7..11], 3_i32.to_be_bytes());
        assert_eq!(packed[11..15], 4_i32.to_be_bytes());
        assert_eq!((packed[2], packed[19]), (0xee, 0xee));
        let (mut back, mut position) = ([0; 6], 3);
        let (from, into) = (data(&packed), room(&mut back));
        let at = result(&mut position);
        packing::unpack_external(process, external, from, 20, at, into.of(2, every_second))
            .unwrap();
        assert_eq!((back, position), ([1, 0, 3, 4, 0, 6], 19));

        let at = result(&mut position);
        let full = packing::pack_external(process, external, data(&values).ints(2), into, 20, at);
        assert_eq!(code(full), Class::Arg, "no room");
        let native = text(c"native");
        let refused = packing::pack_external_size(process, native, 1, INT, result(&mut size));
        assert_eq!(code(refused), Class::Arg);
        let negative = packing::pack_external_size(process, external, -1, INT, result(&mut size));
        let negative = negative.unwrap_err();
        assert_eq!(
            (negative.code(), negative.raised_on()),
            (Class::Count as i32, On::None)
        );
    });
}

/// Packing raises its errors on its communicator (MPI-5.0, section 9.3).
#[test]
fn packing_fails_on_its_communicator() {
    ranks(1, |process, _| {
        let (mut position, mut out) = (0, [0_u8; 8]);
        let from = data(&[1_i32, 2, 3]);
        for (number, comm, class) in [(3, WORLD, Class::Arg), (-1, Comm::SELF, Class::Count)] {
            let at = count(&mut position);
            let into = room(&mut out);
            let failed = packing::pack(process, from.ints(number), into, 8, at, comm).unwrap_err();
            assert_eq!(
                (failed.code(), failed.raised_on()),
                (class as i32, On::Comm(comm))
            );
        }
        let none = packing::pack_size(process, 1, INT, Comm::NULL, count(&mut position));
        assert_eq!(code(none), Class::Comm);
        let typeless = packing::pack_size(process, 1, Datatype::NULL, WORLD, count(&mut position));
        let typeless = typeless.unwrap_err();
        assert_eq!(
            (typeless.code(), typeless.raised_on()),
            (Class::Type as i32, On::Comm(WORLD))
        );
    });
}

#[test]
fn deprecated_names_have_wide_results() {
    ranks(1, |process, _| {
        let mut long = Datatype::NULL;
        let number = 1 << 33;
        datatypes::type_contiguous(process, Twin::Big, number, INT, result(&mut long)).unwrap();
        datatypes::type_commit(process, result(&mut long)).unwrap();
        let (mut size, mut narrow) = (0, 0);
        datatypes::type_size_x(process, long, result(&mut size)).unwrap();
        datatypes::type_size(process, long, count(&mut narrow)).unwrap();
        assert_eq!((size, narrow), (4 * number, UNDEFINED));
        let mut status = Status::EMPTY;
        let given = common::status(&mut status);
        // They are basic elements.
        for elements in [0, 7, number, number + 1] {
            environment::status_set_elements(process, given, long, elements).unwrap();
            let mut got = -1;
            environment::get_elements_x(process, given, long, result(&mut got)).unwrap();
            assert_eq!((got, given.get().bytes() as i64), (elements, 4 * elements));
        }
        for elements in [-1, i64::MAX] {
            let refused = environment::status_set_elements(process, given, long, elements);
            assert_eq!(code(refused), Class::Count);
        }
    });
}

#[test]
fn arguments_that_are_wrong_are_refused() {
    ranks(1, |process, _| {
        let mut new = Datatype::NULL;
        let new = result(&mut new);
        let p = process;
        let refused = [
            datatypes::type_contiguous(p, Twin::Int, -1, INT, new),
            datatypes::type_vector(p, Twin::Int, 1, -1, 1, INT, new),
            datatypes::type_create_subarray(
                p,
                Twin::Int,
                1,
                counts(&[4]),
                counts(&[2]),
                counts(&[3]),
                12,
                INT,
                new,
            ),
            datatypes::type_create_darray(
                p,
                Twin::Int,
                2,
                2,
                1,
                counts(&[4]),
                list(&[17]),
                list(&[19]),
                list(&[2]),
                12,
                INT,
                new,
            ),
            datatypes::type_create_darray(
                p,
                Twin::Int,
                2,
                0,
                1,
                counts(&[4]),
                list(&[20]),
                list(&[19]),
                list(&[2]),
                12,
                INT,
                new,
            ),
        ];
        for result in refused {
            let refused = result.unwrap_err();
            assert_eq!(
                (refused.code(), refused.raised_on()),
                (Class::Arg as i32, On::None)
            );
        }
    });
}
