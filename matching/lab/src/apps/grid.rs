//! Halos: every rank of a grid that has no rims exchanges messages with those around it.

use tagwire_base::named::{Named, Parameter, Spec};

use super::{App, BYTES, Depth, STEPS, Size, from, parameter, product, to};
use crate::traffic::Script;

/// Three at least, so that all neighbours of a rank are different ones.
const SIDES: [Parameter; 3] = [
    parameter("x", 4, 3, 1 << 10, "Ranks along the first axis"),
    parameter("y", 4, 3, 1 << 10, "Ranks along the second"),
    parameter("z", 4, 3, 1 << 10, "Ranks along the third"),
];

const fn parameters(messages: u32) -> [Parameter; 6] {
    let help = "Messages to each neighbour in a step, as of so many threads or meshes";
    let messages = parameter("messages", messages, 1, 1 << 16, help);
    [SIDES[0], SIDES[1], SIDES[2], messages, STEPS, BYTES]
}

pub(super) static HALO7: App = App {
    named: Named {
        name: "halo7",
        parameters: &parameters(1),
    },
    about: "a grid of ranks, each with those across its six faces; receives are posted before the sends",
    scripts: faces,
    depth: |spec| depth(spec, 6.0),
    size: |spec| size(spec, 6),
};

pub(super) static HALO27: App = App {
    named: Named {
        name: "halo27",
        parameters: &parameters(1),
    },
    about: "the same with all 26 around it, as HPCG and miniFE do",
    scripts: |spec| scripts(spec, |_| true),
    depth: |spec| depth(spec, 26.0),
    size: |spec| size(spec, 26),
};

pub(super) static FDS: App = App {
    named: Named {
        name: "fds",
        parameters: &parameters(50),
    },
    about: "six neighbours with a message for each pair of meshes, all receives posted first, as FDS does: long lists",
    scripts: faces,
    depth: |spec| depth(spec, 6.0),
    size: |spec| size(spec, 6),
};

fn depth(spec: &Spec, neighbours: f64) -> Depth {
    Depth::of_sources(neighbours, f64::from(spec.number("messages")))
}

fn size(spec: &Spec, neighbours: u128) -> Size {
    Size {
        messages: neighbours * product(spec, ["x", "y", "z", "messages", "steps"]),
        looked: neighbours * product(spec, ["messages"]),
    }
}

fn faces(spec: &Spec) -> Vec<Script> {
    scripts(spec, |offset| {
        offset.iter().map(|way| way.abs()).sum::<i64>() == 1
    })
}

/// The scripts of all ranks, with neighbours at the offsets that are `wanted`.
fn scripts(spec: &Spec, wanted: fn(&[i64; 3]) -> bool) -> Vec<Script> {
    let sides = ["x", "y", "z"].map(|name| i64::from(spec.number(name)));
    let [messages, steps, bytes] = ["messages", "steps", "bytes"].map(|name| spec.number(name));
    let all = (0..27).map(|index| [index % 3 - 1, index / 3 % 3 - 1, index / 9 - 1]);
    let offsets: Vec<[i64; 3]> = all
        .filter(|offset| *offset != [0; 3] && wanted(offset))
        .collect();
    let ranks = sides.iter().product::<i64>();
    let neighbour = |rank: i64, offset: &[i64; 3], sign: i64| -> u32 {
        let at = [
            rank % sides[0],
            rank / sides[0] % sides[1],
            rank / sides[0] / sides[1],
        ];
        let moved: [i64; 3] =
            std::array::from_fn(|axis| (at[axis] + sign * offset[axis]).rem_euclid(sides[axis]));
        u32::try_from(moved[0] + sides[0] * (moved[1] + sides[1] * moved[2])).unwrap_or_default()
    };
    let script = |rank: i64| {
        let mut script = Script::new();
        for _ in 0..steps {
            let mut requests = Vec::new();
            // The tag says which way the message goes, and which one of its neighbour it is.
            for (way, offset) in (0..).zip(&offsets) {
                let source = neighbour(rank, offset, -1);
                requests.extend(
                    (0..messages).map(|one| script.post(from(source, way * messages + one, 0))),
                );
            }
            for (way, offset) in (0..).zip(&offsets) {
                let target = neighbour(rank, offset, 1);
                let message = |one| to(target, way * messages + one, 0, u64::from(bytes));
                requests.extend((0..messages).map(|one| script.send(message(one))));
            }
            script.wait(requests);
        }
        script
    };
    (0..ranks).map(script).collect()
}
