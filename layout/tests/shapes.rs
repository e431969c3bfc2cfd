//! Every length of blocks, with few and many of them, near each other and far apart, against the model.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

#[allow(dead_code, reason = "others use the rest")]
mod model;

use model::{Random, surrounded};
use tagwire_layout::{Basic, Datatype, Member, Packer, Program, Source, Target, Unpacker};

/// Packs and unpacks whole and in two parts, against the place of each byte.
fn check(random: &mut Random, datatype: &Datatype, count: u64, places: &[i64]) {
    let program = Program::of(datatype);
    let low = *places.iter().min().unwrap();
    let length = places.iter().max().unwrap() + 1 - low;
    let data: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
    let (memory, origin) = surrounded(&data, low);
    let wanted: Vec<u8> = places.iter().map(|at| data[(at - low) as usize]).collect();
    let mut packed = vec![0; wanted.len()];
    let mut packer = Packer::new(&program, count, Source::around(&memory, origin)).unwrap();
    assert_eq!(packer.pack(&mut packed), wanted.len());
    assert!(packed == wanted, "{count} of {datatype:?}");
    let cut = random.count(wanted.len() as u64) as usize;
    packer.seek(0).unwrap();
    packed.fill(0);
    assert_eq!(packer.pack(&mut packed[..cut]), cut);
    assert_eq!(packer.pack(&mut packed[cut..]), wanted.len() - cut);
    assert!(packed == wanted, "{count} of {datatype:?}, cut at {cut}");

    // Other bytes: of what is named twice, the last one stays.
    let wanted: Vec<u8> = places.iter().map(|_| random.next() as u8).collect();
    let mut expected = vec![0x55; memory.len()];
    for (at, byte) in places.iter().zip(&wanted) {
        expected[(at + origin as i64) as usize] = *byte;
    }
    for cut in [0, cut] {
        let mut back = vec![0x55; memory.len()];
        let target = Target::around(&mut back, origin);
        let mut unpacker = Unpacker::new(&program, count, target).unwrap();
        assert_eq!(unpacker.unpack(&wanted[..cut]), cut);
        assert_eq!(unpacker.unpack(&wanted[cut..]), wanted.len() - cut);
        assert!(back == expected, "{count} of {datatype:?}, cut at {cut}");
    }
}

#[test]
fn blocks_of_every_length() {
    let mut random = Random::new(1);
    let byte = Datatype::of(Basic::Byte);
    for length in (1..=140).chain([255, 256, 257, 511, 512, 513, 1000, 4099]) {
        for count in [1, 2, 3, 4, 5, 8, 11, 34] {
            for stride in [length + 1, 2 * length, -length, 1 - 3 * length, 5000] {
                let datatype = byte.hvector(count as u64, length as u64, stride).unwrap();
                let rows = (0..count).flat_map(|row| (0..length).map(move |at| row * stride + at));
                check(&mut random, &datatype, 1, &rows.collect::<Vec<_>>());
            }
        }
    }
}

/// Lists in loops: blocks in order and not, turns that overlap, and more memory than is taken at once.
#[test]
fn lists_that_are_repeated() {
    let mut random = Random::new(2);
    for turn in 0..400 {
        let (number, ascending) = (2 + random.count(50), turn % 2 == 0);
        let mut at = random.within(-50, 50);
        let mut members = Vec::new();
        for _ in 0..number {
            let length = 1 + random.count(40);
            members.push((at, length));
            at += length as i64 + random.within(i64::from(ascending) - 1, 9);
        }
        if !ascending {
            members.rotate_left(1);
        }
        let extent = [at + 60, 3000, 20_000, 5, -at - 100][turn % 5];
        let count = 1 + random.count(40);
        let typed = members.iter().map(|(displacement, length)| Member {
            count: *length,
            displacement: *displacement,
            of: Datatype::of(Basic::Byte),
        });
        let list = Datatype::structure(typed.collect::<Vec<_>>()).unwrap();
        let datatype = list.resized(0, extent).unwrap();
        let bytes: Vec<i64> = members
            .iter()
            .flat_map(|(at, length)| *at..at + *length as i64)
            .collect();
        let turns =
            (0..count as i64).flat_map(|turn| bytes.iter().map(move |at| at + turn * extent));
        check(&mut random, &datatype, count, &turns.collect::<Vec<_>>());
    }
}
