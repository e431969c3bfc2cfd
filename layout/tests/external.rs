//! external32, by bytes that the standard fixes (MPI-5.0, section 14.5.2).

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

#[allow(dead_code, reason = "others use the rest")]
mod model;

use model::{Random, surrounded, tree};
use tagwire_layout::{
    Basic, Datatype, Error, Member, Program, Source, Target, pack_external, unpack_external,
    unpack_external_part,
};

/// What a value in memory becomes, and what that becomes in memory again.
fn there_and_back(basic: Basic, memory: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let program = Program::of(&Datatype::of(basic));
    let count = (memory.len() / basic.size()) as u64;
    let mut external = vec![0xaa; program.external_size(count).unwrap() as usize];
    let packed = pack_external(&program, count, Source::of(memory), &mut external);
    assert_eq!(packed, Ok(external.len()));
    let mut back = vec![0xbb; memory.len()];
    let unpacked = unpack_external(&program, count, Target::of(&mut back), &external);
    assert_eq!(unpacked, Ok(external.len()));
    (external, back)
}

fn assert_is(basic: Basic, memory: &[u8], wanted: &[u8]) {
    let (external, back) = there_and_back(basic, memory);
    assert_eq!(external, wanted, "{basic:?} in external32");
    assert_eq!(back, memory, "{basic:?} and back");
}

/// Bytes end anywhere: the values before are unpacked, and nothing behind them is touched.
#[test]
fn the_whole_values_of_a_part_are_unpacked() {
    let member = |basic, count, displacement| Member {
        count,
        displacement,
        of: Datatype::of(basic),
    };
    let members = [member(Basic::I16, 2, 0), member(Basic::F64, 1, 8)];
    let program = Program::of(&Datatype::structure(members.to_vec()).unwrap());
    // Where each value of two elements is in memory; in external32 they follow each other.
    let values = [0..2, 2..4, 8..16, 16..18, 18..20, 24..32];
    let memory: Vec<u8> = (1..33).collect();
    let mut external = vec![0; 24];
    pack_external(&program, 2, Source::of(&memory), &mut external).unwrap();
    for bytes in 0..=external.len() {
        let mut back = vec![0; memory.len()];
        let target = Target::of(&mut back);
        let unpacked = unpack_external_part(&program, 2, target, &external[..bytes]).unwrap();
        let (mut expected, mut whole) = (vec![0; memory.len()], 0);
        for value in values.clone() {
            if whole + value.len() > bytes {
                break;
            }
            whole += value.len();
            expected[value.clone()].copy_from_slice(&memory[value]);
        }
        assert_eq!((unpacked, back), (whole as u64, expected), "{bytes}");
        assert_eq!(program.native_size(2, bytes as u64), Ok(whole as u64));
    }
}

#[test]
fn numbers_are_big_endian() {
    assert_is(
        Basic::I16,
        &[-2_i16, 300].map(i16::to_ne_bytes).concat(),
        &[0xff, 0xfe, 1, 0x2c],
    );
    assert_is(Basic::I32, &0x0102_0304_i32.to_ne_bytes(), &[1, 2, 3, 4]);
    assert_is(
        Basic::I64,
        &(-2_i64).to_ne_bytes(),
        &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe],
    );
    assert_is(Basic::F32, &1.0_f32.to_ne_bytes(), &[0x3f, 0x80, 0, 0]);
    assert_is(
        Basic::F64,
        &(-2.5_f64).to_ne_bytes(),
        &[0xc0, 4, 0, 0, 0, 0, 0, 0],
    );
    assert_is(Basic::Logical16, &1_u16.to_ne_bytes(), &[0, 1]);
    assert_is(Basic::Bool, &[1, 0, 1], &[1, 0, 1]);
    assert_is(Basic::Byte, &[1, 2, 3], &[1, 2, 3]);
    let complex = [1.0_f32, -1.0].map(f32::to_ne_bytes).concat();
    assert_is(
        Basic::Complex32,
        &complex,
        &[0x3f, 0x80, 0, 0, 0xbf, 0x80, 0, 0],
    );
    let wide = 0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10_i128;
    assert_is(
        Basic::I128,
        &wide.to_ne_bytes(),
        &(1..=16).collect::<Vec<u8>>(),
    );
}

