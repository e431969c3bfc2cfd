//! Datatypes by hand: the examples of the standard, bounds, and what is refused (MPI-5.0, section 5.1).

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use tagwire_layout::{
    Basic, Block, Constructor, Datatype, Elements, Error, Layout, Member, Order, Packer, Program,
    Signature, Slice, Source, Target, Unpacker, VectorShape,
};

/// The type map of many examples: a double at 0 and a char at 8, of extent 16.
fn double_char() -> Datatype {
    structure(&[
        (1, 0, Datatype::of(Basic::F64)),
        (1, 8, Datatype::of(Basic::Char)),
    ])
}

fn structure(members: &[(u64, i64, Datatype)]) -> Datatype {
    let members = members.iter().map(|(count, displacement, of)| Member {
        count: *count,
        displacement: *displacement,
        of: of.clone(),
    });
    Datatype::structure(members.collect::<Vec<_>>()).unwrap()
}

fn blocks(datatype: &Datatype) -> Vec<(i64, u64)> {
    let blocks = Program::of(datatype).blocks(1).unwrap();
    blocks.map(|block| (block.offset, block.length)).collect()
}

/// Lower bound, extent, true lower bound, true extent, size.
fn shape(datatype: &Datatype) -> (i64, i64, i64, i64, i64) {
    assert_eq!(datatype.extent(), datatype.upper() - datatype.lower());
    let (lower, extent) = (datatype.lower(), datatype.extent());
    (
        lower,
        extent,
        datatype.true_lower(),
        datatype.true_extent(),
        datatype.size(),
    )
}

fn packed(datatype: &Datatype, memory: &[u8]) -> Vec<u8> {
    let program = Program::of(datatype);
    let mut out = vec![0; program.size() as usize];
    let mut packer = Packer::new(&program, 1, Source::of(memory)).unwrap();
    assert_eq!(packer.pack(&mut out), out.len());
    out
}

/// Example 5.1: the extent is that of the struct in C.
#[test]
fn a_struct_is_padded_to_its_alignment() {
    assert_eq!(shape(&double_char()), (0, 16, 0, 9, 9));
    assert_eq!(blocks(&double_char()), [(0, 9)]);
    let all = structure(&[
        (1, 0, Datatype::of(Basic::Char)),
        (3, 4, Datatype::of(Basic::I32)),
        (1, 16, Datatype::of(Basic::I16)),
    ]);
    assert_eq!(shape(&all), (0, 20, 0, 18, 15));
    // The extent is rounded up, and it begins at the lower bound.
    let late = structure(&[
        (1, 4, Datatype::of(Basic::I32)),
        (1, 8, Datatype::of(Basic::Char)),
    ]);
    assert_eq!(shape(&late), (4, 8, 4, 5, 5));
}

/// As Open MPI 5.0.11 has them. MPICH 5.0.2 differs where a comment says so.
#[test]
fn parts_count_with_their_padding() {
    let old = double_char();
    let char = Datatype::of(Basic::Char);
    // What is left out at the beginning does not make the struct shorter at its end.
    let late = structure(&[(1, 4, char), (1, 8, old.clone())]);
    assert_eq!(shape(&late), (4, 24, 4, 13, 10));
    // At a displacement that is no multiple of the alignment. MPICH rounds structs only: 36, and 9 below.
    let odd = old.hindexed(&[1, 1], &[0, 20]).unwrap();
    assert_eq!(shape(&odd), (0, 40, 0, 29, 18));
    let rows = Datatype::of(Basic::I32).hvector(2, 1, 5).unwrap();
    assert_eq!(shape(&rows), (0, 12, 0, 9, 8));
    // Resized, the padding is gone; what is made of it has markers.
    let packed = old.resized(0, 9).unwrap();
    assert_eq!(shape(&packed.contiguous(3).unwrap()), (0, 27, 0, 27, 27));
}

