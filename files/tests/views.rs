//! Views against the offsets of their bytes.

use tagwire_files::{Extent, View};
use tagwire_layout::{Basic, Datatype, Member, Program, VectorShape};

use crate::common::cases::Case;
use crate::common::{Chance, cases_of};

/// Extents are the runs of the offsets, and positions and offsets lead to each other.
#[test]
fn extents_are_the_runs_of_the_bytes() {
    for seed in 0..cases_of(256) {
        let case = Case::new(3, &mut Chance::new(seed));
        for part in &case.members {
            let len = part.data.len() as u64;
            let extents: Vec<Extent> = part.view.extents(part.position, len).unwrap().collect();
            let bytes = extents
                .iter()
                .flat_map(|extent| extent.offset..extent.end());
            assert!(
                bytes.eq(part.own().iter().copied()),
                "seed {seed}: {part:?}"
            );
            let touching = extents
                .windows(2)
                .any(|pair| pair[0].end() >= pair[1].offset);
            assert!(!touching, "seed {seed}: {extents:?}");
            for (position, offset) in part.offsets.iter().enumerate() {
                let position = position as u64;
                assert_eq!(part.view.offset_of(position).unwrap(), *offset);
                if !part.view.is_ordered() {
                    // Of tiles that share bytes, positions are in several.
                    continue;
                }
                assert_eq!(
                    part.view.position_of(*offset).unwrap(),
                    position,
                    "seed {seed}"
                );
                let before = part.offsets.partition_point(|other| *other <= *offset);
                assert_eq!(part.view.position_of(offset + 1).unwrap(), before as u64);
            }
        }
    }
}

fn byte() -> Datatype {
    Datatype::of(Basic::Byte)
}

fn view(displacement: u64, etype: &Datatype, filetype: &Datatype) -> tagwire_files::Result<View> {
    View::new(displacement, &Program::of(etype), &Program::of(filetype))
}

fn at(displacements: &[i64]) -> Datatype {
    let members = displacements.iter().map(|displacement| Member {
        count: 2,
        displacement: *displacement,
        of: byte(),
    });
    Datatype::structure(members.collect::<Vec<_>>()).unwrap()
}

#[test]
fn filetypes_that_cannot_be_used_are_refused() {
    let int = Datatype::of(Basic::I32);
    let nothing = byte().contiguous(0).unwrap();
    let cases = [
        (0, &nothing, &byte(), "no data"),
        (0, &int, &byte().contiguous(6).unwrap(), "whole etypes"),
        (0, &byte(), &at(&[-4]), "negative displacements"),
        (0, &byte(), &at(&[8, 0]), "do not increase"),
        (
            0,
            &byte(),
            &at(&[0]).resized(0, -8).unwrap(),
            "extent of the filetype is negative",
        ),
        (u64::MAX, &byte(), &byte(), "longer than files"),
    ];
    for (displacement, etype, filetype, text) in cases {
        let error = view(displacement, etype, filetype).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
    }
    // A filetype without data is a view of nothing.
    let none = view(8, &byte(), &nothing).unwrap();
    assert_eq!(none.extents(0, 0).unwrap().count(), 0);
    assert!(none.extents(0, 1).is_err());
}

/// Such views are only to be read.
#[test]
fn filetypes_that_overlap_themselves_are_known() {
    let shape = VectorShape {
        count: 3,
        length: 1,
        stride: 1,
    };
    for filetype in [
        at(&[0, 1]),
        at(&[0, 0]),
        at(&[0])
            .hvector(shape.count, shape.length, shape.stride)
            .unwrap(),
    ] {
        let view = view(0, &byte(), &filetype).unwrap();
        assert!(view.overlaps() && !view.is_ordered(), "{filetype:?}");
        assert!(view.position_of(3).is_err());
    }
    let ordered = view(0, &byte(), &at(&[0, 4])).unwrap();
    assert!(ordered.is_ordered() && !ordered.overlaps());
    // Tiles that lie between each other share no byte.
    for (displacements, extent, overlaps) in [
        (&[0, 6][..], 4, false),
        (&[2, 8], 4, false),
        (&[0, 4], 5, true),
        (&[0, 6], 2, true),
        (&[0, 7], 4, true),
        (&[1, 7], 4, false),
        (&[0, 9, 22], 6, true),
        (&[0, 8, 22], 6, false),
        (&[3], 1, true),
        (&[3, 9], 0, true),
    ] {
        let filetype = at(displacements).resized(0, extent).unwrap();
        let view = view(0, &byte(), &filetype).unwrap();
        assert!(!view.is_ordered(), "{filetype:?}");
        let tile = 2 * displacements.len() as u64;
        assert_eq!(view.overlaps_in(0, 2 * tile), overlaps, "{filetype:?}");
        assert_eq!(view.overlaps_in(tile, tile + 1), overlaps);
        assert!(!view.is_ordered_in(1, tile));
        // An access within one of them does not meet the next.
        assert!(!view.overlaps() && !view.overlaps_in(tile + 1, tile - 1));
        assert!(view.is_ordered_in(tile, tile) && view.is_ordered_in(1, 0));
    }
}

/// Nothing overflows at the end of the longest file.
#[test]
fn accesses_beyond_all_files_are_refused() {
    let spread = byte().resized(0, 1 << 40).unwrap();
    let long = view(1 << 62, &byte(), &spread).unwrap();
    assert_eq!(long.offset_of(5).unwrap(), (1 << 62) + (5 << 40));
    for position in [1 << 22, 1 << 24, 1 << 40, u64::MAX] {
        assert!(long.extents(position, 1).is_err(), "{position}");
        assert!(long.offset_of(position).is_err());
    }
    let last = i64::MAX as u64;
    assert_eq!(View::bytes().offset_of(last - 1).unwrap(), last - 1);
    assert!(View::bytes().extents(last, 1).is_err());
    assert!(View::bytes().extents(1, last).is_err());
    assert!(View::bytes().extents(u64::MAX, u64::MAX).is_err());
}