#[test]
fn some_lengths_are_not_those_of_the_machine() {
    assert_is(
        Basic::Long,
        &[-3_i64, 70_000].map(i64::to_ne_bytes).concat(),
        &[0xff, 0xff, 0xff, 0xfd, 0, 1, 0x11, 0x70],
    );
    assert_is(
        Basic::UnsignedLong,
        &0xffff_fffd_u64.to_ne_bytes(),
        &[0xff, 0xff, 0xff, 0xfd],
    );
    assert_is(Basic::WideChar, &0xfffd_i32.to_ne_bytes(), &[0xff, 0xfd]);
    // What does not fit is cut off.
    let (external, back) = there_and_back(Basic::Long, &0x1_2345_6789_i64.to_ne_bytes());
    assert_eq!(
        (&external[..], &back[..]),
        (
            &[0x23, 0x45, 0x67, 0x89][..],
            &0x2345_6789_i64.to_ne_bytes()[..]
        )
    );
}

/// A value of the x87 by sign and exponent, and by significand.
#[cfg(target_arch = "x86_64")]
fn x87(top: u16, significand: u64) -> Vec<u8> {
    let mut bytes = significand.to_le_bytes().to_vec();
    bytes.extend(top.to_le_bytes());
    bytes.extend([0; 6]);
    bytes
}

#[test]
#[cfg(target_arch = "x86_64")]
fn long_doubles_become_binary128() {
    let quad = |high: u64, low: u64| [high.to_be_bytes(), low.to_be_bytes()].concat();
    for (top, significand, high, low) in [
        (0x3fff, 1 << 63, 0x3fff_0000_0000_0000, 0),
        // -1.5 and 1 + 2^-63.
        (0xbfff, 3 << 62, 0xbfff_8000_0000_0000, 0),
        (0x3fff, (1 << 63) + 1, 0x3fff_0000_0000_0000, 1 << 49),
        (0x7ffe, u64::MAX, 0x7ffe_ffff_ffff_ffff, 0xfffe << 48),
        (0x8000, 0, 0x8000_0000_0000_0000, 0),
        // The least number, and the greatest without a leading one.
        (0, 1, 0, 1 << 49),
        (0, (1 << 63) - 1, 0x0000_ffff_ffff_ffff, 0xfffe << 48),
        (0x7fff, 1 << 63, 0x7fff_0000_0000_0000, 0),
        (0x7fff, 3 << 62, 0x7fff_8000_0000_0000, 0),
    ] {
        assert_is(Basic::LongDouble, &x87(top, significand), &quad(high, low));
        let complex = [x87(top, significand), x87(0x4000, 1 << 63)].concat();
        let wanted = [quad(high, low), quad(0x4000 << 48, 0)].concat();
        assert_is(Basic::ComplexLongDouble, &complex, &wanted);
    }
    // Encodings that the x87 does not make: the least normal number without its exponent, and an invalid one.
    let (external, back) = there_and_back(Basic::LongDouble, &x87(0, 1 << 63));
    assert_eq!((external, back), (quad(1 << 48, 0), x87(1, 1 << 63)));
    let (external, back) = there_and_back(Basic::LongDouble, &x87(5, 1));
    assert_eq!(
        (external, back),
        (quad(0x7fff_8000 << 32, 0), x87(0x7fff, 3 << 62))
    );
}

#[test]
#[cfg(target_arch = "x86_64")]
fn numbers_of_binary128_are_rounded_to_the_nearest() {
    let program = Program::of(&Datatype::of(Basic::LongDouble));
    let half = 1_u128 << 48;
    for (external, top, significand) in [
        (0x3fff_u128 << 112 | half, 0x3fff, 1 << 63),
        (0x3fff << 112 | (half + 1), 0x3fff, (1 << 63) + 1),
        (0x3fff << 112 | 1 << 49 | half, 0x3fff, (1 << 63) + 2),
        (0x3fff << 112 | ((1 << 112) - 1), 0x4000, 1 << 63),
        (0x7ffe << 112 | ((1 << 112) - 1), 0x7fff, 1 << 63),
        ((1 << 112) - 1, 1, 1 << 63),
        (0xffff << 112 | 1, 0xffff, 3 << 62),
    ] {
        let mut back = [0xbb; 16];
        let bytes = external.to_be_bytes();
        unpack_external(&program, 1, Target::of(&mut back), &bytes).unwrap();
        assert_eq!(back.to_vec(), x87(top, significand), "{external:x}");
    }
}

