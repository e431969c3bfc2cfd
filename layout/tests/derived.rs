//! Random trees of constructors, against the model: bounds, packing at random cuts, blocks and signatures.
//!
//! `TAGWIRE_LAYOUT_SEED` is the seed of the first tree, `TAGWIRE_LAYOUT_TREES` how many there are.

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

mod model;

use model::{Model, Random, surrounded, tree};
use tagwire_layout::{
    Basic, Block, Datatype, Elements, Member, Packer, Program, Signature, Source, Target, Unpacker,
};

const TREES: u64 = 30_000;

fn setting(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |value| value.parse().unwrap())
}

/// Names the seed of a tree for which a check fails.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("TAGWIRE_LAYOUT_SEED={}", self.0);
        }
    }
}

/// Calls a check with each tree.
fn each_tree(check: impl Fn(&mut Random, &Datatype, &Model)) {
    let first = setting("TAGWIRE_LAYOUT_SEED", 1);
    for seed in first..first + setting("TAGWIRE_LAYOUT_TREES", TREES) {
        let named = Seed(seed);
        let mut random = Random::new(seed);
        let depth = random.count(4) as u32;
        let (datatype, model) = tree(&mut random, depth);
        check(&mut random, &datatype, &model);
        drop(named);
    }
}

#[test]
fn sizes_and_bounds() {
    each_tree(|_, datatype, model| {
        let found = (
            datatype.size(),
            datatype.lower(),
            datatype.upper(),
            datatype.extent(),
        );
        let wanted = (model.size(), model.lower(), model.upper(), model.extent());
        assert_eq!(found, wanted, "{datatype:#?}");
        let found = (datatype.true_lower(), datatype.true_upper());
        assert_eq!(
            found,
            (model.true_lower(), model.true_upper()),
            "{datatype:#?}"
        );
    });
}

/// The places of the packed bytes of some elements, moved so that the lowest is 0, and by how much.
fn places(model: &Model, count: u64) -> (Vec<i64>, i64) {
    let all = model.blocks([(count, 0)]).places();
    let low = all.iter().copied().min().unwrap_or(0);
    (all.iter().map(|at| at - low).collect(), low)
}

#[test]
fn packing_and_unpacking_at_random_cuts() {
    each_tree(|random, datatype, model| {
        let program = Program::of(datatype);
        let count = random.count(3);
        let (places, low) = places(model, count);
        let length = places.iter().max().map_or(0, |last| last + 1);
        let memory: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
        let wanted: Vec<u8> = places.iter().map(|at| memory[*at as usize]).collect();
        assert_eq!(
            program.span(count).unwrap(),
            low.min(length + low)..low + length
        );

        let (memory, origin) = surrounded(&memory, low);
        let source = Source::around(&memory, origin);
        let mut packer = Packer::new(&program, count, source).unwrap();
        assert_eq!(packer.length(), wanted.len() as u64);
        let mut packed: Vec<u8> = Vec::new();
        while packed.len() < wanted.len() {
            let mut piece = vec![0; 1 + random.count(40) as usize];
            let bytes = packer.pack(&mut piece);
            assert!(bytes > 0);
            packed.extend(&piece[..bytes]);
            assert_eq!(packer.position(), packed.len() as u64);
        }
        assert_eq!(packed, wanted, "{datatype:#?}");
        let from = random.count(wanted.len() as u64);
        let mut piece = vec![0; random.count(60) as usize];
        let bytes = packer.pack_at(from, &mut piece);
        assert_eq!(
            piece[..bytes],
            wanted[from as usize..][..bytes],
            "{datatype:#?}"
        );
        assert_eq!(bytes, piece.len().min(wanted.len() - from as usize));

        // Other bytes: of what is named twice, the last one stays.
        let packed: Vec<u8> = packed.iter().map(|_| random.next() as u8).collect();
        let mut target = vec![0x55; memory.len()];
        let mut expected = target.clone();
        for (at, byte) in places.iter().zip(&packed) {
            expected[(at + low + origin as i64) as usize] = *byte;
        }
        let mut unpacker =
            Unpacker::new(&program, count, Target::around(&mut target, origin)).unwrap();
        let mut rest = &packed[..];
        while !rest.is_empty() {
            let piece = rest.len().min(1 + random.count(40) as usize);
            assert_eq!(unpacker.unpack(&rest[..piece]), piece);
            rest = &rest[piece..];
        }
        assert_eq!(unpacker.unpack(&[1, 2, 3]), 0);
        assert_eq!(target, expected, "{datatype:#?}");
    });
}

