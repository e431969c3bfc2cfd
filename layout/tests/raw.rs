//! Memory by its address: of a buffer, and absolute, as with `MPI_BOTTOM`.

#![allow(unsafe_code)]
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use std::ptr;

use tagwire_layout::{Basic, Datatype, Error, Packer, Program, Source, Target, Unpacker};

/// Data on both sides of the address.
#[test]
fn an_address_in_the_midst_of_the_data() {
    let program = Program::of(
        &Datatype::of(Basic::U16)
            .hindexed_block(1, &[-4, 2])
            .unwrap(),
    );
    let mut memory = *b"ab..cdef";
    let span = program.span(1).unwrap();
    assert_eq!(span, -4..4);
    // SAFETY: the data lies from 4 bytes before the address to 4 bytes behind it, all of which `memory` has.
    let source = unsafe { Source::at(memory.as_ptr().wrapping_add(4), span.clone()) };
    let mut out = [0; 4];
    assert_eq!(Packer::new(&program, 1, source).unwrap().pack(&mut out), 4);
    assert_eq!(&out, b"abef");
    // Two elements need more than was promised.
    let refused = Packer::new(&program, 2, source).map(drop);
    assert!(matches!(refused, Err(Error::Outside { .. })), "{refused:?}");
    // SAFETY: as above, and nobody else has a reference to it.
    let target = unsafe { Target::at(memory.as_mut_ptr().wrapping_add(4), span) };
    assert_eq!(
        Unpacker::new(&program, 1, target).unwrap().unpack(b"ABEF"),
        4
    );
    assert_eq!(&memory, b"AB..cdEF");
}

/// Two allocations in one datatype, of which the displacements are addresses.
#[test]
fn absolute_addresses() {
    let mut values = vec![1_u8, 2, 3, 4, 5, 6];
    let mut other = Box::new([7_u8, 8, 9]);
    let address = |pointer: *mut u8| pointer.expose_provenance() as i64;
    let (first, second) = (address(values.as_mut_ptr()), address(other.as_mut_ptr()));
    let every_second = Datatype::of(Basic::U8).vector(3, 1, 2).unwrap();
    let three = Datatype::of(Basic::U8).contiguous(3).unwrap();
    let member = |displacement, of| tagwire_layout::Member {
        count: 1,
        displacement,
        of,
    };
    let both = Datatype::structure([member(second, three), member(first, every_second)]).unwrap();
    let program = Program::of(&both);
    let span = program.span(1).unwrap();
    assert_eq!(
        (span.start, span.end),
        (first.min(second), (first + 5).max(second + 3))
    );
    // SAFETY: what the program names lies in the two allocations, of which the addresses are exposed.
    let source = unsafe { Source::at(ptr::null(), span.clone()) };
    let mut out = [0; 6];
    assert_eq!(Packer::new(&program, 1, source).unwrap().pack(&mut out), 6);
    assert_eq!(out, [7, 8, 9, 1, 3, 5]);
    // SAFETY: as above, and nobody else has a reference to either.
    let target = unsafe { Target::at(ptr::null_mut(), span) };
    let mut unpacker = Unpacker::new(&program, 1, target).unwrap();
    unpacker.seek(2).unwrap();
    assert_eq!(unpacker.unpack(&[90, 10, 30]), 3);
    assert_eq!((values, *other), (vec![10, 2, 30, 4, 5, 6], [7, 8, 90]));
}
