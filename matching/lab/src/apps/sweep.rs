//! Wavefronts over a grid of ranks, as Sweep3D does: eight octants, each in blocks of angles and of planes.

use tagwire_base::named::{Named, Spec};

use super::{App, BYTES, Depth, Size, from, parameter, product, to};
use crate::traffic::Script;

pub(super) static SWEEP: App = App {
    named: Named {
        name: "sweep",
        parameters: &[
            parameter("x", 4, 1, 1 << 12, "Ranks along the first axis"),
            parameter("y", 4, 1, 1 << 12, "Ranks along the second"),
            parameter("angles", 3, 1, 1 << 10, "Blocks of angles"),
            parameter("planes", 5, 1, 1 << 10, "Blocks of planes"),
            parameter("iterations", 12, 1, 1 << 20, "Iterations"),
            BYTES,
        ],
    },
    about: "wavefronts from each corner over a grid of ranks, with blocking receives: one receive waits at a time",
    scripts,
    depth: |_| Depth::ONE,
    // Two from each rank, but for those at the rim, in each of eight octants.
    size: |spec| Size {
        messages: 16 * product(spec, ["x", "y", "angles", "planes", "iterations"]),
        looked: 1,
    },
};

fn scripts(spec: &Spec) -> Vec<Script> {
    let [x, y] = ["x", "y"].map(|name| spec.number(name));
    let blocks = spec.number("angles") * spec.number("planes");
    let bytes = u64::from(spec.number("bytes"));
    // The ranks before and behind on an axis, for a wave that goes up it or down.
    let around = |at: u32, side: u32, up: bool| {
        let (before, behind) = (at.checked_sub(1), Some(at + 1).filter(|at| *at < side));
        match up {
            true => (before, behind),
            false => (behind, before),
        }
    };
    let script = |rank: u32| {
        let (column, row) = (rank % x, rank / x);
        let mut script = Script::new();
        for _ in 0..spec.number("iterations") {
            for octant in 0..8 {
                let (west, east) = around(column, x, octant & 1 == 0);
                let (north, south) = around(row, y, octant & 2 == 0);
                for _ in 0..blocks {
                    let sources = [west.map(|at| at + x * row), north.map(|at| column + x * at)];
                    for source in sources.into_iter().flatten() {
                        script.receive(from(source, octant, 0));
                    }
                    let targets = [east.map(|at| at + x * row), south.map(|at| column + x * at)];
                    for target in targets.into_iter().flatten() {
                        let send = script.send(to(target, octant, 0, bytes));
                        script.wait(vec![send]);
                    }
                }
            }
        }
        script
    };
    (0..x * y).map(script).collect()
}
