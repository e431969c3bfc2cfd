//! Parts of arrays by hand (MPI-5.0, sections 5.1.3 and 5.1.4).

#![allow(clippy::unwrap_used, reason = "a test that panics fails")]

use tagwire_layout::{Basic, Datatype, Distributed, Distribution, Error, Order, Program, Slice};

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

/// Section 5.1.3: a part of a matrix of 4 rows and 6 columns.
#[test]
fn subarrays() {
    let slices = [
        Slice {
            size: 4,
            length: 2,
            start: 1,
        },
        Slice {
            size: 6,
            length: 3,
            start: 2,
        },
    ];
    let int = Datatype::of(Basic::I32);
    let rows = int.subarray(&slices, Order::C).unwrap();
    assert_eq!(
        (shape(&rows), blocks(&rows)),
        ((0, 96, 32, 36, 24), vec![(32, 12), (56, 12)])
    );
    let columns = int.subarray(&slices, Order::Fortran).unwrap();
    assert_eq!(blocks(&columns), [(36, 8), (52, 8), (68, 8)]);
    assert_eq!((columns.lower(), columns.extent()), (0, 96));
    for (size, length, start) in [
        (4, 0, 0),
        (4, 5, 0),
        (4, 2, 3),
        (4, 1, 5),
        (0, 0, 0),
        (4, 1, u64::MAX),
    ] {
        let slice = Slice {
            size,
            length,
            start,
        };
        let refused = int.subarray(&[slice], Order::C);
        assert!(matches!(refused, Err(Error::Argument(_))), "{slice:?}");
    }
    assert!(matches!(
        int.subarray(&[], Order::C),
        Err(Error::Argument(_))
    ));
}

/// Section 5.1.4: which elements of an array of one byte each a process has.
#[test]
fn distributed_arrays() {
    let byte = Datatype::of(Basic::Byte);
    let of = |distribution, size, processes, rank| {
        let dimension = Distributed {
            size,
            distribution,
            processes,
        };
        let part = byte
            .darray(processes, rank, &[dimension], Order::C)
            .unwrap();
        assert_eq!((part.lower(), part.extent()), (0, size as i64));
        blocks(&part)
    };
    // Ten elements in blocks of four.
    assert_eq!(
        [0, 1, 2].map(|rank| of(Distribution::Block(None), 10, 3, rank)),
        [[(0, 4)], [(4, 4)], [(8, 2)]]
    );
    assert_eq!(of(Distribution::Block(Some(5)), 10, 3, 2), []);
    assert_eq!(of(Distribution::Block(Some(99)), 10, 3, 0), [(0, 10)]);
    assert_eq!(
        of(Distribution::Cyclic(None), 7, 3, 0),
        [(0, 1), (3, 1), (6, 1)]
    );
    assert_eq!(of(Distribution::Cyclic(None), 7, 3, 1), [(1, 1), (4, 1)]);
    // Blocks of two; the last one is short.
    assert_eq!(
        of(Distribution::Cyclic(Some(2)), 11, 2, 0),
        [(0, 2), (4, 2), (8, 2)]
    );
    assert_eq!(
        of(Distribution::Cyclic(Some(2)), 11, 2, 1),
        [(2, 2), (6, 2), (10, 1)]
    );
    assert_eq!(of(Distribution::None, 5, 1, 0), [(0, 5)]);
    assert_eq!(of(Distribution::Block(None), 2, 4, 3), []);

    // A grid of 2 x 2: the last coordinate is the fastest, for both orders.
    let grid = [
        Distributed {
            size: 4,
            distribution: Distribution::Block(None),
            processes: 2,
        },
        Distributed {
            size: 4,
            distribution: Distribution::Cyclic(None),
            processes: 2,
        },
    ];
    let rows = byte.darray(4, 1, &grid, Order::C).unwrap();
    assert_eq!(blocks(&rows), [(1, 1), (3, 1), (5, 1), (7, 1)]);
    let columns = byte.darray(4, 1, &grid, Order::Fortran).unwrap();
    assert_eq!(blocks(&columns), [(4, 2), (12, 2)]);
    let columns = byte.darray(4, 2, &grid, Order::Fortran).unwrap();
    assert_eq!(blocks(&columns), [(2, 2), (10, 2)]);

    let refused = |processes, rank, distribution, in_grid| {
        let dimension = Distributed {
            size: 10,
            distribution,
            processes: in_grid,
        };
        let refused = byte.darray(processes, rank, &[dimension], Order::C);
        matches!(refused, Err(Error::Argument(_)))
    };
    assert!(refused(3, 0, Distribution::Block(Some(3)), 3));
    assert!(refused(3, 0, Distribution::Block(Some(0)), 3));
    assert!(refused(3, 0, Distribution::Cyclic(Some(0)), 3));
    assert!(refused(2, 0, Distribution::None, 2));
    assert!(refused(3, 3, Distribution::Cyclic(None), 3));
    assert!(refused(4, 0, Distribution::Cyclic(None), 3));
    assert!(refused(0, 0, Distribution::Cyclic(None), 0));
    assert!(!refused(3, 2, Distribution::Cyclic(None), 3));
}