#[test]
fn blocks_are_those_of_the_type_map() {
    each_tree(|random, datatype, model| {
        let program = Program::of(datatype);
        let count = random.count(3);
        let wanted = model.blocks([(count, 0)]).places();
        let bytes = |block: Block| block.offset..block.offset + block.length as i64;
        let blocks = program.blocks(count).unwrap();
        assert_eq!(
            blocks.clone().flat_map(bytes).collect::<Vec<_>>(),
            wanted,
            "{datatype:#?}"
        );
        let from = random.count(wanted.len() as u64);
        let mut later = blocks;
        later.seek(from);
        assert_eq!(
            later.flat_map(bytes).collect::<Vec<_>>(),
            wanted[from as usize..]
        );

        // One block if and only if all bytes are neighbours in order.
        let is_one = !wanted.is_empty() && wanted.windows(2).all(|pair| pair[0] + 1 == pair[1]);
        let found = program.contiguous(count).filter(|block| block.length > 0);
        let block = is_one.then(|| Block {
            offset: wanted[0],
            length: wanted.len() as u64,
        });
        assert_eq!(found, block, "{datatype:#?}");
    });
}

#[test]
fn signatures_are_those_of_the_type_map() {
    each_tree(|random, datatype, model| {
        let signature = Signature::of(datatype);
        let entries = &model.entries;
        assert_eq!(signature.elements(), entries.len() as u64, "{datatype:#?}");
        assert_eq!(signature.size() as i64, model.size());
        let basics: Vec<Basic> = entries.iter().map(|(_, basic)| *basic).collect();
        match signature.uniform() {
            Some((basic, count)) => {
                // The two values of a pair are two entries.
                let one = Model::of(basic).entries;
                let one: Vec<Basic> = one.iter().map(|(_, basic)| *basic).collect();
                assert_eq!(basics, one.repeat(count as usize), "{datatype:#?}");
            }
            None => {
                let is_uniform = basics.first().is_some_and(|first| {
                    let may_be_paired = [Basic::I32, Basic::F32, Basic::F64].contains(first);
                    !may_be_paired && basics.iter().all(|basic| basic == first)
                });
                assert!(!is_uniform, "{datatype:#?}");
            }
        }
        if entries.len() < 60 {
            let flat = |entries: &[(i64, Basic)]| {
                let members = entries.iter().map(|(displacement, basic)| Member {
                    count: 1,
                    displacement: *displacement,
                    of: Datatype::of(*basic),
                });
                Signature::of(&Datatype::structure(members.collect::<Vec<_>>()).unwrap())
            };
            assert_eq!(signature, flat(entries), "{datatype:#?}");
            let mut other = entries.clone();
            if let Some(last) = other.last_mut() {
                last.1 = if last.1 == Basic::F64 {
                    Basic::I64
                } else {
                    Basic::F64
                };
                assert_ne!(signature, flat(&other), "{datatype:#?}");
            }
            let mut other = entries.clone();
            other.reverse();
            let basics = |entries: &[(i64, Basic)]| -> Vec<Basic> {
                entries.iter().map(|(_, basic)| *basic).collect()
            };
            let is_same = basics(&other) == basics(entries);
            assert_eq!(signature == flat(&other), is_same, "{datatype:#?}");
        }

        let bytes = random.count(3 * signature.size());
        let (mut rest, mut whole) = (bytes, 0);
        for (_, basic) in entries.iter().cycle().take(3 * entries.len()) {
            match rest.checked_sub(basic.size() as u64) {
                Some(left) => (rest, whole) = (left, whole + 1),
                None => break,
            }
        }
        assert_eq!(
            signature.elements_in(bytes),
            Elements { whole, rest },
            "{bytes} of {datatype:#?}"
        );
        assert_eq!(signature.bytes_of(whole), Some(bytes - rest));
        let size = signature.size().max(1);
        let count = bytes.is_multiple_of(size).then_some(bytes / size);
        assert_eq!(signature.count_in(bytes), count);
    });
}

/// What the other tests rely on: many trees have many values, gaps, data before the address, markers and no data at all.
#[test]
fn trees_are_of_all_kinds() {
    let mut found = [0_u64; 7];
    let all = 5000;
    for seed in 1..=all {
        let mut random = Random::new(seed);
        let depth = random.count(4) as u32;
        let (datatype, model) = tree(&mut random, depth);
        let contiguous = Program::of(&datatype).is_contiguous();
        let is_not_basic = datatype.basic().is_none();
        let kinds = [
            is_not_basic,
            model.entries.len() > 20,
            is_not_basic && !contiguous,
            is_not_basic && contiguous && datatype.size() > 0,
            datatype.true_lower() < 0,
            datatype.extent() < 0 || datatype.upper() < datatype.true_upper(),
            datatype.size() == 0,
        ];
        kinds
            .iter()
            .zip(&mut found)
            .for_each(|(kind, found)| *found += u64::from(*kind));
    }
    assert!(found.iter().all(|number| *number > all / 50), "{found:?}");
}