/// Examples 5.2 to 5.5: the type maps are written out in the standard.
#[test]
fn the_examples_of_replication() {
    let old = double_char();
    let contiguous = old.contiguous(3).unwrap();
    assert_eq!(shape(&contiguous), (0, 48, 0, 41, 27));
    assert_eq!(blocks(&contiguous), [(0, 9), (16, 9), (32, 9)]);
    // MPI_TYPE_VECTOR(2, 3, 4, oldtype): two blocks with three copies each.
    let vector = old.vector(2, 3, 4).unwrap();
    let six = [(0, 9), (16, 9), (32, 9), (64, 9), (80, 9), (96, 9)];
    assert_eq!(
        (blocks(&vector), shape(&vector)),
        (six.to_vec(), (0, 112, 0, 105, 54))
    );
    // MPI_TYPE_VECTOR(3, 1, -2, oldtype).
    let back = old.vector(3, 1, -2).unwrap();
    assert_eq!(blocks(&back), [(0, 9), (-32, 9), (-64, 9)]);
    assert_eq!(shape(&back), (-64, 80, -64, 73, 27));
    // MPI_TYPE_INDEXED(2, (3, 1), (4, 0), oldtype): four elements from displacement 64, one from 0.
    let indexed = old.indexed(&[3, 1], &[4, 0]).unwrap();
    assert_eq!(blocks(&indexed), [(64, 9), (80, 9), (96, 9), (0, 9)]);
    assert_eq!(shape(&indexed), (0, 112, 0, 105, 36));
    // MPI_TYPE_CREATE_STRUCT(3, (2, 1, 3), (0, 16, 26), (MPI_FLOAT, type1, MPI_CHAR)).
    let members = structure(&[
        (2, 0, Datatype::of(Basic::F32)),
        (1, 16, old.clone()),
        (3, 26, Datatype::of(Basic::Char)),
    ]);
    assert_eq!(blocks(&members), [(0, 8), (16, 9), (26, 3)]);
    assert_eq!(shape(&members), (0, 32, 0, 29, 20));
}

/// Section 5.1.6: markers, as `resized` sets them.
#[test]
fn markers_make_the_bounds() {
    let int = Datatype::of(Basic::I32);
    let one = int.resized(-3, 9).unwrap();
    assert_eq!(shape(&one), (-3, 9, 0, 4, 4));
    let two = one.contiguous(2).unwrap();
    assert_eq!(
        (shape(&two), blocks(&two)),
        ((-3, 18, 0, 13, 8), vec![(0, 4), (9, 4)])
    );
    // Markers anywhere in a type map are its bounds, whatever else is in it. (MPICH 5.0.2 has 0 and 112 here.)
    let mixed = structure(&[(1, 100, one.clone()), (1, 0, Datatype::of(Basic::F64))]);
    assert_eq!(shape(&mixed), (97, 9, 0, 104, 12));
    // They are replaced, not added.
    assert_eq!(shape(&two.resized(0, 4).unwrap()), (0, 4, 0, 13, 8));
    assert_eq!(shape(&two.duplicate().unwrap()), shape(&two));
    // An extent may be negative, or nothing.
    let back = int.resized(0, -4).unwrap().contiguous(3).unwrap();
    assert_eq!(blocks(&back), [(0, 4), (-4, 4), (-8, 4)]);
    assert_eq!((back.lower(), back.upper()), (-8, -4));
    let same = int.resized(0, 0).unwrap().contiguous(3).unwrap();
    assert_eq!(
        (blocks(&same), shape(&same)),
        (vec![(0, 4); 3], (0, 0, 0, 4, 12))
    );
    // No data, but bounds.
    let empty = int.contiguous(0).unwrap().resized(8, 24).unwrap();
    assert_eq!(shape(&empty.contiguous(2).unwrap()), (8, 48, 0, 0, 0));
}

#[test]
fn what_has_no_elements_has_no_effect() {
    let int = Datatype::of(Basic::I32);
    let nothing = (0, 0, 0, 0, 0);
    for empty in [
        int.contiguous(0),
        int.vector(0, 3, 7),
        int.vector(3, 0, 7),
        int.hvector(3, 0, -7),
        int.indexed(&[], &[]),
        int.indexed(&[0, 0], &[5, -5]),
        int.hindexed_block(0, &[1, 2]),
        int.indexed_block(4, &[]),
        Datatype::structure([]),
    ] {
        let empty = empty.unwrap();
        assert_eq!(
            (shape(&empty), blocks(&empty)),
            (nothing, vec![]),
            "{empty:?}"
        );
        let program = Program::of(&empty);
        let mut packer = Packer::new(&program, 1000, Source::of(&[])).unwrap();
        assert_eq!((packer.pack(&mut [0; 4]), packer.length()), (0, 0));
        assert_eq!(packer.pack_at(7, &mut [0; 4]), 0);
        assert_eq!(program.signature().count_in(0), Some(0));
        assert_eq!(program.signature().count_in(4), None);
    }
    let with = structure(&[
        (0, -100, double_char()),
        (1, 4, int.clone()),
        (2, 99, int.contiguous(0).unwrap()),
    ]);
    assert_eq!(shape(&with), (4, 4, 4, 4, 4));
    let indexed = int.indexed(&[0, 2, 0], &[-9, 3, 90]).unwrap();
    assert_eq!(shape(&indexed), (12, 8, 12, 8, 8));
}

