//! Every instruction set that the processor has returns what the plain kernels do.
//!
//! `LANES_MASKS` is the number of random vectors of each kernel.
#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use tagwire_lanes::{Isa, Kernels};

/// What a comparison has seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Compared {
    /// Slots that hit, over all kernels.
    hits: u64,
    /// Slots that did not.
    misses: u64,
}

/// Returns what so many random vectors gave, each to all four kernels, or the kernel and the number of the vector that differ.
fn compare(isa: Isa, vectors: u64) -> Result<Compared, (&'static str, u64)> {
    let (kernels, plain) = (Kernels::of(isa).unwrap(), Kernels::of(Isa::Scalar).unwrap());
    let mut random = Random(1);
    let (mut hits, mut slots) = (0, 0);
    for vector in 0..vectors {
        let mut check = |name, ours: u64, plains: u64, count: u64| {
            hits += u64::from(ours.count_ones());
            slots += count;
            match ours == plains {
                true => Ok(()),
                false => Err((name, vector)),
            }
        };
        let keys = std::array::from_fn(|_| random.key() as u8);
        let masks = std::array::from_fn(|_| random.mask() as u8);
        let needle = random.key() as u8;
        check(
            "eq_mask_u8x64",
            kernels.eq_mask_u8x64(&keys, &masks, needle),
            plain.eq_mask_u8x64(&keys, &masks, needle),
            64,
        )?;
        let keys = std::array::from_fn(|_| random.key() as u16);
        let masks = std::array::from_fn(|_| random.mask() as u16);
        let needle = random.key() as u16;
        check(
            "eq_mask_u16x32",
            kernels.eq_mask_u16x32(&keys, &masks, needle).into(),
            plain.eq_mask_u16x32(&keys, &masks, needle).into(),
            32,
        )?;
        let [keys, others] = [0; 2].map(|_| std::array::from_fn(|_| random.key()));
        let [masks, other_masks] = [0; 2].map(|_| std::array::from_fn(|_| random.mask()));
        let needles = [random.key(), random.key()];
        check(
            "eq_mask_u32x16",
            kernels.eq_mask_u32x16(&keys, &masks, needles[0]).into(),
            plain.eq_mask_u32x16(&keys, &masks, needles[0]).into(),
            16,
        )?;
        let (keys, masks) = ([&keys, &others], [&masks, &other_masks]);
        check(
            "hit_mask_u32x16",
            kernels.hit_mask_u32x16(keys, masks, needles).into(),
            plain.hit_mask_u32x16(keys, masks, needles).into(),
            16,
        )?;
    }
    Ok(Compared {
        hits,
        misses: slots - hits,
    })
}

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// One of few keys that differ in any one bit, so that half of the vectors have hits without a mask.
    fn key(&mut self) -> u32 {
        let drawn = self.next();
        match drawn >> 62 {
            0 => 0,
            1 => 1 << (drawn as u32 % 32),
            2 => u32::MAX,
            _ => (drawn >> 8) as u32,
        }
    }

    /// Mostly all ones or none, as receives have them; some have any bits.
    fn mask(&mut self) -> u32 {
        let drawn = self.next();
        match drawn >> 61 {
            0..=4 => u32::MAX,
            5 => 0,
            _ => drawn as u32,
        }
    }
}

#[test]
fn every_instruction_set_gives_the_bits_of_the_plain_one() {
    let vectors = std::env::var("LANES_MASKS").map_or(20_000, |text| text.parse().unwrap());
    for isa in Isa::available() {
        let seen = compare(isa, vectors);
        let seen = seen.unwrap_or_else(|(kernel, vector)| {
            panic!("{isa}: {kernel} differs on vector {vector}");
        });
        // Neither all hits nor all misses, which anything would get right.
        assert!(
            seen.hits > vectors * 16 && seen.misses > vectors * 16,
            "{isa}: {seen:?}"
        );
        eprintln!("{isa}: {vectors} vectors for each kernel, {seen:?}");
    }
}

/// A hit in one slot is that slot's bit, and a difference in one bit of one slot is that slot's miss.
#[test]
fn each_slot_has_its_own_bit() {
    for kernels in Isa::available().map(|isa| Kernels::of(isa).unwrap()) {
        for slot in 0..64 {
            let mut keys = [3; 64];
            keys[slot] = 0x83;
            assert_eq!(kernels.eq_mask_u8x64(&keys, &[0xff; 64], 0x83), 1 << slot);
            assert_eq!(kernels.eq_mask_u8x64(&keys, &[0xff; 64], 3), !(1 << slot));
            assert_eq!(kernels.eq_mask_u8x64(&keys, &[0x7f; 64], 3), u64::MAX);
        }
        for slot in 0..32 {
            let mut keys = [3; 32];
            keys[slot] = 0x8003;
            let hits = kernels.eq_mask_u16x32(&keys, &[u16::MAX; 32], 0x8003);
            assert_eq!(hits, 1 << slot, "{kernels:?}");
        }
        for slot in 0..16 {
            let mut keys = [3; 16];
            keys[slot] = 0x8000_0003;
            let ones = [u32::MAX; 16];
            let hits = kernels.eq_mask_u32x16(&keys, &ones, 0x8000_0003);
            assert_eq!(hits, 1 << slot, "{kernels:?}");
            // Both have to hit.
            let other = [7; 16];
            let both = |needles| kernels.hit_mask_u32x16([&keys, &other], [&ones, &ones], needles);
            assert_eq!(both([0x8000_0003, 7]), 1 << slot, "{kernels:?}");
            assert_eq!(both([0x8000_0003, 8]), 0, "{kernels:?}");
            assert_eq!(both([3, 7]), !(1 << slot), "{kernels:?}");
        }
    }
}

/// One that the processor lacks is refused by its name, with those that it has.
#[test]
fn a_set_that_the_processor_lacks_is_refused_by_name() {
    let missing: Vec<Isa> = Isa::ALL
        .into_iter()
        .filter(|isa| !isa.is_available())
        .collect();
    // No processor has both AVX-512 and NEON.
    assert!(!missing.is_empty());
    for isa in missing {
        let told = Kernels::of(isa).unwrap_err().to_string();
        let named = format!("the processor has no {isa}; it has ");
        assert!(
            told.starts_with(&named) && told.ends_with("scalar"),
            "{told}"
        );
    }
    assert!(Kernels::best().isa().is_available());
    assert_eq!(Some(Kernels::best().isa()), Isa::available().next());
}

#[test]
fn names_are_read_back() {
    for isa in Isa::ALL {
        assert_eq!(Isa::by_name(isa.name()), Some(isa));
    }
    assert_eq!(Isa::by_name("auto"), None);
}
