//! Exchanges of everybody with everybody.

use tagwire_base::named::{Named, Parameter, Range, Spec};

use super::{App, BYTES, Depth, STEPS, Size, from, parameter, product, to};
use crate::traffic::Script;

pub(super) static ALLTOALL: App = App {
    named: Named {
        name: "alltoall",
        parameters: &[
            parameter("ranks", 16, 2, 1 << 14, "Ranks"),
            Parameter {
                name: "algorithm",
                range: Range::Word {
                    default: "linear",
                    words: &["linear", "pairwise", "bruck"],
                },
                help: "All receives at once, one partner after the other, or in the steps of Bruck and others (TPDS 8, 1997)",
            },
            STEPS,
            BYTES,
        ],
    },
    about: "all ranks with all others, by tags of users",
    scripts: alltoall,
    depth: |spec| match spec.word("algorithm") {
        "linear" => Depth::of_sources(f64::from(spec.number("ranks") - 1), 1.0),
        _ => Depth::ONE,
    },
    size: |spec| {
        let others = product(spec, ["ranks"]) - 1;
        let (each, looked) = match spec.word("algorithm") {
            "linear" => (others, others),
            "pairwise" => (others, 1),
            // A step for each bit of the highest rank.
            _ => (u128::from(u128::BITS - others.leading_zeros()), 1),
        };
        Size {
            messages: each * product(spec, ["ranks", "steps"]),
            looked,
        }
    },
};

pub(super) static TRANSPOSE: App = App {
    named: Named {
        name: "transpose",
        parameters: &[
            parameter("side", 4, 2, 1 << 7, "Ranks of a row and of a column"),
            STEPS,
            BYTES,
        ],
    },
    about: "a two-dimensional FFT: all ranks of a row, then all of a column, each in a context of its own",
    scripts: transpose,
    depth: |spec| Depth::of_sources(f64::from(spec.number("side") - 1), 1.0),
    size: |spec| {
        let others = product(spec, ["side"]) - 1;
        Size {
            messages: 2 * others * product(spec, ["side", "side", "steps"]),
            looked: others,
        }
    },
};

fn alltoall(spec: &Spec) -> Vec<Script> {
    let (ranks, bytes) = (spec.number("ranks"), u64::from(spec.number("bytes")));
    // Half of all blocks, or what is left of them, in each step of Bruck's.
    let ways = (0..u32::BITS)
        .map(|bit| 1 << bit)
        .take_while(|way| *way < ranks);
    let blocks_of = |way: u32| (0..ranks).filter(|block| block & way != 0).count() as u64;
    let blocks: Vec<(u32, u64)> = match spec.word("algorithm") {
        "bruck" => ways.map(|way| (way, blocks_of(way))).collect(),
        _ => Vec::new(),
    };
    let script = |rank: u32| {
        let mut script = Script::new();
        let others: Vec<u32> = (1..ranks).map(|way| (rank + way) % ranks).collect();
        for _ in 0..spec.number("steps") {
            match spec.word("algorithm") {
                "linear" => at_once(&mut script, &others, 0, bytes),
                "pairwise" => (1..ranks).for_each(|way| {
                    shift(
                        &mut script,
                        (rank + ranks - way) % ranks,
                        (rank + way) % ranks,
                        bytes,
                    );
                }),
                _ => blocks.iter().for_each(|(way, blocks)| {
                    let (before, behind) = ((rank + ranks - way) % ranks, (rank + way) % ranks);
                    shift(&mut script, before, behind, blocks * bytes);
                }),
            }
        }
        script
    };
    (0..ranks).map(script).collect()
}

fn transpose(spec: &Spec) -> Vec<Script> {
    let (side, bytes) = (spec.number("side"), u64::from(spec.number("bytes")));
    let script = |rank: u32| {
        let mut script = Script::new();
        let (row, column) = (rank / side, rank % side);
        let row_of: Vec<u32> = (1..side)
            .map(|way| row * side + (column + way) % side)
            .collect();
        let column_of: Vec<u32> = (1..side)
            .map(|way| (row + way) % side * side + column)
            .collect();
        for _ in 0..spec.number("steps") {
            at_once(&mut script, &row_of, 1, bytes);
            at_once(&mut script, &column_of, 2, bytes);
        }
        script
    };
    (0..side * side).map(script).collect()
}

/// A message to and from each of the others; all receives are posted first.
pub(super) fn at_once(script: &mut Script, others: &[u32], context: u16, bytes: u64) {
    let mut requests: Vec<_> = others
        .iter()
        .map(|other| script.post(from(*other, 0, context)))
        .collect();
    requests.extend(
        others
            .iter()
            .map(|other| script.send(to(*other, 0, context, bytes))),
    );
    script.wait(requests);
}

/// A message to one rank and one from another.
fn shift(script: &mut Script, source: u32, target: u32, bytes: u64) {
    let requests = vec![
        script.post(from(source, 0, 0)),
        script.send(to(target, 0, 0, bytes)),
    ];
    script.wait(requests);
}