#[test]
fn pairs_are_structs() {
    let pair = Datatype::of(Basic::ShortInt);
    assert_eq!(
        (shape(&pair), blocks(&pair)),
        ((0, 8, 0, 8, 6), vec![(0, 2), (4, 4)])
    );
    let long = Datatype::of(Basic::LongDoubleInt);
    assert_eq!(
        (shape(&long), blocks(&long)),
        ((0, 32, 0, 20, 20), vec![(0, 20)])
    );
    let by_hand = structure(&[
        (1, 0, Datatype::of(Basic::I16)),
        (1, 4, Datatype::of(Basic::I32)),
    ]);
    assert_eq!(Signature::of(&pair), Signature::of(&by_hand));
    assert_eq!(packed(&pair, b"ab..cdef"), b"abcdef");
}

#[test]
fn what_does_not_fit_is_refused() {
    let int = Datatype::of(Basic::I32);
    let most = i64::MAX as u64;
    assert_eq!(int.contiguous(most / 4).unwrap().size(), i64::MAX / 4 * 4);
    assert_eq!(int.contiguous(most / 4 + 1).unwrap_err(), Error::Overflow);
    assert_eq!(int.contiguous(u64::MAX).unwrap_err(), Error::Overflow);
    assert_eq!(int.vector(2, 1, i64::MAX).unwrap_err(), Error::Overflow);
    assert_eq!(
        int.hvector(3, 1, i64::MAX / 2).unwrap_err(),
        Error::Overflow
    );
    assert!(int.hvector(2, 1, i64::MAX - 8).is_ok());
    assert_eq!(
        int.hindexed(&[1, 1], &[i64::MIN, 0]).unwrap_err(),
        Error::Overflow
    );
    assert_eq!(
        int.indexed_block(1, &[i64::MAX]).unwrap_err(),
        Error::Overflow
    );
    assert_eq!(int.resized(i64::MAX, 1).unwrap_err(), Error::Overflow);
    assert!(matches!(int.indexed(&[1], &[]), Err(Error::Argument(_))));
    // Addresses are displacements too.
    let absolute = int.hindexed_block(1, &[0x7fff_1234_5678]).unwrap();
    assert_eq!(blocks(&absolute), [(0x7fff_1234_5678, 4)]);
    // Many elements of many.
    let large = Program::of(&int.contiguous(1 << 40).unwrap());
    assert_eq!(large.packed(1 << 20), Ok(1 << 62));
    assert_eq!(large.packed(1 << 21), Err(Error::Overflow));
    assert_eq!(
        large.contiguous(1 << 20),
        Some(Block {
            offset: 0,
            length: 1 << 62
        })
    );
}

#[test]
fn constructors_stand_in_each_other_to_a_depth() {
    let mut datatype = Datatype::of(Basic::I32);
    for _ in 1..Datatype::DEPTH {
        datatype = datatype.hvector(1, 1, 8).unwrap();
    }
    assert_eq!(blocks(&datatype), [(0, 4)]);
    assert_eq!(datatype.duplicate().unwrap_err(), Error::TooDeep);
    assert_eq!(
        Datatype::structure([Member {
            count: 1,
            displacement: 0,
            of: datatype
        }])
        .unwrap_err(),
        Error::TooDeep
    );
    // One that is used twice at each level is compiled once.
    let mut double = Datatype::of(Basic::Byte)
        .contiguous(3)
        .unwrap()
        .resized(0, 4)
        .unwrap();
    for level in 0..40 {
        double = structure(&[(1, 0, double.clone()), (1, 5 << level, double)]);
    }
    assert_eq!(Program::of(&double).size(), 3 << 40);
}

/// Section 5.1.13.
#[test]
fn constructors_are_kept_as_given() {
    let int = Datatype::of(Basic::I32);
    let vector = int.vector(4, 2, -3).unwrap();
    let Constructor::Vector { shape, of } = vector.constructor() else {
        panic!("{vector:?}");
    };
    assert_eq!(
        *shape,
        VectorShape {
            count: 4,
            length: 2,
            stride: -3
        }
    );
    assert!(of.is(&int) && !of.is(&Datatype::of(Basic::I32)));
    let indexed = int.indexed(&[0, 2], &[7, -1]).unwrap();
    let Constructor::Indexed {
        lengths,
        displacements,
        ..
    } = indexed.constructor()
    else {
        panic!("{indexed:?}");
    };
    assert_eq!(
        (&lengths[..], &displacements[..]),
        (&[0, 2][..], &[7, -1][..])
    );
    let slice = Slice {
        size: 5,
        length: 2,
        start: 1,
    };
    let part = int.subarray(&[slice], Order::Fortran).unwrap();
    let Constructor::Subarray {
        dimensions,
        order,
        of,
    } = part.constructor()
    else {
        panic!("{part:?}");
    };
    assert!(dimensions[..] == [slice] && *order == Order::Fortran && of.is(&int));
    assert_eq!(
        (int.basic(), int.duplicate().unwrap().basic()),
        (Some(Basic::I32), None)
    );
}