#[test]
fn structs_have_no_gaps_and_pairs_no_form() {
    let member = |count, displacement, basic| Member {
        count,
        displacement,
        of: Datatype::of(basic),
    };
    let members = [
        member(1, 0, Basic::Char),
        member(1, 8, Basic::Long),
        member(2, 16, Basic::I16),
    ];
    let program = Program::of(&Datatype::structure(members).unwrap());
    assert_eq!(program.external_size(3), Ok(27));
    let element = [
        &b"x......."[..],
        &7_i64.to_ne_bytes(),
        &[1_i16, 2].map(i16::to_ne_bytes).concat(),
        b"....",
    ]
    .concat();
    let memory = element.repeat(3);
    let mut out = [0xee; 30];
    assert_eq!(
        pack_external(&program, 3, Source::of(&memory), &mut out),
        Ok(27)
    );
    assert_eq!(out[..27], b"x\0\0\0\x07\0\x01\0\x02".repeat(3));
    assert_eq!(out[27..], [0xee; 3]);
    let short = pack_external(&program, 3, Source::of(&memory), &mut out[..26]);
    assert_eq!(
        short,
        Err(Error::Position {
            position: 27,
            length: 26
        })
    );
    let mut back = memory.clone();
    back.iter_mut()
        .for_each(|byte| *byte = if *byte == b'.' { b'.' } else { 0 });
    unpack_external(&program, 3, Target::of(&mut back), &out).unwrap();
    assert_eq!(back, memory);

    for basic in Basic::ALL {
        let size = Program::of(&Datatype::of(*basic)).external_size(1);
        assert_eq!(size.is_err(), basic.pair().is_some(), "{basic:?}");
    }
    let pair = Program::of(&Datatype::of(Basic::F64Int).contiguous(2).unwrap());
    assert_eq!(
        pair.external_size(1),
        Err(Error::NotExternal {
            basic: "(f64, i32)"
        })
    );
}

/// Long runs, in pieces, and trees of all shapes come back as they were.
#[test]
fn what_is_packed_comes_back() {
    let mut trees = 0;
    for seed in 1..4000 {
        let mut random = Random::new(seed);
        let (datatype, model) = tree(&mut random, 3);
        let program = Program::of(&datatype);
        let mut places = model.blocks([(2, 0)]).places();
        places.sort_unstable();
        let overlaps = places.windows(2).any(|pair| pair[0] == pair[1]);
        let Ok(size) = program.external_size(2) else {
            continue;
        };
        if overlaps || places.is_empty() {
            continue;
        }
        trees += 1;
        let data = vec![0; (places.last().unwrap() + 1 - places[0]) as usize];
        let (mut memory, origin) = surrounded(&data, places[0]);
        // Bytes of which no number is cut off or is an invalid one.
        for (at, basic) in &model.blocks([(2, 0)]).entries {
            let at = (at + origin as i64) as usize;
            if !matches!(basic, Basic::LongDouble | Basic::ComplexLongDouble) {
                memory[at..at + 2.min(basic.size())].fill(random.next() as u8 % 100);
            }
        }
        let mut external = vec![0; size as usize];
        let source = Source::around(&memory, origin);
        assert_eq!(
            pack_external(&program, 2, source, &mut external),
            Ok(external.len())
        );
        let mut back = vec![0; memory.len()];
        let target = Target::around(&mut back, origin);
        unpack_external(&program, 2, target, &external).unwrap();
        assert_eq!(back, memory, "{datatype:#?}");
    }
    assert!(trees > 500, "{trees}");

    let long: Vec<u8> = (0..5000_i32).flat_map(i32::to_ne_bytes).collect();
    let wanted: Vec<u8> = (0..5000_i32).flat_map(i32::to_be_bytes).collect();
    assert_is(Basic::I32, &long, &wanted);
}