/// Section 5.1.11: what a status reports.
#[test]
fn elements_and_counts_of_received_bytes() {
    let datatype = structure(&[
        (2, 0, Datatype::of(Basic::I32)),
        (1, 8, Datatype::of(Basic::F64Int)),
    ]);
    let signature = Signature::of(&datatype);
    assert_eq!((signature.size(), signature.elements()), (20, 4));
    for (bytes, whole, rest, count) in [
        (0, 0, 0, Some(0)),
        (3, 0, 3, None),
        (4, 1, 0, None),
        (8, 2, 0, None),
        (15, 2, 7, None),
        (16, 3, 0, None),
        (18, 3, 2, None),
        (20, 4, 0, Some(1)),
        (48, 10, 0, None),
        (60, 12, 0, Some(3)),
    ] {
        assert_eq!(
            signature.elements_in(bytes),
            Elements { whole, rest },
            "{bytes}"
        );
        assert_eq!(signature.count_in(bytes), count, "{bytes}");
        assert_eq!(signature.bytes_of(whole), Some(bytes - rest), "{bytes}");
    }
    assert_eq!(signature.bytes_of(u64::MAX), None);
    // Without a walk over all of them.
    let many = Signature::of(&datatype.vector(1 << 30, 2, 3).unwrap());
    assert_eq!(
        many.elements_in((1 << 32) * 20 + 4),
        Elements {
            whole: (1 << 34) + 1,
            rest: 0
        }
    );
    assert_eq!(many.hash(), signature.hash_of(1 << 31));
    assert_ne!(many.hash(), signature.hash_of((1 << 31) - 1));
}

#[test]
fn memory_is_checked_before_anything_is_touched() {
    let pair = Program::of(&Datatype::of(Basic::U8).hvector(2, 1, -3).unwrap());
    let memory = *b"abcdef";
    let outside = Err(Error::Outside { low: -3, high: 1 });
    for (origin, fits) in [(0, false), (2, false), (3, true), (5, true), (6, false)] {
        let packer = Packer::new(&pair, 1, Source::around(&memory, origin));
        assert_eq!(packer.is_ok(), fits, "{origin}");
        let mut copy = memory;
        let unpacker = Unpacker::new(&pair, 1, Target::around(&mut copy, origin));
        assert_eq!(
            unpacker.map(drop),
            if fits { Ok(()) } else { outside },
            "{origin}"
        );
    }
    let mut copy = memory;
    let mut unpacker = Unpacker::new(&pair, 1, Target::around(&mut copy, 4)).unwrap();
    assert_eq!(
        unpacker.seek(3),
        Err(Error::Position {
            position: 3,
            length: 2
        })
    );
    unpacker.seek(1).unwrap();
    assert_eq!((unpacker.unpack(b"XYZ"), unpacker.position()), (1, 2));
    assert_eq!(&copy, b"aXcdef");
}

#[test]
fn what_is_an_array_of_one_type_has_a_layout() {
    let int = Datatype::of(Basic::I32);
    let layout = |datatype: &Datatype| Program::of(datatype).layout();
    let five = Layout::of(Basic::I32).contiguous(5).unwrap();
    assert_eq!(layout(&int.contiguous(5).unwrap()), Some(five.clone()));
    assert_eq!(layout(&int.indexed(&[2, 3], &[0, 2]).unwrap()), Some(five));
    let pairs = Datatype::of(Basic::F64Int)
        .contiguous(3)
        .unwrap()
        .duplicate()
        .unwrap();
    assert_eq!(layout(&pairs), Layout::of(Basic::F64Int).contiguous(3).ok());
    for other in [
        int.vector(2, 1, 2),
        int.indexed_block(2, &[1]),
        int.resized(0, 8),
        int.contiguous(0),
        Datatype::of(Basic::F64Int).indexed_block(1, &[0, 1]),
    ] {
        assert_eq!(layout(&other.unwrap()), None);
    }
    let mixed = structure(&[(1, 0, int), (1, 4, Datatype::of(Basic::F32))]);
    assert_eq!(layout(&mixed), None);
}
